#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests against planted mutants: run.py FOLDER BUILD [SECONDS]

FOLDER is what plant.py filled; BUILD has the objects of the tests and the library. Links every test with the changed sources, runs
each once without a mutant (which pass, how long they take, which mutants they come by), then for each mutant until something fails:
some seconds of random programs (tests/soak), the tests that come by it, first those that killed others of its file in little time,
and the rest of SECONDS (default 60) of random programs. The seeds of a mutant are always the same. Results are appended to FOLDER/log,
a line of JSON each; what is there already is not run again, so a run that was stopped goes on. Prints the survivors at the end.

AGAIN=1   the survivors once more: tests that are new or changed, and more random programs    ONLY="3 17"   these
EARLY=4   seconds of random programs before the tests             LIMIT=600   seconds of tests for a mutant
JOBS=1    how many mutants at once
"""
import glob
import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# Tests whose figures depend on time, wrap functions, or look at other things than results.
WITHOUT = {'growth', 'growth_sums', 'simulate_movements', 'simulate_reductions', 'every_float', 'environment', 'device', 'waits',
           'communicator', 'errors_ranks', 'core', 'many_devices'}
# Those that need messages between processes run on all the sizes that their lines "run:" name, others on the first.
RANKS = {'overlap', 'halo', 'communication', 'communication_loops', 'communication_products', 'tree_exchange', 'levels',
         'scatter_levels', 'reshard_random', 'random_programs', 'time_tiling_random', 'sort_split', 'contract', 'control',
         'explicit', 'time_tiling', 'sink_reductions', 'dynamic_parts', 'captures', 'divergence', 'part_meshes', 'sub_axes',
         'late_expansion', 'reduction_order'}
FEW = {'TIME_TILING_CASES': '40', 'RANDOM_MAPS': '200', 'SOAK_SHRINK': '0'}
LONGEST = 300  # seconds for a test without a mutant
TURN = 60      # programs of a turn of the soak
LAYOUTS = ((1, 8), (1, 3), (2, 4), (1, 8), (1, 1), (2, 1), (1, 8), (1, 24))
FAILURE = re.compile(rb'^(\[  FAILED  \]|FAILED |failed |seed \d+[:,])')


def read(path):
    return open(path).read() if os.path.exists(path) else ''


def setting(name, otherwise):
    return float(os.environ.get(name, otherwise))


def source_of(name):
    return next(iter(glob.glob('tests/**/test_%s.c' % name, recursive=True)), '')


def devices_of(name):
    found = re.search(r'run:.* devices=(\d+)', '\n'.join(read(source_of(name)).split('\n')[:3]))
    return int(found.group(1)) if found else 8


def sizes_of(name):
    """Numbers of processes."""
    first = '\n'.join(read(source_of(name)).split('\n')[:3])
    found = re.search(r'run:.* ranks=([\d,]+)', first)
    return [int(r) for r in found.group(1).split(',')] if found else [1, 2, 4, 8] if re.search('run:.* layouts', first) else [1]


def digest(paths):
    return hashlib.sha1(b''.join(open(p, 'rb').read() for p in sorted(paths))).hexdigest()[:12]


# -- programs ----------------------------------------------------------------------------------------------------------------------
def changed(folder):
    return [folder + '/mutant.o', *glob.glob(folder + '/src/**/*.o', recursive=True)]


def libraries():
    return subprocess.run(['pkg-config', '--libs', 'hwloc', 'openblas', 'libpng', 'cmocka'], capture_output=True,
                          text=True).stdout.split() + ['-lm']


def link(folder, build, name, objects):
    """The program, or None; linked anew when something is newer."""
    program, parts = folder + '/' + name, [*objects, *changed(folder), build + '/libolympus.a']
    if os.path.exists(program) and os.path.getmtime(program) > max(map(os.path.getmtime, parts)):
        return program
    done = subprocess.run(['mpicc', '-pthread', *parts, *libraries(), '-o', program], capture_output=True, text=True)
    return program if done.returncode == 0 else None


def objects_of(build, name):
    helpers = glob.glob(build + '/tests/support/*.o')
    if name == 'soak':
        own = [p for p in glob.glob(build + '/tests/soak/*.o') if not p.endswith('/fuzz_programs.o')]
        return own, [build + '/tests/support/check_element.o', build + '/tests/support/check_races.o']
    if name == 'oracle':
        return glob.glob(build + '/tests/oracle_runner/*.o'), helpers
    more = glob.glob(build + '/tests/operations/reference/*.o') if name in ('ops_everywhere', 'pairs') else []
    return ['%s/%s.o' % (build, source_of(name)[:-2])], helpers + more


# -- running -----------------------------------------------------------------------------------------------------------------------
def watch(command, env, limit):
    """Runs a command: 'passed', 'failed' (as soon as it says so), or 'late'; and what it said when it failed."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    end, rest, verdict, said = time.time() + limit, b'', None, ''
    while not verdict:
        ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.time()))
        if not ready:
            verdict = 'late'
            break
        more = os.read(process.stdout.fileno(), 65536)
        if not more:
            break
        *lines, rest = (rest + more).split(b'\n')
        for line in lines:
            if FAILURE.match(line):
                verdict, said = 'failed', line.decode(errors='replace')
                break
    finish(process, verdict)
    return verdict or ('passed' if process.returncode == 0 else 'failed'), said


