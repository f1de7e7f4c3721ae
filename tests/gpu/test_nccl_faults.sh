#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=120
# Failures of NCCL on the emulated GPU end a job of two ranks in bounded time with a message: a group that cannot be made, an error that is
# reported later, a rank that is killed. (A rank that is silent: test_nccl.c.)
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build} MPIRUN=${MPIRUN:-mpirun}
[[ -e $build/tests/gpu/emulated/libnccl.so.2 ]] || { echo "built without CUDA's and NCCL's headers: skipped"; exit 77; }
command -v "$MPIRUN" >/dev/null || { echo "no $MPIRUN: skipped"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# ends NAME PATTERN SETTING...: test_nccl on two ranks fails within 25 s and says so.
ends() {
    local name=$1 pattern=$2 status
    shift 2
    env "$@" timeout -k 5 25 "$MPIRUN" -n 2 "$build/tests/test_nccl" >"$scratch/why" 2>&1
    status=$?
    if ((status != 0 && status != 124)) && grep -qE -- "$pattern" "$scratch/why"; then
        echo "ok       $name"
        passed=$((passed + 1))
    else
        echo "FAIL     $name: status $status, looking for $pattern"
        tail -n 20 "$scratch/why" | sed 's/^/      | /'
        failed=$((failed + 1))
    fi
}

ends 'a group that cannot be made' 'ncclGroupEnd: unhandled system error' EMULATED_FAIL=nccl:3@1
ends 'an error reported later' 'NCCL: remote process exited' EMULATED_FAIL=nccl_async:9+@1
ends 'no memory for packed boxes' 'packed boxes' EMULATED_FAIL=alloc:5@1
ends 'a device that is lost' 'cuMemcpy|cuCtx|cuEvent|device has failed|0x2e|CUDA_SUCCESS' EMULATED_FAIL=lost:400@1
echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
