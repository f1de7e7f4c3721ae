/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels that compute fields by strips, its key and its launch: see field_strips.h.
 *
 * What a launch does is a list of units: a piece of a stage of a step, or of several stages that are computed on the same elements from values
 * of before. A function of the text computes a unit; it is made for the pieces and for which of the values that they read are in shared memory,
 * so that addresses there are constants from a thread's first element on:
 *
 *      a warp:    32 columns          a thread:   ROWS elements of a column, computed from rows that are loaded once
 *                 ROWS rows
 *
 * The last strip of a box ends with it: it begins among rows of the one before, and does not write those. Boxes of fewer rows are computed row
 * by row. No element depends on this, and results have the bits of field_text.c. */
#include "cuda/field_strips.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/text.h"
#include "cuda/fused_text.h"
#include "cuda/launching.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32,
    WARPS = OLY_CUDA_THREADS / WARP,
    MOST_ROWS = 8,
    MOST_JOINT = 4, /* stages of a unit */
    MOST_UNITS = 192,
    MOST_FUNCTIONS = 48,
    MOST_CODE = 6000,  /* instructions of all functions, of all rows */
    MOST_WORDS = 80,   /* that a thread loads and computes at once */
    MOST_COLUMNS = 48, /* different columns that a piece reads */
    EVERYWHERE = 1 << 30,
};

/* -- units: structs of the text, too ------------------------------------------------------------------------------------------------ */

/* Along a dimension: a tile extended by [lo, hi] is computed, in [least, most), in the images of the piece. */
typedef struct extent {
    int32_t lo, hi, least, most, piece_lo, piece_hi, period, unused; /* period 0: not periodic */
} extent;

/* Fields that are read together are 16 bytes, at multiples of them. */
typedef struct unit {
    int32_t function, barrier, step, unused;
    int32_t buffer[MOST_JOINT]; /* of each stage: where in shared memory, in bytes; -1: nowhere */
    int32_t target[MOST_JOINT]; /* the global value that it is; -1: none */
    extent in[3];
    int32_t read[OLY_FIELD_READS]; /* bytes in shared memory; globals */
} unit;

/* The tiles; `first`: element 0 of buffers, from the tile's. */
typedef struct task {
    const void *units;
    int64_t counter;
    int32_t n_units, bytes, lo[3], hi[3], tile[3], tiles[3], first[3], unused;
    oly_field_place global[OLY_FIELD_GLOBALS];
    char *base[OLY_FIELD_GLOBALS];
} task;

/* A function: of a piece of each of n stages. slot: the unit's number of what the stage reads; -1: the piece does not. shared: slots (bits) in shared
 * memory. */
typedef struct function {
    int32_t n;
    uint32_t shared;
    struct part {
        int32_t stage, piece; /* number in its stage */
        int8_t slot[OLY_FIELD_READS];
    } part[MOST_JOINT];
} function;

/* A unit that others may join. value: of each slot, as an instance's reads. */
typedef struct joint {
    bool any, alone;
    int n_slots;
    int32_t value[OLY_FIELD_READS];
    unit unit;
    function function;
} joint;

typedef struct plan {
    const oly_field_body *body;
    int32_t pitch, slab, rows, across, down; /* of buffers; of a strip; warps beside and below each other */
    int32_t sharing;                         /* blocks that share a processor */
    int n_functions;
    function function[MOST_FUNCTIONS];
    task task;
    unit unit[MOST_UNITS];
} plan;

static const oly_field_piece *piece_of(const plan *p, const function *f, int part)
{
    return &p->body->stages[f->part[part].stage].pieces[f->part[part].piece];
}

static bool same_text(const oly_field_piece *a, const oly_field_piece *b)
{
    size_t bytes = oly_field_put_piece(NULL, 0, a);
    if (bytes != oly_field_put_piece(NULL, 0, b))
        return false;
    char *both = malloc(2 * bytes);
    if (!both)
        return false;
    oly_field_put_piece(both, 0, a);
    oly_field_put_piece(both, bytes, b);
    bool same = memcmp(both, both + bytes, bytes) == 0;
    free(both);
    return same;
}

static bool same_function(const plan *p, const function *a, const function *b)
{
    bool same = a->n == b->n && a->shared == b->shared;
    for (int k = 0; k < a->n && same; k++)
        same = a->part[k].stage == b->part[k].stage &&
               memcmp(a->part[k].slot, b->part[k].slot, sizeof a->part[k].slot) == 0 &&
               same_text(piece_of(p, a, k), piece_of(p, b, k));
    return same;
}

