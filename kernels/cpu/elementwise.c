/* The loops of elementwise.def: for each row and element type, one for each pattern of scalar operands. Compiled once per
 * instruction set; gives oly_elementwise_<isa>, used by tile.c. Formulas are static inline functions of one element, chosen
 * by type; the compiler makes vector code of the loops. */
#include "table.h"
#include "cpu/vector_math.h"

/* -- element types: short name, C type, dtype ----------------------------------------------------------------------- */
#define OLY_BOOLS(X, ...) X(b8, uint8_t, OLY_BOOL, __VA_ARGS__)
#define OLY_FLOATS(X, ...)                                                                                             \
    X(f32, float, OLY_FLOAT32, __VA_ARGS__)                                                                            \
    X(f64, double, OLY_FLOAT64, __VA_ARGS__)
#define OLY_INTEGERS(X, ...)                                                                                           \
    X(i32, int32_t, OLY_INT32, __VA_ARGS__)                                                                            \
    X(i64, int64_t, OLY_INT64, __VA_ARGS__)                                                                            \
    X(u32, uint32_t, OLY_UINT32, __VA_ARGS__)
#define OLY_NUMBERS(X, ...) OLY_INTEGERS(X, __VA_ARGS__) OLY_FLOATS(X, __VA_ARGS__)
#define OLY_ANY(X, ...)     OLY_BOOLS(X, __VA_ARGS__) OLY_NUMBERS(X, __VA_ARGS__)

#define BY_FLOAT(name, x) _Generic((x), float : name##_f32, double : name##_f64)
#define BY_NUMBER(name, x)                                                                                             \
    _Generic((x), int32_t                                                                                              \
             : name##_i32, int64_t                                                                                     \
             : name##_i64, uint32_t                                                                                    \
             : name##_u32, float                                                                                       \
             : name##_f32, double                                                                                      \
             : name##_f64)
#define BY_TYPE(name, x)                                                                                               \
    _Generic((x), uint8_t                                                                                              \
             : name##_b8, int32_t                                                                                      \
             : name##_i32, int64_t                                                                                     \
             : name##_i64, uint32_t                                                                                    \
             : name##_u32, float                                                                                       \
             : name##_f32, double                                                                                      \
             : name##_f64)

#define OLY_NEG(x)     BY_NUMBER(negative, x)(x)
#define OLY_ABS(x)     BY_TYPE(magnitude, x)(x)
#define OLY_SIGN(x)    BY_NUMBER(sign, x)(x)
#define OLY_EXP(x)     BY_FLOAT(exp, x)(x)
#define OLY_LOG(x)     BY_FLOAT(log, x)(x)
#define OLY_SQRT(x)    BY_FLOAT(root, x)(x)
#define OLY_SIN(x)     BY_FLOAT(sine, x)(x)
#define OLY_COS(x)     BY_FLOAT(cosine, x)(x)
#define OLY_TANH(x)    BY_FLOAT(tanh, x)(x)
#define OLY_SIGMOID(x) BY_FLOAT(sigmoid, x)(x)
#define OLY_FLOOR(x)   BY_FLOAT(floor, x)(x)
#define OLY_ADD(x, y)  BY_TYPE(sum, x)(x, y)
#define OLY_SUB(x, y)  BY_NUMBER(difference, x)(x, y)
#define OLY_MUL(x, y)  BY_TYPE(product, x)(x, y)
#define OLY_DIV(x, y)  BY_NUMBER(quotient, x)(x, y)
#define OLY_POW(x, y)  BY_NUMBER(pow, x)(x, y)
#define OLY_MAX(x, y)  BY_TYPE(larger, x)(x, y)
#define OLY_MIN(x, y)  BY_TYPE(smaller, x)(x, y)

/* -- formulas ------------------------------------------------------------------------------------------------------- */
#define FLOAT_FORMULAS(s, T, dtype, sqrt_of, floor_of, abs_of)                                                         \
    static inline T negative_##s(T x)                                                                                  \
    {                                                                                                                  \
        return -x;                                                                                                     \
    }                                                                                                                  \
    static inline T magnitude_##s(T x)                                                                                 \
    {                                                                                                                  \
        return abs_of(x);                                                                                              \
    }                                                                                                                  \
    static inline T sign_##s(T x)                                                                                      \
    {                                                                                                                  \
        return x > 0 ? 1 : x < 0 ? -1 : x;                                                                             \
    }                                                                                                                  \
    static inline T root_##s(T x)                                                                                      \
    {                                                                                                                  \
        return sqrt_of(x);                                                                                             \
    }                                                                                                                  \
    static inline T floor_##s(T x)                                                                                     \
    {                                                                                                                  \
        return floor_of(x);                                                                                            \
    }                                                                                                                  \
    static inline T sum_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        return x + y;                                                                                                  \
    }                                                                                                                  \
    static inline T difference_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return x - y;                                                                                                  \
    }                                                                                                                  \
    static inline T product_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return x * y;                                                                                                  \
    }                                                                                                                  \
    static inline T quotient_##s(T x, T y)                                                                             \
    {                                                                                                                  \
        return x / y;                                                                                                  \
    }                                                                                                                  \
    static inline T larger_##s(T x, T y)                                                                               \
    {                                                                                                                  \
        return (x != x) | (x > y) ? x : y;                                                                             \
    }                                                                                                                  \
    static inline T smaller_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return (x != x) | (x < y) ? x : y;                                                                             \
    }
