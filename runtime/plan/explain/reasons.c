/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a value is placed as it is and why data moves: recorded by the passes that choose axes, phrased here for
 * oly_explain. */
#include "plan/explain/explain.h"
#include "graph/factors.h"
#include <string.h>

/* -- phrases ------------------------------------------------------------------------------------------------------- */

static const char *file_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

const char *oly_tell_line(oly_told *told, const oly_node *n)
{
    if (!n || !n->site.file || !n->site.line)
        return "";
    return oly_told_say(told, "%s:%d", file_of(n->site.file), n->site.line);
}

/* "matmul (layer.c:12)" */
static const char *tell_node(oly_told *told, const oly_node *n)
{
    const char *line = oly_tell_line(told, n);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reasons of this kind have a node */
    return *line ? oly_told_say(told, "%s (%s)", oly_ops[n->op].name, line) : oly_ops[n->op].name;
}

const char *oly_tell_axes(oly_told *told, oly_mesh mesh, const oly_axis_list *axes)
{
    const char *text = "";
    for (int k = 0; k < axes->n; k++)
        text = k ? oly_told_say(told, "%s and %s", text, mesh->name[axes->axis[k]]) : mesh->name[axes->axis[k]];
    return text;
}

const char *oly_tell_spec(oly_told *told, oly_mesh mesh, const oly_spec *spec)
{
    oly_text t = {0};
    oly_spec trimmed = *spec;
    if (mesh->everywhere)
        return "on each process";
    while (trimmed.n_dims > 0 && trimmed.dim[trimmed.n_dims - 1].n == 0)
        trimmed.n_dims--;
    oly_spec_text(&t, mesh, &trimmed, 0);
    const char *text = oly_told_say(told, "%s", oly_text_chars(&t));
    told->failed = told->failed || t.failed;
    oly_text_free(&t);
    return text;
}

/* The dimension of the tensor that shares a factor with dimension d of another; -1: none. */
static int same_factor(const oly_dim_factors *a, int rank, const oly_dim_factors *d)
{
    for (int e = 0; e < rank; e++)
        for (int k = 0; k < a[e].n; k++)
            for (int j = 0; j < d->n; j++)
                if (a[e].factor[k] == d->factor[j])
                    return e;
    return -1;
}

/* The dimension of operand `from` (n_in: of the result) that dimension d of operand `to` follows; -1: unknown. */
static int followed_dimension(const oly_node *n, int from, int to, int d)
{
    oly_factors f;
    if (oly_factors_of(n, &f) != OLY_OK) {
        oly_drop_message();
        return -1;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reasons of this kind have a node */
    if ((from < n->n_in && from >= f.n_operands) || (to < n->n_in && to >= f.n_operands))
        return -1;
    const oly_dim_factors *wanted = to == n->n_in ? &f.result[d] : &f.operand[to][d];
    return from == n->n_in ? same_factor(f.result, n->type.rank, wanted)
                           : same_factor(f.operand[from], n->in[from]->type.rank, wanted);
}

/* Which operand of n the value is; n_in: its result. */
static int role_of(const oly_node *n, const oly_node *value)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reasons of this kind have a node */
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == value)
            return k;
    return n->n_in;
}

static const char *tell_factor(oly_told *told, const oly_told_value *v, const oly_reason *r)
{
    const oly_node *n = r->node;
    int e = followed_dimension(n, r->operand, role_of(n, v->node), r->dimension);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reasons of this kind have a node */
    const oly_node *source = r->operand < n->n_in ? n->in[r->operand] : n;
    const char *dimension = e >= 0 ? oly_told_say(told, "dimension %d of ", e) : "";
    const char *conflict = r->conflict ? "; conflict: the operands disagree, the largest decides" : "";
    if (r->operand == n->n_in)
        return oly_told_say(told, "from %sthe result %s of %s%s", dimension, oly_told_name(told, source),
                            tell_node(told, n), conflict);
    return oly_told_say(told, "from %soperand %d (%s) of %s%s", dimension, r->operand, oly_told_name(told, source),
                        tell_node(told, n), conflict);
}

