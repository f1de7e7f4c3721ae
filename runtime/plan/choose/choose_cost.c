/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a decision: what moves from where, which sums cross devices, how much each device computes. Bytes are
 * counted as the plan would move them, box by box, without what a device already has. See chooser.h. */
#include "plan/choose/chooser.h"
#include <string.h>

/* -- cuts ---------------------------------------------------------------------------------------------------------- */

oly_cuts oly_cuts_of(const oly_axis_list *axes, int rank)
{
    oly_cuts c = 0;
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < axes[d].n; k++)
            c |= (oly_cuts)((d + 1) << 4 | k) << (8 * axes[d].axis[k]);
    return c;
}

void oly_cuts_axes(oly_mesh mesh, oly_cuts c, oly_axis_list *axes, int rank)
{
    memset(axes, 0, sizeof *axes * (size_t)rank);
    for (int a = 0; a < mesh->n_axes && c >> (8 * a); a++) {
        int byte = oly_cuts_byte(c, a), d = (byte >> 4) - 1;
        if (byte == 0 || d >= rank)
            continue;
        axes[d].axis[byte & 15] = (uint8_t)a;
        axes[d].n++;
    }
}

int oly_cuts_parts(oly_mesh mesh, oly_cuts c)
{
    int parts = 1;
    for (int a = 0; a < mesh->n_axes; a++)
        if (oly_cuts_byte(c, a))
            parts *= mesh->size[a];
    return parts;
}

oly_cuts oly_cuts_mapped(oly_mesh mesh, oly_cuts c, const int8_t *to)
{
    oly_cuts mapped = 0;
    for (int a = 0; a < mesh->n_axes && c >> (8 * a); a++) {
        int byte = oly_cuts_byte(c, a), d = (byte >> 4) - 1;
        if (byte && to[d] >= 0)
            mapped |= (oly_cuts)((to[d] + 1) << 4 | (byte & 15)) << (8 * a);
    }
    return mapped;
}

/* May the axis of byte `b` be appended to its dimension in c? Only if the axes there are those of `like`. */
static bool goes_behind(oly_mesh mesh, oly_cuts c, oly_cuts like, int b)
{
    int n = 0;
    for (int a = 0; a < mesh->n_axes; a++) {
        int mine = oly_cuts_byte(c, a);
        if (mine >> 4 != b >> 4)
            continue;
        if (mine != oly_cuts_byte(like, a))
            return false;
        n++;
    }
    return n == (b & 15);
}

oly_cuts oly_cuts_merged(oly_mesh mesh, oly_cuts a, oly_cuts b)
{
    oly_cuts c = a;
    if (a == 0 || b == 0 || a == b)
        return a | b;
    for (int k = 0; k < mesh->n_axes; k++) /* an axis may be appended only after those before it */
        for (int axis = 0; axis < mesh->n_axes; axis++) {
            int byte = oly_cuts_byte(b, axis);
            if ((byte & 15) == k && byte && !oly_cuts_byte(c, axis) && goes_behind(mesh, c, b, byte))
                c |= (oly_cuts)byte << (8 * axis);
        }
    return c;
}

oly_cuts oly_cuts_without(oly_mesh mesh, oly_cuts c, oly_cuts used)
{
    if (used == 0)
        return c;
    oly_axis_list x[OLY_MAX_RANK];
    oly_cuts_axes(mesh, c, x, OLY_MAX_RANK);
    for (int d = 0; d < OLY_MAX_RANK; d++)
        for (int k = 0; k < x[d].n; k++)
            if (oly_cuts_byte(used, x[d].axis[k]))
                x[d].n = (uint8_t)k;
    return oly_cuts_of(x, OLY_MAX_RANK);
}

/* -- movements ----------------------------------------------------------------------------------------------------- */

/* All positions, or for a large mesh a pseudo-random sample that is the same on every process. */
void oly_chooser_sample(oly_chooser *c, int *sample)
{
    int n = c->mesh->n_devices;
    c->n_sample = n < OLY_CHOOSE_SAMPLE ? n : OLY_CHOOSE_SAMPLE;
    int apart = n / c->n_sample;
    for (int k = 0; k < c->n_sample; k++) {
        int coordinates[OLY_MAX_RANK], first = (int)((int64_t)k * n / c->n_sample);
        /* unevenly: steps of a multiple of an axis would see one coordinate only */
        oly_mesh_coordinates(c->mesh, first + (int)((uint64_t)k * 2654435761u % (uint64_t)apart), coordinates);
        for (int a = 0; a < c->mesh->n_axes; a++)
            sample[k * OLY_CHOOSE_AXES + a] = coordinates[a];
    }
    c->coordinates = sample;
    c->scale = (double)n / c->n_sample;
}

