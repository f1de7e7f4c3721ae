#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=240  Random programs (tests/soak), those of the corpus and some hundred by seed, have the values of plain loops.
set -u
cd "$(dirname "$0")/../.." || exit 1
soak=${BUILD:-build}/tests/soak/soak passed=0 failed=0
[[ -x $soak ]] || exit 77

# check NAME RANKS DEVICES ARGUMENT...
check() {
    local name=$1 ranks=$2 output
    export OLYMPUS_NUM_CPU_DEVICES=$3 SOAK_SHRINK=10
    shift 3
    if [[ $ranks == 1 ]]; then
        output=$("$soak" "$@" 2>&1)
    else
        output=$(timeout -k 5 150 "${MPIRUN:-mpirun}" -n "$ranks" "$soak" "$@" 2>&1 </dev/null)
    fi
    if [[ $output == *" programs, 0 failed,"* ]]; then
        passed=$((passed + 1))
        echo "ok      $name on ${ranks}x$OLYMPUS_NUM_CPU_DEVICES: ${output##*$'\n'}"
    else
        failed=$((failed + 1))
        echo "FAILED  $name on ${ranks}x$OLYMPUS_NUM_CPU_DEVICES"
        echo "$output"
    fi
}

for layout in "1 8" "2 4" "4 2" "1 3"; do
    # shellcheck disable=SC2086
    check corpus $layout -f tests/soak/corpus/*
done
for layout in "1 8" "2 4" "8 1" "3 1" "1 1" "1 5"; do
    # shellcheck disable=SC2086
    check seeds $layout 20260101 200
done
# On devices that compute late, in memory that the host cannot touch (tests/support/platform_protected.c).
export PROTECTED=1
for layout in "1 8" "2 4"; do
    # shellcheck disable=SC2086
    check protected $layout 20260201 60
done
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
