/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions that compute each tile operation, as the formulas of kernels/cpu/elementwise*.c and convert.c do: those that
 * AVX-512 and AVX2 share, and AVX-512's own (AVX2's: avx2.c). See generator.h. */
#include "x86/operation.h"
#if defined(__x86_64__)

enum {
    K_AND = X86_OP(0, 1, 0x41),
    K_AND_NOT = X86_OP(0, 1, 0x42),
    K_NOT = X86_OP(0, 1, 0x44),
    K_OR = X86_OP(0, 1, 0x45),
    K_EQUAL = X86_OP(0, 1, 0x46),
    K_DIFFERENT = X86_OP(0, 1, 0x47)
};

static bool is_short(int dtype) /* an integer of 8 or 16 bits */
{
    return is_whole(dtype) && oly_element_bytes[dtype] < 4;
}

/* A constant by the size of the elements. */
static common_constant of_size(const written *w, common_constant of_2, common_constant of_4, common_constant of_8)
{
    return w->size == 8 ? of_8 : w->size == 4 ? of_4 : of_2;
}
static x86_place common(const written *w, common_constant of_2, common_constant of_4, common_constant of_8)
{
    return oly_x86_operand(w->g, oly_x86_common(w->g, of_size(w, of_2, of_4, of_8)), true);
}
/* Of all bits, for which float16 has no instructions of its own. */
static uint32_t bits_op(const written *w, int opcode, int opcode_of_integers)
{
    return w->size == 2 ? X86_OP(1, 1, opcode_of_integers) : float_op(w, opcode);
}
/* to = from where the mask is set; zeroing: else 0. */
static void move_where(const written *w, int k, bool zeroing, int to, int from)
{
    uint32_t op = w->size == 2 ? X86_OP(3, 1, 0x6f) : float_op(w, 0x28);
    emit_masked(w->g, op, w->wide || w->size == 2, w->bytes, k, zeroing, to, 0, x86_register(from));
}

/* -- operations of one instruction ------------------------------------------------------------------------------------- */

uint32_t oly_x86_binary_op(int op, int dtype)
{
    int wide = dtype == OLY_FLOAT64, map = dtype == OLY_FLOAT16 ? 5 : 1;
    if (is_float(dtype))
        switch (op) {
        case OLY_TILE_add: return X86_OP(wide, map, 0x58);
        case OLY_TILE_sub: return X86_OP(wide, map, 0x5c);
        case OLY_TILE_mul: return X86_OP(wide, map, 0x59);
        case OLY_TILE_div: return X86_OP(wide, map, 0x5e);
        default: return 0;
        }
    if (!is_whole(dtype))
        return 0;
    /* by the logarithm of the size; map 1: 0F, 2: 0F38 */
    static const uint32_t add[] = {X86_OP(1, 1, 0xfc), X86_OP(1, 1, 0xfd), X86_OP(1, 1, 0xfe), X86_OP(1, 1, 0xd4)};
    static const uint32_t sub[] = {X86_OP(1, 1, 0xf8), X86_OP(1, 1, 0xf9), X86_OP(1, 1, 0xfa), X86_OP(1, 1, 0xfb)};
    static const uint32_t most[2][4] = {
        {X86_OP(1, 1, 0xde), X86_OP(1, 2, 0x3e), X86_OP(1, 2, 0x3f), X86_OP(1, 2, 0x3f)},
        {X86_OP(1, 2, 0x3c), X86_OP(1, 1, 0xee), X86_OP(1, 2, 0x3d), X86_OP(1, 2, 0x3d)},
    };
    static const uint32_t least[2][4] = {
        {X86_OP(1, 1, 0xda), X86_OP(1, 2, 0x3a), X86_OP(1, 2, 0x3b), X86_OP(1, 2, 0x3b)},
        {X86_OP(1, 2, 0x38), X86_OP(1, 1, 0xea), X86_OP(1, 2, 0x39), X86_OP(1, 2, 0x39)},
    };
    int size = oly_element_bytes[dtype], log = size == 8 ? 3 : size / 2;
    switch (op) {
    case OLY_TILE_add: return add[log];
    case OLY_TILE_sub: return sub[log];
    case OLY_TILE_mul: return size == 2 ? X86_OP(1, 1, 0xd5) : X86_OP(1, 2, 0x40); /* bytes: write_byte_product */
    case OLY_TILE_max: return most[is_signed(dtype)][log];
    case OLY_TILE_min: return least[is_signed(dtype)][log];
    case OLY_TILE_and: return X86_OP(1, 1, 0xdb);
    case OLY_TILE_or: return X86_OP(1, 1, 0xeb);
    case OLY_TILE_xor: return X86_OP(1, 1, 0xef);
    /* by numbers of their own, and by the width or more as the formulas do; there are none of shorter elements */
    case OLY_TILE_shift_left: return size >= 4 ? X86_OP(1, 2, 0x47) : 0;
    case OLY_TILE_shift_right_logical: return size >= 4 ? X86_OP(1, 2, 0x45) : 0;
    case OLY_TILE_shift_right_arithmetic: return size >= 4 ? X86_OP(1, 2, 0x46) : 0;
    default: return 0;
    }
}

