/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices of the job: a global list, dense ids, each owned by one process. Filled by oly_devices_start from what
 * every process has. Called by run and array. */
#ifndef OLY_DEVICE_DEVICE_H
#define OLY_DEVICE_DEVICE_H
#include "core/handle.h"
#include <olympus/mesh.h>

struct oly_device_impl {
    oly_tag tag;
    int id;               /* index in the global list */
    int process;          /* owner */
    int local;            /* index among its owner's devices */
    const char *platform; /* "cpu" */
};

/* counts[r]: devices of rank r. */
oly_status oly_devices_start(int n_ranks, const int *counts, int my_rank, const char *platform);
/* The same if every rank has as many. */
oly_status oly_devices_start_alike(int n_ranks, int count, int my_rank, const char *platform);
/* After either: so many CPU devices of every rank beside its GPUs. Their ids follow all others', in the order of ranks; as local devices
 * they follow the GPUs. */
oly_status oly_devices_add_beside(int of_each_rank);
/* How messages between processes go, for oly_print_devices: "NCCL 2.28.9"; "": nothing is said. */
void oly_devices_tell_messages(const char *how);
void oly_devices_stop(void);
const struct oly_device_impl *oly_device_at(int id);
#endif
