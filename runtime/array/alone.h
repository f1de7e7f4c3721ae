/* Constructs that are recorded into a function (loops, branches), called outside any: they become a function of their own, planned
 * and run once. Private to runtime/array. */
#ifndef OLY_ARRAY_ALONE_H
#define OLY_ARRAY_ALONE_H
#include "array/trace.h"

/* Records a construct in an open trace: its arrays in, its arrays out. */
typedef oly_status oly_recording(const void *request, oly_trace *t, const oly_array *in, oly_array *out);

/* Records it where a trace is open, else runs it alone. */
oly_status oly_record_or_run(oly_recording *record, const void *request, const char *name, int n_in,
                             const oly_array *in, int n_out, oly_array *out);
#endif