FLOAT_FORMULAS(f32, float, OLY_FLOAT32, __builtin_sqrtf, __builtin_floorf, __builtin_fabsf)
FLOAT_FORMULAS(f64, double, OLY_FLOAT64, __builtin_sqrt, __builtin_floor, __builtin_fabs)

/* Integers wrap: their arithmetic is that of U, the unsigned type of the same size. */
#define INTEGER_FORMULAS(s, T, U, is_negative)                                                                         \
    static inline T negative_##s(T x)                                                                                  \
    {                                                                                                                  \
        return (T)(0 - (U)x);                                                                                          \
    }                                                                                                                  \
    static inline T magnitude_##s(T x)                                                                                 \
    {                                                                                                                  \
        return is_negative(x) ? (T)(0 - (U)x) : x;                                                                     \
    }                                                                                                                  \
    static inline T sign_##s(T x)                                                                                      \
    {                                                                                                                  \
        return (T)((x > 0) - is_negative(x));                                                                          \
    }                                                                                                                  \
    static inline T sum_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        return (T)((U)x + (U)y);                                                                                       \
    }                                                                                                                  \
    static inline T difference_##s(T x, T y)                                                                           \
    {                                                                                                                  \
        return (T)((U)x - (U)y);                                                                                       \
    }                                                                                                                  \
    static inline T product_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return (T)((U)x * (U)y);                                                                                       \
    }                                                                                                                  \
    static inline T larger_##s(T x, T y)                                                                               \
    {                                                                                                                  \
        return x > y ? x : y;                                                                                          \
    }                                                                                                                  \
    static inline T smaller_##s(T x, T y)                                                                              \
    {                                                                                                                  \
        return x < y ? x : y;                                                                                          \
    }                                                                                                                  \
    static inline T quotient_##s(T x, T y)                                                                             \
    {                                                                                                                  \
        if (y == 0)                                                                                                    \
            return (T) ~(U)0;                                                                                          \
        return is_negative(y) && y == (T) ~(U)0 ? (T)(0 - (U)x) : x / y;                                               \
    }                                                                                                                  \
    static inline T pow_##s(T x, T y)                                                                                  \
    {                                                                                                                  \
        U result = 1, base = (U)x;                                                                                     \
        if (is_negative(y))                                                                                            \
            return x == 1 ? 1 : is_negative(x) && x == (T) ~(U)0 ? ((U)y & 1 ? x : 1) : 0;                             \
        for (U e = (U)y; e != 0; e >>= 1) {                                                                            \
            result = e & 1 ? result * base : result;                                                                   \
            base *= base;                                                                                              \
        }                                                                                                              \
        return (T)result;                                                                                              \
    }
#define BELOW_ZERO(x) ((x) < 0)
#define NEVER(x)      0
INTEGER_FORMULAS(i32, int32_t, uint32_t, BELOW_ZERO)
INTEGER_FORMULAS(i64, int64_t, uint64_t, BELOW_ZERO)
INTEGER_FORMULAS(u32, uint32_t, uint32_t, NEVER)

static inline uint8_t magnitude_b8(uint8_t x)
{
    return x;
}
static inline uint8_t sum_b8(uint8_t x, uint8_t y)
{
    return x | y;
}
static inline uint8_t product_b8(uint8_t x, uint8_t y)
{
    return x & y;
}
static inline uint8_t larger_b8(uint8_t x, uint8_t y)
{
    return x | y;
}
static inline uint8_t smaller_b8(uint8_t x, uint8_t y)
{
    return x & y;
}

/* -- tiles with elements beyond a formula's bound ------------------------------------------------------------------- */
#define everywhere(s, n, out, x) false

/* True when some element is far (or NaN); the tile is then done here: blocks of 64 by the near formula, the far ones again.
 * The block is kept because out may be x. Bits of magnitudes order like the magnitudes. */
