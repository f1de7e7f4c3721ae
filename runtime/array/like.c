/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays placed like another one (olympus/shape.h: oly_full_like and its relatives). */
#include "array/manual.h"
#include "array/arguments.h"
#include <olympus/shape.h>

/* Inside a function: over Explicit axes split as x is, over Manual ones varying where x does. */
static oly_array full_like_traced(oly_trace *t, oly_array x, oly_operand value)
{
    oly_type type = x->type;
    if (x->graph != t->graph && oly_manual_around(t))
        oly_manual_type(oly_manual_around(t), &type);
    type.unreduced = type.reduced = 0;
    oly_sharding out = type.mesh && type.mesh->explicit_axes ? oly_type_sharding(&type) : NULL;
    oly_array full = oly_full_sharded(value, type.dtype, out, type.rank, type.shape);
    if (full && oly_raise(oly_manual_vary(type.mesh, type.varying, &full)) != OLY_OK)
        return NULL;
    return full;
}

oly_array oly_full_like_of(oly_array x, oly_operand value)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_operand(&value) != OLY_OK)
        return NULL;
    if (oly_trace_current())
        return full_like_traced(oly_trace_current(), x, value);
    bool placed = x->committed && !x->type.unreduced && !x->type.weak;
    if (!placed || !x->sharding->mesh->explicit_axes)
        return oly_full_sharded(value, x->type.dtype, placed ? x->sharding : NULL, x->type.rank, x->type.shape);
    oly_array full = oly_full_sharded(value, x->type.dtype, oly_type_sharding(&x->type), x->type.rank, x->type.shape);
    return full ? oly_device_put(full, x->sharding) : NULL; /* over all kinds of axes: nothing is sent */
}
