/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of steps. See timed_steps.h. */
#include "run/timed_steps.h"
#include "core/option.h"
#include "core/text.h"
#include "plan/cost/cost.h"
#include "plan/cost/forecast.h"

/* -- labels ---------------------------------------------------------------------------------------------------------------- */

static void detail_text(oly_text *t, const oly_step *s)
{
    if (s->detail)
        oly_text_add(t, "%s", s->detail);
    if (s->node && oly_graph_results(s->node) < 0) {
        oly_text_add(t, "%s", s->detail ? " -> " : "");
        oly_type_text(t, &s->node->type);
    }
    if (s->bytes > 0)
        oly_text_add(t, "%s%lld bytes per device", t->length ? ", " : "", (long long)s->bytes);
}

/* Room for the numbers of the block's steps, and those inside. */
static int room_for(const oly_block *b)
{
    int most = 0;
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        int inside = s->kind == OLY_STEP_LOOP ? room_for(s->loop.body) : 0;
        most = s->number >= most ? s->number + 1 : most;
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++) {
            int n = room_for(s->branch.blocks[j]);
            inside = n > inside ? n : inside;
        }
        for (int j = 0; s->kind == OLY_STEP_STENCIL && j < 2; j++) {
            int n = room_for(s->stencil.margins[j]);
            inside = n > inside ? n : inside;
        }
        most = inside > most ? inside : most;
    }
    return most;
}

static void label_step(const oly_plan *plan, const oly_step *s, int *labels)
{
    oly_text t = {0};
    detail_text(&t, s);
    labels[s->number] = oly_label_of(&(oly_label_texts){.name = s->what,
                                                        .detail = oly_text_chars(&t),
                                                        .site = s->node ? s->node->site : (oly_site){0},
                                                        .plan = plan->fingerprint,
                                                        .step = s->number,
                                                        .predicted = oly_forecast_step(plan, s)});
    oly_text_free(&t);
}

static void label_block(const oly_plan *plan, const oly_block *b, int *labels)
{
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        label_step(plan, s, labels);
        if (s->kind == OLY_STEP_LOOP)
            label_block(plan, s->loop.body, labels);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            label_block(plan, s->branch.blocks[j], labels);
        for (int j = 0; s->kind == OLY_STEP_STENCIL && j < 2; j++)
            label_block(plan, s->stencil.margins[j], labels);
    }
}

oly_status oly_label_steps(oly_plan *plan)
{
    int n = room_for(plan->main), *labels;
    OLY_ARENA_LIST(&plan->arena, labels, n + 1);
    label_block(plan, plan->main, labels);
    labels[n] = oly_label_of(&(oly_label_texts){.name = plan->graph->name, .plan = plan->fingerprint, .step = -1});
    plan->labels = labels;
    plan->n_labels = n;
    return OLY_OK;
}

static int label_of(const oly_plan *plan, const oly_step *s)
{
    return plan->labels && s->number < plan->n_labels ? plan->labels[s->number] : 0;
}

/* -- runs ------------------------------------------------------------------------------------------------------------------ */

/* Of loops of so many iterations. */
static double shown_iterations(int64_t n)
{
    int doublings = n > 128 ? 57 - __builtin_clzll((uint64_t)n) : 0;
    return n > 128 ? 128 + 64 * (double)doublings : (double)n;
}

/* Each step, and its devices together. */
static double events_of(const oly_block *b)
{
    double events = 0, most = 0;
    for (int k = 0; b && k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        events += 2;
        if (s->kind == OLY_STEP_LOOP) /* its time, too, is that of one iteration where the number is not known */
            events += (s->loop.predicate >= 0 ? 1 : shown_iterations(s->loop.count)) * (1 + events_of(s->loop.body));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++) {
            double inside = events_of(s->branch.blocks[j]);
            most = inside > most ? inside : most;
        }
    }
    return events + most;
}

