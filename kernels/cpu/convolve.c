/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions as matrix products: the elements that every tap of every feature reads for a strip of positions are
 * written as the rows of a matrix, which the kernel's rows are multiplied by; large floating-point products use
 * OpenBLAS. Compiled once per instruction set; gives oly_convolve_run_<isa>, called through local.c. Each element of
 * the result is summed in the order of the kernel's elements. */
#include "cpu/strip.h"
#include "cpu/window_line.h"
#include <cblas.h>

#define DEPTH 128 /* rows of operand elements written at a time */
#define ROWS  OLY_CONVOLVE_ROWS
#define STRIP OLY_CONVOLVE_STRIP

/* One block of the result: features [row, row + rows) of one group, positions [place, place + width) of one batch
 * element. */
typedef struct block {
    const oly_local_task *t;
    oly_slide slide;
    int64_t batch, row, rows, place, width; /* in the result's box */
    int64_t seen_batch, seen_feature;       /* in the operand's box: those that feature 0 of the kernel belongs to */
    int64_t depth;                          /* features of the kernel times taps */
    bool blas;
} block;

/* Offset in the kernel of each element of one of its rows. */
static void kernel_offsets(const block *b, int64_t from, int64_t depth, int64_t *offset)
{
    const oly_local_operand *w = &b->t->in[1];
    for (int64_t l = 0; l < depth; l++) {
        int64_t tap[OLY_MAX_WINDOW] = {0}, at = from + l;
        oly_slide_indexes(&b->slide, b->slide.size, at % b->slide.taps, tap);
        offset[l] = at / b->slide.taps * w->stride[1];
        for (int d = 0; d < b->t->window->rank; d++)
            offset[l] += tap[d] * w->stride[2 + d];
    }
}

#define BLAS_NONE(p, s, T)
#define BLAS_REAL(p, s, T)                                                                                             \
    if (b->blas) {                                                                                                     \
        cblas_##p##gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->rows, (int)b->width, (int)depth, 1, rows,   \
                        DEPTH, seen, STRIP, from > 0, out, (int)b->slide.places);                                      \
        continue;                                                                                                      \
    }
#define BLAS_COMPLEX(p, s, T)                                                                                          \
    if (b->blas) {                                                                                                     \
        const T one = 1, before = from > 0;                                                                            \
        cblas_##p##gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->rows, (int)b->width, (int)depth, &one,      \
                        rows, DEPTH, seen, STRIP, &before, out, (int)b->slide.places);                                 \
        continue;                                                                                                      \
    }

/* x: the operand's feature `seen_feature` of the batch element; w: the kernel's row `row`; out: the block's first
 * element. */
#define CONVOLVE(s, T, MADD, BLAS, p)                                                                                  \
    OLY_STRIP(s, T, MADD)                                                                                              \
    OLY_WINDOW_LINE(s, T)                                                                                              \
    static void convolve_##s(const block *b, const void *x, const void *w, void *result)                               \
    {                                                                                                                  \
        T seen[DEPTH * STRIP], rows[ROWS * DEPTH], *out = result;                                                      \
        int64_t offset[DEPTH], feature = b->t->in[0].stride[1], row = b->t->in[1].stride[0];                           \
        for (int64_t i = 0; i < b->rows; i++)                                                                          \
            for (int64_t j = 0; j < b->width; j++)                                                                     \
                out[i * b->slide.places + j] = 0;                                                                      \
        for (int64_t from = 0; from < b->depth; from += DEPTH) {                                                       \
            int64_t depth = b->depth - from < DEPTH ? b->depth - from : DEPTH;                                         \
            kernel_offsets(b, from, depth, offset);                                                                    \
            for (int64_t l = 0; l < depth; l++) {                                                                      \
                int64_t tap[OLY_MAX_WINDOW] = {0};                                                                     \
                oly_slide_indexes(&b->slide, b->slide.size, (from + l) % b->slide.taps, tap);                          \
                const T *of = x ? (const T *)x + (from + l) / b->slide.taps * feature : NULL;                          \
                line_##s(&b->slide, tap, b->place, b->width, of, 0, seen + l * STRIP);                                 \
            }                                                                                                          \
            for (int64_t i = 0; i < b->rows; i++)                                                                      \
                for (int64_t l = 0; l < depth; l++)                                                                    \
                    rows[i * DEPTH + l] = ((const T *)w)[i * row + offset[l]];                                         \
            BLAS(p, s, T)                                                                                              \
            for (int64_t i = 0; i < b->rows; i++)                                                                      \
                strip_##s(depth, b->width, out + i * b->slide.places, rows + i * DEPTH, 1, seen, STRIP);               \
        }                                                                                                              \
    }
