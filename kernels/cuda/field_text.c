/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of kernels for loops over fields, its key and its launch: see field_text.h. The formulas are those of the interpreter (element.h), so both
 * give the same bits. */
#include "cuda/field_text.h"
#include "core/error.h"
#include "cuda/fused_text.h"
#include "cuda/launching.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
    const void *schedule;
    int64_t counter;
    char *base[OLY_FIELD_GLOBALS];
} task;

/* -- the text ----------------------------------------------------------------------------------------------------------------------- */

const char oly_field_prelude[] =
    "#include \"element.h\"\n"
    "OLY_DEVICE oly_value oly_words(uint64_t lo, uint64_t hi)\n{\n    oly_value v;\n    v.lo = lo, v.hi = hi;\n"
    "    return v;\n}\n"
    "struct place {\n    int32_t origin[3], stride[3], lo[3], hi[3];\n};\n";

/* In the order of field_text.h. */
static void write_structs(oly_text *t)
{
    oly_text_add(
        t,
        "struct instance {\n    int32_t stage, step, lo[3], hi[3], buffer, target, read[%d];\n};\n"
        "struct schedule {\n    int32_t n_instances, n_buffers, buffer_bytes, lo[3], hi[3], tile[3], tiles[3], "
        "from[3], "
        "pitch[3], period[3];\n    place global[%d];\n    int32_t piece[%d][6];\n    instance instances[%d];\n};\n"
        "struct fields_task {\n    const schedule *plan;\n    int64_t counter;\n    char *base[%d];\n};\n",
        OLY_FIELD_READS, OLY_FIELD_GLOBALS, OLY_FIELD_PIECES, OLY_FIELD_INSTANCES, OLY_FIELD_GLOBALS);
}

