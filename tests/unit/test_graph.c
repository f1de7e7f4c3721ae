/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Compositions: promotion as in JAX, and the type or message of each. */
#include "check_graph.h"
#include <math.h>

#ifndef OLY_SOURCE_DIR
#define OLY_SOURCE_DIR "."
#endif

/* -- element types -------------------------------------------------------------------------------------- */
static void table_rows_have_sizes_and_names(void **state)
{
    (void)state;
    assert_string_equal(oly_dtype_name(OLY_FLOAT32), "float32");
    assert_string_equal(oly_dtype_name(OLY_N_DTYPES), "unknown");
    assert_int_equal(oly_dtype_size(OLY_BOOL), 1);
    assert_int_equal(oly_dtype_size(OLY_UINT32), 4);
    assert_int_equal(oly_dtype_size(OLY_FLOAT64), 8);
    assert_int_equal(oly_dtype_kind(OLY_UINT32), OLY_KIND_INTEGER);
}

static void promotion_is_symmetric_and_as_written(void **state)
{
    (void)state;
    /* bool, i8 i16 i32 i64 (a s i l), u8 to u64 (A S I L), f16 bf16 f32 f64, c64 c128. 8-bit floats: test_float8.c */
    static const oly_dtype types[] = {OLY_BOOL,     OLY_INT8,    OLY_INT16,   OLY_INT32,     OLY_INT64,
                                      OLY_UINT8,    OLY_UINT16,  OLY_UINT32,  OLY_UINT64,    OLY_FLOAT16,
                                      OLY_BFLOAT16, OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX64, OLY_COMPLEX128};
    static const char letters[] = "basilASILhBfdcC";
    static const char *const expected[] = {"basilASILhBfdcC", "aasilsildhBfdcC", "sssilsildhBfdcC", "iiiiliildhBfdcC",
                                           "lllllllldhBfdcC", "AssilASILhBfdcC", "SiiilSSILhBfdcC", "IllllIIILhBfdcC",
                                           "LddddLLLLhBfdcC", "hhhhhhhhhhffdcC", "BBBBBBBBBfBfdcC", "ffffffffffffdcC",
                                           "dddddddddddddCC", "ccccccccccccCcC", "CCCCCCCCCCCCCCC"};
    for (int wide = 0; wide < 2; wide++) {
        oly_enable_x64(wide);
        for (int a = 0; letters[a]; a++)
            for (int b = 0; letters[b]; b++) {
                /* uint32 and a narrower signed type: int64 is too wide for the narrow mode */
                bool beyond = expected[a][b] == 'l' && types[a] != OLY_INT64 && types[b] != OLY_INT64;
                char meet = beyond && !wide ? 'i' : expected[a][b];
                assert_int_equal(oly_promote_types(types[a], types[b]), types[strchr(letters, meet) - letters]);
            }
    }
    oly_enable_x64(false);
}

static oly_dtype dtype_of_word(const char *word)
{
    return dtype_named(word, strlen(word));
}

/* Type of a C number or bool in a promotion. */
static oly_type number_type(const char *word)
{
    if (!strcmp(word, "bool"))
        return (oly_type){.dtype = OLY_BOOL};
    return (oly_type){.dtype = !strcmp(word, "int")     ? oly_default_int()
                               : !strcmp(word, "float") ? oly_default_float()
                                                        : oly_default_complex(),
                      .weak = true};
}

