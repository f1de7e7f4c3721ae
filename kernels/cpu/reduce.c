/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of strided boxes. Compiled once per instruction set; gives oly_reduce_run_<isa>, oly_reduce_computed_<isa>, oly_reduce_results_<isa> and
 * oly_reduce_finish_<isa>.
 *
 * The elements of one result are taken in row-major order; the order in which they are combined depends on extents alone:
 *   fewer than 64:             one after the other;
 *   the last dimension kept:   a tree of adjacent pairs ((a+b)+(c+d));
 *   else                       each run (the reduced dimensions after the last kept one) in blocks of 4096: a block in 64
 *                              lanes, the lanes by halves, blocks and then runs as trees of adjacent pairs.
 * Narrow elements are widened to float32 as they are gathered, as are elements that the task converts; results are
 * rounded when stored.
 * A tree over a sequence that arrives piece by piece is a binary counter: level l holds the result of 2^l leaves. */
#include "table.h"
#include "reduce_computed.h"
#include "cpu/box_dimensions.h"
#include "cpu/transpose.h"
#include <string.h>

#define WIDTH        1024  /* most results computed side by side */
#define ROOM         65536 /* bytes for the levels of a tree over rows */
#define BLOCK        4096  /* elements of a run combined at once */
#define AHEAD        4096  /* bytes fetched in front of what is read in memory: processors guess only within a page */
#define FEW_COLUMNS  4     /* fewer are not transposed */
#define SMALL        64    /* fewer elements: one after the other */
#define LEVELS       44
#define PLACE        2048  /* bytes of results that are reduced so at once: a tree of them has ROOM for 32 levels */
#define ROWS         32768 /* the same, of rows, if there are eight */
#define LONG         2048  /* bytes of a row: some are fetched while others are computed */
#define FEW          256   /* rows of which all are computed at once */
#define TURNED       256   /* results whose elements are transposed together */
#define NARROW_ROW   24    /* elements of rows for each of which a call would take longer than the elements */
#define NARROW_BYTES 16384 /* of such rows at a time */
#define FEWEST       8 /* adjacent results that are computed from where they are: fewer are copied, many at a time */

typedef struct reduction {
    dims kept, outer, run;
    oly_reduce_shape shape;
    int64_t bytes;             /* of an element in registers */
    int64_t in_bytes;          /* of an element in memory, before it is widened */
    int64_t out_bytes;         /* of a result */
    oly_tile_function *widen;  /* NULL: not widened */
    oly_tile_function *narrow; /* of results; NULL if a second phase follows */
    void (*pair)(int64_t, void *, const void *, const void *);
    void (*eight)(int64_t, void *, const void *, int64_t);
    void (*rows)(int64_t, int64_t, int64_t, void *, const void *, int64_t, int64_t, bool);
    void (*chain)(int64_t, void *, const void *);
    void (*lanes)(int64_t, void *, const void *, int64_t);
    void (*folded)(int64_t, void *, const void *);
    void (*gather)(int64_t, int64_t, void *, const void *, int64_t, int64_t);
    const char *in;
    const oly_reduce_source *source; /* of an operand that is not in memory; NULL: it is at `in` */
    const oly_reduce_task *task;
} reduction;

/* -- copies ---------------------------------------------------------------------------------------------------------- */

/* Copies elements [begin, begin + n) of the dimensions, from `base`, to dense memory. */
static void gather_dims(const reduction *r, const dims *d, const char *base, int64_t begin, int64_t n, char *out)
{
    for (int64_t done = 0; done < n;) {
        int64_t length = even_length(d, begin + done, n - done);
        const char *from = base + offset_at(d, begin + done) * r->in_bytes;
        char *to = out + done * r->bytes;
        int64_t rows = r->widen ? 0 : short_rows(d, begin + done, n - done);
        if (rows > 0) {
            length = rows * d->extent[d->rank - 1];
            r->gather(rows, d->extent[d->rank - 1], to, from, d->stride[d->rank - 2], last_stride(d));
        } else if (!r->widen) {
            r->gather(1, length, to, from, 0, last_stride(d));
        } else if (last_stride(d) == 1) {
            r->widen((int)length, to, from, NULL, NULL);
        } else {
            char piece[WIDTH * 8] __attribute__((aligned(64)));
            length = length < WIDTH ? length : WIDTH;
            r->gather(1, length, piece, from, 0, last_stride(d));
            r->widen((int)length, to, piece, NULL, NULL);
        }
        done += length;
    }
}

/* Stores n results. */
static void put(const reduction *r, int64_t n, char *out, const char *results)
{
    if (r->narrow)
        r->narrow((int)n, out, results, NULL, NULL);
    else
        memcpy(out, results, (size_t)(n * r->bytes));
}

