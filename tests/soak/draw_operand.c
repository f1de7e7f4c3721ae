/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing operands, and making some that fit: slices, padded, repeated, converted values. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

statement operation_of(op o, int n, const int *in)
{
    statement s = {.kind = OPERATION, .op = o, .n_in = n, .n_out = 1};
    for (int k = 0; k < n; k++)
        s.in[k] = in[k];
    return s;
}

int simple(program *p, statement s)
{
    return add_statement(p, &s) ? p->n_values - 1 : NOTHING;
}

int any_value(program *p)
{
    int n = p->n_visible;
    if (n == 0)
        return NOTHING;
    int recent = n < 4 ? n : 4;
    if (one_in(&p->choices, 2))
        return p->visible[below(&p->choices, n)];
    return p->visible[n - 1 - below(&p->choices, recent)];
}

int constant_like(program *p, const array *like)
{
    bool whole = is_integer(like->dtype) || like->dtype == OLY_BOOL;
    statement s = operation_of(OP_full, 0, NULL);
    s.dtype = like->dtype;
    s.rank = like->rank;
    memcpy(s.shape, like->shape, sizeof s.shape);
    s.number = below(&p->choices, 3);
    if (like->rank > 0 && !whole && one_in(&p->choices, 2)) {
        s.op = OP_iota;
        s.k = below(&p->choices, like->rank);
    }
    return simple(p, s);
}

int converted(program *p, int v, oly_dtype dtype)
{
    if (v == NOTHING || p->dtype_of[v] == dtype)
        return v;
    statement s = operation_of(OP_convert, 1, &v);
    s.dtype = dtype;
    return simple(p, s);
}

/* The given rank: leading dimensions are removed by indexing. */
static int fewer_dimensions(program *p, int v, int rank)
{
    const array *a = value_of(p, v);
    if (a->rank <= rank)
        return v;
    statement s = operation_of(OP_slice, 1, &v);
    s.rank = a->rank;
    for (int d = 0; d < a->rank; d++) {
        if (d < a->rank - rank) {
            if (a->shape[d] == 0)
                return NOTHING;
            s.low[d] = below(&p->choices, (int)a->shape[d]);
            continue;
        }
        s.high[d] = a->shape[d];
        s.step[d] = 1;
    }
    return simple(p, s);
}

static int cut_down(program *p, int v, const int64_t *shape)
{
    const array *a = value_of(p, v);
    statement s = operation_of(OP_slice, 1, &v);
    bool smaller = false;
    s.rank = a->rank;
    for (int d = 0; d < a->rank; d++) {
        int64_t more = a->shape[d] - shape[d];
        s.step[d] = 1;
        s.low[d] = more > 0 ? below(&p->choices, (int)more + 1) : 0;
        s.high[d] = more > 0 ? s.low[d] + shape[d] : a->shape[d];
        if (more > 0 && shape[d] > 1 && more >= shape[d] - 1 && one_in(&p->choices, 6)) {
            s.step[d] = 2;
            s.low[d] = 0;
            s.high[d] = 2 * shape[d] - 1;
        }
        smaller = smaller || more > 0;
    }
    return smaller ? simple(p, s) : v;
}

static int fill_up(program *p, int v, int rank, const int64_t *shape)
{
    const array *a = value_of(p, v);
    statement s = operation_of(OP_pad, 1, &v);
    bool larger = false, ones = false;
    s.rank = a->rank;
    for (int d = 0; d < a->rank; d++) {
        int64_t less = shape[d + rank - a->rank] - a->shape[d];
        if (less <= 0)
            continue;
        if (a->shape[d] == 1 && one_in(&p->choices, 2)) {
            ones = true;
            continue;
        }
        s.low[d] = below(&p->choices, (int)less + 1);
        s.high[d] = less - s.low[d];
        larger = true;
    }
    if (larger) {
        if (one_in(&p->choices, 4)) {
            s.op = OP_pad_mode;
            s.mode = EDGE + below(&p->choices, 4);
        } else
            s.number = below(&p->choices, 2);
        v = simple(p, s);
    }
    if (v == NOTHING || (!ones && a->rank == rank))
        return v;
    statement b = operation_of(OP_broadcast, 1, &v);
    b.rank = rank;
    memcpy(b.shape, shape, sizeof *shape * (size_t)rank);
    return simple(p, b);
}

int fitted(program *p, int v, int rank, const int64_t *shape)
{
    if (v == NOTHING)
        return v;
    v = fewer_dimensions(p, v, rank);
    if (v == NOTHING)
        return v;
    v = cut_down(p, v, shape + rank - p->rank_of[v]);
    return v == NOTHING ? v : fill_up(p, v, rank, shape);
}

static bool has_type(const program *p, int v, const array *like)
{
    return p->dtype_of[v] == like->dtype && p->rank_of[v] == like->rank &&
           memcmp(p->shape_of[v], like->shape, sizeof *like->shape * (size_t)like->rank) == 0;
}

int value_like(program *p, const array *like)
{
    int first = below(&p->choices, p->n_visible ? p->n_visible : 1);
    if (!one_in(&p->choices, 3))
        for (int k = 0; k < p->n_visible; k++) {
            int v = p->visible[p->n_visible - 1 - (first + k) % p->n_visible];
            if (has_type(p, v, like))
                return v;
        }
    int v = any_value(p);
    if (v != NOTHING && value_of(p, v)->rank <= like->rank + 2) {
        v = converted(p, fitted(p, v, like->rank, like->shape), like->dtype);
        if (v != NOTHING && has_type(p, v, like))
            return v;
    }
    return constant_like(p, like);
}

int reduced_size(program *p, int v)
{
    const array *a = value_of(p, v);
    if (a->dtype == OLY_BOOL || is_complex(a->dtype))
        return v;
    if (a->error > 0 || p->in_gradient) {
        statement s = operation_of(p->in_gradient ? OP_clamp : OP_tanh, 1, &v);
        s.low[0] = element_is_unsigned(a->dtype) ? 0 : -4;
        s.high[0] = 4;
        return simple(p, s);
    }
    if (is_float(a->dtype)) {
        int w = simple(p, operation_of(OP_floor, 1, &v));
        v = w == NOTHING ? v : w;
    }
    int in[2] = {v, NUMBER};
    statement s = operation_of(OP_fmod, 2, in);
    s.number = 5;
    return simple(p, s);
}
