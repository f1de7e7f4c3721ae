/* SPDX-License-Identifier: BSD-3-Clause */
/* Mapped functions: a function of one device's shards runs on every device (oly_shard_map), with collectives between devices; a
 * function of one element is mapped over a batch (oly_vmap). Included by <olympus.h>; programs include that one. */
#ifndef OLYMPUS_MAP_H
#define OLYMPUS_MAP_H

#include <olympus/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- per-device programs ------------------------------------------------------------------------------------------
 * oly_shard_map(f, user, mesh, OLY_IN(x, y), OLY_SPECS("i", "None, i"), OLY_OUT(z), OLY_SPECS("i"));
 * splits every input by its spec, runs f once per device on shards, and assembles the outputs by theirs. Inside f an array
 * is one device's shard; operations are local, and devices exchange data by the collectives below only. An output spec that
 * does not name an axis asserts that the value is the same along it.
 *
 * The types of values inside show along which mesh axes they vary: "int32[4]{V:i}". Inputs vary along the axes of their spec,
 * results along those of any operand; psum and similar collectives remove axes, oly_axis_index and oly_pvary add them. An
 * output that varies along an axis that its spec does not name is an error, unless .unchecked is given.
 *
 * In a traced function the map becomes part of its plan; outside it is traced, planned and run on every call. Arrays that f
 * captures are the same on every device. f must not fetch values.
 *   in_specs    one for each input, in the notation of oly_named, of manual axes only; must divide the dimensions they split.
 *               Inputs are moved to them (over Explicit axes they must have them)
 *   out_specs   one for each output
 *   returns     OLY_OK, or the error (OLY_ERRORS_RETURN), with the outputs set to NULL
 *   ranks       all ranks of the mesh
 *   fails       OLY_SHAPE (a dimension that its axes do not divide; more than 12 dimensions including the mapped ones),
 *               OLY_SHARDING (a spec that is too long, or names axes that are not manual; an output that may differ along an
 *               axis missing in its spec; an Explicit input with another sharding), OLY_PARSE, OLY_DEVICES, whatever f's
 *               operations fail with
 *   source      jax.shard_map */
typedef struct oly_shard_map_options {
    char first_;            /* not used: lets the macro begin the list */
    const char *axis_names; /* "i, j": these axes are manual, the others stay Auto or Explicit; default all */
    bool unchecked; /* do not track along which axes values vary (check_vma=False): of an output that is the same
                               along an axis by its spec, the first device's value is taken */
} oly_shard_map_options;
OLY_API oly_status oly_shard_map_with(oly_function function, const char *c_name, void *user, oly_mesh mesh,
                                      oly_shard_map_options options, int n_in, const oly_array *in,
                                      const char *const *in_specs, int n_out, oly_array *const *out,
                                      const char *const *out_specs);
