#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How a job ends when something goes wrong: non-zero status, in bounded time, one message that says which rank, which call and
# which line, and no rank left behind. The failing programs are in test_errors_ranks.c.
set -u
cd "$(dirname "$0")/../.." || exit
program=${BUILD:-build}/tests/test_errors_ranks
MPIRUN=${MPIRUN:-mpirun}
limits=()
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' && limits=(--timeout 60)
export MPIEXEC_TIMEOUT=60 OLYMPUS_NUM_CPU_DEVICES=2 OLYMPUS_TIMEOUT=20
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0 failed=0

# run SECONDS COMMAND...: runs it; leaves its output, its status, and whether it took longer.
run() {
    local most=$1 begin=$SECONDS
    shift
    timeout -k 2 90 "$@" >"$output" 2>&1 </dev/null
    status=$?
    slow=$((SECONDS - begin > most))
}
alone() { run "$1" "$program" "$2"; }
on_two() { run "$1" "$MPIRUN" "${limits[@]}" -n 2 "$program" "$2"; }

# check NAME CONDITION...: the conditions are commands.
check() {
    local name=$1 condition
    shift
    for condition in "$@"; do
        if ! eval "$condition"; then
            echo "FAILED  $name: $condition (status $status)"
            sed 's/^/    | /' "$output"
            failed=$((failed + 1))
            return
        fi
    done
    echo "ok      $name"
    passed=$((passed + 1))
}
failing='[[ $status != 0 && $status != 124 && $status != 137 && $slow == 0 ]]'
says() { grep -qE -- "$1" "$output"; }
messages() { [[ $(grep -c '^olympus: ' "$output") == "$1" ]]; }

alone 10 shapes
check 'an error ends a program' "$failing" 'messages 1' \
    'says "^olympus: oly_add \(tests/ranks/test_errors_ranks.c:[0-9]+\): float32\[4\] and float32\[5\]"' '! says "still here"'

on_two 10 one_fails
check 'an error of one rank ends the job' "$failing" 'messages 1' \
    'says "^olympus: rank 1: oly_reshape \(tests/ranks/test_errors_ranks.c:[0-9]+\): "'

on_two 10 fetch
check 'a fetch of data elsewhere ends the job' "$failing" \
    'says "^olympus: rank [01]: oly_get \(tests/ranks/test_errors_ranks.c:[0-9]+\): .*oly_process_allgather"'

on_two 20 diverge
check 'ranks in different operations are told both' "$failing" \
    'says "rank 0 got OLY_DIVERGED: .*is oly_sum .*on rank 0 and oly_transpose .*on rank 1"' \
    'says "rank 1 got OLY_DIVERGED: .*is oly_sum .*on rank 0 and oly_transpose .*on rank 1"' \
    'says "test_errors_ranks.c:[0-9]+.*test_errors_ranks.c:[0-9]+"'

on_two 20 order
check 'ranks in another order are told' "$failing" 'says "OLY_DIVERGED: .*oly_sum.*oly_max"'

OLYMPUS_TIMEOUT=2 on_two 12 absent
check 'a rank that does not come ends the job' "$failing" \
    'says "^olympus: rank 0: .*rank 1"' 'says "OLY_TIMEOUT"' 'says "test_errors_ranks.c:[0-9]+"'

OLYMPUS_TIMEOUT=2 on_two 12 gone
check 'a rank that is gone ends the job' "$failing"

alone 10 unseen
check 'an error that nobody looked at is the exit status, and is told at the end' '[[ $status == 1 && $slow == 0 ]]' 'messages 1' \
    'says "the program never read this error: oly_reshape \(tests/ranks/test_errors_ranks.c:[0-9]+\): "'

run 10 "$MPIRUN" "${limits[@]}" -n 1 env OLYMPUS_NUM_CPU_DEVICES=2 "$program" nothing : \
    -n 1 env OLYMPUS_NUM_CPU_DEVICES=3 "$program" nothing
check 'different numbers of devices' "$failing" 'says "OLYMPUS_NUM_CPU_DEVICES is 2 on rank 0, but 3 on rank 1"' 'says "OLY_DIVERGED"'

run 10 "$MPIRUN" "${limits[@]}" -n 1 env OLYMPUS_HALO_STEPS=2 "$program" nothing : -n 1 "$program" nothing
check 'different options' "$failing" 'says "OLY_DIVERGED"' 'says "OLYMPUS_HALO_STEPS is 2 on rank 0, but 0 on rank 1"'

OLYMPUS_NUM_CPU_DEVICE=8 on_two 10 nothing
check 'a misspelt option is told once' '[[ $status == 0 ]]' 'messages 1' \
    'says "OLYMPUS_NUM_CPU_DEVICE ignored; did you mean OLYMPUS_NUM_CPU_DEVICES"'

OLYMPUS_NUM_CPU_DEVICES=two alone 10 nothing
check 'an option that is no number' "$failing" 'messages 1' 'says "OLYMPUS_NUM_CPU_DEVICES=\"two\""'

OLYMPUS_PLATFORMS=abacus alone 10 nothing
check 'an unknown platform' "$failing" 'messages 1' 'says "abacus"'

sleep 0.2
check 'no rank is left behind' '! pgrep -P $$ -f test_errors_ranks >/dev/null'

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
