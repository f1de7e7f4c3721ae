/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  CUDA kernels of gather, scatter, slices and updates at computed positions, argmax, searchsorted: the CPU's bits. */
#include "local_tasks.h"

enum { ROUNDS = 300 };

static int64_t small(void)
{
    return 1 + random_below(random_below(4) ? 6 : 40);
}

/* Batch, indexed and other dimensions of operand 0; the extents of positions. */
static int draw_indexed(drawn *w, int64_t *position, bool updates)
{
    int rank = 1 + random_below(4), n_batch = random_below(3) == 0 && rank > 1, positions = n_batch + random_below(3);
    int64_t extent[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++)
        extent[d] = small();
    for (int64_t d = 0, n = 1; d < rank; n *= extent[d++])
        if (n * extent[d] > 30000)
            extent[d] = 1;
    *w = (drawn){.t = {.n_batch = n_batch, .mode = (oly_index_mode)random_below(4), .partial = random_below(3) == 0}};
    for (int d = n_batch; d < rank; d++)
        if (random_below(2) || (d == rank - 1 && w->t.n_axes == 0))
            w->t.axes[w->t.n_axes++] = d;
    set_box(&w->in[0], random_dtype(true), rank, extent);
    for (int k = 0; k < positions; k++)
        position[k] = k < n_batch ? extent[k] : random_below(9) == 0 ? 60 : small();
    if (positions > n_batch && random_below(30) == 0)
        position[positions - 1] = 0;
    for (int a = 0; a < w->t.n_axes && (updates || w->t.partial); a++)
        if (random_below(2))
            take_part(&w->in[0], w->t.axes[a], random_below(4), random_below(4));
    return positions;
}

static void draw_indexes(drawn *w, int positions, const int64_t *position)
{
    for (int a = 0; a < w->t.n_axes; a++) {
        int64_t size = w->in[0].size[w->t.axes[a]], beyond = w->t.mode == OLY_INDEX_PROMISE ? 0 : random_below(4);
        set_box(&w->in[1 + a], random_below(2) ? OLY_INT32 : OLY_INT64, positions, position);
        fill_indexes(w, 1 + a, -beyond, size - 1 + beyond);
    }
}

static bool is_window(const drawn *w, int d)
{
    bool other = d >= w->t.n_batch;
    for (int a = 0; a < w->t.n_axes; a++)
        other = other && w->t.axes[a] != d;
    return other;
}

/* The extents of the positions, then of what is not indexed. */
static int windows_of(const drawn *w, int positions, int64_t *extent)
{
    for (int d = 0; d < w->in[0].rank; d++)
        if (is_window(w, d))
            extent[positions++] = w->in[0].extent[d];
    return positions;
}

static void gathers(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < ROUNDS; round++) {
        drawn w;
        int64_t extent[OLY_MAX_RANK];
        int positions = draw_indexed(&w, extent, false);
        w.t.op = OLY_LOCAL_GATHER;
        w.t.n_in = 1 + w.t.n_axes;
        fill_operand(&w, 0);
        draw_indexes(&w, positions, extent);
        int rank = windows_of(&w, positions, extent);
        set_box(&w.t.out, w.in[0].dtype, rank, extent);
        compare_task(&w, "gather", round, false, NULL);
    }
}

