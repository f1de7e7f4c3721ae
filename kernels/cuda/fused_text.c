/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of fused kernels: see fused_text.h. A thread computes `width` elements: adjacent ones, loaded and stored at once, where
 * operands are dense and aligned, also over the ends of rows where results have no gaps; of transposed operands, elements that are adjacent in these;
 * else elements that are a block's threads apart, so that the threads of a warp read adjacent ones. All loads of a thread precede its stores. The formulas are those of the
 * interpreter (element.h), so both give the same bits. */
#include "cuda/fused_text.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/text.h"
#include "cuda/launching.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 8, SPREAD_WIDTH = 4, MOST_WORK = 600, SECTOR = 32, WARP = 32 };

typedef enum spacing {
    SCALAR,
    DENSE,
    ROW,
    ANY,
    ACROSS,
    FLAT
} spacing; /* one element for all; adjacent in the last dimension; constant there; any; adjacent in another dimension; in all, without gaps */

/* What the text depends on beside the program: all of it is part of the key. */
typedef struct form {
    uint8_t rank, width;
    bool adjacent; /* the elements of a thread, in the last dimension */
    int8_t across; /* the dimension in which they are adjacent if not in the last; else -1 */
    bool flat;     /* or in all dimensions together */
    bool small;    /* numbers of elements and offsets fit 31 bits */
    uint8_t spacing[OLY_CUDA_OPERANDS];
} form;

typedef struct writer {
    oly_text text;
    const oly_cuda_group *g;
    form form;
} writer;

static const char *const type_names[OLY_N_DTYPES] = {
    "oly_b8",  "int8_t",  "int16_t",  "int32_t",  "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
    "uint8_t", "uint8_t", "uint16_t", "uint16_t", "float",   "double",  "oly_c64",  "oly_c128"};
static const char *const suffixes[OLY_N_DTYPES] = {"b8",   "i8",  "i16", "i32",       "i64",     "u8",
                                                   "u16",  "u32", "u64", "f8_e4m3fn", "f8_e5m2", "f16",
                                                   "bf16", "f32", "f64", "c64",       "c128"};
static const char *const operations[OLY_N_TILE_OPS] = {
#define ROW_NAME(name, ...)            [OLY_TILE_##name] = #name,
#define OLY_TILE_UNARY(name, ...)      ROW_NAME(name)
#define OLY_TILE_PART(name, ...)       ROW_NAME(name)
#define OLY_TILE_TEST(name, ...)       ROW_NAME(name)
#define OLY_TILE_BINARY(name, ...)     ROW_NAME(name)
#define OLY_TILE_FAR_BINARY(name, ...) ROW_NAME(name)
#define OLY_TILE_COMPARE(name, ...)    ROW_NAME(name)
#define OLY_TILE_JOIN(name, ...)       ROW_NAME(name)
#include "elementwise.def"
#include "elementwise_math.def"
};

/* -- spacing -------------------------------------------------------------------------------------------------------------- */

static const int64_t *strides_of(const oly_cuda_group *g, int k)
{
    return g->stride + k * OLY_MAX_RANK;
}

static spacing spacing_of(const oly_cuda_group *g, int k)
{
    const int64_t *stride = strides_of(g, k);
    int64_t any = 0, last = stride[g->rank - 1];
    for (int d = 0; d < g->rank; d++)
        any |= stride[d];
    return any == 0 ? SCALAR : last == 1 ? DENSE : last == 0 ? ROW : ANY;
}

static uint8_t dtype_of(const oly_cuda_group *g, int k)
{
    const oly_tile_program *p = g->program;
    return k < p->n_loads ? p->load_dtype[k] : p->store_dtype[k - p->n_loads];
}

