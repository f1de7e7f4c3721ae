/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs in which one rank does something else than all others: each must be refused on every rank, with the lines of both
 * calls, and without returning a value. For test_divergence*.c.
 *
 * A program makes an array in a way in which one rank differs, and then uses it in some way. Every difference is tried with
 * several uses, and the rank that differs changes.
 *   DIVERGENCE=all     every difference with every use (else each with two of them)
 *   DIVERGENCE=name    those whose name contains this
 *   DIVERGENCE=0/8     every eighth of the sample, from the first on
 *   DIVERGENCE_PRINT=1 print each program before it runs */
#ifndef CHECK_DIVERGENCE_H
#define CHECK_DIVERGENCE_H
#include "check.h"
#include <olympus.h>

typedef struct setting {
    bool odd;      /* this rank does the other thing */
    oly_mesh mesh; /* all devices, "i" */
    oly_mesh part; /* without one rank that is not the odd one, "i"; of two ranks: without one device */
    oly_sharding rows, columns, whole;
    oly_sharding part_rows, part_whole;
    oly_array x, y; /* float32[n, n], by rows */
    oly_array v;    /* float32[n], split */
    oly_array a, b; /* float32[n, n], by rows on the part */
    int64_t n;
} setting;

/* Source lines of the calls that differ, on the odd rank and on the others; 0: unknown. */
extern int line, other;
#define AT(...) (line = other = __LINE__, __VA_ARGS__)
/* The difference's own calls have returned a value, or have used it up: it is not used afterwards. */
extern bool handed_out, used_up;

typedef struct difference {
    const char *name;
    oly_array (*make)(const setting *s);
} difference;
#define D(name)                                                                                                        \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
/* Both on one line. */
#define DIFFERENT(name, first, second)                                                                                 \
    static oly_array name(const setting *s)                                                                            \
    {                                                                                                                  \
        line = other = __LINE__;                                                                                       \
        return s->odd ? (first) : (second);                                                                            \
    }

/* Calls in another order on the odd rank; all on one line. */
#define IN_OTHER_ORDER(name, first, second)                                                                            \
    static oly_array name(const setting *s)                                                                            \
    {                                                                                                                  \
        oly_array a = NULL, b = NULL;                                                                                  \
        line = other = __LINE__;                                                                                       \
        for (int k = 0; k < 2; k++)                                                                                    \
            if (s->odd == (k == 0))                                                                                    \
                a = (first);                                                                                           \
            else                                                                                                       \
                b = (second);                                                                                          \
        return oly_add(a, b);                                                                                          \
    }

/* A number that differs by process: 2 on the odd rank, 1 on others. */
oly_array own_scalar(const setting *s, oly_dtype type);
/* Functions of one array, to be compiled or called in branches. */
void doubled(const oly_array *in, oly_array *out, void *user);
void tripled(const oly_array *in, oly_array *out, void *user);

/* Begin a program in which rank who (modulo the ranks) differs, and end it: oly_finalize's status; *seconds since
 * prepared. */
void difference_begin(setting *s, int who);
int difference_end(double *seconds);
/* Runs the list; messages must name `file`. Prints the slowest; on an idle machine fails if more than one took over a
 * second. */
void differences_are_refused(const char *file, int n, const difference *list);
/* The test of a list of differences. */
#define REFUSED(list)                                                                                                  \
    static void programs_that_differ_are_refused(void **state)                                                         \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        differences_are_refused(__FILE__, (int)(sizeof(list) / sizeof *(list)), list);                                 \
    }
bool difference_is_named(const char *file, const char *text, int number);
#endif
