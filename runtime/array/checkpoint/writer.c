/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing a checkpoint: every rank its parts, then rank 0 the manifest, then its name. Runs in the thread of oly_save or in one of
 * its own: it touches nothing but the job, files, and the communicator beside the program's calls. See checkpoint.h.
 *
 *   rank r         parts, fsync ... ALIVE ... ALIVE   RESULT (status, its lines of the manifest)   waits     outcome
 *   rank 0         parts, fsync                       collects them, the manifest, rename          OUTCOME to all
 *
 * A rank that has failed reports it like any other outcome, so nobody waits for it. Ranks that are busy with a slow disk send a sign
 * of life every few seconds; large files are synchronised in portions, so that no call takes long. */
#define _GNU_SOURCE
#include "array/checkpoint/checkpoint.h"
#include "communicator.h"
#include "file/file.h"
#include "file/npy_header.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PIECE = 1 << 16 }; /* bytes of a message with lines of the manifest */
static const int64_t SYNC_EVERY = INT64_C(256) << 20, TELL_EVERY = INT64_C(5) * 1000000000;

typedef enum kind { ALIVE = 1, RESULT, OUTCOME } kind;

/* A message between rank 0 and another. */
typedef struct note {
    int32_t kind, status;
    int64_t step, bytes; /* of the lines that follow */
    char reason[400];
} note;

/* -- signs of life ------------------------------------------------------------------------------------------------------- */

static int64_t clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static oly_status send_note(const oly_save_job *job, int rank, const note *n)
{
    return oly_side_send(rank, n, sizeof *n, job->call);
}

/* From time to time: to rank 0, or from it to all. */
static oly_status tell_alive(oly_save_job *job)
{
    int64_t now = clock_now();
    if (!oly_world_has_peers() || now - job->told < TELL_EVERY)
        return OLY_OK;
    note n = {.kind = ALIVE, .step = job->step};
    job->told = now;
    if (oly_world_rank() != 0)
        return send_note(job, 0, &n);
    for (int r = 1; r < oly_world_size(); r++)
        OLY_TRY(send_note(job, r, &n));
    return OLY_OK;
}

/* -- the parts ----------------------------------------------------------------------------------------------------------- */

/* A file that is being written from its beginning, and its checksums. */
typedef struct stream {
    oly_save_job *job;
    const char *path;
    int file;
    int64_t at;
    uint32_t *checksum;
} stream;

static oly_status put(stream *s, const char *bytes, size_t n)
{
    while (n > 0) {
        int64_t chunk = s->at / s->job->chunk, left = (chunk + 1) * s->job->chunk - s->at;
        size_t piece = n < (size_t)left ? n : (size_t)left;
        s->checksum[chunk] = oly_checksum(s->checksum[chunk], bytes, piece);
        OLY_TRY(oly_file_write(s->file, s->path, bytes, piece, s->at));
        int64_t before = s->at;
        s->at += (int64_t)piece;
        bytes += piece;
        n -= piece;
        if (before / SYNC_EVERY != s->at / SYNC_EVERY)
            OLY_TRY(oly_file_sync(s->file, s->path));
        OLY_TRY(tell_alive(s->job));
    }
    return OLY_OK;
}

static oly_status fill_file(oly_save_job *job, oly_saved_part *p, const char *path, int file, const char *host)
{
    char bytes[OLY_NPY_WRITTEN_MOST];
    stream s = {.job = job, .path = path, .file = file, .checksum = p->about.checksum};
    oly_npy_header h = {.dtype = p->dtype, .rank = p->rank};
    for (int d = 0; d < p->rank; d++)
        h.shape[d] = p->about.extent[d];
    OLY_TRY(put(&s, bytes, oly_npy_header_write(&h, 1, bytes)));
    OLY_TRY(put(&s, host + p->offset, p->bytes));
    return oly_file_sync(file, path);
}

