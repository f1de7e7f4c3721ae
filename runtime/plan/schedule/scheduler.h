/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this room share. Private to it. */
#ifndef OLY_PLAN_SCHEDULE_SCHEDULER_H
#define OLY_PLAN_SCHEDULE_SCHEDULER_H
#include "plan/model/effects.h"
#include "plan/move/move.h"
#include "plan/model/planner.h"

/* -- schedule_numbers.c: renumbers steps and recomputes the liveness of slots -------------------------------------- */
void oly_renumber_steps(oly_planner *p);
/* Calls the pass for every block, inner ones first, and renumbers if one has changed. */
typedef oly_status oly_block_pass(oly_planner *p, oly_block *b, bool *changed);
oly_status oly_pass_over_blocks(oly_planner *p, oly_block_pass *pass);
double oly_copied_elements(int n, const oly_copy_work *copies);

/* -- direct_writes.c -- */
/* The only store of the group into the slot on any device; -1: there is none, or another. */
int oly_store_into(const oly_plan *plan, const oly_step *group, int slot);
/* Does the box of a group have these extents, but for dimensions of size 1? Then place[] has, of its dimensions, the strides that
 * `stride` gives to those of the extents. */
bool oly_match_box(const oly_tile_box *box, int rank, const int64_t *extent, const int64_t *stride, int64_t *place);
/* And does a store of the group have these strides? */
bool oly_stores_box(const oly_tile_box *box, const oly_place *store, int rank, const int64_t *extent,
                    const int64_t *stride);

/* -- direct_reads.c -- */
/* Does the copy write a box of a row-major array, every element from a place of its own? */
bool oly_writes_box(const oly_copy_work *c);
/* A load from where such a copy writes becomes one from where it reads. False: not all of it is within the box, or it does not go along
 * dimensions of it. */
bool oly_redirect_load(const oly_copy_work *own, const oly_tile_work *w, oly_place *load);

/* -- overlap.c -- */
enum { OLY_AFTER_START = -1, OLY_AFTER_WAIT = -2 };
typedef struct oly_part {
    oly_step step;
    int after; /* needs of the transfer: its start, all of it, or the messages of parts->peers[0..after] */
} oly_part;

typedef struct oly_parts {
    int n; /* 0: the step is not split */
    oly_part part[2 * OLY_MAX_RANK + 1 > OLY_MOST_PEERS + 1 ? 2 * OLY_MAX_RANK + 1 : OLY_MOST_PEERS + 1];
    int n_peers, peers[OLY_MOST_PEERS];
} oly_parts;

/* Some iterations of a loop nest. */
typedef struct oly_ranges {
    int rank;
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} oly_ranges;
double oly_ranges_volume(const oly_ranges *r);
/* Of the iterations `all`, which read (or write) at `place`, finds those that touch the piece. The slot is row-major
 * and the piece has its strides. False: unknown. */
bool oly_find_readers(const oly_piece *piece, int64_t element, const oly_place *place, const oly_ranges *all,
                      oly_ranges *found);

/* Cuts from a device's iterations of an elementwise step those that read the piece, and as few others as possible. False: unknown. */
bool oly_cut_readers(const oly_step *s, const oly_tile_work *w, const oly_piece *piece, oly_ranges *inner);
/* The device's work on one part of its box. */
oly_status oly_part_work(oly_planner *p, const oly_step *s, const oly_tile_work *whole, const oly_ranges *part,
                         oly_tile_work *w);
/* Slab k around the inner part: number 2d is below it along dimension d, 2d + 1 above; in dimensions before d it is
 * as wide as the inner part. */
oly_ranges oly_slab(const oly_tile_box *box, const oly_ranges *inner, int k);
/* Splits a step that reads what the transfers bring, which takes `flight` seconds, where that pays. */
oly_status oly_split_step(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                          oly_parts *parts);

/* -- product_parts.c -- */
typedef struct oly_product_phases {
    bool
        known; /* false: the product does not divide into parts, or the phase of one is unknown; then nothing below is complete */
    int **phase;                             /* [device][part] */
    int in_phase[OLY_MOST_PEERS + 1], total; /* numbers of parts */
} oly_product_phases;
/* The phase in which a part can be computed, 0 to OLY_MOST_PEERS; -1: unknown. */
typedef int oly_phase_of(const void *context, const oly_gemm_work *w, const oly_gemm_part *part);
oly_status oly_product_phases_of(oly_planner *p, const oly_step *product, oly_phase_of *phase_of, const void *context,
                                 oly_product_phases *found);
/* What each device computes in one phase. */
oly_status oly_product_phase_work(oly_planner *p, const oly_step *product, const oly_product_phases *phases, int phase,
                                  const oly_gemm_work **work);

/* -- overlap_scatter.c -- */
/* Merges a product and the exchange of its result, which takes `flight` seconds, into one step that sends each
 * process its blocks as soon as they are computed, if that pays. *done says so; then `fed` is that step. */
oly_status oly_send_blocks_early(oly_planner *p, const oly_step *product, const oly_step *move, double flight,
                                 oly_step *fed, bool *done);
#endif
