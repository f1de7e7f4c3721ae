/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of rows: consecutive steps that are reductions of the last dimensions and elementwise groups over the same rows (softmax, layer
 * normalisation, variance) may be computed one block of rows after the other, so that a row is read from memory once and what only they read
 * stays in cache. The last step is given the length of the chain (oly_step.chain); an executor may run its steps together if memory is used
 * so that it can; one that does not runs one step after the other. Values and bits are the same. The executor for
 * CPUs does so (run/row_blocks.c); that for GPUs finds its chains itself (run/cuda/row_chains.c). Called by plan.c, after
 * fused_reductions.c and before memory is assigned. */
#include "plan/schedule/schedule.h"
#include "core/optimisation.h"
#include "plan/model/row_operands.h"
#include "plan/schedule/fused_groups.h"

enum {
    MOST_STEPS = 20,
    LONG_ROW = 64,            /* elements: shorter ones are not worth it */
    MOST_ROW_BYTES = 1 << 19, /* that the steps use of one row: more do not stay in cache */
    LEAST_ROWS = 32,          /* so that there is work for threads */
};

int64_t oly_row_chains_least = 1 << 21;

typedef struct chain {
    oly_rows rows;
    int n;                    /* steps */
    int n_operands, n_before; /* of all steps, and of those before the last */
    oly_row_operand operand[MOST_STEPS * OLY_ROW_OPERANDS];
    int8_t step[MOST_STEPS * OLY_ROW_OPERANDS]; /* whose operand it is */
} chain;

/* -- which steps --------------------------------------------------------------------------------------------------------- */

static bool may_join(const oly_step *s)
{
    return (s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE) && !s->exchange && !s->second && !s->awaited;
}

static bool has_work(const oly_step *s, int device)
{
    return s->kind == OLY_STEP_TILE ? s->tile.device[device].has_work : s->reduce.device[device].has_work;
}

/* The rows are those of the first reduction. */
static bool find_rows(const oly_block *b, int k, int device, oly_rows *rows)
{
    for (int j = k; j < b->n_steps && j < k + MOST_STEPS && may_join(&b->steps[j]); j++)
        if (b->steps[j].kind == OLY_STEP_REDUCE)
            return has_work(&b->steps[j], device) && oly_rows_of(&b->steps[j].reduce.device[device], rows);
    return false;
}

/* Does the new operand use what the others write, or they what it writes, only in the same rows? */
static bool joins(const oly_plan *plan, const chain *c, const oly_row_operand *o, int device)
{
    if (o->cell < 0 || oly_cell_device(plan, o->cell) != device)
        return false;
    for (int k = 0; k < c->n_before; k++) {
        const oly_row_operand *with = &c->operand[k];
        if (with->cell == o->cell && (with->writes || o->writes) &&
            (with->offset != o->offset || !oly_rows_match(&c->rows, with, o)))
            return false;
    }
    return true;
}

static bool add_step(const oly_plan *plan, chain *c, const oly_step *s, int device)
{
    oly_row_operand *operands = &c->operand[c->n_operands];
    int n = may_join(s) && has_work(s, device) ? oly_row_operands_of(s, device, &c->rows, operands) : 0;
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
    c->n = c->n_operands = c->n_before = 0;
    if (!find_rows(b, k, device, &c->rows) || oly_rows_count(&c->rows) < LEAST_ROWS)
        return;
    while (c->n < MOST_STEPS && k + c->n < b->n_steps && add_step(plan, c, &b->steps[k + c->n], device))
        ;
}

/* -- is it worth it? ----------------------------------------------------------------------------------------------------- */

/* Is one of the two the group that the other, a reduction, computes by itself? */
static bool are_fused(const oly_step *group, const oly_step *reduce)
{
    return reduce->kind == OLY_STEP_REDUCE && reduce->reduce.operand == group;
}

