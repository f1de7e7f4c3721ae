/* SPDX-License-Identifier: BSD-3-Clause */
/* What passes share that note something at steps of a plan before it runs: which steps are launched together, recorded, begun early. Private
 * to runtime/run. */
#ifndef OLY_RUN_PREPARED_STEPS_H
#define OLY_RUN_PREPARED_STEPS_H
#include "plan/model/steps.h"

/* The step's own notes, to be changed: what was noted before may be shared with other steps. NULL: out of memory. */
struct oly_prepared *oly_prepared_own(oly_plan *plan, oly_step *s);

/* Calls visit for a block (NULL: none) and those of the loops and branches inside, outer ones first; ends with the first failure. */
typedef oly_status oly_block_visitor(const oly_block *b, void *context);
oly_status oly_each_block(const oly_block *b, oly_block_visitor *visit, void *context);
#endif
