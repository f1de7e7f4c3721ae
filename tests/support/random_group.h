/* SPDX-License-Identifier: BSD-3-Clause */
/* Random tile programs on boxes of every form, of the operations and element types that machine code takes, for test_compiled_groups.c. */
#ifndef RANDOM_GROUP_H
#define RANDOM_GROUP_H
#include "kernel.h"

enum { MOST_LOADS = 4, MOST_STORES = 3, MOST_OPERATIONS = 24, REGISTERS = 60, ROOM = 1 << 15 };

enum { GROUP_TYPES = 15, GROUP_TYPES_WITH_CODE = GROUP_TYPES - 1 };
/* complex128, the last, has no code: it is among the others of programs that are computed in parts. */
extern const uint8_t random_group_types[GROUP_TYPES];

/* What is drawn. */
extern struct random_group_draws {
    /* the instruction set: with code for conversions of 64-bit integers and floats, without that for equal complex numbers */
    bool avx512;
    bool divided; /* programs have operations without code among the others */
    bool apart;   /* operands are transposed, backwards, with gaps; last dimensions are short */
} random_group_draws;

typedef struct random_group {
    oly_tile_instruction code[MOST_OPERATIONS];
    oly_tile_program program;
    int16_t load_register[MOST_LOADS], store_register[MOST_STORES];
    uint8_t load_dtype[MOST_LOADS], store_dtype[MOST_STORES];
    uint8_t dtype[REGISTERS]; /* of each register; 255: nothing */
    /* of this program: few, so that operations find operands, and vectors of every length occur */
    uint8_t types[GROUP_TYPES];
    int n_types;
    int n, registers;
    int chunks; /* in which it is to run */
    oly_tile_box box;
    oly_tile_operand loads[MOST_LOADS], stores[MOST_STORES];
    bool in_place; /* the first store is in the memory of the first load */
    bool apart;    /* operands may be transposed, backwards or with gaps */
} random_group;

extern char random_group_input[MOST_LOADS][ROOM * 16], random_group_output[2][MOST_STORES][ROOM * 16];

/* A number from 0 to n - 1, of the sequence that the last program was drawn from. */
int random_group_number(int n);
/* The program of this seed, with its operands: loads are in the input, stores in the first output. */
void random_group_draw(random_group *c, uint64_t seed);
bool random_group_is_half(int dtype); /* float16, bfloat16 */
/* Is code written for this conversion? */
bool random_group_is_converted(int from, int to);
#endif
