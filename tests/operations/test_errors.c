/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8 timeout=300  Bad input: a status, and a message with the call, the caller's file and line, the
 * values and the rule; a null handle, and nothing is lost (out of memory: test_out_of_memory.c). */
#include "check_session.h"
#include "core/error.h"
#include <pthread.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checks a failure: its status, the caller's line, the name of the call, and parts of the text. */
static int inner_line; /* of the call that fails inside a traced function; 0: the line of FAILS */

static void check_failure(int line, const char *call, bool failed, oly_status status, const char *const *parts)
{
    char here[80];
    snprintf(here, sizeof here, "%s (tests/operations/test_errors.c:%d): ", call, inner_line ? inner_line : line);
    inner_line = 0;
    if (!failed || oly_last_status() == OLY_OK)
        fail_msg("line %d: %s did not fail", line, call);
    const char *text = oly_last_error();
    if (oly_last_status() != status)
        fail_msg("line %d: %s instead of %s: %s", line, oly_status_name(oly_last_status()), oly_status_name(status),
                 text);
    if (!strstr(text, strchr(here, '/')) || strncmp(text, call, strlen(call)) != 0)
        fail_msg("line %d: the message does not begin with \"%s\": %s", line, here, text);
    for (; *parts; parts++)
        if (!strstr(text, *parts))
            fail_msg("line %d: without \"%s\": %s", line, *parts, text);
    oly_clear_error();
}

