#!/usr/bin/env python3
"""Makes cases of the oracle's family `auto` with JAX 0.10.2: the shardings XLA's partitioner chooses for the results of a program
and the collectives it inserts, with each of its two propagators. Needs JAX; the tests read what it wrote and never run it.

  make_auto_cases.py check CASES > DIFFERENCES         runs recorded cases again and says what differs
  make_auto_cases.py make COUNT SEED CASES > PROGRAMS  writes programs: its own, and those of CASES laid out otherwise
  make_auto_cases.py forms COUNT SEED > PROGRAMS       writes programs of the forms of make_auto_forms.py
  make_auto_cases.py run PROGRAMS > CASES              adds JAX's answers (XLA's messages go to stderr)

The grammar is that of README.md. auto_more/cases.txt holds some of those made with several seeds, among them all whose plans moved
more than XLA's when they were first tried.
"""
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=16 " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"
import ast
import collections
import math
import random
import re
import sys

# -- the text of cases -------------------------------------------------------------------------------------------------

Case = collections.namedtuple("Case", "name mesh ins lets rets answers shapes")
In = collections.namedtuple("In", "name dtype shape spec")
Let = collections.namedtuple("Let", "names op args keys")


def read_cases(path):
    cases, lines = [], []
    for line in open(path):
        words = line.split()
        if not words or line[0] == "#":
            continue
        lines.append(words)
        if words[0] == "end":
            cases.append(read_case(lines))
            lines = []
    return cases


def read_case(lines):
    mesh, ins, lets, rets, answers, shapes, name = {}, [], [], [], [], {}, None
    for w in lines:
        if w[0] == "case":
            name = w[1]
        elif w[0] == "mesh":
            mesh = {k: int(v) for k, v in (x.split("=") for x in w[1:])}
        elif w[0] == "in":
            ins.append(In(w[1], w[2], ast.literal_eval(w[3]), read_spec(w[4])))
        elif w[0] == "let":
            keys = dict(x.split("=", 1) for x in w[3:] if "=" in x)
            lets.append(Let(w[1].split(","), w[2], [x for x in w[3:] if "=" not in x], keys))
        elif w[0] == "ret":
            rets.append(w[1])
            shapes[w[1]] = ast.literal_eval(w[3]) if len(w) > 3 else None
        elif w[0] in ("outspec", "coll", "wire"):
            answers.append(" ".join(w))
    return Case(name, mesh, ins, lets, rets, answers, shapes)


def read_spec(text):
    """P(x,None,(x,y)) -> [("x",), (), ("x", "y")]"""
    if text == "-":
        return []
    text = re.sub(r"\b(?!None\b)([A-Za-z_]\w*)\b", r"'\1'", text[1:])
    value = ast.literal_eval(text[:-1] + ",)" if text != "()" else text)
    return [() if v is None else (v,) if isinstance(v, str) else tuple(v) for v in value]


def write_spec(spec):
    def entry(axes):
        return "None" if not axes else axes[0] if len(axes) == 1 else "(" + ",".join(axes) + ")"
    return "P(" + ",".join(entry(a) for a in spec) + ")"


def write_list(shape):
    return "[" + ",".join(str(s) for s in shape) + "]"


def write_case(case, types, answers):
    yield "case " + case.name
    yield "mesh " + " ".join(f"{k}={v}" for k, v in case.mesh.items())
    for i in case.ins:
        yield f"in {i.name} {i.dtype} {write_list(i.shape)} {write_spec(i.spec)} @-"
    for s in case.lets:
        yield " ".join(["let", ",".join(s.names), s.op, *s.args] + [f"{k}={v}" for k, v in s.keys.items()])
    for name in case.rets:
        yield f"ret {name}" + (f" {types[name][0]} {write_list(types[name][1])}" if types else "")
    yield from answers
    yield "end"


# -- a program as a function of JAX ------------------------------------------------------------------------------------

DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "u32": "uint32", "bool": "bool_"}


