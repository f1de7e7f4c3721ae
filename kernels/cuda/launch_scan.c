/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of running results: scan.cu, scan_tiles.cu. What is chosen follows from the shape alone, so that every GPU gives the same bits. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include "special_values.h"
#include <math.h>
#include <string.h>

enum {
    SHORT = 512,    /* elements that a thread adds sooner than a block begins */
    SEGMENT = 2048, /* elements worth a segment of a block */
    MOST_SEGMENTS = 2048,
    SIDE_BY_SIDE = 64,      /* lines that threads, not blocks, scan */
    MOST_THREADS = 1 << 16, /* segments of theirs */
    THREAD_SEGMENT = 64,    /* elements worth one */
    MANY_LINES = 1024,      /* of several tiles, each scanned by a block */
};

static void add_line_dimension(oly_cuda_scan_task *s, int64_t extent, int64_t in, int64_t out, int64_t before)
{
    int last = s->line.rank - 1;
    if (extent == 1)
        return;
    if (last >= 0 && s->line.stride[last] == in * extent && s->out_stride[last] == out * extent &&
        s->before_stride[last] == before * extent)
        s->line.extent[last] *= extent;
    else
        s->line.extent[last = s->line.rank++] = extent;
    s->line.stride[last] = in;
    s->out_stride[last] = out;
    s->before_stride[last] = before;
}

static oly_cuda_scan_task describe(const oly_local_task *t, const void *const *in, void *out)
{
    static const int32_t combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN, -1};
    const oly_local_operand *x = &t->in[0], *y = &t->out, *before = t->n_in == 2 ? &t->in[1] : NULL;
    int dim = t->dimension;
    oly_cuda_scan_task s = {.in = in[0],
                            .out = t->partial ? NULL : out,
                            .totals = t->partial ? out : NULL,
                            .before = before && !t->partial ? in[1] : NULL,
                            .n = oly_local_count(y, dim),
                            .length = x->extent[dim],
                            .segments = 1,
                            .in_step = x->stride[dim],
                            .out_step = y->stride[dim],
                            .dtype = (int32_t)x->dtype,
                            .to = (int32_t)x->dtype,
                            .total_to = (int32_t)oly_local_running_dtype(t->op, x->dtype),
                            .combiner = combiners[t->op - OLY_LOCAL_CUMSUM],
                            .reverse = t->reverse,
                            .part = t->part};
    if (s.combiner >= 0)
        s.combiner = (int32_t)oly_cuda_combiner((oly_combiner)s.combiner, x->dtype);
    if (before) {
        s.before_step = before->stride[dim];
        s.parts = (int32_t)before->extent[dim];
    }
    for (int d = dim + 1; d < x->rank; d++)
        s.columns |= x->extent[d] > 1;
    for (int d = 0; d < x->rank; d++)
        if (d != dim)
            add_line_dimension(&s, y->extent[d], x->stride[d], y->stride[d], before ? before->stride[d] : 0);
    return s;
}

/* Of an element in shared memory: of the type in which scan.cu adds (OLY_BY_TYPE of combining.h), for integers always 64 bits. */
static unsigned running_bytes(const oly_cuda_scan_task *s)
{
    bool real = s->total_to == OLY_FLOAT32;
    return s->combiner < 0 ? 8 : real ? 4 : s->dtype == OLY_COMPLEX128 ? 16 : 8;
}

static oly_status start_segments(const oly_cuda_launcher *l, const oly_cuda_scan_task *s)
{
    oly_cuda_launch launch = {.module = "scan",
                              .kernel = "oly_scan_segments",
                              .blocks = oly_cuda_blocks(l, s->n * s->segments, 1),
                              .threads = OLY_CUDA_THREADS,
                              .shared = OLY_CUDA_SCAN_SHARED * running_bytes(s),
                              .task_bytes = sizeof *s};
    memcpy(launch.task, s, sizeof *s);
    return l->launch(l->context, &launch);
}

static oly_status start_lines(const oly_cuda_launcher *l, const oly_cuda_scan_task *s)
{
    return oly_cuda_start(l, "scan", "oly_scan_lines", oly_cuda_blocks(l, s->n * s->segments, 64), 64, s, sizeof *s);
}

/* The totals of segments, these as lines, and then the elements. `start` starts segments: those of a line are `apart`, lines `between`. */
static oly_status scan_segments(const oly_cuda_launcher *l, const oly_cuda_scan_task *s, void *at, int64_t apart,
                                int64_t between,
                                oly_status (*start)(const oly_cuda_launcher *, const oly_cuda_scan_task *))
{
    oly_cuda_scan_task totals = *s, lines = *s, last = *s;
    totals.out = NULL;
    totals.before = NULL;
    totals.totals = at;
    OLY_TRY(start(l, &totals));
    lines.in = at;
    lines.before = NULL;
    lines.out = s->out ? at : NULL;
    lines.length = s->segments;
    lines.segments = 1;
    lines.in_step = lines.out_step = apart;
    lines.dtype = lines.to = s->total_to;
    lines.reverse = false; /* of reversed lines the first segment is the last */
    lines.line = (oly_cuda_dims){0};
    if (s->n > 1) {
        lines.line.rank = 1;
        lines.line.extent[0] = s->n;
        lines.line.stride[0] = lines.out_stride[0] = between;
    }
    OLY_TRY(start(l, &lines));
    if (!s->out)
        return OLY_OK;
    last.carry = at;
    return start(l, &last);
}

