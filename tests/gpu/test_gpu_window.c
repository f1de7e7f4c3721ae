/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of sliding windows and convolutions: the CPU's bits, and of products that the CPU gives to OpenBLAS as close as
 * their order allows. */
#include "local_tasks.h"

/* The extent of the result along a dimension of `extent`; 0: none. */
static int64_t places_of(const oly_sliding_window *w, int d, int64_t extent)
{
    int64_t all = (extent - 1) * w->base_dilation[d] + 1 + w->lo[d] + w->hi[d],
            span = (w->size[d] - 1) * w->dilation[d] + 1;
    return extent == 0 || all < span ? 0 : (all - span) / w->stride[d] + 1;
}

static void draw_window(oly_sliding_window *w, int rank, const int64_t *extent)
{
    *w = (oly_sliding_window){.rank = rank, .groups = 1, .batch_groups = 1};
    for (int d = 0; d < rank; d++) {
        do {
            w->size[d] = 1 + random_below(4);
            w->stride[d] = 1 + random_below(3);
            w->lo[d] = random_below(5) - 1;
            w->hi[d] = random_below(5) - 1;
            w->base_dilation[d] = random_below(4) ? 1 : 1 + random_below(3);
            w->dilation[d] = random_below(4) ? 1 : 1 + random_below(3);
        } while (places_of(w, d, extent[d]) <= 0);
    }
}

/* Only a part of the result, and of the operand in dimensions outside the window. */
static void take_part_of_result(drawn *w, int first)
{
    for (int d = first; d < w->t.out.rank; d++)
        if (random_below(3) == 0 && w->t.out.extent[d] > 1) {
            w->t.out.origin[d] = random_below((int)w->t.out.extent[d]);
            w->t.out.extent[d] -= w->t.out.origin[d];
        }
}

static void windows(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 400; round++) {
        int outer = random_below(3), rank = outer + 1 + random_below(2);
        int64_t extent[OLY_MAX_RANK], out[OLY_MAX_RANK];
        drawn w = {.t = {.op = (oly_local_op)(OLY_LOCAL_WINDOW_SUM + random_below(4)), .n_in = 1}};
        for (int d = 0; d < rank; d++)
            out[d] = extent[d] = 1 + random_below(9);
        draw_window(&w.window, rank - outer, extent + outer);
        for (int d = outer; d < rank; d++)
            out[d] = places_of(&w.window, d - outer, extent[d]);
        set_box(&w.in[0], random_dtype(w.t.op <= OLY_LOCAL_WINDOW_PROD), rank, extent);
        for (int d = outer; d < rank; d++) /* a part: what is not here is padding */
            if (random_below(4) == 0 && extent[d] > 1) {
                w.in[0].origin[d] = random_below((int)extent[d]);
                w.in[0].extent[d] -= w.in[0].origin[d];
            }
        fill_operand(&w, 0);
        set_box(&w.t.out, w.in[0].dtype, rank, out);
        take_part_of_result(&w, outer);
        compare_task(&w, "window", round, false, NULL);
    }
}

/* Sums of the same products in another order. */
static bool nearly(const drawn *w, int64_t n, const void *cpu, const void *gpu)
{
    oly_dtype dtype = w->t.out.dtype;
    bool twice = dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128,
         wide = dtype == OLY_FLOAT64 || dtype == OLY_COMPLEX128;
    for (int64_t i = 0; i < n * (twice ? 2 : 1); i++) {
        double x = wide ? ((const double *)cpu)[i] : ((const float *)cpu)[i];
        double y = wide ? ((const double *)gpu)[i] : ((const float *)gpu)[i];
        if (!(fabs(x - y) <= (wide ? 1e-12 : 1e-3)))
            return false;
    }
    return true;
}

static void set_calm(drawn *w, int k)
{
    oly_local_operand *x = &w->in[k];
    int64_t n, span = 1;
    for (int d = 0; d < x->rank; d++)
        span += (x->extent[d] - 1) * x->stride[d];
    bool wide = x->dtype == OLY_FLOAT64 || x->dtype == OLY_COMPLEX128;
    if (x->dtype < OLY_FLOAT32)
        return;
    n = span * (int64_t)oly_element_bytes[x->dtype] / (wide ? 8 : 4);
    for (int64_t i = 0; i < n; i++)
        if (wide)
            ((double *)w->memory[k])[i] = random_below(2001) / 1000.0 - 1;
        else
            ((float *)w->memory[k])[i] = (float)(random_below(2001) / 1000.0 - 1);
}

static void convolutions(void **state)
{
    (void)state;
    need_kernels();
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX64, OLY_COMPLEX128,
                                       OLY_INT32,   OLY_INT8,    OLY_UINT16,    OLY_INT64};
    for (int round = 0; round < 150; round++) {
        int rank = 1 + random_below(2), kind = random_below(3);
        oly_dtype dtype = dtypes[random_below(8)];
        drawn w = {.t = {.op = OLY_LOCAL_CONVOLVE, .n_in = 2}};
        int64_t groups = kind ? 1 + random_below(3) : 1, per_group = 1 + random_below(random_below(3) ? 5 : 90);
        int64_t features = 1 + random_below(5), batch = 1 + random_below(3);
        int64_t x[OLY_MAX_RANK], k[OLY_MAX_RANK], out[OLY_MAX_RANK];
        for (int d = 0; d < rank; d++)
            x[2 + d] = 1 + random_below(rank == 1 ? 40 : 12);
        draw_window(&w.window, rank, x + 2);
        *(kind == 2 ? &w.window.batch_groups : &w.window.groups) = groups;
        x[0] = batch * (kind == 2 ? groups : 1);
        x[1] = features * (kind == 2 ? 1 : groups);
        k[0] = out[1] = groups * per_group;
        k[1] = features;
        out[0] = batch;
        for (int d = 0; d < rank; d++) {
            k[2 + d] = w.window.size[d];
            out[2 + d] = places_of(&w.window, d, x[2 + d]);
        }
        set_box(&w.in[0], dtype, rank + 2, x);
        set_box(&w.in[1], dtype, rank + 2, k);
        fill_operand(&w, 0), fill_operand(&w, 1);
        set_calm(&w, 0), set_calm(&w, 1);
        set_box(&w.t.out, dtype, rank + 2, out);
        take_part_of_result(&w, 2);
        if (random_below(3) == 0 && out[1] > 1) { /* some features: the kernel's rows are those */
            int64_t from = random_below((int)out[1]);
            w.t.out.origin[1] = w.in[1].origin[0] = from;
            w.t.out.extent[1] = w.in[1].extent[0] = out[1] - from;
        }
        compare_task(&w, "convolution", round, false, dtype >= OLY_FLOAT32 ? nearly : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(convolutions)};
    return CHECK_MAIN(tests);
}
