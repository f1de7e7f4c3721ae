/* SPDX-License-Identifier: BSD-3-Clause */
/* Loop fission, for loops in which some carries only observe the fields: they are made of reductions of the fields
 * and no later step of the fields reads them, such as histories of residuals and energies. Such a loop is split
 * before planning:
 *
 *   loop n times                          loop n / k times
 *     u = step(u)                           loop once: u = step(u), w0 = u * u, u = step(u), w1 = u * u, ...
 *     e = update(e, sum(u * u), i)          e = update(e, sum(w0), k i), e = update(e, sum(w1), k i + 1), ...
 *
 * The inner loop is tiled in time (time_tiling.h), so that fields advance k steps between exchanges, and the sums of k
 * steps share one reduction over devices. Every sum is over the same elements of each device as in single steps, so
 * its bits do not change. Clocks, numbers that depend on clocks alone such as the time, are computed beforehand for
 * all k steps. Whether a loop is split depends only on the graph. Called by plan.c. */
#include "core/option.h"
#include "graph/build.h"
#include "plan/rewrite/rewrite.h"
#include "plan/stencil/stencil.h"
#include "plan/stencil/time_tiling_plan.h"
#include <string.h>

enum {
    MOST_VALUES = 48,
    MOST_SEEN = 8,
    FEWEST_ELEMENTS = 1 << 14, /* single steps on smaller fields cost less than time tiling */
};

/* The largest share of a step's work that margins may compute again when k steps run between exchanges. */
static const double most_twice = 0.2;

typedef struct fission {
    oly_planner *p;
    oly_graph *outer;
    oly_node *loop;
    oly_graph *body;
    int n_carry, n_fields, n_clocks, n_seen;
    bool *pure;    /* [n_nodes] made of fields, clocks and captures by elementwise operations and views */
    bool *depends; /* [n_nodes] depends on a field */
    bool is_field[64], is_clock[64];
    int field[64], clock[64];       /* carries: the fields, the clocks */
    int seen[MOST_SEEN];            /* nodes of the body that are observed */
    int64_t reach[OLY_TILING_RANK]; /* of one step, the sum over both directions */
} fission;

/* -- what is split ------------------------------------------------------------------------------------------------- */

static bool has_place(const oly_type *t)
{
    return t->mesh || t->varying || t->unreduced || t->reduced;
}

/* Carries whose extents are about those of the largest one. */
static void guess_fields(fission *x)
{
    const oly_type *largest = NULL;
    for (int j = 0; j < x->n_carry; j++) {
        const oly_type *t = &x->body->inputs[1 + j]->type;
        if (!largest || oly_type_size(t) > oly_type_size(largest))
            largest = t;
    }
    for (int j = 0; j < x->n_carry; j++) {
        const oly_type *t = &x->body->inputs[1 + j]->type;
        x->is_field[j] = t->rank > 0 && t->rank == largest->rank;
        for (int d = 0; d < t->rank && x->is_field[j]; d++)
            x->is_field[j] = largest->shape[d] - t->shape[d] <= 8 && t->shape[d] - largest->shape[d] <= 8;
    }
}

/* A carry is a clock if its next value depends only on clocks. */
static void find_clocks(fission *x)
{
    const oly_graph *g = x->body;
    bool again = true;
    for (int j = 0; j < x->n_carry; j++)
        x->is_clock[j] = g->inputs[1 + j]->type.rank == 0;
    while (again) {
        again = false;
        for (int k = 0; k < g->n_nodes; k++) {
            x->depends[k] = false;
            for (int j = 0; j < g->nodes[k]->n_in; j++)
                x->depends[k] = x->depends[k] || x->depends[g->nodes[k]->in[j]->index];
            for (int j = 0; j < x->n_carry; j++)
                x->depends[k] = x->depends[k] || (g->inputs[1 + j] == g->nodes[k] && !x->is_clock[j]);
        }
        for (int j = 0; j < x->n_carry; j++)
            if (x->is_clock[j] && x->depends[g->outputs[j]->index]) {
                x->is_clock[j] = false;
                again = true;
            }
    }
    for (int j = 0; j < x->n_carry; j++)
        if (x->is_clock[j])
            x->clock[x->n_clocks++] = j;
}

