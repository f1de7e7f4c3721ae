/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, meshes, partition specs and shardings: where data can be. Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_MESH_H
#define OLYMPUS_MESH_H

#include <olympus/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- devices ------------------------------------------------------------------------------------------------------
 * Every process owns an ordered list of local devices; the global list is all local lists in process order. Ids are dense
 * in global order on every layout, so that a program prints the same text however its devices are distributed over processes.
 * ranks (all of these): any rank, alone. */
OLY_API int oly_device_count(void);             /* devices of all processes */
OLY_API int oly_local_device_count(void);       /* devices of this process */
OLY_API oly_device oly_get_device(int index);   /* by global index; fails OLY_INVALID */
OLY_API oly_device oly_local_device(int index); /* by index among this process's; fails OLY_INVALID */
/* The devices of one platform, "cpu" or "cuda" ("gpu"). Where devices are GPUs and OLYMPUS_PLATFORMS names the CPU, too, each process has
 * OLYMPUS_NUM_CPU_DEVICES CPU devices beside them. They are not counted above, and no mesh has them unless the program names them:
 * oly_single_device(oly_platform_device("cpu", 0)), or their ids with oly_mesh_from_devices. A mesh is of one platform; oly_device_put
 * moves arrays between them. Their ids follow those of all GPUs.
 *   returns  0 and an error: OLY_INVALID: no such device; of the count 0, without an error, where the job has none
 *   source   jax.devices("cpu") */
OLY_API int oly_platform_device_count(const char *platform);
OLY_API oly_device oly_platform_device(const char *platform, int index);
OLY_API int oly_device_id(oly_device d);               /* global index */
OLY_API int oly_device_process(oly_device d);          /* the process that owns it */
OLY_API const char *oly_device_platform(oly_device d); /* "cpu", "cuda" */
OLY_API bool oly_device_is_local(oly_device d);
/* Writes "CPU_0" into buffer (of `size` bytes, always terminated); returns the length of the whole text. */
OLY_API int oly_device_str(oly_device d, char *buffer, size_t size);

/* Prints the devices of the job and of this process to standard output, what each of this process's is, and, where they are no GPUs, why:
 *
 *     global devices = [CUDA_0, CUDA_1]
 *     local devices = [CUDA_0]
 *     cpu devices = [CPU_0]
 *     CUDA_0: NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0, 132 multiprocessors, PCI 0000:3b:00.0
 *     driver: CUDA 13.0
 *     NVRTC
 *     no cuBLASLt, so products are Olympus's own: libcublasLt.so.13: cannot open shared object file: No such file or directory
 *     messages between processes: NCCL 2.28.9
 *
 * ranks: any rank, alone. source: print(jax.devices()), print(jax.local_devices()) */
OLY_API void oly_print_devices(void);

/* How the devices of this process have computed since oly_init. CPUs compute in place and count nothing; GPUs launch kernels, and what
 * they have no kernel for goes through the host (docs/gpu.md), which is slow: oly_explain marks such steps.
 *   returns  OLY_OK or the error (OLY_ERRORS_RETURN)
 *   ranks    any rank, alone; calls that are still running count as far as they are
 *   fails    OLY_INVALID if counts is NULL */
typedef struct oly_device_counts {
    int64_t launches;         /* of kernels, one by one */
    int64_t library_products; /* calls of cuBLASLt */
    int64_t graph_launches;   /* of runs of steps that are recorded as CUDA graphs, each one launch */
    int64_t graphs;           /* made for these */
    int64_t graph_updates;    /* of those that were there, for other buffers */
    int64_t speculated; /* iterations of oly_while that were launched before their condition was known; one for each
                               * process of a loop may be in vain */
    int64_t graph_iterations;       /* of counted loops, in graphs of several iterations */
    int64_t conditional_iterations; /* of oly_while, in graphs whose condition the GPU itself reads */
    int64_t on_host;                /* devices' shares of steps that the host has computed */
    int64_t bytes_on_host;          /* copied for these, in both directions */
    int64_t memory; /* bytes of arrays on this process's GPUs now: blocks that the pool holds, free ones among them */
    int64_t memory_peak;  /* the most that were */
    int64_t memory_limit; /* and may be: OLYMPUS_GPU_MEMORY, or what the GPUs have */
} oly_device_counts;
OLY_API oly_status oly_get_device_counts(oly_device_counts *counts);

