"""The statements of the oracle (tests/oracle/README.md) on JAX 0.10.2, and its file format."""
import os, re, sys
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=16")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec, NamedSharding, Mesh, AxisType
import ml_dtypes
jax.config.update("jax_default_matmul_precision", "highest")

DTYPES = dict(bool=np.bool_, u8=np.uint8, u16=np.uint16, u32=np.uint32, u64=np.uint64, i8=np.int8, i16=np.int16,
              i32=np.int32, i64=np.int64, f16=np.float16, bf16=ml_dtypes.bfloat16, f32=np.float32, f64=np.float64,
              c64=np.complex64, c128=np.complex128)
ORACLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")  # the families
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}

# -- text -------------------------------------------------------------------------------------------------------------
def spec_of(text):
    """P(x,None,(x,y);U=x+y;R=z)"""
    body = text[2:-1]
    parts = body.split(";")
    entries = re.findall(r"\([^)]*\)|[^,()]+", parts[0])
    unreduced, reduced = set(), set()
    for p in parts[1:]:
        (unreduced if p[0] == "U" else reduced).update(p[2:].split("+"))
    def one(e):
        if e == "None": return None
        if e.startswith("("): return tuple(e[1:-1].split(","))
        return e
    return PartitionSpec(*[one(e) for e in entries], unreduced=unreduced, reduced=reduced)

def spec_text(entries, unreduced=(), reduced=()):
    def one(e):
        if e is None or e == (): return "None"
        if isinstance(e, tuple): return e[0] if len(e) == 1 else "(" + ",".join(e) + ")"
        return e
    t = ",".join(one(e) for e in entries)
    if unreduced: t += ";U=" + "+".join(unreduced)
    if reduced: t += ";R=" + "+".join(reduced)
    return "P(" + t + ")"

def value_of(text):
    if text.startswith("P("): return spec_of(text)
    if text.startswith("["):
        names = re.sub(r"[A-Za-z_]\w*", lambda m: "'" + m.group(0) + "'", text)
        return eval(names)
    if re.fullmatch(r"-?\d+", text): return int(text)
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", text): return float(text)
    return text

class Case:
    def __init__(self, id): self.id, self.lines = id, []
    def all(self, key): return [l for l in self.lines if l[0] == key]
    def first(self, key):
        f = self.all(key); return f[0] if f else None

def read_cases(path):
    cases, cur, last = [], None, None
    for ln in open(path, encoding="utf-8"):
        ln = ln.rstrip("\n")
        if ln.startswith("| ") or ln == "|":
            last.append(ln[2:]) if last is not None else None
            continue
        w = ln.split()
        if not w or w[0].startswith("#"): continue
        if w[0] == "case": cur = Case(w[1]); cases.append(cur)
        elif w[0] == "end": cur = None
        else: last = w; cur.lines.append(w)
    return cases

class Arrays:
    def __init__(self, folder):
        p = os.path.join(folder, "arrays.npys")
        self.f = open(p, "rb") if os.path.exists(p) else None
    def get(self, dtype, offset):
        self.f.seek(offset)
        a = np.lib.format.read_array(self.f, allow_pickle=False)
        return a.view(ml_dtypes.bfloat16) if dtype == "bf16" else a

