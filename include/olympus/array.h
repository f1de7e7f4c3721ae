/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays: making them from host data, placing them, looking at their shards, fetching and printing them.
 * Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_ARRAY_H
#define OLYMPUS_ARRAY_H

#include <olympus/mesh.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- element types ------------------------------------------------------------------------------------------------ */
/* Floating elements of 16 bits are stored as their bits (uint16_t), those of 8 bits likewise (uint8_t), complex ones as pairs of
 * real and imaginary part. float8_e4m3fn has 4 bits of exponent and 3 of fraction, no infinities, and NaN beyond 448;
 * float8_e5m2 has 5 and 2, infinities, and 57344 as its largest number. */
typedef enum oly_dtype {
    OLY_BOOL,
    OLY_INT8,
    OLY_INT16,
    OLY_INT32,
    OLY_INT64,
    OLY_UINT8,
    OLY_UINT16,
    OLY_UINT32,
    OLY_UINT64,
    OLY_FLOAT8_E4M3FN,
    OLY_FLOAT8_E5M2,
    OLY_FLOAT16,
    OLY_BFLOAT16,
    OLY_FLOAT32,
    OLY_FLOAT64,
    OLY_COMPLEX64,
    OLY_COMPLEX128,
    OLY_N_DTYPES
} oly_dtype;

OLY_API const char *oly_dtype_name(oly_dtype dtype); /* "float32" */
OLY_API size_t oly_dtype_size(oly_dtype dtype);      /* bytes of an element */
/* Whether results whose type was not named may have 64 bits (JAX's jax_enable_x64; default: option OLYMPUS_ENABLE_X64, 0).
 * Off: int32 and uint32 promote to int32, an integer array times 0.5 is float32, index results are int32. On: int64, float64,
 * int64. Arrays of 64-bit elements work in both. ranks: the same on all ranks that compute together. */
OLY_API void oly_enable_x64(bool on);
OLY_API bool oly_x64_enabled(void);
/* The common type of two element types, as jax.numpy.promote_types: the higher kind of bool, integer, floating, complex wins
 * (int64 and float32: float32); a signed and an unsigned integer promote to the next wider signed one. An 8-bit floating type has
 * none with another floating or complex type. fails OLY_DTYPE (and returns OLY_N_DTYPES). */
OLY_API oly_dtype oly_promote_types(oly_dtype a, oly_dtype b);

/* -- what an array is (all: any rank, alone; they work while tracing too) ------------------------------------------ */
OLY_API int oly_rank(oly_array x);                   /* number of dimensions; -1 for NULL */
OLY_API int64_t oly_dim(oly_array x, int dimension); /* extent; negative: from the end. fails OLY_INVALID */
#define oly_dim(...) OLY_AT(oly_dim)(__VA_ARGS__)
OLY_API const int64_t *oly_shape(oly_array x); /* rank extents; valid as long as x */
OLY_API int64_t oly_size(oly_array x);         /* number of elements */
OLY_API oly_dtype oly_dtype_of(oly_array x);
OLY_API oly_sharding oly_sharding_of(oly_array x);  /* NULL for traced arrays: the planner has yet to choose */
OLY_API bool oly_is_committed(oly_array x);         /* placed explicitly by the program */
OLY_API bool oly_is_fully_addressable(oly_array x); /* all of its shards are on this process */
/* Writes the type: "float32[4,8]", prefixed with '~' if the element type is weak (it comes from a C number). Returns the whole
 * length. source: jax.typeof */
OLY_API int oly_typeof(oly_array x, char *buffer, size_t size);

/* -- making and placing ------------------------------------------------------------------------------------------- */

/* Array from host memory, copied.
 *   data     row-major elements of `dtype`, oly_size of them; floating types of 8 and 16 bits as their bits
 *   returns  uncommitted, on the default device (each process has its own copy, which must be equal on all)
 *   fails    OLY_INVALID, OLY_OVERFLOW, OLY_MEMORY
 *   source   jax.numpy.asarray */
