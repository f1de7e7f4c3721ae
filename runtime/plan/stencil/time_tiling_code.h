/* The program of one piece of a stage while it is being written down. Between time_tiling_form.c, time_tiling_walk.c and time_tiling_code.c. */
#ifndef OLY_PLAN_STENCIL_TIME_TILING_CODE_H
#define OLY_PLAN_STENCIL_TIME_TILING_CODE_H
#include "plan/stencil/time_tiling_plan.h"

enum { OLY_MARCH_LOADS = 48, OLY_MARCH_INSTRUCTIONS = 384 };

/* Values are numbered: loads from 0, results of instructions from OLY_MARCH_LOADS. */
typedef struct oly_march_code {
    int n_loads, n_instructions;
    oly_march_load loads[OLY_MARCH_LOADS];
    oly_dtype dtype[OLY_MARCH_LOADS];
    oly_tile_instruction instructions[OLY_MARCH_INSTRUCTIONS]; /* operands are values */
    const oly_node *of[OLY_MARCH_INSTRUCTIONS];                /* whose operation it is; NULL: a part of one */
} oly_march_code;

/* Both give the number of the value; -1: too many. */
int oly_march_read(oly_march_code *c, const oly_march_load *load, oly_dtype dtype);
int oly_march_splat(oly_march_code *c, const oly_node *constant);
/* The node's operation on values in[]; an iota counts along `dimension`. */
int oly_march_operate(oly_march_code *c, const oly_node *n, const int *in, int dimension);
/* The program that makes a value, in as many registers as there are: *fits. */
oly_status oly_march_finish(oly_planner *p, oly_march_code *c, int value, oly_dtype dtype, oly_march_piece *piece,
                            bool *fits);
bool oly_march_same_program(const oly_march_piece *a, const oly_march_piece *b, int rank);
#endif
