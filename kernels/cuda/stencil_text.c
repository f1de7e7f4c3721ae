/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels for linear stencils, its key and its launch: see stencil_text.h. Taps are added in their order, each with a fused
 * multiply-add, as in stencil.cu and on CPUs.
 *
 * A block computes a window of 128 columns and 16 rows for each of its 8 warps (float64: 8 rows); in one dimension, 4096 elements. All of
 * the window is computed in every step; what is right shrinks by the stencil's reach, so a tile of the result is in the middle:
 *
 *      window 128 x 128  --> n steps in registers -->  tile (128 - 2 n reach)^2
 *
 * In three dimensions a block takes one step of a window of 32 rows (float64: 16) and 128 columns, slab after slab, with the slabs that
 * taps reach in registers. */
#include "cuda/stencil_text.h"
#include "core/min_max.h"
#include "core/text.h"
#include "cuda/launching.h"
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SLABS = 5,  /* that taps reach */
    LEAST_SLABS = 8, /* of a block */
    BLOCKS_EACH = 4, /* blocks for each processor */
};
enum { WARP = 32, WARPS = OLY_CUDA_THREADS / WARP, MOST_STEPS = 64, SHARED_BYTES = 40 << 10, LARGEST = 1 << 29 };

/* As the struct of the text. Dimensions are slab, row, column; a field of one dimension is a row. */
typedef struct patch_task {
    const char *source;
    char *destination;
    int64_t source_stride[2], destination_stride[2]; /* of slabs and rows */
    int32_t lo[3], hi[3], fixed_lo[3], fixed_hi[3], tile[3], tiles[3], before[3], steps;
    union {
        float f32[2 * OLY_STENCIL_TAPS];
        double f64[OLY_STENCIL_TAPS];
    } coefficient;
} patch_task;

/* A thread's patch, and how warps are arranged. */
typedef struct shape {
    int rows, columns, down, across;
} shape;

static shape shape_of(const oly_stencil *s)
{
    int small = s->dtype == OLY_FLOAT32;
    if (s->rank == 3)
        return (shape){small ? 4 : 2, 4, WARPS, 1};
    return s->rank == 1 ? (shape){1, 16, 1, WARPS} : (shape){small ? 16 : 8, 4, WARPS, 1};
}

/* Elements of shared memory: what warps show each other, twice. */
static int edge_of(const oly_cuda_stencil_task *t, shape p)
{
    int rows = t->below[1] + t->above[1], columns = p.across > 1 ? t->below[2] + t->above[2] : 0;
    return (WARPS * (rows * WARP * p.columns + columns) + 4) / 4 * 4;
}

bool oly_cuda_patch_fits(const oly_stencil *s, const oly_cuda_stencil_task *t)
{
    shape p = shape_of(s);
    int bytes = s->dtype == OLY_FLOAT32 ? 4 : 8;
    if (2 * edge_of(t, p) * bytes > SHARED_BYTES || t->below[0] + 1 + t->above[0] > MOST_SLABS)
        return false;
    for (int n = 0; n < s->n_taps && s->rank == 3; n++) /* of other slabs only what is at the same place is at hand */
        if (s->offset[n][0] && (s->offset[n][1] || s->offset[n][2]))
            return false;
    for (int d = 0; d < 3; d++)
        if (t->lo[d] < -LARGEST || t->hi[d] > LARGEST)
            return false;
    return t->below[1] <= p.rows && t->above[1] <= p.rows && t->below[2] <= p.columns && t->above[2] <= p.columns;
}

/* -- tiles ---------------------------------------------------------------------------------------------------------------------- */

static void window_of(shape p, int window[2])
{
    window[0] = p.down * p.rows;
    window[1] = p.across * WARP * p.columns;
}

/* Columns before and after a tile are multiples of four, so that rows can be read by vectors. False: nothing is left. */
static bool tile_of(shape p, const oly_cuda_stencil_task *t, int steps, int tile[2], int before[2])
{
    int window[2] = {0};
    window_of(p, window);
    before[0] = steps * t->below[1];
    before[1] = (steps * t->below[2] + 3) / 4 * 4;
    tile[0] = window[0] - before[0] - steps * t->above[1];
    tile[1] = window[1] - before[1] - (steps * t->above[2] + 3) / 4 * 4;
    return tile[0] > 0 && tile[1] > 0;
}

