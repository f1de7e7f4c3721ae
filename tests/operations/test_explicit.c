/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8  Explicit axes: meshes and specs, types while tracing and at run time, values that stay
 * where they are, unreduced values, regions, and errors. The rules of single operations are the oracle's
 * (tests/oracle/types). */
#include "check.h"
#include <olympus.h>
#include <math.h>

static oly_mesh mesh, mixed; /* x=2:explicit, y=4:explicit; the same with y auto */
static bool started;

static int start(void **state)
{
    (void)state;
    if (started) /* a test failed */
        oly_finalize();
    started = true;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    mesh = oly_make_mesh("x=2:explicit, y=4:explicit");
    mixed = oly_make_mesh("x=2:explicit, y=4");
    return oly_device_count() == 8 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    assert_string_equal(oly_last_error(), "");
    started = false;
    return oly_finalize();
}

static void expect_type(int line, oly_array x, const char *wanted)
{
    char type[256];
    if (!x)
        fail_msg("line %d: %s", line, oly_last_error());
    oly_typeof(x, type, sizeof type);
    if (strcmp(type, wanted) != 0)
        fail_msg("line %d: %s instead of %s", line, type, wanted);
}
#define TYPE(x, wanted) expect_type(__LINE__, x, wanted)

static void expect_spec(int line, oly_array x, const char *wanted)
{
    char spec[128];
    oly_sharding s = oly_sharding_of(x);
    oly_spec_str(s, spec, sizeof spec);
    if (s != oly_named(oly_sharding_mesh(s), wanted)) /* equal shardings are one handle */
        fail_msg("line %d: %s instead of %s", line, spec, wanted);
}
#define SPEC(x, wanted) expect_spec(__LINE__, x, wanted)

/* Checks that it failed with this status, and a message that has these parts. */
static void expect_failure(int line, bool failed, oly_status status, const char *const *parts)
{
    if (!failed || oly_last_status() != status)
        fail_msg("line %d: %s instead of %s: %s", line, oly_status_name(oly_last_status()), oly_status_name(status),
                 oly_last_error());
    for (; *parts; parts++)
        if (!strstr(oly_last_error(), *parts))
            fail_msg("line %d: without \"%s\": %s", line, *parts, oly_last_error());
    oly_clear_error();
}
#define REFUSED(call, status, ...) expect_failure(__LINE__, !(call), status, (const char *const[]){__VA_ARGS__, NULL})

static void expect_values(int line, oly_array got, int n, const double *wanted)
{
    float values[256];
    if (!got)
        fail_msg("line %d: %s", line, oly_last_error());
    assert_int_equal(oly_size(got), n);
    oly_array floats = oly_astype(got, OLY_FLOAT32);
    assert_int_equal(oly_process_allgather(floats, values, 4 * (size_t)n), OLY_OK);
    for (int k = 0; k < n; k++)
        if (fabs((double)values[k] - wanted[k]) > 1e-5 * fabs(wanted[k]))
            fail_msg("line %d: element %d is %g, must be %g", line, k, (double)values[k], wanted[k]);
}
#define VALUES(got, ...)                                                                                               \
    expect_values(__LINE__, got, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

/* 0, 1, 2, ... of this shape, placed. */
static oly_array count(const char *spec, int64_t rows, int64_t columns)
{
    return oly_device_put(oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns), oly_named(mesh, spec));
}

/* -- meshes, specs, placement ------------------------------------------------------------------------------------------ */
static void meshes_have_types(void **state)
{
    (void)state;
    char text[160];
    oly_mesh_str(mixed, text, sizeof text);
    assert_string_equal(text, "Mesh('x': 2, 'y': 4, axis_types=(Explicit, Auto))");
    oly_mesh_str(oly_make_mesh("x=2:auto, y=4:auto"), text, sizeof text);
    assert_string_equal(text, "Mesh('x': 2, 'y': 4)");
    oly_mesh one = oly_make_mesh("i=8:explicit");
    oly_mesh_str(one, text, sizeof text);
    assert_string_equal(text, "Mesh('i': 8, axis_types=(Explicit,))");
    assert_ptr_equal(
        oly_mesh_with_types(oly_make_mesh("x=2, y=4"), (oly_axis_type[]){OLY_AXIS_EXPLICIT, OLY_AXIS_AUTO}), mixed);
    assert_ptr_equal(oly_make_mesh("x=2:explicit, y=4:auto"), mixed);
    assert_int_equal(oly_mesh_axis_type(mixed, 0), OLY_AXIS_EXPLICIT);
    assert_int_equal(oly_mesh_axis_type(mixed, 1), OLY_AXIS_AUTO);
    int reversed[8] = {7, 6, 5, 4, 3, 2, 1, 0}, size = 8;
    oly_mesh back = oly_mesh_from_devices(1, (const char *[]){"i"}, &size, reversed);
    oly_mesh typed = oly_mesh_with_types(back, (oly_axis_type[]){OLY_AXIS_EXPLICIT});
    assert_int_equal(oly_device_id(oly_mesh_device(typed, 0)), 7);
    REFUSED(oly_make_mesh("x=2:manual"), OLY_PARSE, "auto or explicit", "column");
    REFUSED(oly_make_mesh("x=2:"), OLY_PARSE, "auto or explicit");
    REFUSED(oly_mesh_with_types(mixed, (oly_axis_type[]){OLY_AXIS_MANUAL, OLY_AXIS_AUTO}), OLY_INVALID, "'x'",
            "oly_shard_map");
}

