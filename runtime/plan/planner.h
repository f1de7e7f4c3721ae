/* What the passes of the planner share while a plan is being made. Private to runtime/plan. */
#ifndef OLY_PLAN_PLANNER_H
#define OLY_PLAN_PLANNER_H
#include "plan/plan.h"

/* A region: for each device a box that it needs of a value. Per dimension, element numbers scale * i + [lo, hi] for i in the
 * device's part of a loop of n iterations cut by `split`; clipped to the value. A layout is a region with scale 1, lo = hi = 0.
 * A negative scale runs backwards. */
typedef struct oly_region_dim {
    oly_split split;
    int64_t n, scale, lo, hi;
    int64_t spread; /* more than 1: of these numbers the multiples of it, divided by it */
    bool wraps;     /* the value goes on beyond its ends, from the other end: not clipped */
} oly_region_dim;

typedef struct oly_region {
    oly_mesh mesh;
    int rank;
    oly_region_dim dim[OLY_MAX_RANK];
} oly_region;

/* The parts of a region that will be read; n = 0: all of it. Nothing else of the region is brought. */
typedef struct oly_wanted {
    int n;
    const oly_region *part;
} oly_wanted;

/* A copy of a value, or of more than each device's own part, in another slot. */
typedef struct oly_replica {
    struct oly_replica *next;
    oly_region region;
    oly_wanted wanted;
    int slot;
} oly_replica;

/* Why a dimension of a value is cut over the axes it is cut over. Noted where axes are chosen, read by explanations
 * (reason.c). */
typedef enum oly_why {
    OLY_WHY_FACTOR,     /* another operand or the result of `node` is, in the dimension of the same factor */
    OLY_WHY_CONSTRAINT, /* `node` says so */
    OLY_WHY_TYPE,       /* its type says so: an Explicit axis */
    OLY_WHY_RESULT,     /* the caller wants result number `operand` so */
    OLY_WHY_SAME,       /* it is one value with another inside or outside the loop or branch `node` */
    OLY_WHY_PRICE,      /* the cheapest of what `node`'s factors allow */
} oly_why;

typedef struct oly_reason {
    struct oly_reason *next; /* the older one */
    oly_why why;
    int dimension;
    bool conflict; /* others wanted it otherwise: the largest was followed */
    int operand;   /* FACTOR: of `node`; n_in: its result */
    const oly_node *node;
} oly_reason;

/* How a node is worked, where its price has decided that (choose.c): the cuts of the loop over its result, of the contracting
 * pairs of a product, and those a sum over devices is scattered to. */
typedef struct oly_choice {
    oly_axis_list work[OLY_MAX_RANK], summed[OLY_MAX_RANK], wanted[OLY_MAX_RANK];
    double wire[2], seconds[2]; /* of all that was decided together: as propagated, as chosen */
    bool differs;               /* from what would be without choices; else only its operands lie elsewhere */
} oly_choice;

/* What the planner knows of a node. */
typedef struct oly_value {
    /* one cache line of what most passes look at */
    _Alignas(64) const oly_choice *choice; /* NULL: as propagated */
    const oly_layout *layout;              /* where it lies, once lowered; NULL: not yet (oly_set_layout) */
    oly_block *block;                      /* that computes it */
    oly_replica *replicas;
    const oly_node *written_by; /* the update that writes it into a larger array, if any: where it had better lie */
    int slot;                   /* -1: not in memory (views, constants) */
    int group;                  /* of fused nodes; -1 */
    int depth;                  /* see group.c */
    uint32_t closed;            /* mesh axes (bits) that lie as chosen by the user: none may be added */
    uint16_t open_dimensions;   /* bits: not those of the user's choice, all axes may be added there */
    bool silent;                /* made of constants alone: lies where its users want it (flow.h) */
    bool rolled;                /* read through, see roll.c */
    bool late;                  /* lies where its reader is, its operand is brought there: enlarge.c */
    bool written_over;          /* a loop's carry that stays where it is: see lower_loop.c */
    bool waits;                 /* in its slot are partials: see oly_fold_later */
    /* the rest */
    oly_axis_list axes[OLY_MAX_RANK]; /* propagated */
    oly_reason *reasons;              /* why, the newest first */
} oly_value;

