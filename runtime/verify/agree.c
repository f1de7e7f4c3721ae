/* SPDX-License-Identifier: BSD-3-Clause */
/* A minimum over devices, planned like any other. See agree.h. */
#include "verify/agree.h"
#include "verify/held.h"
#include <string.h>

static oly_status least_of(const oly_type *type, oly_graph *g)
{
    oly_node *node;
    oly_params p;
    memset(&p, 0, sizeof p);
    p.n_axes = 1; /* dimension 0 */
    OLY_TRY(oly_graph_input(g, type, &node));
    OLY_TRY(oly_graph_add(g, OLY_OP_reduce_min, 1, &node, &p, &node));
    return oly_graph_output(g, node);
}

/* One row for each device, with its process's values. */
static oly_status make_rows(oly_mesh mesh, int n, const double *values, oly_held **rows)
{
    oly_spec spec = {.n_dims = 1};
    for (int a = 0; a < mesh->n_axes; a++)
        spec.dim[0].axis[spec.dim[0].n++] = (uint8_t)a;
    oly_plan_value is = {.type = {.dtype = OLY_FLOAT64, .rank = 2, .shape = {mesh->n_devices, n}},
                         .sharding = oly_sharding_intern(mesh, &spec, 1),
                         .committed = true};
    const int *positions;
    int n_shards = oly_mesh_local_positions(mesh, &positions);
    oly_held *x = is.sharding ? oly_held_new(&is, n_shards) : NULL;
    for (int s = 0; x && s < n_shards; s++) {
        if (!(x->shard[s] = oly_buffer_take(oly_mesh_local_device(mesh, s), sizeof *values * (size_t)n))) {
            oly_held_drop(x);
            return oly_buffer_fail(sizeof *values * (size_t)n, "a comparison");
        }
        oly_status st = oly_buffer_write(x->shard[s], sizeof *values * (size_t)n, values);
        if (st != OLY_OK) {
            oly_held_drop(x);
            return st;
        }
    }
    *rows = x;
    return x ? OLY_OK : OLY_MEMORY;
}

static oly_status run(oly_held *rows, int n, double *values)
{
    oly_program *p;
    oly_held *least;
    oly_graph *g = oly_graph_new("a comparison");
    oly_sharding whole = oly_sharding_intern(rows->is.sharding->mesh, &(oly_spec){0}, 0);
    oly_status st = g && whole ? least_of(&rows->is.type, g) : OLY_MEMORY;
    if (st != OLY_OK) {
        oly_graph_free(g);
        return st;
    }
    OLY_TRY(oly_held_plan(g, &rows, &whole, &p));
    st = oly_held_run(p, &rows, &least);
    if (st == OLY_OK) {
        oly_queue_drain();
        if (least->n_shards > 0)
            st = oly_buffer_read(least->shard[0], sizeof *values * (size_t)n, values);
        oly_held_drop(least);
        st = st == OLY_OK ? oly_run_failure() : st;
    }
    oly_program_free(p);
    return st;
}

oly_status oly_agree_least(oly_mesh mesh, int n, double *values)
{
    oly_held *rows;
    if (mesh->everywhere || mesh->process >= 0 || n == 0)
        return OLY_OK;
    oly_mesh plain = oly_mesh_retyped(mesh, 0, 0);
    if (!plain)
        return OLY_MEMORY;
    OLY_TRY(make_rows(plain, n, values, &rows));
    oly_status st = run(rows, n, values);
    oly_held_drop(rows);
    return st;
}

oly_status oly_agree_largest(oly_mesh mesh, int n, double *values)
{
    for (int k = 0; k < n; k++)
        values[k] = -values[k];
    oly_status st = oly_agree_least(mesh, n, values);
    for (int k = 0; k < n; k++)
        values[k] = -values[k];
    return st;
}
