/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The plans of programs drawn at random from operations on large arrays (OLYMPUS_SIMULATE: arrays need no
 * memory) are those in tests/plan/expected/drawn: a line for each, with the bytes it moves and a digest of the text of
 * oly_explain. For small arrays costs hardly matter, as latency outweighs bytes and computation. After an intended change,
 * PLANS=write build/tests/test_plans_drawn rewrites them. DRAWN=seed:count[:machine] prints those of other seeds, DRAWN=seed
 * prints a plan. */
#include "check.h"
#include "check_plans.h"
#include <olympus.h>

enum { MOST_INPUTS = 4, MOST_OUTPUTS = 3, MOST_NODES = 40, LARGEST = 1 << 25 };

/* -- drawing ------------------------------------------------------------------------------------------------------------------ */

static uint64_t random_state;

static int below(int n)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t x = random_state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (int)((x ^ x >> 31) % (uint64_t)n);
}

static const char *const meshes[] = {"x=8", "x=4, y=2", "x=2, y=4",      "x=2, y=2, z=2", "x=3, y=2",
                                     "x=7", "x=1, y=8", "x=4, y=2, z=1", "x=2, y=3, z=1", "x=2, y=2"};
static const int64_t extents[] = {8, 15, 30, 64, 65, 512, 500, 1000, 3000, 4096, 8192};

/* The choices of a program, drawn before it is traced: tracing may happen more than once. */
typedef struct drawing {
    uint64_t seed;
    oly_mesh mesh;
    int n_axes, n_in, n_out, n_steps;
    int64_t extent[3];
} drawing;

/* Dimensions split over some of the axes, each axis over one at most. */
static oly_sharding sharding_of(const drawing *p, int rank)
{
    static const char *const names[] = {"x", "y", "z"};
    char text[64] = "", axes[4][16] = {"", "", "", ""};
    for (int a = 0; a < p->n_axes; a++) {
        int d = below(rank + 1);
        if (d < rank)
            snprintf(axes[d] + strlen(axes[d]), 16 - strlen(axes[d]), "%s%s", axes[d][0] ? "," : "", names[a]);
    }
    for (int d = 0; d < rank; d++)
        snprintf(text + strlen(text), sizeof text - strlen(text), axes[d][0] ? "%s(%s)" : "%sNone%s", d ? ", " : "",
                 axes[d]);
    return oly_named(p->mesh, text);
}

/* -- operations ---------------------------------------------------------------------------------------------------------------- */

typedef struct values {
    int n;
    oly_array v[MOST_NODES];
} values;

static oly_array any(const values *v)
{
    return v->v[below(2) && v->n > 3 ? v->n - 1 - below(3) : below(v->n)];
}

static bool alike(oly_array x, oly_array y)
{
    if (oly_rank(x) != oly_rank(y))
        return false;
    for (int d = 0; d < oly_rank(x); d++)
        if (oly_shape(x)[d] != oly_shape(y)[d])
            return false;
    return true;
}

/* Another value of the same shape, transposed if that helps; else the value itself. */
static oly_array beside(const values *v, oly_array x)
{
    int begin = below(v->n);
    for (int k = 0; k < v->n; k++) {
        oly_array y = v->v[(begin + k) % v->n];
        if (y != x && alike(x, y))
            return y;
        oly_array turned = y != x && oly_rank(y) == 2 ? oly_transpose(y) : NULL;
        if (turned && alike(x, turned))
            return turned;
    }
    return oly_rank(x) == 2 && oly_shape(x)[0] == oly_shape(x)[1] ? oly_transpose(x) : x;
}

