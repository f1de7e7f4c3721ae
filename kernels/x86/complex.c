/* SPDX-License-Identifier: BSD-3-Clause */
/* The instructions that compute operations of complex64 numbers, as the formulas of kernels/cpu/elementwise_complex.c do. A number is an
 * element of 8 bytes, its real part in the lower half, so that it moves as a float64 does. Quotients are left to the interpreter, which
 * looks at those without a number again; so are functions and order. complex128 has no code. See generator.h. */
#include "x86/operation.h"
#if defined(__x86_64__)

enum {
    ADD = X86_OP(0, 1, 0x58),
    SUBTRACT = X86_OP(0, 1, 0x5c),
    MULTIPLY = X86_OP(0, 1, 0x59),
    REAL_PARTS = X86_OP(2, 1, 0x12), /* of each number twice */
    IMAGINARY_PARTS = X86_OP(2, 1, 0x16),
    PERMUTE = X86_OP(1, 3, 0x04), /* within 16 bytes, by a number */
    FUSED = X86_OP(1, 2, 0xb6),   /* product minus (real parts) or plus (imaginary parts) the destination */
    AND_FLOATS = X86_OP(0, 1, 0x54),
    OR_FLOATS = X86_OP(0, 1, 0x56),
    XOR_DOUBLES = X86_OP(1, 1, 0x57),
    OR_DOUBLES = X86_OP(1, 1, 0x56),
    TRUNCATE = X86_OP(2, 2, 0x35), /* AVX-512: the lower 4 bytes of 8; the destination is the last operand */
    COMPARE_FLOATS = X86_OP(0, 1, 0xc2),
    MOVE_FLOATS = X86_OP(0, 1, 0x28),
    TO_DOUBLE = X86_OP(0, 1, 0x5a),
    TO_SINGLE = X86_OP(1, 1, 0x5a),
    MULTIPLY_DOUBLE = X86_OP(1, 1, 0x59),
    FUSED_DOUBLE = X86_OP(1, 2, 0xb8),
    ROOT_DOUBLE = X86_OP(1, 1, 0x51),
    EXCHANGED = 0xb1,    /* for PERMUTE: the parts of each number */
    FIRST_OF_TWO = 0x88, /* for SHUFFLE */
    ALTERNATELY = 0xd8   /* for PERMUTE: 0, 2, 1, 3 */
};

static void on_parts(const written *w, uint32_t op, int to, int x, int y)
{
    emit(w->g, op, 0, w->bytes, to, x, x86_register(y));
}

static void permute(const written *w, int to, int from, int how)
{
    emit_immediate(w->g, PERMUTE, 0, w->bytes, to, 0, x86_register(from), how);
}

static void write_sum(const written *w, uint32_t op)
{
    int x = source(w, 0), y = source(w, 1);
    on_parts(w, op, result(w), x, y);
}

/* The parts (ac - bd, ad + bc), each with its first product fused. */
static void write_product(const written *w)
{
    int x = source(w, 0), y = source(w, 1), first = oly_x86_take(w->g, VECTORS), turned = oly_x86_take(w->g, VECTORS);
    int to = result(w);
    on_parts(w, IMAGINARY_PARTS, to, 0, x);
    permute(w, turned, y, EXCHANGED);
    on_parts(w, MULTIPLY, to, to, turned);
    on_parts(w, REAL_PARTS, first, 0, x);
    on_parts(w, FUSED, to, first, y);
}

/* The parts ((a - b) (a + b), 2a b). */
static void write_square(const written *w)
{
    int x = source(w, 0), a = oly_x86_take(w->g, VECTORS), b = oly_x86_take(w->g, VECTORS);
    int sum = oly_x86_take(w->g, VECTORS), to = result(w);
    on_parts(w, REAL_PARTS, a, 0, x);
    on_parts(w, IMAGINARY_PARTS, b, 0, x);
    on_parts(w, ADD, sum, a, b);
    on_parts(w, SUBTRACT, to, a, b);
    on_parts(w, MULTIPLY, to, to, sum);
    on_parts(w, ADD, a, a, a);
    on_parts(w, MULTIPLY, a, a, b);
    emit_immediate(w->g, SHUFFLE, 0, w->bytes, to, to, x86_register(a), FIRST_OF_TWO);
    permute(w, to, to, ALTERNATELY);
}

/* Inverts the signs that the constant has. */
static void write_signs(const written *w, common_constant signs)
{
    int x = source(w, 0), y = common_register(w, signs);
    emit(w->g, XOR_DOUBLES, 1, w->bytes, result(w), x, x86_register(y));
}

/* -- parts ------------------------------------------------------------------------------------------------------------------ */

/* to: floats, as many as there are numbers. */
static void take_part(const written *w, int to, int x, bool imaginary)
{
    if (imaginary) {
        int upper = oly_x86_take(w->g, VECTORS);
        emit_immediate(w->g, SHIFT_64, !is_avx2(w->g), w->bytes, RIGHT, upper, x86_register(x), 32);
        x = upper;
    }
    if (is_avx2(w->g))
        oly_avx2_resize(w->g, to, x, 8, 4, false);
    else
        emit(w->g, TRUNCATE, 0, w->bytes, x, 0, x86_register(to));
}

static void write_part(const written *w, bool imaginary)
{
    int x = source(w, 0);
    take_part(w, result(w), x, imaginary);
}

