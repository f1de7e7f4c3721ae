/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders steps so that communication overlaps with computation. An exchange starts as soon as what it sends is
 * ready, and is waited for where the first step reads what it brings: a step that communicates is split into its
 * start and a WAIT, and independent steps come between. Dependences are found from the slots that steps read and
 * write on this process, so processes may order steps differently. Only steps that are numbered in messages
 * (transfers, reductions, loops and branches) keep the order of the program, which is the same everywhere. That
 * prevents deadlock: ranks start exchanges in one order, and a rank that waits progresses all of its exchanges.
 * Called by plan.c, before scratch memory is assigned. Plans of one process are not changed. */
#include "plan/schedule/schedule.h"
#include "plan/cost/cost.h"
#include "plan/model/time_tiling.h"
#include "plan/schedule/scheduler.h"
#include "core/optimisation.h"
#include "core/option.h"
#include <string.h>

enum {
    FAR = 64,            /* how many steps ahead to search for an independent one */
    MOST_UNDER_WAY = 64, /* MiB */
};
static const char partials[] = "send of partial results";

typedef struct use {
    int slot;
    bool writes;
} use;

typedef struct edge {
    int to, next;
} edge;

typedef struct item {
    oly_step step;
    int n_uses, first_use; /* index into uses */
    int waits;             /* items that it depends on and that are not placed yet */
    int first_edge;        /* to the items that depend on it; -1 */
    int start;             /* WAIT: the item that starts its exchange; -1 */
    int next_numbered;     /* the next item whose order is the same on all processes */
    double seconds;        /* predicted: its work; how long its exchange takes from the start */
    double flight;
    double placed_at;  /* predicted work placed before it */
    int wait, instead; /* a part of a step: depends on `instead`, not on `wait`; -1 */
    int after;         /* WAIT: another one that must come before; -1 */
    bool numbered, placed;
    bool inside; /* WAIT: the step placed before it does the waiting */
} item;

/* The uses of a slot so far. */
typedef struct slot_state {
    int seen;    /* number + 1 of the item examined */
    int use;     /* by that item */
    int writer;  /* last item that wrote it; -1 */
    int readers; /* since then: list in edges of other items; -1 */
} slot_state;

typedef struct scheduler {
    oly_planner *p;
    int n, capacity;
    item *items;
    int n_uses, use_capacity;
    use *uses;
    int n_edges, edge_capacity;
    edge *edges; /* and lists of readers */
    slot_state *slots;
    int current;
    bool failed;
    int *order, n_placed;
    double seconds;    /* of work placed so far */
    int64_t under_way; /* bytes */
    int64_t packed;    /* of buffers that these take: an exchange beyond the limit would wait to start */
    bool changed;
    int *mover; /* [slot] the transfer that last wrote it; -1 */
    oly_parts *parts;
    bool split;
} scheduler;

/* -- items --------------------------------------------------------------------------------------------------------- */

static void *grown(oly_planner *p, void *old, int n, int *capacity, size_t bytes)
{
    if (n < *capacity)
        return old;
    int more = *capacity ? 2 * *capacity : 64;
    void *memory = oly_arena_take(&p->plan->arena, bytes * (size_t)more);
    if (memory && n)
        memcpy(memory, old, bytes * (size_t)n);
    *capacity = more;
    return memory;
}

/* NULL: out of memory, recorded in s->failed. */
static item *add_item(scheduler *s, const oly_step *step, int start, bool numbered)
{
    s->items = grown(s->p, s->items, s->n, &s->capacity, sizeof *s->items);
    if (!s->items) {
        s->failed = true;
        s->n = s->capacity = 0;
        return NULL;
    }
    item *it = &s->items[s->n++];
    *it = (item){
        .step = *step, .start = start, .first_edge = -1, .numbered = numbered, .wait = -1, .instead = -1, .after = -1};
    if (step->kind != OLY_STEP_MOVE && step->kind != OLY_STEP_REDUCTION)
        it->seconds = oly_cost_step(s->p->plan, step);
    else
        it->flight = oly_cost_step(s->p->plan, step);
    if (step->kind == OLY_STEP_MOVE && step->node)
        it->seconds = oly_cost_memory(2 * step->work * (double)oly_dtype_size(step->node->type.dtype));
    return it;
}

static void add_wait(scheduler *s, oly_exchange *x, const oly_step *of, int start, int from)
{
    oly_step wait = {.kind = OLY_STEP_WAIT, .node = of->node, .what = "wait", .out_slot = -1, .from = from};
    wait.awaited = x;
    add_item(s, &wait, start, false);
}

