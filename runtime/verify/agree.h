/* SPDX-License-Identifier: BSD-3-Clause */
/* Minima over the processes of a mesh. Private to runtime/verify. */
#ifndef OLY_VERIFY_AGREE_H
#define OLY_VERIFY_AGREE_H
#include "layout/mesh.h"

/* values[k] becomes the smallest of all processes that own devices of the mesh; all of them call it. No value may be
 * NaN. A process without devices of it keeps its own. */
oly_status oly_agree_least(oly_mesh mesh, int n, double *values);
oly_status oly_agree_largest(oly_mesh mesh, int n, double *values);
#endif
