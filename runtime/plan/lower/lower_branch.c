/* SPDX-License-Identifier: BSD-3-Clause */
/* Branches: each graph is lowered into a block of its own, which ends by copying its results to slots that all
 * branches share. Values from outside are read in place; an exchange that they need runs before the branch. */
#include "plan/lower/lower.h"

/* The node that stands for result k; NULL: the result is not used. */
static oly_node *result_node(const oly_frame *f, const oly_node *n, int k)
{
    for (int j = n->index + 1; j < f->graph->n_nodes; j++) {
        oly_node *r = f->graph->nodes[j];
        if (oly_ops[r->op].lowering == OLY_LOWER_RESULT && r->in[0] == n && r->params.dimension == k)
            return r;
    }
    return NULL;
}

/* Brings the index, a number, to every device. */
static oly_status bring_index(oly_planner *p, oly_frame *f, oly_node *n, int *slot)
{
    oly_layout everywhere = {.mesh = p->mesh};
    OLY_TRY(oly_materialise(p, f, n->in[0], &everywhere, slot));
    return OLY_OK;
}

static oly_status make_slots(oly_planner *p, oly_frame *f, const oly_node *n, oly_node **results)
{
    for (int k = 0; k < n->params.branches[0]->n_outputs; k++) {
        results[k] = result_node(f, n, k);
        if (!results[k])
            continue;
        oly_value *v = oly_value_of(f, results[k]);
        oly_layout l = oly_node_layout(p, f, results[k]);
        oly_region r = oly_region_of_layout(&l);
        OLY_TRY(oly_set_layout(p, v, &l));
        v->slot = oly_slot_new(p, &r, oly_dtype_size(results[k]->type.dtype));
        if (v->slot < 0)
            return OLY_MEMORY;
        p->plan->slots[v->slot].block = v->block = f->block;
    }
    return OLY_OK;
}

static oly_status lower_one(oly_planner *p, oly_frame *f, oly_frame *body, oly_node *const *results)
{
    static const int64_t zeros[OLY_MAX_RANK], ones[OLY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    body->block = oly_block_new(p);
    OLY_PLAN_CHECK(body->block);
    OLY_TRY(oly_lower_frame(p, body));
    for (int k = 0; k < body->graph->n_outputs; k++)
        if (results[k]) {
            oly_value *v = oly_value_of(f, results[k]);
            OLY_TRY(oly_write_part(p, body, body->graph->outputs[k], results[k], v->slot, v->layout, zeros, ones));
        }
    body->block->end = p->next_number;
    return OLY_OK;
}

oly_status oly_lower_branch(oly_planner *p, oly_frame *f, oly_node *n)
{
    int n_blocks = 0, index;
    oly_node **results = OLY_PLAN_NEW(p, oly_node *, n->params.branches[0]->n_outputs + 1);
    oly_block **blocks = OLY_PLAN_NEW(p, oly_block *, n->params.n_branches);
    OLY_PLAN_CHECK(results ? blocks : NULL);
    OLY_TRY(bring_index(p, f, n, &index));
    OLY_TRY(make_slots(p, f, n, results));
    for (oly_frame *body = f->bodies[n->index]; body; body = body->next) {
        OLY_TRY(lower_one(p, f, body, results));
        blocks[n_blocks++] = body->block;
    }
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_BRANCH, n, "branch");
    OLY_PLAN_CHECK(s);
    s->branch.n = n_blocks;
    s->branch.index_slot = index;
    s->branch.blocks = blocks;
    oly_slot_use(p, index);
    for (int k = 0; k < n->params.branches[0]->n_outputs; k++)
        if (results[k])
            oly_slot_use(p, oly_value_of(f, results[k])->slot);
    return OLY_OK;
}
