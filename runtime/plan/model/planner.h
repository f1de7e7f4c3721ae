/* What the passes of the planner share while a plan is being made: frames, values, slots and steps (builder.c), questions about nodes
 * (nodes.c), layouts of values (layouts.c), boxes that devices need (regions.c), cyclic shifts (cyclic_shift.c). Knows no pass. Private
 * to runtime/plan. */
#ifndef OLY_PLAN_MODEL_PLANNER_H
#define OLY_PLAN_MODEL_PLANNER_H
#include "plan/model/steps.h"

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
 * (reasons.c). */
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
    int depth;                  /* see fusion.c */
    uint32_t closed;            /* mesh axes (bits) that lie as chosen by the user: none may be added */
    uint16_t open_dimensions;   /* bits: not those of the user's choice, all axes may be added there */
    bool silent;                /* made of constants alone: lies where its users want it (axis_rules.h) */
    bool rolled;                /* read through, see cyclic_shift.c */
    bool late;                  /* lies where its reader is, its operand is brought there: enlarge.c */
    bool written_over;          /* a loop's carry that stays where it is: see lower_loop.c */
    bool waits;                 /* in its slot are partials: see oly_defer_reduction */
    /* the rest */
    oly_axis_list axes[OLY_MAX_RANK]; /* propagated */
    oly_reason *reasons;              /* why, the newest first */
} oly_value;

typedef struct oly_group {
    int n_nodes;
    oly_node **nodes;
    int n_left; /* of the nodes, once some were worked before the others (sink_through_groups.c); left NULL: all */
    oly_node **left;
    bool lowered, settled, prepared; /* settled: `layout` is chosen; prepared: what it reads of neighbours is there */
    bool looked_through;             /* for what may be worked before what waits is reduced (lowering_order.c) */
    oly_layout layout;
    int next; /* a group that goes on with its values, as one group would have become too large; -1 */
} oly_group;

typedef struct oly_waiting_reduction oly_waiting_reduction;

/* One graph being planned: the function's, or the body of a loop. */
typedef struct oly_frame {
    struct oly_frame *outer;
    struct oly_frame *next; /* the node's next branch */
    oly_node *loop;         /* in the outer frame: inputs are its counter, carries, captures; NULL for a function */
    oly_graph *graph;
    oly_value *values; /* [graph->n_nodes] */
    int first_number;  /* of the values, over all frames (axis_rules.h) */
    int n_groups;
    oly_group *groups;
    oly_block *block;
    struct oly_waiting_reduction *waiting;
    int n_folded;                         /* of those that waited */
    struct oly_accumulator *accumulators; /* of a loop's body, once it is lowered: sink_past_loops.c */
    struct oly_frame **bodies;            /* [graph->n_nodes]; frames of the graphs inside nodes */
    struct oly_chooser *chooser;          /* while layouts are chosen by price */
} oly_frame;

#define OLY_MOST_MESHES 4
typedef struct oly_planner {
    oly_plan *plan;
    oly_mesh mesh;
    bool uncommitted; /* nothing says where: the mesh is that of the default device */
    int n_meshes;     /* of the program, where it has several of these devices: mesh is then the grid that they share */
    oly_mesh meshes[OLY_MOST_MESHES];
    oly_sharding *placed; /* then: of every result that a place gives, what the program says; else NULL */
    const int *position;  /* [n_devices] in mesh; -1: not in it */
    const oly_plan_request *request;
    int next_number;
    struct oly_process_message *spare_wires; /* see messages.h */
    int spare_capacity;
    struct oly_reduction_room *fold_room; /* see reduction_steps.c */
    struct oly_planner *kept;             /* see lazy_reduction.c */
    int read_capacity;                    /* of the list of what a depth, or a step, reads: oly_reserve_reads */
    oly_node **read;
    oly_region *read_regions;
    const oly_node *reader;                       /* the node being lowered; NULL: none, results are handed out */
    const struct oly_reduction_share *fold_share; /* see reduce_in_parts.c; NULL: folds take each their own */
    const oly_layout *newest;                     /* of those that values have: many in a row are alike */
} oly_planner;

#define OLY_PLAN_NEW(p, type, count) OLY_ARENA_NEW(&(p)->plan->arena, type, count)
#define OLY_PLAN_CHECK(pointer)                                                                                        \
    do {                                                                                                               \
        if (!(pointer))                                                                                                \
            return oly_out_of_memory(0, "a plan");                                                                     \
    } while (0)

/* -- builder.c -- */
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

/* -- regions.c -- */
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

/* Strides of a box that lies row-major. */
void oly_contiguous_strides(const oly_box *b, int64_t *stride);
/* Gives a value a layout and a slot of its own. */
oly_status oly_settle(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l);
void oly_append_axes(oly_axis_list *to, const oly_axis_list *from);
/* Notes why dimension d of a value has just got its axes. */
void oly_note_reason(oly_planner *p, oly_value *v, int d, oly_reason reason);

/* -- nodes.c -- */
/* -- lower*.c -- */
/* The instruction that makes a constant node's value. */
void oly_splat_instruction(const oly_node *constant, oly_tile_instruction *i);
bool oly_writes_parts(const oly_node *n); /* is its result operand 0 with parts replaced? */
bool oly_local_writes_parts(const oly_node *n);
/* Is an elementwise node linear in those of its (at most two) operands that are partial, the other being complete? */
bool oly_is_linear_in(const oly_node *n, bool first, bool second);

/* -- layouts.c -- */
/* -- partition.c: which layout -- */
/* Where the operand of a node lies, cut for the plan's mesh. */
oly_layout oly_operand_layout(oly_planner *p, oly_frame *f, const oly_node *n);
/* Layout a node would have where it is: of its memory, or derived through views. false: none (constants). */
bool oly_natural_layout(oly_frame *f, const oly_node *node, oly_layout *l);
/* Layout of an array that is written in parts: where the array before lies, a result of the graph in its own blocks. */
oly_layout oly_written_layout(oly_planner *p, oly_frame *f, const oly_node *n);
oly_layout oly_node_layout(oly_planner *p, oly_frame *f,
                           const oly_node *node); /* canonical cuts of the propagated axes */
oly_layout oly_axes_layout(oly_planner *p, const oly_node *node, const oly_axis_list *axes); /* of these */
/* Where a place puts its operand. */
oly_layout oly_place_layout(oly_planner *p, oly_frame *f, const oly_node *n);

/* -- cyclic_shift.c -- */
/* Is result element i operand in[0]->in[0]'s element start + i, from the end on its first ones, along a dimension? */
bool oly_is_cyclic_shift(const oly_node *n, int *dimension, int64_t *start);
/* Marks the nodes of a frame whose readers look at the operand. False: there are none. */
bool oly_find_cyclic_shifts(oly_frame *f);
/* What the readers of a node look at: of views their operand; NULL: the node itself. */
oly_node *oly_looks_at(oly_frame *f, const oly_node *n);
oly_region oly_shifted_region(const oly_node *n, const oly_region *r);
#endif
