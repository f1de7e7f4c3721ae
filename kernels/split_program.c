/* SPDX-License-Identifier: BSD-3-Clause */
/* Divides a program into parts and writes their code (code_parts.h).
 *
 * Operations are put into stages: even ones hold operations that the generator knows and are a part each, odd ones the others, one part for
 * each. An operation comes as early as its operands allow, but one of loads and constants alone as late as those who read its result
 * allow, so that it need not be kept. Results that a later part reads stay in the memory of a store, if they have one, or in a slot, which
 * is used again after the last part that reads it. */
#include "code_parts.h"
#include "table.h"
#include <string.h>

enum {
    MOST = 256, /* instructions */
    MOST_SLOTS = 32,
    MOST_VALUES = MOST + OLY_TILE_REGISTERS,
    NO_PART = -1,
    NO_PLACE = -1
};

typedef struct splitter {
    const oly_tile_program *program;
    const oly_code_form *form;
    oly_code_parts *parts;
    uint8_t *bytes;
    size_t room, used;
    bool failed;
    int16_t in[MOST][3];   /* values: loads, then the results of instructions; -1: none */
    int16_t counter[MOST]; /* operands */
    int16_t stage[MOST];
    bool known[MOST];
    int16_t part_of[MOST_VALUES];       /* that computes it */
    int16_t last_part[MOST_VALUES];     /* that reads it */
    bool once[MOST_VALUES];             /* one element for a whole row */
    int16_t stored[OLY_TILE_REGISTERS]; /* values */
    oly_part_place place[MOST_VALUES];
    bool placed[MOST_VALUES];
    int16_t slot_of[MOST_SLOTS]; /* the value in it; -1: free */
} splitter;

/* -- values ---------------------------------------------------------------------------------------------------------------- */

static bool is_once(const oly_code_form *form, int operand)
{
    return form->scalar[operand / 64] >> operand % 64 & 1;
}

static const oly_tile_instruction *made_by(const splitter *s, int value) /* NULL: a load */
{
    return value < s->program->n_loads ? NULL : &s->program->instructions[value - s->program->n_loads];
}
static bool is_splat(const splitter *s, int value)
{
    const oly_tile_instruction *c = made_by(s, value);
    return c && c->op == OLY_TILE_splat;
}
static int dtype_of(const splitter *s, int value)
{
    const oly_tile_instruction *c = made_by(s, value);
    return c ? c->to : s->program->load_dtype[value];
}

static bool name_values(splitter *s)
{
    const oly_tile_program *p = s->program;
    int16_t of[OLY_TILE_REGISTERS];
    int counter = p->n_loads + p->n_stores;
    if (p->n_instructions > MOST || p->n_loads > OLY_TILE_REGISTERS || p->n_stores > OLY_TILE_REGISTERS)
        return false;
    for (int l = 0; l < p->n_loads; l++) {
        s->once[l] = is_once(s->form, l);
        of[p->load_register[l]] = (int16_t)l;
    }
    for (int i = 0; i < p->n_instructions; i++) {
        const oly_tile_instruction *c = &p->instructions[i];
        bool leaf = c->op == OLY_TILE_splat || c->op == OLY_TILE_iota, once = true;
        s->known[i] = oly_code_knows(c);
        for (int k = 0; k < 3; k++) {
            s->in[i][k] = leaf || c->in[k] < 0 ? -1 : of[c->in[k]];
            once = once && (s->in[i][k] < 0 || s->once[s->in[i][k]]);
        }
        if (c->op == OLY_TILE_iota) {
            if (!s->known[i] || counter == OLY_CODE_OPERANDS)
                return false;
            once = is_once(s->form, counter);
            s->counter[i] = (int16_t)counter++;
        }
        s->once[p->n_loads + i] = once;
        of[c->out] = (int16_t)(p->n_loads + i);
    }
    for (int k = 0; k < p->n_stores; k++)
        s->stored[k] = of[p->store_register[k]];
    return true;
}

/* -- stages ------------------------------------------------------------------------------------------------------------------ */

/* The first stage in which an operand is there for such an operation. */
static int after(const splitter *s, int value, bool known)
{
    const oly_tile_instruction *c = made_by(s, value);
    if (!c || c->op == OLY_TILE_splat)
        return known ? 0 : 1;
    int stage = s->stage[value - s->program->n_loads];
    return (stage & 1) == !known ? stage : stage + 1;
}

static bool reads_only_memory(const splitter *s, int i)
{
    for (int k = 0; k < 3; k++)
        if (s->in[i][k] >= s->program->n_loads && !is_splat(s, s->in[i][k]))
            return false;
    return true;
}

