/* The planner's rates as this machine has them: OLYMPUS_COSTS=measure. Called at start (runtime/array/start.c). */
#ifndef OLY_RUN_MEASURE_H
#define OLY_RUN_MEASURE_H
#include "plan/cost.h"

/* The rates that OLYMPUS_COSTS asks for. *missing: levels and rates that it says to measure and that the file of this machine
 * does not have (bits: levels, and OLY_RATES_OF_DEVICE), or 0. Local. fails OLY_PARSE. */
enum { OLY_RATES_OF_DEVICE = 1 << OLY_N_LEVELS };
oly_status oly_rates_wanted(oly_rates *rates, unsigned *missing);
/* What is missing on rank 0 is measured, on it and between it and the next rank of each level, if there is one; then kept in
 * the file. Rank 0's rates are then everybody's. Called by all ranks, with rank 0's `missing`, when nodes are known. */
oly_status oly_rates_measure(oly_rates *rates, unsigned missing);
#endif