/* Can `width` adjacent elements of each dense operand be loaded at once? */
static bool is_aligned(const oly_cuda_group *g, const form *f, int width)
{
    int n = g->program->n_loads + g->program->n_stores;
    if (g->rank > 1 && g->extent[g->rank - 1] % width != 0)
        return false;
    for (int k = 0; k < n; k++) {
        size_t unit = oly_dtype_size(dtype_of(g, k)) * (size_t)width;
        if (f->spacing[k] != DENSE && k >= g->program->n_loads)
            return false;
        if (f->spacing[k] != DENSE)
            continue;
        if ((uintptr_t)g->base[k] % unit != 0)
            return false;
        for (int d = 0; d < g->rank - 1; d++)
            if (strides_of(g, k)[d] % width != 0)
                return false;
    }
    return true;
}

static bool is_narrow(uint8_t dtype)
{
    return oly_is_narrow((oly_dtype)dtype);
}

/* Roughly, the instructions for an element. */
int oly_cuda_work_of(const oly_tile_program *p)
{
    int work = 0;
    for (int i = 0; i < p->n_instructions; i++) {
        bool complex = p->instructions[i].dtype >= OLY_COMPLEX64;
        int to = p->instructions[i].to,
            rounds = to == OLY_FLOAT16 || to == OLY_BFLOAT16 ? 3 : 10 * is_narrow((uint8_t)to);
        int op = p->instructions[i].op;
        bool function = (op >= OLY_TILE_MATH && op < OLY_TILE_select) || op == OLY_TILE_exp || op == OLY_TILE_log ||
                        op == OLY_TILE_sin || op == OLY_TILE_cos || op == OLY_TILE_tanh || op == OLY_TILE_sigmoid ||
                        op == OLY_TILE_pow || op == OLY_TILE_threefry2x32 || op == OLY_TILE_random_bits;
        work += (function ? 60 : 1 + rounds) * (complex ? 6 : 1);
    }
    return work;
}

/* Can the dense elements of dimension d be loaded, `width` at once? */
static bool lies_across(const oly_cuda_group *g, int k, int d, int width)
{
    const int64_t *stride = strides_of(g, k);
    for (int other = 0; other < g->rank; other++)
        if (other != d && stride[other] % width != 0)
            return false;
    return stride[d] == 1 && (uintptr_t)g->base[k] % (oly_dtype_size(dtype_of(g, k)) * (size_t)width) == 0;
}

/* Of a transposed operand a thread reads what lies together: elements of another dimension than the last, in which neighbouring threads
 * still have neighbouring elements. Every sector that is read is used. */
static void choose_across(const oly_cuda_group *g, form *f, int work)
{
    for (int k = 0; k < g->program->n_loads && f->across < 0; k++) {
        int width = SECTOR / (int)oly_dtype_size(dtype_of(g, k));
        width = width > MOST_WIDTH ? MOST_WIDTH : width;
        for (int d = 0; d < g->rank - 1 && width > 1 && width * work <= MOST_WORK; d++)
            if (f->spacing[k] == ANY && g->extent[d] % width == 0 && g->extent[g->rank - 1] >= WARP &&
                lies_across(g, k, d, width)) {
                f->across = (int8_t)d;
                f->width = (uint8_t)width;
                break;
            }
    }
    for (int k = 0; k < g->program->n_loads && f->across >= 0; k++)
        if (f->spacing[k] == ANY && lies_across(g, k, f->across, f->width))
            f->spacing[k] = ACROSS;
}

/* Short rows, such as those of a softmax over ten classes: a thread's elements follow each other in memory, over the ends of rows, and only
 * operands that are the same along rows are read one by one. Not with others, such as shifted views of a padded array: neighbouring threads would
 * read elements that are apart. */
static bool follows(const oly_cuda_group *g, int k, int width)
{
    int64_t step = 1;
    for (int d = g->rank - 1; d >= 0; step *= g->extent[d--])
        if (strides_of(g, k)[d] != step)
            return false;
    return (uintptr_t)g->base[k] % (oly_dtype_size(dtype_of(g, k)) * (size_t)width) == 0;
}
static void choose_flat(const oly_cuda_group *g, form *f, int width)
{
    int loads = g->program->n_loads, stores = g->program->n_stores, n = 0;
    for (int k = loads; k < loads + stores; k++)
        n += follows(g, k, width);
    f->flat = width > 1 && stores > 0 && n == stores;
    for (int k = 0; f->flat && k < loads; k++)
        f->flat = f->spacing[k] == SCALAR || f->spacing[k] == ROW || follows(g, k, width);
    for (int k = 0; f->flat && k < loads + stores; k++)
        if (follows(g, k, width))
            f->spacing[k] = FLAT;
    f->width = f->flat ? (uint8_t)width : f->width;
}