static void specs_have_sums(void **state)
{
    (void)state;
    char text[160];
    oly_sharding s = oly_named(mesh, "None, y, unreduced={x}");
    oly_spec_str(s, text, sizeof text);
    assert_string_equal(text, "P(None, 'y', unreduced={'x'})");
    assert_ptr_equal(oly_named(mesh, "P(None, y, unreduced=x)"), s);
    oly_spec_str(oly_named(mesh, "reduced={y, x}"), text, sizeof text);
    assert_string_equal(text, "P(reduced={'x', 'y'})");
    REFUSED(oly_named(mesh, "x, unreduced={x}"), OLY_SHARDING, "[duplicate_axis]");
    REFUSED(oly_named(mesh, "unreduced={z}"), OLY_SHARDING, "[unknown_axis]");
    REFUSED(oly_named(mesh, "unreduced={}"), OLY_PARSE, "axis name");
    REFUSED(oly_named(mesh, "unreduced={x"), OLY_PARSE, "'}'");
    REFUSED(oly_named(mixed, "unreduced={y}"), OLY_SHARDING, "Explicit");
}

static void the_context_mesh_gives_specs_a_mesh(void **state)
{
    (void)state;
    REFUSED(oly_P("x"), OLY_STATE, "oly_set_mesh");
    assert_null(oly_set_mesh(mesh));
    assert_ptr_equal(oly_P("x, y"), oly_named(mesh, "x, y"));
    oly_array zeros = oly_zeros(OLY_FLOAT32, 4), numbers = oly_arange_sharded(8, OLY_INT32, oly_P("(x,y)"));
    assert_ptr_equal(oly_sharding_mesh(oly_sharding_of(zeros)), mesh);
    TYPE(numbers, "int32[8@(x,y)]");
    TYPE(oly_full_sharded(oly_operand_int(3), OLY_INT8, oly_P("y"), 1, (int64_t[]){6}), "int8[6@y]");
    VALUES(numbers, 0, 1, 2, 3, 4, 5, 6, 7);
    assert_ptr_equal(oly_set_mesh(NULL), mesh);
}

static void types_tell_shardings(void **state)
{
    (void)state;
    TYPE(count("x, y", 4, 8), "float32[4@x,8@y]");
    TYPE(count("(y,x)", 8, 2), "float32[8@(y,x),2]");
    TYPE(count("", 8, 2), "float32[8,2]");
    TYPE(count("y, reduced={x}", 8, 2), "float32[8@y,2]{R:x}");
    TYPE(oly_device_put(oly_ones(OLY_FLOAT32, 4, 8), oly_named(mixed, "x, y")), "float32[4@x,8]");
    TYPE(oly_ones(OLY_FLOAT32, 4), "float32[4]");
}

/* -- operations --------------------------------------------------------------------------------------------------------- */
static void nothing_moves_unless_asked(void **state)
{
    (void)state;
    oly_array a = count("x, None", 4, 8), b = count("None, y", 4, 8);
    TYPE(oly_add(a, b), "float32[4@x,8@y]");
    SPEC(oly_add(a, b), "P('x', 'y')");
    SPEC(oly_sum(a, .axes = "1"), "P('x',)");
    SPEC(oly_reshard(a, oly_named(mesh, "y, x")), "P('y', 'x')");
    TYPE(oly_reshape_sharded(a, oly_named(mesh, "y"), 8, 4), "float32[8@y,4]");
    TYPE(oly_broadcast_sharded(oly_sum(a, .axes = "0"), oly_named(mesh, "y, x"), 4, 8), "float32[4@y,8@x]");
    TYPE(oly_sum(a, .axes = "0", .out_sharding = oly_named(mesh, "y")), "float32[8@y]");
    oly_array product = oly_matmul(a, oly_transpose(b), .out_sharding = oly_named(mesh, "x"));
    TYPE(product, "float32[4@x,4]");
    VALUES(product, 140, 364, 588, 812, 364, 1100, 1836, 2572, 588, 1836, 3084, 4332, 812, 2572, 4332, 6092);
    REFUSED(oly_add(a, oly_reshard(b, oly_named(mesh, "y"))), OLY_SHARDING, "float32[4@x,8]", "float32[4@y,8]",
            "oly_reshard", "[broadcast_conflict]");
    REFUSED(oly_add(a, oly_reshard(b, oly_named(mesh, "None, x"))), OLY_SHARDING, "float32[4@x,8@x]",
            "[out_duplicate]");
    REFUSED(oly_with_sharding_constraint(a, oly_named(mesh, "y")), OLY_SHARDING, "float32[4@y,8]", "[assert_mismatch]");
    TYPE(oly_with_sharding_constraint(a, oly_named(mesh, "x")), "float32[4@x,8]");
    REFUSED(oly_reshard(a, oly_named(oly_make_mesh("x=8"), "x")), OLY_SHARDING, "no Explicit axis");
    REFUSED(oly_reshard(a, oly_named(mesh, "x, None, y")), OLY_SHARDING, "[spec_rank]");
    REFUSED(oly_reshard(oly_device_put(a, oly_named(mixed, "x")), oly_named(mixed, "x, y")), OLY_SHARDING,
            "[auto_axis]");
}

