/* SPDX-License-Identifier: BSD-3-Clause */
/* Which steps are one kernel, and its launch: see row_chain.h.
 *
 * Steps are looked at in their order. What a step reads is a value that an earlier one has computed if it is just what that one
 * has written, and is memory otherwise. All threads have an element in the same phase of all steps, so a result may be written over an
 * operand that has the same place; whatever else overlaps is refused. Views of a padded array become views of its operand with bounds. */
#include "cuda/row_chain.h"
#include "core/dtype_list.h"
#include "core/error.h"
#include "core/min_max.h"
#include "cuda/fused_text.h"
#include "cuda/launching.h"
#include "cuda/row_chain_form.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

enum {
    NEVER = 100,
    LEAST = 64, /* shorter rows are reduced one element after the other (reduce_chain.cu): a thread computes one */
    MOST_SHARED = 46 << 10, /* of dynamic shared memory */
    MOST_WORK = 600,        /* of a thread at a time, as in fused_text.c */
    MOST_AT_ONCE = 16,      /* elements of a thread */
    MOST_WORDS = 24,        /* of 4 bytes that are loaded for them */
    SHORT_WORK =
        150,      /* of an element: then so few registers are used that four blocks have room; six, of one operand */
    APART = 2048, /* elements of a unit where nothing is reduced */
};

/* -- dimensions --------------------------------------------------------------------------------------------------------------------- */

/* Dimensions of more than one element. */
typedef struct dims {
    int rank, kept; /* kept: -1 if not known */
    int64_t extent[OLY_MAX_RANK];
} dims;

static dims dims_of(int rank, const int64_t *extent)
{
    dims d = {.kept = -1};
    for (int k = 0; k < rank; k++)
        if (extent[k] != 1)
            d.extent[d.rank++] = extent[k];
    return d;
}

static bool same(const dims *a, int rank, const dims *b)
{
    return rank == b->rank && memcmp(a->extent, b->extent, sizeof(int64_t) * (size_t)rank) == 0;
}

static int64_t product(const int64_t *extent, int from, int to)
{
    int64_t n = 1;
    for (int d = from; d < to; d++)
        n *= extent[d];
    return n;
}

/* Of a reduction along the last dimensions. */
static bool dims_of_reduction(const oly_reduce_task *t, dims *d)
{
    *d = dims_of(t->rank, t->extent);
    d->kept = 0;
    for (int k = 0, reduced = 0; k < t->rank; k++) {
        if (t->extent[k] == 1)
            continue;
        reduced += t->reduced[k];
        if (!t->reduced[k] && reduced)
            return false;
        d->kept += !t->reduced[k];
    }
    return true;
}

/* The box of all groups over elements, and of all reductions. */
static bool find_dims(int n, const oly_cuda_row_part *parts, dims *all)
{
    dims largest = {0};
    bool reduces = false;
    for (int k = 0; k < n && !reduces; k++) {
        if (!parts[k].program && !dims_of_reduction(parts[k].task, all))
            return false;
        reduces = !parts[k].program;
        dims d = parts[k].program ? dims_of(parts[k].box->rank, parts[k].box->extent) : *all;
        if (product(d.extent, 0, d.rank) > product(largest.extent, 0, largest.rank))
            largest = d;
    }
    if (!reduces) {
        *all = largest;
        all->kept = 0;
    }
    return product(all->extent, 0, all->rank) > 0 &&
           product(all->extent, all->kept, all->rank) >= (reduces ? 2 : LEAST);
}

/* -- values ------------------------------------------------------------------------------------------------------------------------- */

typedef struct look {
    oly_row_chain *c;
    const oly_cuda_row_steps *steps;
    int fill[OLY_ROW_PADS]; /* values */
    dims all;
    int phase;
    bool reduces;
} look;

typedef struct operand {
    char *base;
    uint8_t dtype, level;
    int64_t stride[OLY_MAX_RANK];
    const oly_cuda_row_pad *pad; /* NULL: without bounds */
    int64_t low[OLY_MAX_RANK], count[OLY_MAX_RANK];
} operand;

