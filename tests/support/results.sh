# SPDX-License-Identifier: BSD-3-Clause
# For test scripts that run programs under other platforms or transports: counts of checks, and what the last one printed in
# $scratch/why. Sourced by them, in the root of the source tree.
build=${BUILD:-build}
MPIRUN=${MPIRUN:-mpirun}
command -v "$MPIRUN" >/dev/null || { echo "no $MPIRUN: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

# result STATUS NAME: counts it, and shows the end of $scratch/why if the status is not 0.
result() {
    if [[ $1 == 0 ]]; then
        passed=$((passed + 1))
        echo "ok       $2"
    else
        failed=$((failed + 1))
        echo "FAIL     $2"
        tail -n 20 "$scratch/why" | sed 's/^/      | /'
    fi
}

# on LAYOUT PROGRAM [ARGUMENT...]: on ranks x devices of each.
on() {
    local layout=$1
    shift
    launch/olyrun -n "${layout%x*}" -d "${layout#*x}" --timeout 200 "$@" </dev/null
}

# refused_mixed NAME=VALUE PATTERN: rank 0 with this variable and rank 1 without it are refused with such a message.
refused_mixed() {
    local program=$build/tests/protected/toy limits=()
    "$MPIRUN" --version 2>&1 | grep -q 'Open MPI' && limits=(--timeout 60)
    ! "$MPIRUN" "${limits[@]}" -n 1 env "$1" "$program" : -n 1 env -u "${1%%=*}" "$program" </dev/null >"$scratch/why" 2>&1 &&
        grep -q "$2" "$scratch/why"
}

# finish SKIPPED: the counts for tests/run.sh; fails if a check has failed.
finish() {
    echo "CHECK: $passed passed, $failed failed, $1 skipped"
    [[ $failed == 0 ]]
}
