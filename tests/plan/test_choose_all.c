/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  Layouts chosen by cost, against all possible ones: products of small graphs are computed in
 * every way that their factors allow (each mesh axis over rows, columns, the contraction, the contraction scattered to
 * rows or columns, or nothing), each forced by constraints and without the choice. What was chosen must not move more
 * than the best of those with as little redundant computation, and with OLYMPUS_CHOOSE=2 not take longer. */
#include "array/function.h"
#include "check.h"
#include "core/option.h"
#include "plan/cost/cost.h"
#include <inttypes.h>
#include <olympus.h>

enum { AS_PROPAGATED, LEAST_BYTES, LEAST_TIME }; /* OLYMPUS_CHOOSE */

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_option.choose = LEAST_BYTES;
    return oly_device_count() == 8 ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    return oly_finalize();
}

/* -- ways to compute a product ------------------------------------------------------------------------------------- */

typedef enum role { NOTHING, ROWS, COLUMNS, SUM, SUM_TO_ROWS, SUM_TO_COLUMNS, ROLES } role;

static const char *const axis_names[] = {"x", "y", "z"};

/* The axes with these roles, in order, over two dimensions: "(x,y), z". */
static void spec_of(const role *way, int n_axes, const role first[2], const role second[2], char *text)
{
    const role *const of[2] = {first, second};
    char *at = text;
    for (int d = 0; d < 2; d++) {
        char axes[16] = "";
        int n = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int a = 0; a < n_axes; a++)
                if (of[d][pass] != NOTHING && way[a] == of[d][pass]) {
                    strcat(axes, n++ ? "," : "");
                    strcat(axes, axis_names[a]);
                }
        at += sprintf(at, n == 0 ? "%sNone" : n == 1 ? "%s%s" : "%s(%s)", d ? ", " : "", axes);
    }
}

typedef struct product {
    const char *mesh;
    int n_axes;
    int64_t m, k, n;
    const char *x, *w, *out;
} product;

typedef struct forced {
    product p;
    oly_mesh mesh;
    bool forced;
    char x[40], w[40], result[40];
} forced;

static void force(forced *f, const role *way)
{
    spec_of(way, f->p.n_axes, (role[]){ROWS, NOTHING}, (role[]){SUM, NOTHING}, f->x);
    for (int a = 0; a < f->p.n_axes; a++) /* a scattered sum is computed first */
        if (way[a] == SUM_TO_ROWS || way[a] == SUM_TO_COLUMNS) {
            role sums[3];
            for (int b = 0; b < f->p.n_axes; b++)
                sums[b] = way[b] >= SUM ? SUM : way[b];
            spec_of(sums, f->p.n_axes, (role[]){ROWS, NOTHING}, (role[]){SUM, NOTHING}, f->x);
            spec_of(sums, f->p.n_axes, (role[]){SUM, NOTHING}, (role[]){COLUMNS, NOTHING}, f->w);
            spec_of(way, f->p.n_axes, (role[]){ROWS, SUM_TO_ROWS}, (role[]){COLUMNS, SUM_TO_COLUMNS}, f->result);
            return;
        }
    spec_of(way, f->p.n_axes, (role[]){SUM, NOTHING}, (role[]){COLUMNS, NOTHING}, f->w);
    spec_of(way, f->p.n_axes, (role[]){ROWS, NOTHING}, (role[]){COLUMNS, NOTHING}, f->result);
}

static void multiply(const oly_array *in, oly_array *out, void *user)
{
    const forced *f = user;
    oly_array x = in[0], w = in[1];
    if (f->forced) {
        x = oly_with_sharding_constraint(x, oly_named(f->mesh, f->x));
        w = oly_with_sharding_constraint(w, oly_named(f->mesh, f->w));
    }
    out[0] = oly_matmul(x, w);
    if (f->forced)
        out[0] = oly_with_sharding_constraint(out[0], oly_named(f->mesh, f->result));
}

typedef struct prediction {
    int64_t bytes;
    double seconds;
} prediction;

