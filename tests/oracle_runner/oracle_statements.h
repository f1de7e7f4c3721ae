/* SPDX-License-Identifier: BSD-3-Clause */
/* The statements of the oracle as calls of Olympus: tables (oracle_statements*.c), read by oracle_program.c. */
#ifndef ORACLE_STATEMENTS_H
#define ORACLE_STATEMENTS_H
#include "oracle.h"

enum { ORACLE_MOST_RESULTS = 8, ORACLE_MOST_OPERANDS = 16 };

/* One `let` line with its operands. */
typedef struct oracle_call {
    const oracle_case *c;
    const oracle_line *line;
    oly_mesh mesh; /* NULL: none */
    int n;
    oly_array arg[ORACLE_MOST_OPERANDS];
    const char *name[ORACLE_MOST_OPERANDS]; /* of the operands */
} oracle_call;

/* One of the functions is set. */
typedef struct oracle_statement {
    const char *name;
    int n_args; /* -1: any number */
    oly_array (*unary)(oly_operand);
    oly_array (*binary)(oly_operand, oly_operand);
    oly_array (*reduction)(oly_operand, oly_reduce_options);
    oly_array (*other)(const oracle_call *call);
    void (*several)(const oracle_call *call, oly_array *results); /* statements with more than one result */
} oracle_statement;

extern const oracle_statement oracle_statements_first[]; /* the most basic ones */
extern const oracle_statement oracle_statements_complex[];
extern const oracle_statement oracle_statements_sharding[];
extern const oracle_statement oracle_statements_gradient[];
extern const oracle_statement oracle_statements_manual[];
extern const oracle_statement oracle_statements_shape[]; /* shapes and reductions */
extern const oracle_statement oracle_statements_index[]; /* oracle_statements_index.c */
extern const oracle_statement oracle_statements_contract[];
extern const oracle_statement oracle_statements_math[]; /* mathematical functions, activations, bits */
extern const oracle_statement oracle_statements_random[];

/* NULL if Olympus has no such statement yet. */
const oracle_statement *oracle_find_statement(const char *name);
/* The results; unchanged (NULL) if Olympus refuses, or if the line has the wrong number of operands. */
void oracle_state(const oracle_statement *statement, const oracle_call *call, oly_array *results);

/* -- attributes of a line (KEY=VALUE) --------------------------------------------------------------------------------- */
const char *oracle_attribute(const oracle_call *call, const char *key); /* NULL: not there */
/* Reads a list, or one number, into list[OLY_MAX_RANK]: how many, -1 if it is not there. */
int oracle_numbers(const oracle_call *call, const char *key, int64_t *list);
int oracle_small_numbers(const oracle_call *call, const char *key, int *list);
int oracle_number(const oracle_call *call, const char *key, int missing);
oly_sharding oracle_out(const oracle_call *call);     /* of out=; NULL: none */
oly_dtype oracle_dtype_of(const oracle_call *call);   /* of dtype= */
oly_operand oracle_value_of(const oracle_call *call); /* of value=, in the type of dtype= */
#endif
