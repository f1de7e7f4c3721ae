/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of operations that rearrange elements: for each element of the result, which element of the operand it is. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

array *mapped(const array *a, oly_dtype dtype, int rank, const int64_t *shape, double fill,
              bool (*source)(const void *context, const int64_t *to, int64_t *from), const void *context)
{
    array *y = new_array(dtype, rank, shape);
    double *t = a->t ? new_tangent(y) : NULL;
    int64_t to[MOST_RANK], from[MOST_RANK + 2];
    for (int64_t i = 0; i < y->size; i++) {
        unravel(rank, shape, i, to);
        bool there = source(context, to, from);
        int64_t j = there ? ravel(a->rank, a->shape, from) : 0;
        for (int part = 0; part < y->parts; part++)
            y->v[i * y->parts + part] = there ? a->v[j * a->parts + part] : part == 0 ? fill : 0;
        if (t)
            t[i] = there ? a->t[j] : 0;
    }
    y->error = a->error;
    y->t_error = a->t_error;
    return y;
}

typedef struct view {
    const statement *s;
    const array *a;
    const int64_t *shape; /* of the result */
    int rank;
} view;

static int64_t modulo(int64_t x, int64_t n)
{
    return n ? (x % n + n) % n : 0;
}

static bool view_source(const void *context, const int64_t *to, int64_t *from)
{
    const view *w = context;
    const statement *s = w->s;
    const array *a = w->a;
    int more = w->rank - a->rank, n = 0;
    int64_t at;
    for (int d = 0; d < a->rank; d++)
        from[d] = d < w->rank ? to[d] : 0;
    switch ((int)s->op) {
    case OP_slice:
        for (int d = 0; d < a->rank; d++)
            from[d] = s->step[d] == 0 ? s->low[d] : s->low[d] + s->step[d] * to[n++];
        return true;
    case OP_roll: from[s->k] = modulo(to[s->k] - (int64_t)s->number, a->shape[s->k]); return true;
    case OP_flip:
        for (int k = 0; k < s->n_axes; k++)
            from[s->axes[k]] = a->shape[s->axes[k]] - 1 - to[s->axes[k]];
        return true;
    case OP_transpose:
        for (int d = 0; d < a->rank; d++)
            from[s->n_axes ? s->axes[d] : a->rank - 1 - d] = to[d];
        return true;
    case OP_reshape: unravel(a->rank, a->shape, ravel(w->rank, w->shape, to), from); return true;
    case OP_broadcast:
        for (int d = 0; d < a->rank; d++)
            from[d] = a->shape[d] == 1 ? 0 : to[d + more];
        return true;
    case OP_pad:
        for (int d = 0; d < a->rank; d++) {
            at = to[d] - s->low[d];
            from[d] = at / (s->step[d] + 1);
            if (at < 0 || at % (s->step[d] + 1) != 0 || from[d] >= a->shape[d])
                return false;
        }
        return true;
    case OP_pad_mode:
        for (int d = 0; d < a->rank; d++) {
            int64_t size = a->shape[d];
            at = to[d] - s->low[d];
            if (s->mode == EDGE)
                from[d] = at < 0 ? 0 : at >= size ? size - 1 : at;
            else if (s->mode == WRAP)
                from[d] = modulo(at, size);
            else {
                int64_t period = s->mode == SYMMETRIC ? 2 * size : size > 1 ? 2 * (size - 1) : 1;
                at = modulo(at, period);
                from[d] = at < size ? at : s->mode == SYMMETRIC ? period - 1 - at : period - at;
            }
        }
        return true;
    case OP_tile:
        for (int d = 0; d < a->rank; d++)
            from[d] = modulo(to[d + more], a->shape[d]);
        return true;
    case OP_repeat: from[s->k] = to[s->k] / s->shape[0]; return true;
    case OP_tril:
    case OP_triu:
        at = to[a->rank - 1] - to[a->rank - 2];
        return s->op == OP_tril ? at <= (int64_t)s->number : at >= (int64_t)s->number;
    default: /* diagonal of dimensions 0, 1 */
        for (int d = 2; d < a->rank; d++)
            from[d] = to[d - 2];
        at = to[w->rank - 1];
        from[0] = at + (s->number < 0 ? -(int64_t)s->number : 0);
        from[1] = at + (s->number > 0 ? (int64_t)s->number : 0);
        return true;
    }
}

int64_t sliced_extent(const statement *s, int d)
{
    int64_t way = s->step[d] > 0 ? s->high[d] - s->low[d] : s->low[d] - s->high[d];
    int64_t step = s->step[d] > 0 ? s->step[d] : -s->step[d];
    return way <= 0 ? 0 : (way + step - 1) / step;
}

