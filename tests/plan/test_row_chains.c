/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Chains of rows (plan/schedule/row_chains.c, run/row_blocks.c): drawn programs of reductions along rows and what is between them have the
 * bits of separate steps, with rows that are reversed, shifted, cut and put together in between, results that other steps read, donated inputs
 * and loops whose carries change places; so have the programs that people write, which are run as chains. ROWS=<number>, SEED=<first>. */
#include "check_session.h"
#include "core/optimisation.h"
#include "plan/schedule/schedule.h"
#include "row_programs.h"
#include "run/device_counts.h"
#include "run/row_blocks.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_OUTS = 3, MOST_OPS = 16, INPUTS = 4 };

static int64_t chains(void)
{
    return oly_counted(&oly_device_counted.row_chains);
}

/* The bytes of the results, on all processes. */
typedef struct results {
    void *of[MOST_OUTS];
    size_t n[MOST_OUTS];
} results;

static void keep(oly_array x, int k, results *to)
{
    oly_array all = oly_device_put(x, oly_named(oly_make_mesh("x=4, y=2"), ""));
    to->n[k] = (size_t)oly_size(all) * oly_dtype_size(oly_dtype_of(all));
    to->of[k] = malloc(to->n[k] + 1);
    assert_int_equal(oly_get(all, to->of[k], to->n[k]), OLY_OK);
}

static void compare(const char *name, int n_out, const results *a, const results *b)
{
    for (int k = 0; k < n_out; k++) {
        assert_int_equal(a->n[k], b->n[k]);
        for (size_t i = 0; i < a->n[k]; i++)
            if (((char *)a->of[k])[i] != ((char *)b->of[k])[i])
                fail_msg("%s: result %d differs at byte %zu of %zu", name, k, i, a->n[k]);
        free(a->of[k]);
    }
}

static void release(int n_out, const results *r)
{
    for (int k = 0; k < n_out; k++)
        free(r->of[k]);
}

/* donates: results take the places of inputs; only the first call is compared then. */
static void call(oly_function function, void *user, int n_in, const oly_array *in, int n_out, bool donates,
                 oly_optimisations off, results *to)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, n_in, n_out, .user = user);
    OLY_SCOPE
    {
        oly_array given[INPUTS], out[MOST_OUTS] = {NULL};
        for (int k = 0; k < n_in; k++)
            given[k] = oly_add(in[k], oly_astype(0, oly_dtype_of(in[k]))); /* a copy of its own */
        for (int k = 0; k < n_out && donates; k++)
            out[k] = k < n_in ? given[k] : NULL;
        assert_int_equal(oly_call_arrays(f, n_in, given, n_out, out), OLY_OK);
        for (int k = 0; k < n_out; k++)
            keep(out[k], k, to);
    }
    oly_disable(before);
}

/* Returns how many chains were run. */
static int64_t check(const char *name, oly_function function, void *user, int n_in, const oly_array *in, int n_out)
{
    int64_t before = 0, run = 0;
    for (int donates = 0; donates < 2; donates++) {
        results one = {0}, several = {0};
        before = chains();
        call(function, user, n_in, in, n_out, donates, (oly_optimisations)1 << OLY_OPTIMISATION_ROW_CHAINS, &several);
        assert_int_equal(chains(), before);
        for (int backwards = 0; backwards < 2; backwards++) {
            oly_row_blocks_backwards = backwards;
            call(function, user, n_in, in, n_out, donates, 0, &one);
            compare(name, n_out, &one, &several);
        }
        oly_row_blocks_backwards = false;
        release(n_out, &several);
        run += chains() - before;
    }
    return run;
}

/* -- drawn programs -------------------------------------------------------------------------------------------------------- */

/* Those of row_programs.h, and what must not be in a chain. */
enum { SQUARES = ROW_OPS, SHORT, TURN_ROWS, TURN_COLUMNS, SHIFT_ROWS, HALVES, COLUMN_SUM, N_OPS };
/* Of values whose first dimension alone all reductions keep; the last two go across it. */
enum {
    MIDDLE_SUM = N_OPS,
    MIDDLE_MAX,
    MIDDLE_MEAN,
    LAST_SUM,
    LAST_SQUARES,
    BOTH_SUM,
    TURN_MIDDLE,
    ACROSS_SUM,
    ACROSS_SHIFT,
    OUTER_OPS
};

