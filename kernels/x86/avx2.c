/* SPDX-License-Identifier: BSD-3-Clause */
/* What AVX2 does otherwise than AVX-512 (operations.c): bools are vectors, there are neither masked instructions nor comparisons of
 * unsigned integers, and some operations of 64-bit integers take several instructions. What is not here either is the same
 * instruction in another encoding, or left to the interpreter. */
#include "x86/operation.h"
#if defined(__x86_64__)

enum {
    AND = X86_OP(1, 1, 0xdb),
    AND_NOT = X86_OP(1, 1, 0xdf), /* not the first, and the second */
    OR = X86_OP(1, 1, 0xeb),
    EQUAL_32 = X86_OP(1, 1, 0x76),
    GREATER_64 = X86_OP(1, 2, 0x37),
    ADD_64 = X86_OP(1, 1, 0xd4),
    SUB_64 = X86_OP(1, 1, 0xfb),
    LOW_PRODUCT_64 = X86_OP(1, 1, 0xf4), /* of the lower halves */
    PRODUCT_WORDS = X86_OP(1, 1, 0xd5),
    FLOAT_OF_INT_32 = X86_OP(0, 1, 0x5b),
    BLEND_32 = X86_OP(1, 3, 0x02), /* by a number: bit k: of the last operand in element k */
    FROM_GENERAL = X86_OP(1, 1, 0x6e),
    SPREAD_32 = X86_OP(1, 2, 0x18)
};

/* By the size of the elements. */
static const uint32_t equal[] = {
    [1] = X86_OP(1, 1, 0x74), [2] = X86_OP(1, 1, 0x75), [4] = EQUAL_32, [8] = X86_OP(1, 2, 0x29)};
static const uint32_t greater[] = {
    [1] = X86_OP(1, 1, 0x64), [2] = X86_OP(1, 1, 0x65), [4] = X86_OP(1, 1, 0x66), [8] = GREATER_64};

static void on_registers(const written *w, uint32_t op, int to, int x, int y)
{
    emit(w->g, op, w->wide, w->bytes, to, x, x86_register(y));
}

static void shift(const written *w, uint32_t op, int how, int to, int x, int bits)
{
    emit_immediate(w->g, op, 0, w->bytes, how, to, x86_register(x), bits);
}

/* to = mask ? x : y */
static void blend(const written *w, int bytes, int to, int mask, x86_place x, int y)
{
    emit_immediate(w->g, BLEND, 0, bytes, to, y, x, mask << 4);
}

static void invert(const written *w, int bytes, int to, int x)
{
    int ones = oly_x86_take(w->g, VECTORS);
    emit(w->g, EQUAL_32, 0, bytes, ones, ones, x86_register(ones));
    emit(w->g, XOR, 0, bytes, to, x, x86_register(ones));
}

/* -- bools -------------------------------------------------------------------------------------------------------------------- */

static int bool_size(const written *w)
{
    return held_bytes(w->g, OLY_BOOL);
}

/* Operand 0, a bool, as a mask of elements of this size. */
static int mask_of(const written *w, int size)
{
    int held = source(w, 0), narrow;
    if (size == bool_size(w))
        return held;
    narrow = oly_x86_take(w->g, VECTORS);
    oly_avx2_resize(w->g, narrow, held, bool_size(w), size, true);
    return narrow;
}

/* The result, a bool, has been computed as a mask of elements of the operands' size. */
static void finish_bool(const written *w, int to)
{
    if (w->size != bool_size(w))
        oly_avx2_resize(w->g, to, to, w->size, bool_size(w), true);
}

static void write_bools(const written *w, int op)
{
    int x = source(w, 0), y = source(w, 1), to = result(w);
    switch (op) {
    case OLY_TILE_add:
    case OLY_TILE_max:
    case OLY_TILE_logical_or:
    case OLY_TILE_or: on_registers(w, OR, to, x, y); return;
    case OLY_TILE_mul:
    case OLY_TILE_min:
    case OLY_TILE_logical_and:
    case OLY_TILE_and: on_registers(w, AND, to, x, y); return;
    case OLY_TILE_lt: on_registers(w, AND_NOT, to, x, y); return;
    case OLY_TILE_gt: on_registers(w, AND_NOT, to, y, x); return;
    case OLY_TILE_ge: on_registers(w, AND_NOT, to, x, y); break; /* not less */
    case OLY_TILE_le: on_registers(w, AND_NOT, to, y, x); break;
    default: on_registers(w, XOR, to, x, y);
    }
    if (op == OLY_TILE_ge || op == OLY_TILE_le || op == OLY_TILE_eq)
        invert(w, w->bytes, to, to);
}

