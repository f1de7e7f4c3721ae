/* Propagation: axes flow along equal factors, forwards and backwards, until nothing changes. What the user fixed never changes;
 * everything else is only refined by appending axes. Conflicts within an operation: tensors that want one factor cut in
 * different ways follow the largest, then the earliest of them, and the others are moved there (JAX gathers all of them: more
 * moves, and every device works everything); an axis wanted by two factors goes to the one whose source tensor is larger, then the more finely split one, then the
 * earlier operand (the order of Shardy's basic propagation). */
#include "plan/planner.h"
#include "graph/factors.h"
#include <string.h>

typedef struct proposal {
    oly_axis_list list;
    bool seen, closed; /* closed: a conflict has cut it, nothing may append */
    bool won;          /* an axis against another factor */
    int64_t source;    /* elements of the largest tensor that proposed it */
    int operand;
} proposal;

static bool is_prefix(const oly_axis_list *a, const oly_axis_list *b)
{
    return a->n <= b->n && memcmp(a->axis, b->axis, a->n) == 0;
}

static void propose(proposal *p, const oly_axis_list *list, int64_t source, int operand)
{
    if (list->n == 0)
        return;
    if (!p->seen || (is_prefix(&p->list, list) && !p->closed)) {
        if (!p->seen || list->n > p->list.n) {
            p->list = *list;
            p->operand = operand;
        }
        p->source = source > p->source ? source : p->source;
        p->seen = true;
    } else if (!is_prefix(list, &p->list)) {
        if (source > p->source) {
            p->list = *list;
            p->operand = operand;
            p->source = source;
        }
        p->closed = true;
    }
}

/* Hands the axes of a dimension to its factors, major first; each takes axes while they divide it. */
static void propose_dim(oly_mesh mesh, const oly_dim_factors *dim, const oly_factors *f, const oly_axis_list *axes,
                        proposal *proposals, int64_t source, int operand)
{
    int next = 0;
    if (dim->n == 1) {
        propose(&proposals[dim->factor[0]], axes, source, operand);
        return;
    }
    for (int k = 0; k < dim->n && next < axes->n; k++) {
        oly_axis_list taken = {0};
        int64_t left = f->size[dim->factor[k]];
        while (next < axes->n && left % mesh->size[axes->axis[next]] == 0 && left > 1) {
            left /= mesh->size[axes->axis[next]];
            taken.axis[taken.n++] = axes->axis[next++];
        }
        propose(&proposals[dim->factor[k]], &taken, source, operand);
        if (left > 1)
            break;
    }
}

static bool uses(const oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis)
            return true;
    return false;
}

static bool tensor_has(const oly_dim_factors *dims, int rank, int factor)
{
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < dims[d].n; k++)
            if (dims[d].factor[k] == factor)
                return true;
    return false;
}

static bool meet(const oly_factors *f, const oly_node *n, int a, int b)
{
    if (tensor_has(f->result, n->type.rank, a) && tensor_has(f->result, n->type.rank, b))
        return true;
    for (int k = 0; k < f->n_operands; k++)
        if (tensor_has(f->operand[k], n->in[k]->type.rank, a) && tensor_has(f->operand[k], n->in[k]->type.rank, b))
            return true;
    return false;
}

/* Does factor a win an axis against b? */
static bool wins(oly_mesh mesh, const proposal *a, const proposal *b)
{
    if (a->source != b->source)
        return a->source > b->source;
    int pa = oly_axis_list_parts(mesh, &a->list), pb = oly_axis_list_parts(mesh, &b->list);
    if (pa != pb)
        return pa > pb;
    return a->operand <= b->operand;
}

static void cut_before(oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis) {
            l->n = (uint8_t)k;
            return;
        }
}

static void settle_axes(oly_mesh mesh, const oly_factors *f, const oly_node *n, proposal *proposals)
{
    for (int axis = 0; axis < mesh->n_axes; axis++)
        for (int a = 0; a < f->n_factors; a++)
            for (int b = a + 1; b < f->n_factors; b++) {
                if (!uses(&proposals[a].list, axis) || !uses(&proposals[b].list, axis) || !meet(f, n, a, b))
                    continue;
                bool first = wins(mesh, &proposals[a], &proposals[b]);
                cut_before(first ? &proposals[b].list : &proposals[a].list, axis);
                proposals[first ? a : b].won = true;
            }
}

/* Explicit axes are where the type says; a sum that is not finished may be finished anywhere along its own. */
static bool is_open(const oly_type *type, int axis)
{
    return !type->mesh || !(type->mesh->explicit_axes >> axis & 1) || type->unreduced >> axis & 1;
}

