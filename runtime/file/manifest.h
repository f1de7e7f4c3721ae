/* SPDX-License-Identifier: BSD-3-Clause */
/* The manifest of a checkpoint: which arrays it has, in which files their parts are, and the checksums of all of them. Text, a line
 * for each item, written last; nothing here reads or writes files. Callable by runtime/file and above.
 *
 *   olympus-checkpoint 1              the version of this format
 *   step 100
 *   chunk 1048576                     bytes of a file that one checksum covers
 *   text hello%20world                the program's own text; "-": none
 *   values 2 17 -4                    the program's own numbers
 *   arrays 1
 *   array w float32 2 1000 37 i%3D4...         name, element type, dimensions, extents, sharding (for people)
 *   part 0 000000-w-00000.npy 37128 0 0 250 37 8a12...   array, file, its bytes, where the box starts, its extents, checksums
 *   end 12ab34cd                      the checksum of all bytes before this line
 *
 * Checksums are CRC-32 as zlib's, in hexadecimal. Names and texts have every byte but letters, digits and "._-" written as %XX. One
 * blank between words, lines end with a newline, numbers are decimal. Everything is checked before it is believed: sizes before
 * memory is taken for them, that boxes lie in their array, do not overlap and cover it, that files are named once and only inside
 * the checkpoint's folder. */
#ifndef OLY_FILE_MANIFEST_H
#define OLY_FILE_MANIFEST_H
#include "core/arena.h"
#include "core/text.h"
#include <olympus/array.h>

enum {
    OLY_MANIFEST_VERSION = 1,
    OLY_MANIFEST_MOST_BYTES = 256 << 20,
    OLY_MANIFEST_MOST_NAME = 255,     /* bytes of an array's name, and of a file's */
    OLY_MANIFEST_MOST_TEXT = 1 << 20, /* bytes of the program's text */
    OLY_MANIFEST_MOST_VALUES = 1 << 16,
    OLY_MANIFEST_LEAST_CHUNK = 1 << 12,
    OLY_MANIFEST_MOST_CHUNK = 1 << 28,
};

typedef struct oly_manifest_part {
    int array;
    const char *file;        /* a name in the checkpoint's folder */
    int64_t bytes;           /* of the file */
    int64_t *start, *extent; /* [rank of the array] */
    int64_t n_checksums;
    uint32_t *checksum; /* of each chunk of the file, the last one shorter */
} oly_manifest_part;

typedef struct oly_manifest_array {
    const char *name;
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK];
    const char *sharding; /* as it was saved, for people */
    int n_parts;
    oly_manifest_part *part; /* of the manifest's */
} oly_manifest_array;

typedef struct oly_manifest {
    oly_arena arena;
    int64_t step;
    int64_t chunk;
    const char *text;
    int n_values;
    int64_t *value;
    int n_arrays, n_parts;
    oly_manifest_array *array;
    oly_manifest_part *part; /* by array */
    int *by_name;            /* [n_arrays] numbers of the arrays, sorted by name */
} oly_manifest;

/* Reads a manifest. fails OLY_IO: what is wrong, in which line; OLY_MEMORY. Then nothing is held. */
oly_status oly_manifest_read(const char *text, size_t bytes, oly_manifest *m);
void oly_manifest_free(oly_manifest *m);
/* The number of the array of that name; -1: none. */
int oly_manifest_find(const oly_manifest *m, const char *name);

/* -- writing: the head, an array for each, a part for each, the end, into one text. Running out of memory is noted there. ------- */
void oly_manifest_add_head(oly_text *t, int64_t step, int64_t chunk, const char *text, int n_values,
                           const int64_t *values, int n_arrays);
void oly_manifest_add_array(oly_text *t, const char *name, oly_dtype dtype, int rank, const int64_t *shape,
                            const char *sharding);
void oly_manifest_add_part(oly_text *t, const oly_manifest_part *part, int rank);
void oly_manifest_add_end(oly_text *t);

/* Checksum of a chunk, and its continuation; begins with 0. */
uint32_t oly_checksum(uint32_t before, const void *bytes, size_t n);
/* How many chunks a file has. */
static inline int64_t oly_manifest_chunks(int64_t bytes, int64_t chunk)
{
    return bytes / chunk + (bytes % chunk != 0);
}
/* Bytes of an element. */
int64_t oly_manifest_element(oly_dtype dtype);
#endif