typedef struct program {
    bool outer;
    int n, n_out, iterations; /* 0: not in a loop */
    int sums;                 /* bit k: result k is the sum of all elements of a value */
    struct {
        int op, a, b;
    } ops[MOST_OPS];
    int out[MOST_OUTS];
} program;

static oly_array like(oly_array x, oly_array a)
{
    return oly_astype(x, oly_dtype_of(a));
}

static oly_array halves(oly_array a)
{
    int64_t n = oly_dim(a, -1);
    char low[64], high[64];
    if (n < 2)
        return a;
    snprintf(low, sizeof low, "..., :%d", (int)(n / 2));
    snprintf(high, sizeof high, "..., %d:", (int)(n / 2));
    return oly_concatenate(-1, oly_slice(a, high), oly_mul(oly_slice(a, low), 2));
}

static oly_array apply(int op, oly_array a, oly_array b)
{
    switch (op) {
    case SQUARES: return like(oly_sum(oly_mul(a, a), OLY_AXES(-1), .keepdims = true), a);
    case SHORT: return like(oly_expand_dims(oly_add(oly_sum(a, OLY_AXES(-1)), 1), -1), a);
    case TURN_ROWS: return oly_flip(a, 1);
    case TURN_COLUMNS: return oly_flip(a, 2);
    case SHIFT_ROWS: return oly_roll(a, 1, 1);
    case HALVES: return halves(a);
    case COLUMN_SUM:
    case MIDDLE_SUM: return like(oly_sum(a, OLY_AXES(1), .keepdims = true), a);
    case MIDDLE_MAX: return oly_max(a, OLY_AXES(1), .keepdims = true);
    case MIDDLE_MEAN: return like(oly_mean(oly_sub(a, b), OLY_AXES(1), .keepdims = true), a);
    case LAST_SUM: return like(oly_sum(oly_mul(a, b), OLY_AXES(2), .keepdims = true), a);
    case LAST_SQUARES: return like(oly_expand_dims(oly_add(oly_sum(oly_mul(a, a), OLY_AXES(2)), 1), 2), a);
    case BOTH_SUM: return like(oly_sum(a, OLY_AXES(1, 2), .keepdims = true), a);
    case TURN_MIDDLE: return oly_flip(a, 1);
    case ACROSS_SUM: return like(oly_sum(a, OLY_AXES(0), .keepdims = true), a);
    case ACROSS_SHIFT: return oly_roll(a, 1, 0);
    default: return row_apply(op, a, b);
    }
}

static oly_array compute(const program *p, const oly_array *in, oly_array *values)
{
    memcpy(values, in, sizeof *in * INPUTS);
    for (int k = 0; k < p->n; k++)
        values[INPUTS + k] = apply(p->ops[k].op, values[p->ops[k].a], values[p->ops[k].b]);
    return values[INPUTS + p->n - 1];
}

typedef struct captured {
    const program *p;
    const oly_array *in;
} captured;

/* The two carries change places, and rows of one are used in the other. */
static void iteration(oly_array i, oly_array *c, void *user)
{
    const captured *with = user;
    oly_array values[INPUTS + MOST_OPS], in[INPUTS];
    memcpy(in, with->in, sizeof in);
    in[0] = c[0];
    in[1] = c[1];
    oly_array x = compute(with->p, in, values);
    (void)i;
    c[0] = c[1];
    c[1] = like(oly_tanh(oly_add(oly_mul(in[0], 0.5), x)), in[0]);
}

static void drawn_body(const oly_array *in, oly_array *out, void *user)
{
    program *p = user;
    oly_array values[INPUTS + MOST_OPS];
    if (p->iterations) {
        oly_array c[] = {in[0], in[1]};
        oly_fori(0, p->iterations, iteration, 2, c, &(captured){p, in});
        out[0] = c[0];
        out[1] = c[1];
        return;
    }
    compute(p, in, values);
    for (int k = 0; k < p->n_out; k++)
        out[k] = p->sums >> k & 1 ? oly_sum(oly_mul(values[p->out[k]], 3)) : values[p->out[k]];
}