def statements():
    import jax
    import jax.numpy as jnp
    from jax import lax
    def ints(k, name, default=None):
        return ast.literal_eval(k[name]) if name in k else default
    def axes_of(k):
        return None if "axes" not in k else tuple(ints(k, "axes"))
    def reduction(f):
        return lambda x, **k: f(x, axis=axes_of(k), keepdims=bool(ints(k, "keepdims", 0)))
    def cumulative(f):
        return lambda x, **k: f(x, axis=ints(k, "axis"), reverse=bool(ints(k, "reverse", 0)))
    def dot_general(x, y, **k):
        dims = ((ints(k, "lc", []), ints(k, "rc", [])), (ints(k, "lb", []), ints(k, "rb", [])))
        return lax.dot_general(x, y, dims)
    def conv(x, w, **k):
        n = x.ndim - 2
        spatial = "HW"[:n] if n < 3 else "DHW"
        return lax.conv_general_dilated(
            x, w, ints(k, "strides"), ints(k, "padding"), lhs_dilation=ints(k, "lhs_dilation", [1] * n),
            rhs_dilation=ints(k, "rhs_dilation", [1] * n), feature_group_count=ints(k, "groups", 1),
            dimension_numbers=("NC" + spatial, "OI" + spatial, "NC" + spatial))
    def slice_(x, **k):
        return lax.slice(x, ints(k, "start"), ints(k, "limit"), ints(k, "stride"))
    def at(method):
        return lambda x, *rest, **k: getattr(x.at[tuple(rest[:-1])], method)(rest[-1], mode=k.get("mode"))
    table = {
        "const": lambda **k: jnp.array(float(k["value"]), DTYPES[k["dtype"]]),
        "full": lambda **k: jnp.full(ints(k, "shape"), float(k["value"]), DTYPES[k["dtype"]]),
        "iota": lambda **k: lax.broadcasted_iota(DTYPES[k["dtype"]], ints(k, "shape"), ints(k, "dim")),
        "convert": lambda x, **k: lax.convert_element_type(x, DTYPES[k["dtype"]]),
        "div": jnp.true_divide, "select": jnp.where, "sub": jnp.subtract, "mul": jnp.multiply, "max": jnp.maximum,
        "min": jnp.minimum, "neg": jnp.negative, "pow": jnp.power, "outer": jnp.outer, "rsqrt": lax.rsqrt,
        "reciprocal": jnp.reciprocal, "matmul": jnp.matmul, "dot_general": dot_general, "conv": conv,
        "eq": jnp.equal, "ge": jnp.greater_equal, "gt": jnp.greater, "le": jnp.less_equal, "lt": jnp.less, "ne": jnp.not_equal,
        "einsum": lambda *a, **k: jnp.einsum(k["eq"], *a),
        "softmax": lambda x, **k: jax.nn.softmax(x, axis=ints(k, "axis", -1)),
        "log_softmax": lambda x, **k: jax.nn.log_softmax(x, axis=ints(k, "axis", -1)),
        "logsumexp": reduction(jax.nn.logsumexp),
        "gelu_tanh": jax.nn.gelu, "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
        "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu, "elu": jax.nn.elu, "softplus": jax.nn.softplus,
        "argmax": lambda x, **k: jnp.argmax(x, axis=ints(k, "axis")),
        "argmin": lambda x, **k: jnp.argmin(x, axis=ints(k, "axis")),
        "sort": lambda x, **k: jnp.sort(x, axis=ints(k, "axis", -1), descending=bool(ints(k, "descending", 0))),
        "argsort": lambda x, **k: jnp.argsort(x, axis=ints(k, "axis", -1)),
        "rev": lambda x, **k: lax.rev(x, ints(k, "dims")),
        "roll": lambda x, **k: jnp.roll(x, tuple(ints(k, "shift")), tuple(ints(k, "axes"))),
        "slice": slice_,
        "transpose": lambda x, **k: jnp.transpose(x, ints(k, "perm")),
        "reshape": lambda x, **k: jnp.reshape(x, ints(k, "shape")),
        "broadcast_to": lambda x, **k: jnp.broadcast_to(x, ints(k, "shape")),
        "broadcast_in_dim": lambda x, **k: lax.broadcast_in_dim(x, ints(k, "shape"), ints(k, "dims")),
        "expand_dims": lambda x, **k: jnp.expand_dims(x, ints(k, "axes")),
        "squeeze": lambda x, **k: jnp.squeeze(x, tuple(ints(k, "axes"))),
        "concatenate": lambda *a, **k: jnp.concatenate(a, axis=ints(k, "axis")),
        "stack": lambda *a, **k: jnp.stack(a, axis=ints(k, "axis")),
        "pad": lambda x, v, **k: lax.pad(x, v, list(zip(ints(k, "lo"), ints(k, "hi"), ints(k, "interior")))),
        "dynamic_slice": lambda x, *i, **k: lax.dynamic_slice(x, i, ints(k, "sizes")),
        "dynamic_update_slice": lambda x, u, *i: lax.dynamic_update_slice(x, u, i),
        "take": lambda x, i, **k: jnp.take(x, i, axis=ints(k, "axis"), mode=k.get("mode")),
        "take_along_axis": lambda x, i, **k: jnp.take_along_axis(x, i, axis=ints(k, "axis")),
        "one_hot": lambda x, **k: jax.nn.one_hot(x, ints(k, "n"), dtype=DTYPES[k.get("dtype", "f32")]),
        "diff": lambda x, **k: jnp.diff(x, n=ints(k, "n", 1), axis=ints(k, "axis", -1)),
        "tile": lambda x, **k: jnp.tile(x, ints(k, "reps")),
        "repeat": lambda x, **k: jnp.repeat(x, ints(k, "n"), axis=ints(k, "axis")),
        "tril": lambda x, **k: jnp.tril(x, ints(k, "k", 0)), "triu": lambda x, **k: jnp.triu(x, ints(k, "k", 0)),
        "top_k": lambda x, **k: lax.top_k(x, ints(k, "k")),
        "integer_pow": lambda x, **k: lax.integer_pow(x, ints(k, "y")),
        "segment_sum": lambda x, i, **k: jax.ops.segment_sum(x, i, ints(k, "n")),
        "stop_gradient": lax.stop_gradient,
        "trace": jnp.trace,
    }
    for name in "add sin cos tanh exp log sqrt square abs log1p expm1 sign floor".split():
        table[name] = getattr(jnp, name)
    for name in "sum max min mean prod std var any all".split():
        table["reduce_" + name] = reduction(getattr(jnp, name))
    for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
        table[name] = cumulative(getattr(lax, name))
    for name, method in (("at_add", "add"), ("at_set", "set"), ("at_max", "max"), ("at_min", "min"), ("at_mul", "multiply")):
        table[name] = at(method)
    table["at_get"] = lambda x, *i, **k: x.at[tuple(i)].get(mode=k.get("mode"))
    return table