/* Moves an operation to the stage of the first that reads its result. */
static void postpone(splitter *s, int i)
{
    const oly_tile_program *p = s->program;
    int value = p->n_loads + i, latest = INT16_MAX;
    for (int k = 0; k < p->n_stores; k++)
        if (s->stored[k] == value)
            return;
    for (int j = i + 1; j < p->n_instructions; j++)
        for (int k = 0; k < 3; k++)
            if (s->in[j][k] == value) {
                int stage = s->known[j] ? s->stage[j] : s->stage[j] - 1;
                latest = stage < latest ? stage : latest;
            }
    if (latest < INT16_MAX)
        s->stage[i] = (int16_t)latest;
}

/* Returns the number of stages. */
static int find_stages(splitter *s)
{
    const oly_tile_program *p = s->program;
    int n = 0;
    for (int i = 0; i < p->n_instructions; i++) {
        int stage = s->known[i] ? 0 : 1;
        if (p->instructions[i].op == OLY_TILE_splat)
            continue;
        for (int k = 0; k < 3; k++)
            if (s->in[i][k] >= 0) {
                int first = after(s, s->in[i][k], s->known[i]);
                stage = first > stage ? first : stage;
            }
        s->stage[i] = (int16_t)stage;
        n = stage >= n ? stage + 1 : n;
    }
    for (int i = p->n_instructions - 1; i >= 0; i--)
        if (s->known[i] && p->instructions[i].op != OLY_TILE_splat && reads_only_memory(s, i))
            postpone(s, i);
    return n;
}

/* -- parts ------------------------------------------------------------------------------------------------------------------- */

static oly_code_part *add_part(splitter *s, bool is_code)
{
    if (s->parts->n_parts == OLY_MOST_PARTS) {
        s->failed = true;
        return NULL;
    }
    oly_code_part *part = &s->parts->part[s->parts->n_parts++];
    *part = (oly_code_part){.is_code = is_code};
    return part;
}

static bool is_in(const splitter *s, int i, int stage)
{
    return s->stage[i] == stage && s->program->instructions[i].op != OLY_TILE_splat;
}

/* Names the parts of a stage; a known operation alone is left to its kernel, too. Returns the operations that gain. */
static int name_parts(splitter *s, int stage)
{
    const oly_tile_program *p = s->program;
    int n = 0, counters = 0;
    oly_code_part *part = NULL;
    for (int i = 0; i < p->n_instructions; i++)
        if (is_in(s, i, stage)) {
            n++;
            counters += p->instructions[i].op == OLY_TILE_iota;
        }
    bool is_code = stage % 2 == 0 && (n > 1 || counters);
    for (int i = 0; i < p->n_instructions; i++) {
        if (!is_in(s, i, stage))
            continue;
        if (!part || !is_code)
            part = add_part(s, is_code);
        if (!part)
            return 0;
        part->instruction = (int16_t)i;
        s->part_of[p->n_loads + i] = (int16_t)(s->parts->n_parts - 1);
    }
    return is_code ? n - counters : 0;
}

static void read_by(splitter *s, int value, int part)
{
    if (value >= 0 && part > s->last_part[value])
        s->last_part[value] = (int16_t)part;
}

/* Loads and stores that must not be the same memory. */
static void list_pairs(oly_code_parts *parts, const oly_tile_program *p)
{
    parts->n_pairs = 0;
    for (int s = p->n_loads; s < p->n_loads + p->n_stores; s++)
        for (int l = 0; l < p->n_loads; l++) {
            if (parts->last_read[l] <= parts->written[s])
                continue;
            if (parts->n_pairs < OLY_MOST_PART_PAIRS) {
                parts->pair[parts->n_pairs][0] = (uint8_t)l;
                parts->pair[parts->n_pairs][1] = (uint8_t)s;
            }
            parts->n_pairs++;
        }
}

/* Is this the store in whose memory its value is computed? Others are copies, made by the last part. */
static bool is_direct(const splitter *s, int store)
{
    int value = s->stored[store], part = s->part_of[value];
    if (part == NO_PART)
        return false;
    if (s->parts->part[part].is_code)
        return true;
    for (int k = 0; k < store; k++)
        if (s->stored[k] == value)
            return false;
    return !s->once[value];
}

