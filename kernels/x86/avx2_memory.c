/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2's own ways between registers and memory (generator.h): the elements after the last whole vector, and bools. Memory that does not
 * belong to the row is neither read nor written. */
#include "x86/generator.h"
#if defined(__x86_64__)

enum {
    MASKED_LOAD = X86_OP(1, 2, 0x2c),
    MASKED_STORE = X86_OP(1, 2, 0x2e),
    LOAD = X86_OP(0, 1, 0x10),
    STORE = X86_OP(0, 1, 0x11),
    EXTRACT_UPPER = X86_OP(1, 3, 0x39),
    SHUFFLE = X86_OP(0, 1, 0xc6),
    SPREAD_BYTE = X86_OP(1, 2, 0x78)
};

static int bool_bytes(const generator *g)
{
    return held_bytes(g, OLY_BOOL);
}

/* -- the elements after the last whole vector ------------------------------------------------------------------------------ */

static x86_place rest_mask(int element)
{
    return x86_memory(RSP, FRAME_REST + (element == 8 ? 32 : 0));
}

/* Of n elements, n vectors of ones: from the table, n elements before its zeros. */
void oly_avx2_start_rest(generator *g)
{
    x86_code *c = &g->code;
    int ones = oly_x86_take(g, VECTORS);
    x86_load(c, RAX, oly_x86_call_field(offsetof(oly_code_call, common)));
    x86_move(c, RBP, RDX);
    x86_subtract(c, RBP, oly_x86_call_field(offsetof(oly_code_call, n)));
    for (int element = 4; element <= 8; element += 4) {
        x86_place from = x86_memory(RAX, 8 * COMMON_ONES + 32);
        from.index = RBP;
        from.scale = element == 8 ? 3 : 2;
        emit(g, LOAD, 0, 32, ones, 0, from);
        emit(g, STORE, 0, 32, ones, 0, rest_mask(element));
    }
    oly_x86_end_instruction(g);
}

void oly_avx2_move_rest(generator *g, int reg, x86_place at, int element, bool store)
{
    int bytes = vector_bytes(g, element), mask = store ? oly_x86_take(g, VECTORS) : reg;
    emit(g, LOAD, 0, bytes, mask, 0, rest_mask(element));
    emit(g, (store ? MASKED_STORE : MASKED_LOAD) + (element == 8 ? 0x100 : 0), 0, bytes, reg, mask, at);
}

/* No instruction of AVX2 moves some bytes: one after the other into RBP, the last first. RDX: the elements before the rest. */
static void load_rest_bytes(generator *g, x86_place at)
{
    x86_code *c = &g->code;
    x86_clear(c, RBP);
    x86_load(c, RCX, oly_x86_call_field(offsetof(oly_code_call, n)));
    size_t loop = c->used;
    x86_add_number(c, RCX, -1);
    x86_shift(c, RBP, 8);
    x86_load_lowest_byte(c, RBP, at);
    x86_compare(c, RCX, x86_register(RDX));
    x86_jump_back(c, X86_NOT_ZERO, loop);
}

static void store_rest_bytes(generator *g, x86_place at)
{
    x86_code *c = &g->code;
    size_t loop = c->used;
    x86_store_part(c, at, RBP, 1);
    x86_shift(c, RBP, -8);
    x86_add_number(c, RCX, 1);
    x86_compare(c, RCX, oly_x86_call_field(offsetof(oly_code_call, n)));
    x86_jump_back(c, X86_NOT_ZERO, loop);
    x86_move(c, RCX, RDX);
}

/* -- bools ---------------------------------------------------------------------------------------------------------------------- */

void oly_avx2_resize(generator *g, int to, int from, int from_size, int to_size)
{
    if (from_size < to_size) {
        emit(g, X86_OP(1, 2, 0x25), 0, 32, to, 0, x86_register(from));
        return;
    }
    emit_immediate(g, EXTRACT_UPPER, 0, 32, from, 0, x86_register(to), 1); /* the destination is the last operand */
    emit_immediate(g, SHUFFLE, 0, 16, to, from, x86_register(to), 0x88);
}

/* Bytes, each widened: what is not zero is true. */
static void bytes_to_bools(generator *g, int reg, x86_place bytes)
{
    int zero = oly_x86_take(g, VECTORS), size = bool_bytes(g);
    emit(g, X86_OP(1, 1, 0xef), 0, 32, zero, zero, x86_register(zero));
    emit(g, X86_OP(1, 2, size == 8 ? 0x32 : 0x31), 0, 32, reg, 0, bytes);
    emit(g, size == 8 ? X86_OP(1, 2, 0x37) : X86_OP(1, 1, 0x66), 0, 32, reg, reg, x86_register(zero));
}

void oly_avx2_bring_bools(generator *g, int reg, x86_place at)
{
    if (g->rest) {
        load_rest_bytes(g, at);
        emit(g, X86_OP(1, 1, 0x6e), 1, 16, reg, 0, x86_register(RBP));
        at = x86_register(reg);
    }
    bytes_to_bools(g, reg, at);
}

void oly_avx2_bring_scalar_bool(generator *g, int reg, x86_place at)
{
    emit(g, SPREAD_BYTE, 0, 16, reg, 0, at);
    bytes_to_bools(g, reg, x86_register(reg));
}

void oly_avx2_put_bools(generator *g, x86_place at, int from)
{
    int bytes = oly_x86_take(g, VECTORS);
    if (bool_bytes(g) == 8) {
        oly_avx2_resize(g, bytes, from, 8, 4);
        emit(g, X86_OP(1, 1, 0x6b), 0, 16, bytes, bytes, x86_register(bytes)); /* to words */
    } else {
        emit_immediate(g, EXTRACT_UPPER, 0, 32, from, 0, x86_register(bytes), 1);
        emit(g, X86_OP(1, 1, 0x6b), 0, 16, bytes, from, x86_register(bytes));
    }
    emit(g, X86_OP(1, 1, 0x63), 0, 16, bytes, bytes, x86_register(bytes)); /* to bytes: -1 where true */
    emit(g, X86_OP(1, 2, 0x1c), 0, 16, bytes, 0, x86_register(bytes));     /* |-1| */
    if (g->rest) {
        emit(g, X86_OP(1, 1, 0x7e), 1, 16, bytes, 0, x86_register(RBP));
        store_rest_bytes(g, at);
    } else if (bool_bytes(g) == 8) {
        emit(g, X86_OP(1, 1, 0x7e), 0, 16, bytes, 0, at);
    } else {
        emit(g, X86_OP(1, 1, 0xd6), 0, 16, bytes, 0, at);
    }
}
#endif
