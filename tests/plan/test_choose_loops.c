/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Layouts chosen by cost inside loops and branches: a loop gets the layouts that its steps have when
 * unrolled; data moves before the loop rather than in it; plans never move more than those of propagation alone, with
 * the same shardings and values. */
#include "check.h"
#include "core/option.h"
#include "random_matrices.h"
#include <inttypes.h>
#include <olympus.h>
#include <stdlib.h>

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

static const char *explained(oly_fn f, int n_in, const oly_array *in)
{
    static char text[400000];
    memset(text, 0, sizeof text);
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, n_in, in), OLY_OK);
    fclose(file);
    return text;
}

/* -- training: the same step in a loop and unrolled ---------------------------------------------------------------- */

enum { STEPS = 8 };

typedef struct training {
    const char *name, *mesh;
    int64_t batch, in, hidden, out; /* hidden 0: one layer */
    const char *x, *y, *w[2];
    int64_t least; /* bytes that suffice for a whole run of the loop; 0: not known */
} training;

static void step(const training *t, oly_array x, oly_array y, oly_array *w)
{
    if (t->hidden == 0) {
        oly_array wrong = oly_sub(oly_matmul(x, w[0]), y);
        w[0] = oly_sub(w[0], oly_mul(0.001, oly_matmul(oly_transpose(x), wrong)));
        return;
    }
    oly_array h = oly_tanh(oly_matmul(x, w[0])), wrong = oly_sub(oly_matmul(h, w[1]), y);
    oly_array slope1 = oly_matmul(oly_transpose(h), wrong);
    oly_array back = oly_mul(oly_matmul(wrong, oly_transpose(w[1])), oly_sub(1.0, oly_mul(h, h)));
    oly_array slope0 = oly_matmul(oly_transpose(x), back);
    w[0] = oly_sub(w[0], oly_mul(0.001, slope0));
    w[1] = oly_sub(w[1], oly_mul(0.001, slope1));
}

typedef struct around {
    const training *t;
    const oly_array *in;
    bool unrolled;
} around;

static void one_step(oly_array i, oly_array *w, void *user)
{
    const around *a = user;
    (void)i;
    step(a->t, a->in[0], a->in[1], w);
}

static void train(const oly_array *in, oly_array *out, void *user)
{
    around a = *(around *)user;
    int layers = a.t->hidden ? 2 : 1;
    a.in = in;
    memcpy(out, in + 2, sizeof *out * (size_t)layers);
    if (a.unrolled)
        for (int k = 0; k < STEPS; k++)
            step(a.t, in[0], in[1], out);
    else
        oly_fori(0, STEPS, one_step, layers, out, &a);
}

static oly_array numbers(oly_mesh mesh, int64_t m, int64_t n, const char *spec)
{
    return oly_device_put(oly_mul(0.1, oly_reshape(oly_sin(oly_arange(m * n, OLY_FLOAT32)), m, n)),
                          oly_named(mesh, spec));
}

typedef struct outcome {
    oly_plan_costs costs;
    oly_array out[MOST_MATRICES_OUT];
    char products[2000]; /* the layouts of the products, one after the other */
} outcome;

/* "P('x', None)" of every "matrix product: by cost: result P('x', None)": the layouts of a step's products. */
static void list_products(const char *text, char *list, size_t size)
{
    *list = 0;
    for (const char *at = text; (at = strstr(at, " matrix product")) && strlen(list) + 100 < size; at++) {
        const char *how = strstr(at, "result "), *end = strstr(at, " -> ");
        if (how && how < end)
            strncat(list, how, (size_t)(end - how));
        strcat(list, ";");
    }
}

