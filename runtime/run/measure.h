/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model's rates as measured on this machine: OLYMPUS_COSTS=measure. Called at start
 * (runtime/array/start.c). */
#ifndef OLY_RUN_MEASURE_H
#define OLY_RUN_MEASURE_H
#include "plan/cost/cost.h"

/* What a process knows about rates when it starts. */
typedef struct oly_rates_known {
    oly_rates rates;     /* those of OLYMPUS_COSTS, completed from the file of this machine */
    char host[64];       /* this host */
    char network_to[64]; /* the host that the file's network was measured with */
    unsigned there;      /* the rates that the file has (bits: levels, and OLY_RATES_OF_DEVICE) */
} oly_rates_known;
enum { OLY_RATES_OF_DEVICE = 1 << OLY_N_LEVELS };
/* Local. fails OLY_PARSE. */
oly_status oly_rates_wanted(oly_rates_known *known);
/* All ranks use the rates of rank 0. If it asks for measurement, unknown ones that this job can measure are measured,
 * on rank 0 and between it and the next rank of each level, and stored in the file. A network measured with another
 * host counts as unknown. Called by all ranks when nodes are known; other_host: the name of oly_rates_peer's, NULL if
 * there is none. */
oly_status oly_rates_settle(const oly_rates_known *rank0, const char *other_host);
/* The rank with which rank 0 measures the network; -1: all are on one node. */
int oly_rates_peer(void);

/* The name of a file of measurements of this host, whose folder is created. False: there is no place for one. */
bool oly_costs_file(char *name, size_t size, const char *suffix);
/* Writes it, so that it is complete or absent; where it cannot be written, there is none. */
void oly_costs_write(const char *name, const char *text);
#endif
