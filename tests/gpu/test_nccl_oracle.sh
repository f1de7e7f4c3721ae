#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200
# Programs of the oracle on emulated GPUs of several processes, every payload through NCCL, have JAX's results. That NCCL moved them: with its
# first group refused they fail.
#   FOLDERS="reshard prog heat"  these        LAYOUTS="2x4 4x2"  on these ranks x GPUs of each
set -u
cd "$(dirname "$0")/../.." || exit 1
[[ -e ${BUILD:-build}/tests/gpu/emulated/libnccl.so.2 ]] || { echo "built without CUDA's and NCCL's headers: skipped"; exit 77; }
. tests/support/results.sh
export OLYMPUS_PLATFORMS=cuda OLYMPUS_NCCL_BYTES=0 EMULATED_GPUS=8

oracle() { timeout -k 5 "${LIMIT:-100}" tests/gpu/emulated "$MPIRUN" -n "${1%x*}" "$build/tests/oracle" tests/oracle/$2 >"$scratch/why" 2>&1 </dev/null; }

"$build/examples/toy" >"$scratch/why" 2>&1
grep -q 'no such platform' "$scratch/why" && { echo "built without the platform cuda: skipped"; exit 77; }
for layout in ${LAYOUTS:-2x4 4x2}; do
    for folder in ${FOLDERS:-reshard}; do
        oracle "$layout" "$folder"
        result $? "$folder on $layout: $(tail -n 1 "$scratch/why")"
    done
done
EMULATED_FAIL=nccl:1@0 LIMIT=20 oracle 2x4 toy
status=$?
((status != 0 && status != 124)) && grep -q 'ncclGroupEnd: unhandled system error' "$scratch/why"
result $? 'where a group fails, all ranks end and say so'
finish 0
