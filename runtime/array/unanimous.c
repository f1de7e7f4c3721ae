/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreeing on a status by an array of what each process reports. See unanimous.h. */
#include "array/unanimous.h"
#include <olympus.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_SHIFT = 24 /* above the number of a process */, TEXT = 128 /* words of a message */ };

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

/* n words on each of this process's devices, as rows of an array over the devices; the largest of each column in most. */
static oly_status largest(const int *devices, int total, int64_t here, int n, const uint32_t *mine, uint32_t *most)
{
    int64_t all[2] = {total, n}, local[2] = {here, n};
    size_t bytes = sizeof *mine * (size_t)(here * n + 1);
    uint32_t *rows = oly_malloc(bytes);
    if (!rows)
        return oly_out_of_memory(bytes, "agreeing on a status");
    for (int64_t k = 0; k < here; k++)
        memcpy(rows + k * n, mine, sizeof *mine * (size_t)n);
    oly_scope_open();
    oly_mesh line = (oly_mesh_from_devices)(1, (const char *[]){"device"}, &total, devices);
    oly_array x = line ? (oly_from_local)((oly_named)(line, "device"), OLY_UINT32, 2, all, rows, local) : NULL;
    oly_array found = x ? oly_max_with(oly_operand_array(x), (oly_reduce_options){.axes = "0"}) : NULL;
    oly_status st = found ? oly_array_fetch(found, most) : OLY_MEMORY;
    oly_scope_close();
    oly_release(rows);
    return st == OLY_OK || oly_kept_status() == OLY_OK ? st : oly_kept_status();
}

/* Is this process one of several that have devices in the mesh? */
static bool has_part(oly_mesh mesh)
{
    int here = 0;
    for (int k = 0; k < mesh->n_devices; k++)
        here += oly_mesh_process_of(oly_mesh_device_id(mesh, k)) == oly_process_index();
    return here > 0 && here < mesh->n_devices;
}

/* Some failed; the text of the one whose number is `worst`, on all. Others that failed keep their own. */
static oly_status share_text(const int *devices, int total, int64_t here, oly_status mine, uint32_t number,
                             uint32_t worst)
{
    uint32_t words[TEXT] = {0}, texts[TEXT];
    char text[sizeof texts + 1] = "";
    if (number == worst)
        snprintf((char *)words, sizeof words, "%s", oly_pending_message());
    oly_status st = largest(devices, total, here, TEXT, words, texts);
    if (mine != OLY_OK || st != OLY_OK)
        return mine != OLY_OK ? mine : st;
    memcpy(text, texts, sizeof texts);
    return oly_fail((oly_status)(worst >> STATUS_SHIFT), "%s (on rank %u)", text, worst & ((1u << STATUS_SHIFT) - 1));
}

oly_status oly_unanimous(oly_mesh mesh, oly_status mine)
{
    if (mesh->everywhere || !oly_world_has_peers() || !has_part(mesh))
        return mine;
    uint32_t number = mine == OLY_OK ? 0 : (uint32_t)mine << STATUS_SHIFT | (uint32_t)oly_process_index(),
             worst = number;
    int64_t here;
    int *devices = sorted_devices(mesh, &here);
    oly_status st = devices ? largest(devices, mesh->n_devices, here, 1, &number, &worst)
                            : oly_out_of_memory(sizeof *devices * (size_t)mesh->n_devices, "agreeing on a status");
    if (st == OLY_OK && worst != 0)
        st = share_text(devices, mesh->n_devices, here, mine, number, worst);
    oly_release(devices);
    return mine != OLY_OK ? mine : st;
}