static const char helpers[] =
    "struct box {\n    int32_t lo[3], hi[3];\n};\n"
    "struct value : place {\n    char *at;\n};\n"
    "OLY_DEVICE int32_t larger(int32_t a, int32_t b)\n{\n    return a > b ? a : b;\n}\n"
    "OLY_DEVICE int32_t smaller(int32_t a, int32_t b)\n{\n    return a < b ? a : b;\n}\n"
    "OLY_DEVICE int32_t floor_quotient(int32_t a, int32_t b)\n{\n    return a / b - (a % b < 0);\n}\n"
    /* of a stage, or what a stage reads */
    "OLY_DEVICE value shared_value(const schedule &p, const instance &of, const box &tile, char *memory)\n{\n"
    "    value v;\n    v.at = memory + larger(of.buffer, 0) * p.buffer_bytes;\n"
    "    for (int d = 0; d < 3; d++) {\n        v.origin[d] = tile.lo[d] + p.from[d];\n        v.stride[d] = "
    "p.pitch[d];\n"
    "        v.lo[d] = tile.lo[d] + of.lo[d];\n        v.hi[d] = tile.hi[d] + of.hi[d];\n    }\n    return v;\n}\n"
    "OLY_DEVICE value global_value(const fields_task &task, const schedule &p, int k)\n{\n    value v;\n"
    "    (place &)v = p.global[k];\n    v.at = task.base[k];\n    return v;\n}\n"
    "OLY_DEVICE value value_of(const fields_task &task, const schedule &p, const box &tile, char *memory, int k)\n{\n"
    "    return k < 0 ? shared_value(p, p.instances[~k], tile, memory) : global_value(task, p, k);\n}\n"
    "OLY_DEVICE int32_t offset_in(const place &v, int32_t x, int32_t y, int32_t z)\n{\n"
    "    return (x - v.origin[0]) * v.stride[0] + (y - v.origin[1]) * v.stride[1] + (z - v.origin[2]) * "
    "v.stride[2];\n}\n"
    /* elements that read something which is not there are needed by nobody */
    "OLY_DEVICE void narrow(box &b, const place &v, int d, int32_t least, int32_t most)\n{\n"
    "    b.lo[d] = larger(b.lo[d], v.lo[d] - least);\n    b.hi[d] = smaller(b.hi[d], v.hi[d] - most);\n}\n"
    "OLY_DEVICE bool is_in(const int32_t *lo, const int32_t *hi, int32_t x, int32_t y, int32_t z)\n{\n"
    "    return x >= lo[0] && x < hi[0] && y >= lo[1] && y < hi[1] && z >= lo[2] && z < hi[2];\n}\n"
    /* a warp takes a row, its lanes adjacent columns */
    "template <class F> OLY_DEVICE void each_point(const box &b, F f)\n{\n"
    "    const int32_t n = b.hi[1] - b.lo[1], rows = n > 0 && b.hi[0] > b.lo[0] ? n * (b.hi[0] - b.lo[0]) : 0;\n"
    "    for (int32_t r = oly_warp(); r < rows; r += oly_threads() / OLY_WARP)\n"
    "        for (int32_t z = b.lo[2] + oly_lane(); z < b.hi[2]; z += OLY_WARP)\n"
    "            f(b.lo[0] + r / n, b.lo[1] + r % n, z);\n}\n"
    /* every image of a piece along periodic dimensions */
    "template <class F> OLY_DEVICE void each_image(const schedule &p, int piece, const box &need, F f)\n{\n"
    "    int32_t first[3], last[3], turn[3], k[3];\n    const int32_t *lo = p.piece[piece], *hi = lo + 3;\n"
    "    for (int d = 0; d < 3; d++) {\n        const int32_t n = p.period[d];\n"
    "        first[d] = n ? floor_quotient(need.lo[d] - hi[d], n) + 1 : 0;\n"
    "        last[d] = n ? floor_quotient(need.hi[d] - 1 - lo[d], n) : 0;\n    }\n"
    "    for (k[0] = first[0]; k[0] <= last[0]; k[0]++)\n        for (k[1] = first[1]; k[1] <= last[1]; k[1]++)\n"
    "            for (k[2] = first[2]; k[2] <= last[2]; k[2]++) {\n                box b;\n"
    "                for (int d = 0; d < 3; d++) {\n                    turn[d] = k[d] * p.period[d];\n"
    "                    b.lo[d] = larger(need.lo[d], lo[d] + turn[d]);\n"
    "                    b.hi[d] = smaller(need.hi[d], hi[d] + turn[d]);\n                }\n"
    "                f(b, turn);\n            }\n}\n";

static void write_load(oly_text *t, const oly_field_stage *s, const oly_field_load *load, int dtype)
{
    const char *type = oly_cuda_type_name(dtype);
    if (load->read < 0) {
        oly_text_add(t, "(%s)(task.counter + now.step)", type);
        return;
    }
    oly_text_add(t, "((const %s *)v%d.at)[i%d", type, load->read, load->read);
    for (int d = 0; d < 3; d++)
        if (load->shift[d] && d == 2 && !s->fixed[load->read])
            oly_text_add(t, " + (%d)", load->shift[d]);
        else if (load->shift[d])
            oly_text_add(t, " + (%d) * v%d.stride[%d]", load->shift[d], load->read, d);
    oly_text_add(t, "]");
}

static void write_iota(oly_text *t, const oly_field_stage *s, const oly_tile_instruction *c)
{
    char number[256];
    const int32_t *a = s->align, *n = s->whole, d = c->attribute + s->first;
    if (c->attribute >= 0)
        snprintf(number, sizeof number, "x%d - turn[%d] - (%d)", (int)d, (int)d, a[d]);
    else
        snprintf(number, sizeof number,
                 "((int64_t)(x0 - turn[0] - (%d)) * %d + (x1 - turn[1] - (%d))) * %d + (x2 - turn[2] - (%d))", a[0],
                 n[1], a[1], n[2], a[2]);
    oly_cuda_write_number(t, c->to, number);
}

