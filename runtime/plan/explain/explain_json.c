/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as JSON (RFC 8259) for other programs. The members are listed in docs/explain.md. */
#include "plan/explain/explain.h"
#include "core/json_text.h"
#include "plan/cost/forecast.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* -- writing ------------------------------------------------------------------------------------------------------- */

typedef struct writer {
    oly_text *text;
    int depth;
    bool begun; /* the open list is not empty */
} writer;

/* Begins an entry: the separator, and its key in an object (NULL: in an array). Outer levels have a line for each
 * entry, deeper ones stay on that line. */
static void next(writer *w, const char *key)
{
    if (w->begun)
        oly_text_add(w->text, w->depth <= 2 ? "," : ", ");
    if (w->depth <= 2)
        oly_text_add(w->text, "%s%*s", w->depth ? "\n" : "", 2 * w->depth, "");
    w->begun = true;
    if (key) {
        oly_json_quote(w->text, key);
        oly_text_add(w->text, ": ");
    }
}

static void open_list(writer *w, const char *key, const char *bracket)
{
    next(w, key);
    oly_text_add(w->text, "%s", bracket);
    w->depth++;
    w->begun = false;
}

static void close_list(writer *w, const char *bracket)
{
    w->depth--;
    if (w->depth <= 1 && w->begun)
        oly_text_add(w->text, "\n%*s", 2 * w->depth, "");
    oly_text_add(w->text, "%s", bracket);
    w->begun = true;
}

static void string(writer *w, const char *key, const char *value)
{
    next(w, key);
    oly_json_quote(w->text, value);
}

static void integer(writer *w, const char *key, int64_t value)
{
    next(w, key);
    oly_text_add(w->text, "%" PRId64, value);
}

static void boolean(writer *w, const char *key, bool value)
{
    next(w, key);
    oly_text_add(w->text, value ? "true" : "false");
}

static void number(writer *w, const char *key, double value)
{
    next(w, key);
    oly_text_add(w->text, "%.6g", value);
}

/* -- the members --------------------------------------------------------------------------------------------------- */

static void axes_json(writer *w, const char *key, oly_mesh mesh, const oly_axis_list *axes)
{
    open_list(w, key, "[");
    for (int k = 0; k < axes->n; k++)
        string(w, NULL, mesh->name[axes->axis[k]]);
    close_list(w, "]");
}

static void spec_json(writer *w, oly_told *told, oly_mesh mesh, const oly_spec *spec, int rank)
{
    string(w, "sharding", oly_tell_spec(told, mesh, spec));
    open_list(w, "axes", "[");
    for (int d = 0; d < rank; d++)
        axes_json(w, NULL, mesh, d < spec->n_dims ? &spec->dim[d] : &(oly_axis_list){0});
    close_list(w, "]");
}

static void type_json(writer *w, const oly_type *type)
{
    string(w, "dtype", oly_dtype_name(type->dtype));
    open_list(w, "shape", "[");
    for (int d = 0; d < type->rank; d++)
        integer(w, NULL, type->shape[d]);
    close_list(w, "]");
}

static void line_json(writer *w, oly_told *told, const oly_node *n)
{
    const char *line = oly_tell_line(told, n);
    if (*line)
        string(w, "line", line);
}

static void mesh_json(writer *w, oly_mesh mesh)
{
    open_list(w, "mesh", "{");
    open_list(w, "axes", "[");
    for (int k = 0; k < mesh->n_axes; k++) {
        open_list(w, NULL, "{");
        string(w, "name", mesh->name[k]);
        integer(w, "size", mesh->size[k]);
        close_list(w, "}");
    }
    close_list(w, "]");
    integer(w, "devices", mesh->n_devices);
    close_list(w, "}");
}

static void ends_json(writer *w, oly_told *told, const char *key, int n, const oly_plan_value *ends,
                      oly_node *const *nodes, const int *slots, const char *const *names)
{
    open_list(w, key, "[");
    for (int k = 0; k < n; k++) {
        open_list(w, NULL, "{");
        string(w, "value", oly_told_name(told, nodes[k]));
        if (names && names[k])
            string(w, "name", names[k]);
        type_json(w, &ends[k].type);
        spec_json(w, told, ends[k].sharding->mesh, &ends[k].sharding->spec, ends[k].type.rank);
        boolean(w, "committed", ends[k].committed);
        integer(w, "buffer", slots[k]);
        close_list(w, "}");
    }
    close_list(w, "]");
}

