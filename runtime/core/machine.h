/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about the machine, from hwloc. */
#ifndef OLY_CORE_MACHINE_H
#define OLY_CORE_MACHINE_H
#include <olympus/base.h>

typedef struct oly_machine {
    int cores;           /* cores this process may run on (its own binding counts), at least 1 */
    size_t l1_bytes;     /* data cache of one core; 32 KiB if unknown */
    size_t l2_bytes;     /* 256 KiB if unknown */
    size_t l3_bytes;     /* 0 if there is none */
    int socket;          /* the package that all of them are on; -1: several, or unknown */
    size_t memory_bytes; /* of the node; 0 if unknown */
} oly_machine;

/* Reads it on the first call; later calls return the same. Falls back to sysconf if hwloc fails. */
const oly_machine *oly_machine_get(void);
void oly_machine_forget(void);
#endif
