/* SPDX-License-Identifier: BSD-3-Clause */
/* The pairs of names and values that the processes of an MPICH job exchange when they start. Used by coordinator.c. */
#ifndef OLYMEET_PAIRS_H
#define OLYMEET_PAIRS_H
#include <stdbool.h>

enum { PAIR_TEXT = 2048, MOST_PAIRS = 1 << 22 };
bool pairs_put(const char *key, const char *value); /* false: no memory, or too many */
const char *pairs_get(const char *key);             /* NULL: none */
#endif
