/* SPDX-License-Identifier: BSD-3-Clause */
/* stencil_taps.c for one type: REAL, REAL_BYTES, SUFFIX. */
#include "stencil_vector.h"

enum { NAME(AT_ONCE) = 4 * LANES };

/* Several vectors at a time hide the latency of additions. */
static inline __attribute__((always_inline)) void NAME(add_taps)(int n_taps, const V *c, const void *const *in,
                                                                 REAL *out, int64_t i)
{
    const NAME(loose) *x = (const NAME(loose) *)((const REAL *)in[0] + i);
    V a0 = c[0] * x[0], a1 = c[0] * x[1], a2 = c[0] * x[2], a3 = c[0] * x[3];
    for (int t = 1; t < n_taps; t++) {
        x = (const NAME(loose) *)((const REAL *)in[t] + i);
        a0 = NAME(fused)(c[t], x[0], a0);
        a1 = NAME(fused)(c[t], x[1], a1);
        a2 = NAME(fused)(c[t], x[2], a2);
        a3 = NAME(fused)(c[t], x[3], a3);
    }
    NAME(loose) *y = (NAME(loose) *)(out + i);
    y[0] = a0;
    y[1] = a1;
    y[2] = a2;
    y[3] = a3;
}

static void NAME(taps)(int n_taps, const double *coefficient, const void *const *in, void *out, int64_t n)
{
    V c[OLY_STENCIL_TAPS] = {{0}};
    REAL padded[OLY_STENCIL_TAPS][NAME(AT_ONCE)], result[NAME(AT_ONCE)];
    const void *rest[OLY_STENCIL_TAPS] = {NULL};
    int64_t i = 0;
    for (int t = 0; t < n_taps; t++)
        c[t] = NAME(spread)((REAL)coefficient[t]);
    for (; i + NAME(AT_ONCE) <= n; i += NAME(AT_ONCE))
        NAME(add_taps)(n_taps, c, in, out, i);
    if (i == n)
        return;
    size_t bytes = sizeof(REAL) * (size_t)(n - i); /* the last ones, in vectors of their own */
    for (int t = 0; t < n_taps; t++) {
        memset(padded[t], 0, sizeof padded[t]);
        memcpy(padded[t], (const REAL *)in[t] + i, bytes);
        rest[t] = padded[t];
    }
    NAME(add_taps)(n_taps, c, rest, result, 0);
    memcpy((REAL *)out + i, result, bytes);
}

#undef LANES
#undef REAL
#undef REAL_BYTES
#undef SUFFIX
