/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=8  Row chains, steps that are one kernel on GPUs: the bits of separate steps, for drawn programs (ROWS=<number>, SEED=<first>), and for
 * those that people write; what must stay separate does. tests/gpu/test_platform.sh runs it on emulated GPUs. */
#include "check.h"
#include "check_session.h"
#include "core/optimisation.h"
#include "row_programs.h"
#include "run/device_counts.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5 /* the last ones are replayed */, MOST_OUTS = 3 };

static bool on_gpu(void)
{
    return strcmp(oly_device_platform(oly_local_device(0)), "cuda") == 0 && !getenv("EMULATED_FAIL");
}

static int64_t chains(void)
{
    return oly_counted(&oly_device_counted.row_chains);
}

/* Elements of the results as float64, in which all types here are exact. */
typedef struct results {
    double *of[MOST_OUTS];
    size_t n[MOST_OUTS];
} results;

static void keep(oly_array x, int k, results *to)
{
    oly_array all = oly_device_put(oly_astype(x, OLY_FLOAT64), oly_named(oly_make_mesh("x=4, y=2"), ""));
    free(to->of[k]);
    to->n[k] = (size_t)oly_size(all);
    to->of[k] = malloc(sizeof(double) * (to->n[k] + 1));
    assert_int_equal(oly_get(all, to->of[k], sizeof(double) * to->n[k]), OLY_OK);
}

static void compare(const char *name, int n_out, const results *a, const results *b)
{
    for (int k = 0; k < n_out; k++) {
        assert_int_equal(a->n[k], b->n[k]);
        for (size_t i = 0; i < a->n[k]; i++) {
            double x = a->of[k][i], y = b->of[k][i];
            if (memcmp(&x, &y, sizeof x) && !(x != x && y != y))
                fail_msg("%s: result %d, element %zu: %.17g in one kernel, %.17g in several", name, k, i, x, y);
        }
    }
}

static void release(results *r)
{
    for (int k = 0; k < MOST_OUTS; k++)
        free(r->of[k]);
}

static void call(oly_function function, void *user, int n_in, const oly_array *in, int n_out, oly_optimisations off,
                 int rounds, results *to)
{
    oly_optimisations before = oly_disable(off);
    oly_fn f = oly_jit(function, n_in, n_out, .user = user);
    for (int round = 0; round < rounds; round++)
        OLY_SCOPE
        {
            oly_array out[MOST_OUTS] = {NULL};
            assert_int_equal(oly_call_arrays(f, n_in, in, n_out, out), OLY_OK);
            for (int k = 0; k < n_out; k++)
                keep(out[k], k, to);
        }
    oly_disable(before);
}

static const oly_optimisations SEPARATE =
    (oly_optimisations)1 << OLY_OPTIMISATION_ROW_CHAINS | (oly_optimisations)1 << OLY_OPTIMISATION_COMPILED_GROUPS;

/* Returns how many kernels of several steps were launched. */
static int64_t check(const char *name, oly_function function, void *user, int n_in, const oly_array *in, int n_out)
{
    results one = {0}, several = {0};
    int64_t before = chains();
    call(function, user, n_in, in, n_out, SEPARATE, 1, &several);
    assert_int_equal(chains(), before);
    call(function, user, n_in, in, n_out, 0, ROUNDS, &one);
    compare(name, n_out, &one, &several);
    release(&one);
    release(&several);
    return chains() - before;
}

/* -- drawn programs ------------------------------------------------------------------------------------------------------------------ */

enum { MOST_OPS = 14, INPUTS = 4 };
typedef struct program {
    int n, n_out;
    struct {
        int op, a, b;
    } ops[MOST_OPS];
    int out[MOST_OUTS];
} program;

static void drawn_body(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array values[INPUTS + MOST_OPS];
    memcpy(values, in, sizeof *in * INPUTS);
    for (int k = 0; k < p->n; k++)
        values[INPUTS + k] = row_apply(p->ops[k].op, values[p->ops[k].a], values[p->ops[k].b]);
    for (int k = 0; k < p->n_out; k++)
        out[k] = values[p->out[k]];
}

