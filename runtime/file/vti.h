/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of VTK's image files (XML with appended raw data): writing those of .vti, .pvti and .pvd, and reading those of .vti and .pvti.
 * VTK's x varies fastest: it is the last dimension of a row-major array, and the bytes of both are the same.
 *
 *      array     [y][x], components last        file    x y 1, tuples
 *
 * Called by runtime/array/files. */
#ifndef OLY_FILE_VTI_H
#define OLY_FILE_VTI_H
#include "core/text.h"
#include "layout/layout.h"
#include <olympus/array.h>

enum { OLY_VTI_DIMENSIONS = 3, OLY_VTI_NAME = 256 };

typedef struct oly_vti_field {
    char name[OLY_VTI_NAME]; /* not escaped */
    oly_dtype dtype;
    int components; /* 0: scalars of an array without a dimension for them */
    int64_t offset; /* of the first element's byte, from the first byte of the appended data (after '_') */
} oly_vti_field;

typedef struct oly_vti {
    int rank;                          /* dimensions of the grid, 1 to 3; the arrays below are in the array's order */
    int64_t shape[OLY_VTI_DIMENSIONS]; /* of points or cells */
    int64_t start[OLY_VTI_DIMENSIONS]; /* of a piece, in the whole */
    double origin[OLY_VTI_DIMENSIONS], spacing[OLY_VTI_DIMENSIONS];
    bool cells; /* values belong to cells, not points */
    bool part;  /* read: the image is larger than the file's piece */
    bool timed;
    double time;
    bool swapped; /* read: the bytes of each number are in the other order than this machine's */
    int n;
    oly_vti_field *field; /* borrowed by writers; read: owned */
    int64_t data;         /* read: where the appended data begins in the file */
    int header_bytes;     /* read: of the number of bytes before the data of each field, 4 or 8 */
} oly_vti;

/* VTK's name of an element type; NULL: it has none. */
const char *oly_vti_type(oly_dtype dtype);
/* Bytes of a field. */
int64_t oly_vti_field_bytes(const oly_vti *v, const oly_vti_field *f);
/* Sets the offsets of all fields. Returns the bytes of the appended data. */
int64_t oly_vti_place(oly_vti *v);

/* Everything up to the first byte of appended data; the data of each field is preceded by the number of its bytes, 8 bytes. */
void oly_vti_head(oly_text *t, const oly_vti *v);
/* What follows the data. */
const char *oly_vti_tail(void);

/* A .pvti: the whole, and its pieces with their files, which are named relative to it. piece[k].name is not escaped. */
typedef struct oly_vti_piece {
    char name[OLY_VTI_NAME];
    oly_box box; /* of points or cells that it holds, in the array's order */
} oly_vti_piece;
void oly_pvti_text(oly_text *t, const oly_vti *whole, int n, const oly_vti_piece *pieces);

/* A .pvd with one more file: `old` is its text (NULL: none), of which entries of this file and of this time or later are dropped, so
 * that a restarted program goes on with its series. fails OLY_IO: it is not of this form. */
oly_status oly_pvd_text(oly_text *t, const char *old, const char *path, const char *file, double time);

/* Reads the header of a .vti with raw appended data, which is not compressed. bytes: the beginning of the file, at least up to the '_'
 * of the appended data. rank: of the grid; 0: as the writer noted it, or without the dimensions of one point at the end. Fields: those of
 * the points, or, if there are none, of the cells. fails OLY_IO: what is not understood, by name. */
oly_status oly_vti_read_head(const char *path, const char *bytes, size_t n, int rank, oly_vti *v);

/* What a .pvti names: extents are VTK's, x, y, z, first and last point. */
typedef struct oly_pvti_piece {
    char name[OLY_VTI_NAME]; /* of its file, relative to the .pvti */
    int64_t extent[2 * OLY_VTI_DIMENSIONS];
} oly_pvti_piece;
typedef struct oly_pvti {
    int rank, n;
    int64_t whole[2 * OLY_VTI_DIMENSIONS];
    oly_pvti_piece *piece; /* owned */
} oly_pvti;
/* fails OLY_IO, as above. */
oly_status oly_pvti_read(const char *path, const char *bytes, size_t n, oly_pvti *p);
#endif
