/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with operations that the code generator does not know, such as exp or tanh: divided into parts that are computed one after the
 * other over short pieces of rows, which stay in L1. A part is either machine code for all operations between two such (machine_code.h),
 * or one operation's kernel (oly_tile_instruction_run). Part of the interface of kernels/; called by runtime/run/compiled_groups.c, which owns
 * the memory of the code. Same bits as the interpreter, which has one kernel call for every operation instead. */
#ifndef OLY_CODE_PARTS_H
#define OLY_CODE_PARTS_H
#include "machine_code.h"

enum { OLY_MOST_PARTS = 40, OLY_MOST_PART_PLACES = 240, OLY_MOST_PART_PAIRS = 128 };

/* Where a part finds an operand, or puts a result. */
typedef struct oly_part_place {
    uint8_t kind;   /* oly_part_kind */
    uint8_t moves;  /* bytes from one element of a row to the next; 0: one element for the whole row */
    int16_t number; /* of the operand, the slot or the instruction */
} oly_part_place;
typedef enum oly_part_kind {
    OLY_PART_OPERAND, /* a load, store or counter of the whole program */
    OLY_PART_SLOT,    /* between parts */
    OLY_PART_SPLAT    /* the value of an instruction of the whole program */
} oly_part_kind;

typedef struct oly_code_part {
    bool is_code;
    size_t at;                     /* of the code, in bytes after the first one's */
    oly_code_outline outline;      /* its constants are numbered as in the whole program */
    int16_t instruction;           /* of a kernel */
    uint8_t scalars;               /* bit k: operand k is one element for the whole row */
    bool once;                     /* all are: so is the result */
    int16_t first_place, n_places; /* code: operands as in oly_code_call; a kernel: operands, then the result */
} oly_code_part;

typedef struct oly_code_parts {
    int n_parts, n_places, n_slots, slot_element; /* bytes of the largest element in a slot */
    int16_t last_read[OLY_CODE_OPERANDS];         /* of a load: the last part that reads it; -1: none */
    int16_t written[OLY_CODE_OPERANDS];           /* of a store: the part that writes it */
    int n_pairs; /* of a load and a store that is written before it is read for the last time; */
    uint8_t pair[OLY_MOST_PART_PAIRS][2]; /* more than there is room for are not listed */
    oly_code_part part[OLY_MOST_PARTS];
    oly_part_place place[OLY_MOST_PART_PLACES];
} oly_code_parts;

/* Writes the code of all parts to `bytes`; returns its length. 0: the program gains nothing or cannot be divided, and is left to the
 * interpreter. Does not allocate. */
size_t oly_code_parts_write(const oly_tile_program *program, const oly_code_form *form, oly_code_parts *parts,
                            uint8_t *bytes, size_t room);
/* Computes the whole box, whose code begins at `code`. False: nothing was done, because rows are short or a store is written before a load of
 * the same memory is read for the last time. */
bool oly_code_parts_run(const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                        const oly_code_box *b);
/* A box without counters that is one row of n elements; first[]: of loads, then of stores. */
bool oly_code_parts_run_row(const oly_code_parts *parts, const uint8_t *code, const oly_tile_program *program,
                            char *const *first, int64_t n);
#endif
