/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays of the evaluator, which all live until forget_all(), and the ranges of element types. */
#include "core/dtype_list.h"
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 22, MOST_CHUNKS = 64 };
static char *chunk[MOST_CHUNKS];
static int current_chunk;
static size_t used;

void *take(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > CHUNK)
        abort();
    if (!chunk[current_chunk] && !(chunk[current_chunk] = malloc(CHUNK)))
        abort();
    if (used + bytes > CHUNK) {
        used = 0;
        if (++current_chunk == MOST_CHUNKS)
            abort(); /* much_taken() prevents it */
        return take(bytes);
    }
    used += bytes;
    return chunk[current_chunk] + used - bytes;
}

bool much_taken(void)
{
    return current_chunk > MOST_CHUNKS / 2;
}

void forget_all(void)
{
    current_chunk = 0;
    used = 0;
}

int64_t elements_of(int rank, const int64_t *shape)
{
    double n = 1;
    for (int d = 0; d < rank; d++)
        n *= (double)shape[d];
    return n > 1e9 ? 1000000000 : (int64_t)n;
}

array *new_array(oly_dtype dtype, int rank, const int64_t *shape)
{
    array *a = take(sizeof *a);
    memset(a, 0, sizeof *a);
    a->dtype = dtype;
    a->rank = rank;
    a->parts = element_parts(dtype);
    a->size = 1;
    for (int d = 0; d < rank; d++) {
        a->shape[d] = shape[d];
        a->size *= shape[d];
    }
    a->v = take(sizeof(double) * (size_t)(a->size * a->parts + 1));
    memset(a->v, 0, sizeof(double) * (size_t)(a->size * a->parts));
    return a;
}

double *new_tangent(array *a)
{
    a->t = take(sizeof(double) * (size_t)(a->size * a->parts + 1));
    memset(a->t, 0, sizeof(double) * (size_t)(a->size * a->parts));
    return a->t;
}

bool refuse(program *p, const char *why)
{
    if (!p->refused)
        p->why = why;
    p->refused = true;
    return false;
}

bool is_float(oly_dtype dtype)
{
    return dtype > OLY_UINT64 && dtype < OLY_COMPLEX64;
}
bool is_narrow(oly_dtype dtype)
{
    return dtype >= OLY_FLOAT8_E4M3FN && dtype <= OLY_BFLOAT16;
}
bool is_integer(oly_dtype dtype)
{
    return dtype >= OLY_INT8 && dtype <= OLY_UINT64;
}
bool is_complex(oly_dtype dtype)
{
    return dtype >= OLY_COMPLEX64;
}

/* Repeated here instead of calling the library: the parent of the processes that run programs never initialises it. */
oly_dtype common_type(program *p, oly_dtype a, oly_dtype b)
{
#define BYTES(a, number, name, s, T, ...) sizeof(T),
    static const int bytes[] = {OLY_EVERY_TYPE(BYTES, )};
    if (a == b)
        return a;
    if (is_complex(a) || is_complex(b)) {
        if (bytes[a] == 1 ? is_float(a) : bytes[b] == 1 && is_float(b))
            refuse(p, "8 bits meet others by conversion only");
        bool wide = a == OLY_FLOAT64 || b == OLY_FLOAT64 || a == OLY_COMPLEX128 || b == OLY_COMPLEX128;
        return wide ? OLY_COMPLEX128 : OLY_COMPLEX64;
    }
    if (is_float(a) || is_float(b)) {
        if (is_float(a) && is_float(b) && (bytes[a] == 1 || bytes[b] == 1))
            refuse(p, "8 bits meet others by conversion only");
        if (is_float(a) && is_float(b))
            return bytes[a] == bytes[b] ? OLY_FLOAT32 : bytes[a] > bytes[b] ? a : b;
        return is_float(a) ? a : b;
    }
    if (a == OLY_BOOL || b == OLY_BOOL)
        return a == OLY_BOOL ? b : a;
    if (element_is_unsigned(a) == element_is_unsigned(b))
        return bytes[a] > bytes[b] ? a : b;
    oly_dtype s = element_is_unsigned(a) ? b : a, u = element_is_unsigned(a) ? a : b;
    if (bytes[s] > bytes[u])
        return s;
    if (bytes[u] == 4 && !p->wide)
        return OLY_INT32;
    return bytes[u] == 1 ? OLY_INT16 : bytes[u] == 2 ? OLY_INT32 : bytes[u] == 4 ? OLY_INT64 : OLY_FLOAT64;
}

bool same_type(const array *a, const array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->rank) == 0;
}

