/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of scatters: scatter.cu, scatter_counted.cu. How positions with the same place are found depends on their number and on that of places,
 * not on the result, which has the same bits each way. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include <string.h>

enum { FEW = 64 }; /* positions of a batch that each thread looks at, sooner than they are sorted */

/* What updates are combined with: operand 0's elements where its box is, elsewhere values that do not change a sum. */
static oly_status begin_part(const oly_cuda_launcher *l, const oly_local_task *t, const void *in, char *out)
{
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    oly_copy_task c = {.element_bytes = oly_element_bytes[x->dtype], .rank = x->rank};
    int64_t from = 0, to = 0, bytes = (int64_t)c.element_bytes;
    char zero[16];
    oly_combine_identity(OLY_COMBINE_SUM, x->dtype, zero, 1);
    OLY_TRY(oly_cuda_fill(l, c.element_bytes, oly_local_count(y, -1), out, zero));
    for (int d = 0; d < x->rank; d++) {
        int64_t begin = oly_larger(x->origin[d], y->origin[d]);
        int64_t end = oly_smaller(x->origin[d] + x->extent[d], y->origin[d] + y->extent[d]);
        if (end <= begin)
            return OLY_OK;
        c.extent[d] = end - begin;
        c.from_stride[d] = x->stride[d];
        c.to_stride[d] = y->stride[d];
        from += (begin - x->origin[d]) * x->stride[d];
        to += (begin - y->origin[d]) * y->stride[d];
    }
    return in ? oly_cuda_copy(l, &c, out + to * bytes, (const char *)in + from * bytes) : OLY_OK;
}

static void add_window(oly_cuda_scatter_task *s, int64_t extent, int64_t to, int64_t from)
{
    int last = s->window.rank - 1;
    s->n_window *= extent;
    if (extent == 1)
        return;
    if (last >= 0 && s->window.stride[last] == to * extent && s->window_from[last] == from * extent)
        s->window.extent[last] *= extent;
    else
        s->window.extent[last = s->window.rank++] = extent;
    s->window.stride[last] = to;
    s->window_from[last] = from;
}

static oly_cuda_scatter_task describe(const oly_local_task *t, const void *updates, void *out)
{
    static const int32_t combiners[] = {-1, OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MIN, OLY_COMBINE_MAX};
    const oly_local_operand *y = &t->out, *u = &t->in[t->n_in - 1], *index = &t->in[1];
    oly_cuda_scatter_task s = {.to = out,
                               .from = updates,
                               .n_window = 1,
                               .each = 1,
                               .dtype = (int32_t)y->dtype,
                               .combiner = combiners[t->op - OLY_LOCAL_SCATTER]};
    if (s.combiner >= 0)
        s.combiner = (int32_t)oly_cuda_combiner((oly_combiner)s.combiner, y->dtype);
    for (int d = 0; d < index->rank; d++) {
        oly_cuda_add_dimension(&s.position, index->extent[d], u->stride[d]);
        s.each *= d < t->n_batch ? 1 : index->extent[d];
    }
    int window = index->rank;
    for (int d = 0; d < y->rank; d++)
        if (!oly_cuda_is_indexed(t, d))
            add_window(&s, y->extent[d], y->stride[d], u->stride[window++]);
    return s;
}

static oly_status start(const oly_cuda_launcher *l, const char *kernel, oly_cuda_scatter_task *s, int64_t threads)
{
    enum { PERHAPS = 4 }; /* blocks of a processor where there may be nothing to do */
    const int64_t most = s->only_if ? (int64_t)l->processors * PERHAPS * OLY_CUDA_THREADS : threads;
    s->n = threads;
    return oly_cuda_start(l, "scatter", kernel, oly_cuda_blocks(l, oly_smaller(threads, most), OLY_CUDA_THREADS),
                          OLY_CUDA_THREADS, s, sizeof *s);
}

/* Integer sums, largest and smallest do not depend on the order of updates. */
static bool any_order(const oly_cuda_scatter_task *s)
{
    bool integer = s->dtype == OLY_INT32 || s->dtype == OLY_UINT32 || s->dtype == OLY_INT64 || s->dtype == OLY_UINT64;
    return integer &&
           (s->combiner == OLY_COMBINE_SUM || s->combiner == OLY_COMBINE_MIN || s->combiner == OLY_COMBINE_MAX);
}

