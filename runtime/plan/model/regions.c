/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic on regions, the boxes that devices need of values. The results are the same on every process. */
#include "plan/model/planner.h"
#include <string.h>

void oly_region_from_layout(oly_region *r, const oly_layout *l)
{
    r->mesh = l->mesh;
    r->rank = l->rank; /* only the first `rank` dimensions are set */
    for (int d = 0; d < l->rank; d++)
        r->dim[d] = (oly_region_dim){.split = l->split[d], .n = l->shape[d], .scale = 1};
}

oly_region oly_region_of_layout(const oly_layout *l)
{
    oly_region r;
    oly_region_from_layout(&r, l);
    return r;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Part `part` of one dimension, without clipping. For an empty part the two ends cross. Both ends are monotonic in
 * the part: ascending, or descending for a negative scale. */
static void raw_range(const oly_region_dim *r, int64_t part, int64_t *lo, int64_t *hi)
{
    int64_t begin = oly_split_cut(&r->split, r->n, part), end = oly_split_cut(&r->split, r->n, part + 1);
    *lo = r->scale * (r->scale < 0 ? end - 1 : begin) + r->lo;
    *hi = r->scale * (r->scale < 0 ? begin : end - 1) + r->hi + 1;
    if (r->spread > 1) {
        *lo = floor_divide(*lo + r->spread - 1, r->spread);
        *hi = floor_divide(*hi - 1, r->spread) + 1;
    }
}

void oly_region_range(const oly_region_dim *r, int64_t size, int64_t part, int64_t *lo, int64_t *hi)
{
    int64_t begin = oly_split_cut(&r->split, r->n, part), end = oly_split_cut(&r->split, r->n, part + 1);
    if (end <= begin) {
        *lo = *hi = 0;
        return;
    }
    raw_range(r, part, lo, hi);
    *lo = *lo < 0 && !r->wraps ? 0 : *lo;
    *hi = *hi > size && !r->wraps ? size : *hi;
    if (*hi < *lo)
        *hi = *lo;
}

/* The number of parts that end at iteration i or before. */
static int64_t ended_at(const oly_region_dim *r, int64_t i)
{
    return i < 0 ? 0 : i >= r->n ? r->split.parts : oly_split_part_of(&r->split, r->n, i);
}

/* The first part, 0..parts, whose end (or beginning) is beyond i, counted in ascending direction. */
static int64_t first_beyond(const oly_region_dim *r, bool end, int64_t i)
{
    int64_t parts = r->split.parts, away = (r->spread > 1 ? i * r->spread : i) - (end ? r->hi : r->lo);
    if (r->scale == 0)
        return away < end ? 0 : parts;
    if (r->scale > 0)
        return end ? ended_at(r, -floor_divide(-away, r->scale))
                   : oly_split_first_beyond(&r->split, r->n, floor_divide(away, r->scale));
    if (end)
        return parts - oly_split_first_beyond(&r->split, r->n, -floor_divide(away - 1, -r->scale) - 1);
    return parts - ended_at(r, -floor_divide(away, -r->scale));
}

void oly_region_parts(const oly_region_dim *r, int64_t lo, int64_t hi, int *first, int *last)
{
    int64_t from = first_beyond(r, true, lo), to = first_beyond(r, false, hi - 1) - 1;
    *first = (int)(r->scale < 0 ? r->split.parts - 1 - to : from);
    *last = (int)(r->scale < 0 ? r->split.parts - 1 - from : to);
}

oly_box oly_region_box(const oly_region *r, const int64_t *shape, int position)
{
    int coordinates[OLY_MAX_RANK];
    oly_box b = {.rank = r->rank};
    bool empty = false;
    oly_mesh_coordinates(r->mesh, position, coordinates);
    for (int d = 0; d < r->rank; d++) {
        oly_region_range(&r->dim[d], shape[d], oly_split_part_at(&r->dim[d].split, r->mesh, coordinates), &b.lo[d],
                         &b.hi[d]);
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
        if (x->n != y->n || x->scale != y->scale || x->spread != y->spread || x->lo != y->lo || x->hi != y->hi ||
            x->wraps != y->wraps || !oly_split_equal(&x->split, &y->split, x->n))
            return false;
    }
    return true;
}

/* Are the axes of `outer` a prefix of those of `inner`? Then part k of inner is in part k / ratio of outer. */
static bool axes_prefix(const oly_axis_list *outer, const oly_axis_list *inner)
{
    return outer->n <= inner->n && memcmp(outer->axis, inner->axis, outer->n) == 0;
}

static bool part_inside(const oly_region_dim *r, const oly_split *s, int64_t size, int64_t part)
{
    int64_t lo, hi, outer = part / (r->split.parts / s->parts);
    if (part < 0 || part >= r->split.parts)
        return true;
    oly_region_range(r, size, part, &lo, &hi);
    return hi <= lo || (lo >= oly_split_cut(s, size, outer) && hi <= oly_split_cut(s, size, outer + 1));
}

/* Are both the same cuts of one base, r's possibly finer, after their offsets and steps? Then every part reads only
 * elements of its own part of the base. */
static bool same_place(const oly_region_dim *r, const oly_split *s)
{
    const oly_split *t = &r->split;
    return !r->wraps && r->spread <= 1 && t->base == s->base &&
           (t->parts == s->parts || t->base % (t->unit * t->parts) == 0) && t->unit == s->unit && r->lo == r->hi &&
           r->scale * s->step == t->step && s->start + r->lo * s->step == t->start;
}

/* The parts of r near which its range, or the cuts of s, change their pattern. Only these need checking. */
static void find_turns(const oly_region_dim *r, const oly_split *s, int64_t size, oly_turns *t)
{
    int64_t parts = r->split.parts;
    oly_split_turns(&r->split, r->n, 1, t);
    oly_split_turns(s, size, parts / s->parts, t);
    for (int k = 0; k < 4; k++) {
        int64_t part = first_beyond(r, k & 1, k & 2 ? size - 1 : 0);
        oly_turn_add(t, r->scale < 0 ? parts - 1 - part : part);
    }
}

static bool inside_around(const oly_region_dim *r, const oly_split *s, int64_t size, int64_t part, int64_t reach)
{
    int64_t ratio = r->split.parts / s->parts, outer = part / ratio;
    for (int64_t k = part - reach; k <= part + reach; k++)
        if (!part_inside(r, s, size, k))
            return false;
    for (int64_t k = outer - 1; k <= outer + 1 && ratio > 1; k++)
        if (!part_inside(r, s, size, k * ratio) || !part_inside(r, s, size, k * ratio + ratio - 1))
            return false;
    return true;
}

static bool dim_inside(const oly_region_dim *r, const oly_split *s, int64_t size)
{
    if (s->parts == 1 && !r->wraps)
        return true;
    if (!axes_prefix(&s->axes, &r->split.axes))
        return false;
    if (same_place(r, s))
        return true;
    if (r->split.parts > OLY_FEW_PARTS) {
        oly_turns t = {0};
        int64_t spread = r->spread > 1 ? r->spread : 1, period = oly_period_of(r->split.step * spread, s->step);
        bool known = period == 1 || (period <= OLY_FEW_PARTS && r->split.parts == s->parts);
        find_turns(r, s, size, &t);
        for (int k = 0; k < t.n; k++)
            if (!inside_around(r, s, size, t.at[k], known ? period : 1))
                return false;
        if (known)
            return true;
        if (r->split.parts > OLY_MANY_PARTS)
            return false; /* not decided: the transfer may turn out to be empty */
    }
    for (int64_t k = 0; k < r->split.parts; k++)
        if (!part_inside(r, s, size, k))
            return false;
    return true;
}

bool oly_region_inside_layout(const oly_region *r, const oly_layout *l)
{
    bool whole = true;
    for (int d = 0; d < l->rank; d++)
        whole = whole && l->split[d].parts == 1;
    for (int d = 0; d < l->rank; d++)
        whole = whole && !r->dim[d].wraps;
    if (whole && (l->mesh->everywhere || oly_mesh_same_devices(r->mesh, l->mesh)))
        return true;
    if (r->mesh != l->mesh)
        return false;
    for (int d = 0; d < l->rank; d++)
        if (!dim_inside(&r->dim[d], &l->split[d], l->shape[d]))
            return false;
    return true;
}

/* Does the region equal its split: no offset, scale or margin? */
static bool is_plain(const oly_region_dim *r)
{
    return r->scale == 1 && r->lo == 0 && r->hi == 0 && r->spread <= 1;
}

bool oly_region_inside_region(const oly_region *inner, const oly_region *outer)
{
    if (inner->mesh != outer->mesh || inner->rank != outer->rank)
        return false;
    for (int d = 0; d < inner->rank; d++) {
        const oly_region_dim *x = &inner->dim[d], *y = &outer->dim[d];
        if (is_plain(x) && is_plain(y) && x->n == y->n && dim_inside(x, &y->split, y->n))
            continue;
        if (x->n != y->n || x->scale != y->scale || x->spread != y->spread || x->lo < y->lo || x->hi > y->hi ||
            (x->wraps && !y->wraps) || !oly_split_equal(&x->split, &y->split, x->n))
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
        if (x->n != y->n || x->scale != y->scale || x->spread != y->spread ||
            !oly_split_equal(&x->split, &y->split, x->n))
            return false;
    }
    for (int d = 0; d < r->rank; d++) {
        oly_region_dim *x = &hull->dim[d];
        const oly_region_dim *y = &r->dim[d];
        x->lo = y->lo < x->lo ? y->lo : x->lo;
        x->hi = y->hi > x->hi ? y->hi : x->hi;
        x->wraps = x->wraps || y->wraps;
    }
    return true;
}
