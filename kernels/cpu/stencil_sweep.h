/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of taps over a line of vectors: out[p] = c[0] * in[0][p], then fused with c[t] * in[t][p], for p in [0, n). Lines of taps need not be
 * aligned. Included once for float and once for double by stencil_wave_real.h and stencil_short_real.h, after stencil_vector.h. */

#define SWEEP(taps)                                                                                                    \
    static __attribute__((noinline)) void NAME(sweep_##taps)(const REAL *const *in, const V *factor, V *out,           \
                                                             int64_t n)                                                \
    {                                                                                                                  \
        const NAME(loose) * from[taps];                                                                                \
        V c[taps];                                                                                                     \
        _Pragma("GCC unroll 16") for (int t = 0; t < taps; t++) from[t] = (const NAME(loose) *)in[t],                  \
                                                                c[t] = factor[t];                                      \
        for (int64_t p = 0; p < n; p++) {                                                                              \
            V sum = c[0] * from[0][p];                                                                                 \
            _Pragma("GCC unroll 16") for (int t = 1; t < taps; t++) sum = NAME(fused)(c[t], from[t][p], sum);          \
            out[p] = sum;                                                                                              \
        }                                                                                                              \
    }
SWEEP(1)
SWEEP(2)
SWEEP(3)
SWEEP(4)
SWEEP(5)
SWEEP(6)
SWEEP(7)
SWEEP(8)
SWEEP(9)
#undef SWEEP

/* Any number of taps: eight sums at a time, to hide the latency of additions. */
static __attribute__((noinline)) void NAME(sweep_many)(const REAL *const *in, const V *c, V *out, int64_t n, int n_taps)
{
    int64_t p = 0;
    for (; p + 8 <= n; p += 8) {
        V sum[8];
        const NAME(loose) *from = (const NAME(loose) *)in[0] + p;
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            sum[j] = c[0] * from[j];
        for (int t = 1; t < n_taps; t++) {
            const V factor = c[t];
            from = (const NAME(loose) *)in[t] + p;
#pragma GCC unroll 8
            for (int j = 0; j < 8; j++)
                sum[j] = NAME(fused)(factor, from[j], sum[j]);
        }
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            out[p + j] = sum[j];
    }
    for (; p < n; p++) {
        V sum = c[0] * ((const NAME(loose) *)in[0])[p];
        for (int t = 1; t < n_taps; t++)
            sum = NAME(fused)(c[t], ((const NAME(loose) *)in[t])[p], sum);
        out[p] = sum;
    }
}

static void NAME(sweep)(const REAL *const *in, const V *c, V *out, int64_t n, int n_taps)
{
    switch (n_taps) {
    case 1: NAME(sweep_1)(in, c, out, n); break;
    case 2: NAME(sweep_2)(in, c, out, n); break;
    case 3: NAME(sweep_3)(in, c, out, n); break;
    case 4: NAME(sweep_4)(in, c, out, n); break;
    case 5: NAME(sweep_5)(in, c, out, n); break;
    case 6: NAME(sweep_6)(in, c, out, n); break;
    case 7: NAME(sweep_7)(in, c, out, n); break;
    case 8: NAME(sweep_8)(in, c, out, n); break;
    case 9: NAME(sweep_9)(in, c, out, n); break;
    default: NAME(sweep_many)(in, c, out, n, n_taps);
    }
}
