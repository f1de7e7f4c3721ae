/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of sliding windows and convolutions: the CPU's bits, and of products that the CPU gives to OpenBLAS as close as
 * their order allows. */
#include "local_tasks.h"
#include "core/optimisation.h"

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

/* Windows over one or two dimensions, of several results a thread: those, and a thread for each, have the CPU's bits. */
static void columns(void **state)
{
    (void)state;
    need_kernels();
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_INT32, OLY_FLOAT32, OLY_INT16};
    for (int round = 0; round < 160; round++) {
        int outer = random_below(3), over = 1 + random_below(2), rank = outer + over, side = round % 3 ? 3 : 2;
        int64_t extent[OLY_MAX_RANK], out[OLY_MAX_RANK];
        drawn w = {.t = {.op = (oly_local_op)(OLY_LOCAL_WINDOW_SUM + round / 5 % 4), .n_in = 1}};
        for (int d = 0; d < rank; d++)
            out[d] = extent[d] = 1 + random_below(d < outer ? 4 : 30) + side;
        w.window = (oly_sliding_window){.rank = over, .groups = 1, .batch_groups = 1};
        for (int d = 0; d < over; d++) {
            w.window.size[d] = side;
            w.window.stride[d] = round % 4 < 2 ? 1 : 1 + random_below(2);
            w.window.lo[d] = random_below(4) - 1;
            w.window.hi[d] = random_below(4) - 1;
            w.window.base_dilation[d] = 1;
            w.window.dilation[d] = 1 + (round % 7 == 0);
            out[outer + d] = places_of(&w.window, d, extent[outer + d]);
        }
        set_box(&w.in[0], dtypes[round % 5], rank, extent);
        for (int d = outer; d < rank; d++)
            if (random_below(4) == 0)
                w.in[0].origin[d] = 1, w.in[0].extent[d]--;
        fill_operand(&w, 0);
        set_box(&w.t.out, w.in[0].dtype, rank, out);
        take_part_of_result(&w, outer);
        if (round % 8 == 7) {
            oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_CONVOLUTION_TILES);
            compare_task(&w, "window, one result a thread", round, false, NULL);
            oly_disable(before);
        } else {
            compare_task(&w, "window by columns", round, false, NULL);
        }
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

/* Float32 and float64 by tiles in registers, as the launches say, and by the kernels for any type: the same bits where neither the order of
 * the sum nor its parts differ. */
typedef struct tiled {
    int per_group, groups, features, length, rank, size; /* length: of every dimension of the window */
    bool last, both, batch; /* features lie side by side; the kernel has that order, too; groups are of the batch */
} tiled;

static drawn draw_tiled(const tiled *c, oly_dtype dtype, int round)
{
    drawn w = {.t = {.op = OLY_LOCAL_CONVOLVE, .n_in = 2}};
    int64_t x[OLY_MAX_RANK], k[OLY_MAX_RANK], out[OLY_MAX_RANK];
    w.window = (oly_sliding_window){.rank = c->rank, .groups = 1, .batch_groups = 1};
    *(c->batch ? &w.window.batch_groups : &w.window.groups) = c->groups;
    out[0] = 1 + random_below(2);
    x[0] = out[0] * (c->batch ? c->groups : 1);
    x[1] = c->features * (c->batch ? 1 : c->groups);
    k[0] = out[1] = c->per_group * c->groups;
    k[1] = c->features;
    for (int d = 0; d < c->rank; d++) {
        x[2 + d] = c->length + random_below(3);
        w.window.size[d] = k[2 + d] = c->size;
        w.window.stride[d] = round % 5 == 1 ? 2 : 1;
        w.window.base_dilation[d] = round % 5 == 2 ? 2 : round % 5 == 3 && d == 0 ? 4 : 1;
        w.window.dilation[d] = round % 5 == 4 ? 2 : 1;
        w.window.lo[d] = random_below(c->size + 2) - 1;
        w.window.hi[d] = c->size * w.window.dilation[d] - w.window.lo[d];
        out[2 + d] = places_of(&w.window, d, x[2 + d]);
        assert_true(out[2 + d] > 0);
    }
    set_box(&w.in[0], dtype, c->rank + 2, x);
    set_box(&w.in[1], dtype, c->rank + 2, k);
    fill_operand(&w, 1);
    int64_t span = place_box(&w.in[0], !c->last);
    if (c->last) { /* as images with the channels last */
        span = 1;
        for (int i = 0; i < c->rank + 2; i++) {
            int d = i == 0 ? 1 : i == c->rank + 1 ? 0 : c->rank + 2 - i;
            w.in[0].stride[d] = span;
            span *= x[d];
        }
    }
    w.memory[0] = random_array(dtype, span);
    if (c->both) {
        span = 1;
        for (int i = 0; i < c->rank + 2; i++) {
            int d = c->last ? i : c->rank + 1 - i;
            w.in[1].stride[d] = span;
            span *= k[d];
        }
        free(w.memory[1]);
        w.memory[1] = random_array(dtype, span);
    }
    set_calm(&w, 0), set_calm(&w, 1);
    if (round % 3 == 2 && x[2] > 2) { /* a part: what is not here is padding */
        w.in[0].origin[2] = 1;
        w.in[0].extent[2]--;
    }
    set_box(&w.t.out, dtype, c->rank + 2, out);
    take_part_of_result(&w, 2);
    return w;
}

