/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine code of tile programs (machine_code.h) for x86-64 with AVX-512, or with AVX2 and FMA:
 *
 *      for each row: addresses and what is the same for the whole row into registers
 *          for each vector: loads, operations, stores
 *          the elements after the last whole vector, masked
 *
 * It is written twice: the first time shows how many registers an iteration needs, so that the others can keep constants. */
#include "machine_code.h"
#include "x86/generator.h"
#include <string.h>

#if defined(__x86_64__)

bool oly_code_available(void)
{
    return strcmp(oly_kernels_isa(), "avx512") == 0 || strcmp(oly_kernels_isa(), "avx2") == 0;
}

bool oly_code_strides(int64_t bytes)
{
    return strcmp(oly_kernels_isa(), "avx2") == 0 || (bytes <= 64 && bytes >= -64);
}

bool oly_code_knows(const oly_tile_instruction *c)
{
    generator g;
    g.code.evex = strcmp(oly_kernels_isa(), "avx512") == 0;
    return oly_x86_knows(&g, c);
}

static const uint8_t pointers[] = {RBX, RSI, R8,  R9,  R10, R11,
                                   R12, R13, R14, R15, RBP}; /* RBP: AVX-512 without strides only */
static const uint8_t saved[] = {RBX, RBP, R12, R13, R14, R15};

static bool is_scalar(const generator *g, int operand)
{
    return g->form->scalar[operand / 64] >> operand % 64 & 1;
}

/* -- the program ------------------------------------------------------------------------------------------------------------ */

static void widen(const generator *g, int *widest, int dtype)
{
    *widest = held_bytes(g, dtype) > *widest ? held_bytes(g, dtype) : *widest;
}

/* Conversions of float16 have vectors of float32 between. */
static bool goes_by_float32(const oly_tile_instruction *c)
{
    return c->op == OLY_TILE_convert && (c->dtype == OLY_FLOAT16 || c->to == OLY_FLOAT16) && c->dtype != c->to;
}

static bool takes(generator *g)
{
    const oly_tile_program *p = g->program;
    int widest = 1, splats = 0, counters = 0;
    g->lanes = longest_vector(g); /* of bools alone */
    if (p->n_instructions > MOST_INSTRUCTIONS || p->n_stores > OLY_TILE_REGISTERS)
        return false;
    for (int i = 0; i < p->n_instructions; i++) {
        if (!oly_x86_knows(g, &p->instructions[i]))
            return false;
        splats += p->instructions[i].op == OLY_TILE_splat;
        counters += p->instructions[i].op == OLY_TILE_iota;
        widen(g, &widest, p->instructions[i].dtype);
        widen(g, &widest, p->instructions[i].to);
        if (goes_by_float32(&p->instructions[i]))
            widen(g, &widest, OLY_FLOAT32);
    }
    for (int k = 0; k < p->n_loads + p->n_stores; k++) {
        int dtype = k < p->n_loads ? p->load_dtype[k] : p->store_dtype[k - p->n_loads];
        oly_tile_instruction copy = {.op = OLY_TILE_splat, .dtype = (uint8_t)dtype, .to = (uint8_t)dtype};
        if (!oly_x86_knows(g, &copy))
            return false;
        widen(g, &widest, dtype);
    }
    g->lanes = longest_vector(g) / widest;
    g->n_operands = p->n_loads + p->n_stores + counters;
    return splats <= OLY_CODE_CONSTANTS && g->n_operands <= OLY_CODE_OPERANDS;
}

static void name_instruction(generator *g, int i, int16_t *of, oly_code_outline *outline, int *counter)
{
    const oly_tile_instruction *c = &g->program->instructions[i];
    int number = g->program->n_loads + i;
    value *v = &g->value[number];
    *v = (value){.dtype = c->to, .home = NOWHERE, .invariant = true};
    for (int k = 0; k < 3; k++) {
        bool reads = c->op != OLY_TILE_splat && c->op != OLY_TILE_iota && c->in[k] >= 0;
        g->in[i][k] = reads ? of[c->in[k]] : -1;
        v->invariant = v->invariant && (!reads || g->value[g->in[i][k]].invariant);
    }
    if (c->op == OLY_TILE_splat) {
        v->home = CONSTANT;
        v->which = (int16_t)outline->n_constants;
        outline->constant[outline->n_constants++] = (uint16_t)i;
    } else if (c->op == OLY_TILE_iota) {
        v->invariant = is_scalar(g, *counter);
        g->counter[i] = (int16_t)(*counter)++;
    }
    of[c->out] = (int16_t)number;
}