static void draw_program(program *p)
{
    p->n = 4 + row_draw(MOST_OPS - 3);
    p->iterations = row_draw(4) ? 0 : 1 + row_draw(4);
    p->sums = row_draw(2) ? row_draw(8) : 0;
    p->n_out = p->iterations ? 2 : 1 + row_draw(MOST_OUTS);
    for (int k = 0; k < p->n; k++) {
        if (p->outer)
            p->ops[k].op = row_draw(3)   ? row_draw(ROW_ROOT)
                           : row_draw(5) ? MIDDLE_SUM + row_draw(TURN_MIDDLE - MIDDLE_SUM)
                                         : MIDDLE_SUM + row_draw(OUTER_OPS - MIDDLE_SUM);
        else
            p->ops[k].op = row_draw(4) ? row_draw(TURN_ROWS) : row_draw(N_OPS);
        p->ops[k].a = row_draw_value(INPUTS + k);
        p->ops[k].b = row_draw_value(INPUTS + k);
    }
    p->out[0] = INPUTS + p->n - 1;
    for (int k = 1; k < p->n_out; k++)
        p->out[k] = INPUTS + row_draw(p->n);
}

static void drawn_programs(void **state)
{
    (void)state;
    static const int64_t lengths[] = {64, 65, 100, 128, 200, 300, 513};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT16, OLY_BFLOAT16, OLY_INT32};
    static const char *const shardings[] = {"",           "x, None, None", "None, x, None", "None, ('x', 'y'), None",
                                            "y, x, None", "None, None, x"};
    int n = getenv("ROWS") ? atoi(getenv("ROWS")) : 24, first = getenv("SEED") ? atoi(getenv("SEED")) : 1;
    int64_t run = 0;
    for (int k = first; k < first + n; k++) {
        program p = {.outer = false};
        row_draw_from(k);
        draw_program(&p);
        int64_t shape[] = {1 + row_draw(3), 32 + row_draw(80), lengths[row_draw(sizeof lengths / sizeof *lengths)]},
                row[] = {1, 1, shape[2]}, one[] = {1, 1, 1};
        const char *sharding = shardings[row_draw(sizeof shardings / sizeof *shardings)];
        shape[0] = *sharding == 'x' || *sharding == 'y' ? 4 : shape[0];
        oly_dtype dtype = dtypes[row_draw(6)];
        char name[64];
        snprintf(name, sizeof name, "SEED=%d ROWS=1", k);
        OLY_SCOPE
        {
            oly_array in[] = {row_array(dtype, 1, 3, shape, sharding), row_array(dtype, 2, 3, shape, sharding),
                              row_array(dtype, 3, 3, row, ""), row_array(dtype, 4, 3, one, "")};
            run += check(name, drawn_body, &p, INPUTS, in, p.n_out);
        }
    }
    if (n >= 20)
        assert_true(run > n / 10);
}

/* Values [n, m, c], of which reductions keep n alone, or n and m, or n and c. */
static void drawn_programs_of_outer_rows(void **state)
{
    (void)state;
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_FLOAT64, OLY_BFLOAT16, OLY_INT32};
    static const char *const shardings[] = {"", "x, None, None", "('y', 'x'), None, None", "('y', 'x'), None, None"};
    int n = getenv("ROWS") ? atoi(getenv("ROWS")) : 40, first = getenv("SEED") ? atoi(getenv("SEED")) : 1;
    int64_t run = 0;
    for (int k = first; k < first + n; k++) {
        program p = {.outer = true};
        row_draw_from(k + 1000);
        draw_program(&p);
        int64_t shape[] = {32 + 8 * row_draw(9) + (row_draw(3) ? 0 : row_draw(8)), 4 * (1 + row_draw(20)),
                           4 * (1 + row_draw(5)) - row_draw(4)},
                pairs[] = {1, shape[1], shape[2]}, one[] = {1, shape[1], 1};
        const char *sharding = shardings[row_draw(sizeof shardings / sizeof *shardings)];
        oly_dtype dtype = dtypes[row_draw(5)];
        char name[64];
        shape[0] = *sharding ? shape[0] / 8 * 8 : shape[0];
        snprintf(name, sizeof name, "outer SEED=%d ROWS=1", k);
        OLY_SCOPE
        {
            oly_array in[] = {row_array(dtype, 1, 3, shape, sharding), row_array(dtype, 2, 3, shape, sharding),
                              row_array(dtype, 3, 3, pairs, ""), row_array(dtype, 4, 3, one, "")};
            run += check(name, drawn_body, &p, INPUTS, in, p.n_out) > 0;
        }
    }
    if (n >= 20)
        assert_true(run > n / 10);
}