/* FAILS(oly_add, oly_add(a, b) == NULL, OLY_SHAPE, "float32[4]", ...) */
#define FAILS(call, failed, status, ...)                                                                               \
    check_failure(__LINE__, #call, (failed), (status), (const char *const[]){__VA_ARGS__, NULL})

static oly_array ones(oly_dtype dtype, int rank, int64_t a, int64_t b)
{
    return oly_ones_shape(dtype, rank, (int64_t[]){a, b});
}

/* -- shapes and types -------------------------------------------------------------------------------------- */
static void shapes_that_do_not_fit(void **state)
{
    (void)state;
    oly_array four = ones(OLY_FLOAT32, 1, 4, 0), five = ones(OLY_FLOAT32, 1, 5, 0), grid = ones(OLY_INT32, 2, 2, 3);
    FAILS(oly_add, !oly_add(four, five), OLY_SHAPE, "float32[4]", "float32[5]");
    FAILS(oly_where, !oly_where(oly_gt(four, 0), five, 0), OLY_SHAPE, "bool[4]", "float32[5]");
    FAILS(oly_matmul, !oly_matmul(grid, grid), OLY_SHAPE, "int32[2,3]", "3", "2");
    FAILS(oly_matmul, !oly_matmul(oly_sum(four), four), OLY_SHAPE, "float32[]");
    FAILS(oly_dot, !oly_dot(four, five), OLY_SHAPE, "float32[4]", "float32[5]");
    FAILS(oly_reshape, !oly_reshape(grid, 4), OLY_SHAPE, "int32[2,3]", "6", "int32[4]");
    FAILS(oly_reshape, !oly_reshape(grid, -1, -1), OLY_SHAPE, "-1");
    FAILS(oly_reshape, !oly_reshape(grid, -1, 4), OLY_SHAPE, "6");
    FAILS(oly_reshape, !oly_reshape(grid, -2, 3), OLY_SHAPE, "-2");
    FAILS(oly_transpose, !oly_transpose(grid, 0), OLY_SHAPE, "int32[2,3]");
    FAILS(oly_transpose, !oly_transpose(grid, 0, 0), OLY_SHAPE, "twice");
    FAILS(oly_transpose, !oly_transpose(grid, 0, 2), OLY_SHAPE, "2");
    FAILS(oly_broadcast_to, !oly_broadcast_to(grid, 2, 4), OLY_SHAPE, "int32[2,3]", "[2,4]");
    FAILS(oly_broadcast_to, !oly_broadcast_to(grid, 3), OLY_SHAPE, "int32[2,3]");
    FAILS(oly_slice, !oly_slice(four, "1, 2"), OLY_SHAPE, "1, 2");
    FAILS(oly_update, !oly_update(four, "1:3", five), OLY_SHAPE, "float32[5]");
    FAILS(oly_concatenate, !oly_concatenate(0, grid, four), OLY_SHAPE, "int32[2,3]", "float32[4]");
    FAILS(oly_concatenate, !oly_concatenate(0, grid, oly_transpose(grid)), OLY_SHAPE, "int32[3,2]");
    FAILS(oly_concatenate, !oly_concatenate(2, grid, grid), OLY_SHAPE, "2");
    FAILS(oly_sum, !oly_sum(grid, OLY_AXES(2)), OLY_SHAPE, "2", "int32[2,3]");
    FAILS(oly_sum, !oly_sum(grid, OLY_AXES(-3)), OLY_SHAPE, "-3");
    FAILS(oly_sum, !oly_sum(grid, .axes = "0, -2"), OLY_INVALID, "twice");
    FAILS(oly_max, !oly_max(oly_zeros(OLY_INT32, 0, 3), OLY_AXES(0)), OLY_SHAPE, "int32[0,3]", "no");
    FAILS(oly_item, oly_item(four) == 0, OLY_SHAPE, "float32[4]");
}

static void element_types_that_do_not_fit(void **state)
{
    (void)state;
    oly_array truth = ones(OLY_BOOL, 2, 3, 3);
    FAILS(oly_neg, !oly_neg(truth), OLY_DTYPE, "bool[3,3]", "oly_astype");
    FAILS(oly_sub, !oly_sub(truth, truth), OLY_DTYPE, "bool[3,3]");
    FAILS(oly_astype, !oly_astype(truth, OLY_N_DTYPES), OLY_INVALID, "does not exist");
    FAILS(oly_matmul, !oly_matmul(truth, truth, .preferred_element_type = OLY_N_DTYPES), OLY_DTYPE, "bool");
    FAILS(oly_matmul, !oly_matmul(oly_ones(OLY_INT32, 3, 3), truth, .preferred_element_type = OLY_INT8), OLY_DTYPE,
          "int32", "int8", "narrower");
    FAILS(oly_from_host, !oly_from_host("", (oly_dtype)77, 0, NULL), OLY_INVALID, "77");
    FAILS(oly_zeros, !oly_zeros((oly_dtype)-1, 3), OLY_INVALID, "-1");
    FAILS(oly_arange, !oly_arange(3, (oly_dtype)99), OLY_INVALID, "99");
}

static void numbers_out_of_range(void **state)
{
    (void)state;
    int64_t many[13] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, limit[1] = {3}, no_step[1] = {0};
    oly_array four = ones(OLY_FLOAT32, 1, 4, 0);
    float buffer[3];
    FAILS(oly_arange, !oly_arange(-1, OLY_INT32), OLY_INVALID, "-1");
    FAILS(oly_zeros, !oly_zeros(OLY_INT32, 2, -3), OLY_INVALID, "-3");
    FAILS(oly_zeros, !OLY_AT(oly_zeros_shape)(OLY_INT32, 13, many), OLY_INVALID, "13");
    FAILS(oly_from_host, !oly_from_host(buffer, OLY_FLOAT32, 13, many), OLY_INVALID, "13");
    FAILS(oly_from_host, !oly_from_host(NULL, OLY_FLOAT32, 1, (int64_t[]){3}), OLY_INVALID, "NULL");
    FAILS(oly_reshape, !OLY_AT(oly_reshape_shape)(four, 13, many), OLY_INVALID, "13");
    FAILS(oly_slice, !oly_slice(four, "4"), OLY_INVALID, "4", "dimension 0 of size 4");
    FAILS(oly_slice, !oly_slice(four, "::0"), OLY_INVALID, "step 0", "column 3");
    FAILS(oly_slice_ranges, !oly_slice_ranges(four, limit, limit, no_step), OLY_INVALID, "0");
    FAILS(oly_get, oly_get(four, buffer, sizeof buffer) == OLY_INVALID, OLY_INVALID, "12 bytes", "float32[4]", "16");
    FAILS(oly_get, oly_get(four, NULL, 16) == OLY_INVALID, OLY_INVALID, "float32[4]");
    FAILS(oly_process_allgather, oly_process_allgather(four, buffer, 12) == OLY_INVALID, OLY_INVALID, "float32[4]");
}

static void sizes_that_overflow(void **state)
{
    (void)state;
    int64_t huge = INT64_C(1) << 40;
    oly_array one = ones(OLY_FLOAT32, 1, 1, 0);
    float number = 1;
    FAILS(oly_zeros, !oly_zeros(OLY_FLOAT32, huge, huge), OLY_OVERFLOW, "1099511627776");
    FAILS(oly_zeros, !oly_zeros(OLY_FLOAT64, INT64_MAX / 4), OLY_OVERFLOW, "bytes");
    FAILS(oly_broadcast_to, !oly_broadcast_to(one, huge, huge), OLY_OVERFLOW, "1099511627776");
    FAILS(oly_from_host, !oly_from_host(&number, OLY_FLOAT32, 2, (int64_t[]){huge, huge}), OLY_OVERFLOW,
          "1099511627776");
    FAILS(oly_reshape, !oly_reshape(one, huge, huge, -1), OLY_OVERFLOW, "1099511627776");
    FAILS(oly_arange, !oly_arange(INT64_MAX, OLY_INT64), OLY_OVERFLOW, "9223372036854775807");
    FAILS(oly_zeros, !oly_zeros(OLY_FLOAT64, huge, 64), OLY_MEMORY, "memory");
    assert_true(oly_item(oly_sum(oly_ones(OLY_INT32, 5))) == 5); /* and everything still works */
}

static void add_large(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], INT64_C(3000000000));
}

