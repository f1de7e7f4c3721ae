#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120
# test_gpu_while on emulated GPUs: on all layouts, in other orders of the streams' work, and where pinned memory
# for conditions cannot be had.
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
while_on 1x8
while_on 2x4
while_on 4x2
while_on 8x1
while_on 1x8 EMULATED_LEAKS=1
while_on 1x8 EMULATED_FAIL=host:17
finish 0