/* False: impossible. */
static bool shape_after(const statement *s, const array *a, int *rank, int64_t *shape)
{
    int more;
    *rank = a->rank;
    memcpy(shape, a->shape, sizeof a->shape);
    switch ((int)s->op) {
    case OP_slice:
        *rank = 0;
        if (s->rank != a->rank)
            return false;
        for (int d = 0; d < a->rank; d++) {
            if (s->step[d] == 0  ? s->low[d] >= a->shape[d]
                : s->step[d] > 0 ? s->high[d] > a->shape[d]
                                 : s->low[d] >= a->shape[d])
                return false;
            if (s->step[d] != 0)
                shape[(*rank)++] = sliced_extent(s, d);
        }
        return true;
    case OP_roll: return s->k < a->rank;
    case OP_flip:
        for (int k = 0; k < s->n_axes; k++)
            if (s->axes[k] >= a->rank)
                return false;
        return s->n_axes > 0;
    case OP_transpose:
        if (s->n_axes != 0 && s->n_axes != a->rank)
            return false;
        for (int d = 0; d < a->rank; d++)
            shape[d] = a->shape[s->n_axes ? s->axes[d] : a->rank - 1 - d];
        return true;
    case OP_reshape:
    case OP_broadcast: {
        int64_t size = 1;
        *rank = s->rank;
        for (int d = 0; d < s->rank; d++) {
            shape[d] = s->shape[d];
            size *= shape[d];
        }
        if (s->op == OP_reshape)
            return size == a->size;
        more = s->rank - a->rank;
        for (int d = 0; d < a->rank && more >= 0; d++)
            if (a->shape[d] != 1 && a->shape[d] != shape[d + more])
                return false;
        return more >= 0;
    }
    case OP_pad:
    case OP_pad_mode:
        if (s->rank != a->rank)
            return false;
        for (int d = 0; d < a->rank; d++) {
            int64_t n = a->shape[d];
            if (s->op == OP_pad && n > 0)
                n += (n - 1) * s->step[d];
            shape[d] = n + s->low[d] + s->high[d];
            if (shape[d] < 0 || (s->op == OP_pad_mode && n == 0))
                return false;
        }
        return true;
    case OP_tile:
        if (s->rank < a->rank)
            return false;
        *rank = s->rank;
        more = s->rank - a->rank;
        for (int d = 0; d < s->rank; d++)
            shape[d] = s->shape[d] * (d < more ? 1 : a->shape[d - more]);
        return true;
    case OP_repeat: return s->k < a->rank && (shape[s->k] *= s->shape[0], true);
    case OP_tril:
    case OP_triu: return a->rank >= 2;
    default: {
        if (a->rank < 2)
            return false;
        int64_t below_it = a->shape[0] + (s->number < 0 ? (int64_t)s->number : 0);
        int64_t beside = a->shape[1] - (s->number > 0 ? (int64_t)s->number : 0);
        *rank = a->rank - 1;
        for (int d = 2; d < a->rank; d++)
            shape[d - 2] = a->shape[d];
        shape[*rank - 1] = below_it < beside ? below_it : beside;
        if (shape[*rank - 1] < 0)
            shape[*rank - 1] = 0;
        return true;
    }
    }
}

/* -- several --------------------------------------------------------------------------------------------------------------- */
static array *joined(program *p, const statement *s, int member)
{
    oly_dtype d = operand_of(p, s, 0, member)->dtype;
    array *parts[MOST_IN] = {NULL};
    int64_t along = 0;
    for (int k = 0; k < s->n_in; k++)
        d = common_type(p, d, operand_of(p, s, k, member)->dtype);
    for (int k = 0; k < s->n_in; k++) {
        parts[k] = converted_array(p, operand_of(p, s, k, member), d);
        if (parts[k]->rank != parts[0]->rank || (s->op == OP_concatenate && s->k >= parts[0]->rank))
            return refuse(p, "ranks"), NULL;
        for (int e = 0; e < parts[0]->rank; e++)
            if (parts[k]->shape[e] != parts[0]->shape[e] && !(s->op == OP_concatenate && e == s->k))
                return refuse(p, "shapes"), NULL;
        along += parts[k]->shape[s->k];
    }
    if (s->op == OP_stack) {
        if (parts[0]->rank >= MOST_RANK - 1 || s->k > parts[0]->rank)
            return refuse(p, "ranks"), NULL;
        return stack_of(s->n_in, parts, s->k, d);
    }
    int64_t shape[MOST_RANK], index[MOST_RANK], begin = 0;
    memcpy(shape, parts[0]->shape, sizeof shape);
    shape[s->k] = along;
    array *y = new_array(d, parts[0]->rank, shape);
    for (int k = 0; k < s->n_in; begin += parts[k++]->shape[s->k]) {
        const array *a = parts[k];
        y->error = fmax(y->error, a->error);
        y->t_error = fmax(y->t_error, a->t_error);
        if (a->t && !y->t)
            new_tangent(y);
        for (int64_t i = 0; i < a->size; i++) {
            unravel(a->rank, a->shape, i, index);
            index[s->k] += begin;
            int64_t to = ravel(y->rank, shape, index);
            for (int part = 0; part < y->parts; part++)
                y->v[to * y->parts + part] = a->v[i * y->parts + part];
            if (a->t)
                y->t[to] = a->t[i];
        }
    }
    return y;
}

