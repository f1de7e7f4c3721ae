/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints: what would be cheaper if one input, one constraint of the function or one requested result were placed
 * otherwise. Found by planning again with that one layout changed and comparing; only when an explanation asks for
 * hints. An input is tried replicated, in the layouts that steps of the plan bring it to, and with every dimension
 * split over every axis; also, all inputs without one axis. Constraints and requested results are dropped. The
 * number of plans and their nodes are bounded. */
#include "plan/explain/explain.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 64, MOST_NODES = 20000, MOST_HINTS = 5 };

/* One changed layout and its outcome. */
typedef struct trial {
    int input, output;     /* which one is changed; -1: neither */
    int constraint;        /* which of the graph's placed nodes; -1 */
    int axis;              /* over which no input is split; -1 */
    oly_sharding sharding; /* of the input */
} trial;

typedef struct search {
    oly_told *told;
    int n_plans;   /* made so far */
    int64_t left;  /* nodes that may still be planned */
    oly_told base; /* the plan, made again from its graph */
    oly_plan *base_plan;
    int n_best;
    oly_hint best[MOST_HINTS + 1];
} search;

/* -- planning again ------------------------------------------------------------------------------------------------ */

/* Copies the graph without one constraint: every axis of that node is left to the planner. */
static oly_status open_constraint(const oly_graph *from, int number, oly_graph **made)
{
    OLY_TRY(oly_graph_clone(from, made));
    oly_graph *g = *made;
    for (int k = 0, seen = 0; k < g->n_nodes; k++) {
        oly_node *n = g->nodes[k];
        if (!oly_is_placed(n) || seen++ != number)
            continue;
        for (int j = k + 1; j < g->n_nodes; j++)
            for (int i = 0; i < g->nodes[j]->n_in; i++)
                if (g->nodes[j]->in[i] == n)
                    g->nodes[j]->in[i] = n->in[0];
        for (int j = 0; j < g->n_outputs; j++)
            if (g->outputs[j] == n)
                g->outputs[j] = n->in[0];
    }
    return OLY_OK;
}

/* Explicit axes are part of the program's types: with other ones it would be another program. */
static bool may_lie_elsewhere(const oly_plan_value *v)
{
    oly_mesh mesh = v->sharding->mesh;
    return !mesh->everywhere && mesh->n_devices > 1 && !v->type.mesh && !v->sharding->spec.unreduced;
}

static bool splits(const oly_plan_value *v, oly_mesh mesh, int axis)
{
    for (int d = 0; v->sharding->mesh == mesh && d < v->sharding->spec.n_dims; d++)
        if (memchr(v->sharding->spec.dim[d].axis, axis, v->sharding->spec.dim[d].n))
            return true;
    return false;
}

static oly_sharding without_axis(oly_sharding s, int axis)
{
    oly_spec spec = {.n_dims = s->spec.n_dims};
    for (int d = 0; d < spec.n_dims; d++)
        for (int k = 0; k < s->spec.dim[d].n; k++)
            if (s->spec.dim[d].axis[k] != axis)
                spec.dim[d].axis[spec.dim[d].n++] = s->spec.dim[d].axis[k];
    return oly_sharding_intern(s->mesh, &spec, 0);
}

/* The original request with the trial's change; its lists are in the graph's memory. */
static oly_status ask_for(const oly_plan *old, const trial *t, oly_graph *g, oly_plan_request *request)
{
    oly_plan_value *inputs;
    oly_sharding *outputs;
    OLY_ARENA_LIST(&g->arena, inputs, old->n_inputs);
    OLY_ARENA_LIST(&g->arena, outputs, old->n_outputs);
    memcpy(inputs, old->inputs, sizeof *inputs * (size_t)old->n_inputs);
    if (t->input >= 0) {
        inputs[t->input].sharding = t->sharding;
        inputs[t->input].committed = true;
    }
    for (int k = 0; t->axis >= 0 && k < old->n_inputs; k++)
        if (may_lie_elsewhere(&inputs[k]) && splits(&inputs[k], old->mesh, t->axis) &&
            !(inputs[k].sharding = without_axis(inputs[k].sharding, t->axis)))
            return OLY_MEMORY;
    for (int k = 0; k < old->n_outputs; k++)
        outputs[k] = old->wanted && k != t->output ? old->wanted[k] : NULL;
    *request = (oly_plan_request){g, inputs, outputs};
    return OLY_OK;
}