static void mark(fission *x)
{
    const oly_graph *g = x->body;
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        const oly_node *n = g->nodes[k];
        x->depends[k] = false;
        x->pure[k] = oly_tiling_sees_through(n);
        for (int j = 0; j < n->n_in; j++) {
            x->depends[k] = x->depends[k] || x->depends[n->in[j]->index];
            x->pure[k] = x->pure[k] && x->pure[n->in[j]->index];
        }
        for (int j = 0; oly_ops[n->op].lowering == OLY_LOWER_INPUT && j < x->n_carry; j++)
            if (g->inputs[1 + j] == n) {
                x->depends[k] = x->is_field[j];
                x->pure[k] = x->is_field[j] || x->is_clock[j];
            }
    }
}

/* A field depends only on fields, clocks and captures. */
static void find_fields(fission *x)
{
    bool again = true;
    find_clocks(x);
    guess_fields(x);
    while (again) {
        again = false;
        mark(x);
        for (int j = 0; j < x->n_carry; j++)
            if (x->is_field[j] && !x->pure[x->body->outputs[j]->index]) {
                x->is_field[j] = false;
                again = true;
            }
    }
    for (int j = 0; j < x->n_carry; j++)
        if (x->is_field[j])
            x->field[x->n_fields++] = j;
}

static bool see(fission *x, int node)
{
    for (int k = 0; k < x->n_seen; k++)
        if (x->seen[k] == node)
            return true;
    if (x->n_seen == MOST_SEEN)
        return false;
    x->seen[x->n_seen++] = node;
    return true;
}

/* Is it an observer: a carry that is neither a field nor a clock? */
static bool is_look(const fission *x, int j)
{
    return !x->is_field[j] && !x->is_clock[j];
}

/* Finds the values of the fields that observers read. False: one of them is not reduced directly. */
static bool find_seen(fission *x, bool *wanted)
{
    const oly_graph *g = x->body;
    for (int j = 0; j < x->n_carry; j++)
        if (is_look(x, j)) {
            const oly_node *n = g->outputs[j];
            wanted[n->index] = true;
            if (x->pure[n->index] && x->depends[n->index])
                return false;
        }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        oly_graph_ahead(g, k, -1);
        const oly_node *n = g->nodes[k];
        if (!wanted[k])
            continue;
        for (int j = 0; j < n->n_in; j++) {
            const oly_node *in = n->in[j];
            if (!x->pure[in->index] || !x->depends[in->index])
                wanted[in->index] = true;
            else if (oly_ops[n->op].lowering != OLY_LOWER_REDUCE || has_place(&in->type) || !see(x, in->index))
                return false;
        }
    }
    return true;
}

static bool may_be_split(const fission *x)
{
    const oly_node *n = x->loop;
    if (oly_ops[n->op].lowering != OLY_LOWER_LOOP || x->body->has_effects || n->params.predicate ||
        n->params.unrolled & OLY_UNROLLED_LOOP || n->params.upper - n->params.lower < 2 || x->n_carry < 2 ||
        x->body->n_inputs > MOST_VALUES)
        return false;
    for (int j = 0; j < x->n_carry; j++)
        if (has_place(&x->body->inputs[1 + j]->type))
            return false;
    return true;
}

/* -- the parts ----------------------------------------------------------------------------------------------------- */

/* Copies the inputs and nodes of the body into a graph. out[]: the body's outputs, then the observed values. */
static oly_status copy_body(const fission *x, oly_graph *to, int n_more, oly_node **more, oly_node **out)
{
    oly_graph all = *x->body;
    oly_node *in[64], *outputs[64];
    memcpy(outputs, all.outputs, sizeof *outputs * (size_t)all.n_outputs);
    all.outputs = outputs;
    for (int k = 0; k < x->n_seen; k++)
        outputs[all.n_outputs++] = x->body->nodes[x->seen[k]];
    for (int k = 0; k < x->body->n_inputs; k++)
        OLY_TRY(oly_graph_input(to, &x->body->inputs[k]->type, &in[k]));
    for (int k = 0; k < n_more; k++)
        OLY_TRY(oly_graph_input(to, &x->body->nodes[x->seen[k]]->type, &more[k]));
    return oly_graph_copy(to, &all, in, out);
}

