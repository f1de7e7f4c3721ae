/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels that compute several steps of a linear stencil on their way along the slowest dimension, its key and its launch:
 * see stencil_wave_text.h. Taps are added in their order, each with a fused multiply-add, as in stencil.cu and on CPUs.
 *
 * A slab is a row of a field of two dimensions, a plane of one of three. Stage k of a block computes step k, as many slabs behind stage
 * k - 1 as taps reach forwards, and keeps in registers the slabs that its taps reach:
 *
 *      slab      z       z - 1     z - 2     z - 3
 *              read --> step 1 --> step 2 --> step 3 --> write
 *
 * Memory is read and written once for all steps, some slabs ahead of the first stage. What is computed twice is the margin of a tile
 * beside the way, and the slabs before it until the last stage has begun.
 *
 * In two dimensions a block is one warp: lanes have adjacent columns and exchange them by shuffles; nothing waits. In three a warp has
 * a few rows, warps lie below one another and show each other their first and last rows in shared memory: of all stages at
 * once, as a stage's middle slab is there before the step, so that a slab needs one barrier. */
#include "cuda/stencil_wave_text.h"
#include "core/min_max.h"
#include "core/text.h"
#include "cuda/launching.h"
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, MOST_STEPS = 16, SHARED_BYTES = 64 << 10, LARGEST = 1 << 29 };

/* As the struct of the text. Dimensions are slab, row, column; a field of two dimensions has slabs of one row. */
typedef struct wave_task {
    const char *source;
    char *destination;
    int64_t source_stride[2], destination_stride[2]; /* of slabs and rows */
    int32_t lo[3], hi[3], fixed_lo[3], fixed_hi[3], tile[3], tiles[3], before[3], origin[3];
    union {
        float f32[2 * OLY_STENCIL_TAPS];
        double f64[OLY_STENCIL_TAPS];
    } coefficient;
} wave_task;

/* A field and its stencil, dimensions as in wave_task. */
typedef struct waved {
    int n_taps, bytes;
    int32_t below[3], above[3];
    int64_t extent[3];          /* of what is written */
    int64_t end;                /* the largest coordinate */
    bool lowest[3], highest[3]; /* nothing before it, after it is read */
} waved;

/* What a launch is like. rows, columns: of a thread's patch of a slab; blocks: that a processor has at once; ahead: slabs. */
typedef struct shape {
    int32_t steps, rows, columns, warps, blocks, ahead;
    int32_t slabs; /* of a tile; not part of the text */
    double time;   /* that it is expected to take, in cycles */
} shape;

/* In oly_cuda_stencil_task. */
static int dimension_of(const oly_stencil *s, int d)
{
    return s->rank == 2 ? (d == 0 ? 1 : d == 1 ? 0 : 2) : d;
}

static waved waved_of(const oly_stencil *s, const oly_cuda_stencil_task *t)
{
    waved w = {.n_taps = s->n_taps, .bytes = s->dtype == OLY_FLOAT32 ? 4 : 8};
    for (int d = 0; d < 3; d++) {
        int from = dimension_of(s, d);
        w.below[d] = t->below[from];
        w.above[d] = t->above[from];
        w.extent[d] = t->hi[from] - t->lo[from];
        w.end = oly_larger(w.end, t->hi[from]);
        w.lowest[d] = t->fixed_lo[from] - w.below[d] >= t->lo[from];
        w.highest[d] = t->fixed_hi[from] + w.above[d] <= t->hi[from];
    }
    return w;
}

/* -- shapes ------------------------------------------------------------------------------------------------------------------------- */

static int vector_of(const waved *w, int columns)
{
    return columns * w->bytes % 16 ? 1 : 16 / w->bytes;
}

/* How a field is divided. At the ends of the field what is beside a tile in its window, in rows and columns, belongs to the tile: the
 * first one begins at the field's end, before its origin. */
typedef struct division {
    int32_t tile[3], before[3], origin[3], tiles[3];
} division;

/* False: nothing is left of the window. */
static bool divide(const waved *w, const shape *p, division *v)
{
    int vector[3] = {1, 1, vector_of(w, p->columns)}, sector = 32 / w->bytes;
    int32_t window[3] = {0, p->warps * p->rows, WARP * p->columns};
    for (int d = 0; d < 3; d++) {
        int32_t after = (p->steps * w->above[d] + vector[d] - 1) / vector[d] * vector[d];
        v->before[d] = (p->steps * w->below[d] + vector[d] - 1) / vector[d] * vector[d];
        v->tile[d] = d ? window[d] - v->before[d] - after : p->slabs;
        if (v->tile[d] < 1)
            return false;
        v->origin[d] = d && w->lowest[d] ? v->before[d] : 0;
        int64_t rest = w->extent[d] - (d && w->highest[d] ? after : 0);
        v->tiles[d] = (int32_t)oly_larger(1, (rest - v->origin[d] + v->tile[d] - 1) / v->tile[d]);
        int32_t whole = v->origin[d] / sector * sector; /* tiles write whole sectors of memory */
        if (d == 2 && v->tile[d] % sector == 0 && rest - whole <= (int64_t)v->tiles[d] * v->tile[d])
            v->origin[d] = whole;
    }
    return true;
}