/* An operand of a group whose box has the first `rank` dimensions of all. */
static operand operand_of(const look *l, const oly_tile_box *box, const oly_tile_operand *o, uint8_t dtype)
{
    operand x = {.base = o->base, .dtype = dtype, .level = OLY_ROW_EACH};
    for (int d = 0, k = 0; d < box->rank; d++)
        if (box->extent[d] != 1) {
            x.stride[k] = o->stride[d];
            if (k++ >= l->all.kept && o->stride[d] != 0)
                x.level = OLY_ROW_FULL;
        }
    return x;
}

static const oly_cuda_row_pad *pad_at(const look *l, const char *at)
{
    for (int k = 0; k < l->steps->n_pads; k++) {
        const oly_cuda_row_pad *p = &l->steps->pad[k];
        uintptr_t by = (uintptr_t)at - (uintptr_t)p->to;
        if (by < (uintptr_t)p->n * oly_dtype_size((oly_dtype)p->dtype))
            return p;
    }
    return NULL;
}

/* The dimension of the padded array along which an operand has this stride; -1: none. */
static int dimension_of(const oly_cuda_row_pad *p, int64_t stride, unsigned used)
{
    for (int d = 0; d < p->rank; d++)
        if (p->extent[d] > 1 && p->stride[d] == stride && !(used >> d & 1))
            return d;
    return -1;
}

/* An operand of step `part` in a padded array, as one in that array's operand. False: refused; before the array is there, its memory
 * may hold something else. */
static bool within_operand(const look *l, int part, const oly_tile_box *box, const oly_tile_operand *o, operand *x)
{
    const oly_cuda_row_pad *p = pad_at(l, o->base);
    int64_t element = (int64_t)oly_dtype_size((oly_dtype)x->dtype), rest = p ? (o->base - p->to) / element : 0;
    int64_t at[OLY_MAX_RANK];
    unsigned used = 0;
    int k = 0;
    bool inside = true;
    if (!p)
        return true;
    if (x->dtype != p->dtype || part < p->parts)
        return false;
    x->base = p->from;
    for (int d = 0; d < p->rank; d++) {
        at[d] = rest / p->stride[d];
        rest %= p->stride[d];
        x->base += (at[d] - p->begin[d]) * p->from_stride[d] * element;
    }
    for (int d = 0; d < box->rank; d++) {
        if (box->extent[d] == 1)
            continue;
        int e = dimension_of(p, o->stride[d], used);
        if (e < 0 || at[e] + box->extent[d] > p->extent[e])
            return false;
        used |= 1u << e;
        x->stride[k] = p->from_stride[e];
        x->low[k] = p->begin[e] - at[e];
        x->count[k] = p->count[e];
        inside = inside && x->low[k] <= 0 && x->low[k] + x->count[k] >= box->extent[d];
        k++;
    }
    for (int d = 0; d < p->rank; d++)
        if (!(used >> d & 1) && (at[d] < p->begin[d] || at[d] >= p->begin[d] + p->count[d]))
            return false;
    if (k != l->all.rank || (!inside && x->stride[k - 1] != 1))
        return false;
    if (!inside) {
        x->pad = p;
        return true;
    }
    memset(x->low, 0, sizeof x->low);
    memset(x->count, 0, sizeof x->count);
    return true;
}

/* What is accessed: of padded values, the part within bounds. */
static void reach(const dims *all, const char *base, const int64_t *stride, uint8_t dtype, const int64_t *low,
                  const int64_t *count, uintptr_t *from, uintptr_t *to)
{
    int64_t bytes = (int64_t)oly_dtype_size((oly_dtype)dtype);
    *from = (uintptr_t)base;
    *to = (uintptr_t)base + (uintptr_t)bytes;
    for (int d = 0; d < all->rank; d++) {
        int64_t first = low ? oly_larger(low[d], 0) : 0, end = low ? low[d] + count[d] : all->extent[d];
        int64_t last = oly_larger(oly_smaller(end, all->extent[d]) - 1, first);
        int64_t a = stride[d] * first * bytes, b = stride[d] * last * bytes;
        *from += (uintptr_t)oly_smaller(a, b);
        *to += (uintptr_t)oly_larger(a, b);
    }
}

