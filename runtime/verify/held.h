/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a program that is evaluated operation by operation: this process's shards in reference-counted buffers,
 * without handles. Private to runtime/verify. */
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

/* A value with one reference, shards NULL. NULL: out of memory (message pending). */
oly_held *oly_held_new(const oly_plan_value *is, int n_shards);
oly_held *oly_held_share(oly_held *x);
void oly_held_drop(oly_held *x); /* NULL allowed */
/* Takes a reference; the same value, marked as reordered. NULL: out of memory. */
oly_held *oly_held_as_reordered(oly_held *x);
/* Takes the shards of a plan: the same buffers, or (`copied`) others with the same bytes. All queued work has
 * completed. */
oly_status oly_held_take(const oly_plan_value *is, oly_buffer *const *shards, bool copied, oly_held **made);
/* An int32 number on the uncommitted devices. */
oly_status oly_held_number(int32_t number, oly_held **made);
/* Sets host[] to this process's elements, valid until the value is released or changed. All queued work has
 * completed. */
oly_status oly_held_map(oly_held *x);
/* The element of a rank-0 value, after all queued work; false: no device of this process has it. */
bool oly_held_scalar(const oly_held *x, size_t bytes, void *value);

/* Runs a program: out[k] has one reference. */
oly_status oly_held_run(oly_program *p, oly_held *const *in, oly_held **out);
/* Plans a graph (taken over) without any optimisation. outputs: as oly_plan_request. */
oly_status oly_held_plan(oly_graph *g, oly_held *const *in, const oly_sharding *outputs, oly_program **program);
/* The sharding to which values of an unreduced type, which are not arrays, are reduced; NULL for other types. */
oly_status oly_reduced_sharding(const oly_type *t, oly_sharding *wanted);
/* The value at a sharding: x itself, or a copy. */
oly_status oly_held_move(oly_held *x, oly_sharding to, oly_held **moved);
#endif