/* Borders have pieces with one text. -1: too many functions. */
static int function_for(plan *p, const function *wanted)
{
    for (int k = 0; k < p->n_functions; k++)
        if (same_function(p, &p->function[k], wanted))
            return k;
    if (p->n_functions == MOST_FUNCTIONS)
        return -1;
    p->function[p->n_functions] = *wanted;
    return p->n_functions++;
}

/* Elements that read something which is not there are needed by nobody. */
static void narrow(const oly_field_stage *s, const oly_field_piece *piece, const oly_field_schedule *from,
                   const oly_field_instance *i, unit *u)
{
    int32_t least = 0, most = 0;
    for (int v = 0; v < s->n_reads; v++)
        for (int d = 0; d < 3; d++) {
            extent *e = &u->in[d];
            if (s->fixed[v] || !oly_field_reach(piece, v, d, &least, &most))
                continue;
            if (i->read[v] < 0) {
                const oly_field_instance *of = &from->instance[~i->read[v]];
                e->lo = (int32_t)oly_larger(e->lo, of->lo[d] - least);
                e->hi = (int32_t)oly_smaller(e->hi, of->hi[d] - most);
            } else {
                e->least = (int32_t)oly_larger(e->least, from->global[i->read[v]].lo[d] - least);
                e->most = (int32_t)oly_smaller(e->most, from->global[i->read[v]].hi[d] - most);
            }
        }
}

/* The slot of a value; -1: too many. */
static int slot_of(joint *j, int32_t value, int32_t read, bool shared)
{
    int k = 0;
    while (k < j->n_slots && j->value[k] != value)
        k++;
    if (k == OLY_FIELD_READS)
        return -1;
    if (k == j->n_slots) {
        j->value[j->n_slots++] = value;
        j->unit.read[k] = read;
        j->function.shared |= (uint32_t)shared << k;
    }
    return k;
}

/* The piece of the instance as the next part of the unit; false: it reads too much. */
static bool add_part(const plan *p, const oly_field_schedule *from, const oly_field_instance *i, int piece, joint *to)
{
    const oly_field_stage *s = &p->body->stages[i->stage];
    int part = to->function.n++;
    int32_t least, most;
    to->function.part[part].stage = i->stage;
    to->function.part[part].piece = piece;
    to->unit.buffer[part] = i->buffer < 0 ? -1 : i->buffer * from->buffer_bytes;
    to->unit.target[part] = i->target;
    for (int v = 0; v < OLY_FIELD_READS; v++) {
        int slot = -1;
        if (v < s->n_reads && oly_field_reach(&s->pieces[piece], v, 0, &least, &most)) {
            bool shared = i->read[v] < 0;
            int32_t at =
                shared ? (int32_t)oly_larger(from->instance[~i->read[v]].buffer, 0) * from->buffer_bytes : i->read[v];
            if ((slot = slot_of(to, i->read[v], at, shared)) < 0)
                return false;
        }
        to->function.part[part].slot[v] = (int8_t)slot;
    }
    return true;
}

/* Piece `piece` of the instance, `number` of all pieces. */
static bool begin_unit(const plan *p, const oly_field_schedule *from, const oly_field_instance *i, int piece,
                       int number, joint *to)
{
    const oly_field_stage *s = &p->body->stages[i->stage];
    memset(to, 0, sizeof *to);
    to->any = true;
    to->alone = s->n_pieces > 1;
    to->unit.step = i->step;
    for (int k = 0; k < MOST_JOINT; k++)
        to->unit.buffer[k] = to->unit.target[k] = -1;
    for (int d = 0; d < 3; d++)
        to->unit.in[d] = (extent){.lo = i->lo[d],
                                  .hi = i->hi[d],
                                  .least = -EVERYWHERE,
                                  .most = EVERYWHERE,
                                  .piece_lo = from->piece[number][d],
                                  .piece_hi = from->piece[number][3 + d],
                                  .period = s->copied ? 0 : from->period[d]};
    narrow(s, &s->pieces[piece], from, i, &to->unit);
    return add_part(p, from, i, piece, to);
}

static bool end_unit(plan *p, joint *j)
{
    if (!j->any)
        return true;
    j->any = false;
    if (p->task.n_units == MOST_UNITS)
        return false;
    j->unit.function = function_for(p, &j->function);
    p->unit[p->task.n_units++] = j->unit;
    return j->unit.function >= 0;
}

