/* SPDX-License-Identifier: BSD-3-Clause */
/* The context mesh and the default device, shardings of specs over the context mesh, and moving values along Explicit
 * axes. */
#include "array/context.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "array/trace.h"
#include <string.h>

oly_mesh(oly_set_mesh)(oly_mesh mesh)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(mesh, OLY_HANDLE_MESH) != OLY_OK)
        return NULL;
    oly_mesh before = oly_mesh_context();
    if (mesh && mesh->manual_axes)
        oly_raise(oly_fail(OLY_INVALID, "the mesh has Manual axes; oly_set_mesh takes Auto and Explicit ones"));
    else if (oly_trace_current())
        oly_raise(oly_fail(OLY_TRACE, "the context mesh cannot change while a function is traced; call oly_set_mesh "
                                      "outside of it"));
    else
        oly_mesh_set_context(mesh);
    return before;
}

oly_device(oly_set_default_device)(oly_device device)
{
    OLY_ENTER(NULL);
    if (oly_need_or_null(device, OLY_HANDLE_DEVICE) != OLY_OK)
        return NULL;
    int before = oly_mesh_default_device();
    if (oly_trace_current())
        oly_raise(oly_fail(OLY_TRACE, "the default device cannot change while a function is traced; call "
                                      "oly_set_default_device outside of it"));
    else
        oly_raise(oly_mesh_set_default_device(device ? oly_device_id(device) : -1));
    return before < 0 ? NULL : oly_get_device(before);
}

oly_sharding(oly_P)(const char *spec)
{
    OLY_ENTER(NULL);
    oly_mesh mesh = oly_mesh_context();
    if (!mesh) {
        oly_raise(oly_fail(OLY_STATE,
                           "the spec \"%s\" needs a mesh; please set one with oly_set_mesh, or use "
                           "oly_named(mesh, spec)",
                           spec ? spec : "NULL"));
        return NULL;
    }
    return (oly_named)(mesh, spec);
}

oly_sharding oly_context_sharding(void)
{
    oly_mesh mesh = oly_mesh_context();
    return mesh && mesh->explicit_axes ? oly_sharding_intern(mesh, &(oly_spec){0}, 0) : NULL;
}

oly_array(oly_reshard)(oly_array x, oly_sharding sharding)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need(sharding, OLY_HANDLE_SHARDING) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    oly_operand in = oly_operand_array(x);
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_reshard;
    recipe.params.sharding = sharding;
    return x && sharding ? oly_dispatch(oly_compose_reshard, 1, &in, &recipe) : NULL;
}
