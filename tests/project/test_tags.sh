#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `make tags` indexes functions, also of nested folders, for vi and for Emacs, and says what it needs if neither ctags nor etags is
# installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

# check NAME PATTERN FILE
check() {
    if grep -q "$2" "$3"; then
        echo "ok    $1" && passed=$((passed + 1))
    else
        echo "FAIL  $1: wanted '$2' in $3" && failed=$((failed + 1))
        head -n 5 "$3"
    fi
}

tags() { make --no-print-directory BUILD="${BUILD:-build}" tags tags_in="$folder" "$@" >"$folder/said" 2>&1; }

source=$(find runtime/plan -name plan.c) # wherever the planner's driver is
if command -v ctags >/dev/null; then
    tags ETAGS=no-such-program
    check 'ctags finds functions' "^oly_raise\b.*runtime/core/error.c" "$folder/tags"
    check 'and those of the planner' "$source" "$folder/tags"
    check 'and says what it wrote' '^wrote tags$' "$folder/said"
fi
if command -v etags >/dev/null; then
    tags CTAGS=no-such-program
    check 'etags finds functions' 'oly_raise' "$folder/TAGS"
    check 'and says what it wrote' '^wrote TAGS$' "$folder/said"
fi
tags CTAGS=no-such-program ETAGS=no-such-program && echo 'FAIL  without either it should fail' && failed=$((failed + 1))
check 'without either it says what to install' 'needs ctags or etags: install' "$folder/said"
make --no-print-directory help >"$folder/help"
check 'make help lists it' '^  tags ' "$folder/help"
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
