#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: alone timeout=120.  The stages of a pipeline on two ranks compute at the same time, as the timeline shows: two stages, 12 microbatches. While one
# of them computes, so does the other for more than half of that time (ideally 11 of 12 parts; other programs on the machine cost
# some). tests/long/pipeline_time.sh compares with the ideal time.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
[ "$(nproc)" -ge 2 ] || { echo "one core: nothing can overlap: skipped"; exit 77; }

# Of all `run` spans of the stage function after the first step (which plans): how much of the first rank's time the second also computes, in
# percent.
overlapped() {
    grep '"cat":"run","name":"forward"' "$1" | sed 's/.*"pid":\([0-9]*\),.*"ts":\([0-9.]*\),"dur":\([0-9.]*\),.*/\1 \2 \3/' |
        sort -k2,2n | awk '
        { n[$1]++; from[$1, n[$1]] = $2; to[$1, n[$1]] = $2 + $3 }
        END {
            for (a = 13; a <= n[0]; a++) {
                all += to[0, a] - from[0, a]
                for (b = 13; b <= n[1]; b++) {
                    low = from[0, a] > from[1, b] ? from[0, a] : from[1, b]
                    high = to[0, a] < to[1, b] ? to[0, a] : to[1, b]
                    if (high > low) both += high - low
                }
            }
            printf "%d\n", all ? 100 * both / all : 0
        }'
}

on_two_ranks() {
    OLYMPUS_TIMELINE=$scratch/trace.json OLYMPUS_NUM_THREADS=1 on 2x1 "$build/examples/pipeline" --schedule forward --stages 2 --microbatches 12 \
        --size 384 --steps 4 >"$scratch/why" 2>&1 || return
    percent=$(overlapped "$scratch/trace.json")
    echo "$percent %" >>"$scratch/why"
    [ "$percent" -ge 50 ]
}
on_two_ranks || on_two_ranks || on_two_ranks # other programs may have disturbed it
status=$?
if [ $status != 0 ] && [ -n "${percent:-}" ] && awk -v cores="$(nproc)" '{ exit !($1 > cores / 2 + 1) }' /proc/loadavg; then
    echo "the machine is busy ($(cut -d ' ' -f 1 /proc/loadavg) programs run): $percent % overlapped: skipped"
    finish 1
fi
result $status "stages compute at the same time (${percent:-no} %)"
finish 0
