/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Reductions planned for simulated machines: sums and others, of one length and of many, over one axis of
 * a mesh and over several, small ones and those reduced in slices, scattered, running, and those of a training step.
 * For 100,000 devices planning takes at most twice the work and the memory that it takes for eight, and a quarter more
 * steps: levels are listed by the first run, and who sends what to whom is found once for a mesh and its axes. Times
 * are printed. */
#include "array/function.h"
#include "check_session.h"
#include "count_work.h"
#include "core/error.h"
#include "core/simulate.h"
#include <olympus.h>
#include <time.h>

/* -- programs, as large as the machine ---------------------------------------------------------------------------------- */

enum { MANY = 24 };

static void many_sums(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    for (int k = 0; k < MANY; k++)
        out[0] = oly_add(oly_mul(oly_tanh(out[0]), 0.5), oly_sum(out[0]));
}

/* Different lengths, multiples of a number. */
static void sums_of_many_lengths(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[0];
    for (int k = 0; k < MANY; k++) {
        char columns[32];
        snprintf(columns, sizeof columns, ":, :%d", (k % 15 + 1) * *(const int *)user);
        oly_array part = oly_slice(x, columns);
        x = oly_add(oly_mul(x, 0.5), oly_sum(oly_sum(part, .axes = "0")));
        x = oly_add(oly_tanh(x), oly_max(oly_square(oly_sum(part, .axes = "0"))));
    }
    out[0] = x;
}

static void other_reductions(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    for (int k = 0; k < MANY / 6; k++) {
        x = oly_sub(x, oly_max(x));
        x = oly_mul(oly_tanh(x), oly_prod(x));
        x = oly_add(x, oly_var(x));
        x = oly_add(oly_abs(x), oly_logsumexp(x));
        x = oly_add(x, oly_where(oly_any(oly_gt(x, 1)), 1, 2));
        x = oly_add(x, oly_astype(oly_argmax(x), OLY_FLOAT32));
    }
    out[0] = x;
}

static void running(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    for (int k = 0; k < MANY / 4; k++)
        x = oly_softmax(oly_tanh(oly_cummax(oly_cumsum(x, 0), 0)), 0);
    out[0] = x;
}

/* Over every subset of three dimensions. */
static void over_some_axes(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    static const char *const sets[] = {"0", "1", "2", "0, 1", "0, 2", "1, 2"};
    oly_array x = in[0];
    for (int k = 0; k < MANY; k++)
        x = oly_add(oly_tanh(x), oly_sum(x, .axes = sets[k % 6], .keepdims = true));
    out[0] = x;
}

/* The results stay split over the reduced axis. */
static void scattered(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[0];
    for (int k = 0; k < MANY / 2; k++)
        x = oly_add(oly_tanh(x), oly_with_sharding_constraint(oly_sum(x, .axes = "2", .keepdims = true), user));
    out[0] = x;
}

/* The same over all devices, of sums and of products. */
static void scattered_over_all(const oly_array *in, oly_array *out, void *user)
{
    oly_array x = in[0];
    for (int k = 0; k < MANY / 4; k++) {
        oly_array sums = oly_with_sharding_constraint(oly_sum(x, .axes = "0"), user);
        oly_array products = oly_with_sharding_constraint(oly_matmul(oly_transpose(x), x), user);
        x = oly_add(oly_tanh(x), oly_with_sharding_constraint(oly_add(sums, oly_sum(products, .axes = "1")), user));
        x = oly_with_sharding_constraint(x, user);
    }
    out[0] = x;
}

enum { LAYERS = 6 };

/* Layers of several widths. */
static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[LAYERS];
    for (int k = 0; k < LAYERS; k++)
        x = oly_tanh(oly_matmul(x, in[k]));
    out[0] = oly_mean(oly_square(x));
}

static void training(const oly_array *in, oly_array *out, void *user)
{
    oly_array slope[LAYERS] = {NULL}, *at[LAYERS];
    for (int k = 0; k < LAYERS; k++)
        at[k] = &slope[k];
    oly_call(*(oly_fn *)user, LAYERS + 1, in, LAYERS, at);
    for (int k = 0; k < LAYERS; k++)
        out[k] = oly_sub(in[k], oly_mul(0.01, slope[k]));
}

typedef struct program {
    const char *name;
    oly_fn f;
    int n_in;
    oly_array in[LAYERS + 1];
} program;

static oly_mesh line(void)
{
    char axes[32];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    return oly_make_mesh(axes);
}

/* c is inside processes of eight devices, a and b cross many of them. */
static oly_mesh grid(bool two)
{
    char axes[64];
    int n = oly_device_count(), a = 1;
    for (int k = 1; k * k <= n / 2; k++)
        a = n / 2 % k == 0 ? k : a;
    snprintf(axes, sizeof axes, two ? "a=%d, b=%d" : "a=%d, b=%d, c=2", a, two ? n / a : n / 2 / a);
    return oly_make_mesh(axes);
}

static program of_one(const char *name, oly_function body, void *user, oly_sharding s, int rank, const int64_t *shape)
{
    return (program){
        name, oly_jit(body, 1, 1, .user = user), 1, {oly_device_put(oly_zeros_shape(OLY_FLOAT32, rank, shape), s)}};
}

