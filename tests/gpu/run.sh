#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All checks and figures of a GPU in one go, in less than ten minutes and without a network: in the source tree after `make`, or where the
# archive of `make gpu-bundle` was unpacked. Prints a line for each step and counts them at the end; OUT gets every step's output and
# `report.txt`, the figures.
#
#   tests/gpu/run.sh [--emulated] [--platform NAME] [--out FOLDER] [--minutes N] [STEP...]
#
#   --emulated        on the emulated GPU (tests/gpu/emulated): everything but figures
#   --platform NAME   instead of cuda; cpu tries this script itself
#   --minutes N       for all steps together (10)
#   STEP              only these: machine oracle programs rates bench peers examples processes sanitizers; survey, which is not one of all:
#                     every row of the bench that JAX has, too, beside JAX in full precision (four minutes)
set -u
cd "$(dirname "$0")/../.." || exit
programs='test_gpu_rows test_random_programs test_ops_everywhere test_pairs test_donation_random test_control test_shard_map test_callback test_user_kernels'
if [[ ${1-} == --programs ]]; then # for make-bundle
    echo "$programs"
    exit
fi
export BUILD=${BUILD:-build}
emulated=${RUN_EMULATED-} platform=${RUN_PLATFORM-cuda} out=${RUN_OUT-} minutes=10 steps=() inside=()
while (($#)); do
    case $1 in
    --emulated) emulated=tests/gpu/emulated ;;
    --platform) platform=$2; shift ;;
    --out) out=$2; shift ;;
    --minutes) minutes=$2; shift ;;
    --inside) shift; inside=("$@"); break ;; # a step of another run.sh, which limits its time
    -*) sed -n '3,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *) steps+=("$1") ;;
    esac
    shift
