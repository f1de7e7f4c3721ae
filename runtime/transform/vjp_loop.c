/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient of a loop: a loop backwards. Its body recomputes one iteration from its carries and pulls the cotangents back
 * through it; those carries are saved during the forward pass, as rows of stacks that the loop carries along. So an iteration's
 * intermediate values are never stored, and carries that the backward pass does not read are not saved.
 *
 * Where the stacks would be large (OLYMPUS_GRADIENT_MEMORY), only every k-th iteration's carries are saved; the backward pass then
 * takes k iterations at a time, which it first runs forward again, saving all of them. */
#include "graph/call.h"
#include "transform/rule.h"
#include "transform/gradient.h"
#include "graph/varying.h"
#include "core/option.h"
#include <math.h>
#include <string.h>

/* One iteration of the backward pass, and the facts about the loop. */
typedef struct backward {
    oly_rule *r;
    oly_node *loop;
    int n, m; /* carries, captures */
    int64_t lower, count;
    bool *active;  /* carries, captures: depend on the arguments of differentiation */
    bool *reached; /* carries: have a cotangent */
    bool *summed;  /* captures: get one */
    bool *used;    /* carries: the backward pass reads their value */
    bool *needed;  /* carries: needed to recompute those */
    bool *seen;    /* captures: the same */
    /* Inputs: the counter, carries, captures, cotangents of the carries that are reached. Outputs: those of the same carries
     * before, then those of the captures that get some. */
    oly_graph *step;
    oly_graph *body; /* as it was before stacks were added to the loop */
} backward;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if (b->r->status == OLY_OK)                                                                                    \
            b->r->status = (call);                                                                                     \
        if (b->r->status != OLY_OK)                                                                                    \
            return;                                                                                                    \
    } while (0)

static int count_of(int n, const bool *flags)
{
    int count = 0;
    for (int k = 0; k < n; k++)
        count += flags[k];
    return count;
}

/* -- which values matter --------------------------------------------------------------------------------------------- */

/* Carries become active through other carries: iterates until nothing changes. */
static void find_active(backward *b)
{
    const oly_graph *body = b->loop->params.body;
    bool *active = OLY_ARENA_NEW(&b->r->g->arena, bool, body->n_nodes + 1), changed = true;
    if (!active) {
        b->r->status = oly_out_of_memory((size_t)body->n_nodes, "the gradient of a loop");
        return;
    }
    for (int k = 0; k < b->n + b->m; k++)
        b->active[k] = b->r->wanted[k];
    while (changed) {
        changed = false;
        memset(active, 0, sizeof *active * (size_t)body->n_nodes);
        for (int k = 0; k < b->n + b->m; k++)
            active[body->inputs[1 + k]->index] = b->active[k];
        oly_mark_active(body, active);
        for (int k = 0; k < b->n; k++)
            if (active[body->outputs[k]->index] && !b->active[k])
                b->active[k] = changed = true;
    }
}

/* Cotangents flow from results to the active carries they depend on. */
static void find_reached(backward *b)
{
    const oly_graph *body = b->loop->params.body;
    bool *reached = OLY_ARENA_NEW(&b->r->g->arena, bool, body->n_nodes + 1), changed = true;
    if (!reached) {
        b->r->status = oly_out_of_memory((size_t)body->n_nodes, "the gradient of a loop");
        return;
    }
    for (int k = 0; k < b->n; k++)
        b->reached[k] = b->r->cotangents[k] && b->active[k];
    while (changed) {
        changed = false;
        memset(reached, 0, sizeof *reached * (size_t)body->n_nodes);
        for (int k = 0; k < b->n; k++)
            reached[body->outputs[k]->index] |= b->reached[k];
        for (int k = body->n_nodes - 1; k >= 0; k--)
            for (int j = 0; reached[k] && j < body->nodes[k]->n_in; j++)
                reached[body->nodes[k]->in[j]->index] = true;
        for (int k = 0; k < b->n; k++)
            if (b->active[k] && reached[body->inputs[1 + k]->index] && !b->reached[k])
                b->reached[k] = changed = true;
    }
}

