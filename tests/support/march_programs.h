/* Loop bodies over one or several fields, as users write them; for test_march.c. */
#ifndef MARCH_PROGRAMS_H
#define MARCH_PROGRAMS_H
#include <olympus.h>

enum { MARCH_MOST = 4, MARCH_PROGRAMS = 40 }; /* at most */

typedef struct march_program {
    const char *name;
    int rank, n_fields, n_fixed; /* fixed: arrays from outside that the body reads, in march_fixed */
    int reach;                   /* of a step, in elements */
    oly_loop_body body;
    bool apart; /* its steps communicate one by one: it is none of the loops that advance many at once */
} march_program;
extern const march_program march_programs[]; /* ends with a row without a name */
extern oly_array march_fixed[MARCH_MOST];
#endif