static int shared_bytes(const waved *w, const shape *p)
{
    return 2 * p->steps * (w->below[1] + w->above[1]) * p->warps * WARP * p->columns * w->bytes;
}

/* How many blocks a processor's registers hold; 40 is what ptxas was seen to need beside patches. */
static int blocks_of(const waved *w, const shape *p)
{
    int words = p->rows * p->columns * w->bytes / 4, kept = w->below[0] + w->above[0];
    int registers = 40 + words * (kept * p->steps + 2 + p->ahead);
    if (registers > 232 || shared_bytes(w, p) > SHARED_BYTES)
        return 0;
    int warps = 65536 / WARP / registers / 4 * 4; /* each of a processor's four parts has a fourth of the registers */
    return (warps > 16 ? 16 : warps) / p->warps;
}

/* Cycles of a launch: the instructions of all warps of a processor, what goes through its shared memory, the memory's share, or the
 * latency of a slab, whichever takes longer. Estimated from the machine code for sm_90. */
static double time_of(const waved *w, const shape *p, const division *v, int processors)
{
    const int words = w->bytes / 4;
    double points = p->rows * p->columns, vectors = points / vector_of(w, p->columns);
    double shown = w->below[1] + w->above[1], sides = p->rows * (w->below[2] + w->above[2]) * words;
    double instructions =
        p->steps * (points * words * w->n_taps + sides + 2 * shown * vectors / p->rows) + 8 * vectors + 40;
    double shared =
        p->steps * (sides + 2 * shown * p->columns * words) + 2 * points * words * (points > vectors ? 1 : p->columns);
    double blocks = (double)v->tiles[0] * v->tiles[1] * v->tiles[2], area = WARP * p->columns * p->warps * p->rows;
    double slabs = p->slabs + 0.75 * p->steps * (w->below[0] + w->above[0]);
    double held = blocks / processors < p->blocks ? blocks / processors : p->blocks; /* by a processor */
    double rounds = blocks <= (double)p->blocks * processors ? 1 : blocks / ((double)p->blocks * processors),
           warps = (held < 1 ? 1 : held) * p->warps;
    double issue = (warps + 4) * instructions / 4, exchange = warps * shared,
           latency = 1.5 * instructions + (shown > 0 ? 250 : 100);
    double slab = issue > exchange ? issue : exchange;
    double computing = rounds * slabs * (slab > latency ? slab : latency);
    double own = (double)w->extent[0] * w->extent[1] * w->extent[2];
    double read = 0.5 * (own + blocks * area * (p->slabs + p->steps * (w->below[0] + w->above[0])));
    double memory = (read + own) * w->bytes / (13.0 * processors);
    return 4000 + (computing > memory ? computing + 0.3 * memory : memory + 0.3 * computing);
}

/* Replaces *best by what is faster; with few slabs in a tile all processors are busy, with many less is computed twice. */
static void try_shape(const waved *w, shape *p, int processors, shape *best)
{
    division v;
    p->blocks = blocks_of(w, p);
    p->slabs = 1;
    if (!p->blocks || !divide(w, p, &v))
        return;
    double columns = (double)v.tiles[1] * v.tiles[2], last = 0;
    for (int part = 1; part <= 8; part *= 2) {
        int64_t along = oly_larger((int64_t)((double)p->blocks * processors / part / columns), 1);
        p->slabs = (int32_t)((w->extent[0] + along - 1) / along);
        divide(w, p, &v);
        p->time = time_of(w, p, &v, processors);
        if (!best->steps || p->time < best->time)
            *best = *p;
        if (along == 1 || (last > 0 && p->time > last))
            break;
        last = p->time;
    }
}

