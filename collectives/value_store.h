/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetched values by id; the oldest are dropped beyond a limit. Private to values.c, which holds its lock
 * around every call. */
#ifndef VALUE_STORE_H
#define VALUE_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kept_value {
    struct kept_value *newer, *older, *chained;
    int uses; /* by MPI: not dropped while in use */
    /* while it is sent: */
    uint64_t id;
    uint64_t push; /* number of the push, from 1; 0: it was not pushed */
    uint64_t bytes;
    char data[];
} kept_value;
enum { VALUE_HEAD = 3 * sizeof(uint64_t) };

enum { VALUE_BUCKETS = 4096, DROPPED_KNOWN = 4096 };
typedef struct value_store {
    kept_value *newest, *oldest; /* owned */
    kept_value *bucket[VALUE_BUCKETS];
    size_t bytes, most; /* of all; the newest stays, however large it is */
    uint64_t dropped[DROPPED_KNOWN], n_dropped;
} value_store;

/* Owned by the caller until it is put into a store. NULL: out of memory. */
kept_value *value_new(size_t bytes);
void value_store_put(value_store *s, kept_value *v);
kept_value *value_store_find(const value_store *s, uint64_t id); /* the newest; NULL: none */
void value_store_note_dropped(value_store *s, uint64_t id);      /* one that could not be kept */
bool value_store_has_dropped(const value_store *s, uint64_t id); /* among the last DROPPED_KNOWN */
/* Values that MPI still uses are left to it. */
void value_store_clear(value_store *s);
#endif