/* Of lines whose elements are apart. */
static oly_status by_threads(const oly_cuda_launcher *l, oly_cuda_scan_task *s)
{
    void *totals;
    s->segments = oly_larger(1, oly_smaller(MOST_THREADS / s->n, s->length / THREAD_SEGMENT));
    if (s->segments == 1)
        return start_lines(l, s);
    OLY_TRY(l->scratch(l->context, (size_t)(s->n * s->segments) * 16, &totals));
    return scan_segments(l, s, totals, s->n, 1, start_lines);
}

/* -- frequent types: scan_tiles.cu ---------------------------------------------------------------------------------------- */

/* Kernels by type and combiner. */
#define TILED(kind, s, name) "oly_scan_" kind "_" s "_" name
#define TILED_ALL(kind, s)                                                                                             \
    {                                                                                                                  \
        [OLY_COMBINE_SUM] = TILED(kind, s, "sum"), [OLY_COMBINE_PROD] = TILED(kind, s, "prod"),                        \
        [OLY_COMBINE_MAX] = TILED(kind, s, "max"), [OLY_COMBINE_MIN] = TILED(kind, s, "min")                           \
    }
#define TILED_KERNELS(kind)                                                                                            \
    {                                                                                                                  \
        [OLY_FLOAT32] = TILED_ALL(kind, "f32"), [OLY_FLOAT64] = TILED_ALL(kind, "f64"),                                \
        [OLY_INT32] = TILED_ALL(kind, "i32"), [OLY_INT64] = TILED_ALL(kind, "i64"),                                    \
        [OLY_FLOAT16] = {[OLY_COMBINE_SUM] = TILED(kind, "f16", "sum")},                                               \
        [OLY_BFLOAT16] = {[OLY_COMBINE_SUM] = TILED(kind, "bf16", "sum")},                                             \
    }
static const char *const by_rows[OLY_N_DTYPES][OLY_N_COMBINERS] = TILED_KERNELS("rows");
static const char *const by_chains[OLY_N_DTYPES][OLY_N_COMBINERS] = TILED_KERNELS("chain");

static bool is_tiled(const oly_cuda_scan_task *s)
{
    return s->combiner >= 0 && by_rows[s->dtype][s->combiner] && s->to == s->dtype;
}

static oly_status start_tiles(const oly_cuda_launcher *l, const char *kernel, int64_t blocks,
                              const oly_cuda_scan_task *s)
{
    return oly_cuda_start(l, "scan_tiles", kernel, oly_cuda_blocks(l, blocks, 1), OLY_CUDA_THREADS, s, sizeof *s);
}

/* A block for each line where there are many, or one tile in each. */
static oly_status by_tiles(const oly_cuda_launcher *l, oly_cuda_scan_task *s)
{
    enum { SPAN = OLY_CUDA_SCAN_SPAN };
    static const uint64_t zero;
    int64_t bytes = (int64_t)oly_element_bytes[s->dtype], each = bytes == 8 ? 8 : 16; /* elements of a thread */
    int64_t tiles = (s->length + OLY_CUDA_THREADS * each - 1) / (OLY_CUDA_THREADS * each);
    int64_t groups = (tiles + SPAN - 1) / SPAN, thousands = (groups + SPAN - 1) / SPAN;
    int64_t words = 1 + s->n * (tiles + groups + thousands) * (bytes == 8 ? 2 : 1);
    void *at;
    if (tiles == 1 || s->n >= MANY_LINES)
        return start_tiles(l, by_rows[s->dtype][s->combiner], s->n, s);
    OLY_TRY(l->scratch(l->context, (size_t)words * sizeof *s->chain, &at));
    OLY_TRY(oly_cuda_fill(l, sizeof *s->chain, words, at, &zero));
    s->chain = at;
    return start_tiles(l, by_chains[s->dtype][s->combiner], s->n * tiles, s);
}

static oly_status running(const oly_cuda_launcher *l, oly_cuda_scan_task *s)
{
    void *totals;
    if (s->length <= SHORT)
        return start_lines(l, s);
    if (s->n >= SIDE_BY_SIDE && s->columns)
        return by_threads(l, s);
    if (is_tiled(s))
        return by_tiles(l, s);
    s->segments = oly_larger(1, oly_smaller(s->length / SEGMENT, MOST_SEGMENTS / s->n));
    if (s->segments == 1)
        return start_segments(l, s);
    OLY_TRY(l->scratch(l->context, (size_t)(s->n * s->segments) * 16, &totals));
    return scan_segments(l, s, totals, 1, s->segments, start_segments);
}

/* The result of no elements: the identity; of sums zero with a sign, which leaves zeros of both signs as they are. */
static oly_status fill_identity(const oly_cuda_launcher *l, const oly_local_task *t, void *out)
{
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    char identity[16];
    double lowest = -INFINITY;
    oly_dtype dtype = t->out.dtype;
    if (t->op == OLY_LOCAL_CUMLOGSUMEXP)
        memcpy(identity, &lowest, sizeof lowest);
    else if (t->op == OLY_LOCAL_CUMSUM)
        oly_unseen_value(dtype, identity);
    else
        oly_combine_identity(combiners[t->op - OLY_LOCAL_CUMSUM], dtype, identity, 1);
    return oly_cuda_fill(l, oly_element_bytes[dtype], oly_local_count(&t->out, -1), out, identity);
}

oly_status oly_cuda_scan(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                         void *scratch)
{
    (void)scratch;
    if (t->in[0].extent[t->dimension] == 0)
        return fill_identity(l, t, out);
    oly_cuda_scan_task s = describe(t, in, out);
    return running(l, &s);
}
