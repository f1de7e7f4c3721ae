/* SPDX-License-Identifier: BSD-3-Clause */
/* The interpreter of tile programs: a thread computes one element, instruction by instruction, its registers in local memory. It
 * serves until a group's own kernel (fused_text.c) has been compiled, and where NVRTC is missing. */
#include "tasks.h" /* before device.h, whose OLY_DEVICE is a macro */

#define OLY_SHORT_CODE
#include "element.h"

#define FAMILY OLY_CALLED

/* Functions of one type of operands: so the compiler sees one formula at a time. */
#define UNARY(name, s)   case OLY_TILE_##name: return oly_put(oly_op_##name##_##s(x));
#define BINARY(name, s)  case OLY_TILE_##name: return oly_put(oly_op_##name##_##s(x, y));
#define COMMON(s) BINARY(add, s) BINARY(mul, s) BINARY(max, s) BINARY(min, s) BINARY(eq, s) BINARY(ne, s)              \
    BINARY(lt, s) BINARY(le, s) BINARY(gt, s) BINARY(ge, s)
/* Integers of all sizes are computed in 64 bits: the low ones are the same. `bits` of them are the operands'. */
FAMILY oly_value shifted(int op, int bits, uint64_t x, uint64_t y)
{
    const int64_t widened = (int64_t)(x << (64 - bits)) >> (64 - bits);
    switch (op) {
    case OLY_TILE_shift_left: return oly_bits_value(y < (uint64_t)bits ? x << y : 0);
    case OLY_TILE_shift_right_logical: return oly_bits_value(y < (uint64_t)bits ? x >> y : 0);
    case OLY_TILE_shift_right_arithmetic:
        return oly_bits_value((uint64_t)(widened >> (y < (uint64_t)bits ? (int)y : bits - 1)));
    case OLY_TILE_population_count: return oly_bits_value((uint64_t)oly_count_ones(x));
    default: return oly_bits_value((uint64_t)(oly_leading_zeros(x) - (64 - bits))); /* clz */
    }
}
#define WHOLE(s, T)                                                                                                    \
    FAMILY oly_value whole_##s(int op, T x, T y)                                                                       \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
            COMMON(s)                                                                                                  \
            UNARY(neg, s) UNARY(abs, s) UNARY(sign, s) BINARY(sub, s) BINARY(div, s) BINARY(pow, s) UNARY(square, s)   \
            BINARY(rem, s) UNARY(not, s) BINARY(and, s) BINARY(or, s) BINARY(xor, s)                                   \
        default: return oly_put(x);                                                                                    \
        }                                                                                                              \
    }
WHOLE(i64, int64_t)
WHOLE(u64, uint64_t)
FAMILY oly_value apply_whole(int op, int dtype, oly_value a, oly_value b)
{
    const int bits = 8 * oly_bytes_of(dtype);
    const uint64_t mask = ~(uint64_t)0 >> (64 - bits);
    oly_value r;
    if (op == OLY_TILE_shift_left || op == OLY_TILE_shift_right_logical || op == OLY_TILE_shift_right_arithmetic ||
        op == OLY_TILE_population_count || op == OLY_TILE_clz)
        r = shifted(op, bits, a.lo, b.lo);
    else if (dtype <= OLY_T_i64)
        r = whole_i64(op, oly_signed_of(dtype, a.lo), oly_signed_of(dtype, b.lo));
    else
        r = whole_u64(op, a.lo, b.lo);
    return oly_bits_value(r.lo & mask);
}
FAMILY oly_value apply_b8(int op, oly_value a, oly_value b)
{
    const oly_b8 x = (oly_b8)a.lo, y = (oly_b8)b.lo;
    switch (op) {
        COMMON(b8)
        UNARY(abs, b8) UNARY(logical_not, b8) UNARY(not, b8) BINARY(logical_and, b8) BINARY(logical_or, b8)
        BINARY(and, b8) BINARY(or, b8) BINARY(xor, b8)
    default: return a;
    }
}
#define REAL_MATH(s)                                                                                                   \
    UNARY(exp, s) UNARY(log, s) UNARY(sqrt, s) UNARY(sin, s) UNARY(cos, s) UNARY(tanh, s) UNARY(sigmoid, s)            \
    UNARY(tan, s) UNARY(asin, s) UNARY(acos, s) UNARY(atan, s) UNARY(sinh, s) UNARY(cosh, s) UNARY(asinh, s)           \
    UNARY(acosh, s) UNARY(atanh, s) UNARY(exp2, s) UNARY(expm1, s) UNARY(log1p, s) UNARY(rsqrt, s) BINARY(pow, s)