/* Of a point and step: what is read and written of memory, or the instructions, whichever takes longer, and a part of the other. An
 * instruction takes about a twentieth of the time of an element of memory (H200; as much of one of twice the size). */
static double cost_of(shape p, const oly_cuda_stencil_task *t, int steps, const int tile[2])
{
    int window[2];
    window_of(p, window);
    double all = (double)window[0] * window[1], right = (double)tile[0] * tile[1];
    double memory = (all + right) / (right * steps), computing = all / right * 0.05 * (t->n_taps + 2);
    return memory > computing ? memory + 0.3 * computing : computing + 0.3 * memory;
}

int oly_cuda_patch_steps(const oly_stencil *s, const oly_cuda_stencil_task *t, int most)
{
    shape p = shape_of(s);
    int best = 0, tile[2], before[2];
    double least = 0;
    most = s->rank == 3 ? 1 : most;
    for (int steps = 1; steps <= most && steps <= MOST_STEPS && tile_of(p, t, steps, tile, before); steps++) {
        double cost = cost_of(p, t, steps, tile);
        if (!best || cost < least) {
            best = steps;
            least = cost;
        }
    }
    return best;
}

/* -- the text ---------------------------------------------------------------------------------------------------------------------- */

static const char helpers[] =
    "struct patch_task {\n    const real *source;\n    real *destination;\n    int64_t source_stride[2], "
    "destination_stride[2];\n"
    "    int32_t lo[3], hi[3], fixed_lo[3], fixed_hi[3], tile[3], tiles[3], before[3], steps;\n"
    "    real coefficient[256 / sizeof(real)];\n};\n"
    "struct alignas(4 * sizeof(real) < 16 ? 4 * sizeof(real) : 16) four {\n    real v[4];\n};\n"
    "enum { WIDTH = OLY_WARP * COLUMNS, SHOWN = UP + DOWN, EDGE = (WARPS * (SHOWN * WIDTH + (ACROSS > 1 ? LEFT + RIGHT "
    ": 0)) + 4) / 4 * 4 };\n"
    "typedef real patch[ROWS][COLUMNS];\n"
    "typedef real lines[UP + 1 + DOWN][LEFT + COLUMNS + RIGHT];\n"
    "OLY_DEVICE int32_t larger(int32_t a, int32_t b)\n{\n    return a > b ? a : b;\n}\n"
    "OLY_DEVICE int32_t smaller(int32_t a, int32_t b)\n{\n    return a < b ? a : b;\n}\n";

static const char exchange[] =
    /* what the neighbours of a warp read: its first rows, its last ones; in one dimension its first and last elements */
    "OLY_DEVICE void show(const patch &u, real *edge, int warp, int lane)\n{\n"
    "    OLY_UNROLL\n    for (int k = 0; k < SHOWN; k++) {\n        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c += 4) {\n            four v;\n"
    "            OLY_UNROLL\n            for (int i = 0; i < 4; i++)\n"
    "                v.v[i] = u[k < DOWN ? k : ROWS - UP + k - DOWN][c + i];\n"
    "            *(four *)(edge + (warp * SHOWN + k) * WIDTH + lane * COLUMNS + c) = v;\n        }\n    }\n"
    "    real *ends = edge + WARPS * SHOWN * WIDTH + warp * (LEFT + RIGHT);\n"
    "    OLY_UNROLL\n    for (int k = 0; ACROSS > 1 && k < LEFT + RIGHT; k++)\n"
    "        if (lane == (k < RIGHT ? 0 : OLY_WARP - 1))\n"
    "            ends[k] = u[0][k < RIGHT ? k : COLUMNS - LEFT + k - RIGHT];\n}\n"
    "OLY_DEVICE void row_of_neighbour(const real *edge, int warp, int k, int lane, real *to)\n{\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c += 4) {\n        four v = {{0, 0, 0, 0}};\n"
    "        if (warp >= 0 && warp < WARPS)\n"
    "            v = *(const four *)(edge + (warp * SHOWN + k) * WIDTH + lane * COLUMNS + c);\n"
    "        OLY_UNROLL\n        for (int i = 0; i < 4; i++)\n            to[c + i] = v.v[i];\n    }\n}\n"
    /* a row with the columns beside the patch */
    "OLY_DEVICE void extend(const real *row, const real *edge, int warp, int lane, real *line)\n{\n"
    "    const real *ends = edge + WARPS * SHOWN * WIDTH;\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c++)\n        line[LEFT + c] = row[c];\n"
    "    OLY_UNROLL\n    for (int k = 0; k < LEFT; k++) {\n"
    "        line[k] = oly_shuffle_up(row[COLUMNS - LEFT + k], 1);\n"
    "        if (ACROSS > 1 && lane == 0)\n            line[k] = warp > 0 ? ends[(warp - 1) * (LEFT + RIGHT) + RIGHT + "
    "k] : 0;\n    }\n"
    "    OLY_UNROLL\n    for (int k = 0; k < RIGHT; k++) {\n"
    "        line[LEFT + COLUMNS + k] = oly_shuffle_down(row[k], 1);\n"
    "        if (ACROSS > 1 && lane == OLY_WARP - 1)\n"
    "            line[LEFT + COLUMNS + k] = warp + 1 < WARPS ? ends[(warp + 1) * (LEFT + RIGHT) + k] : 0;\n    }\n}\n"
    "OLY_DEVICE void row_at(const patch &u, const real *edge, int warp, int lane, int r, real *line)\n{\n"
    "    real row[COLUMNS];\n"
    "    if (r < 0)\n        row_of_neighbour(edge, warp - 1, DOWN + UP + r, lane, row);\n"
    "    else if (r >= ROWS)\n        row_of_neighbour(edge, warp + 1, r - ROWS, lane, row);\n"
    "    else {\n        OLY_UNROLL\n        for (int c = 0; c < COLUMNS; c++)\n            row[c] = u[r][c];\n    }\n"
    "    extend(row, edge, warp, lane, line);\n}\n";

