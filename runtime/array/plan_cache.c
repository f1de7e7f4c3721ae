/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches of compiled calls. See plan_cache.h. */
#include "array/compiled.h"
#include "array/arguments.h"
#include "core/hash.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <olympus/transform.h>
#include <string.h>

static struct {
    int64_t plans, hits, made, dropped;
} counted; /* over all caches */

/* -- signatures ---------------------------------------------------------------------------------------------------- */

void oly_key_begin(oly_key *k)
{
    struct {
        oly_mesh uncommitted,
            context;          /* where work without committed arrays runs; the sharding of values made without one */
        int64_t wide, unused; /* so that there are no bytes between members */
        oly_optimisations off;
    } head = {oly_mesh_uncommitted(), oly_mesh_context(), oly_types_are_wide(), 0, oly_disabled_here};
    k->bytes = 0;
    k->overflow = !head.uncommitted;
    k->data = k->few;
    k->room = sizeof k->few;
    oly_key_add(k, &head, sizeof head);
}

static bool grow_key(oly_key *k, size_t bytes)
{
    size_t room = 2 * (k->room + bytes);
    char *data = k->overflow ? NULL : oly_malloc(room);
    k->overflow = !data;
    if (!data)
        return false;
    memcpy(data, k->data, k->bytes);
    oly_key_end(k);
    k->data = data;
    k->room = room;
    return true;
}

void oly_key_end(oly_key *k)
{
    if (k->data != k->few)
        oly_release(k->data);
    k->data = k->few;
}

void oly_key_add(oly_key *k, const void *data, size_t bytes)
{
    if (k->bytes + bytes > k->room && !grow_key(k, bytes))
        return;
    memcpy(k->data + k->bytes, data, bytes);
    k->bytes += bytes;
}

void oly_key_add_array(oly_key *k, oly_array x)
{
    struct {
        oly_sharding sharding;
        int32_t dtype, weak, rank, committed;
    } head = {x->sharding, x->type.dtype, x->type.weak, x->type.rank, x->committed};
    oly_key_add(k, &head, sizeof head);
    oly_key_add(k, x->type.shape, sizeof(int64_t) * (size_t)x->type.rank);
}

static bool has_key(const oly_compiled *e, const oly_key *k)
{
    return e && e->cached.key_bytes == k->bytes && memcmp(e->cached.key, k->data, k->bytes) == 0;
}

/* -- entries ------------------------------------------------------------------------------------------------------- */

static void unlink_use(oly_compiled_cache *c, oly_compiled *e)
{
    oly_cached *x = &e->cached;
    *(x->newer ? &x->newer->cached.older : &c->newest) = x->older;
    *(x->older ? &x->older->cached.newer : &c->oldest) = x->newer;
}

static void link_newest(oly_compiled_cache *c, oly_compiled *e)
{
    e->cached.newer = NULL;
    e->cached.older = c->newest;
    *(c->newest ? &c->newest->cached.newer : &c->oldest) = e;
    c->newest = e;
    c->latest[1] = c->latest[0];
    c->latest[0] = e;
}

oly_compiled *oly_cache_find(oly_compiled_cache *c, const oly_key *k)
{
    if (!c->buckets || k->overflow)
        return NULL;
    counted.hits++; /* taken back below */
    for (int n = 0; n < 2; n++)
        if (has_key(c->latest[n], k))
            return c->latest[n];
    uint64_t h = oly_hash(5, k->data, k->bytes);
    for (oly_compiled *e = c->bucket[h % (uint64_t)c->buckets]; e; e = e->cached.next)
        if (e->cached.hash == h && has_key(e, k)) {
            unlink_use(c, e);
            link_newest(c, e);
            return e;
        }
    counted.hits--;
    return NULL;
}

static oly_status grow(oly_compiled_cache *c)
{
    int buckets = c->buckets ? 4 * c->buckets : 64;
    oly_compiled **bucket = oly_calloc((size_t)buckets, sizeof *bucket);
    if (!bucket)
        return oly_out_of_memory(sizeof *bucket * (size_t)buckets, "the plan cache");
    for (int b = 0; b < c->buckets; b++)
        while (c->bucket[b]) {
            oly_compiled *e = c->bucket[b];
            c->bucket[b] = e->cached.next;
            e->cached.next = bucket[e->cached.hash % (uint64_t)buckets];
            bucket[e->cached.hash % (uint64_t)buckets] = e;
        }
    oly_release(c->bucket);
    c->bucket = bucket;
    c->buckets = buckets;
    return OLY_OK;
}

static void drop(oly_compiled_cache *c, oly_compiled *e)
{
    oly_compiled **at = &c->bucket[e->cached.hash % (uint64_t)c->buckets];
    while (*at != e)
        at = &(*at)->cached.next;
    *at = e->cached.next;
    unlink_use(c, e);
    for (int n = 0; n < 2; n++)
        if (c->latest[n] == e)
            c->latest[n] = NULL;
    c->count--;
    counted.plans--;
    oly_compiled_free(e);
}

oly_status oly_cache_add(oly_compiled_cache *c, const oly_key *k, oly_compiled *compiled)
{
    while (c->count >= oly_option.plan_cache) {
        drop(c, c->oldest);
        counted.dropped++;
    }
    oly_status st = k->overflow ? oly_out_of_memory(k->room, "the plan cache") : OLY_OK;
    if (st == OLY_OK && c->count >= c->buckets)
        st = grow(c);
    oly_cached *x = &compiled->cached;
    x->key = st == OLY_OK ? oly_malloc(k->bytes + 1) : NULL;
    if (!x->key) {
        oly_compiled_free(compiled);
        return st == OLY_OK ? oly_out_of_memory(k->bytes, "the plan cache") : st;
    }
    memcpy(x->key, k->data, k->bytes);
    x->key_bytes = k->bytes;
    x->hash = oly_hash(5, k->data, k->bytes);
    oly_compiled **b = &c->bucket[x->hash % (uint64_t)c->buckets];
    x->next = *b;
    *b = compiled;
    link_newest(c, compiled);
    c->count++;
    counted.plans++;
    counted.made++;
    return OLY_OK;
}

void oly_cache_free(oly_compiled_cache *c)
{
    while (c->oldest)
        drop(c, c->oldest);
    oly_release(c->bucket);
    *c = (oly_compiled_cache){0};
}

/* -- public -------------------------------------------------------------------------------------------------------- */

oly_status oly_plan_cache_state(oly_plan_cache *state)
{
    OLY_ENTER(OLY_STATE);
    if (!state)
        return oly_raise(oly_fail(OLY_INVALID, "the address for the state of the plan caches is NULL"));
    *state = (oly_plan_cache){.plans = counted.plans,
                              .most = oly_option.plan_cache,
                              .hits = counted.hits,
                              .made = counted.made,
                              .dropped = counted.dropped};
    return OLY_OK;
}
