#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: waits timeout=120
# tests/run.sh with JOBS: tests run beside each other, those that say "one=NAME" one after the other, those that say "alone" last and by
# themselves; counts are added up, and a test that is killed before it is counted is a failure. On few cores two run at a time, and those
# that say "waits" beside them.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/support/results.sh

mkdir -p "$scratch/tests" "$scratch/build/tests"
cp tests/run.sh "$scratch/tests"

# test_is NAME OPTIONS COUNTS [COMMAND]: notes when it begins and ends.
test_is() {
    cat >"$scratch/tests/test_$1.sh" <<END
#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: $2
echo "begin $1" >>"$scratch/order"
${4:-sleep 1}
echo "end $1" >>"$scratch/order"
echo 'CHECK: $3 skipped'
END
}
# meets NAME OTHER: did one begin before the other had ended?
meets() {
    awk -v a="$1" -v b="$2" '
        $1 == "begin" { running[$2] = 1; if (running[a] && running[b]) met = 1 }
        $1 == "end" { running[$2] = 0 }
        END { exit !met }' "$scratch/order"
}
run() {
    rm -f "$scratch/order"
    (cd "$scratch" && JOBS=$1 MPIRUN=true bash tests/run.sh "${@:2}") >"$scratch/why" 2>&1
}

test_is shared_a 'one=thing' '1 passed, 0 failed, 0'
test_is shared_b 'one=thing' '2 passed, 0 failed, 1'
test_is free 'timeout=60' '4 passed, 0 failed, 0' 'sleep 2'
test_is single 'alone timeout=60' '8 passed, 0 failed, 0'
run 3
result $? 'all pass'
grep -q '^15 passed, 0 failed, 1 skipped$' "$scratch/why"
result $? 'counts are added up'
meets free shared_a && meets free shared_b
result $? 'tests run beside each other'
! meets shared_a shared_b
result $? 'but not those that use the same thing'
[[ $(tail -n 2 "$scratch/order" | tr '\n' ' ') == 'begin single end single ' ]]
result $? 'nor one that wants to be alone'
run 1
[[ $(awk 'NR % 2 { name = $2; next } $2 != name { print }' "$scratch/order") == '' && $(wc -l <"$scratch/order") == 8 ]]
result $? 'JOBS=1: one after the other'

# On two cores.
mkdir "$scratch/bin"
printf '#!/bin/sh\necho 2\n' >"$scratch/bin/nproc"
chmod +x "$scratch/bin/nproc"
few() {
    rm -f "$scratch/order"
    (cd "$scratch" && unset JOBS && PATH=$scratch/bin:$PATH MPIRUN=true bash tests/run.sh) >"$scratch/why" 2>&1
}
test_is sleeper 'waits one=thing' '16 passed, 0 failed, 0' 'sleep 2'
few && grep -q '^31 passed, 0 failed, 1 skipped$' "$scratch/why" && meets sleeper free
result $? 'few cores: a test that waits runs beside another'
! meets sleeper shared_a && ! meets sleeper shared_b && ! meets sleeper single && ! meets free single && ! meets free shared_a
result $? 'but not beside one that uses the same thing, or wants to be alone'
run 1 && ! meets sleeper free
result $? 'JOBS=1: nor does it then'
test_is free_b 'timeout=60' '32 passed, 0 failed, 0' 'sleep 2'
test_is free_c 'timeout=60' '64 passed, 0 failed, 0' 'sleep 2'
# How many of these ran at once, at most.
at_once() { awk '$2 ~ /^free/ { n += $1 == "begin" ? 1 : -1; most = n > most ? n : most } END { print most + 0 }' "$scratch/order"; }
few && grep -q '^127 passed, 0 failed, 1 skipped$' "$scratch/why" && [[ $(at_once) == 2 ]]
result $? 'few cores: two tests at a time, beside those that wait'
rm "$scratch"/tests/test_free_{b,c}.sh
test_is own_a 'one=other' '1 passed, 0 failed, 0'
test_is own_b 'one=other' '1 passed, 0 failed, 0'
few && ! meets own_a own_b && { meets own_a free || meets own_b free; }
result $? 'few cores: what no test that waits uses is used beside the others, by one at a time'
rm "$scratch"/tests/test_{sleeper,own_a,own_b}.sh

test_is killed 'timeout=60' '1 passed, 0 failed, 0' 'kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $$))'
run 3 killed free
[[ $? != 0 ]] && grep -q '^4 passed, 1 failed, 0 skipped$' "$scratch/why" && grep -q 'ended before it was counted' "$scratch/why"
result $? 'a test that was killed is a failure'
finish 0
