/* SPDX-License-Identifier: BSD-3-Clause */
/* AVX2's own ways between registers and memory (generator.h): the elements after the last whole vector, bools, and float16 and
 * bfloat16, which are float32 in registers. Memory that does not belong to the row is neither read nor written. */
#include "x86/generator.h"
#if defined(__x86_64__)

enum {
    MASKED_LOAD = X86_OP(1, 2, 0x2c),
    MASKED_STORE = X86_OP(1, 2, 0x2e),
    LOAD = X86_OP(0, 1, 0x10),
    STORE = X86_OP(0, 1, 0x11),
    EXTRACT_UPPER = X86_OP(1, 3, 0x39),
    SPREAD_BYTE = X86_OP(1, 2, 0x78),
    ABSOLUTE_BYTES = X86_OP(1, 2, 0x1c),
    EQUAL_BYTES = X86_OP(1, 1, 0x74),
    FLOAT_TO_HALF = X86_OP(1, 3, 0x1d) /* the destination is the last operand */
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
    for (int element = 4; element <= 8 && element * g->lanes <= 32; element += 4) {
        x86_place from = x86_memory(RAX, 8 * COMMON_ONES + 32);
        from.index = RBP;
        from.scale = element == 8 ? 3 : 2;
        emit(g, LOAD, 0, 32, ones, 0, from);
        emit(g, STORE, 0, 32, ones, 0, rest_mask(element));
    }
    oly_x86_end_instruction(g);
}

static void move_part(x86_code *c, x86_place from, x86_place to, int bytes)
{
    for (int left = bytes; left > 0; left -= 8) {
        int part = left < 8 ? left : 8;
        x86_load_part(c, RDX, from, part);
        x86_store_part(c, to, RDX, part);
        from.displacement += part;
        to.displacement += part;
    }
}

/* No instruction of AVX2 moves some bytes or words: the rest goes through a vector on the stack, in parts of powers of two, which are the
 * lower bits of the row's length. RCX and RDX: the elements before the rest; RDX has a part meanwhile, RBP where element 0 of the row
 * would be on the stack. */
static void move_short_rest(generator *g, x86_place row, int element, bool store)
{
    x86_code *c = &g->code;
    x86_place here = {.memory = true, .reg = RBP, .index = RCX, .scale = element == 2};
    x86_clear(c, RBP);
    for (int k = 0; k < element; k++)
        x86_subtract(c, RBP, x86_register(RDX));
    x86_add_to_memory(c, x86_register(RBP), RSP);
    x86_add_number(c, RBP, FRAME_SHORT);
    for (int n = g->lanes / 2; n > 0; n /= 2) {
        x86_test_bits(c, oly_x86_call_field(offsetof(oly_code_call, n)), (uint8_t)n);
        size_t none = x86_jump(c, X86_ZERO);
        move_part(c, store ? here : row, store ? row : here, n * element);
        x86_add_number(c, RCX, n);
        x86_land(c, none);
    }
    x86_load(c, RDX, oly_x86_call_field(offsetof(oly_code_call, whole)));
    x86_move(c, RCX, RDX);
}

void oly_avx2_move_rest(generator *g, int reg, x86_place at, int element, bool store)
{
    int bytes = vector_bytes(g, element);
    if (element >= 4) {
        int mask = store ? oly_x86_take(g, VECTORS) : reg;
        emit(g, LOAD, 0, bytes, mask, 0, rest_mask(element));
        emit(g, (store ? MASKED_STORE : MASKED_LOAD) + (element == 8 ? 0x100 : 0), 0, bytes, reg, mask, at);
        return;
    }
    if (store)
        emit(g, STORE, 0, bytes, reg, 0, x86_memory(RSP, FRAME_SHORT));
    move_short_rest(g, at, element, store);
    if (!store)
        emit(g, LOAD, 0, bytes, reg, 0, x86_memory(RSP, FRAME_SHORT));
}

void oly_avx2_move_whole(generator *g, int reg, x86_place at, int bytes, bool store)
{
    switch (bytes) {
    case 4: emit(g, X86_OP(1, 1, store ? 0x7e : 0x6e), 0, 16, reg, 0, at); break;
    case 8: emit(g, store ? X86_OP(1, 1, 0xd6) : X86_OP(2, 1, 0x7e), 0, 16, reg, 0, at); break;
    default: emit(g, store ? STORE : LOAD, 0, bytes, reg, 0, at);
    }
}

/* -- other sizes of elements -------------------------------------------------------------------------------------------------- */

/* The halves of a vector of 32 bytes, or a shorter one twice, become one of elements of half the size. */
static void pack(generator *g, uint32_t op, int bytes, int to, int from)
{
    int upper = from;
    if (bytes == 32) {
        upper = oly_x86_take(g, VECTORS);
        emit_immediate(g, EXTRACT_UPPER, 0, 32, from, 0, x86_register(upper),
                       1); /* the destination is the last operand */
    }
    emit(g, op, 0, 16, to, from, x86_register(upper));
}

