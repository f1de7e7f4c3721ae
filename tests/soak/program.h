/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs over the whole public interface: what a program is, and what the files of this folder do with it. A
 * program is drawn from a string of choices (choice.c), so that a seed, a fuzzer's bytes and a shrunk string all have
 * the same decoder (draw*.c). While it is drawn it is evaluated by plain loops over doubles (evaluate*.c), which
 * determines what may follow; then it runs through the library (run.c) and is compared (check.c). shrink.c makes a
 * failing one smaller, print.c prints it as C, plans.c summarises its plans. */
#ifndef SOAK_PROGRAM_H
#define SOAK_PROGRAM_H
#include <olympus.h>
#include <stdio.h>

enum {
    MOST_RANK = 5,
    MOST_VALUES = 400,
    MOST_STATEMENTS = 300,
    MOST_BLOCKS = 40,
    MOST_IN = 6,
    MOST_OUT = 6,
    MOST_BRANCHES = 4,
    MOST_FUNCTIONS = 5,
    MOST_GROUPS = 2,
    MOST_MESHES = 8,
    MOST_AXES = 3,
    MOST_DEVICES = 128,
    MOST_CHOICES = 6000,
    NUMBER = -1, /* an operand that is the statement's number */
    NOTHING = -1,
    UNMAPPED = -1000 /* OLY_UNMAPPED */
};

/* -- choices ---------------------------------------------------------------------------------------------------------- */
/* A string of bytes that are read one after the other, followed by zeros. Zero is always the simplest choice. */
typedef struct choices {
    uint8_t byte[MOST_CHOICES];
    int n, at;
    bool growing; /* extended on demand, from `random` */
    uint64_t random;
} choices;

void choices_from_seed(choices *c, uint64_t seed);
void choices_from_bytes(choices *c, const uint8_t *byte, int n);
int below(choices *c, int n);       /* 0 to n-1 */
bool one_in(choices *c, int n);     /* rarely */
bool often(choices *c, int of_256); /* with probability of_256 / 256; never when choices have run out */
int weighted(choices *c, int n, const int *weight);

enum { FULL, SAME, VALID, EDGE, REFLECT, SYMMETRIC, WRAP, CLIP, LEFT, RIGHT, N_MODES }; /* words of `modes` */

/* -- statements -------------------------------------------------------------------------------------------------------- */
typedef enum kind {
    OPERATION, /* row of the table of operations */
    INPUT,     /* from host memory, placed */
    MOVE,      /* oly_device_put */
    FORI,      /* block 0: counter, carries -> carries */
    WHILE,     /* block 0: carries -> condition, block 1: carries -> carries */
    SCAN,      /* block 0: carries, x -> carries, y */
    BRANCH,    /* in[0] selects the block: operands -> results */
    VMAP,      /* block 0, by axes and out_axes */
    MAP,       /* oly_shard_map of block 0 */
    CALL,      /* of block 0, a function that others may call, too */
    GRADIENT,  /* of block 0 with respect to its arguments `axes` */
    REGION,    /* block 0 with other axes; flag: oly_explicit_axes, else oly_auto_axes */
    GRADIENTS, /* oly_gradients: of in[0] with respect to the other operands, values of the same block */
    N_KINDS
} kind;

/* The placement of an array: over a mesh of the program (NOTHING: uncommitted), each dimension over some of its
 * axes. */
typedef struct placement {
    int8_t mesh;
    int8_t n[MOST_RANK], axis[MOST_RANK][MOST_AXES];
    uint8_t unreduced; /* axes along which it is unreduced */
} placement;

