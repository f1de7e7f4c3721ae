/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers from keys, after the definitions of JAX's generator: Threefry-2x32 of a key and an element's number, and what
 * distributions make of the bits. Operands: a key, and an array that lends its type and shape. */
#define _GNU_SOURCE /* M_PIl */
#include "ops_reference.h"

/* -- the generator -------------------------------------------------------------------------------------------------------- */
typedef struct words {
    uint32_t first, second;
} words;

static words threefry(words key, words x)
{
    static const int turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    const uint32_t keys[3] = {key.first, key.second, key.first ^ key.second ^ 0x1BD11BDA};
    x.first += keys[0], x.second += keys[1];
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < 4; k++) {
            int n = turns[round % 2][k];
            x.first += x.second;
            x.second = (x.second << n | x.second >> (32 - n)) ^ x.first;
        }
        x.first += keys[(round + 1) % 3];
        x.second += keys[(round + 2) % 3] + (uint32_t)round + 1;
    }
    return x;
}

static words key_of(const tensor *t)
{
    return (words){(uint32_t)creall(t->element[0]), (uint32_t)creall(t->element[1])};
}

static words drawn(words key, uint64_t i)
{
    return threefry(key, (words){(uint32_t)(i >> 32), (uint32_t)i});
}

static uint64_t bits_of(words key, uint64_t i, int bits)
{
    words w = drawn(key, i);
    if (bits == 64)
        return (uint64_t)w.first << 32 | w.second;
    return (w.first ^ w.second) & (bits >= 32 ? UINT32_MAX : (1u << bits) - 1);
}

static uint64_t number_at(const tensor *t, const int64_t *at)
{
    uint64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * (uint64_t)t->shape[d] + (uint64_t)at[d];
    return i;
}

/* -- uniform, and made of it -------------------------------------------------------------------------------------------- */
static int mantissa(oly_dtype dtype)
{
    return dtype == OLY_FLOAT16 ? 10 : dtype == OLY_BFLOAT16 ? 7 : dtype == OLY_FLOAT32 ? 23 : 52;
}
static long double smallest(oly_dtype dtype)
{
    return ldexpl(1, dtype == OLY_FLOAT16 ? -14 : dtype == OLY_FLOAT64 ? -1022 : -126);
}
static long double unit(oly_dtype dtype, words key, uint64_t i)
{
    int bits = dtype == OLY_BFLOAT16 ? 8 : ops_bits(dtype);
    if (bits < mantissa(dtype) || bits > 64) /* a type that is refused */
        return 0;
    return ldexpl((long double)(bits_of(key, i, bits) >> (bits - mantissa(dtype))), -mantissa(dtype));
}
static long double between(oly_dtype dtype, words key, uint64_t i, long double low, long double high)
{
    long double span = creall(ops_rounded(dtype, high - low)), u = unit(dtype, key, i);
    long double product =
        ops_bits(dtype) == 16 ? creall(ops_rounded(dtype, u * span)) : u * span; /* else rounded once */
    return fmaxl(low, creall(ops_rounded(dtype, product + low)));
}
static long double inverse_erf(long double y)
{
    long double low = -7, high = 7;
    if (y == 0)
        return 0;
    for (int k = 0; k < 80; k++) {
        long double middle = (low + high) / 2;
        bool less = y < 0 ? erfcl(-middle) < 1 + y : erfcl(middle) > 1 - y;
        *(less ? &low : &high) = middle;
    }
    return (low + high) / 2;
}
static long double normal(oly_dtype dtype, words key, uint64_t i)
{
    return sqrtl(2) * inverse_erf(between(dtype, key, i, ldexpl(1, -mantissa(dtype) - 1) - 1, 1));
}
static long double gumbel(oly_dtype dtype, words key, uint64_t i)
{
    return -logl(-logl(between(dtype, key, i, smallest(dtype), 1)));
}

