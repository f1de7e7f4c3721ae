/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds products of sparse matrices. See sparse_rows.h. */
#include "run/sparse_rows.h"
#include "plan/model/row_operands.h"

static bool is_line(const oly_local_operand *x, oly_dtype dtype)
{
    return x->dtype == dtype && x->rank == 1 && (x->stride[0] == 1 || x->extent[0] == 1);
}

/* A lookup of elements of a line that is all here. */
static bool looks_up_line(const oly_step *s, int device, oly_dtype dtype)
{
    if (s->kind != OLY_STEP_LOCAL)
        return false;
    const oly_local_task *t = &s->local.device[device].task;
    return t->op == OLY_LOCAL_GATHER && t->n_in == 2 && t->n_batch == 0 && !t->partial && !t->keeps &&
           is_line(&t->in[0], dtype) && is_line(&t->in[1], OLY_INT32) && t->in[0].extent[0] == t->in[0].size[0];
}

static bool adds_to_line(const oly_step *s, int device, oly_dtype dtype)
{
    if (s->kind != OLY_STEP_LOCAL || !s->local.device[device].has_work)
        return false;
    const oly_local_task *t = &s->local.device[device].task;
    return t->op == OLY_LOCAL_SCATTER_ADD && t->n_in == 3 && t->n_batch == 0 && is_line(&t->in[1], OLY_INT32) &&
           is_line(&t->in[2], dtype) && is_line(&t->out, dtype);
}

/* One product of two loads, side by side. */
static bool multiplies(const oly_step *s, int device, oly_dtype dtype)
{
    if (!oly_multiplies_loads(s, dtype))
        return false;
    const oly_tile_work *w = &s->tile.device[device];
    return w->box.rank == 1 && w->loads[0].stride[0] == 1 && w->loads[1].stride[0] == 1 && w->stores[0].stride[0] == 1;
}

static bool same_place(const oly_place *a, int cell, int64_t offset)
{
    return a->base == cell && a->offset == offset;
}

oly_sparse_rows oly_sparse_rows_of(const oly_step *first, int n, int device, const int *operands)
{
    oly_sparse_rows none = {.lookup = -1}, r;
    int product = n - 2;
    while (product > 0 && first[product].kind == OLY_STEP_TILE && first[product].begins_next)
        product--;
    const oly_step *scatter = &first[n - 1], *mul = &first[product];
    if (product < 1 || scatter->kind != OLY_STEP_LOCAL)
        return none;
    const oly_step *lookup = mul - 1;
    oly_dtype dtype = scatter->local.device[device].task.out.dtype;
    if ((dtype != OLY_FLOAT32 && dtype != OLY_FLOAT64) || !adds_to_line(scatter, device, dtype) ||
        !multiplies(mul, device, dtype) || !looks_up_line(lookup, device, dtype))
        return none;
    const oly_tile_work *w = &mul->tile.device[device];
    const oly_place *updates = &scatter->local.device[device].in[2];
    int gathered = lookup->local.device[device].out_base;
    bool in_first = same_place(&w->loads[0], gathered, 0), in_second = same_place(&w->loads[1], gathered, 0);
    if (in_first == in_second || !same_place(updates, w->stores[0].base, w->stores[0].offset))
        return none;
    int before = 0, end = 0;
    for (int k = 0; k < n; k++) {
        before += k < product - 1 ? operands[k] : 0;
        end += operands[k];
    }
    r = (oly_sparse_rows){.lookup = product - 1,
                          .x = before,
                          .column = before + 1,
                          .gathered = before + 2,
                          .value = before + (in_first ? 4 : 3),
                          .product = before + 5,
                          .row = end - 3,
                          .out = end - 1};
    return r;
}