/* C integers must fit the default integer, as in JAX 0.10.2, whatever the other operands. */
static void numbers_that_overflow(void **state)
{
    (void)state;
    const int64_t large = 3000000000, least = INT32_MIN;
    oly_array i = oly_arange(3, OLY_INT32), u = oly_arange(3, OLY_UINT32), b = oly_arange(3, OLY_UINT8),
              f = oly_arange(3, OLY_FLOAT32), wide = oly_arange(3, OLY_INT64), out = NULL;
    FAILS(oly_add, !oly_add(i, large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_add, !oly_add(large, i), OLY_OVERFLOW, "int32");
    FAILS(oly_sub, !oly_sub(i, least - 1), OLY_OVERFLOW, "-2147483649");
    FAILS(oly_add, !oly_add(u, large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_add, !oly_add(u, 3000000000u), OLY_OVERFLOW, "3000000000");
    FAILS(oly_mul, !oly_mul(f, large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_eq, !oly_eq(i, large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_where, !oly_where(oly_gt(i, 1), i, large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_update, !oly_update(f, "0", large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_at_set, !oly_at_set(i, OLY_INDEXES(0), large), OLY_OVERFLOW, "3000000000");
    FAILS(oly_pad, !oly_pad(i, large, (int64_t[]){1}, NULL, NULL), OLY_OVERFLOW, "3000000000");
    FAILS(oly_clip, !oly_clip(i, 0, large), OLY_OVERFLOW, "3000000000");
    assert_int_equal(oly_call(oly_jit(add_large, 1, 1), OLY_IN(i), OLY_OUT(out)), OLY_OVERFLOW);
    oly_clear_error();
    FAILS(oly_add, !oly_add(wide, UINT64_MAX), OLY_OVERFLOW, "18446744073709551615");
    assert_true(oly_item(oly_max(oly_add(i, least))) == -2147483646.0);
    assert_true(oly_item(oly_max(oly_add(b, 300))) == 46); /* narrower types wrap */
    assert_true(oly_item(oly_max(oly_add(u, -1))) == 4294967295.0);
    assert_true(oly_item(oly_max(oly_add(f, 3e9))) == 3e9);
    assert_true(oly_item(oly_max(oly_add(wide, large))) == 3000000002.0);
    assert_true(oly_item(oly_max(oly_full(large, OLY_INT32, 1))) == -1294967296.0);
    assert_true(oly_item(oly_max(oly_full(large, OLY_FLOAT32, 1))) == 3e9);
    assert_true(oly_item(oly_max(oly_full_like(b, -1))) == 255);
    assert_true(oly_item(oly_max(oly_full(UINT64_MAX, OLY_UINT64, 1))) == 18446744073709551616.0);
    oly_enable_x64(true);
    assert_true(oly_item(oly_max(oly_add(f, large))) == 3e9);
    assert_true(oly_item(oly_max(oly_add(oly_astype(i, OLY_INT64), large))) == 3000000002.0);
    oly_enable_x64(false);
}

static void notations_that_cannot_be_read(void **state)
{
    (void)state;
    oly_array grid = ones(OLY_INT32, 2, 2, 3);
    FAILS(oly_slice, !oly_slice(grid, "1:, x"), OLY_PARSE, "column 5");
    FAILS(oly_slice, !oly_slice(grid, "1::2:"), OLY_PARSE, "column 5");
    FAILS(oly_update, !oly_update(grid, "0 1", 1), OLY_PARSE, "column 3");
    FAILS(oly_sum, !oly_sum(grid, .axes = "0,,1"), OLY_PARSE, "column 3");
    FAILS(oly_make_mesh, !oly_make_mesh("x=2 y=4"), OLY_PARSE, "column 5");
    FAILS(oly_named, !oly_named(oly_make_mesh("x=2"), "x y"), OLY_PARSE, "column 3");
}

/* -- devices and shardings ----------------------------------------------------------------------------------------- */
static void devices_and_shardings_that_do_not_fit(void **state)
{
    (void)state;
    oly_mesh all = oly_make_mesh("x=2, y=4"), half = oly_make_mesh("x=4");
    oly_mesh other = oly_mesh_from_devices(1, (const char *[]){"x"}, (int[]){4}, (int[]){4, 5, 6, 7});
    oly_array x = ones(OLY_FLOAT32, 1, 8, 0), on_all = oly_device_put(x, oly_named(all, "x"));
    oly_array on_half = oly_device_put(x, oly_named(half, "x")), on_other = oly_device_put(x, oly_named(other, "x"));
    oly_array on_one = oly_device_put(x, oly_single_device(oly_get_device(3)));
    FAILS(oly_add, !oly_add(on_all, on_half), OLY_DEVICES, "incompatible devices", "float32[8]");
    FAILS(oly_add, !oly_add(on_half, on_other), OLY_DEVICES, "incompatible devices");
    FAILS(oly_matmul, !oly_matmul(on_one, on_all), OLY_DEVICES, "incompatible devices");
    FAILS(oly_device_put, !oly_device_put(x, oly_named(all, "x, y")), OLY_SHARDING, "P('x', 'y')", "1 dimension");
    FAILS(oly_device_put, !oly_device_put(oly_sum(x), oly_named(all, "x")), OLY_SHARDING, "0 dimensions");
    FAILS(oly_with_sharding_constraint, !oly_with_sharding_constraint(x, oly_named(all, "None, x")), OLY_SHARDING,
          "1 dimension");
    FAILS(oly_from_local, !oly_from_local(oly_named(all, "x"), OLY_FLOAT32, 1, (int64_t[]){8}, "", (int64_t[]){3}),
          OLY_SHAPE, "8", "3");
    FAILS(oly_from_local, !oly_from_local(oly_named(all, "x"), OLY_FLOAT32, 1, (int64_t[]){8}, NULL, (int64_t[]){8}),
          OLY_INVALID, "float32[8]", "NULL");
    FAILS(oly_from_local, !oly_from_local(oly_named(all, "x"), (oly_dtype)99, 1, (int64_t[]){8}, "", (int64_t[]){8}),
          OLY_INVALID, "99");
    oly_sharding halves = oly_named(oly_make_mesh("x=2"), "x");
    oly_array parts[] = {on_one, on_one}, wide = oly_device_put(x, oly_single_device(oly_get_device(0)));
    const int64_t eight = 8, sixteen = 16;
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &sixteen, 1, parts), OLY_INVALID,
          "Expected 2 per-device arrays (this is how many devices are addressable by the sharding), but got 1");
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &sixteen, 2, parts), OLY_DEVICES, "device 3",
          "Mesh('x': 2)");
    parts[0] = parts[1] = wide;
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &sixteen, 2, parts), OLY_DEVICES, "device 0",
          "as another part is");
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &eight, 2, parts), OLY_SHAPE, "float32[8]",
          "float32[4]");
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_INT32, 1, &sixteen, 2, parts), OLY_DTYPE, "int32[16]",
          "float32[8]");
    parts[0] = x;
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &sixteen, 2, parts), OLY_DEVICES, "uncommitted",
          "oly_single_device");
    parts[0] = NULL;
    FAILS(oly_from_shards, !oly_from_shards(halves, OLY_FLOAT32, 1, &sixteen, 2, parts), OLY_INVALID, "NULL");
    FAILS(oly_named, !oly_named(all, "Z"), OLY_SHARDING, "'Z'");
    FAILS(oly_make_mesh, !oly_make_mesh("x=16"), OLY_INVALID, "16", "8");
    assert_null(oly_get_device(8));
    assert_int_equal(oly_last_status(), OLY_INVALID);
    oly_clear_error();
    assert_null(oly_get_shard(on_all, 8).data);
    assert_int_equal(oly_last_status(), OLY_INVALID);
    oly_clear_error();
    assert_true(oly_item(oly_sum(oly_add(on_all, x))) == 16); /* the uncommitted one is moved */
}

