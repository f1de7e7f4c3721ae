/* SPDX-License-Identifier: BSD-3-Clause */
/* AMX: eight registers of 16 rows of 64 bytes, and their products of bytes with sums of 32 bits. As instructions in text, so that files
 * compiled for processors without it can have them. For gemm_bytes.c alone; empty where the assembler may not know them. */
#ifndef OLY_CPU_MATRIX_REGISTERS_H
#define OLY_CPU_MATRIX_REGISTERS_H
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__) && (__GNUC__ >= 11 || defined(__clang__))
#define OLY_HAS_MATRIX_REGISTERS 1

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

/* 2 x 2 registers of sums of c, or fewer. */
typedef struct matrix_sums {
    int64_t steps; /* of 64 bytes */
    int32_t *c;
    int64_t c_row;     /* bytes */
    bool more;         /* c has the sums so far */
    bool lower, right; /* the second of each are there */
} matrix_sums;

#define MATRIX_LOAD(number, from, row)                                                                                 \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #number ::"r"(from), "r"(row) : "memory")
#define MATRIX_STORE(number, to, row)                                                                                  \
    __asm__ volatile("tilestored %%tmm" #number ", (%0,%1,1)" ::"r"(to), "r"(row) : "memory")
#define MATRIX_ZERO(number) __asm__ volatile("tilezero %%tmm" #number::)

/* sum += a b; s and u: whether bytes of a and of b have a sign. */
#define MATRIX_DOT(signs, sum, a, b) __asm__ volatile("tdpb" #signs "d %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

/* a and b: registers one after the other, those of the second rows or columns `steps` further. */
#define MATRIX_MULTIPLY(signs)                                                                                         \
    static void matrix_multiply_##signs(const matrix_sums *s, const uint8_t *a, const uint8_t *b)                      \
    {                                                                                                                  \
        const uint8_t *lower = a + s->steps * 1024, *right = b + s->steps * 1024;                                      \
        for (int64_t k = 0; k < s->steps; k++, a += 1024, b += 1024, lower += 1024, right += 1024) {                   \
            MATRIX_LOAD(4, a, (int64_t)64);                                                                            \
            MATRIX_LOAD(6, b, (int64_t)64);                                                                            \
            MATRIX_DOT(signs, 0, 4, 6);                                                                                \
            if (s->right) {                                                                                            \
                MATRIX_LOAD(7, right, (int64_t)64);                                                                    \
                MATRIX_DOT(signs, 1, 4, 7);                                                                            \
            }                                                                                                          \
            if (s->lower) {                                                                                            \
                MATRIX_LOAD(5, lower, (int64_t)64);                                                                    \
                MATRIX_DOT(signs, 2, 5, 6);                                                                            \
            }                                                                                                          \
            if (s->lower && s->right)                                                                                  \
                MATRIX_DOT(signs, 3, 5, 7);                                                                            \
        }                                                                                                              \
    }
MATRIX_MULTIPLY(ss)
MATRIX_MULTIPLY(su)
MATRIX_MULTIPLY(us)
MATRIX_MULTIPLY(uu)

static void matrix_multiply(const matrix_sums *s, bool a_signed, bool b_signed, const uint8_t *a, const uint8_t *b)
{
    char *c = (char *)s->c, *below = c + 16 * s->c_row;
    MATRIX_ZERO(0);
    MATRIX_ZERO(1);
    MATRIX_ZERO(2);
    MATRIX_ZERO(3);
    if (s->more) {
        MATRIX_LOAD(0, c, s->c_row);
        MATRIX_LOAD(1, c + 64, s->c_row);
        MATRIX_LOAD(2, below, s->c_row);
        MATRIX_LOAD(3, below + 64, s->c_row);
    }
    if (a_signed)
        (b_signed ? matrix_multiply_ss : matrix_multiply_su)(s, a, b);
    else
        (b_signed ? matrix_multiply_us : matrix_multiply_uu)(s, a, b);
    MATRIX_STORE(0, c, s->c_row);
    MATRIX_STORE(1, c + 64, s->c_row);
    MATRIX_STORE(2, below, s->c_row);
    MATRIX_STORE(3, below + 64, s->c_row);
}
#endif
#endif