static void add_reduction(scheduler *s, const oly_step *step)
{
    oly_step reduction = *step;
    if (step->exchange) {
        oly_step start = {.kind = OLY_STEP_MOVE, .node = step->node, .what = partials, .out_slot = -1};
        start.exchange = step->exchange;
        start.starts = true;
        item *it = add_item(s, &start, -1, true);
        if (it)
            it->flight = oly_cost_step(s->p->plan, step);
        add_wait(s, step->exchange, step, s->n - 1, -1);
        reduction.exchange = NULL;
        reduction.begun = true;
    }
    reduction.starts = reduction.second;
    add_item(s, &reduction, -1, true);
    if (reduction.second)
        add_wait(s, reduction.second, step, s->n - 1, -1);
}

/* Lets the product that was added last send its blocks itself, if that pays. */
static oly_status feed(scheduler *s, const oly_step *step, bool *done)
{
    item *last = s->n > 0 ? &s->items[s->n - 1] : NULL;
    oly_step fed, rest = *step;
    *done = false;
    if (!last || last->step.kind != OLY_STEP_GEMM || last->wait >= 0 || !step->exchange || step->alone)
        return OLY_OK;
    OLY_TRY(oly_send_blocks_early(s->p, &last->step, step, oly_cost_step(s->p->plan, step), &fed, done));
    if (!*done)
        return OLY_OK;
    last->step = fed;
    last->numbered = s->split = true;
    last->flight = oly_cost_step(s->p->plan, step);
    int start = s->n - 1;
    rest.exchange = NULL;
    rest.begun = rest.alone = true;
    add_item(s, &rest, -1, false);
    add_wait(s, step->exchange, step, start, -1);
    return OLY_OK;
}

static void add_move(scheduler *s, const oly_step *step)
{
    item *it = add_item(s, step, -1, !step->alone);
    if (!it || !step->exchange)
        return;
    it->step.starts = true;
    add_wait(s, step->exchange, step, s->n - 1, -1);
}

/* The transfer that brings what the step reads; -1: none, or several. */
static int mover_of(const scheduler *s, const oly_step *step)
{
    int found = -1;
    for (int d = 0; d < s->p->plan->n_devices; d++) {
        const oly_tile_work *t = step->kind == OLY_STEP_TILE ? &step->tile.device[d] : NULL;
        const oly_gemm_work *g = step->kind == OLY_STEP_GEMM ? &step->gemm.device[d] : NULL;
        int n = t && t->has_work ? step->tile.program.n_loads : g && g->has_work ? 2 : 0;
        for (int k = 0; k < n; k++) {
            const oly_place *at = t ? &t->loads[k] : k ? &g->b : &g->a;
            int mover = at->base < 0 ? -1 : s->mover[oly_cell_slot(s->p->plan, at->base)];
            if (mover >= 0 && found >= 0 && mover != found)
                return -1;
            found = mover >= 0 ? mover : found;
        }
    }
    return found;
}

/* Adds the step in parts, where some can run before everything that it reads has arrived. */
static oly_status add_in_parts(scheduler *s, const oly_step *step)
{
    int mover = mover_of(s, step);
    s->parts = s->parts ? s->parts : OLY_PLAN_NEW(s->p, oly_parts, 1);
    OLY_PLAN_CHECK(s->parts);
    s->parts->n = 0;
    if (mover >= 0) {
        const oly_step move = s->items[mover].step, *moves[1] = {&move};
        OLY_TRY(oly_split_step(s->p, step, 1, moves, s->items[mover].flight, s->parts));
    }
    if (s->parts->n == 0)
        add_item(s, step, -1, false);
    int first = s->n, n_awaited = 0, last_wait = -1; /* each wait comes after the previous one */
    for (int k = 0; k < s->parts->n && !s->failed; k++) {
        const oly_part *part = &s->parts->part[k];
        for (; n_awaited <= part->after && !s->failed; n_awaited++) {
            add_wait(s, s->items[mover].step.exchange, step, mover, s->parts->peers[n_awaited]);
            if (last_wait >= 0 && !s->failed)
                s->items[s->n - 1].after = last_wait;
            last_wait = s->n - 1;
        }
        item *it = add_item(s, &part->step, -1, false);
        if (!it || part->after == OLY_AFTER_WAIT)
            continue;
        it->wait = mover + 1; /* the next item */
        it->instead = part->after < 0 ? mover : last_wait;
    }
    s->split = s->split || s->n > first + 1;
    return OLY_OK;
}

