/* SPDX-License-Identifier: BSD-3-Clause */
/* Operand reads: where each device finds the region of a value that it needs, and the exchanges for what it lacks.
 * What other rooms may call. */
#ifndef OLY_PLAN_READ_READ_H
#define OLY_PLAN_READ_READ_H
#include "plan/model/planner.h"

/* -- operand_reads.c -- */
/* Where each device's box of a region is. constant: the value is this constant node and has no memory. */
typedef struct oly_reading {
    const oly_node *constant;
    oly_place *place; /* [n_devices]; base -1 on devices that need nothing */
} oly_reading;
oly_status oly_read_operand(oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *region,
                            oly_reading *reading);
/* Extends the lifetime of what is read to the newest step. Must be called for every reading right before the reading
 * step is added, because exchanges for other operands may have come between. */
void oly_reading_use(oly_planner *p, const oly_reading *reading);
/* Turns a constant reading into one of a single element in memory, repeated with strides 0. Others are unchanged. */
oly_status oly_constant_in_memory(oly_planner *p, oly_frame *f, oly_mesh mesh, oly_reading *reading);
/* Copies a view of a part of an array (slice, rev) to its own memory, in the view's layout, for readers that read
 * beyond its ends. */
oly_status oly_keep_view(oly_planner *p, oly_frame *f, oly_node *node);
/* A replica that contains all of a region; NULL: none. */
oly_replica *oly_find_replica(const oly_value *v, const oly_region *r);
/* Does every device have what it needs of the region, in its block or in a replica? */
bool oly_is_at_hand(oly_frame *f, const oly_node *node, const oly_region *region);
oly_status oly_add_replica(oly_planner *p, oly_value *v, const oly_region *r, const oly_wanted *wanted, int slot);
/* The region of its operand that a view needs for a region of itself. */
oly_region oly_view_region(const oly_node *n, const oly_region *r);
/* The value in a slot in this layout, contiguous. Reuses the value's own slot if it has this layout. */
oly_status oly_materialise(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* The same, but not shared with another result or carry: copies if necessary. */
oly_status oly_copy_value(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* The same, in memory that may be overwritten: nobody else reads it, now or later. */
oly_status oly_own_copy(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* Fills the layout's part of a slot with a constant node's number. node: what the step is for. */
oly_status oly_fill(oly_planner *p, oly_frame *f, const oly_node *constant, const oly_node *node, const oly_layout *l,
                    int slot);
/* Writes a value into part of another: element i goes to start + i * step of the value with layout `whole` in `slot`.
 * Elements that fall outside are skipped. */
oly_status oly_write_part(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                          const oly_layout *whole, const int64_t *start, const int64_t *step);

/* The same for a box of the value. */
oly_status oly_write_box(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                         const oly_layout *whole, const int64_t *start, const int64_t *step, const oly_box *of);
/* Adds copies of one element in memory, such as a padding value, into a slot, `work` elements in all: to the step before, if that writes
 * other parts of for_node there. apart: as a step of its own, because what is copied next overwrites some of it. */
oly_status oly_write_constant(oly_planner *p, oly_frame *f, const oly_node *for_node, int slot,
                              const oly_reading *value, bool apart, int n, oly_copy_work *copies, double work);

/* -- view_ends.c -- */
/* May a reader of this region of a view, or of a cyclic shift that is looked through, read its operand instead? Not
 * if the region extends beyond an end that is inside the operand: it would be clipped, or wrap, at the operand's ends
 * instead. */
bool oly_sees_its_ends(const oly_node *n, const oly_region *r);
/* On the way from a node to memory, copies to its own memory the first value through which the region must not be
 * read. */
oly_status oly_keep_ends(oly_planner *p, oly_frame *f, oly_node *n, const oly_region *region);

/* -- gather_reads.c -- */
/* Makes room in p->read and p->read_regions for `most` entries. Regions are large, so all depths, and then all steps,
 * share one list. */
oly_status oly_reserve_reads(oly_planner *p, int most);
/* Announces reads that belong together, so that one exchange serves them all. */
oly_status oly_gather_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes, const oly_region *regions);
/* The same, only for what neighbours have: what needs a full reshard is transferred when it is read. */
oly_status oly_gather_neighbour_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes,
                                      const oly_region *regions);
#endif
