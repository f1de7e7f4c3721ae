/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a row chain's kernel, and its task: see row_chain.h. It includes row_units.h. A block has 256 / `threads` units; each
 * goes through the phases of a row:
 *
 *      for units of the block:
 *          what is the same for the row: loads, groups over rows (phase 0)
 *          sweep 0: for elements, `batch` rows of `width` at a time: loads, groups, stores, what is kept in shared memory
 *          barrier; warps reduce what is there; barrier
 *          groups over rows that read these results (phase 1); sweep 1; ...
 *
 * Short rows have a unit of one thread, which reduces its elements itself, without barriers; results without gaps are written by the block
 * together, at the end of its units.
 *
 * Values are variables of the struct `unit` (one for the row) or of a sweep (v<number>). */
#include "core/dtype_list.h"
#include "cuda/fused_text.h"
#include "cuda/launching.h"
#include "cuda/row_chain_form.h"
#include <string.h>

/* The numbers of row_units.h. */
_Static_assert(OLY_COMBINE_SUM == 0 && OLY_COMBINE_PROD == 1 && OLY_COMBINE_MAX == 2 && OLY_COMBINE_MIN == 3,
               "OLY_JOIN_* in row_units.h");

static bool in_memory(const oly_row_value *w)
{
    return w->memory != OLY_ROW_NONE;
}

/* -- the task: all fields have 8 bytes -------------------------------------------------------------------------------------------- */

typedef struct fields {
    unsigned char *at;
    size_t used;
    bool failed;
} fields;

static void add_field(fields *f, uint64_t value)
{
    f->failed = f->failed || f->used + sizeof value > OLY_CUDA_TASK_BYTES;
    if (f->failed)
        return;
    memcpy(f->at + f->used, &value, sizeof value);
    f->used += sizeof value;
}

/* In the order of write_task. */
size_t oly_row_chain_task(const oly_row_chain *c, int64_t capacity, void *task)
{
    const oly_row_form *form = &c->form;
    fields f = {.at = task};
    int64_t pieces = (c->n + c->unit - 1) / c->unit;
    add_field(&f, (uint64_t)c->n);
    add_field(&f, (uint64_t)c->unit);
    add_field(&f, (uint64_t)pieces);
    add_field(&f, (uint64_t)(c->rows * pieces));
    add_field(&f, (uint64_t)capacity);
    for (int d = 0; d < form->rank; d++)
        add_field(&f, (uint64_t)c->extent[d]);
    for (int d = 0; d < form->rank; d++)
        add_field(&f, oly_cuda_divisor(c->extent[d]));
    for (int v = 0; v < form->n_values; v++)
        if (in_memory(&form->values[v]))
            add_field(&f, (uint64_t)(uintptr_t)c->base[v]);
    for (int v = 0; v < form->n_values; v++)
        for (int d = 0; in_memory(&form->values[v]) && d < form->rank; d++)
            add_field(&f, (uint64_t)c->stride[v][d]);
    for (int v = 0; v < form->n_values; v++)
        for (int d = 0; form->values[v].padded && d < 2 * form->rank; d++)
            add_field(&f, (uint64_t)(d < form->rank ? c->low[v][d] : c->count[v][d - form->rank]));
    if (form->last) {
        add_field(&f, (uint64_t)c->rows);
        add_field(&f, (uint64_t)c->joined);
        add_field(&f, (uint64_t)(uintptr_t)c->ticket);
    }
    for (int k = 0; form->last && k < form->n_parts; k++)
        if (form->parts[k].reduces) {
            add_field(&f, (uint64_t)(uintptr_t)c->parts[k].out);
        }
    for (int k = 0; k < form->n_parts; k++)
        for (int i = 0; c->parts[k].program && i < c->parts[k].program->n_instructions; i++) {
            const oly_tile_instruction *o = &c->parts[k].program->instructions[i];
            uint64_t value[2] = {0};
            if (o->op != OLY_TILE_splat)
                continue;
            memcpy(value, &o->value, oly_dtype_size((oly_dtype)o->to));
            add_field(&f, value[0]);
            add_field(&f, value[1]);
        }
    return f.failed ? 0 : f.used;
}

