#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120  What ranks must share is compared when they start: every option marked SAME in option.def, the program and the
# library. The message names the option, or the files, and the values of two ranks; every rank ends with an error.
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build}
program=$build/tests/test_errors_ranks
MPIRUN=${MPIRUN:-mpirun}
limits=()
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' && limits=(--timeout 60)
export MPIEXEC_TIMEOUT=60 OLYMPUS_NUM_CPU_DEVICES=2
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
folder=$(mktemp -d)
output=$folder/output
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# differ STATUS NAME PATTERN RANK0 -- RANK1: runs two ranks, each with its command; the pattern must be in what they print.
differ() {
    local wanted=$1 name=$2 pattern=$3 first=() status
    shift 3
    while [[ $1 != -- ]]; do
        first+=("$1")
        shift
    done
    shift
    timeout -k 2 90 "$MPIRUN" "${limits[@]}" -n 1 "${first[@]}" : -n 1 "$@" >"$output" 2>&1 </dev/null
    status=$?
    if [[ ($wanted == 0 && $status == 0) || ($wanted != 0 && $status != 0 && $status != 110 && $status != 124) ]] &&
        { [[ -z $pattern ]] || grep -qE -- "$pattern" "$output"; }; then
        echo "ok      $name"
        passed=$((passed + 1))
    else
        echo "FAILED  $name: status $status, looking for: $pattern"
        sed 's/^/    | /' "$output"
        failed=$((failed + 1))
    fi
}

# Two values of every option that ranks share.
values() {
    case $1 in
    OLYMPUS_PLATFORMS) echo 'cpu cuda,cpu' ;;
    OLYMPUS_COSTS) echo 'node=1us,1GB/s node=2us,1GB/s' ;;
    OLYMPUS_NUM_CPU_DEVICES) echo '2 3' ;;
    OLYMPUS_DISABLE) echo 'fusion overlap' ;;
    OLYMPUS_NODES) echo '0,0 0,1' ;;
    OLYMPUS_TIMELINE) echo '/dev/null /dev/zero' ;;
    OLYMPUS_GPU_MESSAGES) echo 'first staged' ;;
    OLYMPUS_*) echo "${2-} ${3-}" ;;
    esac
}
numbers=$(sed -n 's/^OLY_OPTION_INT([a-z0-9_]*, \([-0-9]*\), \([-0-9]*\), \([-0-9]*\), SAME, "\([A-Z0-9_]*\)".*/\4 \2 \3/p' runtime/core/option.def)
texts=$(sed -n 's/^OLY_OPTION_TEXT([a-z0-9_]*, "[^"]*", SAME, "\([A-Z0-9_]*\)".*/\1/p' runtime/core/option.def)
while read -r option low high; do
    read -r one other <<<"$(values "$option" "$low" "$high")"
    if [[ -z $other ]]; then
        echo "FAILED  $option: give this test two values of it"
        failed=$((failed + 1))
        continue
    fi
    differ 1 "$option" "$option is \"?$one\"? on rank 0, but \"?$other\"? on rank 1.*OLY_DIVERGED" \
        env "$option=$one" "$program" nothing -- env "$option=$other" "$program" nothing
done <<<"$numbers
$texts"

differ 0 'what each rank chooses for itself' '' env OLYMPUS_NUM_THREADS=1 OLYMPUS_QUEUE_DEPTH=3 OLYMPUS_ISA=base "$program" nothing -- \
    env OLYMPUS_NUM_THREADS=2 OLYMPUS_TIMEOUT=50 "$program" nothing

# A copy is the same program; another one is not, even if it makes the same calls.
cp "$program" "$folder/copy"
differ 0 'a copy of the program' '' "$program" nothing -- "$folder/copy" nothing
differ 1 'another program' 'rank 0 runs the program .*/examples/toy \(build [0-9a-f]{16}\), rank 1 .*/examples/sharded_computation \(build' \
    "$build/examples/toy" -- "$build/examples/sharded_computation"
# Without a build id its code is compared.
if command -v objcopy >/dev/null; then
    objcopy --remove-section .note.gnu.build-id "$program" "$folder/without"
    cp "$folder/without" "$folder/without2"
    differ 0 'a copy without a build id' '' "$folder/without" nothing -- "$folder/without2" nothing
    differ 1 'another build of the program' 'rank 0 runs the program .*test_errors_ranks .*, rank 1 .*/without' "$program" nothing -- "$folder/without" nothing
    differ 0 'another build, where ranks may differ' '' \
        env OLYMPUS_MIXED_PROGRAMS=1 "$program" nothing -- env OLYMPUS_MIXED_PROGRAMS=1 "$folder/without" nothing
fi

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
