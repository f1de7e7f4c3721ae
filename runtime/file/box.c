/* SPDX-License-Identifier: BSD-3-Clause */
/* Boxes of arrays in files. See box.h. A box is a nest of loops over its dimensions in the order of the file, slowest first. Loops are
 * split until what they cover in the file fits into a chunk; reading also takes what lies between, where it is little. */
#include "file/box.h"
#include "core/min_max.h"
#include "file/file.h"
#include <string.h>

enum { GAP = 32 << 10 }; /* bytes read for nothing that cost as much as another call */

typedef struct nest {
    const oly_file_array *a;
    bool writes;
    char *memory, *chunk;
    size_t element;
    int n;                                                          /* loops */
    int64_t extent[OLY_MAX_RANK + 1];                               /* of each */
    int64_t in_file[OLY_MAX_RANK + 1], in_memory[OLY_MAX_RANK + 1]; /* elements from one to the next */
    int64_t span[OLY_MAX_RANK + 2]; /* elements that loop d and those inside it cover in the file */
    bool dense[OLY_MAX_RANK + 2];   /* may what loop d covers be moved in one piece? */
} nest;

/* -- elements --------------------------------------------------------------------------------------------------------------- */

oly_box oly_box_whole(int rank, const int64_t *shape)
{
    oly_box b = {.rank = rank};
    for (int d = 0; d < rank; d++)
        b.hi[d] = shape[d];
    return b;
}

static void swap_two(uint16_t *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = __builtin_bswap16(x[k]);
}

static void swap_four(uint32_t *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = __builtin_bswap32(x[k]);
}

static void swap_eight(uint64_t *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        x[k] = __builtin_bswap64(x[k]);
}

void oly_swap_bytes(oly_dtype dtype, int64_t n, void *elements)
{
    size_t bytes = oly_dtype_size(dtype);
    if (dtype == OLY_COMPLEX64 || dtype == OLY_COMPLEX128) {
        bytes /= 2;
        n *= 2;
    }
    switch (bytes) {
    case 2: swap_two(elements, n); break;
    case 4: swap_four(elements, n); break;
    case 8: swap_eight(elements, n); break;
    default: break;
    }
}

/* From the file's form to memory's. */
static void fix(const oly_file_array *a, int64_t n, void *elements)
{
    if (a->swapped)
        oly_swap_bytes(a->dtype, n, elements);
    if (a->dtype == OLY_BOOL) {
        unsigned char *bytes = elements;
        for (int64_t k = 0; k < n; k++)
            bytes[k] = bytes[k] != 0;
    }
}

#define COPY_LINE(T)                                                                                                   \
    for (int64_t k = 0; k < n; k++)                                                                                    \
    memcpy((char *)to + k * to_step * (int64_t)sizeof(T), (const char *)from + k * from_step * (int64_t)sizeof(T),     \
           sizeof(T))

static void copy_line(size_t element, int64_t n, void *to, int64_t to_step, const void *from, int64_t from_step)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)n * element);
        return;
    }
    switch (element) {
    case 1: COPY_LINE(uint8_t); break;
    case 2: COPY_LINE(uint16_t); break;
    case 4: COPY_LINE(uint32_t); break;
    case 8: COPY_LINE(uint64_t); break;
    default: COPY_LINE(uint64_t[2]); break;
    }
}

/* -- the nest ------------------------------------------------------------------------------------------------------------- */

static void add_loop(nest *w, int64_t extent, int64_t in_file, int64_t in_memory)
{
    int last = w->n - 1;
    if (extent == 1)
        return;
    if (w->n > 0 && w->in_file[last] == extent * in_file && w->in_memory[last] == extent * in_memory) {
        w->extent[last] *= extent; /* one loop instead of two */
        w->in_file[last] = in_file;
        w->in_memory[last] = in_memory;
        return;
    }
    w->extent[w->n] = extent;
    w->in_file[w->n] = in_file;
    w->in_memory[w->n++] = in_memory;
}

static void strides(const oly_file_array *a, const oly_box *held, int64_t *in_file, int64_t *in_memory)
{
    int64_t file = 1, memory = 1;
    for (int k = 0; k < a->rank; k++) {
        int d = a->fortran ? k : a->rank - 1 - k, m = a->rank - 1 - k;
        in_file[d] = file;
        file *= a->shape[d];
        in_memory[m] = memory;
        memory *= held->hi[m] - held->lo[m];
    }
}

/* Sets up the loops; *file, *memory: where they begin, in elements. */
static void set_up(nest *w, const oly_box *box, const oly_box *held, int64_t *file, int64_t *memory)
{
    int64_t in_file[OLY_MAX_RANK], in_memory[OLY_MAX_RANK];
    strides(w->a, held, in_file, in_memory);
    *file = *memory = 0;
    for (int k = 0; k < box->rank; k++) {
        int d = w->a->fortran ? box->rank - 1 - k : k;
        *file += box->lo[d] * in_file[d];
        *memory += (box->lo[d] - held->lo[d]) * in_memory[d];
        add_loop(w, box->hi[d] - box->lo[d], in_file[d], in_memory[d]);
    }
    if (w->n == 0) {
        w->extent[0] = w->in_file[0] = w->in_memory[0] = 1;
        w->n = 1;
    }
    w->span[w->n] = 1;
    w->dense[w->n] = true;
    for (int d = w->n - 1; d >= 0; d--) {
        int64_t gap = (w->in_file[d] - w->span[d + 1]) * (int64_t)w->element;
        w->span[d] = (w->extent[d] - 1) * w->in_file[d] + w->span[d + 1];
        w->dense[d] = w->dense[d + 1] && gap <= (w->writes ? 0 : GAP);
    }
}