static void run_training(const training *t, bool unrolled, bool choose, outcome *o)
{
    around a = {.t = t, .unrolled = unrolled};
    oly_mesh mesh = oly_make_mesh(t->mesh);
    int layers = t->hidden ? 2 : 1;
    oly_sharding wanted[2] = {oly_named(mesh, t->w[0]), layers > 1 ? oly_named(mesh, t->w[1]) : NULL};
    oly_array in[4] = {numbers(mesh, t->batch, t->in, t->x), numbers(mesh, t->batch, t->out, t->y),
                       numbers(mesh, t->in, t->hidden ? t->hidden : t->out, t->w[0])};
    if (layers > 1)
        in[3] = numbers(mesh, t->hidden, t->out, t->w[1]);
    oly_array *out[2] = {&o->out[0], &o->out[1]};
    oly_option.choose = choose;
    oly_fn f = oly_jit(train, 2 + layers, layers, .user = &a, .out_shardings = wanted);
    assert_int_equal(oly_call(f, 2 + layers, in, layers, out), OLY_OK);
    assert_int_equal(oly_costs_n(&o->costs, f, 2 + layers, in), OLY_OK);
    list_products(explained(f, 2 + layers, in), o->products, sizeof o->products);
    oly_option.choose = 1;
}

static void compare(oly_array x, oly_array expected)
{
    size_t bytes = sizeof(float) * (size_t)oly_size(expected);
    float *a = malloc(bytes), *b = malloc(bytes);
    assert_int_equal(oly_process_allgather(x, a, bytes), OLY_OK);
    assert_int_equal(oly_process_allgather(expected, b, bytes), OLY_OK);
    for (int64_t i = 0; i < oly_size(expected); i++)
        assert_true(a[i] - b[i] <= 1e-4f && b[i] - a[i] <= 1e-4f);
    free(a);
    free(b);
}

static void a_training_loop_has_the_layouts_of_its_steps(void **state)
{
    (void)state;
    static const training trainings[] = {
        /* little data: gathered on every device before the loop, nothing moves in it */
        {"data parallel", "x=8", 64, 16, 0, 8, "x", "x", {"None"}, 7 * 64 * (16 + 8) * 4},
        /* much data: gradients are summed, 2 * 7/8 of them to a device per step */
        {"large batch", "x=8", 4096, 16, 0, 8, "x", "x", {"None"}, STEPS * 2 * 7 * 16 * 8 * 4},
        {"large weights", "x=8", 16, 256, 0, 128, "x", "x", {"None"}, 0},
        {"parallel twice", "x=2, y=4", 64, 64, 0, 64, "x", "x, y", {"y"}, 0},
        {"two layers", "x=8", 64, 32, 64, 8, "x", "x", {"None", "None"}, 7 * 64 * (32 + 8) * 4},
        {"two layers, wide", "x=2, y=4", 64, 32, 64, 8, "x", "x", {"None, y", "y"}, 0},
        {"anyhow", "x=2, y=4", 64, 32, 64, 8, "x", "None, y", {"y", "x"}, 0},
    };
    for (size_t k = 0; k < sizeof trainings / sizeof *trainings; k++)
        OLY_SCOPE
        {
            const training *t = &trainings[k];
            outcome loop = {0}, greedy = {0}, steps = {0};
            run_training(t, false, true, &loop);
            run_training(t, false, false, &greedy);
            for (int o = 0; o < (t->hidden ? 2 : 1); o++)
                compare(loop.out[o], greedy.out[o]);
            if (oly_process_count() > 1)
                continue; /* each process counts its own devices */
            run_training(t, true, true, &steps);
            for (int o = 0; o < (t->hidden ? 2 : 1); o++)
                compare(loop.out[o], steps.out[o]);
            print_message("%s: %" PRId64 " bytes, as propagated %" PRId64 ", written out %" PRId64 "\n", t->name,
                          loop.costs.wire_bytes, greedy.costs.wire_bytes, steps.costs.wire_bytes);
            assert_true(loop.costs.wire_bytes <= greedy.costs.wire_bytes);
            assert_true(loop.costs.wire_bytes <= steps.costs.wire_bytes);
            if (t->least)
                assert_int_equal(loop.costs.wire_bytes, t->least);
            /* the products of a step in the middle, where the bytes are the same */
            size_t n = strlen(loop.products);
            if (loop.costs.wire_bytes == steps.costs.wire_bytes && !strstr(steps.products, loop.products))
                fail_msg("%s: the loop's products are %s, of steps written out %s", t->name, loop.products,
                         steps.products);
            assert_true(n > 0);
        }
}

/* -- before the loop rather than in it ---------------------------------------------------------------------------------------- */

static void power(oly_array i, oly_array *v, void *user)
{
    (void)i;
    v[0] = oly_matmul(((oly_array *)user)[0], v[0]);
}