static void find_readers(splitter *s)
{
    const oly_tile_program *p = s->program;
    bool copies = false;
    for (int i = 0; i < p->n_instructions; i++)
        for (int k = 0; k < 3 && p->instructions[i].op != OLY_TILE_splat; k++)
            read_by(s, s->in[i][k], s->part_of[p->n_loads + i]);
    for (int k = 0; k < p->n_stores; k++)
        copies = copies || !is_direct(s, k);
    if (copies && !add_part(s, true))
        return;
    for (int k = 0; k < p->n_stores; k++) {
        bool direct = is_direct(s, k);
        if (!direct)
            read_by(s, s->stored[k], s->parts->n_parts - 1);
        s->parts->written[p->n_loads + k] = (int16_t)(direct ? s->part_of[s->stored[k]] : s->parts->n_parts - 1);
    }
    for (int l = 0; l < p->n_loads; l++)
        s->parts->last_read[l] = s->last_part[l];
    list_pairs(s->parts, p);
}

/* -- places ------------------------------------------------------------------------------------------------------------------ */

static void take_slot(splitter *s, int value)
{
    int slot = 0, bytes = oly_element_bytes[dtype_of(s, value)];
    while (slot < MOST_SLOTS && s->slot_of[slot] >= 0)
        slot++;
    if (slot == MOST_SLOTS) {
        s->failed = true;
        return;
    }
    s->slot_of[slot] = (int16_t)value;
    s->place[value] = (oly_part_place){OLY_PART_SLOT, 0, (int16_t)slot};
    s->placed[value] = true;
    s->parts->n_slots = slot >= s->parts->n_slots ? slot + 1 : s->parts->n_slots;
    s->parts->slot_element = bytes > s->parts->slot_element ? bytes : s->parts->slot_element;
}

static void free_slots(splitter *s, int part)
{
    for (int k = 0; k < MOST_SLOTS; k++)
        if (s->slot_of[k] >= 0 && s->last_part[s->slot_of[k]] <= part)
            s->slot_of[k] = -1;
}

static oly_part_place operand_place(int operand, int dtype, bool once)
{
    return (oly_part_place){OLY_PART_OPERAND, once ? 0 : oly_element_bytes[dtype], (int16_t)operand};
}

/* Where the result of a part's instruction goes. */
static void place_result(splitter *s, int value)
{
    const oly_tile_program *p = s->program;
    for (int k = 0; k < p->n_stores && !s->placed[value]; k++)
        if (s->stored[k] == value && is_direct(s, k)) {
            s->place[value] = operand_place(p->n_loads + k, dtype_of(s, value), false);
            s->placed[value] = true;
        }
    if (!s->placed[value] && s->last_part[value] > s->part_of[value])
        take_slot(s, value);
}

/* Where a part reads a value that another has computed. */
static oly_part_place place_of(const splitter *s, int value)
{
    if (value < s->program->n_loads)
        return operand_place(value, dtype_of(s, value), s->once[value]);
    if (is_splat(s, value))
        return (oly_part_place){OLY_PART_SPLAT, 0, (int16_t)(value - s->program->n_loads)};
    return s->place[value];
}

static void add_place(splitter *s, oly_code_part *part, oly_part_place place)
{
    if (s->parts->n_places == OLY_MOST_PART_PLACES) {
        s->failed = true;
        return;
    }
    s->parts->place[s->parts->n_places++] = place;
    part->n_places++;
}

/* -- a kernel ---------------------------------------------------------------------------------------------------------------- */

static void make_kernel(splitter *s, oly_code_part *part)
{
    int i = part->instruction, value = s->program->n_loads + i;
    part->once = true;
    for (int k = 0; k < 3 && s->in[i][k] >= 0; k++) {
        bool once = s->once[s->in[i][k]];
        part->scalars |= (uint8_t)(once << k);
        part->once = part->once && once;
        add_place(s, part, place_of(s, s->in[i][k]));
    }
    place_result(s, value);
    if (!s->placed[value]) /* nobody reads it */
        take_slot(s, value);
    add_place(s, part, s->place[value]);
}

/* -- machine code ---------------------------------------------------------------------------------------------------------------- */

/* The program of one part. */
typedef struct piece {
    oly_tile_instruction instructions[MOST];
    int16_t origin[MOST]; /* of an instruction: in the whole program */
    int16_t load_register[OLY_TILE_REGISTERS], store_register[OLY_TILE_REGISTERS];
    uint8_t load_dtype[OLY_TILE_REGISTERS], store_dtype[OLY_TILE_REGISTERS];
    oly_tile_program program;
    oly_code_form form;
    int16_t reg[MOST_VALUES];  /* -1: in none */
    int16_t last[MOST_VALUES]; /* the instruction (of the whole program) that reads it last; MOST: a store */
    bool taken[OLY_TILE_REGISTERS];
} piece;