/* Unsigned integers represent the signed ones; narrow types have been converted. */
#define CONVOLVE_INTEGERS(a, number, name, s, T, U, S, W, ...) CONVOLVE(U, U, WRAPPED_##W, BLAS_NONE, )
OLY_UNSIGNED_TYPES(CONVOLVE_INTEGERS, )
CONVOLVE(f32, float, FUSED_F32, BLAS_REAL, s)
CONVOLVE(f64, double, FUSED_F64, BLAS_REAL, d)
CONVOLVE(c64, float _Complex, FUSED_C64, BLAS_COMPLEX, c)
CONVOLVE(c128, double _Complex, FUSED_C128, BLAS_COMPLEX, z)

static void run_block(const block *b, const void *const *in, void *result)
{
    const oly_local_operand *x = &b->t->in[0], *w = &b->t->in[1];
    int64_t bytes = oly_element_bytes[b->t->out.dtype];
    const char *from = in[0], *rows = in[1];
    if (from)
        from += (b->seen_batch * x->stride[0] + b->seen_feature * x->stride[1]) * bytes;
    if (rows)
        rows += b->row * w->stride[0] * bytes;
    char *out = (char *)result + ((b->batch * b->t->out.extent[1] + b->row) * b->slide.places + b->place) * bytes;
    switch (b->t->out.dtype) {
#define RUN_INTEGERS(a, number, name, s, T, U, ...)                                                                    \
    case OLY_##number:                                                                                                 \
        convolve_##U(b, from, rows, out);                                                                              \
        break;
#define RUN(a, number, name, s, ...)                                                                                   \
    case OLY_##number: convolve_##s(b, from, rows, out); break;
        OLY_INTEGER_TYPES(RUN_INTEGERS, )
        OLY_WIDE_TYPES(RUN, )
        OLY_COMPLEX_TYPES(RUN, )
    default: break;
    }
}

/* Finds the part of the operand that the block's group reads. */
static void find_group(block *b, int64_t group)
{
    const oly_local_operand *x = &b->t->in[0], *w = &b->t->in[1];
    const oly_sliding_window *s = b->t->window;
    int64_t batch = x->size[0] / s->batch_groups;
    bool of_batch = s->batch_groups > 1;
    b->seen_batch = (of_batch ? group * batch : 0) + b->t->out.origin[0] + b->batch - x->origin[0];
    b->seen_feature = (of_batch ? 0 : group * w->size[1]) + w->origin[1] - x->origin[1];
}

void OLY_ISA_NAME(oly_convolve_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                    int chunk, int n_chunks)
{
    (void)scratch, (void)phase;
    oly_convolve_blocks d = oly_convolve_divide(t);
    int64_t blocks = d.batch * d.groups * d.row_blocks * d.strips, begin = t->out.origin[1],
            end = begin + t->out.extent[1];
    block b = {.t = t, .slide = oly_slide_of(t)};
    b.depth = in[1] ? t->in[1].extent[1] * b.slide.taps : 0;
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        int64_t strip = k % d.strips, rest = k / d.strips, part = rest % d.row_blocks;
        rest /= d.row_blocks;
        int64_t group = d.first + rest % d.groups;
        int64_t first = group * d.per_group + part * ROWS, last = first + ROWS;
        last = last < (group + 1) * d.per_group ? last : (group + 1) * d.per_group;
        first = first > begin ? first : begin;
        last = last < end ? last : end;
        if (first >= last)
            continue;
        b.batch = rest / d.groups;
        b.row = first - begin;
        b.rows = last - first;
        b.place = strip * STRIP;
        b.width = d.places - b.place < STRIP ? d.places - b.place : STRIP;
        b.blas = b.rows >= 4 && b.width >= 8 && b.depth >= 8 && d.places < INT32_MAX;
        find_group(&b, group);
        run_block(&b, in, out);
    }
}