/* -- kernels of a type ----------------------------------------------------------------------------------------------------------- */
/* Names for float32, float64, float16, bfloat16, and all others. */
enum { N_TYPED = 5 };
#define TYPED(name)                                                                                                    \
    {                                                                                                                  \
        name "_f32", name "_f64", name "_f16", name "_bf16", name "_any"                                               \
    }
static int typed(const oly_cuda_scatter_task *s)
{
    return s->dtype == OLY_FLOAT32    ? 0
           : s->dtype == OLY_FLOAT64  ? 1
           : s->dtype == OLY_FLOAT16  ? 2
           : s->dtype == OLY_BFLOAT16 ? 3
                                      : 4;
}
/* Windows that a warp computes together, which have no gaps: of others each element has a thread. */
static bool is_wide(const oly_cuda_scatter_task *s)
{
    return s->n_window >= 8 && s->position.rank == 1 && s->window.rank == 1 && s->window.stride[0] == 1 &&
           s->window_from[0] == 1;
}
/* The threads for n things, such as places: one for each element of a window, or warps for pieces of it. */
static int64_t threads_of(const oly_cuda_scatter_task *s, int64_t n)
{
    enum { WARP = 32 };
    int64_t pieces = (s->n_window + OLY_CUDA_SCATTER_SPAN - 1) / OLY_CUDA_SCATTER_SPAN;
    return n * (is_wide(s) ? WARP * pieces : s->n_window);
}

/* -- sorted positions ------------------------------------------------------------------------------------------------------------- */

static int bytes_of_keys(int64_t places)
{
    int bytes = 0;
    for (uint64_t most = (uint64_t)places; most; most >>= 8)
        bytes++;
    return bytes;
}

/* Combined with what is there: positions with the same place follow each other, in their order; many updates of one element are combined in
 * pieces first. */
static oly_status combine_sorted(const oly_cuda_launcher *l, oly_cuda_scatter_task *s)
{
    static const char *const chunks[2][N_TYPED] = {TYPED("oly_scatter_chunks"), TYPED("oly_scatter_chunk_rows")};
    static const char *const apply[2][N_TYPED] = {TYPED("oly_scatter_sorted"), TYPED("oly_scatter_sorted_rows")};
    const int64_t parts = 2 * ((s->count + OLY_CUDA_SCATTER_CHUNK - 1) / OLY_CUDA_SCATTER_CHUNK);
    const bool wide = is_wide(s);
    if (s->count > OLY_CUDA_SCATTER_CHUNK) {
        void *memory;
        OLY_TRY(l->scratch(l->context, (size_t)(parts * s->n_window) * oly_element_bytes[s->dtype], &memory));
        s->chunks = memory;
        OLY_TRY(start(l, chunks[wide][typed(s)], s, threads_of(s, parts)));
    }
    int64_t groups = (s->count + OLY_CUDA_SCATTER_GROUP - 1) / OLY_CUDA_SCATTER_GROUP;
    return start(l, apply[wide][typed(s)], s, threads_of(s, wide ? groups : s->count));
}

static oly_status apply_sorted(const oly_cuda_launcher *l, oly_cuda_scatter_task *s)
{
    return s->combiner >= 0 ? combine_sorted(l, s) : start(l, "oly_scatter_replace_sorted", s, s->count * s->n_window);
}

/* By their places as numbers of 8 bytes: few positions, or more elements than keys of 4 bytes tell apart. */
static oly_status sort_places(const oly_cuda_launcher *l, oly_cuda_scatter_task *s, int64_t elements)
{
    s->wide = elements >= UINT32_MAX;
    oly_cuda_sorter sorter = {.l = l, .lines = 1, .n = s->count, .wide = s->wide};
    oly_cuda_key key = {
        .base = s->place, .dtype = OLY_INT64, .kind = OLY_CUDA_KEY_PLACE, .step = 1, .bytes = bytes_of_keys(elements)};
    OLY_TRY(oly_cuda_order(&sorter, &key));
    s->order = sorter.numbers[sorter.now];
    s->sorted = sorter.keys[sorter.now];
    return apply_sorted(l, s);
}

