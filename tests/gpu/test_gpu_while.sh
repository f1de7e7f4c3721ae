#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=600
# test_gpu_while and test_gpu_loops on emulated GPUs: on all layouts, in other orders of the streams' work, where pinned memory
# for conditions cannot be had, where some graphs cannot be made, and where graphs have no conditions.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
export EMULATED_SEED=${EMULATED_SEED:-$RANDOM}
echo "EMULATED_SEED=$EMULATED_SEED"

# while_on RANKSxDEVICES NAME=VALUE...
while_on() {
    local ranks=${1%x*} devices=${1#*x} start=()
    [[ $ranks == 1 ]] || start=("$MPIRUN" -n "$ranks")
    env OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU="$devices" BUILD="$build" "${@:2}" timeout 100 \
        tests/gpu/emulated "${start[@]}" "$build/tests/test_gpu_while" >"$scratch/why" 2>&1 </dev/null
    result $? "iterations that begin early, $*"
}
while_on 2x4
while_on 4x2
while_on 8x1
while_on 1x8 EMULATED_LEAKS=1
while_on 1x8 EMULATED_FAIL=host:17

# loops_on RANKSxDEVICES NAME=VALUE...
loops_on() {
    local ranks=${1%x*} devices=${1#*x} start=()
    [[ $ranks == 1 ]] || start=("$MPIRUN" -n "$ranks")
    env OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU="$devices" BUILD="$build" "${@:2}" timeout 200 \
        tests/gpu/emulated "${start[@]}" "$build/tests/test_gpu_loops" >"$scratch/why" 2>&1 </dev/null
    result $? "iterations in graphs, $*"
}
loops_on 1x8 EMULATED_LEAKS=1
loops_on 2x4
loops_on 1x8 EMULATED_CONDITIONS=0
skipped=0
more='skipped  loops in graphs on two GPUs, where graphs or pinned memory cannot be made, and two more failing kernels: minutes (LONG=1)'
if [[ ${LONG-} == 1 ]]; then
    loops_on 1x8 EMULATED_GPUS=2
    loops_on 1x8 EMULATED_FAIL=graph:3,graph:7,graph:20
    loops_on 1x8 EMULATED_FAIL=host:17
else
    echo "$more"
    skipped=1
fi

# A kernel that fails inside a loop ends the program, and with its reason.
for at in 9000 ${LONG:+2000 20000}; do
    env OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 BUILD="$build" EMULATED_FAIL=launch:$at+ timeout 100 tests/gpu/emulated \
        "$build/tests/test_gpu_loops" >"$scratch/why" 2>&1 </dev/null
    status=$?
    [[ $status != 0 && $status != 124 ]] && grep -q 'CUDA device 0' "$scratch/why"
    result $? "a kernel that fails in a loop, the ${at}th"
done
finish $skipped