static void write_not(const written *w)
{
    int x = source(w, 0);
    invert(w, w->bytes, result(w), x);
}

static void write_select(const written *w)
{
    int mask = mask_of(w, w->size), y = source(w, 2);
    x86_place x = operand(w, 1);
    blend(w, w->bytes, result(w), mask, x, y);
}

/* -- comparing ---------------------------------------------------------------------------------------------------------------- */

static void compare_floats(const written *w, int how, int to, int x, int y)
{
    emit_immediate(w->g, float_op(w, 0xc2), w->wide, w->bytes, to, x, x86_register(y), how);
}

/* x > y. Unsigned numbers compare as signed ones do if the highest bits of both are inverted; short ones: y is not the larger one. */
static void compare_whole(const written *w, int to, int x, int y)
{
    if (!is_signed(w->dtype) && w->size < 4) {
        on_registers(w, oly_x86_binary_op(OLY_TILE_max, w->dtype), to, x, y);
        on_registers(w, equal[w->size], to, to, y);
        invert(w, w->bytes, to, to);
        return;
    }
    if (!is_signed(w->dtype)) {
        int sign = common_register(w, w->size == 8 ? SIGN_64 : SIGN_32);
        int a = oly_x86_take(w->g, VECTORS), b = oly_x86_take(w->g, VECTORS);
        on_registers(w, XOR, a, x, sign);
        on_registers(w, XOR, b, y, sign);
        x = a, y = b;
    }
    on_registers(w, greater[w->size], to, x, y);
}

static void write_compare(const written *w, int op)
{
    int x = source(w, 0), y = source(w, 1), to = result(w);
    if (is_float(w->dtype))
        compare_floats(w, oly_x86_predicate(op, w->dtype), to, x, y);
    else if (op == OLY_TILE_eq || op == OLY_TILE_ne)
        on_registers(w, equal[w->size], to, x, y);
    else if (op == OLY_TILE_gt || op == OLY_TILE_le)
        compare_whole(w, to, x, y);
    else
        compare_whole(w, to, y, x);
    if (!is_float(w->dtype) && (op == OLY_TILE_ne || op == OLY_TILE_le || op == OLY_TILE_ge))
        invert(w, w->bytes, to, to);
    finish_bool(w, to);
}

/* NaN wins; of equal numbers the sign bits are joined. */
static void write_larger_float(const written *w, bool smaller)
{
    int x = source(w, 0), y = source(w, 1), to = result(w);
    int mask = oly_x86_take(w->g, VECTORS), joined = oly_x86_take(w->g, VECTORS);
    on_registers(w, float_op(w, smaller ? 0x5d : 0x5f), to, x, y);
    on_registers(w, float_op(w, smaller ? 0x56 : 0x54), joined, x, y);
    compare_floats(w, EQUAL, mask, x, y);
    blend(w, w->bytes, to, mask, x86_register(joined), to);
    compare_floats(w, UNORDERED, mask, x, x);
    blend(w, w->bytes, to, mask, x86_register(x), to);
}

static void write_larger_whole(const written *w, bool smaller)
{
    int x = source(w, 0), y = source(w, 1), mask = oly_x86_take(w->g, VECTORS);
    compare_whole(w, mask, x, y);
    blend(w, w->bytes, result(w), mask, x86_register(smaller ? y : x), smaller ? x : y);
}

static void write_sign(const written *w)
{
    int x = source(w, 0), mask = oly_x86_take(w->g, VECTORS);
    int zero = zeros(w), one = common_register(w, w->wide ? ONE_F64 : ONE_F32);
    int minus_one = common_register(w, w->wide ? MINUS_ONE_F64 : MINUS_ONE_F32), to = result(w);
    compare_floats(w, FLOAT_GREATER, mask, x, zero);
    blend(w, w->bytes, to, mask, x86_register(one), x);
    compare_floats(w, LESS, mask, x, zero);
    blend(w, w->bytes, to, mask, x86_register(minus_one), to);
}

