/* Which build this is: what ranks compare at start, so that no two of them run different programs unknowingly. Called by
 * runtime/array. */
#ifndef OLY_CORE_BUILD_H
#define OLY_CORE_BUILD_H
#include <stddef.h>
#include <stdint.h>

typedef struct oly_build {
    uint64_t program,
        library; /* equal where the files have the same contents; the same number where the library is in the program */
} oly_build;

/* From the build id that the linker leaves in a file, or, where there is none, from its code in memory. */
oly_build oly_build_get(void);
/* Where the two files are; cut to fit. */
void oly_build_paths(char *program, char *library, size_t size);
#endif