typedef struct statement {
    kind kind;
    int op;
    int n_in, in[MOST_IN];
    int n_out, out[MOST_OUT];
    int n_blocks, block[MOST_BRANCHES];
    double number;
    oly_dtype dtype;
    int rank;
    int64_t shape[MOST_RANK];
    int n_axes, axes[MOST_IN];
    int64_t low[MOST_RANK], high[MOST_RANK], step[MOST_RANK];
    int k, mode; /* a number or a dimension; one of the words of the operation */
    bool flag, other_flag;
    int times, n_carry;
    int out_axes[MOST_OUT];
    placement place[MOST_IN], out_place[MOST_OUT]; /* inputs, constraints; specs of maps; out_shardings of calls */
    bool donated[MOST_IN];                         /* calls: input k is donated to an output */
    bool by_predicate;                             /* branches: oly_cond */
    bool checkpoint;
    int flavour;   /* gradients: which of oly_grad, oly_value_and_grad, oly_vjp, oly_jvp, oly_gradients */
    uint64_t data; /* inputs: determines their elements */
} statement;

typedef struct block {
    int n_params, param[MOST_IN + 1];
    int n, statement[60];
    int n_results, result[MOST_OUT];
} block;

typedef struct mesh_text {
    int group, n_axes, size[MOST_AXES];
    bool explicit_axes, automatic[MOST_AXES]; /* all but the automatic ones */
} mesh_text;

/* -- values in the evaluator --------------------------------------------------------------------------------------- */
typedef struct array {
    oly_dtype dtype;
    int rank;
    int64_t shape[MOST_RANK], size;
    int parts;             /* 2: complex */
    double *v, *t;         /* elements; their tangents, or NULL: all zero */
    double error, t_error; /* largest effect of other roundings; 0: none */
    double terms,
        lowest; /* of sums and products: the largest total magnitude of their terms, and these' lowest bit; 0: not one */
} array;

typedef struct program {
    choices choices;
    int n_devices; /* of the job */
    /* the program */
    int n_meshes, n_groups;
    mesh_text mesh[MOST_MESHES];
    int group_size[MOST_GROUPS], group_device[MOST_GROUPS][MOST_DEVICES];
    int n_statements, n_blocks, n_values, n_functions, function[MOST_FUNCTIONS], function_group[MOST_FUNCTIONS];
    statement statement[MOST_STATEMENTS];
    block block[MOST_BLOCKS];   /* block 0 is main */
    int group_of[MOST_VALUES];  /* of values of main: the group they are committed to, or NOTHING */
    int home[MOST_VALUES];      /* the block that computes it */
    bool dead[MOST_VALUES];     /* of values of main: donated */
    bool captured[MOST_VALUES]; /* of values of main: read by a function */
    oly_dtype dtype_of[MOST_VALUES];
    int rank_of[MOST_VALUES];
    int64_t shape_of[MOST_VALUES][MOST_RANK];
    bool explicit_axes;            /* its only mesh has them, or that of the region */
    int explicit_mesh;             /* which */
    placement placed[MOST_VALUES]; /* then: how values are split; mesh NOTHING: uncommitted */
    bool large;                    /* arrays of more than 16384 elements, few statements: time tiling */
    bool products;                 /* large: matrices, whose products have partial sums and are worth overlapping */
    bool wide;                     /* with 64-bit types */
    /* during evaluation */
    int team; /* devices of the map it is in, or 1 */
    const mesh_text *map;
    array *now[MOST_DEVICES][MOST_VALUES];
    bool refused; /* the last statement cannot be part of the program: it has no exact value, or is not allowed */
    const char *why;
    int64_t work, most_work, most_elements; /* bounds: of all evaluation, of an array */
    bool dual;                              /* tangents are computed */
    bool by_differences;                    /* includes derivatives of derivatives */
    int varied;                             /* the value by which slopes_by derives, + 1; 0: none */
    const struct block *at_block;           /* the current block */
    int at_statement;
    /* while drawing */
    int current, depth, in_map, in_gradient, in_vmap;
    int n_visible, visible[MOST_VALUES];
    int profile, group;
    bool plain_map; /* in a map that is checked: no loops, whose carries would have to vary alike */
} program;

