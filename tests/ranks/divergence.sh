#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every program in which one rank does something else than the others, with every use, on several layouts:
#
#     tests/ranks/divergence.sh [RANKSxDEVICES...]     (2, 4 and 8 ranks x 1 to 4 devices)
#
# Prints what was missed and a line for each layout and program: how many programs, how many missed, how many took over a second from
# when all ranks had started, and the slowest. The times are meaningful only on an idle machine; there several over a second are a failure.
# Exit status 0: none was missed. BUILD, MPIRUN as for tests/run.sh.
set -u
cd "$(dirname "$0")/../.." || exit 2
layouts=("$@")
[[ $# -gt 0 ]] || layouts=({2,4,8}x{1,2,3,4})
output=$(mktemp) status=0
trap 'rm -f "$output"' EXIT
export DIVERGENCE=all OLYMPUS_NUM_THREADS=${OLYMPUS_NUM_THREADS:-1}
for layout in "${layouts[@]}"; do
    for program in test_divergence test_divergence_parts test_divergence_calls; do
        begin=$SECONDS
        if launch/olyrun --time 1800 -n "${layout%x*}" -d "${layout#*x}" "${BUILD:-build}/tests/$program" >"$output" 2>&1; then
            grep ' programs of ' "$output" || status=1
        else
            echo "FAILED $layout $program, status $?:"
            cat "$output"
            status=1
        fi
        echo "    $((SECONDS - begin)) s in all"
    done
done
exit $status
