/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Loops over fields with random bodies of cyclic shifts, updates, padding, concatenations, masks and products:
 * the same bits on eight devices as on one, for any number of steps between exchanges, and the values of single steps. Fields
 * of one shape, and of shapes that differ by one or two elements, as on staggered grids.
 *   TIME_TILING_CASES=first,last   others */
#include "check.h"
#include <math.h>
#include <olympus.h>

enum { MOST_FIELDS = 3, MOST_VALUES = 64, LOOKS = 3 }; /* LOOKS: carries beside the fields */

typedef struct random_case {
    unsigned seed, state;
    int n_fields, n_operations, rank, steps;
    bool staggered, is_long; /* is_long: many operations, most of them on recent values at the same element */
    int64_t shape[MOST_FIELDS][2];
} random_case;

static int draw(random_case *c, int64_t n)
{
    c->state = c->state * 1664525u + 1013904223u;
    return (int)((c->state >> 8) % (unsigned)n);
}

static void name_part(const random_case *c, int d, int64_t from, int64_t to, char *text)
{
    sprintf(text, "%s%d:%d%s", d == 1 ? ":, " : "", (int)from, (int)to, c->rank == 2 && d == 0 ? ", :" : "");
}

static oly_array part(const random_case *c, oly_array x, int d, int64_t from, int64_t to)
{
    char text[64];
    name_part(c, d, from, to, text);
    return oly_slice(x, text);
}

static oly_array updated(random_case *c, oly_array x, oly_array y, int d)
{
    int64_t size = oly_dim(x, d), from = draw(c, size - 1), to = from + 1 + draw(c, size - from);
    int64_t other = draw(c, size - (to - from) + 1);
    char text[64];
    other = llabs(other - from) > 4 ? from : other;
    name_part(c, d, from, to, text);
    return oly_update(x, text, oly_mul(0.5, part(c, y, d, other, other + to - from)));
}

static oly_array padded(random_case *c, oly_array x, int d)
{
    int64_t size = oly_dim(x, d), below = draw(c, 4), above = draw(c, 4), from = draw(c, below + above + 1);
    int64_t low[2] = {0, 0}, high[2] = {0, 0};
    low[d] = below;
    high[d] = above;
    return oly_pad(part(c, x, d, from, from + size - below - above), 0.25, low, high, NULL);
}

static oly_array joined(random_case *c, oly_array x, oly_array y, oly_array z, int d)
{
    int64_t size = oly_dim(x, d), width = 1 + draw(c, 3), from = draw(c, 2) ? 0 : size - width;
    return oly_concatenate(d, part(c, x, d, from, from + width),
                           oly_add(part(c, y, d, 0, size - width), part(c, z, d, width, size)));
}

static oly_array slope(random_case *c, oly_array x, int d)
{
    int64_t one[2] = {0, 0}, size = oly_dim(x, d);
    one[d] = 1;
    oly_array p = oly_pad(x, 0, one, one, NULL);
    return oly_mul(0.5, oly_sub(part(c, p, d, 0, size), part(c, p, d, 2, size + 2)));
}

static oly_array spread(oly_array x, oly_array y, oly_array z, int d)
{
    return oly_add(oly_mul(0.3, x), oly_mul(0.2, oly_add(oly_roll(y, 1, d), oly_roll(z, -1, d))));
}

/* A slice of x, or x padded, of these extents. */
static oly_array fitted(random_case *c, oly_array x, const int64_t *shape)
{
    for (int d = 0; d < c->rank; d++) {
        int64_t low[2] = {0, 0}, high[2] = {0, 0}, more = shape[d] - oly_dim(x, d);
        if (more > 0) {
            low[d] = draw(c, more + 1);
            high[d] = more - low[d];
            x = oly_pad(x, 0.25, low, high, NULL);
        } else if (more < 0) {
            int64_t from = draw(c, 1 - more);
            x = part(c, x, d, from, from + shape[d]);
        }
    }
    return x;
}