static oly_status plan_again(const oly_told *told, const trial *t, oly_plan **plan)
{
    const oly_plan *old = told->plan;
    oly_plan_request request;
    oly_graph *g;
    if (t->constraint >= 0)
        OLY_TRY(open_constraint(old->graph, t->constraint, &g));
    else
        OLY_TRY(oly_graph_clone(old->graph, &g));
    oly_site site = oly_current_site();
    oly_status st = ask_for(old, t, g, &request);
    if (st == OLY_OK)
        st = oly_plan_make(&request, plan);
    else
        oly_graph_free(g);
    oly_restore_site(site);
    return st;
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static const char *collective_name(const oly_step *s)
{
    return s->kind == OLY_STEP_STENCIL ? "halo exchange" : s->what;
}

static bool alike(const oly_told_step *a, const oly_step *b)
{
    return a->communicates && a->step->bytes == b->bytes && strcmp(collective_name(a->step), collective_name(b)) == 0;
}

/* Runs of collectives of the same name and size in one run of the plan. */
static int64_t runs_of(const oly_told *t, const oly_step *like)
{
    int64_t n = 0;
    for (int k = 0; k < t->n_steps; k++)
        if (alike(&t->steps[k], like))
            n += t->steps[k].times * oly_step_repeats(t->steps[k].step);
    return n;
}

static bool counted_before(const oly_told *t, int k)
{
    for (int j = 0; j < k; j++)
        if (alike(&t->steps[j], t->steps[k].step))
            return true;
    return false;
}

/* "3 all-gathers of 64.0 MiB": what one plan has more of than the other. */
static void fewer(oly_text *t, const oly_told *many, const oly_told *few, int *n)
{
    for (int k = 0; k < many->n_steps; k++) {
        const oly_step *s = many->steps[k].step;
        if (!many->steps[k].communicates || counted_before(many, k))
            continue;
        int64_t less = runs_of(many, s) - runs_of(few, s);
        if (less <= 0)
            continue;
        oly_text_add(t, "%s%lld %s%s of ", *n ? ", " : "", (long long)less, collective_name(s), less == 1 ? "" : "s");
        oly_bytes_text(t, s->bytes);
        ++*n;
    }
}

static const char *tell_savings(oly_told *told, const oly_told *before, const oly_told *after)
{
    oly_text t = {0};
    int n = 0, more = 0;
    fewer(&t, before, after, &n);
    if (n == 0)
        oly_text_add(&t, "time");
    size_t length = t.length;
    oly_text_add(&t, ", in exchange for ");
    fewer(&t, after, before, &more);
    const char *text = oly_told_say(told, "%.*s", more ? (int)t.length : (int)length, oly_text_chars(&t));
    told->failed = told->failed || t.failed;
    oly_text_free(&t);
    return text;
}

static const char *tell_change(const search *s, const trial *t)
{
    oly_told *told = s->told;
    const oly_plan *plan = told->plan;
    if (t->constraint >= 0) {
        const oly_node *n = NULL;
        for (int k = 0, seen = 0; k < plan->graph->n_nodes && !n; k++)
            if (oly_is_placed(plan->graph->nodes[k]) && seen++ == t->constraint)
                n = plan->graph->nodes[k];
        return oly_told_say(told, "leaving out the constraint %s at %s", oly_told_name(told, n),
                            oly_tell_line(told, n));
    }
    if (t->axis >= 0)
        return oly_told_say(told, "splitting no input over %s", plan->mesh->name[t->axis]);
    if (t->output >= 0)
        return oly_told_say(told, "leaving the sharding of result %d open (instead of %s)", t->output,
                            oly_tell_spec(told, plan->wanted[t->output]->mesh, &plan->wanted[t->output]->spec));
    const char *was =
        oly_tell_spec(told, plan->inputs[t->input].sharding->mesh, &plan->inputs[t->input].sharding->spec);
    const char *type = oly_type_short(&plan->inputs[t->input].type);
    if (t->sharding->spec.n_dims == 0)
        return oly_told_say(told, "replicating %s, %s (instead of %s)", oly_told_input(told, t->input), type, was);
    return oly_told_say(told, "placing %s, %s, as %s (instead of %s)", oly_told_input(told, t->input), type,
                        oly_tell_spec(told, t->sharding->mesh, &t->sharding->spec), was);
}

/* By predicted time; if equal, by bytes moved, then by memory. */
static bool better(const oly_hint *a, const oly_hint *b)
{
    if (a->seconds > b->seconds * 1.001 || b->seconds > a->seconds * 1.001)
        return a->seconds > b->seconds;
    return a->wire != b->wire ? a->wire > b->wire : a->memory < b->memory;
}

/* Keeps the best hint for each subject, the thing that is changed. */
static void keep(search *s, oly_hint hint)
{
    int at = 0;
    for (int k = 0; k < s->n_best; k++)
        if (strcmp(s->best[k].subject, hint.subject) == 0) {
            if (!better(&hint, &s->best[k]))
                return;
            memmove(&s->best[k], &s->best[k + 1], sizeof *s->best * (size_t)(s->n_best - k - 1));
            s->n_best--;
            break;
        }
    while (at < s->n_best && !better(&hint, &s->best[at]))
        at++;
    memmove(&s->best[at + 1], &s->best[at], sizeof *s->best * (size_t)(s->n_best - at));
    s->best[at] = hint;
    if (s->n_best < MOST_HINTS)
        s->n_best++;
}

static const char *subject_of(search *s, const trial *t)
{
    return oly_told_say(s->told, "%d %d %d %d", t->input, t->output, t->constraint, t->axis);
}

/* The same transfer of the same value, whatever its bytes. Without a constraint values have other names: then on the
 * same source line. */
static bool same_transfer(const oly_told *t, const oly_told_step *a, const oly_told *u, const oly_told_step *b)
{
    const oly_node *n = a->step->node, *m = b->step->node;
    if (!a->communicates || !b->communicates || strcmp(collective_name(a->step), collective_name(b->step)) != 0)
        return false;
    if (t->n_values == u->n_values)
        return strcmp(oly_told_name(t, n), oly_told_name(u, m)) == 0;
    return n == m || (n && m && n->op == m->op && n->site.line == m->site.line);
}

/* Of the steps before `end`. */
static int count_transfers(const oly_told *t, int end, const oly_told *u, const oly_told_step *like)
{
    int n = 0;
    for (int k = 0; k < end; k++)
        n += same_transfer(t, &t->steps[k], u, like);
    return n;
}

/* Steps of the plan that the other does not have. Of several equal ones the last are taken to be missing. */
static const bool *find_removed(oly_told *told, const oly_told *after)
{
    bool *removes = OLY_ARENA_NEW(&told->arena, bool, told->n_steps + 1);
    for (int k = 0; removes && k < told->n_steps; k++) {
        const oly_told_step *s = &told->steps[k];
        removes[k] =
            s->communicates && count_transfers(told, k + 1, told, s) > count_transfers(after, after->n_steps, told, s);
    }
    return removes;
}

/* Plans with the change; it is a hint if that plan moves less and takes no longer. */
static oly_status try(search *s, const trial *t)
{
    oly_plan *plan;
    if (s->n_plans >= MOST_PLANS || s->left < s->told->n_values)
        return OLY_OK;
    s->n_plans++;
    s->left -= s->told->n_values;
    oly_status st = plan_again(s->told, t, &plan);
    if (st != OLY_OK && st != OLY_MEMORY)
        oly_drop_message(); /* the change is impossible: for example, a constraint forbids it */
    if (st != OLY_OK)
        return st == OLY_MEMORY ? st : OLY_OK;
    oly_told after;
    st = oly_tell(plan, NULL, &after);
    bool is_told = st == OLY_OK;
    if (is_told && after.costs.wire_bytes < s->base.costs.wire_bytes && after.seconds < s->base.seconds) {
        const bool *removes = find_removed(s->told, &after);
        st = removes ? OLY_OK : oly_out_of_memory(0, "an explanation");
        if (removes)
            keep(s, (oly_hint){.subject = subject_of(s, t),
                               .change = tell_change(s, t),
                               .saves = tell_savings(s->told, &s->base, &after),
                               .removes = removes,
                               .bytes = s->base.bytes - after.bytes,
                               .wire = s->base.costs.wire_bytes - after.costs.wire_bytes,
                               .collectives = s->base.costs.collectives - after.costs.collectives,
                               .memory = after.peak - s->base.peak,
                               .seconds = s->base.seconds - after.seconds});
    }
    if (is_told)
        oly_told_free(&after);
    oly_plan_free(plan);
    return st;
}

/* -- what is tried ------------------------------------------------------------------------------------------------- */

static oly_status try_spec(search *s, int input, const oly_spec *spec)
{
    const oly_plan_value *v = &s->told->plan->inputs[input];
    trial t = {.input = input, .output = -1, .constraint = -1, .axis = -1};
    t.sharding = oly_sharding_intern(v->sharding->mesh, spec, 0);
    if (!t.sharding)
        return OLY_MEMORY;
    return t.sharding == v->sharding ? OLY_OK : try(s, &t);
}

/* The value in memory that a node is a view of. */
static const oly_node *seen_through(const oly_node *n)
{
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW && n->n_in > 0 && n->in[0]->type.rank == n->type.rank)
        n = n->in[0];
    return n;
}