/* The values that the used carries depend on. */
static void find_needed(backward *b)
{
    const oly_graph *body = b->loop->params.body;
    bool *needed = OLY_ARENA_NEW(&b->r->g->arena, bool, body->n_nodes + 1), changed = true;
    if (!needed) {
        b->r->status = oly_out_of_memory((size_t)body->n_nodes, "the gradient of a loop");
        return;
    }
    memcpy(b->needed, b->used, sizeof *b->needed * (size_t)b->n);
    while (changed) {
        changed = false;
        memset(needed, 0, sizeof *needed * (size_t)body->n_nodes);
        for (int k = 0; k < b->n; k++)
            needed[body->outputs[k]->index] |= b->needed[k];
        for (int k = body->n_nodes - 1; k >= 0; k--)
            for (int j = 0; needed[k] && j < body->nodes[k]->n_in; j++)
                needed[body->nodes[k]->in[j]->index] = true;
        for (int k = 0; k < b->n; k++)
            if (needed[body->inputs[1 + k]->index] && !b->needed[k])
                b->needed[k] = changed = true;
    }
}

/* -- one iteration back ---------------------------------------------------------------------------------------------- */
static oly_status record_step(backward *b, oly_graph *s)
{
    const oly_graph *body = b->loop->params.body;
    oly_node **in, **out, **cotangent, **wrt, **gradient;
    int *at, n_wrt = 0;
    OLY_ARENA_LIST(&s->arena, in, body->n_inputs);
    OLY_ARENA_LIST(&s->arena, out, body->n_outputs);
    OLY_ARENA_LIST(&s->arena, cotangent, b->n);
    OLY_ARENA_LIST(&s->arena, wrt, b->n + b->m);
    OLY_ARENA_LIST(&s->arena, gradient, b->n + b->m);
    OLY_ARENA_LIST(&s->arena, at, b->n + b->m);
    for (int k = 0; k < body->n_inputs; k++)
        OLY_TRY(oly_graph_input(s, &body->inputs[k]->type, &in[k]));
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            OLY_TRY(oly_graph_input(s, &body->outputs[k]->type, &cotangent[k]));
    OLY_TRY(oly_graph_copy(s, body, in, out));
    oly_graph_silence(s); /* the iteration is computed once more */
    for (int k = 0; k < b->n + b->m; k++)
        if (b->active[k]) {
            at[n_wrt] = k;
            wrt[n_wrt++] = in[1 + k];
        }
    OLY_TRY(oly_gradient(s, b->n, out, cotangent, n_wrt, wrt, gradient));
    for (int j = 0; j < n_wrt; j++) {
        if (at[j] < b->n ? !b->reached[at[j]] : !gradient[j])
            continue;
        if (!gradient[j])
            OLY_TRY(oly_zeros_like(s, wrt[j], &gradient[j]));
        if (at[j] >= b->n)
            b->summed[at[j] - b->n] = true;
        OLY_TRY(oly_graph_output(s, gradient[j]));
    }
    oly_graph_prune(s);
    for (int k = 0; k < b->n; k++)
        b->used[k] = s->inputs[1 + k]->n_uses > 0;
    for (int k = 0; k < b->m; k++)
        b->seen[k] = s->inputs[1 + b->n + k]->n_uses > 0;
    return OLY_OK;
}

/* -- numbers and rows in some graph ---------------------------------------------------------------------------------- */
static oly_status number(oly_graph *g, int64_t value, oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = OLY_INT32;
    p.value.i = value;
    return oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, out);
}

/* a op value */
static oly_status with_number(oly_graph *g, oly_op op, oly_node *a, int64_t value, oly_node **out)
{
    oly_node *v;
    OLY_TRY(number(g, value, &v));
    return oly_build_apply(g, op, 2, (oly_node *[]){a, v}, out);
}

static oly_status starts(oly_graph *g, oly_node *row, int rank, oly_node **in)
{
    oly_node *zero;
    OLY_TRY(number(g, 0, &zero));
    for (int d = 0; d < rank; d++)
        in[d] = d == 0 ? row : zero;
    return OLY_OK;
}

static oly_status read_row(oly_graph *g, oly_node *stack, oly_node *row, oly_node **out)
{
    oly_node *in[1 + OLY_MAX_RANK] = {stack};
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = stack->type.rank;
    memcpy(p.shape, stack->type.shape, sizeof p.shape);
    p.shape[0] = 1;
    OLY_TRY(starts(g, row, p.rank, in + 1));
    OLY_TRY(oly_graph_add(g, OLY_OP_dynamic_slice, 1 + p.rank, in, &p, out));
    return oly_build_reshape(g, *out, p.rank - 1, p.shape + 1, out);
}

