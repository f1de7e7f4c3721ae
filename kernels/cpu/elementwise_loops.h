/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of elementwise.def, or of the rows given as ELEMENTWISE_ROWS: one for each row, element type and pattern of
 * scalar operands, and the table of them. Included at the end of each elementwise*.c, which defines its formulas
 * (OLY_ADD(x, y), ...); its element types BOOL_TYPES, INTEGER_TYPES, FLOAT_TYPES and COMPLEX_TYPES(X, ...), each a list
 * of X(short name, C type, dtype, ...) made by ROW_TYPE from core/dtype_list.h, empty where the types are another
 * file's; and ELEMENTWISE_TABLE, the table's name. part_<short name> is the type of a complex number's parts, for other
 * types the type itself; pair_<short name> the complex type of two floats. */

/* A row of dtype_list.h as X(short name, C type, dtype, ...); given: (X, ...). */
#define ROW_TYPE(given, number, name, s, T, ...) ROW_CALL(s, T, OLY_##number, ROW_REST given)
#define ROW_REST(...)                            __VA_ARGS__
#define ROW_CALL(...)                            ROW_APPLY(__VA_ARGS__)
#define ROW_APPLY(s, T, dtype, X, ...)           X(s, T, dtype, __VA_ARGS__)

/* -- element types of the rows -------------------------------------------------------------------------------------- */
#define OLY_BOOLS(X, ...)       BOOL_TYPES(X, __VA_ARGS__)
#define OLY_INTEGERS(X, ...)    INTEGER_TYPES(X, __VA_ARGS__)
#define OLY_FLOATS(X, ...)      FLOAT_TYPES(X, __VA_ARGS__)
#define OLY_COMPLEX(X, ...)     COMPLEX_TYPES(X, __VA_ARGS__)
#define OLY_NUMBERS(X, ...)     OLY_INTEGERS(X, __VA_ARGS__) OLY_FLOATS(X, __VA_ARGS__)
#define OLY_ANY(X, ...)         OLY_BOOLS(X, __VA_ARGS__) OLY_NUMBERS(X, __VA_ARGS__)
#define OLY_INEXACT(X, ...)     OLY_FLOATS(X, __VA_ARGS__) OLY_COMPLEX(X, __VA_ARGS__)
#define OLY_ALL_NUMBERS(X, ...) OLY_NUMBERS(X, __VA_ARGS__) OLY_COMPLEX(X, __VA_ARGS__)
#define OLY_ALL(X, ...)         OLY_ANY(X, __VA_ARGS__) OLY_COMPLEX(X, __VA_ARGS__)

#define OLY_BITS(X, ...) BOOL_TYPES(X, __VA_ARGS__) INTEGER_TYPES(X, __VA_ARGS__)
#ifdef NARROW_TYPES
#define OLY_EVERY_FLOAT(X, ...) NARROW_TYPES(X, __VA_ARGS__) FLOAT_TYPES(X, __VA_ARGS__)
#else
#define OLY_EVERY_FLOAT(X, ...) FLOAT_TYPES(X, __VA_ARGS__)
#endif
#ifndef ELEMENTWISE_ROWS
#define ELEMENTWISE_ROWS "elementwise.def"
#endif

#define everywhere(s, n, out, x) false

/* -- loops ---------------------------------------------------------------------------------------------------------- */
#define UNUSED_OPERAND const void *unused __attribute__((unused))
#define UNARY_LOOP_TO(s, T, R, name, value, far)                                                                       \
    static void name##_v_##s(int n, void *out, const void *px, UNUSED_OPERAND,                                         \
                             const void *unused2 __attribute__((unused)))                                              \
    {                                                                                                                  \
        const T *xs = px;                                                                                              \
        R *result = out;                                                                                               \
        if (far(s, n, result, xs))                                                                                     \
            return;                                                                                                    \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++)                                                               \
        {                                                                                                              \
            const T x = xs[i];                                                                                         \
            result[i] = (R)(value);                                                                                    \
        }                                                                                                              \
    }
#define UNARY_LOOP(s, T, dtype, name, value, far) UNARY_LOOP_TO(s, T, T, name, value, far)
#define PART_LOOP(s, T, dtype, name, value)       UNARY_LOOP_TO(s, T, part_##s, name, value, everywhere)
#define TEST_LOOP(s, T, dtype, name, value)       UNARY_LOOP_TO(s, T, uint8_t, name, value, everywhere)
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
/* A row whose loops are not those of a formula has its own: OLY_LOOPS_OF_<name>, defined as a comma and a macro with the
 * arguments of PAIR_LOOPS, or of FAR_PAIR_LOOPS. */
