/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Random loops whose bodies read their carry, a captured array and a constant through chains of cyclic shifts,
 * slices, pads with gaps, reversals, concatenations, updates and transposes: the values of the same steps call by call on one
 * device. Time tiling must read through all of these. Of 20,000 such loops 24 once had wrong values.
 *
 * LOOP_VIEWS=seed:count runs others, OLYMPUS_HALO_STEPS=3 with more steps per exchange. */
#include "check_session.h"
#include "check_draws.h"
#include <stdlib.h>

enum { ROWS = 14, COLUMNS = 12, MOST_TERMS = 3, MOST_LINKS = 6, USUAL = 300 };
#define PAIR(a, b) ((const int64_t[]){a, b})

typedef enum source { CARRY, CAPTURED, CONSTANT } source;
typedef struct link {
    int operation, number[6];
} link;
typedef struct term {
    source source;
    int n_links, place;
    link links[MOST_LINKS];
    double weight;
} term;
typedef struct body {
    int n_terms, steps;
    bool two; /* carries, of different extents */
    term terms[MOST_TERMS];
    oly_array captured;
} body;

/* -- drawing --------------------------------------------------------------------------------------------------------- */
static void draw(body *b, int seed)
{
    check_draws(seed);
    *b = (body){.n_terms = 1 + below(MOST_TERMS), .steps = 1 + below(6), .two = below(3) == 0};
    for (int i = 0; i < b->n_terms; i++) {
        term *t = &b->terms[i];
        t->source = below(4) == 0 ? CONSTANT : below(2) ? CAPTURED : CARRY;
        t->n_links = 1 + below(MOST_LINKS);
        t->place = below(60);
        t->weight = 0.25 * (1 + below(3));
        for (int j = 0; j < t->n_links; j++) {
            t->links[j].operation = below(9);
            for (int k = 0; k < 6; k++)
                t->links[j].number[k] = below(60);
        }
    }
}

/* -- what is drawn ------------------------------------------------------------------------------------------------- */
static oly_array through(const link *l, oly_array x)
{
    const int *n = l->number;
    int64_t rows = oly_shape(x)[0], columns = oly_shape(x)[1];
    char part[80];
    switch (l->operation) {
    case 0: return oly_roll(x, n[0] % 5 - 2, n[1] % 2);
    case 1: return oly_flip(x, n[0] % 2);
    case 2: return oly_transpose(x);
    case 3: return oly_concatenate(n[0] % 2, x, n[1] % 2 ? oly_mul(x, 2) : x);
    case 4: return oly_add(oly_mul(x, 0.5), 1);
    case 5:
        return oly_pad(x, n[5] % 3, PAIR(n[0] % 4 - 1, n[1] % 4 - 1), PAIR(n[2] % 4 - 1, n[3] % 4 - 1),
                       PAIR(n[4] % 5 == 0, n[4] % 7 == 0));
    case 6:
        snprintf(part, sizeof part, n[1] % 2 ? "%d::%d" : ":, %d::%d", n[0] % 2, 1 + n[2] % 2);
        return oly_slice(x, part);
    case 7:
        snprintf(part, sizeof part, "%d:%d, %d:%d", n[0] % 3, (int)rows - n[1] % 3, n[2] % 3, (int)columns - n[3] % 3);
        return rows < 7 || columns < 7 ? x : oly_slice(x, part);
    default: return rows < 4 ? x : oly_update(x, "-2:", oly_slice(x, "1:3"));
    }
}

/* Padded or sliced to the carry's shape. */
static oly_array fitted(oly_array x, int place)
{
    int64_t low[2], high[2];
    for (int d = 0; d < 2; d++) {
        int missing = (d == 0 ? ROWS : COLUMNS) - (int)oly_shape(x)[d];
        low[d] = missing < 0 ? -(place % (1 - missing)) : place % (1 + missing);
        high[d] = missing - low[d];
    }
    return oly_pad(x, 1, low, high, PAIR(0, 0));
}

static oly_array value_of(const term *t, oly_array carry, oly_array captured)
{
    oly_array x = t->source == CARRY      ? carry
                  : t->source == CAPTURED ? captured
                                          : oly_full(2, OLY_FLOAT32, ROWS, COLUMNS);
    for (int j = 0; j < t->n_links; j++) {
        oly_array y = through(&t->links[j], x);
        const int64_t *shape = oly_shape(y);
        if (shape[0] >= 2 && shape[1] >= 2 && shape[0] * shape[1] < 2500)
            x = y;
    }
    return oly_mul(fitted(x, t->place), t->weight);
}

