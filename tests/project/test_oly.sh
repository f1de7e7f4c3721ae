#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200  The subcommands of `oly` that need no failed job: help, plan, devices, options, trace. (`oly report` and `oly status`:
# test_recorder.sh; web pages: test_page.sh.)
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build} oly=${BUILD:-build}/launch/oly/oly
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
ok() { echo "ok      $1"; passed=$((passed + 1)); }
bad() { echo "FAILED  $1"; [[ -s ${2-} ]] && sed 's/^/    | /' "$2"; failed=$((failed + 1)); }
# run NAME STATUS PATTERN... -- ARGUMENT...: oly with these arguments ends with this status, and prints all of this.
run() {
    local name=$1 status=$2 pattern patterns=() actual
    shift 2
    while [[ $1 != -- ]]; do patterns+=("$1"); shift; done
    shift
    "$oly" "$@" >"$folder/out" 2>&1 </dev/null
    actual=$?
    [[ $actual == "$status" ]] || { bad "$name: status $actual" "$folder/out"; return; }
    for pattern in "${patterns[@]}"; do
        grep -qE -- "$pattern" "$folder/out" || { bad "$name: without: $pattern" "$folder/out"; return; }
    done
    ok "$name"
}
unset OLYMPUS_SIMULATE OLYMPUS_NUM_CPU_DEVICES

run 'the version' 0 '^oly \(Olympus\) [0-9]' -- --version
run 'help lists the subcommands' 0 '^  plan ' '^  report ' '^  status ' -- --help
for name in plan devices options trace report status; do
    run "help of $name" 0 "^usage: oly $name" '--json|--html' -- $name --help
done
run 'no subcommand' 2 'usage: oly' --
run 'an unknown subcommand' 2 'there is no subcommand plans' -- plans

run 'plans as text' 0 '^plan matmul on Mesh' 'all-gather' 'hints|predicted time' -- plan "$build/examples/explain" --mesh 4x2
run 'plans as JSON' 0 '^\[\{' '"plan": "matmul"' -- plan "$build/examples/explain" --mesh 4x2 --json
"$oly" plan "$build/examples/explain" --mesh 4x2 --json >"$folder/plans.json" 2>/dev/null
"$oly" report "$folder/plans.json" --html "$folder/page.html" >/dev/null 2>&1 && [[ -s $folder/page.html ]] && ok 'which is read again' || bad 'plans cannot be read again'
run 'a program that reads values' 0 'ended with status 1' 'plan plate on Mesh' -- plan "$build/examples/heat2d" --mesh 2x2
run 'no program of Olympus' 1 'made no plan' -- plan /bin/true --mesh 2x2
run 'a mesh that is none' 2 '--mesh 4: ranks and devices' -- plan "$build/examples/toy" --mesh 4
run 'no mesh' 2 'for which machine' -- plan "$build/examples/toy"

run 'devices' 0 'cores? ' 'rank 0 of 1' -- devices
run 'devices as JSON' 0 '"cores": [1-9]' '"devices": 1' -- devices --json
OLYMPUS_NUM_CPU_DEVICES=3 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    run 'devices of a rank' 0 'rank 1 of 4, number 1 of 2' 'CPU_3 to CPU_5' -- devices

OLYMPUS_TIMEOUT=7 OLYMPUS_RECORDER=5 run 'options that are set' 0 '^OLYMPUS_TIMEOUT=7$' -- options
OLYMPUS_TIMEOUT=x OLYMPUS_TIMOUT=7 run 'wrong and unknown options' 1 'OLYMPUS_TIMEOUT=x +<- not a whole number' 'OLYMPUS_TIMOUT +<- unknown, and ignored; did you mean OLYMPUS_TIMEOUT' -- options
run 'all options' 0 '^OLYMPUS_TIMEOUT=   \(not set\)' 'default 120' -- options --all
OLYMPUS_SECRET=verysecret "$oly" options --all >"$folder/secret" 2>&1
grep -q verysecret "$folder/secret" && bad 'a secret is shown' || ok 'secrets are not shown'

OLYMPUS_NUM_CPU_DEVICES=8 run 'trace runs a program and sums its timeline up' 0 'timeline: .*/timeline.json; open it at https://ui.perfetto.dev' 'steps, by kind' 'examples/toy.c:[0-9]+|toy.c:[0-9]+' 'idle' -- trace -o "$folder/timeline.json" "$build/examples/toy"
gzip -k "$folder/timeline.json"
run 'a compressed timeline' 0 'timeline.json.gz: 1 rank, 8 devices' -- trace "$folder/timeline.json.gz"
head -c 300 "$folder/timeline.json.gz" >"$folder/cut.json.gz"
run 'one that is cut short' 1 'cut.json.gz: ' -- trace "$folder/cut.json.gz"
echo '{"traceEvents": [{"ph": "X", "ts": 1e400, "dur": -5, "cat": "step", "name": "\u0007"}, 3]}' >"$folder/odd.json"
run 'a timeline of odd numbers' 0 'odd.json: ' -- trace "$folder/odd.json"
echo '{"a": 1}' >"$folder/none.json"
run 'no timeline' 1 'none.json: this is no timeline' -- trace "$folder/none.json"
echo text >"$folder/notes.txt"
run 'neither a timeline nor a program' 1 'notes.txt: this is no timeline' -- trace "$folder/notes.txt"
# A timeline called as a program is: the one here is meant.
cp "$folder/timeline.json" "$folder/ls"
here=$PWD oly=$(readlink -f "$oly")
cd "$folder" || exit
run 'a timeline with the name of a program' 0 '^ls: 1 rank, 8 devices' -- trace ls
run 'and its page' 0 '^ls: 1 rank, 8 devices' 'wrote page.html' -- trace ls --html page.html
chmod +x ls
run 'but not if it is to be run' 1 'wrote no timeline' -- trace -o x.json ls
cd "$here" || exit
run 'no timeline is written' 1 'wrote no timeline' -- trace -o "$folder/x.json" /bin/true
OLYMPUS_NUM_CPU_DEVICES=4 run 'a job that crashes leaves parts' 139 'each rank wrote its own part, as .*/parts.rank0.json; oly trace .* sums it up' -- trace -o "$folder/parts.json" "$build/tests/test_recorder" crash 0
run 'a part is summed up' 0 'parts.rank0.json: 1 rank' -- trace "$folder/parts.rank0.json"
run 'a timeline is no flight recorder' 1 'timeline.json: a timeline, not a flight recorder: oly trace ' -- report "$folder/timeline.json"
run 'a program that does not exist' 127 'cannot run' -- trace -o "$folder/x.json" "$folder/nothing"

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
