#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300
# The bench: every row runs, on 1 x 8 and 2 x 2 ranks x devices, and prints one well-formed line; unknown names and wrong options are
# errors. Sizes are small here; nothing is measured.
set -u
cd "$(dirname "$0")/../.." || exit
bench=${BUILD:-build}/bench/bench
failed=0
fail() { echo "FAIL  $1"; failed=1; }

names=$("$bench" --list | cut -d' ' -f1) || fail "--list"
[[ $(wc -w <<<"$names") -ge 15 ]] || fail "--list names too few rows: $names"

# lines RANKS DEVICES: runs every row, checks the lines.
lines() {
    local size="$1 x $2" output
    output=$(launch/olyrun -n "$1" -d "$2" --timeout 120 "$bench" --quick) || fail "$size: exit status $?"
    [[ $(cut -f1 <<<"$output") == "$names" ]] || fail "$size: rows that should be one line each: $output"
    grep -vE $'^[a-z0-9_]+\t[0-9]+\\.[0-9]{9}\t[0-9]+\\.[0-9]{3}\t(Gpoint/s|GB/s|GFLOP/s|us/call)$' <<<"$output" &&
        fail "$size: malformed lines, see above"
    awk -F'\t' '
        $2 <= 0 || ($4 == "us/call" && ($3 - $2 * 1e6 > 0.002 || $2 * 1e6 - $3 > 0.002)) { print; bad = 1 }
        END { exit bad }' <<<"$output" || fail "$size: no time, or two different ones, see above"
}
lines 1 8
lines 2 2

# How often short work is repeated is measured, by one rank for all.
[[ $(launch/olyrun -n 2 -d 1 --timeout 60 "$bench" --repeats 3 products_small each_tanh_f64 chains_cached_f64 | wc -l) == 3 ]] ||
    fail "short rows on two ranks"

[[ $(OLYMPUS_NUM_CPU_DEVICES=3 "$bench" --quick 'call_*' sum | cut -f1 | tr '\n' ' ') == "sum call_wait call_eager " ]] ||
    fail "names and patterns choose rows"
[[ $("$bench" --quick reshard | cut -f1 | head -n 2 | tr '\n' ' ') == "reshard reshard_uneven " ]] || fail "a name is its group's"
"$bench" --help | grep -q 'name <tab> seconds' || fail "--help"

# refused PATTERN ARGUMENT...: exit status 2 and a message.
refused() {
    local output
    output=$("$bench" "${@:2}" 2>&1)
    [[ $? == 2 && $output == *$1* ]] || fail "bench ${*:2} should be refused: $output"
}
refused "there is no row 'heat9d'" heat9d
refused 'at least 3' --repeats 2
refused 'at least 3' --repeats 5x
refused 'usage: bench' --frobnicate

[[ $failed == 0 ]] && echo "bench: $(wc -w <<<"$names") rows"
exit $failed
