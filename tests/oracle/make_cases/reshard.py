"""reshard: who holds what, XLA's collectives.  reshard.py COUNT SEED FOLDER SHARE_OF_EVEN"""
from candidates import *
import itertools, collections
BYTES = dict(f32=4)
def collectives(text, ndev):
    """[(kind, in bytes, out bytes, group or pairs)] of a compiled program, and the bytes over links."""
    out = []; wire = 0
    for ln in text.split("\n"):
        m = re.search(r"= (.*?) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|ragged-all-to-all|collective-broadcast)(-start)?\(", ln)
        if not m: continue
        kind = m.group(2)
        def size(t): return sum(4 * int(np.prod([int(q) for q in s.split(",") if q])) for s in re.findall(r"f32\[([\d,]*)\]", t))
        o = size(m.group(1))
        ops = re.search(re.escape(m.group(2)) + r"(?:-start)?\(([^)]*)\)", ln).group(1)
        if kind == "collective-permute":
            pr = re.search(r"source_target_pairs=\{(.*?)\}\}", ln).group(1) + "}"
            pairs = [tuple(map(int, q.split(","))) for q in re.findall(r"\{(\d+,\d+)\}", "{" + pr if not pr.startswith("{") else pr)]
            k = sum(a != b for a, b in pairs)
            out.append((kind, o, o, f"pairs={k}")); wire += o * k; continue
        g = re.search(r"replica_groups=\{\{([\d,]*)\}", ln)
        if g: gs = len(g.group(1).split(","))
        else:
            g = re.search(r"replica_groups=(?:\w+)?\[(\d+),(\d+)\]", ln); 
            if g: gs = int(g.group(2))
            else:
                g = re.search(r"replica_groups=mesh\[(.*?)\][^{]*?\{(.*?)\}", ln)
                if not g: raise ValueError(ln)
                ms = {a: int(b) for a, b in re.findall(r"'(\w+)'=(\d+)", g.group(1))}; gs = 1
                for t in g.group(2).split(","):
                    q = re.match(r"\s*'(\w+)'(?::\(\d+\)(\d+))?", t)
                    if not q: raise ValueError(ln)
                    gs *= int(q.group(2) or ms[q.group(1)])
        if kind == "all-gather": i = o // gs; w = (o - i) * ndev
        elif kind == "all-reduce": i = o; w = 2 * (gs - 1) * o * ndev // gs
        elif kind == "all-to-all": i = o; w = (gs - 1) * o * ndev // gs
        elif kind == "reduce-scatter": i = o * gs; w = (i - o) * ndev
        else: raise ValueError(kind)
        out.append((kind, i, o, f"group={gs}")); wire += w
    return out, wire
def blocks(n, k):
    q, r = divmod(n, k); e = [0]
    for i in range(k): e.append(e[-1] + q + (i < r))
    return e
def boxes(mesh, order, shape, spec):
    sizes = list(mesh.values()); names = list(mesh); out = {}
    for pos, dev in enumerate(order):
        c = dict(zip(names, np.unravel_index(pos, sizes))); b = []
        for n, e in zip(shape, spec):
            axes = () if e is None else (e,) if isinstance(e, str) else e
            p, k = 0, 1
            for a in axes: p = p * mesh[a] + int(c[a]); k *= mesh[a]
            ed = blocks(n, k); b.append((ed[p], ed[p + 1]))
        out[dev] = b
    return out
def volume(b): return int(np.prod([max(0, h - l) for l, h in b])) if b else 1
def recv(frm, to):
    t = 0
    for d in to:
        inter = [(max(a, c), min(b, e)) for (a, b), (c, e) in zip(frm[d], to[d])]
        t += volume(to[d]) - (volume(inter) if all(l < h for l, h in inter) else 0)
    return t
RM = [dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=8), dict(x=2, y=4), dict(x=2, y=3), dict(x=5), dict(x=7), dict(x=3, y=2), dict(x=6), dict(x=4), dict(x=2, y=2), dict(x=1, y=8), dict(x=4, y=1, z=2)]
def text_ranges(b): return "[" + ",".join(f"{l}:{h}" for l, h in b) + "]"
def one(W, name, mesh, order, shape, a, b, xla):
    n = int(np.prod(list(mesh.values())))
    frm, to = boxes(mesh, order, shape, a), boxes(mesh, order, shape, b)
    L = ["mesh " + " ".join(f"{k}={v}" for k, v in mesh.items())]
    if list(order) != list(range(n)): L.append("devices [" + ",".join(map(str, order)) + "]")
    L.append(f"in a f32 [{','.join(map(str, shape))}] {spec_text(a)} @-"); L.append("to " + spec_text(b))
    L.append("ranges " + ("jax" if xla else "balanced"))
    for d in sorted(order): L.append(f"dev {d} {text_ranges(frm[d])} {text_ranges(to[d])}")
    L.append(f"recv {recv(frm, to)}")
    if xla:
        dev = jax.devices()
        m = Mesh(np.array([dev[i] for i in order]).reshape(list(mesh.values())), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh))
        sa, sb = NamedSharding(m, PartitionSpec(*a)), NamedSharding(m, PartitionSpec(*b))
        for q, s, bx in ((0, sa, frm), (1, sb, to)):
            for d, idx in s.devices_indices_map(tuple(shape)).items():
                got = [(i.start or 0, shape[k] if i.stop is None else i.stop) for k, i in enumerate(idx)]
                assert got == bx[d.id], (got, bx[d.id])
        t = jax.jit(jnp.negative, in_shardings=sa, out_shardings=sb).lower(jax.ShapeDtypeStruct(tuple(shape), jnp.float32)).compile().as_text()
        cs, wire = collectives(t, n)
        cnt = collections.Counter(cs)
        for (k, i, o, g), q in cnt.items(): L.append(f"coll shardy {k} n={q} in={i} out={o} {g}")
        L.append(f"wire shardy {wire}")
    W.case(name, L)
if __name__ == "__main__":
    W = Writer(sys.argv[3], "family reshard"); n, seed = int(sys.argv[1]), int(sys.argv[2]); r = random.Random(seed); RM[:3] = RM[:3] * 3
    for k in range(n):
        mesh = r.choice(RM); nd = int(np.prod(list(mesh.values())))
        order = list(range(nd))
        if r.random() < 0.3: order = r.sample(range(8), nd)
        xla = r.random() < float(sys.argv[4]) and all(v in (1, 2, 4, 8) for v in mesh.values())
        if not xla and nd in (5,7,6): pass
        g = G(seed * 7919 + k, mesh, even=1.0 if xla else 0.0)
        shape = [r.choice([8, 16, 4, 24, 3, 8, 32] if xla else [5, 7, 8, 10, 13, 3, 17, 1, 30, 0, 12]) for _ in range(r.choice([1, 2, 2, 3, 3, 4]))]
        if not xla and 0 in shape and r.random() < .8: shape = [q or 6 for q in shape]
        a, b = g.spec(shape, 0.7), g.spec(shape, 0.7)
        try: one(W, f"reshard.{'e' if xla else 'u'}{k:05d}", mesh, order, shape, a, b, xla)
        except ValueError as e: print("skip", str(e)[:300])
    W.close()
