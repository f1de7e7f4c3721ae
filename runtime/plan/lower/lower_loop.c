/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops: the body is lowered into a block of its own. A carry has two or three buffers: the body reads one and
 * writes another, and the interpreter rotates them after every iteration, so nothing is copied. A carry that takes over
 * another's value has none of its own: those of the computed carry are more, so that the value stays untouched for as long as
 * someone holds it. Values from outside are read in place; an exchange that they need runs once, before the loop. */
#include "core/optimisation.h"
#include "plan/lower/lower.h"
#include "plan/lower/sink_past_loops.h"
#include "plan/stencil/stencil.h"
#include <string.h>

typedef struct carries {
    int *in, *out, *spare, *init;
    int *result; /* NULL: a carry's final value is in `in` */
    oly_layout *layout;
    oly_passed_carry *passed;
    int oldest;
} carries;

static int new_slot(oly_planner *p, oly_block *b, const oly_layout *l, size_t element, oly_slot_kind kind)
{
    oly_region r = oly_region_of_layout(l);
    int slot = oly_slot_new(p, &r, element);
    if (slot >= 0) {
        p->plan->slots[slot].kind = kind;
        p->plan->slots[slot].block = b;
    }
    return slot;
}

static oly_status bring_carries(oly_planner *p, oly_frame *f, const oly_node *n, oly_frame *body, carries *c)
{
    for (int k = 0; k < n->params.n_carry; k++) {
        oly_node *input = body->graph->inputs[1 + k];
        size_t element = oly_dtype_size(input->type.dtype);
        c->layout[k] = oly_node_layout(p, body, input);
        OLY_TRY(oly_is_written_over(p, body->graph, k, &oly_value_of(body, input)->written_over));
        if (oly_value_of(body, input)->written_over)
            OLY_TRY(oly_own_copy(p, f, n->in[k], &c->layout[k], &c->init[k]));
        else
            OLY_TRY(oly_materialise(p, f, n->in[k], &c->layout[k], &c->init[k]));
        c->in[k] = new_slot(p, f->block, &c->layout[k], element, OLY_SLOT_BOUND);
        if (c->in[k] < 0)
            return OLY_MEMORY;
        oly_value *v = oly_value_of(body, input);
        OLY_TRY(oly_set_layout(p, v, &c->layout[k]));
        v->slot = c->in[k];
        v->block = body->block;
    }
    return OLY_OK;
}

static oly_status bring_counter(oly_planner *p, oly_frame *body, int *slot)
{
    oly_node *counter = body->graph->inputs[0];
    *slot = -1;
    if (counter->n_uses == 0)
        return OLY_OK;
    oly_value *v = oly_value_of(body, counter);
    OLY_TRY(oly_set_layout(p, v, &(oly_layout){.mesh = p->mesh}));
    v->block = body->outer->block;
    v->slot = *slot = new_slot(p, body->outer->block, v->layout, sizeof(int32_t), OLY_SLOT_SCRATCH);
    return *slot < 0 ? OLY_MEMORY : OLY_OK;
}

static oly_status settle_results(oly_planner *p, oly_frame *f, const oly_node *n, const carries *c)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_node *r = f->graph->nodes[k];
        if (oly_ops[r->op].lowering != OLY_LOWER_RESULT || r->in[0] != n)
            continue;
        oly_value *v = oly_value_of(f, r);
        OLY_TRY(oly_set_layout(p, v, &c->layout[r->params.dimension]));
        v->slot = (c->result ? c->result : c->in)[r->params.dimension];
        v->block = f->block;
        if (!c->result && n->params.upper <= n->params.lower)
            p->plan->slots[v->slot].shared = true; /* no iterations: the result is the initial value */
        oly_slot_use(p, v->slot);
        OLY_TRY(oly_reduce_accumulated(p, f, r, f->bodies[n->index]));
    }
    return OLY_OK;
}

/* If a condition ends the loop, it is not known beforehand which buffer holds a carry's final value: it is copied
 * out. */