/* -- keys: numbers of places ------------------------------------------------------------------------------------------------------ */

/* All places are multiples of this. */
static int64_t unit_of(const oly_local_task *t)
{
    int64_t unit = 0;
    for (int d = 0; d < t->out.rank; d++)
        for (int64_t other = oly_cuda_is_indexed(t, d) && t->out.extent[d] > 1 ? t->out.stride[d] : 0; other;) {
            int64_t rest = unit % other;
            unit = other;
            other = rest;
        }
    return unit ? unit : oly_larger(1, oly_local_count(&t->out, -1));
}

static oly_status start_counted(const oly_cuda_launcher *l, const char *kernel, oly_cuda_count_task *c, int64_t threads)
{
    c->updates.n = threads;
    return oly_cuda_start(l, "scatter_counted", kernel, oly_cuda_blocks(l, threads, OLY_CUDA_THREADS), OLY_CUDA_THREADS,
                          c, sizeof *c);
}

static size_t in_lines(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}
/* Memory for keys, and, if they are counted, for all else. */
static oly_status reserve(const oly_cuda_launcher *l, oly_cuda_count_task *c, bool counted)
{
    static const uint64_t zero;
    const size_t n = (size_t)c->updates.count;
    const size_t keys = in_lines(n * sizeof *c->keys), counts = in_lines((size_t)(c->places + 1) * sizeof *c->counts);
    void *at;
    OLY_TRY(l->scratch(l->context, keys + (counted ? 256 + 2 * counts + keys + in_lines(n) : 0), &at));
    char *memory = at;
    c->keys = at;
    if (!counted)
        return OLY_OK;
    c->state = (uint32_t *)(void *)(memory += keys);
    c->counts = (uint32_t *)(void *)(memory + 256);
    c->starts = (uint32_t *)(void *)(memory + 256 + counts);
    c->order = (uint32_t *)(void *)(memory + 256 + 2 * counts);
    c->ranks = (uint8_t *)(memory + 256 + 2 * counts + keys);
    return oly_cuda_fill(l, sizeof zero, (int64_t)((256 + counts) / sizeof zero), memory, &zero);
}

static oly_status sort_keys(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    oly_cuda_scatter_task *s = &c->updates;
    s->only_if = c->state;
    OLY_TRY(oly_cuda_order_numbers(l, c->keys, s->count, bytes_of_keys(c->places), c->state, &s->sorted, &s->order));
    return apply_sorted(l, s);
}

/* The last position of each place replaces what is there. */
static oly_status replace_last(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    OLY_TRY(reserve(l, c, true));
    OLY_TRY(start_counted(l, "oly_scatter_last", c, c->updates.count));
    if (c->places <= 2 * c->updates.count)
        return start_counted(l, "oly_scatter_replace_places", c, c->places * c->updates.n_window);
    return start_counted(l, "oly_scatter_replace_last", c, c->updates.count * c->updates.n_window);
}

/* Where a place has too many positions, that is known only on the device: what sorts them is launched, too. */
static oly_status combine_linked(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    static const char *const linked[N_TYPED] = TYPED("oly_scatter_linked");
    oly_cuda_scatter_task *s = &c->updates;
    OLY_TRY(reserve(l, c, true));
    OLY_TRY(start_counted(l, "oly_scatter_link", c, s->count));
    OLY_TRY(start_counted(l, linked[typed(s)], c, threads_of(s, c->places)));
    OLY_TRY(start_counted(l, "oly_scatter_crowded", c,
                          oly_smaller(s->count, (int64_t)l->processors * 4 * OLY_CUDA_THREADS)));
    return sort_keys(l, c);
}
static oly_status combine_counted(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    enum { FEW_EACH = 4 };
    static const char *const arranged[N_TYPED] = TYPED("oly_scatter_arranged");
    static const char *const rows[N_TYPED] = TYPED("oly_scatter_counted_rows");
    oly_cuda_scatter_task *s = &c->updates;
    const bool wide = is_wide(s);
    if (!wide && s->count <= FEW_EACH * c->places)
        return combine_linked(l, c);
    OLY_TRY(reserve(l, c, true));
    OLY_TRY(start_counted(l, "oly_scatter_count", c, s->count));
    OLY_TRY(start_counted(l, "oly_scatter_allocate", c, (c->places + 4) / 4));
    OLY_TRY(start_counted(l, "oly_scatter_list", c, (s->count + 3) / 4));
    OLY_TRY(start_counted(l, "oly_scatter_arrange", c, c->places * 32));
    OLY_TRY(start_counted(l, (wide ? rows : arranged)[typed(s)], c, threads_of(s, c->places)));
    return sort_keys(l, c);
}

