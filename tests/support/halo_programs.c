/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that read elements of neighbours, in one to three dimensions, bounded and periodic, written in the ways that
 * users write them. Each computes one step, so that what a device must receive follows from which elements its results
 * depend on. */
#include "halo_programs.h"
#include <stddef.h>

#define PROGRAM(name) static void name(const oly_array *in, oly_array *out, void *user)
#define X             (((void)user), in[0])

/* -- one dimension ---------------------------------------------------------------------------------------------------- */

PROGRAM(roll_1)
{
    out[0] = oly_roll(X, 1, 0);
}
PROGRAM(roll_3)
{
    out[0] = oly_roll(X, 3, 0);
}
PROGRAM(roll_10)
{
    out[0] = oly_roll(X, 10, 0);
}
PROGRAM(roll_back)
{
    out[0] = oly_roll(X, -7, 0);
}

PROGRAM(ring)
{
    oly_array x = X;
    out[0] = oly_add(oly_mul(0.5, x), oly_add(oly_mul(0.25, oly_roll(x, 1, 0)), oly_mul(0.25, oly_roll(x, -1, 0))));
}

PROGRAM(wide_ring)
{
    oly_array x = X;
    out[0] = oly_sub(oly_add(oly_roll(x, 3, 0), oly_roll(x, -2, 0)), oly_mul(2, oly_roll(x, 1, 0)));
}

static oly_array heat_of(oly_array x)
{
    oly_array mid = oly_slice(x, "1:-1"), left = oly_slice(x, ":-2"), right = oly_slice(x, "2:");
    return oly_add(oly_mul(0.5, mid), oly_mul(0.25, oly_add(left, right)));
}

PROGRAM(heat_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1", heat_of(x));
}

PROGRAM(heat_concatenate)
{
    oly_array x = X;
    out[0] = oly_concatenate(0, oly_slice(x, ":1"), heat_of(x), oly_slice(x, "-1:"));
}

PROGRAM(heat_where)
{
    oly_array x = X, i = oly_arange(oly_shape(x)[0], OLY_INT32);
    oly_array inner = oly_logical_and(oly_gt(i, 0), oly_lt(i, oly_shape(x)[0] - 1));
    out[0] = oly_where(inner, oly_pad(heat_of(x), 0, ((int64_t[]){1}), ((int64_t[]){1}), NULL), x);
}

PROGRAM(heat_padded)
{
    oly_array p = oly_pad(X, 0, ((int64_t[]){1}), ((int64_t[]){1}), NULL);
    out[0] = heat_of(p);
}

PROGRAM(heat_dynamic)
{
    oly_array x = X;
    out[0] = oly_dynamic_update_slice(x, heat_of(x), 1, ((oly_operand[]){OLY_ARG(1)}));
}

/* A stencil that reaches further to one side, and is not linear. */
PROGRAM(upwind)
{
    oly_array x = X, here = oly_slice(x, "3:-1"), far = oly_slice(x, ":-4"), next = oly_slice(x, "4:");
    out[0] = oly_update(x, "3:-1", oly_sub(oly_mul(here, far), oly_sin(next)));
}

