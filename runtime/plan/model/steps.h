/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: lists of steps over numbered slots, made once by plan.c and replayed by runtime/run without allocating or
 * parsing. Everything a plan points to is in its arena. The planner writes these structures, the interpreter reads
 * them; neither includes the other. A plan is one process's view: it has the boxes of its own devices only, but the
 * steps and their order are the same on every process of the mesh. */
#ifndef OLY_PLAN_MODEL_STEPS_H
#define OLY_PLAN_MODEL_STEPS_H
#include "communicator.h"
#include "core/arena.h"
#include "graph/call.h"
#include "layout/layout.h"

/* A slot is a buffer that every device of the plan has one of. */
typedef enum {
    OLY_SLOT_INPUT,   /* the shard of input `index` */
    OLY_SLOT_SCRATCH, /* at `offset` bytes in the device's scratch memory */
    OLY_SLOT_POOL,    /* its own pool buffer, taken for each run: outputs, and carries that loops swap */
    OLY_SLOT_BOUND,   /* no memory of its own: a loop binds it to another slot's */
} oly_slot_kind;

typedef struct oly_slot {
    oly_slot_kind kind;
    int index;
    size_t bytes;         /* the maximum over this process's devices */
    size_t *device_bytes; /* [n_devices]; pool slots */
    size_t offset;
    int first, last; /* its lifetime: numbers of the first and last step that use it */
    int early;       /* so many numbers before `first` no other slot may have its memory any more (row_chains.c) */
    struct oly_block *block; /* of the step that writes it */
    bool claimed;            /* is an output or a loop's carry: no second one may use its memory */
    bool shared;             /* holds two values (reshape): must not be updated in place */
    int row_of; /* BOUND: 1 + the slot of which a loop binds it to some rows (oly_loop_row); 0: it is not */
} oly_slot;

/* Where a box's first element is. base: see oly_cell; -1: nowhere. */
typedef struct oly_place {
    int base;
    int64_t offset;               /* bytes */
    int64_t stride[OLY_MAX_RANK]; /* elements */
} oly_place;

typedef struct oly_tile_work {
    oly_tile_box box;
    const oly_place *loads, *stores;
    bool has_work; /* false: nothing is computed on this device */
} oly_tile_work;

typedef struct oly_reduce_work {
    oly_reduce_task task;
    oly_place in;
    int out_base;
    int64_t out_offset;
    int scratch_base; /* -1: none */
    bool has_work;
} oly_reduce_work;

typedef struct oly_gemm_work {
    oly_gemm_task task;
    oly_place a, b;
    int out_base;
    bool has_work;
    int64_t share; /* which share of the product it is: devices with equal numbers have the same */
    int n_parts;
    const oly_gemm_part
        *parts; /* of the result that are computed, some of those of oly_gemm_part_at; NULL: all of it */
} oly_gemm_work;

/* Some parts of a product. After these the data for one process is complete and can be sent. */
typedef struct oly_gemm_phase {
    int peer; /* -1: the last phase */
    double work;
    const oly_gemm_work *device; /* [n_devices] */
} oly_gemm_phase;

typedef struct oly_local_work {
    oly_local_task task;
    const oly_place *in; /* [n_in]; base -1: no elements */
    int out_base;
    int scratch_base; /* -1: none */
    bool has_work;
} oly_local_work;

/* A call of a function of the program on one device. Parts have no data yet; batch dimensions come first. */
typedef struct oly_call_work {
    bool has_work;
    const oly_shard_part *in, *out; /* [n_in], [n_out] */
    const oly_place *in_place;
    const int *out_base;
    const size_t *packed; /* [n_in] where in scratch memory an operand is copied to, plus 1; 0: read in place */
    const int64_t (
        *fill)[2][OLY_MAX_RANK]; /* [n_in] elements in front of and after what is read, by the rule of the edge */
    int scratch_base;            /* -1: none */
    size_t scratch;              /* where the function's own begins */
} oly_call_work;

/* A copy between two devices of this process. */
typedef struct oly_copy_work {
    oly_copy_task task;
    oly_place from, to;
} oly_copy_work;

enum { OLY_REDUCTION_GROUP = 64 }; /* most partial results that one reduction combines */

