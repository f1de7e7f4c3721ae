#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300
# Loops over several fields, and linear stencils, on emulated GPUs: the CPU's bits and nothing on the host, on all layouts, whatever the order
# of the streams' work (EMULATED_SEED, printed); examples print what they print on CPUs.
#   LAYOUTS="1x8 2x4"
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
export EMULATED_SEED=${EMULATED_SEED:-$RANDOM} OLYMPUS_RECORDER=0
echo "EMULATED_SEED=$EMULATED_SEED"

# gpu RANKSxDEVICES PROGRAM...: on one emulated GPU, shared by all ranks, with that many devices in each.
gpu() {
    local ranks=${1%x*} devices=${1#*x}
    shift
    local start=()
    [[ $ranks == 1 ]] || start=("$MPIRUN" -n "$ranks")
    OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=$devices OLYMPUS_NUM_CPU_DEVICES=$devices BUILD=$build timeout 100 \
        tests/gpu/emulated "${start[@]}" "$@" </dev/null
}
text_of() { sed 's/[0-9.]* [GM]point\/s//; s/[0-9.e-]* s\b//g' | sort; }

for layout in ${LAYOUTS:-1x8 2x4 4x2 8x1}; do
    first=$((RANDOM % 10000))
    short=(FIELD_LOOPS_SHORT=1)
    [[ $layout != 1x8 ]] || short=()
    FIELD_LOOPS=$first,$((first + 3)) gpu "$layout" env "${short[@]}" "$build/tests/test_gpu_fields" >"$scratch/why" 2>&1
    result $? "loops over fields on $layout (FIELD_LOOPS=$first,$((first + 3)))"
    for program in gray_scott:--size:96:--steps:12:--png:"$scratch/p.png" maxwell2d:--size:60:--steps:12:--png:"$scratch/p.png" heat2d:--size:400:--steps:6; do
        case $program:$layout in # messages in flight; the others on two layouts
        heat2d*:2x4 | gray_scott*:1x8 | gray_scott*:8x1 | maxwell2d*:4x2) ;;
        *) continue ;;
        esac
        IFS=: read -ra words <<<"$program"
        OLYMPUS_PLATFORMS=cpu on "$layout" "$build/examples/${words[0]}" "${words[@]:1}" 2>&1 | text_of >"$scratch/wanted"
        gpu "$layout" "$build/examples/${words[0]}" "${words[@]:1}" >"$scratch/all" 2>&1
        status=$?
        text_of <"$scratch/all" >"$scratch/got"
        { echo "exit status $status"; diff "$scratch/wanted" "$scratch/got"; } >"$scratch/why"
        [[ $status == 0 ]] && cmp -s "$scratch/wanted" "$scratch/got"
        result $? "${words[0]} on $layout"
    done
done
for program in gray_scott maxwell2d; do
    EMULATED_RACES=1 OLYMPUS_COMPILE_AFTER=0 gpu 1x4 "$build/examples/$program" --size 40 --steps 6 --png "$scratch/p.png" >"$scratch/why" 2>&1
    result $? "no races in the kernel of $program"
done
for program in heat2d:--size:300:--steps:40:--png:"$scratch/p.png" heat3d:--size:40:--steps:9; do # by kernels made for their taps
    IFS=: read -ra words <<<"$program"
    OLYMPUS_PLATFORMS=cpu on 1x2 "$build/examples/${words[0]}" "${words[@]:1}" 2>"$scratch/why" | text_of >"$scratch/wanted"
    EMULATED_RACES=1 OLYMPUS_COMPILE_AFTER=0 gpu 1x2 "$build/examples/${words[0]}" "${words[@]:1}" 2>"$scratch/why" | text_of >"$scratch/got"
    diff "$scratch/wanted" "$scratch/got" >>"$scratch/why"
    result $? "no races in the kernels of ${words[0]}, and the CPU's values"
done
EMULATED_FAIL=nvrtc:1+ OLYMPUS_KERNEL_CACHE=0 OLYMPUS_COMPILE_AFTER=0 gpu 1x4 "$build/examples/gray_scott" --size 40 --steps 6 --png "$scratch/p.png" >"$scratch/why" 2>&1 &&
    grep -q 'is interpreted' "$scratch/why" && grep -q 'plain loop on one core: [0-9.]*e-0[67]' "$scratch/why"
result $? 'a compiler that fails: stage by stage'
finish 0
