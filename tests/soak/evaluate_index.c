/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of operations by index, and of collectives. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

/* The element an index refers to in a dimension of n elements; -1: none. */
static int64_t place_of(int64_t i, int64_t n, int mode)
{
    if (mode == WRAP)
        return (i % n + n) % n;
    if (i < 0)
        i += n;
    if (mode == CLIP)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    return i < 0 || i >= n ? -1 : i;
}

static bool indexes(program *p, const array *x)
{
    return is_integer(x->dtype) || refuse(p, "no indexes");
}

static array *taken(program *p, const statement *s, const array *a, const array *by)
{
    int64_t shape[2 * MOST_RANK], index[MOST_RANK], from[MOST_RANK];
    int rank = a->rank - 1 + by->rank;
    if (s->k >= a->rank || rank > MOST_RANK || a->shape[s->k] == 0 || !indexes(p, by) ||
        (s->mode != WRAP && s->mode != CLIP))
        return refuse(p, "take"), NULL;
    for (int d = 0; d < rank; d++)
        shape[d] = d < s->k ? a->shape[d] : d < s->k + by->rank ? by->shape[d - s->k] : a->shape[d - by->rank + 1];
    if (elements_of(rank, shape) > 5 * p->most_elements)
        return refuse(p, "too large"), NULL;
    array *y = new_array(a->dtype, rank, shape);
    if (a->t)
        new_tangent(y);
    for (int64_t i = 0; i < y->size; i++) {
        unravel(rank, shape, i, index);
        int64_t raw = (int64_t)by->v[ravel(by->rank, by->shape, index + s->k)];
        if (s->op == OP_take && s->mode == CLIP && raw < 0)
            raw = 0; /* does not count from the end there */
        for (int d = 0; d < a->rank; d++)
            from[d] = d < s->k ? index[d] : d == s->k ? place_of(raw, a->shape[d], s->mode) : index[d + by->rank - 1];
        int64_t j = ravel(a->rank, a->shape, from);
        for (int part = 0; part < y->parts; part++)
            y->v[i * y->parts + part] = a->v[j * y->parts + part];
        if (a->t)
            y->t[i] = a->t[j];
        if (a->t && (raw < 0 || raw >= a->shape[s->k]))
            refuse(p, "slope of a place outside"); /* at_get has no derivative there */
    }
    y->error = a->error;
    return y;
}

static array *taken_along(program *p, const statement *s, const array *a, const array *by)
{
    int64_t index[MOST_RANK];
    if (a->rank != by->rank || s->k >= a->rank || a->shape[s->k] == 0 || !indexes(p, by))
        return refuse(p, "take"), NULL;
    for (int d = 0; d < a->rank; d++)
        if (d != s->k && a->shape[d] != by->shape[d])
            return refuse(p, "shapes"), NULL;
    array *y = new_array(a->dtype, a->rank, by->shape);
    if (a->t)
        new_tangent(y);
    for (int64_t i = 0; i < y->size; i++) {
        unravel(y->rank, y->shape, i, index);
        int64_t raw = (int64_t)by->v[i];
        index[s->k] = place_of(raw, a->shape[s->k], s->mode);
        if (index[s->k] < 0)
            return refuse(p, "outside"), NULL;
        int64_t j = ravel(a->rank, a->shape, index);
        for (int part = 0; part < y->parts; part++)
            y->v[i * y->parts + part] = a->v[j * y->parts + part];
        if (a->t)
            y->t[i] = a->t[j];
        if (a->t && (raw < 0 || raw >= a->shape[s->k]))
            refuse(p, "slope of a place outside");
    }
    y->error = a->error;
    return y;
}

