/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps as work on rows. See row_operands.h. */
#include "plan/model/row_operands.h"

bool oly_rows_of(const oly_reduce_work *w, oly_rows *rows)
{
    const oly_reduce_task *t = &w->task;
    *rows = (oly_rows){0};
    while (rows->lead < t->rank && !t->reduced[rows->lead]) {
        rows->extent[rows->lead] = t->extent[rows->lead];
        rows->lead++;
    }
    for (int d = rows->lead; d < t->rank; d++)
        if (!t->reduced[d] && t->extent[d] > 1)
            return false;
    return rows->lead > 0 && w->scratch_base < 0;
}

int64_t oly_rows_count(const oly_rows *rows)
{
    int64_t n = 1;
    for (int d = 0; d < rows->lead; d++)
        n *= rows->extent[d];
    return n;
}

static oly_row_operand operand_of(int cell, int64_t offset, const int64_t *stride, int64_t bytes, const oly_rows *rows,
                                  int rank, const int64_t *extent, bool writes)
{
    oly_row_operand o = {.cell = cell, .offset = offset, .high = bytes, .elements = 1, .writes = writes};
    for (int d = 0; d < rows->lead; d++)
        o.stride[d] = stride[d] * bytes;
    for (int d = rows->lead; d < rank; d++) {
        int64_t span = (extent[d] - 1) * stride[d] * bytes;
        *(span < 0 ? &o.low : &o.high) += span;
        o.elements *= stride[d] ? extent[d] : 1;
    }
    return o;
}

static bool has_rows(int rank, const int64_t *extent, const oly_rows *rows)
{
    if (rank < rows->lead)
        return false;
    for (int d = 0; d < rank; d++)
        if (extent[d] == 0 || (d < rows->lead && extent[d] != rows->extent[d]))
            return false;
    return true;
}

static int of_tile(const oly_tile_program *p, const oly_tile_work *w, const oly_rows *rows, oly_row_operand *operands)
{
    int n = 0;
    if (p->n_loads + p->n_stores > OLY_ROW_OPERANDS || !has_rows(w->box.rank, w->box.extent, rows))
        return 0;
    for (int k = 0; k < p->n_loads; k++)
        operands[n++] =
            operand_of(w->loads[k].base, w->loads[k].offset, w->loads[k].stride,
                       (int64_t)oly_dtype_size((oly_dtype)p->load_dtype[k]), rows, w->box.rank, w->box.extent, false);
    for (int k = 0; k < p->n_stores; k++)
        operands[n++] =
            operand_of(w->stores[k].base, w->stores[k].offset, w->stores[k].stride,
                       (int64_t)oly_dtype_size((oly_dtype)p->store_dtype[k]), rows, w->box.rank, w->box.extent, true);
    return n;
}

static int of_reduction(const oly_reduce_work *w, const oly_rows *rows, oly_row_operand *operands)
{
    const oly_reduce_task *t = &w->task;
    oly_rows own;
    int64_t stride[OLY_MAX_RANK], dense = 1;
    if (!has_rows(t->rank, t->extent, rows) || !oly_rows_of(w, &own) || oly_rows_count(&own) != oly_rows_count(rows))
        return 0;
    operands[0] =
        operand_of(w->in.base, w->in.offset, t->stride, (int64_t)oly_dtype_size(t->converts ? t->from : t->dtype), rows,
                   t->rank, t->extent, false);
    for (int d = rows->lead - 1; d >= 0; d--) {
        stride[d] = dense;
        dense *= rows->extent[d];
    }
    operands[1] = operand_of(w->out_base, w->out_offset, stride, (int64_t)oly_dtype_size(t->dtype), rows, rows->lead,
                             rows->extent, true);
    return 2;
}

int oly_row_operands_of(const oly_step *s, int device, const oly_rows *rows, oly_row_operand *operands)
{
    return s->kind == OLY_STEP_REDUCE ? of_reduction(&s->reduce.device[device], rows, operands)
                                      : of_tile(&s->tile.program, &s->tile.device[device], rows, operands);
}

bool oly_rows_match(const oly_rows *rows, const oly_row_operand *a, const oly_row_operand *b)
{
    int64_t row = 0, below = 0; /* bytes of a row, and of the dimensions after this one */
    for (int d = rows->lead - 1; d >= 0; d--) {
        if (rows->extent[d] == 1)
            continue;
        if (a->stride[d] != b->stride[d] || a->stride[d] <= 0 || a->stride[d] < below)
            return false;
        row = row ? row : a->stride[d];
        below = a->stride[d] * rows->extent[d];
    }
    return row > 0 && a->low >= 0 && b->low >= 0 && a->high <= row && b->high <= row;
}

int64_t oly_row_bytes(const oly_rows *rows, const oly_row_operand *a)
{
    int64_t row = 0, next = 0;
    for (int d = rows->lead - 1; d >= 0; d--) {
        if (rows->extent[d] == 1)
            continue;
        if (row && a->stride[d] != next)
            return 0;
        row = row ? row : a->stride[d];
        next = a->stride[d] * rows->extent[d];
    }
    return row;
}
