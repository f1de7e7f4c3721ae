#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The documents match the sources as far as a program can tell: the tables in docs/ are what docs/make-operations makes from the
# current sources, every file that docs/*.md name exists, and so does every oly_ function, OLY_ constant and OLYMPUS_ option.
set -u
cd "$(dirname "$0")/../.." || exit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

complain() {
    printf '%s\n' "$@"
    failed=1
}

docs/make-operations "$scratch" || complain "docs/make-operations failed"
for table in operations.md options.md; do
    diff -u "docs/$table" "$scratch/$table" || complain "docs/$table is out of date: run docs/make-operations"
done

# Names: identifiers in any source, header or table, and what macros paste together from the tables.
{
    grep -ohrE --include='*.[ch]' --include='*.def' '\b(oly|OLY|OLYMPUS)_[A-Za-z0-9_]+' include runtime kernels collectives launch
    sed -n 's/^OLY_OP(\([a-z0-9_]*\),.*/OLY_OP_\1/p' runtime/graph/ops.def
    sed -n 's/^ *X(\([A-Z_]*\), ".*/OLY_\1/p' include/olympus/base.h
    sed -n 's/^OLY_TILE_[A-Z_]*(\([a-z0-9_]*\),.*/OLY_TILE_\1/p' kernels/elementwise.def kernels/elementwise_math.def
} | sort -u >"$scratch/known"
grep -onE '\b(oly|OLY|OLYMPUS)_[A-Za-z0-9_]*[A-Za-z0-9]\b' docs/*.md | # one awk for the thousands of names: a grep for each takes a minute
    awk -F: 'FILENAME != "-" { known[$0]; next } !($3 in known) { print $1 ":" $2 ": " $3 " is not in the sources" }' "$scratch/known" - >"$scratch/unknown"
[[ -s $scratch/unknown ]] && complain "$(cat "$scratch/unknown")"

# Files, written as `folder/name.c` with a folder of this tree.
grep -onE '`(include|runtime|kernels|collectives|launch|docs|tests|examples)/[A-Za-z0-9_./-]+`' docs/*.md |
    while IFS=: read -r file line name; do
        name=${name//\`/}
        [[ -e $name ]] || echo "$file:$line: there is no $name"
    done >"$scratch/missing"
[[ -s $scratch/missing ]] && complain "$(cat "$scratch/missing")"

exit $failed