/* Checks the lines of one file; returns how many there are. */
static int check_promote_file(const char *family, bool wide)
{
    char path[500], line[200], a[20], b[20], result[20];
    snprintf(path, sizeof path, "%s/tests/oracle/%s/promote.txt", OLY_SOURCE_DIR, family);
    FILE *file = fopen(path, "r");
    int checked = 0;
    if (!file)
        fail_msg("cannot open %s", path);
    oly_enable_x64(wide);
    while (fgets(line, sizeof line, file)) {
        bool weak = !strncmp(line, "weak ", 5), ignored;
        if (line[0] == '#' || sscanf(line, "%*s %19s %19s %19s", a, b, result) != 3)
            continue;
        oly_type x = {.dtype = dtype_of_word(a)}, y = weak ? number_type(b) : (oly_type){.dtype = dtype_of_word(b)};
        oly_dtype want = dtype_of_word(result);
        assert_true(x.dtype < OLY_N_DTYPES && y.dtype < OLY_N_DTYPES && want < OLY_N_DTYPES);
        if (oly_promote(&x, &y, &ignored) != want || oly_promote(&y, &x, &ignored) != want)
            fail_msg("%s: %s", path, line);
        checked++;
    }
    oly_enable_x64(false);
    fclose(file);
    return checked;
}

static void promotion_agrees_with_the_oracle(void **state)
{
    (void)state;
    assert_int_equal(check_promote_file("ops", false), 55);
    assert_int_equal(check_promote_file("ops64", true), 90);
}

