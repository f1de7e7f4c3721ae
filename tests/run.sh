#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the test programs and reports the results: tests/run.sh [NAME...]     (all of them, or test_NAME, NAME, NAME.sh)
#
# Each test_*.c below tests/ (already built) runs once per size named in the line "run:" at its top, see tests/support/check.h; each test_*.sh
# runs once (exit status 77: skipped). One line per run, output only of those that fail. The last line is
# "N passed, N failed, N skipped", counted in test functions where a program reports them, else in programs.
# A run that the launcher failed after all tests had passed is done once more, with a line "again" (improper_end).
#
# One test runs at a time for every four cores, and two on two to seven of them (a test computes on one core or waits for messages half
# of its time), those with the longest time limit first; the lines come as tests end. A test whose line says "run: alone" (it measures
# time) runs after the others, by itself; of those that say "one=NAME" (they use something that there is one of) one runs at a time. On
# fewer than eight cores, those that say "waits" (for other processes, most of the time) run one after the other beside the others, and
# those that share "one=NAME" with them, but do not say so, after all of them.
#
#   BUILD=build            where the programs are           MPIRUN=mpirun     Open MPI's or MPICH's
#   CHECK_TIMEOUT=120      seconds allowed for one run, twice as many where tests run beside each other
#   JOBS=n                 tests at a time (a quarter of the cores, at least 2 and at most 8); JOBS=1: one after the other, those that wait, too
set -u
cd "$(dirname "$0")/.." || exit
export BUILD=${BUILD:-build} MPIRUN=${MPIRUN:-mpirun}
limit_default=${CHECK_TIMEOUT:-120}
cores=$(nproc 2>/dev/null || echo 1)
jobs=${JOBS:-$((cores < 2 ? 1 : cores < 8 ? 2 : cores < 32 ? cores / 4 : 8))}
[[ -n ${JOBS:-} || $cores -ge 8 ]] && beside=no || beside=yes # tests that wait, beside the others
export JOBS=1 # for tests that run this script

# Open MPI: allow root and more ranks than cores, yield the core while waiting, and skip the search for networks (0.2 s
# less per start). Other implementations do not read these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}

# Tests provoke failures by the hundred: those of the flight recorder turn its files on.
export OLYMPUS_RECORDER=${OLYMPUS_RECORDER:-0}

# Sanitizers: MPI libraries never free some of their own memory, so leaks are checked in single processes only; and locks
# inside libraries that were compiled without the thread sanitizer would look like races.
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-ignore_noninstrumented_modules=1}
without_leaks="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
fixed_addresses=()
if [[ $BUILD == *thread* ]] && command -v setarch >/dev/null; then
    fixed_addresses=(setarch "$(uname -m)" -R) # gcc 12's thread sanitizer cannot place its tables otherwise on new kernels
fi

# On a machine with GPUs the tests are of CPU devices, too; those of GPUs say so.
export OLYMPUS_PLATFORMS=${OLYMPUS_PLATFORMS:-cpu}

scratch=$(mktemp -d)
# end_all PID...: ends these processes and all below them; `timeout` passes it on to the group of its command.
end_all() {
    local pid
    for pid in "$@"; do
        # shellcheck disable=SC2046 # one word a process
        end_all $(pgrep -P "$pid" 2>/dev/null)
        kill "$pid" 2>/dev/null
    done
}
# shellcheck disable=SC2046 # one word a process
trap 'end_all $(jobs -p); rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

passed=0 failed=0 skipped=0
suite_start=$EPOCHREALTIME

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'; }

# option NAME FILE: the value of NAME=... in the "run:" line of a source, or nothing.
option() { sed -n "1,3s/.*run:.*[[:space:]]$1=\([a-z0-9,]*\).*/\1/p" "$2" | head -n 1; }

# seconds_allowed SOURCE: for one run of it.
seconds_allowed() {
    local limit
    limit=$(option timeout "$1")
    [[ $jobs == 1 && $beside == no ]] || limit=$((2 * ${limit:-$limit_default}))
    echo "${limit:-$limit_default}"
}

# sizes FILE: lines "RANKS DEVICES_PER_RANK" ("-": not set) to run a program with.
sizes() {
    local ranks devices
    if sed -n 1,3p "$1" | grep -q 'run:.*[[:space:]]layouts'; then
        printf '%s\n' '1 8' '2 4' '4 2' '8 1'
        return
    fi
    ranks=$(option ranks "$1")
    devices=$(option devices "$1")
    for n in $(tr ',' ' ' <<<"${ranks:-1}"); do
        echo "$n ${devices:+$((devices / n))}" | sed 's/ $/ -/'
    done
}

mpi_kind=other
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' && mpi_kind=open-mpi