/* Whether the instance has to wait for those since the last barrier, whose buffers are noted (bits). */
static bool waits(const oly_field_body *body, const oly_field_schedule *from, const oly_field_instance *i,
                  uint64_t written[2], uint64_t read[2])
{
    uint64_t reads[2] = {0}, writes[2] = {0};
    bool wait = false;
    for (int v = 0; v < body->stages[i->stage].n_reads; v++)
        if (i->read[v] < 0 && from->instance[~i->read[v]].buffer >= 0) {
            int b = from->instance[~i->read[v]].buffer;
            reads[b / 64] |= (uint64_t)1 << b % 64;
        }
    if (i->buffer >= 0)
        writes[i->buffer / 64] |= (uint64_t)1 << i->buffer % 64;
    for (int k = 0; k < 2; k++)
        wait = wait || (reads[k] & written[k]) || (writes[k] & (written[k] | read[k]));
    for (int k = 0; k < 2; k++) {
        written[k] = (wait ? 0 : written[k]) | writes[k];
        read[k] = (wait ? 0 : read[k]) | reads[k];
    }
    return wait;
}

/* -- what a piece loads ----------------------------------------------------------------------------------------------------------------- */

/* Elements above each other: rows [least, most] around the one that is computed. */
typedef struct column {
    int slot, dtype;
    bool fixed;
    int32_t slab, across, least, most;
} column;

/* The columns that the function reads, and which one each load of its parts is in (-1: the counter); -1: too many. */
static int columns_of(const plan *p, const function *f, column *columns, int in[MOST_JOINT][OLY_TILE_REGISTERS])
{
    int n = 0;
    for (int part = 0; part < f->n; part++) {
        const oly_field_piece *piece = piece_of(p, f, part);
        for (int k = 0; k < piece->program.n_loads; k++) {
            const oly_field_load *load = &piece->loads[k];
            int c = 0, slot = load->read < 0 ? -1 : f->part[part].slot[load->read];
            in[part][k] = -1;
            if (slot < 0)
                continue;
            while (c < n && (columns[c].slot != slot || columns[c].slab != load->shift[0] ||
                             columns[c].across != load->shift[2]))
                c++;
            if (c == MOST_COLUMNS)
                return -1;
            if (c == n)
                columns[n++] = (column){.slot = slot,
                                        .fixed = p->body->stages[f->part[part].stage].fixed[load->read],
                                        .dtype = piece->program.load_dtype[k],
                                        .slab = load->shift[0],
                                        .across = load->shift[2],
                                        .least = load->shift[1],
                                        .most = load->shift[1]};
            columns[c].least = (int32_t)oly_smaller(columns[c].least, load->shift[1]);
            columns[c].most = (int32_t)oly_larger(columns[c].most, load->shift[1]);
            in[part][k] = c;
        }
    }
    return n;
}

static int words_of(int dtype)
{
    size_t bytes = oly_dtype_size((oly_dtype)dtype);
    return bytes > 4 ? (int)(bytes / 4) : 1;
}

/* What a thread loads and computes at once, in registers. */
static int words_at_once(const plan *p, const function *f, int rows)
{
    int in[MOST_JOINT][OLY_TILE_REGISTERS], words = 0;
    column columns[MOST_COLUMNS];
    int n = columns_of(p, f, columns, in);
    for (int c = 0; c < n; c++)
        words += (rows + columns[c].most - columns[c].least) * words_of(columns[c].dtype);
    for (int k = 0; k < f->n; k++)
        words += rows * words_of(piece_of(p, f, k)->program.store_dtype[0]);
    return n < 0 ? INT32_MAX : words;
}

/* Whether strips of so many rows are worth their registers and code. */
static bool rows_fit(const plan *p, int rows)
{
    int code = 0;
    for (int k = 0; k < p->n_functions; k++) {
        const function *f = &p->function[k];
        int words = words_at_once(p, f, rows);
        if (words == INT32_MAX || (rows > 1 && words > MOST_WORDS))
            return false;
        for (int j = 0; j < f->n; j++)
            code +=
                (rows + (rows > 1)) * (piece_of(p, f, j)->program.n_instructions + piece_of(p, f, j)->program.n_loads);
    }
    return code <= MOST_CODE;
}

/* -- all units --------------------------------------------------------------------------------------------------------------------------- */