static void weak_numbers_give_way(void **state)
{
    (void)state;
    /* clang-format off */
    static const char *const cases[][2] = {
        {"i32[3] 1", "int32[3]"}, {"i32[3] 1.5", "~float32[3]"}, {"u32[3] -5", "uint32[3]"},
        {"i64[3] 1", "int64[3]"}, {"i64[3] 1.5", "~float64[3]"}, {"f32[3] 1", "float32[3]"},
        {"f64[3] 1.5", "float64[3]"}, {"u32[3] 1.5", "~float32[3]"}, {"bool[3] 1", "~int32[3]"},
        {"bool[3] 1.5", "~float32[3]"}, {"bool[3] true", "bool[3]"}, {"i32[3] true", "int32[3]"},
        {"1 2", "~int32[]"}, {"1 2.5", "~float32[]"}, {"~f32[3] f32[3]", "float32[3]"},
        {"~f32[3] i32[3]", "~float32[3]"}, {"~i32[3] u32[3]", "uint32[3]"}, {"1.5 i32[3]", "~float32[3]"},
        {"~f64[3] f32[3]", "float32[3]"}, {"i32[2] u32[2]", "int32[2]"}, {"i32[2] f32[2]", "float32[2]"},
        {"bf16[2] 1.5", "bfloat16[2]"}, {"f16[2] bf16[2]", "float32[2]"}, {"u8[2] i8[2]", "int16[2]"},
        {"c64[2] 1", "complex64[2]"}, {"c64[2] f64[2]", "complex128[2]"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(of_op(oly_compose_binary, OLY_OP_add, cases[k][0]), cases[k][1]);
}

static int count_ops(oly_op op)
{
    int n = 0;
    for (int k = 0; k < g->n_nodes; k++)
        n += g->nodes[k]->op == op;
    return n;
}

static void numbers_are_converted_while_building(void **state)
{
    (void)state;
    of_op(oly_compose_binary, OLY_OP_mul, "0.1 f64[3]");
    assert_int_equal(count_ops(OLY_OP_convert), 0);
    const oly_node *constant = last->in[0]->in[0]; /* through the broadcast */
    assert_int_equal(constant->op, OLY_OP_constant);
    assert_int_equal(constant->type.dtype, OLY_FLOAT64);
    assert_true(constant->params.value.f == 0.1); /* not rounded to float32 in between */
}

static void folded_values_wrap_truncate_and_saturate(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *number;
        oly_dtype to;
        int64_t value;
    } cases[] = {
        {"5000000000", OLY_INT32, 705032704}, {"5000000000", OLY_INT64, 5000000000},
        {"-1", OLY_UINT32, 4294967295}, {"-2.7", OLY_INT32, -2}, {"-2.7", OLY_UINT32, 0},
        {"100000000000000000000.0", OLY_INT32, INT32_MAX}, {"100000000000000000000.0", OLY_INT64, INT64_MAX},
        {"100000000000000000000.0", OLY_UINT32, UINT32_MAX}, {"-100000000000000000000.0", OLY_INT64, INT64_MIN},
        {"1000000.0", OLY_INT8, INT8_MAX}, {"-1000000.0", OLY_INT8, INT8_MIN}, {"127.9", OLY_INT8, INT8_MAX},
        {"128.0", OLY_INT8, INT8_MAX}, {"-129.0", OLY_INT8, INT8_MIN}, {"1000000.0", OLY_INT16, INT16_MAX},
        {"-1000000.0", OLY_INT16, INT16_MIN}, {"1000000.0", OLY_UINT8, UINT8_MAX}, {"1000000.0", OLY_UINT16, UINT16_MAX},
        {"-100000000000000000000.0", OLY_INT32, INT32_MIN}, {"0.5", OLY_BOOL, 1}, {"256", OLY_BOOL, 1}, {"0", OLY_BOOL, 0}
    };
    /* clang-format on */
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    for (size_t k = 0; k < COUNT(cases); k++) {
        recipe.params.dtype = cases[k].to;
        outcome(oly_compose_convert, &recipe, cases[k].number);
        assert_int_equal(last->op, OLY_OP_constant);
        assert_int_equal(last->params.value.i, cases[k].value);
    }
    oly_node *nan = number(true, NAN);
    recipe.params.dtype = OLY_INT32;
    assert_int_equal(oly_compose_convert(g, 1, &nan, &recipe, &last), OLY_OK);
    assert_int_equal(last->params.value.i, 0);
}

/* -- elementwise ---------------------------------------------------------------------------------------- */
static void elementwise_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        oly_compose *compose;
        oly_op op;
        const char *operands, *expected;
    } cases[] = {
        {oly_compose_unary, OLY_OP_neg, "i32[0,3]", "int32[0,3]"},
        {oly_compose_unary, OLY_OP_abs, "bool[2]", "bool[2]"},
        {oly_compose_unary, OLY_OP_logical_not, "f32[2]", "bool[2]"},
        {oly_compose_unary, OLY_OP_neg, "bool[2]", "OLY_DTYPE: neg of bool[2] is not defined"},
        {oly_compose_unary, OLY_OP_sign, "bool[2]", "OLY_DTYPE: sign of bool[2]"},
        {oly_compose_unary, OLY_OP_abs, "c64[2]", "float32[2]"},
        {oly_compose_unary, OLY_OP_conj, "f32[2]", "OLY_DTYPE: conj of float32[2] is not defined: it takes complex numbers"},
        {oly_compose_binary, OLY_OP_lt, "c64[2] c64[2]", "bool[2]"},
        {oly_compose_complex, OLY_OP_complex, "i32[2] f16[3,1]", "complex64[3,2]"},
        {oly_compose_complex, OLY_OP_complex, "c64[2] f32[2]", "OLY_DTYPE: the parts of complex numbers"},
        {oly_compose_part, OLY_OP_imag, "i32[2]", "int32[2]"},
        {oly_compose_part, OLY_OP_imag, "c128[2]", "float64[2]"},
        {oly_compose_floating, OLY_OP_sin, "bf16[2]", "bfloat16[2]"},
        {oly_compose_floating, OLY_OP_sin, "i32[2]", "float32[2]"},
        {oly_compose_floating, OLY_OP_sin, "i64[2]", "float64[2]"},
        {oly_compose_floating, OLY_OP_exp, "bool[2]", "float32[2]"},
        {oly_compose_floating, OLY_OP_exp, "f64[2]", "float64[2]"},
        {oly_compose_floating, OLY_OP_sqrt, "2", "~float32[]"},
        {oly_compose_binary, OLY_OP_add, "f32[4,8] f32[8]", "float32[4,8]"},
        {oly_compose_binary, OLY_OP_add, "f32[4,1] f32[1,8]", "float32[4,8]"},
        {oly_compose_binary, OLY_OP_add, "f32[1] f32[0]", "float32[0]"},
        {oly_compose_binary, OLY_OP_add, "f32[4,8] f32[4,7]",
         "OLY_SHAPE: float32[4,8] and float32[4,7] differ along dimension 1 (8 and 7); sizes must be equal or "
          "1 to broadcast"},
        {oly_compose_binary, OLY_OP_add, "f32[4,8] f32[7]",
         "OLY_SHAPE: float32[4,8] and float32[7] differ along dimension 1 of the result (8 and 7)"},
        {oly_compose_binary, OLY_OP_add, "f32[3] f32[0]",
         "OLY_SHAPE: float32[3] and float32[0] differ along dimension 0"},
        {oly_compose_binary, OLY_OP_sub, "bool[2] bool[2]", "OLY_DTYPE: sub of bool[2]"},
        {oly_compose_binary, OLY_OP_pow, "i32[2] 2", "int32[2]"},
        {oly_compose_binary, OLY_OP_pow, "bool[2] bool[2]", "OLY_DTYPE: pow of bool[2]"},
        {oly_compose_binary, OLY_OP_lt, "i32[2] 0.5", "bool[2]"},
        {oly_compose_binary, OLY_OP_eq, "bool[2] bool[2]", "bool[2]"},
        {oly_compose_divide, OLY_OP_div, "i32[2] 2", "float32[2]"},
        {oly_compose_divide, OLY_OP_div, "i64[2] i32[2]", "float64[2]"},
        {oly_compose_divide, OLY_OP_div, "1 2", "~float32[]"},
        {oly_compose_divide, OLY_OP_div, "bool[2] bool[2]", "float32[2]"},
        {oly_compose_relu, OLY_OP_max, "f32[2]", "float32[2]"},
        {oly_compose_relu, OLY_OP_max, "bool[2]", "~int32[2]"},
        {oly_compose_where, OLY_OP_select, "bool[4,1] f32[3] 0", "float32[4,3]"},
        {oly_compose_where, OLY_OP_select, "i32[2] 1 2", "~int32[2]"},
        {oly_compose_where, OLY_OP_select, "2 f32[3] i32[3]", "float32[3]"},
        {oly_compose_where, OLY_OP_select, "bool[2] f32[3] 0",
         "OLY_SHAPE: bool[2] and float32[3] differ along dimension 0"},
        {oly_compose_where, OLY_OP_select, "bool[1] f32[3] f32[2]",
         "OLY_SHAPE: float32[3] and float32[2] differ along dimension 0"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(of_op(cases[k].compose, cases[k].op, cases[k].operands), cases[k].expected);
}

static void nothing_is_added_where_nothing_changes(void **state)
{
    (void)state;
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    oly_node *x = operand("f32[4,8]");
    recipe.params.dtype = OLY_FLOAT32;
    recipe.params.rank = 2;
    recipe.params.n_axes = 2;
    for (int d = 0; d < 2; d++) {
        recipe.params.shape[d] = x->type.shape[d];
        recipe.params.step[d] = 1;
    }
    oly_compose *const same[] = {oly_compose_convert, oly_compose_reshape, oly_compose_broadcast, oly_compose_slice,
                                 oly_compose_concatenate};
    for (size_t k = 0; k < COUNT(same); k++) {
        assert_int_equal(same[k](g, 1, &x, &recipe, &last), OLY_OK);
        assert_ptr_equal(last, x);
    }
    recipe.params.axes[1] = 1;
    assert_int_equal(oly_compose_transpose(g, 1, &x, &recipe, &last), OLY_OK);
    assert_ptr_equal(last, x);
    recipe.params.n_axes = 0;
    assert_int_equal(oly_compose_reduce(g, 1, &x, &recipe, &last), OLY_OK);
    assert_ptr_equal(last, x);
    assert_int_equal(g->n_nodes, 1);
}

/* -- reductions ----------------------------------------------------------------------------------------- */
static void reduction_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        oly_op op;
        bool mean;
        const char *axes;
        bool keepdims;
        const char *operands, *expected;
    } cases[] = {
        {OLY_OP_reduce_sum, false, NULL, false, "f32[4,8]", "float32[]"},
        {OLY_OP_reduce_sum, false, "0", false, "f32[4,8]", "float32[8]"},
        {OLY_OP_reduce_sum, false, "-1", false, "f32[4,8]", "float32[4]"},
        {OLY_OP_reduce_sum, false, "-1,0", false, "f32[4,8,3]", "float32[8]"},
        {OLY_OP_reduce_sum, false, "0,-1", true, "f32[4,8,3]", "float32[1,8,1]"},
        {OLY_OP_reduce_sum, false, "", true, "f32[4,8]", "float32[4,8]"},
        {OLY_OP_reduce_sum, false, NULL, true, "f32[4,8]", "float32[1,1]"},
        {OLY_OP_reduce_sum, false, NULL, false, "bool[4]", "int32[]"},
        {OLY_OP_reduce_prod, false, NULL, false, "bool[4]", "int32[]"},
        {OLY_OP_reduce_sum, false, NULL, false, "u32[4]", "uint32[]"},
        {OLY_OP_reduce_sum, false, NULL, false, "0.5", "float32[]"},
        {OLY_OP_reduce_sum, false, NULL, false, "i8[4]", "int32[]"},
        {OLY_OP_reduce_prod, false, NULL, false, "u16[4]", "uint32[]"},
        {OLY_OP_reduce_sum, false, NULL, false, "bf16[4]", "bfloat16[]"},
        {OLY_OP_reduce_max, false, NULL, false, "u8[4]", "uint8[]"},
        {OLY_OP_reduce_or, false, NULL, false, "i16[4]", "int16[]"},
        {OLY_OP_reduce_and, false, NULL, false, "f32[4]", "OLY_DTYPE: reduce_and of float32[4] is not defined"},
        {OLY_OP_reduce_sum, true, NULL, false, "f16[4]", "float16[]"},
        {OLY_OP_reduce_sum, false, NULL, false, "~f32[4]", "float32[]"},
        {OLY_OP_reduce_max, false, "0", false, "bool[4,2]", "bool[2]"},
        {OLY_OP_reduce_sum, false, "0", false, "f32[0,3]", "float32[3]"},
        {OLY_OP_reduce_max, false, "1", false, "f32[0,3]", "float32[0]"},
        {OLY_OP_reduce_max, false, "0", false, "f32[0,3]",
         "OLY_SHAPE: reduce_max of float32[0,3] over no elements"},
        {OLY_OP_reduce_min, false, NULL, false, "f32[0]", "OLY_SHAPE: reduce_min of float32[0]"},
        {OLY_OP_reduce_sum, false, "2", false, "f32[4,8]",
         "OLY_SHAPE: axis 2 is out of range for float32[4,8]; axes go from -2 to 1"},
        {OLY_OP_reduce_sum, false, "-3", false, "f32[4,8]", "OLY_SHAPE: axis -3 is out of range"},
        {OLY_OP_reduce_sum, false, "0", false, "f32[]",
         "OLY_SHAPE: axis 0 of float32[], which has no dimensions"},
        {OLY_OP_reduce_sum, false, "1,-1", false, "f32[4,8]",
         "OLY_INVALID: axis -1 of float32[4,8] is named twice"},
        {OLY_OP_reduce_sum, true, NULL, false, "i32[4]", "float32[]"},
        {OLY_OP_reduce_sum, true, "0", true, "i64[4,3]", "float64[1,3]"},
        {OLY_OP_reduce_sum, true, NULL, false, "bool[4]", "float32[]"},
        {OLY_OP_reduce_sum, true, NULL, false, "f32[0]", "float32[]"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(reduced(cases[k].mean ? oly_compose_mean : oly_compose_reduce, cases[k].op, cases[k].axes,
                              cases[k].keepdims, cases[k].operands),
                      cases[k].expected);
}

static void mean_divides_by_the_number_of_elements(void **state)
{
    (void)state;
    reduced(oly_compose_mean, OLY_OP_reduce_sum, "0,2", false, "f32[3,5,7]");
    assert_int_equal(last->op, OLY_OP_div);
    assert_true(last->in[1]->in[0]->params.value.f == 21);
}

/* -- products ------------------------------------------------------------------------------------------- */
static void product_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        bool dot;
        const char *operands, *expected;
    } cases[] = {
        {false, "f32[3,5] f32[5,7]", "float32[3,7]"}, {false, "f32[5] f32[5,7]", "float32[7]"},
        {false, "f32[3,5] f32[5]", "float32[3]"}, {false, "f32[5] f32[5]", "float32[]"},
        {false, "f32[2,3,5] f32[5,7]", "float32[2,3,7]"}, {false, "f32[2,3,5] f32[5]", "float32[2,3]"},
        {false, "f32[2,3,5] f32[2,5,7]", "float32[2,3,7]"},
        {false, "f32[2,1,3,5] f32[4,5,7]", "float32[2,4,3,7]"},
        {false, "f32[3,5] f32[2,5,7]", "float32[2,3,7]"}, {false, "f32[5] f32[2,5,7]", "float32[2,7]"},
        {false, "f32[0,5] f32[5,7]", "float32[0,7]"}, {false, "f32[3,0] f32[0,7]", "float32[3,7]"},
        {false, "i32[3,5] f64[5,7]", "float64[3,7]"}, {false, "bool[3,5] i32[5,7]", "int32[3,7]"},
        {false, "f32[3,5] f32[4,7]",
         "OLY_SHAPE: float32[3,5] and float32[4,7]: the last dimension of the first is 5, the last but one of "
          "the second 4"},
        {false, "f32[3,5] f32[4]", "OLY_SHAPE: float32[3,5] and float32[4]"},
        {false, "f32[] f32[4]", "OLY_SHAPE: float32[] and float32[4]: a matrix product needs"},
        {false, "f32[2,3,5] f32[4,5,7]",
         "OLY_SHAPE: float32[2,3,5] and float32[4,5,7] differ along dimension 0"},
        {false, "bool[3,5] bool[5,7]", "bool[3,7]"}, {false, "1 f32[4]", "OLY_SHAPE: ~int32[] and float32[4]"},
        {true, "f32[3,5] f32[5,7]", "float32[3,7]"}, {true, "f32[2,3,5] f32[4,5,7]", "float32[2,3,4,7]"},
        {true, "f32[5] f32[4,6,5,7]", "float32[4,6,7]"}, {true, "f32[3] f32[]", "float32[3]"},
        {true, "f32[1,1,1,1,5] f32[1,1,1,5,7]", "float32[1,1,1,1,1,1,1,7]"},
        {true, "f32[1,1,1,1,1,1,1,5] f32[1,1,1,1,1,5,7]", "OLY_SHAPE: the product of"},
        {false, "i8[3,5] i8[5,7]", "int8[3,7]"}, {false, "bf16[3,5] bf16[5,7]", "bfloat16[3,7]"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(of_op(cases[k].dot ? oly_compose_dot : oly_compose_matmul, OLY_OP_dot_general, cases[k].operands),
                      cases[k].expected);
}

static void products_keep_their_dimensions(void **state)
{
    (void)state;
    of_op(oly_compose_matmul, OLY_OP_dot_general, "f32[2,3,5] f32[5,7]");
    assert_int_equal(last->op, OLY_OP_dot_general);
    assert_string_equal(oly_type_short(&last->in[0]->type), "float32[2,3,5]");
    of_op(oly_compose_matmul, OLY_OP_dot_general, "f32[2,1,3,5] f32[4,5,7]");
    assert_int_equal(last->op, OLY_OP_transpose); /* of [2,3,5] by [4,5,7] */
    assert_int_equal(count_ops(OLY_OP_broadcast), 0);
}

/* -- shapes --------------------------------------------------------------------------------------------- */
static void shape_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        oly_compose *compose;
        const char *shape, *operands, *expected;
    } cases[] = {
        {oly_compose_reshape, "f32[2,16]", "f32[4,8]", "float32[2,16]"},
        {oly_compose_reshape, "f32[2,-1]", "f32[4,8]", "float32[2,16]"},
        {oly_compose_reshape, "f32[]", "f32[1,1]", "float32[]"},
        {oly_compose_reshape, "f32[0,7]", "f32[3,0]", "float32[0,7]"},
        {oly_compose_reshape, "f32[-1]", "f32[3,0]", "float32[0]"},
        {oly_compose_reshape, "f32[5,7]", "f32[4,8]",
         "OLY_SHAPE: float32[4,8] has 32 elements, float32[5,7] would have 35"},
        {oly_compose_reshape, "f32[-1,-1]", "f32[4,8]", "OLY_SHAPE: extent 1 of the new shape is -1"},
        {oly_compose_reshape, "f32[-2]", "f32[4,8]", "OLY_SHAPE: extent 0 of the new shape is -2"},
        {oly_compose_reshape, "f32[5,-1]", "f32[4,8]",
         "OLY_SHAPE: float32[4,8] has 32 elements, which the other"},
        {oly_compose_reshape, "f32[0,-1]", "f32[4,0]",
         "OLY_SHAPE: float32[4,0] has 0 elements, which the other"},
        {oly_compose_reshape, "f32[4294967296,4294967296]", "f32[4,8]", "OLY_OVERFLOW: "},
        {oly_compose_broadcast, "f32[2,4,8]", "i32[4,1]", "int32[2,4,8]"},
        {oly_compose_broadcast, "f32[0]", "i32[1]", "int32[0]"},
        {oly_compose_broadcast, "f32[4,8]", "f32[3]", "OLY_SHAPE: float32[3] does not broadcast to float32[4,8]"},
        {oly_compose_broadcast, "f32[8]", "f32[4,8]",
         "OLY_SHAPE: float32[4,8] has more dimensions than float32[8]"},
        {oly_compose_broadcast, "f32[-8]", "f32[]", "OLY_INVALID: dimension 0 of float32[-8] is negative"},
        {oly_compose_full, "f64[2,3]", "1", "float64[2,3]"}, {oly_compose_full, "bool[]", "0.5", "bool[]"},
        {oly_compose_full, "i32[3]", "f32[]", "int32[3]"},
        {oly_compose_full, "f32[4294967296,4294967296]", "1", "OLY_OVERFLOW: "},
        {oly_compose_iota, "i32[5]", "", "int32[5]"}, {oly_compose_iota, "bool[5]", "", "bool[5]"},
        {oly_compose_iota, "f64[0]", "", "float64[0]"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(shaped(cases[k].compose, cases[k].shape, cases[k].operands), cases[k].expected);
}

static void transpose_types(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"", "f32[2,3,5]", "float32[5,3,2]"},
                                           {"1,0,-1", "f32[2,3,5]", "float32[3,2,5]"},
                                           {"", "f32[]", "float32[]"},
                                           {"0,0", "f32[2,3]", "OLY_SHAPE: axis 0 of float32[2,3] is named twice"},
                                           {"0", "f32[2,3]", "OLY_SHAPE: 1 axes given for float32[2,3]"},
                                           {"0,2", "f32[2,3]", "OLY_SHAPE: axis 2 is out of range for float32[2,3]"}};
    for (size_t k = 0; k < COUNT(cases); k++) {
        oly_recipe recipe;
        memset(&recipe, 0, sizeof recipe);
        assert_int_equal(oly_axes_notation(cases[k][0], &recipe.params), OLY_OK);
        check_outcome(outcome(oly_compose_transpose, &recipe, cases[k][1]), cases[k][2]);
    }
}

