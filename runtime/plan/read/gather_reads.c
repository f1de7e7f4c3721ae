/* SPDX-License-Identifier: BSD-3-Clause */
/* Combines the reads of several steps: the regions that they read of a value are joined to one box per device, and
 * one exchange fills these boxes. Only the parts that are read are transferred (no corners if a stencil reads none).
 * Called by lowering before it requests its operands. */
#include "plan/move/move.h"
#include "plan/read/read.h"
#include "plan/reduce/reduce.h"
#include "core/optimisation.h"
#include <string.h>

/* -- gathering ------------------------------------------------------------------------------------------------------- */

/* Follows views and captures to the value in memory; NULL for constants. */
static oly_node *chase(oly_frame **f, oly_node *n, oly_region *r)
{
    for (;;) {
        oly_node *outer = oly_captured(*f, n);
        if (outer) {
            n = outer;
            *f = (*f)->outer;
        } else if (oly_looks_at(*f, n) && !oly_value_of(*f, n)->replicas) {
            *r = oly_view_region(n, r);
            n = oly_looks_at(*f, n);
        } else {
            return oly_is_constant(n) ? NULL : n;
        }
    }
}

/* A value in memory, and the parts of it that will be read. */
typedef struct root {
    oly_frame *frame;
    oly_node *node;
    oly_region hull;
    int n_parts;
    oly_region *parts;
} root;

/* Joins a part to the box, unless the gap between them is larger than a device's block. */
static bool join(root *r, const oly_region *part)
{
    oly_region hull = r->hull;
    if (!oly_region_join(&hull, part))
        return false;
    for (int d = 0; d < hull.rank; d++) {
        const oly_region_dim *a = &r->hull.dim[d], *b = &part->dim[d], *h = &hull.dim[d];
        int64_t gap = h->hi - h->lo - (a->hi - a->lo) - (b->hi - b->lo), scale = h->scale < 0 ? -h->scale : h->scale;
        if (gap > scale * (h->n / h->split.parts + 1))
            return false;
    }
    r->hull = hull;
    return true;
}

/* Adds a part, unless one already there contains it. */
static void add_part(root *r, const oly_region *part)
{
    int kept = 0;
    for (int k = 0; k < r->n_parts; k++)
        if (oly_region_inside_region(part, &r->parts[k]))
            return;
    for (int k = 0; k < r->n_parts; k++)
        if (!oly_region_inside_region(&r->parts[k], part))
            r->parts[kept++] = r->parts[k];
    r->parts[kept] = *part;
    r->n_parts = kept + 1;
}

static oly_wanted wanted_of(const root *r)
{
    if (!oly_enabled(OLY_OPTIMISATION_CORNER_ELIMINATION))
        return (oly_wanted){0};
    for (int k = 0; k < r->n_parts; k++)
        if (oly_region_inside_region(&r->hull, &r->parts[k]))
            return (oly_wanted){0};
    return (oly_wanted){r->n_parts, r->parts};
}

/* Do the value's replicas have every part already? */
static bool is_there(const oly_value *v, const root *r)
{
    for (int k = 0; k < r->n_parts; k++)
        if (!oly_find_replica(v, &r->parts[k]))
            return false;
    return true;
}

/* Values of one frame whose elements have the same size share an exchange. */
static oly_status fetch_together(oly_planner *p, int n, root *roots)
{
    oly_movement *movements = OLY_PLAN_NEW(p, oly_movement, n + 1);
    OLY_PLAN_CHECK(movements);
    for (int first = 0; first < n; first++) {
        int n_movements = 0;
        if (!roots[first].node)
            continue;
        for (int j = first; j < n; j++) {
            root *r = &roots[j];
            oly_value *v = r->node ? oly_value_of(r->frame, r->node) : NULL;
            if (!v || r->frame != roots[first].frame ||
                oly_dtype_size(r->node->type.dtype) != oly_dtype_size(roots[first].node->type.dtype))
                continue;
            if (!is_there(v, r)) {
                oly_wanted wanted = wanted_of(r);
                int slot = oly_slot_new(p, &r->hull, oly_dtype_size(r->node->type.dtype));
                if (slot < 0)
                    return OLY_MEMORY;
                movements[n_movements++] = (oly_movement){r->node, v->layout, v->slot, &r->hull, slot, wanted, false};
                OLY_TRY(oly_add_replica(p, v, &r->hull, &wanted, slot));
            }
            if (j > first)
                r->node = NULL; /* done */
        }
        OLY_TRY(oly_plan_moves(p, roots[first].frame->block, n_movements, movements));
    }
    return OLY_OK;
}

