/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that read elements of neighbours, for tests/plan/test_halo.c. */
#ifndef HALO_PROGRAMS_H
#define HALO_PROGRAMS_H
#include <olympus.h>

enum { HALO_MOST_ARRAYS = 3 };

typedef struct halo_program {
    const char *name;
    oly_function function;
    int rank, n_in, n_out; /* all inputs have one shape */
    int least;             /* smallest useful extents */
    int exchanges;         /* that one run may take at most */
    /* largest ratio of the bytes to those needed; 1: exactly those. 2: a value between two steps is read by its
     * neighbours, too. It is placed like its operand, and every device computes its own part of it; fewer bytes
     * would suffice only if neighbours computed the elements in between, and those next to the results' own cuts,
     * redundantly */
    int times;
    /* elements that each device receives twice where one of two dimensions is not split: both ends of the rows that
     * come from neighbours, which it needs beyond the other end as well */
    int twice;
    /* bytes are checked only where each device has two elements along every split dimension: with fewer, an element
     * may be needed from both sides, or the values between steps may not be split */
    bool large_only;
} halo_program;

extern const halo_program halo_programs[]; /* ends with a name NULL */
#endif
