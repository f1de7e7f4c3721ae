#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: one=examples timeout=1200
# Every plan is checked against its program: the oracle and the examples with OLYMPUS_VERIFY=1, on one process with 8 devices and on two
# with 4, and the test programs on two processes, where they run on two, else on one. All of them must still pass. A line per program;
# those that cannot be run so are named with the reason.
#   VERIFIED="control oracle"    only these       LAYOUTS="1x8 2x4"    on these, test programs, too
#   LONG=1    what takes minutes, and test programs on both
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
command -v "${MPIRUN:-mpirun}" >/dev/null || { echo "no ${MPIRUN:-mpirun}: skipped"; exit 77; }
export OLYMPUS_VERIFY=1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

# why NAME: why a test is left out, or nothing.
why() {
    case $1 in
    test_out_of_memory) echo "fails every allocation in turn: test_verify does so with one function" ;;
    test_reshard_random | test_queued | test_donation) echo "counts the memory of calls, of which a verified one takes more" ;;
    test_overlap | test_levels) echo "compares times" ;;
    test_growth* | test_simulate*) echo "plans for machines that are not there: no values" ;;
    test_kernels* | test_every_float | test_any_number | test_core | test_layout | test_device | test_communicator | test_cost | test_regions)
        echo "compiles no functions" ;;
    test_npy* | test_npz | test_csv | test_frames | test_vti | test_hdf5 | test_numpy_files | test_png | test_checkpoint* | test_manifest | \
        test_json | test_storage | test_should_stop | test_events | test_recorder | test_mixed_work)
        echo "of files, checkpoints and records: its few plans are those of other tests" ;;
    test_streams) echo "makes wrong values by forgotten waits" ;;
    test_verify | test_disable) echo "plans several times by itself" ;;
    test_row_chains) echo "compares each program with separate steps by itself" ;;
    esac
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped  $1: $2"
}

# on LAYOUT SECONDS NAME PROGRAM [ARGUMENT...]
on() {
    local layout=$1 limit=$2 name=$3 status start=()
    shift 3
    [[ $layout == 1x* ]] || start=(launch/olyrun -n "${layout%x*}" --timeout "$limit")
    OLYMPUS_NUM_CPU_DEVICES=${layout#*x} timeout -k 5 "$limit" "${start[@]}" "$@" >"$scratch/output" 2>&1 </dev/null
    status=$?
    if [[ $status == 0 ]]; then
        passed=$((passed + 1))
        echo "ok       $name $layout"
    else
        failed=$((failed + 1))
        echo "FAIL     $name $layout: exit status $status"
        grep -a 'olympus:\|ERROR\|FAIL' "$scratch/output" | head -n 6 | sed 's/^/      | /'
    fi
}

# runs_on LAYOUT SOURCE: does the line "run:" of a test name this size?
runs_on() {
    local first ranks
    first=$(sed -n 1,3p "$2")
    [[ $first == *run:*layouts* ]] && return 0
    [[ $first == *devices=8* ]] || return 1
    ranks=$(sed -n '1,3s/.*ranks=\([0-9,]*\).*/\1/p' "$2")
    [[ ,$ranks, == *,${1%x*},* ]]
}

wanted() { [[ -z ${VERIFIED:-} || " $VERIFIED " == *" $1 "* || " $VERIFIED " == *" ${1#test_} "* ]]; }

for layout in ${LAYOUTS:-1x8 2x4}; do
    for source in $(find tests -name 'test_*.c' | sort); do
        name=$(basename "$source" .c)
        wanted "$name" || continue
        reason=$(why "$name")
        if [[ -n $reason ]]; then
            [[ $layout == 1x8 ]] && skip "$name" "$reason"
        elif [[ $layout == 1x8 && -z ${LAYOUTS:-}${LONG:-} ]] && runs_on 2x4 "$source"; then
            continue
        elif runs_on "$layout" "$source"; then
            on "$layout" 300 "$name" "$build/tests/$name"
        fi
    done
    large=auto.seed_matmul_4x2
    [[ ${LONG:-} == 1 ]] && large=none
    wanted oracle && [[ $layout == 1x8 && $large != none ]] && skip "$large" "the plain product takes a minute (LONG=1: it is verified, too)"
    wanted oracle && on "$layout" 600 oracle "$build/tests/oracle" --except "$large" \
        tests/oracle/{toy,viz,heat,prog,auto,auto_more,reshard,grad,types,train,{prog,reshard,grad,types}_more}
    wanted examples || continue
    for program in toy sharded_computation tour transformer experts checkpoint shard_map explicit layer arrays math linear_algebra \
        random_numbers control placement train grad heat1d 'matmul --size 64' 'heat2d --size 97 --steps 33' \
        'heat3d --size 33 --steps 21' 'gray_scott --size 64 --steps 37' 'maxwell2d --size 65 --steps 37'; do
        read -ra words <<<"$program"
        on "$layout" 300 "examples/$program" "$build/examples/${words[0]}" "${words[@]:1}"
    done
done
echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