/* 16 bytes of the largest dense operand, less for long programs, whose text would take long to compile. */
static void choose_form(const oly_cuda_group *g, form *f)
{
    int n = g->program->n_loads + g->program->n_stores, largest = 2, work = oly_cuda_work_of(g->program);
    f->rank = (uint8_t)g->rank;
    f->small = g->n < 1 << 30;
    for (int k = 0; k < g->n_operands; k++) {
        int64_t reach = 0;
        f->spacing[k] = k < n ? (uint8_t)spacing_of(g, k) : ANY;
        for (int d = 0; d < g->rank; d++)
            reach += llabs(strides_of(g, k)[d]) * (g->extent[d] - 1);
        f->small = f->small && (k >= n || reach < INT32_MAX);
        if (f->spacing[k] == DENSE && (int)oly_dtype_size(dtype_of(g, k)) > largest)
            largest = (int)oly_dtype_size(dtype_of(g, k));
    }
    int width = 16 / largest < MOST_WIDTH ? 16 / largest : MOST_WIDTH;
    while (width > 1 && width * work > MOST_WORK)
        width /= 2;
    const int vector = width;
    f->adjacent = is_aligned(g, f, width);
    while (!f->adjacent && width < SPREAD_WIDTH && 2 * width * work <= MOST_WORK)
        width *= 2;
    f->width = (uint8_t)(!f->adjacent && width > SPREAD_WIDTH ? SPREAD_WIDTH : width);
    f->across = -1;
    choose_across(g, f, work);
    f->adjacent = f->adjacent && f->across < 0;
    if (!f->adjacent && f->across < 0)
        choose_flat(g, f, vector);
}

/* -- the task: all fields have 8 bytes --------------------------------------------------------------------------------------- */

typedef struct fields {
    unsigned char *at;
    size_t used;
    bool failed;
} fields;

static void add_field(fields *f, uint64_t value)
{
    if (f->used + sizeof value > OLY_CUDA_TASK_BYTES) {
        f->failed = true;
        return;
    }
    memcpy(f->at + f->used, &value, sizeof value);
    f->used += sizeof value;
}

static int n_memory(const oly_cuda_group *g)
{
    return g->program->n_loads + g->program->n_stores;
}

uint64_t oly_cuda_divisor(int64_t d)
{
    uint64_t shift = 0;
    if (d <= 0 || d > INT32_MAX)
        return 0;
    while ((int64_t)1 << shift < d)
        shift++;
    uint64_t multiplier = ((((uint64_t)1 << shift) - (uint64_t)d) << 32) / (uint64_t)d + 1;
    return shift << 32 | (multiplier & UINT32_MAX);
}

/* Threads along dimension d. */
static int64_t threads_along(const oly_cuda_group *g, const form *chosen, int d)
{
    return d == chosen->across ? g->extent[d] / chosen->width : g->extent[d];
}