static bool overlaps(const look *l, const operand *x, int v)
{
    uintptr_t low, high, from, to;
    const oly_row_value *w = &l->c->form.values[v];
    reach(&l->all, x->base, x->stride, x->dtype, x->pad ? x->low : NULL, x->count, &low, &high);
    reach(&l->all, l->c->base[v], l->c->stride[v], w->dtype, w->padded ? l->c->low[v] : NULL, l->c->count[v], &from,
          &to);
    return low < to && from < high;
}

static bool is_same(const look *l, const operand *x, int v)
{
    const oly_row_value *w = &l->c->form.values[v];
    size_t bounds = sizeof(int64_t) * (size_t)l->all.rank;
    if (w->padded != (x->pad != NULL))
        return false;
    if (w->padded && (l->fill[x->pad - l->steps->pad] != w->fill || memcmp(x->low, l->c->low[v], bounds) != 0 ||
                      memcmp(x->count, l->c->count[v], bounds) != 0))
        return false;
    return x->base == l->c->base[v] && x->dtype == w->dtype && x->level == w->level &&
           memcmp(x->stride, l->c->stride[v], sizeof(int64_t) * (size_t)l->all.rank) == 0;
}

static int add_value(look *l, const operand *x, oly_row_memory memory, int from)
{
    oly_row_form *f = &l->c->form;
    int v = f->n_values;
    if (v >= OLY_ROW_VALUES)
        return -1;
    oly_row_value *w = &f->values[f->n_values++];
    w->dtype = x->dtype;
    w->level = x->level;
    w->memory = (uint8_t)memory;
    w->from = w->to = (int8_t)from;
    w->reduced = w->slot = -1;
    w->one = true;
    for (int d = 0; d < l->all.kept; d++)
        w->one = w->one && x->stride[d] == 0;
    int64_t last = l->all.rank > 0 ? x->stride[l->all.rank - 1] : 0;
    w->dense = last == 1;
    if (x->level == OLY_ROW_FULL && last != 0 && last != 1)
        return -1;
    l->c->base[v] = x->base;
    memcpy(l->c->stride[v], x->stride, sizeof x->stride);
    memcpy(l->c->low[v], x->low, sizeof x->low);
    memcpy(l->c->count[v], x->count, sizeof x->count);
    return v;
}

static int padded_value(look *l, const operand *x)
{
    int v = add_value(l, x, OLY_ROW_LOADED, 0);
    if (v >= 0) {
        l->c->form.values[v].padded = true;
        l->c->form.values[v].fill = (int8_t)l->fill[x->pad - l->steps->pad];
    }
    return v;
}

/* The value that is read; -1: refused. */
static int read_value(look *l, const operand *x)
{
    const oly_row_form *f = &l->c->form;
    for (int v = f->n_values - 1; v >= 0; v--) {
        if (is_same(l, x, v))
            return f->values[v].from == NEVER ? -1 : v;
        if (overlaps(l, x, v) && f->values[v].memory != OLY_ROW_LOADED)
            return -1;
    }
    return x->pad ? padded_value(l, x) : add_value(l, x, OLY_ROW_LOADED, 0);
}

/* A value that a step computes; -1: refused. */
static int written_value(look *l, const operand *x, oly_row_memory memory, int from)
{
    const oly_row_form *f = &l->c->form;
    for (int v = 0; memory != OLY_ROW_NONE && v < f->n_values; v++) {
        const oly_row_value *w = &f->values[v];
        bool in_place = w->memory == OLY_ROW_LOADED && w->level == OLY_ROW_FULL && is_same(l, x, v);
        if (w->memory != OLY_ROW_NONE && !in_place && overlaps(l, x, v))
            return -1;
    }
    return add_value(l, x, memory, from);
}

static void use(look *l, int v, int phase)
{
    oly_row_value *w = &l->c->form.values[v];
    if (w->memory == OLY_ROW_LOADED && !w->used)
        w->from = (int8_t)phase;
    w->used = true;
    w->to = (int8_t)oly_larger(w->to, phase);
    if (w->padded && w->from == phase)
        use(l, w->fill, phase);
}