/* x.at[i] of dimension 0. */
static array *written(program *p, const statement *s, const array *a, const array *by, const array *value)
{
    if (a->rank < 1 || !indexes(p, by) || (is_complex(a->dtype) && s->op == OP_at_max) || a->dtype == OLY_BOOL ||
        a->shape[0] == 0)
        return refuse(p, "at"), NULL;
    if (value->dtype != a->dtype && s->in[2] != NUMBER)
        return refuse(p, "type"), NULL;
    int64_t row = a->shape[0] ? a->size / a->shape[0] * a->parts : 0;
    int rank = by->rank + a->rank - 1;
    if (s->in[2] != NUMBER) {
        if (value->rank != rank)
            return refuse(p, "shape"), NULL;
        for (int d = 0; d < rank; d++)
            if (value->shape[d] != (d < by->rank ? by->shape[d] : a->shape[d - by->rank + 1]))
                return refuse(p, "shape"), NULL;
    } else if (s->number != floor(s->number) || (element_is_unsigned(a->dtype) && s->number < 0))
        return refuse(p, "number"), NULL;
    array *y = new_array(a->dtype, a->rank, a->shape);
    memcpy(y->v, a->v, sizeof *a->v * (size_t)(a->size * a->parts));
    if (a->t || value->t) {
        if (s->op == OP_at_max)
            return refuse(p, "slope"), NULL;
        new_tangent(y);
        if (a->t)
            memcpy(y->t, a->t, sizeof *a->t * (size_t)a->size);
    }
    double magnitude = biggest(a), lowest = INFINITY;
    for (int64_t i = 0; i < a->size * a->parts; i++)
        lowest = fmin(lowest, lowest_bit(a->v[i]));
    for (int64_t i = 0; i < by->size; i++) {
        int64_t to = place_of((int64_t)by->v[i], a->shape[0], SAME);
        for (int64_t j = 0; j < row && to >= 0; j++) {
            double x = s->in[2] != NUMBER ? value->v[i * row + j]
                       : j % a->parts     ? 0
                                          : s->number,
                   *at = &y->v[to * row + j];
            double tx = value->t ? value->t[i * row + j] : 0;
            *at = s->op == OP_at_set ? x : s->op == OP_at_add ? *at + x : fmax(*at, x);
            if (y->t)
                y->t[to * row + j] = s->op == OP_at_add ? y->t[to * row + j] + tx : tx;
            lowest = fmin(lowest, lowest_bit(x));
        }
    }
    magnitude += (double)by->size * biggest(value);
    if (s->op == OP_at_add && a->error == 0 && value->error == 0 && !exact_sum(a->dtype, magnitude, lowest))
        refuse(p, "not exact");
    if (s->op == OP_at_add && is_narrow(a->dtype) && /* rounded after each addition */
        magnitude > ldexp(1, mantissa_bits(a->dtype)) * fmin(lowest, 1))
        refuse(p, "narrow");
    y->error = s->op == OP_at_add && (a->error > 0 || value->error > 0)
                   ? a->error + (double)by->size * (value->error + magnitude * element_epsilon(a->dtype))
                   : fmax(a->error, value->error);
    return y;
}

static int64_t start_of(program *p, const statement *s, int k, int member, int64_t n, int64_t size)
{
    const array *at = p->now[member][s->in[k]];
    if (at->rank != 0 || !is_integer(at->dtype))
        return refuse(p, "start"), 0;
    int64_t i = (int64_t)at->v[0];
    if (i < 0)
        i += n;
    return i < 0 ? 0 : i > n - size ? n - size : i;
}

typedef struct dynamic {
    int rank;
    int64_t start[MOST_RANK];
} dynamic;
static bool dynamic_source(const void *context, const int64_t *to, int64_t *from)
{
    const dynamic *d = context;
    for (int k = 0; k < d->rank; k++)
        from[k] = to[k] + d->start[k];
    return true;
}