static void write_splat(oly_text *t, const oly_tile_instruction *c)
{
    uint64_t words[2] = {0};
    memcpy(words, &c->value, oly_dtype_size((oly_dtype)c->to));
    oly_text_add(t, "oly_as<%s>(oly_words(0x%llxu, 0x%llxu))", oly_cuda_type_name(c->to), (unsigned long long)words[0],
                 (unsigned long long)words[1]);
}

int oly_field_write_instructions(oly_text *t, const oly_field_stage *s, const oly_tile_program *p, int *now, int next)
{
    for (int k = 0; k < p->n_instructions; k++) {
        oly_tile_instruction c = p->instructions[k];
        for (int j = 0; j < 3; j++)
            if (c.in[j] >= 0)
                c.in[j] = (int16_t)now[c.in[j]];
        now[c.out] = next;
        oly_text_add(t, "            const %s r%d = ", oly_cuda_type_name(c.to), next++);
        if (c.op == OLY_TILE_splat)
            write_splat(t, &c);
        else if (c.op == OLY_TILE_iota)
            write_iota(t, s, &c);
        else
            oly_cuda_write_operation(t, &c);
        oly_text_add(t, ";\n");
    }
    return now[p->store_register[0]];
}

static void write_program(oly_text *t, const oly_field_stage *s, const oly_field_piece *piece)
{
    const oly_tile_program *p = &piece->program;
    int now[OLY_TILE_REGISTERS], next = 0;
    for (int k = 0; k < p->n_loads; k++) {
        now[p->load_register[k]] = next;
        oly_text_add(t, "            const %s r%d = ", oly_cuda_type_name(p->load_dtype[k]), next++);
        write_load(t, s, &piece->loads[k], p->load_dtype[k]);
        oly_text_add(t, ";\n");
    }
    const int result = oly_field_write_instructions(t, s, p, now, next);
    const char *type = oly_cuda_type_name(p->store_dtype[0]);
    oly_text_add(
        t,
        "            if (now.buffer >= 0)\n                ((%s *)own.at)[offset_in(own, x0, x1, x2)] = r%d;\n"
        "            if (now.target >= 0 && is_in(tile.lo, tile.hi, x0, x1, x2) && is_in(to.lo, to.hi, x0, x1, x2))\n"
        "                ((%s *)to.at)[offset_in(to, x0, x1, x2)] = r%d;\n",
        type, result, type, result);
}

/* The least and the most that is read of a value along a dimension; false: it is not read. */
bool oly_field_reach(const oly_field_piece *piece, int read, int d, int32_t *least, int32_t *most)
{
    bool any = false;
    for (int k = 0; k < piece->program.n_loads; k++) {
        const oly_field_load *load = &piece->loads[k];
        if (load->read != read)
            continue;
        *least = !any || load->shift[d] < *least ? load->shift[d] : *least;
        *most = !any || load->shift[d] > *most ? load->shift[d] : *most;
        any = true;
    }
    return any;
}

static void write_piece(oly_text *t, const oly_field_stage *s, const oly_field_piece *piece, int number)
{
    int32_t least = 0, most = 0;
    oly_text_add(t, "    each_image(p, %d, need, [&](box b, const int32_t *turn) {\n", number);
    for (int v = 0; v < s->n_reads; v++)
        for (int d = 0; d < 3; d++)
            if (!s->fixed[v] && oly_field_reach(piece, v, d, &least, &most))
                oly_text_add(t, "        narrow(b, v%d, %d, %d, %d);\n", v, d, least, most);
    oly_text_add(t, "        each_point(b, [&](int32_t x0, int32_t x1, int32_t x2) {\n            (void)turn;\n");
    for (int v = 0; v < s->n_reads; v++)
        if (oly_field_reach(piece, v, 0, &least, &most))
            oly_text_add(t, "            const int32_t i%d = offset_in(v%d, x0, x1, x2);\n", v, v);
    write_program(t, s, piece);
    oly_text_add(t, "        });\n    });\n");
}

