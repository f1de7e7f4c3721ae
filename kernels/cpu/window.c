/* SPDX-License-Identifier: BSD-3-Clause */
/* Sliding windows whose elements are combined: sum, product, largest, smallest. Compiled once per instruction set;
 * gives oly_window_run_<isa>, called through local.c. Elements are combined in the order of the window. */
#include "cpu/window_line.h"

enum { STRIP = 256 };

OLY_WINDOW_LINE(8, uint8_t)
OLY_WINDOW_LINE(16, uint16_t)
OLY_WINDOW_LINE(32, uint32_t)
OLY_WINDOW_LINE(64, uint64_t)
typedef struct pair {
    uint64_t half[2];
} pair;
OLY_WINDOW_LINE(128, pair)

/* `identity`, x and out point to elements of the same size. */
static void line(const oly_slide *s, int bytes, const int64_t *tap, int64_t first, int64_t n, const void *x,
                 const void *identity, void *out)
{
    switch (bytes) {
    case 1: line_8(s, tap, first, n, x, *(const uint8_t *)identity, out); break;
    case 2: line_16(s, tap, first, n, x, *(const uint16_t *)identity, out); break;
    case 4: line_32(s, tap, first, n, x, *(const uint32_t *)identity, out); break;
    case 8: line_64(s, tap, first, n, x, *(const uint64_t *)identity, out); break;
    default: line_128(s, tap, first, n, x, *(const pair *)identity, out); break;
    }
}

void OLY_ISA_NAME(oly_window_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                  int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    static const oly_combiner combiners[] = {OLY_COMBINE_SUM, OLY_COMBINE_PROD, OLY_COMBINE_MAX, OLY_COMBINE_MIN};
    oly_combiner c = combiners[t->op - OLY_LOCAL_WINDOW_SUM];
    oly_slide s = oly_slide_of(t);
    int bytes = oly_element_bytes[t->out.dtype], outer = t->out.rank - (int)t->window->rank;
    pair seen[STRIP], identity;
    int64_t strips = (s.places + STRIP - 1) / STRIP, lines = strips;
    oly_combine_identity(c, t->out.dtype, &identity, 1);
    for (int d = 0; d < outer; d++)
        lines *= t->out.extent[d];
    for (int64_t k = lines * chunk / n_chunks; k < lines * (chunk + 1) / n_chunks; k++) {
        int64_t first = k % strips * STRIP, n = s.places - first < STRIP ? s.places - first : STRIP, rest = k / strips;
        char *to = (char *)out + (rest * s.places + first) * bytes;
        const char *x = in[0];
        if (x)
            x += oly_local_offset(outer, t->out.extent, t->in[0].stride, -1, rest) * bytes;
        for (int64_t number = 0; number < s.taps; number++) {
            int64_t tap[OLY_MAX_WINDOW] = {0};
            oly_slide_indexes(&s, s.size, number, tap);
            line(&s, bytes, tap, first, n, x, &identity, number ? (void *)seen : (void *)to);
            if (number)
                OLY_ISA_NAME(oly_combiners).pair[c][t->out.dtype](n, to, to, seen);
        }
        if (s.taps == 0)
            oly_combine_identity(c, t->out.dtype, to, n);
    }
}
