/* SPDX-License-Identifier: BSD-3-Clause */
/* The tile interpreter: runs an elementwise program over a box by tiles that stay in L1. Compiled once per instruction
 * set; gives oly_tile_run_<isa>.
 *
 * Dimensions along which every operand is evenly spaced are merged first. Then a tile is either
 *   a row    of the innermost dimension: loads and stores of stride 1 need no copy, registers point to memory, and an
 *            operand that is constant along the row is one element for the whole tile; or
 *   a block  of several dimensions, if rows are short or an operand is dense in another dimension: loads are gathered,
 *            stores scattered.
 * An instruction whose operands are one element for all has such a result too ("scalar"): computed once per tile, or once
 * per box if it is constant. Each register's value is kept in a slot (a part of `memory`), in the memory of its load, or
 * in that of the store it goes to. */
#include "tile_small.h"
#include "iota.h"
#include <string.h>

#define MEMORY_BYTES 65536 /* all slots */
#define GOOD_BYTES   24576 /* slots of this size leave L1 room for streamed data */
#define SHORT_ROW    64
#define MOST_SLOTS   (OLY_TILE_REGISTERS + 2)
#define NO_SLOT      (-1)

typedef enum extent_class { VECTOR, ROW_SCALAR, CONSTANT } extent_class; /* for how many elements one register stands */

/* A load, a store or an iota: where it is and its strides (of an iota: those of its value). */
typedef struct operand {
    char *base;
    int64_t stride[OLY_MAX_RANK];
    int64_t origin; /* of an iota */
    uint8_t bytes;
    uint8_t kind; /* extent_class */
    bool copied;  /* a load that is gathered into its slot */
    bool shared;  /* a load of memory that a store writes */
    bool direct;  /* a store whose last writer writes in place */
    int16_t reg, slot;
} operand;

typedef struct step {
    oly_tile_call call; /* function NULL: only sets the address (constants), or an iota */
    char *place;        /* slot, or the address of a scalar */
    int16_t in[3], out;
    int16_t store; /* writes directly to the memory of this store; -1: to place */
    int16_t slot;
    int16_t iota; /* its operand; -1 */
    uint8_t to, kind, dies;
    bool unary;
    uint8_t scalar[16] __attribute__((aligned(16)));
} step;

typedef struct run {
    const oly_tile_program *program;
    int rank, n_loads, n_stores, n_operands;
    int64_t extent[OLY_MAX_RANK], tile[OLY_MAX_RANK], tiles[OLY_MAX_RANK];
    int64_t n_tiles, together; /* tiles along `across` that are computed one after the other */
    int across;                /* the dimension beside the innermost one in which operands are dense; -1 */
    bool blocks;               /* tiles are blocks, not rows */
    bool
        by_rows; /* blocks across of a single operation: it runs row by row, so that what is dense along rows is not copied */
    operand *operands; /* loads, stores, iotas */
    step *steps;
    int n_slots, slot_size;             /* size: largest element kept in a slot */
    const char *at[OLY_TILE_REGISTERS]; /* where each register's value is */
    uint8_t kind[OLY_TILE_REGISTERS];
    int16_t slot_of[OLY_TILE_REGISTERS], free_slots[MOST_SLOTS];
    int n_free;
} run;

/* -- the box -------------------------------------------------------------------------------------------------------- */

/* Merges dimension d into the last kept one, or keeps it. */
static void take_dimension(run *r, const int64_t *stride, int64_t extent)
{
    bool merges = r->rank > 0;
    for (int k = 0; merges && k < r->n_operands; k++)
        merges = r->operands[k].stride[r->rank - 1] == stride[k] * extent;
    if (merges)
        r->extent[r->rank - 1] *= extent;
    else
        r->extent[r->rank++] = extent;
    for (int k = 0; k < r->n_operands; k++)
        r->operands[k].stride[r->rank - 1] = stride[k];
}