/* There is no product of bytes: those of words have that of the lower bytes at their lower end; with the lower byte of one factor
 * zero, and the other shifted, that of the upper bytes at their upper end. */
static void write_byte_product(const written *w, int a, int b)
{
    int x = source(w, a), y = source(w, b), upper = oly_x86_take(w->g, VECTORS), mask = oly_x86_take(w->g, VECTORS);
    int to = result(w);
    emit_immediate(w->g, X86_OP(1, 3, 0x25), 0, w->bytes, mask, mask, x86_register(mask), 0xff); /* all bits */
    emit_immediate(w->g, X86_OP(1, 1, 0x71), 0, w->bytes, 2, mask, x86_register(mask), 8);       /* lower bytes */
    emit(w->g, X86_OP(1, 1, 0xdf), 0, w->bytes, to, mask, x86_register(y));
    emit_immediate(w->g, X86_OP(1, 1, 0x71), 0, w->bytes, 2, upper, x86_register(x), 8);
    emit(w->g, X86_OP(1, 1, 0xd5), 0, w->bytes, upper, upper, x86_register(to));
    emit(w->g, X86_OP(1, 1, 0xd5), 0, w->bytes, to, x, x86_register(y));
    emit_immediate(w->g, X86_OP(1, 3, 0x25), 0, w->bytes, to, mask, x86_register(upper), 0xea); /* to & mask | upper */
}

static void write_binary(const written *w, uint32_t op)
{
    int x = source(w, 0);
    x86_place y = operand(w, 1);
    emit(w->g, op, w->wide, w->bytes, result(w), x, y);
}

static void write_square(const written *w, uint32_t op)
{
    int x = source(w, 0);
    emit(w->g, op, w->wide, w->bytes, result(w), x, x86_register(x));
}

/* -- bools -------------------------------------------------------------------------------------------------------------------- */

/* swapped: of the second operand and the first. negated: the result. */
static uint32_t mask_op(int op, bool *swapped, bool *negated)
{
    *swapped = op == OLY_TILE_gt || op == OLY_TILE_le;
    *negated = op == OLY_TILE_le || op == OLY_TILE_ge;
    switch (op) {
    case OLY_TILE_add:
    case OLY_TILE_max:
    case OLY_TILE_logical_or:
    case OLY_TILE_or: return K_OR;
    case OLY_TILE_mul:
    case OLY_TILE_min:
    case OLY_TILE_logical_and:
    case OLY_TILE_and: return K_AND;
    case OLY_TILE_xor:
    case OLY_TILE_ne: return K_DIFFERENT;
    case OLY_TILE_eq: return K_EQUAL;
    case OLY_TILE_lt: /* not x and y */
    case OLY_TILE_ge:
    case OLY_TILE_gt:
    case OLY_TILE_le: return K_AND_NOT;
    default: return 0;
    }
}

static void write_mask(const written *w, int op)
{
    bool swapped, negated;
    uint32_t code = mask_op(op, &swapped, &negated);
    int x = source(w, swapped), y = source(w, !swapped), to = result(w);
    emit_mask(w->g, code, 32, to, x, x86_register(y));
    if (negated)
        emit_mask(w->g, K_NOT, 16, to, 0, x86_register(to));
}

static void write_not(const written *w)
{
    int x = source(w, 0);
    emit_mask(w->g, K_NOT, 16, result(w), 0, x86_register(x));
}

/* -- comparing and choosing ------------------------------------------------------------------------------------------------- */

