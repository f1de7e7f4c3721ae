/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers by an independent implementation of the block function: Threefry-2x32, 20 rounds, in JAX's
 * partitionable form. Bits are compared exactly, whatever the layout. Called by evaluate_ops.c. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct words {
    uint32_t a, b;
} words;

static words threefry(words key, words x)
{
    static const int turn[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t k[3] = {key.a, key.b, key.a ^ key.b ^ 0x1BD11BDAu};
    x.a += k[0];
    x.b += k[1];
    for (int round = 0; round < 5; round++) {
        for (int j = 0; j < 4; j++) {
            int n = turn[round % 2][j];
            x.a += x.b;
            x.b = (x.b << n | x.b >> (32 - n)) ^ x.a;
        }
        x.a += k[(round + 1) % 3];
        x.b += k[(round + 2) % 3] + (uint32_t)round + 1;
    }
    return x;
}

static words key_at(const array *keys, int64_t i)
{
    return (words){(uint32_t)keys->v[2 * i], (uint32_t)keys->v[2 * i + 1]};
}

static words split_key(words key, uint32_t i)
{
    return threefry(key, (words){0, i});
}

/* Element i of random bits, of 32 or fewer. */
static uint32_t bits_of(words key, int64_t i, int bits)
{
    words w = threefry(key, (words){(uint32_t)(i >> 32), (uint32_t)i});
    uint32_t all = w.a ^ w.b;
    return bits == 32 ? all : all & ((1u << bits) - 1);
}

static double uniform(words key, int64_t i, oly_dtype dtype)
{
    words w;
    switch ((int)dtype) {
    case OLY_BFLOAT16: return (bits_of(key, i, 8) >> 1) / 128.0;
    case OLY_FLOAT16: return (bits_of(key, i, 16) >> 6) / 1024.0;
    case OLY_FLOAT32: return (bits_of(key, i, 32) >> 9) / 8388608.0;
    default:
        w = threefry(key, (words){(uint32_t)(i >> 32), (uint32_t)i});
        return (double)(((uint64_t)w.a << 32 | w.b) >> 12) / 4503599627370496.0;
    }
}

/* Of narrow types, too, from 32 bits. */
static double whole_number(words key, int64_t i, const statement *s)
{
    uint32_t span = s->high[0] <= s->low[0] ? 1 : (uint32_t)(s->high[0] - s->low[0]);
    uint32_t high = bits_of(split_key(key, 0), i, 32), low = bits_of(split_key(key, 1), i, 32);
    uint32_t times = (1u << 16) % span;
    times = times * times % span;
    uint32_t offset = high % span * times + low % span;
    return wrapped(s->dtype, (double)s->low[0] + (double)(offset % span));
}

typedef struct sorted {
    uint32_t by;
    int64_t at;
} sorted;
static int by_key(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    return x->by < y->by ? -1 : x->by > y->by ? 1 : x->at < y->at ? -1 : 1;
}

/* The numbers from 0 to n-1 in random order. */
static void shuffled(words key, int64_t n, sorted *order)
{
    int rounds = (int)ceil(3 * log(fmax(1, (double)n)) / log((double)UINT32_MAX));
    for (int64_t i = 0; i < n; i++)
        order[i].at = i;
    for (int r = 0; r < rounds; r++) {
        words sub = split_key(key, 1);
        key = split_key(key, 0);
        int64_t *before = take(sizeof *before * (size_t)(n + 1));
        for (int64_t i = 0; i < n; i++) {
            before[i] = order[i].at;
            order[i] = (sorted){bits_of(sub, i, 32), i};
        }
        qsort(order, (size_t)n, sizeof *order, by_key);
        for (int64_t i = 0; i < n; i++)
            order[i].at = before[order[i].at];
    }
}

static array *permuted(words key, const array *a)
{
    array *y = new_array(a->dtype, a->rank, a->shape);
    int64_t n = a->shape[0], row = n ? a->size / n * a->parts : 0;
    sorted *order = take(sizeof *order * (size_t)(n + 1));
    shuffled(key, n, order);
    for (int64_t i = 0; i < n; i++)
        memcpy(y->v + i * row, a->v + order[i].at * row, sizeof *y->v * (size_t)row);
    y->error = a->error;
    return y;
}

static oly_dtype made_type(const program *p, const statement *s)
{
    switch ((int)s->op) {
    case OP_random_key:
    case OP_random_split:
    case OP_random_fold_in: return OLY_UINT32;
    case OP_random_bernoulli: return OLY_BOOL;
    default: (void)p; return s->dtype;
    }
}

static bool makes(const statement *s)
{
    switch ((int)s->op) {
    case OP_random_bits: return s->dtype == OLY_UINT8 || s->dtype == OLY_UINT16 || s->dtype == OLY_UINT32;
    case OP_random_randint:
        return is_integer(s->dtype) && s->dtype != OLY_INT64 && s->dtype != OLY_UINT64 &&
               (!element_is_unsigned(s->dtype) || s->low[0] >= 0);
    case OP_random_uniform: return is_float(s->dtype);
    default: return true;
    }
}

array *evaluate_random(program *p, const statement *s, array *const *a)
{
    static const int bits[] = {1, 8, 16, 32, 64, 8, 16, 32, 64};
    int64_t shape[MOST_RANK];
    int rank = s->rank;
    memcpy(shape, s->shape, sizeof shape);
    if (s->op == OP_random_key) {
        array *y = new_array(OLY_UINT32, 1, (int64_t[]){2});
        y->v[1] = s->k;
        return y;
    }
    const array *keys = a[0];
    if (keys->dtype != OLY_UINT32 || keys->rank != 1 || keys->shape[0] != 2 || !makes(s))
        return refuse(p, "key"), NULL;
    words key = key_at(keys, 0);
    if (s->op == OP_random_permutation)
        return a[1]->rank < 1 || a[1]->t ? (refuse(p, "rows"), NULL) : permuted(key, a[1]);
    if (s->op == OP_random_fold_in) {
        const array *number = a[1];
        if (number->rank != 0 || number->error > 0 || !is_integer(number->dtype))
            return refuse(p, "number"), NULL;
        words w = threefry(key, (words){0, (uint32_t)(int64_t)number->v[0]});
        array *y = new_array(OLY_UINT32, 1, (int64_t[]){2});
        y->v[0] = w.a;
        y->v[1] = w.b;
        return y;
    }
    if (s->op == OP_random_split) {
        rank = 2;
        shape[1] = 2;
    }
    if (elements_of(rank, shape) > 5 * p->most_elements)
        return refuse(p, "too large"), NULL;
    array *y = new_array(made_type(p, s), rank, shape);
    for (int64_t i = 0; i < y->size; i++)
        switch ((int)s->op) {
        case OP_random_split: {
            words w = split_key(key, (uint32_t)(i / 2));
            y->v[i] = i % 2 ? w.b : w.a;
            break;
        }
        case OP_random_bits: y->v[i] = bits_of(key, i, bits[s->dtype]); break;
        case OP_random_uniform: y->v[i] = uniform(key, i, s->dtype); break;
        case OP_random_randint: y->v[i] = whole_number(key, i, s); break;
        default: y->v[i] = uniform(key, i, p->wide ? OLY_FLOAT64 : OLY_FLOAT32) < s->number; break;
        }
    if (s->op == OP_random_uniform && s->dtype == OLY_FLOAT64)
        y->error = 1e-15; /* more bits than sums represent */
    finish_array(p, y);
    return y;
}