/* Numbers whose sums, or products, are the same in any order: more than 256 updates of an element are combined in pieces. */
static void calm(drawn *w, int k)
{
    oly_dtype dtype = w->in[k].dtype;
    bool sum = w->t.op == OLY_LOCAL_SCATTER_ADD,
         signs = dtype < OLY_COMPLEX64; /* of complex zeros they depend on the order */
    bool least =
        w->t.op == OLY_LOCAL_SCATTER_MIN || w->t.op == OLY_LOCAL_SCATTER_MAX; /* of complex ones, which NaN it is */
    if (dtype < OLY_FLOAT8_E4M3FN || (!sum && !least && w->t.op != OLY_LOCAL_SCATTER_MUL) || (least && signs))
        return;
    int64_t n = 1;
    for (int d = 0; d < w->in[k].rank; d++)
        n += (w->in[k].extent[d] - 1) * w->in[k].stride[d];
    for (int64_t i = 0; i < n; i++) {
        float x = least                      ? (float)(random_below(9) - 4)
                  : sum                      ? (float)(random_below(4) ? 0 : random_below(3) - 1)
                  : random_below(2) && signs ? -1.0f
                                             : 1.0f;
        switch (dtype) {
        case OLY_FLOAT32: ((float *)w->memory[k])[i] = x; break;
        case OLY_FLOAT64: ((double *)w->memory[k])[i] = x; break;
        case OLY_COMPLEX64: ((float *)w->memory[k])[2 * i] = x, ((float *)w->memory[k])[2 * i + 1] = 0; break;
        case OLY_COMPLEX128: ((double *)w->memory[k])[2 * i] = x, ((double *)w->memory[k])[2 * i + 1] = 0; break;
        case OLY_FLOAT16: ((uint16_t *)w->memory[k])[i] = oly_half_of_float(x); break;
        case OLY_BFLOAT16: ((uint16_t *)w->memory[k])[i] = oly_bfloat_of_float(x); break;
        case OLY_FLOAT8_E4M3FN: ((uint8_t *)w->memory[k])[i] = oly_e4m3fn_of_float(sum ? 0 : x); break;
        default: ((uint8_t *)w->memory[k])[i] = oly_e5m2_of_float(sum ? 0 : x); break;
        }
    }
}

static void scatters(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 2 * ROUNDS; round++) {
        drawn w;
        int64_t extent[OLY_MAX_RANK];
        int positions = draw_indexed(&w, extent, true);
        w.t.op = (oly_local_op)(OLY_LOCAL_SCATTER + random_below(5));
        w.t.n_in = 2 + w.t.n_axes;
        w.t.partial = w.t.partial && w.t.op == OLY_LOCAL_SCATTER_ADD;
        w.t.out = w.in[0];
        int first = w.t.axes[0], most = 30000;
        for (int d = 0; d < w.in[0].rank; d++)
            most /= (int)w.in[0].extent[d];
        if (positions > w.t.n_batch && most > 65 && random_below(2)) /* many meet */
            extent[positions - 1] = 65 + random_below(most - 65);
        for (int k = w.t.n_batch; k < positions - 1 && extent[positions - 1] > 65; k++)
            extent[k] = 1;
        if (w.t.partial && w.in[0].extent[first] > 1) { /* a part of what is added to */
            w.in[0].extent[first]--;
            w.in[0].origin[first] += random_below(2);
        }
        fill_operand(&w, 0);
        draw_indexes(&w, positions, extent);
        int rank = windows_of(&w, positions, extent);
        set_box(&w.in[w.t.n_in - 1], w.in[0].dtype, rank, extent);
        fill_operand(&w, w.t.n_in - 1);
        if (oly_local_count(&w.in[1], -1) > 256) {
            calm(&w, 0);
            calm(&w, w.t.n_in - 1);
        }
        bool dense = !w.t.partial;
        int64_t step = 1;
        for (int d = w.in[0].rank - 1; d >= 0; step *= w.in[0].extent[d--])
            dense = dense && w.in[0].stride[d] == step;
        compare_task(&w, "scatter", round, dense && random_below(2), NULL);
    }
}

/* Thousands of positions: spread over all places, in ascending order, half of them at one place, all of them there. */
static void crowds(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < ROUNDS / 2; round++) {
        drawn w = {.t = {.mode = (oly_index_mode)random_below(4), .n_axes = 1}};
        int how = random_below(5), before = random_below(3),
            width = random_below(3) ? random_below(3) : 8 + random_below(90);
        int64_t n = 2049 + random_below(random_below(2) ? 6000 : 300), extent[3];
        int64_t places = random_below(4) ? 1 + random_below((int)n) : 1 + random_below(400);
        int rank = 0;
        if (before)
            extent[rank++] = 1 + before;
        w.t.axes[0] = rank;
        extent[rank++] = places;
        if (width)
            extent[rank++] = width;
        set_box(&w.in[0], random_dtype(true), rank, extent);
        w.t.op = (oly_local_op)(OLY_LOCAL_SCATTER + random_below(5));
        w.t.n_in = 3;
        w.t.out = w.in[0];
        fill_operand(&w, 0);
        set_box(&w.in[1], random_below(2) ? OLY_INT32 : OLY_INT64, 1, &n);
        int beyond = w.t.mode == OLY_INDEX_PROMISE ? 0 : random_below(4);
        fill_indexes(&w, 1, -beyond, places - 1 + beyond);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = i * w.in[1].stride[0], value = i * places / n;
            if (how == 0 || (how == 1 && i % 2) || how == 2) {
                value = how == 2 ? value : places / 2;
                if (w.in[1].dtype == OLY_INT64)
                    ((int64_t *)w.memory[1])[at] = value;
                else
                    ((int32_t *)w.memory[1])[at] = (int32_t)value;
            }
        }
        int64_t shape[3] = {n};
        int updates = windows_of(&w, 1, shape);
        set_box(&w.in[2], w.in[0].dtype, updates, shape);
        fill_operand(&w, 2);
        if (how < 2 || n > 60 * places) {
            calm(&w, 0);
            calm(&w, 2);
        }
        compare_task(&w, "crowd", round, false, NULL);
    }
}