/* -- operands that are computed ---------------------------------------------------------------------------------------- */

typedef enum { KEPT, OUTER, RUN } part_of_box;

static part_of_box part_of(const reduction *r, int d)
{
    return !r->task->reduced[d] ? KEPT : d < r->shape.last_kept ? OUTER : RUN;
}

/* The largest box of the dimensions of one kind that begins at element `index` of them, in row-major order, has its elements in this order, and
 * has no more than `most`: their number. */
static int64_t take_box(const reduction *r, part_of_box which, int64_t index, int64_t most, int64_t *low,
                        int64_t *extent)
{
    int64_t taken = 1;
    bool whole = true; /* the dimensions behind this one */
    for (int d = r->task->rank - 1; d >= 0; d--) {
        int64_t all = r->task->extent[d];
        if (part_of(r, d) != which)
            continue;
        low[d] = index % all;
        extent[d] = 1;
        index /= all;
        if (!whole)
            continue;
        int64_t rest = all - low[d], room = most / taken;
        extent[d] = rest < room ? rest : room;
        taken *= extent[d];
        whole = extent[d] == all;
    }
    return taken;
}

/* Elements [begin, begin + n) of the dimensions of one kind, each with `each` elements of the others, as low and extent say of those. */
static void compute_range(const reduction *r, part_of_box which, int64_t begin, int64_t n, int64_t each, int64_t *low,
                          int64_t *extent, char *out)
{
    for (int64_t done = 0; done < n;) {
        int64_t taken = take_box(r, which, begin + done, n - done, low, extent);
        r->source->compute(r->source->context, low, extent, out + done * each * r->in_bytes);
        done += taken;
    }
}

/* -- trees over sequences ------------------------------------------------------------------------------------------- */

typedef struct counter {
    int64_t leaves; /* added so far */
    int64_t n;      /* elements of a leaf */
    char *level;    /* [LEVELS][n] */
} counter;

/* Where to write the next leaf before count_leaf. */
static char *leaf_place(const reduction *r, const counter *c)
{
    return c->level + __builtin_popcountll((unsigned long long)c->leaves) * c->n * r->bytes;
}
static void count_leaf(const reduction *r, counter *c)
{
    char *leaf = leaf_place(r, c);
    for (int64_t bits = c->leaves; bits & 1; bits >>= 1) {
        char *before = leaf - c->n * r->bytes;
        r->pair(c->n, before, before, leaf);
        leaf = before;
    }
    c->leaves++;
}
/* Combines the levels, the shortest first; the result is at c->level. */
static void count_end(const reduction *r, counter *c)
{
    for (int held = __builtin_popcountll((unsigned long long)c->leaves); held > 1; held--) {
        char *last = c->level + (held - 1) * c->n * r->bytes, *before = last - c->n * r->bytes;
        r->pair(c->n, before, before, last);
    }
}

/* -- results side by side: a tree over rows -------------------------------------------------------------------------- */

/* Kept elements computed together: where they are. */
typedef struct row {
    int64_t first, n;
    bool dense; /* adjacent in memory: rows need no copy */
} row;

/* Row k of the sequence into place. */
static void copy_row(const reduction *r, const dims *sequence, const row *w, int64_t k, char *place)
{
    gather_dims(r, &r->kept, r->in + offset_at(sequence, k) * r->in_bytes, w->first, w->n, place);
}

/* n elements of each result of w that lie one after the other: transposed some at a time, and then widened, if they are. */
#define CHAIN_OF_COLUMNS(size, T, together)                                                                            \
    static void chain_of_columns_##size(const reduction *r, const row *w, int64_t n, char *out)                        \
    {                                                                                                                  \
        enum { APART = TURNED + 16 }; /* columns share few places in the cache otherwise */                            \
        T turned[(together)*APART] __attribute__((aligned(64)));                                                       \
        char wide[TURNED * 8] __attribute__((aligned(64))), place[TURNED * 8] __attribute__((aligned(64)));            \
        int64_t between = last_stride(&r->kept);                                                                       \
        for (int64_t first = 0; first < w->n; first += TURNED) {                                                       \
            int64_t m = w->n - first < TURNED ? w->n - first : TURNED, begin = w->first + first;                       \
            char *so_far = r->widen ? wide : out + first * r->out_bytes;                                               \
            for (int64_t k = 0; k < n; k += (together)) {                                                              \
                int64_t columns = n - k < (together) ? n - k : (together);                                             \
                for (int64_t i = 0, even; i < m; i += even) {                                                          \
                    const T *from = (const T *)r->in + offset_at(&r->kept, begin + i);                                 \
                    even = even_length(&r->kept, begin + i, m - i);                                                    \
                    transpose_w##size((int)even, (int)columns, turned + i, APART, from + k, between);                  \
                }                                                                                                      \
                if (!r->widen)                                                                                         \
                    r->rows(1, columns, m, so_far, turned, APART, 1, k > 0);                                           \
                for (int64_t c = 0; c < columns && r->widen; c++) {                                                    \
                    r->widen((int)m, k + c == 0 ? wide : place, turned + c * APART, NULL, NULL);                       \
                    if (k + c > 0)                                                                                     \
                        r->pair(m, wide, wide, place);                                                                 \
                }                                                                                                      \
            }                                                                                                          \
            if (r->widen)                                                                                              \
                put(r, m, out + first * r->out_bytes, wide);                                                           \
        }                                                                                                              \
    }
