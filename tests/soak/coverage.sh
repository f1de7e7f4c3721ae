#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which lines of the planner random programs reach:   tests/soak/coverage.sh BUILD     (after runs of a build with --coverage)
#
# One line for each file of runtime/plan, the lines that were not reached (except those that raise or return an error, out of memory
# included), and the total.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build-coverage} total=0 reached=0
show=${SHOW:-yes}
for source in runtime/plan/*.c runtime/plan/*/*.c; do
    lines=$(gcov --stdout -o "$build/${source%/*}" "$build/${source%.c}.gcda" 2>/dev/null | awk -F: -v file="$source" '
        /Source:/ { on = ($0 ~ file "$"); next }
        on && $1 ~ /#####|=====/ && $3 ~ /oly_out_of_memory|oly_fail|oly_scan_expected|return (NULL|OLY_MEMORY);|failed = true|OLY_PLAN_CHECK|abort\(\)/ { skipped++; next }
        on && $1 ~ /#####|=====/ { missed++; printf "M %s:%d:%s\n", file, $2, substr($0, index($0, $3)); next }
        on && $1 ~ /[0-9]/ { hit++ }
        END { printf "T %d %d\n", hit + 0, missed + 0 }')
    read -r _ hit missed <<<"$(tail -n 1 <<<"$lines")"
    total=$((total + hit + missed)) reached=$((reached + hit))
    [[ $((hit + missed)) == 0 ]] && continue
    printf '%5.1f %%  %4d of %4d  %s\n' "$(awk -v h="$hit" -v m="$missed" 'BEGIN { print 100 * h / (h + m) }')" "$hit" $((hit + missed)) "$source"
    [[ $show == yes ]] && sed -n 's/^M /            /p' <<<"$lines"
done
awk -v h=$reached -v t=$total 'BEGIN { printf "%.1f %% of %d lines of runtime/plan\n", t ? 100 * h / t : 0, t }'
