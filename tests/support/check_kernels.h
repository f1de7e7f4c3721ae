/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of elementwise kernels: every instruction set, one operation on many elements, special values. */
#ifndef CHECK_KERNELS_H
#define CHECK_KERNELS_H
#include "check.h"
#include "check_element.h"
#include "kernel.h"
#include "core/error.h"
#include <float.h>
#include <math.h>

#define N        1021
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *const instruction_sets[] = {"base", "avx2", "avx512"};

/* Runs a check with each instruction set of this CPU. */
static inline void on_each(void (*check)(void))
{
    int ran = 0;
    for (int i = 0; i < COUNT(instruction_sets); i++)
        if (oly_kernels_choose(instruction_sets[i]) == OLY_OK) {
            assert_string_equal(oly_kernels_isa(), instruction_sets[i]);
            check();
            ran++;
        } else {
            oly_drop_message();
        }
    assert_true(ran > 0);
    assert_int_equal(oly_kernels_choose(""), OLY_OK);
}

static uint64_t state = 88172645463325252u;
static inline uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Du;
}
static inline double random_between(double low, double high)
{
    return low + (high - low) * (double)(random_bits() >> 11) * 0x1p-53;
}

/* out = op(in...) on n elements; bit k of scalars: operand k is one element for all. */
static inline void apply(int op, int dtype, int to, int n, const void *const *in, int n_in, int scalars, void *out)
{
    oly_tile_instruction instruction = {
        .op = (uint16_t)op, .dtype = (uint8_t)dtype, .to = (uint8_t)to, .in = {-1, -1, -1}, .out = 3};
    int16_t load_register[3] = {0, 1, 2}, store_register = 3;
    uint8_t load_dtype[3], store_dtype = (uint8_t)to;
    oly_tile_operand loads[3], store = {out, {1}};
    for (int k = 0; k < n_in; k++) {
        instruction.in[k] = (int16_t)k;
        load_dtype[k] = (uint8_t)(op == OLY_TILE_select && k == 0 ? OLY_BOOL : dtype);
        loads[k] = (oly_tile_operand){(char *)(uintptr_t)in[k], {scalars >> k & 1 ? 0 : 1}};
    }
    oly_tile_program program = {1, &instruction, n_in, 1, load_register, load_dtype, &store_register, &store_dtype, 4};
    oly_tile_box box = {1, {n}, {0}, {0}};
    int chunks = oly_tile_chunks(&program, &box);
    for (int c = 0; c < chunks; c++)
        oly_tile_run(&program, &box, loads, &store, c, chunks);
}

static const double special[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.5,
                                 -0.5,
                                 2.0,
                                 -2.0,
                                 3.0,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 FLT_MAX,
                                 -FLT_MAX,
                                 FLT_MIN,
                                 -FLT_MIN,
                                 0x1p-149,
                                 -0x1p-149,
                                 DBL_MAX,
                                 -DBL_MAX,
                                 DBL_MIN,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-1073,
                                 1e10,
                                 0x1p40,
                                 0x1p53,
                                 0x1p-30,
                                 88.8,
                                 -104.5,
                                 709.5,
                                 -745.5,
                                 M_PI,
                                 M_PI_2,
                                 1e22,
                                 0x1.6ac5b262ca1ffp849,
                                 6381956970095103.0 * 0x1p797,
                                 -7.0,
                                 1e-5,
                                 100.5};

/* Elements of each type, special values included. */
static inline void fill_with_specials(int dtype, void *out, int n)
{
    static const int64_t integers[] = {0,         1,         -1,        2,         -2,         3,  7,  -7,
                                       INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX, 40, -3, 13};
    for (int i = 0; i < n; i++) {
        uint64_t r = random_bits();
        int64_t integer = r & 1 ? integers[r / 2 % COUNT(integers)] : (int64_t)random_bits() >> (r / 2 % 64);
        double real = r & 1 ? special[r / 2 % COUNT(special)] : random_between(-5, 5);
        bool whole = dtype >= OLY_INT8 && dtype <= OLY_UINT64;
        if (dtype == OLY_INT64 || dtype == OLY_UINT64)
            ((int64_t *)out)[i] = integer;
        else
            set_element((oly_dtype)dtype, out, i,
                        whole                  ? (double)(int32_t)integer
                        : dtype == OLY_BOOL    ? (double)(r / 2 & 1)
                        : dtype == OLY_FLOAT64 ? real
                                               : __builtin_complex(real, r & 2 ? real : random_between(-5, 5)));
    }
}

#endif
