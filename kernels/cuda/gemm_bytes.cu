/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix products of bytes with sums of 32 bits, which wrap: exact in any order. A block computes 64 x 64 results, each thread 4 x 8 of
 * them, from words of four bytes along the sum, which one instruction multiplies and adds. Of both operands a block holds 32 bytes of each
 * row or column in shared memory, twice: while one half is used, the next is read from memory into registers. */
#include "tasks.h" /* before device.h, whose OLY_DEVICE is a macro */
#include "element.h"

enum { SIDE = 64, QUADS = 8, DEPTH = 4 * QUADS, ROWS = 4, COLUMNS = 8, THREADS = SIDE / ROWS * (SIDE / COLUMNS), LINE = SIDE + 4 };
enum { WORDS = SIDE * QUADS / THREADS }; /* of an operand that a thread reads; 4, as elements of a vector */

struct alignas(16) words {
    uint32_t of[4];
};

/* -- operands: `lines` (rows of the left, columns of the right one) of bytes --------------------------------------------------------------- */
struct operand {
    const char *at; /* of the tile's first line */
    int64_t line, byte; /* strides, one of which is 1 */
    int lines;          /* in the tile */
    bool along;         /* byte == 1 */
    bool aligned;       /* all words of the tile are, and its lines are there */
};
OLY_DEVICE operand operand_of(const char *at, int64_t line, int64_t byte, int64_t lines)
{
    operand x = {at, line, byte, lines < SIDE ? (int)lines : (int)SIDE, byte == 1, false};
    x.aligned = lines >= SIDE && (((uintptr_t)at | (uintptr_t)(x.along ? line : byte)) & 3) == 0;
    return x;
}
/* Bytes at `at`, of which `there` exist; others are zero. */
OLY_DEVICE uint32_t word_at(const char *at, int there)
{
    if (there >= 4 && ((uintptr_t)at & 3) == 0)
        return *(const uint32_t *)at;
    uint32_t word = 0;
    OLY_UNROLL
    for (int i = 0; i < 4; i++)
        if (i < there)
            word |= (uint32_t)(uint8_t)at[i] << 8 * i;
    return word;
}
/* Of bytes [from, from + DEPTH), of which `depth` exist. */
OLY_DEVICE words read(const operand &x, int64_t from, int depth)
{
    words w;
    int thread = oly_thread();
    if (x.aligned && depth == DEPTH) {
        int64_t step = x.along ? THREADS / QUADS * x.line : x.byte;
        const char *at = x.at + (x.along ? thread / QUADS * x.line + from + thread % QUADS * 4
                                         : thread % (SIDE / 4) * 4 + (from + thread / (SIDE / 4) * 4) * x.byte);
        OLY_UNROLL
        for (int j = 0; j < WORDS; j++)
            w.of[j] = *(const uint32_t *)(at + j * step);
    } else if (x.along) { /* word j: line thread / QUADS + ..., quad thread % QUADS */
        int quad = thread % QUADS * 4;
        OLY_UNROLL
        for (int j = 0; j < WORDS; j++) {
            int line = thread / QUADS + j * (THREADS / QUADS);
            w.of[j] = word_at(x.at + line * x.line + from + quad, line < x.lines ? depth - quad : 0);
        }
    } else { /* word j: byte j of a quad, of four lines */
        int line = thread % (SIDE / 4) * 4, byte = thread / (SIDE / 4) * 4;
        OLY_UNROLL
        for (int j = 0; j < WORDS; j++)
            w.of[j] = word_at(x.at + line + (from + byte + j) * x.byte, byte + j < depth ? x.lines - line : 0);
    }
    return w;
}
/* To [QUADS][LINE] words. */
OLY_DEVICE void keep(const operand &x, words w, uint32_t *to)
{
    int thread = oly_thread();
    if (x.along) {
        OLY_UNROLL
        for (int j = 0; j < WORDS; j++)
            to[thread % QUADS * LINE + thread / QUADS + j * (THREADS / QUADS)] = w.of[j];
        return;
    }
    uint32_t low = oly_permute_bytes(w.of[0], w.of[1], 0x5140), more = oly_permute_bytes(w.of[2], w.of[3], 0x5140);
    uint32_t high = oly_permute_bytes(w.of[0], w.of[1], 0x7362), most = oly_permute_bytes(w.of[2], w.of[3], 0x7362);
    words turned;
    turned.of[0] = oly_permute_bytes(low, more, 0x5410), turned.of[1] = oly_permute_bytes(low, more, 0x7632);
    turned.of[2] = oly_permute_bytes(high, most, 0x5410), turned.of[3] = oly_permute_bytes(high, most, 0x7632);
    *(words *)(to + thread / (SIDE / 4) * LINE + thread % (SIDE / 4) * 4) = turned;
}

