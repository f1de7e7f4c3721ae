/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of programs with other Explicit axes than the surrounding program. Included by <olympus.h>; programs include that
 * one. */
#ifndef OLYMPUS_REGIONS_H
#define OLYMPUS_REGIONS_H

#include <olympus/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- regions with other axes -------------------------------------------------------------------------------------
 * oly_auto_axes(f, user, OLY_IN(x, y), OLY_OUT(z), OLY_SHARDINGS(s));
 * runs f on values whose shardings are not part of their types: inside, the planner decides how everything is split, and
 * nothing is refused. The outputs get out_shardings. Useful where many operations have an ambiguous sharding over Explicit
 * axes. In a traced function the region becomes part of its plan; outside it is traced, planned and run.
 *   out_shardings  one for each output, over a mesh with Explicit axes
 *   returns  OLY_OK, or the error (OLY_ERRORS_RETURN), with the outputs set to NULL
 *   ranks    all ranks of the mesh
 *   fails    OLY_INVALID (an output not set), OLY_SHARDING (a spec that does not fit its output), whatever f fails with
 *   source   jax.sharding.auto_axes */
OLY_API oly_status oly_auto_axes_with(oly_function function, const char *c_name, void *user, int n_in,
                                      const oly_array *in, int n_out, oly_array *const *out,
                                      const oly_sharding *out_shardings);
#define oly_auto_axes(function, user, ...)                                                                             \
    OLY_AT_AS(oly_auto_axes, oly_auto_axes_with)(function, #function, user, __VA_ARGS__)

/* oly_explicit_axes(f, user, OLY_IN(x, y), OLY_SHARDINGS(s, t), OLY_OUT(z));
 * The converse: f sees the inputs over the mesh of in_shardings, which has Explicit axes and the same devices; inside,
 * shardings are part of types and mismatches are errors. The outputs keep the shardings of their types, which outside are not
 * part of the type.
 *   source   jax.sharding.explicit_axes */
OLY_API oly_status oly_explicit_axes_with(oly_function function, const char *c_name, void *user, int n_in,
                                          const oly_array *in, const oly_sharding *in_shardings, int n_out,
                                          oly_array *const *out);
#define oly_explicit_axes(function, user, ...)                                                                         \
    OLY_AT_AS(oly_explicit_axes, oly_explicit_axes_with)(function, #function, user, __VA_ARGS__)

/* A list of shardings. */
#define OLY_SHARDINGS(...) OLY_LIST_(oly_sharding, NULL, __VA_ARGS__)

/* -- call sites -----------------------------------------------------------------------------------------------------
 * These record where they are called, like the macros above (calls.h). */
#ifndef OLYMPUS_LIBRARY
#define oly_auto_axes_with(...)     OLY_AT_AS(oly_auto_axes, oly_auto_axes_with)(__VA_ARGS__)
#define oly_explicit_axes_with(...) OLY_AT_AS(oly_explicit_axes, oly_explicit_axes_with)(__VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
