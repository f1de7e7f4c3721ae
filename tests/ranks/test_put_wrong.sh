#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120.  oly_device_put between meshes, called wrongly: by one side only, not by all processes of a side, in another order, with
# another array. (And a list of nodes that is none.) Every process that waits gets an error that names the calls, in bounded time; nothing hangs. A line per check.
set -u
cd "$(dirname "$0")/../.." || exit 1
program=${BUILD:-build}/tests/test_put_between
command -v "${MPIRUN:-mpirun}" >/dev/null || { echo "no ${MPIRUN:-mpirun}: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# wrong HOW PATTERN: the job fails before the limit of mpirun, and says this.
wrong() {
    PUT_WRONG=$1 OLYMPUS_NUM_CPU_DEVICES=2 OLYMPUS_RECORDER=0 OLYMPUS_TIMEOUT=5 timeout 60 "${MPIRUN:-mpirun}" -n 4 "$program" >"$scratch/out" 2>&1 </dev/null
    status=$?
    if [ $status != 0 ] && [ $status != 124 ] && grep -qE "$2" "$scratch/out"; then
        passed=$((passed + 1))
        echo "ok      put, $1"
    else
        failed=$((failed + 1))
        echo "FAILED  put, $1: exit status $status, and no line matches $2"
        sed 's/^/    | /' "$scratch/out"
    fi
}

here='oly_device_put \(tests/ranks/test_put_between.c:[0-9]+\)'
wrong missing "$here"
wrong alone "$here"
wrong order "$here"
wrong shape "$here"
wrong 'own: calls' "sends in $here an array .* other calls led to it"
wrong 'own: lines' "sends in $here an array .* other calls led to it"
wrong 'own: computed' "sends in $here an array .* other calls led to it"
wrong 'own: stand-ins' 'of 2 that have not moved yet, number 1 there and number 2 here'
wrong 'own: some' 'they were made in another order'
if OLYMPUS_NODES=0,x "$program" 2>&1 | grep -q 'OLYMPUS_NODES="0,x" is not a list of nodes'; then
    passed=$((passed + 1))
    echo "ok      a bad list of nodes"
else
    failed=$((failed + 1))
    echo "FAILED  a bad list of nodes"
fi
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
