/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes as expressions for compositions. See expression.h. */
#include "graph/compose/expression.h"
#include <string.h>

static oly_node *keep(oly_expression *s, oly_status status, oly_node **node)
{
    if (status != OLY_OK)
        s->status = status;
    return status == OLY_OK ? *node : NULL;
}

static oly_node *add(oly_expression *s, oly_op op, int n_in, oly_node *const *in, const oly_params *params)
{
    oly_node *out = NULL;
    for (int k = 0; k < n_in; k++)
        if (!in[k])
            return NULL;
    if (s->status != OLY_OK)
        return NULL;
    return keep(s, oly_graph_add(s->g, op, n_in, in, params, &out), &out);
}

oly_node *oly_expression_unary(oly_expression *s, oly_op op, oly_node *x)
{
    return add(s, op, 1, &x, NULL);
}

/* Promotes and broadcasts the operands that are not NULL. */
static bool meet(oly_expression *s, int n_promoted, oly_node **promoted, int n, oly_node **all)
{
    for (int k = 0; k < n; k++)
        if (!all[k])
            return false;
    if (s->status == OLY_OK)
        s->status = oly_build_promoted(s->g, n_promoted, promoted);
    if (s->status == OLY_OK)
        s->status = oly_build_common_shape(s->g, n, all);
    return s->status == OLY_OK;
}

oly_node *oly_expression_binary(oly_expression *s, oly_op op, oly_node *x, oly_node *y)
{
    oly_node *both[2] = {x, y};
    return meet(s, 2, both, 2, both) ? add(s, op, 2, both, NULL) : NULL;
}

oly_node *oly_expression_select(oly_expression *s, oly_node *condition, oly_node *x, oly_node *y)
{
    oly_node *all[3] = {condition, x, y};
    for (int k = 0; k < 3; k++)
        if (!all[k])
            return NULL;
    if (s->status == OLY_OK)
        s->status = oly_build_promoted(s->g, 2, all + 1);
    if (s->status == OLY_OK)
        s->status = oly_build_choice(s->g, all);
    return add(s, OLY_OP_select, 3, all, NULL);
}

oly_node *oly_expression_number(oly_expression *s, double value)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = oly_default_float();
    p.weak = true;
    p.value.f = value;
    return add(s, OLY_OP_constant, 0, NULL, &p);
}

oly_node *oly_expression_whole(oly_expression *s, int64_t value)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = oly_default_int();
    p.weak = true;
    p.value.i = value;
    return add(s, OLY_OP_constant, 0, NULL, &p);
}

oly_node *oly_expression_convert(oly_expression *s, oly_node *x, oly_dtype dtype)
{
    oly_node *out = NULL;
    if (!x || s->status != OLY_OK)
        return NULL;
    return keep(s, oly_build_convert(s->g, x, dtype, x->type.weak, &out), &out);
}

oly_node *oly_expression_floating(oly_expression *s, oly_node *x)
{
    oly_node *out = NULL;
    return x && s->status == OLY_OK ? keep(s, oly_build_floating(s->g, x, &out), &out) : NULL;
}

oly_node *oly_expression_numeric(oly_expression *s, oly_node *x)
{
    return x && x->type.dtype == OLY_BOOL ? oly_expression_convert(s, x, OLY_INT32) : x;
}

static void promote_pair(oly_expression *s, oly_node **x, oly_node **y,
                         oly_node *(*further)(oly_expression *, oly_node *))
{
    oly_node *both[2] = {*x, *y};
    bool ready = *x && *y && s->status == OLY_OK;
    if (ready)
        s->status = oly_build_promoted(s->g, 2, both);
    *x = ready ? further(s, both[0]) : NULL;
    *y = ready ? further(s, both[1]) : NULL;
}

void oly_expression_floating_pair(oly_expression *s, oly_node **x, oly_node **y)
{
    promote_pair(s, x, y, oly_expression_floating);
}

void oly_expression_numeric_pair(oly_expression *s, oly_node **x, oly_node **y)
{
    promote_pair(s, x, y, oly_expression_numeric);
}

/* x < x: false everywhere. */
oly_node *oly_expression_all(oly_expression *s, oly_node *x, bool value)
{
    oly_node *never = oly_expression_binary(s, OLY_OP_lt, x, x);
    return value ? oly_expression_unary(s, OLY_OP_logical_not, never) : never;
}

oly_node *oly_expression_bits(oly_expression *s, oly_node *x, oly_dtype dtype)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    return x && x->type.dtype == dtype ? x : add(s, OLY_OP_bitcast, 1, &x, &p);
}
