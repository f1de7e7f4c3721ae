/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting lines, the positions of sorted elements, and the largest elements. Compiled once per instruction set; gives
 * oly_sort_run_<isa>, called through local.c. Elements become unsigned numbers in the same order, which are sorted
 * (sort_keys.h). Zeros of both signs have the same key, as have all NaNs; in lines with such elements they are restored
 * afterwards, in their original order. A single long line is divided into pieces that threads sort. */
#include "local_table.h"
#include "sort_keys.h"
#include <string.h>

enum {
    FEW = 32,      /* largest elements kept in order while a line is read */
    TOGETHER = 32, /* elements that are looked at together: most have none that is larger */
    BLOCK = 1024,  /* keys at a time, which stay in cache */
    SAMPLE = 1024, /* of a line */
    LONG_LINE = 16384
};

/* -- elements to keys and back --------------------------------------------------------------------------------------- */

/* What loading a line found. */
typedef struct kinds {
    int64_t negative, zeros, nans; /* less than zero, zeros of either sign, NaN */
    bool special;                  /* a NaN, or a zero with a sign */
} kinds;

/* n elements at a distance of `stride` as keys. */
typedef void load_keys(int64_t n, void *key, const void *in, int64_t stride, kinds *k);
/* The same, with NaNs and zeros ordered by their bits, and without a look at what elements are. */
typedef void total_keys(int64_t n, void *key, const void *in, int64_t stride);
typedef void store_keys(int64_t n, void *out, int64_t stride, const void *key);
/* Restores the zeros and NaNs of a line at their positions among the n elements of out. */
typedef void restore(int64_t n, void *out, int64_t stride, const void *in, int64_t in_stride, const kinds *k);

#define INTEGER_KEYS(d, T, U, K, top)                                                                                  \
    static void load_##d(int64_t n, void *key, const void *in, int64_t stride, kinds *k)                               \
    {                                                                                                                  \
        const U *x = in;                                                                                               \
        K *to = key;                                                                                                   \
        (void)k;                                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = (U)(x[i * stride] ^ (U)(top));                                                                     \
    }                                                                                                                  \
    static void total_##d(int64_t n, void *key, const void *in, int64_t stride)                                        \
    {                                                                                                                  \
        load_##d(n, key, in, stride, NULL);                                                                            \
    }                                                                                                                  \
    static void store_##d(int64_t n, void *out, int64_t stride, const void *key)                                       \
    {                                                                                                                  \
        U *to = out;                                                                                                   \
        const K *x = key;                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i * stride] = (U)((U)x[i] ^ (U)(top));                                                                  \
    }

/* U: the bits; sign and the bits of infinity. Negative numbers have all bits inverted, others the sign bit set. */
#define FLOAT_KEYS(d, U, K, sign, infinity)                                                                            \
    static void load_##d(int64_t n, void *key, const void *in, int64_t stride, kinds *k)                               \
    {                                                                                                                  \
        const U *x = in;                                                                                               \
        K *to = key;                                                                                                   \
        const U quiet = (U)((infinity) | (infinity) >> 1);                                                             \
        int64_t negative = 0, zeros = 0, nans = 0, signed_zeros = 0;                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U bits = x[i * stride], magnitude = (U)(bits & ~(U)(sign));                                                \
            bool nan = magnitude > (infinity), zero = magnitude == 0, below = bits >= (sign);                          \
            negative += below & !nan & !zero;                                                                          \
            zeros += zero;                                                                                             \
            nans += nan;                                                                                               \
            signed_zeros += zero & below;                                                                              \
            bits = nan ? quiet : zero ? (U)0 : bits;                                                                   \
            to[i] = bits >= (sign) ? (U)~bits : (U)(bits | (sign));                                                    \
        }                                                                                                              \
        *k = (kinds){negative, zeros, nans, nans > 0 || signed_zeros > 0};                                             \
    }                                                                                                                  \
    static void total_##d(int64_t n, void *key, const void *in, int64_t stride)                                        \
    {                                                                                                                  \
        const U *x = in;                                                                                               \
        K *to = key;                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = x[i * stride] >= (sign) ? (U)~x[i * stride] : (U)(x[i * stride] | (sign));                         \
    }                                                                                                                  \
    static void store_##d(int64_t n, void *out, int64_t stride, const void *key)                                       \
    {                                                                                                                  \
        U *to = out;                                                                                                   \
        const K *x = key;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U bits = (U)x[i];                                                                                          \
            to[i * stride] = bits >= (sign) ? (U)(bits & ~(U)(sign)) : (U)~bits;                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void restore_##d(int64_t n, void *out, int64_t stride, const void *in, int64_t in_stride, const kinds *k)   \
    {                                                                                                                  \
        const U *x = in;                                                                                               \
        U *to = out;                                                                                                   \
        int64_t zero = k->negative, nan = n - k->nans;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U bits = x[i * in_stride], magnitude = (U)(bits & ~(U)(sign));                                             \
            if (magnitude == 0)                                                                                        \
                to[zero++ * stride] = bits;                                                                            \
            else if (magnitude > (infinity))                                                                           \
                to[nan++ * stride] = bits;                                                                             \
        }                                                                                                              \
    }