PROGRAM(products)
{
    oly_array x = X;
    out[0] = oly_mul(oly_slice(x, "1:"), oly_slice(x, ":-1"));
}
PROGRAM(differences)
{
    out[0] = oly_diff(X, 1, 0);
}
PROGRAM(second_differences)
{
    out[0] = oly_diff(X, 2, 0);
}
PROGRAM(flipped)
{
    out[0] = oly_flip(X, 0);
}
PROGRAM(every_second)
{
    out[0] = oly_slice(X, "::2");
}
PROGRAM(every_third)
{
    out[0] = oly_slice(X, "1::3");
}
PROGRAM(middle)
{
    out[0] = oly_slice(X, "3:-2");
}
PROGRAM(padded)
{
    out[0] = oly_pad(X, 7, ((int64_t[]){1}), ((int64_t[]){1}), NULL);
}
PROGRAM(spread)
{
    out[0] = oly_pad(X, 7, ((int64_t[]){2}), ((int64_t[]){0}), ((int64_t[]){1}));
}
PROGRAM(trimmed)
{
    out[0] = oly_pad(X, 7, ((int64_t[]){-2}), ((int64_t[]){3}), NULL);
}
PROGRAM(doubled)
{
    oly_array x = X;
    out[0] = oly_concatenate(0, x, x);
}
PROGRAM(joined)
{
    oly_array x = X;
    out[0] = oly_concatenate(0, oly_mul(2, oly_slice(x, "2:")), oly_slice(x, ":2"));
}
PROGRAM(shifted_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "2:", oly_slice(x, ":-2"));
}
PROGRAM(update_of_a_slice)
{
    oly_array x = X, part = oly_slice(x, "1:"), inner = oly_add(oly_slice(part, "1:"), oly_slice(part, ":-1"));
    out[0] = oly_update(part, "1:", inner);
}
PROGRAM(strided_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "1::2", oly_slice(oly_roll(x, 1, 0), "1::2"));
}
PROGRAM(fills_in)
{
    oly_array x = X, even = oly_slice(x, ":-2:2"), next = oly_slice(x, "2::2");
    out[0] = oly_update(x, "1:-1:2", oly_mul(0.5, oly_add(even, next)));
}

static oly_array weights(int rank, const int64_t *shape)
{
    static const float values[27] = {0.25f, -1.5f, 3,      0.75f, 1,     -2,   1.25f, 0.5f, 2,
                                     -1,    4,     0.125f, -3,    1.75f, 2.5f, -4,    6,    8,
                                     1.5f,  2.25f, -7,     5,     0.1f,  3,    -0.5f, 9,    11};
    return oly_from_host(values, OLY_FLOAT32, rank, shape);
}

PROGRAM(convolve_same)
{
    out[0] = oly_convolve(X, weights(1, (int64_t[]){5}), "same");
}
PROGRAM(convolve_valid)
{
    out[0] = oly_convolve(X, weights(1, (int64_t[]){3}), "valid");
}
PROGRAM(convolve_full)
{
    out[0] = oly_convolve(X, weights(1, (int64_t[]){4}), "full");
}

static oly_array line_convolution(oly_array x, oly_conv_options options)
{
    oly_array line = oly_reshape(x, 1, 1, oly_shape(x)[0]);
    oly_array y = oly_conv_with(line, weights(3, (int64_t[]){1, 1, 3}), options);
    return oly_reshape(y, oly_shape(y)[2]);
}
PROGRAM(strided_convolution)
{
    out[0] = line_convolution(X, (oly_conv_options){.strides = "2", .padding = "SAME"});
}
PROGRAM(dilated_convolution)
{
    out[0] = line_convolution(X, (oly_conv_options){.rhs_dilation = "3", .padding = "SAME"});
}
PROGRAM(transposed_convolution)
{
    out[0] = line_convolution(X, (oly_conv_options){.lhs_dilation = "2", .padding = "(1, 1)"});
}
PROGRAM(window_sum)
{
    out[0] = oly_reduce_window(X, "sum", .window = "3", .padding = "SAME");
}
PROGRAM(window_max)
{
    out[0] = oly_reduce_window(X, "max", .window = "4", .strides = "2");
}
PROGRAM(window_dilated)
{
    out[0] = oly_reduce_window(X, "sum", .window = "3", .window_dilation = "2", .padding = "(2, 2)");
}

/* -- several fields --------------------------------------------------------------------------------------------------- */

