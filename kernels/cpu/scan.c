/* SPDX-License-Identifier: BSD-3-Clause */
/* Running sums, products, largest and smallest elements, and logarithms of sums of exponentials, along one dimension.
 * Compiled once per instruction set; gives oly_scan_run_<isa>, called through local.c. Adjacent lines are scanned
 * together, row by row. A long line is split into parts (oly_scan_parts): first the result of each part alone, then
 * each part again, starting from the results of those before it. Narrow types are computed as float, cumlogsumexp as
 * double, and rounded once. */
#include "local_table.h"
#include "two_elements.h"
#include <math.h>
#include <string.h>

enum {
    WIDTH = 256, /* most lines scanned together */
    FEW = 8,     /* lines that are far apart scanned together: enough to hide the latency of additions */
};

#define LOG_ADD_EXP(A, x, y) log_add_exp(x, y)

static double log_add_exp(double x, double y)
{
    double larger = x > y ? x : y, distance = x - y;
    if (distance != distance) /* equal infinities, NaN */
        return x + y;
    return larger + log1p(exp(-fabs(distance)));
}

/* `width` lines of n elements; rows are `row` apart and start with `first`, columns `column` apart. carry: the results
 * so far, in the type of the computation; `begun`: whether there are any. out NULL: only the carry is computed. */
typedef struct block {
    int64_t width, n;
    const char *in;
    int64_t in_row, in_column;
    char *out;
    int64_t out_row, out_column;
    bool begun;
    char *carry;
} block;
typedef void scan_block(const block *b);
/* carry = carry op next, for `width` of them */
typedef void join_carries(int64_t width, char *carry, const char *next);

