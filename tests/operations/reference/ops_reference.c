/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors of ops_reference.h: their elements in every type, their shapes, the values of operands. */
#include "ops_reference.h"
#include <float.h>
#include <stdlib.h>

/* 8-bit floats have tests of their own: test_float8.c, test_kernels_types.c. */
const char ops_type_letters[OLY_N_DTYPES] = {
    [OLY_BOOL] = 'b',     [OLY_INT8] = '1',    [OLY_INT16] = '2',   [OLY_INT32] = 'i',     [OLY_INT64] = 'I',
    [OLY_UINT8] = '3',    [OLY_UINT16] = '4',  [OLY_UINT32] = 'u',  [OLY_UINT64] = 'U',    [OLY_FLOAT16] = 'h',
    [OLY_BFLOAT16] = 'B', [OLY_FLOAT32] = 'f', [OLY_FLOAT64] = 'F', [OLY_COMPLEX64] = 'c', [OLY_COMPLEX128] = 'C'};

oly_dtype ops_type_of(char letter)
{
    return (oly_dtype)((const char *)memchr(ops_type_letters, letter, sizeof ops_type_letters) - ops_type_letters);
}

/* -- elements ------------------------------------------------------------------------------------------------------ */
number ops_complex(long double real, long double imaginary)
{
    return __builtin_complex(real, imaginary);
}

int ops_bits(oly_dtype dtype)
{
    return (int)oly_dtype_size(dtype) * 8;
}

whole ops_wrapped(oly_dtype dtype, whole x)
{
    if (dtype == OLY_BOOL)
        return x != 0;
    whole modulus = (whole)1 << ops_bits(dtype), rest = x & (modulus - 1);
    return !element_is_unsigned(dtype) && rest >> (ops_bits(dtype) - 1) ? rest - modulus : rest;
}

static bool is_whole(oly_dtype dtype)
{
    return !element_is_inexact(dtype);
}

static void store_one(oly_dtype dtype, void *data, int64_t i, number x)
{
    if (is_whole(dtype)) {
        long double real = creall(x);
        whole value = ops_wrapped(dtype, fabsl(real) < 0x1p120L ? (whole)real : 0);
        if (dtype == OLY_BOOL)
            ((bool *)data)[i] = real != 0;
        else
            memcpy((char *)data + (size_t)i * oly_dtype_size(dtype), &value, oly_dtype_size(dtype));
        return;
    }
    set_element_part(dtype, data, i, 0, (double)creall(x));
    if (element_parts(dtype) > 1)
        set_element_part(dtype, data, i, 1, (double)cimagl(x));
}

static number load_one(oly_dtype dtype, const void *data, int64_t i)
{
    if (dtype == OLY_INT64)
        return ((const int64_t *)data)[i];
    if (dtype == OLY_UINT64)
        return ((const uint64_t *)data)[i];
    return ops_complex(element_part(dtype, data, i, 0),
                       element_parts(dtype) > 1 ? element_part(dtype, data, i, 1) : 0.0);
}

void ops_store(const tensor *t, void *data)
{
    for (int64_t i = 0; i < t->size; i++)
        store_one(t->dtype, data, i, t->element[i]);
}

void ops_load(tensor *t, const void *data)
{
    for (int64_t i = 0; i < t->size; i++)
        t->element[i] = load_one(t->dtype, data, i);
}

number ops_rounded(oly_dtype dtype, number x)
{
    char exact[16];
    store_one(dtype, exact, 0, x);
    return load_one(dtype, exact, 0);
}

void ops_round(tensor *t)
{
    for (int64_t i = 0; i < t->size; i++)
        t->element[i] = ops_rounded(t->dtype, t->element[i]);
}

bool ops_less(number x, number y)
{
    if (isnan(creall(x)) || isnan(creall(y)))
        return false;
    return creall(x) < creall(y) || (creall(x) == creall(y) && cimagl(x) < cimagl(y));
}

/* -- shapes ---------------------------------------------------------------------------------------------------------- */
int64_t ops_extent(char letter, const int64_t *size)
{
    int64_t m = size[0], n = size[1], k = size[2];
    switch (letter) {
    case 'm': return m;
    case 'n': return n;
    case 'k': return k;
    case 'M': return m > 2 ? m - 2 : 0;
    case 'L': return m > 1 ? m - 1 : 0;
    case 'H': return (n + 1) / 2;
    case 'D': return 2 * m;
    case 'E': return 2 * n;
    case 'P': return m * n;
    case 'S': return m + n;
    case 'A': return m + 2;
    case 'C': return m + n > 1 ? m + n - 1 : 0;
    case 'B': return n + 3;
    case 'T': return (n + 1) / 2 * 3;
    default: return letter - '0';
    }
}

const char *ops_read_shape(const char *text, const int64_t *size, tensor *t)
{
    t->rank = 0;
    t->size = 1;
    if (text[0] && text[1] == ':') {
        t->dtype = ops_type_of(text[0]);
        text += 2;
    }
    for (; *text && *text != ',' && *text != '-'; text++) {
        t->shape[t->rank] = ops_extent(*text, size);
        t->size *= t->shape[t->rank++];
    }
    if (t->size > MOST_ELEMENTS) {
        fprintf(stderr, "tests/operations/reference/ops_reference.c: %s is too large\n", text);
        abort();
    }
    return text;
}