/* Elements are read where they are needed; others are zero, and reach no result. */
static const char memory[] =
    "struct region {\n    int32_t lo[3], hi[3];\n};\n"
    "struct tile : region {\n    region need;\n    int32_t first[3];\n    bool any, inner;\n};\n"
    "OLY_DEVICE tile tile_at(const patch_task &task, int64_t number)\n{\n"
    "    const int32_t reach[2][3] = {{BACK, UP, LEFT}, {FRONT, DOWN, RIGHT}}, window[3] = {0, WARPS / ACROSS * ROWS, "
    "ACROSS * WIDTH};\n"
    "    const int64_t row = number / task.tiles[2];\n"
    "    const int32_t at[3] = {(int32_t)(row / task.tiles[1]), (int32_t)(row % task.tiles[1]), (int32_t)(number % "
    "task.tiles[2])};\n"
    "    tile t;\n    t.any = t.inner = true;\n"
    "    for (int d = 0; d < 3; d++) {\n"
    "        t.lo[d] = task.lo[d] + at[d] * task.tile[d];\n"
    "        t.hi[d] = smaller(t.lo[d] + task.tile[d], task.hi[d]);\n"
    "        t.first[d] = t.lo[d] - task.before[d];\n"
    "        const int32_t update_lo = larger(t.lo[d], task.fixed_lo[d]), update_hi = smaller(t.hi[d], "
    "task.fixed_hi[d]);\n"
    "        t.any = t.any && update_lo < update_hi;\n"
    "        if (d > 0)\n"
    "            t.inner = t.inner && t.first[d] >= task.fixed_lo[d] && t.first[d] + window[d] <= task.fixed_hi[d];\n"
    "        t.need.lo[d] = larger(update_lo - task.steps * reach[0][d], task.fixed_lo[d] - reach[0][d]);\n"
    "        t.need.hi[d] = smaller(update_hi + task.steps * reach[1][d], task.fixed_hi[d] + reach[1][d]);\n    }\n"
    "    for (int d = 0; d < 3; d++) {\n"
    "        t.need.lo[d] = t.any ? smaller(t.need.lo[d], t.lo[d]) : t.lo[d];\n"
    "        t.need.hi[d] = t.any ? larger(t.need.hi[d], t.hi[d]) : t.hi[d];\n    }\n    return t;\n}\n"
    "OLY_DEVICE bool by_fours(const void *at, const int64_t *stride, int32_t column)\n{\n"
    "    return ((uint64_t)at | (stride[0] | stride[1]) * sizeof(real)) % sizeof(four) == 0 && column % 4 == 0;\n}\n"
    "OLY_DEVICE void read_patch(const real *from, int64_t stride, bool fours, bool there, const region &need, int32_t "
    "y, int32_t x, patch &u)\n{\n"
    "    OLY_UNROLL\n    for (int r = 0; r < ROWS; r++) {\n"
    "        const real *row = from + (y + r) * stride + x;\n"
    "        const bool here = there && y + r >= need.lo[1] && y + r < need.hi[1];\n"
    "        OLY_UNROLL\n        for (int c = 0; c < COLUMNS; c += 4) {\n"
    "            if (here && fours && x + c >= need.lo[2] && x + c + 4 <= need.hi[2]) {\n"
    "                const four v = *(const four *)(row + c);\n"
    "                OLY_UNROLL\n                for (int k = 0; k < 4; k++)\n                    u[r][c + k] = "
    "v.v[k];\n"
    "            } else {\n"
    "                OLY_UNROLL\n                for (int k = c; k < c + 4; k++)\n"
    "                    u[r][k] = here && x + k >= need.lo[2] && x + k < need.hi[2] ? row[k] : 0;\n"
    "            }\n        }\n    }\n}\n"
    "OLY_DEVICE void write_row(real *row, bool fours, const region &t, int32_t x, const real *u)\n{\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c += 4) {\n"
    "        if (fours && x + c >= t.lo[2] && x + c + 4 <= t.hi[2]) {\n            four v;\n"
    "            OLY_UNROLL\n            for (int k = 0; k < 4; k++)\n                v.v[k] = u[c + k];\n"
    "            *(four *)(row + c) = v;\n"
    "        } else {\n"
    "            OLY_UNROLL\n            for (int k = c; k < c + 4; k++)\n"
    "                if (x + k >= t.lo[2] && x + k < t.hi[2])\n                    row[k] = u[k];\n"
    "        }\n    }\n}\n";