/* Of so many steps; steps is 0 where there is none. */
static shape shape_of(const waved *w, int steps, int processors)
{
    static const int rows[] = {4, 2}, warps[] = {8, 12, 6}, columns[2][3] = {{4, 3, 8}, {2, 4, 4}};
    bool flat = w->extent[1] == 1 && !w->below[1] && !w->above[1];
    shape best = {0};
    for (int r = 0; r < (flat ? 1 : 2); r++)
        for (int n = 0; n < (flat ? 1 : 3); n++)
            for (int c = 0; c < (flat || w->bytes == 8 ? 2 : 3); c++) {
                shape p = {.steps = steps,
                           .rows = flat ? 1 : rows[r],
                           .columns = columns[w->bytes == 8][c],
                           .warps = flat ? 1 : warps[n],
                           .ahead = flat ? 2 : 1};
                if (w->below[1] <= p.rows && w->above[1] <= p.rows && w->below[2] <= p.columns &&
                    w->above[2] <= p.columns)
                    try_shape(w, &p, processors, &best);
            }
    return best;
}

static int processors_of(const oly_cuda_launcher *l)
{
    return l->processors > 0 ? l->processors : 1;
}

/* What taps reach is at hand. */
static bool fits(const oly_stencil *s, const waved *w)
{
    if (s->rank < 2 || (!w->above[0] && (w->below[1] || w->above[1]))) /* the middle slab would be the newest */
        return false;
    for (int n = 0; n < s->n_taps && s->rank == 3; n++) /* of other slabs only what is in the same row is at hand */
        if (s->offset[n][0] && s->offset[n][1])
            return false;
    return w->end < LARGEST;
}

int oly_cuda_wave_steps(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t, int most)
{
    waved w = waved_of(s, t);
    int best = 0;
    double least = 0, of[MOST_STEPS + 1] = {0};
    for (int steps = 1; fits(s, &w) && steps <= most && steps <= MOST_STEPS; steps++) {
        shape p = shape_of(&w, steps, processors_of(l));
        if (!p.steps)
            break;
        of[steps] = p.time;
        const int launches = most / steps;
        double time = launches * p.time + of[most % steps];
        if (!best || time < least) {
            best = steps;
            least = time;
        }
    }
    return best;
}

/* -- the text ----------------------------------------------------------------------------------------------------------------------- */

static const char begin[] =
    "struct wave_task {\n"
    "    const real *source;\n"
    "    real *destination;\n"
    "    int64_t source_stride[2], destination_stride[2];\n"
    "    int32_t lo[3], hi[3], fixed_lo[3], fixed_hi[3], tile[3], tiles[3], before[3], origin[3];\n"
    "    alignas(8) real coefficient[256 / sizeof(real)];\n"
    "};\n"
    "enum {\n"
    "    WIDTH = OLY_WARP * COLUMNS,\n"
    "    SHOWN = UP + DOWN,\n"
    "    KEPT = BACK + FRONT,\n"
    "    SLOTS = KEPT > 0 ? KEPT : 1,\n"
    "    PIECE = COLUMNS * sizeof(real) % 16 ? 1 : 16 / sizeof(real), /* of what warps show each other */\n"
    "    TURNS = KEPT == 3 || KEPT == 4 ? 4 : 2, /* slabs after which patches are in the same registers again; more "
    "text otherwise */\n"
    "    HALF = KEPT > 2 ? 0 : STEPS / 2,\n"
    "    EDGE = WARPS * SHOWN * WIDTH\n"
    "};\n"
    "template <int N> struct alignas(N * sizeof(real)) vector_of {\n"
    "    real v[N];\n"
    "};\n"
    "typedef vector_of<VECTOR> vector;\n"
    "typedef vector_of<PIECE> piece;\n"
    "typedef real patch[ROWS][COLUMNS];\n"
    "typedef real line[LEFT + COLUMNS + RIGHT];\n"
    "OLY_DEVICE int32_t larger(int32_t a, int32_t b)\n"
    "{\n"
    "    return a > b ? a : b;\n"
    "}\n"
    "OLY_DEVICE int32_t smaller(int32_t a, int32_t b)\n"
    "{\n"
    "    return a < b ? a : b;\n"
    "}\n";

