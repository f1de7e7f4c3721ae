/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  The notations of products, einsum, convolutions and windows, and errors of bad parameters. */
#include "contract_cases.h"

/* -- bad parameters ---- */

static void bad_parameters(void **state)
{
    (void)state;
    OLY_SCOPE
    {
        oly_array a = oly_ones(OLY_FLOAT32, 2, 3), b = oly_ones(OLY_FLOAT32, 3, 4), v = oly_ones(OLY_FLOAT32, 3);
        oly_array x = oly_ones(OLY_FLOAT32, 1, 2, 8), k = oly_ones(OLY_FLOAT32, 4, 2, 3),
                  t = oly_ones(OLY_BOOL, 1, 2, 8);
        CHECK_REFUSED(oly_einsum("ij,jk-ik", a, b), OLY_PARSE, "column 6");
        CHECK_REFUSED(oly_einsum("ij,jk->il", a, b), OLY_PARSE, "index l");
        CHECK_REFUSED(oly_einsum("ij,jk->ii", a, b), OLY_PARSE, "twice");
        CHECK_REFUSED(oly_einsum("ij,jk", a), OLY_PARSE, "column 4");
        CHECK_REFUSED(oly_einsum("ij", a, b), OLY_PARSE, "1 operand, 2 are given");
        CHECK_REFUSED(oly_einsum("ijk,jk", a, b), OLY_SHAPE, "3 indices");
        CHECK_REFUSED(oly_einsum("ij,ij", a, b), OLY_SHAPE, "index i has size 3");
        CHECK_REFUSED(oly_einsum("ii", a), OLY_SHAPE, "diagonal");
        CHECK_REFUSED(oly_einsum("i.j,jk", a, b), OLY_PARSE, "\"...\"");
        CHECK_REFUSED(oly_einsum("i...j...", a), OLY_PARSE, "only one");
        CHECK_REFUSED(oly_einsum("i1,jk", a, b), OLY_SHAPE, "1 indices");
        CHECK_REFUSED(oly_einsum("ij->ij junk", a), OLY_PARSE, "junk");
        CHECK_REFUSED(oly_dot_general(a, b, .contracting = "1"), OLY_PARSE, "second operand");
        CHECK_REFUSED(oly_dot_general(a, b, .contracting = "1; 0, 1"), OLY_SHAPE, "pairs");
        CHECK_REFUSED(oly_dot_general(a, b, .contracting = "0; 0"), OLY_SHAPE, "equal sizes");
        CHECK_REFUSED(oly_dot_general(a, b, .contracting = "1; 0", .batch = "1; 1"), OLY_SHAPE, "twice");
        CHECK_REFUSED(oly_dot_general(a, b, .contracting = "2; 0"), OLY_SHAPE, "axis 2");
        CHECK_REFUSED(oly_tensordot(a, v, 2), OLY_INVALID, "0 to 1");
        CHECK_REFUSED(oly_inner(a, b), OLY_SHAPE, "equal sizes");
        CHECK_REFUSED(oly_vdot(a, b), OLY_SHAPE, "6 and 12 elements");
        CHECK_REFUSED(oly_conv(x, oly_ones(OLY_FLOAT32, 4, 3, 3)), OLY_SHAPE, "features");
        CHECK_REFUSED(oly_conv(x, v), OLY_SHAPE, "both must");
        CHECK_REFUSED(oly_conv(x, k, .strides = "0"), OLY_INVALID, "stride");
        CHECK_REFUSED(oly_conv(x, k, .strides = "1, 1"), OLY_SHAPE, "strides: 2 entries");
        CHECK_REFUSED(oly_conv(x, k, .padding = "(1, 2"), OLY_PARSE, "\")\"");
        CHECK_REFUSED(oly_conv(x, k, .padding = "ALL"), OLY_PARSE, "SAME");
        CHECK_REFUSED(oly_conv(x, k, .padding = "-9"), OLY_SHAPE, "removes more");
        CHECK_REFUSED(oly_conv(x, k, .padding = "SAME", .lhs_dilation = "2"), OLY_INVALID, "numbers");
        CHECK_REFUSED(oly_conv(x, k, .feature_group_count = 2), OLY_SHAPE, "features");
        CHECK_REFUSED(oly_conv(x, k, .dimension_numbers = "NWC,WIO"), OLY_PARSE, "\"->\"");
        CHECK_REFUSED(oly_conv(x, k, .dimension_numbers = "NWW,WIO->NWC"), OLY_PARSE, "twice");
        CHECK_REFUSED(oly_conv(x, k, .dimension_numbers = "NCW,OIH->NCW"), OLY_PARSE, "'H'");
        CHECK_REFUSED(oly_conv(t, t), OLY_DTYPE, "number type");
        CHECK_REFUSED(oly_convolve(v, v, "half"), OLY_INVALID, "full");
        CHECK_REFUSED(oly_convolve(a, v, "full"), OLY_SHAPE, "one dimension");
        CHECK_REFUSED(oly_reduce_window(a, "mean", .window = "2"), OLY_INVALID, "mean");
        CHECK_REFUSED(oly_max_pool(a, .window = "2, 2, 2"), OLY_SHAPE, "fewer");
        oly_array none = NULL;
        assert_null(oly_conv(none, k));
        assert_null(oly_einsum("i", none));
        assert_null(oly_dot_general(none, a));
        assert_null(oly_max_pool(none, .window = "1"));
        oly_clear_error();
    }
}

/* -- the notations ---- */
static void notations(void **state)
{
    (void)state;
    OLY_SCOPE
    {
        char text[64];
        oly_array x = oly_ones(OLY_FLOAT32, 2, 9, 7, 3), k = oly_ones(OLY_FLOAT32, 3, 2, 3, 5);
        oly_array y = oly_conv(x, k, .dimension_numbers = "NHWC,HWIO->NHWC", .strides = "2, 1", .padding = "SAME");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,5,7,5]");
        y = oly_max_pool(x, .window = "2, 2, 1", .strides = "2, 2, 1");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,4,3,3]");
        y = oly_avg_pool(x, .window = "3, 3, 1", .padding = "1, (0, 2), 0");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,9,7,3]");
        y = oly_correlate(oly_arange(5, OLY_INT32), oly_ones(OLY_INT32, 2), "valid");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[4]");
        oly_sharding s = oly_named(contract_mesh, "y, x");
        y = oly_einsum_options("ij,jk", (.out_sharding = s), oly_ones(OLY_FLOAT32, 8, 3), oly_ones(OLY_FLOAT32, 3, 6));
        assert_true(oly_sharding_of(y) == s);
        y = oly_einsum("...ij,...jk", oly_ones(OLY_FLOAT32, 4, 1, 2, 3), oly_ones(OLY_FLOAT32, 5, 3, 2));
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[4,5,2,2]");
        oly_typeof(oly_einsum("ba", oly_ones(OLY_FLOAT32, 2, 3)), text, sizeof text);
        assert_string_equal(text, "float32[3,2]");
        oly_typeof(oly_tensordot(oly_ones(OLY_FLOAT32, 2, 3, 4), oly_ones(OLY_FLOAT32, 3, 4, 5), 2), text, sizeof text);
        assert_string_equal(text, "float32[2,5]");
        oly_typeof(oly_vdot(x, x, .preferred_element_type = OLY_FLOAT64), text, sizeof text);
        assert_string_equal(text, "float64[]");
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, contract_start, check_finish)
static const struct CMUnitTest tests[] = {TEST(bad_parameters), TEST(notations)};

int main(void)
{
    return CHECK_MAIN(tests);
}
