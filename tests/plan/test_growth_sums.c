/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 timeout=60  Unreduced values that are reduced to another sharding: planning takes a process at most
 * twice the work and memory for 100,000 devices that it takes for eight. Small and large ones, over one axis of a mesh
 * and over several; reduced to replicated, scattered over all devices, and elsewhere. Work is counted, not timed
 * (count_work.h). */
#include "array/function.h"
#include "check_session.h"
#include "count_work.h"
#include "core/error.h"
#include "core/simulate.h"
#include <math.h>
#include <olympus.h>

/* All devices along one axis, in reverse, as a rectangle with `b` long or short, as a box. */
typedef enum { LINE, BACKWARDS, WIDE, HIGH, BOX } shape;

static oly_mesh make_mesh(shape s)
{
    static const char *const names[] = {"a", "b", "c"};
    int n = oly_device_count(), size[3] = {n, 1, 1}, n_axes = s == BOX ? 3 : s >= WIDE ? 2 : 1;
    char text[64];
    if (s == WIDE || s == HIGH) {
        int side = (int)sqrt(n + 0.5);
        while (n % side)
            side--;
        size[0] = s == HIGH ? n / side : side;
        size[1] = n / size[0];
    } else if (s == BOX) {
        int side = (int)cbrt(n + 0.5);
        while (n % side)
            side--;
        size[2] = side;
        for (side = (int)sqrt(n / side + 0.5); n / size[2] % side;)
            side--;
        size[1] = side;
        size[0] = n / size[1] / size[2];
    }
    snprintf(text, sizeof text,
             n_axes == 1   ? "a=%d:explicit"
             : n_axes == 2 ? "a=%d:explicit, b=%d:explicit"
                           : "a=%d:explicit, b=%d:explicit, c=%d:explicit",
             size[0], size[1], size[2]);
    if (s != BACKWARDS)
        return oly_make_mesh(text);
    int *ids = malloc(sizeof *ids * (size_t)n);
    for (int k = 0; k < n; k++)
        ids[k] = n - 1 - k;
    oly_mesh list = oly_mesh_from_devices(1, names, size, ids);
    free(ids);
    return oly_mesh_with_types(list, (oly_axis_type[]){OLY_AXIS_EXPLICIT});
}

/* n: as many as there are devices. */
static const struct {
    shape mesh;
    const char *from, *to; /* to NULL: the first device */
    int64_t rows, per_device, columns;
    int like; /* not 0: compared with that one, as groups of eight devices are shorter */
} movements[] = {
    {LINE, "unreduced={a}", "", 16, 0, 16, 0},
    {LINE, "unreduced={a}", "", 1000, 0, 300, 0},
    {LINE, "unreduced={a}", "a", 0, 4, 3, 0},
    {LINE, "unreduced={a}", "a", 5, 4, 3, 0},
    {LINE, "unreduced={a}", "None, a", 3, 0, 0, 0},
    {LINE, "unreduced={a}", NULL, 16, 0, 16, 0},
    {WIDE, "unreduced={a}", "", 16, 0, 16, 0},
    {WIDE, "unreduced={b}", "", 16, 0, 16, 0},
    {HIGH, "unreduced={a, b}", "", 16, 0, 16, 0},
    {HIGH, "unreduced={a, b}", "", 1000, 0, 300, 0},
    {HIGH, "a, unreduced={b}", "a", 0, 4, 5, 0},
    {HIGH, "b, unreduced={a}", "b", 0, 4, 5, 0},
    {HIGH, "a, unreduced={b}", "(a, b)", 0, 4, 5, 2},
    {WIDE, "b, unreduced={a}", "(b, a)", 0, 4, 5, 2},
    {HIGH, "unreduced={a, b}", "a, b", 0, 1, 0, 0},
    {BOX, "unreduced={a, b, c}", "", 16, 0, 16, 0},
    {BOX, "unreduced={a, b, c}", "(c, a, b)", 0, 4, 5, 0},
    {BOX, "b, unreduced={a, c}", "b", 0, 4, 5, 0},
    {BOX, "b, c, unreduced={a}", "b, c", 0, 4, 64, 0},
};
enum { N_MOVEMENTS = sizeof movements / sizeof *movements };

static void place(const oly_array *in, oly_array *out, void *to)
{
    out[0] = oly_device_put(in[0], to);
}

typedef struct measured {
    oly_plan_costs costs;
    size_t arena;
    long work, bytes;
} measured;

static measured plan(int k)
{
    measured m = {0};
    for (int repeat = 0; repeat < 2; repeat++) /* the first one makes meshes, and data that reductions share */
        OLY_SCOPE
        {
            const oly_plan *made = NULL;
            int64_t n = oly_device_count(), rows = movements[k].rows + movements[k].per_device * n,
                    columns = movements[k].columns ? movements[k].columns : 2 * n;
            oly_mesh mesh = make_mesh(movements[k].mesh);
            oly_sharding to = movements[k].to ? oly_named(mesh, movements[k].to) : oly_single_device(oly_get_device(0));
            oly_array x = oly_device_put(oly_zeros(OLY_FLOAT32, rows, columns), oly_named(mesh, movements[k].from));
            oly_fn f = oly_jit(place, 1, 1, .user = (void *)to);
            work_done();
            assert_int_equal(oly_function_plan(f, 1, &x, &made), OLY_OK);
            m.bytes = done.bytes;
            m.work = work_done();
            m.arena = made->arena.used;
            assert_int_equal(oly_costs(&m.costs, f, x), OLY_OK);
        }
    return m;
}

/* The first of each row is the small machine that the others are compared with. */
static const char *const machines[2][7] = {
    {"1x8", "2x8", "17x8", "64x8", "1000x8", "25000x4", "12500x8"},
    {"8x1", "17x1", "64x1", "128x1", "1000x1", "100000x1"},
};

static void many_devices_cost_what_few_do(void **state)
{
    (void)state;
    static measured m[7][N_MOVEMENTS];
    int complaints = 0;
    for (int set = 0; set < 2; set++) {
        int n = 0;
        for (; n < 7 && machines[set][n]; n++) {
            check_simulate(machines[set][n]);
            for (int k = 0; k < N_MOVEMENTS; k++)
                m[n][k] = plan(k);
            check_simulate_end();
        }
        for (int k = 0; k < N_MOVEMENTS; k++) {
            const measured *few = &m[0][movements[k].like ? movements[k].like : k];
            bool good = true;
            for (int j = 1; j < n; j++)
                good = good && m[j][k].work <= 2 * few->work && m[j][k].bytes <= 2 * few->bytes &&
                       m[j][k].arena <= 2 * few->arena;
            complaints += !good;
            if (good && !getenv("GROWTH_LIST"))
                continue;
            print_message("%s sum %d:", good ? "     " : "GROWS", k);
            for (int j = 0; j < n; j++)
                print_message("  %s work %ld, %ld KB, %zu KB, %lld steps", machines[set][j], m[j][k].work,
                              m[j][k].bytes >> 10, m[j][k].arena >> 10, (long long)m[j][k].costs.steps);
            print_message("\n");
        }
    }
    check_growth(complaints);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_devices_cost_what_few_do),
    };
    return CHECK_MAIN(tests);
}