#define SIGN(U)                                              ((U)((U)1 << (8 * sizeof(U) - 1)))
#define KEY(U)                                               __typeof__(_Generic((U)0, uint64_t : (uint64_t)0, default : (uint32_t)0))
#define SIGNED_KEYS(a, number, name, s, T, U, ...)           INTEGER_KEYS(s, T, U, KEY(U), SIGN(U))
#define UNSIGNED_KEYS(a, number, name, s, T, U, ...)         INTEGER_KEYS(s, T, U, KEY(U), 0)
#define NARROW_KEYS(a, number, name, s, T, of, to, top, ...) FLOAT_KEYS(s, T, KEY(T), SIGN(T), top)
#define WIDE_KEYS(a, number, name, s, T, U, top, ...)        FLOAT_KEYS(s, U, KEY(U), SIGN(U), top)
INTEGER_KEYS(b8, uint8_t, uint8_t, uint32_t, 0)
OLY_SIGNED_TYPES(SIGNED_KEYS, )
OLY_UNSIGNED_TYPES(UNSIGNED_KEYS, )
OLY_NARROW_TYPES(NARROW_KEYS, )
OLY_WIDE_TYPES(WIDE_KEYS, )

static const struct {
    load_keys *load;
    total_keys *total;
    store_keys *store;
    restore *restore; /* floating types */
    size_t width;     /* bytes of a key */
} element[OLY_N_DTYPES] = {
#define WIDTH(T)                                   (sizeof(T) < 8 ? 4 : 8)
#define INTEGER_CELL(a, number, name, s, T, ...)   [OLY_##number] = {load_##s, total_##s, store_##s, NULL, WIDTH(T)},
#define FLOAT_CELL(a, number, name, s, T, ...)     [OLY_##number] = {load_##s, total_##s, store_##s, restore_##s, WIDTH(T)},
#define PART_CELL(a, number, name, s, T, of, r, R) [OLY_##number] = {load_##r, total_##r, NULL, NULL, WIDTH(R)},
    OLY_BOOL_TYPES(INTEGER_CELL, ) OLY_INTEGER_TYPES(INTEGER_CELL, ) OLY_NARROW_TYPES(FLOAT_CELL, )
        OLY_WIDE_TYPES(FLOAT_CELL, ) OLY_COMPLEX_TYPES(PART_CELL, ) /* of one part of a complex number */
};

/* -- positions ----------------------------------------------------------------------------------------------------- */

/* What a line is sorted by: the real elements at a distance of `stride` from `base`. A complex operand is two of
 * them. */
typedef struct part {
    oly_dtype dtype;
    const char *base;
    int64_t stride;
} part;

/* Memory for sorting n keys with their numbers: two buffers each. */
typedef struct room {
    char *key[2];
    void *number[2];
    bool wide; /* numbers of 8 bytes */
} room;

static room room_at(const oly_local_task *t, char *scratch)
{
    oly_sort_room s = oly_sort_room_of(t);
    char *numbers = scratch + 2 * s.keys;
    return (room){{scratch, scratch + s.keys}, {numbers, numbers + s.numbers}, s.wide};
}