typedef struct writer {
    oly_text text;
    const oly_row_chain *c;
    const oly_row_form *form;
} writer;

static const char *type_of(const writer *w, int v)
{
    return oly_cuda_type_name(w->form->values[v].dtype);
}

static void write_task(writer *w)
{
    const oly_row_form *f = w->form;
    oly_text_add(
        &w->text,
        "struct chain_task {\n    int64_t n, unit, pieces, units, capacity, extent[%d];\n    uint64_t divisor[%d];\n",
        f->rank, f->rank);
    for (int v = 0; v < f->n_values; v++)
        if (in_memory(&f->values[v]))
            oly_text_add(&w->text, "    char *base%d;\n", v);
    for (int v = 0; v < f->n_values; v++)
        if (in_memory(&f->values[v]))
            oly_text_add(&w->text, "    int64_t stride%d[%d];\n", v, f->rank);
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].padded)
            oly_text_add(&w->text, "    int64_t low%d[%d], count%d[%d];\n", v, f->rank, v, f->rank);
    if (f->last)
        oly_text_add(&w->text, "    int64_t rows, joined;\n    uint32_t *ticket;\n");
    for (int k = 0; f->last && k < f->n_parts; k++)
        if (f->parts[k].reduces)
            oly_text_add(&w->text, "    char *out%d;\n", k);
    for (int k = 0; k < f->n_parts; k++)
        for (int i = 0; w->c->parts[k].program && i < w->c->parts[k].program->n_instructions; i++)
            if (w->c->parts[k].program->instructions[i].op == OLY_TILE_splat)
                oly_text_add(&w->text, "    uint64_t value%d_%d[2];\n", k, i);
    oly_text_add(&w->text, "};\n");
}

static void write_unit(writer *w)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text,
                 "struct unit {\n    oly_int row, first, count;\n    int thread;\n    unsigned char *memory;\n");
    for (int v = 0; v < f->n_values; v++) {
        if (in_memory(&f->values[v]) && f->values[v].memory != OLY_ROW_PARTIAL)
            oly_text_add(&w->text, "    oly_int offset%d;\n", v);
        if (f->values[v].padded)
            oly_text_add(&w->text, "    bool inside%d;\n", v);
        if (f->values[v].level == OLY_ROW_EACH && f->values[v].memory != OLY_ROW_PARTIAL)
            oly_text_add(&w->text, "    %s v%d;\n", type_of(w, v), v);
    }
    oly_text_add(&w->text, "};\n");
}

/* -- programs ------------------------------------------------------------------------------------------------------------------------- */

/* Where the value is, in the loop over elements j of row b if the group is over elements. */
static void write_place(writer *w, int v)
{
    if (w->form->values[v].level == OLY_ROW_EACH)
        oly_text_add(&w->text, "u.v%d", v);
    else
        oly_text_add(&w->text, "v%d[b].at[j]", v);
}

/* Registers are written several times with several types: each instruction declares its own. */
static void write_group(writer *w, int part)
{
    const oly_tile_program *p = w->c->parts[part].program;
    const oly_row_step *s = &w->form->parts[part];
    int16_t now[OLY_TILE_REGISTERS];
    int next = 0;
    oly_text_add(&w->text, "        {\n");
    for (int k = 0; k < p->n_loads; k++) {
        now[p->load_register[k]] = (int16_t)next;
        oly_text_add(&w->text, "            const %s r%d = ", oly_cuda_type_name(p->load_dtype[k]), next++);
        write_place(w, s->load[k]);
        oly_text_add(&w->text, ";\n");
    }
    for (int i = 0; i < p->n_instructions; i++) {
        oly_tile_instruction o = p->instructions[i];
        for (int k = 0; k < 3; k++)
            if (o.in[k] >= 0)
                o.in[k] = now[o.in[k]];
        now[o.out] = (int16_t)next;
        o.out = (int16_t)next++;
        oly_text_add(&w->text, "            const %s r%d = ", oly_cuda_type_name(o.to), o.out);
        if (o.op == OLY_TILE_splat)
            oly_text_add(&w->text, "oly_as<%s>(oly_words(task.value%d_%d[0], task.value%d_%d[1]))",
                         oly_cuda_type_name(o.to), part, i, part, i);
        else
            oly_cuda_write_operation(&w->text, &o);
        oly_text_add(&w->text, ";\n");
    }
    for (int k = 0; k < p->n_stores; k++) {
        oly_text_add(&w->text, "            ");
        write_place(w, s->store[k]);
        oly_text_add(&w->text, " = r%d;\n", now[p->store_register[k]]);
    }
    oly_text_add(&w->text, "        }\n");
}

