/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreeing on a status by an array of what each process reports. See unanimous.h. */
#include "array/unanimous.h"
#include <olympus.h>
#include <string.h>

enum { STATUS_SHIFT = 24 }; /* above the number of a process */

/* The mesh's devices in ascending order, so that those of a process are adjacent; *here of them are this process's.
 * NULL: out of memory. */
static int *sorted_devices(oly_mesh mesh, int64_t *here)
{
    int total = oly_mesh_all_ids(), n = 0;
    int *devices = oly_malloc(sizeof *devices * (size_t)total);
    bool *in = oly_calloc((size_t)total, sizeof *in);
    *here = 0;
    for (int k = 0; devices && in && k < mesh->n_devices; k++)
        in[oly_mesh_device_id(mesh, k)] = true;
    for (int id = 0; devices && in && id < total; id++)
        if (in[id]) {
            devices[n++] = id;
            *here += oly_mesh_process_of(id) == oly_process_index();
        }
    if (!in) {
        oly_release(devices);
        devices = NULL;
    }
    oly_release(in);
    return devices;
}

/* This process's number on each of its devices. */
static oly_array spread(uint32_t number, int n, const int *devices, int64_t here)
{
    int64_t all = n;
    uint32_t *numbers = oly_malloc(sizeof *numbers * (size_t)(here + 1));
    for (int64_t k = 0; numbers && k < here; k++)
        numbers[k] = number;
    oly_mesh line = numbers ? (oly_mesh_from_devices)(1, (const char *[]){"device"}, &n, devices) : NULL;
    oly_array x = line ? (oly_from_local)((oly_named)(line, "device"), OLY_UINT32, 1, &all, numbers, &here) : NULL;
    oly_release(numbers);
    return x;
}

/* Is this process one of several that have devices in the mesh? */
static bool has_part(oly_mesh mesh)
{
    int here = 0;
    for (int k = 0; k < mesh->n_devices; k++)
        here += oly_mesh_process_of(oly_mesh_device_id(mesh, k)) == oly_process_index();
    return here > 0 && here < mesh->n_devices;
}

oly_status oly_unanimous(oly_mesh mesh, oly_status mine, const char *what)
{
    if (mesh->everywhere || !oly_world_has_peers() || !has_part(mesh))
        return mine;
    uint32_t number = mine == OLY_OK ? 0 : (uint32_t)mine << STATUS_SHIFT | (uint32_t)oly_process_index(),
             worst = number;
    int64_t here;
    int *devices = sorted_devices(mesh, &here);
    oly_scope_open();
    oly_array all = devices ? spread(number, mesh->n_devices, devices, here) : NULL;
    oly_array most = all ? oly_max_with(oly_operand_array(all), (oly_reduce_options){0}) : NULL;
    oly_status st = most ? oly_array_fetch(most, &worst) : OLY_MEMORY;
    oly_scope_close();
    oly_release(devices);
    if (st != OLY_OK || mine != OLY_OK)
        return mine != OLY_OK ? mine : oly_kept_status() != OLY_OK ? oly_kept_status() : st;
    oly_status theirs = (oly_status)(worst >> STATUS_SHIFT);
    if (theirs == OLY_OK)
        return OLY_OK;
    return oly_fail(theirs, "%s failed on rank %u, which says why", what, worst & ((1u << STATUS_SHIFT) - 1));
}