int oly_x86_predicate(int op, int dtype)
{
    switch (op) {
    case OLY_TILE_eq: return EQUAL;
    case OLY_TILE_ne: return NOT_EQUAL;
    case OLY_TILE_lt: return LESS;
    case OLY_TILE_le: return LESS_EQUAL;
    case OLY_TILE_gt: return is_float(dtype) ? FLOAT_GREATER : ABOVE;
    case OLY_TILE_ge: return is_float(dtype) ? FLOAT_GREATER_EQUAL : NOT_LESS;
    default: return -1;
    }
}

static void compare(const written *w, int how, int k, int x, x86_place y)
{
    int opcode = (is_signed(w->dtype) ? 0x1f : 0x1e) + (w->size < 4 ? 0x20 : 0);
    uint32_t op = !is_float(w->dtype) ? X86_OP(1, 3, opcode) : w->size == 2 ? X86_OP(0, 3, 0xc2) : float_op(w, 0xc2);
    bool wide = w->size == 8 || (w->size == 2 && !is_float(w->dtype));
    emit_immediate(w->g, op, wide, w->bytes, k, x, y, how);
}

static void write_compare(const written *w, int how)
{
    int x = source(w, 0);
    x86_place y = operand(w, 1);
    compare(w, how, result(w), x, y);
}

static void write_select(const written *w)
{
    int k = source(w, 0);
    if (w->dtype == OLY_BOOL) {
        int x = source(w, 1), y = source(w, 2), rest = oly_x86_take(w->g, MASKS), to = result(w);
        emit_mask(w->g, K_AND_NOT, 32, rest, k, x86_register(y));
        emit_mask(w->g, K_AND, 32, to, k, x86_register(x));
        emit_mask(w->g, K_OR, 32, to, to, x86_register(rest));
        return;
    }
    int y = source(w, 2);
    x86_place x = operand(w, 1);
    emit_masked(w->g, X86_OP(1, 2, w->size < 4 ? 0x66 : 0x65), w->size == 8 || w->size == 2, w->bytes, k, false,
                result(w), y, x);
}

/* NaN wins; of equal numbers the sign bits are joined. */
static void write_larger(const written *w, bool smaller)
{
    int x = source(w, 0), y = source(w, 1), to = result(w), k = oly_x86_take(w->g, MASKS);
    int joined = oly_x86_take(w->g, VECTORS);
    emit(w->g, float_op(w, smaller ? 0x5d : 0x5f), w->wide, w->bytes, to, x, x86_register(y));
    emit(w->g, smaller ? bits_op(w, 0x56, 0xeb) : bits_op(w, 0x54, 0xdb), w->wide, w->bytes, joined, x,
         x86_register(y));
    compare(w, EQUAL, k, x, x86_register(y));
    move_where(w, k, false, to, joined);
    compare(w, UNORDERED, k, x, x86_register(x));
    move_where(w, k, false, to, x);
}

/* -- operations of one operand ---------------------------------------------------------------------------------------------- */

static void write_negative(const written *w)
{
    if (is_float(w->dtype)) {
        int x = source(w, 0);
        x86_place sign = common(w, SIGN_16, SIGN_32, SIGN_64);
        emit(w->g, bits_op(w, 0x57, 0xef), w->wide, w->bytes, result(w), x, sign);
        return;
    }
    int zero = zeros(w);
    x86_place x = operand(w, 0);
    emit(w->g, oly_x86_binary_op(OLY_TILE_sub, w->dtype), w->size == 8, w->bytes, result(w), zero, x);
}

void oly_x86_copy(const written *w, uint32_t op, int bytes)
{
    int x = source(w, 0);
    emit(w->g, op, 0, bytes, result(w), 0, x86_register(x));
}

static void write_magnitude(const written *w)
{
    if (is_float(w->dtype)) {
        int x = source(w, 0);
        x86_place magnitude = common(w, MAGNITUDE_16, MAGNITUDE_32, MAGNITUDE_64);
        emit(w->g, bits_op(w, 0x54, 0xdb), w->wide, w->bytes, result(w), x, magnitude);
    } else if (is_signed(w->dtype)) {
        x86_place x = operand(w, 0);
        emit(w->g, X86_OP(1, 2, 0x1c + (w->size == 8 ? 3 : w->size / 2)), w->size == 8, w->bytes, result(w), 0, x);
    } else {
        oly_x86_copy(w, X86_OP(0, 1, 0x28), w->bytes);
    }
}

