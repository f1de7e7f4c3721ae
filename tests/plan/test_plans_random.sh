#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The plans of random programs (tests/soak) on four machines are those of tests/plan/expected/random: a line for each program, with a digest
# of the program, how many plans, steps and collectives it has, what the planner predicts, and a digest of what oly_explain says.
# Nothing runs. After an intended change, or a change of how programs are drawn, PLANS=write tests/plan/test_plans_random.sh rewrites
# them; then `git diff` shows whether predictions improved, and
#     OLYMPUS_SIMULATE=MACHINE OLYMPUS_EXPLAIN=text:FILE build/tests/soak/soak -e SEED 1
# prints a plan under the options below.
set -u
cd "$(dirname "$0")/../.." || exit 1
soak=${BUILD:-build}/tests/soak/soak folder=tests/plan/expected/random passed=0 failed=0
[[ -x $soak ]] || exit 77
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export OLYMPUS_VERIFY=0 OLYMPUS_NUM_THREADS=1 OLYMPUS_DISABLE='' OLYMPUS_EXCHANGE_MEMORY=256 OLYMPUS_GRADIENT_MEMORY=1024
export OLYMPUS_COMPILE_AFTER=262144 OLYMPUS_COMPUTE_ONCE=200000 OLYMPUS_ISA=''
export OLYMPUS_SIMULATE_NODE='numa:1 l3:1 core:4 l2:1 l1d:1 pu:1'

# check MACHINE SEED FORM OPTION=VALUE...: 250 programs on ranks x devices, explained in this form
check() {
    local name=$1 seed=$2 form=$3
    shift 3
    env OLYMPUS_SIMULATE="$name" OLYMPUS_EXPLAIN="$form:$scratch/plans" "$@" "$soak" -e "$seed" 250 >"$scratch/$name.txt"
    [[ ${PLANS:-} == write ]] && mkdir -p $folder && cp "$scratch/$name.txt" "$folder/$name.txt"
    if cmp -s "$folder/$name.txt" "$scratch/$name.txt"; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: < expected, > found (PLANS=write $0, if this is intended)"
        diff "$folder/$name.txt" "$scratch/$name.txt" | head -n 20
        diff <(cut -d: -f1 "$folder/$name.txt") <(cut -d: -f1 "$scratch/$name.txt") >/dev/null || echo "the programs are others"
    fi
}

check 1x8 20270000 text OLYMPUS_CHOOSE=1 OLYMPUS_COSTS= OLYMPUS_HALO_STEPS=0 OLYMPUS_OVERLAP=1 OLYMPUS_DIRECT_PROCESSES=8
check 2x4 20280000 json OLYMPUS_CHOOSE=1 OLYMPUS_COSTS=node=0.01us,0.01GB/s OLYMPUS_HALO_STEPS=0 OLYMPUS_OVERLAP=1 OLYMPUS_DIRECT_PROCESSES=8
check 8x1 20290000 text OLYMPUS_CHOOSE=2 OLYMPUS_COSTS= OLYMPUS_HALO_STEPS=3 OLYMPUS_OVERLAP=1 OLYMPUS_DIRECT_PROCESSES=2
check 6x3 20300000 json OLYMPUS_CHOOSE=1 OLYMPUS_COSTS=levels OLYMPUS_HALO_STEPS=0 OLYMPUS_OVERLAP=0 OLYMPUS_DIRECT_PROCESSES=1
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
