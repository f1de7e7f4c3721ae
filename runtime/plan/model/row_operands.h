/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps seen as work on rows: what a tile program or a reduction of the last dimensions reads and writes for each index of the first `lead`
 * dimensions. For chains of rows, which the planner finds (schedule/row_chains.c) and the executor for CPUs runs (run/row_blocks.c). */
#ifndef OLY_PLAN_MODEL_ROW_OPERANDS_H
#define OLY_PLAN_MODEL_ROW_OPERANDS_H
#include "plan/model/steps.h"

enum { OLY_ROW_OPERANDS = 12 }; /* the most of a step */

typedef struct oly_row_operand {
    int cell;
    int64_t offset;               /* bytes: row 0, element 0 */
    int64_t stride[OLY_MAX_RANK]; /* bytes, along the first `lead` dimensions */
    int64_t low, high;            /* bytes from `offset` on that are used of row 0 */
    int64_t elements;             /* of a row, those that a stride of 0 repeats counted once */
    bool writes;
} oly_row_operand;

typedef struct oly_rows {
    int lead;
    int64_t extent[OLY_MAX_RANK]; /* [lead] */
} oly_rows;

/* The kept dimensions of a reduction of the last dimensions on a device: false if it is none, or needs a second phase. */
bool oly_rows_of(const oly_reduce_work *w, oly_rows *rows);
int64_t oly_rows_count(const oly_rows *rows);
/* The operands of a device's share, and how many; 0: the step does not compute row by row with these rows, or has too many. */
int oly_row_operands_of(const oly_step *s, int device, const oly_rows *rows, oly_row_operand *operands);
/* Do both, which begin at the same address and of which one or both are written, use memory of the same row only for the same row? */
bool oly_rows_match(const oly_rows *rows, const oly_row_operand *a, const oly_row_operand *b);
/* Bytes from a row to the next, if that is the same between all of them; 0: it is not. */
int64_t oly_row_bytes(const oly_rows *rows, const oly_row_operand *a);
#endif