static void powers(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[1];
    oly_fori(0, 20, power, 1, out, (void *)in);
}

/* Collectives inside the loop, which are indented further. */
static int inside(const char *text)
{
    int n = 0;
    const char *at = strstr(text, "times:"), *end = at ? strstr(at, "\n  output 0") : NULL;
    for (; at && at < end; at = strchr(at + 1, '\n'))
        if (strncmp(at, "\n        ", 9) == 0 && strstr(at, " per device in") &&
            strstr(at, " per device in") < strchr(at + 1, '\n'))
            n++;
    return n;
}

static void what_must_move_moves_before_the_loop(void **state)
{
    (void)state;
    if (oly_process_count() > 1)
        return;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_plan_costs costs;
    /* a carry split along the contraction: both move once to where nothing moves */
    oly_array in[2] = {numbers(mesh, 32, 32, "None, x"), numbers(mesh, 32, 64, "x")};
    oly_fn f = oly_jit(powers, 2, 1);
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    assert_int_equal(inside(explained(f, 2, in)), 0);
    oly_option.choose = 0;
    f = oly_jit(powers, 2, 1);
    oly_plan_costs before;
    assert_int_equal(oly_costs_n(&before, f, 2, in), OLY_OK);
    assert_true(inside(explained(f, 2, in)) > 0);
    oly_option.choose = 1;
    print_message("powers: %" PRId64 " bytes as propagated, %" PRId64 " as chosen\n", before.wire_bytes,
                  costs.wire_bytes);
    assert_true(costs.wire_bytes < before.wire_bytes / 8);
}

/* -- random bodies ---------------------------------------------------------------------------------------------------------------- */

typedef struct looped {
    matrices p;
    int kind;  /* 0: counted; 1: while; 2: branch; 3: branch in a loop */
    bool made; /* carries start from computed values */
    const oly_array *in;
} looped;

enum { CARRIES = 2 };

/* Each carry becomes a function of values with its shape, and stays bounded. */
static void once(const looped *l, oly_array *carry)
{
    oly_array v[MOST_MATRICES];
    memcpy(v, l->in, sizeof *v * (size_t)l->p.n_in);
    memcpy(v, carry, sizeof *v * CARRIES);
    matrices_apply(&l->p, v);
    for (int c = 0; c < CARRIES; c++) {
        const matrices_call *x = &l->p.call[c];
        oly_array next = oly_mul(carry[c], 0.5);
        for (int k = l->p.n - 1; k >= l->p.n_in; k--)
            if (l->p.call[k].rank == x->rank && l->p.call[k].shape[0] == x->shape[0] &&
                (x->rank == 1 || l->p.call[k].shape[1] == x->shape[1])) {
                next = oly_add(next, oly_mul(0.4, oly_sin(oly_mul(v[k], 1.0 / 64)))) /* does not magnify rounding */;
                break;
            }
        carry[c] = next;
    }
}

static void count_body(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    once(user, carry);
}

static oly_array goes_on(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[CARRIES], 4.0);
}

static void while_body(oly_array *carry, void *user)
{
    once(user, carry);
    carry[CARRIES] = oly_add(carry[CARRIES], 1.0);
}

static void first_branch(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, sizeof *out * CARRIES);
    once(user, out);
}

static void second_branch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    for (int c = 0; c < CARRIES; c++)
        out[c] = oly_mul(in[c], 0.25);
}

static void branch_body(oly_array i, oly_array *carry, void *user)
{
    oly_array in[CARRIES];
    memcpy(in, carry, sizeof in);
    oly_cond(oly_lt(i, 2), first_branch, second_branch, CARRIES, in, CARRIES, carry, user);
}

static void run_looped(const oly_array *in, oly_array *out, void *user)
{
    looped l = *(looped *)user;
    oly_array carry[CARRIES + 1], begin[CARRIES];
    l.in = in;
    for (int c = 0; c < CARRIES; c++)
        begin[c] = carry[c] = l.made ? oly_cos(in[c]) : in[c];
    switch (l.kind) {
    case 0: oly_fori(0, 4, count_body, CARRIES, carry, &l); break;
    case 1:
        carry[CARRIES] = oly_mul(oly_sum(in[0]), 0.0);
        oly_while(goes_on, while_body, CARRIES + 1, carry, &l);
        break;
    case 2:
        oly_cond(oly_lt(oly_mul(oly_sum(in[0]), 0.0), 1.0), first_branch, second_branch, CARRIES, begin, CARRIES, carry,
                 &l);
        break;
    default: oly_fori(0, 4, branch_body, CARRIES, carry, &l);
    }
    for (int c = 0; c < CARRIES; c++)
        out[c] = l.made ? oly_sin(carry[c]) : carry[c];
}