static void part_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        oly_compose *compose;
        const char *slices, *operands, *expected;
    } cases[] = {
        {oly_compose_slice, "1:-1", "f32[8]", "float32[6]"}, {oly_compose_slice, "3", "f32[8,5]", "float32[5]"},
        {oly_compose_slice, "0", "f32[1,5]", "float32[5]"},
        {oly_compose_slice, "..., ::2", "f32[8,5]", "float32[8,3]"},
        {oly_compose_slice, "5:2", "f32[8,5]", "float32[0,5]"},
        {oly_compose_update, "1:-1", "f32[8] f32[6]", "float32[8]"},
        {oly_compose_update, "1:-1", "f32[8] f32[1]", "float32[8]"},
        {oly_compose_update, "3", "f32[8,5] f64[5]", "float32[8,5]"},
        {oly_compose_update, "3", "i32[8,5] 1.5", "int32[8,5]"},
        {oly_compose_update, "5:2", "f32[8] f32[1]", "float32[8]"},
        {oly_compose_update, "", "f32[8] f32[]", "float32[8]"},
        {oly_compose_update, "1:-1", "f32[8] f32[5]", "OLY_SHAPE: float32[5] does not broadcast to float32[6]"},
        {oly_compose_update, "3", "f32[8,5] f32[1,5]",
         "OLY_SHAPE: float32[1,5] has more dimensions than float32[5]"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++)
        check_outcome(sliced_outcome(cases[k].compose, cases[k].slices, cases[k].operands), cases[k].expected);
}