static program train(void)
{
    static oly_fn slope;
    static const int width[LAYERS + 1] = {8, 24, 96, 160, 48, 16, 1}; /* some are reduced in slices */
    oly_mesh x = line();
    slope = oly_grad(oly_jit(loss, LAYERS + 1, 1), .argnums = "0, 1, 2, 3, 4, 5");
    program p = {"training", oly_jit(training, LAYERS + 1, LAYERS, .user = &slope), LAYERS + 1, {NULL}};
    for (int k = 0; k < LAYERS; k++)
        p.in[k] = oly_device_put(oly_zeros(OLY_FLOAT32, width[k], width[k + 1]), oly_named(x, ""));
    p.in[LAYERS] = oly_device_put(oly_zeros(OLY_FLOAT32, 4 * oly_device_count(), width[0]), oly_named(x, "x"));
    return p;
}

enum { N_PROGRAMS = 10 };

static program make(int k)
{
    static int one = 1, thousand = 1000;
    int64_t n = oly_device_count(), rows[2] = {16 * n, 16}, wide[2] = {2 * n, 16384}, cube[3] = {0, 0, 16};
    oly_mesh three = grid(false);
    cube[0] = 2 * (oly_mesh_axis_size(three, 0));
    cube[1] = 2 * (oly_mesh_axis_size(three, 1));
    switch (k) {
    case 0: return of_one("sums", many_sums, NULL, oly_named(line(), "x"), 2, rows);
    case 1:
        return of_one("sums over two axes", many_sums, NULL, oly_named(grid(true), "a, b"), 2,
                      (int64_t[]){4 * n, 4 * n});
    case 2: return of_one("sums of many lengths", sums_of_many_lengths, &one, oly_named(line(), "x"), 2, rows);
    case 3: return of_one("large sums", sums_of_many_lengths, &thousand, oly_named(line(), "x"), 2, wide);
    case 4: return of_one("other reductions", other_reductions, NULL, oly_named(line(), "x"), 2, rows);
    case 5: return of_one("running", running, NULL, oly_named(line(), "x"), 2, rows);
    case 6: return of_one("over some axes", over_some_axes, NULL, oly_named(three, "a, b, c"), 3, cube);
    case 7:
        return of_one("scattered", scattered, (void *)(uintptr_t)oly_named(three, "a, (b, c), None"),
                      oly_named(three, "a, b, c"), 3, cube);
    case 8:
        return of_one("scattered over all", scattered_over_all, (void *)(uintptr_t)oly_named(line(), "x"),
                      oly_named(line(), "x"), 2, (int64_t[]){2 * n, 2 * n});
    default: return train();
    }
}

typedef struct measured {
    oly_plan_costs costs;
    size_t bytes;      /* of the plan and its graph */
    long taken, work;  /* count_work.h: exchanges, and temporary data, too */
    int64_t looked_at; /* lists of partial results, and of transfers, that were made and not copied */
    double seconds;
} measured;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static measured plan(int k, const char **name)
{
    measured m = {.seconds = 1e9};
    for (int repeat = 0; repeat < 3; repeat++) /* the first one makes meshes, and data that reductions share */
        OLY_SCOPE
        {
            const oly_plan *made = NULL;
            program p = make(k);
            double began = seconds_now();
            work_done();
            assert_int_equal(oly_function_plan(p.f, p.n_in, p.in, &made), OLY_OK);
            double took = seconds_now() - began;
            m.taken = done.bytes;
            m.work = work_done();
            *name = p.name;
            m.seconds = took < m.seconds ? took : m.seconds;
            m.bytes = made->arena.used + made->graph->arena.used;
            m.looked_at = made->looked_at;
            assert_int_equal(oly_costs_n(&m.costs, p.f, p.n_in, p.in), OLY_OK);
        }
    return m;
}

static void plans_of_reductions_hardly_grow(void **state)
{
    (void)state;
    static const char *const sizes[] = {"1x8", "64x8", "12500x8", "25000x4", "8x1", "100000x1"};
    enum { N_SIZES = sizeof sizes / sizeof *sizes };
    measured m[N_SIZES][N_PROGRAMS];
    for (int j = 0; j < N_SIZES; j++) {
        check_simulate(sizes[j]);
        for (int k = 0; k < N_PROGRAMS; k++) {
            const char *name;
            m[j][k] = plan(k, &name);
            print_message("%s, %s: %lld steps, %zu bytes, %lld looked at, %ld work, %.0f us\n", name, sizes[j],
                          (long long)m[j][k].costs.steps, m[j][k].bytes, (long long)m[j][k].looked_at, m[j][k].work,
                          m[j][k].seconds * 1e6);
        }
        check_simulate_end();
    }
    int complaints = 0;
    for (int j = 0; j < N_SIZES; j++)
        for (int k = 0; k < N_PROGRAMS; k++) {
            const measured *few = &m[strstr(sizes[j], "x1") ? 4 : 0][k];
            assert_in_range(m[j][k].looked_at, 0, k < 2 ? 800 : 8000); /* equal sums are listed once, then copied */
            assert_true(m[j][k].costs.steps <= few->costs.steps + few->costs.steps / 4);
            bool good =
                m[j][k].bytes <= 2 * few->bytes && m[j][k].taken <= 2 * few->taken && m[j][k].work <= 2 * few->work;
            complaints += !good;
            if (!good)
                print_message("GROWS program %d for %s\n", k, sizes[j]);
        }
    check_growth(complaints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_reductions_hardly_grow),
    };
    return CHECK_MAIN(tests);
}