static oly_array product(const values *v, oly_array x)
{
    int begin = below(v->n);
    for (int k = 0; k < v->n && oly_rank(x) == 2; k++) {
        oly_array y = v->v[(begin + k) % v->n];
        if (oly_rank(y) != 2)
            continue;
        if (oly_shape(y)[0] == oly_shape(x)[1] && oly_shape(x)[0] * oly_shape(y)[1] <= LARGEST)
            return oly_matmul(x, y);
        if (oly_shape(y)[1] == oly_shape(x)[1] && oly_shape(x)[0] * oly_shape(y)[0] <= LARGEST)
            return oly_matmul(x, oly_transpose(y));
        if (oly_shape(y)[0] == oly_shape(x)[0] && oly_shape(x)[1] * oly_shape(y)[1] <= LARGEST)
            return oly_matmul(oly_transpose(x), y);
    }
    return oly_sin(x);
}

static oly_array placed(const drawing *p, oly_array x)
{
    return below(2) ? oly_with_sharding_constraint(x, sharding_of(p, oly_rank(x))) : x;
}

static oly_array with_rows(const drawing *p, oly_array x)
{
    int64_t n = oly_shape(x)[0], count = 1 + n / (1 + below(3));
    oly_array index = placed(p, oly_mod(oly_arange(count < 100 ? count : 100 + below(3), OLY_INT32), n));
    switch (below(3)) {
    case 0: return oly_take(x, index, 0, NULL);
    case 1: return oly_at_add(x, OLY_INDEXES(index), placed(p, oly_take(oly_cos(x), index, 0, NULL)));
    default: return oly_segment_sum(oly_take(x, index, 0, NULL), index, n);
    }
}

/* Two disjoint slices of an array, with small extents. */
static oly_array pieces(oly_array x, int d)
{
    int64_t n = oly_shape(x)[d], length = 1 + n / (2 + below(20)), apart = 1 + below(4) * length / 8 + below(9);
    int64_t begin = below(9), end = begin + apart + length;
    if (end > n)
        return oly_sin(x);
    return oly_add(oly_slice_in_dim(x, begin, begin + length, 1, d), oly_slice_in_dim(x, end - length, end, 1, d));
}

/* Reduced without a trace: the result keeps its cuts or gets others. */
static oly_array reduced(oly_array x, int d)
{
    oly_array y = oly_sum(oly_sin(x), .axes = d ? "1" : "0");
    return oly_rank(x) > 1 ? y : oly_neg(x);
}

static void turned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
    out[1] = oly_cumsum(in[0], 0);
}

static void taken(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_softmax(in[0], -1);
    out[1] = oly_sub(in[0], oly_sum(in[0], .axes = "0", .keepdims = true));
}

static oly_array branches(oly_array x)
{
    oly_array made[2];
    oly_cond(oly_gt(oly_sum(x), 0), turned, taken, OLY_IN(x), 2, made, NULL);
    return below(2) ? oly_matmul(oly_transpose(made[0]), made[1]) : below(2) ? made[1] : oly_add(made[0], made[1]);
}

/* Two fields, one of them shorter, and perhaps a number that observes one. */
typedef struct two_fields {
    int below, above, dimension;
} two_fields;

static void fields_body(oly_array i, oly_array *carry, void *user)
{
    const two_fields *w = user;
    int64_t n = oly_shape(carry[0])[w->dimension];
    (void)i;
    oly_array inner = oly_slice_in_dim(carry[0], w->below, n - w->above, 1, w->dimension);
    carry[1] = oly_add(oly_mul(0.5, carry[1]), inner);
    carry[0] = oly_add(oly_mul(0.5, carry[0]), oly_mul(0.25, oly_roll(carry[0], 1, w->dimension)));
    carry[2] = oly_add(carry[2], oly_sum(carry[1]));
}

static oly_array fields(oly_array x, int d)
{
    two_fields w = {below(6), 4 + below(6), d};
    int64_t n = oly_shape(x)[d];
    if (n < 30)
        return oly_sin(x);
    oly_array carry[3] = {x, oly_slice_in_dim(oly_cos(x), w.below, n - w.above, 1, d),
                          oly_zeros_shape(OLY_FLOAT32, 0, NULL)};
    oly_fori(0, 2 + below(60), fields_body, 3, carry, &w);
    return oly_mul(carry[below(2)], carry[2]);
}

