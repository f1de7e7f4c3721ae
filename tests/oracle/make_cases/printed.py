"""print: str() and repr().  printed.py COUNT SEED FOLDER"""
from candidates import *
jax.config.update("jax_enable_x64", False)
W = Writer(sys.argv[3], "family print"); n, seed = int(sys.argv[1]), int(sys.argv[2]); r = random.Random(seed)
SH = [[], [1], [3], [8], [0], [0, 3], [2, 0], [2, 3], [1, 8], [4, 4], [2, 3, 4], [1, 1, 1], [2, 2, 2, 2], [30], [25, 3], [3, 25], [1000], [1001], [40, 40], [6, 6, 6, 6], [1200, 1], [2, 700], [3, 1, 500], [11, 100]]
def vals(dt, n):
    c = r.random(); g = np.random.default_rng(r.randrange(1 << 30))
    if dt in ("f32", "f16", "bf16", "f64"):
        k = r.choice("nwuismaeztc")
        with np.errstate(all="ignore"):
            x = dict(n=lambda: g.normal(size=n), w=lambda: 10 ** g.uniform(-12, 12, n) * g.choice([-1, 1], n), u=lambda: g.random(n), i=lambda: g.integers(-1000, 1000, n), s=lambda: g.normal(size=n) * 1e-5, m=lambda: g.normal(size=n) * 1e7, a=lambda: np.arange(n) / 2, e=lambda: g.choice([0, 1, np.nan, np.inf, -np.inf, 1e-8, 123.456, -0.0, 1e10], n), z=lambda: np.zeros(n), t=lambda: g.integers(0, 100, n) / 10, c=lambda: g.integers(-9, 9, n) * 10.0 ** r.randint(-6, 17))[k]()
            return np.asarray(x, np.float64).astype(DTYPES[dt])
    if dt in ("c64", "c128"): return (g.normal(size=n) * 10 ** r.uniform(-5, 6) + 1j * g.integers(-5, 5, n) * r.choice([1, .5, 1e-3])).astype(DTYPES[dt])
    if dt == "bool": return g.random(n) < .5
    i = np.iinfo(DTYPES[dt]); return g.integers(i.min, i.max, n, endpoint=True, dtype=DTYPES[dt]) if r.random() < .3 else g.integers(max(i.min, -9), 100, n).astype(DTYPES[dt])
for k in range(n):
    x64 = r.random() < .25; jax.config.update("jax_enable_x64", x64)
    s = r.choice(SH); dt = r.choice(["f32"] * 5 + ["i32", "i32", "bool", "f16", "bf16", "c64", "u8", "i8", "u32", "i16"] + (["f64", "i64", "c128", "u64"] * 3 if x64 else []))
    a = vals(dt, int(np.prod(s))).reshape(s); x = jnp.asarray(a)
    L = (["x64 1"] if x64 else []) + [W.array("in", "a", a)]
    for w, t in (("str", str(x)), ("repr", repr(x))): L += [w] + ["| " + q for q in t.split("\n")]
    W.case(f"print.{dt}.{k:04d}", L)
W.close()
