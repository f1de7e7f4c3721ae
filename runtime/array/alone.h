/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops and branches called outside any function: they become a function of their own, planned and run once. Private to
 * runtime/array. */
#ifndef OLY_ARRAY_ALONE_H
#define OLY_ARRAY_ALONE_H
#include "array/plan_cache.h"
#include "array/trace.h"

/* Records a construct into an open trace. */
typedef oly_status oly_recording(const void *request, oly_trace *t, const oly_array *in, oly_array *out);

/* Records it into the open trace, or, where none is open, as a function that runs at once. */
oly_status oly_record_or_run(oly_recording *record, const void *request, const char *name, int n_in,
                             const oly_array *in, int n_out, oly_array *out);
/* Where no trace is open: the same, with the plan of an earlier call of the same key, to which the arrays are added. */
oly_status oly_run_known(oly_compiled_cache *cache, oly_key *key, oly_recording *record, const void *request,
                         const char *name, int n_in, const oly_array *in, int n_out, oly_array *out);
#endif
