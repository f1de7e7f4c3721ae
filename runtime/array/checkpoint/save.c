/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_save: checks, agrees with the other ranks, and writes now or in a thread. One checkpoint is written at a time. See
 * checkpoint.h. */
#include "array/checkpoint/checkpoint.h"
#include "array/arguments.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/hash.h"
#include "core/simulate.h"
#include "device/platform.h"
#include "device/queue.h"
#include "file/zlib_late.h"
#include "run/execute.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

static oly_save_job *current; /* owned; the one that is being written, or was and has not been reported */

/* -- the one before ------------------------------------------------------------------------------------------------------ */

static void free_job(oly_save_job *job)
{
    oly_save_drop_parts(job);
    oly_text_free(&job->text);
    oly_arena_free(&job->arena);
    oly_release(job);
}

/* Waits for it, and fails as it did. */
static oly_status settle(void)
{
    oly_save_job *job = current;
    oly_status st = OLY_OK;
    if (!job)
        return OLY_OK;
    if (job->in_thread)
        pthread_join(job->thread, NULL);
    current = NULL;
    if (job->status != OLY_OK)
        st = oly_fail(job->status, "the checkpoint of step %lld in %s was not written: %s", (long long)job->step,
                      job->folder, job->reason);
    free_job(job);
    return st;
}

oly_status oly_checkpoint_end(void)
{
    return settle();
}

/* -- what all ranks must have in common ---------------------------------------------------------------------------------- */

oly_status oly_checkpoint_meet(const char *call)
{
    oly_queue_drain();
    OLY_TRY(oly_run_refused());
    oly_status st = oly_world_meet(call);
    if (st != OLY_OK)
        oly_run_fail(st);
    return st;
}

oly_status oly_checkpoint_agree(oly_status mine, uint64_t arguments, const char *call)
{
    int n = oly_world_size();
    uint64_t *all = mine == OLY_OK ? oly_malloc(sizeof *all * (size_t)n) : NULL;
    if (mine == OLY_OK && !all)
        mine = oly_out_of_memory(sizeof *all * (size_t)n, "the arguments of all ranks");
    oly_status st = oly_checkpoint_meet(call);
    if (st == OLY_OK)
        st = oly_world_vote(mine, call);
    if (st == OLY_OK)
        st = oly_world_gather(&arguments, all, sizeof arguments);
    for (int r = 1; r < n && st == OLY_OK; r++)
        if (all[r] != all[0])
            st = oly_fail(
                OLY_DIVERGED,
                "ranks 0 and %d gave %s different directories, names, types or options; all ranks must give the same",
                r, call);
    oly_release(all);
    return st;
}

static uint64_t hash_of(const char *directory, int n, const char *const *names, const oly_array *arrays,
                        const oly_save_options *o)
{
    uint64_t h = oly_hash_text(oly_hash_mix(1, (uint64_t)o->step), directory);
    h = oly_hash_mix(oly_hash_mix(h, (uint64_t)o->keep), o->async);
    h = oly_hash(oly_hash_text(h, o->text ? o->text : ""), o->values, sizeof *o->values * (size_t)o->n_values);
    for (int k = 0; k < n; k++) {
        const oly_type *t = &arrays[k]->type;
        h = oly_hash_mix(oly_hash_text(h, names[k]), (uint64_t)t->dtype << 8 | (uint64_t)t->rank);
        h = oly_hash_mix(oly_hash(h, t->shape, sizeof *t->shape * (size_t)t->rank), arrays[k]->sharding->hash);
    }
    return h;
}

/* -- checks -------------------------------------------------------------------------------------------------------------- */

static oly_status check_names(int n, const char *const *names)
{
    for (int k = 0; k < n; k++) {
        size_t length = names[k] ? strnlen(names[k], OLY_MANIFEST_MOST_NAME + 1) : 0;
        if (length == 0 || length > OLY_MANIFEST_MOST_NAME)
            return oly_fail(OLY_INVALID, "name %d is %s; a name has 1 to %d bytes", k,
                            !names[k] ? "NULL"
                            : length  ? "longer"
                                      : "empty",
                            OLY_MANIFEST_MOST_NAME);
    }
    return OLY_OK; /* the manifest finds names that are there twice */
}

static oly_status check_lists(const char *directory, int n_names, const char *const *names, int n_arrays,
                              const void *arrays)
{
    OLY_TRY(oly_zlib_need()); /* for checksums */
    if (!directory || !directory[0])
        return oly_fail(OLY_INVALID, "the directory is %s; name the folder of the checkpoints",
                        directory ? "empty" : "NULL");
    if (strnlen(directory, OLY_CHECKPOINT_PATH) > OLY_CHECKPOINT_PATH - 256)
        return oly_fail(OLY_INVALID, "the name of the directory is too long");
    if (n_names < 0 || n_names != n_arrays)
        return oly_fail(OLY_INVALID, "there are %d names for %d arrays; each array has one", n_names, n_arrays);
    if (n_names > 0 && (!names || !arrays))
        return oly_fail(OLY_INVALID, "the list of %s is NULL", names ? "arrays" : "names");
    return check_names(n_names, names);
}

