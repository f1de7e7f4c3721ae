/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  The plans of large arrays on four ranks with two devices each (OLYMPUS_SIMULATE) are those in
 * tests/plan/expected/large, word for word: where bandwidth, caches and overlap matter more than the number of
 * messages. JSON, which has all figures. After an intended change, PLANS=write build/tests/test_plans_large rewrites
 * them: read the difference to the last commit. */
#include "check.h"
#include "check_plans.h"
#include <olympus.h>

static oly_mesh mesh;

static oly_array put(oly_array x, const char *spec)
{
    return oly_device_put(x, oly_named(mesh, spec));
}

/* -- stencils --------------------------------------------------------------------------------------------------------------- */

static oly_array plate_next(oly_array u)
{
    oly_array mid = oly_slice(u, "1:-1, 1:-1");
    oly_array rows = oly_add(oly_slice(u, ":-2, 1:-1"), oly_slice(u, "2:, 1:-1"));
    oly_array columns = oly_add(oly_slice(u, "1:-1, :-2"), oly_slice(u, "1:-1, 2:"));
    return oly_update(u, "1:-1, 1:-1", oly_sin(oly_add(oly_mul(0.5, mid), oly_mul(0.125, oly_add(rows, columns)))));
}

static void plate_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = plate_next(in[0]);
}

static void plate_body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = plate_next(carry[0]);
}

static void plate(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 50, plate_body, 1, out, user);
}

/* Two fields, one of which the other depends on; a sum is observed. */
static void wave_body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0], v = carry[1], beside = oly_add(oly_roll(u, 1, 1), oly_roll(u, -1, 1));
    oly_array above = oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0));
    v = oly_add(v, oly_mul(0.1, oly_sub(oly_add(beside, above), oly_mul(4, u))));
    carry[1] = v;
    carry[0] = oly_add(u, oly_mul(0.1, v));
    carry[2] = oly_add(carry[2], oly_sum(oly_mul(u, u)));
}

static void wave(const oly_array *in, oly_array *out, void *user)
{
    for (int k = 0; k < 3; k++)
        out[k] = in[k];
    oly_fori(0, 40, wave_body, 3, out, user);
}

static void source_body(oly_array i, oly_array *carry, void *user)
{
    const oly_array *force = user;
    oly_array u = carry[0], mid = oly_slice(u, "1:-1"), beside = oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:"));
    (void)i;
    carry[0] =
        oly_update(u, "1:-1", oly_add(oly_mul(0.25, beside), oly_add(oly_mul(0.5, mid), oly_slice(*force, "1:-1"))));
}

static void source(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_fori(0, 1000, source_body, 1, out, (void *)&in[1]);
}

/* -- products ------------------------------------------------------------------------------------------------------------------ */

static void matmul(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[0], in[1]);
}

static void chain(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_sin(oly_matmul(oly_matmul(in[0], in[1]), in[2])));
}

/* The layouts chosen for the small chain matter little beside the rest. */
static void chain_beside(const oly_array *in, oly_array *out, void *user)
{
    chain(in, out, user);
    out[1] = oly_matmul(in[3], oly_transpose(in[3]));
}

static void loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array h = oly_tanh(oly_add(oly_matmul(in[3], in[0]), in[1])), d = oly_sub(oly_matmul(h, in[2]), 1);
    out[0] = oly_mean(oly_mul(d, d));
}

static void training_step(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array slope[3];
    oly_call(oly_grad(oly_jit(loss, 4, 1), .argnums = "0, 1, 2"), OLY_IN(in[0], in[1], in[2], in[3]),
             OLY_OUT(slope[0], slope[1], slope[2]));
    for (int k = 0; k < 3; k++)
        out[k] = oly_sub(in[k], oly_mul(0.01, slope[k]));
}

static void attention(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array score = oly_softmax(oly_einsum("bqd,bkd->bqk", in[0], in[1]), -1);
    out[0] = oly_einsum("bqk,bkd->bqd", score, in[2]);
}

static void conv(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_max_pool(oly_relu(oly_conv(in[0], in[1], .padding = "SAME")), .window = "1, 1, 2, 2",
                          .strides = "1, 1, 2, 2");
}

/* -- along dimensions, by value -------------------------------------------------------------------------------------------------- */

static void lines(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_cumsum(in[0], 0);
    out[1] = oly_sort(in[0], 0);
    out[2] = oly_max(in[0], OLY_AXES(0));
}

