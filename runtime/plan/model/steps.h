/* Plans: flat lists of steps over numbered slots, made once by plan.c and replayed by runtime/run without allocating or
 * parsing. Everything a plan points to lives in its arena. The planner writes these structures and the interpreter reads
 * them; neither knows the other. A plan is this process's view: it holds its own devices' boxes only; the steps and their
 * order are the same on every process of the mesh. */
#ifndef OLY_PLAN_MODEL_STEPS_H
#define OLY_PLAN_MODEL_STEPS_H
#include "communicator.h"
#include "core/arena.h"
#include "graph/graph.h"
#include "layout/layout.h"

/* A slot is a buffer that every device of the plan has one of. */
typedef enum {
    OLY_SLOT_INPUT,   /* the shard of input `index` */
    OLY_SLOT_SCRATCH, /* `offset` bytes into the run's scratch memory of the device */
    OLY_SLOT_POOL,    /* a pool buffer of its own, taken for each run: outputs, and what loops pass round */
    OLY_SLOT_BOUND,   /* no memory of its own: a loop binds it to others' */
} oly_slot_kind;

typedef struct oly_slot {
    oly_slot_kind kind;
    int index;
    size_t bytes;         /* largest over this process's devices */
    size_t *device_bytes; /* [n_devices]; pool slots */
    size_t offset;
    int first, last;         /* steps (in order of emission) that write and read it: its life */
    struct oly_block *block; /* whose step writes it */
    bool claimed;            /* it is an output or a loop's carry: nothing else may become one in its memory */
    bool shared;             /* two values live in it (reshape): no writing in place */
} oly_slot;

/* Where a box's first element lies. base: see oly_cell; -1: nowhere. */
typedef struct oly_place {
    int base;
    int64_t offset;               /* bytes */
    int64_t stride[OLY_MAX_RANK]; /* elements */
} oly_place;

typedef struct oly_tile_work {
    oly_tile_box box;
    const oly_place *loads, *stores;
    int chunks;
} oly_tile_work;

typedef struct oly_reduce_work {
    oly_reduce_task task;
    oly_place in;
    int out_base;
    int64_t out_offset;
    int scratch_base; /* -1: none */
    int chunks;       /* 0: nothing to do here */
} oly_reduce_work;

typedef struct oly_gemm_work {
    oly_gemm_task task;
    oly_place a, b;
    int out_base;
    int chunks;
    const int *only; /* [chunks] of `of` chunks in all; NULL: all of them */
    int of;
} oly_gemm_work;

/* Some of a product's blocks, after which what goes to a process is ready to be sent. */
typedef struct oly_gemm_phase {
    int peer; /* -1: the last */
    double work;
    const oly_gemm_work *device; /* [n_devices] */
} oly_gemm_phase;

typedef struct oly_local_work {
    oly_local_task task;
    const oly_place *in; /* [n_in]; base -1: no elements */
    int out_base;
    int scratch_base; /* -1: none */
    int chunks[2];    /* of each phase */
} oly_local_work;

/* A copy between two devices of this process. */
typedef struct oly_copy_work {
    oly_copy_task task;
    oly_place from, to;
    int chunks;
} oly_copy_work;

enum { OLY_REDUCTION_GROUP = 64 }; /* most partials that one fold puts together */

/* One group of a reduction over devices: the partials of `n_sources` members, folded in order. */
typedef struct oly_reduction_work {
    int n_sources;
    const int *source_base;       /* local partials and received ones */
    const int64_t *source_offset; /* bytes */
    int64_t begin, end;           /* elements folded here */
    int n_outs;                   /* every device of this process in the group gets the result */
    const int *out_base;
    int first_source; /* mesh position; for the planner */
    bool in_pairs;    /* order of the fold: kernel.h */
    int n_counts, counts[4];
} oly_reduction_work;

/* One level of a reduction: what comes from others, copies here, folds, and folded slices that are handed round. */
typedef struct oly_reduction_level {
    oly_exchange *exchange, *second; /* NULL: nothing */
    int n_copies, n_groups;
    const oly_copy_work *copies;
    const oly_reduction_work *groups;
    double work, copied; /* element-operations; elements, if copies are worth sharing out */
} oly_reduction_level;

