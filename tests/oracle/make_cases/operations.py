"""ops, ops64: the cases there are, with other data. Needs mpmath.  operations.py ops|ops64 FOLDER SEED [PATTERN [COUNT]]"""
from candidates import *
import warnings; warnings.simplefilter("ignore")
WIDE = dict(f32="f64", f16="f64", bf16="f64", c64="c128")
ELEM = set(n for n in S if n in UNARY or n in BINARY) | set("acos acosh asin asinh atan atanh cbrt ceil conj angle cosh sinh tan deg2rad digamma elu erf erf_inv erfc exp2 expm1 gelu_erf imag isfinite isinf leaky_relu lgamma log10 log1p log2 log_sigmoid logical_and logical_not logical_or nan_to_num ne neg nextafter popcount clz real reciprocal relu6 round round_away signbit silu sinc sqrt trunc xor or not shl shr sar add sub mul div lax_div mod rem floor_divide fmax hypot copysign logaddexp ge gt le eq lt max min pow atan2".split())
def ulps(x, ref, dt):
    """Largest distance in steps of the type."""
    x = np.asarray(x); 
    if dt in ("c64", "c128"): return max(ulps(x.real, ref.real, "f32" if dt == "c64" else "f64"), ulps(x.imag, ref.imag, "f32" if dt == "c64" else "f64"))
    with np.errstate(all="ignore"):
        b = np.asarray(ref, np.float64); a = x.astype(np.float64)
        p = dict(f32=24, f16=11, bf16=8, f64=53)[dt]; emin = dict(f32=-125, f16=-13, bf16=-125, f64=-1021)[dt]
        ok = np.isfinite(a) & np.isfinite(b)
        ex = np.maximum(np.frexp(np.abs(b))[1], emin)
        u = np.abs(a - b) / np.ldexp(1.0, ex - p)
        tiny = np.ldexp(1.0, emin - 1)
        u = np.where((np.abs(a) <= tiny) & (np.abs(b) <= tiny), 0, u)
        u = np.where(ok, u, 0)
    return float(u.max(initial=0))
def edges(dt):
    if dt in ("f32", "f16", "bf16", "f64"):
        t = DTYPES[dt]; fi = ml_dtypes.finfo(t)
        v = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 2, 3, -3, 10, 100, -100, 1e-3, np.inf, -np.inf, np.nan, float(fi.max), -float(fi.max), float(fi.tiny), -float(fi.tiny), float(fi.eps), 1 + float(fi.eps), 1 - float(fi.eps) / 2, 3.14159265, -3.14159265, 1.5707964, 0.1, 0.7, -0.9999, 88, -88, 89, -104, 700, 20, -20, 5, -7, 1e5, 4194304.5, 8388607.5, 16777216, 0.49999997, 65504, 1e-8, 1e30, 1e-30, 127, 255, -128, 33, 64, 2147483648, -2147483648]
        with np.errstate(all="ignore"): return np.array(v, np.float64).astype(t)
    if dt in ("c64", "c128"): return np.array([complex(a, b) for a in (0, 1, -1, .5, 2, -3, 1e-3, 100, .9) for b in (0, 1, -1, .5, -2, 3, 1e-3, -100)], DTYPES[dt])
    if dt == "bool": return np.array([True, False])
    i = np.iinfo(DTYPES[dt]); v = [0, 1, 2, 3, 5, 7, 8, 10, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 255, i.max, i.max - 1, i.max // 2, i.min, i.min + 1, i.min // 2, -1, -2, -3, -7, -10]
    return np.array(sorted(set(x for x in v if i.min <= x <= i.max)), DTYPES[dt])
def rnd(r, dt, n, kind):
    g = np.random.default_rng(r.randrange(1 << 30))
    if dt in ("f32", "f16", "bf16", "f64"):
        x = {"n": g.normal(size=n), "w": g.normal(size=n) * 10 ** g.uniform(-3, 3, n), "u": g.uniform(-1, 1, n), "p": g.uniform(0, 10, n), "b": g.normal(size=n) * 30, "h": 10 ** g.uniform(-30, 30, n) * g.choice([-1, 1], n)}[kind]
        with np.errstate(all="ignore"): return x.astype(np.float32).astype(DTYPES[dt]) if dt != "f64" else x
    if dt in ("c64", "c128"): return (g.normal(size=n) + 1j * g.normal(size=n)).astype(DTYPES[dt]) * {"n": 1, "w": 5, "u": .5, "p": 2, "b": 10, "h": 3}[kind]
    if dt == "bool": return g.random(n) < .5
    i = np.iinfo(DTYPES[dt]); 
    if kind in "nu": return g.integers(max(i.min, -10), 11, n).astype(DTYPES[dt])
    return g.integers(i.min, i.max, n, endpoint=True, dtype=DTYPES[dt])
import mpmath as mp
mp.mp.dps = 40
def mp_unary(op):
    one = mp.mpf(1)
    T = dict(exp2=lambda x: mp.power(2, x), sinh=mp.sinh, cosh=mp.cosh, tanh=mp.tanh, atanh=mp.atanh, log1p=lambda x: mp.log(1 + x), erfc=mp.erfc, erf=mp.erf, erf_inv=mp.erfinv, lgamma=lambda x: mp.log(abs(mp.gamma(x))), digamma=mp.digamma,
      gelu_erf=lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, exp=mp.exp, log=mp.log, sin=mp.sin, cos=mp.cos, tan=mp.tan, expm1=mp.expm1, asin=mp.asin, acos=mp.acos, atan=mp.atan, asinh=mp.asinh, acosh=mp.acosh, cbrt=lambda x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x), sqrt=mp.sqrt, rsqrt=lambda x: 1 / mp.sqrt(x),
      sigmoid=lambda x: 1 / (1 + mp.exp(-x)), silu=lambda x: x / (1 + mp.exp(-x)), softplus=lambda x: mp.log(1 + mp.exp(x)), log2=lambda x: mp.log(x, 2), log10=mp.log10, gelu_tanh=lambda x: x * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x ** 3))) / 2, log_sigmoid=lambda x: -mp.log(1 + mp.exp(-x)), elu=lambda x: x if x > 0 else mp.expm1(x), sinc=lambda x: mp.sincpi(x))
    return T.get(op)
