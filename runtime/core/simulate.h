/* The job that OLYMPUS_SIMULATE asks to plan for, in place of the one that runs. Read once at start; asked by every layer that
 * would otherwise touch data, other processes, or the machine. */
#ifndef OLY_CORE_SIMULATE_H
#define OLY_CORE_SIMULATE_H
#include <olympus/base.h>

typedef struct oly_simulation {
    int ranks, devices; /* of the job, and of each rank; ranks 0: nothing is simulated */
    int node_ranks;     /* ranks on a node */
    const char *node;   /* the node in hwloc's synthetic notation; NULL: as this machine */
} oly_simulation;

/* Reads oly_option.simulate and simulate_node. fails OLY_PARSE, OLY_INVALID with what is wrong. */
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
/* For who is asked for values. */
oly_status oly_simulation_has_no_values(const char *what);
#endif
