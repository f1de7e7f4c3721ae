/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements on complex numbers and their parts. Read by oracle_statements.c. */
#include "oracle_statements.h"

const oracle_statement oracle_statements_complex[] = {
    {"complex", 2, .binary = oly_complex},
    {"conj", 1, .unary = oly_conj},
    {"imag", 1, .unary = oly_imag},
    {"real", 1, .unary = oly_real},
    {NULL},
};
