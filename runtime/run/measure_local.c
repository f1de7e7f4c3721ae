/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures reductions, matrix products, the operations of kernels/local.h and stencils, as measure_kernels.c does elementwise operations.
 * The units are those in which forecast.c counts work. See kernel_rates.h. */
#include "run/kernel_rates.h"
#include "run/measured_units.h"
#include "run/narrow_product.h"
#include "gemm_bfloat.h"
#include <string.h>

enum { FLOATING = 1 << OLY_FLOAT32 | 1 << OLY_FLOAT64, COMPLEX = 1 << OLY_COMPLEX64 | 1 << OLY_COMPLEX128 };

/* Operands at places of their own; the third is small. */
typedef struct places {
    char *in[3], *out, *scratch;
} places;

static places places_in(char *memory)
{
    enum { PLACE = 4 << 20 };
    places p = {{memory, memory + PLACE, memory + 2 * PLACE}, memory + 3 * PLACE + 320, memory + 4 * PLACE};
    return p;
}

static bool is_complex(int dtype)
{
    return COMPLEX >> dtype & 1;
}

/* -- reductions ----------------------------------------------------------------------------------------------------------- */

typedef struct reducing {
    oly_reduce_task task;
    places at;
} reducing;

static void reduce(const void *context)
{
    const reducing *r = context;
    int chunks = oly_reduce_chunks(&r->task);
    for (int c = 0; c < chunks; c++)
        oly_reduce_run(&r->task, r->at.in[0], r->at.out, r->at.scratch, c, chunks);
    if (oly_reduce_scratch(&r->task))
        oly_reduce_finish(&r->task, r->at.out, r->at.scratch);
}

static double seconds_of_reduction(const places *p, int combiner, int dtype, int64_t rows, int64_t columns, int reduced)
{
    reducing r = {.task = {.combiner = (oly_combiner)combiner,
                           .dtype = (oly_dtype)dtype,
                           .rank = 2,
                           .extent = {rows, columns},
                           .stride = {columns, 1}},
                  .at = *p};
    r.task.reduced[reduced] = true;
    return oly_measured_seconds(reduce, &r) / (double)(rows * columns);
}

typedef struct summing {
    oly_dtype dtype;
    places at;
} summing;

static void combine(const void *context)
{
    const summing *s = context;
    const int count = 2;
    const void *sources[] = {s->at.in[0], s->at.in[1]};
    oly_combine(OLY_COMBINE_SUM, s->dtype, false, 1, &count, sources, s->at.out, 0, 2048);
}

static void measure_reductions(oly_kernel_rates *r, const places *p)
{
    enum { SHORT = 8 };
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++) {
        bool whole = dtype <= OLY_UINT64;
        for (int c = 0; c < OLY_N_COMBINERS; c++) {
            if ((c == OLY_COMBINE_AND || c == OLY_COMBINE_OR) && !whole)
                continue;
            double lines = seconds_of_reduction(p, c, dtype, 8, 1024, 1);
            double few = seconds_of_reduction(p, c, dtype, 1024, SHORT, 1);
            r->reduce[c][dtype][OLY_ALONG] = lines;
            r->reduce[c][dtype][OLY_ACROSS] = seconds_of_reduction(p, c, dtype, 64, 128, 0);
            r->reduce_line[c][dtype] = few > lines ? (few - lines) * SHORT : 0;
        }
        summing s = {(oly_dtype)dtype, *p};
        r->combine[dtype] = oly_measured_seconds(combine, &s) / (2 * 2048);
    }
}

/* -- matrix products ------------------------------------------------------------------------------------------------------ */

typedef struct product {
    oly_gemm_task task;
    places at;
} product;

static void multiply(const void *context)
{
    const product *g = context;
    int chunks = oly_gemm_chunks(&g->task);
    for (int c = 0; c < chunks; c++)
        (g->task.dtype == OLY_BFLOAT16 && g->task.k >= OLY_BFLOAT_TERMS && oly_has_bfloat_products()
             ? oly_gemm_bfloat_run
             : oly_gemm_run)(&g->task, g->at.in[0], g->at.in[1], g->at.out, c, chunks);
}

