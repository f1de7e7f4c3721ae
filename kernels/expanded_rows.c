/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of several dimensions (machine_code.h), of which the last ones are short: what is broadcast along some of them, or otherwise not
 * adjacent along the whole row, is copied to a row of its own first, piece by piece in L1. The code then has long rows of adjacent elements. What
 * repeats itself along the row is copied once for all pieces. */
#include "machine_code.h"
#include "table.h"
#include <string.h>

enum { SCRATCH_BYTES = 49152, GOOD_ELEMENTS = 2048, MULTIPLE = 64, SLACK = 64, GROUP = 16, TURNED = 8 };

/* One operand's dimensions within a piece, merged. */
typedef struct layout {
    int rank, element;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
} layout;

static int64_t elements_from(const oly_code_box *b, int d)
{
    int64_t n = 1;
    for (; d < b->rank; d++)
        n *= b->extent[d];
    return n;
}

/* -- copying ------------------------------------------------------------------------------------------------------------------- */

/* n elements, each `times`. Writes up to a group more. */
#define REPEAT(T, bits)                                                                                                \
    static void repeat_##bits(char *out, const char *from, int64_t n, int64_t stride, int64_t times)                   \
    {                                                                                                                  \
        typedef T group __attribute__((vector_size(GROUP)));                                                           \
        int64_t bytes = times * (int64_t)sizeof(T);                                                                    \
        for (int64_t k = 0; k < n; k++, out += bytes, from += stride) {                                                \
            T one;                                                                                                     \
            memcpy(&one, from, sizeof one);                                                                            \
            group all = (group){0} + one;                                                                              \
            memcpy(out, &all, GROUP);                                                                                  \
            for (int64_t at = GROUP; at < bytes; at += GROUP)                                                          \
                memcpy(out + at, &all, GROUP);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void spaced_##bits(char *out, const char *from, int64_t n, int64_t stride)                                  \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++, from += stride)                                                                \
            memcpy(out + k * (int64_t)sizeof(T), from, sizeof(T));                                                     \
    }
REPEAT(uint8_t, 8)
REPEAT(uint16_t, 16)
REPEAT(uint32_t, 32)
REPEAT(uint64_t, 64)

/* Of complex128, which no group has several of. */
enum { PAIR = 16 };
static void spaced_pairs(char *out, const char *from, int64_t n, int64_t stride)
{
    for (int64_t k = 0; k < n; k++, out += PAIR, from += stride)
        memcpy(out, from, PAIR);
}
static void repeat_pairs(char *out, const char *from, int64_t n, int64_t stride, int64_t times)
{
    for (int64_t k = 0; k < n; k++, out += times * PAIR, from += stride)
        spaced_pairs(out, from, times, 0);
}

static void repeat(int element, char *out, const char *from, int64_t n, int64_t stride, int64_t times)
{
    switch (element) {
    case 1: repeat_8(out, from, n, stride, times); break;
    case 2: repeat_16(out, from, n, stride, times); break;
    case 4: repeat_32(out, from, n, stride, times); break;
    case 8: repeat_64(out, from, n, stride, times); break;
    default: repeat_pairs(out, from, n, stride, times);
    }
}

static void copy_spaced(int element, char *out, const char *from, int64_t n, int64_t stride)
{
    switch (element) {
    case 1: spaced_8(out, from, n, stride); break;
    case 2: spaced_16(out, from, n, stride); break;
    case 4: spaced_32(out, from, n, stride); break;
    case 8: spaced_64(out, from, n, stride); break;
    default: spaced_pairs(out, from, n, stride);
    }
}

/* Copies the first `bytes` of `all` until they are all. */
static void copy_again(char *out, int64_t bytes, int64_t all)
{
    for (int64_t done = bytes; done < all;) {
        int64_t more = all - done < done ? all - done : done;
        memcpy(out + done, out, (size_t)more);
        done += more;
    }
}

/* Copies dimensions from d on to dense memory; returns its length. */
static int64_t expand(const layout *l, int d, char *out, const char *from)
{
    int64_t n = l->extent[d], element = l->element, bytes = 0;
    int left = l->rank - d;
    if (left == 1 && l->stride[d] == element) {
        memcpy(out, from, (size_t)(n * element));
        return n * element;
    }
    if (left == 1 && l->stride[d] != 0) {
        copy_spaced(l->element, out, from, n, l->stride[d]);
        return n * element;
    }
    if (left == 1) {
        repeat(l->element, out, from, 1, 0, n);
        return n * element;
    }
    if (left == 2 && l->stride[d + 1] == 0) {
        repeat(l->element, out, from, n, l->stride[d], l->extent[d + 1]);
        return n * l->extent[d + 1] * element;
    }
    if (l->stride[d] == 0) {
        bytes = expand(l, d + 1, out, from);
        copy_again(out, bytes, n * bytes);
        return n * bytes;
    }
    for (int64_t k = 0; k < n; k++)
        bytes += expand(l, d + 1, out + bytes, from + k * l->stride[d]);
    return bytes;
}

/* Are the elements apart along rows and adjacent in another dimension, as channels that an array has before its places? */
static bool is_turned(const layout *l)
{
    const int64_t apart = l->stride[l->rank - 1];
    if (apart == 0 || apart == l->element || apart == -l->element)
        return false;
    for (int d = 0; d < l->rank - 1; d++)
        if (l->stride[d] == l->element && l->extent[d] >= TURNED)
            return true;
    return false;
}

/* Copies all dimensions to dense memory, blocks of them by way of registers. */
static void copy_turned(const layout *l, char *out, const char *from)
{
    oly_copy_task t = {.element_bytes = (size_t)l->element, .rank = l->rank};
    for (int64_t d = l->rank - 1, dense = 1; d >= 0; d--) {
        t.extent[d] = l->extent[d];
        t.to_stride[d] = dense;
        t.from_stride[d] = l->stride[d] / l->element;
        dense *= l->extent[d];
    }
    oly_copy_run(&t, out, from, 0, 1);
}

/* n indexes of the first dimension of rows, and all of the others. */
static layout layout_of(const oly_code_box *b, int operand, int64_t n)
{
    layout l = {.rank = 0, .element = b->element[operand]};
    for (int d = b->first_row; d < b->rank; d++) {
        int64_t extent = d == b->first_row ? n : b->extent[d], stride = b->stride[operand][d];
        if (l.rank > 0 && l.stride[l.rank - 1] == stride * extent) {
            l.extent[l.rank - 1] *= extent;
            l.stride[l.rank - 1] = stride;
        } else {
            l.extent[l.rank] = extent;
            l.stride[l.rank++] = stride;
        }
    }
    return l;
}

/* -- rows -------------------------------------------------------------------------------------------------------------------- */

int64_t oly_code_expanded_piece(const oly_code_box *b)
{
    int64_t unit = elements_from(b, b->first_row + 1), bytes = 0, all = b->extent[b->first_row];
    for (int k = 0; k < b->n_memory; k++)
        bytes += b->expanded[k / 64] >> k % 64 & 1 ? unit * b->element[k] : 0;
    int64_t fits = bytes > 0 ? SCRATCH_BYTES / bytes : all, good = GOOD_ELEMENTS / unit / MULTIPLE * MULTIPLE;
    good = good < MULTIPLE ? MULTIPLE : good;
    good = good < fits ? good : fits / 8 * 8;
    return all < good ? all : good;
}

void oly_code_expand(const oly_code_box *b, oly_code_row *row, void *context)
{
    char scratch[SCRATCH_BYTES + OLY_CODE_EXPANDED * 2 * SLACK] __attribute__((aligned(64)));
    char *place[OLY_CODE_OPERANDS], *at[OLY_CODE_OPERANDS], *first[OLY_CODE_OPERANDS], *next = scratch;
    const char *held[OLY_CODE_OPERANDS] = {NULL}; /* what repeats itself: of where it is a copy */
    int64_t rows = 1, unit = elements_from(b, b->first_row + 1), all = b->extent[b->first_row];
    for (int d = 0; d < b->first_row; d++)
        rows *= b->extent[d];
    for (int k = 0; k < b->n_memory; k++)
        if (b->expanded[k / 64] >> k % 64 & 1) {
            place[k] = next;
            next += (b->piece * unit * b->element[k] + 2 * SLACK - 1) / SLACK * SLACK;
        } else {
            place[k] = NULL;
        }
    for (int64_t r = 0; r < rows; r++) {
        int64_t rest = r;
        memcpy(at, b->base, sizeof *at * (size_t)b->n_operands);
        for (int d = b->first_row - 1; d >= 0; d--) {
            int64_t index = rest % b->extent[d];
            rest /= b->extent[d];
            for (int k = 0; index && k < b->n_operands; k++)
                at[k] = (char *)((uintptr_t)at[k] + (uintptr_t)(index * b->stride[k][d]));
        }
        for (int64_t from = 0; from < all; from += b->piece) {
            int64_t n = all - from < b->piece ? all - from : b->piece;
            for (int k = 0; k < b->n_operands; k++) {
                int64_t stride = b->stride[k][b->first_row];
                first[k] = (char *)((uintptr_t)at[k] + (uintptr_t)(from * stride));
                if (k >= b->n_memory || !place[k])
                    continue;
                if (stride != 0 || held[k] != first[k]) {
                    layout l = layout_of(b, k, n);
                    if (is_turned(&l))
                        copy_turned(&l, place[k], first[k]);
                    else
                        expand(&l, 0, place[k], first[k]);
                    held[k] = first[k];
                }
                first[k] = place[k];
            }
            row(context, first, n * unit);
        }
    }
}
