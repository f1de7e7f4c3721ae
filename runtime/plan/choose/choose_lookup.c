/* SPDX-License-Identifier: BSD-3-Clause */
/* Units that read or write at computed indexes, or take slices at computed positions. If the array is split along the
 * indexed dimensions, each device looks up what is in its part and the results are summed, or the array is gathered
 * first. Candidates say which; lower_partial.c does it. See chooser.h. */
#include "plan/choose/chooser.h"
#include "graph/factors.h"
#include <string.h>

static bool is_whole(const oly_factors *fs, const oly_dim_factors *dim)
{
    for (int k = 0; k < dim->n; k++)
        if (fs->kind[dim->factor[k]] == OLY_FACTOR_WHOLE)
            return true;
    return false;
}

/* Not in bodies: there they keep the layouts of the values around them. */
bool oly_is_lookup(const oly_chooser *c, const oly_node *n)
{
    if (oly_ops[n->op].lowering != OLY_LOWER_LOCAL || c->outer)
        return false;
    oly_local_op op = (oly_local_op)oly_ops[n->op].detail;
    oly_local_way way = oly_local_way_of(op);
    return way == OLY_LOCAL_CUTS || way == OLY_LOCAL_READS || op == OLY_LOCAL_DYNAMIC_UPDATE;
}

/* The dimension of the result that equals all of dimension e of operand k; -1: none. */
static int result_dim(const oly_node *n, const oly_factors *fs, int k, int e)
{
    const oly_dim_factors *dim = &fs->operand[k][e];
    for (int d = 0; d < n->type.rank && dim->n == 1; d++)
        if (fs->result[d].n == 1 && fs->result[d].factor[0] == dim->factor[0] &&
            n->type.shape[d] == n->in[k]->type.shape[e])
            return d;
    return -1;
}

static void map_operand(const oly_unit *u, const oly_factors *fs, oly_unit_read *r)
{
    memset(r->free, -1, sizeof r->free);
    memset(r->pair, -1, sizeof r->pair);
    for (int e = 0; e < u->node->in[r->operand]->type.rank; e++) {
        int d = result_dim(u->node, fs, r->operand, e);
        if (d >= 0)
            r->free[d] = r->to[e];
        else if (r->operand == 0)
            r->pair[e] = r->to[e];
    }
}

static oly_cuts seen_by(const oly_chooser *c, const int8_t *dims, oly_cuts placed)
{
    int8_t to[OLY_MAX_RANK];
    memset(to, -1, sizeof to);
    for (int d = 0; d < OLY_MAX_RANK; d++)
        if (dims[d] >= 0)
            to[dims[d]] = (int8_t)d;
    return oly_cuts_mapped(c->mesh, placed, to);
}

oly_cuts oly_lookup_seen(const oly_chooser *c, const oly_unit_read *r, oly_cuts placed)
{
    return seen_by(c, r->free, placed);
}

oly_cuts oly_lookup_summed(const oly_chooser *c, const oly_unit *u, oly_cuts placed)
{
    return seen_by(c, c->reads[u->first_read].pair, placed);
}

/* Elements of a device's part. */
static double part(const oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    return (double)oly_type_size(&n->type) / oly_cuts_parts(c->mesh, cuts);
}

/* What lower_partial.c does without a choice: it sums what is found in parts if that moves less than the array. */
static void settle_greedy(oly_chooser *c, oly_unit *u, oly_cuts out)
{
    const oly_node *n = u->node;
    const oly_unit_read *array = &c->reads[u->first_read];
    oly_cuts summed = oly_lookup_summed(c, u, oly_greedy_placement(c, array)),
             work = oly_cuts_without(c->mesh, out, summed);
    u->greedy = (oly_decision){out, 0, out, out};
    if (!summed)
        return;
    double members = oly_cuts_parts(c->mesh, summed), element = (double)oly_dtype_size(n->type.dtype);
    double moved = (work == out ? 2 : 1) * element * part(c, n, work) * (members - 1) / members;
    for (int k = 1; k < u->n_reads; k++) {
        const oly_unit_read *r = &c->reads[u->first_read + k];
        moved +=
            (double)oly_dtype_size(r->root->type.dtype) * (part(c, r->root, oly_cuts_mapped(c->mesh, work, r->free)) -
                                                           part(c, r->root, oly_cuts_mapped(c->mesh, out, r->free)));
    }
    oly_cuts whole = oly_cuts_mapped(c->mesh, out, array->free),
             own = oly_cuts_mapped(c->mesh, work, array->free) | oly_cuts_mapped(c->mesh, summed, array->pair);
    if (moved >= element * (part(c, array->root, whole) - part(c, array->root, own)))
        return;
    u->greedy = (oly_decision){work, summed, out, 0};
    oly_settle_sum(c, u, &u->greedy);
    u->greedy.wanted = u->greedy.placed;
}

/* Removes a unit that was begun. */
static void take_back(oly_chooser *c, const oly_unit *u)
{
    while (c->n_reads > u->first_read) {
        const oly_unit_read *r = &c->reads[--c->n_reads];
        if (r->anywhere)
            continue;
        c->last_read[r->entry] = r->previous;
        c->n_readers[r->entry]--;
    }
    c->unit_of[u->node->index] = -1;
    c->n_units--;
}

oly_status oly_add_lookup(oly_chooser *c, oly_node *n)
{
    oly_factors fs;
    const oly_value *v = oly_value_of(c->f, n);
    OLY_TRY(oly_factors_of(n, &fs));
    for (int d = 0; d < n->type.rank; d++)
        if (v->axes[d].n > 0 && is_whole(&fs, &fs.result[d]))
            return OLY_OK;
    if (n->n_in > fs.n_operands)
        return OLY_OK;
    oly_unit *u = oly_new_unit(c, OLY_UNIT_LOOKUP, n);
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k]->type.rank > 0)
            u->trusted = u->trusted && oly_add_unit_read(c, u, n->in[k], k);
    if (!u->trusted || u->n_reads == 0 || c->reads[u->first_read].operand != 0) {
        take_back(c, u);
        return OLY_OK;
    }
    for (int k = 0; k < u->n_reads; k++)
        map_operand(u, &fs, &c->reads[u->first_read + k]);
    u->pinned = v->closed;
    settle_greedy(c, u, oly_cuts_of(v->axes, n->type.rank));
    u->work = oly_cost_memory(2 * (double)oly_type_size(&n->type) * (double)oly_dtype_size(n->type.dtype));
    return OLY_OK;
}