static void measure_products(oly_kernel_rates *r, const places *p)
{
    static const int64_t sizes[OLY_N_PRODUCT_CLASSES][3] = {
        [OLY_PRODUCT_VECTOR] = {1, 512, 512}, [OLY_PRODUCT_NARROW] = {8, 512, 512}, [OLY_PRODUCT_OUTER] = {256, 256, 8},
        [OLY_PRODUCT_TINY] = {8, 8, 8},       [OLY_PRODUCT_SMALL] = {24, 24, 24},   [OLY_PRODUCT_MIDDLE] = {64, 64, 64},
        [OLY_PRODUCT_LARGE] = {256, 256, 256}};
    for (int dtype = OLY_INT8; dtype < OLY_N_DTYPES; dtype++)
        for (int k = 0; k < OLY_N_PRODUCT_CLASSES; k++) {
            int64_t m = sizes[k][0], n = sizes[k][1], terms = sizes[k][2], batch = k == OLY_PRODUCT_TINY ? 64 : 1;
            product g = {.task = {.dtype = (oly_dtype)dtype,
                                  .batch = batch,
                                  .m = m,
                                  .n = n,
                                  .k = terms,
                                  .a_batch = m * terms,
                                  .b_batch = terms * n,
                                  .c_batch = m * n,
                                  .a_row = terms,
                                  .a_column = 1,
                                  .b_row = n,
                                  .b_column = 1,
                                  .c_row = n},
                         .at = *p};
            bool library = FLOATING >> dtype & 1 || is_complex(dtype);
            r->gemm[dtype][k] = k == OLY_PRODUCT_LARGE && !library
                                    ? r->gemm[dtype][OLY_PRODUCT_MIDDLE] /* the same kernel, and it takes long */
                                    : oly_measured_seconds(multiply, &g) / (double)(batch * m * n * terms);
        }
}

/* -- local operations ------------------------------------------------------------------------------------------------------ */

typedef struct local {
    oly_local_task task;
    oly_local_operand in[3];
    oly_sliding_window window;
    places at;
} local;

static void run_local(const void *context)
{
    const local *l = context;
    const void *in[] = {l->at.in[0], l->at.in[1], l->at.in[2]};
    for (int phase = 0, n = oly_local_phases(&l->task); phase < n; phase++)
        for (int c = 0, chunks = oly_local_chunks(&l->task, phase); c < chunks; c++)
            oly_local_run(&l->task, in, l->at.out, l->at.scratch, phase, c, chunks);
}

static oly_local_operand dense(int dtype, int rank, int64_t a, int64_t b)
{
    oly_local_operand x = {.dtype = (oly_dtype)dtype, .rank = rank, .size = {a, b}, .extent = {a, b}, .stride = {b, 1}};
    if (rank == 1)
        x.stride[0] = 1;
    return x;
}