/* -- evaluating: arena.c, evaluate*.c ---------------------------------------------------- */
void *take(size_t bytes); /* until forget_all() */
void forget_all(void);
bool much_taken(void);
int64_t elements_of(int rank, const int64_t *shape);
array *new_array(oly_dtype dtype, int rank, const int64_t *shape);
double *new_tangent(array *a);
bool refuse(program *p, const char *why);                    /* false */
bool is_float(oly_dtype dtype);                              /* real */
oly_dtype common_type(program *p, oly_dtype a, oly_dtype b); /* the promoted type; refuses those that have none */
bool is_narrow(oly_dtype dtype);                             /* a float of 8 or 16 bits */
bool is_integer(oly_dtype dtype);
bool is_complex(oly_dtype dtype);
bool same_type(const array *a, const array *b);
double biggest(const array *a);
bool exact_in(oly_dtype dtype, double x);
double wrapped(oly_dtype dtype, double x);
int mantissa_bits(oly_dtype dtype); /* of a floating type, with the leading one */
/* Do sums of such terms have the same bits in any order? True also for integers. */
bool exact_sum(oly_dtype dtype, double total_magnitude, double lowest_bit);
double lowest_bit(double x); /* infinity for 0 */
/* y is a sum (or difference) of a and b: sums among these may be added up in any order, as one with the terms of both. */
void join_sums(program *p, array *y, const array *a, const array *b);
void finish_array(program *p, array *a); /* wraps integers; refuses what the type cannot represent */
void finish_tangent(program *p, array *a);

/* For all members of the team. False: refused. */
bool evaluate_statement(program *p, const statement *s);
bool evaluate_block(program *p, const block *b);
bool evaluate_derivative(program *p, const statement *s);
void bind_params(program *p, const block *b, const statement *s, int skip); /* as its operands from `skip` on */
static inline void set_value(program *p, int member, int v, array *a)
{
    p->now[member][v] = a;
}
bool evaluate_main(program *p);                                        /* everything again, from the inputs on */
array *evaluate_operation(program *p, const statement *s, int member); /* NULL: refused */
array *evaluate_reduction(program *p, const statement *s, const array *a);
array *evaluate_running(program *p, const statement *s, const array *a);
array *evaluate_product(program *p, const statement *s, array *const *a);
array *evaluate_conv(program *p, const statement *s, const array *x, const array *z);
array *evaluate_rearrangement(program *p, const statement *s, int member);
array *evaluate_indexing(program *p, const statement *s, int member);
extern const char *const modes[N_MODES];
array *evaluate_collective(program *p, const statement *s, int member);
array *evaluate_random(program *p, const statement *s, array *const *a);
array *evaluate_inside(program *p, const statement *s, array *const *a);
array *mapped(const array *a, oly_dtype dtype, int rank, const int64_t *shape, double fill,
              bool (*source)(const void *context, const int64_t *to, int64_t *from), const void *context);
array *converted_array(program *p, const array *a, oly_dtype dtype);
void unravel(int rank, const int64_t *shape, int64_t at, int64_t *index);
int64_t ravel(int rank, const int64_t *shape, const int64_t *index);
array *operand_of(const program *p, const statement *s, int k, int member);
int64_t sliced_extent(const statement *s, int d);
array *slice_of(const array *a, int dimension, int64_t at);              /* without the dimension */
array *stack_of(int n, array *const *a, int dimension, oly_dtype dtype); /* n >= 1 */
array *input_array(const statement *s);
int device_coordinate(const mesh_text *m, int device, int axis);

/* What was evaluated, for JAX: journal.c. */
void journal_begin(FILE *to); /* of the next program; NULL: stop */
void journal_write(const program *p, const statement *s, const array *y);

/* -- operations: operations.c ------------------------------------------------------------------------------------------------ */
typedef enum family {
    ONE,
    TWO,
    THREE,
    REDUCTION,
    RUNNING,
    PRODUCT,
    REARRANGE,
    INDEXING,
    SOURCE,
    RANDOM,
    INSIDE, /* the program's own code: inside_functions.h */
    COLLECTIVE
} family;
typedef enum op {
#define SOAK_OP(name, family, arity, weight, format) OP_##name,
#include "operations.def"
#undef SOAK_OP
    N_OPS
} op;
typedef struct operation {
    const char *name;
    family family;
    int arity, weight;
    const char *format; /* how the call is written: print.c */
} operation;
extern const operation operations[N_OPS];
oly_array call_operation(const program *p, const statement *s, oly_array const *env, const oly_mesh *mesh);
int ring_pairs(const program *p, const statement *s, int pairs[][2]); /* of oly_ppermute; how many */
oly_sharding sharding_of(const program *p, const placement *place, int rank, const oly_mesh *mesh);
const char *axes_text(const mesh_text *m, int n, const int *axes); /* "x, y" */
const char *spec_text(const placement *place, int rank);           /* "x, (y,z)" */
const char *slices_text(const statement *s);
/* The notation of OP_contract: the letters of its operands and of its result are in `low`, `high`, `step`, ended by 0. */
const char *einsum_text(const statement *s);