/* A graph of one step of the fields, and of the values observed after it. */
static oly_status make_stepper(const fission *x, oly_graph *g)
{
    oly_node *out[64];
    OLY_TRY(copy_body(x, g, 0, NULL, out));
    for (int k = 0; k < x->n_fields; k++)
        OLY_TRY(oly_graph_output(g, out[x->field[k]]));
    for (int k = 0; k < x->n_seen; k++)
        OLY_TRY(oly_graph_output(g, out[x->n_carry + k]));
    oly_graph_prune(g);
    return OLY_OK;
}

/* A graph of the observers' next values; the observed values are inputs after those of the body. */
static oly_status make_observer(const fission *x, oly_graph *g)
{
    oly_node *out[64], *seen[MOST_SEEN];
    OLY_TRY(copy_body(x, g, x->n_seen, seen, out));
    for (int n = 0; n < g->n_nodes; n++)
        for (int j = 0; j < g->nodes[n]->n_in; j++)
            for (int k = 0; k < x->n_seen; k++)
                if (oly_ops[g->nodes[n]->op].lowering == OLY_LOWER_REDUCE && g->nodes[n]->in[j] == out[x->n_carry + k])
                    g->nodes[n]->in[j] = seen[k];
    for (int j = 0; j < x->n_carry; j++)
        if (is_look(x, j))
            OLY_TRY(oly_graph_output(g, out[j]));
    oly_graph_prune(g);
    return OLY_OK;
}

/* A graph of the clocks after one step. */
static oly_status make_ticker(const fission *x, oly_graph *g)
{
    oly_node *out[64];
    OLY_TRY(copy_body(x, g, 0, NULL, out));
    for (int k = 0; k < x->n_clocks; k++)
        OLY_TRY(oly_graph_output(g, out[x->clock[k]]));
    oly_graph_prune(g);
    return OLY_OK;
}

/* base + by, or base * by, in int32. */
static oly_status count_on(oly_graph *g, oly_op op, oly_node *base, int64_t by, int64_t neutral, oly_node **out)
{
    oly_node *in[2] = {base, NULL};
    *out = base;
    if (by == neutral)
        return OLY_OK;
    OLY_TRY(oly_build_number(g, OLY_INT32, (double)by, &in[1]));
    return oly_build_apply(g, op, 2, in, out);
}

/* A graph of `steps` steps of the fields. Inputs: counter (of a loop that runs once), fields, results for the
 * observed values, captures, the clocks before each step, the number of the first step. */
static oly_status make_steps(const fission *x, oly_graph *stepper, int steps, oly_graph *g)
{
    const oly_graph *b = x->body;
    oly_type number = {.dtype = OLY_INT32};
    oly_node *in[64] = {NULL}, *out[64], *seen[64], *shown[64], *first;
    OLY_TRY(oly_graph_input(g, &number, &first));
    for (int k = 0; k < x->n_fields; k++)
        OLY_TRY(oly_graph_input(g, &b->inputs[1 + x->field[k]]->type, &in[1 + x->field[k]]));
    for (int k = 0; k < steps * x->n_seen; k++)
        OLY_TRY(oly_graph_input(g, &b->nodes[x->seen[k % x->n_seen]]->type, &seen[k]));
    for (int k = 1 + x->n_carry; k < b->n_inputs; k++)
        OLY_TRY(oly_graph_input(g, &b->inputs[k]->type, &in[k]));
    for (int k = 0; k < steps * x->n_clocks; k++)
        OLY_TRY(oly_graph_input(g, &b->inputs[1 + x->clock[k % x->n_clocks]]->type, &shown[k]));
    OLY_TRY(oly_graph_input(g, &number, &first));
    for (int s = 0; s < steps; s++) {
        for (int k = 0; k < x->n_clocks; k++)
            in[1 + x->clock[k]] = shown[s * x->n_clocks + k];
        OLY_TRY(count_on(g, OLY_OP_add, first, s, 0, &in[0]));
        OLY_TRY(oly_graph_copy(g, stepper, in, out));
        for (int k = 0; k < x->n_fields; k++)
            in[1 + x->field[k]] = out[k];
        for (int k = 0; k < x->n_fields; k++)
            out[k]->params.unrolled |= OLY_UNROLLED_FIELD;
        memcpy(&seen[s * x->n_seen], out + x->n_fields, sizeof *out * (size_t)x->n_seen);
    }
    for (int k = 0; k < x->n_fields; k++)
        OLY_TRY(oly_graph_output(g, in[1 + x->field[k]]));
    for (int k = 0; k < steps * x->n_seen; k++)
        OLY_TRY(oly_graph_output(g, seen[k]));
    oly_graph_prune(g);
    return OLY_OK;
}

