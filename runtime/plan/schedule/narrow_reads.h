/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a product finds the elements of an operand before the group that converted them: for fused_products.c, which asks whether it can read
 * them there, and run/narrow_product.c, which does. */
#ifndef OLY_PLAN_SCHEDULE_NARROW_READS_H
#define OLY_PLAN_SCHEDULE_NARROW_READS_H
#include "plan/model/steps.h"

typedef struct oly_narrow_read {
    int load;       /* of the group */
    int64_t offset; /* elements from where it begins */
} oly_narrow_read;

/* Operand o (0: a, 1: b) of a device's product, which a store of the group holds, as what that store is converted from. *task, the product's at
 * first, is given its strides. False: it has no such strides. */
bool oly_read_narrow(const oly_gemm_work *product, int o, const oly_tile_program *p, const oly_tile_work *group,
                     oly_gemm_task *task, oly_narrow_read *read);
#endif
