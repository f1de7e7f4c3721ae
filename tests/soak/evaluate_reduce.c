/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of operations that combine the elements along dimensions, by plain loops over doubles, with tangents:
 * reductions, running results and sorts, products and windows. Called by evaluate_ops.c. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- reductions ------------------------------------------------------------------------------------------------------------------- */
static oly_dtype summed_type(const program *p, oly_dtype d)
{
    bool wide = p->wide;
    if (d == OLY_BOOL || (d >= OLY_INT8 && d <= OLY_INT32))
        return wide ? OLY_INT64 : OLY_INT32;
    if (d >= OLY_UINT8 && d <= OLY_UINT32)
        return wide ? OLY_UINT64 : OLY_UINT32;
    return d;
}

typedef struct line { /* elements of one result */
    int64_t n, *at;
} line;

static void note_terms(array *y, double magnitude, double lowest)
{
    y->lowest = y->terms > 0 ? fmin(y->lowest, lowest) : lowest;
    y->terms = fmax(y->terms, magnitude);
}

/* Element of y, the result. */
static double reduce_line(program *p, const statement *s, const array *a, int part, const line *l, double *t, array *y)
{
    double r = s->op == OP_prod || s->op == OP_all ? 1 : 0, magnitude = 0, lowest = INFINITY, most = 1, least = 1;
    int64_t ties = 0;
    *t = 0;
    for (int64_t k = 0; k < l->n; k++) {
        double x = a->v[l->at[k] * a->parts + part], tx = a->t ? a->t[l->at[k]] : 0;
        magnitude += fabs(x);
        lowest = fmin(lowest, lowest_bit(x));
        switch ((int)s->op) {
        case OP_sum:
        case OP_mean: r += x, *t += tx; break;
        case OP_prod:
            *t = *t * x + r * tx;
            r *= x;
            most *= fmax(1, fabs(x));
            least *= fmin(1, lowest_bit(x));
            break;
        case OP_any: r = r != 0 || x != 0; break;
        case OP_all: r = r != 0 && x != 0; break;
        case OP_max:
        case OP_min:
            if (k == 0 || (s->op == OP_max ? x > r : x < r))
                r = x, ties = 1, *t = tx;
            else if (x == r)
                ties++, *t += tx;
            break;
        default: /* argmax, argmin */
            if (k == 0 || (s->op == OP_argmax ? x > a->v[l->at[(int64_t)r]] : x < a->v[l->at[(int64_t)r]]))
                r = (double)k;
        }
    }
    if (ties > 0)
        *t /= (double)ties;
    if (s->op == OP_prod && !exact_sum(a->dtype, most, least))
        refuse(p, "not exact");
    if ((s->op == OP_sum || s->op == OP_mean) && a->error == 0 && !exact_sum(a->dtype, magnitude, lowest))
        refuse(p, "not exact");
    if (s->op == OP_sum && magnitude > 0)
        note_terms(y, magnitude, lowest);
    if (s->op == OP_mean && l->n > 0)
        r /= (double)l->n, *t /= (double)l->n;
    return r;
}

