/* SPDX-License-Identifier: BSD-3-Clause */
/* Interned texts: notations that programs pass repeatedly. See intern_text.h. */
#include "core/intern_text.h"
#include "core/error.h"
#include "core/hash.h"
#include <pthread.h>

typedef struct entry {
    struct entry *next;
    char text[];
} entry;

enum { BUCKETS = 256 };
static entry *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *oly_intern_text(const char *text)
{
    entry **bucket = &buckets[oly_hash_text(3, text) % BUCKETS], *e;
    pthread_mutex_lock(&lock);
    for (e = *bucket; e && strcmp(e->text, text) != 0;)
        e = e->next;
    size_t bytes = strlen(text) + 1;
    if (!e && (e = oly_malloc(sizeof *e + bytes))) {
        memcpy(e->text, text, bytes);
        e->next = *bucket;
        *bucket = e;
    }
    pthread_mutex_unlock(&lock);
    if (e)
        return e->text;
    oly_out_of_memory(bytes, "a notation");
    return NULL;
}
