/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions. Most of float32 and float64 are computed from strips of the operand (convolve_planes.h, convolve_dilated.h), large kernels over large
 * batches for several of them together (convolve_batches.h). The others are matrix products: the elements that every tap of every feature reads for a
 * strip of positions are written as the rows of a matrix, which the kernel's rows are multiplied by, in registers or by OpenBLAS. Compiled once per
 * instruction set; gives oly_convolve_run_<isa>, called through local.c. Each element of the result is summed in the order of the kernel's elements. */
#include "cpu/convolve_batches.h"
#include "cpu/convolve_dilated.h"
#include "cpu/gemm_real_tiles.h"
#include "cpu/strip.h"
#include "cpu/transpose.h"
#include "cpu/window_line.h"
#include <cblas.h>

#define STRIP OLY_CONVOLVE_STRIP
#define LINE                                                                                                           \
    (STRIP + 16) /* elements between the rows of a strip: powers of two would share few places of the first cache */

/* Are the elements of a row of the kernel side by side? */
static bool is_dense(int64_t depth, const int64_t *offset)
{
    for (int64_t l = 1; l < depth; l++)
        if (offset[l] != offset[0] + l)
            return false;
    return true;
}

#define BLAS_NONE(p, s, T)
#ifdef OLY_HAS_TILES
#define BLAS_REAL(p, s, T)                                                                                             \
    const tiles all = {b->rows, b->width, depth, a_row, a_column, LINE, b->slide.places, false, 0, true};              \
    tiles_##s(&all, rows, seen, out);                                                                                  \
    continue;
#else
#define BLAS_REAL(p, s, T)                                                                                             \
    if (b->blas) {                                                                                                     \
        cblas_##p##gemm(CblasRowMajor, by_feature ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)b->rows,             \
                        (int)b->width, (int)depth, 1, rows, by_feature ? ROWS : DEPTH, seen, LINE, from > 0, out,      \
                        (int)b->slide.places);                                                                         \
        continue;                                                                                                      \
    }
#endif
#define BLAS_COMPLEX(p, s, T)                                                                                          \
    if (b->blas) {                                                                                                     \
        const T one = 1, before = from > 0;                                                                            \
        cblas_##p##gemm(CblasRowMajor, by_feature ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)b->rows,             \
                        (int)b->width, (int)depth, &one, rows, by_feature ? ROWS : DEPTH, seen, LINE, &before, out,    \
                        (int)b->slide.places);                                                                         \
        continue;                                                                                                      \
    }

/* The first feature whose row of tap `number` is row `from` of the matrix or a later one. */
static int64_t first_feature(const oly_slide *s, int64_t from, int64_t number)
{
    return (from - number + s->taps - 1) / s->taps;
}

/* Positions that read elements side by side. */
typedef struct piece {
    int64_t from, length; /* -1: padding */
} piece;

static int add_piece(int n, piece *pieces, int64_t from, int64_t length)
{
    if (length <= 0)
        return n;
    piece *before = n > 0 ? &pieces[n - 1] : NULL;
    if (before && (from < 0 ? before->from < 0 : before->from >= 0 && before->from + before->length == from)) {
        before->length += length;
        return n;
    }
    pieces[n] = (piece){from, length};
    return n + 1;
}

/* What positions [first, first + n) of the result's box read for one tap, the same for every feature; -1: not elements side by side. */
static int pieces_of_tap(const oly_slide *s, const int64_t *tap, int64_t first, int64_t n, piece *pieces)
{
    const int d = s->rank - 1;
    int count = 0;
    if (s->base_dilation[d] != 1 || s->stride[d] * s->step[d] != 1)
        return -1;
    for (int64_t done = 0, length; done < n; done += length) {
        int64_t place[OLY_MAX_WINDOW] = {0}, row;
        oly_slide_indexes(s, s->extent, first + done, place);
        length = s->extent[d] - place[d] < n - done ? s->extent[d] - place[d] : n - done;
        const int64_t at = s->origin[d] + place[d] - s->lo[d] + tap[d] * s->dilation[d];
        const bool seen = oly_slide_row(s, place, tap, &row);
        const int64_t from = seen ? oly_slide_until(at, 1, s->begin[d], length) : length;
        const int64_t to = seen ? oly_slide_until(at, 1, s->end[d], length) : length;
        count = add_piece(count, pieces, -1, to > from ? from : length);
        if (to > from) {
            count = add_piece(count, pieces, row + at + from - s->begin[d], to - from);
            count = add_piece(count, pieces, -1, length - to);
        }
    }
    return count;
}

/* -- features side by side ---------------------------------------------------------------------------------------------- */

