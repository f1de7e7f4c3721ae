/* The context mesh, and shardings of bare specs over it. */
#include "array/trace.h"

oly_mesh(oly_set_mesh)(oly_mesh mesh)
{
    oly_enter(__func__);
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

oly_sharding(oly_P)(const char *spec)
{
    oly_enter(__func__);
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
