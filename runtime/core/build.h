/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this build, which ranks compare at start, so that they do not run different programs unknowingly. Called by
 * runtime/array. */
#ifndef OLY_CORE_BUILD_H
#define OLY_CORE_BUILD_H
#include <stddef.h>
#include <stdint.h>

typedef struct oly_build {
    uint64_t program,
        library; /* equal if the files have the same contents; both the same if the library is linked into the program */
} oly_build;

/* From the build id that the linker writes into a file or, without one, from its code in memory. */
oly_build oly_build_get(void);
/* The paths of the two files, truncated to fit. */
void oly_build_paths(char *program, char *library, size_t size);
#endif
