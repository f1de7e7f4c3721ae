/* SPDX-License-Identifier: BSD-3-Clause */
/* Propagation: axes pass along equal factors (axis_rules.h), forwards, backwards and between operands, until nothing
 * changes. What the program fixed never changes; everything else is refined by appending axes. There are five rounds,
 * each with the rules of the rounds before (Shardy's priorities): elementwise operations, reshapes, transposes and loop
 * edges whose operands have no other use; the same with any number of uses; parallel factors of other operations; all
 * factors, those of broadcasts only backwards; everything. Values computed from constants propose nothing; at the end
 * they take the axes that all their users agree on.
 * Conflicts within an operation: if tensors propose different splits of one factor, the largest tensor wins, then the
 * one split into most parts, then the result, then the first; the others are moved to that layout. (JAX gathers all of
 * them: more moves, and every device computes everything.) If two dimensions of one tensor need the same axis, the one
 * whose source tensor is larger gets it, then, for elementwise operations, the more finely split one, then that of the
 * earlier operand; other tensors are unaffected. */
#include "plan/propagate/propagate.h"
#include "plan/partition/sort_split.h"
#include "plan/propagate/axis_rules.h"
#include <string.h>

enum { ROUNDS = 5 };

typedef struct proposal {
    oly_axis_list list;
    bool seen, closed; /* closed: truncated by a conflict, nothing may be appended */
    int64_t source;    /* elements of the largest tensor that proposed it */
    int tensor, parts; /* the tensor that proposed it, and the total number of its parts */
} proposal;

typedef struct walk {
    oly_planner *p;
    oly_flows flows;
    uint64_t *waiting; /* one bit per rule: to be applied (again) */
    int round;
    bool constants;        /* the final pass, in which constants propose too */
    const oly_flow *along; /* the rule being applied; NULL: the program's choice */
} walk;

static bool is_prefix(const oly_axis_list *a, const oly_axis_list *b)
{
    return a->n <= b->n && memcmp(a->axis, b->axis, a->n) == 0;
}

static bool uses(const oly_axis_list *l, int axis)
{
    for (int k = 0; k < l->n; k++)
        if (l->axis[k] == axis)
            return true;
    return false;
}

static void wake(walk *w, int flow)
{
    w->waiting[flow / 64] |= UINT64_C(1) << flow % 64;
}

/* -- refining one value -------------------------------------------------------------------------------------------- */

/* Explicit axes are where the type says; an unreduced sum may be reduced over its own axes in any dimension. */
static bool is_open(const oly_type *type, int axis)
{
    return !type->mesh || !(type->mesh->explicit_axes >> axis & 1) || type->unreduced >> axis & 1;
}

static bool may_append(const oly_value *v, const oly_type *type, int d, int axis)
{
    if (!is_open(type, axis) || (v->closed >> axis & 1 && !(v->open_dimensions >> d & 1)))
        return false;
    for (int e = 0; e < type->rank; e++)
        if (uses(&v->axes[e], axis))
            return false;
    return true;
}

/* Appends as much of the list as allowed. The only function that gives axes to a value. */
static bool refine(walk *w, oly_value *v, const oly_type *type, int number, int d, const oly_axis_list *list,
                   oly_reason reason)
{
    oly_axis_list *mine = &v->axes[d];
    if (list->n <= mine->n || !is_prefix(mine, list) || type->shape[d] <= 1)
        return false;
    uint8_t had = mine->n;
    while (mine->n < list->n && may_append(v, type, d, list->axis[mine->n])) {
        mine->axis[mine->n] = list->axis[mine->n];
        mine->n++;
    }
    if (mine->n == had)
        return false;
    oly_note_reason(w->p, v, d, reason);
    for (int k = w->flows.first ? w->flows.first[number] : 0; w->flows.first && k < w->flows.first[number + 1]; k++)
        if (&w->flows.flows[w->flows.of_value[k]] != w->along)
            wake(w, w->flows.of_value[k]);
    return true;
}

/* -- what the tensors of a rule propose ---------------------------------------------------------------------------- */

/* A tensor that proposes axes: the largest one wins, then the one split most, then the result. */
typedef struct proposer {
    int tensor;
    int64_t elements;
    int parts;
    bool result;
} proposer;