static void name_common(generator *g)
{
    static const uint8_t dtypes[N_COMMON] = {[ONE] = OLY_INT64,
                                             [ONE_I32] = OLY_INT32,
                                             [ONE_F32] = OLY_FLOAT32,
                                             [ONE_F64] = OLY_FLOAT64,
                                             [MINUS_ONE_F32] = OLY_FLOAT32,
                                             [MINUS_ONE_F64] = OLY_FLOAT64,
                                             [SIGN_32] = OLY_INT32,
                                             [SIGN_64] = OLY_INT64,
                                             [SIGNS_OF_PARTS] = OLY_INT64,
                                             [MAGNITUDE_32] = OLY_INT32,
                                             [MAGNITUDE_64] = OLY_INT64,
                                             [INFINITY_F32] = OLY_FLOAT32,
                                             [INFINITY_F64] = OLY_FLOAT64,
                                             [BEYOND_I32_F32] = OLY_FLOAT32,
                                             [BEYOND_I32_F64] = OLY_FLOAT64,
                                             [BEYOND_I64_F32] = OLY_FLOAT32,
                                             [BEYOND_I64_F64] = OLY_FLOAT64,
                                             [BELOW_HALF_BF16] = OLY_INT32,
                                             [QUIET_F32] = OLY_INT32,
                                             [UPPER_32] = OLY_INT32,
                                             [SIGN_16] = OLY_INT16,
                                             [MAGNITUDE_16] = OLY_INT16,
                                             [INFINITY_F16] = OLY_INT16,
                                             [ONE_F16] = OLY_INT16,
                                             [MINUS_ONE_F16] = OLY_INT16,
                                             [TWO_TO_16_F32] = OLY_FLOAT32,
                                             [TWO_TO_52_F64] = OLY_FLOAT64,
                                             [TWO_TO_84_F64] = OLY_FLOAT64,
                                             [TWO_TO_84_AND_52_F64] = OLY_FLOAT64,
                                             [TWO_TO_84_63_AND_52_F64] = OLY_FLOAT64};
    g->first_common = g->program->n_loads + g->program->n_instructions;
    g->n_values = g->first_common + N_COMMON;
    for (int k = 0; k < N_COMMON; k++)
        g->value[g->first_common + k] =
            (value){.dtype = dtypes[k], .home = COMMON, .which = (int16_t)k, .invariant = true};
}

static void name_values(generator *g, oly_code_outline *outline)
{
    const oly_tile_program *p = g->program;
    int16_t of[OLY_TILE_REGISTERS];
    int counter = p->n_loads + p->n_stores;
    for (int l = 0; l < p->n_loads; l++) {
        bool scalar = is_scalar(g, l);
        g->value[l] = (value){
            .dtype = p->load_dtype[l], .home = scalar ? SCALAR : IN_ROW, .which = (int16_t)l, .invariant = scalar};
        of[p->load_register[l]] = (int16_t)l;
    }
    outline->n_constants = 0;
    for (int i = 0; i < p->n_instructions; i++)
        name_instruction(g, i, of, outline, &counter);
    for (int s = 0; s < p->n_stores; s++)
        g->stored[s] = of[p->store_register[s]];
    name_common(g);
}

/* From the last store to the first instruction: who reads each value next. */
static void find_uses(generator *g)
{
    const oly_tile_program *p = g->program;
    int16_t *seen = g->first_use;
    for (int k = 0; k < g->n_values; k++)
        seen[k] = NEVER;
    for (int s = p->n_stores - 1; s >= 0; s--) {
        g->next_stored[s] = seen[g->stored[s]];
        seen[g->stored[s]] = (int16_t)(p->n_instructions + s);
    }
    for (int i = p->n_instructions - 1; i >= 0; i--) {
        for (int k = 0; k < 3; k++)
            g->next[i][k] = g->in[i][k] >= 0 ? seen[g->in[i][k]] : NEVER;
        for (int k = 0; k < 3; k++)
            if (g->in[i][k] >= 0)
                seen[g->in[i][k]] = (int16_t)i;
    }
}

/* -- the code --------------------------------------------------------------------------------------------------------------- */

