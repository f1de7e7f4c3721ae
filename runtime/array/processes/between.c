/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory exchanged through arrays. See between.h. */
#include "array/processes/between.h"
#include "array/origin.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/error.h"
#include "device/platform.h"
#include "run/execute.h"
#include <olympus.h>
#include <string.h>

oly_status oly_between_ready(void)
{
    if (oly_trace_current())
        return oly_fail(OLY_TRACE, "a function is being recorded: call this before or after it is called");
    return OLY_OK;
}

oly_status oly_between_give_up(oly_status status)
{
    return oly_world_has_peers() ? oly_run_give_up(status) : status;
}

/* The first device of each process along an axis; *mesh NULL after an error that was raised. */
static void find_processes(oly_mesh *mesh)
{
    int n = oly_mesh_processes(), *first = oly_malloc(sizeof *first * (size_t)n);
    *mesh = NULL;
    if (!first) {
        oly_raise(oly_out_of_memory(sizeof *first * (size_t)n, "the processes of the job"));
        return;
    }
    for (int r = 0; r < n; r++)
        oly_mesh_devices_of(r, &first[r]);
    *mesh = (oly_mesh_from_devices)(1, (const char *[]){"process"}, &n, first);
    oly_release(first);
}

/* The status of a part that the public functions below it have raised. */
static oly_status raised(unsigned before)
{
    oly_status st = oly_raised_since(before);
    return st != OLY_OK ? st : OLY_MEMORY;
}

oly_status oly_between_gather(const void *mine, size_t bytes, void *all)
{
    if (!oly_world_has_peers() || !oly_platform_get()->computes) { /* of a simulated job all have the same */
        for (int r = 0; r < oly_mesh_processes() && bytes; r++)
            memmove((char *)all + bytes * (size_t)r, mine, bytes);
        return OLY_OK;
    }
    unsigned before = oly_raised_count();
    oly_scope_open();
    oly_mesh mesh;
    find_processes(&mesh);
    int64_t shape[] = {oly_mesh_processes(), (int64_t)bytes}, here[] = {1, (int64_t)bytes};
    oly_array parts = mesh ? (oly_from_local)((oly_named)(mesh, "process"), OLY_UINT8, 2, shape, mine, here) : NULL;
    oly_array whole = parts ? (oly_device_put)(parts, (oly_named)(mesh, "")) : NULL;
    oly_status st = whole ? oly_array_fetch(whole, all) : raised(before);
    oly_scope_close();
    return st;
}

/* -- from one to all -------------------------------------------------------------------------------------------------- */

oly_status oly_between_from_source(const oly_type *type, int source, const void *data, oly_array *x)
{
    int first, here = source == oly_mesh_my_process();
    size_t bytes = (size_t)oly_type_size(type) * oly_dtype_size(type->dtype);
    oly_mesh_devices_of(source, &first);
    oly_sharding one = (oly_single_device)(oly_get_device(first));
    *x = one ? oly_array_new(type, one, true, here) : NULL;
    if (!*x)
        return OLY_MEMORY;
    (*x)->identity.origin = OLY_ORIGIN_OWN; /* only the source knows it */
    if (!here)
        return OLY_OK;
    (*x)->shard[0] = oly_buffer_take(0, bytes);
    if (!(*x)->shard[0])
        return oly_buffer_fail(bytes, "a value for all processes");
    return data ? oly_buffer_write((*x)->shard[0], bytes, data) : OLY_OK;
}

oly_status oly_between_send(oly_array x, oly_array *result)
{
    unsigned before = oly_raised_count();
    oly_mesh mesh;
    find_processes(&mesh);
    oly_array there = mesh ? (oly_device_put)(x, (oly_named)(mesh, "")) : NULL;
    if (!there)
        return raised(before);
    oly_array_wait(there);
    oly_status st = oly_run_refused();
    *result = st == OLY_OK ? oly_array_new(&x->type, oly_sharding_default(), false, there->n_shards) : NULL;
    if (!*result)
        return st == OLY_OK ? OLY_MEMORY : st;
    for (int s = 0; s < there->n_shards; s++) {
        (*result)->shard[s] = there->shard[s];
        oly_buffer_hold(there->shard[s]);
    }
    oly_free(there);
    return OLY_OK;
}
