/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers what an explanation contains: values and their placement, steps in order with the devices and slots
 * involved, memory at each step. For explanations only; planning and running call nothing here but oly_plan_count. */
#include "plan/explain/explain.h"
#include "communicator.h"
#include "plan/cost/forecast.h"
#include "plan/model/effects.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SLOTS = 256 }; /* listed for one step */

const char *oly_told_say(oly_told *told, const char *format, ...)
{
    va_list arguments;
    oly_text t = {0};
    va_start(arguments, format);
    oly_text_add_v(&t, format, arguments);
    va_end(arguments);
    char *copy = oly_arena_take(&told->arena, t.length + 1);
    if (copy)
        memcpy(copy, oly_text_chars(&t), t.length + 1);
    told->failed = told->failed || t.failed || !copy;
    oly_text_free(&t);
    return copy ? copy : "";
}

oly_measured oly_tell_measured(const oly_told *told, const oly_step *s)
{
    const oly_plan *plan = told->plan;
    return oly_label_measured(plan->labels && s->number < plan->n_labels ? plan->labels[s->number] : 0);
}

oly_measured oly_tell_measured_run(const oly_told *told)
{
    return oly_label_measured(told->plan->labels ? told->plan->labels[told->plan->n_labels] : 0);
}

bool oly_step_communicates(const oly_step *s)
{
    return s->bytes > 0 && s->messages > 0;
}

