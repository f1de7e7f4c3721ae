/* Programs that read elements of neighbours: what tests/plan/test_halo.c runs. */
#ifndef HALO_PROGRAMS_H
#define HALO_PROGRAMS_H
#include <olympus.h>

enum { HALO_MOST_ARRAYS = 3 };

typedef struct halo_program {
    const char *name;
    oly_function function;
    int rank, n_in, n_out; /* all inputs have one shape */
    int least;             /* extents from which on it means something */
    int exchanges;         /* that one run may take at most */
    int times; /* the bytes are at most so many times those needed; 1: just those. 2: a value between two steps is read by its
                            * neighbours, too. It lies where its operand does, and every device computes its own part of
                            * it; what is needed of the operand alone would be less only if neighbours computed the
                            * elements in between, and those that settle at the results' own cuts, twice */
    int twice; /* elements that each device receives twice where one of two dimensions is not split: both ends of the
                            * rows that come from neighbours, which it wants beyond the other end as well */
    bool large_only; /* bytes count only where each device has two elements along every split dimension: with fewer, an
                            * element may be wanted from both sides, or the values between steps may not be split */
} halo_program;

extern const halo_program halo_programs[]; /* ends with a name NULL */
#endif