static array *dynamic_part(program *p, const statement *s, int member)
{
    const array *a = operand_of(p, s, 0, member);
    dynamic d = {.rank = a->rank};
    bool writes = s->op == OP_dynamic_update;
    const array *u = writes ? operand_of(p, s, 1, member) : NULL;
    if (s->n_in - (writes ? 2 : 1) != a->rank || a->rank < 1 ||
        (writes && (u->rank != a->rank || u->dtype != a->dtype)) || (!writes && s->rank != a->rank))
        return refuse(p, "starts"), NULL;
    for (int k = 0; k < a->rank; k++) {
        int64_t size = writes ? u->shape[k] : s->shape[k];
        if (size > a->shape[k])
            return refuse(p, "part"), NULL;
        d.start[k] = start_of(p, s, k + (writes ? 2 : 1), member, a->shape[k], size);
    }
    if (!writes)
        return mapped(a, a->dtype, a->rank, s->shape, 0, dynamic_source, &d);
    array *y = new_array(a->dtype, a->rank, a->shape);
    int64_t index[MOST_RANK], from[MOST_RANK];
    memcpy(y->v, a->v, sizeof *a->v * (size_t)(a->size * a->parts));
    if (a->t || u->t)
        new_tangent(y);
    if (a->t)
        memcpy(y->t, a->t, sizeof *a->t * (size_t)a->size);
    for (int64_t i = 0; i < u->size; i++) {
        unravel(u->rank, u->shape, i, index);
        dynamic_source(&d, index, from);
        int64_t j = ravel(a->rank, a->shape, from);
        for (int part = 0; part < a->parts; part++)
            y->v[j * a->parts + part] = u->v[i * a->parts + part];
        if (y->t)
            y->t[j] = u->t ? u->t[i] : 0;
    }
    y->error = fmax(a->error, u->error);
    return y;
}

static array *segments(program *p, const statement *s, const array *a, const array *ids)
{
    if (a->rank < 1 || ids->rank != 1 || ids->shape[0] != a->shape[0] || !indexes(p, ids) || a->dtype == OLY_BOOL ||
        is_narrow(a->dtype))
        return refuse(p, "ids"), NULL;
    int64_t shape[MOST_RANK], row = a->shape[0] ? a->size / a->shape[0] : 0;
    memcpy(shape, a->shape, sizeof shape);
    shape[0] = s->shape[0];
    array *y = new_array(a->dtype, a->rank, shape);
    if (a->t)
        new_tangent(y);
    double lowest = INFINITY;
    for (int64_t i = 0; i < ids->size; i++) {
        int64_t to = (int64_t)ids->v[i];
        for (int64_t j = 0; j < row && to >= 0 && to < s->shape[0]; j++) {
            for (int part = 0; part < a->parts; part++) {
                y->v[(to * row + j) * a->parts + part] += a->v[(i * row + j) * a->parts + part];
                lowest = fmin(lowest, lowest_bit(a->v[(i * row + j) * a->parts + part]));
            }
            if (a->t)
                y->t[to * row + j] += a->t[i * row + j];
        }
    }
    double n = (double)ids->size;
    if (a->error == 0 && !exact_sum(a->dtype, n * biggest(a), lowest))
        refuse(p, "not exact");
    y->error = a->error > 0 ? n * (a->error + n * biggest(a) * element_epsilon(a->dtype)) : 0;
    return y;
}

