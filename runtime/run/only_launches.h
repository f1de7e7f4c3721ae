/* SPDX-License-Identifier: BSD-3-Clause */
/* Which blocks of a plan are nothing but launches on devices that compute late: no messages, nothing that the host reads, prints, checks or
 * calls. Counted loops and stencil passes may be inside. Private to runtime/run. */
#ifndef OLY_RUN_ONLY_LAUNCHES_H
#define OLY_RUN_ONLY_LAUNCHES_H
#include "plan/model/steps.h"

typedef struct oly_launches {
    double work;  /* element-operations, on this process */
    double count; /* launches, about */
} oly_launches;

/* Adds those of a block. False: it is more than launches. */
bool oly_only_launches(const oly_plan *plan, const oly_block *b, oly_launches *sum);
#endif
