/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts.  User kernels against the same programs in operations: factors, partial results, halos, several results, scratch memory, maps,
 * loops, branches, derivatives, and what is refused. */
#include "check_session.h"
#include <math.h>

static oly_mesh mesh;
static oly_array u, a, b;

static void begins(void **state)
{
    check_start(state);
    mesh = oly_make_mesh("i=4, j=2");
    u = oly_device_put(oly_sin(oly_reshape(oly_astype(oly_arange(11 * 10, OLY_INT32), OLY_FLOAT32), 11, 10)),
                       oly_named(mesh, "i, j"));
    a = oly_device_put(oly_reshape(oly_astype(oly_arange(24, OLY_INT32), OLY_FLOAT32), 4, 6), oly_named(mesh, "i, j"));
    b = oly_device_put(oly_reshape(oly_astype(oly_arange(30, OLY_INT32), OLY_FLOAT32), 6, 5), oly_named(mesh, "j"));
}

static void ends(void **state)
{
    check_finish(state);
}

static void same(oly_array x, oly_array y)
{
    if (!x || !y || *oly_last_error())
        fail_msg("%s", oly_last_error());
    double d = oly_item(oly_max(oly_abs(oly_sub(oly_astype(x, OLY_FLOAT32), oly_astype(y, OLY_FLOAT32)))));
    if (!(d <= 1e-4))
        fail_msg("they differ by %g", d);
}

/* -- products ------------------------------------------------------------------------------------------------------- */

static void multiply(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data, *y = in[1].data;
    float *z = out[0].data, *sums = called->scratch;
    int64_t n = in[0].shape[0], m = in[0].shape[1], p = in[1].shape[1];
    (void)user;
    assert_true(called->scratch_bytes >= 8 + 4 * (size_t)(n * m * p));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < p; k++) {
            sums[0] = 0;
            for (int64_t j = 0; j < m; j++)
                sums[0] += x[i * in[0].stride[0] + j * in[0].stride[1]] * y[j * in[1].stride[0] + k * in[1].stride[1]];
            z[i * p + k] = sums[0];
        }
}

static void multiply_backwards(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[3], oly_transpose(in[1]));
    out[1] = oly_matmul(oly_transpose(in[0]), in[3]);
}

static oly_kernel product = {.name = "product",
                             .factors = "ij,jk->ik",
                             .cpu = multiply,
                             .vjp = multiply_backwards,
                             .scratch = 8,
                             .scratch_element = 4,
                             .flops = 2,
                             .dtypes = "float32"};

static void factors_are_split(void **state)
{
    (void)state;
    oly_array y = NULL;
    const char *const left[] = {"i, j", "j, i", "", "None, i", "(i,j)"}, *const right[] = {"j", "i", "None, i", "i, j",
                                                                                           ""};
    for (int strided = 0; strided < 2; strided++)
        for (int k = 0; k < 5; k++) {
            product.strided = strided;
            oly_array x = oly_device_put(a, oly_named(mesh, left[k])), z = oly_device_put(b, oly_named(mesh, right[k]));
            assert_int_equal(oly_kernel_call(&product, OLY_IN(x, z), OLY_OUT(y)), OLY_OK);
            same(y, oly_matmul(a, b));
            assert_int_equal(oly_kernel_call(&product, OLY_IN(oly_transpose(z), oly_transpose(x)), OLY_OUT(y)), OLY_OK);
            same(y, oly_transpose(oly_matmul(a, b)));
        }
    product.whole = "ijk";
    assert_int_equal(oly_kernel_call(&product, OLY_IN(a, b), OLY_OUT(y)), OLY_OK);
    product.whole = NULL;
    same(y, oly_matmul(a, b));
}

static void program(const oly_array *in, oly_array *out, void *user)
{
    if (user)
        oly_kernel_call(&product, OLY_IN(oly_sin(in[0]), in[1]), OLY_OUT(out[0]));
    else
        out[0] = oly_matmul(oly_sin(in[0]), in[1]);
    out[0] = oly_sum(oly_square(out[0]));
}

static void element(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_kernel_call(&product, OLY_IN(in[0], in[1]), OLY_OUT(out[0]));
}

static void summed(const oly_array *in, oly_array *out, void *user)
{
    element(in, out, user);
    out[0] = oly_psum(out[0], "j");
}

static void differentiates_and_maps(void **state)
{
    (void)state;
    oly_array by_kernel = NULL, expected = NULL, y = NULL;
    for (int k = 0; k < 2; k++) {
        const char *by = k ? "1" : "0";
        oly_call(oly_grad(oly_jit(program, 2, 1, .user = &mesh), .argnums = by), OLY_IN(a, b), OLY_OUT(by_kernel));
        oly_call(oly_grad(oly_jit(program, 2, 1), .argnums = by), OLY_IN(a, b), OLY_OUT(expected));
        same(oly_div(by_kernel, 1000), oly_div(expected, 1000));
    }
    oly_array batch =
        oly_device_put(oly_add(oly_reshape(oly_astype(oly_arange(3, OLY_INT32), OLY_FLOAT32), 3, 1, 1), a),
                       oly_named(mesh, "None, i, j"));
    oly_vmap(element, NULL, OLY_IN(batch, b), OLY_AXES_OF(0, OLY_UNMAPPED), OLY_OUT(y), OLY_AXES_OF(0));
    same(y, oly_matmul(batch, b));
    oly_shard_map(summed, NULL, mesh, OLY_IN(a, b), OLY_SPECS("i, j", "j"), OLY_OUT(y), OLY_SPECS("i"));
    same(y, oly_matmul(a, b));
}

