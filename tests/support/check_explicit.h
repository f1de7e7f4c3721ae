/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays over a mesh of Explicit axes, for tests of their types. */
#ifndef CHECK_EXPLICIT_H
#define CHECK_EXPLICIT_H
#include "check_session.h"

extern oly_mesh check_mesh; /* of this test */

/* check_begin, and a mesh like "X=2:explicit, Y=4:explicit". */
void check_begin_on(const char *axes);
oly_sharding check_at(const char *spec);
/* Numbers between -1 and 1 of this shape, placed. */
oly_array check_numbers_at(const char *spec, int rank, const int64_t *shape);
#define CHECK_NUMBERS_AT(spec, ...) check_numbers_at(spec, OLY_EXTENTS(__VA_ARGS__))
#endif
