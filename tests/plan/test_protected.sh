#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: one=examples timeout=900
# Devices whose memory the host cannot touch and which compute late, in any order that events allow (tests/support/platform_protected.c,
# late_streams.h): the oracle and the examples have the results that they have on a CPU, so nothing reads or writes a buffer without
# mapping it or before it is computed. The order differs every time; the first line has its number. Ranks with different platforms are
# refused.
#   PROGRAMS="toy control"  only these examples       LAYOUTS="1x8 2x4"  on these       ORACLE=  without the oracle
#   LATE_SEED=7  the order with this number
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
export LATE_SEED=${LATE_SEED:-$RANDOM}
echo "LATE_SEED=$LATE_SEED"

# The same text in any order of the processes, except for speeds.
text_of() { sed 's/[0-9.]* [GM]point\/s//; s/[0-9.]* Gflop\/s//; s/[0-9.e-]* s\b//g' | sort; }

programs='toy sharded_computation tour explicit arrays control placement grad checkpoint random_numbers shard_map layer math
    linear_algebra train matmul:--size:64 heat1d heat2d:--size:97:--steps:33 heat3d:--size:33:--steps:21
    gray_scott:--size:64:--steps:37 maxwell2d:--size:65:--steps:37'
echo 'skipped  examples transformer, experts: minutes, as every step opens and closes the pages of hundreds of buffers'
for layout in ${LAYOUTS:-1x8 2x4}; do
    for program in ${PROGRAMS-$programs}; do
        IFS=: read -ra words <<<"$program"
        on "$layout" "$build/examples/${words[0]}" "${words[@]:1}" 2>&1 | text_of >"$scratch/wanted"
        PROTECTED=1 on "$layout" "$build/tests/protected/${words[0]}" "${words[@]:1}" >"$scratch/all" 2>&1
        status=$?
        text_of <"$scratch/all" >"$scratch/got"
        { echo "exit status $status"; diff "$scratch/wanted" "$scratch/got"; } >"$scratch/why"
        [[ $status == 0 ]] && cmp -s "$scratch/wanted" "$scratch/got"
        result $? "$program $layout"
    done
done

# oracle LAYOUT PLATFORM FOLDER...: with that value of PROTECTED.
oracle() {
    local layout=$1 platform=$2 status
    shift 2
    PROTECTED=$platform on "$layout" "$build/tests/oracle" "${@/#/tests/oracle/}" >"$scratch/why" 2>&1
    status=$?
    tail -n 1 "$scratch/why"
    result $status "oracle $layout $platform"
}

# Every folder on one process, those of sharded programs on two, some of them on more; a few with devices that compute at once.
skipped=2
if [[ ${ORACLE-yes} ]]; then
    some=(toy heat prog reshard) sharded=(toy viz heat prog auto reshard grad types train {prog,reshard,grad,types}_more)
    for layout in ${LAYOUTS:-1x8 2x4}; do
        oracle "$layout" 1 "${sharded[@]}"
    done
    [[ ${LONG:-} == 1 ]] && some=("${sharded[@]}")
    [[ ${LAYOUTS:-} ]] || for layout in 4x2 8x1; do
        oracle "$layout" 1 "${some[@]}"
    done
    if [[ ${LONG:-} != 1 ]]; then
        echo 'skipped  most folders of the oracle on 4x2 and 8x1: minutes, and the host touches buffers as on 2x4 (LONG=1)'
        skipped=3
    fi
    oracle 1x8 1 auto_more viz_more ops ops64 ops_more random random_more print print_more seeds seed004
    oracle 2x4 at_once toy heat reshard grad
fi

refused_mixed PROTECTED=1 'of rank 0 are of platform "protected", those of rank 1 of "cpu"; .*OLY_DIVERGED'
result $? 'ranks of two platforms'
finish $skipped