/* Whether the next unit, which need not wait, is of the same elements, and both together have registers enough. */
static bool join(const plan *p, const oly_field_schedule *from, const oly_field_instance *i, const joint *next,
                 joint *to)
{
    joint both = *to;
    if (!to->any || to->alone || next->alone || to->function.n == MOST_JOINT || to->unit.step != next->unit.step ||
        memcmp(to->unit.in, next->unit.in, sizeof next->unit.in) != 0 || !add_part(p, from, i, 0, &both) ||
        words_at_once(p, &both.function, MOST_ROWS) > MOST_WORDS)
        return false;
    *to = both;
    return true;
}

static bool add_units(plan *p, const oly_field_schedule *from)
{
    const oly_field_body *body = p->body;
    uint64_t written[2] = {0}, read[2] = {0};
    joint last = {.any = false}, next;
    for (int k = 0; k < from->n_instances; k++) {
        const oly_field_instance *i = &from->instance[k];
        bool wait = waits(body, from, i, written, read) || k == 0;
        int number = 0;
        for (int s = 0; s < i->stage; s++)
            number += body->stages[s].n_pieces;
        for (int j = 0; j < body->stages[i->stage].n_pieces; j++) {
            if (!begin_unit(p, from, i, j, number + j, &next))
                return false;
            if (!wait && join(p, from, i, &next, &last))
                continue;
            next.unit.barrier = wait && j == 0;
            if (!end_unit(p, &last))
                return false;
            last = next;
        }
    }
    return end_unit(p, &last);
}

/* False: the kernel cannot be made. */
static bool make_plan(plan *p, const oly_field_body *body, const oly_field_schedule *from)
{
    int first = body->stages[0].first;
    p->body = body;
    p->pitch = first < 2 ? from->pitch[1] : 0;
    p->slab = first < 1 ? from->pitch[0] : 0;
    for (int d = 0; d < 3; d++) {
        p->task.lo[d] = from->lo[d];
        p->task.hi[d] = from->hi[d];
        p->task.tile[d] = from->tile[d];
        p->task.tiles[d] = from->tiles[d];
        p->task.first[d] = from->from[d];
    }
    memcpy(p->task.global, from->global, sizeof from->global);
    p->task.bytes = from->n_buffers * from->buffer_bytes;
    if (!add_units(p, from))
        return false;
    p->rows = first == 2 ? 1 : MOST_ROWS;
    while (p->rows > 1 && !rows_fit(p, p->rows))
        p->rows /= 2;
    p->across = first == 2 ? WARPS : 1;
    while (2 * p->across * WARP <= p->pitch && 2 * p->across <= WARPS)
        p->across *= 2;
    p->down = WARPS / p->across;
    if (first == 0) /* the others: slabs */
        while (p->down > 1 && p->down * p->rows * p->pitch > p->slab)
            p->down /= 2;
    return rows_fit(p, p->rows);
}

/* -- the text --------------------------------------------------------------------------------------------------------------------------- */

static void write_structs(oly_text *t)
{
    oly_text_add(
        t,
        "struct alignas(16) extent {\n    int32_t lo, hi, least, most, piece_lo, piece_hi, period, unused;\n};\n"
        "struct alignas(16) unit {\n    int32_t function, barrier, step, unused, buffer[%d], target[%d];\n    extent "
        "in[3];\n"
        "    int32_t read[%d];\n};\n"
        "struct strips_task {\n    const unit *units;\n    int64_t counter;\n    int32_t n_units, bytes, lo[3], hi[3], "
        "tile[3], tiles[3], first[3], unused;\n    place global[%d];\n    char *base[%d];\n};\n",
        MOST_JOINT, MOST_JOINT, OLY_FIELD_READS, OLY_FIELD_GLOBALS, OLY_FIELD_GLOBALS);
}