#define FLOATING(s, T)                                                                                                 \
    FAMILY oly_value math_##s(int op, T x, T y)                                                                        \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
            REAL_MATH(s)                                                                                               \
            UNARY(rough_log, s) UNARY(cbrt, s) UNARY(erf, s) UNARY(erfc, s) UNARY(erf_inv, s) UNARY(lgamma, s)         \
            UNARY(digamma, s) BINARY(atan2, s) BINARY(logaddexp, s) BINARY(rem, s)                                     \
        default: return oly_put(x);                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    FAMILY oly_value apply_##s(int op, T x, T y)                                                                       \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
            COMMON(s)                                                                                                  \
            UNARY(neg, s) UNARY(abs, s) UNARY(sign, s) BINARY(sub, s) BINARY(div, s) UNARY(square, s) UNARY(floor, s)  \
            UNARY(ceil, s) UNARY(round, s) UNARY(round_away, s) UNARY(is_finite, s) BINARY(nextafter, s)               \
            BINARY(complex, s)                                                                                         \
        default: return math_##s(op, x, y);                                                                            \
        }                                                                                                              \
    }
FLOATING(f32, float)
FLOATING(f64, double)
FAMILY oly_value math_c128(int op, oly_c128 x, oly_c128 y)
{
    switch (op) {
        REAL_MATH(c128)
    default: return oly_put(x);
    }
}
/* complex.h computes those of complex64 in double precision, too. */
FAMILY oly_value math_c64(int op, oly_c64 x, oly_c64 y)
{
    return oly_put(oly_z_as_c64(oly_as<oly_c128>(math_c128(op, oly_z_widened(x), oly_z_widened(y)))));
}
#define COMPLEX(s, T, math)                                                                                                  \
    FAMILY oly_value apply_##s(int op, T x, T y)                                                                       \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
            COMMON(s)                                                                                                  \
            UNARY(neg, s) UNARY(abs, s) UNARY(sign, s) BINARY(sub, s) BINARY(div, s) UNARY(square, s) UNARY(real, s)   \
            UNARY(imag, s) UNARY(conj, s)                                                                              \
        default: return math;                                                                                          \
        }                                                                                                              \
    }
COMPLEX(c128, oly_c128, math_c128(op, x, y))
COMPLEX(c64, oly_c64, math_c64(op, x, y))

