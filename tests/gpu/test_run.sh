#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120
# tests/gpu/run.sh, which checks a real GPU, works: some of its steps on CPUs, steps that fail or take too long are counted.
set -u
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# says NAME PATTERN STATUS ARGUMENT...: run.sh with these ends with that status (0 or 1) and prints a line like that.
says() {
    local name=$1 pattern=$2 wanted=$3 status
    shift 3
    tests/gpu/run.sh --out "$scratch/out" "$@" >"$scratch/why" 2>&1
    status=$?
    if [[ $status == "$wanted" ]] && grep -qE -- "$pattern" "$scratch/why"; then
        echo "ok       $name"
        passed=$((passed + 1))
    else
        echo "FAIL     $name: status $status, looking for $pattern"
        sed 's/^/      | /' "$scratch/why"
        failed=$((failed + 1))
    fi
}

says 'the toy and the bench on CPUs' 'CHECK: 2 passed, 0 failed, 0 skipped' 0 --platform cpu machine bench
grep -q '^    call	' "$scratch/out/report.txt" || { echo 'FAIL     figures are reported'; failed=$((failed + 1)); }
says 'a platform that is not there' 'FAILED   machine .*status' 1 --platform nowhere machine
says 'no time left' 'no time left of 0 minutes' 1 --platform cpu --minutes 0 machine
says 'an unknown step' 'no step is called' 2 --platform cpu dance
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
