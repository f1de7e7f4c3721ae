/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers and memory of the generator's values (generator.h). When registers run out, the value that is read again last
 * loses its own: it is saved on the stack, unless it is in memory anyway. */
#include "x86/generator.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>
#include <string.h>

enum { MOVE_K_FROM_MEMORY = X86_OP(0, 1, 0x90), MOVE_K_TO_MEMORY = X86_OP(0, 1, 0x91) };

const uint64_t oly_code_common[COMMON_WORDS] = {
    0x0000000100000000,
    0x0000000300000002,
    0x0000000500000004,
    0x0000000700000006,
    0x0000000900000008,
    0x0000000b0000000a,
    0x0000000d0000000c,
    0x0000000f0000000e,
    [8 + ONE] = 1,
    [8 + ONE_I32] = 1,
    [8 + ONE_F32] = 0x3f800000,
    [8 + ONE_F64] = 0x3ff0000000000000,
    [8 + MINUS_ONE_F32] = 0xbf800000,
    [8 + MINUS_ONE_F64] = 0xbff0000000000000,
    [8 + SIGN_32] = 0x80000000,
    [8 + SIGN_64] = 0x8000000000000000,
    [8 + SIGNS_OF_PARTS] = 0x8000000080000000,
    [8 + MAGNITUDE_32] = 0x7fffffff,
    [8 + MAGNITUDE_64] = 0x7fffffffffffffff,
    [8 + INFINITY_F32] = 0x7f800000,
    [8 + INFINITY_F64] = 0x7ff0000000000000,
    [8 + BEYOND_I32_F32] = 0x4f000000,
    [8 + BEYOND_I32_F64] = 0x41e0000000000000,
    [8 + BEYOND_I64_F32] = 0x5f000000,
    [8 + BEYOND_I64_F64] = 0x43e0000000000000,
    [8 + BELOW_HALF_BF16] = 0x7fff,
    [8 + QUIET_F32] = 0x00400000,
    [8 + UPPER_32] = 0xffff0000,
    [8 + SIGN_16] = 0x8000,
    [8 + MAGNITUDE_16] = 0x7fff,
    [8 + INFINITY_F16] = 0x7c00,
    [8 + ONE_F16] = 0x3c00,
    [8 + MINUS_ONE_F16] = 0xbc00,
    [8 + TWO_TO_16_F32] = 0x47800000,
    [8 + TWO_TO_52_F64] = 0x4330000000000000,
    [8 + TWO_TO_84_F64] = 0x4530000000000000,
    [8 + TWO_TO_84_AND_52_F64] = 0x4530000000100000,
    [8 + TWO_TO_84_63_AND_52_F64] = 0x4530000080100000,
    [COMMON_ONES] = UINT64_MAX,
    UINT64_MAX,
    UINT64_MAX,
    UINT64_MAX,
};

/* -- float16 ----------------------------------------------------------------------------------------------------------------- */

enum { UNKNOWN, PRESENT, ABSENT };
static atomic_int fp16 = UNKNOWN; /* asking takes long in a virtual machine */
static atomic_bool fp16_unused = false;

bool oly_x86_has_fp16(void)
{
    unsigned a, b, c, d;
    int known = atomic_load_explicit(&fp16, memory_order_relaxed);
    if (known == UNKNOWN) {
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 23 & 1 ? PRESENT : ABSENT;
        atomic_store_explicit(&fp16, known, memory_order_relaxed);
    }
    return known == PRESENT && strcmp(oly_kernels_isa(), "avx512") == 0 &&
           !atomic_load_explicit(&fp16_unused, memory_order_relaxed);
}

bool oly_code_use_fp16(bool use)
{
    return !atomic_exchange(&fp16_unused, !use);
}

x86_place oly_x86_call_field(size_t offset)
{
    return x86_memory(RDI, (int32_t)offset);
}

/* -- where things are ------------------------------------------------------------------------------------------------------ */

static x86_place slot_at(int slot)
{
    return x86_memory(RSP, 64 * slot);
}

static int pointer_to(generator *g, int operand)
{
    if (g->pointer[operand] >= 0)
        return g->pointer[operand];
    x86_load(&g->code, RAX, oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)operand));
    return RAX;
}

static x86_place row_element(generator *g, int operand, int element)
{
    int scale = element == 8 ? 3 : element == 4 ? 2 : element == 2 ? 1 : 0;
    return (x86_place){.memory = true, .reg = (uint8_t)pointer_to(g, operand), .index = RCX, .scale = (uint8_t)scale};
}

