/* SPDX-License-Identifier: BSD-3-Clause */
/* Field regions: parts of a graph that compute fields of one grid from nearby elements of computed fields, such as the
 * fluxes of a time step and the fields after it, become loops that run once:
 *
 *   dt = c / max(speed(u))               dt = c / max(speed(u))
 *   f = flux(u, u shifted)               loop once: f = flux(u, u shifted)
 *   v = u - dt (f - f shifted)                      v = u - dt (f - f shifted)
 *
 * Those are computed tile by tile (time_tiling.h), so that values between fields and results stay in cache and shifted
 * ones are never copied. Counted loops over fields have this without being rewritten; this is for what comes before or
 * after a reduction in a loop's body, for bodies of oly_while, and for functions of one step. Bits do not change.
 *
 * Members of a region are operations that such loops may contain. Members that lead to each other through other
 * operations are in different regions: the depth of a value is the number of times that its users leave members, at
 * most. Values are computed as late as possible. Whether there is a region depends only on the graph and on how inputs are
 * split, so that all processes agree. Called by plan.c. */
#include "core/arena.h"
#include "graph/build.h"
#include "plan/rewrite/rewrite.h"
#include "plan/rewrite/field_regions.h"
#include <string.h>

enum {
    MOST_RESULTS = 24,
    MOST_OPERANDS = 64,
    MOST_READ = 64,     /* operands of an operation */
    MOST_MEMBERS = 400, /* planning takes longer the more there are */
    MOST_APART = 8,     /* largest difference of the extents of results */
    MOST_AGAIN = 16,    /* operations of a value that is computed once more instead of being stored and read */
    MOST_LEAVES = 4,    /* values that these operations read */
};

/* The steps of smaller fields take less time one by one. */
int64_t oly_field_regions_least = 1 << 13;

typedef struct mark {
    bool member; /* of some region */
    /* A member that computes nothing: a part or an arrangement of values from elsewhere. Every region that reads it has it. */
    bool given;
    bool shown; /* read outside its region */
    int depth;  /* see above */
    int root;   /* of its region's tree: a member; its own index: it is the root */
    /* of a root: */
    int n_members; /* those that are given left out */
    bool arranges; /* computed values: other operations are fused as they are */
    /* in the region that is being made: */
    bool wanted; /* by its results */
    oly_node *copy;
} mark;

typedef struct regions {
    oly_planner *p;
    oly_graph *g;
    bool is_body; /* of a loop: input 0 is the counter */
    int rank, n_nodes;
    int64_t fewest; /* elements of a result */
    mark *marks;    /* [n_nodes + 1] */
} regions;

/* A loop that will run once. */
typedef struct region {
    regions *all;
    int root;
    oly_graph *inside;
    int n_results, n_operands;
    oly_node *result[MOST_RESULTS];                         /* nodes of the graph */
    oly_node *before[MOST_RESULTS], *input[MOST_RESULTS];   /* what a result takes the place of, or NULL; inside */
    oly_node *operand[MOST_OPERANDS], *read[MOST_OPERANDS]; /* other values from elsewhere; inside */
    bool fails;
} region;

/* Results of regions that have been made have the last one. */
static mark *mark_of(const regions *r, const oly_node *n)
{
    return &r->marks[n->index < r->n_nodes ? n->index : r->n_nodes];
}

static bool has_place(const oly_type *t)
{
    return t->mesh || t->varying || t->unreduced || t->reduced;
}

static bool computes(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_TILE;
}

/* Is it read through, so that it is no result itself? */
static bool is_view(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW || oly_ops[n->op].lowering == OLY_LOWER_RESHAPE;
}

static bool from_nothing(const oly_node *n)
{
    return computes(n) && n->n_in == 0;
}

/* -- members --------------------------------------------------------------------------------------------------------- */

static bool may_be_member(const regions *r, const oly_node *n)
{
    oly_lowering kind = oly_ops[n->op].lowering;
    if (!oly_tiling_sees_through(n) || kind == OLY_LOWER_INPUT || kind == OLY_LOWER_PLACE || has_place(&n->type) ||
        n->params.sharding)
        return false;
    for (int j = 0; j < n->n_in; j++) /* as for oly_auto_axes: a region's values have none */
        if (has_place(&n->in[j]->type))
            return false;
    return from_nothing(n) || n->type.rank == r->rank;
}

