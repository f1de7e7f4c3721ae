"""types: programs with a gradient at the end, over explicit axes."""
from types_programs import *
import collections
n, seed = int(sys.argv[1]), int(sys.argv[2]); W = Writer(sys.argv[3], "family types"); other = collections.Counter(); ex = {}
for k in range(n):
    g = G(seed * 30011 + k, mesh=random.Random(k + seed).choice(MESHES[:2]), sizes=(4, 8, 8, 16)); r = g.r
    for _ in range(r.randint(1, 3)): g.inp(g.shape(1, 3), r.choice(["f32", "f32", "bf16"]))
    if r.random() < .3: g.inp(g.shape(1, 2), "i32")
    text = g.head(); t, e = trace_types(case_of(text))
    if not t: continue
    def values(t): return {q: (SHORT[shape_of(v)[0]], shape_of(v)[1]) for q, v in t.items()}
    vals = values(t); steps = 0
    for _ in range(20):
        if steps >= r.randint(2, 6): break
        l = candidate(r, vals, steps, g.mesh, False, g)
        if not l: continue
        t2, e = trace_types(case_of(text + [l]))
        if e: continue
        try: vals = values(t2)
        except KeyError: continue
        text.append(l); t = t2; steps += 1
    fl = [q for q, (d, s) in vals.items() if d in ("f32", "bf16")]
    last = [q for q in fl if q.startswith("v")]
    if not last: continue
    x = last[-1]; s = vals[x][1]
    text.append(f"let l reduce_sum {x}" + (f" axes=[{','.join(map(str, range(len(s))))}]" if s else " axes=[]"))
    wrt = [q for q in fl if q.startswith("p")] + [q for q in last[:-1] if r.random() < .3]
    if not wrt: continue
    wrt = wrt[:4]
    names = [f"g{i}" for i in range(len(wrt))]
    l = f"let {','.join(names)} grad l wrt=[{','.join(wrt)}]"
    t2, e = trace_types(case_of(text + [l]))
    if e:
        m = type(e[1]).__name__ + ": " + re.sub(r"\d+", "N", str(e[1]).split("\n")[0])[:110]; other[m] += 1; ex.setdefault(m, text + [l])
        c = classify(e[1])
        continue
    W.case(f"types.g{k:05d}", text + [l] + [f"type {q} {v}" for q, v in t2.items()])
W.close()
for m, q in other.most_common(15): print(q, m, "|", ex[m][-3:])
