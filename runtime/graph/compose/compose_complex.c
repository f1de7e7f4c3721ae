/* SPDX-License-Identifier: BSD-3-Clause */
/* Complex numbers and their parts. A real number is its own real part. */
#include "graph/compose/compose.h"
#include "graph/build.h"

oly_status oly_compose_part(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    oly_node *x = in[0];
    *out = x;
    if (oly_dtype_kind(x->type.dtype) == OLY_KIND_COMPLEX)
        return oly_build_apply(g, recipe->op, 1, &x, out);
    if (recipe->op != OLY_OP_imag)
        return OLY_OK;
    oly_type t = x->type;
    t.unreduced = t.reduced = 0;
    oly_sharding like = t.mesh && t.mesh->explicit_axes ? oly_type_sharding(&t) : NULL; /* zeros are placed as x is */
    if (t.mesh && t.mesh->explicit_axes && !like)
        return OLY_MEMORY;
    OLY_TRY(oly_build_number(g, t.dtype, 0, out));
    return oly_build_broadcast_to(g, *out, t.rank, t.shape, like, out);
}

oly_status oly_compose_complex(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_build_promoted(g, 2, both));
    if (oly_dtype_kind(both[0]->type.dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE,
                        "the parts of complex numbers are real numbers, not %s and %s; add them, or take oly_real",
                        oly_type_short(&in[0]->type), oly_type_short(&in[1]->type));
    oly_dtype part = oly_dtype_inexact(both[0]->type.dtype);
    part = part == OLY_FLOAT64 ? part : OLY_FLOAT32; /* there are no narrower complex types */
    for (int k = 0; k < 2; k++)
        OLY_TRY(oly_build_convert(g, both[k], part, both[k]->type.weak, &both[k]));
    OLY_TRY(oly_build_common_shape(g, 2, both));
    return oly_build_apply(g, OLY_OP_complex, 2, both, out);
}