int64_t oly_step_repeats(const oly_step *s)
{
    if (s->kind != OLY_STEP_STENCIL)
        return 1;
    int64_t passes = (s->stencil.count + s->stencil.pass - 1) / s->stencil.pass;
    return passes > 1 ? passes - 1 : 1; /* the first margins come by a step of their own */
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static int count_values(const oly_frame *f)
{
    int n = f->graph->n_nodes;
    for (int k = 0; k < f->graph->n_nodes; k++)
        for (const oly_frame *b = f->bodies[k]; b; b = b->next)
            n += count_values(b);
    return n;
}

/* Where a value is placed: in memory, through the value it is a view of, or by propagation. */
static void place_value(oly_told_value *v, oly_mesh mesh)
{
    oly_value *known = oly_value_of(v->frame, v->node);
    oly_layout l;
    v->mesh = mesh;
    v->slot = known->slot;
    v->in_memory = known->slot >= 0;
    if (oly_natural_layout(v->frame, v->node, &l)) {
        v->mesh = l.mesh;
        v->spec = oly_layout_spec(&l);
        v->aligned = !oly_layout_is_canonical(&l);
        return;
    }
    v->spec.n_dims = v->node->type.rank;
    for (int d = 0; d < v->node->type.rank; d++)
        v->spec.dim[d] = known->axes[d];
    while (v->spec.n_dims > 0 && v->spec.dim[v->spec.n_dims - 1].n == 0)
        v->spec.n_dims--;
}

static void tell_frame(oly_told *t, oly_frame *f, const char *prefix)
{
    int first = t->n_values;
    for (int k = 0; k < f->graph->n_nodes; k++) {
        oly_told_value *v = &t->values[t->n_values++];
        v->frame = f;
        v->node = f->graph->nodes[k];
        v->name = oly_told_say(t, "%%%s%d", prefix, k);
        place_value(v, t->plan->mesh);
    }
    for (int k = 0; k < f->graph->n_nodes; k++) {
        int branch = 0;
        for (oly_frame *b = f->bodies[k]; b; b = b->next, branch++)
            tell_frame(t, b,
                       oly_ops[f->graph->nodes[k]->op].lowering == OLY_LOWER_BRANCH
                           ? oly_told_say(t, "%s.%d.", t->values[first + k].name + 1, branch)
                           : oly_told_say(t, "%s.", t->values[first + k].name + 1));
    }
}

const oly_told_value *oly_told_value_of(const oly_told *t, const oly_node *node)
{
    int first = 0;
    for (int k = 0; node && k < t->n_values; k = first) {
        const oly_graph *g = t->values[k].frame->graph;
        if (node->index >= 0 && node->index < g->n_nodes && g->nodes[node->index] == node)
            return &t->values[k + node->index];
        first = k + g->n_nodes;
    }
    return NULL;
}

const char *oly_told_name(const oly_told *t, const oly_node *node)
{
    const oly_told_value *v = oly_told_value_of(t, node);
    return v ? v->name : "";
}

/* First the values' own slots, then copies of values. */
static oly_status find_owners(oly_told *t)
{
    t->owner = OLY_ARENA_NEW(&t->arena, int, t->plan->n_slots + 1);
    t->is_copy = OLY_ARENA_NEW(&t->arena, bool, t->plan->n_slots + 1);
    t->writer = OLY_ARENA_NEW(&t->arena, int, t->plan->n_slots + 1);
    OLY_PLAN_CHECK(t->owner && t->is_copy ? t->writer : NULL);
    for (int k = 0; k < t->plan->n_slots; k++)
        t->owner[k] = t->writer[k] = -1;
    for (int k = 0; k < t->n_values; k++)
        if (t->values[k].slot >= 0 && t->owner[t->values[k].slot] < 0)
            t->owner[t->values[k].slot] = k;
    for (int k = 0; k < t->n_values; k++)
        for (const oly_replica *r = oly_value_of(t->values[k].frame, t->values[k].node)->replicas; r; r = r->next)
            if (r->slot >= 0 && t->owner[r->slot] < 0) {
                t->owner[r->slot] = k;
                t->is_copy[r->slot] = true;
            }
    for (int k = 0; k < t->plan->n_outputs; k++) {
        const oly_told_value *v = oly_told_value_of(t, t->plan->graph->outputs[k]);
        if (v && t->owner[t->plan->output_slot[k]] < 0)
            t->owner[t->plan->output_slot[k]] = (int)(v - t->values);
    }
    return OLY_OK;
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

static int count_steps(const oly_block *b)
{
    int n = b->n_steps;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        if (s->kind == OLY_STEP_LOOP)
            n += count_steps(s->loop.body);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            n += count_steps(s->branch.blocks[j]);
    }
    return n;
}

static bool list_has(const oly_axis_list *l, int axis)
{
    return memchr(l->axis, axis, l->n) != NULL;
}

/* The axes along which the devices that exchange data differ: those that do not split the same dimension before and
 * after. If all do, neighbours exchange: along every axis that splits a dimension. */
static oly_axis_list moved_axes(const oly_transfer *t)
{
    oly_axis_list moved = {0}, cutting = {0};
    if (t->from_mesh != t->to_mesh)
        return moved;
    for (int axis = 0; axis < t->from_mesh->n_axes; axis++) {
        bool cuts = false, differs = false;
        for (int d = 0; d < t->from.n_dims || d < t->to.n_dims; d++) {
            bool before = d < t->from.n_dims && list_has(&t->from.dim[d], axis);
            bool after = d < t->to.n_dims && list_has(&t->to.dim[d], axis);
            cuts = cuts || before || after;
            differs = differs || before != after;
        }
        if (differs)
            moved.axis[moved.n++] = (uint8_t)axis;
        if (cuts)
            cutting.axis[cutting.n++] = (uint8_t)axis;
    }
    return moved.n ? moved : cutting;
}

static oly_told_group group_of(const oly_plan *plan, const oly_step *s)
{
    oly_told_group g = {.mesh = plan->mesh, .axes = s->over, .members = s->members, .groups = 1};
    if (s->kind == OLY_STEP_STENCIL && s->stencil.margins[0] && s->stencil.margins[0]->n_steps)
        s = &s->stencil.margins[0]->steps[0];
    if (s->transfer)
        g.axes = moved_axes(s->transfer);
    if (g.axes.n == 0)
        return g;
    if (s->transfer)
        g.mesh = s->transfer->to_mesh;
    g.members = oly_axis_list_parts(g.mesh, &g.axes);
    g.groups = g.mesh->n_devices / g.members;
    return g;
}

/* Slots in ascending order, without duplicates. */
typedef struct slot_list {
    bool writes;
    int n, slots[MOST_SLOTS];
} slot_list;

static void list_slot(void *context, int slot, bool writes)
{
    slot_list *l = context;
    int at = 0;
    while (at < l->n && l->slots[at] < slot)
        at++;
    if (slot < 0 || writes != l->writes || (at < l->n && l->slots[at] == slot) || l->n == MOST_SLOTS)
        return;
    memmove(l->slots + at + 1, l->slots + at, sizeof *l->slots * (size_t)(l->n - at));
    l->slots[at] = slot;
    l->n++;
}

/* What loops and branches read and write themselves; the steps inside are described separately. */
static void list_own(const oly_step *s, slot_list *l)
{
    for (int c = 0; s->kind == OLY_STEP_LOOP && c < s->loop.n_carry; c++) {
        list_slot(l, s->loop.init_slot[c], false);
        list_slot(l, s->loop.in_slot[c], true);
        list_slot(l, s->loop.result_slot ? s->loop.result_slot[c] : -1, true);
    }
    if (s->kind == OLY_STEP_BRANCH)
        list_slot(l, s->branch.index_slot, false);
}

static oly_status tell_slots(oly_told *t, const oly_step *s, bool writes, int *n, const int **slots)
{
    slot_list found = {.writes = writes};
    if (s->kind == OLY_STEP_LOOP || s->kind == OLY_STEP_BRANCH)
        list_own(s, &found);
    else
        oly_step_effects(t->plan, s, list_slot, &found);
    int *copy = OLY_ARENA_NEW(&t->arena, int, found.n + 1);
    OLY_PLAN_CHECK(copy);
    memcpy(copy, found.slots, sizeof *copy * (size_t)found.n);
    *n = found.n;
    *slots = copy;
    return OLY_OK;
}

bool (*oly_plan_on_host)(const oly_plan *plan, const oly_step *step);
int (*oly_plan_served)(const oly_plan *plan, const oly_step *step);

/* Where devices are GPUs. What moves between processes moves on all by the same way; within one, GPUs read each other's memory. */
static const char peer_copies[] = "peer copies";
static const char *way_of(const oly_step *s)
{
    static const char *const names[OLY_N_WAYS] = {[OLY_WAY_HOST] = "MPI",
                                                  [OLY_WAY_STAGED] = "MPI and pinned memory",
                                                  [OLY_WAY_AWARE] = "CUDA-aware MPI",
                                                  [OLY_WAY_NCCL] = "NCCL"};
    bool apart = s->exchange || s->second || s->begun || (s->kind == OLY_STEP_REDUCTION && s->reduction.staged);
    if (s->kind == OLY_STEP_STENCIL && s->stencil.margins[0] && s->stencil.margins[0]->n_steps)
        return way_of(&s->stencil.margins[0]->steps[0]);
    if (!oly_plan_on_host || !oly_step_communicates(s))
        return NULL;
    return apart ? names[oly_transport_way()] : peer_copies;
}

/* As it was measured; 0: it was not, or nothing goes that way. */
static double rate_of(const char *way)
{
    double latency, bandwidth;
    bool apart = way && strcmp(way, peer_copies) != 0;
    return apart && oly_transport_price(&latency, &bandwidth) ? bandwidth : 0;
}

static oly_status tell_block(oly_told *t, const oly_block *b, int parent, int branch, int depth, int64_t times)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        int me = t->n_steps++;
        oly_told_step *told = &t->steps[me];
        *told = (oly_told_step){.step = s,
                                .parent = parent,
                                .branch = branch,
                                .depth = depth,
                                .times = times,
                                .communicates = oly_step_communicates(s),
                                .on_host = oly_plan_on_host && oly_plan_on_host(t->plan, s),
                                .served = oly_plan_served ? oly_plan_served(t->plan, s) : 0,
                                .way = way_of(s),
                                .way_rate = rate_of(way_of(s)),
                                .group = group_of(t->plan, s),
                                .seconds = oly_forecast_step(t->plan, s)};
        OLY_TRY(tell_slots(t, s, false, &told->n_reads, &told->reads));
        OLY_TRY(tell_slots(t, s, true, &told->n_writes, &told->writes));
        for (int j = 0; j < told->n_writes; j++)
            if (t->writer[told->writes[j]] < 0)
                t->writer[told->writes[j]] = me;
        if (s->kind == OLY_STEP_LOOP)
            OLY_TRY(tell_block(t, s->loop.body, me, 0, depth + 1, times * (s->loop.predicate < 0 ? s->loop.count : 1)));
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            OLY_TRY(tell_block(t, s->branch.blocks[j], me, j, depth + 1, times));
        if (told->communicates) {
            int64_t repeats = times * oly_step_repeats(s);
            t->costs.collectives += repeats;
            t->costs.wire_bytes += repeats * s->wire;
            t->bytes += repeats * s->bytes;
        }
    }
    return OLY_OK;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* Scratch bytes in use at each step number. */
