/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps seen as work on rows: what a tile program, a reduction or a lookup reads and writes for each index of some dimensions, which are
 * the first ones of what it computes, or the last one ("columns": the rows are strided then). For chains of rows, which the planner
 * finds (schedule/row_chains.c) and the executor for CPUs runs (run/row_blocks.c). */
#ifndef OLY_PLAN_MODEL_ROW_OPERANDS_H
#define OLY_PLAN_MODEL_ROW_OPERANDS_H
#include "plan/model/steps.h"

enum { OLY_ROW_STEPS = 20, OLY_ROW_OPERANDS = 32 }; /* the most of a chain, and of a step */

typedef struct oly_row_operand {
    int cell;
    int64_t offset;               /* bytes: row 0, element 0 */
    int64_t stride[OLY_MAX_RANK]; /* bytes, along the `lead` dimensions of the rows */
    int64_t low, high;            /* bytes from `offset` on that are used of row 0 */
    int64_t elements;             /* of a row, those that a stride of 0 repeats counted once */
    int64_t bytes;                /* of an element */
    int64_t
        line; /* columns: the bytes that the strides of all other dimensions are multiples of; 0: there is only one number for each column */
    bool writes;
    bool whole; /* any row may read any of it: what is looked up; or write any of it: */
    bool sink;  /* what a scatter writes, what it begins with, and updates that are one number */
} oly_row_operand;

typedef struct oly_rows {
    int lead;
    bool columns;                 /* the last dimension instead of the first `lead` ones; lead is 1 */
    int64_t extent[OLY_MAX_RANK]; /* [lead] */
} oly_rows;

/* Does the device read elements at positions known only at run time, one result for each (a gather, a search)? */
bool oly_looks_up(const oly_step *s, int device);
/* Does it write elements at such positions (a scatter)? Then rows come in order, one after the other, and it is the last step of its chain, or
 * is what that step begins with filled before it (oly_step.begins_next)? */
bool oly_is_sink(const oly_step *s, int device);
/* The rows of steps that may be a chain, by the first of them that says: false if none does. */
bool oly_rows_of_steps(const oly_step *steps, int n, int device, oly_row_kind kind, oly_rows *rows);
int64_t oly_rows_count(const oly_rows *rows);
/* The operands of a device's share, and how many; 0: the step does not compute row by row with these rows, or has too many. */
int oly_row_operands_of(const oly_step *s, int device, const oly_rows *rows, oly_row_operand *operands);
/* Do both, of which one or both are written and the second one begins so many bytes after the first, use memory of the same row only for
 * the same row? */
bool oly_rows_match(const oly_rows *rows, const oly_row_operand *a, const oly_row_operand *b, int64_t apart);
/* Bytes of a row that the operand uses; of what is looked up it is not known which: 0. */
int64_t oly_row_used(const oly_rows *rows, const oly_row_operand *a);
/* Does the device look up several results for each column? The kernel writes those side by side, which is their place only in memory that
 * nothing but the chain uses. */
bool oly_writes_lines(const oly_step *s, int device);
/* Is it one product of two loads of this type? */
bool oly_multiplies_loads(const oly_step *s, oly_dtype dtype);
/* Bytes from a row to the next, if that is the same between all of them; 0: it is not. */
int64_t oly_row_bytes(const oly_rows *rows, const oly_row_operand *a);
#endif
