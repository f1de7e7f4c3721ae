/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels of GPUs take for a task. See forecast_gpu.h. */
#include "run/cuda/forecast_gpu.h"
#include "run/forecast.h"
#include "run/measured_units.h"
#include <math.h>
#include <string.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Multiprocessors begin and end one after the other. */
double oly_gpu_kernel_seconds(const oly_gpu_rates *r, double bytes, double clocks)
{
    double rate = bytes < r->cache ? r->memory * OLY_GPU_IN_CACHE : r->memory;
    double seconds = larger(bytes / rate, clocks / r->lanes);
    return seconds > 0 ? r->start + seconds + fmin(seconds, r->ramp) : 0;
}

/* Elements at a rate of a multiprocessor's clock, as clocks of lanes. */
static double at_rate(double elements, double in_a_clock)
{
    return elements / in_a_clock * 128;
}

/* -- elementwise ----------------------------------------------------------------------------------------------------------- */

/* Does it read or write across the lines in which the others lie? */
static bool is_transposed(const oly_tile_box *box, const int64_t *stride)
{
    int last = box->rank - 1;
    while (last >= 0 && box->extent[last] == 1)
        last--;
    for (int d = 0; d < last; d++)
        if (box->extent[d] > 1 && stride[d] == 1 && stride[last] != 0)
            return true;
    return false;
}

double oly_gpu_place_bytes(const oly_tile_box *box, const oly_place *p, int dtype)
{
    return oly_place_bytes(box, p, dtype, OLY_GPU_SECTOR);
}

double oly_gpu_program_clocks(const oly_tile_program *program)
{
    double clocks = program->n_loads + program->n_stores;
    for (int k = 0; k < program->n_instructions; k++)
        clocks += oly_gpu_clocks(&program->instructions[k]);
    return clocks;
}

/* Is what load k reads also read by one before it? Loads at other offsets find it in the cache. */
static bool is_read_again(const oly_tile_work *w, int k)
{
    for (int j = 0; j < k; j++)
        if (w->loads[j].base == w->loads[k].base &&
            memcmp(w->loads[j].stride, w->loads[k].stride, sizeof(int64_t) * (size_t)w->box.rank) == 0)
            return true;
    return false;
}

double oly_gpu_tile_seconds(const oly_gpu_rates *r, const oly_tile_program *program, const oly_tile_work *w)
{
    double bytes = 0;
    bool turned = false;
    for (int k = 0; k < program->n_loads; k++) {
        bytes += is_read_again(w, k) ? 0 : oly_gpu_place_bytes(&w->box, &w->loads[k], program->load_dtype[k]);
        turned = turned || is_transposed(&w->box, w->loads[k].stride);
    }
    for (int k = 0; k < program->n_stores; k++) {
        bytes += oly_gpu_place_bytes(&w->box, &w->stores[k], program->store_dtype[k]);
        turned = turned || is_transposed(&w->box, w->stores[k].stride);
    }
    return oly_gpu_kernel_seconds(r, turned ? bytes / OLY_GPU_TRANSPOSED : bytes,
                                  oly_box_elements(w->box.rank, w->box.extent) * oly_gpu_program_clocks(program));
}

/* -- reductions ------------------------------------------------------------------------------------------------------------ */

double oly_gpu_reduce_seconds(const oly_gpu_rates *r, const oly_reduce_task *t)
{
    double kept = 1, n = oly_box_elements(t->rank, t->extent);
    oly_dtype of = t->converts ? t->from : t->dtype;
    double size = (double)oly_dtype_size(of);
    int last = t->rank - 1;
    for (int d = 0; d < t->rank; d++)
        kept *= t->reduced[d] ? 1 : (double)t->extent[d];
    while (last >= 0 && t->extent[last] == 1)
        last--;
    bool along = last < 0 || t->reduced[last];
    double share = along ? OLY_GPU_REDUCE_ALONG : OLY_GPU_REDUCE_ACROSS;
    bool in_parts = kept < OLY_REDUCE_PARTS && n > 1 << 16; /* a second kernel combines them */
    if (in_parts)
        share = OLY_GPU_REDUCE_WHOLE;
    double bytes = n * size / share + kept * (double)oly_dtype_size(t->dtype);
    double clocks = size == 1 ? at_rate(n, OLY_GPU_REDUCED_BYTES) : 2 * n;
    return oly_gpu_kernel_seconds(r, bytes, clocks) + (in_parts ? r->start : 0);
}