/* In the layouts that steps of the plan need. */
static oly_status try_wanted(search *s, int input)
{
    const oly_node *node = s->told->plan->graph->inputs[input];
    for (int k = 0; k < s->told->n_steps; k++) {
        const oly_told_step *ts = &s->told->steps[k];
        const oly_transfer *t = ts->step->transfer;
        if (!ts->communicates || !t || !ts->step->node || t->to_mesh != s->told->plan->inputs[input].sharding->mesh)
            continue;
        const oly_node *moved = seen_through(ts->step->node);
        if (moved != node)
            continue;
        oly_spec spec = t->to;
        while (spec.n_dims > 0 && spec.dim[spec.n_dims - 1].n == 0)
            spec.n_dims--;
        OLY_TRY(try_spec(s, input, &spec));
    }
    return OLY_OK;
}

static oly_status try_input(search *s, int input)
{
    const oly_plan_value *v = &s->told->plan->inputs[input];
    oly_mesh mesh = v->sharding->mesh;
    if (!may_lie_elsewhere(v))
        return OLY_OK;
    OLY_TRY(try_spec(s, input, &(oly_spec){0}));
    OLY_TRY(try_wanted(s, input));
    for (int d = 0; d < v->type.rank; d++)
        for (int axis = 0; axis < mesh->n_axes; axis++) {
            oly_spec spec = {.n_dims = d + 1};
            spec.dim[d].n = 1;
            spec.dim[d].axis[0] = (uint8_t)axis;
            if (mesh->size[axis] > 1 && v->type.shape[d] >= mesh->size[axis])
                OLY_TRY(try_spec(s, input, &spec));
        }
    return OLY_OK;
}