/* Makes the task of an operation on lines, or on single elements and rows; false: none for this type. */
static bool make_local(local *l, oly_local_op op, int dtype, int direction)
{
    enum { LONG = 512, LINES = 16, TABLE = 4096, ROWS = 256, ROW = 32, LARGEST = 8 };
    bool along = direction == OLY_ALONG, truth = dtype == OLY_BOOL;
    oly_local_way way = oly_local_way_of(op);
    l->task =
        (oly_local_task){.op = op, .n_in = 1, .in = l->in, .dimension = along, .n_axes = 1, .mode = OLY_INDEX_CLIP};
    l->in[0] = along ? dense(dtype, 2, LINES, LONG) : dense(dtype, 2, LONG, LINES);
    l->task.out = l->in[0];
    if (op == OLY_LOCAL_PICK || way == OLY_LOCAL_ARRANGES || way == OLY_LOCAL_CUTS || op == OLY_LOCAL_DYNAMIC_UPDATE ||
        op >= OLY_LOCAL_CONVOLVE)
        return false;
    switch (op) {
    case OLY_LOCAL_SORT: return true;
    case OLY_LOCAL_ARGSORT: l->task.out.dtype = OLY_INT32; return true;
    case OLY_LOCAL_TOP_K:
        l->task.out = along ? dense(OLY_INT32, 2, LINES, LARGEST) : dense(OLY_INT32, 2, LARGEST, LINES);
        return !is_complex(dtype) && !truth;
    case OLY_LOCAL_CUMSUM:
    case OLY_LOCAL_CUMPROD: return !truth;
    case OLY_LOCAL_CUMMAX:
    case OLY_LOCAL_CUMMIN: return !is_complex(dtype) && !truth;
    case OLY_LOCAL_CUMLOGSUMEXP: return dtype >= OLY_FLOAT8_E4M3FN && !is_complex(dtype);
    case OLY_LOCAL_ARGMAX:
    case OLY_LOCAL_ARGMIN:
        l->task.axes[0] = along;
        l->task.out = dense(OLY_INT32, 1, LINES, 1);
        return !is_complex(dtype) && !truth;
    case OLY_LOCAL_SEARCHSORTED:
        l->task.n_in = 2;
        l->task.n_axes = 0;
        l->task.dimension = 0;
        l->in[0] = dense(dtype, 1, TABLE, 1);
        l->in[1] = dense(dtype, 1, TABLE, 1);
        l->task.out = dense(OLY_INT32, 1, TABLE, 1);
        return along && !is_complex(dtype) && !truth;
    case OLY_LOCAL_GATHER:
        l->task.n_in = 2;
        l->in[0] = along ? dense(dtype, 1, TABLE, 1) : dense(dtype, 2, ROWS, ROW);
        l->in[1] = dense(OLY_INT32, 1, along ? TABLE : ROWS, 1);
        l->task.out = l->in[0];
        return true;
    default: /* scatters */
        l->task.n_in = 3;
        l->in[0] = along ? dense(dtype, 1, TABLE, 1) : dense(dtype, 2, ROWS, ROW);
        l->in[1] = dense(OLY_INT32, 1, along ? TABLE : ROWS, 1);
        l->in[2] = l->task.out = l->in[0];
        l->at.out = l->at.in[0];
        return op == OLY_LOCAL_SCATTER ||
               (!truth && !(is_complex(dtype) && (op == OLY_LOCAL_SCATTER_MIN || op == OLY_LOCAL_SCATTER_MAX)));
    }
}

/* Indexes below n in random order. */
static void draw_indexes(char *to, int64_t count, int64_t n)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        ((int32_t *)(void *)to)[i] = (int32_t)((uint64_t)state * (uint64_t)n >> 32);
    }
}

/* Elements in random order: between a half and two, or small integers. */
static void draw_elements(char *to, int dtype, int64_t n)
{
    enum { SOME = 512 };
    uint32_t state = 54321;
    double values[SOME];
    for (int64_t done = 0, some; done < n; done += some) {
        some = n - done < SOME ? n - done : SOME;
        for (int64_t i = 0; i < some; i++) {
            state = state * 1664525 + 1013904223;
            values[i] = dtype == OLY_BOOL     ? state >> 31
                        : dtype <= OLY_UINT64 ? state >> 25
                                              : 0.5 + (state >> 9) * 0x1p-23;
        }
        oly_write_numbers(to + done * (int64_t)oly_dtype_size((oly_dtype)dtype), (oly_dtype)dtype, values, some);
    }
}

static void measure_local(oly_kernel_rates *r, const places *p)
{
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++) {
        draw_elements(p->in[0], dtype, 8192);
        for (int op = 0; op < OLY_N_LOCAL_OPS; op++)
            for (int direction = 0; direction < OLY_N_DIRECTIONS; direction++) {
                local l = {.at = *p};
                if (!make_local(&l, (oly_local_op)op, dtype, direction))
                    continue;
                if (op == OLY_LOCAL_SEARCHSORTED)
                    draw_elements(p->in[1], dtype, 8192);
                else
                    draw_indexes(p->in[1], 4096, l.in[0].extent[0]);
                r->local[op][dtype][direction] = oly_measured_seconds(run_local, &l) / oly_local_units(&l.task);
            }
    }
}

/* -- random access --------------------------------------------------------------------------------------------------------- */