array *evaluate_reduction(program *p, const statement *s, const array *a)
{
    bool gone[MOST_RANK] = {false}, picks = s->op == OP_argmax || s->op == OP_argmin;
    int rank = 0, rest = 0, kept[MOST_RANK];
    int64_t shape[MOST_RANK], index[MOST_RANK], n = 1;
    for (int k = 0; k < s->n_axes; k++) {
        int axis = s->axes[k] < 0 ? s->axes[k] + a->rank : s->axes[k];
        if (axis < 0 || axis >= a->rank || gone[axis])
            return refuse(p, "axis"), NULL;
        gone[axis] = true;
    }
    for (int d = 0; d < a->rank; d++) {
        gone[d] = gone[d] || s->other_flag;
        if (gone[d])
            n *= a->shape[d];
        else
            kept[rest++] = d;
        if (!gone[d] || s->flag)
            shape[rank++] = gone[d] ? 1 : a->shape[d];
    }
    if (picks && (is_complex(a->dtype) || a->error > 0 || n == 0 || (!s->other_flag && s->n_axes != 1)))
        return refuse(p, "argmax"), NULL;
    if ((s->op == OP_max || s->op == OP_min) && (n == 0 || is_complex(a->dtype)))
        return refuse(p, "max"), NULL;
    if ((s->op == OP_any || s->op == OP_all) && (a->error > 0 || a->parts == 2))
        return refuse(p, "a step"), NULL;
    if (s->op == OP_mean && (!is_float(a->dtype) || n == 0))
        return refuse(p, "mean"), NULL;
    if (s->op == OP_prod && (a->error > 0 || is_complex(a->dtype) || (a->t && n > 6)))
        return refuse(p, "prod"), NULL;
    oly_dtype d = picks                                 ? (p->wide ? OLY_INT64 : OLY_INT32)
                  : s->op == OP_any || s->op == OP_all  ? OLY_BOOL
                  : s->op == OP_sum || s->op == OP_prod ? summed_type(p, a->dtype)
                                                        : a->dtype;
    array *y = new_array(d, rank, shape);
    line *lines = take(sizeof *lines * (size_t)(y->size + 1));
    int64_t *all = take(sizeof *all * (size_t)(a->size + 1));
    for (int64_t i = 0; i < y->size; i++)
        lines[i] = (line){0, all + i * n};
    for (int64_t j = 0; j < a->size; j++) {
        int64_t to = 0;
        unravel(a->rank, a->shape, j, index);
        for (int k = 0; k < rest; k++)
            to = to * a->shape[kept[k]] + index[kept[k]];
        lines[to].at[lines[to].n++] = j;
    }
    double *t = a->t ? new_tangent(y) : NULL, magnitude = 0;
    for (int64_t i = 0; i < y->size; i++) {
        for (int part = 0; part < a->parts; part++) {
            double slope;
            y->v[i * y->parts + part] = reduce_line(p, s, a, part, &lines[i], &slope, y);
            if (t)
                t[i] = slope;
        }
    }
    magnitude = (double)n * biggest(a);
    if (a->error > 0)
        y->error = s->op == OP_max || s->op == OP_min
                       ? a->error
                       : (double)n * a->error + (double)n * magnitude * 0x1p-23 + 2 * element_epsilon(d) * magnitude;
    if (s->op == OP_mean && y->error == 0)
        for (int64_t i = 0; i < y->size; i++)
            if (!exact_in(d, y->v[i]) || (n & (n - 1)) != 0)
                y->error = 4 * element_epsilon(d) * magnitude;
    finish_array(p, y);
    return y;
}

/* -- along a dimension -------------------------------------------------------------------------------------------------------------- */
typedef struct item {
    double v, t;
    int64_t at;
} item;
static int by_value(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->v < y->v ? -1 : x->v > y->v ? 1 : x->at < y->at ? -1 : 1;
}
static int by_value_down(const void *a, const void *b)
{
    const item *x = a, *y = b;
    return x->v > y->v ? -1 : x->v < y->v ? 1 : x->at < y->at ? -1 : 1;
}