#define PERMUTE(i, I)                                                                                                  \
    static void begin_numbers_##i(int64_t n, I *x, bool backwards)                                                     \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++)                                                                                \
            x[k] = (I)(backwards ? n - 1 - k : k);                                                                     \
    }                                                                                                                  \
    static void permute_##i(int64_t n, size_t width, void *to, const void *from, const I *x)                           \
    {                                                                                                                  \
        if (width == 4)                                                                                                \
            for (int64_t k = 0; k < n; k++)                                                                            \
                ((uint32_t *)to)[k] = ((const uint32_t *)from)[x[k]];                                                  \
        else                                                                                                           \
            for (int64_t k = 0; k < n; k++)                                                                            \
                ((uint64_t *)to)[k] = ((const uint64_t *)from)[x[k]];                                                  \
    }                                                                                                                  \
    /* Stable order of n elements by parts[0], then parts[1], ...: the last part is sorted first. */                   \
    static const I *order_##i(int64_t n, int n_parts, const part *parts, bool backwards, room *r)                      \
    {                                                                                                                  \
        I *x = r->number[0], *y = r->number[1];                                                                        \
        kinds unused;                                                                                                  \
        begin_numbers_##i(n, x, backwards);                                                                            \
        for (int p = n_parts - 1; p >= 0; p--) {                                                                       \
            size_t width = element[parts[p].dtype].width;                                                              \
            bool as_is = p == n_parts - 1 && !backwards;                                                               \
            element[parts[p].dtype].load(n, r->key[as_is ? 0 : 1], parts[p].base, parts[p].stride, &unused);           \
            if (!as_is)                                                                                                \
                permute_##i(n, width, r->key[0], r->key[1], x);                                                        \
            I *sorted = width == 4 ? pairs_w4_##i(n, (uint32_t *)r->key[0], (uint32_t *)r->key[1], x, y)               \
                                   : pairs_w8_##i(n, (uint64_t *)r->key[0], (uint64_t *)r->key[1], x, y);              \
            y = sorted == x ? y : x;                                                                                   \
            x = sorted;                                                                                                \
        }                                                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    static void store_numbers_##i(int64_t n, int64_t count, const I *x, bool backwards, const oly_local_operand *to,   \
                                  char *out, int64_t stride)                                                           \
    {                                                                                                                  \
        for (int64_t k = 0; k < count; k++) {                                                                          \
            I number = x[backwards ? n - 1 - k : k];                                                                   \
            if (to->dtype == OLY_INT64)                                                                                \
                ((int64_t *)out)[k * stride] = (int64_t)number;                                                        \
            else                                                                                                       \
                ((int32_t *)out)[k * stride] = (int32_t)number;                                                        \
        }                                                                                                              \
    }
PERMUTE(i4, uint32_t)
PERMUTE(i8, uint64_t)

static int parts_of(const oly_local_operand *x, const char *base, int64_t stride, part *parts)
{
    bool is_complex = x->dtype == OLY_COMPLEX64 || x->dtype == OLY_COMPLEX128;
    int64_t half = oly_element_bytes[x->dtype] / 2;
    parts[0] = (part){x->dtype, base, is_complex ? 2 * stride : stride};
    parts[1] = (part){x->dtype, base + half, 2 * stride};
    return is_complex ? 2 : 1;
}

/* -- the largest ----------------------------------------------------------------------------------------------------- */

/* The largest so far, if few: in order, with their places. */
typedef struct few {
    union {
        uint32_t w4[FEW];
        uint64_t w8[FEW];
    } best;
    int64_t places[FEW], held;
} few;

/* Of TOGETHER keys, a bit of each that is larger. */
static uint32_t above_w4(const uint32_t *key, uint32_t least)
{
    uint32_t above = 0;
    for (int i = 0; i < TOGETHER; i++)
        above |= key[i] > least ? (uint32_t)1 << i : 0;
    return above;
}
static uint64_t above_w8(const uint64_t *key, uint64_t least) /* compilers make no vectors of such a loop */
{
    typedef uint64_t lanes __attribute__((vector_size(64)));
    lanes bits = {1, 2, 4, 8, 16, 32, 64, 128}, found = {0}, x;
    uint64_t above = 0;
    for (int i = 0; i < TOGETHER; i += 8) {
        memcpy(&x, key + i, sizeof x);
        found |= (lanes)(x > least) & bits << i;
    }
    for (int j = 0; j < 8; j++)
        above |= found[j];
    return above;
}