static oly_status as_row(oly_graph *g, oly_node *x, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK] = {1};
    if (x->type.rank == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "the gradient of a loop saves %s for each iteration, which would have more than %d dimensions; "
                        "merge some with oly_reshape",
                        oly_type_short(&x->type), OLY_MAX_RANK);
    memcpy(shape + 1, x->type.shape, sizeof *shape * (size_t)x->type.rank);
    return oly_build_reshape(g, x, x->type.rank + 1, shape, out);
}

static oly_status write_row(oly_graph *g, oly_node *stack, oly_node *row, oly_node *x, oly_node **out)
{
    oly_node *in[2 + OLY_MAX_RANK] = {stack};
    OLY_TRY(as_row(g, x, &in[1]));
    OLY_TRY(starts(g, row, stack->type.rank, in + 2));
    return oly_graph_add(g, OLY_OP_dynamic_update_slice, 2 + stack->type.rank, in, NULL, out);
}

/* Zeros for `count` values like x, sharded as x is. */
static oly_status new_stack(oly_graph *g, const oly_node *x, int64_t count, oly_node **out)
{
    oly_node *zeros, *row;
    OLY_TRY(oly_zeros_like(g, x, &zeros));
    OLY_TRY(as_row(g, zeros, &row));
    int64_t shape[OLY_MAX_RANK];
    memcpy(shape, row->type.shape, sizeof shape);
    shape[0] = count;
    return oly_build_broadcast(g, row, row->type.rank, shape, out);
}

static oly_status result(oly_graph *g, oly_node *loop, int k, oly_node **out)
{
    oly_params which;
    memset(&which, 0, sizeof which);
    which.dimension = k;
    return oly_graph_add(g, OLY_OP_result, 1, &loop, &which, out);
}

/* -- loops being made ------------------------------------------------------------------------------------------------ */

/* A loop's body with its operands. */
typedef struct maker {
    oly_graph *body;
    oly_node *counter;
    int n_operands;
    oly_node **operand;
} maker;

/* `most` operands. */
static oly_status begin(maker *m, oly_graph *g, int most)
{
    oly_type i32 = {.dtype = OLY_INT32};
    *m = (maker){0};
    OLY_ARENA_LIST(&g->arena, m->operand, most);
    m->body = oly_graph_new("loop body");
    oly_status st = m->body ? oly_graph_input(m->body, &i32, &m->counter) : OLY_MEMORY;
    if (st != OLY_OK)
        oly_graph_free(m->body);
    return st;
}

/* Carries first, then captures: the input that corresponds to `outside`. */
static oly_status bring(maker *m, oly_node *outside, oly_node **inside)
{
    m->operand[m->n_operands++] = outside;
    return oly_graph_input(m->body, &outside->type, inside);
}

/* Takes ownership of the body, also on failure. */
static oly_status end(maker *m, oly_graph *g, oly_status st, int64_t lower, int64_t count, int n_carry, oly_node **loop)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.body = m->body;
    p.n_carry = n_carry;
    p.lower = lower;
    p.upper = lower + count;
    if (st == OLY_OK)
        st = oly_graph_add(g, OLY_OP_loop, m->n_operands, m->operand, &p, loop);
    if (st != OLY_OK)
        oly_graph_free(m->body);
    return st;
}

/* A range of iterations in some graph: number `first` (NULL: `at`) and the `count` - 1 that follow. */
typedef struct span {
    oly_node *first;
    int64_t at, count;
} span;

/* Number of the iteration that is `local` after the first. */
static oly_status iteration(maker *m, const span *s, oly_node *first, oly_node *local, oly_node **out)
{
    if (s->first)
        return oly_build_apply(m->body, OLY_OP_add, 2, (oly_node *[]){local, first}, out);
    *out = local;
    return s->at ? with_number(m->body, OLY_OP_add, local, s->at, out) : OLY_OK;
}