/* Do two of the first n steps use the same long rows, and would these otherwise leave the cache in between? */
static bool pays(const oly_block *b, int k, int n, const chain *c)
{
    int64_t bytes = 0;
    bool again = false;
    for (int i = 0; i < c->n_operands && c->step[i] < n; i++) {
        const oly_row_operand *o = &c->operand[i];
        bool known = false;
        if (o->elements < LONG_ROW)
            continue;
        for (int j = 0; j < i; j++) {
            const oly_row_operand *before = &c->operand[j];
            if (before->cell != o->cell || before->elements < LONG_ROW)
                continue;
            known = true;
            again =
                again || (c->step[j] != c->step[i] && !are_fused(&b->steps[k + c->step[j]], &b->steps[k + c->step[i]]));
        }
        bytes += known ? 0 : o->high - o->low;
    }
    return again && bytes <= MOST_ROW_BYTES && bytes * oly_rows_count(&c->rows) >= oly_row_chains_least;
}

/* Of the first n steps, those before the first one whose group, or whose taker, is not among them: the two are computed together, or neither is
 * (fused_groups.h). */
static int without_divided(const oly_step *first, int n)
{
    for (int j = 0; j < n; j++) {
        const oly_step *s = &first[j];
        bool divided = s->kind == OLY_STEP_TILE ? s->taken_by > first[n - 1].number
                                                : s->reduce.operand && s->reduce.operand < first;
        if (divided)
            return without_divided(first, j); /* others may have been taken by this one */
    }
    return n;
}

/* -- the pass ------------------------------------------------------------------------------------------------------------- */

/* What has few elements a row keeps its memory from the chain's begin to its end: it would otherwise be put where the rows of another value have just
 * been, and the next large value, which could have taken exactly the place of these, beside it. Large values take each other's place if
 * their rows are the same (the executor looks). */
static void keep(oly_plan *plan, const chain *c, int n, int begin, int end)
{
    for (int i = 0; i < c->n_operands && c->step[i] < n; i++) {
        oly_slot *s = &plan->slots[oly_cell_slot(plan, c->operand[i].cell)];
        if (s->kind != OLY_SLOT_SCRATCH || c->operand[i].elements >= LONG_ROW)
            continue;
        s->last = s->last < end ? end : s->last;
        s->early = s->first - s->early > begin ? s->first - begin : s->early;
    }
}

/* How many steps from k on are a chain on all devices of this process that compute them; less than 2: none. */
static int length_at(const oly_plan *plan, const oly_block *b, int k, chain *c)
{
    int n = MOST_STEPS;
    bool computes = false;
    for (int d = 0; d < plan->n_devices && n > 1; d++) {
        bool works = false;
        for (int j = k; j < b->n_steps && j < k + n && may_join(&b->steps[j]); j++) {
            works = works || has_work(&b->steps[j], d);
            if (has_work(&b->steps[j], d) != has_work(&b->steps[k], d))
                n = j - k;
        }
        if (!works)
            continue;
        find_chain(plan, b, k, d, c);
        n = c->n < n ? c->n : n;
        n = without_divided(&b->steps[k], n);
        while (n > 1 && !pays(b, k, n, c))
            n = without_divided(&b->steps[k], n - 1);
        if (n < 2)
            return 0;
        computes = true;
    }
    return computes ? n : 0;
}

static void chain_at(oly_plan *plan, const oly_block *b, int k)
{
    chain c;
    oly_step *first = &b->steps[k];
    if (first->chained || !may_join(first) || first->work * MOST_STEPS * 4 < (double)oly_row_chains_least)
        return;
    int n = length_at(plan, b, k, &c);
    if (n < 2)
        return;
    for (int j = 0; j < n; j++)
        first[j].chained = true;
    first[n - 1].chain = n;
    for (int d = 0; d < plan->n_devices; d++)
        if (has_work(first, d)) {
            find_chain(plan, b, k, d, &c);
            keep(plan, &c, n, first->number, first[n - 1].number);
        }
}

void oly_chain_rows(oly_plan *plan)
{
    if (oly_enabled(OLY_OPTIMISATION_ROW_CHAINS))
        oly_for_steps(plan, plan->main, chain_at);
}