static prediction cost_of(oly_fn f, int n_in, const oly_array *in)
{
    const oly_plan *plan;
    oly_plan_costs costs;
    assert_int_equal(oly_costs_n(&costs, f, n_in, in), OLY_OK);
    assert_int_equal(oly_function_plan(f, n_in, in, &plan), OLY_OK);
    return (prediction){costs.wire_bytes, oly_cost_plan(plan)};
}

static oly_array numbers(oly_mesh mesh, int64_t m, int64_t n, const char *spec)
{
    return oly_device_put(oly_zeros(OLY_FLOAT32, m, n), oly_named(mesh, spec));
}

static prediction try_product(forced *f, int choose)
{
    prediction p = {0};
    OLY_SCOPE
    {
        oly_sharding out = oly_named(f->mesh, f->p.out);
        oly_array in[2] = {numbers(f->mesh, f->p.m, f->p.k, f->p.x), numbers(f->mesh, f->p.k, f->p.n, f->p.w)};
        oly_option.choose = choose;
        p = cost_of(oly_jit(multiply, 2, 1, .user = f, .out_shardings = &out), 2, in);
        oly_option.choose = LEAST_BYTES;
    }
    return p;
}

/* How many parts the computation has. */
static int parts_of(const forced *f, const role *way)
{
    int parts = 1;
    for (int a = 0; a < f->p.n_axes; a++)
        parts *= way[a] == NOTHING ? 1 : (int)oly_mesh_axis_size(f->mesh, a);
    return parts;
}

/* The fewest bytes and the shortest time of all ways with this many parts. */
static prediction best_of_all(forced *f, int parts, char *how)
{
    prediction best = {INT64_MAX, 1e9};
    role way[3] = {NOTHING, NOTHING, NOTHING};
    f->forced = true;
    for (bool more = true; more;) {
        force(f, way);
        prediction p = parts_of(f, way) < parts ? best : try_product(f, AS_PROPAGATED);
        if (p.bytes < best.bytes)
            sprintf(how, "%s @ %s -> %s", f->x, f->w, f->result);
        best.bytes = p.bytes < best.bytes ? p.bytes : best.bytes;
        best.seconds = p.seconds < best.seconds ? p.seconds : best.seconds;
        more = false;
        for (int a = 0; a < f->p.n_axes && !more; a++) {
            way[a] = way[a] + 1 < ROLES ? way[a] + 1 : NOTHING;
            more = way[a] != NOTHING;
        }
    }
    f->forced = false;
    return best;
}

/* Costs of links and computation, the same for all levels. */
static oly_rates use_rates(const char *link, const char *work)
{
    oly_rates before = *oly_rates_now(), r;
    char text[300];
    snprintf(text, sizeof text, "process=%s; node=%s; network=%s; %s", link, link, link, work);
    assert_int_equal(oly_rates_read(text, &r), OLY_OK);
    oly_rates_use(&r);
    return before;
}

