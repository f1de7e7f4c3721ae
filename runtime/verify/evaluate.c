/* SPDX-License-Identifier: BSD-3-Clause */
/* Evaluation operation by operation. See evaluate.h. */
#include "verify/evaluate.h"
#include "core/hash.h"
#include "core/progress_line.h"
#include "verify/rounding.h"
#include <string.h>

/* The plan of a node for operands placed like this. */
typedef struct one_plan {
    struct one_plan *next;
    oly_program *program, *magnitude; /* owned; magnitude: NULL until first needed */
    oly_plan_value placed[];          /* [operands] type: not set */
} one_plan;

/* A graph and the plans of its nodes. */
typedef struct frame {
    const oly_graph *graph;
    one_plan **plans;       /* [n_nodes] */
    struct frame ***bodies; /* [n_nodes][graphs inside] */
    int *n_readers;         /* [n_nodes] */
} frame;

struct oly_evaluator {
    oly_arena arena;
    frame *top;
    oly_mesh mesh; /* of the whole plan */
    bool taps;
    /* state of the current evaluation */
    uint64_t disturbed, n_disturbed;
    double scale;
    int loops; /* nesting depth of counted loops */
};

/* -- frames --------------------------------------------------------------------------------------------------------------- */

static void count_readers(const oly_graph *g, int *n_readers)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            n_readers[g->nodes[k]->in[j]->index]++;
    for (int k = 0; k < g->n_outputs; k++)
        n_readers[g->outputs[k]->index]++;
}

static oly_status frame_new(oly_arena *arena, const oly_graph *g, frame **made)
{
    frame *f = OLY_ARENA_NEW(arena, frame, 1);
    if (!f)
        return oly_out_of_memory(sizeof *f, "an evaluation");
    f->graph = g;
    OLY_ARENA_LIST(arena, f->plans, g->n_nodes);
    OLY_ARENA_LIST(arena, f->bodies, g->n_nodes);
    OLY_ARENA_LIST(arena, f->n_readers, g->n_nodes);
    count_readers(g, f->n_readers);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph *const *graphs;
        int n = oly_node_graphs(g->nodes[k], &graphs);
        if (n == 0)
            continue;
        OLY_ARENA_LIST(arena, f->bodies[k], n);
        for (int j = 0; j < n; j++)
            OLY_TRY(frame_new(arena, graphs[j], &f->bodies[k][j]));
    }
    *made = f;
    return OLY_OK;
}

static void forget_plans(frame *f)
{
    for (int k = 0; f && k < f->graph->n_nodes; k++) {
        oly_graph *const *graphs;
        for (one_plan *p = f->plans ? f->plans[k] : NULL; p; p = p->next) {
            oly_program_free(p->program);
            oly_program_free(p->magnitude);
        }
        for (int j = oly_node_graphs(f->graph->nodes[k], &graphs) - 1; f->bodies && f->bodies[k] && j >= 0; j--)
            forget_plans(f->bodies[k][j]);
    }
}

oly_status oly_evaluator_new(const oly_graph *g, oly_evaluator **made)
{
    oly_evaluator *e = oly_calloc(1, sizeof *e);
    if (!e)
        return oly_out_of_memory(sizeof *e, "an evaluation");
    oly_status st = frame_new(&e->arena, g, &e->top);
    if (st != OLY_OK) {
        oly_evaluator_free(e);
        return st;
    }
    *made = e;
    return OLY_OK;
}

void oly_evaluator_free(oly_evaluator *e)
{
    if (!e)
        return;
    forget_plans(e->top);
    oly_arena_free(&e->arena);
    oly_release(e);
}

void oly_evaluator_expect(oly_evaluator *e, oly_mesh mesh, bool taps)
{
    e->mesh = mesh;
    e->taps = taps;
}

/* -- one operation -------------------------------------------------------------------------------------------------------- */

/* A broadcast number adapts to operands that are reduced along axes; so does a value without a mesh, which is what it
 * looks like where only its type is known. */
static oly_type type_of_input(const oly_node *n, const oly_node *operand)
{
    oly_type t = operand->type;
    bool reduced = false;
    for (int k = 0; k < n->n_in; k++)
        reduced = reduced || n->in[k]->type.reduced;
    if (reduced && operand->op == OLY_OP_broadcast && operand->in[0]->type.rank == 0)
        t.mesh = NULL;
    return t;
}

static oly_status add_node(oly_graph *g, const oly_node *n)
{
    oly_node **in, *made;
    OLY_ARENA_LIST(&g->arena, in, n->n_in);
    for (int k = 0; k < n->n_in; k++)
        if (oly_is_constant(n->in[k]))
            OLY_TRY(oly_graph_add(g, n->in[k]->op, 0, NULL, &n->in[k]->params, &in[k]));
        else {
            oly_type type = type_of_input(n, n->in[k]);
            OLY_TRY(oly_graph_input(g, &type, &in[k]));
        }
    OLY_TRY(oly_graph_add(g, n->op, n->n_in, in, &n->params, &made));
    return oly_graph_output(g, made);
}