/* By the letter of the row. */
static number value_random(const row *r, const tensor *in, const int64_t *at)
{
    oly_dtype dtype = in[1].dtype;
    words key = key_of(in);
    uint64_t i = number_at(&in[1], at);
    long double u = 0;
    switch (((const char *)r->detail)[0]) {
    case 'b': return (long double)bits_of(key, i, ops_bits(dtype));
    case 'u': return unit(dtype, key, i);
    case 'v': return between(dtype, key, i, -2, 3);
    case 'n':
        if (element_parts(dtype) > 1) {
            oly_dtype part = dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : OLY_FLOAT64;
            return ops_complex(normal(part, drawn(key, 0), i), normal(part, drawn(key, 1), i)) / sqrtl(2);
        }
        return normal(dtype, key, i);
    case 't':
        u = between(dtype, key, i, creall(ops_rounded(dtype, erfl(-1 / sqrtl(2)))),
                    creall(ops_rounded(dtype, erfl(2 / sqrtl(2)))));
        return sqrtl(2) * inverse_erf(u);
    case 'p': return unit(OLY_FLOAT32, key, i) < 0.25L;
    case 'g': return gumbel(dtype, key, i);
    case 'e': return -log1pl(-unit(dtype, key, i));
    case 'l':
        u = between(dtype, key, i, ldexpl(1, -mantissa(dtype) - 1) - 1, 1);
        return (u > 0 ? 1 : u < 0 ? -1 : 0) * log1pl(-fabsl(u));
    case 'o': u = between(dtype, key, i, smallest(dtype), 1); return logl(u) - log1pl(-u);
    case 'c': return tanl(M_PIl * (between(dtype, key, i, ldexpl(1, -mantissa(dtype)), 1) - 0.5L));
    case '1': return unit(oly_x64_enabled() ? OLY_FLOAT64 : OLY_FLOAT32, key, i) < 0.5L ? 1 : -1;
    default: { /* 'i': from -3 to 8 */
        int bits = ops_bits(dtype) == 64 ? 64 : 32;
        uint64_t offset = bits_of(drawn(key, 0), i, bits) % 11 * (uint64_t)(((whole)1 << bits) % 11);
        return (long double)((offset + bits_of(drawn(key, 1), i, bits) % 11) % 11) -
               (element_is_unsigned(dtype) ? 0 : 3);
    }
    }
}
#define DIM(d) oly_dim(in[1], d)
#define TYPE   oly_dtype_of(in[1])
#define SHAPE  oly_rank(in[1]), oly_shape(in[1])
#define FROM(...)                                                                                                      \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
#define CALL(name) static oly_array call_##name(const oly_array *in)
/* clang-format off */
CALL(bits)
FROM(oly_random_bits_shape(in[0], TYPE, NULL, SHAPE))
CALL(uniform)
FROM(oly_random_uniform(in[0], TYPE, DIM(0), DIM(1)))
CALL(uniform_between)
FROM(oly_random_uniform_between(in[0], TYPE, -2, 3, DIM(0), DIM(1)))
CALL(normal)
FROM(oly_random_normal(in[0], TYPE, DIM(0), DIM(1)))
CALL(truncated_normal)
FROM(oly_random_truncated_normal(in[0], TYPE, -1, 2, DIM(0), DIM(1)))
CALL(bernoulli)
FROM(oly_random_bernoulli(in[0], oly_scalar(0.25, OLY_FLOAT32), DIM(0), DIM(1)))
CALL(gumbel)
FROM(oly_random_gumbel(in[0], TYPE, DIM(0), DIM(1)))
CALL(exponential)
FROM(oly_random_exponential(in[0], TYPE, DIM(0), DIM(1)))
CALL(laplace)
FROM(oly_random_laplace(in[0], TYPE, DIM(0), DIM(1)))
CALL(logistic)
FROM(oly_random_logistic(in[0], TYPE, DIM(0), DIM(1)))
CALL(cauchy)
FROM(oly_random_cauchy(in[0], TYPE, DIM(0), DIM(1)))
CALL(rademacher)
FROM(oly_random_rademacher(in[0], TYPE, DIM(0), DIM(1)))
/* clang-format on */
CALL(randint)
{
    int low = element_is_unsigned(TYPE) ? 0 : -3;
    return oly_random_randint(in[0], TYPE, low, low + 11, DIM(0), DIM(1));
}

/* -- keys ------------------------------------------------------------------------------------------------------------------ */
static number half_of(words w, int64_t which)
{
    return which ? w.second : w.first;
}
static number value_key(const row *r, const tensor *in, const int64_t *at)
{
    (void)r, (void)in;
    return half_of((words){0, 1701}, at[0]);
}
CALL(key)
FROM(((void)in, oly_random_key(1701))) static number value_split(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return half_of(drawn(key_of(in), (uint64_t)at[0]), at[1]);
}
CALL(split)
FROM(oly_random_split(in[0], 9)) static number value_fold_in(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return half_of(drawn(key_of(in), (uint32_t)(int32_t)creall(in[1].element[0])), at[0]);
}
CALL(fold_in)
FROM(oly_random_fold_in(in[0], in[1])) static number value_threefry(const row *r, const tensor *in, const int64_t *at)
{
    int64_t n = in[1].size / 2, i = at[0] * in[1].shape[1] + at[1];
    words counter = {(uint32_t)creall(in[1].element[i % n]), (uint32_t)creall(in[1].element[i % n + n])};
    (void)r;
    return half_of(threefry(key_of(in), counter), i / n);
}
CALL(threefry2x32)
FROM(oly_threefry2x32(in[0], in[1]))

/* -- order and choice ------------------------------------------------------------------------------------------------------ */

/* Place k of n (at most a thousand) elements sorted by random bits. */
static int64_t permuted(words key, int64_t n, int64_t k)
{
    words subkey = drawn(key, 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t before = 0;
        uint64_t own = bits_of(subkey, (uint64_t)i, 32);
        for (int64_t j = 0; j < n; j++) {
            uint64_t other = bits_of(subkey, (uint64_t)j, 32);
            before += other < own || (other == own && j < i);
        }
        if (before == k)
            return i;
    }
    return -1;
}
static number value_permutation(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return (long double)permuted(key_of(in), in[1].shape[0], at[0]);
}
CALL(permutation)
FROM(oly_random_permutation(in[0], DIM(0)))
static number value_permutation_of(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return ops_get(&in[1], AT(at[0], permuted(key_of(in), in[1].shape[1], at[1])));
}
CALL(permutation_of)
FROM(oly_random_permutation_of(in[0], in[1], 1))