/* The phase from which on the value is there; what is loaded can be in any. */
static int there_from(const look *l, int v)
{
    const oly_row_value *w = &l->c->form.values[v];
    if (w->padded)
        return there_from(l, w->fill);
    return w->memory == OLY_ROW_LOADED ? 0 : w->from;
}

/* -- steps --------------------------------------------------------------------------------------------------------------------------- */

static bool has_iota(const oly_tile_program *p)
{
    for (int i = 0; i < p->n_instructions; i++)
        if (p->instructions[i].op == OLY_TILE_iota)
            return true;
    return false;
}

/* 0: of elements, or of rows; the level. -1: neither. */
static int level_of(const look *l, const oly_tile_box *box)
{
    dims d = dims_of(box->rank, box->extent);
    return d.rank == 0                      ? OLY_ROW_EACH
           : same(&l->all, l->all.rank, &d) ? OLY_ROW_FULL
           : same(&l->all, l->all.kept, &d) ? OLY_ROW_EACH
                                            : -1;
}

static bool take_group(look *l, const oly_cuda_row_part *p, oly_row_step *s)
{
    int part = (int)(p - l->c->parts);
    const oly_tile_program *g = p->program;
    int level = level_of(l, p->box), need = l->phase;
    oly_row_form *f = &l->c->form;
    if (level < 0 || has_iota(g) || g->n_loads > OLY_ROW_OPERANDS || g->n_stores > OLY_ROW_OPERANDS)
        return false;
    s->level = (uint8_t)level;
    for (int k = 0; k < g->n_loads; k++) {
        operand x = operand_of(l, p->box, &p->loads[k], g->load_dtype[k]);
        int v = within_operand(l, part, p->box, &p->loads[k], &x) ? read_value(l, &x) : -1;
        if (v < 0 || (level == OLY_ROW_EACH && f->values[v].level == OLY_ROW_FULL))
            return false;
        s->load[k] = (int8_t)v;
        need = (int)oly_larger(need, there_from(l, v));
    }
    if (need >= OLY_ROW_PHASES)
        return false;
    l->phase = need;
    s->phase = (uint8_t)need;
    for (int k = 0; k < g->n_loads; k++) {
        use(l, s->load[k], need);
    }
    for (int k = 0; k < g->n_stores; k++) {
        operand x = operand_of(l, p->box, &p->stores[k], g->store_dtype[k]);
        bool spread = (level == OLY_ROW_FULL && x.level != OLY_ROW_FULL) || pad_at(l, p->stores[k].base);
        int v = spread ? -1 : written_value(l, &x, p->needed >> k & 1 ? OLY_ROW_STORED : OLY_ROW_NONE, need);
        if (v < 0 || (level == OLY_ROW_FULL && !f->values[v].dense))
            return false;
        s->store[k] = (int8_t)v;
    }
    return true;
}

static bool may_reduce(const oly_reduce_task *t)
{
    bool types = t->dtype == OLY_FLOAT32 || t->dtype == OLY_FLOAT64 || t->dtype == OLY_FLOAT16 ||
                 t->dtype == OLY_BFLOAT16 || t->dtype == OLY_INT32 || t->dtype == OLY_INT64;
    bool joins = t->combiner == OLY_COMBINE_SUM || t->combiner == OLY_COMBINE_MAX || t->combiner == OLY_COMBINE_MIN ||
                 t->combiner == OLY_COMBINE_PROD;
    return types && joins && (!t->converts || t->from == t->dtype);
}

