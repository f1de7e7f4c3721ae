#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200
# test_gpu_pending on emulated GPUs, which do nothing before somebody waits and then do the work of all streams in a random order: on one GPU and
# on several, with calls that are waited for, with a timeline; and kernels and devices that fail while calls are pending.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
export EMULATED_SEED=${EMULATED_SEED:-$RANDOM} OLYMPUS_RECORDER=0
echo "EMULATED_SEED=$EMULATED_SEED"

# pending NAME=VALUE...
pending() {
    env OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=4 EMULATED_ORDER=1 "$@" timeout 100 tests/gpu/emulated "$build/tests/test_gpu_pending" \
        >"$scratch/why" 2>&1 </dev/null
    result $? "pending calls, $*"
}
pending OLYMPUS_COMPILE_AFTER=0
pending OLYMPUS_DEVICES_PER_GPU=1 EMULATED_GPUS=4
pending OLYMPUS_DEVICES_PER_GPU=2 EMULATED_GPUS=2 EMULATED_PEERS=0 OLYMPUS_DISABLE=graph-replay
pending OLYMPUS_PLATFORMS=cuda,cpu OLYMPUS_NUM_CPU_DEVICES=2
pending OLYMPUS_NUM_THREADS=1
pending EMULATED_LEAKS=1
pending OLYMPUS_DISABLE=pending-runs
pending OLYMPUS_TIMELINE="$scratch/timeline.json"
for fault in launch:1 launch:30 launch:300 sync:8 lost:400 lost:520 lost:900; do
    pending EMULATED_FAIL=$fault
done
# And without anybody who handles errors.
OLYMPUS_PLATFORMS=cuda EMULATED_FAIL=launch:40 OLYMPUS_DEVICES_PER_GPU=8 timeout 60 tests/gpu/emulated "$build/examples/control" >"$scratch/why" 2>&1 </dev/null
status=$?
((status != 0 && status != 124)) && grep -q 'CUDA device 0 .*CUDA_ERROR_LAUNCH_FAILED .*OLY_DEVICE_FAILED' "$scratch/why"
result $? 'a kernel that fails ends the job'
finish 0
