/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions recorded as graphs of their own and mapped: what oly_shard_map and oly_vmap share. Private to
 * runtime/array. */
#ifndef OLY_ARRAY_MANUAL_H
#define OLY_ARRAY_MANUAL_H
#include "array/alone.h"
#include <olympus/transform.h>

/* The state inside a shard_map. */
typedef struct oly_manual {
    oly_mesh mesh; /* with its Manual axes, those of outer maps included */
    bool unchecked;
} oly_manual;

/* That of the innermost map around the trace; NULL: none. */
const oly_manual *oly_manual_around(const oly_trace *t);
/* The map that an axis named in a collective belongs to: a batch, or the innermost map that has a mesh; NULL: none. */
const oly_manual *oly_manual_with_axis(const oly_trace *t, const char *name);
/* Translates a type from outside to inside: Manual axes no longer split dimensions. */
void oly_manual_type(const oly_manual *m, oly_type *type);

/* The same for a sharding. fails OLY_SHARDING: it names Manual axes. */
oly_status oly_manual_sharding(const oly_manual *m, oly_sharding *sharding);

/* Makes a traced value vary along these axes of the mesh too. */
oly_status oly_manual_vary(oly_mesh mesh, unsigned axes, oly_array *x);

/* A call of a mapped function. */
typedef struct oly_mapping {
    oly_function function;
    const char *name;
    void *user;
    int n_in, n_out;
    const oly_array *in;
} oly_mapping;

/* Records the function on inputs of these types: t->graph with its outputs (the caller frees it; NULL on failure),
 * captures in t (the caller releases them). manual, batch: see trace.h; NULL: none. */
oly_status oly_record_mapped(const oly_mapping *m, const oly_type *types, const oly_manual *manual,
                             const oly_manual *batch, oly_trace *t);

/* Records the map into the open trace, or runs it where none is open (alone.h); results in *out[] (NULL after an
 * error), errors raised. With a NULL input nothing is called. */
oly_status oly_call_mapped(oly_recording *record_map, const void *request, const oly_mapping *m, oly_array *const *out);
#endif
