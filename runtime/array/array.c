/* SPDX-License-Identifier: BSD-3-Clause */
/* Array handles: creation, sharing, release, queries. See array.h. */
#include "array/array.h"
#include "array/arguments.h"
#include "core/short_lock.h"
#include "device/platform.h"
#include "device/queue.h"
#include <stdatomic.h>
#include <string.h>

/* Dead handles are kept for a while, without their data, so that use of a donated or freed array is an error instead of
 * a wild pointer. The oldest is reused first: a program that replays plans allocates no handles. */
enum { LEAST_DEAD = 192, MOST_DEAD = 256 };
static oly_array dead[MOST_DEAD];  /* a ring */
static unsigned n_dead, n_revived; /* handles ever added, and ever taken out */
static oly_short_lock dead_lock = OLY_SHORT_LOCK_INIT;
/* Handles that left the ring and are free for reuse, chained through owned.next: as many as tracing a thousand
 * operations takes, which would otherwise be freed and allocated each time. */
enum { MOST_SPARE = 4096 };
static oly_owned *spare;
static int n_spare;
static atomic_uint_fast64_t n_values; /* ever created */

/* Keeps handles of traced arrays, which have no shards, for reuse. */
static bool keep_spare(oly_array x)
{
#ifdef __SANITIZE_ADDRESS__
    return x == NULL; /* under checkers: none, so that uses of freed handles are seen */
#endif
    if (x->room > 0 || n_spare == MOST_SPARE)
        return false;
    x->owned.next = spare;
    spare = &x->owned;
    n_spare++;
    return true;
}

/* By type and box: a donated buffer may be larger than its present contents. */
static size_t bytes_of(oly_array x, int s)
{
    int position;
    oly_box b = oly_array_box(x, s, &position);
    return (size_t)oly_box_count(&b) * oly_dtype_size(x->type.dtype);
}

oly_status oly_array_host(oly_array x, int s, const void **memory)
{
    size_t room = (size_t)x->n_shards * sizeof *x->host;
    *memory = x->shard[s]->data;
    if (oly_platform_get()->host_memory)
        return OLY_OK;
    if (!x->host && !(x->host = oly_calloc((size_t)x->n_shards, sizeof *x->host)))
        return oly_out_of_memory(room, "copies of an array's shards");
    if (!x->host[s])
        OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes_of(x, s), &x->host[s]));
    *memory = x->host[s];
    return OLY_OK;
}

static void drop_host(oly_array x)
{
    for (int s = 0; s < x->n_shards; s++)
        if (x->host[s])
            oly_buffer_unmap(x->shard[s], OLY_ACCESS_READ, bytes_of(x, s), x->host[s]);
    oly_release(x->host);
    x->host = NULL;
}

static void destroy(oly_owned *object)
{
    oly_array x = (oly_array)object, oldest = NULL;
    if (x->host)
        drop_host(x);
    oly_buffers_drop(x->n_shards, x->shard);
    x->n_shards = 0;
    x->deleted = true;
    x->owned = (oly_owned){.tag = OLY_DEAD_TAG(OLY_HANDLE_ARRAY)};
    oly_short_lock_take(&dead_lock);
    if (n_dead - n_revived == MOST_DEAD)
        oldest = dead[n_revived++ % MOST_DEAD];
    dead[n_dead++ % MOST_DEAD] = x;
    if (oldest && keep_spare(oldest))
        oldest = NULL;
    oly_short_lock_give(&dead_lock);
    oly_bury(oldest);
}

/* Reuses the oldest dead handle if enough others are kept and it has room for the shards. */
static oly_array revive(int n_shards)
{
    oly_array x = NULL;
    oly_short_lock_take(&dead_lock);
    if (n_dead - n_revived > LEAST_DEAD && dead[n_revived % MOST_DEAD]->room >= n_shards)
        x = dead[n_revived++ % MOST_DEAD];
    if (!x && n_shards == 0 && spare) {
        x = (oly_array)spare;
        spare = spare->next;
        n_spare--;
    }
    oly_short_lock_give(&dead_lock);
    return x;
}

void oly_array_forget_dead(void)
{
    while (n_revived != n_dead)
        oly_bury(dead[n_revived++ % MOST_DEAD]);
    for (oly_owned *next; spare; spare = next) {
        next = spare->next;
        oly_release(spare);
    }
    n_spare = 0;
}