static void end_instruction(generator *g)
{
    oly_x86_end_instruction(g);
    for (int k = 0; k < N_COMMON; k++)
        oly_x86_release(g, g->first_common + k);
}

static void write_instruction(generator *g, int i)
{
    int out = g->program->n_loads + i;
    oly_x86_operate(g, i);
    if (g->value[out].invariant)
        oly_x86_save(g, out);
    end_instruction(g);
    for (int k = 0; k < 3; k++)
        if (g->in[i][k] >= 0) {
            g->value[g->in[i][k]].next = g->next[i][k];
            if (g->next[i][k] == NEVER)
                oly_x86_release(g, g->in[i][k]);
        }
    if (g->value[out].next == NEVER)
        oly_x86_release(g, out);
}

/* A load that is stored as it is may be in memory that another store writes: it is kept as what is computed. */
static void keep_stored_loads(generator *g)
{
    const oly_tile_program *p = g->program;
    for (int s = 0; s < p->n_stores && p->n_stores > 1; s++) {
        value *v = &g->value[g->stored[s]];
        if (v->home != IN_ROW)
            continue;
        oly_x86_source(g, g->stored[s]);
        v->home = NOWHERE;
        end_instruction(g);
    }
}

static void write_elements(generator *g, bool rest)
{
    const oly_tile_program *p = g->program;
    g->rest = rest;
    g->counts = true;
    for (int k = 0; k < g->n_values; k++)
        if (k < g->first_common)
            g->value[k].next = g->first_use[k];
    for (int i = 0; i < p->n_instructions; i++)
        if (!g->value[p->n_loads + i].invariant)
            write_instruction(g, i);
    keep_stored_loads(g);
    for (int s = 0; s < p->n_stores; s++) {
        oly_x86_put(g, p->n_loads + s, g->stored[s]);
        end_instruction(g);
        g->value[g->stored[s]].next = g->next_stored[s];
        if (g->next_stored[s] == NEVER)
            oly_x86_release(g, g->stored[s]);
    }
    oly_x86_forget(g);
    for (int l = 0; l < p->n_loads; l++)
        if (!is_scalar(g, l)) {
            g->value[l].home = IN_ROW;
            g->value[l].which = (int16_t)l;
        }
    g->rest = g->counts = false;
}

static void write_invariants(generator *g)
{
    const oly_tile_program *p = g->program;
    for (int i = 0; i < p->n_instructions; i++) {
        value *v = &g->value[p->n_loads + i];
        if (v->invariant && v->home != CONSTANT)
            write_instruction(g, i);
    }
    oly_x86_forget(g);
}

static void write_pointers(generator *g)
{
    bool strides = g->form->strided[0] || g->form->strided[1];
    int next = 0, most = (int)sizeof pointers - (is_avx2(g) || strides);
    for (int k = 0; k < g->n_operands; k++) {
        bool in_memory = k < g->program->n_loads + g->program->n_stores && !is_scalar(g, k);
        g->pointer[k] = in_memory && next < most ? (int8_t)pointers[next++] : -1;
        if (g->pointer[k] >= 0)
            x86_load(&g->code, g->pointer[k], oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)k));
    }
}

static void write_pins(generator *g, const int16_t *pins, int n)
{
    for (int k = 0, reg = g->n_registers[VECTORS] - 1; k < n; k++, reg--) {
        value *v = &g->value[pins[k]];
        oly_x86_bring(g, pins[k], reg);
        oly_x86_end_instruction(g);
        v->reg = (int16_t)reg;
        v->pinned = true;
        g->holds[VECTORS][reg] = pins[k];
    }
}

static void write_row(generator *g, const int16_t *pins, int n_pins)
{
    x86_code *c = &g->code;
    write_pointers(g);
    write_invariants(g);
    write_pins(g, pins, n_pins);
    x86_clear(c, RCX);
    x86_load(c, RDX, oly_x86_call_field(offsetof(oly_code_call, whole)));
    x86_test(c, RDX);
    size_t none = x86_jump(c, X86_ZERO), loop = c->used;
    write_elements(g, false);
    x86_add_number(c, RCX, g->lanes);
    x86_compare(c, RCX, x86_register(RDX));
    x86_jump_back(c, X86_BELOW, loop);
    x86_land(c, none);
    x86_load(c, RAX, oly_x86_call_field(offsetof(oly_code_call, tail)));
    x86_test(c, RAX);
    size_t no_tail = x86_jump(c, X86_ZERO);
    if (is_avx2(g))
        oly_avx2_start_rest(g);
    else
        emit_mask(g, X86_OP(3, 1, 0x92), 16, TAIL_MASK, 0, x86_register(RAX));
    write_elements(g, true);
    x86_land(c, no_tail);
}