static int16_t take_register(splitter *s, piece *q, int value)
{
    int reg = 0;
    while (reg < OLY_TILE_REGISTERS && q->taken[reg])
        reg++;
    if (reg == OLY_TILE_REGISTERS) {
        s->failed = true;
        reg = 0;
    }
    q->taken[reg] = true;
    q->program.n_registers = reg >= q->program.n_registers ? reg + 1 : q->program.n_registers;
    return q->reg[value] = (int16_t)reg;
}

/* A value that the piece reads and does not compute. */
static void load(splitter *s, piece *q, oly_code_part *part, int value)
{
    int l = q->program.n_loads;
    if (q->reg[value] >= 0 || is_splat(s, value))
        return;
    if (l == OLY_TILE_REGISTERS) {
        s->failed = true;
        return;
    }
    q->load_register[l] = take_register(s, q, value);
    q->load_dtype[l] = (uint8_t)dtype_of(s, value);
    if (s->once[value])
        q->form.scalar[l / 64] |= (uint64_t)1 << l % 64;
    q->program.n_loads++;
    add_place(s, part, place_of(s, value));
}

static void store(splitter *s, piece *q, oly_code_part *part, int value, oly_part_place place)
{
    int k = q->program.n_stores;
    if (k == OLY_TILE_REGISTERS) {
        s->failed = true;
        return;
    }
    q->store_register[k] = q->reg[value];
    q->store_dtype[k] = (uint8_t)dtype_of(s, value);
    q->program.n_stores++;
    add_place(s, part, place);
}

static void append(splitter *s, piece *q, int i)
{
    const oly_tile_program *p = s->program;
    oly_tile_instruction *c = &q->instructions[q->program.n_instructions];
    if (q->program.n_instructions == MOST || s->failed) {
        s->failed = true;
        return;
    }
    q->origin[q->program.n_instructions++] = (int16_t)i;
    *c = p->instructions[i];
    for (int k = 0; k < 3; k++)
        c->in[k] = s->in[i][k] < 0 ? (int16_t)-1 : q->reg[s->in[i][k]];
    for (int k = 0; k < 3; k++)
        if (s->in[i][k] >= 0 && q->last[s->in[i][k]] == i)
            q->taken[q->reg[s->in[i][k]]] = false;
    c->out = take_register(s, q, p->n_loads + i);
}

static void append_splat(splitter *s, piece *q, int value)
{
    if (is_splat(s, value) && q->reg[value] < 0)
        append(s, q, value - s->program->n_loads);
}

/* Is the store of the part number `part` and not of the values it computes? */
static bool copies_in(const splitter *s, int store_number, int part)
{
    return !is_direct(s, store_number) && part == s->parts->n_parts - 1;
}

/* Is the value kept for other parts, or stored, by this part? */
static bool leaves(const splitter *s, int value, int part)
{
    if (s->part_of[value] == part && s->last_part[value] > part)
        return true;
    for (int k = 0; k < s->program->n_stores; k++)
        if (s->stored[k] == value && (s->part_of[value] == part || copies_in(s, k, part)))
            return true;
    return false;
}

static void find_last_reads(const splitter *s, piece *q, int part)
{
    const oly_tile_program *p = s->program;
    for (int v = 0; v < p->n_loads + p->n_instructions; v++) {
        q->reg[v] = -1;
        q->last[v] = -1;
    }
    for (int i = 0; i < p->n_instructions; i++)
        for (int k = 0; k < 3 && s->part_of[p->n_loads + i] == part; k++)
            if (s->in[i][k] >= 0)
                q->last[s->in[i][k]] = (int16_t)i;
    for (int v = 0; v < p->n_loads + p->n_instructions; v++)
        if (leaves(s, v, part))
            q->last[v] = MOST;
}

static void load_all(splitter *s, piece *q, oly_code_part *part, int number)
{
    const oly_tile_program *p = s->program;
    for (int i = 0; i < p->n_instructions; i++)
        for (int k = 0; k < 3 && s->part_of[p->n_loads + i] == number; k++)
            if (s->in[i][k] >= 0 && s->part_of[s->in[i][k]] != number)
                load(s, q, part, s->in[i][k]);
    for (int k = 0; k < p->n_stores; k++)
        if (copies_in(s, k, number))
            load(s, q, part, s->stored[k]);
}