static const product products[] = {
    /* one axis: gather either operand, sum, sum and scatter, or compute everything everywhere */
    {"x=8", 1, 16, 64, 512, "x", "None, x", "x"},
    {"x=8", 1, 512, 64, 16, "x", "None, x", "x"},
    {"x=8", 1, 16, 4096, 16, "None, x", "x", "None"},
    {"x=8", 1, 16, 4096, 16, "None, x", "x", "x"},
    {"x=8", 1, 128, 8, 128, "None, x", "x", "None"},
    {"x=8", 1, 8, 8, 8, "x", "x", "None"},
    {"x=8", 1, 64, 64, 64, "x", "x", "None, x"},
    {"x=8", 1, 64, 64, 8, "None, x", "None, x", "x"},
    {"x=8", 1, 8, 1024, 64, "x", "x", "None, x"},
    /* two: operands gathered along rows and columns of the mesh, or one of them, or sums */
    {"x=2, y=4", 2, 256, 256, 256, "x, y", "x, y", "x, y"},
    {"x=2, y=4", 2, 8, 1024, 1024, "x, y", "y, x", "x, y"},
    {"x=2, y=4", 2, 1024, 16, 64, "x, y", "x, y", "y, x"},
    {"x=2, y=4", 2, 64, 2048, 64, "x, y", "(x,y)", "x, y"},
    {"x=2, y=4", 2, 64, 64, 64, "(x,y)", "None, (x,y)", "x, y"},
    {"x=2, y=4", 2, 16, 512, 256, "None, y", "y, x", "x"},
    {"x=2, y=4", 2, 256, 8, 256, "y, x", "x, y", "x, y"},
    /* three: each axis over rows, columns or the contraction */
    {"x=2, y=2, z=2", 3, 128, 128, 128, "x, z", "z, y", "x, y"},
    {"x=2, y=2, z=2", 3, 128, 128, 128, "x, z", "z, y", "(x,z), y"},
    {"x=2, y=2, z=2", 3, 64, 1024, 64, "x, (y,z)", "y, (x,z)", "x, y"},
    {"x=2, y=2, z=2", 3, 256, 32, 256, "(x,y), z", "z, (x,y)", "x, y"},
    {"x=2, y=2, z=2", 3, 16, 256, 1024, "x, y", "z, (x,y)", "None, (x,y)"},
};

/* Computation is free: the fewest bytes. */
static void products_move_as_little_as_can_be(void **state)
{
    (void)state;
    oly_rates before = use_rates("0s,1GB/s", "memory=1000TB/s; gemm=1000Tflop/s; operations=1000Top/s");
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        char how[150] = "";
        forced f = {.p = products[k], .mesh = oly_make_mesh(products[k].mesh)};
        prediction chosen = try_product(&f, LEAST_BYTES), greedy = try_product(&f, AS_PROPAGATED),
                   best = best_of_all(&f, 1, how);
        print_message("[%" PRId64 ",%" PRId64 "] %-10s @ [%" PRId64 ",%" PRId64 "] %-12s -> %-10s: %7" PRId64
                      " bytes, as propagated %7" PRId64 ", best of all %7" PRId64 ": %s\n",
                      f.p.m, f.p.k, f.p.x, f.p.k, f.p.n, f.p.w, f.p.out, chosen.bytes, greedy.bytes, best.bytes, how);
        if ((double)chosen.bytes > 1.03 * (double)best.bytes || chosen.bytes > greedy.bytes)
            fail_msg("a better way was not chosen");
    }
    oly_rates_use(&before);
}

/* Computation is expensive: still the fewest bytes of all ways in which it is divided as it must be, by the axes that
 * split the result or the contraction of both operands; or no way is faster. Work is hardly ever done twice for fewer bytes. */
static void products_move_little_but_divide_their_work(void **state)
{
    (void)state;
    oly_rates before = use_rates("1us,100GB/s", "gemm=1Gflop/s; memory=1GB/s; operations=1Gop/s");
    for (size_t k = 0; k < sizeof products / sizeof *products; k++) {
        char how[150] = "";
        forced f = {.p = products[k], .mesh = oly_make_mesh(products[k].mesh)};
        const char *summed = strstr(products[k].x, ", "); /* not the comma of "(x,y)" */
        role must[3] = {NOTHING, NOTHING, NOTHING};
        for (int a = 0; a < f.p.n_axes; a++) {
            bool paired = summed && summed[2] == *axis_names[a] && products[k].w[0] == *axis_names[a];
            must[a] = paired || strstr(products[k].out, axis_names[a]) ? ROWS : NOTHING;
        }
        prediction chosen = try_product(&f, LEAST_BYTES), greedy = try_product(&f, AS_PROPAGATED),
                   best = best_of_all(&f, parts_of(&f, must), how);
        bool least = (double)chosen.bytes <= 1.03 * (double)best.bytes || chosen.seconds <= 1.01 * best.seconds;
        if (!least || chosen.bytes > greedy.bytes)
            fail_msg("%s @ %s -> %s: %" PRId64 " bytes, %g s, as propagated %" PRId64 ", %g s, best of all %" PRId64
                     ", %g s: %s",
                     f.p.x, f.p.w, f.p.out, chosen.bytes, chosen.seconds, greedy.bytes, greedy.seconds, best.bytes,
                     best.seconds, how);
    }
    oly_rates_use(&before);
}

