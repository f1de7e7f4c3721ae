/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing operations that read or write at positions known only at run time. Called by draw_operation.c. */
#include "program.h"
#include <string.h>

static int index_values(program *p, int rank, const int64_t *shape)
{
    for (int tries = 0; tries < 4; tries++) {
        int v = any_value(p);
        if (is_integer(p->dtype_of[v]) && value_of(p, v)->error == 0)
            return fitted(p, v, rank, shape);
    }
    int v = fitted(p, any_value(p), rank, shape);
    return v == NOTHING || value_of(p, v)->error > 0 ? NOTHING : converted(p, v, OLY_INT32);
}

int start_value(program *p)
{
    for (int tries = 0; tries < 6; tries++) {
        int v = any_value(p);
        if (p->rank_of[v] == 0 && is_integer(p->dtype_of[v]))
            return v;
    }
    statement s = operation_of(OP_full, 0, NULL);
    s.dtype = OLY_INT32;
    s.number = below(&p->choices, 5);
    return simple(p, s);
}

bool draw_indexing(program *p, statement *s)
{
    s->n_in = 2;
    s->in[0] = any_value(p);
    const array *a = value_of(p, s->in[0]);
    int64_t shape[MOST_RANK] = {0};
    if (a->rank == 0 && s->op != OP_one_hot)
        return false;
    switch ((int)s->op) {
    case OP_take:
        s->k = below(&p->choices, a->rank);
        s->mode = one_in(&p->choices, 2) ? WRAP : CLIP;
        shape[0] = 1 + below(&p->choices, 6);
        shape[1] = 1 + below(&p->choices, 3);
        s->in[1] = index_values(p, below(&p->choices, 3), shape);
        break;
    case OP_take_along:
        s->k = below(&p->choices, a->rank);
        s->mode = one_in(&p->choices, 2) ? WRAP : CLIP;
        memcpy(shape, a->shape, sizeof shape);
        shape[s->k] = 1 + below(&p->choices, 5);
        s->in[1] = index_values(p, a->rank, shape);
        break;
    case OP_at_get:
    case OP_at_set:
    case OP_at_add:
    case OP_at_max: {
        int rank = below(&p->choices, 3);
        shape[0] = 1 + below(&p->choices, 9);
        shape[1] = 1 + below(&p->choices, 3);
        s->in[1] = index_values(p, rank, shape);
        if (s->op == OP_at_get || s->in[1] == NOTHING)
            break;
        s->n_in = 3;
        if (one_in(&p->choices, 4)) {
            s->in[2] = NUMBER;
            s->number = below(&p->choices, 4);
            break;
        }
        if (rank + a->rank - 1 > MOST_RANK - 1)
            return false;
        memcpy(shape + rank, a->shape + 1, sizeof *shape * (size_t)(a->rank - 1));
        s->in[2] = converted(p, fitted(p, any_value(p), rank + a->rank - 1, shape), a->dtype);
        if (s->in[2] == NOTHING)
            return false;
        break;
    }
    case OP_dynamic_slice:
    case OP_dynamic_update: {
        int n = 1;
        s->rank = a->rank;
        for (int d = 0; d < a->rank; d++)
            s->shape[d] = a->shape[d] == 0 ? 0 : 1 + below(&p->choices, (int)a->shape[d]);
        if (s->op == OP_dynamic_update) {
            s->in[1] = converted(p, fitted(p, any_value(p), a->rank, s->shape), a->dtype);
            if (s->in[1] == NOTHING)
                return false;
            n = 2;
        }
        if (n + a->rank > MOST_IN)
            return false;
        for (int d = 0; d < a->rank; d++)
            if ((s->in[n++] = start_value(p)) == NOTHING)
                return false;
        s->n_in = n;
        return true;
    }
    case OP_segment_sum:
        s->in[1] = index_values(p, 1, a->shape);
        s->shape[0] = 1 + below(&p->choices, 7);
        break;
    case OP_one_hot:
        s->n_in = 1;
        s->dtype = any_dtype(p);
        s->shape[0] = 1 + below(&p->choices, 7);
        return true;
    case OP_searchsorted: {
        statement sort = operation_of(OP_sort, 1, s->in);
        if (a->rank != 1)
            return false;
        s->in[0] = simple(p, sort);
        s->in[1] = converted(p, any_value(p), a->dtype);
        s->mode = one_in(&p->choices, 2) ? RIGHT : LEFT;
        if (s->in[0] == NOTHING)
            return false;
        break;
    }
    default:
        s->n_in = 1;
        s->shape[0] = a->shape[a->rank - 1] ? 1 + below(&p->choices, (int)a->shape[a->rank - 1]) : 0;
        return true;
    }
    return s->in[1] != NOTHING;
}