/* The rank of the largest computed value; 0: there is none that is worth it. */
static int rank_of_grid(const oly_graph *g, int64_t fewest)
{
    int64_t most = fewest - 1;
    int rank = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const oly_type *t = &g->nodes[k]->type;
        if (computes(g->nodes[k]) && t->rank <= OLY_TILING_RANK && oly_type_size(t) > most) {
            most = oly_type_size(t);
            rank = t->rank;
        }
    }
    return rank;
}

static void find_members(regions *r)
{
    for (int k = 0; k < r->n_nodes; k++) {
        oly_graph_ahead(r->g, k, 1);
        const oly_node *n = r->g->nodes[k];
        mark *m = &r->marks[k];
        m->root = k;
        m->member = may_be_member(r, n);
        m->given = m->member && (!computes(n) || from_nothing(n));
        for (int j = 0; j < n->n_in; j++)
            m->given = m->given && (!mark_of(r, n->in[j])->member || mark_of(r, n->in[j])->given);
    }
}

/* Is it a member that computes something? */
static bool is_strict(const regions *r, const oly_node *n)
{
    return mark_of(r, n)->member && !mark_of(r, n)->given;
}

static int find_root(regions *r, int k)
{
    while (r->marks[k].root != k)
        k = r->marks[k].root = r->marks[r->marks[k].root].root;
    return k;
}

/* Finds depths, and joins members of one depth that read each other. */
static void find_regions(regions *r)
{
    for (int k = r->n_nodes - 1; k >= 0; k--) {
        oly_graph_ahead(r->g, k, -1);
        const oly_node *n = r->g->nodes[k];
        for (int j = 0; j < n->n_in; j++) {
            mark *in = mark_of(r, n->in[j]);
            int depth = r->marks[k].depth + (is_strict(r, n->in[j]) && !r->marks[k].member);
            in->depth = depth > in->depth ? depth : in->depth;
        }
    }
    for (int k = 0; k < r->n_nodes; k++)
        for (int j = 0; j < r->g->nodes[k]->n_in; j++) {
            const oly_node *in = r->g->nodes[k]->in[j];
            if (is_strict(r, r->g->nodes[k]) && is_strict(r, in) && mark_of(r, in)->depth == r->marks[k].depth)
                r->marks[find_root(r, in->index)].root = find_root(r, k);
        }
    for (int k = 0; k < r->n_nodes; k++)
        if (is_strict(r, r->g->nodes[k])) {
            mark *root = &r->marks[find_root(r, k)];
            root->n_members++;
            root->arranges = root->arranges || !computes(r->g->nodes[k]);
        }
}

/* -- values of other regions that are computed once more -------------------------------------------------------------- */

typedef struct cone {
    int n_operations, n_leaves;
    const oly_node *leaf[MOST_LEAVES];
} cone;

static void count_cone(const regions *r, const oly_node *n, cone *c)
{
    if (c->n_operations > MOST_AGAIN || from_nothing(n))
        return;
    if (!is_strict(r, n)) {
        while (mark_of(r, n)->given && n->n_in == 1)
            n = n->in[0];
        for (int k = 0; k < c->n_leaves; k++)
            if (c->leaf[k] == n)
                return;
        if (c->n_leaves == MOST_LEAVES)
            c->n_operations = MOST_AGAIN + 1;
        else
            c->leaf[c->n_leaves++] = n;
        return;
    }
    c->n_operations += computes(n) ? 1 : MOST_AGAIN + 1;
    for (int j = 0; j < n->n_in; j++)
        count_cone(r, n->in[j], c);
}

static bool is_cheap(const regions *r, const oly_node *n)
{
    cone c = {0};
    count_cone(r, n, &c);
    return c.n_operations <= MOST_AGAIN;
}

/* Does a member of another region compute this value for itself? */
static bool is_computed_again(const regions *r, const oly_node *n)
{
    return is_strict(r, n) && computes(n) && is_cheap(r, n);
}