/* The operands that become inputs of the node's own graph. */
static int inputs_of(const oly_node *n, oly_held *const *operand, oly_held **in)
{
    int n_in = 0;
    for (int k = 0; k < n->n_in; k++)
        if (!oly_is_constant(n->in[k]))
            in[n_in++] = operand[k];
    return n_in;
}

static oly_status plan_node(const oly_node *n, oly_held *const *in, oly_program **program)
{
    oly_sharding wanted;
    oly_graph *g = oly_graph_new(oly_ops[n->op].name);
    oly_status st = g ? add_node(g, n) : OLY_MEMORY;
    if (st == OLY_OK)
        st = oly_reduced_sharding(&n->type, &wanted);
    if (st != OLY_OK) {
        oly_graph_free(g);
        return st;
    }
    return oly_held_plan(g, in, &wanted, program);
}

static bool placed_so(const one_plan *p, int n_in, oly_held *const *in)
{
    for (int k = 0; k < n_in; k++)
        if (p->placed[k].sharding != in[k]->is.sharding || p->placed[k].committed != in[k]->is.committed)
            return false;
    return true;
}

static oly_status find_plan(oly_evaluator *e, frame *f, const oly_node *n, int n_in, oly_held *const *in,
                            one_plan **plan)
{
    for (one_plan *p = f->plans[n->index]; p; p = p->next)
        if (placed_so(p, n_in, in)) {
            *plan = p;
            return OLY_OK;
        }
    one_plan *p = oly_arena_take(&e->arena, sizeof *p + sizeof *p->placed * (size_t)n_in);
    if (!p)
        return oly_out_of_memory(sizeof *p, "an evaluation");
    for (int k = 0; k < n_in; k++)
        p->placed[k] = in[k]->is;
    OLY_TRY(plan_node(n, in, &p->program));
    p->next = f->plans[n->index];
    f->plans[n->index] = p;
    *plan = p;
    return OLY_OK;
}

/* Evaluates the magnitude of the terms of each element. operand: constants included. */
static oly_status find_magnitude(one_plan *p, const oly_node *n, oly_held *const *operand, const oly_held *result,
                                 oly_held **magnitude)
{
    oly_sharding where = result->is.sharding;
    if (!p->magnitude) {
        oly_graph *g;
        OLY_TRY(oly_rounding_graph(n, &g));
        OLY_TRY(oly_held_plan(g, operand, &where, &p->magnitude));
    }
    return oly_held_run(p->magnitude, operand, magnitude);
}

static oly_status disturb(oly_evaluator *e, one_plan *p, const oly_node *n, oly_rounding rounding,
                          oly_held *const *operand, oly_held *result)
{
    oly_held *magnitude = NULL;
    if (rounding == OLY_ROUNDING_OF_TERMS)
        OLY_TRY(find_magnitude(p, n, operand, result, &magnitude));
    oly_status st = oly_rounding_disturb(result, magnitude, e->scale * oly_rounding_units(n),
                                         oly_hash_mix(e->disturbed, ++e->n_disturbed));
    oly_held_drop(magnitude);
    return st;
}

/* Inside shard_map the same grid has axes of other types, but all arrays of one call must agree: gives the value the
 * mesh of the whole plan. */
static oly_status retype(const oly_evaluator *e, oly_held *x)
{
    oly_sharding s = x->is.sharding;
    if (s->mesh == e->mesh || !e->mesh || !oly_mesh_same_grid(s->mesh, e->mesh))
        return OLY_OK;
    x->is.sharding = oly_sharding_intern(e->mesh, &s->spec, s->written_dims);
    return x->is.sharding ? OLY_OK : OLY_MEMORY;
}

/* The mesh whose axes the types of the operation name; NULL: outside regions of Explicit axes. */
static oly_mesh mesh_of_types(const oly_node *n)
{
    oly_mesh mesh = n->type.mesh;
    for (int k = 0; k < n->n_in && !mesh; k++)
        mesh = n->in[k]->type.mesh;
    return mesh;
}

/* A value that leaves a region of Explicit axes is an ordinary array again, though placed over their mesh; one that
 * enters meets arrays over it. */