/* The `count` largest of those and n more, whose places are from `first` on. */
#define LARGEST(k, K)                                                                                                  \
    static inline void keep_##k(few *f, int64_t count, K key, int64_t place)                                           \
    {                                                                                                                  \
        K *best = f->best.k;                                                                                           \
        int64_t j = f->held < count ? f->held++ : f->held - 1;                                                         \
        for (; j > 0 && best[j - 1] < key; j--) {                                                                      \
            best[j] = best[j - 1];                                                                                     \
            f->places[j] = f->places[j - 1];                                                                           \
        }                                                                                                              \
        best[j] = key;                                                                                                 \
        f->places[j] = place;                                                                                          \
    }                                                                                                                  \
    static void take_largest_##k(few *f, int64_t count, int64_t first, int64_t n, const K *key)                        \
    {                                                                                                                  \
        const K *least = &f->best.k[count - 1];                                                                        \
        int64_t i = 0;                                                                                                 \
        for (; i < n && f->held < count; i++)                                                                          \
            keep_##k(f, count, key[i], first + i);                                                                     \
        for (; i + TOGETHER <= n; i += TOGETHER)                                                                       \
            for (K above = above_##k(key + i, *least); above; above &= above - 1) {                                    \
                int64_t m = i + __builtin_ctzll(above);                                                                \
                if (key[m] > *least) /* which has grown */                                                             \
                    keep_##k(f, count, key[m], first + m);                                                             \
            }                                                                                                          \
        for (; i < n; i++)                                                                                             \
            if (key[i] > *least)                                                                                       \
                keep_##k(f, count, key[i], first + i);                                                                 \
    }
LARGEST(w4, uint32_t)
LARGEST(w8, uint64_t)

/* Of a line of elements, or of results of parts of a line, which come with their numbers (in[1]); negative numbers are
 * skipped. `places` is the position of an element in the line. */
typedef struct candidates {
    const oly_local_task *t;
    const char *element, *number; /* the lines in in[0] and in[1]; NULL: an element's number is its position */
    char *out, *values;           /* values NULL: not requested */
    int64_t value_stride;
} candidates;

static int64_t number_of(const candidates *c, int64_t place)
{
    const oly_local_operand *x = &c->t->in[0], *numbers = &c->t->in[1];
    int d = c->t->dimension;
    if (!c->number)
        return x->origin[d] + place;
    int64_t at = place * numbers->stride[d];
    return numbers->dtype == OLY_INT64 ? ((const int64_t *)c->number)[at] : ((const int32_t *)c->number)[at];
}

static void store_place(const candidates *c, int64_t k, int64_t place)
{
    const oly_local_operand *x = &c->t->in[0], *to = &c->t->out;
    int d = c->t->dimension;
    int64_t bytes = oly_element_bytes[x->dtype], number = place < 0 ? -1 : number_of(c, place);
    if (to->dtype == OLY_INT64)
        ((int64_t *)c->out)[k * to->stride[d]] = number;
    else
        ((int32_t *)c->out)[k * to->stride[d]] = (int32_t)number;
    if (!c->values)
        return;
    if (place < 0)
        memset(c->values + k * c->value_stride * bytes, 0, (size_t)bytes);
    else
        memcpy(c->values + k * c->value_stride * bytes, c->element + place * x->stride[d] * bytes, (size_t)bytes);
}

/* The largest of a long line are looked for among those that are as large as most of them should be, by a sample: a sort of all would take
 * longer. Their keys and places, and how many there are; 0: too few, as where the sample is not like the line. */