/* In the order of write_task. */
static void fill_task(const oly_cuda_group *g, const form *chosen, fields *f)
{
    const oly_tile_program *p = g->program;
    add_field(f, (uint64_t)g->n);
    for (int d = 0; d < g->rank; d++)
        add_field(f, (uint64_t)threads_along(g, chosen, d));
    for (int d = 0; d < g->rank; d++)
        add_field(f, oly_cuda_divisor(threads_along(g, chosen, d)));
    for (int k = 0; k < n_memory(g); k++)
        add_field(f, (uint64_t)(uintptr_t)g->base[k]);
    for (int k = 0; k < g->n_operands; k++)
        for (int d = 0; d < g->rank; d++)
            add_field(f, (uint64_t)strides_of(g, k)[d]);
    for (int i = 0, iota = 0; i < p->n_instructions; i++) {
        uint64_t value[2] = {0};
        if (p->instructions[i].op == OLY_TILE_iota)
            add_field(f, (uint64_t)g->origin[iota++]);
        if (p->instructions[i].op != OLY_TILE_splat)
            continue;
        memcpy(value, &p->instructions[i].value, oly_dtype_size((oly_dtype)p->instructions[i].to));
        add_field(f, value[0]);
        add_field(f, value[1]);
    }
}

static void write_task(writer *w)
{
    const oly_cuda_group *g = w->g;
    const oly_tile_program *p = g->program;
    oly_text_add(&w->text,
                 "struct group_task {\n    int64_t n, extent[%d];\n    uint64_t divisor[%d];\n    char *base[%d];\n"
                 "    int64_t stride[%d][%d];\n",
                 g->rank, g->rank, n_memory(g) > 0 ? n_memory(g) : 1, g->n_operands > 0 ? g->n_operands : 1, g->rank);
    for (int i = 0, iota = 0, splat = 0; i < p->n_instructions; i++)
        if (p->instructions[i].op == OLY_TILE_iota)
            oly_text_add(&w->text, "    int64_t origin%d;\n", iota++);
        else if (p->instructions[i].op == OLY_TILE_splat)
            oly_text_add(&w->text, "    uint64_t value%d[2];\n", splat++);
    oly_text_add(&w->text, "};\n");
}

/* -- the body ------------------------------------------------------------------------------------------------------------------ */

/* The offset of operand k's element: "(oly_int)task.stride[k][0] * at0[q] + ...". Adjacent elements share the place of the first. */
static void write_offset(writer *w, int k, const char *q)
{
    const oly_cuda_group *g = w->g;
    bool any = false, iota = k >= n_memory(g);
    for (int d = 0; d < g->rank; d++) {
        bool last = d == g->rank - 1;
        if (w->form.spacing[k] == SCALAR || (last && w->form.spacing[k] == ROW))
            continue;
        if (last && w->form.spacing[k] == DENSE)
            oly_text_add(&w->text, "%sat%d[%s]", any ? " + " : "", d, q);
        else
            oly_text_add(&w->text, "%s(%s)task.stride[%d][%d] * at%d[%s]", any ? " + " : "",
                         iota ? "int64_t" : "oly_int", k, d, d, q);
        any = true;
    }
    if (!any)
        oly_text_add(&w->text, "0");
}

static void write_indexes(writer *w)
{
    const oly_cuda_group *g = w->g;
    for (int d = 0; d < g->rank; d++)
        oly_text_add(&w->text, "    oly_int at%d[Q];\n", d);
    oly_text_add(&w->text,
                 "    OLY_UNROLL\n    for (int q = 0; q < Q; q++) {\n        oly_int rest = first + q * %d;\n",
                 w->form.across >= 0 ? 0
                 : w->form.flat      ? 1
                                     : OLY_CUDA_THREADS);
    for (int d = g->rank - 1; d > 0; d--)
        oly_text_add(&w->text,
                     "        const oly_int next%d = quotient(rest, task.extent[%d], task.divisor[%d]);\n"
                     "        at%d[q] = rest - next%d * (oly_int)task.extent[%d];\n        rest = next%d;\n",
                     d, d, d, d, d, d, d);
    oly_text_add(&w->text, "        at0[q] = rest;\n");
    if (w->form.across >= 0)
        oly_text_add(&w->text, "        at%d[q] = at%d[q] * Q + q;\n", w->form.across, w->form.across);
    oly_text_add(&w->text, "    }\n");
}