static void table(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_take(in[0], in[1], 0, NULL);
    out[1] = oly_at_add(in[0], OLY_INDEXES(in[1]), out[0]);
    out[2] = oly_segment_sum(out[0], in[1], 64);
}

static void layouts(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_transpose(in[0]));
    out[1] = oly_concatenate(0, oly_slice(in[0], "1000:"), oly_slice(in[0], ":1000"));
    out[2] = oly_with_sharding_constraint(oly_reshape(in[0], 2048, 8192), oly_named(mesh, "None, x"));
}

static void normalise(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array mean = oly_mean(in[0], OLY_AXES(0), .keepdims = true), centred = oly_sub(in[0], mean);
    out[0] = oly_div(centred, oly_sqrt(oly_mean(oly_mul(centred, centred), OLY_AXES(0), .keepdims = true)));
    out[1] = oly_sum(out[0], OLY_AXES(1));
}

static void accumulate_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const oly_array *weights = user;
    carry[0] = oly_tanh(oly_add(oly_matmul(carry[0], *weights), x[0]));
    y[0] = oly_sum(carry[0]);
}

static void recurrent(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_scan(16, false, accumulate_body, 1, out, 1, &in[1], 1, &out[1], (void *)&in[2]);
}

/* -- all of them ------------------------------------------------------------------------------------------------------------------- */

typedef struct operand {
    const char *spec;
    int rank;
    int64_t shape[4];
    oly_dtype dtype;
} operand;
#define ARRAY(spec, ...)                                                                                               \
    {                                                                                                                  \
        spec, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}, OLY_FLOAT32                           \
    }
#define INDEXES(spec, n)                                                                                               \
    {                                                                                                                  \
        spec, 1, {n}, OLY_INT32                                                                                        \
    }
#define A_NUMBER                                                                                                       \
    {                                                                                                                  \
        "", 0, {0}, OLY_FLOAT32                                                                                        \
    }

typedef struct program {
    const char *name, *mesh;
    oly_function function;
    int n_in, n_out;
    operand in[4];
} program;

static const program programs[] = {
    {"plate_step", "x=4, y=2", plate_step, 1, 1, {ARRAY("x, y", 4096, 4096)}},
    {"plate", "x=4, y=2", plate, 1, 1, {ARRAY("x, y", 4096, 3000)}},
    {"wave", "x=2, y=4", wave, 3, 3, {ARRAY("x, y", 2000, 3000), ARRAY("x, y", 2000, 3000), A_NUMBER}},
    {"source", "x=8", source, 2, 1, {ARRAY("x", 3000000), ARRAY("x", 3000000)}},
    {"matmul", "x=4, y=2", matmul, 2, 1, {ARRAY("x, y", 4096, 4096), ARRAY("y, None", 4096, 2048)}},
    {"matmul_gathered", "x=8", matmul, 2, 1, {ARRAY("x, None", 4096, 4096), ARRAY("x, None", 4096, 2048)}},
    {"chain",
     "x=4, y=2",
     chain,
     3,
     1,
     {ARRAY("y, x", 2048, 4096), ARRAY("x, y", 4096, 512), ARRAY("None, (x,y)", 512, 4096)}},
    {"chain_beside",
     "x=4, y=2",
     chain_beside,
     4,
     2,
     {ARRAY("y, x", 512, 256), ARRAY("x, y", 256, 65), ARRAY("None, (x,y)", 65, 512), ARRAY("x, y", 4096, 4096)}},
    {"training_step",
     "data=4, model=2",
     training_step,
     4,
     3,
     {ARRAY("None, model", 1024, 4096), ARRAY("model", 4096), ARRAY("model, None", 4096, 256),
      ARRAY("data, None", 8192, 1024)}},
    {"attention",
     "data=2, model=4",
     attention,
     3,
     1,
     {ARRAY("data, model", 16, 1024, 64), ARRAY("data, None", 16, 1024, 64), ARRAY("data, model", 16, 1024, 64)}},
    {"conv", "x=8", conv, 2, 1, {ARRAY("None, None, x, None", 8, 16, 512, 512), ARRAY("", 32, 16, 5, 5)}},
    {"lines", "x=8", lines, 1, 3, {ARRAY("x, None", 400000, 4)}},
    {"table", "x=4, y=2", table, 2, 3, {ARRAY("x, y", 50000, 64), INDEXES("(x,y)", 100000)}},
    {"layouts", "x=4, y=2", layouts, 1, 3, {ARRAY("x, y", 4096, 4096)}},
    {"normalise", "x=4, y=2", normalise, 1, 2, {ARRAY("(x,y), None", 100000, 128)}},
    {"recurrent",
     "x=4, y=2",
     recurrent,
     3,
     2,
     {ARRAY("x, y", 1024, 1024), ARRAY("None, x, y", 16, 1024, 1024), ARRAY("y, None", 1024, 1024)}},
};
enum { N_PROGRAMS = sizeof programs / sizeof *programs };

