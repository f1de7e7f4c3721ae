#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How well steps are predicted on this machine: runs rows of the bench and the examples under OLYMPUS_TIMELINE with OLYMPUS_COSTS=measure,
# and prints for each kind of step how many there are, the share whose predicted time is within 1.3 and within 2 times the measured one, the
# median of predicted / measured, and the worst.
#   BUILD=build    where the bench and the examples are built     OLYMPUS_NUM_THREADS   as for any program
set -u
cd "$(dirname "$0")/.." || exit

usage() {
    cat <<END
usage: bench/predictions.sh [--quick] [--repeats N] [--least US] [--examples] [--all] [ROW...]
  --quick      small sizes; on a machine that is not idle only short steps can be timed
  --repeats N  each row runs N times (default 12); steps that ran less than three times are left out
  --least US   leaves out steps shorter than this (default 5)
  --examples   runs the examples, too
  --all        lists every step
  ROW...       patterns of rows; default: all that compute on one process
END
}

quick=() repeats=12 least=5 examples='' all=''
while [[ $# -gt 0 ]]; do
    case $1 in
    --quick) quick=(--quick); shift ;;
    --repeats) repeats=${2-}; shift 2 ;;
    --least) least=${2-}; shift 2 ;;
    --examples) examples=1; shift ;;
    --all) all=1; shift ;;
    --help) usage; exit 0 ;;
    --*) usage >&2; exit 2 ;;
    *) break ;;
    esac
done
[[ $repeats =~ ^[1-9][0-9]*$ && $least =~ ^[0-9.]+$ ]] || { usage >&2; exit 2; }
rows=("$@")
[[ $# -gt 0 ]] || rows=('each_*' 'chains*' 'strided*' 'transposed*' 'broadcast*' 'short_*' 'rows_*' 'columns_*' 'whole_*' 'middle*'
    'gather*' 'scatter*' bins searches 'sorts*' 'random*' 'products_*' 'windows*' 'rearranged*' 'control*' 'work_*' 'heat*' gray_scott
    wave2d masked_heat maxwell2d)
build=${BUILD:-build}
[[ -x $build/bench/bench ]] || { echo "predictions: no $build/bench/bench; make it first" >&2; exit 2; }

folder=$(mktemp -d) || exit
trap 'rm -rf "$folder"' EXIT
export OLYMPUS_COSTS=measure OLYMPUS_TIMELINE_LIMIT=512
"$build/bench/bench" --quick --repeats 3 each_add >"$folder/first" 2>&1 # measures, where this machine is new
for row in "${rows[@]}"; do
    OLYMPUS_TIMELINE=$folder/${row//[^a-z0-9_]/}.json \
        "$build/bench/bench" "${quick[@]}" --repeats "$repeats" "$row" >"$folder/out" 2>&1 || cat "$folder/out" >&2
done
if [[ $examples ]]; then
    for example in examples/*.c; do
        name=$(basename "$example" .c)
        [[ -x $build/examples/$name && $name != *_mpi* ]] || continue
        (cd "$folder" && OLYMPUS_TIMELINE=$folder/example_$name.json timeout 60 "$OLDPWD/$build/examples/$name" >out 2>&1 </dev/null)
    done
fi

python3 - "$least" "$all" "$folder"/*.json <<'END'
import collections, json, math, statistics, sys

least, all_steps, files = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
times = collections.defaultdict(list)
for file in files:
    try:
        with open(file) as f:
            trace = json.load(f)
    except ValueError:
        continue  # of a program that was ended
    for e in trace['traceEvents'] if isinstance(trace, dict) else trace:
        if e.get('ph') == 'X' and e.get('cat') == 'step':
            a = e['args']
            key = file.split('/')[-1][:-5], e['name'], a.get('detail', ''), a.get('line', ''), a.get('predicted_us', 0)
            times[key].append(e['dur'])
steps = []
for key, took in times.items():
    # the first run touches new memory; the fastest eighth is what other programs have disturbed least
    took = sorted(took[1:])
    if len(took) >= 2 and took[len(took) // 8] >= least:
        measured = took[len(took) // 8]
        steps.append((key[4] / measured, measured, key))

def within(some, factor):
    return sum(1 / factor <= s[0] <= factor for s in some) / len(some)

def wrong(step):
    return abs(math.log(max(step[0], 1e-6)))

kinds = collections.defaultdict(list)
for s in steps:
    kinds[s[2][1]].append(s)
print('%5s  %-26s %6s %6s %7s  %s' % ('steps', 'kind', '< 1.3', '< 2', 'median', 'worst'))
for kind, some in [('all', steps)] + sorted(kinds.items(), key=lambda k: -len(k[1])):
    if some:
        worst = max(some, key=wrong)
        print('%5d  %-26s %5.0f%% %5.0f%% %7.2f  %.2f  %s %s' %
              (len(some), kind, 100 * within(some, 1.3), 100 * within(some, 2), statistics.median(s[0] for s in some), worst[0],
               worst[2][0], worst[2][2][:60]))
for s in sorted(steps, key=wrong) if all_steps else []:
    print('%8.2f  %10.1f us  %s  %s  %s  %s' % (s[0], s[1], s[2][0], s[2][1], s[2][2][:70], s[2][3]))
END
