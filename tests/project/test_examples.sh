#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run: one=examples timeout=300.  The example programs print what their headers say, for several distributions of the devices over ranks.
# Expected texts are in tests/expected. BUILD names the build folder, MPIRUN the mpirun. A line per check; exit status 1 when
# one fails, 77 when there is nothing to run them with.
# shellcheck disable=SC2016 # awk and sh expand their variables themselves
set -u
cd "$(dirname "$0")/../.." || exit 1
examples=${BUILD:-build}/examples
command -v "${MPIRUN:-mpirun}" >/dev/null || { echo "no ${MPIRUN:-mpirun}: skipped"; exit 77; }
export OMPI_MCA_pml="${OMPI_MCA_pml-ob1}"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

ok() {
    passed=$((passed + 1))
    echo "ok    $1"
}
bad() {
    failed=$((failed + 1))
    echo "FAIL  $1"
    sed 's/^/      | /' "$scratch/why"
}

# run RANKS DEVICES PROGRAM [ARGUMENT...]: leaves what it prints in $scratch/out and $scratch/err.
run() {
    ranks=$1 devices=$2 program=$3
    shift 3
    launch/olyrun -n "$ranks" -d "$devices" --timeout 60 "$examples/$program" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    return $status
}

# prints NAME EXPECTED: the last run succeeded and $scratch/text is the expected file.
prints() {
    if [ "$status" != 0 ]; then
        { echo "exit status $status"; cat "$scratch/out" "$scratch/err"; } >"$scratch/why"
        bad "$1"
    elif diff "tests/expected/$2" "$scratch/text" >"$scratch/why"; then
        ok "$1"
    else
        bad "$1"
    fi
}

# holds NAME COMMAND...: the command succeeds.
holds() {
    name=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        ok "$name"
    else
        { echo "failed: $*"; cat "$scratch/out" "$scratch/err"; } >>"$scratch/why"
        bad "$name"
    fi
}

layouts='1x8 2x4 4x2 8x1'
ranks_of() { echo "${1%x*}"; }
devices_of() { echo "${1#*x}"; }

# -- one array over the devices of all processes: the shards of eight devices, and one sum from every process ------------------
for l in $layouts; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" toy
    { grep '^device' "$scratch/out" | sort; grep '^process' "$scratch/out" | sed 's/process=[0-9]*/process=*/' | sort -u; } >"$scratch/text"
    prints "toy $l" toy.txt
    holds "toy $l: every process has the sum" test "$(grep -c '^process' "$scratch/out")" = "$(ranks_of "$l")"
done

# -- programs whose process 0 prints the same text however devices are distributed ----------------------------------------------
for l in $layouts; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" sharded_computation
    cp "$scratch/out" "$scratch/text"
    prints "sharded_computation $l" sharded_computation.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" tour
    sed 's/tour.c:[0-9]*/tour.c:*/' "$scratch/out" >"$scratch/text"
    prints "tour $l" tour.txt
    for e in transformer experts checkpoint processes files; do
        run "$(ranks_of "$l")" "$(devices_of "$l")" $e
        cp "$scratch/out" "$scratch/text"
        prints "$e $l" $e.txt
    done
    run "$(ranks_of "$l")" "$(devices_of "$l")" shard_map
    cp "$scratch/out" "$scratch/text"
    prints "shard_map $l" shard_map.txt
    for program in explicit layer arrays math linear_algebra random_numbers control placement timeline; do
        run "$(ranks_of "$l")" "$(devices_of "$l")" $program
        cp "$scratch/out" "$scratch/text"
        prints "$program $l" "$program.txt"
    done
    run "$(ranks_of "$l")" "$(devices_of "$l")" inside
    sort "$scratch/out" | sed 's/inside.c:[0-9]*/inside.c:*/g' >"$scratch/text" # processes print when they get there
    prints "inside $l" inside.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" user_kernel
    cp "$scratch/out" "$scratch/text"
    prints "user_kernel $l" user_kernel.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" train
    cp "$scratch/out" "$scratch/text"
    prints "train $l" train.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" matmul --size 64
    cp "$scratch/out" "$scratch/text"
    prints "matmul $l" matmul.txt
done
for l in 1x4 2x2 4x1 2x4; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" big_sin
    cp "$scratch/out" "$scratch/text"
    prints "big_sin $l" big_sin.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" grad
    cp "$scratch/out" "$scratch/text"
    prints "grad $l" grad.txt
done
run 2 2 matmul --size 64 --devices
holds 'matmul lists the devices' grep -qx 'global devices = \[CPU_0, CPU_1, CPU_2, CPU_3\]' "$scratch/out"
holds 'and those of process 0' grep -qx 'local devices = \[CPU_0, CPU_1\]' "$scratch/out"
run 2 8 matmul --size 64
cp "$scratch/out" "$scratch/text"
prints 'matmul 2x8: a mesh of 8 x 2' matmul_16.txt
for l in 1x1 3x1 1x5; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" tour
    holds "tour $l ends well" test $status = 0