/* Elements are read where they are needed; others are zero, and reach no result. */
static const char tiles[] =
    "struct region {\n"
    "    int32_t lo[3], hi[3];\n"
    "};\n"
    "struct tile : region {\n"
    "    region need;\n"
    "    int32_t first[3];\n"
    "    bool inner, whole, vectors;\n"
    "};\n"
    "OLY_DEVICE tile tile_at(const wave_task &task, int64_t number)\n"
    "{\n"
    "    const int32_t reach[2][3] = {{BACK, UP, LEFT}, {FRONT, DOWN, RIGHT}}, window[3] = {0, WARPS * ROWS, WIDTH};\n"
    "    const int64_t row = number / task.tiles[2];\n"
    "    const int32_t at[3] = {(int32_t)(row / task.tiles[1]), (int32_t)(row % task.tiles[1]), (int32_t)(number % "
    "task.tiles[2])};\n"
    "    bool any = true;\n"
    "    tile t;\n"
    "    t.inner = t.whole = true;\n"
    "    for (int d = 0; d < 3; d++) {\n"
    "        const int32_t nominal = task.origin[d] + at[d] * task.tile[d]; /* tiles at the ends take what is beyond "
    "*/\n"
    "        t.lo[d] = at[d] == 0 ? task.lo[d] : nominal;\n"
    "        t.hi[d] = at[d] == task.tiles[d] - 1 ? task.hi[d] : nominal + task.tile[d];\n"
    "        t.first[d] = nominal - task.before[d];\n"
    "        const int32_t update_lo = larger(t.lo[d], task.fixed_lo[d]), update_hi = smaller(t.hi[d], "
    "task.fixed_hi[d]);\n"
    "        any = any && update_lo < update_hi;\n"
    "        t.need.lo[d] = larger(update_lo - STEPS * reach[0][d], task.fixed_lo[d] - reach[0][d]);\n"
    "        t.need.hi[d] = smaller(update_hi + STEPS * reach[1][d], task.fixed_hi[d] + reach[1][d]);\n"
    "    }\n"
    "    for (int d = 0; d < 3; d++) {\n"
    "        t.need.lo[d] = any ? smaller(t.need.lo[d], t.lo[d]) : t.lo[d];\n"
    "        t.need.hi[d] = any ? larger(t.need.hi[d], t.hi[d]) : t.hi[d];\n"
    "        if (d > 0) {\n"
    "            t.inner = t.inner && t.first[d] >= task.fixed_lo[d] && t.first[d] + window[d] <= task.fixed_hi[d];\n"
    "            t.whole = t.whole && t.first[d] >= t.need.lo[d] && t.first[d] + window[d] <= t.need.hi[d];\n"
    "        }\n"
    "    }\n"
    "    t.vectors = (t.hi[2] - t.lo[2]) % VECTOR == 0;\n"
    "    return t;\n"
    "}\n"
    "struct place {\n"
    "    int32_t y, x;\n"
    "    uint32_t rows, columns;\n"
    "};\n"
    "template <class F> OLY_DEVICE uint32_t bits_of(int n, F f)\n"
    "{\n"
    "    uint32_t bits = 0;\n"
    "    OLY_UNROLL\n"
    "    for (int k = 0; k < n; k++)\n"
    "        bits |= (uint32_t)f(k) << k;\n"
    "    return bits;\n"
    "}\n"
    "OLY_DEVICE place place_of(int32_t y, int32_t x, const int32_t *lo, const int32_t *hi)\n"
    "{\n"
    "    place p;\n"
    "    p.y = y, p.x = x;\n"
    "    p.rows = bits_of(ROWS, [&](int r) { return y + r >= lo[1] && y + r < hi[1]; });\n"
    "    p.columns = bits_of(COLUMNS, [&](int c) { return x + c >= lo[2] && x + c < hi[2]; });\n"
    "    return p;\n"
    "}\n"
    "OLY_DEVICE void read_patch(const real *from, int64_t stride, bool whole, uint32_t rows, uint32_t columns, patch "
    "&u)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int r = 0; r < ROWS; r++) {\n"
    "        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c += VECTOR) {\n"
    "            if (whole) {\n"
    "                const vector v = *(const vector *)(from + c);\n"
    "                OLY_UNROLL\n"
    "                for (int k = 0; k < VECTOR; k++)\n"
    "                    u[r][c + k] = v.v[k];\n"
    "            } else {\n"
    "                OLY_UNROLL\n"
    "                for (int k = c; k < c + VECTOR; k++)\n"
    "                    u[r][k] = rows >> r & columns >> k & 1 ? from[k] : 0;\n"
    "            }\n"
    "        }\n"
    "        from += stride;\n"
    "    }\n"
    "}\n"
    "OLY_DEVICE void write_patch(real *to, int64_t stride, bool vectors, uint32_t rows, uint32_t columns, const patch "
    "&u)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int r = 0; r < ROWS; r++) {\n"
    "        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c += VECTOR) {\n"
    "            if (vectors) {\n"
    "                vector v;\n"
    "                OLY_UNROLL\n"
    "                for (int k = 0; k < VECTOR; k++)\n"
    "                    v.v[k] = u[r][c + k];\n"
    "                if (rows >> r & columns >> c & 1)\n"
    "                    *(vector *)(to + c) = v;\n"
    "            } else {\n"
    "                OLY_UNROLL\n"
    "                for (int k = c; k < c + VECTOR; k++)\n"
    "                    if (rows >> r & columns >> k & 1)\n"
    "                        to[k] = u[r][k];\n"
    "            }\n"
    "        }\n"
    "        to += stride;\n"
    "    }\n"
    "}\n";

