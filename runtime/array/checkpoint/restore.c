/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_restore: the newest checkpoint that is whole. Rank 0 looks into the folder and reads manifests for all; every rank reads its
 * boxes; what one rank refuses, all refuse, and try the one before. See checkpoint.h. */
#include "array/checkpoint/fill.h"
#include "array/arguments.h"
#include "array/origin.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/hash.h"
#include "core/simulate.h"
#include "device/platform.h"
#include "device/queue.h"
#include "file/file.h"
#include "run/execute.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is asked for. */
typedef struct request {
    const char *directory;
    int n;
    const char *const *names;
    oly_array **out;        /* owned list of the program's variables */
    oly_sharding *sharding; /* owned, [n] */
    oly_fill *fill;         /* owned, [n] */
    oly_restore_options options;
    char call[160];
} request;

typedef struct reason {
    char text[640];
} reason;

/* -- what is asked for --------------------------------------------------------------------------------------------------- */

static oly_status check_request(const request *r, int n_names)
{
    const oly_restore_options *o = &r->options;
    if (!r->directory || !r->directory[0])
        return oly_fail(OLY_INVALID, "the directory is %s; name the folder of the checkpoints",
                        r->directory ? "empty" : "NULL");
    if (n_names != r->n || r->n < 0)
        return oly_fail(OLY_INVALID, "there are %d names for %d arrays; each array has one", n_names, r->n);
    if (r->n > 0 && !r->names)
        return oly_fail(OLY_INVALID, "the list of names is NULL");
    for (int k = 0; k < r->n; k++)
        if (!r->names[k])
            return oly_fail(OLY_INVALID, "name %d is NULL", k);
    if (o->n_values < 0 || (o->n_values > 0 && !o->values))
        return oly_fail(OLY_INVALID, "room for %d values%s", o->n_values, o->values ? "" : " at NULL");
    if (o->only_step && *o->only_step < 0)
        return oly_fail(OLY_INVALID, "step %" PRId64 ": the number of a checkpoint is 0 or more", *o->only_step);
    return OLY_OK;
}

/* Shardings that are not given are those of the variables' arrays. */
static oly_status choose_shardings(request *r)
{
    for (int k = 0; k < r->n; k++) {
        oly_array like = *r->out[k];
        if (like)
            OLY_TRY(oly_array_readable(like));
        oly_sharding given = r->options.shardings ? r->options.shardings[k] : NULL;
        r->sharding[k] = given ? given : like ? like->sharding : oly_sharding_uncommitted();
        if (!r->sharding[k])
            return oly_out_of_memory(sizeof *r->sharding[k], "a sharding");
        OLY_TRY(oly_sharding_check_closed(r->sharding[k]));
        if (r->sharding[k]->spec.unreduced) /* each device would hold the whole value as its term */
            return oly_fail(OLY_SHARDING,
                            "an array of a checkpoint is no sum of terms: the sharding of \"%s\" has unreduced axes; "
                            "restore it with another one",
                            r->names[k]);
    }
    return OLY_OK;
}

static uint64_t hash_of(const request *r)
{
    const oly_restore_options *o = &r->options;
    uint64_t h = oly_hash_text(oly_hash_mix(2, o->only_step ? (uint64_t)*o->only_step : UINT64_MAX), r->directory);
    h = oly_hash_mix(h, (uint64_t)o->n_values);
    for (int k = 0; k < r->n; k++) {
        oly_array like = *r->out[k];
        h = oly_hash_mix(oly_hash_text(h, r->names[k]), r->sharding[k]->hash);
        h = oly_hash_mix(h, like ? (uint64_t)like->type.dtype << 8 | (uint64_t)like->type.rank : UINT64_MAX);
    }
    return h;
}

/* -- the manifest -------------------------------------------------------------------------------------------------------- */

