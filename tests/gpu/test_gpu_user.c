/* SPDX-License-Identifier: BSD-3-Clause */
/* run: devices=4  Kernels of the program on GPUs (oly_kernel.cuda): they launch in the device's stream, on its memory, with the results of the
 * function for CPUs: halos with all kinds of edges, blocks with strides, scratch memory, maps, loops; and one that fails.
 * tests/gpu/test_platform.sh runs it on an emulated GPU, whose kernels (emulator/toy.cu) it launches; on CPUs .cuda is not called. */
#include "check.h"
#include "check_session.h"
#include "toy.h"
#include <cuda.h>
#include <string.h>

enum { WIDTH = 12 };
static oly_mesh mesh;
static bool fails;

static bool on_gpus(void)
{
    return strcmp(oly_device_platform(oly_get_device(0)), "cuda") == 0;
}

static int begins(void **state)
{
    int st = check_open(state);
    mesh = oly_make_mesh("x=4");
    fails = false;
    return st;
}

/* -- y = 2 x + 1 of the left neighbour -------------------------------------------------------------------------------------------- */

static void left_on_cpu(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const float *x = in[0].data;
    float *y = out[0].data;
    int64_t radius = in[0].before[1];
    (void)user;
    assert_null(called->stream);
    for (int64_t i = 0; i < out[0].shape[0]; i++)
        for (int64_t j = 0; j < out[0].shape[1]; j++)
            y[i * out[0].shape[1] + j] =
                2 * x[i * in[0].stride[0] + (j + (radius > 0 ? radius - 1 : 0)) * in[0].stride[1]] + 1;
}

