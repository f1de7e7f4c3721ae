#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=300.  Programs that are killed or asked to stop go on from their checkpoints with the same bits: kill -9 of a rank at
# random moments, SIGUSR1 to all ranks, SIGTERM to one; a checkpoint of any number of ranks is read by any other. Between kills every
# folder step-... is whole. KILLS=200 tests/checkpoint/test_restart.sh kills that often. BUILD, MPIRUN as for the other tests.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
examples=$PWD/${BUILD:-build}/examples
command -v "${MPIRUN:-mpirun}" >/dev/null || { echo "no ${MPIRUN:-mpirun}: skipped"; exit 77; }
export OMPI_MCA_pml="${OMPI_MCA_pml-ob1}" OLYMPUS_NUM_THREADS=1
scratch=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp)") || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
cd "$scratch" || exit 1 # killed ranks leave records of their last events here
RANDOM=${SEED:-7}

check() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name"
        tail -n 5 "$scratch/out" "$scratch/err" | sed 's/^/      | /'
    fi
}

# run RANKS DEVICES PROGRAM...: standard output in $scratch/out.
run() {
    local ranks=$1 devices=$2
    shift 2
    "$root/launch/olyrun" -n "$ranks" -d "$devices" --time 100 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
}

# begin RANKS DEVICES PROGRAM...: in the background; $job is olyrun.
begin() {
    local ranks=$1 devices=$2
    shift 2
    "$root/launch/olyrun" -n "$ranks" -d "$devices" --time 100 "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
    job=$!
}

# ranks_of PROGRAM: the processes of the running job, by the folder of checkpoints that only this test has.
ranks_of() { pgrep -f "$examples/$1 .*$scratch" | while read -r pid; do [[ $(readlink "/proc/$pid/exe") == "$examples/$1" ]] && echo "$pid"; done; }

# The first checkpoint comes early in programs of a second or more: a signal sent now finds them running, on fast machines too.
wait_for_checkpoint() { # FOLDER
    for _ in $(seq 2000); do
        compgen -G "$1/step-*" >/dev/null && return
        sleep 0.01
    done
}

# every_one_is_whole FOLDER: reads each step-... with the program that read.py of the documents would be: the manifest's checksums.
every_one_is_whole() {
    local step
    for step in "$1"/step-*; do
        [[ -e $step ]] || continue
        python3 - "$step" <<'END' || return 1
import sys, zlib, os
folder = sys.argv[1]
text = open(os.path.join(folder, "manifest"), "rb").read()
body, end = text[:-13], text[-13:].split()
assert int(end[1], 16) == zlib.crc32(body), "manifest"
chunk, ranks = 0, []
for line in body.decode().splitlines():
    word = line.split(" ")
    if word[0] == "chunk":
        chunk = int(word[1])
    elif word[0] == "array":
        ranks.append(int(word[3]))
    elif word[0] == "part":
        data = open(os.path.join(folder, word[2]), "rb").read()
        assert len(data) == int(word[3]), word[2]
        sums = word[4 + 2 * ranks[int(word[1])]:]
        assert [int(s, 16) for s in sums] == [zlib.crc32(data[k:k + chunk]) for k in range(0, len(data), chunk)], word[2]
END
    done
}

heat=("$examples/heat2d" --size 96 --steps 200000 --no-check --png "$scratch/plate.png")
train=("$examples/train" --steps 30000)
transformer=("$examples/transformer" --steps 800)

# -- what they print without any interruption -------------------------------------------------------------------------------
for program in heat train transformer; do
    declare -n command=$program
    run 2 4 "${command[@]}"
    check "$program runs" test $? = 0
    tail -n 1 "$scratch/out" >"$scratch/$program.expected"
done

# goes_on NAME RANKS DEVICES: the program ends with status 0 and prints the same last line.
goes_on() {
    local program=$1
    declare -n command=$program
    run "$2" "$3" "${command[@]}" --checkpoint "$scratch/$program" --checkpoint-every "$4" --restart
    check "$program $2x$3 goes on to the end" test $? = 0
    tail -n 1 "$scratch/out" >"$scratch/last"
    check "$program $2x$3 goes on with the same bits" cmp -s "$scratch/last" "$scratch/$program.expected"
    check "$program: it had a checkpoint to go on from" grep -q 'going on from step [1-9]' "$scratch/err"
}