/* Widened, computed as float32, and rounded if the result has the operands' type. */
FAMILY oly_value apply_narrow(int op, int dtype, int to, oly_value a, oly_value b)
{
    if (op == OLY_TILE_nextafter) {
        switch (dtype) {
        case OLY_T_f8_e4m3fn: return oly_put(next_after_f8_e4m3fn((uint8_t)a.lo, (uint8_t)b.lo));
        case OLY_T_f8_e5m2: return oly_put(next_after_f8_e5m2((uint8_t)a.lo, (uint8_t)b.lo));
        case OLY_T_f16: return oly_put(next_after_f16((uint16_t)a.lo, (uint16_t)b.lo));
        default: return oly_put(next_after_bf16((uint16_t)a.lo, (uint16_t)b.lo));
        }
    }
    oly_value r = apply_f32(op, oly_widened(dtype, a.lo), oly_widened(dtype, b.lo));
    return to == dtype ? oly_bits_value(oly_narrowed(dtype, oly_as<float>(r))) : r;
}
FAMILY oly_value converted(int from, int to, oly_value v)
{
    return oly_convert(from, to, v);
}
FAMILY oly_value apply(const oly_cuda_instruction &c, oly_value x, oly_value y, oly_value z)
{
    switch (c.op) {
    case OLY_TILE_select: return x.lo & 255 ? y : z;
    case OLY_TILE_convert: return converted(c.dtype, c.to, x);
    case OLY_TILE_copy: return x;
    case OLY_TILE_threefry2x32: return oly_put(oly_op_threefry2x32_u64(x.lo, y.lo));
    case OLY_TILE_random_bits: return oly_put(oly_op_random_bits_u64(x.lo, y.lo));
    case OLY_TILE_fma:
        return c.dtype == OLY_T_f32 ? oly_put(oly_fma(oly_as<float>(x), oly_as<float>(y), oly_as<float>(z)))
                                    : oly_put(oly_fma(oly_as<double>(x), oly_as<double>(y), oly_as<double>(z)));
    default: break;
    }
    switch (c.dtype) {
    case OLY_T_b8: return apply_b8(c.op, x, y);
    case OLY_T_i8:
    case OLY_T_i16:
    case OLY_T_i32:
    case OLY_T_i64:
    case OLY_T_u8:
    case OLY_T_u16:
    case OLY_T_u32:
    case OLY_T_u64: return apply_whole(c.op, c.dtype, x, y);
    case OLY_T_f32: return apply_f32(c.op, oly_as<float>(x), oly_as<float>(y));
    case OLY_T_f64: return apply_f64(c.op, oly_as<double>(x), oly_as<double>(y));
    case OLY_T_c64: return apply_c64(c.op, oly_as<oly_c64>(x), oly_as<oly_c64>(y));
    case OLY_T_c128: return apply_c128(c.op, oly_as<oly_c128>(x), oly_as<oly_c128>(y));
    default: return apply_narrow(c.op, c.dtype, c.to, x, y);
    }
}

OLY_DEVICE int64_t offset_of(int rank, const int64_t *at, const int64_t *stride)
{
    int64_t offset = 0;
    for (int d = 0; d < rank; d++)
        offset += at[d] * stride[d];
    return offset;
}

OLY_KERNEL_BOUNDED(oly_tile_interpret, oly_cuda_tile_task, OLY_CUDA_THREADS, 2)
{
    const oly_cuda_program &p = *task.program;
    const oly_cuda_instruction *code = (const oly_cuda_instruction *)(&p + 1);
    const int64_t *strides = (const int64_t *)(code + p.n_instructions);
    const int rank = p.rank;
    for (int64_t i = oly_index(); i < p.n; i += oly_stride()) {
        oly_value r[OLY_TILE_REGISTERS];
        int64_t at[OLY_MAX_RANK], rest = i;
        for (int d = rank - 1; d > 0; d--) {
            int64_t next = rest / p.extent[d];
            at[d] = rest - next * p.extent[d];
            rest = next;
        }
        at[0] = rest;
        for (int k = 0; k < p.n_loads; k++) {
            int bytes = oly_bytes_of(p.dtype[k]);
            r[p.reg[k]] = oly_load_bits(bytes, task.base[k] + offset_of(rank, at, strides + k * rank) * bytes);
        }
        for (int k = 0; k < p.n_instructions; k++) {
            const oly_cuda_instruction &c = code[k];
            oly_value v;
            if (c.op == OLY_TILE_splat) {
                v.lo = c.value[0], v.hi = c.value[1];
            } else if (c.op == OLY_TILE_iota) {
                int64_t number = (int64_t)c.value[0] + offset_of(rank, at, strides + c.attribute * rank);
                v = converted(OLY_T_i64, c.to, oly_put(number));
            } else {
                v = apply(c, r[c.in[0]], r[c.in[1] < 0 ? c.in[0] : c.in[1]], r[c.in[2] < 0 ? c.in[0] : c.in[2]]);
            }
            r[c.out] = v;
        }
        for (int k = p.n_loads; k < p.n_loads + p.n_stores; k++) {
            int bytes = oly_bytes_of(p.dtype[k]);
            oly_store_bits(bytes, task.base[k] + offset_of(rank, at, strides + k * rank) * bytes, r[p.reg[k]]);
        }
    }
}