/* Is the region split over the same axes as the value? */
static bool is_near(const oly_region *r, const oly_layout *l)
{
    bool same = r->mesh == l->mesh;
    for (int d = 0; d < l->rank && same; d++)
        same = oly_axis_list_equal(&r->dim[d].split.axes, &l->split[d].axes);
    return same;
}

/* Does every device read exactly its own block of the operand? This is the common case, so it is tested first. */
static bool placed_there(oly_frame *f, const oly_node *n, const oly_region *r)
{
    const oly_value *v = oly_value_of(f, n);
    const oly_layout *l = v->layout;
    if (oly_is_constant(n) || (oly_ops[n->op].lowering == OLY_LOWER_VIEW && oly_is_constant(n->in[0])))
        return true;
    if (v->slot < 0 || !l || l->mesh != r->mesh || l->rank != r->rank)
        return false;
    for (int d = 0; d < r->rank; d++) {
        const oly_region_dim *x = &r->dim[d];
        const oly_split *a = &x->split, *b = &l->split[d];
        if (x->n != l->shape[d] || x->scale != 1 || x->lo != 0 || x->hi != 0 || x->spread > 1 || x->wraps ||
            a->base != b->base || a->unit != b->unit || a->start != b->start || a->step != b->step ||
            !oly_axis_list_equal(&a->axes, &b->axes))
            return false;
    }
    return true;
}

/* A region with other axes that only one step reads is left until it is read. */
static void leave_single(root *roots, int *n)
{
    int kept = 0;
    for (int j = 0; j < *n; j++)
        if (roots[j].n_parts > 1 || is_near(&roots[j].hull, oly_value_of(roots[j].frame, roots[j].node)->layout))
            roots[kept++] = roots[j];
    *n = kept;
}

static oly_status prepare(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes, const oly_region *regions,
                          bool neighbours)
{
    root *roots = NULL; /* usually none is needed */
    int n_roots = 0;
    for (int k = 0; k < n; k++) {
        oly_frame *at = f;
        if (placed_there(f, nodes[k], &regions[k]))
            continue;
        OLY_TRY(oly_keep_ends(p, f, nodes[k], &regions[k]));
        oly_region r = regions[k];
        oly_node *found = chase(&at, nodes[k], &r);
        const oly_value *v = found ? oly_value_of(at, found) : NULL;
        if (!v || v->slot < 0 || oly_region_inside_layout(&r, v->layout))
            continue;
        int j = 0;
        while (j < n_roots && !(roots[j].node == found && join(&roots[j], &r)))
            j++;
        if (j == n_roots) {
            roots = roots ? roots : OLY_PLAN_NEW(p, root, n + 1);
            OLY_PLAN_CHECK(roots);
            roots[n_roots++] = (root){at, found, r, 0, OLY_PLAN_NEW(p, oly_region, 2 * n)};
            OLY_PLAN_CHECK(roots[j].parts);
        }
        add_part(&roots[j], &r);
    }
    for (int k = 0; k < n && n_roots > 0;
         k++) { /* parts that need no transfer are joined too, so that one copy serves all */
        oly_frame *at = f;
        oly_region r = regions[k];
        oly_node *found = chase(&at, nodes[k], &r);
        for (int j = 0; found && j < n_roots; j++)
            if (roots[j].node == found && join(&roots[j], &r))
                add_part(&roots[j], &r);
    }
    if (neighbours)
        leave_single(roots, &n_roots);
    for (int j = 0; j < n_roots; j++)
        OLY_TRY(oly_reduce_now(p, roots[j].frame, roots[j].node));
    return n_roots > 0 ? fetch_together(p, n_roots, roots) : OLY_OK;
}

oly_status oly_reserve_reads(oly_planner *p, int most)
{
    if (most <= p->read_capacity)
        return OLY_OK;
    most = most > 2 * p->read_capacity ? most : 2 * p->read_capacity;
    p->read = oly_arena_take_raw(&p->plan->arena, sizeof(oly_node *) * (size_t)most);
    p->read_regions = oly_arena_take_raw(&p->plan->arena, sizeof(oly_region) * (size_t)most);
    OLY_PLAN_CHECK(p->read);
    OLY_PLAN_CHECK(p->read_regions);
    p->read_capacity = most;
    return OLY_OK;
}

oly_status oly_gather_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes, const oly_region *regions)
{
    return oly_enabled(OLY_OPTIMISATION_EXCHANGE_MERGING) ? prepare(p, f, n, nodes, regions, false) : OLY_OK;
}

oly_status oly_gather_neighbour_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes,
                                      const oly_region *regions)
{
    return oly_enabled(OLY_OPTIMISATION_EXCHANGE_MERGING) ? prepare(p, f, n, nodes, regions, true) : OLY_OK;
}
