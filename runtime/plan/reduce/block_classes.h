/* Where the blocks lie that a device holds between the levels of a reduce-scatter (block_classes.c): arithmetic, for
 * reduce_scatter_tree.c. */
#ifndef OLY_PLAN_REDUCE_BLOCK_CLASSES_H
#define OLY_PLAN_REDUCE_BLOCK_CLASSES_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

enum { OLY_SCATTER_DIGITS = 16, OLY_SCATTER_LEVELS = 64 };

/* An axis that is reduced: its coordinates are numbers of these digits, the lowest first. */
typedef struct oly_scatter_axis {
    int axis, size, n_digits;
    int stride[OLY_SCATTER_DIGITS], radix[OLY_SCATTER_DIGITS];
} oly_scatter_axis;

/* A dimension that is cut over some of them: blocks number inner * (part of the partial's split) + 0..inner - 1, the first axis
 * counting most. */
typedef struct oly_scatter_dimension {
    int n, axis[OLY_MAX_RANK];
    int64_t inner;
    bool closed; /* blocks are of `each` elements, of all `more` first ones one more; else they are looked at */
    int64_t each, more;
} oly_scatter_dimension;

typedef struct oly_scatter_shape {
    oly_mesh mesh;
    const oly_layout *partial, *target;
    int n_axes, n_digits;
    oly_scatter_axis axis[OLY_MAX_RANK];
    int digit_axis[OLY_SCATTER_LEVELS], digit_place[OLY_SCATTER_LEVELS], digit_radix[OLY_SCATTER_LEVELS]; /* levels */
    oly_scatter_dimension dimension[OLY_MAX_RANK];
    int64_t n_rounds, width[OLY_MAX_RANK],
        rounds[OLY_MAX_RANK]; /* of a block, so many elements of a dimension at a time */
} oly_scatter_shape;

/* Coordinates v + i * t of every axis. */
typedef struct oly_class {
    int64_t v[OLY_MAX_RANK], t[OLY_MAX_RANK];
} oly_class;

/* Of every block, elements [lo, hi) of each dimension, of those that it has. */
typedef struct oly_scatter_widths {
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} oly_scatter_widths;

/* Offsets and strides in elements. */
typedef struct oly_class_piece {
    int rank;
    int64_t from, to, extent[OLY_MAX_RANK], from_stride[OLY_MAX_RANK], to_stride[OLY_MAX_RANK];
} oly_class_piece;

typedef struct oly_class_pieces {
    int n, room;
    oly_class_piece *piece;
    bool is_run; /* one piece, dense on both sides */
} oly_class_pieces;

void oly_scatter_shape_of(oly_scatter_shape *s, const oly_layout *partial, const oly_layout *target,
                          const oly_reduction_rule *rule, const oly_axis_list *axes);
/* At least so many rounds, if blocks have so many elements. */
void oly_scatter_set_rounds(oly_scatter_shape *s, int64_t rounds);
oly_scatter_widths oly_scatter_round(const oly_scatter_shape *s, int64_t round); /* -1: all of them */

/* A number for each class of the same t. */
int64_t oly_class_number(const oly_scatter_shape *s, const oly_class *c);
/* Elements of a class, where axes that are not reduced are at these coordinates. NULL: 1. */
int64_t oly_class_elements(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *c);
/* Where class c lies in what class `in` holds, of which it is a part, and in dense memory. NULL: in the partial. */
oly_status oly_class_find(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *in,
                          const oly_class *c, oly_arena *arena, oly_class_pieces *pieces);
/* Where what is folded in the round begins in the block of the device at these coordinates, in elements. */
int64_t oly_class_in_block(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at);
#endif
