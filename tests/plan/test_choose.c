/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Layouts chosen by cost: plans never move more than those of propagation alone, with the same shardings
 * of results and the values of one device; layouts of matrix products follow from communication costs; the choice is
 * deterministic; large graphs take linear time. */
#include "check.h"
#include "core/option.h"
#include "random_matrices.h"
#include <inttypes.h>
#include <olympus.h>
#include <stdlib.h>
#include <time.h>

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    oly_option.choose = 1;
    return oly_device_count() == 8 ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    return oly_finalize();
}

/* -- random programs ----------------------------------------------------------------------------------------------- */

enum { MOST_IN = MOST_MATRICES_IN };
typedef matrices program;

static void run(const oly_array *in, oly_array *out, void *user)
{
    const program *p = user;
    oly_array v[MOST_MATRICES];
    memcpy(v, in, sizeof *v * (size_t)p->n_in);
    matrices_apply(p, v);
    for (int k = 0; k < p->n_out; k++)
        out[k] = v[p->out[k]];
}

typedef struct outcome {
    oly_plan_costs costs;
    oly_array out[3];
} outcome;

static void plan(program *p, const oly_array *in, bool choose, outcome *o)
{
    oly_array *wanted[3] = {&o->out[0], &o->out[1], &o->out[2]};
    oly_option.choose = choose;
    oly_fn f = oly_jit(run, p->n_in, p->n_out, .user = p);
    assert_int_equal(oly_call(f, p->n_in, in, p->n_out, wanted), OLY_OK);
    assert_int_equal(oly_costs_n(&o->costs, f, p->n_in, in), OLY_OK);
    if (getenv("PRINT_PLANS"))
        oly_explain_n(stderr, f, p->n_in, in);
    oly_option.choose = 1;
}

static void random_programs_never_move_more(void **state)
{
    (void)state;
    int most = oly_process_count() > 1 ? 60 : 300; /* jobs of many processes are slow */
    int programs = getenv("PROGRAMS") ? atoi(getenv("PROGRAMS")) : most,
        first = getenv("SEED") ? atoi(getenv("SEED")) : 0;
    int cheaper = 0, moving = 0;
    int64_t saved = 0, all = 0;
    for (int seed = first; seed < first + programs; seed++)
        OLY_SCOPE
        {
            program p;
            oly_array in[MOST_IN], alone[MOST_IN], expected[3] = {NULL};
            outcome greedy = {0}, chosen = {0};
            matrices_make(&p, (uint64_t)seed);
            matrices_inputs(&p, alone, in);
            plan(&p, in, false, &greedy);
            plan(&p, in, true, &chosen);
            p.alone = true;
            run(alone, expected, &p);
            p.alone = false;
            moving += greedy.costs.wire_bytes > 0;
            all += greedy.costs.wire_bytes;
            saved += greedy.costs.wire_bytes - chosen.costs.wire_bytes;
            cheaper += chosen.costs.wire_bytes < greedy.costs.wire_bytes;
            if (getenv("VERBOSE"))
                fprintf(stderr, "seed %d: %" PRId64 " bytes in %" PRId64 ", chosen %" PRId64 " in %" PRId64 "\n", seed,
                        greedy.costs.wire_bytes, greedy.costs.collectives, chosen.costs.wire_bytes,
                        chosen.costs.collectives);
            if (oly_process_count() > 1) {
                /* each process counts its own devices */
            } else if (chosen.costs.wire_bytes > greedy.costs.wire_bytes ||
                       (chosen.costs.wire_bytes == greedy.costs.wire_bytes &&
                        chosen.costs.collectives > greedy.costs.collectives)) {
                matrices_print(&p);
                if (getenv("GO_ON"))
                    fprintf(stderr, "WORSE seed %d\n", seed);
                else
                    fail_msg("seed %d: %" PRId64 " bytes in %" PRId64 " collectives, %" PRId64 " in %" PRId64
                             " without the choice",
                             seed, chosen.costs.wire_bytes, chosen.costs.collectives, greedy.costs.wire_bytes,
                             greedy.costs.collectives);
            }
            for (int k = 0; k < p.n_out; k++) {
                assert_true(oly_sharding_equivalent(oly_sharding_of(greedy.out[k]), oly_sharding_of(chosen.out[k]),
                                                    oly_rank(chosen.out[k]), oly_shape(chosen.out[k])));
                matrices_compare(&p, chosen.out[k], expected[k], (uint64_t)seed);
            }
        }
    print_message("%d of %d programs that move data move less: %" PRId64 " of %" PRId64 " bytes saved\n", cheaper,
                  moving, saved, all);
    if (programs >= 300 && oly_process_count() == 1)
        assert_true(cheaper > 10);
}