/* The transfer that brings the first margins of a field; -1: none. */
static int mover_of_fields(const scheduler *s, const oly_step *step)
{
    const oly_tiling *m = step->stencil.tiling;
    int mover = m ? -1 : s->mover[step->stencil.first_slot];
    for (int j = 0; m && j < m->form.n_fields && mover < 0; j++)
        mover = m->first_slot[j] < 0 ? -1 : s->mover[m->first_slot[j]];
    return mover;
}

/* Adds a loop over fields: it waits for its first margins itself, after the tiles that need none. */
static void add_stencil(scheduler *s, const oly_step *step)
{
    int mover = mover_of_fields(s, step);
    item *it = add_item(s, step, -1, true);
    if (!it || mover < 0 || !step->stencil.overlaps)
        return;
    it->step.awaited = s->items[mover].step.exchange;
    it->step.from = -1;
    it->wait = mover + 1; /* the next item */
    it->instead = mover;
    s->items[mover + 1].after = s->n - 1;
    s->items[mover + 1].inside = s->split = true;
}

static void forget_mover(void *context, int slot, bool writes)
{
    scheduler *s = context;
    if (writes)
        s->mover[slot] = -1;
}

/* What the program can observe keeps its order. */
static bool has_effect(const oly_step *step)
{
    return step->kind == OLY_STEP_CALL && step->call.call->effect;
}

static oly_status add_step(scheduler *s, const oly_step *step)
{
    int at = s->n;
    if (step->kind == OLY_STEP_REDUCTION)
        add_reduction(s, step);
    else if (step->kind == OLY_STEP_MOVE) {
        bool fed;
        OLY_TRY(feed(s, step, &fed));
        if (fed)
            at = s->n - 2;
        else
            add_move(s, step);
    } else if (step->kind == OLY_STEP_TILE || step->kind == OLY_STEP_GEMM)
        OLY_TRY(add_in_parts(s, step));
    else if (step->kind == OLY_STEP_STENCIL)
        add_stencil(s, step);
    else
        add_item(s, step, -1, step->kind == OLY_STEP_LOOP || step->kind == OLY_STEP_BRANCH || has_effect(step));
    OLY_PLAN_CHECK(s->failed ? NULL : s);
    oly_step_effects(s->p->plan, step, forget_mover, s);
    for (int k = 0; step->kind == OLY_STEP_MOVE && step->exchange && k < step->move.n_arrivals; k++)
        s->mover[oly_cell_slot(s->p->plan, step->move.arrivals[k].piece.buffer)] = at;
    return OLY_OK;
}

/* -- dependences --------------------------------------------------------------------------------------------------- */

static void note_use(void *context, int slot, bool writes)
{
    scheduler *s = context;
    slot_state *state = &s->slots[slot];
    if (state->seen == s->current + 1) {
        s->uses[state->use].writes |= writes;
        return;
    }
    s->uses = grown(s->p, s->uses, s->n_uses, &s->use_capacity, sizeof *s->uses);
    if (!s->uses) {
        s->failed = true;
        s->n_uses = s->use_capacity = 0;
        return;
    }
    state->seen = s->current + 1;
    state->use = s->n_uses;
    s->uses[s->n_uses++] = (use){slot, writes};
    s->items[s->current].n_uses++;
}

static int new_edge(scheduler *s, int to, int next)
{
    s->edges = grown(s->p, s->edges, s->n_edges, &s->edge_capacity, sizeof *s->edges);
    if (!s->edges) {
        s->failed = true;
        s->n_edges = s->edge_capacity = 0;
        return -1;
    }
    s->edges[s->n_edges] = (edge){to, next};
    return s->n_edges++;
}

static void depends(scheduler *s, int later, int earlier)
{
    if (earlier < 0 || earlier == later)
        return;
    s->items[earlier].first_edge = new_edge(s, later, s->items[earlier].first_edge);
    s->items[later].waits++;
}

static void depend_through(scheduler *s, int k, const use *u)
{
    slot_state *state = &s->slots[u->slot];
    depends(s, k, state->writer >= 0 && state->writer == s->items[k].wait ? s->items[k].instead : state->writer);
    if (!u->writes) {
        state->readers = new_edge(s, k, state->readers);
        return;
    }
    for (int e = state->readers; e >= 0 && !s->failed; e = s->edges[e].next)
        depends(s, k, s->edges[e].to);
    state->writer = k;
    state->readers = -1;
}