#ifdef OLY_HAS_TRANSPOSE
/* Where positions [first, first + n) of the result's box read the operand for one tap; -1: padding. */
static void places_of_tap(const oly_slide *s, const int64_t *tap, int64_t first, int64_t n, int64_t *offset)
{
    const int d = s->rank - 1;
    for (int64_t done = 0, length; done < n; done += length) {
        int64_t place[OLY_MAX_WINDOW] = {0}, row;
        oly_slide_indexes(s, s->extent, first + done, place);
        length = s->extent[d] - place[d] < n - done ? s->extent[d] - place[d] : n - done;
        const bool seen = oly_slide_row(s, place, tap, &row);
        int64_t at = (s->origin[d] + place[d]) * s->stride[d] - s->lo[d] + tap[d] * s->dilation[d];
        if (s->base_dilation[d] == 1) { /* which spares a division for each */
            const int64_t by = s->stride[d] * s->step[d], start = row + (at - s->begin[d]) * s->step[d];
            const int64_t from = seen ? oly_slide_until(at, s->stride[d], s->begin[d], length) : length,
                          to = seen ? oly_slide_until(at, s->stride[d], s->end[d], length) : length;
            for (int64_t k = 0; k < length; k++)
                offset[done + k] = k >= from && k < to ? start + k * by : -1;
            continue;
        }
        for (int64_t k = 0; k < length; k++, at += s->stride[d]) {
            const int64_t i = at / s->base_dilation[d];
            const bool inside = seen && at >= 0 && i * s->base_dilation[d] == at && i >= s->begin[d] && i < s->end[d];
            offset[done + k] = inside ? row + (i - s->begin[d]) * s->step[d] : -1;
        }
    }
}

/* Features from `feature` on, at most 16, of 16 positions: rows `apart` elements apart. */
static void turn_features(int features, const float *x, int64_t feature, const int64_t *offset, float *to,
                          int64_t apart)
{
#ifdef OLY_HAS_VECTOR_TRANSPOSE
    const __mmask16 some = (__mmask16)(0xffff >> (16 - features));
    __m512 v[16];
    for (int k = 0; k < 16; k++)
        v[k] = offset[k] < 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(some, x + offset[k] + feature);
    transpose_vectors(v);
    float turned[16][16] __attribute__((aligned(64)));
    for (int k = 0; k < 16; k++)
        _mm512_store_ps(turned[k], v[k]);
    for (int k = 0; k < features; k++)
        _mm512_storeu_ps(to + k * apart, _mm512_load_ps(turned[k]));
#else
    float rows[16][16];
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < features; i++)
            rows[k][i] = offset[k] < 0 ? 0 : x[offset[k] + feature + i];
    transpose_16(features, (uint32_t *)to, apart, (const uint32_t *)rows[0], 16);
#endif
}

/* Rows [from, from + depth) of the strip's matrix, of an operand whose features are side by side, as images with the channels last: all
 * features of a position are read together. Taps that are written: all or none. */
static int64_t seen_together(const block *b, int64_t from, int64_t depth, const float *x, float *seen)
{
    const oly_slide *s = &b->slide;
    if (!x || b->t->in[0].stride[1] != 1 || s->step[s->rank - 1] == 1 || b->t->in[1].extent[1] < 8)
        return 0;
    int64_t offset[STRIP];
    for (int64_t number = 0; number < s->taps; number++) {
        int64_t tap[OLY_MAX_WINDOW] = {0};
        const int64_t first = first_feature(s, from, number), last = first_feature(s, from + depth, number);
        if (first >= last)
            continue;
        oly_slide_indexes(s, s->size, number, tap);
        places_of_tap(s, tap, b->place, b->width, offset);
        for (int64_t k = b->width; k % 16 != 0; k++)
            offset[k] = -1;
        for (int64_t f = first; f < last; f += 16)
            for (int64_t k = 0; k < b->width; k += 16)
                turn_features(last - f < 16 ? (int)(last - f) : 16, x, f, offset + k,
                              seen + (f * s->taps + number - from) * LINE + k, s->taps * LINE);
    }
    return s->taps;
}
static inline int64_t none_together(const block *b, int64_t from, int64_t depth, const void *x, void *seen)
{
    (void)b, (void)from, (void)depth, (void)x, (void)seen;
    return 0;
}
#define SEEN(b, from, depth, x, seen)                                                                                  \
    _Generic((seen), float * : seen_together, default : none_together)(b, from, depth, x, (void *)(seen))
#else
#define SEEN(b, from, depth, x, seen) 0
#endif

