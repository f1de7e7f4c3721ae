#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits timeout=120.  Processes started by hand on this machine meet and become one job: they print as under mpirun; wrong counts, ids,
# programs and secrets are errors that name them on every process; strangers and malformed messages are refused; a lost process
# ends the others; nothing is left behind. A line per check.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/cluster/check.sh
export OLYMPUS_NUM_CPU_DEVICES=2
toy=$build/examples/toy
export XDG_CACHE_HOME=$scratch/cache TMPDIR=$scratch/tmp OLYMPUS_RECORDER=0
mkdir "$TMPDIR"

# by_hand PORT N ID...: starts the toy program once per id; process k's output is in $scratch/k.out and $scratch/k.err, where k
# counts the ids. $statuses: theirs, in that order.
by_hand() {
    local port=$1 n=$2 k=0 pids=()
    shift 2
    for id; do
        timeout 60 "${program[@]:-$toy}" "127.0.0.1:$port" "$n" "$id" >"$scratch/$k.out" 2>"$scratch/$k.err" </dev/null &
        pids+=($!)
        k=$((k + 1))
    done
    statuses=
    for pid in "${pids[@]}"; do
        wait "$pid"
        statuses+="$? "
    done
    cat "$scratch"/[0-9].out >"$scratch/out"
    cat "$scratch"/[0-9].err >"$scratch/err"
}
named_by_all() { [ "$(grep -lE "$1" "$scratch"/[0-9].err | wc -l)" = "$2" ]; }
left() { for pid in $(pgrep -x olymeet); do [ "$(readlink "/proc/$pid/exe")" != "$(readlink -f "$build/launch/olymeet")" ] || echo "$pid"; done; }
clean() { rm -f "$scratch"/[0-9].{out,err}; }

by_hand "$(free_port)" 4 0 1 2 3
{ grep '^device' "$scratch/out" | sort; grep '^process' "$scratch/out" | sed 's/process=[0-9]*/process=*/' | sort -u; } >"$scratch/text"
check 'four processes print as under mpirun' diff "$scratch/text" tests/expected/toy.txt
check 'all end with success' test "$statuses" = '0 0 0 0 '
check 'each prints the sum' test "$(grep -c '^process=[0-3] ' "$scratch/out")" = 4
check 'nothing is said' test ! -s "$scratch/err"
check 'the secret made for this machine has mode 600' test "$(stat -c %a "$scratch/cache/olympus/secret")" = 600

clean
OLYMPUS_NUM_CPU_DEVICES=8 by_hand "$(free_port)" 1 0
check 'a job of one' test "$statuses" = '0 '

clean
export OLYMPUS_START_TIMEOUT=10
by_hand "$(free_port)" 4 0 1 1 3
check 'two processes of one id are named on all' named_by_all 'two processes have the number 1: pid [0-9]+ on .* and pid' 4
check 'and end with an error' test "$statuses" = '1 1 1 1 '
clean
port=$(free_port)
OLYMPUS_START_TIMEOUT=2 by_hand "$port" 3 0 1
check 'a missing process is named on all' named_by_all 'for process 2 of 3' 2
clean
OLYMPUS_NUM_CPU_DEVICES=4 by_hand "$port" 2 0 1
check 'the next job at this address meets at once' test "$statuses" = '0 0 '
clean
by_hand "$(free_port)" 3 0 1 5
check 'an id out of range' named_by_all 'process id 5 of 3 processes: ids are 0 to 2' 1
clean
port=$(free_port)
(timeout 20 "$toy" "127.0.0.1:$port" 3 2 2>"$scratch/9.err" >/dev/null) &
by_hand "$port" 4 0 1
wait
check 'another number of processes is named on all' named_by_all 'process 2 .* was started as one of 3 processes, process 0 as one of 4' 3

clean
OLYMPUS_START_TIMEOUT=1 by_hand "$(free_port)" 4 0 2
check 'who is missing is named on all' named_by_all 'waited 1 s at .* for processes 1 and 3 of 4' 2
clean
OLYMPUS_START_TIMEOUT=1 by_hand "$(free_port)" 2 1
check 'a missing process 0 is named' named_by_all 'process 1 waited 1 s for process 0 at .*Connection refused' 1

# A port at which another program listens and says nothing.
clean
mute=$(mktemp -p "$scratch")
python3 -c 'import socket, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
time.sleep(60)' >"$mute" &
listener=$!
until [ -s "$mute" ]; do sleep 0.05; done
OLYMPUS_START_TIMEOUT=1 by_hand "$(cat "$mute")" 2 0 1
kill "$listener"
wait "$listener" 2>/dev/null
check 'a port in use is named' grep -q 'process 0 cannot listen at .*: another program does.*choose another port' "$scratch/0.err"
check 'and by the others' grep -q 'process 1 waited 1 s .*a program is there, and does not answer' "$scratch/1.err"

# A port at which a job runs: one more process of it, and another job.
clean
port=$(free_port)
for id in 0 1; do
    OLYMPUS_COORDINATOR=127.0.0.1:$port OLYMPUS_NUM_PROCESSES=2 OLYMPUS_PROCESS_ID=$id OLYMPUS_EXPLAIN=1 \
        timeout 60 "$build/examples/heat2d" --size 64 --steps 1000000000 --no-check >"$scratch/running" 2>&1 </dev/null &
    running[id]=$!
