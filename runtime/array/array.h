/* SPDX-License-Identifier: BSD-3-Clause */
/* What an array handle points to. Private to runtime/array. */
#ifndef OLY_ARRAY_ARRAY_H
#define OLY_ARRAY_ARRAY_H
#include "core/scope.h"
#include "device/memory.h"
#include "graph/graph.h"
#include "layout/layout.h"
#include "run/together.h"

struct oly_array_impl {
    oly_owned owned; /* first member */
    oly_type type;
    oly_sharding sharding; /* NULL: traced */
    bool committed, deleted;
    oly_identity identity;  /* identifies the value; handles that share a value have the same */
    uint64_t origin;        /* on meshes that leave processes out: see origin.h; 0: none */
    oly_site donated;       /* the call that it was donated to; else zero */
    const oly_graph *graph; /* traced: whose node; NULL: a value */
    oly_node *node;
    int device; /* local device and event on it after which the shards are computed; -1: ready */
    uint64_t moment;
    int n_shards;        /* on this process */
    int room;            /* capacity in shards */
    void **host;         /* owned: [n_shards] see oly_array_host; NULL: none */
    oly_buffer *shard[]; /* in mesh order; owned references */
};

/* A handle in the innermost scope, shards all NULL. NULL on failure (message pending). */
oly_array oly_array_new(const oly_type *type, oly_sharding sharding, bool committed, int n_shards);
/* The same in no scope: freed by oly_array_release. */
oly_array oly_array_loose(const oly_type *type, oly_sharding sharding, bool committed, int n_shards);
/* Drops the data of an array that is about to get other data, and with it another identity. */
void oly_array_renew(oly_array x);
oly_array oly_array_traced(const oly_graph *g, oly_node *node);
/* Another handle of the same value. */
oly_array oly_array_share(oly_array x);
/* Moves x (NULL allowed) to the scope of the handle that it replaces; `old` ends. */
void oly_array_take_place(oly_array old, oly_array x);
/* oly_array_share without a scope: freed by oly_array_release. */
oly_array oly_array_hold(oly_array x);
void oly_array_release(oly_array x);
/* What a call given a null handle returns: the error that made it null, or, if there is none, a new error of its
 * own. */
oly_status oly_null_handle(void);
oly_array oly_null_array(void); /* the same, for calls that return arrays */
/* Frees the dead handles that are kept (see array.c); at finalize. */
void oly_array_forget_dead(void);
/* Fails OLY_DELETED or OLY_TRACE unless the array is a value that can be read. */
oly_status oly_array_readable(oly_array x);
/* Waits for the data. */
void oly_array_wait(oly_array x);
/* The box of local shard s, and its mesh position. */
oly_box oly_array_box(oly_array x, int s, int *position);
/* The elements of shard s for the host, once they are computed; valid as long as the array: the buffer's memory, or a
 * copy of it where the host cannot read that. */
oly_status oly_array_host(oly_array x, int s, const void **memory);
/* Copies all elements to host memory. fails OLY_NOT_ADDRESSABLE. */
oly_status oly_array_fetch(oly_array x, void *buffer);
#endif