array *evaluate_running(program *p, const statement *s, const array *a)
{
    int axis = s->k < 0 ? s->k + a->rank : s->k;
    if (axis < 0 || axis >= a->rank || is_complex(a->dtype))
        return refuse(p, "axis"), NULL;
    bool sorts = s->op == OP_sort || s->op == OP_argsort;
    if ((s->op == OP_argsort && a->error > 0) || (s->op == OP_cumprod && (a->error > 0 || a->t)))
        return refuse(p, "a step"), NULL;
    oly_dtype d = a->dtype;
    if (d == OLY_BOOL && (s->op == OP_cumsum || s->op == OP_cumprod))
        d = p->wide ? OLY_INT64 : OLY_INT32;
    if (s->op == OP_argsort)
        d = p->wide ? OLY_INT64 : OLY_INT32;
    array *y = new_array(d, a->rank, a->shape);
    double *t = a->t && s->op != OP_argsort ? new_tangent(y) : NULL;
    int64_t n = a->shape[axis], stride = 1;
    for (int e = axis + 1; e < a->rank; e++)
        stride *= a->shape[e];
    item *items = take(sizeof *items * (size_t)(n + 1));
    for (int64_t first = 0; first < a->size; first++) {
        if (first / stride % n != 0)
            continue;
        double magnitude = 0, lowest = INFINITY, most = 1, least = 1;
        for (int64_t k = 0; k < n; k++) {
            int64_t from = first + (s->flag && !sorts ? n - 1 - k : k) * stride;
            items[k] = (item){a->v[from], a->t ? a->t[from] : 0, k};
            magnitude += fabs(a->v[from]);
            lowest = fmin(lowest, lowest_bit(a->v[from]));
            most *= fmax(1, fabs(a->v[from]));
            least *= fmin(1, lowest_bit(a->v[from]));
        }
        if (s->op == OP_cumprod && !exact_sum(d, most, least))
            refuse(p, "not exact");
        if (s->op == OP_cumsum && a->error == 0 && !exact_sum(d, magnitude, lowest))
            refuse(p, "not exact");
        if (sorts) {
            qsort(items, (size_t)n, sizeof *items, s->flag ? by_value_down : by_value);
            for (int64_t k = 1; t && k < n; k++)
                if (items[k].v == items[k - 1].v && items[k].t != items[k - 1].t)
                    refuse(p, "a tie");
        }
        for (int64_t k = 1; k < n && !sorts; k++) {
            item *x = &items[k], *before = &items[k - 1];
            if (t && (s->op == OP_cummax || s->op == OP_cummin) && x->v == before->v && x->t != before->t)
                refuse(p, "a tie");
            switch ((int)s->op) {
            case OP_cumsum: x->v += before->v, x->t += before->t; break;
            case OP_cumprod: x->v *= before->v; break;
            case OP_cummax:
                if (before->v > x->v)
                    x->v = before->v, x->t = before->t;
                break;
            default:
                if (before->v < x->v)
                    x->v = before->v, x->t = before->t;
            }
        }
        for (int64_t k = 0; k < n; k++) {
            int64_t to = first + (s->flag && !sorts ? n - 1 - k : k) * stride;
            y->v[to] = s->op == OP_argsort ? (double)items[k].at : items[k].v;
            if (t)
                t[to] = items[k].t;
        }
    }
    if (a->error > 0)
        y->error = s->op == OP_cumsum ? (double)n * (a->error + (double)n * biggest(a) * element_epsilon(d)) : a->error;
    finish_array(p, y);
    return y;
}