/* Slices and updates at computed positions. */
static void slices(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 2 * ROUNDS; round++) {
        bool update = random_below(2);
        bool wide = random_below(4) == 0; /* rows that blocks copy */
        int rank = 1 + random_below(wide ? 2 : 4), n_batch = random_below(3) == 0;
        int64_t extent[OLY_MAX_RANK], part[OLY_MAX_RANK];
        drawn w = {.t = {.op = update ? OLY_LOCAL_DYNAMIC_UPDATE : OLY_LOCAL_DYNAMIC_SLICE,
                         .n_batch = n_batch,
                         .partial = !update && random_below(2)}};
        for (int d = 0; d < rank; d++)
            part[d] = extent[d] = 1 + random_below(12);
        if (wide)
            part[rank - 1] = extent[rank - 1] = 64 + random_below(3000);
        for (int d = n_batch; d < rank; d++)
            part[d] = 1 + random_below((int)extent[d]);
        w.t.n_in = 1 + update + rank - n_batch;
        set_box(&w.in[0], random_dtype(true), rank, extent);
        oly_local_operand slice;
        set_box(&slice, w.in[0].dtype, rank, part);
        for (int d = n_batch; d < rank; d++) { /* parts of the array, of the slice */
            if ((w.t.partial || update) && random_below(2) && extent[d] > 1) {
                w.in[0].origin[d] = random_below((int)extent[d]);
                w.in[0].extent[d] = 1 + random_below((int)(extent[d] - w.in[0].origin[d]));
            }
            if (random_below(2) && part[d] > 1) {
                slice.origin[d] = random_below((int)part[d]);
                slice.extent[d] = 1 + random_below((int)(part[d] - slice.origin[d]));
            }
        }
        fill_operand(&w, 0);
        if (update) {
            w.in[1] = slice;
            fill_operand(&w, 1);
        }
        for (int d = n_batch; d < rank; d++) {
            int k = 1 + update + d - n_batch;
            set_box(&w.in[k], random_below(2) ? OLY_INT32 : OLY_INT64, n_batch, extent);
            fill_indexes(&w, k, -2, extent[d] + 2);
        }
        w.t.out = update ? w.in[0] : slice;
        compare_task(&w, update ? "update" : "slice", round, false, NULL);
    }
}

static void argreductions(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int rank = 1 + random_below(4), n_kept_dims = 0;
        int64_t extent[OLY_MAX_RANK], out[OLY_MAX_RANK];
        drawn w = {.t = {.op = random_below(2) ? OLY_LOCAL_ARGMAX : OLY_LOCAL_ARGMIN, .n_in = 1}};
        w.t.partial = random_below(2);
        for (int d = 0; d < rank; d++)
            extent[d] = 1 + random_below(random_below(6) ? 8 : 100);
        if (random_below(8) == 0)
            rank = 1, extent[0] = 1 + random_below(30000);
        if (round % 150 == 0) /* so many pieces that blocks join them */
            rank = 1, extent[0] = 140000 + random_below(9000);
        set_box(&w.in[0], random_dtype(false), rank, extent);
        for (int d = 0; d < rank; d++)
            if (random_below(2) || (d == rank - 1 && w.t.n_axes == 0)) {
                w.t.axes[w.t.n_axes++] = d;
                if (w.t.partial)
                    take_part(&w.in[0], d, random_below(5), random_below(5));
                if (w.t.partial && random_below(40) == 0)
                    w.in[0].extent[d] = 0;
            } else {
                out[n_kept_dims++] = extent[d];
            }
        fill_operand(&w, 0);
        set_box(&w.t.out, random_below(2) ? OLY_INT32 : OLY_INT64, n_kept_dims, out);
        compare_task(&w, "argreduction", round, false, NULL);
    }
}