static const char *kind_of(oly_why why)
{
    static const char *const names[] = {[OLY_WHY_FACTOR] = "factor", [OLY_WHY_CONSTRAINT] = "constraint",
                                        [OLY_WHY_TYPE] = "type",     [OLY_WHY_RESULT] = "result",
                                        [OLY_WHY_SAME] = "same",     [OLY_WHY_COST] = "cost"};
    return names[why];
}

static const char *tell_reason(oly_told *told, const oly_told_value *v, const oly_reason *r)
{
    const char *node = r->node ? tell_node(told, r->node) : "";
    switch (r->why) {
    case OLY_WHY_FACTOR: return tell_factor(told, v, r);
    case OLY_WHY_CONSTRAINT: return oly_told_say(told, "constraint: %s", node);
    case OLY_WHY_TYPE: return "its type: an Explicit axis";
    case OLY_WHY_RESULT: return oly_told_say(told, "requested for result %d", r->operand);
    case OLY_WHY_SAME:
        return oly_told_say(told, "the same value inside and outside %s %s", oly_told_name(told, r->node), node);
    case OLY_WHY_COST: return oly_told_say(told, "the cheapest layout of %s", node);
    }
    return "";
}

static const oly_reason *reason_of(const oly_told_value *v, int d)
{
    for (const oly_reason *r = oly_value_of(v->frame, v->node)->reasons; r; r = r->next)
        if (r->dimension == d)
            return r;
    return NULL;
}

/* An operand in memory whose dimension with the same factor is split alike; -1: none. */
static int alike_operand(const oly_told_value *v, int d, int *dimension)
{
    const oly_node *n = v->node;
    oly_layout mine, theirs;
    oly_factors f;
    if (!oly_natural_layout(v->frame, n, &mine))
        return -1;
    if (oly_factors_of(n, &f) != OLY_OK) {
        oly_drop_message();
        return -1;
    }
    for (int k = 0; k < n->n_in && k < f.n_operands; k++) {
        int e = same_factor(f.operand[k], n->in[k]->type.rank, &f.result[d]);
        if (e >= 0 && oly_natural_layout(v->frame, n->in[k], &theirs) &&
            oly_axis_list_equal(&theirs.split[e].axes, &mine.split[d].axes)) {
            *dimension = e;
            return k;
        }
    }
    return -1;
}

/* Why a dimension is split although no reason, or a different one, was recorded. */
static const char *tell_place(oly_told *told, const oly_told_value *v, int d)
{
    int e, k = alike_operand(v, d, &e);
    if (k >= 0)
        return oly_told_say(told, "computed where dimension %d of operand %d (%s) is placed", e, k,
                            oly_told_name(told, v->node->in[k]));
    return "computed where its step runs";
}

/* Describes a value from outside its graph; NULL: it is computed in the graph. */
static const char *tell_origin(oly_told *told, const oly_told_value *v)
{
    const oly_frame *f = v->frame;
    if (oly_ops[v->node->op].lowering != OLY_LOWER_INPUT)
        return NULL;
    int k = 0;
    while (k < f->graph->n_inputs && f->graph->inputs[k] != v->node)
        k++;
    if (!f->loop)
        return oly_told_say(told, "%s of the call", oly_told_input(told, k));
    const oly_node *outer = oly_captured(f, v->node);
    if (outer)
        return oly_told_say(told, "%s, captured", oly_told_name(told, outer));
    const char *loop = oly_told_say(told, "%s %s", oly_told_name(told, f->loop), tell_node(told, f->loop));
    return k == 0 ? oly_told_say(told, "the counter of %s", loop) : oly_told_say(told, "carry %d of %s", k - 1, loop);
}

