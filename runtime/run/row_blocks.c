/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of rows, block by block. See row_blocks.h. Plans may give one value the memory of another (a donated input, a loop's carry): before
 * each run memory is compared, and where rows do not match the steps follow each other. */
#include "run/row_blocks.h"
#include "core/error.h"
#include "device/workers.h"
#include "plan/model/gathered_sums.h"
#include "plan/model/row_operands.h"
#include "run/compiled_groups.h"
#include "run/device_counts.h"
#include "run/prepare_cpu.h"
#include "run/sparse_rows.h"
#include <sched.h>
#include <string.h>

enum {
    BLOCK_BYTES = 1 << 18,      /* that a block uses, unless its steps would be too short: */
    MOST_BLOCK_BYTES = 1 << 20, /* the most then */
    STEP_ELEMENTS = 1 << 14,
    MOST_TURNS = 64,
    LEAST_BLOCKS = 16
};

bool oly_row_blocks_backwards;

typedef struct device_rows {
    oly_rows rows;
    int split;             /* blocks are ranges of this dimension, with all of those after it */
    int64_t outer, ranges; /* the dimensions before it, and ranges of it */
    int64_t most;          /* rows of a block */
    int64_t below;         /* rows for each index of it */
    int n_operands;
    const oly_row_operand *operand;
    oly_sparse_rows sparse; /* what the chain ends with */
    int n_sums;
    const oly_gathered_sum *sums; /* in the order of their last steps */
} device_rows;

/* What a device reads of another one's memory. Blocks of the two are computed at any time. */
typedef struct lent {
    int reader;
    const oly_row_operand *operand;
} lent;

typedef struct oly_row_blocks {
    int n; /* steps */
    oly_row_kind kind;
    bool sinks; /* it ends with a scatter: one thread computes all blocks of a device, in order */
    int n_own;
    const int *own; /* slots that only the chain uses */
    int turns;      /* parts of the memory of each */
    int n_lent;
    const lent *lent;
    const device_rows *device;
} oly_row_blocks;

int oly_row_blocks_on(const oly_row_blocks *r, int device)
{
    int n = (int)(r->device[device].outer * r->device[device].ranges);
    return r->sinks && n > 0 ? 1 : n;
}

/* -- memory -------------------------------------------------------------------------------------------------------------- */

/* base: NULL: before any run, when only scratch memory has its place. */
static char *address(const oly_plan *plan, void *const *base, const oly_row_operand *o)
{
    if (base)
        return (char *)base[o->cell] + o->offset;
    const oly_slot *s = &plan->slots[oly_cell_slot(plan, o->cell)];
    uint64_t begin = s->kind == OLY_SLOT_SCRATCH ? (uint64_t)1 << 62 | s->offset : (uint64_t)(o->cell + 1) << 40;
    return (char *)(uintptr_t)(begin + (uint64_t)o->offset);
}

/* From the first byte to behind the last one. */
static void range_of(const oly_plan *plan, void *const *base, const oly_rows *rows, const oly_row_operand *o,
                     uintptr_t *low, uintptr_t *high)
{
    *low = (uintptr_t)address(plan, base, o) + (uintptr_t)o->low;
    *high = (uintptr_t)address(plan, base, o) + (uintptr_t)o->high;
    for (int d = 0; d < rows->lead && !o->whole; d++) {
        int64_t span = (rows->extent[d] - 1) * o->stride[d];
        *(span < 0 ? low : high) += (uintptr_t)span;
    }
}

/* Of different cells: may a plan have given both the same memory? */
static bool overlap(const oly_plan *plan, void *const *base, const oly_rows *rows, const oly_row_operand *a,
                    const oly_row_operand *b)
{
    uintptr_t low[2], high[2];
    range_of(plan, base, rows, a, &low[0], &high[0]);
    range_of(plan, base, rows, b, &low[1], &high[1]);
    return a->cell != b->cell && low[0] < high[1] && low[1] < high[0];
}

static bool is_scratch(const oly_plan *plan, const oly_row_operand *o)
{
    return plan->slots[oly_cell_slot(plan, o->cell)].kind == OLY_SLOT_SCRATCH;
}

/* May a block be computed by all steps before the next one is? Of one cell the planner has made sure, and of scratch memory, which overlaps no
 * other, this is known before the first run. */
static bool matches(const oly_plan *plan, void *const *base, const device_rows *v)
{
    for (int i = 0; i < v->n_operands; i++)
        for (int j = 0; j < i && !(base && is_scratch(plan, &v->operand[i])); j++) {
            const oly_row_operand *a = &v->operand[i], *b = &v->operand[j];
            if ((a->writes || b->writes) && overlap(plan, base, &v->rows, a, b) &&
                !oly_rows_match(&v->rows, a, b, address(plan, base, b) - address(plan, base, a)))
                return false;
        }
    return true;
}

/* Does a device write memory that another one reads? Before any run: its own, where what is read has another place. */
static bool writes_lent(const oly_plan *plan, void *const *base, const oly_row_blocks *r)
{
    for (int k = 0; k < r->n_lent; k++) {
        const oly_row_operand *o = r->lent[k].operand;
        uintptr_t low[2], high[2];
        range_of(plan, base, &r->device[r->lent[k].reader].rows, o, &low[0], &high[0]);
        for (int d = 0; d < plan->n_devices; d++) {
            const device_rows *v = &r->device[d];
            for (int i = 0; i < v->n_operands && (base || d == oly_cell_device(plan, o->cell)); i++) {
                if (!v->operand[i].writes)
                    continue;
                range_of(plan, base, &v->rows, &v->operand[i], &low[1], &high[1]);
                if (low[0] < high[1] && low[1] < high[0])
                    return true;
            }
        }
    }
    return false;
}

/* -- preparing ---------------------------------------------------------------------------------------------------------- */

static oly_status find_lent(oly_plan *plan, oly_row_blocks *r)
{
    int most = 0, n = 0;
    for (int d = 0; d < plan->n_devices; d++)
        most += r->device[d].n_operands;
    lent *found = OLY_ARENA_NEW(&plan->arena, lent, most + 1);
    if (!found)
        return oly_out_of_memory(0, "a program");
    for (int d = 0; d < plan->n_devices; d++)
        for (int i = 0; i < r->device[d].n_operands; i++) {
            const oly_row_operand *o = &r->device[d].operand[i];
            if (oly_cell_device(plan, o->cell) != d)
                found[n++] = (lent){d, o};
        }
    r->n_lent = n;
    r->lent = found;
    return OLY_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Bytes that the chain uses of a row, each memory counted once. */
static int64_t used_of_row(const device_rows *v)
{
    int64_t bytes = 0;
    for (int i = 0; i < v->n_operands; i++) {
        bool known = false;
        for (int j = 0; j < i; j++)
            known = known || v->operand[j].cell == v->operand[i].cell;
        bytes += known ? 0 : oly_row_used(&v->rows, &v->operand[i]);
    }
    return bytes > 0 ? bytes : 1;
}

static void divide(device_rows *v)
{
    int64_t rows = oly_rows_count(&v->rows), used = used_of_row(v), wanted = BLOCK_BYTES / used, elements = 1;
    for (int i = 0; i < v->n_operands; i++)
        elements = v->operand[i].elements > elements && !v->operand[i].whole ? v->operand[i].elements : elements;
    if (wanted * elements < STEP_ELEMENTS)
        wanted = smaller(STEP_ELEMENTS / elements, MOST_BLOCK_BYTES / used);
    wanted = smaller(wanted < 1 ? 1 : wanted, rows / LEAST_BLOCKS > 0 ? rows / LEAST_BLOCKS : 1);
    v->below = 1;
    v->split = v->rows.lead - 1;
    while (v->split > 0 && v->below * v->rows.extent[v->split] <= wanted)
        v->below *= v->rows.extent[v->split--];
    int64_t extent = v->rows.extent[v->split], length = wanted / v->below > 0 ? wanted / v->below : 1;
    v->ranges = (extent + length - 1) / length;
    v->most = (extent + v->ranges - 1) / v->ranges * v->below;
    v->outer = 1;
    for (int d = 0; d < v->split; d++)
        v->outer *= v->rows.extent[d];
}

/* The operands of all steps on a device. */
static oly_status list_operands(oly_plan *plan, const oly_step *steps, int n, int device, device_rows *v)
{
    oly_row_operand *all = OLY_ARENA_NEW(&plan->arena, oly_row_operand, n * OLY_ROW_OPERANDS);
    if (!all)
        return oly_out_of_memory(0, "a program");
    int each[OLY_ROW_STEPS];
    for (int i = 0; i < n; i++)
        v->n_operands += each[i] = oly_row_operands_of(&steps[i], device, &v->rows, all + v->n_operands);
    v->operand = all;
    v->sparse = oly_sparse_rows_of(steps, n, device, each);
    oly_gathered_sum found[OLY_ROW_STEPS], *sums;
    for (int k = 0; k < n && v->rows.lead == 1 && !v->rows.columns; k++)
        v->n_sums += oly_gathered_sum_of(plan, steps, n, k, device, each, &found[v->n_sums]);
    sums = OLY_ARENA_NEW(&plan->arena, oly_gathered_sum, v->n_sums + 1);
    if (!sums)
        return oly_out_of_memory(0, "a program");
    memcpy(sums, found, sizeof *sums * (size_t)v->n_sums);
    v->sums = sums;
    return OLY_OK;
}

static bool is_own(const oly_plan *plan, const oly_step *first, const oly_step *last, int slot)
{
    const oly_slot *s = &plan->slots[slot];
    return s->kind == OLY_SLOT_SCRATCH && !s->claimed && s->first >= first->number && s->last <= last->number;
}

/* Columns: does the slot have whole lines of them, one after the other? */
static bool has_lines(const device_rows *v, const oly_row_operand *o)
{
    int64_t line = v->rows.extent[0] * o->bytes;
    return o->stride[0] == o->bytes && o->line % line == 0 && o->offset % line == 0;
}

/* Is every operand of the slot in rows that follow each other, the first one written, and its memory that of no other? What is only read was
 * written before the chain, even if its life begins with the chain's: in the graph around a branch. */
static bool is_apart(const oly_plan *plan, const device_rows *v, int slot)
{
    bool written = false;
    for (int i = 0; i < v->n_operands; i++) {
        const oly_row_operand *o = &v->operand[i];
        if (oly_cell_slot(plan, o->cell) != slot)
            continue;
        written = written || o->writes;
        bool in_order = v->rows.columns ? has_lines(v, o) : oly_row_bytes(&v->rows, o) > 0;
        if (!written || !in_order || !oly_rows_match(&v->rows, o, o, 0))
            return false;
        for (int j = 0; j < v->n_operands; j++)
            if (overlap(plan, NULL, &v->rows, o, &v->operand[j]))
                return false;
    }
    return true;
}

/* The slots of which blocks take turns in the same memory. */
static oly_status find_own(oly_plan *plan, const oly_step *first, const oly_step *last, device_rows *devices,
                           oly_row_blocks *made)
{
    int *own = OLY_ARENA_NEW(&plan->arena, int, made->n *OLY_ROW_OPERANDS);
    if (!own)
        return oly_out_of_memory(0, "a program");
    for (int d = 0; d < plan->n_devices; d++)
        for (int i = 0; i < devices[d].n_operands; i++) {
            int slot = oly_cell_slot(plan, devices[d].operand[i].cell);
            bool use = is_own(plan, first, last, slot);
            for (int k = 0; k < made->n_own; k++)
                use = use && own[k] != slot;
            for (int e = 0; use && e < plan->n_devices; e++)
                use = is_apart(plan, &devices[e], slot);
            if (use)
                own[made->n_own++] = slot;
        }
    made->own = own;
    return OLY_OK;
}

static bool is_in(const oly_row_blocks *r, int slot)
{
    for (int k = 0; k < r->n_own; k++)
        if (r->own[k] == slot)
            return true;
    return false;
}

/* Does the chain end with a scatter? */
static bool ends_with_sink(const oly_plan *plan, const oly_step *last)
{
    bool sinks = false;
    for (int d = 0; d < plan->n_devices; d++)
        sinks = sinks || oly_is_sink(last, d);
    return sinks;
}

/* Would some threads have nothing to do if each device had one? */
static bool leaves_threads(const oly_plan *plan, const oly_step *last)
{
    int computing = 0;
    for (int d = 0; d < plan->n_devices; d++)
        computing += oly_is_sink(last, d);
    return computing < oly_workers_count();
}

static bool can_write_columns(const oly_plan *plan, const oly_step *first, const oly_row_blocks *r)
{
    for (int k = 0; k < r->n && r->kind == OLY_ROWS_LAST; k++)
        for (int d = 0; d < plan->n_devices; d++)
            if (oly_writes_lines(&first[k], d) && !is_in(r, oly_cell_slot(plan, first[k].local.device[d].out_base)))
                return false;
    return true;
}

oly_status oly_row_blocks_prepare(oly_plan *plan, const oly_step *last, const oly_row_blocks **to)
{
    const oly_step *first = last - (last->chain - 1);
    *to = NULL;
    for (const oly_step *s = first; s <= last; s++)
        if (s->prepared->repeats)
            return OLY_OK;
    oly_row_blocks *made = OLY_ARENA_NEW(&plan->arena, oly_row_blocks, 1);
    device_rows *devices = OLY_ARENA_NEW(&plan->arena, device_rows, plan->n_devices + 1);
    if (!made || !devices)
        return oly_out_of_memory(0, "a program");
    bool sinks = ends_with_sink(plan, last);
    if (sinks && leaves_threads(plan, last))
        return OLY_OK;
    *made = (oly_row_blocks){
        .n = last->chain, .sinks = sinks, .kind = last->chained_by, .turns = MOST_TURNS, .device = devices};
    for (int d = 0; d < plan->n_devices; d++) {
        if (!oly_rows_of_steps(first, made->n, d, made->kind, &devices[d].rows))
            continue;
        OLY_TRY(list_operands(plan, first, made->n, d, &devices[d]));
        if (!matches(plan, NULL, &devices[d]))
            return OLY_OK;
        divide(&devices[d]);
        made->turns = (int)smaller(made->turns, oly_rows_count(&devices[d].rows) / devices[d].most);
    }
    OLY_TRY(find_lent(plan, made));
    if (writes_lent(plan, NULL, made))
        return OLY_OK;
    OLY_TRY(find_own(plan, first, last, devices, made));
    *to = can_write_columns(plan, first, made) ? made : NULL;
    return OLY_OK;
}

void oly_row_blocks_traffic(const oly_plan *plan, const oly_row_blocks *r, int device, double *read, double *written)
{
    const device_rows *v = &r->device[device];
    *read = *written = 0;
    for (int i = 0; i < v->n_operands; i++) {
        const oly_row_operand *o = &v->operand[i];
        bool known = false, own = is_in(r, oly_cell_slot(plan, o->cell));
        for (int j = 0; j < i; j++)
            known = known || (v->operand[j].cell == o->cell && v->operand[j].writes == o->writes);
        if (!known && !own)
            *(o->writes ? written : read) += o->whole
                                                 ? (double)(o->high - o->low)
                                                 : (double)oly_row_used(&v->rows, o) * (double)oly_rows_count(&v->rows);
    }
}

/* -- running ------------------------------------------------------------------------------------------------------------- */

void oly_row_turns_begin(void *const *base, const oly_plan *plan, const oly_row_blocks *r, oly_row_turns *turns)
{
    atomic_store(&turns->taken, 0);
    turns->in_order = writes_lent(plan, base, r);
    for (int d = 0; d < plan->n_devices && !turns->in_order; d++)
        turns->in_order = r->device[d].n_operands > 0 && !matches(plan, base, &r->device[d]);
    oly_count(&oly_device_counted.row_chains, 1);
    oly_count(&oly_device_counted.rows_in_order, turns->in_order);
}

/* A part of the memory that nobody uses. With more threads than parts, some wait for others. */
static int take_turn(oly_row_turns *turns, int most)
{
    uint64_t all = most >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << most) - 1, taken = atomic_load(&turns->taken);
    for (;;) {
        uint64_t free = all & ~taken;
        if (free == 0) {
            sched_yield();
            taken = atomic_load(&turns->taken);
        } else if (atomic_compare_exchange_weak(&turns->taken, &taken, taken | (free & -free))) {
            return __builtin_ctzll(free);
        }
    }
}

/* Some rows: a range of one dimension at one index of each before it. */
typedef struct row_block {
    void *const *base;
    const oly_row_blocks *chain;
    const device_rows *v;
    int device;
    int64_t low[OLY_MAX_RANK], extent[OLY_MAX_RANK]; /* [lead] */
    int64_t first, n;                                /* rows */
    int64_t turn;                                    /* in memory that blocks take turns in; -1: none is used so */
} row_block;

static void place_block(row_block *b, int block)
{
    const device_rows *v = b->v;
    int64_t outer = block / v->ranges, range = block % v->ranges, all = v->rows.extent[v->split];
    for (int d = 0; d < v->rows.lead; d++) {
        b->low[d] = 0;
        b->extent[d] = v->rows.extent[d];
    }
    b->low[v->split] = all * range / v->ranges;
    b->extent[v->split] = all * (range + 1) / v->ranges - b->low[v->split];
    b->first = (outer * all + b->low[v->split]) * v->below;
    b->n = b->extent[v->split] * v->below;
    for (int d = v->split - 1; d >= 0; d--) {
        b->low[d] = outer % v->rows.extent[d];
        b->extent[d] = 1;
        outer /= v->rows.extent[d];
    }
}

/* Is the operand in memory that blocks take turns in? */
static bool takes_turns(const row_block *b, const oly_plan *plan, const oly_row_operand *o)
{
    return b->turn >= 0 && is_in(b->chain, oly_cell_slot(plan, o->cell));
}

/* Where the block's columns of an operand begin. In memory that blocks take turns in they are side by side, lines as short as the block. */
static char *column_of(const row_block *b, const oly_plan *plan, const oly_row_operand *o)
{
    char *at = address(plan, b->base, o);
    if (!takes_turns(b, plan, o))
        return at + b->low[0] * o->stride[0];
    int64_t line = b->v->rows.extent[0] * o->bytes;
    int64_t lines = (int64_t)plan->slots[oly_cell_slot(plan, o->cell)].device_bytes[b->device] / line;
    return at - o->offset + b->turn * b->v->most * o->bytes * lines + o->offset / line * b->n * o->bytes;
}

/* Where the block's rows of an operand begin. */
static char *row_of(const row_block *b, const oly_plan *plan, const oly_row_operand *o)
{
    if (b->chain->kind == OLY_ROWS_LAST)
        return column_of(b, plan, o);
    uintptr_t at = (uintptr_t)address(plan, b->base, o);
    if (takes_turns(b, plan, o))
        at += (uintptr_t)((b->turn * b->v->most - b->first) * oly_row_bytes(&b->v->rows, o));
    for (int d = 0; d < b->v->rows.lead; d++)
        at += (uintptr_t)(b->low[d] * o->stride[d]);
    return (char *)at;
}

/* The strides of the block, of `rank` dimensions, in elements. */
static void strides_of(const row_block *b, const oly_plan *plan, const oly_row_operand *o, int rank,
                       const int64_t *stride, int64_t *to)
{
    bool shorter = b->chain->kind == OLY_ROWS_LAST && takes_turns(b, plan, o);
    for (int d = 0; d < rank; d++)
        to[d] = shorter && d + 1 < rank ? stride[d] / b->v->rows.extent[0] * b->n : stride[d];
}

static void run_tile(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    const oly_tile_work *w = &s->tile.device[b->device];
    const oly_tile_program *p = &s->tile.program;
    oly_tile_operand operands[OLY_ROW_OPERANDS];
    oly_tile_box box = w->box;
    int to = b->chain->kind == OLY_ROWS_LAST ? box.rank - 1 : 0;
    for (int d = 0; d < b->v->rows.lead; d++) {
        box.origin[to + d] += b->low[d];
        box.extent[to + d] = b->extent[d];
    }
    for (int k = 0; k < p->n_loads + p->n_stores; k++) {
        const oly_place *place = k < p->n_loads ? &w->loads[k] : &w->stores[k - p->n_loads];
        operands[k].base = row_of(b, plan, &o[k]);
        strides_of(b, plan, &o[k], box.rank, place->stride, operands[k].stride);
    }
    (s->tile.compiles ? oly_group_run : oly_tile_run)(p, &box, operands, operands + p->n_loads, 0, 1);
}

/* Results are numbered, and elements addressed, as in the whole box, so that they are combined in the same order. */
static void run_reduction(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    const device_rows *v = b->v;
    oly_reduce_task t = s->reduce.device[b->device].task;
    bool columns = b->chain->kind == OLY_ROWS_LAST;
    int64_t each = 1; /* results of a row */
    for (int d = 0; d < t.rank; d++)
        each *= t.reduced[d] || (columns ? d == t.rank - 1 : d < v->rows.lead) ? 1 : t.extent[d];
    strides_of(b, plan, &o[0], t.rank, t.stride, t.stride);
    uintptr_t in = (uintptr_t)row_of(b, plan, &o[0]), out = (uintptr_t)row_of(b, plan, &o[1]);
    for (int d = 0; d < v->rows.lead; d++)
        in -= (uintptr_t)(b->low[d] * o[0].stride[d]);
    if (!columns) {
        int64_t first = b->first * each;
        oly_reduce_results(&t, (const void *)in, (void *)(out - (uintptr_t)(first * o[1].bytes)), first,
                           first + b->n * each);
        return;
    }
    int64_t line = (takes_turns(b, plan, &o[1]) ? b->n : v->rows.extent[0]) * o[1].bytes;
    for (int64_t k = 0; k < each; k++) {
        int64_t first = k * v->rows.extent[0] + b->first;
        oly_reduce_results(&t, (const void *)in, (void *)(out + (uintptr_t)(k * line - first * o[1].bytes)), first,
                           first + b->n);
    }
}

/* In order, the results of the columns would not be side by side: the first block looks all up. */
static void run_lookup(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    const oly_local_work *w = &s->local.device[b->device];
    oly_local_task t = w->task;
    oly_local_operand in[OLY_ROW_OPERANDS];
    const void *from[OLY_ROW_OPERANDS];
    bool columns = b->chain->kind == OLY_ROWS_LAST,
         all = columns && !takes_turns(b, plan, &o[t.n_in]) && oly_writes_lines(s, b->device);
    if (all && b->first > 0)
        return;
    memcpy(in, t.in, sizeof *in * (size_t)t.n_in);
    t.in = in;
    for (int k = 0; k <= t.n_in; k++) {
        oly_local_operand *x = k < t.n_in ? &in[k] : &t.out;
        if (k < t.n_in)
            from[k] = all || k == 0 ? address(plan, b->base, &o[k]) : row_of(b, plan, &o[k]);
        if (all || k == 0)
            continue;
        if (k < t.n_in)
            strides_of(b, plan, &o[k], x->rank, x->stride, x->stride);
        x->extent[columns ? x->rank - 1 : 0] = b->n;
    }
    int64_t dense = 1;
    for (int d = t.out.rank - 1; d >= 0; d--) {
        t.out.stride[d] = dense;
        dense *= t.out.extent[d];
    }
    oly_local_run(&t, from, all ? address(plan, b->base, &o[t.n_in]) : row_of(b, plan, &o[t.n_in]), NULL, 0, 0, 1);
}

/* The first block begins the result, and the others go on with it. */
static void run_scatter(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    const oly_local_work *w = &s->local.device[b->device];
    oly_local_task t = w->task;
    oly_local_operand in[OLY_ROW_OPERANDS];
    const void *from[OLY_ROW_OPERANDS];
    void *out = address(plan, b->base, &o[t.n_in]);
    memcpy(in, t.in, sizeof *in * (size_t)t.n_in);
    t.in = in;
    for (int k = 1; k < t.n_in; k++) {
        from[k] = row_of(b, plan, &o[k]);
        in[k].extent[0] = b->n;
    }
    from[0] = w->in[0].base < 0 ? NULL : address(plan, b->base, &o[0]);
    if (b->first > 0) {
        in[0] = t.out;
        from[0] = out;
        t.partial = false;
    }
    oly_local_run(&t, from, out, NULL, 0, 0, 1);
}

/* What the scatter begins with, before the first block. */
static void run_fill(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    const oly_tile_work *w = &s->tile.device[b->device];
    oly_tile_operand to = {.base = address(plan, b->base, o)};
    if (b->first > 0)
        return;
    memcpy(to.stride, w->stores[0].stride, sizeof to.stride);
    oly_tile_run(&s->tile.program, &w->box, NULL, &to, 0, 1);
}

static int operands_of(const oly_step *s, int device)
{
    switch (s->kind) {
    case OLY_STEP_REDUCE: return 2;
    case OLY_STEP_LOCAL: return s->local.device[device].task.n_in + 1;
    default: return s->tile.program.n_loads + s->tile.program.n_stores;
    }
}

static void run_step(const row_block *b, const oly_plan *plan, const oly_step *s, const oly_row_operand *o)
{
    (s->kind == OLY_STEP_REDUCE  ? run_reduction
     : s->kind == OLY_STEP_LOCAL ? (oly_is_sink(s, b->device) ? run_scatter : run_lookup)
     : s->begins_next            ? run_fill
                                 : run_tile)(b, plan, s, o);
}

/* The step's operands among those of the chain. */
static const oly_row_operand *operands_at(const row_block *b, const oly_step *first, int step)
{
    const oly_row_operand *o = b->v->operand;
    for (int k = 0; k < step; k++)
        o += operands_of(&first[k], b->device);
    return o;
}

static bool are_apart(const void *a, int64_t n, const void *b, int64_t m)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return first + (uintptr_t)n <= second || second + (uintptr_t)m <= first;
}