/* -- forward once more, saving --------------------------------------------------------------------------------------- */
static oly_status record_forward(const backward *b, oly_graph *g, maker *m, const span *s, oly_node *const *carry,
                                 oly_node *const *captured)
{
    oly_arena *arena = &m->body->arena;
    oly_node **in, **out, **stack, *first = NULL, *zeros;
    OLY_ARENA_LIST(arena, in, 1 + b->n + b->m);
    OLY_ARENA_LIST(arena, out, b->n);
    OLY_ARENA_LIST(arena, stack, b->n);
    for (int k = 0; k < b->n; k++)
        OLY_TRY(b->needed[k] ? bring(m, carry[k], &in[1 + k]) : oly_zeros_like(m->body, b->loop->in[k], &in[1 + k]));
    for (int k = 0; k < b->n; k++)
        if (b->used[k]) {
            OLY_TRY(new_stack(g, carry[k], s->count, &zeros));
            OLY_TRY(bring(m, zeros, &stack[k]));
        }
    if (s->first)
        OLY_TRY(bring(m, s->first, &first));
    for (int k = 0; k < b->m; k++)
        OLY_TRY(bring(m, captured[k], &in[1 + b->n + k]));
    OLY_TRY(iteration(m, s, first, m->counter, &in[0]));
    OLY_TRY(oly_graph_copy(m->body, b->body, in, out));
    for (int k = 0; k < b->n; k++)
        if (b->needed[k])
            OLY_TRY(oly_graph_output(m->body, out[k]));
    for (int k = 0; k < b->n; k++)
        if (b->used[k]) {
            OLY_TRY(write_row(m->body, stack[k], m->counter, in[1 + k], &stack[k]));
            OLY_TRY(oly_graph_output(m->body, stack[k]));
        }
    return OLY_OK;
}

/* Of a loop of the backward pass: two for each carry and capture, and a number. */
static int most_operands(const backward *b)
{
    return 2 * (b->n + b->m) + 1;
}

/* Stacks of the used carries, from the needed carries at the start of the span. */
static oly_status run_forward(const backward *b, oly_graph *g, const span *s, oly_node *const *carry,
                              oly_node *const *captured, oly_node **stacks)
{
    maker m;
    oly_node *loop;
    int n = count_of(b->n, b->needed);
    OLY_TRY(begin(&m, g, most_operands(b)));
    oly_status st = record_forward(b, g, &m, s, carry, captured);
    OLY_TRY(end(&m, g, st, 0, s->count, n + count_of(b->n, b->used), &loop));
    for (int k = 0; k < b->n; k++)
        if (b->used[k])
            OLY_TRY(result(g, loop, n++, &stacks[k]));
    return OLY_OK;
}

/* -- backward over a span -------------------------------------------------------------------------------------------- */

/* The carries of the backward pass: cotangents of carries that are reached, sums of those of captures. */
typedef struct flow {
    oly_node **carry, **capture;
} flow;

static oly_status new_flow(const backward *b, oly_graph *g, flow *f)
{
    OLY_ARENA_LIST(&g->arena, f->carry, b->n);
    OLY_ARENA_LIST(&g->arena, f->capture, b->m);
    return OLY_OK;
}

static oly_status bring_flow(const backward *b, maker *m, const flow *outside, flow *inside)
{
    OLY_TRY(new_flow(b, m->body, inside));
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            OLY_TRY(bring(m, outside->carry[k], &inside->carry[k]));
    for (int k = 0; k < b->m; k++)
        if (b->summed[k])
            OLY_TRY(bring(m, outside->capture[k], &inside->capture[k]));
    return OLY_OK;
}

static oly_status put_flow(const backward *b, oly_graph *g, const flow *f)
{
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            OLY_TRY(oly_graph_output(g, f->carry[k]));
    for (int k = 0; k < b->m; k++)
        if (b->summed[k])
            OLY_TRY(oly_graph_output(g, f->capture[k]));
    return OLY_OK;
}

static int flow_size(const backward *b)
{
    return count_of(b->n, b->reached) + count_of(b->m, b->summed);
}

static oly_status take_flow(const backward *b, oly_graph *g, oly_node *loop, flow *f)
{
    int n = 0;
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            OLY_TRY(result(g, loop, n++, &f->carry[k]));
    for (int k = 0; k < b->m; k++)
        if (b->summed[k])
            OLY_TRY(result(g, loop, n++, &f->capture[k]));
    return OLY_OK;
}

