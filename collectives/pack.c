/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs a box of a strided buffer into consecutive bytes, and unpacks it. Used by exchange.c. A halo's columns are a few bytes
 * with a stride, its rows long runs: the innermost loop is compiled for runs of 1 to 16 bytes, where a call of memcpy would
 * cost more than the copy, and longer runs go to memcpy. */
#include "pack.h"
#include "core/error.h"
#include <string.h>

static oly_status box_bytes(const oly_piece *piece, size_t element_bytes, int64_t *bytes)
{
    if (piece->rank < 0 || piece->rank > OLY_MAX_RANK || piece->buffer < 0)
        return oly_fail(OLY_INVALID, "exchange: piece of buffer %d has %d dimensions (at most %d)", piece->buffer,
                        piece->rank, OLY_MAX_RANK);
    *bytes = (int64_t)element_bytes;
    bool overflow = false, empty = false;
    for (int d = 0; d < piece->rank; d++) {
        if (piece->extent[d] < 0)
            return oly_fail(OLY_INVALID, "exchange: piece has extent %lld in dimension %d", (long long)piece->extent[d],
                            d);
        empty |= piece->extent[d] == 0;
        overflow |= __builtin_mul_overflow(*bytes, piece->extent[d], bytes);
    }
    if (empty)
        *bytes = 0;
    else if (overflow)
        return oly_fail(OLY_OVERFLOW, "exchange: the bytes of a piece do not fit 64 bits");
    return OLY_OK;
}

int oly_walk_room(const oly_piece *piece)
{
    return piece->rank == 1 && piece->stride[0] == 1 ? 0 : 2 * piece->rank;
}

oly_status oly_walk_make(const oly_piece *piece, size_t element_bytes, int64_t *room, oly_walk *walk)
{
    int64_t extents[OLY_MAX_RANK], strides[OLY_MAX_RANK];
    *walk = (oly_walk){.buffer = piece->buffer,
                       .device = piece->device,
                       .peer_device = piece->peer_device,
                       .offset = piece->offset,
                       .run = (int64_t)element_bytes};
    OLY_TRY(box_bytes(piece, element_bytes, &walk->bytes));
    if (walk->bytes == 0)
        return OLY_OK;
    /* From the innermost outwards, loops collected in reverse. */
    for (int d = piece->rank - 1; d >= 0; d--) {
        int64_t extent = piece->extent[d], stride = piece->stride[d] * (int64_t)element_bytes;
        int last = walk->loops - 1;
        if (extent == 1)
            continue;
        if (walk->loops == 0 && stride == walk->run) {
            walk->run *= extent;
        } else if (walk->loops > 0 && stride == strides[last] * extents[last]) {
            extents[last] *= extent;
        } else {
            extents[walk->loops] = extent;
            strides[walk->loops++] = stride;
        }
    }
    walk->extent = room;
    walk->stride = room + walk->loops;
    for (int i = 0; i < walk->loops; i++) {
        room[i] = extents[walk->loops - 1 - i];
        room[walk->loops + i] = strides[walk->loops - 1 - i];
    }
    return OLY_OK;
}

/* Copies n runs from one stride to another; one of the strides is the run itself. */
static void copy_runs(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n, int64_t run)
{
#define RUNS_OF(bytes)                                                                                                 \
    case bytes:                                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                                                \
            memcpy(to + i * to_stride, from + i * from_stride, bytes);                                                 \
        break
    switch (run) {
        RUNS_OF(1);
        RUNS_OF(2);
        RUNS_OF(4);
        RUNS_OF(8);
        RUNS_OF(12);
        RUNS_OF(16);
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, (size_t)run);
    }
#undef RUNS_OF
}

