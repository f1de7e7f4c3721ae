/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans in Graphviz's language: a box for each step, an arrow for each buffer that one step writes and another
 * reads. Steps that move data between devices are red; bodies of loops and branches are frames. */
#include "plan/explain/explain.h"
#include <string.h>

/* The told steps that have written a buffer, up to the current step; inputs are -2 - number. */
typedef struct writers {
    int n, capacity;
    int *step;
} writers;

typedef struct drawing {
    oly_text *text;
    oly_text arrows; /* written last: a box first mentioned inside a frame would be drawn in it */
    oly_told *told;
    writers *of; /* [n_slots] */
} drawing;

static void escaped(oly_text *t, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            oly_text_add(t, "\\");
        oly_text_add(t, "%c", *text);
    }
}

static void add_writer(drawing *d, int slot, int step)
{
    writers *w = &d->of[slot];
    if (w->n == w->capacity) {
        int capacity = w->capacity ? 2 * w->capacity : 4;
        int *steps = OLY_ARENA_NEW(&d->told->arena, int, capacity);
        if (!steps)
            return;
        if (w->n)
            memcpy(steps, w->step, sizeof *steps * (size_t)w->n);
        w->step = steps;
        w->capacity = capacity;
    }
    w->step[w->n++] = step;
}

static void node_name(oly_text *t, int step)
{
    if (step <= -2)
        oly_text_add(t, "input%d", -2 - step);
    else
        oly_text_add(t, "step%d", step);
}

/* -- boxes --------------------------------------------------------------------------------------------------------- */

static void value_label(drawing *d, const oly_node *n)
{
    const oly_told_value *v = oly_told_value_of(d->told, n);
    if (!v || !oly_has_value(n))
        return;
    oly_text type = {0};
    oly_type_text(&type, &n->type);
    oly_text_add(d->text, "\\n%s ", v->name);
    escaped(d->text, oly_text_chars(&type));
    oly_text_add(d->text, " ");
    escaped(d->text, oly_tell_spec(d->told, v->mesh, &v->spec));
    d->told->failed = d->told->failed || type.failed;
    oly_text_free(&type);
}

static void step_box(drawing *d, int k)
{
    const oly_told_step *ts = &d->told->steps[k];
    const oly_step *s = ts->step;
    oly_text_add(d->text, "  step%d [label=\"%d  ", k, s->number);
    escaped(d->text, s->what);
    if (s->detail) {
        oly_text_add(d->text, ": ");
        escaped(d->text, s->detail);
    }
    value_label(d, s->node);
    if (ts->communicates) {
        oly_text_add(d->text, "\\n");
        oly_bytes_text(d->text, s->bytes);
        oly_text_add(d->text, " per device");
        if (ts->group.axes.n) {
            oly_text_add(d->text, " along ");
            escaped(d->text, oly_tell_axes(d->told, ts->group.mesh, &ts->group.axes));
        }
        oly_text_add(d->text, ", %d members", ts->group.members);
    }
    if (ts->on_host)
        oly_text_add(d->text, "\\non the host");
    oly_text_add(d->text, "\\n");
    escaped(d->text, oly_tell_line(d->told, s->node));
    oly_text_add(d->text, "  ");
    oly_seconds_text(d->text, ts->seconds);
    oly_text_add(d->text, "\"%s];\n", ts->communicates ? ", fillcolor=\"#f6c4bd\", color=\"#b03a2e\"" : "");
}

static void end_box(drawing *d, const char *kind, int k, const oly_plan_value *v)
{
    oly_text words = {0};
    oly_type_text(&words, &v->type);
    oly_text_add(&words, " ");
    oly_text_add(&words, "%s", oly_tell_spec(d->told, v->sharding->mesh, &v->sharding->spec));
    oly_text_add(d->text, "  %s%d [shape=ellipse, fillcolor=\"#d5e8d4\", label=\"%s %d\\n", kind, k, kind, k);
    escaped(d->text, oly_text_chars(&words));
    oly_text_add(d->text, "\"];\n");
    d->told->failed = d->told->failed || words.failed;
    oly_text_free(&words);
}

/* -- arrows -------------------------------------------------------------------------------------------------------- */

static void arrow(drawing *d, int from, const char *to, int number, int slot)
{
    oly_text_add(&d->arrows, "  ");
    node_name(&d->arrows, from);
    oly_text_add(&d->arrows, " -> %s%d [label=\"", to, number);
    escaped(&d->arrows, oly_tell_slot(d->told, slot));
    oly_text_add(&d->arrows, "\"];\n");
}

static bool reads(const oly_told_step *s, int slot)
{
    for (int k = 0; k < s->n_reads; k++)
        if (s->reads[k] == slot)
            return true;
    return false;
}

