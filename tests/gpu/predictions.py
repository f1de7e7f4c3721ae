#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What oly_explain predicts for rows of the bench on this GPU beside what they take: tests/gpu/predictions.py [--figures FILE] [ROW...].

One run of the bench with OLYMPUS_EXPLAIN: of the plans made for a row the last one counts, or the one of its name. A row that calls
several functions, or one of them several times, is wrong here by that much.
  --figures FILE  measured before, as the bench prints them, instead of now: what is predicted for a card that is not here (the emulated
                  GPU with EMULATED_CARD and EMULATED_IDLE)
  --steps         prints the steps of each row, too
  --seconds N     ends the bench after so long, and says what it has got to
"""
import math, os, re, statistics, subprocess, sys, threading

UNITS = {'s': 1, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9, 'min': 60, 'h': 3600}
ROWS = '''call heat1d heat2d heat3d gray_scott wave2d masked_heat maxwell2d sin chain sum matmul take columns_* rows_* whole_* middle* each_*
    chains_* strided_* transposed_* broadcast_* short_* gather_* scatter* bins searches sorts_* random_* products_* windows_* rearranged_*
    control_counted work_*'''.split()

NOT_WAITED_FOR = 'call call_eager'.split()

arguments, figures, steps, limit = sys.argv[1:], None, False, 0
while arguments and arguments[0].startswith('--'):
    option = arguments.pop(0)
    if option == '--figures' and arguments:
        figures = arguments.pop(0)
    elif option == '--seconds' and arguments and arguments[0].isdigit():
        limit = int(arguments.pop(0))
    elif option == '--steps':
        steps = True
    else:
        sys.exit(__doc__)

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
bench = os.path.join(os.environ.get('BUILD', 'build'), 'bench', 'bench')
settings = dict(os.environ, OLYMPUS_EXPLAIN='1')
settings.setdefault('OLYMPUS_PLATFORMS', 'cuda')
settings.setdefault('OLYMPUS_COMPILE_AFTER', '0')
run = subprocess.Popen([bench, '--repeats', '3'] + (arguments or ROWS), env=settings, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, errors='replace')

ended = []
def end():
    ended.append(True)
    run.terminate()
if limit:
    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()

def seconds(text):
    found = re.match(r'([0-9.e+-]+) (\w+)', text)
    return float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else 0

before = {}
if figures:
    with open(figures) as file:
        for line in file:
            words = line.split()
            if len(words) > 1:
                before[words[0]] = float(words[1])
plans, plan, rates, rows = [], None, '', []
for line in run.stdout:
    row = re.match(r'(\w+)\t([0-9.e-]+)\t', line)
    if line.startswith('plan '):
        plan = [line.split()[1], 0, []]
        plans.append(plan)
    elif line.startswith('  times predicted for ') and not rates:
        rates = line.strip()
    elif plan and line.startswith('  predicted time: '):
        plan[1] = seconds(line[len('  predicted time: '):])
    elif plan and re.match(r'    +step \d+ +[0-9.]+ \w', line):
        plan[2].append(line.rstrip())
    elif row:
        of = [p for p in plans if p[0] == row[1]] or plans
        measured = before.get(row[1], 0) if figures else float(row[2])
        if row[1] == 'heat1d_small' or not of or not measured:
            plans = []
            continue
        predicted, calls = of[-1][1], re.search(r'a call ([0-9.]+) us \(([0-9.]+) us', rates)
        if row[1] in NOT_WAITED_FOR and calls: # the host makes the next call while the kernels run
            predicted = max(predicted - float(calls[1]) * 1e-6, float(calls[2]) * 1e-6)
        rows.append((row[1], predicted, measured, of[-1][2]))
        plans = []
    elif 'Error' in line or 'error' in line:
        print(line.rstrip(), file=sys.stderr)
run.wait()

print(rates)
print('%-32s %12s %12s %7s' % ('row', 'predicted us', 'measured us', 'ratio'))
for name, predicted, measured, of in rows:
    print('%-32s %12.1f %12.1f %7.2f' % (name, predicted * 1e6, measured * 1e6, predicted / measured))
    for text in of if steps else []:
        print(text)
ratios = [predicted / measured for _, predicted, measured, _ in rows if predicted > 0]
if ratios:
    within = lambda factor: 100 * sum(1 / factor <= r <= factor for r in ratios) / len(ratios)
    print('%d rows: %.0f%% within 1.3, %.0f%% within 2; median %.2f' % (len(ratios), within(1.3), within(2), statistics.median(ratios)))
    print('worst:', ', '.join('%s %.2f' % (r[0], r[1] / r[2])
                              for r in sorted((r for r in rows if r[1] > 0), key=lambda r: -abs(math.log(r[1] / r[2])))[:12]))
if ended:
    print('ended after %d s' % limit)
sys.exit(0 if ended else run.returncode)