/* -- layouts that follow from the costs ---------------------------------------------------------------------------- */

typedef struct product {
    oly_mesh mesh;
    const char *x, *w, *out; /* specs; out NULL: open */
    int64_t m, k, n;
} product;

static void multiply(const oly_array *in, oly_array *out, void *user)
{
    const product *p = user;
    out[0] = oly_matmul(in[0], in[1]);
    if (p->out)
        out[0] = oly_with_sharding_constraint(out[0], oly_named(p->mesh, p->out));
}

static oly_array numbers(oly_mesh mesh, int64_t m, int64_t n, const char *spec)
{
    return oly_device_put(oly_reshape(oly_arange(m * n, OLY_FLOAT32), m, n), oly_named(mesh, spec));
}

static const char *explained(oly_fn f, int n_in, const oly_array *in)
{
    static char text[20000];
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, n_in, in), OLY_OK);
    fclose(file);
    return text;
}

/* Bytes that all devices receive in one product, and its explanation. */
static int64_t bytes_of(product p, const char **text)
{
    static product kept;
    oly_plan_costs costs;
    kept = p;
    oly_array in[2] = {numbers(p.mesh, p.m, p.k, p.x), numbers(p.mesh, p.k, p.n, p.w)};
    oly_fn f = oly_jit(multiply, 2, 1, .user = &kept);
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    *text = explained(f, 2, in);
    return costs.wire_bytes;
}

static void products_follow_the_costs(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return; /* each process counts its own devices */
    oly_mesh mesh = oly_make_mesh("x=8");
    const char *text;
    /* a large W, split by columns: x is gathered, 7/8 of it to each of the 8 devices */
    assert_int_equal(bytes_of((product){mesh, "x", "None, x", NULL, 16, 64, 512}, &text), 7 * 16 * 64 * 4);
    /* a large x, split by rows: W is gathered */
    assert_int_equal(bytes_of((product){mesh, "x", "None, x", NULL, 512, 64, 16}, &text), 7 * 16 * 64 * 4);
    /* a long split contraction: sums of partial products are cheapest, 2 * 7/8 of the result each */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "None", 16, 4096, 16}, &text), 2 * 7 * 16 * 16 * 4);
    /* the same with a split result: reduce-scatter, half of that */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "x", 16, 4096, 16}, &text), 7 * 16 * 16 * 4);
    /* a short contraction and a large replicated result: both operands are gathered, no sums */
    assert_int_equal(bytes_of((product){mesh, "None, x", "x", "None", 128, 8, 128}, &text), 2 * 7 * 8 * 128 * 4);
    assert_non_null(strstr(text, "by cost: result P(None, None)"));
    assert_non_null(strstr(text, "layouts chosen by cost: "));
    /* two dimensions: rows of x and columns of W over one axis each, both gathered over the other (SUMMA) */
    oly_mesh grid = oly_make_mesh("x=2, y=4");
    assert_int_equal(bytes_of((product){grid, "x, y", "x, y", "x, y", 256, 256, 256}, &text),
                     8 * (128 * 192 + 128 * 64) * 4);
    /* with few rows their partial products are summed, and the large W stays */
    assert_true(bytes_of((product){grid, "x, y", "y, x", "x, y", 8, 1024, 1024}, &text) < 8 * 1024 * 1024);
}

/* A small value that is needed whole: every device computes it, nothing moves. */
static void small(const oly_array *in, oly_array *out, void *user)
{
    oly_array v = oly_sin(oly_mul(in[0], 2.0));
    out[0] = oly_add(in[1], v);
    out[1] = oly_with_sharding_constraint(oly_mul(v, 3.0), oly_named((oly_mesh)user, "None"));
}

