/* The formulas of elementwise.def for floating elements, float32 and float64 (float16 and bfloat16 are worked as float32:
 * tile_half.c), and their loops (elementwise_loops.h): oly_elementwise_float_<isa>. Compiled once per instruction set; used by
 * the tile interpreter. Formulas are static inline functions of one element, chosen by type; the compiler makes vector code of
 * the loops. */
#include "table.h"
#include "cpu/vector_math.h"

#define ELEMENTWISE_TABLE oly_elementwise_float
#define BOOL_TYPES(X, ...)
#define INTEGER_TYPES(X, ...)
#define FLOAT_TYPES(X, ...)                                                                                            \
    X(f32, float, OLY_FLOAT32, __VA_ARGS__)                                                                            \
    X(f64, double, OLY_FLOAT64, __VA_ARGS__)
#define COMPLEX_TYPES(X, ...)
typedef float part_f32;
typedef double part_f64;
typedef float _Complex pair_f32;
typedef double _Complex pair_f64;

#define BY_FLOAT(name, x) _Generic((x), float : name##_f32, double : name##_f64)

#define OLY_NEG(x)     BY_FLOAT(negative, x)(x)
#define OLY_ABS(x)     BY_FLOAT(magnitude, x)(x)
#define OLY_SIGN(x)    BY_FLOAT(sign, x)(x)
#define OLY_EXP(x)     BY_FLOAT(exp, x)(x)
#define OLY_LOG(x)     BY_FLOAT(log, x)(x)
#define OLY_SQRT(x)    BY_FLOAT(root, x)(x)
#define OLY_SIN(x)     BY_FLOAT(sine, x)(x)
#define OLY_COS(x)     BY_FLOAT(cosine, x)(x)
#define OLY_TANH(x)    BY_FLOAT(tanh, x)(x)
#define OLY_SIGMOID(x) BY_FLOAT(sigmoid, x)(x)
#define OLY_FLOOR(x)   BY_FLOAT(floor, x)(x)
#define OLY_ADD(x, y)  BY_FLOAT(sum, x)(x, y)
#define OLY_SUB(x, y)  BY_FLOAT(difference, x)(x, y)
#define OLY_MUL(x, y)  BY_FLOAT(product, x)(x, y)
#define OLY_DIV(x, y)  BY_FLOAT(quotient, x)(x, y)
#define OLY_POW(x, y)  BY_FLOAT(pow, x)(x, y)
#define OLY_MAX(x, y)  BY_FLOAT(larger, x)(x, y)
#define OLY_MIN(x, y)  BY_FLOAT(smaller, x)(x, y)
#define OLY_LT(x, y)   ((x) < (y))
#define OLY_LE(x, y)   ((x) <= (y))
#define OLY_GT(x, y)   ((x) > (y))
#define OLY_GE(x, y)   ((x) >= (y))
#define OLY_JOIN(x, y) BY_FLOAT(complex_of, x)(x, y)

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

/* A complex number of its parts, infinite ones and -0 too. */
#define JOIN_FORMULA(s, T)                                                                                             \
    static inline T _Complex complex_of_##s(T real, T imaginary)                                                       \
    {                                                                                                                  \
        T _Complex z;                                                                                                  \
        __real__ z = real;                                                                                             \
        __imag__ z = imaginary;                                                                                        \
        return z;                                                                                                      \
    }
JOIN_FORMULA(f32, float)
JOIN_FORMULA(f64, double)

FLOAT_FORMULAS(f32, float, OLY_FLOAT32, __builtin_sqrtf, __builtin_floorf, __builtin_fabsf)
FLOAT_FORMULAS(f64, double, OLY_FLOAT64, __builtin_sqrt, __builtin_floor, __builtin_fabs)
/* -- tiles with elements beyond a formula's bound ------------------------------------------------------------------- */
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
#include "cpu/elementwise_loops.h"
