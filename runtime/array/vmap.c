/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_vmap: the function is recorded as a graph on one element's types, which is then batched (transform/batch.h). */
#include "array/manual.h"
#include "array/arguments.h"
#include "transform/batch.h"
#include <olympus/map.h>
#include <inttypes.h>
#include <string.h>

typedef struct request {
    oly_mapping m;
    oly_vmap_options options;
    const int *in_axes, *out_axes;
    struct oly_mesh_impl named; /* a named batch as a mesh axis for collectives; no devices */
    oly_batch_axes axes;
} request;

static oly_status dimension(const request *r, const char *what, int k, const oly_type *type, int rank, int axis, int *d)
{
    *d = axis < 0 ? axis + rank : axis;
    if (*d < 0 || *d >= rank)
        return oly_fail(OLY_SHAPE, "%s %d of %s, %s, is mapped over dimension %d, which does not exist", what, k,
                        r->m.name, oly_type_short(type), axis);
    return OLY_OK;
}

/* Over Explicit axes all batches are split alike. One made without a mesh adapts. */
static oly_status take_split(request *r, int k, const oly_type *whole, int d)
{
    if (!whole->mesh || !whole->mesh->explicit_axes)
        return OLY_OK;
    if (r->axes.split_mesh && !oly_axis_list_equal(&r->axes.split, &whole->axes[d]))
        return oly_fail(OLY_SHARDING,
                        "argument %d of %s, %s, is mapped over dimension %d, but the batch of those before is split "
                        "in another way; move one with oly_reshard [vmap_mismatch]",
                        k, r->m.name, oly_type_short(whole), d);
    r->axes.split_mesh = whole->mesh;
    r->axes.split = whole->axes[d];
    return OLY_OK;
}

/* The axes that split the batch split nothing that all elements share. */
static oly_status check_unmapped(const request *r, int k, const oly_type *type)
{
    for (int d = 0; r->in_axes[k] == OLY_UNMAPPED && type->mesh && d < type->rank; d++)
        for (int i = 0; i < type->axes[d].n; i++)
            for (int j = 0; j < r->axes.split.n; j++)
                if (type->axes[d].axis[i] == r->axes.split.axis[j])
                    return oly_fail(OLY_SHARDING,
                                    "argument %d of %s, %s, is not mapped, but split over axis '%s', which splits the "
                                    "batch; move it with oly_reshard [vmap_unmapped]",
                                    k, r->m.name, oly_type_short(type), type->mesh->name[type->axes[d].axis[i]]);
    return OLY_OK;
}

/* The type of one element; all inputs must have the same batch size. */
static oly_status element_type(request *r, int k, const oly_type *whole, oly_type *one)
{
    int d;
    *one = *whole;
    if (r->in_axes[k] == OLY_UNMAPPED)
        return OLY_OK;
    OLY_TRY(dimension(r, "argument", k, whole, whole->rank, r->in_axes[k], &d));
    if (r->axes.all && r->axes.size[0] != whole->shape[d])
        return oly_fail(OLY_SHAPE,
                        "argument %d of %s, %s, has a batch of %" PRId64 ", but those before have one of %" PRId64
                        "; all batch dimensions must have one size",
                        k, r->m.name, oly_type_short(whole), whole->shape[d], r->axes.size[0]);
    r->axes.all = 1;
    r->axes.size[0] = whole->shape[d];
    OLY_TRY(take_split(r, k, whole, d));
    one->rank--;
    for (int e = d; e < one->rank; e++) {
        one->shape[e] = whole->shape[e + 1];
        one->axes[e] = whole->axes[e + 1];
    }
    one->shape[one->rank] = 0;
    one->axes[one->rank] = (oly_axis_list){0};
    return OLY_OK;
}

static oly_status name_batch(request *r)
{
    const char *name = r->options.axis_name;
    if (!name)
        return OLY_OK;
    if (!*name || strlen(name) >= OLY_AXIS_NAME || r->axes.size[0] > INT32_MAX)
        return oly_fail(OLY_INVALID,
                        "a batch of %" PRId64 " elements cannot be called '%s'; names have 1 to %d characters",
                        r->axes.size[0], name, OLY_AXIS_NAME - 1);
    r->named = (struct oly_mesh_impl){
        .tag = OLY_TAG(OLY_HANDLE_MESH), .n_axes = 1, .size = {(int)r->axes.size[0]}, .manual_axes = 1, .hash = 23};
    strcpy(r->named.name[0], name);
    r->axes.named = &r->named;
    return OLY_OK;
}