CHAIN_OF_COLUMNS(1, uint8_t, 16)
CHAIN_OF_COLUMNS(2, uint16_t, 8)
CHAIN_OF_COLUMNS(4, uint32_t, 16)
CHAIN_OF_COLUMNS(8, uint64_t, 8)

static bool is_columns(const reduction *r, const dims *sequence, const row *w)
{
    bool several = r->in_bytes <= 4 || (r->in_bytes == 8 && sequence->extent[0] > FEW_COLUMNS); /* copies are as fast */
    return several && r->bytes <= 8 && (r->widen || (r->rows && !r->narrow)) && sequence->rank == 1 &&
           sequence->stride[0] == 1 && r->kept.rank > 0 &&
           (r->kept.extent[r->kept.rank - 1] >= FEWEST || even_length(&r->kept, w->first, w->n) == w->n);
}

/* Rows of an operand that is computed: some of the sequence, for the results of w. */
typedef struct computed_rows {
    int64_t begin, end, most;
    char *window;
} computed_rows;

/* Row k; rows are asked for in order, up to the row `end`. */
static const char *computed_row(const reduction *r, const row *w, computed_rows *c, int64_t k, int64_t end)
{
    if (k >= c->end) {
        int64_t low[OLY_MAX_RANK], extent[OLY_MAX_RANK];
        c->begin = k;
        c->end = end - k < c->most ? end : k + c->most;
        take_box(r, RUN, 0, 1, low, extent); /* dimensions of 1 */
        take_box(r, KEPT, w->first, w->n, low, extent);
        int64_t few = w->n * r->in_bytes < LONG ? c->most : 2;
        for (int64_t at = k, n; at < c->end; at += n) {
            n = c->end - at < few ? c->end - at : few;
            if (r->source->expect && at + c->most < end) { /* processors do not guess rows that are far apart */
                take_box(r, OUTER, at + c->most, end - at - c->most < n ? end - at - c->most : n, low, extent);
                r->source->expect(r->source->context, low, extent);
            }
            compute_range(r, OUTER, at, n, w->n, low, extent, c->window + (at - k) * w->n * r->in_bytes);
        }
    }
    return c->window + (k - c->begin) * w->n * r->in_bytes;
}

/* The same, widened if elements are. */
static const char *wide_row(const reduction *r, const row *w, computed_rows *c, int64_t k, int64_t end, char *place)
{
    const char *from = computed_row(r, w, c, k, end);
    if (r->widen)
        r->widen((int)w->n, place, from, NULL, NULL);
    return r->widen ? place : from;
}

/* Combines rows [begin, end) of an operand that is computed, one after the other. */
static void chain_of_computed(const reduction *r, const row *w, int64_t begin, int64_t end, char *out)
{
    char place[WIDTH * 8] __attribute__((aligned(64))), wide[WIDTH * 8] __attribute__((aligned(64)));
    char window[OLY_REDUCE_WINDOW] __attribute__((aligned(64)));
    computed_rows computed = {begin, begin, OLY_REDUCE_WINDOW / (w->n * r->in_bytes), window};
    memcpy(wide, wide_row(r, w, &computed, begin, end, place), (size_t)(w->n * r->bytes));
    for (int64_t k = begin + 1; k < end; k++)
        r->pair(w->n, wide, wide, wide_row(r, w, &computed, k, end, place));
    put(r, w->n, out, wide);
}

/* Combines elements [begin, end) of the sequence one after the other, for the results of w, into out. */
static void chain_of_rows(const reduction *r, const dims *sequence, const row *w, int64_t begin, int64_t end, char *out)
{
    char place[WIDTH * 8] __attribute__((aligned(64))), wide[WIDTH * 8] __attribute__((aligned(64)));
    if (begin == 0 && is_columns(r, sequence, w)) {
        void (*const by_bytes[9])(const reduction *, const row *, int64_t, char *) = {
            [1] = chain_of_columns_1, [2] = chain_of_columns_2, [4] = chain_of_columns_4, [8] = chain_of_columns_8};
        by_bytes[r->in_bytes](r, w, end, out);
        return;
    }
    char *so_far = r->narrow ? wide : out;
    int64_t base = offset_at(&r->kept, w->first);
    copy_row(r, sequence, w, begin, so_far);
    for (int64_t k = begin + 1; k < end; k++) {
        const char *from = place;
        if (w->dense)
            from = r->in + (offset_at(sequence, k) + base) * r->bytes;
        else
            copy_row(r, sequence, w, k, place);
        r->pair(w->n, so_far, so_far, from);
    }
    if (r->narrow)
        put(r, w->n, out, so_far);
}

