/* SPDX-License-Identifier: BSD-3-Clause */
/* Loop bodies over one or several fields, as users write them; for test_time_tiling.c. */
#ifndef TIME_TILING_PROGRAMS_H
#define TIME_TILING_PROGRAMS_H
#include <olympus.h>

enum { TIME_TILING_MOST = 4, TIME_TILING_PROGRAMS = 40 }; /* at most */

typedef struct time_tiling_program {
    const char *name;
    int rank, n_fields, n_fixed; /* fixed: captured arrays that the body reads, in time_tiling_fixed */
    int reach;                   /* of a step, in elements */
    oly_loop_body body;
    bool apart; /* its steps communicate one by one: it is not time-tiled */
} time_tiling_program;
extern const time_tiling_program time_tiling_programs[]; /* ends with a row without a name */
extern oly_array time_tiling_fixed[TIME_TILING_MOST];
#endif
