#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: one=cluster timeout=240.  launch/templates: the Slurm scripts are submitted to a real Slurm on two nodes of this machine's, the one that is
# queued again goes on from its checkpoint; the manifests fit their schemas, and damaged ones do not. What cannot be tried here is
# skipped. A line per check.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/cluster/check.sh
templates=launch/templates
root=$PWD

for file in "$templates"/*.sbatch; do check "${file##*/} is a script" bash -n "$file"; done
check 'each file is told of' sh -c "for f in $templates/*; do grep -q \"\\\`\${f##*/}\\\`\" $templates/README.md || [ \${f##*/} = README.md ] || exit 1; done"

# -- manifests ---------------------------------------------------------------------------------------------------------------
manifests=tests/cluster/check_manifests.py
if python3 "$manifests" "$templates"/*.yaml >"$scratch/out" 2>&1; then
    check 'the manifests fit their schemas' test "$(grep -c ': ok$' "$scratch/out")" = 7
    damaged() { # NAME FILE SED
        sed "$3" "$templates/$2" >"$scratch/$2"
        check "refused: $1" sh -c "! cmp -s '$scratch/$2' '$templates/$2' && ! python3 $manifests '$scratch/$2'"
    }
    damaged 'a misspelt field' kubernetes-jobset.yaml 's/replicatedJobs:/replicatedJob:/'
    damaged 'a field at the wrong level' kubernetes-job.yaml 's/^  completionMode/      completionMode/'
    damaged 'numbers of processes that differ' kubernetes-job.yaml 's/value: "4"/value: "5"/'
    damaged 'jobs of two pods' kubernetes-jobset.yaml 's/\(completions\|parallelism\): 1/\1: 2/'
    damaged 'another label for the number of processes' kubernetes-jobset.yaml 's/replicatedjob-replicas/job-index/'
    damaged 'another API version' kubernetes-mpijob.yaml 's/v2beta1/v1/'
    damaged 'slots that do not fit' kubernetes-mpijob.yaml 's/slotsPerWorker: 2/slotsPerWorker: 1/'
    damaged 'a rule without verbs' kubernetes-rbac.yaml '/verbs: .*watch"\]$/d'
    damaged 'a coordinator that is not there' kubernetes-jobset.yaml 's/replicatedJob: workers/replicatedJob: leaders/'
elif [ $? = 77 ]; then
    skip manifests "$(tail -n 1 "$scratch/out") (apt-get install python3-yaml python3-jsonschema)"
else
    check 'the manifests fit their schemas' cat "$scratch/out" /dev/null/none
fi

# -- Slurm -------------------------------------------------------------------------------------------------------------------
if ldd "$build/examples/toy" | grep -q libmpich; then
    skip Slurm 'with MPICH (its end hangs now and then on several hosts)'
    finish
elif ! has slurmctld slurmd srun munged; then
    skip Slurm 'not installed (launch/install-dependencies --cluster)'
    finish
elif ! "$here/hosts-up" 2 >"$scratch/why" 2>&1 || ! "$here/slurm-up" 8 >"$scratch/why" 2>&1; then
    skip Slurm "$(tail -n 1 "$scratch/why")"
    finish
fi
mkdir "$scratch/bin"
printf '#!/bin/sh\nBUILD=%s exec %s/launch/olyrun "$@"\n' "$root/$build" "$root" >"$scratch/bin/olyrun"
chmod +x "$scratch/bin/olyrun"
on() { "$here/netns-rsh" h1 "$@"; }
state_of() { on squeue -h -j "$1" -o %T 2>/dev/null; }

# submit TEMPLATE PROGRAM...: $job is its number, its output $scratch/job.out.
submit() {
    : >"$scratch/job.out"
    job=$(on PATH="$scratch/bin:$PATH" sbatch --parsable --output="$scratch/job.out" "$@")
}
# await COMMAND...: within 40 s the command succeeds.
await() {
    for ((try = 0; try < 200; try++)); do
        if "$@"; then return 0; fi
        sleep 0.2
    done
    return 1
}
over() { [ -z "$(state_of "$job")" ] || [ "$(state_of "$job")" = COMPLETED ]; }
sum_from() {
    await over
    [ "$(grep -c 'got result: -0.12398731708526611' "$scratch/job.out")" = "$1" ] || { cat "$scratch/job.out"; return 1; }
}

submit --export=ALL,OLYMPUS_NUM_CPU_DEVICES=2 "$templates/slurm-cpu.sbatch" "$root/$build/examples/toy"
check 'slurm-cpu.sbatch: four ranks on two nodes' sum_from 4
submit "$templates/slurm-hybrid.sbatch" "$root/$build/examples/toy"
check 'slurm-hybrid.sbatch: a rank with four devices on each node' sum_from 2
sed '/gpus-per-node/d' "$templates/slurm-gpu.sbatch" >"$scratch/gpu.sbatch" # these nodes have none
submit --export=ALL,OLYMPUS_NUM_CPU_DEVICES=1 --cpus-per-task=2 "$scratch/gpu.sbatch" "$root/$build/examples/toy"
check 'slurm-gpu.sbatch: but for its GPUs' sum_from 8

# Asked to stop in the middle, as before the time limit, it saves, is queued again, and goes on; on one node where Slurm allows it.
submit --export=ALL,OLYMPUS_NUM_CPU_DEVICES=2 "$templates/slurm-requeue.sbatch" "$root/$build/examples/heat2d" --size 64 --steps 100000000 \
    --no-check --png "$scratch/plate.png" --checkpoint "$scratch/saved" --checkpoint-every 1000 --restart
saved() { compgen -G "$scratch/saved/step-*" >/dev/null; }
check 'slurm-requeue.sbatch: it saves' await saved
on scancel --signal=USR1 --batch "$job"
pending() { [ "$(state_of "$job")" = PENDING ]; }
check 'asked to stop, it is queued again' await pending
on scontrol update "JobId=$job" NumNodes=1 NumTasks=2 >/dev/null 2>&1
on scontrol show job "$job" | grep -o 'Restarts=[0-9]*' >"$scratch/restarts"
check 'as a restart' grep -qx 'Restarts=1' "$scratch/restarts"
sleep 6 # its first step has the same number and must be gone on all nodes; Slurm itself would wait two minutes
on scontrol update "JobId=$job" StartTime=now >/dev/null 2>&1
running() { [ "$(state_of "$job")" = RUNNING ]; }
check 'it runs again' await running
goes_on() { grep -q "going on from step [1-9]" "$scratch/job.out"; }
check 'and goes on from what it saved' await goes_on
on scancel "$job"
finish
