/* SPDX-License-Identifier: BSD-3-Clause */
/* Sinks reductions past loops: if every iteration adds a reduction over devices to a carry and does nothing else with
 * it, each device adds up its own partial results, and one reduction follows the loop instead of one in every
 * iteration. Gradients of weights over time steps, small batches or filters are such sums: carry = 0; N times:
 * carry += sum over devices of g.
 *
 * Only carries that start from zero, which every device may start from. lower_loop.c calls this before and after it
 * lowers a body; for sink_through_groups.c the carry is one more deferred value. Decided by the graph and layouts
 * alone, so that sums have the same order on every layout of ranks. */
#include "plan/lower/sink_past_loops.h"
#include "core/optimisation.h"

struct oly_accumulator {
    const oly_node *input, *output; /* of the body; NULL: not such a carry */
    oly_deferred off;               /* the reduction that its partial results need, once known */
};

static bool is_zero(const oly_node *n)
{
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        n = n->in[0];
    return oly_is_constant(n) && n->params.value.i == 0 && n->params.imaginary == 0;
}

/* The only node that reads n; NULL: none, or several. */
static const oly_node *only_reader(const oly_graph *g, const oly_node *n)
{
    for (int k = n->index + 1; n->n_uses == 1 && k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            if (g->nodes[k]->in[j] == n)
                return g->nodes[k];
    return NULL;
}

/* Is the output linear in the input, through elementwise operations whose values have no other reader? */
static bool is_added_to(const oly_graph *g, const oly_node *input, const oly_node *output)
{
    enum { LONGEST = 8 };
    const oly_node *n = input;
    for (int k = 0; k < LONGEST && n != output; k++) {
        const oly_node *reader = only_reader(g, n);
        if (!reader || oly_ops[reader->op].lowering != OLY_LOWER_TILE || reader->n_in > 2 ||
            !oly_is_linear_in(reader, reader->in[0] == n, reader->n_in == 2 && reader->in[1] == n))
            return false;
        n = reader;
    }
    return n == output && n != input && n->n_uses == 1;
}

/* Partial results are reduced in place: only one result may read them. */
static bool is_taken_once(const oly_graph *g, const oly_node *loop, int carry)
{
    int n = 0;
    for (int k = loop->index + 1; k < g->n_nodes; k++)
        n += oly_ops[g->nodes[k]->op].lowering == OLY_LOWER_RESULT && g->nodes[k]->in[0] == loop &&
             g->nodes[k]->params.dimension == carry;
    return n <= 1;
}

oly_status oly_find_accumulators(oly_planner *p, const oly_frame *f, const oly_node *loop, oly_frame *body)
{
    const oly_graph *g = body->graph;
    body->accumulators = OLY_PLAN_NEW(p, struct oly_accumulator, loop->params.n_carry + 1);
    OLY_PLAN_CHECK(body->accumulators);
    for (int k = 0; k < loop->params.n_carry; k++) {
        const oly_node *input = g->inputs[1 + k], *output = g->outputs[k];
        if (oly_enabled(OLY_OPTIMISATION_LOOP_ACCUMULATION) && input->n_uses == 1 && input->type.dtype != OLY_BOOL &&
            is_zero(loop->in[k]) && k != loop->params.predicate - 1 && is_added_to(g, input, output) &&
            is_taken_once(f->graph, loop, k))
            body->accumulators[k] = (struct oly_accumulator){.input = input, .output = output};
    }
    return OLY_OK;
}

static struct oly_accumulator *find(const oly_frame *f, const oly_node *input)
{
    int n = f->accumulators ? f->loop->params.n_carry : 0;
    for (int k = 0; k < n; k++)
        if (f->accumulators[k].input == input && !f->accumulators[k].off.any)
            return &f->accumulators[k];
    return NULL;
}

bool oly_accumulates(const oly_frame *f, const oly_node *input)
{
    return find(f, input) != NULL;
}

bool oly_accumulates_in(const oly_frame *f, const oly_node *input, const oly_node *output)
{
    const struct oly_accumulator *a = find(f, input);
    return a && a->output == output;
}

void oly_accumulate(oly_frame *f, const oly_node *input, const oly_deferred *off)
{
    struct oly_accumulator *a = find(f, input);
    a->off = *off;
    a->off.any = true;
}

oly_status oly_reduce_accumulated(oly_planner *p, oly_frame *f, oly_node *result, const oly_frame *body)
{
    const oly_deferred *off = &body->accumulators[result->params.dimension].off;
    if (!off->any || result->n_uses == 0)
        return OLY_OK;
    return oly_defer_reduction(p, f, result, &off->rule, &off->axes);
}
