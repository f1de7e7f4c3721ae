/* SPDX-License-Identifier: BSD-3-Clause */
/* A point in a random program (capture_program.h) and the values that are computed there. Shared by capture_program.c
 * and capture_values.c. */
#ifndef CAPTURE_VALUES_H
#define CAPTURE_VALUES_H
#include "capture_program.h"

enum { MOST_SEEN = 14, MOST_RANK = 4 };

/* A point in the program where calls are made: what they may read. */
typedef struct site {
    const capture_program *p;
    capture_random random;
    int depth; /* nesting depth of loops, branches and maps */
    int n;
    oly_array seen[MOST_SEEN];
    int n_carry;    /* seen[0..n_carry-1] change in the enclosing loop */
    oly_array step; /* the counter; NULL: none */
    bool rolls;     /* near: dimensions may be periodic */
    bool manual;    /* in the program of one device */
    bool near;      /* reads only nearby elements, as loops over fields do */
} site;

/* The context of the function of a loop, a branch or a map: the same calls from the same seed whenever it runs. */
typedef struct inner {
    const site *outer;
    uint64_t seed;
    int n_outer; /* how many of outer->seen existed */
    int64_t count;
    bool conditional, near, rolls, watches, manual;
    bool rounds; /* keeps numbers small integers */
    oly_array most,
        neighbour; /* in a program of one device, call by call: over all devices; the value from the previous one */
} inner;

static inline int64_t draw(site *s, int64_t n)
{
    return capture_draw(&s->random, n);
}

static inline bool one_in(site *s, int64_t n)
{
    return draw(s, n) == 0;
}

/* -- capture_values.c -- */
void capture_names_begin(bool print);
int capture_name_of(oly_array x);
/* Prints what x is, if printing is on; returns x. */
oly_array capture_note(const site *s, oly_array x, const char *format, ...) __attribute__((format(printf, 3, 4)));
void capture_say(const site *s, const char *text, int64_t number);
/* A slice of x, reversed, shifted or repeated, that has this shape; NULL: impossible. */
oly_array capture_fitted(site *s, oly_array x, int rank, const int64_t *shape);
oly_array capture_as_number(site *s, oly_array x);
oly_array capture_any_seen(site *s);
/* The next value of carry x, of the same type. */
oly_array capture_next_of(site *s, oly_array x);

/* -- capture_program.c: what a branch, each element of a batch, a called function, and each device compute from x -- */
oly_array capture_branched(site *s, oly_array x);
oly_array capture_mapped(site *s, oly_array x);
oly_array capture_called(site *s, oly_array x);
oly_array capture_shared_out(site *s, oly_array x);
#endif
