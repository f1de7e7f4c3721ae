/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays and values across processes: which part is whose, arrays from functions, one process's value on all, each process's value
 * on all, meshes over nodes. Included by <olympus.h>; programs include that one. docs/processes.md shows how they are used. */
#ifndef OLYMPUS_PROCESSES_H
#define OLYMPUS_PROCESSES_H

#include <olympus/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- which devices and which part are whose (metadata only; any rank, alone) ------------------------------------------------ */

/* The devices of a process by their global indexes, as oly_mesh_from_devices takes them.
 *   process  its number; -1: this one
 *   ids      room for n of them; the first n are written
 *   returns  how many it has; -1 on failure
 *   fails    OLY_INVALID (no such process, negative n, ids NULL)
 *   source   jax.local_devices(process_index=...) */
OLY_API int oly_local_devices(int process, int n, int *ids);

/* A box of an array: along dimension d the `extent[d]` elements from `start[d]` on. */
typedef struct oly_index_box {
    int rank;
    int64_t start[OLY_MAX_RANK];
    int64_t extent[OLY_MAX_RANK];
} oly_index_box;

/* What a device holds of an array of this shape. (By mesh position: oly_sharding_shard.)
 *   fails   OLY_DEVICES (not a device of the sharding), OLY_SHARDING (spec longer than the rank), OLY_OVERFLOW, OLY_INVALID
 *   source  an entry of jax.sharding.Sharding.devices_indices_map */
OLY_API oly_status oly_sharding_device_box(oly_sharding s, int rank, const int64_t *shape, oly_device device,
                                           oly_index_box *box);

/* The different boxes that the devices of a process hold of an array of this shape, in the order of the mesh. A box that several
 * devices hold counts once, an empty one not at all.
 *   process  its number; -1: this one
 *   boxes    room for n of them; the first n are written
 *   returns  how many there are; 0 for a process without a device of the sharding; -1 on failure
 *   fails    OLY_SHARDING (spec longer than the rank), OLY_OVERFLOW, OLY_INVALID, OLY_MEMORY
 *   source   jax.sharding.Sharding.addressable_devices_indices_map */
OLY_API int oly_sharding_boxes(oly_sharding s, int rank, const int64_t *shape, int process, int n,
                               oly_index_box *boxes);

/* Their union, where it is one box: what a program that reads its own files has to read (and may give to oly_from_local, which
 * then takes box.extent as the local shape). Of a process that holds nothing all extents are 0.
 *   fails   OLY_SHARDING also if the union is not a box: go through oly_sharding_boxes */
OLY_API oly_status oly_sharding_box(oly_sharding s, int rank, const int64_t *shape, int process, oly_index_box *box);

/* -- arrays from functions ------------------------------------------------------------------------------------------------ */

/* Fills one box: memory has room for its elements, row-major, and is to be filled completely (floating types of 8 and 16 bits as
 * their bits). Runs on the calling thread. May use Olympus, but make no calls that other processes would have to make.
 * Returns OLY_OK, or the status with which oly_from_callback then fails. */
typedef oly_status (*oly_shard_function)(const oly_index_box *box, void *memory, void *user);

/* Global array whose shards a function makes: it is called for every different box that devices of this process hold, once on
 * each process that holds it; where several devices of the process hold the same box, the elements are copied. It is not called
 * for empty boxes.
 *   returns  committed; on a process without a device of the sharding an array with this type and no shards
 *   ranks    all ranks of the mesh, which agree on whether the function succeeded (this communicates); others may call
 *   fails    what the function returned, on all ranks of the mesh (those where it succeeded name one where it failed);
 *            OLY_SHARDING, OLY_OVERFLOW, OLY_INVALID, OLY_TRACE, OLY_MEMORY
 *   source   jax.make_array_from_callback */
OLY_API oly_array oly_from_callback(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *shape,
                                    oly_shard_function function, void *user);

/* -- values of one process, or of each, on all -------------------------------------------------------------------------------
 * All of these are called by all ranks, wait for work queued before, and fail alike on all of them. `x` is an array that each process
 * holds completely (oly_is_fully_addressable): its own copy, which may differ. */

typedef struct oly_broadcast_options {
    char first_;    /* not used: lets the macro begin the list */
    bool is_source; /* this process's value is sent; if no process says so, that of process 0 */
} oly_broadcast_options;
#define OLY_BROADCAST_OPTIONS(...) OLY_OPTIONS_(oly_broadcast_options, __VA_ARGS__)