static oly_status write_file(oly_save_job *job, oly_saved_part *p, const char *host)
{
    int file;
    char path[OLY_CHECKPOINT_PATH];
    OLY_TRY(oly_checkpoint_file(job->path, p->about.file, path));
    OLY_TRY(oly_file_create(path, path, 0666, &file));
    oly_status st = fill_file(job, p, path, file, host), closed = oly_file_close(file, path);
    return st != OLY_OK ? st : closed;
}

static oly_status write_part(oly_save_job *job, oly_saved_part *p)
{
    void *host = p->host;
    if (!host)
        OLY_TRY(oly_buffer_map(p->buffer, OLY_ACCESS_READ, p->buffer_bytes, &host));
    oly_status st = write_file(job, p, host);
    if (host != p->host)
        oly_buffer_unmap(p->buffer, OLY_ACCESS_READ, p->buffer_bytes, host);
    return st;
}

/* Writes this rank's parts; its lines of the manifest are added to the job's text. */
static oly_status write_parts(oly_save_job *job)
{
    for (int k = 0; k < job->n_parts; k++) {
        OLY_TRY(write_part(job, &job->part[k]));
        oly_manifest_add_part(&job->text, &job->part[k].about, job->part[k].rank);
    }
    if (job->n_parts > 0) {
        int status = oly_storage_get()->fsync_folder(job->path);
        if (status < 0)
            return oly_file_fail("write the folder", job->path, status);
    }
    return job->text.failed ? oly_out_of_memory(job->text.length, "the manifest of a checkpoint") : OLY_OK;
}

/* -- the outcome --------------------------------------------------------------------------------------------------------- */

/* Keeps the pending message of this thread as the reason. */
static void fail_with(oly_save_job *job, oly_status status, int rank)
{
    if (job->status == OLY_OK) {
        job->status = status;
        if (oly_world_has_peers())
            snprintf(job->reason, sizeof job->reason, "rank %d: %.440s", rank, oly_pending_message());
        else
            snprintf(job->reason, sizeof job->reason, "%s", oly_pending_message());
    }
    oly_drop_message();
}

/* Lines of another rank; after running out of memory they are received and forgotten. */
static oly_status receive_lines(oly_save_job *job, int rank, int64_t bytes)
{
    char piece[PIECE];
    for (int64_t at = 0; at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        OLY_TRY(oly_side_receive(rank, piece, n, job->call));
        oly_text_add_chars(&job->text, piece, n);
    }
    return OLY_OK;
}

/* The result of another rank. */
static oly_status collect_one(oly_save_job *job, int rank)
{
    note n = {.kind = ALIVE};
    while (n.kind != RESULT) {
        OLY_TRY(oly_side_receive(rank, &n, sizeof n, job->call));
        OLY_TRY(tell_alive(job));
    }
    n.reason[sizeof n.reason - 1] = '\0';
    if (n.status != OLY_OK) {
        if (job->status == OLY_OK) {
            job->status = (oly_status)n.status;
            snprintf(job->reason, sizeof job->reason, "%s", n.reason);
        }
        return OLY_OK;
    }
    return receive_lines(job, rank, n.bytes);
}

static oly_status write_manifest(oly_save_job *job)
{
    int file;
    char path[OLY_CHECKPOINT_PATH];
    oly_manifest m;
    oly_manifest_add_end(&job->text);
    if (job->text.failed)
        return oly_out_of_memory(job->text.length, "the manifest of a checkpoint");
    if (job->text.length > OLY_MANIFEST_MOST_BYTES)
        return oly_fail(OLY_OVERFLOW, "the manifest has %zu bytes, and may have %d; save fewer arrays, or larger ones",
                        job->text.length, OLY_MANIFEST_MOST_BYTES);
    OLY_TRY(oly_manifest_read(job->text.chars, job->text.length, &m)); /* no rank has left anything out */
    oly_manifest_free(&m);
    OLY_TRY(oly_checkpoint_file(job->path, "manifest", path));
    OLY_TRY(oly_file_create(path, path, 0666, &file));
    oly_status st = oly_file_write(file, path, job->text.chars, job->text.length, 0);
    if (st == OLY_OK)
        st = oly_file_sync(file, path);
    oly_status closed = oly_file_close(file, path);
    return st != OLY_OK ? st : closed;
}

