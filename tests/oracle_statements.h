/* The statements of the oracle as calls of Olympus: one table (oracle_statements.c), read by oracle_program.c. */
#ifndef ORACLE_STATEMENTS_H
#define ORACLE_STATEMENTS_H
#include "oracle.h"

/* One `let` line with its operands. */
typedef struct oracle_call {
    const oracle_case *c;
    const oracle_line *line;
    oly_mesh mesh; /* NULL: none */
    int n;
    oly_array arg[8];
    const char *name[8]; /* of the operands */
} oracle_call;

/* One of the functions is set. */
typedef struct oracle_statement {
    const char *name;
    int n_args; /* -1: any number */
    oly_array (*unary)(oly_operand);
    oly_array (*binary)(oly_operand, oly_operand);
    oly_array (*reduction)(oly_operand, oly_reduce_options);
    oly_array (*other)(const oracle_call *call);
} oracle_statement;

/* NULL when Olympus has no such statement yet. */
const oracle_statement *oracle_find_statement(const char *name);
/* The result; NULL when Olympus refuses, or when the line has not the right number of operands. */
oly_array oracle_state(const oracle_statement *statement, const oracle_call *call);
#endif
