/* SPDX-License-Identifier: BSD-3-Clause */
/* A field of a .vti that is read. Called by vti_load.c and vti_load_pieces.c. */
#ifndef OLY_ARRAY_FILES_VTI_FIELD_H
#define OLY_ARRAY_FILES_VTI_FIELD_H
#include "array/array.h"
#include "file/box.h"
#include "file/vti.h"

typedef struct oly_vti_source {
    const char *path, *name; /* of the file and the field; name NULL: the first */
    oly_vti vti;             /* its fields are owned: oly_release(vti.field) */
    const oly_vti_field *field;
    uint64_t contents; /* hash of the header */
} oly_vti_source;

/* Reads the header of an open file of `size` bytes, finds the field and checks that all of it is there. rank: of the grid; 0: as the
 * header says. fails OLY_IO, OLY_INVALID (no such field), OLY_MEMORY. */
oly_status oly_vti_source_read(oly_vti_source *l, int file, int64_t size, int rank);
/* Of the field as an array; and where it is in the file. */
oly_type oly_vti_source_type(const oly_vti_source *l);
oly_file_array oly_vti_source_region(const oly_vti_source *l, int file);
#endif