/* The three steps of the sum in one pass, or one after the other where a position is outside, or the results take the memory of positions or
 * weights, which are read again for each part of a line. */
static void sum_gathered(const row_block *b, const oly_plan *plan, const oly_step *first, const oly_gathered_sum *sum)
{
    const oly_row_operand *o = b->v->operand;
    const oly_local_operand *x = &first[sum->lookup].local.device[b->device].task.in[0];
    const oly_gathered_sum_task t = {.dtype = x->dtype,
                                     .n = b->n,
                                     .width = sum->width,
                                     .line = sum->line,
                                     .column = (const int32_t *)(const void *)row_of(b, plan, &o[sum->column]),
                                     .value = sum->value < 0 ? NULL : row_of(b, plan, &o[sum->value]),
                                     .x = address(plan, b->base, &o[sum->x]),
                                     .x_row = x->stride[0],
                                     .n_x = x->extent[0],
                                     .y = row_of(b, plan, &o[sum->out])};
    int64_t element = o[sum->out].bytes, results = t.n * t.line * element, positions = t.n * t.width;
    bool done = are_apart(t.y, results, t.column, positions * (int64_t)sizeof *t.column) &&
                (!t.value || are_apart(t.y, results, t.value, positions * element)) && oly_gathered_sum_run(&t);
    oly_count(&oly_device_counted.gathered_sums, done);
    const int steps[] = {sum->lookup, sum->product, sum->sum};
    for (int k = 0; k < 3 && !done; k++)
        if (steps[k] >= 0)
            run_step(b, plan, &first[steps[k]], operands_at(b, first, steps[k]));
}