/* -- results ---------------------------------------------------------------------------------------------------------- */

static bool is_read_outside(regions *r, const oly_node *user, const oly_node *n)
{
    if (!is_strict(r, user))
        return true;
    return find_root(r, user->index) != find_root(r, n->index) && !is_computed_again(r, n);
}

/* Of a view that is read outside, the operand is the result. */
static void find_results(regions *r)
{
    for (int k = 0; k < r->g->n_outputs; k++)
        mark_of(r, r->g->outputs[k])->shown = true;
    for (int k = r->n_nodes - 1; k >= 0; k--) {
        const oly_node *n = r->g->nodes[k];
        bool seen_through = r->marks[k].shown && is_strict(r, n) && is_view(n);
        for (int j = 0; j < n->n_in; j++)
            if (is_strict(r, n->in[j]) && (seen_through || is_read_outside(r, n, n->in[j])))
                mark_of(r, n->in[j])->shown = true;
        if (seen_through)
            r->marks[k].shown = false;
    }
}

/* Do all results have about the extents of the first? */
static bool are_alike(const region *x)
{
    const oly_type *first = &x->result[0]->type;
    for (int k = 0; k < x->n_results; k++)
        for (int d = 0; d < first->rank; d++) {
            int64_t apart = x->result[k]->type.shape[d] - first->shape[d];
            if (apart > MOST_APART || apart < -MOST_APART)
                return false;
        }
    return true;
}

/* Lists the region's results; false: it could not be planned. */
static bool list_results(region *x)
{
    const regions *r = x->all;
    for (int k = 0; k < r->n_nodes; k++) {
        oly_node *n = r->g->nodes[k];
        if (!r->marks[k].shown || !is_strict(r, n) || find_root(x->all, k) != x->root)
            continue;
        if (x->n_results == MOST_RESULTS || oly_type_size(&n->type) < r->fewest)
            return false;
        x->result[x->n_results++] = n;
    }
    return x->n_results > 0 && are_alike(x);
}

/* -- the loop's body --------------------------------------------------------------------------------------------------- */

/* The result of the graph that replaces this input in the program's next step, if that is known. */
static const oly_node *next_of(const regions *r, const oly_node *input)
{
    for (int k = r->is_body; k < r->g->n_inputs; k++)
        if (r->g->inputs[k] == input)
            return k - r->is_body < r->g->n_outputs ? r->g->outputs[k - r->is_body] : NULL;
    return NULL;
}

/* A value from elsewhere: one that a result of its type takes the place of, so that its margins come as those of fields
 * do, or another operand. */
static oly_status take_operand(region *x, oly_node *n, oly_node **made)
{
    const oly_node *next = next_of(x->all, n);
    int at = -1;
    for (int k = 0; k < x->n_results; k++) {
        if (x->before[k] == n) {
            *made = x->input[k];
            return OLY_OK;
        }
        if (!x->before[k] && oly_type_equal(&n->type, &x->result[k]->type) && (at < 0 || x->result[k] == next))
            at = k;
    }
    for (int k = 0; k < x->n_operands; k++)
        if (x->operand[k] == n) {
            *made = x->read[k];
            return OLY_OK;
        }
    if (at >= 0) {
        x->before[at] = n;
        *made = x->input[at];
        return OLY_OK;
    }
    x->fails = x->n_operands == MOST_OPERANDS;
    if (x->fails)
        return OLY_OK;
    OLY_TRY(oly_graph_input(x->inside, &n->type, made));
    x->operand[x->n_operands] = n;
    x->read[x->n_operands++] = *made;
    return OLY_OK;
}

/* Members of the region, what they read of `given` values, and values that are computed once more. */
static bool belongs(region *x, const oly_node *n)
{
    regions *r = x->all;
    if (!mark_of(r, n)->member)
        return false;
    return mark_of(r, n)->given || find_root(r, n->index) == x->root || is_computed_again(r, n);
}

