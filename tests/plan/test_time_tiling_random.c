/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops over fields with random bodies of cyclic shifts, updates, padding, concatenations, masks and products:
 * the same bits on eight devices as on one, for any number of steps between exchanges, and the values of single steps. Fields
 * of one shape, and of shapes that differ by one or two elements, as on staggered grids.
 *   TIME_TILING_CASES=first,last   others */
#include "check.h"
#include "random_fields.h"
#include <math.h>
#include <olympus.h>

enum { LOOKS = 3 }; /* LOOKS: carries beside the fields */

/* The same with observations: a sum for every step, the largest value so far, and a time that advances by itself. */
static void looked_at(oly_array i, oly_array *carry, void *user)
{
    random_case *c = user;
    oly_array before[MOST_FIELDS], *looks = carry + c->n_fields;
    oly_operand at[1] = {oly_operand_array(i)};
    memcpy(before, carry, sizeof *carry * (size_t)c->n_fields);
    random_case_body(i, carry, user);
    if (random_case_draw(c, 2))
        carry[0] = oly_mul(carry[0], oly_sub(1, oly_mul(0.001, oly_astype(i, OLY_FLOAT32))));
    if (random_case_draw(c, 2))
        carry[0] = oly_sub(carry[0], oly_mul(0.01, looks[2]));
    looks[2] =
        oly_add(looks[2], random_case_draw(c, 2) ? oly_mul(0.01, looks[2]) : oly_mul(0.02, oly_astype(i, OLY_FLOAT32)));
    int first = random_case_draw(c, c->n_fields), second = random_case_draw(c, c->n_fields);
    oly_array x = random_case_draw(c, 2) ? before[first] : carry[first], y = oly_mul(carry[second], 0.5);
    oly_array sum = oly_sum(random_case_draw(c, 2) ? oly_mul(x, carry[first]) : oly_sub(x, carry[first]));
    looks[0] = (oly_dynamic_update_slice)(looks[0], oly_reshape(sum, 1), 1, at);
    looks[1] =
        oly_max2(looks[1], oly_add(oly_max(random_case_draw(c, 2) ? y : carry[second]), oly_mul(0.001, oly_sum(y))));
}

static void many_looked_at(const oly_array *in, oly_array *out, void *user)
{
    const random_case *c = user;
    memcpy(out, in, sizeof *in * (size_t)(c->n_fields + LOOKS));
    oly_fori(0, c->steps, looked_at, c->n_fields + LOOKS, out, user);
}

static void many(const oly_array *in, oly_array *out, void *user)
{
    const random_case *c = user;
    memcpy(out, in, sizeof *in * (size_t)c->n_fields);
    oly_fori(0, c->steps, random_case_body, c->n_fields, out, user);
}

static void single(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, sizeof *in * (size_t)((const random_case *)user)->n_fields);
    random_case_body(NULL, out, user);
}

static void apply(oly_fn f, int n, const oly_array *in, oly_array *out)
{
    oly_array *wanted[MOST_FIELDS + LOOKS];
    for (int k = 0; k < n; k++) {
        out[k] = NULL;
        wanted[k] = &out[k];
    }
    assert_int_equal(oly_call_n(f, n, in, n, wanted), OLY_OK);
}

static float *values_of(oly_array x, size_t bytes)
{
    float *data = malloc(bytes);
    assert_int_equal(oly_process_allgather(x, data, bytes), OLY_OK);
    return data;
}

static void compare(const random_case *c, int number, int field, oly_array one, oly_array eight, oly_array plain)
{
    size_t count = random_case_count(c, field), bytes = count * sizeof(float);
    float *a = values_of(one, bytes), *b = values_of(eight, bytes), *e = values_of(plain, bytes);
    const char *kind = c->staggered ? "staggered " : "";
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%scase %d: field %d has other bits on eight devices", kind, number, field);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - e[i]) <= 1e-3f * (1 + fabsf(e[i]))))
            fail_msg("%scase %d: field %d is %g at %zu, by single steps %g", kind, number, field, (double)a[i], i,
                     (double)e[i]);
    free(a);
    free(b);
    free(e);
}