/* A training step, each device with its part of the data: gathering the data would move a fifth of the bytes, and every
 * device would compute everything. Computation is expensive, so the time shows that. */
static void slopes(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array h = oly_tanh(oly_matmul(in[0], in[1])), wrong = oly_sub(oly_matmul(h, in[2]), in[0]);
    oly_array back = oly_mul(oly_matmul(wrong, oly_transpose(in[2])), oly_sub(1.0, oly_mul(h, h)));
    out[0] = oly_matmul(oly_transpose(in[0]), back);
    out[1] = oly_matmul(oly_transpose(h), wrong);
}

static void a_batch_is_never_gathered_to_move_less(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_rates before = use_rates("1us,10GB/s", "gemm=10Gflop/s; memory=1GB/s");
    prediction greedy = {0};
    for (int choose = AS_PROPAGATED; choose <= LEAST_TIME; choose++)
        OLY_SCOPE
        {
            oly_sharding whole[2] = {oly_named(mesh, "None"), oly_named(mesh, "None")};
            oly_array in[3] = {numbers(mesh, 96, 256, "x"), numbers(mesh, 256, 256, "None"),
                               numbers(mesh, 256, 256, "None")};
            oly_option.choose = choose;
            prediction p = cost_of(oly_jit(slopes, 3, 2, .out_shardings = whole), 3, in);
            oly_option.choose = LEAST_BYTES;
            greedy = choose == AS_PROPAGATED ? p : greedy;
            print_message("a batch, OLYMPUS_CHOOSE=%d: %" PRId64 " bytes, %g s\n", choose, p.bytes, p.seconds);
            assert_true(p.bytes <= greedy.bytes && p.seconds < 1.1 * greedy.seconds);
        }
    oly_rates_use(&before);
}

/* A replicated result may be computed whole by every device if that moves less, whatever the time; not where time
 * decides. */
static void bytes_or_time_decide(void **state)
{
    (void)state;
    oly_rates before = use_rates("2us,6GB/s", "gemm=50Gflop/s");
    forced f = {.p = {"x=8", 1, 512, 256, 512, "None, x", "None, x", "None"}, .mesh = oly_make_mesh("x=8")};
    prediction bytes = try_product(&f, LEAST_BYTES), fast = try_product(&f, LEAST_TIME);
    assert_int_equal(bytes.bytes, 2 * 7 * 512 * 256 * 4);
    assert_true(fast.bytes > bytes.bytes && fast.seconds < bytes.seconds);
    oly_rates_use(&before);
}

/* Time decides. Links and computation cost something, each in turn the most: no way that moves less than propagation's
 * takes much less time. */
static void products_take_as_little_time_as_can_be(void **state)
{
    (void)state;
    static const char *const rates[][2] = {
        {"0s,6GB/s", "gemm=50Gflop/s"}, {"0s,100GB/s", "gemm=1Gflop/s; memory=1GB/s"}, {"0s,1GB/s", "gemm=500Gflop/s"}};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        oly_rates before = use_rates(rates[r][0], rates[r][1]);
        for (size_t k = 0; k < sizeof products / sizeof *products; k += 2) {
            char how[150] = "";
            forced f = {.p = products[k], .mesh = oly_make_mesh(products[k].mesh)};
            if (f.p.n_axes == 3)
                continue; /* slow */
            prediction chosen = try_product(&f, LEAST_TIME), greedy = try_product(&f, AS_PROPAGATED),
                       best = best_of_all(&f, 1, how);
            if (chosen.bytes > greedy.bytes ||
                (chosen.seconds > 1.25 * best.seconds && chosen.seconds > 1.02 * greedy.seconds))
                fail_msg("%s: %s @ %s -> %s: %g s, %" PRId64 " bytes; as propagated %g s, %" PRId64
                         "; best of all %g s, %" PRId64,
                         rates[r][0], f.p.x, f.p.w, f.p.out, chosen.seconds, chosen.bytes, greedy.seconds, greedy.bytes,
                         best.seconds, best.bytes);
        }
        oly_rates_use(&before);
    }
}