static bool refine(oly_value *v, const oly_type *type, int d, const oly_axis_list *list)
{
    if (v->closed == ~0u || list->n <= v->axes[d].n || !is_prefix(&v->axes[d], list) || type->shape[d] <= 1)
        return false;
    for (int k = v->axes[d].n; k < list->n; k++)
        if (!is_open(type, list->axis[k]))
            return false;
    for (int k = v->axes[d].n; k < list->n; k++)
        for (int e = 0; e < type->rank; e++)
            if ((e != d && uses(&v->axes[e], list->axis[k])) || v->closed >> list->axis[k] & 1)
                return false;
    v->axes[d] = *list;
    return true;
}

static bool refine_tensor(oly_planner *p, const oly_node *n, oly_value *v, const oly_type *type,
                          const oly_dim_factors *dims, const oly_factors *f, const proposal *proposals)
{
    bool changed = false;
    for (int d = 0; d < type->rank; d++) {
        oly_axis_list list = {0};
        const proposal *last = NULL;
        for (int k = 0; k < dims[d].n; k++) {
            const oly_axis_list *l = &proposals[dims[d].factor[k]].list;
            for (int j = 0; j < l->n && list.n < OLY_MAX_RANK; j++)
                list.axis[list.n++] = l->axis[j];
            if (l->n)
                last = &proposals[dims[d].factor[k]];
            /* a minor factor may only be split when the major ones are split to single elements */
            if (oly_axis_list_parts(p->mesh, l) != f->size[dims[d].factor[k]])
                break;
        }
        if (!last || !refine(v, type, d, &list))
            continue;
        changed = true;
        oly_note_reason(p, v, d,
                        (oly_reason){.why = OLY_WHY_FACTOR,
                                     .node = n,
                                     .operand = last->operand == f->n_operands ? n->n_in : last->operand,
                                     .conflict = last->closed || last->won});
    }
    return changed;
}

static oly_status sweep_node(oly_planner *p, oly_frame *fr, oly_node *n, bool *changed)
{
    oly_factors f;
    proposal proposals[OLY_MAX_FACTORS] = {0};
    OLY_TRY(oly_factors_of(n, &f));
    if (f.n_factors == 0)
        return OLY_OK;
    for (int k = 0; k < f.n_operands; k++) {
        oly_value *v = oly_value_of(fr, n->in[k]);
        for (int d = 0; d < n->in[k]->type.rank; d++)
            propose_dim(p->mesh, &f.operand[k][d], &f, &v->axes[d], proposals, oly_type_size(&n->in[k]->type), k);
    }
    oly_value *result = oly_value_of(fr, n);
    for (int d = 0; d < n->type.rank; d++)
        propose_dim(p->mesh, &f.result[d], &f, &result->axes[d], proposals, oly_type_size(&n->type), f.n_operands);
    for (int k = 0; k < f.n_factors; k++) /* what only operands have, and need whole, has no say in the result */
        if (f.kind[k] == OLY_FACTOR_WHOLE && !tensor_has(f.result, n->type.rank, k))
            proposals[k] = (proposal){0};
    settle_axes(p->mesh, &f, n, proposals);
    for (int k = 0; k < f.n_operands; k++)
        *changed =
            refine_tensor(p, n, oly_value_of(fr, n->in[k]), &n->in[k]->type, f.operand[k], &f, proposals) || *changed;
    *changed = refine_tensor(p, n, result, &n->type, f.result, &f, proposals) || *changed;
    return OLY_OK;
}

/* One value inside and outside the loop or branch `around`. */
static void equalise(oly_planner *p, const oly_node *around, oly_value *a, oly_value *b, const oly_type *type,
                     bool *changed)
{
    for (int d = 0; d < type->rank; d++)
        for (int k = 0; k < 2; k++)
            if (refine(k ? b : a, type, d, k ? &a->axes[d] : &b->axes[d])) {
                oly_note_reason(p, k ? b : a, d, (oly_reason){.why = OLY_WHY_SAME, .node = around});
                *changed = true;
            }
}

static oly_status sweep(oly_planner *p, oly_frame *f, bool *changed);

