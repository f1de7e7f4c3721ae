/* A place in a random program (capture_program.h) and the values that are made there. Between capture_program.c and
 * capture_values.c. */
#ifndef CAPTURE_VALUES_H
#define CAPTURE_VALUES_H
#include "capture_program.h"

enum { MOST_SEEN = 14, MOST_RANK = 4 };

/* A place in the program where calls are made: what they may read. */
typedef struct site {
    const capture_program *p;
    capture_random random;
    int depth; /* of loops, branches and maps around */
    int n;
    oly_array seen[MOST_SEEN];
    int n_carry;    /* seen[0..n_carry-1] change in the loop around */
    oly_array step; /* the counter; NULL: none */
    bool rolls;     /* near: dimensions may go round */
    bool manual;    /* in the program of one device */
    bool near;      /* reads elements near by only, as loops over fields do */
} site;

/* What the function of a loop, a branch or a map is given: the same calls from the same seed whenever it runs. */
typedef struct inner {
    const site *outer;
    uint64_t seed;
    int n_outer; /* of outer->seen, what was there */
    int64_t count;
    bool conditional, near, rolls, watches, manual;
    bool rounds; /* keeps numbers small, and whole */
    oly_array most,
        neighbour; /* in a program of one device, call by call: over all devices; what comes from the one before */
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
/* Prints what x is, if it is to be printed; gives x back. */
oly_array capture_note(const site *s, oly_array x, const char *format, ...) __attribute__((format(printf, 3, 4)));
void capture_say(const site *s, const char *text, int64_t number);
/* Some part of x, turned, moved or repeated, that has this shape; NULL: there is none. */
oly_array capture_fitted(site *s, oly_array x, int rank, const int64_t *shape);
oly_array capture_as_number(site *s, oly_array x);
oly_array capture_any_seen(site *s);
/* What carry x becomes: of the same type. */
oly_array capture_next_of(site *s, oly_array x);

/* -- capture_program.c: what a branch, each element of a batch, a function called, and each device make of x -- */
oly_array capture_branched(site *s, oly_array x);
oly_array capture_mapped(site *s, oly_array x);
oly_array capture_called(site *s, oly_array x);
oly_array capture_shared_out(site *s, oly_array x);
#endif
