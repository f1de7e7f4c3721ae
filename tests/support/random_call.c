/* SPDX-License-Identifier: BSD-3-Clause */
/* Running and printing one instruction of a random program, see random_program.h. */
#include "random_program.h"
#include <math.h>
#include <inttypes.h>

/* -- tables ------------------------------------------------------------------------------------------------ */
const call_of_one random_ones[] = {
    {"oly_neg", oly_neg, KEEPS_ERROR},
    {"oly_abs", oly_abs, KEEPS_ERROR},
    {"oly_relu", oly_relu, KEEPS_ERROR},
    {"oly_sin", oly_sin, BOUNDED_BY_ONE},
    {"oly_cos", oly_cos, BOUNDED_BY_ONE},
    {"oly_tanh", oly_tanh, BOUNDED_BY_ONE},
    {"oly_sigmoid", oly_sigmoid, BOUNDED_BY_ONE},
    {"oly_sign", oly_sign, NEEDS_EXACT},
    {"oly_sqrt", oly_sqrt, NEEDS_EXACT},
    {"oly_log", oly_log, NEEDS_EXACT},
    {"oly_exp", oly_exp, NEEDS_SMALL},
    {"oly_logical_not", oly_logical_not, NEEDS_EXACT},
};
_Static_assert(sizeof random_ones / sizeof *random_ones == N_ONES, "rows");

const call_of_two random_twos[] = {
    {"oly_add", oly_add, ADDS},        {"oly_sub", oly_sub, ADDS},      {"oly_mul", oly_mul, MULTIPLIES},
    {"oly_max2", oly_max2, CHOOSES},   {"oly_min2", oly_min2, CHOOSES}, {"oly_div", oly_div, EXACT_ONLY},
    {"oly_eq", oly_eq, EXACT_ONLY},    {"oly_ne", oly_ne, EXACT_ONLY},  {"oly_lt", oly_lt, EXACT_ONLY},
    {"oly_le", oly_le, EXACT_ONLY},    {"oly_gt", oly_gt, EXACT_ONLY},  {"oly_ge", oly_ge, EXACT_ONLY},
    {"oly_pow", oly_pow, EXACT_POWER},
};
_Static_assert(sizeof random_twos / sizeof *random_twos == N_TWOS, "rows");

static const struct {
    const char *name;
    oly_array (*call)(oly_operand x, oly_reduce_options options);
} reductions[] = {
    {"oly_sum", oly_sum_with},   {"oly_max", oly_max_with},   {"oly_min", oly_min_with},
    {"oly_mean", oly_mean_with}, {"oly_prod", oly_prod_with},
};

static const char *const loop_step_text[] = {
    "c = oly_update(c, \"1:-1\", oly_add(oly_mul(0.5, oly_slice(c, \":-2\")), oly_mul(0.5, oly_slice(c, \"2:\"))))",
    "c = oly_add(c, w)",
    "c = oly_add(c, oly_sum(c))",
    "c = oly_concatenate(0, oly_slice(c, \"1:\"), oly_slice(c, \":1\"))",
    "c = oly_where(oly_gt(c, i), c, oly_sub(0, c))",
    "c = oly_transpose(c)",
    "c = oly_matmul(c, w)",
    "c = oly_update(c, \"0\", oly_slice(c, \"-1\"))",
};

/* -- running an instruction -------------------------------------------------------------------------------- */
typedef struct loop_context {
    const instruction *call;
    oly_array captured;
} loop_context;

static oly_array clamp(oly_array x, oly_dtype dtype)
{
    if (dtype == OLY_BOOL)
        return x;
    return oly_max2(oly_min2(x, 50), element_is_unsigned(dtype) ? 0 : -50);
}

static oly_array stencil_step(oly_array c)
{
    oly_array sum = oly_add(oly_mul(0.5, oly_slice(c, ":-2")), oly_mul(0.5, oly_slice(c, "2:")));
    return oly_update(c, "1:-1", sum);
}

