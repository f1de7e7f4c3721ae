"""More forms of programs for make_auto_cases.py: `forms COUNT SEED`. Each writes a program on a Maker; with `train` its gradients."""
import math
from make_auto_cases import activation, norm_of, write_spec

MESHES = [{"x": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}, {"x": 4}, {"x": 2}, {"x": 4, "y": 4}, {"x": 16}, {"x": 3, "y": 2},
          {"x": 4, "y": 2, "z": 2}, {"x": 2, "y": 8}, {"x": 6}, {"x": 2, "y": 3, "z": 2}, {"x": 5}, {"x": 2, "y": 1, "z": 4}, {"x": 3}]


def along(shape, d, value, other):
    return [value if e == d else (o if isinstance(other, list) else other) for e, o in enumerate(other if isinstance(other, list) else shape)]


def cut(m, v, shape, d, lo, hi):
    return m.let("slice", v, start=along(shape, d, lo, 0), limit=along(shape, d, hi, shape))


def finish(m, train, y, wrt, keep=0.8):
    """The value, or gradients of a number made of it."""
    if train:
        m.descend(m.let(m.pick("reduce_sum", "reduce_mean"), m.let(m.pick("square", "sin"), y)), wrt[:m.rng.randrange(1, len(wrt) + 1)], keep)
    else:
        m.rets.append(y)


def heads(m, train):
    """Attention whose heads are made by reshapes, with a causal mask or without."""
    b, t, h, d = m.pick(2, 4, 8), m.pick(8, 16, 12), m.pick(2, 4, 8), m.pick(4, 8)
    e = h * d
    x = m.operand("x", [b, t, e], roles=m.pick([0, None, None], [0, 1, None], [0, None, 1]))
    def split(w):
        y = m.let("matmul", x, m.operand(w, [e, e], roles=[None, 1]))
        return m.let("transpose", m.let("reshape", y, shape=[b, t, h, d]), perm=[0, 2, 1, 3])
    q, k, v = split("wq"), split("wk"), split("wv")
    s = m.let("mul", m.let("einsum", q, k, eq="bhtd,bhsd->bhts"), m.number(0.3))
    if m.rng.random() < 0.6:
        one = m.let("full", dtype="f32", shape=[t, t], value=1.0)
        low = m.let("gt", m.let("tril", one, k=0), m.number(0.5))
        s = m.let("select", low, s, m.number(-1e9))
    o = m.let("einsum", m.let("softmax", s, axis=-1), v, eq="bhts,bhsd->bhtd")
    o = m.let("reshape", m.let("transpose", o, perm=[0, 2, 1, 3]), shape=[b, t, e])
    o = m.let("matmul", o, m.operand("wo", [e, e], roles=[1, None]))
    if m.rng.random() < 0.5:
        o = m.let("add", x, o)
    finish(m, train, o, ["wq", "wo", "wv", "wk", "x"])


def entropy(m, train):
    """Cross entropy of classes, by numbers or by one_hot."""
    b, e, n = m.pick(8, 16, 32), m.pick(16, 24), m.pick(8, 16, 40)
    x, w, i = m.operand("x", [b, e], roles=[0, None]), m.operand("w", [e, n], roles=[None, 1]), m.operand("i", [b], "i32", roles=[0])
    z = m.let("matmul", x, w)
    kind = m.rng.randrange(3)
    if kind == 0:
        p = m.let("mul", m.let("log_softmax", z, axis=-1), m.let("one_hot", i, n=n, dtype="f32"))
        p = m.let("reduce_sum", p, axes=[1])
    elif kind == 1:
        p = m.let("take_along_axis", m.let("log_softmax", z, axis=-1), m.let("expand_dims", i, axes=[1]), axis=1)
    else:
        p = m.let("sub", m.let("reduce_sum", m.let("mul", z, m.let("one_hot", i, n=n, dtype="f32")), axes=[1]), m.let("logsumexp", z, axes=[1]))
    loss = m.let("neg", m.let("reduce_mean", p))
    if train:
        m.descend(loss, ["w", "x"][:m.pick(1, 2)])
    else:
        m.rets.append(p if m.rng.random() < 0.4 else loss)


