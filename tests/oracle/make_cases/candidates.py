"""Random statements with operands, for the families types, prog, ops, grad."""
from statements import *
import random
MESHES = [dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=8), dict(x=2, y=4), dict(a=2, b=2)]
class G:
    def __init__(self, seed, mesh=None, sizes=(4, 8, 8, 16, 4, 1, 2), even=0.97):
        self.r = random.Random(seed); self.mesh = mesh or self.r.choice(MESHES[:2] * 3 + MESHES); self.sizes = sizes; self.even = even
        self.ins, self.lets, self.n = [], [], 0
    def size(self): return self.r.choice(self.sizes)
    def shape(self, lo=1, hi=4): return [self.size() for _ in range(self.r.randint(lo, hi))]
    def spec(self, shape, p=0.55, free=None):
        r = self.r; free = [a for a in (free if free is not None else self.mesh)]; r.shuffle(free)
        out = [None] * len(shape); dims = list(range(len(shape))); r.shuffle(dims)
        for d in dims:
            if not free or r.random() > p: continue
            k = 2 if len(free) > 1 and r.random() < 0.2 else 1
            axes = free[:k]; n = int(np.prod([self.mesh[a] for a in axes]))
            if shape[d] % n and r.random() < self.even: continue
            out[d] = axes[0] if k == 1 else tuple(axes); free = free[k:]
        return out
    def inp(self, shape, dtype="f32", spec=None, data=None):
        n = f"p{len(self.ins)}"; self.ins.append([n, dtype, list(shape), self.spec(shape) if spec is None else spec, data]); return n
    def like(self, spec, shape, p=0.6):
        """The same spec, or another."""
        return list(spec) if self.r.random() < p else self.spec(shape)
    def let(self, op, *args, names=1, **kw):
        dst = ",".join(f"{chr(111 + 0)}{self.n + i}" for i in range(names)); self.n += 1 if names == 1 else names
        def t(v):
            if isinstance(v, (list, tuple)): return "[" + ",".join(t(e) for e in v) + "]"
            return str(v)
        self.lets.append(f"let {dst} {op} " + " ".join(list(args) + [f"{k}={t(v)}" for k, v in kw.items()]))
        self.lets[-1] = self.lets[-1].rstrip()
        return dst
    def head(self):
        h = ["mesh " + " ".join(f"{k}={v}" for k, v in self.mesh.items())]
        for n, d, s, sp, data in self.ins: h.append(f"in {n} {d} [{','.join(map(str, s))}] {spec_text(sp) if not isinstance(sp, str) else sp} @-")
        return h
    def dt(self): return self.r.choice(["f32", "f32", "f32", "bf16", "i32"])
    def fdt(self): return self.r.choice(["f32", "f32", "bf16"])
    def outspec(self, shape, p=0.5): return {"out": spec_text(self.spec(shape))} if self.r.random() < p else {}

UNARY = "neg  sin tanh sigmoid relu exp sign abs square cos log rsqrt isnan gelu_tanh softplus floor".split()
BINARY = "add sub mul max min div lt eq pow atan2 rem and".split()
def einsums(r): return r.choice(["ij,jk->ik", "bij,bjk->bik", "ij,ij->ij", "ij,ij->i", "i,j->ij", "ijk->kji", "ij->j", "ij,kj->ik", "bij,bjk,bkl->bil", "abc,cd->abd", "ij,jk,kl->il", "bhqd,bhkd->bhqk", "ii->i", "ii->", "ij,j->i", "bi,bj->bij", "ij->ij","ijk,ik->ij", "abc,abd->acd"])

