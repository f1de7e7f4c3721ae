/* SPDX-License-Identifier: BSD-3-Clause */
/* A chain of rows (plan/schedule/row_chains.c), block by block: the executor for CPUs computes all steps for some rows, then for the next ones,
 * so that rows are read from memory once. What only the chain uses is kept in a few blocks of its memory, in turn, and does not leave
 * the cache. The chunks of the last step are blocks; the other steps have none. Private to the executor for CPUs (prepare_cpu.c,
 * executor_cpu.c). */
#ifndef OLY_RUN_ROW_BLOCKS_H
#define OLY_RUN_ROW_BLOCKS_H
#include "plan/model/steps.h"
#include <stdatomic.h>

/* Can the executor run the chain that ends with this step so? Each of its steps is prepared. *made: NULL if not. fails OLY_MEMORY. */
struct oly_row_blocks;
oly_status oly_row_blocks_prepare(oly_plan *plan, const oly_step *last, const struct oly_row_blocks **made);
int oly_row_blocks_on(const struct oly_row_blocks *r, int device);
/* Bytes that a device reads from memory and writes to it, for forecasts: not what only the chain uses. */
void oly_row_blocks_traffic(const oly_plan *plan, const struct oly_row_blocks *r, int device, double *read,
                            double *written);

/* What the threads that run one chain share: which parts of the memory of its own are free. */
typedef struct oly_row_turns {
    bool in_order; /* memory is used so that the steps must follow each other: */
    int only;      /* blocks are those of this step then */
    _Atomic(uint64_t) taken;
} oly_row_turns;
void oly_row_turns_begin(void *const *base, const oly_plan *plan, const struct oly_row_blocks *r, oly_row_turns *turns);
void oly_run_row_block(void *const *base, const oly_plan *plan, const oly_step *last, int device, int block,
                       oly_row_turns *turns);
extern bool
    oly_row_blocks_backwards; /* the last block comes first: for tests, as any order is right; scatters come in order anyway */
#endif