static oly_array difference(const random_case *c, oly_array x, int d)
{
    int64_t size = oly_dim(x, d);
    return oly_mul(0.5, oly_sub(part(c, x, d, 1, size), part(c, x, d, 0, size - 1)));
}

/* x times a factor that depends on the position. */
static oly_array tilted(const random_case *c, oly_array x, int d)
{
    int64_t shape[2] = {oly_dim(x, 0), c->rank == 2 ? oly_dim(x, 1) : 1};
    oly_array at = oly_iota_shape(OLY_INT32, d, c->rank, shape);
    return oly_mul(x, oly_sub(1, oly_mul(0.01, oly_astype(oly_bitwise_and(at, 15), OLY_FLOAT32))));
}

static oly_array operation(random_case *c, oly_array x, oly_array y, oly_array z)
{
    int d = draw(c, c->rank), which = c->is_long && draw(c, 3) ? 4 + draw(c, 4) : draw(c, 10 + c->is_long);
    int64_t shape[2] = {oly_dim(x, 0), c->rank == 2 ? oly_dim(x, 1) : 1};
    if (c->staggered) { /* not periodic */
        y = fitted(c, y, shape);
        z = fitted(c, z, shape);
        if (which == 0 || which == 8)
            return difference(c, x, d);
    }
    switch (which) {
    case 0: return oly_roll(x, draw(c, 7) - 3, d);
    case 1: return updated(c, x, y, d);
    case 2: return padded(c, x, d);
    case 3: return joined(c, x, y, z, d);
    case 4: return oly_where(oly_gt(x, 0.3), y, z);
    case 5: return oly_mul(x, c->is_long ? oly_sin(y) : y); /* many squares would grow, and differences with them */
    case 6: return oly_sub(oly_mul(c->is_long ? 0.6 : 0.7, x), oly_mul(0.4, y));
    case 7: return oly_max2(x, oly_sin(y));
    case 8: return spread(x, y, z, d);
    case 10: return tilted(c, x, d);
    default: return slope(c, x, d);
    }
}

/* Recorded alike every time: it starts from the case's seed. */
static void body(oly_array i, oly_array *carry, void *user)
{
    random_case *c = user;
    oly_array values[MOST_VALUES];
    int n = c->n_fields;
    (void)i;
    memcpy(values, carry, sizeof *carry * (size_t)n);
    c->state = c->seed;
    for (int k = 0; k < c->n_operations; k++, n++) {
        int x = draw(c, n), y = draw(c, n), z = draw(c, n);
        if (c->is_long && draw(c, 4))
            x = n - 1 - draw(c, n < 5 ? n : 5);
        values[n] = operation(c, values[x], values[y], values[z]);
    }
    for (int k = 0; k < c->n_fields; k++) {
        oly_array result = values[n - 1 - draw(c, 3)];
        carry[k] = draw(c, 4) ? oly_mul(0.9, result) : result;
        if (c->staggered)
            carry[k] = fitted(c, carry[k], c->shape[k]);
    }
}

/* The same with observations: a sum for every step, the largest value so far, and a time that advances by itself. */
static void looked_at(oly_array i, oly_array *carry, void *user)
{
    random_case *c = user;
    oly_array before[MOST_FIELDS], *looks = carry + c->n_fields;
    oly_operand at[1] = {oly_operand_array(i)};
    memcpy(before, carry, sizeof *carry * (size_t)c->n_fields);
    body(i, carry, user);
    if (draw(c, 2))
        carry[0] = oly_mul(carry[0], oly_sub(1, oly_mul(0.001, oly_astype(i, OLY_FLOAT32))));
    if (draw(c, 2))
        carry[0] = oly_sub(carry[0], oly_mul(0.01, looks[2]));
    looks[2] = oly_add(looks[2], draw(c, 2) ? oly_mul(0.01, looks[2]) : oly_mul(0.02, oly_astype(i, OLY_FLOAT32)));
    int first = draw(c, c->n_fields), second = draw(c, c->n_fields);
    oly_array x = draw(c, 2) ? before[first] : carry[first], y = oly_mul(carry[second], 0.5);
    oly_array sum = oly_sum(draw(c, 2) ? oly_mul(x, carry[first]) : oly_sub(x, carry[first]));
    looks[0] = (oly_dynamic_update_slice)(looks[0], oly_reshape(sum, 1), 1, at);
    looks[1] = oly_max2(looks[1], oly_add(oly_max(draw(c, 2) ? y : carry[second]), oly_mul(0.001, oly_sum(y))));
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
    oly_fori(0, c->steps, body, c->n_fields, out, user);
}

