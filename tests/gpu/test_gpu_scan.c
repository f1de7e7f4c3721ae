/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of running results: the CPU's bits, and sums of long lines as close as their order allows. */
#include "local_tasks.h"

/* Sums and products of floating numbers that blocks compute: another order. */
static double real_at(oly_dtype dtype, const void *x, int64_t i)
{
    switch (dtype) {
    case OLY_FLOAT64: return ((const double *)x)[i];
    case OLY_FLOAT32: return ((const float *)x)[i];
    case OLY_BFLOAT16: return oly_float_of_bfloat(((const uint16_t *)x)[i]);
    case OLY_FLOAT16: return oly_float_of_half(((const uint16_t *)x)[i]);
    case OLY_FLOAT8_E4M3FN: return oly_float_of_e4m3fn(((const uint8_t *)x)[i]);
    default: return oly_float_of_e5m2(((const uint8_t *)x)[i]);
    }
}
static double epsilon_of(oly_dtype dtype)
{
    return dtype == OLY_FLOAT64 ? 1e-13 : dtype == OLY_FLOAT32 ? 1e-4 : dtype == OLY_FLOAT16 ? 2e-3 : 0.3;
}
static bool nearly(const drawn *w, int64_t n, const void *cpu, const void *gpu)
{
    oly_dtype dtype = w->t.out.dtype, part = dtype;
    if (dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128) {
        part = dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
        n *= 2;
    }
    double most = 0;
    for (int64_t i = 0; i < n; i++) { /* errors are those of the largest sum */
        double x = real_at(part, cpu, i), y = real_at(part, gpu, i);
        if (x == y || (x != x && y != y))
            continue;
        most = fmax(most, fabs(x));
        if (!(fabs(x - y) <= epsilon_of(part) * fmax(most, 10)))
            return false;
    }
    return true;
}

static bool has_order(const drawn *w)
{
    return w->t.op == OLY_LOCAL_CUMLOGSUMEXP || (w->in[0].dtype >= OLY_FLOAT8_E4M3FN && w->t.op <= OLY_LOCAL_CUMPROD);
}

/* Numbers whose sums and products stay small. Factors are many different ones, or their products would be rounded in the same way again and
 * again. */
static void calm(drawn *w)
{
    oly_local_operand *x = &w->in[0];
    int64_t n = 1;
    for (int d = 0; d < x->rank; d++)
        n += (x->extent[d] - 1) * x->stride[d];
    if (!has_order(w))
        return;
    for (int64_t i = 0; i < n; i++) {
        double value =
            w->t.op == OLY_LOCAL_CUMPROD ? 1 + (random_below(2001) - 1000) * 1e-6 : random_below(9) * 0.125 - 0.25;
        switch (x->dtype) {
        case OLY_FLOAT64: ((double *)w->memory[0])[i] = value; break;
        case OLY_COMPLEX128: ((double *)w->memory[0])[2 * i] = value, ((double *)w->memory[0])[2 * i + 1] = 0; break;
        case OLY_FLOAT32: ((float *)w->memory[0])[i] = (float)value; break;
        case OLY_COMPLEX64:
            ((float *)w->memory[0])[2 * i] = (float)value, ((float *)w->memory[0])[2 * i + 1] = 0;
            break;
        case OLY_BFLOAT16: ((uint16_t *)w->memory[0])[i] = oly_bfloat_of_float((float)value); break;
        case OLY_FLOAT16: ((uint16_t *)w->memory[0])[i] = oly_half_of_float((float)value); break;
        case OLY_FLOAT8_E4M3FN: ((uint8_t *)w->memory[0])[i] = oly_e4m3fn_of_float((float)value); break;
        default: ((uint8_t *)w->memory[0])[i] = oly_e5m2_of_float((float)value); break;
        }
    }
}

static void draw(drawn *w, int rank, int64_t *extent, int dimension)
{
    *w = (drawn){.t = {.op = (oly_local_op)(OLY_LOCAL_CUMSUM + random_below(5)), .n_in = 1, .dimension = dimension}};
    oly_dtype dtype = random_dtype(w->t.op <= OLY_LOCAL_CUMPROD);
    if (w->t.op == OLY_LOCAL_CUMLOGSUMEXP && dtype < OLY_FLOAT8_E4M3FN)
        dtype = OLY_FLOAT32;
    w->t.reverse = random_below(2);
    int kind = random_below(4);
    set_box(&w->in[0], dtype, rank, extent);
    w->t.out = w->in[0];
    if (kind == 0) { /* the result of a part */
        w->t.partial = true;
        w->t.out.dtype = oly_local_running_dtype(w->t.op, dtype);
        w->t.out.extent[dimension] = w->t.out.size[dimension] = 1;
    }
    if (kind == 1) { /* after others */
        w->t.n_in = 2;
        extent[dimension] = 1 + random_below(5);
        w->t.part = random_below((int)extent[dimension]);
        set_box(&w->in[1], oly_local_running_dtype(w->t.op, dtype), rank, extent);
        fill_operand(w, 1);
    }
}