static void write_finite(const written *w)
{
    int x = source(w, 0), magnitude = common_register(w, w->wide ? MAGNITUDE_64 : MAGNITUDE_32);
    int infinity = common_register(w, w->wide ? INFINITY_F64 : INFINITY_F32), to = result(w);
    on_registers(w, float_op(w, 0x54), to, x, magnitude);
    compare_floats(w, LESS, to, to, infinity);
    finish_bool(w, to);
}

/* -- integers of 8 bits -------------------------------------------------------------------------------------------------------- */

/* As AVX-512's (operations.c): products of words have that of the lower bytes at their lower end; with the lower byte of one factor zero,
 * and the other shifted, that of the upper bytes at their upper end. */
static void write_byte_product(const written *w, int second)
{
    int x = source(w, 0), y = source(w, second), upper = oly_x86_take(w->g, VECTORS),
        lower = oly_x86_take(w->g, VECTORS);
    int to = result(w);
    emit(w->g, EQUAL_32, 0, w->bytes, lower, lower, x86_register(lower));
    shift(w, SHIFT_WORDS, RIGHT, lower, lower, 8);
    on_registers(w, AND_NOT, to, lower, y);
    shift(w, SHIFT_WORDS, RIGHT, upper, x, 8);
    on_registers(w, PRODUCT_WORDS, upper, upper, to);
    on_registers(w, PRODUCT_WORDS, to, x, y);
    on_registers(w, AND, to, to, lower);
    on_registers(w, OR, to, to, upper);
}

/* -- integers of 64 bits ----------------------------------------------------------------------------------------------------- */

/* The lower halves' product, and the lower bits of the mixed ones above it. */
static void write_product(const written *w, int second)
{
    int x = source(w, 0), y = source(w, second), to = result(w);
    int a = oly_x86_take(w->g, VECTORS), b = oly_x86_take(w->g, VECTORS);
    shift(w, SHIFT_64, RIGHT, a, x, 32);
    on_registers(w, LOW_PRODUCT_64, a, a, y);
    shift(w, SHIFT_64, RIGHT, b, y, 32);
    on_registers(w, LOW_PRODUCT_64, b, b, x);
    on_registers(w, ADD_64, a, a, b);
    shift(w, SHIFT_64, LEFT, a, a, 32);
    on_registers(w, LOW_PRODUCT_64, to, x, y);
    on_registers(w, ADD_64, to, to, a);
}

static void write_magnitude(const written *w)
{
    int x = source(w, 0), negative = oly_x86_take(w->g, VECTORS), to = result(w);
    on_registers(w, XOR, negative, negative, negative);
    on_registers(w, GREATER_64, negative, negative, x);
    on_registers(w, XOR, to, x, negative);
    on_registers(w, SUB_64, to, to, negative);
}

/* -- conversions -------------------------------------------------------------------------------------------------------------- */

static void convert_bools(const written *w, int to)
{
    int size = oly_element_bytes[to], mask = mask_of(w, size);
    if (size < 4) { /* the magnitude of -1 */
        emit(w->g, X86_OP(1, 2, size == 2 ? 0x1d : 0x1c), 0, vector_bytes(w->g, size), result(w), 0,
             x86_register(mask));
        return;
    }
    int one = common_register(w, to == OLY_FLOAT32 ? ONE_F32 : to == OLY_FLOAT64 ? ONE_F64 : size == 8 ? ONE : ONE_I32);
    emit(w->g, AND, 0, vector_bytes(w->g, size), result(w), mask, x86_register(one));
}

static void convert_to_bools(const written *w)
{
    int x = source(w, 0), zero = oly_x86_take(w->g, VECTORS), to = result(w);
    on_registers(w, XOR, zero, zero, zero);
    if (is_float(w->dtype)) {
        compare_floats(w, NOT_EQUAL, to, x, zero);
    } else {
        on_registers(w, equal[w->size], to, x, zero);
        invert(w, w->bytes, to, to);
    }
    finish_bool(w, to);
}

