/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model: predicted seconds from a latency and a bandwidth for each level that bytes cross (layout/node.h),
 * and from the rates at which a device computes. The numbers are fixed unless OLYMPUS_COSTS sets them or asks to
 * measure them on this machine. They are the same on all ranks, so plans are. Set by runtime/array/start.c; called by
 * the planner's choices and explanations. */
#ifndef OLY_PLAN_COST_COST_H
#define OLY_PLAN_COST_COST_H
#include "layout/node.h"
#include "plan/model/steps.h"

typedef struct oly_link {
    double latency;   /* seconds for each message */
    double bandwidth; /* bytes per second that one device receives */
} oly_link;

typedef struct oly_rates {
    oly_link link[OLY_N_LEVELS];
    double memory;     /* bytes per second that a device reads or writes */
    double gemm;       /* floating-point operations per second in float32 matrix products */
    double operations; /* other operations on elements per second */
    /* Do choices between layouts distinguish levels? If not, every link costs `common`: the fixed numbers of the node
     * level, or those that OLYMPUS_COSTS gives it, never measured ones. The order of sums must not depend on how a
     * mesh is spread over processes, nor on measurements (docs/architecture.md 6). */
    bool by_level;
    oly_link common;
    bool measure; /* OLYMPUS_COSTS asks to measure the numbers that it does not give */
} oly_rates;

/* The fixed numbers; and those with the changes in a text in the notation of OLYMPUS_COSTS: "node=2us,8GB/s;
 * memory=12GB/s; levels; measure". Fails with OLY_PARSE and the column. */
oly_rates oly_rates_fixed(void);
oly_status oly_rates_read(const char *text, oly_rates *rates);
/* The same, changing `rates`. */
oly_status oly_rates_add(const char *text, oly_rates *rates);
/* Writes rates in the same notation. */
void oly_rates_text(oly_text *t, const oly_rates *rates);
/* The rates in use. */
const oly_rates *oly_rates_now(void);
void oly_rates_use(const oly_rates *rates);

/* The cost for a device that receives these bytes in these messages. */
double oly_cost_transfer(oly_level level, double bytes, double messages);
/* The same, as choices between layouts see it. */
double oly_cost_choice(oly_level level, double bytes, double messages);

typedef enum oly_collective {
    OLY_ALL_GATHER,     /* of the parts of a value */
    OLY_REDUCE_SCATTER, /* of partial results of a whole value */
    OLY_ALL_REDUCE,
    OLY_ALL_TO_ALL, /* of one device's part */
    OLY_PERMUTE,    /* of one device's part */
} oly_collective;
/* Seconds for a group over mesh axes, stage by stage, each at its axis's level. bytes: of the group's whole value;
 * for all-to-all and permute, of one device's part. */
double oly_cost_collective(oly_collective kind, oly_mesh mesh, const oly_axis_list *axes, double bytes);
/* Bytes that one device receives, as oly_plan_costs counts them. */
double oly_collective_bytes(oly_collective kind, int members, double bytes);

/* One device's computation. */
double oly_cost_memory(double bytes);
double oly_cost_gemm(oly_dtype dtype, double multiply_adds);
double oly_cost_operations(double n);

/* Predicted seconds of one run of a step, with the bodies of loops and the longest branch, and of a plan, on this
 * process. */
double oly_cost_step(const oly_plan *plan, const oly_step *step);
double oly_cost_plan(const oly_plan *plan);
#endif
