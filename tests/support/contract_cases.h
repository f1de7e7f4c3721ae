/* SPDX-License-Identifier: BSD-3-Clause */
/* Products, convolutions and windows of random shapes and parameters, with the values of plain loops: shared by
 * test_contract*.c and test_windows.c. Every rank makes the same ones, from `contract_seed`. */
#ifndef CONTRACT_CASES_H
#define CONTRACT_CASES_H
#include "check_session.h"

enum { CONTRACT_MOST_ELEMENTS = 20000, CONTRACT_CASES = 120 };

typedef struct tensor {
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    double element[CONTRACT_MOST_ELEMENTS];
} tensor;
typedef oly_array apply(const oly_array *in);

/* -- the current case ---------------------------------------------------------------------------------------------- */
extern uint64_t contract_seed;
extern oly_dtype contract_dtype;
extern tensor contract_operand[3], contract_expected;
extern int contract_n_operands;
extern char contract_what[400];   /* for messages */
extern bool contract_only_shapes; /* the makers of cases do not run them: values are checked elsewhere */
extern oly_mesh contract_mesh;    /* x=2, y=4 */

/* Set-up of cmocka: check_start, and the mesh. */
int contract_start(void **state);

/* Each makes a case (operands, parameters and expected value) and runs it eagerly, compiled, and compiled over the mesh
 * with operands split at random and read through views. False: these numbers give no case. */
void contract_one_dot(void);
bool contract_one_conv(void);
bool contract_one_window(void);
void contract_run(int n, apply *f);
/* The operation of the last such case. */
oly_array contract_apply_dot(const oly_array *in);
oly_array contract_apply_conv(const oly_array *in);
oly_array contract_apply_window(const oly_array *in);
const char *contract_window_reduction(void);
bool contract_window_is_inside(void); /* no padding, no dilation of the operand */

/* -- helpers ------------------------------------------------------------------------------------------------------- */
int contract_below(int n); /* a random number */
void contract_shuffle(int n, int *order);
void contract_choose_dtype(void);
void contract_fill(tensor *t, int rank, const int64_t *shape);
double contract_get(const tensor *t, const int64_t *at);
/* Next index of a box; false: that was the last. */
bool contract_next(int rank, const int64_t *shape, int64_t *at);
oly_array contract_upload(const tensor *t);
double contract_inner(const tensor *t, oly_array x); /* the sum of products; x is float64 */
oly_sharding contract_some_sharding(int rank);       /* each axis splits one dimension, or none */
#endif
