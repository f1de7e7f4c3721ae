#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits one=cluster timeout=240.  launch/templates: the Slurm scripts are submitted to a real Slurm on two nodes of this machine's, the one
# that is queued again goes on from its checkpoint; the manifests fit their schemas and each other, the recipes of images fit the tree, and
# damaged ones do not. What cannot be tried here is skipped. A line per check.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/cluster/check.sh
templates=launch/templates
root=$PWD

for file in "$templates"/*.sbatch; do check "${file##*/} is a script" bash -n "$file"; done
check 'each file is told of' sh -c "for f in $templates/*; do grep -q \"\\\`\${f##*/}\\\`\" $templates/README.md || [ \${f##*/} = README.md ] || exit 1; done"

# -- manifests ---------------------------------------------------------------------------------------------------------------
manifests=tests/cluster/check_manifests.py
if python3 "$manifests" --together "$templates"/*.yaml >"$scratch/out" 2>&1; then
    check 'the manifests fit their schemas, and each other' test "$(grep -c ': ok$' "$scratch/out")" = 8
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
    damaged 'a volume for one node' kubernetes-data.yaml 's/ReadWriteMany/ReadWriteOnce/'
    damaged 'a volume without a size' kubernetes-data.yaml '/requests:/d; /storage:/d'
    # missing FILE REASON: without one of the manifests another one is wrong.
    missing() {
        local others=()
        for file in "$templates"/*.yaml; do [ "${file##*/}" = "$1" ] || others+=("$file"); done
        python3 "$manifests" --together "${others[@]}" >"$scratch/out" 2>&1
        check "refused: nothing that makes what others name, without $1" grep -q "$2" "$scratch/out"
    }
    missing kubernetes-data.yaml 'JobSet: no PersistentVolumeClaim olympus-data'
    missing kubernetes-rbac.yaml 'Job: no ServiceAccount olympus'
elif [ $? = 77 ]; then
    skip manifests "$(tail -n 1 "$scratch/out") (apt-get install python3-yaml python3-jsonschema)"
else
    check 'the manifests fit their schemas' cat "$scratch/out" /dev/null/none
fi

# -- images ------------------------------------------------------------------------------------------------------------------
# images REASON FILE SED [BUILD]: with this file changed, the recipes are refused for this reason.
images() {
    local reason=$1 file=$2 with=("$templates/Containerfile" "$templates/olympus.def" .dockerignore)
    case $file in Containerfile) with[0]=$scratch/$file ;; olympus.def) with[1]=$scratch/$file ;; *) with[2]=$scratch/$file ;; esac
    sed "$3" "$(ls "$templates/$file" "$file" 2>/dev/null)" >"$scratch/$file"
    python3 tests/cluster/check_images.py "${with[@]}" "${@:4}" >"$scratch/out" 2>&1
    check "refused: $file: $reason" sh -c "[ $? = 1 ] && grep -q '$reason' '$scratch/out'"
}
if has python3; then
    python3 tests/cluster/check_images.py "$templates/Containerfile" "$templates/olympus.def" .dockerignore "$build" >"$scratch/out" 2>&1
    check 'the recipes of images fit the tree' test "$? $(grep -c ': ok$' "$scratch/out")" = '0 7'
    cp "$scratch/out" "$scratch/whole"
    while IFS= read -r line; do skip 'of the images' "$line"; done < <(sed -n 's/^not checked: //p' "$scratch/out")
    grep '^never checked: ' "$scratch/out"
    images 'leaves out kernels' .dockerignore '/kernels/d' "$build"
    images 'does not ignore all' .dockerignore '/^[*]/d'
    images 'there is no colectives' olympus.def 's/collectives/colectives/'
    images 'differ: examples' olympus.def '/^ *examples /d'
    images 'goes to /opt/launch' olympus.def 's|/src/launch|/opt/launch|'
    images 'there is no toys to run' olympus.def 's|bin/toy|bin/toys|'
    images 'runs launch/install-dependency, which is no program' olympus.def 's/install-dependencies/install-dependency/'
    images 'RUN is no script' Containerfile 's/^RUN printf/RUN (printf/'
    images 'there is no stage built' Containerfile 's/--from=build/--from=built/'
    images 'does not make /opt/olympos' Containerfile 's|from=build /opt/olympus|from=build /opt/olympos|'
    images 'there is no olympusrun to run' Containerfile 's/"olyrun"/"olympusrun"/'
    images 'ssh needs port 2222' Containerfile "s/ 'Port 2222' 'Strict/ 'Strict/"
    images 'ssh needs stricthostkeychecking no' Containerfile 's/StrictHostKeyChecking no/StrictHostKeyChecking ask/'
    images 'OMPI_MCA_plm_rsh_args has no effect' Containerfile 's/OMPI_MCA_hwloc_base_binding_policy=none/OMPI_MCA_plm_rsh_args="-p 2222"/'
    images 'nothing writes /home/olympus/.sshd_config' Containerfile 's/sshd_config/sshd.conf/'
    # The last two need the packages of the images' release.
    if ! grep -q 'not checked: .* packages$' "$scratch/whole"; then
        images 'has no package libhwloc51' Containerfile 's/libhwloc15/libhwloc51/'
    fi
    if ! grep -q 'not checked: the libraries' "$scratch/whole"; then
        images 'libhdf5_openmpi.so.[0-9]* is missing' Containerfile 's/libhdf5-openmpi-[0-9-]*//' "$build"
    fi
else
    skip images 'no python3'
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
