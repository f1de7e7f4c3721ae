/* SPDX-License-Identifier: BSD-3-Clause */
/* Caches of compiled calls, by signature. Bounded: beyond OLYMPUS_PLAN_CACHE entries the least recently used goes. Each function has one,
 * eager calls share one. Private to runtime/array. */
#ifndef OLY_ARRAY_PLAN_CACHE_H
#define OLY_ARRAY_PLAN_CACHE_H
#include "array/array.h"

typedef struct oly_compiled oly_compiled;

/* In every entry. */
typedef struct oly_cached {
    oly_compiled *next;          /* of the same bucket */
    oly_compiled *newer, *older; /* in the order of use */
    uint64_t hash;
    size_t key_bytes;
    char *key; /* owned */
} oly_cached;

typedef struct oly_compiled_cache {
    int count, buckets;
    oly_compiled **bucket;
    oly_compiled *newest, *oldest;
    oly_compiled *latest[2]; /* tried first, without hashing: most calls repeat the last one. The two newest, or NULL */
} oly_compiled_cache;

/* A signature under construction; small ones are on the stack. Always ends with oly_key_end. */
typedef struct oly_key {
    size_t bytes, room;
    bool overflow; /* out of memory: matches nothing */
    char *data, few[2048];
} oly_key;
void oly_key_begin(oly_key *k); /* begins with the modes that types and plans depend on */
void oly_key_add(oly_key *k, const void *data, size_t bytes);
void oly_key_add_array(oly_key *k, oly_array x);
void oly_key_end(oly_key *k);

oly_compiled *oly_cache_find(oly_compiled_cache *c, const oly_key *k);
/* Adds it (taken over, also after a failure). */
oly_status oly_cache_add(oly_compiled_cache *c, const oly_key *k, oly_compiled *compiled);
void oly_cache_free(oly_compiled_cache *c);
#endif
