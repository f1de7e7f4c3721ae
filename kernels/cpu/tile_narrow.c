/* SPDX-License-Identifier: BSD-3-Clause */
/* Tile operations on narrow floating-point types (core/dtype_list.h): the operands are widened to float32, computed by
 * its function and rounded, in short pieces that stay in L1. So every row of elementwise.def that takes float32 takes
 * these too. Compiled once per instruction set; called by the tile interpreters. */
#include "tile_small.h"

enum { PIECE = 256 };

void OLY_ISA_NAME(oly_tile_narrow)(const oly_tile_call *call, int n, void *out, const void *x, const void *y)
{
    const oly_convert_table *moves = &OLY_ISA_NAME(oly_convert);
    oly_tile_function *widen = moves->convert[call->narrow][OLY_FLOAT32];
    oly_tile_function *narrow = call->to == call->narrow ? moves->convert[OLY_FLOAT32][call->narrow] : NULL;
    const char *in[2] = {x, y};
    float wide[2][PIECE], result[PIECE];
    size_t bytes = oly_element_bytes[call->to], in_bytes = oly_element_bytes[call->narrow];
    for (int begin = 0; begin < n; begin += PIECE) {
        int m = n - begin < PIECE ? n - begin : PIECE;
        char *to = (char *)out + (size_t)begin * bytes;
        for (int k = 0; k < 2 && in[k]; k++) {
            bool scalar = call->scalars >> k & 1;
            if (!scalar || begin == 0)
                widen(scalar ? 1 : m, wide[k], in[k] + (scalar ? 0 : (size_t)begin * in_bytes), NULL, NULL);
        }
        call->function(m, narrow ? (void *)result : to, wide[0], wide[1], NULL);
        if (narrow)
            narrow(m, to, result, NULL, NULL);
    }
}