#define oly_shard_map(function, user, mesh, ...)                                                                       \
    OLY_AT_AS(oly_shard_map, oly_shard_map_with)                                                                       \
    (function, #function, user, mesh, OLY_OPTIONS_(oly_shard_map_options, ), __VA_ARGS__)
/* The same with options: oly_shard_map_with(f, user, mesh, OLY_MANUAL(.axis_names = "i"), OLY_IN(x), ...). */
#define oly_shard_map_with(function, user, mesh, options, ...)                                                         \
    OLY_AT_AS(oly_shard_map, oly_shard_map_with)(function, #function, user, mesh, options, __VA_ARGS__)
#define OLY_MANUAL(...) OLY_OPTIONS_(oly_shard_map_options, __VA_ARGS__)
/* A list of specs. */
#define OLY_SPECS(...) OLY_LIST_(const char *, NULL, __VA_ARGS__)

/* -- collectives --------------------------------------------------------------------------------------------------
 * Inside oly_shard_map (and over the named batches of oly_vmap). axes: manual axes, "i" or "i, j"; devices along several axes
 * are numbered row-major in the order given. n is the number of devices along them. Operands that are the same along an axis
 * count once per device.
 *   returns  NULL after an error
 *   ranks    as the enclosing map
 *   fails    OLY_SHARDING: an axis that the mesh does not have, or that is not manual here; OLY_TRACE outside of oly_shard_map;
 *            OLY_SHAPE: dimensions that do not exist or that n does not divide */

/* Sum, mean, maximum, minimum over the devices; the result is the same along the axes. Bools are summed as int32; means of
 * integers are floating. The sum of a C number is n times it, without communication.
 * source: jax.lax.psum, pmean, pmax, pmin */
OLY_API oly_array oly_psum(oly_operand x, const char *axes);
OLY_API oly_array oly_pmean(oly_operand x, const char *axes);
OLY_API oly_array oly_pmax(oly_operand x, const char *axes);
OLY_API oly_array oly_pmin(oly_operand x, const char *axes);
#define oly_psum(x, axes)  OLY_AT(oly_psum)(OLY_ARG(x), axes)
#define oly_pmean(x, axes) OLY_AT(oly_pmean)(OLY_ARG(x), axes)
#define oly_pmax(x, axes)  OLY_AT(oly_pmax)(OLY_ARG(x), axes)
#define oly_pmin(x, axes)  OLY_AT(oly_pmin)(OLY_ARG(x), axes)

typedef struct oly_gather_options {
    char first_;    /* not used: lets the macro begin the list */
    int axis;       /* dimension; negative: from the end */
    bool tiled;     /* no new dimension */
    bool invariant; /* the type of the result says that it is the same along the axes */
} oly_gather_options;

/* The devices' values along a new dimension .axis of size n or, if .tiled, concatenated along dimension .axis.
 * source: jax.lax.all_gather (.invariant: to='invarying') */
OLY_API oly_array oly_all_gather_with(oly_array x, const char *axes, oly_gather_options options);
#define oly_all_gather(x, ...)       OLY_AT_AS(oly_all_gather, oly_all_gather_with)(x, OLY_AXES_OPTIONS_(__VA_ARGS__, ))
#define OLY_AXES_OPTIONS_(axes, ...) axes, OLY_OPTIONS_(oly_gather_options, __VA_ARGS__)

/* The sum over the devices, of which each device keeps one part of dimension .axis, which has n elements and is dropped or, if
 * .tiled, is split in n. For bools: whether any is true. source: jax.lax.psum_scatter */
OLY_API oly_array oly_psum_scatter_with(oly_array x, const char *axes, oly_gather_options options);
#define oly_psum_scatter(x, ...) OLY_AT_AS(oly_psum_scatter, oly_psum_scatter_with)(x, OLY_AXES_OPTIONS_(__VA_ARGS__, ))

/* Splits dimension `split` in n parts, sends the k-th to device k, and concatenates the received parts along dimension `concat`.
 * tiled: both dimensions stay; else dimension `split` has n elements and is dropped, and `concat` is a new dimension of the result.
 * source: jax.lax.all_to_all */
OLY_API oly_array oly_all_to_all(oly_array x, const char *axes, int split, int concat, bool tiled);
#define oly_all_to_all(...) OLY_AT(oly_all_to_all)(__VA_ARGS__)

/* Device pairs[k][0] sends its value to device pairs[k][1]; devices that receive nothing get zeros.
 *   fails   OLY_INVALID: a device out of range, or twice as source or as destination
 *   source  jax.lax.ppermute */
OLY_API oly_array oly_ppermute(oly_array x, const char *axes, int n_pairs, const int (*pairs)[2]);
#define oly_ppermute(...) OLY_AT(oly_ppermute)(__VA_ARGS__)
/* oly_ppermute(x, "i", OLY_PAIRS({0, 1}, {1, 0})) */
#ifndef __cplusplus
#define OLY_PAIRS(...)                                                                                                 \
    (int)(sizeof((int const[][2]){{0, 0}, __VA_ARGS__}) / sizeof(int[2]) - 1),                                         \
        ((int const[][2]){{0, 0}, __VA_ARGS__} + 1)
#else
#define OLY_PAIRS(...) OLY_COUNTED_(int[2], {}, __VA_ARGS__)
#endif

/* The number of this device along the axes: int32[], and how many there are (a constant; 0 after an error).
 * source: jax.lax.axis_index, axis_size */
OLY_API oly_array oly_axis_index(const char *axes);
OLY_API int64_t oly_axis_size(const char *axes);
#define oly_axis_index(axes) OLY_AT(oly_axis_index)(axes)
#define oly_axis_size(axes)  OLY_AT(oly_axis_size)(axes)

/* The same value, typed as varying along the axes. Operations do this implicitly where operands disagree.
 * source: jax.lax.pcast(to='varying') */
OLY_API oly_array oly_pvary(oly_array x, const char *axes);
#define oly_pvary(...) OLY_AT(oly_pvary)(__VA_ARGS__)

/* -- batches ------------------------------------------------------------------------------------------------------
 * oly_vmap(f, user, OLY_IN(x, y), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(z), OLY_AXES_OF(0));
 * runs f on all elements of a batch: f sees the inputs without their batch dimensions, and its outputs get one.
 *   in_axes   for each input its batch dimension (negative: from the end), or OLY_UNMAPPED: f sees it whole. All batch
 *             dimensions have the same size, and at least one input has one
 *   out_axes  position of the batch dimension of each output; OLY_UNMAPPED: the output must not depend on the batch
 *   returns   OLY_OK, or the error, with the outputs set to NULL
 *   fails     OLY_SHAPE (no such dimension; sizes differ; too many dimensions), OLY_INVALID
 *   source    jax.vmap */
#define OLY_UNMAPPED (-1000)
typedef struct oly_vmap_options {
    char first_;           /* not used: lets the macro begin the list */
    const char *axis_name; /* collectives inside may name the batch: oly_psum(x, "b") sums over its elements */
} oly_vmap_options;
OLY_API oly_status oly_vmap_with(oly_function function, const char *c_name, void *user, oly_vmap_options options,
                                 int n_in, const oly_array *in, const int *in_axes, int n_out, oly_array *const *out,
                                 const int *out_axes);
#define oly_vmap(function, user, ...)                                                                                  \
    OLY_AT_AS(oly_vmap, oly_vmap_with)(function, #function, user, OLY_OPTIONS_(oly_vmap_options, ), __VA_ARGS__)
/* The same with options: oly_vmap_with(f, user, OLY_BATCH(.axis_name = "b"), OLY_IN(x), ...). */
#define oly_vmap_with(function, user, options, ...)                                                                    \
    OLY_AT_AS(oly_vmap, oly_vmap_with)(function, #function, user, options, __VA_ARGS__)
#define OLY_BATCH(...)   OLY_OPTIONS_(oly_vmap_options, __VA_ARGS__)
#define OLY_AXES_OF(...) OLY_LIST_(int, 0, __VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_all_gather_with(...)   OLY_AT_AS(oly_all_gather, oly_all_gather_with)(__VA_ARGS__)
#define oly_psum_scatter_with(...) OLY_AT_AS(oly_psum_scatter, oly_psum_scatter_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
