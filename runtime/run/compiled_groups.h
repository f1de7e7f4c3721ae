/* SPDX-License-Identifier: BSD-3-Clause */
/* Tile programs as machine code: made when a program has computed enough to be worth it, kept in a table of bounded size, and
 * used by all plans and threads. Everything else, and everything where memory cannot be made executable, is interpreted; bits
 * are the same. Called by executor_cpu.c and time_tiling_run.c. */
#ifndef OLY_RUN_COMPILED_GROUPS_H
#define OLY_RUN_COMPILED_GROUPS_H
#include "kernel.h"
#include "machine_code.h"
#include <stdatomic.h>

/* As oly_tile_run. */
void oly_group_run(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                   const oly_tile_operand *stores, int chunk, int n_chunks);

/* The code of one group that computes the whole of one box as a single row: remembered from run to run, so that small steps neither look for
 * it nor merge dimensions again. Begins as zeros but for the program. */
typedef struct oly_group_known {
    const oly_tile_program *program;
    _Atomic(uint64_t) code; /* compiled_groups.c's; 0: not known */
    _Atomic(int64_t) n;     /* elements of the row */
    _Atomic(bool) is_left;  /* to the interpreter, if it is small */
} oly_group_known;
static inline bool oly_group_is_known(const oly_group_known *known)
{
    return atomic_load_explicit(&known->code, memory_order_relaxed) != 0;
}
/* As oly_group_run with one chunk; and notes the code, if it is such a one. */
void oly_group_run_noting(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                          const oly_tile_operand *stores, oly_group_known *known);
/* Runs it again with other memory: the first elements of loads and then of stores. False: it is not known, or not any more. */
bool oly_group_run_known(oly_group_known *known, char *const *first);

/* The code itself, for many runs with other memory: nobody replaces it until it is let go. */
typedef struct oly_group_held {
    oly_code *code;
    void *entry; /* compiled_groups.c's */
} oly_group_held;
/* Holds known code, and writes what its calls have in common: all but `rows`, `at` and `step`. False: it is not known (any more), or is no single
 * loop. */
bool oly_group_hold(oly_group_known *known, oly_group_held *held, oly_code_call *call);
/* After so many runs. */
void oly_group_let_go(oly_group_held *held, int64_t runs);

/* A whole box whose rows are parts of larger ones: a single operation gains too. */
void oly_group_run_rows(const oly_tile_program *program, const oly_tile_box *box, const oly_tile_operand *loads,
                        const oly_tile_operand *stores);

typedef struct oly_group_counts {
    int64_t compiled, refused; /* programs; refused: left to the interpreter */
    int64_t runs;              /* calls of machine code; about, where threads call it at once */
    int64_t bytes;             /* of executable memory */
    int64_t ticks;             /* nanoseconds of processor time spent on making code */
} oly_group_counts;
oly_group_counts oly_group_counted(void);
/* Element operations that a program computes before it is compiled; for tests. Returns what it was. */
int64_t oly_group_compile_after(int64_t work);
/* Forgets all code. No program may run. */
void oly_group_forget(void);
#endif