static void single(const oly_array *in, oly_array *out, void *user)
{
    memcpy(out, in, sizeof *in * (size_t)((const random_case *)user)->n_fields);
    body(NULL, out, user);
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

static size_t count_of(const random_case *c, int field)
{
    return (size_t)(c->shape[field][0] * (c->rank == 2 ? c->shape[field][1] : 1));
}

static random_case draw_case(int number, bool staggered)
{
    random_case c = {.state = (unsigned)number * 7919u + 1, .staggered = staggered};
    c.n_fields = 1 + draw(&c, MOST_FIELDS);
    c.n_operations = 3 + draw(&c, 7);
    c.rank = 1 + draw(&c, 2);
    c.steps = 2 + draw(&c, 6);
    c.shape[0][0] = 9 + draw(&c, 40);
    c.shape[0][1] = 8 + draw(&c, 12);
    c.n_fields += staggered && c.n_fields == 1;
    for (int k = 1; k < c.n_fields; k++)
        for (int d = 0; d < 2; d++)
            c.shape[k][d] = c.shape[0][d] + (staggered ? draw(&c, 4) - 1 : 0);
    return c;
}

/* Bodies whose machine code computes several values together (time_tiling_group.c). */
static random_case draw_long_case(int number)
{
    random_case c = draw_case(number, number % 2);
    c.is_long = true;
    c.n_operations = 10 + draw(&c, MOST_VALUES - MOST_FIELDS - 10);
    return c;
}

static oly_array start_of(const random_case *c, int field)
{
    size_t count = count_of(c, field);
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)((i * 7919 + (size_t)field * 31 + 13) % 1009) / 1009;
    oly_array x = oly_from_host(data, OLY_FLOAT32, c->rank, c->shape[field]);
    free(data);
    return x;
}

static void compare(const random_case *c, int number, int field, oly_array one, oly_array eight, oly_array plain)
{
    size_t count = count_of(c, field), bytes = count * sizeof(float);
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
    const char *const *place = places[draw(&c, 3)];
    c.seed = c.state;
    oly_mesh mesh = oly_make_mesh(c.rank == 1 ? "x=8" : place[0]);
    oly_array in[MOST_FIELDS], spread_out[MOST_FIELDS], one[MOST_FIELDS], eight[MOST_FIELDS], plain[MOST_FIELDS];
    for (int k = 0; k < c.n_fields; k++) {
        plain[k] = in[k] = start_of(&c, k);
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
                check_case(k, is_long ? draw_long_case(k) : draw_case(k, staggered));
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
    random_case c = draw_case(number, staggered);
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
        in[k] = start_of(&c, k);
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
        total += sizeof(float) * count_of(&c, k);
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
                random_case c = k < PROGRAMS / 2 ? draw_case(first + k, k % 2) : draw_long_case(first + k);
                oly_array in[MOST_FIELDS], out[MOST_FIELDS];
                c.seed = c.state;
                for (int j = 0; j < c.n_fields; j++)
                    in[j] = start_of(&c, j);
                apply(oly_jit(many, c.n_fields, c.n_fields, .user = &c), c.n_fields, in, out);
                for (int j = 0; j < c.n_fields; j++) {
                    size_t bytes = sizeof(float) * count_of(&c, j);
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