/* Extents above 64 are multiplied by `scale`. */
static oly_fn begin(const program *p, double scale, oly_array *in)
{
    mesh = oly_make_mesh(p->mesh);
    for (int k = 0; k < p->n_in; k++) {
        const operand *o = &p->in[k];
        int64_t shape[4];
        for (int d = 0; d < o->rank; d++)
            shape[d] = o->shape[d] <= 64 ? o->shape[d] : (int64_t)(scale * (double)o->shape[d]) + (scale < 1 ? 64 : 0);
        in[k] = put(oly_zeros_shape(o->dtype, o->rank, shape), o->spec);
    }
    return oly_jit_with(p->function, p->name, p->n_in, p->n_out, (oly_jit_options){.user = NULL});
}

static bool is_expected(const program *p, const char *machine)
{
    oly_array in[4];
    char path[256];
    oly_fn f = begin(p, 1, in);
    FILE *file = check_plan_begin();
    assert_int_equal(oly_explain_as_n(file, OLY_EXPLAIN_JSON, f, p->n_in, in), OLY_OK);
    char *found = check_plan_end(file);
    snprintf(path, sizeof path, "tests/plan/expected/large/%s.%s.json", p->name, machine);
    bool same = check_same_as_file(path, found);
    free(found);
    return same;
}

static void simulate(void)
{
    setenv("OLYMPUS_SIMULATE", "4x2", 1);
    setenv("OLYMPUS_SIMULATE_NODE", "numa:2 l3:1(size=32MB) core:4 l2:1(size=1MB) l1d:1(size=32KB) pu:1", 1);
    setenv("OLYMPUS_NUM_THREADS", "2", 1);
    oly_init(NULL, NULL);
}

static void plans_are_the_expected_ones(void **state)
{
    (void)state;
    int differ = 0;
    simulate();
    for (int k = 0; k < N_PROGRAMS; k++)
        OLY_SCOPE
        {
            differ += !is_expected(&programs[k], "4x2");
        }
    assert_int_equal(oly_finalize(), 0);
    assert_int_equal(differ, 0);
}

static unsigned digest_of(const char *text)
{
    unsigned digest = 2166136261u;
    for (; *text; text++)
        digest = (digest ^ (unsigned char)*text) * 16777619u;
    return digest;
}

/* A line for each size of each program: where plans change with it. */
static void plans_change_with_the_size_where_they_did(void **state)
{
    (void)state;
    char *lines = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&lines, &size);
    simulate();
    for (int k = 0; k < N_PROGRAMS; k++)
        for (double scale = 0.75; scale > 0.001 && programs[k].function != layouts; scale *= 0.75)
            OLY_SCOPE
            {
                oly_array in[4];
                oly_plan_costs costs;
                oly_fn f = begin(&programs[k], scale, in);
                FILE *json = check_plan_begin();
                assert_int_equal(oly_explain_as_n(json, OLY_EXPLAIN_JSON, f, programs[k].n_in, in), OLY_OK);
                char *text = check_plan_end(json);
                assert_int_equal(oly_costs_n(&costs, f, programs[k].n_in, in), OLY_OK);
                fprintf(file, "%s %.4f: %d steps, %d collectives, %lld bytes, %08x\n", programs[k].name, scale,
                        (int)costs.steps, (int)costs.collectives, (long long)costs.wire_bytes, digest_of(text));
                free(text);
            }
    fclose(file);
    bool same = check_same_as_file("tests/plan/expected/large/sizes.txt", lines);
    free(lines);
    assert_int_equal(oly_finalize(), 0);
    assert_true(same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_the_expected_ones),
                                       cmocka_unit_test(plans_change_with_the_size_where_they_did)};
    return CHECK_MAIN(tests);
}