/* A handle that was never set, before any error. */
static void null_handles(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 2, 2, 2), none = NULL;
    oly_mesh mesh = oly_make_mesh("x=8");
    FAILS(oly_add, !oly_add(x, none), OLY_INVALID, "NULL");
    FAILS(oly_sum, !oly_sum(none), OLY_INVALID, "NULL");
    FAILS(oly_var, !oly_var(none), OLY_INVALID, "NULL");
    FAILS(oly_slice, !oly_slice(none, "0"), OLY_INVALID, "NULL");
    FAILS(oly_reshape, !oly_reshape(none, 4), OLY_INVALID, "NULL");
    FAILS(oly_tensordot, !oly_tensordot(x, none, 1), OLY_INVALID, "NULL");
    FAILS(oly_conv, !oly_conv(none, x), OLY_INVALID, "NULL");
    FAILS(oly_device_put, !oly_device_put(none, oly_named(mesh, "")), OLY_INVALID, "NULL");
    FAILS(oly_named, !oly_named(NULL, "x"), OLY_INVALID, "the mesh is NULL", "oly_make_mesh");
    FAILS(oly_single_device, !oly_single_device(NULL), OLY_INVALID, "the device is NULL");
    FAILS(oly_jit, !oly_jit(NULL, 1, 1), OLY_INVALID, "the function is NULL");
    FAILS(oly_stack, !oly_stack(3, x, x), OLY_SHAPE, "axis 3", "a new dimension of float32[2,2]", "-3 to 2");
}

