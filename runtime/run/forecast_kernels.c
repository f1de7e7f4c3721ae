/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels do for a task. See forecast.h. */
#include "run/forecast.h"
#include "run/measured_units.h"
#include <math.h>

enum { CACHE_LINE = 64 };

double oly_box_elements(int rank, const int64_t *extent)
{
    double n = 1;
    for (int d = 0; d < rank; d++)
        n *= (double)extent[d];
    return n;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void oly_add_work(oly_kernel_work *sum, const oly_kernel_work *more)
{
    sum->seconds += more->seconds;
    sum->read += more->read;
    sum->written += more->written;
    sum->copied += more->copied;
    sum->calls += more->calls;
}

/* -- memory ---------------------------------------------------------------------------------------------------------------- */

/* Between the working sets that were measured, in proportion to the logarithm. */
static double at_size(const double *rates, double bytes)
{
    double at = bytes > OLY_RATE_FIRST_SET ? log2(bytes / OLY_RATE_FIRST_SET) : 0;
    int k = (int)at;
    if (k >= OLY_RATE_SETS - 1)
        return rates[OLY_RATE_SETS - 1];
    return rates[k] + (at - k) * (rates[k + 1] - rates[k]);
}

/* What a step reads and writes has left the caches as if as many bytes of other arrays had passed since. */
static double stream_seconds(const oly_kernel_rates *r, const oly_kernel_work *w, bool all)
{
    double set = 2 * (w->read + w->written + w->copied);
    return w->read * at_size(r->stream[all][OLY_STREAM_READ], set) +
           w->written * at_size(r->stream[all][OLY_STREAM_WRITE], set) +
           w->copied * at_size(r->stream[all][OLY_STREAM_COPY], set);
}

/* What streams is fetched while the kernel computes: the longer of both. Fewer than all threads share less of the bandwidth. */
double oly_seconds_of_work(const oly_kernel_rates *r, const oly_kernel_work *w, double threads)
{
    double alone = stream_seconds(r, w, false), streaming = alone;
    if (threads > 1)
        streaming = larger(alone / threads, stream_seconds(r, w, true));
    return larger((w->seconds + w->calls) / threads, streaming);
}

/* -- elementwise ----------------------------------------------------------------------------------------------------------- */

double oly_seconds_of_instruction(const oly_kernel_rates *r, const oly_tile_instruction *c, bool machine)
{
    bool converts = c->op == OLY_TILE_convert || (c->op == OLY_TILE_copy && c->dtype != c->to);
    if (c->op == OLY_TILE_splat)
        return 0;
    if (machine) { /* comparisons and conversions take about as long as an operation */
        int wide = oly_dtype_size((oly_dtype)c->to) > oly_dtype_size((oly_dtype)c->dtype) ? c->to : c->dtype;
        double seconds = r->group[c->op][c->dtype], other = r->group[OLY_TILE_max][wide];
        if (seconds > 0 || c->op == OLY_TILE_iota || c->op == OLY_TILE_convert || c->op == OLY_TILE_copy ||
            (c->op >= OLY_TILE_eq && c->op <= OLY_TILE_ge))
            return seconds > 0 ? seconds : other;
    }
    return converts ? r->convert[c->dtype][c->to] : r->tile[c->op][c->op == OLY_TILE_iota ? c->to : c->dtype];
}

/* Is a matrix too large to stay in cache while it is transposed? */
static bool is_far(int64_t rows, int64_t columns, size_t bytes)
{
    enum { CACHE = 1 << 18 };
    return (double)rows * (double)columns * (double)bytes > CACHE;
}

/* Seconds for an element that is not next to others: the innermost dimension that is longer than 1 decides. */
static double spread_seconds(const oly_kernel_rates *r, const oly_tile_box *box, const oly_place *p, size_t bytes,
                             bool writes)
{
    int last = box->rank - 1;
    while (last >= 0 && box->extent[last] == 1)
        last--;
    if (last < 0 || (p->stride[last] >= -1 && p->stride[last] <= 1))
        return 0;
    for (int d = 0; d < last; d++)
        if (p->stride[d] == 1 && box->extent[d] > 1)
            return (writes ? r->transpose
                           : r->transposed_load)[bytes][is_far(box->extent[d], box->extent[last], bytes)];
    return r->copy_spread[bytes][writes];
}

/* The length of rows, dimensions merged along which every operand is evenly spaced. */
static double row_length(const oly_tile_program *program, const oly_tile_box *box, const oly_place *loads,
                         const oly_place *stores)
{
    double length = 1;
    int last = -1; /* the dimension with which the next one merges */
    for (int d = box->rank - 1; d >= 0; d--) {
        bool merges = true;
        if (box->extent[d] == 1)
            continue;
        for (int k = 0; last >= 0 && k < program->n_loads + program->n_stores; k++) {
            const oly_place *p = k < program->n_loads ? &loads[k] : &stores[k - program->n_loads];
            merges = merges && p->stride[d] == p->stride[last] * box->extent[last];
        }
        if (!merges)
            break;
        length *= (double)box->extent[d];
        last = d;
    }
    return length;
}

/* Rows that do not follow one another: short ones are gathered into blocks. */
static double row_seconds(const oly_kernel_rates *r, const oly_tile_program *program, const oly_tile_box *box,
                          const oly_place *loads, const oly_place *stores, bool machine)
{
    enum { SHORT_ROW = 64 }; /* as in kernels/cpu/tile.c */
    double n = oly_box_elements(box->rank, box->extent), length = row_length(program, box, loads, stores);
    double rows = n / larger(length, 1);
    if (rows <= 1)
        return 0;
    if (machine)
        return rows * r->group_row;
    return rows * (length < SHORT_ROW ? r->block_row * (program->n_loads + program->n_stores)
                                      : r->row * program->n_instructions);
}

double oly_place_bytes(const oly_tile_box *box, const oly_place *p, int dtype, double line)
{
    double size = (double)oly_dtype_size((oly_dtype)dtype), n = size;
    int64_t least = 0;
    for (int d = 0; d < box->rank; d++) {
        int64_t stride = p->stride[d] < 0 ? -p->stride[d] : p->stride[d];
        n *= stride == 0 ? 1 : (double)box->extent[d];
        if (stride > 0 && box->extent[d] > 1 && (least == 0 || stride < least))
            least = stride;
    }
    return least > 1 ? n * fmin((double)least, fmax(line / size, 1)) : n;
}

oly_kernel_work oly_work_of_tiles(const oly_kernel_rates *r, const oly_tile_program *program, const oly_tile_box *box,
                                  const oly_place *loads, const oly_place *stores, bool machine)
{
    double n = oly_box_elements(box->rank, box->extent), element = 0;
    oly_kernel_work w = {0};
    int operations = 0;
    for (int i = 0; i < program->n_instructions; i++)
        operations += program->instructions[i].op != OLY_TILE_splat && program->instructions[i].op != OLY_TILE_iota;
    machine = machine && operations >= 2;
    for (int i = 0; i < program->n_instructions; i++)
        element += oly_seconds_of_instruction(r, &program->instructions[i], machine);
    for (int k = 0; k < program->n_loads; k++) {
        element += spread_seconds(r, box, &loads[k], oly_dtype_size((oly_dtype)program->load_dtype[k]), false);
        w.read += oly_place_bytes(box, &loads[k], program->load_dtype[k], CACHE_LINE);
    }
    for (int k = 0; k < program->n_stores; k++) {
        element += spread_seconds(r, box, &stores[k], oly_dtype_size((oly_dtype)program->store_dtype[k]), true);
        w.written += oly_place_bytes(box, &stores[k], program->store_dtype[k], CACHE_LINE);
    }
    if (operations == 0 && program->n_loads == 0 && program->n_stores > 0) /* a fill */
        element += r->tile[OLY_TILE_splat][program->store_dtype[0]];
    w.seconds = n * element + row_seconds(r, program, box, loads, stores, machine);
    w.calls = n > 0 ? (machine ? r->group_box : r->box) * oly_tile_chunks(program, box) : 0;
    return w;
}

/* -- reductions ------------------------------------------------------------------------------------------------------------ */

oly_kernel_work oly_work_of_reduction(const oly_kernel_rates *r, const oly_reduce_task *t)
{
    double kept = 1, n = oly_box_elements(t->rank, t->extent);
    int last = t->rank - 1;
    for (int d = 0; d < t->rank; d++)
        kept *= t->reduced[d] ? 1 : (double)t->extent[d];
    while (last >= 0 && t->extent[last] == 1)
        last--;
    bool along = last < 0 || t->reduced[last];
    oly_dtype of = t->converts ? t->from : t->dtype;
    oly_kernel_work w = {.seconds = n * r->reduce[t->combiner][t->dtype][along ? OLY_ALONG : OLY_ACROSS],
                         .read = n * (double)oly_dtype_size(of),
                         .written = kept * (double)oly_dtype_size(t->dtype)};
    if (along)
        w.seconds += kept * r->reduce_line[t->combiner][t->dtype];
    if (t->converts)
        w.seconds += n * r->convert[t->from][t->dtype];
    if (last >= 0 && along && t->stride[last] > 1)
        w.seconds += n * r->copy_spread[oly_dtype_size(of)][0];
    return w;
}

/* -- products -------------------------------------------------------------------------------------------------------------- */

oly_kernel_work oly_work_of_product(const oly_kernel_rates *r, const oly_gemm_task *t)
{
    double batches = (double)t->batch, size = (double)oly_dtype_size(t->dtype);
    const double *rate = r->gemm[t->dtype];
    for (int k = 0; k < t->n_outer; k++)
        batches *= (double)t->outer[k];
    double m = (double)t->m, n = (double)t->n, terms = (double)t->k, work = m * n * terms, seconds;
    if (t->m < 4 || t->n < 4) {
        seconds = rate[OLY_PRODUCT_VECTOR];
    } else if ((t->m < 24 || t->n < 24) && work >= 32 * 32 * 32) {
        seconds = rate[OLY_PRODUCT_NARROW];
    } else if (t->k < 24 && work >= 32 * 32 * 32) {
        seconds = rate[OLY_PRODUCT_OUTER];
    } else if (work < 32 * 32 * 32) { /* by the logarithm of the side, too */
        double at = (log2(larger(work, 1)) / 3 - 3) / (log2(24) - 3);
        at = at < 0 ? 0 : at > 1 ? 1 : at;
        seconds = rate[OLY_PRODUCT_TINY] + at * (rate[OLY_PRODUCT_SMALL] - rate[OLY_PRODUCT_TINY]);
    } else { /* between the middle and the large one by the logarithm of the side */
        double at = (log2(work) / 3 - 6) / 2;
        at = at < 0 ? 0 : at > 1 ? 1 : at;
        seconds = rate[OLY_PRODUCT_MIDDLE] + at * (rate[OLY_PRODUCT_LARGE] - rate[OLY_PRODUCT_MIDDLE]);
    }
    double a = t->a_batch == 0 ? 1 : batches, b = t->b_batch == 0 ? 1 : batches;
    oly_kernel_work w = {.seconds = batches * work * seconds,
                         .read = (a * m * terms + b * n * terms) * size,
                         .written = batches * m * n * size};
    if (work >= 32 * 32 * 32 && (t->k < 24 || t->m < 24 || t->n < 24)) /* copied before little is computed with it */
        w.seconds += stream_seconds(r, &w, false);
    return w;
}

/* -- copies ---------------------------------------------------------------------------------------------------------------- */

oly_kernel_work oly_work_of_copy(const oly_kernel_rates *r, const oly_copy_task *t)
{
    double n = oly_box_elements(t->rank, t->extent), bytes = n * (double)t->element_bytes, row = 1;
    int last = t->rank - 1;
    while (last >= 0 && t->extent[last] == 1)
        last--;
    if (n == 0)
        return (oly_kernel_work){0};
    if (last >= 0 && t->from_stride[last] == 0) { /* a value repeated: in rows, or each on a line of the cache */
        bool apart = t->to_stride[last] != 1;
        double rows = n / (double)t->extent[last];
        return (oly_kernel_work){.seconds = apart ? n * r->copy_row : rows * r->copy_row, .written = bytes};
    }
    if (last >= 0 && (t->from_stride[last] != 1 || t->to_stride[last] != 1)) {
        double each = r->copy_spread[t->element_bytes][t->to_stride[last] != 1];
        for (int d = 0; d < last; d++)
            if (t->extent[d] > 1 && (t->from_stride[d] == 1 || t->to_stride[d] == 1))
                each = r->transpose[t->element_bytes][is_far(t->extent[d], t->extent[last], t->element_bytes)];
        return (oly_kernel_work){.seconds = n * each, .copied = 2 * bytes};
    }
    int64_t dense = 1;
    for (int d = last; d >= 0 && (t->extent[d] == 1 || (t->from_stride[d] == dense && t->to_stride[d] == dense)); d--)
        row *= (double)t->extent[d], dense *= t->extent[d];
    return (oly_kernel_work){.seconds = n / row * r->copy_row, .copied = 2 * bytes};
}

/* -- local operations ------------------------------------------------------------------------------------------------------ */

static double elements_of(const oly_local_operand *x)
{
    return oly_box_elements(x->rank, x->extent);
}

double oly_local_units(const oly_local_task *t)
{
    double in = elements_of(&t->in[0]), out = elements_of(&t->out);
    switch (oly_local_way_of(t->op)) {
    case OLY_LOCAL_ORDERS:
        if (t->op >= OLY_LOCAL_CONVOLVE) { /* which have no way of their own */
            for (int d = 0; d < t->window->rank; d++)
                out *= (double)t->window->size[d];
            return t->op == OLY_LOCAL_CONVOLVE ? out * (double)t->in[1].extent[1] : out;
        }
        return in * larger(log2((double)t->in[0].extent[t->dimension]), 1);
    case OLY_LOCAL_LARGEST:
    case OLY_LOCAL_RUNS:
    case OLY_LOCAL_FINDS: return in;
    case OLY_LOCAL_SEARCHES: return out * larger(log2((double)t->in[0].extent[t->in[0].rank - 1]), 1);
    case OLY_LOCAL_WRITES: return elements_of(&t->in[t->op == OLY_LOCAL_DYNAMIC_UPDATE ? 1 : t->n_in - 1]);
    default: return out;
    }
}

/* Indexes that are visited, and whether each stands for a row. */
static bool by_rows(const oly_local_task *t, double elements)
{
    return elements > 1.5 * elements_of(&t->in[1]);
}

oly_kernel_work oly_work_of_local(const oly_kernel_rates *r, const oly_local_task *t)
{
    oly_dtype dtype = t->in[0].dtype;
    double units = oly_local_units(t), size = (double)oly_dtype_size(dtype), table = elements_of(&t->in[0]) * size;
    double out = elements_of(&t->out) * (double)oly_dtype_size(t->out.dtype), more = 0;
    const double *rate = r->local[t->op][dtype];
    oly_local_way way = oly_local_way_of(t->op);
    bool slides = t->op >= OLY_LOCAL_CONVOLVE;
    int direction = OLY_ALONG;
    if (slides) {
        direction = t->op == OLY_LOCAL_CONVOLVE && t->in[1].extent[1] < 4 ? OLY_ACROSS : OLY_ALONG;
    } else if (way == OLY_LOCAL_ORDERS || way == OLY_LOCAL_LARGEST || way == OLY_LOCAL_RUNS) {
        for (int d = t->dimension + 1; d < t->in[0].rank; d++)
            direction = t->in[0].extent[d] > 1 ? OLY_ACROSS : direction;
    } else if (way == OLY_LOCAL_FINDS) {
        for (int d = t->n_axes ? t->axes[t->n_axes - 1] + 1 : t->in[0].rank; d < t->in[0].rank; d++)
            direction = t->in[0].extent[d] > 1 ? OLY_ACROSS : direction;
    } else if (way == OLY_LOCAL_READS || (way == OLY_LOCAL_WRITES && t->op != OLY_LOCAL_DYNAMIC_UPDATE)) {
        const double *far = way == OLY_LOCAL_READS ? r->far_gather : r->far_scatter;
        double indexes = elements_of(&t->in[1]);
        bool columns = t->n_axes > 0 && t->axes[t->n_axes - 1] == t->in[0].rank - 1; /* rows of one element */
        direction = by_rows(t, units) && !columns ? OLY_ACROSS : OLY_ALONG;
        more = indexes * larger(at_size(far, table) - far[0], 0);
    } else if (way == OLY_LOCAL_CUTS || way == OLY_LOCAL_ARRANGES) {
        return (oly_kernel_work){.copied = 2 * out};
    } else if (t->op == OLY_LOCAL_DYNAMIC_UPDATE) {
        return (oly_kernel_work){.copied = 2 * units * size};
    }
    double each = rate[direction] > 0 ? rate[direction] : rate[OLY_ALONG];
    if (slides && t->op != OLY_LOCAL_CONVOLVE && t->window->stride[t->window->rank - 1] > 1)
        each *= 2;                                          /* half of what is read is used */
    if (way == OLY_LOCAL_RUNS && oly_local_phases(t) > 1) { /* parts of lines: their results first */
        each *= 2;
        table *= 2;
    }
    bool random = way == OLY_LOCAL_READS || way == OLY_LOCAL_WRITES;
    return (oly_kernel_work){.seconds = units * each + more,
                             .read = random   ? units * size
                                     : slides ? 0
                                              : table,
                             .written = random ? units * size : out};
}
