#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=400
# The ways of messages between emulated GPUs of different processes: NCCL, an MPI that takes memory of GPUs, MPI through pinned memory. Which one
# a job has; exchanges and programs of the oracle on each; and faults on each: a rank that is killed, is stopped, never comes, makes another
# call, or whose GPU fails ends the job within the time limit, with the message that CPUs have.
#   FAULTS="nccl aware staged"  on these ways; by default on one of the last two, drawn and printed (those of NCCL: test_nccl_faults.sh)
set -u
cd "$(dirname "$0")/../.." || exit 1
[[ -e ${BUILD:-build}/tests/gpu/emulated/libnccl.so.2 ]] || { echo "built without CUDA's and NCCL's headers: skipped"; exit 77; }
. tests/support/results.sh
export OLYMPUS_PLATFORMS=cuda OLYMPUS_NCCL_BYTES=0 EMULATED_GPUS=8 OLYMPUS_NUM_THREADS=1 OLYMPUS_RECORDER=0
"$build/examples/toy" >"$scratch/why" 2>&1
grep -q 'no such platform' "$scratch/why" && { echo "built without the platform cuda: skipped"; exit 77; }

declare -A settings=([nccl]='OLYMPUS_NCCL=1' [aware]='OLYMPUS_NCCL=0 EMULATED_CUDA_AWARE=1' [staged]='OLYMPUS_NCCL=0 OLYMPUS_CUDA_AWARE=0')

# with SETTINGS LIMIT RANKS PROGRAM...: runs it on the emulated GPUs; what it prints is in $scratch/why.
with() {
    local set=$1 limit=$2 ranks=$3
    shift 3
    env $set timeout -k 5 "$limit" tests/gpu/emulated "$MPIRUN" -n "$ranks" "$@" >"$scratch/why" 2>&1 </dev/null
}

# -- which way: the trial of MPI is a process of its own ------------------------------------------------------------------------------
# says NAME PATTERN SETTINGS: what oly_print_devices says.
says() {
    with "$3" 40 2 "$build/tests/test_gpu_between" && grep -qE -- "^messages between processes: $2" "$scratch/why"
    result $? "$1"
}
says 'NCCL where it is' 'NCCL 2\.' ''
says 'MPI does not claim to take memory of GPUs' 'MPI and pinned memory \(no NCCL: OLYMPUS_NCCL=0; MPI says .*MPIX_Query_cuda_support' OLYMPUS_NCCL=0
says 'it does' 'CUDA-aware MPI \(no NCCL: OLYMPUS_NCCL=0\)' 'OLYMPUS_NCCL=0 EMULATED_CUDA_AWARE=1'
says 'it only claims to, and the trial crashes' 'MPI and pinned memory .*the trial of MPI with memory of a GPU crashed' \
    'OLYMPUS_NCCL=0 EMULATED_CUDA_AWARE=2'
says 'it may not be used' 'MPI and pinned memory .*OLYMPUS_CUDA_AWARE=0' 'OLYMPUS_NCCL=0 OLYMPUS_CUDA_AWARE=0 EMULATED_CUDA_AWARE=1'
with 'OLYMPUS_NCCL=0 OLYMPUS_CUDA_AWARE=2' 40 2 "$build/examples/toy"
status=$?
((status != 0 && status != 124)) && grep -q 'the host touches device memory' "$scratch/why"
result $? 'one that does not, used without a trial, crashes'

# -- by measured price: emulated ways take so many milliseconds for each message ------------------------------------------------------
says 'the cheapest of three: NCCL' 'NCCL 2\.[0-9.]* \(measured .* us; CUDA-aware MPI .* us; MPI and pinned memory .* us\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_CUDA_AWARE=1 EMULATED_SLOW=aware:40,staged:40'
says 'MPI from memory of GPUs' 'CUDA-aware MPI \(measured .*; NCCL 2\..*; MPI and pinned memory .*\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_CUDA_AWARE=1 EMULATED_SLOW=nccl:40,staged:80'
says 'pinned memory' 'MPI and pinned memory \(measured .*; NCCL 2\..*; CUDA-aware MPI .*\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_CUDA_AWARE=1 EMULATED_SLOW=nccl:40,aware:40'
grep -q 'all-reduce: sum over 2 devices .*, by MPI and pinned memory, [0-9.e+-]* GB/s measured\]' "$scratch/why"
result $? 'explanations name the price'
says 'the cheapest of two without NCCL' 'MPI and pinned memory \(measured .*; CUDA-aware MPI .*; no NCCL: OLYMPUS_NCCL=0\)$' \
    'OLYMPUS_GPU_MESSAGES=measured OLYMPUS_NCCL=0 EMULATED_CUDA_AWARE=1 EMULATED_SLOW=aware:40'
says 'a way that hangs is not taken' 'MPI and pinned memory \(measured .*; no NCCL: it failed when it was tried\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_SLOW=nccl:1000000 OLYMPUS_TIMEOUT=10'
says 'one that fails on a rank is not taken' 'MPI and pinned memory \(measured .*; no NCCL: it failed when it was tried\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_FAIL=nccl:3@1'
says 'nor one whose failure is reported later' 'MPI and pinned memory \(measured .*; no NCCL: it failed when it was tried\)$' \
    'OLYMPUS_GPU_MESSAGES=measured EMULATED_FAIL=nccl_async:9+@1'
