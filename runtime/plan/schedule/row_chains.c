/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of rows: consecutive steps that are reductions of the last dimensions and elementwise groups over the same rows (softmax, layer
 * normalisation, variance) may be computed one block of rows after the other, so that a row is read from memory once and what only they read
 * stays in cache. The last step is given the length of the chain (oly_step.chain); an executor may run its steps together if memory is used
 * so that it can; one that does not runs one step after the other. Values and bits are the same.
 *
 * So may lookups (gather, searchsorted) with what computes their positions and what reads their results: for some positions after the other,
 * so that what has been looked up is used while it is in cache. Their rows are the first dimension of the positions (neighbours of
 * particles), or the last one (fields of an unstructured mesh: columns).
 *
 * A chain may end with a scatter, whose positions or updates the others compute: its positions come in their order, so one thread computes
 * the whole chain, which executors do where each device has one thread. Steps before the scatter that are a chain by themselves are marked, too, for
 * those that do not.
 *
 * The executor for CPUs does so (run/row_blocks.c); that for GPUs finds its chains itself (run/cuda/row_chains.c). Called by plan.c, after
 * fused_reductions.c and before memory is assigned. */
#include "plan/schedule/schedule.h"
#include "core/facts.h"
#include "core/optimisation.h"
#include "plan/model/gathered_sums.h"
#include "plan/model/row_operands.h"
#include "plan/schedule/fused_groups.h"

enum {
    LONG_ROW = 64,            /* elements: shorter ones are not worth it */
    MOST_ROW_BYTES = 1 << 19, /* that the steps use of one row: more do not stay in cache */
    LEAST_ROWS = 32,          /* so that there is work for threads; 2 where tests ask for chains of small arrays */
    SUMS_PAY = 32, /* so many times fewer bytes are enough where a sum of what is looked up becomes one pass */
};

int64_t oly_row_chains_least = 1 << 21;

typedef struct chain {
    oly_row_kind kind;
    bool sinks; /* a scatter may be its last step */
    oly_rows rows;
    int n;                    /* steps */
    int n_operands, n_before; /* of all steps, and of those before the last */
    oly_row_operand operand[OLY_ROW_STEPS * OLY_ROW_OPERANDS];
    int8_t step[OLY_ROW_STEPS * OLY_ROW_OPERANDS]; /* whose operand it is */
} chain;

/* -- which steps --------------------------------------------------------------------------------------------------------- */

static bool looks_up(const oly_plan *plan, const oly_step *s)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (oly_looks_up(s, d))
            return true;
    return false;
}

static bool is_sink(const oly_plan *plan, const oly_step *s)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (oly_is_sink(s, d))
            return true;
    return false;
}

static bool may_join(const oly_plan *plan, const oly_step *s, oly_row_kind kind)
{
    bool joins =
        s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE || (!oly_rows_are_reduced(kind) && looks_up(plan, s));
    return joins && !s->exchange && !s->second && !s->awaited;
}

static bool has_work(const oly_step *s, int device)
{
    switch (s->kind) {
    case OLY_STEP_TILE: return s->tile.device[device].has_work;
    case OLY_STEP_REDUCE: return s->reduce.device[device].has_work;
    default: return s->local.device[device].has_work;
    }
}

/* Steps from k on that may join a chain, at most as many as it may have. */
static int candidates(const oly_plan *plan, const oly_block *b, int k, const chain *c)
{
    int n = 0;
    while (n < OLY_ROW_STEPS && k + n < b->n_steps && !is_sink(plan, &b->steps[k + n]) &&
           may_join(plan, &b->steps[k + n], c->kind))
        n++;
    int last = n;
    while (k + last < b->n_steps && b->steps[k + last].begins_next)
        last++;
    const oly_step *s = k + last < b->n_steps ? &b->steps[k + last] : NULL;
    bool ends = c->sinks && last < OLY_ROW_STEPS && s && s->kind == OLY_STEP_LOCAL && is_sink(plan, s) &&
                !s->exchange && !s->second && !s->awaited;
    return ends ? last + 1 : n;
}

