#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=600
# Programs over the transport of tests/support/transport_shuffled.c, which cuts messages up, holds them back and checks the devices at
# both ends of every box: the oracle and test programs have the results that they have over MPI's; also on devices whose memory the
# host cannot touch. Ranks with different transports are refused.
#   LAYOUTS="4x2 8x1"  the oracle on these, each also on protected devices       CASES="grad auto"  only these cases       SEEDS="1 2 3"  in these orders
#   TESTS="halo"       only these test programs
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
MPIRUN=${MPIRUN:-mpirun}
command -v "$MPIRUN" >/dev/null || { echo "no $MPIRUN: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

# result STATUS NAME: counts it, and shows $scratch/why if the status is not 0.
result() {
    if [[ $1 == 0 ]]; then
        passed=$((passed + 1))
        echo "ok       $2"
    else
        failed=$((failed + 1))
        echo "FAIL     $2"
        tail -n 20 "$scratch/why" | sed 's/^/      | /'
    fi
}

cases=()
for name in ${CASES:-toy heat reshard}; do
    cases+=("tests/oracle/$name")
done
for seed in ${SEEDS:-1}; do
    for layout in ${LAYOUTS:-2x4 4x2}; do
        for platform in cpu protected; do
            variables=("SHUFFLED=$seed")
            [[ $platform == protected ]] && variables+=(PROTECTED=1)
            [[ $platform == protected && ! ${LAYOUTS:-} && $layout != 2x4 ]] && continue # slow
            env "${variables[@]}" launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 200 "$build/tests/oracle" "${cases[@]}" \
                </dev/null >"$scratch/why" 2>&1
            result $? "oracle $layout, $platform, order $seed"
        done
    done
    for name in ${TESTS:-part_meshes halo}; do
        SHUFFLED=$seed tests/run.sh "$name" >"$scratch/why" 2>&1
        result $? "$name, order $seed"
    done
done

# Rank 0 over the one, rank 1 over the other.
mixed() {
    local limits=()
    "$MPIRUN" --version 2>&1 | grep -q 'Open MPI' && limits=(--timeout 60)
    ! "$MPIRUN" "${limits[@]}" -n 1 env SHUFFLED=1 "$build/tests/protected/toy" : -n 1 env -u SHUFFLED "$build/tests/protected/toy" \
        </dev/null >"$scratch/why" 2>&1 &&
        grep -q 'rank 0 sends over the transport "shuffled", rank 1 over "mpi"; .*OLY_DIVERGED' "$scratch/why"
}
mixed
result $? 'ranks over two transports'
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
