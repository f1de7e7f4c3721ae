/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of fused kernels: see fused_text.h. A thread computes `width` adjacent elements, which it loads and stores at once where
 * operands are dense and aligned. The formulas are those of the interpreter (element.h), so both give the same bits. */
#include "cuda/fused_text.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/text.h"
#include "cuda/launching.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 8, THREADS = 256 };

typedef enum spacing {
    SCALAR,
    DENSE,
    ROW,
    ANY
} spacing; /* one element for all; adjacent in the last dimension; constant there */

typedef struct writer {
    oly_text text;
    const oly_cuda_group *g;
    uint8_t spacing[OLY_CUDA_OPERANDS + OLY_TILE_REGISTERS];
    int width;
    bool vector; /* rows can be read `width` elements at a time: addresses are aligned */
    bool small;  /* numbers of elements fit 32 bits */
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

/* Elements of 16 bytes of the largest dense operand; 1 where some dense operand's rows are not aligned to that. */
static void choose_width(writer *w)
{
    const oly_cuda_group *g = w->g;
    int n = g->program->n_loads + g->program->n_stores, largest = 2;
    for (int k = 0; k < n; k++)
        if (w->spacing[k] == DENSE && (int)oly_dtype_size(dtype_of(g, k)) > largest)
            largest = (int)oly_dtype_size(dtype_of(g, k));
    w->width = 16 / largest < MOST_WIDTH ? 16 / largest : MOST_WIDTH;
    bool aligned = g->extent[g->rank - 1] % w->width == 0 || g->rank == 1;
    for (int k = 0; k < n; k++) {
        size_t unit = oly_dtype_size(dtype_of(g, k)) * (size_t)w->width;
        if (w->spacing[k] == ANY && k >= g->program->n_loads)
            aligned = false;
        if (w->spacing[k] != DENSE)
            continue;
        aligned = aligned && (uintptr_t)g->base[k] % unit == 0;
        for (int d = 0; d < g->rank - 1; d++)
            aligned = aligned && strides_of(g, k)[d] % w->width == 0;
    }
    if (!aligned)
        w->width = 1;
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

static int n_splats(const oly_tile_program *p)
{
    int n = 0;
    for (int i = 0; i < p->n_instructions; i++)
        n += p->instructions[i].op == OLY_TILE_splat;
    return n;
}

static int n_memory(const oly_cuda_group *g)
{
    return g->program->n_loads + g->program->n_stores;
}

/* In the order of write_task. */
static void fill_task(const oly_cuda_group *g, fields *f)
{
    const oly_tile_program *p = g->program;
    add_field(f, (uint64_t)g->n);
    for (int d = 0; d < g->rank; d++)
        add_field(f, (uint64_t)g->extent[d]);
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
                 "struct group_task {\n    int64_t n, extent[%d];\n    char *base[%d];\n    int64_t stride[%d][%d];\n",
                 g->rank, n_memory(g) > 0 ? n_memory(g) : 1, g->n_operands > 0 ? g->n_operands : 1, g->rank);
    for (int i = 0, iota = 0, splat = 0; i < p->n_instructions; i++)
        if (p->instructions[i].op == OLY_TILE_iota)
            oly_text_add(&w->text, "    int64_t origin%d;\n", iota++);
        else if (p->instructions[i].op == OLY_TILE_splat)
            oly_text_add(&w->text, "    uint64_t value%d[2];\n", splat++);
    oly_text_add(&w->text, "};\n");
}

/* -- the body ------------------------------------------------------------------------------------------------------------------ */

/* "task.stride[k][0] * at0 + ...", without the last dimension where rows are dense or constant. */
static void write_offset(writer *w, int k)
{
    const oly_cuda_group *g = w->g;
    bool any = false;
    for (int d = 0; d < g->rank; d++) {
        bool last = d == g->rank - 1;
        if (w->spacing[k] == SCALAR || (last && w->spacing[k] == ROW))
            continue;
        if (last && w->spacing[k] == DENSE)
            oly_text_add(&w->text, "%sat%d", any ? " + " : "", d);
        else
            oly_text_add(&w->text, "%stask.stride[%d][%d] * at%d", any ? " + " : "", k, d, d);
        any = true;
    }
    if (!any)
        oly_text_add(&w->text, "0");
}

static void write_indexes(writer *w)
{
    const oly_cuda_group *g = w->g;
    const char *type = w->small ? "uint32_t" : "int64_t";
    oly_text_add(&w->text, "    %s rest = (%s)i;\n", type, type);
    for (int d = g->rank - 1; d > 0; d--)
        oly_text_add(&w->text,
                     "    const %s next%d = rest / (%s)task.extent[%d];\n"
                     "    const int64_t at%d = rest - next%d * (%s)task.extent[%d];\n    rest = next%d;\n",
                     type, d, type, d, d, d, type, d, d);
    oly_text_add(&w->text, "    const int64_t at0 = rest;\n");
}

static void write_loads(writer *w)
{
    const oly_tile_program *p = w->g->program;
    for (int k = 0; k < p->n_loads; k++) {
        const char *type = type_names[p->load_dtype[k]];
        if (w->spacing[k] == DENSE) {
            oly_text_add(&w->text,
                         "    const oly_row<%s, V> l%d = *(const oly_row<%s, V> *)((const %s *)task.base[%d] + (", type,
                         k, type, type, k);
            write_offset(w, k);
            oly_text_add(&w->text, "));\n");
        } else {
            oly_text_add(&w->text, "    const %s *l%d = (const %s *)task.base[%d] + (", type, k, type, k);
            write_offset(w, k);
            oly_text_add(&w->text, ");\n");
            if (w->spacing[k] != ANY)
                oly_text_add(&w->text, "    const %s s%d = *l%d;\n", type, k, k);
        }
    }
    for (int k = 0; k < p->n_stores; k++)
        oly_text_add(&w->text, "    oly_row<%s, V> o%d;\n", type_names[p->store_dtype[k]], k);
}

static bool is_narrow(uint8_t dtype)
{
    return oly_is_narrow((oly_dtype)dtype);
}

/* Register r as an operand of type dtype of a formula. */
static void write_operand(writer *w, int r, uint8_t dtype)
{
    if (is_narrow(dtype))
        oly_text_add(&w->text, "oly_widened(OLY_T_%s, r%d)", suffixes[dtype], r);
    else
        oly_text_add(&w->text, "r%d", r);
}

static void write_formula(writer *w, const oly_tile_instruction *c)
{
    bool rounds = is_narrow(c->dtype) && c->to == c->dtype, bits = c->op == OLY_TILE_nextafter && is_narrow(c->dtype);
    if (bits) {
        oly_text_add(&w->text, "next_after_%s(r%d, r%d)", suffixes[c->dtype], c->in[0], c->in[1]);
        return;
    }
    if (rounds)
        oly_text_add(&w->text, "(%s)oly_narrowed(OLY_T_%s, ", type_names[c->to], suffixes[c->to]);
    const char *name = c->op == OLY_TILE_fma            ? "fma"
                       : c->op == OLY_TILE_threefry2x32 ? "threefry2x32"
                       : c->op == OLY_TILE_random_bits  ? "random_bits"
                                                        : operations[c->op];
    const char *of = c->op == OLY_TILE_threefry2x32 || c->op == OLY_TILE_random_bits
                         ? "u64"
                         : suffixes[is_narrow(c->dtype) ? OLY_FLOAT32 : c->dtype];
    oly_text_add(&w->text, "oly_op_%s_%s(", name, of);
    for (int k = 0; k < 3 && c->in[k] >= 0; k++) {
        oly_text_add(&w->text, k ? ", " : "");
        write_operand(w, c->in[k], c->dtype);
    }
    oly_text_add(&w->text, rounds ? "))" : ")");
}

static void write_instruction(writer *w, const oly_tile_instruction *c, int *iota, int *splat)
{
    const char *to = type_names[c->to];
    const oly_tile_program *p = w->g->program;
    oly_text_add(&w->text, "        r%d = ", c->out);
    if (c->op == OLY_TILE_select) {
        oly_text_add(&w->text, "r%d ? r%d : r%d", c->in[0], c->in[1], c->in[2]);
    } else if (c->op == OLY_TILE_copy) {
        oly_text_add(&w->text, "oly_as<%s>(oly_put(r%d))", to, c->in[0]);
    } else if (c->op == OLY_TILE_convert) {
        oly_text_add(&w->text, "oly_as<%s>(oly_convert(OLY_T_%s, OLY_T_%s, oly_put(r%d)))", to, suffixes[c->dtype],
                     suffixes[c->to], c->in[0]);
    } else if (c->op == OLY_TILE_splat) {
        oly_text_add(&w->text, "oly_as<%s>(oly_words(task.value%d[0], task.value%d[1]))", to, *splat, *splat);
        ++*splat;
    } else if (c->op == OLY_TILE_iota) {
        int k = p->n_loads + p->n_stores + *iota;
        oly_text_add(&w->text, "oly_as<%s>(oly_convert(OLY_T_i64, OLY_T_%s, oly_put((int64_t)(task.origin%d + ", to,
                     suffixes[c->to], *iota);
        write_offset(w, k);
        oly_text_add(&w->text, " + j * task.stride[%d][%d]))))", k, w->g->rank - 1);
        ++*iota;
    } else {
        write_formula(w, c);
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
    oly_text_add(&w->text, "    OLY_UNROLL\n    for (int j = 0; j < V; j++) {\n");
    for (int k = 0; k < p->n_loads; k++) {
        now[p->load_register[k]] = (int16_t)next;
        oly_text_add(&w->text, "        const %s r%d = ", type_names[p->load_dtype[k]], next++);
        if (w->spacing[k] == DENSE)
            oly_text_add(&w->text, "l%d.at[j];\n", k);
        else if (w->spacing[k] == ANY)
            oly_text_add(&w->text, "l%d[j * task.stride[%d][%d]];\n", k, k, w->g->rank - 1);
        else
            oly_text_add(&w->text, "s%d;\n", k);
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
        write_instruction(w, &c, &of_iota, &of_splat);
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
        if (w->spacing[k] == DENSE) {
            oly_text_add(&w->text, "    *(oly_row<%s, V> *)((%s *)task.base[%d] + (", type, type, k);
            write_offset(w, k);
            oly_text_add(&w->text, ")) = o%d;\n", s);
        } else {
            oly_text_add(&w->text, "    for (int j = 0; j < V; j++)\n        ((%s *)task.base[%d])[(", type, k);
            write_offset(w, k);
            oly_text_add(&w->text, ") + j * task.stride[%d][%d]] = o%d.at[j];\n", k, w->g->rank - 1, s);
        }
    }
}

static void write_kernel(writer *w)
{
    oly_text_add(
        &w->text,
        "#include \"element.h\"\n"
        "template <class T, int V> struct alignas(V == 1 ? (sizeof(T) < 8 ? sizeof(T) : 8) : sizeof(T) * V) oly_row {\n"
        "    T at[V];\n};\n"
        "OLY_DEVICE oly_value oly_words(uint64_t lo, uint64_t hi)\n{\n    oly_value v;\n    v.lo = lo, v.hi = hi;\n"
        "    return v;\n}\n");
    write_task(w);
    oly_text_add(&w->text, "template <int V> OLY_DEVICE void group(const group_task &task, int64_t i)\n{\n");
    write_indexes(w);
    write_loads(w);
    write_body(w);
    write_stores(w);
    oly_text_add(&w->text,
                 "}\nOLY_KERNEL_BOUNDED(oly_group, group_task, %d, 1)\n{\n"
                 "    const int64_t rows = task.n / %d;\n"
                 "    for (int64_t i = oly_index(); i < rows; i += oly_stride())\n        group<%d>(task, i * %d);\n",
                 THREADS, w->width, w->width, w->width);
    if (w->width > 1)
        oly_text_add(&w->text,
                     "    if (oly_index() < task.n - rows * %d)\n        group<1>(task, rows * %d + oly_index());\n",
                     w->width, w->width);
    oly_text_add(&w->text, "}\n");
}

oly_status oly_cuda_fused(const oly_cuda_launcher *l, const oly_cuda_group *g, oly_cuda_launch *launch, char **text)
{
    fields f = {.at = launch->task};
    writer w = {.g = g, .small = g->n < INT32_MAX};
    *text = NULL;
    if (g->n_operands + n_splats(g->program) > OLY_CUDA_OPERANDS)
        return OLY_OK;
    fill_task(g, &f);
    if (f.failed)
        return OLY_OK;
    for (int k = 0; k < g->n_operands; k++)
        w.spacing[k] = k < n_memory(g) ? (uint8_t)spacing_of(g, k) : ANY;
    choose_width(&w);
    write_kernel(&w);
    if (w.text.failed) {
        oly_text_free(&w.text);
        return oly_fail(OLY_MEMORY, "out of memory for the text of a kernel");
    }
    *text = w.text.chars;
    launch->source = *text;
    launch->kernel = "oly_group";
    launch->threads = THREADS;
    launch->blocks = oly_cuda_blocks(l, g->n, (int64_t)THREADS * w.width);
    launch->task_bytes = f.used;
    return OLY_OK;
}