typedef struct oly_group {
    int n_nodes;
    oly_node **nodes;
    int n_left; /* of the nodes, once some were worked before the others (delay_group.c); left NULL: all */
    oly_node **left;
    bool lowered, settled, prepared; /* settled: `layout` is chosen; prepared: what it reads of neighbours is there */
    bool looked_through;             /* for what may be worked before what waits is reduced (order.c) */
    oly_layout layout;
    int next; /* a group that goes on with its values, as one group would have become too large; -1 */
} oly_group;

typedef struct oly_waiting_fold oly_waiting_fold;

/* One graph being planned: the function's, or the body of a loop. */
typedef struct oly_frame {
    struct oly_frame *outer;
    struct oly_frame *next; /* the node's next branch */
    oly_node *loop;         /* in the outer frame: inputs are its counter, carries, captures; NULL for a function */
    oly_graph *graph;
    oly_value *values; /* [graph->n_nodes] */
    int first_number;  /* of the values, over all frames (flow.h) */
    int n_groups;
    oly_group *groups;
    oly_block *block;
    struct oly_waiting_fold *waiting;
    int n_folded;                         /* of those that waited */
    struct oly_accumulator *accumulators; /* of a loop's body, once it is lowered: accumulate.c */
    struct oly_frame **bodies;            /* [graph->n_nodes]; frames of the graphs inside nodes */
    struct oly_chooser *chooser;          /* while layouts are chosen by price */
} oly_frame;

#define OLY_MOST_GRIDS 4
typedef struct oly_planner {
    oly_plan *plan;
    oly_mesh mesh;
    bool uncommitted; /* nothing says where: the mesh is that of the default device */
    int n_meshes;     /* of the program, where it has several of these devices: mesh is then the grid that they share */
    oly_mesh meshes[OLY_MOST_GRIDS];
    oly_sharding *placed; /* then: of every result that a place gives, what the program says; else NULL */
    const int *position;  /* [n_devices] in mesh; -1: not in it */
    const oly_plan_request *request;
    int next_number;
    struct oly_wire *spare_wires; /* see wires.h */
    int spare_capacity;
    struct oly_fold_room *fold_room; /* see fold.c */
    struct oly_planner *kept;        /* see fold_later.c */
    int read_capacity;               /* of the list of what a depth, or a step, reads: oly_room_for_reads */
    oly_node **read;
    oly_region *read_regions;
    const oly_node *reader;                  /* the node being lowered; NULL: none, results are handed out */
    const struct oly_fold_share *fold_share; /* see finish.c; NULL: folds take each their own */
    const oly_layout *newest;                /* of those that values have: many in a row are alike */
} oly_planner;

#define OLY_PLAN_NEW(p, type, count) OLY_ARENA_NEW(&(p)->plan->arena, type, count)
#define OLY_PLAN_CHECK(pointer)                                                                                        \
    do {                                                                                                               \
        if (!(pointer))                                                                                                \
            return oly_out_of_memory(0, "a plan");                                                                     \
    } while (0)

