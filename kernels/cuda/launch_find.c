/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of argreductions and searches: find.cu. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include <string.h>

enum {
    ENOUGH_THREADS = 1024, /* of a processor */
    PIECE = 64,            /* elements that a thread looks at */
    WARP = 32,
    MANY = 64, /* pieces of a result that a block joins */
};

/* A further reduced dimension, innermost last. */
static void add_reduced(oly_cuda_find_task *f, int64_t extent, int64_t stride, int64_t weight)
{
    oly_cuda_dims *r = &f->reduced;
    int last = r->rank - 1;
    if (extent == 1)
        return;
    if (last >= 0 && r->stride[last] == stride * extent && f->weight[last] == weight * extent) {
        r->extent[last] *= extent;
    } else {
        last = r->rank++;
        r->extent[last] = extent;
    }
    r->stride[last] = stride;
    f->weight[last] = weight;
}

static oly_cuda_find_task describe(const oly_local_task *t, const void *in)
{
    const oly_local_operand *x = &t->in[0];
    oly_cuda_find_task f = {.in = in,
                            .dtype = (int32_t)x->dtype,
                            .smallest = oly_local_finds_smallest(t->op),
                            .n = oly_local_count(&t->out, -1),
                            .length = 1,
                            .pieces = 1,
                            .lanes = 1};
    int64_t weight[OLY_MAX_RANK], all = 1;
    for (int k = t->n_axes - 1; k >= 0; k--) {
        weight[k] = all;
        f.first += x->origin[t->axes[k]] * all;
        all *= x->size[t->axes[k]];
    }
    for (int d = 0, k = 0; d < x->rank; d++)
        if (k < t->n_axes && t->axes[k] == d) {
            add_reduced(&f, x->extent[d], x->stride[d], weight[k++]);
            f.length *= x->extent[d];
        } else {
            oly_cuda_add_dimension(&f.kept, x->extent[d], x->stride[d]);
        }
    return f;
}

/* A power of 2, at most a warp, for so many elements. */
static int32_t lanes_for(int64_t elements)
{
    int32_t lanes = 1;
    while (lanes < WARP && lanes * 4 < elements)
        lanes *= 2;
    return lanes;
}

/* Adjacent results are found by adjacent threads; where their elements are not adjacent, each by some lanes of a warp. */
static void divide(const oly_cuda_launcher *l, oly_cuda_find_task *f)
{
    const oly_cuda_dims *kept = &f->kept;
    bool adjacent = kept->rank > 0 && kept->stride[kept->rank - 1] == 1 && kept->extent[kept->rank - 1] >= WARP;
    f->lanes = adjacent ? 1 : lanes_for(f->length);
    int64_t threads = f->n * f->lanes, wanted = (int64_t)(l->processors > 0 ? l->processors : 1) * ENOUGH_THREADS;
    f->pieces = oly_larger(1, oly_smaller(wanted / threads, f->length / (PIECE * f->lanes)));
}

static oly_status start(const oly_cuda_launcher *l, const char *kernel, int64_t threads, const oly_cuda_find_task *f)
{
    return oly_cuda_start(l, "find", kernel, oly_cuda_blocks(l, threads, OLY_CUDA_THREADS), OLY_CUDA_THREADS, f,
                          sizeof *f);
}

/* Adjacent elements of a type that find_adjacent has, enough for a warp; in pieces whose elements 32 bits count. */
static bool is_adjacent(const oly_cuda_find_task *f)
{
    bool frequent =
        f->dtype == OLY_FLOAT32 || f->dtype == OLY_FLOAT64 || f->dtype == OLY_INT32 || f->dtype == OLY_INT64;
    return frequent && f->lanes == WARP && f->reduced.rank == 1 && f->reduced.stride[0] == 1 && f->weight[0] == 1 &&
           f->length / f->pieces < 1 << 30 && (uintptr_t)f->in % oly_element_bytes[f->dtype] == 0;
}

static oly_status start_find(const oly_cuda_launcher *l, const oly_cuda_find_task *f)
{
    return start(l, is_adjacent(f) ? "oly_find_adjacent" : "oly_find", f->n * f->pieces * f->lanes, f);
}

static oly_status find_pieces(const oly_cuda_launcher *l, oly_cuda_find_task f)
{
    size_t results = (size_t)(f.n * f.pieces), bytes = oly_element_bytes[f.dtype];
    oly_cuda_find_task join = f;
    void *at;
    OLY_TRY(l->scratch(l->context, results * (sizeof(int64_t) + bytes), &at));
    join.numbers = at;
    join.in = (char *)at + results * sizeof(int64_t);
    f.to = at;
    f.wide = true;
    f.elements = (char *)at + results * sizeof(int64_t);
    OLY_TRY(start_find(l, &f));
    join.lanes = f.pieces >= MANY ? WARP : lanes_for(f.pieces);
    if (f.pieces >= MANY)
        return start(l, "oly_find_join_many", f.n * OLY_CUDA_THREADS, &join);
    return start(l, "oly_find_join", f.n * join.lanes, &join);
}

oly_status oly_cuda_find(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                         void *scratch)
{
    static const int64_t none = -1, zeros[2];
    int64_t n = oly_local_count(&t->out, -1);
    if (oly_local_count(&t->in[0], -1) == 0) {
        OLY_TRY(oly_cuda_fill(l, oly_element_bytes[t->out.dtype], n, out, &none));
        return t->partial ? oly_cuda_fill(l, oly_element_bytes[t->in[0].dtype], n, scratch, zeros) : OLY_OK;
    }
    oly_cuda_find_task f = describe(t, in[0]);
    f.to = out;
    f.wide = t->out.dtype == OLY_INT64;
    f.elements = t->partial ? scratch : NULL;
    divide(l, &f);
    return f.pieces > 1 ? find_pieces(l, f) : start_find(l, &f);
}

oly_status oly_cuda_pick(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                         void *scratch)
{
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    return oly_cuda_start_local(l, "find", "oly_pick", &d);
}

oly_status oly_cuda_search(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                           void *scratch)
{
    oly_cuda_local_task d = oly_cuda_describe(t, in, out, scratch);
    return oly_cuda_start_local(l, "find", "oly_search", &d);
}
