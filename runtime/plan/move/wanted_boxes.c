/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a box that will be read, as disjoint boxes. Arithmetic only. Called where transfers are found, and by
 * read/gather_reads.c. */
#include "plan/move/move.h"

typedef struct box_list {
    int n;
    oly_box *box;
} box_list;

/* Adds the part of b outside `hole`: at most two boxes per dimension. False: too many. */
static bool add_outside(box_list *list, oly_box b, const oly_box *hole)
{
    oly_box inside = oly_box_intersect(&b, hole);
    if (oly_box_count(&inside) == 0) {
        if (list->n == OLY_MOST_WANTED)
            return false;
        list->box[list->n++] = b;
        return true;
    }
    for (int d = 0; d < b.rank; d++) {
        oly_box side = b;
        side.hi[d] = inside.lo[d];
        if (side.hi[d] > side.lo[d]) {
            if (list->n == OLY_MOST_WANTED)
                return false;
            list->box[list->n++] = side;
        }
        side = b;
        side.lo[d] = inside.hi[d];
        if (side.hi[d] > side.lo[d]) {
            if (list->n == OLY_MOST_WANTED)
                return false;
            list->box[list->n++] = side;
        }
        b.lo[d] = inside.lo[d];
        b.hi[d] = inside.hi[d];
    }
    return true;
}

/* Adds the part of b that the list does not cover. */
static bool add_new(box_list *list, const oly_box *b)
{
    oly_box left[OLY_MOST_WANTED], next[OLY_MOST_WANTED];
    box_list a = {1, left}, c = {0, next};
    left[0] = *b;
    for (int k = 0; k < list->n; k++) {
        c.n = 0;
        for (int j = 0; j < a.n; j++)
            if (!add_outside(&c, a.box[j], &list->box[k]))
                return false;
        box_list swap = a;
        a = c;
        c = swap;
    }
    if (list->n + a.n > OLY_MOST_WANTED)
        return false;
    for (int j = 0; j < a.n; j++)
        list->box[list->n++] = a.box[j];
    return true;
}

static void hull_of(oly_box *hull, const oly_box *b)
{
    for (int d = 0; d < b->rank; d++) {
        hull->lo[d] = b->lo[d] < hull->lo[d] ? b->lo[d] : hull->lo[d];
        hull->hi[d] = b->hi[d] > hull->hi[d] ? b->hi[d] : hull->hi[d];
    }
}

int oly_wanted_boxes(int n, const oly_box *parts, const oly_box *within, oly_box *boxes)
{
    box_list list = {0, boxes};
    oly_box hull = {0};
    int64_t total = 0;
    bool all = true;
    for (int k = 0; k < n; k++)
        if (oly_box_count(&parts[k]) > 0 && oly_box_contains(&parts[k], within)) {
            boxes[0] = *within;
            return 1;
        }
    for (int k = 0; k < n; k++) {
        oly_box b = oly_box_intersect(&parts[k], within);
        if (oly_box_count(&b) == 0)
            continue;
        if (hull.rank == 0)
            hull = b;
        hull_of(&hull, &b);
        all = all && add_new(&list, &b);
    }
    for (int k = 0; k < list.n; k++)
        total += oly_box_count(&list.box[k]);
    if (hull.rank > 0 && (!all || total == oly_box_count(&hull))) {
        boxes[0] = hull;
        return 1;
    }
    return list.n;
}
