/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of reductions (reduce_*.cu, reducing.h): the division into parts is the CPU's (oly_reduce_divide), which fixes the order of sums. */
#include "cuda/launching.h"
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "table.h"
#include <string.h>

enum {
    BLOCK = 4096,
    SMALL = 64,
    LONG = 8 /* elements of a segment for a warp */,
    ENOUGH_THREADS = 4096
}; /* threads of a processor that have something to do */

bool oly_cuda_has_reduce(const oly_reduce_task *t)
{
    (void)t;
    return true;
}

static void describe(const oly_reduce_task *t, const oly_reduce_shape *s, oly_cuda_reduce_task *r)
{
    int last_kept = t->rank - 1;
    r->combiner = oly_cuda_combiner(t->combiner, t->dtype);
    r->dtype = oly_is_narrow(t->dtype) ? OLY_FLOAT32 : t->dtype;
    r->from = t->converts ? t->from : t->dtype;
    /* elements of a narrow type are accumulators as they are read */
    if (r->from == (int)t->dtype && r->dtype == OLY_FLOAT32)
        r->dtype = r->from;
    r->n_kept = s->kept;
    r->n_outer = s->outer;
    r->n_run = s->run;
    r->parts = s->parts;
    while (last_kept >= 0 && (t->reduced[last_kept] || t->extent[last_kept] == 1))
        last_kept--;
    for (int d = 0; d < t->rank; d++)
        oly_cuda_add_dimension(!t->reduced[d]  ? &r->kept
                               : d < last_kept ? &r->outer
                                               : &r->run,
                               t->extent[d], t->stride[d]);
}

/* A reduction under way: intermediate results alternate between two halves of scratch memory. */
typedef struct stages {
    const oly_cuda_launcher *l;
    char *scratch[2], *out;
    int now;
    int32_t combiner, wide, to; /* types of intermediate results and of the result */
} stages;

static oly_status run_tree(stages *s, bool last, oly_cuda_tree_task *t)
{
    t->combiner = s->combiner;
    t->in = s->scratch[s->now];
    s->now ^= 1;
    t->out = last ? s->out : s->scratch[s->now];
    t->dtype = s->wide;
    t->to = last ? s->to : s->wide;
    int64_t longest = (t->length + t->parts - 1) / t->parts;
    if (t->mode == OLY_TREE_UNIFORM)
        longest = t->length;
    else if (t->mode == OLY_TREE_PIECES)
        longest = (longest + t->rows - 1) / t->rows;
    if (longest < LONG)
        return oly_cuda_start(s->l, "reduce_tree", "oly_reduce_tree", oly_cuda_blocks(s->l, t->n, 64), 64, t,
                              sizeof *t);
    return oly_cuda_start(s->l, "reduce_tree", "oly_reduce_tree_warps",
                          oly_cuda_blocks(s->l, t->n, OLY_CUDA_THREADS / 32), OLY_CUDA_THREADS, t, sizeof *t);
}

/* The parts' results, `kept` apart (adjacent parts `apart`), to the result. */
static oly_status join_parts(stages *s, int64_t kept, int64_t parts, int64_t segment, int64_t element)
{
    oly_cuda_tree_task t = {
        .mode = OLY_TREE_UNIFORM, .n = kept, .length = parts, .parts = 1, .in_segment = segment, .in_element = element};
    return run_tree(s, true, &t);
}

static oly_status reserve(stages *s, int64_t elements, size_t bytes)
{
    void *at;
    size_t half = ((size_t)elements * bytes + 255) / 256 * 256;
    OLY_TRY(s->l->scratch(s->l->context, 2 * half, &at));
    s->scratch[0] = at;
    s->scratch[1] = s->scratch[0] + half;
    return OLY_OK;
}

/* The kernels of a file: those for one type and combiner (OLY_REDUCE_KERNELS in reducing.h), and for any. */
typedef struct kernels {
    const char *module, *any;
    const char *of[OLY_N_DTYPES][OLY_N_COMBINERS];
} kernels;
#define NUMBERS(f, s)                                                                                                  \
    {                                                                                                                  \
        [OLY_COMBINE_SUM] = "oly_reduce_" f "_" s "_sum", [OLY_COMBINE_MAX] = "oly_reduce_" f "_" s "_max",            \
        [OLY_COMBINE_MIN] = "oly_reduce_" f "_" s "_min"                                                               \
    }
