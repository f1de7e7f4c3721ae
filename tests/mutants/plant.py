#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plants mutants: plant.py FOLDER SEED COUNT [SOURCE...]

Chooses COUNT places in the sources (by default all of runtime/plan, runtime/transform, runtime/graph and kernels) by SEED, writes
changed copies of those sources to FOLDER/src, compiles them, and writes a list of the mutants to FOLDER/mutants.json. Places:
comparisons, arithmetic, integers (one more, one less), conditions (negated), && and ||, statements (left out). Each is written as a
choice at run time (mutant.h), so that one program has them all. Lines keep their numbers. Needs Debian's python3-clang.
What is planted in FOLDER already stays, with what is known of it, as long as the sources are the same; otherwise the old results are
kept as FOLDER/log.before. CFLAGS: what else the compiler is told.
"""
import glob
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys

from concurrent.futures import ThreadPoolExecutor

try:
    import clang.cindex as cx
except ImportError:
    sys.exit('plant.py needs Debian\'s packages clang and python3-clang')

K = cx.CursorKind
OTHER = {'<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<'], '==': ['!='], '!=': ['=='],
         '+': ['-'], '-': ['+'], '*': ['+'], '/': ['*'], '&&': ['||'], '||': ['&&']}
ARITHMETIC = range(cx.TypeKind.BOOL.value, cx.TypeKind.LONGDOUBLE.value + 1)
FLAGS = ['-std=gnu11', '-Iinclude', '-Iruntime', '-Ikernels', '-Icollectives', '-Ilaunch', '-DOLY_ISA=base', '-w']


def sources():
    folders = ['runtime/plan', 'runtime/transform', 'runtime/graph', 'kernels']
    return sorted(p for f in folders for p in glob.glob(f + '/**/*.c', recursive=True))


def is_number(cursor):
    return cursor.type.get_canonical().kind.value in ARITHMETIC


class File:
    """The places of one source: (begin, end, text before, text instead or None, description)."""

    def __init__(self, path, index, flags):
        self.path = path
        self.source = open(path, 'rb').read()
        self.places = []
        unit = index.parse(path, args=flags)
        for cursor in unit.cursor.get_children():
            if cursor.kind == K.FUNCTION_DECL and cursor.is_definition() and self.is_here(cursor):
                for child in cursor.get_children():
                    if child.kind == K.COMPOUND_STMT:
                        self.visit(child)

    def is_here(self, cursor):
        return cursor.location.file and os.path.samefile(cursor.location.file.name, self.path)

    def text(self, begin, end):
        return self.source[begin:end].decode()

    def add(self, begin, end, instead, what):
        self.places.append((begin, end, instead, what, self.source.count(b'\n', 0, begin) + 1))

    def visit(self, cursor):
        if cursor.kind == K.VAR_DECL:
            if cursor.storage_class == cx.StorageClass.STATIC or 'ARRAY' in cursor.type.kind.name:
                return
        if cursor.kind == K.COMPOUND_STMT:
            for child in cursor.get_children():
                self.statement(child)
        if cursor.kind in (K.IF_STMT, K.WHILE_STMT):
            self.condition(next(cursor.get_children()))
        if cursor.kind == K.BINARY_OPERATOR:
            self.operator(cursor)
        if cursor.kind == K.INTEGER_LITERAL:
            self.integer(cursor)
        children = list(cursor.get_children())
        if cursor.kind == K.CASE_STMT:
            children = children[1:]
        for child in children:
            self.visit(child)

    def extent(self, cursor):
        return cursor.extent.start.offset, cursor.extent.end.offset

    def statement(self, cursor):
        begin, end = self.extent(cursor)
        text = self.text(begin, end)
        if self.source[end:end + 1] != b';' or re.match(r'OLY_[A-Z_]+\(', text):
            return
        if cursor.kind == K.CALL_EXPR or cursor.kind == K.COMPOUND_ASSIGNMENT_OPERATOR:
            self.add(begin, end, None, 'left out: ' + text)
        elif cursor.kind == K.BINARY_OPERATOR and self.symbol(cursor)[0] == '=':
            self.add(begin, end, None, 'left out: ' + text)

    def condition(self, cursor):
        begin, end = self.extent(cursor)
        text = self.text(begin, end)
        if begin < end and self.balanced(text) and not re.match(r'[A-Z_]+\(', text):
            self.add(begin, end, '!(%s)' % text, 'negated: ' + text)

    def balanced(self, text):
        return text.count('(') == text.count(')') and ';' not in text and '{' not in text

    def symbol(self, cursor):
        operands = list(cursor.get_children())
        if len(operands) != 2:
            return '', None
        (b1, e1), (b2, e2) = map(self.extent, operands)
        between = re.sub(r'/\*.*?\*/', '', self.text(e1, b2), flags=re.S).strip() if e1 <= b2 else ''
        return between, (b1, e1, b2, e2, operands)

    def operator(self, cursor):
        symbol, place = self.symbol(cursor)
        if symbol not in OTHER:
            return
        b1, e1, b2, e2, operands = place
        left, right = self.text(b1, e1), self.text(b2, e2)
        if not (self.balanced(left) and self.balanced(right)):
            return
        if symbol in '+-*/' and not all(map(is_number, operands)):
            return
        if (b1, e2) != self.extent(cursor):
            return
        for other in OTHER[symbol]:
            self.add(b1, e2, '(%s) %s (%s)' % (left, other, right), '%s instead of %s: %s' % (other, symbol, self.text(b1, e2)))

    def integer(self, cursor):
        begin, end = self.extent(cursor)
        text = self.text(begin, end)
        if re.fullmatch(r'(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*', text):
            around = self.text(max(0, begin - 30), end + 30).replace('\n', ' ')
            self.add(begin, end, '(%s + 1)' % text, '%s + 1 in ...%s...' % (text, around))
            if text != '0':
                self.add(begin, end, '(%s - 1)' % text, '%s - 1 in ...%s...' % (text, around))


def choose(files, seed, count):
    everything = [(f, p) for f in files for p in f.places]
    random.Random(seed).shuffle(everything)
    chosen, taken = [], {}
    for f, p in everything:
        if len(chosen) == count:
            break
        if all(p[1] <= b or e <= p[0] for b, e in taken.setdefault(f.path, [])):
            taken[f.path].append(p[:2])
            chosen.append((f, p))
    return chosen, len(everything)


def write(f, chosen, folder):
    """A copy of the source with its mutants in it; numbers begin with 1. None: it has none."""
    mine = sorted(((p, n) for n, (g, p) in chosen.items() if g is f), reverse=True)
    out = f.source
    for (begin, end, instead, _, _), number in mine:
        old = out[begin:end]
        if instead is None:
            new = b'if (!oly_mutant_is(%d)) ' % number + old
        else:
            flat = ' '.join(re.sub(r'/\*.*?\*/', '', instead, flags=re.S).split()).encode()
            new = b'(oly_mutant_is(%d) ? (%s) : (' % (number, flat) + old + b'))'
        out = out[:begin] + new + out[end:]
    path = os.path.join(folder, 'src', f.path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(b'#line 1 "%s"\n' % f.path.encode() + out)
    return path if mine else None


ISAS = {'base': [], 'avx2': ['-march=haswell'], 'avx512': ['-march=skylake-avx512', '-mprefer-vector-width=512']}
HERE = os.path.dirname(os.path.abspath(__file__))


def compile_source(f, path):
    """Makes its objects; returns what the compiler said."""
    told = ''
    kernel = f.path.startswith('kernels/cpu/')
    for isa in ISAS if kernel else ['base']:
        flags = ['-ffp-contract=off', '-fno-math-errno', '-fno-trapping-math', *ISAS[isa], '-DOLY_ISA=' + isa] if kernel else []
        told += subprocess.run(['mpicc', '-O1', '-g1', '-fPIC', '-fvisibility=hidden', '-pthread', *FLAGS, *flags,
                                *os.environ.get('CFLAGS', '').split(), '-I' + os.path.dirname(f.path), '-include',
                                HERE + '/mutant.h', '-c', path, '-o', '%s.%s.o' % (path[:-2], isa)],
                               capture_output=True, text=True).stderr
        if told:
            break
    return told


def drop_wrong(f, told, chosen):
    """Leaves out the mutants that do not compile where they are: sizes of arrays, constants."""
    lines = {int(n) for n in re.findall(r'^%s:(\d+):\d+: error' % re.escape(f.path), told, re.M)}
    if 'error' in told and not lines:
        sys.exit(told)
    for line in lines:
        before = [n for n, (g, p) in chosen.items() if g is f and p[4] <= line]
        if not before:
            sys.exit(told)
        last = max(chosen[n][1][4] for n in before)
        for n in before:
            if chosen[n][1][4] == last:
                del chosen[n]


def build(f, chosen, folder):
    while (path := write(f, chosen, folder)):
        told = compile_source(f, path)
        if not told:
            return
        drop_wrong(f, told, chosen)


def digest(paths):
    paths = paths + glob.glob('runtime/**/*.h', recursive=True) + glob.glob('kernels/**/*.h', recursive=True) + glob.glob(HERE + '/mutant.*') + [HERE + '/plant.py']
    return hashlib.sha1(b''.join(open(p, 'rb').read() for p in sorted(paths))).hexdigest()


def is_planted(folder, wanted):
    """True: the same mutants of the same sources are there."""
    try:
        with open(os.path.join(folder, 'mutants.json')) as file:
            known = json.load(file)
    except FileNotFoundError:
        return False
    if all(known.get(k) == v for k, v in wanted.items()):
        return True
    shutil.rmtree(os.path.join(folder, 'src'), ignore_errors=True)
    if os.path.exists(os.path.join(folder, 'log')):
        os.replace(os.path.join(folder, 'log'), os.path.join(folder, 'log.before'))
    return False


def main():
    folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wanted = {'seed': seed, 'count': count, 'digest': digest(sys.argv[4:] or sources())}
    if is_planted(folder, wanted):
        print('planted already')
        return
    if not shutil.which('clang'):
        sys.exit('plant.py needs clang, for its headers')
    resource = subprocess.run(['clang', '-print-resource-dir'], capture_output=True, text=True).stdout.strip()
    index = cx.Index.create()
    FLAGS.remove('-DOLY_ISA=base')
    flags = FLAGS + ['-DOLY_ISA=base', '-I' + resource + '/include']
    files = [File(p, index, flags) for p in (sys.argv[4:] or sources())]
    sample, total = choose(files, seed, count)
    chosen = {n: s for n, s in enumerate(sample, 1)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(build, f, chosen, folder) for f in files]:
            done.result()
    listed = {n: {'file': f.path, 'line': p[4], 'change': ' '.join(p[3].split())} for n, (f, p) in sorted(chosen.items())}
    with open(os.path.join(folder, 'mutants.json'), 'w') as file:
        json.dump(dict(wanted, places=total, mutants=listed), file, indent=1)
    print('%d mutants of %d places in %d sources' % (len(listed), total, len({m['file'] for m in listed.values()})))


main()
