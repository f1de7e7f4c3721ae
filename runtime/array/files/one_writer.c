/* SPDX-License-Identifier: BSD-3-Clause */
/* One process writes. See one_writer.h. */
#include "array/files/one_writer.h"
#include "array/origin.h"
#include "communicator.h"
#include "core/hash.h"
#include "core/simulate.h"
#include "device/platform.h"
#include "file/file.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* -- who ------------------------------------------------------------------------------------------------ */

oly_status oly_one_writer_of(oly_array x, oly_one_writer *w)
{
    oly_mesh mesh = x->sharding->mesh;
    int all = oly_mesh_total_devices();
    *w = (oly_one_writer){.agreeing = mesh, .leaves_out = oly_mesh_leaves_out(mesh)};
    w->process = w->leaves_out ? oly_mesh_keeper(mesh) : 0;
    w->takes_part = !w->leaves_out || x->n_shards > 0;
    if (mesh->everywhere && oly_world_has_peers())
        w->agreeing = (oly_mesh_from_devices)(1, (const char *[]){"device"}, &all, NULL);
    return w->agreeing ? OLY_OK : oly_kept_status();
}

typedef struct outcome {
    int32_t status;
    char text[512];
} outcome;

oly_status oly_tell_outsiders(oly_array x, const oly_one_writer *w, const char *path, oly_status st, const char *what)
{
    if (!w->leaves_out)
        return st;
    uint64_t origin = oly_origin_of(x), id = origin ? oly_hash_text(origin, path) : 0;
    outcome o = {.status = (int32_t)st};
    if (w->process == oly_process_index()) {
        if (st != OLY_OK)
            snprintf(o.text, sizeof o.text, "%s", oly_pending_message());
        bool *has_part = oly_mesh_has(x->sharding->mesh);
        oly_values_keep(id, &o, sizeof o, has_part);
        oly_release(has_part);
    }
    if (w->takes_part)
        return st;
    OLY_TRY(oly_values_ask(w->process, id, &o, sizeof o, what));
    return o.status == OLY_OK ? OLY_OK : oly_fail((oly_status)o.status, "%s (on rank %d)", o.text, w->process);
}

oly_status oly_array_has_value(oly_array x)
{
    OLY_TRY(oly_array_readable(x));
    if (!oly_platform_get()->computes)
        return oly_simulation_has_no_values(oly_type_short(&x->type));
    if (x->type.unreduced)
        return oly_fail(OLY_SHARDING, "the value of %s is an unreduced sum over devices; reduce it with oly_reshard",
                        oly_type_short(&x->type));
    return OLY_OK;
}

/* -- the file ------------------------------------------------------------------------------------------- */

typedef struct writing {
    int file;
    const char *path;
    int64_t offset;
} writing;

static oly_status append(void *to, const void *bytes, size_t n)
{
    writing *w = to;
    OLY_TRY(oly_file_write(w->file, w->path, bytes, n, w->offset));
    w->offset += (int64_t)n;
    return OLY_OK;
}

enum { SUFFIX = sizeof ".0123456789abcdef" };

/* Creates a new file beside the one to be written. */
static oly_status create_beside(const char *path, char *name, size_t size, int *file)
{
    static unsigned made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int k = 0;; k++) {
        unsigned long number = (unsigned long)now.tv_nsec * 31 + (unsigned long)getpid() * 1000003 + ++made;
        snprintf(name, size, "%s.%lx", path, number);
        oly_status st = oly_file_create(name, path, 0666, file);
        oly_file_facts facts;
        if (st == OLY_OK || k == 100 || oly_storage_get()->lstat(name, &facts) != 0)
            return st;
        oly_drop_message();
    }
}

static oly_status write_and_rename(const char *path, const char *name, writing *w,
                                   oly_status (*make)(void *, oly_status (*)(void *, const void *, size_t), void *),
                                   void *what)
{
    oly_status st = make(what, append, w);
    if (st == OLY_OK)
        st = oly_file_sync(w->file, path);
    oly_status closed = oly_file_close(w->file, path);
    if (st == OLY_OK)
        st = closed;
    int renamed = st == OLY_OK ? oly_storage_get()->rename(name, path) : 0;
    if (renamed < 0)
        st = oly_file_fail("write", path, renamed);
    if (st != OLY_OK)
        oly_storage_get()->unlink(name);
    return st;
}

oly_status oly_write_whole_file(const char *path,
                                oly_status (*make)(void *what,
                                                   oly_status (*sink)(void *to, const void *bytes, size_t n), void *to),
                                void *what)
{
    bool exists;
    writing w = {.path = path};
    size_t bytes = strlen(path) + SUFFIX;
    OLY_TRY(oly_file_may_replace(path, &exists));
    char *name = oly_malloc(bytes);
    if (!name)
        return oly_out_of_memory(bytes, "a path");
    oly_status st = create_beside(path, name, bytes, &w.file);
    if (st == OLY_OK)
        st = write_and_rename(path, name, &w, make, what);
    oly_release(name);
    return st;
}
