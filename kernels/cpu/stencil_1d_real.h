/* SPDX-License-Identifier: BSD-3-Clause */
/* The register pipeline of stencil_1d.c for one element type; included there, once per type. */
#include "stencil_strip.h"

#if STENCIL_VECTOR_BYTES == 64
#define DEPTH 8 /* 32 registers */
#else
#define DEPTH 4 /* 16 registers */
#endif
#define ROUND 9 /* values rotate through 2 * DEPTH + 1 registers: then each is back in its own, without copies */

/* Vectors of each level at the two positions before the current one. */
typedef struct NAME(levels) {
    V before[DEPTH], last[DEPTH];
} NAME(levels);

/* A vector with lanes whose values are fixed: the point beside the update region, and its copy among the ghosts. */
typedef struct NAME(stay) {
    int64_t vector;
    V lanes; /* all bits set where the value is fixed */
} NAME(stay);

static inline __attribute__((always_inline)) V NAME(combine)(int kind, V left, V middle, V right, const V c[3])
{
    if (kind == SHARED_RIGHT)
        return c[0] * (NAME(fused)(c[1], middle, left) + right);
    if (kind == SHARED_LEFT)
        return c[0] * (NAME(fused)(c[1], middle, right) + left);
    if (kind == SHARED_MIDDLE)
        return c[0] * NAME(fused)(c[1], middle, left + right);
    const V u[3] = {left, middle, right};
    const int *order = order_of[kind];
    return NAME(fused)(c[2], u[order[2]], NAME(fused)(c[1], u[order[1]], c[0] * u[order[0]]));
}

/* Passes vectors [begin, end) through `steps` levels; each is replaced by the value, after these steps, of the vector
 * `steps` to its left. */
static inline __attribute__((always_inline)) void NAME(flow)(V *row, int64_t begin, int64_t end, NAME(levels) * levels,
                                                             const V coefficient[3], int kind, int steps)
{
    V before[DEPTH], last[DEPTH], c[3] = {coefficient[0], coefficient[1], coefficient[2]};
#pragma GCC unroll 8
    for (int s = 0; s < steps; s++) {
        before[s] = levels->before[s];
        last[s] = levels->last[s];
    }
#define THROUGH_LEVELS(k)                                                                                              \
    {                                                                                                                  \
        V x = row[k];                                                                                                  \
        _Pragma("GCC unroll 8") for (int s = 0; s < steps; s++)                                                        \
        {                                                                                                              \
            V next = NAME(combine)(kind, before[s], last[s], x, c);                                                    \
            before[s] = last[s];                                                                                       \
            last[s] = x;                                                                                               \
            x = next;                                                                                                  \
        }                                                                                                              \
        row[(k)-steps] = x;                                                                                            \
    }
    int64_t k = begin;
    for (; k + ROUND <= end; k += ROUND)
#pragma GCC unroll 9
        for (int j = 0; j < ROUND; j++)
            THROUGH_LEVELS(k + j)
    for (; k < end; k++)
        THROUGH_LEVELS(k)
#undef THROUGH_LEVELS
#pragma GCC unroll 8
    for (int s = 0; s < steps; s++) {
        levels->before[s] = before[s];
        levels->last[s] = last[s];
    }
}