/* The balanced cuts of one dimension. */
typedef struct dimension {
    int n_axes, parts;
    int axis[OLY_CHOOSE_AXES], size[OLY_CHOOSE_AXES];
    int64_t each, more;
} dimension;

static void cut_dimensions(const oly_chooser *c, const int64_t *shape, int rank, oly_cuts cuts, dimension *dims)
{
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(c->mesh, cuts, axes, rank);
    for (int d = 0; d < rank; d++) {
        dims[d].parts = 1;
        dims[d].n_axes = axes[d].n;
        for (int j = 0; j < axes[d].n; j++) {
            dims[d].axis[j] = axes[d].axis[j];
            dims[d].size[j] = c->mesh->size[axes[d].axis[j]];
            dims[d].parts *= dims[d].size[j];
        }
        dims[d].each = shape[d] / dims[d].parts;
        dims[d].more = shape[d] % dims[d].parts;
    }
}

/* [lo, hi) of the elements at a position. */
static void block(const dimension *d, const int *coordinates, int64_t *lo, int64_t *hi)
{
    int64_t k = 0;
    for (int j = 0; j < d->n_axes; j++)
        k = k * d->size[j] + coordinates[d->axis[j]];
    *lo = k * d->each + (k < d->more ? k : d->more);
    *hi = *lo + d->each + (k < d->more);
}

/* Is the intersection of both cuts the same number of elements at every position? Then it is the smaller of the two
 * blocks. */
static bool is_nested(const dimension *x, const dimension *y)
{
    int n = x->n_axes < y->n_axes ? x->n_axes : y->n_axes;
    return x->more == 0 && y->more == 0 && memcmp(x->axis, y->axis, sizeof *x->axis * (size_t)n) == 0;
}

static bool count_alike(const dimension *x, const dimension *y, int rank, double *moved)
{
    double wanted = 1, there = 1;
    for (int d = 0; d < rank; d++) {
        if (!is_nested(&x[d], &y[d]))
            return false;
        wanted *= (double)y[d].each;
        there *= (double)(x[d].each < y[d].each ? x[d].each : y[d].each);
    }
    *moved = wanted - there;
    return true;
}

static int64_t overlap(int64_t lo, int64_t hi, int64_t low, int64_t high)
{
    lo = lo > low ? lo : low;
    hi = hi < high ? hi : high;
    return hi > lo ? hi - lo : 0;
}

/* The read is cyclically shifted by `shift` along dimension `rolled`; with `beside`, only elements not present without
 * the shift count. */
typedef struct rolling {
    int rolled;
    bool beside;
    int64_t shift;
} rolling;

static void roll_block(const rolling *how, int64_t n, int64_t *lo, int64_t *hi)
{
    int64_t shift = how->shift, each = *hi - *lo, from = *lo + shift;
    if (how->beside && 2 * shift <= n)
        from = from < *hi ? *hi : from;
    *hi += shift;
    *lo = from;
    if (how->beside && 2 * shift > n && n - shift < each)
        *hi = *lo + (n - shift);
}

static double count(const oly_chooser *c, const int64_t *shape, int rank, oly_cuts from, oly_cuts to,
                    const rolling *how)
{
    dimension x[OLY_MAX_RANK], y[OLY_MAX_RANK];
    double moved = 0;
    cut_dimensions(c, shape, rank, from, x);
    cut_dimensions(c, shape, rank, to, y);
    if ((how->shift == 0 || (x[how->rolled].parts == 1 && !how->beside)) && count_alike(x, y, rank, &moved))
        return moved * c->mesh->n_devices;
    for (int k = 0; k < c->n_sample; k++) {
        double wanted = 1, there = 1;
        const int *at = &c->coordinates[k * OLY_CHOOSE_AXES];
        for (int d = 0; d < rank; d++) {
            int64_t lo, hi, low, high;
            block(&y[d], at, &lo, &hi);
            bool rolls = how->shift && d == how->rolled;
            if (rolls)
                roll_block(how, shape[d], &lo, &hi);
            wanted *= (double)(hi - lo);
            if (x[d].parts > 1) {
                block(&x[d], at, &low, &high);
                there *= (double)(overlap(lo, hi, low, high) +
                                  (rolls ? overlap(lo - shape[d], hi - shape[d], low, high) : 0));
            } else {
                there *= hi > lo ? (double)(hi - lo) : 0;
            }
        }
        moved += wanted - there;
    }
    return moved * c->scale;
}

