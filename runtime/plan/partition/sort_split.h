/* Sorts of lines that are split over devices: what moves, and whether that is cheaper than gathering. Called by lower/lower_sort.c,
 * and by propagation, which keeps axes off results whose lines are gathered. */
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
    oly_node *at; /* stands for the steps: the node, but ascending */
    int d, parts, rank;
    int64_t q, r, reach;
    /* what travels: keys, numbers, what follows the keys */
    int n, n_keys;                   /* n_keys: with the numbers */
    oly_node *source[OLY_SORT_MOST]; /* NULL: numbers */
    oly_dtype dtype[OLY_SORT_MOST];
    int slot[OLY_SORT_MOST];
    int n_results;
    struct oly_sort_result {
        oly_node *node;
        int array;
    } results[OLY_SORT_MOST];
} oly_sorter;

oly_local_op oly_sort_op(const oly_node *n);
/* Is the result the elements, and not their places? */
bool oly_sort_gives_elements(const oly_node *n);
/* Is it cheaper than gathering the lines? Or would these take more memory than exchanges may? */
bool oly_sort_pays(const oly_sorter *s);
/* One more array that moves. source NULL: numbers. */
void oly_sort_add_array(oly_sorter *s, oly_node *source, oly_dtype dtype);
/* The keys and, where the order depends on them or they are asked for, numbers. */
void oly_sort_list_keys(oly_sorter *s);
/* Is a line over these axes gathered to be sorted? Then nothing is gained by splitting the result. */
bool oly_gathers_line(const oly_node *n, oly_mesh mesh, const oly_axis_list *axes);
#endif