static void check_case(int number, random_case c)
{
    static const char *const places[][2] = {{"x=4, y=2", "x, y"}, {"x=2, y=4", "x, y"}, {"x=4, y=2", "y, None"}};
    const char *const *place = places[random_case_draw(&c, 3)];
    c.seed = c.state;
    oly_mesh mesh = oly_make_mesh(c.rank == 1 ? "x=8" : place[0]);
    oly_array in[MOST_FIELDS], spread_out[MOST_FIELDS], one[MOST_FIELDS], eight[MOST_FIELDS], plain[MOST_FIELDS];
    for (int k = 0; k < c.n_fields; k++) {
        plain[k] = in[k] = random_case_start(&c, k);
        spread_out[k] = oly_device_put(in[k], oly_named(mesh, c.rank == 1 ? "x" : place[1]));
    }
    oly_fn loop = oly_jit(many, c.n_fields, c.n_fields, .user = &c);
    oly_fn step = oly_jit(single, c.n_fields, c.n_fields, .user = &c);
    apply(loop, c.n_fields, in, one);
    apply(loop, c.n_fields, spread_out, eight);
    for (int i = 0; i < c.steps; i++) {
        oly_array before[MOST_FIELDS];
        memcpy(before, plain, sizeof before);
        apply(step, c.n_fields, before, plain);
    }
    for (int k = 0; k < c.n_fields; k++)
        compare(&c, number, k, one[k], eight[k], plain[k]);
}

static void check_cases(int first, int last, bool staggered, bool is_long)
{
    static const char *const passes[] = {"3", "2", "0"};
    const char *cases = getenv("TIME_TILING_CASES");
    int next = last - first + 30;
    if (cases) {
        sscanf(cases, "%d,%d", &first, &last);
        next = 0;
    }
    for (int p = 0; p < 3; p++) {
        setenv("OLYMPUS_HALO_STEPS", passes[p], 1);
        oly_init(NULL, NULL);
        for (int k = first + p * next; k <= last + p * next; k++)
            OLY_SCOPE
            {
                check_case(k, is_long ? random_case_long(k) : random_case_of(k, staggered));
            }
        assert_int_equal(oly_finalize(), 0);
    }
    unsetenv("OLYMPUS_HALO_STEPS");
}

/* -- observations of the fields ------------------------------------------------------------------------------------ */

enum { CASES = 24 };

/* The bits of the fields and of the observations are the same for any number of steps between exchanges; those of the
 * fields are one device's. */
static void check_looks(int number, bool staggered, char **bits)
{
    random_case c = random_case_of(number, staggered);
    c.steps += 5;
    for (int k = 0; k < c.n_fields; k++) {
        c.shape[k][0] += c.rank == 1 ? 16384 : 110;
        c.shape[k][1] += 140;
    }
    c.seed = c.state;
    int n = c.n_fields + LOOKS;
    oly_mesh mesh = oly_make_mesh(c.rank == 1 ? "x=8" : "x=4, y=2");
    oly_array in[MOST_FIELDS + LOOKS], spread_out[MOST_FIELDS + LOOKS], one[MOST_FIELDS + LOOKS],
        eight[MOST_FIELDS + LOOKS];
    for (int k = 0; k < c.n_fields; k++) {
        in[k] = random_case_start(&c, k);
        spread_out[k] = oly_device_put(in[k], oly_named(mesh, c.rank == 1 ? "x" : "x, y"));
    }
    in[n - 3] = spread_out[n - 3] = oly_zeros(OLY_FLOAT32, c.steps);
    in[n - 2] = spread_out[n - 2] = oly_zeros(OLY_FLOAT32);
    in[n - 1] = spread_out[n - 1] = oly_ones(OLY_FLOAT32);
    oly_fn loop = oly_jit(many_looked_at, n, n, .user = &c);
    apply(loop, n, in, one);
    apply(loop, n, spread_out, eight);
    size_t at = 0, total = sizeof(float) * (size_t)(c.steps + 2);
    for (int k = 0; k < c.n_fields; k++)
        total += sizeof(float) * random_case_count(&c, k);
    char *all = malloc(total);
    for (int k = 0; k < n; k++) {
        size_t bytes = sizeof(float) * (size_t)oly_size(eight[k]);
        float *a = values_of(one[k], bytes), *b = values_of(eight[k], bytes);
        if (k < c.n_fields && memcmp(a, b, bytes) != 0)
            fail_msg("case %d: field %d has other bits on eight devices", number, k);
        for (size_t i = 0; k >= c.n_fields && i < bytes / sizeof(float); i++)
            if (isfinite(a[i]) && !(fabsf(a[i] - b[i]) <= 1e-2f + 1e-3f * fabsf(a[i])))
                fail_msg("case %d: %g is seen at %zu on eight devices, %g on one", number, (double)b[i], i,
                         (double)a[i]);
        memcpy(all + at, b, bytes);
        at += bytes;
        free(a);
        free(b);
    }
    if (*bits && memcmp(*bits, all, total) != 0)
        fail_msg("case %d: another number of steps a pass gives other bits", number);
    free(*bits);
    *bits = all;
}

