#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: one=cluster timeout=120.  Faults of hosts and of the network between them: a cable out for 4 s and for good, lost packets, a power cut, a daemon killed, a rank
# that stands still, a full disk on one host. The job goes on with the right values, or ends within a bound, on all hosts, with a
# message. On four virtual hosts (README.md); skipped where a machine cannot have them. Some only with LONG=1; NAME...: only these.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh
here=$PWD/tests/cluster program=$PWD/$build/tests/test_steps
export CLUSTER_STATE=$scratch/cluster
"$MPIRUN" --version 2>&1 | grep -q 'Open MPI' || { echo "the launcher is not Open MPI's: skipped"; exit 77; }
mkdir -p "$scratch/full" "$scratch/apart"
mount -t tmpfs -o size=1m none "$scratch/full" 2>/dev/null # on all hosts: before they are made
"$here/hosts-up" 4 >"$scratch/why" 2>&1 || { echo "no virtual hosts here ($(tail -n 1 "$scratch/why")): skipped"; exit 77; }
trap '"$here/hosts-down" >/dev/null 2>&1; umount -l "$scratch/full" 2>/dev/null; rm -rf "$scratch"' EXIT

on_host() { "$here/netns-rsh" "$@"; }

# job SECONDS: starts the steps on all hosts.
job() {
    : >"$scratch/why" # the job before this one has left its steps there
    on_host h1 "OLYMPUS_TIMEOUT=20 OLYMPUS_RECORDER=0 MPIRUN='$MPIRUN -x OLYMPUS_NUM_CPU_DEVICES -x OLYMPUS_TIMEOUT -x OLYMPUS_RECORDER --host h1:1,h2:1,h3:1,h4:1'" \
        "$PWD/launch/olyrun -n 4 -d 2 --time 100 $program $1" >"$scratch/why" 2>&1 </dev/null &
    job=$! began=$SECONDS
    for ((k = 0; k < 200; k++)); do
        grep -q '^step' "$scratch/why" && return
        kill -0 "$job" 2>/dev/null || return
        sleep 0.1
    done
}

# over SECONDS: waits for the job; its status is in $status, and none of its processes may remain. Fails if it took longer.
over() {
    wait "$job"
    status=$?
    echo "status $status after $((SECONDS - began)) s" >>"$scratch/why"
    for ((k = 0; k < 50; k++)); do
        pgrep -f "^$program" >/dev/null || break
        sleep 0.1
    done
    ! pgrep -f "^$program" >/dev/null && ((SECONDS - began <= $1))
}

goes_on() { over "$1" && [[ $status == 0 ]] && grep -q 'all right' "$scratch/why"; }
# ends SECONDS HOST: a job that had begun ends in this time with an error that names the lost host.
ends() {
    over "$1" && [[ $status != 0 ]] && grep -q '^step' "$scratch/why" && ! grep -q 'is wrong' "$scratch/why" &&
        tr '\n' ' ' <"$scratch/why" | grep -Eq "lost communication with a remote daemon.* on node $2 "
}

cable_out_4() {
    job 8
    on_host h2 ip link set eth0 down
    sleep 4
    on_host h2 ip link set eth0 up
    goes_on 40
}
cable_out_for_good() {
    job 60
    on_host h2 ip link set eth0 down
    ends 30 h2
    local it=$?
    on_host h2 ip link set eth0 up
    return $it
}
packets_lost() {
    job 5
    on_host h2 'nft add table inet fault; nft add chain inet fault in "{ type filter hook input priority 0; }"' &&
        on_host h2 nft add rule inet fault in numgen random mod 100 lt 30 drop
    over 100
    local it=$?
    on_host h2 nft delete table inet fault
    [[ $it == 0 ]] && ! grep -q 'is wrong' "$scratch/why" && { [[ $status != 0 ]] || grep -q 'all right' "$scratch/why"; }
}
power_cut() {
    job 60
    "$here/hosts-down" h3 >/dev/null
    ends 20 h3
    local it=$?
    "$here/hosts-up" 4 >/dev/null 2>&1
    return $it
}
daemon_killed() {
    job 60
    local net pid # others' jobs on this machine have daemons, too: this one is in the host's own network
    net=$(on_host h4 readlink /proc/self/ns/net)
    for pid in $(pgrep -x orted); do
        [[ $(readlink "/proc/$pid/ns/net") == "$net" ]] && kill -9 "$pid"
    done
    ends 15 h4
}
slow_rank() {
    job 6
    local it
    it=$(pgrep -n -f "^$program")
    kill -STOP "$it"
    sleep 4
    kill -CONT "$it"
    goes_on 40
}

# A program that saves checkpoints of 1 MiB into a folder: it must end with an error on all ranks that names the rank and this text,
# and leave nothing half-written.
cannot_save() {
    began=$SECONDS
    on_host h1 "MPIRUN='$MPIRUN -x OLYMPUS_NUM_CPU_DEVICES --host h1:1,h2:1,h3:1,h4:1' $PWD/launch/olyrun -n 4 -d 2 --time 60" \
        "$PWD/$build/examples/heat2d --size 512 --steps 40 --no-check --checkpoint $1/c --png $scratch/heat.png" >"$scratch/why" 2>&1 </dev/null
    status=$?
    echo "status $status after $((SECONDS - began)) s" >>"$scratch/why"
    [[ $status != 0 ]] && [[ $(grep -c "was not written: rank [0-3]: cannot .*$1/c.*$2" "$scratch/why") == 4 ]] && ! compgen -G "$1/c/step-*" >/dev/null
}
disk_full() { cannot_save "$scratch/full" 'No space left'; }
# One host has a small disk of its own where the others have the shared one.
disk_of_one_host() {
    on_host h3 mount -t tmpfs -o size=64k none "$scratch/apart"
    cannot_save "$scratch/apart" 'No'
}

skipped=0
for name in ${*:-cable_out_4 power_cut daemon_killed disk_full disk_of_one_host ${LONG:+cable_out_for_good packets_lost slow_rank}}; do
    if [[ $name == packets_lost ]] && ! command -v /usr/sbin/nft >/dev/null; then
        echo "skipped  $name: no nft (nftables)"
        skipped=$((skipped + 1))
        continue
    fi
    $name
    result $? "$name, $(tail -n 1 "$scratch/why")"
done
finish $skipped