#define FAR(name, s, T, I, BOUND, near, careful)                                                                       \
    static bool name##_##s(int n, T *out, const T *x)                                                                  \
    {                                                                                                                  \
        const T bound = BOUND;                                                                                         \
        I limit, any = 0;                                                                                              \
        memcpy(&limit, &bound, sizeof limit);                                                                          \
        for (int i = 0; i < n; i++) {                                                                                  \
            T a = magnitude_##s(x[i]);                                                                                 \
            I bits;                                                                                                    \
            memcpy(&bits, &a, sizeof bits);                                                                            \
            any |= bits > limit;                                                                                       \
        }                                                                                                              \
        if (any == 0)                                                                                                  \
            return false;                                                                                              \
        for (int i = 0; i < n; i += 64) {                                                                              \
            T block[64];                                                                                               \
            int m = n - i < 64 ? n - i : 64;                                                                           \
            memcpy(block, x + i, sizeof(T) * (size_t)m);                                                               \
            for (int j = 0; j < m; j++)                                                                                \
                out[i + j] = near(block[j]);                                                                           \
            for (int j = 0; j < m; j++)                                                                                \
                if (magnitude_##s(block[j]) > bound)                                                                   \
                    out[i + j] = (T)careful(block[j]);                                                                 \
        }                                                                                                              \
        return true;                                                                                                   \
    }
FAR(far_sine, f32, float, int32_t, NEAR_F32, sine_f32, sine_far)
FAR(far_sine, f64, double, int64_t, NEAR_F64, sine_f64, sine_far)
FAR(far_cosine, f32, float, int32_t, NEAR_F32, cosine_f32, cosine_far)
FAR(far_cosine, f64, double, int64_t, NEAR_F64, cosine_f64, cosine_far)
#define far_sine(s, n, out, x)   far_sine_##s(n, out, x)
#define far_cosine(s, n, out, x) far_cosine_##s(n, out, x)

/* -- loops ---------------------------------------------------------------------------------------------------------- */
#define UNUSED_OPERAND const void *unused __attribute__((unused))
#define UNARY_LOOP(s, T, dtype, name, value, far)                                                                      \
    static void name##_v_##s(int n, void *out, const void *px, UNUSED_OPERAND,                                         \
                             const void *unused2 __attribute__((unused)))                                              \
    {                                                                                                                  \
        const T *xs = px;                                                                                              \
        T *result = out;                                                                                               \
        if (far(s, n, result, xs))                                                                                     \
            return;                                                                                                    \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++)                                                               \
        {                                                                                                              \
            const T x = xs[i];                                                                                         \
            result[i] = value;                                                                                         \
        }                                                                                                              \
    }
/* sx, sy: 1, or 0 where the operand is one element for all. */
#define PAIR_LOOP(s, T, R, name, value, variant, sx, sy)                                                               \
    static void name##_##variant##_##s(int n, void *out, const void *px, const void *py, UNUSED_OPERAND)               \
    {                                                                                                                  \
        const T *xs = px, *ys = py;                                                                                    \
        const T x0 = xs[0], y0 = ys[0];                                                                                \
        R *result = out;                                                                                               \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++)                                                               \
        {                                                                                                              \
            const T x = sx ? xs[i] : x0, y = sy ? ys[i] : y0;                                                          \
            result[i] = (R)(value);                                                                                    \
        }                                                                                                              \
    }
#define PAIR_LOOPS(s, T, R, name, value)                                                                               \
    PAIR_LOOP(s, T, R, name, value, vv, 1, 1)                                                                          \
    PAIR_LOOP(s, T, R, name, value, sv, 0, 1)                                                                          \
    PAIR_LOOP(s, T, R, name, value, vs, 1, 0)
#define BINARY_LOOP(s, T, dtype, name, value)  PAIR_LOOPS(s, T, T, name, value)
#define COMPARE_LOOP(s, T, dtype, name, value) PAIR_LOOPS(s, T, uint8_t, name, value)

#define OLY_TILE_UNARY(name, types, value, far) types(UNARY_LOOP, name, value, far)
#define OLY_TILE_BINARY(name, types, value)     types(BINARY_LOOP, name, value)
#define OLY_TILE_COMPARE(name, types, value)    types(COMPARE_LOOP, name, value)
#include "elementwise.def"
#undef OLY_TILE_UNARY
#undef OLY_TILE_BINARY
#undef OLY_TILE_COMPARE

#define UNARY_CELL(s, T, dtype, name) [dtype] = {name##_v_##s, NULL, NULL},
#define PAIR_CELL(s, T, dtype, name)  [dtype] = {name##_vv_##s, name##_sv_##s, name##_vs_##s},

const oly_elementwise_table OLY_ISA_NAME(oly_elementwise) = {{
#define OLY_TILE_UNARY(name, types, value, far) [OLY_TILE_##name] = {types(UNARY_CELL, name)},
#define OLY_TILE_BINARY(name, types, value)     [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#define OLY_TILE_COMPARE(name, types, value)    [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#include "elementwise.def"
}};
