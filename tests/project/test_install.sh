#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# After `make install` programs can be built with pkg-config's flags, linked with the shared library or with the static one, and run;
# `make uninstall` removes everything. And the shared library can be loaded late: by dlopen, and from Python.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
case $build in *address* | *thread* | *undefined*) echo "a library with sanitizers cannot be loaded late"; exit 77 ;; esac
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OLYMPUS_NUM_CPU_DEVICES=4
passed=0 failed=0

# check NAME PATTERN COMMAND...: it succeeds and prints the pattern.
check() {
    name=$1 pattern=$2
    shift 2
    if output=$("$@" 2>&1) && printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "ok    $name" && passed=$((passed + 1))
    else
        echo "FAIL  $name: wanted '$pattern' in: $output" && failed=$((failed + 1))
    fi
}

cat >"$folder/program.c" <<'END'
#include <olympus.h>
int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    oly_array x = oly_device_put(oly_arange(100, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"));
    oly_printf("the sum is %A\n", oly_sum(x));
    return oly_finalize();
}
END

# -- installed ----------------------------------------------------------------------------------------------------------------
to=$folder/here
make --no-print-directory BUILD="$build" PREFIX="$to" install >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
export PKG_CONFIG_PATH="$to/lib/pkgconfig"
with_words() { # PKG_CONFIG_OPTION OUTPUT
    # shellcheck disable=SC2046 # words, each of its own
    cc -std=gnu11 "$folder/program.c" $(pkg-config --cflags $1 --libs olympus) -o "$2"
}
check 'the licence is there' 'BSD 3-Clause License' cat "$to/share/doc/olympus/LICENSE"
check 'and what gdb loads with the library' 'oly-plan' cat "$(realpath "$to/lib/libolympus.so")-gdb.py"
check 'a program is linked with the shared library' '' with_words '' "$folder/shared"
check 'and starts' 'the sum is 4950' "$folder/shared"
rm "$to"/lib/*.so*
check 'a program is linked with the static library' '' with_words --static "$folder/static"
check 'and starts alone' 'the sum is 4950' "$folder/static"
# Programs name few libraries: zlib, HDF5 and those of GPUs are opened at the first use.
few() {
    # shellcheck disable=SC2046
    mpicc -std=gnu11 -I"$to/include" "$folder/program.c" -o "$1" "$to/lib/libolympus.a" $(pkg-config --libs hwloc openblas libpng) -lm -lpthread -ldl
}
check 'hwloc, OpenBLAS and libpng are all that a static program names' '' few "$folder/few"
check 'and it starts' 'the sum is 4950' "$folder/few"
make --no-print-directory BUILD="$build" PREFIX="$to" install >"$folder/log" 2>&1
mkdir -p "$to/lib/other"
touch "$to/lib/libother.so"
make --no-print-directory BUILD="$build" PREFIX="$to" uninstall >"$folder/log" 2>&1
check 'uninstall takes everything of ours away' '^0$' sh -c "find '$to' -name '*oly*' | wc -l"
check 'and leaves what others have put there' 'libother' ls "$to/lib"

# -- loaded late: alone, and under an extension of Python -------------------------------------------------------------------------
cat >"$folder/extension.c" <<'END'
#include <olympus.h>
double sum_of(int n)
{
    oly_init(NULL, NULL);
    double sum = oly_item(oly_sum(oly_device_put(oly_arange(n, OLY_FLOAT32), oly_named(oly_make_mesh("x=4"), "x"))));
    return oly_finalize() == 0 ? sum : -1;
}
END
cat >"$folder/late.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *function = library ? dlsym(library, argv[2]) : NULL;
    if (!function)
        return puts(dlerror()), 1;
    if (argc > 3)
        printf("the sum is %g\n", ((double (*)(int))function)(100));
    return 0;
}
END
cat >"$folder/late.py" <<'END'
import ctypes
import sys

extension = ctypes.CDLL(sys.argv[1])
extension.sum_of.restype = ctypes.c_double
for n in 100, 10:
    print('the sum is', extension.sum_of(n))
END
absolute=$(cd "$build" && pwd)
cc "$folder/late.c" -ldl -o "$folder/late" || exit 1
cc -std=gnu11 -shared -fPIC -Iinclude "$folder/extension.c" "$build/libolympus.so" -Wl,-rpath,"$absolute" -o "$folder/extension.so" &&
    ln -s "$absolute/libolympus.so" "$folder/libolympus.so.0" || exit 1
check 'dlopen finds room for its thread memory' '' "$folder/late" "$absolute/libolympus.so" oly_init
check 'an extension that is loaded late computes' 'the sum is 4950' "$folder/late" "$folder/extension.so" sum_of 100
if command -v python3 >/dev/null; then
    check 'also in Python' 'the sum is 45' python3 "$folder/late.py" "$folder/extension.so"
fi
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
