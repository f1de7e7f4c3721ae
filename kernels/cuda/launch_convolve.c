/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of convolutions of float32 and float64 by tiles in registers: convolve_blocks.cu, whose task convolve_task.h explains. Others
 * are launched by launch_window.c. */
#include "cuda/local_launches.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "cuda/convolve_task.h"
#include "local_table.h"
#include <stdlib.h>

/* Offsets, and places of whole arrays, that 32 bits hold with room for a tile more. */
enum { FAR = 1 << 30, FEW_FEATURES = 8, LANES = 32 };
/* LONG: a sum that is worth being computed in parts of LEAST_DEPTH elements and more, if there are fewer than MANY tiles. The same on every
 * GPU, so that the bits are. */
enum { LONG = 1024, LEAST_DEPTH = 256, MANY = 512, MOST_PARTS = 128 };

typedef struct shape {
    const char *kernel;
    int features, places, threads;
    /* where features lie side by side in both operands; where the kernel's rows are in the order of the sum; NULL: as others */
    const char *together, *whole;
} shape;
enum { F32_128, F32_64, F32_32, F64_64, FEW_F32, FEW_F64 };
static const shape shapes[] = {
    [F32_128] = {"oly_convolve_f32_128", 128, 128, 256, "oly_convolve_f32_128_last", "oly_convolve_f32_128_whole"},
    [F32_64] = {"oly_convolve_f32_64", 64, 128, 128, "oly_convolve_f32_64_last", "oly_convolve_f32_64_whole"},
    [F32_32] = {"oly_convolve_f32_32", 32, 256, 128, NULL, NULL},
    [F64_64] = {"oly_convolve_f64_64", 64, 64, 128, NULL, NULL},
    [FEW_F32] = {"oly_convolve_few_f32", OLY_CUDA_CONVOLVE_EACH, OLY_CUDA_THREADS, OLY_CUDA_THREADS, NULL, NULL},
    [FEW_F64] = {"oly_convolve_few_f64", OLY_CUDA_CONVOLVE_EACH, OLY_CUDA_THREADS, OLY_CUDA_THREADS, NULL, NULL}};

static int64_t blocks_of(const shape *s, const oly_convolve_blocks *b, int64_t columns)
{
    return b->groups * ((b->per_group + s->features - 1) / s->features) * ((columns + s->places - 1) / s->places);
}

/* Tiles that waste little, and smaller ones if there would be few. */
static const shape *shape_of(const oly_local_task *t, const oly_convolve_blocks *b, int64_t columns)
{
    bool wide = t->out.dtype == OLY_FLOAT64;
    if (b->per_group < FEW_FEATURES)
        return &shapes[wide ? FEW_F64 : FEW_F32];
    if (wide)
        return &shapes[F64_64];
    if (b->per_group <= 32)
        return &shapes[F32_32];
    int64_t more = b->per_group % 128;
    bool fills = more == 0 || more > 64;
    return &shapes[fills && blocks_of(&shapes[F32_128], b, columns) >= MANY / 2 ? F32_128 : F32_64];
}

/* -- lanes ---------------------------------------------------------------------------------------------------------------------------- */

static bool is_near(int64_t x)
{
    return x > -FAR && x < FAR;
}

/* Log 2 of a power of 2; -1: it is none. */
static int log_of(int64_t x)
{
    int k = 0;
    while (k < LANES && (int64_t)1 << k < x)
        k++;
    return (int64_t)1 << k == x ? k : -1;
}

/* Dimension d: its offsets, and its lane, which begins at bit *bit. False: that is too much for 32 bits. `far` is how far offsets go. */
static bool set_dimension(const oly_local_task *t, int d, int *bit, int64_t *far, oly_cuda_convolve_task *c)
{
    const oly_sliding_window *w = t->window;
    const oly_local_operand *x = &t->in[0], *out = &t->out;
    int64_t dilation = w->base_dilation[d], extent = x->extent[2 + d] * dilation;
    int64_t start = out->origin[2 + d] * w->stride[d] - w->lo[d] - x->origin[2 + d] * dilation;
    int64_t most = start + (out->extent[2 + d] - 1) * w->stride[d] + (w->size[d] - 1) * w->dilation[d];
    int64_t step = x->stride[2 + d] * ((int64_t)1 << (c->shift - log_of(dilation))), tap = step * w->dilation[d];
    int k = log_of(dilation);
    if (!is_near(start) || !is_near(most) || !is_near(extent) || !is_near(step) || !is_near(w->size[d]) ||
        !is_near(out->extent[2 + d]))
        return false;
    while ((int64_t)1 << k <= most || (int64_t)1 << k < extent - start || (int64_t)1 << k < -start)
        k++;
    if (*bit + k + 1 > LANES)
        return false;
    int64_t place = step * w->stride[d];
    *far += llabs(step) * (llabs(start) + llabs(most)) +
            llabs(t->in[1].stride[2 + d]) * w->size[d]; /* of both, which is more than of either */
    if (!is_near(*far) || !is_near(place) || !is_near(tap))
        return false;
    c->extent[d] = (int32_t)out->extent[2 + d];
    c->size[d] = (int32_t)w->size[d];
    c->x_start += (int32_t)(start * step);
    c->x_place[d] = (int32_t)place;
    c->x_tap[d] = (int32_t)tap;
    c->w_tap[d] = (int32_t)t->in[1].stride[2 + d];
    c->lane_place[d] = (uint32_t)w->stride[d] << *bit;
    c->lane_tap[d] = (uint32_t)w->dilation[d] << *bit;
    c->lane_start += (uint32_t)(start + ((int64_t)1 << k)) << *bit;
    c->lane_extent += (uint32_t)extent << *bit;
    c->inside |= (uint32_t)1 << (*bit + k);
    c->divisible |= (uint32_t)(dilation - 1) << *bit;
    /* Of the last lane. v + 2^k, with v in [-2^k, 2^k), has bit k clear if v >= 0, and else v + 2^k - extent has it set. */
    c->beyond = (uint32_t)1 << (*bit + k);
    *bit += k + 1;
    return true;
}

