/* SPDX-License-Identifier: BSD-3-Clause */
/* What the passes share while a plan is made: frames, values, slots and steps (builder.c), questions about nodes
 * (nodes.c), layouts of values (layouts.c), boxes that devices need (regions.c), cyclic shifts (cyclic_shift.c).
 * Knows no pass. Private to runtime/plan. */
#ifndef OLY_PLAN_MODEL_PLANNER_H
#define OLY_PLAN_MODEL_PLANNER_H
#include "plan/model/steps.h"

/* A region: for each device, the box of a value that it needs. In each dimension, the iterations i of a loop of n are
 * split by `split`; the device needs elements scale * i + [lo, hi] for each of its i, clipped to the value. A layout
 * is the region with scale 1 and lo = hi = 0. A negative scale reverses the direction. */
typedef struct oly_region_dim {
    oly_split split;
    int64_t n, scale, lo, hi;
    int64_t spread; /* if > 1: only the multiples of it among these indexes, divided by it */
    bool wraps;     /* indexes beyond the ends wrap around instead of being clipped */
} oly_region_dim;

typedef struct oly_region {
    oly_mesh mesh;
    int rank;
    oly_region_dim dim[OLY_MAX_RANK];
} oly_region;

/* The parts of a region that will be read; n = 0: all of it. Only these are transferred. */
typedef struct oly_wanted {
    int n;
    const oly_region *part;
} oly_wanted;

/* A copy of a value in another slot. Its boxes may be larger than each device's own block. */
typedef struct oly_replica {
    struct oly_replica *next;
    oly_region region;
    oly_wanted wanted;
    int slot;
} oly_replica;

/* Why a dimension of a value is split over its axes. Noted where axes are chosen, read by explanations (reasons.c).
 * */
typedef enum oly_why {
    OLY_WHY_FACTOR,     /* another operand, or the result, of `node` is split so in the dimension of the same factor */
    OLY_WHY_CONSTRAINT, /* `node` constrains it */
    OLY_WHY_TYPE,       /* its type has it: an Explicit axis */
    OLY_WHY_RESULT,     /* the caller requested it for result number `operand` */
    OLY_WHY_SAME,       /* the same value inside or outside the loop or branch `node` is split so */
    OLY_WHY_COST,       /* the cheapest of what `node`'s factors allow */
} oly_why;

typedef struct oly_reason {
    struct oly_reason *next; /* the one noted before */
    oly_why why;
    int dimension;
    bool conflict; /* others asked for another split; the largest value decided */
    int operand;   /* FACTOR: operand number of `node`; n_in: its result */
    const oly_node *node;
} oly_reason;

/* How a node is computed where costs decided it (choose.c): the splits of the loop over its result, of the
 * contracting dimensions of a product, and those to which a sum over devices is reduce-scattered. */
typedef struct oly_choice {
    oly_axis_list work[OLY_MAX_RANK], summed[OLY_MAX_RANK], wanted[OLY_MAX_RANK];
    double wire[2], seconds[2]; /* totals of everything decided together: as propagated, as chosen */
    bool differs;               /* from the split without choices; if false, only its operands are placed differently */
} oly_choice;

/* What the planner knows of a node. */
typedef struct oly_value {
    /* first cache line: what most passes read */
    _Alignas(64) const oly_choice *choice; /* NULL: as propagated */
    const oly_layout *layout;              /* in memory, set by lowering (oly_set_layout); NULL: not lowered yet */
    oly_block *block;                      /* the block that computes it */
    oly_replica *replicas;
    const oly_node *written_by; /* the update that writes it into a larger array, whose layout it prefers; or NULL */
    int slot;                   /* -1: not in memory (views, constants) */
    int group;                  /* fused group; -1: none */
    int depth;                  /* see fusion.c */
    uint32_t closed;            /* bit set of mesh axes: placed by the user, none may be added */
    uint16_t open_dimensions;   /* bit set: dimensions that the user left open; any axis may be added there */
    bool silent;                /* computed from constants only: placed as its users need it (axis_rules.h) */
    bool rolled;                /* readers look through it: cyclic_shift.c */
    bool late;                  /* placed as its reader is; its operand is transferred instead: late_expansion.c */
    bool written_over;          /* a loop's carry that is updated in place: lower_loop.c */
    bool waits;                 /* its slot holds partial results: oly_defer_reduction */
    /* read less often */
    oly_axis_list axes[OLY_MAX_RANK]; /* propagated */
    oly_reason *reasons;              /* of its splits, newest first */
} oly_value;