/* -- moving ------------------------------------------------------------------------------------------------------------------ */

/* Copies between the chunk, in the form of the file, and memory: `extent` turns of loop d. */
static void copy_nest(const nest *w, int d, int64_t extent, char *chunk, char *memory)
{
    int64_t in_file = w->in_file[d], in_memory = w->in_memory[d], bytes = (int64_t)w->element;
    if (d == w->n - 1 && w->writes)
        copy_line(w->element, extent, chunk, in_file, memory, in_memory);
    else if (d == w->n - 1)
        copy_line(w->element, extent, memory, in_memory, chunk, in_file);
    else
        for (int64_t k = 0; k < extent; k++)
            copy_nest(w, d + 1, w->extent[d + 1], chunk + k * in_file * bytes, memory + k * in_memory * bytes);
}

/* `extent` turns of loop d, which cover `span` elements of the file. */
static oly_status move_chunk(nest *w, int d, int64_t extent, int64_t file, int64_t memory)
{
    const oly_file_array *a = w->a;
    int64_t span = (extent - 1) * w->in_file[d] + w->span[d + 1], offset = a->offset + file * (int64_t)w->element;
    size_t bytes = (size_t)span * w->element;
    char *at = w->memory + memory * (int64_t)w->element;
    bool straight = d == w->n - 1 && w->in_file[d] == 1 && w->in_memory[d] == 1;
    if (w->writes && straight && !a->swapped)
        return oly_file_write(a->file, a->path, at, bytes, offset);
    if (w->writes) {
        copy_nest(w, d, extent, w->chunk, at);
        if (a->swapped)
            oly_swap_bytes(a->dtype, span, w->chunk);
        return oly_file_write(a->file, a->path, w->chunk, bytes, offset);
    }
    OLY_TRY(oly_file_read(a->file, a->path, straight ? at : w->chunk, bytes, offset));
    fix(a, span, straight ? at : w->chunk);
    if (!straight)
        copy_nest(w, d, extent, w->chunk, at);
    return OLY_OK;
}

/* Turns of loop d that make one chunk; 0: not even one does. */
static int64_t turns_at_once(const nest *w, int d)
{
    int64_t room = OLY_FILE_CHUNK / (int64_t)w->element, inner = w->span[d + 1];
    if (inner > room || !w->dense[d + 1])
        return 0;
    return w->dense[d] ? oly_smaller((room - inner) / w->in_file[d] + 1, w->extent[d]) : 1;
}

static oly_status move_nest(nest *w, int d, int64_t file, int64_t memory)
{
    int64_t turns = turns_at_once(w, d);
    for (int64_t k = 0; k < w->extent[d]; k += turns ? turns : 1) {
        int64_t in_file = file + k * w->in_file[d], in_memory = memory + k * w->in_memory[d];
        OLY_TRY(turns ? move_chunk(w, d, oly_smaller(turns, w->extent[d] - k), in_file, in_memory)
                      : move_nest(w, d + 1, in_file, in_memory));
    }
    return OLY_OK;
}

static oly_status move_box(nest *w, const oly_box *box, const oly_box *held)
{
    int64_t file, memory;
    if (oly_box_count(box) == 0)
        return OLY_OK;
    set_up(w, box, held, &file, &memory);
    size_t bytes = (size_t)oly_smaller(w->span[0] * (int64_t)w->element, OLY_FILE_CHUNK);
    w->chunk = oly_malloc(bytes);
    if (!w->chunk)
        return oly_out_of_memory(bytes, "reading or writing a file");
    oly_status st = move_nest(w, 0, file, memory);
    oly_release(w->chunk);
    return st;
}

oly_status oly_file_read_box(const oly_file_array *a, const oly_box *box, const oly_box *held, void *memory)
{
    nest w = {.a = a, .memory = memory, .element = oly_dtype_size(a->dtype)};
    return move_box(&w, box, held);
}

oly_status oly_file_write_box(const oly_file_array *a, const oly_box *box, const oly_box *held, const void *memory)
{
    nest w = {.a = a, .writes = true, .memory = (char *)(uintptr_t)memory, .element = oly_dtype_size(a->dtype)};
    return move_box(&w, box, held);
}

/* -- streams ---------------------------------------------------------------------------------------------------------------- */

void oly_file_scatter(const oly_file_array *a, int64_t first, int64_t n, void *elements, const oly_box *held,
                      void *memory)
{
    int64_t in_file[OLY_MAX_RANK + 1], in_memory[OLY_MAX_RANK + 1], bytes = (int64_t)oly_dtype_size(a->dtype);
    int fastest = a->fortran ? 0 : a->rank - 1;
    fix(a, n, elements);
    if (a->rank == 0) {
        memcpy(memory, elements, (size_t)(n * bytes));
        return;
    }
    strides(a, held, in_file, in_memory);
    for (int64_t at = first; at < first + n;) { /* one line of the file after the other */
        int64_t begin = at % a->shape[fastest], end = oly_smaller(a->shape[fastest], begin + first + n - at), to = 0;
        int64_t lo = oly_larger(begin, held->lo[fastest]), hi = oly_smaller(end, held->hi[fastest]);
        for (int d = 0; d < a->rank && lo < hi; d++) {
            int64_t index = d == fastest ? lo : at / in_file[d] % a->shape[d];
            if (index < held->lo[d] || index >= held->hi[d])
                hi = lo;
            to += (index - held->lo[d]) * in_memory[d];
        }
        if (lo < hi)
            copy_line((size_t)bytes, hi - lo, (char *)memory + to * bytes, in_memory[fastest],
                      (char *)elements + (at - first + lo - begin) * bytes, 1);
        at += end - begin;
    }
}