/* Rank 0 reads it, all get it. *text is released by the caller. */
static oly_status share_manifest(const char *path, char **text, size_t *bytes)
{
    enum { PIECE = 1 << 28 };
    struct {
        int64_t bytes;
        int32_t status;
        char reason[512];
    } head = {0};
    *text = NULL;
    if (oly_world_rank() == 0) {
        char file[OLY_CHECKPOINT_PATH];
        oly_status st = oly_checkpoint_file(path, "manifest", file);
        if (st == OLY_OK)
            st = oly_file_read_all(file, OLY_MANIFEST_MOST_BYTES, text, bytes);
        head.status = (int32_t)st;
        head.bytes = st == OLY_OK ? (int64_t)*bytes : 0;
        snprintf(head.reason, sizeof head.reason, "%.511s", oly_pending_message());
    }
    OLY_TRY(oly_world_share(&head, sizeof head, 0));
    if (head.status != OLY_OK)
        return oly_world_rank() == 0 ? (oly_status)head.status : oly_fail((oly_status)head.status, "%s", head.reason);
    *bytes = (size_t)head.bytes;
    if (oly_world_rank() != 0)
        *text = oly_malloc(*bytes + 1);
    OLY_TRY(oly_world_vote(*text ? OLY_OK : oly_out_of_memory(*bytes, "the manifest of a checkpoint"), "oly_restore"));
    for (size_t at = 0; at < *bytes; at += PIECE)
        OLY_TRY(oly_world_share(*text + at, *bytes - at < PIECE ? *bytes - at : PIECE, 0));
    return OLY_OK;
}

static oly_status check_type(const request *r, int k, const oly_manifest_array *saved)
{
    oly_array like = *r->out[k];
    oly_type there = {.dtype = saved->dtype, .rank = saved->rank};
    memcpy(there.shape, saved->shape, sizeof there.shape);
    if (!like)
        return OLY_OK;
    bool same = like->type.rank == there.rank;
    for (int d = 0; d < there.rank && same; d++)
        same = like->type.shape[d] == there.shape[d];
    if (same && like->type.dtype == there.dtype)
        return OLY_OK;
    return oly_fail(
        same ? OLY_DTYPE : OLY_SHAPE,
        "the array \"%s\" is %s in the checkpoint and %s in the program; give a variable that is NULL to take what "
        "is there",
        r->names[k], oly_type_short(&there), oly_type_short(&like->type));
}

static oly_status not_there(const oly_manifest *m, const char *name)
{
    oly_text t = {0};
    enum { NAMED = 10 };
    for (int k = 0; k < m->n_arrays && k < NAMED; k++)
        oly_text_add(&t, k ? ", \"%s\"" : "\"%s\"", m->array[k].name);
    if (m->n_arrays > NAMED)
        oly_text_add(&t, " and %d more", m->n_arrays - NAMED);
    oly_fail(OLY_INVALID, "the checkpoint of step %" PRId64 " has no array \"%s\"; it has %s", m->step, name,
             m->n_arrays ? oly_text_chars(&t) : "none");
    oly_text_free(&t);
    return OLY_INVALID;
}

static oly_status match(const request *r, const oly_manifest *m, const oly_checkpoint_found *which, const char *path)
{
    const oly_restore_options *o = &r->options;
    if (m->step != which->step)
        return oly_fail(OLY_IO, "its manifest is of step %" PRId64 "; was the folder renamed?", m->step);
    for (int k = 0; k < r->n; k++) {
        int found = oly_manifest_find(m, r->names[k]);
        if (found < 0)
            return not_there(m, r->names[k]);
        OLY_TRY(check_type(r, k, &m->array[found]));
        OLY_TRY(oly_sharding_check_rank(r->sharding[k], m->array[found].rank));
        r->fill[k] = (oly_fill){.path = path, .manifest = m, .saved = &m->array[found], .sharding = r->sharding[k]};
    }
    if (o->values && o->n_values != m->n_values)
        return oly_fail(OLY_INVALID, "the checkpoint of step %" PRId64 " has %d values, and %d are asked for", m->step,
                        m->n_values, o->n_values);
    if (o->text && o->text_size <= strlen(m->text))
        return oly_fail(OLY_INVALID,
                        "the text of the checkpoint of step %" PRId64 " has %zu bytes, and there is room for %zu",
                        m->step, strlen(m->text) + 1, o->text_size);
    return OLY_OK;
}

/* -- one checkpoint ------------------------------------------------------------------------------------------------------ */