def evaluate(case, mesh, operands, table, shared):
    """shared: of a gradient the way forward is worked once with the rest of the program; else, as recorded, again."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec
    def constraint(x, spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*[a or None for a in read_spec(spec)])))
    def run(lets, env, fixed):
        for s in lets:
            if s.op == "grad":
                wrt = s.keys["wrt"][1:-1].split(",")
                before = lets[:lets.index(s)]
                def loss(values):
                    inside = run(before, {**operands, **dict(zip(wrt, values))}, set(wrt))
                    return inside[s.args[0]], inside
                if shared:
                    (_, env), results = jax.value_and_grad(loss, has_aux=True)([env[w] for w in wrt])
                    env = dict(env)
                else:
                    results = jax.grad(lambda v: loss(v)[0])([env[w] for w in wrt])
            elif s.names[0] in fixed:
                continue
            elif s.op == "constraint":
                results = (constraint(env[s.args[0]], s.keys["spec"]),)
            else:
                results = table[s.op](*[env[a] for a in s.args], **s.keys)
                results = results if isinstance(results, (tuple, list)) else (results,)
            env.update(zip(s.names, results))
        return env
    env = run(case.lets, dict(operands), set())
    return [env[r] for r in case.rets]


# -- what XLA makes of it ----------------------------------------------------------------------------------------------

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
         "u64": 8, "f64": 8, "c64": 8, "c128": 16}
KINDS = "all-gather all-reduce all-to-all reduce-scatter collective-permute collective-broadcast".split()


def type_bytes(text):
    return sum(BYTES[t] * math.prod(int(d) for d in dims.split(",") if d)
               for t, dims in re.findall(r"\b([a-z]+\d+|pred)\[([\d,]*)\]", text))


def split_instruction(line):
    """name, type, operation, the rest; None for other lines."""
    m = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = ", line)
    if not m:
        return None
    rest = line[m.end():]
    if rest[0] == "(":
        depth = 0
        for k, c in enumerate(rest):
            depth += (c == "(") - (c == ")")
            if depth == 0:
                break
        kind, rest = rest[:k + 1], rest[k + 2:]
    else:
        kind, rest = rest.split(" ", 1)
    m = re.match(r"([\w\-]+)\(", rest)
    return m and (line.split(" = ")[0].split()[-1].lstrip("%"), kind, m.group(1), rest[m.end():])


def group_size(rest):
    m = re.search(r"replica_groups=\{\{([\d,]*)\}", rest)
    if m:
        return len(m.group(1).split(","))
    m = re.search(r"replica_groups=\[(\d+),(\d+)\]", rest)
    if m:
        return int(m.group(2))
    m = re.search(r"replica_groups=mesh\[([^\]]*)\].*? \{([^}]*)\}", rest)
    # mesh['a'=4,'b'=2] {'a'}, or 'a':(1)2, a part of an axis
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", m.group(1)))
    return math.prod(int(part or sizes[axis]) for axis, part in re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", m.group(2)))


def collectives(text, devices):
    """A Counter of (kind, in, out, group or pairs), and the bytes over links."""
    types, found, wire = {}, collections.Counter(), 0
    text = re.sub(r"/\*.*?\*/", "", text)
    instructions = [x for x in map(split_instruction, text.splitlines()) if x]
    for name, kind, _, _ in instructions:
        types[name] = type_bytes(kind)
    for name, kind, op, rest in instructions:
        op = op[:-6] if op.endswith("-start") else op
        if op not in KINDS:
            continue
        operands = re.findall(r"%?([\w.\-]+)", re.sub(r"\{[^}]*\}|\w+\[[^\]]*\]", "", rest.split(")")[0]))
        into, out = sum(types[o] for o in operands), types[name]
        if op == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", rest).group(1)
            n = sum(a != b for a, b in re.findall(r"\{(\d+),(\d+)\}", pairs))
            found[op, into, out, f"pairs={n}"] += 1
            wire += n * into
            continue
        g = group_size(rest)
        found[op, into, out, f"group={g}"] += 1
        wire += devices // g * {"all-gather": g * (out - into), "all-reduce": 2 * (g - 1) * into,
                                "reduce-scatter": g * (into - out), "all-to-all": (g - 1) * into}[op]
    return found, wire


def spec_of(sharding, mesh, rank):
    from jax.sharding import NamedSharding
    from jax._src.sharding_impls import parse_flatten_op_sharding
    try:
        if isinstance(sharding, NamedSharding):
            spec = sharding.spec
        else:
            parsed = parse_flatten_op_sharding(sharding._to_xla_hlo_sharding(rank), mesh)[0]
            spec = parsed.get_partition_spec() if hasattr(parsed, "get_partition_spec") else parsed
        entries = [() if a is None else (a,) if isinstance(a, str) else tuple(a) for a in spec]
    except Exception:
        return "?"
    return write_spec(entries + [()] * (rank - len(entries)))


def answer(case, table, shared):
    """The lines about XLA, and the types of the results."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    devices = math.prod(case.mesh.values())
    mesh = Mesh(np.array(jax.devices()[:devices]).reshape(tuple(case.mesh.values())), tuple(case.mesh))
    names = [i.name for i in case.ins]
    shapes = [jax.ShapeDtypeStruct(tuple(i.shape), DTYPES[i.dtype]) for i in case.ins]
    places = tuple(NamedSharding(mesh, PartitionSpec(*[a or None for a in i.spec])) for i in case.ins)
    answers, types = [], {}
    for backend in ("shardy", "gspmd"):
        jax.config.update("jax_use_shardy_partitioner", backend == "shardy")
        f = lambda *x: evaluate(case, mesh, dict(zip(names, x)), table, shared)
        with jax.default_matmul_precision("highest"):
            compiled = jax.jit(f, in_shardings=places).lower(*shapes).compile()
        if backend == "shardy":
            short = {v: k for k, v in DTYPES.items()}
            for name, t in zip(case.rets, jax.eval_shape(f, *shapes)):
                types[name] = (short.get(str(t.dtype), str(t.dtype)), t.shape)
        for name, sharding in zip(case.rets, compiled.output_shardings):
            answers.append(f"outspec {backend} {name} {spec_of(sharding, mesh, len(types[name][1]))}")
        found, wire = collectives(compiled.as_text(), devices)
        for (kind, into, out, who), n in sorted(found.items()):
            answers.append(f"coll {backend} {kind} n={n} in={into} out={out} {who}")
        answers.append(f"wire {backend} {wire}")
    return answers, types


# -- programs to ask about ---------------------------------------------------------------------------------------------

MESHES = [{"x": 8}, {"x": 8}, {"x": 4, "y": 2}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}, {"x": 4}, {"x": 2},
          {"x": 4, "y": 4}, {"x": 16}, {"x": 3, "y": 2}, {"x": 4, "y": 2, "z": 2}]


class Maker:
    """A program being written: operands laid out at random, statements with fresh names."""

    def __init__(self, rng, mesh=None):
        self.rng, self.mesh = rng, dict(mesh or rng.choice(MESHES))
        self.ins, self.lets, self.rets, self.n = [], [], [], 0
        self.even = rng.random() < 0.5  # layouts as people write them: batches first, then features

    def spec(self, shape, fill=0.6):
        left, spec = list(self.mesh), [() for _ in shape]
        self.rng.shuffle(left)
        for axis in left:
            if self.rng.random() > fill:
                continue
            fit = [d for d, n in enumerate(shape) if n % (self.mesh[axis] * math.prod(self.mesh[a] for a in spec[d])) == 0 and n > 0]
            free = [d for d in fit if not spec[d]]
            if fit:
                spec[self.rng.choice(free if free and self.rng.random() < 0.85 else fit)] += (axis,)
        return spec

    def operand(self, name, shape, dtype="f32", roles=None):
        """roles: for each dimension the axis it would usually have, by number, or None."""
        spec = None
        if roles is not None and self.even:
            axes = list(self.mesh)
            spec = [(axes[r],) if r is not None and r < len(axes) and n % self.mesh[axes[r]] == 0 else () for r, n in zip(roles, shape)]
            if len({a for s in spec for a in s}) < sum(len(s) for s in spec) or self.rng.random() < 0.15:
                spec = None
        self.ins.append(In(name, dtype, list(shape), self.spec(shape) if spec is None else spec))
        return name

    def let(self, op, *args, names=None, **keys):
        if names is None:
            self.n += 1
            names = [f"t{self.n}"]
        keys = {k: str(v).replace(" ", "") for k, v in keys.items()}
        self.lets.append(Let(names, op, list(args), keys))
        return names[0]

    def number(self, value):
        return self.let("const", dtype="f32", value=value)

    def grad(self, loss, wrt):
        names = ["g_" + w for w in wrt]
        self.let("grad", loss, names=names, wrt="[" + ",".join(wrt) + "]")
        return names

    def pick(self, *things):
        return self.rng.choice(things)

    def case(self, name):
        return Case(name, self.mesh, self.ins, self.lets, list(dict.fromkeys(self.rets)), [], {})

    def descend(self, loss, wrt, keep=0.5):
        """Gradients, as they are or as steps of a training loop."""
        grads = self.grad(loss, wrt)
        if self.rng.random() < keep:
            self.rets += grads
        else:
            lr = self.number(0.01)
            for w, g in zip(wrt, grads):
                self.rets.append(self.let("sub", w, self.let("mul", g, lr)))
        if self.rng.random() < 0.5:
            self.rets.append(loss)


