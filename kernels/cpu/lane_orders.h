/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders of the eight lanes of a vector that put some in front of the others, for AVX2, which has no instruction that compresses.
 * For kernels/cpu. */
#ifndef OLY_CPU_LANE_ORDERS_H
#define OLY_CPU_LANE_ORDERS_H
#include <stdint.h>

/* For each set of lanes m, a byte of each place: the lanes of the set in order, then the others. */
#define LANES_BEFORE(m, lane) __builtin_popcount((m) & ((1u << (lane)) - 1))
#define LANE_PLACE(m, lane)   ((m) >> (lane)&1 ? LANES_BEFORE(m, lane) : __builtin_popcount(m) + LANES_BEFORE(~(m), lane))
#define PLACED(m, lane)       (uint64_t)(lane) << 8 * LANE_PLACE(m, lane)
#define ORDER(m)                                                                                                       \
    PLACED(m, 0) | PLACED(m, 1) | PLACED(m, 2) | PLACED(m, 3) | PLACED(m, 4) | PLACED(m, 5) | PLACED(m, 6) |           \
        PLACED(m, 7)
#define ORDERS_4(m)  ORDER(m), ORDER((m) + 1), ORDER((m) + 2), ORDER((m) + 3)
#define ORDERS_16(m) ORDERS_4(m), ORDERS_4((m) + 4), ORDERS_4((m) + 8), ORDERS_4((m) + 12)
#define ORDERS_64(m) ORDERS_16(m), ORDERS_16((m) + 16), ORDERS_16((m) + 32), ORDERS_16((m) + 48)
static const uint64_t lane_orders[256] = {ORDERS_64(0u), ORDERS_64(64u), ORDERS_64(128u), ORDERS_64(192u)};
#endif