def statement(g, op):
    r = g.r
    if op in UNARY:
        s = g.shape(0, 4); return g.let(op, g.inp(s, "f32" if op != "neg" else g.dt()))
    if op in BINARY:
        s = g.shape(1, 4); t = s[r.randint(0, len(s) - 1):] if r.random() < 0.4 else list(s)
        t = [1 if r.random() < 0.15 else e for e in t]; s = [1 if r.random() < 0.08 else e for e in s]
        a = g.spec(s); b = a[len(s) - len(t):] if r.random() < 0.5 else g.spec(t)
        b = [None if e == 1 else q for e, q in zip(t, b)]
        d = "i32" if op == "and" else g.dt()
        p, q = g.inp(s, d, a), g.inp(t, d, b)
        return g.let(op, *( (p, q) if r.random() < 0.7 else (q, p)))
    if op in ("select", "clamp", "clip"):
        s = g.shape(1, 3); a = g.spec(s); d = g.fdt()
        if op == "select":
            cs = [] if r.random() < 0.2 else s
            return g.let(op, g.inp(cs, "bool", g.like(a, cs) if cs else []), g.inp(s, d, a), g.inp(s, d, g.like(a, s)))
        los = [] if r.random() < 0.5 else s
        return g.let(op, *[g.inp(t, d, g.like(a, t, 0.8) if t else []) for t in (([los, s, los]) if op == "clamp" else [s, los, los])])
    if op == "dot_general":
        nb, nc = r.choice([0, 0, 0, 1, 1, 2]), r.choice([1, 1, 1, 2, 0])
        la, ra = r.randint(0, 2), r.randint(0, 2)
        B, C = [g.size() for _ in range(nb)], [g.size() for _ in range(nc)]
        def side(k):
            kinds = [("b", i) for i in range(nb)] + [("c", i) for i in range(nc)] + [("f", i) for i in range(k)]; r.shuffle(kinds)
            F = [g.size() for _ in range(k)]
            shape = [dict(b=B, c=C, f=F)[t][i] for t, i in kinds]
            return kinds, shape, F
        lk, ls, lf = side(la); rk, rs, rf = side(ra)
        a = g.spec(ls); b = g.spec(rs)
        if r.random() < 0.75:
            for i, k in enumerate(rk):
                if k[0] in "bc": b[i] = a[lk.index(k)]
            used = [x for e in b for x in (e if isinstance(e, tuple) else [e])]
            for i, k in enumerate(rk):
                if k[0] == "f" and b[i] is not None and any(used.count(x) > 1 for x in (b[i] if isinstance(b[i], tuple) else [b[i]])): b[i] = None
            seen = set()
            for i, e in enumerate(b):
                xs = e if isinstance(e, tuple) else [e] if e else []
                if any(x in seen for x in xs): b[i] = None
                else: seen.update(xs)
        d = g.dt(); kw = dict(lc=[lk.index(("c", i)) for i in range(nc)], rc=[rk.index(("c", i)) for i in range(nc)], lb=[lk.index(("b", i)) for i in range(nb)], rb=[rk.index(("b", i)) for i in range(nb)])
        if r.random() < 0.12: kw["pref"] = "f32" if d != "i32" else "i32"
        return g.let(op, g.inp(ls, d, a), g.inp(rs, d, b), **kw, **g.outspec(B + lf + rf, 0.4))
    if op == "matmul":
        k = g.size(); form = r.choice(["mm", "mm", "mm", "vm", "mv", "vv", "bmm", "bmb", "mbm"])
        L = dict(v=[k], m=[g.size(), k]); R = dict(v=[k], m=[k, g.size()])
        bb = [g.size() for _ in range(r.randint(1, 2))]
        if form == "bmm": s, t = bb + L["m"], R["m"]
        elif form == "bmb": s, t = bb + L["m"], (bb if r.random() < .7 else [1] + bb[1:]) + R["m"]
        elif form == "mbm": s, t = L["m"], bb + R["m"]
        else: s, t = L[form[0]], R[form[1]]
        a = g.spec(s); b = g.spec(t)
        d = g.dt()
        batch = bb if "b" in form else []
        o = batch + (s[-2:-1] if len(s) > 1 else []) + (t[-1:] if len(t) > 1 else [])
        return g.let(op, g.inp(s, d, a), g.inp(t, d, b), **g.outspec(o, 0.35))
    if op == "einsum":
        eq = einsums(r); l, o = eq.split("->"); dim = {c: g.size() for c in "abcdefhijklq"}
        ax_of = {}
        args = []
        for term in l.split(","):
            s = [dim[c] for c in term]; sp = g.spec(s)
            if r.random() < 0.6: 
                sp = [ax_of.get(c, q) if c in ax_of else q for c, q in zip(term, sp)]
                seen = set()
                for i, e in enumerate(sp):
                    xs = e if isinstance(e, tuple) else [e] if e else []
                    if any(x in seen for x in xs): sp[i] = None
                    else: seen.update(xs)
            for c, q in zip(term, sp): ax_of.setdefault(c, q)
            args.append(g.inp(s, g.fdt() if not args else g.ins[-1][1], sp))
        return g.let(op, *args, eq=eq, **g.outspec([dim[c] for c in o], 0.35))
    if op.startswith("reduce_"):
        s = g.shape(1, 4); k = {}
        if r.random() < 0.9: k["axes"] = sorted(r.sample(range(len(s)), r.randint(0 if r.random() < .1 else 1, len(s))))
        if r.random() < 0.1 and "axes" in k: k["axes"] = [a - len(s) for a in k["axes"]]
        d = g.fdt() if op[7:] in ("mean", "std", "var") else "bool" if op[7:] in ("all", "any") else g.dt()
        return g.let(op, g.inp(s, d), **k, keepdims=r.randint(0, 1))
    if op in ("argmax", "argmin"):
        s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), **({} if r.random() < .2 else dict(axis=r.randint(-len(s), len(s) - 1))))
    if op in ("argsort", "sort"):
        s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), axis=r.randint(0, len(s) - 1), descending=r.randint(0, 1))
    if op == "sort_kv":
        s = g.shape(1, 2); a = g.spec(s); return g.let(op, g.inp(s, "i32", a), g.inp(s, "f32", g.like(a, s)), axis=r.randint(0, len(s) - 1), num_keys=r.randint(1, 2), names=2)
    if op == "top_k": s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), k=r.randint(1, min(4, s[-1])), names=2)
    if op.startswith("cum"):
        s = g.shape(1, 3); return g.let(op, g.inp(s, g.fdt()), axis=r.randint(0, len(s) - 1), reverse=r.randint(0, 1))
    if op in ("softmax", "log_softmax"): s = g.shape(1, 3); return g.let(op, g.inp(s, g.fdt()), axis=r.randint(-len(s), len(s) - 1))
    if op == "logsumexp": s = g.shape(1, 3); return g.let(op, g.inp(s, "f32"), axes=sorted(r.sample(range(len(s)), r.randint(1, len(s)))), keepdims=r.randint(0, 1))
    if op == "reshape":
        s = g.shape(1, 4); t = list(s)
        for _ in range(r.randint(1, 3)):
            c = r.random()
            if c < 0.4 and len(t) > 1: i = r.randint(0, len(t) - 2); t[i:i + 2] = [t[i] * t[i + 1]]
            elif c < 0.75 and t:
                i = r.randrange(len(t)); f = [q for q in (1, 2, 4, 8) if t[i] % q == 0]; q = r.choice(f); t[i:i + 1] = [q, t[i] // q] if r.random() < .5 else [t[i] // q, q]
            elif c < 0.85: t.insert(r.randint(0, len(t)), 1)
            elif 1 in t: t.remove(1)
        if not t: t = [1]
        if len(t) > 5: t = t[:4] + [int(np.prod(t[4:]))]
        return g.let(op, g.inp(s, g.dt()), shape=t, **g.outspec(t, 0.35))
    if op == "div_": pass
    if op == "transpose": s = g.shape(1, 4); p = list(range(len(s))); r.shuffle(p); return g.let(op, g.inp(s, g.dt()), perm=p)
    if op == "broadcast_in_dim":
        t = g.shape(1, 4); dims = sorted(r.sample(range(len(t)), r.randint(0, len(t)))); s = [1 if r.random() < .15 else t[d] for d in dims]
        return g.let(op, g.inp(s, g.dt()), shape=t, dims=dims, **g.outspec(t, 0.5))
    if op == "broadcast_to":
        t = g.shape(1, 4); k = r.randint(0, len(t)); s = [1 if r.random() < .2 else e for e in t[k:]]
        return g.let(op, g.inp(s, g.dt()), shape=t, **g.outspec(t, 0.5))
    if op == "concatenate":
        s = g.shape(1, 3); d = r.randrange(len(s)); a = g.spec(s); dt = g.dt(); args = []
        for _ in range(r.randint(1, 3)):
            t = list(s); t[d] = g.size() if r.random() < .5 else s[d]; args.append(g.inp(t, dt, g.like(a, t, .8)))
        return g.let(op, *args, axis=d if r.random() < .9 else d - len(s))
    if op == "stack":
        s = g.shape(1, 3); a = g.spec(s); dt = g.dt(); return g.let(op, *[g.inp(s, dt, g.like(a, s, .8)) for _ in range(r.randint(1, 3))], axis=r.randint(0, len(s)))
    if op == "slice":
        s = g.shape(1, 3); st, li, sr = [], [], []
        for e in s:
            if r.random() < .5: st.append(0); li.append(e); sr.append(1)
            else:
                a = r.randint(0, e - 1); b = r.randint(a, e); st.append(a); li.append(b); sr.append(r.choice([1, 1, 2, 3]))
        return g.let(op, g.inp(s, g.dt()), start=st, limit=li, **(dict(stride=sr) if r.random() < .8 else {}))
    if op == "dynamic_slice":
        s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), *[g.inp([], "i32", []) for _ in s], sizes=[e if r.random() < .5 else r.randint(1, e) for e in s])
    if op == "dynamic_update_slice":
        s = g.shape(1, 3); a = g.spec(s); d = g.dt(); u = [e if r.random() < .6 else r.choice([q for q in range(1, e + 1) if e % q == 0]) for e in s]
        return g.let(op, g.inp(s, d, a), g.inp(u, d, g.like(a, u, .8)), *[g.inp([], "i32", []) for _ in s])
    if op == "pad":
        s = g.shape(1, 3); d = g.dt()
        lo, hi, it = [[r.choice([0, 0, 0, 1, 2, 4, -1]) for _ in s] for _ in "ab"] + [[r.choice([0, 0, 0, 1]) for _ in s]]
        return g.let(op, g.inp(s, d), g.inp([], d, []), lo=lo, hi=hi, interior=it)
    if op == "tile": s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), reps=[r.choice([1, 1, 2, 3]) for _ in range(r.randint(1, len(s) + (r.random() < .2)))])
    if op == "repeat": s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), n=r.randint(1, 3), axis=r.randrange(len(s)))
    if op == "roll": 
        s = g.shape(1, 3); k = sorted(r.sample(range(len(s)), r.randint(1, len(s)))); return g.let(op, g.inp(s, g.dt()), shift=[r.randint(-5, 9) for _ in k], axes=k)
    if op == "rev": s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), dims=sorted(r.sample(range(len(s)), r.randint(1, len(s)))))
    if op == "diff": s = g.shape(1, 3); return g.let(op, g.inp(s, "f32"), n=r.randint(1, 2), axis=r.randint(-len(s), len(s) - 1))
    if op in ("tril", "triu"): s = g.shape(2, 4); return g.let(op, g.inp(s, g.dt()), k=r.randint(-2, 2))
    if op == "expand_dims": s = g.shape(1, 3); k = r.randint(1, 2); return g.let(op, g.inp(s, g.dt()), axes=sorted(r.sample(range(len(s) + k), k)))
    if op == "squeeze":
        s = g.shape(1, 3); i = r.randint(0, len(s)); s.insert(i, 1); ones = [q for q, e in enumerate(s) if e == 1]; return g.let(op, g.inp(s, g.dt()), axes=sorted(r.sample(ones, r.randint(1, len(ones)))))
    if op == "outer": d = g.fdt(); return g.let(op, g.inp(g.shape(1, 1), d), g.inp(g.shape(1, 1), d))
    if op == "one_hot": s = g.shape(1, 3); return g.let(op, g.inp(s, "i32"), n=g.size(), dtype="f32", **({} if r.random() < .6 else dict(axis=r.randint(0, len(s)))))
    if op == "convert": return g.let(op, g.inp(g.shape(0, 3), g.dt()), dtype=r.choice(["f32", "bf16", "i32", "bool", "u8"]))
    if op == "take":
        s = g.shape(1, 3); return g.let(op, g.inp(s, g.dt()), g.inp(g.shape(0, 2), "i32"), **({} if r.random() < .15 else dict(axis=r.randrange(len(s)))), **({} if r.random() < .5 else dict(mode=r.choice(["clip", "fill", "wrap"]))))
    if op == "take_along_axis":
        s = g.shape(1, 3); d = r.randrange(len(s)); t = list(s); t[d] = g.size(); a = g.spec(s); return g.let(op, g.inp(s, g.dt(), a), g.inp(t, "i32", g.like(a, t, .6)), axis=d)
    if op == "at_get":
        s = g.shape(1, 3); i = g.shape(0, 2); return g.let(op, g.inp(s, g.dt()), g.inp(i, "i32"), **({} if r.random() < .6 else dict(mode=r.choice(["fill", "clip"]))), **g.outspec(i + s[1:], 0.5))
    if op.startswith("at_"):
        s = g.shape(1, 3); i = g.shape(0, 1); d = g.dt(); a = g.spec(s); u = i + s[1:]
        return g.let(op, g.inp(s, d, a), g.inp(i, "i32", None if r.random() < .5 else [None] * len(i)), g.inp(u, d, None if r.random() < .5 else [None] * len(i) + a[1:]), **({} if r.random() < .7 else dict(mode=r.choice(["drop", "clip"]))), **({"out": spec_text(g.like(a, s))} if r.random() < .3 else {}))
    if op == "conv":
        n = r.choice([1, 1, 2]); ci, co = g.size(), g.size(); grp = 1 if r.random() < .8 else r.choice([q for q in (1, 2, 4) if ci % q == 0 and co % q == 0])
        s = [g.size(), ci] + [r.choice([8, 16, 4]) for _ in range(n)]; w = [co, ci // grp] + [r.choice([1, 2, 3]) for _ in range(n)]
        kw = {}
        if r.random() < .25: kw["rhs_dilation"] = [r.choice([1, 2])] * n
        if r.random() < .15: kw["lhs_dilation"] = [2] * n
        if grp > 1: kw["groups"] = grp
        d = g.fdt()
        return g.let(op, g.inp(s, d), g.inp(w, d, None if r.random() < .5 else [None] * len(w)), strides=[r.choice([1, 1, 2])] * n, padding=[[r.randint(0, 2), r.randint(0, 2)] for _ in range(n)], **kw)
    if op in ("reshard", "constraint"):
        s = g.shape(1, 4); sp = g.spec(s); return g.let(op, g.inp(s, g.dt(), sp), spec=spec_text(g.spec(s) if op == "reshard" or r.random() < .4 else sp))
    if op == "iota": s = g.shape(1, 3); return g.let(op, dtype=r.choice(["f32", "i32"]), shape=s, dim=r.randrange(len(s)))
    if op == "full": return g.let(op, dtype="f32", shape=g.shape(0, 3), value=1.5)
    if op == "searchsorted": return g.let(op, g.inp(g.shape(1, 1), "f32"), g.inp(g.shape(0, 2), "f32"), side=r.choice(["left", "right"]))
    if op == "segment_sum": n = g.size(); s = [n] + g.shape(0, 2); return g.let(op, g.inp(s, g.fdt()), g.inp([n], "i32"), n=r.choice([4, 8, 3]))
    if op == "bincount": return g.let(op, g.inp(g.shape(1, 1), "i32"), n=r.choice([4, 8]))
    if op == "convolve": d = "f32"; return g.let(op, g.inp(g.shape(1, 1), d), g.inp(g.shape(1, 1), d), mode=r.choice(["full", "same", "valid"]))
    if op == "diag": return g.let(op, g.inp(g.shape(1, 2), "f32"), k=r.randint(-1, 1))
    if op == "trace": return g.let(op, g.inp(g.shape(2, 3), "f32"))
    if op == "integer_pow": return g.let(op, g.inp(g.shape(1, 3), "f32"), y=r.choice([2, 3, -1]))
    if op == "bitcast": return g.let(op, g.inp(g.shape(1, 3), "f32"), dtype="i32")
    if op == "eye": return g.let(op, n=4, m=4, k=0, dtype="f32")
    raise KeyError(op)
TYPES_OPS = UNARY + BINARY + "select clamp clip dot_general matmul einsum reduce_sum reduce_max reduce_min reduce_mean reduce_prod reduce_std reduce_var reduce_all reduce_any argmax argmin argsort sort sort_kv top_k cumsum cumprod cummax cumlogsumexp softmax log_softmax logsumexp reshape transpose broadcast_in_dim broadcast_to concatenate stack slice dynamic_slice dynamic_update_slice pad tile repeat roll rev diff tril triu expand_dims squeeze outer one_hot convert take take_along_axis at_get at_set at_add at_max at_mul conv reshard constraint iota full searchsorted segment_sum bincount convolve diag trace integer_pow bitcast".split()
WEIGHTS = dict(dot_general=8, reshape=7, matmul=4, einsum=4, slice=3, add=3, concatenate=2, select=2, at_get=2, conv=2, broadcast_in_dim=2, dynamic_update_slice=2, take=2, pad=2, reduce_sum=2)