static void draw_program(program *p)
{
    p->n = 4 + row_draw(MOST_OPS - 3);
    p->n_out = 1 + row_draw(MOST_OUTS);
    for (int k = 0; k < p->n; k++) {
        p->ops[k].op = row_draw(ROW_OPS + 2) % ROW_OPS;
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
    static const int64_t lengths[] = {2,   3,   7,   10,   16,   33,   63,   64,   65,   100, 128,
                                      256, 300, 511, 1000, 1024, 2047, 2048, 4096, 4100, 9001};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT16, OLY_BFLOAT16, OLY_INT32};
    static const char *const shardings[] = {"", "", "x, None, None", "None, x, None", "None, None, x"};
    int n = getenv("ROWS") ? atoi(getenv("ROWS")) : 16, first = getenv("SEED") ? atoi(getenv("SEED")) : 1;
    int64_t launched = 0;
    for (int k = first; k < first + n; k++) {
        program p;
        row_draw_from(k);
        draw_program(&p);
        int64_t length = lengths[row_draw(sizeof lengths / sizeof *lengths)];
        int64_t shape[] = {1 + row_draw(3), 1 + row_draw(length < 64 && row_draw(2) ? 300 : 9), length},
                one[] = {1, 1, 1};
        const char *sharding = shardings[row_draw(5)];
        shape[0] *= strchr(sharding, 'x') == sharding ? 4 : 1;
        shape[1] *= strstr(sharding, ", x,") ? 4 : 1;
        shape[2] = strstr(sharding, ", x") == strrchr(sharding, ',') && *sharding ? (length + 3) / 4 * 4 : length;
        oly_dtype dtype = dtypes[row_draw(6)];
        char name[64];
        snprintf(name, sizeof name, "SEED=%d ROWS=1", k);
        OLY_SCOPE
        {
            oly_array in[] = {row_array(dtype, 1, 3, shape, sharding), row_array(dtype, 2, 3, shape, sharding),
                              row_array(dtype, 3, 1, &shape[2], ""), row_array(dtype, 4, 3, one, "")};
            launched += check(name, drawn_body, &p, INPUTS, in, p.n_out);
        }
    }
    if (on_gpu() && n >= 8)
        assert_true(launched > 0);
}

/* -- what people write ----------------------------------------------------------------------------------------------------------------- */

static void norm(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], in[0]));
    out[1] = oly_div(in[0], oly_sqrt(out[0]));
}

static void transposed(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_softmax(oly_mul(oly_transpose(in[0]), 0.5), -1);
}

/* A loop whose body has three dependent groups and two sums of all elements. */
static void descend(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array w = oly_mul(oly_add(oly_roll(c[2], 1, 0), oly_mul(3, c[2])), 0.2);
    oly_array alpha = oly_div(c[3], oly_sum(oly_mul(c[2], w)));
    c[0] = oly_add(c[0], oly_mul(alpha, c[2]));
    c[1] = oly_sub(c[1], oly_mul(alpha, w));
    oly_array square = oly_sum(oly_mul(c[1], c[1]));
    c[2] = oly_add(c[1], oly_mul(oly_div(square, c[3]), c[2]));
    c[3] = square;
}

static void gradients(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array c[] = {oly_zeros_like(in[0]), in[0], in[0], oly_sum(oly_mul(in[0], in[0]))};
    oly_fori(0, 6, descend, 4, c, NULL);
    out[0] = c[0];
    out[1] = c[3];
}

static void programs_of_people(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        oly_function f;
        int n_out;
    } programs[] = {{"softmax", row_softmax, 1}, {"layernorm", row_layernorm, 1}, {"moments", row_moments, 3},
                    {"norm", norm, 2},           {"logsumexp", row_logsumexp, 1}, {"gradients", gradients, 2}};
    static const int64_t shapes[][2] = {{8, 4096}, {40, 130}, {4, 9000}};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++)
        for (int s = 0; s < 3; s++)
            for (int spread = 0; spread < 2; spread++)
                OLY_SCOPE
                {
                    char name[99];
                    snprintf(name, sizeof name, "%s of %d x %d%s", programs[k].name, (int)shapes[s][0],
                             (int)shapes[s][1], spread ? ", divided" : "");
                    oly_array in[] = {row_array(OLY_FLOAT32, 1, 2, shapes[s], spread ? "x, None" : ""),
                                      row_array(OLY_FLOAT32, 2, 1, &shapes[s][1], "")};
                    int64_t launched = check(name, programs[k].f, NULL, 2, in, programs[k].n_out);
                    if (on_gpu() && launched == 0 && s < 2)
                        fail_msg("%s: nothing was launched together", name);
                }
}