OLY_API oly_array oly_from_host(const void *data, oly_dtype dtype, int rank, const int64_t *shape);
#define oly_from_host(...) OLY_AT(oly_from_host)(__VA_ARGS__)

/* The same elements with another sharding, committed. Moves between any shardings, meshes and process counts; of an uncommitted
 * array every process splits its own copy. sharding NULL: another handle of the array as it is.
 *   ranks    all ranks that own a device of either sharding
 *   fails    OLY_SHARDING: spec longer than the rank of x; OLY_DIVERGED: the copies of an uncommitted array differ (compared if
 *            the mesh has devices of every process and the array is one of the first 64 or of 1 MiB or more, which waits for
 *            pending work; otherwise a later call that exchanges data fails); OLY_MEMORY
 *   source   jax.device_put */
OLY_API oly_array oly_device_put(oly_array x, oly_sharding sharding);
#define oly_device_put(...) OLY_AT(oly_device_put)(__VA_ARGS__)

/* Global array from the parts of the processes: `data` is this process's part, row-major; along each dimension it consists of the
 * ranges that the devices of this process hold, concatenated in the order of the global array.
 *   local_shape   shape of `data`: the sum of those ranges along each dimension
 *   returns       committed
 *   ranks         all ranks of the mesh (nothing is sent; a rank without a device of the mesh gets an array without shards)
 *   fails         OLY_SHAPE if the local part is not the one that the sharding gives this process; OLY_SHARDING, OLY_OVERFLOW,
 *                 OLY_MEMORY
 *   source        jax.make_array_from_process_local_data (with the global shape given) */
OLY_API oly_array oly_from_local(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape,
                                 const void *data, const int64_t *local_shape);
#define oly_from_local(...) OLY_AT(oly_from_local)(__VA_ARGS__)

/* Global array from one array on each of this process's devices in the sharding: nothing is moved, the parts are shared.
 * Waits until they are computed.
 *   n       devices of this process in the sharding; 0 on a process that has none
 *   shards  each committed to one of those devices (oly_device_put to oly_single_device), in any order, of the element type and
 *           of the shape that its device holds of the global array
 *   returns committed
 *   ranks   all ranks of the mesh (nothing is sent; a rank without a device of the mesh gets an array without shards)
 *   fails   OLY_INVALID (number of parts), OLY_DEVICES (a device twice, or not of the sharding), OLY_SHAPE, OLY_DTYPE,
 *           OLY_SHARDING, OLY_OVERFLOW, OLY_DELETED, OLY_TRACE, OLY_MEMORY
 *   source  jax.make_array_from_single_device_arrays */
OLY_API oly_array oly_from_shards(oly_sharding sharding, oly_dtype dtype, int rank, const int64_t *global_shape, int n,
                                  const oly_array *shards);
#define oly_from_shards(...) OLY_AT(oly_from_shards)(__VA_ARGS__)

/* -- waiting and fetching ----------------------------------------------------------------------------------------- */

/* Waits until the array's shards on this process are computed. ranks: any rank, alone. */
OLY_API oly_status oly_block_until_ready(oly_array x);
#define oly_block_until_ready(...) OLY_AT(oly_block_until_ready)(__VA_ARGS__)

/* Copies the whole array to host memory, row-major; buffer holds `bytes` bytes.
 *   ranks    any rank, alone
 *   fails    OLY_NOT_ADDRESSABLE unless every element is on this process (the message names oly_process_allgather and
 *            OLY_FOR_EACH_SHARD); OLY_INVALID if buffer is too small; OLY_DELETED; OLY_TRACE */
OLY_API oly_status oly_get(oly_array x, void *buffer, size_t bytes);
#define oly_get(...) OLY_AT(oly_get)(__VA_ARGS__)

/* The value of a one-element array, converted to double. Fails like oly_get, and with OLY_SHAPE unless it has one element,
 * OLY_DTYPE if that is complex; returns 0 then. */
OLY_API double oly_item(oly_array x);
#define oly_item(...) OLY_AT(oly_item)(__VA_ARGS__)