/* Does the new operand use what the others write, or they what it writes, only in the same rows? What is only read may be another device's, which
 * has it from before the chain. */
static bool joins(const oly_plan *plan, const chain *c, const oly_row_operand *o, int device)
{
    if (o->cell < 0 || (o->writes && oly_cell_device(plan, o->cell) != device))
        return false;
    for (int k = 0; k < c->n_before; k++) {
        const oly_row_operand *with = &c->operand[k];
        if (oly_cell_slot(plan, with->cell) == oly_cell_slot(plan, o->cell) && (with->writes || o->writes) &&
            !(with->sink && o->sink) &&
            (with->cell != o->cell || !oly_rows_match(&c->rows, with, o, o->offset - with->offset)))
            return false;
    }
    return true;
}

static bool add_step(const oly_plan *plan, chain *c, const oly_step *s, int device)
{
    oly_row_operand *operands = &c->operand[c->n_operands];
    int n = has_work(s, device) ? oly_row_operands_of(s, device, &c->rows, operands) : 0;
    c->n_before = c->n_operands;
    for (int k = 0; k < n; k++) {
        if (!joins(plan, c, &operands[k], device))
            return false;
        c->step[c->n_operands++] = (int8_t)c->n;
    }
    c->n += n > 0;
    return n > 0;
}

static void find_chain(const oly_plan *plan, const oly_block *b, int k, int device, chain *c)
{
    int n = candidates(plan, b, k, c);
    c->n = c->n_operands = c->n_before = 0;
    if (!oly_rows_of_steps(&b->steps[k], n, device, c->kind, &c->rows) ||
        oly_rows_count(&c->rows) < (oly_row_chains_least > 1 ? LEAST_ROWS : 2))
        return;
    while (c->n < n && add_step(plan, c, &b->steps[k + c->n], device))
        ;
}

/* -- is it worth it? ----------------------------------------------------------------------------------------------------- */

/* Is one of the two the group that the other, a reduction, computes by itself? */
static bool are_fused(const oly_step *group, const oly_step *reduce)
{
    return reduce->kind == OLY_STEP_REDUCE && reduce->reduce.operand == group;
}

/* Is a sum of what is looked up among the first n steps? */
static bool has_gathered_sum(const oly_plan *plan, const oly_step *first, int n, int device, const chain *c)
{
    int operands[OLY_ROW_STEPS] = {0};
    oly_gathered_sum sum;
    for (int i = 0; i < c->n_operands && c->step[i] < n; i++)
        operands[c->step[i]]++;
    for (int k = 1; k < n && c->kind == OLY_ROWS_FIRST; k++)
        if (oly_gathered_sum_of(plan, first, n, k, device, operands, &sum))
            return true;
    return false;
}

/* Do two of the first n steps use the same long rows, and would these otherwise leave the cache in between? Rows of lookups may be short. */
static bool pays(const oly_plan *plan, const oly_block *b, int k, int n, int device, const chain *c)
{
    int64_t all = oly_row_chains_least;
    if (has_gathered_sum(plan, &b->steps[k], n, device, c))
        all /= SUMS_PAY;
    int64_t bytes = 0, least = oly_rows_are_reduced(c->kind) ? LONG_ROW : 1;
    bool again = false;
    for (int i = 0; i < c->n_operands && c->step[i] < n; i++) {
        const oly_row_operand *o = &c->operand[i];
        bool known = false;
        if (o->elements < least || o->whole)
            continue;
        for (int j = 0; j < i; j++) {
            const oly_row_operand *before = &c->operand[j];
            if (before->cell != o->cell || before->elements < least || before->whole)
                continue;
            known = true;
            again =
                again || (c->step[j] != c->step[i] && !are_fused(&b->steps[k + c->step[j]], &b->steps[k + c->step[i]]));
        }
        bytes += known ? 0 : oly_row_used(&c->rows, o);
    }
    return again && bytes <= MOST_ROW_BYTES && bytes * oly_rows_count(&c->rows) >= all;
}

