/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps as work on rows. See row_operands.h. */
#include "plan/model/row_operands.h"
#include <string.h>

bool oly_looks_up(const oly_step *s, int device)
{
    if (s->kind != OLY_STEP_LOCAL || !s->local.device[device].has_work)
        return false;
    oly_local_way way = oly_local_way_of(s->local.device[device].task.op);
    return way == OLY_LOCAL_READS || way == OLY_LOCAL_SEARCHES;
}

static bool scatters(const oly_step *s, int device)
{
    return s->kind == OLY_STEP_LOCAL && s->local.device[device].has_work &&
           oly_local_way_of(s->local.device[device].task.op) == OLY_LOCAL_WRITES &&
           s->local.device[device].task.op != OLY_LOCAL_DYNAMIC_UPDATE;
}

bool oly_is_sink(const oly_step *s, int device)
{
    return (s->kind == OLY_STEP_TILE && s->begins_next) || scatters(s, device);
}

/* The kept dimensions of a reduction of the last dimensions. */
static bool kept_rows(const oly_reduce_work *w, oly_rows *rows)
{
    const oly_reduce_task *t = &w->task;
    while (rows->lead < t->rank && !t->reduced[rows->lead]) {
        rows->extent[rows->lead] = t->extent[rows->lead];
        rows->lead++;
    }
    for (int d = rows->lead; d < t->rank; d++)
        if (!t->reduced[d] && t->extent[d] > 1)
            return false;
    return rows->lead > 0 && w->scratch_base < 0;
}

/* The first dimension of what is reduced, if it is kept: reductions of different dimensions may have it in common. */
static bool outer_rows(const oly_reduce_work *w, oly_rows *rows)
{
    *rows = (oly_rows){.lead = 1, .extent = {w->task.extent[0]}};
    return w->task.rank > 1 && !w->task.reduced[0] && w->scratch_base < 0;
}

/* The first or the last dimension of the positions. */
static bool lookup_rows(const oly_local_task *t, bool columns, oly_rows *rows)
{
    const oly_local_operand *at = &t->in[1];
    rows->lead = 1;
    rows->columns = columns;
    rows->extent[0] = at->rank ? at->extent[columns ? at->rank - 1 : 0] : 0;
    return at->rank > 0;
}

bool oly_rows_of_steps(const oly_step *steps, int n, int device, oly_row_kind kind, oly_rows *rows)
{
    *rows = (oly_rows){0};
    for (int k = 0; k < n; k++) {
        const oly_step *s = &steps[k];
        if (kind == OLY_ROWS_KEPT && s->kind == OLY_STEP_REDUCE)
            return s->reduce.device[device].has_work && kept_rows(&s->reduce.device[device], rows);
        if (kind == OLY_ROWS_OUTER && s->kind == OLY_STEP_REDUCE)
            return s->reduce.device[device].has_work && outer_rows(&s->reduce.device[device], rows);
        if (!oly_rows_are_reduced(kind) && (oly_looks_up(s, device) || (kind == OLY_ROWS_FIRST && scatters(s, device))))
            return lookup_rows(&s->local.device[device].task, kind == OLY_ROWS_LAST, rows);
    }
    return false;
}