/* A result of a region that has been made has no mark. */
static oly_status copy_of(region *x, oly_node *n, oly_node **made)
{
    if (n->index >= x->all->n_nodes)
        return take_operand(x, n, made);
    *made = mark_of(x->all, n)->copy;
    return OLY_OK;
}

static oly_status copy_node(region *x, oly_node *n)
{
    mark *m = mark_of(x->all, n);
    oly_node *in[MOST_READ];
    if (!belongs(x, n))
        return take_operand(x, n, &m->copy);
    x->fails = x->fails || n->n_in > MOST_READ;
    for (int j = 0; j < n->n_in && !x->fails; j++)
        OLY_TRY(copy_of(x, n->in[j], &in[j]));
    if (x->fails)
        return OLY_OK;
    OLY_TRY(oly_graph_add(x->inside, n->op, n->n_in, in, &n->params, &m->copy));
    m->copy->site = n->site;
    return OLY_OK;
}

/* Marks what the results need, up to values from elsewhere. */
static void find_wanted(region *x)
{
    regions *r = x->all;
    for (int k = 0; k < r->n_nodes; k++)
        r->marks[k].wanted = false;
    for (int k = 0; k < x->n_results; k++)
        mark_of(r, x->result[k])->wanted = true;
    for (int k = r->n_nodes - 1; k >= 0; k--) {
        const oly_node *n = r->g->nodes[k];
        for (int j = 0; j < n->n_in && r->marks[k].wanted && belongs(x, n); j++)
            mark_of(r, n->in[j])->wanted = true;
    }
}

static oly_status fill_body(region *x)
{
    const regions *r = x->all;
    oly_type number = {.dtype = OLY_INT32};
    oly_node *counter;
    OLY_TRY(oly_graph_input(x->inside, &number, &counter));
    for (int k = 0; k < x->n_results; k++)
        OLY_TRY(oly_graph_input(x->inside, &x->result[k]->type, &x->input[k]));
    find_wanted(x);
    for (int k = 0; k < r->n_nodes && !x->fails; k++)
        if (r->marks[k].wanted)
            OLY_TRY(copy_node(x, r->g->nodes[k]));
    for (int k = 0; k < x->n_results && !x->fails; k++)
        OLY_TRY(oly_graph_output(x->inside, mark_of(r, x->result[k])->copy));
    return OLY_OK;
}

static oly_params parameters_of(const region *x)
{
    oly_params params;
    memset(&params, 0, sizeof params);
    params.body = x->inside;
    params.n_carry = x->n_results;
    params.upper = 1;
    params.unrolled = OLY_UNROLLED_REGION;
    return params;
}

static oly_status is_field_loop(const region *x, bool *yes)
{
    oly_node probe = {.op = OLY_OP_loop, .params = parameters_of(x)};
    oly_tiling_form form;
    oly_graph_prune(x->inside);
    OLY_TRY(oly_tiling_find(x->all->p, &probe, &form, yes));
    return *yes ? oly_is_region_worth_it(x->all->p, &form, yes) : OLY_OK;
}

/* -- the graph afterwards ------------------------------------------------------------------------------------------------ */

static void replace_everywhere(oly_graph *g, const oly_node *old, oly_node *now)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int j = 0; j < g->nodes[k]->n_in; j++)
            if (g->nodes[k]->in[j] == old)
                g->nodes[k]->in[j] = now;
    for (int k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] == old)
            g->outputs[k] = now;
}

/* x->inside is NULL once the graph owns it. */
static oly_status add_loop(region *x)
{
    oly_graph *g = x->all->g;
    oly_node *operands[MOST_RESULTS + MOST_OPERANDS], *node, *loop;
    oly_params params = parameters_of(x);
    int n = 0;
    oly_restore_site(x->result[0]->site);
    for (int k = 0; k < x->n_results; k++) {
        const oly_type *t = &x->result[k]->type;
        operands[n++] = x->before[k];
        if (x->before[k])
            continue;
        OLY_TRY(oly_build_number(g, t->dtype, 0, &node)); /* never read */
        OLY_TRY(oly_build_broadcast(g, node, t->rank, t->shape, &operands[n - 1]));
    }
    for (int k = 0; k < x->n_operands; k++)
        operands[n++] = x->operand[k];
    OLY_TRY(oly_graph_add(g, OLY_OP_loop, n, operands, &params, &loop));
    x->inside = NULL;
    for (int k = 0; k < x->n_results; k++) {
        memset(&params, 0, sizeof params);
        params.dimension = k;
        OLY_TRY(oly_graph_add(g, OLY_OP_result, 1, &loop, &params, &node));
        replace_everywhere(g, x->result[k], node);
    }
    return OLY_OK;
}

