#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200
# Generated kernels in programs on the emulated GPU: the output of the interpreter and of CPUs; on disk, also where two processes begin at
# once, where files are damaged, and where the folder cannot be written or the compiler fails.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/emulated_gpu.sh
cache=$scratch/cache

# program VARIABLE=VALUE...: the example on one emulated GPU, its kernels compiled at their first run.
program() {
    env OLYMPUS_PLATFORMS=cuda OLYMPUS_DEVICES_PER_GPU=8 OLYMPUS_COMPILE_AFTER=0 OLYMPUS_KERNEL_CACHE="$cache" BUILD="$build" "$@" \
        timeout 100 tests/gpu/emulated "$build/examples/toy" </dev/null 2>&1 | sed 's/CUDA_/CPU_/g' | sort
}
same() { # NAME FILE: what the program wrote
    cmp -s "$scratch/wanted" "$2"
    result $? "$1"
    cmp -s "$scratch/wanted" "$2" || diff "$scratch/wanted" "$2" | head -5
}
OLYMPUS_PLATFORMS=cpu OLYMPUS_NUM_CPU_DEVICES=8 "$build/examples/toy" 2>&1 | sort >"$scratch/wanted"
program OLYMPUS_DISABLE=compiled-groups >"$scratch/off"
same 'interpreted' "$scratch/off"
[ ! -e "$cache" ]
result $? 'OLYMPUS_DISABLE=compiled-groups compiles none'

program >"$scratch/one" &
program >"$scratch/two"
wait
same 'two processes at once' "$scratch/one"
same 'the other of them' "$scratch/two"
n=$(find "$cache" -type f | wc -l)
[ "$n" -gt 0 ] && [ -z "$(find "$cache" -name '*.*')" ]
result $? "kernels on disk: $n, none half-written"

# From disk: the compiler would fail.
program EMULATED_FAIL=nvrtc:1+ >"$scratch/read"
same 'from disk' "$scratch/read"
before=$(cat "$cache"/* | cksum)
k=0
for file in "$cache"/*; do
    k=$((k + 1))
    case $((k % 3)) in
    0) : >"$file" ;;
    1) truncate -s -7 "$file" ;;
    2) printf 'x' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") - 3)) conv=notrunc status=none ;;
    esac
done
program >"$scratch/damaged"
same 'damaged files' "$scratch/damaged"
[ "$before" = "$(cat "$cache"/* | cksum)" ]
result $? 'damaged files are written again'

program EMULATED_FAIL=nvrtc:1+ OLYMPUS_KERNEL_CACHE=0 >"$scratch/told"
[ "$(grep -c 'cannot be compiled, and is interpreted' "$scratch/told")" = 1 ]
result $? 'a compiler that fails is told once'
grep -v 'cannot be compiled' "$scratch/told" >"$scratch/failing"
same 'a compiler that fails: interpreted' "$scratch/failing"
program OLYMPUS_KERNEL_CACHE=/dev/null/no >"$scratch/nowhere"
same 'a folder that cannot be' "$scratch/nowhere"
finish 0