/* Handles of another kind, which C passes after a cast or as void *. */
static void handles_of_another_kind(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array x = ones(OLY_FLOAT32, 1, 4, 0);
    FAILS(oly_printf, oly_printf("%S", (void *)x) < 0, OLY_INVALID, "a sharding is expected", "an array was given");
    FAILS(oly_printf, oly_printf("%A", (const void *)mesh) < 0, OLY_INVALID, "an array is expected",
          "a mesh was given");
    FAILS(oly_fprintf, oly_fprintf(stdout, "%M", (void *)x) < 0, OLY_INVALID, "a mesh is expected");
    FAILS(oly_printf, oly_printf("%D", "CPU") < 0, OLY_INVALID, "a device is expected", "not a handle");
    FAILS(oly_rank, oly_rank((oly_array)mesh) < 0, OLY_INVALID, "a mesh was given");
    FAILS(oly_add, !oly_add(x, (oly_array)mesh), OLY_INVALID, "a mesh was given");
    FAILS(oly_mesh_axis_count, oly_mesh_axis_count((oly_mesh)x) == 0, OLY_INVALID, "an array was given");
}

static void call_itself(const oly_array *in, oly_array *out, void *user)
{
    inner_line = __LINE__ + 1;
    oly_call(*(oly_fn *)user, OLY_IN(in[0]), OLY_OUT(out[0]));
}

static void identity(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}

static void functions_that_are_gone_or_call_themselves(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 4, 0), y = x;
    oly_fn recursive = NULL, gone = NULL;
    recursive = oly_jit(call_itself, 1, 1, .user = &recursive);
    FAILS(oly_call, oly_call(recursive, OLY_IN(x), OLY_OUT(y)) != OLY_OK && !y, OLY_TRACE, "call_itself calls itself");
    OLY_SCOPE
    {
        gone = oly_jit(identity, 1, 1);
    }
    y = NULL;
    FAILS(oly_call, oly_call(gone, OLY_IN(x), OLY_OUT(y)) != OLY_OK, OLY_DELETED, "a function", "its scope has ended");
    FAILS(oly_apply, !oly_apply(gone, x), OLY_DELETED, "a function");
    FAILS(oly_grad, !oly_grad(gone), OLY_DELETED, "a function");
}

static void meshes_of_all_devices(void **state)
{
    (void)state;
    int sizes[] = {-1};
    assert_int_equal(oly_mesh_axis_size(oly_make_mesh("i=-1"), 0), 8);
    assert_int_equal(oly_mesh_axis_size(oly_make_mesh("i=2, j=-1:explicit"), 1), 4);
    assert_ptr_equal(oly_make_mesh("i=-1, j=2"), oly_make_mesh("i=4, j=2"));
    FAILS(oly_make_mesh, !oly_make_mesh("i=-1, j=3"), OLY_INVALID, "axis 'i' is -1", "3 devices", "all 8");
    FAILS(oly_make_mesh, !oly_make_mesh("i=-1, j=-1"), OLY_INVALID, "'i' and 'j'");
    FAILS(oly_make_mesh, !oly_make_mesh("i=-2"), OLY_INVALID, "-2");
    FAILS(oly_mesh_from_devices, !oly_mesh_from_devices(1, (const char *[]){"i"}, sizes, NULL), OLY_INVALID, "-1");
    FAILS(oly_mesh_from_devices, !oly_mesh_from_devices(-1, NULL, NULL, NULL), OLY_INVALID, "-1 axes");
}

/* Not the function behind the macro: with operands and options in structs it is the same operation. */
static void messages_name_the_operation(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 4, 0), none = NULL;
    oly_array arrays[] = {x, none};
    const int64_t shape[] = {3};
    oly_reduce_options along_7 = OLY_REDUCE_OPTIONS(OLY_AXES(7));
    FAILS(oly_sum, !oly_sum(x, OLY_AXES(7)), OLY_SHAPE, "axis 7");
    FAILS(oly_sum, !oly_sum_with(OLY_ARG(x), along_7), OLY_SHAPE, "axis 7");
    FAILS(oly_reshape, !oly_reshape(x, 3), OLY_SHAPE, "float32[4]");
    FAILS(oly_reshape, !oly_reshape_shape(x, 1, shape), OLY_SHAPE, "float32[4]");
    FAILS(oly_apply, !oly_apply(NULL, x), OLY_INVALID, "NULL");
    FAILS(oly_apply, !oly_apply_n(NULL, 1, arrays), OLY_INVALID, "NULL");
    FAILS(oly_call, oly_call(NULL, OLY_IN(x), OLY_OUT(none)) != OLY_OK, OLY_INVALID, "NULL");
    FAILS(oly_call, oly_call_n(NULL, 1, arrays, 0, NULL) != OLY_OK, OLY_INVALID, "NULL");
    FAILS(oly_broadcast_to, !oly_broadcast_shape(OLY_ARG(x), 1, shape), OLY_SHAPE, "float32[4]");
    FAILS(oly_concatenate, !oly_concatenate_n(2, arrays, 0), OLY_INVALID, "NULL");
    FAILS(oly_zeros_like, !oly_zeros_like(none), OLY_INVALID, "NULL");
    FAILS(oly_max_pool, !oly_max_pool(x, .window = "?"), OLY_PARSE, "column");
    FAILS(oly_atleast_2d, !oly_atleast_2d(none), OLY_INVALID, "NULL");
    FAILS(oly_shard_count, oly_shard_count(none) == 0, OLY_INVALID, "NULL");
    FAILS(oly_sharding_shard, oly_sharding_shard(NULL, 0, NULL, 0, NULL, NULL) != OLY_OK, OLY_INVALID, "NULL");
}

