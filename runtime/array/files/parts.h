/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of arrays on this process, and files: which of them this process writes, and arrays made of what it reads. Nothing here
 * communicates. Callable by runtime/array. */
#ifndef OLY_ARRAY_FILES_PARTS_H
#define OLY_ARRAY_FILES_PARTS_H
#include "array/array.h"
#include "file/box.h"

/* Checks that the array has values that files can hold: fails OLY_TRACE, OLY_DELETED, OLY_SHARDING (unreduced), OLY_STATE (simulated). */
oly_status oly_parts_check(oly_array x);
/* Does this process write its shard s? Of several shards with the same elements one is written, by one process; of an uncommitted
 * array, process 0's copy. */
bool oly_parts_writes(oly_array x, int s);
/* Waits for the array and writes those boxes that this process has to. */
oly_status oly_parts_write(oly_array x, const oly_file_array *to);

/* A new array with this sharding, NULL: uncommitted, on the default device; its shards have memory, but no values yet. type: its
 * sharding is set. fails OLY_SHARDING, OLY_MEMORY, ... */
oly_status oly_parts_make(const oly_type *type, oly_sharding sharding, oly_array *x);
/* Fills all shards from a file. */
oly_status oly_parts_read(oly_array x, const oly_file_array *from);
/* The memory of all shards for the host at once, to be filled in any order; twin[s]: an earlier shard with the same elements, which
 * oly_parts_unmap copies; -1: none. */
typedef struct oly_parts_mapped {
    int n;
    oly_box *box;  /* owned */
    void **memory; /* owned */
    int *twin;     /* owned */
} oly_parts_mapped;
oly_status oly_parts_map(oly_array x, oly_parts_mapped *m);
oly_status oly_parts_unmap(oly_array x, oly_parts_mapped *m);
/* When all processes have filled theirs: makes it an array like others. call: of the crew (crew.h). */
oly_status oly_parts_done(oly_array x, uint64_t call);
#endif