/* The step, for these values. */
static oly_status copy_step(const backward *b, oly_graph *g, oly_node *i, oly_node *const *carry,
                            oly_node *const *captured, flow *f)
{
    oly_node **in, **out;
    int n = 1 + b->n + b->m, j = 0;
    OLY_ARENA_LIST(&g->arena, in, b->step->n_inputs);
    OLY_ARENA_LIST(&g->arena, out, b->step->n_outputs);
    in[0] = i;
    for (int k = 0; k < b->n; k++)
        in[1 + k] = carry[k];
    for (int k = 0; k < b->m; k++)
        in[1 + b->n + k] = captured[k];
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            in[n++] = f->carry[k];
    OLY_TRY(oly_graph_copy(g, b->step, in, out));
    for (int k = 0; k < b->n; k++)
        if (b->reached[k])
            f->carry[k] = out[j++];
    for (int k = 0; k < b->m; k++)
        if (b->summed[k])
            OLY_TRY(oly_add_cotangents(g, f->capture[k], out[j++], &f->capture[k]));
    return OLY_OK;
}

static oly_status bring_used(int n, const bool *used, maker *m, oly_node *const *outside, oly_node **inside)
{
    for (int k = 0; k < n; k++)
        if (used[k])
            OLY_TRY(bring(m, outside[k], &inside[k]));
    return OLY_OK;
}

static oly_status record_backward(const backward *b, maker *m, const span *s, oly_node *const *stacks,
                                  oly_node *const *captured, const flow *outside)
{
    flow f;
    oly_node **stack, **capture, **carry, *first = NULL, *local, *i;
    OLY_ARENA_LIST(&m->body->arena, stack, b->n);
    OLY_ARENA_LIST(&m->body->arena, carry, b->n);
    OLY_ARENA_LIST(&m->body->arena, capture, b->m);
    OLY_TRY(bring_flow(b, m, outside, &f));
    if (s->first)
        OLY_TRY(bring(m, s->first, &first));
    OLY_TRY(bring_used(b->n, b->used, m, stacks, stack));
    OLY_TRY(bring_used(b->m, b->seen, m, captured, capture));
    OLY_TRY(number(m->body, s->count - 1, &local));
    OLY_TRY(oly_build_apply(m->body, OLY_OP_sub, 2, (oly_node *[]){local, m->counter}, &local));
    OLY_TRY(iteration(m, s, first, local, &i));
    for (int k = 0; k < b->n; k++)
        if (b->used[k])
            OLY_TRY(read_row(m->body, stack[k], local, &carry[k]));
    OLY_TRY(copy_step(b, m->body, i, carry, capture, &f));
    return put_flow(b, m->body, &f);
}

static oly_status run_backward(const backward *b, oly_graph *g, const span *s, oly_node *const *stacks,
                               oly_node *const *captured, flow *f)
{
    maker m;
    oly_node *loop;
    OLY_TRY(begin(&m, g, most_operands(b)));
    oly_status st = record_backward(b, &m, s, stacks, captured, f);
    OLY_TRY(end(&m, g, st, 0, s->count, flow_size(b), &loop));
    return take_flow(b, g, loop, f);
}

/* -- backward in segments of k iterations ---------------------------------------------------------------------------- */

/* Iterations `at` .. from the carries saved in row `row` of the stacks. */
static oly_status back_from_row(const backward *b, oly_graph *g, const span *s, oly_node *const *saved, oly_node *row,
                                oly_node *const *captured, flow *f)
{
    oly_node **carry, **stacks;
    OLY_ARENA_LIST(&g->arena, carry, b->n);
    OLY_ARENA_LIST(&g->arena, stacks, b->n);
    for (int k = 0; k < b->n; k++)
        if (b->needed[k])
            OLY_TRY(read_row(g, saved[k], row, &carry[k]));
    OLY_TRY(run_forward(b, g, s, carry, captured, stacks));
    return run_backward(b, g, s, stacks, captured, f);
}

