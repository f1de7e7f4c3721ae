/* SPDX-License-Identifier: BSD-3-Clause */
/* OLYMPUS_CHECK_NANS. An operation makes a NaN if its result has one and none of its operands has: only such an operation is named.
 * Its check comes before all other effects that come after it in the program. */
#include "array/inside/nans.h"
#include "array/inside/first.h"
#include "array/inside/inside.h"
#include "array/inside/inside_text.h"
#include "core/error.h"
#include "core/option.h"
#include "graph/build.h"
#include <stdio.h>
#include <string.h>

/* Operands of the check: whether it fails, where, the values there. */
enum { FAILS, WHERE, VALUES, MOST_VALUES = 4 };

typedef struct marking {
    oly_graph *g;
    int n;          /* nodes before */
    oly_node **bad; /* [n] whether a node has a NaN; NULL: not computed yet */
} marking;

/* -- the error ----------------------------------------------------------------------------------------------------- */

static oly_status report(const oly_call_frame *f)
{
    const oly_user_call *c = f->call;
    oly_text where = {0}, values = {0};
    char place[256];
    if (!*(const bool *)f->in[FAILS].data)
        return OLY_OK;
    oly_site_text(&f->site, place, sizeof place);
    oly_first_index(&where, &c->in[WHERE].type, *(const uint64_t *)f->in[WHERE].data);
    int n = c->n_in - VALUES;
    oly_status st = n ? oly_inside_format(&values, oly_call_text(c), n, f->in + VALUES, f->device) : OLY_OK;
    const char *what = oly_option.check_nans > 1 ? "NaN or infinity" : "NaN";
    snprintf(f->message, f->room, "%s (%s) makes the first %s%s%s%s", place, oly_call_name(c), what,
             oly_text_chars(&where), n ? ", of " : "", oly_text_chars(&values));
    oly_text_free(&where);
    oly_text_free(&values);
    return st == OLY_OK ? OLY_CHECK : st;
}

/* -- which values have one ----------------------------------------------------------------------------------------- */

static bool may_have(const oly_node *x)
{
    return oly_dtype_kind(x->type.dtype) >= OLY_KIND_FLOAT && !x->type.unreduced && !x->type.varying;
}

/* Elementwise: is it good? */
static oly_status is_good(oly_graph *g, oly_node *x, oly_node **good)
{
    bool finite = oly_option.check_nans > 1 && oly_dtype_kind(x->type.dtype) == OLY_KIND_FLOAT;
    return finite ? oly_build_apply(g, OLY_OP_is_finite, 1, &x, good)
                  : oly_build_apply(g, OLY_OP_eq, 2, (oly_node *[]){x, x}, good);
}

