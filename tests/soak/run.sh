#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Random programs on all layouts in turn, each with seeds of its own:   tests/soak/run.sh SECONDS [SEED]
#
# Prints failures, shrunk, as C, and at the end the programs, the seeds and the failures of every layout. Exit status 0: no failure.
# SOAK_LAYOUTS="1x8 2x4" (ranks x devices) selects others; BUILD, MPIRUN as for tests/run.sh; SOAK_COUNT=n: programs of a turn (100);
# SOAK_SHRINK=s: seconds for each failure (0: not at all); SOAK_KEEP=folder: where the choices of failed programs are kept. campaign.sh runs given numbers of programs.
set -u
cd "$(dirname "$0")/../.." || exit 2
seconds=${1:-60} seed=${2:-$((RANDOM * 32768 + RANDOM))000}
layouts=${SOAK_LAYOUTS:-1x8 2x4 4x2 8x1 1x1 3x1 1x3 5x1 1x24}
soak=${BUILD:-build}/tests/soak/soak count=${SOAK_COUNT:-100}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} OLYMPUS_TIMEOUT=${OLYMPUS_TIMEOUT:-40}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
end=$((SECONDS + seconds)) failed=0 programs=0
declare -A done_of failed_of

# keep LAYOUT SEED: the program's choices, for the corpus.
keep() {
    [[ -n ${SOAK_KEEP:-} ]] || return 0
    OLYMPUS_NUM_CPU_DEVICES=$((${1%x*} * ${1#*x})) "$soak" -s "$2" "$SOAK_KEEP/found-$2-$1+$(($2 / 200))"
}

# One turn: COUNT programs from SEED on, restarting after a program that ends the job.
turn() {
    local ranks=${1%x*} from=$2 to=$(($2 + count)) status
    export OLYMPUS_NUM_CPU_DEVICES=${1#*x} SOAK_PROGRESS=$scratch/progress MALLOC_PERTURB_=$(($2 / count % 2 * 90))
    while [[ $from -lt $to ]]; do
        if [[ $ranks == 1 ]]; then
            "$soak" "$from" $((to - from)) >"$scratch/output" 2>&1
            status=$?
        else
            timeout -k 5 600 "${MPIRUN:-mpirun}" -n "$ranks" "$soak" "$from" $((to - from)) >"$scratch/output" 2>&1 </dev/null
            status=$?
        fi
        grep -q ' programs, .* failed' "$scratch/output" && break
        # killed: count the current program as a failure
        local at
        at=$(tr -dc 0-9 <"$scratch/progress" 2>/dev/null)
        echo "seed ${at:-$from}: the job ended with status $status" >>"$scratch/output"
        [[ $ranks != 1 && ${SOAK_SHRINK:-20} != 0 ]] && SOAK_RANKS=$ranks SOAK_SHRINK=${SOAK_SHRINK:-40} "$soak" -m "${at:-$from}" >>"$scratch/output" 2>&1
        sed "s/^/$1: /" "$scratch/output"
        failed_of[$1]=$((${failed_of[$1]:-0} + 1))
        failed=$((failed + 1))
        [[ -n $at ]] && keep "$1" "$at"
        from=$((${at:-$to} + 1))
    done
    local bad at
    bad=$(grep -aE '^seed [0-9]+[:,]' "$scratch/output" | grep -oE '^seed [0-9]+' | sort -u | wc -l)
    if [[ $bad -gt 0 && $from -lt $to ]]; then
        sed "s/^/$1: /" "$scratch/output"
        failed_of[$1]=$((${failed_of[$1]:-0} + bad))
        failed=$((failed + bad))
        for at in $(grep -aoE '^seed [0-9]+' "$scratch/output" | cut -c6- | sort -u); do keep "$1" "$at"; done
    fi
    done_of[$1]=$((${done_of[$1]:-0} + count))
    programs=$((programs + count))
}

begin=$SECONDS first=$seed
while [[ $SECONDS -lt $end ]]; do
    for layout in $layouts; do
        [[ $SECONDS -lt $end ]] || break
        turn "$layout" "$seed"
        seed=$((seed + count))
    done
done
for layout in $layouts; do
    echo "$layout: ${done_of[$layout]:-0} programs, ${failed_of[$layout]:-0} failed"
done
elapsed=$((SECONDS - begin))
echo "$programs programs of seeds $first to $((seed - 1)) in $elapsed s ($((programs / (elapsed > 0 ? elapsed : 1))) a second), $failed failed"
[[ $failed == 0 ]]