static void step(oly_array i, oly_array *carry, void *user)
{
    const body *b = user;
    oly_array next = value_of(&b->terms[0], carry[0], b->captured);
    (void)i;
    for (int k = 1; k < b->n_terms; k++)
        next = oly_add(next, value_of(&b->terms[k], carry[0], b->captured));
    if (b->two)
        carry[1] = oly_add(oly_mul(carry[1], 0.5), oly_slice(oly_roll(carry[0], 1, 0), ":, 1:"));
    carry[0] = next;
}

static oly_array together(const body *b, const oly_array *carry)
{
    return b->two ? oly_add(carry[0], oly_pad(carry[1], 0, PAIR(0, 1), PAIR(0, 0), PAIR(0, 0))) : carry[0];
}

static void loop(const oly_array *in, oly_array *out, void *user)
{
    body b = *(const body *)user;
    oly_array carry[2] = {in[0], oly_slice(in[0], ":, 1:")};
    b.captured = in[1];
    oly_fori(0, b.steps, step, 1 + b.two, carry, &b);
    out[0] = together(&b, carry);
}

/* -- comparing ------------------------------------------------------------------------------------------------------- */
static double distance(const float *got, const float *wanted, double *largest)
{
    double most = 0;
    *largest = 0;
    for (int k = 0; k < ROWS * COLUMNS; k++) {
        double apart = got[k] > wanted[k] ? got[k] - wanted[k] : wanted[k] - got[k];
        double size = wanted[k] < 0 ? -wanted[k] : wanted[k];
        most = apart <= most ? most : apart; /* NaN counts */
        *largest = size <= *largest ? *largest : size;
    }
    return most;
}

static oly_array placed(const float *values, oly_sharding sharding)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    return oly_device_put(oly_from_host(values, OLY_FLOAT32, 2, shape), sharding);
}

static bool is_right(int seed, oly_mesh mesh)
{
    static const char *const specs[] = {"x", "None, x", "x, y", "y, x", "(x,y)"};
    float first[ROWS * COLUMNS], second[ROWS * COLUMNS], got[ROWS * COLUMNS], wanted[ROWS * COLUMNS];
    body b;
    draw(&b, seed);
    for (int k = 0; k < ROWS * COLUMNS; k++) {
        first[k] = (float)(below(9) - 4);
        second[k] = (float)(below(9) - 4);
    }
    oly_array x = placed(first, oly_named(mesh, specs[below(5)])), w = placed(second, oly_named(mesh, specs[below(5)]));
    oly_array y = oly_apply(oly_jit(loop, 2, 1, .user = &b), x, w);
    assert_int_equal(oly_process_allgather(y, got, sizeof got), OLY_OK);
    oly_sharding here = oly_single_device(oly_local_device(0));
    oly_array carry[2] = {placed(first, here), NULL};
    b.captured = placed(second, here);
    carry[1] = oly_slice(carry[0], ":, 1:");
    for (int k = 0; k < b.steps; k++)
        step(NULL, carry, &b);
    assert_int_equal(oly_get(together(&b, carry), wanted, sizeof wanted), OLY_OK);
    double largest, apart = distance(got, wanted, &largest);
    if (apart <= 1e-5 * largest + 1e-6)
        return true;
    print_message("LOOP_VIEWS=%d:1: %g away, of %g\n", seed, apart, largest);
    return false;
}

static void loops_read_through_chains_of_views(void **state)
{
    (void)state;
    int count = USUAL, seed = check_draws_wanted("LOOP_VIEWS", 450, &count), wrong = 0, n = oly_device_count(),
        few = n % 2 ? 1 : 2;
    char axes[40];
    snprintf(axes, sizeof axes, "x=%d, y=%d", n / few, few);
    oly_mesh mesh = oly_make_mesh(axes);
    for (int k = 0; k < count; k++)
        OLY_SCOPE
        {
            wrong += !is_right(seed + k, mesh);
        }
    if (wrong > 0)
        fail_msg("%d of %d loops", wrong, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(loops_read_through_chains_of_views, check_open, check_close)};
    return CHECK_MAIN(tests);
}
