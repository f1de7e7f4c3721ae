/* SPDX-License-Identifier: BSD-3-Clause */
/* Setup, teardown and checks of results for tests of the public functions that are run with 8 devices. */
#ifndef CHECK_SESSION_H
#define CHECK_SESSION_H
#include "check.h"
#include <olympus.h>

/* -- setups and teardowns of cmocka -------------------------------------------------------------------------------- */
int check_open(void **state);       /* oly_init; errors end the job; any number of devices */
int check_close(void **state);      /* oly_finalize */
int check_start(void **state);      /* oly_init; errors are returned; fails unless there are 8 devices */
int check_start_wide(void **state); /* oly_init; 64-bit types are on; errors end the job */
int check_finish(void **state);     /* clears errors; oly_finalize */

/* -- sessions inside a test -------------------------------------------------------------------------------------------- */
void check_begin(void); /* oly_init; errors are returned. Ends what a failed test has left open */
void check_end(void);   /* checks that there was no error; oly_finalize */

/* The same on a simulated machine, "12500x8". */
void check_simulate(const char *size);
void check_simulate_end(void);

/* Checks that the call returns NULL, this status, and a message with this text; clears the error. */
#define CHECK_REFUSED(call, status, text) check_refused((call), (status), (text), #call)
void check_refused(oly_array result, oly_status status, const char *text, const char *call);

/* Checks n elements in row-major order, gathered from all processes, against `wanted` (0: exactly). */
void check_near(oly_array got, int n, const double *wanted);
#define CHECK_NEAR(got, ...)                                                                                           \
    check_near(got, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})
/* The elements of n values one after the other, gathered from all processes: how many bytes, at most `most`. */
size_t check_bytes_of(int n, const oly_array *x, char *bytes, size_t most);
/* Checks the type of a value as oly_typeof prints it. */
void check_type(oly_array x, const char *wanted);
#endif