PROGRAM(wave)
{
    oly_array u = X, before = in[1];
    oly_array bend = oly_sub(oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:")), oly_mul(2, oly_slice(u, "1:-1")));
    oly_array inner =
        oly_add(oly_sub(oly_mul(2, oly_slice(u, "1:-1")), oly_slice(before, "1:-1")), oly_mul(0.25, bend));
    out[0] = oly_update(u, "1:-1", inner);
    out[1] = u;
}

PROGRAM(three_fields)
{
    oly_array a = X, b = in[1], c = in[2];
    out[0] = oly_sub(a, oly_mul(0.1, oly_sub(oly_roll(b, -1, 0), b)));
    out[1] = oly_sub(b, oly_mul(0.1, oly_sub(c, oly_roll(c, 1, 0))));
    out[2] = oly_add(c, oly_mul(oly_roll(a, 2, 0), b));
}

PROGRAM(three_bounded_fields)
{
    oly_array a = X, b = in[1], c = in[2], mid = oly_slice(a, "1:-1");
    oly_array next = oly_add(mid, oly_mul(oly_slice(b, "2:"), oly_slice(c, ":-2")));
    out[0] = oly_update(a, "1:-1", next);
    out[1] = oly_update(b, "1:-1", oly_add(oly_slice(a, "2:"), oly_slice(c, "1:-1")));
    out[2] = oly_update(c, "1:-1", oly_sub(oly_slice(a, ":-2"), oly_slice(b, "1:-1")));
}

/* -- two dimensions --------------------------------------------------------------------------------------------------- */

static oly_array five_points(oly_array x)
{
    oly_array mid = oly_slice(x, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(x, ":-2, 1:-1"), oly_slice(x, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(x, "1:-1, :-2"), oly_slice(x, "1:-1, 2:"));
    return oly_add(oly_mul(0.5, mid), oly_mul(0.125, oly_add(rows, columns)));
}

PROGRAM(plate_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1, 1:-1", five_points(x));
}

PROGRAM(plate_where)
{
    oly_array x = X;
    int64_t m = oly_shape(x)[0], n = oly_shape(x)[1], one[] = {1, 1};
    oly_array i = oly_reshape(oly_arange(m, OLY_INT32), m, 1), j = oly_reshape(oly_arange(n, OLY_INT32), 1, n);
    oly_array inner = oly_logical_and(oly_logical_and(oly_gt(i, 0), oly_lt(i, m - 1)),
                                      oly_logical_and(oly_gt(j, 0), oly_lt(j, n - 1)));
    out[0] = oly_where(inner, oly_pad(five_points(x), 0, one, one, NULL), x);
}

PROGRAM(plate_padded)
{
    int64_t one[] = {1, 1};
    out[0] = five_points(oly_pad(X, 0, one, one, NULL));
}

/* The sum of x[i + a, j + b] over a and b of 0, 1 and 2, those with corner only where they are diagonal. */
static oly_array nine_points(oly_array x, bool corners_only)
{
    static const char *const parts[] = {":-2", "1:-1", "2:"};
    oly_array sum = oly_mul(3, oly_slice(x, "1:-1, 1:-1"));
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            char text[32];
            snprintf(text, sizeof text, "%s, %s", parts[a], parts[b]);
            if (!corners_only || (a != 1 && b != 1))
                sum = oly_add(sum, oly_mul(0.1 * (a + 1) + b, oly_slice(x, text)));
        }
    return sum;
}
PROGRAM(nine_point_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1, 1:-1", nine_points(x, false));
}
PROGRAM(corners_update)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1, 1:-1", nine_points(x, true));
}
PROGRAM(one_corner)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:, 2:", oly_slice(x, ":-1, :-2"));
}

/* Of fourth order: two cells each way, no corners. */
PROGRAM(wide_star)
{
    oly_array x = X, far = oly_add(oly_slice(x, ":-4, 2:-2"), oly_slice(x, "4:, 2:-2"));
    oly_array near = oly_add(oly_slice(x, "2:-2, 1:-3"), oly_slice(x, "2:-2, 3:-1"));
    oly_array other = oly_add(oly_slice(x, "2:-2, :-4"), oly_slice(x, "2:-2, 4:"));
    out[0] = oly_update(x, "2:-2, 2:-2", oly_sub(oly_add(far, near), oly_mul(0.3, other)));
}