typedef void NAME(flow_function)(V *row, int64_t begin, int64_t end, NAME(levels) * levels, const V *c);
#define FLOW(kind, steps)                                                                                              \
    static void NAME(flow_##kind##_##steps)(V * row, int64_t begin, int64_t end, NAME(levels) * levels, const V *c)    \
    {                                                                                                                  \
        NAME(flow)(row, begin, end, levels, c, kind, steps);                                                           \
    }
#if DEPTH == 8
#define FLOWS(kind) FLOW(kind, 1) FLOW(kind, 2) FLOW(kind, 4) FLOW(kind, 8)
#define ROW(kind)                                                                                                      \
    [kind] = {                                                                                                         \
        [1] = NAME(flow_##kind##_1), NAME(flow_##kind##_2), [4] = NAME(flow_##kind##_4), [8] = NAME(flow_##kind##_8)}
#else
#define FLOWS(kind) FLOW(kind, 1) FLOW(kind, 2) FLOW(kind, 4)
#define ROW(kind)   [kind] = {[1] = NAME(flow_##kind##_1), NAME(flow_##kind##_2), [4] = NAME(flow_##kind##_4)}
#endif
FLOWS(LMR)
FLOWS(LRM)
FLOWS(MLR)
FLOWS(MRL)
FLOWS(RLM)
FLOWS(RML)
FLOWS(SHARED_LEFT)
FLOWS(SHARED_MIDDLE)
FLOWS(SHARED_RIGHT)

/* By kind and number of steps. */
static NAME(flow_function) *const
    NAME(flows)[KINDS][DEPTH + 1] = {ROW(LMR), ROW(LRM),         ROW(MLR),           ROW(MRL),         ROW(RLM),
                                     ROW(RML), ROW(SHARED_LEFT), ROW(SHARED_MIDDLE), ROW(SHARED_RIGHT)};

/* The same for the few vectors near the ends of the row and near fixed points: those keep their values, and nothing is
 * written before vector 0. */
static __attribute__((noinline)) void NAME(trickle)(V *row, int64_t begin, int64_t end, NAME(levels) * levels,
                                                    const V *c, int kind, int steps, const NAME(stay) * stays,
                                                    int n_stays)
{
    for (int64_t k = begin; k < end; k++) {
        V x = row[k];
        for (int s = 0; s < steps; s++) {
            V left = levels->before[s], middle = levels->last[s], next = NAME(combine)(kind, left, middle, x, c);
            for (int i = 0; i < n_stays; i++)
                if (stays[i].vector == k - 1 - s)
                    next = NAME(choose)(stays[i].lanes, middle, next);
            levels->before[s] = middle;
            levels->last[s] = x;
            x = next;
        }
        if (k >= steps)
            row[k - steps] = x;
    }
}

/* `steps` steps of the whole row, in place. stays: by ascending vector. */
static void NAME(pass)(V *row, int64_t columns, const V *c, int kind, int steps, const NAME(stay) * stays, int n_stays)
{
    NAME(levels) levels;
    memset(&levels, 0, sizeof levels);
    NAME(refresh_ghosts)(row, columns, steps);
    int64_t k = -steps, end = columns + steps;
    int64_t slow = steps + 1; /* vector 0 may hold a fixed point: levels reach it at 1 ... steps */
    NAME(trickle)(row, k, slow, &levels, c, kind, steps, stays, n_stays);
    k = slow;
    for (int i = 0; i <= n_stays; i++) {
        int64_t next = i < n_stays ? stays[i].vector + 1 : end, after = next + steps < end ? next + steps : end;
        if (next > k) {
            NAME(flows)[kind][steps](row, k, next, &levels, c);
            k = next;
        }
        if (after > k) {
            NAME(trickle)(row, k, after, &levels, c, kind, steps, stays, n_stays);
            k = after;
        }
    }
}

/* The fixed points beside the update region that are in the window; at most three vectors. */
static int NAME(find_stays)(const oly_stencil_tile *t, int64_t columns, NAME(stay) * stays)
{
    int n = 0;
    if (t->window_lo[2] < t->fixed_lo[2])
        stays[n++] = (NAME(stay)){0, NAME(only_lane)(0)};
    if (t->window_hi[2] > t->fixed_hi[2]) {
        int64_t point = t->fixed_hi[2] - t->window_lo[2], lane = point / columns, vector = point % columns;
        stays[n++] = (NAME(stay)){vector, NAME(only_lane)(lane)};
        if (vector < DEPTH && lane > 0) /* its copy is among the ghosts of the lane below */
            stays[n++] = (NAME(stay)){vector + columns, NAME(only_lane)(lane - 1)};
    }
    return n;
}

/* All steps of the tile, with coefficients c. Values are stored times `scale`. If `exact`, stops and returns false once
 * the underflow flag is set. */
static bool NAME(attempt)(const oly_stencil_tile *t, const V *c, int kind, REAL scale, bool exact)
{
    int64_t count = t->window_hi[2] - t->window_lo[2], columns = NAME(columns)(count);
    V *row = (V *)t->scratch + OLY_STENCIL_GHOSTS;
    REAL *spare = (REAL *)(row + columns + OLY_STENCIL_GHOSTS);
    NAME(stay) stays[3];
    int n_stays = NAME(find_stays)(t, columns, stays);
    NAME(fill)(row, columns, t->source, count, scale, spare);
    for (int done = 0, steps; done < t->steps; done += steps) {
        for (steps = DEPTH; steps > t->steps - done;)
            steps /= 2;
        NAME(pass)(row, columns, c, kind, steps, stays, n_stays);
        if (exact && fetestexcept(FE_UNDERFLOW))
            return false;
    }
    int64_t first = t->update_lo[2] - t->window_lo[2], end = t->update_hi[2] - t->window_lo[2];
    NAME(drain)(row, columns, t->destination, first, end, 1 / scale, spare);
    return true;
}

static void NAME(compute)(const oly_stencil_tile *t)
{
    V c[3];
    if (t->side != 0) {
        fexcept_t before;
        fegetexceptflag(&before, FE_UNDERFLOW);
        feclearexcept(FE_UNDERFLOW);
        c[0] = NAME(spread)((REAL)t->side);
        c[1] = NAME(spread)((REAL)t->ratio);
        bool done = NAME(attempt)(t, c, kind_of(t, true), (REAL)t->side, true);
        fesetexceptflag(&before, FE_UNDERFLOW);
        if (done)
            return;
    }
    for (int i = 0; i < 3; i++)
        c[i] = NAME(spread)((REAL)t->coefficient[i]);
    NAME(attempt)(t, c, kind_of(t, false), 1, false);
}
#undef REAL
#undef REAL_BYTES
#undef SUFFIX
#undef LANES
#undef STAGES
#undef MOVE_UP
#undef MOVE_DOWN
#undef DEPTH
#undef ROUND
#undef FLOW
#undef FLOWS
#undef ROW
