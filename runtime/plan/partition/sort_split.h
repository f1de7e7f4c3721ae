/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorting lines that are split over devices: what moves, and whether that costs less than gathering. Called by
 * lower/lower_sort.c, and by propagation, which keeps axes off results whose lines are gathered. */
#ifndef OLY_PLAN_PARTITION_SORT_SPLIT_H
#define OLY_PLAN_PARTITION_SORT_SPLIT_H
#include "plan/model/planner.h"

enum { OLY_SORT_MOST = OLY_LOCAL_MOST };

typedef struct oly_sorter {
    oly_planner *p;
    oly_frame *f;
    oly_node *node;
    const oly_layout *own, *out;
    oly_layout columns;
    oly_node *at; /* the node that the steps are attributed to: the node itself, but ascending */
    int d, parts, rank;
    int64_t q, r, reach;
    /* the arrays that move: keys, indexes, and the values sorted with the keys */
    int n, n_keys;                   /* n_keys: including the indexes */
    oly_node *source[OLY_SORT_MOST]; /* NULL: indexes */
    oly_dtype dtype[OLY_SORT_MOST];
    int slot[OLY_SORT_MOST];
    int n_results;
    struct oly_sort_result {
        oly_node *node;
        int array;
    } results[OLY_SORT_MOST];
} oly_sorter;

oly_local_op oly_sort_op(const oly_node *n);
/* Is the result the elements, and not their indexes? */
bool oly_sort_gives_elements(const oly_node *n);
/* Does it cost less than gathering the lines? Or would whole lines need more memory than exchanges may use? */
bool oly_sort_pays(const oly_sorter *s);
/* Adds an array that moves. source NULL: indexes. */
void oly_sort_add_array(oly_sorter *s, oly_node *source, oly_dtype dtype);
/* Adds the keys and, if the order depends on them or they are the result, the indexes. */
void oly_sort_list_keys(oly_sorter *s);
/* Is a line over these axes gathered to be sorted? Then splitting the result gains nothing. */
bool oly_gathers_line(const oly_node *n, oly_mesh mesh, const oly_axis_list *axes);
#endif
