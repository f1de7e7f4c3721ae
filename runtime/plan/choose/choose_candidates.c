/* SPDX-License-Identifier: BSD-3-Clause */
/* Candidates: decisions of a unit worth trying, from where its operands are placed in the current state and from what
 * its readers, the caller and constraints want. Called by choose_search.c. See chooser.h. */
#include "plan/choose/chooser.h"
#include <string.h>

bool oly_same_decision(const oly_decision *a, const oly_decision *b)
{
    return a->work == b->work && a->summed == b->summed && a->placed == b->placed;
}

static void consider(oly_chooser *c, const oly_unit *u, oly_decision d, oly_candidates *list)
{
    oly_settle_sum(c, u, &d);
    if (u->pinned && d.placed != u->greedy.placed)
        return;
    if (d.placed == d.work)
        d.wanted = u->kind == OLY_UNIT_GROUP || u->kind == OLY_UNIT_LOOKUP ? d.work : u->greedy.wanted;
    for (int k = 0; k < list->n; k++)
        if (oly_same_decision(&list->d[k], &d))
            return;
    if (list->n < OLY_CHOOSE_CANDIDATES)
        list->d[list->n++] = d;
}

/* Splits finer than the extent are not tried: no device may be left without elements unless propagation does that. */
static oly_cuts fitting(const oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(c->mesh, cuts, axes, n->type.rank);
    for (int d = 0; d < n->type.rank; d++)
        while (axes[d].n > 0 && oly_axis_list_parts(c->mesh, &axes[d]) > n->type.shape[d])
            axes[d].n--;
    return oly_cuts_of(axes, n->type.rank);
}

/* Where the unit's operand is placed, in dimensions as the unit sees them. */
static oly_cuts seen(const oly_chooser *c, const oly_unit *u, int read, const oly_decided *decided)
{
    const oly_unit_read *r = &c->reads[u->first_read + read];
    return oly_cuts_mapped(c->mesh, oly_read_placement(r, decided), r->from);
}

static void try_group(oly_chooser *c, const oly_unit *u, oly_cuts cuts, oly_candidates *list)
{
    cuts = fitting(c, u->node, cuts);
    consider(c, u, (oly_decision){cuts, 0, cuts, cuts}, list);
}

/* As an operand is placed, but with the axes of one dimension moved to another: the operand is moved before the group
 * instead of after it, and what follows is computed in that layout. */
static void try_turned(oly_chooser *c, const oly_unit *u, oly_cuts cuts, oly_candidates *list)
{
    oly_axis_list axes[OLY_MAX_RANK];
    int rank = u->node->type.rank;
    for (int d = 0; d < rank; d++)
        for (int e = 0; e < rank; e++) {
            oly_cuts_axes(c->mesh, cuts, axes, rank);
            if (d == e || axes[d].n == 0)
                continue;
            oly_append_axes(&axes[e], &axes[d]);
            axes[d].n = 0;
            if (oly_axis_list_parts(c->mesh, &axes[e]) <= u->node->type.shape[e])
                try_group(c, u, oly_cuts_of(axes, rank), list);
        }
}

/* As one of the operands is placed, as two of them combined, as wanted, or replicated. */
static void group_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, oly_candidates *list)
{
    for (int k = 0; k < u->n_reads; k++) {
        oly_cuts cuts = seen(c, u, k, decided);
        try_group(c, u, cuts, list);
        for (int j = 0; j < u->n_reads && u->n_reads <= 4; j++)
            try_group(c, u, oly_cuts_merged(c->mesh, cuts, seen(c, u, j, decided)), list);
    }
    for (int k = 0; k < u->n_wants; k++)
        try_group(c, u, u->wants[k], list);
    for (int k = 0; k < u->n_demands; k++)
        try_group(c, u, u->demand[k].cuts, list);
    for (int k = 0; k < u->n_reads && c->turning; k++)
        try_turned(c, u, seen(c, u, k, decided), list);
    try_group(c, u, 0, list);
}

/* The result split along each dimension in turn over the axes of a sum: reduce-scattered there, even if no reader wants
 * it; or, with `computed`, computed in that split instead of summed. */
static void try_scattered(oly_chooser *c, const oly_unit *u, oly_decision d, bool computed, oly_candidates *list)
{
    oly_axis_list summed = {0}, axes[OLY_MAX_RANK];
    int parts = 1;
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (oly_cuts_byte(d.summed, a)) {
            summed.axis[summed.n++] = (uint8_t)a;
            parts *= c->mesh->size[a];
        }
    for (int e = 0; e < u->node->type.rank; e++) {
        oly_cuts_axes(c->mesh, d.work, axes, u->node->type.rank);
        if ((int64_t)oly_axis_list_parts(c->mesh, &axes[e]) * parts > u->node->type.shape[e])
            continue;
        oly_append_axes(&axes[e], &summed);
        d.wanted = oly_cuts_of(axes, u->node->type.rank);
        consider(c, u, computed ? (oly_decision){d.wanted, 0, d.wanted, 0} : d, list);
    }
}