static void loop_body(oly_array i, oly_array *carry, void *user)
{
    const loop_context *context = user;
    oly_array c = carry[0], w = context->captured;
    oly_dtype dtype = context->call->dtype;
    for (int k = 0; k < context->call->n_steps; k++) {
        switch ((loop_step)context->call->step[k]) {
        case STEP_STENCIL: c = stencil_step(c); break;
        case STEP_CAPTURE: c = clamp(oly_add(c, w), dtype); break;
        case STEP_TOTAL: c = clamp(oly_astype(oly_add(c, oly_sum(c)), dtype), dtype); break;
        case STEP_ROTATE: c = oly_concatenate(0, oly_slice(c, "1:"), oly_slice(c, ":1")); break;
        case STEP_COUNTER: c = oly_astype(oly_where(oly_gt(c, i), c, oly_sub(0, c)), dtype); break;
        case STEP_REVERSE: c = oly_transpose(c); break;
        case STEP_PRODUCT: c = clamp(oly_matmul(c, w), dtype); break;
        case STEP_ROW: c = oly_update(c, "0", oly_slice(c, "-1")); break;
        case N_LOOP_STEPS: break;
        }
        c = oly_astype(c, dtype);
    }
    carry[0] = c;
}

static oly_array run_loop(const instruction *s, const oly_array *in)
{
    loop_context context = {s, in[1]};
    oly_array carry = in[0];
    if (oly_fori(0, s->times, loop_body, 1, &carry, &context) != OLY_OK)
        return NULL;
    return carry;
}

static oly_operand number_of(const instruction *s)
{
    if (s->imaginary != 0)
        return oly_operand_parts(s->number, s->imaginary);
    return s->number == floor(s->number) ? oly_operand_int((int64_t)s->number) : oly_operand_float(s->number);
}

static oly_array run_reduction(const instruction *s, oly_array x)
{
    oly_reduce_options options = {.keepdims = s->keepdims};
    if (!s->all_axes) {
        options.n_axis_list = s->n_axes;
        options.axis_list = s->axes;
        options.axes_given = true;
    }
    return reductions[s->row].call(oly_operand_array(x), options);
}

oly_array run_instruction(const program *p, int k, const oly_array *values, bool reference)
{
    const instruction *s = &p->call[k];
    oly_array in[3] = {NULL, NULL, NULL};
    oly_operand x[3];
    for (int j = 0; j < s->n_in; j++) {
        in[j] = values[s->in[j]];
        x[j] = oly_operand_array(in[j]);
    }
    switch (s->kind) {
    case MAKE_INPUT: return oly_from_host(p->value[k].data, s->dtype, s->rank, s->shape);
    case MAKE_ARANGE: return oly_arange(s->shape[0], s->dtype);
    case APPLY_ONE: return random_ones[s->row].call(x[0]);
    case APPLY_TWO: return random_twos[s->row].call(x[0], x[1]);
    case APPLY_NUMBER: return random_twos[s->row].call(x[0], number_of(s));
    case APPLY_WHERE: return oly_where(x[0], x[1], x[2]);
    case APPLY_CONVERT: return oly_astype(x[0], s->dtype);
    case APPLY_REDUCE: return run_reduction(s, in[0]);
    case APPLY_MATMUL: return oly_matmul(in[0], in[1]);
    case APPLY_DOT: return oly_dot(in[0], in[1]);
    case APPLY_RESHAPE: return oly_reshape_shape(in[0], s->rank, s->shape);
    case APPLY_TRANSPOSE: return oly_transpose_axes(in[0], s->n_axes, s->axes);
    case APPLY_BROADCAST: return oly_broadcast_shape(x[0], s->rank, s->shape);
    case APPLY_SLICE: return oly_slice(in[0], s->slices);
    case APPLY_UPDATE: return oly_update(in[0], s->slices, x[1]);
    case APPLY_UPDATE_NUMBER: return oly_update(in[0], s->slices, number_of(s));
    case APPLY_CONCATENATE: return oly_concatenate_n(s->n_in, in, s->dimension);
    case APPLY_REARRANGE: return run_rearrange(s, in[0]);
    case APPLY_PLACE: return reference ? in[0] : oly_with_sharding_constraint(in[0], s->sharding);
    case APPLY_LOOP: return run_loop(s, in);
    case N_KINDS: break;
    }
    return NULL;
}

/* -- printing ---------------------------------------------------------------------------------------------- */
static void print_extents(FILE *file, int n, const int64_t *shape)
{
    for (int d = 0; d < n; d++)
        fprintf(file, ", %" PRId64, shape[d]);
}

static void print_ints(FILE *file, const char *before, int n, const int *list)
{
    for (int k = 0; k < n; k++)
        fprintf(file, "%s%d", k ? ", " : before, list[k]);
}

static void print_loop(FILE *file, const instruction *s)
{
    fprintf(file, "loop(0, %d, c = v%d, w = v%d) {", s->times, s->in[0], s->in[1]);
    for (int k = 0; k < s->n_steps; k++)
        fprintf(file, " %s;", loop_step_text[s->step[k]]);
    fprintf(file, " }");
}

