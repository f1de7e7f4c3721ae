/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8  Splits, boxes and shardings: balanced blocks, slices that stay with their array, boxes that
 * tile, shardings that are equal if they place the same elements on the same devices, errors that name the column. */
#include "check_session.h"
#include "layout/layout.h"
#include <inttypes.h>

/* -- splits ------------------------------------------------------------------------------------------------ */

/* n elements over an axis of `parts` devices. */
static oly_split canonical(int parts, int64_t n)
{
    char axes[20];
    snprintf(axes, sizeof axes, "a=%d", parts);
    oly_axis_list list = {.n = 1, .axis = {0}};
    return oly_split_canonical(oly_make_mesh(axes), &list, n);
}

static const char *sizes_of(const oly_split *s, int64_t n)
{
    static char text[200];
    int at = 0;
    text[0] = 0;
    for (int k = 0; k < s->parts; k++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64, k ? " " : "",
                       oly_split_cut(s, n, k + 1) - oly_split_cut(s, n, k));
    return text;
}

static void blocks_differ_by_one_larger_first(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        int parts;
        const char *sizes;
    } cases[] = {{102, 8, "13 13 13 13 13 13 12 12"},
                 {9, 8, "2 1 1 1 1 1 1 1"},
                 {3, 8, "1 1 1 0 0 0 0 0"},
                 {0, 4, "0 0 0 0"},
                 {1, 2, "1 0"},
                 {8, 8, "1 1 1 1 1 1 1 1"},
                 {7, 3, "3 2 2"},
                 {102, 4, "26 26 25 25"},
                 {5, 1, "5"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        oly_split s = canonical(cases[k].parts, cases[k].n);
        assert_string_equal(sizes_of(&s, cases[k].n), cases[k].sizes);
    }
    for (int parts = 1; parts <= 8; parts++)
        for (int64_t n = 0; n < 40; n++) {
            oly_split s = canonical(parts, n);
            for (int k = 0; k < parts; k++)
                assert_int_equal(oly_split_cut(&s, n, k + 1) - oly_split_cut(&s, n, k), n / parts + (k < n % parts));
        }
}

static void sizes_near_the_limit_do_not_overflow(void **state)
{
    (void)state;
    oly_split s = canonical(8, INT64_MAX);
    assert_true(oly_split_cut(&s, INT64_MAX, 7) > INT64_MAX / 8 * 7);
    assert_true(oly_split_cut(&s, INT64_MAX, 8) == INT64_MAX);
    assert_int_equal(oly_split_part_of(&s, INT64_MAX, INT64_MAX - 1), 7);
}

static void the_part_of_an_element_holds_it(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 8; parts++)
        for (int64_t n = 1; n < 30; n++) {
            oly_split s = canonical(parts, n);
            for (int64_t i = 0; i < n; i++) {
                int k = oly_split_part_of(&s, n, i);
                assert_true(oly_split_cut(&s, n, k) <= i && i < oly_split_cut(&s, n, k + 1));
            }
        }
}

/* Elements of x[start::step] are in the part of the element they come from; so are those of a slice of that. */
static void check_slice(const oly_split *base, int64_t n, int64_t from, int64_t step)
{
    oly_split s = oly_split_sliced(base, from, step);
    int64_t left = n > from ? (n - from - 1) / step + 1 : 0;
    for (int64_t i = 0; i < left; i++)
        assert_int_equal(oly_split_part_of(&s, left, i), oly_split_part_of(base, n, from + i * step));
    assert_int_equal(oly_split_cut(&s, left, 0), 0);
    assert_int_equal(oly_split_cut(&s, left, s.parts), left);
    oly_split t = oly_split_sliced(&s, 2, 3);
    int64_t rest = left > 2 ? (left - 3) / 3 + 1 : 0;
    for (int64_t i = 0; i < rest; i++)
        assert_int_equal(oly_split_part_of(&t, rest, i), oly_split_part_of(base, n, from + (2 + 3 * i) * step));
}

static void slices_stay_where_their_array_is(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 8; parts++)
        for (int64_t n = 0; n < 26; n += 1 + n / 8)
            for (int64_t from = 0; from <= n; from++)
                for (int64_t step = 1; step < 6; step++) {
                    oly_split base = canonical(parts, n);
                    check_slice(&base, n, from, step);
                }
    oly_split merged = canonical(4, 30); /* rows of 5 elements, merged: split between rows only */
    merged.unit = 5;
    assert_string_equal(sizes_of(&merged, 30), "10 10 5 5");
    check_slice(&merged, 30, 3, 2);
}