static void plan_looped(looped *l, const oly_array *in, bool choose, outcome *o)
{
    oly_array *wanted[CARRIES] = {&o->out[0], &o->out[1]};
    oly_option.choose = choose;
    oly_fn f = oly_jit(run_looped, l->p.n_in, CARRIES, .user = l);
    assert_int_equal(oly_call(f, l->p.n_in, in, CARRIES, wanted), OLY_OK);
    assert_int_equal(oly_costs_n(&o->costs, f, l->p.n_in, in), OLY_OK);
    if (getenv("PRINT_PLANS"))
        oly_explain_n(stderr, f, l->p.n_in, in);
    oly_option.choose = 1;
}

static void random_loops_never_move_more(void **state)
{
    (void)state;
    int most = oly_process_count() > 1 ? 12 : 240;
    int programs = getenv("PROGRAMS") ? atoi(getenv("PROGRAMS")) : most;
    int first = getenv("SEED") ? atoi(getenv("SEED")) : 0, cheaper = 0, moving = 0;
    int64_t saved = 0, all = 0;
    for (int seed = first; seed < first + programs; seed++)
        OLY_SCOPE
        {
            looped l = {.kind = seed % 4, .made = seed / 4 % 2};
            oly_array in[MOST_MATRICES_IN], alone[MOST_MATRICES_IN], expected[CARRIES];
            outcome greedy = {0}, chosen = {0};
            matrices_make(&l.p, (uint64_t)seed + 5000);
            matrices_inputs(&l.p, alone, in);
            plan_looped(&l, in, false, &greedy);
            plan_looped(&l, in, true, &chosen);
            l.p.alone = true;
            run_looped(alone, expected, &l);
            l.p.alone = false;
            moving += greedy.costs.wire_bytes > 0;
            all += greedy.costs.wire_bytes;
            saved += greedy.costs.wire_bytes - chosen.costs.wire_bytes;
            cheaper += chosen.costs.wire_bytes < greedy.costs.wire_bytes;
            if (getenv("VERBOSE"))
                fprintf(stderr, "seed %d: %" PRId64 " bytes in %" PRId64 ", chosen %" PRId64 " in %" PRId64 "\n", seed,
                        greedy.costs.wire_bytes, greedy.costs.collectives, chosen.costs.wire_bytes,
                        chosen.costs.collectives);
            if (oly_process_count() == 1 && chosen.costs.wire_bytes > greedy.costs.wire_bytes) {
                matrices_print(&l.p);
                if (getenv("GO_ON"))
                    fprintf(stderr, "WORSE seed %d\n", seed);
                else
                    fail_msg("seed %d: %" PRId64 " bytes, %" PRId64 " without the choice", seed,
                             chosen.costs.wire_bytes, greedy.costs.wire_bytes);
            }
            for (int c = 0; c < CARRIES; c++) {
                assert_true(oly_sharding_equivalent(oly_sharding_of(greedy.out[c]), oly_sharding_of(chosen.out[c]),
                                                    oly_rank(chosen.out[c]), oly_shape(chosen.out[c])));
                matrices_compare(&l.p, chosen.out[c], expected[c], (uint64_t)seed);
            }
        }
    print_message("%d of %d loops that move data move less: %" PRId64 " of %" PRId64 " bytes saved\n", cheaper, moving,
                  saved, all);
    if (programs >= 240 && oly_process_count() == 1)
        assert_true(cheaper > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_training_loop_has_the_layouts_of_its_steps, start, finish),
        cmocka_unit_test_setup_teardown(what_must_move_moves_before_the_loop, start, finish),
        cmocka_unit_test_setup_teardown(random_loops_never_move_more, start, finish),
    };
    return CHECK_MAIN(tests);
}
