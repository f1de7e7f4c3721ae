/* SPDX-License-Identifier: BSD-3-Clause */
/* AMX: eight registers of 16 rows of 64 bytes, and their products of bytes and of bfloat16 with sums of 32 bits. As instructions in text, so
 * that files compiled for processors without it can have them. For matrix_blocks.h alone; empty where the assembler may not know them.
 *
 * Products of bfloat16 take subnormal elements for zero, and make zero of subnormal sums. */
#ifndef OLY_CPU_MATRIX_REGISTERS_H
#define OLY_CPU_MATRIX_REGISTERS_H
#include "table.h"

#ifdef OLY_HAS_MATRIX_REGISTERS
static inline void matrix_registers_begin(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int k = 0; k < 8; k++)
        shape.bytes[k] = 64, shape.rows[k] = 16;
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
}

static inline void matrix_registers_end(void)
{
    __asm__ volatile("tilerelease");
}

/* Elements of a and b: bytes, each with a sign or without, or bfloat16. */
typedef enum matrix_elements {
    MATRIX_SIGNED_SIGNED,
    MATRIX_SIGNED_UNSIGNED,
    MATRIX_UNSIGNED_SIGNED,
    MATRIX_UNSIGNED_UNSIGNED,
    MATRIX_BFLOATS,
} matrix_elements;

/* 2 x 2 registers of sums of c, or fewer. */
typedef struct matrix_sums {
    int64_t steps;    /* of 64 bytes */
    const void *from; /* the sums so far; NULL: zero */
    void *to;
    int64_t from_row, to_row; /* bytes */
    bool lower, right;        /* the second of each are there */
    /* Of a, bytes: between its rows, registers of the same rows, and the first and second rows' registers. */
    int64_t a_row, a_step, a_below;
} matrix_sums;

#define MATRIX_LOAD(number, from, row)                                                                                 \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #number ::"r"(from), "r"(row) : "memory")
#define MATRIX_STORE(number, to, row)                                                                                  \
    __asm__ volatile("tilestored %%tmm" #number ", (%0,%1,1)" ::"r"(to), "r"(row) : "memory")
#define MATRIX_ZERO(number) __asm__ volatile("tilezero %%tmm" #number::)

#define MATRIX_DOT(instruction, sum, a, b) __asm__ volatile(#instruction " %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

/* b: registers one after the other, those of the second columns `steps` further. */
#define MATRIX_MULTIPLY(instruction)                                                                                   \
    static void matrix_multiply_##instruction(const matrix_sums *s, const uint8_t *a, const uint8_t *b)                \
    {                                                                                                                  \
        const uint8_t *lower = a + s->a_below, *right = b + s->steps * 1024;                                           \
        for (int64_t k = 0; k < s->steps; k++, a += s->a_step, lower += s->a_step, b += 1024, right += 1024) {         \
            MATRIX_LOAD(4, a, s->a_row);                                                                               \
            MATRIX_LOAD(6, b, (int64_t)64);                                                                            \
            MATRIX_DOT(instruction, 0, 4, 6);                                                                          \
            if (s->right) {                                                                                            \
                MATRIX_LOAD(7, right, (int64_t)64);                                                                    \
                MATRIX_DOT(instruction, 1, 4, 7);                                                                      \
            }                                                                                                          \
            if (s->lower) {                                                                                            \
                MATRIX_LOAD(5, lower, s->a_row);                                                                       \
                MATRIX_DOT(instruction, 2, 5, 6);                                                                      \
            }                                                                                                          \
            if (s->lower && s->right)                                                                                  \
                MATRIX_DOT(instruction, 3, 5, 7);                                                                      \
        }                                                                                                              \
    }
MATRIX_MULTIPLY(tdpbssd)
MATRIX_MULTIPLY(tdpbsud)
MATRIX_MULTIPLY(tdpbusd)
MATRIX_MULTIPLY(tdpbuud)
MATRIX_MULTIPLY(tdpbf16ps)

static void matrix_multiply(const matrix_sums *s, matrix_elements elements, const uint8_t *a, const uint8_t *b)
{
    char *to = s->to, *below = to + 16 * s->to_row;
    MATRIX_ZERO(0);
    MATRIX_ZERO(1);
    MATRIX_ZERO(2);
    MATRIX_ZERO(3);
    if (s->from) {
        const char *from = s->from, *from_below = from + 16 * s->from_row;
        MATRIX_LOAD(0, from, s->from_row);
        if (s->right)
            MATRIX_LOAD(1, from + 64, s->from_row);
        if (s->lower)
            MATRIX_LOAD(2, from_below, s->from_row);
        if (s->lower && s->right)
            MATRIX_LOAD(3, from_below + 64, s->from_row);
    }
    switch (elements) {
    case MATRIX_SIGNED_SIGNED: matrix_multiply_tdpbssd(s, a, b); break;
    case MATRIX_SIGNED_UNSIGNED: matrix_multiply_tdpbsud(s, a, b); break;
    case MATRIX_UNSIGNED_SIGNED: matrix_multiply_tdpbusd(s, a, b); break;
    case MATRIX_UNSIGNED_UNSIGNED: matrix_multiply_tdpbuud(s, a, b); break;
    case MATRIX_BFLOATS: matrix_multiply_tdpbf16ps(s, a, b); break;
    }
    MATRIX_STORE(0, to, s->to_row);
    if (s->right)
        MATRIX_STORE(1, to + 64, s->to_row);
    if (s->lower)
        MATRIX_STORE(2, below, s->to_row);
    if (s->lower && s->right)
        MATRIX_STORE(3, below + 64, s->to_row);
}
#endif
#endif