/* The result with its features last has the bits of the one with its places last. */
static void compare_order(const drawn *w, const void *tiles, int round)
{
    const oly_local_operand *out = &w->t.out;
    int64_t n = oly_local_count(out, -1), features = out->extent[1], places = n / (out->extent[0] * features);
    size_t bytes = oly_element_bytes[out->dtype];
    char *last = random_array(out->dtype, n);
    bool launched;
    assert_int_equal(oly_cuda_convolve_last(&launcher, &w->t, (const void *const *)w->memory, last, &launched), OLY_OK);
    assert_true(launched);
    for (int64_t i = 0; i < n; i++) {
        int64_t batch = i / (features * places), feature = i / places % features, place = i % places;
        const char *at = last + ((batch * places + place) * features + feature) * (int64_t)bytes;
        if (memcmp(at, (const char *)tiles + i * (int64_t)bytes, bytes) != 0)
            fail_msg("round %d: element %d with the features last has other bits", round, (int)i);
    }
    free(last);
}

static void tiled_convolutions(void **state)
{
    (void)state;
    need_kernels();
    static const tiled cases[] = {{128, 1, 4, 33000, 1, 3, .last = false, .both = true},
                                  {100, 1, 2, 20, 2, 3, .last = false},
                                  {64, 2, 40, 9, 2, 3, .last = false, .both = true},
                                  {64, 1, 8, 12, 2, 3, .last = true},
                                  {40, 1, 12, 10, 2, 2, .last = true},
                                  {9, 3, 5, 30, 1, 5, .last = false},
                                  {32, 2, 4, 60, 1, 4, .last = true},
                                  {1, 70, 1, 9, 2, 3, .last = false},
                                  {2, 5, 4, 17, 2, 3, .last = true},
                                  {7, 1, 130, 12, 2, 3, .last = false},
                                  {64, 1, 64, 6, 2, 4, .last = false, .both = true},
                                  {70, 1, 128, 6, 2, 3, .last = true},
                                  {33, 2, 6, 20, 2, 3, .batch = true},
                                  {1, 9, 2, 14, 2, 12, .batch = true},
                                  {20, 1, 2, 34, 2, 30, .batch = true},
                                  {64, 1, 16, 30, 1, 1, .last = true},
                                  {16, 1, 3, 5, 3, 3, .last = false},
                                  {128, 1, 4, 33000, 1, 3, .last = true, .both = true},
                                  {64, 2, 16, 12, 2, 3, .last = true, .both = true},
                                  {60, 1, 12, 13, 2, 3, .last = true, .both = true},
                                  {64, 1, 512, 5, 2, 3, .last = true, .both = true}};
    for (int round = 0; round < 2 * (int)(sizeof cases / sizeof *cases); round++) {
        const tiled *c = &cases[round / 2];
        oly_dtype dtype = round % 2 ? OLY_FLOAT64 : OLY_FLOAT32;
        if (round % 2 && c->length > 1000) /* which is large for the tiles of 128 features, of float32 only */
            continue;
        drawn w = draw_tiled(c, dtype, round);
        w.t.in = w.in, w.t.window = &w.window;
        place_box(&w.t.out, true);
        int64_t n = oly_local_count(&w.t.out, -1);
        size_t bytes = oly_element_bytes[dtype];
        void *tiles = random_array(dtype, n), *plain = random_array(dtype, n);
        n_launched = 0;
        assert_int_equal(oly_cuda_local(&launcher, &w.t, (const void *const *)w.memory, tiles, NULL), OLY_OK);
        bool same = n_launched == 1 && (w.in[0].stride[1] != 1 || c->per_group < 8);
        oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_CONVOLUTION_TILES);
        assert_int_equal(oly_cuda_local(&launcher, &w.t, (const void *const *)w.memory, plain, NULL), OLY_OK);
        oly_disable(before);
        if (same ? memcmp(tiles, plain, (size_t)n * bytes) != 0 : !nearly(&w, n, plain, tiles))
            fail_msg("round %d of %s, %d features in %d groups: by tiles it has other %s", round, oly_dtype_name(dtype),
                     c->per_group, c->groups, same ? "bits" : "values");
        compare_order(&w, tiles, round);
        free(tiles), free(plain);
        compare_task(&w, "tiled convolution", round, false, nearly);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(columns),
                                       cmocka_unit_test(convolutions), cmocka_unit_test(tiled_convolutions)};
    return CHECK_MAIN(tests);
}
