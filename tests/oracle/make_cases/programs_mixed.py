"""prog: one statement of any kind, then some that read its results, on operands of mixed types, split evenly or not.
programs_mixed.py COUNT SEED FOLDER"""
from candidates import *
import warnings; warnings.simplefilter("ignore")
MM = [dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=8), dict(x=2, y=4)]
THEN = "neg abs square reduce_sum reduce_max reduce_mean transpose rev cumsum sort concatenate add mul sub max select roll slice reshape convert argmax softmax broadcast_to".split()
def data_of(r, d, n, whole):
    if d == "bool": return np.array([r.random() < .5 for _ in range(n)])
    if d in ("i32", "u8", "i8", "u32"): return np.array([r.randint(0 if d[0] == "u" else -3, 6) for _ in range(n)], DTYPES[d])
    if d == "c64": return np.array([complex(r.randint(-3, 3), r.randint(-3, 3)) if whole else complex(r.gauss(0, 1), r.gauss(0, 1)) for _ in range(n)], DTYPES[d])
    return np.array([r.randint(-3, 4) if whole else r.gauss(0, 1) for _ in range(n)], np.float32).astype(DTYPES[d])
def text(v):
    return "[" + ",".join(text(e) for e in v) + "]" if isinstance(v, (list, tuple)) else str(v)
def then(r, v, lets, k):
    """One more statement on what is there."""
    x = r.choice(sorted(v)[-3:]); s = list(v[x].shape); op = r.choice(THEN); n = len(s); a = r.randrange(n) if n else 0; kw, args = {}, [x]
    if op.startswith("reduce"): kw = dict(axes=sorted(r.sample(range(n), r.randint(0, n))) if n else [], keepdims=r.randint(0, 1))
    elif op == "transpose": p = list(range(n)); r.shuffle(p); kw = dict(perm=p)
    elif op in ("rev",): kw = dict(dims=[a]) if n else None
    elif op in ("cumsum", "sort"): kw = dict(axis=a, **({"reverse": 0} if op == "cumsum" else {"descending": 0})) if n else None
    elif op in ("argmax", "softmax"): kw = dict(axis=a) if n else None
    elif op == "roll": kw = dict(shift=[r.randint(-3, 4)], axes=[a]) if n else None
    elif op == "slice": kw = dict(start=[0 if q < 3 else 1 for q in s], limit=s, stride=[r.choice([1, 1, 2]) for _ in s])
    elif op == "reshape": kw = dict(shape=[int(np.prod(s))])
    elif op == "convert": kw = dict(dtype=r.choice(["f32", "i32", "bf16", "f16", "bool"]))
    elif op == "broadcast_to": kw = dict(shape=[2] + s)
    elif op in ("concatenate", "add", "mul", "sub", "max"):
        c = [y for y in v if v[y].shape == v[x].shape or (op != "concatenate" and v[y].ndim == 0)]; args.append(r.choice(c))
        if op == "concatenate": kw = dict(axis=a) if n else None
    elif op == "select":
        c = [y for y in v if v[y].dtype == bool and v[y].shape in ((), v[x].shape)]
        if not c: return
        args = [r.choice(c), x, r.choice([y for y in v if v[y].shape == v[x].shape])]
    if kw is None: return
    line = " ".join([f"let t{k} {op}", *args, *[f"{q}={text(e)}" for q, e in kw.items()]])
    return line
def run(lets, values, wide):
    jax.config.update("jax_enable_x64", wide)
    try:
        up = lambda a: jnp.asarray(a.astype(np.float64) if a.dtype.kind == "f" or a.dtype == ml_dtypes.bfloat16 else a.astype(np.complex128) if a.dtype.kind == "c" else a) if wide else jnp.asarray(a)
        lets = [re.sub(r"dtype=(f32|bf16|f16)", "dtype=f64", l) if wide else l for l in lets]
        return {n: np.asarray(x) for n, x in run_lets(Env(), [l.split() for l in lets], {n: up(a) for n, a in values.items()}).items()}
    finally: jax.config.update("jax_enable_x64", False)
def case(W, k, seed, skipped):
    r = random.Random(seed * 9001 + k); op = r.choice(TYPES_OPS); whole = r.random() < .5
    g = G(seed * 6007 + k, r.choice(MM), sizes=(4, 8, 2, 16, 8) if r.random() < .6 else (5, 8, 3, 7, 10), even=1.0 if r.random() < .5 else 0.0)
    if op in ("reshard", "constraint", "at_mul", "iota", "full", "eye"): return
    statement(g, op)
    mix = {}
    for e in g.ins:
        if e[1] == "f32" and r.random() < .25: e[1] = r.choice(["f16", "bf16", "i32", "u8", "c64", "f32"]) if op in ("add", "mul", "sub", "matmul", "dot_general", "einsum", "concatenate", "stack", "neg", "abs", "square", "reduce_sum", "transpose", "take", "at_get") and len(g.ins) < 3 else "f16"
        if np.prod(e[2]) > 3000: return
    values = {n: data_of(r, d, int(np.prod(s)), whole).reshape(s) for n, d, s, sp, _ in g.ins}
    lets = [re.sub(r" out=P\([^ ]*| pref=\w+", "", l) for l in g.lets]
    try: v = run(lets, values, False)
    except Exception as e: skipped[op + " " + str(e)[:60]] += 1; return
    for j in range(r.randint(0, 3)):
        line = then(r, v, lets, j)
        if not line: continue
        try: v2 = run([line], v, False)
        except Exception: continue
        v, lets = v2, lets + [line]
    outs = sorted({d for l in lets for d in l.split()[1].split(",")} - {a for l in lets for a in parse_let(l.split())[2]})
    try: wide = run(lets, values, True)
    except Exception as e: skipped["wide " + op + str(e)[:50]] += 1; return
    if any(v[o].size > 12000 for o in outs): return
    L = [g.head()[0]] + [W.array("in", n, values[n], spec_text(sp)) for n, d, s, sp, _ in g.ins] + lets
    for o in outs:
        a, b = v[o], wide[o]
        if a.dtype.kind in "iub" and a.dtype != ml_dtypes.bfloat16:
            if not np.array_equal(a, b.astype(a.dtype)): skipped["integers differ " + op] += 1; return # rounding decides
            L.append(W.array("out", o, a, "-", "exact")); continue
        c = np.complex128 if a.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            a64, b64 = a.astype(c), b.astype(c); finite = np.isfinite(a64) & np.isfinite(b64)
            e = np.abs(np.where(finite, a64 - b64, 0)).max(initial=0); m = np.abs(np.where(np.isfinite(a64), a64, 0)).max(initial=0)
        step = dict(f16=1e-3, bf16=8e-3).get(NAMES[a.dtype], 1e-6)
        if e > 50 * step * max(m, 1): skipped["unstable " + op] += 1; return
        L.append(W.array("out", o, a, "-", f"relabs {step:.3g} {4 * e + 4 * step * max(m, 1e-3):.3g}"))
    W.case(f"prog.m.{op}.{k:05d}", L)
if __name__ == "__main__":
    import collections
    W = Writer(sys.argv[3], "family prog"); skipped = collections.Counter()
    for k in range(int(sys.argv[1])): case(W, k, int(sys.argv[2]), skipped)
    W.close()
    for m, q in skipped.most_common(15): print(q, m)