#define SELECT(k, K, i4, I)                                                                                            \
    static int64_t select_##k##_##i4(const candidates *c, int64_t n, int64_t count, room *r)                           \
    {                                                                                                                  \
        const oly_local_operand *x = &c->t->in[0];                                                                     \
        const int64_t stride = x->stride[c->t->dimension], bytes = oly_element_bytes[x->dtype];                        \
        const int64_t rank = 2 * count * SAMPLE / n + 8;                                                               \
        K sample[SAMPLE], spare[SAMPLE], block[BLOCK] __attribute__((aligned(64))), *key = (K *)r->key[0];             \
        I *place = r->number[0];                                                                                       \
        int64_t m = 0;                                                                                                 \
        element[x->dtype].total(SAMPLE, sample, c->element, stride *(n / SAMPLE));                                     \
        K least = sort_##k(SAMPLE, sample, spare)[SAMPLE - rank];                                                      \
        least -= least > 0;                                                                                            \
        for (int64_t at = 0; at < n; at += BLOCK) {                                                                    \
            const int64_t some = n - at < BLOCK ? n - at : BLOCK;                                                      \
            element[x->dtype].total(some, block, c->element + at * stride * bytes, stride);                            \
            for (int64_t i = some; i % TOGETHER != 0; i++)                                                             \
                block[i] = 0;                                                                                          \
            for (int64_t i = 0; i < some; i += TOGETHER)                                                               \
                for (K above = above_##k(block + i, least); above; above &= above - 1) {                               \
                    const int64_t found = i + __builtin_ctzll(above);                                                  \
                    key[m] = block[found];                                                                             \
                    place[m++] = (I)(at + found);                                                                      \
                }                                                                                                      \
        }                                                                                                              \
        return m < count ? 0 : m;                                                                                      \
    }
