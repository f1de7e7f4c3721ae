/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared libraries that are opened at the first use and not linked: programs linked with the static library need not name them, and a
 * machine may lack them. Whoever uses one has a list of its functions, from which it makes a table of pointers with the types of the
 * library's own header (file/zlib_late.h shows how). A library that the program has loaded for all to see is used where it is. */
#ifndef OLY_CORE_LATE_LIBRARY_H
#define OLY_CORE_LATE_LIBRARY_H
#include <stdbool.h>
#include <stddef.h>

typedef struct oly_late_library {
    const char *const *files;   /* file names to try, in this order; NULL ends them */
    const char *const *symbols; /* what is needed of it */
    void **addresses;           /* of the symbols, in their order; NULL until it is opened */
    size_t n;                   /* symbols */
    bool tried, there;          /* for late_library.c */
    char reason[200];           /* why it is not there */
} oly_late_library;

/* Opens it at the first call, at most once. Any thread. False: it is not there, and reason says why. */
bool oly_late_library_open(oly_late_library *library);
#endif