static oly_array rolled(oly_array x, int64_t rows, int64_t columns)
{
    return oly_roll_axes(x, 2, (int64_t[]){rows, columns}, (int[]){0, 1});
}
PROGRAM(torus_5)
{
    oly_array x = X;
    oly_array rows = oly_add(oly_roll(x, 1, 0), oly_roll(x, -1, 0));
    out[0] = oly_sub(oly_add(rows, oly_add(oly_roll(x, 1, 1), oly_roll(x, -1, 1))), oly_mul(4, x));
}
PROGRAM(torus_9)
{
    oly_array x = X, sum = oly_mul(-8, x);
    for (int a = -1; a <= 1; a++)
        for (int b = -1; b <= 1; b++)
            sum = a || b ? oly_add(sum, rolled(x, a, b)) : sum;
    out[0] = sum;
}
PROGRAM(diagonal_roll)
{
    out[0] = rolled(X, 2, -3);
}
PROGRAM(flipped_plate)
{
    out[0] = oly_flip(X, 0, 1);
}
PROGRAM(plate_differences)
{
    out[0] = oly_diff(X, 1, 1);
}
PROGRAM(plate_gradient)
{
    oly_array x = X;
    out[0] = oly_add(oly_slice(oly_diff(x, 1, 0), ":, :-1"), oly_slice(oly_diff(x, 1, 1), ":-1, :"));
}
PROGRAM(plate_joined)
{
    oly_array x = X;
    out[0] = oly_concatenate(1, oly_slice(x, ":, 1:"), oly_slice(x, ":, :1"));
}
PROGRAM(plate_part)
{
    out[0] = oly_slice(X, "1:-1, 2:");
}
PROGRAM(plate_filled)
{
    out[0] = oly_pad(X, 1, ((int64_t[]){1, 2}), ((int64_t[]){0, 1}), NULL);
}

static oly_array plate_convolution(oly_array x, oly_conv_options options)
{
    oly_array plate = oly_reshape(x, 1, 1, oly_shape(x)[0], oly_shape(x)[1]);
    oly_array y = oly_conv_with(plate, weights(4, (int64_t[]){1, 1, 3, 3}), options);
    return oly_reshape(y, oly_shape(y)[2], oly_shape(y)[3]);
}
PROGRAM(convolution_same)
{
    out[0] = plate_convolution(X, (oly_conv_options){.padding = "SAME"});
}
PROGRAM(convolution_valid)
{
    out[0] = plate_convolution(X, (oly_conv_options){.padding = "VALID"});
}
PROGRAM(convolution_strided)
{
    out[0] = plate_convolution(X, (oly_conv_options){.padding = "SAME", .strides = "2, 1"});
}
PROGRAM(convolution_dilated)
{
    out[0] = plate_convolution(X, (oly_conv_options){.padding = "SAME", .rhs_dilation = "1, 2"});
}
PROGRAM(plate_pooled)
{
    out[0] = oly_max_pool(X, .window = "2, 3", .strides = "1, 2", .padding = "SAME");
}

PROGRAM(plate_wave)
{
    oly_array u = X, before = in[1], mid = oly_slice(u, "1:-1, 1:-1");
    oly_array next = oly_sub(oly_mul(2, five_points(u)), oly_slice(before, "1:-1, 1:-1"));
    out[0] = oly_update(u, "1:-1, 1:-1", oly_add(next, oly_mul(0.01, mid)));
    out[1] = u;
}

