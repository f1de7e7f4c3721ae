/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear forms: is a value of a loop's body a sum of shifted parts of the carry with constant coefficients?
 * graph/linear.def lists the linear operations. The taps keep the order in which the program adds them. */
#include "plan/stencil/stencil.h"
#include "graph/view.h"
#include <string.h>

enum { DEEPEST = 64 }; /* operations on one path: bounds the recursion */

/* A constant, possibly broadcast. */
static bool number(const oly_node *n, double *value)
{
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        n = n->in[0];
    if (!oly_is_constant(n))
        return false;
    *value = oly_dtype_kind(n->type.dtype) == OLY_KIND_FLOAT ? n->params.value.f : (double)n->params.value.i;
    return oly_dtype_kind(n->type.dtype) != OLY_KIND_COMPLEX;
}

static bool add_tap(oly_linear *f, const int64_t *start, int rank, double coefficient)
{
    for (int t = 0; t < f->n; t++)
        if (memcmp(f->start[t], start, sizeof *start * (size_t)rank) == 0) {
            f->coefficient[t] += coefficient;
            return true;
        }
    if (f->n == OLY_STENCIL_TAPS)
        return false;
    memcpy(f->start[f->n], start, sizeof *start * (size_t)rank);
    f->coefficient[f->n++] = coefficient;
    return true;
}

/* Is v a part of the carry, or a cyclic shift of it (oly_is_cyclic_shift), or a combination of both? start: the
 * position of its element 0. */
static bool find_shift(const oly_node *carry, const oly_node *v, int64_t *start, oly_linear *f)
{
    bool rolled[OLY_MAX_RANK] = {false};
    int rank = carry->type.rank, depth = 0, d;
    int64_t by;
    memset(start, 0, sizeof *start * OLY_MAX_RANK);
    while (v != carry && depth++ < DEEPEST) {
        if (oly_is_cyclic_shift(v, &d, &by)) {
            int64_t size = v->type.shape[d];
            start[d] += by > size / 2 ? by - size : by;
            rolled[d] = true;
            v = v->in[0]->in[0];
        } else if (oly_is_part(v, 1)) {
            for (d = 0; d < rank; d++)
                start[d] += v->params.start[d];
            v = v->in[0];
        } else {
            return false;
        }
    }
    for (d = 0; d < rank; d++)
        f->wraps[d] = f->wraps[d] || rolled[d];
    return v == carry;
}

static bool accumulate(const oly_node *carry, const oly_node *v, double scale, int depth, oly_linear *f)
{
    int64_t start[OLY_MAX_RANK];
    double c;
    if (depth == DEEPEST)
        return false;
    if (find_shift(carry, v, start, f))
        return add_tap(f, start, v->type.rank, scale);
    switch (oly_linearity_of(v->op)) {
    case OLY_LINEAR_SUM:
        return accumulate(carry, v->in[0], scale, depth + 1, f) && accumulate(carry, v->in[1], scale, depth + 1, f);
    case OLY_LINEAR_DIFFERENCE:
        return accumulate(carry, v->in[0], scale, depth + 1, f) && accumulate(carry, v->in[1], -scale, depth + 1, f);
    case OLY_LINEAR_NEGATION: return accumulate(carry, v->in[0], -scale, depth + 1, f);
    case OLY_LINEAR_PRODUCT:
        if (number(v->in[0], &c))
            return accumulate(carry, v->in[1], scale * c, depth + 1, f);
        return number(v->in[1], &c) && accumulate(carry, v->in[0], scale * c, depth + 1, f);
    case OLY_LINEAR_QUOTIENT:
        return number(v->in[1], &c) && c != 0 && accumulate(carry, v->in[0], scale / c, depth + 1, f);
    case OLY_LINEAR_CAST:
    case OLY_NOT_LINEAR: break;
    }
    return false;
}

bool oly_linear_form(const oly_node *carry, const oly_node *value, oly_linear *form)
{
    memset(form, 0, sizeof *form);
    return accumulate(carry, value, 1, 0, form) && form->n > 0;
}
