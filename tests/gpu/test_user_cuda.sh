#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=100
# examples/user_kernel_cuda.cu: nvcc compiles it without warnings, and it runs where there is no GPU. What it does on one, tests/gpu/test_gpu_user.c
# does on an emulated GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[[ -x $nvcc ]] || nvcc=$(command -v nvcc) || { echo 'skipped: no nvcc'; exit 77; }
arch=$("$nvcc" --list-gpu-arch | sort -V | head -n 1)
"$nvcc" -arch="${arch/compute/sm}" -Werror all-warnings -Xcompiler -Wall,-Wextra examples/user_kernel_cuda.cu -Iinclude -L"$build" -lolympus \
    -Xlinker -rpath="$(realpath "$build")" -o "$scratch/program" >"$scratch/why" 2>&1
result $? 'nvcc compiles the example'
OLYMPUS_PLATFORMS=cpu OLYMPUS_NUM_CPU_DEVICES=4 "$scratch/program" >"$scratch/why" 2>&1 && grep -q 'less than 1e-6' "$scratch/why"
result $? 'on CPUs it computes by the C function'
finish 0
