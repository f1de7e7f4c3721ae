#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that initialise MPI themselves at each thread level (test_mpi_levels.c).
set -u
cd "$(dirname "$0")/../.." || exit
MPIRUN=${MPIRUN:-mpirun}
export OLYMPUS_NUM_CPU_DEVICES=2 MPIEXEC_TIMEOUT=60 ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
passed=0 failed=0
for level in 0 1 2 3; do
    if output=$(timeout -k 2 60 "$MPIRUN" -n 2 "${BUILD:-build}/tests/test_mpi_levels" $level 2>&1 </dev/null) && [[ $(grep -c right <<<"$output") == 2 ]]; then
        echo "ok      level $level"
        passed=$((passed + 1))
    else
        echo "FAILED  level $level"
        sed 's/^/    | /' <<<"$output"
        failed=$((failed + 1))
    fi
done
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