/* line: a row with the columns beside it. */
static const char stages[] =
    "OLY_DEVICE void copy(const patch &from, patch &to)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int r = 0; r < ROWS; r++) {\n"
    "        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++)\n"
    "            to[r][c] = from[r][c];\n"
    "    }\n"
    "}\n"
    "OLY_DEVICE void widen(const real *row, line &l)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int c = 0; c < COLUMNS; c++)\n"
    "        l[LEFT + c] = row[c];\n"
    "    OLY_UNROLL\n"
    "    for (int k = 0; k < LEFT; k++)\n"
    "        l[k] = oly_shuffle_up(row[COLUMNS - LEFT + k], 1);\n"
    "    OLY_UNROLL\n"
    "    for (int k = 0; k < RIGHT; k++)\n"
    "        l[LEFT + COLUMNS + k] = oly_shuffle_down(row[k], 1);\n"
    "}\n"
    "OLY_DEVICE void show(const patch &u, real *edge, int warp, int lane)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int k = 0; k < SHOWN; k++) {\n"
    "        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c += PIECE) {\n"
    "            piece v;\n"
    "            OLY_UNROLL\n"
    "            for (int i = 0; i < PIECE; i++)\n"
    "                v.v[i] = u[k < DOWN ? k : ROWS - UP + k - DOWN][c + i];\n"
    "            *(piece *)(edge + (warp * SHOWN + k) * WIDTH + lane * COLUMNS + c) = v;\n"
    "        }\n"
    "    }\n"
    "}\n"
    "OLY_DEVICE void row_of_neighbour(const real *edge, int warp, int k, int lane, real *to)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int c = 0; c < COLUMNS; c += PIECE) {\n"
    "        const piece v = *(const piece *)(edge + (warp * SHOWN + k) * WIDTH + lane * COLUMNS + c);\n"
    "        OLY_UNROLL\n"
    "        for (int i = 0; i < PIECE; i++)\n"
    "            to[c + i] = v.v[i];\n"
    "    }\n"
    "}\n"
    /* The slab at distance d of the middle one. */
    "OLY_DEVICE const patch &at_distance(const patch *kept, const patch &now, int d)\n"
    "{\n"
    "    return d == FRONT ? now : kept[BACK + d];\n"
    "}\n"
    /* Of a point, whether it is in the update region's rows and columns. */
    "typedef bool places[ROWS][COLUMNS];\n"
    /* What stages compute: all points; those beside the borders of rows and columns; any. */
    "enum { ALL, BESIDE, ANY };\n"
    "template <bool INNER> OLY_DEVICE void step(const wave_task &task, const patch *kept, const patch &now, const real "
    "*edge, int warp, int lane, const places &updated, patch &after)\n"
    "{\n"
    "    const patch &middle = at_distance(kept, now, 0);\n"
    "    line beside[UP + ROWS + DOWN];\n"
    "    real row[COLUMNS];\n"
    "    OLY_UNROLL\n"
    "    for (int r = -UP; r < ROWS + DOWN; r++) {\n"
    "        if (r < 0)\n"
    "            row_of_neighbour(edge, larger(warp - 1, 0), DOWN + UP + r, lane, row);\n"
    "        else if (r >= ROWS)\n"
    "            row_of_neighbour(edge, smaller(warp + 1, WARPS - 1), r - ROWS, lane, row);\n"
    "        widen(r < 0 || r >= ROWS ? row : middle[r], beside[UP + r]);\n"
    "    }\n"
    "    OLY_UNROLL\n"
    "    for (int r = 0; r < ROWS; r++) {\n"
    "        line around[BACK + 1 + FRONT];\n"
    "        OLY_UNROLL\n"
    "        for (int d = -BACK; d <= FRONT; d++)\n"
    "            if (d)\n"
    "                widen(at_distance(kept, now, d)[r], around[BACK + d]);\n"
    "        OLY_UNROLL\n"
    "        for (int c = 0; c < COLUMNS; c++) {\n"
    "            const real sum = sum_of(task, beside, around, r, c);\n"
    "            after[r][c] = INNER || updated[r][c] ? sum : middle[r][c];\n"
    "        }\n"
    "    }\n"
    "}\n"
    /* The first ACTIVE stages; INNER: they compute all points. now: the newest slab, z; then the last stage's result, slab z - ACTIVE * FRONT. */
    "template <int MODE, int ACTIVE> OLY_DEVICE void advance(const wave_task &task, patch (&kept)[STEPS][SLOTS], patch "
    "&now, const real *edge, int warp, int lane, int32_t z, const places &updated)\n"
    "{\n"
    "    OLY_UNROLL\n"
    "    for (int k = 0; k < STEPS; k++) {\n"
    "        const int32_t at = z - (k + 1) * FRONT;\n"
    "        patch after;\n"
    "        if (k < ACTIVE) {\n"
    "            if (MODE != ANY || (at >= task.fixed_lo[0] && at < task.fixed_hi[0]))\n"
    "                step<MODE == ALL>(task, kept[k], now, edge + k * EDGE, warp, lane, updated, after);\n"
    "            else\n"
    "                copy(at_distance(kept[k], now, 0), after);\n"
    "        }\n"
    "        if (k <= ACTIVE) {\n"
    "            OLY_UNROLL\n"
    "            for (int d = 0; d + 1 < KEPT; d++)\n"
    "                copy(kept[k][d + 1], kept[k][d]);\n"
    "            if (KEPT)\n"
    "                copy(now, kept[k][SLOTS - 1]);\n"
    "        }\n"
    "        if (k < ACTIVE)\n"
    "            copy(after, now);\n"
    "    }\n"
    "}\n";