/* INNER: every point of the window is of the update region, in rows and columns. u: the patch, of which the step is taken, r by r;
 * other: of the slabs around it. done(r, row): a row after the step. */
static const char advance[] =
    "template <bool INNER, class F> OLY_DEVICE void advance(const patch_task &task, const patch &u, const patch "
    "*other, "
    "bool slab, const real *edge, int warp, int lane, int32_t y, int32_t x, F done)\n{\n"
    "    lines line;\n    bool computed[COLUMNS];\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c++)\n"
    "        computed[c] = slab && (INNER || (x + c >= task.fixed_lo[2] && x + c < task.fixed_hi[2]));\n"
    "    OLY_UNROLL\n    for (int k = 0; k < UP + DOWN; k++)\n        row_at(u, edge, warp, lane, k - UP, line[k]);\n"
    "    OLY_UNROLL\n    for (int r = 0; r < ROWS; r++) {\n"
    "        row_at(u, edge, warp, lane, r + DOWN, line[UP + DOWN]);\n"
    "        const bool row = INNER || (y + r >= task.fixed_lo[1] && y + r < task.fixed_hi[1]);\n"
    "        real after[COLUMNS];\n"
    "        OLY_UNROLL\n        for (int c = 0; c < COLUMNS; c++) {\n"
    "            const real sum = sum_of(task, line, other, r, c);\n"
    "            after[c] = row && computed[c] ? sum : line[UP][LEFT + c];\n        }\n"
    "        done(r, after);\n"
    "        OLY_UNROLL\n        for (int k = 0; k < UP + DOWN; k++) {\n            OLY_UNROLL\n"
    "            for (int c = 0; c < LEFT + COLUMNS + RIGHT; c++)\n                line[k][c] = line[k + 1][c];\n"
    "        }\n    }\n}\n";

static const char kernel_begins[] =
    "OLY_KERNEL_BLOCK_BOUNDED(oly_stencil_patch, patch_task, OLY_WARP * WARPS, 2)\n{\n"
    "    OLY_SHARED(four, shown, 2 * EDGE / 4);\n    real *edges = (real *)shown;\n"
    "    const int lane = oly_lane(), warp = oly_warp();\n"
    "    const bool from_fours = by_fours(task.source, task.source_stride, task.lo[2]);\n"
    "    const bool to_fours = by_fours(task.destination, task.destination_stride, task.lo[2]);\n"
    "    const int64_t n = (int64_t)task.tiles[0] * task.tiles[1] * task.tiles[2];\n"
    "    int turn = 0;\n"
    "    for (int64_t number = oly_block(); number < n; number += oly_blocks()) {\n"
    "        const tile t = tile_at(task, number);\n"
    "        const int32_t y = t.first[1] + warp / ACROSS * ROWS, x = t.first[2] + (warp % ACROSS * OLY_WARP + lane) * "
    "COLUMNS;\n";

