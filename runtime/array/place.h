/* SPDX-License-Identifier: BSD-3-Clause */
/* What all calls share that assemble an array from the parts of the processes (place.c, processes/). Private to runtime/array. */
#ifndef OLY_ARRAY_PLACE_H
#define OLY_ARRAY_PLACE_H
#include "array/array.h"

/* An uncommitted array of this process's data; loose: of no scope, to be freed by oly_array_release. */
oly_status oly_array_of_data(const void *data, const oly_type *type, bool loose, oly_array *out);
/* Gives such an array other data; earlier calls keep the old. */
oly_status oly_array_rewrite(oly_array x, const void *data);
/* The checked type of an array assembled from parts. */
oly_status oly_given_type(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *shape, oly_type *type);
/* Gives an array of per-process data an origin: processes create it together, by one call. how: a number for each such call. */
oly_status oly_note_made(oly_array x, uint64_t how);
void oly_place_forget(void); /* at finalize */
#endif
