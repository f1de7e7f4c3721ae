/* SPDX-License-Identifier: BSD-3-Clause */
/* The public collectives: resolve the axes and choose the composition that makes the nodes
 * (graph/compose/compose_collective.c). */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/manual.h"
#include "core/scan.h"
#include <olympus/map.h>
#include <string.h>

/* -- axes ------------------------------------------------------------------------------------------------------------ */

/* The first axis determines the mesh. */
static oly_status find_mesh(oly_recipe *recipe, const char *name)
{
    const oly_manual *m = oly_manual_with_axis(oly_trace_current(), name);
    if (!m)
        m = oly_manual_around(oly_trace_current());
    if (!m)
        return oly_fail(OLY_TRACE, "unbound axis name '%s': collectives work inside oly_shard_map only", name);
    recipe->params.mesh = m->mesh;
    recipe->params.unchecked = m->unchecked;
    return OLY_OK;
}

static oly_status add_axis(oly_recipe *recipe, const char *name, const char *text)
{
    oly_axis_list *over = &recipe->params.over;
    if (over->n == 0)
        OLY_TRY(find_mesh(recipe, name));
    oly_mesh mesh = recipe->params.mesh;
    int axis = oly_mesh_find_axis(mesh, name);
    char have[256];
    oly_mesh_str(mesh, have, sizeof have);
    if (axis < 0)
        return oly_fail(OLY_SHARDING, "unbound axis name '%s': it is not in %s", name, have);
    if (!(mesh->manual_axes >> axis & 1))
        return oly_fail(OLY_SHARDING,
                        "axis '%s' is not manual here: the mesh is %s; name it in the axis_names of the oly_shard_map",
                        name, have);
    for (int k = 0; k < over->n; k++)
        if (over->axis[k] == axis)
            return oly_fail(OLY_SHARDING, "\"%s\" names axis '%s' twice", text, name);
    over->axis[over->n++] = (uint8_t)axis;
    return OLY_OK;
}

/* Reads axes ("x", "x, y", "(x, y)") into the recipe, with their mesh. */
static oly_status read_axes(const char *text, oly_recipe *recipe)
{
    char word[OLY_AXIS_NAME];
    if (!text)
        return oly_fail(OLY_INVALID, "the axes are NULL; name some, as \"x\"");
    oly_scanner s = oly_scan_begin(text);
    bool wrapped = oly_scan_take(&s, '(');
    do {
        if (!oly_scan_word(&s, word, sizeof word))
            return oly_scan_expected(&s, "an axis name");
        OLY_TRY(add_axis(recipe, word, text));
    } while (oly_scan_take(&s, ','));
    if (wrapped && !oly_scan_take(&s, ')'))
        return oly_scan_expected(&s, "',' or ')'");
    return oly_scan_end(&s) ? OLY_OK : oly_scan_expected(&s, "',' or the end");
}

/* False: raised. */
static bool begin(oly_recipe *recipe, oly_op op, const char *axes)
{
    memset(recipe, 0, sizeof *recipe);
    recipe->op = op;
    return oly_raise(read_axes(axes, recipe)) == OLY_OK;
}

/* -- the functions --------------------------------------------------------------------------------------------------- */

static oly_array over_devices(oly_compose *compose, oly_op op, oly_operand x, const char *axes)
{
    oly_recipe recipe;
    if (x.kind == 'a' && !x.array)
        return oly_null_array();
    return begin(&recipe, op, axes) ? oly_dispatch(compose, 1, &x, &recipe) : NULL;
}

#define OVER_DEVICES(function, compose, row)                                                                           \
    oly_array(function)(oly_operand x, const char *axes)                                                               \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        return over_devices(compose, OLY_OP_##row, x, axes);                                                           \
    }
OVER_DEVICES(oly_psum, oly_compose_psum, psum)
OVER_DEVICES(oly_pmax, oly_compose_psum, pmax)
OVER_DEVICES(oly_pmin, oly_compose_psum, pmin)
OVER_DEVICES(oly_pmean, oly_compose_pmean, psum)