/* Dimensions before FIRST have one element, 0. */
static const char helpers[] =
    "struct box {\n    int32_t lo[3], hi[3];\n};\n"
    "struct source : place {\n    char *at;\n};\n"
    "template <int N> struct height {\n    enum { rows = N };\n};\n"
    "OLY_DEVICE int32_t larger(int32_t a, int32_t b)\n{\n    return a > b ? a : b;\n}\n"
    "OLY_DEVICE int32_t smaller(int32_t a, int32_t b)\n{\n    return a < b ? a : b;\n}\n"
    "OLY_DEVICE int32_t floor_quotient(int32_t a, int32_t b)\n{\n    return a / b - (a % b < 0);\n}\n"
    "OLY_DEVICE box joint(const int32_t *lo, const int32_t *hi, const int32_t *lower, const int32_t *upper)\n{\n"
    "    box b;\n    for (int d = 0; d < 3; d++) {\n        b.lo[d] = d < FIRST ? 0 : larger(lo[d], lower[d]);\n"
    "        b.hi[d] = d < FIRST ? 1 : smaller(hi[d], upper[d]);\n    }\n    return b;\n}\n"
    "OLY_DEVICE box needed(const unit &u, const box &tile)\n{\n    box b;\n    for (int d = 0; d < 3; d++) {\n"
    "        b.lo[d] = d < FIRST ? 0 : larger(tile.lo[d] + u.in[d].lo, u.in[d].least);\n"
    "        b.hi[d] = d < FIRST ? 1 : smaller(tile.hi[d] + u.in[d].hi, u.in[d].most);\n    }\n    return b;\n}\n"
    "OLY_DEVICE source global_value(const strips_task &task, int k)\n{\n    source v;\n"
    "    (place &)v = task.global[k];\n    v.at = task.base[k];\n    return v;\n}\n"
    "OLY_DEVICE int32_t offset_in(const place &v, int32_t x, int32_t y, int32_t z)\n{\n"
    "    int32_t at = (z - v.origin[2]) * v.stride[2];\n    if (FIRST < 2)\n        at += (y - v.origin[1]) * "
    "v.stride[1];\n    if (FIRST < 1)\n        at += (x - v.origin[0]) * v.stride[0];\n    return at;\n}\n"
    /* the images of a piece along periodic dimensions; seldom more than itself */
    "struct images {\n    box piece;\n    int32_t first[3], last[3], period[3];\n};\n"
    "OLY_DEVICE images images_of(const unit &u, const box &need)\n{\n    images i;\n"
    "    for (int d = FIRST; d < 3; d++) {\n        i.piece.lo[d] = u.in[d].piece_lo;\n        i.piece.hi[d] = "
    "u.in[d].piece_hi;\n"
    "        const int32_t n = i.period[d] = u.in[d].period, before = need.lo[d] - i.piece.hi[d], after = need.hi[d] - "
    "1 - "
    "i.piece.lo[d];\n        i.first[d] = i.last[d] = 0;\n"
    "        if (n && (before < -n || before >= 0 || after < 0 || after >= n)) {\n"
    "            i.first[d] = floor_quotient(before, n) + 1;\n            i.last[d] = floor_quotient(after, n);\n"
    "        }\n    }\n    return i;\n}\n"
    "template <class F> OLY_DEVICE void each_image(const images &i, const box &need, F f)\n{\n"
    "    int32_t turn[3] = {0, 0, 0}, k[3];\n"
    "    for (k[0] = FIRST > 0 ? 0 : i.first[0]; k[0] <= (FIRST > 0 ? 0 : i.last[0]); k[0]++)\n"
    "        for (k[1] = FIRST > 1 ? 0 : i.first[1]; k[1] <= (FIRST > 1 ? 0 : i.last[1]); k[1]++)\n"
    "            for (k[2] = i.first[2]; k[2] <= i.last[2]; k[2]++) {\n                int32_t lo[3], hi[3];\n"
    "                for (int d = FIRST; d < 3; d++) {\n                    turn[d] = k[d] * i.period[d];\n"
    "                    lo[d] = i.piece.lo[d] + turn[d];\n                    hi[d] = i.piece.hi[d] + turn[d];\n"
    "                }\n                f(joint(need.lo, need.hi, lo, hi), turn);\n            }\n}\n"
    /* results of a strip, without the first `skip`: in shared memory; in memory, of the tile */
    "template <class T, int R> OLY_DEVICE void keep(T *at, const T (&result)[R], bool any, int32_t skip)\n{\n"
    "    if (!any)\n        return;\n    if (skip == 0) {\n        OLY_UNROLL\n"
    "        for (int r = 0; r < R; r++)\n            at[r * PITCH] = result[r];\n        return;\n    }\n"
    "    OLY_UNROLL\n    for (int r = 1; r < R; r++)\n        if (r >= skip)\n            at[r * PITCH] = "
    "result[r];\n}\n"
    "template <class T, int R> OLY_DEVICE void write(T *base, const place &to, const box &in, const T (&result)[R], "
    "int32_t x, int32_t first, int32_t z, int32_t skip)\n{\n"
    "    if (x < in.lo[0] || x >= in.hi[0] || z < in.lo[2] || z >= in.hi[2])\n        return;\n"
    "    const int32_t from = larger(skip, in.lo[1] - first), end = in.hi[1] - first;\n"
    "    T *at = base + offset_in(to, x, first, z);\n    OLY_UNROLL\n    for (int r = 0; r < R; r++)\n"
    "        if (r >= from && r < end)\n            at[r * to.stride[1]] = result[r];\n}\n"
    /* f(rows, slab, first row, column, rows that the strip before has) */
    "template <class F> OLY_DEVICE void each_strip(const box &b, F f)\n{\n"
    "    const int32_t warp = oly_warp(), column = b.lo[2] + warp % ACROSS * OLY_WARP + oly_lane();\n"
    "    const int32_t down = b.lo[1] + warp / ACROSS % DOWN * (b.hi[1] - b.lo[1] < ROWS ? 1 : ROWS);\n"
    "    for (int32_t x = b.lo[0] + warp / (ACROSS * DOWN); x < b.hi[0]; x += DEEP)\n"
    "        for (int32_t z = column; z < b.hi[2]; z += ACROSS * OLY_WARP)\n"
    "            if (ROWS == 1 || b.hi[1] - b.lo[1] < ROWS) {\n"
    "                OLY_NO_UNROLL\n                for (int32_t y = down; y < b.hi[1]; y += DOWN)\n"
    "                    f(height<1>(), x, y, z, 0);\n"
    "            } else {\n"
    "                OLY_NO_UNROLL\n                for (int32_t y = down; y < b.hi[1]; y += DOWN * ROWS) {\n"
    "                    const int32_t first = smaller(y, b.hi[1] - ROWS);\n"
    "                    f(height<ROWS>(), x, first, z, y - first);\n                }\n            }\n}\n";