static oly_status add_result_slots(oly_planner *p, oly_frame *f, const oly_node *n, carries *c)
{
    c->result = OLY_PLAN_NEW(p, int, n->params.n_carry);
    OLY_PLAN_CHECK(c->result);
    for (int k = 0; k < n->params.n_carry; k++) {
        c->result[k] = new_slot(p, f->block, &c->layout[k], oly_dtype_size(n->in[k]->type.dtype), OLY_SLOT_SCRATCH);
        if (c->result[k] < 0)
            return OLY_MEMORY;
    }
    return OLY_OK;
}

static bool written_over(oly_frame *body, int carry)
{
    return oly_value_of(body, body->graph->inputs[1 + carry])->written_over;
}

/* The carry whose value before an iteration carry k has after it, in the same layout; -1: it has one of its own. */
static int taken_over(oly_frame *body, const carries *c, int n_carry, int k)
{
    const oly_node *made = body->graph->outputs[k];
    for (int j = 0; j < n_carry && oly_enabled(OLY_OPTIMISATION_PASSED_CARRIES); j++)
        if (j != k && made == body->graph->inputs[1 + j] && !written_over(body, j) && !written_over(body, k) &&
            oly_value_of(body, made)->slot == c->in[j] && oly_layout_equal(&c->layout[j], &c->layout[k]))
            return j;
    return -1;
}

/* Finds carries that take over others. A chain ends at a carry that is computed: one that closes is copied, as are values that
 * a counted loop's last iterations would leave in the buffers of its operands. */
static void find_passed_carries(oly_frame *body, carries *c, const oly_node *n)
{
    int n_carry = n->params.n_carry;
    for (int k = 0; k < n_carry; k++)
        c->passed[k] = (oly_passed_carry){.from = taken_over(body, c, n_carry, k), .root = k};
    for (int k = 0; k < n_carry; k++) {
        int root = k, age = 0;
        while (c->passed[root].from >= 0 && age <= n_carry) {
            root = c->passed[root].from;
            age++;
        }
        c->passed[k].root = root;
        c->passed[k].age = age;
    }
    for (int k = 0; k < n_carry; k++) {
        bool closes = c->passed[k].age > n_carry;
        bool few = !n->params.predicate && n->params.upper - n->params.lower <= c->passed[k].age;
        if (closes || (few && c->passed[k].age > 0))
            c->passed[k] = (oly_passed_carry){.from = -1, .root = k};
    }
}

/* Buffers of the carries that are taken over. */
static oly_status add_buffers(oly_planner *p, oly_frame *f, const oly_node *n, carries *c)
{
    int *more = OLY_PLAN_NEW(p, int, n->params.n_carry * n->params.n_carry + 1);
    OLY_PLAN_CHECK(more);
    for (int k = 0; k < n->params.n_carry; k++) {
        const oly_passed_carry *x = &c->passed[k];
        c->oldest = x->age > c->oldest ? x->age : c->oldest;
        for (oly_passed_carry *root = &c->passed[x->root]; root->n_more < x->age; root->n_more++) {
            int slot =
                new_slot(p, f->block, &c->layout[x->root], oly_dtype_size(n->in[x->root]->type.dtype), OLY_SLOT_POOL);
            if (slot < 0)
                return OLY_MEMORY;
            root->more_slot = more + n->params.n_carry * x->root;
            more[n->params.n_carry * x->root + root->n_more] = slot;
            oly_slot_use(p, slot);
        }
    }
    return OLY_OK;
}