static x86_place scalar_at(generator *g, const value *v)
{
    if (v->home == CONSTANT)
        return oly_x86_call_field(offsetof(oly_code_call, constant) + 8 * (size_t)v->which);
    if (v->home == SCALAR)
        return x86_memory(pointer_to(g, v->which), 0);
    x86_load(&g->code, RAX, oly_x86_call_field(offsetof(oly_code_call, common)));
    return x86_memory(RAX, 8 * (8 + v->which));
}

/* -- to and from memory ---------------------------------------------------------------------------------------------------- */

static uint32_t move_op(int element, bool store)
{
    switch (element) {
    case 8: return X86_OP(1, 1, 0x10 + store);
    case 4: return X86_OP(0, 1, 0x10 + store);
    default: return X86_OP(3, 1, store ? 0x7f : 0x6f); /* AVX-512 */
    }
}

/* Eight bytes with as many elements: shorter than any vector. */
static void move_eight(generator *g, int reg, x86_place at, bool store)
{
    if (store)
        emit(g, X86_OP(1, 1, 0xd6), 1, 16, reg, 0, at);
    else
        emit(g, X86_OP(2, 1, 0x7e), 1, 16, reg, 0, at);
}

static void move_vector(generator *g, int reg, x86_place at, int element, bool store)
{
    int mask = g->rest ? TAIL_MASK : 0;
    if (is_avx2(g) && g->rest)
        oly_avx2_move_rest(g, reg, at, element, store);
    else if (is_avx2(g) && element < 4)
        oly_avx2_move_whole(g, reg, at, element * g->lanes, store);
    else if (element == 1 && g->lanes == 8 && !g->rest)
        move_eight(g, reg, at, store);
    else
        emit_masked(g, move_op(element, store), element == 8 || element == 2, vector_bytes(g, element), mask,
                    mask && !store, reg, 0, at);
}

/* -- float16 and bfloat16 as float32 -------------------------------------------------------------------------------------- */

enum { HALF_TO_FLOAT = X86_OP(1, 2, 0x13), FLOAT_TO_HALF = X86_OP(1, 3, 0x1d), WIDEN_WORDS = X86_OP(1, 2, 0x33) };

static void widen_half(generator *g, int dtype, int reg, x86_place from, int mask)
{
    int bytes = vector_bytes(g, 4);
    emit_masked(g, dtype == OLY_FLOAT16 ? HALF_TO_FLOAT : WIDEN_WORDS, 0, bytes, mask, mask != 0, reg, 0, from);
    if (dtype == OLY_BFLOAT16) /* to the upper half */
        emit_immediate(g, X86_OP(1, 1, 0x72), 0, bytes, 6, reg, x86_register(reg), 16);
}

static void bring_half(generator *g, int dtype, int reg, x86_place at)
{
    bool in_register = is_avx2(g) && g->rest;
    if (in_register)
        oly_avx2_move_rest(g, reg, at, 2, false);
    widen_half(g, dtype, reg, in_register ? x86_register(reg) : at, g->rest && !in_register ? TAIL_MASK : 0);
}

/* AVX-512: to memory, or a register. */
static void narrow_half(generator *g, int dtype, int reg, x86_place at)
{
    int bytes = vector_bytes(g, 4), mask = g->rest && at.memory ? TAIL_MASK : 0;
    x86_vector narrow = {.bytes = (uint8_t)bytes, .mask = (uint8_t)mask, .last = at};
    if (dtype == OLY_FLOAT16) {
        narrow.op = FLOAT_TO_HALF;
        narrow.reg = (uint8_t)reg;
        narrow.immediate = 0;
    } else {
        int upper = oly_x86_take(g, VECTORS);
        emit_immediate(g, X86_OP(1, 1, 0x72), 0, bytes, 2, upper, x86_register(reg), 16);
        narrow.op = X86_OP(2, 2, 0x33);
        narrow.reg = (uint8_t)upper;
        narrow.immediate = -1;
    }
    x86_emit(&g->code, &narrow);
}

static void put_half(generator *g, int operand, int dtype, int reg)
{
    int half = is_avx2(g) ? oly_avx2_half(g, dtype, reg) : is_strided(g, operand) ? oly_x86_take(g, VECTORS) : -1;
    if (!is_avx2(g))
        narrow_half(g, dtype, reg, half < 0 ? row_element(g, operand, 2) : x86_register(half));
    if (is_strided(g, operand))
        oly_x86_store_strided(g, half, operand, 2);
    else if (is_avx2(g))
        oly_avx2_put_short(g, row_element(g, operand, 2), half, 2);
}

