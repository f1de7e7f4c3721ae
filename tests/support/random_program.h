/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs over the public operations: what a program is, making one from a seed, running it on any inputs,
 * printing it as C. Used by test_random_programs.c. Every rank makes the same programs. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H
#include "check_element.h"
#include <olympus.h>
#include <stdio.h>

enum { MOST_VALUES = 48, MOST_INPUTS = 6, MOST_LOOP_STEPS = 3 };

typedef enum kind {
    MAKE_INPUT,
    MAKE_ARANGE,
    APPLY_ONE,    /* row of the table of one operand */
    APPLY_TWO,    /* row of the table of two operands */
    APPLY_NUMBER, /* the same with a C number as the second */
    APPLY_WHERE,
    APPLY_CONVERT,
    APPLY_REDUCE, /* row of the table of reductions */
    APPLY_MATMUL,
    APPLY_DOT,
    APPLY_RESHAPE,
    APPLY_TRANSPOSE,
    APPLY_BROADCAST,
    APPLY_SLICE,
    APPLY_UPDATE, /* with an array */
    APPLY_UPDATE_NUMBER,
    APPLY_CONCATENATE,
    APPLY_REARRANGE, /* random_rearrange.c; row says which */
    APPLY_PLACE,
    APPLY_LOOP,
    N_KINDS
} kind;

/* One call; its result is the value with the same number. */
typedef struct instruction {
    kind kind;
    int row, n_in, in[3];
    double number, imaginary;
    oly_dtype dtype;
    int rank; /* reshape, broadcast, inputs */
    int64_t shape[OLY_MAX_RANK];
    int n_axes, axes[OLY_MAX_RANK], dimension;
    bool all_axes, keepdims;
    char slices[120];
    oly_sharding sharding; /* place; of an input: NULL is uncommitted */
    int times, n_steps, step[MOST_LOOP_STEPS];
} instruction;

/* What an error of the operand does to the result. */
typedef enum spread { KEEPS_ERROR, BOUNDED_BY_ONE, NEEDS_EXACT, NEEDS_SMALL } spread;
typedef struct call_of_one {
    const char *name;
    oly_array (*call)(oly_operand x);
    spread spread;
} call_of_one;
enum { N_ONES = 12 };
extern const call_of_one random_ones[N_ONES];

typedef enum growth { ADDS, MULTIPLIES, CHOOSES, EXACT_ONLY, EXACT_POWER } growth;
typedef struct call_of_two {
    const char *name;
    oly_array (*call)(oly_operand x, oly_operand y);
    growth growth;
} call_of_two;
enum { N_TWOS = 13, N_COMMON_TWOS = 5 }; /* the first ones are the common ones */
extern const call_of_two random_twos[N_TWOS];

enum { SUM, MAX, MIN, MEAN, PROD, N_REDUCTIONS };

/* Steps of loop bodies; each keeps the type of the carry. */
typedef enum loop_step {
    STEP_STENCIL, /* neighbours along one dimension, into the interior */
    STEP_CAPTURE, /* adds a captured array */
    STEP_TOTAL,   /* adds the sum of all elements */
    STEP_ROTATE,  /* first row to the end */
    STEP_COUNTER, /* where(carry > i, carry, -carry) */
    STEP_REVERSE, /* transposes a square */
    STEP_PRODUCT, /* carry @ captured square */
    STEP_ROW,     /* replaces row 0 by row -1 */
    N_LOOP_STEPS
} loop_step;
/* Properties of a value, from the reference run. */
typedef struct value {
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    void *data;     /* row-major; owned by the program */
    double biggest; /* largest magnitude (of a part); infinity if anything is not finite */
    bool integral;  /* integers only (parts too) */
    double error;   /* largest effect of another order of summation; 0: none */
} value;

typedef struct program {
    uint64_t seed, random;
    bool wide; /* with 64-bit types */
    int n;
    instruction call[MOST_VALUES];
    value value[MOST_VALUES];
    int n_devices; /* of every mesh of this program, the same list in the same order */
    int n_meshes;
    oly_mesh mesh[4];
} program;

uint64_t random_below(program *p, uint64_t n);
oly_sharding random_sharding(program *p, int rank);

/* Makes a program and its reference values on one device. The inputs' data are values too. */
void make_program(program *p, uint64_t seed);
void free_program(program *p);

/* Runs instruction k on the values so far; `reference`: on one device, without placements. */
oly_array run_instruction(const program *p, int k, const oly_array *values, bool reference);

/* -- random_rearrange.c -- */
bool draw_rearrange(program *p, instruction *s, const value *x); /* in[0] has been drawn: x */
oly_array run_rearrange(const instruction *s, oly_array x);
double error_of_rearrange(const instruction *s, const value *x, double epsilon);
void print_rearrange(FILE *file, const instruction *s);

void print_program(FILE *file, const program *p);
#endif
