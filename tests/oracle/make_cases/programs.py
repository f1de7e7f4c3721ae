"""prog: straight-line programs with values.  programs.py COUNT SEED FOLDER [e|uneven]"""
from candidates import *
MM = [dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=8), dict(x=2, y=4)]
def integers(r, shape, lo=-4, hi=4): return np.array([r.randint(lo, hi) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)
def floats(r, shape): return np.array([r.gauss(0, 1) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)
class Prog:
    def __init__(self, seed, exact, sizes=None, uneven=False):
        r = self.r = random.Random(seed); self.exact = exact
        self.g = G(seed, r.choice(MM), sizes or [4, 8, 12, 24], even=0.0 if uneven else 1.0)
        self.shape, self.val, self.wide, self.big = {}, {}, {}, {}
        self.lets, self.used = [], set(); self.n = 0
        for k in range(r.randint(2, 4)):
            s = self.g.shape(1, 3)
            if int(np.prod(s)) > 1200: s = s[:2]
            n = self.g.inp(s); d = integers(r, s) if exact else floats(r, s)
            self.add(n, d)
    def add(self, n, v):
        v = jnp.asarray(v); self.val[n] = v; self.shape[n] = v.shape
    def try_(self, op, args, **kw):
        def t(v):
            if isinstance(v, (list, tuple)): return "[" + ",".join(t(e) for e in v) + "]"
            return str(v)
        line = " ".join([f"let v{self.n} {op}", *args, *[f"{k}={t(v)}" for k, v in kw.items()]])
        dst, o, a, at = parse_let(line.split())
        try: v = S[op](Env(), [self.val[x] for x in a], **at)
        except Exception as e: return False
        if v.size > 20000 or v.size == 0 and self.r.random() < .9: return False
        if self.exact:
            m = np.asarray(v)
            if m.dtype.kind == "f" and (not np.all(np.isfinite(m)) or np.abs(m).max(initial=0) > 2 ** 20 or np.any(m != np.round(m))): return False
        elif v.dtype == np.float32:
            m = np.asarray(v)
            if not np.all(np.isfinite(m)) or np.abs(m).max(initial=0) > 1e4: return False
        self.add(f"v{self.n}", v); self.lets.append(line); self.used.update(a); self.n += 1
        return True
    def pick(self, lo=0, hi=4, kind="f"):
        c = [n for n, s in self.shape.items() if lo <= len(s) <= hi and self.val[n].dtype.kind == kind]
        return self.r.choice(c[-6:] + c) if c else None
    def step(self):
        r = self.r; x = self.pick(1)
        if x is None: return
        s = self.shape[x]; n = len(s)
        ops = "transpose neg dot_general dot_general dot_general reduce_min reshape reshape reduce_max concatenate concatenate square slice slice slice sort rev relu sub min max max roll roll reduce_sum reduce_sum sign pad pad select lt broadcast_to cumsum add dynamic_update_slice abs mul dynamic_slice stack tile cummax cummin expand_dims argmax take at_get at_add matmul".split()
        if not self.exact: ops += "softplus softmax softmax tanh gelu_tanh reduce_mean atan sigmoid sin logsumexp silu".split()
        op = r.choice(ops)
        t = self.try_
        if op == "transpose": p = list(range(n)); r.shuffle(p); return t(op, [x], perm=p)
        if op in "neg square relu sign abs softplus tanh gelu_tanh atan sigmoid sin silu".split(): return t(op, [x])
        if op in ("sub", "min", "max", "add", "mul", "lt"):
            for _ in range(4):
                y = self.pick()
                if t(op, [x, y] if r.random() < .5 else [y, x]): return
            return
        if op == "dot_general":
            for _ in range(6):
                y = self.pick(1); q = self.shape[y]
                pairs = [(i, j) for i in range(n) for j in range(len(q)) if s[i] == q[j]]; r.shuffle(pairs)
                if not pairs: continue
                lc, rc, lb, rb = [pairs[0][0]], [pairs[0][1]], [], []
                for i, j in pairs[1:]:
                    if i in lc + lb or j in rc + rb: continue
                    c = r.random()
                    if c < .25: lc.append(i); rc.append(j)
                    elif c < .5: lb.append(i); rb.append(j)
                if t(op, [x, y], lc=lc, rc=rc, lb=lb, rb=rb): return
            return
        if op == "matmul":
            for _ in range(6):
                y = self.pick(1)
                if t(op, [x, y]): return
            return
        if op.startswith("reduce_"): return t(op, [x], axes=sorted(r.sample(range(n), r.randint(1, n))), keepdims=r.randint(0, 1))
        if op == "logsumexp": return t(op, [x], axes=sorted(r.sample(range(n), r.randint(1, n))), keepdims=r.randint(0, 1))
        if op == "softmax": return t(op, [x], axis=r.randrange(n))
        if op in ("cumsum", "cummax", "cummin"): return t(op, [x], axis=r.randrange(n), reverse=r.randint(0, 1))
        if op == "sort": return t(op, [x], axis=r.randrange(n))
        if op == "rev": return t(op, [x], dims=sorted(r.sample(range(n), r.randint(1, n))))
        if op == "roll": k = sorted(r.sample(range(n), r.randint(1, n))); return t(op, [x], shift=[r.randint(-5, 7) for _ in k], axes=k)
        if op == "reshape":
            sz = int(np.prod(s)); q = []; 
            for _ in range(r.randint(0, 3)):
                f = [e for e in (2, 3, 4, 6, 8, 12, 1) if sz % e == 0]; e = r.choice(f); q.append(e); sz //= e
            q.insert(r.randint(0, len(q)), sz); return t(op, [x], shape=q)
        if op == "slice":
            st = [r.randint(0, max(0, e - 1)) if r.random() < .6 else 0 for e in s]; li = [r.randint(a + 1, e) if r.random() < .6 and e > a else e for a, e in zip(st, s)]
            return t(op, [x], start=st, limit=li, stride=[r.choice([1, 1, 1, 2, 3]) for _ in s])
        if op == "dynamic_slice":
            ix = []
            for e in s:
                self.try_("const", [], dtype="i32", value=r.randint(0, e)); ix.append(f"v{self.n-1}")
            return t(op, [x, *ix], sizes=[r.randint(1, e) for e in s])
        if op == "dynamic_update_slice":
            y = self.pick(n, n); ix = []
            if y is None: return
            if any(a > b for a, b in zip(self.shape[y], s)): return
            for e in s:
                self.try_("const", [], dtype="i32", value=r.randint(-1, e)); ix.append(f"v{self.n-1}")
            return t(op, [x, y, *ix])
        if op == "pad":
            self.try_("const", [], dtype="f32", value=r.choice([0, 0, 1, -1])); return t(op, [x, f"v{self.n-1}"], lo=[r.choice([0, 0, 1, 2, -1]) for _ in s], hi=[r.choice([0, 0, 1, 2, -1]) for _ in s], interior=[r.choice([0, 0, 0, 1]) for _ in s])
        if op == "concatenate":
            d = r.randrange(n); c = [y for y, q in self.shape.items() if len(q) == n and q[:d] + q[d+1:] == s[:d] + s[d+1:] and self.val[y].dtype == self.val[x].dtype]
            return t(op, [r.choice(c) for _ in range(r.randint(1, 2))] + [x], axis=d)
        if op == "stack":
            c = [y for y, q in self.shape.items() if q == s and self.val[y].dtype == self.val[x].dtype]; return t(op, [x, r.choice(c)], axis=r.randint(0, n))
        if op == "select":
            c = [y for y in self.shape if self.val[y].dtype == bool]
            if not c: return
            for _ in range(4):
                if t(op, [r.choice(c), x, self.pick()]): return
            return
        if op == "broadcast_to": return t(op, [x], shape=[r.choice([2, 4, 3])] + [r.choice([4, 8]) if e == 1 else e for e in s])
        if op == "tile": return t(op, [x], reps=[r.choice([1, 2]) for _ in s])
        if op == "expand_dims": return t(op, [x], axes=[r.randint(0, n)])
        if op == "argmax": return t(op, [x], axis=r.randrange(n))
        if op in ("take", "at_get", "at_add"):
            c = [y for y in self.shape if self.val[y].dtype == np.int32]
            if not c: return
            i = r.choice(c)
            if op == "take": return t(op, [x, i], axis=r.randrange(n), mode=r.choice(["clip", "wrap"]))
            if op == "at_get": return t(op, [x, i], mode="clip")
            u = [y for y in self.shape if self.shape[y] == tuple(self.shape[i]) + s[1:]] + [y for y in self.shape if self.shape[y] == ()]
            u = [y for y in u if self.val[y].dtype == np.float32]
            return u and t(op, [x, i, r.choice(u)])
def wide_values(p):
    """The program in double precision."""
    jax.config.update("jax_enable_x64", True)
    try:
        v = {n: jnp.asarray(np.asarray(p.val[n]).astype(np.float64)) for n, *_ in p.g.ins}
        for l in p.lets:
            w = l.split()
            if w[2] in ("const",) and "dtype=f32" in l: w = l.replace("dtype=f32", "dtype=f64").split()
            v = run_lets(Env(), [w], v)
        return {n: np.asarray(x) for n, x in v.items()}
    finally: jax.config.update("jax_enable_x64", False)
if __name__ == "__main__":
    n, seed = int(sys.argv[1]), int(sys.argv[2]); W = Writer(sys.argv[3], "family prog")
    mode = sys.argv[4] if len(sys.argv) > 4 else ""
    for k in range(n):
        exact = k % 2 == 0 or mode == "e"
        p = Prog(seed * 10007 + k, exact, sizes=[5, 7, 12, 10, 3, 16] if mode == "uneven" else None, uneven=mode == "uneven")
        for _ in range(p.r.randint(6, 14)): p.step()
        outs = [l.split()[1] for l in p.lets if l.split()[1] not in p.used]
        if not outs: continue
        W.n += 0
        h = p.g.head()
        L = [h[0]] + [W.array("in", n, p.val[n], spec_text(sp)) for n, d, s, sp, _ in p.g.ins] + p.lets
        wide = None
        if not exact:
            try: wide = wide_values(p)
            except Exception as e: print("skip wide", str(e)[:100]); continue
        bad = False
        for o in outs:
            v = np.asarray(p.val[o])
            if exact or v.dtype.kind != "f": tol = "exact zeros_equal"
            else:
                e = np.abs(v - wide[o]).max(initial=0)
                if e > 1e-3 * max(1e-3, np.abs(v).max(initial=0)): bad = True
                tol = f"relabs 3.81e-06 {4 * e + 2e-6 * max(1e-3, np.abs(v).max(initial=0)):.3g}"
            L.append(W.array("out", o, v, "-", tol))
        if bad: continue
        W.case(f"prog.{'e' if exact else 'f'}{k:04d}", L)
    W.close()