static void collapse(run *r, const oly_tile_box *box, const oly_tile_operand *loads, const oly_tile_operand *stores)
{
    const oly_tile_program *p = r->program;
    for (int d = 0; d < box->rank; d++) {
        if (box->extent[d] == 1)
            continue;
        int64_t stride[r->n_operands];
        int k = 0;
        for (int i = 0; i < r->n_loads; i++)
            stride[k++] = loads[i].stride[d];
        for (int i = 0; i < r->n_stores; i++)
            stride[k++] = stores[i].stride[d];
        for (int i = 0; k < r->n_operands; i++)
            if (p->instructions[i].op == OLY_TILE_iota)
                stride[k++] = oly_iota_stride(&p->instructions[i], box, d);
        take_dimension(r, stride, box->extent[d]);
    }
    if (r->rank == 0) { /* one element: any stride is fine */
        r->rank = 1;
        r->extent[0] = 1;
        for (int k = 0; k < r->n_operands; k++)
            r->operands[k].stride[0] = 1;
    }
}

static void name_operands(run *r, const oly_tile_box *box, const oly_tile_operand *loads,
                          const oly_tile_operand *stores)
{
    const oly_tile_program *p = r->program;
    operand *o = r->operands;
    for (int i = 0; i < r->n_loads; i++, o++) {
        o->base = loads[i].base;
        o->bytes = oly_element_bytes[p->load_dtype[i]];
        o->reg = p->load_register[i];
        o->copied = o->direct = o->shared = false;
        o->slot = NO_SLOT;
        for (int s = 0; s < r->n_stores; s++)
            o->shared = o->shared || stores[s].base == loads[i].base;
    }
    for (int i = 0; i < r->n_stores; i++, o++) {
        o->base = stores[i].base;
        o->bytes = oly_element_bytes[p->store_dtype[i]];
        o->reg = p->store_register[i];
        o->copied = o->direct = false;
        o->slot = NO_SLOT;
    }
    for (int i = 0; i < p->n_instructions && o < r->operands + r->n_operands; i++)
        if (p->instructions[i].op == OLY_TILE_iota)
            (o++)->origin = oly_iota_origin(&p->instructions[i], box);
}

/* Are loads or stores dense in a dimension other than the innermost? *along: that one. */
static bool runs_across(const run *r, int *along)
{
    for (int k = 0; k < r->n_loads + r->n_stores; k++) {
        const int64_t *stride = r->operands[k].stride;
        if (stride[r->rank - 1] >= -8 && stride[r->rank - 1] <= 8)
            continue;
        for (int d = 0; d < r->rank - 1; d++)
            if (stride[d] == 1 && r->extent[d] > 1) {
                *along = d;
                return true;
            }
    }
    return false;
}

static void choose_form(run *r)
{
    int along;
    r->blocks = r->rank > 1 && (r->extent[r->rank - 1] < SHORT_ROW || runs_across(r, &along));
    for (int k = 0; k < r->n_operands; k++) {
        operand *o = &r->operands[k];
        bool still = true;
        for (int d = 0; d < r->rank; d++)
            still = still && o->stride[d] == 0;
        o->kind = still ? CONSTANT : !r->blocks && o->stride[r->rank - 1] == 0 ? ROW_SCALAR : VECTOR;
        if (k < r->n_loads)
            o->copied = o->kind == VECTOR && (r->blocks || o->stride[r->rank - 1] != 1);
    }
}

/* Length of equal pieces of at most `most`, multiples of 16 if there are several. */
static int64_t even_piece(int64_t extent, int64_t most)
{
    if (extent <= most)
        return extent;
    int64_t pieces = (extent + most - 1) / most, piece = (extent + pieces - 1) / pieces;
    piece = (piece + 15) / 16 * 16;
    return piece < most ? piece : most;
}

/* Bytes of a line of a block where operands are dense across; elements of it, at least and at most; and blocks along them that come one after the
 * other, so that pages are visited once. Measured with sides of 3001, 4000 and 4096. */
enum { LINE_BYTES = 128, SHORT_LINE = 16, LONG_LINE = 32, TOGETHER = 4 };

