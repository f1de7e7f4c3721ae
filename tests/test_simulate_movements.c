/* run: ranks=1  Movements planned for machines that are not there: all-gathers, broadcasts, all-to-alls, transposes and others of
 * every kind take for 100,000 devices as much memory as for 512, and hardly more time than for eight; they move the bytes that they
 * must; gathers and broadcasts go in as many stages as the number of processes has bits, which explanations tell. */
#include "array/function.h"
#include "check.h"
#include "core/simulate.h"
#include <malloc.h>
#include <math.h>
#include <olympus.h>
#include <time.h>

static void start(const char *size, const char *direct)
{
    setenv("OLYMPUS_SIMULATE", size, 1);
    if (direct)
        setenv("OLYMPUS_DIRECT_PROCESSES", direct, 1);
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_true(oly_simulated());
}

static void finish(void)
{
    assert_int_equal(oly_last_status(), OLY_OK);
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_SIMULATE");
    unsetenv("OLYMPUS_DIRECT_PROCESSES");
}

/* -- movements -------------------------------------------------------------------------------------------------------------- */

/* All devices in a line. */
static oly_mesh line(void)
{
    char axes[64];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count());
    return oly_make_mesh(axes);
}

/* The same, beginning with the last. */
static oly_mesh backwards(void)
{
    int n = oly_device_count(), *device = malloc(sizeof *device * (size_t)n);
    const char *name = "x";
    for (int k = 0; k < n; k++)
        device[k] = n - 1 - k;
    oly_mesh mesh = oly_mesh_from_devices(1, &name, &n, device);
    free(device);
    return mesh;
}

static oly_mesh half(void)
{
    char axes[64];
    snprintf(axes, sizeof axes, "x=%d", oly_device_count() / 2);
    return oly_make_mesh(axes);
}

/* A rectangle, wide or high. */
static oly_mesh rectangle(bool high)
{
    char axes[64];
    int n = oly_device_count(), side = (int)sqrt(n);
    while (n % side)
        side--;
    snprintf(axes, sizeof axes, "a=%d, b=%d", high ? n / side : side, high ? side : n / side);
    return oly_make_mesh(axes);
}

typedef struct movement {
    const char *name;
    oly_sharding from, to;
    int64_t shape[2];
    int64_t received; /* bytes by the devices of a process together; -1: not said */
    bool staged;
} movement;

enum { N_MOVEMENTS = 13 };

/* As large as the machine: four float32 for each device, or one for each pair of devices. */
static movement make(int k)
{
    int64_t n = oly_device_count(), few = 4 * n, own = 4 * 4 * 4, all = few * 4 * 4;
    oly_sharding first = oly_single_device(oly_get_device(0));
    oly_mesh x = line();
    switch (k) {
    case 0: return (movement){"all-gather", oly_named(x, "x"), oly_named(x, ""), {few, 4}, 8 * (all - own), true};
    case 1: return (movement){"uneven", oly_named(x, "x"), oly_named(x, ""), {few + 5, 4}, -1, true};
    case 2:
        return (movement){"along one axis",
                          oly_named(rectangle(false), "a, b"),
                          oly_named(rectangle(false), "None, b"),
                          {n, n},
                          -1,
                          true};
    case 3:
        return (movement){"along two axes",
                          oly_named(rectangle(false), "a, b"),
                          oly_named(rectangle(false), ""),
                          {few, 64},
                          -1,
                          true};
    case 4:
        return (movement){"all-gather of a list",
                          oly_named(backwards(), "x"),
                          oly_named(backwards(), ""),
                          {few, 4},
                          8 * (all - own),
                          true};
    case 5: return (movement){"broadcast", first, oly_named(x, ""), {64, 64}, 7 * 64 * 64 * 4, true};
    case 6: return (movement){"scatter", first, oly_named(x, "x"), {few, 4}, 7 * own, false};
    case 7: return (movement){"collect", oly_named(x, "x"), first, {few, 4}, all - own, false};
    case 8: return (movement){"all-to-all", oly_named(x, "x"), oly_named(x, "None, x"), {n, n}, 8 * 4 * (n - 1), false};
    case 9:
        return (movement){
            "transposed", oly_named(rectangle(true), "a, b"), oly_named(rectangle(true), "b, a"), {n, n}, -1, false};
    case 10:
        return (movement){"another rectangle",
                          oly_named(rectangle(true), "a, b"),
                          oly_named(rectangle(false), "a, b"),
                          {n, n},
                          -1,
                          false};
    case 11: return (movement){"half of them", oly_named(x, "x"), oly_named(half(), "x"), {few, 4}, -1, false};
    default: return (movement){"backwards", oly_named(x, "x"), oly_named(backwards(), "x"), {few, 4}, 8 * own, false};
    }
}

static void place(const oly_array *in, oly_array *out, void *to)
{
    out[0] = oly_device_put(in[0], to);
}