static void propose(proposal *p, const oly_axis_list *list, const proposer *by)
{
    if (list->n == 0)
        return;
    if (!p->seen || (is_prefix(&p->list, list) && !p->closed)) {
        if (!p->seen || list->n > p->list.n) {
            p->list = *list;
            p->tensor = by->tensor;
            p->parts = by->parts;
        }
        p->source = by->elements > p->source ? by->elements : p->source;
        p->seen = true;
    } else if (!is_prefix(list, &p->list)) {
        bool more_parts = by->parts > p->parts || (by->parts == p->parts && by->result);
        if (by->elements > p->source || (by->elements == p->source && more_parts)) {
            p->list = *list;
            p->tensor = by->tensor;
            p->parts = by->parts;
            p->source = by->elements;
        }
        p->closed = true;
    }
}

/* Distributes the axes of a dimension over its factors, major first; a factor takes axes while they divide it. */
static void propose_dim(oly_mesh mesh, const oly_flow *f, const uint8_t *factors, int n, const oly_axis_list *axes,
                        const proposer *by, proposal *proposals)
{
    int next = 0;
    if (n == 1) {
        propose(&proposals[factors[0]], axes, by);
        return;
    }
    for (int k = 0; k < n && next < axes->n; k++) {
        oly_axis_list taken = {0};
        int64_t left = f->size[factors[k]];
        while (next < axes->n && left % mesh->size[axes->axis[next]] == 0 && left > 1) {
            left /= mesh->size[axes->axis[next]];
            taken.axis[taken.n++] = axes->axis[next++];
        }
        propose(&proposals[factors[k]], &taken, by);
        if (left > 1)
            break;
    }
}

static void propose_tensor(walk *w, const oly_flow *f, int tensor, proposal *proposals)
{
    const oly_flow_tensor *t = &f->tensors[tensor];
    const uint8_t *dims = t->dims;
    proposer by = {tensor, t->elements, 1, tensor == f->n_operands};
    for (int d = 0; d < t->type->rank; d++)
        by.parts *= oly_axis_list_parts(w->p->mesh, &t->value->axes[d]);
    for (int d = 0; d < t->type->rank; d++) {
        uint8_t same = (uint8_t)d;
        int n = dims ? *dims++ : 1;
        if (t->value->axes[d].n && n)
            propose_dim(w->p->mesh, f, dims ? dims : &same, n, &t->value->axes[d], &by, proposals);
        if (dims)
            dims += n;
    }
}

/* -- what a tensor gets -------------------------------------------------------------------------------------------- */

/* Does proposal a win an axis over b? */
static bool wins(oly_mesh mesh, const oly_flow *f, const proposal *a, const proposal *b)
{
    if (a->source != b->source)
        return a->source > b->source;
    int pa = oly_axis_list_parts(mesh, &a->list), pb = oly_axis_list_parts(mesh, &b->list);
    if (pa != pb && oly_ops[f->node->op].lowering == OLY_LOWER_TILE)
        return pa > pb;
    return a->tensor < b->tensor;
}

/* The axes of a dimension, from those of its factors, and the first proposal that adds to the existing ones. */
static const proposal *gather_dim(oly_mesh mesh, const oly_flow *f, const uint8_t *factors, int n,
                                  const proposal *proposals, uint8_t had, oly_axis_list *list)
{
    const proposal *first = NULL;
    for (int k = 0; k < n; k++) {
        const proposal *p = &proposals[factors[k]];
        int64_t left = f->size[factors[k]];
        for (int j = 0; j < p->list.n && list->n < OLY_MAX_RANK; j++) {
            int parts = mesh->size[p->list.axis[j]];
            if (k < n - 1 && left % parts != 0)
                return first; /* only the last factor may be split unevenly */
            left /= parts;
            list->axis[list->n++] = p->list.axis[j];
            if (list->n > had && !first)
                first = p;
        }
        if (left != 1) /* a minor factor may be split only if the major ones are split into single elements */
            break;
    }
    return first;
}

/* An edge equates values; the rule of a node equates dimensions. */
static oly_reason reason_of(const oly_flow *f, const proposal *by, bool contested)
{
    if (f->n_operands == f->n_tensors)
        return (oly_reason){.why = OLY_WHY_SAME, .node = f->node};
    return (oly_reason){.why = OLY_WHY_FACTOR,
                        .node = f->node,
                        .operand = by->tensor == f->n_operands ? f->node->n_in : by->tensor,
                        .conflict = by->closed || contested};
}