static void write_loads(writer *w)
{
    const oly_tile_program *p = w->g->program;
    for (int k = 0; k < p->n_loads; k++) {
        const char *type = type_names[p->load_dtype[k]];
        spacing s = w->form.spacing[k];
        if (s == SCALAR || (s == ROW && w->form.adjacent)) {
            oly_text_add(&w->text, "    const %s l%d = ((const %s *)task.base[%d])[", type, k, type, k);
            write_offset(w, k, "0");
            oly_text_add(&w->text, "];\n");
        } else if (s == FLAT) {
            oly_text_add(
                &w->text,
                "    const oly_row<%s, L> l%d = *(const oly_row<%s, L> *)((const %s *)task.base[%d] + first);\n", type,
                k, type, type, k);
        } else if ((s == DENSE && w->form.adjacent) || s == ACROSS) {
            oly_text_add(&w->text,
                         "    const oly_row<%s, L> l%d = *(const oly_row<%s, L> *)((const %s *)task.base[%d] + (", type,
                         k, type, type, k);
            write_offset(w, k, "0");
            oly_text_add(&w->text, "));\n");
        } else {
            oly_text_add(&w->text,
                         "    oly_row<%s, L> l%d;\n    OLY_UNROLL\n    for (int j = 0; j < L; j++)\n"
                         "        l%d.at[j] = ((const %s *)task.base[%d])[",
                         type, k, k, type, k);
            write_offset(w, k, w->form.adjacent ? "0" : "j");
            if (w->form.adjacent)
                oly_text_add(&w->text, " + j * (oly_int)task.stride[%d][%d]", k, w->g->rank - 1);
            oly_text_add(&w->text, "];\n");
        }
    }
    for (int k = 0; k < p->n_stores; k++)
        oly_text_add(&w->text, "    oly_row<%s, L> o%d;\n", type_names[p->store_dtype[k]], k);
}

/* Sums and products, rounded to the type of their operands: the bits of a NaN among these do not matter (element.h). */
static bool forgets_nan(const oly_tile_instruction *c)
{
    return is_narrow(c->dtype) && c->to == c->dtype &&
           (c->op == OLY_TILE_add || c->op == OLY_TILE_sub || c->op == OLY_TILE_mul);
}

/* Register r as an operand of formula c. */
static void write_operand(oly_text *text, int r, const oly_tile_instruction *c)
{
    if (is_narrow(c->dtype))
        oly_text_add(text, "oly_widened%s(OLY_T_%s, r%d)", forgets_nan(c) ? "_number" : "", suffixes[c->dtype], r);
    else
        oly_text_add(text, "r%d", r);
}

/* passing: only instructions that forget NaNs read the result. */
static void write_formula(oly_text *text, const oly_tile_instruction *c, bool passing)
{
    bool rounds = is_narrow(c->dtype) && c->to == c->dtype, bits = c->op == OLY_TILE_nextafter && is_narrow(c->dtype);
    if (bits) {
        oly_text_add(text, "next_after_%s(r%d, r%d)", suffixes[c->dtype], c->in[0], c->in[1]);
        return;
    }
    if (rounds)
        oly_text_add(text, "(%s)oly_narrowed%s(OLY_T_%s, ", type_names[c->to],
                     passing && forgets_nan(c) ? "_number" : "", suffixes[c->to]);
    const char *name = c->op == OLY_TILE_fma            ? "fma"
                       : c->op == OLY_TILE_threefry2x32 ? "threefry2x32"
                       : c->op == OLY_TILE_random_bits  ? "random_bits"
                                                        : operations[c->op];
    const char *of = c->op == OLY_TILE_threefry2x32 || c->op == OLY_TILE_random_bits
                         ? "u64"
                         : suffixes[is_narrow(c->dtype) ? OLY_FLOAT32 : c->dtype];
    oly_text_add(text, "oly_op_%s_%s(", name, of);
    for (int k = 0; k < 3 && c->in[k] >= 0; k++) {
        oly_text_add(text, k ? ", " : "");
        write_operand(text, c->in[k], c);
    }
    oly_text_add(text, rounds ? "))" : ")");
}

const char *oly_cuda_type_name(int dtype)
{
    return type_names[dtype];
}

