/* The planner's rates as this machine has them: OLYMPUS_COSTS=measure. Called at start (runtime/array/start.c). */
#ifndef OLY_RUN_MEASURE_H
#define OLY_RUN_MEASURE_H
#include "plan/cost/cost.h"

/* What a process knows when it starts. */
typedef struct oly_rates_known {
    oly_rates rates;     /* that OLYMPUS_COSTS asks for, as far as it gives them or the file of this machine has them */
    char host[64];       /* this one */
    char network_to[64]; /* the host that the file's network was measured with */
    unsigned there;      /* what the file has (bits: levels, and OLY_RATES_OF_DEVICE) */
} oly_rates_known;
enum { OLY_RATES_OF_DEVICE = 1 << OLY_N_LEVELS };
/* Local. fails OLY_PARSE. */
oly_status oly_rates_wanted(oly_rates_known *known);
/* What rank 0 knows becomes everybody's rates; where it asks to measure, what it does not know and this job can tell is measured,
 * on rank 0 and between it and the next rank of each level, and kept in the file. A network measured with another host counts as
 * not known. Called by all ranks when nodes are known; other_host: the name of oly_rates_peer's, NULL if there is none. */
oly_status oly_rates_settle(const oly_rates_known *rank0, const char *other_host);
/* The rank that rank 0's network is measured with; -1: all are on one node. */
int oly_rates_peer(void);
#endif