static oly_status find_dependences(scheduler *s)
{
    int numbered = -1;
    for (int j = 0; j < s->p->plan->n_slots; j++)
        s->slots[j] = (slot_state){.writer = -1, .readers = -1};
    for (int k = 0; k < s->n && !s->failed; k++) {
        item *it = &s->items[k];
        s->current = k;
        it->first_use = s->n_uses;
        oly_step_effects(s->p->plan, &it->step, note_use, s);
        for (int j = 0; j < it->n_uses && !s->failed; j++)
            depend_through(s, k, &s->uses[it->first_use + j]);
        depends(s, k, it->start);
        depends(s, k, it->after);
        if (it->numbered) {
            depends(s, k, numbered);
            numbered = k;
        }
    }
    OLY_PLAN_CHECK(s->failed ? NULL : s);
    return OLY_OK;
}

/* -- the order ----------------------------------------------------------------------------------------------------- */

/* The exchange that is under way after the item; NULL: none. */
static const oly_exchange *left_by(const item *it)
{
    const oly_exchange *x = it->step.kind == OLY_STEP_REDUCTION ? it->step.second : it->step.exchange;
    return it->step.starts ? x : NULL;
}

static int64_t bytes_of(const item *it)
{
    const oly_exchange *x = left_by(it);
    return x ? oly_exchange_bytes_sent(x) + oly_exchange_bytes_received(x) : 0;
}

static int64_t packed_by(const item *it)
{
    return left_by(it) ? oly_exchange_memory(left_by(it)) : 0;
}

/* Would its exchange have to wait until others end? */
static bool is_held_up(const scheduler *s, const item *it)
{
    return s->packed > 0 && packed_by(it) > 0 && s->packed + packed_by(it) > oly_exchange_memory_limit();
}

/* May its exchange start early, in addition to those under way? */
static bool has_room(const scheduler *s, const item *it)
{
    return s->under_way == 0 || (s->under_way + bytes_of(it) <= (int64_t)MOST_UNDER_WAY << 20 && !is_held_up(s, it));
}

static void place(scheduler *s, int k)
{
    item *it = &s->items[k];
    it->placed = true;
    it->placed_at = s->seconds;
    s->changed = s->changed || k != s->n_placed;
    s->order[s->n_placed++] = k;
    s->seconds += it->seconds;
    s->under_way += bytes_of(it);
    s->packed += packed_by(it);
    if (it->start >= 0 && it->step.from < 0) {
        s->under_way -= bytes_of(&s->items[it->start]);
        s->packed -= packed_by(&s->items[it->start]);
    }
    for (int e = it->first_edge; e >= 0; e = s->edges[e].next)
        s->items[s->edges[e].to].waits--;
}

static bool is_ready(const item *it)
{
    return !it->placed && it->waits == 0;
}

/* The wait that item k depends on, else the oldest; -1: none. */
static int wait_for(const scheduler *s, int k, int from)
{
    int oldest = -1;
    for (int j = from; j < s->n && j < k + FAR; j++) {
        if (s->items[j].start < 0 || !is_ready(&s->items[j]))
            continue;
        oldest = oldest < 0 ? j : oldest;
        for (int e = s->items[j].first_edge; e >= 0; e = s->edges[e].next)
            if (s->edges[e].to == k)
                return j;
    }
    return oldest;
}

/* Is the work placed since the exchange started shorter than the exchange? */
static bool is_uncovered(const scheduler *s, const item *wait)
{
    const item *start = &s->items[wait->start];
    return s->seconds - start->placed_at < start->flight;
}

/* A step after k that can run now; -1: none. */
static int meanwhile(const scheduler *s, int k)
{
    for (int j = k + 1; j < s->n && j <= k + FAR; j++)
        if (s->items[j].start < 0 && is_ready(&s->items[j]))
            return j;
    return -1;
}

static void place_all(scheduler *s)
{
    int numbered = 0, first = 0, oldest = 0;
    while (s->n_placed < s->n) {
        while (numbered < s->n && (!s->items[numbered].numbered || s->items[numbered].placed))
            numbered++;
        while (first < s->n && (s->items[first].start >= 0 || s->items[first].placed))
            first++;
        while (s->items[oldest].placed)
            oldest++;
        int64_t bytes = numbered < s->n && numbered < first + FAR ? bytes_of(&s->items[numbered]) : 0;
        if (bytes && is_ready(&s->items[numbered]) && has_room(s, &s->items[numbered])) {
            place(s, numbered);
            continue;
        }
        if (first < s->n && is_ready(&s->items[first]) && !is_held_up(s, &s->items[first])) {
            place(s, first);
            continue;
        }
        if (first - oldest > 4 * FAR) { /* under way for long: keep waits within the distance that is searched */
            place(s, oldest);
            continue;
        }
        int wait = wait_for(s, first, oldest), other = -1;
        if (wait >= 0 && first < s->n && is_uncovered(s, &s->items[wait]))
            other = meanwhile(s, first);
        place(s, other >= 0 ? other : wait >= 0 ? wait : oldest); /* the first item depends on nothing */
    }
}

