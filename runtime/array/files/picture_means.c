/* SPDX-License-Identifier: BSD-3-Clause */
/* Averaging matrices on their shards. See picture_means.h.
 *
 *   every device takes the rows of its shard that are its own among the devices with the same shard, and adds its elements
 *   up block by block; blocks that cross the edge of a shard get a term from either side
 *
 *      device      0               1               2               3
 *      blocks      [0,3)x[0,2)     [0,3)x[1,4)     [2,5)x[0,2)     [2,5)x[1,4)
 *
 *   the sums go to the device that draws, as an array with one row for each device, and are added there in the order of
 *   the devices
 */
#include "array/files/picture_means.h"
#include "array/unanimous.h"
#include "core/element.h"
#include "core/min_max.h"
#include "run/execute.h"
#include <math.h>
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

/* What one device averages: rows and columns of the matrix, and the blocks that they meet. */
typedef struct part {
    int device, position;
    int64_t begin[2], end[2];
    int64_t first[2], blocks[2];
} part;

typedef struct averaging {
    oly_array x;
    const oly_frame *f;
    int n, here;    /* parts, in ascending order of devices; those of this process, which follow each other */
    int first_here; /* the first of them */
    part *parts;    /* owned */
    int64_t width;  /* numbers that a device sends: its sums, the smallest and the largest finite element */
    double *sums;   /* owned; [here][width] */
} averaging;

/* -- who averages what ---------------------------------------------------------------------------------- */

static int by_box(const void *a, const void *b)
{
    const part *p = a, *q = b;
    for (int d = 0; d < 2; d++) {
        if (p->begin[d] != q->begin[d])
            return p->begin[d] < q->begin[d] ? -1 : 1;
        if (p->end[d] != q->end[d])
            return p->end[d] < q->end[d] ? -1 : 1;
    }
    return p->position - q->position;
}

static int by_device(const void *a, const void *b)
{
    return ((const part *)a)->device - ((const part *)b)->device;
}

static bool same_box(const part *p, const part *q)
{
    return memcmp(p->begin, q->begin, sizeof p->begin) == 0 && memcmp(p->end, q->end, sizeof p->end) == 0;
}

/* Devices with the same shard share its rows among them. */
static void share_rows(part *parts, int n)
{
    for (int from = 0, to; from < n; from = to) {
        part whole = parts[from];
        for (to = from + 1; to < n && same_box(&parts[to], &whole); to++)
            ;
        int64_t rows = whole.end[0] - whole.begin[0], sharers = to - from;
        for (int k = from; k < to; k++) {
            parts[k].begin[0] = whole.begin[0] + rows * (k - from) / sharers;
            parts[k].end[0] = whole.begin[0] + rows * (k - from + 1) / sharers;
        }
    }
}

static void find_blocks(part *p, const oly_frame *f)
{
    const int64_t side[] = {f->height, f->width}, blocks[] = {f->rows, f->columns};
    for (int d = 0; d < 2; d++)
        if (p->end[d] > p->begin[d]) {
            p->first[d] = oly_frame_block_of(p->begin[d], side[d], blocks[d]);
            p->blocks[d] = oly_frame_block_of(p->end[d] - 1, side[d], blocks[d]) + 1 - p->first[d];
        }
}

static void count_parts(averaging *a)
{
    oly_mesh mesh = a->x->sharding->mesh;
    for (int k = 0; k < a->n; k++) {
        part *p = &a->parts[k];
        find_blocks(p, a->f);
        a->width = oly_larger(a->width, p->blocks[0] * p->blocks[1] + 2);
        bool mine = mesh->everywhere || oly_mesh_process_of(p->device) == oly_process_index();
        if (mine && a->here++ == 0)
            a->first_here = k;
    }
}

static oly_status divide(averaging *a)
{
    oly_mesh mesh = a->x->sharding->mesh;
    a->n = mesh->n_devices;
    a->parts = oly_calloc((size_t)a->n, sizeof *a->parts);
    if (!a->parts)
        return oly_out_of_memory((size_t)a->n * sizeof *a->parts, "averaging a picture");
    oly_layout l = oly_layout_canonical(a->x->sharding, 2, a->x->type.shape);
    for (int p = 0; p < a->n; p++) {
        oly_box b = oly_layout_box(&l, p);
        a->parts[p] = (part){.device = mesh->everywhere ? p : oly_mesh_device_id(mesh, p), .position = p};
        memcpy(a->parts[p].begin, b.lo, sizeof a->parts[p].begin);
        memcpy(a->parts[p].end, b.hi, sizeof a->parts[p].end);
    }
    qsort(a->parts, (size_t)a->n, sizeof *a->parts, by_box);
    share_rows(a->parts, a->n);
    qsort(a->parts, (size_t)a->n, sizeof *a->parts, by_device);
    count_parts(a);
    return OLY_OK;
}

