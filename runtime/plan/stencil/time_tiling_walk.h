/* The way from a stage of a march loop (time_tiling.h) back through the body's graph to the values it is made of. Between time_tiling_form.c,
 * which makes stages and their pieces, and time_tiling_walk.c, which writes down one piece. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_WALK_H
#define OLY_PLAN_STENCIL_TIME_TILING_WALK_H
#include "plan/stencil/time_tiling_code.h"

enum { OLY_TILING_KNOWN = 384 };

/* How a node's elements lie to those of the stage: element x of the stage looks at element x[dim[e]] + shift[e]. Where a dimension
 * goes round, that + turn[dim[e]] lies within the node. */
typedef struct oly_tiling_spot {
    int dim[OLY_MAX_RANK]; /* -1: element shift[e] */
    int64_t shift[OLY_MAX_RANK], turn[OLY_TILING_RANK];
} oly_tiling_spot;

typedef struct oly_tiling_known {
    const oly_node *node;
    oly_tiling_spot at;
    int value;
} oly_tiling_known;

/* Of a node on whose fields the body's values depend: where it was met first, and whether it is a stage. */
typedef struct oly_tiling_meeting {
    int depends; /* 0: not on what changes; 1: on the counter alone; 2: on fields */
    int input;   /* of the body; -1 */
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
    bool fails, again, aside; /* nothing of this kind; other stages are needed; something is read aside */
    /* the piece at hand */
    const oly_node *root;
    int64_t lo[OLY_TILING_RANK], hi[OLY_TILING_RANK];
    int cut; /* dimension in which it must be cut; -1 */
    int64_t cut_at;
} oly_tiling_walk;

static inline oly_tiling_meeting *oly_tiling_meeting_of(oly_tiling_walk *f, const oly_node *n)
{
    return &f->meetings[n->index];
}

/* Writes down what makes the node's value in the piece at hand, the stage's own operation first. The number of the value; -1: it
 * fails, or the piece must be cut. */
int oly_tiling_walk_from(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at);
#endif
