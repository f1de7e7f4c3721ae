/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays as fields of a grid. See vti_arrays.h. */
#include "array/files/vti_arrays.h"
#include "array/files/parts.h"
#include "core/hash.h"
#include "core/min_max.h"
#include <math.h>
#include <string.h>

/* -- names ------------------------------------------------------------------------------------------------------------ */

oly_status oly_next_name(const char **at, char *name)
{
    const char *begin = *at + strspn(*at, " "), *end = begin + strcspn(begin, ",");
    *at = *end ? end + 1 : end;
    while (end > begin && end[-1] == ' ')
        end--;
    if (end == begin)
        return oly_fail(OLY_INVALID, "the list of names has an empty one; write them with commas, as in \"u, v\"");
    if (end - begin >= OLY_VTI_NAME)
        return oly_fail(OLY_INVALID, "the name \"%.40s...\" is longer than %d bytes", begin, OLY_VTI_NAME - 1);
    memcpy(name, begin, (size_t)(end - begin));
    name[end - begin] = 0;
    return OLY_OK;
}

static oly_status take_names(const char *names, oly_grid *g)
{
    if (!names)
        return oly_fail(OLY_INVALID, "the names are NULL; write them with commas, as in \"u, v\"");
    const char *at = names;
    for (int k = 0; k < g->n; k++) {
        if (k > 0 && !*at)
            return oly_fail(OLY_INVALID, "\"%.80s\" are %d names for %d arrays", names, k, g->n);
        OLY_TRY(oly_next_name(&at, g->vti.field[k].name));
        for (int j = 0; j < k; j++)
            if (strcmp(g->vti.field[j].name, g->vti.field[k].name) == 0)
                return oly_fail(OLY_INVALID, "two arrays are named \"%.80s\"", g->vti.field[k].name);
    }
    return *at ? oly_fail(OLY_INVALID, "\"%.80s\" are more than %d names, for %d arrays", names, g->n, g->n) : OLY_OK;
}

/* -- shapes ----------------------------------------------------------------------------------------------------------- */

static oly_status take_shape(oly_grid *g, int dimensions)
{
    int rank = OLY_VTI_DIMENSIONS;
    for (int k = 0; k < g->n; k++)
        rank = (int)oly_smaller(rank, g->arrays[k]->type.rank);
    if (dimensions < 0 || dimensions > OLY_VTI_DIMENSIONS)
        return oly_fail(OLY_INVALID, "a grid has 1 to %d dimensions, not %d", OLY_VTI_DIMENSIONS, dimensions);
    g->vti.rank = dimensions ? dimensions : rank;
    if (g->vti.rank < 1)
        return oly_fail(OLY_SHAPE, "a number without dimensions is no field of a grid");
    if (g->arrays[0]->type.rank < g->vti.rank)
        return oly_fail(OLY_SHAPE, "%s has fewer than the %d dimensions of the grid",
                        oly_type_short(&g->arrays[0]->type), g->vti.rank);
    memcpy(g->vti.shape, g->arrays[0]->type.shape, sizeof g->vti.shape[0] * (size_t)g->vti.rank);
    for (int d = 0; d < g->vti.rank; d++)
        if (g->vti.shape[d] == 0)
            return oly_fail(OLY_SHAPE, "%s has no elements, and a grid at least one",
                            oly_type_short(&g->arrays[0]->type));
    return OLY_OK;
}

/* One that converts to a type of VTK. */
static oly_status check_type(const oly_type *type)
{
    if (oly_vti_type(type->dtype))
        return OLY_OK;
    if (oly_dtype_kind(type->dtype) == OLY_KIND_COMPLEX)
        return oly_fail(OLY_DTYPE, "%s is complex, which VTK does not have; save oly_real and oly_imag of it",
                        oly_type_short(type));
    return oly_fail(OLY_DTYPE, "VTK has no numbers of the type of %s; save oly_astype(x, OLY_FLOAT32)",
                    oly_type_short(type));
}