/* -- drawing: draw.c, draw_operand.c, draw_operation.c, draw_indexing.c, draw_region.c ---------------------------------------------------------- */
enum { ANYTHING, FIELDS, LINEAR, SMOOTH };
/* Makes a program of the choices; its values are evaluated. */
void draw_program(program *p, int n_devices);
bool add_statement(program *p, statement *s); /* evaluates it; appends it to the current block unless refused */
bool draw_operation(program *p);
bool draw_indexing(program *p, statement *s);
int start_value(program *p); /* an integer of rank 0 */
bool draw_region(program *p);
void draw_body(program *p, int most);
int new_value(program *p, const array *like);
array *value_of(const program *p, int v);
int any_value(program *p);
int value_like(program *p, const array *like); /* of this type: found, or made; NOTHING */
int fitted(program *p, int v, int rank, const int64_t *shape);
int converted(program *p, int v, oly_dtype dtype);
int reduced_size(program *p, int v); /* the same reduced to small integers */
int constant_like(program *p, const array *like);
int simple(program *p, statement s); /* adds it; its value or NOTHING */
oly_dtype any_dtype(program *p);
placement any_placement(program *p, int rank, int group);
int64_t any_extent(program *p);
int open_block(program *p);
void close_block(program *p, int before, int visible);
statement operation_of(op o, int n, const int *in);
void draw_function_call(program *p);
/* over Explicit axes (draw_explicit.c): */
int placed_as(program *p, int v, const placement *place); /* the value there; NOTHING */
int replicated(program *p, int v);
bool replicate_inputs(program *p, statement *s);
bool settle_operands(program *p, statement *s,
                     placement *place);                /* the sharding to request, and the result's placement */
placement in_types(const program *p, placement place); /* without Auto axes, which types do not show */
placement result_place(const program *p, const statement *s, int k);
bool draw_unreduced_sum(program *p);
placement without_dimension(const placement *place, int d);

/* -- running and comparing: run.c, check.c ---------------------------------------------------------------------------------------- */
typedef struct outcome {
    bool failed;
    int value; /* that differs; NOTHING: an error */
    oly_status status;
    char text[1200];
    char got[400], right[400];
} outcome;
/* Runs the program in a scope of its own and compares the values of main. */
outcome run_program(program *p);
outcome plan_program(program *p); /* the same without comparing values: there may be none (OLYMPUS_SIMULATE) */
void compare_value(const program *p, int v, oly_array x, outcome *result);
void agree_on_value(
    outcome *o); /* together.c: all ranks get that of the first that failed, so that nobody waits for it */

/* -- shrinking and printing: shrink.c, print.c ------------------------------------------------------------------------------------- */
typedef bool attempt(program *p, outcome *o); /* runs it; false: the time is over (child.h) */
void shrink_program(program *p, outcome *result, attempt *run);
void remove_unused(program *p, int keep); /* removes values of main without a reader; NOTHING: keep all of main's */
void print_program(FILE *file, const program *p, const outcome *result);

/* -- plans: plans.c ------------------------------------------------------------------------------------------------------------------ */
/* Summarises in one line the explanations (OLYMPUS_EXPLAIN=text:FILE) appended to the file since the last call. */
typedef struct planned {
    int plans, steps, collectives;
    double nanoseconds; /* predicted, of all plans */
    uint32_t digest;    /* of the text, without source lines */
} planned;
planned read_plans(FILE *file);
uint32_t program_digest(const program *p); /* of the program as C */
#endif
