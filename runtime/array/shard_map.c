/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_shard_map: the function is recorded as a graph on one device's types, which is then batched (transform/batch.h)
 * over the mesh axes into the outer graph. */
#include "array/manual.h"
#include "array/arguments.h"
#include "core/scan.h"
#include "transform/batch.h"
#include <olympus/map.h>
#include <stdio.h>
#include <string.h>

typedef struct request {
    oly_mapping m;
    oly_mesh given;
    const char *const *in_specs, *const *out_specs;
    oly_shard_map_options options;
    /* computed on the way */
    oly_mesh around; /* the outer mesh */
    oly_manual inside;
    oly_batch_axes axes;
    oly_sharding *in, *out, everywhere; /* of the arguments, of the results */
} request;

/* -- axes and specs ------------------------------------------------------------------------------------------------- */

static oly_status read_axis_names(const char *text, oly_mesh mesh, uint32_t *axes)
{
    char word[OLY_AXIS_NAME];
    oly_scanner s = oly_scan_begin(text);
    for (bool more = !oly_scan_end(&s); more; more = oly_scan_take(&s, ',')) {
        if (!oly_scan_word(&s, word, sizeof word))
            return oly_scan_expected(&s, "an axis name");
        int axis = oly_mesh_find_axis(mesh, word);
        if (axis < 0 || mesh->manual_axes >> axis & 1)
            return oly_fail(OLY_SHARDING,
                            axis < 0 ? "axis '%s' of axis_names \"%s\" is not in the mesh"
                                     : "axis '%s' of axis_names \"%s\" is manual already, in the oly_shard_map around",
                            word, text);
        *axes |= 1u << axis;
    }
    return oly_scan_end(&s) ? OLY_OK : oly_scan_expected(&s, "',' or the end");
}

/* The mesh outside and inside the map, and the axes that become Manual. */
static oly_status choose_axes(request *r, const oly_trace *outer)
{
    const oly_manual *around = oly_manual_around(outer);
    oly_mesh mesh = around ? around->mesh : r->given;
    uint32_t every = (1u << mesh->n_axes) - 1, axes = 0;
    if (around && !oly_mesh_same_grid(mesh, r->given)) {
        char have[256], given[256];
        oly_mesh_str(mesh, have, sizeof have);
        oly_mesh_str(r->given, given, sizeof given);
        return oly_fail(OLY_DEVICES, "the mesh %s is not that of the oly_shard_map around, %s", given, have);
    }
    if (r->options.axis_names)
        OLY_TRY(read_axis_names(r->options.axis_names, mesh, &axes));
    else
        axes = every & ~mesh->manual_axes;
    r->around = mesh;
    r->axes = (oly_batch_axes){.all = axes};
    r->axes.mesh = oly_mesh_retyped(mesh, mesh->explicit_axes & ~axes, mesh->manual_axes);
    for (int a = 0; a < mesh->n_axes; a++)
        r->axes.size[a] = mesh->size[a];
    r->inside.mesh = oly_mesh_retyped(mesh, mesh->explicit_axes & ~axes, mesh->manual_axes | axes);
    r->inside.unchecked = r->options.unchecked || (around && around->unchecked);
    if (!r->axes.mesh || !r->inside.mesh)
        return OLY_MEMORY;
    r->everywhere = oly_sharding_intern(r->axes.mesh, &(oly_spec){0}, 0);
    return r->everywhere ? OLY_OK : OLY_MEMORY;
}

static oly_status read_spec(const request *r, oly_mesh mesh, const char *which, int k, const char *text,
                            oly_sharding *sharding)
{
    oly_spec spec;
    if (!text)
        return oly_fail(OLY_INVALID, "%s[%d] is NULL; give a notation such as \"i, None\", or \"\"", which, k);
    OLY_TRY(oly_spec_parse(mesh, text, &spec));
    for (int d = 0; d < spec.n_dims; d++)
        for (int j = 0; j < spec.dim[d].n; j++)
            if (!(r->axes.all >> spec.dim[d].axis[j] & 1))
                return oly_fail(OLY_SHARDING,
                                "%s[%d], \"%s\", names the axis '%s', which is not among the manual axes of this "
                                "oly_shard_map; name those only",
                                which, k, text, r->axes.mesh->name[spec.dim[d].axis[j]]);
    *sharding = oly_sharding_intern(mesh, &spec, spec.n_dims);
    return *sharding ? OLY_OK : OLY_MEMORY;
}

/* An input with an explicit sharding must be sharded as the spec says: nothing explicit moves unless requested. */
static oly_status check_explicit(const request *r, int k, const oly_type *type)
{
    if (type->mesh && type->unreduced & r->axes.all)
        return oly_fail(OLY_SHARDING,
                        "argument %d of %s is %s: an unreduced sum over devices has no shards; reduce it with "
                        "oly_reshard",
                        k, r->m.name, oly_type_short(type));
    uint32_t settled = type->mesh ? r->axes.all & type->mesh->explicit_axes : 0;
    for (int d = 0; d < type->rank; d++) {
        oly_axis_list have = {0}, want = {0};
        for (int j = 0; j < type->axes[d].n; j++)
            if (settled >> type->axes[d].axis[j] & 1)
                have.axis[have.n++] = type->axes[d].axis[j];
        for (int j = 0; d < r->in[k]->spec.n_dims && j < r->in[k]->spec.dim[d].n; j++)
            if (settled >> r->in[k]->spec.dim[d].axis[j] & 1)
                want.axis[want.n++] = r->in[k]->spec.dim[d].axis[j];
        if (!oly_axis_list_equal(&have, &want))
            return oly_fail(
                OLY_SHARDING,
                "argument %d of %s is %s, but in_specs[%d] is \"%s\"; what is sharded over Explicit axes must be "
                "sharded as its spec says: move it with oly_reshard, or change the spec",
                k, r->m.name, oly_type_short(type), k, r->in_specs[k]);
    }
    return OLY_OK;
}