done
((${#steps[@]})) || steps=(machine oracle programs rates bench peers examples processes sanitizers)
out=${out:-$PWD/gpu-run}
mkdir -p "$out" || exit
end=$((SECONDS + 60 * minutes))
export RUN_EMULATED=$emulated RUN_PLATFORM=$platform RUN_OUT=$out
passed=0 failed=0 skipped=0
((${#inside[@]})) || : >"$out/report.txt"

# Where CUDA and the packages of Python that bring it (as JAX's do) are installed without telling the loader. Programs of others are run
# with the loader's own path: what travels in the archive is not for them.
[[ ${RUN_OWN_PATH+set} ]] || export RUN_OWN_PATH=${LD_LIBRARY_PATH-}
toolkit=${CUDA_HOME:-/usr/local/cuda}
[[ $platform != cuda || $emulated || ${#inside[@]} != 0 ]] || {
    packages=$(python3 -c 'import glob, site, sys
folders = site.getsitepackages() + [site.getusersitepackages()] + sys.path
print(":".join(sorted({f for s in folders if s for f in glob.glob(s + "/nvidia/*/lib")})))' 2>/dev/null)
    [[ ! -d $toolkit/lib64 ]] || packages=$toolkit/lib64${packages:+:$packages}
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$packages PATH=$PATH:$toolkit/bin
}
others() { LD_LIBRARY_PATH=$RUN_OWN_PATH "$@"; }

# What travels in the archive is used where the machine has none.
if [[ -d bundle ]]; then
    here=$PWD/bundle
    export OMPI_MCA_btl_vader_single_copy_mechanism=none # which containers forbid
    export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PATH=$here/bin:$PATH
    export OPAL_PREFIX=$here OPAL_BINDIR=$here/bin OPAL_LIBDIR=$here/lib OPAL_PKGLIBDIR=$here/openmpi OPAL_DATADIR=$here/share
    export OPAL_PKGDATADIR=$here/share/openmpi OPAL_SYSCONFDIR=$here/etc PMIX_INSTALL_PREFIX=$here PMIX_PKGLIBDIR=$here/pmix
    export OMPI_MCA_btl=self,vader OMPI_MCA_plm_rsh_agent=true
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_pml=ob1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OLYMPUS_RECORDER=0
export OLYMPUS_PLATFORMS=$platform

# line RESULT NAME SECONDS [WHY]
line() { printf '%-8s %-28s %6.1f s  %s\n' "$1" "$2" "$3" "${4-}"; }
skip() {
    skipped=$((skipped + 1))
    line skipped "$1" 0 "$2"
}
report() { printf '%s\n' "$*" >>"$out/report.txt"; }

# step NAME LIMIT COMMAND...: runs it, at most that many seconds and until the end; its output in OUT/NAME.
step() {
    local name=$1 limit=$2 left=$((end - SECONDS)) begin=$EPOCHREALTIME status took
    shift 2
    if ((left < 5)); then
        failed=$((failed + 1))
        line FAILED "$name" 0 "no time left of $minutes minutes"
        return 1
    fi
    ((minutes > 10)) && limit=$((limit * minutes / 10))
    timeout -k 5 $((limit < left ? limit : left)) tests/gpu/run.sh --inside "$@" >"$out/$name" 2>&1 </dev/null
    status=$?
    took=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    if [[ $status == 0 ]]; then
        passed=$((passed + 1))
        line ok "$name" "$took" "$(tail -n 1 "$out/$name" | cut -c 1-90)"
    elif [[ $status == 77 ]]; then
        skipped=$((skipped + 1))
        line skipped "$name" "$took" "$(tail -n 1 "$out/$name" | cut -c 1-90)"
    else
        failed=$((failed + 1))
        line FAILED "$name" "$took" "status $status"
        tail -n 8 "$out/$name" | sed 's/^/      | /'
    fi
    return $status
}

# Programs on RANKS x DEVICES of the platform: devices are parts of the one card.
on() {
    local ranks=${1%x*} devices=${1#*x} launch=()
    shift
    [[ $ranks == 1 ]] || launch=(mpirun -n "$ranks")
    if [[ $platform == cpu ]]; then
        env OLYMPUS_NUM_CPU_DEVICES="$devices" "${launch[@]}" "$@"
    else
        env OLYMPUS_DEVICES_PER_GPU="$devices" $emulated "${launch[@]}" "$@"
    fi
}
sharded=(tests/oracle/{toy,viz,heat,prog,auto,reshard,grad,types,train})

# -- steps ------------------------------------------------------------------------------------------------------------------

machine() {
    if [[ $platform != cuda ]]; then
        echo "platform $platform"
    elif [[ $emulated ]]; then
        echo "the emulated GPU"
    else
        others nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv || return
    fi
    on 1x2 "$BUILD/examples/matmul" --size 64 --devices # which libraries there are, too
    on 1x8 "$BUILD/examples/toy"
}

oracle() { on "$@"; }

# Random programs against plain loops, and test programs whose devices are those of the platform.
random_programs() {
    local layout=$1 until=$((SECONDS + $2)) seed=${SEED:-$((RANDOM * 1000))} bad=0 n=0
    shift 2
    while ((SECONDS < until)); do
        # shellcheck disable=SC2163 # NAME=VALUE
        (export SOAK_SHRINK=0 OLYMPUS_NUM_CPU_DEVICES=${layout#*x} "$@" && on "$layout" "$BUILD/tests/soak/soak" $((seed + n)) 100) || bad=$((bad + 1))
        n=$((n + 100))
    done
    echo "$n random programs from $seed, $bad hundreds failed"
    [[ $bad == 0 ]]
}
tests() {
    local bad=0 name
    for name in $programs; do
        on 1x8 "$BUILD/tests/$name" >"$out/test" 2>&1 && continue
        echo "$name failed"
        tail -n 20 "$out/test"
        bad=$((bad + 1))
    done
    echo "$bad programs failed"
    [[ $bad == 0 ]]
}

# The output of a program in any order of processes, without speeds and names of devices. Numbers to six places: a few functions of
# complex numbers differ in their last bits (docs/gpu.md).
text_of() {
    sed -E 's/[0-9.]* [GM]point\/s//; s/[0-9.]* Gflop\/s//; s/[0-9.e-]* s\b//g; s/(CPU|GPU|CUDA)([ _][0-9])/DEVICE\2/g; s/platform "?[a-z]*"?//; s/ cuda devices/ cpu devices/
        s/CudaDevice/CpuDevice/g; /^cpu devices = /d; /^put on a CPU device:/d; s/([0-9]\.[0-9]{6})[0-9]+/\1/g; s/ +//g' | sort
}

# Every example prints on the platform what it prints on CPUs.
examples() {
    local layout=$1 bad=0 n=0 words program
    for program in toy sharded_computation tour explicit arrays control placement grad random_numbers shard_map layer math linear_algebra \
        train heat1d:--steps:40 heat2d:--size:97:--steps:33 heat3d:--size:33:--steps:21 gray_scott:--size:64:--steps:37 \
        maxwell2d:--size:65:--steps:37 matmul:--size:64; do
        IFS=: read -ra words <<<"$program"
        [[ -x $BUILD/examples/${words[0]} ]] || continue
        n=$((n + 1))
        (platform=cpu emulated='' OLYMPUS_PLATFORMS=cpu on "$layout" "$BUILD/examples/${words[0]}" "${words[@]:1}") 2>&1 | text_of >"$out/wanted"
        on "$layout" "$BUILD/examples/${words[0]}" "${words[@]:1}" 2>&1 | text_of >"$out/got"
        cmp -s "$out/wanted" "$out/got" || { echo "$program: other output than on CPUs"; diff "$out/wanted" "$out/got" | head -n 5; bad=$((bad + 1)); }
    done
    echo "$((n - bad)) of $n examples"
    [[ $bad == 0 ]]
}

# NAME of compute-sanitizer's tool: small programs under it.
sanitizer() {
    local layout=1x2
    on $layout compute-sanitizer --tool "$1" --error-exitcode 9 --target-processes all "$BUILD/tests/oracle" tests/oracle/{toy,heat}
}

rates() { $emulated "$BUILD/tests/gpu/rates" ${emulated:+--quick}; }

# Kernels are compiled at their first launch, as JAX's are: figures are of what follows.
rows_of() { OLYMPUS_COMPILE_AFTER=0 on 1x1 "$BUILD/bench/bench" "$@"; }

bench() {
    local quick=()
    [[ $emulated || $platform == cpu ]] && quick=(--quick)
    rows_of "${quick[@]}" "$@"
}

# Both compile all rows first, many at a time, and are timed then, one after the other.
survey() {
    local table=$out/survey.table ours=$out/survey.ours jax=$out/survey.jax shards=7 k
    local python=(others env XLA_PYTHON_CLIENT_PREALLOCATE=false JAX_DEFAULT_MATMUL_PRECISION=highest JAX_COMPILATION_CACHE_DIR="$out/jax-cache"
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1 python3 bench/peers/array_rows.py jax)
    others python3 -c 'import jax' 2>/dev/null || { echo "JAX is not installed"; return 77; }
    export OLYMPUS_KERNEL_CACHE=$out/kernels
    OLYMPUS_PLATFORMS=cpu on 1x1 "$BUILD/bench/bench" --table | grep -Ev '^(plan|program|reshard|collective|psum|allreduce|halo|control)' >"$table"
    for ((k = 0; k < shards; k++)); do
        # shellcheck disable=SC2046 # names of rows
        OLYMPUS_GPU_MEMORY=8000 rows_of --repeats 3 $(awk -v k=$k -v n=$shards 'NR % n == k { print $1 }' "$table") >/dev/null 2>&1 &
        awk -v k=$k -v n=$shards 'NR % n == k' "$table" | "${python[@]}" >/dev/null 2>&1 &
    done
    wait
    # shellcheck disable=SC2046
    rows_of --repeats 7 $(cut -f 1 "$table") >"$ours" 2>&1
    "${python[@]}" <"$table" >"$jax" 2>&1
    awk -F'\t' 'FNR == NR { jax[$1] = $2; next } $1 in jax && jax[$1] > 0 { printf "%.2f\t%s\t%.1f us\tJAX %.1f us\n", $2 / jax[$1], $1, $2 * 1e6, jax[$1] * 1e6 }' \
        "$jax" "$ours" | sort -rn >"$out/survey.ratios"
    cat "$out/survey.ratios"
    awk '$1 > 1 { slower++ } $1 > 1.1 { clearly++ } END { printf "%d rows beside JAX: %d take longer, %d more than 1.1 times as long\n", NR, slower, clearly; exit NR == 0 }' "$out/survey.ratios"
}

if ((${#inside[@]})); then
    "${inside[@]}"
    exit
fi
for name in "${steps[@]}"; do
    case $name in
    machine)
        step machine 60 machine
        report "machine" && sed 's/^/    /' "$out/machine" >>"$out/report.txt"
        ;;
    oracle)
        step oracle_1x16 150 oracle 1x16 "$BUILD/tests/oracle" tests/oracle
        step oracle_1x8 60 oracle 1x8 "$BUILD/tests/oracle" "${sharded[@]}"
        ;;
    programs)
        step programs 150 tests
        step random_1x8 40 random_programs 1x8 20
        [[ $emulated ]] || step random_compiled_1x1 40 random_programs 1x1 15 OLYMPUS_COMPILE_AFTER=0
        ;;
    examples)
        step examples_1x8 120 examples 1x8
        ;;
    processes) # of one card: they take turns, and messages go through host memory
        for layout in 2x4 4x2; do
            step "oracle_$layout" 90 oracle $layout "$BUILD/tests/oracle" "${sharded[@]}"
        done
        step examples_2x4 90 examples 2x4
        ;;
    sanitizers)
        for tool in memcheck racecheck synccheck initcheck; do
            if [[ $emulated || $platform == cpu ]]; then
                skip "$tool" "needs a real GPU"
            elif ! command -v compute-sanitizer >/dev/null; then
                skip "$tool" "compute-sanitizer is not installed"
            else
                step "$tool" 60 sanitizer "$tool"
            fi
        done
        if [[ $emulated ]]; then
            EMULATED_RACES=1 step races_emulated 60 oracle 1x2 "$BUILD/tests/oracle" tests/oracle/{toy,heat}
        fi
        ;;
    rates)
        [[ $platform == cpu ]] && { skip rates "no GPU"; continue; }
        step rates 40 rates && report "what the card can do" && sed 's/^/    /' "$out/rates" >>"$out/report.txt"
        ;;
    bench)
        step bench 120 bench ${ROWS-call call_wait sin chain sum matmul heat1d heat2d heat3d gray_scott each_add each_exp chains* columns* rows* whole* transposed* sorts* products* windows* work*}
        report "bench" && sed 's/^/    /' "$out/bench" >>"$out/report.txt"
        ;;
    peers)
        if [[ $emulated || $platform == cpu ]]; then
            skip peers "needs a real GPU"
        else
            step peers 120 others python3 tests/gpu/peers.py
            report "JAX and CuPy" && sed 's/^/    /' "$out/peers" >>"$out/report.txt"
        fi
        ;;
    survey)
        if [[ $emulated || $platform == cpu ]]; then
            skip survey "needs a real GPU"
        else
            step survey 400 survey
            report "all rows beside JAX" && sed 's/^/    /' "$out/survey" >>"$out/report.txt"
        fi
        ;;
    *) echo "no step is called '$name'" >&2; exit 2 ;;
    esac
done
[[ -z $emulated && $platform == cuda ]] || report "no figure above is a GPU's"
echo "figures: $out/report.txt"
echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
