/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops whose carries take over the values of others, in chains of any length, from several, and in circles: counted,
 * with a condition, and inside a loop, for any number of iterations, against the same loop over plain arrays; with copies, too. */
#include "check_layouts.h"
#include "check_session.h"
#include "core/optimisation.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, SIZE = 48 };

/* What an iteration does: carry k takes over carry from[k], or, where that is -1, becomes 3 * backwards(a[k]) + b[k] + counter. */
typedef struct recipe {
    int n, count, from[MOST], a[MOST], b[MOST];
    bool conditional, nested;
} recipe;

static uint32_t seed = 1;

static int draw(int below)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)below);
}

static recipe draw_recipe(void)
{
    recipe r = {.n = 2 + draw(MOST - 1), .count = draw(9), .conditional = draw(3) == 0, .nested = draw(4) == 0};
    for (int k = 0; k < r.n; k++) {
        r.from[k] = draw(3) ? draw(r.n) : -1;
        r.a[k] = draw(r.n);
        r.b[k] = draw(r.n);
    }
    return r;
}

static void turn(oly_array counter, oly_array *c, const recipe *r)
{
    oly_array old[MOST];
    memcpy(old, c, sizeof(oly_array) * (size_t)r->n);
    for (int k = 0; k < r->n; k++)
        c[k] = r->from[k] >= 0 ? old[r->from[k]]
                               : oly_add(oly_add(oly_mul(3, oly_flip(old[r->a[k]], 0)), old[r->b[k]]), counter);
}

static void body(oly_array i, oly_array *c, void *user)
{
    turn(i, c, user);
}

static oly_array goes_on(const oly_array *c, void *user)
{
    const recipe *r = user;
    return oly_lt(c[r->n], r->count);
}

static void body_of_while(oly_array *c, void *user)
{
    const recipe *r = user;
    turn(c[r->n], c, r);
    c[r->n] = oly_add(c[r->n], 1);
}

static void run_loop(oly_array *c, recipe *r)
{
    if (!r->conditional) {
        oly_fori(0, r->count, body, r->n, c, r);
        return;
    }
    oly_array with_counter[MOST + 1];
    memcpy(with_counter, c, sizeof(oly_array) * (size_t)r->n);
    with_counter[r->n] = oly_scalar(0, OLY_INT32);
    oly_while(goes_on, body_of_while, r->n + 1, with_counter, r);
    memcpy(c, with_counter, sizeof(oly_array) * (size_t)r->n);
}

static void outer(oly_array i, oly_array *c, void *user)
{
    (void)i;
    run_loop(c, user);
}

static void whole(const oly_array *in, oly_array *out, void *user)
{
    recipe *r = user;
    memcpy(out, in, sizeof(oly_array) * (size_t)r->n);
    if (r->nested)
        oly_fori(0, 3, outer, r->n, out, r);
    else
        run_loop(out, r);
}

static void expect(const recipe *r, uint32_t (*c)[SIZE])
{
    static uint32_t old[MOST][SIZE];
    for (int round = 0; round < (r->nested ? 3 : 1); round++)
        for (int i = 0; i < r->count; i++) {
            memcpy(old, c, sizeof old);
            for (int k = 0; k < r->n; k++)
                for (int x = 0; x < SIZE; x++)
                    c[k][x] = r->from[k] >= 0 ? old[r->from[k]][x]
                                              : 3 * old[r->a[k]][SIZE - 1 - x] + old[r->b[k]][x] + (uint32_t)i;
        }
}

