/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels for linear stencils, its key and its launch: see stencil_text.h. Taps are added in their order, each with a fused
 * multiply-add, as in stencil.cu and on CPUs.
 *
 * A block computes a window of 128 columns and 16 rows for each of its 8 warps (float64: 8 rows); in one dimension, 4096 elements. All of
 * the window is computed in every step; what is right shrinks by the stencil's reach, so a tile of the result is in the middle:
 *
 *      window 128 x 128  --> n steps in registers -->  tile (128 - 2 n reach)^2
 */
#include "cuda/stencil_text.h"
#include "core/min_max.h"
#include "core/text.h"
#include "cuda/launching.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, WARPS = OLY_CUDA_THREADS / WARP, MOST_STEPS = 64, SHARED_BYTES = 40 << 10, LARGEST = 1 << 29 };

/* As the struct of the text. Rows and columns are the last two dimensions; a field of one dimension is a row. */
typedef struct patch_task {
    const char *source;
    char *destination;
    int64_t source_stride, destination_stride;
    int32_t lo[2], hi[2], fixed_lo[2], fixed_hi[2], tile[2], tiles[2], before[2], steps, unused;
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
    return s->rank == 1 ? (shape){1, 16, 1, WARPS} : (shape){small ? 16 : 8, 4, WARPS, 1};
}

/* Elements of shared memory: what warps show each other, twice. */
static int edge_of(const oly_cuda_stencil_task *t, shape p)
{
    int rows = t->below[1] + t->above[1], columns = p.across > 1 ? t->below[2] + t->above[2] : 0;
    return WARPS * (rows * WARP * p.columns + columns) + 1;
}

