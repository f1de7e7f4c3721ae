/* Graphs: operations on global types in the order they were traced. Nodes have one result; operands come before their users.
 * A node is made complete (type, checks) by oly_graph_add. Everything lives in the graph's arena. */
#ifndef OLY_GRAPH_GRAPH_H
#define OLY_GRAPH_GRAPH_H
#include "graph/ops.h"
#include "core/arena.h"
#include "core/error.h"
#include "layout/permutation.h"
#include "layout/sharding.h"

typedef struct oly_graph oly_graph;
typedef struct oly_node oly_node;

/* Which dimensions of the two operands of a product belong together, pair by pair: those summed over and those that stay.
 * Result: the batch pairs, then the other dimensions of the first operand, then those of the second (jax.lax.dot_general). */
typedef struct oly_contraction {
    uint8_t n_contract, n_batch;
    uint8_t contract[2][OLY_MAX_RANK], batch[2][OLY_MAX_RANK]; /* [operand][pair] */
} oly_contraction;

/* Where a loop runs once, for several of the program's steps (plan/loop_fission.c): it; what a field is after a step; what is
 * computed for itself in a single step. */
enum { OLY_UNROLLED_LOOP = 1, OLY_UNROLLED_FIELD = 2, OLY_UNROLLED_STAGE = 4 };

/* What an operation is told beside its operands. Unused members are zero, so that parameters can be hashed and compared as
 * memory. First what every pass of the planner looks at, see oly_node. */
typedef struct oly_params {
    oly_sharding sharding; /* place */
    oly_graph *body;       /* loop: inputs are the counter, the carries, the captures; outputs the new carries */
    int n_branches;        /* branch: graphs whose inputs are the operands after the index; results have equal types */
    uint32_t settled;      /* place, broadcast: mesh axes (bits) that sharding settles, others stay open; 0: all */
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
    int predicate;     /* loop: carry + 1 that is a bool and says whether to go on, before each iteration; 0: counted */
    unsigned unrolled; /* OLY_UNROLLED_ bits */
    bool one_by_one;   /* reduce: partials of devices are folded one after the other, as those of products */
    /* shard_map */
    oly_mesh mesh;               /* collectives: whose axes; they are Manual there */
    bool unchecked;              /* collectives: types do not tell along which axes values vary */
    oly_axis_list over;          /* collectives: the axes, major first */
    oly_permutation permutation; /* ppermute: of the positions along `over`; permute: along dimension */
    /* along a dimension, and by value (dtype: of the indexes that result) */
    bool reverse;   /* sort, running results: from the end; argsort: descending; searchsorted: side "right" */
    int n_batch;    /* gather, scatter, searchsorted, dynamic slices: leading dimensions that all operands share */
    int index_mode; /* gather, scatter: oly_index_mode */
    int64_t count;  /* top_k */
    /* -- contractions */
    oly_contraction contraction;      /* dot_general */
    const oly_sliding_window *window; /* conv, reduce_window_*; else NULL: most nodes have none, and it is large */
} oly_params;

/* Is the sharding that place and broadcast are told the whole truth? (Else it is of the settled axes only.) */
static inline bool oly_settles_all(const oly_params *p)
{
    return p->settled == 0 || p->settled == (1u << p->sharding->mesh->n_axes) - 1;
}

/* Passes over all nodes are bound by memory: what they look at lies in one cache line, with up to two operands before it. */
struct oly_node {
    oly_op op;
    int index; /* in the graph */
    int n_in;
    int n_uses; /* operands of other nodes plus outputs that name it */
    oly_node **in;
    oly_params params;
    oly_type type;
    uint64_t hash; /* of parameters and type, but for the graphs inside, as they were when the node was added */
    oly_site site; /* the caller's line */
};

/* A number that is known while planning. */
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
    const char *name; /* for people */
    int n_walks;      /* derivatives being taken now */
    bool unsorted;    /* nodes have got operands that come later: to be sorted after the last walk */
};

/* For a pass over the nodes, forwards or (by = -1) backwards, that is at node k: has the cache bring a later one. */
static inline void oly_graph_ahead(const oly_graph *g, int k, int by)
{
    enum { AHEAD = 8 };
    int later = k + by * AHEAD;
    if (later < 0 || later >= g->n_nodes)
        return;
    __builtin_prefetch(g->nodes[later]);
    __builtin_prefetch(&g->nodes[later]->type);
}

/* The graphs inside a node (a loop's body, branches): how many. */
int oly_node_graphs(const oly_node *node, oly_graph *const **graphs);

oly_graph *oly_graph_new(const char *name);
void oly_graph_free(oly_graph *g); /* bodies of loops too; NULL allowed */
/* Adds a node; runs the type rule; on failure the message has both types, and the graph is as before. params NULL: all zero.
 * params->body and the branches belong to the graph once the node is added. */
oly_status oly_graph_add(oly_graph *g, oly_op op, int n_in, oly_node *const *in, const oly_params *params,
                         oly_node **node);
oly_status oly_graph_input(oly_graph *g, const oly_type *type, oly_node **node);
oly_status oly_graph_output(oly_graph *g, oly_node *node);
/* Drops nodes that no output needs (inputs stay), in bodies of loops too, and counts uses anew. */
void oly_graph_prune(oly_graph *g);
/* Results of a loop or branch, which result nodes take out; -1 for operations that have a value of their own. */
int oly_graph_results(const oly_node *node);
/* Copies the nodes of `from` that its outputs need into g, with in[k] in the place of its input k; the bodies of its loops move.
 * `from` is of no use afterwards but to be freed. out[k]: the node of its output k. */
oly_status oly_graph_inline(oly_graph *g, oly_graph *from, oly_node *const *in, oly_node **out);
/* The same, but `from` stays as it is; graphs inside are copied too. in[k] of an unused input may be NULL. */
oly_status oly_graph_copy(oly_graph *g, const oly_graph *from, oly_node *const *in, oly_node **out);
oly_status oly_graph_clone(const oly_graph *from, oly_graph **made);
/* Puts nodes behind their operands again, after operands have been added to nodes. */
oly_status oly_graph_sort(oly_graph *g);
/* Takes out nodes that mean nothing to a plan (those that only stop gradients), in bodies too. */
void oly_graph_bypass(oly_graph *g);
/* Takes out rearrangements (rev, transpose, reshape) that are undone after elementwise operations, in bodies too. The graph is as
 * oly_graph_prune left it, and is so afterwards. */
oly_status oly_graph_cancel_rearrangements(oly_graph *g);
/* Takes reversed dimensions through what commutes with them, where fewer values are turned round so, in bodies too; after the
 * same. Sums over a reversed dimension then begin at its other end. */
oly_status oly_graph_flip(oly_graph *g);
/* Gives every elementwise operation its own copy of small masks made of indexes and constants, in bodies too; after the same. */
oly_status oly_graph_rematerialise(oly_graph *g);
/* Prints one line a node: "%3 = add %1 %2 : float32[4,8]   heat.c:12", bodies of loops indented, and the outputs. */
void oly_graph_text(oly_text *t, const oly_graph *g);
uint64_t oly_graph_hash(const oly_graph *g); /* of operations, parameters, types; the same on every rank */
#endif
