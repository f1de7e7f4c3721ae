/* Regions: boxes that devices need of a value. Arithmetic only; decisions are the same on every process. */
#include "plan/planner.h"
#include <string.h>

oly_region oly_region_of_layout(const oly_layout *l)
{
    oly_region r = {.mesh = l->mesh, .rank = l->rank};
    for (int d = 0; d < l->rank; d++)
        r.dim[d] = (oly_region_dim){.split = l->split[d], .n = l->shape[d], .scale = 1};
    return r;
}

/* Part `part` of one dimension of `size` elements. */
static void dim_range(const oly_region_dim *r, int64_t size, int64_t part, int64_t *lo, int64_t *hi)
{
    int64_t begin = oly_split_cut(&r->split, r->n, part), end = oly_split_cut(&r->split, r->n, part + 1);
    if (end <= begin) {
        *lo = *hi = 0;
        return;
    }
    int64_t lowest = r->scale < 0 ? end - 1 : begin, highest = r->scale < 0 ? begin : end - 1;
    int64_t a = r->scale * lowest + r->lo, b = r->scale * highest + r->hi + 1;
    *lo = a < 0 ? 0 : a;
    *hi = b > size ? size : b;
    if (*hi < *lo)
        *hi = *lo;
}

oly_box oly_region_box(const oly_region *r, const int64_t *shape, int position)
{
    int coordinates[OLY_MAX_RANK];
    oly_box b = {.rank = r->rank};
    bool empty = false;
    oly_mesh_coordinates(r->mesh, position, coordinates);
    for (int d = 0; d < r->rank; d++) {
        dim_range(&r->dim[d], shape[d], oly_split_part_at(&r->dim[d].split, r->mesh, coordinates), &b.lo[d], &b.hi[d]);
        empty = empty || b.hi[d] <= b.lo[d];
    }
    for (int d = 0; d < r->rank && empty; d++)
        b.hi[d] = b.lo[d];
    return b;
}

bool oly_region_equal(const oly_region *a, const oly_region *b)
{
    if (a->mesh != b->mesh || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++) {
        const oly_region_dim *x = &a->dim[d], *y = &b->dim[d];
        if (x->n != y->n || x->scale != y->scale || x->lo != y->lo || x->hi != y->hi ||
            !oly_split_equal(&x->split, &y->split, x->n))
            return false;
    }
    return true;
}

/* Are the axes of `outer` the first ones of `inner`? Then part k of inner lies in part k / ratio of outer. */
static bool axes_prefix(const oly_axis_list *outer, const oly_axis_list *inner)
{
    return outer->n <= inner->n && memcmp(outer->axis, inner->axis, outer->n) == 0;
}

static bool dim_inside(const oly_region_dim *r, const oly_split *s, int64_t size)
{
    if (s->parts == 1)
        return true;
    if (!axes_prefix(&s->axes, &r->split.axes))
        return false;
    int64_t ratio = r->split.parts / s->parts;
    for (int64_t k = 0; k < r->split.parts; k++) {
        int64_t lo, hi;
        dim_range(r, size, k, &lo, &hi);
        if (hi > lo && (lo < oly_split_cut(s, size, k / ratio) || hi > oly_split_cut(s, size, k / ratio + 1)))
            return false;
    }
    return true;
}

bool oly_region_inside_layout(const oly_region *r, const oly_layout *l)
{
    bool whole = true;
    for (int d = 0; d < l->rank; d++)
        whole = whole && l->split[d].parts == 1;
    if (whole && (l->mesh->everywhere || oly_mesh_same_devices(r->mesh, l->mesh)))
        return true;
    if (r->mesh != l->mesh)
        return false;
    for (int d = 0; d < l->rank; d++)
        if (!dim_inside(&r->dim[d], &l->split[d], l->shape[d]))
            return false;
    return true;
}

bool oly_region_inside_region(const oly_region *inner, const oly_region *outer)
{
    if (inner->mesh != outer->mesh || inner->rank != outer->rank)
        return false;
    for (int d = 0; d < inner->rank; d++) {
        const oly_region_dim *x = &inner->dim[d], *y = &outer->dim[d];
        if (x->n != y->n || x->scale != y->scale || x->lo < y->lo || x->hi > y->hi ||
            !oly_split_equal(&x->split, &y->split, x->n))
            return false;
    }
    return true;
}

bool oly_region_join(oly_region *hull, const oly_region *r)
{
    if (hull->mesh != r->mesh || hull->rank != r->rank)
        return false;
    for (int d = 0; d < r->rank; d++) {
        const oly_region_dim *x = &hull->dim[d], *y = &r->dim[d];
        if (x->n != y->n || x->scale != y->scale || !oly_split_equal(&x->split, &y->split, x->n))
            return false;
    }
    for (int d = 0; d < r->rank; d++) {
        oly_region_dim *x = &hull->dim[d];
        const oly_region_dim *y = &r->dim[d];
        x->lo = y->lo < x->lo ? y->lo : x->lo;
        x->hi = y->hi > x->hi ? y->hi : x->hi;
    }
    return true;
}