static void short_lines(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 400; round++) {
        drawn w;
        int rank = 1 + random_below(3);
        int64_t extent[OLY_MAX_RANK] = {1 + random_below(20), 1 + random_below(20), 1 + random_below(20)};
        int dimension = random_below(rank);
        if (random_below(20) == 0)
            extent[dimension] = 300;
        draw(&w, rank, extent, dimension);
        if (w.t.partial && random_below(10) == 0)
            w.in[0].extent[dimension] = 0;
        fill_operand(&w, 0);
        compare_task(&w, "short lines", round, false, w.t.op == OLY_LOCAL_CUMLOGSUMEXP ? nearly : NULL);
    }
}

static void long_lines(void **state)
{
    (void)state;
    need_kernels();
    static const int64_t lengths[] = {513, 2047, 2048, 2049, 5000, 8192, 16387, 20001};
    for (int round = 0; round < 60; round++) {
        drawn w;
        int rank = 1 + random_below(2), dimension = random_below(rank);
        int64_t extent[OLY_MAX_RANK] = {1 + random_below(4), 1 + random_below(4)};
        extent[dimension] = lengths[random_below(8)];
        draw(&w, rank, extent, dimension);
        fill_operand(&w, 0);
        calm(&w);
        if (w.t.n_in == 2 && has_order(&w))
            memset(w.memory[1], 0, 4 * oly_element_bytes[w.in[1].dtype]);
        compare_task(&w, "long lines", round, false, has_order(&w) ? nearly : NULL);
    }
}

/* Many tiles, which blocks scan at once (scan_tiles.cu): groups of 32 tiles of 2048 or 4096 elements, and a thousand of them. */
static void chained_lines(void **state)
{
    (void)state;
    need_kernels();
    enum { THOUSAND = 24 }; /* the round of more than a thousand tiles */
    static const oly_dtype types[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32, OLY_INT64, OLY_FLOAT16, OLY_BFLOAT16};
    for (int round = 0; round <= THOUSAND; round++) {
        drawn w;
        int rank = round == THOUSAND ? 1 : 1 + random_below(2);
        int64_t extent[OLY_MAX_RANK] = {1 + random_below(3), 1};
        extent[rank - 1] = round == THOUSAND ? 1027 * 2048 : 30000 + random_below(200000);
        do
            draw(&w, rank, (int64_t[]){extent[0], extent[1]}, rank - 1);
        while (round == THOUSAND && (w.t.n_in == 2 || w.t.partial));
        if (w.t.n_in == 1) {
            w.t.op = (oly_local_op)(OLY_LOCAL_CUMSUM + random_below(2));
            w.in[0].dtype = round == THOUSAND ? OLY_FLOAT64 : types[random_below(6)];
            w.t.out.dtype = w.t.partial ? oly_local_running_dtype(w.t.op, w.in[0].dtype) : w.in[0].dtype;
        }
        fill_operand(&w, 0);
        calm(&w);
        if (w.t.n_in == 2 && has_order(&w))
            memset(w.memory[1], 0, 4 * oly_element_bytes[w.in[1].dtype]);
        compare_task(&w, "chained lines", round, false, has_order(&w) ? nearly : NULL);
    }
}

static void clear(const oly_local_operand *x, void *memory)
{
    size_t bytes = oly_element_bytes[x->dtype];
    int64_t at[3], n[3] = {1, 1, 1}, stride[3] = {0};
    for (int d = 0; d < x->rank; d++) {
        n[d] = x->extent[d];
        stride[d] = x->stride[d];
    }
    for (at[0] = 0; at[0] < n[0]; at[0]++)
        for (at[1] = 0; at[1] < n[1]; at[1]++)
            for (at[2] = 0; at[2] < n[2]; at[2]++)
                memset((char *)memory + (at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2]) * (int64_t)bytes, 0,
                       bytes);
}

/* Many lines side by side, whose segments threads have. */
static void columns(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 30; round++) {
        drawn w;
        int rank = 2 + random_below(2);
        int64_t extent[OLY_MAX_RANK] = {513 + random_below(700), 64 + random_below(60), 1 + random_below(3)};
        draw(&w, rank, extent, 0);
        fill_operand(&w, 0);
        calm(&w);
        if (w.t.n_in == 2 && has_order(&w))
            clear(&w.in[1], w.memory[1]);
        compare_task(&w, "columns", round, false, has_order(&w) ? nearly : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_lines), cmocka_unit_test(long_lines),
                                       cmocka_unit_test(chained_lines), cmocka_unit_test(columns)};
    return CHECK_MAIN(tests);
}
