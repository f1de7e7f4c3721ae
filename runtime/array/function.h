/* SPDX-License-Identifier: BSD-3-Clause */
/* What a function handle points to. Private to runtime/array: jit.c creates, traces and calls functions; gradient.c
 * derives others. */
#ifndef OLY_ARRAY_FUNCTION_H
#define OLY_ARRAY_FUNCTION_H
#include "array/compiled.h"
#include <olympus/transform.h>

struct oly_fn_impl {
    oly_owned owned; /* first member */
    bool recording;  /* being recorded now */
    int references;  /* its scope's, and one of each function derived from it */
    oly_function function;
    oly_jit_options options;
    int n_in, n_out;
    char name[64];
    oly_sharding *in_shardings, *out_shardings; /* owned copies or NULL */
    oly_fn inner;                               /* the function it is derived from; a reference; NULL: none */
    void *derived;                              /* how it is derived; owned; NULL: not */
    oly_compiled_cache cache;
};

/* Creates a function in the innermost scope. */
oly_status oly_function_new(oly_function function, const char *c_name, int n_in, int n_out, oly_jit_options options,
                            oly_fn *fn);
void oly_function_hold(oly_fn f);
void oly_function_drop(oly_fn f);
/* Its plan for these inputs, from the cache or newly made. */
oly_status oly_function_plan(oly_fn f, int n_in, const oly_array *in, const oly_plan **plan);
/* Records the function into the open trace, and checks that it stored all outputs. */
oly_status oly_function_record(oly_fn f, const oly_array *in, oly_array *out);
#endif
