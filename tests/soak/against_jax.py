#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks JAX for what the reference of the random programs computes, operation by operation.

    soak -j SEED COUNT | against_jax.py        exit status 1: some result differs

Reads the lines that tests/soak/journal.c writes: an operation with operands, parameters and result. Each kind of operation is called
as a program for JAX would call it. Types and shapes must be equal, values too, bit for bit where the journal says that no rounding
is involved. `make soak-jax` installs JAX and runs it.
"""
import collections
import json
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

warnings.filterwarnings("ignore")
jax.config.update("jax_platforms", "cpu")

AS_IN_NUMPY = """abs sign square floor ceil logical_not bitwise_not real imag conj sin cos tanh exp sqrt log1p add mul eq ne lt le gt ge
logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor fmod where outer vdot dot matmul""".split()
NAMES = {"neg": jnp.negative, "sub": jnp.subtract, "mul": jnp.multiply, "eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less,
         "le": jnp.less_equal, "gt": jnp.greater, "ge": jnp.greater_equal, "max2": jnp.maximum, "min2": jnp.minimum,
         "div": jnp.true_divide, "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "complex": lambda x, y: lax.complex(*jnp.broadcast_arrays(*[jnp.asarray(a, jnp.result_type(x, y)) for a in (x, y)])),
         "stop_gradient": lax.stop_gradient, "constraint": lambda x: x, "reshard": lambda x: x, "pvary": lambda x: x}
NAMES.update({name: getattr(jnp, name) for name in AS_IN_NUMPY if name not in NAMES})
REDUCTIONS = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min, "prod": jnp.prod, "mean": jnp.mean, "any": jnp.any, "all": jnp.all,
              "argmax": jnp.argmax, "argmin": jnp.argmin}
RUNNING = {"cumsum": lax.cumsum, "cummax": lax.cummax, "cummin": lax.cummin, "cumprod": lax.cumprod}
MODES = {"edge": "edge", "reflect": "reflect", "symmetric": "symmetric", "wrap": "wrap"}


def array_of(a):
    dtype = jnp.dtype(a["dtype"])
    values = np.array(a["values"], dtype=np.float64)
    if np.issubdtype(dtype, np.complexfloating):
        values = values[0::2] + 1j * values[1::2]
    return jnp.asarray(values.astype(dtype).reshape(a["shape"]))


def slices_of(text):
    def part(words):
        return int(words[0]) if len(words) == 1 else slice(*[int(w) if w.strip() else None for w in words])

    return tuple(part(piece.split(":")) for piece in text.split(",")) if text else ()


def number_of(x):
    return int(x) if x == int(x) else x


def windows(x, extent, mode, start, combine):
    """Along the last dimension, as oly_reduce_window takes a window of one number."""
    return lax.reduce_window(x, start, combine, (1,) * (x.ndim - 1) + (extent,), (1,) * x.ndim, mode.upper())


def sum_of_windows(x, extent, mode):
    dtype = jnp.sum(x[:0]).dtype if x.dtype == bool else x.dtype
    return windows(x.astype(dtype), extent, mode, np.zeros((), dtype)[()], lax.add)


def largest_of_windows(x, extent, mode):
    least = False if x.dtype == bool else -np.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
    return windows(x, extent, mode, np.array(least, x.dtype)[()], lax.max)


def convolved(x, kernel, mode):
    return lax.conv_general_dilated(x, kernel, (1,) * (x.ndim - 2), mode.upper())


def convolved_with(x, kernel, r):
    n = r["extent"]
    padding = "SAME" if r["mode"] == "same" else [(0, 0)] * n
    return lax.conv_general_dilated(x, kernel, r["low"][:n], padding, r["high"][:n], r["step"][:n],
                                    feature_group_count=r["k"])


def padded(x, value, r):
    return lax.pad(x, jnp.asarray(value, x.dtype), list(zip(r["low"], r["high"], r["step"]))[:x.ndim])


def rearranged(op, x, r):
    n = int(r["number"])
    if op == "slice":
        return x[0][slices_of(r["slices"])]
    if op == "update":
        return x[0].at[slices_of(r["slices"])].set(x[1])
    if op == "roll":
        return jnp.roll(x[0], n, r["k"])
    if op == "flip":
        return jnp.flip(x[0], r["axes"])
    if op == "transpose":
        return jnp.transpose(x[0], r["axes"])
    if op == "reshape":
        return jnp.reshape(x[0], r["shape"])
    if op == "broadcast":
        return jnp.broadcast_to(x[0], r["shape"])
    if op == "concatenate":
        return jnp.concatenate(x, r["k"])
    if op == "stack":
        return jnp.stack(x, r["k"])
    if op == "pad":
        return padded(x[0], number_of(r["number"]), r)
    if op == "pad_mode":
        return jnp.pad(x[0], list(zip(r["low"][:x[0].ndim], r["high"][:x[0].ndim])), MODES[r["mode"]])
    if op == "tile":
        return jnp.tile(x[0], r["shape"])
    if op == "repeat":
        return jnp.repeat(x[0], r["extent"], r["k"])
    if op in ("tril", "triu"):
        return getattr(jnp, op)(x[0], n)
    if op == "diagonal":
        return jnp.diagonal(x[0], n, 0, 1)
    return None


def indexed(op, x, r):
    if op == "take":
        return jnp.take(x[0], x[1], r["k"], mode=r["mode"])
    if op == "take_along":
        return jnp.take_along_axis(x[0], x[1], r["k"], mode=r["mode"])
    if op == "at_get":
        return x[0].at[x[1]].get()
    if op in ("at_set", "at_add", "at_max"):
        return getattr(x[0].at[x[1]], op[3:])(x[2])
    if op == "dynamic_slice":
        return lax.dynamic_slice(x[0], x[1:], r["shape"])
    if op == "dynamic_update":
        return lax.dynamic_update_slice(x[0], x[1], x[2:])
    if op == "segment_sum":
        return jax.ops.segment_sum(x[0], x[1], r["extent"])
    if op == "one_hot":
        return jax.nn.one_hot(x[0], r["extent"], dtype=jnp.dtype(r["dtype"]))
    if op == "searchsorted":
        return jnp.searchsorted(x[0], x[1], side=r["mode"])
    if op == "top_k":
        return lax.top_k(x[0], r["extent"])[0]
    return None


def random(op, x, r):
    dtype, shape = jnp.dtype(r["dtype"]), r["shape"]
    if op == "random_key":
        return jax.random.PRNGKey(r["k"])
    if op == "random_split":
        return jax.random.split(x[0], r["extent"])
    if op == "random_fold_in":
        return jax.random.fold_in(x[0], x[1])
    if op == "random_bits":
        return jax.random.bits(x[0], shape, dtype)
    if op == "random_uniform":
        return jax.random.uniform(x[0], shape, dtype)
    if op == "random_randint":
        return jax.random.randint(x[0], shape, r["low"][0], r["high"][0], dtype)
    if op == "random_bernoulli":
        return jax.random.bernoulli(x[0], r["number"], shape)
    if op == "random_permutation":
        return jax.random.permutation(x[0], x[1], 0)
    return None


def made(op, r):
    dtype = jnp.dtype(r["dtype"])
    if op == "iota":
        return lax.broadcasted_iota(dtype, r["shape"], r["k"])
    if op == "full":
        return jnp.full(r["shape"], number_of(r["number"]), dtype)
    return jnp.eye(r["shape"][0], r["shape"][1], r["k"], dtype)


def answer(r):
    """JAX's result; None: not an operation that it is asked for."""
    op = r["op"]
    x = [array_of(a) if isinstance(a, dict) else number_of(a) for a in r["in"]]
    if op in NAMES:
        return NAMES[op](*x)
    if op == "convert":
        return x[0].astype(r["dtype"])
    if op == "clamp":
        return jnp.clip(x[0], r["low"][0], r["high"][0])
    if op in REDUCTIONS:
        axes = None if r["other_flag"] else tuple(r["axes"])
        if op.startswith("arg") and axes is not None:
            axes = axes[0]
        return REDUCTIONS[op](x[0], axis=axes, keepdims=r["flag"])
    if op in ("cumsum", "cumprod"):  # of numpy, which widens bool
        turn = (lambda y: jnp.flip(y, r["k"])) if r["flag"] else (lambda y: y)
        return turn(getattr(jnp, op)(turn(x[0]), r["k"]))
    if op in RUNNING:
        return RUNNING[op](x[0], r["k"] % x[0].ndim, reverse=r["flag"])
    if op in ("sort", "argsort"):
        return getattr(jnp, op)(x[0], r["k"], descending=r["flag"])
    if op == "batched":
        return jnp.einsum("bij,bjk->bik", *x)
    if op == "crossed":
        return jnp.einsum("ij,kj->ki", *x)
    if op == "contract":
        text = ["".join(chr(c) for c in r[k] if c) for k in ("low", "high", "step")]
        return jnp.einsum("%s,%s->%s" % tuple(text), *x)
    if op in ("correlate", "convolve"):
        return getattr(jnp, op)(*x, r["mode"])
    if op == "conv_many":
        return convolved_with(*x, r)
    if op == "conv":
        return convolved(*x, r["mode"])
    if op == "window_sum":
        return sum_of_windows(x[0], r["extent"], r["mode"])
    if op == "window_max":
        return largest_of_windows(x[0], r["extent"], r["mode"])
    if op in ("iota", "full", "eye"):
        return made(op, r)
    for family in (rearranged, indexed, random):
        y = family(op, x, r)
        if y is not None:
            return y
    return None