/* -- one device ----------------------------------------------------------------------------------------- */

enum { AT_ONCE = 1024 };

#define CONVERT(type)                                                                                                  \
    for (int64_t k = 0; k < n; k++)                                                                                    \
    to[k] = (double)((const type *)from)[k]
static void to_double(oly_dtype dtype, const char *from, int64_t n, double *to)
{
    switch (dtype) {
    case OLY_FLOAT32: CONVERT(float); break;
    case OLY_FLOAT64: CONVERT(double); break;
    default:
        for (int64_t k = 0; k < n; k++)
            to[k] = oly_real_at(dtype, from + (size_t)k * oly_dtype_size(dtype));
    }
}

static void add_range(const double *value, int64_t n, double *low, double *high)
{
    for (int64_t k = 0; k < n; k++)
        if (isfinite(value[k])) {
            *low = value[k] < *low ? value[k] : *low;
            *high = value[k] > *high ? value[k] : *high;
        }
}

/* Adds n elements of a row, which begin in that column, to the sums of the row's blocks. */
static void add_elements(const averaging *a, const part *p, const double *value, int64_t column, int64_t n,
                         double *sums)
{
    for (int64_t done = 0; done < n;) {
        int64_t block = oly_frame_block_of(column + done, a->f->width, a->f->columns);
        int64_t end = oly_smaller(n, oly_frame_block_begin(block + 1, a->f->width, a->f->columns) - column);
        double sum = 0;
        for (; done < end; done++)
            sum += value[done];
        sums[block - p->first[1]] += sum;
    }
}

/* shard: the elements of the box, of which the part has some rows. */
static void average(const averaging *a, const part *p, const char *shard, const oly_box *box, double *out)
{
    oly_dtype dtype = a->x->type.dtype;
    double value[AT_ONCE], *low = &out[a->width - 2], *high = &out[a->width - 1];
    for (int64_t row = p->begin[0]; row < p->end[0]; row++) {
        int64_t block = oly_frame_block_of(row, a->f->height, a->f->rows) - p->first[0];
        const char *from = shard + (size_t)((row - box->lo[0]) * (box->hi[1] - box->lo[1])) * oly_dtype_size(dtype);
        for (int64_t column = p->begin[1], n; column < p->end[1]; column += n) {
            n = oly_smaller(AT_ONCE, p->end[1] - column);
            to_double(dtype, from, n, value);
            add_range(value, n, low, high);
            add_elements(a, p, value, column, n, out + block * p->blocks[1]);
            from += (size_t)n * oly_dtype_size(dtype);
        }
    }
}

static oly_status average_here(averaging *a)
{
    OLY_TRY(oly_run_refused());
    size_t bytes = (size_t)a->here * (size_t)a->width * sizeof(double);
    a->sums = oly_calloc((size_t)a->here * (size_t)a->width + 1, sizeof(double));
    if (!a->sums)
        return oly_out_of_memory(bytes, "averaging a picture");
    for (int k = 0; k < a->here; k++) {
        a->sums[(k + 1) * a->width - 2] = INFINITY;
        a->sums[(k + 1) * a->width - 1] = -INFINITY;
    }
    for (int s = 0; s < a->x->n_shards; s++) {
        int position, k = a->first_here;
        oly_box box = oly_array_box(a->x, s, &position);
        while (a->parts[k].position != position)
            k++;
        size_t shard_bytes = (size_t)oly_box_count(&box) * oly_dtype_size(a->x->type.dtype);
        void *host;
        OLY_TRY(oly_buffer_map(a->x->shard[s], OLY_ACCESS_READ, shard_bytes, &host));
        average(a, &a->parts[k], host, &box, a->sums + (k - a->first_here) * a->width);
        OLY_TRY(oly_buffer_unmap(a->x->shard[s], OLY_ACCESS_READ, shard_bytes, host));
    }
    return OLY_OK;
}

/* -- all devices ---------------------------------------------------------------------------------------- */

