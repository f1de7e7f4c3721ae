#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits one=cluster timeout=120.  A long job under Slurm that is preempted, asked to stop, and (LONG=1) runs into its time limit and loses a node: it is queued again, goes
# on from its checkpoint on another number of nodes and ranks, and ends with the same bits as a run that nobody disturbed. Four devices
# each time. On three virtual hosts (README.md); skipped where a machine cannot have them, or has no Slurm.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
here=$PWD/tests/cluster heat=$PWD/$build/examples/heat2d
export CLUSTER_STATE=$scratch/cluster
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "the launcher is not Open MPI's: skipped"; exit 77; }
command -v slurmctld >/dev/null && command -v munged >/dev/null || { echo "no Slurm (slurmctld slurmd slurm-client munge): skipped"; exit 77; }
trap '"$here/slurm-down" >/dev/null 2>&1; "$here/hosts-down" >/dev/null 2>&1; rm -rf "$scratch"' EXIT
"$here/hosts-up" 3 >"$scratch/why" 2>&1 && "$here/slurm-up" 4 >"$scratch/why" 2>&1 ||
    { echo "no Slurm on virtual hosts here ($(tail -n 1 "$scratch/why")): skipped"; exit 77; }

slurm() { "$here/netns-rsh" h1 "$@"; }
arguments="--size 256 --steps 16000 --no-check --checkpoint-every 500"

cat >"$scratch/job" <<END
#!/bin/bash
#SBATCH --requeue --open-mode=append
export OLYMPUS_NUM_CPU_DEVICES=\$((4 / SLURM_NTASKS)) OLYMPUS_RECORDER=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_hwloc_base_binding_policy=none
echo "running on \$SLURM_JOB_NODELIST, \$SLURM_NTASKS tasks"
srun --mpi=pmix $heat $arguments \${*:2} --checkpoint \$1/c --restart --png \$1/heat.png
status=\$?
echo "ended with \$status"
[ \$status != 75 ] || scontrol requeue \$SLURM_JOB_ID
exit \$status
END

# submit NAME OPTION...: a job in a folder of its own, $folder, with the number $job. $more: further arguments of the program.
submit() {
    folder=$scratch/$1
    shift
    mkdir -p "$folder"
    job=$(slurm sbatch --parsable --output="$folder/out" "$@" "$scratch/job" "$folder" "${more-}")
}
# until_true SECONDS COMMAND...: waits for it.
until_true() {
    local limit=$((SECONDS + $1))
    shift
    while ! "$@"; do
        ((SECONDS < limit)) || return 1
        sleep 0.2
    done
}
said() { grep -q "$1" "$folder/out" 2>/dev/null; }
saved() { compgen -G "$folder/c/step-*" >/dev/null; }
state() { slurm squeue --noheader --format=%t --jobs "$job" 2>/dev/null; }
pending() { [[ $(state) == PD ]]; }
running() { [[ $(state) == R ]]; }
gone() { [[ -z $(state) || $(state) == C* ]]; }
# A job that is queued again waits for two minutes; here it need not. again [FIELD=VALUE...]: with these changes.
again() {
    until_true 40 pending || return 1
    slurm scontrol update JobId="$job" StartTime=now "$@" >>"$scratch/why" 2>&1
}
# The same picture and sum as of the run that nobody disturbed.
same() {
    until_true 90 gone
    cp "$folder/out" "$scratch/why"
    cmp -s "$folder/heat.png" "$scratch/whole/heat.png" && [[ $(grep -h '^2-D' "$folder/out") == "$(cat "$scratch/whole/sum")" ]]
}

preempted() {
    submit preempted --nodes=2 --ntasks-per-node=2
    until_true 30 saved || return 1
    slurm srun --partition=urgent --nodes=3 --ntasks=3 --exclusive true 2>>"$scratch/why" || return 1
    again && same && said 'going on from step'
}
asked_to_stop() {
    submit stopped --nodes=1 --ntasks=4
    until_true 30 saved || return 1
    slurm scancel --signal=USR1 "$job"
    again && same && said 'ended with 75' && said 'going on from step'
}
out_of_nodes() { # held, then started on fewer
    submit fewer --nodes=2 --ntasks=4
    until_true 30 saved || return 1
    slurm scontrol requeuehold "$job"
    until_true 40 pending && slurm scontrol update JobId="$job" NumNodes=1-1 && slurm scontrol release "$job" && again && same &&
        said 'on h1, ' && said 'going on from step'
}
time_limit() { # steps without end: the limit comes first, however fast the machine is
    more="--steps 100000000" submit limit --nodes=1 --ntasks=2 --time=1 --signal=USR1@30
    until_true 120 said 'ended with 75' && again && until_true 60 said 'going on from step'
    local it=$?
    cp "$folder/out" "$scratch/why"
    slurm scancel "$job"
    until_true 30 gone
    return $it
}
node_lost() {
    submit lost --nodes=2 --ntasks=4 --exclude=h1
    until_true 30 saved || return 1
    "$here/hosts-down" h3 >/dev/null
    until_true 120 pending && again NumNodes=1-1 ExcNodeList= && same
}

mkdir -p "$scratch/whole"
OLYMPUS_NUM_CPU_DEVICES=4 "$heat" ${arguments} --png "$scratch/whole/heat.png" 2>/dev/null | grep '^2-D' >"$scratch/whole/sum"
for name in ${*:-preempted asked_to_stop out_of_nodes ${LONG:+time_limit node_lost}}; do
    $name
    result $? "$name"
done
finish 0
