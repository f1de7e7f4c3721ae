/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of oly_save_vti. vti_save.c chooses between one file and pieces. */
#ifndef OLY_ARRAY_FILES_VTI_SAVE_H
#define OLY_ARRAY_FILES_VTI_SAVE_H
#include "array/files/crew.h"
#include "array/files/vti_arrays.h"

/* A .pvti and a .vti for each shard, by all members of the crew. mine: what has failed before. The same status on all of them. */
oly_status oly_vti_save_pieces(const oly_crew *crew, oly_status mine, uint64_t arguments, const char *path,
                               const oly_grid *g);
/* Writes the numbers of bytes that precede the data of each field. head: bytes before the appended data. */
oly_status oly_vti_write_counts(int file, const char *path, const oly_vti *v, int64_t head);
/* A path as seen from the folder of another file, which names it; owned by the caller. NULL: out of memory. */
char *oly_path_seen_from(const char *file, const char *path);
#endif
