/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures elementwise operations, interpreted and in machine code, and copies: the kernels are called as runs call them. A rate is the
 * least of several short runs, so that other processes disturb it little. See kernel_rates.h. */
#include "run/kernel_rates.h"
#include "core/timeline.h"
#include "device/workers.h"
#include "machine_code.h"
#include "run/compiled_groups.h"
#include "run/measured_units.h"
#include <string.h>
#include <time.h>

enum {
    LINE = 2048, /* elements of a box: operands and result fit L1 */
    SHORT = 64,  /* beside which a line shows what an element costs */
    CHAIN = 10,  /* instructions of a group, beside one of BASE: what an instruction costs in machine code */
    BASE = 2,
    REPEATS = 5,
    TRUTHS = 4, /* places of operands, beside those of the first three and of the result */
    ONES = 5,
    APART = LINE * 16 + 64 * 5 /* bytes from one operand to the next: not at the same place of a page */
};
#define LEAST_SECONDS 6e-6 /* of a timing */
#define MOST_SECONDS  6e-3 /* of all runs of what takes long */

/* -- timing ----------------------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double oly_measured_seconds(void (*body)(const void *context), const void *context)
{
    double begin = now();
    body(context);
    double best = now() - begin;
    begin = now();
    body(context); /* the first one read its operands into the cache */
    double again = now() - begin;
    best = again < best ? again : best;
    int times = best < LEAST_SECONDS ? (int)(LEAST_SECONDS / (best + 1e-9)) + 1 : 1;
    double first = now();
    for (int k = 0; k < REPEATS && now() - first < MOST_SECONDS; k++) {
        begin = now();
        for (int j = 0; j < times; j++)
            body(context);
        double took = (now() - begin) / times;
        best = took < best ? took : best;
    }
    return best;
}

/* -- which operations there are ----------------------------------------------------------------------------------------- */

/* Sets of element types, by the names of elementwise.def. */
enum {
    OLY_BOOLS = 1 << OLY_BOOL,
    OLY_INTEGERS = 1 << OLY_INT8 | 1 << OLY_INT16 | 1 << OLY_INT32 | 1 << OLY_INT64 | 1 << OLY_UINT8 | 1 << OLY_UINT16 |
                   1 << OLY_UINT32 | 1 << OLY_UINT64,
    WIDE_FLOATS = 1 << OLY_FLOAT32 | 1 << OLY_FLOAT64,
    OLY_FLOATS = WIDE_FLOATS | 1 << OLY_FLOAT16 | 1 << OLY_BFLOAT16 | 1 << OLY_FLOAT8_E4M3FN | 1 << OLY_FLOAT8_E5M2,
    OLY_EVERY_FLOAT = OLY_FLOATS,
    OLY_COMPLEX = 1 << OLY_COMPLEX64 | 1 << OLY_COMPLEX128,
    OLY_NUMBERS = OLY_INTEGERS | OLY_FLOATS,
    OLY_ANY = OLY_NUMBERS | OLY_BOOLS,
    OLY_ALL_NUMBERS = OLY_NUMBERS | OLY_COMPLEX,
    OLY_ALL = OLY_ANY | OLY_COMPLEX,
    OLY_INEXACT = OLY_FLOATS | OLY_COMPLEX,
    OLY_BITS = OLY_BOOLS | OLY_INTEGERS,
};
typedef enum result_kind { SAME, PART, TRUTH, JOINED } result_kind;
typedef struct op_row {
    int types;
    uint8_t operands, result;
} op_row;

static const op_row table[OLY_N_TILE_OPS] = {
#define OLY_TILE_UNARY(name, types, ...)      [OLY_TILE_##name] = {types, 1, SAME},
#define OLY_TILE_PART(name, types, ...)       [OLY_TILE_##name] = {types, 1, PART},
#define OLY_TILE_TEST(name, types, ...)       [OLY_TILE_##name] = {types, 1, TRUTH},
#define OLY_TILE_BINARY(name, types, ...)     [OLY_TILE_##name] = {types, 2, SAME},
#define OLY_TILE_FAR_BINARY(name, types, ...) [OLY_TILE_##name] = {types, 2, SAME},
#define OLY_TILE_COMPARE(name, types, ...)    [OLY_TILE_##name] = {types, 2, TRUTH},
#define OLY_TILE_JOIN(name, types, ...)       [OLY_TILE_##name] = {(types)&WIDE_FLOATS, 2, JOINED},
#include "elementwise.def"
#include "elementwise_math.def"
    [OLY_TILE_select] = {OLY_ALL, 3, SAME},
    [OLY_TILE_copy] = {OLY_ALL, 1, SAME},
    [OLY_TILE_fma] = {WIDE_FLOATS, 3, SAME},
    [OLY_TILE_threefry2x32] = {1 << OLY_UINT64, 2, SAME},
    [OLY_TILE_random_bits] = {1 << OLY_UINT64, 2, SAME},
};