static void start(generator *g)
{
    g->code.used = 0;
    memset(g->holds, FREE, sizeof g->holds);
    memset(g->locked, 0, sizeof g->locked);
    memset(g->slot_taken, 0, sizeof g->slot_taken);
    for (int k = 0; k < g->n_values; k++) {
        value *v = &g->value[k];
        v->reg = -1;
        v->pinned = false;
        v->next = g->first_use[k];
        v->home = v->home == SLOT ? NOWHERE : v->home;
    }
}

static void write_function(generator *g, const int16_t *pins, int n_pins)
{
    x86_code *c = &g->code;
    start(g);
    for (size_t k = 0; k < sizeof saved; k++)
        x86_push(c, saved[k]);
    x86_move(c, RAX, RSP);
    x86_add_number(c, RSP, -FRAME);
    x86_and_number(c, RSP, -64);
    x86_store(c, x86_memory(RSP, FRAME_CALLER), RAX);
    size_t row = c->used;
    write_row(g, pins, n_pins);
    for (int k = 0; k < g->n_operands; k++) {
        x86_load(c, RAX, oly_x86_call_field(offsetof(oly_code_call, step) + 8 * (size_t)k));
        x86_add_to_memory(c, oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)k), RAX);
    }
    x86_count_down(c, oly_x86_call_field(offsetof(oly_code_call, rows)));
    x86_jump_back(c, X86_NOT_ZERO, row);
    x86_load(c, RSP, x86_memory(RSP, FRAME_CALLER));
    for (size_t k = sizeof saved; k-- > 0;)
        x86_pop(c, saved[k]);
    x86_return(c);
}

/* The values that registers keep for a whole row: those that are used most. */
static int choose_pins(generator *g, int16_t *pins)
{
    bool kept[MOST_VALUES] = {false};
    int n = 0, room = g->n_registers[VECTORS] - g->most[VECTORS];
    for (; n < room; n++) {
        int best = -1;
        for (int k = 0; k < g->n_values; k++) {
            const value *v = &g->value[k];
            if (v->invariant && v->uses > 0 && kind_of(g, k) == VECTORS && !kept[k] &&
                (best < 0 || v->uses > g->value[best].uses))
                best = k;
        }
        if (best < 0)
            break;
        kept[best] = true;
        pins[n] = (int16_t)best;
    }
    return n;
}

size_t oly_code_write(const oly_tile_program *program, const oly_code_form *form, oly_code_outline *outline,
                      uint8_t *bytes, size_t room)
{
    bool evex = strcmp(oly_kernels_isa(), "avx512") == 0;
    generator g;
    int16_t pins[32];
    g.program = program;
    g.form = form;
    g.code = (x86_code){.bytes = bytes, .room = room, .evex = evex};
    g.rest = g.counts = g.failed = false;
    g.n_registers[VECTORS] = evex ? 32 : 16;
    g.n_registers[MASKS] = evex ? 6 : 0;
    memset(g.most, 0, sizeof g.most);
    if (!takes(&g))
        return 0;
    name_values(&g, outline);
    outline->lanes = g.lanes;
    find_uses(&g);
    write_function(&g, pins, 0);
    if (g.failed || g.code.used > room)
        return 0;
    write_function(&g, pins, choose_pins(&g, pins));
    return g.failed || g.code.used > room ? 0 : g.code.used;
}

const void *oly_code_table(void)
{
    return oly_code_common;
}

#else

bool oly_code_available(void)
{
    return false;
}
bool oly_code_strides(int64_t bytes __attribute__((unused)))
{
    return false;
}
bool oly_code_knows(const oly_tile_instruction *c __attribute__((unused)))
{
    return false;
}
size_t oly_code_write(const oly_tile_program *program __attribute__((unused)),
                      const oly_code_form *form __attribute__((unused)),
                      oly_code_outline *outline __attribute__((unused)), uint8_t *bytes __attribute__((unused)),
                      size_t room __attribute__((unused)))
{
    return 0;
}
const void *oly_code_table(void)
{
    return NULL;
}
bool oly_code_use_fp16(bool use __attribute__((unused)))
{
    return false;
}
#endif
