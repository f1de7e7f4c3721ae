#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: one=examples timeout=300
# Test programs of other folders, unchanged, on emulated GPUs: random programs, donation, control flow, callbacks, user kernels, checkpoints,
# files, divergence, starts on a communicator. By default a sample; the order of the streams' work is drawn (EMULATED_SEED, printed).
#   LONG=1                   every program that can, on 1x8, 2x4, 4x2, 8x1; the examples; restarts (an hour)
#   LAYOUTS="1x8 2x4"        of LONG, on these        PROGRAMS="halo control"   only these programs, on the layouts of LONG
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
export EMULATED_SEED=${EMULATED_SEED:-$RANDOM} OLYMPUS_PLATFORMS=cuda OLYMPUS_RECORDER=0 BUILD=$build
echo "EMULATED_SEED=$EMULATED_SEED"

# gpu RANKSxDEVICES PROGRAM [NAME=VALUE...]: on one GPU that all ranks share, with that many devices in each rank.
gpu() {
    local layout=$1 program=$2 start=()
    shift 2
    [[ ${layout%x*} == 1 ]] || start=("$MPIRUN" -n "${layout%x*}")
    env OLYMPUS_DEVICES_PER_GPU="${layout#*x}" OLYMPUS_NUM_CPU_DEVICES="${layout#*x}" ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}" "$@" \
        timeout -k 5 "${LIMIT:-200}" tests/gpu/emulated "${start[@]}" "$build/tests/test_$program" >"$scratch/why" 2>&1 </dev/null
    result $? "$program on $layout${*:+ ($*)}"
}

# Not those that set the number of CPU devices themselves, compare what failing allocations of the host leave, measure, are of parts that
# know no devices, or are slow without being about devices.
elsewhere='scatter_levels|many_devices|out_of_memory|call_memory|queue_memory|growth|growth_sums|plans.*|choose.*|simulate.*|every_.*|emulator|gpu_.*|nccl|core|kernels.*|platform|streams|cost|mixed_work|recorder|environment|openblas|late_library|compiled_groups|captures.*|starting|mpi_levels|transport|stencil|timeline|waits|locale|steps|disable|math|float8|ops_everywhere|pairs|sort_split|every_float'

all() {
    local name layout source seed
    for layout in ${LAYOUTS:-1x8 2x4 4x2 8x1}; do
        for source in tests/{operations,plan,files,inside,checkpoint,ranks,unit}/test_*.c; do
            name=$(basename "$source" .c)
            name=${name#test_}
            if [[ -n ${PROGRAMS-} ]]; then
                [[ " $PROGRAMS " == *" $name "* ]] || continue
            elif [[ $name =~ ^($elsewhere)$ ]]; then
                continue
            elif [[ $layout != 1x8 ]] && ! sed -n 1,3p "$source" | grep -qE 'run: *(layouts|ranks=[0-9,]*,)'; then
                continue
            fi
            [[ ! -x $build/tests/test_$name ]] || gpu "$layout" "$name"
        done
        for seed in 1000 2000 3000; do
            [[ -n ${PROGRAMS-} ]] || gpu "$layout" random_programs RANDOM_SEED=$seed RANDOM_PROGRAMS=100 EMULATED_SEED=$((seed + 7))
        done
        [[ -n ${PROGRAMS-} || $layout != 1x8 ]] || { gpu 1x8 ops_everywhere; gpu 1x8 pairs; }
    done
    [[ -n ${PROGRAMS-} ]] || {
        RUN_OUT=$scratch/run tests/gpu/run.sh --emulated --minutes 30 examples processes >"$scratch/why" 2>&1
        result $? 'oracle and examples (run.sh)'
    }
}

if [[ -n ${LONG-}${PROGRAMS-} ]]; then
    all
    finish 0
    exit
fi
gpu 1x8 random_programs RANDOM_SEED=$RANDOM RANDOM_PROGRAMS=15
gpu 2x4 random_programs RANDOM_SEED=$RANDOM RANDOM_PROGRAMS=8
for name in donation_random callback user_kernels control shard_map npz; do gpu 1x8 $name; done
gpu 2x4 small_blocks
gpu 2x2 communicator
gpu 2x1 put_between EMULATED_GPUS=8 OLYMPUS_NCCL_BYTES=0
finish 0