bool oly_tile_op_takes(oly_tile_op op, oly_dtype dtype, oly_dtype *to, int *n_operands)
{
    const op_row *r = &table[op];
    *n_operands = r->operands;
    *to = r->result == TRUTH                             ? OLY_BOOL
          : r->result == JOINED                          ? dtype == OLY_FLOAT32 ? OLY_COMPLEX64 : OLY_COMPLEX128
          : r->result == PART && dtype == OLY_COMPLEX64  ? OLY_FLOAT32
          : r->result == PART && dtype == OLY_COMPLEX128 ? OLY_FLOAT64
          : op == OLY_TILE_random_bits                   ? OLY_UINT32
                                                         : dtype;
    return r->types >> dtype & 1;
}

/* -- elementwise operations ------------------------------------------------------------------------------------------------ */

/* A program of one instruction, or of several each of which reads the result of the one before, on a line. */
typedef struct line {
    oly_tile_instruction instruction[CHAIN];
    oly_tile_program program;
    oly_tile_box box;
    oly_tile_operand loads[3], store;
    int16_t load_register[3], store_register;
    uint8_t load_dtype[3], store_dtype;
    bool machine;
} line;

static void run_line(const void *context)
{
    const line *l = context;
    (l->machine ? oly_group_run : oly_tile_run)(&l->program, &l->box, l->loads, &l->store, 0, 1);
}

void oly_write_numbers(char *to, oly_dtype dtype, const double *from, int64_t n)
{
    oly_tile_instruction c = {
        .op = OLY_TILE_convert, .dtype = OLY_FLOAT64, .to = (uint8_t)dtype, .in = {0, -1, -1}, .out = 1};
    const int16_t in = 0, out = 1;
    const uint8_t from_dtype = OLY_FLOAT64, to_dtype = (uint8_t)dtype;
    oly_tile_program p = {1, &c, 1, 1, &in, &from_dtype, &out, &to_dtype, 2};
    oly_tile_box box = {.rank = 1, .extent = {n}, .whole = {n}};
    oly_tile_operand load = {(char *)(uintptr_t)from, {1}}, store = {to, {1}};
    oly_tile_run(&p, &box, &load, &store, 0, 1);
}

/* Values of every type that no operation finds special: between a half and two, small integers. */
static void fill(char *memory, oly_dtype dtype)
{
    static const double some[] = {0.75, 1.25, 0.5, 1.5, 1.75, 0.625, 1.125, 0.875};
    bool whole = OLY_INTEGERS >> dtype & 1;
    double values[LINE];
    for (int i = 0; i < LINE; i++)
        values[i] = whole ? 1 + i % 7 : some[i % 8];
    for (int k = 0; k < 3; k++)
        oly_write_numbers(memory + k * APART, dtype, values, LINE);
    for (int i = 0; i < LINE; i++) /* exponents: their bits decide what a power of integers takes */
        values[i] = (double)(1u << i % 31);
    if (whole)
        oly_write_numbers(memory + APART, dtype, values, LINE);
    for (int i = 0; i < LINE; i++) /* what a chain of squares or products leaves as it is */
        values[i] = 1;
    oly_write_numbers(memory + ONES * APART, dtype, values, LINE);
}

static void make_line(line *l, char *memory, oly_tile_op op, oly_dtype dtype, oly_dtype to, int operands, int n)
{
    *l = (line){.box = {.rank = 1, .extent = {LINE}, .whole = {LINE}}};
    for (int k = 0; k < operands; k++) {
        l->load_register[k] = (int16_t)k;
        l->load_dtype[k] = op == OLY_TILE_select && k == 0 ? OLY_BOOL : (uint8_t)dtype;
        l->loads[k] = (oly_tile_operand){memory + (op == OLY_TILE_select && k == 0 ? TRUTHS : k) * APART, {1}};
    }
    int chained = op == OLY_TILE_select ? 1 : 0;
    for (int i = 0; i < n; i++) {
        oly_tile_instruction *c = &l->instruction[i];
        *c = (oly_tile_instruction){.op = (uint16_t)op, .dtype = (uint8_t)dtype, .to = (uint8_t)to, .in = {-1, -1, -1}};
        for (int k = 0; k < operands; k++)
            c->in[k] = (int16_t)k;
        if (i > 0)
            c->in[chained] = (int16_t)(3 + i - 1);
        c->out = (int16_t)(3 + i);
    }
    l->store_register = (int16_t)(3 + n - 1);
    l->store_dtype = (uint8_t)to;
    l->store = (oly_tile_operand){memory + 3 * APART, {1}};
    l->program = (oly_tile_program){
        n, l->instruction, operands, 1, l->load_register, l->load_dtype, &l->store_register, &l->store_dtype, 3 + n};
}