static const char one_slab[] =
    "        patch u;\n"
    "        read_patch(task.source, task.source_stride[1], from_fours, true, t.need, y, x, u);\n"
    "        auto keep = [&](int r, const real *row) {\n"
    "            OLY_UNROLL\n            for (int c = 0; c < COLUMNS; c++)\n                u[r][c] = row[c];\n"
    "        };\n"
    "        for (int32_t step = 0; t.any && step < task.steps; step++) {\n"
    "            real *edge = edges + turn * EDGE;\n            turn ^= 1;\n"
    "            show(u, edge, warp, lane);\n            oly_barrier();\n"
    "            if (t.inner)\n                advance<true>(task, u, &u, true, edge, warp, lane, y, x, keep);\n"
    "            else\n                advance<false>(task, u, &u, true, edge, warp, lane, y, x, keep);\n        }\n"
    "        OLY_UNROLL\n        for (int r = 0; r < ROWS; r++)\n"
    "            if (y + r >= t.lo[1] && y + r < t.hi[1])\n"
    "                write_row(task.destination + (y + r) * task.destination_stride[1] + x, to_fours, t, x, u[r]);\n"
    "    }\n}\n";

/* slabs[k]: slab z - BACK + k. */
static const char many_slabs[] =
    "        patch slabs[BACK + 1 + FRONT];\n"
    "        for (int32_t z = t.lo[0] - BACK - FRONT; z < t.hi[0]; z++) {\n"
    "            OLY_UNROLL\n            for (int k = 0; k < BACK + FRONT; k++) {\n"
    "                OLY_UNROLL\n                for (int r = 0; r < ROWS; r++) {\n"
    "                    OLY_UNROLL\n                    for (int c = 0; c < COLUMNS; c++)\n"
    "                        slabs[k][r][c] = slabs[k + 1][r][c];\n                }\n            }\n"
    "            const int32_t next = z + FRONT;\n"
    "            read_patch(task.source + next * task.source_stride[0], task.source_stride[1], from_fours, next >= "
    "t.need.lo[0] && next < t.need.hi[0], t.need, y, x, slabs[BACK + FRONT]);\n"
    "            if (z < t.lo[0])\n                continue;\n"
    "            real *edge = edges + turn * EDGE, *to = task.destination + z * task.destination_stride[0];\n"
    "            turn ^= 1;\n"
    "            show(slabs[BACK], edge, warp, lane);\n            oly_barrier();\n"
    "            const bool slab = z >= task.fixed_lo[0] && z < task.fixed_hi[0];\n"
    "            auto write = [&](int r, const real *row) {\n"
    "                if (y + r >= t.lo[1] && y + r < t.hi[1])\n"
    "                    write_row(to + (y + r) * task.destination_stride[1] + x, to_fours, t, x, row);\n"
    "            };\n"
    "            if (t.inner)\n                advance<true>(task, slabs[BACK], slabs, slab, edge, warp, lane, y, x, "
    "write);\n"
    "            else\n                advance<false>(task, slabs[BACK], slabs, slab, edge, warp, lane, y, x, write);\n"
    "        }\n    }\n}\n";

/* All that the text depends on. */
typedef struct patch_key {
    char name[8];
    int32_t dtype, rank, n_taps, below[3], above[3], offset[OLY_STENCIL_TAPS][3];
} patch_key;

static patch_key key_of(const oly_stencil *s, const oly_cuda_stencil_task *t)
{
    patch_key k;
    memset(&k, 0, sizeof k);
    memcpy(k.name, "patch", 6);
    k.dtype = (int32_t)s->dtype;
    k.rank = s->rank;
    k.n_taps = s->n_taps;
    memcpy(k.below, t->below, sizeof k.below);
    memcpy(k.above, t->above, sizeof k.above);
    for (int n = 0; n < s->n_taps; n++)
        for (int d = 0; d < s->rank; d++)
            k.offset[n][3 - s->rank + d] = s->offset[n][d];
    return k;
}