number ops_get(const tensor *t, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * t->shape[d] + at[d];
    return t->element[i];
}

number ops_meet(const tensor *t, int rank, const int64_t *at)
{
    int64_t where[OLY_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        where[d] = t->shape[d] == 1 ? 0 : at[rank - t->rank + d];
    return ops_get(t, where);
}

/* -- types ----------------------------------------------------------------------------------------------------------- */
static oly_dtype floating(oly_dtype dtype)
{
    if (element_is_inexact(dtype))
        return dtype;
    return oly_dtype_size(dtype) == 8 ? OLY_FLOAT64 : OLY_FLOAT32;
}

static oly_dtype default_floating(oly_dtype dtype)
{
    return oly_x64_enabled() && !element_is_inexact(dtype) ? OLY_FLOAT64 : floating(dtype);
}

static oly_dtype real_part(oly_dtype dtype)
{
    return dtype == OLY_COMPLEX64 ? OLY_FLOAT32 : dtype == OLY_COMPLEX128 ? OLY_FLOAT64 : dtype;
}

static oly_dtype default_integer(bool is_unsigned)
{
    if (is_unsigned)
        return oly_x64_enabled() ? OLY_UINT64 : OLY_UINT32;
    return oly_x64_enabled() ? OLY_INT64 : OLY_INT32;
}

oly_dtype ops_result_type(const char *rule, oly_dtype dtype)
{
    switch (rule[0]) {
    case '>': return ops_type_of(rule[1]);
    case 'd': return default_integer(false);
    case 'f': return floating(dtype);
    case 'r': return real_part(dtype);
    case 'R': return real_part(floating(dtype));
    case 'A': return element_is_inexact(dtype) ? real_part(dtype) : default_floating(OLY_BOOL);
    case 'D': return default_floating(dtype);
    case 'c': return oly_dtype_size(real_part(floating(dtype))) == 8 ? OLY_COMPLEX128 : OLY_COMPLEX64;
    case 'N': return dtype == OLY_BOOL ? default_integer(false) : dtype;
    case 'n': return dtype == OLY_BOOL ? OLY_INT32 : dtype;
    case 't':
        if (element_is_inexact(dtype) || oly_dtype_size(dtype) > oly_dtype_size(default_integer(false)))
            return dtype;
        return default_integer(element_is_unsigned(dtype));
    default: return dtype;
    }
}

/* -- operands -------------------------------------------------------------------------------------------------------- */
static long double special_float(oly_dtype dtype, int64_t i)
{
    static const long double any[] = {0, -0.0L, INFINITY, -INFINITY, NAN, 1, -1};
    long double largest = oly_dtype_largest(dtype), smallest = oly_dtype_smallest_normal(dtype);
    switch (i % 11) {
    case 7: return largest;
    case 8: return -largest;
    case 9: return smallest;
    case 10: return -smallest;
    default: return any[i % 11];
    }
}

static long double special_integer(oly_dtype dtype, int64_t i)
{
    long double top = ldexpl(1, ops_bits(dtype) - !element_is_unsigned(dtype));
    switch (i % 7) {
    case 0: return top - 1;
    case 1: return element_is_unsigned(dtype) ? top - 2 : -top;
    case 2: return floorl(top / 3);
    case 3: return element_is_unsigned(dtype) ? 2 : 1 - top;
    case 4: return -1;
    case 5: return 1;
    default: return 0;
    }
}

static long double spread(const row *r, const tensor *t, int64_t i, int salt)
{
    long double part = fmodl((long double)(i + 1) * 0.6180339887498949L + 0.317L * salt, 1);
    long double x = r->low + part * (r->high - r->low);
    if (r->low == 0 && r->high == 0)
        x = (long double)((i * 5 + i / 7 + salt) % 7 - 3) / (element_is_inexact(t->dtype) ? 4 : 1);
    if (is_whole(t->dtype))
        x = rintl(x);
    return element_is_unsigned(t->dtype) ? fabsl(x) : x;
}

void ops_fill(const row *r, tensor *t, int salt)
{
    for (int64_t i = 0; i < t->size; i++) {
        number x = spread(r, t, i, salt);
        bool special = (r->flags & ANY) && (i + salt) % 3 == 1 && t->dtype != OLY_BOOL;
        if (t->dtype == OLY_BOOL)
            x = (i * 5 + i / 7 + salt) % 7 > 3;
        else if (element_parts(t->dtype) > 1)
            x = ops_complex(creall(x), spread(r, t, i, salt + 3));
        else if (special)
            x = element_is_inexact(t->dtype) ? special_float(t->dtype, i / 3 + 3 * salt)
                                             : special_integer(t->dtype, i / 3 + 3 * salt);
        t->element[i] = x;
    }
    ops_round(t);
}
