/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of communication: the text of a plan's steps, and comparison with the values of one device. */
#ifndef CHECK_COMMUNICATION_H
#define CHECK_COMMUNICATION_H
#include "check.h"
#include <olympus.h>

/* The explained plan up to the line of totals; to be freed. */
char *check_steps(oly_fn f, int n, const oly_array *in);
int check_count(const char *text, const char *word);

/* How many step lines of the function's plan contain the word, on a float32[rows,columns] operand of that spec; checks
 * that its result, of the same size, is that of one device. */
int check_steps_with(const char *word, oly_function function, const char *mesh, const char *spec, int64_t rows,
                     int64_t columns);
/* The line of every transfer ends so. */
#define CHECK_MOVES " members]"

/* float32[rows,columns] on one device. */
oly_array check_matrix(int64_t rows, int64_t columns);
/* All n elements of a function's float32 result, on every process; to be freed. */
float *check_values(oly_fn f, int n_in, const oly_array *in, int64_t n);
/* Checks that the function's result on sharded operands is that on one device, nearly or exactly. */
void check_same_values(oly_function function, int n_in, const oly_array *plain, const oly_array *sharded, int64_t n,
                       double tolerance);
/* Checks that the bits are the same with OLYMPUS_OVERLAP and without; leaves it on. */
void check_same_bits(oly_function function, int n_in, const oly_array *in, int64_t n);
#endif