static void embedding_inverts_slicing(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset < 12; offset++) {
        oly_split part = canonical(4, 9), whole = oly_split_embedded(&part, offset);
        int64_t n = offset + 9 + 5;
        for (int64_t i = 0; i < 9; i++)
            assert_int_equal(oly_split_part_of(&whole, n, offset + i), oly_split_part_of(&part, 9, i));
        assert_int_equal(oly_split_cut(&whole, n, 0), 0); /* elements outside belong to the first and the last part */
        assert_int_equal(oly_split_cut(&whole, n, 4), n);
        oly_split back = oly_split_sliced(&whole, offset, 1);
        assert_true(oly_split_equal(&back, &part, 9));
    }
}

static void splits_are_equal_when_their_cuts_are(void **state)
{
    (void)state;
    for (int64_t from = 0; from < 6; from++)
        for (int64_t step = 1; step < 4; step++) {
            oly_split base = canonical(3, 20), s = oly_split_sliced(&base, from, step);
            int64_t n = (20 - from - 1) / step + 1;
            oly_split own = canonical(3, n);
            bool same = true;
            for (int k = 0; k <= 3; k++)
                same = same && oly_split_cut(&s, n, k) == oly_split_cut(&own, n, k);
            assert_int_equal(oly_split_equal(&s, &own, n), same);
        }
    oly_split one = canonical(1, 5), whole = oly_split_whole(5);
    assert_true(oly_split_equal(&one, &whole, 5));
}

/* -- boxes ------------------------------------------------------------------------------------------------- */
static const char *box_text(const oly_box *b)
{
    static char text[200];
    int at = 0;
    text[0] = 0;
    for (int d = 0; d < b->rank; d++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%" PRId64 ":%" PRId64, d ? " " : "", b->lo[d], b->hi[d]);
    return text;
}

/* The table of the specification: an 8x8 array over x=2, y=4, positions 0, 1, 4 and 7. */
static void boxes_are_as_in_the_table(void **state)
{
    (void)state;
    static const char *const cases[][5] = {
        {"x, y", "0:4 0:2", "0:4 2:4", "4:8 0:2", "4:8 6:8"},  {"y, x", "0:2 0:4", "2:4 0:4", "0:2 4:8", "6:8 4:8"},
        {"x", "0:4 0:8", "0:4 0:8", "4:8 0:8", "4:8 0:8"},     {"(x,y)", "0:1 0:8", "1:2 0:8", "4:5 0:8", "7:8 0:8"},
        {"(y,x)", "0:1 0:8", "2:3 0:8", "1:2 0:8", "7:8 0:8"}, {"", "0:8 0:8", "0:8 0:8", "0:8 0:8", "0:8 0:8"}};
    static const int positions[] = {0, 1, 4, 7};
    int64_t shape[] = {8, 8};
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        oly_layout l = oly_layout_canonical(oly_named(mesh, cases[k][0]), 2, shape);
        for (int j = 0; j < 4; j++) {
            oly_box b = oly_layout_box(&l, positions[j]);
            assert_string_equal(box_text(&b), cases[k][1 + j]);
        }
    }
}

/* Every element is on as many devices as there are replicas. */
static void check_tiling(oly_sharding s, int64_t m, int64_t n, int replicas)
{
    int64_t shape[] = {m, n}, begin[2], extent[2];
    oly_layout l = oly_layout_canonical(s, 2, shape);
    int *seen = calloc((size_t)(m * n + 1), sizeof *seen);
    for (int p = 0; p < 8; p++) {
        oly_box b = oly_layout_box(&l, p);
        for (int64_t i = b.lo[0]; i < b.hi[0]; i++)
            for (int64_t j = b.lo[1]; j < b.hi[1]; j++)
                seen[i * n + j]++;
        assert_int_equal(oly_sharding_shard(s, 2, shape, p, begin, extent), OLY_OK);
        oly_box shard = oly_layout_shard(&l, p); /* keeps its extents along the dimension that is not empty */
        for (int d = 0; d < 2; d++) {
            assert_int_equal(begin[d], shard.lo[d]);
            assert_int_equal(extent[d], shard.hi[d] - shard.lo[d]);
        }
        assert_int_equal(oly_box_count(&b), extent[0] * extent[1]);
    }
    for (int64_t i = 0; i < m * n; i++)
        assert_int_equal(seen[i], replicas);
    free(seen);
    assert_true(oly_layout_is_canonical(&l));
}

