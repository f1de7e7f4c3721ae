/* SPDX-License-Identifier: BSD-3-Clause */
/* The sharding part of types: comparison, text, conversion from shardings and back. Declared in type.h. */
#include "graph/type.h"
#include <stdio.h>
#include <string.h>

bool oly_type_same_sharding(const oly_type *a, const oly_type *b)
{
    if (a->unreduced != b->unreduced || a->reduced != b->reduced || a->varying != b->varying || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!oly_axis_list_equal(&a->axes[d], &b->axes[d]))
            return false;
    return true;
}

void oly_type_clear_sharding(oly_type *t)
{
    if (!t->mesh)
        return;
    t->mesh = NULL;
    memset(t->axes, 0, sizeof t->axes);
    t->unreduced = t->reduced = t->varying = 0;
}

void oly_type_set_sharding(oly_type *t, oly_sharding s)
{
    oly_type_clear_sharding(t);
    unsigned explicit_axes = s ? s->mesh->explicit_axes : 0;
    if (!explicit_axes)
        return;
    t->mesh = s->mesh;
    t->unreduced = s->spec.unreduced;
    t->reduced = s->spec.reduced;
    for (int d = 0; d < t->rank && d < s->spec.n_dims; d++)
        for (int k = 0; k < s->spec.dim[d].n; k++)
            if (explicit_axes >> s->spec.dim[d].axis[k] & 1)
                t->axes[d].axis[t->axes[d].n++] = s->spec.dim[d].axis[k];
}

void oly_type_keep_open(oly_type *t, const oly_type *before, oly_sharding s)
{
    for (int d = 0; d < t->rank; d++)
        if (t->mesh && before->mesh == t->mesh && s->spec.open >> d & 1)
            t->axes[d] = before->axes[d];
}

oly_sharding oly_type_sharding(const oly_type *t)
{
    oly_spec spec = {.n_dims = t->rank, .unreduced = t->unreduced, .reduced = t->reduced};
    memcpy(spec.dim, t->axes, sizeof spec.dim);
    return oly_sharding_intern(t->mesh, &spec, t->rank);
}

/* -- text ------------------------------------------------------------------------------------------------------------------ */

/* Writes one set of axes, truncated to the size of `text`. Returns the full length. */
static int add_set(char *text, size_t size, oly_mesh mesh, char letter, unsigned set, bool first)
{
    size_t at = 0;
    bool several = (set & (set - 1)) != 0;
    for (int k = 0, n = 0; k < mesh->n_axes; k++) {
        if (!(set >> k & 1))
            continue;
        char lead[8] = ",";
        if (n++ == 0)
            snprintf(lead, sizeof lead, "%s%c:%s", first ? "{" : ", ", letter, several ? "(" : "");
        at += (size_t)snprintf(at < size ? text + at : NULL, at < size ? size - at : 0, "%s%s", lead, mesh->name[k]);
    }
    at += (size_t)snprintf(at < size ? text + at : NULL, at < size ? size - at : 0, "%s", several ? ")" : "");
    return (int)at;
}

int oly_type_marks(char *text, size_t size, const oly_type *t)
{
    const unsigned sets[] = {t->varying, t->unreduced, t->reduced};
    size_t at = 0;
    if (size > 0)
        text[0] = 0;
    for (int k = 0; k < 3; k++)
        if (sets[k])
            at += (size_t)add_set(at < size ? text + at : NULL, at < size ? size - at : 0, t->mesh, "VUR"[k], sets[k],
                                  at == 0);
    if (at > 0)
        at += (size_t)snprintf(at < size ? text + at : NULL, at < size ? size - at : 0, "}");
    return (int)at;
}