oly_status oly_null_handle(void)
{
    if (oly_kept_status() != OLY_OK)
        return oly_kept_status();
    return oly_raise(oly_fail(OLY_INVALID, "an array or function given to this call is NULL; initialise it first"));
}

oly_array oly_null_array(void)
{
    oly_null_handle();
    return NULL;
}

static oly_array allocate(int n_shards)
{
    size_t bytes = sizeof(struct oly_array_impl) + sizeof(oly_buffer *) * (size_t)n_shards;
    oly_array x = revive(n_shards);
    int room = x ? x->room : n_shards;
    if (x)
        memset(x, 0, bytes);
    else if (!(x = oly_calloc(1, bytes))) {
        oly_out_of_memory(bytes, "an array handle");
        return NULL;
    }
    x->owned.tag = OLY_TAG(OLY_HANDLE_ARRAY);
    x->n_shards = n_shards;
    x->room = room;
    return x;
}

static oly_array adopt(oly_array x)
{
    if (x && oly_scope_adopt(&x->owned, destroy) != OLY_OK) {
        destroy(&x->owned);
        return NULL;
    }
    return x;
}

static uint64_t next_value(void)
{
    return atomic_fetch_add_explicit(&n_values, 1, memory_order_relaxed) + 1;
}

oly_array oly_array_loose(const oly_type *type, oly_sharding sharding, bool committed, int n_shards)
{
    oly_array x = allocate(n_shards);
    if (!x)
        return NULL;
    x->type = *type;
    oly_type_set_sharding(&x->type, sharding);
    x->sharding = sharding;
    x->committed = committed;
    x->identity.value = next_value();
    x->device = -1;
    return x;
}

oly_array oly_array_new(const oly_type *type, oly_sharding sharding, bool committed, int n_shards)
{
    return adopt(oly_array_loose(type, sharding, committed, n_shards));
}

void oly_array_renew(oly_array x)
{
    if (x->host)
        drop_host(x);
    oly_buffers_drop(x->n_shards, x->shard);
    x->identity = (oly_identity){.value = next_value()};
    x->device = -1;
}

oly_array oly_array_traced(const oly_graph *g, oly_node *node)
{
    oly_array x = allocate(0);
    if (!x)
        return NULL;
    x->type = node->type;
    x->graph = g;
    x->node = node;
    x->device = -1;
    return adopt(x);
}

oly_array oly_array_hold(oly_array x)
{
    oly_array y = allocate(x->n_shards);
    if (!y)
        return NULL;
    oly_owned fresh = y->owned;
    int room = y->room;
    memcpy(y, x, sizeof *x + sizeof(oly_buffer *) * (size_t)x->n_shards);
    y->owned = fresh;
    y->room = room;
    y->host = NULL;
    oly_pool_lock();
    for (int s = 0; s < y->n_shards; s++)
        oly_buffer_hold_locked(y->shard[s]);
    oly_pool_unlock();
    return y;
}

void oly_array_release(oly_array x)
{
    if (x)
        destroy(&x->owned);
}

oly_array oly_array_share(oly_array x)
{
    return adopt(oly_array_hold(x));
}

oly_status oly_array_readable(oly_array x)
{
    if (x->graph && !x->deleted)
        return oly_fail(
            OLY_TRACE,
            "the value of a traced %s cannot be read: the function is being recorded, nothing is computed yet; "
            "return it from the function and read it there",
            oly_type_short(&x->type));
    if (x->graph)
        return oly_fail(
            OLY_TRACE,
            "a traced %s is used after its function has ended or after oly_free; only what the function stores in "
            "out[] lives on",
            oly_type_short(&x->type));
    if (x->deleted)
        return x->donated.file
                   ? oly_fail(OLY_DELETED,
                              "array has been deleted with shape=%s; it was donated to the call in %s:%d, where a "
                              "variable that held it was named as an output: begin outputs as NULL to keep it",
                              oly_type_short(&x->type), x->donated.file, x->donated.line)
                   : oly_fail(OLY_DELETED, "array has been deleted with shape=%s; it was freed, or its scope has ended",
                              oly_type_short(&x->type));
    return OLY_OK;
}

