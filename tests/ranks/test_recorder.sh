#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits timeout=300  `oly report` names the rank at fault, whatever has happened to it, and `oly status` tells what the ranks of a running job
# wait for; both to their own user only, and without disturbing the job. The faulty programs are in test_recorder.c.
set -u
cd "$(dirname "$0")/../.." || exit
build=$(realpath "${BUILD:-build}")
program=$build/tests/test_recorder oly=$build/launch/oly/oly
export OLYMPUS_NUM_THREADS=1 OLYMPUS_RECORDER=100 OLYMPUS_TIMEOUT=60
export ASAN_OPTIONS=detect_leaks=0:handle_abort=1:allow_user_segv_handler=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

ok() { echo "ok      $1"; passed=$((passed + 1)); }
bad() { echo "FAILED  $1"; [[ -n ${2-} ]] && sed 's/^/    | /' "$2"; failed=$((failed + 1)); }
# has NAME FILE PATTERN...: every pattern is in the file.
has() {
    local name=$1 file=$2 pattern
    shift 2
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { bad "$name: without: $pattern" "$file"; return; }
    done
    ok "$name"
}
# without NAME FILE PATTERN
without() { if grep -qE -- "$3" "$2"; then bad "$1: with: $3" "$2"; else ok "$1"; fi; }

# job HOW RANK [TIMEOUT]: a job of four ranks of which one fails, and its report.
job() {
    mkdir -p "$folder/$1"
    (
        cd "$folder/$1" || exit
        OLYMPUS_TIMEOUT=${3:-60} OLYMPUS_JOB=job-$1 OLYMPUS_SECRETARY=topsecretvalue "$OLDPWD/launch/olyrun" --time 60 -n 4 "$program" "$1" "$2" >output 2>&1 </dev/null
    )
    "$oly" report "$folder/$1" >"$folder/$1.report" 2>&1
}

# -- who is at fault --------------------------------------------------------------------------------------------------
job diverge 2
has "a diverged rank is named" "$folder/diverge.report" '^verdict: rank 2 made another call than the others: call [0-9]+ is .*oly_mul \(.*test_recorder.c:[0-9]+\) on rank 2' \
    'on ranks 0, 1, 3' '^rank 0 .* met a divergence'
has "and the file is announced once" "$folder/diverge/output" 'flight recorder \(diverged\) written to .*/olympus-recorder.job-diverge.[0-9]; for all ranks: oly report '
[[ $(grep -c 'flight recorder' "$folder/diverge/output") == 1 ]] && ok 'by one rank' || bad 'announced by more than one rank' "$folder/diverge/output"
[[ $(stat -c %a "$folder"/diverge/olympus-recorder.job-diverge.2) == 600 ]] && ok 'of mode 600' || bad 'recorders have another mode'
grep -qr topsecret "$folder/diverge" && bad 'the environment is in a recorder' || ok 'without the environment'

job kill 2
has "a killed rank is named, which has no recorder" "$folder/kill.report" '^verdict: rank 2 \(process [0-9]+ on [^ ]+\) was killed' 'its last call was oly_(sum|item) \(.*test_recorder.c:[0-9]+\)' \
    'none of rank 2' '^rank 2 .* no recorder; seen by rank' '^rank 0 .*waiting for .* in oly_sum \(.*\) for rank 2'
[[ ! -e $folder/kill/olympus-recorder.job-kill.2 ]] && ok 'and has none indeed' || bad 'a killed rank has a recorder'

job stop 1 5
has "a stopped rank is named" "$folder/stop.report" '^verdict: rank 1 \(process [0-9]+ on [^ ]+\) is stopped' '^rank [023] .* gave up waiting'
job crash 3
has "a crashed rank is named" "$folder/crash.report" '^verdict: rank 3 \(process [0-9]+ on [^ ]+\) crashed: SIGSEGV, access to address 0x8; its last call was oly_(sum|item) \(.*test_recorder.c:[0-9]+\)' \
    '^rank 3 .* crashed'
