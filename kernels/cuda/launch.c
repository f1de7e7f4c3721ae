/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of copies, fills and reductions over devices: copy.cu, combine.cu. */
#include "cuda/launching.h"
#include "core/min_max.h"
#include "core/dtype_list.h"
#include <string.h>

unsigned oly_cuda_blocks(const oly_cuda_launcher *l, int64_t n, int64_t per_block)
{
    int64_t blocks = (n + per_block - 1) / per_block, most = (int64_t)(l->processors > 0 ? l->processors : 1) * 32;
    return (unsigned)oly_larger(1, oly_smaller(blocks, most));
}

oly_status oly_cuda_start(const oly_cuda_launcher *l, const char *module, const char *kernel, unsigned blocks,
                          unsigned threads, const void *task, size_t bytes)
{
    oly_cuda_launch launch = {.module = module, .kernel = kernel, .blocks = blocks, .threads = threads};
    launch.task_bytes = bytes;
    memcpy(launch.task, task, bytes);
    return l->launch(l->context, &launch);
}

const char *oly_cuda_sized(const char *const names[5], size_t bytes)
{
    return names[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4];
}

/* -- fills ------------------------------------------------------------------------------------------------------------------ */

oly_status oly_cuda_fill(const oly_cuda_launcher *l, size_t element_bytes, int64_t n, void *to, const void *element)
{
    oly_cuda_fill_task f = {.to = to, .n = n};
    if (n == 0)
        return OLY_OK;
    memcpy(f.element, element, element_bytes);
    return oly_cuda_start(l, "copy", oly_cuda_sized(OLY_CUDA_SIZED("oly_fill_"), element_bytes),
                          oly_cuda_blocks(l, n * (int64_t)element_bytes, 16 * OLY_CUDA_THREADS), OLY_CUDA_THREADS, &f,
                          sizeof f);
}

/* -- reductions over devices ------------------------------------------------------------------------------------------------ */

enum { GROUP = 16, LOAD_LIMIT = 128, COMBINE = 255 };

typedef struct order {
    oly_cuda_combine_task *t;
    bool in_pairs;
    const int *counts;
    int stride[4];
    int depth, deepest;
} order;

static void add_step(order *o, int step)
{
    o->t->step[o->t->n_steps++] = (uint8_t)step;
    o->depth += step == COMBINE ? -1 : 1;
    o->deepest = o->depth > o->deepest ? o->depth : o->deepest;
}

/* The order of cpu/combine.c: `count` positions of a level, from source `first` on. */
static void add_positions(order *o, int level, int first, int count);
static void add_level(order *o, int level, int first)
{
    if (level < 0)
        add_step(o, first);
    else
        add_positions(o, level, first, o->counts[level]);
}
static void add_positions(order *o, int level, int first, int count)
{
    if (count == 1) {
        add_level(o, level - 1, first);
        return;
    }
    int span = 1;
    for (int of = o->in_pairs ? 2 : GROUP; span * of < count;)
        span *= of;
    add_positions(o, level, first, span);
    for (int i = span; i < count; i += span) {
        add_positions(o, level, first + i * o->stride[level], count - i < span ? count - i : span);
        add_step(o, COMBINE);
    }
}

bool oly_cuda_has_combine(oly_combiner c, oly_dtype dtype)
{
    (void)c, (void)dtype;
    return true;
}

oly_combiner oly_cuda_combiner(oly_combiner c, oly_dtype dtype)
{
#define AS_BOOL(a, number, name, as_bool, ...)                                                                         \
    [OLY_COMBINE_##number] = #as_bool[0] == 'o' ? OLY_COMBINE_OR : OLY_COMBINE_AND,
    static const oly_combiner as_bool[OLY_N_COMBINERS] = {OLY_EVERY_COMBINER(AS_BOOL, )};
    return dtype == OLY_BOOL ? as_bool[c] : c;
}

oly_status oly_cuda_combine(const oly_cuda_launcher *l, oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts,
                            const int *counts, const void *const *sources, int n_outs, void *const *outs, int64_t begin,
                            int64_t end)
{
    oly_cuda_combine_task t = {.begin = begin, .end = end, .combiner = oly_cuda_combiner(c, dtype), .dtype = dtype};
    order o = {.t = &t, .in_pairs = in_pairs, .counts = counts};
    int n = 1;
    for (int level = n_counts - 1; level >= 0; level--) {
        o.stride[level] = n;
        n *= counts[level];
    }
    if (begin >= end)
        return OLY_OK;
    add_level(&o, n_counts - 1, 0);
    memcpy(t.source, sources, (size_t)n * sizeof *sources);
    memcpy(t.out, outs, (size_t)n_outs * sizeof *outs);
    t.n_outs = n_outs;
    return oly_cuda_start(l, "combine", "oly_combine_arrays", oly_cuda_blocks(l, end - begin, OLY_CUDA_THREADS),
                          OLY_CUDA_THREADS, &t, sizeof t);
}
