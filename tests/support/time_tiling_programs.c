/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of loops that advance fields on a grid: bounded and periodic, linear and not, in the ways that users write
 * them. */
#include "time_tiling_programs.h"
#include <stddef.h>

oly_array time_tiling_fixed[TIME_TILING_MOST];

#define BODY(name)                                                                                                     \
    static void name##_step(oly_array *c, oly_array i);                                                                \
    static void name(oly_array i, oly_array *c, void *user)                                                            \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        name##_step(c, i);                                                                                             \
    }                                                                                                                  \
    static void name##_step(oly_array *c, __attribute__((unused)) oly_array i)

static oly_array at(oly_array x, const char *part)
{
    return oly_slice(x, part);
}

/* -- one dimension ---------------------------------------------------------------------------------------------------- */

static oly_array bend(oly_array u)
{
    return oly_sub(oly_add(at(u, ":-2"), at(u, "2:")), oly_mul(2, at(u, "1:-1")));
}

BODY(wave)
{
    oly_array u = c[0], before = c[1];
    oly_array next = oly_add(oly_sub(oly_mul(2, at(u, "1:-1")), at(before, "1:-1")), oly_mul(0.25, bend(u)));
    c[0] = oly_update(u, "1:-1", next);
    c[1] = u;
}

BODY(ring_wave)
{
    oly_array u = c[0], v = c[1];
    oly_array force = oly_sub(oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0)), oly_mul(2, u));
    c[1] = oly_add(v, oly_mul(0.1, force));
    c[0] = oly_add(u, oly_mul(0.1, c[1]));
}

BODY(fisher)
{
    oly_array u = c[0], grown = oly_mul(at(u, "1:-1"), oly_sub(1, at(u, "1:-1")));
    c[0] = oly_update(u, "1:-1", oly_add(oly_add(at(u, "1:-1"), oly_mul(0.1, grown)), oly_mul(0.2, bend(u))));
}

/* The fluxes are values of their own, read twice. */
BODY(burgers)
{
    oly_array u = c[0], flux = oly_mul(0.5, oly_mul(u, u));
    oly_array at_faces = oly_mul(0.5, oly_add(flux, oly_roll(flux, -1, 0)));
    c[0] = oly_sub(u, oly_mul(0.05, oly_sub(at_faces, oly_roll(at_faces, 1, 0))));
}

/* Reads only elements of higher index: no margin below a block. */
BODY(ahead)
{
    oly_array u = c[0], step = oly_sub(u, oly_roll(u, 1, 0));
    c[0] = oly_add(u, oly_sub(oly_mul(0.2, oly_roll(step, -1, 0)), oly_mul(0.1, oly_roll(step, -2, 0))));
}

BODY(minmod)
{
    oly_array u = c[0], back = oly_sub(u, oly_roll(u, 1, 0)), front = oly_sub(oly_roll(u, -1, 0), u);
    oly_array same = oly_gt(oly_mul(back, front), 0);
    oly_array slope = oly_where(same, oly_where(oly_lt(oly_abs(back), oly_abs(front)), back, front), 0);
    oly_array edge = oly_add(u, oly_mul(0.4, slope));
    c[0] = oly_sub(u, oly_mul(0.2, oly_sub(edge, oly_roll(edge, 1, 0))));
}

BODY(neumann)
{
    oly_array u = c[0], p = oly_concatenate(0, at(u, ":1"), u, at(u, "-1:"));
    c[0] = oly_add(u, oly_mul(0.2, bend(p)));
}

BODY(periodic_by_parts)
{
    oly_array u = c[0], p = oly_concatenate(0, at(u, "-1:"), u, at(u, ":1"));
    c[0] = oly_add(u, oly_mul(0.2, bend(p)));
}

BODY(padded)
{
    oly_array u = c[0], p = oly_pad(u, 0.5, ((int64_t[]){1}), ((int64_t[]){1}), NULL);
    c[0] = oly_add(u, oly_mul(0.2, bend(p)));
}