/* -- sweeps ------------------------------------------------------------------------------------------------------------------------------ */

static bool has_sweep(const oly_row_form *f, int phase)
{
    for (int k = 0; k < f->n_parts; k++)
        if (f->parts[k].phase == phase && f->parts[k].level == OLY_ROW_FULL)
            return true;
    return false;
}

static bool reduces(const oly_row_form *f, int phase)
{
    for (int k = 0; k < f->n_parts; k++)
        if (f->parts[k].phase == phase && f->parts[k].reduces)
            return true;
    return false;
}

/* Is an element of the value a variable of the sweep? */
static bool is_in_sweep(const writer *w, int v, int phase)
{
    const oly_row_form *f = w->form;
    if (f->values[v].level != OLY_ROW_FULL)
        return false;
    if (f->values[v].from == phase)
        return true;
    for (int k = 0; k < f->n_parts; k++)
        for (int i = 0; f->parts[k].phase == phase && w->c->parts[k].program && i < w->c->parts[k].program->n_loads;
             i++)
            if (f->parts[k].load[i] == v)
                return true;
    return false;
}

/* The place of row b's first element in the value's memory: e is its number in the row. */
static void write_offset(writer *w, int v)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text, "u.offset%d", v);
    for (int d = f->kept; d < f->rank; d++) {
        bool last = d == f->rank - 1;
        if (last && !f->values[v].dense)
            continue;
        if (last)
            oly_text_add(&w->text, " + at%d[b]", d);
        else
            oly_text_add(&w->text, " + (oly_int)task.stride%d[%d] * at%d[b]", v, d, d);
    }
}

static void write_slot(writer *w, int slot)
{
    int before = 0;
    for (int s = 0; s < slot; s++)
        before += (int)oly_dtype_size((oly_dtype)w->form->slot_dtype[s]);
    oly_text_add(&w->text, "(u.memory + %d * (int)task.capacity)", before);
}

static void write_indexes(writer *w)
{
    const oly_row_form *f = w->form;
    for (int d = f->kept; d < f->rank; d++)
        oly_text_add(&w->text, "    oly_int at%d[B];\n", d);
    oly_text_add(&w->text,
                 "    OLY_UNROLL\n    for (int b = 0; b < B; b++) {\n        oly_int rest = u.first + i + b * %d;\n",
                 f->threads * f->width);
    for (int d = f->rank - 1; d > f->kept; d--)
        oly_text_add(&w->text,
                     "        const oly_int next%d = oly_quotient(rest, task.extent[%d], task.divisor[%d]);\n"
                     "        at%d[b] = rest - next%d * (oly_int)task.extent[%d];\n        rest = next%d;\n",
                     d, d, d, d, d, d, d);
    oly_text_add(&w->text, "        at%d[b] = rest;\n    }\n", f->kept);
}