static bool take_reduction(look *l, const oly_cuda_row_part *p, oly_row_step *s)
{
    const oly_reduce_task *t = p->task;
    oly_row_form *f = &l->c->form;
    dims d;
    if (!may_reduce(t) || !dims_of_reduction(t, &d) || d.kept != l->all.kept || !same(&l->all, l->all.rank, &d))
        return false;
    operand in = {.base = p->in, .dtype = (uint8_t)t->dtype, .level = OLY_ROW_FULL};
    operand out = {.base = p->out, .dtype = (uint8_t)t->dtype, .level = OLY_ROW_EACH};
    for (int k = 0, at = 0; k < t->rank; k++)
        if (t->extent[k] != 1)
            in.stride[at++] = t->stride[k];
    for (int k = d.kept - 1; k >= 0; k--)
        out.stride[k] = product(d.extent, k + 1, d.kept);
    int v = pad_at(l, p->in) || pad_at(l, p->out) ? -1 : read_value(l, &in);
    if (v < 0 || in.stride[d.rank - 1] != 1)
        return false;
    s->level = OLY_ROW_FULL;
    s->reduces = true;
    s->phase = (uint8_t)l->phase;
    s->combiner = (uint8_t)t->combiner;
    s->load[0] = (int8_t)v;
    use(l, v, l->phase);
    f->values[v].reduced = (int8_t)l->phase;
    /* Pieces are joined, and so written, when all else has been read: over an operand, too. */
    bool stored = !f->pieces && (p->needed & 1);
    v = written_value(l, &out, stored ? OLY_ROW_STORED : OLY_ROW_NONE, f->pieces ? NEVER : l->phase + 1);
    if (v < 0)
        return false;
    if (f->pieces)
        f->values[v].memory = OLY_ROW_PARTIAL;
    s->result = f->n_results++;
    s->store[0] = (int8_t)v;
    return true;
}

/* -- shared memory --------------------------------------------------------------------------------------------------------------------- */

/* Results of short rows without gaps: threads that wrote them each along its own row would write parts of sectors. */
static void choose_flushed(oly_row_chain *c, const dims *all)
{
    for (int v = 0; v < c->form.n_values; v++) {
        oly_row_value *w = &c->form.values[v];
        int64_t step = 1;
        w->flushed = c->n < LEAST && w->memory == OLY_ROW_STORED && w->level == OLY_ROW_FULL;
        for (int d = all->rank - 1; d >= 0; step *= all->extent[d--])
            w->flushed = w->flushed && c->stride[v][d] == step;
    }
}

/* Values that are read in a later phase than the one in which they are there first, or reduced, have a slot. A slot is free for a value of the
 * phase in which the one before is read for the last time: each thread reads an element before it writes its successor. */
static void give_slots(oly_row_form *f)
{
    int8_t free_from[OLY_ROW_VALUES];
    for (int phase = 0; phase < f->n_phases; phase++)
        for (int v = 0; v < f->n_values; v++) {
            oly_row_value *w = &f->values[v];
            if (w->level != OLY_ROW_FULL || w->from != phase || (w->to == phase && w->reduced != phase && !w->flushed))
                continue;
            int s = 0;
            while (s < f->n_slots && (f->slot_dtype[s] != w->dtype || free_from[s] > phase))
                s++;
            if (s == f->n_slots)
                f->slot_dtype[f->n_slots++] = w->dtype;
            w->slot = (int8_t)s;
            free_from[s] = w->flushed ? NEVER : (int8_t)(w->to + (w->reduced == w->to));
        }
}

/* Of short rows: an odd number of vectors, so that the threads of a warp are in different banks, if all slots are of one type. */
static int64_t capacity_of(const oly_row_chain *c)
{
    const oly_row_form *f = &c->form;
    bool one = f->threads == 1;
    for (int s = 1; s < f->n_slots; s++)
        one = one && oly_dtype_size((oly_dtype)f->slot_dtype[s]) == oly_dtype_size((oly_dtype)f->slot_dtype[0]);
    if (one)
        return ((c->n + f->width - 1) / f->width | 1) * f->width;
    return (oly_smaller(c->n, c->unit) + 15) / 16 * 16;
}

static int64_t shared_of(const oly_row_chain *c)
{
    int64_t bytes = 0;
    for (int s = 0; s < c->form.n_slots; s++)
        bytes += (int64_t)oly_dtype_size((oly_dtype)c->form.slot_dtype[s]);
    return bytes * capacity_of(c) * (OLY_CUDA_THREADS / c->form.threads);
}

/* -- the form ---------------------------------------------------------------------------------------------------------------------------- */

static bool in_memory(const oly_row_value *w)
{
    return w->memory == OLY_ROW_LOADED || w->memory == OLY_ROW_STORED;
}

