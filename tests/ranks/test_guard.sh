#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: alone timeout=120  How olyrun ends jobs, whatever happens to their ranks, to mpirun and to olyrun itself: in bounded time nothing is left
# of them, neither processes nor files in the temporary folder and /dev/shm; signals are forwarded; --time. The jobs mostly sleep, so
# several run at once.
# shellcheck disable=SC2016 # the programs expand their variables themselves
set -u
cd "$(dirname "$0")/../.." || exit
run=launch/olyrun
program=${BUILD:-build}/tests/test_waits
${MPIRUN:-mpirun} --version 2>&1 | grep -q 'Open MPI' || exit 77
folder=$(mktemp -d)
export TMPDIR=$folder/tmp OLYMPUS_TIMEOUT=60 ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
mkdir "$TMPDIR"
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; sleep 0.1; rm -rf "$folder"' EXIT
passed=0 failed=0

# begin NAME ARGUMENT...: olyrun with these, in the background.
begin() {
    local name=$1
    shift
    "$run" "$@" >"$folder/$name" 2>&1 </dev/null &
    pid[$name]=$!
}
# asleep NAME COUNT: waits until the job has printed "asleep" COUNT times.
asleep() {
    local k
    for ((k = 0; k < 300; k++)); do
        [[ $(grep -c asleep "$folder/$1") -ge $2 ]] && return
        sleep 0.1
    done
    echo "$1 did not begin"
}
launcher_of() { pgrep -P "${pid[$1]}"; }
ranks_of() { pgrep -P "$(launcher_of "$1")"; }

# ended NAME STATUS SECONDS [PATTERN]: waits for it: its status (a pattern), within what time, and what it printed.
ended() {
    local name=$1 wanted=$2 most=$3 pattern=${4-} begin=$SECONDS status wrong=
    wait "${pid[$name]}"
    status=$?
    # shellcheck disable=SC2053
    [[ $status == $wanted ]] || wrong="status $status, not $wanted"
    ((SECONDS - begin <= most)) || wrong+=" after $((SECONDS - begin)) s"
    [[ -z $pattern ]] || grep -qE -- "$pattern" "$folder/$name" || wrong+=" without: $pattern"
    judge "$name" "$wrong" "$folder/$name"
}
judge() {
    if [[ -z $2 ]]; then
        echo "ok      $1"
        passed=$((passed + 1))
    else
        echo "FAILED  $1: $2"
        [[ -f ${3-} ]] && sed 's/^/    | /' "$3"
        failed=$((failed + 1))
    fi
}
sleeper='echo asleep; sleep 61; echo awake'
stubborn='trap "" TERM INT; echo asleep; sleep 61; sleep 61; echo awake'

for job in killed-launcher stopped-launcher ended-launcher term int hup killed-guard twice; do begin $job -n 2 --grace 2 sh -c "$sleeper"; done
MPIRUN="${MPIRUN:-mpirun} --host localhost:2" begin on-hosts -n 2 --grace 2 sh -c "$sleeper"
begin killed-ranks -n 2 --grace 20 sh -c "$sleeper"
begin limit --time 1 --grace 2 -n 2 sh -c "$sleeper"
begin limit-minutes --timeout 0:02 --grace 2 -n 2 sh -c "$stubborn"
begin stubborn -n 2 --grace 2 sh -c "$stubborn"
begin usr1 -n 2 sh -c 'trap "echo got USR1; exit 5" USR1; echo asleep; sleep 61 & wait; exit 6'
begin mpi -n 2 -d 2 "$program" sum sleep 1 "$folder/a.png"
begin planning -n 2 -d 2 "$program" planning kill 1 "$folder/a.png"
begin others-plan -n 2 -d 2 "$program" others-plan kill 0 "$folder/a.png"
begin status -n 2 sh -c 'sleep 0.2; exit 7'
for job in killed-launcher stopped-launcher ended-launcher term int hup killed-guard killed-ranks on-hosts twice stubborn usr1; do asleep $job 2; done

kill -9 "$(launcher_of killed-launcher)"
kill -STOP "$(launcher_of stopped-launcher)"
# shellcheck disable=SC2046
kill -9 $(ranks_of stopped-launcher)
# Ranks may be left on other hosts, which MPIRUN's options name: the launcher has all its time.
late=$(launcher_of on-hosts)
kill -STOP "$late"
# shellcheck disable=SC2046
kill -9 $(ranks_of on-hosts)
{ sleep 5; kill -CONT "$late"; } &
kill -TERM "$(launcher_of ended-launcher)"
kill -TERM "${pid[term]}" "${pid[stubborn]}"
kill -INT "${pid[int]}"
kill -HUP "${pid[hup]}"
kill -USR1 "${pid[usr1]}"
kill -INT "${pid[twice]}"
sleep 0.5
kill -INT "${pid[twice]}" 2>/dev/null
# shellcheck disable=SC2046
kill -9 $(ranks_of killed-ranks)
kill -9 "${pid[killed-guard]}"

ended status 7 10
ended killed-launcher 137 10 'the launcher has ended, but ranks have not: ending them'
ended stopped-launcher 1 10 'all ranks have ended, but the launcher has not: ending it'
ended ended-launcher '[1-9]*' 10
ended killed-ranks 137 25
ended on-hosts 137 15
ended term '[1-9]*' 10
ended int '[1-9]*' 10
ended hup '[1-9]*' 10
ended twice '[1-9]*' 10
ended stubborn '[1-9]*' 10
ended usr1 5 10 'got USR1'
ended limit 124 10 'the time limit of 1 s is reached: ending the job'
ended limit-minutes 124 10 'the time limit of 2 s is reached'
ended killed-guard 137 10
ended planning 137 25
ended others-plan 137 25

# A job of MPI has files; its launcher and one of its ranks are killed at once.
for ((k = 0; k < 300; k++)); do
    grep -q 'rank 1 is process' "$folder/mpi" && break
    sleep 0.1
done
# segments_of NAME: the files that its ranks have in /dev/shm.
segments_of() { printf '/dev/shm/vader_segment.*.%x.*' "$(sed -n 's/.* is process .* of job //p' "$folder/$1" | head -n 1)"; }
judge 'a job has segments' "$(compgen -G "$(segments_of mpi)" >/dev/null || echo "no $(segments_of mpi)")"
# shellcheck disable=SC2046
kill -9 $(ranks_of mpi) "$(launcher_of mpi)"
ended mpi 137 10
for job in mpi planning others-plan; do judge "no segments are left of $job" "$(compgen -G "$(segments_of "$job")")"; done

sleep 1
judge 'no process is left' "$(pgrep -fa "^sleep 61|$TMPDIR|^$program sum sleep")"
judge 'no folder is left' "$(find "$TMPDIR" -mindepth 1)"

# Ranks that are killed as early as can be.
for ((k = 0; k < 6; k++)); do
    begin "early-$k" -n 4 --grace 2 -d 1 "$program" none none 0 "$folder/b.png"
done
for ((k = 0; k < 30; k++)); do
    for ((j = 0; j < 6; j++)); do
        launcher=$(launcher_of "early-$j") && early=$(pgrep -P "$launcher") && kill -9 $early 2>/dev/null
    done
    sleep 0.05
done
for ((k = 0; k < 6; k++)); do ended "early-$k" '[0-9]*' 10; done
judge 'no folder is left of those' "$(find "$TMPDIR" -mindepth 1)"

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