static void smooth(oly_array i, oly_array *carry, void *user)
{
    int d = *(const int *)user;
    (void)i;
    carry[0] =
        oly_add(oly_mul(0.5, carry[0]), oly_mul(0.25, oly_add(oly_roll(carry[0], 1, d), oly_roll(carry[0], -1, d))));
}

static oly_array reshaped(oly_array x)
{
    int64_t n = oly_size(x), first = oly_shape(x)[0];
    if (oly_rank(x) == 2)
        return oly_reshape(x, n);
    if (oly_rank(x) == 3)
        return oly_reshape(x, first * oly_shape(x)[1], oly_shape(x)[2]);
    return first % 8 == 0 ? oly_reshape(x, first / 8, 8) : oly_exp(x);
}

static oly_array along(oly_array x, int d)
{
    switch (below(6)) {
    case 0: return oly_sin(x);
    case 1: return oly_add(x, oly_tanh(x));
    case 2: return oly_softmax(x, d);
    case 3: return oly_sum(x, .axes = d ? "1" : "0", .keepdims = true);
    case 4: return oly_sub(x, oly_max(x, .axes = d ? "1" : "0", .keepdims = true));
    default: return oly_mul(x, oly_cumsum(x, d));
    }
}

static oly_array next(const drawing *p, const values *v)
{
    oly_array x = any(v);
    int d = oly_rank(x) > 1 ? below(2) : 0;
    int64_t n = oly_shape(x)[d];
    switch (below(22)) {
    case 0:
    case 1: return oly_add(x, beside(v, x));
    case 2:
    case 3:
    case 4: return product(v, x);
    case 5: return oly_rank(x) == 2 ? oly_transpose(x) : oly_exp(x);
    case 6: return along(x, d);
    case 7: return n > 16 ? oly_slice_in_dim(x, 1 + below(7), n - below(7), 1, d) : oly_cos(x);
    case 8: return oly_mul(x, oly_roll(x, 1 + below(40), d));
    case 9:
        return n > 16 ? oly_concatenate(d, oly_slice_in_dim(x, n / 2, n, 1, d), oly_slice_in_dim(x, 0, n / 2, 1, d))
                      : oly_neg(x);
    case 10: return reshaped(x);
    case 11: return oly_rank(x) == 2 ? with_rows(p, x) : oly_sort(x, d);
    case 12: return oly_with_sharding_constraint(x, sharding_of(p, oly_rank(x)));
    case 13: {
        oly_array carry = x;
        oly_fori(0, 1 + below(60), smooth, 1, &carry, &d);
        return carry;
    }
    case 14: return oly_rank(x) == 2 ? oly_mul(x, oly_sum(beside(v, x), OLY_AXES(0))) : oly_sqrt(x);
    case 15: return pieces(x, d);
    case 16: return reduced(x, d);
    case 17: return oly_rank(x) == 2 ? branches(x) : oly_neg(x);
    case 18: return fields(x, d);
    case 19: return with_rows(p, x);
    default: return oly_mul(x, beside(v, x));
    }
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    const drawing *p = user;
    values v = {.n = 0};
    random_state = p->seed * 77 + 5;
    for (int k = 0; k < p->n_in; k++)
        v.v[v.n++] = in[k];
    for (int k = 0; k < p->n_steps; k++) {
        oly_array made = next(p, &v);
        if (oly_size(made) <= LARGEST && oly_rank(made) > 0)
            v.v[v.n < MOST_NODES ? v.n++ : below(MOST_NODES)] = made;
    }
    for (int k = 0; k < p->n_out; k++)
        out[k] = k + 1 < p->n_out || below(2) ? v.v[v.n - 1 - k] : oly_sum(v.v[v.n - 1 - k]);
    for (int k = 0; k < v.n && p->n_steps > 16; k++) /* all are read */
        out[0] = oly_add(k ? out[0] : oly_sum(out[0]), oly_mean(v.v[k]));
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    oly_array made[MOST_OUTPUTS];
    traced(in, made, user);
    out[0] = oly_mean(made[0]);
}