static void merge(oly_row_chain *c, const dims *all)
{
    oly_row_form *f = &c->form;
    int rank = 0, kept = 0;
    for (int d = 0; d < all->rank; d++) {
        bool merges = d > 0 && d != all->kept;
        for (int v = 0; merges && v < f->n_values; v++)
            merges = !in_memory(&f->values[v]) ||
                     (!f->values[v].padded && c->stride[v][rank - 1] == c->stride[v][d] * all->extent[d]);
        if (!merges)
            rank++;
        c->extent[rank - 1] = (merges ? c->extent[rank - 1] : 1) * all->extent[d];
        for (int v = 0; v < f->n_values; v++)
            c->stride[v][rank - 1] = c->stride[v][d];
        kept = d < all->kept ? rank : kept;
    }
    for (int v = 0; v < f->n_values; v++)
        memset(&c->stride[v][rank], 0, sizeof(int64_t) * (size_t)(OLY_MAX_RANK - rank));
    f->rank = (uint8_t)rank;
    f->kept = (uint8_t)kept;
}

static bool is_aligned(const oly_row_chain *c, int width)
{
    const oly_row_form *f = &c->form;
    if (c->extent[f->rank - 1] % width != 0)
        return false;
    for (int v = 0; v < f->n_values; v++) {
        const oly_row_value *w = &f->values[v];
        if (w->level != OLY_ROW_FULL || !in_memory(w) || !w->dense)
            continue;
        int64_t size = (int64_t)oly_dtype_size((oly_dtype)w->dtype);
        uintptr_t first =
            (uintptr_t)c->base[v] + (uintptr_t)(c->low[v][f->rank - 1] * size); /* of a row of the operand */
        if (first % (uintptr_t)(size * width) != 0 || c->count[v][f->rank - 1] % width != 0)
            return false;
        for (int d = 0; d < f->rank - 1; d++)
            if (c->stride[v][d] % width != 0)
                return false;
    }
    return true;
}

static void choose_form(oly_row_chain *c)
{
    oly_row_form *f = &c->form;
    int largest = 2, work[OLY_ROW_PHASES] = {0}, words[OLY_ROW_PHASES] = {0}, most = 1, widest = 1;
    int64_t here = oly_smaller(c->n, c->unit);
    f->small = c->rows * c->n < 1 << 30;
    for (int v = 0; v < f->n_values; v++) {
        int64_t far = 0;
        for (int d = 0; d < f->rank; d++)
            far += llabs(c->stride[v][d]) * (c->extent[d] - 1);
        for (int d = 0; d < f->rank; d++)
            far = oly_larger(far, oly_larger(llabs(c->low[v][d]) + c->extent[d], c->count[v][d]));
        f->small = f->small && far < INT32_MAX;
        if (f->values[v].level == OLY_ROW_FULL)
            largest = (int)oly_larger(largest, (int64_t)oly_dtype_size((oly_dtype)f->values[v].dtype));
    }
    for (int k = 0; k < f->n_parts; k++)
        if (!f->parts[k].reduces && f->parts[k].level == OLY_ROW_FULL)
            work[f->parts[k].phase] += oly_cuda_work_of(c->parts[k].program);
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].level == OLY_ROW_FULL && f->values[v].memory == OLY_ROW_LOADED)
            words[f->values[v].from] += (int)(oly_dtype_size((oly_dtype)f->values[v].dtype) + 3) / 4;
    for (int p = 0; p < OLY_ROW_PHASES; p++) {
        most = (int)oly_larger(most, work[p]);
        widest = (int)oly_larger(widest, words[p]);
    }
    int width = (int)oly_larger(16 / largest, 1);
    while (width > 1 && (width * most > MOST_WORK || !is_aligned(c, width)))
        width /= 2;
    f->width = (uint8_t)width;
    for (int v = 0; v < f->n_values; v++)
        if (f->values[v].padded)
            f->values[v].skew = (uint8_t)(-c->low[v][f->rank - 1] & (width - 1));
    f->batch = MOST_AT_ONCE;
    while (f->batch > 1 && (f->batch * width > MOST_AT_ONCE || f->batch * width * widest > MOST_WORDS ||
                            f->batch * width * most > MOST_WORK))
        f->batch /= 2;
    if (c->n < LEAST) {
        int64_t vectors = oly_larger(c->n / width, 1), sweeps = (vectors + f->batch - 1) / f->batch;
        f->batch = (uint8_t)(vectors / sweeps);
    }
    f->blocks = most > SHORT_WORK ? 1 : widest > 1 || f->pieces ? 4 : 6;
    f->threads = (uint16_t)(c->n < LEAST   ? 1
                            : here <= 256  ? 32
                            : here <= 512  ? 64
                            : here <= 1024 ? 128
                                           : OLY_CUDA_THREADS);
}