/* Levels that come one after the other, each with what those before it have made. Each is listed when it first runs, so that a plan
 * does not grow with them. */
typedef struct oly_reduction_levels {
    int n, n_listed;
    oly_reduction_level *level; /* [n], those that are listed; NULL before the first run */
    oly_status (*list)(const void *context, int level, oly_reduction_level *made);
    const void *context;
} oly_reduction_levels;

/* One device's part of a stencil loop: `within` writes into the other extended field, `last` into the result. */
typedef struct oly_stencil_work {
    oly_stencil_field within, last;
    unsigned late; /* the sides whose margins messages bring: oly_stencil_divide; 0: all is there when a pass begins */
} oly_stencil_work;

/* A box that another process sends. Its strides are those of all dimensions of the slot. */
typedef struct oly_arrival {
    int peer;
    oly_piece piece;
} oly_arrival;

typedef struct oly_block oly_block;

typedef enum {
    OLY_STEP_TILE,
    OLY_STEP_REDUCE,
    OLY_STEP_GEMM,
    OLY_STEP_MOVE,      /* local copies and an exchange with other processes */
    OLY_STEP_REDUCTION, /* reduction over devices */
    OLY_STEP_LOOP,
    OLY_STEP_BRANCH,  /* one of several blocks */
    OLY_STEP_STENCIL, /* a recognised loop */
    OLY_STEP_LOCAL,   /* kernels of kernels/local.h */
    OLY_STEP_WAIT,    /* for an exchange that an earlier step left under way (schedule.c) */
} oly_step_kind;

/* What a movement moves from where to where, for explanations. A region's axes are those of its splits. */
typedef struct oly_transfer {
    oly_mesh from_mesh, to_mesh;
    oly_spec from, to;
    int n_values; /* that go together */
} oly_transfer;

typedef struct oly_step {
    oly_step_kind kind;
    int number;                   /* order of emission */
    const oly_node *node;         /* what it computes, for people */
    const char *what;             /* "all-gather", "halo exchange", "sum", ... */
    const char *detail;           /* members, elements: for explanations */
    int64_t bytes;                /* received by one device at most, over links between devices */
    int64_t wire;                 /* received by this process's devices in all; a reduction: as oly_plan_costs says */
    int members;                  /* devices that take part in one group */
    int messages;                 /* most messages one device receives */
    int out_slot;                 /* MOVE, STENCIL: what is written; -1: several, or nothing */
    const oly_node *reader;       /* what was being planned when the step was added; NULL: a result is handed out */
    const oly_transfer *transfer; /* MOVE by a layout; NULL: another kind of copy */
    oly_axis_list over;           /* FOLD, reduce-scatter: the mesh axes whose partials are put together */
    oly_exchange *exchange, *second; /* owned; NULL: this process has nothing to send or receive */
    oly_exchange *awaited;           /* WAIT: another step's; STENCIL: brings the first margins meanwhile; or NULL */
    int from;                        /* WAIT: the process whose message is awaited; -1: all of it */
    bool starts; /* MOVE, FOLD: its exchange, of a fold the second, is left under way until a WAIT */
    bool begun;  /* FOLD: the exchange of its partials is over */
    bool alone;  /* MOVE: copies only, on every process: no message is numbered by it */
    double work; /* element-operations on this process: decides whether a call is small */
    union {
        struct {
            oly_tile_program program;
            const oly_tile_work *device; /* [n_devices] */
        } tile;
        struct {
            const oly_reduce_work *device;
        } reduce;
        struct {
            const oly_gemm_work *device;
            int n_copies; /* operands that the kernel could not read as they lie are copied first */
            const oly_copy_work *copies;
            int n_phases; /* with an exchange, which sends what they make; else 0 */
            const oly_gemm_phase *phases;
        } gemm;
        struct {
            const oly_local_work *device;
            int phases;
        } local;
        struct {
            int n_copies;
            const oly_copy_work *copies;
            int n_arrivals;
            const oly_arrival *arrivals; /* what the exchange brings, where it is a movement by layouts */
            int n_departures;
            const oly_arrival *departures; /* what it takes to others, of a reduce-scatter */
        } move;
        struct {
            oly_combiner combiner;
            oly_dtype dtype;
            bool sliced; /* a second exchange hands folded slices round (on every process, or on none) */
            int n_groups;
            const oly_reduction_work *groups;
            int n_read, n_written;
            const int *slots;             /* that groups and levels read, then those they write; NULL: not listed */
            oly_reduction_levels *levels; /* NULL: none */
            int n_levels_run;             /* of these, by the step itself: others by its exchange (reduction_tree.h) */
        } fold;
        struct {
            int64_t count, lower;
            oly_block *body;
            int counter_slot; /* int32 on every device; -1: not used */
            int n_carry;
            const int *init_slot, *in_slot, *out_slot,
                *spare_slot; /* out is in: written over in place, in init's memory */
            int predicate;   /* the carry that says whether to go on; -1: counted */
            const int
                *result_slot; /* where the carries are copied in the end; NULL when counted: they stay where they are */
        } loop;
        struct {
            int n, index_slot; /* int32 on every device; beyond the blocks: the nearest */
            oly_block *const *blocks;
        } branch;
        struct {
            const oly_stencil *stencil;
            int64_t count;
            int pass;              /* time steps between exchanges */
            int first_slot;        /* the field before, with margins */
            int field_slot[2];     /* fields with margins that passes write in turn */
            oly_block *margins[2]; /* bring the margins of each from the neighbours */
            bool overlaps;         /* inner tiles are worked while margins are on their way */
            double early;          /* share of a pass's work that these are */
            const oly_stencil_work *device;
            const struct oly_tiling
                *march; /* not one linear form: worked by tile programs (time_tiling.h); else NULL */
        } stencil;
    };
} oly_step;