static oly_status record_segment(const backward *b, maker *m, int64_t segments, int64_t k, oly_node *const *saved,
                                 oly_node *const *captured, const flow *outside)
{
    flow f;
    oly_node *row, **stack, **capture;
    span s = {.count = k};
    OLY_ARENA_LIST(&m->body->arena, stack, b->n);
    OLY_ARENA_LIST(&m->body->arena, capture, b->m);
    OLY_TRY(bring_flow(b, m, outside, &f));
    OLY_TRY(bring_used(b->n, b->needed, m, saved, stack));
    for (int j = 0; j < b->m; j++)
        OLY_TRY(bring(m, captured[j], &capture[j]));
    OLY_TRY(number(m->body, segments - 1, &row));
    OLY_TRY(oly_build_apply(m->body, OLY_OP_sub, 2, (oly_node *[]){row, m->counter}, &row));
    OLY_TRY(with_number(m->body, OLY_OP_mul, row, k, &s.first));
    OLY_TRY(with_number(m->body, OLY_OP_add, s.first, b->lower, &s.first));
    OLY_TRY(back_from_row(b, m->body, &s, stack, row, capture, &f));
    return put_flow(b, m->body, &f);
}

static oly_status run_segments(const backward *b, oly_graph *g, int64_t k, oly_node *const *saved,
                               oly_node *const *captured, flow *f)
{
    int64_t segments = b->count / k, left = b->count % k;
    maker m;
    oly_node *loop, *row;
    if (left > 0) {
        span tail = {.at = b->lower + segments * k, .count = left};
        OLY_TRY(number(g, segments, &row));
        OLY_TRY(back_from_row(b, g, &tail, saved, row, captured, f));
    }
    OLY_TRY(begin(&m, g, most_operands(b)));
    oly_status st = record_segment(b, &m, segments, k, saved, captured, f);
    OLY_TRY(end(&m, g, st, 0, segments, flow_size(b), &loop));
    return take_flow(b, g, loop, f);
}

/* -- saving on the way forward --------------------------------------------------------------------------------------- */

/* The row to write in an iteration, and its value: every k-th iteration's carry; in other iterations the old contents. */
static oly_status saved_row(const backward *b, oly_graph *body, int64_t k, oly_node *stack, oly_node *carry,
                            oly_node **out)
{
    oly_node *counter = body->inputs[0], *row = counter, *back, *first, *old;
    if (b->lower)
        OLY_TRY(with_number(body, OLY_OP_sub, counter, b->lower, &row));
    if (k == 1)
        return write_row(body, stack, row, carry, out);
    oly_node *local = row;
    OLY_TRY(with_number(body, OLY_OP_div, local, k, &row));
    OLY_TRY(with_number(body, OLY_OP_mul, row, k, &back));
    OLY_TRY(oly_build_apply(body, OLY_OP_eq, 2, (oly_node *[]){back, local}, &first));
    OLY_TRY(read_row(body, stack, row, &old));
    OLY_TRY(oly_build_broadcast(body, first, carry->type.rank, carry->type.shape, &first));
    OLY_TRY(oly_build_apply(body, OLY_OP_select, 3, (oly_node *[]){first, carry, old}, &carry));
    return write_row(body, stack, row, carry, out);
}

static void insert(oly_node **list, int n, int at, oly_node *x)
{
    memmove(&list[at + 1], &list[at], sizeof *list * (size_t)(n - at));
    list[at] = x;
}

/* An additional carry: a stack of carry k at the start of every `every`-th iteration. */
static oly_status save_carry(const backward *b, int k, int64_t every, oly_node **stack)
{
    oly_node *loop = b->loop, *zeros, *input, *written;
    oly_graph *body = loop->params.body, *g = b->r->g;
    int n = loop->params.n_carry;
    OLY_TRY(new_stack(g, loop->in[k], (b->count + every - 1) / every, &zeros));
    oly_node **in = OLY_ARENA_NEW(&g->arena, oly_node *, loop->n_in + 1);
    if (!in)
        return oly_out_of_memory(sizeof *in * (size_t)loop->n_in, "the gradient of a loop");
    memcpy(in, loop->in, sizeof *in * (size_t)loop->n_in);
    OLY_TRY(oly_graph_input(body, &zeros->type, &input));
    OLY_TRY(saved_row(b, body, every, input, body->inputs[1 + k], &written));
    OLY_TRY(oly_graph_output(body, written));
    insert(in, loop->n_in++, n, zeros);
    insert(body->inputs, body->n_inputs - 1, 1 + n, input);
    loop->in = in;
    zeros->n_uses++;
    loop->params.n_carry++;
    g->unsorted = true;
    return result(g, loop, n, stack);
}

