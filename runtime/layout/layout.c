/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits, layouts and boxes: pure arithmetic. See layout.h. */
#include "layout/layout.h"
#include "core/min_max.h"
#include <string.h>

/* Balanced: sizes differ by at most one, larger first. */
static int64_t balanced_cut(int64_t n, int64_t parts, int64_t k)
{
    return k * (n / parts) + oly_smaller(k, n % parts);
}

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

int64_t oly_split_cut(const oly_split *s, int64_t n, int64_t k)
{
    if (k <= 0)
        return 0;
    if (k >= s->parts)
        return n;
    int64_t cut = s->unit == 1 ? balanced_cut(s->base, s->parts, k) /* divisions dominate the cost */
                               : balanced_cut(s->base / s->unit, s->parts, k) * s->unit;
    cut -= s->start;
    return oly_smaller(oly_larger(s->step == 1 ? cut : ceil_divide(cut, s->step), 0), n);
}

oly_split oly_split_canonical(oly_mesh mesh, const oly_axis_list *axes, int64_t n)
{
    oly_split s = oly_split_whole(n);
    for (int k = 0; k < axes->n; k++)
        if (mesh->size[axes->axis[k]] > 1) /* axes of size 1 split nothing */
            s.axes.axis[s.axes.n++] = axes->axis[k];
    s.parts = oly_axis_list_parts(mesh, &s.axes);
    return s;
}

oly_split oly_split_whole(int64_t n)
{
    return (oly_split){.parts = 1, .base = n, .unit = 1, .start = 0, .step = 1};
}

int oly_split_first_beyond(const oly_split *s, int64_t n, int64_t i)
{
    return i < 0 ? 0 : i >= n ? s->parts : oly_split_part_of(s, n, i) + 1;
}

void oly_turn_add(oly_turns *t, int64_t part)
{
    for (int k = 0; k < t->n; k++)
        if (t->at[k] == part)
            return;
    t->at[t->n++] = part;
}

void oly_split_turns(const oly_split *s, int64_t n, int64_t ratio, oly_turns *t)
{
    oly_turn_add(t, 0);
    oly_turn_add(t, s->base / s->unit % s->parts * ratio);
    oly_turn_add(t, oly_split_first_beyond(s, n, 0) * ratio);
    oly_turn_add(t, oly_split_first_beyond(s, n, n - 1) * ratio);
    oly_turn_add(t, (int64_t)s->parts * ratio);
}

int64_t oly_period_of(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x <= 0 || a > OLY_FEW_PARTS || b / x > OLY_FEW_PARTS ? OLY_FEW_PARTS + 1 : a * (b / x);
}

bool oly_split_equal(const oly_split *a, const oly_split *b, int64_t n)
{
    if (a->parts != b->parts || a->axes.n != b->axes.n || memcmp(a->axes.axis, b->axes.axis, a->axes.n) != 0)
        return false;
    if (a->parts == 1 || (a->base == b->base && a->unit == b->unit && a->start == b->start && a->step == b->step))
        return true;
    if (a->parts > OLY_FEW_PARTS) {
        oly_turns t = {0};
        int64_t period = oly_period_of(a->step, b->step), reach = period <= OLY_FEW_PARTS ? period : 1;
        oly_split_turns(a, n, 1, &t);
        oly_split_turns(b, n, 1, &t);
        for (int k = 0; k < t.n; k++)
            for (int64_t at = t.at[k] - 1; at <= t.at[k] + reach; at++)
                if (oly_split_cut(a, n, at) != oly_split_cut(b, n, at))
                    return false;
        if (period <= OLY_FEW_PARTS)
            return true;
        if (a->parts > OLY_MANY_PARTS)
            return false; /* comparing cut by cut would cost more than an empty transfer */
    }
    for (int k = 1; k < a->parts; k++)
        if (oly_split_cut(a, n, k) != oly_split_cut(b, n, k))
            return false;
    return true;
}

oly_split oly_split_sliced(const oly_split *s, int64_t start, int64_t step)
{
    oly_split r = *s;
    r.start = s->start + start * s->step;
    r.step = s->step * step;
    return r;
}

oly_split oly_split_embedded(const oly_split *s, int64_t offset)
{
    oly_split r = *s;
    r.start = s->start - offset * s->step;
    return r;
}

oly_split oly_split_spread(const oly_split *s, int64_t offset, int64_t step)
{
    oly_split r = *s;
    r.base = s->base * step;
    r.unit = s->unit * step;
    r.start = s->start * step - offset * s->step;
    return r;
}

