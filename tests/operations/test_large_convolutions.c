/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,4 devices=8  Convolutions of more features and positions than the kernels compute at a time have the values of plain loops: features first
 * and last, strides, dilations, padding of all kinds, groups, large batches with large kernels, many features, wide images, float32 and float64, with and without a
 * mesh; and so have windows that are reduced. CONVOLUTION_SEED=n: of the first. */
#include "check.h"
#include "check_session.h"
#include <math.h>
#include <olympus.h>
#include <string.h>

enum { CONVOLUTIONS = 100, WINDOWS = 400, MOST = 1 << 18 };
static uint64_t seed;
static double image[MOST], kernels[MOST], right[MOST], got[MOST];

static int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

typedef struct convolution {
    int64_t batch, groups, in, out; /* features of a group */
    int64_t size[2], window[2], stride[2], apart[2], lo[2], hi[2],
        gaps[2]; /* apart: rhs_dilation, gaps: lhs_dilation */
    int64_t places[2];
    bool last, double_precision;
} convolution;

static convolution drawn(void)
{
    convolution c;
    do {
        c = (convolution){.batch = 1 + draw(3), .groups = draw(4) ? 1 : 2, .in = 1 + draw(40), .out = 1 + draw(80)};
        bool many = draw(3) == 0, deep = !many && draw(4) == 0, wide = !many && !deep && draw(4) == 0;
        const bool dilated = !many && draw(3) == 0; /* as for transposed convolutions */
        if (many)
            c.batch = 10 + draw(60), c.in = 1 + draw(4), c.groups = 1;
        if (deep)
            c.in = 100 + draw(300), c.out = 1 + draw(20), c.batch = 1;
        if (wide)
            c.in = 1 + draw(3), c.out = 6 + draw(dilated ? 6 : 12), c.batch = 1;
        c.last = draw(2), c.double_precision = draw(4) == 0;
        for (int d = 0; d < 2; d++) {
            c.size[d] = 1 + draw(d == 0 ? 12 : deep ? 20 : wide ? 1500 : 40);
            c.window[d] = 1 + draw(dilated ? 7 : 4);
            c.stride[d] = draw(3) || dilated ? 1 : 1 + draw(3);
            c.apart[d] = draw(dilated ? 2 : 4) ? 1 : 1 + draw(3);
            c.gaps[d] = dilated ? 1 + draw(4) : draw(6) ? 1 : 2;
            c.lo[d] = draw(draw(4) ? 3 : 7), c.hi[d] = draw(draw(4) ? 3 : 7);
            if (many) { /* a kernel almost as large as the image, as for derivatives */
                c.gaps[d] = 1;
                int64_t most = (c.size[d] + c.lo[d] + c.hi[d] - 1) / c.apart[d] + 1;
                c.window[d] = most > 3 ? most - draw(4) : most;
            }
            int64_t room = (c.size[d] - 1) * c.gaps[d] + 1 + c.lo[d] + c.hi[d] - (c.window[d] - 1) * c.apart[d] - 1;
            c.places[d] = room < 0 ? 0 : room / c.stride[d] + 1;
        }
    } while (c.places[0] * c.places[1] == 0 || c.batch * c.groups * c.in * c.size[0] * c.size[1] > MOST ||
             c.groups * c.out * c.in * c.window[0] * c.window[1] > MOST ||
             c.batch * c.groups * c.out * c.places[0] * c.places[1] > MOST);
    return c;
}

/* Where an element of an image [batch, features, rows, columns] is. */
static int64_t at(bool last, int64_t features, const int64_t *size, int64_t b, int64_t f, int64_t y, int64_t x)
{
    return last ? ((b * size[0] + y) * size[1] + x) * features + f : ((b * features + f) * size[0] + y) * size[1] + x;
}

static int64_t of_kernel(const convolution *c, int64_t o, int64_t f, int64_t y, int64_t x)
{
    return c->last ? ((y * c->window[1] + x) * c->in + f) * c->groups * c->out + o
                   : ((o * c->in + f) * c->window[0] + y) * c->window[1] + x;
}

