#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=600
# Programs over the transport of tests/support/transport_shuffled.c, which cuts messages up, holds them back and checks the devices at
# both ends of every box: the oracle and test programs have the results that they have over MPI's; also on devices whose memory the
# host cannot touch. Ranks with different transports are refused.
#   LAYOUTS="4x2 8x1"  the oracle on these, each also on protected devices       CASES="grad auto"  only these cases
#   SEEDS="1 2 3"      in these orders                                           TESTS="halo"       only these test programs
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh

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
            on "$layout" env "${variables[@]}" "$build/tests/oracle" "${cases[@]}" >"$scratch/why" 2>&1
            result $? "oracle $layout, $platform, order $seed"
        done
    done
    for name in ${TESTS:-part_meshes halo}; do
        SHUFFLED=$seed tests/run.sh "$name" >"$scratch/why" 2>&1
        result $? "$name, order $seed"
    done
done

refused_mixed SHUFFLED=1 'rank 0 sends over the transport "shuffled", rank 1 over "mpi"; .*OLY_DIVERGED'
result $? 'ranks over two transports'
finish 0
