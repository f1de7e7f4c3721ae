/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process owns which device: ids are dense, in the order of the processes; those of CPU devices beside GPUs follow all others. Set
 * once at start. See mesh.h. */
#include "layout/mesh.h"
#include "core/error.h"

static int total_devices, first_local, n_local_devices, n_processes, my_process;
static int each;      /* devices of a process, if all have equally many; 0: see first_of */
static int beside;    /* CPU devices of each process beside its GPUs: ids from total_devices on, in process order */
static int *first_of; /* owned; NULL if all have equally many: first id of each process, and the total */

oly_status oly_mesh_set_devices(int processes, const int *counts, int me)
{
    int64_t total = 0;
    bool alike = true;
    for (int r = 0; r < processes; r++) {
        alike = alike && counts[r] == counts[0];
        total += counts[r];
    }
    if (alike)
        return oly_mesh_set_devices_alike(processes, counts[0], me);
    first_of = oly_malloc(sizeof(int) * (size_t)(processes + 1));
    if (!first_of)
        return oly_out_of_memory(sizeof(int) * (size_t)processes, "the devices of the job");
    each = 0;
    first_of[0] = 0;
    for (int r = 0; r < processes; r++)
        first_of[r + 1] = first_of[r] + counts[r];
    total_devices = (int)total;
    n_processes = processes;
    my_process = me;
    first_local = first_of[me];
    n_local_devices = counts[me];
    return OLY_OK;
}

oly_status oly_mesh_set_devices_alike(int processes, int count, int me)
{
    if ((int64_t)processes * count > INT32_MAX)
        return oly_fail(OLY_OVERFLOW, "%d processes with %d devices each have more than %d", processes, count,
                        INT32_MAX);
    each = count;
    total_devices = processes * count;
    n_processes = processes;
    my_process = me;
    first_local = me * count;
    n_local_devices = count;
    return OLY_OK;
}

int oly_mesh_total_devices(void)
{
    return total_devices;
}
int oly_mesh_processes(void)
{
    return n_processes;
}
int oly_mesh_my_process(void)
{
    return my_process;
}
int oly_mesh_first_local(void)
{
    return first_local;
}
int oly_mesh_local_devices(void)
{
    return n_local_devices + beside;
}

void oly_mesh_set_beside(int of_each_process)
{
    beside = of_each_process;
}

int oly_mesh_all_ids(void)
{
    return total_devices + n_processes * beside;
}

bool oly_mesh_is_beside(oly_mesh mesh)
{
    return mesh->devices && mesh->devices[0] >= total_devices;
}

int oly_mesh_local_id(int local)
{
    return local < n_local_devices ? first_local + local
                                   : total_devices + my_process * beside + (local - n_local_devices);
}

int oly_mesh_local_index(int device_id)
{
    int k = device_id - (device_id < total_devices ? first_local : total_devices + my_process * beside);
    if (k < 0 || k >= (device_id < total_devices ? n_local_devices : beside))
        return -1;
    return device_id < total_devices ? k : n_local_devices + k;
}

/* Id of the first device of a process; for n_processes: the number of devices. */
static int first_device(int process)
{
    return each ? process * each : first_of[process];
}

int oly_mesh_process_of(int device_id)
{
    if (device_id >= total_devices && beside)
        return (device_id - total_devices) / beside;
    if (each)
        return device_id / each;
    int low = 0, high = n_processes - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (first_of[middle + 1] > device_id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int oly_mesh_devices_of(int process, int *first)
{
    *first = first_device(process);
    return first_device(process + 1) - *first;
}

int oly_mesh_devices_in(oly_mesh mesh, int process, int *first)
{
    if (!oly_mesh_is_beside(mesh))
        return oly_mesh_devices_of(process, first);
    *first = total_devices + process * beside;
    return beside;
}

int oly_mesh_devices_each(void)
{
    return each;
}

int oly_mesh_devices_each_in(oly_mesh mesh)
{
    return oly_mesh_is_beside(mesh) ? beside : each;
}

void oly_mesh_forget_devices(void)
{
    oly_release(first_of);
    first_of = NULL;
    each = beside = 0;
}