void oly_array_wait(oly_array x)
{
    if (x->device >= 0) {
        oly_queue_wait(x->device, x->moment);
        x->device = -1;
    }
}

oly_box oly_array_box(oly_array x, int s, int *position)
{
    const int *positions;
    oly_mesh_local_positions(x->sharding->mesh, &positions);
    oly_layout l = oly_layout_canonical(x->sharding, x->type.rank, x->type.shape);
    *position = positions[s];
    return oly_layout_shard(&l, positions[s]);
}

/* -- public -------------------------------------------------------------------------------------------------------------- */

int oly_rank(oly_array x)
{
    OLY_ENTER(-1);
    if (oly_need_array(x) != OLY_OK)
        return -1;
    return x ? x->type.rank : -1;
}
const int64_t *oly_shape(oly_array x)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return x ? x->type.shape : NULL;
}
int64_t oly_size(oly_array x)
{
    OLY_ENTER(0);
    if (oly_need_array(x) != OLY_OK)
        return 0;
    return x ? oly_type_size(&x->type) : 0;
}
oly_dtype oly_dtype_of(oly_array x)
{
    OLY_ENTER(OLY_FLOAT32);
    if (oly_need_array(x) != OLY_OK)
        return OLY_FLOAT32;
    return x ? x->type.dtype : OLY_FLOAT32;
}
oly_sharding oly_sharding_of(oly_array x)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return x ? x->sharding : NULL;
}
bool oly_is_committed(oly_array x)
{
    OLY_ENTER(false);
    if (oly_need_array(x) != OLY_OK)
        return false;
    return x && x->committed;
}

int64_t(oly_dim)(oly_array x, int dimension)
{
    OLY_ENTER(0);
    if (oly_need_array(x) != OLY_OK)
        return 0;
    int d = dimension < 0 ? dimension + x->type.rank : dimension;
    if (d < 0 || d >= x->type.rank) {
        oly_raise(oly_fail(OLY_INVALID, "dimension %d does not exist in %s", dimension, oly_type_short(&x->type)));
        return 0;
    }
    return x->type.shape[d];
}

bool oly_is_fully_addressable(oly_array x)
{
    OLY_ENTER(false);
    if (oly_need_array(x) != OLY_OK)
        return false;
    return x && !x->graph && (x->sharding->mesh->everywhere || x->n_shards == x->sharding->mesh->n_devices);
}

int oly_typeof(oly_array x, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_array_or_null(x) != OLY_OK)
        return -1;
    oly_text t = {0};
    if (x)
        oly_type_text(&t, &x->type);
    else
        oly_text_add(&t, "None");
    return oly_text_take(&t, buffer, size);
}

oly_array oly_keep(oly_array x)
{
    OLY_ENTER(NULL);
    if (oly_need_array_or_null(x) != OLY_OK || (x && x->deleted && oly_raise(oly_array_readable(x)) != OLY_OK))
        return NULL;
    if (x && x->owned.scope)
        oly_scope_move(&x->owned, oly_scope_outer(x->owned.scope));
    return x;
}

void oly_array_take_place(oly_array old, oly_array x)
{
    if (!old || old == x || !old->owned.scope)
        return;
    if (x)
        oly_scope_move(&x->owned, old->owned.scope);
    oly_scope_drop(&old->owned);
}

void oly_assign(oly_array *variable, oly_array x)
{
    OLY_ENTER();
    if (oly_need_array_or_null(x) != OLY_OK)
        return;
    if (!variable) {
        oly_raise(oly_fail(OLY_INVALID, "the address of the variable is NULL"));
        return;
    }
    oly_array old = *variable;
    if (oly_need_array_or_null(old) != OLY_OK)
        return;
    if (x && x->deleted && x != old) {
        oly_raise(oly_array_readable(x));
        return;
    }
    if (x && !old)
        oly_keep(x);
    oly_array_take_place(old, x);
    *variable = x;
}

void oly_free(oly_array x)
{
    OLY_ENTER();
    if (oly_need_array_or_null(x) != OLY_OK)
        return;
    if (x && x->owned.scope) /* otherwise it is dead already */
        oly_scope_drop(&x->owned);
}
