/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for drawn tests: the same from the same seed, on every process and machine. */
#ifndef CHECK_DRAWS_H
#define CHECK_DRAWS_H

/* Begins the numbers of this seed. */
void check_draws(int seed);
/* The next, from 0 to n - 1. */
int below(int n);
/* NAME=seed:count in the environment replaces these two; returns the seed. */
int check_draws_wanted(const char *name, int seed, int *count);
#endif
