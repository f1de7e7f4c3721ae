#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits one=cluster timeout=120.  What `oly` sees of a job on several hosts: `oly status --hosts` asks each through ssh; `oly report` corrects clocks that are
# set differently by what the ranks did together. On two virtual hosts (README.md); skipped where a machine cannot have them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
here=$PWD/tests/cluster oly=$PWD/$build/launch/oly/oly
export CLUSTER_STATE=$scratch/cluster
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "the launcher is not Open MPI's: skipped"; exit 77; }
"$here/hosts-up" 2 >"$scratch/why" 2>&1 || { echo "no virtual hosts here ($(tail -n 1 "$scratch/why")): skipped"; exit 77; }
trap '"$here/hosts-down" >/dev/null 2>&1; rm -rf "$scratch"' EXIT

# ssh as far as `oly status` uses it: ssh OPTION... -- HOST COMMAND...
mkdir "$scratch/bin" "$scratch/seen"
cat >"$scratch/bin/ssh" <<END
#!/bin/bash
while [ "\$1" != -- ]; do shift; done
exec env -u CLUSTER_HOST CLUSTER_STATE=$CLUSTER_STATE $here/netns-rsh "\$2" XDG_RUNTIME_DIR=$scratch "\${@:3}"
END
chmod +x "$scratch/bin/ssh"
on() { "$here/netns-rsh" "$1" "export XDG_RUNTIME_DIR=$scratch PATH=$scratch/bin:\$PATH; ${*:2}" >"$scratch/why" 2>&1; }
has() { grep -qE -- "$1" "$scratch/why"; }
check() {
    local name=$1
    shift
    "$@"
    result $? "$name"
}

"$here/netns-rsh" h1 "cd $scratch/seen; export XDG_RUNTIME_DIR=$scratch OLYMPUS_JOB=seen OLYMPUS_RECORDER=400 OLYMPUS_NUM_CPU_DEVICES=1; \
    $MPIRUN --timeout 60 -n 4 --host h1:2,h2:2 -x XDG_RUNTIME_DIR -x OLYMPUS_JOB -x OLYMPUS_RECORDER -x OLYMPUS_NUM_CPU_DEVICES \
    $PWD/$build/tests/test_recorder sleep 2" >"$scratch/job" 2>&1 &
job=$!
for ((k = 0; k < 100; k++)); do
    on h1 "$oly status seen"
    has 'rank 0 .* for rank 2' && break
    sleep 0.2
done
on h1 "$oly status seen --hosts h1,h2 --dump"
check 'oly status --hosts asks both hosts' has '^host h2$'
order() { [ "$(grep -oE '^(host h[12]|rank [0-9]  h[12])' "$scratch/why" | tr '\n' ' ')" = 'host h1 rank 0  h1 rank 1  h1 host h2 rank 2  h2 rank 3  h2 ' ]; }
check 'each rank once, with its host' order
check 'with what it waits for' has '^rank 3  h2:.*waiting for .* for rank 2'
on h1 "$oly status seen --hosts h2"
check 'the own host is asked without ssh' has '^rank 0  h1:'
on h1 "$oly status seen --hosts h9"
check 'a host that does not answer is an error' has "no host 'h9' is up"
on h1 "$oly status seen --hosts 'h2;id'"
check 'names that are none are refused' has 'names of hosts, separated by commas'

# The recorders of h2, as if its clock were 100 s behind. Without the checksum they count as cut short.
mkdir "$scratch/behind"
for file in "$scratch"/seen/olympus-recorder.seen.*; do
    sed '/^end\t/d' "$file" >"$scratch/behind/${file##*/}"
done
"$oly" report "$scratch/behind" >"$scratch/why" 2>&1
check 'clocks that agree are left' bash -c "! grep -q 'the clock of' '$scratch/why' && grep -q '4 recorders' '$scratch/why'"
for k in 2 3; do
    awk -F'\t' -vOFS='\t' '$1 == "written" || $1 == "began" { $2 = sprintf("%.9f", $2 - 100) } { print }' \
        "$scratch/behind/olympus-recorder.seen.$k" >"$scratch/late" && mv "$scratch/late" "$scratch/behind/olympus-recorder.seen.$k"
done
"$oly" report "$scratch/behind" --events 1000 >"$scratch/why" 2>&1
check 'clocks that do not are corrected' has '^the clock of h2 was (99\.9[0-9]*|100\.0[0-9]*) s behind that of h1: corrected, to 0\.0[0-9]* s$'
# Nobody leaves a meeting before all have come.
meetings_in_order() {
    grep -E 'meeting (begin|end)' "$scratch/why" | head -8 | awk '{ print $5 }' | tr '\n' ' ' | grep -q '^begin begin begin begin'
}
check 'and events are in their order' meetings_in_order
kill "$job" 2>/dev/null
wait 2>/dev/null
finish 0