/* Adds the loop that runs once. values[]: the fields, then the observed values of each step. *inner is NULL once g
 * owns it. */
static oly_status add_steps(const fission *x, oly_graph *g, oly_graph **inner, int steps, oly_node *const *in,
                            oly_node *const *shown, oly_node **values)
{
    oly_node *operands[64], *node;
    int n = 0, n_values = x->n_fields + steps * x->n_seen;
    oly_params params;
    memset(&params, 0, sizeof params);
    for (int k = 0; k < x->n_fields; k++)
        operands[n++] = in[1 + x->field[k]];
    for (int k = 0; k < steps * x->n_seen; k++) { /* never read */
        const oly_type *t = &x->body->nodes[x->seen[k % x->n_seen]]->type;
        OLY_TRY(oly_build_number(g, t->dtype, 0, &node));
        OLY_TRY(oly_build_broadcast(g, node, t->rank, t->shape, &operands[n++]));
    }
    for (int k = 1 + x->n_carry; k < x->body->n_inputs; k++)
        operands[n++] = in[k];
    for (int k = 0; k < steps * x->n_clocks; k++)
        operands[n++] = shown[k];
    operands[n++] = in[0];
    params.body = *inner;
    params.n_carry = n_values;
    params.upper = 1;
    params.unrolled = OLY_UNROLLED_LOOP;
    OLY_TRY(oly_graph_add(g, OLY_OP_loop, n, operands, &params, &node));
    *inner = NULL;
    for (int k = 0; k < n_values; k++) {
        memset(&params, 0, sizeof params);
        params.dimension = k;
        OLY_TRY(oly_graph_add(g, OLY_OP_result, 1, &node, &params, &values[k]));
    }
    return OLY_OK;
}

/* What the parts of the loop are made of: graphs of one step. */
typedef struct step_parts {
    oly_graph *stepper, *ticker, *observer;
} step_parts;

/* Fills g, the new loop's body. *inner is NULL once g owns it. */
static oly_status fill_body(const fission *x, oly_graph *g, oly_graph **inner, const step_parts *parts, int steps,
                            int64_t lower)
{
    const oly_graph *b = x->body;
    oly_node *in[64 + MOST_SEEN], *out[64], *values[64], *shown[64], *number[64], *counter;
    for (int k = 0; k < b->n_inputs; k++)
        OLY_TRY(oly_graph_input(g, &b->inputs[k]->type, &in[k]));
    OLY_TRY(count_on(g, OLY_OP_mul, in[0], steps, 1, &counter));
    OLY_TRY(count_on(g, OLY_OP_add, counter, lower, 0, &counter));
    for (int s = 0; s < steps; s++) {
        OLY_TRY(count_on(g, OLY_OP_add, counter, s, 0, &number[s]));
        in[0] = number[s];
        for (int k = 0; k < x->n_clocks; k++)
            shown[s * x->n_clocks + k] = in[1 + x->clock[k]];
        OLY_TRY(oly_graph_copy(g, parts->ticker, in, out));
        for (int k = 0; k < x->n_clocks; k++)
            in[1 + x->clock[k]] = out[k];
    }
    memcpy(out, in, sizeof *out * (size_t)b->n_inputs); /* clocks after the last step */
    in[0] = counter;
    OLY_TRY(add_steps(x, g, inner, steps, in, shown, values));
    for (int s = 0; s < steps; s++) {
        oly_node *looks[64];
        int n = 0;
        in[0] = number[s];
        for (int k = 0; k < x->n_clocks; k++)
            in[1 + x->clock[k]] = shown[s * x->n_clocks + k];
        memcpy(in + b->n_inputs, values + x->n_fields + s * x->n_seen, sizeof *in * (size_t)x->n_seen);
        OLY_TRY(oly_graph_copy(g, parts->observer, in, looks));
        for (int j = 0; j < x->n_carry; j++)
            if (is_look(x, j))
                in[1 + j] = looks[n++];
    }
    for (int k = 0; k < x->n_fields; k++)
        in[1 + x->field[k]] = values[k];
    for (int j = 0; j < x->n_carry; j++)
        OLY_TRY(oly_graph_output(g, x->is_clock[j] ? out[1 + j] : in[1 + j]));
    oly_graph_prune(g);
    return OLY_OK;
}

