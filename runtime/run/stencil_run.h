/* Running recognised stencil loops, and what the interpreter's files share. Private to runtime/run. */
#ifndef OLY_RUN_STENCIL_RUN_H
#define OLY_RUN_STENCIL_RUN_H
#include "run/interpret.h"

oly_status oly_run_stencil(oly_run *r, const oly_step *step);

size_t oly_stencil_tile_bytes(const oly_plan *plan, const oly_step *step); /* see tile_memory.h */

/* time_tiling_run.c */
oly_status oly_run_march(oly_run *r, const oly_step *step);
size_t oly_tiling_tile_bytes(const oly_plan *plan, const oly_step *step);

/* interpret.c */
oly_status oly_run_block(oly_run *r, const oly_block *b);
/* Are there messages that need MPI to be called now and then? */
bool oly_is_under_way(const oly_run *r);
/* Brings on what is under way; called by the thread that interprets. What fails is kept in r->advance. */
void oly_advance_exchanges(oly_run *r);
const oly_ticket *oly_next_ticket(oly_run *r);
#endif
