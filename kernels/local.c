/* SPDX-License-Identifier: BSD-3-Clause */
/* The division of the work of local.h's kernels, from shapes alone, and the calls of the chosen instruction set's functions.
 * Called by the planner (numbers of chunks) and the interpreter. */
#include "local_table.h"
#include "core/min_max.h"
#include <string.h>

enum {
    MOST_CHUNKS = 16,
    ENOUGH_BYTES = 512,  /* of a piece of a row that a chunk updates */
    ENOUGH_WORK = 65536, /* element-operations worth a chunk: about 20 microseconds */
    LONG_LINE = 32768,   /* elements of a scanned line worth a part, of a sorted one worth a piece */
    MOST_PARTS = 16,
    FEW_UPDATED = 16,       /* elements that one index updates: reading it takes about as long */
    CACHED_BYTES = 1 << 23, /* of a result that stays in cache */
    FEW_THREADS = 3, /* that would each take about as long to find the indexes of their part as one takes to add all */
};

static const oly_local_table *table = &oly_local_base;
static oly_sparse_function *sparse = oly_sparse_run_base;
static oly_gathered_sum_function *gathered_sum = oly_gathered_sum_run_base;

void oly_local_choose(const char *isa)
{
    table = &oly_local_base;
    sparse = oly_sparse_run_base;
    gathered_sum = oly_gathered_sum_run_base;
#ifdef __x86_64__
    if (!strcmp(isa, "avx2")) {
        table = &oly_local_avx2;
        sparse = oly_sparse_run_avx2;
        gathered_sum = oly_gathered_sum_run_avx2;
    }
    if (!strcmp(isa, "avx512")) {
        table = &oly_local_avx512;
        sparse = oly_sparse_run_avx512;
        gathered_sum = oly_gathered_sum_run_avx512;
    }
#else
    (void)isa;
#endif
}

void oly_local_run(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase, int chunk,
                   int n_chunks)
{
    table->run[t->op](t, in, out, scratch, phase, chunk, n_chunks);
}

bool oly_sparse_run(const oly_sparse_task *t)
{
    return sparse(t);
}

bool oly_gathered_sum_run(const oly_gathered_sum_task *t)
{
    return gathered_sum(t);
}

/* -- kinds of work --------------------------------------------------------------------------------------------------- */

oly_local_way oly_local_way_of(oly_local_op op)
{
    static const oly_local_way ways[OLY_N_LOCAL_OPS] = {
        [OLY_LOCAL_SORT] = OLY_LOCAL_ORDERS,
        [OLY_LOCAL_ARGSORT] = OLY_LOCAL_ORDERS,
        [OLY_LOCAL_TOP_K] = OLY_LOCAL_LARGEST,
        [OLY_LOCAL_CUMSUM] = OLY_LOCAL_RUNS,
        [OLY_LOCAL_CUMPROD] = OLY_LOCAL_RUNS,
        [OLY_LOCAL_CUMMAX] = OLY_LOCAL_RUNS,
        [OLY_LOCAL_CUMMIN] = OLY_LOCAL_RUNS,
        [OLY_LOCAL_CUMLOGSUMEXP] = OLY_LOCAL_RUNS,
        [OLY_LOCAL_ARGMAX] = OLY_LOCAL_FINDS,
        [OLY_LOCAL_ARGMIN] = OLY_LOCAL_FINDS,
        [OLY_LOCAL_PICK] = OLY_LOCAL_FINDS,
        [OLY_LOCAL_SEARCHSORTED] = OLY_LOCAL_SEARCHES,
        [OLY_LOCAL_GATHER] = OLY_LOCAL_READS,
        [OLY_LOCAL_SCATTER] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_SCATTER_ADD] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_SCATTER_MUL] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_SCATTER_MIN] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_SCATTER_MAX] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_DYNAMIC_UPDATE] = OLY_LOCAL_WRITES,
        [OLY_LOCAL_DYNAMIC_SLICE] = OLY_LOCAL_CUTS,
        [OLY_LOCAL_LENGTHEN] = OLY_LOCAL_ARRANGES,
        [OLY_LOCAL_NUMBER] = OLY_LOCAL_ARRANGES,
        [OLY_LOCAL_TAKE] = OLY_LOCAL_ARRANGES,
    };
    return ways[op];
}

oly_dtype oly_local_running_dtype(oly_local_op op, oly_dtype elements)
{
    return op == OLY_LOCAL_CUMLOGSUMEXP ? OLY_FLOAT64 : oly_is_narrow(elements) ? OLY_FLOAT32 : elements;
}

bool oly_local_finds_smallest(oly_local_op op)
{
    return op == OLY_LOCAL_ARGMIN;
}