def difference(r, y):
    """What is wrong with JAX's result y by the journal; "": nothing."""
    out = r["out"]
    if str(y.dtype) != out["dtype"] or list(y.shape) != out["shape"]:
        return "JAX has %s%s" % (y.dtype, list(y.shape))
    wanted, got = np.asarray(array_of(out)), np.asarray(y)
    if wanted.dtype.name == "bfloat16":
        wanted, got = wanted.astype(np.float32), got.astype(np.float32)
    if r["error"] == 0:
        same = np.array_equal(wanted, got, equal_nan=wanted.dtype.kind in "fc")
    else:
        largest = np.max(np.abs(wanted)) if wanted.size else 0
        same = np.allclose(wanted, got, rtol=1e-2 if r["out"]["dtype"] in ("float16", "bfloat16") else 1e-5,
                           atol=1e-5 * (1 + float(largest)), equal_nan=True)
    return "" if same else "JAX has %s" % got.tolist()


def knows(r):
    """Does JAX have it? Without 64-bit types it has none, where Olympus has those that a program names; running results of bool,
    counting in bool, wrapped indexes, starts of several types and named padding of a dilated array are Olympus's alone; indexes beyond
    int32 become negative in JAX, and are beyond the end in Olympus."""
    types = [a["dtype"] for a in r["in"] if isinstance(a, dict)] + [r["out"]["dtype"]]
    too_wide = any(t in ("int64", "uint64", "float64", "complex128") for t in types) and not r["wide"]
    dilated = r["op"] == "conv_many" and any(d > 1 for d in r["high"][:r["extent"]])
    indexes = [a for a in r["in"][1:] if isinstance(a, dict)]
    far = r["op"].startswith("take") and any(abs(v) >= 2**31 for a in indexes for v in a["values"])
    starts = {a["dtype"] for a in indexes[r["op"] == "dynamic_update":]}
    mixed = r["op"].startswith("dynamic") and (len(starts) > 1 or (len(starts) == 1 and starts != {"int32"}))
    return not (too_wide or far or mixed or (r["op"] in ("iota", "cummax", "cummin") and r["out"]["dtype"] == "bool")
                or (r["op"], r["mode"]) == ("take_along", "wrap") or (dilated and r["mode"] == "same"))


def main():
    seen, skipped, wrong, wide = collections.Counter(), collections.Counter(), 0, None
    for line in sys.stdin:
        r = json.loads(line)
        if r["wide"] != wide:
            wide = r["wide"]
            jax.config.update("jax_enable_x64", wide)
        y = text = None
        try:
            y = answer(r) if knows(r) else None
            text = difference(r, y) if y is not None else None
        except Exception as error:  # JAX refuses what the reference takes
            text = "JAX says: %s" % str(error).split("\n")[0]
        if y is None and text is None:
            skipped[r["op"] if knows(r) else "64-bit types without wide, and what JAX has not"] += 1
            continue
        seen[r["op"]] += 1
        if text:
            wrong += 1
            print("%s: %s\n    %s" % (r["op"], text, line.strip()))
    print("%d operations of %d kinds, %d differ" % (sum(seen.values()), len(seen), wrong)
          + ("; not asked: " + ", ".join("%s (%d)" % pair for pair in sorted(skipped.items())) if skipped else ""))
    return wrong != 0


sys.exit(main())