static void boxes_tile_the_array(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int replicas;
    } cases[] = {{"x, y", 1}, {"y, x", 1}, {"x", 4}, {"None, y", 2}, {"(x,y)", 1}, {"None, (y,x)", 1}, {"", 8}};
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int64_t m = 0; m < 12; m += 1 + m / 4)
            for (int64_t n = 0; n < 12; n += 1 + n / 3)
                check_tiling(oly_named(mesh, cases[k].spec), m, n, cases[k].replicas);
}

static oly_box box2(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (oly_box){.rank = 2, .lo = {a, c}, .hi = {b, d}};
}

static void boxes_intersect_and_contain(void **state)
{
    (void)state;
    oly_box a = box2(0, 4, 2, 6), b = box2(3, 9, 0, 3), c = oly_box_intersect(&a, &b);
    assert_string_equal(box_text(&c), "3:4 2:3");
    assert_true(oly_box_contains(&a, &c) && oly_box_contains(&b, &c));
    assert_false(oly_box_contains(&a, &b));
    oly_box apart = box2(4, 5, 0, 9), none = oly_box_intersect(&a, &apart);
    assert_int_equal(oly_box_count(&none), 0);
    assert_true(none.lo[0] == none.hi[0] && none.lo[1] == none.hi[1]);
    assert_true(oly_box_contains(&b, &none));
    oly_box scalar = {.rank = 0};
    assert_int_equal(oly_box_count(&scalar), 1);
}

/* -- shardings --------------------------------------------------------------------------------------------- */
static void equal_placements_are_equivalent(void **state)
{
    (void)state;
    oly_mesh xy = oly_make_mesh("x=2, y=4"), z = oly_make_mesh("z=8"), one = oly_make_mesh("x=8, e=1");
    int64_t shape[] = {9, 5}, tiny[] = {1, 5}, none[] = {0, 5};
    assert_ptr_equal(oly_named(xy, "x"), oly_named(xy, "x, None"));
    assert_ptr_equal(oly_named(xy, "('x','y')"), oly_named(oly_make_mesh(" x = 2,y=4 "), "P((x, y),)"));
    assert_true(oly_sharding_equivalent(oly_named(xy, "(x,y)"), oly_named(z, "z"), 2, shape));
    assert_false(oly_sharding_equivalent(oly_named(xy, "(y,x)"), oly_named(z, "z"), 2, shape));
    assert_true(oly_sharding_equivalent(oly_named(one, "x, e"), oly_named(z, "z"), 2, shape));
    assert_true(oly_sharding_equivalent(oly_named(xy, ""), oly_named(z, ""), 2, shape));
    assert_false(oly_sharding_equivalent(oly_named(xy, "x"), oly_named(xy, ""), 2, shape));
    assert_true(oly_sharding_equivalent(oly_named(xy, "x"), oly_named(xy, "None, x"), 2, none));
    assert_false(oly_sharding_equivalent(oly_named(xy, "x"), oly_named(xy, ""), 2, tiny));
    assert_false(oly_sharding_equivalent(oly_named(xy, "x"), oly_named(oly_make_mesh("x=2"), "x"), 2, shape));
    oly_mesh reversed = oly_mesh_from_devices(1, (const char *[]){"z"}, (int[]){8}, (int[]){7, 6, 5, 4, 3, 2, 1, 0});
    assert_false(oly_sharding_equivalent(oly_named(reversed, "z"), oly_named(z, "z"), 2, shape));
    assert_true(oly_sharding_is_replicated(oly_named(one, "None, e")));
    assert_false(oly_sharding_is_replicated(oly_named(xy, "None, y")));
}