static void check(const char *spec)
{
    static uint32_t value[MOST][SIZE], got[SIZE];
    recipe r = draw_recipe();
    oly_array in[MOST], out[MOST];
    oly_mesh mesh = oly_make_mesh(oly_device_count() % 8 == 0 ? "i=8" : "i=1");
    for (int k = 0; k < r.n; k++) {
        for (int x = 0; x < SIZE; x++)
            value[k][x] = (uint32_t)(draw(1000) + 1000 * k);
        in[k] = oly_device_put(oly_from_host(value[k], OLY_INT32, CHECK_SHAPE(SIZE)), oly_named(mesh, spec));
    }
    oly_fn f = oly_jit(whole, r.n, r.n, .user = &r);
    for (int k = 0; k < r.n; k++)
        out[k] = NULL;
    assert_int_equal(oly_call_arrays(f, r.n, in, r.n, out), OLY_OK);
    expect(&r, value);
    for (int k = 0; k < r.n; k++) {
        assert_int_equal(oly_process_allgather(out[k], got, sizeof got), OLY_OK);
        if (memcmp(got, value[k], sizeof got) != 0)
            fail_msg("carry %d of %d, %d iterations%s%s, \"%s\", from %d %d %d %d %d: element 0 is %d, not %d", k, r.n,
                     r.count, r.conditional ? " of while" : "", r.nested ? ", three times" : "", spec, r.from[0],
                     r.from[1], r.n > 2 ? r.from[2] : -1, r.n > 3 ? r.from[3] : -1, r.n > 4 ? r.from[4] : -1,
                     (int)got[0], (int)value[k][0]);
    }
}

static void carries_are_as_of_a_plain_loop(void **state)
{
    (void)state;
    for (int k = 0; k < 120; k++)
        OLY_SCOPE
        {
            oly_optimisations before =
                oly_disable(k % 5 == 0 ? (oly_optimisations)1 << OLY_OPTIMISATION_PASSED_CARRIES : 0);
            check(k % 2 ? "i" : "");
            oly_disable(before);
        }
}

/* A leapfrog keeps three buffers and copies nothing. */
static void leap(oly_array i, oly_array *c, void *user)
{
    (void)user;
    oly_array next = oly_add(oly_mul(2, oly_flip(c[0], 0)), oly_sub(i, c[1]));
    c[1] = c[0];
    c[0] = next;
}

static void leapfrog(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    out[1] = in[1];
    oly_fori(0, 50, leap, 2, out, NULL);
}

/* The second carry stays as it is. */
static void decay(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)user;
    c[0] = oly_sub(oly_flip(c[0], 0), c[1]);
}

static void decaying(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    out[1] = in[1];
    oly_fori(0, 50, decay, 2, out, NULL);
}

static bool copies(oly_fn f)
{
    oly_array in[] = {oly_arange(SIZE, OLY_INT32), oly_arange(SIZE, OLY_INT32)};
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_non_null(file);
    assert_int_equal(oly_explain_n(file, f, 2, in), OLY_OK);
    fclose(file);
    char *loop = strstr(text, "50 times"), *end = loop;
    assert_non_null(loop);
    while ((end = strchr(end, '\n')) && strncmp(++end, "        ", 8) == 0)
        ;
    assert_non_null(end); /* of the lines of its steps */
    *end = 0;
    bool found = strstr(loop, "copy") != NULL;
    free(text);
    return found;
}

static void nothing_is_copied(void **state)
{
    (void)state;
    assert_false(copies(oly_jit(leapfrog, 2, 2)));
    assert_false(copies(oly_jit(decaying, 2, 2)));
    oly_optimisations before = oly_disable((oly_optimisations)1 << OLY_OPTIMISATION_PASSED_CARRIES);
    assert_true(copies(oly_jit(leapfrog, 2, 2)));
    assert_true(copies(oly_jit(decaying, 2, 2)));
    oly_disable(before);
}

/* A weight that stays as it is, as a carry and from outside: the same derivatives, of one loop in another, and of elements of a batch. */
static void weigh(oly_array i, oly_array *c, void *user)
{
    oly_array weight = user ? *(oly_array *)user : c[1];
    c[0] = oly_sin(oly_add(oly_mul(c[0], weight), i));
}

static void weigh_twice(oly_array i, oly_array *c, void *user)
{
    (void)i;
    oly_fori(0, 3, weigh, user ? 1 : 2, c, user);
}

static void weighted(const oly_array *in, oly_array *out, void *user)
{
    oly_array c[2] = {in[0], in[1]};
    oly_array weight = in[1];
    bool outside = *(bool *)user;
    oly_fori(0, 4, weigh_twice, outside ? 1 : 2, c, outside ? &weight : NULL);
    out[0] = oly_sum(oly_mul(c[0], outside ? weight : c[1]));
}

