/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts  Matrix products overlap the communication around them: they start with local blocks, and send blocks as
 * soon as they are computed. Steps of plans, and values: those of one device, and the same bits as without overlap. */
#include "check_communication.h"
#include "check_session.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/option.h"

/* Rows are gathered from all devices; the product starts with the local ones. */
static void gathered_product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "None, x"));
}

static void products_begin_with_the_blocks_that_are_here(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(512, 256), check_matrix(256, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    char *text = check_steps(oly_jit_with(gathered_product, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
    assert_int_equal(check_count(text, " members]"), 1);
    assert_int_equal(check_count(text, "all-gather"), 1);
    if (oly_process_count() == 1)
        assert_int_equal(check_count(text, "matrix product"), 1);
    else
        assert_true(check_count(text, "matrix product") > 1);
    free(text);
    check_same_values(gathered_product, 2, plain, in, 512 * 2048, 1e-3);
    check_same_bits(gathered_product, 2, in, 512 * 2048);
}

/* The second operand is gathered along its columns. */
static void gathered_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "x, None"));
}

static void products_begin_with_the_columns_that_are_here(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(2048, 128), check_matrix(128, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    char *text = check_steps(oly_jit_with(gathered_columns, "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
    assert_int_equal(check_count(text, " members]"), 1);
    assert_int_equal(check_count(text, "all-gather"), 1);
    assert_int_equal(check_count(text, "matrix product") > 1, oly_process_count() > 1);
    free(text);
    check_same_values(gathered_columns, 2, plain, in, 2048 * 2048, 1e-3);
    check_same_bits(gathered_columns, 2, in, 2048 * 2048);
}

/* Several dimensions of the gathered operand form one loop of rows: a block of rows may cross from one to the next. */
static void gathered_batch(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array product = oly_einsum("abk,kn->abn", in[0], in[1]);
    out[0] = oly_with_sharding_constraint(product, oly_named(oly_make_mesh("x=8"), "None, None, x"));
}

static void blocks_across_dimensions_wait_for_all_they_read(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {oly_reshape(check_matrix(512, 256), 4, 128, 256), check_matrix(256, 2048)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "None, x, None")),
                      oly_device_put(plain[1], oly_named(mesh, "None, x"))};
    check_same_values(gathered_batch, 2, plain, in, 512 * 2048, 1e-3);
    check_same_bits(gathered_batch, 2, in, 512 * 2048);
}

/* Partial products are reduce-scattered: one process's blocks are sent while the next one's are computed. */
static void scattered_rows(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "x, None"));
}

static void scattered_columns(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_with_sharding_constraint(oly_matmul(in[0], in[1]), oly_named(oly_make_mesh("x=8"), "None, x"));
}

static void products_send_blocks_as_they_are_made(void **state)
{
    static const oly_function functions[] = {scattered_rows, scattered_columns};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array plain[] = {check_matrix(512, 4096), check_matrix(4096, 512)};
    oly_array in[] = {oly_device_put(plain[0], oly_named(mesh, "None, x")),
                      oly_device_put(plain[1], oly_named(mesh, "x, None"))};
    for (int k = 0; k < 2; k++) {
        char *text = check_steps(oly_jit_with(functions[k], "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
        assert_int_equal(check_count(text, " members]"), 1);
        assert_int_equal(check_count(text, "reduce-scatter"), 1);
        assert_int_equal(check_count(text, "sent block by block"), oly_process_count() > 1);
        free(text);
        check_same_values(functions[k], 2, plain, in, 512 * 512, 1e-2);
        check_same_bits(functions[k], 2, in, 512 * 512);
    }
}

/* Products that take no time are not split. */
static void small_products_stay_whole(void **state)
{
    static const oly_function functions[] = {scattered_rows, scattered_columns};
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[] = {oly_device_put(check_matrix(32, 64), oly_named(mesh, "None, x")),
                      oly_device_put(check_matrix(64, 32), oly_named(mesh, "x, None"))};
    for (int k = 0; k < 2; k++) {
        char *text = check_steps(oly_jit_with(functions[k], "f", 2, 1, (oly_jit_options){.user = NULL}), 2, in);
        assert_int_equal(check_count(text, "matrix product"), 1);
        assert_int_equal(check_count(text, "sent block by block"), 0);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_begin_with_the_blocks_that_are_here, check_open, check_close),
        cmocka_unit_test_setup_teardown(products_begin_with_the_columns_that_are_here, check_open, check_close),
        cmocka_unit_test_setup_teardown(blocks_across_dimensions_wait_for_all_they_read, check_open, check_close),
        cmocka_unit_test_setup_teardown(small_products_stay_whole, check_open, check_close),
        cmocka_unit_test_setup_teardown(products_send_blocks_as_they_are_made, check_open, check_close),
    };
    return CHECK_MAIN(tests);
}