static void structured_forms_give_the_same_handles(void **state)
{
    (void)state;
    oly_mesh xy = oly_make_mesh("x=2, y=4");
    assert_ptr_equal(xy, oly_mesh_from_devices(2, (const char *[]){"x", "y"}, (int[]){2, 4}, NULL));
    assert_ptr_equal(
        xy, oly_mesh_from_devices(2, (const char *[]){"x", "y"}, (int[]){2, 4}, (int[]){0, 1, 2, 3, 4, 5, 6, 7}));
    const int *axes[] = {(int[]){-1}, (int[]){1, 0, -1}};
    assert_ptr_equal(oly_named(xy, "None, (y,x)"), oly_named_axes(xy, 2, axes));
}

static void meshes_print_as_in_jax(void **state)
{
    (void)state;
    char text[200];
    assert_int_equal(oly_mesh_str(oly_make_mesh("x=2, y=4"), text, sizeof text), 20);
    assert_string_equal(text, "Mesh('x': 2, 'y': 4)");
    assert_int_equal(oly_mesh_str(oly_make_mesh("x=2, y=4"), text, 6), 20);
    assert_string_equal(text, "Mesh(");
}

static const char *spec_text(oly_mesh mesh, const char *spec)
{
    static char text[200];
    oly_spec_str(oly_named(mesh, spec), text, sizeof text);
    return text;
}

static void specs_print_as_in_jax(void **state)
{
    (void)state;
    char text[200];
    oly_mesh mesh =
        oly_make_mesh("s=2, t=2, u=2"); /* names of its own: the first form of a sharding is the one printed */
    assert_string_equal(spec_text(mesh, "s, None"), "P('s', None)");
    assert_string_equal(spec_text(mesh, "t"), "P('t',)");
    assert_string_equal(spec_text(mesh, "(t,s), u"), "P(('t', 's'), 'u')");
    assert_string_equal(spec_text(mesh, ""), "P()");
    oly_sharding_str(oly_named(mesh, "s, None"), text, sizeof text);
    assert_string_equal(text, "NamedSharding(mesh=Mesh('s': 2, 't': 2, 'u': 2), spec=P('s', None))");
    oly_sharding_str(oly_single_device(oly_get_device(3)), text, sizeof text);
    assert_string_equal(text, "SingleDeviceSharding(device=CpuDevice(id=3))");
}

/* -- invalid notations --------------------------------------------------------------------------------------------- */
static void check_error(bool made, const char *text, const char *status, const char *message)
{
    if (made)
        fail_msg("\"%s\" was accepted", text);
    if (strcmp(oly_status_name(oly_last_status()), status) != 0 || !strstr(oly_last_error(), message))
        fail_msg("\"%s\": %s: %s, without \"%s\"", text, oly_status_name(oly_last_status()), oly_last_error(), message);
    if (!strstr(oly_last_error(), "test_layout.c:"))
        fail_msg("\"%s\": no file and line in: %s", text, oly_last_error());
    oly_clear_error();
}

static void meshes_that_cannot_be(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"x", "OLY_PARSE", "expected '=' and a size at the end (column 2)"},
        {"x=", "OLY_PARSE", "column 3"},
        {"x=2 y=4", "OLY_PARSE", "expected ',' at column 5"},
        {"=2", "OLY_PARSE", "column 1"},
        {"x=2,,y=4", "OLY_PARSE", "column 5"},
        {"x=2, 3=y", "OLY_PARSE", "column 6"},
        {"x=two", "OLY_PARSE", "column 3"},
        {"x=99999999999999999999", "OLY_PARSE", "column 3"},
        {"an_axis_name_of_more_than_31_letters=2", "OLY_PARSE", "at most 31"},
        {"x=0", "OLY_INVALID", "at least 1"},
        {"x=-2", "OLY_INVALID", "at least 1"},
        {"x=2, x=4", "OLY_INVALID", "named twice"},
        {"x=4, y=4", "OLY_INVALID", "needs 16 devices, but there are 8"},
        {"x=2000000000, y=2000000000", "OLY_INVALID", "there are 8"},
        {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1", "OLY_INVALID", "at most 12 axes"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_error(oly_make_mesh(cases[k][0]), cases[k][0], cases[k][1], cases[k][2]);
    check_error(oly_make_mesh(NULL), "NULL", "OLY_INVALID", "NULL");
    const char *names[] = {"x"};
    check_error(oly_mesh_from_devices(1, names, (int[]){2}, (int[]){3, 3}), "3, 3", "OLY_INVALID", "twice");
    check_error(oly_mesh_from_devices(1, names, (int[]){2}, (int[]){3, 8}), "3, 8", "OLY_INVALID",
                "device 8 does not exist");
    check_error(oly_mesh_from_devices(1, names, (int[]){2}, (int[]){-1, 0}), "-1", "OLY_INVALID", "device -1");
    check_error(oly_mesh_from_devices(1, names, (int[]){9}, NULL), "9", "OLY_INVALID", "there are 8");
}

