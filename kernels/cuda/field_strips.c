/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels that compute fields by strips, its key and its launch: see field_strips.h.
 *
 * What a launch does is a list of units: a piece of a stage of a step. A function of the text computes a unit; it is made for a piece and for which
 * of the values that it reads are in shared memory, so that addresses there are constants from a thread's first element on:
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
    int32_t function, barrier, step;
    int32_t buffer, target; /* where in shared memory, in bytes; the global value that it is: -1: none */
    int32_t unused[3];
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

/* A function: of a piece, with these of its stage's reads (bits) in shared memory. */
typedef struct function {
    int stage, piece; /* number in its stage */
    uint32_t shared;
} function;

typedef struct plan {
    const oly_field_body *body;
    int32_t pitch, slab, rows, across, down; /* of buffers; of a strip; warps beside and below each other */
    int32_t sharing;                         /* blocks that share a processor */
    int n_functions;
    function function[MOST_FUNCTIONS];
    task task;
    unit unit[MOST_UNITS];
} plan;

static const oly_field_piece *piece_of(const plan *p, const function *f)
{
    return &p->body->stages[f->stage].pieces[f->piece];
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

/* Borders have pieces with one text. -1: too many functions. */
static int function_for(plan *p, function wanted)
{
    for (int k = 0; k < p->n_functions; k++)
        if (p->function[k].stage == wanted.stage && p->function[k].shared == wanted.shared &&
            same_text(piece_of(p, &p->function[k]), piece_of(p, &wanted)))
            return k;
    if (p->n_functions == MOST_FUNCTIONS)
        return -1;
    p->function[p->n_functions] = wanted;
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

static bool add_unit(plan *p, const oly_field_schedule *from, const oly_field_instance *i, int piece, int number)
{
    const oly_field_stage *s = &p->body->stages[i->stage];
    function wanted = {.stage = i->stage, .piece = piece};
    if (p->task.n_units == MOST_UNITS)
        return false;
    unit *u = &p->unit[p->task.n_units++];
    *u = (unit){.step = i->step, .target = i->target, .buffer = i->buffer < 0 ? -1 : i->buffer * from->buffer_bytes};
    for (int d = 0; d < 3; d++)
        u->in[d] = (extent){.lo = i->lo[d],
                            .hi = i->hi[d],
                            .least = -EVERYWHERE,
                            .most = EVERYWHERE,
                            .piece_lo = from->piece[number][d],
                            .piece_hi = from->piece[number][3 + d],
                            .period = s->copied ? 0 : from->period[d]};
    for (int v = 0; v < s->n_reads; v++) {
        bool shared = i->read[v] < 0;
        wanted.shared |= (uint32_t)shared << v;
        u->read[v] =
            shared ? (int32_t)oly_larger(from->instance[~i->read[v]].buffer, 0) * from->buffer_bytes : i->read[v];
    }
    narrow(s, &s->pieces[piece], from, i, u);
    u->function = function_for(p, wanted);
    return u->function >= 0;
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

static bool add_units(plan *p, const oly_field_schedule *from)
{
    const oly_field_body *body = p->body;
    uint64_t written[2] = {0}, read[2] = {0};
    for (int k = 0; k < from->n_instances; k++) {
        const oly_field_instance *i = &from->instance[k];
        int number = 0, first = p->task.n_units;
        for (int s = 0; s < i->stage; s++)
            number += body->stages[s].n_pieces;
        for (int j = 0; j < body->stages[i->stage].n_pieces; j++)
            if (!add_unit(p, from, i, j, number + j))
                return false;
        if (p->task.n_units > first)
            p->unit[first].barrier = waits(body, from, i, written, read) || k == 0;
    }
    return true;
}

/* -- what a piece loads ----------------------------------------------------------------------------------------------------------------- */

/* Elements above each other: rows [least, most] around the one that is computed. */
typedef struct column {
    int read, dtype;
    int32_t slab, across, least, most;
} column;

/* The columns that the piece reads, and which one each of its loads is in (-1: the counter); -1: too many. */
static int columns_of(const oly_field_piece *piece, column *columns, int *in)
{
    int n = 0;
    for (int k = 0; k < piece->program.n_loads; k++) {
        const oly_field_load *load = &piece->loads[k];
        int c = 0;
        in[k] = -1;
        if (load->read < 0)
            continue;
        while (c < n && (columns[c].read != load->read || columns[c].slab != load->shift[0] ||
                         columns[c].across != load->shift[2]))
            c++;
        if (c == MOST_COLUMNS)
            return -1;
        if (c == n)
            columns[n++] = (column){.read = load->read,
                                    .dtype = piece->program.load_dtype[k],
                                    .slab = load->shift[0],
                                    .across = load->shift[2],
                                    .least = load->shift[1],
                                    .most = load->shift[1]};
        columns[c].least = (int32_t)oly_smaller(columns[c].least, load->shift[1]);
        columns[c].most = (int32_t)oly_larger(columns[c].most, load->shift[1]);
        in[k] = c;
    }
    return n;
}

static int words_of(int dtype)
{
    size_t bytes = oly_dtype_size((oly_dtype)dtype);
    return bytes > 4 ? (int)(bytes / 4) : 1;
}

/* Whether strips of so many rows are worth their registers and code. */
static bool rows_fit(const plan *p, int rows)
{
    int code = 0, in[OLY_TILE_REGISTERS];
    column columns[MOST_COLUMNS];
    for (int k = 0; k < p->n_functions; k++) {
        const oly_field_piece *piece = piece_of(p, &p->function[k]);
        int n = columns_of(piece, columns, in), words = rows * words_of(piece->program.store_dtype[0]);
        if (n < 0)
            return false;
        for (int c = 0; c < n; c++)
            words += (rows + columns[c].most - columns[c].least) * words_of(columns[c].dtype);
        code += (rows + (rows > 1)) * (piece->program.n_instructions + piece->program.n_loads);
        if (rows > 1 && words > MOST_WORDS)
            return false;
    }
    return code <= MOST_CODE;
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

static const char prelude[] =
    "#include \"element.h\"\n"
    "OLY_DEVICE oly_value oly_words(uint64_t lo, uint64_t hi)\n{\n    oly_value v;\n    v.lo = lo, v.hi = hi;\n"
    "    return v;\n}\n"
    "struct place {\n    int32_t origin[3], stride[3], lo[3], hi[3];\n};\n";

static void write_structs(oly_text *t)
{
    oly_text_add(
        t,
        "struct alignas(16) extent {\n    int32_t lo, hi, least, most, piece_lo, piece_hi, period, unused;\n};\n"
        "struct alignas(16) unit {\n    int32_t function, barrier, step, buffer, target, unused[3];\n    extent "
        "in[3];\n"
        "    int32_t read[%d];\n};\n"
        "struct strips_task {\n    const unit *units;\n    int64_t counter;\n    int32_t n_units, bytes, lo[3], hi[3], "
        "tile[3], tiles[3], first[3], unused;\n    place global[%d];\n    char *base[%d];\n};\n",
        OLY_FIELD_READS, OLY_FIELD_GLOBALS, OLY_FIELD_GLOBALS);
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

static void write_column(oly_text *t, const oly_field_stage *s, const column *c, int number, bool shared)
{
    const char *type = oly_cuda_type_name(c->dtype);
    oly_text_add(t,
                 "            %s w%d[R + %d];\n            OLY_UNROLL\n            for (int k = 0; k < R + %d; k++)\n"
                 "                w%d[k] = s%d[",
                 type, number, c->most - c->least, c->most - c->least, number, c->read);
    if (shared)
        oly_text_add(t, "(%d) * SLAB + (k + (%d)) * PITCH + (%d)];\n", c->slab, c->least, c->across);
    else {
        if (c->slab)
            oly_text_add(t, "(%d) * v%d.stride[0] + ", c->slab, c->read);
        oly_text_add(t, "(k + (%d)) * v%d.stride[1] + (%d)", c->least, c->read, c->across);
        oly_text_add(t, s->fixed[c->read] ? " * v%d.stride[2]];\n" : "];\n", c->read);
    }
}

/* Values where they are read from, before the barrier. */
static void write_sources(oly_text *t, const plan *p, const function *f)
{
    const oly_field_stage *s = &p->body->stages[f->stage];
    int32_t least, most;
    for (int v = 0; v < s->n_reads; v++) {
        if (!oly_field_reach(piece_of(p, f), v, 0, &least, &most))
            continue;
        if (f->shared >> v & 1) {
            oly_text_add(t, "    const int32_t a%d = u.read[%d];\n", v, v);
            continue;
        }
        oly_text_add(t, "    source v%d = global_value(task, u.read[%d]);\n", v, v);
        if (!s->fixed[v])
            oly_text_add(t, "    v%d.stride[2] = 1;\n", v);
    }
}

static void write_strip(oly_text *t, const plan *p, const function *f)
{
    const oly_field_stage *s = &p->body->stages[f->stage];
    const oly_field_piece *piece = piece_of(p, f);
    const oly_tile_program *program = &piece->program;
    column columns[MOST_COLUMNS];
    int in[OLY_TILE_REGISTERS], now[OLY_TILE_REGISTERS], n = columns_of(piece, columns, in), next = 0;
    bool met[OLY_FIELD_READS] = {false};
    for (int c = 0; c < n; c++) {
        const char *type = oly_cuda_type_name(columns[c].dtype);
        int v = columns[c].read;
        bool shared = f->shared >> v & 1;
        if (!met[v] && shared)
            oly_text_add(t, "            const %s *s%d = (const %s *)(memory + a%d) + here;\n", type, v, type, v);
        else if (!met[v])
            oly_text_add(t, "            const %s *s%d = (const %s *)v%d.at + offset_in(v%d, x0, first, x2);\n", type,
                         v, type, v, v);
        met[v] = true;
        write_column(t, s, &columns[c], c, shared);
    }
    oly_text_add(t,
                 "            %s result[R];\n            OLY_UNROLL\n            for (int r = 0; r < R; r++) {\n"
                 "            const int32_t x1 = first + r;\n            (void)x1;\n",
                 oly_cuda_type_name(program->store_dtype[0]));
    for (int k = 0; k < program->n_loads; k++) {
        now[program->load_register[k]] = next;
        oly_text_add(t, "            const %s r%d = ", oly_cuda_type_name(program->load_dtype[k]), next++);
        if (in[k] < 0)
            oly_text_add(t, "(%s)counter;\n", oly_cuda_type_name(program->load_dtype[k]));
        else
            oly_text_add(t, "w%d[r + %d];\n", in[k], piece->loads[k].shift[1] - columns[in[k]].least);
    }
    int result = oly_field_write_instructions(t, s, program, now, next);
    oly_text_add(t, "            result[r] = r%d;\n            }\n", result);
}

static void write_function(oly_text *t, const plan *p, int number)
{
    const function *f = &p->function[number];
    const char *type = oly_cuda_type_name(piece_of(p, f)->program.store_dtype[0]);
    oly_text_add(t,
                 "OLY_DEVICE void unit_%d(const strips_task &task, const unit &u, const box &tile, char *memory)\n{\n"
                 "    const box need = needed(u, tile);\n    const images all = images_of(u, need);\n"
                 "    const int32_t buffer = u.buffer, target = u.target, f0 = tile.lo[0] + task.first[0], f1 = "
                 "tile.lo[1] + task.first[1], f2 = tile.lo[2] + task.first[2];\n"
                 "    const int64_t counter = task.counter + u.step;\n    (void)counter;\n"
                 "    source to = {};\n    box written = {};\n    if (target >= 0) {\n"
                 "        to = global_value(task, target);\n        to.stride[2] = 1;\n"
                 "        written = joint(tile.lo, tile.hi, to.lo, to.hi);\n    }\n",
                 number);
    write_sources(t, p, f);
    oly_text_add(t, "    if (u.barrier)\n        oly_barrier();\n"
                    "    each_image(all, need, [&](const box &b, const int32_t *turn) {\n        (void)turn;\n"
                    "        each_strip(b, [&](auto tall, int32_t x0, int32_t first, int32_t x2, int32_t skip) {\n"
                    "            enum { R = decltype(tall)::rows };\n"
                    "            const int32_t here = (x0 - f0) * SLAB + (first - f1) * PITCH + (x2 - f2);\n");
    write_strip(t, p, f);
    oly_text_add(
        t,
        "            if (buffer >= 0) {\n                %s *at = (%s *)(memory + buffer) + here;\n"
        "                OLY_UNROLL\n                for (int r = 0; r < R; r++)\n"
        "                    if (r >= skip)\n                        at[r * PITCH] = result[r];\n            }\n"
        "            if (target >= 0 && x0 >= written.lo[0] && x0 < written.hi[0] && x2 >= written.lo[2] && "
        "x2 < written.hi[2]) {\n"
        "                const int32_t from = larger(skip, written.lo[1] - first), end = written.hi[1] - "
        "first;\n                %s *at = (%s *)to.at + offset_in(to, x0, first, x2);\n"
        "                OLY_UNROLL\n                for (int r = 0; r < R; r++)\n"
        "                    if (r >= from && r < end)\n                        at[r * to.stride[1]] = "
        "result[r];\n            }\n        });\n    });\n}\n",
        type, type, type, type);
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
    oly_text_add(&t, "%s", prelude);
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
