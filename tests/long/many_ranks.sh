#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The core of the tests on many ranks, by default 64 ranks of 2 devices on this machine (minutes):
#
#     tests/long/many_ranks.sh [RANKSxDEVICES]
#
# Steps with known values, diverging ranks, random programs against plain loops, examples against loops of their own. A line for each;
# exit status 0: all passed. BUILD and MPIRUN as for tests/run.sh.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/support/results.sh
export OLYMPUS_RECORDER=0
layout=${1:-64x2}

# try NAME COMMAND...: a check that must succeed.
try() {
    local name=$1 began=$SECONDS
    shift
    "$@" >"$scratch/why" 2>&1
    result $? "$name on $layout, $((SECONDS - began)) s"
}
try steps on "$layout" "$build/tests/test_steps"
try parts env DIVERGENCE=0/6 launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 600 "$build/tests/test_divergence_parts"
try "correct programs" env NONE_PROGRAMS=20 launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 300 "$build/tests/test_divergence_none"
try divergence env DIVERGENCE=0/4 launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 600 "$build/tests/test_divergence"
try "random programs" env SOAK_COUNT=60 SOAK_LAYOUTS="$layout" tests/soak/run.sh 1 640000000
for example in heat1d heat2d heat3d gray_scott train; do
    try $example on "$layout" "$build/examples/$example"
done
finish 0