def activation(m, x):
    return m.let(m.pick("relu", "tanh", "sigmoid", "gelu_tanh", "silu", "sin"), x)


def mlp(m, train):
    b, sizes = m.pick(16, 32, 64), [m.pick(16, 32, 64) for _ in range(m.pick(2, 3, 4))]
    x = h = m.operand("x", [b, sizes[0]], roles=[0, None])
    wrt, bias = [], m.rng.random() < 0.4
    for k in range(1, len(sizes)):
        w = m.operand(f"w{k}", [sizes[k - 1], sizes[k]], roles=[None, 1] if k % 2 else [1, None])
        wrt.append(w)
        before, h = h, m.let("matmul", h, w)
        if bias:
            wrt.append(m.operand(f"b{k}", [sizes[k]], roles=[1 if k % 2 else None]))
            h = m.let("add", h, wrt[-1])
        if k < len(sizes) - 1:
            h = activation(m, h)
        if sizes[k] == sizes[k - 1] and m.rng.random() < 0.3:
            h = m.let("add", h, before)
    if not train:
        m.rets.append(h)
        return
    y = m.operand("y", [b, sizes[-1]], roles=[0, None])
    if m.rng.random() < 0.5:
        loss = m.let("reduce_mean", m.let("square", m.let("sub", h, y)))
    else:
        p = m.let("log_softmax", h, axis=-1)
        loss = m.let("neg", m.let("reduce_mean", m.let("reduce_sum", m.let("mul", p, y), axes=[1])))
    if m.rng.random() < 0.2:
        wrt.append(x)
    m.descend(loss, wrt)


def attention(m, train):
    b, t, h, d = m.pick(4, 8), m.pick(16, 32), m.pick(2, 4, 8), m.pick(8, 16)
    e = m.pick(16, 32)
    wrt = []
    if m.rng.random() < 0.5:
        roles = m.pick([0, None, 1, None], [0, None, 1, None], [None, 0, None, None])
        q, k, v = (m.operand(n, [b, t, h, d], roles=roles) for n in "qkv")
        wrt = ["q", "k", "v"]
    else:
        x = m.operand("x", [b, t, e], roles=[0, None, None])
        if m.rng.random() < 0.4:
            x = norm_of(m, x, e, 2)
        wrt = ["wq", "wk", "wv"]
        q, k, v = (m.let("einsum", x, m.operand(w, [e, h, d], roles=[None, 1, None]), eq="bte,ehd->bthd") for w in wrt)
    s = m.let("mul", m.let("einsum", q, k, eq="bthd,bshd->bhts"), m.number(0.25))
    o = m.let("einsum", m.let("softmax", s, axis=-1), v, eq="bhts,bshd->bthd")
    if wrt[0] == "wq" or m.rng.random() < 0.3:
        wrt.append(m.operand("wo", [h, d, e], roles=[1, None, None]))
        o = m.let("einsum", o, "wo", eq="bthd,hde->bte")
    if train:
        m.descend(m.let(m.pick("reduce_sum", "reduce_mean"), m.let("square", o)), wrt, 0.8)
    else:
        m.rets.append(o)


def norm_of(m, x, n, axis, gain=None):
    kind = m.pick("layer", "rms", "mean")
    if kind == "rms":
        v = m.let("reduce_mean", m.let("square", x), axes=[axis], keepdims=1)
        y = m.let("mul", x, m.let("rsqrt", m.let("add", v, m.number(1e-05))))
    else:
        c = m.let("sub", x, m.let("reduce_mean", x, axes=[axis], keepdims=1))
        v = m.let("reduce_var", x, axes=[axis], keepdims=1) if kind == "layer" else m.let(
            "reduce_mean", m.let("mul", c, c), axes=[axis], keepdims=1)
        y = m.let("mul", c, m.let("rsqrt", m.let("add", v, m.number(1e-05))))
    return m.let("mul", y, gain) if gain else y


def norm(m, train):
    b, e = m.pick(16, 32), m.pick(16, 64)
    x = m.operand("x", [b, e], roles=[0, 1])
    axis = m.pick(0, 1, 1)
    g = m.operand("g", [e], roles=[1])
    y = norm_of(m, x, e, axis, g)
    if m.rng.random() < 0.5:
        y = m.let("add", y, m.operand("c", [e], roles=[1]))
    if m.rng.random() < 0.4:
        y = m.let("matmul", y, m.operand("w", [e, 32], roles=[1, None]))
    if train:
        m.descend(m.let("reduce_sum", m.let("square", y)), ["g", "x"][:m.pick(1, 2)])
    else:
        m.rets.append(y)


def convolution(m, train):
    n, c, o = m.pick(2, 4, 8), m.pick(4, 8), m.pick(4, 8)
    flat = m.rng.random() < 0.5
    size = [m.pick(32, 64, 128)] if flat else [m.pick(16, 32), m.pick(16, 32)]
    kernel = m.pick(1, 3, 3, 5)
    x = m.operand("x", [n, c] + size, roles=m.pick([0, None], [None, None]) + [m.pick(0, 1, None)] + [None] * (len(size) - 1))
    w = m.operand("w", [o, c] + [kernel] * len(size), roles=[1, None] + [None] * len(size))
    half = kernel // 2 if m.rng.random() < 0.8 else 0
    y = m.let("conv", x, w, strides=[m.pick(1, 1, 1, 2)] * len(size), padding=[[half, half]] * len(size))
    wrt = ["w"]
    if m.rng.random() < 0.4:
        y = activation(m, y)
        wrt.append(m.operand("w2", [c, o] + [3] * len(size), roles=[None, 1] + [None] * len(size)))
        y = m.let("conv", y, "w2", strides=[1] * len(size), padding=[[1, 1]] * len(size))
    if train:
        m.descend(m.let("reduce_sum", m.let("square", y)), wrt, 0.8)
    else:
        m.rets.append(y)