/* Are the elements within the operand's bounds? The last dimension is that of oly_padded (row_units.h). */
static void write_padded_load(writer *w, int v)
{
    const oly_row_form *f = w->form;
    const oly_row_value *x = &f->values[v];
    int last = f->rank - 1;
    oly_text_add(&w->text, "        {\n            bool inside = u.inside%d;\n", v);
    for (int d = f->kept; d < last; d++)
        oly_text_add(&w->text,
                     "            inside = inside && oly_is_within<oly_int>(at%d[b] - (oly_int)task.low%d[%d], "
                     "(oly_int)task.count%d[%d]);\n",
                     d, v, d, v, d);
    oly_text_add(
        &w->text,
        "            const oly_int first = at%d[b] - (oly_int)task.low%d[%d] - %d;\n"
        "            const bool here = inside && oly_is_within<oly_int>(first, (oly_int)task.count%d[%d]);\n"
        "            const bool next = inside && oly_is_within<oly_int>(first + %d, (oly_int)task.count%d[%d]);\n"
        "            v%d[b] = oly_padded<%s, %d, %d>((const %s *)task.base%d + (",
        last, v, last, x->skew, v, last, f->width, v, last, v, type_of(w, v), f->width, x->skew, type_of(w, v), v);
    write_offset(w, v);
    oly_text_add(&w->text, " - %d), here, next, u.v%d);\n        }\n", x->skew, x->fill);
}

static void write_row_load(writer *w, int v, int phase)
{
    const oly_row_value *x = &w->form->values[v];
    const char *type = type_of(w, v);
    if (x->padded && x->from == phase) {
        write_padded_load(w, v);
        return;
    }
    oly_text_add(&w->text, "        v%d[b] = ", v);
    if (x->from < phase) {
        oly_text_add(&w->text, "*(const oly_row<%s, %d> *)((const %s *)", type, w->form->width, type);
        write_slot(w, x->slot);
        oly_text_add(&w->text, " + i + b * %d);\n", w->form->threads * w->form->width);
    } else if (x->dense) {
        oly_text_add(&w->text, "*(const oly_row<%s, %d> *)((const %s *)task.base%d + (", type, w->form->width, type, v);
        write_offset(w, v);
        oly_text_add(&w->text, "));\n");
    } else {
        oly_text_add(&w->text, "oly_same<%s, %d>(((const %s *)task.base%d)[", type, w->form->width, type, v);
        write_offset(w, v);
        oly_text_add(&w->text, "]);\n");
    }
}

static void write_sweep(writer *w, int phase)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text,
                 "template <int B> OLY_DEVICE void sweep%d(const chain_task &task, const unit &u, int i)\n{\n", phase);
    write_indexes(w);
    for (int v = 0; v < f->n_values; v++)
        if (is_in_sweep(w, v, phase))
            oly_text_add(&w->text, "    oly_row<%s, %d> v%d[B];\n", type_of(w, v), f->width, v);
    oly_text_add(&w->text, "    OLY_UNROLL\n    for (int b = 0; b < B; b++) {\n");
    for (int v = 0; v < f->n_values; v++)
        if (is_in_sweep(w, v, phase) && (f->values[v].from < phase || f->values[v].memory == OLY_ROW_LOADED))
            write_row_load(w, v, phase);
    oly_text_add(&w->text,
                 "    }\n    OLY_UNROLL\n    for (int b = 0; b < B; b++) {\n        OLY_UNROLL\n"
                 "        for (int j = 0; j < %d; j++) {\n",
                 f->width);
    for (int k = 0; k < f->n_parts; k++)
        if (f->parts[k].phase == phase && f->parts[k].level == OLY_ROW_FULL && !f->parts[k].reduces)
            write_group(w, k);
    oly_text_add(&w->text, "        }\n    }\n    OLY_UNROLL\n    for (int b = 0; b < B; b++) {\n");
    for (int v = 0; v < f->n_values; v++) {
        const oly_row_value *x = &f->values[v];
        if (!is_in_sweep(w, v, phase) || x->from != phase)
            continue;
        if (x->memory == OLY_ROW_STORED && !x->flushed) {
            oly_text_add(&w->text, "        *(oly_row<%s, %d> *)((%s *)task.base%d + (", type_of(w, v), f->width,
                         type_of(w, v), v);
            write_offset(w, v);
            oly_text_add(&w->text, ")) = v%d[b];\n", v);
        }
        if (x->slot >= 0) {
            oly_text_add(&w->text, "        *(oly_row<%s, %d> *)((%s *)", type_of(w, v), f->width, type_of(w, v));
            write_slot(w, x->slot);
            oly_text_add(&w->text, " + i + b * %d) = v%d[b];\n", f->threads * f->width, v);
        }
    }
    oly_text_add(&w->text, "    }\n}\n");
}