# start RANKS LIMIT PROGRAM: runs a program, alone or under mpirun, never longer than LIMIT seconds.
start() {
    local ranks=$1 limit=$2 program=$3
    if [[ $ranks == 1 && ($program == *environment || $program == *mixed_work) ]]; then # start MPI by themselves
        ASAN_OPTIONS=$without_leaks timeout -k 5 "$limit" "${fixed_addresses[@]}" "$program"
    elif [[ $ranks == 1 ]]; then
        timeout -k 5 "$limit" "${fixed_addresses[@]}" "$program"
    elif [[ $mpi_kind == open-mpi ]]; then
        ASAN_OPTIONS=$without_leaks timeout -k 5 $((limit + 10)) \
            "$MPIRUN" --timeout "$limit" -n "$ranks" "${fixed_addresses[@]}" "$program"
    else
        ASAN_OPTIONS=$without_leaks MPIEXEC_TIMEOUT=$limit timeout -k 5 $((limit + 10)) \
            "$MPIRUN" -n "$ranks" "${fixed_addresses[@]}" "$program"
    fi
}

# show PROGRAM: the output of a failed run, and of its crashed ranks from their files.
show() {
    sed 's/^/    | /' "$scratch/output"
    local left
    for left in "$1".rank-*; do
        [[ -s $left ]] && sed "s/^/    | ${left##*.}: /" "$left"
    done
    return 0
}

# report NAME SIZE STATUS START PROGRAM COUNTED: judges a finished run, prints its line, adds to the totals.
# COUNTED=yes: the program must have printed its counts, otherwise it ended early.
report() {
    local name=$1 size=$2 status=$3 start=$4 program=$5 counted=$6
    local seconds counts p=0 f=0 s=0 verdict
    seconds=$(seconds_since "$start")
    counts=$(grep -ao 'CHECK: [0-9]* passed, [0-9]* failed, [0-9]* skipped' "$scratch/output" | tail -n 1)
    if [[ -n $counts ]]; then
        read -r _ p _ f _ s _ <<<"$counts"
        [[ $status != 0 && $f == 0 ]] && f=1
    elif [[ $status == 0 && $counted == no ]]; then
        p=1
    elif [[ $status == 77 && $counted == no ]]; then
        s=1
    else
        f=1
    fi
    verdict=ok
    [[ $p == 0 && $s != 0 ]] && verdict=skipped
    [[ $f != 0 ]] && verdict=FAILED
    printf '%-8s %-32s %-20s %4d passed %3d failed %3d skipped %8s s\n' $verdict "$name" "$size" "$p" "$f" "$s" "$seconds"
    if [[ $verdict == FAILED ]]; then
        case $status in
        110 | 124 | 137 | 255) echo "    | exit status $status: out of time, or killed" ;;
        *) echo "    | exit status $status" ;;
        esac
        show "$program"
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# improper_end STATUS: the launcher ended with that status although every test had passed and every rank ended well. On a machine that stalls,
# Open MPI 4.1 may take a rank for lost while that rank leaves MPI_Finalize: it has forgotten its process already, and names PID 0.
improper_end() {
    [[ $1 != 0 ]] && grep -aqE 'exited due to process rank [0-9]+ with PID 0 on$' "$scratch/output" &&
        grep -aqE '^node .* exiting improperly' "$scratch/output" &&
        grep -ao 'CHECK: [0-9]* passed, [0-9]* failed' "$scratch/output" | tail -n 1 | grep -q ' 0 failed'
}

run_program() {
    local source=$1 program=$2 name limit ranks devices begin status tries counted=no
    name=$(basename "$program")
    limit=$(seconds_allowed "$source")
    grep -q 'CHECK_MAIN *(' "$source" && counted=yes
    while read -r ranks devices <&3; do
        local size="ranks=$ranks" environment=()
        if [[ $devices != - ]]; then
            size+=" devices=$((ranks * devices))"
            environment=(OLYMPUS_NUM_CPU_DEVICES="$devices")
            [[ ${OLYMPUS_PLATFORMS-} == cuda* ]] && environment+=(OLYMPUS_DEVICES_PER_GPU="$devices")
        fi
        for tries in 1 2; do
            rm -f "$program".rank-*
            begin=$EPOCHREALTIME
            (
                for setting in "${environment[@]}"; do export "${setting?}"; done
                start "$ranks" "$limit" "$program"
            ) >"$scratch/output" 2>&1 </dev/null
            status=$?
            if [[ $tries == 2 ]] || ! improper_end $status; then break; fi
            echo "again    $name $size: the launcher failed (status $status) after all tests had passed: Open MPI lost a rank that left MPI_Finalize"
        done
        report "$name" "$size" $status "$begin" "$program" $counted
        rm -f "$program".rank-*
    done 3< <(sizes "$source")
}

