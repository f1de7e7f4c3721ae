/* SPDX-License-Identifier: BSD-3-Clause */
/* See value_store.h. */
#include "value_store.h"
#include "core/error.h"

kept_value *value_new(size_t bytes)
{
    kept_value *v = oly_calloc(1, sizeof *v + bytes);
    if (v)
        v->bytes = bytes;
    return v;
}

static size_t size_of(const kept_value *v)
{
    return sizeof *v + v->bytes;
}

static kept_value **bucket_of(const value_store *s, uint64_t id)
{
    return (kept_value **)&s->bucket[id % VALUE_BUCKETS];
}

static void take_out(value_store *s, kept_value *v)
{
    kept_value **at = bucket_of(s, v->id);
    while (*at != v)
        at = &(*at)->chained;
    *at = v->chained;
    *(v->newer ? &v->newer->older : &s->newest) = v->older;
    *(v->older ? &v->older->newer : &s->oldest) = v->newer;
    s->bytes -= size_of(v);
}

static void drop_old(value_store *s)
{
    for (kept_value *v = s->oldest, *newer; v != s->newest && s->bytes > s->most; v = newer) {
        newer = v->newer;
        if (v->uses)
            continue;
        take_out(s, v);
        value_store_note_dropped(s, v->id);
        oly_release(v);
    }
}

void value_store_put(value_store *s, kept_value *v)
{
    kept_value **bucket = bucket_of(s, v->id);
    v->chained = *bucket;
    *bucket = v;
    v->older = s->newest;
    v->newer = NULL;
    *(s->newest ? &s->newest->newer : &s->oldest) = v;
    s->newest = v;
    s->bytes += size_of(v);
    drop_old(s);
}

kept_value *value_store_find(const value_store *s, uint64_t id)
{
    kept_value *v = *bucket_of(s, id);
    while (v && v->id != id)
        v = v->chained;
    return v;
}

void value_store_note_dropped(value_store *s, uint64_t id)
{
    s->dropped[s->n_dropped++ % DROPPED_KNOWN] = id;
}

bool value_store_has_dropped(const value_store *s, uint64_t id)
{
    for (uint64_t k = 0; k < s->n_dropped && k < DROPPED_KNOWN; k++)
        if (s->dropped[k] == id)
            return true;
    return false;
}

void value_store_clear(value_store *s)
{
    while (s->newest) {
        kept_value *v = s->newest;
        take_out(s, v);
        if (!v->uses)
            oly_release(v);
    }
    s->n_dropped = 0;
}