/* How a node is computed, if that was chosen by cost. */
static const char *tell_choice(oly_told *told, const oly_told_value *v, const oly_choice *c)
{
    oly_mesh mesh = told->plan->mesh;
    oly_spec work = {.n_dims = v->node->type.rank};
    oly_axis_list summed = {0};
    for (int d = 0; d < work.n_dims; d++)
        work.dim[d] = c->work[d];
    for (int d = 0; d < OLY_MAX_RANK; d++)
        for (int k = 0; k < c->summed[d].n; k++)
            summed.axis[summed.n++] = c->summed[d].axis[k];
    oly_text t = {0};
    oly_text_add(&t, "computed as %s", oly_tell_spec(told, mesh, &work));
    if (summed.n)
        oly_text_add(&t, ", partial sums reduced over %s", oly_tell_axes(told, mesh, &summed));
    oly_text_add(&t, "; with all such choices the predicted time is ");
    oly_seconds_text(&t, c->seconds[1]);
    oly_text_add(&t, " instead of ");
    oly_seconds_text(&t, c->seconds[0]);
    const char *text = oly_told_say(told, "%s", oly_text_chars(&t));
    told->failed = told->failed || t.failed;
    oly_text_free(&t);
    return text;
}

void oly_tell_reasons(oly_told *told, const oly_told_value *v, oly_reason_teller *tell, void *user)
{
    const oly_value *known = oly_value_of(v->frame, v->node);
    const char *origin = tell_origin(told, v);
    if (origin)
        tell(user, -1, "input", origin);
    if (origin && (!v->frame->loop || oly_captured(v->frame, v->node)))
        return;
    if (known->choice && known->choice->differs)
        tell(user, -1, "cost", tell_choice(told, v, known->choice));
    for (int d = 0; d < v->node->type.rank; d++) {
        static const oly_axis_list none;
        const oly_axis_list *axes = d < v->spec.n_dims ? &v->spec.dim[d] : &none;
        const oly_reason *r = reason_of(v, d);
        if (r && oly_axis_list_equal(axes, &known->axes[d]) && (axes->n || r->why != OLY_WHY_FACTOR))
            tell(user, d, kind_of(r->why), tell_reason(told, v, r));
        else if (axes->n)
            tell(user, d, "operand", tell_place(told, v, d));
    }
}

/* -- why data moves ------------------------------------------------------------------------------------------------ */

/* Who needs the data, and how: "relu (layer.c:14) needs it whole". */
static const char *tell_wish(oly_told *told, const oly_step *s, const char *what)
{
    return oly_told_say(told, "%s needs %s", s->reader ? tell_node(told, s->reader) : "the call's result", what);
}

static bool same_spec(const oly_transfer *t)
{
    for (int d = 0; d < t->from.n_dims || d < t->to.n_dims; d++) {
        static const oly_axis_list none;
        if (!oly_axis_list_equal(d < t->from.n_dims ? &t->from.dim[d] : &none,
                                 d < t->to.n_dims ? &t->to.dim[d] : &none))
            return false;
    }
    return t->from_mesh == t->to_mesh;
}

const char *oly_tell_transfer(oly_told *told, const oly_told_step *ts)
{
    const oly_step *s = ts->step;
    const oly_transfer *t = s->transfer;
    const char *value = oly_told_name(told, s->node); /* values made by the planner have no name */
    if (!*value && s->node)
        value = oly_told_say(told, "an intermediate result of %s", tell_node(told, s->node));
    const char *more = t && t->n_values > 1 ? oly_told_say(told, " and %d more", t->n_values - 1) : "";
    if (s->kind == OLY_STEP_STENCIL)
        return oly_told_say(told, "each step reads elements of %s that neighbours compute", value);
    if (s->over.n)
        return oly_told_say(told, "devices along %s hold partial results of %s (%s); %s",
                            oly_tell_axes(told, told->plan->mesh, &s->over), value, tell_node(told, s->node),
                            s->kind == OLY_STEP_REDUCTION ? tell_wish(told, s, "it whole") : "each keeps its own part");
    if (!t)
        return oly_told_say(told, "%s: %s", value, tell_wish(told, s, "elements that other devices hold"));
    const char *placed =
        oly_told_say(told, "%s%s is placed as %s", value, more, oly_tell_spec(told, t->from_mesh, &t->from));
    if (same_spec(t))
        return oly_told_say(told, "%s; %s", placed, tell_wish(told, s, "elements that other devices hold"));
    const char *wanted = oly_told_say(told, "it as %s", oly_tell_spec(told, t->to_mesh, &t->to));
    return oly_told_say(told, "%s; %s", placed, tell_wish(told, s, wanted));
}