/* -- the kernel ---------------------------------------------------------------------------------------------------------------------------- */

static void write_row_offset(writer *w, int v)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text, "        u.offset%d = 0", v);
    for (int d = 0; d < f->kept; d++)
        oly_text_add(&w->text, " + (oly_int)task.stride%d[%d] * row%d", v, d, d);
    oly_text_add(&w->text, ";\n");
}

static void write_begin(writer *w)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text,
                 "        const bool active = from + number < task.units;\n"
                 "        const int64_t unit_number = active ? from + number : task.units - 1;\n"
                 "        const int64_t piece = %s;\n        u.row = (oly_int)(%s);\n        u.first = (oly_int)(piece "
                 "* task.unit);\n"
                 "        u.count = (oly_int)(task.n - u.first < task.unit ? task.n - u.first : task.unit);\n"
                 "        if (!active)\n            u.count = 0;\n",
                 f->pieces ? "unit_number % task.pieces" : "0",
                 f->pieces ? "unit_number / task.pieces" : "unit_number");
    if (f->kept > 0)
        oly_text_add(&w->text, "        oly_int rest = u.row;\n");
    for (int d = f->kept - 1; d > 0; d--)
        oly_text_add(
            &w->text,
            "        const oly_int next%d = oly_quotient(rest, task.extent[%d], task.divisor[%d]);\n"
            "        const oly_int row%d = rest - next%d * (oly_int)task.extent[%d];\n        rest = next%d;\n",
            d, d, d, d, d, d, d);
    if (f->kept > 0)
        oly_text_add(&w->text, "        const oly_int row0 = rest;\n");
    for (int v = 0; v < f->n_values; v++)
        if (in_memory(&f->values[v]) && f->values[v].memory != OLY_ROW_PARTIAL)
            write_row_offset(w, v);
    for (int v = 0; v < f->n_values; v++) {
        if (!f->values[v].padded)
            continue;
        oly_text_add(&w->text, "        u.inside%d = true;\n", v);
        for (int d = 0; d < f->kept; d++)
            oly_text_add(&w->text,
                         "        u.inside%d = u.inside%d && oly_is_within<oly_int>(row%d - (oly_int)task.low%d[%d], "
                         "(oly_int)task.count%d[%d]);\n",
                         v, v, d, v, d, v, d);
    }
}

/* What is one for the row: results of reductions, loads, groups, stores. */
static void write_rows(writer *w, int phase)
{
    const oly_row_form *f = w->form;
    for (int k = 0; k < f->n_parts; k++)
        if (f->parts[k].reduces && f->parts[k].phase + 1 == phase && !f->pieces && f->threads > 1) {
            int v = f->parts[k].store[0];
            oly_text_add(&w->text, "        u.v%d = oly_as<%s>(oly_bits_value(results[number * %d + %d]));\n", v,
                         type_of(w, v), f->n_results, f->parts[k].result);
        }
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].level == OLY_ROW_EACH && f->values[v].memory == OLY_ROW_LOADED && f->values[v].from == phase)
            oly_text_add(&w->text, "        u.v%d = ((const %s *)task.base%d)[u.offset%d];\n", v, type_of(w, v), v, v);
    for (int k = 0; k < f->n_parts; k++)
        if (f->parts[k].level == OLY_ROW_EACH && f->parts[k].phase == phase)
            write_group(w, k);
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].level == OLY_ROW_EACH && f->values[v].memory == OLY_ROW_STORED && f->values[v].from == phase)
            oly_text_add(&w->text,
                         "        if (active && u.thread == 0 && u.first == 0%s)\n            ((%s "
                         "*)task.base%d)[u.offset%d] = u.v%d;\n",
                         f->values[v].one ? " && u.row == 0" : "", type_of(w, v), v, v, v);
}

static const char *const names[OLY_N_DTYPES] = {
    [OLY_FLOAT32] = "OLY_T_f32",   [OLY_FLOAT64] = "OLY_T_f64", [OLY_FLOAT16] = "OLY_T_f16",
    [OLY_BFLOAT16] = "OLY_T_bf16", [OLY_INT32] = "OLY_T_i32",   [OLY_INT64] = "OLY_T_i64"};