static void empty_arrays_and_shards_are_valid(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array none = oly_zeros(OLY_FLOAT32, 0, 3), few = oly_device_put(oly_arange(3, OLY_INT32), oly_named(mesh, "x"));
    oly_array put = oly_device_put(none, oly_named(mesh, "x"));
    assert_int_equal(oly_get(oly_exp(put), NULL, 0), OLY_OK);
    assert_true(oly_item(oly_sum(put)) == 0 && oly_item(oly_prod(put)) == 1);
    int shards = 0, elements = 0;
    OLY_FOR_EACH_SHARD(s, few)
    {
        shards++;
        elements += (int)oly_size(s.data);
    }
    assert_true(shards == 8 && elements == 3);
    assert_true(oly_item(oly_sum(few)) == 3 && oly_item(oly_max(few)) == 2);
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* -- functions and loops ----------------------------------------------------------------------------------- */
static oly_array escaped;

static void fetches(const oly_array *in, oly_array *out, void *user)
{
    float x;
    (void)user;
    inner_line = __LINE__ + 1;
    oly_get(in[0], &x, sizeof x);
    out[0] = in[0];
}
static void escapes(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    escaped = out[0] = oly_mul(in[0], 2);
}
static void uses_escaped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    inner_line = __LINE__ + 1;
    out[0] = oly_add(in[0], escaped);
}
static void forgets(const oly_array *in, oly_array *out, void *user)
{
    (void)in, (void)user;
    out[0] = oly_ones(OLY_INT32, 1);
}
static void adds_wrongly(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    inner_line = __LINE__ + 1;
    out[0] = oly_add(in[0], oly_zeros(OLY_FLOAT32, 7));
}
static void doubles(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

static void traced_values_have_no_elements_yet(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 1, 0), y = NULL;
    FAILS(oly_get, oly_call(oly_jit(fetches, 1, 1), OLY_IN(x), OLY_OUT(y)) != OLY_OK || oly_last_status() != OLY_OK,
          OLY_TRACE, "traced float32[1]");
}

static void functions_that_cannot_be(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 5, 0), y = NULL, z = NULL;
    oly_fn f = oly_jit(doubles, 1, 1);
    assert_int_equal(oly_call(oly_jit(escapes, 1, 1), OLY_IN(x), OLY_OUT(y)), OLY_OK);
    FAILS(oly_add, !oly_apply(oly_jit(uses_escaped, 1, 1), x), OLY_TRACE, "ended");
    FAILS(oly_call, oly_call(oly_jit(forgets, 1, 2), OLY_IN(x), OLY_OUT(y, z)) == OLY_INVALID, OLY_INVALID, "forgets",
          "output 1");
    assert_true(y == NULL && z == NULL);
    FAILS(oly_add, !oly_apply(oly_jit(adds_wrongly, 1, 1), x), OLY_SHAPE, "float32[5]", "float32[7]");
    FAILS(oly_call, oly_call(f, OLY_IN(x, x), OLY_OUT(y)) == OLY_INVALID, OLY_INVALID, "doubles", "1", "2");
    FAILS(oly_call, oly_call(f, OLY_IN(x), OLY_OUT(y, z)) == OLY_INVALID, OLY_INVALID, "doubles");
    FAILS(oly_jit, !oly_jit(NULL, 1, 1), OLY_INVALID, "function");
    FAILS(oly_jit, !oly_jit(doubles, -1, 1), OLY_INVALID, "-1");
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_sharding split = oly_named(mesh, "x");
    oly_fn placed = oly_jit(doubles, 1, 1, .in_shardings = &split);
    oly_array whole = oly_device_put(x, oly_named(mesh, ""));
    FAILS(oly_apply, !oly_apply(placed, whole), OLY_SHARDING, "in_shardings", "P('x',)", "P()");
    assert_true(oly_item(oly_sum(oly_apply(placed, x))) == 10);
}

static void donated_arrays_are_gone(void **state)
{
    (void)state;
    oly_array x = oly_device_put(ones(OLY_FLOAT32, 1, 8, 0), oly_named(oly_make_mesh("x=8"), "x")), old = x;
    assert_int_equal(oly_call(oly_jit(doubles, 1, 1), OLY_IN(x), OLY_OUT(x)), OLY_OK);
    FAILS(oly_add, !oly_add(old, 1), OLY_DELETED, "float32[8]");
    assert_true(oly_item(oly_sum(x)) == 16);
}

