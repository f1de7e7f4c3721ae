/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a .pvti, from its pieces. Called by vti_load.c. */
#ifndef OLY_ARRAY_FILES_VTI_LOAD_PIECES_H
#define OLY_ARRAY_FILES_VTI_LOAD_PIECES_H
#include "array/files/crew.h"
#include "array/files/vti_field.h"

/* Does the path end in .pvti? */
bool oly_names_pieces(const char *path);
/* By all members of the crew, mine: what has failed before. Makes *type and *x. The same status on all of them; x may be left then. */
oly_status oly_vti_load_pieces(const oly_crew *crew, oly_status mine, oly_vti_source *l, oly_sharding sharding,
                               oly_type *type, oly_array *x);
#endif