static const char kernel[] =
    /* From slab z on to the last, of which the first ACTIVE stages compute all but what is beside the update region. */
    "template <int MODE, int ACTIVE, class B, class F> OLY_DEVICE void inside(const wave_task &task, const tile &t, "
    "patch (&kept)[STEPS][SLOTS], patch (&ahead)[AHEAD], patch &now, real *shown, int warp, int lane, const places "
    "&updated, int32_t &z, int32_t last, B &begin, F &finish)\n"
    "{\n"
    "    for (; z <= last; z += TURNS) {\n"
    "        OLY_UNROLL\n"
    "        for (int j = 0; j < TURNS; j++) {\n"
    "            real *edge = shown + j % 2 * STEPS * EDGE;\n"
    "            begin(z + j, MODE == ALL || t.whole, ahead[j % AHEAD], edge);\n"
    "            advance<MODE, ACTIVE>(task, kept, now, edge, warp, lane, z + j, updated);\n"
    "            if (ACTIVE == STEPS)\n"
    "                finish(z + j, MODE == ALL || t.vectors);\n"
    "        }\n"
    "    }\n"
    "}\n"
    "OLY_KERNEL_BLOCK_BOUNDED(oly_stencil_wave, wave_task, OLY_WARP * WARPS, BLOCKS)\n"
    "{\n"
    "    OLY_SHARED_DYNAMIC(real, shown);\n"
    "    const int lane = oly_lane(), warp = WARPS > 1 ? oly_warp() : 0;\n"
    "    const int64_t n = (int64_t)task.tiles[0] * task.tiles[1] * task.tiles[2];\n"
    "    for (int64_t number = oly_block(); number < n; number += oly_blocks()) {\n"
    "        const tile t = tile_at(task, number);\n"
    "        const int32_t y = t.first[1] + warp * ROWS, x = t.first[2] + lane * COLUMNS;\n"
    "        const place need = place_of(y, x, t.need.lo, t.need.hi), own = place_of(y, x, t.lo, t.hi);\n"
    "        const int32_t first = t.lo[0] - STEPS * BACK, end = t.hi[0] + STEPS * FRONT;\n"
    "        const real *from = task.source + first * task.source_stride[0] + y * task.source_stride[1] + x;\n"
    "        real *to = task.destination + t.lo[0] * task.destination_stride[0] + y * task.destination_stride[1] + x;\n"
    "        places updated;\n"
    "        OLY_UNROLL\n"
    "        for (int i = 0; i < ROWS * COLUMNS; i++) {\n"
    "            const int32_t row = y + i / COLUMNS, column = x + i % COLUMNS;\n"
    "            updated[i / COLUMNS][i % COLUMNS] = row >= task.fixed_lo[1] && row < task.fixed_hi[1] && column >= "
    "task.fixed_lo[2] && column < task.fixed_hi[2];\n"
    "        }\n"
    "        patch kept[STEPS][SLOTS], ahead[AHEAD], now;\n"
    "        OLY_UNROLL\n"
    "        for (int k = 0; k < STEPS * SLOTS; k++) {\n"
    "            OLY_UNROLL\n"
    "            for (int i = 0; i < ROWS * COLUMNS; i++)\n"
    "                kept[k / SLOTS][k % SLOTS][i / COLUMNS][i % COLUMNS] = 0;\n"
    "        }\n"
    "        auto read = [&](int32_t z, bool whole, patch &u) {\n"
    "            if (z >= t.need.lo[0] && z < t.need.hi[0])\n"
    "                read_patch(from, task.source_stride[1], whole, need.rows, need.columns, u);\n"
    "            from += task.source_stride[0];\n"
    "        };\n"
    "        OLY_UNROLL\n"
    "        for (int k = 0; k < AHEAD; k++) {\n"
    "            OLY_UNROLL\n"
    "            for (int i = 0; i < ROWS * COLUMNS; i++)\n"
    "                ahead[k][i / COLUMNS][i % COLUMNS] = 0;\n"
    "            read(first + k, t.whole, ahead[k]);\n"
    "        }\n"
    "        if (SHOWN)\n"
    "            oly_barrier(); /* the tile before has been computed */\n"
    "        auto begin = [&](int32_t z, bool whole, patch &next, real *edge) {\n"
    "            copy(next, now);\n"
    "            read(z + AHEAD, whole, next);\n"
    "            if (SHOWN) {\n"
    "                OLY_UNROLL\n"
    "                for (int k = 0; k < STEPS; k++)\n"
    "                    show(kept[k][FRONT ? BACK : 0], edge + k * EDGE, warp, lane);\n"
    "                oly_barrier();\n"
    "            }\n"
    "        };\n"
    "        auto finish = [&](int32_t z, bool vectors) {\n"
    "            if (z - STEPS * FRONT >= t.lo[0]) {\n"
    "                write_patch(to, task.destination_stride[1], vectors, own.rows, own.columns, now);\n"
    "                to += task.destination_stride[0];\n"
    "            }\n"
    "        };\n"
    "        const bool all = t.inner && t.whole && t.vectors;\n"
    "        int32_t z = first;\n"
    "        const int32_t from_inside = task.fixed_lo[0] + STEPS * FRONT, to_inside = smaller(task.fixed_hi[0] + "
    "FRONT, end) - TURNS;\n"
    "        if (from_inside <= first) {\n"
    "            const int32_t last = smaller(to_inside, first + (HALF + 1) * KEPT - TURNS);\n"
    "            if (all)\n"
    "                inside<ALL, HALF>(task, t, kept, ahead, now, shown, warp, lane, updated, z, last, begin, "
    "finish);\n"
    "            else\n"
    "                inside<BESIDE, HALF>(task, t, kept, ahead, now, shown, warp, lane, updated, z, last, begin, "
    "finish);\n"
    "        }\n"
    "        while (z < end) {\n"
    "            if (z >= from_inside) {\n"
    "                if (all)\n"
    "                    inside<ALL, STEPS>(task, t, kept, ahead, now, shown, warp, lane, updated, z, to_inside, "
    "begin, finish);\n"
    "                else\n"
    "                    inside<BESIDE, STEPS>(task, t, kept, ahead, now, shown, warp, lane, updated, z, to_inside, "
    "begin, finish);\n"
    "            }\n"
    "            OLY_NO_UNROLL\n"
    "            for (int j = 0; j < TURNS && z < end; j++, z++) {\n"
    "                real *edge = shown + j % 2 * STEPS * EDGE;\n"
    "                patch next;\n"
    "                begin(z, t.whole, ahead[0], edge);\n"
    "                copy(ahead[0], next);\n"
    "                OLY_UNROLL\n"
    "                for (int k = 0; k + 1 < AHEAD; k++)\n"
    "                    copy(ahead[k + 1], ahead[k]);\n"
    "                copy(next, ahead[AHEAD - 1]);\n"
    "                advance<ANY, STEPS>(task, kept, now, edge, warp, lane, z, updated);\n"
    "                finish(z, t.vectors);\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "}\n";