static double elements_moved(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to, rolling how)
{
    if ((from == to && how.shift == 0) || from == 0)
        return 0;
    int64_t way = 4 * (how.shift * OLY_MAX_RANK + how.rolled) + how.beside;
    uint64_t h = (from * 0x9e3779b97f4a7c15u) ^ (to * 0xc2b2ae3d27d4eb4fu) ^
                 ((uint64_t)(uint32_t)n->index + (uint64_t)way) * 0x165667b19e3779f9u;
    h = (h ^ h >> 29) >> 8 & (sizeof c->memory / sizeof *c->memory - 1);
    if (c->memory[h].node != n || c->memory[h].from != from || c->memory[h].to != to || c->memory[h].way != way) {
        c->memory[h].node = n;
        c->memory[h].from = from;
        c->memory[h].to = to;
        c->memory[h].way = way;
        c->memory[h].elements = count(c, n->type.shape, n->type.rank, from, to, &how);
    }
    return c->memory[h].elements;
}

double oly_elements_moved(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to)
{
    return elements_moved(c, n, from, to, (rolling){0});
}

oly_layout oly_cuts_layout(const oly_chooser *c, const oly_type *type, oly_cuts cuts)
{
    oly_layout l = {.mesh = c->mesh, .rank = type->rank};
    oly_axis_list axes[OLY_MAX_RANK];
    oly_cuts_axes(c->mesh, cuts, axes, type->rank);
    for (int d = 0; d < type->rank; d++) {
        l.shape[d] = type->shape[d];
        l.split[d] = oly_split_canonical(c->mesh, &axes[d], l.shape[d]);
    }
    return l;
}

oly_cuts oly_layout_cuts(const oly_layout *l)
{
    oly_axis_list axes[OLY_MAX_RANK];
    for (int d = 0; d < l->rank; d++)
        axes[d] = l->split[d].axes;
    return oly_cuts_of(axes, l->rank);
}

/* Messages of a device overlap: the latency grows with about the logarithm of their number. */
static double stages(double members)
{
    int n = 0;
    while ((double)(UINT64_C(1) << n) < members)
        n++;
    return n;
}

void oly_add_transfer(const oly_chooser *c, double bytes, oly_cuts over, int times, oly_cost_sum *cost)
{
    oly_level level = OLY_LEVEL_PROCESS;
    double members = 1;
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (oly_cuts_byte(over, a)) {
            level = c->level[a] > level ? c->level[a] : level;
            members *= c->mesh->size[a];
        }
    cost->wire += bytes;
    cost->collectives++;
    cost->seconds += oly_cost_choice(level, bytes / c->mesh->n_devices, times * stages(members));
}

/* Adds the transfer of these elements between the two layouts. */
static void add_elements(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to, double elements,
                         oly_cost_sum *cost)
{
    oly_cuts differ = 0;
    if (elements <= 0)
        return;
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (oly_cuts_byte(from, a) != oly_cuts_byte(to, a))
            differ |= (oly_cuts)1 << (8 * a);
    oly_add_transfer(c, elements * (double)oly_dtype_size(n->type.dtype), differ ? differ : from, 1, cost);
}

void oly_add_movement(oly_chooser *c, const oly_node *n, oly_cuts from, oly_cuts to, oly_cost_sum *cost)
{
    add_elements(c, n, from, to, oly_elements_moved(c, n, from, to), cost);
}

/* -- a unit -------------------------------------------------------------------------------------------------------- */

oly_cuts oly_read_placement(const oly_unit_read *r, const oly_decided *decided)
{
    return r->source >= 0 ? oly_decided_at(decided, r->source)->placed : r->fixed;
}

oly_cuts oly_read_needs(const oly_chooser *c, const oly_unit *u, const oly_unit_read *r, const oly_decision *d)
{
    if (u->kind == OLY_UNIT_GROUP)
        return oly_cuts_mapped(c->mesh, d->work, r->to);
    return oly_cuts_mapped(c->mesh, d->work, r->free) | oly_cuts_mapped(c->mesh, d->summed, r->pair);
}

