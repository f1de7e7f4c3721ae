/* SPDX-License-Identifier: BSD-3-Clause */
/* Random bodies of steps over fields: cyclic shifts, updates, padding, concatenations, masks and products. For the tests
 * of loops over fields and of field regions. */
#ifndef RANDOM_FIELDS_H
#define RANDOM_FIELDS_H
#include <olympus.h>
#include <stddef.h>

enum { MOST_FIELDS = 3 };

typedef struct random_case {
    unsigned seed, state;
    int n_fields, n_operations, rank, steps;
    bool staggered, is_long; /* is_long: many operations, most of them on recent values at the same element */
    int64_t shape[MOST_FIELDS][2];
} random_case;

int random_case_draw(random_case *c, int64_t n);
/* Small fields; staggered: of shapes that differ by one or two elements. */
random_case random_case_of(int number, bool staggered);
/* With many operations. */
random_case random_case_long(int number);
/* A step of the fields, for oly_fori. Recorded alike every time: it starts from the case's seed. */
void random_case_body(oly_array i, oly_array *carry, void *user);
size_t random_case_count(const random_case *c, int field);
oly_array random_case_start(const random_case *c, int field);
#endif