def mp_error(op, x, got):
    """Largest error in steps of float64."""
    f = mp_unary(op); worst = 0
    for a, b in zip(x.reshape(-1), got.reshape(-1)):
        if not (np.isfinite(a) and np.isfinite(b)): continue
        try: t = f(mp.mpf(float(a)))
        except Exception: continue
        if not isinstance(t, mp.mpf) or not mp.isfinite(t): continue
        if abs(t) < mp.mpf(2) ** -1021 and abs(b) < 2.0 ** -1021: continue
        u = mp.ldexp(1, max(int(mp.frexp(t)[1]), -1021) - 53) if t != 0 else mp.mpf(2) ** -1074
        worst = max(worst, float(abs(t - mp.mpf(float(b))) / u))
    return worst
def tolerance(line, ins, outs, template, x64):
    """Per result: exact as the template says, else from the error of JAX."""
    tols = []
    wide = None
    if any(t[0] != "exact" for t in template.values()) and not x64:
        jax.config.update("jax_enable_x64", True)
        try:
            w = {n: jnp.asarray(np.asarray(a).astype(DTYPES[WIDE[d]]) if d in WIDE else a) for n, (d, a) in ins.items()}
            ln = [re.sub(r"dtype=(f32|f16|bf16)", "dtype=f64", l).split() for l in line]
            wide = run_lets(Env(), ln, w)
        except Exception as e: wide = None
        finally: jax.config.update("jax_enable_x64", False)
    for n, v in outs.items():
        t = template.get(n, ["exact"]); d = NAMES[np.asarray(v).dtype]
        if t[0] == "exact": tols.append(" ".join(t)); continue
        if t[0] == "ulp" and wide is not None and d in WIDE: e = ulps(v, np.asarray(wide[n]), d); tols.append(f"ulp {int(np.ceil(e)) + 1}" if d == "f32" else f"ulp {max(1, int(np.ceil(e)))}")
        elif t[0] == "ulp" and x64 and len(ins) == 1 and len(line) == 1 and mp_unary(line[0].split()[2]) and next(iter(ins.values()))[0] == "f64":
            e = mp_error(line[0].split()[2], np.asarray(next(iter(ins.values()))[1]), np.asarray(v)); tols.append(f"ulp {int(np.ceil(e)) + 1}")
        elif t[0] == "ulp": tols.append(" ".join(t))
        else:
            a = np.abs(np.where(np.isfinite(v), v, 0)).max(initial=0)
            if wide is not None and d in WIDE: e = np.nan_to_num(np.abs(np.where(np.isfinite(v), v, 0) - np.where(np.isfinite(v), np.asarray(wide[n]), 0))).max(initial=0)
            else: e = 0
            tols.append(f"relabs {t[1]} {3 * e + 1e-6 * a if not x64 else float(t[2]) * max(1, a):.3g}")
    return tols
