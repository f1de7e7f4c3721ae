#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300.  A checkpoint of any number of ranks is read by any other: 1, 2, 3, 4 and 8 ranks, each with 1 to 8 devices, each way; each
# reader takes several shardings of arrays of uneven sizes. LONG=1: with 1, 2 and 3 devices for each, and more shardings (some minutes).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
program=$build/tests/test_restore_ranks
export OLYMPUS_NUM_THREADS=1
layouts=(1x8 2x3 3x2 4x2 8x1) seeds=3
if [[ ${LONG:-} == 1 ]]; then
    layouts=({1,2,3,4,8}x{1,2,3}) seeds=9
fi
seed=0
for layout in "${layouts[@]}"; do
    on "$layout" "$program" save "$scratch/$layout" $((seed++)) >"$scratch/why" 2>&1
    result $? "saved on $layout"
done
for layout in "${layouts[@]}"; do
    on "$layout" "$program" restore $seeds "${layouts[@]/#/$scratch/}" >"$scratch/why" 2>&1
    result $? "restored on $layout, from each of them"
done
finish 0
