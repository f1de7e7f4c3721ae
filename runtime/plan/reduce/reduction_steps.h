/* The order of reductions over devices (reduction_order.c), and the steps that make them (reduction_steps.c), between those files, reduction_pattern.c,
 * deferred_reduction.c and reduce_scatter.c; private to them. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_STEPS_H
#define OLY_PLAN_REDUCE_REDUCTION_STEPS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

enum { OLY_REDUCTION_SOURCES = 64 }; /* most partials that one fold of a stage puts together */

/* One digit of a stage: positions along `axis` at distance `stride`, up to `radix` of them. Runs of `same` positions (at most
 * `stride`) belong to one process and have the same partial: any one of them will do. */
typedef struct oly_reduction_digit {
    int axis, stride, radix, same;
} oly_reduction_digit;

typedef struct oly_reduction_stage {
    int n_digits;
    oly_reduction_digit digits[4];
} oly_reduction_stage;

/* -- reduction_order.c -- */
/* The positions whose partials the device at `position` folds in this stage, nested by digit: how many; counts: of each digit. */
int oly_reduction_sources(oly_mesh mesh, const oly_reduction_stage *s, int position, int *counts, int *sources);
/* Who folds a position's partial: positions that differ from it only along the digits, at least one of each process. */
oly_status oly_reduction_users(oly_arena *arena, oly_mesh mesh, const oly_reduction_stage *s, int position,
                               int *n_users, int **users);
/* The stages that fold a value over axes, the first one first: how many, at most oly_reduction_most_stages. */
int oly_reduction_stages(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_stage *stages);
/* The digits of the positions along these axes, in the order in which they are folded: how many, at most 5 * OLY_MAX_RANK. */
int oly_reduction_digits(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_digit *digits);
int oly_reduction_most_stages(oly_mesh mesh, const oly_axis_list *axes);

/* -- reduction_steps.c -- */
/* A value whose partials lie in slot `from`, and whose result will lie in `slot`, which may be the same. */
typedef struct oly_folded {
    const oly_node *node;
    const oly_layout *layout;
    int from, slot;
    oly_reduction_rule rule;
} oly_folded;
enum { OLY_REDUCTION_TOGETHER = 64 };
/* Adds the steps that fold these values, at most OLY_REDUCTION_TOGETHER, of one combiner and element type. */
oly_status oly_add_reductions(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                              const oly_folded *items);
/* Bytes of other processes' partials that may wait to be folded at the same time: a quarter of OLYMPUS_EXCHANGE_MEMORY. What needs
 * more goes in rounds, each of a part of the elements. */
int64_t oly_reduction_limit(void);
/* Folds one after the other in the same memory: each waits for the one before. */
typedef struct oly_reduction_share {
    int staging;   /* slot for others' partials */
    int64_t taken; /* bytes of the limit that something else has */
} oly_reduction_share;
/* Of the planner: what is left of the limit, and a slot for others' partials in block b, a new one or the shared one; -1: out of
 * memory. */
int64_t oly_reduction_limit_left(const oly_planner *p);
int oly_reduction_staging(oly_planner *p, oly_block *b);
/* What is left of the planner when the plan is made, for what is listed by the first run. NULL: out of memory. */
oly_planner *oly_reduction_kept_planner(oly_planner *p);
/* Makes a slot large enough for so many bytes on a device. */
void oly_slot_grow(oly_planner *p, int slot, int device, size_t bytes);
#endif
