/* SPDX-License-Identifier: BSD-3-Clause */
/* Which boxes of an array this process writes: each box once. A box that several devices hold is written by the first of them, or, if
 * it is large, in as many pieces as there are holders, so that replicated parameters are written by all processes. See checkpoint.h.
 *
 *   float32[8,4] over "x" of a mesh x=2, y=2     device   (0,0)  (0,1)  (1,0)  (1,1)
 *     small                                      rows     0-3    -      4-7    -
 *     large                                      rows     0-1    2-3    4-5    6-7 */
#include "array/checkpoint/checkpoint.h"
#include "communicator.h"
#include "device/platform.h"
#include "file/npy_header.h"
#include <stdio.h>
#include <string.h>

enum { LEAST_PIECE = 4 << 20, NAME_KEPT = 64 };
int64_t oly_checkpoint_chunk = 1 << 20;

/* Which of the devices that hold the same box the one at this position is, and how many they are: along the axes that split no
 * dimension. */
static int64_t replica_of(oly_sharding s, int position, int64_t *replicas)
{
    int coordinate[OLY_MAX_RANK];
    bool used[OLY_MAX_RANK] = {false};
    int64_t replica = 0;
    *replicas = 1;
    if (s->mesh->everywhere) { /* every process has a copy */
        *replicas = oly_world_size();
        return oly_world_rank();
    }
    for (int d = 0; d < s->spec.n_dims; d++)
        for (int k = 0; k < s->spec.dim[d].n; k++)
            used[s->spec.dim[d].axis[k]] = true;
    oly_mesh_coordinates(s->mesh, position, coordinate);
    for (int a = 0; a < s->mesh->n_axes; a++)
        if (!used[a]) {
            replica = replica * s->mesh->size[a] + coordinate[a];
            *replicas *= s->mesh->size[a];
        }
    return replica;
}

/* Cuts the box into pieces of consecutive elements, one for some of the replicas; false: this one writes none. *box becomes its
 * piece, *number its number, *offset where it begins, in elements. */
static bool own_piece(oly_box *box, int64_t replica, int64_t replicas, size_t bytes, int64_t *number, int64_t *offset)
{
    int d = 0;
    while (d < box->rank && box->hi[d] - box->lo[d] == 1)
        d++;
    int64_t rows = d < box->rank ? box->hi[d] - box->lo[d] : 1, pieces = (int64_t)(bytes / LEAST_PIECE);
    pieces = pieces < replicas ? pieces : replicas;
    pieces = pieces < rows ? pieces : rows;
    pieces = pieces < 1 ? 1 : pieces;
    *number =
        (replica * pieces + replicas - 1) / replicas; /* the first replica from which on this is the piece's number */
    *offset = 0;
    if (*number >= pieces || *number * replicas / pieces != replica)
        return false;
    if (pieces == 1)
        return true;
    int64_t first = *number * rows / pieces, beyond = (*number + 1) * rows / pieces, count = oly_box_count(box);
    *offset = first * (count / rows);
    box->hi[d] = box->lo[d] + beyond;
    box->lo[d] += first;
    return true;
}

/* 000012-layer.w-00003.npy: the array's number, what can be read of its name, which box and which piece. */
static const char *file_name(oly_save_job *job, const char *name, int k, int position, int64_t piece)
{
    char readable[NAME_KEPT + 1], full[160];
    size_t n = 0;
    for (const char *c = name; *c && n < NAME_KEPT; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' || *c == '_';
        readable[n++] = *c;
        if (!plain)
            readable[n - 1] = '_';
    }
    readable[n] = '\0';
    int length = snprintf(full, sizeof full, "%06d-%s-%05d", k, readable, position);
    if (piece > 0)
        length += snprintf(full + length, sizeof full - (size_t)length, "-%05lld", (long long)piece);
    snprintf(full + length, sizeof full - (size_t)length, ".npy");
    char *kept = oly_arena_take_raw(&job->arena, strlen(full) + 1);
    return kept ? strcpy(kept, full) : NULL;
}

static oly_saved_part *another_part(oly_save_job *job)
{
    if (job->n_parts == job->room) {
        int room = job->room ? 2 * job->room : 16;
        oly_saved_part *more = oly_realloc(job->part, sizeof *more * (size_t)room);
        if (!more)
            return NULL;
        job->part = more;
        job->room = room;
    }
    job->part[job->n_parts] = (oly_saved_part){0};
    return &job->part[job->n_parts];
}

static oly_status no_room(void)
{
    return oly_out_of_memory(sizeof(oly_saved_part), "the parts of a checkpoint");
}

/* The numbers of the part in the manifest; all but the checksums. */
static oly_status describe(oly_save_job *job, oly_saved_part *p, const oly_box *box)
{
    char header[OLY_NPY_WRITTEN_MOST];
    oly_npy_header h = {.dtype = p->dtype, .rank = p->rank};
    OLY_ARENA_LIST(&job->arena, p->about.start, box->rank);
    OLY_ARENA_LIST(&job->arena, p->about.extent, box->rank);
    for (int d = 0; d < box->rank; d++) {
        p->about.start[d] = box->lo[d];
        p->about.extent[d] = h.shape[d] = box->hi[d] - box->lo[d];
    }
    p->about.bytes = (int64_t)oly_npy_header_write(&h, 1, header) + (int64_t)p->bytes;
    p->about.n_checksums = oly_manifest_chunks(p->about.bytes, job->chunk);
    OLY_ARENA_LIST(&job->arena, p->about.checksum, p->about.n_checksums);
    return OLY_OK;
}

static oly_status list_shard(oly_save_job *job, oly_array x, int s, const char *name, int k, bool now)
{
    int position;
    int64_t replicas, number, offset;
    oly_box box = oly_array_box(x, s, &position);
    size_t element = oly_dtype_size(x->type.dtype), bytes = (size_t)oly_box_count(&box) * element;
    int64_t replica = replica_of(x->sharding, position, &replicas);
    if (bytes == 0 || !own_piece(&box, replica, replicas, bytes, &number, &offset))
        return OLY_OK;
    oly_saved_part *p = another_part(job);
    if (!p)
        return no_room();
    *p = (oly_saved_part){.about = {.array = k, .file = file_name(job, name, k, position, number)},
                          .dtype = x->type.dtype,
                          .rank = x->type.rank,
                          .buffer_bytes = bytes,
                          .offset = (size_t)offset * element,
                          .bytes = (size_t)oly_box_count(&box) * element};
    if (!p->about.file)
        return no_room();
    OLY_TRY(describe(job, p, &box));
    if (now)
        OLY_TRY(oly_buffer_map(x->shard[s], OLY_ACCESS_READ, bytes, &p->host));
    p->buffer = x->shard[s];
    oly_buffer_hold(p->buffer);
    job->n_parts++;
    return OLY_OK;
}

oly_status oly_save_list_parts(oly_save_job *job, oly_array x, const char *name, int k, bool now)
{
    oly_array_wait(x);
    for (int s = 0; s < x->n_shards; s++)
        OLY_TRY(list_shard(job, x, s, name, k, now && !oly_platform_get()->host_memory));
    return OLY_OK;
}

void oly_save_drop_parts(oly_save_job *job)
{
    for (int k = 0; k < job->n_parts; k++) {
        oly_saved_part *p = &job->part[k];
        if (p->host)
            oly_buffer_unmap(p->buffer, OLY_ACCESS_READ, p->buffer_bytes, p->host);
        oly_buffer_drop(p->buffer);
    }
    oly_release(job->part);
    job->part = NULL;
    job->n_parts = job->room = 0;
}
