/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions as units: products over features, whose batch and positions are split as the operand's, and whose result
 * features as the kernel's. Taps are never split by choice. See chooser.h. */
#include "graph/factors.h"
#include "plan/choose/chooser.h"
#include "plan/partition/cut_window.h"
#include <string.h>

bool oly_is_convolution(const oly_node *n)
{
    const oly_sliding_window *w = n->params.window;
    if (oly_ops[n->op].lowering != OLY_LOWER_WINDOW || n->n_in != 2 || w->groups > 1 || w->batch_groups > 1)
        return false;
    for (int d = 0; d < w->rank; d++)
        if (w->base_dilation[d] > 1)
            return false;
    return true;
}

/* The dimensions of operand and kernel as those of the result. */
static oly_status read_dimensions(oly_chooser *c, oly_unit *u)
{
    oly_contraction_dims *dims = OLY_ARENA_NEW(c->arena, oly_contraction_dims, 1);
    oly_contraction *product = OLY_ARENA_NEW(c->arena, oly_contraction, 1);
    OLY_PLAN_CHECK(dims ? product : NULL);
    for (int e = 0; e < OLY_MAX_RANK; e++) {
        dims->result[0][e] = e;
        dims->result[1][e] = -1;
    }
    dims->result[0][1] = -1;
    dims->result[1][0] = 1;
    product->n_contract = 1;
    product->contract[0][0] = product->contract[1][0] = 1;
    u->dims = dims;
    u->product = product;
    return OLY_OK;
}

oly_status oly_convolution_unit(oly_chooser *c, oly_unit *u, const oly_cuts *placed)
{
    const oly_node *n = u->node;
    const oly_type *kernel = &n->in[1]->type;
    oly_layout operand[2], out = oly_cuts_layout(c, &n->type, u->greedy.wanted), taps;
    double inner = 1;
    OLY_TRY(read_dimensions(c, u));
    for (int o = 0; o < 2; o++)
        operand[o] = oly_cuts_layout(c, &n->in[o]->type, placed[o]);
    oly_cut_convolution(c->p, u->node, operand, &out, &taps);
    u->greedy.work = oly_layout_cuts(&out);
    u->greedy.summed = oly_cuts_of(&taps.split[1].axes, 1);
    for (int d = 1; d < kernel->rank; d++) {
        inner *= (double)kernel->shape[d];
        u->trusted = u->trusted && (d == 1 || taps.split[d].parts == 1);
    }
    oly_settle_sum(c, u, &u->greedy);
    u->work = oly_cost_gemm(n->type.dtype, (double)oly_type_size(&n->type) * inner);
    return OLY_OK;
}

void oly_add_margins(oly_chooser *c, const oly_unit *u, const oly_decision *d, oly_cost_sum *cost)
{
    const oly_sliding_window *w = u->node->params.window;
    oly_axis_list axes[OLY_MAX_RANK];
    if (oly_ops[u->node->op].lowering != OLY_LOWER_WINDOW || !d->work)
        return;
    const oly_type *x = &u->node->in[0]->type;
    oly_cuts_axes(c->mesh, d->work, axes, u->node->type.rank);
    oly_cuts over = 0;
    double parts = oly_cuts_parts(c->mesh, d->summed), bytes = 0;
    for (int e = 0; e < x->rank; e++)
        if (e != 1)
            parts *= oly_axis_list_parts(c->mesh, &axes[e]);
    for (int k = 0; k < w->rank; k++) {
        int e = x->rank - (int)w->rank + k, cut = oly_axis_list_parts(c->mesh, &axes[e]);
        double margin = (double)((w->size[k] - 1) * w->dilation[k] + 1 - w->stride[k]);
        if (cut == 1 || margin <= 0 || x->shape[e] == 0)
            continue;
        bytes += margin * (double)oly_type_size(x) / (double)x->shape[e] * (cut - 1) * c->mesh->n_devices / parts;
        for (int j = 0; j < axes[e].n; j++)
            over |= (oly_cuts)1 << (8 * axes[e].axis[j]);
    }
    if (over)
        oly_add_transfer(c, bytes * (double)oly_dtype_size(x->dtype), over, 1, cost);
}