/* One process's value on all: oly_broadcast_one_to_all(x), or oly_broadcast_one_to_all(x, .is_source = mine == best).
 *   x        of the same shape and element type on all processes; its values matter on the source only
 *   returns  uncommitted, equal on all processes
 *   fails    OLY_INVALID (several sources), OLY_DIVERGED (types differ), OLY_NOT_ADDRESSABLE, OLY_DELETED, OLY_TRACE, OLY_TIMEOUT,
 *            OLY_MEMORY
 *   source   jax.experimental.multihost_utils.broadcast_one_to_all */
OLY_API oly_array oly_broadcast_one_to_all_with(oly_array x, oly_broadcast_options options);
#define oly_broadcast_one_to_all(...) oly_broadcast_one_to_all_(__VA_ARGS__, )
#define oly_broadcast_one_to_all_(x, ...)                                                                              \
    OLY_AT_AS(oly_broadcast_one_to_all, oly_broadcast_one_to_all_with)((x), OLY_BROADCAST_OPTIONS(__VA_ARGS__))

/* The same for `bytes` bytes of host memory, which the others' are overwritten with. fails OLY_DIVERGED if sizes differ */
OLY_API oly_status oly_broadcast_host_with(void *data, size_t bytes, oly_broadcast_options options);
#define oly_broadcast_host(...) oly_broadcast_host_(__VA_ARGS__, )
#define oly_broadcast_host_(data, bytes, ...)                                                                          \
    OLY_AT_AS(oly_broadcast_host, oly_broadcast_host_with)((data), (bytes), OLY_BROADCAST_OPTIONS(__VA_ARGS__))

/* The values of all processes, in their order, on each of them: stacked along a new first dimension, or tiled, that is,
 * concatenated along the first one (of numbers, which have none: stacked). buffer holds `bytes` bytes, row-major: process_count
 * times those of x. (A global array is gathered by oly_process_allgather; tiled does the same with one, as JAX.)
 *   fails    OLY_INVALID (buffer too small), OLY_DIVERGED (shapes or element types differ between processes), OLY_NOT_ADDRESSABLE
 *            (stacked of a global array), OLY_DELETED, OLY_TRACE, OLY_TIMEOUT, OLY_MEMORY
 *   source   jax.experimental.multihost_utils.process_allgather with tiled=False, tiled=True */
OLY_API oly_status oly_process_allgather_stacked(oly_array x, void *buffer, size_t bytes);
#define oly_process_allgather_stacked(...) OLY_AT(oly_process_allgather_stacked)(__VA_ARGS__)
OLY_API oly_status oly_process_allgather_tiled(oly_array x, void *buffer, size_t bytes);
#define oly_process_allgather_tiled(...) OLY_AT(oly_process_allgather_tiled)(__VA_ARGS__)

/* The same for `bytes` bytes of host memory of each process: `all` holds process_count times as many. */
OLY_API oly_status oly_allgather_host(const void *mine, size_t bytes, void *all);
#define oly_allgather_host(...) OLY_AT(oly_allgather_host)(__VA_ARGS__)

/* Checks that all processes hold the same bits: fails OLY_DIVERGED, on all of them, with `what` and two that differ. (A barrier with
 * a name is oly_sync.)
 *   source  jax.experimental.multihost_utils.assert_equal */
OLY_API oly_status oly_assert_equal(oly_array x, const char *what);
#define oly_assert_equal(...) OLY_AT(oly_assert_equal)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_local_devices(...)       OLY_AT(oly_local_devices)(__VA_ARGS__)
#define oly_sharding_device_box(...) OLY_AT(oly_sharding_device_box)(__VA_ARGS__)
#define oly_sharding_boxes(...)      OLY_AT(oly_sharding_boxes)(__VA_ARGS__)
#define oly_sharding_box(...)        OLY_AT(oly_sharding_box)(__VA_ARGS__)
#define oly_from_callback(...)       OLY_AT(oly_from_callback)(__VA_ARGS__)
#define oly_broadcast_one_to_all_with(...)                                                                             \
    OLY_AT_AS(oly_broadcast_one_to_all, oly_broadcast_one_to_all_with)(__VA_ARGS__)
#define oly_broadcast_host_with(...) OLY_AT_AS(oly_broadcast_host, oly_broadcast_host_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