static oly_status take_array(oly_grid *g, int k)
{
    const oly_type *type = &g->arrays[k]->type;
    oly_vti_field *f = &g->vti.field[k];
    int rank = g->vti.rank;
    if (type->rank < rank || type->rank > rank + 1 ||
        memcmp(type->shape, g->vti.shape, sizeof type->shape[0] * (size_t)rank) != 0)
        return oly_fail(OLY_SHAPE,
                        "%s and %s do not fit on one grid of %d dimensions: all arrays have its shape, vectors one "
                        "dimension more at the end, for their components%s",
                        oly_type_short(&g->arrays[0]->type), oly_type_short(type), rank,
                        type->rank == rank ? "" : " (.dimensions = n says how many the grid has)");
    OLY_TRY(check_type(type));
    f->dtype = type->dtype;
    if (type->rank == rank)
        return OLY_OK;
    if (type->shape[rank] < 1 || type->shape[rank] > 1000000)
        return oly_fail(OLY_SHAPE, "%s would be vectors of %lld components", oly_type_short(type),
                        (long long)type->shape[rank]);
    f->components = (int)type->shape[rank];
    return OLY_OK;
}

static oly_status take_geometry(oly_grid *g, const double *origin, const double *spacing)
{
    for (int d = 0; d < g->vti.rank; d++) {
        g->vti.origin[d] = origin ? origin[d] : 0;
        g->vti.spacing[d] = spacing ? spacing[d] : 1;
        if (!isfinite(g->vti.origin[d]) || !isfinite(g->vti.spacing[d]) || g->vti.spacing[d] == 0)
            return oly_fail(OLY_INVALID,
                            "along dimension %d the origin is %g and the spacing %g; both must be finite, and "
                            "the spacing not 0",
                            d, g->vti.origin[d], g->vti.spacing[d]);
    }
    return OLY_OK;
}

/* -- all -------------------------------------------------------------------------------------------------------------- */

static oly_mesh mesh_of(const oly_grid *g)
{
    oly_mesh mesh = g->arrays[0]->sharding->mesh;
    for (int k = 1; k < g->n; k++)
        if (g->arrays[k]->sharding->mesh != mesh)
            return NULL;
    return mesh;
}

static oly_status fill(oly_grid *g, const char *names, int dimensions, const double *origin, const double *spacing)
{
    size_t bytes = (size_t)g->n * sizeof *g->vti.field;
    if (!(g->vti.field = oly_calloc((size_t)g->n, sizeof *g->vti.field)))
        return oly_out_of_memory(bytes, "the names of arrays");
    OLY_TRY(take_names(names, g));
    OLY_TRY(take_shape(g, dimensions));
    for (int k = 0; k < g->n; k++)
        OLY_TRY(take_array(g, k));
    OLY_TRY(take_geometry(g, origin, spacing));
    oly_vti_place(&g->vti);
    return OLY_OK;
}

oly_status oly_grid_of(const char *names, int n, const oly_array *arrays, int dimensions, const double *origin,
                       const double *spacing, oly_grid *g)
{
    *g = (oly_grid){.vti.n = n, .n = n, .arrays = arrays};
    if (n < 1)
        return oly_fail(OLY_INVALID, "there is no array to be saved");
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_parts_check(arrays[k]));
    g->mesh = mesh_of(g);
    return fill(g, names, dimensions, origin, spacing);
}

void oly_grid_end(oly_grid *g)
{
    oly_release(g->vti.field);
    g->vti.field = NULL;
}

uint64_t oly_grid_hash(const oly_grid *g)
{
    uint64_t h = oly_hash(32, g->vti.shape, sizeof g->vti.shape);
    h = oly_hash(h, g->vti.origin, sizeof g->vti.origin);
    h = oly_hash(h, g->vti.spacing, sizeof g->vti.spacing);
    h = oly_hash(h, &g->vti.time, sizeof g->vti.time);
    h = oly_hash_mix(h, (uint64_t)(g->n * 8 + g->vti.rank) * 4 + g->vti.timed * 2 + g->vti.cells);
    for (int k = 0; k < g->n && g->vti.field; k++) {
        const oly_vti_field *f = &g->vti.field[k];
        h = oly_hash_mix(oly_hash_text(h, f->name), (uint64_t)f->components * OLY_N_DTYPES + f->dtype);
        if (g->mesh)
            h = oly_hash_mix(h, oly_together_digest_in(g->mesh, &g->arrays[k]->identity));
    }
    return h;
}