void oly_x86_widen_half(generator *g, int to, int from)
{
    emit(g, HALF_TO_FLOAT, 0, vector_bytes(g, 4), to, 0, x86_register(from));
}
void oly_x86_narrow_half(generator *g, int to, int from) /* the destination is the last operand */
{
    emit_immediate(g, FLOAT_TO_HALF, 0, vector_bytes(g, 4), from, 0, x86_register(to), 0);
}

void oly_x86_round_half(generator *g, int dtype, int reg)
{
    int bytes = vector_bytes(g, 4);
    if (dtype == OLY_FLOAT16) {
        oly_x86_narrow_half(g, reg, reg);
        oly_x86_widen_half(g, reg, reg);
        return;
    }
    int last = oly_x86_take(g, VECTORS), sum = oly_x86_take(g, VECTORS);
    int nan = oly_x86_take(g, is_avx2(g) ? VECTORS : MASKS);
    int one = oly_x86_source(g, oly_x86_common(g, ONE_I32)), upper = oly_x86_source(g, oly_x86_common(g, UPPER_32));
    int below = oly_x86_source(g, oly_x86_common(g, BELOW_HALF_BF16));
    int quiet = oly_x86_source(g, oly_x86_common(g, QUIET_F32));
    emit_immediate(g, X86_OP(1, 1, 0x72), 0, bytes, 2, last, x86_register(reg), 16);
    emit(g, X86_OP(1, 1, 0xfe), 0, bytes, sum, reg, x86_register(below));
    emit(g, X86_OP(1, 1, 0xdb), 0, bytes, last, last, x86_register(one));
    emit_immediate(g, X86_OP(0, 1, 0xc2), 0, bytes, nan, reg, x86_register(reg), 3); /* NaN stays NaN */
    emit(g, X86_OP(1, 1, 0xfe), 0, bytes, sum, sum, x86_register(last));
    emit(g, X86_OP(1, 1, 0xeb), 0, bytes, last, reg, x86_register(quiet));
    emit(g, X86_OP(1, 1, 0xdb), 0, bytes, reg, sum, x86_register(upper));
    if (is_avx2(g))
        emit_immediate(g, BLEND, 0, bytes, reg, reg, x86_register(last), nan << 4);
    else
        emit_masked(g, X86_OP(0, 1, 0x28), 0, bytes, nan, false, reg, 0, x86_register(last));
}

/* -- bools in mask registers ---------------------------------------------------------------------------------------------------------- */

static void bytes_to_mask(generator *g, int k, int bytes)
{
    emit(g, X86_OP(1, 2, 0x26), 0, vector_bytes(g, 1), k, bytes, x86_register(bytes));
}

static void bring_bools(generator *g, int reg, x86_place at)
{
    int bytes = oly_x86_take(g, VECTORS);
    move_vector(g, bytes, at, 1, false);
    bytes_to_mask(g, reg, bytes);
}

static void bring_scalar_bool(generator *g, int reg, x86_place at)
{
    int bytes = oly_x86_take(g, VECTORS);
    emit(g, X86_OP(1, 2, 0x78), 0, vector_bytes(g, 1), bytes, 0, at);
    bytes_to_mask(g, reg, bytes);
}

static void spread(generator *g, int reg, x86_place at, int element)
{
    static const uint32_t op[] = {
        [1] = X86_OP(1, 2, 0x78), [2] = X86_OP(1, 2, 0x79), [4] = X86_OP(1, 2, 0x18), [8] = X86_OP(1, 2, 0x19)};
    emit(g, op[element], element == 8 && !is_avx2(g), vector_bytes(g, element), reg, 0, at);
}

static void bring_strided(generator *g, const value *v, int reg)
{
    bool is_mask = v->dtype == OLY_BOOL && !is_avx2(g);
    int elements = is_mask ? oly_x86_take(g, VECTORS) : reg;
    oly_x86_load_strided(g, elements, v->which, oly_element_bytes[v->dtype]);
    if (is_mask)
        bytes_to_mask(g, reg, elements);
    else if (v->dtype == OLY_BOOL)
        oly_avx2_bytes_to_bools(g, reg, x86_register(reg));
    else if (is_widened(v->dtype))
        widen_half(g, v->dtype, reg, x86_register(reg), 0);
}