/* Elements of a line of a block across: of the operand that is dense so. */
static int64_t line_across(const run *r, int along)
{
    int64_t line = LONG_LINE;
    for (int k = 0; k < r->n_loads + r->n_stores; k++) {
        const operand *o = &r->operands[k];
        if (o->stride[along] == 1 && o->stride[r->rank - 1] != 1 && LINE_BYTES / o->bytes < line)
            line = LINE_BYTES / o->bytes;
    }
    return line < SHORT_LINE ? SHORT_LINE : line;
}

/* Is there one operation, and is its result dense along rows? */
static bool runs_by_rows(const run *r)
{
    return r->program->n_instructions == 1 && r->n_stores == 1 && r->steps[0].call.function != NULL &&
           r->steps[0].kind == VECTOR && r->operands[r->n_loads].reg == r->steps[0].out &&
           r->operands[r->n_loads].stride[r->rank - 1] == 1;
}

static void cut_into_tiles(run *r, int64_t most)
{
    int along = -1;
    r->across = -1;
    r->by_rows = false;
    for (int d = 0; d < r->rank; d++)
        r->tile[d] = 1;
    if (!r->blocks) {
        r->tile[r->rank - 1] = even_piece(r->extent[r->rank - 1], most);
    } else if (runs_across(r, &along)) {
        int64_t line = line_across(r, along), wide = most / line / 16 * 16;
        if (wide < 16) { /* room for few elements */
            line = most >= 256 ? 16 : 8;
            wide = line;
        }
        r->tile[r->rank - 1] = even_piece(r->extent[r->rank - 1], wide);
        r->tile[along] = even_piece(r->extent[along], line);
        r->across = along;
        r->together = TOGETHER;
        r->by_rows = runs_by_rows(r);
    } else {
        for (int d = r->rank - 1; d >= 0 && most > 1; d--) {
            r->tile[d] = r->extent[d] < most ? r->extent[d] : most;
            most /= r->tile[d];
        }
    }
    r->n_tiles = 1;
    for (int d = 0; d < r->rank; d++) {
        r->tiles[d] = (r->extent[d] + r->tile[d] - 1) / r->tile[d];
        r->n_tiles *= r->tiles[d];
    }
}

/* -- the program: functions and addresses -------------------------------------------------------------------------- */

/* Are the elements of the box one after the other? Then so are those of each block, unless blocks are cut across. */
static bool is_whole(const run *r, const operand *o)
{
    int64_t stride = 1;
    for (int d = r->rank - 1; d >= 0; d--) {
        if (o->stride[d] != stride)
            return false;
        stride *= r->extent[d];
    }
    return true;
}

/* From the last instruction to the first: which operands are read for the last time, and which instruction writes each
 * store. */
static void find_last_uses(run *r)
{
    const oly_tile_program *p = r->program;
    uint8_t live[OLY_TILE_REGISTERS] = {0};
    int16_t store_of[OLY_TILE_REGISTERS];
    int along;
    bool across = r->blocks && runs_across(r, &along);
    memset(store_of, -1, sizeof store_of);
    for (int s = 0; s < r->n_stores; s++) {
        const operand *o = &r->operands[r->n_loads + s];
        live[o->reg] = 1;
        bool in_place = r->blocks ? !across && is_whole(r, o) : o->stride[r->rank - 1] == 1;
        if (in_place && o->kind == VECTOR && store_of[o->reg] < 0)
            store_of[o->reg] = (int16_t)s;
    }
    for (int i = p->n_instructions - 1; i >= 0; i--) {
        const oly_tile_instruction *c = &p->instructions[i];
        step *t = &r->steps[i];
        t->dies = 0;
        t->store = store_of[c->out];
        store_of[c->out] = -1;
        live[c->out] = 0;
        for (int k = 0; k < 3; k++)
            if (c->in[k] >= 0 && !live[c->in[k]]) {
                t->dies |= (uint8_t)(1 << k);
                live[c->in[k]] = 1;
            }
    }
}

