#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: alone timeout=120  Every wait is bounded and names the ranks it waits for, whatever happens to a rank: it is late, never arrives, is
# stopped or killed, leaves or crashes, before any kind of call. The faulty programs are in test_waits.c. They mostly sleep, so several
# run at once.
set -u
cd "$(dirname "$0")/../.." || exit
program=${BUILD:-build}/tests/test_waits
export OLYMPUS_NUM_CPU_DEVICES=2 OLYMPUS_NUM_THREADS=1
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 names=()

# begin NAME RANKS PHASE FAULT RANK: starts a job (olyrun: mpirun itself may never end); wait_for_jobs waits for all of them.
begin() {
    local name=$1
    names+=("$name")
    (
        start=$EPOCHREALTIME
        launch/olyrun --time 80 -n "$2" "$program" "$3" "$4" "$5" "$folder/$name.png" >"$folder/$name" 2>&1 </dev/null
        echo "$? $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", b - a }')" >"$folder/$name.end"
    ) &
}
wait_for_jobs() { wait; }

# ended NAME CONDITION SECONDS PATTERN...: how the job ended, within what time, and what it must have printed.
ended() {
    local name=$1 condition=$2 most=$3 status seconds pattern wrong=
    shift 3
    read -r status seconds <"$folder/$name.end"
    case $condition in
    well) [[ $status == 0 ]] || wrong="status $status" ;;
    badly) [[ $status != 0 && $status != 124 ]] || wrong="status $status" ;;
    esac
    ((seconds <= most)) || wrong+=" after $seconds s"
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$folder/$name" || wrong+=" without: $pattern"
    done
    if [[ -z $wrong ]]; then
        echo "ok      $name"
        passed=$((passed + 1))
    else
        echo "FAILED  $name: $wrong"
        sed 's/^/    | /' "$folder/$name"
        failed=$((failed + 1))
    fi
}

declare -A call=([init]=oly_init [sync]='oly_sync' [sum]=oly_sum [put]=oly_device_put [gather]=oly_process_allgather
    [png]=oly_write_png [finalize]=oly_finalize [exit]='the end of the program')
declare -A before=([sync]=oly_sync [sum]=oly_sync [put]=oly_block_until_ready [gather]=oly_sync [png]=oly_process_allgather
    [finalize]=oly_write_png [exit]='')

# A late rank causes a notice, and no error.
export OLYMPUS_TIMEOUT=60 OLYMPUS_WAIT_NOTICE=1
begin late 2 sum nap 1
begin late-begin 2 init nap 0
begin late-end 2 finalize nap 1
wait_for_jobs
ended late well 45 '^olympus: rank 0 waits for rank 1 in oly_sum[a-z_]* \(tests/ranks/test_waits.c:[0-9]+\)$'
ended late-begin well 45 '^olympus: rank 1 waits for rank 0 in oly_init'
ended late-end well 45 '^olympus: rank 0 waits for rank 1 in oly_finalize'

# One that never arrives ends the job: before every kind of call, rank 0 or another.
export OLYMPUS_TIMEOUT=3
for phase in init sync sum put gather png finalize exit; do begin "sleep-$phase" 2 "$phase" sleep 1; done
wait_for_jobs
for phase in init sync sum put gather png finalize exit; do
    ended "sleep-$phase" badly 45 "waits for rank 1 in ${call[$phase]}" "OLY_TIMEOUT" "^olympus: rank 0: .*waited 3 s|within 3 s" \
        ${before[$phase]:+"rank 1 is not waiting, its last call is ${before[$phase]} \(tests/ranks/test_waits.c:[0-9]+\)"}
done
for phase in init sum finalize; do begin "stop-$phase" 3 "$phase" stop 0; done
for phase in sync gather exit; do begin "stop-$phase" 3 "$phase" stop 2; done
wait_for_jobs
for phase in sum finalize; do ended "stop-$phase" badly 45 'rank 0 \(process [0-9]+\) is stopped, its last call is oly_'; done
for phase in sync gather exit; do ended "stop-$phase" badly 45 'rank 2 \(process [0-9]+\) is stopped, its last call is oly_'; done
ended stop-init badly 45 'waited 3 s inside MPI_Init for rank 0; rank 0 has not called oly_init'

# Ranks of other nodes describe themselves, or their neighbours do; of a stopped rank alone on its node the last message is known.
OLYMPUS_NODE_RANKS=1 begin far-computes 2 sum sleep 1
OLYMPUS_NODE_RANKS=1 begin far-late 2 sync sleep 0
OLYMPUS_NODE_RANKS=2 begin far-chain 4 put stop 3
OLYMPUS_NODE_RANKS=1 begin far-stopped 3 finalize stop 2
OLYMPUS_NODE_RANKS=1 begin far-end 2 exit sleep 1
wait_for_jobs
ended far-computes badly 45 'waits for rank 1 in oly_sum' \
    'waited 3 s in oly_sum.* for rank 1; rank 1 is not waiting, its last call is oly_sync \(tests/ranks/test_waits.c:[0-9]+\)'
ended far-late badly 45 'waits for rank 0 in oly_sync' \
    'waited 3 s in oly_sync.* for rank 0; rank 0 is not waiting, its last call is oly_sync \(tests/ranks/test_waits.c:[0-9]+\)'
ended far-chain badly 45 ' for ranks? (0, )?3; rank 3 \(process [0-9]+\) is stopped, its last call is oly_'
ended far-stopped badly 45 \
    'waiting for rank 2; rank 2 is on another node and does not answer, its last call known here is oly_[a-z_]+ \(tests/ranks/test_waits.c:[0-9]+\)'
ended far-end badly 45 'inside MPI_Finalize, after oly_finalize on all ranks, for ranks of other nodes'

# One that has exited ends it, too.
export OLYMPUS_TIMEOUT=10
for fault in kill exit abort; do
    for phase in init put finalize; do begin "$fault-$phase" 2 "$phase" $fault 0; done
    for phase in sum png exit; do begin "$fault-$phase" 2 "$phase" $fault 1; done
    wait_for_jobs
    for phase in init put finalize sum png exit; do ended "$fault-$phase" badly 45; done
done

# So does one that is killed while it plans a function for seconds, or while the others do.
for fault in kill stop; do
    begin "$fault-planning" 2 planning $fault 1
    begin "$fault-others-plan" 2 others-plan $fault 0
done
wait_for_jobs
for fault in kill stop; do
    ended "$fault-planning" badly 45
    ended "$fault-others-plan" badly 45
    if grep -q 'rank 1 has planned' "$folder/$fault-planning"; then
        echo "FAILED  $fault-planning: the function was planned before"
        failed=$((failed + 1))
    fi
done

# A job has ended when its launcher has; the kernel then still takes back the memory of ranks that were killed while they planned.
for ((tenths = 0; tenths < 100; tenths++)); do
    pgrep -f "^$program " >/dev/null || break
    sleep 0.1
done
if pgrep -f "^$program " >/dev/null; then
    echo 'FAILED  a rank is left behind 10 s after its job:'
    pgrep -f "^$program " | xargs ps -o pid,ppid,state,etime,wchan:20,args -p
    failed=$((failed + 1))
fi
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