/* Tables of growing size, of which as many elements are read, or added to, in random order. */
static void measure_far(oly_kernel_rates *r, char *memory, const places *p)
{
    enum { COUNT = 1 << 16 };
    for (int set = 0; set < OLY_RATE_SETS; set++) {
        int64_t n = ((int64_t)OLY_RATE_FIRST_SET << set) / 4;
        char *table = memory + OLY_RATE_MEMORY / 3;
        draw_indexes(p->in[1], COUNT, n);
        local l = {.at = *p};
        make_local(&l, OLY_LOCAL_GATHER, OLY_FLOAT32, OLY_ALONG);
        l.at.in[0] = table;
        l.in[0] = dense(OLY_FLOAT32, 1, n, 1);
        l.in[1] = dense(OLY_INT32, 1, COUNT, 1);
        l.task.out = dense(OLY_FLOAT32, 1, COUNT, 1);
        r->far_gather[set] = oly_measured_seconds(run_local, &l) / COUNT;
        make_local(&l, OLY_LOCAL_SCATTER_ADD, OLY_FLOAT32, OLY_ALONG);
        l.at.out = l.at.in[0] = table;
        l.in[0] = l.task.out = dense(OLY_FLOAT32, 1, n, 1);
        l.in[1] = dense(OLY_INT32, 1, COUNT, 1);
        l.in[2] = dense(OLY_FLOAT32, 1, COUNT, 1);
        r->far_scatter[set] = oly_measured_seconds(run_local, &l) / COUNT;
    }
}

/* -- windows and convolutions ----------------------------------------------------------------------------------------------- */

static void shape(oly_local_operand *x, int dtype, int rank, const int64_t *extent)
{
    int64_t stride = 1;
    *x = (oly_local_operand){.dtype = (oly_dtype)dtype, .rank = rank};
    for (int d = rank - 1; d >= 0; d--) {
        x->size[d] = x->extent[d] = extent[d];
        x->stride[d] = stride;
        stride *= extent[d];
    }
}

/* A plane with several features, or with one in each group. Types with kernels of OpenBLAS: as large as theirs. */
static void measure_windows(oly_kernel_rates *r, const places *p)
{
    enum { MOST = 32, SIDE = 48, TAPS = 3 };
    for (int dtype = OLY_INT8; dtype < OLY_N_DTYPES; dtype++) {
        draw_elements(p->in[0], dtype, MOST * (SIDE + 2) * (SIDE + 2));
        draw_elements(p->in[1], dtype, MOST * MOST * TAPS * TAPS);
        for (int op = OLY_LOCAL_CONVOLVE; op < OLY_N_LOCAL_OPS; op++)
            for (int direction = 0; direction < OLY_N_DIRECTIONS; direction++) {
                bool convolves = op == OLY_LOCAL_CONVOLVE, alone = direction == OLY_ACROSS;
                int lead = convolves ? 2 : 1;
                int64_t many = FLOATING >> dtype & 1 ? MOST : 8, groups = convolves && alone ? many : 1;
                int64_t in[] = {1, many, SIDE + 2, SIDE + 2}, kernel[] = {many, many / groups, TAPS, TAPS},
                        out[] = {1, many, SIDE, SIDE};
                local l = {.at = *p};
                if ((!convolves && alone) ||
                    (is_complex(dtype) && (op == OLY_LOCAL_WINDOW_MAX || op == OLY_LOCAL_WINDOW_MIN)))
                    continue;
                l.window = (oly_sliding_window){.rank = 2,
                                                .size = {TAPS, TAPS},
                                                .stride = {1, 1},
                                                .base_dilation = {1, 1},
                                                .dilation = {1, 1},
                                                .groups = groups,
                                                .batch_groups = 1};
                shape(&l.in[0], dtype, lead + 2, convolves ? in : in + 1);
                shape(&l.in[1], dtype, lead + 2, kernel);
                l.task = (oly_local_task){
                    .op = (oly_local_op)op, .n_in = convolves ? 2 : 1, .in = l.in, .window = &l.window};
                shape(&l.task.out, dtype, lead + 2, convolves ? out : out + 1);
                r->local[op][dtype][direction] = oly_measured_seconds(run_local, &l) / oly_local_units(&l.task);
            }
    }
}

/* -- stencils -------------------------------------------------------------------------------------------------------------- */

typedef struct sweep {
    oly_stencil stencil;
    oly_stencil_field field;
    int steps;
    char *from, *to, *scratch;
} sweep;