static void concatenate_types(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        int dimension;
        const char *operands, *expected;
    } cases[] = {
        {0, "f32[2,3] i32[5,3]", "float32[7,3]"}, {-1, "f32[2,3] f32[2,0] f32[2,1]", "float32[2,4]"},
        {0, "f32[2,3] f32[5,4]",
         "OLY_SHAPE: float32[2,3] and float32[5,4] (operand 1) cannot be joined along dimension 0: dimension 1 "
          "is 3 and 4"},
        {0, "f32[2,3] f32[2]", "OLY_SHAPE: float32[2,3] and float32[2] (operand 1) cannot be joined"},
        {2, "f32[2,3] f32[2,3]", "OLY_SHAPE: axis 2 is out of range"},
        {0, "f32[] f32[]", "OLY_SHAPE: axis 0 of float32[]"}, {0, "", "OLY_INVALID: no arrays given"}
    };
    /* clang-format on */
    for (size_t k = 0; k < COUNT(cases); k++) {
        oly_recipe recipe;
        memset(&recipe, 0, sizeof recipe);
        recipe.params.dimension = cases[k].dimension;
        check_outcome(outcome(oly_compose_concatenate, &recipe, cases[k].operands), cases[k].expected);
    }
}

static void placements_fit_the_rank(void **state)
{
    (void)state;
    struct oly_mesh_impl mesh = {.n_axes = 1, .name = {"x"}, .size = {2}, .n_devices = 2};
    struct oly_sharding_impl sharding = {.mesh = &mesh, .spec = {.n_dims = 2, .dim = {[1] = {1, {0}}}}, .hash = 5};
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.params.sharding = &sharding;
    check_outcome(outcome(oly_compose_place, &recipe, "~f32[4,8]"), "~float32[4,8]");
    check_factors("ab->ab");
    assert_ptr_equal(last->params.sharding, &sharding);
    check_outcome(outcome(oly_compose_place, &recipe, "f32[8]"), "OLY_SHARDING: ");
}

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        TEST(table_rows_have_sizes_and_names), TEST(promotion_is_symmetric_and_as_written),
        TEST(promotion_agrees_with_the_oracle), TEST(weak_numbers_give_way),
        TEST(numbers_are_converted_while_building), TEST(folded_values_wrap_truncate_and_saturate),
        TEST(elementwise_types), TEST(nothing_is_added_where_nothing_changes), TEST(reduction_types),
        TEST(mean_divides_by_the_number_of_elements), TEST(product_types),
        TEST(products_keep_their_dimensions), TEST(shape_types), TEST(transpose_types), TEST(part_types),
        TEST(concatenate_types), TEST(placements_fit_the_rank)
    };
    /* clang-format on */
    return CHECK_MAIN(tests);
}