/* The results of several parts. */
static void picks(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < ROUNDS; round++) {
        int64_t extent[] = {1 + random_below(5), 1 + random_below(9), 1 + random_below(4)}, out[2];
        int n_kept_dims = 0;
        drawn w = {.t = {.op = OLY_LOCAL_PICK, .n_in = 2, .reverse = random_below(2)}};
        set_box(&w.in[0], random_dtype(false), 3, extent);
        set_box(&w.in[1], random_below(2) ? OLY_INT32 : OLY_INT64, 3, extent);
        for (int d = 0; d < 3; d++)
            if (d == 1 || (d == 0 && random_below(2)))
                w.t.axes[w.t.n_axes++] = d;
            else
                out[n_kept_dims++] = extent[d];
        fill_operand(&w, 0);
        fill_indexes(&w, 1, -1, 6);
        set_box(&w.t.out, random_below(2) ? OLY_INT32 : OLY_INT64, n_kept_dims, out);
        compare_task(&w, "pick", round, false, NULL);
    }
}

static void searches(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < ROUNDS; round++) {
        int n_batch = random_below(2), rank = n_batch + random_below(3);
        int64_t extent[] = {1 + random_below(4), small(), small()}, line[] = {extent[0], small()};
        if (!n_batch)
            line[0] = random_below(200);
        drawn w = {.t = {.op = OLY_LOCAL_SEARCHSORTED, .n_in = 2, .reverse = random_below(2), .n_batch = n_batch}};
        set_box(&w.in[0], random_dtype(true), n_batch + 1, line);
        set_box(&w.in[1], w.in[0].dtype, rank, extent);
        fill_operand(&w, 0), fill_operand(&w, 1); /* not sorted: the same comparisons give the same answer */
        set_box(&w.t.out, random_below(2) ? OLY_INT32 : OLY_INT64, rank, extent);
        compare_task(&w, "searchsorted", round, false, NULL);
    }
}

/* What sorting over several devices does with lines. */
static void arrangements(void **state)
{
    (void)state;
    need_kernels();
    for (int round = 0; round < ROUNDS; round++) {
        int rank = 1 + random_below(3);
        int64_t extent[] = {small(), small(), 1 + random_below(5)};
        drawn w = {.t = {.op = (oly_local_op)(OLY_LOCAL_LENGTHEN + random_below(3)), .reverse = random_below(2)}};
        int d = w.t.dimension = random_below(rank);
        oly_dtype number = random_below(2) ? OLY_INT32 : OLY_INT64;
        bool take = w.t.op == OLY_LOCAL_TAKE;
        w.t.n_in = take ? 2 : 1;
        w.t.reverse = w.t.reverse && w.t.op != OLY_LOCAL_LENGTHEN;
        set_box(&w.in[0], take && w.t.reverse ? number : random_dtype(true), rank, extent);
        fill_operand(&w, 0);
        int64_t have = extent[d];
        extent[d] += random_below(5);
        if (take) {
            set_box(&w.in[1], random_below(2) ? OLY_INT32 : OLY_INT64, rank, extent);
            fill_indexes(&w, 1, 0, have - 1);
        } else {
            take_part(&w.in[0], d, random_below(6), random_below(6));
        }
        set_box(&w.t.out, w.t.op == OLY_LOCAL_NUMBER ? number : w.in[0].dtype, rank, extent);
        compare_task(&w, "arrangement", round, false, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers),  cmocka_unit_test(scatters),      cmocka_unit_test(crowds),
        cmocka_unit_test(slices),   cmocka_unit_test(argreductions), cmocka_unit_test(picks),
        cmocka_unit_test(searches), cmocka_unit_test(arrangements),
    };
    return CHECK_MAIN(tests);
}