static bool slides(const oly_local_task *t)
{
    return t->op >= OLY_LOCAL_CONVOLVE;
}
static bool sorts(const oly_local_task *t)
{
    oly_local_way way = oly_local_way_of(t->op);
    return !slides(t) && (way == OLY_LOCAL_ORDERS || way == OLY_LOCAL_LARGEST); /* windows have no way of their own */
}
static bool runs(const oly_local_task *t)
{
    return oly_local_way_of(t->op) == OLY_LOCAL_RUNS;
}
static bool finds(const oly_local_task *t)
{
    return oly_local_way_of(t->op) == OLY_LOCAL_FINDS;
}
static bool scatters(const oly_local_task *t)
{
    return oly_local_way_of(t->op) == OLY_LOCAL_WRITES && t->op != OLY_LOCAL_DYNAMIC_UPDATE;
}

double oly_local_work_of(const oly_local_task *t)
{
    double out = (double)oly_local_count(&t->out, -1), in = (double)oly_local_count(&t->in[0], -1);
    if (slides(t)) {
        const bool convolves = t->op == OLY_LOCAL_CONVOLVE;
        for (int d = 0; d < t->window->rank; d++) /* taps between dilated elements are left out of convolutions */
            out *= (double)t->window->size[d] / (double)(convolves ? t->window->base_dilation[d] : 1);
        return convolves ? out * (double)t->in[1].extent[1] : out;
    }
    if (sorts(t)) {
        double steps = 1;
        for (int64_t n = 1; n < t->in[0].extent[t->dimension]; n *= 2)
            steps++;
        return in * steps;
    }
    if (scatters(t))
        return out + 4 * (double)oly_local_count(&t->in[t->n_in - 1], -1);
    if (t->op == OLY_LOCAL_SEARCHSORTED)
        return 16 * out;
    if (finds(t) || t->op == OLY_LOCAL_CUMLOGSUMEXP)
        return 2 * in;
    return runs(t) ? in : out;
}

/* -- division -------------------------------------------------------------------------------------------------------- */

int oly_scan_parts(const oly_local_task *t)
{
    int64_t n = t->in[0].extent[t->dimension], lines = oly_local_count(&t->out, t->dimension);
    return lines > MOST_PARTS || n < 2 * LONG_LINE ? 1 : (int)oly_smaller(MOST_PARTS, n / LONG_LINE);
}

int oly_sort_divisions(const oly_local_task *t)
{
    int64_t n = t->in[0].extent[t->dimension];
    bool is_complex = t->in[0].dtype == OLY_COMPLEX64 || t->in[0].dtype == OLY_COMPLEX128;
    bool packed = t->n_in == 1 && oly_element_bytes[t->in[0].dtype] <= 4 && n <= UINT32_MAX; /* cpu/sort_keys.h */
    int times = 0;
    if (is_complex || oly_local_count(&t->out, t->dimension) != 1 ||
        !(t->op == OLY_LOCAL_SORT || (t->op == OLY_LOCAL_ARGSORT && packed)))
        return 0;
    while (1 << times < OLY_SORT_PIECES && n >> times >= 2 * LONG_LINE)
        times++;
    return times;
}

/* Bytes of the consecutive elements from dimension d on. */
static int64_t row_bytes(const oly_local_task *t, int d)
{
    int64_t bytes = (int64_t)oly_element_bytes[t->out.dtype];
    for (; d < t->out.rank; d++)
        bytes *= t->out.extent[d];
    return bytes;
}

/* The first dimension that is long enough, preferring those that are not indexed unless chunks would get short pieces of
 * many rows; -1: rank 0. */
int oly_scatter_cut(const oly_local_task *t)
{
    int best = -1;
    for (int d = 0; d < t->out.rank; d++) {
        bool indexed = false;
        for (int a = 0; a < t->n_axes; a++)
            indexed = indexed || t->axes[a] == d;
        bool whole_rows = d < t->n_batch || row_bytes(t, d) >= (int64_t)MOST_CHUNKS * ENOUGH_BYTES;
        if (!indexed && whole_rows && t->out.extent[d] >= 4 * MOST_CHUNKS)
            return d;
        if (best < 0 || t->out.extent[d] > t->out.extent[best])
            best = d;
    }
    return best;
}

static bool cuts_indexed(const oly_local_task *t)
{
    int cut = oly_scatter_cut(t);
    for (int a = 0; a < t->n_axes; a++)
        if (t->axes[a] == cut)
            return true;
    return false;
}

/* Elements that one index updates. */
static int64_t updated_elements(const oly_local_task *t)
{
    const oly_local_operand *updates = &t->in[t->n_in - 1];
    return oly_local_count(updates, -1) / oly_larger(1, oly_local_count(&t->in[1], -1));
}

