/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes as calls of machine code (machine_code.h): dimensions are merged as in cpu/tile.c, and a chunk is some rows, or a
 * part of a row. Rows go along the last dimension, unless that is short or operands are apart there: then along the one that takes least,
 * since the order of elements does not matter. Called by runtime/run/compiled_groups.c. */
#include "iota.h"
#include "machine_code.h"
#include "table.h"
#include <string.h>

enum {
    LONG_ROW = 64, /* along which rows go if nothing is apart there */
    MULTIPLE = 64,
    CACHE_BYTES = 1 << 14, /* that pieces of rows use of L1, and */
    LINE = 64,
    MOST_UNIT = 64 /* elements of the dimensions after the first one of a row */
};
/* About how many cycles: */
static const double ROW = 25, ROW_OPERAND = 2, OPERATION = 0.7, NEXT_TO = 0.5, APART = 1.3, FAR_APART = 4,
                    ROW_COPY = 20, COPY_AGAIN = 0.1, COPY_SAME = 0.5, COPY = 1, COPY_RUN = 30,
                    INTERPRETED_OPERAND = 0.3, INTERPRETED = 0.6; /* of an element */

/* -- merging ------------------------------------------------------------------------------------------------------------------ */

/* *start: the counter's value at the box's first element. False: its values do not fit 32 bits. */
static bool counter_start(const oly_tile_instruction *c, const oly_tile_box *box, int64_t *start)
{
    *start = oly_iota_origin(c, box);
    int64_t last = *start;
    for (int d = 0; d < box->rank; d++)
        last += (box->extent[d] - 1) * oly_iota_stride(c, box, d);
    return *start > INT32_MIN && last < INT32_MAX;
}

static void take_dimension(oly_code_box *b, const int64_t *stride, int64_t extent)
{
    bool merges = b->rank > 0;
    for (int k = 0; merges && k < b->n_operands; k++)
        merges = b->stride[k][b->rank - 1] == stride[k] * extent;
    if (merges)
        b->extent[b->rank - 1] *= extent;
    else
        b->extent[b->rank++] = extent;
    for (int k = 0; k < b->n_operands; k++)
        b->stride[k][b->rank - 1] = stride[k];
}

/* One element: a row of one, whose code is that of longer rows. */
static void take_one(oly_code_box *b)
{
    b->extent[b->rank++] = 1;
    for (int k = 0; k < b->n_operands; k++)
        b->stride[k][0] = b->element[k];
}

/* -- the dimension of rows ------------------------------------------------------------------------------------------------- */

static bool is_store(const oly_tile_program *p, const oly_code_box *b, int operand)
{
    return operand >= p->n_loads && operand < b->n_memory;
}

/* Elements of the operand along a dimension: are they apart? */
static bool is_apart(const oly_tile_program *p, const oly_code_box *b, int operand, int d)
{
    int64_t stride = b->stride[operand][d];
    return stride != b->element[operand] && (stride != 0 || is_store(p, b, operand));
}

static bool is_any_apart(const oly_tile_program *p, const oly_code_box *b, int d)
{
    for (int k = 0; k < b->n_memory; k++)
        if (is_apart(p, b, k, d))
            return true;
    return false;
}

/* Do counters stand still or count one by one? */
static bool counts(const oly_code_box *b, int d)
{
    for (int k = b->n_memory; k < b->n_operands; k++)
        if (b->stride[k][d] != 0 && b->stride[k][d] != 1)
            return false;
    return true;
}

/* About what rows along a dimension take. */
static double cost_of(const oly_tile_program *p, const oly_code_box *b, int d)
{
    double rows = 1, vector = OPERATION * p->n_instructions;
    int widest = 1;
    for (int k = 0; k < b->n_memory; k++)
        widest = b->element[k] > widest ? b->element[k] : widest;
    int lanes = 32 / widest;
    for (int k = 0; k < b->n_memory; k++) {
        int64_t stride = b->stride[k][d];
        if (is_apart(p, b, k, d))
            vector += lanes * (stride > LINE || stride < -LINE ? FAR_APART : APART);
        else if (stride != 0)
            vector += NEXT_TO;
    }
    for (int e = 0; e < b->rank; e++)
        rows *= e == d ? 1 : (double)b->extent[e];
    int64_t vectors = (b->extent[d] + lanes - 1) / lanes;
    return rows * (ROW + ROW_OPERAND * b->n_operands + vector * (double)vectors);
}