# -- asked to stop: one rank, or all -------------------------------------------------------------------------------------------
begin 2 4 "${heat[@]}" --checkpoint "$scratch/heat" --checkpoint-every 3000
wait_for_checkpoint "$scratch/heat"
kill -USR1 "$job"
wait "$job"
check 'heat2d stops after SIGUSR1 to olyrun' test $? = 75
goes_on heat 4 2 3000

begin 2 4 "${train[@]}" --checkpoint "$scratch/train" --checkpoint-every 500
wait_for_checkpoint "$scratch/train"
kill -TERM "$(ranks_of train | tail -n 1)"
wait "$job"
check 'train stops after SIGTERM to one rank' test $? = 75
goes_on train 2 4 500

# -- asked to stop before the first checkpoint, or the first step ------------------------------------------------------------------
# wait_for_handlers PROGRAM: until the last rank catches SIGUSR1, which is signal 10.
wait_for_handlers() {
    local pid caught
    for _ in $(seq 500); do
        pid=$(ranks_of "$1" | tail -n 1)
        caught=$(awk '/^SigCgt/ { print $2 }' "/proc/${pid:-none}/status" 2>/dev/null)
        [[ $caught ]] && ((0x$caught & 1 << 9)) && return
        sleep 0.01
    done
}

# last_step FOLDER: of its checkpoints.
last_step() {
    local steps=("$1"/step-*)
    [[ -e ${steps[-1]} ]] && echo $((10#${steps[-1]##*step-}))
}

# stops_early PROGRAM MOST ARGUMENT...: a signal as soon as it is caught; the checkpoint has at most so many steps.
stops_early() {
    local program=$1 most=$2 step
    shift 2
    begin 2 4 "$examples/$program" "$@" --checkpoint "$scratch/early-$program"
    wait_for_handlers "$program"
    kill -USR1 "$(ranks_of "$program" | tail -n 1)"
    wait "$job"
    check "$program stops after an early SIGUSR1" test $? = 75
    step=$(last_step "$scratch/early-$program")
    check "$program: saved at step $step, at most $most" test "${step:-none}" -le "$most"
}
stops_early heat2d 100000 --size 96 --steps 100000000 --no-check --png "$scratch/plate.png"
stops_early train 0 --steps 300000 --checkpoint-every 1000
stops_early transformer 100 --steps 100000

# What train prints after a restart is what it prints otherwise, its first training included.
run 2 4 "$examples/train" --steps 200
mv "$scratch/out" "$scratch/whole"
rm -r "$scratch/early-train/"*
run 2 4 "$examples/train" --steps 100 --checkpoint "$scratch/early-train"
run 2 4 "$examples/train" --steps 200 --checkpoint "$scratch/early-train" --restart
check 'train prints the same after a restart' cmp "$scratch/out" "$scratch/whole"

# -- killed ------------------------------------------------------------------------------------------------------------------------
rm -rf "${scratch:?}/heat" "$scratch/transformer"
whole=yes
for kill in $(seq "${KILLS:-4}"); do
    begin 2 4 "${heat[@]}" --checkpoint "$scratch/heat" --checkpoint-every 100 --restart
    [[ $kill == 1 ]] && wait_for_checkpoint "$scratch/heat"
    sleep "0.$((RANDOM % 8 + 1))$((RANDOM % 10))"
    victim=$(ranks_of heat2d | sed -n "$((RANDOM % 2 + 1))p")
    [[ $victim ]] && kill -KILL "$victim" 2>/dev/null
    wait "$job"
    status=$?
    every_one_is_whole "$scratch/heat" || whole=no
    [[ $status == 0 && $kill != "${KILLS:-4}" ]] && rm -rf "${scratch:?}/heat" # it came to its end: from the beginning
done
check "${KILLS:-4} kills: every checkpoint is whole" test $whole = yes
goes_on heat 2 4 3000

begin 2 4 "${transformer[@]}" --checkpoint "$scratch/transformer" --checkpoint-every 10
wait_for_checkpoint "$scratch/transformer"
kill -KILL "$(ranks_of transformer | head -n 1)"
wait "$job"
goes_on transformer 1 8 10

# -- any number of ranks reads what any other wrote ---------------------------------------------------------------------------
for from in 1x8 4x2; do
    run "${from%x*}" "${from#*x}" "$examples/checkpoint" "$scratch/$from"
    check "saved by $from" test $? = 0
done
for to in 3x1 2x3; do
    for from in 1x8 4x2; do
        run "${to%x*}" "${to#*x}" "$examples/checkpoint" --restore "$scratch/$from"
        check "saved by $from, restored by $to" grep -q ': 0 elements differ' "$scratch/out"
    done
done

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
