"""random.  random_numbers.py COUNT SEED FOLDER"""
from candidates import *
W = Writer(sys.argv[3], "family random"); n, seed = int(sys.argv[1]), int(sys.argv[2]); r = random.Random(seed)
SH = [[], [1], [5], [7], [16], [33], [3, 4], [2, 3, 5], [0, 3], [101], [4, 1, 6]]
for k in range(n):
    op = r.choice("key split fold_in random_bits uniform normal randint permutation bernoulli categorical gumbel exponential laplace truncated_normal rademacher choice uniform normal randint permutation randint choice".split())
    x64 = r.random() < .4; jax.config.update("jax_enable_x64", x64)
    kk = np.array([r.getrandbits(32), r.getrandbits(32)], np.uint32) if r.random() < .7 else np.array([0, r.choice([0, 1, 42, 1701])], np.uint32)
    s = r.choice(SH); sh = "[" + ",".join(map(str, s)) + "]"; fd = r.choice(["f32", "f32", "f16", "bf16"] + (["f64"] * 2 if x64 else []))
    ins = {"k": kk}
    if op == "key": l = f"key seed={r.choice([r.getrandbits(31), -r.getrandbits(31), r.getrandbits(40) if x64 else r.getrandbits(16), -r.getrandbits(50) if x64 else 5])}"; ins = {}
    elif op == "split": l = f"split k n={r.choice([1, 2, 3, 5, 16, 100])}"
    elif op == "fold_in": l = f"fold_in k data={r.choice([0, 1, r.getrandbits(31), r.getrandbits(32)])}"
    elif op == "random_bits": l = f"random_bits k shape={sh} dtype={r.choice(['u8', 'u16', 'u32'] + (['u64'] if x64 else []))}"
    elif op == "uniform": lo, hi = r.choice([(0.0, 1.0), (-1.0, 1.0), (2.0, 5.5), (-100.0, -1.0), (0.0, 1e-3), (1.0, 1.0)]); l = f"uniform k shape={sh} dtype={fd} lo={lo} hi={hi}"
    elif op in ("normal", "gumbel", "exponential", "laplace"): l = f"{op} k shape={sh} dtype={fd}"
    elif op == "rademacher": l = f"{op} k shape={sh} dtype={r.choice(['i32', 'i8', 'f32', 'i16'])}"
    elif op == "truncated_normal": lo, hi = r.choice([(-2.0, 2.0), (0.0, 3.0), (-0.5, 0.25), (1.0, 5.0)]); l = f"{op} k lo={lo} hi={hi} shape={sh} dtype={r.choice(['f32'] + (['f64'] if x64 else []))}"
    elif op == "bernoulli": l = f"{op} k p={r.choice([0.0, 1.0, .5, .1, .9, 1e-3])} shape={sh}"
    elif op == "randint":
        d = r.choice(["i32", "i32", "u32", "i8", "u8", "i16", "u16"] + (["i64", "u64"] * 2 if x64 else [])); i = np.iinfo(DTYPES[d])
        c = r.random()
        if c < .4: lo, hi = 0, r.choice([1, 2, 7, 10, 100, 127])
        elif c < .6: lo, hi = int(i.min), int(i.max)
        elif c < .75: lo = r.randint(int(i.min), int(i.max)); hi = r.randint(int(i.min), int(i.max))
        elif c < .85: lo, hi = 5, 5
        else: lo, hi = (0 if d[0] == "u" else -50), 50
        l = f"randint k shape={sh} dtype={d} lo={lo} hi={hi}"
    elif op == "permutation":
        if r.random() < .6: l = f"permutation k n={r.choice([0, 1, 2, 3, 7, 50, 257, 1500])}"
        else:
            a = np.arange(int(np.prod(q := r.choice([[5, 3], [4, 2, 3], [17], [1, 6]])))).reshape(q).astype(r.choice([np.float32, np.int32, np.uint8])); ins["a"] = a; l = f"permutation k a axis={r.randrange(a.ndim)}"
    elif op == "choice":
        rep = r.randint(0, 1); m = r.choice([1, 3, 10, 100]); s = [r.randint(0, min(m, 7))] if not rep else r.choice([[6], [2, 3], []]); l = f"choice k n={m} shape=[{','.join(map(str, s))}] replace={rep}"
    elif op == "categorical":
        a = np.array([r.gauss(0, 1.5) for _ in range(24)], np.float32).reshape(4, 6); ins["l"] = a; ax = r.choice([0, 1, -1, -2]); bs = [6] if ax in (0, -2) else [4]
        l = f"categorical k l axis={ax}" + (f" shape=[{','.join(map(str, r.choice([bs, [3] + bs])))}]" if r.random() < .7 else "")
    l = "let o " + l
    try: v = run_lets(Env(), [l.split()], {q: jnp.asarray(a) for q, a in ins.items()})
    except Refused as e: print("skip", l, str(e.error)[:100]); continue
    o = np.asarray(v["o"]); d = NAMES[o.dtype]
    t = "exact"
    if d in ("f32", "f64", "f16", "bf16"):
        t = "exact" if op in ("rademacher",) else "ulp 1" if op == "uniform" else "ulp 1" if d in ("f16", "bf16") else "ulp 4" if op == "normal" else "relabs 2e-06 1e-06"
    W.case(f"random.{op}.{k:04d}", ["partitionable 1", f"x64 {int(x64)}"] + [W.array("in", q, a) for q, a in ins.items()] + [l, W.array("out", "o", o, "-", t)])
W.close()
