#!/usr/bin/python3
"""Runs tests against planted mutants: run.py FOLDER BUILD [SECONDS]

FOLDER is what plant.py filled; BUILD has the objects of the tests and the library. Links every test with the changed sources, runs
each once without a mutant (which tests pass, how long they take, which mutants they come by), then for each mutant the tests that
come by it, fast ones first, until one fails or SECONDS of tests (default 60) have passed. Results are appended to FOLDER/log, one
line of JSON each; what is there already is not run again. Prints the survivors. JOBS: how many at once (default: the cores).
"""
import glob
import json
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

# Tests whose figures depend on time, wrap functions, or look at other things than results.
WITHOUT = {'growth', 'growth_sums', 'simulate_movements', 'simulate_reductions', 'every_float', 'environment', 'launch', 'device',
           'queue_memory', 'communicator', 'errors_ranks', 'core'}
# Those that need messages between processes run with two.
TWO_RANKS = {'overlap', 'halo', 'communication', 'communication_loops', 'communication_products', 'stages', 'levels',
             'scatter_levels', 'reshard_random', 'random_programs', 'march_random', 'sort_split', 'contract', 'control', 'explicit',
             'random_loops', 'soak_programs'}
FEW = {'MARCH_CASES': '40', 'RANDOM_MAPS': '200'}


def read(path):
    return open(path).read() if os.path.exists(path) else ''


def link(folder, build, name):
    helpers = [build + '/tests/' + os.path.basename(p)[:-2] + '.o' for p in glob.glob('tests/*.c')
               if not re.match(r'tests/(test_|oracle|ops_reference)', p)]
    more = glob.glob(build + '/tests/ops_reference*.o') if name == 'ops_everywhere' else []
    program = '%s/test_%s' % (folder, name)
    libraries = subprocess.run(['pkg-config', '--libs', 'hwloc', 'openblas', 'libpng', 'cmocka'], capture_output=True,
                               text=True).stdout.split()
    done = subprocess.run(['mpicc', '-pthread', '%s/tests/test_%s.o' % (build, name), *helpers, *more, folder + '/mutant.o',
                           *glob.glob(folder + '/src/**/*.o', recursive=True), build + '/libolympus.a', *libraries, '-lm',
                           '-o', program], capture_output=True, text=True)
    return program if done.returncode == 0 else None


class Test:
    def __init__(self, program, name, ranks):
        self.program, self.name, self.ranks = program, name, ranks
        self.seconds, self.reached = 0, set()

    def run(self, mutant, limit, reached=None, seed=None):
        """True: passed."""
        env = dict(os.environ, OLYMPUS_NUM_CPU_DEVICES=str(8 // self.ranks), OLY_MUTANT=str(mutant), OLYMPUS_TIMEOUT='20',
                   OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_rmaps_base_oversubscribe='1',
                   OMPI_MCA_hwloc_base_binding_policy='none', OMPI_MCA_mpi_yield_when_idle='1', **FEW)
        if reached:
            env['OLY_MUTANT_REACHED'] = reached
        command = ['timeout', '-k', '2', str(int(limit) + 1)]
        command += ['mpirun', '-n', str(self.ranks), self.program] if self.ranks > 1 else [self.program]
        return subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def try_without(self, folder):
        path = '%s/reached/%s.%d' % (folder, self.name, self.ranks)
        if not os.path.exists(path):
            begin = time.time()
            passed = self.run(0, 60, path + '.part')
            parts = glob.glob(path + '.part.*')
            numbers = sorted({int(n) for p in parts for n in read(p).split()})
            for p in parts:
                os.unlink(p)
            with open(path, 'w') as file:
                json.dump({'passed': passed, 'seconds': time.time() - begin, 'reached': numbers}, file)
        known = json.loads(read(path))
        self.seconds, self.reached = known['seconds'], set(known['reached'])
        return known['passed'] and self.reached


def tests_of(folder, build):
    names = [os.path.basename(p)[5:-2] for p in sorted(glob.glob('tests/test_*.c'))]
    names = [n for n in names if n not in WITHOUT and os.path.exists('%s/tests/test_%s.o' % (build, n))]
    with ThreadPoolExecutor(jobs()) as pool:
        programs = dict(zip(names, pool.map(lambda n: link(folder, build, n), names)))
    found = [Test(programs[n], n, r) for n in names if programs[n] for r in ((1, 2) if n in TWO_RANKS else (1,))]
    with ThreadPoolExecutor(jobs()) as pool:
        good = list(pool.map(lambda t: t.try_without(folder), found))
    return sorted((t for t, g in zip(found, good) if g), key=lambda t: t.seconds)


def jobs():
    return int(os.environ.get('JOBS', os.cpu_count()))


def judge(number, mutant, tests, most):
    mine = [t for t in tests if number in t.reached]
    if not mine:
        return {'verdict': 'not reached'}
    spent = 0
    for t in mine:
        begin = time.time()
        if not t.run(number, 10 * t.seconds + 20):
            return {'verdict': 'killed', 'by': t.name, 'ranks': t.ranks}
        spent += time.time() - begin
        if spent > most:
            break
    return {'verdict': 'survived', 'tests': len(mine), 'seconds': round(spent)}


def main():
    folder, build = sys.argv[1], sys.argv[2]
    most = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    os.makedirs(folder + '/reached', exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(['gcc', '-O1', '-c', here + '/mutant.c', '-o', folder + '/mutant.o'], check=True)
    mutants = {int(n): m for n, m in json.loads(read(folder + '/mutants.json'))['mutants'].items()}
    tests = tests_of(folder, build)
    print('%d tests, %.0f s' % (len(tests), sum(t.seconds for t in tests)), flush=True)
    known = {r['number']: r for r in map(json.loads, read(folder + '/log').splitlines())}
    left = [n for n in mutants if n not in known]
    random.Random(1).shuffle(left)

    def one(n):
        result = dict(judge(n, mutants[n], tests, most), number=n)
        with open(folder + '/log', 'a') as file:
            file.write(json.dumps(result) + '\n')
        known[n] = result

    with ThreadPoolExecutor(jobs()) as pool:
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
    reached = count['killed'] + count['survived']
    print('%d mutants: %d killed, %d survived (%.1f %% of those reached killed), %d not reached' % (
        len(known), count['killed'], count['survived'], 100 * count['killed'] / max(1, reached), count['not reached']))


main()