/* Older ones. That they stay is no failure of the checkpoint. */
static void remove_older(const oly_save_job *job)
{
    int64_t later;
    if (oly_checkpoint_prune(job->folder, job->step, job->keep, &later) != OLY_OK)
        fprintf(stderr, "olympus: %s: an older checkpoint stays: %s\n", job->call, oly_pending_message());
    oly_drop_message();
    if (later > job->step)
        fprintf(stderr,
                "olympus: %s: %s has a checkpoint of step %" PRId64 ", later than %" PRId64
                " just saved: a restart takes that one, unless it is removed\n",
                job->call, job->folder, later, job->step);
}

/* Two programs that save into one folder remove each other's beginnings. */
static void look_for_others(oly_save_job *job)
{
    oly_file_facts facts;
    size_t used = strlen(job->reason);
    if (oly_storage_get()->lstat(job->path, &facts) == -ENOENT)
        snprintf(job->reason + used, sizeof job->reason - used,
                 "; what was written is gone: does another program save into this folder? Only one may at a time");
}

/* Rank 0: of what all have written makes a checkpoint, or nothing. */
static void finish(oly_save_job *job)
{
    oly_status st = OLY_OK;
    for (int r = 1; r < oly_world_size() && st == OLY_OK; r++)
        st = collect_one(job, r);
    if (st == OLY_OK && job->status == OLY_OK)
        st = write_manifest(job);
    if (st == OLY_OK && job->status == OLY_OK)
        st = oly_checkpoint_commit(job->folder, job->step, job->path);
    if (st != OLY_OK)
        fail_with(job, st, 0);
    if (job->status == OLY_OK) {
        remove_older(job);
    } else {
        look_for_others(job);
        oly_checkpoint_abandon(job->folder, job->path, job->made_folder);
    }
    note n = {.kind = OUTCOME, .status = (int32_t)job->status, .step = job->step};
    snprintf(n.reason, sizeof n.reason, "%.399s", job->reason);
    for (int r = 1; r < oly_world_size(); r++)
        if (send_note(job, r, &n) != OLY_OK)
            oly_drop_message();
}

/* Another rank: sends its result and waits for the outcome. */
static oly_status report(oly_save_job *job)
{
    note n = {.kind = RESULT, .status = (int32_t)job->status, .step = job->step, .bytes = (int64_t)job->text.length};
    snprintf(n.reason, sizeof n.reason, "%.399s", job->reason);
    OLY_TRY(send_note(job, 0, &n));
    for (size_t at = 0; job->status == OLY_OK && at < job->text.length; at += PIECE) {
        size_t left = job->text.length - at;
        OLY_TRY(oly_side_send(0, job->text.chars + at, left < PIECE ? left : PIECE, job->call));
    }
    while (n.kind != OUTCOME)
        OLY_TRY(oly_side_receive(0, &n, sizeof n, job->call));
    n.reason[sizeof n.reason - 1] = '\0';
    job->status = (oly_status)n.status;
    snprintf(job->reason, sizeof job->reason, "%s", n.reason);
    return OLY_OK;
}

void oly_save_write(oly_save_job *job)
{
    job->told = clock_now();
    oly_status st = write_parts(job);
    if (st != OLY_OK)
        fail_with(job, st, oly_world_rank());
    if (oly_world_rank() == 0)
        finish(job);
    else if ((st = report(job)) != OLY_OK)
        fail_with(job, st, oly_world_rank());
    oly_save_drop_parts(job); /* at once: the program may need the memory */
}
