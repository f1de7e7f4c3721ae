/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes single instructions of x86-64 with AVX2 (VEX) or AVX-512 (EVEX) into a buffer. Only what the generator needs.
 * Private to kernels/x86. */
#ifndef OLY_X86_ENCODE_H
#define OLY_X86_ENCODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct x86_code {
    uint8_t *bytes;
    size_t room, used; /* used > room: it did not fit */
    bool evex;         /* AVX-512 encodings of vector instructions */
} x86_code;

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_INDEX = RSP };

/* The last operand of an instruction: a register, or memory at base + index * scale + displacement. */
typedef struct x86_place {
    bool memory, broadcast; /* broadcast: one element for all lanes (EVEX) */
    uint8_t reg;            /* the register, or the base */
    uint8_t index, scale;   /* scale: log2 */
    int32_t displacement;
} x86_place;

static inline x86_place x86_register(int reg)
{
    return (x86_place){.reg = (uint8_t)reg, .index = NO_INDEX};
}
static inline x86_place x86_memory(int base, int32_t displacement)
{
    return (x86_place){.memory = true, .reg = (uint8_t)base, .index = NO_INDEX, .displacement = displacement};
}

/* Opcodes of vector instructions: prefix (0: none, 1: 66, 2: F3, 3: F2), map (1: 0F, 2: 0F38, 3: 0F3A; EVEX
 * alone: 5, float16), opcode. */
#define X86_OP(prefix, map, opcode) ((uint32_t)((prefix) | (map) << 2 | (opcode) << 8))

typedef struct x86_vector {
    uint32_t op;
    uint8_t wide;  /* the bit W */
    uint8_t bytes; /* of the vectors: 16, 32, 64 */
    uint8_t reg;   /* the first operand */
    uint8_t first; /* the second, in front of the last */
    uint8_t mask;  /* k register; 0: none */
    bool zeroing;
    bool vex;      /* even in AVX-512 code: instructions on k and general registers */
    int immediate; /* -1: none */
    x86_place last;
} x86_vector;

/* What VEX has no encoding for (masks, broadcast memory, 64 bytes, registers above 15) makes the code too long. */
void x86_emit(x86_code *c, const x86_vector *i);

/* Of general registers, 64 bits. */
void x86_byte(x86_code *c, uint8_t byte);
void x86_push(x86_code *c, int reg);
void x86_pop(x86_code *c, int reg);
void x86_move(x86_code *c, int to, int from);
void x86_load(x86_code *c, int to, x86_place from);
void x86_load_part(x86_code *c, int to, x86_place from, int bytes); /* 1, 2, 4 or 8; the others become zero */
void x86_store(x86_code *c, x86_place to, int from);
void x86_store_part(x86_code *c, x86_place to, int from, int bytes); /* 1, 2, 4 or 8 */
void x86_add_number(x86_code *c, int reg, int32_t number);
void x86_add_to_memory(x86_code *c, x86_place to, int from);
void x86_and_number(x86_code *c, int reg, int32_t number);
void x86_clear(x86_code *c, int reg);
void x86_subtract(x86_code *c, int reg, x86_place from);
void x86_add(x86_code *c, int reg, x86_place from);
void x86_multiply(x86_code *c, int reg, x86_place by);
void x86_address(x86_code *c, int reg, x86_place of); /* the address, not what is there */
void x86_shift(x86_code *c, int reg, int bits);       /* to the left; negative: to the right, zeros come in */
void x86_set(x86_code *c, int reg, uint64_t number);
void x86_test(x86_code *c, int reg);
void x86_test_bits(x86_code *c, x86_place memory, uint8_t bits); /* of its lowest byte */
void x86_compare(x86_code *c, int reg, x86_place with);
void x86_compare_number(x86_code *c, x86_place memory, int32_t with);
void x86_count_down(x86_code *c, x86_place memory);
void x86_return(x86_code *c);

typedef enum x86_condition {
    X86_BELOW = 2,
    X86_NOT_BELOW = 3,
    X86_ZERO = 4,
    X86_NOT_ZERO = 5,
    X86_NOT_ABOVE = 6
} x86_condition;
/* Forward jumps return a place for x86_land; backward ones go to a position. */
size_t x86_jump(x86_code *c, x86_condition condition);
void x86_land(x86_code *c, size_t jump);
void x86_jump_back(x86_code *c, x86_condition condition, size_t to);
#endif