/* Worth counting: not so few places that sorting by one digit tells them apart, or that most have too many positions; nor so many that their counters
 * are most of the work. */
static bool is_counted(const oly_cuda_count_task *c)
{
    const int64_t n = c->updates.count;
    return c->places <= 8 * n && (c->updates.combiner < 0 || (c->places > 255 && n <= 64 * c->places));
}

static oly_status apply_keys(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    if (is_counted(c))
        return c->updates.combiner < 0 ? replace_last(l, c) : combine_counted(l, c);
    OLY_TRY(reserve(l, c, false));
    OLY_TRY(start_counted(l, "oly_scatter_keys", c, c->updates.count));
    return sort_keys(l, c);
}

/* Integers in any order. */
static oly_status apply_atomically(const oly_cuda_launcher *l, oly_cuda_count_task *c)
{
    enum { BUSY = 4 }; /* blocks of a processor, each with bins of its own */
    oly_cuda_scatter_task *s = &c->updates;
    const int64_t blocks = (s->count + 4 * OLY_CUDA_THREADS - 1) / (4 * OLY_CUDA_THREADS);
    s->n = s->count * s->n_window;
    if (oly_element_bytes[s->dtype] == 4 && s->combiner == OLY_COMBINE_SUM && s->n_window == 1 &&
        c->places <= OLY_CUDA_SCATTER_BINS && s->count > 8 * c->places)
        return oly_cuda_start(l, "scatter_atomic", "oly_scatter_bins",
                              oly_cuda_blocks(l, oly_smaller(blocks, (int64_t)l->processors * BUSY), 1),
                              OLY_CUDA_THREADS, c, sizeof *c);
    return oly_cuda_start(l, "scatter_atomic", "oly_scatter_atomic", oly_cuda_blocks(l, s->n, OLY_CUDA_THREADS),
                          OLY_CUDA_THREADS, c, sizeof *c);
}

oly_status oly_cuda_scatter(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                            void *scratch)
{
    (void)scratch;
    oly_cuda_scatter_task s = describe(t, in[t->n_in - 1], out);
    const int64_t elements = oly_local_count(&t->out, -1);
    int64_t *places;
    OLY_TRY(t->partial ? begin_part(l, t, in[0], out) : oly_cuda_copy_operand(l, t, in[0], out));
    s.count = oly_local_count(&t->in[1], -1);
    s.unit = unit_of(t);
    if (s.count == 0 || s.n_window == 0)
        return OLY_OK;
    oly_cuda_count_task c = {
        .index = oly_cuda_describe_places(t, in), .places = (elements - 1) / s.unit + 1, .unit = s.unit, .updates = s};
    if (any_order(&s))
        return apply_atomically(l, &c);
    if (s.count > OLY_CUDA_SORT_TILE && s.count < INT32_MAX && s.each > FEW && c.places < UINT32_MAX - 1)
        return apply_keys(l, &c);
    s.unit = 1;
    OLY_TRY(oly_cuda_find_places(l, t, in, &s.count, &places));
    s.place = places;
    if (s.each <= FEW || s.count > UINT32_MAX / 2)
        return start(l, s.combiner < 0 ? "oly_scatter_replace_few" : "oly_scatter_few", &s,
                     s.count / s.each * s.n_window);
    return sort_places(l, &s, elements);
}
