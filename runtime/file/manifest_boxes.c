/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes that are to cover an array, each element once: no two overlap, and they have as many elements as the array. Overlaps are
 * found by sorting along the dimension with the most different beginnings: only boxes that begin before another ends are
 * compared with it. See manifest_boxes.h. */
#define _GNU_SOURCE /* qsort_r */
#include "file/manifest_boxes.h"
#include <stdlib.h>

/* A manifest made to keep its reader busy is refused. */
static const int64_t MOST_COMPARISONS = INT64_C(1) << 31;

static int by_start(const void *a, const void *b, void *dimension)
{
    const oly_manifest_part *p = a, *q = b;
    int d = *(const int *)dimension;
    return p->start[d] < q->start[d] ? -1 : p->start[d] > q->start[d];
}

static void sort_along(oly_manifest_array *a, int d)
{
    qsort_r(a->part, (size_t)a->n_parts, sizeof *a->part, by_start, &d);
}

static int beginnings_along(oly_manifest_array *a, int d)
{
    int n = 1;
    sort_along(a, d);
    for (int k = 1; k < a->n_parts; k++)
        n += a->part[k].start[d] != a->part[k - 1].start[d];
    return n;
}

static bool overlap(const oly_manifest_part *p, const oly_manifest_part *q, int rank)
{
    for (int d = 0; d < rank; d++)
        if (p->start[d] >= q->start[d] + q->extent[d] || q->start[d] >= p->start[d] + p->extent[d])
            return false;
    return true;
}

/* The sum of the boxes' elements; stops beyond the array's. */
static bool sizes_add_up(const oly_manifest_array *a)
{
    int64_t left = 1;
    for (int d = 0; d < a->rank; d++)
        left *= a->shape[d];
    for (int k = 0; k < a->n_parts && left >= 0; k++) {
        int64_t count = 1;
        for (int d = 0; d < a->rank; d++)
            count *= a->part[k].extent[d];
        left -= count;
    }
    return left == 0;
}

oly_boxes oly_manifest_check_boxes(oly_manifest_array *a, const oly_manifest_part **first,
                                   const oly_manifest_part **second)
{
    int best = 0, most = 0;
    int64_t comparisons = 0;
    for (int d = 0; d < a->rank; d++) {
        int n = beginnings_along(a, d);
        best = n > most ? d : best;
        most = n > most ? n : most;
    }
    if (a->rank > 0)
        sort_along(a, best);
    for (int k = 0; k < a->n_parts; k++)
        for (int j = k + 1; j < a->n_parts; j++) {
            const oly_manifest_part *p = *first = &a->part[k], *q = *second = &a->part[j];
            if (a->rank > 0 && q->start[best] >= p->start[best] + p->extent[best])
                break;
            if (overlap(p, q, a->rank))
                return OLY_BOXES_OVERLAP;
            if (++comparisons > MOST_COMPARISONS)
                return OLY_BOXES_TOO_MANY;
        }
    return sizes_add_up(a) ? OLY_BOXES_COVER : OLY_BOXES_MISS;
}