class Writer:
    """Collects cases and arrays and writes a family."""
    def __init__(self, folder, head):
        self.folder, self.text, self.data, self.known = folder, [f"# {head}", "# grammar: ../README.md", ""], bytearray(), {}
        self.n = 0
    def at(self, a):
        import io
        a = np.array(np.asarray(a), order="C", copy=True)
        if a.dtype == ml_dtypes.bfloat16: a = a.view(np.uint16)
        b = io.BytesIO(); np.lib.format.write_array(b, a, version=(1, 0)); b = b.getvalue()
        if b not in self.known:
            self.known[b] = len(self.data); self.data += b
        return f"@{self.known[b]}"
    def shape(self, s): return "[" + ",".join(map(str, s)) + "]"
    def array(self, key, name, a, spec="-", tail=""):
        a = np.asarray(a)
        return f"{key} {name} {NAMES[a.dtype]} {self.shape(a.shape)} {spec} {self.at(a)}" + (" " + tail if tail else "")
    def case(self, id, lines):
        self.text += [f"case {id}", *lines, "end", ""]; self.n += 1
    def close(self):
        os.makedirs(self.folder, exist_ok=True)
        open(os.path.join(self.folder, "cases.txt"), "w", encoding="utf-8").write("\n".join(self.text))
        p = os.path.join(self.folder, "arrays.npys")
        if self.data: open(p, "wb").write(bytes(self.data))
        elif os.path.exists(p): os.remove(p)
        print(self.folder, self.n, "cases", len(self.data), "bytes")

# -- statements -------------------------------------------------------------------------------------------------------
class Env:
    """Where statements run: out shardings need the mesh when its axes are explicit."""
    mesh = None
    manual = False

def _name(f): return lambda env, x, **k: f(*x, **k)
S = {}
for n, f in dict(abs=jnp.abs, acos=jnp.arccos, acosh=jnp.arccosh, add=jnp.add, angle=jnp.angle, asin=jnp.arcsin,
        asinh=jnp.arcsinh, atan=jnp.arctan, atan2=jnp.arctan2, atanh=jnp.arctanh, cbrt=jnp.cbrt, ceil=jnp.ceil,
        clamp=lax.clamp, clip=jnp.clip, clz=lax.clz, complex=lax.complex, conj=jnp.conj, copysign=jnp.copysign,
        cos=jnp.cos, cosh=jnp.cosh, deg2rad=jnp.deg2rad, digamma=lax.digamma, div=jnp.true_divide, elu=jax.nn.elu,
        eq=jnp.equal, erf=lax.erf, erf_inv=lax.erf_inv, erfc=lax.erfc, exp=jnp.exp, exp2=jnp.exp2, expm1=jnp.expm1,
        floor=jnp.floor, floor_divide=jnp.floor_divide, fmax=jnp.fmax, ge=jnp.greater_equal,
        gelu_erf=lambda x: jax.nn.gelu(x, approximate=False), gelu_tanh=jax.nn.gelu, gt=jnp.greater, hypot=jnp.hypot,
        imag=jnp.imag, isfinite=jnp.isfinite, isinf=jnp.isinf, isnan=jnp.isnan, lax_div=lax.div, le=jnp.less_equal,
        leaky_relu=jax.nn.leaky_relu, lgamma=lax.lgamma, log=jnp.log, log10=jnp.log10, log1p=jnp.log1p, log2=jnp.log2,
        log_sigmoid=jax.nn.log_sigmoid, logaddexp=jnp.logaddexp, logical_and=jnp.logical_and,
        logical_not=jnp.logical_not, logical_or=jnp.logical_or, lt=jnp.less, max=jnp.maximum, min=jnp.minimum,
        mod=jnp.mod, mul=jnp.multiply, nan_to_num=jnp.nan_to_num, ne=jnp.not_equal, neg=jnp.negative,
        nextafter=jnp.nextafter, outer=jnp.outer, popcount=lax.population_count, pow=jnp.power, real=jnp.real,
        reciprocal=jnp.reciprocal, relu=jax.nn.relu, relu6=jax.nn.relu6, rem=lax.rem, round=jnp.round,
        rsqrt=lax.rsqrt, select=jnp.where, sigmoid=jax.nn.sigmoid, sign=jnp.sign, signbit=jnp.signbit,
        silu=jax.nn.silu, sin=jnp.sin, sinc=jnp.sinc, sinh=jnp.sinh, softplus=jax.nn.softplus, sqrt=jnp.sqrt,
        square=jnp.square, stop_gradient=lax.stop_gradient, sub=jnp.subtract, tan=jnp.tan, tanh=jnp.tanh,
        trace=jnp.trace, trunc=jnp.trunc, select_n=lax.select_n).items():
    S[n] = _name(f)