/* Of two floats, or of one and 0. */
static void write_number(const written *w, bool has_imaginary)
{
    int x = source(w, 0), bytes = vector_bytes(w->g, 8);
    if (!has_imaginary) {
        emit(w->g, WIDEN_UNSIGNED_32, 0, bytes, result(w), 0, x86_register(x));
        return;
    }
    int y = source(w, 1), real = oly_x86_take(w->g, VECTORS), to = result(w);
    emit(w->g, WIDEN_UNSIGNED_32, 0, bytes, real, 0, x86_register(x));
    emit(w->g, WIDEN_UNSIGNED_32, 0, bytes, to, 0, x86_register(y));
    emit_immediate(w->g, SHIFT_64, !is_avx2(w->g), bytes, LEFT, to, x86_register(to), 32);
    emit(w->g, OR_DOUBLES, 1, bytes, to, to, x86_register(real));
}

/* to = infinity where the part is infinite */
static void note_infinity(const written *w, int to, int part, int bytes)
{
    int infinity = common_register(w, INFINITY_F32), magnitude = common_register(w, MAGNITUDE_32);
    int mask = oly_x86_take(w->g, is_avx2(w->g) ? VECTORS : MASKS);
    emit(w->g, AND_FLOATS, 0, bytes, part, part, x86_register(magnitude));
    emit_immediate(w->g, COMPARE_FLOATS, 0, bytes, mask, part, x86_register(infinity), EQUAL);
    if (is_avx2(w->g))
        emit_immediate(w->g, BLEND, 0, bytes, to, to, x86_register(infinity), mask << 4);
    else
        emit_masked(w->g, MOVE_FLOATS, 0, bytes, mask, false, to, 0, x86_register(infinity));
}

/* The root of the sum of squares, in float64; infinite where a part is, even beside NaN. */
static void write_magnitude(const written *w)
{
    int x = source(w, 0), real = oly_x86_take(w->g, VECTORS), imaginary = oly_x86_take(w->g, VECTORS);
    int square = oly_x86_take(w->g, VECTORS), part = oly_x86_take(w->g, VECTORS), to = result(w);
    int bytes = vector_bytes(w->g, 4);
    take_part(w, real, x, false);
    take_part(w, imaginary, x, true);
    emit(w->g, TO_DOUBLE, 0, w->bytes, square, 0, x86_register(real));
    emit(w->g, TO_DOUBLE, 0, w->bytes, part, 0, x86_register(imaginary));
    emit(w->g, MULTIPLY_DOUBLE, 1, w->bytes, square, square, x86_register(square));
    emit(w->g, FUSED_DOUBLE, 1, w->bytes, square, part, x86_register(part));
    emit(w->g, ROOT_DOUBLE, 1, w->bytes, square, 0, x86_register(square));
    emit(w->g, TO_SINGLE, 1, w->bytes, to, 0, x86_register(square));
    note_infinity(w, to, real, bytes);
    note_infinity(w, to, imaginary, bytes);
}

/* AVX2: both parts are equal, or one is not. */
static void write_compare(const written *w, bool equal)
{
    int x = source(w, 0), y = source(w, 1), turned = oly_x86_take(w->g, VECTORS), to = result(w);
    emit_immediate(w->g, COMPARE_FLOATS, 0, w->bytes, to, x, x86_register(y), equal ? EQUAL : NOT_EQUAL);
    permute(w, turned, to, EXCHANGED);
    on_parts(w, equal ? AND_FLOATS : OR_FLOATS, to, to, turned);
}

/* -- which ---------------------------------------------------------------------------------------------------------------------- */

bool oly_x86_knows_complex(const generator *g, const oly_tile_instruction *c)
{
    bool number = c->dtype == OLY_COMPLEX64 && c->to == OLY_COMPLEX64;
    switch (c->op) {
    case OLY_TILE_real:
    case OLY_TILE_imag:
    case OLY_TILE_abs: return c->dtype == OLY_COMPLEX64 && c->to == OLY_FLOAT32;
    case OLY_TILE_complex: return c->dtype == OLY_FLOAT32 && c->to == OLY_COMPLEX64;
    case OLY_TILE_convert:
        return number || (c->dtype == OLY_FLOAT32 && c->to == OLY_COMPLEX64) ||
               (c->dtype == OLY_COMPLEX64 && c->to == OLY_FLOAT32);
    case OLY_TILE_eq:
    case OLY_TILE_ne: return c->dtype == OLY_COMPLEX64 && is_avx2(g);
    case OLY_TILE_splat:
    case OLY_TILE_select:
    case OLY_TILE_add:
    case OLY_TILE_sub:
    case OLY_TILE_mul:
    case OLY_TILE_neg:
    case OLY_TILE_conj:
    case OLY_TILE_square: return number;
    default: return false;
    }
}

bool oly_x86_write_complex(const written *w, const oly_tile_instruction *c)
{
    switch (c->op) {
    case OLY_TILE_add: write_sum(w, ADD); return true;
    case OLY_TILE_sub: write_sum(w, SUBTRACT); return true;
    case OLY_TILE_mul: write_product(w); return true;
    case OLY_TILE_square: write_square(w); return true;
    case OLY_TILE_neg: write_signs(w, SIGNS_OF_PARTS); return true;
    case OLY_TILE_conj: write_signs(w, SIGN_64); return true;
    case OLY_TILE_real: write_part(w, false); return true;
    case OLY_TILE_imag: write_part(w, true); return true;
    case OLY_TILE_abs: write_magnitude(w); return true;
    case OLY_TILE_complex: write_number(w, true); return true;
    case OLY_TILE_eq:
    case OLY_TILE_ne: write_compare(w, c->op == OLY_TILE_eq); return true;
    case OLY_TILE_convert:
        if (c->dtype == c->to)
            return false;
        if (c->to == OLY_COMPLEX64)
            write_number(w, false);
        else
            write_part(w, false);
        return true;
    default: return false;
    }
}
#endif