static void write_operation(oly_text *text, const oly_tile_instruction *c, bool passing)
{
    const char *to = type_names[c->to];
    if (c->op == OLY_TILE_select)
        oly_text_add(text, "r%d ? r%d : r%d", c->in[0], c->in[1], c->in[2]);
    else if (c->op == OLY_TILE_copy)
        oly_text_add(text, "oly_as<%s>(oly_put(r%d))", to, c->in[0]);
    else if (c->op == OLY_TILE_convert)
        oly_text_add(text, "oly_as<%s>(oly_convert(OLY_T_%s, OLY_T_%s, oly_put(r%d)))", to, suffixes[c->dtype],
                     suffixes[c->to], c->in[0]);
    else
        write_formula(text, c, passing);
}

void oly_cuda_write_operation(oly_text *text, const oly_tile_instruction *c)
{
    write_operation(text, c, false);
}

void oly_cuda_write_number(oly_text *text, int dtype, const char *number)
{
    oly_text_add(text, "oly_as<%s>(oly_convert(OLY_T_i64, OLY_T_%s, oly_put((int64_t)(%s))))", type_names[dtype],
                 suffixes[dtype], number);
}

/* Is the result of instruction i read by instructions that forget NaNs only? */
static bool passes(const oly_tile_program *p, int i)
{
    int16_t r = p->instructions[i].out;
    for (int k = i + 1; k < p->n_instructions; k++) {
        const oly_tile_instruction *c = &p->instructions[k];
        bool reads = c->in[0] == r || c->in[1] == r || c->in[2] == r;
        if (reads && !forgets_nan(c))
            return false;
        if (c->out == r)
            return true;
    }
    for (int s = 0; s < p->n_stores; s++)
        if (p->store_register[s] == r)
            return false;
    return true;
}

static void write_instruction(writer *w, const oly_tile_instruction *c, bool passing, int *iota, int *splat)
{
    const char *to = type_names[c->to];
    const oly_tile_program *p = w->g->program;
    oly_text_add(&w->text, "        r%d = ", c->out);
    if (c->op == OLY_TILE_splat) {
        oly_text_add(&w->text, "oly_as<%s>(oly_words(task.value%d[0], task.value%d[1]))", to, *splat, *splat);
        ++*splat;
    } else if (c->op == OLY_TILE_iota) {
        int k = p->n_loads + p->n_stores + *iota;
        oly_text_add(&w->text, "oly_as<%s>(oly_convert(OLY_T_i64, OLY_T_%s, oly_put((int64_t)(task.origin%d + ", to,
                     suffixes[c->to], *iota);
        write_offset(w, k, w->form.adjacent ? "0" : "j");
        if (w->form.adjacent)
            oly_text_add(&w->text, " + j * task.stride[%d][%d]", k, w->g->rank - 1);
        oly_text_add(&w->text, "))))");
        ++*iota;
    } else {
        write_operation(&w->text, c, passing);
    }
    oly_text_add(&w->text, ";\n");
}

/* Registers are written several times with several types: each instruction declares its own, in a block of its own, so values are
 * named by instruction. */
static void write_body(writer *w)
{
    const oly_tile_program *p = w->g->program;
    int16_t now[OLY_TILE_REGISTERS], iota = 0, splat = 0;
    int next = 0;
    oly_text_add(&w->text, "    OLY_UNROLL\n    for (int j = 0; j < L; j++) {\n");
    for (int k = 0; k < p->n_loads; k++) {
        now[p->load_register[k]] = (int16_t)next;
        oly_text_add(&w->text, "        const %s r%d = ", type_names[p->load_dtype[k]], next++);
        bool one = w->form.spacing[k] == SCALAR || (w->form.spacing[k] == ROW && w->form.adjacent);
        oly_text_add(&w->text, one ? "l%d;\n" : "l%d.at[j];\n", k);
    }
    for (int i = 0; i < p->n_instructions; i++) {
        oly_tile_instruction c = p->instructions[i];
        int of_iota = iota, of_splat = splat;
        for (int k = 0; k < 3; k++)
            if (c.in[k] >= 0)
                c.in[k] = now[c.in[k]];
        now[c.out] = (int16_t)next;
        c.out = (int16_t)next++;
        oly_text_add(&w->text, "        %s r%d;\n", type_names[c.to], c.out);
        write_instruction(w, &c, passes(p, i), &of_iota, &of_splat);
        iota = (int16_t)of_iota;
        splat = (int16_t)of_splat;
    }
    for (int k = 0; k < p->n_stores; k++)
        oly_text_add(&w->text, "        o%d.at[j] = r%d;\n", k, now[p->store_register[k]]);
    oly_text_add(&w->text, "    }\n");
}

