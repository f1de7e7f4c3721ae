/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking over a box of a strided buffer to pack it into consecutive bytes, and back. Used by exchange.c. */
#ifndef OLY_COLLECTIVES_PACK_H
#define OLY_COLLECTIVES_PACK_H
#include "communicator.h"

/* A piece in as few loops as it takes: dimensions of one element are gone, neighbours that follow each other
 * without a gap are one. `run` consecutive bytes are copied for every point of extent[]. */
typedef struct oly_walk {
    int buffer;
    int device, peer_device; /* as the piece's */
    int loops;               /* 0: one run (or nothing) */
    int64_t offset;          /* bytes */
    int64_t bytes;           /* of the whole box */
    int64_t run;             /* bytes; equal to `bytes` when the box has no gaps */
    const int64_t *extent;   /* [loops]; outermost first */
    const int64_t *stride;   /* [loops]; bytes */
} oly_walk;

/* Numbers that the loops of a piece take at most. */
int oly_walk_room(const oly_piece *piece);
/* Writes its loops to `room`, which is to live as long as the walk: 2 * walk->loops numbers. Fails OLY_INVALID, OLY_OVERFLOW. */
oly_status oly_walk_make(const oly_piece *piece, size_t element_bytes, int64_t *room, oly_walk *walk);
/* Bytes begin to end of the box as it is packed, from or to `packed`; any part will do, also of an element. */
void oly_walk_pack(const oly_walk *walk, int64_t begin, int64_t end, const void *base, void *packed);
void oly_walk_unpack(const oly_walk *walk, int64_t begin, int64_t end, void *base, const void *packed);
/* Calls `copy` for every run of consecutive bytes in that part of the box: at the buffer's address and at the packed one. Ends with its
 * first failure. */
oly_status oly_walk_runs(const oly_walk *walk, int64_t begin, int64_t end, void *base, char *packed,
                         oly_status (*copy)(const oly_walk *walk, void *strided, char *packed, int64_t bytes));
#endif