/* The device on which work without committed arrays runs and on which arrays made without a sharding are placed, uncommitted;
 * committed arrays stay where they are. NULL (initially): the first device of each process. Returns the previous one. Only the
 * process that owns the device computes.
 * ranks: all ranks, with the same device. fails OLY_TRACE while a function is traced. source: jax.default_device */
OLY_API oly_device oly_set_default_device(oly_device device);
#define oly_set_default_device(...) OLY_AT(oly_set_default_device)(__VA_ARGS__)

/* -- meshes -------------------------------------------------------------------------------------------------------
 * An n-dimensional grid of distinct devices with a name for each axis. Equal meshes are the same handle. */

/* Each axis has a type, which determines who decides how values are split over it:
 *   Auto      the planner
 *   Explicit  the program: shardings are part of the types of values (oly_typeof prints "float32[8@x,16]"), result
 *             shardings follow from the operands' alone, nothing moves unless requested (oly_reshard, an output sharding), and
 *             operands that do not fit are errors (OLY_SHARDING)
 *   Manual    no one: inside oly_shard_map the program sees one shard
 * Meshes that differ in a type are different. */
typedef enum oly_axis_type { OLY_AXIS_AUTO, OLY_AXIS_EXPLICIT, OLY_AXIS_MANUAL } oly_axis_type;

/* Mesh from a notation: "i=4, j=2" takes the first 8 devices in row-major order, "i=-1, j=2" all of them (one size may be -1
 * and is inferred). "i=4:explicit, j=2:auto" gives types (default auto). In a job on several nodes these devices are taken node by
 * node and, on a node, socket by socket, so that the last axes stay within a node: where ranks follow one another on the nodes, as
 * launchers place them by default, that is the order of their ids (OLYMPUS_MESH_ORDER=0: always that). GPUs of a
 * process come by groups that NVLink joins.
 *   ranks   all ranks that will use it, with the same arguments
 *   fails   OLY_PARSE (with the column), OLY_INVALID: duplicate axis names, sizes below 1, more devices than there are
 *   source  jax.make_mesh (which on CPU and GPU keeps the order of the list) */
OLY_API oly_mesh oly_make_mesh(const char *axes);
#define oly_make_mesh(...) OLY_AT(oly_make_mesh)(__VA_ARGS__)

/* Mesh of two levels: the outer axes count nodes, the inner ones devices within a node, so collectives along inner axes never cross
 * the network: oly_make_hybrid_mesh("data=-1", "model=4"). An axis named in both has the product of the sizes, the nodes major:
 * ("x=2", "x=4, y=1"). One size of each text may be -1: as many nodes, or devices of a node, as there are. The axes are those of the
 * outer text, then the further ones of the inner; types as above (an axis named in both: the outer one's).
 *   .by_process  each process counts as a node
 *   returns  takes the first nodes and, of each, the first devices
 *   ranks    all ranks that will use it, with the same arguments
 *   fails    OLY_PARSE (with the column), OLY_INVALID: more nodes than there are, or more devices than one of them has (the message
 *            says how many), duplicate names, sizes below 1; OLY_MEMORY
 *   source   jax.experimental.mesh_utils.create_hybrid_device_mesh */
typedef struct oly_hybrid_options {
    char first_; /* not used: lets the macro begin the list */
    bool by_process;
} oly_hybrid_options;
#define OLY_HYBRID_OPTIONS(...) OLY_OPTIONS_(oly_hybrid_options, __VA_ARGS__)
OLY_API oly_mesh oly_make_hybrid_mesh_with(const char *outer, const char *inner, oly_hybrid_options options);
#define oly_make_hybrid_mesh(...) oly_make_hybrid_mesh_(__VA_ARGS__, )
#define oly_make_hybrid_mesh_(outer, inner, ...)                                                                       \
    OLY_AT_AS(oly_make_hybrid_mesh, oly_make_hybrid_mesh_with)(outer, inner, OLY_HYBRID_OPTIONS(__VA_ARGS__))
/* Number of the node of a device, counted in the order of their first processes, and how many nodes the job runs on. */
OLY_API int oly_device_node(oly_device d);
OLY_API int oly_node_count(void);