/* -- results --------------------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE void write(int dtype, char *c, int64_t at, int columns, words sums)
{
    bool bytes = oly_bytes_of(dtype) == 1;
    char *to = c + at * (bytes ? 1 : 4);
    if (bytes && columns >= 4 && ((uintptr_t)to & 3) == 0) {
        uint32_t low = oly_permute_bytes(sums.of[0], sums.of[1], 0x0040), high = oly_permute_bytes(sums.of[2], sums.of[3], 0x0040);
        *(uint32_t *)to = oly_permute_bytes(low, high, 0x5410);
    } else if (!bytes && columns >= 4 && ((uintptr_t)to & 15) == 0) {
        *(words *)to = sums;
    } else {
        OLY_UNROLL
        for (int i = 0; i < 4; i++) {
            if (i < columns && bytes)
                to[i] = (char)sums.of[i];
            else if (i < columns)
                ((uint32_t *)to)[i] = sums.of[i];
        }
    }
}

template <bool LEFT_SIGNED, bool RIGHT_SIGNED>
OLY_DEVICE void multiply(const uint32_t *left, const uint32_t *right, uint32_t (&sum)[ROWS][COLUMNS])
{
    OLY_UNROLL
    for (int q = 0; q < QUADS; q++) {
        words p = *(const words *)(left + q * LINE), x[2];
        x[0] = *(const words *)(right + q * LINE), x[1] = *(const words *)(right + q * LINE + SIDE / 2);
        OLY_UNROLL
        for (int r = 0; r < ROWS; r++) {
            OLY_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                sum[r][c] = oly_dot_bytes<LEFT_SIGNED, RIGHT_SIGNED>(p.of[r], x[c / 4].of[c % 4], sum[r][c]);
        }
    }
}

template <bool LEFT_SIGNED, bool RIGHT_SIGNED>
OLY_DEVICE void product(const oly_cuda_gemm_task &g, words *left_words, words *right_words)
{
    enum { HALF = QUADS * LINE };
    const oly_gemm_task &t = g.task;
    uint32_t *left = (uint32_t *)left_words, *right = (uint32_t *)right_words;
    int64_t rows = (t.m + SIDE - 1) / SIDE, columns = (t.n + SIDE - 1) / SIDE, all = rows * columns * g.batches;
    int own_row = oly_thread() / (SIDE / COLUMNS) * ROWS, own_column = oly_thread() % (SIDE / COLUMNS) * 4;
    for (int64_t number = oly_block(); number < all * g.parts; number += oly_blocks()) {
        int64_t column = number % columns * SIDE, row = number / columns % rows * SIDE;
        int64_t batch = number / (columns * rows) % g.batches, part = number / all;
        int64_t from = part * g.depth, end = t.k < from + g.depth ? t.k : from + g.depth;
        int64_t inner = batch % t.batch, rest = batch / t.batch;
        int64_t a = inner * t.a_batch, b = inner * t.b_batch, c = inner * t.c_batch;
        for (int k = t.n_outer - 1; k >= 0; k--) {
            int64_t i = rest % t.outer[k];
            rest /= t.outer[k];
            a += i * t.a_outer[k], b += i * t.b_outer[k], c += i * t.c_outer[k];
        }
        operand x = operand_of(g.a + a + row * t.a_row, t.a_row, t.a_column, t.m - row);
        operand y = operand_of(g.b + b + column * t.b_column, t.b_column, t.b_row, t.n - column);
        uint32_t sum[ROWS][COLUMNS] = {};
        int depth = end - from < DEPTH ? (int)(end - from) : DEPTH, half = 0;
        keep(x, read(x, from, depth), left), keep(y, read(y, from, depth), right);
        oly_barrier();
        OLY_NO_UNROLL
        for (; from < end; from += DEPTH, half = HALF - half) {
            int64_t next = from + DEPTH;
            words p, q;
            depth = end - next < DEPTH ? (int)(end - next) : DEPTH;
            if (next < end)
                p = read(x, next, depth), q = read(y, next, depth);
            multiply<LEFT_SIGNED, RIGHT_SIGNED>(left + half + own_row, right + half + own_column, sum);
            if (next < end)
                keep(x, p, left + HALF - half), keep(y, q, right + HALF - half);
            oly_barrier();
        }
        OLY_UNROLL
        for (int r = 0; r < ROWS; r++) {
            OLY_UNROLL
            for (int k = 0; k < COLUMNS; k += 4) {
                int64_t at = column + own_column + k / 4 * (SIDE / 2), i = row + own_row + r;
                int there = t.n - at < 4 ? (int)(t.n - at) : 4;
                words w = {{sum[r][k], sum[r][k + 1], sum[r][k + 2], sum[r][k + 3]}};
                if (i < t.m && g.parts > 1)
                    write(OLY_T_u32, g.partial, ((part * g.batches + batch) * t.m + i) * t.n + at, there, w);
                else if (i < t.m)
                    write((int)t.dtype, g.c, c + i * t.c_row + at, there, w);
            }
        }
    }
}
#define PRODUCT(s, left_signed, right_signed)                                                                          \
    OLY_KERNEL_BLOCK_BOUNDED(oly_gemm_bytes_##s, oly_cuda_gemm_task, THREADS, 4)                                       \
    {                                                                                                                  \
        OLY_SHARED(words, left, 2 * QUADS *LINE / 4);                                                                  \
        OLY_SHARED(words, right, 2 * QUADS *LINE / 4);                                                                 \
        product<left_signed, right_signed>(task, left, right);                                                         \
    }
PRODUCT(ss, true, true)
PRODUCT(su, true, false)
PRODUCT(us, false, true)
PRODUCT(uu, false, false)
