/* How tests of the public functions begin and end, and how they look at results. For tests that are run with 8 devices. */
#ifndef CHECK_SESSION_H
#define CHECK_SESSION_H
#include "check.h"
#include <olympus.h>

/* -- set-ups and tear-downs of cmocka ---------------------------------------------------------------------------------- */
int check_open(void **state);       /* oly_init; errors end the job; any number of devices */
int check_close(void **state);      /* oly_finalize */
int check_start(void **state);      /* oly_init; errors are returned; fails unless there are 8 devices */
int check_start_wide(void **state); /* oly_init; 64-bit types are on; errors end the job */
int check_finish(void **state);     /* forgets errors; oly_finalize */

/* -- sessions inside a test -------------------------------------------------------------------------------------------- */
void check_begin(void); /* oly_init; errors are returned. Ends what a test that failed has left open */
void check_end(void);   /* there was no error; oly_finalize */

/* The same on a machine that is not there, "12500x8". */
void check_simulate(const char *size);
void check_simulate_end(void);

/* The call gives NULL, this status, and a message with this text; the error is forgotten. */
#define CHECK_REFUSED(call, status, text) check_refused((call), (status), (text), #call)
void check_refused(oly_array result, oly_status status, const char *text, const char *call);

/* n elements in row-major order, near `wanted` (of 0: equal), gathered from all processes. */
void check_near(oly_array got, int n, const double *wanted);
#define CHECK_NEAR(got, ...)                                                                                           \
    check_near(got, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})
/* The type of a value as oly_typeof writes it. */
void check_type(oly_array x, const char *wanted);
#endif
