/* SPDX-License-Identifier: BSD-3-Clause */
/* The error function, its complement and its inverse of one element, as vector_math.h: no branches, no tables; erf and erfc of float32
 * are in math_single.h. Used by elementwise_math.c. The inverses have M. Giles's polynomials (Approximating the erfinv function, 2012), as JAX's
 * do. */
#ifndef OLY_MATH_ERROR_H
#define OLY_MATH_ERROR_H
#include "cpu/math_exponential.h"

/* |x| <= 1: 2^-55 */
INLINE double erf_near(double x)
{
    return x * POLYNOMIAL(x * x, -0x1.29b9f1b3df556p-38, 0x1.7f072188e194dp-34, -0x1.4e607b41a6416p-30,
                          0x1.fc4356498c2d9p-27, -0x1.5f6d925a0bc7ap-23, 0x1.b9e6509b9867dp-20, -0x1.f4d2561aeafd4p-17,
                          0x1.f9a326c233146p-14, -0x1.c02db3feeb579p-11, 0x1.565bcd0e6502dp-8, -0x1.b82ce312889bap-6,
                          0x1.ce2f21a042bdep-4, -0x1.812746b0379e7p-2, 0x1.20dd750429b6dp+0);
}
/* erfc(a) for 0.45 <= a <= 27.5 is e^(-a^2) p(t) / (1 + 2a) with t = (a - 3) / (a + 3): 2^-54; the square is not rounded. */
INLINE double erfc_far(double a)
{
    double t = (a - 3) / (a + 3);
    double p = POLYNOMIAL(t, -0x1.db9921507ca51p-27, 0x1.69aa71e999dc6p-26, 0x1.d08048beb2902p-24,
                          -0x1.f650a7fad8d76p-24, -0x1.505480594f11bp-21, 0x1.6cc9337af6fdfp-22, 0x1.d31296a810d0bp-19,
                          -0x1.84b661eabfd97p-21, -0x1.5149f2ca87592p-16, 0x1.4c031f2c32c33p-18, 0x1.065ab7cc601ffp-13,
                          -0x1.b9120edbaf6e5p-14, -0x1.98db5695f8135p-11, 0x1.ef1bdc8679eabp-10, 0x1.4b884e685782ep-9,
                          -0x1.8574c40af5b95p-6, 0x1.17ca2877e0b53p-4, -0x1.e88b803a4b2c7p-4, 0x1.098366a5b4a20p-3,
                          -0x1.85a15c58aa4e4p-5, -0x1.15c084bb9e8f9p-3, 0x1.40c522d7e4987p+0);
    double square = a * a, lost = PRODUCT_ERROR(a, a, square);
    double k = FMA(-square, LOG2_E, ROUNDER) - ROUNDER;
    double r = FMA(-k, LN2_LO, FMA(-k, LN2_HI, -square)) - lost, f = p / (1 + 2 * a);
    return scaled(FMA(f, expm1_long(r), f), k);
}
INLINE double erf_f64(double x)
{
    double far = with_sign_of(1 - erfc_far(clamp(fabs(x), 0.45, 6)), x), near = erf_near(clamp(x, -1, 1));
    return fabs(x) > 1 ? far : near;
}
INLINE double erfc_f64(double x)
{
    double far = erfc_far(clamp(fabs(x), 0.45, 27.5)), near = 1 - erf_near(clamp(x, -1, 1));
    return fabs(x) < 0.5 ? near : x < 0 ? 2 - far : far;
}

/* JAX's, bit for bit: normal random numbers depend on it. */
INLINE float erf_inv_f32(float x)
{
    static const float near_zero[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                      -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                      -0.00417768164f,  0.246640727f,    1.50140941f};
    static const float near_one[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                                     -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
    float w = -log1p_f32(x * -x), a = __builtin_fabsf(x);
    bool near = w < 5;
    w = near ? w - 2.5f : __builtin_sqrtf(w) - 3;
    float p = near ? near_zero[0] : near_one[0];
    UNROLLED
    for (int i = 1; i < 9; i++)
        p = fused(p, w, near ? near_zero[i] : near_one[i]);
    return a == 1 ? x * (float)INFINITY : p * x;
}
/* JAX's log(1 + x) for -1 <= x <= 0. Near zero its polynomials are off by up to 2^-46, and so normal random numbers
 * depend on them. */
INLINE double log1p_as_jax(double x)
{
    double x2 = x * x;
    double n = POLYNOMIAL(x, 4.5270000862445199635e-5, 0.49854102823193375972, 6.5787325942061044847,
                          29.911919328553073277, 60.949667980987787058, 57.112963590585538103, 20.039553499201281259);
    double d = POLYNOMIAL(x, 1., 15.062909083469192043, 83.047565967967209469, 221.76239823732856465,
                          309.09872225312059774, 216.42788614495947685, 60.118660497603843919);
    double near = x + FMA(-0.5, x2, (x * x2) * (n / d));
    return fabs(x) > 0.41421356237309504880 ? log_f64(1 + x) : near;
}
INLINE double erf_inv_f64(double x)
{
    double w = -log1p_as_jax(x * -x), root = __builtin_sqrt(w), v = w - 3.125, a = fabs(x);
    double near = POLYNOMIAL(
        v, -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
        -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
        -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
        -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356);
    v = root - 3.25;
    double middle = POLYNOMIAL(
        v, 2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
        0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635);
    v = root - 5;
    double far = POLYNOMIAL(v, -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                            -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08,
                            2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                            -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
                            7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026,
                            1.0103004648645343977, 4.8499064014085844221);
    double y = (w < 6.25 ? near : w < 16 ? middle : far) * x;
    return a == 1 ? x * INFINITY : y;
}
#endif
