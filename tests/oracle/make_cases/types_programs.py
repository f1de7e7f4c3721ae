"""types: random programs.  types_programs.py COUNT SEED FOLDER prog|manual"""
from candidates import *
from types_single import classify, CLASSES
from trace_types import trace_types
def case_of(text):
    c = Case("x"); c.lines = [l.split() for l in text]; return c
def shape_of(t): 
    m = re.match(r"(\w+)\[([^\]]*?)\]", t.replace("@(", "@<")); 
    b = re.search(r"\[(.*)\]", t).group(1); b = re.sub(r"@\([^)]*\)|@\w+", "", b)
    return t[:t.index("[")], [int(q) for q in b.split(",") if q]
SHORT = dict(float32="f32", bfloat16="bf16", int32="i32", bool="bool", uint8="u8")
def candidate(r, vals, k, mesh, manual, g):
    names = list(vals); x = r.choice(names[-3:] + names); dt, s = vals[x]; n = len(s)
    def t(v):
        if isinstance(v, (list, tuple)): return "[" + ",".join(t(e) for e in v) + "]"
        return str(v)
    def let(op, *a, **kw): return f"let v{k} {op} " + " ".join([*a, *[f"{q}={t(v)}" for q, v in kw.items()]])
    fl = dt in ("f32", "bf16")
    ops = ["neg", "reduce", "binary", "binary", "binary", "reshape", "transpose", "iota", "full", "const", "broadcast_in_dim", "select", "lt", "dot", "dot", "slice", "concatenate", "expand_dims", "one_hot", "cumsum", "argmax", "convert", "softmax", "sin", "take", "stack", "like_iota", "like_iota", "einsum", "tril", "roll", "pad"]
    if manual: ops += ["psum", "pmax", "all_gather", "psum_scatter", "axis_index", "pvary", "ppermute", "all_to_all", "all_gather_invariant", "pmean"] * 2
    else: ops += ["reshard", "reshard", "at_get", "dus", "constraint"]
    op = r.choice(ops)
    axes = r.sample(list(mesh), r.randint(1, len(mesh)))
    if op == "binary":
        y = r.choice(names); return let(r.choice(["add", "sub", "mul", "max", "div", "min"]), *((x, y) if r.random() < .5 else (y, x)))
    if op == "lt": return let(r.choice(["lt", "eq", "ge"]), x, r.choice(names))
    if op == "select":
        b = [q for q in names if vals[q][0] == "bool"]
        return b and let("select", r.choice(b), x, r.choice(names))
    if op == "reduce": return n and let(r.choice(["reduce_sum", "reduce_max", "reduce_mean", "reduce_sum"]), x, axes=sorted(r.sample(range(n), r.randint(1, n))), keepdims=r.randint(0, 1))
    if op == "reshape":
        z = int(np.prod(s)); q = []
        for _ in range(r.randint(0, 2)): e = r.choice([e for e in (1, 2, 4, 8) if z % e == 0]); q.append(e); z //= e
        q.insert(r.randint(0, len(q)), z); return let(op, x, shape=q)
    if op == "transpose": p = list(range(n)); r.shuffle(p); return let(op, x, perm=p)
    if op == "iota": return let(op, dtype=r.choice(["f32", "i32"]), shape=[g.size() for _ in range(r.randint(1, 2))], dim=0)
    if op == "like_iota": return n and let("iota", dtype=dt if dt != "bool" else "i32", shape=s, dim=r.randrange(n))
    if op == "full": return let(op, dtype="f32", shape=s if r.random() < .6 else g.shape(0, 2), value=1.0)
    if op == "const": return let(op, dtype="f32", value=2.0)
    if op == "broadcast_in_dim": e = g.size(); return let(op, x, shape=[e] + s, dims=[q + 1 for q in range(n)])
    if op == "dot":
        y = r.choice(names); q = vals[y][1]; c = [(i, j) for i in range(n) for j in range(len(q)) if s[i] == q[j]]
        if not c: return None
        i, j = r.choice(c); return let("dot_general", x, y, lc=[i], rc=[j], lb=[], rb=[])
    if op == "einsum": return n == 2 and let(op, x, eq=r.choice(["ij->i", "ij->ji", "ij->", "ii->i"]))
    if op == "slice":
        st = [r.choice([0, 0, 1]) if e > 1 else 0 for e in s]; return n and let(op, x, start=st, limit=[r.choice([e, e, max(a + 1, e // 2)]) for a, e in zip(st, s)])
    if op == "concatenate":
        c = [y for y in names if vals[y] == vals[x]]; return n and let(op, x, r.choice(c), axis=r.randrange(n))
    if op == "stack":
        c = [y for y in names if vals[y] == vals[x]]; return let(op, x, r.choice(c), axis=0)
    if op == "expand_dims": return let(op, x, axes=[r.randint(0, n)])
    if op == "one_hot": return dt == "i32" and n < 3 and let(op, x, n=8, dtype="f32")
    if op in ("cumsum",): return n and let(op, x, axis=r.randrange(n), reverse=0)
    if op == "softmax": return n and let(op, x, axis=r.randrange(n))
    if op == "argmax": return n and let(op, x, axis=r.randrange(n))
    if op == "convert": return let(op, x, dtype=r.choice(["f32", "bf16", "i32"]))
    if op in ("neg", "sin"): return let(op, x)
    if op == "tril": return n >= 2 and let(op, x, k=0)
    if op == "roll": return n and let(op, x, shift=[1], axes=[r.randrange(n)])
    if op == "pad":
        c = [y for y in names if vals[y] == (dt, [])]; return n and c and let(op, x, c[0], lo=[r.choice([0, 0, 8]) for _ in s], hi=[0] * n, interior=[0] * n)
    if op == "take":
        c = [y for y in names if vals[y][0] == "i32"]; return n and c and let(op, x, r.choice(c), axis=r.randrange(n))
    if op == "at_get":
        c = [y for y in names if vals[y][0] == "i32" and len(vals[y][1]) < 3]; return n and c and let(op, x, r.choice(c))
    if op in ("reshard", "constraint"): return let(op, x, spec=spec_text(g.spec(s)))
    if op == "dus":
        c = [y for y in names if vals[y][0] == "i32" and vals[y][1] == []]; u = [y for y in names if vals[y][0] == dt and len(vals[y][1]) == n]
        return n and c and u and let("dynamic_update_slice", x, r.choice(u), *[r.choice(c) for _ in s])
    if op in ("psum", "pmax", "pmean", "pvary"): return let(op, x, axes=axes)
    if op == "all_gather": return n and let(op, x, axes=axes, axis=r.randrange(n), tiled=r.randint(0, 1))
    if op == "all_gather_invariant": return n and let(op, x, axes=axes, axis=r.randrange(n), tiled=r.randint(0, 1))
    if op == "psum_scatter": return n and let(op, x, axes=axes, axis=r.randrange(n), tiled=1)
    if op == "axis_index": return let(op, axes=axes[:1])
    if op == "ppermute": a = axes[0]; m = mesh[a]; return let(op, x, axes=[a], perm=[[i, (i + 1) % m] for i in range(m)])
    if op == "all_to_all": return n >= 2 and let(op, x, axes=axes[:1], split=r.randrange(n), concat=r.randrange(n), tiled=1)
if __name__ == "__main__":
    import collections
    n, seed = int(sys.argv[1]), int(sys.argv[2]); W = Writer(sys.argv[3], "family types"); manual = sys.argv[4] == "manual"
    other = collections.Counter(); ex = {}
    for k in range(n):
        g = G(seed * 90001 + k, mesh=random.Random(k + seed).choice(MESHES[:2]), sizes=(4, 8, 8, 16)); r = g.r
        for _ in range(r.randint(1, 3)):
            g.inp(g.shape(1, 3), r.choice(["f32", "f32", "f32", "i32", "bf16"]))
        if r.random() < .4: g.inp([], r.choice(["i32", "f32"]), [])
        text = g.head()
        if manual: text.insert(1, "mode manual")
        def values(t): return {q: (SHORT[shape_of(v)[0]], shape_of(v)[1]) for q, v in t.items()}
        t, e = trace_types(case_of(text))
        if not t: continue
        vals = values(t); done = False; steps = 0
        for _ in range(14):
            if steps >= r.randint(2, 7): break
            l = candidate(r, vals, steps, g.mesh, manual, g)
            if not l: continue
            t2, e = trace_types(case_of(text + [l]))
            if e:
                c = classify(e[1])
                if c is None:
                    m = type(e[1]).__name__ + ": " + re.sub(r"\d+", "N", str(e[1]).split("\n")[0])[:110]; other[m] += 1; ex.setdefault(m, text + [l]); continue
                if r.random() < .12 and not c.endswith("indivisible") and c != "uneven" and not manual: text.append(l); done = f"error {c} {type(e[1]).__name__} at={e[0]}"; break
                continue
            try: vals = values(t2)
            except KeyError: continue
            text.append(l); t = t2; steps += 1
        if steps == 0: continue
        W.case(f"types.{'m' if manual else 'p'}{k:05d}", text + ([done] if done else [f"type {q} {v}" for q, v in t.items()]))
    W.close()
    for m, q in other.most_common(25): print(q, m, "|", ex[m][-1])