static void small_work_is_done_everywhere(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[2] = {oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "None")),
                       oly_device_put(oly_ones(OLY_FLOAT32, 16), oly_named(mesh, "x"))};
    oly_plan_costs costs;
    oly_option.choose = 0;
    assert_int_equal(oly_costs_n(&costs, oly_jit(small, 2, 2, .user = (void *)mesh), 2, in), OLY_OK);
    int64_t before = costs.wire_bytes;
    oly_option.choose = 1;
    assert_int_equal(oly_costs_n(&costs, oly_jit(small, 2, 2, .user = (void *)mesh), 2, in), OLY_OK);
    print_message("small work: %" PRId64 " bytes as propagated, %" PRId64 " as chosen\n", before, costs.wire_bytes);
    assert_int_equal(costs.wire_bytes, 0);
}

/* The same plan every time, */
static void choices_are_the_same_every_time(void **state)
{
    (void)state;
    for (int seed = 0; seed < 40; seed++)
        OLY_SCOPE
        {
            program p;
            oly_array in[MOST_IN];
            static char first[20000];
            matrices_make(&p, (uint64_t)seed);
            for (int k = 0; k < p.n_in; k++)
                in[k] =
                    oly_device_put(p.call[k].rank == 2 ? oly_zeros(OLY_FLOAT32, p.call[k].shape[0], p.call[k].shape[1])
                                                       : oly_zeros(OLY_FLOAT32, p.call[k].shape[0]),
                                   oly_named(p.mesh, p.call[k].spec));
            for (int time = 0; time < 2; time++) {
                const char *text = explained(oly_jit(run, p.n_in, p.n_out, .user = &p), p.n_in, in);
                if (time == 0)
                    strcpy(first, text);
                assert_string_equal(first, text);
            }
        }
}

/* -- large graphs -------------------------------------------------------------------------------------------------- */

/* Alternating products and elementwise operations, with two matrices in turn. */
static void chain(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    for (int k = 0; k < *(int *)user / 2; k++)
        out[0] = oly_relu(oly_matmul(out[0], in[1 + k % 2]));
}

/* Bytes, and CPU time of tracing and planning, the minimum of several runs. */
static int64_t plan_chain(int operations, bool choose, double *seconds)
{
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    oly_array in[3] = {numbers(mesh, 64, 64, "x, y"), numbers(mesh, 64, 64, "x, y"), numbers(mesh, 64, 64, "y, x")};
    oly_plan_costs costs = {0};
    oly_option.choose = choose;
    *seconds = 1e9;
    for (int k = 0; k < 5; k++)
        OLY_SCOPE
        {
            struct timespec begin, end;
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
            assert_int_equal(oly_costs_n(&costs, oly_jit(chain, 3, 1, .user = &operations), 3, in), OLY_OK);
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
            double took = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
            *seconds = took < *seconds ? took : *seconds;
        }
    oly_option.choose = 1;
    return costs.wire_bytes;
}

static void large_graphs_are_chosen_in_linear_time(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return;
    double few = 0;
    static const int sizes[] = {90, 250, 1000, 4000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        double greedy_seconds, seconds;
        int64_t greedy = plan_chain(sizes[k], false, &greedy_seconds), chosen = plan_chain(sizes[k], true, &seconds);
        print_message("%d operations: %" PRId64 " bytes, as propagated %" PRId64
                      "; %.2f ms to plan, without choice %.2f\n",
                      sizes[k], chosen, greedy, 1e3 * seconds, 1e3 * greedy_seconds);
        assert_true((double)chosen < 0.6 * (double)greedy); /* every product moves half */
        if (sizes[k] == 1000)
            few = seconds;
        if (sizes[k] == 4000)
            assert_true(seconds < 4 * 2.5 * few);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_programs_never_move_more, start, finish),
        cmocka_unit_test_setup_teardown(products_follow_the_costs, start, finish),
        cmocka_unit_test_setup_teardown(small_work_is_done_everywhere, start, finish),
        cmocka_unit_test_setup_teardown(choices_are_the_same_every_time, start, finish),
        cmocka_unit_test_setup_teardown(large_graphs_are_chosen_in_linear_time, start, finish),
    };
    return CHECK_MAIN(tests);
}
