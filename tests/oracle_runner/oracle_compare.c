/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares arrays and text with the oracle's expected ones, by the rules of tests/oracle/README.md. Called by the
 * checkers of the oracle runner. */
#include "oracle.h"
#include "core/dtype_list.h"
#include "core/element.h"
#include "graph/type.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- how close ------------------------------------------------------------------------------------------------------- */
typedef struct tolerance {
    enum { EXACT, STEPS, RELATIVE } kind;
    bool zeros_equal;
    int64_t steps;
    double relative, absolute;
} tolerance;

/* Reads what follows the offset: "exact", "ulp N" or "relabs R A", each with or without "zeros_equal". */
static bool read_tolerance(const oracle_line *line, tolerance *t)
{
    char **word = line->words + 6;
    int n = line->n_words - 6;
    *t = (tolerance){.kind = EXACT};
    if (n > 1 && strcmp(word[n - 1], "zeros_equal") == 0) {
        t->zeros_equal = true;
        n--;
    }
    if (n == 2 && strcmp(word[0], "ulp") == 0) {
        t->kind = STEPS;
        t->steps = strtoll(word[1], NULL, 10);
        return true;
    }
    if (n == 3 && strcmp(word[0], "relabs") == 0) {
        t->kind = RELATIVE;
        t->relative = strtod(word[1], NULL);
        t->absolute = strtod(word[2], NULL);
        return true;
    }
    return n == 1 && strcmp(word[0], "exact") == 0;
}

/* -- one element ----------------------------------------------------------------------------------------------------- */

/* The bits of an element, sign first, as a number. */
static int64_t bits_of(oly_dtype dtype, const void *at)
{
    switch (oly_dtype_size(dtype)) {
    case 1: return *(const int8_t *)at;
    case 2: return *(const int16_t *)at;
    case 4: return *(const int32_t *)at;
    default: return *(const int64_t *)at;
    }
}

/* Rank of a floating-point number among all representable ones; both zeros have rank 0. */
static int64_t place(oly_dtype dtype, const void *at)
{
    int64_t bits = bits_of(dtype, at), lowest = -1 - (INT64_MAX >> (64 - 8 * oly_dtype_size(dtype)));
    return bits < 0 ? lowest - bits : bits;
}

static bool same_real(oly_dtype dtype, const tolerance *t, const void *want, const void *got)
{
    double a = oly_real_at(dtype, want), b = oly_real_at(dtype, got), normal = oly_dtype_smallest_normal(dtype);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b))
        return a == b;
    if (fabs(a) < normal && fabs(b) < normal && (a != 0 || b != 0))
        return true; /* subnormal numbers may be flushed to zero */
    if (a == 0 && b == 0)
        return signbit(a) == signbit(b) || t->kind != EXACT || t->zeros_equal;
    switch (t->kind) {
    case STEPS: return (uint64_t)llabs(place(dtype, want) - place(dtype, got)) <= (uint64_t)t->steps;
    case RELATIVE: return fabs(a - b) <= t->absolute + t->relative * fabs(a);
    default: return a == b;
    }
}

static long double integer(oly_dtype dtype, const void *at)
{
#define INTEGER(a, number, name, s, T, ...)                                                                            \
    case OLY_##number: return *(const T *)at;
    switch (dtype) {
        OLY_INTEGER_TYPES(INTEGER, )
    default: return *(const unsigned char *)at;
    }
}

static bool same_element(oly_dtype dtype, const tolerance *t, const void *want, const void *got)
{
    oly_dtype part = oly_dtype_real(dtype);
    if (oly_dtype_kind(part) == OLY_KIND_FLOAT) {
        size_t second = part == dtype ? 0 : oly_dtype_size(part);
        return same_real(part, t, want, got) &&
               same_real(part, t, (const char *)want + second, (const char *)got + second);
    }
    long double a = integer(dtype, want), b = integer(dtype, got);
    return a == b || (t->kind == RELATIVE && fabsl(a - b) <= t->absolute + t->relative * fabsl(a));
}

