/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the generator while it writes the code of one program. A value is what a load or an instruction gives, or a
 * constant of the generator's own; it is in a register, or has a home in memory from which it can be brought back, or both.
 *
 * With AVX-512 there are 32 vectors of 64 bytes, bools are in mask registers, and a mask register has the elements after the last
 * whole vector. With AVX2 there are 16 vectors of 32 bytes; a bool is all bits or none of an element of the widest type of the
 * program, so that bools of all comparisons have one form, and the elements after the last whole vector are in vectors on the stack
 * (avx2_memory.c). Private to kernels/x86. */
#ifndef OLY_X86_GENERATOR_H
#define OLY_X86_GENERATOR_H
#include "machine_code.h"
#include "table.h"
#include "x86/encode.h"

enum {
    MOST_INSTRUCTIONS = 256,
    MOST_SLOTS = 64,
    VECTORS = 0, /* kinds of registers */
    MASKS = 1,   /* k1 to k6 of AVX-512, which hold bools; k7 has the tail's elements. None with AVX2 */
    TAIL_MASK = 7,
    FREE = -1,
    WORKING = -2, /* a register that holds no value of the program */
    NEVER = INT16_MAX,
};

/* Constants of the generator's own, each in 8 bytes of which narrower elements use the first. */
typedef enum common_constant {
    ONE,
    ONE_I32,
    ONE_F32,
    ONE_F64,
    MINUS_ONE_F32,
    MINUS_ONE_F64,
    SIGN_32,
    SIGN_64,
    SIGNS_OF_PARTS, /* of a complex64 */
    MAGNITUDE_32,
    MAGNITUDE_64,
    INFINITY_F32,
    INFINITY_F64,
    BEYOND_I32_F32,
    BEYOND_I32_F64,
    BEYOND_I64_F32,
    BEYOND_I64_F64,
    BELOW_HALF_BF16, /* added to the bits of a float32, and 1 if bfloat16's last bit is set: rounds to even */
    QUIET_F32,
    UPPER_32,
    SIGN_16,
    MAGNITUDE_16,
    INFINITY_F16,
    ONE_F16,
    MINUS_ONE_F16,
    TWO_TO_16_F32,
    TWO_TO_52_F64,
    TWO_TO_84_F64,
    TWO_TO_84_AND_52_F64,
    TWO_TO_84_63_AND_52_F64, /* 2^84 + 2^63 + 2^52 */
    N_COMMON
} common_constant;
/* The numbers 0 to 15 as int32, the constants above, and 32 bytes of ones followed by 32 of zeros. */
enum { COMMON_ONES = 8 + N_COMMON, COMMON_WORDS = COMMON_ONES + 8 };
extern const uint64_t oly_code_common[COMMON_WORDS];

typedef enum home {
    NOWHERE,  /* only in its register: saved to a slot before that is used for something else */
    IN_ROW,   /* a vector operand: element i of the row */
    SCALAR,   /* an operand that is one element for the whole row */
    CONSTANT, /* of the program */
    COMMON,
    SLOT /* on the stack, all lanes */
} home;

typedef struct value {
    uint8_t dtype, home;
    int16_t which;          /* operand, constant or slot */
    int16_t reg;            /* -1: in none */
    int16_t next;           /* the next instruction that reads it */
    bool invariant, pinned; /* the same for a whole row; in its register for a whole row */
    int32_t uses;           /* by what is computed for each vector */
} value;

/* On the stack: slots, the caller's stack pointer; of AVX2, masks of the elements after the last whole vector, and a vector of those of
 * one or two bytes on their way. */
enum {
    FRAME_CALLER = 64 * MOST_SLOTS,
    FRAME_REST = FRAME_CALLER + 64,
    FRAME_SHORT = FRAME_REST + 64,
    FRAME = FRAME_SHORT + 64
};

enum { MOST_VALUES = OLY_TILE_REGISTERS + MOST_INSTRUCTIONS + N_COMMON };

