/* SPDX-License-Identifier: BSD-3-Clause */
/* No plan may depend on the order in which threads run the parts of a step. Two copies of one step must not write the
 * same element, and none may read what another one writes; the same holds for the devices of an elementwise step.
 * Running rarely shows such a race, so plans are checked (oly_plan_damage is called with each). Used by all tests
 * (check.c) and random programs. */
#include "check_races.h"
#include "plan/model/steps.h"
#include "plan/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 500000 }; /* of a step; larger ones would take too long */

typedef struct part { /* the elements of a strided box in one buffer, and who writes or reads them */
    const oly_place *place;
    int rank, who;
    bool written;
    const int64_t *extent;
    size_t element;
} part;

typedef struct writers { /* who wrote each element of a buffer: 0 nobody, else 1 + who */
    int64_t n;
    int *who;
} writers;

static int64_t count_of(const part *x)
{
    int64_t count = 1;
    for (int d = 0; d < x->rank; d++)
        count *= x->extent[d];
    return count;
}

static int64_t last_element(const part *x)
{
    int64_t at = x->place->offset / (int64_t)x->element;
    for (int d = 0; d < x->rank; d++)
        at += x->place->stride[d] > 0 ? (x->extent[d] - 1) * x->place->stride[d] : 0;
    return at;
}

/* Has another writer written one of these elements? Records what x writes. */
static bool visit(writers *w, const part *x)
{
    int64_t index[OLY_MAX_RANK] = {0}, count = count_of(x);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = x->place->offset / (int64_t)x->element;
        for (int d = 0; d < x->rank; d++)
            at += index[d] * x->place->stride[d];
        if (at >= 0 && at < w->n) {
            if (w->who[at] && w->who[at] != 1 + x->who)
                return true;
            if (x->written)
                w->who[at] = 1 + x->who;
        }
        for (int d = x->rank - 1; d >= 0 && ++index[d] == x->extent[d]; d--)
            index[d] = 0;
    }
    return false;
}

static void complain(const oly_step *s, const char *what)
{
    fprintf(stderr, "step %d, %s: %s\n", s->number, s->what ? s->what : "", what);
    abort();
}

/* Checks the parts of one buffer, writers first. */
static void look_at_buffer(const oly_step *s, const part *parts, int n)
{
    writers w = {0};
    for (int k = 0; k < n && parts[k].written; k++)
        w.n = last_element(&parts[k]) >= w.n ? last_element(&parts[k]) + 1 : w.n;
    if (w.n == 0 || !(w.who = calloc((size_t)w.n, sizeof *w.who)))
        return;
    for (int k = 0; k < n; k++)
        if (visit(&w, &parts[k]))
            complain(s, parts[k].written ? "two of its parts write one element"
                                         : "one of its parts reads what another one writes");
    free(w.who);
}

static int in_order(const void *a_, const void *b_)
{
    const part *a = a_, *b = b_;
    if (a->place->base != b->place->base)
        return a->place->base < b->place->base ? -1 : 1;
    return b->written - a->written;
}

static void look_at_parts(const oly_step *s, part *parts, int n)
{
    int64_t all = 0;
    for (int k = 0; k < n; k++)
        all += count_of(&parts[k]);
    qsort(parts, (size_t)n, sizeof *parts, in_order);
    for (int begin = 0, end = 0; all <= MOST_ELEMENTS && begin < n; begin = end) {
        while (end < n && parts[end].place->base == parts[begin].place->base)
            end++;
        if (parts[begin].place->base >= 0)
            look_at_buffer(s, &parts[begin], end - begin);
    }
    free(parts);
}

static void look_at_copies(const oly_step *s, int n, const oly_copy_work *copies)
{
    part *parts = calloc(2 * (size_t)n + 1, sizeof *parts);
    for (int k = 0; k < n && parts; k++) {
        const oly_copy_work *c = &copies[k];
        parts[2 * k] = (part){&c->to, c->task.rank, k, true, c->task.extent, c->task.element_bytes};
        parts[2 * k + 1] = (part){&c->from, c->task.rank, k, false, c->task.extent, c->task.element_bytes};
    }
    if (parts)
        look_at_parts(s, parts, 2 * n);
}

static void look_at_tiles(const oly_plan *plan, const oly_step *s)
{
    const oly_tile_program *p = &s->tile.program;
    part *parts = calloc((size_t)plan->n_devices * (size_t)(p->n_stores + p->n_loads) + 1, sizeof *parts);
    int n = 0;
    for (int d = 0; d < plan->n_devices && parts; d++) {
        const oly_tile_work *w = &s->tile.device[d];
        for (int k = 0; k < p->n_stores && w->has_work; k++)
            parts[n++] = (part){&w->stores[k], w->box.rank,   d,
                                true,          w->box.extent, oly_dtype_size((oly_dtype)p->store_dtype[k])};
        for (int k = 0; k < p->n_loads && w->has_work; k++) {
            bool in_place = false; /* threads share the device's part: each may read what it writes itself */
            for (int j = 0; j < p->n_stores; j++)
                in_place = in_place || memcmp(&w->loads[k], &w->stores[j], sizeof *w->loads) == 0;
            parts[n++] = (part){&w->loads[k], w->box.rank,   in_place ? d : -2,
                                false,        w->box.extent, oly_dtype_size((oly_dtype)p->load_dtype[k])};
        }
    }
    if (parts)
        look_at_parts(s, parts, n);
}

static void look_at_block(const oly_plan *plan, const oly_block *b)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_MOVE)
            look_at_copies(s, s->move.n_copies, s->move.copies);
        else if (s->kind == OLY_STEP_GEMM)
            look_at_copies(s, s->gemm.n_copies, s->gemm.copies);
        else if (s->kind == OLY_STEP_TILE)
            look_at_tiles(plan, s);
        else if (s->kind == OLY_STEP_LOOP)
            look_at_block(plan, s->loop.body);
        else if (s->kind == OLY_STEP_BRANCH)
            for (int j = 0; j < s->branch.n; j++)
                look_at_block(plan, s->branch.blocks[j]);
        else if (s->kind == OLY_STEP_STENCIL) {
            look_at_block(plan, s->stencil.margins[0]);
            look_at_block(plan, s->stencil.margins[1]);
        }
    }
}

static void check_plan(oly_plan *plan)
{
    look_at_block(plan, plan->main);
}

void check_races(void)
{
    oly_plan_damage = check_plan;
}