static void write_reductions(writer *w, int phase)
{
    const oly_row_form *f = w->form;
    int warps = f->threads / 32, n = 0;
    oly_text_add(&w->text, "        oly_barrier();\n");
    for (int k = 0; k < f->n_parts; k++) {
        const oly_row_step *s = &f->parts[k];
        if (!s->reduces || s->phase != phase)
            continue;
        int in = s->load[0], out = s->store[0];
        const char *type = type_of(w, in), *name = names[f->values[in].dtype];
        oly_text_add(
            &w->text,
            "        if (u.thread / OLY_WARP == %d) {\n            const auto all = oly_by_lanes<%s, %d>((const %s *)",
            n++ % warps, name, s->combiner, type);
        write_slot(w, f->values[in].slot);
        oly_text_add(&w->text, ", (int)u.count);\n            if (oly_lane() == 0%s)\n", f->pieces ? " && active" : "");
        if (f->pieces)
            oly_text_add(&w->text,
                         "                ((oly_accumulator<%s>::type *)task.base%d)[unit_number] = all;\n        }\n",
                         name, out);
        else
            oly_text_add(&w->text, "                results[number * %d + %d] = oly_result_bits<%s>(all);\n        }\n",
                         f->n_results, s->result, name);
    }
    oly_text_add(&w->text, "        oly_barrier();\n");
}

/* By the thread of a short row. */
static void write_own_reductions(writer *w, int phase)
{
    const oly_row_form *f = w->form;
    for (int k = 0; k < f->n_parts; k++) {
        const oly_row_step *s = &f->parts[k];
        if (!s->reduces || s->phase != phase)
            continue;
        int in = s->load[0], out = s->store[0];
        const char *name = names[f->values[in].dtype];
        oly_text_add(
            &w->text,
            "        u.v%d = oly_as<%s>(oly_bits_value(oly_result_bits<%s>(oly_one_by_one<%s, %d>((const %s *)", out,
            type_of(w, out), name, name, s->combiner, type_of(w, in));
        write_slot(w, f->values[in].slot);
        oly_text_add(&w->text, ", (int)u.count))));\n");
    }
}

/* The results of the block's short rows, which follow each other in memory. */
static void write_flush(writer *w)
{
    const oly_row_form *f = w->form;
    int bytes = 0;
    bool any = false;
    for (int s = 0; s < f->n_slots; s++)
        bytes += (int)oly_dtype_size((oly_dtype)f->slot_dtype[s]);
    for (int v = 0; v < f->n_values; v++)
        any = any || f->values[v].flushed;
    if (!any)
        return;
    oly_text_add(&w->text,
                 "        oly_barrier();\n        const int length = (int)task.n;\n"
                 "        const int all = (int)(task.units - from < %d ? task.units - from : %d) * length;\n"
                 "        for (int k = oly_thread(); k < all; k += %d) {\n",
                 OLY_CUDA_THREADS, OLY_CUDA_THREADS, OLY_CUDA_THREADS);
    if (f->rank == f->kept + 1)
        oly_text_add(&w->text, "            const int row = (int)oly_quotient((int32_t)k, 0, task.divisor[%d]);\n",
                     f->rank - 1);
    else
        oly_text_add(&w->text, "            const int row = k / length;\n");
    for (int v = 0; v < f->n_values; v++) {
        if (!f->values[v].flushed)
            continue;
        int before = 0;
        for (int s = 0; s < f->values[v].slot; s++)
            before += (int)oly_dtype_size((oly_dtype)f->slot_dtype[s]);
        oly_text_add(&w->text,
                     "            ((%s *)task.base%d)[from * length + k] = ((const %s *)(memory + (row * %d + %d) * "
                     "(int)task.capacity))[k - row * length];\n",
                     type_of(w, v), v, type_of(w, v), bytes, before);
    }
    oly_text_add(&w->text, "        }\n        oly_barrier();\n");
}