/* The element under a tap in dimension d; -1: padding. */
static int64_t under(const convolution *c, int d, int64_t place, int64_t tap)
{
    int64_t i = place * c->stride[d] + tap * c->apart[d] - c->lo[d];
    return i >= 0 && i % c->gaps[d] == 0 && i / c->gaps[d] < c->size[d] ? i / c->gaps[d] : -1;
}

static double by_hand(const convolution *c, int64_t b, int64_t o, int64_t y, int64_t x)
{
    double sum = 0;
    int64_t group = o / c->out;
    for (int64_t f = 0; f < c->in; f++)
        for (int64_t v = 0; v < c->window[0]; v++)
            for (int64_t u = 0; u < c->window[1]; u++) {
                int64_t row = under(c, 0, y, v), column = under(c, 1, x, u);
                if (row >= 0 && column >= 0)
                    sum += image[at(c->last, c->groups * c->in, c->size, b, group * c->in + f, row, column)] *
                           kernels[of_kernel(c, o, f, v, u)];
            }
    return sum;
}

/* Small integers: sums are exact in any order. */
static oly_array filled(double *to, const convolution *c, int64_t a, int64_t b, int64_t d, int64_t e, oly_sharding s)
{
    const int64_t shape[4] = {a, b, d, e};
    for (int64_t k = 0; k < a * b * d * e; k++)
        to[k] = (double)(draw(17) - 8);
    oly_array all =
        oly_astype(oly_from_host(to, OLY_FLOAT64, 4, shape), c->double_precision ? OLY_FLOAT64 : OLY_FLOAT32);
    return s ? oly_device_put(all, s) : all;
}

static void check(convolution *c, oly_mesh mesh)
{
    static const char *const specs[] = {"x, None, None, None", "None, None, x, None", "None, x, None, None",
                                        "None, None, None, x"};
    oly_sharding s = mesh ? oly_named(mesh, specs[draw(4)]) : NULL;
    int64_t features = c->groups * c->in, out = c->groups * c->out;
    oly_array x = c->last ? filled(image, c, c->batch, c->size[0], c->size[1], features, s)
                          : filled(image, c, c->batch, features, c->size[0], c->size[1], s);
    oly_array k = c->last ? filled(kernels, c, c->window[0], c->window[1], c->in, out, NULL)
                          : filled(kernels, c, out, c->in, c->window[0], c->window[1], NULL);
    const int64_t padding[4] = {c->lo[0], c->hi[0], c->lo[1], c->hi[1]};
    oly_array y =
        oly_conv(x, k, .n_list = 2, .stride_list = c->stride, .padding_list = padding, .lhs_dilation_list = c->gaps,
                 .rhs_dilation_list = c->apart, .feature_group_count = c->groups,
                 .dimension_numbers = c->last ? "NHWC,HWIO->NHWC" : "NCHW,OIHW->NCHW");
    int64_t n = c->batch * out * c->places[0] * c->places[1];
    assert_int_equal(oly_size(y), n);
    assert_int_equal(oly_process_allgather(oly_astype(y, OLY_FLOAT64), got, (size_t)n * sizeof *got), OLY_OK);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t o = 0; o < out; o++)
            for (int64_t v = 0; v < c->places[0]; v++)
                for (int64_t u = 0; u < c->places[1]; u++) {
                    int64_t where = at(c->last, out, c->places, b, o, v, u);
                    right[where] = by_hand(c, b, o, v, u);
                    if (got[where] != right[where])
                        fail_msg("[%d, %d, %d, %d] is %g instead of %g", (int)b, (int)o, (int)v, (int)u, got[where],
                                 right[where]);
                }
}