job overflow 0
has "so is one whose stack has overflowed" "$folder/overflow.report" '^verdict: rank 0 .* crashed: SIGSEGV'
mkdir -p "$folder/worker"
(cd "$folder/worker" && OLYMPUS_NUM_THREADS=4 OLYMPUS_JOB=job-worker "$OLDPWD/launch/olyrun" --time 60 -n 1 -d 4 "$program" worker 0) >"$folder/worker.out" 2>&1 </dev/null
"$oly" report "$folder/worker" >"$folder/worker.report" 2>&1
has "and a worker's stack" "$folder/worker.report" '^verdict: rank 0 .* crashed: SIGSEGV'
job abort 1
has "and one that aborts" "$folder/abort.report" '^verdict: rank 1 .* crashed: SIGABRT'
job exit 1
has "a rank that leaves is named" "$folder/exit.report" '^verdict: rank 1 .* left the job: the program called exit without oly_finalize'
job sleep 1 5
has "a rank that does something else is named" "$folder/sleep.report" '^verdict: the others wait for rank 1, which does not wait' 'its last call was oly_(sum|item)'
mkdir "$folder/time"
(cd "$folder/time" && OLYMPUS_JOB=job-time "$OLDPWD/launch/olyrun" --time 3 -n 2 -d 2 "$program" sleep 1 >output 2>&1 </dev/null)
"$oly" report "$folder/time" >"$folder/time.report" 2>&1
has "a job that is out of time leaves its recorders" "$folder/time.report" '^2 recorders' '^verdict: .*rank 1, which does not wait'
job shape 2
[[ -z $(ls "$folder"/shape/olympus-recorder.* 2>/dev/null) ]] && ok 'an ordinary error writes no recorder' || bad 'an ordinary error writes a recorder' "$folder/shape/output"
without 'and says nothing of it' "$folder/shape/output" 'flight recorder'
job late_shape 2
without 'nor if the others have waited for the rank that meets it' "$folder/late_shape/output" 'flight recorder'
has 'which says what is wrong' "$folder/late_shape/output" 'rank 2: oly_matmul .*they must be equal'

# -- forms of the report ----------------------------------------------------------------------------------------------
"$oly" report "$folder/crash" --json >"$folder/json" 2>&1
has 'the report as JSON' "$folder/json" '"verdict": "crashed", "guilty": \[3\]'
mkdir "$folder/all" && cp "$folder"/kill/olympus-recorder.* "$folder"/crash/olympus-recorder.* "$folder/all"
echo '{"traceEvents":[]}' >"$folder/trace.json"
"$oly" report "$folder/trace.json" "$folder/crash" >"$folder/beside" 2>&1
has 'a file that is no recorder leaves the others' "$folder/beside" 'trace.json: a timeline' '^verdict: rank 3 .*crashed'
"$oly" report "$folder/all" --job job-kill >"$folder/chosen" 2>&1
has 'one job of several' "$folder/chosen" '^job job-kill: 4 ranks'
"$oly" report "$folder/all" >"$folder/last" 2>&1
has 'the last of several jobs' "$folder/last" '^job job-crash: 4 ranks' '--job for the others: job-kill'
"$oly" report "$folder/kill/olympus-recorder.job-kill" >"$folder/prefix" 2>&1
has 'files by their beginning' "$folder/prefix" '^verdict: rank 2'

# -- damaged and hostile files ----------------------------------------------------------------------------------------
mkdir "$folder/damaged"
good=$folder/crash/olympus-recorder.job-crash.3
sed 's/SIGSEGV/SIGBUS!/' "$good" >"$folder/damaged/olympus-recorder.changed.0"
printf 'olympus-recorder\t1\nrank\t5\nranks\t4\n' >"$folder/damaged/olympus-recorder.short.0"
head -c 100000 /dev/urandom >"$folder/damaged/olympus-recorder.noise.0"
head -c 3000 "$good" >"$folder/damaged/olympus-recorder.cut.3"
mkfifo "$folder/damaged/olympus-recorder.pipe.0"
timeout 20 "$oly" report "$folder/damaged" >"$folder/hostile" 2>&1
has 'damaged files are refused by name, whole beginnings used' "$folder/hostile" 'changed.0: line [0-9]+: the checksum is another' \
    'short.0: it ends before' 'noise.0: line 1: ' 'pipe.0: this is no file' '^verdict: rank 3 .*crashed' 'the recorder is cut short'
printf 'olympus-recorder\t1\njob\t\033]0;evil\007x\nrank\t0\nranks\t1\nhost\th\033[31m\npid\t1\nprogram\tp\nreason\tasked\nbecause\t<script>\n' >"$folder/evil"
"$oly" report "$folder/evil" >"$folder/evil.out" 2>&1
without 'control characters do not reach the terminal' "$folder/evil.out" $'\033'

# -- a running job ----------------------------------------------------------------------------------------------------
export XDG_RUNTIME_DIR=$folder/runtime OLYMPUS_JOB=job-status
mkdir -m 700 "$XDG_RUNTIME_DIR"
(cd "$folder" && "$OLDPWD/launch/olyrun" --time 30 -n 4 "$program" sleep 2 >"$folder/status.output" 2>&1 </dev/null) &
for _ in $(seq 100); do
    "$oly" status job-status >"$folder/status" 2>&1 && [[ $(grep -c 'waiting for .* for rank 2' "$folder/status") == 3 ]] && break
    sleep 0.1