static char *make_text(const void *of)
{
    const patch_key *k = of;
    shape p = shape_of(&(oly_stencil){.dtype = (oly_dtype)k->dtype, .rank = k->rank});
    oly_text t = {0};
    oly_text_add(&t,
                 "#include \"element.h\"\n"
                 "enum { ROWS = %d, COLUMNS = %d, WARPS = %d, ACROSS = %d, BACK = %d, FRONT = %d, UP = %d, DOWN = %d, "
                 "LEFT = %d, RIGHT = %d };\n"
                 "typedef %s real;\n%s",
                 p.rows, p.columns, WARPS, p.across, k->below[0], k->above[0], k->below[1], k->above[1], k->below[2],
                 k->above[2], k->dtype == OLY_FLOAT32 ? "float" : "double", helpers);
    oly_text_add(&t, "%s", exchange);
    oly_text_add(&t, "%s", memory);
    oly_text_add(&t, "OLY_DEVICE real sum_of(const patch_task &task, const lines &line, const patch *other, int r, int "
                     "c)\n{\n    real sum;\n");
    for (int n = 0; n < k->n_taps; n++) {
        const int32_t *at = k->offset[n];
        oly_text_add(&t, n ? "    sum = oly_fma(task.coefficient[%d], " : "    sum = task.coefficient[%d] * ", n);
        if (at[0])
            oly_text_add(&t, "other[BACK + (%d)][r][c]", at[0]);
        else
            oly_text_add(&t, "line[UP + (%d)][LEFT + c + (%d)]", at[1], at[2]);
        oly_text_add(&t, "%s;\n", n ? ", sum)" : "");
    }
    oly_text_add(&t, "    return sum;\n}\n%s", advance);
    oly_text_add(&t, "%s", kernel_begins);
    oly_text_add(&t, "%s", k->rank == 3 ? many_slabs : one_slab);
    if (!t.failed)
        return t.chars;
    oly_text_free(&t);
    return NULL;
}

/* -- launching ---------------------------------------------------------------------------------------------------------------------- */

static int32_t bounded(int64_t x)
{
    return (int32_t)oly_larger(-2 * (int64_t)LARGEST, oly_smaller(x, 2 * (int64_t)LARGEST));
}

/* Of a block: as many as leave enough blocks. */
static int slabs_of(const oly_cuda_launcher *l, const oly_cuda_stencil_task *t, const int tile[3])
{
    int64_t columns = 1, blocks = (int64_t)BLOCKS_EACH * (l->processors > 0 ? l->processors : 1);
    for (int d = 1; d < 3; d++)
        columns *= (t->hi[d] - t->lo[d] + tile[d] - 1) / tile[d];
    int64_t slabs = (t->hi[0] - t->lo[0]) * columns / blocks;
    return (int)oly_larger(LEAST_SLABS, oly_smaller(slabs, 64));
}

oly_status oly_cuda_patch(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t,
                          bool *launched)
{
    patch_key key = key_of(s, t);
    patch_task p = {.source = t->source, .destination = t->destination, .steps = t->steps};
    double points = 1;
    int tile[3] = {1}, before[3] = {0};
    tile_of(shape_of(s), t, t->steps, tile + 1, before + 1);
    tile[0] = s->rank == 3 ? slabs_of(l, t, tile) : 1;
    for (int d = 0; d < 3; d++) {
        p.lo[d] = (int32_t)t->lo[d];
        p.hi[d] = (int32_t)t->hi[d];
        p.fixed_lo[d] = bounded(t->fixed_lo[d]);
        p.fixed_hi[d] = bounded(t->fixed_hi[d]);
        p.tile[d] = tile[d];
        p.tiles[d] = (p.hi[d] - p.lo[d] + tile[d] - 1) / tile[d];
        p.before[d] = before[d];
        points *= p.hi[d] - p.lo[d];
    }
    for (int d = 0; d < 2; d++) {
        p.source_stride[d] = t->source_stride[d];
        p.destination_stride[d] = t->destination_stride[d];
    }
    for (int n = 0; n < s->n_taps; n++)
        if (s->dtype == OLY_FLOAT32)
            p.coefficient.f32[n] = (float)s->coefficient[n];
        else
            p.coefficient.f64[n] = s->coefficient[n];
    oly_cuda_launch launch = {.kernel = "oly_stencil_patch",
                              .blocks = oly_cuda_blocks(l, (int64_t)p.tiles[0] * p.tiles[1] * p.tiles[2], 1),
                              .threads = OLY_CUDA_THREADS,
                              .task_bytes = sizeof p};
    memcpy(launch.task, &p, sizeof p);
    oly_cuda_generated generated = {
        .key = &key, .key_bytes = sizeof key, .work = points * t->steps * s->n_taps, .text = make_text, .of = &key};
    return l->generated(l->context, &generated, &launch, launched);
}