/* -- tasks ---------------------------------------------------------------------------------------------------------------------------- */

static void set_reading(const oly_local_task *t, const oly_convolve_blocks *b, const void *const *in,
                        oly_cuda_convolve_task *c)
{
    const oly_local_operand *x = &t->in[0], *w = &t->in[1];
    bool of_batch = t->window->batch_groups > 1;
    int64_t bytes = t->out.dtype == OLY_FLOAT64 ? 8 : 4;
    int64_t first = (t->out.origin[0] - x->origin[0]) * x->stride[0] + (w->origin[1] - x->origin[1]) * x->stride[1];
    c->x = (const char *)in[0] + first * bytes;
    c->w = in[1];
    c->x_batch = x->stride[0];
    c->x_group = of_batch ? x->size[0] / t->window->batch_groups * x->stride[0] : w->size[1] * x->stride[1];
    c->w_row = w->stride[0];
    c->w_by_row = w->stride[0] == 1;
    c->x_feature = (int32_t)(x->stride[1] * ((int64_t)1 << c->shift));
    c->w_feature = (int32_t)w->stride[1];
    c->features = (int32_t)w->extent[1];
    /* Of CPUs' convolutions such sums are OpenBLAS's. */
    c->feature_last =
        b->per_group >= FEW_FEATURES && x->stride[1] == 1 && c->features > 1 && c->taps > 1 && b->places >= 8;
    bool aligned = (uintptr_t)c->x % 16 == 0 && c->x_batch * bytes % 16 == 0 && c->x_group * bytes % 16 == 0 &&
                   c->features * bytes % 16 == 0;
    for (int d = 0; d < t->window->rank; d++)
        aligned = aligned && x->stride[2 + d] * bytes % 16 == 0;
    c->x_together = aligned && x->stride[1] == 1 && c->shift == 0 && (c->feature_last || c->taps == 1);
}

enum { VECTOR = 4 }; /* of float32, read together */

/* Can vectors of features of both operands be read? */
static bool is_together(const oly_local_task *t, const oly_cuda_convolve_task *c)
{
    const oly_local_operand *w = &t->in[1];
    bool aligned = c->x_together && c->w_by_row && (uintptr_t)c->w % 16 == 0 && c->begin % VECTOR == 0 &&
                   c->end % VECTOR == 0 && c->per_group % VECTOR == 0 && w->stride[1] % VECTOR == 0;
    for (int d = 0; d < t->window->rank; d++)
        aligned = aligned && w->stride[2 + d] % VECTOR == 0;
    return aligned;
}

/* Can vectors of the kernel's rows be read, in the order of the sum? */
static bool is_whole(const oly_cuda_convolve_task *c)
{
    bool whole =
        c->shift == 0 && !c->x_together && (uintptr_t)c->w % 16 == 0 && c->n % VECTOR == 0 && c->w_row % VECTOR == 0;
    int64_t dense = c->feature_last ? c->features : 1;
    for (int d = c->rank - 1; d >= 0; d--) {
        whole = whole && (c->size[d] == 1 || c->w_tap[d] == dense);
        dense *= c->size[d];
    }
    return whole && (c->features == 1 || c->w_feature == (c->feature_last ? 1 : c->taps));
}

static const char *kernel_of(const shape *s, const oly_local_task *t, const oly_cuda_convolve_task *c)
{
    if (s->together && is_together(t, c))
        return s->together;
    return s->whole && is_whole(c) ? s->whole : s->kernel;
}

