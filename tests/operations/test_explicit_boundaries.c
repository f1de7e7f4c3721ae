/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Explicit axes across boundaries: moves to another mesh, scans, derivatives of requested shardings, partly manual functions.
 * Types and values as in JAX. */
#include "check_session.h"

static oly_mesh mesh;

static oly_sharding at(const char *spec)
{
    return oly_named(mesh, spec);
}

/* Numbers of this shape, placed. */
static oly_array numbers(const char *spec, int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    oly_array all = oly_sin(oly_mul(oly_arange(n, OLY_FLOAT32), 0.7));
    return oly_device_put(oly_reshape_shape(all, rank, shape), at(spec));
}
#define NUMBERS(spec, ...) numbers(spec, OLY_EXTENTS(__VA_ARGS__))

static void begin(const char *axes)
{
    check_begin();
    mesh = oly_make_mesh(axes);
}

#define F(name) static void name(const oly_array *in, oly_array *out, void *user)

static void expect_text_of(int line, oly_array x, const char *wanted)
{
    char type[256];
    if (!x)
        fail_msg("line %d: %s", line, oly_last_error());
    oly_typeof(x, type, sizeof type);
    if (strcmp(type, wanted) != 0)
        fail_msg("line %d: %s instead of %s", line, type, wanted);
}
#define TYPE(wanted, x) expect_text_of(__LINE__, x, wanted)

/* Over axes of other names and sizes, of which the old mesh may not have as many. */
static void arrays_move_to_another_mesh(void **state)
{
    (void)state;
    begin("X=2:explicit, Y=4:explicit");
    oly_mesh other = oly_make_mesh("a=2:explicit, b=2:explicit, c=2:explicit");
    oly_array x = NUMBERS("X, Y", 8, 16), moved = oly_reshard(x, oly_named(other, "a, (b, c)"));
    TYPE("float32[8@b,16]", oly_reshard(x, oly_named(other, "b")));
    TYPE("float32[8@c,16]", oly_reshard(x, oly_named(other, "c")));
    TYPE("float32[8@a,16@(b,c)]", moved);
    TYPE("float32[8@a,16@(b,c)]", oly_add(moved, oly_reshard(x, oly_named(other, "a, (b, c)"))));
    OLY_FOR_EACH_SHARD(s, moved)
    {
        assert_int_equal(s.extent[0], 4);
        assert_int_equal(s.extent[1], 4);
    }
    float got[128], wanted[128];
    assert_int_equal(oly_process_allgather(moved, got, sizeof got), OLY_OK);
    assert_int_equal(oly_process_allgather(x, wanted, sizeof wanted), OLY_OK);
    assert_memory_equal(got, wanted, sizeof got);
    check_end();
}

static void add_up(oly_array *c, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    y[0] = c[0] = oly_add(c[0], x[0]);
}

static void scans_do_not_go_along_split_dimensions(void **state)
{
    (void)state;
    begin("X=2:explicit, Y=4:explicit");
    oly_array x = NUMBERS("X", 4, 8), c = oly_zeros(OLY_FLOAT32, 8), y = NULL;
    assert_int_equal(oly_scan(4, false, add_up, 1, &c, 1, &x, 1, &y, NULL), OLY_SHARDING);
    assert_non_null(strstr(oly_last_error(), "[scan_split]"));
    oly_clear_error();
    check_end();
}

F(some_rows)
{
    (void)user;
    int32_t rows[] = {1, 3, 3};
    out[0] = oly_at_get(in[0], OLY_INDEXES(oly_from_host(rows, OLY_INT32, 1, (int64_t[]){3})),
                        .out_sharding = at("None, Y"));
}
F(sum_of_some_rows)
{
    some_rows(in, out, user);
    out[0] = oly_sum(oly_mul(out[0], oly_sin(out[0])));
}

/* Rows of a dimension that is split are read where the program says, also by derivatives of derivatives. */
static void derivatives_keep_requested_shardings(void **state)
{
    (void)state;
    begin("X=2:explicit, Y=4:explicit");
    oly_array x = NUMBERS("X, Y", 8, 16), y = NULL, slope = NULL;
    oly_fn gradient = oly_grad(oly_jit(sum_of_some_rows, 1, 1));
    oly_call(oly_jvp(oly_jit(some_rows, 1, 1)), OLY_IN(x, x), OLY_OUT(y, slope));
    TYPE("float32[3,16@Y]", slope);
    slope = NULL;
    oly_call(oly_jvp(gradient), OLY_IN(x, x), OLY_OUT(y, slope));
    TYPE("float32[8@X,16@Y]", slope);
    check_end();
}

F(doubled)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

/* A dimension that both an outer Explicit axis and the manual one split. */
static void manual_and_explicit_axes_may_meet(void **state)
{
    (void)state;
    begin("a=2:explicit, b=2:explicit, c=2:explicit");
    oly_array x = NUMBERS("c", 8, 8), y = NULL;
    float got[128], given[64];
    oly_shard_map_with(doubled, NULL, mesh, OLY_MANUAL(.axis_names = "a"), OLY_IN(x), OLY_SPECS(""), OLY_OUT(y),
                       OLY_SPECS("a"));
    TYPE("float32[16@(a,c),8]", y);
    assert_int_equal(oly_process_allgather(y, got, sizeof got), OLY_OK);
    assert_int_equal(oly_process_allgather(x, given, sizeof given), OLY_OK);
    for (int k = 0; k < 128; k++)
        assert_true(got[k] == 2 * given[k % 64]);
    check_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_move_to_another_mesh),
        cmocka_unit_test(scans_do_not_go_along_split_dimensions),
        cmocka_unit_test(derivatives_keep_requested_shardings),
        cmocka_unit_test(manual_and_explicit_axes_may_meet),
    };
    return CHECK_MAIN(tests);
}