/* Does another dimension want one of the axes of dimension d? */
static bool is_contested(int rank, const oly_axis_list *list, const proposal *const *by, int d)
{
    for (int e = 0; e < rank; e++)
        for (int k = 0; e != d && by[e] && k < list[d].n; k++)
            if (uses(&list[e], list[d].axis[k]))
                return true;
    return false;
}

/* Refines the dimensions in the order of precedence; each gets what those before it have left. */
static bool refine_tensor(walk *w, const oly_flow *f, const oly_flow_tensor *t, const proposal *proposals)
{
    oly_mesh mesh = w->p->mesh;
    oly_axis_list list[OLY_MAX_RANK];
    const proposal *by[OLY_MAX_RANK];
    const uint8_t *dims = t->dims;
    int wanting = 0;
    bool changed = false;
    for (int d = 0; d < t->type->rank; d++) {
        uint8_t same = (uint8_t)d;
        int n = dims ? *dims++ : 1;
        list[d].n = 0;
        by[d] = gather_dim(mesh, f, dims ? dims : &same, n, proposals, t->value->axes[d].n, &list[d]);
        wanting += by[d] != NULL;
        if (dims)
            dims += n;
    }
    while (wanting-- > 0) {
        int best = -1;
        for (int d = 0; d < t->type->rank; d++)
            if (by[d] && (best < 0 || wins(mesh, f, by[d], by[best])))
                best = d;
        oly_reason reason = reason_of(f, by[best], wanting > 0 && is_contested(t->type->rank, list, by, best));
        changed = refine(w, t->value, t->type, t->number, best, &list[best], reason) || changed;
        by[best] = NULL;
    }
    return changed;
}

/* -- one rule ------------------------------------------------------------------------------------------------------ */

enum { FORWARD = 1, BACKWARD = 2 };

/* In which directions a factor passes axes on in this round: FORWARD those of operands, BACKWARD those of the
 * result. */
static unsigned direction_of(const walk *w, const oly_flow *f, int factor)
{
    unsigned both = FORWARD | BACKWARD;
    switch ((oly_flow_kind)f->kind) {
    case OLY_FLOW_THROUGH: return w->round >= 1 || f->single_use ? both : 0;
    case OLY_FLOW_BROADCAST: return w->round < 2 ? 0 : w->round < ROUNDS - 1 ? BACKWARD : both;
    case OLY_FLOW_FORWARD:
    case OLY_FLOW_OPERATION: break;
    }
    if (w->round >= (f->factor_kind[factor] == OLY_FACTOR_PARALLEL ? 2 : 3))
        return both;
    return f->kind == OLY_FLOW_FORWARD && (w->round == 1 || (w->round == 0 && f->single_use)) ? FORWARD : 0;
}

/* A factor that only operands have, and need whole, passes nothing on, neither to the result nor between operands. Nor
 * does a line that is gathered. */
static bool is_dropped(const walk *w, const oly_flow *f, int factor, const oly_axis_list *axes)
{
    const oly_flow_tensor *t = &f->tensors[f->n_operands];
    if (f->factor_kind[factor] != OLY_FACTOR_WHOLE || f->n_operands == f->n_tensors)
        return false;
    if (oly_gathers_line(f->node, w->p->mesh, axes))
        return true;
    const uint8_t *dims = t->dims;
    for (int d = 0; dims && d < t->type->rank; d++)
        for (int n = *dims++; n > 0; n--)
            if (*dims++ == factor)
                return false;
    return dims != NULL;
}