int oly_shown_runs(const oly_plan *plan)
{
    enum { MOST = 7, LEAST = 2 };
    const double EACH = 5e-6, FEW = 32; /* an event takes 0.1 us */
    if (oly_timeline_mode != OLY_TIMELINE_SPANS || oly_option.timeline_all)
        return 0;
    double events = 8 + events_of(plan->main); /* the call, its run, the queue and memory */
    if (oly_cost_plan(plan) >= EACH * events)
        return 0;
    int log = MOST;
    for (double n = events; n > FEW && log > LEAST; n /= 2) /* about as many events of all plans */
        log--;
    return log;
}

/* -- steps ----------------------------------------------------------------------------------------------------------------- */

oly_timed_step oly_timed_step_begins(oly_run *r, const oly_step *s)
{
    oly_timed_step t = {.outer_label = r->label, .outer_execution = r->execution};
    if (!oly_timeline_shows()) {
        r->label = 0;
        return t;
    }
    t.label = label_of(r->plan, s);
    t.begin = oly_ticks();
    r->label = oly_timeline_mode == OLY_TIMELINE_SPANS ? t.label : 0;
    r->execution = t.begin;
    return t;
}

void oly_timed_step_ends(oly_run *r, const oly_step *s, const oly_timed_step *t)
{
    (void)s;
    r->label = t->outer_label;
    r->execution = t->outer_execution;
    if (!t->begin)
        return;
    int64_t now = oly_ticks();
    oly_label_ran(t->label, now - t->begin);
    oly_timeline_add((oly_span){.begin = t->begin,
                                .end = now,
                                .kind = OLY_EVENT_STEP,
                                .device = -1,
                                .label = t->label,
                                .a = (int64_t)r->number});
}

void oly_timed_run_ends(const oly_run *r, int64_t begun)
{
    int label = r->plan->labels ? r->plan->labels[r->plan->n_labels] : 0;
    int64_t now = oly_ticks();
    oly_label_ran(label, now - begun);
    oly_timeline_add((oly_span){.begin = begun,
                                .end = now,
                                .kind = OLY_EVENT_RUN,
                                .device = -1,
                                .label = label,
                                .a = (int64_t)r->number,
                                .b = r->submitted,
                                .c = (int64_t)r->not_shown << 32 | (uint32_t)oly_label_of_site(r->site)});
}

void oly_show_together(const oly_run *r, int64_t begin)
{
    int64_t devices = 0;
    for (int d = 0; d < r->plan->n_devices; d++)
        devices |= r->plan->devices[d] < 63 ? (int64_t)1 << r->plan->devices[d] : 0;
    oly_timeline_add((oly_span){.begin = begin,
                                .end = oly_ticks(),
                                .kind = OLY_EVENT_PART,
                                .device = -1,
                                .label = r->label,
                                .a = r->execution,
                                .b = 1,
                                .c = devices});
}

/* -- iterations ------------------------------------------------------------------------------------------------------------ */

oly_iterations oly_iterations_begin(const oly_run *r, const oly_step *s)
{
    bool on = oly_timeline_shows();
    return (oly_iterations){.on = on, .label = on ? label_of(r->plan, s) : 0};
}

static void add(const oly_iterations *w, int64_t end)
{
    oly_timeline_add((oly_span){.begin = w->begin,
                                .end = oly_ticks(),
                                .kind = OLY_EVENT_ITERATIONS,
                                .device = -1,
                                .label = w->label,
                                .a = w->first,
                                .b = end});
}

void oly_iteration_shows_or_hides(oly_iterations *w, int64_t i)
{
    bool hides = !oly_timeline_shows_iteration(i);
    if (w->hides && !hides) {
        oly_timeline_quiet--;
        add(w, i);
    }
    if (!w->hides || !hides) {
        w->first = i;
        w->begin = oly_ticks();
    }
    if (hides && !w->hides)
        oly_timeline_quiet++;
    w->hides = hides;
}

void oly_iteration_is_over(oly_iterations *w, int64_t i)
{
    if (!w->hides)
        add(w, i + 1);
}

void oly_iterations_end(oly_iterations *w, int64_t i)
{
    if (w->on && w->hides) {
        oly_timeline_quiet--;
        add(w, i);
    }
    w->on = w->hides = false;
}