static void write_sign(const written *w)
{
    int x = source(w, 0), k = oly_x86_take(w->g, MASKS), zero = zeros(w);
    int one = oly_x86_source(w->g, oly_x86_common(w->g, of_size(w, ONE_F16, ONE_F32, ONE_F64)));
    int minus_one = oly_x86_source(w->g, oly_x86_common(w->g, of_size(w, MINUS_ONE_F16, MINUS_ONE_F32, MINUS_ONE_F64)));
    int to = result(w);
    emit(w->g, X86_OP(0, 1, 0x28), 0, w->bytes, to, 0, x86_register(x));
    compare(w, FLOAT_GREATER, k, x, x86_register(zero));
    move_where(w, k, false, to, one);
    compare(w, LESS, k, x, x86_register(zero));
    move_where(w, k, false, to, minus_one);
}

static void write_rounded(const written *w, int how)
{
    int x = source(w, 0);
    uint32_t op = w->size == 2 ? X86_OP(0, 3, 0x08) : X86_OP(1, 3, w->wide ? 0x09 : 0x08);
    emit_immediate(w->g, op, w->wide, w->bytes, result(w), 0, x86_register(x), how);
}

static void write_finite(const written *w)
{
    int x = source(w, 0), size = oly_x86_take(w->g, VECTORS);
    x86_place magnitude = common(w, MAGNITUDE_16, MAGNITUDE_32, MAGNITUDE_64);
    emit(w->g, bits_op(w, 0x54, 0xdb), w->wide, w->bytes, size, x, magnitude);
    x86_place infinity = common(w, INFINITY_F16, INFINITY_F32, INFINITY_F64);
    compare(w, LESS, result(w), size, infinity);
}

static void write_fused(const written *w)
{
    if (w->in[2] != w->in[0] && w->in[2] != w->in[1]) {
        int x = source(w, 0);
        x86_place y = operand(w, 1);
        bool pointer = y.memory; /* a sum in memory might need the same general register */
        if (!pointer)
            source(w, 2);
        if (oly_x86_replace(w->g, w->out, w->in[2], again(w, 2))) {
            emit(w->g, X86_OP(1, 2, 0xb8), w->wide, w->bytes, w->g->value[w->out].reg, x, y);
            return;
        }
    }
    int x = source(w, 0), y = source(w, 1), z = source(w, 2), to = result(w);
    emit(w->g, float_op(w, 0x28), w->wide, w->bytes, to, 0, x86_register(z));
    emit(w->g, X86_OP(1, 2, 0xb8), w->wide, w->bytes, to, x, x86_register(y));
}

/* -- conversions -------------------------------------------------------------------------------------------------------------- */

static void convert_bools(const written *w, int to)
{
    int k = source(w, 0), size = oly_element_bytes[to];
    if (is_short(to)) { /* -1 where true, and its magnitude */
        int out = result(w), bytes = vector_bytes(w->g, size);
        emit(w->g, X86_OP(2, 2, 0x28), size == 2, bytes, out, 0, x86_register(k));
        emit(w->g, X86_OP(1, 2, size == 2 ? 0x1d : 0x1c), 0, bytes, out, 0, x86_register(out));
        return;
    }
    if (to == OLY_FLOAT16) {
        int one = oly_x86_source(w->g, oly_x86_common(w->g, ONE_F16));
        emit_masked(w->g, X86_OP(3, 1, 0x6f), 1, vector_bytes(w->g, 2), k, true, result(w), 0, x86_register(one));
        return;
    }
    common_constant one = to == OLY_FLOAT32 ? ONE_F32 : to == OLY_FLOAT64 ? ONE_F64 : ONE;
    int constant = one == ONE && size == 4 ? oly_x86_source(w->g, oly_x86_common(w->g, ONE_I32))
                                           : oly_x86_source(w->g, oly_x86_common(w->g, one));
    emit_masked(w->g, X86_OP(size == 8, 1, 0x28), size == 8, vector_bytes(w->g, size), k, true, result(w), 0,
                x86_register(constant));
}

static void convert_to_bools(const written *w)
{
    int x = source(w, 0);
    if (!is_float(w->dtype)) {
        emit(w->g, X86_OP(1, 2, w->size < 4 ? 0x26 : 0x27), w->size == 8 || w->size == 2, w->bytes, result(w), x,
             x86_register(x));
        return;
    }
    compare(w, NOT_EQUAL, result(w), x, x86_register(zeros(w)));
}