array *evaluate_indexing(program *p, const statement *s, int member)
{
    const array *a = operand_of(p, s, 0, member), *b = s->n_in > 1 ? operand_of(p, s, 1, member) : NULL;
    array *y = NULL;
    statement get = *s;
    if (b && s->op != OP_searchsorted && b->error > 0 && s->op != OP_dynamic_update)
        return refuse(p, "inexact index"), NULL;
    switch ((int)s->op) {
    case OP_take: y = taken(p, s, a, b); break;
    case OP_at_get:
        get.k = 0;
        get.mode = CLIP;
        y = taken(p, &get, a, b);
        break;
    case OP_take_along: y = taken_along(p, s, a, b); break;
    case OP_at_set:
    case OP_at_add:
    case OP_at_max: y = written(p, s, a, b, operand_of(p, s, 2, member)); break;
    case OP_dynamic_slice:
    case OP_dynamic_update: y = dynamic_part(p, s, member); break;
    case OP_segment_sum: y = segments(p, s, a, b); break;
    case OP_one_hot: {
        int64_t shape[MOST_RANK + 1];
        if (!indexes(p, a) || a->rank >= MOST_RANK - 1)
            return refuse(p, "indexes"), NULL;
        memcpy(shape, a->shape, sizeof a->shape);
        shape[a->rank] = s->shape[0];
        if (elements_of(a->rank + 1, shape) > 5 * p->most_elements)
            return refuse(p, "too large"), NULL;
        y = new_array(s->dtype, a->rank + 1, shape);
        for (int64_t i = 0; i < a->size; i++)
            if (a->v[i] >= 0 && a->v[i] < (double)s->shape[0])
                y->v[(i * s->shape[0] + (int64_t)a->v[i]) * y->parts] = 1;
        break;
    }
    case OP_searchsorted:
        if (a->rank != 1 || is_complex(a->dtype) || is_complex(b->dtype) || a->error > 0 || b->error > 0 ||
            a->dtype != b->dtype || a->dtype == OLY_BOOL)
            return refuse(p, "sorted"), NULL;
        for (int64_t i = 1; i < a->size; i++)
            if (a->v[i] < a->v[i - 1])
                return refuse(p, "not sorted"), NULL;
        y = new_array(OLY_INT32, b->rank, b->shape);
        for (int64_t i = 0; i < b->size; i++)
            for (int64_t j = 0; j < a->size; j++)
                y->v[i] += s->mode == RIGHT ? a->v[j] <= b->v[i] : a->v[j] < b->v[i];
        break;
    default: /* top_k */
        if (a->rank < 1 || s->shape[0] > a->shape[a->rank - 1] || is_complex(a->dtype) || a->dtype == OLY_BOOL || a->t)
            return refuse(p, "top_k"), NULL;
        statement sort = {.kind = OPERATION, .op = OP_sort, .n_in = 1, .in = {s->in[0]}, .k = -1, .flag = true};
        array *sorted = evaluate_operation(p, &sort, member);
        if (!sorted)
            return NULL;
        dynamic first = {.rank = a->rank};
        int64_t shape[MOST_RANK];
        memcpy(shape, a->shape, sizeof shape);
        shape[a->rank - 1] = s->shape[0];
        y = mapped(sorted, a->dtype, a->rank, shape, 0, dynamic_source, &first);
    }
    if (y)
        finish_array(p, y);
    return y;
}

/* -- between the devices of a map --------------------------------------------------------------------------------------------- */
int device_coordinate(const mesh_text *m, int device, int axis)
{
    for (int k = m->n_axes - 1; k > axis; k--)
        device /= m->size[k];
    return device % m->size[axis];
}

/* The device with this number along the axes, otherwise at the position of `device`. */
static int device_along(const mesh_text *m, const statement *s, int device, int number)
{
    int c[MOST_AXES], at = 0;
    for (int k = 0; k < m->n_axes; k++)
        c[k] = device_coordinate(m, device, k);
    for (int k = s->n_axes - 1; k >= 0; k--) {
        c[s->axes[k]] = number % m->size[s->axes[k]];
        number /= m->size[s->axes[k]];
    }
    for (int k = 0; k < m->n_axes; k++)
        at = at * m->size[k] + c[k];
    return at;
}

typedef struct parts { /* parts of a dimension */
    int dimension, rank;
    int64_t begin;
} parts;
static bool part_source(const void *context, const int64_t *to, int64_t *from)
{
    const parts *c = context;
    for (int d = 0; d < c->rank; d++)
        from[d] = to[d] + (d == c->dimension ? c->begin : 0);
    return true;
}
static array *part_of(const array *a, int dimension, int64_t begin, int64_t extent)
{
    parts c = {dimension, a->rank, begin};
    int64_t shape[MOST_RANK];
    memcpy(shape, a->shape, sizeof shape);
    shape[dimension] = extent;
    return mapped(a, a->dtype, a->rank, shape, 0, part_source, &c);
}

static array *combined(program *p, int n, array *const *a, bool sum)
{
    array *y = new_array(a[0]->dtype, a[0]->rank, a[0]->shape);
    for (int k = 0; k < n; k++)
        if (a[k]->t) {
            if (!sum)
                return refuse(p, "slope"), NULL;
            if (!y->t)
                new_tangent(y);
        }
    for (int64_t i = 0; i < y->size * y->parts; i++) {
        double magnitude = 0, lowest = INFINITY;
        for (int k = 0; k < n; k++) {
            double x = a[k]->v[i];
            y->v[i] = k == 0 ? x : sum ? y->v[i] + x : fmax(y->v[i], x);
            magnitude += fabs(x);
            lowest = fmin(lowest, lowest_bit(x));
            if (a[k]->t)
                y->t[i] += a[k]->t[i];
        }
        if (sum && a[0]->error == 0 && !exact_sum(y->dtype, magnitude, lowest))
            refuse(p, "not exact");
    }
    for (int k = 0; k < n; k++)
        y->error = sum ? y->error + a[k]->error + (a[k]->error > 0 ? n * biggest(a[k]) * element_epsilon(y->dtype) : 0)
                       : fmax(y->error, a[k]->error);
    return y;
}

