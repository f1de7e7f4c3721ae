#!/usr/bin/python3
"""Runs tests against planted mutants: run.py FOLDER BUILD [SECONDS]

FOLDER is what plant.py filled; BUILD has the objects of the tests and the library. Links every test with the changed sources, runs
each once without a mutant (which tests pass, how long they take, which mutants they come by), then for each mutant the tests that
come by it, fast ones first, until one fails, and at last SECONDS (default 60) of random programs of new seeds (tests/soak). Results
are appended to FOLDER/log, one line of JSON each; what is there already is not run again. Prints the survivors. JOBS: how many at once
(default: the cores). LIMIT: seconds of tests after which a mutant is left to the random programs (default 600).
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
FEW = {'MARCH_CASES': '40', 'RANDOM_MAPS': '200', 'SOAK_SHRINK': '0'}
LONGEST = 300  # seconds for a test without a mutant


def read(path):
    return open(path).read() if os.path.exists(path) else ''


def devices_of(name):
    found = re.search(r'run:.* devices=(\d+)', read('tests/test_%s.c' % name).split('\n', 1)[0])
    return int(found.group(1)) if found else 8


def changed(folder):
    return [folder + '/mutant.o', *glob.glob(folder + '/src/**/*.o', recursive=True)]


def libraries():
    return subprocess.run(['pkg-config', '--libs', 'hwloc', 'openblas', 'libpng', 'cmocka'], capture_output=True,
                          text=True).stdout.split() + ['-lm']


def link_soak(folder, build):
    objects = [p for p in glob.glob(build + '/tests/soak/*.o') if not p.endswith('/fuzz_programs.o')]
    done = subprocess.run(['mpicc', '-pthread', *objects, build + '/tests/check_element.o', *changed(folder), build + '/libolympus.a',
                           *libraries(), '-o', folder + '/soak'], capture_output=True)
    return folder + '/soak' if objects and done.returncode == 0 else None


def link(folder, build, name):
    helpers = [build + '/tests/' + os.path.basename(p)[:-2] + '.o' for p in glob.glob('tests/*.c')
               if not re.match(r'tests/(test_|oracle|ops_reference)', p)]
    more = glob.glob(build + '/tests/ops_reference*.o') if name == 'ops_everywhere' else []
    main = glob.glob(build + '/tests/oracle*.o') if name == 'oracle' else ['%s/tests/test_%s.o' % (build, name)]
    program = '%s/test_%s' % (folder, name)
    if os.path.exists(program) and os.path.getmtime(program) > max(
            map(os.path.getmtime, [folder + '/mutants.json', build + '/libolympus.a', *main])):
        return program
    done = subprocess.run(['mpicc', '-pthread', *main, *helpers, *more, *changed(folder),
                           build + '/libolympus.a', *libraries(), '-o', program], capture_output=True, text=True)
    return program if done.returncode == 0 else None


class Test:
    def __init__(self, program, name, ranks):
        self.command, self.name, self.ranks = [program], name, ranks
        self.devices = devices_of(name) // ranks
        self.seconds, self.reached = 0, set()

    def run(self, mutant, limit, reached=None):
        """True: passed."""
        env = dict(os.environ, OLYMPUS_NUM_CPU_DEVICES=str(self.devices), OLY_MUTANT=str(mutant), OLYMPUS_TIMEOUT='20',
                   OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_rmaps_base_oversubscribe='1',
                   OMPI_MCA_hwloc_base_binding_policy='none', OMPI_MCA_mpi_yield_when_idle='1', **FEW)
        if reached:
            env['OLY_MUTANT_REACHED'] = reached
        command = ['timeout', '-k', '2', str(int(limit) + 1)]
        command += ['mpirun', '-n', str(self.ranks)] * (self.ranks > 1) + self.command
        return subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def try_without(self, folder):
        path = '%s/reached/%s.%d' % (folder, self.name, self.ranks)
        if not os.path.exists(path):
            begin = time.time()
            passed = self.run(0, LONGEST, path + '.part')
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
    oracle = link(folder, build, 'oracle')
    for family in sorted(glob.glob('tests/oracle/*/')) if oracle else []:
        found.append(Test(oracle, 'oracle-' + os.path.basename(family[:-1]), 1))
        found[-1].command.append(family)
        found[-1].devices = 16
    with ThreadPoolExecutor(jobs()) as pool:
        good = list(pool.map(lambda t: t.try_without(folder), found))
    return sorted((t for t, g in zip(found, good) if g), key=lambda t: t.seconds)


def random_programs_notice(soak, number, seconds):
    """Turns of random programs of new seeds on eight devices."""
    end = time.time() + seconds
    while soak and time.time() < end:
        turn = Test(soak, 'soak', 1)
        turn.command += [str(random.randrange(1 << 40)), '50']
        if not turn.run(number, 300):
            return True
    return False


def jobs():
    return int(os.environ.get('JOBS', os.cpu_count()))


def judge(number, tests, soak, seconds):
    mine = [t for t in tests if number in t.reached]
    begin = time.time()
    for t in mine:
        if not t.run(number, 10 * t.seconds + 20):
            return {'verdict': 'killed', 'by': t.name, 'ranks': t.ranks}
        if time.time() - begin > float(os.environ.get('LIMIT', 600)):
            break
    if random_programs_notice(soak, number, seconds):
        return {'verdict': 'killed', 'by': 'soak', 'ranks': 1}
    return {'verdict': 'survived' if mine else 'not reached', 'tests': len(mine), 'seconds': round(time.time() - begin)}


def main():
    folder, build = sys.argv[1], sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60
    os.makedirs(folder + '/reached', exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(['gcc', '-O1', '-c', here + '/mutant.c', '-o', folder + '/mutant.o'], check=True)
    mutants = {int(n): m for n, m in json.loads(read(folder + '/mutants.json'))['mutants'].items()}
    tests = tests_of(folder, build)
    soak = link_soak(folder, build)
    print('%d tests, %.0f s' % (len(tests), sum(t.seconds for t in tests)), flush=True)
    known = {r['number']: r for r in map(json.loads, read(folder + '/log').splitlines())}
    left = [n for n in mutants if n not in known]
    random.Random(1).shuffle(left)

    def one(n):
        result = dict(judge(n, tests, soak, seconds), number=n)
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
