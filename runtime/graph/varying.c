/* SPDX-License-Identifier: BSD-3-Clause */
/* Implicit pvary. See varying.h. */
#include "graph/varying.h"
#include <string.h>

oly_status oly_build_vary(oly_graph *g, oly_node *x, oly_mesh mesh, unsigned axes, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.mesh = mesh;
    for (int a = 0; a < mesh->n_axes; a++)
        if ((axes & ~x->type.varying) >> a & 1)
            p.over.axis[p.over.n++] = (uint8_t)a;
    *out = x;
    return p.over.n ? oly_graph_add(g, OLY_OP_pvary, 1, &x, &p, out) : OLY_OK;
}

oly_status oly_vary_operands(oly_graph *g, oly_op op, int n_in, oly_node *const **in, oly_node **aligned)
{
    unsigned all = 0, common = ~0u;
    oly_mesh mesh = NULL;
    if (n_in < 2 || oly_ops[op].lowering == OLY_LOWER_LOOP || oly_ops[op].lowering == OLY_LOWER_CUSTOM)
        return OLY_OK;
    for (int k = 0; k < n_in; k++) {
        const oly_type *t = &(*in)[k]->type;
        all |= t->varying;
        common &= t->varying;
        mesh = t->varying ? t->mesh : mesh;
    }
    if (all == common || all == 0)
        return OLY_OK;
    if (n_in > 8 && !(aligned = OLY_ARENA_NEW(&g->arena, oly_node *, n_in)))
        return oly_out_of_memory(sizeof *aligned * (size_t)n_in, "the operands of a node");
    for (int k = 0; k < n_in; k++)
        OLY_TRY(oly_build_vary(g, (*in)[k], mesh, all, &aligned[k]));
    *in = aligned;
    return OLY_OK;
}

oly_status oly_vary_outputs(int n_graphs, oly_graph *const *graphs)
{
    for (int j = 0; j < graphs[0]->n_outputs; j++) {
        unsigned all = 0;
        oly_mesh mesh = NULL;
        for (int k = 0; k < n_graphs; k++) {
            const oly_type *t = &graphs[k]->outputs[j]->type;
            all |= t->varying;
            mesh = t->varying ? t->mesh : mesh;
        }
        for (int k = 0; all && k < n_graphs; k++) {
            oly_node **out = &graphs[k]->outputs[j];
            (*out)->n_uses--;
            OLY_TRY(oly_build_vary(graphs[k], *out, mesh, all, out));
            (*out)->n_uses++;
        }
    }
    return OLY_OK;
}
