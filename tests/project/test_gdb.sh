#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In gdb, `print` shows arrays, shardings and meshes, and `oly-plan` the steps of a plan (runtime/olympus-gdb.py, which gdb loads
# with the shared library). Compares the output for a small program.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${BUILD:-build}")
case $build in *address* | *thread* | *undefined*) echo 'skipped: programs with sanitizers are not debugged'; exit 77 ;; esac
command -v gdb >/dev/null || { echo 'skipped: gdb is not installed'; exit 77; }
gdb -nx -batch -ex 'python print(6 * 7)' 2>&1 | grep -q '^42$' || { echo 'skipped: gdb has no Python'; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OLYMPUS_NUM_CPU_DEVICES=4 LD_LIBRARY_PATH=$build

cat >"$folder/program.c" <<'END'
#include <complex.h>
#include <olympus.h>
static void scaled_sum(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[0];
    (void)user;
    out[0] = oly_sum(oly_mul(x, 2));
}
static void look(oly_array x, oly_array y, oly_array z, oly_array dead, oly_fn f)
{
    (void)x, (void)y, (void)z, (void)dead, (void)f;
}
int main(int argc, char **argv)
{
    oly_init(&argc, &argv);
    oly_mesh mesh = oly_make_mesh("i=2, j=2"), typed = oly_make_mesh("e=4:explicit");
    oly_sharding split = oly_named(mesh, "i, j"), copies = oly_named(mesh, "");
    oly_sharding unreduced = oly_named(oly_make_mesh("i=2:explicit, j=2"), "None, j, unreduced={i}");
    oly_array x = oly_device_put(oly_div(oly_reshape(oly_arange(24, OLY_FLOAT32), 8, 3), 10), split);
    oly_array y = oly_device_put(oly_astype(oly_arange(10, OLY_INT32), OLY_BFLOAT16), oly_named(typed, "e"));
    oly_array z = oly_device_put(oly_scalar(1.5 - 2 * I, OLY_COMPLEX64), copies), dead = oly_neg(x);
    oly_array a = oly_astype(oly_div(oly_sub(oly_arange(5, OLY_FLOAT32), 2), 2), OLY_FLOAT8_E4M3FN), b = oly_astype(a, OLY_FLOAT8_E5M2);
    oly_free(dead);
    oly_fn f = oly_jit(scaled_sum, 1, 1);
    oly_printf("%A %A %A %A %A %A\n", x, y, z, a, b, oly_apply(f, x));
    look(x, y, z, dead, f);
    (void)unreduced, (void)a, (void)b;
    return oly_finalize();
}
END
cc -g -O0 -std=gnu11 -Iinclude "$folder/program.c" -o "$folder/program" -L"$build" -lolympus -lm >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }

cat >"$folder/commands" <<'END'
set pagination off
set width 0
set breakpoint pending on
break program.c:7
run >/dev/null 2>&1
echo == traced\n
print x
break program.c:12
continue
echo == handles\n
print x
print y
print z
print dead
up
print a
print b
print split
print copies
print unreduced
print mesh
print *typed
echo == shards\n
print *x
print *y
echo == plan\n
oly-plan f
python
for wrong in ("x", "(oly_fn)0"):
    try:
        gdb.execute("oly-plan " + wrong)
    except gdb.error as error:
        print(error)
end
echo == end\n
kill
END
timeout 100 gdb -nx -batch -iex "add-auto-load-safe-path $build" -x "$folder/commands" "$folder/program" >"$folder/all" 2>&1
if grep -qE 'ptrace|Operation not permitted|Cannot (create|run) process' "$folder/all"; then
    echo 'skipped: programs may not be traced here' && exit 77
fi
sed -n '/^== traced/,/^== end/p' "$folder/all" | grep -vE '^(Breakpoint|Thread|\[|#|$)|^[0-9]+[[:space:]]|^[[:space:]]*$' |
    sed 's/plan [0-9a-f]*:/plan:/' >"$folder/found"
cat >"$folder/wanted" <<'END'
== traced
$1 = float32[8,3], traced: a value of the function that is being recorded
== handles
$2 = float32[8,3] NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P('i', 'j')), committed, 4 shards here; device 0 [0:4,0:2]: 0 0.1 0.3 0.4 0.6 0.7 0.9 1
$3 = bfloat16[10@e] NamedSharding(mesh=Mesh('e': 4, axis_types=(Explicit,)), spec=P('e',)), committed, 4 shards here; device 0 [0:3]: 0 1 2
$4 = complex64[] NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P()), committed, 4 shards here; device 0 []: 1.5-2j
$5 = an oly_array whose scope has ended, or that was freed
$6 = float8_e4m3fn[5] on this process's default device, uncommitted, 1 shard here; device 0 [0:5]: -1 -0.5 0 0.5 1
$7 = float8_e5m2[5] on this process's default device, uncommitted, 1 shard here; device 0 [0:5]: -1 -0.5 0 0.5 1
$8 = NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P('i', 'j'))
$9 = NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P())
$10 = NamedSharding(mesh=Mesh('i': 2, 'j': 2, axis_types=(Explicit, Auto)), spec=P(None, 'j', unreduced={'i'}))
$11 = Mesh('i': 2, 'j': 2)
$12 = Mesh('e': 4, axis_types=(Explicit,))
== shards
$13 = float32[8,3] NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P('i', 'j')), committed, 4 shards here
  device 0 [0:4,0:2]: 0 0.1 0.3 0.4 0.6 0.7 0.9 1
  device 1 [0:4,2:3]: 0.2 0.5 0.8 1.1
  device 2 [4:8,0:2]: 1.2 1.3 1.5 1.6 1.8 1.9 2.1 2.2
  device 3 [4:8,2:3]: 1.4 1.7 2 2.3
$14 = bfloat16[10@e] NamedSharding(mesh=Mesh('e': 4, axis_types=(Explicit,)), spec=P('e',)), committed, 4 shards here
  device 0 [0:3]: 0 1 2
  device 1 [3:6]: 3 4 5
  device 2 [6:8]: 6 7
  device 3 [8:10]: 8 9
== plan
plan: 3 steps, 5 slots, 64 bytes of workspace, Mesh('i': 2, 'j': 2)
  input 0: float32[8,3] NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P('i', 'j'))
  output 0: float32[] NamedSharding(mesh=Mesh('i': 2, 'j': 2), spec=P())
  0 mul -> float32[8,3]   program.c:7
  1 reduce_sum -> float32[]   program.c:7
  2 all-reduce: sum over 4 devices   [4 bytes per device in 3 messages] -> float32[]   program.c:7
x is no oly_plan * and no oly_fn
(oly_fn)0 is NULL
== end
END
if diff -u "$folder/wanted" "$folder/found"; then
    echo "CHECK: 1 passed, 0 failed, 0 skipped"
else
    head -n 30 "$folder/all"
    exit 1
fi
