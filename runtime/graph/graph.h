/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs: operations on global types in the order in which they were traced. Nodes have one result; operands come
 * before their users. oly_graph_add completes and checks a node. Everything is allocated in the graph's arena. */
#ifndef OLY_GRAPH_GRAPH_H
#define OLY_GRAPH_GRAPH_H
#include "graph/ops.h"
#include "core/arena.h"
#include "core/error.h"
#include "layout/permutation.h"
#include "layout/sharding.h"

typedef struct oly_graph oly_graph;
typedef struct oly_user_call oly_user_call;
typedef struct oly_node oly_node;

/* Which dimensions of the two operands of a product are paired: those summed over, and batch dimensions, which stay.
 * The result has the batch pairs, then the other dimensions of the first operand, then those of the second
 * (jax.lax.dot_general). */
typedef struct oly_contraction {
    uint8_t n_contract, n_batch;
    uint8_t contract[2][OLY_MAX_RANK], batch[2][OLY_MAX_RANK]; /* [operand][pair] */
} oly_contraction;

/* Loops of which one iteration is several of the program's (plan/rewrite/loop_fission.c): the loop itself; what a field is
 * after a step; a value computed separately in each step. A loop that is none of the program's and runs once
 * (plan/rewrite/field_regions.c). */
enum { OLY_UNROLLED_LOOP = 1, OLY_UNROLLED_FIELD = 2, OLY_UNROLLED_STAGE = 4, OLY_UNROLLED_REGION = 8 };

/* What an operation needs besides its operands. Unused members are zero, so that parameters can be hashed and compared
 * as memory. The members that every pass of the planner reads come first, see oly_node. */
typedef struct oly_params {
    oly_sharding sharding; /* place */
    oly_graph *body;       /* loop: inputs are the counter, the carries, the captures; outputs the new carries */
    int n_branches;        /* branch: graphs whose inputs are the operands after the index; results have equal types */
    uint32_t settled;      /* place, broadcast: mesh axes (bits) that sharding fixes, others stay open; 0: all */
    oly_graph **branches;
    oly_dtype dtype; /* input, convert, iota, constant */
    bool weak;       /* input, convert, constant */
    int n_axes;
    int axes[OLY_MAX_RANK];      /* reduce, rev, argmax: dimensions, ascending; transpose; broadcast; gather */
    int rank;                    /* of shape */
    int64_t shape[OLY_MAX_RANK]; /* input, reshape, broadcast, iota: result; slice, update: extents of the part */
    int64_t start[OLY_MAX_RANK], step[OLY_MAX_RANK]; /* slice, update, pad */
    int dimension;                                   /* iota, concatenate, result */
    union {
        int64_t i;
        double f;
    } value;              /* constant: f for floating and complex dtypes, else i */
    double imaginary;     /* constant of a complex dtype */
    int n_carry;          /* loop */
    int64_t lower, upper; /* loop */
    int predicate;        /* loop: carry + 1 that is a bool, tested before each iteration; 0: counted */
    unsigned unrolled;    /* OLY_UNROLLED_ bits */
    bool one_by_one; /* reduce: partial results of devices are combined one after the other, as those of products are */
    /* shard_map */
    oly_mesh mesh;               /* collectives: the mesh whose axes `over` names; they are Manual there */
    bool unchecked;              /* collectives: types do not say along which axes values vary */
    oly_axis_list over;          /* collectives: the axes, major first */
    oly_permutation permutation; /* ppermute: of the positions along `over`; permute: along dimension */
    /* along a dimension, and by value (dtype: of the indexes that result) */
    bool reverse;   /* sort, running results: from the end; argsort: descending; searchsorted: side "right" */
    int n_batch;    /* gather, scatter, searchsorted, dynamic slices: leading dimensions shared by all operands */
    int index_mode; /* gather, scatter: oly_index_mode */
    int64_t count;  /* top_k */
    /* -- contractions */
    oly_contraction contraction;      /* dot_general */
    const oly_sliding_window *window; /* conv, reduce_window_*; else NULL: it is large, and few nodes have one */
    /* -- functions of the program (call.h); dimension: which of its results */
    const oly_user_call *call; /* else NULL; copied into the graph's memory */
    uint64_t call_number;      /* nodes of one call */
    uint32_t mapped;           /* batch dimensions (bits) that are devices of a shard_map */
    bool muted;                /* the effect has happened elsewhere: this is computed once more for its results */
} oly_params;

/* Does the sharding of a place or broadcast fix all axes? (If not, only the settled ones.) */
static inline bool oly_settles_all(const oly_params *p)
{
    return p->settled == 0 || p->settled == (1u << p->sharding->mesh->n_axes) - 1;
}

/* Passes over all nodes are memory-bound: what they read is in one cache line, with up to two operands in front of
 * it. */
struct oly_node {
    oly_op op;
    int index; /* in the graph */
    int n_in;
    int n_uses; /* operands of other nodes plus outputs that are this node */
    oly_node **in;
    oly_params params;
    oly_type type;
    uint64_t hash; /* of parameters and type as they were when the node was added; graphs inside are left out */
    oly_site site; /* the caller's line */
};

/* A number known at planning time. */
static inline bool oly_is_constant(const oly_node *x)
{
    return oly_ops[x->op].lowering == OLY_LOWER_TILE && oly_ops[x->op].detail == OLY_TILE_splat;
}