static array *updated(program *p, const statement *s, const array *a, const array *value)
{
    array *y = new_array(a->dtype, a->rank, a->shape), *v = converted_array(p, value, a->dtype);
    statement slice = *s;
    slice.op = OP_slice;
    int rank;
    int64_t shape[MOST_RANK], to[MOST_RANK], from[MOST_RANK];
    if (s->in[1] != NUMBER)
        common_type(p, a->dtype, value->dtype);
    if (!shape_after(&slice, a, &rank, shape) || v->rank > rank)
        return refuse(p, "slice"), NULL;
    for (int d = 0; d < v->rank; d++)
        if (v->shape[d] != 1 && v->shape[d] != shape[d + rank - v->rank])
            return refuse(p, "shapes"), NULL;
    if ((s->in[1] == NUMBER || value->parts == 2) && a->dtype == OLY_BOOL)
        return refuse(p, "number"), NULL;
    memcpy(y->v, a->v, sizeof *a->v * (size_t)(a->size * a->parts));
    if (a->t || v->t)
        new_tangent(y);
    if (a->t)
        memcpy(y->t, a->t, sizeof *a->t * (size_t)a->size);
    array part = {.rank = rank, .size = 1};
    for (int d = 0; d < rank; d++)
        part.size *= shape[d];
    view w = {&slice, a, shape, rank};
    for (int64_t i = 0; i < part.size; i++) {
        int64_t at = 0;
        unravel(rank, shape, i, to);
        view_source(&w, to, from);
        for (int d = 0; d < v->rank; d++)
            at = at * v->shape[d] + (v->shape[d] == 1 ? 0 : to[d + rank - v->rank]);
        int64_t j = ravel(a->rank, a->shape, from);
        for (int k = 0; k < y->parts; k++)
            y->v[j * y->parts + k] = v->v[at * y->parts + k];
        if (y->t)
            y->t[j] = v->t ? v->t[at] : 0;
    }
    y->error = fmax(a->error, v->error);
    return y;
}

array *evaluate_rearrangement(program *p, const statement *s, int member)
{
    const array *a = operand_of(p, s, 0, member);
    array *y;
    if (s->op == OP_concatenate || s->op == OP_stack)
        y = joined(p, s, member);
    else if (s->op == OP_update)
        y = updated(p, s, a, operand_of(p, s, 1, member));
    else {
        int rank;
        int64_t shape[2 * MOST_RANK], size = 1;
        if (!shape_after(s, a, &rank, shape) || rank > MOST_RANK)
            return refuse(p, "shape"), NULL;
        for (int d = 0; d < rank; d++)
            size *= shape[d];
        if (size > 5 * p->most_elements)
            return refuse(p, "too large"), NULL;
        if ((s->op == OP_pad) &&
            (a->dtype == OLY_BOOL || s->number != floor(s->number) || (element_is_unsigned(a->dtype) && s->number < 0)))
            return refuse(p, "number"), NULL;
        view w = {s, a, shape, rank};
        y = mapped(a, a->dtype, rank, shape, s->op == OP_pad ? s->number : 0, view_source, &w);
    }
    if (y)
        finish_array(p, y);
    return y;
}

/* -- elements along a dimension -------------------------------------------------------------------------------------------- */
typedef struct cut {
    int dimension, rank;
    int64_t at;
} cut;
static bool cut_source(const void *context, const int64_t *to, int64_t *from)
{
    const cut *c = context;
    for (int d = 0; d < c->rank; d++)
        from[d] = d < c->dimension ? to[d] : d == c->dimension ? c->at : to[d - 1];
    return true;
}

array *slice_of(const array *a, int dimension, int64_t at)
{
    int64_t shape[MOST_RANK];
    cut c = {dimension, a->rank, at};
    for (int d = 0, n = 0; d < a->rank; d++)
        if (d != dimension)
            shape[n++] = a->shape[d];
    return mapped(a, a->dtype, a->rank - 1, shape, 0, cut_source, &c);
}

array *stack_of(int n, array *const *a, int dimension, oly_dtype dtype)
{
    int64_t shape[MOST_RANK + 1], index[MOST_RANK + 1];
    int rank = a[0]->rank + 1;
    for (int d = 0; d < rank; d++)
        shape[d] = d < dimension ? a[0]->shape[d] : d == dimension ? n : a[0]->shape[d - 1];
    array *y = new_array(dtype, rank, shape);
    for (int k = 0; k < n; k++) {
        y->error = fmax(y->error, a[k]->error);
        y->t_error = fmax(y->t_error, a[k]->t_error);
        if (a[k]->t && !y->t)
            new_tangent(y);
    }
    for (int64_t i = 0; i < y->size; i++) {
        unravel(rank, shape, i, index);
        int64_t k = index[dimension], at = 0;
        for (int d = 0; d < rank; d++)
            if (d != dimension)
                at = at * shape[d] + index[d];
        for (int part = 0; part < y->parts; part++)
            y->v[i * y->parts + part] = a[k]->v[at * y->parts + part];
        if (y->t)
            y->t[i] = a[k]->t ? a[k]->t[at] : 0;
    }
    return y;
}