/* The same for results from `first` on whose rows are narrow and follow each other ([n, k, 3] along k): how many; 0: they are not so. */
static int64_t chain_of_narrow_rows(const reduction *r, const dims *sequence, int64_t first, int64_t last,
                                    int64_t begin, int64_t end, char *out)
{
    const dims *kept = &r->kept;
    int64_t width = kept->rank > 0 ? kept->extent[kept->rank - 1] : 0, rows = end - begin, groups = 1;
    if (r->source || r->widen || r->narrow || width == 0 || width > NARROW_ROW || last_stride(kept) != 1 ||
        last_stride(sequence) != width || even_length(sequence, begin, rows) != rows)
        return 0;
    int64_t n = width - first % width < last - first ? width - first % width : last - first;
    if (n == width && kept->rank > 1) { /* some, as wide rows are read more than once */
        int64_t all = kept->extent[kept->rank - 2], rest = all - first / width % all;
        int64_t most = NARROW_BYTES / (rows * width * r->bytes) / 4 * 4;
        groups = (last - first) / width < rest ? (last - first) / width : rest;
        groups = groups < most || most == 0 ? groups : most;
    }
    r->rows(n, rows, groups, out, r->in + (offset_at(sequence, begin) + offset_at(kept, first)) * r->bytes, width,
            kept->rank > 1 ? kept->stride[kept->rank - 2] : 0, false);
    return groups * n;
}

/* Rows are usually far apart: processors do not guess the next. */
static void fetch_rows(const char *at, int64_t n, int64_t stride, int64_t bytes)
{
    for (int64_t k = 0; k < n; k++, at += stride)
        for (int64_t b = 0; b < bytes; b += 64)
            __builtin_prefetch(at + b, 0, 2);
}

/* The same as a tree. */
static void tree_of_rows(const reduction *r, const dims *sequence, const row *w, int64_t begin, int64_t end, char *out)
{
    char level[ROOM] __attribute__((aligned(64))), rows[8 * WIDTH * 8] __attribute__((aligned(64)));
    char window[OLY_REDUCE_WINDOW] __attribute__((aligned(64)));
    counter c = {0, w->n, level};
    int64_t most = ROWS / (w->n * r->in_bytes) / 8 * 8;
    computed_rows computed = {begin, begin, most > 8 ? most : 8, window};
    int64_t k = begin, row_bytes = w->n * r->bytes, base = r->source ? 0 : offset_at(&r->kept, w->first);
    const bool adjacent = last_stride(&r->kept) == 1 && even_length(&r->kept, w->first, w->n) == w->n;
    for (; k + 8 <= end; k += 8) {
        if (r->source) {
            const char *from = computed_row(r, w, &computed, k, end);
            if (r->widen)
                r->widen((int)(8 * w->n), rows, from, NULL, NULL);
            r->eight(w->n, leaf_place(r, &c), r->widen ? rows : from, w->n);
        } else if (w->dense && even_length(sequence, k, 8) == 8) {
            const char *from = r->in + (offset_at(sequence, k) + base) * r->bytes;
            int64_t stride = last_stride(sequence) * r->bytes;
            if (stride >= 64)
                fetch_rows(from + 8 * stride, k + 16 <= end ? 8 : end - k - 8, stride, row_bytes);
            r->eight(w->n, leaf_place(r, &c), from, last_stride(sequence));
        } else {
            if (adjacent && even_length(sequence, k, 16) == 16 && k + 16 <= end)
                fetch_rows(r->in + (offset_at(sequence, k + 8) + base) * r->in_bytes, 8,
                           last_stride(sequence) * r->in_bytes, w->n * r->in_bytes);
            for (int i = 0; i < 8; i++)
                copy_row(r, sequence, w, k + i, rows + i * row_bytes);
            r->eight(w->n, leaf_place(r, &c), rows, w->n);
        }
        count_leaf(r, &c);
    }
    /* fewer than eight rows: a tree of their own, which joins as the last leaf */
    if (k < end) {
        counter rest = {0, w->n, rows};
        for (; k < end; k++) {
            char *leaf = leaf_place(r, &rest);
            if (!r->source)
                copy_row(r, sequence, w, k, leaf);
            else if (wide_row(r, w, &computed, k, end, leaf) != leaf)
                memcpy(leaf, computed_row(r, w, &computed, k, end), (size_t)row_bytes);
            count_leaf(r, &rest);
        }
        count_end(r, &rest);
        memcpy(leaf_place(r, &c), rows, (size_t)row_bytes);
        count_leaf(r, &c);
    }
    count_end(r, &c);
    put(r, w->n, out, level);
}