/* One group of a reduction over devices: the partial results of `n_sources` members, reduced in order. */
typedef struct oly_reduction_work {
    int n_sources;
    const int *source_base;       /* local and received partial results */
    const int64_t *source_offset; /* bytes */
    int64_t begin, end;           /* elements reduced here */
    int n_outs;                   /* all devices of this process in the group get the result */
    const int *out_base;
    int first_source; /* mesh position; used by the planner */
    bool in_pairs;    /* the order of the reduction: kernel.h */
    int n_counts, counts[4];
} oly_reduction_work;

/* One level of a reduction: the exchange of partial results, local copies, reductions, and the exchange of reduced
 * slices. */
typedef struct oly_reduction_level {
    oly_exchange *exchange, *second; /* NULL: none */
    int n_copies, n_groups;
    const oly_copy_work *copies;
    const oly_reduction_work *groups;
    double work, copied;                 /* element-operations; elements copied, if worth distributing over threads */
    const struct oly_prepared *prepared; /* the executor's; NULL until it has prepared the level */
} oly_reduction_level;

/* Levels that run in order, each on the results of those before. A level is listed when it first runs, so that a
 * plan's size does not depend on their number. */
typedef struct oly_reduction_levels {
    int n, n_listed;
    oly_reduction_level *level; /* [n] levels, filled as they are listed; NULL before the first run */
    oly_status (*list)(const void *context, int level, oly_reduction_level *made);
    const void *context;
} oly_reduction_levels;

/* All levels of a reduction in one exchange of several stages: what a level receives is combined before the next stage sends the
 * results. The exchange calls `outline.between` after each stage, with this record as its context; the executor sets it. */
typedef struct oly_staged_reduction {
    oly_exchange_outline outline;
    struct oly_plan *plan;
    oly_reduction_levels *levels;
    oly_combiner combiner;
    oly_dtype dtype;
    int stages; /* of each level: partial results and, if results are sliced, a second one */
} oly_staged_reduction;

/* One device's part of a stencil loop: `within` writes the other field with margins, `last` the result. */
typedef struct oly_stencil_work {
    oly_stencil_field within, last;
    unsigned
        late; /* sides whose margins arrive in messages, as bits: oly_stencil_points_of; 0: a pass starts with all of them */
} oly_stencil_work;

/* A box sent or received in a message. Its strides are those of all dimensions of the slot. */
typedef struct oly_arrival {
    int peer;
    oly_piece piece;
} oly_arrival;

typedef struct oly_block oly_block;

typedef enum {
    OLY_STEP_TILE,
    OLY_STEP_REDUCE,
    OLY_STEP_GEMM,
    OLY_STEP_MOVE,      /* local copies and an exchange */
    OLY_STEP_REDUCTION, /* reduction over devices */
    OLY_STEP_LOOP,
    OLY_STEP_BRANCH,  /* runs one of several blocks */
    OLY_STEP_STENCIL, /* a recognised loop */
    OLY_STEP_LOCAL,   /* kernels of kernels/local.h */
    OLY_STEP_CALL,    /* a function of the program (graph/call.h) */
    OLY_STEP_WAIT,    /* for an exchange that an earlier step started (schedule.c) */
} oly_step_kind;

/* What a transfer moves from where to where, for explanations. A region's axes are those of its splits. */
typedef struct oly_transfer {
    oly_mesh from_mesh, to_mesh;
    oly_spec from, to;
    int n_values; /* moved together */
} oly_transfer;

/* A loop's carry whose value after an iteration is that of another before it, as in (u, v) -> (f(u, v), u): nothing is copied, the
 * buffers of the value stay untouched for longer. */
typedef struct oly_passed_carry {
    int from,
        root; /* the carry that it takes over, and the computed one at which such a chain begins; -1, itself: it is computed */
    int age;              /* how many iterations ago its value was computed */
    int n_more;           /* a computed carry: buffers besides out and spare */
    const int *more_slot; /* [n_more] */
} oly_passed_carry;

/* Rows of an array that a loop's iterations read or write where they are: in iteration i the slot's memory is that of `of` from row
 * first + i * step on, at most `last`. The slots' sizes say how large a row is. */
typedef struct oly_loop_row {
    int slot, of;
    int64_t rows, first, step, last;
} oly_loop_row;

/* What the rows of a chain are: the dimensions that its first reduction keeps, or the first or the last dimension of its lookups. */
typedef enum oly_row_kind {
    OLY_ROWS_KEPT,
    OLY_ROWS_OUTER,
    OLY_ROWS_FIRST,
    OLY_ROWS_LAST,
    OLY_N_ROW_KINDS
} oly_row_kind;

