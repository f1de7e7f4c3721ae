/* Functions recorded as graphs of their own and mapped: what oly_shard_map and oly_vmap share. Private to runtime/array. */
#ifndef OLY_ARRAY_MANUAL_H
#define OLY_ARRAY_MANUAL_H
#include "array/alone.h"
#include <olympus/transform.h>

/* What holds inside a shard_map. */
typedef struct oly_manual {
    oly_mesh mesh; /* with the axes that are manual here, of maps further out too */
    bool unchecked;
} oly_manual;

/* That of the innermost map around the trace; NULL: none. */
const oly_manual *oly_manual_around(const oly_trace *t);
/* Where an axis that collectives name belongs: to a batch, or to the innermost map around that has a mesh; NULL: there is none. */
const oly_manual *oly_manual_with_axis(const oly_trace *t, const char *name);
/* A type of outside as it is inside: Manual axes no longer split dimensions. */
void oly_manual_type(const oly_manual *m, oly_type *type);

/* A sharding the same way. fails OLY_SHARDING: it names Manual axes. */
oly_status oly_manual_sharding(const oly_manual *m, oly_sharding *sharding);

/* A traced value, varying along these axes of the mesh too. */
oly_status oly_manual_vary(oly_mesh mesh, unsigned axes, oly_array *x);

/* A call of a function that is mapped. */
typedef struct oly_mapping {
    oly_function function;
    const char *name;
    void *user;
    int n_in, n_out;
    const oly_array *in;
} oly_mapping;

/* Records the function on inputs of these types: t->graph with its outputs (the caller frees it; NULL on failure), captures in
 * t (the caller releases them). manual, batch: see trace.h; NULL: none. */
oly_status oly_record_mapped(const oly_mapping *m, const oly_type *types, const oly_manual *manual,
                             const oly_manual *batch, oly_trace *t);

/* Records the map where a trace is open, else runs it alone (alone.h), with the outcome in *out[] (NULL after an error), raised.
 * With a NULL input: no call. */
oly_status oly_call_mapped(oly_recording *record_map, const void *request, const oly_mapping *m, oly_array *const *out);
#endif
