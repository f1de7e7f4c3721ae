/* SPDX-License-Identifier: BSD-3-Clause */
/* Layouts: which elements each device holds. sharding + alignment. A dimension is divided by a `split`: mesh axes, and where
 * the cuts are. A canonical split divides n elements into balanced blocks. An aligned one keeps the cuts of the array it came
 * from (base) under an affine map: element i of this dimension is element start + i*step of the base, so slices stay where
 * their array is placed. unit: the base is cut in multiples of this many elements (a dimension made by merging others). Cuts
 * are monotone: part k holds [cut(k), cut(k+1)). Pure arithmetic; cost does not depend on the number of devices. */
#ifndef OLY_LAYOUT_LAYOUT_H
#define OLY_LAYOUT_LAYOUT_H
#include "layout/sharding.h"

typedef struct oly_split {
    oly_axis_list axes;
    int parts;                       /* product of the axes' sizes; 1: not split */
    int64_t base, unit, start, step; /* canonical: base = n, unit = 1, start = 0, step = 1 */
} oly_split;

typedef struct oly_layout {
    oly_mesh mesh;
    int rank;
    int64_t shape[OLY_MAX_RANK];
    oly_split split[OLY_MAX_RANK];
} oly_layout;

typedef struct oly_box {
    int rank;
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK]; /* empty if hi <= lo anywhere; then all hi = lo */
} oly_box;

/* Start of part k (0..parts) of n elements. */
int64_t oly_split_cut(const oly_split *s, int64_t n, int64_t k);
oly_split oly_split_canonical(oly_mesh mesh, const oly_axis_list *axes, int64_t n);
oly_split oly_split_whole(int64_t n);
bool oly_split_equal(const oly_split *a, const oly_split *b, int64_t n); /* the same cuts over the same axes */

/* The cuts of a split are a piecewise linear function of the part's number, rounded if step is more than 1, so that remainders
 * repeat after that many parts. Properties of all parts therefore follow from the parts where the pieces meet, and from one
 * period on either side of them. */
enum {
    OLY_FEW_PARTS = 32,
    OLY_MANY_PARTS = 4096
}; /* parts examined one by one; and at most, where there is no other way */
typedef struct oly_turns {
    int n;
    int64_t at[32];
} oly_turns;
void oly_turn_add(oly_turns *t, int64_t part); /* unless present */
/* The common period, in parts, of two functions with periods a and b; more than OLY_FEW_PARTS: many. */
int64_t oly_period_of(int64_t a, int64_t b);
/* Adds the numbers of the parts, times ratio, at which the pieces of the cuts of n elements meet: five. */
void oly_split_turns(const oly_split *s, int64_t n, int64_t ratio, oly_turns *t);
/* Split of the slice start + i*step (n_new elements) of a dimension with split s: stays aligned. step may only be positive. */
oly_split oly_split_sliced(const oly_split *s, int64_t start, int64_t step);
/* Split of a dimension that contains this one at `offset`: the inverse of slicing with step 1. */
oly_split oly_split_embedded(const oly_split *s, int64_t offset);
/* Split of a dimension in which element i of this one is element offset + i * step. */
oly_split oly_split_spread(const oly_split *s, int64_t offset, int64_t step);
/* First part whose end is beyond element i (the part that holds i, empty parts skipped). */
int oly_split_part_of(const oly_split *s, int64_t n, int64_t i);
/* First k, 0..parts, with oly_split_cut beyond i. */
int oly_split_first_beyond(const oly_split *s, int64_t n, int64_t i);
/* Part number of a mesh position. */
int oly_split_part_at(const oly_split *s, oly_mesh mesh, const int *coordinates);

oly_layout oly_layout_canonical(oly_sharding s, int rank, const int64_t *shape);
bool oly_layout_equal(const oly_layout *a, const oly_layout *b);
bool oly_layout_is_canonical(const oly_layout *l);
oly_spec oly_layout_spec(const oly_layout *l);
oly_box oly_layout_box(const oly_layout *l, int position);
/* The same for display: a shard that is empty along one dimension keeps its extents along the others. */
oly_box oly_layout_shard(const oly_layout *l, int position);
/* Of a box. */
int64_t oly_box_count(const oly_box *b);
bool oly_box_equal(const oly_box *a, const oly_box *b);
bool oly_box_contains(const oly_box *outer, const oly_box *inner); /* an empty inner is always contained */
oly_box oly_box_intersect(const oly_box *a, const oly_box *b);
#endif
