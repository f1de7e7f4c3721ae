#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300
# The platform "cuda" on emulated GPUs: oracle families and examples have the results that they have on CPUs, on all layouts, whatever the order
# of the streams' work (EMULATED_SEED, printed); and what is said where no GPU can be used.
#   PROGRAMS="toy control"  only these examples       FAMILIES="toy heat"  only these of the oracle      LAYOUTS="1x8 2x4"
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
export EMULATED_SEED=${EMULATED_SEED:-$RANDOM}
echo "EMULATED_SEED=$EMULATED_SEED"

# gpu RANKSxDEVICES PROGRAM...: on one emulated GPU, shared by all ranks, with that many devices in each.
gpu() {
    local ranks=${1%x*} devices=${1#*x}
    shift
    local start=()
    [[ $ranks == 1 ]] || start=("$MPIRUN" -n "$ranks")
    OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=$devices EMULATED_GPUS=${GPUS:-1} BUILD=$build timeout 200 \
        tests/gpu/emulated "${start[@]}" "$@" </dev/null
}
text_of() { sed 's/[0-9.]* [GM]point\/s//; s/[0-9.]* Gflop\/s//; s/[0-9.e-]* s\b//g; s/CUDA_/CPU_/g; s/ cuda devices/ cpu devices/; s/CudaDevice/CpuDevice/g; s/GPU \([0-9]\)/CPU \1/g; /^cpu devices = /d' | sort; }

for layout in ${LAYOUTS:-1x8 2x4 4x2 8x1}; do
    families=${FAMILIES-toy heat prog reshard}
    [[ $layout == 1x8 ]] && families=${FAMILIES-toy heat prog reshard auto grad types train ops random seeds seed004}
    # shellcheck disable=SC2086
    gpu "$layout" "$build/tests/oracle" $(printf 'tests/oracle/%s ' $families) >"$scratch/why" 2>&1
    result $? "oracle $layout"
done
for layout in 1x8 2x4; do
    for program in ${PROGRAMS-toy tour control grad shard_map heat2d:--size:33:--steps:9 matmul:--size:33}; do
        IFS=: read -ra words <<<"$program"
        OLYMPUS_PLATFORMS=cpu on "$layout" "$build/examples/${words[0]}" "${words[@]:1}" 2>&1 | text_of >"$scratch/wanted"
        gpu "$layout" "$build/examples/${words[0]}" "${words[@]:1}" >"$scratch/all" 2>&1
        status=$?
        text_of <"$scratch/all" >"$scratch/got"
        { echo "exit status $status"; diff "$scratch/wanted" "$scratch/got"; } >"$scratch/why"
        [[ $status == 0 ]] && cmp -s "$scratch/wanted" "$scratch/got"
        result $? "$program $layout"
    done
done

# says NAME PATTERN NAME=VALUE...: the toy ends with an error like that.
says() {
    local name=$1 pattern=$2
    shift 2
    ! env "$@" BUILD="$build" timeout 60 "${with[@]}" "$build/examples/toy" >"$scratch/why" 2>&1 </dev/null && grep -qE -- "$pattern" "$scratch/why"
    result $? "$name"
}
with=(env)
ldconfig -p | grep -q 'libcuda\.so\.1' || says 'no driver' 'no GPU can be used, because the NVIDIA driver is missing' OLYMPUS_PLATFORMS=cuda
with=(tests/gpu/emulated)
says 'a driver that is too old' 'driver is too old: it supports CUDA 11\.4' OLYMPUS_PLATFORMS=cuda EMULATED_DRIVER=11040
says 'all GPUs hidden' 'CUDA_VISIBLE_DEVICES="" hides all GPUs' OLYMPUS_PLATFORMS=cuda CUDA_VISIBLE_DEVICES=
says 'a GPU that is not there' 'OLYMPUS_LOCAL_DEVICES="3".*it sees 1' OLYMPUS_PLATFORMS=cuda OLYMPUS_LOCAL_DEVICES=3
says 'too many devices' '17 devices|32 devices' OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=16 EMULATED_GPUS=2
says 'memory of the GPU is bounded' 'OLY_MEMORY' OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 EMULATED_FAIL=alloc:3+
says 'a GPU that is lost at start' 'OLY_DEVICE_FAILED' OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 EMULATED_FAIL=lost:300
says 'a GPU that is lost later' 'OLY_DEVICE_FAILED' OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 EMULATED_FAIL=lost:800

OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=2 tests/gpu/emulated "$build/tests/test_gpu_shards" >"$scratch/why" 2>&1 &&
    grep -q 'CUDA_1: Emulated GPU, .* GiB, compute capability' "$scratch/why"
result $? 'shards in device memory; devices are printed'
# Libraries without any function are as good as none.
mkdir "$scratch/none"
for library in libnvrtc libcublasLt; do : | "${CC:-cc}" -shared -x c - -o "$scratch/none/$library.so.13"; done
LD_LIBRARY_PATH=$scratch/none:$(realpath "$build")/tests/gpu/emulated OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=4 OLYMPUS_COMPILE_AFTER=0 \
    "$build/examples/matmul" --size 40 --devices >"$scratch/why" 2>&1 </dev/null && grep -q '^no NVRTC, so .* interpreted: ' "$scratch/why" &&
    grep -q '^no cuBLASLt, so .*: ' "$scratch/why" && grep -q '^driver: CUDA 13.0' "$scratch/why" && grep -q 'elements from 20 to 20' "$scratch/why"
result $? 'neither NVRTC nor cuBLASLt: told, and computed'
gpu 2x2 "$build/examples/matmul" --size 16 --devices >"$scratch/why" 2>&1 && grep -q '^NVRTC$' "$scratch/why" && grep -q '^cuBLASLt$' "$scratch/why" &&
    grep -q '^messages between processes: MPI and pinned memory .*two ranks.* share a GPU' "$scratch/why"
result $? 'libraries are listed, and how messages go'
OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 tests/gpu/emulated "$build/tests/test_gpu_detours" >"$scratch/why" 2>&1
result $? 'what has kernels is not computed on the host'
OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=2 BUILD=$build tests/gpu/emulated "$build/tests/test_gpu_steps" >"$scratch/why" 2>&1
result $? 'nothing that has a kernel is computed on the host'
OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=2 tests/gpu/emulated "$build/tests/test_gpu_forecast" >"$scratch/why" 2>&1
result $? 'times are predicted for the card'
# What an H200 took for rows that copy, multiply and sum, beside what is predicted for one.
printf '%s\n' 'call 2.0e-6' 'each_add 36.6e-6' 'each_exp 29.9e-6' 'rows_sum 50.1e-6' 'matmul 1401.8e-6' 'products_f64 61.8e-6' >"$scratch/figures"
OLYMPUS_PLATFORMS=cuda EMULATED_CARD=h200 EMULATED_IDLE=1 OLYMPUS_COMPILE_AFTER=1000000000 BUILD=$build tests/gpu/emulated python3 tests/gpu/predictions.py \
    --figures "$scratch/figures" call each_add each_exp rows_sum matmul products_f64 >"$scratch/why" 2>&1 && grep -q '^[56] rows: .* 100% within 2' "$scratch/why"
result $? 'predictions are those of an H200'
EMULATED_ORDER=1 GPUS=2 gpu 1x2 "$build/tests/test_gpu_user" >"$scratch/why" 2>&1
result $? 'kernels of the program, in the device'"'"'s stream'
EMULATED_PEERS=0 GPUS=2 gpu 1x4 "$build/tests/oracle" tests/oracle/prog >"$scratch/why" 2>&1
result $? 'GPUs that do not reach each other'
# CPU devices beside GPUs, as many as of GPUs or not, on one GPU and on GPUs of each rank's own with NCCL.
beside() { # RANKS GPUS DEVICES-PER-GPU CPU-DEVICES
    local start=()
    [[ $1 == 1 ]] || start=("$MPIRUN" -n "$1")
    OLYMPUS_PLATFORMS=cuda,cpu EMULATED_GPUS=$2 OLYMPUS_DEVICES_PER_GPU=$3 OLYMPUS_NUM_CPU_DEVICES=$4 OLYMPUS_NCCL_BYTES=0 BUILD=$build \
        timeout 100 tests/gpu/emulated "${start[@]}" "$build/tests/test_gpu_beside" >"$scratch/why" 2>&1 </dev/null
    result $? "CPU devices beside GPUs: ranks, GPUs, devices of each, CPUs: $*"
}
beside 1 1 2 3
beside 2 1 2 1
beside 2 4 1 2
env -u OLYMPUS_PLATFORMS OLYMPUS_DEVICES_PER_GPU=8 tests/gpu/emulated "$build/examples/matmul" --size 16 --devices >"$scratch/why" 2>&1 </dev/null &&
    grep -q '^global devices = \[CUDA_0' "$scratch/why" && grep -q '^cpu devices = \[CPU_0\]' "$scratch/why" && grep -q 'GPU 0' "$scratch/why"
result $? 'GPUs are used where there are any'
env -u OLYMPUS_PLATFORMS OLYMPUS_NUM_CPU_DEVICES=4 tests/gpu/emulated "$MPIRUN" -n 1 env CUDA_VISIBLE_DEVICES= "$build/examples/matmul" --size 16 --devices : \
    -n 1 "$build/examples/matmul" --size 16 --devices >"$scratch/why" 2>&1 </dev/null && grep -q 'no GPU: rank 0 has none' "$scratch/why"
result $? 'ranks of which one has no GPU use CPUs'
for fault in '' graph:1+ graph:3; do
    OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=4 EMULATED_GPUS=2 EMULATED_FAIL=$fault tests/gpu/emulated "$build/tests/test_gpu_replay" >"$scratch/why" 2>&1
    result $? "segments of plans are replayed as graphs${fault:+; EMULATED_FAIL=$fault}"
done
for fault in '' bias:1+; do
    OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 env ${fault:+EMULATED_FAIL=$fault} tests/gpu/emulated "$build/tests/test_gpu_epilogues" >"$scratch/why" 2>&1
    result $? "the bias of products in the library's epilogue${fault:+; EMULATED_FAIL=$fault}"
done
OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 OLYMPUS_COMPILE_AFTER=0 tests/gpu/emulated "$build/tests/test_gpu_rows" >"$scratch/why" 2>&1
result $? 'reductions along rows and the groups around them in one kernel'
# Meshes take GPUs that are linked one after the other.
OLYMPUS_PLATFORMS=cuda EMULATED_GPUS=4 EMULATED_LINKS=2 OLYMPUS_LOCAL_DEVICES=0,2,1,3 tests/gpu/emulated "$build/examples/matmul" --size 16 --devices \
    >"$scratch/why" 2>&1 </dev/null && grep -q '^CUDA_1: .*PCI 0000:03:00.0, NVLink to 0000:04:00.0' "$scratch/why" &&
    grep -q 'GPU 0,2' "$scratch/why"
result $? 'the order of meshes follows links between GPUs'
# Two GPUs that both ranks see are divided; with OLYMPUS_LOCAL_DEVICES each rank takes what it says.
GPUS=2 gpu 2x4 "$build/examples/toy" >"$scratch/why" 2>&1
result $? 'two GPUs, divided between two ranks'
OLYMPUS_LOCAL_DEVICES=0,1 GPUS=2 gpu 2x2 "$build/examples/toy" >"$scratch/why" 2>&1
result $? 'two GPUs, both used by two ranks'
CUDA_VISIBLE_DEVICES='' OLYMPUS_PLATFORMS=cuda,cpu OLYMPUS_NUM_CPU_DEVICES=8 tests/gpu/emulated "$build/examples/toy" >"$scratch/why" 2>&1 &&
    grep -q CPU_0 "$scratch/why"
result $? 'cuda,cpu where all GPUs are hidden: the CPU'
EMULATED_LEAKS=1 gpu 1x8 "$build/examples/toy" >"$scratch/why" 2>&1
result $? 'nothing is left at the end'
finish 0