#define SCAN(name, d, T, A, op, of, to)                                                                                \
    static void name##_##d(const block *b)                                                                             \
    {                                                                                                                  \
        A *carry = (A *)b->carry;                                                                                      \
        const T *in = (const T *)b->in;                                                                                \
        T *out = (T *)b->out;                                                                                          \
        int64_t k = 0;                                                                                                 \
        if (!b->begun) {                                                                                               \
            for (int64_t j = 0; j < b->width; j++)                                                                     \
                carry[j] = of(in[j * b->in_column]);                                                                   \
            for (int64_t j = 0; j < b->width && out; j++)                                                              \
                out[j * b->out_column] = in[j * b->in_column];                                                         \
            k = 1;                                                                                                     \
        }                                                                                                              \
        if (b->width == 1) {                                                                                           \
            A sum = carry[0];                                                                                          \
            for (; k < b->n; k++) {                                                                                    \
                const A next = of(in[k * b->in_row]);                                                                  \
                sum = op(A, sum, next);                                                                                \
                if (out)                                                                                               \
                    out[k * b->out_row] = (T)to(sum);                                                                  \
            }                                                                                                          \
            carry[0] = sum;                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        if (b->width == FEW) {                                                                                         \
            A sum[FEW];                                                                                                \
            memcpy(sum, carry, sizeof sum);                                                                            \
            for (; k < b->n; k++)                                                                                      \
                for (int j = 0; j < FEW; j++) {                                                                        \
                    const A next = of(in[k * b->in_row + j * b->in_column]);                                           \
                    sum[j] = op(A, sum[j], next);                                                                      \
                    if (out)                                                                                           \
                        out[k * b->out_row + j * b->out_column] = (T)to(sum[j]);                                       \
                }                                                                                                      \
            memcpy(carry, sum, sizeof sum);                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        for (; k < b->n; k++) {                                                                                        \
            const T *x = in + k * b->in_row;                                                                           \
            if (b->in_column == 1) {                                                                                   \
                _Pragma("GCC ivdep") for (int64_t j = 0; j < b->width; j++)                                            \
                {                                                                                                      \
                    const A next = of(x[j]);                                                                           \
                    carry[j] = op(A, carry[j], next);                                                                  \
                }                                                                                                      \
            } else {                                                                                                   \
                for (int64_t j = 0; j < b->width; j++) {                                                               \
                    const A next = of(x[j * b->in_column]);                                                            \
                    carry[j] = op(A, carry[j], next);                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            T *y = out ? out + k * b->out_row : NULL;                                                                  \
            if (out && b->out_column == 1)                                                                             \
                _Pragma("GCC ivdep") for (int64_t j = 0; j < b->width; j++) y[j] = (T)to(carry[j]);                    \
            else if (out)                                                                                              \
                for (int64_t j = 0; j < b->width; j++)                                                                 \
                    y[j * b->out_column] = (T)to(carry[j]);                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void join_##name##_##d(int64_t width, char *carry, const char *next)                                        \
    {                                                                                                                  \
        A *x = (A *)carry;                                                                                             \
        const A *y = (const A *)next;                                                                                  \
        for (int64_t j = 0; j < width; j++)                                                                            \
            x[j] = op(A, x[j], y[j]);                                                                                  \
    }

/* U: integers wrap */
#define INTEGER_SCANS(a, number, name, s, T, U, ...)                                                                   \
    SCAN(sum, s, U, U, ADD, SAME, SAME)                                                                                \
    SCAN(prod, s, U, U, MULTIPLY, SAME, SAME)                                                                          \
    SCAN(max, s, T, T, LARGER, SAME, SAME)                                                                             \
    SCAN(min, s, T, T, SMALLER, SAME, SAME)
#define FLOAT_SCANS(s, T, A, of, to, of_double)                                                                        \
    SCAN(sum, s, T, A, ADD, of, to)                                                                                    \
    SCAN(prod, s, T, A, MULTIPLY, of, to)                                                                              \
    SCAN(max, s, T, A, LARGER, of, to)                                                                                 \
    SCAN(min, s, T, A, SMALLER, of, to)                                                                                \
    SCAN(logsumexp, s, T, double, LOG_ADD_EXP, of, of_double)
#define WIDE_SCANS(a, number, name, s, T, ...) FLOAT_SCANS(s, T, T, SAME, SAME, SAME)
#define NARROW_SCANS(a, number, name, s, T, of, to, ...)                                                               \
    static inline T s##_of_double(double x)                                                                            \
    {                                                                                                                  \
        return to(oly_float_rounded_to_odd(x));                                                                        \
    }                                                                                                                  \
    FLOAT_SCANS(s, T, float, of, to, s##_of_double)
#define COMPLEX_SCANS(a, number, name, s, T, ...)                                                                      \
    SCAN(sum, s, T, T, ADD, SAME, SAME)                                                                                \
    SCAN(prod, s, T, T, MULTIPLY, SAME, SAME)
SCAN(sum, b8, uint8_t, uint8_t, OR, SAME, SAME)
SCAN(prod, b8, uint8_t, uint8_t, AND, SAME, SAME)
OLY_INTEGER_TYPES(INTEGER_SCANS, )
OLY_NARROW_TYPES(NARROW_SCANS, )
OLY_WIDE_TYPES(WIDE_SCANS, )
OLY_COMPLEX_TYPES(COMPLEX_SCANS, )

/* bool: sum and max are or, product and min are and. */
#define CELLS(form)                                                                                                    \
    {                                                                                                                  \
        {OLY_BOOL_TYPES(OLY_CELL, form##sum) OLY_REAL_TYPES(OLY_CELL, form##sum)                                       \
             OLY_COMPLEX_TYPES(OLY_CELL, form##sum)},                                                                  \
            {OLY_BOOL_TYPES(OLY_CELL, form##prod) OLY_REAL_TYPES(OLY_CELL, form##prod)                                 \
                 OLY_COMPLEX_TYPES(OLY_CELL, form##prod)},                                                             \
            {OLY_BOOL_TYPES(OLY_CELL, form##sum) OLY_REAL_TYPES(OLY_CELL, form##max)},                                 \
            {OLY_BOOL_TYPES(OLY_CELL, form##prod) OLY_REAL_TYPES(OLY_CELL, form##min)},                                \
            {OLY_NARROW_TYPES(OLY_CELL, form##logsumexp) OLY_WIDE_TYPES(OLY_CELL, form##logsumexp)},                   \
    }
static scan_block *const scan_of[5][OLY_N_DTYPES] = CELLS();
static join_carries *const join_of[5][OLY_N_DTYPES] = CELLS(join_);

/* -- lines --------------------------------------------------------------------------------------------------------- */

/* Where block `column` of the lines starts: lines of one dimension (the last that is not scanned) side by side. */
typedef struct lines {
    int beside;            /* that dimension; -1: none */
    int64_t width;         /* of blocks along it */
    int64_t rows, columns; /* lines in the other dimensions; blocks along `beside` */
} lines;

static lines lines_of(const oly_local_task *t)
{
    lines l = {.beside = -1, .rows = 1, .columns = 1};
    for (int d = 0; d < t->out.rank; d++)
        if (d != t->dimension && t->out.extent[d] > 1)
            l.beside = d;
    l.width = l.beside >= 0 && t->in[0].stride[l.beside] == 1 ? WIDTH : FEW;
    for (int d = 0; d < t->out.rank; d++)
        if (d == l.beside)
            l.columns = (t->out.extent[d] + l.width - 1) / l.width;
        else if (d != t->dimension)
            l.rows *= t->out.extent[d];
    return l;
}

/* Offset by the row-major number among all dimensions but two. */
static int64_t offset_without(const oly_local_operand *x, const int64_t *extent, int a, int b, int64_t index)
{
    int64_t offset = 0;
    for (int d = x->rank - 1; d >= 0 && index > 0; d--) {
        if (d == a || d == b)
            continue;
        offset += index % extent[d] * x->stride[d];
        index /= extent[d];
    }
    return offset;
}

/* Elements [begin, end) of the lines of one block; without an output only the carry is computed. */
static block block_at(const oly_local_task *t, const lines *l, int64_t number, const void *in, void *out, int64_t begin,
                      int64_t end)
{
    int d = t->dimension;
    int64_t bytes = oly_element_bytes[t->in[0].dtype], first = number % l->columns * l->width,
            row = number / l->columns;
    int64_t from = offset_without(&t->in[0], t->out.extent, d, l->beside, row);
    int64_t to = offset_without(&t->out, t->out.extent, d, l->beside, row);
    block b = {.width = 1, .n = end - begin, .in_row = t->in[0].stride[d], .out_row = t->out.stride[d]};
    if (l->beside >= 0) {
        int64_t left = t->out.extent[l->beside] - first;
        b.width = left < l->width ? left : l->width;
        b.in_column = t->in[0].stride[l->beside];
        b.out_column = t->out.stride[l->beside];
        from += first * b.in_column;
        to += first * b.out_column;
    }
    int64_t at = t->reverse ? t->in[0].extent[d] - 1 - begin : begin;
    b.in = (const char *)in + (from + at * b.in_row) * bytes;
    b.out = out ? (char *)out + (to + at * b.out_row) * bytes : NULL;
    if (t->reverse) {
        b.in_row = -b.in_row;
        b.out_row = -b.out_row;
    }
    return b;
}

/* The identity, in the type of the computation. Sums start with -0, which leaves zeros of both signs as they are. */
#define FILL(A, value)                                                                                                 \
    for (int64_t j = 0; j < n; j++)                                                                                    \
        ((A *)carry)[j] = (A)(value);                                                                                  \
    return
#define INTEGER_NEUTRAL(a, number, name, s, T, U, S, W, least, most)                                                   \
    case OLY_##number:                                                                                                 \
        FILL(T, op == 0 ? 0 : op == 1 ? 1 : op == 2 ? least : most);
#define FLOAT_NEUTRAL(A) FILL(A, op == 0 ? -0. : op == 1 ? 1 : op == 2 ? -(double)INFINITY : (double)INFINITY)
static void neutral(int op, oly_dtype computed, int64_t n, void *carry)
{
    if (op == OLY_LOCAL_CUMLOGSUMEXP - OLY_LOCAL_CUMSUM) {
        FILL(double, -(double)INFINITY);
    }
    switch (computed) {
    case OLY_BOOL: FILL(uint8_t, op == 1 || op == 3); OLY_INTEGER_TYPES(INTEGER_NEUTRAL, )
    case OLY_FLOAT64: FLOAT_NEUTRAL(double);
    case OLY_COMPLEX64: FILL(float _Complex, op == 0 ? CMPLXF(-0.f, -0.f) : CMPLXF(1, 0));
    case OLY_COMPLEX128: FILL(double _Complex, op == 0 ? CMPLX(-0., -0.) : CMPLX(1, 0));
    default: FLOAT_NEUTRAL(float);
    }
}

/* -- over several devices ------------------------------------------------------------------------------------------ */

/* Offset in operand or result x of the first line of a block, in all dimensions but the scanned one. */
static int64_t block_offset(const oly_local_task *t, const lines *l, int64_t number, const oly_local_operand *x)
{
    int64_t first = number % l->columns * l->width, row = number / l->columns;
    int64_t offset = offset_without(x, t->out.extent, t->dimension, l->beside, row);
    return l->beside >= 0 ? offset + first * x->stride[l->beside] : offset;
}

/* Combines the results of the parts before this one: false if there are none. */
static bool carry_of(const oly_local_task *t, const lines *l, int64_t number, int64_t width, const void *parts,
                     char *carry)
{
    const oly_local_operand *x = &t->in[1];
    int64_t bytes = oly_element_bytes[x->dtype], step = x->stride[t->dimension];
    int64_t column = l->beside >= 0 ? x->stride[l->beside] : 0, from = block_offset(t, l, number, x);
    int begin = t->reverse ? (int)x->extent[t->dimension] - 1 : 0, by = t->reverse ? -1 : 1;
    char next[WIDTH * 16] __attribute__((aligned(64)));
    join_carries *join = join_of[t->op - OLY_LOCAL_CUMSUM][t->out.dtype];
    for (int p = begin; p != t->part; p += by) {
        char *to = p == begin ? carry : next;
        for (int64_t j = 0; j < width; j++)
            memcpy(to + j * bytes, (const char *)parts + (from + p * step + j * column) * bytes, (size_t)bytes);
        if (p != begin)
            join(width, carry, next);
    }
    return begin != t->part;
}

/* The results of one part. */
static void store_carry(const oly_local_task *t, const lines *l, int64_t number, int64_t width, const char *carry,
                        void *out)
{
    int64_t bytes = oly_element_bytes[t->out.dtype], column = l->beside >= 0 ? t->out.stride[l->beside] : 0;
    int64_t to = block_offset(t, l, number, &t->out);
    for (int64_t j = 0; j < width; j++)
        memcpy((char *)out + (to + j * column) * bytes, carry + j * bytes, (size_t)bytes);
}

/* -- the task ------------------------------------------------------------------------------------------------------ */

/* Elements [begin, end) of a block, starting from `carry`, which becomes the result at the end. */
static void scan_part(const oly_local_task *t, const block *b, char *carry, bool begun)
{
    block with = *b;
    with.carry = carry;
    with.begun = begun;
    scan_of[t->op - OLY_LOCAL_CUMSUM][t->in[0].dtype](&with);
}

/* Whole lines of blocks [first, last). */
static void scan_blocks(const oly_local_task *t, const lines *l, int64_t first, int64_t last, const void *const *in,
                        void *out)
{
    char carry[WIDTH * 16] __attribute__((aligned(64)));
    int64_t n = t->in[0].extent[t->dimension];
    for (int64_t k = first; k < last; k++) {
        block b = block_at(t, l, k, in[0], t->partial ? NULL : out, 0, n);
        bool begun = t->n_in == 2 && carry_of(t, l, k, b.width, in[1], carry);
        if (n == 0)
            neutral(t->op - OLY_LOCAL_CUMSUM, t->in[0].dtype, b.width, carry);
        else
            scan_part(t, &b, carry, begun);
        if (t->partial)
            store_carry(t, l, k, b.width, carry, out);
    }
}

/* Part `part` of long lines. Phase 0: its result, into scratch; phase 1: its elements, from the results of the parts
 * before it. If the task is partial, the result of all parts together. */
static void scan_long(const oly_local_task *t, const lines *l, const void *const *in, void *out, void *scratch,
                      int phase, int part, int parts)
{
    char carry[WIDTH * 16] __attribute__((aligned(64)));
    int64_t n = t->in[0].extent[t->dimension], begin = n * part / parts, end = n * (part + 1) / parts;
    join_carries *join = join_of[t->op - OLY_LOCAL_CUMSUM][t->in[0].dtype];
    for (int64_t k = 0; k < l->rows * l->columns; k++) {
        char *results = (char *)scratch + k * parts * OLY_SCAN_CARRY;
        block b = block_at(t, l, k, in[0], phase && !t->partial ? out : NULL, begin, end);
        if (phase == 0) {
            scan_part(t, &b, results + part * OLY_SCAN_CARRY, false);
            continue;
        }
        bool begun = !t->partial && t->n_in == 2 && carry_of(t, l, k, b.width, in[1], carry);
        for (int before = 0; before < (t->partial ? parts : part); before++) {
            if (begun)
                join(b.width, carry, results + before * OLY_SCAN_CARRY);
            else
                memcpy(carry, results + before * OLY_SCAN_CARRY, sizeof carry);
            begun = true;
        }
        if (!t->partial)
            scan_part(t, &b, carry, begun);
        else if (part == 0)
            store_carry(t, l, k, b.width, carry, out);
    }
}

void OLY_ISA_NAME(oly_scan_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                int chunk, int n_chunks)
{
    lines l = lines_of(t);
    int parts = oly_scan_parts(t);
    int64_t blocks = l.rows * l.columns;
    if (parts > 1)
        scan_long(t, &l, in, out, scratch, phase, chunk, parts);
    else
        scan_blocks(t, &l, blocks * chunk / n_chunks, blocks * (chunk + 1) / n_chunks, in, out);
}
