/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of reductions over devices (reduction_order.c) and the steps that do them (reduction_steps.c). Shared by
 * these, reduction_pattern.c, deferred_reduction.c and the reduce-scatter files; private to runtime/plan/reduce. */
#ifndef OLY_PLAN_REDUCE_REDUCTION_STEPS_H
#define OLY_PLAN_REDUCE_REDUCTION_STEPS_H
#include "plan/model/planner.h"
#include "plan/reduce/reduce.h"

enum { OLY_REDUCTION_SOURCES = 64 }; /* most partial results that one reduction of a stage combines */

/* One digit of a stage: up to `radix` positions along `axis` at distance `stride`. Runs of `same` positions (at most
 * `stride`) belong to one process and hold the same partial result: any one of them can be used. */
typedef struct oly_reduction_digit {
    int axis, stride, radix, same;
} oly_reduction_digit;

typedef struct oly_reduction_stage {
    int n_digits;
    oly_reduction_digit digits[4];
} oly_reduction_stage;

/* -- reduction_order.c -- */
/* The positions whose partial results the device at `position` reduces in this stage, nested by digit; counts: for each
 * digit. Returns their number. */
int oly_reduction_sources(oly_mesh mesh, const oly_reduction_stage *s, int position, int *counts, int *sources);
/* The positions that reduce a position's partial result: they differ from it only along the digits, at least one in
 * each process. */
oly_status oly_reduction_users(oly_arena *arena, oly_mesh mesh, const oly_reduction_stage *s, int position,
                               int *n_users, int **users);
/* The stages that reduce a value over axes, in order. Returns their number, at most oly_reduction_most_stages. */
int oly_reduction_stages(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_stage *stages);
/* The digits of the positions along these axes, in the order in which they are reduced. Returns their number, at most
 * 5 * OLY_MAX_RANK. */
int oly_reduction_digits(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_digit *digits);
int oly_reduction_most_stages(oly_mesh mesh, const oly_axis_list *axes);

/* -- reduction_steps.c -- */
/* A value with its partial results in slot `from` and its result in `slot`, which may be the same. */
typedef struct oly_reduction_item {
    const oly_node *node;
    const oly_layout *layout;
    int from, slot;
    oly_reduction_rule rule;
} oly_reduction_item;
enum { OLY_REDUCTION_TOGETHER = 64 };
/* Adds the steps that reduce these values, at most OLY_REDUCTION_TOGETHER, with one combiner and element type. */
oly_status oly_add_reductions(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                              const oly_reduction_item *items);
/* -- library_sum.c -- */
/* Is it left to NCCL's own all-reduce? The same on every process. */
bool oly_reduces_by_library(const oly_planner *p, const oly_axis_list *axes, const oly_reduction_item *item);
oly_status oly_reduce_by_library(oly_planner *p, oly_block *b, const oly_axis_list *axes, int n_items,
                                 const oly_reduction_item *items);
/* -- reduction_steps.c -- */
/* Bytes of partial results from other processes that may wait at a time: a quarter of OLYMPUS_EXCHANGE_MEMORY. What
 * needs more is done in rounds, each for a part of the elements. */
int64_t oly_reduction_limit(void);
/* Reductions that use the same memory, each waiting for the one before. */
typedef struct oly_reduction_share {
    int staging;   /* slot of staged partial results */
    int64_t taken; /* bytes of the limit used otherwise */
} oly_reduction_share;
/* What is left of the planner's limit; and a slot of staged partial results in block b, new or shared; -1: out of
 * memory. */
int64_t oly_reduction_limit_left(const oly_planner *p);
int oly_reduction_staging(oly_planner *p, oly_block *b);
/* What is kept of the planner after planning, for listing at the first run. NULL: out of memory. */
oly_planner *oly_reduction_kept_planner(oly_planner *p);
/* Makes a slot at least `bytes` large on a device. */
void oly_slot_grow(oly_planner *p, int slot, int device, size_t bytes);
#endif