/* x: the operand's feature `seen_feature` of the batch element; w: the kernel's row `row`; out: the block's first
 * element. */
#define CONVOLVE(s, T, MADD, BLAS, p)                                                                                  \
    OLY_STRIP(s, T, MADD)                                                                                              \
    OLY_WINDOW_LINE(s, T)                                                                                              \
    static void copy_pieces_##s(int n, const piece *pieces, const T *x, T *line)                                       \
    {                                                                                                                  \
        for (int k = 0; k < n; line += pieces[k++].length)                                                             \
            if (pieces[k].from < 0)                                                                                    \
                memset(line, 0, sizeof(T) * (size_t)pieces[k].length);                                                 \
            else                                                                                                       \
                memcpy(line, x + pieces[k].from, sizeof(T) * (size_t)pieces[k].length);                                \
    }                                                                                                                  \
    static void convolve_##s(const block *b, const void *x, const void *w, void *result)                               \
    {                                                                                                                  \
        T seen[DEPTH * LINE], rows[ROWS * DEPTH], *out = result;                                                       \
        int64_t offset[DEPTH], feature = b->t->in[0].stride[1], row = b->t->in[1].stride[0];                           \
        for (int64_t i = 0; i < b->rows; i++)                                                                          \
            for (int64_t j = 0; j < b->width; j++)                                                                     \
                out[i * b->slide.places + j] = 0;                                                                      \
        for (int64_t from = 0; from < b->depth; from += DEPTH) {                                                       \
            int64_t depth = b->depth - from < DEPTH ? b->depth - from : DEPTH;                                         \
            kernel_offsets(b, from, depth, offset);                                                                    \
            for (int64_t number = SEEN(b, from, depth, x, seen); number < b->slide.taps; number++) {                   \
                const int64_t first = first_feature(&b->slide, from, number),                                          \
                              last = first_feature(&b->slide, from + depth, number);                                   \
                int64_t tap[OLY_MAX_WINDOW] = {0};                                                                     \
                oly_slide_indexes(&b->slide, b->slide.size, number, tap);                                              \
                piece pieces[STRIP];                                                                                   \
                const int n = first < last && x ? pieces_of_tap(&b->slide, tap, b->place, b->width, pieces) : -1;      \
                for (int64_t f = first; f < last; f++) {                                                               \
                    T *line = seen + (f * b->slide.taps + number - from) * LINE;                                       \
                    const T *of = x ? (const T *)x + f * feature : NULL;                                               \
                    if (n >= 0)                                                                                        \
                        copy_pieces_##s(n, pieces, of, line);                                                          \
                    else                                                                                               \
                        line_##s(&b->slide, tap, b->place, b->width, of, 0, line);                                     \
                }                                                                                                      \
            }                                                                                                          \
            const bool by_feature = row == 1,                                                                          \
                       dense = offset[depth - 1] - offset[0] == depth - 1 && is_dense(depth, offset);                  \
            const int64_t a_row = by_feature ? 1 : DEPTH, a_column = by_feature ? ROWS : 1;                            \
            for (int64_t l = 0; l < depth && by_feature; l++)                                                          \
                memcpy(rows + l * ROWS, (const T *)w + offset[l], sizeof(T) * (size_t)b->rows);                        \
            for (int64_t i = 0; i < b->rows && !by_feature; i++)                                                       \
                if (dense)                                                                                             \
                    memcpy(rows + i * DEPTH, (const T *)w + i * row + offset[0], sizeof(T) * (size_t)depth);           \
                else                                                                                                   \
                    for (int64_t l = 0; l < depth; l++)                                                                \
                        rows[i * DEPTH + l] = ((const T *)w)[i * row + offset[l]];                                     \
            BLAS(p, s, T)                                                                                              \
            for (int64_t i = 0; i < b->rows; i++)                                                                      \
                strip_##s(depth, b->width, out + i * b->slide.places, rows + i * a_row, a_column, seen, LINE);         \
        }                                                                                                              \
    }
/* Unsigned integers represent the signed ones; narrow types have been converted. */
#define CONVOLVE_INTEGERS(a, number, name, s, T, U, S, W, ...) CONVOLVE(U, U, WRAPPED_##W, BLAS_NONE, )
OLY_UNSIGNED_TYPES(CONVOLVE_INTEGERS, )
CONVOLVE(f32, float, FUSED_F32, BLAS_REAL, s)
CONVOLVE(f64, double, FUSED_F64, BLAS_REAL, d)
CONVOLVE(c64, float _Complex, FUSED_C64, BLAS_COMPLEX, c)
CONVOLVE(c128, double _Complex, FUSED_C128, BLAS_COMPLEX, z)