/* The outcome of all ranks: of those that have failed the first whose failure is not damage, else the first; and its reason. */
static oly_status decide(oly_status mine, reason *why)
{
    int n = oly_world_size(), first = -1;
    int32_t status = (int32_t)mine, *all = oly_malloc(sizeof *all * (size_t)n);
    snprintf(why->text, sizeof why->text, "%.600s", oly_pending_message());
    OLY_TRY(oly_world_vote(all ? OLY_OK : oly_out_of_memory(sizeof *all * (size_t)n, "the outcome of all ranks"),
                           "oly_restore"));
    oly_status st = oly_world_gather(&status, all, sizeof status);
    for (int r = 0; r < n && st == OLY_OK; r++) {
        bool hard = all[r] != OLY_OK && all[r] != OLY_IO;
        if (all[r] != OLY_OK && (first < 0 || (hard && all[first] == OLY_IO)))
            first = r;
    }
    status = first < 0 ? OLY_OK : all[first];
    oly_release(all);
    if (st != OLY_OK || first < 0)
        return st;
    OLY_TRY(oly_world_share(why, sizeof *why, first));
    oly_drop_message();
    if (oly_world_has_peers() && status == OLY_IO)
        return oly_fail(OLY_IO, "rank %d: %s", first, why->text);
    return oly_fail((oly_status)status, "%s", why->text);
}

static oly_status read_arrays(request *r)
{
    for (int k = 0; k < r->n; k++)
        OLY_TRY(oly_fill_read(&r->fill[k]));
    return OLY_OK;
}

static void drop_fills(request *r)
{
    for (int k = 0; k < r->n; k++)
        oly_fill_drop(&r->fill[k]);
}

/* All arrays, or none: then those that were made are freed again. */
static oly_status make_arrays(request *r)
{
    oly_array *made = oly_calloc((size_t)r->n + 1, sizeof *made);
    oly_status st = made ? OLY_OK : oly_out_of_memory(sizeof *made * (size_t)r->n, "the arrays of a checkpoint");
    st = oly_world_vote(st, "oly_restore");
    for (int k = 0; k < r->n && st == OLY_OK; k++)
        st = oly_fill_array(&r->fill[k], &made[k]);
    st = oly_world_vote(st, "oly_restore");
    for (int k = 0; made && k < r->n; k++) {
        oly_array old = *r->out[k];
        if (st != OLY_OK) {
            if (made[k])
                oly_free(made[k]);
            continue;
        }
        oly_array_take_place(old, made[k]);
        *r->out[k] = made[k];
    }
    oly_release(made);
    return st;
}

static void give_values(const request *r, const oly_manifest *m)
{
    const oly_restore_options *o = &r->options;
    if (o->step)
        *o->step = m->step;
    if (o->text)
        memcpy(o->text, m->text, strlen(m->text) + 1);
    for (int k = 0; o->values && k < m->n_values; k++)
        o->values[k] = m->value[k];
}

/* fails OLY_IO on all ranks: this one is refused. */
static oly_status read_one(request *r, const oly_checkpoint_found *which, const char *path)
{
    char *text = NULL;
    size_t bytes;
    reason why = {0};
    oly_manifest m = {0};
    oly_status st = share_manifest(path, &text, &bytes);
    if (st == OLY_OK) {
        st = oly_manifest_read(text, bytes, &m);
        oly_release(text);
        text = NULL;
        if (st == OLY_OK)
            st = match(r, &m, which, path);
        if (st == OLY_OK)
            st = read_arrays(r);
        st = decide(st, &why);
        if (st == OLY_OK)
            st = make_arrays(r);
    }
    if (st == OLY_OK)
        give_values(r, &m);
    oly_release(text);
    drop_fills(r);
    oly_manifest_free(&m);
    return st;
}

/* -- choosing one -------------------------------------------------------------------------------------------------------- */

enum { MOST_TRIED = 64 };
typedef struct candidates {
    int32_t status, n;
    oly_checkpoint_found found[MOST_TRIED];
    char reason[512];
} candidates;

static oly_status look(const request *r, candidates *c)
{
    if (oly_world_rank() == 0) {
        int n = 0;
        oly_checkpoint_found *found = NULL;
        const int64_t *only = r->options.only_step;
        c->status = (int32_t)oly_checkpoint_scan(r->directory, &n, &found);
        for (int k = 0; k < n && c->n < MOST_TRIED; k++)
            if (!only || found[k].step == *only)
                c->found[c->n++] = found[k];
        snprintf(c->reason, sizeof c->reason, "%.511s", oly_pending_message());
        oly_release(found);
    }
    OLY_TRY(oly_world_share(c, sizeof *c, 0));
    if (c->status != OLY_OK && oly_world_rank() != 0)
        return oly_fail((oly_status)c->status, "rank 0: %s", c->reason);
    return (oly_status)c->status;
}

static oly_status none_there(const request *r)
{
    if (r->options.only_step)
        return oly_fail(OLY_IO, "there is no checkpoint of step %" PRId64 " in %s", *r->options.only_step,
                        r->directory);
    return oly_fail(OLY_IO, "there is no checkpoint in %s", r->directory);
}

