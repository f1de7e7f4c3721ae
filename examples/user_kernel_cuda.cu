/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel of your own in CUDA, beside the C function that computes it on CPUs: y = tanh(x) * rate, on shards.
 *
 * .cuda is called on the host for each GPU; it launches in called->stream, on memory of the device, and does not wait. What it writes to
 * called->message is the error of the call.
 *
 * Build:  nvcc -arch=native examples/user_kernel_cuda.cu -Iinclude -Lbuild -lolympus -Xlinker -rpath=build -o user_kernel_cuda
 * Run:    mpirun -n 2 ./user_kernel_cuda      (any ranks, any number of devices that divides 4096)
 * Prints: the largest difference from the same in operations of the library; from process 0. */
#include <olympus.h>
#include <cmath>
#include <cstdio>

static __global__ void damp(const float *x, float *y, int64_t n, float rate)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
        y[i] = tanhf(x[i]) * rate;
}

static void damp_on_gpu(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    const int64_t n = in[0].shape[0];
    if (n == 0)
        return;
    damp<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)called->stream>>>(
        (const float *)in[0].data, (float *)out[0].data, n, *(const float *)user);
    if (cudaError_t failed = cudaGetLastError())
        snprintf(called->message, called->message_size, "%s", cudaGetErrorString(failed));
}

static void damp_on_cpu(const oly_inside *, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    for (int64_t i = 0; i < in[0].shape[0]; i++)
        ((float *)out[0].data)[i] = std::tanh(((const float *)in[0].data)[i]) * *(const float *)user;
}

int main(int argc, char **argv)
{
    static float rate = 0.5f;
    oly_kernel kernel = {};
    kernel.name = "damp";
    kernel.factors = "i->i";
    kernel.cpu = damp_on_cpu;
    kernel.cuda = damp_on_gpu;
    kernel.user = &rate;
    kernel.dtypes = "float32";

    oly_init(&argc, &argv);
    char axes[32];
    snprintf(axes, sizeof axes, "i=%d", oly_device_count());
    oly_array x = oly_device_put(oly_linspace(-3, 3, 4096, OLY_FLOAT32), oly_named(oly_make_mesh(axes), "i")), y = NULL;
    oly_kernel_call(&kernel, OLY_IN(x), OLY_OUT(y));
    oly_array difference = oly_max(oly_abs(oly_sub(y, oly_mul(oly_tanh(x), rate))));
    if (oly_process_index() == 0)
        printf("largest difference: %s\n", oly_item(difference) < 1e-6 ? "less than 1e-6" : "too large");
    return oly_finalize();
}