/* The others keep their order. */
static void move_to_end(oly_code_box *b, int d)
{
    for (; d < b->rank - 1; d++) {
        int64_t extent = b->extent[d];
        b->extent[d] = b->extent[d + 1];
        b->extent[d + 1] = extent;
        for (int k = 0; k < b->n_operands; k++) {
            int64_t stride = b->stride[k][d];
            b->stride[k][d] = b->stride[k][d + 1];
            b->stride[k][d + 1] = stride;
        }
    }
}

/* The operand along all dimensions from `first` on. */
typedef enum along { ADJACENT, SAME, COPIED } along;

static along along_row(const oly_code_box *b, int operand, int first)
{
    int64_t stride = b->element[operand];
    bool adjacent = true, same = true;
    for (int d = b->rank - 1; d >= first; d--) {
        adjacent = adjacent && b->stride[operand][d] == stride;
        same = same && b->stride[operand][d] == 0;
        stride *= b->extent[d];
    }
    return adjacent ? ADJACENT : same ? SAME : COPIED;
}

/* Elements of the operand that are copied at a time: those side by side, or the same, along the last dimensions. */
static double run_of(const oly_code_box *b, int operand, int first)
{
    int64_t step = b->stride[operand][b->rank - 1], run = b->extent[b->rank - 1];
    for (int d = b->rank - 2; d >= first && b->stride[operand][d] == step * run; d--)
        run *= b->extent[d];
    return step == 0 || step == b->element[operand] ? (double)run : 1;
}

/* About what rows along all dimensions from `first` on take, copies included; negative: there are none. */
static double cost_of_expanded(const oly_tile_program *p, const oly_code_box *b, int first)
{
    double rows = 1, n = 1, vector = OPERATION * p->n_instructions, copies = 0;
    int widest = 1, copied = 0;
    for (int k = 0; k < b->n_operands; k++) {
        along how = along_row(b, k, first);
        if (how == COPIED && (k >= p->n_loads || ++copied > OLY_CODE_EXPANDED))
            return -1;
        if (how == SAME && is_store(p, b, k))
            return -1;
        if (how == COPIED)
            copies += b->stride[k][first] == 0
                          ? COPY_AGAIN
                          : COPY_RUN / run_of(b, k, first) + (b->stride[k][b->rank - 1] == 0 ? COPY_SAME : COPY);
        if (k < b->n_memory && how != SAME)
            vector += NEXT_TO;
        if (k < b->n_memory)
            widest = b->element[k] > widest ? b->element[k] : widest;
    }
    for (int d = 0; d < b->rank; d++)
        *(d < first ? &rows : &n) *= (double)b->extent[d];
    return rows * (2 * ROW + ROW_OPERAND * b->n_operands + ROW_COPY * copied + n * (copies + vector * widest / 32));
}

/* Makes the dimensions from `first` on one row. */
static void expand_from(oly_code_box *b, int first)
{
    b->first_row = first;
    for (int k = 0; k < b->n_memory; k++)
        if (along_row(b, k, first) == COPIED)
            b->expanded[k / 64] |= (uint64_t)1 << k % 64;
    b->piece = oly_code_expanded_piece(b);
    if (b->piece < 1) { /* too much to copy */
        b->first_row = b->rank - 1;
        b->expanded[0] = b->expanded[1] = 0;
    }
}

/* About what the interpreter takes, which moves short rows in blocks. */
static double cost_interpreted(const oly_tile_program *p, const oly_code_box *b)
{
    double n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= (double)b->extent[d];
    return n * (INTERPRETED_OPERAND * b->n_memory + INTERPRETED * p->n_instructions);
}

bool oly_code_may_decline = true;