/* -- plan.c -- */
oly_value *oly_value_of(oly_frame *f, const oly_node *node);
/* The outer node a loop body's input stands for, when it is a capture; else NULL. */
oly_node *oly_captured(const oly_frame *f, const oly_node *node);
oly_status oly_frame_new(oly_planner *p, oly_frame *outer, oly_node *loop, oly_graph *g, oly_frame **frame);
oly_step *oly_step_add(oly_planner *p, oly_block *b, oly_step_kind kind, const oly_node *node, const char *what);
oly_block *oly_block_new(oly_planner *p);
/* A new slot for a value laid out so; -1 when out of memory. The caller sets its block. */
int oly_slot_new(oly_planner *p, const oly_region *region, size_t element_bytes);
void oly_slot_use(oly_planner *p, int slot); /* used by the newest step */
/* Position of the d-th device of the plan in a mesh, -1 if none. */
int oly_position_in(const oly_planner *p, oly_mesh mesh, int device);
const char *oly_plan_say(oly_planner *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes where a value lies; the layout is copied. */
oly_status oly_set_layout(oly_planner *p, oly_value *v, const oly_layout *l);

/* Is it a result of its graph? Then it ends in canonical blocks. */
bool oly_is_result(const oly_frame *f, const oly_node *n);

/* Is d one of the node's params.axes? */
bool oly_has_axis(const oly_node *n, int d);

/* Does the node say itself where its value lies (or, through params.settled, along some axes)? */
static inline bool oly_is_placed(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_PLACE && oly_ops[n->op].detail == OLY_PLACE_ALL;
}

/* -- region.c: boxes of regions -- */
oly_region oly_region_of_layout(const oly_layout *l);
void oly_region_from_layout(oly_region *r, const oly_layout *l); /* the same, where it shall be: regions are large */
oly_box oly_region_box(const oly_region *r, const int64_t *shape, int position);
/* What part `part` of one dimension of `size` elements covers of it; lo = hi: nothing. */
void oly_region_range(const oly_region_dim *r, int64_t size, int64_t part, int64_t *lo, int64_t *hi);
/* The parts of one dimension that may meet [lo, hi), lo < hi, of the value: first > last when there are none. */
void oly_region_parts(const oly_region_dim *r, int64_t lo, int64_t hi, int *first, int *last);
bool oly_region_equal(const oly_region *a, const oly_region *b);
/* True when on every device the region lies in the layout's part (decided for all devices alike, on every process). */
bool oly_region_inside_layout(const oly_region *r, const oly_layout *l);
bool oly_region_inside_region(const oly_region *inner, const oly_region *outer);
/* Grows `hull` to hold r too; false when they are cut differently. */
bool oly_region_join(oly_region *hull, const oly_region *r);

/* -- lower_sort.c -- */
/* Does sorting a line over these axes gather it? Then nothing is to be gained from cutting the result. */
bool oly_gathers_line(const oly_node *n, oly_mesh mesh, const oly_axis_list *axes);

/* -- enlarge.c -- */
oly_status oly_enlarge_late(oly_planner *p, oly_frame *f);

/* -- reason.c -- */
/* Notes why dimension d of a value has just got its axes. */
void oly_note_reason(oly_planner *p, oly_value *v, int d, oly_reason reason);

/* -- split_axes.c -- */
/* Distances between neighbours along parts of axes of p->mesh, as reshapes cut them. */
typedef struct oly_axis_cuts {
    int n;
    int64_t distance[OLY_MAX_RANK];
} oly_axis_cuts;
oly_status oly_find_axis_cuts(const oly_planner *p, oly_axis_cuts *cuts);
/* -- grids.c -- */
/* Finds the grid that several meshes of the same devices share, if there is one, and moves the graph's places to it. */
oly_status oly_unite_grids(oly_planner *p);
/* The same places named by the plan's mesh, as far as possible; and by a mesh of the program. NULL: out of memory. */
oly_sharding oly_on_grid(const oly_planner *p, oly_sharding s);
oly_sharding oly_off_grid(const oly_planner *p, oly_sharding s);

/* -- propagate.c -- */
oly_status oly_propagate(oly_planner *p, oly_frame *f);

/* -- choose.c -- */
/* After propagation: other layouts for values that are free, where the whole graph then costs clearly less and moves fewer bytes.
 * Makes the frame's groups. */
oly_status oly_choose(oly_planner *p, oly_frame *f);

/* -- group.c -- */
/* Does nothing when they are made. */
oly_status oly_make_groups(oly_planner *p, oly_frame *f);

/* -- partition.c: which layout -- */
/* Where the operand of a node lies, cut for the plan's mesh. */
oly_layout oly_operand_layout(oly_planner *p, oly_frame *f, const oly_node *n);
/* Layout a node would have where it is: of its memory, or derived through views. false: none (constants). */
bool oly_natural_layout(oly_frame *f, const oly_node *node, oly_layout *l);
oly_status oly_settle_group(oly_planner *p, oly_frame *f, oly_group *g);
/* Layout of an array that is written in parts: where the array before lies, a result of the graph in its own blocks. */
oly_layout oly_written_layout(oly_planner *p, oly_frame *f, const oly_node *n);
oly_layout oly_node_layout(oly_planner *p, oly_frame *f,
                           const oly_node *node); /* canonical cuts of the propagated axes */
oly_layout oly_axes_layout(oly_planner *p, const oly_node *node, const oly_axis_list *axes); /* of these */

/* -- cuts.c -- */
/* What a group reads along one dimension, and whether it had better work in the cuts of its result than in cuts `at`. times: so
 * many elements are read for each that ends up there (of a sum). */
typedef struct oly_cut_choice oly_cut_choice;
oly_cut_choice *oly_cut_choice_new(oly_planner *p);
void oly_cut_choice_clear(oly_cut_choice *c);
void oly_cut_choice_add(oly_cut_choice *c, oly_frame *f, const oly_node *read, const oly_split *split);
bool oly_cut_at_result(const oly_cut_choice *c, const oly_split *at, const oly_split *result, int64_t n, int64_t bytes,
                       int64_t times);

/* -- demand.c: reading values -- */
/* Where a device's part of a region of a value is. constant: the value is a constant node instead. */
typedef struct oly_reading {
    const oly_node *constant;
    oly_place *place; /* [n_devices]; base -1 on devices that need nothing */
} oly_reading;
oly_status oly_demand(oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *region,
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

#define OLY_LONGEST_CHAIN 8 /* groups that go on with each other's values and are worked in one layout */

/* -- view_ends.c -- */
/* May who reads this region of a view, or of a roll that is looked through, read its operand instead? Not where the region goes on
 * beyond ends that are somewhere inside the operand: it would be clipped, or go round, at the operand's ends. */
bool oly_sees_its_ends(const oly_node *n, const oly_region *r);
/* Copies to memory of its own the first value on the way from a node to memory that a region must not be read through. */
oly_status oly_keep_ends(oly_planner *p, oly_frame *f, oly_node *n, const oly_region *region);

/* -- prepare.c -- */
/* Room in p->read and p->read_regions for so many: regions are large, one list serves one depth, then one step, after the other. */
oly_status oly_room_for_reads(oly_planner *p, int most);
/* Announces what will be demanded together, so that one exchange serves all of it. */
oly_status oly_prepare(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes, const oly_region *regions);
/* The same for parts that are to be had from neighbours only: what must be resharded altogether is left to its demand. */
oly_status oly_prepare_neighbours(oly_planner *p, oly_frame *f, int n, oly_node *const *nodes,
                                  const oly_region *regions);
/* What of a box lies in some parts: boxes that do not overlap, at most OLY_MOST_WANTED; how many. */
#define OLY_MOST_WANTED 64
int oly_wanted_boxes(int n, const oly_box *parts, const oly_box *within, oly_box *boxes);

/* -- roll.c -- */
/* Is result element i operand in[0]->in[0]'s element start + i, from the end on its first ones, along a dimension? */
bool oly_is_roll(const oly_node *n, int *dimension, int64_t *start);
/* Marks the nodes of a frame whose readers look at the operand. False: there are none. */
bool oly_find_rolls(oly_frame *f);
/* What the readers of a node look at: of views their operand; NULL: the node itself. */
oly_node *oly_looks_at(oly_frame *f, const oly_node *n);
oly_region oly_rolled_region(const oly_node *n, const oly_region *r);
/* Makes the node's value in layout l where it is a roll of a value in memory. *done tells. */
oly_status oly_lower_roll(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *l, bool *done);

/* -- reshard.c -- */
/* Adds a MOVE step to block b: every device gets its box of `to` in slot to_slot from the devices that hold it. */
typedef struct oly_movement {
    const oly_node *node;
    const oly_layout *from;
    int from_slot;
    const oly_region *to;
    int to_slot;
    oly_wanted wanted; /* of `to` */
    bool in_place;     /* from_slot is to_slot, whose own parts are right (oly_plan_margins) */
} oly_movement;
/* The same for several values of elements of one size, in one step and one exchange. */
oly_status oly_plan_moves(oly_planner *p, oly_block *b, int n, const oly_movement *movements);
oly_status oly_plan_reshard(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from, int from_slot,
                            const oly_region *to, int to_slot);

/* The same within slots that hold boxes of `to` already, of which each device's own part is right: block b[j] brings the margins of
 * slots[j][k] for movement k. The movements' own slots are not looked at. */
oly_status oly_plan_margins(oly_planner *p, oly_block *const b[2], int n, const oly_movement *movements,
                            const int *const slots[2]);

/* The slices of dimension d change places: slice i of `to` is slice source[i] of the value; others stay as they are. */
oly_status oly_reshard_permuted(oly_planner *p, oly_block *b, const oly_node *node, const oly_layout *from,
                                int from_slot, const oly_region *to, int to_slot, int d, oly_permutation permutation);

/* -- fold_wait.c, fold_order.c -- */
/* Adds steps that combine partial results over mesh axes; the partials are in `slot` in layout l, and so is the result. */
typedef struct oly_fold_rule {
    oly_combiner combiner;
    bool in_pairs; /* adjacent pairs, minor axis first; else one after the other, major axis first */
} oly_fold_rule;
/* Folds the partials in the node's slot over the axes, in place: when the value is read first or oly_fold_now is called, with all
 * others over the same axes that wait by then. n NULL: all that wait. */
oly_status oly_fold_later(oly_planner *p, oly_frame *f, oly_node *n, const oly_fold_rule *rule,
                          const oly_axis_list *axes);
oly_status oly_fold_now(oly_planner *p, oly_frame *f, const oly_node *n);
/* The positions whose partials the device at `position` folds, in nested order, counts[] (zeros after the last) of each level:
 * how many; 0 when they are more than OLY_FOLD_GROUP, for which sources has room. */
int oly_fold_group(oly_mesh mesh, const oly_fold_rule *rule, const oly_axis_list *axes, int position, int *counts,
                   int *sources);

/* Does n wait, and for what? NULL: it does not, or out of memory. */
typedef struct oly_put_off {
    bool any;
    oly_fold_rule rule;
    oly_axis_list axes;
} oly_put_off;
const oly_put_off *oly_waits_for(oly_planner *p, oly_frame *f, const oly_node *n);
/* In its slot are partials for good: who reads them makes a value of them that waits itself. */
void oly_waits_no_more(oly_frame *f, const oly_node *n);

/* -- delay.c: see delay.h, too -- */
/* A reduction of a value that waits for one of the same kind, read in layout `in`: works on its partials, and over these axes,
 * too. */
oly_status oly_put_off_reduce(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in,
                              oly_combiner combiner, oly_axis_list *axes);
/* A value of which only parts are read: only they are folded. *done tells. */
oly_status oly_put_off_parts(oly_planner *p, oly_frame *f, oly_node *n, const oly_fold_rule *rule,
                             const oly_axis_list *axes, bool *done);

/* -- scatter.c -- */
/* The same into target_slot, cut over those axes too: every device folds its own box of `target`, which lies in its box of
 * `partial`. */
oly_status oly_fold_scatter(oly_planner *p, oly_block *b, const oly_node *node, const oly_fold_rule *rule,
                            const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                            int target_slot);

/* The layout of the node's partials, cut further where its value shall be, for a scatter over the axes; false: there is none. */
bool oly_scattered_layout(oly_planner *p, oly_frame *f, const oly_node *n, const oly_axis_list *axes,
                          oly_layout *target);
/* Puts the partials of a node together, which lie in its slot and layout, over the axes: scattered where its propagated layout
 * is cut over some of them, else for everybody. Sets the node's layout and slot. */
oly_status oly_fold_value(oly_planner *p, oly_frame *f, oly_node *n, const oly_fold_rule *rule,
                          const oly_axis_list *axes);

/* -- lower*.c -- */
/* The instruction that makes a constant node's value. */
void oly_splat_instruction(const oly_node *constant, oly_tile_instruction *i);
/* Strides of a box that lies row-major. */
void oly_contiguous_strides(const oly_box *b, int64_t *stride);
/* Gives a value a layout and a slot of its own. */
oly_status oly_settle(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l);
/* oly_demand of a layout; a constant operand (a broadcast number) is written out first. */
oly_status oly_demand_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading);
void oly_append_axes(oly_axis_list *to, const oly_axis_list *from);
/* Where a place puts its operand. */
oly_layout oly_place_layout(oly_planner *p, oly_frame *f, const oly_node *n);
oly_status oly_lower_node(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_frame(oly_planner *p, oly_frame *f); /* order.c: all nodes */
oly_status oly_lower_group(oly_planner *p, oly_frame *f, oly_group *g);
oly_status oly_lower_reduce(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_contract(oly_planner *p, oly_frame *f, oly_node *n);
/* How a product is cut when nothing is chosen: given where its operands lie and its result had better, sets the cuts it is worked
 * in, and the axes over which partial products are summed. */
oly_status oly_cut_product(oly_planner *p, oly_node *n, oly_layout operand[2], oly_layout *out, oly_axis_list *summed);
/* The same of a convolution: sets the cuts of the result, and those of the kernel. */
void oly_cut_convolution(oly_planner *p, oly_node *n, const oly_layout operand[2], oly_layout *out, oly_layout *kernel);
/* What was chosen of a product, or a convolution, of so many contracting pairs: "by price: ..." */
const char *oly_choice_text(oly_planner *p, const oly_node *n, int n_pairs, const oly_choice *choice);
oly_status oly_lower_write(oly_planner *p, oly_frame *f, oly_node *n);
bool oly_writes_parts(const oly_node *n); /* is its result operand 0 with parts replaced? */
bool oly_local_writes_parts(const oly_node *n);
/* What concatenations will read of their operands; of other nodes nothing. Adds to the lists, which have room for each operand. */
void oly_writes_read(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes,
                     oly_region *regions);
/* The same of paddings, which leave no elements out nor any between. */
void oly_pads_read(oly_planner *p, oly_frame *f, const oly_node *n, int *n_read, oly_node **nodes, oly_region *regions);
oly_status oly_lower_pad(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_reshape(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_loop(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_permute(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_branch(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_local(oly_planner *p, oly_frame *f, oly_node *n);
oly_status oly_lower_window(oly_planner *p, oly_frame *f, oly_node *n);
/* As oly_demand; a constant is written out first. */
oly_status oly_demand_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading);
/* May a node write over the memory of its first operand, when its result has layout l? Only when nobody else will look at it. */
bool oly_may_overwrite(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l);

/* -- overwrite.c -- */
oly_status oly_is_written_over(oly_planner *p, const oly_graph *body, int carry, bool *yes);

/* -- linear.c -- */
/* A value of a loop's body as a sum of shifted parts of the carry: sum of coefficient[t] * carry[x + start[t]]. */
typedef struct oly_linear {
    int n;
    int64_t start[OLY_STENCIL_TAPS][OLY_MAX_RANK]; /* of the slice */
    double coefficient[OLY_STENCIL_TAPS];
    bool wraps
        [OLY_MAX_RANK]; /* dimensions that go round: right only where the value has all of them, as callers see to */
} oly_linear;
/* False when it is none. */
bool oly_linear_form(const oly_node *carry, const oly_node *value, oly_linear *form);

/* -- stencil.c -- */
/* Time steps that a loop over fields makes between exchanges, where an option says so; 0: as the planner likes. */
int64_t oly_halo_steps(void);
/* Lowers the loop as a stencil when it is one. *done tells. */
oly_status oly_lower_stencil(oly_planner *p, oly_frame *f, oly_node *n, bool *done);
/* -- stencil_overlap.c: its tiles that need no margins are worked while those are on their way. first: what brings the first ones. -- */
oly_status oly_overlap_stencil(oly_planner *p, oly_step *s, const oly_step *first, oly_stencil_work *work);

/* -- march.c -- */
/* Lowers the loop as steps of fields over one grid, many at once, when it is of that kind. *done tells. */
oly_status oly_lower_march(oly_planner *p, oly_frame *f, oly_node *n, bool *done);

/* -- invariant.c -- */
oly_status oly_move_invariants(oly_graph *g);

/* -- observe.c -- */
/* Parts loops that only look at their fields: those take several steps at once. */
oly_status oly_part_observers(oly_planner *p);

/* -- schedule.c -- */
oly_status oly_schedule(oly_planner *p);

/* -- buffers.c -- */
oly_status oly_assign_memory(oly_planner *p);
#endif