static void slopes(const oly_array *in, oly_array *out, void *user)
{
    const drawing *p = user;
    oly_array arguments[MOST_INPUTS], *results[] = {&out[0]};
    for (int k = 0; k < p->n_in; k++)
        arguments[k] = in[k];
    oly_call(oly_grad(oly_jit_with(loss, "loss", p->n_in, 1, (oly_jit_options){.user = user}), .argnums = "0"), p->n_in,
             arguments, 1, results);
}

/* -- plans ------------------------------------------------------------------------------------------------------------------------- */

static int most_steps = 16; /* larger ones run all of them */

static oly_fn begin(drawing *p, uint64_t seed, oly_array *in)
{
    random_state = seed;
    const char *text = meshes[below(sizeof meshes / sizeof *meshes)];
    bool gradient = below(4) == 0;
    *p = (drawing){
        .seed = seed, .mesh = oly_make_mesh(text), .n_in = 2 + below(3), .n_out = 1 + below(gradient ? 1 : 3)};
    p->n_axes = strstr(text, "z=") ? 3 : strstr(text, "y=") ? 2 : 1;
    p->n_steps = most_steps > 16 ? most_steps : 3 + below(14);
    for (int k = 0; k < 3; k++)
        p->extent[k] = extents[below(sizeof extents / sizeof *extents)];
    for (int k = 0; k < p->n_in; k++) {
        int64_t shape[3] = {p->extent[below(3)], p->extent[below(3)], 4};
        int rank = 1 + (below(8) > 0) + (below(6) == 0);
        in[k] = oly_device_put(oly_zeros_shape(OLY_FLOAT32, rank, shape), sharding_of(p, rank));
    }
    return oly_jit_with(gradient ? slopes : traced, "drawn", p->n_in, p->n_out, (oly_jit_options){.user = p});
}

/* An unreduced value over Explicit axes that is reduced and moved, of which processes may hold little at a time
 * (plan/lower/reduce_in_parts.h). */
static void finished(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_reshard(in[0], user);
}

static oly_fn begin_sum(uint64_t seed, oly_array *in)
{
    static const char *const explicit_meshes[] = {"x=4:explicit, y=2:explicit", "x=2:explicit, y=4:explicit",
                                                  "y=3:explicit, x=2:explicit"};
    static const char *const from[] = {"None, None, unreduced={x}", "y, None, unreduced={x}", "None, y, unreduced={x}"};
    static const char *const to[] = {"x, y", "(y,x), None", "None, (x,y)", "None, y", "y, x", "(x,y), None"};
    random_state = seed;
    oly_mesh mesh = oly_make_mesh(explicit_meshes[below(3)]);
    int64_t rows = 40 + below(300), columns = 40 + below(3000);
    in[0] = oly_device_put(oly_zeros(OLY_FLOAT32, rows, columns), oly_named(mesh, from[below(3)]));
    return oly_jit_with(finished, "finished", 1, 1, (oly_jit_options){.user = (void *)oly_named(mesh, to[below(6)])});
}

static unsigned digest_of(const char *text)
{
    unsigned digest = 2166136261u;
    for (; *text; text++)
        digest = (digest ^ (unsigned char)*text) * 16777619u;
    return digest;
}

static void tell(FILE *to, uint64_t seed, bool whole, bool sum)
{
    drawing p = {.n_in = 1};
    oly_array in[MOST_INPUTS];
    oly_plan_costs costs;
    oly_fn f = sum ? begin_sum(seed, in) : begin(&p, seed, in);
    FILE *json = check_plan_begin();
    assert_int_equal(oly_explain_as_n(json, whole ? OLY_EXPLAIN_TEXT : OLY_EXPLAIN_JSON, f, p.n_in, in), OLY_OK);
    char *text = check_plan_end(json);
    assert_int_equal(oly_costs_n(&costs, f, p.n_in, in), OLY_OK);
    if (whole)
        fputs(text, to);
    fprintf(to, "%llu: %d steps, %d collectives, %lld bytes, %08x\n", (unsigned long long)seed, (int)costs.steps,
            (int)costs.collectives, (long long)costs.wire_bytes, digest_of(text));
    free(text);
}