#define LOOPS_OF(own, ...)                     LOOPS_SECOND(own, __VA_ARGS__)
#define LOOPS_SECOND(first, second, ...)       second
#define BINARY_LOOP(s, T, dtype, name, value)  LOOPS_OF(OLY_LOOPS_OF_##name, PAIR_LOOPS, )(s, T, T, name, value)
#define COMPARE_LOOP(s, T, dtype, name, value) PAIR_LOOPS(s, T, uint8_t, name, value)
#define JOIN_LOOP(s, T, dtype, name, value)    PAIR_LOOPS(s, T, pair_##s, name, value)

/* Blocks by the near formula, then the elements for which it does not hold again. The block is copied first because out
 * may be x or y. */
#define FAR_PAIR_LOOP(s, T, name, near, is_far, careful, variant, sx, sy)                                              \
    static void name##_##variant##_##s(int n, void *out, const void *px, const void *py, UNUSED_OPERAND)               \
    {                                                                                                                  \
        const T *xs = px, *ys = py;                                                                                    \
        const T x0 = xs[0], y0 = ys[0];                                                                                \
        T *result = out;                                                                                               \
        for (int i = 0; i < n; i += 64) {                                                                              \
            T block[64];                                                                                               \
            int any = 0, m = n - i < 64 ? n - i : 64;                                                                  \
            for (int j = 0; j < m; j++) {                                                                              \
                const T x = sx ? xs[i + j] : x0, y = sy ? ys[i + j] : y0;                                              \
                block[j] = near;                                                                                       \
                any |= is_far;                                                                                         \
            }                                                                                                          \
            for (int j = 0; j < m && any; j++) {                                                                       \
                const T x = sx ? xs[i + j] : x0, y = sy ? ys[i + j] : y0;                                              \
                if (is_far)                                                                                            \
                    block[j] = careful;                                                                                \
            }                                                                                                          \
            memcpy(result + i, block, sizeof(T) * (size_t)m);                                                          \
        }                                                                                                              \
    }
#define FAR_PAIR_LOOPS(s, T, name, near, is_far, careful)                                                              \
    FAR_PAIR_LOOP(s, T, name, near, is_far, careful, vv, 1, 1)                                                         \
    FAR_PAIR_LOOP(s, T, name, near, is_far, careful, sv, 0, 1)                                                         \
    FAR_PAIR_LOOP(s, T, name, near, is_far, careful, vs, 1, 0)
#define FAR_BINARY_LOOP(s, T, dtype, name, near, is_far, careful)                                                      \
    LOOPS_OF(OLY_LOOPS_OF_##name, FAR_PAIR_LOOPS, )(s, T, name, near, is_far, careful)

/* As the row says, or OLY_FAR_OF_<name>, defined as a comma and the name of a function for tiles. */
#define OLY_TILE_UNARY(name, types, value, far)                 types(UNARY_LOOP, name, value, LOOPS_OF(OLY_FAR_OF_##name, far, ))
#define OLY_TILE_PART(name, types, value)                       types(PART_LOOP, name, value)
#define OLY_TILE_TEST(name, types, value)                       types(TEST_LOOP, name, value)
#define OLY_TILE_BINARY(name, types, value)                     types(BINARY_LOOP, name, value)
#define OLY_TILE_FAR_BINARY(name, types, near, is_far, careful) types(FAR_BINARY_LOOP, name, near, is_far, careful)
#define OLY_TILE_COMPARE(name, types, value)                    types(COMPARE_LOOP, name, value)
#define OLY_TILE_JOIN(name, types, value)                       types(JOIN_LOOP, name, value)
#include ELEMENTWISE_ROWS
#undef OLY_TILE_UNARY
#undef OLY_TILE_PART
#undef OLY_TILE_TEST
#undef OLY_TILE_BINARY
#undef OLY_TILE_FAR_BINARY
#undef OLY_TILE_COMPARE
#undef OLY_TILE_JOIN

#define UNARY_CELL(s, T, dtype, name) [dtype] = {name##_v_##s, NULL, NULL},
#define PAIR_CELL(s, T, dtype, name)  [dtype] = {name##_vv_##s, name##_sv_##s, name##_vs_##s},

const oly_elementwise_table OLY_ISA_NAME(ELEMENTWISE_TABLE) = {{
#define OLY_TILE_UNARY(name, types, value, far) [OLY_TILE_##name] = {types(UNARY_CELL, name)},
#define OLY_TILE_PART(name, types, value)       [OLY_TILE_##name] = {types(UNARY_CELL, name)},
#define OLY_TILE_TEST(name, types, value)       [OLY_TILE_##name] = {types(UNARY_CELL, name)},
#define OLY_TILE_BINARY(name, types, value)     [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#define OLY_TILE_FAR_BINARY(name, types, ...)   [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#define OLY_TILE_COMPARE(name, types, value)    [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#define OLY_TILE_JOIN(name, types, value)       [OLY_TILE_##name] = {types(PAIR_CELL, name)},
#include ELEMENTWISE_ROWS
}};