static void element_text(char *text, size_t size, oly_dtype dtype, const void *at)
{
    oly_dtype part = oly_dtype_real(dtype);
    int digits = part == OLY_FLOAT64 ? 17 : 9;
    if (part != dtype)
        snprintf(text, size, "%.*g%+.*gj", digits, oly_real_at(part, at), digits,
                 oly_real_at(part, (const char *)at + oly_dtype_size(part)));
    else if (oly_dtype_kind(part) == OLY_KIND_FLOAT)
        snprintf(text, size, "%.*g", digits, oly_real_at(dtype, at));
    else
        snprintf(text, size, "%.0Lf", integer(dtype, at));
}

/* "[1,0,2]": the indexes of element `k`. */
static void index_text(char *text, size_t size, const oracle_array *array, int64_t k)
{
    int64_t stride = array->size;
    size_t at = (size_t)snprintf(text, size, "[");
    for (int d = 0; d < array->rank && at < size; d++) {
        stride /= array->shape[d];
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, d ? "," : "", k / stride);
        k %= stride;
    }
    if (at < size)
        snprintf(text + at, size - at, "]");
}

/* -- whole arrays ---------------------------------------------------------------------------------------------------- */
static bool compare_elements(oracle_run *run, const oracle_line *out, const oracle_array *expected,
                             const unsigned char *got, const char *how)
{
    tolerance t;
    if (!read_tolerance(out, &t))
        return oracle_fail(run, "line %d: what tolerance is this?", out->number);
    oly_dtype dtype = (oly_dtype)expected->known_dtype;
    const unsigned char *want = expected->data;
    int64_t different = 0, first = 0;
    for (int64_t k = expected->size; k-- > 0;)
        if (!same_element(dtype, &t, want + (size_t)k * expected->item_size, got + (size_t)k * expected->item_size)) {
            different++;
            first = k;
        }
    if (different == 0)
        return true;
    char index[96], a[80], b[80];
    index_text(index, sizeof index, expected, first);
    element_text(a, sizeof a, dtype, want + (size_t)first * expected->item_size);
    element_text(b, sizeof b, dtype, got + (size_t)first * expected->item_size);
    return oracle_fail(run, "%s: %s%s expected %s, got %s (%s%s%s%s%s); %" PRId64 " of %" PRId64 " elements differ",
                       how, out->words[1], index, a, b, out->words[6], out->n_words > 7 ? " " : "",
                       out->n_words > 7 ? out->words[7] : "", out->n_words > 8 ? " " : "",
                       out->n_words > 8 ? out->words[8] : "", different, expected->size);
}

/* An array of no elements still has a type. */
static bool same_type(oracle_run *run, const oracle_line *out, const oracle_array *expected, oly_array got,
                      const char *how)
{
    bool same = (int)oly_dtype_of(got) == expected->known_dtype && oly_rank(got) == expected->rank;
    for (int d = 0; same && d < expected->rank; d++)
        same = oly_dim(got, d) == expected->shape[d];
    if (same)
        return true;
    char type[128];
    oly_typeof(got, type, sizeof type);
    return oracle_fail(run, "%s: %s expected type %s%s, got %s", how, out->words[1], out->words[2], out->words[3],
                       type);
}

bool oracle_compare(oracle_run *run, const oracle_line *out, oracle_array expected, oly_array got, const char *how)
{
    if (!got)
        return oracle_fail_call(run, how);
    if (!same_type(run, out, &expected, got, how))
        return false;
    size_t bytes = (size_t)expected.size * expected.item_size;
    unsigned char *data = malloc(bytes + 1);
    if (!data)
        return oracle_fail(run, "%s: no memory for %zu bytes", how, bytes);
    memset(data, 0xa5, bytes);
    bool same = oly_process_allgather(got, data, bytes) == OLY_OK ? compare_elements(run, out, &expected, data, how)
                                                                  : oracle_fail_call(run, how);
    free(data);
    return same;
}

bool oracle_compare_text(oracle_run *run, const char *what, const char *expected, const char *got)
{
    return strcmp(expected, got) == 0 || oracle_fail(run, "%s expected\n%sgot\n%s", what, expected, got);
}