/* Both halves are exact, their sum is rounded once. */
static void convert_unsigned_to_float32(const written *w)
{
    int x = source(w, 0), scale = common_register(w, TWO_TO_16_F32), low = oly_x86_take(w->g, VECTORS), to = result(w);
    shift(w, SHIFT_32, LEFT, low, x, 16);
    shift(w, SHIFT_32, RIGHT, low, low, 16);
    shift(w, SHIFT_32, RIGHT, to, x, 16);
    emit(w->g, FLOAT_OF_INT_32, 0, w->bytes, low, 0, x86_register(low));
    emit(w->g, FLOAT_OF_INT_32, 0, w->bytes, to, 0, x86_register(to));
    on_registers(w, X86_OP(0, 1, 0x59), to, to, scale);
    on_registers(w, X86_OP(0, 1, 0x58), to, to, low);
}

/* As the last bits of a number from 2^52 on, from which 2^52 is taken: exact. */
static void convert_unsigned_to_float64(const written *w)
{
    int x = source(w, 0), base = common_register(w, TWO_TO_52_F64), to = result(w), bytes = vector_bytes(w->g, 8);
    emit(w->g, WIDEN_UNSIGNED_32, 0, bytes, to, 0, x86_register(x));
    emit(w->g, OR, 0, bytes, to, to, x86_register(base));
    emit(w->g, X86_OP(1, 1, 0x5c), 0, bytes, to, to, x86_register(base));
}

/* The halves as last bits of numbers from 2^84 and from 2^52 on: taking those from the upper one is exact, so that the sum of both is
 * rounded once. A signed number has 2^63 added first. */
static void convert_long_to_float64(const written *w)
{
    bool has_sign = is_signed(w->dtype);
    int x = source(w, 0), base = common_register(w, TWO_TO_52_F64), upper_base = common_register(w, TWO_TO_84_F64);
    int bases = common_register(w, has_sign ? TWO_TO_84_63_AND_52_F64 : TWO_TO_84_AND_52_F64);
    int upper = oly_x86_take(w->g, VECTORS), to;
    if (has_sign) {
        on_registers(w, XOR, upper, x, common_register(w, SIGN_64));
        shift(w, SHIFT_64, RIGHT, upper, upper, 32);
    } else {
        shift(w, SHIFT_64, RIGHT, upper, x, 32);
    }
    to = result(w);
    on_registers(w, OR, upper, upper, upper_base);
    on_registers(w, X86_OP(1, 1, 0x5c), upper, upper, bases);
    emit_immediate(w->g, BLEND_32, 0, w->bytes, to, x, x86_register(base), 0xaa);
    on_registers(w, X86_OP(1, 1, 0x58), to, to, upper);
}

/* Compares x; the mask is one of elements of 4 bytes. */
static int compared_for_32(const written *w, int how, int x, int y)
{
    int mask = oly_x86_take(w->g, VECTORS), narrow;
    compare_floats(w, how, mask, x, y);
    if (w->size == 4)
        return mask;
    narrow = oly_x86_take(w->g, VECTORS);
    oly_avx2_resize(w->g, narrow, mask, 8, 4, true);
    return narrow;
}

/* The instruction gives the least number for what it cannot convert: too large ones become the largest, NaN 0. */
static void convert_to_int32(const written *w)
{
    int x = source(w, 0), limit = common_register(w, w->wide ? BEYOND_I32_F64 : BEYOND_I32_F32);
    int most = common_register(w, MAGNITUDE_32), out = result(w), bytes = vector_bytes(w->g, 4);
    emit(w->g, w->wide ? X86_OP(1, 1, 0xe6) : X86_OP(2, 1, 0x5b), 0, w->bytes, out, 0, x86_register(x));
    blend(w, bytes, out, compared_for_32(w, FLOAT_GREATER_EQUAL, x, limit), x86_register(most), out);
    emit(w->g, AND_NOT, 0, bytes, out, compared_for_32(w, UNORDERED, x, x), x86_register(out));
}

