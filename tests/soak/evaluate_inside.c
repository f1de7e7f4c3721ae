/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of the program's own code inside functions (inside_functions.h). Called by evaluate_ops.c. */
#include "program.h"
#include "check_element.h"
#include "inside_functions.h"
#include <math.h>
#include <string.h>

static array *reversed(program *p, const array *a)
{
    array *y = new_array(a->dtype, a->rank, a->shape);
    if (p->dual)
        return refuse(p, "callbacks have no derivative"), NULL;
    for (int64_t i = 0; i < a->size; i++)
        memcpy(y->v + i * a->parts, a->v + (a->size - 1 - i) * a->parts, sizeof *a->v * (size_t)a->parts);
    y->error = a->error;
    finish_array(p, y);
    return y;
}

static array *numbered(program *p, const array *a)
{
    array *y = new_array(OLY_INT32, a->rank, a->shape);
    if (p->dual)
        return refuse(p, "callbacks have no derivative"), NULL;
    for (int64_t i = 0; i < a->size; i++)
        y->v[i] = (double)i;
    finish_array(p, y);
    return y;
}

static array *custom(program *p, const array *a)
{
    array *y = new_array(a->dtype, a->rank, a->shape);
    if (!is_float(a->dtype) || is_narrow(a->dtype))
        return refuse(p, "no custom derivative of it"), NULL;
    if (p->by_differences) /* which are those of its value, not of its own derivative */
        return refuse(p, "a derivative of its own among differences"), NULL;
    double *t = a->t ? new_tangent(y) : NULL;
    for (int64_t i = 0; i < a->size; i++) {
        double x = a->v[i];
        y->v[i] = x * x + x;
        if (a->error == 0 && !exact_in(a->dtype, x * x))
            refuse(p, "not exact");
        if (t)
            t[i] = a->t[i] * (2 * x + 5);
    }
    if (a->error > 0)
        y->error = 4 * a->error * (biggest(a) + 1) +
                   2 * element_epsilon(a->dtype) * (biggest(y) + biggest(a) * (biggest(a) + 1));
    finish_array(p, y);
    return y;
}

static bool kernel_takes(program *p, const array *a)
{
    return (a->dtype == OLY_INT32 || a->dtype == OLY_FLOAT32) || refuse(p, "no kernel for it");
}

/* The element at index[d] + step along d, as the edge has it. */
static double neighbour(const array *a, oly_edge edge, int64_t *index, int d, int step)
{
    int64_t n = a->shape[d], own = index[d], at = own + step;
    if ((at < 0 || at >= n) && edge == OLY_EDGE_ENDS)
        return INSIDE_MISSING;
    if ((at < 0 || at >= n) && edge == OLY_EDGE_ZERO)
        return 0;
    index[d] = edge == OLY_EDGE_PERIODIC ? (at + n) % n : at < 0 ? 0 : at >= n ? n - 1 : at;
    double x = a->v[ravel(a->rank, a->shape, index)];
    index[d] = own;
    return x;
}

static array *neighbours(program *p, const statement *s, const array *a)
{
    array *y = new_array(a->dtype, a->rank, a->shape);
    double lowest = 1;
    if (!kernel_takes(p, a) || p->dual || a->error > 0 || a->size == 0 || a->rank > INSIDE_MOST_RANK)
        return refuse(p, "no such kernel"), NULL;
    for (int64_t i = 0; i < a->size; i++) {
        int64_t index[MOST_RANK];
        unravel(a->rank, a->shape, i, index);
        lowest = fmin(lowest, lowest_bit(a->v[i]));
        for (int d = 0; d < a->rank; d++)
            y->v[i] += neighbour(a, (oly_edge)s->k, index, d, -1) + 2 * neighbour(a, (oly_edge)s->k, index, d, 1);
    }
    if (!exact_sum(a->dtype, 3 * MOST_RANK * (biggest(a) + INSIDE_MISSING), lowest))
        return refuse(p, "not exact"), NULL;
    finish_array(p, y);
    return y;
}

array *evaluate_inside(program *p, const statement *s, array *const *a)
{
    statement plain = *s;
    switch ((int)s->op) {
    case OP_reversed: return reversed(p, a[0]);
    case OP_numbered: return numbered(p, a[0]);
    case OP_custom: return custom(p, a[0]);
    case OP_neighbours: return neighbours(p, s, a[0]);
    case OP_product: break;
    default: return refuse(p, "itself"), NULL;
    }
    if (!kernel_takes(p, a[0]) || a[0]->dtype != a[1]->dtype || a[0]->rank != 2 || a[1]->rank != 2)
        return refuse(p, "no such kernel"), NULL;
    plain.op = OP_matmul;
    return evaluate_product(p, &plain, a);
}
