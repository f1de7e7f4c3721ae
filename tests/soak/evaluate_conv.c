/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions of several dimensions by plain loops: x [batch, features, space...], kernels [out, features / groups, space...]; strides
 * are `low`, dilations of x `high`, of the kernels `step`, groups `k`. Called by evaluate_reduce.c. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

typedef struct sliding {
    const statement *s;
    const array *x, *z;
    int space;
    int64_t places[MOST_RANK], pad[MOST_RANK];
} sliding;

static bool find_places(sliding *w)
{
    for (int d = 0; d < w->space; d++) {
        int64_t size = w->x->shape[2 + d], n = w->z->shape[2 + d], stride = w->s->low[d];
        int64_t wide = size ? (size - 1) * w->s->high[d] + 1 : 0, reach = n ? (n - 1) * w->s->step[d] + 1 : 0;
        if (size < 1 || n < 1 || stride < 1 || w->s->high[d] < 1 || w->s->step[d] < 1)
            return false;
        if (w->s->mode == SAME) {
            int64_t outside, places = (wide + stride - 1) / stride;
            if (w->s->high[d] != 1)
                return false; /* einsum has no name for it */
            outside = (places - 1) * stride + reach - wide;
            w->places[d] = places;
            w->pad[d] = outside > 0 ? outside / 2 : 0;
        } else {
            w->pad[d] = 0;
            w->places[d] = wide < reach ? 0 : (wide - reach) / stride + 1;
        }
        if (w->places[d] < 1)
            return false;
    }
    return true;
}

/* The element of x that tap `at` reads for `place`; -1: a zero. */
static int64_t seen(const sliding *w, int64_t batch, int64_t feature, const int64_t *place, const int64_t *tap)
{
    int64_t index[MOST_RANK] = {batch, feature};
    for (int d = 0; d < w->space; d++) {
        int64_t at = place[d] * w->s->low[d] + tap[d] * w->s->step[d] - w->pad[d];
        if (at < 0 || at % w->s->high[d] != 0 || at / w->s->high[d] >= w->x->shape[2 + d])
            return -1;
        index[2 + d] = at / w->s->high[d];
    }
    return ravel(w->x->rank, w->x->shape, index);
}

array *evaluate_conv(program *p, const statement *s, const array *x, const array *z)
{
    sliding w = {s, x, z, x->rank - 2, {0}, {0}};
    int64_t shape[MOST_RANK], to[MOST_RANK], from[MOST_RANK];
    int groups = s->k;
    if (x->rank < 3 || z->rank != x->rank || x->dtype != z->dtype || !is_float(x->dtype) || groups < 1 ||
        x->shape[1] % groups != 0 || z->shape[0] % groups != 0 || z->shape[1] * groups != x->shape[1] ||
        x->shape[0] < 1 || x->shape[1] < 1 || z->shape[0] < 1 || !find_places(&w))
        return refuse(p, "conv"), NULL;
    shape[0] = x->shape[0];
    shape[1] = z->shape[0];
    memcpy(shape + 2, w.places, sizeof *shape * (size_t)w.space);
    int64_t terms = z->size / z->shape[0];
    p->work += elements_of(x->rank, shape) * terms;
    if (elements_of(x->rank, shape) > 5 * p->most_elements || p->work > p->most_work)
        return refuse(p, "too much work"), NULL;
    array *y = new_array(x->dtype, x->rank, shape);
    double *t = x->t || z->t ? new_tangent(y) : NULL, low_x = INFINITY, low_z = INFINITY;
    for (int64_t i = 0; i < x->size; i++)
        low_x = fmin(low_x, lowest_bit(x->v[i]));
    for (int64_t i = 0; i < z->size; i++)
        low_z = fmin(low_z, lowest_bit(z->v[i]));
    for (int64_t i = 0; i < y->size; i++) {
        unravel(y->rank, shape, i, to);
        double magnitude = 0;
        int64_t first = to[1] / (z->shape[0] / groups) * z->shape[1];
        for (int64_t j = 0; j < terms; j++) {
            int64_t at = to[1] * terms + j;
            unravel(z->rank, z->shape, at, from);
            int64_t k = seen(&w, to[0], first + from[1], to + 2, from + 2);
            if (k < 0)
                continue;
            y->v[i] += x->v[k] * z->v[at];
            magnitude += fabs(x->v[k] * z->v[at]);
            if (t)
                t[i] += (x->t ? x->t[k] * z->v[at] : 0) + (z->t ? z->t[at] * x->v[k] : 0);
        }
        if (x->error == 0 && z->error == 0 && !exact_sum(x->dtype, magnitude, low_x * low_z))
            refuse(p, "not exact");
    }
    if (x->error > 0 || z->error > 0)
        y->error = 2 * (double)terms * (x->error * (biggest(z) + z->error) + z->error * biggest(x)) +
                   ((double)terms * 0x1p-23 + 2 * element_epsilon(x->dtype)) * biggest(x) * biggest(z) * (double)terms;
    finish_array(p, y);
    return y;
}