done
has 'status tells what each rank waits for' "$folder/status" '^job job-status: 4 ranks of .*/test_recorder' \
    '^rank 0 .*waiting for [0-9.]+ s in oly_sum \(.*test_recorder.c:[0-9]+\) for rank 2' '^rank 2 .* runs, not waiting; its last call is oly_(sum|item)' 'memory .*MiB' 's ago '
base=$XDG_RUNTIME_DIR/olympus-$(id -u)
[[ $(stat -c %a "$base" "$base/job-status" "$base/job-status/0" | tr '\n' ' ') == '700 700 600 ' ]] && ok 'the socket is private' || bad 'modes of the socket'
"$oly" status >"$folder/single" 2>&1
has 'without a name the only job' "$folder/single" '^job job-status'
"$oly" status job-status --json >"$folder/json" 2>&1
has 'status as JSON' "$folder/json" '"waits_for": 2'
"$oly" status job-status --dump >"$folder/dumped" 2>&1
"$oly" report "$folder" --job job-status >"$folder/asked" 2>&1
has 'status --dump writes the recorders' "$folder/asked" '^4 recorders' 'was asked for its state'
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
    chmod 755 "$folder" "$XDG_RUNTIME_DIR" "$base" "$base/job-status"
    chmod 777 "$base/job-status/0"
    mkdir "$folder/stranger.home"
    ln -s "$base" "$folder/stranger.home/olympus-65534"
    chown 65534 "$folder/stranger.home"
    cp "$oly" "$folder/oly"
    XDG_RUNTIME_DIR=$folder/stranger.home setpriv --reuid 65534 --clear-groups "$folder/oly" status job-status >"$folder/stranger" 2>&1
    has 'other users are refused' "$folder/stranger" 'answers its own user only'
    without 'and learn nothing' "$folder/stranger" 'rank '
    chmod 700 "$folder" "$XDG_RUNTIME_DIR" "$base" "$base/job-status"
fi
pid=$(sed -n 's/^rank 0  [^:]*:\([0-9]*\) .*/\1/p' "$folder/status")
rm -f "$folder"/olympus-recorder.*
kill -QUIT "$pid"
for _ in $(seq 50); do [[ -s $folder/olympus-recorder.job-status.0 ]] && break; sleep 0.1; done
has 'SIGQUIT asks for a recorder' "$folder/olympus-recorder.job-status.0" 'reason	asked' 'because	SIGQUIT'
kill -0 "$pid" && ok 'and the process goes on' || bad 'SIGQUIT has ended the process'
kill -KILL "$pid"
wait
"$oly" status job-status >"$folder/gone" 2>&1
has 'the sockets of killed processes are stale' "$folder/gone" 'no rank of job job-status runs'
[[ ! -e $base/job-status ]] && ok 'and are removed' || bad "stale sockets stay: $(ls -A "$base/job-status")"
(cd "$folder" && OLYMPUS_NUM_CPU_DEVICES=4 OLYMPUS_STATUS=0 exec "$program" sleep 0 >/dev/null 2>&1 </dev/null) &
pid=$!
sleep 0.7
[[ ! -e $base/job-status ]] && ok 'OLYMPUS_STATUS=0: no socket' || bad 'a socket, though OLYMPUS_STATUS=0'
kill -KILL $pid
wait 2>/dev/null

# -- where files go ---------------------------------------------------------------------------------------------------
mkdir "$folder/there" "$folder/few"
(cd "$folder/few" && OLYMPUS_NUM_CPU_DEVICES=4 OLYMPUS_RECORDER_DIR=$folder/there "$program" crash 0 >/dev/null 2>&1)
[[ -e $folder/there/olympus-recorder.job-status.0 ]] && ok 'OLYMPUS_RECORDER_DIR' || bad 'OLYMPUS_RECORDER_DIR is not used'
touch "$folder"/few/olympus-recorder.x.{1,2,3}
(cd "$folder/few" && OLYMPUS_NUM_CPU_DEVICES=4 TMPDIR=$folder/few OLYMPUS_RECORDER=3 "$program" crash 0 >"$folder/few.output" 2>&1)
[[ ! -e $folder/few/olympus-recorder.job-status.0 ]] && ok 'no more files than OLYMPUS_RECORDER' || bad 'too many files'
has 'which is said' "$folder/few.output" 'cannot be written to .*OLYMPUS_RECORDER'
(cd "$folder/few" && OLYMPUS_NUM_CPU_DEVICES=4 OLYMPUS_RECORDER=0 "$program" crash 0 >"$folder/none.output" 2>&1)
without 'OLYMPUS_RECORDER=0 writes and says nothing' "$folder/none.output" 'flight recorder'

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