static void run_sweep(const void *context)
{
    const sweep *s = context;
    for (int c = 0, n = oly_stencil_chunks(&s->stencil, &s->field, s->steps); c < n; c++)
        oly_stencil_run(&s->stencil, &s->field, s->steps, s->from, s->to, s->scratch, c, n);
}

/* All points within `reach` in each dimension, or along the axes only; one dimension: within reach. */
static void make_taps(oly_stencil *s, int rank, bool whole)
{
    int reach = rank == 1 && whole ? 2 : 1, n = 1;
    for (int d = 0; d < rank; d++)
        n *= 2 * reach + 1;
    for (int k = 0; k < n; k++) {
        int offset[3] = {0}, far = 0;
        for (int d = rank - 1, rest = k; d >= 0; d--, rest /= 2 * reach + 1) {
            offset[d] = rest % (2 * reach + 1) - reach;
            far += offset[d] != 0;
        }
        if (far > 1 && !whole)
            continue;
        memcpy(s->offset[s->n_taps], offset, sizeof offset);
        s->coefficient[s->n_taps++] = 0.01 * (k + 1);
    }
    for (int d = 0; d < rank; d++)
        s->radius[d] = reach;
}

/* Seconds for a point and step, and for a point of a pass: of passes of many steps and of few. */
static double seconds_of_point(char *memory, int rank, bool wide, bool whole, int *taps, double *of_pass)
{
    static const int64_t sides[3][3] = {
        {1 << 18}, {512, 1024}, {64, 64, 320}}; /* with rows as long as those of tiles */
    sweep s = {.stencil = {.dtype = wide ? OLY_FLOAT64 : OLY_FLOAT32, .rank = rank}};
    make_taps(&s.stencil, rank, whole);
    const int64_t *side = sides[rank - 1];
    int64_t points = 1;
    int most = oly_stencil_steps(&s.stencil, side), few = most > 4 ? most / 4 : 1;
    double seconds[2];
    for (int d = rank - 1; d >= 0; d--) {
        int64_t margin = (int64_t)most * s.stencil.radius[d];
        s.field.extent[d] = side[d] + 2 * margin;
        s.field.stride[d] = s.field.destination_stride[d] = points;
        s.field.write_lo[d] = margin;
        s.field.write_hi[d] = margin + side[d];
        s.field.fixed_lo[d] = -2 * margin;
        s.field.fixed_hi[d] = side[d] + 4 * margin;
        points *= s.field.extent[d];
    }
    s.from = memory;
    s.to = memory + OLY_RATE_MEMORY / 3;
    s.scratch = memory + OLY_RATE_MEMORY / 3 * 2;
    *taps = s.stencil.n_taps;
    double work[2], own = oly_box_elements(rank, side);
    for (int k = 0; k < 2; k++) {
        s.steps = k ? most : few;
        seconds[k] = oly_measured_seconds(run_sweep, &s);
        work[k] = oly_stencil_divide(&s.stencil, &s.field, s.steps, 0).points;
    }
    double point = (seconds[1] - seconds[0]) / (work[1] - work[0]), rest = seconds[0] - point * work[0];
    bool grows = point > 0 && rest > 0; /* else the whole time is that of the steps */
    *of_pass = grows ? rest / own : 0;
    return grows ? point : seconds[1] / work[1];
}

static void measure_stencils(oly_kernel_rates *r, char *memory)
{
    for (int wide = 0; wide < 2; wide++)
        for (int rank = 1; rank <= 3; rank++) {
            int few, many;
            double ignored, *pass = &r->stencil_pass[wide][rank - 1];
            double a = seconds_of_point(memory, rank, wide, false, &few, pass);
            double b = seconds_of_point(memory, rank, wide, true, &many, &ignored);
            double tap = b > a ? (b - a) / (many - few) : 0;
            r->stencil_tap[wide][rank - 1] = tap;
            r->stencil_point[wide][rank - 1] = a - few * tap;
        }
}

/* -- all ------------------------------------------------------------------------------------------------------------------- */

void oly_measure_local(oly_kernel_rates *r, char *memory)
{
    places p = places_in(memory);
    memset(memory, 0, OLY_RATE_MEMORY);
    measure_stencils(r, memory);
    measure_reductions(r, &p);
    measure_products(r, &p);
    measure_local(r, &p);
    measure_windows(r, &p);
    measure_far(r, memory, &p);
}