struct oly_graph {
    oly_arena arena;
    int n_nodes, capacity;
    oly_node **nodes; /* in order */
    int n_inputs, n_outputs, input_capacity, output_capacity;
    oly_node **inputs, **outputs;
    const char *name;           /* for messages and plans */
    int n_walks;                /* derivatives being taken at the moment */
    bool has_effects;           /* has had a node with an effect (call.h), in bodies too */
    bool unsorted;              /* some nodes have operands that come later: sorted after the last walk */
    struct oly_number *numbers; /* of an eager call while it is composed (numbers.h) */
    uint64_t fixed_numbers;     /* operands (bits) whose value has decided something */
};

/* Prefetches for a pass over the nodes, forwards or (by = -1) backwards, that has reached node k. */
static inline void oly_graph_ahead(const oly_graph *g, int k, int by)
{
    enum { AHEAD = 8 };
    int later = k + by * AHEAD;
    if (later < 0 || later >= g->n_nodes)
        return;
    __builtin_prefetch(g->nodes[later]);
    __builtin_prefetch(&g->nodes[later]->type);
}

/* How many graphs the node contains (a loop's body, branches). */
int oly_node_graphs(const oly_node *node, oly_graph *const **graphs);

oly_graph *oly_graph_new(const char *name);
void oly_graph_free(oly_graph *g); /* bodies included; NULL allowed */
/* Adds a node and applies its type rule. On failure the message names both types, and the graph is unchanged. params
 * NULL: all zero. The node takes ownership of params->body and the branches. */
oly_status oly_graph_add(oly_graph *g, oly_op op, int n_in, oly_node *const *in, const oly_params *params,
                         oly_node **node);
oly_status oly_graph_input(oly_graph *g, const oly_type *type, oly_node **node);
/* Makes a constant an input of its type, in its place; the last input of the graph. */
oly_status oly_graph_constant_to_input(oly_graph *g, oly_node *constant);
oly_status oly_graph_output(oly_graph *g, oly_node *node);
/* Removes nodes that no output needs (inputs stay), in bodies too, and recounts uses. */
void oly_graph_prune(oly_graph *g);
/* How many results a loop or branch has, which result nodes extract; -1 for operations that have a value themselves. */
int oly_graph_results(const oly_node *node);
/* Copies the nodes of `from` that its outputs need into g, with in[k] in place of its input k; the bodies of its loops
 * are moved. `from` can only be freed afterwards. out[k]: the node of its output k. */
oly_status oly_graph_inline(oly_graph *g, oly_graph *from, oly_node *const *in, oly_node **out);
/* The same, but `from` is unchanged; graphs inside are copied too. in[k] of an unused input may be NULL. */
oly_status oly_graph_copy(oly_graph *g, const oly_graph *from, oly_node *const *in, oly_node **out);
oly_status oly_graph_clone(const oly_graph *from, oly_graph **made);
/* Restores the order in which operands come first, after operands have been added to nodes. */
oly_status oly_graph_sort(oly_graph *g);
/* Removes nodes that have no effect in a plan (those that only stop gradients), in bodies too. */
void oly_graph_bypass(oly_graph *g);
/* Removes rearrangements (rev, transpose, reshape) that cancel across elementwise operations, in bodies too. Needs a
 * pruned graph (oly_graph_prune) and leaves one. */
oly_status oly_graph_cancel_rearrangements(oly_graph *g);
/* x, reshaped and computed by elementwise operations, in the shape that `reshape` (above x) has before: *made is NULL if that cannot be
 * done without rearranging anything. Leaves the graph to be sorted and pruned. */
oly_status oly_graph_before_reshapes(oly_graph *g, oly_node *x, const oly_node *reshape, oly_node **made);
/* Moves reversals through what commutes with them where fewer values are reversed then, in bodies too. Needs and leaves
 * a pruned graph. Sums over a reversed dimension then begin at its other end. */
oly_status oly_graph_flip(oly_graph *g);
/* Arrays that are concatenated from parts and sliced into the same parts again, through elementwise operations and as carries of loops, are
 * computed part by part and never put together, in bodies too. Needs a pruned graph and leaves one. */
oly_status oly_graph_separate(oly_graph *g);
/* Values that are computed in the same way from the same values become one, in bodies too. Needs a pruned graph and leaves one. */
oly_status oly_graph_share(oly_graph *g);
/* Where only a slice of an elementwise result is read, computes only that, in bodies too. Needs a pruned graph and leaves one. */
oly_status oly_graph_narrow(oly_graph *g);
/* In loops, x[i] and x.at[i].set(u) become slices and updates where i, computed from the counter, is a row of x; their starts become the
 * counter itself where that needs no computation. In bodies too. Needs a pruned graph and leaves one. */
oly_status oly_graph_settle_counters(oly_graph *g);
/* Gives every elementwise operation its own copy of small masks computed from indexes and constants, and reductions their own of what
 * one operation makes of a large array, in bodies too.
 * Needs and leaves a pruned graph. */
oly_status oly_graph_rematerialise(oly_graph *g);
/* Prints one line per node: "%3 = add %1 %2 : float32[4,8]   heat.c:12", bodies indented, and the outputs. */
void oly_graph_text(oly_text *t, const oly_graph *g);
uint64_t oly_graph_hash(const oly_graph *g); /* of operations, parameters, types; the same on every rank */
#endif