/* False: the interpreter is better. */
static bool choose_row(const oly_tile_program *p, oly_code_box *b)
{
    int last = b->rank - 1, best = -1, expanded = -1;
    double least = 0;
    b->first_row = last;
    b->expanded[0] = b->expanded[1] = 0;
    if (b->rank == 1 || (b->extent[last] >= LONG_ROW && counts(b, last) && !is_any_apart(p, b, last)))
        return true;
    int64_t unit = b->extent[last];
    for (int d = last - 1; d >= 0 && unit <= MOST_UNIT; unit *= b->extent[d--]) {
        double cost = cost_of_expanded(p, b, d);
        if (cost >= 0 && (expanded < 0 || cost < least)) {
            expanded = d;
            least = cost;
        }
    }
    for (int d = 0; d < b->rank; d++) {
        double cost = counts(b, d) ? cost_of(p, b, d) : 0;
        if (cost > 0 && ((best < 0 && expanded < 0) || cost < least)) {
            best = d;
            least = cost;
        }
    }
    if (best >= 0)
        move_to_end(b, best);
    else if (expanded >= 0)
        expand_from(b, expanded);
    return best >= 0 || expanded < 0 || !oly_code_may_decline || least <= cost_interpreted(p, b);
}

/* Which operands are one element for the whole row, and which are apart along it. Of those, lines are used again by the rows beside. */
static bool find_form(const oly_tile_program *p, oly_code_box *b, oly_code_form *form)
{
    int last = b->rank - 1;
    int64_t lines = 0;
    memset(form, 0, sizeof *form);
    for (int k = 0; b->first_row < last && k < b->n_operands; k++)
        if (along_row(b, k, b->first_row) == SAME)
            form->scalar[k / 64] |= (uint64_t)1 << k % 64;
    if (b->first_row < last)
        return true;
    for (int k = 0; k < b->n_operands; k++) {
        int64_t stride = b->stride[k][last];
        if (stride == 0 && !is_store(p, b, k)) {
            form->scalar[k / 64] |= (uint64_t)1 << k % 64;
        } else if (k < b->n_memory && is_apart(p, b, k, last)) {
            if (stride == 0 || !oly_code_strides(stride))
                return false;
            form->strided[k / 64] |= (uint64_t)1 << k % 64;
            lines += stride < LINE && stride > -LINE ? stride < 0 ? -stride : stride : LINE;
        }
    }
    b->piece = b->extent[last];
    if (lines > 0 && b->rank > 1 && b->piece * lines > CACHE_BYTES)
        b->piece = CACHE_BYTES / lines > MULTIPLE ? CACHE_BYTES / lines / MULTIPLE * MULTIPLE : MULTIPLE;
    return counts(b, last);
}

bool oly_code_prepare(const oly_tile_program *p, const oly_tile_box *box, const oly_tile_operand *loads,
                      const oly_tile_operand *stores, oly_code_box *b, oly_code_form *form)
{
    int16_t counters[OLY_CODE_OPERANDS];
    b->rank = 0;
    b->n_memory = b->n_operands = p->n_loads + p->n_stores;
    if (b->n_memory > OLY_CODE_OPERANDS)
        return false;
    for (int k = 0; k < b->n_memory; k++) {
        bool load = k < p->n_loads;
        b->base[k] = load ? loads[k].base : stores[k - p->n_loads].base;
        b->element[k] = oly_element_bytes[load ? p->load_dtype[k] : p->store_dtype[k - p->n_loads]];
    }
    for (int i = 0; i < p->n_instructions; i++) {
        int64_t start;
        if (p->instructions[i].op != OLY_TILE_iota)
            continue;
        if (b->n_operands == OLY_CODE_OPERANDS || !counter_start(&p->instructions[i], box, &start))
            return false;
        counters[b->n_operands] = (int16_t)i;
        b->element[b->n_operands] = 1;
        b->base[b->n_operands++] = (char *)(intptr_t)start;
    }
    for (int d = 0; d < box->rank; d++) {
        int64_t stride[OLY_CODE_OPERANDS];
        if (box->extent[d] == 1)
            continue;
        for (int k = 0; k < b->n_operands; k++)
            stride[k] = k >= b->n_memory ? oly_iota_stride(&p->instructions[counters[k]], box, d)
                        : k < p->n_loads ? loads[k].stride[d] * b->element[k]
                                         : stores[k - p->n_loads].stride[d] * b->element[k];
        take_dimension(b, stride, box->extent[d]);
    }
    if (b->rank == 0)
        take_one(b);
    return choose_row(p, b) && find_form(p, b, form);
}