static void scratch_in_use(const oly_told *t, int64_t *use, int n)
{
    for (int k = 0; k < t->plan->n_slots; k++) {
        const oly_slot *slot = &t->plan->slots[k];
        if (slot->kind != OLY_SLOT_SCRATCH || slot->first >= n)
            continue;
        use[slot->first] += (int64_t)slot->bytes;
        if (slot->last + 1 < n)
            use[slot->last + 1] -= (int64_t)slot->bytes;
    }
    for (int k = 1; k < n; k++)
        use[k] += use[k - 1];
}

/* Inputs and pool buffers are live for the whole run, scratch slots during their lifetime. */
static oly_status tell_memory(oly_told *t)
{
    const oly_plan *plan = t->plan;
    int n = plan->n_steps + 1;
    int64_t *use = OLY_ARENA_NEW(&t->arena, int64_t, n);
    OLY_PLAN_CHECK(use);
    scratch_in_use(t, use, n);
    t->scratch_bytes = (int64_t)plan->scratch_bytes;
    for (int k = 0; k < plan->n_slots; k++) {
        if (plan->slots[k].kind == OLY_SLOT_INPUT)
            t->input_bytes += (int64_t)plan->slots[k].bytes;
        if (plan->slots[k].kind == OLY_SLOT_POOL)
            t->kept_bytes += (int64_t)plan->slots[k].bytes;
    }
    t->peak = t->input_bytes + t->kept_bytes;
    t->peak_step = -1;
    for (int k = 0; k < t->n_steps; k++) {
        oly_told_step *s = &t->steps[k];
        s->live = t->input_bytes + t->kept_bytes + (s->step->number < n ? use[s->step->number] : 0);
        if (t->peak_step < 0 || s->live > t->peak) {
            t->peak = s->live;
            t->peak_step = k;
        }
    }
    return OLY_OK;
}