static void grows(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_concatenate(0, carry[0], carry[0]);
}
static void widens(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_astype(carry[0], OLY_FLOAT64);
}
static void drops(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = NULL;
}

static void loops_that_cannot_be(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 4, 0), none = NULL, y = x;
    FAILS(oly_fori, oly_fori(0, 3, grows, 1, &y, NULL) == OLY_SHAPE, OLY_SHAPE, "carry 0", "float32[4]", "float32[8]");
    y = x;
    FAILS(oly_fori, oly_fori(0, 3, widens, 1, &y, NULL) == OLY_DTYPE, OLY_DTYPE, "float32[4]", "float64[4]");
    y = x;
    FAILS(oly_fori, oly_fori(0, 3, drops, 1, &y, NULL) == OLY_INVALID, OLY_INVALID, "carry 0");
    y = x;
    FAILS(oly_fori, oly_fori(0, 3, widens, 0, &y, NULL) == OLY_INVALID, OLY_INVALID, "0");
    y = x;
    FAILS(oly_fori, oly_fori(0, 3, NULL, 1, &y, NULL) == OLY_INVALID, OLY_INVALID, "body");
    y = x;
    FAILS(oly_fori, oly_fori(0, INT64_C(1) << 31, grows, 1, &y, NULL) == OLY_OVERFLOW, OLY_OVERFLOW, "2147483648");
    FAILS(oly_fori, oly_fori(0, 3, grows, 1, &none, NULL) != OLY_OK, OLY_INVALID, "NULL");
}

/* -- two threads ------------------------------------------------------------------------------------------------------ */
static void *adds_one(void *x)
{
    return oly_add((oly_array)x, 1);
}
static oly_array given_by_the_thread;
static void starts_a_thread(const oly_array *in, oly_array *out, void *user)
{
    pthread_t thread;
    void *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, adds_one, user), 0);
    assert_int_equal(pthread_join(thread, &got), 0);
    given_by_the_thread = got;
    out[0] = oly_mul(in[0], 2);
}

/* One thread is in a call of a function that is recorded. */
static void another_thread_is_refused_during_a_call(void **state)
{
    (void)state;
    oly_array x = ones(OLY_FLOAT32, 1, 4, 0), y = NULL;
    oly_call(oly_jit(starts_a_thread, 1, 1, .user = x), OLY_IN(x), OLY_OUT(y));
    assert_null(given_by_the_thread);
    assert_int_equal(oly_last_status(), OLY_STATE);
    assert_non_null(strstr(oly_last_error(), "another thread is in a call"));
    oly_clear_error();
    assert_float_equal(oly_item(oly_sum(y)), 8, 0); /* does not affect this thread */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, adds_one, x), 0); /* one after the other */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(oly_last_status(), OLY_OK);
}

/* -- one error, kept --------------------------------------------------------------------------------------- */
static void doubled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2);
}

/* Whatever they held before; and earlier errors do not matter. */
static void results_of_failed_calls_are_null(void **state)
{
    (void)state;
    oly_array x = oly_arange(4, OLY_FLOAT32), old[] = {x, x}, three = oly_arange(3, OLY_FLOAT32), y = x;
    FAILS(oly_sort_together, oly_sort_together(2, ((oly_array[]){x, x}), 0, 3, old), OLY_INVALID, "2 operands", "3");
    assert_true(!old[0] && !old[1]);
    old[0] = old[1] = x;
    FAILS(oly_sort_together, oly_sort_together(2, ((oly_array[]){x, three}), 0, 1, old), OLY_SHAPE, "operand 1");
    assert_true(!old[0] && !old[1]);
    old[0] = old[1] = x;
    FAILS(oly_top_k, oly_top_k(x, 5, &old[0], &old[1]), OLY_SHAPE, "5");
    assert_true(!old[0] && !old[1]);
    FAILS(oly_switch, oly_switch(1.5, 2, ((const oly_function[]){doubled, doubled}), 1, &x, 1, &y, NULL), OLY_DTYPE,
          "not an integer");
    assert_null(y);
    assert_null(oly_reshape(x, 3));
    assert_int_equal(oly_top_k(x, 2, &old[0], &old[1]), OLY_OK);
    assert_int_equal(oly_sort_together(2, ((oly_array[]){x, x}), 0, 1, old), OLY_OK);
    assert_true(oly_error_unseen());
    oly_clear_error();
}