def finish(process, verdict):
    """Launchers take their ranks with them when they are asked to end."""
    for signal_number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 30)):
        if verdict:
            try:
                os.killpg(process.pid, signal_number)
            except ProcessLookupError:
                pass
        try:
            process.wait(patience)
            break
        except subprocess.TimeoutExpired:
            verdict = 'late'
    process.stdout.close()


def run(program, arguments, mutant, ranks, devices, limit, reached=None, build=''):
    env = dict(os.environ, BUILD=build, OLYMPUS_NUM_CPU_DEVICES=str(devices), OLY_MUTANT=str(mutant), OLYMPUS_TIMEOUT='20', OMPI_MCA_pml='ob1',
               OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_rmaps_base_oversubscribe='1',
               OMPI_MCA_hwloc_base_binding_policy='none', OMPI_MCA_mpi_yield_when_idle='1', **FEW)
    if reached:
        env['OLY_MUTANT_REACHED'] = reached
    launcher = ['mpirun', '-n', str(ranks)] if ranks > 1 else []
    return watch(['timeout', '-k', '2', str(int(limit) + 5), 'stdbuf', '-oL', *launcher, program, *arguments], env, limit)


def reached_in(path):
    numbers = [k for k, byte in enumerate(open(path, 'rb').read()) if byte] if os.path.exists(path) else []
    if os.path.exists(path):
        os.unlink(path)
    return numbers


class Test:
    def __init__(self, program, name, ranks, devices, version, arguments=()):
        self.program, self.name, self.ranks, self.devices, self.arguments = program, name, ranks, devices, list(arguments)
        self.version, self.key, self.build = version, '%s.%d' % (name, ranks), ''
        self.seconds, self.reached = 0, set()

    def run(self, mutant, limit, reached=None):
        return run(self.program, self.arguments, mutant, self.ranks, self.devices, limit, reached, self.build)[0]

    def try_without(self, folder):
        """Without a mutant: does it pass, and come by any?"""
        path = '%s/reached/%s' % (folder, self.key)
        known = json.loads(read(path) or '{}')
        if known.get('version') != self.version:
            begin = time.time()
            passed = self.run(0, LONGEST, path + '.map') == 'passed'
            known = {'version': self.version, 'passed': passed, 'seconds': time.time() - begin, 'reached': reached_in(path + '.map')}
            with open(path, 'w') as file:
                json.dump(known, file)
            if not passed:
                print('without a mutant %s fails on %d ranks: left out' % (self.name, self.ranks), flush=True)
        self.seconds, self.reached = known['seconds'], set(known['reached'])
        return known['passed'] and self.reached


