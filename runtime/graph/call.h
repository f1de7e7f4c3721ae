/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program inside plans: what a node of the row `call` needs to know of one. Prints, checks, callbacks and user
 * kernels (olympus/inside.h) are all such calls; nothing below runtime/array knows which. Callable from graph and above. */
#ifndef OLY_GRAPH_CALL_H
#define OLY_GRAPH_CALL_H
#include <olympus/inside.h>
#include "graph/graph.h"

enum { OLY_CALL_MOST = 16 }; /* operands, and results */

/* A letter names a factor; these stand for dimensions without one. */
#define OLY_CALL_WHOLE      '_' /* never split */
#define OLY_CALL_ONCE       '1' /* of size 1, on one device */
#define OLY_CALL_AS_IT_LIES '*' /* of all dimensions of an operand: split as it happens to be */

typedef struct oly_call_operand {
    int rank; /* without batch dimensions */
    char letter[OLY_MAX_RANK];
    int32_t before[OLY_MAX_RANK], after[OLY_MAX_RANK]; /* elements of the neighbours that a block is extended by */
    uint32_t wraps, zero,
        nearest; /* bit d: beyond the ends of dimension d is its other end; zeros; its last element; else blocks end there */
    bool strided;          /* may be read where it lies; else row by row */
    oly_combiner combiner; /* results: of partial results, where a factor that it lacks is split */
    oly_type type;         /* results: shape and element type, without batch dimensions */
} oly_call_operand;

/* What one call of the function gets. */
typedef struct oly_call_frame {
    const oly_user_call *call;
    oly_site site;
    bool alone; /* the public call is this one, outside of functions */
    const oly_shard_part *in;
    oly_shard_part *out;
    int n_in; /* of a check in a map more than call->n_in */
    void *scratch;
    void *stream;              /* of a GPU, in whose memory the parts are; NULL: they are the host's */
    int device;                /* its id */
    int n_lead;                /* batch dimensions */
    const int64_t *lead;       /* [n_lead] numbers of this element */
    const int64_t *lead_shape; /* [n_lead] */
    size_t scratch_bytes;
    char *message; /* of an error; empty: none */
    size_t room;
} oly_call_frame;
typedef oly_status oly_call_run(const oly_call_frame *frame);

/* One piece of memory, texts included, which copies of the node copy. */
struct oly_user_call {
    size_t bytes;
    bool effect;  /* never dropped, repeated or moved past another one; operand 0, a bool, says whether it happens */
    bool host;    /* runs on the interpreting thread, in the order of devices; else on the devices' threads */
    bool locally; /* where each process has a copy of its own, only process 0 calls */
    bool agreed;  /* the operands are the same on all devices: one call on each process */
    bool gathers; /* a check: what elements of a batch find is brought together (transform/batch_call.c) */
    int n_in, n_out;
    oly_call_operand in[OLY_CALL_MOST], out[OLY_CALL_MOST];
    uint32_t whole;      /* bit k: the factor 'a' + k is never split */
    double flops, moved; /* per element of the index space of all factors; bytes besides operands and results */
    size_t scratch, scratch_per_element; /* bytes */
    oly_call_run *run;
    void *function, *user; /* the program's */
    void *gpu_function;    /* launches on GPUs; NULL: there the host calls `function` */
    int name, text;        /* where texts begin */
    char texts[];
};

static inline const char *oly_call_name(const oly_user_call *c)
{
    return c->texts + c->name;
}
static inline const char *oly_call_text(const oly_user_call *c)
{
    return c->texts + c->text;
}

/* A call with room for its texts, which are copied; NULL: out of memory. Freed with oly_release. */
oly_user_call *oly_call_new(const char *name, const char *text);
/* The same on all ranks: without addresses. */
uint64_t oly_call_hash(const oly_user_call *c);
oly_user_call *oly_call_copy(oly_arena *arena, const oly_user_call *c);

/* Adds a call: one node for each result (out[n_out], at least one: a call without results has a node of type bool[]). Nodes of one
 * call share params.call_number and their operands; the planner computes them in one step. */
oly_status oly_graph_call(oly_graph *g, const oly_user_call *c, int n_in, oly_node *const *in, oly_node **out);

/* Does the node, or a graph in it, have an effect? */
bool oly_node_has_effect(const oly_node *node);
/* Takes away the effects of a graph that recomputes what another graph has computed, in bodies too. */
void oly_graph_silence(oly_graph *g);
/* Dimension d of operand k, or of the result, without batch dimensions: its letter; 0: beyond its rank. */
static inline char oly_call_letter(const oly_call_operand *x, int d)
{
    return d < x->rank ? x->letter[d] : 0;
}
#endif
