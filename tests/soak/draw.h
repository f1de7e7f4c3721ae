/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files that draw statements with blocks: draw_region.c (loops, branches), draw_map.c (maps, regions with
 * other axes), draw_gradient.c. */
#ifndef SOAK_DRAW_H
#define SOAK_DRAW_H
#include "program.h"

/* The state to return to if a statement is refused, and its surroundings. */
typedef struct mark {
    int statements, blocks, values, visible, current, in_block, profile, depth, in_gradient, in_map, in_vmap, group,
        team;
    const mesh_text *map;
    bool plain_map, explicit_axes;
    int explicit_mesh;
} mark;
mark mark_of(const program *p);
bool go_back(program *p, const mark *m); /* false */

int begin_block(program *p, statement *s, mark *outside); /* block 0 of the statement; NOTHING: no more blocks */
void end_block(program *p, const mark *outside);
int add_param(program *p, int v, array *a);     /* with the value of v for each member (or, v NOTHING, `a`) */
int add_row_param(program *p, int v, int axis); /* with the value of v without that dimension, its first */
void add_result(program *p, int b, int v);
/* Results of block b like n values, each placed like its value. False: none found. */
bool add_results_like(program *p, int b, int n, const int *like, int from);
bool replicate_free(program *p, statement *s); /* over Explicit axes: uncommitted values become replicated */
int whole(program *p, int v);

bool draw_vmap(program *p);
bool draw_map(program *p);
bool draw_axes_region(program *p);
bool draw_gradient(program *p);
bool draw_gradients(program *p);
#endif
