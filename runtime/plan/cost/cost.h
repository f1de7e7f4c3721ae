/* What things cost, in predicted seconds: a latency and a bandwidth for each level that bytes may cross (layout/node.h), and
 * rates of a device's own work. The numbers are fixed (OLYMPUS_COSTS changes them, also to those measured on this machine) and
 * the same on all ranks, so that plans are. Set by runtime/array/start.c; asked by the planner's choices and explanations. */
#ifndef OLY_PLAN_COST_COST_H
#define OLY_PLAN_COST_COST_H
#include "layout/node.h"
#include "plan/model/steps.h"

typedef struct oly_link {
    double latency;   /* seconds of a message */
    double bandwidth; /* bytes a second that one device receives */
} oly_link;

typedef struct oly_rates {
    oly_link link[OLY_N_LEVELS];
    double memory;     /* bytes a second that a device reads or writes */
    double gemm;       /* floating-point operations a second in matrix products of float32 */
    double operations; /* other operations on elements a second */
    /* Choices between layouts see the levels, too. Without: every link costs them `common`, the fixed numbers of a node or those
     * that OLYMPUS_COSTS gives it, never measured ones, because neither how a mesh is spread over processes nor what a job has
     * measured may change the order of sums (docs/architecture.md 6). */
    bool by_level;
    oly_link common;
    bool measure; /* OLYMPUS_COSTS asks for this machine's numbers, where it gives none itself */
} oly_rates;

/* The fixed numbers, and what a text in the notation of OLYMPUS_COSTS makes of them: "node=2us,8GB/s; memory=12GB/s; levels; measure".
 * fails OLY_PARSE with the column. */
oly_rates oly_rates_fixed(void);
oly_status oly_rates_read(const char *text, oly_rates *rates);
/* The same, on top of what the rates are. */
oly_status oly_rates_add(const char *text, oly_rates *rates);
/* The same notation back. */
void oly_rates_text(oly_text *t, const oly_rates *rates);
/* Those in use. */
const oly_rates *oly_rates_now(void);
void oly_rates_use(const oly_rates *rates);

/* One device receives so many bytes in so many messages. */
double oly_price_transfer(oly_level level, double bytes, double messages);
/* The same as choices between layouts see it. */
double oly_price_choice(oly_level level, double bytes, double messages);

typedef enum oly_collective {
    OLY_ALL_GATHER,     /* of parts of the value */
    OLY_REDUCE_SCATTER, /* of a value's partials, each in full */
    OLY_ALL_REDUCE,
    OLY_ALL_TO_ALL, /* of a device's part */
    OLY_PERMUTE,    /* of a device's part */
} oly_collective;
/* Seconds for a group over mesh axes, stage by stage, each at its axis's level. bytes: of the whole value of one group, for
 * all-to-all and permute of one device's part. */
double oly_price_collective(oly_collective kind, oly_mesh mesh, const oly_axis_list *axes, double bytes);
/* Bytes that one device receives, as oly_plan_costs counts them. */
double oly_collective_bytes(oly_collective kind, int members, double bytes);

/* One device's work. */
double oly_price_memory(double bytes);
double oly_price_gemm(oly_dtype dtype, double multiply_adds);
double oly_price_operations(double n);

/* Predicted seconds of a step in one run, loops' and branches' bodies included (the longest branch), and of a plan; as this
 * process sees it. */
double oly_price_step(const oly_plan *plan, const oly_step *step);
double oly_price_plan(const oly_plan *plan);
#endif