static oly_status make_region(regions *r, int root, bool *made)
{
    region x = {.all = r, .root = root};
    if (!list_results(&x))
        return OLY_OK;
    x.inside = oly_graph_new(r->g->name);
    bool yes = false;
    oly_status st = x.inside ? fill_body(&x) : oly_out_of_memory(0, "a loop");
    if (st == OLY_OK && !x.fails)
        st = is_field_loop(&x, &yes);
    if (st == OLY_OK && yes)
        st = add_loop(&x);
    *made = *made || yes;
    oly_graph_free(x.inside);
    return st;
}

static oly_status make_regions(oly_planner *p, oly_graph *g, bool is_body)
{
    int64_t fewest = oly_field_regions_least * oly_input_devices(p);
    regions r = {
        .p = p, .g = g, .is_body = is_body, .rank = rank_of_grid(g, fewest), .n_nodes = g->n_nodes, .fewest = fewest};
    bool made = false;
    if (r.rank == 0)
        return OLY_OK;
    r.marks = OLY_ARENA_NEW(&g->arena, mark, r.n_nodes + 1);
    OLY_PLAN_CHECK(r.marks);
    memset(r.marks, 0, sizeof *r.marks * ((size_t)r.n_nodes + 1));
    find_members(&r);
    find_regions(&r);
    find_results(&r);
    for (int k = 0; k < r.n_nodes; k++)
        if (r.marks[k].arranges && r.marks[k].n_members <= MOST_MEMBERS)
            OLY_TRY(make_region(&r, k, &made));
    if (!made)
        return OLY_OK;
    OLY_TRY(oly_graph_sort(g));
    oly_graph_prune(g);
    return OLY_OK;
}

/* Will the loop's body be planned as a whole? */
static bool is_whole(const oly_node *loop)
{
    if (loop->params.unrolled)
        return true;
    return !loop->params.predicate && loop->params.upper - loop->params.lower > 1 && oly_tiling_may_be_found(loop);
}

static oly_status make_all(oly_planner *p, oly_graph *g, bool is_body)
{
    oly_graph *const *graphs;
    int n = g->n_nodes;
    for (int k = 0; k < n; k++) {
        oly_node *node = g->nodes[k];
        bool loop = oly_ops[node->op].lowering == OLY_LOWER_LOOP;
        if (loop && is_whole(node))
            continue;
        for (int j = oly_node_graphs(node, &graphs) - 1; j >= 0; j--)
            OLY_TRY(make_all(p, graphs[j], loop));
    }
    return make_regions(p, g, is_body);
}

/* Do several devices have the same elements of the largest input? Then one computes a step for all of them (repeated_work.c), but not
 * a loop over fields. */
static bool is_repeated(const oly_planner *p)
{
    const oly_graph *g = p->plan->graph;
    int64_t most = 0;
    bool repeated = false;
    for (int k = 0; k < g->n_inputs; k++) {
        oly_sharding s = p->request->inputs[k].sharding;
        int64_t size = oly_type_size(&g->inputs[k]->type);
        int parts = 1;
        for (int d = 0; s && d < s->spec.n_dims; d++)
            parts *= oly_axis_list_parts(s->mesh, &s->spec.dim[d]);
        if (size > most || (size == most && repeated))
            repeated = s && parts < s->mesh->n_devices;
        most = size > most ? size : most;
    }
    return repeated;
}

oly_status oly_make_field_regions(oly_planner *p)
{
    if (is_repeated(p))
        return OLY_OK;
    oly_site here = oly_current_site();
    oly_status st = make_all(p, p->plan->graph, false);
    oly_restore_site(here);
    return st;
}