static void sizes_need_not_divide(void **state)
{
    (void)state;
    oly_array u = oly_device_put(oly_arange(11, OLY_FLOAT32), oly_named(mesh, "y"));
    TYPE(u, "float32[11@y]");
    oly_array inner = oly_add(oly_slice(u, "1:-1"), oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:")));
    TYPE(inner, "float32[9@y]");
    TYPE(oly_update(u, "1:-1", inner), "float32[11@y]");
    VALUES(oly_update(u, "1:-1", inner), 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 10);
    TYPE(oly_slice(u, "3"), "float32[]");
    TYPE(oly_slice(u, ":0"), "float32[0@y]");
}

static void meshes_do_not_mix(void **state)
{
    (void)state;
    oly_array a = count("x", 4, 8), other = oly_device_put(oly_ones(OLY_FLOAT32, 4, 8), oly_named(mixed, "x"));
    oly_array automatic = oly_device_put(oly_ones(OLY_FLOAT32, 4, 8), oly_named(oly_make_mesh("x=2, y=4"), "x"));
    REFUSED(oly_add(a, other), OLY_SHARDING, "[mesh_conflict]", "Explicit, Auto");
    REFUSED(oly_add(a, automatic), OLY_SHARDING, "[mesh_conflict]");
    TYPE(oly_add(a, oly_ones(OLY_FLOAT32, 4, 8)), "float32[4@x,8]"); /* uncommitted arrays adapt */
    TYPE(oly_mul(a, 2), "float32[4@x,8]");
}

static void mixed_axes(void **state)
{
    (void)state;
    oly_array a = oly_device_put(oly_ones(OLY_FLOAT32, 8, 8), oly_named(mixed, "x, y"));
    TYPE(oly_sin(a), "float32[8@x,8]");
    SPEC(oly_sin(a), "P('x', 'y')"); /* the planner keeps the Auto axis */
    SPEC(oly_reshard(a, oly_named(mixed, "None, x")), "P(None, 'x')");
}

/* -- inside functions ---------------------------------------------------------------------------------------------------- */
static void layer(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array h = oly_matmul(in[0], in[1]);
    TYPE(h, "float32[8@x,8@y]");
    out[0] = oly_sigmoid(oly_add(h, in[2]));
    TYPE(out[0], "float32[8@x,8@y]");
    REFUSED(oly_matmul(h, h), OLY_SHARDING, "contracting", "[contract_conflict]");
    REFUSED(oly_set_mesh(NULL), OLY_TRACE, "traced");
}

static void types_are_the_same_while_tracing(void **state)
{
    (void)state;
    oly_array x = count("x", 8, 4), w = count("None, y", 4, 8),
              b = oly_device_put(oly_ones(OLY_FLOAT32, 8), oly_named(mesh, ""));
    oly_array y = NULL;
    oly_fn f = oly_jit(layer, 3, 1);
    assert_int_equal(oly_call(f, OLY_IN(x, w, b), OLY_OUT(y)), OLY_OK);
    TYPE(y, "float32[8@x,8@y]");
    SPEC(y, "P('x', 'y')");
}

static void widen(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(carry[0], *(oly_array *)user);
}

static void loops_keep_types(void **state)
{
    (void)state;
    oly_array a = count("x", 4, 2), carry = oly_zeros(OLY_FLOAT32, 4, 2);
    REFUSED(oly_fori(0, 3, widen, 1, &carry, &a) == OLY_OK, OLY_SHARDING, "float32[4@x,2]", "float32[4,2]",
            "[carry_mismatch]");
    carry = oly_device_put(oly_zeros(OLY_FLOAT32, 4, 2), oly_named(mesh, "x"));
    assert_int_equal(oly_fori(0, 3, widen, 1, &carry, &a), OLY_OK);
    TYPE(carry, "float32[4@x,2]");
    VALUES(carry, 0, 3, 6, 9, 12, 15, 18, 21);
}

static void hand_rows_out(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = *(oly_array *)user;
    y[1] = oly_mul(y[0], carry[0]);
}

static void stacks_are_split_as_what_they_hold(void **state)
{
    (void)state;
    oly_array a = count("x", 4, 2), carry = oly_zeros(OLY_FLOAT32), ones = oly_ones(OLY_FLOAT32, 2), ys[2];
    assert_int_equal(oly_scan(2, true, hand_rows_out, 1, &carry, 1, &ones, 2, ys, &a), OLY_OK);
    TYPE(ys[0], "float32[2,4@x,2]");
    TYPE(ys[1], "float32[2,4@x,2]");
    VALUES(ys[1], 0, 2, 4, 6, 8, 10, 12, 14, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* -- unreduced values ---------------------------------------------------------------------------------------------- */
static void sums_wait(void **state)
{
    (void)state;
    oly_array a = count("x, y", 4, 8);
    oly_array s = oly_sum(a, .axes = "0", .out_sharding = oly_named(mesh, "y, unreduced={x}"));
    TYPE(s, "float32[8@y]{U:x}");
    SPEC(s, "P('y', unreduced={'x'})");
    OLY_FOR_EACH_SHARD(shard, s)
    {
        int id = oly_device_id(shard.device), column = 2 * (id % 4);
        const float *terms = shard.memory;
        for (int k = 0; k < 2; k++) /* the sum of two rows */
            assert_float_equal(terms[k], id < 4 ? 2 * (column + k) + 8 : 2 * (column + k) + 40, 0);
    }
    TYPE(oly_add(s, s), "float32[8@y]{U:x}");
    VALUES(oly_reshard(s, oly_named(mesh, "")), 48, 52, 56, 60, 64, 68, 72, 76);
    VALUES(oly_reshard(oly_add(s, s), oly_named(mesh, "(y,x)")), 96, 104, 112, 120, 128, 136, 144, 152);
    VALUES(oly_reshard(oly_slice(s, "2:5"), oly_named(mesh, "y")), 56, 60, 64);
    float all[8];
    REFUSED(oly_get(s, all, sizeof all) == OLY_OK, OLY_SHARDING, "oly_reshard");
    REFUSED(oly_sin(s), OLY_SHARDING, "[unsupported]", "{U:x}");
    REFUSED(oly_add(s, oly_sum(a, .axes = "0")), OLY_SHARDING, "[unreduced]");
    REFUSED(oly_mul(s, 2), OLY_SHARDING, "[unreduced]");
    REFUSED(oly_sum(a, .axes = "0", .out_sharding = oly_named(mesh, "unreduced={y}")), OLY_SHARDING, "[unreduced]");
}

/* Terms may be split over Auto axes too, which types do not show. */
static void terms_are_cut_further(void **state)
{
    (void)state;
    oly_array x = oly_device_put(oly_reshape(oly_arange(15, OLY_FLOAT32), 5, 3), oly_named(mixed, "y, unreduced={x}"));
    TYPE(x, "float32[5,3]{U:x}");
    SPEC(x, "P('y', unreduced={'x'})");
    TYPE(oly_sum(x, .axes = "0"), "float32[3]{U:x}");
    VALUES(oly_reshard(oly_sum(x, .axes = "0"), oly_named(mixed, "")), 30, 35, 40);
    VALUES(oly_reshard(oly_add(x, x), oly_named(mixed, "x")), 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28);
}

static void products_wait(void **state)
{
    (void)state;
    oly_array a = count("x, y", 2, 8), b = count("y", 8, 2);
    oly_array p = oly_matmul(a, b, .out_sharding = oly_named(mesh, "x, None, unreduced={y}"));
    TYPE(p, "float32[2@x,2]{U:y}");
    VALUES(oly_reshard(p, oly_named(mesh, "x")), 280, 308, 728, 820);
    /* not split evenly, and of another value: the same sum */
    oly_array c = oly_device_put(oly_reshape(oly_arange(9, OLY_FLOAT32), 1, 9), oly_named(mesh, "None, y"));
    oly_array u = oly_sum(c, .out_sharding = oly_named(mesh, "unreduced={y}"));
    TYPE(u, "float32[]{U:y}");
    VALUES(oly_reshard(u, oly_named(mesh, "")), 36);
    VALUES(
        oly_reshard(oly_device_put(oly_arange(4, OLY_FLOAT32), oly_named(mesh, "unreduced={x}")), oly_named(mesh, "")),
        0, 1, 2, 3);
}

/* -- regions ---------------------------------------------------------------------------------------------------------------- */
static void multiply(const oly_array *in, oly_array *out, void *user)
{
    TYPE(in[0], user);
    out[0] = oly_matmul(in[0], in[1]);
}

static void regions_change_the_rules(void **state)
{
    (void)state;
    oly_array a = count("x, y", 2, 4), b = count("y, x", 4, 2), c = NULL;
    REFUSED(oly_matmul(a, b), OLY_SHARDING, "[contract_ambiguous]", ".out_sharding");
    oly_auto_axes(multiply, "float32[2,4]", OLY_IN(a, b), OLY_OUT(c), OLY_SHARDINGS(oly_named(mesh, "None, x")));
    TYPE(c, "float32[2,2@x]");
    VALUES(c, 28, 34, 76, 98);
    oly_mesh plain = oly_make_mesh("x=2, y=4");
    a = oly_device_put(oly_ones(OLY_FLOAT32, 4, 4), oly_named(plain, "x"));
    b = oly_device_put(oly_ones(OLY_FLOAT32, 4, 4), oly_named(plain, ""));
    oly_explicit_axes(multiply, "float32[4@x,4]", OLY_IN(a, b),
                      OLY_SHARDINGS(oly_named(mesh, "x"), oly_named(mesh, "None, y")), OLY_OUT(c));
    TYPE(c, "float32[4,4]");
    assert_ptr_equal(oly_sharding_mesh(oly_sharding_of(c)), plain);
    REFUSED(oly_auto_axes(multiply, NULL, OLY_IN(a, b), OLY_OUT(c), NULL) == OLY_OK, OLY_SHARDING, "NULL");
    REFUSED(oly_auto_axes(multiply, NULL, OLY_IN(a, b), OLY_OUT(c), OLY_SHARDINGS(oly_named(plain, "x"))) == OLY_OK,
            OLY_SHARDING, "Explicit axes");
}

/* A region over another mesh than that of the arguments, or where they have none: results have no Explicit axes, and
 * explanations name the axes of that mesh. */
static void whole_and_back(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_reshard(oly_reshard(in[0], oly_named(mesh, "")), oly_named(mesh, "None, y"));
}
static void through_a_region(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_explicit_axes(whole_and_back, NULL, OLY_IN(in[0]), OLY_SHARDINGS(oly_named(mesh, "y, x")), OLY_OUT(out[0]));
}
static void regions_over_another_mesh(void **state)
{
    (void)state;
    oly_mesh line = oly_make_mesh("x=8");
    oly_array free_one = oly_ones(OLY_FLOAT32, 4, 4), c = NULL, split;
    oly_fn f = oly_jit(through_a_region, 1, 1);
    split = oly_device_put(free_one, oly_named(line, "x"));
    oly_explicit_axes(whole_and_back, NULL, OLY_IN(free_one), OLY_SHARDINGS(oly_named(mesh, "y, x")), OLY_OUT(c));
    TYPE(c, "float32[4,4]");
    VALUES(oly_sum(oly_add(c, split)), 32);
    oly_call(f, OLY_IN(split), OLY_OUT(c));
    VALUES(oly_sum(oly_add(c, split)), 32);
    for (int form = OLY_EXPLAIN_TEXT; form <= OLY_EXPLAIN_DOT; form++) {
        FILE *nowhere = fopen("/dev/null", "w");
        assert_non_null(nowhere);
        oly_explain_as(nowhere, (oly_explain_form)form, f, split);
        fclose(nowhere);
    }
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* A function of uncommitted arrays, which moves some to the mesh: results whose types do not show it are combined with
 * others there. */
static void whole_ones(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array big = oly_reshard(oly_lt(i, -2), oly_named(mesh, ""));
    carry[0] = oly_astype(oly_broadcast_shape(OLY_ARG(big), 2, (int64_t[]){4, 4}), OLY_FLOAT32);
}
static void moves_one(const oly_array *in, oly_array *out, void *user)
{
    oly_array there = oly_reshard(in[0], oly_named(mesh, "")), carry[1] = {there}, slope = NULL;
    oly_fori(0, 3, whole_ones, 1, carry, user);
    oly_gradients(oly_sum(carry[0]), OLY_IN(there), OLY_OUT(slope)); /* does not depend on it */
    out[0] = oly_add(in[0], slope);
}
static void results_stay_on_the_explicit_mesh(void **state)
{
    (void)state;
    oly_array y = oly_apply(oly_jit(moves_one, 1, 1), oly_ones(OLY_FLOAT32, 4, 4));
    VALUES(oly_sum(oly_add(y, count("", 4, 4))), 136);
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* full_like: split as the other array, on its devices. */
static void like(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_ones_like(in[0]);
    TYPE(out[0], "float32[4@x,4]");
}

static void arrays_like_another_lie_as_it_does(void **state)
{
    (void)state;
    oly_array a = count("x", 4, 4), one = NULL;
    TYPE(oly_zeros_like(a), "float32[4@x,4]");
    oly_call(oly_jit(like, 1, 1), OLY_IN(a), OLY_OUT(one));
    TYPE(one, "float32[4@x,4]");
    oly_sharding rows = oly_named(oly_make_mesh("x=2, y=4"), "(x, y)");
    oly_array b = oly_device_put(oly_zeros(OLY_INT32, 16), rows), c = oly_full_like(b, 3);
    assert_ptr_equal(oly_sharding_of(c), rows);
    assert_true(oly_is_committed(c));
    assert_float_equal(oly_item(oly_sum(c)), 48, 0);
    assert_false(oly_is_committed(oly_zeros_like(oly_zeros(OLY_INT32, 16))));
    b = oly_device_put(oly_zeros(OLY_INT32, 3), oly_single_device(oly_get_device(5)));
    assert_ptr_equal(oly_sharding_of(oly_ones_like(b)), oly_sharding_of(b));
}

/* -- the default device --------------------------------------------------------------------------------------------------- */
static void identity(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}

static int device_of(oly_array x)
{
    return oly_device_id(oly_mesh_device(oly_sharding_mesh(oly_sharding_of(x)), 0));
}

static void uncommitted_work_runs_on_the_default_device(void **state)
{
    (void)state;
    oly_array before = oly_ones(OLY_FLOAT32, 3);
    oly_array placed = oly_device_put(oly_ones(OLY_FLOAT32), oly_single_device(oly_get_device(2)));
    assert_null(oly_set_default_device(oly_get_device(5)));
    oly_array made = oly_ones(OLY_FLOAT32, 3), sum = oly_add(before, 1), there = oly_add(placed, 1);
    oly_array host = oly_from_host((float[]){1, 2}, OLY_FLOAT32, 1, (int64_t[]){2}), passed = NULL;
    assert_int_equal(oly_call(oly_jit(identity, 1, 1), OLY_IN(before), OLY_OUT(passed)), OLY_OK);
    const oly_array all[] = {made, sum, host, passed};
    for (int k = 0; k < 4; k++) {
        assert_false(oly_is_committed(all[k]));
        assert_int_equal(device_of(all[k]), 5);
    }
    assert_true(oly_is_committed(there));
    assert_int_equal(device_of(there), 2);
    assert_int_equal(oly_device_id(oly_set_default_device(NULL)), 5);
    oly_array back = oly_add(made, sum); /* uncommitted arrays move freely */
    assert_true(oly_is_fully_addressable(back));
    assert_false(oly_is_committed(back));
    float values[3];
    assert_int_equal(oly_get(back, values, sizeof values), OLY_OK);
    assert_float_equal(values[2], 3, 0);
    VALUES(oly_add(oly_device_put(oly_arange(3, OLY_FLOAT32), oly_named(mesh, "x")), made), 1, 2, 3);
    REFUSED(oly_add(placed, count("x", 4, 2)), OLY_DEVICES, "device [2]", "devices [0,1,2,3,4,5,6,7]");
}

/* Reversals give the same values over Explicit and over Auto axes, however values are placed. */
static void reversing(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    int64_t two[] = {2, 2}, none[] = {0, 0};
    oly_array x = in[0], y = oly_rev(x, 0, 1), line = oly_sum(x, OLY_AXES(1));
    out[0] = oly_flip(x, 0);
    out[1] = oly_slice(x, "::-1, ::-2");
    out[2] = oly_pad_mode(x, "reflect", two, two);
    out[3] = oly_pad_mode(x, "symmetric", none, two);
    out[4] = oly_sub(oly_exp(y), x);
    out[5] = oly_convolve(line, oly_arange(3, OLY_FLOAT32), "same");
    out[6] = oly_update(x, "::-1", oly_mul(x, 2));
}
enum { N_REVERSING = 7 };

static void convolved(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_reshape(in[0], 1, 1, -1), k = oly_reshape(in[1], 1, 1, -1);
    out[0] = oly_sum(oly_mul(oly_conv(x, k, .padding = "SAME"), x));
}

static void check_same(oly_array x, oly_array y)
{
    float got[256], wanted[256];
    assert_true(x && y && oly_size(x) == oly_size(y));
    assert_int_equal(oly_process_allgather(x, got, sizeof(float) * (size_t)oly_size(x)), OLY_OK);
    assert_int_equal(oly_process_allgather(y, wanted, sizeof(float) * (size_t)oly_size(y)), OLY_OK);
    for (int64_t k = 0; k < oly_size(x); k++)
        assert_float_equal(got[k], wanted[k], 1e-5 * fabs((double)wanted[k]));
}

static void reverse_at_once(oly_fn f, oly_array x, oly_array *results)
{
    oly_array *out[N_REVERSING];
    for (int k = 0; k < N_REVERSING; k++)
        out[k] = &results[k];
    assert_int_equal(oly_call_n(f, 1, &x, N_REVERSING, out), OLY_OK);
}

static void reversed_is_reversed(void **state)
{
    (void)state;
    static const char *const meshes[] = {"x=2:explicit, y=4:explicit", "x=2:explicit, y=4", "x=8:explicit",
                                         "x=1:explicit"};
    oly_fn f = oly_jit(reversing, 1, N_REVERSING);
    oly_array x = oly_mul(oly_reshape(oly_arange(24, OLY_FLOAT32), 4, 6), 0.25), wanted[N_REVERSING] = {NULL};
    oly_array line = oly_arange(6, OLY_FLOAT32), three = oly_arange(3, OLY_FLOAT32);
    reverse_at_once(f, x, wanted);
    oly_fn slope = oly_grad(oly_jit(convolved, 2, 1));
    VALUES(oly_flip(line, 0), 5, 4, 3, 2, 1, 0);
    VALUES(oly_apply(slope, line, three), 2, 6, 12, 18, 24, 18);
    for (int m = 0; m < 4; m++)
        for (int s = 0; s < 3; s++) {
            oly_mesh on = oly_make_mesh(meshes[m]);
            oly_array placed = oly_device_put(x, oly_named(on, s == 0   ? ""
                                                               : s == 1 ? "x"
                                                                        : "None, x")),
                      got[2][N_REVERSING] = {{NULL}};
            reversing(&placed, got[0], NULL);
            reverse_at_once(f, placed, got[1]);
            for (int k = 0; k < 2 * N_REVERSING; k++)
                check_same(got[k / N_REVERSING][k % N_REVERSING], wanted[k % N_REVERSING]);
            oly_array there = oly_device_put(line, oly_named(on, "")),
                      weights = oly_device_put(three, oly_named(on, ""));
            VALUES(oly_apply(slope, there, weights), 2, 6, 12, 18, 24, 18);
        }
}

/* Written values adapt where they are not split; indexing with no elements is never ambiguous. The types are JAX's. */
static void what_is_written_adapts(void **state)
{
    (void)state;
    oly_array x = count("x", 8, 8), y = count("x, y", 8, 8), plain = count("", 8, 4), row = count("", 1, 8);
    TYPE(oly_update(x, ":, :4", plain), "float32[8@x,8]");
    TYPE(oly_update(x, ":, 4:", count("x", 8, 4)), "float32[8@x,8]");
    TYPE(oly_update(y, ":", count("", 8, 8)), "float32[8@x,8@y]");
    TYPE(oly_update(y, ":", count("x", 8, 8)), "float32[8@x,8@y]");
    TYPE(oly_update(y, ":", count("None, y", 8, 8)), "float32[8@x,8@y]");
    TYPE(oly_update(x, "3", oly_reshape(row, 8)), "float32[8@x,8]");
    VALUES(
        oly_slice(oly_reshard(oly_update(y, "::2, 1", oly_reshape(count("", 1, 4), 4)), oly_named(mesh, "")), ":3, :3"),
        0, 0, 2, 8, 9, 10, 16, 1, 18);
    REFUSED(oly_update(plain, ":, :4", count("x", 8, 4)), OLY_SHARDING, "[update_mismatch]");
    REFUSED(oly_update(x, ":, :4", count("None, y", 8, 4)), OLY_SHARDING, "[update_mismatch]");
    REFUSED(oly_dynamic_update_slice(x, plain, OLY_INDEXES(0, 0)), OLY_SHARDING, "[update_mismatch]");
    oly_array one = oly_device_put(oly_ones(OLY_FLOAT32, 1, 3, 6), oly_named(mesh, "x"));
    TYPE(oly_min(one, OLY_AXES(2), .keepdims = true), "float32[1@x,3,1]");
    VALUES(oly_sum(one, .axes = "1, 2", .keepdims = true), 18);
    oly_array none = oly_zeros(OLY_INT32, 0), split = oly_device_put(none, oly_named(mesh, "x")),
              whole = oly_device_put(none, oly_named(mesh, ""));
    TYPE(oly_take(x, whole, 0, NULL), "float32[0,8]");
    TYPE(oly_take(x, split, 0, NULL), "float32[0,8]");
    TYPE(oly_take(x, split, 1, NULL), "float32[8,0]");
    TYPE(oly_at_get(x, OLY_INDEXES(whole)), "float32[0,8]");
    TYPE(oly_at_get(y, OLY_INDEXES(split)), "float32[0@x,8@y]");
    TYPE(oly_at_set(x, OLY_INDEXES(split), count("y", 0, 8)), "float32[8@x,8]");
    TYPE(oly_at_add(y, OLY_INDEXES(whole), count("x, y", 0, 8)), "float32[8@x,8@y]");
    VALUES(oly_slice(oly_reshard(oly_at_add(y, OLY_INDEXES(whole), 5), oly_named(mesh, "")), ":2, :2"), 0, 1, 8, 9);
}

/* A batched loop continues for some elements and not for others, whose carries may be split. */
static oly_array is_below(const oly_array *in, void *user)
{
    return oly_lt(in[1], (oly_array)user);
}
static void double_and_count(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
    carry[1] = oly_add(carry[1], 1);
}
static oly_array doubled_carry;
static void loop_for_one(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[2] = {doubled_carry, oly_sub(in[0], in[0])};
    (void)user;
    oly_while(is_below, double_and_count, 2, carry, in[0]);
    out[0] = carry[0];
}
static void batched_loops_keep_split_carries(void **state)
{
    (void)state;
    oly_array y = NULL;
    doubled_carry = count("x", 2, 4);
    oly_vmap(loop_for_one, NULL, OLY_IN(oly_reshape(count("", 1, 3), 3)), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
    TYPE(y, "float32[3,2@x,4]");
    VALUES(oly_sum(oly_reshard(y, oly_named(mesh, "")), OLY_AXES(1, 2)), 28, 56, 112);
}

/* Values marked reduced meet others reduced alike, and numbers, which adapt; a condition need not be marked as its
 * branches are. */
static void reduced_values_meet(void **state)
{
    (void)state;
    oly_array eight = oly_arange(8, OLY_FLOAT32), plate = count("y", 8, 2);
    oly_array line = oly_device_put(eight, oly_named(mesh, "y, reduced={x}")),
              other = oly_device_put(eight, oly_named(mesh, "y"));
    oly_array sum = oly_device_put(oly_sum(eight), oly_named(mesh, "reduced={x}")),
              number = oly_device_put(oly_sum(eight), oly_named(mesh, ""));
    oly_array reduced = count("y, reduced={x}", 8, 2), cases[] = {reduced, reduced};
    TYPE(oly_mul(line, line), "float32[8@y]{R:x}");
    TYPE(oly_mul(sum, number), "float32[]{R:x}");
    TYPE(oly_mul(line, sum), "float32[8@y]{R:x}");
    TYPE(oly_mul(line, number), "float32[8@y]{R:x}");
    TYPE(oly_mul(reduced, 2), "float32[8@y,2]{R:x}");
    REFUSED(oly_mul(line, other), OLY_SHARDING, "operand 1", "[reduced_conflict]");
    REFUSED(oly_mul(other, line), OLY_SHARDING, "operand 0", "[reduced_conflict]");
    REFUSED(oly_mul(other, sum), OLY_SHARDING, "operand 0", "[reduced_conflict]");
    TYPE(oly_where(oly_gt(plate, 3), reduced, reduced), "float32[8@y,2]{R:x}");
    TYPE(oly_where(oly_gt(number, 3), reduced, reduced), "float32[8@y,2]{R:x}");
    TYPE(oly_select_n(oly_gt(plate, 3), 2, cases), "float32[8@y,2]{R:x}");
    REFUSED(oly_where(oly_gt(plate, 3), reduced, plate), OLY_SHARDING, "[select_conflict]");
}

/* Of any rank but 0. */
static void conditions_are_sharded_as_branches(void **state)
{
    (void)state;
    oly_array eight = oly_arange(8, OLY_FLOAT32), plate = count("y", 8, 2);
    oly_array line = oly_device_put(eight, oly_named(mesh, "y")), other = oly_device_put(eight, oly_named(mesh, "x"));
    TYPE(oly_where(oly_gt(line, 3), line, oly_neg(line)), "float32[8@y]");
    REFUSED(oly_where(oly_gt(other, 3), line, oly_neg(line)), OLY_SHARDING, "condition", "[select_conflict]");
    REFUSED(oly_where(oly_gt(line, 3), line, other), OLY_SHARDING, "branches", "[select_conflict]");
    REFUSED(oly_where(oly_gt(count("x", 8, 2), 3), plate, plate), OLY_SHARDING, "condition", "[select_conflict]");
}

/* Two elements over eight devices: the Auto axis does not split a term. */
static void terms_are_not_split_over_auto_axes(void **state)
{
    (void)state;
    for (int n = 2; n < 18; n += 5) {
        oly_array x = oly_reshape(oly_arange(3 * n, OLY_FLOAT32), 3, n);
        x = oly_device_put(x, oly_named(mixed, n % 2 ? "None, (y,x)" : "None, (x,y)"));
        oly_array sum = oly_sum(x, OLY_AXES(1), .out_sharding = oly_named(mixed, "unreduced={x}"));
        oly_array all = oly_reshard(sum, oly_named(mixed, ""));
        for (int k = 0; k < 3; k++)
            assert_float_equal(oly_item(oly_slice(all, k == 0   ? "0"
                                                       : k == 1 ? "1"
                                                                : "2")),
                               k * n * n + n * (n - 1) / 2, 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(meshes_have_types),
        TEST(specs_have_sums),
        TEST(the_context_mesh_gives_specs_a_mesh),
        TEST(types_tell_shardings),
        TEST(nothing_moves_unless_asked),
        TEST(sizes_need_not_divide),
        TEST(meshes_do_not_mix),
        TEST(mixed_axes),
        TEST(types_are_the_same_while_tracing),
        TEST(loops_keep_types),
        TEST(stacks_are_split_as_what_they_hold),
        TEST(sums_wait),
        TEST(terms_are_cut_further),
        TEST(terms_are_not_split_over_auto_axes),
        TEST(products_wait),
        TEST(arrays_like_another_lie_as_it_does),
        TEST(regions_change_the_rules),
        TEST(batched_loops_keep_split_carries),
        TEST(regions_over_another_mesh),
        TEST(results_stay_on_the_explicit_mesh),
        TEST(reversed_is_reversed),
        TEST(what_is_written_adapts),
        TEST(reduced_values_meet),
        TEST(conditions_are_sharded_as_branches),
        TEST(uncommitted_work_runs_on_the_default_device),
    };
    return CHECK_MAIN(tests);
}
