/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Arrays that are put together and taken apart again, such as the state of a system of equations, are computed part
 * by part: values have the bits of the plain evaluation, and the carry of a loop becomes several. COMPONENTS=n: of the first random
 * program. */
#include "check.h"
#include "check_session.h"
#include "compare_pass.h"
#include <olympus.h>

enum { LENGTH = 96, MOST_COMPONENTS = 4, STAGES = 4, PROGRAMS = 60 };

static uint64_t seed;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)(seed >> 33) % n;
}

/* What a random program does. */
typedef struct shape_of_state {
    int n, along;               /* components, and the dimension along which they are */
    int width[MOST_COMPONENTS]; /* elements of each in it */
    bool stacked;               /* by oly_stack and oly_index_in_dim; else by oly_concatenate and oly_slice_in_dim */
} shape_of_state;

static int width_of(const shape_of_state *s, int k)
{
    return s->stacked ? 1 : s->width[k];
}

static int begin_of(const shape_of_state *s, int k)
{
    int begin = 0;
    for (int j = 0; j < k; j++)
        begin += width_of(s, j);
    return begin;
}

static oly_array component(const shape_of_state *s, oly_array x, int k)
{
    if (s->stacked)
        return oly_index_in_dim(x, k, s->along);
    return oly_slice_in_dim(x, begin_of(s, k), begin_of(s, k + 1), 1, s->along);
}

static oly_array together(const shape_of_state *s, const oly_array *parts)
{
    return s->stacked ? oly_stack_n(s->n, parts, s->along) : oly_concatenate_n(s->n, parts, s->along);
}

/* A number for each element of a component, of another component: of the same shape, or the largest, which no layout changes. */
static oly_array other(const shape_of_state *s, const oly_array *c, int k)
{
    int j = draw(s->n);
    return width_of(s, j) == width_of(s, k) ? c[j] : oly_max(c[j]);
}

/* The largest of the last elements of component k, all but one of the other dimension: of a part of a part. */
static oly_array inner_max(const shape_of_state *s, oly_array x, int k)
{
    int64_t end = begin_of(s, k + 1);
    return oly_max(oly_slice_in_dim(oly_slice_in_dim(x, 1, LENGTH, 1, 1 - s->along), end - 1, end, 1, s->along));
}

/* As wide as the state, of the same parts in the opposite order, which may be others. */
static oly_array other_parts(const shape_of_state *s)
{
    oly_array parts[MOST_COMPONENTS];
    for (int k = 0; k < s->n; k++) {
        int64_t shape[2] = {LENGTH, LENGTH};
        shape[s->along] = width_of(s, s->n - 1 - k);
        parts[k] = oly_full_shape(OLY_ARG(1 + 0.125 * k), OLY_FLOAT32, 2, shape);
    }
    return oly_concatenate_n(s->n, parts, s->along);
}

/* The right-hand side: each component from some of the others. */
static oly_array slope(const shape_of_state *s, oly_array x)
{
    oly_array c[MOST_COMPONENTS], made[MOST_COMPONENTS];
    for (int k = 0; k < s->n; k++)
        c[k] = component(s, x, k);
    for (int k = 0; k < s->n; k++) {
        oly_array y = oly_mul(0.25, oly_sub(other(s, c, k), c[k]));
        int shift = draw(3) - 1, far = oly_rank(y) - 1;
        switch (draw(6)) {
        case 0: y = oly_add(y, oly_mul(0.5, other(s, c, k))); break;
        case 1: y = oly_tanh(oly_add(oly_mul(y, other(s, c, k)), 0.125)); break;
        case 2: y = oly_fmax(y, oly_mul(0.5, oly_roll(y, shift, far))); break;
        case 4: y = oly_add(y, inner_max(s, x, draw(s->n))); break;
        case 3: y = oly_where(oly_gt(y, 0), y, oly_neg(c[k])); break;
        default: break;
        }
        made[k] = y;
    }
    return together(s, made);
}