uint32_t oly_x86_conversion(int from, int to, int *size, bool *wide)
{
    int a = oly_element_bytes[from], b = oly_element_bytes[to];
    *size = a > b ? a : b;
    *wide = a == 8;
    if (from == OLY_FLOAT32 && to == OLY_FLOAT64)
        return X86_OP(0, 1, 0x5a);
    if (from == OLY_FLOAT64 && to == OLY_FLOAT32)
        return X86_OP(1, 1, 0x5a);
    if (is_float(to) && from == OLY_INT32)
        return b == 8 ? X86_OP(2, 1, 0xe6) : X86_OP(0, 1, 0x5b);
    if (is_float(to) && from == OLY_UINT32)
        return b == 8 ? X86_OP(2, 1, 0x7a) : X86_OP(3, 1, 0x7a);
    if (is_float(to) && from == OLY_INT64)
        return b == 8 ? X86_OP(2, 1, 0xe6) : X86_OP(0, 1, 0x5b);
    if (is_float(to) && from == OLY_UINT64)
        return b == 8 ? X86_OP(2, 1, 0x7a) : X86_OP(3, 1, 0x7a);
    *wide = false;
    if (is_whole(from) && is_whole(to) && a < b)
        return X86_OP(1, 2, (is_signed(from) ? 0x20 : 0x30) + opcode_between(a, b));
    if (is_whole(from) && is_whole(to) && a == b)
        return X86_OP(0, 1, 0x28);
    if (from == OLY_FLOAT32 && to == OLY_INT32)
        return X86_OP(2, 1, 0x5b);
    *wide = true;
    if (from == OLY_FLOAT64 && to == OLY_INT32)
        return X86_OP(1, 1, 0xe6);
    if (from == OLY_FLOAT64 && to == OLY_INT64)
        return X86_OP(1, 1, 0x7a);
    *wide = false;
    if (from == OLY_FLOAT32 && to == OLY_INT64)
        return X86_OP(1, 1, 0x7a);
    return 0;
}

/* The instruction gives the least number for what it cannot convert: too large ones become the largest, NaN 0. */
static void saturate(const written *w, int x, int out, int to)
{
    generator *g = w->g;
    bool long_result = to == OLY_INT64;
    int size = long_result ? 8 : 4, bytes = vector_bytes(g, size), k = oly_x86_take(g, MASKS);
    common_constant beyond =
        long_result ? (w->wide ? BEYOND_I64_F64 : BEYOND_I64_F32) : (w->wide ? BEYOND_I32_F64 : BEYOND_I32_F32);
    x86_place limit = oly_x86_operand(g, oly_x86_common(g, beyond), true);
    compare(w, FLOAT_GREATER_EQUAL, k, x, limit);
    int most = oly_x86_source(g, oly_x86_common(g, long_result ? MAGNITUDE_64 : MAGNITUDE_32));
    emit_masked(g, X86_OP(long_result, 1, 0x28), long_result, bytes, k, false, out, 0, x86_register(most));
    compare(w, UNORDERED, k, x, x86_register(x));
    emit_masked(g, X86_OP(1, 1, 0xef), long_result, bytes, k, false, out, out, x86_register(out));
}

