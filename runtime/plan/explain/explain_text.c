/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan as text for people: inputs, steps in order, outputs; then the placement of every value and its reason, why
 * data moves, memory, predicted time, and hints. How to read it: docs/explain.md. */
#include "plan/explain/explain.h"
#include "plan/cost/forecast.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 32 }; /* of memory */

/* -- phrases ------------------------------------------------------------------------------------------------------- */

void oly_bytes_text(oly_text *t, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    oly_text_add(t, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void oly_seconds_text(oly_text *t, double seconds)
{
    if (seconds < 1e-6)
        oly_text_add(t, "%.0f ns", seconds * 1e9);
    else if (seconds < 1e-3)
        oly_text_add(t, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        oly_text_add(t, "%.1f ms", seconds * 1e3);
    else
        oly_text_add(t, "%.1f s", seconds);
}

const char *oly_step_kind_name(oly_step_kind kind)
{
    static const char *const names[] = {[OLY_STEP_TILE] = "tile",
                                        [OLY_STEP_REDUCE] = "reduce",
                                        [OLY_STEP_GEMM] = "gemm",
                                        [OLY_STEP_MOVE] = "move",
                                        [OLY_STEP_REDUCTION] = "reduction",
                                        [OLY_STEP_LOOP] = "loop",
                                        [OLY_STEP_BRANCH] = "branch",
                                        [OLY_STEP_STENCIL] = "stencil",
                                        [OLY_STEP_LOCAL] = "local",
                                        [OLY_STEP_WAIT] = "wait",
                                        [OLY_STEP_CALL] = "call"};
    return (size_t)kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "step";
}

const char *oly_slot_kind_name(oly_slot_kind kind)
{
    static const char *const names[] = {[OLY_SLOT_INPUT] = "input",
                                        [OLY_SLOT_SCRATCH] = "scratch",
                                        [OLY_SLOT_POOL] = "pool",
                                        [OLY_SLOT_BOUND] = "bound"};
    return names[kind];
}

const char *oly_tell_slot(oly_told *told, int slot)
{
    int v = told->owner[slot];
    if (v >= 0)
        return oly_told_say(told, "%s%s", told->is_copy[slot] ? "a copy of " : "", told->values[v].name);
    if (told->writer[slot] < 0)
        return "workspace";
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a writer is one of the steps */
    const oly_step *s = told->steps[told->writer[slot]].step;
    return oly_told_say(told, "a buffer of step %d (%s)", s->number, s->what);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* -- the plan ------------------------------------------------------------------------------------------------------ */

static void type_text(oly_text *t, const oly_plan_value *v)
{
    oly_type_text(t, &v->type);
    if (v->sharding->mesh->everywhere) {
        oly_text_add(t, "  on each process");
        return;
    }
    oly_text_add(t, "  ");
    oly_spec_text(t, v->sharding->mesh, &v->sharding->spec, 0);
}

static void site_text(oly_text *t, oly_told *told, const oly_node *n)
{
    const char *line = oly_tell_line(told, n);
    if (*line)
        oly_text_add(t, "   %s", line);
}

void oly_step_words(oly_text *t, oly_told *told, const oly_told_step *ts)
{
    const oly_step *s = ts->step;
    oly_text_add(t, "%s", s->what);
    if (s->detail)
        oly_text_add(t, ": %s", s->detail);
    if (s->node && oly_has_value(s->node) && s->kind != OLY_STEP_STENCIL) {
        oly_text_add(t, " -> ");
        oly_type_text(t, &s->node->type);
    }
    if (ts->communicates) {
        oly_text_add(t, "   [");
        oly_bytes_text(t, s->bytes);
        oly_text_add(t, " per device in %d message%s, %d members%s%s", s->messages, plural(s->messages),
                     ts->group.members, ts->way ? ", by " : "", ts->way ? ts->way : "");
        if (ts->way_rate > 0)
            oly_text_add(t, ", %.3g GB/s measured", ts->way_rate / 1e9);
        oly_text_add(t, "]");
    }
    if (ts->on_host)
        oly_text_add(t, "   [on the host]");
    if (ts->served)
        oly_text_add(t, "   [computed once, shared with %d device%s]", ts->served, plural(ts->served));
    site_text(t, told, s->node);
}

/* The line before a block of a loop or branch. */
static void block_text(oly_text *t, const oly_told *told, int k)
{
    const oly_told_step *ts = &told->steps[k], *parent = &told->steps[ts->parent];
    int indent = 6 * ts->depth;
    if (parent->step->kind == OLY_STEP_BRANCH)
        oly_text_add(t, "%*sbranch %d:\n", indent, "", ts->branch);
    else if (parent->step->loop.predicate < 0)
        oly_text_add(t, "%*s%lld times:\n", indent, "", (long long)parent->step->loop.count);
    else
        oly_text_add(t, "%*swhile its condition holds:\n", indent, "");
}

/* Is step k the first listed step of its block? */
static bool opens_block(const oly_told *told, int k)
{
    for (int j = k - 1; j > told->steps[k].parent; j--)
        if (told->steps[j].parent == told->steps[k].parent && told->steps[j].branch == told->steps[k].branch)
            return false;
    return told->steps[k].parent >= 0;
}

static void plan_text(oly_text *t, oly_told *told)
{
    const oly_plan *plan = told->plan;
    char mesh[512];
    oly_mesh_str(plan->mesh, mesh, sizeof mesh);
    oly_text_add(t, "plan %s on %s, %d device%s\n", plan->graph->name, plan->mesh->n_axes ? mesh : "one device",
                 plan->mesh->n_devices, plural(plan->mesh->n_devices));
    if (oly_forecast_rates())
        oly_text_add(t, "  times predicted for %s\n", oly_forecast_rates());
    for (int k = 0; k < plan->n_inputs; k++) {
        oly_text_add(t, "  input %d   ", k);
        type_text(t, &plan->inputs[k]);
        oly_text_add(t, "\n");
    }
    for (int k = 0; k < told->n_steps; k++) {
        if (opens_block(told, k))
            block_text(t, told, k);
        oly_text_add(t, "%*s%-3d ", 2 + 6 * told->steps[k].depth, "", told->steps[k].step->number);
        oly_step_words(t, told, &told->steps[k]);
        oly_text_add(t, "\n");
    }
    for (int k = 0; k < plan->n_outputs; k++) {
        oly_text_add(t, "  output %d  ", k);
        type_text(t, &plan->outputs[k]);
        oly_text_add(t, "\n");
    }
    oly_text_add(t, "  total: %lld collective%s, ", (long long)told->costs.collectives,
                 plural(told->costs.collectives));
    oly_bytes_text(t, told->bytes);
    oly_text_add(t, " received per device; scratch memory ");
    oly_bytes_text(t, told->scratch_bytes);
    oly_text_add(t, " per device; predicted time ");
    oly_seconds_text(t, told->seconds);
    oly_text_add(t, "\n");
    if (plan->predicted_bytes[0] <= 0)
        return;
    oly_text_add(t, "  layouts chosen by cost: ");
    oly_bytes_text(t, (int64_t)plan->predicted_bytes[1]);
    oly_text_add(t, " between devices instead of ");
    oly_bytes_text(t, (int64_t)plan->predicted_bytes[0]);
    oly_text_add(t, ", predicted ");
    oly_seconds_text(t, plan->predicted_seconds[1]);
    oly_text_add(t, " instead of ");
    oly_seconds_text(t, plan->predicted_seconds[0]);
    oly_text_add(t, "\n");
}

/* -- values -------------------------------------------------------------------------------------------------------- */

typedef struct teller {
    oly_text *text;
    oly_told *told;
    const oly_told_value *value;
} teller;

static void reason_text(void *user, int dimension, const char *kind, const char *words)
{
    teller *w = user;
    (void)kind;
    if (dimension < 0) {
        oly_text_add(w->text, "        %s\n", words);
        return;
    }
    const oly_told_value *v = w->value;
    if (dimension < v->spec.n_dims && v->spec.dim[dimension].n)
        oly_text_add(w->text, "        dimension %d over %s: %s\n", dimension,
                     oly_tell_axes(w->told, v->mesh, &v->spec.dim[dimension]), words);
    else
        oly_text_add(w->text, "        dimension %d not split: %s\n", dimension, words);
}

static void value_text(oly_text *t, oly_told *told, const oly_told_value *v)
{
    const oly_node *n = v->node;
    oly_text_add(t, "    %s = %s", v->name, oly_ops[n->op].name);
    for (int k = 0; k < n->n_in; k++)
        oly_text_add(t, " %s", oly_told_name(told, n->in[k]));
    if (oly_has_value(n)) {
        oly_text_add(t, " : ");
        oly_type_text(t, &n->type);
        if (told->plan->mesh->n_devices > 1 || v->mesh->everywhere)
            oly_text_add(t, "  %s%s", oly_tell_spec(told, v->mesh, &v->spec),
                         v->aligned ? ", aligned with the array it is part of" : "");
    }
    site_text(t, told, n);
    oly_text_add(t, "\n");
    oly_tell_reasons(told, v, reason_text, &(teller){t, told, v});
}

static void values_text(oly_text *t, oly_told *told)
{
    oly_text_add(t, "  values and their placement:\n");
    for (int k = 0; k < told->n_values; k++)
        if (!oly_is_constant(told->values[k].node))
            value_text(t, told, &told->values[k]);
}

/* -- transfers ----------------------------------------------------------------------------------------------------- */

/* The hints that would avoid the transfer. */
static void removers_text(oly_text *t, const oly_told *told, int k)
{
    int n = 0;
    for (int h = 0; h < told->n_hints; h++)
        if (told->hints[h].removes[k])
            oly_text_add(t, "%s%d", n++ ? " or " : "; avoided by hint ", h + 1);
}

static void transfers_text(oly_text *t, oly_told *told)
{
    bool any = false;
    for (int k = 0; k < told->n_steps; k++) {
        const oly_told_step *s = &told->steps[k];
        if (!s->communicates)
            continue;
        if (!any)
            oly_text_add(t, "  why data moves:\n");
        any = true;
        oly_text_add(t, "    step %d, %s", s->step->number, s->step->what);
        if (s->group.axes.n)
            oly_text_add(t, " along %s: %d group%s of %d", oly_tell_axes(told, s->group.mesh, &s->group.axes),
                         s->group.groups, plural(s->group.groups), s->group.members);
        int64_t times = s->times * oly_step_repeats(s->step);
        if (times > 1)
            oly_text_add(t, ", %lld times", (long long)times);
        oly_text_add(t, ": %s", oly_tell_transfer(told, s));
        removers_text(t, told, k);
        oly_text_add(t, "\n");
    }
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

static void bar_text(oly_text *t, int64_t bytes, int64_t most)
{
    int n = most > 0 ? (int)((bytes * 40 + most - 1) / most) : 0;
    for (int k = 0; k < n; k++)
        oly_text_add(t, "#");
}

/* The largest buffers in use on a device during a step. */
static void causes_text(oly_text *t, oly_told *told, const oly_told_step *at)
{
    int listed[4];
    for (int n = 0; n < 4; n++) {
        int best = -1;
        for (int k = 0; k < told->plan->n_slots; k++) {
            const oly_slot *s = &told->plan->slots[k];
            bool used =
                s->kind == OLY_SLOT_INPUT || s->kind == OLY_SLOT_POOL ||
                (s->kind == OLY_SLOT_SCRATCH && at && s->first <= at->step->number && s->last >= at->step->number);
            for (int j = 0; j < n; j++)
                used = used && listed[j] != k;
            if (used && s->bytes && (best < 0 || s->bytes > told->plan->slots[best].bytes))
                best = k;
        }
        if (best < 0)
            return;
        listed[n] = best;
        const oly_slot *s = &told->plan->slots[best];
        oly_text_add(t, "%s", n ? ", " : "      largest: ");
        oly_bytes_text(t, (int64_t)s->bytes);
        oly_text_add(t, " %s", oly_tell_slot(told, best));
        if (s->kind == OLY_SLOT_INPUT)
            oly_text_add(t, " (input %d)", s->index);
    }
}

static void memory_text(oly_text *t, oly_told *told)
{
    oly_text_add(t, "  memory per device: at most ");
    oly_bytes_text(t, told->peak);
    const oly_told_step *peak = told->peak_step >= 0 ? &told->steps[told->peak_step] : NULL;
    if (peak)
        oly_text_add(t, ", in step %d (%s)", peak->step->number, peak->step->what);
    oly_text_add(t, "; inputs ");
    oly_bytes_text(t, told->input_bytes);
    oly_text_add(t, ", results and loop carries ");
    oly_bytes_text(t, told->kept_bytes);
    oly_text_add(t, ", scratch ");
    oly_bytes_text(t, told->scratch_bytes);
    oly_text_add(t, "\n");
    causes_text(t, told, peak);
    oly_text_add(t, "\n");
    int64_t highest = -1;
    for (int k = 0; k < told->n_steps; k++) { /* in long plans only steps that reach a new maximum */
        const oly_told_step *s = &told->steps[k];
        if (told->n_steps > MOST_LINES && s->live <= highest)
            continue;
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there are as many as counted */
        highest = s->live > highest ? s->live : highest;
        oly_text_add(t, "    step %-4d ", s->step->number);
        bar_text(t, s->live, told->peak);
        oly_text_add(t, " ");
        oly_bytes_text(t, s->live);
        oly_text_add(t, "\n");
    }
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

/* ", measured 1.2 us (3 runs, at most 4 us)" */
static void measured_text(oly_text *t, oly_measured m)
{
    if (m.runs == 0)
        return;
    oly_text_add(t, ", measured ");
    oly_seconds_text(t, m.mean);
    oly_text_add(t, " (%lld time%s, at most ", (long long)m.runs, plural(m.runs));
    oly_seconds_text(t, m.most);
    oly_text_add(t, ")");
}

static void time_text(oly_text *t, oly_told *told)
{
    double moving = 0;
    oly_text_add(t, "  predicted time: ");
    oly_seconds_text(t, told->seconds);
    for (int k = 0; k < told->n_steps; k++)
        if (told->steps[k].communicates && told->steps[k].step->kind != OLY_STEP_STENCIL)
            moving += told->steps[k].seconds * (double)told->steps[k].times;
    oly_text_add(t, ", of which ");
    oly_seconds_text(t, moving);
    oly_text_add(t, " in steps that move data");
    measured_text(t, oly_tell_measured_run(told));
    oly_text_add(t, "\n");
    for (int k = 0; k < told->n_steps; k++) {
        const oly_told_step *s = &told->steps[k];
        oly_measured m = oly_tell_measured(told, s->step);
        if (s->seconds <= 0 && m.runs == 0)
            continue;
        oly_text_add(t, "    %*sstep %-4d ", 2 * s->depth, "", s->step->number);
        oly_seconds_text(t, s->seconds);
        if (s->times > 1)
            oly_text_add(t, ", %lld times", (long long)s->times);
        measured_text(t, m);
        oly_text_add(t, "   %s\n", s->step->what);
    }
}

/* -- hints --------------------------------------------------------------------------------------------------------- */

static void hints_text(oly_text *t, const oly_told *told)
{
    if (told->n_hints)
        oly_text_add(t, "  hints:\n");
    for (int k = 0; k < told->n_hints; k++) {
        const oly_hint *h = &told->hints[k];
        oly_text_add(t, "    %d  %s would save %s", k + 1, h->change, h->saves);
        oly_text_add(t, " (");
        oly_seconds_text(t, h->seconds);
        oly_text_add(t, " predicted)");
        if (h->memory > 0) {
            oly_text_add(t, " and take ");
            oly_bytes_text(t, h->memory);
            oly_text_add(t, " more per device");
        }
        oly_text_add(t, "\n");
    }
}

void oly_told_text(oly_text *t, oly_told *told)
{
    plan_text(t, told);
    values_text(t, told);
    transfers_text(t, told);
    memory_text(t, told);
    time_text(t, told);
    hints_text(t, told);
}