def scan(m, train):
    shape = m.pick([64, 32], [128], [16, 32, 8], [512])
    x = m.operand("x", shape)
    axis = m.rng.randrange(len(shape))
    y = m.let(m.pick("cumsum", "cumsum", "cumsum", "cummax", "cumprod", "cummin", "cumlogsumexp"), x, axis=axis,
              **({"reverse": 1} if m.rng.random() < 0.3 else {}))
    if m.rng.random() < 0.5:
        y = m.let(m.pick("mul", "add", "sub"), y, m.pick("x", m.operand("z", shape)))
    if m.rng.random() < 0.3:
        y = m.let("cumsum", y, axis=m.rng.randrange(len(shape)))
    m.rets.append(y)


def pieces(m, train):
    """Slices, concatenations, pads, rolls, differences."""
    shape = m.pick([64], [64, 32], [32, 64], [128], [16, 16, 16])
    x = m.operand("x", shape)
    y = m.operand("y", shape)
    d = m.rng.randrange(len(shape))
    n = shape[d]
    kind = m.rng.randrange(9)
    def cut(v, lo, hi, stride=1):
        keys = {"start": [lo if e == d else 0 for e in range(len(shape))], "limit": [hi if e == d else s for e, s in enumerate(shape)]}
        if stride != 1:
            keys["stride"] = [stride if e == d else 1 for e in range(len(shape))]
        return m.let("slice", v, **keys)
    if kind == 0:
        a = m.let("concatenate", x, y, axis=d)
    elif kind == 1:
        a = m.let("stack", x, y, axis=m.rng.randrange(len(shape) + 1))
    elif kind == 2:
        k = m.pick(1, 2, 5, n // 2)
        a = m.let("add", cut(x, 0, n - k), cut(m.pick("x", "y"), k, n))
    elif kind == 3:
        a = m.let("sub", x, m.let("roll", m.pick("x", "y"), shift=[m.pick(1, -1, 3, n // 2)], axes=[d]))
    elif kind == 4:
        k = m.pick(1, 4, n // 4)
        z = m.number(0.0)
        lo, hi = m.pick((k, 0), (0, k), (k, k))
        a = m.let("pad", x, z, lo=[lo if e == d else 0 for e in range(len(shape))], hi=[hi if e == d else 0 for e in range(len(shape))],
                  interior=[0] * len(shape))
    elif kind == 5:
        a = m.let("concatenate", cut(x, n // 2, n), cut(x, 0, n // 2), axis=d)
        if m.rng.random() < 0.5:
            a = m.let("add", a, y)
    elif kind == 6:
        a = m.let("diff", x, axis=d, n=m.pick(1, 2))
    elif kind == 7:
        a = m.let("mul", m.let("rev", x, dims=[d]), y)
    else:
        a = m.let("concatenate", m.let("neg", cut(x, n // 2, n)), cut(m.pick("x", "y"), 0, n // 2), axis=d)
        if m.rng.random() < 0.5:
            a = m.let("mul", a, y)
    if m.rng.random() < 0.3:
        a = m.let(m.pick("reduce_sum", "reduce_max"), a, axes=[m.rng.randrange(len(shape))])
    m.rets.append(a)


def table(m, train):
    v, e, b, t = m.pick(64, 128), m.pick(16, 32), m.pick(8, 16, 32), m.pick(4, 8)
    table_ = m.operand("e", [v, e], roles=m.pick([1, None], [None, 1], [0, None]))
    i = m.operand("i", [b, t], "i32", roles=[0, None])
    kind = m.rng.randrange(5)
    if kind == 0:
        m.rets.append(m.let("take", table_, i, axis=0))
    elif kind == 1:
        h = m.let("take", table_, i, axis=0)
        m.rets.append(m.let("matmul", h, m.operand("w", [e, 32], roles=[None, 1])))
    elif kind == 2:
        u = m.operand("u", [b, t, e], roles=[0, None, None])
        m.rets.append(m.let("at_add", table_, i, u))
    elif kind == 3:
        h = m.let("take", table_, i, axis=0)
        loss = m.let("reduce_sum", m.let("square", m.let("matmul", h, m.operand("w", [e, 32], roles=[None, 1]))))
        m.descend(loss, ["e", "w"])
    else:
        o = m.let("one_hot", i, n=v, dtype="f32")
        m.rets.append(m.let("matmul", o, table_))


def shapes(m, train):
    """Reshapes and transposes around work."""
    kind = m.rng.randrange(6)
    if kind == 0:
        x = m.operand("x", [m.pick(8, 16), m.pick(16, 32)])
        s = m.ins[0].shape
        y = m.let("reshape", x, shape=[s[0] * s[1]])
        y = activation(m, y)
        if m.rng.random() < 0.5:
            y = m.let("reshape", y, shape=[s[0] * s[1] // 8, 8])
        m.rets.append(y)
    elif kind == 1:
        x = m.operand("x", [m.pick(128, 512)])
        n = m.ins[0].shape[0]
        y = m.let("reshape", x, shape=[n // 16, 16])
        m.rets.append(m.let("reduce_sum", y, axes=[m.pick(0, 1)]) if m.rng.random() < 0.5 else m.let("transpose", y, perm=[1, 0]))
    elif kind == 2:
        b, t, h, d = m.pick(4, 8), 16, m.pick(2, 4, 8), 8
        x = m.operand("x", [b, t, h * d], roles=[0, None, 1])
        y = m.let("transpose", m.let("reshape", x, shape=[b, t, h, d]), perm=[0, 2, 1, 3])
        if m.rng.random() < 0.5:
            y = m.let("softmax", y, axis=-1)
        if m.rng.random() < 0.6:
            y = m.let("reshape", m.let("transpose", y, perm=[0, 2, 1, 3]), shape=[b, t, h * d])
        m.rets.append(y)
    elif kind == 3:
        n = m.pick(32, 64)
        x = m.operand("x", [n, n])
        t = m.let("transpose", x, perm=[1, 0])
        m.rets.append(m.let(m.pick("add", "matmul", "mul"), *m.pick((x, t), (t, x))))
    elif kind == 4:
        b, t, e, o = m.pick(8, 16), 8, 32, m.pick(32, 64)
        x = m.operand("x", [b, t, e], roles=[0, None, None])
        w = m.operand("w", [e, o], roles=[None, 1])
        y = m.let("matmul", m.let("reshape", x, shape=[b * t, e]), w)
        m.rets.append(m.let("reshape", y, shape=[b, t, o]))
    else:
        x = m.operand("x", [m.pick(16, 32), 16, 8])
        s = m.ins[0].shape
        perm = m.pick([2, 0, 1], [1, 2, 0], [0, 2, 1], [2, 1, 0])
        y = m.let("transpose", x, perm=perm)
        z = m.operand("z", [s[p] for p in perm])
        m.rets.append(m.let("add", y, z))


def reductions(m, train):
    shape = m.pick([32, 64], [16, 32, 8], [64, 16])
    x = m.operand("x", shape)
    kind = m.rng.randrange(7)
    d = m.rng.randrange(len(shape))
    if kind == 0:
        m.rets.append(m.let(m.pick("softmax", "log_softmax"), x, axis=d))
    elif kind == 1:
        m.rets.append(m.let("logsumexp", x, axes=[d]))
    elif kind == 2:
        m.rets.append(m.let(m.pick("argmax", "argmin"), x, axis=d))
    elif kind == 3:
        m.rets.append(m.let("reduce_" + m.pick("sum", "max", "mean", "var", "std", "prod"), x, axes=[d]))
        if m.rng.random() < 0.4:
            m.rets.append(m.let("reduce_" + m.pick("sum", "min", "mean"), x, axes=[m.rng.randrange(len(shape))]))
    elif kind == 4:
        y = m.let("sub", x, m.let("reduce_max", x, axes=[d], keepdims=1))
        y = m.let("div", y, m.let("reduce_sum", m.let("abs", y), axes=[m.rng.randrange(len(shape))], keepdims=1))
        m.rets.append(y)
    elif kind == 5:
        s = m.let("reduce_sum", x)
        m.rets.append(m.let("add", x, s))
    else:
        m.rets.append(m.let(m.pick("sort", "argsort"), x, axis=d))


def products(m, train):
    kind = m.rng.randrange(9)
    n, k, p = m.pick(32, 64), m.pick(32, 64), m.pick(16, 32, 64)
    if kind == 0:
        a, b = m.operand("a", [n, k]), m.operand("b", [k, p])
        m.rets.append(m.let("matmul", a, b))
    elif kind == 1:
        a, b, c = m.operand("a", [n, k]), m.operand("b", [k, p]), m.operand("c", [p, n])
        y = m.let("matmul", m.let("matmul", a, b), c) if m.rng.random() < 0.5 else m.let("matmul", a, m.let("matmul", b, c))
        m.rets.append(y)
    elif kind == 2:
        a = m.operand("a", [n, k])
        t = m.let("transpose", a, perm=[1, 0])
        m.rets.append(m.let("matmul", *m.pick((a, t), (t, a))))
    elif kind == 3:
        a, b = m.operand("a", [8, n, k]), m.operand("b", [8, k, p])
        m.rets.append(m.let("einsum", a, b, eq=m.pick("bij,bjk->bik", "bij,bjk->ik", "bij,bjk->kbi", "bij,bjk->bk")))
    elif kind == 4:
        a, b = m.operand("a", [n, k]), m.operand("b", [k, p])
        z = m.let("matmul", a, b)
        m.rets.append(m.let("constraint", z, spec=write_spec(m.spec([n, p]))))
    elif kind == 5:
        a, x = m.operand("a", [n, n]), m.operand("x", [n])
        for _ in range(m.pick(1, 2, 3)):
            y = m.let("matmul", a, x)
            x = m.let("div", y, m.let("sqrt", m.let("reduce_sum", m.let("square", y))))
        m.rets.append(x)
    elif kind == 6:
        a, b = m.operand("a", [n, k]), m.operand("b", [k, p])
        c = m.operand("c", [n, p])
        m.rets.append(m.let("add", m.let("matmul", a, b), c))
    elif kind == 7:
        x, w, y = m.operand("x", [64, 16], roles=[0, None]), m.operand("w", [16], roles=[None]), m.operand("y", [64], roles=[0])
        r = m.let("sub", m.let("matmul", x, w), y)
        g = m.let("matmul", m.let("transpose", x, perm=[1, 0]), r) if m.rng.random() < 0.5 else m.let("matmul", r, x)
        m.rets.append(m.let("sub", w, m.let("mul", g, m.number(0.1))))
    else:
        x, c = m.operand("x", [64, 16], roles=[0, None]), m.operand("c", [8, 16], roles=[1, None])
        xx = m.let("reduce_sum", m.let("square", x), axes=[1], keepdims=1)
        cc = m.let("reduce_sum", m.let("square", c), axes=[1])
        d = m.let("sub", m.let("add", xx, cc), m.let("mul", m.let("matmul", x, m.let("transpose", c, perm=[1, 0])), m.number(2.0)))
        a = m.let("one_hot", m.let("argmin", d, axis=1), n=8, dtype="f32")
        s = m.let("matmul", m.let("transpose", a, perm=[1, 0]), x)
        m.rets.append(m.let("div", s, m.let("add", m.let("reduce_sum", m.let("transpose", a, perm=[1, 0]), axes=[1], keepdims=1), m.number(1.0))))


def stencil(m, train):
    steps = m.pick(1, 1, 2, 3)
    two = m.rng.random() < 0.5
    shape = [m.pick(32, 64), m.pick(32, 64)] if two else [m.pick(64, 104, 256)]
    u = m.operand("u", shape)
    kind, c = m.pick("roll", "pad", "update", "cat"), m.number(0.25)
    one = m.let("const", dtype="i32", value=1)
    zero = m.number(0.0)
    r = len(shape)
    for _ in range(steps):
        if kind == "roll":
            s = None
            for d in range(r):
                p = m.let("add", m.let("roll", u, shift=[1], axes=[d]), m.let("roll", u, shift=[-1], axes=[d]))
                s = p if s is None else m.let("add", s, p)
            u = m.let("add", u, m.let("mul", s, c))
            continue
        if kind == "pad":
            p, inner = m.let("pad", u, zero, lo=[1] * r, hi=[1] * r, interior=[0] * r), list(shape)
        else:
            p, inner = u, [n - 2 for n in shape]
        def shifted(d, k):
            start = [1 + (k if e == d else 0) for e in range(r)]
            return m.let("slice", p, start=start, limit=[a + n for a, n in zip(start, inner)])
        s = None
        for d in range(r):
            q = m.let("add", shifted(d, -1), shifted(d, 1))
            s = q if s is None else m.let("add", s, q)
        v = m.let("add", m.let("mul", s, c), shifted(0, 0))
        if kind == "pad":
            u = v
        elif kind == "update" or two:
            u = m.let("dynamic_update_slice", u, v, *[one] * r)
        else:
            n = shape[0]
            u = m.let("concatenate", m.let("slice", u, start=[0], limit=[1]), v, m.let("slice", u, start=[n - 1], limit=[n]), axis=0)
    m.rets.append(u)


def recurrent(m, train):
    b, e, h, steps = m.pick(16, 32), 16, m.pick(16, 32), m.pick(2, 3)
    x = m.operand("x", [steps, b, e], roles=[None, 0, None])
    wx, wh = m.operand("wx", [e, h], roles=[None, 1]), m.operand("wh", [h, h], roles=[1, None])
    s = m.operand("s", [b, h], roles=[0, 1])
    for t in range(steps):
        xt = m.let("reshape", m.let("slice", x, start=[t, 0, 0], limit=[t + 1, b, e]), shape=[b, e])
        s = m.let("tanh", m.let("add", m.let("matmul", xt, wx), m.let("matmul", s, wh)))
    if train:
        m.descend(m.let("reduce_mean", m.let("square", s)), ["wx", "wh"])
    else:
        m.rets.append(s)


def experts(m, train):
    b, e, n, f = m.pick(32, 64), 16, 8, m.pick(16, 32)
    x = m.operand("x", [b, e], roles=[0, None])
    g = m.operand("g", [e, n], roles=[None, None])
    w = m.operand("w", [n, e, f], roles=[m.pick(0, 1), None, None])
    p = m.let("softmax", m.let("matmul", x, g), axis=-1)
    y = m.let("einsum", x, w, eq="be,nef->bnf")
    y = m.let("einsum", p, y, eq="bn,bnf->bf")
    if train:
        m.descend(m.let("reduce_sum", m.let("square", y)), ["g", "w"])
    else:
        m.rets.append(y)


def windows(m, train):
    """Parts read and written at indexes."""
    shape = m.pick([64, 32], [128], [32, 32])
    x = m.operand("x", shape)
    d = m.rng.randrange(len(shape))
    size = [m.pick(1, 4, n // 2) if e == d else n for e, n in enumerate(shape)]
    start = [m.let("const", dtype="i32", value=m.pick(0, 3, 8)) if e == d else m.let("const", dtype="i32", value=0)
             for e in range(len(shape))]
    if m.rng.random() < 0.4:
        start[d] = m.operand("i", [], "i32")
    if m.rng.random() < 0.5:
        m.rets.append(m.let("dynamic_slice", x, *start, sizes=size))
    else:
        m.rets.append(m.let("dynamic_update_slice", x, m.operand("u", size), *start))


def graphs(m, train):
    """Elementwise work on operands of fewer dimensions, reductions, transposes and products, all mixed."""
    n, k = m.pick(16, 32), m.pick(32, 64)
    values = [(m.operand("a", [n, k]), (n, k)), (m.operand("b", [n, k]), (n, k)), (m.operand("v", [k]), (k,)), (m.operand("w", [n, 1]), (n, 1))]
    for _ in range(m.rng.randrange(3, 8)):
        x, s = m.rng.choice(values)
        kind = m.rng.randrange(6)
        fit = [y for y in values if len(s) == 2 and s[1] > 1 and (y[1] == s or y[1] in ((s[1],), (s[0], 1)))]
        if kind <= 1 and fit:
            values.append((m.let(m.pick("add", "mul", "sub", "max"), x, m.rng.choice(fit)[0]), s))
        elif kind == 2:
            values.append((activation(m, x), s))
        elif kind == 3 and len(s) == 2 and s[1] > 1:
            values.append((m.let("transpose", x, perm=[1, 0]), s[::-1]))
        elif kind == 4 and len(s) == 2 and s[1] > 1:
            f = m.let(m.pick("reduce_sum", "reduce_max", "reduce_mean"), x, axes=[m.pick(0, 1)], **m.pick({}, {}))
            axis = ast.literal_eval(m.lets[-1].keys["axes"])[0]
            values.append((f, (s[1 - axis],)))
        elif kind == 5 and len(s) == 2 and s[1] > 1:
            fit = [y for y in values if len(y[1]) == 2 and y[1][0] == s[1] and y[1][1] > 1]
            if fit:
                y = m.rng.choice(fit)
                values.append((m.let("matmul", x, y[0]), (s[0], y[1][1])))
    m.rets.append(values[-1][0])
    if len(values) > 5 and m.rng.random() < 0.3:
        m.rets.append(values[-2][0])


def deep(m, train):
    """More layers, with what is kept between them: residuals, norms, places that somebody asks for."""
    b, e, f = m.pick(8, 16, 32, 48), m.pick(16, 24, 32), m.pick(32, 48, 64)
    x = h = m.operand("x", [b, e], roles=[0, None])
    wrt, asked = [], m.rng.random() < 0.4
    for k in range(m.pick(2, 3, 4)):
        u, d = m.operand(f"u{k}", [e, f], roles=[None, 1]), m.operand(f"d{k}", [f, e], roles=[1, None])
        wrt += [u, d]
        y = norm_of(m, h, e, 1) if m.rng.random() < 0.4 else h
        y = activation(m, m.let("matmul", y, u))
        if asked and m.rng.random() < 0.5:
            y = m.let("constraint", y, spec=write_spec(m.spec([b, f])))
        y = m.let("matmul", y, d)
        h = m.let("add", h, y) if m.rng.random() < 0.6 else y
        if asked and m.rng.random() < 0.3:
            h = m.let("constraint", h, spec=write_spec(m.spec([b, e])))
    if train:
        m.descend(m.let("reduce_mean", m.let("square", h)), wrt, 0.3)
    else:
        m.rets.append(h)


def transformer(m, train):
    b, t, h, d, e, f = m.pick(2, 4, 8), m.pick(8, 16), m.pick(2, 4), m.pick(4, 8), m.pick(16, 32), m.pick(32, 64)
    x = m.operand("x", [b, t, e], roles=m.pick([0, None, None], [0, 1, None], [None, 0, None]))
    y, wrt = norm_of(m, x, e, 2), ["wq", "wk", "wv", "wo", "w1", "w2"]
    q, k, v = (m.let("einsum", y, m.operand(w, [e, h, d], roles=[None, 1, None]), eq="bte,ehd->bthd") for w in wrt[:3])
    s = m.let("softmax", m.let("mul", m.let("einsum", q, k, eq="bthd,bshd->bhts"), m.number(0.25)), axis=-1)
    o = m.let("einsum", s, v, eq="bhts,bshd->bthd")
    x = m.let("add", x, m.let("einsum", o, m.operand("wo", [h, d, e], roles=[1, None, None]), eq="bthd,hde->bte"))
    y = activation(m, m.let("matmul", norm_of(m, x, e, 2), m.operand("w1", [e, f], roles=[None, 1])))
    x = m.let("add", x, m.let("matmul", y, m.operand("w2", [f, e], roles=[1, None])))
    if train:
        m.descend(m.let("reduce_mean", m.let("square", x)), m.rng.sample(wrt, m.pick(2, 4, 6)), 0.5)
    else:
        m.rets.append(x)


def routed(m, train):
    """One expert for each row, by a mask: x is given to it and taken back by products."""
    b, e, n, f = m.pick(16, 32), 16, m.pick(4, 8), m.pick(16, 32)
    x, g = m.operand("x", [b, e], roles=[0, None]), m.operand("g", [e, n], roles=[None, None])
    w = m.operand("w", [n, e, f], roles=[m.pick(0, 1), None, None])
    p = m.let("softmax", m.let("matmul", x, g), axis=-1)
    mask = m.let("one_hot", m.let("argmax", p, axis=1), n=n, dtype="f32")
    gate = m.let("mul", mask, p)
    given = m.let("einsum", mask, x, eq="bn,be->nbe")
    y = m.let("einsum", given, w, eq="nbe,nef->nbf")
    if m.rng.random() < 0.5:
        y = activation(m, y)
    y = m.let("einsum", gate, y, eq="bn,nbf->bf")
    if train:
        m.descend(m.let("reduce_mean", m.let("square", y)), ["w", "g"][:m.pick(1, 2)])
    else:
        m.rets.append(y)


def asked(m, train):
    """Products whose results somebody asks for somewhere, whole among other places."""
    def ask(v, shape):
        return m.let("constraint", v, spec=write_spec(m.spec(shape, m.pick(0, 0, 0.6))))
    n, k, p, q = m.pick(24, 32, 64), m.pick(16, 32, 96), m.pick(16, 48, 64), m.pick(16, 32)
    a, b = m.operand("a", [n, k]), m.operand("b", [k, p])
    kind, z = m.rng.randrange(5), m.let("matmul", a, b)
    if kind == 0:
        z = ask(z, [n, p])
    elif kind == 1:
        z = ask(activation(m, z), [n, p])
    elif kind == 2:
        z = ask(m.let("matmul", z, m.operand("c", [p, q])), [n, q])
    elif kind == 3:
        z = m.let("matmul", ask(z, [n, p]), m.operand("c", [p, q]))
    else:
        m.rets.append(ask(m.let("matmul", a, m.operand("c", [k, q])), [n, q]))
    if train and kind != 4:
        m.descend(m.let("reduce_sum", m.let("square", z)), ["a", "b"][:m.pick(1, 2)], 0.8)
    else:
        m.rets.append(z)


FAMILIES = [mlp, attention, norm, convolution, scan, pieces, table, shapes, reductions, products, stencil, recurrent, experts, windows,
            graphs, deep, transformer, routed, asked]


def made(rng, k):
    m = Maker(rng)
    family = rng.choice(FAMILIES + [mlp, attention, products, pieces, asked])
    family(m, rng.random() < 0.5)
    return m.case(f"auto.{family.__name__}_{k}") if m.rets else None


def relaid(rng, case, k):
    """A recorded program with other layouts on another mesh."""
    m = Maker(rng)
    axes = dict(zip(case.mesh, rng.sample(list(m.mesh), min(len(m.mesh), len(case.mesh)))))
    keep = rng.random() < 0.5
    def spec(old, shape):
        new = [tuple(axes[a] for a in s if a in axes) for s in old] + [()] * (len(shape) - len(old))
        fits = all(n % math.prod(m.mesh[a] for a in s) == 0 for n, s in zip(shape, new))
        return new if keep and fits and rng.random() < 0.7 else m.spec(shape)
    big = any(math.prod(i.shape) > 1 << 18 for i in case.ins)
    if big:
        return None
    ins = [i._replace(spec=spec(i.spec, i.shape)) for i in case.ins]
    lets = []
    for s in case.lets:
        if s.op == "constraint":
            old = read_spec(s.keys["spec"])
            s = s._replace(keys={"spec": write_spec(spec(old, case.shapes[s.names[0]]))})
        lets.append(s)
    return case._replace(name=f"{case.name}_{k}", mesh=m.mesh, ins=ins, lets=lets, answers=[])


def make(count, seed, public):
    rng = random.Random(seed)
    recorded = read_cases(public)
    for k in range(count):
        case = relaid(rng, rng.choice(recorded), k) if k % 3 == 0 else made(rng, k)
        if case:
            print("\n".join(write_case(case, None, [])), end="\n\n")


def forms(count, seed):
    import make_auto_forms
    rng = random.Random(seed)
    for k in range(count):
        case = make_auto_forms.form(rng, k, Maker)
        if case:
            print("\n".join(write_case(case, None, [])), end="\n\n")


# -- commands ----------------------------------------------------------------------------------------------------------

def check(path):
    table, wrong = statements(), 0
    for case in read_cases(path):
        try:
            got, _ = answer(case, table, False)
        except Exception as e:
            print(case.name, "FAILS", repr(e)[:300])
            wrong += 1
            continue
        if sorted(got) != sorted(case.answers):
            wrong += 1
            print(case.name)
            for line in sorted(set(case.answers) - set(got)):
                print("  recorded", line)
            for line in sorted(set(got) - set(case.answers)):
                print("  now     ", line)
    print(wrong, "cases differ")


def run(path, out=sys.stdout):
    table = statements()
    for case in read_cases(path):
        try:
            answers, types = answer(case, table, True)
        except Exception as e:
            print(case.name, repr(e).split("\n")[0][:200], file=sys.stderr)
            continue
        print("\n".join(write_case(case, types, answers)), end="\n\n", file=out, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2])
    elif sys.argv[1] == "forms":
        forms(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "run":
        run(sys.argv[2])
    elif sys.argv[1] == "make":
        make(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
