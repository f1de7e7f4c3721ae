#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# launch/install-dependencies and launch/olyrun. A folder of stand-ins for apt-get, mpirun and others comes first
# in PATH, so nothing is installed. Prints a line per check; exit status 1 when one fails.
# shellcheck disable=SC2016,SC2317 # the stand-ins expand their variables themselves
set -u
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failed=0
for name in $(env | sed -n 's/^\(OLYMPUS_[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done # of whoever runs this
unset PBS_NODEFILE

# check NAME STATUS PATTERN COMMAND...: runs the command, compares its exit status, looks for the pattern in what it prints.
check() {
    name=$1 wanted=$2 pattern=$3
    shift 3
    output=$("$@" 2>&1)
    status=$?
    if [ $status = "$wanted" ] && printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "ok    $name"
    else
        echo "FAIL  $name: exit status $status, wanted $wanted and '$pattern' in: $output"
        failed=1
    fi
}

# stand_in NAME SCRIPT
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$folder/$1"
    chmod +x "$folder/$1"
}
with_stand_ins() { PATH="$folder:$PATH" "$@"; }

install=launch/install-dependencies
check 'help of install-dependencies' 0 '--check' $install --help
check 'unknown argument' 2 'unknown argument --frobnicate' $install --frobnicate
check 'all there is quiet' 0 '^$' $install --check

stand_in pkg-config 'case $* in "--exists hwloc" | *\ *\ *) exit 1 ;; esac'
stand_in apt-get 'echo "$0 $*" >>"$folder/log"; exit "${apt_status:-0}"'
stand_in id 'echo "${user:-0}"'
stand_in sudo 'echo "sudo: a password is required" >&2; exit 1'
export folder
check 'check names what is missing' 1 'install -y --no-install-recommends libhwloc-dev$' with_stand_ins $install --check
check 'check installs nothing' 1 '' test -e "$folder/log"
check 'root installs what is missing' 0 '^installing: libhwloc-dev$' with_stand_ins $install
check 'and only that' 0 'apt-get install -y --no-install-recommends libhwloc-dev$' cat "$folder/log"
check 'a user without sudo gets the command' 1 'sudo apt-get update && sudo apt-get install' env user=1000 PATH="$folder:$PATH" $install
check 'a failure of apt-get is told' 1 'apt-get failed' env apt_status=100 PATH="$folder:$PATH" $install
stand_in sudo 'shift; exec "$@"'
check 'a user with sudo installs' 0 '^installing: libhwloc-dev$' env user=1000 PATH="$folder:$PATH" $install

# A Python of the user's gets by pip what it lacks; where that fails, tests are skipped, and it is no error.
stand_in pkg-config ''
stand_in python 'case $1 in -c) case $2 in *numpy*) exit 0 ;; esac; exit 1 ;; esac; echo "$*" >>"$folder/pip"; exit "${pip_status:-0}"'
export CHECK_PYTHON="$folder/python"
peers() { PATH="$folder:$PATH" "$@" "$install" --peers; }
check 'what a Python lacks is told by --check' 0 'python has no h5py vtk perfetto: some tests' \
    sh -c 'PATH="$folder:$PATH" "$0" --peers --check || true' $install
check 'which installs nothing' 1 '' test -e "$folder/pip"
check 'a Python gets what it lacks' 0 'installing for .*python: h5py vtk perfetto$' peers env
check 'by pip' 0 '^-m pip install --quiet h5py vtk perfetto$' cat "$folder/pip"
check 'a pip that fails is no error' 0 'gets no h5py vtk perfetto: some tests will be skipped' peers env pip_status=1
unset CHECK_PYTHON
rm "$folder/pip"
check 'without CHECK_PYTHON pip does nothing' 1 '' sh -c 'PATH="$folder:$PATH" "$0" --peers; test -e "$folder/pip"' $install

run=launch/olyrun
check 'help of olyrun' 0 'usage: olyrun .-n RANKS' $run --help
check 'olyrun wants a number of ranks that is one' 2 'needs a positive number of up to 9 digits' $run -n 99999999999999999999 true
check 'olyrun wants a number of ranks' 2 'needs a positive number' $run -n two true
check 'olyrun wants a program' 2 'which program' $run -n 2
check 'olyrun wants ranks' 2 'how many ranks' $run true
check 'exit status is passed on' 7 '' $run -n 2 sh -c 'exit 7'
check 'devices reach the ranks' 0 '^devices 3$' $run -n 2 -d 3 sh -c 'echo devices $OLYMPUS_NUM_CPU_DEVICES; sleep 0.1'
check 'a missing mpirun is told' 127 'does not run' env MPIRUN="$folder/none" $run -n 2 true

check 'version of olyrun' 0 '^olyrun (Olympus) [0-9.]*$' $run --version
check 'a limit that is no time' 2 'needs a time' $run --time 1:x -n 2 true
check 'a limit of nothing' 2 'needs a time above 0' $run --time 0:00 -n 2 true
check 'a limit of 99 seconds is no minutes' 2 'needs at most 59 after a colon.*1:99' $run --time 1:99 -n 2 true
check 'and none of 60 minutes' 2 'needs at most 59 after a colon' $run --time 1:60:00 -n 2 true
check 'a limit is kept' 124 'the time limit of 1 s is reached' $run --time 1 -n 1 sleep 30