#define REALS(f, s)                                                                                                    \
    {                                                                                                                  \
        [OLY_COMBINE_SUM] = "oly_reduce_" f "_" s "_sum", [OLY_COMBINE_MAX] = "oly_reduce_" f "_" s "_max",            \
        [OLY_COMBINE_MIN] = "oly_reduce_" f "_" s "_min", [OLY_COMBINE_PROD] = "oly_reduce_" f "_" s "_prod"           \
    }
#define EXTREMES(f, s)                                                                                                 \
    {                                                                                                                  \
        [OLY_COMBINE_MAX] = "oly_reduce_" f "_" s "_max", [OLY_COMBINE_MIN] = "oly_reduce_" f "_" s "_min"             \
    }
#define KERNELS(f)                                                                                                     \
    {                                                                                                                  \
        "reduce_" f, "oly_reduce_" f,                                                                                  \
        {                                                                                                              \
            [OLY_FLOAT32] = REALS(f, "f32"), [OLY_FLOAT64] = REALS(f, "f64"), [OLY_FLOAT16] = NUMBERS(f, "f16"),       \
            [OLY_BFLOAT16] = NUMBERS(f, "bf16"), [OLY_INT32] = NUMBERS(f, "i32"), [OLY_INT64] = NUMBERS(f, "i64"),     \
            [OLY_INT8] = EXTREMES(f, "i8"), [OLY_UINT8] = EXTREMES(f, "u8"),                                           \
            [OLY_COMPLEX64] = {[OLY_COMBINE_SUM] = "oly_reduce_" f "_c64_sum"}, [OLY_BOOL] = {                         \
                [OLY_COMBINE_OR] = "oly_reduce_" f "_b8_or",                                                           \
                [OLY_COMBINE_AND] = "oly_reduce_" f "_b8_and"                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
static const kernels chain = KERNELS("chain"), rows = KERNELS("rows"), blocks = KERNELS("blocks");

static oly_status start(const stages *s, const kernels *k, oly_cuda_reduce_task *r, bool last, int64_t threads)
{
    r->out = last ? s->out : s->scratch[0];
    r->to = last ? s->to : s->wide;
    /* float16 and bfloat16 are float32 as they are read; results are of the type itself, or of that */
    bool narrow = r->from == OLY_FLOAT16 || r->from == OLY_BFLOAT16;
    bool own = (r->from == r->dtype || (narrow && r->dtype == OLY_FLOAT32)) &&
               (r->to == r->from || (narrow && r->to == OLY_FLOAT32));
    const char *kernel = own ? k->of[r->from][r->combiner] : NULL;
    return oly_cuda_start(s->l, k->module, kernel ? kernel : k->any, oly_cuda_blocks(s->l, threads, OLY_CUDA_THREADS),
                          OLY_CUDA_THREADS, r, sizeof *r);
}

/* The last dimension is kept. Parts are divided further, into pieces, until there are enough threads. */
static oly_status by_rows(stages *s, oly_cuda_reduce_task *r, size_t bytes)
{
    int64_t longest = (r->n_outer + r->parts - 1) / r->parts, wanted = (int64_t)s->l->processors * ENOUGH_THREADS;
    r->rows = SMALL;
    while (r->rows < longest && r->n_kept * r->parts * ((longest + r->rows - 1) / r->rows) > wanted)
        r->rows *= 2;
    r->pieces = (longest + r->rows - 1) / r->rows;
    int64_t threads = r->n_kept * r->parts * r->pieces;
    if (r->parts * r->pieces == 1)
        return start(s, &rows, r, true, threads);
    OLY_TRY(reserve(s, threads, bytes));
    OLY_TRY(start(s, &rows, r, false, threads));
    if (r->pieces > 1) {
        oly_cuda_tree_task t = {.mode = OLY_TREE_PIECES,
                                .n = r->n_kept * r->parts,
                                .length = r->n_outer,
                                .parts = r->parts,
                                .in_element = r->n_kept,
                                .pieces = r->pieces,
                                .rows = r->rows};
        OLY_TRY(run_tree(s, r->parts == 1, &t));
    }
    return r->parts == 1 ? OLY_OK : join_parts(s, r->n_kept, r->parts, 1, r->n_kept);
}

/* The results of blocks, in scratch memory, to those of the whole. */
static oly_status join_blocks(stages *s, const oly_cuda_reduce_task *r)
{
    int64_t parts = r->parts, sequence = r->pieces;
    if (r->n_outer > 1) {
        sequence = r->n_outer;
        if (r->pieces > 1) {
            oly_cuda_tree_task t = {.mode = OLY_TREE_UNIFORM,
                                    .n = r->n_kept * r->n_outer,
                                    .length = r->pieces,
                                    .parts = 1,
                                    .in_segment = r->pieces,
                                    .in_element = 1};
            OLY_TRY(run_tree(s, false, &t));
        }
    }
    oly_cuda_tree_task t = {.mode = OLY_TREE_PARTS,
                            .n = r->n_kept * parts,
                            .length = sequence,
                            .parts = parts,
                            .in_segment = sequence,
                            .in_element = 1};
    OLY_TRY(run_tree(s, parts == 1, &t));
    return parts == 1 ? OLY_OK : join_parts(s, r->n_kept, parts, parts, 1);
}

static oly_status by_blocks(stages *s, oly_cuda_reduce_task *r, size_t bytes)
{
    r->pieces = (r->n_run + BLOCK - 1) / BLOCK;
    int64_t results = r->n_kept * r->n_outer * r->pieces;
    if (r->n_outer * r->pieces == 1)
        return start(s, &blocks, r, true, results * OLY_CUDA_THREADS / 8);
    OLY_TRY(reserve(s, results, bytes));
    OLY_TRY(start(s, &blocks, r, false, results * OLY_CUDA_THREADS / 8));
    return join_blocks(s, r);
}

static stages stages_of(const oly_cuda_launcher *l, const oly_reduce_task *t, const oly_cuda_reduce_task *r, void *out)
{
    oly_dtype wide = oly_is_narrow(t->dtype) ? OLY_FLOAT32 : t->dtype;
    return (stages){.l = l, .out = out, .combiner = r->combiner, .wide = (int32_t)wide, .to = (int32_t)t->dtype};
}

oly_status oly_cuda_reduce(const oly_cuda_launcher *l, const oly_reduce_task *t, const void *in, void *out)
{
    oly_reduce_shape shape = oly_reduce_divide(t);
    oly_cuda_reduce_task r = {.in = in};
    if (shape.kept == 0)
        return OLY_OK;
    if (shape.outer == 0 || shape.run == 0) {
        char identity[16];
        oly_combine_identity(t->combiner, t->dtype, identity, 1);
        return oly_cuda_fill(l, oly_element_bytes[t->dtype], shape.kept, out, identity);
    }
    describe(t, &shape, &r);
    stages s = stages_of(l, t, &r, out);
    size_t bytes = oly_element_bytes[s.wide];
    if (shape.run == 1)
        return by_rows(&s, &r, bytes);
    if (shape.outer * shape.run < SMALL)
        return start(&s, &chain, &r, true, r.n_kept);
    return by_blocks(&s, &r, bytes);
}

/* -- results of blocks that another kernel has computed ------------------------------------------------------------------------ */

oly_status oly_cuda_reduce_scratch(const oly_cuda_launcher *l, const oly_reduce_task *t, int64_t results, void **at,
                                   void **between)
{
    stages s = stages_of(l, t, &(oly_cuda_reduce_task){0}, NULL);
    OLY_TRY(reserve(&s, results, oly_element_bytes[s.wide]));
    *at = s.scratch[0];
    *between = s.scratch[1];
    return OLY_OK;
}

oly_status oly_cuda_reduce_joined(const oly_cuda_launcher *l, const oly_reduce_task *t, void *at, void *between,
                                  void *out)
{
    oly_reduce_shape shape = oly_reduce_divide(t);
    oly_cuda_reduce_task r = {.pieces = (shape.run + BLOCK - 1) / BLOCK};
    describe(t, &shape, &r);
    stages s = stages_of(l, t, &r, out);
    s.scratch[0] = at;
    s.scratch[1] = between;
    return join_blocks(&s, &r);
}