/* The rule of oly_place_reduction. */
void oly_settle_sum(oly_chooser *c, const oly_unit *u, oly_decision *d)
{
    oly_axis_list work[OLY_MAX_RANK], wanted[OLY_MAX_RANK], summed = {0};
    int n_more = 0, rank = u->node->type.rank;
    d->placed = d->work;
    if (d->wanted == d->work || oly_cuts_parts(c->mesh, d->summed) == 1)
        return;
    for (int a = 0; a < c->mesh->n_axes; a++)
        if (oly_cuts_byte(d->summed, a))
            summed.axis[summed.n++] = (uint8_t)a;
    oly_cuts_axes(c->mesh, d->work, work, rank);
    oly_cuts_axes(c->mesh, d->wanted, wanted, rank);
    for (int k = 0; k < rank; k++) {
        bool extends = wanted[k].n > work[k].n && memcmp(wanted[k].axis, work[k].axis, work[k].n) == 0;
        for (int j = work[k].n; j < wanted[k].n; j++)
            extends = extends && oly_cuts_byte(d->summed, wanted[k].axis[j]);
        if (!extends)
            continue;
        n_more += wanted[k].n - work[k].n;
        work[k] = wanted[k];
    }
    oly_cuts target = oly_cuts_of(work, rank);
    if (n_more == summed.n && oly_elements_moved(c, u->node, d->work, target) <= 0)
        d->placed = target;
}

enum { MOST_OTHERS = 24 };

/* Does this unit, or an earlier one, also read the value without the shift, in the same layout? Then both reads come in
 * one box. */
static bool is_beside(oly_chooser *c, const oly_unit_read *r, oly_cuts needs, const oly_decided *decided)
{
    const oly_unit *u = &c->units[r->unit];
    for (int k = u->first_read; k < u->first_read + u->n_reads; k++)
        if (c->reads[k].root == r->root && (c->reads[k].shift == 0 || &c->reads[k] < r))
            return true;
    for (int k = r->previous, n = 0; k >= 0 && n < MOST_OTHERS; k = c->reads[k].previous, n++) {
        const oly_unit_read *o = &c->reads[k];
        if (o->root == r->root && o->unit != r->unit && c->units[o->unit].kind == OLY_UNIT_GROUP &&
            oly_read_needs(c, &c->units[o->unit], o, oly_decided_at(decided, o->unit)) == needs)
            return true;
    }
    return false;
}

/* Elements moved for this read; without_rolls: no elements of neighbours for the shift. */
static double read_elements(oly_chooser *c, const oly_unit_read *r, oly_cuts placed, oly_cuts needs,
                            const oly_decided *decided)
{
    rolling how = {.rolled = r->rolled, .shift = c->without_rolls ? 0 : r->shift};
    how.beside = how.shift && is_beside(c, r, needs, decided);
    return elements_moved(c, r->root, placed, needs, how);
}

/* Has the value been moved to where it is needed for an earlier reader? */
static bool is_brought(oly_chooser *c, const oly_unit_read *r, oly_cuts needs, const oly_decided *decided,
                       const oly_decision *d)
{
    int looked_at = 0;
    for (int k = r->previous; k >= 0 && looked_at < MOST_OTHERS; k = c->reads[k].previous, looked_at++) {
        const oly_unit_read *other = &c->reads[k];
        const oly_unit *u = &c->units[other->unit];
        if (other->root != r->root || !u->trusted || u->kind == OLY_UNIT_REDUCE || other->shift != r->shift ||
            other->rolled != r->rolled)
            continue;
        oly_cuts had = oly_read_needs(c, u, other, other->unit == r->unit ? d : oly_decided_at(decided, other->unit));
        if (oly_elements_moved(c, r->root, had, needs) <= 0)
            return true;
    }
    return false;
}

/* Or is it demanded there anyway? */
static bool is_wanted(oly_chooser *c, const oly_unit_read *r, oly_cuts needs)
{
    const oly_unit *source = r->source >= 0 ? &c->units[r->source] : NULL;
    if (r->shift)
        return false;
    const oly_unit_want *wanted = source ? source->demand : c->brought;
    for (int k = 0; k < (source ? source->n_demands : c->n_brought); k++)
        if (wanted[k].node == r->root && oly_elements_moved(c, r->root, wanted[k].cuts, needs) <= 0)
            return true;
    /* copies may exist there: assumed only in favour of propagation's layouts */
    const oly_unit *u = &c->units[r->unit];
    return c->as_propagated && c->elsewhere[r->entry] && needs == oly_read_needs(c, u, r, &u->greedy);
}