/* Seconds for an element of a whole line, without what the call takes. */
static double seconds_of_element(line *l)
{
    l->box.extent[0] = LINE;
    double all = oly_measured_seconds(run_line, l);
    l->box.extent[0] = SHORT;
    double few = oly_measured_seconds(run_line, l);
    return all > few ? (all - few) / (LINE - SHORT) : all / LINE;
}

/* 0: the generator leaves the operation to the interpreter. */
static double seconds_in_group(char *memory, oly_tile_op op, oly_dtype dtype, int operands)
{
    static line l;
    double seconds[2];
    for (int k = 0; k < 2; k++) {
        make_line(&l, memory, op, dtype, dtype, operands, k ? CHAIN : BASE);
        l.machine = true;
        l.loads[op == OLY_TILE_select].base = memory + ONES * APART;
        int64_t before = oly_group_counted().compiled;
        run_line(&l);
        if (oly_group_counted().compiled == before)
            return 0;
        seconds[k] = oly_measured_seconds(run_line, &l);
    }
    double of_one = (seconds[1] - seconds[0]) / ((CHAIN - BASE) * LINE);
    return of_one > 1e-13 ? of_one : 1e-13;
}

static void measure_op(oly_kernel_rates *r, char *memory, oly_tile_op op, oly_dtype dtype)
{
    static line l;
    oly_dtype to;
    int operands;
    if (!oly_tile_op_takes(op, dtype, &to, &operands))
        return;
    make_line(&l, memory, op, dtype, to, operands, 1);
    r->tile[op][dtype] = seconds_of_element(&l);
    if (to == dtype && oly_code_available())
        r->group[op][dtype] = seconds_in_group(memory, op, dtype, operands);
}

static void measure_conversions(oly_kernel_rates *r, char *memory, oly_dtype from)
{
    static line l;
    for (int to = 0; to < OLY_N_DTYPES; to++) {
        make_line(&l, memory, OLY_TILE_convert, from, (oly_dtype)to, 1, 1);
        r->convert[from][to] = seconds_of_element(&l);
    }
}

/* Operations without operands. */
static void measure_makers(oly_kernel_rates *r, char *memory, oly_dtype dtype)
{
    static line l;
    for (int k = 0; k < 2; k++) {
        oly_tile_op op = k ? OLY_TILE_splat : OLY_TILE_iota;
        if (op == OLY_TILE_iota && dtype == OLY_BOOL)
            continue;
        make_line(&l, memory, op, dtype, dtype, 0, 1);
        r->tile[op][dtype] = seconds_of_element(&l);
    }
}

/* Seconds for a row of a box whose rows are apart, beyond what its elements take. */
static double seconds_of_row(line *l, int64_t length, double element)
{
    int64_t rows = LINE / length / 2;
    l->box = (oly_tile_box){.rank = 2, .extent = {rows, length}, .whole = {rows, length}};
    for (int k = 0; k < 2; k++) {
        l->loads[k].stride[0] = length + 8;
        l->loads[k].stride[1] = 1;
    }
    l->store.stride[0] = length + 8;
    l->store.stride[1] = 1;
    double all = oly_measured_seconds(run_line, l) - element * (double)(rows * length);
    return all > 0 ? all / (double)rows : 0;
}

static void run_cold(const void *context)
{
    const line *l = context;
    const volatile char *memory = l->loads[2].base;
    int sum = 0;
    for (int i = 0; i < 1 << 17; i += 64)
        sum += memory[i];
    if (l->program.n_instructions && sum < 1 << 30)
        run_line(l);
}

static void read_clock(const void *context)
{
    (void)context;
    oly_ticks();
}

