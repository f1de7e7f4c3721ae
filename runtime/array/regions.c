/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions with other Explicit axes: values lose the sharding part of their types on one side and gain it on the
 * other. */
#include "array/alone.h"
#include "array/arguments.h"
#include "graph/build.h"
#include <olympus/regions.h>
#include <string.h>

typedef struct region {
    oly_function function;
    const char *name;
    void *user;
    int n_in, n_out;
    const oly_sharding *in_shardings, *out_shardings; /* one of them: Explicit inside, or outside */
} region;

static oly_status cross(oly_trace *t, oly_array x, const oly_sharding *shardings, int k, oly_array *out)
{
    oly_node *node;
    OLY_TRY(oly_trace_node(t, x, &node));
    OLY_TRY(oly_build_auto_axes(t->graph, node, &node));
    if (shardings)
        OLY_TRY(oly_build_explicit_axes(t->graph, node, shardings[k], &node));
    *out = oly_array_traced(t->graph, node);
    return *out ? OLY_OK : OLY_MEMORY;
}

static oly_status record(const void *request, oly_trace *t, const oly_array *in, oly_array *out)
{
    const region *r = request;
    oly_array *inner, *results;
    OLY_ARENA_LIST(&t->graph->arena, inner, r->n_in);
    OLY_ARENA_LIST(&t->graph->arena, results, r->n_out);
    for (int k = 0; k < r->n_in; k++)
        OLY_TRY(cross(t, in[k], r->in_shardings, k, &inner[k]));
    unsigned before = oly_raised_count();
    r->function(inner, results, r->user);
    OLY_TRY(oly_check_traced(before, r->name));
    for (int k = 0; k < r->n_out; k++) {
        if (!results[k])
            return oly_fail(OLY_INVALID,
                            "the function %s did not store its output %d; it must set all %d entries of out[]", r->name,
                            k, r->n_out);
        OLY_TRY(cross(t, results[k], r->out_shardings, k, &out[k]));
    }
    return OLY_OK;
}

static oly_status check(const region *r, const char *which, int n, const oly_sharding *shardings)
{
    if (r->n_in < 0 || r->n_out < 1)
        return oly_fail(OLY_INVALID, "a region takes 0 arrays or more and gives one or more; %d and %d were asked for",
                        r->n_in, r->n_out);
    if (!shardings && n > 0)
        return oly_fail(OLY_SHARDING, "a region needs %s for each of %d arrays; NULL was given", which, n);
    if (!r->function)
        return oly_fail(OLY_INVALID, "the function is NULL; give one that reads in[] and stores its results in out[]");
    for (int k = 0; k < n; k++)
        if (shardings[k])
            OLY_TRY(oly_sharding_check_closed(shardings[k]));
    for (int k = 0; k < n; k++)
        if (!shardings[k] || !shardings[k]->mesh->explicit_axes)
            return oly_fail(OLY_SHARDING, "%s %d of %s is not over a mesh with Explicit axes (\"x=4:explicit\")", which,
                            k, r->name);
    return OLY_OK;
}

static oly_status run(const region *r, const oly_array *in, oly_array *const *out)
{
    oly_array *results = NULL;
    oly_status st = r->in_shardings ? check(r, "in_shardings entry", r->n_in, r->in_shardings)
                                    : check(r, "out_shardings entry", r->n_out, r->out_shardings);
    for (int k = 0; st == OLY_OK && k < r->n_in; k++)
        if (!in[k])
            st = oly_null_handle();
    if (st == OLY_OK && !(results = oly_calloc((size_t)r->n_out, sizeof *results)))
        st = oly_out_of_memory(sizeof *results * (size_t)r->n_out, "the results of a region");
    if (st == OLY_OK)
        st = oly_record_or_run(record, r, r->name, r->n_in, in, r->n_out, results);
    for (int k = 0; k < r->n_out; k++)
        *out[k] = st == OLY_OK && results ? results[k] : NULL;
    oly_release(results);
    return oly_raise(st);
}

oly_status oly_auto_axes_with(oly_function function, const char *c_name, void *user, int n_in, const oly_array *in,
                              int n_out, oly_array *const *out, const oly_sharding *out_shardings)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    OLY_TRY(oly_clear_after(oly_need_shardings(n_out, out_shardings), n_out, out));
    region r = {function, c_name, user, n_in, n_out, NULL, out_shardings};
    return run(&r, in, out);
}

oly_status oly_explicit_axes_with(oly_function function, const char *c_name, void *user, int n_in, const oly_array *in,
                                  const oly_sharding *in_shardings, int n_out, oly_array *const *out)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    OLY_TRY(oly_clear_after(oly_need_shardings(n_in, in_shardings), n_out, out));
    region r = {function, c_name, user, n_in, n_out, in_shardings, NULL};
    return run(&r, in, out);
}