static void step_arrows(drawing *d, int k)
{
    const oly_told_step *s = &d->told->steps[k];
    if (s->step->kind == OLY_STEP_LOOP)
        return; /* its body reads and writes */
    for (int j = 0; j < s->n_reads; j++)
        for (int w = 0; w < d->of[s->reads[j]].n; w++)
            if (d->of[s->reads[j]].step[w] != k)
                arrow(d, d->of[s->reads[j]].step[w], "step", k, s->reads[j]);
    for (int j = 0; j < s->n_writes; j++) {
        if (reads(s, s->writes[j])) /* written in place: replaces what was there */
            d->of[s->writes[j]].n = 0;
        add_writer(d, s->writes[j], k);
    }
}

/* Afterwards each grows in memory of its own. */
static void copy_writers(drawing *d, int to, int from)
{
    d->of[to] = d->of[from];
    d->of[to].capacity = d->of[from].capacity = d->of[from].n;
}

/* The body of a loop first finds in its carries what was there before the loop, then what it has written. */
static void enter_loop(drawing *d, const oly_step *s)
{
    for (int c = 0; c < s->loop.n_carry; c++)
        if (s->loop.in_slot[c] != s->loop.init_slot[c])
            copy_writers(d, s->loop.in_slot[c], s->loop.init_slot[c]);
}

static void leave_loop(drawing *d, const oly_step *s)
{
    for (int c = 0; c < s->loop.n_carry; c++) {
        copy_writers(d, s->loop.in_slot[c], s->loop.out_slot[c]);
        if (s->loop.result_slot)
            copy_writers(d, s->loop.result_slot[c], s->loop.out_slot[c]);
    }
}

/* Draws the steps from `first` on that are inside `parent`. Returns the step after them. */
static int draw_block(drawing *d, int first, int parent)
{
    int k = first, branch = -1;
    bool framed = parent >= 0;
    while (k < d->told->n_steps && d->told->steps[k].parent == parent) {
        const oly_told_step *s = &d->told->steps[k];
        if (framed && s->branch != branch) {
            const oly_step *around = d->told->steps[parent].step;
            oly_text_add(d->text, "%s  subgraph cluster_%d_%d { style=rounded; color=\"#7f8c8d\"; label=\"",
                         branch >= 0 ? "  }\n" : "", parent, s->branch);
            if (around->kind == OLY_STEP_BRANCH)
                oly_text_add(d->text, "branch %d", s->branch);
            else if (around->loop.predicate < 0)
                oly_text_add(d->text, "%lld times", (long long)around->loop.count);
            else
                oly_text_add(d->text, "while its condition holds");
            oly_text_add(d->text, "\";\n");
            branch = s->branch;
        }
        if (s->step->kind == OLY_STEP_LOOP)
            enter_loop(d, s->step);
        else
            step_box(d, k);
        step_arrows(d, k);
        k = draw_block(d, k + 1, k);
        if (s->step->kind == OLY_STEP_LOOP)
            leave_loop(d, s->step);
    }
    if (branch >= 0)
        oly_text_add(d->text, "  }\n");
    return k;
}

void oly_told_dot(oly_text *t, oly_told *told)
{
    const oly_plan *plan = told->plan;
    drawing d = {t, {0}, told, OLY_ARENA_NEW(&told->arena, writers, plan->n_slots + 1)};
    if (!d.of) {
        t->failed = true;
        return;
    }
    oly_text_add(t, "digraph plan {\n  label=\"");
    escaped(t, plan->graph->name);
    oly_text_add(t, ": %lld collectives, ", (long long)told->costs.collectives);
    oly_bytes_text(t, told->bytes);
    oly_text_add(t, " per device, at most ");
    oly_bytes_text(t, told->peak);
    oly_text_add(t, " of memory, ");
    oly_seconds_text(t, told->seconds);
    oly_text_add(t, "\";\n  labelloc=t;\n  node [shape=box, style=\"filled,rounded\", fillcolor=\"#dae8fc\", "
                    "fontname=\"sans-serif\", fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=8];\n");
    for (int k = 0; k < plan->n_inputs; k++) {
        end_box(&d, "input", k, &plan->inputs[k]);
        add_writer(&d, plan->input_slot[k], -2 - k);
    }
    draw_block(&d, 0, -1);
    for (int k = 0; k < plan->n_outputs; k++) {
        end_box(&d, "output", k, &plan->outputs[k]);
        for (int w = 0; w < d.of[plan->output_slot[k]].n; w++)
            arrow(&d, d.of[plan->output_slot[k]].step[w], "output", k, plan->output_slot[k]);
    }
    oly_text_add(t, "%s}\n", oly_text_chars(&d.arrows));
    t->failed = t->failed || d.arrows.failed;
    oly_text_free(&d.arrows);
}
