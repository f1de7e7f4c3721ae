/* SPDX-License-Identifier: BSD-3-Clause */
/* C numbers as run-time operands. See numbers.h. */
#include "graph/numbers.h"
#include "core/element.h"
#include <string.h>

static oly_number *number_of(const oly_graph *g, const oly_node *x)
{
    oly_number *n = g->numbers;
    while (n && n->node != x)
        n = n->next;
    return n;
}

static oly_number *new_number(oly_graph *g, oly_node *node, int operand)
{
    oly_number *n = OLY_ARENA_NEW(&g->arena, oly_number, 1);
    if (!n)
        return NULL;
    n->node = node;
    n->operand = operand;
    n->next = g->numbers;
    g->numbers = n;
    return n;
}

oly_status oly_number_begin(oly_graph *g, oly_node *constant, int k)
{
    return new_number(g, constant, k) ? OLY_OK : oly_out_of_memory(sizeof(oly_number), "a number");
}

oly_status oly_number_converted(oly_graph *g, const oly_node *x, oly_node *made)
{
    const oly_number *from = number_of(g, x);
    if (!from || from->node == made)
        return OLY_OK;
    oly_number *n = new_number(g, made, from->operand);
    if (!n)
        return oly_out_of_memory(sizeof *n, "a number");
    n->conversions = from->conversions;
    if (n->conversions.n == OLY_MOST_CONVERSIONS) {
        oly_number_fix(g, x);
        return OLY_OK;
    }
    n->conversions.to[n->conversions.n].dtype = made->type.dtype;
    n->conversions.to[n->conversions.n++].weak = made->type.weak;
    return OLY_OK;
}

void oly_number_fix(oly_graph *g, const oly_node *x)
{
    const oly_number *n = x ? number_of(g, x) : NULL;
    if (n)
        g->fixed_numbers |= (uint64_t)1 << n->operand;
}

static bool is_fixed(const oly_graph *g, const oly_number *n)
{
    return g->fixed_numbers >> n->operand & 1;
}

oly_status oly_numbers_to_inputs(oly_graph *g, uint64_t *fixed, oly_number_made *made, void *context)
{
    for (const oly_number *n = g->numbers; n; n = n->next)
        if (n->node->type.mesh) /* sharded as an array without a mesh is not */
            g->fixed_numbers |= (uint64_t)1 << n->operand;
    for (const oly_number *n = g->numbers; n; n = n->next) {
        if (is_fixed(g, n) || n->node->n_uses == 0)
            continue;
        OLY_TRY(made(context, n));
        OLY_TRY(oly_graph_constant_to_input(g, n->node));
    }
    *fixed = g->fixed_numbers;
    g->numbers = NULL;
    return OLY_OK;
}

void oly_number_store(const oly_params *constant, void *element)
{
    size_t bytes = oly_dtype_size(constant->dtype);
    double parts[2] = {constant->value.f, constant->imaginary};
    float narrow[2] = {(float)parts[0], (float)parts[1]};
    bool truth = constant->value.i != 0;
    switch (constant->dtype) {
    case OLY_BOOL: memcpy(element, &truth, sizeof truth); break;
    case OLY_COMPLEX64: memcpy(element, narrow, sizeof narrow); break;
    case OLY_COMPLEX128: memcpy(element, parts, sizeof parts); break;
    default:
        if (oly_dtype_kind(constant->dtype) == OLY_KIND_FLOAT)
            oly_set_real(constant->dtype, element, constant->value.f);
        else
            memcpy(element, &constant->value.i, bytes); /* the low bytes */
        break;
    }
}