static void print_reduction(FILE *file, const instruction *s)
{
    fprintf(file, "%s(v%d", reductions[s->row].name, s->in[0]);
    if (!s->all_axes) {
        print_ints(file, ", OLY_AXES(", s->n_axes, s->axes);
        fprintf(file, s->n_axes ? ")" : ", .axes_given = true");
    }
    fprintf(file, s->keepdims ? ", .keepdims = true)" : ")");
}

static void print_input(FILE *file, const instruction *s)
{
    fprintf(file, "input(%s", oly_dtype_name(s->dtype));
    print_extents(file, s->rank, s->shape);
    if (s->sharding)
        oly_fprintf(file, ") at %S", s->sharding);
    else
        fprintf(file, ") uncommitted");
}

static void print_call(FILE *file, const instruction *s)
{
    switch (s->kind) {
    case MAKE_INPUT: print_input(file, s); break;
    case MAKE_ARANGE: fprintf(file, "oly_arange(%" PRId64 ", %s)", s->shape[0], oly_dtype_name(s->dtype)); break;
    case APPLY_ONE: fprintf(file, "%s(v%d)", random_ones[s->row].name, s->in[0]); break;
    case APPLY_TWO: fprintf(file, "%s(v%d, v%d)", random_twos[s->row].name, s->in[0], s->in[1]); break;
    case APPLY_NUMBER:
        fprintf(file, "%s(v%d, %g", random_twos[s->row].name, s->in[0], s->number);
        if (s->imaginary != 0)
            fprintf(file, "%+gi", s->imaginary);
        fprintf(file, ")");
        break;
    case APPLY_WHERE: fprintf(file, "oly_where(v%d, v%d, v%d)", s->in[0], s->in[1], s->in[2]); break;
    case APPLY_CONVERT: fprintf(file, "oly_astype(v%d, %s)", s->in[0], oly_dtype_name(s->dtype)); break;
    case APPLY_REDUCE: print_reduction(file, s); break;
    case APPLY_MATMUL: fprintf(file, "oly_matmul(v%d, v%d)", s->in[0], s->in[1]); break;
    case APPLY_DOT: fprintf(file, "oly_dot(v%d, v%d)", s->in[0], s->in[1]); break;
    case APPLY_RESHAPE:
        fprintf(file, "oly_reshape(v%d", s->in[0]);
        print_extents(file, s->rank, s->shape);
        fprintf(file, ")");
        break;
    case APPLY_TRANSPOSE:
        fprintf(file, "oly_transpose(v%d", s->in[0]);
        print_ints(file, ", ", s->n_axes, s->axes);
        fprintf(file, ")");
        break;
    case APPLY_BROADCAST:
        fprintf(file, "oly_broadcast_to(v%d", s->in[0]);
        print_extents(file, s->rank, s->shape);
        fprintf(file, ")");
        break;
    case APPLY_SLICE: fprintf(file, "oly_slice(v%d, \"%s\")", s->in[0], s->slices); break;
    case APPLY_UPDATE: fprintf(file, "oly_update(v%d, \"%s\", v%d)", s->in[0], s->slices, s->in[1]); break;
    case APPLY_UPDATE_NUMBER: fprintf(file, "oly_update(v%d, \"%s\", %g)", s->in[0], s->slices, s->number); break;
    case APPLY_CONCATENATE:
        fprintf(file, "oly_concatenate(%d", s->dimension);
        print_ints(file, ", v", s->n_in, s->in);
        fprintf(file, ")");
        break;
    case APPLY_REARRANGE: print_rearrange(file, s); break;
    case APPLY_PLACE: oly_fprintf(file, "oly_with_sharding_constraint(v%d, %S)", s->in[0], s->sharding); break;
    case APPLY_LOOP: print_loop(file, s); break;
    case N_KINDS: break;
    }
}

void print_program(FILE *file, const program *p)
{
    for (int k = 0; k < p->n; k++) {
        const value *v = &p->value[k];
        fprintf(file, "  v%d = ", k);
        print_call(file, &p->call[k]);
        fprintf(file, ";  /* %s[", oly_dtype_name(v->dtype));
        for (int d = 0; d < v->rank; d++)
            fprintf(file, "%s%" PRId64, d ? "," : "", v->shape[d]);
        fprintf(file, "] up to %g%s, error %g */\n", v->biggest, v->integral ? "" : " with fractions", v->error);
    }
}