/* The proposals of all tensors that may propose, except `silent`. False: there are none. */
static bool collect(walk *w, const oly_flow *f, proposal *proposals, const oly_value *silent)
{
    proposal operands[OLY_MAX_FACTORS], result[OLY_MAX_FACTORS];
    unsigned any = 0;
    unsigned direction[OLY_MAX_FACTORS];
    bool one_way = false;
    for (int k = 0; k < f->n_factors; k++) {
        proposals[k] = (proposal){0};
        direction[k] = direction_of(w, f, k);
        any |= direction[k];
        one_way = one_way || direction[k] != (FORWARD | BACKWARD);
    }
    if (!any)
        return false;
    if (!one_way) {
        for (int t = 0; t < f->n_tensors; t++)
            if ((!f->tensors[t].value->silent || w->constants) && f->tensors[t].value != silent)
                propose_tensor(w, f, t, proposals);
    } else {
        memcpy(operands, proposals, sizeof *proposals * (size_t)f->n_factors);
        memcpy(result, proposals, sizeof *proposals * (size_t)f->n_factors);
        for (int t = 0; t < f->n_tensors; t++)
            if ((!f->tensors[t].value->silent || w->constants) && f->tensors[t].value != silent)
                propose_tensor(w, f, t, t == f->n_operands ? result : operands);
        for (int k = 0; k < f->n_factors; k++) {
            if (direction[k] & FORWARD)
                proposals[k] = operands[k];
            if (direction[k] & BACKWARD && result[k].seen)
                propose(&proposals[k], &result[k].list,
                        &(proposer){f->n_operands, result[k].source, result[k].parts, true});
        }
    }
    bool seen = false;
    for (int k = 0; k < f->n_factors; k++) {
        if (proposals[k].seen && f->late && is_dropped(w, f, k, &proposals[k].list))
            proposals[k] = (proposal){0};
        seen = seen || proposals[k].seen;
    }
    return seen;
}

static void apply(walk *w, const oly_flow *f)
{
    proposal proposals[OLY_MAX_FACTORS];
    if (!collect(w, f, proposals, NULL))
        return;
    w->along = f;
    for (int t = 0; t < f->n_tensors; t++)
        if (!f->tensors[t].value->silent)
            refine_tensor(w, f, &f->tensors[t], proposals);
    w->along = NULL;
}

/* -- all rules ----------------------------------------------------------------------------------------------------- */

/* Does the rule do something in this round that it did not do before? */
static bool begins(const oly_flow *f, int round)
{
    switch ((oly_flow_kind)f->kind) {
    case OLY_FLOW_THROUGH: return round == (f->single_use ? 0 : 1);
    case OLY_FLOW_BROADCAST: return round == 2 || round == ROUNDS - 1;
    case OLY_FLOW_FORWARD: return round == (f->single_use ? 0 : 1) || round == 2 || round == 3;
    case OLY_FLOW_OPERATION: break;
    }
    return round == 2 || (round == 3 && f->late);
}

/* Applies the waiting rules, in alternating order, until none is left. */
static void settle(walk *w)
{
    int words = (w->flows.n + 63) / 64;
    bool any = true;
    while (any) {
        any = false;
        for (int k = 0; k < words; k++)
            while (w->waiting[k]) {
                int bit = __builtin_ctzll(w->waiting[k]);
                w->waiting[k] &= ~(UINT64_C(1) << bit);
                apply(w, &w->flows.flows[64 * k + bit]);
                any = true;
            }
        for (int k = words - 1; k >= 0; k--)
            while (w->waiting[k]) {
                int bit = 63 - __builtin_clzll(w->waiting[k]);
                w->waiting[k] &= ~(UINT64_C(1) << bit);
                apply(w, &w->flows.flows[64 * k + bit]);
                any = true;
            }
    }
}

/* -- constants ----------------------------------------------------------------------------------------------------- */

/* Gives a value computed from constants the axes that all its users agree on. They come later in the program and are
 * settled by now. */
static void follow_users(walk *w, const oly_type *type, oly_value *v, int number)
{
    oly_axis_list wanted[OLY_MAX_RANK];
    oly_reason reasons[OLY_MAX_RANK];
    bool first = true;
    for (int k = w->flows.first[number]; k < w->flows.first[number + 1]; k++) {
        const oly_flow *f = &w->flows.flows[w->flows.of_value[k]];
        if (f->n_operands < f->n_tensors && f->tensors[f->n_operands].value == v)
            continue; /* the rule that produces it */
        proposal proposals[OLY_MAX_FACTORS];
        if (!collect(w, f, proposals, v))
            memset(proposals, 0, sizeof *proposals * (size_t)f->n_factors);
        for (int t = 0; t < f->n_tensors; t++) {
            const uint8_t *dims = f->tensors[t].dims;
            for (int d = 0; f->tensors[t].value == v && d < type->rank; d++) {
                uint8_t same = (uint8_t)d;
                int n = dims ? *dims++ : 1;
                oly_axis_list list = {0};
                const proposal *by = gather_dim(w->p->mesh, f, dims ? dims : &same, n, proposals, 0, &list);
                if (dims)
                    dims += n;
                if (first) {
                    wanted[d] = list;
                    reasons[d] = by ? reason_of(f, by, false) : (oly_reason){0};
                }
                for (int j = 0; j < wanted[d].n; j++)
                    if (j >= list.n || wanted[d].axis[j] != list.axis[j])
                        wanted[d].n = (uint8_t)j;
            }
            first = first && f->tensors[t].value != v;
        }
    }
    for (int d = 0; !first && d < type->rank; d++)
        refine(w, v, type, number, d, &wanted[d], reasons[d]);
}