/* With this split of the contracting pairs: the loop split as given; the sum reduce-scattered as wanted, or not at
 * all. */
static void try_product(oly_chooser *c, const oly_unit *u, oly_cuts summed, oly_cuts cuts, oly_candidates *list)
{
    for (int k = 0; k < list->n_tried; k++)
        if (list->tried[k][0] == summed && list->tried[k][1] == cuts)
            return;
    if (list->n_tried < OLY_CHOOSE_CANDIDATES) {
        list->tried[list->n_tried][0] = summed;
        list->tried[list->n_tried++][1] = cuts;
    }
    oly_cuts work = fitting(c, u->node, oly_cuts_without(c->mesh, cuts, summed));
    consider(c, u, (oly_decision){work, summed, work, 0}, list);
    if (!summed)
        return;
    consider(c, u, (oly_decision){work, summed, u->greedy.wanted, 0}, list);
    for (int k = 0; k < u->n_wants; k++)
        consider(c, u, (oly_decision){work, summed, u->wants[k], 0}, list);
    for (int k = 0; k < u->n_demands; k++)
        consider(c, u, (oly_decision){work, summed, u->demand[k].cuts, 0}, list);
    if (c->scattering)
        for (int computed = 0; computed <= (c->recutting ? 1 : 0); computed++)
            try_scattered(c, u, (oly_decision){work, summed, 0, 0}, computed, list);
}

static bool shares_axes(oly_mesh mesh, oly_cuts a, oly_cuts b)
{
    for (int axis = 0; axis < mesh->n_axes; axis++)
        if (oly_cuts_byte(a, axis) && oly_cuts_byte(b, axis))
            return true;
    return false;
}

/* An axis cannot split both the pairs of one operand and a free dimension of the other: in its place an idle axis
 * splits the pairs, preferably one of the same size. */
static oly_cuts with_idle_axes(const oly_chooser *c, const oly_unit *u, oly_cuts pairs, oly_cuts stays)
{
    const oly_contraction *product = u->product;
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts used = pairs | stays;
    oly_cuts_axes(c->mesh, pairs, axes, OLY_MAX_RANK);
    for (int k = 0; k < product->n_contract; k++) {
        oly_axis_list kept = {0};
        int64_t left = u->node->in[0]->type.shape[product->contract[0][k]];
        for (int j = 0; j < axes[k].n; j++) {
            int axis = axes[k].axis[j], size = c->mesh->size[axis];
            for (int a = 0, other = -1; oly_cuts_byte(stays, axes[k].axis[j]) && a <= c->mesh->n_axes; a++) {
                if (a == c->mesh->n_axes)
                    axis = other;
                else if (!oly_cuts_byte(used, a) &&
                         (other < 0 || (c->mesh->size[other] != size && c->mesh->size[a] == size)))
                    other = a;
            }
            if (axis < 0 || c->mesh->size[axis] > left)
                continue;
            left /= c->mesh->size[axis];
            used |= (oly_cuts)1 << (8 * axis);
            kept.axis[kept.n++] = (uint8_t)axis;
        }
        axes[k] = kept;
    }
    return oly_cuts_of(axes, product->n_contract);
}

/* The result split along each dimension in turn over axes that split neither operand: each device takes its part of
 * what all have. */
static void try_idle_axes(oly_chooser *c, const oly_unit *u, oly_cuts pairs, oly_cuts free, oly_candidates *list)
{
    oly_axis_list idle = {0}, axes[OLY_MAX_RANK];
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (!oly_cuts_byte(pairs | free, a))
            idle.axis[idle.n++] = (uint8_t)a;
    for (int e = 0; e < u->node->type.rank && idle.n > 0; e++) {
        oly_cuts_axes(c->mesh, free, axes, u->node->type.rank);
        oly_append_axes(&axes[e], &idle);
        try_product(c, u, pairs, oly_cuts_of(axes, u->node->type.rank), list);
    }
}

