#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=400
# NVIDIA's own NVRTC accepts the generated kernels of every kind: groups, chains of rows, stencils of one field, loops over several. It
# refuses things that the compilers take with which kernels are tested elsewhere. Skipped where the CUDA toolkit is not installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
nvrtc=$(find -L "${CUDA_HOME:-/usr/local/cuda}"/{lib64,lib,targets/*/lib} -maxdepth 1 -name 'libnvrtc.so.1[23]' 2>/dev/null | head -n 1)
[[ $nvrtc ]] || { echo 'skipped: no NVRTC in CUDA_HOME'; exit 77; }
export OLYMPUS_PLATFORMS=cuda OLYMPUS_COMPILE_AFTER=0 EMULATED_NVRTC=$nvrtc

# accepts NAME COMMAND...: kernels are compiled anew, and none is refused.
accepts() {
    local status
    rm -rf "$scratch/kernels"
    OLYMPUS_KERNEL_CACHE=$scratch/kernels timeout 150 tests/gpu/emulated "${@:2}" >"$scratch/why" 2>&1 </dev/null
    status=$?
    [[ $status == 0 ]] && compgen -G "$scratch/kernels/*" >"$scratch/files" && ! grep -q 'cannot be compiled' "$scratch/why"
    result $? "$1"
}
rows() { OLYMPUS_DEVICES_PER_GPU=1 accepts "$1" "$build/bench/bench" --quick "${@:2}"; }
rows 'groups' chains_f32 chains_f16 chains_bf16 chains_i8 chains_c64 transposed_add broadcast_row random_normal each_erf each_pow
rows 'chains of rows' rows_softmax rows_layernorm rows_var short_softmax whole_var whole_sum_of_product
rows 'stencils' heat1d heat2d heat3d
rows 'loops over fields' gray_scott wave2d maxwell2d masked_heat work_life work_shallow_water
OLYMPUS_DEVICES_PER_GPU=8 accepts 'the same with margins' "$build/examples/gray_scott" --size 64 --steps 37
OLYMPUS_DEVICES_PER_GPU=8 accepts 'a stencil with margins' "$build/examples/heat3d" --size 33 --steps 21
finish 0