typedef struct generator {
    x86_code code;
    const oly_tile_program *program;
    const oly_code_form *form;
    int lanes;   /* elements at a time: a vector of the widest */
    bool rest;   /* writing the code for the elements after the last whole vector */
    bool counts; /* writing the code for elements: uses are counted */
    bool failed;
    int n_values, first_common, n_operands;
    value value[MOST_VALUES];
    int16_t in[MOST_INSTRUCTIONS][3];   /* values */
    int16_t next[MOST_INSTRUCTIONS][3]; /* who reads them next */
    int16_t first_use[MOST_VALUES];
    int16_t counter[MOST_INSTRUCTIONS]; /* operands */
    int16_t stored[OLY_TILE_REGISTERS]; /* values */
    int16_t next_stored[OLY_TILE_REGISTERS];
    int16_t holds[2][32]; /* what each register holds */
    bool locked[2][32];   /* used by the instruction that is being written */
    int n_registers[2], most[2];
    bool slot_taken[MOST_SLOTS];
    int8_t pointer[OLY_CODE_OPERANDS]; /* the general register that has the operand's address; -1: none */
} generator;

/* -- values.c: registers ------------------------------------------------------------------------------------------------ */
/* A register for working in, until oly_x86_end_instruction. */
int oly_x86_take(generator *g, int kind);
/* The register that has the value, which stays there until oly_x86_end_instruction. */
int oly_x86_source(generator *g, int number);
/* The value as the last operand of an instruction: its register, or memory. again: it is read again later. */
x86_place oly_x86_operand(generator *g, int number, bool again);
/* A register for the value that is computed here. */
int oly_x86_result(generator *g, int number);
/* The result takes the register of an operand that is read for the last time. False: that is not so. */
bool oly_x86_replace(generator *g, int number, int operand, bool again);
int oly_x86_common(generator *g, common_constant which);
void oly_x86_end_instruction(generator *g);
void oly_x86_release(generator *g, int number);
void oly_x86_save(generator *g, int number);
/* No register holds anything but pinned values. */
void oly_x86_forget(generator *g);
/* Brings the value from its home. */
void oly_x86_bring(generator *g, int number, int reg);
void oly_x86_put(generator *g, int operand, int value);
x86_place oly_x86_call_field(size_t offset);
/* Are the operand's elements apart along rows? */
static inline bool is_strided(const generator *g, int operand)
{
    return g->form->strided[operand / 64] >> operand % 64 & 1;
}
/* Between float16 and float32 registers. */
void oly_x86_widen_half(generator *g, int to, int from);
void oly_x86_narrow_half(generator *g, int to, int from);
/* Rounds the float32 in a register to float16 or bfloat16. */
void oly_x86_round_half(generator *g, int dtype, int reg);

/* Does the code use arithmetic of float16? */
bool oly_x86_has_fp16(void);
/* bfloat16, and float16 without that arithmetic, are float32 in registers, rounded after each operation. */
static inline bool is_widened(int dtype)
{
    return dtype == OLY_BFLOAT16 || (dtype == OLY_FLOAT16 && !oly_x86_has_fp16());
}
static inline bool is_avx2(const generator *g)
{
    return !g->code.evex;
}
/* Bytes of the longest vectors. */
static inline int longest_vector(const generator *g)
{
    return is_avx2(g) ? 32 : 64;
}
/* Bytes of an element in a register. */
static inline int held_bytes(const generator *g, int dtype)
{
    if (dtype == OLY_BOOL && is_avx2(g))
        return longest_vector(g) / g->lanes;
    return is_widened(dtype) ? 4 : oly_element_bytes[dtype];
}
static inline int kind_of(const generator *g, int number)
{
    return g->value[number].dtype == OLY_BOOL && !is_avx2(g) ? MASKS : VECTORS;
}
/* Bytes of the vectors that hold elements of this size. */
static inline int vector_bytes(const generator *g, int element)
{
    int bytes = g->lanes * element;
    return bytes < 16 ? 16 : bytes;
}
/* Opcodes of conversions between integers of two sizes: the same order for all kinds. */
static inline int opcode_between(int shorter, int longer)
{
    return shorter == 4 ? 5 : shorter == 2 ? (longer == 4 ? 3 : 4) : longer == 2 ? 0 : longer == 4 ? 1 : 2;
}
static inline void emit(generator *g, uint32_t op, int wide, int bytes, int reg, int first, x86_place last)
{
    x86_emit(&g->code, &(x86_vector){.op = op,
                                     .wide = (uint8_t)wide,
                                     .bytes = (uint8_t)bytes,
                                     .reg = (uint8_t)reg,
                                     .first = (uint8_t)first,
                                     .immediate = -1,
                                     .last = last});
}
static inline void emit_immediate(generator *g, uint32_t op, int wide, int bytes, int reg, int first, x86_place last,
                                  int immediate)
{
    x86_emit(&g->code, &(x86_vector){.op = op,
                                     .wide = (uint8_t)wide,
                                     .bytes = (uint8_t)bytes,
                                     .reg = (uint8_t)reg,
                                     .first = (uint8_t)first,
                                     .immediate = immediate,
                                     .last = last});
}
static inline void emit_masked(generator *g, uint32_t op, int wide, int bytes, int mask, bool zeroing, int reg,
                               int first, x86_place last)
{
    x86_emit(&g->code, &(x86_vector){.op = op,
                                     .wide = (uint8_t)wide,
                                     .bytes = (uint8_t)bytes,
                                     .mask = (uint8_t)mask,
                                     .zeroing = zeroing,
                                     .reg = (uint8_t)reg,
                                     .first = (uint8_t)first,
                                     .immediate = -1,
                                     .last = last});
}
/* On k registers, all 64 bits. bytes 32: with two operands. */
static inline void emit_mask(generator *g, uint32_t op, int bytes, int reg, int first, x86_place last)
{
    x86_emit(&g->code, &(x86_vector){.op = op,
                                     .wide = 1,
                                     .bytes = (uint8_t)bytes,
                                     .reg = (uint8_t)reg,
                                     .first = (uint8_t)first,
                                     .vex = true,
                                     .immediate = -1,
                                     .last = last});
}