static unsigned named(oly_sharding spec)
{
    unsigned axes = 0;
    for (int d = 0; d < spec->spec.n_dims; d++)
        for (int j = 0; j < spec->spec.dim[d].n; j++)
            axes |= 1u << spec->spec.dim[d].axis[j];
    return axes;
}

/* The type of a shard. */
static oly_status shard_type(const request *r, int k, const oly_type *whole, oly_type *local)
{
    char what[96];
    snprintf(what, sizeof what, "argument %d of %.64s", k, r->m.name);
    OLY_TRY(check_explicit(r, k, whole));
    OLY_TRY(oly_local_type(whole, r->in[k], what, local));
    if (!local->mesh)
        local->mesh = r->around;
    oly_manual_type(&r->inside, local);
    if (!r->inside.unchecked)
        local->varying |= named(r->in[k]);
    return OLY_OK;
}

static oly_status check_output(const request *r, int k, const oly_node *body)
{
    unsigned left = body->type.varying & r->axes.all & ~named(r->out[k]);
    if (!left)
        return oly_sharding_check_rank(r->out[k], body->type.rank);
    oly_type along = {.dtype = OLY_INT32, .mesh = r->inside.mesh, .varying = left};
    char marks[256];
    oly_type_marks(marks, sizeof marks, &along);
    return oly_fail(
        OLY_SHARDING,
        "output %d of %s is %s, but out_specs[%d], \"%s\", does not name the axes of %s; such specs require "
        "replication which can't be statically inferred: name the axes, reduce over them (oly_psum), or give "
        ".unchecked = true",
        k, r->m.name, oly_type_short(&body->type), k, r->out_specs[k], marks);
}

/* -- the map --------------------------------------------------------------------------------------------------------- */

static oly_status put_in(request *r, oly_trace *outer, oly_trace *t, oly_node *const *in, oly_array *out)
{
    oly_lifted *inputs, *outputs;
    OLY_ARENA_LIST(&outer->graph->arena, inputs, t->graph->n_inputs);
    OLY_ARENA_LIST(&outer->graph->arena, outputs, r->m.n_out);
    const oly_graph *body = t->graph;
    for (int k = 0; k < r->m.n_in; k++)
        OLY_TRY(oly_split_up(outer->graph, &r->axes, in[k], r->in[k], &inputs[k]));
    for (int k = 0; k < t->n_captures; k++) {
        oly_node *captured;
        OLY_TRY(oly_trace_node(outer, t->captures[k].array, &captured));
        OLY_TRY(oly_split_up(outer->graph, &r->axes, captured, r->everywhere, &inputs[r->m.n_in + k]));
    }
    OLY_TRY(oly_batch_graph(outer->graph, &r->axes, body, inputs, outputs));
    for (int k = 0; k < r->m.n_out; k++) {
        oly_node *whole;
        OLY_TRY(oly_join_up(outer->graph, &r->axes, outputs[k], r->out[k], &whole));
        if (!(out[k] = oly_array_traced(outer->graph, whole)))
            return OLY_MEMORY;
    }
    return OLY_OK;
}

static oly_status record_map(const void *request_, oly_trace *outer, const oly_array *in, oly_array *out)
{
    request copy = *(const request *)request_, *r = &copy;
    oly_arena *arena = &outer->graph->arena;
    oly_node **nodes;
    oly_type *types;
    oly_trace t;
    OLY_ARENA_LIST(arena, nodes, r->m.n_in);
    OLY_ARENA_LIST(arena, types, r->m.n_in);
    OLY_ARENA_LIST(arena, r->in, r->m.n_in);
    OLY_ARENA_LIST(arena, r->out, r->m.n_out);
    OLY_TRY(choose_axes(r, outer));
    for (int k = 0; k < r->m.n_in; k++) {
        OLY_TRY(oly_trace_node(outer, in[k], &nodes[k]));
        OLY_TRY(read_spec(r, r->axes.mesh, "in_specs", k, r->in_specs[k], &r->in[k]));
        OLY_TRY(shard_type(r, k, &nodes[k]->type, &types[k]));
    }
    for (int k = 0; k < r->m.n_out; k++)
        OLY_TRY(read_spec(r, r->around, "out_specs", k, r->out_specs[k], &r->out[k]));
    oly_status st = oly_record_mapped(&r->m, types, &r->inside, NULL, &t);
    for (int k = 0; st == OLY_OK && k < r->m.n_out; k++)
        st = check_output(r, k, t.graph->outputs[k]);
    if (st == OLY_OK)
        st = put_in(r, outer, &t, nodes, out);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

oly_status(oly_shard_map_with)(oly_function function, const char *c_name, void *user, oly_mesh mesh,
                               oly_shard_map_options options, int n_in, const oly_array *in,
                               const char *const *in_specs, int n_out, oly_array *const *out,
                               const char *const *out_specs)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need(mesh, OLY_HANDLE_MESH), n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    request r = {.m = {function, c_name ? c_name : "shard_map", user, n_in, n_out, in},
                 .given = mesh,
                 .in_specs = in_specs,
                 .out_specs = out_specs,
                 .options = options};
    if ((n_in > 0 && !in_specs) || (n_out > 0 && !out_specs))
        return oly_clear_after(oly_raise(oly_fail(OLY_INVALID, "the list of specs is NULL; give one for each array")),
                               n_out, out);
    return oly_call_mapped(record_map, &r, &r.m, out);
}
