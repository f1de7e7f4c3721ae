/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of elements in boxes, their offsets, and arrays of numbers, for the kernels of operations of local.h. */
#ifndef OLY_CUDA_BOXES_H
#define OLY_CUDA_BOXES_H
#include "combining.h"

/* Indexes in `rank` dimensions of a row-major number. */
OLY_DEVICE void oly_unravel(int rank, const int64_t *extent, int64_t number, int64_t *at)
{
    for (int d = rank - 1; d > 0; d--) {
        int64_t next = number / extent[d];
        at[d] = number - next * extent[d];
        number = next;
    }
    if (rank > 0)
        at[0] = number;
}
OLY_DEVICE int64_t oly_offset(int rank, const int64_t *at, const int64_t *stride)
{
    int64_t offset = 0;
    for (int d = 0; d < rank; d++)
        offset += at[d] * stride[d];
    return offset;
}
/* Of a row-major number. */
OLY_DEVICE int64_t oly_offset_in(const oly_cuda_dims &d, int64_t number)
{
    int64_t offset = 0;
    for (int i = d.rank - 1; i > 0; i--) {
        int64_t next = number / d.extent[i];
        offset += (number - next * d.extent[i]) * d.stride[i];
        number = next;
    }
    return d.rank > 0 ? offset + number * d.stride[0] : 0;
}
/* Of line `number` of a box: its row-major number among all dimensions but one. */
OLY_DEVICE int64_t oly_line_offset(int rank, const int64_t *extent, const int64_t *stride, int without, int64_t number)
{
    int64_t offset = 0;
    for (int d = rank - 1; d >= 0; d--) {
        if (d == without)
            continue;
        int64_t next = number / extent[d];
        offset += (number - next * extent[d]) * stride[d];
        number = next;
    }
    return offset;
}

/* oly_read and oly_write with functions of their own for narrow types: inlined wherever elements are used, they would be most of a
 * program, and of the time it takes to compile. */
__device__ __noinline__ static float oly_widened_at(int dtype, const char *base, int64_t i)
{
    float x;
    oly_read(dtype, base, i, &x);
    return x;
}
__device__ __noinline__ static void oly_narrow_to(int dtype, char *base, int64_t i, float x)
{
    oly_write(dtype, base, i, x);
}
template <class A> OLY_DEVICE void oly_load(int dtype, const char *base, int64_t i, A *x)
{
    oly_read(dtype, base, i, x);
}
OLY_DEVICE void oly_load(int dtype, const char *base, int64_t i, float *x)
{
    *x = dtype == OLY_T_f32 ? ((const float *)base)[i] : oly_widened_at(dtype, base, i);
}
template <class A> OLY_DEVICE void oly_store(int dtype, char *base, int64_t i, A x)
{
    oly_write(dtype, base, i, x);
}
OLY_DEVICE void oly_store(int dtype, char *base, int64_t i, float x)
{
    if (dtype == OLY_T_f32)
        ((float *)base)[i] = x;
    else
        oly_narrow_to(dtype, base, i, x);
}

/* An element of a type that is known when the kernel is compiled, in which it is computed as an A; and back. */
template <int dtype, class T, class A> struct oly_known {
    OLY_DEVICE A wide(T x)
    {
        if constexpr (dtype == OLY_T_f16)
            return oly_float_of_half(x);
        else if constexpr (dtype == OLY_T_bf16)
            return oly_float_of_bfloat(x);
        else
            return x;
    }
    OLY_DEVICE T narrow(A x)
    {
        if constexpr (dtype == OLY_T_f16)
            return oly_half_of_float(x);
        else if constexpr (dtype == OLY_T_bf16)
            return oly_bfloat_of_float(x);
        else
            return x;
    }
};

/* To the type of the element. */
template <class A> OLY_DEVICE A oly_rounded(int, A x)
{
    return x;
}
OLY_DEVICE float oly_rounded(int dtype, float x)
{
    uint64_t bits;
    if (dtype == OLY_T_f32)
        return x;
    oly_narrow_to(dtype, (char *)&bits, 0, x);
    return oly_widened_at(dtype, (const char *)&bits, 0);
}

/* -- two elements, as in cpu/two_elements.h: products of complex numbers are C's, their order knows no NaN ----------------------------- */
template <class A> OLY_DEVICE A oly_joined(int c, A x, A y)
{
    return oly_combined(c, x, y);
}
/* Where both parts are NaN, an infinite factor makes an infinite product (annex G of the C standard). */
#define OLY_IS_INFINITE(x) (fabs((double)(x)) == (double)INFINITY)
template <class T> OLY_DEVICE T oly_unit(T x)
{
    return (T)copysign(OLY_IS_INFINITE(x) ? 1.0 : 0.0, (double)x);
}
template <class T> OLY_DEVICE T oly_no_nan(T x)
{
    return x != x ? (T)copysign(0.0, (double)x) : x;
}
template <class T> __device__ __noinline__ static void oly_infinite_product(T a, T b, T c, T d, T *re, T *im)
{
    bool again = false;
    if (OLY_IS_INFINITE(a) || OLY_IS_INFINITE(b)) {
        a = oly_unit(a), b = oly_unit(b), c = oly_no_nan(c), d = oly_no_nan(d);
        again = true;
    }
    if (OLY_IS_INFINITE(c) || OLY_IS_INFINITE(d)) {
        c = oly_unit(c), d = oly_unit(d), a = oly_no_nan(a), b = oly_no_nan(b);
        again = true;
    }
    if (!again &&
        (OLY_IS_INFINITE(a * c) || OLY_IS_INFINITE(b * d) || OLY_IS_INFINITE(a * d) || OLY_IS_INFINITE(b * c))) {
        a = oly_no_nan(a), b = oly_no_nan(b), c = oly_no_nan(c), d = oly_no_nan(d);
        again = true;
    }
    if (again)
        *re = (T)INFINITY * (a * c - b * d), *im = (T)INFINITY * (a * d + b * c);
}
#define OLY_JOINED_COMPLEX(T, R, of)                                                                                   \
    OLY_DEVICE T oly_joined(int c, T x, T y)                                                                           \
    {                                                                                                                  \
        if (c == OLY_COMBINE_SUM)                                                                                      \
            return of(x.re + y.re, x.im + y.im);                                                                       \
        if (c != OLY_COMBINE_PROD)                                                                                     \
            return (c == OLY_COMBINE_MAX ? OLY_BEFORE(y, x) : OLY_BEFORE(x, y)) ? x : y;                               \
        R re = x.re * y.re - x.im * y.im, im = x.re * y.im + x.im * y.re;                                              \
        if (re != re && im != im)                                                                                      \
            oly_infinite_product<R>(x.re, x.im, y.re, y.im, &re, &im);                                                 \
        return of(re, im);                                                                                             \
    }
OLY_JOINED_COMPLEX(oly_c64, float, oly_w_of)
OLY_JOINED_COMPLEX(oly_c128, double, oly_z_of)

/* Elements of int32 or int64. */
OLY_DEVICE int64_t oly_load_number(bool wide, const char *base, int64_t i)
{
    return wide ? ((const int64_t *)base)[i] : ((const int32_t *)base)[i];
}
OLY_DEVICE void oly_store_number(bool wide, char *base, int64_t i, int64_t value)
{
    if (wide)
        ((int64_t *)base)[i] = value;
    else
        ((int32_t *)base)[i] = (int32_t)value;
}
#endif