double biggest(const array *a)
{
    double most = 0;
    for (int64_t i = 0; i < a->size * a->parts; i++)
        most = fmax(most, fabs(a->v[i]));
    return most;
}

double lowest_bit(double x)
{
    int e;
    if (x == 0)
        return INFINITY;
    int64_t whole = (int64_t)ldexp(frexp(fabs(x), &e), 53);
    return ldexp(1, e - 53 + __builtin_ctzll((unsigned long long)whole));
}

int mantissa_bits(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_FLOAT8_E4M3FN: return 4;
    case OLY_FLOAT8_E5M2: return 3;
    case OLY_FLOAT16: return 11;
    case OLY_BFLOAT16: return 8;
    case OLY_FLOAT32:
    case OLY_COMPLEX64: return 24;
    default: return 53;
    }
}

bool exact_in(oly_dtype dtype, double x)
{
    if (!isfinite(x))
        return false;
    if (x == 0)
        return true;
    if (dtype == OLY_FLOAT64 || dtype == OLY_COMPLEX128) /* a value with all 53 bits may have been rounded */
        return fabs(x) < 1e200 && fabs(x) < lowest_bit(x) * 0x1p50;
    double most = dtype == OLY_FLOAT16 ? 65504 : 1e30, least = dtype == OLY_FLOAT16 ? 0x1p-13 : 0x1p-100;
    if (dtype == OLY_FLOAT8_E4M3FN)
        most = 448, least = 0x1p-6;
    if (dtype == OLY_FLOAT8_E5M2)
        most = 57344, least = 0x1p-14;
    return fabs(x) <= most && fabs(x) >= least && fabs(x) < lowest_bit(x) * ldexp(1, mantissa_bits(dtype));
}

bool exact_sum(oly_dtype dtype, double total_magnitude, double lowest)
{
    if (total_magnitude == 0 || isinf(lowest))
        return true;
    int bits = is_float(dtype) || is_complex(dtype) ? (mantissa_bits(dtype) < 24 ? 24 : mantissa_bits(dtype)) : 53;
    return total_magnitude < lowest * ldexp(1, bits - 1);
}

static double terms_of(const array *a)
{
    return a->terms > 0 ? a->terms : biggest(a);
}

static double lowest_of(const array *a)
{
    double lowest = INFINITY;
    for (int64_t i = 0; a->terms == 0 && i < a->size * a->parts; i++)
        lowest = fmin(lowest, lowest_bit(a->v[i]));
    return a->terms > 0 ? a->lowest : lowest;
}

void join_sums(program *p, array *y, const array *a, const array *b)
{
    if (y->error > 0 || (a->terms == 0 && b->terms == 0))
        return;
    y->terms = terms_of(a) + terms_of(b);
    y->lowest = fmin(lowest_of(a), lowest_of(b));
    if (!exact_sum(y->dtype, y->terms, y->lowest))
        refuse(p, "not exact in any order");
}

double wrapped(oly_dtype dtype, double x)
{
    static const int bits[] = {1, 8, 16, 32, 64, 8, 16, 32, 64};
    if (dtype == OLY_BOOL)
        return x != 0;
    double range = ldexp(1, bits[dtype]);
    x = fmod(x, range);
    if (dtype >= OLY_UINT8)
        return x < 0 ? x + range : x;
    return x >= range / 2 ? x - range : x < -range / 2 ? x + range : x;
}

void finish_array(program *p, array *a)
{
    p->work += a->size + 20;
    if (p->work > p->most_work)
        refuse(p, "too much work");
    for (int64_t i = 0; i < a->size * a->parts; i++) {
        if (a->error > 0) {
            if (!isfinite(a->v[i]) || fabs(a->v[i]) > 2e4)
                refuse(p, "too large");
        } else if (is_integer(a->dtype) || a->dtype == OLY_BOOL) {
            if (!(fabs(a->v[i]) < 0x1p53))
                refuse(p, "too large");
            else
                a->v[i] = wrapped(a->dtype, a->v[i]);
            if (fabs(a->v[i]) >= 0x1p53) /* of uint64, wrapped below */
                refuse(p, "too large");
        } else if (!exact_in(a->dtype, a->v[i]))
            refuse(p, "not exact");
    }
    if (a->error > 0 && a->error > 1e-2 * (1 + biggest(a)))
        refuse(p, "too inexact");
    finish_tangent(p, a);
}

void finish_tangent(program *p, array *a)
{
    if (!a->t)
        return;
    if (!is_float(a->dtype)) { /* no derivative */
        a->t = NULL;
        return;
    }
    for (int64_t i = 0; i < a->size; i++)
        if (!isfinite(a->t[i]) || fabs(a->t[i]) > 1e7)
            refuse(p, "slope too large");
}