typedef struct oly_group {
    int n_nodes;
    oly_node **nodes;
    int n_left; /* nodes not computed yet, once some ran ahead (sink_through_groups.c); left NULL: all */
    oly_node **left;
    bool lowered, settled,
        prepared;        /* settled: `layout` is chosen; prepared: what it reads from neighbours has been transferred */
    bool looked_through; /* checked for nodes that can run before deferred reductions (lowering_order.c) */
    oly_layout layout;
    int next; /* the group that continues this one, which would have become too large; -1: none */
} oly_group;

typedef struct oly_deferred_reduction oly_deferred_reduction;

/* One graph being planned: the function's, or that of a loop body or branch. */
typedef struct oly_frame {
    struct oly_frame *outer;
    struct oly_frame *next; /* the node's next branch */
    oly_node *loop;         /* the node in the outer frame that has this graph; NULL: the function */
    oly_graph *graph;
    oly_value *values; /* [graph->n_nodes] */
    int first_number;  /* of its values, numbered over all frames (axis_rules.h) */
    int n_groups;
    oly_group *groups;
    oly_block *block;
    struct oly_deferred_reduction *deferred;
    int n_reduced;                        /* deferred reductions already done */
    struct oly_accumulator *accumulators; /* of a loop's body, once lowered: sink_past_loops.c */
    struct oly_frame **bodies;            /* [graph->n_nodes]; frames of the graphs inside nodes */
    int n_rows;
    const oly_loop_row *rows;            /* of a loop's body, once lowered: lower_counted.c */
    struct oly_chooser *chooser;         /* while layouts are chosen by cost */
    struct oly_constant_slot *constants; /* of the function's frame: read/constants.c */
} oly_frame;

#define OLY_MOST_MESHES 4
typedef struct oly_planner {
    oly_plan *plan;
    oly_mesh mesh;
    bool uncommitted; /* no placement is given: the mesh is the default device's */
    int n_meshes;     /* several meshes of these devices: `mesh` is then their common mesh */
    oly_mesh meshes[OLY_MOST_MESHES];
    oly_sharding *placed; /* with several meshes: for every result of a placement, the program's sharding; else NULL */
    const int *position;  /* [n_devices] in mesh; -1: not in it */
    const oly_plan_request *request;
    int next_number;
    struct oly_process_message *spare_messages; /* see messages.h */
    int spare_capacity;
    struct oly_reduction_room *reduction_room; /* see reduction_steps.c */
    struct oly_planner *kept;                  /* see lazy_reduction.c */
    int read_capacity;                         /* of the list of reads of one depth, or step: oly_reserve_reads */
    oly_node **read;
    oly_region *read_regions;
    const oly_node *reader;                            /* the node being lowered; NULL: results are being returned */
    const struct oly_reduction_share *reduction_share; /* see reduce_in_parts.c; NULL: reductions do not share memory */
    const oly_layout *newest; /* the last layout given to a value: consecutive values often share it */
} oly_planner;

#define OLY_PLAN_NEW(p, type, count) OLY_ARENA_NEW(&(p)->plan->arena, type, count)
#define OLY_PLAN_CHECK(pointer)                                                                                        \
    do {                                                                                                               \
        if (!(pointer))                                                                                                \
            return oly_out_of_memory(0, "a plan");                                                                     \
    } while (0)

/* -- builder.c -- */
oly_value *oly_value_of(oly_frame *f, const oly_node *node);
/* The outer node that a loop body's or branch's input stands for, if it is a capture; else NULL. */
oly_node *oly_captured(const oly_frame *f, const oly_node *node);
oly_status oly_frame_new(oly_planner *p, oly_frame *outer, oly_node *loop, oly_graph *g, oly_frame **frame);
oly_step *oly_step_add(oly_planner *p, oly_block *b, oly_step_kind kind, const oly_node *node, const char *what);
oly_block *oly_block_new(oly_planner *p);
/* A new slot for a value with this region; -1 when out of memory. The caller sets its block. */
int oly_slot_new(oly_planner *p, const oly_region *region, size_t element_bytes);
void oly_slot_use(oly_planner *p, int slot); /* the newest step uses it */
/* The slot row->slot becomes rows of row->of in the iterations of a loop, in whose body `block` is. Adds the row to the list. */
oly_status oly_bind_rows(oly_planner *p, const oly_loop_row *row, oly_block *block, int *n, const oly_loop_row **rows);
/* Position of the plan's device number `device` in a mesh; -1: not in it. */
int oly_position_in(const oly_planner *p, oly_mesh mesh, int device);
/* Ids of the plan's device number `device`, of the device at a position of a mesh (of every process's own: the process's), and of
 * the first of the plan's devices of a process. For the ends of messages. */