BODY(padded_inner)
{
    oly_array u = c[0], inner = oly_mul(0.2, bend(u));
    c[0] = oly_add(u, oly_pad(inner, 0, ((int64_t[]){1}), ((int64_t[]){1}), NULL));
}

BODY(ends_differ)
{
    oly_array u = c[0], left = oly_mul(0.5, oly_add(at(u, ":1"), at(u, "1:2")));
    c[0] = oly_concatenate(0, left, oly_add(at(u, "1:-1"), oly_mul(0.3, bend(u))), at(u, "-2:-1"));
}

BODY(coefficient)
{
    oly_array u = c[0];
    c[0] = oly_update(u, "1:-1", oly_add(at(u, "1:-1"), oly_mul(at(time_tiling_fixed[0], "1:-1"), bend(u))));
}

BODY(masked)
{
    oly_array u = c[0], next = oly_add(u, oly_mul(0.2, oly_sub(oly_roll(u, 1, 0), u)));
    c[0] = oly_mul(oly_where(oly_gt(time_tiling_fixed[0], 0.4), next, u), time_tiling_fixed[1]);
}

BODY(mask_of_numbers)
{
    oly_array u = c[0], i_all = oly_arange(oly_shape(u)[0], OLY_INT32);
    oly_array inner = oly_logical_and(oly_gt(i_all, 0), oly_lt(i_all, oly_shape(u)[0] - 1));
    oly_array next =
        oly_pad(oly_mul(0.5, oly_add(at(u, ":-2"), at(u, "2:"))), 0, ((int64_t[]){1}), ((int64_t[]){1}), NULL);
    c[0] = oly_where(inner, next, u);
}

BODY(driven)
{
    oly_array u = c[0], next = oly_add(u, oly_mul(0.2, oly_sub(oly_roll(u, 1, 0), u)));
    oly_array push = oly_sin(oly_mul(0.3, oly_astype(i, OLY_FLOAT32)));
    c[0] = oly_update(next, "2:3", oly_broadcast_to(push, 1));
}

BODY(rolled_then_fixed)
{
    oly_array u = c[0], next = oly_mul(0.5, oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0)));
    c[0] = oly_update(oly_update(next, "0:1", at(u, "0:1")), "-1:", oly_mul(2, at(u, "-1:")));
}

/* Electric and magnetic field, each half a cell from the other; the new values of one drive the other. */
BODY(line_of_light)
{
    oly_array e = c[0], h = c[1];
    h = oly_update(h, ":-1", oly_add(at(h, ":-1"), oly_mul(0.5, oly_sub(at(e, "1:"), at(e, ":-1")))));
    e = oly_update(e, "1:", oly_add(at(e, "1:"), oly_mul(0.5, oly_sub(at(h, "1:"), at(h, ":-1")))));
    c[0] = e;
    c[1] = h;
}

BODY(automaton)
{
    oly_array x = c[0], left = oly_roll(x, 1, 0), right = oly_roll(x, -1, 0);
    c[0] = oly_bitwise_xor(left, oly_bitwise_or(x, right));
}

BODY(far)
{
    oly_array u = c[0];
    c[0] = oly_add(oly_mul(0.5, u), oly_mul(0.25, oly_mul(oly_roll(u, 3, 0), oly_roll(u, -5, 0))));
}

BODY(two_sizes)
{
    oly_array u = c[0], v = c[1], w = oly_astype(oly_roll(u, 1, 0), OLY_FLOAT64);
    c[0] = oly_mul(0.5, oly_add(u, oly_astype(oly_roll(v, -1, 0), OLY_FLOAT32)));
    c[1] = oly_add(oly_mul(0.25, v), oly_mul(0.5, w));
}

/* -- two and three dimensions ------------------------------------------------------------------------------------------- */