/* A timed step reads the clock, and notes a span for about as long. */
static void measure_calls(oly_kernel_rates *r, char *memory)
{
    enum { LONG_ROW = 128, SHORT_ROW = 8, CLOCKS = 4 };
    static line l;
    fill(memory, OLY_FLOAT32);
    make_line(&l, memory, OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, 2, BASE);
    l.box.extent[0] = 16;
    r->box = oly_measured_seconds(run_line, &l);
    l.loads[2].base = memory + (1 << 20);
    r->step = 1;
    for (int k = 0; k < REPEATS; k++) { /* a small difference of long times */
        l.program.n_instructions = BASE;
        double cold = oly_measured_seconds(run_cold, &l);
        l.program.n_instructions = 0;
        cold -= oly_measured_seconds(run_cold, &l);
        r->step = cold < r->step ? cold : r->step;
    }
    l.program.n_instructions = BASE;
    r->step = (r->step > r->box ? r->step : r->box) + CLOCKS * oly_measured_seconds(read_clock, NULL);
    r->row = seconds_of_row(&l, LONG_ROW, BASE * r->tile[OLY_TILE_add][OLY_FLOAT32]) / BASE;
    r->block_row = seconds_of_row(&l, SHORT_ROW, BASE * r->tile[OLY_TILE_add][OLY_FLOAT32]) / 3;
    l.machine = true;
    r->group_row = seconds_of_row(&l, LONG_ROW, BASE * r->group[OLY_TILE_add][OLY_FLOAT32]);
    make_line(&l, memory, OLY_TILE_add, OLY_FLOAT32, OLY_FLOAT32, 2, BASE);
    l.box.extent[0] = 16;
    l.machine = true;
    r->group_box = oly_measured_seconds(run_line, &l);
}

/* -- copies ----------------------------------------------------------------------------------------------------------------- */

typedef struct copying {
    oly_copy_task task;
    char *to;
    const char *from;
    int chunks;
} copying;

static void copy_chunk(void *context, int i)
{
    const copying *c = context;
    oly_copy_run(&c->task, c->to, c->from, i, c->chunks);
}

static void copy_alone(const void *context)
{
    const copying *c = context;
    for (int i = 0; i < c->chunks; i++)
        oly_copy_run(&c->task, c->to, c->from, i, c->chunks);
}

static void copy_together(const void *context)
{
    oly_parallel(((const copying *)context)->chunks, copy_chunk, (void *)(uintptr_t)context);
}

typedef struct reading {
    oly_reduce_task task;
    const char *from;
    char *scratch, *out;
    int chunks;
} reading;

static void read_chunk(void *context, int i)
{
    const reading *c = context;
    oly_reduce_run(&c->task, c->from, c->out, c->scratch, i, c->chunks);
}

static void read_alone(const void *context)
{
    const reading *c = context;
    for (int i = 0; i < c->chunks; i++)
        read_chunk((void *)(uintptr_t)context, i);
}

static void read_together(const void *context)
{
    oly_parallel(((const reading *)context)->chunks, read_chunk, (void *)(uintptr_t)context);
}

/* Bytes of the working set are read, written, or half of them copied to the others. */
static void measure_stream(oly_kernel_rates *r, char *memory, int set)
{
    int64_t bytes = (int64_t)OLY_RATE_FIRST_SET << set;
    char *small = memory + OLY_RATE_MEMORY - (1 << 16);
    copying copy = {
        .task = {.element_bytes = 8, .rank = 1, .extent = {bytes / 16}, .to_stride = {1}, .from_stride = {1}}};
    copying write = {.task = {.element_bytes = 8, .rank = 1, .extent = {bytes / 8}, .to_stride = {1}}, .from = small};
    reading read = {.task = {.combiner = OLY_COMBINE_MAX,
                             .dtype = OLY_INT64,
                             .rank = 1,
                             .extent = {bytes / 8},
                             .stride = {1},
                             .reduced = {true}},
                    .from = memory,
                    .out = small,
                    .scratch = small + 64};
    copy.to = memory + bytes / 2;
    copy.from = write.to = memory;
    copy.chunks = oly_copy_chunks(&copy.task);
    write.chunks = oly_copy_chunks(&write.task);
    read.chunks = oly_reduce_chunks(&read.task);
    for (int all = 0; all < 2 && (!all || oly_workers_count() > 1); all++) {
        r->stream[all][OLY_STREAM_WRITE][set] =
            oly_measured_seconds(all ? copy_together : copy_alone, &write) / (double)bytes;
        r->stream[all][OLY_STREAM_COPY][set] =
            oly_measured_seconds(all ? copy_together : copy_alone, &copy) / (double)bytes;
        r->stream[all][OLY_STREAM_READ][set] =
            oly_measured_seconds(all ? read_together : read_alone, &read) / (double)bytes;
    }
    for (int k = 0; k < OLY_N_STREAMS && oly_workers_count() == 1; k++)
        r->stream[1][k][set] = r->stream[0][k][set];
}