if __name__ == "__main__":
    fam, folder, seed, only = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "."
    x64 = fam.endswith("64"); jax.config.update("jax_enable_x64", x64)
    A = Arrays(f"{ORACLE}/{fam}"); W = Writer(folder, "family " + fam); r = random.Random(seed)
    seen = {}
    for c in read_cases(f"{ORACLE}/{fam}/cases.txt"):
        if not re.search(only, c.id): continue
        lets = [" ".join(w) for w in c.all("let")]; op = c.all("let")[0][2]
        ins = {w[1]: (w[2], A.get(w[2], int(w[5][1:]))) for w in c.all("in")}
        template = {w[1]: w[6:] for w in c.all("out")}
        elem = op in ELEM and len(lets) == 1
        key = (tuple(lets), tuple(d for d, _ in ins.values()))
        if elem and seen.get(key, 0) >= 1 and len(sys.argv) <= 5: continue
        seen[key] = seen.get(key, 0) + 1
        kinds = ["edge", "n", "w", "u", "b"] if elem else ["mut"]
        if len(sys.argv) > 5: kinds = ["same"] if elem else ["mut"] * int(sys.argv[5])
        for q, kind in enumerate(kinds):
            new = {}
            if elem and all(a.ndim == 1 for _, a in ins.values()):
                if kind == "edge":
                    es = [edges(d) for d, _ in ins.values()]
                    if len(es) == 1: new = {n: (d, es[0]) for n, (d, _) in ins.items()}
                    elif len(es) == 2:
                        g = np.meshgrid(*[np.arange(len(e)) for e in es], indexing="ij")
                        new = {n: (d, e[i.reshape(-1)]) for (n, (d, _)), e, i in zip(ins.items(), es, g)}
                    else: continue
                elif kind == "same":
                    g = np.random.default_rng(r.randrange(1 << 30))
                    for n, (d, a) in ins.items():
                        if d in ("f32", "f64", "f16", "bf16"):
                            f = a.astype(np.float64); f = f[np.isfinite(f)]; f = f[np.abs(f) < 1e5] if f.size else f
                            if f.size == 0: f = np.array([-1., 1.])
                            new[n] = (d, g.uniform(f.min(), f.max(), 300).astype(np.float32).astype(DTYPES[d]) if d != "f64" else g.uniform(f.min(), f.max(), 300))
                        elif d in ("c64", "c128"): new[n] = (d, (g.uniform(-2, 2, 100) + 1j * g.uniform(-2, 2, 100)).astype(DTYPES[d]))
                        elif d == "bool": new[n] = (d, g.random(100) < .5)
                        else: new[n] = (d, np.concatenate([g.choice(a, 150), g.choice(a, 150).astype(a.dtype)]))
                    m = min(v.size for _, v in new.values()); new = {n: (d, v[:m]) for n, (d, v) in new.items()}
                else: new = {n: (d, rnd(r, d, 120, kind)) for n, (d, _) in ins.items()}
            else:
                for n, (d, a) in ins.items():
                    a = np.array(a); f = a.reshape(-1).copy()
                    if f.size:
                        if d in ("f32", "f64", "f16", "bf16"):
                            if np.all(np.isfinite(f.astype(np.float64))) and np.all(f == np.round(f.astype(np.float64)).astype(f.dtype)): f = np.array([r.choice(list(range(-5, 6))) for _ in f]).astype(f.dtype) if template and f.min() < 0 else np.array([r.choice(list(range(0, 6))) for _ in f]).astype(f.dtype)
                            else: f = f[np.array([r.randrange(f.size) for _ in f])] * np.array([r.choice([1, 1, r.uniform(.5, 1.5)]) for _ in f]).astype(f.dtype)
                            if op in ("searchsorted",) and n == "a": f = np.sort(f)
                        elif d in ("c64", "c128"): f = f[np.array([r.randrange(f.size) for _ in f])]
                        elif d == "bool": f = np.array([r.random() < .5 for _ in f])
                        else: lo, hi = int(f.min()), int(f.max()); f = np.array([r.randint(lo, hi) for _ in f]).astype(f.dtype)
                    new[n] = (d, f.reshape(a.shape))
            try: v = run_lets(Env(), c.all("let"), {n: jnp.asarray(a) for n, (d, a) in new.items()})
            except Exception as e: print("skip", c.id, str(e)[:80]); continue
            outs = {w[1]: np.asarray(v[w[1]]) for w in c.all("out")}
            ts = tolerance(lets, new, outs, template, x64)
            W.case(f"{c.id}.{kind}{q}", [W.array("in", n, a) for n, (d, a) in new.items()] + lets + [W.array("out", n, o, "-", t) for (n, o), t in zip(outs.items(), ts)])
    W.close()