says 'one that is asked for' 'MPI and pinned memory$' 'OLYMPUS_GPU_MESSAGES=staged'
says 'one that is asked for is not there' 'NCCL 2\.[0-9.]*$' 'OLYMPUS_GPU_MESSAGES=aware'
with 'OLYMPUS_GPU_MESSAGES=fast' 40 2 "$build/examples/toy"
grep -q 'OLYMPUS_GPU_MESSAGES="fast": give measured, first, nccl, aware or staged' "$scratch/why"
result $? 'an unknown one is refused'
with 'OLYMPUS_GPU_MESSAGES=measured EMULATED_CUDA_AWARE=1' 60 8 "$build/tests/test_gpu_between"
result $? 'measured on 8x1'
with 'OLYMPUS_GPU_MESSAGES=measured EMULATED_CUDA_AWARE=1' 60 3 "$build/tests/oracle" tests/oracle/toy
result $? 'measured on three ranks: '"$(tail -n 1 "$scratch/why")"

for way in nccl aware staged; do
    declare -A named=([nccl]=NCCL [aware]='CUDA-aware MPI' [staged]='MPI and pinned memory')
    with "${settings[$way]}" 40 2 "$build/tests/test_gpu_between" &&
        grep -q 'all-reduce: sum over 4 devices .*, by peer copies\]' "$scratch/why" &&
        grep -q "all-reduce: sum over 2 devices .*, by ${named[$way]}\\]" "$scratch/why"
    result $? "explanations name $way"
done

# -- NCCL's own all-reduce: asked for, right, and in another order than the mesh's ---------------------------------------------------------
order() { sed -n 's/^order: //p' "$scratch/why"; }
for layout in 2x4 4x2 8x1; do
    with '' 60 "${layout%x*}" "$build/tests/test_gpu_between"
    status=$?
    own=${own:-$(order)}
    [[ $status == 0 && -n $own && $(order) == "$own" ]] && ! grep -q 'by NCCL, in an order' "$scratch/why"
    result $? "sums keep the order of the mesh on $layout"
    with OLYMPUS_NCCL_ALLREDUCE=1 60 "${layout%x*}" "$build/tests/test_gpu_between" &&
        grep -q 'all-reduce: sum over 8 devices by NCCL, in an order of its own' "$scratch/why" && [[ $(order) != "$own" ]]
    result $? "NCCL's own all-reduce on $layout"
done
with 'OLYMPUS_NCCL_ALLREDUCE=1 OLYMPUS_NCCL=0' 60 2 "$build/tests/test_gpu_between" && [[ $(order) == "$own" ]]
result $? 'without NCCL sums keep the order of the mesh'

# -- exchanges and programs --------------------------------------------------------------------------------------------------------------
for aware in 1 2; do
    with "EMULATED_CUDA_AWARE=$aware" 60 2 "$build/tests/test_nccl"
    result $? "exchanges with EMULATED_CUDA_AWARE=$aware"
done
for way in aware staged; do
    with "${settings[$way]}" 100 2 "$build/tests/oracle" tests/oracle/heat
    result $? "heat by $way on 2x4: $(tail -n 1 "$scratch/why")"
    with "${settings[$way]}" 60 8 "$build/tests/test_gpu_between"
    result $? "values and sums by $way on 8x1"
    with "${settings[$way]}" 60 4 "$build/tests/oracle" tests/oracle/reshard
    result $? "reshard by $way on 4x2: $(tail -n 1 "$scratch/why")"
done

# -- faults --------------------------------------------------------------------------------------------------------------------------------
# ends NAME PATTERN: how the program that `with` has run ended.
ends() {
    local status=$?
    ((status != 0 && status != 124)) && grep -qE -- "$2" "$scratch/why"
    result $? "$1: status $status"
}
drawn=(aware staged)
FAULTS=${FAULTS:-${drawn[RANDOM % 2]}}
echo "FAULTS=$FAULTS"
for way in $FAULTS; do
    here="${settings[$way]} OLYMPUS_TIMEOUT=3"
    with "$here" 25 2 "$build/tests/test_waits" sum kill 1 /dev/null
    ends "$way: a killed rank" 'rank 1 .*(was killed|has ended)|signal 9'
    # A stopped process keeps the launcher waiting: olyrun ends it.
    env ${settings[$way]} OLYMPUS_TIMEOUT=3 timeout -k 5 40 tests/gpu/emulated launch/olyrun --time 30 -n 3 "$build/tests/test_waits" sum stop 2 /dev/null \
        >"$scratch/why" 2>&1 </dev/null
    ends "$way: a stopped rank" 'rank 2 \(process [0-9]+\) is stopped, its last call is oly_'
    with "$here" 25 2 "$build/tests/test_waits" sum sleep 1 /dev/null
    ends "$way: a rank that never comes" 'rank 1 is not waiting, its last call is oly_sync \(tests/ranks/test_waits.c:[0-9]+\)'
    with "$here EMULATED_GPUS=4 EMULATED_FAIL=lost:700@1" 25 2 "$build/tests/test_gpu_between" again
    status=$?
    cat "$build/tests/test_gpu_between.rank-1" >>"$scratch/why" # what rank 1 has printed
    (exit $status)
    ends "$way: a lost GPU" 'rank 1: .*CUDA device [0-9] .* failed: CUDA_ERROR'
    with "$here" 60 2 "$build/tests/test_divergence"
    result $? "$way: ranks that make other calls"
done
finish 0