for n, f in {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "not": lax.bitwise_not,
             "shl": lax.shift_left, "shr": lax.shift_right_logical, "sar": lax.shift_right_arithmetic,
             "round_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)}.items():
    S[n] = _name(f)
def st(f): S[f.__name__.rstrip("_")] = f; return f
def osh(env, out):
    """An out= attribute: a sharding over the mesh, or nothing."""
    return None if out is None else NamedSharding(env.mesh.abstract_mesh if isinstance(env.mesh, Mesh) else env.mesh, out)
def ax(a): return tuple(a) if len(a) > 1 else a[0]
@st
def argmax(env, x, axis=None): return jnp.argmax(x[0], axis=axis)
@st
def argmin(env, x, axis=None): return jnp.argmin(x[0], axis=axis)
@st
def argsort(env, x, axis=-1, descending=0): return jnp.argsort(x[0], axis=axis, descending=bool(descending), stable=True)
@st
def sort(env, x, axis=-1, descending=0): return jnp.sort(x[0], axis=axis, descending=bool(descending))
@st
def sort_kv(env, x, axis=-1, num_keys=1): return lax.sort(tuple(x), dimension=axis, num_keys=num_keys)
@st
def top_k(env, x, k): return lax.top_k(x[0], k)
def _at(kind):
    def f(env, x, mode=None, out=None):
        kw = {} if mode is None else dict(mode=mode)
        if out is not None: kw["out_sharding"] = osh(env, out)
        i = tuple(x[1:] if kind == "get" else x[1:-1])
        r = x[0].at[i if len(i) > 1 else i[0]]
        return r.get(**kw) if kind == "get" else getattr(r, kind)(x[-1], **kw)
    return f
for k in "get set add mul min max".split(): S["at_" + k] = _at(k)
@st
def bincount(env, x, n): return jnp.bincount(x[0], length=n)
@st
def bitcast(env, x, dtype): return lax.bitcast_convert_type(x[0], DTYPES[dtype])
@st
def broadcast_in_dim(env, x, shape, dims, out=None): return lax.broadcast_in_dim(x[0], shape, dims, **({} if out is None else dict(out_sharding=osh(env, out))))
@st
def broadcast_to(env, x, shape, out=None): return jnp.broadcast_to(x[0], shape, **({} if out is None else dict(out_sharding=osh(env, out))))
@st
def concatenate(env, x, axis=0): return jnp.concatenate(x, axis=axis)
@st
def const(env, x, dtype, value): return jnp.asarray(np.array(value).astype(DTYPES[dtype]))
@st
def constraint(env, x, spec): return lax.with_sharding_constraint(x[0], NamedSharding(env.mesh, spec))
@st
def reshard(env, x, spec): return jax.sharding.reshard(x[0], spec if Env is None else NamedSharding(env.mesh, spec))
@st
def conv(env, x, strides=None, padding=None, lhs_dilation=None, rhs_dilation=None, groups=1):
    n = x[0].ndim - 2
    dn = ("NCH", "OIH", "NCH") if n == 1 else ("NCHW", "OIHW", "NCHW") if n == 2 else ("NCHWD", "OIHWD", "NCHWD")
    return lax.conv_general_dilated(x[0], x[1], strides or [1] * n, [tuple(p) for p in padding] if padding else [(0, 0)] * n,
        lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, feature_group_count=groups, dimension_numbers=dn, precision="highest")
@st
def convert(env, x, dtype): return lax.convert_element_type(x[0], DTYPES[dtype])
@st
def convolve(env, x, mode="full"): return jnp.convolve(x[0], x[1], mode=mode, precision="highest")
for k in "cumlogsumexp cummax cummin cumprod cumsum".split():
    S[k] = (lambda f: lambda env, x, axis=0, reverse=0: f(x[0], axis=axis, reverse=bool(reverse)))(getattr(lax, k))
@st
def diag(env, x, k=0): return jnp.diag(x[0], k)
@st
def diff(env, x, n=1, axis=-1): return jnp.diff(x[0], n=n, axis=axis)
@st
def dot_general(env, x, lc, rc, lb=(), rb=(), pref=None, out=None):
    return lax.dot_general(x[0], x[1], ((lc, rc), (lb, rb)), precision="highest", preferred_element_type=pref and DTYPES[pref],
                           **({} if out is None else dict(out_sharding=osh(env, out))))
@st
def dynamic_slice(env, x, sizes): return lax.dynamic_slice(x[0], x[1:], sizes)
@st
def dynamic_update_slice(env, x): return lax.dynamic_update_slice(x[0], x[1], x[2:])
@st
def einsum(env, x, eq, out=None): return jnp.einsum(eq, *x, precision="highest", **({} if out is None else dict(out_sharding=osh(env, out))))
@st
def expand_dims(env, x, axes): return jnp.expand_dims(x[0], tuple(axes))
@st
def eye(env, x, n, m, k=0, dtype="f32"): return jnp.eye(n, m, k, dtype=DTYPES[dtype])
@st
def full(env, x, dtype, shape, value): return jnp.full(shape, np.array(value).astype(DTYPES[dtype]), dtype=DTYPES[dtype])
@st
def integer_pow(env, x, y): return lax.integer_pow(x[0], y)
@st
def iota(env, x, dtype, shape, dim): return lax.broadcasted_iota(DTYPES[dtype], shape, dim)
@st
def log_softmax(env, x, axis=-1): return jax.nn.log_softmax(x[0], axis=axis)
@st
def softmax(env, x, axis=-1): return jax.nn.softmax(x[0], axis=axis)
@st
def logsumexp(env, x, axes=None, keepdims=0): return jax.nn.logsumexp(x[0], axis=None if axes is None else tuple(axes), keepdims=bool(keepdims))
for k in "all any max min mean prod std sum var".split():
    S["reduce_" + k] = (lambda f: lambda env, x, axes=None, keepdims=0: f(x[0], axis=None if axes is None else tuple(axes), keepdims=bool(keepdims)))(getattr(jnp, k))
@st
def matmul(env, x, out=None): return jnp.matmul(x[0], x[1], precision="highest", **({} if out is None else dict(out_sharding=osh(env, out))))
@st
def one_hot(env, x, n, dtype="f32", axis=-1): return jax.nn.one_hot(x[0], n, dtype=DTYPES[dtype], axis=axis)
@st
def pad(env, x, lo, hi, interior=None): return lax.pad(x[0], x[1], list(zip(lo, hi, interior or [0] * len(lo))))
@st
def repeat(env, x, n, axis=None): return jnp.repeat(x[0], n, axis=axis)
@st
def reshape(env, x, shape, out=None): return jnp.reshape(x[0], shape) if out is None else lax.reshape(x[0], shape, out_sharding=osh(env, out))
@st
def rev(env, x, dims): return lax.rev(x[0], dims)
@st
def roll(env, x, shift, axes): return jnp.roll(x[0], tuple(shift), tuple(axes))
@st
def searchsorted(env, x, side="left"): return jnp.searchsorted(x[0], x[1], side=side)
@st
def segment_sum(env, x, n): return jax.ops.segment_sum(x[0], x[1], num_segments=n)
@st
def slice_(env, x, start, limit, stride=None): return lax.slice(x[0], start, limit, stride)
@st
def squeeze(env, x, axes): return jnp.squeeze(x[0], tuple(axes))
@st
def stack(env, x, axis=0): return jnp.stack(x, axis=axis)
@st
def take(env, x, axis=None, mode=None): return jnp.take(x[0], x[1], axis=axis, mode=mode)
@st
def take_along_axis(env, x, axis=None, mode=None): return jnp.take_along_axis(x[0], x[1], axis=axis, mode=mode)
@st
def tile(env, x, reps): return jnp.tile(x[0], reps)
@st
def transpose(env, x, perm): return jnp.transpose(x[0], perm)
@st
def tril(env, x, k=0): return jnp.tril(x[0], k)
@st
def triu(env, x, k=0): return jnp.triu(x[0], k)
# random
wrap = jax.random.wrap_key_data
@st
def key(env, x, seed): return jax.random.key_data(jax.random.key(seed))
@st
def split(env, x, n): return jax.random.key_data(jax.random.split(wrap(x[0]), n))
@st
def fold_in(env, x, data): return jax.random.key_data(jax.random.fold_in(wrap(x[0]), data))
@st
def random_bits(env, x, shape, dtype): return jax.random.bits(wrap(x[0]), shape, DTYPES[dtype])
@st
def bernoulli(env, x, p, shape): return jax.random.bernoulli(wrap(x[0]), p, shape)
@st
def categorical(env, x, axis=-1, shape=None): return jax.random.categorical(wrap(x[0]), x[1], axis=axis, shape=None if shape is None else tuple(shape))
@st
def choice(env, x, n, shape, replace=1): return jax.random.choice(wrap(x[0]), n, tuple(shape), replace=bool(replace))
for k in "exponential gumbel laplace normal rademacher".split():
    S[k] = (lambda f: lambda env, x, shape, dtype="f32": f(wrap(x[0]), tuple(shape), dtype=DTYPES[dtype]))(getattr(jax.random, k))
@st
def permutation(env, x, n=None, axis=0): return jax.random.permutation(wrap(x[0]), n) if len(x) == 1 else jax.random.permutation(wrap(x[0]), x[1], axis=axis)
@st
def randint(env, x, shape, dtype, lo, hi): return jax.random.randint(wrap(x[0]), tuple(shape), lo, hi, dtype=DTYPES[dtype])
@st
def truncated_normal(env, x, shape, dtype="f32", lo=-2.0, hi=2.0): return jax.random.truncated_normal(wrap(x[0]), lo, hi, tuple(shape), dtype=DTYPES[dtype])
@st
def uniform(env, x, shape, dtype="f32", lo=0.0, hi=1.0): return jax.random.uniform(wrap(x[0]), tuple(shape), dtype=DTYPES[dtype], minval=lo, maxval=hi)
@st
def threefry2x32(env, x):
    from jax.extend.random import threefry_2x32
    return threefry_2x32(x[0], x[1])
# manual
@st
def all_gather(env, x, axes, axis=0, tiled=0): return lax.all_gather(x[0], ax(axes), axis=axis, tiled=bool(tiled))
@st
def all_gather_invariant(env, x, axes, axis=0, tiled=0):
    from jax._src.lax.parallel import all_gather_invariant as f
    return f(x[0], ax(axes), axis=axis, tiled=bool(tiled))
@st
def all_to_all(env, x, axes, split, concat, tiled=0): return lax.all_to_all(x[0], ax(axes), split, concat, tiled=bool(tiled))
@st
def axis_index(env, x, axes): return lax.axis_index(ax(axes))
for k in "pmax pmean pmin psum".split():
    S[k] = (lambda f: lambda env, x, axes: f(x[0], ax(axes)))(getattr(lax, k))
@st
def ppermute(env, x, axes, perm): return lax.ppermute(x[0], ax(axes), perm)
@st
def psum_scatter(env, x, axes, axis=0, tiled=0): return lax.psum_scatter(x[0], ax(axes), scatter_dimension=axis, tiled=bool(tiled))
@st
def pvary(env, x, axes): return lax.pcast(x[0], tuple(axes), to="varying")

def parse_let(w):
    """let DST OP ARG.. KEY=VALUE.. -> (dst names, op, args, attributes)"""
    args, attrs = [], {}
    for t in w[3:]:
        if re.match(r"[a-z_]+=", t):
            k, v = t.split("=", 1); attrs[k] = v if k == "eq" else value_of(v)
        else: args.append(t)
    return w[1].split(","), w[2], args, attrs

class Refused(Exception):
    def __init__(self, at, error): self.at, self.error = at, error; super().__init__(f"at={at}: {error}")

def run_lets(env, lets, values, until=None):
    """Runs statements over a dictionary of values; gradients rerun the statements before the loss."""
    v = dict(values)
    for k, w in enumerate(lets):
        if until is not None and k == until: break
        dst, op, args, attrs = parse_let(w)
        try:
            if op == "grad": r = gradient(env, lets, values, v, k, args[0], attrs["wrt"])
            else: r = S[op](env, [v[a] for a in args], **attrs)
        except Refused: raise
        except Exception as e: raise Refused(w[1], e)
        if len(dst) == 1 and not (isinstance(r, (tuple, list))): r = (r,)
        for n, x in zip(dst, r): v[n] = x
    return v

def gradient(env, lets, values, v, k, loss, wrt):
    def f(some):
        u = dict(values); u.update({n: x for n, x in some.items() if n in values})
        for j, w in enumerate(lets[:k]):
            dst, op, args, attrs = parse_let(w)
            if op == "grad":
                for d in dst: u[d] = v[d]
                continue
            r = S[op](env, [u[a] for a in args], **attrs)
            if len(dst) == 1 and not isinstance(r, (tuple, list)): r = (r,)
            for n, x in zip(dst, r): u[n] = some.get(n, x)
        return u[loss]
    g = jax.grad(f)({n: v[n] for n in wrt})
    return [g[n] for n in wrt]

# -- comparing ----------------------------------------------------------------------------------------------------------
def close(want, got, tol):
    want, got = np.asarray(want), np.asarray(got)
    if want.dtype != got.dtype or want.shape != got.shape: return f"type {got.dtype}{got.shape} not {want.dtype}{want.shape}"
    if want.dtype.kind == "c":
        return close(want.real.copy(), got.real.copy(), tol) or close(want.imag.copy(), got.imag.copy(), tol)
    fl = want.dtype.kind == "f" or want.dtype == ml_dtypes.bfloat16
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not fl: ok = want == got
    elif tol[0] == "exact": ok = (a == b) | (np.isnan(a) & np.isnan(b))
    elif tol[0] == "ulp":
        it = {2: np.int16, 4: np.int32, 8: np.int64}[want.dtype.itemsize]
        def place(x):
            i = np.ascontiguousarray(x).view(it).astype(object) if want.dtype.itemsize == 8 else np.ascontiguousarray(x).view(it).astype(np.int64)
            lo = -(1 << (8 * want.dtype.itemsize - 1)); return np.where(i < 0, lo - i, i)
        with np.errstate(all="ignore"):
            ok = (np.abs(place(want) - place(got)) <= int(tol[1])) & (np.isnan(a) == np.isnan(b)) | (np.isnan(a) & np.isnan(b))
    else:
        with np.errstate(all="ignore"): ok = (np.abs(a - b) <= float(tol[2]) + float(tol[1]) * np.abs(a)) | (a == b) | (np.isnan(a) & np.isnan(b))
    ok = np.asarray(ok)
    if ok.all(): return None
    i = int(np.argmin(ok.reshape(-1)))
    return f"{(~ok).sum()} of {ok.size} differ, first [{i}] want {want.reshape(-1)[i]} got {got.reshape(-1)[i]}"

def mesh_of(case, types=None, devices=None):
    w = case.first("mesh")
    if not w: return None
    names, sizes, ty = [], [], []
    for t in w[1:]:
        n, s = t.split("=")
        names.append(n); sizes.append(int(s.split(":")[0]))
        ty.append(AxisType.Auto if ":auto" in s else (types or AxisType.Explicit))
    n = int(np.prod(sizes))
    d = case.first("devices")
    order = value_of(d[1]) if d else range(n)
    dev = jax.devices()
    return Mesh(np.array([dev[i] for i in order]).reshape(sizes), tuple(names), axis_types=tuple(ty))