stand_in open 'case "$* " in *--version\ *) echo "mpirun (Open MPI) 4.1.4" ;; *) echo "$*"; env | grep OMPI_MCA ;; esac'
stand_in hydra 'case $1 in --version) echo "HYDRA build details" ;; *) echo "$*" ;; esac'
check 'arguments for Open MPI' 0 '^-n 3 program -n 5$' env MPIRUN="$folder/open" $run --timeout 9 -n 3 program -n 5
check 'arguments for MPICH' 0 '^-n 3 program --time 4$' env MPIRUN="$folder/hydra" $run --time 0:09 -n 3 program --time 4
check 'a lost host is noticed' 0 'oob_tcp_keepalive_time=3' env MPIRUN="$folder/open" $run -n 3 program
check 'more ranks than cores yield' 0 'mpi_yield_when_idle=1' env -u OMPI_MCA_mpi_yield_when_idle MPIRUN="$folder/open" $run -n 99999 program
check 'what the user has set stays' 0 'binding_policy=core' env OMPI_MCA_hwloc_base_binding_policy=core MPIRUN="$folder/open" $run -n 2 program

# Hosts, allocations, binding and GPUs, as --dry-run prints them.
dry() { env -u SLURM_JOB_ID -u CUDA_VISIBLE_DEVICES -u OLYMPUS_NUM_CPU_DEVICES MPIRUN="$folder/open" "$@"; }
check 'hosts for Open MPI' 0 "open -n 4 --host h1:2,h2:2 program 'a b'\$" dry $run --dry-run --hosts h1:2,h2:2 program 'a b'
check 'hosts without numbers divide -n' 0 ' -n 5 --host h1:3,h2:3 program$' dry $run --dry-run -n 5 --hosts h1,h2 program
check 'our variables reach other hosts, the secret does not' 0 ' --host h1:1,h2:1 -x OLYMPUS_TIMEOUT program$' \
    dry env OLYMPUS_TIMEOUT=9 OLYMPUS_SECRET=x $run --dry-run --hosts h1:1,h2:1 program
# A host that is named in any way gets our variables.
check 'our variables reach hosts that MPIRUN names' 0 'open --host h1:1,h2:1 -n 2 -x OLYMPUS_NUM_CPU_DEVICES program$' \
    dry env MPIRUN="$folder/open --host h1:1,h2:1" $run --dry-run -n 2 -d 3 program
check 'and those that a setting names' 0 'open -n 2 -x LD_LIBRARY_PATH -x OLYMPUS_NUM_CPU_DEVICES program$' \
    dry env OMPI_MCA_orte_default_hostfile=file LD_LIBRARY_PATH=/lib $run --dry-run -n 2 -d 3 program
check 'what MPIRUN says of a variable stays' 0 'open -x OLYMPUS_TIMEOUT=3 -n 2 program$' \
    dry env OLYMPUS_TIMEOUT=9 MPIRUN="$folder/open -x OLYMPUS_TIMEOUT=3" $run --dry-run -n 2 program
check "a list of the user's for Open MPI stays alone" 0 'open -n 2 program$' \
    dry env OLYMPUS_TIMEOUT=9 OMPI_MCA_mca_base_env_list=FOO $run --dry-run -n 2 program
check 'MPICH passes all variables by itself' 0 'hydra -n 2 program$' \
    dry env OLYMPUS_TIMEOUT=9 MPIRUN="$folder/hydra" $run --dry-run -n 2 program
check '--host is --hosts, and -np is -n' 0 ' -n 4 --host h1:2,h2:2 program$' dry $run --dry-run -np 4 --host h1,h2 program
mkdir "$folder/few"
printf '#!/bin/sh\necho 2\n' >"$folder/few/nproc"
chmod +x "$folder/few/nproc"
check 'the host with the most ranks decides whether they yield' 0 'mpi_yield_when_idle=1' \
    dry env -u OMPI_MCA_mpi_yield_when_idle PATH="$folder/few:$PATH" $run --dry-run --hosts h1:3,h2:1 program