/* -- products -------------------------------------------------------------------------------------------------------------- */

/* The share of multiprocessors that have something to do: results are computed in tiles, few of them also divided along the terms, and all
 * finish theirs together. */
static double share_at_work(const oly_gpu_rates *r, double batches, double m, double n, double terms)
{
    enum { TERMS = 256 };
    static const struct {
        double side, share;
    } tiles[] = {{128, 1}, {64, 0.9}, {32, 0.6}};
    double most = 0;
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) {
        double count = batches * ceil(m / tiles[k].side) * ceil(n / tiles[k].side);
        double filled = batches * m * n / (count * tiles[k].side * tiles[k].side);
        count *= count < 2 * r->processors ? larger(floor(terms / TERMS), 1) : 1;
        double waves = count / (ceil(count / r->processors) * r->processors);
        most = larger(most, tiles[k].share * waves * filled);
    }
    return most;
}

double oly_gpu_product_seconds(const oly_gpu_rates *r, const oly_gemm_task *t)
{
    enum { LARGE = 32 * 32 * 32, FEW = 16 };
    double batches = (double)t->batch, size = (double)oly_dtype_size(t->dtype);
    for (int k = 0; k < t->n_outer; k++)
        batches *= (double)t->outer[k];
    double m = (double)t->m, n = (double)t->n, terms = (double)t->k, work = m * n * terms;
    double parts = t->dtype == OLY_COMPLEX64 || t->dtype == OLY_COMPLEX128 ? 4 : 1;
    double a = t->a_batch == 0 ? 1 : batches, b = t->b_batch == 0 ? 1 : batches;
    double bytes = (a * m * terms + b * n * terms + batches * m * n) * size, flops = 2 * batches * work * parts;
    bool library = r->product[t->dtype] > 0 && work >= LARGE;
    double rate =
        library ? r->product[t->dtype] : r->flops32 * (work < LARGE ? OLY_GPU_SMALL_PRODUCT : OLY_GPU_OWN_PRODUCT);
    if (bytes == 0)
        return 0;
    if (t->m < 4 || t->n < 4)
        return r->start + bytes / (r->memory * (t->m == 1 && t->n == 1 ? OLY_GPU_DOT_PRODUCT : OLY_GPU_VECTOR_PRODUCT));
    if (work >= LARGE) /* sums of integers are exact in any order */
        rate *= share_at_work(r, batches, m, n, library || oly_dtype_kind(t->dtype) == OLY_KIND_INTEGER ? terms : 0);
    return (library ? OLY_GPU_LIBRARY : r->start) +
           larger(bytes / (r->memory * (t->k < FEW ? OLY_GPU_OUTER_PRODUCT : 1)), flops / rate);
}

/* -- copies ---------------------------------------------------------------------------------------------------------------- */

static bool is_dense(int rank, const int64_t *extent, const int64_t *stride)
{
    int64_t expected = 1;
    for (int d = rank - 1; d >= 0; expected *= extent[d--])
        if (extent[d] > 1 && stride[d] != expected)
            return false;
    return true;
}

static bool is_one(int rank, const int64_t *extent, const int64_t *stride)
{
    for (int d = 0; d < rank; d++)
        if (extent[d] != 1 && stride[d] != 0)
            return false;
    return true;
}