static void append_all(splitter *s, piece *q, int number)
{
    const oly_tile_program *p = s->program;
    for (int i = 0; i < p->n_instructions && !s->failed; i++) {
        if (s->part_of[p->n_loads + i] != number)
            continue;
        for (int k = 0; k < 3; k++)
            if (s->in[i][k] >= 0)
                append_splat(s, q, s->in[i][k]);
        append(s, q, i);
    }
    for (int k = 0; k < p->n_stores && !s->failed; k++)
        if (copies_in(s, k, number))
            append_splat(s, q, s->stored[k]);
}

static void store_all(splitter *s, piece *q, oly_code_part *part, int number)
{
    const oly_tile_program *p = s->program;
    for (int i = 0; i < p->n_instructions; i++)
        if (s->part_of[p->n_loads + i] == number) {
            int value = p->n_loads + i;
            place_result(s, value);
            if (s->placed[value] && s->place[value].kind == OLY_PART_SLOT)
                store(s, q, part, value, s->place[value]);
        }
    for (int k = 0; k < p->n_stores; k++)
        if ((s->part_of[s->stored[k]] == number && is_direct(s, k)) || copies_in(s, k, number))
            store(s, q, part, s->stored[k], operand_place(p->n_loads + k, p->store_dtype[k], false));
}

/* Counters are the last operands. */
static void count_all(splitter *s, piece *q, oly_code_part *part)
{
    int operand = q->program.n_loads + q->program.n_stores;
    for (int j = 0; j < q->program.n_instructions && operand < OLY_CODE_OPERANDS; j++) {
        if (q->instructions[j].op != OLY_TILE_iota)
            continue;
        int counter = s->counter[q->origin[j]];
        bool once = is_once(s->form, counter);
        q->form.scalar[operand / 64] |= (uint64_t)once << operand % 64;
        add_place(s, part, (oly_part_place){OLY_PART_OPERAND, !once, (int16_t)counter});
        operand++;
    }
}

static void make_code(splitter *s, piece *q, oly_code_part *part, int number)
{
    memset(q->taken, 0, sizeof q->taken);
    q->form = (oly_code_form){{0, 0}, {0, 0}};
    q->program = (oly_tile_program){.instructions = q->instructions,
                                    .load_register = q->load_register,
                                    .load_dtype = q->load_dtype,
                                    .store_register = q->store_register,
                                    .store_dtype = q->store_dtype};
    find_last_reads(s, q, number);
    load_all(s, q, part, number);
    append_all(s, q, number);
    store_all(s, q, part, number);
    count_all(s, q, part);
    if (s->failed)
        return;
    part->at = s->used;
    size_t length = oly_code_write(&q->program, &q->form, &part->outline, s->bytes + s->used, s->room - s->used);
    if (length == 0)
        s->failed = true;
    for (int k = 0; k < part->outline.n_constants; k++)
        part->outline.constant[k] = (uint16_t)q->origin[part->outline.constant[k]];
    s->used += (length + 63) / 64 * 64;
    s->failed = s->failed || s->used > s->room;
}

size_t oly_code_parts_write(const oly_tile_program *program, const oly_code_form *form, oly_code_parts *parts,
                            uint8_t *bytes, size_t room)
{
    splitter s;
    piece q;
    s.program = program;
    s.form = form;
    s.parts = parts;
    s.bytes = bytes;
    s.room = room;
    s.used = 0;
    s.failed = false;
    memset(s.part_of, -1, sizeof s.part_of);
    memset(s.last_part, -1, sizeof s.last_part);
    memset(s.placed, 0, sizeof s.placed);
    memset(s.slot_of, -1, sizeof s.slot_of);
    memset(s.counter, -1, sizeof s.counter);
    parts->n_parts = parts->n_places = parts->n_slots = parts->slot_element = 0;
    if (form->strided[0] || form->strided[1] || !name_values(&s)) /* kernels take whole rows */
        return 0;
    int n_stages = find_stages(&s), gain = 0;
    for (int stage = 0; stage < n_stages && !s.failed; stage++)
        gain += name_parts(&s, stage);
    if (gain < 2 || s.failed)
        return 0;
    find_readers(&s);
    for (int k = 0; k < parts->n_parts && !s.failed; k++) {
        oly_code_part *part = &parts->part[k];
        part->first_place = (int16_t)parts->n_places;
        if (part->is_code)
            make_code(&s, &q, part, k);
        else
            make_kernel(&s, part);
        free_slots(&s, k);
    }
    return s.failed ? 0 : s.used;
}