/* Accelerations of bodies that attract each other: positions [n, 3], masses [n]. */
static void bodies(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array d = oly_sub(oly_expand_dims(in[0], 0), oly_expand_dims(in[0], 1));
    oly_array square = oly_add(oly_sum(oly_mul(d, d), OLY_AXES(2)), 1e-3);
    oly_array pull = oly_mul(oly_expand_dims(in[1], 0), oly_pow(square, -1.5));
    out[0] = oly_sum(oly_mul(oly_expand_dims(pull, 2), d), OLY_AXES(1));
}

/* How far the nearest of the centres [m, c] is, and their mean, weighted by nearness. */
static void nearest(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array d = oly_sub(oly_expand_dims(in[0], 1), oly_expand_dims(in[1], 0));
    oly_array square = oly_sum(oly_mul(d, d), OLY_AXES(2));
    out[0] = oly_min(square, OLY_AXES(1));
    out[1] = oly_sum(oly_mul(oly_exp(oly_neg(oly_expand_dims(square, 2))), oly_expand_dims(in[1], 0)), OLY_AXES(1));
}

static void pairs_are_one_chain(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++)
        OLY_SCOPE
        {
            int64_t n = many ? 600 : 96, shape[] = {n, 3}, centres[] = {many ? 300 : 67, 3};
            oly_array x = row_array(OLY_FLOAT32, 1, 2, shape, "(y, x), None");
            oly_array in[] = {x, row_array(OLY_FLOAT32, 2, 1, &n, "")};
            oly_array with[] = {x, row_array(OLY_FLOAT32, 3, 2, centres, "")};
            assert_true(check("bodies", bodies, NULL, 2, in, 1) > 0);
            assert_true(check("nearest", nearest, NULL, 2, with, 2) > 0);
        }
}

/* -- what people write ------------------------------------------------------------------------------------------------------ */

#define FUNCTION(name, ...)                                                                                            \
    static void name(const oly_array *in, oly_array *out, void *user)                                                  \
    {                                                                                                                  \
        oly_array x = in[0];                                                                                           \
        (void)user;                                                                                                    \
        out[0] = __VA_ARGS__;                                                                                          \
    }
FUNCTION(log_softmax, oly_log_softmax(x, -1))
FUNCTION(variance, oly_var(x, OLY_AXES(-1)))
FUNCTION(unit_rows, oly_div(x, oly_sqrt(oly_sum(oly_mul(x, x), OLY_AXES(-1), .keepdims = true))))

/* A value takes the place of one whose rows the chain has read before, and is read in the chain only. */
static void several_times(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_softmax(oly_cumsum(in[0], -1), -1);
    for (int k = 0; k < 3; k++) {
        oly_array y = oly_tanh(oly_sub(x, oly_max(x, OLY_AXES(-1), .keepdims = true)));
        x = oly_div(y, oly_add(oly_sum(oly_abs(y), OLY_AXES(-1), .keepdims = true), 1));
    }
    out[0] = oly_sum(x, OLY_AXES(-1));
}

static void programs_of_people(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        oly_function f;
        int n_out;
    } programs[] = {{"softmax", row_softmax, 1}, {"log_softmax", log_softmax, 1},    {"logsumexp", row_logsumexp, 1},
                    {"variance", variance, 1},   {"unit rows", unit_rows, 1},        {"layernorm", row_layernorm, 1},
                    {"moments", row_moments, 3}, {"several times", several_times, 1}};
    static const int64_t shapes[][3] = {{8, 40, 512}, {2, 33, 200}, {16, 16, 1000}, {1, 3000, 64}};
    static const char *const shardings[] = {"", "None, x, None", "None, ('y', 'x'), None"};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
        for (int s = 0; s < 4; s++)
            for (int by = 0; by < 3; by++)
                OLY_SCOPE
                {
                    char name[99];
                    snprintf(name, sizeof name, "%s of %d x %d x %d, %d", programs[k].name, (int)shapes[s][0],
                             (int)shapes[s][1], (int)shapes[s][2], by);
                    oly_array in[] = {row_array(OLY_FLOAT32, 1, 3, shapes[s], shardings[by]),
                                      row_array(OLY_FLOAT32, 2, 1, &shapes[s][2], "")};
                    int64_t run = check(name, programs[k].f, NULL, 2, in, programs[k].n_out);
                    if (run == 0 && by == 1 && s != 1)
                        fail_msg("%s: was not run as a chain", name);
                }
}

