/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a box in parts (code_parts.h): each row in pieces that leave room in L1 for what parts hand on. */
#include "code_parts.h"
#include "table.h"
#include <string.h>

enum { MEMORY_BYTES = 65536, GOOD_BYTES = 24576, SHORT_ROW = 64, LEAST_PIECE = 256 };

typedef struct running {
    const oly_code_parts *parts;
    const uint8_t *code;
    const oly_tile_program *program;
    char *operand[OLY_CODE_OPERANDS]; /* at the first element of the row */
    char *memory;
    size_t slot_bytes;
} running;

/* base: of loads, then of stores. */
static bool overwrites(const oly_code_parts *parts, const oly_tile_program *p, char *const *base)
{
    for (int k = 0; k < parts->n_pairs && parts->n_pairs <= OLY_MOST_PART_PAIRS; k++)
        if (base[parts->pair[k][0]] == base[parts->pair[k][1]])
            return true;
    for (int s = p->n_loads; s < p->n_loads + p->n_stores && parts->n_pairs > OLY_MOST_PART_PAIRS; s++)
        for (int l = 0; l < p->n_loads; l++)
            if (base[l] == base[s] && parts->last_read[l] > parts->written[s])
                return true;
    return false;
}

static int64_t piece_of(const oly_code_parts *parts, int64_t n)
{
    if (parts->n_slots == 0)
        return n < OLY_TILE ? n : OLY_TILE;
    int64_t good = GOOD_BYTES / (parts->n_slots * parts->slot_element);
    int64_t fits = MEMORY_BYTES / (parts->n_slots * parts->slot_element);
    good = good < LEAST_PIECE ? LEAST_PIECE : good > OLY_TILE ? OLY_TILE : good;
    good = (good < fits ? good : fits) / 64 * 64;
    if (n <= good)
        return n;
    int64_t pieces = (n + good - 1) / good; /* of equal length */
    return ((n + pieces - 1) / pieces + 63) / 64 * 64;
}

static char *address(const running *r, const oly_part_place *place, int64_t from)
{
    switch (place->kind) {
    case OLY_PART_OPERAND: return (char *)((uintptr_t)r->operand[place->number] + (uintptr_t)(place->moves * from));
    case OLY_PART_SLOT: return r->memory + (size_t)place->number * r->slot_bytes;
    default: return (char *)(uintptr_t)&r->program->instructions[place->number].value; /* only read */
    }
}

/* Elements [from, to) of the row. */
static void run_part(const running *r, const oly_code_part *part, oly_code_call *call, int64_t from, int64_t to)
{
    const oly_part_place *place = &r->parts->place[part->first_place];
    if (part->is_code) {
        oly_code *code = (oly_code *)(uintptr_t)(r->code + part->at);
        oly_code_set_length(call, &part->outline, to - from);
        oly_code_set_constants(call, &part->outline, r->program);
        call->rows = 1;
        for (int k = 0; k < part->n_places; k++) {
            call->at[k] = address(r, &place[k], from);
            call->step[k] = 0;
        }
        code(call);
        return;
    }
    const char *in[3] = {NULL, NULL, NULL}; /* a kernel */
    int n_in = part->n_places - 1;
    for (int k = 0; k < n_in; k++)
        in[k] = address(r, &place[k], from);
    oly_tile_instruction_run(&r->program->instructions[part->instruction], part->scalars,
                             part->once ? 1 : (int)(to - from), address(r, &place[n_in], from), in);
}

/* The row of n elements whose first ones are r->operand[]. */
static void run_row(const running *r, int64_t n, int64_t piece)
{
    oly_code_call call;
    call.common = oly_code_table();
    for (int64_t from = 0; from < n; from += piece)
        for (int k = 0; k < r->parts->n_parts; k++)
            run_part(r, &r->parts->part[k], &call, from, from + piece < n ? from + piece : n);
}

/* Rows of n elements; the operands are set for each. Returns the elements of a piece. */
static int64_t begin(running *r, const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                     char *memory, int64_t n)
{
    int64_t piece = piece_of(parts, n);
    r->parts = parts;
    r->code = code;
    r->program = program;
    r->memory = memory;
    r->slot_bytes = ((size_t)piece * (size_t)parts->slot_element + 63) / 64 * 64;
    return piece;
}

typedef struct expanded_run {
    running run;
    int n_operands;
    int64_t piece;
} expanded_run;

static void run_expanded(void *context, char *const *first, int64_t n)
{
    expanded_run *e = context;
    memcpy(e->run.operand, first, sizeof *first * (size_t)e->n_operands);
    run_row(&e->run, n, e->piece);
}

/* Rows of several dimensions, which are pieces already. */
static bool run_all_expanded(const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                             const oly_code_box *b, char *memory)
{
    expanded_run e;
    int64_t n = b->piece;
    for (int d = b->first_row + 1; d < b->rank; d++)
        n *= b->extent[d];
    if (n < SHORT_ROW)
        return false;
    e.n_operands = b->n_operands;
    e.piece = begin(&e.run, parts, code, program, memory, n);
    oly_code_expand(b, run_expanded, &e);
    return true;
}

bool oly_code_parts_run(const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                        const oly_code_box *b)
{
    char memory[MEMORY_BYTES] __attribute__((aligned(64)));
    running r;
    int64_t rows = 1, n = b->extent[b->rank - 1];
    if (overwrites(parts, program, b->base))
        return false;
    if (b->first_row < b->rank - 1)
        return run_all_expanded(parts, code, program, b, memory);
    if (b->rank > 1 && n < SHORT_ROW)
        return false;
    for (int d = 0; d < b->rank - 1; d++)
        rows *= b->extent[d];
    int64_t piece = begin(&r, parts, code, program, memory, n);
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row;
        memcpy(r.operand, b->base, sizeof *r.operand * (size_t)b->n_operands);
        for (int d = b->rank - 2; d >= 0; d--) {
            int64_t at = rest % b->extent[d];
            rest /= b->extent[d];
            for (int k = 0; at && k < b->n_operands; k++)
                r.operand[k] = (char *)((uintptr_t)r.operand[k] + (uintptr_t)(at * b->stride[k][d]));
        }
        run_row(&r, n, piece);
    }
    return true;
}

bool oly_code_parts_run_row(const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                            char *const *first, int64_t n)
{
    char memory[MEMORY_BYTES] __attribute__((aligned(64)));
    running r;
    if (overwrites(parts, program, first))
        return false;
    memcpy(r.operand, first, sizeof *first * (size_t)(program->n_loads + program->n_stores));
    run_row(&r, n, begin(&r, parts, code, program, memory, n));
    return true;
}