/* The first device of the parts that the process has. */
static oly_device device_at(const averaging *a, int root)
{
    int k = 0;
    while (oly_mesh_process_of(a->parts[k].device) != root)
        k++;
    return oly_get_device(a->parts[k].device);
}

/* The sums as an array with a row for each device, in ascending order. */
static oly_array rows_of_sums(const averaging *a)
{
    int *devices = oly_malloc(sizeof *devices * (size_t)a->n);
    int64_t all[] = {a->n, a->width}, mine[] = {a->here, a->width};
    if (!devices)
        return NULL;
    for (int k = 0; k < a->n; k++)
        devices[k] = a->parts[k].device;
    oly_mesh line = (oly_mesh_from_devices)(1, (const char *[]){"device"}, &a->n, devices);
    oly_release(devices);
    return line ? (oly_from_local)((oly_named)(line, "device"), OLY_FLOAT64, 2, all, a->sums, mine) : NULL;
}

/* Replaces the root's sums by those of all devices. */
static oly_status collect(averaging *a, int root)
{
    oly_scope_open();
    oly_array rows = rows_of_sums(a), there = NULL;
    oly_status st = rows ? OLY_OK : oly_kept_status();
    if (rows)
        there = (oly_device_put)(rows, (oly_single_device)(device_at(a, root)));
    if (rows && !there)
        st = oly_kept_status();
    if (there && oly_process_index() == root) {
        oly_release(a->sums);
        size_t bytes = (size_t)a->n * (size_t)a->width * sizeof(double);
        a->sums = oly_malloc(bytes);
        st = a->sums ? oly_array_fetch(there, a->sums) : oly_out_of_memory(bytes, "a picture");
    }
    oly_scope_close();
    return st;
}

static void add_part(const averaging *a, const part *p, const double *sums, oly_picture_means *means)
{
    for (int64_t i = 0; i < p->blocks[0]; i++)
        for (int64_t j = 0; j < p->blocks[1]; j++)
            means->mean[(p->first[0] + i) * a->f->columns + p->first[1] + j] += sums[i * p->blocks[1] + j];
    means->low = fmin(means->low, sums[a->width - 2]);
    means->high = fmax(means->high, sums[a->width - 1]);
}

static int64_t block_side(int64_t block, int64_t n, int64_t blocks)
{
    return oly_frame_block_begin(block + 1, n, blocks) - oly_frame_block_begin(block, n, blocks);
}

static int by_position(const void *a, const void *b)
{
    return ((const part *const *)a)[0]->position - ((const part *const *)b)[0]->position;
}

/* On the root. */
static oly_status add_up(const averaging *a, oly_picture_means *means)
{
    const oly_frame *f = a->f;
    size_t bytes = (size_t)(f->rows * f->columns) * sizeof(double);
    const part **order = oly_malloc((size_t)a->n * sizeof *order);
    means->mean = oly_calloc((size_t)(f->rows * f->columns), sizeof(double));
    if (!order || !means->mean) {
        oly_release(order);
        return oly_out_of_memory(bytes, "a picture");
    }
    for (int k = 0; k < a->n; k++)
        order[k] = &a->parts[k];
    qsort(order, (size_t)a->n, sizeof *order, by_position);
    means->low = INFINITY;
    means->high = -INFINITY;
    for (int k = 0; k < a->n; k++)
        add_part(a, order[k], a->sums + (order[k] - a->parts) * a->width, means);
    oly_release(order);
    for (int64_t i = 0; i < f->rows; i++)
        for (int64_t j = 0; j < f->columns; j++)
            means->mean[i * f->columns + j] /=
                (double)(block_side(i, f->height, f->rows) * block_side(j, f->width, f->columns));
    return OLY_OK;
}

oly_status oly_picture_means_of(oly_array x, const oly_frame *f, oly_mesh agreeing, int root, oly_picture_means *means)
{
    averaging a = {.x = x, .f = f};
    *means = (oly_picture_means){0};
    oly_array_wait(x);
    oly_status st = divide(&a);
    if (st == OLY_OK)
        st = average_here(&a);
    st = oly_unanimous(agreeing, st);
    if (st == OLY_OK && a.here < a.n)
        st = collect(&a, root);
    if (st == OLY_OK && oly_process_index() == root)
        st = add_up(&a, means);
    oly_release(a.parts);
    oly_release(a.sums);
    return st;
}