/* Are the rows of a few results next to each other, so that all of a line in the cache is read at once? Copied, with others, they would be
 * read one from each line. */
static bool are_adjacent(const reduction *r, const dims *sequence)
{
    return !r->widen && r->kept.rank > 0 && last_stride(sequence) == r->kept.extent[r->kept.rank - 1] &&
           sequence->extent[sequence->rank - 1] >= SMALL;
}

static void reduce_rows(const reduction *r, const dims *sequence, int64_t kept_begin, int64_t kept_end, int64_t begin,
                        int64_t end, char *out)
{
    int levels = 3; /* of the tree: one per level, and the last leaf */
    for (int64_t leaves = (end - begin) / 8; leaves > 0; leaves /= 2)
        levels++;
    int64_t width = ROOM / (levels * r->bytes) / 16 * 16;
    int64_t most = r->bytes > 8 ? WIDTH * 8 / r->bytes : WIDTH;
    width = width < most ? width : most;
    for (int64_t first = kept_begin; first < kept_end;) {
        row w = {first, kept_end - first < width ? kept_end - first : width, false};
        if (r->source) { /* along one dimension, so that rows follow each other in a box */
            int64_t all = r->task->extent[r->shape.last_kept], rest = all - first % all;
            w.n = rest < w.n ? rest : w.n;
            if (end - begin < SMALL)
                chain_of_computed(r, &w, begin, end, out + (first - kept_begin) * r->out_bytes);
            else
                tree_of_rows(r, sequence, &w, begin, end, out + (first - kept_begin) * r->out_bytes);
            first += w.n;
            continue;
        }
        int64_t narrow = end - begin < SMALL ? chain_of_narrow_rows(r, sequence, first, kept_end, begin, end,
                                                                    out + (first - kept_begin) * r->out_bytes)
                                             : 0;
        if (narrow > 0) {
            first += narrow;
            continue;
        }
        int64_t even = even_length(&r->kept, first, w.n);
        if (last_stride(&r->kept) == 1 && (even >= FEWEST || are_adjacent(r, sequence)))
            w.n = even;
        w.dense = !r->widen && (w.n == 1 || (last_stride(&r->kept) == 1 && even == w.n));
        (end - begin < SMALL ? chain_of_rows : tree_of_rows)(r, sequence, &w, begin, end,
                                                             out + (first - kept_begin) * r->out_bytes);
        first += w.n;
    }
}

/* -- results one by one: runs --------------------------------------------------------------------------------------- */

/* Elements [at, at + n) of run `outer` of a result, which are computed, at most a block. */
static void compute_run(const reduction *r, int64_t kept, int64_t outer, int64_t at, int64_t n, char *block)
{
    char narrow[BLOCK * 8] __attribute__((aligned(64)));
    int64_t low[OLY_MAX_RANK], extent[OLY_MAX_RANK];
    take_box(r, KEPT, kept, 1, low, extent);
    take_box(r, OUTER, outer, 1, low, extent);
    compute_range(r, RUN, at, n, 1, low, extent, r->widen ? narrow : block);
    if (r->widen)
        r->widen((int)n, block, narrow, NULL, NULL);
}

/* Combines elements [begin, end) of run `outer` of a result to one element. */
static void reduce_run(const reduction *r, int64_t kept, int64_t outer, int64_t begin, int64_t end, char *out)
{
    const char *base =
        r->source ? NULL : r->in + (offset_at(&r->kept, kept) + offset_at(&r->outer, outer)) * r->in_bytes;
    char block[BLOCK * 16] __attribute__((aligned(64))), level[LEVELS * 16] __attribute__((aligned(16)));
    counter c = {0, 1, level};
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = end - at < BLOCK ? end - at : BLOCK;
        const char *from = block;
        int64_t ahead = 0;
        if (r->source)
            compute_run(r, kept, outer, at, n, block);
        else if (n >= SMALL && !r->widen && last_stride(&r->run) == 1 && even_length(&r->run, at, n) == n) {
            from = base + offset_at(&r->run, at) * r->in_bytes;
            ahead = (end - begin) * r->bytes >= 4 * AHEAD ? AHEAD : 0;
        } else {
            gather_dims(r, &r->run, base, at, n, block);
        }
        if (n < SMALL)
            r->chain(n, leaf_place(r, &c), block);
        else
            r->lanes(n, leaf_place(r, &c), from, ahead);
        count_leaf(r, &c);
    }
    count_end(r, &c);
    memcpy(out, level, (size_t)r->bytes);
}

