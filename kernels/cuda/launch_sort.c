/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of sorting: sort.cu. The order of a line's elements by several keys: by the last first, then stably by those before it. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include <string.h>

/* -- passes ----------------------------------------------------------------------------------------------------------------- */

static oly_status reserve(oly_cuda_sorter *s)
{
    char *memory;
    void *at;
    size_t all = (size_t)(s->lines * s->n), keys = (all * (s->wide ? 8 : 4) + 255) / 256 * 256;
    size_t numbers = (all * sizeof(uint32_t) + 255) / 256 * 256, counts = 0;
    s->tiles = (s->n + OLY_CUDA_SORT_TILE - 1) / OLY_CUDA_SORT_TILE;
    if (s->tiles > 1)
        counts = ((size_t)(s->lines * OLY_CUDA_DIGITS * s->tiles) * sizeof(uint32_t) + 255) / 256 * 256;
    OLY_TRY(s->l->scratch(s->l->context, 2 * keys + 2 * numbers + counts + oly_cuda_running_bytes(s->lines), &at));
    memory = at;
    s->keys[0] = memory;
    s->keys[1] = memory += keys;
    s->numbers[0] = (uint32_t *)(void *)(memory += keys);
    s->numbers[1] = (uint32_t *)(void *)(memory += numbers);
    s->counts = (uint32_t *)(void *)(memory += numbers);
    s->totals = memory + counts;
    return OLY_OK;
}

static oly_status start(const oly_cuda_sorter *s, const char *kernel, int64_t blocks, const oly_cuda_sort_task *t)
{
    return oly_cuda_start(s->l, "sort", kernel, oly_cuda_blocks(s->l, blocks, 1), OLY_CUDA_THREADS, t, sizeof *t);
}

static void swap(oly_cuda_sorter *s, oly_cuda_sort_task *t)
{
    s->now ^= 1;
    t->keys = s->keys[s->now];
    t->numbers = s->numbers[s->now];
    t->keys_to = s->keys[s->now ^ 1];
    t->numbers_to = s->numbers[s->now ^ 1];
}

static oly_status order_long(oly_cuda_sorter *s, oly_cuda_sort_task *t)
{
    oly_cuda_scan_task sums = {.in = (const char *)s->counts,
                               .out = (char *)s->counts,
                               .n = s->lines,
                               .length = OLY_CUDA_DIGITS * s->tiles,
                               .segments = 1,
                               .in_step = 1,
                               .out_step = 1,
                               .dtype = OLY_UINT32,
                               .to = OLY_UINT32,
                               .total_to = OLY_UINT32,
                               .combiner = OLY_COMBINE_SUM};
    oly_cuda_add_dimension(&sums.line, s->lines, sums.length);
    sums.out_stride[0] = sums.length;
    for (t->shift = 0; t->shift < 8 * t->key_bytes; t->shift += 8) {
        OLY_TRY(start(s, "oly_sort_count", s->lines * s->tiles, t));
        OLY_TRY(oly_cuda_running(s->l, &sums, s->totals));
        OLY_TRY(start(s, s->wide ? "oly_sort_move8" : "oly_sort_move4", s->lines * s->tiles, t));
        swap(s, t);
    }
    return OLY_OK;
}

oly_status oly_cuda_order(oly_cuda_sorter *s, const oly_cuda_key *key)
{
    bool first = !s->counts;
    if (first)
        OLY_TRY(reserve(s));
    oly_cuda_sort_task t = {.in = key->base,
                            .lines = s->lines,
                            .n = s->n,
                            .step = key->step,
                            .tiles = s->tiles,
                            .line = key->line,
                            .kind = key->kind,
                            .dtype = (int32_t)key->dtype,
                            .wide = s->wide,
                            .backwards = s->backwards,
                            .key_bytes = key->bytes,
                            .first = first,
                            .counts = s->counts};
    int64_t all = s->lines * s->n;
    s->now ^= 1;
    swap(s, &t);
    OLY_TRY(start(s, "oly_sort_keys", (all + OLY_CUDA_THREADS - 1) / OLY_CUDA_THREADS, &t));
    if (s->tiles > 1)
        return order_long(s, &t);
    if (s->n <= OLY_CUDA_SORT_WARP)
        OLY_TRY(start(s, "oly_sort_few", (s->lines + 7) / 8, &t));
    else
        OLY_TRY(start(s, s->wide ? "oly_sort_block8" : "oly_sort_block4", s->lines, &t));
    swap(s, &t);
    return OLY_OK;
}