/* One of 7, as random integers of the default type are made. */
static int64_t chosen(words key, uint64_t i)
{
    int bits = oly_x64_enabled() ? 64 : 32;
    uint64_t high = bits_of(drawn(key, 0), i, bits) % 7 * (uint64_t)(((whole)1 << bits) % 7);
    return (int64_t)((high + bits_of(drawn(key, 1), i, bits) % 7) % 7);
}
static number value_choice(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return (long double)chosen(key_of(in), number_at(&in[1], at));
}
CALL(choice)
FROM(oly_random_choice(in[0], 7, true, NULL, DIM(0), DIM(1)))
static number value_choice_of(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return ops_get(&in[1], AT(permuted(key_of(in), in[1].shape[0], at[0]), at[1]));
}
CALL(choice_of)
FROM(oly_random_choice_of(in[0], in[1], 0, false, NULL, DIM(0)))
static number value_categorical(const row *r, const tensor *in, const int64_t *at)
{
    const tensor *logits = &in[1];
    int64_t n = logits->shape[1], best = 0;
    long double most = 0;
    (void)r;
    for (int64_t k = 0; k < n; k++) {
        long double noise = gumbel(logits->dtype, key_of(in), (uint64_t)(at[0] * n + k));
        long double x = noise + creall(ops_get(logits, AT(at[0], k)));
        if (k == 0 || x > most)
            most = x, best = k;
    }
    return (long double)best;
}
CALL(categorical)
FROM(oly_random_categorical(in[0], in[1], 1))

#define ROW(name, op, types, result, call, letter, ulps, flags)                                                        \
    {                                                                                                                  \
        name, op, "u:2,mn->mn", types, result, call_##call, value_random, 0, 99, ulps, NEAR_ONE | flags, letter        \
    }
#define SOME REFUSES_NONE
static const row rows[] = {
    {"random_key", "iota", "u:m->2", "u", ">u", call_key, value_key, 0, 99, 0, SOME, NULL},
    {"random_split", "threefry2x32", "u:2->92", "u", ">u", call_split, value_split, 0, 99, 0, SOME, NULL},
    {"random_fold_in", "threefry2x32", "u:2,->2", BOOLS INTEGERS, ">u", call_fold_in, value_fold_in, 0, 99, 0, 0, NULL},
    {"threefry2x32", "threefry2x32", "u:2,u:Dn->Dn", "u", ">u", call_threefry2x32, value_threefry, 0, 99, 0, SOME,
     NULL},
    ROW("random_bits", "random_bits", "U34u", "s", bits, "b", 0, 0),
    ROW("random_bits", "position", "34uU", "s", bits, "b", 0, 0),
    ROW("random_uniform", NULL, FLOATS, "s", uniform, "u", 0, 0),
    ROW("random_uniform_between", NULL, FLOATS, "s", uniform_between, "v", 1, SOME),
    ROW("random_uniform_between", "fma", "fF", "s", uniform_between, "v", 1, SOME),
    ROW("random_normal", NULL, FLOATS COMPLEXES, "s", normal, "n", 32, 0),
    ROW("random_truncated_normal", NULL, "fF", "s", truncated_normal, "t", 32, SOME),
    ROW("random_bernoulli", NULL, "f", ">b", bernoulli, "p", 0, SOME),
    ROW("random_gumbel", "rough_log", FLOATS, "s", gumbel, "g", 16, 0),
    ROW("random_exponential", NULL, FLOATS, "s", exponential, "e", 8, 0),
    ROW("random_laplace", NULL, FLOATS, "s", laplace, "l", 8, 0),
    ROW("random_logistic", NULL, FLOATS, "s", logistic, "o", 8, 0),
    ROW("random_cauchy", NULL, "fF", "s", cauchy, "c", 1024,
        SOME), /* a rounding of the angle counts as often as the tangent is large */
    ROW("random_rademacher", NULL, "12iIhBfF", "s", rademacher, "1", 0, SOME),
    ROW("random_randint", NULL, INTEGERS, "s", randint, "i", 0, 0),
    {"random_permutation", NULL, "u:2,m->m", "f", "d", call_permutation, value_permutation, 0, 99, 0, SOME, NULL},
    {"random_permutation_of", NULL, "u:2,mn->mn", ALL, "s", call_permutation_of, value_permutation_of, 0, 99, 0, 0,
     NULL},
    {"random_choice", NULL, "u:2,mn->mn", "f", "d", call_choice, value_choice, 0, 99, 0, SOME, NULL},
    {"random_choice_of", NULL, "u:2,mn->mn", ALL, "s", call_choice_of, value_choice_of, 0, 99, 0, AT_LEAST_ONE, NULL},
    {"random_categorical", "argmax", "u:2,mn->m", "fF", "d", call_categorical, value_categorical, -1, 1, 0,
     AT_LEAST_ONE | SOME, NULL},
};
const row_list ops_random = ROW_LIST(rows);
