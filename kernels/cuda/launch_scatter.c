/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of scatters: scatter.cu. */
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
    s->n = threads;
    return oly_cuda_start(l, "scatter", kernel, oly_cuda_blocks(l, threads, OLY_CUDA_THREADS), OLY_CUDA_THREADS, s,
                          sizeof *s);
}

/* Integer sums, largest and smallest do not depend on the order of updates. */
static bool any_order(const oly_cuda_scatter_task *s)
{
    bool integer = s->dtype == OLY_INT32 || s->dtype == OLY_UINT32 || s->dtype == OLY_INT64 || s->dtype == OLY_UINT64;
    return integer &&
           (s->combiner == OLY_COMBINE_SUM || s->combiner == OLY_COMBINE_MIN || s->combiner == OLY_COMBINE_MAX);
}

/* Positions with the same place follow each other, in their order. `elements`: of the result. */
static oly_status sort_positions(const oly_cuda_launcher *l, oly_cuda_scatter_task *s, int64_t elements)
{
    s->wide = elements >= UINT32_MAX;
    oly_cuda_sorter sorter = {.l = l, .lines = 1, .n = s->count, .wide = s->wide};
    oly_cuda_key key = {.base = s->place, .dtype = OLY_INT64, .kind = OLY_CUDA_KEY_PLACE, .step = 1};
    for (uint64_t most = (uint64_t)elements; most; most >>= 8)
        key.bytes++;
    OLY_TRY(oly_cuda_order(&sorter, &key));
    s->order = sorter.numbers[sorter.now];
    s->sorted = sorter.keys[sorter.now];
    return OLY_OK;
}

/* Many updates of one element are combined in pieces first. */
static oly_status combine_chunks(const oly_cuda_launcher *l, oly_cuda_scatter_task *s)
{
    int64_t parts = 2 * ((s->count + OLY_CUDA_SCATTER_CHUNK - 1) / OLY_CUDA_SCATTER_CHUNK);
    void *memory;
    if (s->count <= OLY_CUDA_SCATTER_CHUNK)
        return OLY_OK;
    OLY_TRY(l->scratch(l->context, (size_t)(parts * s->n_window) * oly_element_bytes[s->dtype], &memory));
    s->chunks = memory;
    return start(l, "oly_scatter_chunks", s, parts * s->n_window);
}

oly_status oly_cuda_scatter(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                            void *scratch)
{
    (void)scratch;
    oly_cuda_scatter_task s = describe(t, in[t->n_in - 1], out);
    int64_t *places;
    OLY_TRY(t->partial ? begin_part(l, t, in[0], out) : oly_cuda_copy_operand(l, t, in[0], out));
    if (oly_local_count(&t->in[1], -1) == 0 || s.n_window == 0)
        return OLY_OK;
    OLY_TRY(oly_cuda_find_places(l, t, in, &s.count, &places));
    s.place = places;
    if (any_order(&s))
        return start(l, "oly_scatter_atomic", &s, s.count * s.n_window);
    if (s.each <= FEW || s.count > UINT32_MAX / 2)
        return start(l, s.combiner < 0 ? "oly_scatter_replace_few" : "oly_scatter_few", &s,
                     s.count / s.each * s.n_window);
    OLY_TRY(sort_positions(l, &s, oly_local_count(&t->out, -1)));
    if (s.combiner >= 0)
        OLY_TRY(combine_chunks(l, &s));
    return start(l, s.combiner < 0 ? "oly_scatter_replace_sorted" : "oly_scatter_sorted", &s, s.count * s.n_window);
}