/* -- operations --------------------------------------------------------------------------------------------------------------- */

static bool is_complex(oly_dtype dtype)
{
    return dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128;
}

static oly_cuda_key key_of(const oly_local_task *t, const oly_local_operand *x, const void *base, int kind)
{
    oly_cuda_key k = {.base = base, .dtype = x->dtype, .kind = kind, .step = x->stride[t->dimension]};
    k.bytes = kind == OLY_CUDA_KEY_COUNTS ? 1 : (int)oly_element_bytes[x->dtype];
    for (int d = 0; d < x->rank; d++)
        if (d != t->dimension)
            oly_cuda_add_dimension(&k.line, t->out.extent[d], x->stride[d]);
    return k;
}

/* By a complex operand: by the imaginary parts, then by the real ones. */
static oly_status order_complex(oly_cuda_sorter *s, oly_cuda_key k)
{
    k.dtype = k.dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
    k.bytes /= 2;
    k.step *= 2;
    for (int d = 0; d < k.line.rank; d++)
        k.line.stride[d] *= 2;
    const char *real = k.base;
    k.base = real + k.bytes;
    OLY_TRY(oly_cuda_order(s, &k));
    k.base = real;
    return oly_cuda_order(s, &k);
}

static oly_status order_values(oly_cuda_sorter *s, const oly_local_task *t, const void *const *in)
{
    for (int j = t->op == OLY_LOCAL_SORT ? 0 : t->n_in - 1; j >= 0; j--) {
        oly_cuda_key k = key_of(t, &t->in[j], in[j], OLY_CUDA_KEY_VALUE);
        OLY_TRY(is_complex(k.dtype) ? order_complex(s, k) : oly_cuda_order(s, &k));
    }
    return OLY_OK;
}

static oly_status order_largest(oly_cuda_sorter *s, const oly_local_task *t, const void *const *in)
{
    oly_cuda_key k = key_of(t, &t->in[0], in[0], OLY_CUDA_KEY_TOTAL);
    OLY_TRY(oly_cuda_order(s, &k));
    if (t->n_in == 1)
        return OLY_OK;
    k = key_of(t, &t->in[1], in[1], OLY_CUDA_KEY_COUNTS);
    return oly_cuda_order(s, &k);
}

bool oly_cuda_can_sort(const oly_local_task *t)
{
    return t->in[0].extent[t->dimension] <= UINT32_MAX / 2;
}

oly_status oly_cuda_sort(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                         void *scratch)
{
    int d = t->dimension;
    bool largest = t->op == OLY_LOCAL_TOP_K;
    oly_cuda_sorter s = {.l = l,
                         .lines = oly_local_count(&t->out, d),
                         .n = t->in[0].extent[d],
                         .backwards = t->reverse && t->op == OLY_LOCAL_ARGSORT};
    for (int k = 0; k < t->n_in; k++)
        s.wide = s.wide || oly_element_bytes[t->in[k].dtype] / (is_complex(t->in[k].dtype) ? 2 : 1) > 4;
    if (s.n > 0)
        OLY_TRY(largest ? order_largest(&s, t, in) : order_values(&s, t, in));
    oly_cuda_ordered_task o = {.task = oly_cuda_describe(t, in, out, NULL),
                               .numbers = s.numbers[s.now],
                               .elements = largest && t->partial ? scratch : NULL,
                               .lines = s.lines,
                               .length = s.n,
                               .count = t->out.extent[d]};
    return oly_cuda_start(l, "sort", "oly_sort_store", oly_cuda_blocks(l, o.task.n, OLY_CUDA_THREADS), OLY_CUDA_THREADS,
                          &o, sizeof o);
}
