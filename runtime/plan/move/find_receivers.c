/* SPDX-License-Identifier: BSD-3-Clause */
/* Enumerates the positions that need part of a block. See find_receivers.h. */
#include "plan/move/find_receivers.h"
#include <string.h>

/* Converts between coordinates along the axes of a split and the number of the part. */
static void digits_of(const oly_axis_list *axes, oly_mesh mesh, int part, int *digit)
{
    for (int k = axes->n - 1; k >= 0; k--) {
        digit[k] = part % mesh->size[axes->axis[k]];
        part /= mesh->size[axes->axis[k]];
    }
}

static int part_of(const oly_axis_list *axes, oly_mesh mesh, const int *digit)
{
    int part = 0;
    for (int k = 0; k < axes->n; k++)
        part = part * mesh->size[axes->axis[k]] + digit[k];
    return part;
}

/* The first part, from `part` on, whose coordinates agree with the fixed ones; -1: none. */
static int next_part(const oly_receivers *r, int d, int part)
{
    const oly_axis_list *axes = &r->to->dim[d].split.axes;
    oly_mesh mesh = r->to->mesh;
    int digit[OLY_MAX_RANK], k = 0;
    if (part >= r->to->dim[d].split.parts)
        return -1;
    digits_of(axes, mesh, part, digit);
    while (k < axes->n && (r->fixed[axes->axis[k]] < 0 || r->fixed[axes->axis[k]] == digit[k]))
        k++;
    if (k == axes->n)
        return part;
    if (digit[k] > r->fixed[axes->axis[k]]) { /* beyond the fixed coordinate: increment an axis before it */
        do
            k--;
        while (k >= 0 && (r->fixed[axes->axis[k]] >= 0 || digit[k] + 1 == mesh->size[axes->axis[k]]));
        if (k < 0)
            return -1;
        digit[k++]++;
    }
    for (; k < axes->n; k++)
        digit[k] = r->fixed[axes->axis[k]] >= 0 ? r->fixed[axes->axis[k]] : 0;
    return part_of(axes, mesh, digit);
}

static bool begin_part(oly_receivers *r, int d, int part)
{
    r->part[d] = next_part(r, d, part);
    return r->part[d] >= 0 && r->part[d] <= r->last[d];
}

oly_receivers oly_receivers_of(const oly_region *to, const oly_box *box, const int *fixed)
{
    oly_receivers r = {.to = to};
    unsigned cut = 0;
    for (int a = 0; a < to->mesh->n_axes; a++)
        r.fixed[a] = fixed[a];
    for (int d = 0; d < to->rank; d++) {
        oly_region_parts(&to->dim[d], box->lo[d], box->hi[d], &r.first[d], &r.last[d]);
        r.none = !begin_part(&r, d, r.first[d]) || r.none;
        for (int k = 0; k < to->dim[d].split.axes.n; k++)
            cut |= 1u << to->dim[d].split.axes.axis[k];
    }
    for (int a = 0; a < to->mesh->n_axes; a++)
        if (r.fixed[a] < 0 && !(cut >> a & 1))
            r.free_axis[r.n_free++] = a;
    return r;
}

static int position_of(const oly_receivers *r)
{
    oly_mesh mesh = r->to->mesh;
    int coordinates[OLY_MAX_RANK];
    for (int a = 0; a < mesh->n_axes; a++)
        coordinates[a] = r->fixed[a] < 0 ? 0 : r->fixed[a];
    for (int k = 0; k < r->n_free; k++)
        coordinates[r->free_axis[k]] = r->at[k];
    for (int d = 0; d < r->to->rank; d++) {
        const oly_axis_list *axes = &r->to->dim[d].split.axes;
        int digit[OLY_MAX_RANK];
        digits_of(axes, mesh, r->part[d], digit);
        for (int k = 0; k < axes->n; k++)
            coordinates[axes->axis[k]] = digit[k];
    }
    return oly_mesh_position(mesh, coordinates);
}

static void advance(oly_receivers *r)
{
    for (int k = r->n_free - 1; k >= 0; k--) {
        if (++r->at[k] < r->to->mesh->size[r->free_axis[k]])
            return;
        r->at[k] = 0;
    }
    for (int d = r->to->rank - 1; d >= 0; d--) {
        if (begin_part(r, d, r->part[d] + 1))
            return;
        begin_part(r, d, r->first[d]);
    }
    r->none = true;
}

bool oly_receivers_next(oly_receivers *r, int *position)
{
    if (r->none)
        return false;
    *position = position_of(r);
    advance(r);
    return true;
}