static void product_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, oly_candidates *list)
{
    const oly_contraction *product = u->product;
    oly_cuts free[2], pairs[3] = {0};
    for (int o = 0; o < 2; o++) {
        int8_t result[OLY_MAX_RANK], pair[OLY_MAX_RANK];
        oly_cuts cuts = seen(c, u, o, decided);
        memset(result, -1, sizeof result);
        memset(pair, -1, sizeof pair);
        for (int e = 0; e < u->node->in[o]->type.rank; e++)
            result[e] = (int8_t)u->dims->result[o][e];
        for (int k = 0; k < product->n_contract; k++)
            pair[product->contract[o][k]] = (int8_t)k;
        free[o] = oly_cuts_mapped(c->mesh, cuts, result);
        pairs[o] = oly_cuts_mapped(c->mesh, cuts, pair);
    }
    for (int s = 2; s >= 0; s--) {
        c->could_recut = c->could_recut || pairs[s];
        if ((s < 2 && pairs[s] == 0) || (s == 1 && pairs[1] == pairs[0]))
            continue;
        try_product(c, u, pairs[s], u->greedy.work, list);
        try_product(c, u, pairs[s], u->greedy.wanted, list);
        for (int o = 0; o < 2; o++) {
            try_product(c, u, pairs[s], oly_cuts_merged(c->mesh, free[o], free[1 - o]), list);
            try_product(c, u, pairs[s], free[o], list);
        }
        for (int k = 0; k < u->n_wants; k++)
            try_product(c, u, pairs[s], u->wants[k], list);
        for (int k = 0; k < u->n_demands; k++)
            try_product(c, u, pairs[s], u->demand[k].cuts, list);
        try_product(c, u, pairs[s], 0, list);
    }
    for (int o = 0; o < 2; o++) {
        bool both = shares_axes(c->mesh, pairs[o], free[1 - o]);
        oly_cuts idle = both ? with_idle_axes(c, u, pairs[o], free[0] | free[1]) : 0;
        if (idle && c->recutting)
            try_product(c, u, idle, oly_cuts_merged(c->mesh, free[1 - o], free[o]), list);
        if (pairs[o] && c->recutting && (o == 0 || pairs[0] != pairs[1]))
            try_idle_axes(c, u, pairs[o], oly_cuts_merged(c->mesh, free[0], free[1]), list);
    }
}

static void reduction_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, oly_candidates *list)
{
    oly_decision d = {0};
    oly_reduction_cuts(c, u, seen(c, u, 0, decided), &d);
    d.wanted = d.work;
    consider(c, u, d, list);
    d.wanted = u->greedy.wanted;
    consider(c, u, d, list);
    for (int k = 0; k < u->n_wants; k++) {
        d.wanted = u->wants[k];
        consider(c, u, d, list);
    }
    for (int k = 0; k < u->n_demands; k++) {
        d.wanted = u->demand[k].cuts;
        consider(c, u, d, list);
    }
    if (d.summed && c->scattering)
        try_scattered(c, u, d, false, list);
}

/* The result split like this: computed from the parts of the array where they are, and summed; or from an array that is
 * moved. */
static void try_lookup(oly_chooser *c, const oly_unit *u, oly_cuts summed, oly_cuts cuts, oly_candidates *list)
{
    cuts = fitting(c, u->node, cuts);
    consider(c, u, (oly_decision){cuts, 0, cuts, cuts}, list);
    if (!summed)
        return;
    oly_cuts work = oly_cuts_without(c->mesh, cuts, summed);
    consider(c, u, (oly_decision){work, summed, cuts, 0}, list);
    consider(c, u, (oly_decision){work, summed, work, 0}, list);
}

static void lookup_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, oly_candidates *list)
{
    oly_cuts all = 0, summed = 0;
    for (int k = 0; k < u->n_reads; k++) {
        const oly_unit_read *r = &c->reads[u->first_read + k];
        oly_cuts placed = oly_read_placement(r, decided), cuts = oly_lookup_seen(c, r, placed);
        if (r->operand == 0)
            summed = oly_lookup_summed(c, u, placed);
        try_lookup(c, u, summed, cuts, list);
        all = oly_cuts_merged(c->mesh, all, cuts);
    }
    try_lookup(c, u, summed, all, list);
    try_lookup(c, u, summed, u->greedy.wanted, list);
    for (int k = 0; k < u->n_wants; k++)
        try_lookup(c, u, summed, u->wants[k], list);
    for (int k = 0; k < u->n_demands; k++)
        try_lookup(c, u, summed, u->demand[k].cuts, list);
    try_lookup(c, u, summed, 0, list);
}

void oly_find_candidates(oly_chooser *c, const oly_unit *u, const oly_decided *decided, bool greedy,
                         oly_candidates *list)
{
    list->n = list->n_tried = 0;
    if (greedy)
        list->d[list->n++] = u->greedy;
    switch (u->kind) {
    case OLY_UNIT_GROUP:
        if (!greedy)
            list->d[list->n++] = u->greedy;
        group_candidates(c, u, decided, list);
        break;
    case OLY_UNIT_CONTRACT:
        if (!greedy)
            list->d[list->n++] = u->greedy;
        product_candidates(c, u, decided, list);
        break;
    case OLY_UNIT_REDUCE: reduction_candidates(c, u, decided, list); break;
    case OLY_UNIT_LOOKUP:
        if (!greedy)
            list->d[list->n++] = u->greedy;
        lookup_candidates(c, u, decided, list);
        break;
    }
}