/* One step of a method with several stages; some programs read the whole, or neighbours across parts, too. */
static oly_array step(const shape_of_state *s, oly_array x)
{
    oly_array sum = NULL, at = x;
    int stages = 1 + draw(STAGES);
    for (int k = 0; k < stages; k++) {
        oly_array slopes = slope(s, at);
        sum = sum ? oly_add(sum, oly_mul(1.0 + draw(2), slopes)) : slopes;
        at = oly_add(x, oly_mul(0.25, slopes));
        if (draw(8) == 0)
            at = oly_sub(at, oly_mul(0.01, oly_max(at)));
        if (draw(6) == 0)
            at = oly_add(at, oly_mul(0.01, oly_expand_dims(oly_max(oly_abs(at), OLY_AXES(s->along)), s->along)));
        if (draw(6) == 0)
            at = oly_mul(at, other_parts(s));
        if (draw(4) == 0)
            at = oly_fmin(at, oly_roll(at, 1, 1 - s->along));
        if (draw(12) == 0)
            at = oly_fmin(at, oly_roll(at, 1, s->along));
    }
    return draw(4) ? oly_add(x, oly_mul(0.1, sum)) : oly_mul(0.5, oly_add(x, at));
}

static void in_loop(oly_array i, oly_array *carry, void *user)
{
    uint64_t before = seed;
    const shape_of_state *s = user;
    oly_array next = step(s, carry[0]);
    carry[1] = oly_add(carry[1], oly_mul(oly_astype(i, OLY_FLOAT32), oly_max(carry[0])));
    carry[0] = next;
    if (s->width[0] & 1) /* else the second carry follows the first one step later */
        carry[2] = oly_add(oly_mul(0.5, carry[2]), next);
    else
        carry[2] = carry[0];
    seed = before;
}

static void in_scan(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    uint64_t before = seed;
    carry[0] = oly_add(step(user, carry[0]), x[0]);
    y[0] = component(user, carry[0], 0);
    seed = before;
}

static oly_array shortened(oly_array x)
{
    oly_array flat = oly_ravel(x);
    return oly_size(flat) > COMPARE_PASS_LENGTH ? oly_slice_in_dim(flat, 0, COMPARE_PASS_LENGTH, 1, 0) : flat;
}

/* in[0]: the numbers of which the state is made. */
static void random_program(const oly_array *in, oly_array *out, void *user)
{
    uint64_t before = seed;
    seed = *(const uint64_t *)user;
    shape_of_state s = {.n = 2 + draw(MOST_COMPONENTS - 1), .along = draw(2), .stacked = draw(2)};
    for (int k = 0; k < s.n; k++)
        s.width[k] = draw(2) ? 1 : 1 + draw(3);
    oly_array parts[MOST_COMPONENTS];
    for (int k = 0; k < s.n; k++) {
        oly_array part = oly_mul(1.0 + 0.5 * k, in[0]);
        int64_t wide[2] = {LENGTH, LENGTH};
        wide[s.along] = s.width[k];
        part = s.stacked ? part : oly_broadcast_to(oly_expand_dims(part, s.along), (int)wide[0], (int)wide[1]);
        parts[k] = part;
    }
    oly_array x = together(&s, parts);
    int how = draw(4);
    if (how == 0) {
        out[0] = step(&s, step(&s, x));
    } else if (how == 1) {
        oly_array xs = oly_mul(0.01, oly_iota(OLY_FLOAT32, 0, 5)), y;
        oly_scan(5, draw(2), in_scan, 1, &x, 1, &xs, 1, &y, &s);
        out[0] = x;
        out[1] = shortened(y);
    } else {
        oly_array carry[3] = {x, oly_max(x), x};
        oly_fori(0, 1 + draw(6), in_loop, 3, carry, &s);
        out[0] = oly_add(carry[0], carry[1]);
        out[1] = shortened(carry[2]);
    }
    out[1] = how == 0 ? shortened(oly_mul(2, component(&s, out[0], 1))) : out[1];
    out[0] = shortened(out[0]);
    seed = before;
}

static void random_programs_have_the_values_of_plain_ones(void **state)
{
    (void)state;
    static const char *const specs[] = {"x", "y", "(x,y)", ""};
    int fewer = 0;
    seed = getenv("COMPONENTS") ? strtoull(getenv("COMPONENTS"), NULL, 10) : 1;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            static pass_outcome with, without;
            if (getenv("COMPONENTS"))
                print_message("seed %llu\n", (unsigned long long)seed);
            oly_array in = compare_pass_numbers(specs[draw(4)], -1, LENGTH);
            uint64_t program = (uint64_t)draw(1 << 30);
            compare_pass(OLY_OPTIMISATION_COMPONENTS, random_program, &program, &in, 1, 2, &with, &without);
            fewer += with.costs.scratch_bytes < without.costs.scratch_bytes;
        }
    assert_true(fewer > PROGRAMS / 10);
}

