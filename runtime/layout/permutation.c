/* SPDX-License-Identifier: BSD-3-Clause */
/* Interned permutations. See permutation.h. */
#include "layout/permutation.h"
#include "layout/intern.h"
#include "core/error.h"
#include "core/hash.h"
#include <string.h>

typedef struct permutation_entry {
    struct permutation_entry *next;
    oly_permutation_impl *permutation;
} permutation_entry;

static permutation_entry *permutations;

void oly_permutations_forget(void)
{
    while (permutations) {
        permutation_entry *e = permutations;
        permutations = e->next;
        oly_release(e->permutation);
        oly_release(e);
    }
}

static permutation_entry *add(uint64_t hash, int n, const int *source)
{
    permutation_entry *e = oly_calloc(1, sizeof *e);
    oly_permutation_impl *p = e ? oly_calloc(1, sizeof *p + sizeof *source * (size_t)n) : NULL;
    if (!p) {
        oly_release(e);
        return NULL;
    }
    p->hash = hash;
    p->n = n;
    memcpy(p->source, source, sizeof *source * (size_t)n);
    *e = (permutation_entry){permutations, p};
    permutations = e;
    return e;
}

oly_permutation oly_permutation_intern(int n, const int *source)
{
    uint64_t hash = oly_hash(oly_hash_mix(17, (uint64_t)n), source, sizeof *source * (size_t)n);
    oly_intern_lock();
    permutation_entry *e = permutations;
    while (e && !(e->permutation->hash == hash && e->permutation->n == n &&
                  memcmp(e->permutation->source, source, sizeof *source * (size_t)n) == 0))
        e = e->next;
    if (!e)
        e = add(hash, n, source);
    oly_intern_unlock();
    if (!e)
        oly_out_of_memory(sizeof *source * (size_t)n, "a permutation");
    return e ? e->permutation : NULL;
}

static oly_permutation make_inverse(oly_permutation p)
{
    int *source = oly_malloc(sizeof *source * (size_t)(p->n + 1));
    oly_permutation inverse = NULL;
    if (!source) {
        oly_out_of_memory(sizeof *source * (size_t)p->n, "a permutation");
        return NULL;
    }
    for (int k = 0; k < p->n; k++)
        source[k] = -1;
    for (int k = 0; k < p->n; k++)
        if (p->source[k] >= 0)
            source[p->source[k]] = k;
    inverse = oly_permutation_intern(p->n, source);
    oly_release(source);
    return inverse;
}

oly_permutation oly_permutation_inverse(oly_permutation p)
{
    oly_permutation inverse = p->inverse;
    if (!inverse && (inverse = make_inverse(p)))
        ((oly_permutation_impl *)(uintptr_t)p)->inverse = inverse; /* all permutations have the same lifetime */
    return inverse;
}