oly_array(oly_pvary)(oly_array x, const char *axes)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return over_devices(oly_compose_pvary, OLY_OP_pvary, oly_operand_array(x), axes);
}

static oly_array gather(oly_compose *compose, oly_op op, oly_array x, const char *axes, oly_gather_options options)
{
    oly_recipe recipe;
    if (!x)
        return oly_null_array();
    if (!begin(&recipe, op, axes))
        return NULL;
    oly_operand in = oly_operand_array(x);
    recipe.params.dimension = options.axis;
    recipe.tiled = options.tiled;
    recipe.invariant = options.invariant;
    return oly_dispatch(compose, 1, &in, &recipe);
}

oly_array oly_all_gather_with(oly_array x, const char *axes, oly_gather_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return gather(oly_compose_all_gather, OLY_OP_all_gather, x, axes, options);
}

oly_array oly_psum_scatter_with(oly_array x, const char *axes, oly_gather_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return gather(oly_compose_psum_scatter, OLY_OP_psum_scatter, x, axes, options);
}

oly_array(oly_all_to_all)(oly_array x, const char *axes, int split, int concat, bool tiled)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    if (!begin(&recipe, OLY_OP_all_to_all, axes))
        return NULL;
    oly_operand in = oly_operand_array(x);
    recipe.params.dimension = split;
    recipe.params.axes[0] = concat;
    recipe.tiled = tiled;
    return oly_dispatch(oly_compose_all_to_all, 1, &in, &recipe);
}

static oly_status permutation(oly_recipe *recipe, int n_pairs, const int (*pairs)[2])
{
    int n = oly_axis_list_parts(recipe->params.mesh, &recipe->params.over);
    int *source = oly_malloc(sizeof *source * 2 * (size_t)n), *target = source ? source + n : NULL;
    oly_status st = source ? OLY_OK : oly_out_of_memory(sizeof *source * (size_t)n, "a permutation");
    for (int k = 0; st == OLY_OK && k < n; k++)
        source[k] = target[k] = -1;
    for (int k = 0; st == OLY_OK && k < n_pairs; k++) {
        int from = pairs[k][0], to = pairs[k][1];
        if (from < 0 || from >= n || to < 0 || to >= n)
            st = oly_fail(OLY_INVALID, "pair %d, (%d, %d), is out of range: there are %d devices along the axes", k,
                          from, to, n);
        else if (target[from] >= 0 || source[to] >= 0)
            st = oly_fail(OLY_INVALID, "pair %d, (%d, %d): %d is %s twice; sources and destinations must be unique", k,
                          from, to, target[from] >= 0 ? from : to, target[from] >= 0 ? "a source" : "a destination");
        else {
            source[to] = from;
            target[from] = to;
        }
    }
    if (st == OLY_OK && !(recipe->params.permutation = oly_permutation_intern(n, source)))
        st = OLY_MEMORY;
    oly_release(source);
    return st;
}

oly_array(oly_ppermute)(oly_array x, const char *axes, int n_pairs, const int (*pairs)[2])
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    if (!begin(&recipe, OLY_OP_ppermute, axes) || oly_raise(permutation(&recipe, n_pairs, pairs)) != OLY_OK)
        return NULL;
    oly_operand in = oly_operand_array(x);
    return oly_dispatch(oly_compose_ppermute, 1, &in, &recipe);
}

oly_array(oly_axis_index)(const char *axes)
{
    OLY_ENTER(NULL);
    oly_recipe recipe;
    return begin(&recipe, OLY_OP_axis_index, axes) ? oly_dispatch(oly_compose_axis_index, 0, NULL, &recipe) : NULL;
}

int64_t(oly_axis_size)(const char *axes)
{
    OLY_ENTER(0);
    oly_recipe recipe;
    if (!begin(&recipe, OLY_OP_axis_index, axes))
        return 0;
    return oly_axis_list_parts(recipe.params.mesh, &recipe.params.over);
}
