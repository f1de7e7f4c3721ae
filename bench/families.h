/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows as tables: what families.def and elementwise.def list, inputs described by text. For families.c, workloads.c and
 * collectives.c of this folder. */
#ifndef FAMILIES_H
#define FAMILIES_H

#include "bench.h"

enum { BENCH_INPUTS = 8 };

/* Makes the arrays that `text` describes, separated by spaces: "f32[n,64] i32[n]<n/16!".
 *   type     bool, i8, i16, i32, i64, u8, u16, u32, u64, bf16, f16, f32, f64, c64, c128
 *   extents  numbers, n, n*2, n/2
 *   drawn    normal numbers (integers: 1 to 100; bools: half of them true), or as said after the bracket:
 *            <n/16  integers from 0 below that        sorted, sorted<n  the same, ascending
 *            unit   from -0.9 to 0.9                  positive  from 0.5 to 1.5      above  from 1 to 2
 *            any    all values of an integer type     none, every  false or true    columns  split by dimension 1
 *   !        at the end: not split over the devices; otherwise dimension 0 is split over all
 * Returns how many there are. Ends the program where the text is wrong. */
int bench_inputs(const char *text, int64_t n, oly_array *in);

/* A whole row: makes the inputs, compiles `body` (its `user` points at n), measures and reports. */
void bench_measure(const bench_row *row, oly_function body, const char *name, double amount);

#endif