static void write_column(oly_text *t, const column *c, int number, bool shared)
{
    const char *type = oly_cuda_type_name(c->dtype);
    oly_text_add(t,
                 "            %s w%d[R + %d];\n            OLY_UNROLL\n            for (int k = 0; k < R + %d; k++)\n"
                 "                w%d[k] = s%d[",
                 type, number, c->most - c->least, c->most - c->least, number, c->slot);
    if (shared) {
        oly_text_add(t, "(%d) * SLAB + (k + (%d)) * PITCH + (%d)];\n", c->slab, c->least, c->across);
        return;
    }
    if (c->slab)
        oly_text_add(t, "(%d) * v%d.stride[0] + ", c->slab, c->slot);
    oly_text_add(t, "(k + (%d)) * v%d.stride[1] + (%d)", c->least, c->slot, c->across);
    if (c->fixed)
        oly_text_add(t, " * v%d.stride[2]", c->slot);
    oly_text_add(t, "];\n");
}

static void write_columns(oly_text *t, const function *f, const column *columns, int n)
{
    bool met[OLY_FIELD_READS] = {false};
    for (int c = 0; c < n; c++) {
        const char *type = oly_cuda_type_name(columns[c].dtype);
        int v = columns[c].slot;
        bool shared = f->shared >> v & 1;
        if (!met[v] && shared)
            oly_text_add(t, "            const %s *s%d = (const %s *)(memory + a%d) + here;\n", type, v, type, v);
        else if (!met[v])
            oly_text_add(t, "            const %s *s%d = (const %s *)v%d.at + offset_in(v%d, x0, first, x2);\n", type,
                         v, type, v, v);
        met[v] = true;
        write_column(t, &columns[c], c, shared);
    }
}

/* Where values are read from and written to, before the barrier. */
static void write_places(oly_text *t, const function *f, const column *columns, int n)
{
    bool met[OLY_FIELD_READS] = {false};
    for (int c = 0; c < n; c++) {
        int v = columns[c].slot;
        if (met[v])
            continue;
        met[v] = true;
        if (f->shared >> v & 1) {
            oly_text_add(t, "    const int32_t a%d = u.read[%d];\n", v, v);
            continue;
        }
        oly_text_add(t, "    source v%d = global_value(task, u.read[%d]);\n", v, v);
        if (!columns[c].fixed)
            oly_text_add(t, "    v%d.stride[2] = 1;\n", v);
    }
    for (int k = 0; k < f->n; k++)
        oly_text_add(t,
                     "    const int32_t buffer%d = u.buffer[%d], target%d = u.target[%d];\n"
                     "    source to%d = {};\n    box written%d = {};\n    if (target%d >= 0) {\n"
                     "        to%d = global_value(task, target%d);\n        to%d.stride[2] = 1;\n"
                     "        written%d = joint(tile.lo, tile.hi, to%d.lo, to%d.hi);\n    }\n",
                     k, k, k, k, k, k, k, k, k, k, k, k, k);
}