/* Softmax is one launch, and an iteration of conjugate gradients with a padded field is three. */
static oly_array five_points(oly_array u)
{
    int64_t one[] = {1, 1};
    oly_array p = oly_pad(u, 0, one, one, NULL);
    oly_array rows = oly_add(oly_slice(p, ":-2, 1:-1"), oly_slice(p, "2:, 1:-1"));
    return oly_sub(oly_mul(4, u), oly_add(rows, oly_add(oly_slice(p, "1:-1, :-2"), oly_slice(p, "1:-1, 2:"))));
}

static void iteration(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    oly_array w = five_points(c[2]), alpha = oly_div(c[3], oly_sum(oly_mul(c[2], w)));
    c[0] = oly_add(c[0], oly_mul(alpha, c[2]));
    c[1] = oly_sub(c[1], oly_mul(alpha, w));
    oly_array square = oly_sum(oly_mul(c[1], c[1]));
    c[2] = oly_add(c[1], oly_mul(oly_div(square, c[3]), c[2]));
    c[3] = square;
}

static void iterations(const oly_array *in, oly_array *out, void *user)
{
    oly_array c[] = {oly_zeros_like(in[0]), in[0], in[0], oly_sum(oly_mul(in[0], in[0]))};
    oly_fori(0, *(int *)user, iteration, 4, c, NULL);
    out[0] = c[0];
}

static int64_t launches_of(oly_function function, void *user, oly_array in)
{
    oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_GRAPH_REPLAY);
    oly_fn f = oly_jit(function, 1, 1, .user = user);
    int64_t launches = 0;
    for (int round = 0; round < 2; round++)
        OLY_SCOPE
        {
            launches = oly_counted(&oly_device_counted.launches);
            oly_block_until_ready(oly_apply(f, in));
            launches = oly_counted(&oly_device_counted.launches) - launches;
        }
    oly_disable(before);
    return launches;
}

/* The memory of the mean is the result's, too. */
static void variance(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_var(in[0]);
}

static void few_launches(void **state)
{
    (void)state;
    static int few = 2, more = 6;
    if (!on_gpu())
        return;
    OLY_SCOPE
    {
        oly_array x = oly_random_normal(oly_random_key(1), OLY_FLOAT32, 96, 128);
        oly_block_until_ready(x);
        assert_int_equal(launches_of(row_softmax, NULL, x), 1);
        assert_int_equal(launches_of(row_softmax, NULL, oly_random_normal(oly_random_key(1), OLY_FLOAT32, 900, 10)), 1);
        assert_true(check("variance", variance, NULL, 1, &x, 1) > 0);
        assert_int_equal(launches_of(iterations, &more, x) - launches_of(iterations, &few, x), 3 * (more - few));
    }
}

/* Padded arrays, which the kernel reads in their operand: shifts of all alignments, rows and whole arrays, other values of the padding, cropped
 * ends, and arrays that something else reads, too. */
static void shifted(const oly_array *in, oly_array *out, void *user)
{
    const int64_t *by = user; /* before, after, of both dimensions; what is read, from where */
    oly_array p = oly_pad(in[0], by[4] ? 0.75 : -1, &by[0], &by[2], NULL);
    int64_t rows = oly_dim(in[0], 0), columns = oly_dim(in[0], 1), low = by[0] + by[2], high = by[1] + by[3];
    oly_array sum = in[0];
    for (int64_t r = 0; r <= low; r++)
        for (int64_t c = 0; c <= high; c += by[5]) {
            int64_t from[] = {r, c}, to[] = {r + rows, c + columns};
            sum = oly_add(oly_mul(sum, 0.5), oly_slice_ranges(p, from, to, NULL));
        }
    out[0] = sum;
    out[1] = oly_sum(oly_mul(sum, in[0]), OLY_AXES(-1));
    out[2] = by[4] > 1 ? oly_sum(p) : oly_sum(oly_mul(sum, sum));
}