def language(m, train):
    """Embedding, position, norm, a layer, and logits by the same table or another."""
    v, e, b, t = m.pick(32, 64), m.pick(16, 32), m.pick(4, 8), m.pick(8, 16)
    table, i = m.operand("e", [v, e], roles=m.pick([1, None], [None, 1], [None, None])), m.operand("i", [b, t], "i32", roles=[0, None])
    h = m.let("add", m.let("take", table, i, axis=0), m.operand("p", [t, e], roles=[None, m.pick(1, None)]))
    h = norm_of(m, h, e, 2)
    h = activation(m, m.let("matmul", h, m.operand("w", [e, e], roles=[None, 1])))
    if m.rng.random() < 0.5:
        z = m.let("einsum", h, table, eq="bte,ve->btv")
    else:
        z = m.let("matmul", h, m.operand("u", [e, v], roles=[None, 1]))
    if not train:
        m.rets.append(m.let("argmax", z, axis=2) if m.rng.random() < 0.3 else z)
        return
    y = m.let("one_hot", m.operand("y", [b, t], "i32", roles=[0, None]), n=v, dtype="f32")
    loss = m.let("neg", m.let("reduce_mean", m.let("mul", m.let("log_softmax", z, axis=-1), y)))
    m.descend(loss, ["e", "w", "p"][:m.pick(1, 2, 3)])


def norms(m, train):
    """Norms over one or several dimensions, with gain and bias, of arrays with up to four."""
    shape = m.pick([16, 32], [8, 16, 32], [4, 8, 16, 16], [24, 12])
    x = m.operand("x", shape, roles=[0] + [None] * (len(shape) - 2) + [1])
    axes = m.pick([len(shape) - 1], [0], list(range(len(shape)))[1:], [d for d in range(len(shape)) if d != 1])
    mean = m.let("reduce_mean", x, axes=axes, keepdims=1)
    c = m.let("sub", x, mean)
    var = m.let("reduce_mean", m.let("square", c), axes=axes, keepdims=1) if m.rng.random() < 0.5 else m.let("reduce_var", x, axes=axes, keepdims=1)
    y = m.let("mul", c, m.let("rsqrt", m.let("add", var, m.number(1e-05))))
    last = shape[-1]
    y = m.let("add", m.let("mul", y, m.operand("g", [last], roles=[1])), m.operand("c", [last], roles=[1]))
    if m.rng.random() < 0.3:
        y = m.let("reduce_mean", y, axes=[m.rng.randrange(len(shape))])
    finish(m, train, y, ["g", "c", "x"])