static void write_stage(oly_text *t, const oly_field_stage *s, int number, int piece)
{
    oly_text_add(t,
                 "OLY_DEVICE void stage_%d(const fields_task &task, const schedule &p, const instance &now, const box "
                 "&tile, char "
                 "*memory)\n{\n",
                 number);
    for (int v = 0; v < s->n_reads; v++) {
        oly_text_add(t, "    value v%d = value_of(task, p, tile, memory, now.read[%d]);\n", v, v);
        if (!s->fixed[v])
            oly_text_add(t, "    v%d.stride[2] = 1;\n", v);
    }
    oly_text_add(
        t, "    value own = shared_value(p, now, tile, memory), to = global_value(task, p, larger(now.target, 0));\n"
           "    box need;\n    for (int d = 0; d < 3; d++) {\n        need.lo[d] = tile.lo[d] + now.lo[d];\n"
           "        need.hi[d] = tile.hi[d] + now.hi[d];\n    }\n    own.stride[2] = to.stride[2] = 1;\n");
    for (int k = 0; k < s->n_pieces; k++)
        write_piece(t, s, &s->pieces[k], piece + k);
    oly_text_add(t, "}\n");
}

static const char kernel_begins[] =
    "    OLY_SHARED_DYNAMIC(char, memory);\n    const schedule &p = *task.plan;\n"
    /* what nobody needs is read, too */
    "    for (int32_t k = oly_thread(); k < p.n_buffers * p.buffer_bytes / 16; k += oly_threads())\n"
    "        ((oly_value *)memory)[k] = oly_words(0, 0);\n"
    "    for (int32_t number = (int32_t)oly_block(); number < p.tiles[0] * p.tiles[1] * p.tiles[2]; number += "
    "(int32_t)oly_blocks()) {\n"
    "        const int32_t at[3] = {number / (p.tiles[1] * p.tiles[2]), number / p.tiles[2] % p.tiles[1], number % "
    "p.tiles[2]};\n"
    "        box tile;\n        for (int d = 0; d < 3; d++) {\n            tile.lo[d] = p.lo[d] + at[d] * p.tile[d];\n"
    "            tile.hi[d] = smaller(tile.lo[d] + p.tile[d], p.hi[d]);\n        }\n"
    "        for (int k = 0; k < p.n_instances; k++) {\n            const instance &now = p.instances[k];\n"
    "            oly_barrier();\n            switch (now.stage) {\n";

static char *make_text(const void *of)
{
    const oly_field_body *body = of;
    oly_text t = {0};
    oly_text_add(&t, "%s", oly_field_prelude);
    write_structs(&t);
    oly_text_add(&t, "%s", helpers);
    for (int s = 0, piece = 0; s < body->n_stages; piece += body->stages[s++].n_pieces)
        if (body->stages[s].computed)
            write_stage(&t, &body->stages[s], s, piece);
    oly_text_add(&t, "OLY_KERNEL_BLOCK_BOUNDED(oly_fields, fields_task, %d, 2)\n{\n%s", OLY_CUDA_THREADS,
                 kernel_begins);
    for (int s = 0; s < body->n_stages; s++)
        if (body->stages[s].computed)
            oly_text_add(&t, "            case %d: stage_%d(task, p, now, tile, memory); break;\n", s, s);
    oly_text_add(&t, "            default: break;\n            }\n        }\n    }\n}\n");
    if (!t.failed)
        return t.chars;
    oly_text_free(&t);
    return NULL;
}

/* -- the key: all that the text depends on ------------------------------------------------------------------------------------------ */

static size_t put(char *to, size_t at, const void *bytes, size_t n)
{
    if (to && n)
        memcpy(to + at, bytes, n);
    return at + n;
}