/* A carry is one value: what goes in, the body's input and output, the result. Captures are the outer value itself. */
static oly_status sweep_loop(oly_planner *p, oly_frame *f, oly_node *n, bool *changed)
{
    oly_frame *body = f->bodies[n->index];
    for (int round = 0; round < 2; round++) {
        for (int c = 0; c < n->n_in; c++) {
            oly_value *inner = oly_value_of(body, body->graph->inputs[1 + c]);
            equalise(p, n, oly_value_of(f, n->in[c]), inner, &n->in[c]->type, changed);
            if (c < n->params.n_carry)
                equalise(p, n, inner, oly_value_of(body, body->graph->outputs[c]), &n->in[c]->type, changed);
        }
        OLY_TRY(sweep(p, body, changed));
    }
    return OLY_OK;
}

/* What a branch takes is the outer value itself. */
static oly_status sweep_branch(oly_planner *p, oly_frame *f, oly_node *n, bool *changed)
{
    for (oly_frame *body = f->bodies[n->index]; body; body = body->next)
        for (int round = 0; round < 2; round++) {
            for (int k = 0; k < body->graph->n_inputs; k++)
                equalise(p, n, oly_value_of(f, n->in[1 + k]), oly_value_of(body, body->graph->inputs[k]),
                         &n->in[1 + k]->type, changed);
            OLY_TRY(sweep(p, body, changed));
        }
    return OLY_OK;
}

/* What a branch gives, or what a loop's carry is. */
static void sweep_result(oly_planner *p, oly_frame *f, oly_node *n, bool *changed)
{
    bool branch = n->in[0]->params.n_branches > 0;
    int k = n->params.dimension;
    for (oly_frame *body = f->bodies[n->in[0]->index]; body; body = body->next)
        equalise(p, n->in[0], oly_value_of(f, n),
                 oly_value_of(body, branch ? body->graph->outputs[k] : body->graph->inputs[1 + k]), &n->type, changed);
}

static oly_status sweep_any(oly_planner *p, oly_frame *f, oly_node *n, bool *changed)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_LOOP: return sweep_loop(p, f, n, changed);
    case OLY_LOWER_BRANCH: return sweep_branch(p, f, n, changed);
    case OLY_LOWER_RESULT: sweep_result(p, f, n, changed); return OLY_OK;
    default: return sweep_node(p, f, n, changed);
    }
}

static oly_status sweep(oly_planner *p, oly_frame *f, bool *changed)
{
    for (int k = 0; k < f->graph->n_nodes; k++)
        OLY_TRY(sweep_any(p, f, f->graph->nodes[k], changed));
    for (int k = f->graph->n_nodes - 1; k >= 0; k--)
        OLY_TRY(sweep_any(p, f, f->graph->nodes[k], changed));
    return OLY_OK;
}

static void fix_places(oly_planner *p, oly_frame *f)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_node *n = f->graph->nodes[k];
        oly_value *v = oly_value_of(f, n);
        bool typed = n->type.mesh && oly_mesh_same_grid(n->type.mesh, p->mesh);
        for (int d = 0; typed && !v->has_layout && d < n->type.rank; d++)
            if ((v->axes[d] = n->type.axes[d]).n)
                oly_note_reason(p, v, d, (oly_reason){.why = OLY_WHY_TYPE, .node = n});
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            fix_places(p, body);
        if ((!oly_is_placed(n) && !n->params.settled) || !oly_mesh_same_grid(n->params.sharding->mesh, p->mesh))
            continue;
        v->closed = oly_settles_all(&n->params) ? ~0u : n->params.settled;
        for (int d = 0; d < n->params.sharding->spec.n_dims && d < n->type.rank; d++) {
            v->axes[d] = oly_split_canonical(p->mesh, &n->params.sharding->spec.dim[d], n->type.shape[d]).axes;
            oly_note_reason(p, v, d, (oly_reason){.why = OLY_WHY_CONSTRAINT, .node = n});
        }
    }
}

oly_status oly_propagate(oly_planner *p, oly_frame *f)
{
    fix_places(p, f);
    if (p->mesh->n_devices == 1)
        return OLY_OK; /* nothing to split */
    for (int k = 0; p->request->outputs && k < f->graph->n_outputs; k++) {
        oly_sharding s = p->request->outputs[k];
        oly_node *n = f->graph->outputs[k];
        for (int d = 0; s && s->mesh == p->mesh && d < s->spec.n_dims && d < n->type.rank; d++)
            if (refine(oly_value_of(f, n), &n->type, d, &s->spec.dim[d]))
                oly_note_reason(p, oly_value_of(f, n), d, (oly_reason){.why = OLY_WHY_RESULT, .operand = k});
    }
    bool changed = true;
    for (int round = 0; changed && round < 8; round++) {
        changed = false;
        OLY_TRY(sweep(p, f, &changed));
    }
    return OLY_OK;
}