/* Currents and height on a staggered grid: three fields, each depends on another. */
PROGRAM(shallow_water)
{
    oly_array h = X, u = in[1], v = in[2];
    oly_array across = oly_sub(oly_slice(h, "1:-1, 1:-1"), oly_slice(h, "1:-1, :-2"));
    oly_array down = oly_sub(oly_slice(h, "1:-1, 1:-1"), oly_slice(h, ":-2, 1:-1"));
    oly_array flow = oly_add(oly_sub(oly_slice(u, "1:-1, 2:"), oly_slice(u, "1:-1, 1:-1")),
                             oly_sub(oly_slice(v, "2:, 1:-1"), oly_slice(v, "1:-1, 1:-1")));
    out[0] = oly_update(h, "1:-1, 1:-1", oly_sub(oly_slice(h, "1:-1, 1:-1"), oly_mul(0.1, flow)));
    out[1] = oly_update(u, "1:-1, 1:-1", oly_sub(oly_slice(u, "1:-1, 1:-1"), oly_mul(0.1, across)));
    out[2] = oly_update(v, "1:-1, 1:-1", oly_sub(oly_slice(v, "1:-1, 1:-1"), oly_mul(0.1, down)));
}

/* -- three dimensions ------------------------------------------------------------------------------------------------- */

static oly_array neighbours(oly_array x, bool all)
{
    static const char *const parts[] = {":-2", "1:-1", "2:"};
    oly_array sum = oly_mul(0.4, oly_slice(x, "1:-1, 1:-1, 1:-1"));
    for (int k = 0; k < 27; k++) {
        int a = k / 9, b = k / 3 % 3, c = k % 3, apart = (a != 1) + (b != 1) + (c != 1);
        char text[48];
        snprintf(text, sizeof text, "%s, %s, %s", parts[a], parts[b], parts[c]);
        if (apart == 1 || (all && apart > 1))
            sum = oly_add(sum, oly_mul(0.1 / apart, oly_slice(x, text)));
    }
    return sum;
}
PROGRAM(seven_points)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1, 1:-1, 1:-1", neighbours(x, false));
}
PROGRAM(twenty_seven_points)
{
    oly_array x = X;
    out[0] = oly_update(x, "1:-1, 1:-1, 1:-1", neighbours(x, true));
}
PROGRAM(seven_padded)
{
    int64_t one[] = {1, 1, 1};
    out[0] = neighbours(oly_pad(X, 0, one, one, NULL), false);
}
PROGRAM(torus_7)
{
    oly_array x = X, sum = oly_mul(-6, x);
    for (int d = 0; d < 3; d++)
        sum = oly_add(sum, oly_add(oly_roll(x, 1, d), oly_roll(x, -1, d)));
    out[0] = sum;
}
PROGRAM(space_pooled)
{
    out[0] = oly_reduce_window(X, "max", .window = "3, 2, 3", .padding = "SAME");
}

#define ROW(f, rank, n_in, n_out, least)                                                                               \
    {                                                                                                                  \
#f, f, rank, n_in, n_out, least, 1, 1, 0, false                                                                \
    }
#define LARGE_ROW(f, rank, n_in, n_out, least)                                                                         \
    {                                                                                                                  \
#f, f, rank, n_in, n_out, least, 1, 1, 0, true                                                                 \
    }
#define LOOSE_ROW(f, rank, n_in, n_out, least, exchanges)                                                              \
    {                                                                                                                  \
#f, f, rank, n_in, n_out, least, exchanges, 2, 0, true                                                         \
    }

#define RING_ROW(f, rank, n_in, n_out, least, twice)                                                                   \
    {                                                                                                                  \
#f, f, rank, n_in, n_out, least, 1, 1, twice, true                                                             \
    }

