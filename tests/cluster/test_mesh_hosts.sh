#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits one=cluster timeout=120.  Meshes on several hosts: node by node however the launcher places ranks, outer axes over hosts; arrays from functions, values
# from one to all, and a pipeline across hosts as on one machine; the same under Slurm. On two virtual hosts (README.md); skipped where a machine cannot
# have them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
here=$PWD/tests/cluster
export CLUSTER_STATE=$scratch/cluster
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "the launcher is not Open MPI's: skipped"; exit 77; }
"$here/hosts-up" 2 >"$scratch/why" 2>&1 || { echo "no virtual hosts here ($(tail -n 1 "$scratch/why")): skipped"; exit 77; }
trap '"$here/slurm-down" >/dev/null 2>&1; "$here/hosts-down" >/dev/null 2>&1; rm -rf "$scratch"' EXIT

# job VARIABLES OPTIONS PROGRAM...: 4 ranks with 2 devices each on two hosts; leaves what it prints in $scratch/why.
job() {
    local variables=$1 options=$2
    shift 2
    "$here/netns-rsh" h1 "cd $PWD; export OLYMPUS_NUM_CPU_DEVICES=2 OLYMPUS_TIMEOUT=30 $variables; $MPIRUN --timeout 60 -n 4 --host h1:2,h2:2 $options \
        -x OLYMPUS_NUM_CPU_DEVICES -x OLYMPUS_TIMEOUT -x OLYMPUS_MESH_ORDER -x PRINT_ORDER $*" >"$scratch/why" 2>"$scratch/err" </dev/null
}
check() {
    local name=$1
    shift
    "$@"
    result $? "$name"
}
says() { grep -qxF "$1" "$scratch/why"; }

ordered() {
    job "PRINT_ORDER=1 OLYMPUS_MESH_ORDER=$1" "--map-by $2" "$build/tests/test_mesh_order" && says "2 nodes, devices $3"
}
check 'ranks in turn on two hosts: host by host' ordered 1 node '0 1 4 5 2 3 6 7'
check 'turned off: in the order of ids' ordered 0 node '0 1 2 3 4 5 6 7'
check 'ranks in a row: the order of ids is that of the hosts' ordered 1 slot '0 1 2 3 4 5 6 7'

processes() {
    job '' '--map-by node' "$build/examples/processes" && says "nodes: 2, Mesh('data': 2, 'model': 4), the last device on node 1" &&
        diff <(grep -vE '^(nodes:|CPU_)' "$scratch/why") <(grep -vE '^(nodes:|CPU_)' tests/expected/processes.txt)
}
check 'arrays and values across hosts as on one machine' processes
pipeline() { job '' "--map-by $1" "$build/examples/pipeline" --schedule 1f1b && diff "$scratch/why" tests/expected/pipeline_1f1b.txt; }
check 'a pipeline with gradients across hosts as on one machine' pipeline slot

# under Slurm: srun --distribution=cyclic places ranks in turn
skipped=0
under_srun() {
    "$here/netns-rsh" h1 "cd $PWD; export OLYMPUS_NUM_CPU_DEVICES=2 OLYMPUS_TIMEOUT=30 PRINT_ORDER=1; timeout 60 srun --mpi=pmix -N 2 -n 4 \
        --ntasks-per-node 2 --distribution=$1 $build/tests/test_mesh_order" >"$scratch/why" 2>&1 </dev/null && says "2 nodes, devices $2"
}
if "$here/slurm-up" >"$scratch/why" 2>&1; then
    check 'srun, ranks in turn on two hosts' under_srun cyclic '0 1 4 5 2 3 6 7'
    check 'srun, ranks in a row' under_srun block '0 1 2 3 4 5 6 7'
    "$here/slurm-down" >/dev/null 2>&1
else
    skipped=2
    echo "skipped  srun: no Slurm here ($(tail -n 1 "$scratch/why"))"
fi
finish $skipped