/* The structured form, over chosen devices. devices: prod(sizes) global indexes in row-major order, or NULL for the first
 * ones. Devices must be distinct and of one platform. fails OLY_INVALID, OLY_PARSE as above; OLY_DEVICES: GPUs and CPUs */
OLY_API oly_mesh oly_mesh_from_devices(int n_axes, const char *const *names, const int *sizes, const int *devices);
#define oly_mesh_from_devices(...) OLY_AT(oly_mesh_from_devices)(__VA_ARGS__)

/* The same mesh with other types of its axes: types[k] is that of axis k, Auto or Explicit. fails OLY_INVALID (Manual) */
OLY_API oly_mesh oly_mesh_with_types(oly_mesh mesh, const oly_axis_type *types);
#define oly_mesh_with_types(...) OLY_AT(oly_mesh_with_types)(__VA_ARGS__)

/* Sets the context mesh (NULL: none) and returns the previous one: oly_P then makes shardings of bare specs. ranks: any rank,
 * alone. fails OLY_INVALID (Manual axes), OLY_TRACE while a function is traced. source: jax.set_mesh */
OLY_API oly_mesh oly_set_mesh(oly_mesh mesh);
#define oly_set_mesh(...) OLY_AT(oly_set_mesh)(__VA_ARGS__)

OLY_API int oly_mesh_axis_count(oly_mesh mesh);
OLY_API const char *oly_mesh_axis_name(oly_mesh mesh, int axis);
OLY_API int oly_mesh_axis_size(oly_mesh mesh, int axis);
OLY_API oly_axis_type oly_mesh_axis_type(oly_mesh mesh, int axis);
OLY_API int oly_mesh_device_count(oly_mesh mesh);
OLY_API oly_device oly_mesh_device(oly_mesh mesh, int position); /* row-major position */
/* Writes "Mesh('i': 4, 'j': 2)", with types unless all are Auto: "Mesh('i': 4, axis_types=(Explicit,))". Returns the whole
 * length. */
OLY_API int oly_mesh_str(oly_mesh mesh, char *buffer, size_t size);

/* -- shardings ----------------------------------------------------------------------------------------------------
 * A partition spec says for each dimension which mesh axes split it, in a notation: "i, j", "i, None", "(i,j)", "". Missing
 * trailing entries mean None (not split), UNCONSTRAINED leaves a dimension to the planner (in constraints only); axes not
 * mentioned replicate. Blocks are balanced: sizes differ by at most one, larger first, so any size may be split over any
 * number of devices. Equal shardings are the same handle. */

/* Sharding over a mesh.
 *   spec    notation as above ("P(i, j)" is accepted too). On Explicit axes also "i, None, unreduced={j}": the value is the sum
 *           of the terms that the devices along j hold; "reduced={j}": the same along j, with a gradient that is unreduced there
 *   ranks   any rank, alone
 *   fails   OLY_PARSE (with the column), OLY_SHARDING: unknown axis, axis used twice, more than 12 entries, UNCONSTRAINED over
 *           a mesh without Auto axes. Whether the spec is longer than an array's rank is checked where it meets the array.
 *   source  jax.sharding.NamedSharding, PartitionSpec */
OLY_API oly_sharding oly_named(oly_mesh mesh, const char *spec);
#define oly_named(...) OLY_AT(oly_named)(__VA_ARGS__)

/* The same over the context mesh (oly_set_mesh). fails OLY_STATE without one. source: a bare jax.sharding.PartitionSpec */
OLY_API oly_sharding oly_P(const char *spec);
#define oly_P(...) OLY_AT(oly_P)(__VA_ARGS__)

/* The structured form. axes[d] lists axis numbers of dimension d, ended by -1; at most 12 dimensions. */
OLY_API oly_sharding oly_named_axes(oly_mesh mesh, int n_dims, const int *const *axes);
#define oly_named_axes(...) OLY_AT(oly_named_axes)(__VA_ARGS__)

/* Everything on one device. */
OLY_API oly_sharding oly_single_device(oly_device device);
#define oly_single_device(...) OLY_AT(oly_single_device)(__VA_ARGS__)

