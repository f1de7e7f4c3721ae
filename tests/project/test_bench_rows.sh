#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200
# Every operation of the table (runtime/graph/ops.def) has a row of the bench: it is in the plan of a function that a row runs. Operations
# that planning replaces by others before there is a plan are named here with a row that calls them.
set -u
cd "$(dirname "$0")/../.." || exit
bench=${BUILD:-build}/bench/bench
replaced='constant=each_clamp auto_axes=control_explicit custom=control_own_derivative stop_gradient=control_own_derivative
    own_slice=collective_psum_scatter pvary=collective_axis_index axis_index=collective_axis_index psum=collective_psum
    pmax=collective_pmax pmin=collective_pmin all_gather=collective_all_gather psum_scatter=collective_psum_scatter
    all_to_all=collective_all_to_all ppermute=collective_ppermute'
failed=0
fail() { echo "FAIL  $1"; failed=1; }

mapfile -t rows < <("$bench" --list | cut -d' ' -f1)
[[ ${#rows[@]} -gt 250 ]] || fail "--list names too few rows: ${#rows[@]}"
mapfile -t short < <(printf '%s\n' "${rows[@]}" | grep -vE '^plan_|^psum|^program_')
scratch=$(mktemp -d) || exit
trap 'rm -rf "$scratch"' EXIT
OLYMPUS_EXPLAIN=1 OLYMPUS_NUM_CPU_DEVICES=4 "$bench" --quick "${short[@]}" >"$scratch/out" 2>"$scratch/plans" ||
    fail "exit status $?: $(tail -n 3 "$scratch/plans")"
# Plans of eager calls, which make the inputs, begin with oly_.
awk '/^plan / { ours = $2 !~ /^oly_/ } ours && $1 ~ /^%/ && $2 == "=" { print $3 }' "$scratch/plans" | sort -u >"$scratch/measured"
covered() { grep -qx "$1" "$scratch/measured"; }
# shellcheck disable=SC2013 # names have no spaces
for operation in $(sed -n 's/^OLY_OP(\([a-z0-9_]*\),.*/\1/p' runtime/graph/ops.def); do
    covered "$operation" && continue
    row=$(grep -oE "(^|[[:space:]])$operation=[a-z_]+" <<<"$replaced" | cut -d= -f2)
    [[ -n $row && " ${rows[*]} " == *" $row "* ]] ||
        fail "no row of the bench measures $operation: add one to bench/families.def or bench/elementwise.def"
done
for pair in $replaced; do
    covered "${pair%=*}" && fail "${pair%=*} is in a plan now: take it off the list in this test"
done

# What a row measures is listed as a user would write it, not as macros make it.
"$bench" --list | grep -q '_Generic' && fail "bench --list shows what macros expand to"

# Rows of tables say what bounds them.
limits=$(sed -n 's/.*measure("\([a-z0-9_]*\)".*/\1/p' bench/peers/limits.c)
while IFS=$'\t' read -r name _ _ limit inputs; do
    [[ $inputs == - || " ${limits//$'\n'/ } " == *" $limit "* ]] || fail "$name: bench/peers/limits.c does not measure '$limit'"
done < <("$bench" --table)

# The peers know the rows that they could have, under these names.
grep -oE '(^    |, )"[a-z]+[0-9a-z]*_[a-z0-9_]+": ' bench/peers/array_rows.py | grep -oE '[a-z0-9_]+' | sort -u >"$scratch/peers"
while read -r name; do
    [[ " ${rows[*]} " == *" $name "* ]] || fail "bench/peers/array_rows.py has $name, which is no row"
done <"$scratch/peers"

[[ $failed == 0 ]] && echo "bench rows: every operation has one"
exit $failed