/* -- the whole explanation ----------------------------------------------------------------------------------------- */

static oly_status gather(oly_told *t)
{
    int n_values = count_values(t->plan->frame), n_steps = count_steps(t->plan->main);
    t->values = OLY_ARENA_NEW(&t->arena, oly_told_value, n_values + 1);
    t->steps = OLY_ARENA_NEW(&t->arena, oly_told_step, n_steps + 1);
    OLY_PLAN_CHECK(t->values ? t->steps : NULL);
    tell_frame(t, t->plan->frame, "");
    OLY_TRY(find_owners(t));
    OLY_TRY(tell_block(t, t->plan->main, -1, 0, 0, 1));
    t->costs.steps = t->n_steps;
    t->costs.scratch_bytes = (int64_t)t->plan->scratch_bytes;
    t->seconds = oly_forecast_plan(t->plan);
    return tell_memory(t);
}

const char *oly_told_input(oly_told *told, int k)
{
    const char *name = told->names ? told->names[k] : NULL;
    return name ? oly_told_say(told, "%s, input %d", name, k) : oly_told_say(told, "input %d", k);
}

oly_status oly_tell(const oly_plan *plan, const char *const *names, oly_told *told)
{
    *told = (oly_told){.plan = plan, .names = names};
    oly_status st = gather(told);
    if (st != OLY_OK)
        oly_told_free(told);
    return st;
}

void oly_told_free(oly_told *told)
{
    oly_arena_free(&told->arena);
}

static void count(const oly_block *b, int64_t times, oly_plan_costs *costs)
{
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        costs->steps++;
        if (s->kind == OLY_STEP_LOOP)
            count(s->loop.body, times * (s->loop.predicate < 0 ? s->loop.count : 1), costs);
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++)
            count(s->branch.blocks[j], times, costs);
        if (oly_step_communicates(s)) {
            costs->collectives += times * oly_step_repeats(s);
            costs->wire_bytes += times * oly_step_repeats(s) * s->wire;
        }
    }
}

void oly_plan_count(const oly_plan *plan, oly_plan_costs *costs)
{
    *costs = (oly_plan_costs){.scratch_bytes = (int64_t)plan->scratch_bytes};
    count(plan->main, 1, costs);
}

oly_status oly_plan_explain(oly_text *t, const oly_plan *plan, oly_explain_form form, bool hints,
                            const char *const *names)
{
    oly_told told;
    OLY_TRY(oly_tell(plan, names, &told));
    oly_status st = hints ? oly_find_hints(&told) : OLY_OK;
    if (st == OLY_OK && form == OLY_EXPLAIN_JSON)
        oly_told_json(t, &told);
    else if (st == OLY_OK && form == OLY_EXPLAIN_DOT)
        oly_told_dot(t, &told);
    else if (st == OLY_OK)
        oly_told_text(t, &told);
    bool failed = t->failed || told.failed;
    oly_told_free(&told);
    return st == OLY_OK && failed ? oly_out_of_memory(t->length, "an explanation") : st;
}

oly_status oly_plan_diff(oly_text *t, const oly_plan *before, const oly_plan *after)
{
    oly_told a, b;
    OLY_TRY(oly_tell(before, NULL, &a));
    oly_status st = oly_tell(after, NULL, &b);
    if (st == OLY_OK) {
        oly_told_diff(t, &a, &b);
        if (t->failed || a.failed || b.failed)
            st = oly_out_of_memory(t->length, "an explanation");
        oly_told_free(&b);
    }
    oly_told_free(&a);
    return st;
}