done
for ((try = 0; try < 200; try++)); do grep -q plan "$scratch/running" && break; sleep 0.05; done
OLYMPUS_START_TIMEOUT=3 by_hand "$port" 2 0 1
check 'another job at the port of one that runs' named_by_all 'the 2 processes of a job have met at .* already; another job needs another port' 2
check 'which ends it' test "$statuses" = '1 1 '
clean
OLYMPUS_SECRET=other OLYMPUS_START_TIMEOUT=3 by_hand "$port" 2 0 1
check 'one with another secret' grep -q 'process 0 cannot listen at .*: another job of Olympus does, with another secret' "$scratch/0.err"
kill "${running[@]}"
wait "${running[@]}" 2>/dev/null

# Programs that differ.
cp "$toy" "$scratch/other"
objcopy --remove-section=.note.gnu.build-id "$scratch/other" 2>/dev/null
printf '\0' | dd of="$scratch/other" bs=1 seek=9 conv=notrunc 2>/dev/null
clean
port=$(free_port)
(timeout 20 "$scratch/other" "127.0.0.1:$port" 2 1 2>"$scratch/9.err" >/dev/null) &
by_hand "$port" 2 0
wait
check 'different programs are named on both' named_by_all 'process 0 runs the program .*toy .*process 1 .*other' 2

# Secrets.
clean
port=$(free_port)
(OLYMPUS_SECRET=one timeout 20 "$toy" "127.0.0.1:$port" 2 1 2>"$scratch/9.err" >/dev/null) &
OLYMPUS_SECRET=two OLYMPUS_START_TIMEOUT=3 by_hand "$port" 2 0
wait
check 'another secret is refused' grep -q 'the coordinator refuses this process' "$scratch/9.err"
check 'and counted' grep -q 'process 1 of 2; [0-9]* connections with another secret' "$scratch/0.err"
echo geheim >"$scratch/secret"
chmod 644 "$scratch/secret"
clean
OLYMPUS_SECRET_FILE=$scratch/secret by_hand "$(free_port)" 2 0
check 'a secret that others may read' named_by_all 'mode 644: others may read or write it; chmod 600' 1
chmod 600 "$scratch/secret"
clean
OLYMPUS_NUM_CPU_DEVICES=4 OLYMPUS_SECRET_FILE=$scratch/secret by_hand "$(free_port)" 2 0 1
check 'a file of mode 600' test "$statuses" = '0 0 '
clean
program=(env -u OLYMPUS_SECRET "$toy")
timeout 20 "$toy" "0.0.0.0:$(free_port)" 2 0 2>"$scratch/0.err"
check 'no secret beyond this machine' named_by_all 'need a shared secret: set OLYMPUS_SECRET' 1
program=()

# Variables instead of arguments, and incomplete ones.
clean
(OLYMPUS_COORDINATOR=127.0.0.1 timeout 20 "$toy" 2>"$scratch/0.err")
check 'what is missing is named' named_by_all 'missing is the number of processes \(OLYMPUS_NUM_PROCESSES\)' 1
clean
export OLYMPUS_COORDINATOR=127.0.0.1:$(free_port) OLYMPUS_NUM_PROCESSES=4
for id in 0 1 2 3; do OLYMPUS_PROCESS_ID=$id timeout 30 "$build/examples/toy" >"$scratch/$id.out" 2>"$scratch/$id.err" & done
wait
check 'variables do as well' test "$(cat "$scratch"/[0-3].out | grep -c 'got result: -0.1239873')" = 4
unset OLYMPUS_COORDINATOR OLYMPUS_NUM_PROCESSES

# Strangers at the door: a meeting of two, while others send what they like.
clean
port=$(free_port)
export OLYMPUS_NUM_CPU_DEVICES=4
timeout 30 "$toy" "127.0.0.1:$port" 2 0 >"$scratch/0.out" 2>"$scratch/0.err" &
for ((try = 0; try < 100; try++)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.05
done
for ((k = 0; k < 20; k++)); do (exec 3<>"/dev/tcp/127.0.0.1/$port" && head -c 4000 /dev/urandom >&3) 2>/dev/null; done
(exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'OLYMEET1%064d\377\377\377\377' 0 >&3) 2>/dev/null
timeout 30 "$toy" "127.0.0.1:$port" 2 1 >"$scratch/1.out" 2>"$scratch/1.err"
wait
check 'strangers do not keep the others from meeting' test "$(cat "$scratch"/[01].out | grep -c 'got result: -0.1239873')" = 2

# A process that is killed ends the others soon.
clean
export OLYMPUS_COORDINATOR=127.0.0.1:$(free_port) OLYMPUS_NUM_PROCESSES=3 OLYMPUS_NUM_CPU_DEVICES=1
pids=()
for id in 0 1 2; do
    OLYMPUS_PROCESS_ID=$id "$build/examples/heat2d" --size 64 --steps 1000000000 >"$scratch/$id.out" 2>"$scratch/$id.err" &
    pids[id]=$!
done
sleep 1.5
with=$(left | wc -l)
began=$EPOCHREALTIME
kill -9 "${pids[1]}"
wait "${pids[@]}" 2>/dev/null
check 'each process has its olymeet while it runs' test "$with" = 3
took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print (b - a < 5) ? "soon" : b - a }')
check 'a killed process ends its job soon' test "$took" = soon
check 'and is named' grep -qE "process 1 \\(pid ${pids[1]} on .*\\) ended without oly_finalize; its job ends" "$scratch/0.err"

for ((try = 0; try < 50; try++)); do [ -z "$(left)" ] && break; sleep 0.1; done
check 'no olymeet is left' test -z "$(left)"
check 'no folder is left' test -z "$(ls "$TMPDIR")"
finish
