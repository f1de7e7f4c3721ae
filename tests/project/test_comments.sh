#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Comments name what exists: every oly_ name in a comment of the sources is declared or defined somewhere in them, and every file
# (name.c, name.h, name.def, name.sh) is in the tree. Finds old names left in comments after a function was renamed.
set -u
cd "$(dirname "$0")/../.." || exit
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

find include runtime kernels collectives launch tests bench examples -name '*.[ch]' -o -name '*.def' | sort >"$scratch/sources"

# split comments FILE...: "file:line:text" of each line's part inside comments; split code FILE...: the text outside of them.
split() {
    local want=$1
    shift
    awk -v want="$want" '
        FNR == 1 { inside = 0 }
        {
            rest = $0
            while (rest != "") {
                at = index(rest, inside ? "*/" : "/*")
                part = at ? substr(rest, 1, at - 1) : rest
                if (want == "code" && !inside) print part
                if (want == "comments" && inside) print FILENAME ":" FNR ":" part
                if (!at) break
                rest = substr(rest, at + 2)
                inside = !inside
            }
        }' "$@"
}

mapfile -t sources <"$scratch/sources"
split comments "${sources[@]}" >"$scratch/comments"
split code "${sources[@]}" | grep -ohE '\boly_[A-Za-z0-9_]+' | sort -u >"$scratch/known"
find . -path './build*' -prune -o -path ./.git -prune -o -type f -printf '%f\n' | sort -u >"$scratch/files"

# check PATTERN KNOWN WHAT: the names in comments that the file KNOWN does not list.
check() {
    awk -F: -v pattern="$1" -v what="$3" '
        NR == FNR { known[$0]; next }
        {
            rest = substr($0, length($1) + length($2) + 3)
            while (match(rest, pattern)) {
                name = substr(rest, RSTART, RLENGTH)
                after = substr(rest, RSTART + RLENGTH, 1)
                before = substr(rest, RSTART - 1, 1)
                rest = substr(rest, RSTART + RLENGTH)
                sub(/_(base|avx2|avx512)$/, "", name) # made by the preprocessor, once for each instruction set
                if (name in known || after ~ /[A-Za-z0-9_]/ || before ~ /[A-Za-z0-9_]/) continue
                print $1 ":" $2 ": " what " " name
            }
        }' "$2" "$scratch/comments" >"$scratch/unknown"
    if [[ -s $scratch/unknown ]]; then
        cat "$scratch/unknown"
        failed=1
    fi
}

check 'oly_[A-Za-z0-9_]*[A-Za-z0-9]' "$scratch/known" 'nothing is called'
printf '%s\n' mpi.h e_log.c k_cos.c k_sin.c k_tan.c program.c every_call.h >>"$scratch/files" # MPI's, the C library'\''s, made or for show
check '[a-z0-9_]+[.](c|h|def|sh)' "$scratch/files" 'there is no file'
exit $failed