/* The last step of what would be a chain converts bytes, which the product reads by itself where it can. */
static void quantised(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_max(in[0], OLY_AXES(-1));
    out[1] = oly_min(in[0], OLY_AXES(-1));
    out[2] = oly_matmul(in[0], in[1], .preferred_element_type = OLY_INT32);
}

static void products_of_bytes_beside_a_chain(void **state)
{
    (void)state;
    static const char *const shardings[] = {"", "x, None", "(y, x), None"};
    int64_t rows[] = {1000, 512}, columns[] = {512, 40};
    for (int k = 0; k < 3; k++)
        OLY_SCOPE
        {
            oly_array in[] = {row_array(OLY_INT8, 1, 2, rows, shardings[k]), row_array(OLY_INT8, 2, 2, columns, "")};
            assert_true(check("quantised", quantised, NULL, 2, in, 3) > 0);
        }
}

/* Results whose rows are not where the rows of the donated input were: one step follows the other. */
FUNCTION(narrower, oly_astype(oly_softmax(x, -1), OLY_FLOAT16))
FUNCTION(narrower_sums, oly_sum(oly_mul(oly_softmax(x, -1), 2), OLY_AXES(-1)))

static void results_in_other_rows(void **state)
{
    (void)state;
    int64_t shape[] = {16, 64, 300};
    for (int sharded = 0; sharded < 2; sharded++)
        OLY_SCOPE
        {
            oly_array in[] = {row_array(OLY_FLOAT32, 1, 3, shape, sharded ? "x, y, None" : "")};
            int64_t before = oly_counted(&oly_device_counted.rows_in_order);
            check("narrower", narrower, NULL, 1, in, 1);
            check("narrower sums", narrower_sums, NULL, 1, in, 1);
            if (sharded) /* what all devices hold together is not taken over by each */
                assert_true(oly_counted(&oly_device_counted.rows_in_order) > before);
        }
}

/* By default, only what does not stay in cache is. */
static void small_ones(void **state)
{
    (void)state;
    int64_t least = oly_row_chains_least, before = chains(), small[] = {64, 256}, large[] = {4096, 1024};
    oly_row_chains_least = 1 << 21;
    oly_fn f = oly_jit(row_softmax, 1, 1);
    OLY_SCOPE
    {
        oly_block_until_ready(oly_apply(f, row_array(OLY_FLOAT32, 1, 2, small, "")));
        assert_int_equal(chains(), before);
        oly_block_until_ready(oly_apply(f, row_array(OLY_FLOAT32, 1, 2, large, "")));
        assert_true(chains() > before);
    }
    oly_row_chains_least = least;
}

static int open_with_chains(void **state)
{
    oly_row_chains_least = 1;
    setenv("OLYMPUS_COMPUTE_ONCE", "1000000000", 1); /* sums of replicated arrays are computed by each device */
    return check_start_wide(state);
}

/* What all devices have alike is held once, however small: chains read memory of another device. */
static int open_with_held_values(void **state)
{
    oly_row_chains_least = 1;
    setenv("OLYMPUS_COMPUTE_ONCE", "0", 1);
    return check_start_wide(state);
}

static int close_with_chains(void **state)
{
    oly_row_chains_least = 1 << 21;
    unsetenv("OLYMPUS_COMPUTE_ONCE");
    return check_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(drawn_programs, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(drawn_programs_of_outer_rows, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(pairs_are_one_chain, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(drawn_programs, open_with_held_values, close_with_chains),
        cmocka_unit_test_setup_teardown(programs_of_people, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(products_of_bytes_beside_a_chain, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(results_in_other_rows, open_with_chains, close_with_chains),
        cmocka_unit_test_setup_teardown(small_ones, open_with_chains, close_with_chains),
    };
    return CHECK_MAIN(tests);
}