done
run 3 1 arrays
cp "$scratch/out" "$scratch/text"
prints 'arrays 3x1: results do not depend on the number of devices' arrays.txt
run 1 5 random_numbers
cp "$scratch/out" "$scratch/text"
prints 'random_numbers 1x5: neither do these' random_numbers.txt

# -- the heat equations: the program in slices and the one by hand print the same lines -----------------------------------------

# agrees NAME: the third line of the last run gives a difference within float32 rounding of values up to 1.
agrees() { holds "$1" awk '/largest difference/ { found = 1; if ($NF > 1e-5) exit 1 } END { exit !found }' "$scratch/out"; }

for l in $layouts 3x1 1x1; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" heat1d
    head -n 2 "$scratch/out" >"$scratch/text"
    prints "heat1d $l" heat1d.txt
    agrees "heat1d $l agrees with a plain loop"
done
for ranks in 1 2 3 8; do
    run $ranks 1 heat1d_mpi
    cp "$scratch/out" "$scratch/text"
    prints "heat1d_mpi $ranks ranks" heat1d.txt
done
for ranks in 1 4; do
    run $ranks 2 within_mpi
    holds "within_mpi $ranks ranks" grep -q 'on all of them: 4950' "$scratch/out"
done
for l in $layouts 3x1 1x1; do
    for partition in 1d 2d; do
        rm -f "$scratch/plate.png"
        run "$(ranks_of "$l")" "$(devices_of "$l")" heat2d --size 97 --steps 33 --partition $partition --png "$scratch/plate.png"
        head -n 2 "$scratch/out" >"$scratch/text"
        prints "heat2d $partition $l" heat2d.txt
        agrees "heat2d $partition $l agrees with a plain loop"
    done
done
holds 'heat2d writes a picture' test "$(head -c 4 "$scratch/plate.png" | tail -c 3)" = PNG
holds 'heat2d tells its progress' grep -q '100 %, [0-9.]* Gpoint/s' "$scratch/err"
for l in $layouts 3x1 1x1; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" heat3d --size 33 --steps 21
    head -n 2 "$scratch/out" >"$scratch/text"
    prints "heat3d $l" heat3d.txt
    agrees "heat3d $l agrees with a plain loop"
done
for l in $layouts 3x1 1x1; do
    rm -f "$scratch/substance.png"
    run "$(ranks_of "$l")" "$(devices_of "$l")" gray_scott --size 64 --steps 37 --png "$scratch/substance.png"
    head -n 2 "$scratch/out" >"$scratch/text"
    prints "gray_scott $l" gray_scott.txt
    agrees "gray_scott $l agrees with a plain loop"
done
holds 'gray_scott writes a picture' test "$(head -c 4 "$scratch/substance.png" | tail -c 3)" = PNG
for l in $layouts 3x1 1x1; do
    rm -f "$scratch/light.png"
    run "$(ranks_of "$l")" "$(devices_of "$l")" maxwell2d --size 65 --steps 37 --png "$scratch/light.png"
    head -n 2 "$scratch/out" >"$scratch/text"
    prints "maxwell2d $l" maxwell2d.txt
    agrees "maxwell2d $l agrees with a plain loop"
done
holds 'maxwell2d writes a picture' test "$(head -c 4 "$scratch/light.png" | tail -c 3)" = PNG
for ranks in 1 2 3 8; do
    run $ranks 1 heat2d_mpi --size 97 --steps 33
    cp "$scratch/out" "$scratch/text"
    prints "heat2d_mpi $ranks ranks" heat2d.txt
done

# -- plans ------------------------------------------------------------------------------------------------------------------------
for l in 1x8 2x4; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" explain
    holds "explain $l shows both plans" grep -q '^plan heat1d on Mesh' "$scratch/out"
    holds "explain $l shows the sum over b" grep -q 'all-reduce: sum over 2 devices' "$scratch/out"
done
OLYMPUS_SIMULATE=64x8 "$examples/explain" >"$scratch/out" 2>"$scratch/err"
holds 'explain plans for devices that are not there' grep -q 'for 512 devices that are not there' "$scratch/out"

# -- errors ---------------------------------------------------------------------------------------------
refuses() {
    name=$1 pattern=$2
    shift 2
    run "$@"
    holds "$name" test $status != 0
    holds "$name and says why" grep -q -e "$pattern" "$scratch/err"
}
refuses 'sharded_computation with 2 devices' 'needs 8 devices, there are 2' 1 2 sharded_computation
refuses 'big_sin with 3 devices' 'needs 4 devices, there are 3' 1 3 big_sin
refuses 'grad with 3 devices' 'needs 4 devices, there are 3' 1 3 grad
refuses 'train with 4 devices' 'needs 8 devices, there are 4' 1 4 train
refuses 'matmul with 3 devices' 'needs an even number of devices, there are 3' 1 3 matmul
refuses 'toy with 4 devices' '8 devices' 1 4 toy
refuses 'explicit with 4 devices' 'at least 8 are needed' 1 4 explicit
run 2 4 formats "$scratch"
cp "$scratch/out" "$scratch/text"
prints "formats" formats.txt
refuses 'layer with 4 devices' 'at least 8 are needed' 1 4 layer
for program in shard_map linear_algebra placement; do
    refuses "$program with 4 devices" 'needs 8 devices, there are 4' 1 4 $program