/* -- stencils ------------------------------------------------------------------------------------------------------- */

/* The sum over a window of 3 x 5; beyond the ends nothing. */
static void window(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data;
    (void)called, (void)user;
    for (int64_t i = 0; i < out[0].shape[0]; i++)
        for (int64_t j = 0; j < out[0].shape[1]; j++) {
            float sum = 0;
            int64_t row = i + in[0].before[0], column = j + in[0].before[1];
            assert_int_equal(in[0].origin[0] + row, out[0].origin[0] + i);
            for (int64_t r = row - 1; r <= row + 1; r++)
                for (int64_t c = column - 2; c <= column + 2; c++)
                    if (r >= 0 && c >= 0 && r < in[0].shape[0] && c < in[0].shape[1])
                        sum += x[r * in[0].stride[0] + c * in[0].stride[1]];
            ((float *)out[0].data)[i * out[0].stride[0] + j] = sum;
        }
}

static oly_array windows(oly_array x, const char *mode)
{
    static const int64_t by[] = {1, 2};
    oly_array p = mode ? oly_pad_mode(x, mode, by, by) : oly_pad(x, 0.0, by, by, NULL), sum = NULL;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 5; c++) {
            char part[64];
            snprintf(part, sizeof part, "%d:%d, %d:%d", r, r + (int)oly_shape(x)[0], c, c + (int)oly_shape(x)[1]);
            sum = sum ? oly_add(sum, oly_slice(p, part)) : oly_slice(p, part);
        }
    return sum;
}

static void halos(void **state)
{
    (void)state;
    static const char *const modes[] = {NULL, "wrap", NULL, "edge"};
    oly_kernel k = {.name = "window", .factors = "ij->ij", .cpu = window, .halo = {{.radius = {1, 2}}}};
    const char *const shardings[] = {"i, j", "j, i", "", "None, (i,j)", "(i,j)"};
    for (int edge = OLY_EDGE_ENDS; edge <= OLY_EDGE_NEAREST; edge++)
        for (int s = 0; s < 5; s++) {
            oly_array x = oly_device_put(u, oly_named(mesh, shardings[s])), y = NULL;
            k.halo[0].edge[0] = k.halo[0].edge[1] = (oly_edge)edge;
            oly_kernel_call(&k, OLY_IN(x), OLY_OUT(y));
            same(y, windows(u, modes[edge]));
        }
}

static oly_kernel smooth = {.name = "window", .factors = "ij->ij", .cpu = window, .halo = {{.radius = {1, 2}}}};

static void by_kernel(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_kernel_call(&smooth, OLY_IN(oly_mul(carry[0], 0.05)), OLY_OUT(carry[0]));
}

static void by_operations(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = windows(oly_mul(carry[0], 0.05), NULL);
}

static void loops(const oly_array *in, oly_array *out, void *user)
{
    out[0] = out[1] = in[0];
    oly_fori(0, 4, by_kernel, 1, &out[0], user);
    oly_fori(0, 4, by_operations, 1, &out[1], user);
}

static void in_loops(void **state)
{
    (void)state;
    oly_array y = NULL, z = NULL;
    oly_call(oly_jit(loops, 1, 2), OLY_IN(u), OLY_OUT(y, z));
    same(y, z);
}

/* -- several results ------------------------------------------------------------------------------------------------ */

static void extremes(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const int32_t *x = in[0].data;
    int32_t *rows = out[0].data, *all = out[1].data;
    (void)called, (void)user;
    *all = INT32_MIN;
    for (int64_t i = 0; i < in[0].shape[0]; i++) {
        rows[i] = INT32_MIN;
        for (int64_t j = 0; j < in[0].shape[1]; j++)
            rows[i] = x[i * in[0].shape[1] + j] > rows[i] ? x[i * in[0].shape[1] + j] : rows[i];
        *all = rows[i] > *all ? rows[i] : *all;
    }
}

static void uses_one(const oly_array *in, oly_array *out, void *user)
{
    oly_array rows = NULL, all = NULL;
    oly_kernel_call(user, OLY_IN(in[0]), OLY_OUT(rows, all));
    out[0] = oly_add(all, 1);
}

/* The least of each row, and a copy. */
static void least_and_copy(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data;
    float *least = out[0].data, *copy = out[1].data;
    (void)called, (void)user;
    for (int64_t i = 0; i < in[0].shape[0]; i++) {
        least[i] = INFINITY;
        for (int64_t j = 0; j < in[0].shape[1]; j++)
            least[i] = fminf(least[i], copy[i * in[0].shape[1] + j] = x[i * in[0].shape[1] + j]);
    }
}

