#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the bench in JAX and in CuPy, as far as they are installed: name, seconds, rate, unit, separated by tabs; the best of several
repeats. Run by tests/gpu/run.sh, beside build/bench/bench, which has the same programs (build/bench/bench --list)."""
import time

N = 1 << 24
REPEATS = 10


def best(run, wait):
    """Seconds of the best repeat, after two for compilation."""
    least = float("inf")
    for k in range(REPEATS + 2):
        begin = time.perf_counter()
        wait(run())
        took = time.perf_counter() - begin
        if k >= 2:
            least = min(least, took)
    return least


def row(name, seconds, amount, unit):
    print(f"{name}\t{seconds:.6g}\t{amount / seconds:.4g}\t{unit}", flush=True)


def heat_steps(u, at, steps, loop):
    """5-point heat equation; the edge stays."""
    return loop(steps, lambda x: at(x, 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])), u)


def jax_rows():
    import jax
    import jax.numpy as jnp

    print(f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    x = jnp.linspace(-4, 6, N, dtype=jnp.float32)
    sin = jax.jit(lambda x: 2 * jnp.sin(x) + 1)
    chain = jax.jit(lambda x: jax.nn.sigmoid(x * 2 + 1) * jnp.tanh(x) - jnp.exp(-x * x))
    total = jax.jit(jnp.sum)
    ready = lambda y: y.block_until_ready()
    row("jax_sin", best(lambda: sin(x), ready), 8e-9 * N, "GB/s")
    row("jax_chain", best(lambda: chain(x), ready), 8e-9 * N, "GB/s")
    row("jax_sum", best(lambda: total(x), ready), 4e-9 * N, "GB/s")
    small = jnp.zeros(4, jnp.float32)
    add = jax.jit(lambda x: x + 1)

    def calls():
        y = small
        for _ in range(1000):
            y = add(y)
        return y

    row("jax_call", best(calls, ready), 1000, "calls/s")
    a = jnp.ones((4096, 2048), jnp.float32)
    b = jnp.ones((2048, 4096), jnp.float32)
    for name, precision in (("jax_matmul", "highest"), ("jax_matmul_tf32", "default")):
        multiply = jax.jit(lambda a, b: jax.nn.relu(jnp.matmul(a, b, precision=precision)))
        row(name, best(lambda: multiply(a, b), ready), 2e-9 * 4096 * 2048 * 4096, "Gflop/s")
    for name, n in (("jax_heat2d", 4096), ("jax_heat2d_8192", 8192)):
        u = jnp.zeros((n, n), jnp.float32).at[0].set(1)
        heat = jax.jit(
            lambda u: heat_steps(
                u, lambda x, y: x.at[1:-1, 1:-1].set(y), 100, lambda s, f, x: jax.lax.fori_loop(0, s, lambda _, y: f(y), x)
            )
        )
        row(name, best(lambda: heat(u), ready), 100e-9 * (n - 2) ** 2, "Gpoint/s")


def cupy_rows():
    import cupy

    print(f"CuPy {cupy.__version__}")
    x = cupy.linspace(-4, 6, N, dtype=cupy.float32)
    ready = lambda y: cupy.cuda.Device().synchronize()

    @cupy.fuse()
    def chain(x):
        return 1 / (1 + cupy.exp(-(x * 2 + 1))) * cupy.tanh(x) - cupy.exp(-x * x)

    @cupy.fuse()
    def twice_sin(x): # its name is that of a kernel: not "sin"
        return 2 * cupy.sin(x) + 1

    row("cupy_sin", best(lambda: twice_sin(x), ready), 8e-9 * N, "GB/s")
    row("cupy_chain", best(lambda: chain(x), ready), 8e-9 * N, "GB/s")
    row("cupy_sum", best(lambda: cupy.sum(x), ready), 4e-9 * N, "GB/s")
    a = cupy.ones((4096, 2048), cupy.float32)
    b = cupy.ones((2048, 4096), cupy.float32)
    row("cupy_matmul", best(lambda: cupy.maximum(a @ b, 0), ready), 2e-9 * 4096 * 2048 * 4096, "Gflop/s")


missing = 0
for name, rows in (("JAX", jax_rows), ("CuPy", cupy_rows)):
    try:
        rows()
    except ImportError as error:
        print(f"{name} is not installed: {error}")
        missing += 1
if missing == 2:
    raise SystemExit(77)
