#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many random programs on several layouts, one after the other:   tests/soak/campaign.sh LAYOUT:COUNT:SEED...
#
#     tests/soak/campaign.sh 1x8:60000:30000000 2x4:40000:30100000
#
# COUNT programs from SEED on, on each layout (ranks x devices of each). Prints failures (shrunk: SOAK_SHRINK=seconds, 20) and, after each
# layout, one line: programs, seeds, seconds, failures, the commit. Exit status 0: no failure. BUILD, MPIRUN as for tests/run.sh.
set -u
cd "$(dirname "$0")/../.." || exit 2
commit=$(git rev-parse --short HEAD 2>/dev/null) status=0 all=0 bad=0
[[ -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=+
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for part; do
    IFS=: read -r layout count seed <<<"$part"
    begin=$SECONDS failed=0 at=0
    while [[ $at -lt $count ]]; do
        n=$((count - at < 2000 ? count - at : 2000))
        SOAK_COUNT=$n SOAK_LAYOUTS=$layout tests/soak/run.sh 1 $((seed + at)) >"$output" 2>&1 || status=1
        more=$(sed -n 's/.* \([0-9]*\) failed$/\1/p' "$output" | tail -n 1)
        [[ ${more:-1} == 0 ]] || cat "$output"
        failed=$((failed + ${more:-1})) at=$((at + n))
    done
    all=$((all + count)) bad=$((bad + failed))
    echo "$layout: $count programs of seeds $seed to $((seed + count - 1)) in $((SECONDS - begin)) s, $failed failed ($commit)"
done
echo "$all programs in $SECONDS s, $bad failed"
exit $status