static oly_status check_options(const oly_save_options *o)
{
    if (o->step < 0)
        return oly_fail(OLY_INVALID, "step %lld: the number of a checkpoint is 0 or more", (long long)o->step);
    if (o->keep < -1)
        return oly_fail(OLY_INVALID, "keep %d: give how many stay, or -1 for all", o->keep);
    if (o->n_values < 0 || o->n_values > OLY_MANIFEST_MOST_VALUES || (o->n_values > 0 && !o->values))
        return oly_fail(OLY_INVALID, "%d values%s; a checkpoint has 0 to %d", o->n_values, o->values ? "" : " at NULL",
                        OLY_MANIFEST_MOST_VALUES);
    if (o->text && strnlen(o->text, OLY_MANIFEST_MOST_TEXT + 1) > OLY_MANIFEST_MOST_TEXT)
        return oly_fail(OLY_INVALID, "the text has more than %d bytes", OLY_MANIFEST_MOST_TEXT);
    return OLY_OK;
}

static oly_status check_array(oly_array x, const char *name)
{
    OLY_TRY(oly_array_readable(x));
    if (x->type.unreduced)
        return oly_fail(OLY_SHARDING, "\"%s\" is %s, an unreduced sum over devices; reduce it first with oly_reshard",
                        name, oly_type_short(&x->type));
    return OLY_OK;
}

static oly_status check_arrays(int n, const char *const *names, const oly_array *arrays)
{
    for (int k = 0; k < n; k++) {
        if (!arrays[k])
            return oly_fail(OLY_INVALID, "the array \"%s\" is NULL", names[k]);
        OLY_TRY(check_array(arrays[k], names[k]));
    }
    return OLY_OK;
}

/* -- preparing ----------------------------------------------------------------------------------------------------------- */

/* Rank 0's part of the manifest that it knows alone, in which names that are there twice are found on every rank. */
static oly_status describe(oly_save_job *job, int n, const char *const *names, const oly_array *arrays,
                           const oly_save_options *o)
{
    oly_text *t = &job->text;
    oly_manifest_add_head(t, job->step, job->chunk, o->text, o->n_values, o->values, n);
    for (int k = 0; k < n; k++) {
        char sharding[1024];
        const oly_type *type = &arrays[k]->type;
        oly_sharding_str(arrays[k]->sharding, sharding, sizeof sharding);
        oly_manifest_add_array(t, names[k], type->dtype, type->rank, type->shape, sharding);
    }
    return t->failed ? oly_out_of_memory(t->length, "the manifest of a checkpoint") : OLY_OK;
}

static int64_t chunk_for(int n, const oly_array *arrays)
{
    enum { MOST_CHUNKS = 1 << 20 };
    int64_t bytes = 0, chunk = oly_checkpoint_chunk;
    for (int k = 0; k < n && bytes < INT64_MAX / 4; k++)
        bytes += oly_type_size(&arrays[k]->type) * (int64_t)oly_dtype_size(arrays[k]->type.dtype) / 4 + 1;
    while (chunk < OLY_MANIFEST_MOST_CHUNK && bytes / chunk > MOST_CHUNKS / 4)
        chunk *= 2;
    return chunk;
}

/* Names that are there twice: of few by comparison, of many in the manifest, by rank 0. */
static oly_status check_twice(int n, const char *const *names)
{
    enum { FEW = 1000 };
    for (int k = 0; k < n && n <= FEW; k++)
        for (int j = 0; j < k; j++)
            if (strcmp(names[j], names[k]) == 0)
                return oly_fail(OLY_INVALID, "two arrays have the name \"%s\"; give each its own", names[k]);
    return OLY_OK;
}

static oly_status prepare(oly_save_job **out, const char *directory, int n, const char *const *names,
                          const oly_array *arrays, const oly_save_options *o)
{
    oly_save_job *job = *out = oly_calloc(1, sizeof *job);
    if (!job)
        return oly_out_of_memory(sizeof *job, "a checkpoint");
    OLY_TRY(check_twice(n, names));
    job->step = o->step;
    job->keep = o->keep == 0 ? 2 : o->keep < 0 ? INT32_MAX : o->keep;
    job->chunk = chunk_for(n, arrays);
    snprintf(job->folder, sizeof job->folder, "%s", directory);
    oly_site site = oly_current_site();
    oly_site_text(&site, job->call, sizeof job->call);
    if (oly_world_rank() == 0)
        OLY_TRY(describe(job, n, names, arrays, o));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_save_list_parts(job, arrays[k], names[k], k, o->async));
    return OLY_OK;
}