static void write_part(oly_text *t, const plan *p, const function *f, int part, const column *columns, const int *in)
{
    const oly_field_piece *piece = piece_of(p, f, part);
    const oly_tile_program *program = &piece->program;
    int now[OLY_TILE_REGISTERS], next = 0;
    oly_text_add(t,
                 "            %s result%d[R];\n            OLY_UNROLL\n            for (int r = 0; r < R; r++) {\n"
                 "            const int32_t x1 = first + r;\n            (void)x1;\n",
                 oly_cuda_type_name(program->store_dtype[0]), part);
    for (int k = 0; k < program->n_loads; k++) {
        now[program->load_register[k]] = next;
        oly_text_add(t, "            const %s r%d = ", oly_cuda_type_name(program->load_dtype[k]), next++);
        if (in[k] < 0)
            oly_text_add(t, "(%s)counter;\n", oly_cuda_type_name(program->load_dtype[k]));
        else
            oly_text_add(t, "w%d[r + %d];\n", in[k], piece->loads[k].shift[1] - columns[in[k]].least);
    }
    int result = oly_field_write_instructions(t, &p->body->stages[f->part[part].stage], program, now, next);
    oly_text_add(t, "            result%d[r] = r%d;\n            }\n", part, result);
}

static void write_function(oly_text *t, const plan *p, int number)
{
    const function *f = &p->function[number];
    column columns[MOST_COLUMNS];
    int in[MOST_JOINT][OLY_TILE_REGISTERS], n = columns_of(p, f, columns, in);
    oly_text_add(
        t,
        "OLY_DEVICE void unit_%d(const strips_task &task, const unit &u, const box &tile, char *memory)\n{\n"
        "    const box need = needed(u, tile);\n    const images all = images_of(u, need);\n"
        "    const int32_t f0 = tile.lo[0] + task.first[0], f1 = tile.lo[1] + task.first[1], f2 = tile.lo[2] + "
        "task.first[2];\n    const int64_t counter = task.counter + u.step;\n    (void)counter;\n",
        number);
    write_places(t, f, columns, n);
    oly_text_add(t, "    if (u.barrier)\n        oly_barrier();\n"
                    "    each_image(all, need, [&](const box &b, const int32_t *turn) {\n        (void)turn;\n"
                    "        each_strip(b, [&](auto tall, int32_t x0, int32_t first, int32_t x2, int32_t skip) {\n"
                    "            enum { R = decltype(tall)::rows };\n"
                    "            const int32_t here = (x0 - f0) * SLAB + (first - f1) * PITCH + (x2 - f2);\n");
    write_columns(t, f, columns, n);
    for (int k = 0; k < f->n; k++)
        write_part(t, p, f, k, columns, in[k]);
    for (int k = 0; k < f->n; k++) {
        const char *type = oly_cuda_type_name(piece_of(p, f, k)->program.store_dtype[0]);
        oly_text_add(t,
                     "            keep((%s *)(memory + buffer%d) + here, result%d, buffer%d >= 0, skip);\n"
                     "            write((%s *)to%d.at, to%d, written%d, result%d, x0, first, x2, skip);\n",
                     type, k, k, k, type, k, k, k, k);
    }
    oly_text_add(t, "        });\n    });\n}\n");
}

static const char kernel_begins[] =
    "    OLY_SHARED_DYNAMIC(char, memory);\n"
    /* what nobody needs is read, too */
    "    for (int32_t k = oly_thread(); k < task.bytes / 16; k += oly_threads())\n"
    "        ((oly_value *)memory)[k] = oly_words(0, 0);\n"
    "    for (int32_t number = (int32_t)oly_block(); number < task.tiles[0] * task.tiles[1] * task.tiles[2]; number += "
    "(int32_t)oly_blocks()) {\n"
    "        const int32_t at[3] = {number / (task.tiles[1] * task.tiles[2]), number / task.tiles[2] % task.tiles[1], "
    "number % "
    "task.tiles[2]};\n"
    "        box tile;\n        for (int d = 0; d < 3; d++) {\n            tile.lo[d] = task.lo[d] + at[d] * "
    "task.tile[d];\n"
    "            tile.hi[d] = smaller(tile.lo[d] + task.tile[d], task.hi[d]);\n        }\n"
    "        OLY_NO_UNROLL\n        for (int k = 0; k < task.n_units; k++) {\n            const unit &u = "
    "task.units[k];\n"
    "            switch (u.function) {\n";