/* Where a block begins: in the operand (NULL: that is empty), the kernel (likewise) and the result. */
typedef struct beginning {
    const char *seen, *rows;
    char *out;
} beginning;

static beginning beginning_of(const block *b, const void *const *in, void *result)
{
    const oly_local_operand *x = &b->t->in[0], *w = &b->t->in[1];
    const int64_t bytes = oly_element_bytes[b->t->out.dtype];
    beginning at = {in[0], in[1], result};
    if (at.seen)
        at.seen += (b->seen_batch * x->stride[0] + b->seen_feature * x->stride[1]) * bytes;
    if (at.rows)
        at.rows += b->row * w->stride[0] * bytes;
    at.out += ((b->batch * b->t->out.extent[1] + b->row) * b->slide.places + b->place) * bytes;
    return at;
}

static void run_block(const block *b, const void *const *in, void *result)
{
    const beginning at = beginning_of(b, in, result);
    switch (b->t->out.dtype) {
#define RUN_INTEGERS(a, number, name, s, T, U, ...)                                                                    \
    case OLY_##number:                                                                                                 \
        convolve_##U(b, at.seen, at.rows, at.out);                                                                     \
        break;
#define RUN(a, number, name, s, ...)                                                                                   \
    case OLY_##number: convolve_##s(b, at.seen, at.rows, at.out); break;
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

/* Takes the rows that the box has of `most` of a group, from its row `first` on. false: none. */
static bool take_rows(block *b, const oly_convolve_blocks *d, int64_t group, int64_t first, int64_t most)
{
    const int64_t begin = b->t->out.origin[1], end = begin + b->t->out.extent[1], left = d->per_group - first;
    int64_t from = group * d->per_group + first, to = from + (most < left ? most : left);
    from = from > begin ? from : begin;
    to = to < end ? to : end;
    b->row = from - begin;
    b->rows = to - from;
    find_group(b, group);
    return from < to;
}

#ifdef OLY_HAS_TILES
enum { ENOUGH_STRIPS = 16 }; /* for threads */

static void run_batches(block *b, const oly_convolve_blocks *d, const void *const *in, void *out, int chunk,
                        int n_chunks)
{
    const int64_t strips = batch_strips(d), blocks = d->places * d->row_blocks * strips;
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        int64_t strip = k % strips, rest = k / strips;
        b->place = rest / d->row_blocks;
        b->batch = d->batch * strip / strips;
        int n = (int)(d->batch * (strip + 1) / strips - b->batch);
        if (!take_rows(b, d, d->first, b->t->out.origin[1] + rest % d->row_blocks * ROWS, ROWS))
            continue;
        const beginning at = beginning_of(b, in, out);
        if (b->t->out.dtype == OLY_FLOAT32)
            convolve_batches_f32(b, n, (const float *)at.seen, (const float *)at.rows, (float *)at.out);
        else
            convolve_batches_f64(b, n, (const double *)at.seen, (const double *)at.rows, (double *)at.out);
    }
}

/* Strips, with all rows of a group where there are enough of them: else the same strip is copied for some rows at a time. c: only the places of
 * this class; NULL: all. */
static void run_planes(block *b, const planes *p, const place_class *c, const oly_convolve_blocks *d,
                       const void *const *in, void *out, int chunk, int n_chunks)
{
    const int64_t strips = d->batch * d->groups * p->strips, parts = strips >= ENOUGH_STRIPS ? 1 : d->row_blocks;
    const int64_t each = parts == 1 ? d->per_group : ROWS;
    for (int64_t k = strips * parts * chunk / n_chunks; k < strips * parts * (chunk + 1) / n_chunks; k++) {
        const int64_t strip = k / parts % p->strips, rest = k / parts / p->strips;
        b->batch = rest / d->groups;
        if (!take_rows(b, d, d->first + rest % d->groups, k % parts * each, each))
            continue;
        const beginning at = beginning_of(b, in, out);
        const block of = c ? of_class(b, c) : *b;
        if (b->t->out.dtype == OLY_FLOAT32)
            convolve_planes_f32(&of, p, c, strip, (const float *)at.seen, (const float *)at.rows, (float *)at.out);
        else
            convolve_planes_f64(&of, p, c, strip, (const double *)at.seen, (const double *)at.rows, (double *)at.out);
    }
}

/* Zeros at the places of a class that meets no element of the operand. */
static void clear_class(const place_class *c, const oly_convolve_blocks *d, const oly_local_task *t, void *out,
                        int chunk, int n_chunks)
{
    const int64_t rows = d->batch * t->out.extent[1];
    for (int64_t k = rows * chunk / n_chunks; k < rows * (chunk + 1) / n_chunks; k++)
        if (t->out.dtype == OLY_FLOAT32)
            spread_places_f32(c, 0, c->slide.extent[0], NULL, (float *)out + k * c->places);
        else
            spread_places_f64(c, 0, c->slide.extent[0], NULL, (double *)out + k * c->places);
}

static void run_classes(block *b, planes *p, const oly_convolve_blocks *d, const void *const *in, void *out, int chunk,
                        int n_chunks)
{
    for (int64_t k = classes_of(&b->slide) - 1; k >= 0; k--) {
        const place_class c = find_class(&b->slide, k);
        const block of = of_class(b, &c);
        if (c.slide.places == 0)
            continue;
        if (c.slide.taps == 0) {
            clear_class(&c, d, b->t, out, chunk, n_chunks);
        } else if (are_planes_of_class(&of, p)) { /* as are_classes has found */
            list_products(&of, &c.taps, p);
            /* where there are fewer strips than chunks, each class is another one's */
            run_planes(b, p, &c, d, in, out, (int)((chunk + k) % n_chunks), n_chunks);
        }
    }
}
#endif

/* A kernel whose rows are dense, as `copied`. */
static oly_local_operand dense_kernel(const oly_local_operand *kernel, oly_copy_task *copied)
{
    oly_local_operand w = *kernel;
    *copied = (oly_copy_task){.element_bytes = oly_element_bytes[w.dtype], .rank = w.rank};
    for (int64_t d = w.rank - 1, dense = 1; d >= 0; d--) {
        copied->extent[d] = w.extent[d];
        copied->from_stride[d] = w.stride[d];
        copied->to_stride[d] = w.stride[d] = dense;
        dense *= w.extent[d];
    }
    return w;
}

static void run(const oly_local_task *t, const void *const *in, void *out, int chunk, int n_chunks)
{
    oly_convolve_blocks d = oly_convolve_divide(t);
    const int64_t blocks = d.batch * d.groups * d.row_blocks * d.strips;
    block b = {.t = t, .slide = oly_slide_of(t)};
    /* strips of about the same length, whole vectors */
    int64_t each = d.strips > 0 ? ((d.places + d.strips - 1) / d.strips + 15) / 16 * 16 : STRIP;
    b.depth = in[1] ? t->in[1].extent[1] * b.slide.taps : 0;
#ifdef OLY_HAS_TILES
    const bool some = in[0] && in[1];
    if (some && are_batches(t, &d, b.depth)) {
        run_batches(&b, &d, in, out, chunk, n_chunks);
        return;
    }
    planes p = {.most_places = PLANE_PLACES, .fewest_features = PLANE_FEATURES};
    if (some && b.slide.taps > 1 && are_planes(&b, &p)) {
        const chosen_taps all = all_taps(&b.slide);
        list_products(&b, &all, &p);
        run_planes(&b, &p, NULL, &d, in, out, chunk, n_chunks);
        return;
    }
    if (some && are_classes(&b, &p)) {
        run_classes(&b, &p, &d, in, out, chunk, n_chunks);
        return;
    }
#endif
    for (int64_t k = blocks * chunk / n_chunks; k < blocks * (chunk + 1) / n_chunks; k++) {
        int64_t strip = k % d.strips, rest = k / d.strips, part = rest % d.row_blocks;
        rest /= d.row_blocks;
        b.batch = rest / d.groups;
        if (strip * each >= d.places || !take_rows(&b, &d, d.first + rest % d.groups, part * ROWS, ROWS))
            continue;
        b.place = strip * each;
        b.width = d.places - b.place < each ? d.places - b.place : each;
        b.blas = b.rows >= 4 && b.width >= 8 && b.depth >= 8 && d.places < INT32_MAX;
        run_block(&b, in, out);
    }
}

void OLY_ISA_NAME(oly_convolve_run)(const oly_local_task *t, const void *const *in, void *out, void *scratch, int phase,
                                    int chunk, int n_chunks)
{
    if (!oly_convolve_packs(t) || !in[1]) {
        if (phase == oly_local_phases(t) - 1)
            run(t, in, out, chunk, n_chunks);
        return;
    }
    oly_copy_task copied;
    oly_local_operand operand[2] = {t->in[0], dense_kernel(&t->in[1], &copied)};
    if (phase == 0) {
        OLY_ISA_NAME(oly_copy_run)(&copied, scratch, in[1], chunk, n_chunks);
        return;
    }
    oly_local_task packed = *t;
    packed.in = operand;
    run(&packed, (const void *[]){in[0], scratch}, out, chunk, n_chunks);
}