OLY_API oly_mesh oly_sharding_mesh(oly_sharding s);
/* True if every device holds the whole array: no axis of more than one device splits a dimension. */
OLY_API bool oly_sharding_is_replicated(oly_sharding s);
/* True if both place the same elements of a `rank`-dimensional array of this shape on the same devices. */
OLY_API bool oly_sharding_equivalent(oly_sharding a, oly_sharding b, int rank, const int64_t *shape);
/* The part of an array of this shape at a row-major mesh position: start[d] and extent[d], in elements. ranks: any rank, alone.
 * fails OLY_SHARDING (spec longer than the rank), OLY_INVALID (no such position). */
OLY_API oly_status oly_sharding_shard(oly_sharding s, int rank, const int64_t *shape, int position, int64_t *start,
                                      int64_t *extent);
/* Writes "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=P('x', None))", for one device
 * "SingleDeviceSharding(device=CpuDevice(id=0))". Returns the whole length. */
OLY_API int oly_sharding_str(oly_sharding s, char *buffer, size_t size);
/* Writes "P('x', None)". */
OLY_API int oly_spec_str(oly_sharding s, char *buffer, size_t size);

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_device_count(...)           OLY_AT(oly_device_count)(__VA_ARGS__)
#define oly_local_device_count(...)     OLY_AT(oly_local_device_count)(__VA_ARGS__)
#define oly_get_device(...)             OLY_AT(oly_get_device)(__VA_ARGS__)
#define oly_platform_device_count(...)  OLY_AT(oly_platform_device_count)(__VA_ARGS__)
#define oly_platform_device(...)        OLY_AT(oly_platform_device)(__VA_ARGS__)
#define oly_local_device(...)           OLY_AT(oly_local_device)(__VA_ARGS__)
#define oly_device_id(...)              OLY_AT(oly_device_id)(__VA_ARGS__)
#define oly_device_process(...)         OLY_AT(oly_device_process)(__VA_ARGS__)
#define oly_device_platform(...)        OLY_AT(oly_device_platform)(__VA_ARGS__)
#define oly_device_node(...)            OLY_AT(oly_device_node)(__VA_ARGS__)
#define oly_node_count(...)             OLY_AT(oly_node_count)(__VA_ARGS__)
#define oly_make_hybrid_mesh_with(...)  OLY_AT_AS(oly_make_hybrid_mesh, oly_make_hybrid_mesh_with)(__VA_ARGS__)
#define oly_device_is_local(...)        OLY_AT(oly_device_is_local)(__VA_ARGS__)
#define oly_device_str(...)             OLY_AT(oly_device_str)(__VA_ARGS__)
#define oly_get_device_counts(...)      OLY_AT(oly_get_device_counts)(__VA_ARGS__)
#define oly_print_devices(...)          OLY_AT(oly_print_devices)(__VA_ARGS__)
#define oly_mesh_axis_count(...)        OLY_AT(oly_mesh_axis_count)(__VA_ARGS__)
#define oly_mesh_axis_name(...)         OLY_AT(oly_mesh_axis_name)(__VA_ARGS__)
#define oly_mesh_axis_size(...)         OLY_AT(oly_mesh_axis_size)(__VA_ARGS__)
#define oly_mesh_axis_type(...)         OLY_AT(oly_mesh_axis_type)(__VA_ARGS__)
#define oly_mesh_device_count(...)      OLY_AT(oly_mesh_device_count)(__VA_ARGS__)
#define oly_mesh_device(...)            OLY_AT(oly_mesh_device)(__VA_ARGS__)
#define oly_mesh_str(...)               OLY_AT(oly_mesh_str)(__VA_ARGS__)
#define oly_sharding_mesh(...)          OLY_AT(oly_sharding_mesh)(__VA_ARGS__)
#define oly_sharding_is_replicated(...) OLY_AT(oly_sharding_is_replicated)(__VA_ARGS__)
#define oly_sharding_equivalent(...)    OLY_AT(oly_sharding_equivalent)(__VA_ARGS__)
#define oly_sharding_shard(...)         OLY_AT(oly_sharding_shard)(__VA_ARGS__)
#define oly_sharding_str(...)           OLY_AT(oly_sharding_str)(__VA_ARGS__)
#define oly_spec_str(...)               OLY_AT(oly_spec_str)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