/* All that the text depends on. */
typedef struct wave_key {
    char name[8];
    int32_t dtype, n_taps, shape[7], below[3], above[3], offset[OLY_STENCIL_TAPS][3];
} wave_key;

static wave_key key_of(const oly_stencil *s, const waved *w, const shape *p, int vector)
{
    wave_key k;
    memset(&k, 0, sizeof k);
    memcpy(k.name, "wave", 5);
    k.dtype = (int32_t)s->dtype;
    k.n_taps = s->n_taps;
    memcpy(k.shape, (int32_t[]){p->steps, p->rows, p->columns, p->warps, p->blocks, p->ahead, vector}, sizeof k.shape);
    memcpy(k.below, w->below, sizeof k.below);
    memcpy(k.above, w->above, sizeof k.above);
    for (int n = 0; n < s->n_taps; n++)
        for (int d = 0; d < s->rank; d++)
            k.offset[n][s->rank == 2 ? 2 * d : d] = s->offset[n][d];
    return k;
}

static char *make_text(const void *of)
{
    const wave_key *k = of;
    oly_text t = {0};
    oly_text_add(&t,
                 "#include \"element.h\"\n"
                 "enum { STEPS = %d, ROWS = %d, COLUMNS = %d, WARPS = %d, BLOCKS = %d, AHEAD = %d, VECTOR = %d, BACK = "
                 "%d, FRONT = "
                 "%d, UP = %d, DOWN = %d, LEFT = %d, RIGHT = %d };\n"
                 "typedef %s real;\n%s",
                 k->shape[0], k->shape[1], k->shape[2], k->shape[3], k->shape[4], k->shape[5], k->shape[6], k->below[0],
                 k->above[0], k->below[1], k->above[1], k->below[2], k->above[2],
                 k->dtype == OLY_FLOAT32 ? "float" : "double", begin);
    oly_text_add(&t, "%s", tiles);
    oly_text_add(&t, "OLY_DEVICE real sum_of(const wave_task &task, const line *beside, const line *around, int r, int "
                     "c)\n{\n    real sum;\n");
    for (int n = 0; n < k->n_taps; n++) {
        const int32_t *at = k->offset[n];
        oly_text_add(&t, n ? "    sum = oly_fma(task.coefficient[%d], " : "    sum = task.coefficient[%d] * ", n);
        if (at[0])
            oly_text_add(&t, "around[BACK + (%d)][LEFT + c + (%d)]", at[0], at[2]);
        else
            oly_text_add(&t, "beside[UP + r + (%d)][LEFT + c + (%d)]", at[1], at[2]);
        oly_text_add(&t, "%s;\n", n ? ", sum)" : "");
    }
    oly_text_add(&t, "    return sum;\n}\n%s", stages);
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

static void set_coefficients(const oly_stencil *s, wave_task *p)
{
    for (int n = 0; n < s->n_taps; n++)
        if (s->dtype == OLY_FLOAT32)
            p->coefficient.f32[n] = (float)s->coefficient[n];
        else
            p->coefficient.f64[n] = s->coefficient[n];
}

/* Whether rows can be read and written by vectors. */
static bool aligned(const wave_task *t, const waved *w)
{
    const void *const at[] = {t->source + t->lo[2] * w->bytes, t->destination + t->lo[2] * w->bytes};
    int64_t strides = t->source_stride[0] | t->source_stride[1] | t->destination_stride[0] | t->destination_stride[1];
    return (((uintptr_t)at[0] | (uintptr_t)at[1]) % 16) == 0 && strides * w->bytes % 16 == 0;
}

oly_status oly_cuda_wave(const oly_cuda_launcher *l, const oly_stencil *s, const oly_cuda_stencil_task *t,
                         bool *launched)
{
    waved w = waved_of(s, t);
    shape p = shape_of(&w, t->steps, processors_of(l));
    wave_task task = {.source = t->source, .destination = t->destination};
    division v;
    double points = 1;
    divide(&w, &p, &v);
    for (int d = 0; d < 3; d++) {
        int from = dimension_of(s, d);
        task.lo[d] = (int32_t)t->lo[from];
        task.hi[d] = (int32_t)t->hi[from];
        task.fixed_lo[d] = bounded(t->fixed_lo[from]);
        task.fixed_hi[d] = bounded(t->fixed_hi[from]);
        task.tile[d] = v.tile[d];
        task.tiles[d] = v.tiles[d];
        task.before[d] = v.before[d];
        task.origin[d] = task.lo[d] + v.origin[d];
        points *= task.hi[d] - task.lo[d];
        if (d < 2) {
            task.source_stride[d] = t->source_stride[from];
            task.destination_stride[d] = t->destination_stride[from];
        }
    }
    set_coefficients(s, &task);
    oly_cuda_launch launch = {
        .kernel = "oly_stencil_wave",
        .blocks = (unsigned)oly_smaller((int64_t)task.tiles[0] * task.tiles[1] * task.tiles[2], 1 << 20),
        .threads = (unsigned)(WARP * p.warps),
        .shared = (unsigned)shared_bytes(&w, &p),
        .task_bytes = sizeof task};
    wave_key key = key_of(s, &w, &p, aligned(&task, &w) ? vector_of(&w, p.columns) : 1);
    memcpy(launch.task, &task, sizeof task);
    oly_cuda_generated generated = {
        .key = &key, .key_bytes = sizeof key, .work = points * t->steps * s->n_taps, .text = make_text, .of = &key};
    return l->generated(l->context, &generated, &launch, launched);
}
