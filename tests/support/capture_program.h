/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs around loops that read views of captured arrays, for test_captures_random.c: compiled and call by
 * call. A program is its seed: each run draws the same numbers again, from shapes alone, and so makes the same
 * calls. */
#ifndef CAPTURE_PROGRAM_H
#define CAPTURE_PROGRAM_H
#include <olympus.h>

enum { CAPTURE_INPUTS = 5, CAPTURE_CARRIES = 3 };

typedef struct capture_input {
    oly_dtype dtype;
    int rank;
    int64_t shape[4];
} capture_input;

typedef struct capture_program {
    uint64_t seed;
    int n_in, n_out; /* n_out: how many of the inputs, from the first, the loops start from */
    capture_input input[CAPTURE_INPUTS];
    bool slope;    /* its derivative: the result is a number */
    bool plain;    /* call by call: loops are unrolled, nothing is traced */
    bool print;    /* prints the program */
    bool places;   /* adds constraints */
    oly_mesh mesh; /* its axis x has `parts` devices: for constraints, and for maps over devices */
    int parts;
} capture_program;

typedef struct capture_random {
    uint64_t state;
} capture_random;
int64_t capture_draw(capture_random *r, int64_t n);

void capture_program_make(capture_program *p, uint64_t seed);
/* An oly_function; user: the program. Results: n_out, or with `slope` one. */
void capture_program_run(const oly_array *in, oly_array *out, void *program);
#endif