static array *concatenated(int n, array *const *a, int dimension)
{
    int64_t shape[MOST_RANK], index[MOST_RANK];
    memcpy(shape, a[0]->shape, sizeof shape);
    shape[dimension] *= n;
    array *y = new_array(a[0]->dtype, a[0]->rank, shape);
    for (int k = 0; k < n; k++) {
        y->error = fmax(y->error, a[k]->error);
        if (a[k]->t && !y->t)
            new_tangent(y);
        for (int64_t i = 0; i < a[k]->size; i++) {
            unravel(a[k]->rank, a[k]->shape, i, index);
            index[dimension] += k * a[k]->shape[dimension];
            int64_t to = ravel(y->rank, shape, index);
            for (int part = 0; part < y->parts; part++)
                y->v[to * y->parts + part] = a[k]->v[i * y->parts + part];
            if (a[k]->t)
                y->t[to] = a[k]->t[i];
        }
    }
    return y;
}

array *evaluate_collective(program *p, const statement *s, int member)
{
    const mesh_text *m = p->map;
    array *a[MOST_DEVICES], *y;
    int n = 1, me = 0;
    if (!m || p->team == 1)
        return refuse(p, "no map"), NULL;
    for (int k = 0; k < s->n_axes; k++) {
        n *= m->size[s->axes[k]];
        me = me * m->size[s->axes[k]] + device_coordinate(m, member, s->axes[k]);
    }
    if (s->op == OP_axis_index) {
        y = new_array(OLY_INT32, 0, NULL);
        y->v[0] = me;
        return y;
    }
    for (int k = 0; k < n; k++) {
        a[k] = p->now[device_along(m, s, member, k)][s->in[0]];
        if (a[k]->dtype == OLY_BOOL)
            return refuse(p, "bool"), NULL;
    }
    const array *own = a[me];
    bool plain = s->op == OP_psum || s->op == OP_pmax || s->op == OP_ppermute;
    if ((!plain && s->k >= own->rank + (s->op == OP_all_gather && !s->flag)) || (s->op == OP_pmax && own->parts == 2))
        return refuse(p, "dimension"), NULL;
    int from = (me + n - s->k % n) % n;
    switch ((int)s->op) {
    case OP_psum: y = combined(p, n, a, true); break;
    case OP_pmax: y = combined(p, n, a, false); break;
    case OP_ppermute:
        if (s->flag && from + s->k % n >= n) {
            y = new_array(own->dtype, own->rank, own->shape);
        } else
            y = a[from];
        break;
    case OP_all_gather:
        if (own->rank >= MOST_RANK - 1 || own->size * n > 5 * p->most_elements)
            return refuse(p, "too large"), NULL;
        y = s->flag ? concatenated(n, a, s->k) : stack_of(n, a, s->k, own->dtype);
        break;
    case OP_psum_scatter:
        if (s->flag ? own->shape[s->k] % n != 0 : own->shape[s->k] != n)
            return refuse(p, "extent"), NULL;
        y = combined(p, n, a, true);
        if (y && s->flag)
            y = part_of(y, s->k, own->shape[s->k] / n * me, own->shape[s->k] / n);
        else if (y)
            y = slice_of(y, s->k, me);
        break;
    default: { /* all_to_all, tiled: dimension k is split, dimension shape[0] concatenated */
        array *got[MOST_DEVICES];
        if (own->shape[s->k] % n != 0 || s->shape[0] >= own->rank || s->shape[0] == s->k)
            return refuse(p, "extent"), NULL;
        for (int k = 0; k < n; k++)
            got[k] = part_of(a[k], s->k, own->shape[s->k] / n * me, own->shape[s->k] / n);
        y = concatenated(n, got, (int)s->shape[0]);
    }
    }
    if (y)
        finish_array(p, y);
    return y;
}