done
refuses 'heat2d with a bad option' 'usage: heat2d' 1 1 heat2d --partition 3d
refuses 'heat2d_mpi with too many ranks' 'too many for 6 inner rows' 8 1 heat2d_mpi --size 8
for program in pipeline heat1d heat1d_mpi heat2d heat2d_mpi heat3d gray_scott maxwell2d matmul; do
    run 1 1 $program --help
    holds "$program --help" grep -q "^usage: $program" "$scratch/out"
done
# Numbers that are none, or have something behind them: no example computes with a part of them. A value, then the program with its option.
while read -r value program options; do
    # shellcheck disable=SC2086 # several words
    "$examples/$program" $options "$value" >"$scratch/out" 2>"$scratch/err" </dev/null
    holds "$program $options $value: a bad number" test $? = 2
    holds "$program $options $value: usage" grep -q "usage: $program" "$scratch/err"
done <<END
x heat1d --size
64x heat1d --size
1e3 heat1d --steps
64x heat1d_mpi --size
x heat1d_mpi --steps
64x heat2d --size
x heat2d --steps
5000000000 heat2d --steps
-4294967295 heat2d --steps
10x heat2d --checkpoint-every
64x heat2d_mpi --size
x heat2d_mpi --steps
64x heat3d --size
x heat3d --steps
64x gray_scott --size
x gray_scott --steps
0.04x gray_scott --feed
nan gray_scott --kill
64x maxwell2d --size
x maxwell2d --steps
0.5x maxwell2d --courant
x maxwell2d --glass
64x matmul --size
x matmul --size
100x train --steps
10x train --checkpoint-every
x transformer --steps
25x transformer --checkpoint-every
3x pipeline --steps
x timeline
2x toy 127.0.0.1:10000 4
0 toy 127.0.0.1:10000 x
END

run 1 1 tour --options
holds 'tour --options lists the settings' grep -q OLYMPUS_NUM_CPU_DEVICES "$scratch/out"

# -- pipelines: the same losses and gradients for every schedule and every distribution of the devices, those of the whole network -----
for l in $layouts; do
    run "$(ranks_of "$l")" "$(devices_of "$l")" pipeline --schedule gpipe
    cp "$scratch/out" "$scratch/text"
    prints "pipeline gpipe $l" pipeline_gpipe.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" pipeline --schedule 1f1b
    cp "$scratch/out" "$scratch/text"
    prints "pipeline 1f1b $l" pipeline_1f1b.txt
    run "$(ranks_of "$l")" "$(devices_of "$l")" pipeline --schedule forward
    cp "$scratch/out" "$scratch/text"
    prints "pipeline forward $l" pipeline_forward.txt
done
run 3 1 pipeline --schedule 1f1b --stages 5 --microbatches 4 --size 17 --steps 1
holds 'pipeline 3x1: stages take turns on the devices' grep -q 'differ by less than 1e-5' "$scratch/out"
run 4 1 pipeline --schedule forward --microbatches 3 --size 64 --steps 1 --time
holds 'pipeline --time prints the ideal time' grep -q 'ideal with a core for each device' "$scratch/out"
refuses 'pipeline with a bad option' 'usage: pipeline' 1 1 pipeline --schedule wave

# -- every public function is shown by an example (those that only macros call aside; macros may go on in further lines) --
sed -n 's/^.*OLY_API [^(]*[ *]\(oly_[a-z0-9_]*\)(.*$/\1/p' include/olympus/*.h | sort -u | grep -vE '^oly_(at|explain_names)$' >"$scratch/functions"
grep -oh 'OLY_AT_AS(oly_[a-z0-9_]*, oly_[a-z0-9_]*)' include/olympus/*.h |
    sed 's/OLY_AT_AS(\(oly_[a-z0-9_]*\), \(oly_[a-z0-9_]*\))/\2 \1/' >"$scratch/macros"
: >"$scratch/unused"
while read -r function; do
    names=$(awk -v f="$function" '$1 == f { print $2 }' "$scratch/macros")
    pattern=$(printf '%s\n' "$function" "$names" | grep . | paste -sd '|')
    grep -qEw "$pattern" examples/*.c || echo "$function" >>"$scratch/unused"
done <"$scratch/functions"
holds "every one of $(wc -l <"$scratch/functions") public functions is shown by an example" sh -c '! grep . "$1"' sh "$scratch/unused"

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