int oly_local_phases(const oly_local_task *t)
{
    int divisions = sorts(t) ? oly_sort_divisions(t) : 0;
    if (divisions > 0)
        return 1 + divisions + (t->op == OLY_LOCAL_SORT ? 2 : 1);
    bool places = t->op == OLY_LOCAL_DYNAMIC_UPDATE || (t->op == OLY_LOCAL_DYNAMIC_SLICE && t->partial && !t->keeps);
    return places || (runs(t) && oly_scan_parts(t) > 1) || oly_convolve_packs(t) ? 2 : 1;
}

/* The most parts of a task's result. */
static int64_t pieces(const oly_local_task *t)
{
    int64_t n = oly_local_count(&t->out, -1);
    if (sorts(t))
        return oly_local_count(&t->out, t->dimension);
    if (runs(t)) { /* fewer than blocks: see cpu/scan.c */
        int64_t lines = oly_local_count(&t->out, t->dimension);
        return lines < 16 ? 1 : lines / 8;
    }
    if (t->op == OLY_LOCAL_GATHER)
        return oly_local_count(&t->in[1], -1);
    if (t->op == OLY_LOCAL_CONVOLVE) {
        oly_convolve_blocks b = oly_convolve_divide(t);
        return b.batch * b.groups * b.row_blocks * b.strips;
    }
    if (slides(t))
        return (n + 255) / 256;
    if (scatters(t)) {
        int cut = oly_scatter_cut(t);
        return cut < 0 ? 1 : t->out.extent[cut];
    }
    return n;
}

/* Sums, smallest and largest of single elements in memory that stays in cache, straight from their indexes (cpu/scatter_direct.h). */
static bool combines_directly(const oly_local_task *t)
{
    bool known = t->op == OLY_LOCAL_SCATTER_ADD || t->op == OLY_LOCAL_SCATTER_MIN || t->op == OLY_LOCAL_SCATTER_MAX;
    int64_t bytes = oly_local_count(&t->out, -1) * oly_element_bytes[t->out.dtype];
    return known && t->n_axes == 1 && t->n_batch == 0 && updated_elements(t) == 1 && t->mode == OLY_INDEX_FILL &&
           bytes <= CACHED_BYTES;
}

int oly_local_chunks_worth(const oly_local_task *t, int chunks, int threads)
{
    bool all_read = scatters(t) && cuts_indexed(t) && updated_elements(t) <= FEW_UPDATED;
    if (all_read && threads <= FEW_THREADS && combines_directly(t))
        return oly_smaller(chunks, 1);
    return all_read && threads < chunks ? threads : chunks;
}

int oly_local_chunks(const oly_local_task *t, int phase)
{
    int64_t n = oly_local_count(&t->out, -1);
    if (n == 0 || phase >= oly_local_phases(t))
        return 0;
    if (runs(t) && oly_scan_parts(t) > 1)
        return oly_scan_parts(t);
    int divisions = sorts(t) ? oly_sort_divisions(t) : 0;
    if (divisions > 0)
        return phase == 0 ? OLY_SORT_PIECES : phase > 1 + divisions ? 1 : 1 << (phase - 1);
    int64_t chunks = oly_smaller(MOST_CHUNKS, (int64_t)(oly_local_work_of(t) / ENOUGH_WORK));
    if (t->op == OLY_LOCAL_DYNAMIC_UPDATE && phase == 1)
        chunks = oly_smaller(MOST_CHUNKS, oly_local_count(&t->in[1], -1) / ENOUGH_WORK);
    if (oly_convolve_packs(t) && phase == 0)
        chunks = oly_smaller(MOST_CHUNKS, oly_local_count(&t->in[1], -1) / ENOUGH_WORK);
    chunks = oly_smaller(chunks, pieces(t));
    if (scatters(t) && cuts_indexed(t)) /* each reads all indexes, which costs like a few elements of each row */
        chunks = oly_smaller(chunks, 4 + updated_elements(t) / 16);
    return chunks < 1 ? 1 : (int)chunks;
}

size_t oly_local_scratch(const oly_local_task *t)
{
    if (oly_local_count(&t->out, -1) == 0)
        return 0;
    if (sorts(t) && oly_sort_divisions(t) > 0)
        return oly_sort_room_bytes(t) + OLY_SORT_BORDERS_BYTES;
    if (sorts(t))
        return oly_partial_bytes(t) + oly_sort_room_bytes(t) * (size_t)oly_local_chunks(t, 0);
    if (finds(t))
        return oly_partial_bytes(t);
    if (runs(t) && oly_scan_parts(t) > 1)
        return (size_t)oly_scan_parts(t) * (size_t)oly_local_count(&t->out, t->dimension) *
               OLY_SCAN_CARRY; /* of at most as many blocks */
    if (oly_convolve_packs(t))
        return (size_t)oly_local_count(&t->in[1], -1) * oly_element_bytes[t->out.dtype];
    return 0;
}