check 'hosts for MPICH' 0 'hydra -n 4 -hosts h1:2,h2:2 program$' dry env MPIRUN="$folder/hydra" $run --dry-run --hosts h1:2,h2:2 program
check 'malformed hosts' 2 'needs a list as h1:2,h2:2' dry $run --dry-run --hosts h1:2:3 program
check 'an option is no list of hosts' 2 '^olyrun: --hosts needs a list' dry $run --hosts --dry-run program
check 'hosts that contradict -n' 2 'the hosts have 4 processes' dry $run --dry-run -n 3 --hosts h1:2,h2:2 program
# An allocation of PBS: a line of the node file for each rank.
printf '%s\n' h1 h2 h1 >"$folder/nodes"
printf '%s\n' h1 h1 >"$folder/node"
: >"$folder/nothing"
pbs() { dry env PBS_NODEFILE="$folder/nodes" "$@"; }
check 'PBS: the hosts of the node file' 0 ' -n 3 --host h1:2,h2:1 program$' pbs $run --dry-run program
check 'PBS: another number of ranks is divided' 0 ' -n 6 --host h1:3,h2:3 program$' pbs $run --dry-run -n 6 program
check 'PBS: our variables reach its hosts' 0 ' --host h1:2,h2:1 -x OLYMPUS_NUM_CPU_DEVICES program$' pbs $run --dry-run -d 2 program
check 'PBS: MPICH' 0 'hydra -n 3 -hosts h1:2,h2:1 program$' pbs env MPIRUN="$folder/hydra" $run --dry-run program
check 'PBS: --hosts is stronger' 0 ' -n 2 --host h7:2 program$' pbs $run --dry-run --hosts h7:2 program
check 'PBS: hosts that MPIRUN names are, too' 0 'open --hostfile file -n 3 program$' \
    pbs env MPIRUN="$folder/open --hostfile file" $run --dry-run program
check 'PBS: one host needs no list' 0 ' -n 2 program$' dry env PBS_NODEFILE="$folder/node" $run --dry-run program
check 'PBS: a node file without hosts' 2 'needs a host on each line' dry env PBS_NODEFILE="$folder/nothing" $run --dry-run program
stand_in ompi_info 'case $* in "--parsable --param plm tm") echo "mca:plm:tm:version:\"mca:2.1.0\"" ;; esac'
check 'PBS: an Open MPI that knows it finds the hosts itself' 0 'open -n 3 program$' pbs $run --dry-run program
rm "$folder/ompi_info"
check 'devices are shown' 0 '^OLYMPUS_NUM_CPU_DEVICES=3 .* -n 2 -x OLYMPUS_NUM_CPU_DEVICES program$' dry $run --dry-run -n 2 -d 3 program
stand_in lscpu 'case $1 in -p=NODE) printf "# c\n0\n1\n2\n3\n" ;; *) printf "# c\n0\n0\n1\n1\n" ;; esac'
numa() { PATH="$folder:$PATH" dry env -u OMPI_MCA_hwloc_base_binding_policy -u OMPI_MCA_rmaps_base_mapping_policy "$@"; }
check 'a rank for each NUMA domain is bound to it' 0 'hwloc_base_binding_policy=numa:overload-allowed' numa $run --dry-run -n 4 program
check 'two ranks on four domains have a socket and two devices each' 0 'NUM_CPU_DEVICES=2 .*binding_policy=socket:' numa $run --dry-run -n 2 program
check 'one rank has all' 0 'NUM_CPU_DEVICES=4 .*binding_policy=none' numa $run --dry-run -n 1 program
check 'binding may be turned off' 0 'binding_policy=none' numa $run --dry-run --bind none -n 8 program
stand_in srun 'case $* in *mpi=list*) echo "MPI plugin types are... pmix pmi2" >&2 ;; *) echo "$*" ;; esac'
in_slurm() { PATH="$folder:$PATH" dry env -u MPIRUN SLURM_JOB_ID=7 SLURM_NTASKS=8 SLURM_JOB_NUM_NODES=2 "$@"; }
stand_in mpirun 'echo "mpirun (Open MPI) 4.1.4"'
check 'an allocation: srun, its tasks, four on each node' 0 'srun --mpi=pmix --kill-on-bad-exit=1 --ntasks=8 --nodes=2 --ntasks-per-node=4 --cpu-bind=ldoms program$' \
    in_slurm $run --dry-run program
check 'tasks that do not divide: no number for each node' 0 ' --ntasks=5 --nodes=2 --distribution=block,NoPack program$' \
    in_slurm $run --dry-run --bind none -n 5 program
check 'a distribution of the allocation stays' 0 ' --ntasks=5 --nodes=2 program$' \
    in_slurm env SLURM_DISTRIBUTION=cyclic $run --dry-run --bind none -n 5 program
check 'GPUs of an allocation are divided' 0 ' --gpus-per-task=2 program$' in_slurm env SLURM_GPUS_ON_NODE=8 $run --dry-run --bind none program
check 'cores of a task are passed on' 0 ' --cpus-per-task=6 ' in_slurm env SLURM_CPUS_PER_TASK=6 $run --dry-run program
check 'an allocation whose srun does not fit' 0 'mpirun -n 8 program$' in_slurm env PATH="$folder:$PATH" sh -c 'printf "#!/bin/sh\necho none >&2\n" >$0/srun; exec "$@"' "$folder" $run --dry-run program
stand_in share 'echo "$CUDA_VISIBLE_DEVICES"'
check 'GPUs of a host are divided' 0 '^2,5$' env CUDA_VISIBLE_DEVICES=0,1,2,5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 $run --as-rank 0 "$folder/share"
check 'fewer GPUs than ranks are shared' 0 '^0$' env CUDA_VISIBLE_DEVICES=0,1 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=4 $run --as-rank 0 "$folder/share"

exit $failed