/* What pads before step `part` are filled with: its memory may be used again before they are read. */
static bool take_pads(look *l, int part)
{
    for (int k = 0; k < l->steps->n_pads; k++) {
        const oly_cuda_row_pad *p = &l->steps->pad[k];
        operand fill = {.base = p->value, .dtype = p->dtype, .level = OLY_ROW_EACH};
        if (p->parts == part && (l->fill[k] = pad_at(l, p->value) ? -1 : read_value(l, &fill)) < 0)
            return false;
    }
    return true;
}

static bool describe(const oly_cuda_row_steps *steps, oly_row_chain *c)
{
    const oly_cuda_row_part *parts = steps->part;
    int n = steps->n;
    look l = {.c = c, .steps = steps};
    bool elements = false, rows = false;
    oly_row_form *f = &c->form;
    memset(c, 0, sizeof *c);
    if (n > OLY_ROW_PARTS || !find_dims(n, parts, &l.all))
        return false;
    c->parts = parts;
    c->rows = product(l.all.extent, 0, l.all.kept);
    c->n = product(l.all.extent, l.all.kept, l.all.rank);
    for (int k = 0; k < n; k++)
        l.reduces = l.reduces || !parts[k].program;
    c->unit = l.reduces ? OLY_ROW_UNIT : APART;
    f->pieces = c->n > c->unit;
    for (int k = 0; k < n; k++) {
        oly_row_step *s = &f->parts[f->n_parts++];
        if (!take_pads(&l, k) || !(parts[k].program ? take_group(&l, &parts[k], s) : take_reduction(&l, &parts[k], s)))
            return false;
        elements = elements || s->level == OLY_ROW_FULL;
        rows = rows || s->reduces || s->level == OLY_ROW_EACH;
    }
    if (!elements || !rows || (c->n < LEAST && steps->n_pads > 0))
        return false;
    f->n_phases = (int8_t)(l.phase + 1);
    choose_flushed(c, &l.all);
    give_slots(f);
    merge(c, &l.all);
    choose_form(c);
    return shared_of(c) <= MOST_SHARED;
}

bool oly_cuda_row_chain_fits(const oly_cuda_row_steps *steps)
{
    oly_row_chain c;
    return describe(steps, &c);
}

/* -- launching --------------------------------------------------------------------------------------------------------------------------- */

typedef struct short_instruction {
    uint16_t op;
    uint8_t dtype, to;
    int16_t in[3], out;
} short_instruction;

static size_t key_size(const oly_row_chain *c)
{
    size_t bytes = sizeof c->form + 8;
    for (int k = 0; k < c->form.n_parts; k++)
        if (c->parts[k].program)
            bytes += 16 + (size_t)(c->parts[k].program->n_loads + c->parts[k].program->n_stores) * sizeof(int16_t) +
                     (size_t)c->parts[k].program->n_instructions * sizeof(short_instruction);
    return bytes;
}

static char *add_bytes(char *at, const void *bytes, size_t n)
{
    if (n)
        memcpy(at, bytes, n);
    return at + n;
}