/* A load that shares memory with a store can be read in place only before the store: otherwise it is copied. */
static void copy_overwritten_loads(run *r)
{
    const oly_tile_program *p = r->program;
    for (int l = 0; l < r->n_loads; l++)
        for (int s = 0; s < r->n_stores; s++) {
            operand *load = &r->operands[l], *store = &r->operands[r->n_loads + s];
            if (load->base != store->base || load->kind != VECTOR || load->copied)
                continue;
            int writer = p->n_instructions;
            for (int i = 0; i < p->n_instructions; i++)
                if (p->instructions[i].out == store->reg)
                    writer = i;
            bool read_later = writer == p->n_instructions && load->reg != store->reg;
            for (int i = writer + 1; i < p->n_instructions; i++)
                for (int k = 0; k < 3; k++)
                    read_later = read_later || p->instructions[i].in[k] == load->reg;
            for (int other = 0; other < r->n_stores; other++)
                read_later = read_later || (other != s && r->operands[r->n_loads + other].reg == load->reg);
            load->copied = read_later;
        }
}

static int16_t take_slot(run *r, int bytes)
{
    if (bytes > r->slot_size)
        r->slot_size = bytes;
    return r->n_free > 0 ? r->free_slots[--r->n_free] : (int16_t)r->n_slots++;
}
static void give_slot(run *r, int reg)
{
    if (r->slot_of[reg] != NO_SLOT)
        r->free_slots[r->n_free++] = r->slot_of[reg];
    r->slot_of[reg] = NO_SLOT;
}

/* Assigns a slot to a vector result: that of an operand of the same size that is read for the last time here, or a new
 * one. */
static void place_result(run *r, step *t, const oly_tile_instruction *c)
{
    int16_t slot = NO_SLOT;
    int bytes = oly_element_bytes[c->to];
    for (int k = 0; k < 3 && slot == NO_SLOT && t->store < 0; k++)
        if (t->dies >> k & 1 && r->slot_of[c->in[k]] != NO_SLOT && t->call.function != NULL &&
            oly_element_bytes[c->op == OLY_TILE_select && k == 0 ? OLY_BOOL : c->dtype] == bytes) {
            slot = r->slot_of[c->in[k]];
            r->slot_of[c->in[k]] = NO_SLOT;
        }
    if (slot == NO_SLOT && t->store < 0)
        slot = take_slot(r, bytes);
    for (int k = 0; k < 3; k++)
        if (t->dies >> k & 1)
            give_slot(r, c->in[k]);
    give_slot(r, c->out);
    t->slot = slot;
    r->slot_of[c->out] = slot;
}

static void prepare_step(run *r, int i, int *next_iota)
{
    const oly_tile_instruction *c = &r->program->instructions[i];
    step *t = &r->steps[i];
    unsigned scalars = 0;
    uint8_t kind = CONSTANT;
    for (int k = 0; k < 3; k++) {
        t->in[k] = c->in[k] >= 0 ? c->in[k] : 0;
        if (c->in[k] < 0)
            continue;
        if (r->kind[c->in[k]] != VECTOR)
            scalars |= 1u << k;
        if (r->kind[c->in[k]] < kind)
            kind = r->kind[c->in[k]];
    }
    t->call.function = NULL;
    t->iota = -1;
    t->out = c->out;
    t->to = c->to;
    t->unary = c->in[1] < 0;
    t->slot = NO_SLOT;
    if (c->op == OLY_TILE_iota) {
        t->iota = (int16_t)(*next_iota)++;
        kind = r->operands[t->iota].kind == CONSTANT ? ROW_SCALAR : r->operands[t->iota].kind;
    } else if (c->op == OLY_TILE_splat) {
        memcpy(t->scalar, &c->value, sizeof t->scalar);
    } else {
        t->call = oly_tile_call_of(c, scalars);
    }
    if (kind == VECTOR) {
        place_result(r, t, c);
    } else {
        t->store = -1;
        for (int k = 0; k < 3; k++)
            if (t->dies >> k & 1)
                give_slot(r, c->in[k]);
        give_slot(r, c->out);
        t->place = (char *)t->scalar;
    }
    if (kind == CONSTANT && t->call.function != NULL) {
        oly_tile_apply(&t->call, 1, t->place, r->at[t->in[0]], c->in[1] < 0 ? NULL : r->at[t->in[1]], r->at[t->in[2]]);
        t->call.function = NULL;
    }
    if (kind == CONSTANT)
        r->at[c->out] = t->place;
    t->kind = r->kind[c->out] = kind;
}

