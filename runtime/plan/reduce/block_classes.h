/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the blocks are that a device holds between the levels of a reduce-scatter (block_classes.c). Arithmetic only;
 * for reduce_scatter_tree.c. */
#ifndef OLY_PLAN_REDUCE_BLOCK_CLASSES_H
#define OLY_PLAN_REDUCE_BLOCK_CLASSES_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

enum { OLY_SCATTER_DIGITS = 16, OLY_SCATTER_LEVELS = 64 };

/* An axis that is reduced over. Its coordinates are numbers with these digits, the least significant first. */
typedef struct oly_scatter_axis {
    int axis, size, n_digits;
    int stride[OLY_SCATTER_DIGITS], radix[OLY_SCATTER_DIGITS];
} oly_scatter_axis;

/* A dimension that is split over some of these axes, major axis first: blocks number inner * (part of the partial's
 * split) + 0..inner - 1. */
typedef struct oly_scatter_dimension {
    int n, axis[OLY_MAX_RANK];
    int64_t inner;
    bool closed; /* blocks have `each` elements, the first `more` one more; otherwise they are enumerated */
    int64_t each, more;
} oly_scatter_dimension;

typedef struct oly_scatter_shape {
    oly_mesh mesh;
    const oly_layout *partial, *target;
    int n_axes, n_digits;
    oly_scatter_axis axis[OLY_MAX_RANK];
    int digit_axis[OLY_SCATTER_LEVELS], digit_place[OLY_SCATTER_LEVELS], digit_radix[OLY_SCATTER_LEVELS]; /* by level */
    oly_scatter_dimension dimension[OLY_MAX_RANK];
    int64_t n_rounds, width[OLY_MAX_RANK], rounds[OLY_MAX_RANK]; /* elements in a round, and rounds */
} oly_scatter_shape;

/* The coordinates v + i * t along every axis. */
typedef struct oly_class {
    int64_t v[OLY_MAX_RANK], t[OLY_MAX_RANK];
} oly_class;

/* The elements [lo, hi) of every block in each dimension, as far as it has them. */
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
    bool is_run; /* one piece, contiguous on both sides */
} oly_class_pieces;

void oly_scatter_shape_of(oly_scatter_shape *s, const oly_layout *partial, const oly_layout *target,
                          const oly_reduction_rule *rule, const oly_axis_list *axes);
/* Uses at least this many rounds, if blocks have enough elements. */
void oly_scatter_set_rounds(oly_scatter_shape *s, int64_t rounds);
oly_scatter_widths oly_scatter_round(const oly_scatter_shape *s, int64_t round); /* -1: all rounds */

/* Numbers the classes of the same t. */
int64_t oly_class_number(const oly_scatter_shape *s, const oly_class *c);
/* The number of elements of a class, at these coordinates along the axes that are not reduced. NULL: 1. */
int64_t oly_class_elements(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *c);
/* Where class c is within class `in`, of which it is a part, and in contiguous memory. in NULL: within the partial
 * result. */
oly_status oly_class_find(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *in,
                          const oly_class *c, oly_arena *arena, oly_class_pieces *pieces);
/* Where the round's elements begin in the block of the device at these coordinates, in elements. */
int64_t oly_class_in_block(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at);
#endif
