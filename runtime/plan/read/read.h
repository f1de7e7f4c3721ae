/* Reading values: where each device finds the part of a value that it needs, and what is exchanged so that it does. What other rooms may
 * call. */
#ifndef OLY_PLAN_READ_READ_H
#define OLY_PLAN_READ_READ_H
#include "plan/model/planner.h"

/* -- operand_reads.c -- */
/* Where a device's part of a region of a value is. constant: the value is a constant node instead. */
typedef struct oly_reading {
    const oly_node *constant;
    oly_place *place; /* [n_devices]; base -1 on devices that need nothing */
} oly_reading;
oly_status oly_read_operand(oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *region,
                            oly_reading *reading);
/* What is read must live until the newest step, which may come after exchanges for other operands: called for every reading
 * right before the step that reads is added. */
void oly_reading_use(oly_planner *p, const oly_reading *reading);
/* A reading that is a constant becomes one of an element in memory that is repeated (strides 0); others stay. */
oly_status oly_constant_in_memory(oly_planner *p, oly_frame *f, oly_mesh mesh, oly_reading *reading);
/* A view of a part of an array (slice, rev) is copied to memory of its own, where it lies: for who reads beyond its ends. */
oly_status oly_keep_view(oly_planner *p, oly_frame *f, oly_node *node);
/* A replica that has all of a region; NULL: none. */
oly_replica *oly_find_replica(const oly_value *v, const oly_region *r);
/* Has every device what it needs of the region, in its part or in a copy made before? */
bool oly_is_at_hand(oly_frame *f, const oly_node *node, const oly_region *region);
oly_status oly_add_replica(oly_planner *p, oly_value *v, const oly_region *r, const oly_wanted *wanted, int slot);
/* The part of its operand that a view needs for a region of itself. */
oly_region oly_view_region(const oly_node *n, const oly_region *r);
/* The value in a slot of its own, contiguous, in this layout. Reuses the value's slot when it is just that. */
oly_status oly_materialise(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* The same, but never shared with another use: writes a copy if need be. */
oly_status oly_copy_value(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* The same, in memory that will be written over: nobody else reads it, now or later. */
oly_status oly_own_copy(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot);
/* Writes a constant node's number over the layout's part of a slot, for `node`. */
oly_status oly_fill(oly_planner *p, oly_frame *f, const oly_node *constant, const oly_node *node, const oly_layout *l,
                    int slot);
/* Writes a value into part of another: element i goes to start + i * step of the value of layout `whole` in `slot`; elements
 * that fall outside are left out. */
oly_status oly_write_part(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                          const oly_layout *whole, const int64_t *start, const int64_t *step);

/* The same for a box of the value. */
oly_status oly_write_box(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                         const oly_layout *whole, const int64_t *start, const int64_t *step, const oly_box *of);

/* -- view_ends.c -- */
/* May who reads this region of a view, or of a roll that is looked through, read its operand instead? Not where the region goes on
 * beyond ends that are somewhere inside the operand: it would be clipped, or go round, at the operand's ends. */
bool oly_sees_its_ends(const oly_node *n, const oly_region *r);
/* Copies to memory of its own the first value on the way from a node to memory that a region must not be read through. */
oly_status oly_keep_ends(oly_planner *p, oly_frame *f, oly_node *n, const oly_region *region);

/* -- gather_reads.c -- */
/* Room in p->read and p->read_regions for so many: regions are large, one list serves one depth, then one step, after the other. */
oly_status oly_reserve_reads(oly_planner *p, int most);
/* Announces what will be demanded together, so that one exchange serves all of it. */
oly_status oly_gather_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes, const oly_region *regions);
/* The same for parts that are to be had from neighbours only: what must be resharded altogether is left to its demand. */
oly_status oly_gather_neighbour_reads(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes,
                                      const oly_region *regions);
#endif