void oly_x86_bring(generator *g, int number, int reg)
{
    const value *v = &g->value[number];
    if (v->home == IN_ROW && is_strided(g, v->which)) {
        bring_strided(g, v, reg);
    } else if (v->home == IN_ROW) {
        x86_place at = row_element(g, v->which, oly_element_bytes[v->dtype]);
        if (v->dtype == OLY_BOOL && is_avx2(g))
            oly_avx2_bring_bools(g, reg, at);
        else if (v->dtype == OLY_BOOL)
            bring_bools(g, reg, at);
        else if (is_widened(v->dtype))
            bring_half(g, v->dtype, reg, at);
        else
            move_vector(g, reg, at, oly_element_bytes[v->dtype], false);
    } else if (v->home == SLOT && kind_of(g, number) == MASKS) {
        emit_mask(g, MOVE_K_FROM_MEMORY, 16, reg, 0, slot_at(v->which));
    } else if (v->home == SLOT) {
        emit(g, move_op(4, false), 0, vector_bytes(g, held_bytes(g, v->dtype)), reg, 0, slot_at(v->which));
    } else if (v->dtype == OLY_BOOL && is_avx2(g)) {
        oly_avx2_bring_scalar_bool(g, reg, scalar_at(g, v));
    } else if (v->dtype == OLY_BOOL) {
        bring_scalar_bool(g, reg, scalar_at(g, v));
    } else {
        spread(g, reg, scalar_at(g, v), oly_element_bytes[v->dtype]);
        if (is_widened(v->dtype))
            widen_half(g, v->dtype, reg, x86_register(reg), 0);
    }
}

static int mask_to_bytes(generator *g, int from)
{
    int bytes = oly_x86_take(g, VECTORS);
    emit(g, X86_OP(2, 2, 0x28), 0, vector_bytes(g, 1), bytes, 0, x86_register(from));  /* -1 where true */
    emit(g, X86_OP(1, 2, 0x1c), 0, vector_bytes(g, 1), bytes, 0, x86_register(bytes)); /* |-1| */
    return bytes;
}

static void put_bools(generator *g, int operand, int from)
{
    int bytes = (is_avx2(g) ? oly_avx2_bools_to_bytes : mask_to_bytes)(g, from);
    if (is_strided(g, operand))
        oly_x86_store_strided(g, bytes, operand, 1);
    else if (is_avx2(g))
        oly_avx2_put_short(g, row_element(g, operand, 1), bytes, 1);
    else
        move_vector(g, bytes, row_element(g, operand, 1), 1, true);
}

void oly_x86_put(generator *g, int operand, int number)
{
    int reg = oly_x86_source(g, number), dtype = g->value[number].dtype;
    if (dtype == OLY_BOOL)
        put_bools(g, operand, reg);
    else if (is_widened(dtype))
        put_half(g, operand, dtype, reg);
    else if (is_strided(g, operand))
        oly_x86_store_strided(g, reg, operand, oly_element_bytes[dtype]);
    else
        move_vector(g, reg, row_element(g, operand, oly_element_bytes[dtype]), oly_element_bytes[dtype], true);
}

/* -- registers -------------------------------------------------------------------------------------------------------------- */

void oly_x86_save(generator *g, int number)
{
    value *v = &g->value[number];
    int slot = 0;
    if (v->home != NOWHERE)
        return;
    while (slot < MOST_SLOTS && g->slot_taken[slot])
        slot++;
    if (slot == MOST_SLOTS) {
        g->failed = true;
        return;
    }
    g->slot_taken[slot] = true;
    v->home = SLOT;
    v->which = (int16_t)slot;
    if (kind_of(g, number) == MASKS)
        emit_mask(g, MOVE_K_TO_MEMORY, 16, v->reg, 0, slot_at(slot));
    else
        emit(g, move_op(4, true), 0, vector_bytes(g, held_bytes(g, v->dtype)), v->reg, 0, slot_at(slot));
}

/* The register whose value is read again last; -1: none may lose its value. */
static int victim(const generator *g, int kind)
{
    int found = -1, latest = -1;
    for (int r = 0; r < 32; r++) {
        int held = g->holds[kind][r];
        if (held < 0 || g->locked[kind][r] || g->value[held].pinned)
            continue;
        /* what must be saved first counts as read a little earlier */
        int next = 2 * g->value[held].next - (g->value[held].home == NOWHERE ? 4 : 0);
        if (next > latest) {
            latest = next;
            found = r;
        }
    }
    return found;
}

