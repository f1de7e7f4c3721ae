/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=2  Quotients and remainders of integers, which are computed by way of floating-point numbers, are those of C for every
 * type: at the ends of its range, around powers of two and multiples, by 0, 1 and -1, by arrays and by one number, on every instruction
 * set. Quotients by 0 have all bits set, remainders are the dividend; the smallest number by -1 is itself. */
#include "check.h"
#include <olympus.h>
#include <inttypes.h>

enum { PAIRS = 20000 };

static uint64_t state = 5;
static uint64_t next(void)
{
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* Numbers of any size, small ones, the ends of the range, and those around powers of two. */
static uint64_t drawn(void)
{
    uint64_t x = next(), way = next() % 6, small = x % 5 - 2;
    switch (way) {
    case 0: return x;
    case 1: return x % 200 - 100;
    case 2: return small;
    case 3: return ((uint64_t)1 << next() % 64) + small;
    case 4: return 0 - ((uint64_t)1 << next() % 64) + small;
    default: return x >> next() % 64;
    }
}

#define CHECK_TYPE(T, U, dtype, is_signed)                                                                             \
    static void check_##T(void)                                                                                        \
    {                                                                                                                  \
        static T x[PAIRS], y[PAIRS], got[2][PAIRS];                                                                    \
        for (int k = 0; k < PAIRS; k++) {                                                                              \
            y[k] = (T)drawn();                                                                                         \
            x[k] = (T)drawn();                                                                                         \
            if (k % 3 == 0) /* next to a multiple */                                                                   \
                x[k] = (T)((U)y[k] * (U)drawn() + (U)(next() % 3) - 1);                                                \
        }                                                                                                              \
        for (int form = 0; form < 8; form++) { /* 0: arrays; 1 to 6: by one number; 7: of one number */                \
            OLY_SCOPE                                                                                                  \
            {                                                                                                          \
                int64_t n = PAIRS;                                                                                     \
                T by = y[form];                                                                                        \
                if (form >= 3 && form < 6)                                                                             \
                    by = (T)(form - 4);                                                                                \
                oly_array a = oly_from_host(form == 7 ? &x[7] : x, dtype, form != 7, &n);                              \
                oly_array b = oly_from_host(form == 0 || form == 7 ? y : &by, dtype, form == 0 || form == 7, &n);      \
                assert_int_equal(oly_get(oly_truncate_divide(a, b), got[0], sizeof x), OLY_OK);                        \
                assert_int_equal(oly_get(oly_rem(a, b), got[1], sizeof x), OLY_OK);                                    \
                for (int k = 0; k < PAIRS; k++) {                                                                      \
                    T p = form == 7 ? x[7] : x[k], q = form == 0 || form == 7 ? y[k] : by;                             \
                    bool least = is_signed && q == (T)-1;                                                              \
                    T quotient = q == 0 ? (T)-1 : least ? (T)(0 - (U)p) : (T)(p / q);                                  \
                    T rest = q == 0 ? p : least ? 0 : (T)(p % q);                                                      \
                    if (got[0][k] != quotient || got[1][k] != rest)                                                    \
                        fail_msg(#T " form %d: %" PRId64 " by %" PRId64 " is %" PRId64 " rest %" PRId64                \
                                    ", not %" PRId64 " rest %" PRId64,                                                 \
                                 form, (int64_t)p, (int64_t)q, (int64_t)got[0][k], (int64_t)got[1][k],                 \
                                 (int64_t)quotient, (int64_t)rest);                                                    \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
CHECK_TYPE(int8_t, uint32_t, OLY_INT8, true)
CHECK_TYPE(int16_t, uint32_t, OLY_INT16, true)
CHECK_TYPE(int32_t, uint32_t, OLY_INT32, true)
CHECK_TYPE(int64_t, uint64_t, OLY_INT64, true)
CHECK_TYPE(uint8_t, uint32_t, OLY_UINT8, false)
CHECK_TYPE(uint16_t, uint32_t, OLY_UINT16, false)
CHECK_TYPE(uint32_t, uint32_t, OLY_UINT32, false)
CHECK_TYPE(uint64_t, uint64_t, OLY_UINT64, false)

static void every_type(const char *isa)
{
    setenv("OLYMPUS_ISA", isa, 1);
    oly_init(NULL, NULL);
    check_int8_t();
    check_int16_t();
    check_int32_t();
    check_int64_t();
    check_uint8_t();
    check_uint16_t();
    check_uint32_t();
    check_uint64_t();
    oly_finalize();
    unsetenv("OLYMPUS_ISA");
}

static void by_the_best_instructions(void **unused)
{
    (void)unused;
    every_type("");
}
static void by_avx2(void **unused)
{
    (void)unused;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        skip();
    every_type("avx2");
}
static void by_the_base_instructions(void **unused)
{
    (void)unused;
    every_type("base");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_best_instructions),
        cmocka_unit_test(by_avx2),
        cmocka_unit_test(by_the_base_instructions),
    };
    return CHECK_MAIN(tests);
}
