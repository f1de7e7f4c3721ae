/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays read from a checkpoint: this process's boxes first, which may fail on some ranks only; when all have theirs, the arrays.
 * For restore.c only. */
#ifndef OLY_ARRAY_CHECKPOINT_FILL_H
#define OLY_ARRAY_CHECKPOINT_FILL_H
#include "array/checkpoint/checkpoint.h"

typedef struct oly_fill {
    const char *path; /* the checkpoint's folder */
    const oly_manifest *manifest;
    const oly_manifest_array *saved;
    oly_sharding sharding;
    int n;
    oly_buffer **shard; /* owned, [n] this process's, in mesh order */
    char *chunk;        /* owned while reading */
} oly_fill;

/* Reads the boxes of this process; nothing is sent. fails OLY_IO: damaged; OLY_SHARDING, OLY_MEMORY. */
oly_status oly_fill_read(oly_fill *fill);
/* The array, in the open scope; by all ranks. */
oly_status oly_fill_array(oly_fill *fill, oly_array *x);
void oly_fill_drop(oly_fill *fill);
#endif
