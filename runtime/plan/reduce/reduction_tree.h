/* Levels of a reduction that are listed when it first runs (reduction_tree.c): for those who plan them, and for the interpreter. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_TREE_H
#define OLY_PLAN_REDUCE_REDUCTION_TREE_H
#include "plan/model/steps.h"

/* How the exchange of a step with levels, in a plan of several processes, begins: with the first level's, so that the folds are
 * shared out over threads; or with all of them, each level folded as soon as what it needs has come, by who waits: for small ones. */
typedef enum { OLY_LEVELS_FIRST, OLY_LEVELS_ALL } oly_levels_way;
/* Makes step->exchange, from step's fold; buffers: those that are read, and as many that are written. */
oly_status oly_reduction_levels_exchange(oly_plan *plan, oly_step *step, oly_levels_way way, int n_buffers,
                                         const int *buffers);
/* The level, listed if need be: those before it are. */
oly_status oly_reduction_level_of(const oly_plan *plan, oly_reduction_levels *levels, int number,
                                  oly_reduction_level **level);
/* Folds elements of one group. base: of every buffer. */
void oly_reduction_group_run(const oly_reduction_work *g, oly_combiner combiner, oly_dtype dtype, void *const *base,
                             int64_t begin, int64_t end);
#endif
