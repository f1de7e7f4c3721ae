/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine code of tile programs: one loop over registers instead of one kernel call for each operation and tile. Part of
 * the interface of kernels/ (kernel.h); called by runtime/run/compiled_groups.c, which owns the memory of the code. Code gives
 * the same bits as the interpreter (oly_tile_run). What it cannot do, other operations, element types or processors, is
 * left to the interpreter. */
#ifndef OLY_MACHINE_CODE_H
#define OLY_MACHINE_CODE_H
#include "kernel.h"
#include <string.h>

#define OLY_CODE_OPERANDS  96 /* loads, stores and counters of a program */
#define OLY_CODE_CONSTANTS 64
#define OLY_CODE_BYTES     65536 /* the longest code */
#define OLY_CODE_EXPANDED  8     /* operands of a box that are copied */

/* What code depends on besides the program's instructions (constants are no part of it). */
typedef struct oly_code_form {
    uint64_t scalar[2];  /* bit k: operand k is one element for a whole row; operands: loads, stores, counters */
    uint64_t strided[2]; /* bit k: the elements of operand k, a load or store, are apart (or go backwards) along rows */
} oly_code_form;

/* What code is called with: rows of n elements. Code changes `rows` and `at`. */
typedef struct oly_code_call {
    int64_t n, whole; /* elements of a row; those in whole vectors */
    int64_t rest;     /* n - whole */
    uint64_t tail;    /* bit k: element `whole` + k exists */
    int64_t rows;
    const void *common;                /* oly_code_common */
    char *at[OLY_CODE_OPERANDS];       /* first element of the row; of a counter: its value there */
    int64_t step[OLY_CODE_OPERANDS];   /* added to `at` after each row */
    int64_t stride[OLY_CODE_OPERANDS]; /* of strided ones: bytes from one element of the row to the next */
    uint64_t constant[OLY_CODE_CONSTANTS];
} oly_code_call;
typedef void oly_code(oly_code_call *call);

/* Code with what calls of it need to know. */
typedef struct oly_code_outline {
    int lanes;       /* elements of a vector: a power of two */
    int n_constants; /* of the splats numbered constant[] */
    uint16_t constant[OLY_CODE_CONSTANTS];
} oly_code_outline;

/* Is there a generator for the instruction set that has been chosen? */
bool oly_code_available(void);
/* May elements of operands be so far apart along rows? With AVX-512 within a cache line: farther ones, such as those of a transposed operand,
 * the interpreter moves in tiles, in a third of the time. */
bool oly_code_strides(int64_t bytes);
/* Is float16 computed as such, where the processor can? For tests: with false it is computed as float32. Returns the setting before. */
bool oly_code_use_fp16(bool use);
/* Is there code for this instruction, with the instruction set that has been chosen? */
bool oly_code_knows(const oly_tile_instruction *c);
/* Writes the code to `bytes`; returns its length, 0 if it is left to the interpreter. Does not allocate. */
size_t oly_code_write(const oly_tile_program *program, const oly_code_form *form, oly_code_outline *outline,
                      uint8_t *bytes, size_t room);

/* What the code needs in memory. */
const void *oly_code_table(void);

/* A call of n elements, and of this program's constants. */
static inline void oly_code_set_length(oly_code_call *call, const oly_code_outline *outline, int64_t n)
{
    call->n = n;
    call->whole = n & -(int64_t)outline->lanes;
    call->rest = n - call->whole;
    call->tail = ((uint64_t)1 << call->rest) - 1;
}
static inline void oly_code_set_constants(oly_code_call *call, const oly_code_outline *outline,
                                          const oly_tile_program *program)
{
    for (int k = 0; k < outline->n_constants; k++)
        memcpy(&call->constant[k], &program->instructions[outline->constant[k]].value, sizeof call->constant[k]);
}

/* A box as rows of rows: what is the same for all chunks. */
typedef struct oly_code_box {
    int rank, n_operands, n_memory; /* n_memory: loads and stores, which come first */
    int64_t piece;                  /* elements of a row that are computed in all rows around it before the next ones */
    int64_t extent[OLY_MAX_RANK];
    int64_t stride[OLY_CODE_OPERANDS][OLY_MAX_RANK]; /* in bytes; of counters: of the value */
    char *base[OLY_CODE_OPERANDS];
    uint8_t element[OLY_CODE_OPERANDS]; /* bytes; of counters: 1 */
    int first_row; /* rows go along all dimensions from this one on; `piece` counts its indexes, if it is not the last */
    uint64_t expanded[2]; /* then, bit k: operand k is copied to rows of adjacent elements (expanded_rows.c) */
} oly_code_box;
extern bool oly_code_may_decline; /* tests set it to false, to compile what the interpreter does better, too */
/* Merges dimensions, and chooses the one along which rows go. False: the interpreter must do it (counters beyond 32 bits or that skip
 * numbers), or does it better (operands in short rows, each of which would be copied). */
bool oly_code_prepare(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                      const oly_tile_operand *stores, oly_code_box *b, oly_code_form *form);
/* Indexes of the first dimension of rows that are computed at once, of a box with such operands; 0: not even one. */
int64_t oly_code_expanded_piece(const oly_code_box *b);
/* Calls `row` for all rows, piece by piece, with the first element of each operand. */
typedef void oly_code_row(void *context, char *const *first, int64_t n);
void oly_code_expand(const oly_code_box *b, oly_code_row *row, void *context);
/* Computes chunk `chunk` of `n_chunks`, as oly_tile_run. */
void oly_code_run(oly_code *code, const oly_code_outline *outline, const oly_tile_program *program,
                  const oly_code_box *b, int chunk, int n_chunks);
/* A box without counters and strides that is one row of n elements; first[]: of loads, then of stores. */
void oly_code_run_row(oly_code *code, const oly_code_outline *outline, const oly_tile_program *program,
                      char *const *first, int64_t n);
#endif