/* Calls copy_runs for every point of the outer loops; `strided` is the box, `packed` its consecutive bytes. */
static void walk_over(const oly_walk *walk, char *strided, char *packed, bool packing)
{
    int inner = walk->loops - 1;
    int64_t n = inner < 0 ? 1 : walk->extent[inner], stride = inner < 0 ? walk->run : walk->stride[inner];
    int64_t at[OLY_MAX_RANK] = {0};
    for (;;) {
        if (packing)
            copy_runs(packed, walk->run, strided, stride, n, walk->run);
        else
            copy_runs(strided, stride, packed, walk->run, n, walk->run);
        packed += n * walk->run;
        int d = inner - 1;
        for (; d >= 0; d--) {
            strided += walk->stride[d];
            if (++at[d] < walk->extent[d])
                break;
            strided -= walk->stride[d] * walk->extent[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

/* Bytes begin to end of the box; it has loops. */
static void walk_over_part(const oly_walk *walk, int64_t begin, int64_t end, char *strided, char *packed, bool packing)
{
    int inner = walk->loops - 1;
    int64_t at[OLY_MAX_RANK], index = begin / walk->run, within = begin % walk->run;
    for (int d = inner; d >= 0; d--) {
        at[d] = index % walk->extent[d];
        index /= walk->extent[d];
        strided += at[d] * walk->stride[d];
    }
    for (int64_t left = end - begin; left > 0;) {
        int64_t n = left / walk->run, rest = walk->extent[inner] - at[inner], bytes;
        n = n < rest ? n : rest;
        if (within > 0 || n == 0) { /* a part of a run, to its end or to that of the part */
            bytes = left < walk->run - within ? left : walk->run - within;
            memcpy(packing ? packed : strided + within, packing ? strided + within : packed, (size_t)bytes);
            n = 1;
            within = 0;
        } else {
            bytes = n * walk->run;
            if (packing)
                copy_runs(packed, walk->run, strided, walk->stride[inner], n, walk->run);
            else
                copy_runs(strided, walk->stride[inner], packed, walk->run, n, walk->run);
        }
        packed += bytes;
        left -= bytes;
        strided += n * walk->stride[inner];
        at[inner] += n;
        for (int d = inner; d > 0 && at[d] == walk->extent[d]; d--) {
            strided += walk->stride[d - 1] - walk->stride[d] * walk->extent[d];
            at[d] = 0;
            at[d - 1]++;
        }
    }
}

static void walk_from_to(const oly_walk *walk, int64_t begin, int64_t end, char *base, char *packed, bool packing)
{
    char *strided = base + walk->offset;
    if (begin >= end)
        return;
    if (begin == 0 && end == walk->bytes)
        walk_over(walk, strided, packed, packing);
    else if (walk->loops == 0)
        memcpy(packing ? packed : strided + begin, packing ? strided + begin : packed, (size_t)(end - begin));
    else
        walk_over_part(walk, begin, end, strided, packed, packing);
}

void oly_walk_pack(const oly_walk *walk, int64_t begin, int64_t end, const void *base, void *packed)
{
    walk_from_to(walk, begin, end, (char *)base, packed, true);
}

void oly_walk_unpack(const oly_walk *walk, int64_t begin, int64_t end, void *base, const void *packed)
{
    walk_from_to(walk, begin, end, base, (char *)packed, false);
}

oly_status oly_walk_runs(const oly_walk *walk, int64_t begin, int64_t end, void *base, char *packed,
                         oly_status (*copy)(const oly_walk *walk, void *strided, char *packed, int64_t bytes))
{
    for (int64_t at = begin, bytes; at < end; at += bytes) {
        int64_t index = at / walk->run, within = at % walk->run, offset = walk->offset + within;
        for (int d = walk->loops - 1; d >= 0; d--) {
            offset += index % walk->extent[d] * walk->stride[d];
            index /= walk->extent[d];
        }
        bytes = walk->run - within < end - at ? walk->run - within : end - at;
        OLY_TRY(copy(walk, (char *)base + offset, packed + (at - begin), bytes));
    }
    return OLY_OK;
}