/* -- starting ------------------------------------------------------------------------------------------------------------ */

/* Rank 0 makes the new checkpoint's folder; all learn its path, or why there is none. */
static oly_status make_folder(oly_save_job *job)
{
    struct {
        int32_t status;
        char path[OLY_CHECKPOINT_PATH], reason[512];
    } made = {0};
    if (oly_world_rank() == 0) {
        made.status = (int32_t)oly_checkpoint_begin(job->folder, job->step, made.path, &job->made_folder);
        snprintf(made.reason, sizeof made.reason, "%.511s", oly_pending_message());
    }
    OLY_TRY(oly_world_share(&made, sizeof made, 0));
    memcpy(job->path, made.path, sizeof job->path);
    if (made.status != OLY_OK && oly_world_rank() != 0)
        return oly_fail((oly_status)made.status, "rank 0: %s", made.reason);
    return (oly_status)made.status;
}

static void *write_in_thread(void *job)
{
    oly_save_write(job);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool start_thread(oly_save_job *job)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    job->in_thread = oly_world_threads() && pthread_create(&job->thread, NULL, write_in_thread, job) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return job->in_thread;
}

static oly_status save(const char *directory, int n_names, const char *const *names, int n_arrays,
                       const oly_array *arrays, const oly_save_options *o)
{
    oly_save_job *job = NULL;
    if (oly_trace_current())
        return oly_fail(OLY_TRACE,
                        "a function is being recorded, nothing is computed yet; save after it has been called");
    oly_queue_drain();
    OLY_TRY(oly_run_refused());
    oly_status st = settle();
    if (st == OLY_OK)
        st = check_lists(directory, n_names, names, n_arrays, arrays);
    if (st == OLY_OK)
        st = check_options(o);
    if (st == OLY_OK)
        st = check_arrays(n_names, names, arrays);
    if (st == OLY_OK && !oly_platform_get()->computes)
        return OLY_OK; /* a simulated machine has no values to save */
    if (st == OLY_OK)
        st = prepare(&job, directory, n_names, names, arrays, o);
    st = oly_checkpoint_agree(st, st == OLY_OK ? hash_of(directory, n_names, names, arrays, o) : 0, "oly_save");
    if (st == OLY_OK)
        st = oly_side_open("oly_save");
    if (st == OLY_OK)
        st = make_folder(job);
    if (st != OLY_OK) {
        if (job)
            free_job(job);
        return st;
    }
    current = job;
    if (o->async && start_thread(job))
        return OLY_OK;
    oly_save_write(job);
    return settle();
}

oly_status oly_save_with(const char *directory, int n_names, const char *const *names, int n_arrays,
                         const oly_array *arrays, oly_save_options options)
{
    OLY_ENTER(OLY_STATE);
    for (int k = 0; arrays && k < n_arrays; k++)
        OLY_TRY(oly_need_array_or_null(arrays[k]));
    return oly_raise(save(directory, n_names, names, n_arrays, arrays, &options));
}

oly_status(oly_save_wait)(void)
{
    OLY_ENTER(OLY_STATE);
    return oly_raise(settle());
}

/* -- what is there ------------------------------------------------------------------------------------------------------- */

static oly_status latest(const char *directory, int64_t *step)
{
    struct {
        int64_t step;
        int32_t status;
        char reason[512];
    } seen = {.step = -1};
    if (!directory || !directory[0])
        return oly_fail(OLY_INVALID, "the directory is %s; name the folder of the checkpoints",
                        directory ? "empty" : "NULL");
    if (oly_trace_current())
        return oly_fail(OLY_TRACE, "a function is being recorded; look before or after it is called");
    OLY_TRY(oly_checkpoint_meet("oly_latest_step"));
    if (oly_world_rank() == 0) {
        int n = 0;
        oly_checkpoint_found *found = NULL;
        seen.status = (int32_t)oly_checkpoint_scan(directory, &n, &found);
        seen.step = n > 0 ? found[0].step : -1;
        snprintf(seen.reason, sizeof seen.reason, "%.511s", oly_pending_message());
        oly_release(found);
    }
    OLY_TRY(oly_world_share(&seen, sizeof seen, 0));
    *step = seen.step;
    if (seen.status != OLY_OK && oly_world_rank() != 0)
        return oly_fail((oly_status)seen.status, "rank 0: %s", seen.reason);
    return (oly_status)seen.status;
}

int64_t(oly_latest_step)(const char *directory)
{
    OLY_ENTER(-1);
    int64_t step = -1;
    return oly_raise(latest(directory, &step)) == OLY_OK ? step : -1;
}