static void derived(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_apply(oly_grad(oly_jit(weighted, 2, 1, .user = user), OLY_ARGNUMS(1)), in[0], in[1]);
}

static oly_array is_small(const oly_array *c, void *user)
{
    (void)user;
    return oly_lt(oly_sum(c[1]), oly_mul(oly_sum(c[0]), 8));
}

static void grow(oly_array *c, void *user)
{
    (void)user;
    c[1] = oly_add(c[1], c[0]);
}

/* The first carry, which the condition reads, stays. */
static void grown(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], 2);
    out[1] = in[1];
    oly_while(is_small, grow, 2, out, NULL);
}

static void expect_same(oly_array a, oly_array b)
{
    float one[4 * SIZE], other[4 * SIZE];
    size_t bytes = oly_size(a) * sizeof *one;
    assert_int_equal(oly_size(a), oly_size(b));
    assert_int_equal(oly_process_allgather(a, one, bytes), OLY_OK);
    assert_int_equal(oly_process_allgather(b, other, bytes), OLY_OK);
    assert_memory_equal(one, other, bytes);
}

static void a_carry_that_stays_is_as_one_from_outside(void **state)
{
    (void)state;
    bool no = false, yes = true;
    oly_mesh mesh = oly_make_mesh("i=8");
    oly_array x = oly_device_put(oly_mul(oly_arange(SIZE, OLY_FLOAT32), 0.01), oly_named(mesh, "i"));
    oly_array w = oly_add(x, 0.5), batch = oly_stack(0, w, x, oly_add(w, 1));
    oly_fn carried = oly_jit(weighted, 2, 1, .user = &no), outside = oly_jit(weighted, 2, 1, .user = &yes);
    for (int k = 0; k < 2; k++)
        expect_same(oly_apply(oly_grad(carried, OLY_ARGNUMS(k)), x, w),
                    oly_apply(oly_grad(outside, OLY_ARGNUMS(k)), x, w));
    oly_array one = NULL, other = NULL;
    oly_vmap(derived, &no, OLY_IN(x, batch), OLY_AXES_OF(OLY_UNMAPPED, 0), OLY_OUT(one), OLY_AXES_OF(0));
    oly_vmap(derived, &yes, OLY_IN(x, batch), OLY_AXES_OF(OLY_UNMAPPED, 0), OLY_OUT(other), OLY_AXES_OF(0));
    expect_same(one, other);
    oly_array first = NULL, second = NULL;
    assert_int_equal(oly_call(oly_jit(grown, 2, 2), OLY_IN(x, w), OLY_OUT(first, second)), OLY_OK);
    expect_same(first, oly_add(x, 2));
    oly_array sum = w;
    for (int k = 0; k < 8 && oly_item(oly_sum(sum)) < oly_item(oly_mul(oly_sum(first), 8)); k++)
        sum = oly_add(sum, first);
    expect_same(second, sum);
}

/* Nothing but carries that stay; and one that is donated. */
static void nothing(oly_array i, oly_array *c, void *user)
{
    (void)i, (void)c, (void)user;
}

static void idle(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    out[1] = in[1];
    oly_fori(0, 5, nothing, 2, out, NULL);
}

static void a_loop_may_change_nothing(void **state)
{
    (void)state;
    oly_array x = oly_arange(SIZE, OLY_FLOAT32), y = oly_add(x, 1), z = oly_add(x, 0);
    assert_int_equal(oly_call(oly_jit(idle, 2, 2), OLY_IN(x, y), OLY_OUT(x, y)), OLY_OK);
    expect_same(x, z);
    expect_same(y, oly_add(z, 1));
    oly_fori(0, 5, nothing, 1, &x, NULL);
    expect_same(x, z);
    assert_int_equal(oly_call(oly_jit(decaying, 2, 2), OLY_IN(x, y), OLY_OUT(x, y)), OLY_OK);
    expect_same(y, oly_add(z, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(carries_are_as_of_a_plain_loop, check_open, check_close),
        cmocka_unit_test_setup_teardown(nothing_is_copied, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_carry_that_stays_is_as_one_from_outside, check_open, check_close),
        cmocka_unit_test_setup_teardown(a_loop_may_change_nothing, check_open, check_close)};
    return CHECK_MAIN(tests);
}