static void padded_arrays(void **state)
{
    (void)state;
    static int64_t by[][6] = {{1, 1, 1, 1, 0, 1}, {0, 2, 1, 2, 1, 1}, {1, 4, 0, 3, 0, 2},
                              {0, 8, 0, 8, 1, 4}, {1, 1, 1, 1, 2, 1}, {2, 0, 0, 5, 0, 3}};
    static const int64_t shapes[][2] = {{8, 128}, {9, 130}, {40, 1024}, {16, 97}};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT64, OLY_FLOAT16};
    int64_t launched = 0;
    for (int k = 0; k < 6; k++)
        for (int s = 0; s < 4; s++)
            for (int spread = 0; spread < 2; spread++)
                OLY_SCOPE
                {
                    char name[64];
                    snprintf(name, sizeof name, "padded %d of %d x %d%s", k, (int)shapes[s][0], (int)shapes[s][1],
                             spread ? ", divided" : "");
                    oly_array x = row_array(dtypes[(k + s) % 3], k, 2, shapes[s], spread ? "x, None" : "");
                    launched += check(name, shifted, by[k], 1, &x, 3);
                }
    if (on_gpu())
        assert_true(launched > 0);
}

/* Rows of many pieces, which the block that ends last joins: by threads and by warps, in one part and in several. */
static void of_pieces(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_mul(in[0], 3);
    out[0] = oly_sum(oly_mul(in[0], x), OLY_AXES(-1));
    out[1] = oly_max(x, OLY_AXES(-1));
}

static void many_pieces(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 65 * 4096 + 5}, {1, 4097}, {1, 2500000}, {3, 300000}, {50, 9000}};
    static const oly_dtype dtypes[] = {OLY_FLOAT32, OLY_FLOAT16, OLY_FLOAT32, OLY_FLOAT64, OLY_BFLOAT16};
    for (int k = 0; k < 5; k++)
        OLY_SCOPE
        {
            char name[64];
            snprintf(name, sizeof name, "pieces of %d x %d", (int)shapes[k][0], (int)shapes[k][1]);
            oly_array x = oly_random_normal(oly_random_key(k), OLY_FLOAT32, shapes[k][0], shapes[k][1]);
            x = oly_astype(x, dtypes[k]);
            oly_block_until_ready(x);
            results one = {0}, several = {0};
            int64_t before = chains();
            call(of_pieces, NULL, 1, &x, 2, SEPARATE, 1, &several);
            call(of_pieces, NULL, 1, &x, 2, 0, 1, &one);
            if (on_gpu() && chains() == before)
                fail_msg("%s: nothing was launched together", name);
            compare(name, 2, &one, &several);
            release(&one);
            release(&several);
        }
}

/* Results in the memory of operands, and operands that cannot be read by rows. */
static void memory_of_operands(void **state)
{
    (void)state;
    static const int64_t shape[] = {96, 96};
    results one = {0}, several = {0};
    OLY_SCOPE
    {
        oly_array in[] = {row_array(OLY_FLOAT32, 1, 2, shape, "")};
        check("transposed", transposed, NULL, 1, in, 1);
        for (int k = 0; k < 2; k++) {
            oly_optimisations before = oly_disable(k ? SEPARATE : 0);
            oly_fn f = oly_jit(row_softmax, 1, 1);
            oly_array x = row_array(OLY_FLOAT32, 1, 2, shape, "");
            for (int round = 0; round < ROUNDS; round++)
                assert_int_equal(oly_call(f, OLY_IN(x), OLY_OUT(x)), OLY_OK);
            keep(x, 0, k ? &several : &one);
            oly_disable(before);
        }
        compare("in place", 1, &one, &several);
    }
    release(&one);
    release(&several);
}

int main(void)
{
    setenv("OLYMPUS_COMPILE_AFTER", "0", 0); /* what is tested is generated */
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(programs_of_people, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(many_pieces, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(padded_arrays, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(few_launches, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(memory_of_operands, check_start_wide, check_close),
        cmocka_unit_test_setup_teardown(drawn_programs, check_start_wide, check_close)};
    return CHECK_MAIN(tests);
}
