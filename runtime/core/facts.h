/* SPDX-License-Identifier: BSD-3-Clause */
/* What the planner is told of the devices of a job: their rates, and how much of a computation suits a cache. Numbers that plans depend
 * on, so the same on every rank. A platform provides them (device/platform.h) when it is chosen; before, and where it does not, they are
 * those of a CPU. Called by runtime/device, which sets them, and by runtime/plan. */
#ifndef OLY_CORE_FACTS_H
#define OLY_CORE_FACTS_H
#include <stdint.h>

/* Without padding: ranks compare its bytes. */
typedef struct oly_facts {
    double memory;         /* bytes per second that a device reads or writes */
    double gemm;           /* floating-point operations per second in float32 matrix products */
    double operations;     /* other operations on elements per second */
    double copy_latency;   /* seconds for a copy between devices of one process */
    double copy_bandwidth; /* bytes per second that one device receives so */
    int64_t tile_bytes; /* what the tiles of loops over several fields should fit into: on a CPU a thread's own cache */
    int64_t one_memory; /* 1: the devices of a process and its host share one memory */
    int64_t
        stencil_steps; /* time steps that a pass of a stencil loop advances at most; the kernels may suggest fewer */
} oly_facts;

const oly_facts *oly_facts_now(void);
void oly_facts_use(const oly_facts *facts); /* NULL: a CPU's */
#endif