double oly_gpu_copy_seconds(const oly_gpu_rates *r, const oly_copy_task *t)
{
    oly_tile_box box = {.rank = t->rank};
    double n = oly_box_elements(t->rank, t->extent), bytes = 2 * n * (double)t->element_bytes;
    for (int d = 0; d < t->rank; d++)
        box.extent[d] = t->extent[d];
    bool turned = is_transposed(&box, t->from_stride) || is_transposed(&box, t->to_stride);
    bool dense = is_dense(t->rank, t->extent, t->from_stride) && is_dense(t->rank, t->extent, t->to_stride);
    if (is_one(t->rank, t->extent, t->from_stride) && is_dense(t->rank, t->extent, t->to_stride))
        return oly_gpu_kernel_seconds(r, bytes / 2, 0); /* one element, everywhere */
    return oly_gpu_kernel_seconds(r, turned ? bytes / OLY_GPU_TRANSPOSED : bytes,
                                  dense || turned ? 0 : at_rate(n, OLY_GPU_COPIED));
}

/* -- local operations ------------------------------------------------------------------------------------------------------ */

static double elements_of(const oly_local_operand *x)
{
    return oly_box_elements(x->rank, x->extent);
}

static double bytes_of(const oly_local_operand *x)
{
    return elements_of(x) * (double)oly_dtype_size(x->dtype);
}

static double own_bytes(const oly_local_task *t)
{
    double bytes = bytes_of(&t->out);
    for (int k = 0; k < t->n_in; k++)
        bytes += bytes_of(&t->in[k]);
    return bytes;
}

static bool is_across(const oly_local_operand *x, int dimension)
{
    for (int d = dimension + 1; d < x->rank; d++)
        if (x->extent[d] > 1)
            return true;
    return false;
}

/* Radix sorts: long lines are read for the counts of all digits, then read and written for each of eight bits. */
static double sort_seconds(const oly_gpu_rates *r, double elements, double length, double passes, double bytes,
                           bool numbered)
{
    if (length <= 2048)
        return oly_gpu_kernel_seconds(r, 2 * bytes, at_rate(elements, OLY_GPU_SORTED_SHORT) * passes);
    double clocks = at_rate(elements, numbered ? OLY_GPU_SORTED_NUMBERED : OLY_GPU_SORTED_PASS);
    return oly_gpu_kernel_seconds(r, bytes, 0) + passes * oly_gpu_kernel_seconds(r, 2 * bytes, clocks);
}

static double order_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    const oly_local_operand *x = &t->in[0];
    double passes = 0;
    bool numbered = t->op != OLY_LOCAL_SORT; /* positions travel along */
    for (int k = 0; k < (t->op == OLY_LOCAL_ARGSORT ? t->n_in : 1); k++)
        passes += (double)oly_dtype_size(t->in[k].dtype);
    return sort_seconds(r, elements_of(x), (double)x->extent[t->dimension], passes,
                        bytes_of(x) + (numbered ? 4 : 0) * elements_of(x), numbered) +
           (is_across(x, t->dimension) ? 2 * oly_gpu_kernel_seconds(r, 2 * bytes_of(x), 0) : 0);
}

/* Types whose lines are scanned in tiles, in one pass over memory (kernels/cuda/scan_tiles.cu). */
static bool is_tiled(const oly_local_task *t)
{
    switch (t->in[0].dtype) {
    case OLY_FLOAT32:
    case OLY_FLOAT64:
    case OLY_INT32:
    case OLY_INT64: return t->op != OLY_LOCAL_CUMLOGSUMEXP;
    case OLY_FLOAT16:
    case OLY_BFLOAT16: return t->op == OLY_LOCAL_CUMSUM;
    default: return false;
    }
}

static double running_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    enum { SHORT = 512, MANY = 1024 };
    const oly_local_operand *x = &t->in[0];
    double n = elements_of(x), length = (double)x->extent[t->dimension], rate = OLY_GPU_RUNNING_ALONG;
    if (!is_across(x, t->dimension) && length > SHORT && is_tiled(t))
        return oly_gpu_kernel_seconds(
            r, 2 * bytes_of(x) / (n / length < MANY ? OLY_GPU_RUNNING_LONG : OLY_GPU_RUNNING_ROWS), 0);
    if (t->op == OLY_LOCAL_CUMLOGSUMEXP)
        rate = OLY_GPU_RUNNING_LOGS;
    else if (is_across(x, t->dimension))
        rate = OLY_GPU_RUNNING_OVER;
    return oly_gpu_kernel_seconds(r, 3 * bytes_of(x), at_rate(n, rate)) + r->start;
}