static oly_status lower_general(oly_planner *p, oly_frame *f, oly_node *n)
{
    int n_carry = n->params.n_carry, counter;
    oly_frame *body = f->bodies[n->index];
    carries c = {OLY_PLAN_NEW(p, int, n_carry + 1),
                 OLY_PLAN_NEW(p, int, n_carry + 1),
                 OLY_PLAN_NEW(p, int, n_carry + 1),
                 OLY_PLAN_NEW(p, int, n_carry + 1),
                 NULL,
                 OLY_PLAN_NEW(p, oly_layout, n_carry + 1),
                 OLY_PLAN_NEW(p, oly_passed_carry, n_carry + 1),
                 0};
    OLY_PLAN_CHECK(c.in && c.out && c.spare && c.init && c.layout ? c.passed : NULL);
    body->block = oly_block_new(p);
    OLY_PLAN_CHECK(body->block);
    OLY_TRY(bring_carries(p, f, n, body, &c));
    OLY_TRY(bring_counter(p, body, &counter));
    OLY_TRY(oly_find_accumulators(p, f, n, body));
    body->block->begin = p->next_number;
    OLY_TRY(oly_lower_frame(p, body));
    find_passed_carries(body, &c, n);
    OLY_TRY(add_buffers(p, f, n, &c));
    for (int k = 0; k < n_carry; k++) {
        oly_value *made = oly_value_of(body, body->graph->outputs[k]);
        if (c.passed[k].from >= 0) {
            c.out[k] = c.spare[k] = -1; /* set below, when the computed carry has its own */
        } else if (made->slot == c.in[k] && written_over(body, k)) {
            c.out[k] = c.spare[k] = c.in[k];
            /* also holds the result; what an earlier loop left is in that loop's memory */
            if (p->plan->slots[c.init[k]].kind == OLY_SLOT_SCRATCH)
                p->plan->slots[c.init[k]].kind = OLY_SLOT_POOL;
        } else {
            c.spare[k] = new_slot(p, f->block, &c.layout[k], oly_dtype_size(n->in[k]->type.dtype), OLY_SLOT_POOL);
            if (c.spare[k] < 0)
                return OLY_MEMORY;
            OLY_TRY(oly_copy_value(p, body, body->graph->outputs[k], &c.layout[k], &c.out[k]));
            p->plan->slots[c.out[k]].kind = OLY_SLOT_POOL; /* never bound: the body may not take over a loop's slot */
        }
        oly_slot_use(p, c.init[k]);
        oly_slot_use(p, c.spare[k]);
        oly_slot_use(p, c.in[k]);
    }
    for (int k = 0; k < n_carry; k++)
        if (c.passed[k].from >= 0) {
            c.out[k] = c.out[c.passed[k].root];
            c.spare[k] = c.spare[c.passed[k].root];
        }
    oly_slot_use(p, counter);
    for (int k = 0; k < body->n_rows; k++)
        oly_slot_use(p, body->rows[k].of);
    body->block->end = p->next_number;
    if (n->params.predicate)
        OLY_TRY(add_result_slots(p, f, n, &c));
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_LOOP, n, n->params.predicate ? "while" : "loop");
    OLY_PLAN_CHECK(s);
    s->loop.predicate = n->params.predicate - 1;
    s->loop.result_slot = c.result;
    s->loop.count = n->params.upper > n->params.lower ? n->params.upper - n->params.lower : 0;
    s->loop.lower = n->params.lower;
    s->loop.body = body->block;
    s->loop.counter_slot = counter;
    s->loop.n_carry = n_carry;
    s->loop.in_slot = c.in;
    s->loop.out_slot = c.out;
    s->loop.spare_slot = c.spare;
    s->loop.init_slot = c.init;
    s->loop.passed = c.oldest > 0 ? c.passed : NULL;
    s->loop.oldest = c.oldest;
    s->loop.n_rows = body->n_rows;
    s->loop.rows = body->rows;
    return settle_results(p, f, n, &c);
}

oly_status oly_lower_loop(oly_planner *p, oly_frame *f, oly_node *n)
{
    bool done = false;
    if (!n->params.predicate)
        OLY_TRY(oly_lower_stencil(p, f, n, &done));
    if (!n->params.predicate && !done)
        OLY_TRY(oly_lower_time_tiling(p, f, n, &done));
    return done ? OLY_OK : lower_general(p, f, n);
}