static void divide(const shape *s, const oly_convolve_blocks *b, oly_cuda_convolve_task *c)
{
    int64_t tiles = blocks_of(s, b, c->columns), parts = 1;
    if (c->n >= LONG && tiles < MANY / 2)
        parts = oly_smaller(oly_smaller(MANY / oly_larger(tiles, 1), c->n / LEAST_DEPTH), MOST_PARTS);
    int64_t depth =
        ((c->n + parts - 1) / parts + OLY_CUDA_CONVOLVE_DEPTH - 1) / OLY_CUDA_CONVOLVE_DEPTH * OLY_CUDA_CONVOLVE_DEPTH;
    c->depth = (int32_t)depth;
    c->parts = (int32_t)((c->n + depth - 1) / depth);
}

static bool describe(const oly_local_task *t, const oly_convolve_blocks *b, const void *const *in, void *out,
                     oly_cuda_convolve_task *c)
{
    const oly_sliding_window *w = t->window;
    const oly_local_operand *kernel = &t->in[1];
    int64_t taps = 1, columns = b->batch * b->places, n, far = 0, elements;
    int bit = 0;
    *c = (oly_cuda_convolve_task){.out = out, .rank = (int32_t)w->rank, .beyond = 1};
    if ((t->out.dtype != OLY_FLOAT32 && t->out.dtype != OLY_FLOAT64) || t->in[0].dtype != t->out.dtype ||
        kernel->dtype != t->out.dtype || !in[0] || !in[1] || w->rank == 0)
        return false;
    for (int d = 0; d < w->rank; d++) {
        int log = log_of(w->base_dilation[d]);
        if (log < 0 || w->size[d] <= 0)
            return false;
        c->shift = log > c->shift ? log : c->shift;
        taps = is_near(taps) ? taps * w->size[d] : taps;
    }
    for (int d = 0; d < w->rank; d++)
        if (!set_dimension(t, d, &bit, &far, c))
            return false;
    n = taps * kernel->extent[1];
    far += (llabs(t->in[0].stride[1]) << c->shift) * kernel->extent[1] + llabs(kernel->stride[1]) * kernel->extent[1] +
           llabs(kernel->stride[0]) * 128;
    elements = b->groups * b->per_group;
    if (!is_near(taps) || !is_near(kernel->extent[1]) || n <= 0 || !is_near(n) || !is_near(columns) || columns <= 0 ||
        !is_near(far) || !is_near(t->out.size[1]) || elements <= 0)
        return false;
    c->taps = (int32_t)taps;
    c->n = (int32_t)n;
    c->columns = (int32_t)columns;
    c->places = (int32_t)b->places;
    c->begin = (int32_t)t->out.origin[1];
    c->end = (int32_t)(t->out.origin[1] + t->out.extent[1]);
    c->per_group = (int32_t)b->per_group;
    c->first = (int32_t)b->first;
    c->groups = (int32_t)b->groups;
    set_reading(t, b, in, c);
    return true;
}

static oly_status launch(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                         bool out_last, bool *launched)
{
    oly_cuda_convolve_task c;
    oly_convolve_blocks b = oly_convolve_divide(t);
    *launched = oly_enabled(OLY_OPTIMISATION_CONVOLUTION_TILES) && describe(t, &b, in, out, &c);
    if (!*launched)
        return OLY_OK;
    c.out_last = out_last;
    const shape *s = shape_of(t, &b, c.columns);
    const bool few = b.per_group < FEW_FEATURES, wide = t->out.dtype == OLY_FLOAT64;
    int64_t rows = t->out.extent[1];
    if (few) /* whatever their groups */
        b.groups = 1, b.per_group = rows;
    c.row_blocks = (int32_t)((b.per_group + s->features - 1) / s->features);
    c.strips = (int32_t)((c.columns + s->places - 1) / s->places);
    divide(s, &b, &c);
    if (c.parts > 1) {
        void *partial;
        OLY_TRY(l->scratch(l->context, (size_t)(c.parts * rows * c.columns) * (wide ? 8 : 4), &partial));
        c.partial = partial;
    }
    unsigned blocks = oly_cuda_blocks(l, blocks_of(s, &b, c.columns) * c.parts, 1);
    const char *kernel = kernel_of(s, t, &c);
    OLY_TRY(oly_cuda_start(l, "convolve_blocks", kernel, blocks, (unsigned)s->threads, &c, sizeof c));
    if (c.parts == 1)
        return OLY_OK;
    return oly_cuda_start(l, "convolve_blocks", wide ? "oly_convolve_add_f64" : "oly_convolve_add_f32",
                          oly_cuda_blocks(l, rows * c.columns, OLY_CUDA_THREADS), OLY_CUDA_THREADS, &c, sizeof c);
}

oly_status oly_cuda_convolve_blocks(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in,
                                    void *out, bool *launched)
{
    return launch(l, t, in, out, false, launched);
}

oly_status oly_cuda_convolve_last(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                                  bool *launched)
{
    *launched = false;
    return (uintptr_t)out % 16 == 0 ? launch(l, t, in, out, true, launched) : OLY_OK;
}