static void write_convert(const written *w, int to)
{
    int size;
    bool wide;
    if (w->dtype == OLY_BOOL && to == OLY_BOOL) {
        int x = source(w, 0);
        emit_mask(w->g, X86_OP(0, 1, 0x90), 16, result(w), 0, x86_register(x));
        return;
    }
    if (w->dtype == OLY_BOOL) {
        convert_bools(w, to);
        return;
    }
    if (to == OLY_BOOL) {
        convert_to_bools(w);
        return;
    }
    if (w->dtype == to) {
        oly_x86_copy(w, X86_OP(0, 1, 0x28), w->bytes);
        return;
    }
    int x = source(w, 0), out = result(w);
    if (is_whole(w->dtype) && is_whole(to) &&
        w->size > oly_element_bytes[to]) { /* the destination is the last operand */
        emit(w->g, X86_OP(2, 2, 0x30 + opcode_between(oly_element_bytes[to], w->size)), 0, w->bytes, x, 0,
             x86_register(out));
        return;
    }
    written f = *w;
    if (w->dtype == OLY_FLOAT16) { /* by way of float32 */
        f.dtype = OLY_FLOAT32;
        f.size = 4;
        f.bytes = vector_bytes(w->g, 4);
        int wider = to == OLY_FLOAT32 ? out : oly_x86_take(w->g, VECTORS);
        oly_x86_widen_half(w->g, wider, x);
        x = wider;
    } else if (is_short(w->dtype) && is_float(to)) { /* by way of int32 */
        emit(w->g, oly_x86_conversion(w->dtype, OLY_INT32, &size, &wide), 0, vector_bytes(w->g, 4), out, 0,
             x86_register(x));
        f.dtype = OLY_INT32;
        x = out;
    }
    int by = to == OLY_FLOAT16 ? OLY_FLOAT32 : to;
    if (f.dtype != by) {
        uint32_t op = oly_x86_conversion(f.dtype, by, &size, &wide);
        emit(w->g, op, wide, vector_bytes(w->g, size), out, 0, x86_register(x));
        if (is_float(f.dtype) && is_whole(by))
            saturate(&f, x, out, by);
        x = out;
    }
    if (to == OLY_FLOAT16)
        oly_x86_narrow_half(w->g, out, x);
}

static void write_counter(const written *w, int to)
{
    generator *g = w->g;
    int operand_number = g->counter[w->i], bytes = vector_bytes(g, 4);
    bool scalar = g->value[w->out].invariant;
    x86_place start = oly_x86_call_field(offsetof(oly_code_call, at) + 8 * (size_t)operand_number);
    int count = oly_x86_take(g, VECTORS);
    if (scalar) {
        emit(g, X86_OP(1, 2, 0x18), 0, bytes, count, 0, start);
    } else {
        emit(g, X86_OP(1, 2, 0x7c), 0, bytes, count, 0, x86_register(RCX));
        x86_load(&g->code, RAX, oly_x86_call_field(offsetof(oly_code_call, common)));
        emit(g, X86_OP(1, 1, 0xfe), 0, bytes, count, count, x86_memory(RAX, 0));
        start.broadcast = true;
        emit(g, X86_OP(1, 1, 0xfe), 0, bytes, count, count, start);
    }
    int out = result(w), size;
    bool wide;
    uint32_t op = oly_x86_conversion(OLY_INT32, to == OLY_INT32 || to == OLY_UINT32 ? OLY_UINT32 : to, &size, &wide);
    emit(g, op, wide, vector_bytes(g, size), out, 0, x86_register(count));
}

/* -- which ---------------------------------------------------------------------------------------------------------------------- */

static bool takes(int dtype)
{
    return dtype == OLY_BOOL || is_float(dtype) || is_whole(dtype) || dtype == OLY_BFLOAT16;
}

/* The type in which it is held. */
static int held(int dtype)
{
    return is_widened(dtype) ? OLY_FLOAT32 : dtype;
}

static bool knows_conversion(int from, int to)
{
    int size;
    bool wide;
    bool half = to == OLY_FLOAT16 || to == OLY_BFLOAT16;
    if (half && from == OLY_FLOAT64) /* which rounds once */
        return false;
    from = from == OLY_FLOAT16 ? OLY_FLOAT32 : held(from);
    to = half ? OLY_FLOAT32 : to;
    return from == OLY_BOOL || to == OLY_BOOL || from == to || (is_whole(from) && is_whole(to)) ||
           (is_short(from) && is_float(to)) || oly_x86_conversion(from, to, &size, &wide) != 0;
}