int64_t oly_rows_count(const oly_rows *rows)
{
    int64_t n = 1;
    for (int d = 0; d < rows->lead; d++)
        n *= rows->extent[d];
    return n;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* A box of the operand: its strides are in elements. */
static oly_row_operand operand_of(int cell, int64_t offset, const int64_t *stride, int64_t bytes, const oly_rows *rows,
                                  int rank, const int64_t *extent, bool writes)
{
    oly_row_operand o = {
        .cell = cell, .offset = offset, .high = bytes, .elements = 1, .bytes = bytes, .writes = writes};
    int begin = rows->columns ? 0 : rows->lead, end = rows->columns ? rank - 1 : rank;
    for (int d = 0; d < rows->lead; d++)
        o.stride[d] = stride[rows->columns ? rank - 1 : d] * bytes;
    for (int d = begin; d < end; d++) {
        int64_t step = stride[d] * bytes, span = (extent[d] - 1) * step;
        *(span < 0 ? &o.low : &o.high) += span;
        o.elements *= stride[d] ? extent[d] : 1;
        if (span != 0)
            o.line = common_divisor(o.line, step < 0 ? -step : step);
    }
    return o;
}

static bool has_rows(int rank, const int64_t *extent, const oly_rows *rows)
{
    if (rank < rows->lead)
        return false;
    for (int d = 0; d < rank; d++)
        if (extent[d] == 0 || (!rows->columns && d < rows->lead && extent[d] != rows->extent[d]))
            return false;
    return !rows->columns || extent[rank - 1] == rows->extent[0];
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

/* Strides of a dense array, in elements. */
static void dense_strides(int rank, const int64_t *extent, int64_t *stride)
{
    int64_t dense = 1;
    for (int d = rank - 1; d >= 0; d--) {
        stride[d] = dense;
        dense *= extent[d];
    }
}

/* It keeps the dimensions of the rows, and perhaps others. */
static int of_reduction(const oly_reduce_work *w, const oly_rows *rows, oly_row_operand *operands)
{
    const oly_reduce_task *t = &w->task;
    int64_t stride[OLY_MAX_RANK], kept[OLY_MAX_RANK];
    int rank = 0;
    if (w->scratch_base >= 0 || !has_rows(t->rank, t->extent, rows))
        return 0;
    for (int d = 0; d < t->rank; d++) {
        if (t->reduced[d] && (rows->columns ? d == t->rank - 1 : d < rows->lead))
            return 0;
        if (!t->reduced[d])
            kept[rank++] = t->extent[d];
    }
    dense_strides(rank, kept, stride);
    operands[0] =
        operand_of(w->in.base, w->in.offset, t->stride, (int64_t)oly_dtype_size(t->converts ? t->from : t->dtype), rows,
                   t->rank, t->extent, false);
    operands[1] =
        operand_of(w->out_base, w->out_offset, stride, (int64_t)oly_dtype_size(t->dtype), rows, rank, kept, true);
    return 2;
}

/* Is there one result for each position, in their order; and may positions be left out? */
static bool has_lookups(const oly_local_work *w, const oly_rows *rows)
{
    const oly_local_task *t = &w->task;
    if (t->partial || w->scratch_base >= 0 || t->n_in > OLY_ROW_OPERANDS - 1 || (!rows->columns && t->n_batch > 0) ||
        (rows->columns && (t->out.rank != t->in[1].rank || t->in[1].rank <= t->n_batch)))
        return false;
    for (int k = 0; k < t->n_in; k++)
        if (w->in[k].base < 0 || (k > 0 && !has_rows(t->in[k].rank, t->in[k].extent, rows)))
            return false;
    return has_rows(t->out.rank, t->out.extent, rows);
}

static int of_lookup(const oly_local_work *w, const oly_rows *rows, oly_row_operand *operands)
{
    const oly_local_task *t = &w->task;
    const oly_rows none = {0};
    int64_t stride[OLY_MAX_RANK];
    if (!has_lookups(w, rows))
        return 0;
    for (int k = 0; k < t->n_in; k++)
        operands[k] =
            operand_of(w->in[k].base, w->in[k].offset, t->in[k].stride, (int64_t)oly_dtype_size(t->in[k].dtype),
                       k == 0 ? &none : rows, t->in[k].rank, t->in[k].extent, false);
    operands[0].whole = true;
    dense_strides(t->out.rank, t->out.extent, stride);
    operands[t->n_in] = operand_of(w->out_base, 0, stride, (int64_t)oly_dtype_size(t->out.dtype), rows, t->out.rank,
                                   t->out.extent, true);
    return t->n_in + 1;
}

/* The whole box, which any row may use. */
static oly_row_operand sink_of(int cell, int64_t offset, const oly_local_operand *box, bool writes)
{
    const oly_rows none = {0};
    oly_row_operand o = operand_of(cell, offset, box->stride, (int64_t)oly_dtype_size(box->dtype), &none, box->rank,
                                   box->extent, writes);
    o.whole = o.sink = true;
    return o;
}

static bool is_one_element(const oly_local_operand *x)
{
    bool one = true;
    for (int d = 0; d < x->rank; d++)
        one = one && (x->stride[d] == 0 || x->extent[d] == 1);
    return one;
}

/* Positions are visited in their order, so that the first dimension of the indexes may be divided. */
static int of_scatter(const oly_local_work *w, const oly_rows *rows, oly_row_operand *operands)
{
    const oly_local_task *t = &w->task;
    if (rows->columns || t->n_batch > 0 || w->scratch_base >= 0 || t->n_in > OLY_ROW_OPERANDS - 1)
        return 0;
    for (int k = 1; k < t->n_in; k++)
        if (w->in[k].base < 0 || !has_rows(t->in[k].rank, t->in[k].extent, rows))
            return 0;
    bool begins = w->in[0].base >= 0;
    for (int d = 0; d < t->in[0].rank; d++)
        begins = begins && t->in[0].extent[d] > 0;
    operands[0] =
        begins ? sink_of(w->in[0].base, w->in[0].offset, &t->in[0], false) : sink_of(w->out_base, 0, &t->out, false);
    for (int k = 1; k < t->n_in; k++)
        operands[k] =
            k == t->n_in - 1 && is_one_element(&t->in[k])
                ? sink_of(w->in[k].base, w->in[k].offset, &t->in[k], false)
                : operand_of(w->in[k].base, w->in[k].offset, t->in[k].stride, (int64_t)oly_dtype_size(t->in[k].dtype),
                             rows, t->in[k].rank, t->in[k].extent, false);
    operands[t->n_in] = sink_of(w->out_base, 0, &t->out, true);
    return t->n_in + 1;
}

/* What the scatter after it begins with. */
static int of_fill(const oly_tile_program *p, const oly_tile_work *w, oly_row_operand *operands)
{
    oly_local_operand box = {.dtype = (oly_dtype)p->store_dtype[0], .rank = w->box.rank};
    memcpy(box.extent, w->box.extent, sizeof box.extent);
    memcpy(box.stride, w->stores[0].stride, sizeof box.stride);
    operands[0] = sink_of(w->stores[0].base, w->stores[0].offset, &box, true);
    return 1;
}

int oly_row_operands_of(const oly_step *s, int device, const oly_rows *rows, oly_row_operand *operands)
{
    if (s->kind == OLY_STEP_TILE && s->begins_next)
        return of_fill(&s->tile.program, &s->tile.device[device], operands);
    if (scatters(s, device))
        return of_scatter(&s->local.device[device], rows, operands);
    switch (s->kind) {
    case OLY_STEP_REDUCE: return of_reduction(&s->reduce.device[device], rows, operands);
    case OLY_STEP_LOCAL: return of_lookup(&s->local.device[device], rows, operands);
    default: return of_tile(&s->tile.program, &s->tile.device[device], rows, operands);
    }
}

/* Elements whose distance is a multiple of the line's length are in the same column. */
static bool columns_match(const oly_rows *rows, const oly_row_operand *a, const oly_row_operand *b, int64_t apart)
{
    int64_t line = common_divisor(a->line, b->line), step = a->stride[0];
    if (step != b->stride[0] || step < a->bytes || step < b->bytes)
        return false;
    return line == 0 ? apart == 0 : rows->extent[0] * step <= line && apart % line == 0;
}

bool oly_rows_match(const oly_rows *rows, const oly_row_operand *a, const oly_row_operand *b, int64_t apart)
{
    int64_t row = 0, below = 0; /* bytes of a row, and of the dimensions after this one */
    if (a->whole || b->whole)
        return false;
    if (rows->columns)
        return columns_match(rows, a, b, apart);
    for (int d = rows->lead - 1; d >= 0; d--) {
        if (rows->extent[d] == 1)
            continue;
        if (a->stride[d] != b->stride[d] || a->stride[d] <= 0 || a->stride[d] < below)
            return false;
        row = row ? row : a->stride[d];
        below = a->stride[d] * rows->extent[d];
    }
    return apart == 0 && row > 0 && a->low >= 0 && b->low >= 0 && a->high <= row && b->high <= row;
}

int64_t oly_row_used(const oly_rows *rows, const oly_row_operand *a)
{
    return a->whole ? 0 : rows->columns ? a->elements * a->bytes : a->high - a->low;
}

bool oly_writes_lines(const oly_step *s, int device)
{
    bool several = false;
    const oly_local_operand *out = oly_looks_up(s, device) ? &s->local.device[device].task.out : NULL;
    for (int d = 0; out && d + 1 < out->rank; d++)
        several = several || out->extent[d] > 1;
    return several;
}

bool oly_multiplies_loads(const oly_step *s, oly_dtype dtype)
{
    const oly_tile_program *p = &s->tile.program;
    if (s->kind != OLY_STEP_TILE || p->n_instructions != 1 || p->n_loads != 2 || p->n_stores != 1)
        return false;
    const oly_tile_instruction *i = p->instructions;
    bool in_order = i->in[0] == p->load_register[0] && i->in[1] == p->load_register[1];
    bool swapped = i->in[1] == p->load_register[0] && i->in[0] == p->load_register[1];
    return i->op == OLY_TILE_mul && i->dtype == dtype && i->to == dtype && (in_order || swapped) &&
           p->store_register[0] == i->out && p->load_dtype[0] == dtype && p->load_dtype[1] == dtype &&
           p->store_dtype[0] == dtype;
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
