/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of sorting: sort.cu, sort_sweeps.cu. The order of a line's elements by several keys: by the last first, then stably by those before it. */
#include "cuda/local_launches.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "local_table.h"
#include <string.h>

/* -- passes ----------------------------------------------------------------------------------------------------------------- */

static size_t rounded_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static oly_status reserve(oly_cuda_sorter *s)
{
    char *memory;
    void *at;
    size_t all = (size_t)(s->lines * s->n), keys = rounded_up(all * (s->wide ? 8 : 4));
    size_t numbers = rounded_up(all * sizeof(uint32_t));
    OLY_TRY(s->l->scratch(s->l->context, 2 * keys + 2 * numbers, &at));
    memory = at;
    s->keys[0] = memory;
    s->keys[1] = memory += keys;
    s->numbers[0] = (uint32_t *)(void *)(memory += keys);
    s->numbers[1] = (uint32_t *)(void *)(memory + numbers);
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

/* -- long lines ------------------------------------------------------------------------------------------------------------- */

/* Where a pass reads or writes. */
typedef struct place {
    char *at;
    uint32_t *numbers; /* NULL: none are moved */
    int64_t step;
    oly_cuda_dims line;
} place;

static place dense_place(void *at, uint32_t *numbers, int64_t lines, int64_t n)
{
    place p = {.at = at, .numbers = numbers, .step = 1};
    oly_cuda_add_dimension(&p.line, lines, n);
    return p;
}

static void move_between(oly_cuda_sweep_task *t, const place *from, const place *to)
{
    t->from = from->at;
    t->numbers = from->numbers;
    t->from_step = from->step;
    t->from_line = from->line;
    t->to = to->at;
    t->numbers_to = to->numbers;
    t->to_step = to->step;
    t->to_line = to->line;
}

/* Sorts elements (or keys) of `bytes` bytes from the first place to the last, by way of the two others. t: lines, n and what the order is. */
static oly_status sweep(const oly_cuda_launcher *l, oly_cuda_sweep_task *t, size_t bytes, const place *first,
                        const place between[2], const place *last)
{
    enum { COUNTING = 4 }; /* blocks of a processor */
    static const char *const counters[] = {"oly_sort_digits_1", "oly_sort_digits_2", "oly_sort_digits_4",
                                           "oly_sort_digits_8"};
    static const char *const sweeps[] = {"oly_sort_sweep_1", "oly_sort_sweep_2", "oly_sort_sweep_4",
                                         "oly_sort_sweep_8"};
    static const uint64_t zero;
    const bool numbered = last->numbers != NULL, backwards = t->backwards;
    const int size = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    const char *kernel = !numbered    ? sweeps[size]
                         : bytes == 4 ? "oly_sort_sweep_numbered_4"
                                      : "oly_sort_sweep_numbered_8";
    int64_t tile = OLY_CUDA_THREADS * (numbered ? OLY_CUDA_SWEEP_NUMBERED : OLY_CUDA_SWEEP_ELEMENTS);
    t->tiles = (t->n + tile - 1) / tile;
    t->pieces = oly_larger(1, oly_smaller(t->tiles, l->processors * COUNTING / t->lines));
    /* one word of 8 bytes for each pass, then counts, then what tiles publish: all zeros at first */
    int64_t tickets = 8, counts = t->lines * t->passes * OLY_CUDA_DIGITS;
    int64_t chain = t->lines * t->tiles * OLY_CUDA_DIGITS;
    int64_t words = tickets + (counts + t->passes * chain) / 2;
    void *at;
    OLY_TRY(l->scratch(l->context, (size_t)words * sizeof(uint64_t), &at));
    OLY_TRY(oly_cuda_fill(l, sizeof(uint64_t), words, at, &zero));
    uint64_t *ticket = at;
    uint32_t *all_counts = (uint32_t *)(ticket + tickets), *chains = all_counts + counts;
    t->counts = all_counts;
    /* Blocks take tiles from a counter: where there may be nothing to do, no more of them than have room. */
    int64_t blocks = t->lines * t->tiles;
    if (t->only_if)
        blocks = oly_smaller(blocks, (int64_t)l->processors * COUNTING);
    move_between(t, first, last);
    OLY_TRY(oly_cuda_start(l, "sort_sweeps", counters[size], oly_cuda_blocks(l, t->lines * t->pieces, 1),
                           OLY_CUDA_THREADS, t, sizeof *t));
    for (int pass = 0; pass < t->passes; pass++) {
        bool ends = pass == t->passes - 1;
        move_between(t, pass == 0 ? first : &between[(pass - 1) % 2], ends ? last : &between[pass % 2]);
        t->shift = 8 * pass;
        t->backwards = ends && backwards;
        t->ticket = ticket + pass;
        t->counts = all_counts + pass * OLY_CUDA_DIGITS;
        t->chain = chains + pass * chain;
        OLY_TRY(
            oly_cuda_start(l, "sort_sweeps", kernel, oly_cuda_blocks(l, blocks, 1), OLY_CUDA_THREADS, t, sizeof *t));
    }
    return OLY_OK;
}

/* Keys with their numbers, from keys[now]. */
static oly_status order_long(oly_cuda_sorter *s, oly_cuda_sort_task *t)
{
    oly_cuda_sweep_task sweeps = {.lines = s->lines, .n = s->n, .passes = t->key_bytes};
    const place here = dense_place(t->keys, t->numbers, s->lines, s->n);
    const place there = dense_place(t->keys_to, t->numbers_to, s->lines, s->n);
    const place between[2] = {there, here};
    bool odd = t->key_bytes % 2;
    OLY_TRY(sweep(s->l, &sweeps, s->wide ? 8 : 4, &here, between, odd ? &there : &here));
    if (odd)
        swap(s, t);
    return OLY_OK;
}

oly_status oly_cuda_order_numbers(const oly_cuda_launcher *l, uint32_t *keys, int64_t n, int bytes,
                                  const uint32_t *only_if, const void **sorted, const uint32_t **order)
{
    oly_cuda_sweep_task t = {.lines = 1, .n = n, .passes = bytes, .only_if = only_if};
    const size_t all = rounded_up((size_t)n * sizeof *keys);
    void *at;
    OLY_TRY(l->scratch(l->context, 4 * all, &at));
    char *memory = at;
    const place first = dense_place(keys, NULL, 1, n);
    const place between[2] = {dense_place(memory, (uint32_t *)(void *)(memory + all), 1, n),
                              dense_place(memory + 2 * all, (uint32_t *)(void *)(memory + 3 * all), 1, n)};
    const place *last = &between[(bytes - 1) % 2];
    *sorted = last->at;
    *order = last->numbers;
    return sweep(l, &t, sizeof *keys, &first, between, last);
}

oly_status oly_cuda_order(oly_cuda_sorter *s, const oly_cuda_key *key)
{
    bool first = !s->keys[0];
    if (first)
        OLY_TRY(reserve(s));
    oly_cuda_sort_task t = {.in = key->base,
                            .lines = s->lines,
                            .n = s->n,
                            .step = key->step,
                            .line = key->line,
                            .kind = key->kind,
                            .dtype = (int32_t)key->dtype,
                            .wide = s->wide,
                            .backwards = s->backwards,
                            .key_bytes = key->bytes,
                            .first = first};
    int64_t all = s->lines * s->n;
    s->now ^= 1;
    swap(s, &t);
    OLY_TRY(start(s, "oly_sort_keys", (all + OLY_CUDA_THREADS - 1) / OLY_CUDA_THREADS, &t));
    if (s->n > OLY_CUDA_SORT_TILE)
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

/* Lines of which only the elements are asked for: these are moved, and nothing else. */
static oly_status sort_elements(const oly_cuda_launcher *l, const oly_local_task *t, const void *in, void *out)
{
    static const uint64_t infinity[OLY_N_DTYPES] = {
        [OLY_FLOAT8_E4M3FN] = 0x7e, [OLY_FLOAT8_E5M2] = 0x7c,   [OLY_FLOAT16] = 0x7c00,
        [OLY_BFLOAT16] = 0x7f80,    [OLY_FLOAT32] = 0x7f800000, [OLY_FLOAT64] = 0x7ff0000000000000,
    };
    const oly_local_operand *x = &t->in[0], *y = &t->out;
    int d = t->dimension;
    size_t bytes = oly_element_bytes[x->dtype];
    oly_cuda_sweep_task s = {.lines = oly_local_count(y, d),
                             .n = x->extent[d],
                             .infinity = infinity[x->dtype],
                             .order = infinity[x->dtype]                              ? OLY_CUDA_ORDER_FLOATING
                                      : x->dtype >= OLY_INT8 && x->dtype <= OLY_INT64 ? OLY_CUDA_ORDER_SIGNED
                                                                                      : OLY_CUDA_ORDER_UNSIGNED,
                             .passes = (int32_t)bytes,
                             .backwards = t->reverse};
    place first = {.at = (char *)(uintptr_t)in, .step = x->stride[d]}, last = {.at = out, .step = y->stride[d]};
    for (int k = 0; k < x->rank; k++)
        if (k != d) {
            oly_cuda_add_dimension(&first.line, y->extent[k], x->stride[k]);
            oly_cuda_add_dimension(&last.line, y->extent[k], y->stride[k]);
        }
    place between[2] = {first, last}; /* of one pass there are none */
    for (int k = 0; k < 2 && bytes > 1; k++) {
        void *at;
        OLY_TRY(l->scratch(l->context, (size_t)(s.lines * s.n) * bytes, &at));
        between[k] = dense_place(at, NULL, s.lines, s.n);
    }
    return sweep(l, &s, bytes, &first, between, &last);
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
    if (t->op == OLY_LOCAL_SORT && s.n > OLY_CUDA_SORT_TILE && s.n == t->out.extent[d] && !is_complex(t->in[0].dtype))
        return sort_elements(l, t, in[0], out);
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
