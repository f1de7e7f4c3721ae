/* SPDX-License-Identifier: BSD-3-Clause */
/* See check_explicit.h. */
#include "check_explicit.h"

oly_mesh check_mesh;

void check_begin_on(const char *axes)
{
    check_begin();
    check_mesh = oly_make_mesh(axes);
}

oly_sharding check_at(const char *spec)
{
    return oly_named(check_mesh, spec);
}

oly_array check_numbers_at(const char *spec, int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    oly_array all = oly_sin(oly_mul(oly_arange(n, OLY_FLOAT32), 0.7));
    return oly_device_put(oly_reshape_shape(all, rank, shape), check_at(spec));
}