static oly_status find_bad(marking *m, oly_node *x, oly_node **bad)
{
    oly_params p;
    oly_node **kept = &m->bad[x->index];
    if (!*kept) {
        memset(&p, 0, sizeof p);
        for (int d = 0; d < x->type.rank; d++)
            p.axes[p.n_axes++] = d;
        OLY_TRY(is_good(m->g, x, kept));
        OLY_TRY(oly_build_apply(m->g, OLY_OP_logical_not, 1, kept, kept));
        if (p.n_axes)
            OLY_TRY(oly_graph_add(m->g, OLY_OP_reduce_or, 1, kept, &p, kept));
    }
    *bad = *kept;
    return OLY_OK;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

/* fails, unless an operand has one already. */
static oly_status unless_operands(marking *m, const oly_node *n, oly_node **fails)
{
    for (int k = 0; k < n->n_in; k++) {
        oly_node *bad;
        if (oly_is_constant(n->in[k]) || !may_have(n->in[k]))
            continue;
        OLY_TRY(find_bad(m, n->in[k], &bad));
        OLY_TRY(oly_build_apply(m->g, OLY_OP_logical_not, 1, &bad, &bad));
        OLY_TRY(oly_build_apply(m->g, OLY_OP_and, 2, (oly_node *[]){*fails, bad}, fails));
    }
    return OLY_OK;
}

static oly_status add_call(marking *m, const oly_node *n, const oly_first *s, int n_values, oly_node *const *operands)
{
    static const char *const formats[] = {"", "{}", "{} and {}", "{}, {} and {}", "{}, {}, {} and {}"};
    oly_node *unused;
    oly_user_call *c =
        oly_call_new(n->params.call ? oly_call_name(n->params.call) : oly_ops[n->op].name, formats[n_values]);
    if (!c)
        return OLY_MEMORY;
    c->effect = c->host = c->agreed = c->gathers = true;
    c->run = report;
    for (int k = 0; k < VALUES + n_values; k++)
        oly_inside_operand(c, operands[k], OLY_CALL_WHOLE);
    c->in[WHERE].type = s->shape;
    oly_type_clear_sharding(&c->in[WHERE].type);
    oly_status st = oly_graph_call(m->g, c, VALUES + n_values, operands, &unused);
    oly_release(c);
    return st;
}

/* The operands of an elementwise operation there. */
static oly_status values_of(const oly_node *n, oly_first *s, int *n_values, oly_node **values)
{
    if (oly_ops[n->op].lowering != OLY_LOWER_TILE || n->n_in > MOST_VALUES)
        return OLY_OK;
    for (int k = 0; k < n->n_in; k++) {
        values[*n_values] = n->in[k];
        OLY_TRY(oly_first_value(s, &values[(*n_values)++]));
    }
    return OLY_OK;
}

static oly_status check_node(marking *m, oly_node *n)
{
    oly_node *good, *operands[VALUES + MOST_VALUES];
    oly_first s = {.g = m->g};
    int n_values = 0;
    oly_restore_site(n->site);
    OLY_TRY(is_good(m->g, n, &good));
    OLY_TRY(oly_first_find(&s, good, &operands[FAILS], &operands[WHERE]));
    OLY_TRY(unless_operands(m, n, &operands[FAILS]));
    OLY_TRY(values_of(n, &s, &n_values, operands + VALUES));
    return add_call(m, n, &s, n_values, operands);
}

static bool computes(const oly_node *n)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE: return n->n_in > 0;
    case OLY_LOWER_REDUCE:
    case OLY_LOWER_CONTRACT:
    case OLY_LOWER_WINDOW:
    case OLY_LOWER_LOCAL: return true;
    case OLY_LOWER_CALL: return !n->params.muted;
    default: return false;
    }
}

/* What has been added for node k, from added[k] on, comes right after it: effects happen in the order of nodes, and no later one after a
 * check that fails. */
static oly_status move_checks(const marking *m, const int *added)
{
    oly_graph *g = m->g;
    oly_node **ordered;
    int n = 0;
    OLY_ARENA_LIST(&g->arena, ordered, g->n_nodes);
    for (int k = 0; k < m->n; k++) {
        ordered[n++] = g->nodes[k];
        for (int j = added[k]; j < added[k + 1]; j++)
            ordered[n++] = g->nodes[j];
    }
    for (int k = 0; k < n; k++) {
        g->nodes[k] = ordered[k];
        g->nodes[k]->index = k;
    }
    return OLY_OK;
}

static oly_status check_graph(oly_graph *g)
{
    marking m = {.g = g, .n = g->n_nodes};
    int *added;
    OLY_ARENA_LIST(&g->arena, m.bad, m.n);
    OLY_ARENA_LIST(&g->arena, added, m.n + 1);
    for (int k = 0; k < m.n; k++) {
        oly_graph *const *graphs;
        added[k] = g->n_nodes;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--) {
            OLY_TRY(check_graph(graphs[j]));
            g->has_effects = g->has_effects || graphs[j]->has_effects;
        }
        if (computes(g->nodes[k]) && may_have(g->nodes[k]))
            OLY_TRY(check_node(&m, g->nodes[k]));
    }
    added[m.n] = g->n_nodes;
    return move_checks(&m, added);
}

oly_status oly_check_nans(oly_graph *g)
{
    oly_site site = oly_current_site();
    oly_graph_bypass(g);
    oly_graph_prune(g);
    oly_status st = check_graph(g);
    oly_restore_site(site);
    return st;
}