/* The sum of what is looked up that the step is part of, if what lies in between is in memory that only the chain uses; NULL: none. */
static const oly_gathered_sum *sum_with(const row_block *b, const oly_plan *plan, int step)
{
    for (int k = 0; k < b->v->n_sums; k++) {
        const oly_gathered_sum *sum = &b->v->sums[k];
        if (step == sum->lookup || step == sum->product || step == sum->sum) {
            const oly_row_operand *o = b->v->operand;
            bool own = takes_turns(b, plan, &o[sum->gathered]) &&
                       (sum->multiplied < 0 || takes_turns(b, plan, &o[sum->multiplied]));
            return own ? sum : NULL;
        }
    }
    return NULL;
}

static void run_steps(const row_block *b, const oly_plan *plan, const oly_step *first, int begin, int end)
{
    const oly_row_operand *o = b->v->operand;
    for (int k = 0; k < end; k++) {
        const oly_gathered_sum *sum = k >= begin ? sum_with(b, plan, k) : NULL;
        if (sum && k == sum->sum)
            sum_gathered(b, plan, first, sum);
        else if (k >= begin && !sum)
            run_step(b, plan, &first[k], o);
        o += operands_of(&first[k], b->device);
    }
}

/* The end of a chain that multiplies a sparse matrix with a vector, after the first block; false: nothing is done. */
static bool multiply_sparse(const row_block *b, const oly_plan *plan, const oly_step *first)
{
    const oly_sparse_rows *r = &b->v->sparse;
    const oly_row_operand *o = b->v->operand;
    const oly_local_operand *x = &first[r->lookup].local.device[b->device].task.in[0],
                            *y = &first[b->chain->n - 1].local.device[b->device].task.out;
    if (!takes_turns(b, plan, &o[r->gathered]) || !takes_turns(b, plan, &o[r->product]))
        return false;
    return oly_sparse_run(&(oly_sparse_task){.dtype = y->dtype,
                                             .n = b->n,
                                             .row = (const int32_t *)(const void *)row_of(b, plan, &o[r->row]),
                                             .column = (const int32_t *)(const void *)row_of(b, plan, &o[r->column]),
                                             .value = row_of(b, plan, &o[r->value]),
                                             .x = address(plan, b->base, &o[r->x]),
                                             .y = address(plan, b->base, &o[r->out]),
                                             .low = y->origin[0],
                                             .high = y->origin[0] + y->extent[0],
                                             .n_x = x->extent[0]});
}

