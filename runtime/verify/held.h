/* Values of a program that is evaluated operation by operation: shards of this process in counted buffers, without a handle. Private
 * to runtime/verify. */
#ifndef OLY_VERIFY_HELD_H
#define OLY_VERIFY_HELD_H
#include "run/execute.h"

typedef struct oly_held {
    int references;
    oly_plan_value is;
    bool reordered; /* may depend on the order in which a plan adds (rounding.h) */
    void **host;    /* owned: [n_shards] see oly_held_map; NULL: not mapped */
    int n_shards;
    oly_buffer *shard[]; /* of this process, in mesh order */
} oly_held;

/* One reference; shards NULL. NULL: out of memory (message pending). */
oly_held *oly_held_new(const oly_plan_value *is, int n_shards);
oly_held *oly_held_share(oly_held *x);
void oly_held_drop(oly_held *x); /* NULL allowed */
/* Takes a reference; the same value, marked as reordered. NULL: out of memory. */
oly_held *oly_held_as_reordered(oly_held *x);
/* Shards as a plan takes them: the same buffers, or (`copied`) others with the same bytes. All work is done before. */
oly_status oly_held_take(const oly_plan_value *is, oly_buffer *const *shards, bool copied, oly_held **made);
/* An int32 number, where uncommitted arrays are. */
oly_status oly_held_number(int32_t number, oly_held **made);
/* Makes host[] what this process has of a value, for as long as the value is held and not changed. All work is done before. */
oly_status oly_held_map(oly_held *x);
/* The element of a value of rank 0, once all work is done; false: no device of this process has it. */
bool oly_held_scalar(const oly_held *x, size_t bytes, void *value);

/* Runs a program: out[k] has one reference. */
oly_status oly_held_run(oly_program *p, oly_held *const *in, oly_held **out);
/* Plans a graph (taken over) without any optimisation. outputs: as oly_plan_request. */
oly_status oly_held_plan(oly_graph *g, oly_held *const *in, const oly_sharding *outputs, oly_program **program);
/* A sum over devices, which is no array, is finished where it would wait for that: the sharding to ask for; NULL for other types. */
oly_status oly_finished_sharding(const oly_type *t, oly_sharding *wanted);
/* The value where the sharding says: x itself, or a copy that is made there. */
oly_status oly_held_move(oly_held *x, oly_sharding to, oly_held **moved);
#endif
