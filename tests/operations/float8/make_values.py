#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes e4m3fn.txt and e5m2.txt next to itself: what ml_dtypes makes of float8 numbers (ml_dtypes 0.6.0, NumPy 2.4).

    python3 -m venv v && v/bin/pip install ml_dtypes numpy && v/bin/python tests/operations/float8/make_values.py

Lines, all numbers as the hexadecimal digits of their bits, NaN of any kind as "nan":
    value BYTE FLOAT32      what an element is
    single FLOAT32 BYTE     what a float32 number becomes
    double FLOAT64 BYTE     what a float64 number becomes when it is rounded once, as XLA does (ml_dtypes goes by way of float32;
                            here by way of the float32 number whose last bit says that something was cut off)
    whole INT BYTE          what an integer (decimal) becomes
    pairs OPERATION DIGEST  FNV-1a of the 65536 results of OPERATION on all pairs of elements, the first varying slowest;
                            NaN counts as the byte 0xff
"""
import os
import numpy as np
import ml_dtypes

np.seterr(all="ignore")


def of(byte, dtype):
    return np.array([byte], np.uint8).view(dtype)


def text_of_byte(x):
    return "nan" if np.isnan(x.astype(np.float32))[0] else f"{x.view(np.uint8)[0]:02x}"


def inputs(dtype, wide):
    """Every number, every midpoint of neighbours and the numbers next to it, and numbers beyond both ends."""
    bits = np.arange(128, dtype=np.uint8)
    values = bits.view(dtype).astype(wide)
    values = np.sort(values[np.isfinite(values)])
    beyond = values[-1] + (values[-1] - values[-2])
    edges = np.append(values, beyond)
    middle = (edges[1:] + edges[:-1]) / 2
    low = np.nextafter(middle, wide(-np.inf))
    high = np.nextafter(middle, wide(np.inf))
    # a second, smaller distance: float64 numbers that are midpoints once they are float32
    near = middle * wide(1 + 2.0**-30) if wide is np.float64 else middle
    far = np.array([beyond, 2 * beyond, 65504, 65536, 1e10, np.finfo(wide).max, np.inf, np.nan, np.finfo(wide).tiny,
                    np.finfo(wide).smallest_subnormal], wide)
    all_of = np.unique(np.concatenate([values, middle, low, high, near, far]))
    return np.concatenate([all_of, -all_of])


def to_odd(x):
    """float64 to float32 towards zero, the last bit set where that is not exact: rounding it again is rounding once."""
    single = x.astype(np.float32)
    bits = single.view(np.uint32)
    bits = np.where(np.abs(single.astype(np.float64)) > np.abs(x), bits - np.uint32(1), bits)
    inexact = (single.astype(np.float64) != x) & ~np.isnan(x)
    return np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32).view(np.float32)


def digest(results):
    value = 0xCBF29CE484222325
    for byte in results:
        value = (value ^ int(byte)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def write(name, dtype):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".txt")
    with open(path, "w") as file:
        print(f"# {np.dtype(dtype).name}: see make_values.py. Made by ml_dtypes {ml_dtypes.__version__}.", file=file)
        for byte in range(256):
            x = of(byte, dtype).astype(np.float32)
            print("value", f"{byte:02x}", "nan" if np.isnan(x[0]) else f"{x.view(np.uint32)[0]:08x}", file=file)
        for word, wide, bits in (("single", np.float32, np.uint32), ("double", np.float64, np.uint64)):
            for x in inputs(dtype, wide):
                x = np.array([x], wide)
                print(word, f"{x.view(bits)[0]:0{2 * x.itemsize}x}", text_of_byte((to_odd(x) if wide is np.float64 else x).astype(dtype)), file=file)
        for n in [0, 1, 3, 17, 18, 19, 100, 447, 449, 463, 464, 465, 480, 1000, 53248, 57344, 61439, 61440, 65536, 10**9]:
            for sign in (1, -1):
                print("whole", sign * n, text_of_byte(np.array([sign * n], np.int32).astype(dtype)), file=file)
        every = np.arange(256, dtype=np.uint8).view(dtype)
        x, y = np.repeat(every, 256), np.tile(every, 256)
        for word, result in (("add", x + y), ("sub", x - y), ("mul", x * y), ("div", x / y)):
            out = result.view(np.uint8).copy()
            out[np.isnan(result.astype(np.float32))] = 0xFF
            print("pairs", word, f"{digest(out):016x}", file=file)


write("e4m3fn", ml_dtypes.float8_e4m3fn)
write("e5m2", ml_dtypes.float8_e5m2)
