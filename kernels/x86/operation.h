/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files that write operations share (operations.c, avx2.c, complex.c). Private to kernels/x86. */
#ifndef OLY_X86_OPERATION_H
#define OLY_X86_OPERATION_H
#include "x86/generator.h"

/* Predicates of comparing instructions. */
enum {
    EQUAL = 0,
    LESS = 1,
    LESS_EQUAL = 2,
    UNORDERED = 3,
    NOT_EQUAL = 4,
    NOT_LESS = 5,
    ABOVE = 6,
    FLOAT_GREATER_EQUAL = 13,
    FLOAT_GREATER = 14
};

/* What is being written: instruction i with operands in[], of elements of `size` bytes in vectors of `bytes`. */
typedef struct written {
    generator *g;
    int i, dtype, size, bytes, out;
    const int16_t *in;
    bool wide;
} written;

static inline bool is_float(int dtype)
{
    return dtype == OLY_FLOAT16 || dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64;
}
static inline bool is_signed(int dtype)
{
    return dtype >= OLY_INT8 && dtype <= OLY_INT64;
}
static inline bool is_whole(int dtype)
{
    return dtype >= OLY_INT8 && dtype <= OLY_UINT64;
}

static inline bool again(const written *w, int k)
{
    return w->g->next[w->i][k] != NEVER;
}
static inline int source(const written *w, int k)
{
    return oly_x86_source(w->g, w->in[k]);
}
static inline x86_place operand(const written *w, int k)
{
    return oly_x86_operand(w->g, w->in[k], again(w, k));
}
static inline int result(const written *w)
{
    return oly_x86_result(w->g, w->out);
}
static inline int common_register(const written *w, common_constant which)
{
    return oly_x86_source(w->g, oly_x86_common(w->g, which));
}
static inline uint32_t float_op(const written *w, int opcode)
{
    return w->size == 2 ? X86_OP(0, 5, opcode) : X86_OP(w->wide, 1, opcode);
}

/* A register of zeros, for working in. */
static inline int zeros(const written *w)
{
    int zero = oly_x86_take(w->g, VECTORS);
    emit(w->g, X86_OP(1, 1, 0xef), 0, w->bytes, zero, zero, x86_register(zero));
    return zero;
}

/* -- operations.c ---------------------------------------------------------------------------------------------------------- */
/* The opcode of an operation of one instruction; 0: there is none. */
uint32_t oly_x86_binary_op(int op, int dtype);
/* -1: it does not compare. */
int oly_x86_predicate(int op, int dtype);
/* The instruction that converts exactly as C does; *size: of the longer vectors' elements. wide: its bit. 0: none. */
uint32_t oly_x86_conversion(int from, int to, int *size, bool *wide);
void oly_x86_copy(const written *w, uint32_t op, int bytes);

/* -- avx2.c ------------------------------------------------------------------------------------------------------------------ */
/* Is there code of AVX2 for an instruction that AVX-512 has? */
bool oly_avx2_knows(const oly_tile_instruction *c);
/* Writes what AVX2 does otherwise than AVX-512. False: nothing, the two do it in the same way. */
bool oly_avx2_write(const written *w, const oly_tile_instruction *c);

/* -- complex.c --------------------------------------------------------------------------------------------------------------- */
/* Is there code for an instruction that has complex operands, or a complex result? */
bool oly_x86_knows_complex(const generator *g, const oly_tile_instruction *c);
/* Writes it. False: nothing, it is that of float64. */
bool oly_x86_write_complex(const written *w, const oly_tile_instruction *c);
static inline bool is_complex(const oly_tile_instruction *c)
{
    return c->dtype == OLY_COMPLEX64 || c->to == OLY_COMPLEX64;
}
#endif