def tests_of(folder, build):
    names = [os.path.basename(p)[5:-2] for p in sorted(glob.glob('tests/**/test_*.c', recursive=True))]
    names = [n for n in names if n not in WITHOUT and os.path.exists('%s/%s.o' % (build, source_of(n)[:-2]))] + ['oracle']
    found = []
    for n in names:
        own, helpers = objects_of(build, n)
        program = link(folder, build, 'oracle' if n == 'oracle' else 'test_' + n, own + helpers)
        if not program:
            continue
        if n == 'oracle':
            found += [Test(program, 'oracle-' + f.split('/')[-2], 1, 16, digest(own), [f]) for f in glob.glob('tests/oracle/*/')
                      if not f.endswith('/make_cases/')]
        else:
            more = glob.glob('tests/plan/expected/*.txt') if n == 'plans' else []
            found += [Test(program, n, r, devices_of(n) // r, digest(own + more))
                      for r in (sizes_of(n) if n in RANKS else sizes_of(n)[:1])]
    plans = 'tests/plan/test_plans_random.sh'
    found.append(Test(plans, 'plans_random', 1, 8, digest([plans, *glob.glob('tests/plan/expected/random/*'), *objects_of(build, 'soak')[0]])))
    found[-1].build = folder
    return sorted((t for t in found if t.try_without(folder)), key=lambda t: t.seconds)


# -- judging -----------------------------------------------------------------------------------------------------------------------
class Soak:
    def __init__(self, program, folder):
        self.program, path = program, folder + '/reached/soak'
        if not os.path.exists(path):
            for layout in ((1, 8), (2, 4)) if program else ():
                for turn in range(10):
                    run(program, [str(20000000 + 200 * turn), str(TURN)], 0, *layout, LONGEST, path + '.map')
            with open(path, 'w') as file:
                json.dump(reached_in(path + '.map'), file)
        self.reached = set(json.loads(read(path)))

    def kills(self, number, seconds, turns):
        """Random programs for so many seconds; `turns` goes on where it was. Says which seed noticed, or None."""
        end = time.time() + seconds
        while self.program and time.time() < end:
            turn = next(turns)
            ranks, devices = LAYOUTS[turn % len(LAYOUTS)] if turn >= 10 else (1, 8)
            seed = 200 * random.Random(number * 1000 + turn).randrange(1 << 30)
            verdict, said = run(self.program, [str(seed), str(TURN)], number, ranks, devices, 15 if ranks == 1 else 30)
            if verdict == 'late': # it may be the machine
                verdict, said = run(self.program, [str(seed), str(TURN)], number, ranks, devices, 90)
            if verdict == 'passed':
                continue
            found = re.match(r'seed (\d+)', said)
            first, count = (found.group(1), 1) if found else (seed, TURN)
            if run(self.program, [str(first), str(count)], 0, ranks, devices, LONGEST)[0] == 'passed':
                return 'soak %dx%d %s %d %s' % (ranks, devices, first, count, verdict)
            print('WITHOUT a mutant: soak %s %d on %dx%d fails' % (first, count, ranks, devices), flush=True)
        return None


class Order:
    """Which test first: those that killed others of this file or folder, in little time."""

    def __init__(self, mutants, known):
        self.mutants, self.kills, self.tries = mutants, {}, {}
        for r in known.values():
            self.learn(r)

    def places(self, number):
        file = self.mutants[number]['file']
        return (file, 1.0), (os.path.dirname(file), 0.2)

    def learn(self, result):
        for place, _ in self.places(result['number']) if result['number'] in self.mutants else ():
            for name in result.get('passed', {}):
                self.tries[place, name] = self.tries.get((place, name), 0) + 1
            if result['verdict'] == 'killed':
                name = result['by']
                self.tries[place, name] = self.tries.get((place, name), 0) + 1
                self.kills[place, name] = self.kills.get((place, name), 0) + 1

    def cost(self, number, test):
        chance = [(self.kills.get((p, test.key), 0) * w + 0.02) / (self.tries.get((p, test.key), 0) * w + 0.2)
                  for p, w in self.places(number)]
        if test.name == 'plans_random': # looks at everything that plans are
            chance.append(0.5)
        return (test.seconds + 0.1) / sum(chance)


def judge(number, tests, soak, order, seconds, before):
    begin, passed = time.time(), dict(before.get('passed', {}))
    mine = [t for t in tests if number in t.reached]
    turns = iter(range(before.get('turns', 0), 1 << 30))
    early = 0 if before else setting('EARLY', 4)

    def result(verdict, **more):
        return dict(more, number=number, verdict=verdict, seconds=round(time.time() - begin, 1), passed=passed, turns=next(turns),
                    reached=len(mine) + (number in soak.reached))

    if not mine and number not in soak.reached:
        return result('not reached')
    if seed := soak.kills(number, early, turns):
        return result('killed', by='soak', seed=seed)
    tests_begin = time.time()
    for t in sorted(mine, key=lambda t: order.cost(number, t)):
        if passed.get(t.key) == t.version or time.time() - tests_begin + t.seconds > setting('LIMIT', 600):
            continue
        verdict = t.run(number, 4 * t.seconds + 15)
        if verdict == 'late': # it may be the machine
            verdict = t.run(number, 12 * t.seconds + 45)
        if verdict != 'passed':
            return result('killed', by=t.key, late=verdict == 'late')
        passed[t.key] = t.version
    if seed := soak.kills(number, seconds - early, turns):
        return result('killed', by='soak', seed=seed)
    return result('survived', left=len([t for t in mine if passed.get(t.key) != t.version]))


def main():
    folder, build = sys.argv[1], sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    os.nice(5)
    for made in ('/reached', '/tests/soak'):
        os.makedirs(folder + made, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    if not os.path.exists(folder + '/mutant.o'):
        subprocess.run(['gcc', '-O1', '-c', here + '/mutant.c', '-o', folder + '/mutant.o'], check=True)
    mutants = {int(n): m for n, m in json.loads(read(folder + '/mutants.json'))['mutants'].items()}
    soak = Soak(link(folder, build, 'tests/soak/soak', sum(objects_of(build, 'soak'), [])), folder)
    tests = tests_of(folder, build)
    print('%d tests, %.0f s' % (len(tests), sum(t.seconds for t in tests)), flush=True)
    known = {r['number']: r for r in map(json.loads, read(folder + '/log').splitlines())}
    order = Order(mutants, known)
    left = [n for n in mutants if n not in known or ('AGAIN' in os.environ and known[n]['verdict'] != 'killed')]
    if 'ONLY' in os.environ:
        left = [n for n in left if str(n) in os.environ['ONLY'].split()]

    def one(n):
        result = judge(n, tests, soak, order, seconds, known.get(n, {}))
        with open(folder + '/log', 'a') as file:
            file.write(json.dumps(result) + '\n')
        known[n] = result
        order.learn(result)
        print('%3d  %-11s %5.1f s  %s:%d  %s%s' % (n, result['verdict'], result['seconds'], mutants[n]['file'], mutants[n]['line'],
                                                  result.get('by', ''), ' (late)' * result.get('late', False)), flush=True)

    with ThreadPoolExecutor(int(setting('JOBS', 1))) as pool:
        for done in [pool.submit(one, n) for n in left]:
            done.result()
    report(mutants, known)


def report(mutants, known):
    count = {v: sum(r['verdict'] == v for r in known.values()) for v in ('killed', 'survived', 'not reached')}
    for verdict in ('not reached', 'survived'):
        for n, r in sorted(known.items()):
            if r['verdict'] == verdict and n in mutants:
                m = mutants[n]
                print('%-11s  %d  %s:%d  %s' % (verdict, n, m['file'], m['line'], m['change']))
    judged = sum(count.values())
    print('%d of %d mutants judged: %d killed (%.1f %%), %d survived, %d not reached'
          % (judged, len(mutants), count['killed'], 100 * count['killed'] / max(1, judged), count['survived'], count['not reached']))
    if judged > count['killed']:
        print('read those above: each becomes a test, or is named in tests/mutants/README.md with the reason why nothing changes')


main()