/* The whole array on every process: row-major into buffer, which holds `bytes` bytes.
 *   ranks    all ranks of the array's mesh, which gather it among themselves. A rank without devices of the mesh may call, too,
 *            at the same point of the program or later, and gets the value: it waits until a rank of the mesh that has fetched
 *            the array reaches a call, and must have made the array by the same calls with the same data; other calls do not
 *            matter. (Parts given to oly_from_local and oly_from_shards are identified by the line and by how many times it has
 *            run.) A rank of a mesh that leaves ranks out keeps a copy of what it fetches (OLYMPUS_FETCH_MEMORY), and sends up
 *            to 1 MiB to those ranks at once; for more they ask, and it answers in calls of Olympus, not in the program's own
 *            MPI calls
 *   fails    OLY_INVALID if buffer is too small; OLY_DELETED; OLY_TRACE; OLY_DIVERGED, also if ranks outside the mesh ask for a
 *            value that its own ranks do not fetch, fetch only after other calls that all make, or have dropped since;
 *            OLY_TIMEOUT */
OLY_API oly_status oly_process_allgather(oly_array x, void *buffer, size_t bytes);
#define oly_process_allgather(...) OLY_AT(oly_process_allgather)(__VA_ARGS__)

/* A barrier: returns when all processes have called it, so earlier work of each, such as writing files, is done. The name
 * identifies the call. ranks: all ranks. fails OLY_DIVERGED: another process waits under another name; OLY_TIMEOUT, OLY_TRACE,
 * OLY_INVALID.
 * source: jax.experimental.multihost_utils.sync_global_devices */
OLY_API oly_status oly_sync(const char *name);
#define oly_sync(...) OLY_AT(oly_sync)(__VA_ARGS__)

/* -- shards of this process --------------------------------------------------------------------------------------- */
typedef struct oly_shard {
    oly_device device;
    int replica; /* number of preceding devices of the mesh that hold the same elements */
    int rank;
    int64_t start[OLY_MAX_RANK];  /* where it begins in the global array */
    int64_t extent[OLY_MAX_RANK]; /* its size */
    const void *memory; /* its elements, row-major, ready to read; valid as long as the array. On devices whose
                                   * memory the host cannot read, a copy */
    oly_array data;     /* the shard as an array on that device */
    const void *
        device_memory; /* the same elements where the device has them, for CUDA code: complete, and valid as long as the array;
                                * NULL where devices have no memory. On CPUs the same as `memory` */
} oly_shard;

/* Number of shards on this process (0 for traced arrays), and the k-th, in mesh order. oly_get_shard waits for the data; its
 * `data` belongs to the open scope. ranks: any rank, alone. fails OLY_INVALID (no such shard), OLY_TRACE */
OLY_API int oly_shard_count(oly_array x);
OLY_API oly_shard oly_get_shard(oly_array x, int k);

