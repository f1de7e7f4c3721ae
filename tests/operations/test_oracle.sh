#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=600
# Every case of tests/oracle on 1 process with 16 devices, the most any case needs; the cases with shardings also on 1x8, 2x4,
# 4x2 and 8x1 processes x devices; on 1x8 what devices would compute alike is computed once, whatever its size. The toy's sums must have the same bits on every layout. Prints the line of each family (name,
# passed, failed, skipped), all failures, and the counts of all runs together.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
oracle=$build/tests/oracle
sharded=(tests/oracle/{toy,viz,heat,prog,auto,auto_more,reshard,grad,types,train,{prog,reshard,grad,types}_more})
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

# on RANKS DEVICES ARGUMENT...: runs the oracle, prints its output except for cases that passed, and adds its counts.
on() {
    local ranks=$1 devices=$2 start=() counts status p f s
    shift 2
    [[ $ranks == 1 ]] || start=(launch/olyrun -n "$ranks" --timeout 240)
    OLYMPUS_NUM_CPU_DEVICES=$devices "${start[@]}" "$oracle" "$@" >"$scratch/output" 2>"$scratch/errors"
    status=$?
    echo "== ${ranks}x${devices}"
    grep -v '^passed \|^skipped ' "$scratch/output"
    cat "$scratch/errors"
    counts=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$scratch/output")
    if [[ -z $counts ]]; then
        echo "the oracle ended early, exit status $status"
        failed=$((failed + 1))
        return
    fi
    read -r p _ f _ s _ <<<"$counts"
    [[ $status == 0 || $f != 0 ]] || f=1
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# toy_sums LAYOUT: keeps the toy's output of the last run.
toy_sums() { grep '^passed toy.*result' "$scratch/output" >"$scratch/toy.$1"; }

on 1 16 tests/oracle
for layout in 1x8 2x4 4x2 8x1; do
    export OLYMPUS_COMPUTE_ONCE=0
    [[ $layout == 1x8 ]] || unset OLYMPUS_COMPUTE_ONCE
    on "${layout%x*}" "${layout#*x}" --verbose "${sharded[@]}"
    toy_sums "$layout"
    [[ $layout != 1x8 ]] || continue
    if cmp -s "$scratch/toy.1x8" "$scratch/toy.$layout"; then
        passed=$((passed + 1))
    else
        echo "the sums of the toy differ between 1x8 and $layout:"
        diff "$scratch/toy.1x8" "$scratch/toy.$layout"
        failed=$((failed + 1))
    fi
done
echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