static bool is_register(const generator *g, int kind, int reg)
{
    return kind == MASKS ? reg >= 1 && reg < TAIL_MASK : reg < g->n_registers[VECTORS];
}

static void count_most(generator *g, int kind)
{
    int n = 0;
    for (int r = 0; r < 32; r++)
        n += is_register(g, kind, r) && g->holds[kind][r] != FREE;
    g->most[kind] = n > g->most[kind] ? n : g->most[kind];
}

int oly_x86_take(generator *g, int kind)
{
    int reg = -1;
    for (int r = 0; r < 32 && reg < 0; r++)
        if (is_register(g, kind, r) && g->holds[kind][r] == FREE)
            reg = r;
    if (reg < 0) {
        reg = victim(g, kind);
        if (reg < 0) {
            g->failed = true;
            return 1;
        }
        oly_x86_save(g, g->holds[kind][reg]);
        g->value[g->holds[kind][reg]].reg = -1;
    }
    g->holds[kind][reg] = WORKING;
    g->locked[kind][reg] = true;
    count_most(g, kind);
    return reg;
}

static void give(generator *g, int number)
{
    value *v = &g->value[number];
    if (v->reg >= 0)
        g->holds[kind_of(g, number)][v->reg] = FREE;
    v->reg = -1;
}

int oly_x86_source(generator *g, int number)
{
    value *v = &g->value[number];
    int kind = kind_of(g, number);
    if (v->invariant && g->counts)
        v->uses++;
    if (v->reg < 0) {
        int reg = oly_x86_take(g, kind);
        oly_x86_bring(g, number, reg);
        v->reg = (int16_t)reg;
        g->holds[kind][reg] = (int16_t)number;
    }
    g->locked[kind][v->reg] = true;
    return v->reg;
}

x86_place oly_x86_operand(generator *g, int number, bool again)
{
    const value *v = &g->value[number];
    int element = oly_element_bytes[v->dtype];
    bool masked = v->home == IN_ROW && (g->rest || is_strided(g, v->which)),
         broadcasts = v->home >= SCALAR && v->home <= COMMON;
    if (v->reg >= 0 || v->dtype == OLY_BOOL || masked || element < 4 || (broadcasts && is_avx2(g)))
        return x86_register(oly_x86_source(g, number));
    if (v->home == IN_ROW && !again)
        return row_element(g, v->which, element);
    if (v->home == SLOT && !again)
        return slot_at(v->which);
    if (broadcasts) {
        if (g->counts)
            g->value[number].uses++;
        x86_place at = scalar_at(g, v);
        at.broadcast = true;
        return at;
    }
    return x86_register(oly_x86_source(g, number));
}

int oly_x86_result(generator *g, int number)
{
    int kind = kind_of(g, number), reg = oly_x86_take(g, kind);
    value *v = &g->value[number];
    v->reg = (int16_t)reg;
    v->home = NOWHERE;
    v->next = g->first_use[number];
    g->holds[kind][reg] = (int16_t)number;
    return reg;
}

bool oly_x86_replace(generator *g, int number, int operand, bool again)
{
    value *v = &g->value[operand], *result = &g->value[number];
    if (again || v->pinned || v->reg < 0)
        return false;
    int kind = kind_of(g, number), reg = v->reg;
    oly_x86_release(g, operand);
    result->reg = (int16_t)reg;
    result->home = NOWHERE;
    result->next = g->first_use[number];
    g->holds[kind][reg] = (int16_t)number;
    g->locked[kind][reg] = true;
    return true;
}

int oly_x86_common(generator *g, common_constant which)
{
    return g->first_common + (int)which;
}

void oly_x86_end_instruction(generator *g)
{
    for (int kind = 0; kind < 2; kind++)
        for (int r = 0; r < 32; r++) {
            g->locked[kind][r] = false;
            if (g->holds[kind][r] == WORKING)
                g->holds[kind][r] = FREE;
        }
}

void oly_x86_release(generator *g, int number)
{
    value *v = &g->value[number];
    if (v->pinned)
        return;
    give(g, number);
    if (v->home == SLOT && !v->invariant) {
        g->slot_taken[v->which] = false;
        v->home = NOWHERE;
    }
}

void oly_x86_forget(generator *g)
{
    for (int k = 0; k < g->n_values; k++)
        if (!g->value[k].pinned)
            oly_x86_release(g, k);
}
#endif
