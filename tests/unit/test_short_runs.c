/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Reductions over dimensions before and behind a kept one ([n, c, h, w] to c): the bits of the documented order, computed one
 * element after the other, for boxes, strides, numbers of chunks and element types that are drawn. */
#include "check.h"
#include "core/error.h"
#include "kernel.h"
#include "planning.h"
#include "table.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 17, RUNS = 1 << 14 };
static uint64_t seed = 7;
static double in[MOST], out[MOST], scratch[MOST];

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Values of this type, widened to double; sums are rounded to it. */
static double value_at(oly_dtype dtype, const void *x, int64_t i)
{
    if (dtype == OLY_BFLOAT16) {
        uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    return dtype == OLY_FLOAT32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}
static double combined(oly_dtype dtype, oly_combiner c, double a, double b)
{
    double r = c == OLY_COMBINE_SUM ? a + b : a != a || a > b ? a : b;
    return dtype == OLY_FLOAT64 ? r : (double)(float)r;
}

/* Elements as a tree of adjacent pairs, in place. */
static double in_pairs(oly_dtype dtype, oly_combiner c, double *x, int64_t n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            x[i] = combined(dtype, c, x[2 * i], x[2 * i + 1]);
        if (n % 2)
            x[n / 2] = x[n - 1];
    }
    return x[0];
}
/* A run of at most a block: in lanes, the lanes by halves. */
static double one_run(oly_dtype dtype, oly_combiner c, const double *x, int64_t n)
{
    double lane[64];
    int64_t lanes = n < 64 ? 1 : 64;
    for (int64_t i = 0; i < n; i++)
        lane[i % lanes] = i < lanes ? x[i] : combined(dtype, c, lane[i % lanes], x[i]);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            lane[i] = combined(dtype, c, lane[i], lane[i + half]);
    return lane[0];
}

/* Result `index` of the task. */
static double expected(const oly_reduce_task *t, int64_t index)
{
    static double elements[MOST], run[RUNS];
    oly_reduce_shape s = oly_reduce_divide(t);
    int64_t n = s.outer * s.run, base = 0;
    for (int d = t->rank - 1; d >= 0; d--)
        if (!t->reduced[d]) {
            base += index % t->extent[d] * t->stride[d];
            index /= t->extent[d];
        }
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = base;
        for (int d = t->rank - 1; d >= 0; d--)
            if (t->reduced[d]) {
                at += rest % t->extent[d] * t->stride[d];
                rest /= t->extent[d];
            }
        elements[i] = value_at(t->dtype, in, at);
    }
    if (n < 64)
        return one_run(t->dtype, t->combiner, elements, n);
    double part[OLY_REDUCE_PARTS];
    for (int p = 0; p < s.parts; p++) {
        int64_t begin = s.outer * p / s.parts, end = s.outer * (p + 1) / s.parts;
        for (int64_t o = begin; o < end; o++)
            run[o - begin] = one_run(t->dtype, t->combiner, elements + o * s.run, s.run);
        part[p] = in_pairs(t->dtype, t->combiner, run, end - begin);
    }
    return in_pairs(t->dtype, t->combiner, part, s.parts);
}

static void fill(oly_dtype dtype)
{
    bool special = draw(3) == 0;
    for (int i = 0; i < MOST; i++) {
        float x = special && draw(500) == 0 ? draw(2) ? NAN : -0.0f : (float)draw(4001) / 7 - 250;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (dtype == OLY_BFLOAT16)
            ((uint16_t *)in)[i] = (uint16_t)(bits >> 16);
        else if (dtype == OLY_FLOAT32)
            ((float *)in)[i] = x;
        else
            in[i] = (double)x;
    }
}

/* Kept and reduced dimensions by turns, the last one reduced; the innermost ones with gaps between, sometimes in another order. */
static oly_reduce_task draw_task(void)
{
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_BFLOAT16};
    oly_reduce_task t = {.combiner = draw(4) ? OLY_COMBINE_SUM : OLY_COMBINE_MAX, .dtype = dtypes[draw(3)]};
    t.rank = 3 + (int)draw(3);
    int order[OLY_MAX_RANK];
    int64_t next = draw(4) ? 1 : 2, room = 1 << (8 + draw(9));
    for (int d = 0; d < t.rank; d++) {
        t.reduced[d] = d == t.rank - 1 || d == 0 || draw(2) == 0;
        order[d] = d;
    }
    t.reduced[t.rank - 2] = false;
    if (draw(4) == 0)
        for (int d = t.rank - 1; d > 0; d--) {
            int other = (int)draw(d + 1), held = order[d];
            order[d] = order[other];
            order[other] = held;
        }
    for (int k = t.rank - 1; k >= 0; k--) {
        int64_t most = k == 0 ? room : room < 80 ? room : draw(5) ? 20 : 80;
        int d = order[k];
        t.extent[d] = 1 + draw(most < 1 ? 1 : most);
        t.stride[d] = next;
        next *= t.extent[d] + (draw(8) == 0);
        room /= t.extent[d];
    }
    return t;
}

static int64_t last_element(const oly_reduce_task *t)
{
    int64_t at = 0;
    for (int d = 0; d < t->rank; d++)
        at += (t->extent[d] - 1) * t->stride[d];
    return at;
}

/* "[32R 64K 7R]": reduced and kept dimensions. */
static const char *box_of(const oly_reduce_task *t)
{
    static char text[128];
    int n = 0;
    for (int d = 0; d < t->rank; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d%c", d ? " " : "[", (int)t->extent[d],
                      t->reduced[d] ? 'R' : 'K');
    snprintf(text + n, sizeof text - (size_t)n, "]");
    return text;
}

/* False: it is too large. */
static bool check_task(const oly_reduce_task *t, int number)
{
    oly_reduce_shape s = oly_reduce_divide(t);
    if (last_element(t) >= MOST || s.run > 4096 || s.outer > RUNS || s.outer * s.run > MOST ||
        oly_reduce_scratch(t) > sizeof scratch)
        return false;
    int chunks = s.parts > 1 ? s.parts : 1 + (int)draw(s.kept < 9 ? s.kept : 9);
    for (int k = 0; k < chunks; k++)
        oly_reduce_run(t, in, out, scratch, k, chunks);
    oly_reduce_finish(t, out, scratch);
    for (int64_t i = 0; i < s.kept; i++) {
        double want = expected(t, i), got = value_at(t->dtype, out, i);
        bool same = t->dtype != OLY_BFLOAT16 ? want == got : fabs(want - got) <= fabs(want) / 256;
        if (!same && !(isnan(want) && isnan(got)))
            fail_msg("%s: case %d, %s of type %d in %d chunks: result %d is %.17g, not %.17g", oly_kernels_isa(),
                     number, box_of(t), (int)t->dtype, chunks, (int)i, got, want);
    }
    return true;
}

static void boxes_that_are_drawn(void **state)
{
    (void)state;
    static const char *const isas[] = {"base", "avx2", "avx512"};
    int checked = 0;
    for (int isa = 0; isa < 3; isa++) {
        if (oly_kernels_choose(isas[isa]) != OLY_OK) {
            oly_drop_message();
            continue;
        }
        for (int k = 0; k < 1500; k++) {
            static oly_dtype filled;
            oly_reduce_task t = draw_task();
            if (k % 25 == 0)
                fill(filled = t.dtype);
            t.dtype = filled;
            checked += check_task(&t, k);
        }
    }
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
    assert_true(checked > 1000); /* of 1,500 on each instruction set that there is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_that_are_drawn)};
    return CHECK_MAIN(tests);
}
