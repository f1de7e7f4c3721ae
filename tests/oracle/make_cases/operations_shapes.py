"""ops, ops64 (by the folder's name): small integers, so that values are exact.  operations_shapes.py COUNT SEED FOLDER [STATEMENT,..]"""
from candidates import *
import warnings; warnings.simplefilter("ignore")
OPS = "select clamp clip dot_general matmul einsum reduce_sum reduce_max reduce_min reduce_prod reduce_mean reduce_all reduce_any argmax argmin argsort sort sort_kv top_k cumsum cumprod cummax cummin reshape transpose broadcast_in_dim broadcast_to concatenate stack slice dynamic_slice dynamic_update_slice pad tile repeat roll rev diff tril triu expand_dims squeeze outer one_hot convert take take_along_axis at_get at_set at_add at_max at_min at_mul conv searchsorted segment_sum bincount convolve diag trace integer_pow eye iota add sub mul max min lt rem lax_div mod floor_divide".split()
n, seed, folder, x64 = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], "64" in sys.argv[3]
jax.config.update("jax_enable_x64", x64)
W = Writer(folder, "family ops"); import collections; other = collections.Counter()
rr = random.Random(seed); ops = sys.argv[4].split(",") if len(sys.argv) > 4 else OPS
FL = ["f32", "f16", "bf16"] + (["f64"] * 3 if x64 else []); INT = ["i32", "u32", "i8", "u8", "i16", "u16"] + (["i64", "u64"] * 2 if x64 else []); CX = ["c128" if x64 else "c64"]
for k in range(n):
    op = rr.choice(ops); g = G(seed * 77777 + k, sizes=(3, 4, 5, 2, 1, 6, 7)); r = g.r
    if op in ("mod", "floor_divide", "lax_div", "rem"): s = g.shape(1, 3); g.let(op, g.inp(s), g.inp(s))
    elif op in ("at_min",): statement(g, "at_max"); g.lets[-1] = g.lets[-1].replace("at_max", "at_min")
    else: statement(g, op)
    main = r.choice(FL * 3 + INT * 2 + CX + ["bool"])
    data = {}
    for nme, d, s, sp, _ in g.ins:
        if d in ("f32", "bf16"): d2 = main
        elif d == "i32": d2 = "i32" if r.random() < .75 else r.choice(["i8", "u8", "i16", "u32"] + (["i64", "u64"] if x64 else []))
        else: d2 = d
        cnt = int(np.prod(s)); lo = 0 if d2[0] == "u" else -4
        v = np.array([r.randint(lo, 4) for _ in range(cnt)]).reshape(s)
        if d2 == "bool": v = v % 2 == 0
        if d2[0] == "c": v = v + 1j * np.array([r.randint(-3, 3) for _ in range(cnt)]).reshape(s)
        if d2 in FL and r.random() < .12 and cnt: v = v.astype(float); v.reshape(-1)[r.randrange(cnt)] = r.choice([np.nan, np.inf, -np.inf, -0.0])
        data[nme] = np.asarray(v).astype(DTYPES[d2])
    if op == "searchsorted":
        a = g.ins[0][0]
        if data[a].dtype.kind == "c": continue
        data[a] = np.sort(data[a])
    lets = [l.replace("dtype=f32", f"dtype={main}") if op in ("one_hot", "iota", "eye") else l for l in g.lets]
    lets = [re.sub(r" pref=\w+| out=P\([^ ]*", "", l) for l in lets]
    if op == "bitcast": continue
    try: v = run_lets(Env(), [l.split() for l in lets], {q: jnp.asarray(a) for q, a in data.items()})
    except Refused as e: other[op + " " + type(e.error).__name__ + " " + re.sub(r"\d+", "N", str(e.error).split("\n")[0])[:90]] += 1; continue
    outs = lets[-1].split()[1].split(",")
    def tol(x):
        x = np.asarray(x); c = x.dtype.kind
        if c in "fc" or x.dtype == ml_dtypes.bfloat16:
            if op in ("reduce_mean", "reduce_prod", "cumprod", "integer_pow", "reduce_std", "reduce_var", "convolve", "conv", "lax_div") or c == "c": 
                m = float(np.nan_to_num(np.abs(np.asarray(x, np.complex128)), posinf=0).max(initial=0)); eps = {2: 8e-3, 4: 1e-6, 8: 1e-6, 16: 1e-6}[x.dtype.itemsize]
                return f"relabs {eps} {eps * max(m, 1e-3):.3g}"
            return "exact zeros_equal"
        return "exact"
    W.case(f"ops{'64' if x64 else ''}.{op}.{k:05d}", [W.array("in", q, a) for q, a in data.items()] + lets + [W.array("out", o, v[o], "-", tol(v[o])) for o in outs])
W.close()
for m, q in other.most_common(25): print(q, m)
