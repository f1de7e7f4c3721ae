"""toy: shards and sums.  toy.py COUNT SEED FOLDER"""
from candidates import *
import math
W = Writer(sys.argv[3], "family toy"); r = random.Random(int(sys.argv[2]))
EX = dict(sum_sin=lambda x: jnp.sin(x).sum(), sum_cos=lambda x: jnp.cos(x).sum(), sum=jnp.sum, mean=jnp.mean, max=jnp.max)
for k in range(int(sys.argv[1])):
    ms = r.choice([dict(i=4, j=2), dict(i=2, j=4), dict(a=8), dict(x=2, y=2, z=2)]); g = G(k * 3 + 1, ms, even=1.0)
    s = [r.choice([2, 4, 8, 16]) for _ in range(r.choice([1, 2, 2, 3]))]; sp = g.spec(s, .8); dt = r.choice(["i32", "f32"]); ex = r.choice(["sum_sin"] * 5 + list(EX))
    a = np.arange(int(np.prod(s))).reshape(s).astype(DTYPES[dt]); n = 8
    m = Mesh(np.array(jax.devices()[:8]).reshape(list(ms.values())), tuple(ms), axis_types=(AxisType.Auto,) * len(ms))
    x = jax.device_put(a, NamedSharding(m, PartitionSpec(*sp)))
    L = ["mesh " + " ".join(f"{q}={v}" for q, v in ms.items()), f"in a {dt} [{','.join(map(str, s))}] {spec_text(sp)} @-", "data arange", f"expr {ex}"]
    sh = sorted(x.addressable_shards, key=lambda q: q.device.id)
    for q in sh: L += [f"dev {q.device.id}"] + ["| " + t for t in str(q.data).split("\n")]
    f = jax.jit(EX[ex]); ip = np.asarray(f(x)); sd = np.asarray(f(jnp.asarray(a)))
    L += [f"result inprocess {float(ip) if ip.dtype.kind == 'f' else int(ip)}", f"result single_device {float(sd) if sd.dtype.kind == 'f' else int(sd)}"]
    if ex.startswith("sum_"):
        fn = np.sin if ex == "sum_sin" else np.cos; jf = jnp.sin if ex == "sum_sin" else jnp.cos
        y = np.asarray(jf(jnp.asarray(a)))
        loc = {}
        seen = set()
        for q in sh:
            v = y[q.index].reshape(-1); t = np.float32(0)
            for e in v: t = np.float32(t + e)
            key = str(q.index)
            loc[q.device.id] = t if key not in seen else None; seen.add(key)
        vals = [v for v in (loc[d] for d in range(8)) if v is not None]
        while len(vals) > 1: vals = [np.float32(vals[i] + vals[i + 1]) for i in range(0, len(vals), 2)]
        L += [f"result doubling {float(vals[0])}", f"result exact {math.fsum(fn(a.astype(np.float64)).reshape(-1))}"]
    W.case(f"toy.x{k:03d}", L)
W.close()