static void prepare_program(run *r)
{
    find_last_uses(r);
    copy_overwritten_loads(r);
    memset(r->slot_of, -1, sizeof r->slot_of);
    for (int l = 0; l < r->n_loads; l++) {
        operand *o = &r->operands[l];
        r->kind[o->reg] = o->kind;
        r->at[o->reg] = o->base;
        if (o->copied)
            o->slot = r->slot_of[o->reg] = take_slot(r, o->bytes);
    }
    int next_iota = r->n_loads + r->n_stores;
    for (int i = 0; i < r->program->n_instructions; i++) {
        prepare_step(r, i, &next_iota);
        if (r->steps[i].store >= 0)
            r->operands[r->n_loads + r->steps[i].store].direct = true;
    }
}

/* -- one tile ------------------------------------------------------------------------------------------------------- */

typedef struct tile {
    int64_t first[OLY_MAX_RANK], extent[OLY_MAX_RANK];
    int64_t n; /* elements */
} tile;

static int64_t offset_of(const run *r, const tile *t, const operand *o)
{
    int64_t offset = 0;
    for (int d = 0; d < r->rank; d++)
        offset += t->first[d] * o->stride[d];
    return offset;
}

/* Is the tile dense in the operand's memory? */
static bool is_dense(const run *r, const tile *t, const operand *o)
{
    int64_t stride = 1;
    for (int d = r->rank - 1; d >= 0; d--) {
        if (t->extent[d] > 1 && o->stride[d] != stride)
            return false;
        stride *= t->extent[d];
    }
    return true;
}

/* Copies a tile between dense memory and an operand's, two dimensions at a time. */
static void move_tile(const run *r, const tile *t, const operand *o, char *memory, char *dense, bool store)
{
    const oly_convert_table *moves = &OLY_ISA_NAME(oly_convert);
    int inner = r->rank - 1, middle = inner > 0 ? inner - 1 : 0;
    while (middle > 0 && t->extent[middle] == 1)
        middle--;
    int64_t columns = t->extent[inner], rows = inner > 0 ? t->extent[middle] : 1, at[OLY_MAX_RANK] = {0};
    if (o->stride[inner] == 1 && o->stride[middle] == columns) { /* one long row */
        columns *= rows;
        rows = 1;
    }
    for (int64_t done = 0; done < t->n; done += rows * columns) {
        int64_t offset = 0;
        for (int d = 0; d < middle; d++)
            offset += at[d] * o->stride[d];
        char *place = memory + offset * o->bytes, *piece = dense + done * o->bytes;
        if (store)
            moves->scatter[o->bytes](rows, columns, place, piece, o->stride[middle], o->stride[inner]);
        else
            moves->gather[o->bytes](rows, columns, piece, place, o->stride[middle], o->stride[inner]);
        for (int d = middle - 1; d >= 0 && ++at[d] == t->extent[d]; d--)
            at[d] = 0;
    }
}

static void count_tile(const run *r, const tile *t, const step *s, char *place)
{
    const operand *o = &r->operands[s->iota];
    int64_t start = o->origin + offset_of(r, t, o), step_size = o->stride[r->rank - 1];
    int64_t n = s->kind == VECTOR ? t->n : 1, at[OLY_MAX_RANK] = {0};
    int64_t columns = r->blocks && s->kind == VECTOR ? t->extent[r->rank - 1] : n;
    for (int64_t done = 0; done < n; done += columns) {
        int64_t offset = 0;
        for (int d = 0; d < r->rank - 1; d++)
            offset += at[d] * o->stride[d];
        OLY_ISA_NAME(oly_convert)
            .iota[s->to]((int)columns, place + done * oly_element_bytes[s->to], start + offset, step_size);
        for (int d = r->rank - 2; d >= 0 && ++at[d] == t->extent[d]; d--)
            at[d] = 0;
    }
}

