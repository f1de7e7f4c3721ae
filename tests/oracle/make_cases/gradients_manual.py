"""grad, manual: bodies of shard_map over all axes, values, vjp."""
from candidates import *
from types_programs import candidate, case_of, shape_of, SHORT
from trace_types import trace_types
import warnings; warnings.simplefilter("ignore")
def vary(t): 
    m = re.search(r"\{V:\(?([^)}]*)\)?\}", t); return m.group(1).split(",") if m else []
n, seed = int(sys.argv[1]), int(sys.argv[2]); W = Writer(sys.argv[3], "family grad"); skipped = 0
for k in range(n):
    g = G(seed * 40009 + k, mesh=random.Random(k + seed).choice(MESHES[:2] + [dict(x=4), dict(x=8)]), sizes=(4, 8, 8), even=1.0); r = g.r
    for _ in range(r.randint(1, 3)): g.inp(g.shape(1, 2), "f32")
    text = g.head(); text.insert(1, "mode manual"); t, e = trace_types(case_of(text))
    if e or not t: continue
    def values(t): return {q: (SHORT[shape_of(v)[0]], shape_of(v)[1]) for q, v in t.items()}
    vals = values(t); steps = 0; lets = []; want = r.randint(2, 6)
    for _ in range(16):
        if steps >= want: break
        l = candidate(r, vals, steps, g.mesh, True, g)
        if not l or re.search(r" (argmax|iota|axis_index|convert|one_hot|tril|lt|ge|eq|div|pmax|reduce_max|max|min|cumsum|take) ", l): 
            if l and r.random() < .85: continue
            if not l: continue
        if "dtype=bf16" in l or "dtype=i32" in l: continue
        t2, e = trace_types(case_of(text + lets + [l]))
        if e: continue
        try: vals = values(t2)
        except KeyError: continue
        lets.append(l); t = t2; steps += 1
    if not lets: continue
    used = set(a for l in lets for a in parse_let(l.split())[2])
    outs = [l.split()[1] for l in lets if l.split()[1] not in used and vals[l.split()[1]][0] == "f32"]
    if not outs: continue
    outs = outs[-2:]
    specs = {}
    ok = True
    for o in outs: # an out spec that names all axes the value varies on
        v = [a for a in vary(t[o])]; rank = len(vals[o][1])
        if v and rank == 0: ok = False; break
        sp = [None] * rank
        if v: sp[r.randrange(rank)] = tuple(v) if len(v) > 1 else v[0]
        specs[o] = sp
    if not ok: continue
    data = {q: np.array([r.gauss(0, 1) for _ in range(int(np.prod(s)))], np.float32).reshape(s) for q, d, s, sp, _ in g.ins}
    c = case_of(text)
    mesh = mesh_of(c, types=AxisType.Auto); env = Env(); env.mesh = mesh
    wl = [l.split() for l in lets]
    def run(x64):
        jax.config.update("jax_enable_x64", x64)
        w = [re.sub("dtype=f32", "dtype=f64", l).split() if x64 else l.split() for l in lets]
        up = lambda a: jnp.asarray(a.astype(np.float64) if x64 else a)
        names = list(data)
        def body(*xs): v = run_lets(env, w, dict(zip(names, xs))); return tuple(v[o] for o in outs)
        f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=tuple(PartitionSpec(*sp) for _, _, _, sp, _ in g.ins), out_specs=tuple(PartitionSpec(*specs[o]) for o in outs)))
        return jax.vjp(f, *[up(a) for a in data.values()])
    try:
        o, pull = run(False); cts = [np.array([r.gauss(0, 1) for _ in range(q.size)], np.float32).reshape(q.shape) for q in o]
        gr = pull(tuple(jnp.asarray(q) for q in cts)); o, gr = [np.asarray(q) for q in o], [np.asarray(q) for q in gr]
        o2, pull2 = run(True); gr2 = [np.asarray(q) for q in pull2(tuple(jnp.asarray(q.astype(np.float64)) for q in cts))]; o2 = [np.asarray(q) for q in o2]
    except Exception as ex: skipped += 1; print("skip", str(ex)[:120].replace("\n", " ")); continue
    finally: jax.config.update("jax_enable_x64", False)
    if not all(np.all(np.isfinite(q)) for q in o + gr): continue
    def tol(a, b):
        e = np.abs(a - b).max(initial=0); m = np.abs(a).max(initial=0); return f"relabs 1.91e-06 {4 * e + 1e-6 * max(m, .1):.3g}"
    L = text[:2] + [W.array("in", q, data[q], spec_text(sp)) for q, d, s, sp, _ in g.ins] + lets
    L += [f"ret {q} f32 [{','.join(map(str, v.shape))}] {spec_text(specs[q])}" for q, v in zip(outs, o)]
    L += [W.array("ct", q, v) for q, v in zip(outs, cts)]
    L += [W.array("out", q, v, "-", tol(v, w)) for q, v, w in zip(outs, o, o2)] + [W.array("out", "grad:" + q, v, "-", tol(v, w)) for q, v, w in zip(data, gr, gr2)]
    W.case(f"grad.manual.{k:04d}", L)
W.close()