typedef struct teller {
    writer *w;
    oly_told *told;
    const oly_told_value *value;
} teller;

static void reason_json(void *user, int dimension, const char *kind, const char *words)
{
    teller *t = user;
    open_list(t->w, NULL, "{");
    if (dimension >= 0)
        integer(t->w, "dimension", dimension);
    string(t->w, "reason", kind);
    string(t->w, "text", words);
    close_list(t->w, "}");
}

static void values_json(writer *w, oly_told *told)
{
    open_list(w, "values", "[");
    for (int k = 0; k < told->n_values; k++) {
        const oly_told_value *v = &told->values[k];
        open_list(w, NULL, "{");
        string(w, "name", v->name);
        string(w, "operation", oly_ops[v->node->op].name);
        open_list(w, "operands", "[");
        for (int j = 0; j < v->node->n_in; j++)
            string(w, NULL, oly_told_name(told, v->node->in[j]));
        close_list(w, "]");
        if (oly_has_value(v->node)) {
            type_json(w, &v->node->type);
            spec_json(w, told, v->mesh, &v->spec, v->node->type.rank);
        }
        boolean(w, "aligned", v->aligned);
        if (v->in_memory)
            integer(w, "buffer", v->slot);
        line_json(w, told, v->node);
        open_list(w, "why", "[");
        oly_tell_reasons(told, v, reason_json, &(teller){w, told, v});
        close_list(w, "]");
        close_list(w, "}");
    }
    close_list(w, "]");
}

static void slots_json(writer *w, const char *key, int n, const int *slots)
{
    open_list(w, key, "[");
    for (int k = 0; k < n; k++)
        integer(w, NULL, slots[k]);
    close_list(w, "]");
}

/* The group of the device at position 0, if it is small enough to list. */
static void first_group_json(writer *w, const oly_told_group *g)
{
    int coordinates[OLY_MAX_RANK] = {0};
    oly_mesh mesh = g->mesh;
    if (g->axes.n == 0 || g->members > 64 || mesh->everywhere)
        return;
    open_list(w, "first_group", "[");
    for (int k = 0; k < g->members; k++) {
        int rest = k;
        for (int a = g->axes.n - 1; a >= 0; a--) {
            coordinates[g->axes.axis[a]] = rest % mesh->size[g->axes.axis[a]];
            rest /= mesh->size[g->axes.axis[a]];
        }
        integer(w, NULL, oly_mesh_device_id(mesh, oly_mesh_position(mesh, coordinates)));
    }
    close_list(w, "]");
}

static void transfer_json(writer *w, oly_told *told, const oly_told_step *s)
{
    open_list(w, "transfer", "{");
    integer(w, "bytes", s->step->bytes);
    integer(w, "wire_bytes", s->step->wire);
    integer(w, "messages", s->step->messages);
    integer(w, "repeats", oly_step_repeats(s->step));
    axes_json(w, "along", s->group.mesh, &s->group.axes);
    integer(w, "members", s->group.members);
    integer(w, "groups", s->group.groups);
    first_group_json(w, &s->group);
    if (s->step->transfer) {
        string(w, "from", oly_tell_spec(told, s->step->transfer->from_mesh, &s->step->transfer->from));
        string(w, "to", oly_tell_spec(told, s->step->transfer->to_mesh, &s->step->transfer->to));
    }
    if (s->way)
        string(w, "way", s->way);
    if (s->way_rate > 0)
        number(w, "way_rate", s->way_rate);
    string(w, "why", oly_tell_transfer(told, s));
    close_list(w, "}");
}

/* Only of what has been timed. */
static void measured_json(writer *w, oly_measured m)
{
    if (m.runs == 0)
        return;
    open_list(w, "measured", "{");
    integer(w, "runs", m.runs);
    number(w, "seconds", m.mean);
    number(w, "most_seconds", m.most);
    close_list(w, "}");
}