int oly_local_id(const oly_planner *p, int device);
int oly_id_at(oly_mesh mesh, int position, int process);
int oly_first_id_of(const oly_plan *plan, int process);
const char *oly_plan_say(oly_planner *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets a value's layout, which is copied. */
oly_status oly_set_layout(oly_planner *p, oly_value *v, const oly_layout *l);

/* Is it a result of its graph? Then it ends in canonical blocks. */
bool oly_is_result(const oly_frame *f, const oly_node *n);

/* Is d one of the node's params.axes? */
bool oly_has_axis(const oly_node *n, int d);

/* Does the node itself fix its value's placement (or, with params.settled, part of it)? */
static inline bool oly_is_placed(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_PLACE && oly_ops[n->op].detail == OLY_PLACE_ALL;
}

/* -- regions.c -- */
oly_region oly_region_of_layout(const oly_layout *l);
void oly_region_from_layout(oly_region *r, const oly_layout *l); /* the same, in place: regions are large */
oly_box oly_region_box(const oly_region *r, const int64_t *shape, int position);
/* The elements that part `part` covers of a dimension of `size`; lo = hi: none. */
void oly_region_range(const oly_region_dim *r, int64_t size, int64_t part, int64_t *lo, int64_t *hi);
/* The parts of a dimension that may meet [lo, hi), lo < hi; first > last: none. */
void oly_region_parts(const oly_region_dim *r, int64_t lo, int64_t hi, int *first, int *last);
bool oly_region_equal(const oly_region *a, const oly_region *b);
/* Is the region inside the layout's block on every device? The answer is for all devices, the same on every process.
 * */
bool oly_region_inside_layout(const oly_region *r, const oly_layout *l);
bool oly_region_inside_region(const oly_region *inner, const oly_region *outer);
/* Extends `hull` to contain r; false when they are split differently. */
bool oly_region_join(oly_region *hull, const oly_region *r);

/* Strides of a row-major box. */
void oly_contiguous_strides(const oly_box *b, int64_t *stride);
/* Gives a value a layout and its own slot. */
oly_status oly_settle(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l);
void oly_append_axes(oly_axis_list *to, const oly_axis_list *from);
/* Notes why dimension d of a value has just been given its axes. */
void oly_note_reason(oly_planner *p, oly_value *v, int d, oly_reason reason);

/* -- nodes.c -- */
/* -- layouts.c -- */
/* The instruction that produces a constant node's value. */
void oly_splat_instruction(const oly_node *constant, oly_tile_instruction *i);
bool oly_writes_parts(const oly_node *n); /* is its result operand 0 with parts replaced? */
bool oly_local_writes_parts(const oly_node *n);
/* Is an elementwise node linear in those of its (at most two) operands that are partial results, the others
 * complete? */
bool oly_is_linear_in(const oly_node *n, bool first, bool second);

/* -- layouts.c -- */

/* The layout of a node as an operand, split over the plan's mesh. */
oly_layout oly_operand_layout(oly_planner *p, oly_frame *f, const oly_node *n);
/* The layout of a node's memory, or the one derived from it through views. false: none (constants). */
bool oly_natural_layout(oly_frame *f, const oly_node *node, oly_layout *l);
/* The layout of an array that is written in parts: that of the array before; for a result of the graph, canonical
 * blocks. */
oly_layout oly_written_layout(oly_planner *p, oly_frame *f, const oly_node *n);
oly_layout oly_node_layout(oly_planner *p, oly_frame *f,
                           const oly_node *node); /* canonical cuts of the propagated axes */
oly_layout oly_axes_layout(oly_planner *p, const oly_node *node, const oly_axis_list *axes); /* of these axes */
/* The layout that a placement node gives its operand. */
oly_layout oly_place_layout(oly_planner *p, oly_frame *f, const oly_node *n);

/* -- cyclic_shift.c -- */
/* Does n rotate an array x (= n->in[0]->in[0]) along one dimension, so that its element i is x's element (start + i)
 * mod size? */
bool oly_is_cyclic_shift(const oly_node *n, int *dimension, int64_t *start);
/* Marks the nodes of a frame that readers look through. False: none. */
bool oly_find_cyclic_shifts(oly_frame *f);
/* What readers of a node look at: the operand of a view or of a marked shift; NULL: the node itself. */
oly_node *oly_looks_at(oly_frame *f, const oly_node *n);
oly_region oly_shifted_region(const oly_node *n, const oly_region *r);
#endif
