#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# OLYMPUS_TIMELINE writes a trace that readers of the format accept (check_trace.py), of all ranks with their clocks corrected; of jobs that
# end by a failure every rank's part. Progress lines stay one line.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
program=$build/tests/test_timeline
command -v "${MPIRUN:-mpirun}" >/dev/null || { echo "no ${MPIRUN:-mpirun}: skipped"; exit 77; }
command -v python3 >/dev/null || { echo "no python3 to read traces with: skipped"; exit 77; }
export OMPI_MCA_pml="${OMPI_MCA_pml-ob1}" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

# holds NAME COMMAND...: the command succeeds.
holds() {
    local name=$1
    shift
    if "$@" >"$scratch/why" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name"
    else
        failed=$((failed + 1))
        echo "FAIL  $name: $*"
        sed 's/^/      | /' "$scratch/why" "$scratch/err" | head -40
    fi
}

# run RANKS DEVICES FILE PROGRAM...: under OLYMPUS_TIMELINE; its output in $scratch/out and err, its status in $status.
run() {
    local ranks=$1 devices=$2 file=$3
    shift 3
    OLYMPUS_TIMELINE=$scratch/$file OLYMPUS_NUM_CPU_DEVICES=$devices OLYMPUS_NUM_THREADS=2 OLYMPUS_RECORDER=0 \
        timeout 60 "${MPIRUN:-mpirun}" -n "$ranks" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
}
check() { python3 tests/timeline/check_trace.py "$@"; }
# runs_are FILE SHOWN NOT_SHOWN: of the function "halve", on every rank.
runs_are() {
    python3 -c '
import collections, json, sys
shown, hidden = collections.Counter(), collections.Counter()
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e.get("cat") == "run" and e["name"] == "halve":
        shown[e["pid"]] += 1
        hidden[e["pid"]] += e["args"].get("not_shown", 0)
    if e["name"] == "process_labels" and int(sys.argv[3]):  # those after the last that is shown, too
        shown[e["pid"]] += e["args"]["runs_not_shown"] - int(sys.argv[4])
print(shown, hidden)
sys.exit(set(shown.values()) != {int(sys.argv[2])} or set(hidden.values()) != {int(sys.argv[3])})' "$@"
}
has() { grep -q "$2" "$scratch/$1"; }
exits() { [ "$status" = "$1" ] || { echo "exit status $status"; false; }; }

for layout in 1x8 2x4 4x2; do
    ranks=${layout%x*}
    run "$ranks" "${layout#*x}" $layout.json "$build/examples/timeline" 60
    holds "a trace on $layout" check "$scratch/$layout.json" "$ranks"
done
holds "ranges are slices" has 2x4.json '"cat":"range","name":"round 50"'
holds "steps have their lines" has 2x4.json '"name":"all-gather","args":{.*"line":"examples/timeline.c:'
holds "steps have what was predicted" has 2x4.json '"predicted_us":'
holds "devices are tracks" has 2x4.json '"name":"device 7"'
holds "threads are tracks" has 2x4.json '"name":"worker 1"'
holds "messages have partners and bytes" has 2x4.json '"name":"send to rank 1","args":{"partner":1,"bytes":[1-9]'
holds "nothing is left beside the trace" test ! -e "$scratch/2x4.json.part"

run 2 4 packed.json.gz "$build/examples/timeline" 20
holds "a compressed trace" check "$scratch/packed.json.gz" 2
holds "it is compressed" gzip -t "$scratch/packed.json.gz"

mkdir "$scratch/folder" && mkfifo "$scratch/fifo"
run 1 4 folder "$build/examples/timeline" 20
holds "a folder is refused at start" has err "folder: it is there, and a folder"
holds "with a status" test "$status" != 0
run 1 4 fifo "$build/examples/timeline" 20
holds "a fifo stays" test -p "$scratch/fifo" -a "$status" != 0

OLYMPUS_NODE_RANKS=1 run 2 2 late.json "$program" late
holds "clocks 3 s apart are corrected" check "$scratch/late.json" 2
holds "their difference was measured" has late.json '"clock_ahead_ns":-[23]9*[0-9]*'

run 1 4 long.json "$program" long
holds "100,000 iterations" check "$scratch/long.json" 1
holds "are not shown one by one" test "$(grep -c '"cat":"loop"' "$scratch/long.json")" -lt 12000
holds "but all counted" has long.json '"name":"iterations [0-9]* to 99999"'

# 128 runs, 64 of each doubling to 1,024, and every sixteenth of those until 1,999, the last at 1,984; the others are counted.
run 2 2 short.json "$program" short
holds "2,000 short runs" check "$scratch/short.json" 2
holds "are not shown one by one" runs_are "$scratch/short.json" 381 1604 1619
OLYMPUS_TIMELINE_ALL=1 run 2 2 all.json "$program" short
holds "unless all are asked for" runs_are "$scratch/all.json" 2000 0 0

OLYMPUS_TIMELINE_LIMIT=1 run 1 4 limited.json "$program" long
holds "a limited trace" check "$scratch/limited.json" 1
holds "says that events are missing" has err 'OLYMPUS_TIMELINE: [0-9]* events left out after the first 1 MiB; raise OLYMPUS_TIMELINE_LIMIT'

run 2 2 aborted.json "$program" abort
holds "a failure ends the job" test "$status" != 0
holds "the rank that failed leaves its part" check "$scratch/aborted.rank1.json" 1 --part
holds "with its failure" has aborted.rank1.json '"cat":"failure"'
holds "and what it was in" has aborted.rank1.json '"name":"work","args":{"unfinished"'
holds "the other leaves its part" check "$scratch/aborted.rank0.json" 1 --part

run 1 4 crashed.json "$program" crash
holds "a crash leaves a part" check "$scratch/crashed.rank0.json" 1 --part
run 1 4 exited.json "$program" exit
holds "so does exit" check "$scratch/exited.rank0.json" 1 --part
holds "with the program's status" exits 3

run 2 2 diverged.json "$program" diverge
holds "diverged ranks end" test "$status" != 0
holds "each with its part" check "$scratch/diverged.rank0.json" 1 --part
holds "also the other" check "$scratch/diverged.rank1.json" 1 --part

run 1 4 no-such-folder/trace.json "$program" none
holds "an impossible file is found at the start" has err 'OLYMPUS_TIMELINE: .*no-such-folder/trace.json.part cannot be written: No such file or directory'
holds "and ends the job" test "$status" != 0

holds "progress on a terminal is one line" python3 tests/timeline/check_progress.py "$program" progress
OLYMPUS_RECORDER=0 "$program" progress >"$scratch/out" 2>"$scratch/err"
holds "anywhere else a short loop prints nothing" test ! -s "$scratch/err"
holds "nor does it where progress is turned off" env OLYMPUS_PROGRESS=0 python3 -c '
import pty, sys
texts = []
pty.spawn(sys.argv[1:], lambda f: texts.append(__import__("os").read(f, 4096)) or texts[-1])
sys.exit(bool(b"".join(texts)))' "$program" progress

perfetto=${CHECK_PYTHON:-python3}
"$perfetto" tests/timeline/check_trace.py "$scratch/4x2.json" 4 --perfetto >"$scratch/why" 2>&1
case $? in
0) passed=$((passed + 1)); echo "ok    Perfetto's trace processor reads it" ;;
77) skipped=$((skipped + 1)); tail -n 1 "$scratch/why" ;;
*) failed=$((failed + 1)); echo "FAIL  Perfetto's trace processor"; cat "$scratch/why" ;;
esac

echo "CHECK: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