def network(m, train):
    """Convolutions, pooled, and a dense layer."""
    n, c, o, size = m.pick(4, 8, 16), m.pick(2, 4), m.pick(4, 8), m.pick([32], [8, 8], [16, 8])
    r = len(size)
    x = m.operand("x", [n, c] + size, roles=m.pick([0, None], [None, None]) + [m.pick(None, 1)] + [None] * (r - 1))
    groups = m.pick(1, 1, 1, c)
    w = m.operand("w", [o, c // groups] + [3] * r, roles=[1] + [None] * (r + 1))
    wide = m.pick(1, 1, 2)
    y = m.let("conv", x, w, strides=[m.pick(1, 2)] * r, padding=[[wide, wide]] * r, rhs_dilation=[wide] * r, groups=groups)
    if m.rng.random() < 0.5:
        bias = m.let("broadcast_in_dim", m.operand("b", [o], roles=[1]), shape=[1, o] + [1] * r, dims=[1])
        y = m.let("add", y, bias)
    y = m.let("relu", y)
    if m.rng.random() < 0.6:
        y = m.let("reduce_" + m.pick("mean", "max", "sum"), y, axes=list(range(2, 2 + r)))
        y = m.let("matmul", y, m.operand("d", [o, 16], roles=[None, m.pick(1, None)]))
    finish(m, train, y, ["w", "x"])


def waves(m, train):
    """Stencils in two and three dimensions, periodic or with borders, several steps, two fields."""
    shape = m.pick([16, 32], [32, 16], [8, 16, 16], [16, 8, 12], [24, 24])
    r, c = len(shape), m.number(0.1)
    u, v = m.operand("u", shape), m.operand("v", shape)
    kind = m.pick("periodic", "periodic", "zero", "edge")
    def near(a, d, k):
        if kind == "periodic":
            return m.let("roll", a, shift=[k], axes=[d])
        n = shape[d]
        kept = cut(m, a, shape, d, 0, n - 1) if k > 0 else cut(m, a, shape, d, 1, n)
        if kind == "zero":
            return m.let("pad", kept, m.number(0.0), lo=along(shape, d, 1 if k > 0 else 0, 0), hi=along(shape, d, 0 if k > 0 else 1, 0), interior=[0] * r)
        border = cut(m, a, shape, d, 0, 1) if k > 0 else cut(m, a, shape, d, n - 1, n)
        return m.let("concatenate", *((border, kept) if k > 0 else (kept, border)), axis=d)
    for _ in range(m.pick(1, 2, 3)):
        s = m.let("mul", u, m.number(-2.0 * r))
        for d in range(r):
            s = m.let("add", s, m.let("add", near(u, d, 1), near(u, d, -1)))
        w = m.let("sub", m.let("add", m.let("mul", u, m.number(2.0)), m.let("mul", s, c)), v)
        u, v = w, u
    if m.rng.random() < 0.3:
        m.rets.append(v)
    finish(m, train and r == 2, u, ["u", "v"])


def tensors(m, train):
    """Products of three operands, batched, with broadcast batches."""
    i, j, k, l = m.pick(8, 16), m.pick(8, 16, 12), m.pick(16, 32), m.pick(8, 16)
    dims = {"i": i, "j": j, "k": k, "l": l, "b": m.pick(4, 8)}
    eq = m.pick("ij,jk,kl->il", "bij,bjk,kl->bil", "bi,ij,bj->b", "ijk,kl,jl->il", "bij,bkj,bkl->bil", "ij,ik,il->jkl", "bij,jk,bk->bi", "ij,jk,ki->",
                "ij,kj->ik", "bij,jk->bik", "bij,bik->bjk", "ijk,ijl->kl", "ij,i->j", "ij,ij->i", "bik,bkj->bij", "bij,kl->bijkl")
    names = []
    for n, part in enumerate(eq.split("->")[0].split(",")):
        names.append(m.operand("abc"[n], [dims[x] for x in part]))
    y = m.let("einsum", *names, eq=eq)
    if m.rng.random() < 0.3 and not eq.endswith(">"):
        y = activation(m, y)
    if eq.endswith(">"):
        m.rets.append(y) if not train else m.descend(y, names[:2], 1)
    else:
        finish(m, train, y, names)


def orders(m, train):
    """Sorting, the largest, running sums, and what they are used for."""
    shape = m.pick([64], [16, 32], [8, 16, 16], [48])
    x, d = m.operand("x", shape), m.rng.randrange(len(shape))
    kind = m.rng.randrange(7)
    if kind == 0:
        y = m.let("sort", x, axis=d, descending=m.pick(0, 1))
    elif kind == 1:
        y = m.let("top_k", x, names=["best", "places"], k=m.pick(2, 4))
        if not train:
            m.rets.append("places")
    elif kind == 2:
        y = m.let("cumsum", x, axis=d, reverse=m.pick(0, 1))
        y = m.let("div", y, m.let("reduce_sum", m.let("abs", x), axes=[d], keepdims=1))
    elif kind == 3:
        y = m.let("take_along_axis", x, m.let("argsort", x, axis=d), axis=d)
    elif kind == 4:
        i = m.let("argmax", x, axis=d)
        y = m.let("mul", x, m.let("one_hot", i, n=shape[d], dtype="f32")) if d == len(shape) - 1 else m.let("convert", i, dtype="f32")
        train = train and d == len(shape) - 1
    elif kind == 5:
        y = m.let("sub", m.let("sort", x, axis=d), m.let("reduce_mean", x, axes=[d], keepdims=1))
    else:
        y = m.let(m.pick("cummax", "cumlogsumexp", "cumprod"), x, axis=d)
    if m.rng.random() < 0.3 and kind != 1:
        y = m.let("reduce_" + m.pick("sum", "max", "mean"), y, axes=[m.rng.randrange(len(shape))]) if kind != 4 else y
    finish(m, train, y, ["x"])


def assembled(m, train):
    """Put together, cut, padded, repeated, masked, and gradients of that."""
    shape = m.pick([32], [16, 32], [32, 16], [8, 16, 8])
    r, d = len(shape), m.rng.randrange(len(shape))
    x, y, n = m.operand("x", shape), m.operand("y", shape), shape[d]
    kind = m.rng.randrange(9)
    if kind == 0:
        a = m.let("concatenate", x, m.let("sin", y), x, axis=d)
        shape = along(shape, d, 3 * n, shape)
        a = cut(m, a, shape, d, n // 2, n // 2 + 2 * n)
    elif kind == 1:
        a = m.let("mul", cut(m, x, shape, d, 0, n // 2), cut(m, y, shape, d, n // 2, n))
    elif kind == 2:
        a = m.let("pad", m.let("add", x, y), m.number(0.0), lo=along(shape, d, m.pick(0, 2), 0), hi=along(shape, d, m.pick(1, 4), 0), interior=along(shape, d, m.pick(0, 1), 0))
    elif kind == 3:
        a = m.let("add", m.let("tile", x, reps=along(shape, d, 2, 1)), m.let("repeat", y, n=2, axis=d))
    elif kind == 4:
        a = m.let("select", m.let("gt", x, m.let("reduce_mean", x, axes=[d], keepdims=1)), x, y)
    elif kind == 5:
        a = m.let("stack", x, y, m.let("neg", x), axis=m.rng.randrange(r + 1))
    elif kind == 6:
        a = m.let("mul", m.let("diff", x, axis=d), m.let("diff", y, axis=d))
    elif kind == 7:
        a = m.let("sub", m.let("rev", x, dims=[d]), m.let("roll", y, shift=[m.pick(1, -2, n // 2)], axes=[d]))
    else:
        one = [m.let("const", dtype="i32", value=1 if e == d else 0) for e in range(r)]
        a = m.let("dynamic_update_slice", x, m.let("mul", cut(m, x, shape, d, 1, n - 1), cut(m, y, shape, d, 2, n)), *one)
    if m.rng.random() < 0.3:
        a = activation(m, a)
    finish(m, train, a, ["x", "y"])


def gates(m, train):
    """A cell whose gates are slices of one product, some steps."""
    b, e, h = m.pick(8, 16), m.pick(8, 16), m.pick(8, 16)
    x, w, u = m.operand("x", [b, e], roles=[0, None]), m.operand("w", [e, 3 * h], roles=[None, 1]), m.operand("u", [h, 3 * h], roles=[None, 1])
    s, c = m.operand("s", [b, h], roles=[0, None]), m.operand("c", [b, h], roles=[0, None])
    for _ in range(m.pick(1, 2)):
        z = m.let("add", m.let("matmul", x, w), m.let("matmul", s, u))
        f, i, o = (cut(m, z, [b, 3 * h], 1, k * h, (k + 1) * h) for k in range(3))
        c = m.let("add", m.let("mul", m.let("sigmoid", f), c), m.let("tanh", i))
        s = m.let("mul", m.let("sigmoid", o), m.let("tanh", c))
    finish(m, train, s, ["w", "u"])


def algebra(m, train):
    """Small numerical programs: least squares by descent, power iteration, covariance, distances, kernels."""
    n, k = m.pick(32, 64, 48), m.pick(8, 16, 12)
    x = m.operand("x", [n, k], roles=[0, None])
    kind = m.rng.randrange(6)
    if kind == 0:
        c = m.let("sub", x, m.let("reduce_mean", x, axes=[0], keepdims=1))
        y = m.let("einsum", c, c, eq="ni,nj->ij")
        y = m.let("div", y, m.number(float(n - 1)))
        wrt = ["x"]
    elif kind == 1:
        d = m.let("sub", m.let("expand_dims", x, axes=[1]), m.let("expand_dims", m.operand("z", [16, k], roles=[1, None]), axes=[0]))
        y = m.let("exp", m.let("neg", m.let("reduce_sum", m.let("square", d), axes=[2])))
        wrt = ["x", "z"]
    elif kind == 2:
        w, y_ = m.operand("w", [k], roles=[None]), m.operand("y", [n], roles=[0])
        for _ in range(m.pick(1, 2, 3)):
            r = m.let("sub", m.let("matmul", x, w), y_)
            w = m.let("sub", w, m.let("mul", m.let("matmul", r, x), m.number(0.01)))
        y, train = w, False
        wrt = ["x"]
    elif kind == 3:
        v = m.operand("v", [k], roles=[None])
        for _ in range(m.pick(1, 2)):
            v = m.let("matmul", m.let("matmul", x, v), x)
            v = m.let("div", v, m.let("sqrt", m.let("reduce_sum", m.let("square", v))))
        y, wrt = v, ["x"]
    elif kind == 4:
        g = m.let("einsum", x, x, eq="ni,mi->nm")
        q = m.let("reduce_sum", m.let("square", x), axes=[1])
        y = m.let("sub", m.let("add", m.let("expand_dims", q, axes=[1]), m.let("expand_dims", q, axes=[0])), m.let("mul", g, m.number(2.0)))
        wrt = ["x"]
    else:
        y = m.let("segment_sum", x, m.operand("i", [n], "i32", roles=[0]), n=8)
        y = m.let("div", y, m.let("add", m.let("reduce_sum", m.let("abs", y), axes=[m.pick(0, 1)], keepdims=1), m.number(1.0)))
        wrt = ["x"]
    finish(m, train, y, wrt)


def gathers(m, train):
    """Looked up, added, set and summed by indexes."""
    n, e, b = m.pick(32, 64), m.pick(8, 16), m.pick(8, 16, 32)
    x, i = m.operand("x", [n, e]), m.operand("i", [b], "i32")
    kind = m.rng.randrange(7)
    if kind == 0:
        y = m.let("at_add", x, i, m.operand("u", [b, e]))
    elif kind == 1:
        y = m.let("at_set", x, i, m.operand("u", [b, e]))
    elif kind == 2:
        y = m.let("take", x, i, axis=m.pick(0, 0, 1), mode="clip")
    elif kind == 3:
        y = m.let("mul", m.let("take", x, i, axis=0), m.operand("u", [b, e]))
        y = m.let("segment_sum", y, m.operand("j", [b], "i32"), n=n)
    elif kind == 4:
        y = m.let("at_max", x, i, m.operand("u", [b, e]))
        train = False
    elif kind == 5:
        y = m.let("at_get", x, i)
        y = m.let("matmul", y, m.operand("w", [e, 16]))
    else:
        y = m.let("at_add", m.let("full", dtype="f32", shape=[n], value=0.0), i, m.operand("u", [b]))
        y = m.let("mul", y, m.let("reduce_sum", x, axes=[1]))
    finish(m, train, y, ["x"] + [o.name for o in m.ins if o.name in ("u", "w")])


def asked_for(m, train):
    """Constraints in the middle, and results wanted somewhere."""
    n, k = m.pick(16, 32), m.pick(16, 32, 48)
    x, y = m.operand("x", [n, k]), m.operand("y", [n, k])
    def ask(v, shape):
        return m.let("constraint", v, spec=write_spec(m.spec(shape, m.pick(0, 0.6, 0.9))))
    a = ask(m.let("add", x, y), [n, k]) if m.rng.random() < 0.5 else m.let("mul", x, y)
    kind = m.rng.randrange(5)
    if kind == 0:
        a = ask(m.let("transpose", a, perm=[1, 0]), [k, n])
    elif kind == 1:
        a = ask(m.let("reshape", a, shape=[n * k]), [n * k])
    elif kind == 2:
        a = ask(m.let("reduce_sum", a, axes=[m.pick(0, 1)], keepdims=1), [1, 1])
        a = m.let("add", a, y)
    elif kind == 3:
        a = ask(m.let("softmax", a, axis=m.pick(0, 1)), [n, k])
    else:
        a = m.let("cumsum", ask(a, [n, k]), axis=m.pick(0, 1))
    finish(m, train, a, ["x", "y"])


FORMS = [heads, entropy, language, norms, network, waves, tensors, orders, assembled, gates, algebra, gathers, asked_for]


def form(rng, k, maker):
    m = maker(rng, rng.choice(MESHES))
    f = rng.choice(FORMS)
    f(m, rng.random() < 0.5)
    if math.prod(m.mesh.values()) > 16 or not any(any(i.spec) for i in m.ins):
        return None
    return m.case(f"auto.{f.__name__}_{k}")