size_t oly_field_put_piece(char *to, size_t at, const oly_field_piece *piece)
{
    const oly_tile_program *p = &piece->program;
    at = put(to, at, &p->n_loads, sizeof p->n_loads);
    at = put(to, at, &p->n_instructions, sizeof p->n_instructions);
    at = put(to, at, piece->loads, sizeof *piece->loads * (size_t)p->n_loads);
    at = put(to, at, p->load_register, sizeof *p->load_register * (size_t)p->n_loads);
    at = put(to, at, p->load_dtype, (size_t)p->n_loads);
    at = put(to, at, p->store_register, sizeof *p->store_register);
    at = put(to, at, p->store_dtype, 1);
    return put(to, at, p->instructions, sizeof *p->instructions * (size_t)p->n_instructions);
}

static bool counts(const oly_field_stage *s)
{
    for (int k = 0; k < s->n_pieces; k++)
        for (int i = 0; i < s->pieces[k].program.n_instructions; i++)
            if (s->pieces[k].program.instructions[i].op == OLY_TILE_iota)
                return true;
    return false;
}

/* The bytes that it takes; to NULL: nothing is written. */
size_t oly_field_write_key(const oly_field_body *body, char *to)
{
    size_t at = put(to, 0, "fields", 7);
    for (int k = 0; k < body->n_stages; k++) {
        const oly_field_stage *s = &body->stages[k];
        int32_t head[] = {s->n_reads, s->n_pieces, s->computed};
        at = put(to, at, head, sizeof head);
        at = put(to, at, s->fixed, sizeof *s->fixed * (size_t)s->n_reads);
        if (counts(s)) {
            at = put(to, at, &s->first, sizeof s->first);
            at = put(to, at, s->align, sizeof s->align);
            at = put(to, at, s->whole, sizeof s->whole);
        }
        for (int j = 0; j < s->n_pieces && s->computed; j++)
            at = oly_field_put_piece(to, at, &s->pieces[j]);
    }
    return at;
}

/* -- launching ---------------------------------------------------------------------------------------------------------------------- */

/* Of all points and instances. */
double oly_field_work(const oly_field_body *body, const oly_field_schedule *s)
{
    double points = 1, work = 0;
    for (int d = 0; d < 3; d++)
        points *= s->hi[d] - s->lo[d];
    for (int k = 0; k < s->n_instances; k++)
        work += points * body->stages[s->instance[k].stage].pieces[0].program.n_instructions;
    return work;
}

oly_status oly_cuda_fields(const oly_cuda_launcher *l, const oly_field_body *body, const oly_field_schedule *schedule,
                           char *const *bases, int n_bases, int64_t counter, bool *launched)
{
    size_t key_bytes = oly_field_write_key(body, NULL);
    size_t bytes = offsetof(oly_field_schedule, instance) + sizeof *schedule->instance * (size_t)schedule->n_instances;
    char *key = malloc(key_bytes);
    task t = {.counter = counter};
    *launched = false;
    if (!key)
        return oly_fail(OLY_MEMORY, "out of memory: %zu bytes for the key of a kernel", key_bytes);
    oly_field_write_key(body, key);
    memcpy(t.base, bases, sizeof *bases * (size_t)n_bases);
    oly_cuda_launch launch = {
        .kernel = "oly_fields",
        .blocks = oly_cuda_blocks(l, (int64_t)schedule->tiles[0] * schedule->tiles[1] * schedule->tiles[2], 1),
        .threads = OLY_CUDA_THREADS,
        .shared = (unsigned)(schedule->n_buffers * schedule->buffer_bytes),
        .task_bytes = sizeof t};
    oly_status st = l->constant(l->context, schedule, bytes, &t.schedule);
    if (st == OLY_OK) {
        memcpy(launch.task, &t, sizeof t);
        oly_cuda_generated generated = {
            .key = key, .key_bytes = key_bytes, .work = oly_field_work(body, schedule), .text = make_text, .of = body};
        st = l->generated(l->context, &generated, &launch, launched);
    }
    free(key);
    return st;
}