/* Keys of the candidates that count, and their positions. */
#define TOP_K(k, K, i4, I)                                                                                             \
    SELECT(k, K, i4, I)                                                                                                \
    static void top_k_##k##_##i4(const candidates *c, int64_t n, int64_t count, room *r)                               \
    {                                                                                                                  \
        K *key = (K *)r->key[0], *other = (K *)r->key[1];                                                              \
        I *place = r->number[0], *more = r->number[1];                                                                 \
        int64_t m = !c->number && n >= LONG_LINE && count <= n / 16 ? select_##k##_##i4(c, n, count, r) : 0, have;     \
        if (m == 0) {                                                                                                  \
            element[c->t->in[0].dtype].total(n, key, c->element, c->t->in[0].stride[c->t->dimension]);                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                if (c->number && number_of(c, i) < 0)                                                                  \
                    continue;                                                                                          \
                key[m] = key[i];                                                                                       \
                place[m++] = (I)i;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        have = m < count ? m : count;                                                                                  \
        if (have <= FEW) {                                                                                             \
            few f = {.held = 0};                                                                                       \
            if (have > 0)                                                                                              \
                take_largest_##k(&f, have, 0, m, key);                                                                 \
            for (int64_t i = 0; i < have; i++)                                                                         \
                store_place(c, i, (int64_t)place[f.places[i]]);                                                        \
        } else {                                                                                                       \
            for (int64_t i = 0; i < m / 2; i++) { /* reversed, so that of equal ones the first comes last */           \
                K a = key[i];                                                                                          \
                I b = place[i];                                                                                        \
                key[i] = key[m - 1 - i];                                                                               \
                place[i] = place[m - 1 - i];                                                                           \
                key[m - 1 - i] = a;                                                                                    \
                place[m - 1 - i] = b;                                                                                  \
            }                                                                                                          \
            const I *order = pairs_##k##_##i4(m, key, other, place, more);                                             \
            for (int64_t i = 0; i < have; i++)                                                                         \
                store_place(c, i, (int64_t)order[m - 1 - i]);                                                          \
        }                                                                                                              \
        for (int64_t i = have; i < count; i++)                                                                         \
            store_place(c, i, -1);                                                                                     \
    }
TOP_K(w4, uint32_t, i4, uint32_t)
TOP_K(w8, uint64_t, i4, uint32_t)
TOP_K(w4, uint32_t, i8, uint64_t)
TOP_K(w8, uint64_t, i8, uint64_t)

/* The few largest of a line in memory: keys of some elements at a time, which stay in cache. */
static void few_of_line(const candidates *c, int64_t n, int64_t count)
{
    const oly_local_operand *x = &c->t->in[0];
    int64_t stride = x->stride[c->t->dimension], bytes = oly_element_bytes[x->dtype];
    uint64_t key[BLOCK] __attribute__((aligned(64)));
    few f = {.held = 0};
    for (int64_t at = 0; at < n && count > 0; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        element[x->dtype].total(m, key, c->element + at * stride * bytes, stride);
        if (element[x->dtype].width == 4)
            take_largest_w4(&f, count, at, m, (const uint32_t *)(const void *)key);
        else
            take_largest_w8(&f, count, at, m, key);
    }
    for (int64_t i = 0; i < count; i++)
        store_place(c, i, i < f.held ? f.places[i] : -1);
}

static void top_k_line(const oly_local_task *t, const char *const *in, char *out, char *values, char *scratch)
{
    int d = t->dimension;
    int64_t n = t->in[0].extent[d], count = t->out.extent[d];
    oly_dtype dtype = t->in[0].dtype;
    candidates c = {t, in[0], t->n_in == 2 ? in[1] : NULL, out, values, t->out.stride[d]};
    if (!c.number && count <= FEW) {
        few_of_line(&c, n, count);
        return;
    }
    room r = room_at(t, scratch);
    if (element[dtype].width == 4 && !r.wide)
        top_k_w4_i4(&c, n, count, &r);
    else if (element[dtype].width == 4)
        top_k_w4_i8(&c, n, count, &r);
    else if (!r.wide)
        top_k_w8_i4(&c, n, count, &r);
    else
        top_k_w8_i8(&c, n, count, &r);
}

/* -- lines ----------------------------------------------------------------------------------------------------------- */

/* One line: the sorted positions. */
static void argsort_line(const oly_local_task *t, const char *const *in, char *out, char *scratch)
{
    int d = t->dimension, n_parts = 0;
    int64_t n = t->in[0].extent[d], stride = t->out.stride[d];
    bool backwards = t->reverse;
    part parts[2 * OLY_LOCAL_MOST];
    room r = room_at(t, scratch);
    for (int k = 0; k < t->n_in; k++)
        n_parts += parts_of(&t->in[k], in[k], t->in[k].stride[d], parts + n_parts);
    if (r.wide)
        store_numbers_i8(n, n, order_i8(n, n_parts, parts, backwards, &r), backwards, &t->out, out, stride);
    else
        store_numbers_i4(n, n, order_i4(n, n_parts, parts, backwards, &r), backwards, &t->out, out, stride);
}

static void sort_complex(const oly_local_task *t, const char *in, char *out, int64_t stride, char *scratch)
{
    int d = t->dimension;
    int64_t n = t->in[0].extent[d], bytes = oly_element_bytes[t->in[0].dtype];
    part parts[2];
    room r = room_at(t, scratch);
    int n_parts = parts_of(&t->in[0], in, t->in[0].stride[d], parts);
    const void *order = r.wide ? (const void *)order_i8(n, n_parts, parts, false, &r)
                               : (const void *)order_i4(n, n_parts, parts, false, &r);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = r.wide ? (int64_t)((const uint64_t *)order)[k] : (int64_t)((const uint32_t *)order)[k];
        memcpy(out + k * stride * bytes, in + from * t->in[0].stride[d] * bytes, (size_t)bytes);
    }
}

static void sort_line(const oly_local_task *t, const char *in, char *out, char *scratch)
{
    int d = t->dimension;
    oly_dtype dtype = t->in[0].dtype;
    int64_t n = t->in[0].extent[d], stride = t->out.stride[d];
    if (t->reverse) {
        out += (n - 1) * stride * oly_element_bytes[dtype];
        stride = -stride;
    }
    if (!element[dtype].store) {
        sort_complex(t, in, out, stride, scratch);
        return;
    }
    kinds k = {0};
    room r = room_at(t, scratch);
    element[dtype].load(n, r.key[0], in, t->in[0].stride[d], &k);
    void *sorted = element[dtype].width == 4 ? (void *)sort_w4(n, (uint32_t *)r.key[0], (uint32_t *)r.key[1])
                                             : (void *)sort_w8(n, (uint64_t *)r.key[0], (uint64_t *)r.key[1]);
    element[dtype].store(n, out, stride, sorted);
    if (k.special)
        element[dtype].restore(n, out, stride, in, t->in[0].stride[d], &k);
}