static void load_tile(run *r, const tile *t, char *memory, size_t slot_bytes)
{
    for (int l = 0; l < r->n_loads; l++) {
        const operand *o = &r->operands[l];
        char *from = o->base + offset_of(r, t, o) * o->bytes;
        r->at[o->reg] = from;
        if (o->copied && (o->shared || !is_dense(r, t, o))) {
            char *slot = memory + (size_t)o->slot * slot_bytes;
            move_tile(r, t, o, from, slot, false);
            r->at[o->reg] = slot;
        }
    }
}

static void store_tile(run *r, const tile *t)
{
    for (int s = 0; s < r->n_stores; s++) {
        const operand *o = &r->operands[r->n_loads + s];
        if (o->direct)
            continue;
        char *to = o->base + offset_of(r, t, o) * o->bytes;
        const char *from = r->at[o->reg];
        if (r->kind[o->reg] != VECTOR) { /* one element for all: broadcast it first */
            char spread[OLY_TILE * 16] __attribute__((aligned(64)));
            OLY_ISA_NAME(oly_convert).fill[o->bytes](t->n, spread, from);
            move_tile(r, t, o, to, spread, true);
        } else if (from != to) {
            char *dense = (char *)(uintptr_t)from; /* only read */
            move_tile(r, t, o, to, dense, true);
        }
    }
}

static void run_tile(run *r, const tile *t, char *memory, size_t slot_bytes)
{
    load_tile(r, t, memory, slot_bytes);
    const char **at = r->at;
    for (int i = 0; i < r->program->n_instructions; i++) {
        const step *s = &r->steps[i];
        char *place = s->place;
        if (s->store >= 0) {
            const operand *o = &r->operands[r->n_loads + s->store];
            place = o->base + offset_of(r, t, o) * o->bytes;
        }
        if (s->call.function != NULL)
            oly_tile_apply(&s->call, s->kind == VECTOR ? (int)t->n : 1, place, at[s->in[0]],
                           s->unary ? NULL : at[s->in[1]], at[s->in[2]]);
        else if (s->iota >= 0)
            count_tile(r, t, s, place);
        at[s->out] = place;
    }
    store_tile(r, t);
}

/* The same for a single operation, row by row of the block. */
static void run_rows(run *r, const tile *t, char *memory, size_t slot_bytes)
{
    const step *s = &r->steps[0];
    const operand *out = &r->operands[r->n_loads];
    const int last = r->rank - 1;
    char *to = out->base + offset_of(r, t, out) * out->bytes;
    int64_t apart[OLY_TILE_REGISTERS];
    for (int l = 0; l < r->n_loads; l++) {
        const operand *o = &r->operands[l];
        char *from = o->base + offset_of(r, t, o) * o->bytes;
        r->at[o->reg] = from;
        apart[l] = o->kind == VECTOR ? o->stride[r->across] * o->bytes : 0;
        if (o->kind == VECTOR && o->stride[last] != 1) {
            char *slot = memory + (size_t)o->slot * slot_bytes;
            move_tile(r, t, o, from, slot, false);
            r->at[o->reg] = slot;
            apart[l] = t->extent[last] * o->bytes;
        }
    }
    for (int64_t row = 0; row < t->extent[r->across]; row++, to += out->stride[r->across] * out->bytes) {
        oly_tile_apply(&s->call, (int)t->extent[last], to, r->at[s->in[0]], s->unary ? NULL : r->at[s->in[1]],
                       r->at[s->in[2]]);
        for (int l = 0; l < r->n_loads; l++)
            r->at[r->operands[l].reg] += apart[l];
    }
}

/* -- the whole box ------------------------------------------------------------------------------------------------- */

