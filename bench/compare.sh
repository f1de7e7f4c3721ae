#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Olympus and hand-written programs side by side: builds bench/peers/ for this machine, runs the bench and the peers alternately,
# and prints a table of ratios. Times drift from minute to minute on a busy machine; ratios within one run are more stable.
#   BUILD=build          where the bench is built       MPICC=mpicc, MPIRUN=mpirun    the MPI library, the same for both sides
#   CORES=$(nproc)       threads and ranks to use
set -u
cd "$(dirname "$0")/.." || exit

usage() {
    cat <<END
usage: bench/compare.sh [--rounds N] [--quick]
  --rounds N   everything runs N times, alternating; the best counts (default 2)
  --quick      small sizes, once: checks that the script works, measures nothing
  --help       this text
END
}

rounds=2 quick=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --rounds) rounds=${2-}; shift 2 ;;
    --quick) quick=(--quick) rounds=1; shift ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }

export BUILD=${BUILD:-build} MPICC=${MPICC:-mpicc} MPIRUN=${MPIRUN:-mpirun}
cores=${CORES:-$(nproc)}
ranks=$((cores > 1 ? cores : 2))
heat_sizes=()
[[ ${#quick[@]} == 0 ]] || heat_sizes=(4096 64 5)
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# -- building -------------------------------------------------------------------------------------------------------------
peers=$BUILD/bench/peers
mkdir -p "$peers"
build() {
    "$MPICC" -std=gnu11 -O3 -march=native "bench/peers/$1.c" -o "$peers/$1" "${@:2}" || exit
}
make --no-print-directory BUILD="$BUILD" MPICC="$MPICC" "$BUILD/bench/bench" "$BUILD/examples/toy" || exit
build heat_mpi
build exchange_mpi
read -ra openblas <<<"$(pkg-config --cflags --libs openblas)"
build limits -fopenmp "${openblas[@]}"

# -- running --------------------------------------------------------------------------------------------------------------
# record LABEL COMMAND...: keeps the lines that a command prints, with a label in front.
record() {
    local label=$1 output
    shift
    output=$("$@") || { echo "compare.sh: failed: $*" >&2; exit 1; }
    awk -v label="$label" '{ print label "\t" $0 }' <<<"$output" >>"$results"
}

# record_time NAME COMMAND...: the seconds of a whole command.
record_time() {
    local name=$1 begin=$EPOCHREALTIME
    shift
    "$@" >/dev/null || { echo "compare.sh: failed: $*" >&2; exit 1; }
    awk -v b="$begin" -v e="$EPOCHREALTIME" -v n="$name" \
        'BEGIN { printf "start\t%s\t%.6f\t%.3f\tms\n", n, e - b, (e - b) * 1e3 }' >>"$results"
}

run=(launch/olyrun --timeout 600)
devices() { local n=$1; shift; OLYMPUS_NUM_CPU_DEVICES=$n OLYMPUS_NUM_THREADS=$cores timeout 600 "$@"; }
for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds" >&2
    record limit "$peers/limits" "$cores" "${quick[@]}"
    record one devices "$cores" "$BUILD/bench/bench" "${quick[@]}"
    record mpi "${run[@]}" -n "$ranks" "$peers/heat_mpi" "${heat_sizes[@]}"
    record ranks "${run[@]}" -n "$ranks" -d 1 "$BUILD/bench/bench" "${quick[@]}"
    record mpi "${run[@]}" -n "$ranks" "$peers/exchange_mpi" "${quick[@]}"
    record eight devices 8 "$BUILD/bench/bench" "${quick[@]}"
    for _ in 1 2 3; do
        record_time empty "${run[@]}" -n 4 "$peers/exchange_mpi" --start-only
        record_time toy "${run[@]}" -n 4 -d 2 "$BUILD/examples/toy"
    done
done

# -- the table ------------------------------------------------------------------------------------------------------------
# A row: what, ours, its peer or "-" for a goal of its own, goal. Both sides are LABEL:NAME. The ratio says how many times as fast
# as the peer we are: of rates where more is better, of times where the unit is a time.
echo "$(date -u +%F), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cores cores, load $(cut -d' ' -f1 /proc/loadavg)"
echo "one: 1 process x $cores devices; ranks: $ranks ranks x 1 device; eight: 1 process x 8 devices; mpi: $ranks ranks by hand"
[[ ${#quick[@]} == 0 ]] || echo "small sizes: these figures mean nothing"
awk -F'\t' '
    NR == FNR {
        key = $1 ":" $2
        if (!(key in seconds) || $3 < seconds[key]) { seconds[key] = $3; rate[key] = $4; unit[key] = $5 }
        next
    }
    FNR == 1 { printf "%-34s %22s %22s %8s   %s\n", "what", "ours", "peer", "ratio", "goal" }
    {
        missing = !($2 in rate) || ($3 != "-" && !($3 in rate))
        if (missing) { print "compare.sh: nothing measured for " $1 > "/dev/stderr"; failed = 1; next }
        less = unit[$2] !~ /\/s$/
        ratio = $3 == "-" ? "" : sprintf("%.2f", less ? rate[$3] / rate[$2] : rate[$2] / rate[$3])
        peer = $3 == "-" ? "" : rate[$3] " " unit[$3]
        printf "%-34s %22s %22s %8s   %s\n", $1, rate[$2] " " unit[$2], peer, ratio, $4
    }
    END { exit failed }
' "$results" <(tr '|' '\t' <<'END'
heat 1-D 2^24, one|one:heat1d|mpi:heat1d_mpi|>= 10
heat 1-D 2^24, ranks|ranks:heat1d|mpi:heat1d_mpi|>= 10
heat 1-D 2^24, eight|eight:heat1d|mpi:heat1d_mpi|>= 10
heat 1-D 2^24, port limit|one:heat1d|limit:heat1d_ports|>= 0.60
heat 1-D 2^24, eight against one|eight:heat1d|one:heat1d|>= 0.91
heat 1-D 2^20, one|one:heat1d_small|mpi:heat1d_small_mpi|
heat 2-D 4096^2, one|one:heat2d|mpi:heat2d_mpi|>= 4
heat 2-D 4096^2, ranks|ranks:heat2d|mpi:heat2d_mpi|>= 4
heat 2-D 4096^2, eight against one|eight:heat2d|one:heat2d|>= 0.91
2 sin(x) + 1, against copy|one:sin|limit:copy|>= 0.80
2 sin(x) + 1, x to 10^9|one:sin_large|limit:copy|
chain, against copy|one:chain|limit:copy|>= 0.80
sum, against reading|one:sum|limit:read|
relu(a @ b), against OpenBLAS|one:matmul|limit:sgemm|>= 0.97
reshard, against copy|one:reshard|limit:copy|
reshard, ranks|ranks:reshard|mpi:reshard_mpi|>= 0.90
all-gather of rows, ranks|ranks:reshard_gather|mpi:reshard_gather_mpi|>= 0.90
all-gather of columns, ranks|ranks:reshard_gather_columns|mpi:reshard_gather_columns_mpi|>= 0.90
other order of devices, ranks|ranks:reshard_reversed|mpi:reshard_reversed_mpi|>= 0.90
halo 4 B, ranks|ranks:halo|mpi:halo_mpi|>= 0.95
halo 16 MiB, ranks|ranks:halo_large|mpi:halo_large_mpi|>= 0.95
all-reduce 4 B, ranks|ranks:allreduce|mpi:allreduce_mpi|>= 0.95
all-reduce 16 MiB, ranks|ranks:allreduce_large|mpi:allreduce_large_mpi|>= 0.95
toy, 4 ranks, against an empty one|start:toy|start:empty|>= 0.83
x + 1 compiled, eight|eight:call|-|<= 2 us
queued sums, eight|eight:psum_calls|-|<= 5 us
plan of 10 operations, eight|eight:plan_10|-|<= 100 us
plan of 1,000 operations, eight|eight:plan_1000|-|<= 10,000 us
END
)
