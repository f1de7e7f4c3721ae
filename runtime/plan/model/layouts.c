/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts of values: of the memory they are in, derived through a view, or given by propagation. Called by the passes
 * that choose layouts and by lowering. */
#include "plan/model/planner.h"
#include "graph/view.h"

/* A view whose node fixes its placement keeps it along the axes it fixes. */
static void pin(const oly_node *n, const oly_value *v, oly_layout *l)
{
    for (int d = 0; d < l->rank; d++) {
        bool settled = d < n->params.sharding->spec.n_dims && n->params.sharding->spec.dim[d].n > 0;
        for (int k = 0; k < l->split[d].axes.n; k++)
            settled = settled || (v->closed >> l->split[d].axes.axis[k] & 1);
        if (settled)
            l->split[d] = oly_split_canonical(l->mesh, &v->axes[d], l->shape[d]);
    }
}

static bool view_layout(oly_frame *f, const oly_node *n, oly_layout *l)
{
    oly_layout in;
    oly_view_dim dims[OLY_MAX_RANK];
    if (!oly_natural_layout(f, n->in[0], &in))
        return false;
    *l = (oly_layout){.mesh = in.mesh, .rank = n->type.rank};
    for (int d = 0; d < n->type.rank; d++) {
        l->shape[d] = n->type.shape[d];
        l->split[d] = oly_split_whole(l->shape[d]);
    }
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++) {
        const oly_view_dim *v = &dims[d];
        if (v->from >= 0 && v->step > 0)
            l->split[d] = v->start == 0 && v->step == 1 && l->shape[d] == in.shape[v->from]
                              ? in.split[v->from]
                              : oly_split_sliced(&in.split[v->from], v->start, v->step);
        else if (v->from >= 0) /* cuts must ascend, so a reversed view cannot keep its operand's */
            l->split[d] = oly_split_canonical(in.mesh, &in.split[v->from].axes, in.shape[v->from]);
    }
    if (n->params.settled && oly_mesh_same_grid(n->params.sharding->mesh, l->mesh))
        pin(n, oly_value_of(f, n), l);
    return true;
}

bool oly_natural_layout(oly_frame *f, const oly_node *node, oly_layout *l)
{
    oly_node *outer = oly_captured(f, node);
    if (outer)
        return oly_natural_layout(f->outer, outer, l);
    oly_value *v = oly_value_of(f, node);
    if (v->layout) {
        *l = *v->layout;
        return true;
    }
    if (v->rolled)
        return oly_natural_layout(f, oly_looks_at(f, node), l);
    return oly_ops[node->op].lowering == OLY_LOWER_VIEW && view_layout(f, node, l);
}

oly_layout oly_axes_layout(oly_planner *p, const oly_node *node, const oly_axis_list *axes)
{
    oly_layout l = {.mesh = p->mesh, .rank = node->type.rank};
    for (int d = 0; d < l.rank; d++) {
        l.shape[d] = node->type.shape[d];
        l.split[d] = oly_split_canonical(p->mesh, &axes[d], l.shape[d]);
    }
    return l;
}

oly_layout oly_node_layout(oly_planner *p, oly_frame *f, const oly_node *node)
{
    return oly_axes_layout(p, node, oly_value_of(f, node)->axes);
}

oly_layout oly_operand_layout(oly_planner *p, oly_frame *f, const oly_node *n)
{
    oly_layout l;
    if (oly_natural_layout(f, n, &l) && l.mesh == p->mesh)
        return l;
    return oly_node_layout(p, f, n);
}

oly_layout oly_written_layout(oly_planner *p, oly_frame *f, const oly_node *n)
{
    return oly_is_result(f, n) ? oly_node_layout(p, f, n) : oly_operand_layout(p, f, n->in[0]);
}

oly_layout oly_place_layout(oly_planner *p, oly_frame *f, const oly_node *n)
{
    return oly_mesh_same_grid(n->params.sharding->mesh, p->mesh)
               ? oly_node_layout(p, f, n)
               : oly_layout_canonical(n->params.sharding, n->type.rank, n->type.shape);
}