/* -- products ------------------------------------------------------------------------------------------------------------------------- */
static array *einsum(program *p, const array *a, const char *as, const array *b, const char *bs, const char *out)
{
    int64_t extent[128] = {0}, value[128] = {0}, shape[MOST_RANK];
    char letters[16];
    int n = 0, rank = (int)strlen(out), n_out = rank;
    oly_dtype d = common_type(p, a->dtype, b->dtype);
    if (d == OLY_BOOL || (int)strlen(as) != a->rank || (int)strlen(bs) != b->rank || rank > MOST_RANK)
        return refuse(p, "product"), NULL;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < (pass ? b : a)->rank; k++) {
            int c = (pass ? bs : as)[k];
            int64_t have = (pass ? b : a)->shape[k];
            if (extent[c] != 0 && extent[c] != have + 1)
                return refuse(p, "shapes"), NULL;
            extent[c] = have + 1;
        }
    for (int k = 0; k < rank; k++) {
        shape[k] = extent[(int)out[k]] - 1;
        letters[n++] = out[k];
    }
    for (int c = 'a'; c <= 'z'; c++)
        if (extent[c] && !strchr(out, c))
            letters[n++] = (char)c;
    if (elements_of(rank, shape) > 5 * p->most_elements)
        return refuse(p, "too large"), NULL;
    const array *x = converted_array(p, a, d), *z = converted_array(p, b, d);
    array *y = new_array(d, rank, shape);
    double *t = x->t || z->t ? new_tangent(y) : NULL;
    int64_t terms = 1;
    for (int k = n_out; k < n; k++)
        terms *= extent[(int)letters[k]] - 1;
    p->work += y->size * terms;
    if (p->work > p->most_work)
        return refuse(p, "too much work"), NULL;
    double low_x = INFINITY, low_z = INFINITY;
    for (int64_t i = 0; i < x->size * x->parts; i++)
        low_x = fmin(low_x, lowest_bit(x->v[i]));
    for (int64_t i = 0; i < z->size * z->parts; i++)
        low_z = fmin(low_z, lowest_bit(z->v[i]));
    for (int64_t i = 0; i < y->size; i++) {
        int64_t at = i;
        for (int k = n_out - 1; k >= 0; k--) {
            value[(int)letters[k]] = at % shape[k];
            at /= shape[k];
        }
        double magnitude = 0;
        for (int64_t j = 0; j < terms; j++) {
            int64_t left = j, ia = 0, ib = 0;
            for (int k = n - 1; k >= n_out; k--) {
                value[(int)letters[k]] = left % (extent[(int)letters[k]] - 1);
                left /= extent[(int)letters[k]] - 1;
            }
            for (int k = 0; k < a->rank; k++)
                ia = ia * a->shape[k] + value[(int)as[k]];
            for (int k = 0; k < b->rank; k++)
                ib = ib * b->shape[k] + value[(int)bs[k]];
            if (y->parts == 2) {
                double ar = x->v[2 * ia], ai = x->v[2 * ia + 1], br = z->v[2 * ib], bi = z->v[2 * ib + 1];
                y->v[2 * i] += ar * br - ai * bi;
                y->v[2 * i + 1] += ar * bi + ai * br;
                magnitude += fabs(ar * br) + fabs(ai * bi) + fabs(ar * bi) + fabs(ai * br);
            } else {
                y->v[i] += x->v[ia] * z->v[ib];
                magnitude += fabs(x->v[ia] * z->v[ib]);
                if (t)
                    t[i] += (x->t ? x->t[ia] * z->v[ib] : 0) + (z->t ? z->t[ib] * x->v[ia] : 0);
            }
        }
        if (x->error == 0 && z->error == 0 && !exact_sum(d, magnitude, low_x * low_z))
            refuse(p, "not exact");
        if (magnitude > 0)
            note_terms(y, magnitude, low_x * low_z);
    }
    if (x->error > 0 || z->error > 0) {
        double m = biggest(x) * biggest(z) * (double)terms;
        y->error = 2 * (double)terms * (x->error * (biggest(z) + z->error) + z->error * biggest(x)) +
                   ((double)terms * 0x1p-23 + 2 * element_epsilon(d)) * m;
    }
    finish_array(p, y);
    return y;
}

typedef struct windows {
    int64_t pad, size;
    int dimension; /* of the operand: its positions; the windows are the last of the result */
    int rank;
} windows;
static bool window_source(const void *context, const int64_t *to, int64_t *from)
{
    const windows *w = context;
    for (int d = 0; d < w->rank; d++)
        from[d] = to[d];
    from[w->dimension] += to[w->rank] - w->pad;
    return from[w->dimension] >= 0 && from[w->dimension] < w->size;
}
static bool reverse_source(const void *context, const int64_t *to, int64_t *from)
{
    from[0] = ((const array *)context)->shape[0] - 1 - to[0];
    return true;
}

/* The windows of n elements along the last dimension, as one more dimension of size n. */
static array *windowed(program *p, const array *a, int64_t n, int mode, double fill)
{
    windows w = {.size = a->shape[a->rank - 1], .dimension = a->rank - 1, .rank = a->rank};
    int64_t shape[MOST_RANK + 1], places = mode == FULL ? w.size + n - 1 : mode == SAME ? w.size : w.size - n + 1;
    if (a->rank >= MOST_RANK || places < 0 || n < 1)
        return refuse(p, "window"), NULL;
    w.pad = mode == FULL ? n - 1 : mode == SAME ? (n - 1) / 2 : 0;
    memcpy(shape, a->shape, sizeof a->shape);
    shape[a->rank - 1] = places;
    shape[a->rank] = n;
    if (elements_of(a->rank + 1, shape) > 5 * p->most_elements)
        return refuse(p, "too large"), NULL;
    return mapped(a, a->dtype, a->rank + 1, shape, fill, window_source, &w);
}

static const char *letters_of(const int64_t *list, char text[static MOST_RANK + 1])
{
    int n = 0;
    while (n < MOST_RANK && list[n])
        text[n] = (char)list[n], n++;
    text[n] = 0;
    return text;
}