static CUresult affine(CUfunction f, CUdeviceptr to, CUdeviceptr from, int64_t n, float factor, CUstream stream)
{
    toy_task task = {.to = (float *)to, .from = (const float *)from, .count = n, .factor = factor, .offset = 1};
    void *parameters[] = {&task};
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

/* Row by row, by way of scratch memory. */
static CUresult launch_left(const oly_inside *called, const oly_shard_part *in, const oly_shard_part *out)
{
    static const unsigned char image[16] = {0x50, 0xed, 0x55, 0xba}; /* the emulator's kernels */
    CUmodule module;
    CUfunction f;
    CUresult r = cuModuleLoadData(&module, image);
    r = r == CUDA_SUCCESS ? cuModuleGetFunction(&f, module, "toy_affine") : r;
    int64_t n = out[0].shape[1], radius = in[0].before[1], width = in[0].stride[0];
    CUdeviceptr x = (CUdeviceptr)in[0].data, y = (CUdeviceptr)out[0].data, between = (CUdeviceptr)called->scratch;
    CUstream stream = called->stream;
    for (int64_t i = 0; i < out[0].shape[0] && r == CUDA_SUCCESS && n > 0; i++) {
        CUdeviceptr from = x + 4 * (CUdeviceptr)(i * width + (radius > 0 ? radius - 1 : 0));
        r = cuMemcpyDtoDAsync(between, from, 4 * (size_t)n, stream);
        r = r == CUDA_SUCCESS ? affine(f, y + 4 * (CUdeviceptr)(i * n), between, n, 2, stream) : r;
    }
    return r;
}

static void left_on_gpu(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    (void)user;
    assert_non_null(called->stream);
    assert_int_equal(in[0].stride[1], 1);
    if (fails)
        snprintf(called->message, called->message_size, "no kernel for %d rows", (int)in[0].shape[0]);
    else if (launch_left(called, in, out) != CUDA_SUCCESS)
        snprintf(called->message, called->message_size, "it cannot be launched");
}

static oly_kernel left = {
    .name = "left", .factors = "ij->ij", .cpu = left_on_cpu, .scratch = 4 * WIDTH, .dtypes = "float32"};

static oly_array numbers(void)
{
    return oly_reshape(oly_arange(8 * WIDTH, OLY_FLOAT32), 8, WIDTH);
}

static oly_array called(oly_array x, oly_kernel_function cuda, int64_t *on_host)
{
    oly_device_counts before, after;
    oly_array y = NULL;
    left.cuda = cuda;
    oly_get_device_counts(&before);
    oly_kernel_call(&left, OLY_IN(x), OLY_OUT(y));
    assert_non_null(y);
    oly_block_until_ready(y);
    oly_get_device_counts(&after);
    *on_host = after.on_host - before.on_host;
    return y;
}

static void same(oly_array x, oly_array y)
{
    assert_true(oly_item(oly_all(oly_eq(x, y))) == 1);
}

/* On the host by .cpu, and on the device by .cuda. */
static void both(oly_array x)
{
    int64_t on_host;
    oly_array want = called(x, NULL, &on_host);
    assert_int_equal(on_host > 0, on_gpus());
    oly_array got = called(x, left_on_gpu, &on_host);
    assert_int_equal(on_host, 0);
    same(got, want);
}

static void it_launches_on_the_device(void **state)
{
    (void)state;
    const char *const shardings[] = {"x", "None, x", ""};
    for (int radius = 0; radius <= 2; radius++)
        for (int edge = 0; edge <= OLY_EDGE_NEAREST; edge++)
            for (int k = 0; k < 3; k++) {
                if (radius > 0 && edge == OLY_EDGE_ENDS) /* nothing in front of the first column */
                    continue;
                left.halo[0] = (oly_halo){.radius = {0, radius}, .edge = {0, (oly_edge)edge}};
                both(oly_device_put(numbers(), oly_named(mesh, shardings[k])));
            }
    left.halo[0] = (oly_halo){{0}, {0}};
    both(oly_transpose(oly_device_put(oly_transpose(numbers()), oly_named(mesh, "x"))));
}

/* -- in functions ------------------------------------------------------------------------------------------------------------------- */

static void element(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_kernel_call(&left, OLY_IN(in[0]), OLY_OUT(out[0]));
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_kernel_call(&left, OLY_IN(oly_mul(carry[0], 0.25)), OLY_OUT(carry[0]));
    carry[0] = oly_sub(carry[0], 1);
}

static void steps(const oly_array *in, oly_array *out, void *user)
{
    out[0] = in[0];
    oly_fori(0, 7, step, 1, out, user);
}

static void it_is_part_of_loops_and_maps(void **state)
{
    (void)state;
    oly_array x = oly_device_put(numbers(), oly_named(mesh, "x")), z = NULL, batch = oly_stack(0, x, x);
    left.cuda = left_on_gpu;
    oly_fn f = oly_jit(steps, 1, 1);
    for (int k = 0; k < 6; k++) { /* beside runs of steps that are replayed as graphs */
        oly_array y = NULL;
        oly_call(f, OLY_IN(x), OLY_OUT(y));
        same(y, oly_mul(x, 0.0078125));
    }
    oly_vmap(element, NULL, OLY_IN(batch), OLY_AXES_OF(0), OLY_OUT(z), OLY_AXES_OF(0));
    same(z, oly_add(oly_mul(batch, 2), 1));
}

static void what_it_says_is_an_error(void **state)
{
    (void)state;
    oly_array x = oly_device_put(numbers(), oly_named(mesh, "x")), y = NULL;
    if (!on_gpus())
        skip();
    oly_set_error_mode(OLY_ERRORS_RETURN);
    fails = true;
    left.cuda = left_on_gpu;
    oly_kernel_call(&left, OLY_IN(x), OLY_OUT(y));
    oly_block_until_ready(y);
    assert_non_null(strstr(oly_last_error(), "kernel left, on device 0: no kernel for 2 rows"));
    oly_clear_error();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_launches_on_the_device, begins, check_close),
        cmocka_unit_test_setup_teardown(it_is_part_of_loops_and_maps, begins, check_close),
        cmocka_unit_test_setup_teardown(what_it_says_is_an_error, begins, check_close)};
    return CHECK_MAIN(tests);
}
