/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of test_ops_everywhere.c: each row names a public operation and its operands, and computes its value in the
 * simplest way, in long double or with plain integers. The tables are in ops_reference_*.c, by topic; to add an
 * operation, add a row there. */
#ifndef OPS_REFERENCE_H
#define OPS_REFERENCE_H
#include "check_element.h"
#include "graph/type.h"
#include <complex.h>
#undef complex /* also the name of an operation */
#include <math.h>
#include <olympus.h>
#include <string.h>

typedef long double _Complex number; /* represents every element of every type exactly */
typedef __int128 whole;              /* integers before they wrap */

enum { MOST_OPERANDS = 4, MOST_ELEMENTS = 1600 };
enum {
    ANY = 1,           /* operands include infinities, NaN, and the largest and smallest numbers of their type */
    AT_LEAST_ONE = 2,  /* no empty operands */
    NEAR_ONE = 4,      /* errors are relative to 1 where the value is smaller */
    ALONE = 8,         /* not inside oly_vmap or oly_shard_map */
    DIVIDES = 16,      /* only sizes that 8 divides */
    REFUSES_NONE = 32, /* types that are not named are no errors, but another row's */
};

typedef struct tensor {
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    number element[MOST_ELEMENTS];
} tensor;

typedef struct row row;
typedef number reference(const row *r, const tensor *in, const int64_t *at);
struct row {
    const char *name;   /* of the public function or macro, without oly_ */
    const char *op;     /* row of runtime/graph/ops.def that this tests, or NULL */
    const char *shapes; /* "mn,n->mn": a letter for each dimension, see ops_extent; "i:m": an operand of that type */
    const char *types;  /* of the operands, as ops_type_letters; others are refused with OLY_DTYPE */
    const char *result; /* type of the result, see ops_result_type */
    oly_array (*call)(const oly_array *in);
    reference *value; /* of the element `at` of the result */
    double low, high; /* bounds of operands; both 0: integers, for floating-point types quarters, from -3 to 3 */
    double ulps;      /* largest error of a floating-point result, in units in its last place, above rounding */
    int flags;
    const void *detail;
};
typedef struct row_list {
    const row *rows;
    int count;
} row_list;
#define ROW_LIST(rows)                                                                                                 \
    {                                                                                                                  \
        rows, sizeof rows / sizeof *rows                                                                               \
    }
extern const row_list ops_elementwise, ops_reductions, ops_products, ops_windows, ops_shapes, ops_indexes, ops_random,
    ops_programs;

/* Letters of element types, and sets of them. */
#define BOOLS     "b"
#define INTEGERS  "12iI34uU"
#define FLOATS    "hBfF"
#define COMPLEXES "cC"
#define NUMBERS   INTEGERS FLOATS COMPLEXES
#define REALS     INTEGERS FLOATS
#define ORDERED   BOOLS REALS /* and bools */
#define ALL       BOOLS NUMBERS
extern const char ops_type_letters[OLY_N_DTYPES]; /* 0: a type that no row names */
oly_dtype ops_type_of(char letter);

/* The extent of a letter: m, n, k are given; M is m - 2, L m - 1, H half of n, rounded up, D twice m, E twice n, P m
 * times n, S m + n, A m + 2, B n + 3, T three times H, C m + n - 1, 1 to 9 themselves. */
int64_t ops_extent(char letter, const int64_t *size);
/* Reads "i:mn" into type (if fixed), rank and shape; returns where it ends. */
const char *ops_read_shape(const char *text, const int64_t *size, tensor *t);
/* Type of the result for operands of a type: "s" the same; "f" floating, "R" floating and real, "D" the default
 * floating type for integers, "A" its real part; "d" the default integer; "r" real part; "n" bools as int32, "N" as
 * default integers; "t" as sums; "c" complex; ">x" always that of letter x. */
oly_dtype ops_result_type(const char *rule, oly_dtype dtype);
void ops_fill(const row *r, tensor *t, int salt);

void ops_store(const tensor *t, void *data); /* elements as the type represents them */
void ops_load(tensor *t, const void *data);
void ops_round(tensor *t); /* every element to the nearest value of the type; integers wrap */
number ops_rounded(oly_dtype dtype, number x);
whole ops_wrapped(oly_dtype dtype, whole x);
int ops_bits(oly_dtype dtype);

/* Prints the public operations that has_row does not know by name to standard error; the headers are read from
 * include/. */
int ops_untested_functions(bool (*has_row)(const char *name));

/* For reference functions. */
#define AT(...) ((const int64_t[]){__VA_ARGS__})
number ops_get(const tensor *t, const int64_t *at);
/* Element of operand k for index `at` of a result of `rank` dimensions, by broadcasting. */
number ops_meet(const tensor *t, int rank, const int64_t *at);
number ops_complex(long double real, long double imaginary);
bool ops_less(number x, number y); /* by the real part, then the imaginary one */
#endif