static bool knows(const oly_tile_instruction *c)
{
    int dtype = held(c->dtype);
    bool number = is_float(dtype) || is_whole(dtype), swapped, negated;
    if (!takes(c->to) || !takes(c->dtype))
        return false;
    switch (c->op) {
    case OLY_TILE_splat: return true;
    case OLY_TILE_iota: return c->to != OLY_BOOL && oly_element_bytes[c->to] >= 4;
    case OLY_TILE_select: return true;
    case OLY_TILE_copy: return oly_element_bytes[c->dtype] >= 4 && oly_element_bytes[c->to] >= 4;
    case OLY_TILE_convert: return knows_conversion(c->dtype, c->to);
    case OLY_TILE_neg:
    case OLY_TILE_abs:
    case OLY_TILE_square: return number;
    case OLY_TILE_sign:
    case OLY_TILE_sqrt:
    case OLY_TILE_floor:
    case OLY_TILE_ceil:
    case OLY_TILE_round:
    case OLY_TILE_is_finite: return is_float(dtype);
    case OLY_TILE_fma: return c->dtype == OLY_FLOAT32 || c->dtype == OLY_FLOAT64;
    case OLY_TILE_not:
    case OLY_TILE_logical_not: return c->dtype == OLY_BOOL;
    case OLY_TILE_max:
    case OLY_TILE_min: return true;
    default: break;
    }
    if (c->dtype == OLY_BOOL)
        return mask_op(c->op, &swapped, &negated) != 0;
    return oly_x86_predicate(c->op, dtype) >= 0 || oly_x86_binary_op(c->op, dtype) != 0;
}

bool oly_x86_knows(const generator *g, const oly_tile_instruction *c)
{
    if (is_complex(c))
        return oly_x86_knows_complex(g, c);
    return knows(c) && (!is_avx2(g) || oly_avx2_knows(c));
}

/* May the result have more digits than the operands? */
static bool rounds(const oly_tile_instruction *c)
{
    switch (c->op) {
    case OLY_TILE_convert: return c->dtype != c->to && c->dtype != OLY_BOOL;
    case OLY_TILE_add:
    case OLY_TILE_sub:
    case OLY_TILE_mul:
    case OLY_TILE_div:
    case OLY_TILE_sqrt:
    case OLY_TILE_square: return true;
    default: return false;
    }
}

static void write(const written *w, const oly_tile_instruction *c)
{
    bool larger = c->op == OLY_TILE_max || c->op == OLY_TILE_min;
    switch (c->op) {
    case OLY_TILE_iota: write_counter(w, c->to); return;
    case OLY_TILE_select: write_select(w); return;
    case OLY_TILE_copy: oly_x86_copy(w, X86_OP(0, 1, 0x28), w->bytes); return;
    case OLY_TILE_convert: write_convert(w, held(c->to)); return;
    case OLY_TILE_neg: write_negative(w); return;
    case OLY_TILE_abs: write_magnitude(w); return;
    case OLY_TILE_square:
        if (w->size == 1)
            write_byte_product(w, 0, 0);
        else
            write_square(w, oly_x86_binary_op(OLY_TILE_mul, w->dtype));
        return;
    case OLY_TILE_sign: write_sign(w); return;
    case OLY_TILE_sqrt: {
        int x = source(w, 0);
        emit(w->g, float_op(w, 0x51), w->wide, w->bytes, result(w), 0, x86_register(x));
        return;
    }
    case OLY_TILE_floor: write_rounded(w, 9); return;
    case OLY_TILE_ceil: write_rounded(w, 10); return;
    case OLY_TILE_round: write_rounded(w, 8); return;
    case OLY_TILE_is_finite: write_finite(w); return;
    case OLY_TILE_fma: write_fused(w); return;
    case OLY_TILE_not:
    case OLY_TILE_logical_not: write_not(w); return;
    default: break;
    }
    if (c->dtype == OLY_BOOL)
        write_mask(w, c->op);
    else if (larger && is_float(w->dtype))
        write_larger(w, c->op == OLY_TILE_min);
    else if (oly_x86_predicate(c->op, w->dtype) >= 0)
        write_compare(w, oly_x86_predicate(c->op, w->dtype));
    else if (c->op == OLY_TILE_mul && w->size == 1)
        write_byte_product(w, 0, 1);
    else
        write_binary(w, oly_x86_binary_op(c->op, w->dtype));
}

void oly_x86_operate(generator *g, int i)
{
    const oly_tile_instruction *c = &g->program->instructions[i];
    int size = held_bytes(g, c->dtype), out = g->program->n_loads + i;
    written w = {.g = g,
                 .i = i,
                 .dtype = held(c->dtype),
                 .size = size,
                 .bytes = vector_bytes(g, size),
                 .out = out,
                 .in = g->in[i],
                 .wide = size == 8};
    if ((!is_complex(c) || !oly_x86_write_complex(&w, c)) && (!is_avx2(g) || !oly_avx2_write(&w, c)))
        write(&w, c);
    if (is_widened(c->to) && rounds(c))
        oly_x86_round_half(g, c->to, g->value[out].reg);
}
#endif