static oly_status retype_operands(const oly_node *n, int n_in, oly_held **in)
{
    oly_mesh types = mesh_of_types(n);
    for (int k = 0; k < n_in; k++) {
        oly_sharding s = in[k]->is.sharding;
        oly_mesh mesh = s->mesh;
        if (!types && mesh->explicit_axes)
            mesh = oly_mesh_retyped(mesh, 0, mesh->manual_axes);
        else if (types && !mesh->explicit_axes && oly_mesh_same_grid(mesh, types))
            mesh = types;
        if (mesh && mesh != s->mesh)
            in[k]->is.sharding = oly_sharding_intern(mesh, &s->spec, s->written_dims);
        if (!mesh || !in[k]->is.sharding)
            return OLY_MEMORY;
    }
    return OLY_OK;
}

static oly_status evaluate_one(oly_evaluator *e, frame *f, const oly_node *n, oly_held *const *operand, oly_held **in,
                               oly_held **result)
{
    one_plan *p;
    int n_in = inputs_of(n, operand, in);
    oly_site here = oly_current_site();
    oly_restore_site(n->site);
    oly_status st = retype_operands(n, n_in, in);
    if (st == OLY_OK)
        st = find_plan(e, f, n, n_in, in, &p);
    if (st == OLY_OK)
        st = oly_held_run(p->program, in, result);
    if (st == OLY_OK)
        st = retype(e, *result);
    if (st == OLY_OK) {
        oly_rounding rounding = oly_rounding_of(n, e->taps && e->loops > 0);
        (*result)->reordered = rounding != OLY_ROUNDING_SAME;
        for (int k = 0; k < n_in; k++)
            (*result)->reordered = (*result)->reordered || in[k]->reordered;
        if (e->disturbed && rounding != OLY_ROUNDING_SAME)
            st = disturb(e, p, n, rounding, operand, *result);
    }
    oly_restore_site(here);
    return st;
}

/* -- graphs --------------------------------------------------------------------------------------------------------------- */

/* A node's value, or the results of a loop or branch; operands and results are lists of references. */
typedef struct computed {
    oly_held *value;
    oly_held **results;
    int n_results, left; /* readers */
} computed;

static oly_status evaluate_graph(oly_evaluator *e, frame *f, oly_held *const *in, oly_held **out, oly_held **values);

static void drop_list(oly_held **list, int n)
{
    for (int k = 0; k < n; k++) {
        oly_held_drop(list[k]);
        list[k] = NULL;
    }
}

/* Does another iteration follow? *reordered: the answer depends on reordered values. */
static bool goes_on(const oly_params *p, oly_held *const *carry, int64_t i, bool *reordered)
{
    if (!p->predicate)
        return i < p->upper;
    bool predicate = false;
    bool here = oly_held_scalar(carry[p->predicate - 1], sizeof predicate, &predicate);
    *reordered = *reordered || carry[p->predicate - 1]->reordered;
    return here && predicate;
}

/* in: counter, carries, captures. The carries are replaced. */
static oly_status iterate(oly_evaluator *e, frame *body, const oly_params *p, oly_held **in, oly_held **out)
{
    bool reordered = false;
    for (int64_t i = p->lower; goes_on(p, in + 1, i, &reordered); i++) {
        OLY_TRY(oly_held_number((int32_t)i, &in[0]));
        OLY_TRY(evaluate_graph(e, body, in, out, NULL));
        oly_progress_say("verifying a loop", i - p->lower, p->predicate ? 0 : p->upper - p->lower, body->graph->name);
        for (int k = 0; k < p->n_carry; k++) {
            oly_held_drop(in[1 + k]);
            in[1 + k] = out[k];
            out[k] = NULL;
        }
        oly_held_drop(in[0]);
        in[0] = NULL;
        if (oly_run_failure() != OLY_OK)
            return oly_run_failure();
    }
    for (int k = 0; k < p->n_carry && reordered; k++)
        if (!(in[1 + k] = oly_held_as_reordered(in[1 + k])))
            return OLY_MEMORY;
    return OLY_OK;
}

static oly_status evaluate_loop(oly_evaluator *e, frame *f, const oly_node *n, oly_held *const *operand,
                                oly_held **results)
{
    const oly_params *p = &n->params;
    frame *body = f->bodies[n->index][0];
    oly_held **in = oly_calloc((size_t)n->n_in + 1 + (size_t)p->n_carry, sizeof *in);
    if (!in)
        return oly_out_of_memory(sizeof *in, "a loop");
    oly_held **out = in + n->n_in + 1;
    for (int k = 0; k < n->n_in; k++)
        in[1 + k] = oly_held_share(operand[k]);
    e->loops += !p->predicate;
    oly_status st = iterate(e, body, p, in, out);
    e->loops -= !p->predicate;
    for (int k = 0; k < p->n_carry && st == OLY_OK; k++)
        results[k] = oly_held_share(in[1 + k]);
    drop_list(in, n->n_in + 1);
    drop_list(out, p->n_carry);
    oly_release(in);
    return st;
}

