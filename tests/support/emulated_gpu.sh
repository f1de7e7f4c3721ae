# SPDX-License-Identifier: BSD-3-Clause
# For test scripts that run programs on emulated GPUs: results.sh, and the end of the script, as skipped, where there is no emulator or the
# library was built without CUDA. Sourced by them, in the root of the source tree.
. tests/support/results.sh
OLYMPUS_PLATFORMS=cuda tests/gpu/emulated "$build/examples/toy" >"$scratch/why" 2>&1
[[ $? != 77 ]] || { echo 'skipped: no emulated GPU (make emulator)'; exit 77; }
! grep -q 'built without CUDA' "$scratch/why" || { echo 'skipped: built without CUDA'; exit 77; }