/* Draws n of them, numbered from `number` on, and checks each, some on a mesh. */
static void check_drawn(int n, uint64_t number, void (*check_one)(convolution *c, oly_mesh mesh))
{
    const char *first = getenv("CONVOLUTION_SEED");
    oly_mesh mesh = oly_make_mesh("x=8");
    for (int k = 0; k < n; k++)
        OLY_SCOPE
        {
            seed = (first ? strtoull(first, NULL, 10) : number) + (uint64_t)k;
            draw(2);
            convolution c = drawn();
            if (first)
                print_message("batch %d, %d groups, %d to %d features, %d x %d by %d x %d, %s\n", (int)c.batch,
                              (int)c.groups, (int)c.in, (int)c.out, (int)c.size[0], (int)c.size[1], (int)c.window[0],
                              (int)c.window[1], c.last ? "channels last" : "channels first");
            check_one(&c, k % 3 ? mesh : NULL);
        }
}

static void have_the_values_of_plain_loops(void **state)
{
    (void)state, check_drawn(CONVOLUTIONS, 1, check);
}

/* -- reduced windows ------------------------------------------------------------------------------------------------------------- */

static double reduced_by_hand(const convolution *c, bool largest, int64_t b, int64_t f, int64_t y, int64_t x)
{
    double all = largest ? -INFINITY : 0;
    for (int64_t v = 0; v < c->window[0]; v++)
        for (int64_t u = 0; u < c->window[1]; u++) {
            int64_t row = under(c, 0, y, v), column = under(c, 1, x, u);
            if (row < 0 || column < 0)
                continue;
            double element = image[at(c->last, c->in, c->size, b, f, row, column)];
            all = !largest ? all + element : element > all ? element : all;
        }
    return all;
}

static void check_window(convolution *c, oly_mesh mesh)
{
    const bool largest = draw(2);
    static const char *const specs[] = {"x, None, None, None", "None, None, x, None", "None, x, None, None",
                                        "None, None, None, x"};
    oly_sharding s = mesh ? oly_named(mesh, specs[draw(4)]) : NULL;
    const int first = c->last ? 1 : 2;
    c->groups = 1;
    if (draw(2)) /* few channels are combined otherwise */
        c->in = 1 + draw(9);
    if (c->batch * c->in * c->places[0] * c->places[1] > MOST)
        return;
    int64_t window[4] = {1, 1, 1, 1}, stride[4] = {1, 1, 1, 1}, apart[4] = {1, 1, 1, 1}, gaps[4] = {1, 1, 1, 1},
            padding[8] = {0};
    oly_array x = c->last ? filled(image, c, c->batch, c->size[0], c->size[1], c->in, s)
                          : filled(image, c, c->batch, c->in, c->size[0], c->size[1], s);
    for (int d = 0; d < 2; d++) {
        window[first + d] = c->window[d], stride[first + d] = c->stride[d], apart[first + d] = c->apart[d];
        gaps[first + d] = c->gaps[d], padding[2 * (first + d)] = c->lo[d], padding[2 * (first + d) + 1] = c->hi[d];
    }
    oly_array y =
        oly_reduce_window(x, largest ? "max" : "sum", .n_list = 4, .window_list = window, .stride_list = stride,
                          .padding_list = padding, .base_dilation_list = gaps, .window_dilation_list = apart);
    int64_t n = c->batch * c->in * c->places[0] * c->places[1];
    assert_int_equal(oly_size(y), n);
    assert_int_equal(oly_process_allgather(oly_astype(y, OLY_FLOAT64), got, (size_t)n * sizeof *got), OLY_OK);
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t f = 0; f < c->in; f++)
            for (int64_t v = 0; v < c->places[0]; v++)
                for (int64_t u = 0; u < c->places[1]; u++) {
                    double value = got[at(c->last, c->in, c->places, b, f, v, u)],
                           by_loops = reduced_by_hand(c, largest, b, f, v, u);
                    if (value != by_loops)
                        fail_msg("[%d, %d, %d, %d] is %g instead of %g", (int)b, (int)f, (int)v, (int)u, value,
                                 by_loops);
                }
}

