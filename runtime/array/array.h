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
    oly_identity identity;  /* which value it is, here and to others; handles that share a value have the same */
    uint64_t origin;        /* on meshes that leave processes out: see origin.h; 0: none of its own */
    oly_site donated;       /* the call that took it; else zero */
    const oly_graph *graph; /* traced: whose node; NULL: a value */
    oly_node *node;
    int device; /* local device and moment in its order at which the shards are computed; -1: ready */
    uint64_t moment;
    int n_shards;        /* on this process */
    int room;            /* shards the handle has place for */
    void **host;         /* owned: [n_shards] see oly_array_host; NULL: none */
    oly_buffer *shard[]; /* in mesh order; owned references */
};

/* A handle in the innermost scope, shards all NULL. NULL on failure (message pending). */
oly_array oly_array_new(const oly_type *type, oly_sharding sharding, bool committed, int n_shards);
oly_array oly_array_traced(const oly_graph *g, oly_node *node);
/* Another handle of the same data. */
oly_array oly_array_share(oly_array x);
/* The new handle, or NULL, is owned by the scope of the old one, which ends. */
void oly_array_take_place(oly_array old, oly_array x);
/* oly_array_share, owned by nobody: freed by oly_array_release. */
oly_array oly_array_hold(oly_array x);
void oly_array_release(oly_array x);
/* What a call given a null handle returns: the error that made it null, or, without one, a new error of its own. */
oly_status oly_null_handle(void);
oly_array oly_null_array(void); /* the same, for calls that give arrays */
/* Forgets the handles that died last (see array.c); at finalize. */
void oly_array_forget_dead(void);
/* Fails OLY_DELETED or OLY_TRACE unless the array is a value that can be read. */
oly_status oly_array_readable(oly_array x);
/* Waits for the data. */
void oly_array_wait(oly_array x);
/* The box of local shard s, and its mesh position. */
oly_box oly_array_box(oly_array x, int s, int *position);
/* The elements of shard s for the host, once they are computed; they are there as long as the array: the buffer's memory, or a copy
 * of it where the host cannot read that. */
oly_status oly_array_host(oly_array x, int s, const void **memory);
/* Copies everything to host memory. fails OLY_NOT_ADDRESSABLE. */
oly_status oly_array_fetch(oly_array x, void *buffer);
#endif