/* Which iterations save: all, or, if that is too much, every sqrt(count)-th. */
static int64_t choose_stride(const backward *b)
{
    double bytes = 0;
    for (int k = 0; k < b->n; k++)
        if (b->used[k])
            bytes += (double)oly_type_size(&b->loop->in[k]->type) * (double)oly_dtype_size(b->loop->in[k]->type.dtype);
    bool fits = bytes * (double)b->count <= (double)oly_option.gradient_memory * 1048576.0;
    return fits || b->count < 4 ? 1 : (int64_t)ceil(sqrt((double)b->count));
}

static oly_status save(const backward *b, int64_t every, oly_node **saved)
{
    for (int k = 0; k < b->n; k++) {
        saved[k] = NULL;
        if (every == 1 ? !b->used[k] : !b->needed[k])
            continue;
        OLY_TRY(b->count == 1 ? as_row(b->r->g, b->loop->in[k], &saved[k]) : save_carry(b, k, every, &saved[k]));
    }
    return OLY_OK;
}

/* -- the rule -------------------------------------------------------------------------------------------------------- */
static oly_status begin_flow(const backward *b, flow *f)
{
    OLY_TRY(new_flow(b, b->r->g, f));
    for (int k = 0; k < b->n; k++) {
        f->carry[k] = b->reached[k] ? b->r->cotangents[k] : NULL;
        if (b->reached[k] && !f->carry[k])
            OLY_TRY(oly_zeros_like(b->r->g, b->loop->in[k], &f->carry[k]));
    }
    for (int k = 0; k < b->m; k++)
        if (b->summed[k])
            OLY_TRY(oly_zeros_like(b->r->g, b->loop->in[b->n + k], &f->capture[k]));
    return OLY_OK;
}

static oly_status new_lists(backward *b, oly_node ***saved)
{
    oly_arena *arena = &b->r->g->arena;
    OLY_ARENA_LIST(arena, b->active, b->n + b->m);
    OLY_ARENA_LIST(arena, b->reached, b->n);
    OLY_ARENA_LIST(arena, b->summed, b->m);
    OLY_ARENA_LIST(arena, b->used, b->n);
    OLY_ARENA_LIST(arena, b->needed, b->n);
    OLY_ARENA_LIST(arena, b->seen, b->m);
    OLY_ARENA_LIST(arena, *saved, b->n);
    return OLY_OK;
}

static void differentiate(backward *b)
{
    oly_node **saved = NULL;
    oly_node *const *captured = b->loop->in + b->n; /* the loop gets other operands when stacks are added */
    flow f = {0};
    TRY(new_lists(b, &saved));
    find_active(b);
    find_reached(b);
    TRY((b->step = oly_graph_new("step back")) ? OLY_OK : OLY_MEMORY);
    TRY(record_step(b, b->step));
    find_needed(b);
    int64_t every = choose_stride(b);
    TRY(oly_graph_clone(b->loop->params.body, &b->body));
    oly_graph_silence(b->body);
    TRY(begin_flow(b, &f));
    TRY(save(b, every, saved));
    span all = {.at = b->lower, .count = b->count};
    TRY(every == 1 ? run_backward(b, b->r->g, &all, saved, captured, &f)
                   : run_segments(b, b->r->g, every, saved, captured, &f));
    for (int k = 0; k < b->n; k++)
        if (b->r->wanted[k])
            b->r->operands[k] = b->reached[k] ? f.carry[k] : NULL;
    for (int k = 0; k < b->m; k++)
        if (b->r->wanted[b->n + k])
            b->r->operands[b->n + k] = b->summed[k] ? f.capture[k] : NULL;
}

void oly_vjp_loop(oly_rule *r)
{
    const oly_params *p = &r->node->params;
    backward b = {.r = r,
                  .loop = r->node,
                  .n = p->n_carry,
                  .m = r->node->n_in - p->n_carry,
                  .lower = p->lower,
                  .count = p->upper - p->lower};
    if (p->predicate) {
        r->status = oly_fail(OLY_INVALID,
                             "a while loop (%s:%d) cannot be differentiated backwards: how often it runs is not known; "
                             "use oly_fori with as many steps as may be needed, or put oly_stop_gradient around it",
                             r->node->site.file, r->node->site.line);
        return;
    }
    if (b.count <= 0) {
        for (int k = 0; k < b.n; k++)
            r->operands[k] = r->cotangents[k];
        return;
    }
    differentiate(&b);
    oly_graph_free(b.step);
    oly_graph_free(b.body);
}