static void observing_fields_changes_no_bit(void **state)
{
    static const char *const passes[] = {"1", "3", "0", "5"};
    char *bits[CASES] = {NULL};
    int number = getenv("TIME_TILING_CASES") ? atoi(getenv("TIME_TILING_CASES")) : 200;
    (void)state;
    for (int p = 0; p < 4; p++) {
        setenv("OLYMPUS_HALO_STEPS", passes[p], 1);
        oly_init(NULL, NULL);
        for (int k = 0; k < CASES; k++)
            OLY_SCOPE
            {
                check_looks(number + k, k % 2, &bits[k]);
            }
        assert_int_equal(oly_finalize(), 0);
    }
    for (int k = 0; k < CASES; k++)
        free(bits[k]);
    unsetenv("OLYMPUS_HALO_STEPS");
}

static void random_bodies_give_the_same_everywhere(void **state)
{
    (void)state;
    check_cases(740, 770, false, false); /* 755: fields swap, and fewer steps read farther */
}

static void fields_of_several_shapes_do_too(void **state)
{
    (void)state;
    check_cases(40, 70, true, false);
}

static void long_bodies_do_too(void **state)
{
    (void)state;
    check_cases(900, 920, false, true);
}

/* Machine code, which computes some stages where they are read, has the bits of the stages one by one. */
static void machine_code_changes_no_bit(void **state)
{
    enum { PROGRAMS = 80 };
    static char *bits[PROGRAMS][MOST_FIELDS];
    const char *cases = getenv("TIME_TILING_CASES");
    int first = cases ? atoi(cases) : 600;
    (void)state;
    for (int p = 0; p < 4; p++) {
        setenv("OLYMPUS_HALO_STEPS", p == 1 ? "1" : "3", 1);
        setenv("OLYMPUS_COMPILE_AFTER", p == 1 ? "2000" : "0", 1);
        setenv("OLYMPUS_DISABLE", p == 0 ? "compiled-groups" : p == 3 ? "field-groups" : "", 1);
        oly_init(NULL, NULL);
        for (int k = 0; k < PROGRAMS && oly_process_count() == 1; k++)
            OLY_SCOPE
            {
                random_case c = k < PROGRAMS / 2 ? random_case_of(first + k, k % 2) : random_case_long(first + k);
                oly_array in[MOST_FIELDS], out[MOST_FIELDS];
                c.seed = c.state;
                for (int j = 0; j < c.n_fields; j++)
                    in[j] = random_case_start(&c, j);
                apply(oly_jit(many, c.n_fields, c.n_fields, .user = &c), c.n_fields, in, out);
                for (int j = 0; j < c.n_fields; j++) {
                    size_t bytes = sizeof(float) * random_case_count(&c, j);
                    char *now = (char *)values_of(out[j], bytes);
                    if (bits[k][j] && memcmp(bits[k][j], now, bytes) != 0)
                        fail_msg("case %d: field %d has other bits by machine code", first + k, j);
                    free(bits[k][j]);
                    bits[k][j] = now;
                }
            }
        assert_int_equal(oly_finalize(), 0);
    }
    for (int k = 0; k < PROGRAMS; k++)
        for (int j = 0; j < MOST_FIELDS; j++)
            free(bits[k][j]);
    unsetenv("OLYMPUS_HALO_STEPS");
    unsetenv("OLYMPUS_COMPILE_AFTER");
    unsetenv("OLYMPUS_DISABLE");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_bodies_give_the_same_everywhere),
    cmocka_unit_test(fields_of_several_shapes_do_too),
    cmocka_unit_test(long_bodies_do_too),
    cmocka_unit_test(observing_fields_changes_no_bit),
    cmocka_unit_test(machine_code_changes_no_bit),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
