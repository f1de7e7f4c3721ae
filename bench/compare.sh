#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Olympus and hand-written programs side by side: builds bench/peers/ for this machine, runs the bench and the peers alternately,
# and prints a table of ratios. Times drift from minute to minute on a busy machine; ratios within one run are more stable.
#   BUILD=build          where the bench is built       MPICC=mpicc, MPIRUN=mpirun    the MPI library, the same for both sides
#   CORES=$(nproc)       threads and ranks to use       PYTHON=python3   that has NumPy (SciPy) and JAX
set -u
cd "$(dirname "$0")/.." || exit

usage() {
    cat <<END
usage: bench/compare.sh [--rounds N] [--quick] [--numpy] [--jax] [--cpu] [--rows PATTERN] [--write]
  --rounds N   everything runs N times, alternating; the best counts (default 2)
  --quick      small sizes, once: checks that the script works, measures nothing
  --numpy, --jax   the same rows in NumPy, in JAX on one device, where PYTHON has them: a table of every row, its limit, its peers
  --cpu        processor time instead of elapsed time, for machines that are not idle
  --rows PATTERN   only rows with such names, and no hand-written programs: PATTERN is an extended regular expression
  --write      writes the table of all rows into docs/performance.md
  --help       this text
END
}

rounds=2 quick=() modules=() chosen='' write='' clock=() python=${PYTHON:-python3}
while [[ $# -gt 0 ]]; do
    case $1 in
    --rounds) rounds=${2-}; shift 2 ;;
    --quick) quick=(--quick) rounds=1; shift ;;
    --numpy | --jax) modules+=("${1#--}"); shift ;;
    --cpu) clock=(--cpu); shift ;;
    --rows) chosen=${2-}; shift 2 ;;
    --write) write=1; shift ;;
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
make --no-print-directory BUILD="$BUILD" MPICC="$MPICC" "$BUILD/bench/bench" examples || exit
[[ -n $chosen ]] || { build heat_mpi; build exchange_mpi; }
for module in "${modules[@]}"; do
    "$python" -c "import $module" 2>/dev/null || { echo "compare.sh: $python has no $module: its rows are skipped" >&2; modules=("${modules[@]/$module}"); }
done
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
names=()
if [[ -n $chosen ]]; then
    mapfile -t names < <("$BUILD/bench/bench" --list | cut -d' ' -f1 | grep -E "$chosen")
    [[ ${#names[@]} -gt 0 ]] || { echo "compare.sh: no row is called '$chosen'" >&2; exit 2; }
fi
bench=("$BUILD/bench/bench" "${quick[@]}" "${clock[@]}" "${names[@]}")
devices() { local n=$1; shift; OLYMPUS_NUM_CPU_DEVICES=$n OLYMPUS_NUM_THREADS=$cores timeout 1800 "$@"; }
array_rows() { "$BUILD/bench/bench" --table | timeout 1800 "$python" bench/peers/array_rows.py "$1" "${quick[@]}" "${clock[@]}" "${names[@]}"; }
for ((round = 1; round <= rounds; round++)); do
    echo "round $round of $rounds" >&2
    record limit "$peers/limits" "$([[ ${#clock[@]} == 0 ]] && echo "$cores" || echo 1)" "${quick[@]}" # in processor time: per core
    record one devices "$cores" "${bench[@]}"
    for module in "${modules[@]}"; do
        [[ -z $module ]] || record "$module" array_rows "$module"
    done
    record eight devices 8 "${bench[@]}"
    [[ -z $chosen ]] || continue
    record mpi "${run[@]}" -n "$ranks" "$peers/heat_mpi" "${heat_sizes[@]}"
    record ranks "${run[@]}" -n "$ranks" -d 1 "${bench[@]}"
    record mpi "${run[@]}" -n "$ranks" "$peers/exchange_mpi" "${quick[@]}"
    for _ in 1 2 3; do
        record_time empty "${run[@]}" -n 4 "$peers/exchange_mpi" --start-only
        record_time toy "${run[@]}" -n 4 -d 2 "$BUILD/examples/toy"
    done
done

# -- every row ------------------------------------------------------------------------------------------------------------
# Seconds on one device per core, and as multiples of them: the least time by the row's limit, 8 devices, the peers.
# "against the best peer" is above 1 where we are slower.
every_row() {
    echo "Measured $(date -u +%F) by \`bench/compare.sh\` on $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $cores cores, load $(cut -d' ' -f1 /proc/loadavg)${clock:+, processor time}${quick:+; small sizes: these figures mean nothing}. \\
Microseconds of one call; *of the limit*: the share of the rate of copying, reading, multiply-adds or \`sgemm\` on this machine;
*against the best peer*: above 1 we are slower."
    echo
    echo "| row | us | of the limit | 8 devices | NumPy | JAX | against the best peer |"
    echo "| --- | --- | --- | --- | --- | --- | --- |"
    "$BUILD/bench/bench" --table | awk -F'\t' '
        NR == FNR {
            key = $1 ":" $2
            if (!(key in seconds) || $3 < seconds[key]) { seconds[key] = $3; rate[key] = $4 }
            next
        }
        function us(key) { return key in seconds ? sprintf("%.1f", seconds[key] * 1e6) : "" }
        {
            one = "one:" $1
            if (!(one in seconds)) next
            limit = ("limit:" $4) in rate && rate["limit:" $4] > 0 ? sprintf("%.2f (%s)", rate[one] / rate["limit:" $4], $4) : ""
            best = 0
            for (m = 1; m <= split("numpy jax", module, " "); m++) {
                key = module[m] ":" $1
                if (key in seconds && (!best || seconds[key] < best)) best = seconds[key]
            }
            printf "| `%s` | %s | %s | %s | %s | %s | %s |\n", $1, us(one), limit, us("eight:" $1), us("numpy:" $1), us("jax:" $1),
                best ? sprintf("%.2f", seconds[one] / best) : ""
        }' "$results" -
}
if [[ -n $write ]]; then
    every_row >"$results.table"
    awk -v table="$results.table" '
        /^<!-- end of the table of all rows -->/ { skip = 0 }
        !skip { print }
        /^<!-- made by bench\/compare.sh --write -->/ { skip = 1; while ((getline line < table) > 0) print line }
    ' docs/performance.md >"$results.page" && cat "$results.page" >docs/performance.md
    rm -f "$results.table" "$results.page"
elif [[ ${#modules[@]} -gt 0 || -n $chosen ]]; then
    every_row
fi
[[ -z $chosen ]] || exit 0

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