static void write_stores(writer *w)
{
    const oly_tile_program *p = w->g->program;
    for (int s = 0; s < p->n_stores; s++) {
        int k = p->n_loads + s;
        const char *type = type_names[p->store_dtype[s]];
        if (w->form.spacing[k] == FLAT) {
            oly_text_add(&w->text, "    *(oly_row<%s, L> *)((%s *)task.base[%d] + first) = o%d;\n", type, type, k, s);
        } else if (w->form.adjacent) {
            oly_text_add(&w->text, "    *(oly_row<%s, L> *)((%s *)task.base[%d] + (", type, type, k);
            write_offset(w, k, "0");
            oly_text_add(&w->text, ")) = o%d;\n", s);
        } else {
            oly_text_add(&w->text, "    OLY_UNROLL\n    for (int j = 0; j < L; j++)\n        ((%s *)task.base[%d])[",
                         type, k);
            write_offset(w, k, "j");
            oly_text_add(&w->text, "] = o%d.at[j];\n", s);
        }
    }
}

static const char prelude[] =
    "#include \"element.h\"\n"
    "template <class T, int L> struct alignas(L == 1 ? (sizeof(T) < 8 ? sizeof(T) : 8) : sizeof(T) * L) oly_row {\n"
    "    T at[L];\n};\n"
    "OLY_DEVICE oly_value oly_words(uint64_t lo, uint64_t hi)\n{\n    oly_value v;\n    v.lo = lo, v.hi = hi;\n"
    "    return v;\n}\n";
static const char small_quotient[] =
    "typedef int32_t oly_int;\n"
    "OLY_DEVICE oly_int quotient(oly_int n, int64_t, uint64_t divisor)\n{\n"
    "    const uint32_t high = (uint32_t)((uint64_t)(uint32_t)n * (uint32_t)divisor >> 32);\n"
    "    return (oly_int)((high + (uint32_t)n) >> (int)(divisor >> 32));\n}\n";
static const char large_quotient[] = "typedef int64_t oly_int;\n"
                                     "OLY_DEVICE oly_int quotient(oly_int n, int64_t extent, uint64_t)\n{\n"
                                     "    return n / extent;\n}\n";
static const char adjacent_kernel[] =
    "    const oly_int rows = (oly_int)task.n / %d, more = (oly_int)task.n - rows * %d, number = "
    "(oly_int)oly_index();\n"
    "    for (oly_int i = number; i < rows; i += (oly_int)oly_stride())\n        group<%d>(task, i * %d);\n"
    "    if (number < more)\n        group<1>(task, rows * %d + number);\n}\n";
static const char spread_kernel[] =
    "    const oly_int n = (oly_int)task.n, step = (oly_int)oly_blocks() * %d;\n"
    "    for (oly_int i = (oly_int)oly_block() * %d + oly_thread(); i < n; i += step) {\n"
    "        if (i + %d < n) {\n            group<%d>(task, i);\n            continue;\n        }\n"
    "        for (oly_int j = i; j < n; j += %d)\n            group<1>(task, j);\n    }\n}\n";

static const char across_kernel[] =
    "    const oly_int n = (oly_int)task.n / %d;\n"
    "    for (oly_int i = (oly_int)oly_index(); i < n; i += (oly_int)oly_stride())\n        group<%d>(task, i);\n}\n";