/* One result: of the runs [outer_begin, outer_end) the elements [begin, end) each. */
static void reduce_one(const reduction *r, int64_t kept, int64_t outer_begin, int64_t outer_end, int64_t begin,
                       int64_t end, char *out)
{
    char level[LEVELS * 16] __attribute__((aligned(16)));
    counter c = {0, 1, level};
    for (int64_t o = outer_begin; o < outer_end; o++) {
        reduce_run(r, kept, o, begin, end, leaf_place(r, &c));
        count_leaf(r, &c);
    }
    count_end(r, &c);
    put(r, 1, out, level);
}

/* Are a result's elements one block that is not long, one after the other in memory? */
static bool is_one_row(const reduction *r)
{
    int64_t n = r->shape.run;
    return !r->source && r->shape.outer == 1 && r->shape.parts <= 1 && n >= SMALL && n <= BLOCK &&
           n * r->bytes < 4 * AHEAD && last_stride(&r->run) == 1 && even_length(&r->run, 0, n) == n;
}

/* SIDE results of such rows, in the order of reduce_run: their last lanes are combined together, those of each row as a column. */
static void reduce_row_group(const reduction *r, int64_t kept, char *out)
{
    enum { SIDE = OLY_FOLDED };
    char block[4 * AHEAD] __attribute__((aligned(64))), lanes[SIDE * SIDE * 16] __attribute__((aligned(64)));
    char turned[SIDE * SIDE * 16] __attribute__((aligned(64)));
    for (int k = 0; k < SIDE; k++) {
        const char *from = r->in + offset_at(&r->kept, kept + k) * r->in_bytes;
        if (r->widen)
            r->widen((int)r->shape.run, block, from, NULL, NULL);
        r->folded(r->shape.run, lanes + k * SIDE * r->bytes, r->widen ? block : from);
    }
    OLY_ISA_NAME(oly_convert).gather[r->bytes](SIDE, SIDE, turned, lanes, 1, SIDE);
    for (int64_t half = SIDE / 2; half > 0; half /= 2)
        r->pair(half * SIDE, turned, turned, turned + half * SIDE * r->bytes);
    put(r, SIDE, out, turned);
}

/* Fewer than 64 elements per result, adjacent in the last dimension. */
static void reduce_small(const reduction *r, const dims *sequence, int64_t kept_begin, int64_t kept_end, char *out)
{
    int64_t n = r->shape.outer * r->shape.run;
    if (kept_end - kept_begin >= 8) {
        reduce_rows(r, sequence, kept_begin, kept_end, 0, n, out);
        return;
    }
    for (int64_t kept = kept_begin; kept < kept_end; kept++, out += r->out_bytes) {
        char elements[SMALL * 16] __attribute__((aligned(16))), result[16] __attribute__((aligned(16)));
        gather_dims(r, sequence, r->in + offset_at(&r->kept, kept) * r->in_bytes, 0, n, elements);
        r->chain(n, result, elements);
        put(r, 1, out, result);
    }
}

/* -- the task ------------------------------------------------------------------------------------------------------ */

static void describe(reduction *r, const oly_reduce_task *t)
{
    const oly_combine_table *c = &OLY_ISA_NAME(oly_combiners);
    r->shape = oly_reduce_divide(t);
    bool narrow = oly_is_narrow(t->dtype);
    oly_dtype dtype = narrow ? OLY_FLOAT32 : t->dtype, from = t->converts ? t->from : t->dtype;
    r->bytes = oly_element_bytes[dtype];
    r->in_bytes = oly_element_bytes[from];
    r->widen = from != dtype ? OLY_ISA_NAME(oly_convert).convert[from][dtype] : NULL;
    r->narrow = narrow && r->shape.parts <= 1 ? OLY_ISA_NAME(oly_convert).convert[OLY_FLOAT32][t->dtype] : NULL;
    r->out_bytes = r->narrow ? oly_element_bytes[t->dtype] : r->bytes;
    r->pair = c->pair[t->combiner][dtype];
    r->eight = c->eight[t->combiner][dtype];
    r->rows = c->rows[t->combiner][dtype];
    r->chain = c->chain[t->combiner][dtype];
    r->lanes = c->lanes[t->combiner][dtype];
    r->folded = c->folded[t->combiner][dtype];
    r->gather = OLY_ISA_NAME(oly_convert).gather[r->in_bytes];
    r->task = t;
    r->source = NULL;
}

