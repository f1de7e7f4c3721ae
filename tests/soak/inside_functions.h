/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's own code in random programs: prints, checks, callbacks, a derivative and kernels. Their values are in evaluate_inside.c.
 * Included by operations.c, and by programs that print.c has printed (cc -Itests/soak). */
#ifndef SOAK_INSIDE_FUNCTIONS_H
#define SOAK_INSIDE_FUNCTIONS_H
#include <olympus.h>
#include <stdbool.h>
#include <string.h>

enum { INSIDE_MOST_RANK = 4, INSIDE_MISSING = 7 };

static inline oly_array inside_printed(oly_array x)
{
    oly_debug_print("{}", x);
    return x;
}

static inline oly_array inside_checked(oly_array x)
{
    oly_check(oly_eq(x, x), "{} differs from itself", x);
    return x;
}

/* -- callbacks ------------------------------------------------------------------------------------------------------ */

static inline int inside_reverse(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    size_t bytes = oly_dtype_size(in->dtype);
    int64_t n = 1;
    (void)called, (void)user;
    for (int d = 0; d < in->rank; d++)
        n *= in->shape[d];
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out->data + bytes * (size_t)(n - 1 - i), (char *)in->data + bytes * (size_t)i, bytes);
    return 0;
}

/* All elements in the other order, by one function for the whole array. */
static inline oly_array inside_reversed(oly_array x, bool pure)
{
    oly_array y = NULL;
    oly_callback_with(inside_reverse, NULL, OLY_CALLBACK_OF(.pure = pure), OLY_IN(x), OLY_TYPES(OLY_TYPE_LIKE(x)),
                      OLY_OUT(y));
    return y;
}

static inline int inside_number(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    int64_t n = 1;
    (void)called, (void)in, (void)user;
    for (int d = 0; d < out->rank; d++)
        n *= out->shape[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i, at = 0, stride = 1;
        for (int d = out->rank - 1; d >= 0; d--) {
            at += (out->origin[d] + left % out->shape[d]) * stride;
            left /= out->shape[d];
            stride *= out->whole[d];
        }
        ((int32_t *)out->data)[i] = (int32_t)at;
    }
    return 0;
}

/* The number of each element in the whole array, by a function for each shard. */
static inline oly_array inside_numbered(oly_array x)
{
    static const char *const factors[] = {"->", "a->a", "ab->ab", "abc->abc", "abcd->abcd"};
    oly_array y = NULL;
    oly_callback_with(inside_number, NULL, OLY_CALLBACK_OF(.pure = true, .factors = factors[oly_rank(x)]), OLY_IN(x),
                      OLY_TYPES(oly_result_type_of(OLY_INT32, oly_rank(x), oly_shape(x))), OLY_OUT(y));
    return y;
}

/* -- a derivative of its own: not the true one ------------------------------------------------------------------------ */

static inline void inside_custom_plain(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_mul(in[0], in[0]), in[0]);
}
static inline void inside_custom_forward(const oly_array *in, oly_array *out, void *user)
{
    inside_custom_plain(in, out, user);
    out[1] = in[0];
}
static inline void inside_custom_backward(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[1], oly_add(oly_mul(2, in[0]), 5));
}
static inline oly_array inside_custom(oly_array x)
{
    oly_array y = NULL;
    oly_fn f = oly_custom_vjp(inside_custom_plain, inside_custom_forward, inside_custom_backward, 1, 1, 1);
    oly_call(f, OLY_IN(x), OLY_OUT(y));
    return y;
}

/* -- kernels --------------------------------------------------------------------------------------------------------- */

static inline double inside_element(const oly_shard_part *a, int64_t i)
{
    return a->dtype == OLY_INT32 ? (double)((const int32_t *)a->data)[i] : (double)((const float *)a->data)[i];
}
static inline void inside_store(oly_shard_part *a, int64_t i, double x)
{
    if (a->dtype == OLY_INT32)
        ((int32_t *)a->data)[i] = (int32_t)(uint32_t)(int64_t)x; /* wraps around */
    else
        ((float *)a->data)[i] = (float)x;
}

/* The neighbour before, and twice that after, along every dimension; at an end without one, a number instead. */
static inline void inside_stencil(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    int64_t n = 1, index[INSIDE_MOST_RANK];
    (void)called, (void)user;
    for (int d = 0; d < out->rank; d++)
        n *= out->shape[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i, at = 0, stride = 1;
        double sum = 0;
        for (int d = out->rank - 1; d >= 0; d--) {
            index[d] = left % out->shape[d] + in->before[d];
            left /= out->shape[d];
            at += index[d] * stride;
            stride *= in->shape[d];
        }
        stride = 1;
        for (int d = out->rank - 1; d >= 0; d--) {
            sum += index[d] > 0 ? inside_element(in, at - stride) : INSIDE_MISSING;
            sum += 2 * (index[d] + 1 < in->shape[d] ? inside_element(in, at + stride) : INSIDE_MISSING);
            stride *= in->shape[d];
        }
        inside_store(out, i, sum);
    }
}

/* edge: an oly_edge. */
static inline oly_array inside_neighbours(oly_array x, int edge)
{
    static const char *const factors[] = {"->", "a->a", "ab->ab", "abc->abc", "abcd->abcd"};
    static oly_kernel kernels[4][INSIDE_MOST_RANK + 1];
    oly_array y = NULL;
    int rank = oly_rank(x);
    oly_kernel *kernel = &kernels[edge][rank];
    *kernel = (oly_kernel){
        .name = "neighbours", .factors = factors[rank], .cpu = inside_stencil, .dtypes = "int32, float32", .flops = 4};
    for (int d = 0; d < rank; d++) {
        kernel->halo[0].radius[d] = 1;
        kernel->halo[0].edge[d] = (oly_edge)edge;
    }
    oly_kernel_call(kernel, OLY_IN(x), OLY_OUT(y));
    return y;
}

static inline void inside_multiply(const oly_inside *called, const oly_shard_part *in, oly_shard_part *out, void *user)
{
    int64_t n = out->shape[0], m = in[0].shape[1], k = out->shape[1];
    (void)called, (void)user;
    for (int64_t i = 0; i < n * k; i++) {
        double sum = 0;
        uint32_t whole = 0; /* wraps around, as the library's own */
        for (int64_t j = 0; j < m; j++) {
            double x = inside_element(&in[0], i / k * m + j), y = inside_element(&in[1], j * k + i % k);
            sum += x * y;
            if (out->dtype == OLY_INT32)
                whole += (uint32_t)(int32_t)x * (uint32_t)(int32_t)y;
        }
        inside_store(out, i, out->dtype == OLY_INT32 ? (double)(int32_t)whole : sum);
    }
}
static inline void inside_multiply_backward(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_matmul(in[3], oly_transpose(in[1]));
    out[1] = oly_matmul(oly_transpose(in[0]), in[3]);
}
static inline oly_array inside_product(oly_array x, oly_array y)
{
    static const oly_kernel kernel = {.name = "product",
                                      .factors = "ij,jk->ik",
                                      .cpu = inside_multiply,
                                      .vjp = inside_multiply_backward,
                                      .dtypes = "int32, float32",
                                      .flops = 2};
    oly_array z = NULL;
    oly_kernel_call(&kernel, OLY_IN(x, y), OLY_OUT(z));
    return z;
}
#endif