static void windows_have_the_values_of_plain_loops(void **state)
{
    (void)state, check_drawn(WINDOWS, 1000, check_window);
}

/* Rows of 24 positions are computed from strips of the operand, their parts of 3 on eight devices from a matrix of what taps read; so are those with steps
 * of 2, and over a dilated operand. */
static void both_ways_have_the_same_bits(void **state)
{
    enum { MOST_BITS = 2 * 9 * 24 * 48 };
    static const int64_t strides[][2] = {{1, 1}, {2, 2}, {1, 1}, {1, 1}}, gaps[][2] = {{1, 1}, {1, 1}, {2, 2}, {3, 2}};
    const int64_t padding[] = {1, 1, 1, 1};
    static float bits[2][MOST_BITS];
    oly_mesh mesh = oly_make_mesh("x=8");
    (void)state;
    oly_array w = oly_random_normal(oly_random_key(2), OLY_FLOAT32, 9, 40, 3, 3);
    for (int way = 0; way < 4; way++) {
        oly_array x = oly_random_normal(oly_random_key(1), OLY_FLOAT32, 2, 40, 24 / gaps[way][0], 24);
        for (int k = 0; k < 2; k++) {
            oly_array placed = oly_device_put(x, oly_named(mesh, k ? "None, None, None, x" : ""));
            oly_array y = oly_conv(placed, w, .n_list = 2, .padding_list = padding, .stride_list = strides[way],
                                   .lhs_dilation_list = gaps[way]);
            assert_true(oly_size(y) <= MOST_BITS);
            memset(bits[k], 0, sizeof bits[k]);
            assert_int_equal(oly_process_allgather(y, bits[k], sizeof bits[k]), OLY_OK);
        }
        assert_memory_equal(bits[0], bits[1], sizeof bits[0]);
    }
}

/* Parts of the result that meet no element of the dilated operand, of every kind of type. */
static void parts_between_dilated_elements_are_zero(void **state)
{
    static const oly_dtype types[] = {OLY_INT8, OLY_INT32, OLY_BFLOAT16, OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX64};
    /* elements at even places, taps at odd ones for every second position: parts of one position meet none */
    const int64_t gaps[] = {1, 2}, apart[] = {1, 2}, padding[] = {0, 0, 1, 0}, none[4] = {0}, inside[] = {0, 0, 0, 1};
    oly_mesh mesh = oly_make_mesh("x=8");
    (void)state;
    for (int k = 0; k < 6; k++)
        OLY_SCOPE
        {
            oly_array x = oly_astype(oly_add(oly_reshape(oly_arange(3 * 4 * 9, OLY_INT32), 1, 3, 4, 9), 1), types[k]);
            oly_array w = oly_astype(oly_add(oly_reshape(oly_arange(9 * 9, OLY_INT32), 9, 3, 1, 3), -9), types[k]);
            oly_array y = oly_conv(oly_device_put(x, oly_named(mesh, "None, None, None, x")), w, .n_list = 2,
                                   .lhs_dilation_list = gaps, .rhs_dilation_list = apart, .padding_list = padding);
            oly_array plain = oly_conv(oly_pad(x, 0, none, none, inside), w, .n_list = 2, .rhs_dilation_list = apart,
                                       .padding_list = padding);
            oly_array same =
                oly_all(oly_eq(oly_device_put(y, oly_named(mesh, "")), oly_device_put(plain, oly_named(mesh, ""))));
            bool yes = false;
            assert_int_equal(oly_process_allgather(same, &yes, sizeof yes), OLY_OK);
            assert_true(yes);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(have_the_values_of_plain_loops, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(both_ways_have_the_same_bits, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(parts_between_dilated_elements_are_zero, check_start_wide, check_finish),
        cmocka_unit_test_setup_teardown(windows_have_the_values_of_plain_loops, check_start_wide, check_finish)};
    return CHECK_MAIN(tests);
}
