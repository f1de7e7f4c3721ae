"""grad: one random statement each.  gradients.py COUNT SEED FOLDER single|auto"""
from candidates import *
import warnings; warnings.simplefilter("ignore")
GU = "neg sin tanh sigmoid relu exp abs square cos log rsqrt gelu_tanh softplus acos acosh asin asinh atan atanh cbrt cosh sinh tan deg2rad digamma elu erf erf_inv erfc exp2 expm1 gelu_erf leaky_relu lgamma log10 log1p log2 log_sigmoid reciprocal relu6 silu sinc sqrt stop_gradient nan_to_num".split()
GB = "add sub mul max min div pow atan2 logaddexp hypot fmax copysign mod rem".split()
GS = "select clip dot_general matmul einsum reduce_sum reduce_max reduce_min reduce_mean reduce_prod reduce_std reduce_var sort cumsum cumprod cummax cummin cumlogsumexp softmax log_softmax logsumexp reshape transpose broadcast_in_dim broadcast_to concatenate stack slice dynamic_slice dynamic_update_slice pad tile repeat roll rev diff tril triu expand_dims squeeze outer take take_along_axis at_get at_set at_add at_max conv segment_sum convolve diag trace integer_pow top_k sort_kv".split()
DOM = dict(acos=(-.9, .9), asin=(-.9, .9), atanh=(-.9, .9), erf_inv=(-.9, .9), acosh=(1.1, 4), log=(.1, 4), rsqrt=(.1, 4), log10=(.1, 4), log2=(.1, 4), log1p=(-.8, 3), sqrt=(.1, 4), lgamma=(.2, 5), digamma=(.5, 5), reciprocal=(.3, 3), cbrt=(.1, 3), tan=(-1.2, 1.2))
ALLM = [dict(x=8), dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=2, y=4)]
def case(k, seed, W, mode):
    r = random.Random(seed * 7001 + k); op = r.choice(GU + GB * 2 + GS * 3)
    g = G(seed * 5003 + k, r.choice(ALLM), sizes=(4, 8, 2, 6, 3, 5) if mode == "single" else (8, 4, 16, 5), even=1.0 if r.random() < .8 else 0.0)
    if op in GU: g.let(op, g.inp(g.shape(1, 2)))
    elif op in GB:
        s = g.shape(1, 3); t = s[r.randint(0, len(s) - 1):] if r.random() < .4 and op not in ("rem",) else list(s)
        if op != "rem": t = [1 if r.random() < .15 else e for e in t]
        g.let(op, g.inp(s), g.inp(t))
    elif op in ("cummin",): s = g.shape(1, 3); g.let(op, g.inp(s), axis=r.randrange(len(s)), reverse=r.randint(0, 1))
    elif op == "sort_kv": s = g.shape(1, 2); g.let(op, g.inp(s), g.inp(s), axis=r.randrange(len(s)), num_keys=1, names=2)
    else: statement(g, op)
    data = {}
    for n, d, s, sp, _ in g.ins:
        c = int(np.prod(s))
        if d == "bool": v = np.array([r.random() < .5 for _ in range(c)])
        elif d == "i32": v = np.array([r.randint(-2, 9) for _ in range(c)], np.int32)
        else:
            lo, hi = DOM.get(op, (None, None))
            v = np.array([r.uniform(lo, hi) if lo is not None else abs(r.gauss(0, 1)) + .2 if op in ("pow", "mod", "rem") else r.gauss(0, 1) for _ in range(c)], np.float32)
            if lo is None and r.random() < .12 and op not in ("pow", "reduce_std", "mod", "rem", "div", "log", "atan2", "hypot"): v = np.array([r.randint(-2, 2) for _ in range(c)], np.float32)
        data[n] = v.reshape(s)
        if op in ("clip",) and n in ("p1", "p2"): data[n] = (np.abs(data[n]) * (-1 if n == "p1" else 1)).astype(np.float32)
    lets = [re.sub(r" out=P\([^ ]*| pref=\w+", "", l).replace("dtype=bf16", "dtype=f32") for l in g.lets]
    lets = [l for l in lets]
    outs = lets[-1].split()[1].split(",")
    wl = [l.split() for l in lets]
    fl = [n for n in data if data[n].dtype == np.float32]
    if not fl: return None
    def run(x64):
        jax.config.update("jax_enable_x64", x64)
        up = lambda a: jnp.asarray(a.astype(np.float64) if x64 and a.dtype == np.float32 else a)
        w = [re.sub("dtype=f32", "dtype=f64", l).split() if x64 else l.split() for l in lets]
        def f(*xs): v = run_lets(Env(), w, {**{n: up(a) for n, a in data.items()}, **dict(zip(fl, xs))}); return [v[o] for o in outs]
        xs = [up(data[n]) for n in fl]
        o, pull = jax.vjp(f, *xs)
        return o, pull, f, xs
    try: o, pull, f, xs = run(False)
    except Exception as e: return "skip " + op + " " + str(e)[:90]
    if not all(q.dtype == np.float32 for q in o[:1]): return None
    if any(q.size == 0 for q in o): return None
    cts = [np.array([r.gauss(0, 1) for _ in range(q.size)], np.float32).reshape(q.shape) if q.dtype == np.float32 else None for q in o]
    if any(c is None for c in cts): return None
    jv = r.random() < .3
    tans = [np.array([r.gauss(0, 1) for _ in range(x.size)], np.float32).reshape(x.shape) for x in xs]
    try:
        gr = pull([jnp.asarray(c) for c in cts]); jo = jax.jvp(f, xs, [jnp.asarray(t) for t in tans])[1] if jv else []
    except Exception as e: return "skip " + op + " " + str(e)[:90]
    gr, jo, o = [np.asarray(q) for q in gr], [np.asarray(q) for q in jo], [np.asarray(q) for q in o]
    try:
        o2, pull2, f2, xs2 = run(True)
        gr2 = [np.asarray(q) for q in pull2([jnp.asarray(c.astype(np.float64)) for c in cts])]; jo2 = [np.asarray(q) for q in jax.jvp(f2, xs2, [jnp.asarray(t.astype(np.float64)) for t in tans])[1]] if jv else []
        o2 = [np.asarray(q) for q in o2]
    except Exception as e: return "skip wide " + str(e)[:80]
    finally: jax.config.update("jax_enable_x64", False)
    def tol(a, b):
        e = np.nan_to_num(np.abs(np.where(np.isfinite(a), a, 0) - np.where(np.isfinite(b), b, 0))).max(initial=0); m = np.abs(np.where(np.isfinite(a), a, 0)).max(initial=0)
        return f"relabs 1.91e-06 {4 * e + 1e-6 * max(m, .1):.3g}"
    L = ["mode " + mode] if mode == "single" else [g.head()[0], "mode " + mode]
    for n, d, s, sp, _ in g.ins: L.append(W.array("in", n, data[n], spec_text(sp) if mode != "single" else "-"))
    L += lets
    L += [f"ret {q} f32 [{','.join(map(str, v.shape))}] -" for q, v in zip(outs, o)]
    L += [W.array("ct", q, c) for q, c in zip(outs, cts)]
    if jv: L += [W.array("tan", q, c) for q, c in zip(fl, tans)]
    L += [W.array("out", q, v, "-", tol(v, w)) for q, v, w in zip(outs, o, o2)]
    L += [W.array("out", "grad:" + q, v, "-", tol(v, w)) for q, v, w in zip(fl, gr, gr2)]
    if jv: L += [W.array("out", "jvp:" + q, v, "-", tol(v, w)) for q, v, w in zip(outs, jo, jo2)]
    W.case(f"grad.{mode}.{op}.{k:04d}", L)
if __name__ == "__main__":
    import collections
    W = Writer(sys.argv[3], "family grad"); oth = collections.Counter()
    for k in range(int(sys.argv[1])):
        m = case(k, int(sys.argv[2]), W, sys.argv[4])
        if m: oth[m] += 1
    W.close()
    for m, q in oth.most_common(12): print(q, m)