/* From the last node to the first: the users of a constant may be constants. */
static void settle_constants(walk *w, oly_frame *f)
{
    for (int k = f->graph->n_nodes - 1; k >= 0; k--) {
        oly_node *n = f->graph->nodes[k];
        oly_value *v = oly_value_of(f, n);
        oly_graph_ahead(f->graph, k, -1);
        bool given = false;
        for (int j = 0; !f->loop && v->silent && j < f->graph->n_outputs; j++)
            given = given || f->graph->outputs[j] == n;
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            settle_constants(w, body);
        if (v->silent && !given && n->type.rank > 0)
            follow_users(w, &n->type, v, f->first_number + k);
    }
}

/* -- the whole pass ------------------------------------------------------------------------------------------------ */

static void fix_places(oly_planner *p, oly_frame *f)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_graph_ahead(f->graph, k, 1);
        oly_node *n = f->graph->nodes[k];
        oly_value *v = oly_value_of(f, n);
        bool typed = n->type.mesh && oly_mesh_same_grid(n->type.mesh, p->mesh);
        for (int d = 0; typed && !v->layout && d < n->type.rank; d++)
            if ((v->axes[d] = n->type.axes[d]).n)
                oly_note_reason(p, v, d, (oly_reason){.why = OLY_WHY_TYPE, .node = n});
        for (oly_frame *body = f->bodies[k]; body; body = body->next)
            fix_places(p, body);
        if ((!oly_is_placed(n) && !n->params.settled) || !oly_mesh_same_grid(n->params.sharding->mesh, p->mesh))
            continue;
        v->closed = oly_settles_all(&n->params) ? ~0u : n->params.settled;
        v->open_dimensions = (uint16_t)(v->closed == ~0u ? n->params.sharding->spec.open : 0);
        for (int d = 0; d < n->params.sharding->spec.n_dims && d < n->type.rank; d++) {
            if (v->open_dimensions >> d & 1)
                continue;
            v->axes[d] = oly_split_canonical(p->mesh, &n->params.sharding->spec.dim[d], n->type.shape[d]).axes;
            oly_note_reason(p, v, d, (oly_reason){.why = OLY_WHY_CONSTRAINT, .node = n});
        }
    }
}

static void fix_outputs(walk *w, oly_frame *f)
{
    for (int k = 0; w->p->request->outputs && k < f->graph->n_outputs; k++) {
        oly_sharding s = w->p->request->outputs[k] ? oly_on_common_mesh(w->p, w->p->request->outputs[k]) : NULL;
        oly_node *n = f->graph->outputs[k];
        for (int d = 0; s && oly_mesh_same_grid(s->mesh, w->p->mesh) && d < s->spec.n_dims && d < n->type.rank; d++)
            refine(w, oly_value_of(f, n), &n->type, 0, d, &s->spec.dim[d],
                   (oly_reason){.why = OLY_WHY_RESULT, .operand = k});
    }
}

static oly_status flow(walk *w, oly_frame *f)
{
    OLY_TRY(oly_flows_make(&w->flows, f));
    w->waiting = OLY_ARENA_NEW(&w->flows.arena, uint64_t, w->flows.n / 64 + 1);
    OLY_PLAN_CHECK(w->waiting);
    for (w->round = 0; w->round < ROUNDS; w->round++) {
        for (int k = 0; k < w->flows.n; k++)
            if (!w->flows.flows[k].constant && begins(&w->flows.flows[k], w->round))
                wake(w, k);
        settle(w);
    }
    w->constants = true;
    settle_constants(w, f);
    return OLY_OK;
}

oly_status oly_propagate(oly_planner *p, oly_frame *f)
{
    walk w = {.p = p};
    fix_places(p, f);
    if (p->mesh->n_devices == 1)
        return OLY_OK; /* nothing to split */
    fix_outputs(&w, f);
    oly_status st = flow(&w, f);
    oly_flows_free(&w.flows);
    return st;
}