/* Are they those of reductions, not of lookups? */
static inline bool oly_rows_are_reduced(oly_row_kind kind)
{
    return kind == OLY_ROWS_KEPT || kind == OLY_ROWS_OUTER;
}

typedef struct oly_step {
    oly_step_kind kind;
    int number;             /* order of emission */
    const oly_node *node;   /* what it computes, for explanations */
    const char *what;       /* "all-gather", "halo exchange", "sum", ... */
    const char *detail;     /* members, elements: for explanations */
    int64_t bytes;          /* the most that one device receives from other devices */
    int64_t wire;           /* total received by this process's devices; a reduction's as oly_plan_costs defines it */
    int members;            /* devices in one group */
    int messages;           /* the most that one device receives */
    int out_slot;           /* MOVE, STENCIL: the slot written; -1: several or none */
    const oly_node *reader; /* the node being lowered when the step was added; NULL: returning a result */
    const oly_transfer *transfer;    /* MOVE by a layout; NULL: another kind of copy */
    oly_axis_list over;              /* REDUCTION, reduce-scatter: the mesh axes reduced over */
    oly_exchange *exchange, *second; /* owned; NULL: this process sends and receives nothing */
    oly_exchange *awaited;           /* WAIT: another step's; STENCIL: the first margins', under way; or NULL */
    int from;                        /* WAIT: the process whose message is awaited; -1: all messages */
    bool starts; /* MOVE, REDUCTION: only starts its (REDUCTION: second) exchange; a WAIT completes it */
    bool begun;  /* REDUCTION: the exchange of partial results is already complete */
    bool alone;  /* MOVE: copies only, on every process, so it takes no message number */
    bool boxes;  /* MOVE: what each copy writes is a box of its slot, without gaps; false: unknown */
    int taken_by; /* TILE: the number of the step that may compute it by itself (fused_groups.h), which comes later; 0: none */
    bool chained;            /* TILE, REDUCE, LOCAL: one of a chain of rows (schedule/row_chains.c) */
    int chain;               /* of its last step: how many steps it has; else 0 */
    oly_row_kind chained_by; /* and what its rows are */
    bool
        begins_next; /* TILE: it fills what the scatter after it, or after others like it, writes into or reads as updates */
    bool replicated; /* TILE, LOCAL, REDUCE, GEMM: devices with equal boxes compute the same from the same values */
    double work;     /* element-operations on this process: decides whether a call is small */
    const struct oly_prepared
        *prepared; /* what the executor has prepared (run/executor.h), in the plan's arena; NULL: not yet */
    union {
        struct {
            oly_tile_program program;
            const oly_tile_work *device; /* [n_devices] */
            bool compiles;               /* into machine code, where that is possible */
        } tile;
        struct {
            const oly_reduce_work *device;
            const struct oly_step
                *operand; /* the group whose result only this step reads (fused_reductions.c); else NULL */
            int n_parts;  /* of that group, where direct_reads.c has divided it: `operand` is the first then; else 0 */
            const struct oly_step *const *parts; /* [n_parts] */
        } reduce;
        struct {
            const oly_gemm_work *device;
            int n_copies; /* operands copied first, because the kernel cannot read them in place */
            const oly_copy_work *copies;
            int n_phases; /* with an exchange, which sends their results; else 0 */
            const oly_gemm_phase *phases;
            const struct oly_step
                *converted[2]; /* of narrow elements: the conversions of the operands, which only this step reads
                                                    (fused_products.c); else NULL */
        } gemm;
        struct {
            const oly_local_work *device;
        } local;
        struct {
            const oly_user_call *call;
            int n_in, n_lead;
            double bytes; /* read and written on this process */
            const oly_call_work *device;
        } call;
        struct {
            int n_copies;
            const oly_copy_work *copies;
            int n_arrivals;
            const oly_arrival *arrivals; /* what the exchange receives, in a transfer between layouts */
            int n_departures;
            const oly_arrival *departures; /* what it sends, in a transfer between layouts; NULL: unknown */
        } move;
        struct {
            oly_combiner combiner;
            oly_dtype dtype;
            bool sliced; /* a second exchange distributes reduced slices (on every process, or on none) */
            int n_groups;
            const oly_reduction_work *groups;
            int n_read, n_written;
            const int *slots;             /* read by groups and levels, then those written; NULL: not listed */
            oly_reduction_levels *levels; /* NULL: none */
            int n_levels_run;             /* run by the step itself; the others by its exchange (reduction_tree.h) */
            oly_staged_reduction *staged; /* the levels run by the exchange; NULL: none */
        } reduction;
        struct {
            int64_t count, lower;
            oly_block *body;
            int counter_slot; /* int32 on every device; -1: not used */
            int n_carry;
            const int *init_slot, *in_slot, *out_slot, *spare_slot; /* out == in: updated in place, in init's memory */
            const oly_passed_carry *passed;                         /* [n_carry]; NULL: all are computed */
            int oldest;                                             /* the largest age */
            int predicate;          /* the carry that says whether to continue; -1: counted */
            const int *result_slot; /* the final copies of the carries; NULL when counted: they stay in place */
            int n_rows;
            const oly_loop_row *rows; /* [n_rows] */
        } loop;
        struct {
            int n, index_slot; /* int32 on every device, clamped to the blocks' numbers */
            oly_block *const *blocks;
        } branch;
        struct {
            const oly_stencil *stencil;
            int64_t count;
            int pass;              /* time steps between exchanges */
            int first_slot;        /* the initial field, with margins */
            int field_slot[2];     /* fields with margins that passes write alternately */
            oly_block *margins[2]; /* transfer the margins of each field */
            bool overlaps;         /* inner tiles are computed while margins are being transferred */
            double early;          /* share of a pass's work in these tiles */
            const oly_stencil_work *device;
            const struct oly_tiling
                *tiling; /* not one linear form, so run by tile programs (time_tiling.h); else NULL */
        } stencil;
    };
} oly_step;