run_script() {
    local source=$1 name limit begin
    name=$(basename "$source")
    limit=$(seconds_allowed "$source")
    begin=$EPOCHREALTIME
    ASAN_OPTIONS=$without_leaks timeout -k 5 "$limit" bash "$source" >"$scratch/output" 2>&1 </dev/null
    report "$name" "" $? "$begin" "$source" no
}

# wanted NAME: true when no names were given, or this one was.
wanted() {
    [[ ${#names[@]} == 0 ]] && return 0
    local name
    for name in "${names[@]}"; do
        [[ $1 == "$name" || $1 == "test_$name" || $1 == "test_$name.sh" ]] && return 0
    done
    return 1
}

# run_test SOURCE: one test, all its sizes.
run_test() {
    case $1 in
    *.sh) run_script "$1" ;;
    *) run_program "$1" "$BUILD/tests/$(basename "$1" .c)" ;;
    esac
}

# begin_job SOURCE...: runs these tests, one after the other, in the background. Their lines and counts go to files of the job.
n_begun=0
begin_job() {
    local job=$scratch/job-$n_begun
    n_begun=$((n_begun + 1))
    mkdir "$job"
    (
        trap - EXIT
        scratch=$job passed=0 failed=0 skipped=0
        for source in "$@"; do run_test "$source"; done
        echo "$passed $failed $skipped" >"$job/counts.part"
        mv "$job/counts.part" "$job/counts"
    ) >"$job/lines" 2>&1 &
}

# print_finished: the lines of jobs that have ended since the last call.
print_finished() {
    local job p f s
    for job in "$scratch"/job-*; do
        [[ -e $job/counts ]] || continue
        cat "$job/lines"
        read -r p f s <"$job/counts"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        rm -r "$job"
    done
}

names=("$@")
# Lines "LIMIT SOURCE", by limit; those with the same limit by name, programs before scripts. Folders of any depth.
sources=()
while read -r limit source; do
    wanted "$(basename "$source" .c)" && sources+=("$source")
done < <(
    find tests -name 'test_*.c' -printf '1 %f %p\n' -o -name 'test_*.sh' -printf '2 %f %p\n' | LC_ALL=C sort | cut -d' ' -f3 |
        while read -r source; do echo "$(seconds_allowed "$source") $source"; done | if [[ $jobs == 1 ]]; then cat; else sort -s -k1,1nr; fi
)
if [[ ${#sources[@]} == 0 && ${#names[@]} != 0 ]]; then
    echo "tests/run.sh: no test is called ${names[*]}" >&2
    failed=1
fi

# says WORD SOURCE: is it in the line "run:"?
says() { sed -n 1,3p "$2" | grep -qE "run:(.* )?$1( |\$)"; }

alone=() waiting=() last=()
declare -A shared=() awaited=() # one=NAME: its sources; whether some of them wait
for source in "${sources[@]}"; do
    [[ $beside == yes ]] && says waits "$source" && awaited[$(option one "$source")-]=yes
done
for source in "${sources[@]}"; do
    one=$(option one "$source")
    if [[ $jobs == 1 && $beside == no ]]; then
        alone+=("$source")
    elif [[ $beside == yes ]] && says waits "$source"; then
        waiting+=("$source")
    elif [[ -n ${one:+${awaited[$one-]-}} ]] || says alone "$source"; then
        last+=("$source")
    elif [[ $jobs == 1 ]]; then
        alone+=("$source")
    elif [[ -n $one ]]; then
        shared[$one]+=" $source"
    fi
done
begun=" ${alone[*]-} ${waiting[*]-} ${last[*]-} "
waiting_job=
if [[ ${#waiting[@]} != 0 ]]; then
    begin_job "${waiting[@]}"
    waiting_job=$!
fi
# begun_jobs: how many run, but for that of the tests that wait.
begun_jobs() { jobs -rp | grep -vcx "${waiting_job:-none}"; }
for source in "${sources[@]}"; do
    one=$(option one "$source")
    [[ $begun != *" $source "* ]] || continue
    while [[ $(begun_jobs) -ge $jobs ]]; do wait -n || true; done
    print_finished
    if [[ -n $one ]]; then
        begun+="${shared[$one]# } "
        # shellcheck disable=SC2086 # names of sources have no spaces
        begin_job ${shared[$one]}
    else
        begin_job "$source"
    fi
done
for source in ${alone[@]+"${alone[@]}"}; do run_test "$source"; done
while [[ -n $(jobs -rp) ]]; do
    wait -n || true
    print_finished
done
print_finished
for job in "$scratch"/job-*; do # killed before it could count
    [[ -e $job ]] || continue
    cat "$job/lines"
    echo 'FAILED   a test ended before it was counted'
    failed=$((failed + 1))
done
for source in ${last[@]+"${last[@]}"}; do run_test "$source"; done
echo "total time $(seconds_since "$suite_start") s"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