static oly_status put_out(const request *r, oly_trace *outer, int k, oly_lifted x, oly_array *out)
{
    int d, axis = r->out_axes[k], rank = x.node->type.rank - (x.axes ? 1 : 0);
    if (axis == OLY_UNMAPPED && x.axes)
        return oly_fail(
            OLY_SHAPE,
            "output %d of %s depends on the batch, but its out_axes is OLY_UNMAPPED; name the dimension that "
            "is to be the batch",
            k, r->m.name);
    if (axis != OLY_UNMAPPED) {
        OLY_TRY(dimension(r, "output", k, &x.node->type, rank + 1, axis, &d));
        OLY_TRY(oly_unbatch_dimension(outer->graph, &r->axes, x, d, &x.node));
    }
    *out = oly_array_traced(outer->graph, x.node);
    return *out ? OLY_OK : OLY_MEMORY;
}

static oly_status put_in(request *r, oly_trace *outer, oly_trace *t, oly_node *const *in, oly_array *out)
{
    oly_lifted *inputs, *outputs;
    OLY_ARENA_LIST(&outer->graph->arena, inputs, t->graph->n_inputs);
    OLY_ARENA_LIST(&outer->graph->arena, outputs, r->m.n_out);
    for (int k = 0; k < r->m.n_in; k++) {
        int axis = r->in_axes[k];
        inputs[k] = (oly_lifted){in[k], 0};
        if (axis != OLY_UNMAPPED && in[k])
            OLY_TRY(oly_batch_dimension(outer->graph, in[k], axis < 0 ? axis + in[k]->type.rank : axis, &inputs[k]));
    }
    for (int k = 0; k < t->n_captures; k++) {
        inputs[r->m.n_in + k].axes = 0;
        OLY_TRY(oly_trace_node(outer, t->captures[k].array, &inputs[r->m.n_in + k].node));
    }
    OLY_TRY(oly_batch_graph(outer->graph, &r->axes, t->graph, inputs, outputs));
    for (int k = 0; k < r->m.n_out; k++)
        OLY_TRY(put_out(r, outer, k, outputs[k], &out[k]));
    return OLY_OK;
}

static oly_status record_map(const void *request_, oly_trace *outer, const oly_array *in, oly_array *out)
{
    request copy = *(const request *)request_, *r = &copy;
    oly_node **nodes;
    oly_type *types;
    oly_trace t;
    OLY_ARENA_LIST(&outer->graph->arena, nodes, r->m.n_in);
    OLY_ARENA_LIST(&outer->graph->arena, types, r->m.n_in);
    for (int k = 0; k < r->m.n_in; k++) {
        OLY_TRY(oly_trace_node(outer, in[k], &nodes[k]));
        OLY_TRY(element_type(r, k, &nodes[k]->type, &types[k]));
    }
    if (!r->axes.all)
        return oly_fail(OLY_INVALID, "no argument of %s is mapped; give at least one a dimension in in_axes",
                        r->m.name);
    for (int k = 0; k < r->m.n_in; k++)
        OLY_TRY(check_unmapped(r, k, &types[k]));
    oly_manual batch = {&r->named, true};
    OLY_TRY(name_batch(r));
    oly_status st = oly_record_mapped(&r->m, types, NULL, r->options.axis_name ? &batch : NULL, &t);
    if (st == OLY_OK)
        st = put_in(r, outer, &t, nodes, out);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

oly_status(oly_vmap_with)(oly_function function, const char *c_name, void *user, oly_vmap_options options, int n_in,
                          const oly_array *in, const int *in_axes, int n_out, oly_array *const *out,
                          const int *out_axes)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need_places(n_out, out));
    OLY_TRY(oly_clear_after(oly_need_arrays(n_in, in), n_out, out));
    if ((n_in > 0 && !in_axes) || (n_out > 0 && !out_axes))
        return oly_clear_after(oly_raise(oly_fail(OLY_INVALID, "the list of axes is NULL; give one for each array")),
                               n_out, out);
    request r = {.m = {function, c_name ? c_name : "vmap", user, n_in, n_out, in},
                 .options = options,
                 .in_axes = in_axes,
                 .out_axes = out_axes};
    return oly_call_mapped(record_map, &r, &r.m, out);
}