static oly_array around(oly_array u)
{
    return oly_sub(
        oly_add(oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0)), oly_add(oly_roll(u, 1, 1), oly_roll(u, -1, 1))),
        oly_mul(4, u));
}

static oly_array around_inner(oly_array u)
{
    return oly_sub(
        oly_add(oly_add(at(u, ":-2, 1:-1"), at(u, "2:, 1:-1")), oly_add(at(u, "1:-1, :-2"), at(u, "1:-1, 2:"))),
        oly_mul(4, at(u, "1:-1, 1:-1")));
}

BODY(gray_scott)
{
    oly_array u = c[0], v = c[1], uvv = oly_mul(u, oly_mul(v, v));
    c[0] = oly_add(u, oly_add(oly_sub(oly_mul(0.16, around(u)), uvv), oly_mul(0.035, oly_sub(1, u))));
    c[1] = oly_add(v, oly_sub(oly_add(oly_mul(0.08, around(v)), uvv), oly_mul(0.095, v)));
}

BODY(plate_wave)
{
    oly_array u = c[0], before = at(c[1], "1:-1, 1:-1");
    oly_array next = oly_add(oly_sub(oly_mul(2, at(u, "1:-1, 1:-1")), before), oly_mul(0.2, around_inner(u)));
    c[1] = u;
    c[0] = oly_update(u, "1:-1, 1:-1", next);
}

BODY(jacobi)
{
    oly_array u = c[0];
    oly_array next = oly_mul(0.25, oly_add(oly_add(around_inner(u), oly_mul(4, at(u, "1:-1, 1:-1"))),
                                           at(time_tiling_fixed[0], "1:-1, 1:-1")));
    c[0] = oly_update(u, "1:-1, 1:-1", next);
}

BODY(columns_differ)
{
    oly_array u = c[0], factor = at(time_tiling_fixed[0], "1, :");
    c[0] = oly_add(u, oly_mul(oly_mul(0.1, factor), around(u)));
}

BODY(life)
{
    oly_array x = c[0], n = NULL;
    for (int a = -1; a <= 1; a++)
        for (int b = -1; b <= 1; b++)
            if (a || b) {
                oly_array moved = oly_roll(oly_roll(x, a, 0), b, 1);
                n = n ? oly_add(n, moved) : moved;
            }
    oly_array lives = oly_logical_or(oly_eq(n, 3), oly_logical_and(oly_eq(x, 1), oly_eq(n, 2)));
    c[0] = oly_astype(lives, OLY_INT32);
}

BODY(tube)
{
    oly_array u = c[0], p = oly_concatenate(1, at(u, ":, :1"), u, at(u, ":, -1:"));
    oly_array across = oly_sub(oly_add(at(p, ":, :-2"), at(p, ":, 2:")), oly_mul(2, u));
    oly_array along = oly_sub(oly_roll(u, 1, 0), u);
    c[0] = oly_add(u, oly_add(oly_mul(0.1, across), oly_mul(oly_mul(0.1, u), along)));
}

BODY(corners)
{
    oly_array u = c[0], v = c[1];
    c[0] = oly_update(u, "1:-1, 1:-1", oly_mul(0.5, oly_add(at(u, ":-2, :-2"), at(v, "2:, 2:"))));
    c[1] = oly_update(v, "1:-1, 1:-1", oly_mul(0.5, oly_sub(at(v, ":-2, 2:"), at(c[0], "1:-1, 2:"))));
}

BODY(space_wave)
{
    oly_array u = c[0], before = c[1], sum = oly_mul(-6, u);
    for (int d = 0; d < 3; d++)
        sum = oly_add(sum, oly_add(oly_roll(u, 1, d), oly_roll(u, -1, d)));
    c[0] = oly_add(oly_sub(oly_mul(2, u), before), oly_mul(0.1, sum));
    c[1] = u;
}