static double total_elements(const oly_chooser *c, const oly_node *n, oly_cuts cuts)
{
    return (double)oly_type_size(&n->type) * c->mesh->n_devices / oly_cuts_parts(c->mesh, cuts);
}

static void add_sum(oly_chooser *c, const oly_unit *u, const oly_decision *d, oly_cost_sum *cost)
{
    int members = oly_cuts_parts(c->mesh, d->summed);
    if (members == 1)
        return;
    double bytes = (double)oly_dtype_size(u->node->type.dtype);
    if (d->placed != d->work)
        bytes *= (members - 1) * total_elements(c, u->node, d->placed);
    else
        bytes *= 2.0 * (members - 1) / members * total_elements(c, u->node, d->work) *
                 (oly_may_defer(c, u, d) ? u->deferred : 1);
    oly_add_transfer(c, bytes, d->summed, d->placed != d->work ? 1 : 2, cost);
    cost->sums += u->kind != OLY_UNIT_LOOKUP;
}

/* A read from a graph around is moved once, before the loop or branch: for a body that runs n times its cost is divided
 * by n. */
static void add_read(oly_chooser *c, const oly_unit_read *r, oly_cuts placed, oly_cuts needs, double elements,
                     bool shared, oly_cost_sum *cost)
{
    oly_cost_sum once = {0};
    if (c->without_outer && r->owner != c)
        return;
    add_elements(c, r->root, placed, needs, elements, &once);
    if (shared) {
        once.seconds /= c->n_readers[r->entry];
        once.wire /= c->n_readers[r->entry];
        once.collectives /= c->n_readers[r->entry];
    }
    for (const oly_chooser *at = c; at != r->owner; at = at->outer) {
        once.seconds /= at->times.seconds;
        once.wire /= at->times.wire;
        once.collectives /= at->times.wire;
    }
    cost->seconds += once.seconds;
    cost->wire += once.wire;
    cost->movements += once.collectives;
}

oly_cost_sum oly_unit_cost(oly_chooser *c, int unit, const oly_decided *decided, const oly_decision *d)
{
    const oly_unit *u = &c->units[unit];
    oly_cost_sum cost = {0};
    for (int k = 0; k < u->n_reads && u->kind != OLY_UNIT_REDUCE; k++) {
        const oly_unit_read *r = &c->reads[u->first_read + k];
        oly_cuts placed = oly_read_placement(r, decided), needs = oly_read_needs(c, u, r, d);
        bool shared = c->sharing && c->n_readers[r->entry] >= OLY_CHOOSE_SHARED;
        double elements = r->anywhere ? 0 : read_elements(c, r, placed, needs, decided);
        if (elements > 0 && (shared || !is_brought(c, r, needs, decided, d)) && !is_wanted(c, r, needs))
            add_read(c, r, placed, needs, elements, shared, &cost);
    }
    add_sum(c, u, d, &cost);
    oly_add_margins(c, u, d, &cost);
    for (int k = 0; k < u->n_demands; k++) {
        bool again = false;
        for (int j = 0; j < k; j++)
            again = again || (u->demand[j].node == u->demand[k].node && u->demand[j].cuts == u->demand[k].cuts);
        if (!again)
            oly_add_movement(c, u->demand[k].node, d->placed, u->demand[k].cuts, &cost);
    }
    int parts = oly_decision_parts(c->mesh, d);
    cost.seconds += u->work / parts;
    if (parts < u->allowed && u->kind != OLY_UNIT_REDUCE)
        cost.excess = u->work / parts - u->work / u->allowed;
    return cost;
}

oly_cost_sum oly_brought_cost(oly_chooser *c)
{
    oly_cost_sum cost = {0};
    for (int k = 0; k < c->n_brought; k++) {
        oly_cuts placed;
        if (oly_placed_now(c, c->brought[k].node, &placed))
            oly_add_movement(c, c->brought[k].node, placed, c->brought[k].cuts, &cost);
    }
    return cost;
}