/* Devices without elements of one result have their part of another, here the least of nothing. */
static void one_result_is_empty(void **state)
{
    (void)state;
    static const oly_kernel k = {
        .name = "least_and_copy", .factors = "ij->i,ij", .cpu = least_and_copy, .combine = OLY_BY_MIN};
    for (int size = 1; size < 10; size += 2) {
        oly_array least = NULL, copy = NULL, x = oly_add(oly_ones(OLY_FLOAT32, 4, size), 1);
        x = oly_device_put(x, oly_named(mesh, "None, (i,j)"));
        assert_int_equal(oly_kernel_call(&k, OLY_IN(x), OLY_OUT(least, copy)), OLY_OK);
        same(least, oly_min(x, OLY_AXES(1)));
        assert_true(oly_item(oly_sum(copy)) == 8 * size);
    }
}

static void several_results_and_combiners(void **state)
{
    (void)state;
    const oly_kernel k = {
        .name = "extremes", .factors = "ij->i,", .cpu = extremes, .combine = OLY_BY_MAX, .dtypes = "int16, int32"};
    oly_array x =
        oly_device_put(oly_rem(oly_mul(oly_reshape(oly_arange(35, OLY_INT32), 7, 5), 17), 31), oly_named(mesh, "i, j"));
    oly_array rows = NULL, all = NULL, one = NULL;
    oly_kernel_call(&k, OLY_IN(x), OLY_OUT(rows, all));
    same(rows, oly_max(x, OLY_AXES(1)));
    same(all, oly_max(x));
    oly_call(oly_jit(uses_one, 1, 1, .user = (void *)(uintptr_t)&k), OLY_IN(x), OLY_OUT(one));
    same(one, oly_add(all, 1));
}

/* -- what is refused ------------------------------------------------------------------------------------------------ */

static void refused(const oly_kernel *k, oly_array x, oly_status status, const char *text)
{
    oly_array y = x;
    oly_status st = oly_kernel_call(k, OLY_IN(x), OLY_OUT(y));
    if (st != status || y || !strstr(oly_last_error(), text))
        fail_msg("%s; wanted %s: \"%s\"", oly_last_error(), oly_status_name(status), text);
    oly_clear_error();
}

static void wrong_kernels_are_refused(void **state)
{
    (void)state;
    const oly_kernel good = {.name = "window", .factors = "ij->ij", .cpu = window};
    oly_kernel k = good;
    k.cpu = NULL, k.cuda = window;
    refused(&k, u, OLY_INVALID, "beside GPUs");
    k.cuda = NULL;
    refused(&k, u, OLY_INVALID, "give it in .cpu");
    refused(NULL, u, OLY_INVALID, "NULL");
    k = good, k.factors = "ij->i?";
    refused(&k, u, OLY_PARSE, "column 6");
    k = good, k.factors = "ijk->i";
    refused(&k, u, OLY_SHAPE, "3 dimensions");
    k = good, k.factors = "ij->ijk";
    refused(&k, u, OLY_SHAPE, "'k'");
    k = good, k.dtypes = "float64";
    refused(&k, u, OLY_DTYPE, "float64");
    k = good, k.halo[0].radius[0] = -1;
    refused(&k, u, OLY_INVALID, "radius");
    k = good, k.halo[0].radius[1] = 11;
    refused(&k, u, OLY_INVALID, "radius");
    oly_array y = NULL;
    assert_int_equal(oly_kernel_call(&product, OLY_IN(a, a), OLY_OUT(y)), OLY_SHAPE);
    assert_non_null(strstr(oly_last_error(), "dimension 'j' has 6 elements"));
    oly_clear_error();
}

/* On one process: elsewhere a rank without memory ends the session of all (tests/operations). */
static void failing_allocations_are_errors(void **state)
{
    (void)state;
    extern void oly_fail_allocation(long n);
    oly_array y = NULL;
    for (long n = 0, failed = 1; failed && oly_process_count() == 1; n++) {
        oly_fail_allocation(n);
        oly_status st = oly_kernel_call(&product, OLY_IN(a, b), OLY_OUT(y));
        oly_fail_allocation(-1);
        assert_true(st == OLY_OK || st == OLY_MEMORY);
        oly_clear_error();
        failed = st != OLY_OK;
    }
    assert_int_equal(oly_kernel_call(&product, OLY_IN(a, b), OLY_OUT(y)), OLY_OK);
    same(y, oly_matmul(a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins),
        cmocka_unit_test(factors_are_split),
        cmocka_unit_test(differentiates_and_maps),
        cmocka_unit_test(halos),
        cmocka_unit_test(in_loops),
        cmocka_unit_test(several_results_and_combiners),
        cmocka_unit_test(one_result_is_empty),
        cmocka_unit_test(wrong_kernels_are_refused),
        cmocka_unit_test(failing_allocations_are_errors),
        cmocka_unit_test(ends),
    };
    return CHECK_MAIN(tests);
}
