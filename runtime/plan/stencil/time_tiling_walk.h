/* SPDX-License-Identifier: BSD-3-Clause */
/* The path from a stage of a loop over fields (time_tiling.h) back through the body's graph to the values it is
 * computed from. Private to time_tiling_form.c, which makes stages and their pieces, and time_tiling_walk.c, which
 * builds the program of one piece. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_WALK_H
#define OLY_PLAN_STENCIL_TIME_TILING_WALK_H
#include "plan/stencil/time_tiling_code.h"

enum { OLY_TILING_KNOWN = 384 };

/* How the elements of a node correspond to those of the stage: element x of the stage reads element x[dim[e]] +
 * shift[e]. In a periodic dimension, adding turn[dim[e]] brings that inside the node. */
typedef struct oly_tiling_spot {
    int dim[OLY_MAX_RANK]; /* -1: element shift[e] */
    int64_t shift[OLY_MAX_RANK], turn[OLY_TILING_RANK];
} oly_tiling_spot;

typedef struct oly_tiling_known {
    const oly_node *node;
    oly_tiling_spot at;
    int value;
} oly_tiling_known;

/* For a node that depends on fields: where the walk met it first, and whether it is a stage. */
typedef struct oly_tiling_meeting {
    int depends; /* 0: on nothing that changes; 1: on the counter alone; 2: on fields */
    int input;   /* of the body; -1: none */
    bool met, is_stage, is_placed;
    const oly_node *root;
    oly_tiling_spot at;
    int stage; /* its number */
    int64_t align[OLY_TILING_RANK];
} oly_tiling_meeting;

typedef struct oly_tiling_walk {
    oly_planner *p;
    const oly_graph *body;
    oly_tiling_form *form;
    oly_tiling_meeting *meetings; /* [n_nodes] */
    oly_tiling_code *code;
    oly_tiling_known *known;
    int n_known, fixed_capacity;
    bool fails, again, aside; /* again: more stages are needed; aside: a read has an offset */
    /* the current piece */
    const oly_node *root;
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK];
    int cut; /* dimension in which it must be divided; -1: none */
    int64_t cut_at;
} oly_tiling_walk;

static inline oly_tiling_meeting *oly_tiling_meeting_of(oly_tiling_walk *f, const oly_node *n)
{
    return &f->meetings[n->index];
}

/* Builds the program of the node's value in the current piece, starting with the stage's own operation. Returns the
 * number of the value; -1: failed, or the piece must be divided. */
int oly_tiling_walk_from(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at);
#endif
