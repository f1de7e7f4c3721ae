/* SPDX-License-Identifier: BSD-3-Clause */
/* How the context mesh (oly_set_mesh) applies to new values. Private to runtime/array. */
#ifndef OLY_ARRAY_CONTEXT_H
#define OLY_ARRAY_CONTEXT_H
#include "layout/sharding.h"

/* The sharding of values made without one: replicated over a context mesh with Explicit axes; NULL: none. */
oly_sharding oly_context_sharding(void);
#endif