struct oly_block {
    int n_steps, capacity;
    oly_step *steps;
    int begin, end; /* numbers of the first step and of the one after the last */
};

typedef struct oly_plan_value {
    oly_type type;
    oly_sharding sharding; /* canonical blocks */
    bool committed;
} oly_plan_value;

typedef struct oly_plan {
    oly_arena arena;
    oly_graph *graph; /* owned */
    uint64_t fingerprint;
    oly_mesh mesh;        /* most values' */
    uint64_t members_key; /* of the set of devices that take part, for numbering its calls */
    int n_meshes;
    const oly_mesh *meshes; /* whose devices take part, each once; without those that each process has */
    bool everybody;         /* every process takes part, whatever its devices */
    bool distributed;       /* takes part in messages between processes (the same on every member) */
    bool small;
    int n_devices;      /* of this process */
    const int *devices; /* their local indexes */
    int n_inputs, n_outputs;
    oly_plan_value *inputs, *outputs;
    const int *input_slot, *output_slot;
    int n_slots, slot_room;
    oly_slot *slots;
    size_t scratch_bytes;         /* of the device that has most */
    const size_t *device_scratch; /* [n_devices] bytes of each */
    oly_block *main;
    int n_steps;       /* in all blocks */
    int64_t looked_at; /* shared parts of blocks, pieces of reductions: what finding out what moves took */
    /* Where layouts were chosen by price (choose.c): bytes that all devices receive and predicted seconds of what they decide, as
     * propagated and as chosen. */
    double priced_bytes[2], priced_seconds[2];
    struct oly_frame *frame;    /* what the planner knew of every value: for explanations */
    const oly_sharding *wanted; /* [n_outputs] that the caller asked for, NULL entries: none; or NULL */
} oly_plan;

typedef struct oly_plan_request {
    oly_graph *graph;             /* taken over, also on failure */
    const oly_plan_value *inputs; /* [graph->n_inputs] */
    const oly_sharding *outputs;  /* [graph->n_outputs] wanted, NULL entries open; or NULL */
} oly_plan_request;

/* Every slot of every device of this process has a number, those of one slot side by side: a run has a table of so many buffers. */
static inline int oly_cell(const oly_plan *plan, int device, int slot)
{
    return slot * plan->n_devices + device;
}

static inline int oly_cell_slot(const oly_plan *plan, int cell)
{
    return cell / plan->n_devices;
}

static inline int oly_cell_device(const oly_plan *plan, int cell)
{
    return cell % plan->n_devices;
}
#endif