BODY(space_padded)
{
    int64_t one[] = {1, 1, 1};
    oly_array u = c[0], p = oly_pad(u, 0, one, one, NULL);
    oly_array sum = oly_add(at(p, ":-2, 1:-1, 1:-1"), at(p, "2:, 1:-1, 1:-1"));
    sum = oly_add(sum, oly_add(at(p, "1:-1, :-2, 1:-1"), at(p, "1:-1, 2:, 2:")));
    c[0] = oly_add(oly_mul(0.4, u), oly_mul(0.1, sum));
}

/* -- not time-tiled ------------------------------------------------------------------------------------------------ */

BODY(with_a_sum)
{
    oly_array u = c[0];
    c[0] = oly_div(oly_add(u, oly_roll(u, 1, 0)), oly_sum(oly_abs(u)));
}

/* Dimensions of one element are inserted and dropped. */
static void a_row_of_one(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array row = oly_reshape(carry[0], 1, oly_size(carry[0]));
    row = oly_add(oly_mul(0.5, row), oly_mul(0.25, oly_add(oly_roll(row, 1, 1), oly_roll(row, -1, 1))));
    carry[0] = oly_reshape(row, oly_size(carry[0]));
}

static void a_plate_of_lines(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0], space = oly_expand_dims(u, 1);
    space = oly_mul(0.5, oly_add(oly_roll(space, 1, 0), oly_roll(space, -1, 2)));
    carry[0] = oly_mul(0.5, oly_add(u, oly_squeeze(space, 1)));
}

const time_tiling_program time_tiling_programs[] = {
    {"wave", 1, 2, 0, 1, wave, false},
    {"ring_wave", 1, 2, 0, 1, ring_wave, false},
    {"fisher", 1, 1, 0, 1, fisher, false},
    {"burgers", 1, 1, 0, 1, burgers, false},
    {"ahead", 1, 1, 0, 2, ahead, false},
    {"minmod", 1, 1, 0, 2, minmod, false},
    {"neumann", 1, 1, 0, 1, neumann, false},
    {"periodic_by_parts", 1, 1, 0, 1, periodic_by_parts, false},
    {"padded", 1, 1, 0, 1, padded, false},
    {"padded_inner", 1, 1, 0, 1, padded_inner, false},
    {"ends_differ", 1, 1, 0, 1, ends_differ, false},
    {"coefficient", 1, 1, 1, 1, coefficient, false},
    {"masked", 1, 1, 2, 1, masked, false},
    {"mask_of_numbers", 1, 1, 0, 1, mask_of_numbers, false},
    {"driven", 1, 1, 0, 1, driven, false},
    {"rolled_then_fixed", 1, 1, 0, 1, rolled_then_fixed, false},
    {"line_of_light", 1, 2, 0, 1, line_of_light, false},
    {"automaton", 1, 1, 0, 1, automaton, false},
    {"far", 1, 1, 0, 5, far, false},
    {"two_sizes", 1, 2, 0, 1, two_sizes, false},
    {"gray_scott", 2, 2, 0, 1, gray_scott, false},
    {"plate_wave", 2, 2, 0, 1, plate_wave, false},
    {"jacobi", 2, 1, 1, 1, jacobi, false},
    {"columns_differ", 2, 1, 1, 1, columns_differ, false},
    {"life", 2, 1, 0, 1, life, false},
    {"tube", 2, 1, 0, 1, tube, false},
    {"corners", 2, 2, 0, 1, corners, false},
    {"space_wave", 3, 2, 0, 1, space_wave, false},
    {"space_padded", 3, 1, 0, 1, space_padded, false},
    {"a_row_of_one", 1, 1, 0, 1, a_row_of_one, false},
    {"a_plate_of_lines", 2, 1, 0, 1, a_plate_of_lines, false},
    {"with_a_sum", 1, 1, 0, 1, with_a_sum, true},
    {NULL, 0, 0, 0, 0, NULL, false},
};