/* Whole warps read rows; threads find those of short rows, and across. */
static double find_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    enum { ROW = 64 };
    const oly_local_operand *x = &t->in[0];
    double n = elements_of(x), length = n / larger(elements_of(&t->out), 1);
    bool along = t->n_axes > 0 && !is_across(x, t->axes[t->n_axes - 1]) && length > ROW;
    return along ? oly_gpu_kernel_seconds(r, own_bytes(t) / OLY_GPU_FOUND, 0)
                 : oly_gpu_kernel_seconds(r, own_bytes(t), at_rate(n, OLY_GPU_FOUND_APART)) + r->start;
}

/* Rows are read whole; single elements cost what lies around them. */
static double gather_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    const oly_local_operand *x = &t->in[0];
    double indexes = 0, out = elements_of(&t->out), size = (double)oly_dtype_size(x->dtype);
    for (int k = 1; k < t->n_in; k++)
        indexes += bytes_of(&t->in[k]);
    bool own = t->n_in > 1 && elements_of(&t->in[1]) >= out;
    bool single = t->n_axes > 0 && t->axes[t->n_axes - 1] == x->rank - 1;
    return oly_gpu_kernel_seconds(r,
                                  out * (!single ? size
                                         : own   ? OLY_GPU_PICKED
                                                 : OLY_GPU_GATHERED) +
                                      out * size + indexes,
                                  2 * out);
}

/* Sums, largest and smallest of integers are atomic. */
static bool is_atomic(const oly_local_task *t)
{
    oly_dtype d = t->out.dtype;
    return (d == OLY_INT32 || d == OLY_UINT32 || d == OLY_INT64 || d == OLY_UINT64) && t->op != OLY_LOCAL_SCATTER &&
           t->op != OLY_LOCAL_SCATTER_MUL;
}

/* Without sorting: launch_scatter.c. */
static double counted_seconds(const oly_gpu_rates *r, const oly_local_task *t, double positions)
{
    enum { WIDE = 8 };
    double updates = elements_of(&t->in[t->n_in - 1]), bytes = bytes_of(&t->in[t->n_in - 1]);
    bool wide = updates >= WIDE * positions;
    double sectors = t->op == OLY_LOCAL_SCATTER ? OLY_GPU_REPLACED : wide ? OLY_GPU_COUNTED : OLY_GPU_LINKED;
    int launches = t->op == OLY_LOCAL_SCATTER ? 2 : OLY_GPU_PLACE_KERNELS;
    return oly_gpu_kernel_seconds(r, positions * sectors * OLY_GPU_SECTOR + (wide ? OLY_GPU_ROWS_ADDED * bytes : 0),
                                  0) +
           launches * r->start;
}