/* To half the size. Packing saturates: numbers are first reduced to what an unsigned one of half the size can be. */
static void halve(generator *g, int to, int from, int size, bool bools)
{
    int bytes = vector_bytes(g, size);
    if (size == 8) {
        emit_immediate(g, EXTRACT_UPPER, 0, 32, from, 0, x86_register(to), 1);
        emit_immediate(g, SHUFFLE, 0, 16, to, from, x86_register(to), 0x88);
    } else if (bools) {
        pack(g, X86_OP(1, 1, size == 4 ? 0x6b : 0x63), bytes, to, from);
    } else {
        uint32_t shift = size == 4 ? SHIFT_32 : SHIFT_WORDS;
        emit_immediate(g, shift, 0, bytes, LEFT, to, x86_register(from), 4 * size);
        emit_immediate(g, shift, 0, bytes, RIGHT, to, x86_register(to), 4 * size);
        pack(g, size == 4 ? X86_OP(1, 2, 0x2b) : X86_OP(1, 1, 0x67), bytes, to, to);
    }
}

void oly_avx2_resize(generator *g, int to, int from, int from_size, int to_size, bool bools)
{
    if (from_size < to_size) {
        emit(g, X86_OP(1, 2, 0x20 + opcode_between(from_size, to_size)), 0, vector_bytes(g, to_size), to, 0,
             x86_register(from));
        return;
    }
    for (int size = from_size; size > to_size; size /= 2) {
        halve(g, to, from, size, bools);
        from = to;
    }
}

/* -- bools ---------------------------------------------------------------------------------------------------------------------- */

/* Bytes, each widened: what is not zero is true. */
void oly_avx2_bytes_to_bools(generator *g, int reg, x86_place bytes)
{
    static const uint32_t widen[] = {[2] = X86_OP(1, 2, 0x30), [4] = X86_OP(1, 2, 0x31), [8] = X86_OP(1, 2, 0x32)};
    static const uint32_t greater[] = {[2] = X86_OP(1, 1, 0x65), [4] = X86_OP(1, 1, 0x66), [8] = X86_OP(1, 2, 0x37)};
    int zero = oly_x86_take(g, VECTORS), size = bool_bytes(g);
    emit(g, XOR, 0, 32, zero, zero, x86_register(zero));
    if (size == 1) {
        emit(g, EQUAL_BYTES, 0, 32, reg, zero, bytes);
        emit(g, EQUAL_BYTES, 0, 32, reg, zero, x86_register(reg));
        return;
    }
    emit(g, widen[size], 0, 32, reg, 0, bytes);
    emit(g, greater[size], 0, 32, reg, reg, x86_register(zero));
}

void oly_avx2_bring_bools(generator *g, int reg, x86_place at)
{
    if (g->rest) {
        oly_avx2_move_rest(g, reg, at, 1, false);
        at = x86_register(reg);
    }
    oly_avx2_bytes_to_bools(g, reg, at);
}

void oly_avx2_bring_scalar_bool(generator *g, int reg, x86_place at)
{
    emit(g, SPREAD_BYTE, 0, 32, reg, 0, at);
    oly_avx2_bytes_to_bools(g, reg, x86_register(reg));
}

int oly_avx2_bools_to_bytes(generator *g, int from)
{
    int bytes = oly_x86_take(g, VECTORS), size = bool_bytes(g);
    if (size > 1)
        oly_avx2_resize(g, bytes, from, size, 1, true);
    emit(g, ABSOLUTE_BYTES, 0, vector_bytes(g, 1), bytes, 0, x86_register(size > 1 ? bytes : from)); /* of -1 */
    return bytes;
}

/* -- float16 and bfloat16 ------------------------------------------------------------------------------------------------------ */

int oly_avx2_half(generator *g, int dtype, int reg)
{
    int bytes = vector_bytes(g, 4), half = oly_x86_take(g, VECTORS);
    if (dtype == OLY_FLOAT16) {
        emit_immediate(g, FLOAT_TO_HALF, 0, bytes, reg, 0, x86_register(half), 0);
    } else {
        emit_immediate(g, SHIFT_32, 0, bytes, RIGHT, half, x86_register(reg), 16);
        pack(g, X86_OP(1, 2, 0x2b), bytes, half, half);
    }
    return half;
}

/* -- both ------------------------------------------------------------------------------------------------------------------------ */

void oly_avx2_put_short(generator *g, x86_place at, int from, int element)
{
    if (g->rest)
        oly_avx2_move_rest(g, from, at, element, true);
    else
        oly_avx2_move_whole(g, from, at, element * g->lanes, true);
}
#endif
