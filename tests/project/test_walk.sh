#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The walk through the files of oly_sum in docs/architecture.md is what a debugger finds: it enters the functions of the table in this
# order. Each is stopped at once, from the call of oly_sum in examples/toy.c on.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
case $build in *address* | *thread* | *undefined*) echo 'skipped: programs with sanitizers are not debugged'; exit 77 ;; esac
command -v gdb >/dev/null || { echo 'skipped: gdb is not installed'; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OLYMPUS_NUM_CPU_DEVICES=8 OLYMPUS_NUM_THREADS=1

sed -n 's/^| [0-9]* | `\([^`]*\)` | `\([^`]*\)` |.*/\1:\2/p' docs/architecture.md >"$folder/table"
[[ $(wc -l <"$folder/table") -ge 20 ]] || { echo 'docs/architecture.md: no table of files and functions'; exit 1; }

{
    printf '%s\n' 'set pagination off' 'set width 0' 'set breakpoint pending off' 'tbreak oly_sum_with' 'run'
    sed 1d "$folder/table" | sed 's/.*:/tbreak */'  # at its first instruction: with optimisation a line may be passed by
    sed 's/.*/continue/' "$folder/table"
} >"$folder/commands"
timeout 120 gdb -nx -batch -x "$folder/commands" "$build/examples/toy" >"$folder/all" 2>&1 </dev/null

# "Thread 1 "toy" hit Temporary breakpoint 3, oly_dispatch (...) at runtime/array/dispatch.c:71". The line may be that of a function
# inlined there, so the files are looked up in the sources.
sed -nE 's/.*hit Temporary breakpoint [0-9]+, ([a-z_0-9]+) .*/\1/p' "$folder/all" >"$folder/found"
if ! diff <(sed 's/.*://' "$folder/table") "$folder/found" >"$folder/difference"; then
    echo 'docs/architecture.md (<) and a debugger (>) go through other functions:'
    cat "$folder/difference"
    grep -v '^\[\|^Temporary\|hit Temporary' "$folder/all" | head -n 20
    exit 1
fi
while IFS=: read -r file function; do
    grep -qE "(^[a-z_].*[ *]$function\(|\($function,)" "$file" || { echo "docs/architecture.md: $function is not in $file"; exit 1; }
done <"$folder/table"