/* -- states of single numbers ---------------------------------------------------------------------------------------------------------- */

typedef struct numbers {
    int n;
    bool stacked; /* of scalars; else of arrays of one element */
} numbers;

static oly_array number_of(const numbers *s, oly_array x, int k)
{
    return s->stacked ? oly_index_in_dim(x, k, 0) : oly_slice_in_dim(x, k, k + 1, 1, 0);
}

/* A reduction of the state. */
static oly_array all_of(oly_array x)
{
    switch (draw(5)) {
    case 0: return oly_max(oly_abs(x));
    case 1: return oly_min(x);
    case 2: return oly_where(oly_any(oly_gt(x, 0.25)), 0.5, -0.25);
    case 3: return oly_where(oly_all(oly_lt(x, 0.75)), 0.25, 0.125);
    default:
        return oly_abs(oly_mul(0.125, oly_sum(oly_round(oly_mul(8, x))))); /* exact: no layout changes it, but for -0 */
    }
}

static oly_array next_numbers(const numbers *s, oly_array x, oly_array factor)
{
    oly_array made[MOST_COMPONENTS];
    int stages = 1 + draw(3);
    for (int k = 0; k < stages; k++) {
        for (int j = 0; j < s->n; j++) {
            oly_array a = number_of(s, x, j), b = number_of(s, x, draw(s->n));
            made[j] = draw(2) ? oly_sub(oly_mul(b, factor), a) : oly_tanh(oly_mul(a, oly_add(b, 0.5)));
        }
        oly_array slopes = s->stacked ? oly_stack_n(s->n, made, 0) : oly_concatenate_n(s->n, made, 0);
        x = oly_add(x, oly_mul(0.25, draw(3) ? slopes : oly_mul(slopes, all_of(slopes))));
    }
    return x;
}

static void numbers_step(oly_array *carry, void *user)
{
    uint64_t before = seed;
    const numbers *s = user;
    oly_array x = next_numbers(s, carry[0], carry[1]), error = all_of(oly_sub(x, carry[0]));
    oly_array accepted = oly_lt(error, 0.5);
    carry[0] = oly_where(accepted, x, carry[0]);
    carry[1] = oly_clip(oly_mul(oly_where(accepted, 0.875, 1.0625), carry[1]), 0.125, 1);
    carry[2] = oly_add(carry[2], 1);
    seed = before;
}

static oly_array numbers_go_on(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[2], 9);
}

static void program_of_numbers(const oly_array *in, oly_array *out, void *user)
{
    uint64_t before = seed;
    seed = *(const uint64_t *)user;
    numbers s = {2 + draw(MOST_COMPONENTS - 1), draw(2)};
    oly_array carry[] = {oly_slice_in_dim(in[0], 0, s.n, 1, 0), oly_full(0.5, OLY_FLOAT32), oly_zeros(OLY_INT32)};
    oly_while(numbers_go_on, numbers_step, 3, carry, &s);
    out[0] = carry[0];
    out[1] = draw(2) ? oly_reshape(all_of(carry[0]), 1) : oly_mul(oly_reshape(carry[1], 1), carry[0]);
    seed = before;
}

static void states_of_single_numbers_have_the_values_of_plain_ones(void **state)
{
    (void)state;
    for (int k = 0; k < PROGRAMS; k++)
        OLY_SCOPE
        {
            static pass_outcome with, without;
            oly_array in = compare_pass_numbers(draw(2) ? "x" : "", -1, LENGTH);
            uint64_t program = (uint64_t)draw(1 << 30);
            compare_pass(OLY_OPTIMISATION_COMPONENTS, program_of_numbers, &program, &in, 1, 2, &with, &without);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_programs_have_the_values_of_plain_ones, check_start, check_finish),
        cmocka_unit_test_setup_teardown(states_of_single_numbers_have_the_values_of_plain_ones, check_start,
                                        check_finish),
    };
    return CHECK_MAIN(tests);
}