/* -- operations.c ---------------------------------------------------------------------------------------------------------- */
/* Can it write this instruction? */
bool oly_x86_knows(const generator *g, const oly_tile_instruction *c);
/* Writes instruction i. */
void oly_x86_operate(generator *g, int i);

/* Opcodes that several files use. */
enum {
    XOR = X86_OP(1, 1, 0xef),
    SHIFT_WORDS = X86_OP(1, 1, 0x71), /* by a number; the register field says where to */
    SHIFT_32 = X86_OP(1, 1, 0x72),
    SHIFT_64 = X86_OP(1, 1, 0x73),
    SHUFFLE = X86_OP(0, 1, 0xc6),           /* two floats of each operand within 16 bytes, by a number */
    BLEND = X86_OP(1, 3, 0x4c),             /* AVX2; by bytes: of the last operand where the mask has ones */
    WIDEN_UNSIGNED_32 = X86_OP(1, 2, 0x35), /* to 8 bytes */
    RIGHT = 2,
    LEFT = 6
};

/* -- strided.c --------------------------------------------------------------------------------------------------------------- */
/* Loads or stores the elements of a vector, one by one. */
void oly_x86_load_strided(generator *g, int reg, int operand, int element);
void oly_x86_store_strided(generator *g, int reg, int operand, int element);

/* -- avx2_memory.c ---------------------------------------------------------------------------------------------------------- */
/* Before the code for the elements after the last whole vector. */
void oly_avx2_start_rest(generator *g);
/* Loads or stores those elements. */
void oly_avx2_move_rest(generator *g, int reg, x86_place at, int element, bool store);
/* Loads or stores a whole vector of so many bytes: 4, 8, 16 or 32. */
void oly_avx2_move_whole(generator *g, int reg, x86_place at, int bytes, bool store);
void oly_avx2_bring_bools(generator *g, int reg, x86_place at);
void oly_avx2_bring_scalar_bool(generator *g, int reg, x86_place at);
/* Bools from bytes, and a register of bytes from bools. */
void oly_avx2_bytes_to_bools(generator *g, int reg, x86_place bytes);
int oly_avx2_bools_to_bytes(generator *g, int from);
/* A register of float16 or bfloat16, to which the elements of the float32 vector are rounded already. */
int oly_avx2_half(generator *g, int dtype, int reg);
/* Stores such a register, or one of bytes. */
void oly_avx2_put_short(generator *g, x86_place at, int from, int element);
/* Elements of a vector, numbers or bools, of another size: more bytes with their signs; fewer, their lower ones, into another
 * register. */
void oly_avx2_resize(generator *g, int to, int from, int from_size, int to_size, bool bools);
#endif