static bool write_convert(const written *w, int to)
{
    if (w->dtype == OLY_BOOL && to == OLY_BOOL) {
        oly_x86_copy(w, X86_OP(0, 1, 0x28), w->bytes);
    } else if (w->dtype == OLY_BOOL) {
        convert_bools(w, to);
    } else if (to == OLY_BOOL) {
        convert_to_bools(w);
    } else if (w->dtype == OLY_UINT32 && to == OLY_FLOAT32) {
        convert_unsigned_to_float32(w);
    } else if (w->dtype == OLY_UINT32 && to == OLY_FLOAT64) {
        convert_unsigned_to_float64(w);
    } else if (is_whole(w->dtype) && w->size == 8 && to == OLY_FLOAT64) {
        convert_long_to_float64(w);
    } else if (is_float(w->dtype) && to == OLY_INT32) {
        convert_to_int32(w);
    } else if (is_whole(w->dtype) && is_whole(to) && w->size > oly_element_bytes[to]) {
        int x = source(w, 0);
        oly_avx2_resize(w->g, result(w), x, w->size, oly_element_bytes[to], false);
    } else {
        return false;
    }
    return true;
}

static void write_counter(const written *w, int to)
{
    generator *g = w->g;
    int bytes = vector_bytes(g, 4), start = oly_x86_take(g, VECTORS), size;
    bool wide;
    emit(g, SPREAD_32, 0, bytes, start, 0,
         oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)g->counter[w->i]));
    if (!g->value[w->out].invariant) {
        int count = oly_x86_take(g, VECTORS);
        emit(g, FROM_GENERAL, 0, 16, count, 0, x86_register(RCX));
        emit(g, SPREAD_32, 0, bytes, count, 0, x86_register(count));
        emit(g, X86_OP(1, 1, 0xfe), 0, bytes, start, start, x86_register(count));
        x86_load(&g->code, RAX, oly_x86_call_field(offsetof(oly_code_call, common)));
        emit(g, X86_OP(1, 1, 0xfe), 0, bytes, start, start, x86_memory(RAX, 0));
    }
    uint32_t op = oly_x86_conversion(OLY_INT32, to == OLY_INT32 ? OLY_UINT32 : to, &size, &wide);
    emit(g, op, wide, vector_bytes(g, size), result(w), 0, x86_register(start));
}

/* -- which ---------------------------------------------------------------------------------------------------------------------- */

static bool has_fraction(int dtype)
{
    return is_float(dtype) || dtype == OLY_BFLOAT16;
}

bool oly_avx2_knows(const oly_tile_instruction *c)
{
    if (c->op == OLY_TILE_shift_right_arithmetic)
        return oly_element_bytes[c->dtype] < 8;
    if (c->op != OLY_TILE_convert)
        return true;
    if (has_fraction(c->dtype) && is_whole(c->to))
        return c->to == OLY_INT32;
    return !(is_whole(c->dtype) && oly_element_bytes[c->dtype] == 8 && has_fraction(c->to)) || c->to == OLY_FLOAT64;
}

bool oly_avx2_write(const written *w, const oly_tile_instruction *c)
{
    bool long_whole = is_whole(w->dtype) && w->size == 8;
    switch (c->op) {
    case OLY_TILE_iota: write_counter(w, c->to); return true;
    case OLY_TILE_select: write_select(w); return true;
    case OLY_TILE_convert: return write_convert(w, is_widened(c->to) ? OLY_FLOAT32 : c->to);
    case OLY_TILE_sign: write_sign(w); return true;
    case OLY_TILE_is_finite: write_finite(w); return true;
    case OLY_TILE_not:
    case OLY_TILE_logical_not: write_not(w); return true;
    default: break;
    }
    if (c->dtype == OLY_BOOL) {
        write_bools(w, c->op);
    } else if (oly_x86_predicate(c->op, w->dtype) >= 0) {
        write_compare(w, c->op);
    } else if (c->op == OLY_TILE_max || c->op == OLY_TILE_min) {
        bool smaller = c->op == OLY_TILE_min;
        if (!long_whole && !is_float(w->dtype))
            return false;
        (long_whole ? write_larger_whole : write_larger_float)(w, smaller);
    } else if (w->size == 1 && (c->op == OLY_TILE_mul || c->op == OLY_TILE_square)) {
        write_byte_product(w, c->op == OLY_TILE_mul);
    } else if (c->op == OLY_TILE_abs && c->dtype == OLY_INT64) {
        write_magnitude(w);
    } else if (long_whole && (c->op == OLY_TILE_mul || c->op == OLY_TILE_square)) {
        write_product(w, c->op == OLY_TILE_mul);
    } else {
        return false;
    }
    return true;
}
#endif
