/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about devices. See facts.h. */
#include "core/facts.h"

/* Cores of 2 to 3 GHz with 512 KiB of cache each. */
#define OF_CPU                                                                                                         \
    {                                                                                                                  \
        .memory = 10e9, .gemm = 50e9, .operations = 2e9, .copy_latency = 0.5e-6, .copy_bandwidth = 10e9,               \
        .tile_bytes = 384 * 1024, .one_memory = 1, .stencil_steps = INT32_MAX                                          \
    }
static oly_facts now = OF_CPU;

const oly_facts *oly_facts_now(void)
{
    return &now;
}

void oly_facts_use(const oly_facts *facts)
{
    now = facts ? *facts : (oly_facts)OF_CPU;
}