/* Are the results of a lookup of columns where its kernel can write them? */
static bool is_kept_apart(const oly_plan *plan, const oly_step *lookup, const oly_step *last)
{
    for (int d = 0; d < plan->n_devices; d++) {
        if (!oly_writes_lines(lookup, d))
            continue;
        const oly_slot *s = &plan->slots[oly_cell_slot(plan, lookup->local.device[d].out_base)];
        if (s->kind != OLY_SLOT_SCRATCH || s->claimed || s->last > last->number)
            return false;
    }
    return true;
}

/* Of the first n steps, those before the first one whose group, or whose taker, is not among them: the two are computed together, or neither is
 * (fused_groups.h). */
static int without_divided(const oly_plan *plan, const oly_step *first, int n, oly_row_kind kind)
{
    for (int j = 0; j < n; j++) {
        const oly_step *s = &first[j];
        bool divided = false;
        if (s->kind == OLY_STEP_TILE)
            divided = s->taken_by > first[n - 1].number;
        else if (s->kind == OLY_STEP_REDUCE)
            divided = s->reduce.operand && s->reduce.operand < first;
        else
            divided = kind == OLY_ROWS_LAST && !is_kept_apart(plan, s, &first[n - 1]);
        if (divided)
            return without_divided(plan, first, j, kind); /* others may have been taken by this one */
    }
    return n;
}

/* -- the pass ------------------------------------------------------------------------------------------------------------- */

/* What has few elements a row keeps its memory from the chain's begin to its end: it would otherwise be put where the rows of another value have just
 * been, and the next large value, which could have taken exactly the place of these, beside it. Large values take each other's place if
 * their rows are the same (the executor looks); those of lookups, and of reductions of different dimensions, seldom are. */
static void keep(oly_plan *plan, const chain *c, int n, int begin, int end)
{
    for (int i = 0; i < c->n_operands && c->step[i] < n; i++) {
        oly_slot *s = &plan->slots[oly_cell_slot(plan, c->operand[i].cell)];
        if (s->kind != OLY_SLOT_SCRATCH || (c->kind == OLY_ROWS_KEPT && c->operand[i].elements >= LONG_ROW))
            continue;
        s->last = s->last < end ? end : s->last;
        s->early = s->first - s->early > begin ? s->first - begin : s->early;
    }
}

/* How many steps from k on are a chain of this kind on all devices of this process that compute them; less than 2: none. */
static int length_at(const oly_plan *plan, const oly_block *b, int k, chain *c)
{
    int n = candidates(plan, b, k, c);
    bool computes = false;
    for (int d = 0; d < plan->n_devices && n > 1; d++) {
        bool works = false;
        for (int j = k; j < k + n; j++) {
            works = works || has_work(&b->steps[j], d);
            if (has_work(&b->steps[j], d) != has_work(&b->steps[k], d))
                n = j - k;
        }
        if (!works)
            continue;
        find_chain(plan, b, k, d, c);
        n = c->n < n ? c->n : n;
        n = without_divided(plan, &b->steps[k], n, c->kind);
        while (n > 1 && !pays(plan, b, k, n, d, c))
            n = without_divided(plan, &b->steps[k], n - 1, c->kind);
        if (n < 2)
            return 0;
        computes = true;
    }
    return computes ? n : 0;
}

static bool has_lookups(const oly_plan *plan, const oly_step *first, int n)
{
    bool any = false;
    for (int j = 0; j < n; j++)
        any = any || looks_up(plan, &first[j]);
    return any;
}

/* The length of the chain that ends with a scatter; 0: there is none. */
static int length_to_sink(const oly_plan *plan, const oly_block *b, int k)
{
    chain c = {.kind = OLY_ROWS_FIRST, .sinks = true};
    bool enabled = oly_enabled(OLY_OPTIMISATION_SCATTER_CHAINS) && oly_facts_now()->one_memory;
    int n = enabled ? length_at(plan, b, k, &c) : 0;
    return n > 1 && b->steps[k + n - 1].kind == OLY_STEP_LOCAL && is_sink(plan, &b->steps[k + n - 1]) ? n : 0;
}