bool oly_cuda_patch_fits(const oly_stencil *s, const oly_cuda_stencil_task *t)
{
    shape p = shape_of(s);
    int bytes = s->dtype == OLY_FLOAT32 ? 4 : 8;
    if (s->rank > 2 || 2 * edge_of(t, p) * bytes > SHARED_BYTES)
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
    int window[2];
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
    "struct patch_task {\n    const real *source;\n    real *destination;\n    int64_t source_stride, "
    "destination_stride;\n"
    "    int32_t lo[2], hi[2], fixed_lo[2], fixed_hi[2], tile[2], tiles[2], before[2], steps, unused;\n"
    "    real coefficient[256 / sizeof(real)];\n};\n"
    "struct alignas(4 * sizeof(real) < 16 ? 4 * sizeof(real) : 16) four {\n    real v[4];\n};\n"
    "enum { WIDTH = OLY_WARP * COLUMNS, SHOWN = UP + DOWN, EDGE = WARPS * (SHOWN * WIDTH + (ACROSS > 1 ? LEFT + RIGHT "
    ": 0)) + 1 };\n"
    "typedef real patch[ROWS][COLUMNS];\n"
    "typedef real lines[UP + 1 + DOWN][LEFT + COLUMNS + RIGHT];\n"
    "OLY_DEVICE int32_t larger(int32_t a, int32_t b)\n{\n    return a > b ? a : b;\n}\n"
    "OLY_DEVICE int32_t smaller(int32_t a, int32_t b)\n{\n    return a < b ? a : b;\n}\n";

static const char exchange[] =
    /* what the neighbours of a warp read: its first rows, its last ones; in one dimension its first and last elements */
    "OLY_DEVICE void show(const patch &u, real *edge, int warp, int lane)\n{\n"
    "    OLY_UNROLL\n    for (int k = 0; k < SHOWN; k++)\n        OLY_UNROLL\n        for (int c = 0; c < COLUMNS; "
    "c++)\n"
    "            edge[(warp * SHOWN + k) * WIDTH + lane * COLUMNS + c] = u[k < DOWN ? k : ROWS - UP + k - DOWN][c];\n"
    "    real *ends = edge + WARPS * SHOWN * WIDTH + warp * (LEFT + RIGHT);\n"
    "    OLY_UNROLL\n    for (int k = 0; ACROSS > 1 && k < LEFT + RIGHT; k++)\n"
    "        if (lane == (k < RIGHT ? 0 : OLY_WARP - 1))\n"
    "            ends[k] = u[0][k < RIGHT ? k : COLUMNS - LEFT + k - RIGHT];\n}\n"
    "OLY_DEVICE void row_of_neighbour(const real *edge, int warp, int k, int lane, real *to)\n{\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c++)\n"
    "        to[c] = warp >= 0 && warp < WARPS ? edge[(warp * SHOWN + k) * WIDTH + lane * COLUMNS + c] : 0;\n}\n"
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

/* INNER: every point of the window is of the update region. */
static const char advance[] =
    "template <bool INNER> OLY_DEVICE void advance(const patch_task &task, patch &u, const real *edge, int warp, int "
    "lane, int32_t y, int32_t x)\n{\n"
    "    lines line;\n    bool computed[COLUMNS];\n"
    "    OLY_UNROLL\n    for (int c = 0; c < COLUMNS; c++)\n"
    "        computed[c] = INNER || (x + c >= task.fixed_lo[1] && x + c < task.fixed_hi[1]);\n"
    "    OLY_UNROLL\n    for (int k = 0; k < UP + DOWN; k++)\n        row_at(u, edge, warp, lane, k - UP, line[k]);\n"
    "    OLY_UNROLL\n    for (int r = 0; r < ROWS; r++) {\n"
    "        row_at(u, edge, warp, lane, r + DOWN, line[UP + DOWN]);\n"
    "        const bool row = INNER || (y + r >= task.fixed_lo[0] && y + r < task.fixed_hi[0]);\n"
    "        OLY_UNROLL\n        for (int c = 0; c < COLUMNS; c++) {\n"
    "            const real sum = sum_of(task, line, c);\n"
    "            u[r][c] = row && computed[c] ? sum : line[UP][LEFT + c];\n        }\n"
    "        OLY_UNROLL\n        for (int k = 0; k < UP + DOWN; k++)\n            OLY_UNROLL\n"
    "            for (int c = 0; c < LEFT + COLUMNS + RIGHT; c++)\n                line[k][c] = line[k + 1][c];\n"
    "    }\n}\n";

/* Elements are read where they are needed; others are zero, and reach no result. */
static const char kernel[] =
    "OLY_KERNEL_BLOCK_BOUNDED(oly_stencil_patch, patch_task, OLY_WARP * WARPS, 2)\n{\n"
    "    OLY_SHARED(real, edges, 2 * EDGE);\n"
    "    const int lane = oly_lane(), warp = oly_warp();\n"
    "    const int32_t row = warp / ACROSS * ROWS, column = (warp % ACROSS * OLY_WARP + lane) * COLUMNS;\n"
    "    const int32_t height = WARPS / ACROSS * ROWS, width = ACROSS * WIDTH;\n"
    "    const bool from_fours = ((uint64_t)task.source | task.source_stride * sizeof(real)) % sizeof(four) == 0 && "
    "task.lo[1] % 4 == 0;\n"
    "    const bool to_fours = ((uint64_t)task.destination | task.destination_stride * sizeof(real)) % sizeof(four) == "
    "0 && task.lo[1] % 4 == 0;\n"
    "    int turn = 0;\n"
    "    for (int64_t number = oly_block(); number < (int64_t)task.tiles[0] * task.tiles[1]; number += oly_blocks()) "
    "{\n"
    "        const int32_t at[2] = {(int32_t)(number / task.tiles[1]), (int32_t)(number % task.tiles[1])};\n"
    "        int32_t lo[2], hi[2], need_lo[2], need_hi[2], first[2];\n        bool any = true, inner = true;\n"
    "        for (int d = 0; d < 2; d++) {\n"
    "            const int32_t up = d ? LEFT : UP, down = d ? RIGHT : DOWN;\n"
    "            lo[d] = task.lo[d] + at[d] * task.tile[d];\n"
    "            hi[d] = smaller(lo[d] + task.tile[d], task.hi[d]);\n"
    "            first[d] = lo[d] - task.before[d];\n"
    "            const int32_t update_lo = larger(lo[d], task.fixed_lo[d]), update_hi = smaller(hi[d], "
    "task.fixed_hi[d]);\n"
    "            any = any && update_lo < update_hi;\n"
    "            inner = inner && first[d] >= task.fixed_lo[d] && first[d] + (d ? width : height) <= "
    "task.fixed_hi[d];\n"
    "            need_lo[d] = larger(update_lo - task.steps * up, task.fixed_lo[d] - up);\n"
    "            need_hi[d] = smaller(update_hi + task.steps * down, task.fixed_hi[d] + down);\n        }\n"
    "        for (int d = 0; d < 2; d++) {\n"
    "            need_lo[d] = any ? smaller(need_lo[d], lo[d]) : lo[d];\n"
    "            need_hi[d] = any ? larger(need_hi[d], hi[d]) : hi[d];\n        }\n"
    "        const int32_t y = first[0] + row, x = first[1] + column;\n"
    "        patch u;\n"
    "        OLY_UNROLL\n        for (int r = 0; r < ROWS; r++) {\n"
    "            const real *from = task.source + (y + r) * task.source_stride + x;\n"
    "            const bool there = y + r >= need_lo[0] && y + r < need_hi[0];\n"
    "            OLY_UNROLL\n            for (int c = 0; c < COLUMNS; c += 4) {\n"
    "                if (there && from_fours && x + c >= need_lo[1] && x + c + 4 <= need_hi[1]) {\n"
    "                    const four v = *(const four *)(from + c);\n"
    "                    OLY_UNROLL\n                    for (int k = 0; k < 4; k++)\n                        u[r][c + "
    "k] = v.v[k];\n"
    "                } else {\n"
    "                    OLY_UNROLL\n                    for (int k = c; k < c + 4; k++)\n"
    "                        u[r][k] = there && x + k >= need_lo[1] && x + k < need_hi[1] ? from[k] : 0;\n"
    "                }\n            }\n        }\n"
    "        for (int32_t step = 0; any && step < task.steps; step++) {\n"
    "            real *edge = edges + turn * EDGE;\n            turn ^= 1;\n"
    "            show(u, edge, warp, lane);\n            oly_barrier();\n"
    "            if (inner)\n                advance<true>(task, u, edge, warp, lane, y, x);\n"
    "            else\n                advance<false>(task, u, edge, warp, lane, y, x);\n        }\n"
    "        OLY_UNROLL\n        for (int r = 0; r < ROWS; r++) {\n"
    "            real *to = task.destination + (y + r) * task.destination_stride + x;\n"
    "            const bool there = y + r >= lo[0] && y + r < hi[0];\n"
    "            OLY_UNROLL\n            for (int c = 0; c < COLUMNS; c += 4) {\n"
    "                if (there && to_fours && x + c >= lo[1] && x + c + 4 <= hi[1]) {\n"
    "                    four v;\n"
    "                    OLY_UNROLL\n                    for (int k = 0; k < 4; k++)\n                        v.v[k] = "
    "u[r][c + k];\n"
    "                    *(four *)(to + c) = v;\n"
    "                } else {\n"
    "                    OLY_UNROLL\n                    for (int k = c; k < c + 4; k++)\n"
    "                        if (there && x + k >= lo[1] && x + k < hi[1])\n                            to[k] = "
    "u[r][k];\n"
    "                }\n            }\n        }\n"
    "    }\n}\n";

/* All that the text depends on. */
typedef struct patch_key {
    char name[8];
    int32_t dtype, rank, n_taps, below[2], above[2], offset[OLY_STENCIL_TAPS][2];
} patch_key;

static patch_key key_of(const oly_stencil *s, const oly_cuda_stencil_task *t)
{
    patch_key k;
    memset(&k, 0, sizeof k);
    memcpy(k.name, "patch", 6);
    k.dtype = (int32_t)s->dtype;
    k.rank = s->rank;
    k.n_taps = s->n_taps;
    for (int d = 0; d < 2; d++) {
        k.below[d] = t->below[1 + d];
        k.above[d] = t->above[1 + d];
    }
    for (int n = 0; n < s->n_taps; n++)
        for (int d = 0; d < s->rank; d++)
            k.offset[n][2 - s->rank + d] = s->offset[n][d];
    return k;
}

static char *make_text(const void *of)
{
    const patch_key *k = of;
    shape p = shape_of(&(oly_stencil){.dtype = (oly_dtype)k->dtype, .rank = k->rank});
    oly_text t = {0};
    oly_text_add(&t,
                 "#include \"element.h\"\n"
                 "enum { ROWS = %d, COLUMNS = %d, WARPS = %d, ACROSS = %d, UP = %d, DOWN = %d, LEFT = %d, RIGHT = %d };\n"
                 "typedef %s real;\n%s",
                 p.rows, p.columns, WARPS, p.across, k->below[0], k->above[0], k->below[1], k->above[1],
                 k->dtype == OLY_FLOAT32 ? "float" : "double", helpers);
    oly_text_add(&t, "%s", exchange);
    oly_text_add(&t, "OLY_DEVICE real sum_of(const patch_task &task, const lines &line, int c)\n{\n    real sum;\n");
    for (int n = 0; n < k->n_taps; n++) {
        oly_text_add(&t, n ? "    sum = oly_fma(task.coefficient[%d], " : "    sum = task.coefficient[%d] * ", n);
        oly_text_add(&t, "line[UP + (%d)][LEFT + c + (%d)]%s;\n", k->offset[n][0], k->offset[n][1], n ? ", sum)" : "");
    }
    oly_text_add(&t, "    return sum;\n}\n%s", advance);
    oly_text_add(&t, "%s", kernel);
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

oly_status oly_cuda_patch(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t,
                          bool *launched)
{
    patch_key key = key_of(s, t);
    patch_task p = {.source = t->source,
                    .destination = t->destination,
                    .source_stride = t->source_stride[1],
                    .destination_stride = t->destination_stride[1],
                    .steps = t->steps};
    double points = 1;
    int tile[2], before[2];
    tile_of(shape_of(s), t, t->steps, tile, before);
    for (int d = 0; d < 2; d++) {
        p.lo[d] = (int32_t)t->lo[1 + d];
        p.hi[d] = (int32_t)t->hi[1 + d];
        p.fixed_lo[d] = bounded(t->fixed_lo[1 + d]);
        p.fixed_hi[d] = bounded(t->fixed_hi[1 + d]);
        p.tile[d] = tile[d];
        p.tiles[d] = (p.hi[d] - p.lo[d] + tile[d] - 1) / tile[d];
        p.before[d] = before[d];
        points *= p.hi[d] - p.lo[d];
    }
    for (int n = 0; n < s->n_taps; n++)
        if (s->dtype == OLY_FLOAT32)
            p.coefficient.f32[n] = (float)s->coefficient[n];
        else
            p.coefficient.f64[n] = s->coefficient[n];
    oly_cuda_launch launch = {.kernel = "oly_stencil_patch",
                              .blocks = oly_cuda_blocks(l, (int64_t)p.tiles[0] * p.tiles[1], 1),
                              .threads = OLY_CUDA_THREADS,
                              .task_bytes = sizeof p};
    memcpy(launch.task, &p, sizeof p);
    oly_cuda_generated generated = {.key = &key,
                                    .key_bytes = sizeof key,
                                    .work = points * t->steps * s->n_taps,
                                    .text = make_text,
                                    .of = &key};
    return l->generated(l->context, &generated, &launch, launched);
}