/* -- redundant computation against communication ------------------------------------------------------------------- */

/* Two results, one replicated and one split, of a computed value: all devices compute all of it, or each its part,
 * which is gathered. */
typedef struct computed {
    oly_mesh mesh;
    const char *in, *at; /* sharding of the input; where it is computed, NULL: open */
    int times;           /* how expensive it is */
} computed;

static void compute(const oly_array *in, oly_array *out, void *user)
{
    const computed *c = user;
    oly_array v = in[0];
    if (c->at)
        v = oly_with_sharding_constraint(v, oly_named(c->mesh, c->at));
    for (int k = 0; k < c->times; k++)
        v = oly_sin(v);
    out[0] = oly_add(in[1], v);
    if (c->at)
        v = oly_with_sharding_constraint(v, oly_named(c->mesh, c->at));
    out[1] = oly_with_sharding_constraint(v, oly_named(c->mesh, "None"));
}

static prediction try_computed(computed c, int64_t n, int choose)
{
    prediction p = {0};
    static computed kept;
    kept = c;
    OLY_SCOPE
    {
        oly_array in[2] = {oly_device_put(oly_zeros(OLY_FLOAT32, n), oly_named(c.mesh, c.in)),
                           oly_device_put(oly_zeros(OLY_FLOAT32, n), oly_named(c.mesh, "x"))};
        oly_option.choose = choose;
        p = cost_of(oly_jit(compute, 2, 2, .user = &kept), 2, in);
        oly_option.choose = LEAST_BYTES;
    }
    return p;
}

static void work_is_done_everywhere_where_that_costs_less(void **state)
{
    (void)state;
    static const char *const places[] = {"None", "x"};
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_rates before = use_rates("2us,6GB/s", "operations=1Gop/s; memory=10GB/s");
    /* cheap, replicated input: everywhere. Otherwise its parts are gathered */
    assert_int_equal(try_computed((computed){mesh, "None", NULL, 1}, 64, LEAST_BYTES).bytes, 0);
    for (int64_t n = 64; n <= 1 << 20; n *= 64)
        for (int k = 0; k < 2; k++) {
            computed c = {mesh, places[k], NULL, 4};
            prediction chosen = try_computed(c, n, LEAST_TIME), greedy = try_computed(c, n, AS_PROPAGATED),
                       best = {INT64_MAX, 1e9};
            for (int j = 0; j < 2; j++) {
                c.at = places[j];
                prediction p = try_computed(c, n, AS_PROPAGATED);
                best.seconds = p.seconds < best.seconds ? p.seconds : best.seconds;
                best.bytes = p.bytes < best.bytes ? p.bytes : best.bytes;
            }
            print_message("%7" PRId64 " numbers, input %-4s: %8" PRId64 " bytes, %g s; as propagated %8" PRId64
                          ", %g s; best %8" PRId64 ", %g s\n",
                          n, places[k], chosen.bytes, chosen.seconds, greedy.bytes, greedy.seconds, best.bytes,
                          best.seconds);
            assert_true(chosen.bytes <= greedy.bytes);
            assert_true(chosen.seconds <= 1.05 * best.seconds || chosen.seconds <= greedy.seconds * 1.001);
        }
    oly_rates_use(&before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_move_as_little_as_can_be, start, finish),
        cmocka_unit_test_setup_teardown(products_move_little_but_divide_their_work, start, finish),
        cmocka_unit_test_setup_teardown(a_batch_is_never_gathered_to_move_less, start, finish),
        cmocka_unit_test_setup_teardown(bytes_or_time_decide, start, finish),
        cmocka_unit_test_setup_teardown(products_take_as_little_time_as_can_be, start, finish),
        cmocka_unit_test_setup_teardown(work_is_done_everywhere_where_that_costs_less, start, finish),
    };
    return CHECK_MAIN(tests);
}