/* Which tile of each dimension the one of that number is. */
static void find_tile(const run *r, int64_t number, int64_t *at)
{
    const int last = r->rank - 1;
    for (int d = last; d >= 0 && r->across < 0; d--) {
        at[d] = number % r->tiles[d];
        number /= r->tiles[d];
    }
    if (r->across < 0)
        return;
    const int64_t plane = r->tiles[r->across] * r->tiles[last], strip = r->together * r->tiles[last];
    const int64_t before = number % plane / strip * r->together, left = r->tiles[r->across] - before;
    const int64_t height = left < r->together ? left : r->together, within = number % plane % strip;
    at[last] = within / height;
    at[r->across] = before + within % height;
    number /= plane;
    for (int d = last - 1; d >= 0; d--)
        if (d != r->across) {
            at[d] = number % r->tiles[d];
            number /= r->tiles[d];
        }
}

static void set_tile(const run *r, int64_t number, tile *t)
{
    int64_t at[OLY_MAX_RANK];
    find_tile(r, number, at);
    t->n = 1;
    for (int d = r->rank - 1; d >= 0; d--) {
        int64_t rest = r->extent[d];
        t->first[d] = at[d] * r->tile[d];
        rest -= t->first[d];
        t->extent[d] = rest < r->tile[d] ? rest : r->tile[d];
        t->n *= t->extent[d];
    }
}

/* Elements of a tile: as many as keep the slots in L1, and fit `memory`. */
static int64_t most_elements(const run *r)
{
    if (r->n_slots == 0)
        return OLY_TILE;
    int64_t good = GOOD_BYTES / (r->n_slots * r->slot_size), fit = (MEMORY_BYTES / r->n_slots - 64) / r->slot_size;
    good = good < 256 ? 256 : good > OLY_TILE ? OLY_TILE : good;
    return (good < fit ? good : fit) / 16 * 16;
}

static void run_tiles(run *r, int64_t begin, int64_t end)
{
    char memory[MEMORY_BYTES] __attribute__((aligned(64)));
    size_t slot_bytes = ((size_t)most_elements(r) * (size_t)r->slot_size + 63) / 64 * 64;
    for (int i = 0; i < r->program->n_instructions; i++)
        if (r->steps[i].slot != NO_SLOT)
            r->steps[i].place = memory + (size_t)r->steps[i].slot * slot_bytes;
    for (int64_t number = begin; number < end; number++) {
        tile t;
        set_tile(r, number, &t);
        (r->by_rows ? run_rows : run_tile)(r, &t, memory, slot_bytes);
    }
}

void OLY_ISA_NAME(oly_tile_run)(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                                const oly_tile_operand *stores, int chunk, int n_chunks)
{
    for (int d = 0; d < box->rank; d++)
        if (box->extent[d] == 0)
            return;
    if (n_chunks == 1 && OLY_ISA_NAME(oly_tile_run_small)(program, box, loads, stores))
        return;
    int n_iotas = 0;
    for (int i = 0; i < program->n_instructions; i++)
        n_iotas += program->instructions[i].op == OLY_TILE_iota;
    run r;
    r.program = program;
    r.rank = r.n_slots = r.slot_size = r.n_free = 0;
    r.n_loads = program->n_loads;
    r.n_stores = program->n_stores;
    r.n_operands = program->n_loads + program->n_stores + n_iotas;
    operand operands[r.n_operands + 1];
    step steps[program->n_instructions + 1];
    r.operands = operands;
    r.steps = steps;
    r.at[0] = NULL;
    collapse(&r, box, loads, stores);
    name_operands(&r, box, loads, stores);
    choose_form(&r);
    prepare_program(&r);

    cut_into_tiles(&r, most_elements(&r));
    run_tiles(&r, r.n_tiles * chunk / n_chunks, r.n_tiles * (chunk + 1) / n_chunks);
}

void OLY_ISA_NAME(oly_tile_instruction_run)(const oly_tile_instruction *c, unsigned scalars, int n, void *out,
                                            const char *const *in)
{
    oly_tile_call call = oly_tile_call_of(c, scalars);
    oly_tile_apply(&call, n, out, in[0], in[1], in[2]);
}