/* A line from rank 0; the message becomes the first of all refused ones. */
static void refuse(const request *r, const char *path, bool last, reason *first)
{
    if (!first->text[0])
        snprintf(first->text, sizeof first->text, "%.600s", oly_pending_message());
    if (oly_world_rank() == 0)
        fprintf(stderr, "olympus: %s: refused %s: %s%s\n", r->call, path, oly_pending_message(),
                last ? "" : "; taking the one before");
    oly_drop_message();
}

static oly_status read_newest(request *r, const candidates *c)
{
    reason first = {0};
    for (int k = 0; k < c->n; k++) {
        char path[OLY_CHECKPOINT_PATH];
        OLY_TRY(oly_checkpoint_path(r->directory, &c->found[k], path));
        oly_status st = read_one(r, &c->found[k], path);
        if (st != OLY_IO)
            return st;
        refuse(r, path, k + 1 == c->n, &first);
    }
    return oly_fail(OLY_IO, "no checkpoint in %s can be read, of %d; of the newest: %.600s", r->directory, c->n,
                    first.text);
}

static oly_status restore(request *r, int n_names)
{
    candidates *c = NULL;
    if (oly_trace_current())
        return oly_fail(OLY_TRACE, "a function is being recorded; restore before or after it is called");
    oly_queue_drain();
    OLY_TRY(oly_run_refused());
    if (!oly_platform_get()->computes)
        return oly_simulation_has_no_values("the arrays of a checkpoint");
    oly_status st = check_request(r, n_names);
    if (st == OLY_OK) {
        size_t n = (size_t)r->n + 1;
        c = oly_calloc(1, sizeof *c);
        r->sharding = oly_calloc(n, sizeof *r->sharding);
        r->fill = oly_calloc(n, sizeof *r->fill);
        if (!c || !r->sharding || !r->fill)
            st = oly_out_of_memory(sizeof *c + n * sizeof *r->fill, "restoring a checkpoint");
    }
    if (st == OLY_OK)
        st = choose_shardings(r);
    st = oly_checkpoint_agree(st, st == OLY_OK ? hash_of(r) : 0, "oly_restore");
    if (st == OLY_OK)
        st = look(r, c);
    if (st == OLY_OK)
        st = c->n > 0 ? read_newest(r, c) : none_there(r);
    oly_release(c);
    oly_release(r->sharding);
    oly_release(r->fill);
    return st;
}

static void note_call(request *r)
{
    oly_site site = oly_current_site();
    oly_site_text(&site, r->call, sizeof r->call);
}

oly_status oly_restore_with(const char *directory, int n_names, const char *const *names, int n_out,
                            oly_array *const *out, oly_restore_options options)
{
    OLY_ENTER(OLY_STATE);
    if (n_out > 0)
        OLY_TRY(oly_need_places(n_out, out));
    for (int k = 0; k < n_out; k++)
        OLY_TRY(oly_need_array_or_null(*out[k]));
    if (options.shardings)
        OLY_TRY(oly_need_shardings(n_out, options.shardings));
    request r = {.directory = directory, .n = n_out, .names = names, .out = (oly_array **)out, .options = options};
    note_call(&r);
    return oly_raise(restore(&r, n_names));
}

oly_status oly_restore_arrays_with(const char *directory, int n_names, const char *const *names, int n_arrays,
                                   oly_array *arrays, oly_restore_options options)
{
    OLY_ENTER(OLY_STATE);
    if (n_arrays > 0 && !arrays)
        return oly_raise(oly_fail(OLY_INVALID, "the list of arrays is NULL"));
    oly_array **out = oly_malloc(sizeof *out * ((size_t)(n_arrays > 0 ? n_arrays : 0) + 1));
    if (!out)
        return oly_raise(oly_out_of_memory(sizeof *out * (size_t)n_arrays, "a list of arrays"));
    oly_status st = OLY_OK;
    for (int k = 0; k < n_arrays && st == OLY_OK; k++) {
        out[k] = &arrays[k];
        st = oly_need_array_or_null(arrays[k]);
    }
    if (st == OLY_OK && options.shardings)
        st = oly_need_shardings(n_arrays, options.shardings);
    request r = {.directory = directory, .n = n_arrays, .names = names, .out = out, .options = options};
    note_call(&r);
    if (st == OLY_OK)
        st = oly_raise(restore(&r, n_names));
    oly_release(out);
    return st;
}