/* Moves a wait back to its start where too little work comes between to pay for splitting them. */
static void keep_together(scheduler *s)
{
    static const double worth = 1e-6;
    for (int j = 2; j < s->n; j++) {
        const item *wait = &s->items[s->order[j]];
        double seconds = 0;
        int i = j - 1;
        if (wait->start < 0 || wait->step.from >= 0)
            continue;
        for (; s->order[i] != wait->start && seconds < worth; i--) {
            const item *between = &s->items[s->order[i]];
            bool communicates = between->start >= 0 || between->numbered;
            seconds += communicates ? worth : between->seconds;
        }
        if (seconds >= worth)
            continue;
        int k = s->order[j];
        memmove(&s->order[i + 2], &s->order[i + 1], sizeof *s->order * (size_t)(j - i - 1));
        s->order[i + 1] = k;
    }
}

/* -- back into steps ----------------------------------------------------------------------------------------------- */

/* An exchange that is waited for right after its start needs no WAIT. */
static bool joins(oly_step *last, const oly_step *next)
{
    if (next->kind == OLY_STEP_WAIT && next->from < 0 && last->starts && last->kind != OLY_STEP_GEMM &&
        next->awaited == (last->kind == OLY_STEP_REDUCTION ? last->second : last->exchange)) {
        last->starts = false;
        return true;
    }
    return false;
}

/* Likewise the exchange of partial results, if no step comes between it and the reduction. */
static bool joins_reduction(oly_step *last, const oly_step *next)
{
    if (next->kind != OLY_STEP_REDUCTION || !next->begun || last->kind != OLY_STEP_MOVE || last->starts ||
        last->move.n_copies || last->what != partials || last->node != next->node)
        return false;
    oly_exchange *x = last->exchange;
    *last = *next;
    last->exchange = x;
    last->begun = false;
    return true;
}

static oly_status rebuild(scheduler *s, oly_block *b)
{
    oly_step *steps = OLY_PLAN_NEW(s->p, oly_step, s->n + 1);
    OLY_PLAN_CHECK(steps);
    int n = 0;
    for (int k = 0; k < s->n; k++) {
        const oly_step *step = &s->items[s->order[k]].step;
        if (s->items[s->order[k]].inside ||
            (n > 0 && (joins(&steps[n - 1], step) || joins_reduction(&steps[n - 1], step))))
            continue;
        steps[n++] = *step;
    }
    b->steps = steps;
    b->n_steps = b->capacity = n;
    return OLY_OK;
}

static bool communicates(const oly_block *b)
{
    for (int k = 0; k < b->n_steps; k++)
        if (b->steps[k].exchange || b->steps[k].second)
            return true;
    return false;
}

static oly_status schedule_block(oly_planner *p, oly_block *b, bool *changed)
{
    if (b->n_steps < 2 || !communicates(b))
        return OLY_OK;
    scheduler s = {.p = p, .capacity = 4};
    for (int k = 0; k < b->n_steps; k++) /* starts and waits; parts of steps may add more */
        s.capacity += 1 + (b->steps[k].exchange ? 2 : 0) + (b->steps[k].second ? 1 : 0);
    s.items = oly_arena_take(&p->plan->arena, sizeof *s.items * (size_t)s.capacity);
    s.slots = OLY_PLAN_NEW(p, slot_state, p->plan->n_slots + 1);
    s.mover = OLY_PLAN_NEW(p, int, p->plan->n_slots + 1);
    OLY_PLAN_CHECK(s.slots && s.mover ? s.items : NULL);
    for (int j = 0; j < p->plan->n_slots; j++)
        s.mover[j] = -1;
    for (int k = 0; k < b->n_steps; k++)
        OLY_TRY(add_step(&s, &b->steps[k]));
    s.order = OLY_PLAN_NEW(p, int, s.n + 1);
    OLY_PLAN_CHECK(s.order);
    OLY_TRY(find_dependences(&s));
    place_all(&s);
    keep_together(&s);
    if (!s.changed && !s.split)
        return OLY_OK;
    *changed = true;
    return rebuild(&s, b);
}

oly_status oly_schedule(oly_planner *p)
{
    if (!p->plan->distributed || !oly_option.overlap || !oly_enabled(OLY_OPTIMISATION_OVERLAP))
        return OLY_OK;
    return oly_pass_over_blocks(p, schedule_block);
}
