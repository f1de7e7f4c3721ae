/* SPDX-License-Identifier: BSD-3-Clause */
/* The job that OLYMPUS_SIMULATE plans for, instead of the real one. Read once at start; checked by every layer that would otherwise
 * touch data, other processes, or the machine. */
#ifndef OLY_CORE_SIMULATE_H
#define OLY_CORE_SIMULATE_H
#include <olympus/base.h>

typedef struct oly_simulation {
    int ranks, devices; /* of the job, and per rank; ranks 0: no simulation */
    int node_ranks;     /* ranks on a node */
    const char *node;   /* the node in hwloc's synthetic notation; NULL: as this machine */
} oly_simulation;

/* Reads oly_option.simulate and simulate_node. fails OLY_PARSE, OLY_INVALID with the reason. */
oly_status oly_simulation_read(void);
extern oly_simulation oly_simulation_asked;
static inline const oly_simulation *oly_simulation_get(void)
{
    return &oly_simulation_asked;
}
static inline bool oly_is_simulated(void)
{
    return oly_simulation_asked.ranks > 0;
}
void oly_simulation_forget(void);
/* The error for reading values. */
oly_status oly_simulation_has_no_values(const char *what);
#endif
