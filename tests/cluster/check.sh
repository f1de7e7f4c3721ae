# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For the tests in this folder: checks that print a line each, a scratch folder, free ports, and the hosts and Slurm of one test.
# Source it in the root of the tree.
build=${BUILD:-build} MPIRUN=${MPIRUN:-mpirun}
scratch=$(mktemp -d) || exit 1
passed=0 failed=0 skipped=0
export CLUSTER_STATE=$scratch/cluster
here=$PWD/tests/cluster

# Takes down what it has started, whatever ends the test.
leave() {
    [ ! -d "$CLUSTER_STATE/slurm" ] || "$here/slurm-down" >/dev/null
    [ ! -d "$CLUSTER_STATE/hosts" ] || "$here/hosts-down" >/dev/null
    rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 130' INT TERM

# check NAME COMMAND...: the command succeeds.
check() {
    local name=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name: $*"
        sed 's/^/    | /' "$scratch/why"
        tail -n 5 "$scratch"/*.err "$scratch/out" 2>/dev/null | sed 's/^/    | /'
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

finish() {
    echo "CHECK: $passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
    exit
}

# A port of this machine at which nobody listens now.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# has PROGRAM...: all of them are here
has() {
    local program
    for program; do PATH=$PATH:/sbin:/usr/sbin command -v "$program" >/dev/null || return; done
}