/* Where the elements are: those of the task's box, or of a box within it. */
static void place_box(reduction *r, const int64_t *extent, const int64_t *stride, dims *sequence)
{
    r->kept.rank = r->outer.rank = r->run.rank = sequence->rank = 0;
    for (int d = 0; d < r->task->rank; d++) {
        part_of_box part = part_of(r, d);
        if (extent[d] == 1)
            continue;
        add_dimension(part == KEPT ? &r->kept : part == OUTER ? &r->outer : &r->run, extent[d], stride[d]);
        if (part != KEPT)
            add_dimension(sequence, extent[d], stride[d]);
    }
}

/* Results one by one, those of short rows several at a time. */
static void reduce_each(const reduction *r, int64_t kept_begin, int64_t kept_end, int64_t outer_begin,
                        int64_t outer_end, int64_t begin, int64_t end, char *out)
{
    int64_t kept = kept_begin;
    if (is_one_row(r))
        for (; kept + OLY_FOLDED <= kept_end; kept += OLY_FOLDED, out += OLY_FOLDED * r->out_bytes)
            reduce_row_group(r, kept, out);
    for (; kept < kept_end; kept++, out += r->out_bytes)
        reduce_one(r, kept, outer_begin, outer_end, begin, end, out);
}

/* -- short runs ------------------------------------------------------------------------------------------------------ */

/* Several short runs of each result: first every run to one element, as if those were the results, then these elements as rows. kept_n
 * results from `first` on, which are evenly spaced, and whose elements are few enough for a leaf of PLACE bytes. */
static void reduce_short_runs(const reduction *r, int64_t first, int64_t kept_n, int64_t outer_begin, int64_t outer_end,
                              char *out)
{
    char elements[ROOM] __attribute__((aligned(64))), level[ROOM] __attribute__((aligned(64)));
    reduction runs = *r, rows = *r;
    runs.in = r->in + offset_at(&r->kept, first) * r->in_bytes;
    runs.kept = r->outer;
    if (kept_n > 1)
        add_dimension(&runs.kept, kept_n, last_stride(&r->kept));
    runs.outer.rank = 0;
    runs.shape.outer = runs.shape.parts = 1;
    runs.out_bytes = r->bytes;
    runs.narrow = rows.narrow = NULL;
    rows.widen = NULL;
    rows.in = elements;
    rows.in_bytes = r->bytes;
    rows.gather = OLY_ISA_NAME(oly_convert).gather[r->bytes];
    rows.kept = (dims){1, {kept_n}, {1}};
    const row all = {0, kept_n, true};
    counter c = {0, kept_n, level};
    int64_t most = 1; /* a power of two: a leaf of the same tree */
    while (2 * most * kept_n * r->bytes <= ROOM)
        most *= 2;
    for (int64_t at = outer_begin; at < outer_end; at += most) {
        int64_t n = outer_end - at < most ? outer_end - at : most;
        dims sequence = {1, {n}, {kept_n}};
        if (r->shape.run < SMALL)
            reduce_small(&runs, &runs.run, at * kept_n, (at + n) * kept_n, elements);
        else
            reduce_each(&runs, at * kept_n, (at + n) * kept_n, 0, 1, 0, r->shape.run, elements);
        tree_of_rows(&rows, &sequence, &all, 0, n, leaf_place(r, &c));
        count_leaf(r, &c);
    }
    count_end(r, &c);
    put(r, kept_n, out, level);
}

/* Results [kept_begin, kept_end) from part `part` of the reduced elements. */
static void reduce_piece(const reduction *r, const dims *sequence, int64_t kept_begin, int64_t kept_end, int part,
                         char *out)
{
    const oly_reduce_shape *s = &r->shape;
    int64_t outer_begin = 0, outer_end = s->outer, begin = 0, end = s->run;
    if (s->outer > 1) {
        outer_begin = s->outer * part / s->parts;
        outer_end = s->outer * (part + 1) / s->parts;
    } else {
        int64_t blocks = (s->run + BLOCK - 1) / BLOCK;
        begin = blocks * part / s->parts * BLOCK;
        end = blocks * (part + 1) / s->parts * BLOCK;
        end = end < s->run ? end : s->run;
    }
    if (s->run == 1)
        reduce_rows(r, sequence, kept_begin, kept_end, outer_begin, outer_end, out);
    else if (s->outer * s->run < SMALL)
        reduce_small(r, sequence, kept_begin, kept_end, out);
    else if (!r->source && outer_end - outer_begin > 1 && s->run <= OLY_REDUCE_SHORT_RUN)
        for (int64_t first = kept_begin, n; first < kept_end; first += n) {
            n = even_length(&r->kept, first, kept_end - first);
            n = n < PLACE / r->bytes ? n : PLACE / r->bytes;
            reduce_short_runs(r, first, n, outer_begin, outer_end, out + (first - kept_begin) * r->out_bytes);
        }
    else
        reduce_each(r, kept_begin, kept_end, outer_begin, outer_end, begin, end, out);
}

