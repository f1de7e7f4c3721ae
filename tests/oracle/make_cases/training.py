"""train: loops of a step with gradients.  training.py COUNT SEED FOLDER"""
from candidates import *
W = Writer(sys.argv[3], "family train"); r = random.Random(int(sys.argv[2]))
ACT = ["tanh", "relu", "sigmoid", "gelu_tanh", "silu", "softplus"]
for k in range(int(sys.argv[1])):
    mesh = r.choice([dict(d=4, m=2), dict(d=8), dict(d=2, m=4), dict(d=2, m=2, z=2)]); g = np.random.default_rng(k)
    n, i, h, o = r.choice([32, 64]), r.choice([8, 12]), r.choice([16, 24]), r.choice([4, 1, 8]); m = "m" if "m" in mesh else None
    steps = r.choice([5, 20]); loss = r.choice(["mse", "xent" if o > 1 else "mse"]); layers = r.choice([1, 2, 2])
    ins = {"x": (g.normal(size=(n, i)), ["d", None])}
    fsdp = r.random() < .3
    lets = [f"let lr const dtype=f32 value={r.choice([0.1, 0.05, 0.3])}"]; prev = "x"; params = []; width = i
    for q in range(layers):
        out = o if q == layers - 1 else h
        sp = [None, m] if q % 2 == 0 and out % 4 == 0 else [m, None] if width % 4 == 0 else [None, None]
        if fsdp and width % mesh["d"] == 0: sp = ["d", None]
        ins[f"w{q}"] = (g.normal(size=(width, out)) * .3, sp); ins[f"b{q}"] = (np.zeros(out), [None]); params += [f"w{q}", f"b{q}"]
        lets += [f"let h{q} matmul {prev} w{q}", f"let s{q} add h{q} b{q}"]; prev = f"s{q}"
        if q < layers - 1: lets.append(f"let a{q} {r.choice(ACT)} s{q}"); prev = f"a{q}"
        width = out
    if loss == "mse": ins["y"] = (g.normal(size=(n, o)), ["d", None]); lets += [f"let e sub {prev} y", "let q mul e e", "let l reduce_mean q"]
    else:
        t = np.eye(o)[g.integers(0, o, n)]; ins["y"] = (t, ["d", None]); lets += [f"let e log_softmax {prev} axis=-1", "let q mul e y", "let t reduce_sum q axes=[1]", "let u neg t", "let l reduce_mean u"]
    lets += [f"let {','.join('g' + p for p in params)} grad l wrt=[{','.join(params)}]"]
    for p in params: lets += [f"let u{p} mul g{p} lr", f"let n{p} sub {p} u{p}"]
    def run(x64):
        jax.config.update("jax_enable_x64", x64); w = [re.sub("dtype=f32", "dtype=f64", l).split() if x64 else l.split() for l in lets]
        v = {q: jnp.asarray(np.asarray(a, np.float32).astype(np.float64 if x64 else np.float32)) for q, (a, _) in ins.items()}
        f = jax.jit(lambda v: (lambda z: ({p: z["n" + p] for p in params}, z["l"]))(run_lets(Env(), w, v))); ls = []
        for _ in range(steps): nv, l = f(v); v = {**v, **nv}; ls.append(l)
        return np.array(ls), {p: np.asarray(v[p]) for p in params}
    a, fa = run(False); b, fb = run(True); jax.config.update("jax_enable_x64", False)
    tol = lambda u, w: f"relabs 1e-05 {4 * np.abs(u - w).max() + 1e-7:.3g}"
    L = ["mesh " + " ".join(f"{q}={v}" for q, v in mesh.items()), f"steps {steps}", "carry " + " ".join(f"{p}=n{p}" for p in params), "feedback 1"]
    L += [W.array("in", q, np.asarray(v, np.float32), spec_text(sp)) for q, (v, sp) in ins.items()] + lets
    L += [W.array("out", "series:l", a, "-", tol(a, b))] + [W.array("out", "final:" + p, fa[p], "-", tol(fa[p], fb[p])) for p in params]
    W.case(f"train.{k:03d}", L)
W.close()