static void run_block(void *const *base, const oly_plan *plan, const oly_step *last, int device, int block,
                      oly_row_turns *turns)
{
    const oly_row_blocks *chain = last->prepared->blocks;
    const oly_step *first = last - (chain->n - 1);
    row_block b = {.base = base, .chain = chain, .v = &chain->device[device], .device = device, .turn = -1};
    place_block(&b, oly_row_blocks_backwards && !chain->sinks ? (int)(b.v->outer * b.v->ranges) - 1 - block : block);
    if (turns->in_order) {
        run_steps(&b, plan, first, turns->only, turns->only + 1);
        return;
    }
    if (chain->n_own)
        b.turn = take_turn(turns, chain->turns);
    int end = b.first > 0 && b.v->sparse.lookup >= 0 ? b.v->sparse.lookup : chain->n;
    run_steps(&b, plan, first, 0, end);
    if (end < chain->n && !multiply_sparse(&b, plan, first))
        run_steps(&b, plan, first, end, chain->n);
    if (chain->n_own)
        atomic_fetch_and(&turns->taken, ~(UINT64_C(1) << b.turn));
}

void oly_run_row_block(void *const *base, const oly_plan *plan, const oly_step *last, int device, int block,
                       oly_row_turns *turns)
{
    const oly_row_blocks *chain = last->prepared->blocks;
    const device_rows *v = &chain->device[device];
    if (!chain->sinks)
        run_block(base, plan, last, device, block, turns);
    for (int k = 0; chain->sinks && k < v->outer * v->ranges; k++)
        run_block(base, plan, last, device, k, turns);
}