/* -- running -------------------------------------------------------------------------------------------------------------- */

typedef struct running {
    oly_code *code;
    const oly_code_outline *outline;
    const oly_code_box *box;
    oly_code_call call;
} running;

static void begin_call(oly_code_call *call, const oly_code_outline *outline, const oly_tile_program *program)
{
    call->common = oly_code_table();
    oly_code_set_constants(call, outline, program);
}

/* Elements [from, to) of `n` rows from `row` on, which differ in the last dimension of rows only. */
static void run_rows(running *r, int64_t row, int64_t n, int64_t from, int64_t to)
{
    const oly_code_box *b = r->box;
    int64_t at[OLY_MAX_RANK] = {0};
    for (int d = b->rank - 2; d >= 0; d--) {
        at[d] = row % b->extent[d];
        row /= b->extent[d];
    }
    oly_code_set_length(&r->call, r->outline, to - from);
    r->call.rows = n;
    for (int k = 0; k < b->n_operands; k++) {
        int64_t offset = from * b->stride[k][b->rank - 1];
        for (int d = 0; d < b->rank - 1; d++)
            offset += at[d] * b->stride[k][d];
        r->call.at[k] = (char *)((uintptr_t)b->base[k] + (uintptr_t)offset);
        r->call.step[k] = b->rank > 1 ? b->stride[k][b->rank - 2] : 0;
        r->call.stride[k] = b->stride[k][b->rank - 1];
    }
    r->code(&r->call);
}

static int64_t part_at(int64_t n, int64_t part, int64_t parts)
{
    return part == parts ? n : n * part / parts / MULTIPLE * MULTIPLE;
}

static void run_expanded(void *context, char *const *first, int64_t n)
{
    running *r = context;
    oly_code_set_length(&r->call, r->outline, n);
    r->call.rows = 1;
    for (int k = 0; k < r->box->n_operands; k++) {
        r->call.at[k] = first[k];
        r->call.step[k] = 0;
    }
    r->code(&r->call);
}

void oly_code_run(oly_code *code, const oly_code_outline *outline, const oly_tile_program *program,
                  const oly_code_box *b, int chunk, int n_chunks)
{
    int64_t rows = 1, n = b->extent[b->rank - 1];
    for (int d = 0; d < b->rank - 1; d++)
        rows *= b->extent[d];
    int64_t parts = rows >= n_chunks ? 1 : (n_chunks + rows - 1) / rows, units = rows * parts;
    int64_t unit = units * chunk / n_chunks, end = units * (chunk + 1) / n_chunks;
    int64_t together = b->rank > 1 ? b->extent[b->rank - 2] : 1;
    running r;
    r.code = code;
    r.outline = outline;
    r.box = b;
    begin_call(&r.call, outline, program);
    if (b->first_row < b->rank - 1) {
        if (chunk == 0)
            oly_code_expand(b, run_expanded, &r);
        return;
    }
    while (unit < end) {
        int64_t row = unit / parts, part = unit % parts, count = 1;
        int64_t from = part_at(n, part, parts), to = part_at(n, part + 1, parts);
        if (parts == 1)
            count = end - row < together - row % together ? end - row : together - row % together;
        for (int64_t at = from; at < to; at += b->piece)
            run_rows(&r, row, count, at, at + b->piece < to ? at + b->piece : to);
        unit += count;
    }
}

void oly_code_run_row(oly_code *code, const oly_code_outline *outline, const oly_tile_program *program,
                      char *const *first, int64_t n)
{
    oly_code_call call;
    begin_call(&call, outline, program);
    oly_code_set_length(&call, outline, n);
    call.rows = 1;
    for (int k = 0; k < program->n_loads + program->n_stores; k++) {
        call.at[k] = first[k];
        call.step[k] = 0;
    }
    code(&call);
}
