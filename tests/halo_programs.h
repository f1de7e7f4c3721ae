/* Programs that read elements of neighbours: what tests/test_halo.c runs. */
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
    int times; /* the bytes are at most so many times those needed; 1: just those. 2: values between two steps move,
                            * too, or an element is wanted on both ends of a dimension that is not split */
    bool large_only; /* bytes count only where each device has two elements along every split dimension: with fewer, an
                            * element may be wanted from both sides, or the values between steps may not be split */
} halo_program;

extern const halo_program halo_programs[]; /* ends with a name NULL */
#endif
