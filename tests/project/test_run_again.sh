#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/run.sh runs a program once more, and says so, when Open MPI lost a rank that had ended well, and in no other case.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh

# A source tree of one program, and a launcher: its first run of it prints the lines in `first` and fails, the others `CHECK: 2 passed` and
# end with the status in `then`.
mkdir -p "$scratch/tests" "$scratch/build/tests"
cp tests/run.sh "$scratch/tests"
printf '/* run: ranks=2 */\nCHECK_MAIN (\n' >"$scratch/tests/test_lost.c"
cat >"$scratch/mpirun" <<'END'
#!/bin/bash
[[ $1 != --version ]] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }
cd "$(dirname "$0")" || exit
echo run >>runs
[[ $(wc -l <runs) != 1 ]] || { cat first; exit 1; }
echo 'CHECK: 2 passed, 0 failed, 0 skipped'
exit "$(cat then)"
END
chmod +x "$scratch/mpirun"

# runs NAME RUNS STATUS THEN LINE...: after these lines of the first run the program was run so often, and the suite ended so.
runs() {
    local name=$1 wanted=$2 wanted_status=$3 status n
    rm -f "$scratch/runs"
    echo "$4" >"$scratch/then"
    shift 4
    printf '%s\n' "$@" >"$scratch/first"
    MPIRUN=$scratch/mpirun BUILD=build bash "$scratch/tests/run.sh" >"$scratch/why" 2>&1
    status=$?
    n=$(wc -l <"$scratch/runs")
    [[ $status == "$wanted_status" && $n == "$wanted" && $(grep -c '^again .*test_lost' "$scratch/why") == $((wanted - 1)) ]]
    result $? "$name: status $status after $n runs"
}

good='CHECK: 2 passed, 0 failed, 0 skipped'
lost=('mpirun has exited due to process rank 1 with PID 0 on' 'node here exiting improperly. There are three reasons this could occur:')
runs 'a rank lost at its end' 2 0 0 "$good" "${lost[@]}"
runs 'lost, then a failure' 2 1 1 "$good" "${lost[@]}"
runs 'a failed test' 1 1 0 'CHECK: 1 passed, 1 failed, 0 skipped' "${lost[@]}"
runs 'no counts' 1 1 0 "${lost[@]}"
runs 'a rank that crashed' 1 1 0 "$good" "${lost[0]/PID 0/PID 4711}" "${lost[1]}"
runs 'another reason' 1 1 0 "$good" "${lost[0]}" 'node here exited on signal 11 (Segmentation fault).'
finish 0