/* -- the split loop ------------------------------------------------------------------------------------------------ */

/* Adds a loop whose iterations take `steps` steps each; `operands` become its results. */
static oly_status add_loop(const fission *x, const step_parts *parts, int steps, int64_t lower, int64_t count,
                           oly_node **operands)
{
    oly_graph *inner = oly_graph_new(x->body->name), *body = oly_graph_new(x->body->name);
    oly_status st = inner && body ? OLY_OK : oly_out_of_memory(0, "a loop");
    oly_params params = x->loop->params;
    oly_node *node;
    if (st == OLY_OK)
        st = make_steps(x, parts->stepper, steps, inner);
    if (st == OLY_OK)
        st = fill_body(x, body, &inner, parts, steps, lower);
    params.body = body;
    params.lower = 0;
    params.upper = count;
    if (st == OLY_OK)
        st = oly_graph_add(x->outer, OLY_OP_loop, x->loop->n_in, operands, &params, &node);
    if (st != OLY_OK) {
        oly_graph_free(inner);
        oly_graph_free(body);
        return st;
    }
    for (int j = 0; j < x->n_carry; j++) {
        memset(&params, 0, sizeof params);
        params.dimension = j;
        OLY_TRY(oly_graph_add(x->outer, OLY_OP_result, 1, &node, &params, &operands[j]));
    }
    return OLY_OK;
}

static int64_t size_of(const fission *x)
{
    return oly_type_size(&x->body->inputs[1 + x->field[0]]->type);
}

/* The most steps that fit into a graph. */
static int most_steps(const fission *x)
{
    int room = MOST_VALUES - x->n_fields - (x->body->n_inputs - x->n_carry), each = x->n_seen + x->n_clocks;
    return each > 0 ? room / each : room;
}

int oly_input_devices(const oly_planner *p)
{
    int devices = 1;
    for (int k = 0; k < p->plan->graph->n_inputs; k++) {
        oly_sharding s = p->request->inputs[k].sharding;
        devices = s && s->mesh->n_devices > devices ? s->mesh->n_devices : devices;
    }
    return devices;
}

/* The share of the computation that is done twice when margins are `steps` steps wide. Layouts are not known yet:
 * assumes blocks as compact as the number of devices allows. */
static double twice_computed(const fission *x, int steps)
{
    const oly_type *t = &x->body->inputs[1 + x->field[0]]->type;
    int devices = oly_input_devices(x->p), parts = 1;
    double share = 0, blocks = 1;
    for (; blocks < devices; parts++) {
        blocks = 1;
        for (int d = 0; d < t->rank; d++)
            blocks *= parts + 1;
    }
    for (int d = 0; d < t->rank; d++)
        share += (double)x->reach[d] * (steps - 1) / 2 * parts / (double)t->shape[d];
    return share;
}

static int steps_of(const fission *x, int64_t count)
{
    int64_t most = most_steps(x), steps = oly_halo_steps();
    if (!steps) {
        steps = size_of(x) > 1 << 24 ? 2 : 4; /* observed values of every step take memory */
        while (steps > 1 && twice_computed(x, (int)steps) > most_twice)
            steps /= 2;
    }
    steps = steps < most ? steps : most;
    return (int)(steps < count ? steps : count);
}

static oly_status replace(const fission *x, const step_parts *parts)
{
    oly_node *operands[64], *const *results = operands;
    int64_t lower = x->loop->params.lower, count = x->loop->params.upper - lower;
    int steps = steps_of(x, count);
    memcpy(operands, x->loop->in, sizeof *operands * (size_t)x->loop->n_in);
    oly_restore_site(x->loop->site);
    int n_before = x->outer->n_nodes;
    OLY_TRY(add_loop(x, parts, steps, lower, count / steps, operands));
    if (count % steps)
        OLY_TRY(add_loop(x, parts, (int)(count % steps), lower + count / steps * steps, 1, operands));
    for (int k = 0; k < n_before; k++) {
        oly_node *r = x->outer->nodes[k];
        if (oly_ops[r->op].lowering == OLY_LOWER_RESULT && r->in[0] == x->loop)
            r->in[0] = results[r->params.dimension]->in[0];
    }
    return OLY_OK;
}

