/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory of all processes, exchanged through arrays: so the calls are ordered, compared and bounded like all others. Called by
 * runtime/array on all ranks, outside of traces. */
#ifndef OLY_ARRAY_PROCESSES_BETWEEN_H
#define OLY_ARRAY_PROCESSES_BETWEEN_H
#include "array/array.h"

/* fails OLY_TRACE while a function is recorded. */
oly_status oly_between_ready(void);
/* This process fails while the others go on to wait for it: they are notified. Returns the status. */
oly_status oly_between_give_up(oly_status status);
/* all: the bytes of every process, in their order. */
oly_status oly_between_gather(const void *mine, size_t bytes, void *all);
/* On each process: its first device holds the elements of x, which is on the source's first device. *result: uncommitted. */
oly_status oly_between_send(oly_array x, oly_array *result);
/* A handle of this type on the source's first device; `data` is read on the source only. */
oly_status oly_between_from_source(const oly_type *type, int source, const void *data, oly_array *x);
#endif