typedef struct measured {
    oly_plan_costs costs;
    size_t arena;
    double seconds;
} measured;

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static measured plan(int k)
{
    measured m = {.seconds = 1e9};
    for (int repeat = 0; repeat < 4; repeat++) /* the first one makes meshes, too */
        OLY_SCOPE
        {
            const oly_plan *made = NULL;
            movement v = make(k);
            oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, v.shape[0], v.shape[1]), v.from);
            oly_fn f = oly_jit(place, 1, 1, .user = (void *)v.to);
            double began = seconds_now();
            assert_int_equal(oly_function_plan(f, 1, &x, &made), OLY_OK);
            double took = seconds_now() - began;
            m.seconds = took < m.seconds ? took : m.seconds;
            m.arena = made->arena.total;
            assert_int_equal(oly_costs(&m.costs, f, x), OLY_OK);
            if (v.received >= 0)
                assert_int_equal(m.costs.wire_bytes, v.received);
        }
    return m;
}

/* -- tests ------------------------------------------------------------------------------------------------------------------ */

static void many_devices_cost_what_few_do(void **state)
{
    (void)state;
    static const char *const sizes[] = {"1x8", "64x8", "12500x8"};
    measured m[3][N_MOVEMENTS];
    for (int j = 0; j < 3; j++) {
        start(sizes[j], NULL);
        for (int k = 0; k < N_MOVEMENTS; k++) {
            m[j][k] = plan(k);
            print_message("%s, %s: %lld steps, %lld bytes, a plan of %zu bytes, %.0f us\n", make(k).name, sizes[j],
                          (long long)m[j][k].costs.steps, (long long)m[j][k].costs.wire_bytes, m[j][k].arena,
                          m[j][k].seconds * 1e6);
        }
        finish();
    }
    for (int k = 0; k < N_MOVEMENTS; k++) {
        const measured *few = &m[0][k], *some = &m[1][k], *many = &m[2][k];
        assert_int_equal(many->costs.collectives, 1);
        assert_in_range(many->costs.steps, 1, 1 + 2 * 14); /* each stage starts and is waited for */
        assert_in_range(many->arena, 1, 2 * some->arena + 65536);
        assert_in_range(many->arena, 1, 2 * few->arena + 131072);
        assert_in_range(many->costs.scratch_bytes, 0, few->costs.scratch_bytes + 65536);
        assert_true(many->seconds < 20 * few->seconds + 1e-4); /* there, two to four times as long */
        assert_true(many->seconds < 6 * some->seconds + 1e-4);
    }
}

/* Listed at once or later, directly or in stages: as many bytes, and it is one collective. */
static void however_it_goes_it_costs_the_same(void **state)
{
    (void)state;
    measured m[3][N_MOVEMENTS];
    static const char *const direct[] = {NULL, "1", "1000"};
    for (int j = 0; j < 3; j++) {
        start("32x8", direct[j]);
        for (int k = 0; k < N_MOVEMENTS; k++)
            m[j][k] = plan(k);
        finish();
    }
    for (int k = 0; k < N_MOVEMENTS; k++)
        for (int j = 1; j < 3; j++) {
            assert_int_equal(m[j][k].costs.wire_bytes, m[0][k].costs.wire_bytes);
            assert_int_equal(m[j][k].costs.collectives, m[0][k].costs.collectives);
            assert_int_equal(m[j][k].costs.scratch_bytes, m[0][k].costs.scratch_bytes);
        }
}

/* The explanation of a movement in a simulated job; to be freed. */
static char *explained(int k)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    movement v = make(k);
    oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, v.shape[0], v.shape[1]), v.from);
    assert_int_equal(oly_explain(file, oly_jit(place, 1, 1, .user = (void *)v.to), x), OLY_OK);
    fclose(file);
    return text;
}

static void explanations_tell_the_stages(void **state)
{
    (void)state;
    start("12500x8", NULL);
    for (int k = 0; k < N_MOVEMENTS; k++) {
        bool staged = make(k).staged;
        char *text = explained(k);
        assert_int_equal(strstr(text, " stages between ") != NULL, staged);
        if (k >= 6 && k <= 8)
            assert_non_null(strstr(text, "messages are listed by the first run"));
        free(text);
    }
    char *text = explained(0);
    assert_non_null(strstr(text, "all-gather: in 14 stages between 12500 processes"));
    assert_non_null(strstr(text, "in 14 messages"));
    assert_non_null(strstr(text, "100000 members"));
    assert_non_null(strstr(text, "in all: 1 collective, "));
    free(text);
    text = explained(5);
    assert_non_null(strstr(text, "broadcast: in 14 stages between 12500 processes, those that have it send it on"));
    free(text);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_devices_cost_what_few_do),
        cmocka_unit_test(however_it_goes_it_costs_the_same),
        cmocka_unit_test(explanations_tell_the_stages),
    };
    return CHECK_MAIN(tests);
}