static void write_kernel(writer *w)
{
    int width = w->form.width, chunk = width * OLY_CUDA_THREADS;
    oly_text_add(&w->text, "%s%s", prelude, w->form.small ? small_quotient : large_quotient);
    write_task(w);
    oly_text_add(
        &w->text,
        "template <int L> OLY_DEVICE void group(const group_task &task, oly_int first)\n{\n    enum { Q = %s };\n",
        w->form.adjacent ? "1" : "L");
    write_indexes(w);
    write_loads(w);
    write_body(w);
    write_stores(w);
    oly_text_add(&w->text, "}\nOLY_KERNEL_BOUNDED(oly_group, group_task, %d, 1)\n{\n", OLY_CUDA_THREADS);
    if (w->form.across >= 0)
        oly_text_add(&w->text, across_kernel, width, width);
    else if (w->form.adjacent || w->form.flat)
        oly_text_add(&w->text, adjacent_kernel, width, width, width, width, width);
    else
        oly_text_add(&w->text, spread_kernel, chunk, chunk, chunk - OLY_CUDA_THREADS, width, OLY_CUDA_THREADS);
}

/* -- keys ------------------------------------------------------------------------------------------------------------------------- */

/* What an instruction contributes to the text. */
typedef struct short_instruction {
    uint16_t op;
    uint8_t dtype, to;
    int16_t in[3], out;
} short_instruction;

static size_t key_size(const oly_tile_program *p)
{
    return sizeof(form) + 3 * sizeof(int32_t) + (size_t)(p->n_loads + p->n_stores) * 3 +
           (size_t)p->n_instructions * sizeof(short_instruction);
}

static char *add_bytes(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

static void write_key(const oly_tile_program *p, const form *f, char *at)
{
    int32_t counts[3] = {p->n_instructions, p->n_loads, p->n_stores};
    at = add_bytes(at, f, sizeof *f);
    at = add_bytes(at, counts, sizeof counts);
    at = add_bytes(at, p->load_register, (size_t)p->n_loads * sizeof *p->load_register);
    at = add_bytes(at, p->load_dtype, (size_t)p->n_loads);
    at = add_bytes(at, p->store_register, (size_t)p->n_stores * sizeof *p->store_register);
    at = add_bytes(at, p->store_dtype, (size_t)p->n_stores);
    for (int i = 0; i < p->n_instructions; i++) {
        const oly_tile_instruction *c = &p->instructions[i];
        short_instruction s = {c->op, c->dtype, c->to, {c->in[0], c->in[1], c->in[2]}, c->out};
        at = add_bytes(at, &s, sizeof s);
    }
}

static char *make_text(const void *of)
{
    writer w = *(const writer *)of;
    write_kernel(&w);
    if (!w.text.failed)
        return w.text.chars;
    oly_text_free(&w.text);
    return NULL;
}

oly_status oly_cuda_fused(const oly_cuda_launcher *l, const oly_cuda_group *g, bool *launched)
{
    oly_cuda_launch launch = {.kernel = "oly_group", .threads = OLY_CUDA_THREADS};
    fields f = {.at = launch.task};
    writer w = {.g = g};
    *launched = false;
    if (g->n_operands > OLY_CUDA_OPERANDS)
        return OLY_OK;
    choose_form(g, &w.form);
    fill_task(g, &w.form, &f);
    if (f.failed)
        return OLY_OK;
    char key[key_size(g->program)];
    write_key(g->program, &w.form, key);
    launch.blocks = oly_cuda_blocks(l, g->n, (int64_t)OLY_CUDA_THREADS * w.form.width);
    launch.task_bytes = f.used;
    oly_cuda_generated generated = {.key = key,
                                    .key_bytes = sizeof key,
                                    .work = (double)g->n *
                                            (g->program->n_instructions > 0 ? g->program->n_instructions : 1),
                                    .text = make_text,
                                    .of = &w};
    return l->generated(l->context, &generated, &launch, launched);
}