static void steps_json(writer *w, oly_told *told)
{
    open_list(w, "steps", "[");
    for (int k = 0; k < told->n_steps; k++) {
        const oly_told_step *s = &told->steps[k];
        open_list(w, NULL, "{");
        integer(w, "number", s->step->number);
        if (s->parent >= 0) {
            integer(w, "inside", told->steps[s->parent].step->number);
            integer(w, "branch", s->branch);
        }
        string(w, "kind", oly_step_kind_name(s->step->kind));
        string(w, "what", s->step->what);
        string(w, "detail", s->step->detail ? s->step->detail : "");
        string(w, "value", oly_told_name(told, s->step->node));
        line_json(w, told, s->step->node);
        if (s->step->reader)
            string(w, "for", oly_told_name(told, s->step->reader));
        slots_json(w, "reads", s->n_reads, s->reads);
        slots_json(w, "writes", s->n_writes, s->writes);
        integer(w, "times", s->times);
        if (s->step->kind == OLY_STEP_LOOP && s->step->loop.predicate < 0)
            integer(w, "count", s->step->loop.count);
        if (s->step->kind == OLY_STEP_STENCIL && s->step->stencil.overlaps)
            number(w, "overlapped", s->step->stencil.early);
        number(w, "seconds", s->seconds);
        measured_json(w, oly_tell_measured(told, s->step));
        integer(w, "live_bytes", s->live);
        if (s->on_host)
            integer(w, "on_host", 1);
        if (s->served)
            integer(w, "copied_to", s->served);
        if (s->communicates)
            transfer_json(w, told, s);
        close_list(w, "}");
    }
    close_list(w, "]");
}

static void buffers_json(writer *w, oly_told *told)
{
    open_list(w, "buffers", "[");
    for (int k = 0; k < told->plan->n_slots; k++) {
        const oly_slot *s = &told->plan->slots[k];
        open_list(w, NULL, "{");
        integer(w, "number", k);
        string(w, "kind", oly_slot_kind_name(s->kind));
        string(w, "holds", oly_tell_slot(told, k));
        integer(w, "bytes", (int64_t)s->bytes);
        integer(w, "first", s->first);
        integer(w, "last", s->last);
        if (s->kind == OLY_SLOT_SCRATCH)
            integer(w, "offset", (int64_t)s->offset);
        close_list(w, "}");
    }
    close_list(w, "]");
}

static void memory_json(writer *w, const oly_told *told)
{
    open_list(w, "memory", "{");
    integer(w, "input_bytes", told->input_bytes);
    integer(w, "kept_bytes", told->kept_bytes);
    integer(w, "scratch_bytes", told->scratch_bytes);
    integer(w, "peak_bytes", told->peak);
    if (told->peak_step >= 0)
        integer(w, "peak_step", told->steps[told->peak_step].step->number);
    close_list(w, "}");
}

static void hints_json(writer *w, const oly_told *told)
{
    open_list(w, "hints", "[");
    for (int k = 0; k < told->n_hints; k++) {
        const oly_hint *h = &told->hints[k];
        open_list(w, NULL, "{");
        string(w, "change", h->change);
        string(w, "saves", h->saves);
        open_list(w, "removes", "[");
        for (int j = 0; j < told->n_steps; j++)
            if (h->removes[j])
                integer(w, NULL, told->steps[j].step->number);
        close_list(w, "]");
        integer(w, "bytes", h->bytes);
        integer(w, "wire_bytes", h->wire);
        integer(w, "collectives", h->collectives);
        integer(w, "memory", h->memory);
        number(w, "seconds", h->seconds);
        close_list(w, "}");
    }
    close_list(w, "]");
}

static void totals_json(writer *w, const oly_told *told)
{
    open_list(w, "totals", "{");
    integer(w, "steps", told->costs.steps);
    integer(w, "collectives", told->costs.collectives);
    integer(w, "bytes", told->bytes);
    integer(w, "wire_bytes", told->costs.wire_bytes);
    integer(w, "scratch_bytes", told->costs.scratch_bytes);
    number(w, "seconds", told->seconds);
    if (oly_forecast_rates())
        string(w, "rates", oly_forecast_rates());
    measured_json(w, oly_tell_measured_run(told));
    close_list(w, "}");
}

void oly_told_json(oly_text *t, oly_told *told)
{
    const oly_plan *plan = told->plan;
    writer w = {.text = t};
    open_list(&w, NULL, "{");
    string(&w, "plan", plan->graph->name);
    integer(&w, "format", 1);
    mesh_json(&w, plan->mesh);
    ends_json(&w, told, "inputs", plan->n_inputs, plan->inputs, plan->graph->inputs, plan->input_slot, told->names);
    ends_json(&w, told, "outputs", plan->n_outputs, plan->outputs, plan->graph->outputs, plan->output_slot, NULL);
    values_json(&w, told);
    steps_json(&w, told);
    buffers_json(&w, told);
    memory_json(&w, told);
    totals_json(&w, told);
    hints_json(&w, told);
    close_list(&w, "}");
    oly_text_add(t, "\n");
}