static void the_first_error_is_kept_and_null_goes_through(void **state)
{
    (void)state;
    oly_array bad = oly_add(ones(OLY_FLOAT32, 1, 4, 0), ones(OLY_FLOAT32, 1, 5, 0));
    int line = __LINE__ - 1;
    char here[40], first[1000];
    snprintf(here, sizeof here, "test_errors.c:%d", line);
    snprintf(first, sizeof first, "%s", oly_last_error());
    assert_non_null(strstr(first, here));
    oly_array after = oly_sum(oly_mul(oly_reshape(bad, 2, 2), 3));
    assert_null(after);
    assert_null(oly_matmul(bad, bad));
    assert_null(oly_update(bad, "0", 1));
    assert_null(oly_concatenate(0, bad, bad));
    assert_null(oly_device_put(bad, oly_single_device(oly_get_device(0))));
    assert_null(oly_neg(oly_slice(bad, "oops")));
    assert_int_equal(oly_get(after, NULL, 0), OLY_SHAPE);
    assert_int_equal(oly_block_until_ready(after), OLY_SHAPE);
    assert_null(oly_apply(oly_jit(doubles, 1, 1), bad));
    oly_reshape(ones(OLY_INT32, 1, 3, 0), 4); /* a second one */
    assert_string_equal(oly_last_error(), first);
    oly_clear_error();
    assert_string_equal(oly_last_error(), "");
    assert_int_equal(oly_last_status(), OLY_OK);
    FAILS(oly_neg, !oly_neg((oly_array)NULL), OLY_INVALID, "NULL");
}

/* It has no threads: it must not wait for them. */
static void children_do_not_call(void **state)
{
    (void)state;
    int status = -1;
    oly_array x = oly_arange(4, OLY_FLOAT32);
    pid_t child = fork();
    if (child == 0)
        _exit(!oly_sum(x) && oly_last_status() == OLY_STATE && strstr(oly_last_error(), "forked") ? 7 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_true(oly_item(oly_sum(x)) == 6);
}

static void starting_twice(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    assert_int_equal(oly_last_status(), OLY_STATE);
    oly_clear_error();
}

/* Questions about shardings and types that no array has; they once read beyond what there is. */
static void questions_that_make_no_sense(void **state)
{
    (void)state;
    int64_t shape[] = {8}, start[13], extent[13];
    oly_sharding s = oly_named(oly_make_mesh("q=1"), ""), t = oly_named(oly_make_mesh("r=1"), "");
    oly_array x = ones(OLY_INT32, 1, 8, 0);
#define OLY_INVALID_SAYS(part)                                                                                         \
    assert_int_equal(oly_last_status(), OLY_INVALID);                                                                  \
    assert_non_null(strstr(oly_last_error(), part));                                                                   \
    oly_clear_error()
    assert_int_equal(oly_sharding_shard(s, 13, shape, 0, start, extent), OLY_INVALID);
    OLY_INVALID_SAYS("not 13");
    assert_int_equal(oly_sharding_shard(s, 1, NULL, 0, start, extent), OLY_INVALID);
    OLY_INVALID_SAYS("NULL");
    assert_int_equal(oly_sharding_shard(s, 1, shape, 0, NULL, extent), OLY_INVALID);
    OLY_INVALID_SAYS("NULL");
    assert_false(oly_sharding_equivalent(s, t, 13, shape));
    OLY_INVALID_SAYS("not 13");
    assert_false(oly_sharding_equivalent(s, t, 1, NULL));
    OLY_INVALID_SAYS("NULL");
    assert_int_equal(oly_promote_types(OLY_BOOL, (oly_dtype)-1), OLY_N_DTYPES);
    OLY_INVALID_SAYS("does not exist");
    assert_null(oly_roll_axes(x, 0, NULL, NULL));
    OLY_INVALID_SAYS("without axes");
    oly_array y = oly_atleast_1d(x);
    oly_free(y); /* not x */
    assert_int_equal(oly_block_until_ready(x), OLY_OK);
}

static void unseen_errors_are_told_at_the_end(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_clear_error();
    oly_reshape(ones(OLY_INT32, 1, 3, 0), 4);
    assert_int_equal(oly_finalize(), 1);
    oly_clear_error();
}

#define STARTED(test) cmocka_unit_test_setup_teardown(test, check_start, check_finish)
static const struct CMUnitTest tests[] = {
    STARTED(shapes_that_do_not_fit),
    STARTED(element_types_that_do_not_fit),
    STARTED(numbers_out_of_range),
    STARTED(sizes_that_overflow),
    STARTED(numbers_that_overflow),
    STARTED(notations_that_cannot_be_read),
    STARTED(devices_and_shardings_that_do_not_fit),
    STARTED(handles_of_another_kind),
    STARTED(functions_that_are_gone_or_call_themselves),
    STARTED(meshes_of_all_devices),
    STARTED(messages_name_the_operation),
    STARTED(null_handles),
    STARTED(empty_arrays_and_shards_are_valid),
    STARTED(traced_values_have_no_elements_yet),
    STARTED(functions_that_cannot_be),
    STARTED(donated_arrays_are_gone),
    STARTED(loops_that_cannot_be),
    STARTED(results_of_failed_calls_are_null),
    STARTED(another_thread_is_refused_during_a_call),
    STARTED(the_first_error_is_kept_and_null_goes_through),
    STARTED(children_do_not_call),
    STARTED(starting_twice),
    STARTED(questions_that_make_no_sense),
    cmocka_unit_test(unseen_errors_are_told_at_the_end),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