/* Updates that are sorted by their places are combined one after the other, in chunks if there are many of an element. */
static double scatter_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    enum { CHUNK = 256, SHORT = 2048, BINS = 8192 };
    const oly_local_operand *to = &t->in[0], *updates = &t->in[t->n_in - 1];
    double places = t->n_in > 1 ? elements_of(&t->in[1]) : 0, bits = log2(larger(elements_of(to), 2));
    double seconds = oly_gpu_kernel_seconds(r, 2 * bytes_of(to), 0);
    bool bins = elements_of(to) <= BINS && elements_of(updates) > 8 * elements_of(to);
    if (is_atomic(t))
        return seconds +
               oly_gpu_kernel_seconds(r, bytes_of(updates),
                                      at_rate(elements_of(updates), OLY_GPU_ATOMIC * (bins ? OLY_GPU_BINNED : 1)));
    double each = places * elements_of(to) / larger(elements_of(updates), 1); /* how many places there are */
    if (places > SHORT && each > places / 64 && each < 8 * places && (each > 255 || t->op == OLY_LOCAL_SCATTER))
        return seconds + counted_seconds(r, t, places);
    double apart = elements_of(updates) > 1.5 * places ? 3 * bytes_of(updates) : places * 2 * OLY_GPU_SECTOR;
    double of_one = elements_of(updates) / larger(elements_of(to), 1);
    double in_turn = t->op == OLY_LOCAL_SCATTER ? 1 : fmin(of_one, CHUNK) + of_one / CHUNK;
    return seconds + sort_seconds(r, places, places, ceil(bits / 8), 8 * places, true) +
           OLY_GPU_SCATTERED * oly_gpu_kernel_seconds(r, apart + bytes_of(updates), 0) + in_turn * OLY_GPU_UPDATE;
}

static double window_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    enum { FEW = 8 };
    double taps = 1, out = elements_of(&t->out);
    for (int d = 0; d < t->window->rank; d++)
        taps *= (double)t->window->size[d];
    bool by_columns = t->window->rank <= 2 && (t->out.dtype == OLY_FLOAT32 || t->out.dtype == OLY_FLOAT64 ||
                                               t->out.dtype == OLY_INT32); /* launch_window.c */
    if (t->op != OLY_LOCAL_CONVOLVE)
        return oly_gpu_kernel_seconds(r, own_bytes(t),
                                      at_rate(out * taps, by_columns ? OLY_GPU_WINDOWED_BELOW : OLY_GPU_WINDOWED));
    double features = (double)t->in[1].extent[1];
    double group = (double)t->in[1].extent[0] / larger((double)t->window->groups, 1);
    double clocks = group >= FEW ? 2 * out * taps * features / (r->flops32 * OLY_GPU_CONVOLUTION) * r->lanes
                                 : at_rate(out * taps * features, OLY_GPU_TAPS);
    return oly_gpu_kernel_seconds(r, own_bytes(t), clocks);
}

double oly_gpu_local_seconds(const oly_gpu_rates *r, const oly_local_task *t)
{
    enum { LONG = 64 };
    const oly_local_operand *x = &t->in[0];
    if (t->op >= OLY_LOCAL_CONVOLVE)
        return window_seconds(r, t);
    switch (oly_local_way_of(t->op)) {
    case OLY_LOCAL_ORDERS:
    case OLY_LOCAL_LARGEST: return order_seconds(r, t);
    case OLY_LOCAL_RUNS: return running_seconds(r, t);
    case OLY_LOCAL_FINDS: return find_seconds(r, t);
    case OLY_LOCAL_SEARCHES: {
        double steps = log2(larger((double)x->extent[x->rank - 1], 2));
        return oly_gpu_kernel_seconds(r, own_bytes(t) + elements_of(&t->out) * steps * OLY_GPU_SECTOR / 2, 0);
    }
    case OLY_LOCAL_READS: return gather_seconds(r, t);
    case OLY_LOCAL_WRITES:
        return t->op != OLY_LOCAL_DYNAMIC_UPDATE
                   ? scatter_seconds(r, t)
                   : oly_gpu_kernel_seconds(r, 2 * bytes_of(x), 0) +
                         oly_gpu_kernel_seconds(r, 2 * bytes_of(&t->in[1]),
                                                at_rate(elements_of(&t->in[1]), OLY_GPU_CUT));
    case OLY_LOCAL_CUTS: { /* rows that are long enough are copied by blocks */
        bool rows = !t->partial && t->n_batch == 0 && t->out.extent[t->out.rank - 1] >= LONG;
        return oly_gpu_kernel_seconds(r, 2 * bytes_of(&t->out), rows ? 0 : at_rate(elements_of(&t->out), OLY_GPU_CUT));
    }
    default: return oly_gpu_kernel_seconds(r, own_bytes(t), 0);
    }
}