/* -- machines ------------------------------------------------------------------------------------------------------------------------ */

/* Costs differ by machine; `few` are further seeds, for which little is decided by cost. */
static const struct {
    const char *devices, *choose, *costs, *direct;
    int first, n;
    int steps; /* 0: a few, as most */
    int few[12];
} machines[] = {
    {"4x2", "1", "", "8", 1, 400, 0, {685, 1783, 2154, 2172, 2178, 2185, 5738, 5751, 5985, 9702}},
    {"8x1", "2", "levels", "2", 20001, 200, 0, {0}},
    {"1x8", "1", "gemm=1Gflop/s; operations=0.1Gop/s", "8", 30001, 200, 0, {0}},
    {"2x4", "1", "", "8", 40001, 8, 600, {0}},
};
enum { N_MACHINES = sizeof machines / sizeof *machines };

static void begin_on(int machine)
{
    setenv("OLYMPUS_SIMULATE", machines[machine].devices, 1);
    setenv("OLYMPUS_SIMULATE_NODE", "numa:2 l3:1(size=32MB) core:4 l2:1(size=1MB) l1d:1(size=32KB) pu:1", 1);
    setenv("OLYMPUS_NUM_THREADS", "2", 1);
    setenv("OLYMPUS_CHOOSE", machines[machine].choose, 1);
    setenv("OLYMPUS_COSTS", machines[machine].costs, 1);
    setenv("OLYMPUS_DIRECT_PROCESSES", machines[machine].direct, 1);
    most_steps = machines[machine].steps ? machines[machine].steps : 16;
    oly_init(NULL, NULL);
}

static void tell_many(FILE *to, uint64_t first, int n, bool whole, bool sums)
{
    for (int k = 0; k < n; k++)
        OLY_SCOPE
        {
            tell(to, first + (uint64_t)k, whole, sums);
        }
}

/* DRAWN=seed, seed:count or seed:count:machine */
static void tell_wanted(const char *drawn)
{
    const char *count = strchr(drawn, ':'), *machine = count ? strchr(count + 1, ':') : NULL;
    begin_on(machine ? atoi(machine + 1) % N_MACHINES : 0);
    tell_many(stdout, (uint64_t)atoll(drawn), count ? atoi(count + 1) : 1, !count, false);
    assert_int_equal(oly_finalize(), 0);
}

static void plans_are_the_expected_ones(void **state)
{
    (void)state;
    bool same = true;
    if (getenv("DRAWN")) {
        tell_wanted(getenv("DRAWN"));
        skip();
    }
    for (int k = 0; k < N_MACHINES; k++) {
        char *lines = NULL, path[64];
        size_t size = 0;
        FILE *file = open_memstream(&lines, &size);
        begin_on(k);
        tell_many(file, (uint64_t)machines[k].first, machines[k].n, false, false);
        for (int j = 0; machines[k].few[j]; j++)
            tell_many(file, (uint64_t)machines[k].few[j], 1, false, false);
        assert_int_equal(oly_finalize(), 0);
        fclose(file);
        snprintf(path, sizeof path, "tests/plan/expected/drawn/%s.txt", machines[k].devices);
        same = check_same_as_file(path, lines) && same;
        free(lines);
    }
    assert_true(same);
}

static void sums_are_reduced_as_expected(void **state)
{
    (void)state;
    char *lines = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&lines, &size);
    setenv("OLYMPUS_EXCHANGE_MEMORY", "1", 1);
    begin_on(0);
    tell_many(file, 1, 60, false, true);
    assert_int_equal(oly_finalize(), 0);
    unsetenv("OLYMPUS_EXCHANGE_MEMORY");
    fclose(file);
    assert_true(check_same_as_file("tests/plan/expected/drawn/sums.txt", lines));
    free(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_the_expected_ones),
                                       cmocka_unit_test(sums_are_reduced_as_expected)};
    return CHECK_MAIN(tests);
}
