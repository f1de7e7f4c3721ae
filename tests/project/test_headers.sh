#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300.  The public headers in C11 and C++17, with gcc and clang, without a warning: each alone, every spelling, the
# examples, programs in C++ that run, and what must not compile. Every public function has a macro that records the caller's line.
# BUILD names the build folder. A line per check; exit status 1 when one fails.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

holds() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        head -n 20 "$scratch/why" | sed 's/^/      | /'
    fi
}

strict=(-Wall -Wextra -Wshadow -pedantic -Werror -Iinclude -D_POSIX_C_SOURCE=200809L)
in_c() { "$@" -x c -std=c11 -Wstrict-prototypes "${strict[@]}" -fsyntax-only "$source"; }
in_cxx() { "$@" -x c++ -std=c++17 "${strict[@]}" -fsyntax-only "$source"; }
refuses() { ! "$@"; }

compilers=()
for c in gcc clang; do command -v $c >/dev/null && compilers+=("in_c $c"); done
for c in g++ clang++; do command -v $c >/dev/null && compilers+=("in_cxx $c"); done

# -- every header alone, and every spelling --------------------------------------------------------------------------------------
for compiler in "${compilers[@]}"; do
    for header in include/olympus.h include/olympus/*.h; do
        case $header in *_cxx.h) continue ;; esac
    done >"$scratch/all"
    source=$scratch/one.c
    for header in include/olympus.h include/olympus/*.h; do
        case $header in *_cxx.h) continue ;; esac
        printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "${header#include/}" "${header#include/}" >"$source"
        $compiler >>"$scratch/errors" 2>&1 || echo "$header" >>"$scratch/errors"
    done
    holds "each header alone: $compiler" sh -c '! grep . "$1"' sh "$scratch/errors"
    rm -f "$scratch/errors"
    source=tests/project/headers/spellings.c
    holds "every spelling: $compiler" $compiler
done

# -- examples: as strict C11, and as C++ where they are that, too ------------------------------------------------------------------
cxx_examples='big_sin control experts explain explicit grad layer shard_map toy train transformer'
for compiler in "${compilers[@]}"; do
    case $compiler in
    in_c\ *) examples=$(basename -s .c $(ls examples/*.c | grep -v _mpi)) ;;
    *) examples=$cxx_examples ;;
    esac
    for example in $examples; do
        source=examples/$example.c
        $compiler >>"$scratch/errors" 2>&1 || echo "$example" >>"$scratch/errors"
    done
    holds "examples: $compiler" sh -c '! grep . "$1"' sh "$scratch/errors"
    rm -f "$scratch/errors"
done

# -- programs in C++ run ------------------------------------------------------------------------------------------------------------
case $build in
*address* | *undefined* | *thread*) # the library wants the sanitizers' own runtime of the compiler that made it
    skipped=$((skipped + 1))
    ;;
*)
    export OMPI_MCA_pml="${OMPI_MCA_pml-ob1}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for compiler in "${compilers[@]}"; do
        kind=${compiler% *} c=${compiler#* }
        language=(-x c -std=c11)
        [ "$kind" = in_cxx ] && language=(-x c++ -std=c++17)
        link=(-L"$build" -lolympus -Wl,-rpath,"$PWD/$build")
        holds "spellings are built: $c" "$c" "${language[@]}" "${strict[@]}" -O1 tests/project/headers/spellings.c "${link[@]}" -o "$scratch/spellings"
        holds "spellings run: $c" env OLYMPUS_NUM_CPU_DEVICES=2 "$scratch/spellings"
        [ "$kind" = in_cxx ] || continue
        for example in control shard_map explicit grad; do
            holds "$example is built: $c" "$c" "${language[@]}" -Iinclude -O1 examples/$example.c "${link[@]}" -o "$scratch/$example"
            OLYMPUS_NUM_CPU_DEVICES=8 "$scratch/$example" >"$scratch/out" 2>&1
            holds "$example prints what it does in C: $c" diff "tests/expected/$example.txt" "$scratch/out"
        done
    done
    ;;
esac

# -- what must not compile ------------------------------------------------------------------------------------------------------------
source=$scratch/wrong.c
for compiler in "${compilers[@]}"; do
    for wrong in 'oly_add(x, &d)' 'oly_add(x, "1")' 'oly_mul(&d, x)' 'oly_sum("x")' 'oly_add(x, m)' 'oly_add(x, s)' 'oly_full(&d, OLY_INT32, 2)' \
        'oly_full(OLY_INT32, 1.5, 2)' 'oly_update(x, "0", "1")' 'oly_at_get(x, OLY_INDEXES(&d))' 'oly_where(x, 1, v)' 'oly_sort(x)' \
        'oly_sum(x, .nothing = 1)' 'oly_call(x, OLY_IN(x), OLY_OUT(x))'; do
        cat >"$source" <<END
#include <olympus.h>
void program(oly_array x, oly_mesh m, oly_sharding s, void *v, double d);
void program(oly_array x, oly_mesh m, oly_sharding s, void *v, double d)
{
    (void)x, (void)m, (void)s, (void)v, (void)d;
    (void)$wrong;
}
END
        holds "$wrong does not compile: $compiler" refuses $compiler
    done
done

# -- every public function records the caller's line -------------------------------------------------------------------------------
sed -n 's/^.*OLY_API [^(]*[ *]\(oly_[a-z0-9_]*\)(.*$/\1/p' include/olympus/*.h | sort -u | grep -vx 'oly_at' >"$scratch/functions"
{
    echo '#include <olympus.h>'
    while read -r function; do printf '#ifndef %s\n#error %s notes no place: it needs a macro of its name (calls.h)\n#endif\n' "$function" "$function"; done <"$scratch/functions"
} >"$scratch/wrong.c"
holds "each of $(wc -l <"$scratch/functions") public functions has a macro that notes its place" gcc -std=c11 -Iinclude -fsyntax-only "$scratch/wrong.c"
while read -r function; do
    grep -qE "OLY_AT(_AS)?\((oly_[a-z0-9_]*, )?$function\)" include/olympus/*.h || echo "$function"
done <"$scratch/functions" >"$scratch/without"
holds 'and each of those macros calls oly_at' sh -c '! grep . "$1"' sh "$scratch/without"

# oly_sum calls oly_sum_with: messages say oly_sum, also where a program calls oly_sum_with. (oly_atleast is behind three names.)
grep -ohE 'OLY_AT_AS\(oly_[a-z0-9_]+, oly_[a-z0-9_]+\)' include/olympus/*.h | sed 's/.*, \(.*\))/\1/' | sort -u | grep -vx oly_atleast |
    while read -r function; do grep -H "OLY_AT($function)" include/olympus/*.h; done >"$scratch/own"
holds 'messages name an operation, not the function behind its macro' sh -c '! grep . "$1"' sh "$scratch/own"

tests/operations/make-every-call include/olympus/*.h >"$scratch/every_call.h"
while read -r function; do
    grep -q "void call_$function(" "$scratch/every_call.h" || echo "$function"
done <"$scratch/functions" >"$scratch/without"
holds 'each of them is called by test_every_call (tests/operations/make-every-call)' sh -c '! grep . "$1"' sh "$scratch/without"

echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