/* The longest chain of any kind from k on, without a scatter; chains without lookups are by the rows that reductions keep. */
static int longest_at(const oly_plan *plan, const oly_block *b, int k, oly_row_kind *kind)
{
    int longest = 0;
    for (int by = OLY_ROWS_KEPT; by < OLY_N_ROW_KINDS; by++) {
        chain c = {.kind = (oly_row_kind)by};
        bool reduced = oly_rows_are_reduced(c.kind);
        oly_optimisation name = reduced ? OLY_OPTIMISATION_ROW_CHAINS : OLY_OPTIMISATION_LOOKUP_CHAINS;
        bool enabled = oly_enabled(name) && (reduced || oly_facts_now()->one_memory);
        int n = enabled ? length_at(plan, b, k, &c) : 0;
        if (n > longest && (reduced || has_lookups(plan, &b->steps[k], n))) {
            longest = n;
            *kind = (oly_row_kind)by;
        }
    }
    return longest;
}

static void make_chain(oly_plan *plan, const oly_block *b, int k, int n, oly_row_kind kind)
{
    oly_step *first = &b->steps[k];
    for (int j = 0; j < n; j++)
        first[j].chained = true;
    first[n - 1].chain = n;
    first[n - 1].chained_by = kind;
    for (int d = 0; d < plan->n_devices; d++)
        if (has_work(first, d)) {
            chain c = {.kind = kind, .sinks = is_sink(plan, &first[n - 1])};
            find_chain(plan, b, k, d, &c);
            keep(plan, &c, n, first->number, first[n - 1].number);
        }
}

static bool is_slot_of(const oly_plan *plan, int cell, int slot)
{
    return cell >= 0 && oly_cell_slot(plan, cell) == slot;
}

/* Is the slot what a device's scatter writes, or its updates? */
static bool is_used_by(const oly_plan *plan, const oly_local_work *scatter, int slot)
{
    return is_slot_of(plan, scatter->out_base, slot) ||
           is_slot_of(plan, scatter->in[scatter->task.n_in - 1].base, slot);
}

/* Does the step fill memory that the scatter after it, or after others that do so, begins with, on all devices? */
static bool begins_next(const oly_plan *plan, const oly_block *b, int k)
{
    const oly_step *fill = &b->steps[k], *scatter = fill + 1;
    const oly_step *end = b->steps + b->n_steps;
    bool any = false;
    if (fill->kind != OLY_STEP_TILE || fill->tile.program.n_loads > 0 || fill->tile.program.n_stores != 1)
        return false;
    while (scatter < end && scatter->kind == OLY_STEP_TILE && scatter->tile.program.n_loads == 0)
        scatter++;
    if (scatter == end || scatter->kind != OLY_STEP_LOCAL)
        return false;
    for (int d = 0; d < plan->n_devices; d++) {
        if (!fill->tile.device[d].has_work)
            continue;
        if (!oly_is_sink(scatter, d) ||
            !is_used_by(plan, &scatter->local.device[d], oly_cell_slot(plan, fill->tile.device[d].stores[0].base)))
            return false;
        any = true;
    }
    return any;
}

static void chain_at(oly_plan *plan, const oly_block *b, int k)
{
    oly_step *first = &b->steps[k];
    const chain any = {.kind = OLY_ROWS_LAST, .sinks = true};
    oly_row_kind kind;
    if (first->chained || candidates(plan, b, k, &any) < 2 ||
        first->work * OLY_ROW_STEPS * 4 * SUMS_PAY < (double)oly_row_chains_least)
        return;
    int n = longest_at(plan, b, k, &kind), to_sink = length_to_sink(plan, b, k);
    if (n > 1)
        make_chain(plan, b, k, n, kind);
    if (to_sink > n)
        make_chain(plan, b, k, to_sink, OLY_ROWS_FIRST);
}

static void mark_fills(oly_plan *plan, const oly_block *b, int k)
{
    b->steps[k].begins_next = begins_next(plan, b, k);
}

void oly_chain_rows(oly_plan *plan)
{
    oly_for_steps(plan, plan->main, mark_fills);
    oly_for_steps(plan, plan->main, chain_at);
}