const halo_program halo_programs[] = {
    ROW(roll_1, 1, 1, 1, 1),
    LARGE_ROW(roll_3, 1, 1, 1, 1),
    LARGE_ROW(roll_10, 1, 1, 1, 1),
    LARGE_ROW(roll_back, 1, 1, 1, 1),
    LARGE_ROW(ring, 1, 1, 1, 1),
    LARGE_ROW(wide_ring, 1, 1, 1, 1),
    ROW(heat_update, 1, 1, 1, 3),
    ROW(heat_concatenate, 1, 1, 1, 3),
    ROW(heat_where, 1, 1, 1, 3),
    LARGE_ROW(heat_padded, 1, 1, 1, 1),
    ROW(heat_dynamic, 1, 1, 1, 3),
    ROW(upwind, 1, 1, 1, 5),
    ROW(products, 1, 1, 1, 2),
    ROW(differences, 1, 1, 1, 2),
    LOOSE_ROW(second_differences, 1, 1, 1, 3, 2),
    ROW(flipped, 1, 1, 1, 1),
    ROW(every_second, 1, 1, 1, 1),
    ROW(every_third, 1, 1, 1, 2),
    ROW(middle, 1, 1, 1, 6),
    ROW(padded, 1, 1, 1, 1),
    ROW(spread, 1, 1, 1, 1),
    ROW(trimmed, 1, 1, 1, 3),
    ROW(doubled, 1, 1, 1, 1),
    ROW(joined, 1, 1, 1, 3),
    ROW(shifted_update, 1, 1, 1, 3),
    LARGE_ROW(update_of_a_slice, 1, 1, 1, 3),
    ROW(strided_update, 1, 1, 1, 2),
    ROW(fills_in, 1, 1, 1, 3),
    ROW(convolve_same, 1, 1, 1, 5),
    ROW(convolve_valid, 1, 1, 1, 3),
    ROW(convolve_full, 1, 1, 1, 4),
    ROW(strided_convolution, 1, 1, 1, 3),
    LARGE_ROW(dilated_convolution, 1, 1, 1, 3),
    ROW(transposed_convolution, 1, 1, 1, 3),
    ROW(window_sum, 1, 1, 1, 3),
    ROW(window_max, 1, 1, 1, 4),
    LARGE_ROW(window_dilated, 1, 1, 1, 5),
    ROW(wave, 1, 2, 2, 3),
    LARGE_ROW(three_fields, 1, 3, 3, 1),
    ROW(three_bounded_fields, 1, 3, 3, 3),
    ROW(plate_update, 2, 1, 1, 3),
    LARGE_ROW(plate_where, 2, 1, 1, 3),
    ROW(plate_padded, 2, 1, 1, 1),
    ROW(nine_point_update, 2, 1, 1, 3),
    ROW(corners_update, 2, 1, 1, 3),
    ROW(one_corner, 2, 1, 1, 3),
    ROW(wide_star, 2, 1, 1, 5),
    LARGE_ROW(torus_5, 2, 1, 1, 1),
    RING_ROW(torus_9, 2, 1, 1, 1, 4),
    LARGE_ROW(diagonal_roll, 2, 1, 1, 1),
    ROW(flipped_plate, 2, 1, 1, 1),
    ROW(plate_differences, 2, 1, 1, 2),
    LOOSE_ROW(plate_gradient, 2, 1, 1, 2, 2),
    ROW(plate_joined, 2, 1, 1, 2),
    ROW(plate_part, 2, 1, 1, 3),
    ROW(plate_filled, 2, 1, 1, 1),
    LARGE_ROW(convolution_same, 2, 1, 1, 3),
    LARGE_ROW(convolution_valid, 2, 1, 1, 3),
    LARGE_ROW(convolution_strided, 2, 1, 1, 3),
    LARGE_ROW(convolution_dilated, 2, 1, 1, 3),
    ROW(plate_pooled, 2, 1, 1, 3),
    ROW(plate_wave, 2, 2, 2, 3),
    ROW(shallow_water, 2, 3, 3, 3),
    ROW(seven_points, 3, 1, 1, 3),
    ROW(twenty_seven_points, 3, 1, 1, 3),
    ROW(seven_padded, 3, 1, 1, 1),
    LARGE_ROW(torus_7, 3, 1, 1, 1),
    ROW(space_pooled, 3, 1, 1, 3),
    {NULL, NULL, 0, 0, 0, 0, 0, 0, 0, false},
};