static void for_lines(const oly_local_task *t, const void *const *in, void *out, void *scratch, int chunk, int n_chunks)
{
    int d = t->dimension;
    int64_t lines = oly_local_count(&t->out, d), begin = lines * chunk / n_chunks, end = lines * (chunk + 1) / n_chunks;
    char *own = (char *)scratch + oly_partial_bytes(t) + (size_t)chunk * oly_sort_room_bytes(t);
    for (int64_t line = begin; line < end; line++) {
        const char *from[OLY_LOCAL_MOST];
        for (int k = 0; k < t->n_in; k++)
            from[k] = (const char *)in[k] + oly_local_offset(t->out.rank, t->out.extent, t->in[k].stride, d, line) *
                                                oly_element_bytes[t->in[k].dtype];
        int64_t to = oly_local_offset(t->out.rank, t->out.extent, t->out.stride, d, line);
        char *place = (char *)out + to * oly_element_bytes[t->out.dtype];
        if (t->op == OLY_LOCAL_SORT)
            sort_line(t, from[0], place, own);
        else if (t->op == OLY_LOCAL_ARGSORT)
            argsort_line(t, from, place, own);
        else
            top_k_line(t, from, place, t->partial ? (char *)scratch + to * oly_element_bytes[t->in[0].dtype] : NULL,
                       own);
    }
}

/* -- a long line, in pieces ------------------------------------------------------------------------------------------ */

typedef struct borders {
    int64_t begin[OLY_SORT_PIECES + 1]; /* of each piece among the keys */
    kinds found[OLY_SORT_PIECES];       /* by the chunk that loaded */
} borders;
_Static_assert(sizeof(borders) <= OLY_SORT_BORDERS_BYTES, "room for borders");

typedef struct long_line {
    const oly_local_task *t;
    const char *in;
    char *out;
    int64_t n, in_stride, out_stride;
    room room;
    borders *borders;
    size_t width; /* bytes of what is sorted: a key, or a key packed with its position */
} long_line;

static long_line long_line_of(const oly_local_task *t, const void *in, void *out, char *scratch)
{
    int d = t->dimension;
    long_line l = {.t = t,
                   .in = in,
                   .out = out,
                   .n = t->in[0].extent[d],
                   .in_stride = t->in[0].stride[d],
                   .out_stride = t->out.stride[d],
                   .room = room_at(t, scratch),
                   .borders = (borders *)(scratch + oly_sort_room_bytes(t))};
    l.width = t->op == OLY_LOCAL_ARGSORT ? 8 : element[t->in[0].dtype].width;
    if (t->op == OLY_LOCAL_SORT && t->reverse) {
        l.out += (l.n - 1) * l.out_stride * oly_element_bytes[t->out.dtype];
        l.out_stride = -l.out_stride;
    }
    return l;
}

/* Keys [begin, end) with their positions: from the end where the order is descending, so that equal elements keep theirs. */
static void load_packed(const long_line *l, int64_t begin, int64_t end)
{
    const oly_local_task *t = l->t;
    uint32_t key[BLOCK];
    uint64_t *to = (uint64_t *)l->room.key[0];
    kinds unused;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t count = end - i < BLOCK ? end - i : BLOCK;
        element[t->in[0].dtype].load(count, key, l->in + i * l->in_stride * oly_element_bytes[t->in[0].dtype],
                                     l->in_stride, &unused);
        for (int64_t k = 0; k < count; k++)
            to[i + k] = (uint64_t)key[k] << 32 | (uint64_t)(t->reverse ? l->n - 1 - i - k : i + k);
    }
}