/* A sum of a matrix and a transposed one, beyond what it takes with neither transposed. */
static void measure_transposed_loads(oly_kernel_rates *r, char *memory)
{
    static const oly_dtype of[] = {OLY_UINT8, OLY_UINT16, OLY_FLOAT32, OLY_FLOAT64, OLY_COMPLEX128};
    static line l;
    for (int k = 0; k < 5; k++)
        for (int far = 0; far < 2; far++) {
            /* rows far apart, on pages of their own */
            int64_t side = !far ? 64 : k < 4 ? 4096 : 2048, rows = far ? 512 : 64;
            double seconds[2];
            make_line(&l, memory, OLY_TILE_add, of[k], of[k], 2, 1);
            l.box = (oly_tile_box){.rank = 2, .extent = {rows, side}, .whole = {rows, side}};
            l.loads[1].base = memory + OLY_RATE_MEMORY / 3;
            l.store.base = memory + OLY_RATE_MEMORY / 3 * 2;
            l.loads[1].stride[0] = l.store.stride[0] = side;
            for (int transposed = 0; transposed < 2; transposed++) {
                l.loads[0].stride[0] = transposed ? 1 : side;
                l.loads[0].stride[1] = transposed ? side : 1;
                seconds[transposed] = oly_measured_seconds(run_line, &l) / (double)(rows * side);
            }
            r->transposed_load[1 << k][far] = seconds[1] > seconds[0] ? seconds[1] - seconds[0] : 0;
        }
}

/* Short rows, elements far apart, and matrices transposed, in cache and beyond. */
static void measure_spread(oly_kernel_rates *r, char *memory)
{
    char *to = memory + OLY_RATE_MEMORY / 2;
    for (int bytes = 1; bytes <= 16; bytes *= 2)
        for (int far = 0; far < 2; far++) {
            int64_t side = far ? (bytes > 8 ? 1024 : 2048) : 64; /* what fits half of the memory */
            copying c = {.task = {.element_bytes = (size_t)bytes,
                                  .rank = 2,
                                  .extent = {side, side},
                                  .to_stride = {side, 1},
                                  .from_stride = {1, side}},
                         .from = memory,
                         .to = to};
            c.chunks = oly_copy_chunks(&c.task);
            r->transpose[bytes][far] = oly_measured_seconds(copy_alone, &c) / (double)(side * side);
            if (far)
                continue;
            c.task.extent[0] = 1;
            c.task.extent[1] = 4096;
            c.chunks = 1;
            for (int writes = 0; writes < 2; writes++) {
                c.task.from_stride[1] = writes ? 1 : 3;
                c.task.to_stride[1] = writes ? 3 : 1;
                r->copy_spread[bytes][writes] = oly_measured_seconds(copy_alone, &c) / 4096;
            }
        }
    copying c = {
        .task = {.element_bytes = 4, .rank = 2, .extent = {1024, 8}, .to_stride = {8, 1}, .from_stride = {12, 1}},
        .from = memory,
        .to = to,
        .chunks = 1};
    r->copy_row = oly_measured_seconds(copy_alone, &c) / 1024;
}

static void nothing(void *context, int i)
{
    (void)context;
    (void)i;
}

static void share_nothing(const void *context)
{
    oly_parallel(*(const int *)context, nothing, NULL);
}

/* -- all -------------------------------------------------------------------------------------------------------------------- */

void oly_measure_kernels(oly_kernel_rates *r, char *memory)
{
    int64_t compile_after = oly_group_compile_after(0);
    int shares = 2 * oly_workers_count();
    memset(memory + TRUTHS * APART, 1, APART); /* bools for select */
    for (int set = OLY_RATE_SETS - 1; set >= 0; set--)
        measure_stream(r, memory, set);
    memset(memory, 0, 8 * APART);
    measure_spread(r, memory);
    measure_transposed_loads(r, memory);
    for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++) {
        fill(memory, (oly_dtype)dtype);
        memset(memory + TRUTHS * APART, 1, APART);
        for (int op = 0; op < OLY_N_TILE_OPS; op++)
            measure_op(r, memory, (oly_tile_op)op, (oly_dtype)dtype);
        measure_conversions(r, memory, (oly_dtype)dtype);
        measure_makers(r, memory, (oly_dtype)dtype);
    }
    measure_calls(r, memory);
    r->share = oly_measured_seconds(share_nothing, &shares);
    oly_group_forget();
    oly_group_compile_after(compile_after);
}
