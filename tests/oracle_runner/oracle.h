/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of the oracle runner (tests/oracle_runner, one program: build/tests/oracle). A checker runs one
 * case through Olympus's public functions and records the outcome. Every rank runs every case. */
#ifndef ORACLE_H
#define ORACLE_H
#include "check_oracle.h"
#include <olympus.h>
#include <stdio.h>

/* A running case. It has passed unless something is recorded. */
typedef struct oracle_run {
    const oracle_family *family;
    const oracle_case *c;
    bool failed, skipped;
    char reason[2048]; /* why it failed or was skipped; else what --verbose prints */
} oracle_run;

/* Record the outcome and return false. The first few failures of a case are kept; a skipped case has one reason, which
 * should be the same text for all cases skipped for it. */
bool oracle_fail(oracle_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool oracle_skip(oracle_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Olympus deliberately accepts what JAX refuses, and the result was checked: --verbose names the case. */
void oracle_extension(oracle_run *run, const char *what);
/* Failed, for the reason Olympus gives. */
bool oracle_fail_call(oracle_run *run, const char *what);

/* -- oracle_compare.c ------------------------------------------------------------------------------------------------ */

/* Compares an array (gathered from all ranks) with an `out` line of the case. `how` names the way it was computed. */
bool oracle_compare(oracle_run *run, const oracle_line *out, oracle_array expected, oly_array got, const char *how);
/* Compares the printed text with that of the case. */
bool oracle_compare_text(oracle_run *run, const char *what, const char *expected, const char *got);

/* -- oracle_place.c -------------------------------------------------------------------------------------------------- */

/* The mesh of the case; skips if it needs more devices than there are. *mesh is NULL if the case has none. */
bool oracle_mesh(oracle_run *run, oly_mesh *mesh);
/* The arrays of all `in` lines on their devices, at most `most`; returns how many, -1 if the case cannot continue. */
int oracle_inputs(oracle_run *run, oly_mesh mesh, oly_array *inputs, int most);
/* "i,j" of "P(i,j)"; NULL for "-". */
oly_sharding oracle_sharding(oly_mesh mesh, const char *spec);

/* -- oracle_program.c: the statements of a case ---------------------------------------------------------------------- */
enum { ORACLE_MOST_INPUTS = 16, ORACLE_MOST_VALUES = 128, ORACLE_MOST_OUTPUTS = 16 };

typedef struct oracle_program {
    oracle_run *run;
    oly_mesh mesh; /* NULL: none */
    int n_in, n_out;
    oly_array in[ORACLE_MOST_INPUTS];
    const char *results; /* the keyword of the lines that name results: "out", "ret" */
    /* The values that statements have named so far. */
    int n_values;
    const char *name[ORACLE_MOST_VALUES]; /* of `length` characters */
    int length[ORACLE_MOST_VALUES];
    oly_array value[ORACLE_MOST_VALUES];
} oracle_program;

/* False, with the reason recorded: skipped because Olympus lacks something the case needs. */
bool oracle_program_possible(oracle_run *run);
/* Places the operands; false if the case cannot continue. */
bool oracle_program_begin(oracle_program *p, oracle_run *run, const char *results);
/* Runs all statements; out[] in the order of the result lines, NULL where Olympus refused. An oly_function. */
void oracle_program_run(const oly_array *in, oly_array *out, void *program);
/* The same step by step: starts from the operands alone; adds the results of one `let` line (false: refused). */
void oracle_program_operands(oracle_program *p, const oly_array *in);
bool oracle_program_state(oracle_program *p, const oracle_line *line);
/* The value of that name, NULL if there is none. */
oly_array oracle_program_find(const oracle_program *p, const char *name);

/* -- oracle_promote.c ------------------------------------------------------------------------------------------------ */

/* Checks the table of promotions of a folder; false if there is none. */
bool oracle_check_promotions(oracle_run *run, const char *folder);

/* -- the checkers ---------------------------------------------------------------------------------------------------- */
void oracle_check_toy(oracle_run *run);                  /* oracle_text.c: shards and a sum as text */
void oracle_check_viz(oracle_run *run);                  /* oracle_text.c: drawings of shardings */
void oracle_check_print(oracle_run *run);                /* oracle_text.c: str and repr */
void oracle_check_heat(oracle_run *run);                 /* oracle_heat.c: stencils in loops */
void oracle_check_gradient(oracle_run *run);             /* oracle_gradient.c: values and derivatives */
void oracle_check_pullback(oracle_program *p, oly_fn f); /* oracle_gradient.c: cotangents, for a case as a function */
void oracle_check_pushforward(oracle_program *p, oly_fn f); /* and tangents */
void oracle_check_summed(oracle_run *run);   /* oracle_gradient.c: gradient of a sum, with who holds what */
void oracle_check_training(oracle_run *run); /* oracle_gradient.c: loops of steps */
void oracle_check_program(oracle_run *run);  /* oracle_program.c: statements */
void oracle_check_plan(oracle_run *run);     /* oracle_plan.c: chosen shardings and communication */
void oracle_check_manual(oracle_run *run);   /* oracle_manual.c: bodies of shard_map */
void oracle_check_reshard(oracle_run *run);  /* oracle_plan.c: who holds what, and what moves */
void oracle_check_types(oracle_run *run);    /* oracle_types.c: explicit sharding */
#endif