static void write_phase(writer *w, int phase)
{
    const oly_row_form *f = w->form;
    int row = f->threads * f->width;
    write_rows(w, phase);
    if (has_sweep(f, phase)) {
        oly_text_add(&w->text, "        i = u.thread * %d;\n", f->width);
        if (f->batch > 1)
            oly_text_add(&w->text, "        for (; i + %d < u.count; i += %d)\n            sweep%d<%d>(task, u, i);\n",
                         (f->batch - 1) * row, f->batch * row, phase, f->batch);
        oly_text_add(&w->text, "        for (; i < u.count; i += %d)\n            sweep%d<1>(task, u, i);\n", row,
                     phase);
    }
    if (reduces(f, phase))
        f->threads == 1 ? write_own_reductions(w, phase) : write_reductions(w, phase);
}

static void write_end(writer *w)
{
    const oly_row_form *f = w->form;
    oly_text_add(&w->text, "    if (!oly_is_last(task.ticket, ticket))\n        return;\n");
    for (int k = 0; k < f->n_parts; k++) {
        const oly_row_step *s = &f->parts[k];
        if (!s->reduces)
            continue;
        int out = s->store[0];
        const char *name = names[f->values[out].dtype];
        oly_text_add(
            &w->text,
            "    typedef oly_accumulator<%s>::type A%d;\n"
            "    oly_join_pieces<%s, %d>((const A%d *)task.base%d, (A%d *)memory, (%s *)task.out%d, task.rows, "
            "task.pieces, task.joined);\n",
            name, k, name, s->combiner, k, out, k, type_of(w, out), k);
    }
}

static void write_kernel(writer *w)
{
    const oly_row_form *f = w->form;
    int units = OLY_CUDA_THREADS / f->threads, bytes = 0;
    for (int s = 0; s < f->n_slots; s++)
        bytes += (int)oly_dtype_size((oly_dtype)f->slot_dtype[s]);
    oly_text_add(&w->text, "#include \"row_units.h\"\ntypedef %s oly_int;\n", f->small ? "int32_t" : "int64_t");
    write_task(w);
    write_unit(w);
    for (int p = 0; p < f->n_phases; p++)
        if (has_sweep(f, p))
            write_sweep(w, p);
    oly_text_add(&w->text, "OLY_KERNEL_BLOCK_BOUNDED(oly_rows, chain_task, %d, %d)\n{\n", OLY_CUDA_THREADS, f->blocks);
    if (f->n_slots > 0)
        oly_text_add(&w->text, "    OLY_SHARED_DYNAMIC(unsigned char, memory);\n");
    if (f->n_results > 0 && !f->pieces && f->threads > 1)
        oly_text_add(&w->text, "    OLY_SHARED(uint64_t, results, %d);\n", units * f->n_results);
    if (f->last)
        oly_text_add(&w->text, "    OLY_SHARED(uint32_t, ticket, 1);\n");
    oly_text_add(&w->text,
                 "    const int number = oly_thread() / %d;\n    unit u;\n    u.thread = oly_thread() %% %d;\n",
                 f->threads, f->threads);
    if (f->n_slots > 0)
        oly_text_add(&w->text, "    u.memory = memory + number * %d * (int)task.capacity;\n", bytes);
    oly_text_add(&w->text,
                 "    OLY_NO_UNROLL\n    for (int64_t from = oly_block() * %d; from < task.units; from += oly_blocks() "
                 "* %d) {\n        int i;\n",
                 units, units);
    write_begin(w);
    for (int p = 0; p <= f->n_phases; p++)
        p < f->n_phases ? write_phase(w, p) : write_rows(w, p);
    write_flush(w);
    oly_text_add(&w->text, "        (void)i;\n    }\n");
    if (f->last)
        write_end(w);
    oly_text_add(&w->text, "}\n");
}

char *oly_row_chain_text(const oly_row_chain *c)
{
    writer w = {.c = c, .form = &c->form};
    write_kernel(&w);
    if (!w.text.failed)
        return w.text.chars;
    oly_text_free(&w.text);
    return NULL;
}
