/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of names and values in a hash table. See pairs.h. */
#include "pairs.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    struct pair *next;
    char *value; /* in the same block, behind the key */
    char key[];
} pair;

enum { CHAINS = 1 << 14 };
static pair *chains[CHAINS];
static int n_pairs;

static pair **chain_of(const char *key)
{
    uint32_t hash = 2166136261u;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return &chains[hash % CHAINS];
}

bool pairs_put(const char *key, const char *value)
{
    size_t n = strlen(key) + 1, bytes = strlen(value) + 1;
    pair *p = n_pairs < MOST_PAIRS ? malloc(sizeof *p + n + bytes) : NULL, **chain = chain_of(key);
    if (!p)
        return false;
    memcpy(p->key, key, n);
    p->value = memcpy(p->key + n, value, bytes);
    p->next = *chain; /* the last one put is found first */
    *chain = p;
    n_pairs++;
    return true;
}

const char *pairs_get(const char *key)
{
    for (const pair *p = *chain_of(key); p; p = p->next)
        if (strcmp(p->key, key) == 0)
            return p->value;
    return NULL;
}