static char *make_text(const void *of)
{
    const plan *p = of;
    oly_text t = {0};
    oly_text_add(&t, "%s", oly_field_prelude);
    oly_text_add(&t, "enum { FIRST = %d, ROWS = %d, ACROSS = %d, DOWN = %d, DEEP = %d, PITCH = %d, SLAB = %d };\n",
                 p->body->stages[0].first, p->rows, p->across, p->down, WARPS / (p->across * p->down), p->pitch,
                 p->slab);
    write_structs(&t);
    oly_text_add(&t, "%s", helpers);
    for (int k = 0; k < p->n_functions; k++)
        write_function(&t, p, k);
    oly_text_add(&t, "OLY_KERNEL_BLOCK_BOUNDED(oly_field_strips, strips_task, %d, %d)\n{\n%s", OLY_CUDA_THREADS,
                 p->sharing, kernel_begins);
    for (int k = 0; k < p->n_functions; k++)
        oly_text_add(&t, "            case %d: unit_%d(task, u, tile, memory); break;\n", k, k);
    oly_text_add(&t, "            default: break;\n            }\n        }\n    }\n}\n");
    if (!t.failed)
        return t.chars;
    oly_text_free(&t);
    return NULL;
}

/* -- launching ---------------------------------------------------------------------------------------------------------------------------- */

static char *make_key(const plan *p, size_t *bytes)
{
    int32_t head[] = {p->body->stages[0].first, p->pitch, p->slab, p->sharing, p->n_functions, 's', 't', 'r', 'i', 'p'};
    size_t functions = sizeof *p->function * (size_t)p->n_functions, body = oly_field_write_key(p->body, NULL);
    *bytes = sizeof head + functions + body;
    char *key = malloc(*bytes);
    if (key) {
        memcpy(key, head, sizeof head);
        memcpy(key + sizeof head, p->function, functions);
        oly_field_write_key(p->body, key + sizeof head + functions);
    }
    return key;
}

static oly_status launch(const oly_cuda_launcher *l, plan *p, double work, bool *launched)
{
    task *t = &p->task;
    size_t key_bytes;
    oly_cuda_launch launch = {.kernel = "oly_field_strips",
                              .blocks = oly_cuda_blocks(l, (int64_t)t->tiles[0] * t->tiles[1] * t->tiles[2], 1),
                              .threads = OLY_CUDA_THREADS,
                              .shared = (unsigned)t->bytes,
                              .task_bytes = sizeof *t};
    char *key = make_key(p, &key_bytes);
    if (!key)
        return oly_fail(OLY_MEMORY, "out of memory: %zu bytes for the key of a kernel", key_bytes);
    oly_status st = l->constant(l->context, p->unit, sizeof *p->unit * (size_t)t->n_units, &t->units);
    if (st == OLY_OK) {
        memcpy(launch.task, t, sizeof *t);
        oly_cuda_generated generated = {.key = key, .key_bytes = key_bytes, .work = work, .text = make_text, .of = p};
        st = l->generated(l->context, &generated, &launch, launched);
    }
    free(key);
    return st;
}

oly_status oly_cuda_field_strips(const oly_cuda_launcher *l, const oly_field_body *body,
                                 const oly_field_schedule *schedule, int sharing, char *const *bases, int n_bases,
                                 int64_t counter, bool *can, bool *launched)
{
    plan *p = calloc(1, sizeof *p);
    oly_status st = OLY_OK;
    *can = *launched = false;
    if (!p)
        return oly_fail(OLY_MEMORY, "out of memory: %zu bytes for the launch of a loop", sizeof *p);
    p->sharing = sharing;
    p->task.counter = counter;
    memcpy(p->task.base, bases, sizeof *bases * (size_t)n_bases);
    if ((*can = make_plan(p, body, schedule)))
        st = launch(l, p, oly_field_work(body, schedule), launched);
    free(p);
    return st;
}