static bool is_input(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_INPUT;
}

static bool is_stage(const oly_tiling_form *form, const oly_node *n)
{
    for (int k = 0; k < form->n_stages; k++)
        if (form->stages[k].node == n)
            return true;
    return false;
}

/* Can the steps of the fields be tiled in time? Also marks the nodes that are stages in a loop of a single step:
 * they stay stages in every step, even where later steps do not read all that makes them one. */
static oly_status is_time_tiled(fission *x, oly_graph *stepper, bool *yes)
{
    oly_graph *one = oly_graph_new("step");
    oly_status st = one ? make_steps(x, stepper, 1, one) : oly_out_of_memory(0, "a loop");
    oly_node probe = {.op = OLY_OP_loop};
    oly_tiling_form form;
    oly_tiling_pass pass;
    probe.params.body = one;
    probe.params.n_carry = x->n_fields + x->n_seen;
    probe.params.upper = 1;
    *yes = false;
    if (st == OLY_OK)
        st = oly_tiling_find(x->p, &probe, &form, yes);
    if (st == OLY_OK && *yes)
        st = oly_tiling_unroll(x->p, &form, 1, true, &pass);
    for (int d = 0; st == OLY_OK && *yes && d < form.rank; d++)
        x->reach[d] = pass.field_hi[d] - pass.field_lo[d];
    for (int k = 0, at = 0; k < stepper->n_nodes && st == OLY_OK && *yes;
         k++) { /* copies are in the order of the nodes, after the inputs */
        if (is_input(stepper->nodes[k]))
            continue;
        while (is_input(one->nodes[at]))
            at++;
        if (is_stage(&form, one->nodes[at++]))
            stepper->nodes[k]->params.unrolled |= OLY_UNROLLED_STAGE;
    }
    oly_graph_free(one);
    return st;
}

static oly_status part(oly_planner *p, oly_graph *g, oly_node *loop, bool *any)
{
    fission x = {.p = p, .outer = g, .loop = loop, .body = loop->params.body, .n_carry = loop->params.n_carry};
    if (!may_be_split(&x))
        return OLY_OK;
    bool *flags = OLY_ARENA_NEW(&g->arena, bool, 3 * x.body->n_nodes + 1), yes = false;
    OLY_PLAN_CHECK(flags);
    memset(flags, 0, sizeof *flags * (size_t)(3 * x.body->n_nodes));
    x.pure = flags + x.body->n_nodes;
    x.depends = flags + 2 * x.body->n_nodes;
    find_fields(&x);
    if (x.n_fields == 0 || x.n_fields == x.n_carry || size_of(&x) < FEWEST_ELEMENTS || !find_seen(&x, flags) ||
        x.n_carry + x.n_seen > MOST_VALUES || most_steps(&x) < 2)
        return OLY_OK;
    step_parts parts = {oly_graph_new("step"), oly_graph_new("clocks"), oly_graph_new("looks")};
    oly_status st = parts.stepper && parts.ticker && parts.observer ? make_stepper(&x, parts.stepper)
                                                                    : oly_out_of_memory(0, "a loop");
    if (st == OLY_OK)
        st = is_time_tiled(&x, parts.stepper, &yes);
    if (st == OLY_OK && yes)
        st = make_ticker(&x, parts.ticker);
    if (st == OLY_OK && yes)
        st = make_observer(&x, parts.observer);
    if (st == OLY_OK && yes)
        st = replace(&x, &parts);
    *any = *any || yes;
    oly_graph_free(parts.stepper);
    oly_graph_free(parts.ticker);
    oly_graph_free(parts.observer);
    return st;
}

static oly_status part_all(oly_planner *p, oly_graph *g)
{
    oly_graph *const *graphs;
    bool any = false;
    int n = g->n_nodes;
    for (int k = 0; k < n; k++) {
        oly_node *node = g->nodes[k];
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(part_all(p, graphs[j]));
        OLY_TRY(part(p, g, node, &any));
    }
    if (!any)
        return OLY_OK;
    OLY_TRY(oly_graph_sort(g));
    oly_graph_prune(g);
    return OLY_OK;
}

oly_status oly_split_loops(oly_planner *p)
{
    oly_site here = oly_current_site();
    oly_status st = part_all(p, p->plan->graph);
    oly_restore_site(here);
    return st;
}