/* OLY_FOR_EACH_SHARD(s, x) { use s.device, s.data }: the loop variable is an oly_shard. */
#define OLY_FOR_EACH_SHARD(s, x)                                                                                       \
    for (int s##_index_ = 0, s##_more_ = 1; s##_more_ && s##_index_ < oly_shard_count(x); s##_index_++)                \
        for (oly_shard s = (s##_more_ = 0, oly_get_shard((x), s##_index_)); !s##_more_; s##_more_ = 1)

/* -- printing ----------------------------------------------------------------------------------------------------- */

/* printf with further conversions: %A an oly_array as text (NumPy's print; a rank-0 array as the shortest text of its value
 * as a double), %R its repr, %T its type, %D an oly_device (CPU_0), %M an oly_mesh, %S an oly_sharding; NULL prints None. Of an
 * array with elements on other processes %A and %R print "Array(shape=(4, 8), dtype=float32)", of a traced one its type. The
 * text is written in one piece and flushed. Returns the number of bytes, or -1. fails OLY_INVALID (unknown conversion), OLY_IO */
OLY_API int oly_printf(const char *format, ...);
OLY_API int oly_fprintf(FILE *file, const char *format, ...);

/* The text of an array, as numpy's str() and repr(): written into buffer; returns the whole length, -1 on failure. repr is
 * "Array([0, 1], dtype=int32)". Arrays with elements on other processes and traced ones as in oly_printf. */
OLY_API int oly_array_str(oly_array x, char *buffer, size_t size);
OLY_API int oly_array_repr(oly_array x, char *buffer, size_t size);

/* Draws which devices hold which part of a 1-D or 2-D array as a table. Metadata only.
 *   ranks   any rank, alone
 *   fails   OLY_SHAPE unless it has 1 or 2 dimensions; OLY_TRACE
 *   source  jax.debug.visualize_array_sharding */
OLY_API oly_status oly_visualize(FILE *file, oly_array x);
#define oly_visualize(...) OLY_AT(oly_visualize)(__VA_ARGS__)
/* The same for a shape and a sharding without an array. */
OLY_API oly_status oly_visualize_sharding(FILE *file, oly_sharding s, int rank, const int64_t *shape);
#define oly_visualize_sharding(...) OLY_AT(oly_visualize_sharding)(__VA_ARGS__)

/* Writes a 2-D array as a PNG image with one pixel per element; small arrays are enlarged (to 256 pixels a side), large ones
 * averaged down (to 1024). Colours go from `low` (dark) to `high` (bright), NaN is grey. The file appears complete or not at all;
 * it may replace a regular file, nothing else.
 *   ranks   all ranks of the array's mesh, with the same range (the data is gathered); process 0 writes, or, if the mesh leaves
 *           ranks out, the process of its first device. Ranks that are left out may call, too, as oly_process_allgather
 *   fails   OLY_SHAPE (not 2-D, or empty), OLY_DTYPE (complex), OLY_INVALID unless low < high, OLY_IO (path and reason); on all
 *           of these ranks */
OLY_API oly_status oly_write_png(const char *path, oly_array x, double low, double high);
#define oly_write_png(...) OLY_AT(oly_write_png)(__VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_dtype_name(...)           OLY_AT(oly_dtype_name)(__VA_ARGS__)
#define oly_dtype_size(...)           OLY_AT(oly_dtype_size)(__VA_ARGS__)
#define oly_enable_x64(...)           OLY_AT(oly_enable_x64)(__VA_ARGS__)
#define oly_x64_enabled(...)          OLY_AT(oly_x64_enabled)(__VA_ARGS__)
#define oly_promote_types(...)        OLY_AT(oly_promote_types)(__VA_ARGS__)
#define oly_rank(...)                 OLY_AT(oly_rank)(__VA_ARGS__)
#define oly_shape(...)                OLY_AT(oly_shape)(__VA_ARGS__)
#define oly_size(...)                 OLY_AT(oly_size)(__VA_ARGS__)
#define oly_dtype_of(...)             OLY_AT(oly_dtype_of)(__VA_ARGS__)
#define oly_sharding_of(...)          OLY_AT(oly_sharding_of)(__VA_ARGS__)
#define oly_is_committed(...)         OLY_AT(oly_is_committed)(__VA_ARGS__)
#define oly_is_fully_addressable(...) OLY_AT(oly_is_fully_addressable)(__VA_ARGS__)
#define oly_typeof(...)               OLY_AT(oly_typeof)(__VA_ARGS__)
#define oly_shard_count(...)          OLY_AT(oly_shard_count)(__VA_ARGS__)
#define oly_get_shard(...)            OLY_AT(oly_get_shard)(__VA_ARGS__)
#define oly_printf(...)               OLY_AT(oly_printf)(__VA_ARGS__)
#define oly_fprintf(...)              OLY_AT(oly_fprintf)(__VA_ARGS__)
#define oly_array_str(...)            OLY_AT(oly_array_str)(__VA_ARGS__)
#define oly_array_repr(...)           OLY_AT(oly_array_repr)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
