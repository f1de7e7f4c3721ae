/* SPDX-License-Identifier: BSD-3-Clause */
/* Checkpoints: what the files of this folder share. save.c begins one, parts.c lists what this process writes of it, writer.c
 * writes it (in this thread, or in one of its own), restore.c chooses the one to read, fill.c reads arrays of it, should_stop.c listens
 * to signals. start.c calls oly_checkpoint_end and oly_stop_begin; nobody else includes this.
 *
 *   oly_save       all ranks     parts.c: which boxes this rank writes; vote; rank 0 makes DIR/.step-N.tmp
 *   writer.c       each rank     its parts, fsync              -> rank 0: names, sizes, checksums, or the error
 *                  rank 0        the manifest, fsync, rename   -> all: the outcome
 *   oly_save, oly_save_wait, oly_finalize                         report it */
#ifndef OLY_ARRAY_CHECKPOINT_H
#define OLY_ARRAY_CHECKPOINT_H
#include "array/array.h"
#include "core/arena.h"
#include "core/text.h"
#include "file/checkpoint_folder.h"
#include "file/manifest.h"
#include <olympus.h>
#include <pthread.h>

/* A part of an array that this process writes. */
typedef struct oly_saved_part {
    oly_manifest_part about;
    oly_dtype dtype;
    int rank;
    oly_buffer *buffer; /* held */
    size_t buffer_bytes;
    size_t offset, bytes; /* of the part in it */
    void *host;           /* mapped: the buffer for the host; else NULL */
} oly_saved_part;

/* A checkpoint that is being written. */
typedef struct oly_save_job {
    oly_arena arena; /* of the parts */
    char folder[OLY_CHECKPOINT_PATH], path[OLY_CHECKPOINT_PATH];
    char call[160]; /* "oly_save (heat.c:40)" */
    int64_t step, chunk;
    int keep;
    oly_text text; /* rank 0: the manifest so far; others: their lines of it */
    int n_parts, room;
    oly_saved_part *part;
    int64_t told;                /* ns; when this rank last sent a sign of life */
    bool in_thread, made_folder; /* made_folder: on rank 0 */
    pthread_t thread;
    /* the outcome, the same on all ranks: */
    oly_status status;
    char reason[512];
} oly_save_job;

/* parts.c: lists the parts of x, array number k, that this process writes. `now`: copies for the host are made here, unless it can
 * read the devices' memory. fails OLY_MEMORY, and as devices do. */
oly_status oly_save_list_parts(oly_save_job *job, oly_array x, const char *name, int k, bool now);
void oly_save_drop_parts(oly_save_job *job);
/* writer.c: writes everything and sets the outcome; called once by each rank. */
void oly_save_write(oly_save_job *job);
/* save.c: all ranks have made the same calls, this one included; nothing is queued any more. fails OLY_DIVERGED, naming the calls, OLY_TIMEOUT, or
 * as an earlier call did. */
oly_status oly_checkpoint_meet(const char *call);
/* Then: all ranks have come with these arguments and without an error. fails OLY_DIVERGED, or as another rank did. */
oly_status oly_checkpoint_agree(oly_status mine, uint64_t arguments, const char *call);

/* At oly_finalize: waits for the checkpoint that is being written, and reports its failure. */
oly_status oly_checkpoint_end(void);
/* should_stop.c: handlers, if the option names signals; fails OLY_INVALID. At finalize: the program's own again. */
oly_status oly_stop_begin(void);
void oly_stop_end(void);

/* Bytes that a checksum covers; tests make them few. */
extern int64_t oly_checkpoint_chunk;
#endif