enum { OLY_MOST_OPERAND_STEPS = 16 };
/* The steps that compute a reduction's operand: one, or as many as it has parts; 0: it is in memory. */
static inline int oly_operand_steps(const oly_step *reduce)
{
    return reduce->reduce.n_parts > 0 ? reduce->reduce.n_parts : reduce->reduce.operand != NULL;
}

static inline const oly_step *oly_operand_step(const oly_step *reduce, int k)
{
    return reduce->reduce.n_parts > 0 ? reduce->reduce.parts[k] : reduce->reduce.operand;
}

struct oly_block {
    int n_steps, capacity;
    oly_step *steps;
    int begin, end; /* number of the first step, and of the last plus one */
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
    oly_mesh mesh;        /* of most values */
    uint64_t members_key; /* of the set of devices that take part, for numbering its calls */
    int n_meshes;
    const oly_mesh *meshes; /* of the devices that take part, each once; without those of every process's own */
    bool default_devices;   /* every process's own first device takes part, too */
    bool everybody;         /* every process takes part, whichever devices it has */
    bool distributed;       /* exchanges messages between processes (the same on every member) */
    bool small;
    int n_devices;      /* of this process */
    const int *devices; /* their local indexes */
    int n_inputs, n_outputs;
    oly_plan_value *inputs, *outputs;
    const int *input_slot, *output_slot;
    int n_slots, slot_room;
    oly_slot *slots;
    size_t scratch_bytes;         /* the maximum over devices */
    const size_t *device_scratch; /* [n_devices] bytes of each */
    const struct oly_held_once
        *held; /* what the executor holds once for all devices (run/held_once.h); NULL: nothing */
    oly_block *main;
    int n_steps;       /* in all blocks */
    int64_t looked_at; /* shared parts of blocks and pieces of reductions examined: a measure of planning work */
    /* Where layouts were chosen by cost (choose.c): total bytes received and predicted seconds of what was decided,
     * as propagated and as chosen. */
    double predicted_bytes[2], predicted_seconds[2];
    struct oly_frame *frame;    /* what the planner knew of every value: for explanations */
    const oly_sharding *wanted; /* [n_outputs] requested by the caller, NULL entries open; or NULL */
    int n_labels;
    const int
        *labels; /* [n_labels] of steps, by number, in the timeline (core/timeline.h); NULL: steps are not timed */
} oly_plan;

typedef struct oly_plan_request {
    oly_graph *graph;             /* taken over, also on failure */
    const oly_plan_value *inputs; /* [graph->n_inputs] */
    const oly_sharding *outputs;  /* [graph->n_outputs] requested, NULL entries open; or NULL */
} oly_plan_request;

/* A cell is a slot on one device of this process. Cells are numbered with those of one slot adjacent; a run has a
 * table of one buffer for each. */
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