static void write_key(const oly_row_chain *c, char *at)
{
    at = add_bytes(at, "of rows", 8);
    at = add_bytes(at, &c->form, sizeof c->form);
    for (int k = 0; k < c->form.n_parts; k++) {
        const oly_tile_program *p = c->parts[k].program;
        if (!p)
            continue;
        int32_t counts[4] = {k, p->n_instructions, p->n_loads, p->n_stores};
        at = add_bytes(at, counts, sizeof counts);
        at = add_bytes(at, p->load_register, (size_t)p->n_loads * sizeof *p->load_register);
        at = add_bytes(at, p->store_register, (size_t)p->n_stores * sizeof *p->store_register);
        for (int i = 0; i < p->n_instructions; i++) {
            const oly_tile_instruction *o = &p->instructions[i];
            short_instruction s = {o->op, o->dtype, o->to, {o->in[0], o->in[1], o->in[2]}, o->out};
            at = add_bytes(at, &s, sizeof s);
        }
    }
}

static char *make_text(const void *of)
{
    return oly_row_chain_text(of);
}

/* Memory for the results of pieces, where there are any; few are joined by the kernel itself. */
static oly_status reserve(const oly_cuda_launcher *l, oly_row_chain *c, int64_t pieces)
{
    for (int k = 0; k < c->form.n_parts; k++)
        if (c->form.parts[k].reduces && c->form.pieces) {
            void *at, *between;
            int64_t parts = oly_reduce_divide(c->parts[k].task).parts,
                    wide = oly_larger(4, (int64_t)oly_dtype_size(c->parts[k].task->dtype));
            OLY_TRY(oly_cuda_reduce_scratch(l, c->parts[k].task, c->rows * pieces, &at, &between));
            c->base[c->form.parts[k].store[0]] = at;
            c->between[k] = between;
            c->joined = parts;
            c->joining = oly_larger(c->joining, c->rows * (pieces + parts) * wide);
        }
    if (c->joining > 0 && c->joining <= MOST_SHARED && l->ticket)
        OLY_TRY(l->ticket(l->context, &c->ticket));
    c->form.last = c->ticket != NULL;
    return OLY_OK;
}

static oly_status join_pieces(const oly_cuda_launcher *l, const oly_row_chain *c)
{
    for (int k = 0; k < c->form.n_parts; k++)
        if (c->form.parts[k].reduces && c->form.pieces && !c->form.last)
            OLY_TRY(oly_cuda_reduce_joined(l, c->parts[k].task, c->base[c->form.parts[k].store[0]], c->between[k],
                                           c->parts[k].out));
    return OLY_OK;
}

static unsigned blocks_of(const oly_cuda_launcher *l, const oly_row_chain *c, int64_t units)
{
    int64_t per = OLY_CUDA_THREADS / c->form.threads;
    if (per > 1)
        return oly_cuda_blocks(l, units, per);
    return (unsigned)oly_smaller(units, 1 << 24);
}

oly_status oly_cuda_row_chain(const oly_cuda_launcher *l, const oly_cuda_row_steps *steps, bool *launched)
{
    oly_row_chain c;
    const oly_cuda_row_part *parts = steps->part;
    oly_cuda_launch launch = {.kernel = "oly_rows", .threads = OLY_CUDA_THREADS};
    *launched = false;
    if (!l->generated || !describe(steps, &c))
        return OLY_OK;
    int64_t pieces = (c.n + c.unit - 1) / c.unit, instructions = 1;
    OLY_TRY(reserve(l, &c, pieces));
    char key[key_size(&c)];
    write_key(&c, key);
    launch.task_bytes = oly_row_chain_task(&c, capacity_of(&c), launch.task);
    if (launch.task_bytes == 0)
        return OLY_OK;
    launch.blocks = blocks_of(l, &c, c.rows * pieces);
    launch.shared = (unsigned)(c.form.last ? oly_larger(shared_of(&c), c.joining) : shared_of(&c));
    for (int k = 0; k < steps->n; k++)
        instructions += parts[k].program ? parts[k].program->n_instructions : 1;
    oly_cuda_generated generated = {.key = key,
                                    .key_bytes = sizeof key,
                                    .work = (double)(c.rows * c.n) * (double)instructions,
                                    .text = make_text,
                                    .of = &c};
    OLY_TRY(l->generated(l->context, &generated, &launch, launched));
    return *launched ? join_pieces(l, &c) : OLY_OK;
}
