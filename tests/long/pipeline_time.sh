#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# By hand, on an idle machine: the time of a pipeline beside the ideal one, which is the stages one after the other and the longest of them once for
# each further microbatch. Two stages on two ranks of one thread, 12 microbatches of 512 x 512; then the source documents' four
# stages f, g, f, g on two ranks of two devices, where two stages share a core. tests/long/pipeline_time.sh [RUNS]
set -u
cd "$(dirname "$0")/../.." || exit 1
export OLYMPUS_NUM_THREADS=1
build=${BUILD:-build}
for ((k = 0; k < ${1:-3}; k++)); do
    launch/olyrun -n 2 -d 1 "$build/examples/pipeline" --schedule forward --stages 2 --microbatches 12 --size 512 --steps 4 --time
    launch/olyrun -n 2 -d 2 "$build/examples/pipeline" --schedule forward --stages 4 --microbatches 12 --size 512 --steps 4 --time
done | awk '/ideal/ { n++; if (n % 4 != 1) printf "%s  ratio %.3f%s\n", $0, $1 / $(NF - 1), int((n - 1) / 4) % 2 ? " (four stages, two cores: twice the ideal is ideal)" : "" }'