/* Are all elements of a result computed at once? */
static bool is_whole(const reduction *r)
{
    int64_t n = r->shape.outer * r->shape.run;
    return r->shape.parts <= 1 &&
           (n <= (r->shape.run == 1 ? FEW : OLY_REDUCE_WHOLE) || oly_reduce_short_whole(r->task, &r->shape));
}

/* Results [begin, end) of an operand that is computed, some results with all their elements at once. */
static void reduce_whole(const reduction *all, int64_t begin, int64_t end, char *out)
{
    char window[OLY_REDUCE_WINDOW] __attribute__((aligned(64)));
    int64_t low[OLY_MAX_RANK], extent[OLY_MAX_RANK], stride[OLY_MAX_RANK], n = all->shape.outer * all->shape.run;
    reduction r = *all;
    dims sequence;
    take_box(&r, OUTER, 0, all->shape.outer, low, extent);
    take_box(&r, RUN, 0, all->shape.run, low, extent);
    r.source = NULL;
    r.in = window;
    for (int64_t first = begin, most = OLY_REDUCE_WINDOW / r.in_bytes / n; first < end;) {
        int64_t taken = take_box(&r, KEPT, first, end - first < most ? end - first : most, low, extent), next = 1;
        for (int d = r.task->rank - 1; d >= 0; d--) {
            stride[d] = next;
            next *= extent[d];
        }
        all->source->compute(all->source->context, low, extent, window);
        place_box(&r, extent, stride, &sequence);
        reduce_piece(&r, &sequence, 0, taken, 0, out + (first - begin) * r.out_bytes);
        first += taken;
    }
}

/* Results [begin, end), which no second phase makes. */
static void reduce_results(const reduction *r, const dims *sequence, void *out, int64_t begin, int64_t end)
{
    char *to = (char *)out + begin * r->out_bytes;
    if (r->source && is_whole(r))
        reduce_whole(r, begin, end, to);
    else
        reduce_piece(r, sequence, begin, end, 0, to);
}

static void reduce_chunk(const reduction *r, const dims *sequence, void *out, void *scratch, int chunk, int n_chunks)
{
    const oly_reduce_shape *s = &r->shape;
    if (s->kept == 0)
        return;
    if (s->outer == 0 || s->run == 0) {
        oly_combine_identity(r->task->combiner, r->task->dtype, out, s->kept);
        return;
    }
    if (s->parts > 1)
        reduce_piece(r, sequence, 0, s->kept, chunk, (char *)scratch + chunk * s->kept * r->bytes);
    else
        reduce_results(r, sequence, out, s->kept * chunk / n_chunks, s->kept * (chunk + 1) / n_chunks);
}

void OLY_ISA_NAME(oly_reduce_run)(const oly_reduce_task *t, const void *in, void *out, void *scratch, int chunk,
                                  int n_chunks)
{
    reduction r;
    dims sequence;
    describe(&r, t);
    place_box(&r, t->extent, t->stride, &sequence);
    r.in = in;
    reduce_chunk(&r, &sequence, out, scratch, chunk, n_chunks);
}

void OLY_ISA_NAME(oly_reduce_computed)(const oly_reduce_task *t, const oly_reduce_source *source, void *out,
                                       void *scratch, int chunk, int n_chunks)
{
    reduction r;
    dims sequence;
    describe(&r, t);
    place_box(&r, t->extent, t->stride, &sequence); /* strides do not matter: nothing is in memory */
    r.in = NULL;
    r.source = source;
    reduce_chunk(&r, &sequence, out, scratch, chunk, n_chunks);
}

void OLY_ISA_NAME(oly_reduce_results)(const oly_reduce_task *t, const void *in, void *out, int64_t begin, int64_t end)
{
    reduction r;
    dims sequence;
    describe(&r, t);
    place_box(&r, t->extent, t->stride, &sequence);
    r.in = in;
    reduce_results(&r, &sequence, out, begin, end);
}

void OLY_ISA_NAME(oly_reduce_finish)(const oly_reduce_task *t, void *out, void *scratch)
{
    reduction r;
    describe(&r, t);
    const oly_reduce_shape *s = &r.shape;
    if (s->parts <= 1)
        return;
    for (int64_t span = 1; span < s->parts; span *= 2) /* in place: partial p is combined with partial p + span */
        for (int64_t p = 0; p + span < s->parts; p += 2 * span) {
            char *left = (char *)scratch + p * s->kept * r.bytes;
            r.pair(s->kept, left, left, left + span * s->kept * r.bytes);
        }
    if (oly_is_narrow(t->dtype))
        r.narrow = OLY_ISA_NAME(oly_convert).convert[OLY_FLOAT32][t->dtype];
    put(&r, s->kept, out, scratch);
}