static oly_status evaluate_branch(oly_evaluator *e, frame *f, const oly_node *n, oly_held *const *operand,
                                  oly_held **results)
{
    int last = n->params.n_branches - 1;
    int32_t index = 0;
    bool here = oly_held_scalar(operand[0], sizeof index, &index);
    int k = !here || index < 0 ? 0 : index > last ? last : index;
    OLY_TRY(evaluate_graph(e, f->bodies[n->index][k], operand + 1, results, NULL));
    for (int j = 0; operand[0]->reordered && j < oly_graph_results(n); j++)
        if (!(results[j] = oly_held_as_reordered(results[j])))
            return OLY_MEMORY;
    return OLY_OK;
}

static oly_status evaluate_several(oly_evaluator *e, frame *f, const oly_node *n, oly_held *const *operand, computed *c)
{
    int n_results = oly_graph_results(n);
    c->results = oly_calloc((size_t)n_results + 1, sizeof *c->results);
    if (!c->results)
        return oly_out_of_memory(sizeof *c->results, "the results of a loop");
    c->n_results = n_results;
    return oly_ops[n->op].lowering == OLY_LOWER_LOOP ? evaluate_loop(e, f, n, operand, c->results)
                                                     : evaluate_branch(e, f, n, operand, c->results);
}

static int input_number(const oly_graph *g, const oly_node *n)
{
    for (int k = 0; k < g->n_inputs; k++)
        if (g->inputs[k] == n)
            return k;
    return -1;
}

/* lists: room for twice the operands. */
static oly_status compute(oly_evaluator *e, frame *f, const oly_node *n, oly_held *const *in, computed *all,
                          oly_held **lists)
{
    computed *c = &all[n->index];
    for (int k = 0; k < n->n_in; k++)
        lists[k] = all[n->in[k]->index].value;
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_INPUT: c->value = oly_held_share(in[input_number(f->graph, n)]); return OLY_OK;
    case OLY_LOWER_RESULT: c->value = oly_held_share(all[n->in[0]->index].results[n->params.dimension]); return OLY_OK;
    case OLY_LOWER_LOOP:
    case OLY_LOWER_BRANCH: return evaluate_several(e, f, n, lists, c);
    default: return evaluate_one(e, f, n, lists, lists + n->n_in, &c->value);
    }
}

static void drop_computed(computed *c)
{
    oly_held_drop(c->value);
    c->value = NULL;
    drop_list(c->results, c->n_results);
    oly_release(c->results);
    c->results = NULL;
    c->n_results = 0;
}

static oly_status compute_all(oly_evaluator *e, frame *f, oly_held *const *in, computed *all, oly_held **lists,
                              oly_held **values)
{
    for (int k = 0; k < f->graph->n_nodes; k++) {
        const oly_node *n = f->graph->nodes[k];
        if ((all[k].left = f->n_readers[k]) == 0)
            continue;
        OLY_TRY(compute(e, f, n, in, all, lists));
        if (f == e->top)
            oly_progress_say("verifying", k + 1, f->graph->n_nodes, f->graph->name);
        if (values && all[k].value)
            values[k] = oly_held_share(all[k].value);
        for (int j = 0; j < n->n_in; j++)
            if (--all[n->in[j]->index].left == 0)
                drop_computed(&all[n->in[j]->index]);
    }
    return OLY_OK;
}

static oly_status evaluate_graph(oly_evaluator *e, frame *f, oly_held *const *in, oly_held **out, oly_held **values)
{
    const oly_graph *g = f->graph;
    int most = 1;
    for (int k = 0; k < g->n_nodes; k++)
        most = g->nodes[k]->n_in > most ? g->nodes[k]->n_in : most;
    computed *all = oly_calloc((size_t)g->n_nodes + 1, sizeof *all);
    oly_held **lists = oly_calloc(2 * (size_t)most, sizeof *lists);
    oly_status st = all && lists ? compute_all(e, f, in, all, lists, values)
                                 : oly_out_of_memory(sizeof *all * (size_t)g->n_nodes, "an evaluation");
    for (int k = 0; k < g->n_outputs && st == OLY_OK; k++)
        out[k] = oly_held_share(all[g->outputs[k]->index].value);
    for (int k = 0; all && k < g->n_nodes; k++)
        drop_computed(&all[k]);
    oly_release(all);
    oly_release(lists);
    return st;
}

oly_status oly_evaluate(oly_evaluator *e, const oly_evaluation *what)
{
    e->disturbed = what->disturbed;
    e->scale = what->scale;
    e->n_disturbed = 0;
    e->loops = 0;
    return evaluate_graph(e, e->top, what->in, what->out, what->values);
}
