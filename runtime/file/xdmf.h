/* SPDX-License-Identifier: BSD-3-Clause */
/* XDMF: the description, as XML, of a grid whose fields are data sets of an HDF5 file, and of their time steps. Called by
 * runtime/array/files. */
#ifndef OLY_FILE_XDMF_H
#define OLY_FILE_XDMF_H
#include "core/text.h"
#include "file/hdf5_file.h"
#include "file/vti.h"

typedef struct oly_xdmf {
    oly_vti grid;         /* rank, shape, origin, spacing, cells; its fields: name, dtype, components */
    const bool *has_rows; /* [grid.n] a row for each step? Otherwise it is the same at all steps */
    int64_t steps;        /* 1 at least */
    const double *times;  /* [steps]; NULL: 0, 1, ... */
    const int64_t *rows;  /* [grid.n] rows that there are */
    const char *hdf5;     /* path of the file, as seen from the description */
} oly_xdmf;

void oly_xdmf_text(oly_text *t, const oly_xdmf *x);
#endif
