/* SPDX-License-Identifier: BSD-3-Clause */
/* What the text of a row chain's kernel depends on. Private to row_chain.c and row_chain_text.c. */
#ifndef OLY_CUDA_ROW_CHAIN_FORM_H
#define OLY_CUDA_ROW_CHAIN_FORM_H
#include "core/text.h"
#include "cuda/row_chain.h"

enum {
    OLY_ROW_VALUES = 40,
    OLY_ROW_OPERANDS = 16, /* loads of a group, and stores */
    OLY_ROW_UNIT = 4096,   /* elements of a row that a unit computes: a block of reductions (reduce_blocks.cu) */
    OLY_ROW_PHASES = 6,
};

typedef enum oly_row_level {
    OLY_ROW_EACH, /* an element for each row, or one for all */
    OLY_ROW_FULL  /* one for each element of the box */
} oly_row_level;
typedef enum oly_row_memory {
    OLY_ROW_NONE,
    OLY_ROW_LOADED,
    OLY_ROW_STORED,
    OLY_ROW_PARTIAL /* a reduction's results of pieces, in scratch memory */
} oly_row_memory;

/* A value: read from memory, or computed by a part. Phases: the elements of a unit are computed in several sweeps; before sweep p, what
 * reductions of sweep p - 1 gave is there, and groups over rows are computed. */
typedef struct oly_row_value {
    uint8_t dtype, level, memory;
    bool dense;      /* in the last dimension; else the same along it */
    bool one;        /* for all rows */
    int8_t from, to; /* phases: there from, read until */
    int8_t reduced;  /* the last phase whose reductions read it; -1: none */
    int8_t slot;     /* in shared memory; -1: none */
    bool flushed;    /* of short rows: written from there, by the whole block */
    bool used;       /* by a step */
    bool padded;     /* read with bounds; outside: the value `fill` */
    int8_t fill;
    uint8_t
        skew; /* padded: by how many elements the first one of a thread is behind one of the operand that is aligned */
} oly_row_value;

typedef struct oly_row_step {
    bool reduces;
    uint8_t level, phase, combiner;
    int8_t load[OLY_ROW_OPERANDS], store[OLY_ROW_OPERANDS]; /* values; a reduction's are the first ones */
    int8_t result;                                          /* of a reduction: its number */
} oly_row_step;

/* Without addresses and extents; no byte of it is left undefined, since it is part of a key. */
typedef struct oly_row_form {
    int8_t n_parts, n_values, n_results, n_phases, n_slots;
    uint8_t rank, kept; /* merged dimensions; the first ones number rows */
    uint8_t width;      /* adjacent elements of a thread */
    uint8_t batch;      /* how many such at a time */
    uint8_t blocks;     /* that have room on a processor */
    bool small;         /* numbers of elements and offsets fit 31 bits */
    bool pieces;        /* rows are longer than a unit */
    bool last;          /* and the last block joins their results */
    uint16_t threads;   /* of a unit; 1: rows are short, and reduced one element after the other */
    uint8_t slot_dtype[OLY_ROW_VALUES];
    oly_row_step parts[OLY_ROW_PARTS];
    oly_row_value values[OLY_ROW_VALUES];
} oly_row_form;

typedef struct oly_row_chain {
    oly_row_form form;
    const oly_cuda_row_part *parts;
    int64_t rows, n, unit; /* elements of a row, and of a unit */
    int64_t extent[OLY_MAX_RANK];
    int64_t joined;               /* form.last: parts of a row whose results are joined last */
    int64_t joining;              /* and the bytes of shared memory that this takes */
    uint32_t *ticket;             /* form.last */
    char *between[OLY_ROW_PARTS]; /* otherwise: memory for the results of the next stage */
    char *base[OLY_ROW_VALUES];
    int64_t stride[OLY_ROW_VALUES][OLY_MAX_RANK];
    int64_t low[OLY_ROW_VALUES][OLY_MAX_RANK], count[OLY_ROW_VALUES][OLY_MAX_RANK]; /* bounds of padded values */
} oly_row_chain;

/* The task, in the order of the text's struct; returns its bytes, 0: too large. capacity: elements of a slot. */
size_t oly_row_chain_task(const oly_row_chain *c, int64_t capacity, void *task);
/* NULL: out of memory. */
char *oly_row_chain_text(const oly_row_chain *c);
#endif
