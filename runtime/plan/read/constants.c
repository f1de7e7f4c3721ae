/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants in memory, for steps that cannot have them as numbers: the margins of padded arrays, operands of local operations. A function has
 * each number once, made before its loops, not once for every step that reads it in every iteration. Called by lower/ and stencil/. */
#include "plan/read/read.h"
#include <string.h>

struct oly_constant_slot {
    struct oly_constant_slot *next;
    oly_mesh mesh;
    oly_tile_instruction number;
    int slot;
};

/* Padding of structures is zero: both are made alike. */
static bool is_same(const oly_tile_instruction *a, const oly_tile_instruction *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static struct oly_constant_slot *find(const oly_frame *f, oly_mesh mesh, const oly_tile_instruction *number)
{
    struct oly_constant_slot *c = f->constants;
    while (c && (c->mesh != mesh || !is_same(&c->number, number)))
        c = c->next;
    return c;
}

static oly_status make(oly_planner *p, oly_frame *f, oly_mesh mesh, const oly_node *constant,
                       const oly_tile_instruction *number, struct oly_constant_slot **made)
{
    oly_layout l = {.mesh = mesh};
    oly_region r = oly_region_of_layout(&l);
    struct oly_constant_slot *c = *made = OLY_PLAN_NEW(p, struct oly_constant_slot, 1);
    OLY_PLAN_CHECK(c);
    c->next = f->constants;
    c->mesh = mesh;
    c->number = *number;
    c->slot = oly_slot_new(p, &r, oly_dtype_size(constant->type.dtype));
    if (c->slot < 0)
        return OLY_MEMORY;
    p->plan->slots[c->slot].block = f->block;
    f->constants = c;
    return oly_fill(p, f, constant, constant, &l, c->slot);
}

oly_status oly_constant_in_memory(oly_planner *p, oly_frame *f, oly_mesh mesh, oly_reading *reading)
{
    oly_tile_instruction number;
    if (!reading->constant)
        return OLY_OK;
    while (f->outer)
        f = f->outer;
    memset(&number, 0, sizeof number);
    oly_splat_instruction(reading->constant, &number);
    struct oly_constant_slot *c = find(f, mesh, &number);
    if (!c)
        OLY_TRY(make(p, f, mesh, reading->constant, &number, &c));
    oly_slot_use(p, c->slot);
    reading->constant = NULL;
    reading->place = OLY_PLAN_NEW(p, oly_place, p->plan->n_devices);
    OLY_PLAN_CHECK(reading->place);
    for (int d = 0; d < p->plan->n_devices; d++)
        reading->place[d].base = oly_position_in(p, mesh, d) < 0 ? -1 : oly_cell(p->plan, d, c->slot);
    return OLY_OK;
}