int oly_split_part_of(const oly_split *s, int64_t n, int64_t i)
{
    if (i < 0 || i >= n || s->parts == 1)
        return i < n ? 0 : s->parts - 1;
    int64_t at = i * s->step + s->start; /* in the base: cuts are beyond i where those of the base are beyond this */
    int64_t units = s->base / s->unit, small = units / s->parts, n_large = units % s->parts, unit = at / s->unit;
    if (at < 0 || unit >= units)
        return at < 0 ? 0 : s->parts - 1;
    int64_t in_large = n_large * (small + 1);
    return (int)(unit < in_large ? unit / (small + 1) : n_large + (unit - in_large) / small);
}

int oly_split_part_at(const oly_split *s, oly_mesh mesh, const int *coordinates)
{
    int part = 0;
    for (int k = 0; k < s->axes.n; k++)
        part = part * mesh->size[s->axes.axis[k]] + coordinates[s->axes.axis[k]];
    return part;
}

oly_layout oly_layout_canonical(oly_sharding s, int rank, const int64_t *shape)
{
    static const oly_axis_list none;
    oly_layout l = {.mesh = s->mesh, .rank = rank};
    for (int d = 0; d < rank; d++) {
        l.shape[d] = shape[d];
        l.split[d] = oly_split_canonical(s->mesh, d < s->spec.n_dims ? &s->spec.dim[d] : &none, shape[d]);
    }
    return l;
}

bool oly_layout_equal(const oly_layout *a, const oly_layout *b)
{
    if (a->rank != b->rank || (a->mesh != b->mesh))
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d] || !oly_split_equal(&a->split[d], &b->split[d], a->shape[d]))
            return false;
    return true;
}

bool oly_layout_is_canonical(const oly_layout *l)
{
    for (int d = 0; d < l->rank; d++) {
        oly_split c = oly_split_canonical(l->mesh, &l->split[d].axes, l->shape[d]);
        if (!oly_split_equal(&l->split[d], &c, l->shape[d]))
            return false;
    }
    return true;
}

oly_spec oly_layout_spec(const oly_layout *l)
{
    oly_spec s = {.n_dims = l->rank};
    for (int d = 0; d < l->rank; d++)
        s.dim[d] = l->split[d].axes;
    return s;
}

oly_box oly_layout_shard(const oly_layout *l, int position)
{
    int coordinates[OLY_MAX_RANK];
    oly_box b = {.rank = l->rank};
    oly_mesh_coordinates(l->mesh, position, coordinates);
    for (int d = 0; d < l->rank; d++) {
        int part = oly_split_part_at(&l->split[d], l->mesh, coordinates);
        b.lo[d] = oly_split_cut(&l->split[d], l->shape[d], part);
        b.hi[d] = oly_split_cut(&l->split[d], l->shape[d], part + 1);
    }
    return b;
}

oly_box oly_layout_box(const oly_layout *l, int position)
{
    oly_box b = oly_layout_shard(l, position);
    bool empty = false;
    for (int d = 0; d < l->rank; d++)
        empty = empty || b.hi[d] <= b.lo[d];
    for (int d = 0; d < l->rank && empty; d++)
        b.hi[d] = b.lo[d];
    return b;
}

int64_t oly_box_count(const oly_box *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= oly_larger(b->hi[d] - b->lo[d], 0);
    return n;
}

bool oly_box_equal(const oly_box *a, const oly_box *b)
{
    for (int d = 0; d < a->rank; d++)
        if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d])
            return false;
    return a->rank == b->rank;
}

bool oly_box_contains(const oly_box *outer, const oly_box *inner)
{
    if (oly_box_count(inner) == 0)
        return true;
    for (int d = 0; d < inner->rank; d++)
        if (inner->lo[d] < outer->lo[d] || inner->hi[d] > outer->hi[d])
            return false;
    return true;
}

oly_box oly_box_intersect(const oly_box *a, const oly_box *b)
{
    oly_box r = {.rank = a->rank};
    bool empty = false;
    for (int d = 0; d < a->rank; d++) {
        r.lo[d] = oly_larger(a->lo[d], b->lo[d]);
        r.hi[d] = oly_smaller(a->hi[d], b->hi[d]);
        empty = empty || r.hi[d] <= r.lo[d];
    }
    for (int d = 0; d < a->rank && empty; d++)
        r.hi[d] = r.lo[d];
    return r;
}
