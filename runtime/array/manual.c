/* SPDX-License-Identifier: BSD-3-Clause */
/* Recording mapped functions into the open trace. See manual.h. */
#include "array/manual.h"
#include "graph/varying.h"
#include <string.h>

const oly_manual *oly_manual_around(const oly_trace *t)
{
    for (; t; t = t->outer)
        if (t->manual)
            return t->manual;
    return NULL;
}

const oly_manual *oly_manual_with_axis(const oly_trace *t, const char *name)
{
    for (; t; t = t->outer) {
        if (t->batch && oly_mesh_find_axis(t->batch->mesh, name) == 0)
            return t->batch;
        if (t->manual && oly_mesh_find_axis(t->manual->mesh, name) >= 0)
            return t->manual;
    }
    return NULL;
}

void oly_manual_type(const oly_manual *m, oly_type *type)
{
    if (!type->mesh || type->mesh == m->mesh || !oly_mesh_same_grid(type->mesh, m->mesh))
        return;
    type->mesh = m->mesh;
    for (int d = 0; d < type->rank; d++) {
        oly_axis_list old = type->axes[d];
        memset(&type->axes[d], 0, sizeof type->axes[d]);
        for (int k = 0; k < old.n; k++)
            if (!(m->mesh->manual_axes >> old.axis[k] & 1))
                type->axes[d].axis[type->axes[d].n++] = old.axis[k];
    }
}

oly_status oly_manual_sharding(const oly_manual *m, oly_sharding *sharding)
{
    const oly_spec *spec = &(*sharding)->spec;
    if (!oly_mesh_same_grid((*sharding)->mesh, m->mesh))
        return OLY_OK;
    for (int d = 0; d < spec->n_dims; d++)
        for (int k = 0; k < spec->dim[d].n; k++)
            if (m->mesh->manual_axes >> spec->dim[d].axis[k] & 1)
                return oly_fail(
                    OLY_SHARDING,
                    "the sharding names axis '%s', which is manual in this oly_shard_map: a shard cannot be "
                    "split over it again; use collectives",
                    m->mesh->name[spec->dim[d].axis[k]]);
    *sharding = oly_sharding_intern(m->mesh, spec, (*sharding)->written_dims);
    return *sharding ? OLY_OK : OLY_MEMORY;
}

oly_status oly_manual_vary(oly_mesh mesh, unsigned axes, oly_array *x)
{
    oly_trace *t = oly_trace_current();
    oly_node *node;
    if (!t || !axes)
        return OLY_OK;
    OLY_TRY(oly_trace_node(t, *x, &node));
    OLY_TRY(oly_build_vary(t->graph, node, mesh, axes, &node));
    *x = oly_array_traced(t->graph, node);
    return *x ? OLY_OK : OLY_MEMORY;
}

static oly_status record(const oly_mapping *m, const oly_type *types, oly_trace *t)
{
    oly_array *inner, *out;
    oly_node *node;
    OLY_ARENA_LIST(&t->graph->arena, inner, m->n_in);
    OLY_ARENA_LIST(&t->graph->arena, out, m->n_out);
    for (int k = 0; k < m->n_in; k++) {
        OLY_TRY(oly_graph_input(t->graph, &types[k], &node));
        if (!(inner[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = m->n_in;
    unsigned before = oly_raised_count();
    m->function(inner, out, m->user);
    OLY_TRY(oly_check_traced(before, m->name));
    for (int k = 0; k < m->n_out; k++) {
        if (!out[k])
            return oly_fail(OLY_INVALID,
                            "the function %s did not store its output %d; it must set all %d entries of out[]", m->name,
                            k, m->n_out);
        OLY_TRY(oly_trace_node(t, out[k], &node));
        OLY_TRY(oly_graph_output(t->graph, node));
    }
    return OLY_OK;
}

oly_status oly_record_mapped(const oly_mapping *m, const oly_type *types, const oly_manual *manual,
                             const oly_manual *batch, oly_trace *t)
{
    oly_site site = oly_current_site();
    OLY_TRY(oly_trace_open(t, m->name));
    t->manual = manual;
    t->batch = batch;
    oly_status st = record(m, types, t);
    oly_trace_close(t);
    oly_restore_site(site);
    if (st != OLY_OK) {
        oly_graph_free(t->graph);
        t->graph = NULL;
    }
    return st;
}

oly_status oly_call_mapped(oly_recording *record_map, const void *request, const oly_mapping *m, oly_array *const *out)
{
    oly_status st = OLY_OK;
    oly_array *results = NULL;
    bool missing = false;
    if (!m->function || m->n_in < 0 || m->n_out < 1)
        st = oly_fail(OLY_INVALID,
                      "a mapped function takes 0 arrays or more and gives one or more; %d and %d were asked for",
                      m->n_in, m->n_out);
    else if (!(results = oly_calloc((size_t)m->n_out, sizeof *results)))
        st = oly_out_of_memory(sizeof *results * (size_t)m->n_out, "the results of a mapped function");
    for (int k = 0; st == OLY_OK && k < m->n_in; k++)
        missing = missing || !m->in[k];
    if (st == OLY_OK && !missing)
        st = oly_record_or_run(record_map, request, m->name, m->n_in, m->in, m->n_out, results);
    for (int k = 0; k < m->n_out; k++)
        *out[k] = st == OLY_OK && results ? results[k] : NULL;
    oly_release(results);
    return missing ? oly_null_handle() : oly_raise(st);
}
