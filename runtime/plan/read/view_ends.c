/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of views. A region may extend beyond the ends of its value, as margins do; there it is clipped, or wraps.
 * Read through a view it would be clipped, or wrap, at the ends of the underlying array instead. So a view is read
 * through only if the region does not reach its ends or they are the array's too; otherwise it is copied first.
 * Called by operand_reads.c and gather_reads.c, so that every reader is covered. */
#include "plan/read/read.h"
#include "graph/view.h"

static int64_t spread_down(int64_t i, int64_t spread)
{
    return spread > 1 ? i / spread - (i % spread < 0) : i;
}

/* Does any device's box extend beyond elements [0, size)? */
static bool goes_beyond(const oly_region_dim *r, int64_t size)
{
    if (r->n == 0)
        return false;
    int64_t last = r->scale * (r->n - 1), spread = r->spread > 1 ? r->spread : 1;
    int64_t lo = (last < 0 ? last : 0) + r->lo, hi = (last < 0 ? 0 : last) + r->hi;
    return spread_down(lo + spread - 1, spread) < 0 || spread_down(hi, spread) >= size;
}

/* The same for one dimension: a view of n elements of a dimension of `size`. */
static bool sees_its_ends(const oly_region_dim *r, const oly_view_dim *v, int64_t n, int64_t size)
{
    int64_t first = v->start, last = v->start + v->step * (n - 1);
    if (r->spread > 1 && (v->start != 0 || v->step != 1))
        return false; /* the region divides indexes after the view has shifted them */
    if (!goes_beyond(r, n))
        return true;
    if (n == 0 || (r->wraps && v->step != 1 && v->step != -1))
        return false;
    return (first < last ? first : last) == 0 && (first < last ? last : first) == size - 1;
}

bool oly_sees_its_ends(const oly_node *n, const oly_region *r)
{
    int round;
    int64_t by;
    if (oly_ops[n->op].lowering != OLY_LOWER_VIEW)
        return !oly_is_cyclic_shift(n, &round, &by) || r->dim[round].wraps ||
               (r->dim[round].spread <= 1 && !goes_beyond(&r->dim[round], n->type.shape[round]));
    oly_view_dim dims[OLY_MAX_RANK];
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++)
        if (dims[d].from >= 0 &&
            !sees_its_ends(&r->dim[d], &dims[d], n->type.shape[d], n->in[0]->type.shape[dims[d].from]))
            return false;
    return true;
}

oly_status oly_keep_ends(oly_planner *p, oly_frame *f, oly_node *n, const oly_region *region)
{
    oly_region r = *region;
    for (;;) {
        oly_node *outer = oly_captured(f, n);
        if (outer) {
            n = outer;
            f = f->outer;
            continue;
        }
        const oly_value *v = oly_value_of(f, n);
        oly_node *inside = v->slot < 0 && !oly_find_replica(v, &r) ? oly_looks_at(f, n) : NULL;
        if (!inside)
            return OLY_OK;
        if (!oly_sees_its_ends(n, &r))
            return oly_keep_view(p, f, n);
        r = oly_view_region(n, &r);
        n = inside;
    }
}