static oly_status try_all(search *s)
{
    const oly_plan *plan = s->told->plan;
    for (int k = 0; k < plan->n_inputs; k++)
        OLY_TRY(try_input(s, k));
    for (int k = 0; k < plan->n_outputs; k++)
        if (plan->wanted && plan->wanted[k] && !plan->graph->outputs[k]->type.mesh)
            OLY_TRY(try(s, &(trial){.input = -1, .output = k, .constraint = -1, .axis = -1}));
    for (int k = 0, n = 0; k < plan->graph->n_nodes; k++) {
        const oly_node *node = plan->graph->nodes[k];
        if (!oly_is_placed(node))
            continue;
        if (!node->type.mesh && oly_settles_all(&node->params))
            OLY_TRY(try(s, &(trial){.input = -1, .output = -1, .constraint = n, .axis = -1}));
        n++;
    }
    for (int axis = 0; axis < plan->mesh->n_axes; axis++) { /* for cases where changing a single input does not help */
        int n = 0;
        for (int k = 0; k < plan->n_inputs; k++)
            n += may_lie_elsewhere(&plan->inputs[k]) && splits(&plan->inputs[k], plan->mesh, axis);
        if (n > 1 && plan->mesh->size[axis] > 1)
            OLY_TRY(try(s, &(trial){.input = -1, .output = -1, .constraint = -1, .axis = axis}));
    }
    return OLY_OK;
}

oly_status oly_find_hints(oly_told *told)
{
    search s = {.told = told, .left = MOST_NODES};
    if (told->costs.wire_bytes == 0)
        return OLY_OK;
    oly_status st = plan_again(told, &(trial){.input = -1, .output = -1, .constraint = -1, .axis = -1}, &s.base_plan);
    if (st != OLY_OK) {
        if (st != OLY_MEMORY)
            oly_drop_message(); /* an explanation without hints is still valid */
        return st == OLY_MEMORY ? st : OLY_OK;
    }
    st = oly_tell(s.base_plan, NULL, &s.base);
    if (st == OLY_OK) {
        st = try_all(&s);
        oly_told_free(&s.base);
    }
    oly_plan_free(s.base_plan);
    told->hints = OLY_ARENA_NEW(&told->arena, oly_hint, s.n_best + 1);
    OLY_PLAN_CHECK(told->hints);
    memcpy(told->hints, s.best, sizeof *s.best * (size_t)s.n_best);
    told->n_hints = s.n_best;
    return st;
}
