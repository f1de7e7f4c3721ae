/* SPDX-License-Identifier: BSD-3-Clause */
/* Derivatives of the program's own, for oly_custom_vjp and kernels. Private to runtime/array/inside. */
#ifndef OLY_ARRAY_INSIDE_CUSTOM_H
#define OLY_ARRAY_INSIDE_CUSTOM_H
#include "array/trace.h"
#include "graph/call.h"
#include <olympus/inside.h>

typedef struct oly_custom {
    oly_function function, forward, backward;
    int n_in, n_out, n_residuals;
    void *user;
} oly_custom;

/* In the open trace: records forward and backward for the results out[] that the function has computed from in[], and replaces them by
 * values that are differentiated so. */
oly_status oly_custom_attach(const oly_custom *c, const oly_array *in, oly_array *out);
#endif