array *evaluate_product(program *p, const statement *s, array *const *a)
{
    array *x = a[0], *z = s->n_in > 1 ? a[1] : NULL, *w, flat[2];
    static const char *const ranks[4][4][3] = {
        [1][1] = {"j", "j", ""},     [1][2] = {"j", "jk", "k"},     [1][3] = {"j", "bjk", "bk"},
        [2][1] = {"ij", "j", "i"},   [2][2] = {"ij", "jk", "ik"},   [2][3] = {"ij", "bjk", "bik"},
        [3][1] = {"bij", "j", "bi"}, [3][2] = {"bij", "jk", "bik"}, [3][3] = {"bij", "bjk", "bik"}};
    switch ((int)s->op) {
    case OP_matmul:
    case OP_product_unreduced:
    case OP_dot:
        if (x->rank < 1 || x->rank > 3 || z->rank < 1 || z->rank > 3 ||
            (s->op == OP_dot && (x->rank > 2 || z->rank > 2)))
            return refuse(p, "ranks"), NULL;
        const char *const *r = ranks[x->rank][z->rank];
        return einsum(p, x, r[0], z, r[1], r[2]);
    case OP_batched: return einsum(p, x, "bij", z, "bjk", "bik");
    case OP_contract: {
        char as[MOST_RANK + 1], bs[MOST_RANK + 1], out[MOST_RANK + 1];
        return einsum(p, x, letters_of(s->low, as), z, letters_of(s->high, bs), letters_of(s->step, out));
    }
    case OP_crossed: return einsum(p, x, "ij", z, "kj", "ki");
    case OP_outer:
    case OP_vdot:
        if (s->op == OP_vdot && (x->parts == 2 || z->parts == 2))
            return refuse(p, "complex"), NULL;
        for (int k = 0; k < 2; k++) {
            flat[k] = *a[k];
            flat[k].rank = 1;
            flat[k].shape[0] = flat[k].size;
        }
        return s->op == OP_outer ? einsum(p, &flat[0], "i", &flat[1], "j", "ij")
                                 : einsum(p, &flat[0], "i", &flat[1], "i", "");
    case OP_correlate:
    case OP_convolve:
        if (x->rank != 1 || z->rank != 1 || x->size < z->size || z->size < 1 || !is_float(x->dtype) ||
            !is_float(z->dtype))
            return refuse(p, "vectors"), NULL;
        if (s->mode == SAME) { /* centred as in NumPy */
            windows same = {.size = x->size, .pad = z->size / 2, .dimension = 0, .rank = 1};
            w = mapped(x, x->dtype, 2, (int64_t[]){x->size, z->size}, 0, window_source, &same);
        } else
            w = windowed(p, x, z->size, s->mode, 0);
        if (!w)
            return NULL;
        if (s->op == OP_convolve)
            z = mapped(z, z->dtype, 1, z->shape, 0, reverse_source, z);
        return einsum(p, w, "sk", z, "k", "s");
    case OP_conv_many: return evaluate_conv(p, s, x, z);
    case OP_conv:
        if (x->rank != 3 || z->rank != 3 || x->shape[1] != z->shape[1] || x->shape[2] < z->shape[2] ||
            z->shape[2] < 1 || x->dtype != z->dtype || x->shape[1] < 1)
            return refuse(p, "conv"), NULL;
        w = windowed(p, x, z->shape[2], s->mode, 0);
        return w ? einsum(p, w, "ncsk", z, "ock", "nos") : NULL;
    default: { /* window_sum, window_max */
        if (x->rank < 1 || x->shape[x->rank - 1] < s->shape[0] || x->dtype == OLY_BOOL || is_complex(x->dtype) ||
            x->shape[x->rank - 1] < 1)
            return refuse(p, "window"), NULL;
        w = windowed(p, x, s->shape[0], s->mode, s->op == OP_window_max ? -1e6 : 0);
        if (!w)
            return NULL;
        if (s->op == OP_window_max && (x->t || biggest(x) > 1e5))
            return refuse(p, "slope"), NULL;
        statement sum = {.kind = OPERATION, .op = s->op == OP_window_max ? OP_max : OP_sum, .n_axes = 1, .axes = {-1}};
        array *y = evaluate_reduction(p, &sum, w);
        if (y && y->dtype != x->dtype)
            y = converted_array(p, y, x->dtype);
        return y;
    }
    }
}