static void load_piece(const long_line *l, int chunk, int n_chunks)
{
    const oly_local_task *t = l->t;
    int64_t begin = l->n * chunk / n_chunks, end = l->n * (chunk + 1) / n_chunks;
    if (t->op == OLY_LOCAL_ARGSORT)
        load_packed(l, begin, end);
    else
        element[t->in[0].dtype].load(end - begin, l->room.key[0] + (size_t)begin * l->width,
                                     l->in + begin * l->in_stride * oly_element_bytes[t->in[0].dtype], l->in_stride,
                                     &l->borders->found[chunk]);
    if (chunk == 0) {
        l->borders->begin[0] = 0;
        l->borders->begin[OLY_SORT_PIECES] = l->n;
    }
}

/* Division `level`: each of the 2^level pieces of the one before in two. */
static void divide_piece(const long_line *l, int level, int piece)
{
    enum { LEAST = 4096 }; /* keys: pieces of a line with many equal ones may be short */
    int64_t *begin = l->borders->begin + (OLY_SORT_PIECES >> level) * piece, *end = begin + (OLY_SORT_PIECES >> level);
    int64_t n = *end - *begin, *middle = begin + (OLY_SORT_PIECES >> (level + 1));
    char *keys = l->room.key[0] + (size_t)*begin * l->width;
    bool equal;
    *middle = n < LEAST       ? *end
              : l->width == 4 ? *begin + divide_w4(n, (uint32_t *)keys, &equal)
                              : *begin + divide_w8(n, (uint64_t *)keys, &equal);
}

static void store_positions(const long_line *l, int64_t begin, int64_t end, const uint64_t *sorted)
{
    for (int64_t k = begin; k < end; k++) {
        int64_t position = (uint32_t)sorted[k - begin], to = k;
        if (l->t->reverse) {
            position = l->n - 1 - position;
            to = l->n - 1 - k;
        }
        to *= l->out_stride;
        if (l->t->out.dtype == OLY_INT64)
            ((int64_t *)l->out)[to] = position;
        else
            ((int32_t *)l->out)[to] = (int32_t)position;
    }
}

static void sort_piece(const long_line *l, int chunk, int n_chunks)
{
    const oly_local_task *t = l->t;
    const int64_t *begin = l->borders->begin + OLY_SORT_PIECES / n_chunks * chunk,
                  *end = begin + OLY_SORT_PIECES / n_chunks;
    int64_t n = *end - *begin;
    size_t at = (size_t)*begin * l->width;
    char *keys = l->room.key[0] + at;
    char *other = (t->op == OLY_LOCAL_ARGSORT ? (char *)l->room.number[0] : l->room.key[1]) + at;
    void *sorted = l->width == 4 ? (void *)sort_w4(n, (uint32_t *)keys, (uint32_t *)other)
                                 : (void *)sort_w8(n, (uint64_t *)keys, (uint64_t *)other);
    if (t->op == OLY_LOCAL_ARGSORT)
        store_positions(l, *begin, *end, sorted);
    else
        element[t->in[0].dtype].store(n, l->out + *begin * l->out_stride * oly_element_bytes[t->out.dtype],
                                      l->out_stride, sorted);
}

static void restore_line(const long_line *l)
{
    kinds all = {0};
    if (!element[l->t->in[0].dtype].restore) /* nothing was looked for */
        return;
    for (int k = 0; k < OLY_SORT_PIECES; k++) {
        const kinds *found = &l->borders->found[k];
        all = (kinds){all.negative + found->negative, all.zeros + found->zeros, all.nans + found->nans,
                      all.special || found->special};
    }
    if (all.special)
        element[l->t->in[0].dtype].restore(l->n, l->out, l->out_stride, l->in, l->in_stride, &all);
}

static void in_pieces(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase, int chunk,
                      int n_chunks)
{
    int divisions = oly_sort_divisions(t);
    long_line l = long_line_of(t, in[0], out, scratch);
    if (phase == 0)
        load_piece(&l, chunk, n_chunks);
    else if (phase <= divisions)
        divide_piece(&l, phase - 1, chunk);
    else if (phase == divisions + 1)
        sort_piece(&l, chunk, n_chunks);
    else
        restore_line(&l);
}

void OLY_ISA_NAME(oly_sort_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                int chunk, int n_chunks)
{
    if (oly_sort_divisions(t) > 0)
        in_pieces(t, in, out, scratch, phase, chunk, n_chunks);
    else
        for_lines(t, in, out, scratch, chunk, n_chunks);
}