static void specs_that_cannot_be(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"x y", "OLY_PARSE", "column 3"},
        {"(x,y", "OLY_PARSE", "column 5"},
        {"x)", "OLY_PARSE", "column 2"},
        {",x", "OLY_PARSE", "column 1"},
        {"x, 2", "OLY_PARSE", "column 4"},
        {"P(x", "OLY_PARSE", "column 4"},
        {"'x", "OLY_PARSE", "column"},
        {"Z", "OLY_SHARDING", "axis 'Z' is not found in Mesh('x': 2, 'y': 4)"},
        {"x, x", "OLY_SHARDING", "duplicate entries for 'x'"},
        {"(y,y)", "OLY_SHARDING", "duplicate entries for 'y'"},
        {"x,None,None,None,None,None,None,None,None,None,None,None,None", "OLY_SHARDING", "more than 12"},
    };
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_error(oly_named(mesh, cases[k][0]), cases[k][0], cases[k][1], cases[k][2]);
    check_error(oly_named(mesh, NULL), "NULL", "OLY_INVALID", "NULL");
    const int *outside[] = {(int[]){2, -1}}, *twice[] = {(int[]){0, 0, -1}};
    check_error(oly_named_axes(mesh, 1, outside), "axis 2", "OLY_SHARDING", "2");
    check_error(oly_named_axes(mesh, 1, twice), "axis 0 twice", "OLY_SHARDING", "duplicate");
    check_error(oly_named_axes(mesh, 13, outside), "13 dimensions", "OLY_SHARDING", "0 to 12");
}

static void shards_that_cannot_be(void **state)
{
    (void)state;
    int64_t shape[] = {4}, begin[8], extent[8];
    oly_sharding s = oly_named(oly_make_mesh("x=2, y=4"), "x, y");
    assert_int_equal(oly_sharding_shard(s, 1, shape, 0, begin, extent), OLY_SHARDING);
    assert_non_null(strstr(oly_last_error(), "2 entries, but the array has 1 dimension"));
    oly_clear_error();
    assert_int_equal(oly_sharding_shard(oly_named(oly_make_mesh("x=2"), "x"), 1, shape, 2, begin, extent), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "position 2"));
    oly_clear_error();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(blocks_differ_by_one_larger_first, check_start, check_finish),
    cmocka_unit_test_setup_teardown(sizes_near_the_limit_do_not_overflow, check_start, check_finish),
    cmocka_unit_test_setup_teardown(the_part_of_an_element_holds_it, check_start, check_finish),
    cmocka_unit_test_setup_teardown(slices_stay_where_their_array_is, check_start, check_finish),
    cmocka_unit_test_setup_teardown(embedding_inverts_slicing, check_start, check_finish),
    cmocka_unit_test_setup_teardown(splits_are_equal_when_their_cuts_are, check_start, check_finish),
    cmocka_unit_test_setup_teardown(boxes_are_as_in_the_table, check_start, check_finish),
    cmocka_unit_test_setup_teardown(boxes_tile_the_array, check_start, check_finish),
    cmocka_unit_test_setup_teardown(boxes_intersect_and_contain, check_start, check_finish),
    cmocka_unit_test_setup_teardown(equal_placements_are_equivalent, check_start, check_finish),
    cmocka_unit_test_setup_teardown(structured_forms_give_the_same_handles, check_start, check_finish),
    cmocka_unit_test_setup_teardown(meshes_print_as_in_jax, check_start, check_finish),
    cmocka_unit_test_setup_teardown(specs_print_as_in_jax, check_start, check_finish),
    cmocka_unit_test_setup_teardown(meshes_that_cannot_be, check_start, check_finish),
    cmocka_unit_test_setup_teardown(specs_that_cannot_be, check_start, check_finish),
    cmocka_unit_test_setup_teardown(shards_that_cannot_be, check_start, check_finish),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
