/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds a plan: frames, values, slots, blocks and steps. Called by every pass that adds to a plan; makes no
 * decisions. */
#include "plan/model/planner.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

oly_value *oly_value_of(oly_frame *f, const oly_node *node)
{
    return &f->values[node->index];
}

oly_node *oly_captured(const oly_frame *f, const oly_node *node)
{
    if (!f->loop || oly_ops[node->op].lowering != OLY_LOWER_INPUT)
        return NULL;
    /* The inputs of a loop body are counter, carries, captures; the loop node's operands have no counter. The inputs
     * of a branch are its captures; the branch node's operands start with the index. */
    bool branch = f->loop->params.n_branches > 0;
    int first = branch ? 0 : 1 + f->loop->params.n_carry, shift = branch ? 1 : -1;
    for (int k = first; k < f->graph->n_inputs; k++)
        if (f->graph->inputs[k] == node)
            return f->loop->in[k + shift];
    return NULL;
}

oly_status oly_frame_new(oly_planner *p, oly_frame *outer, oly_node *loop, oly_graph *g, oly_frame **frame)
{
    oly_frame *f = OLY_PLAN_NEW(p, oly_frame, 1);
    OLY_PLAN_CHECK(f);
    f->outer = outer;
    f->loop = loop;
    f->graph = g;
    f->values = OLY_PLAN_NEW(p, oly_value, g->n_nodes + 1);
    f->bodies = OLY_PLAN_NEW(p, oly_frame *, g->n_nodes + 1);
    OLY_PLAN_CHECK(f->values);
    OLY_PLAN_CHECK(f->bodies);
    for (int k = 0; k < g->n_nodes; k++) {
        oly_graph_ahead(g, k, 1);
        f->values[k].slot = f->values[k].group = -1;
        oly_graph *const *graphs;
        for (int j = oly_node_graphs(g->nodes[k], &graphs) - 1; j >= 0; j--) {
            oly_frame *body;
            OLY_TRY(oly_frame_new(p, f, g->nodes[k], graphs[j], &body));
            body->next = f->bodies[k];
            f->bodies[k] = body;
        }
    }
    *frame = f;
    return OLY_OK;
}

oly_block *oly_block_new(oly_planner *p)
{
    oly_block *b = OLY_PLAN_NEW(p, oly_block, 1);
    if (b)
        b->begin = p->next_number;
    return b;
}

oly_step *oly_step_add(oly_planner *p, oly_block *b, oly_step_kind kind, const oly_node *node, const char *what)
{
    if (b->n_steps == b->capacity) {
        int capacity = b->capacity ? 2 * b->capacity : 8;
        oly_step *steps = OLY_PLAN_NEW(p, oly_step, capacity);
        if (!steps)
            return NULL;
        if (b->n_steps)
            memcpy(steps, b->steps, sizeof *steps * (size_t)b->n_steps);
        b->steps = steps;
        b->capacity = capacity;
    }
    oly_step *s = &b->steps[b->n_steps++];
    *s = (oly_step){
        .kind = kind, .number = p->next_number++, .node = node, .what = what, .out_slot = -1, .reader = p->reader};
    b->end = p->next_number;
    return s;
}

int oly_slot_new(oly_planner *p, const oly_region *region, size_t element_bytes)
{
    oly_plan *plan = p->plan;
    if (plan->n_slots == plan->slot_room) {
        int capacity = plan->slot_room ? 2 * plan->slot_room : 16;
        oly_slot *slots = OLY_PLAN_NEW(p, oly_slot, capacity);
        if (!slots) {
            oly_out_of_memory(sizeof *slots * (size_t)capacity, "a plan");
            return -1;
        }
        if (plan->n_slots)
            memcpy(slots, plan->slots, sizeof *slots * (size_t)plan->n_slots);
        plan->slots = slots;
        plan->slot_room = capacity;
    }
    oly_slot *s = &plan->slots[plan->n_slots];
    int64_t everything[OLY_MAX_RANK];
    s->device_bytes = OLY_PLAN_NEW(p, size_t, plan->n_devices);
    if (!s->device_bytes) {
        oly_out_of_memory(sizeof(size_t) * (size_t)plan->n_devices, "a plan");
        return -1;
    }
    s->kind = OLY_SLOT_SCRATCH;
    s->first = s->last = p->next_number;
    for (int d = 0; region && d < region->rank; d++)
        everything[d] = INT64_MAX;
    for (int d = 0; region && d < plan->n_devices; d++) {
        int position = oly_position_in(p, region->mesh, d);
        oly_box b = {0};
        if (position >= 0)
            b = oly_region_box(region, everything, position);
        s->device_bytes[d] = position < 0 ? 0 : (size_t)oly_box_count(&b) * element_bytes;
        if (s->device_bytes[d] > s->bytes)
            s->bytes = s->device_bytes[d];
    }
    return plan->n_slots++;
}

oly_status oly_bind_rows(oly_planner *p, const oly_loop_row *row, oly_block *block, int *n, const oly_loop_row **rows)
{
    oly_loop_row *all = OLY_PLAN_NEW(p, oly_loop_row, *n + 1);
    OLY_PLAN_CHECK(all);
    for (int k = 0; k < *n; k++)
        all[k] = (*rows)[k];
    all[(*n)++] = *row;
    *rows = all;
    oly_slot *s = &p->plan->slots[row->slot];
    s->kind = OLY_SLOT_BOUND;
    s->block = block;
    s->shared = true; /* what is written there is written to the array */
    s->row_of = row->of + 1;
    return OLY_OK;
}

void oly_slot_use(oly_planner *p, int slot)
{
    if (slot >= 0)
        p->plan->slots[slot].last = p->next_number;
}

static bool same_layout(const oly_layout *a, const oly_layout *b)
{
    if (a->mesh != b->mesh || a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++) {
        const oly_split *x = &a->split[d], *y = &b->split[d];
        if (a->shape[d] != b->shape[d] || !oly_axis_list_equal(&x->axes, &y->axes) || x->base != y->base ||
            x->unit != y->unit || x->start != y->start || x->step != y->step)
            return false;
    }
    return true;
}

oly_status oly_set_layout(oly_planner *p, oly_value *v, const oly_layout *l)
{
    if (!p->newest || !same_layout(p->newest, l)) {
        oly_layout *kept = OLY_PLAN_NEW(p, oly_layout, 1);
        OLY_PLAN_CHECK(kept);
        *kept = *l;
        p->newest = kept;
    }
    v->layout = p->newest;
    return OLY_OK;
}

int oly_position_in(const oly_planner *p, oly_mesh mesh, int device)
{
    if (mesh == p->mesh)
        return p->position[device];
    if (mesh->everywhere)
        return p->plan->devices[device] == 0 ? 0 : -1;
    return oly_mesh_position_of(mesh, oly_mesh_local_id(p->plan->devices[device]));
}

int oly_local_id(const oly_planner *p, int device)
{
    return oly_mesh_local_id(p->plan->devices[device]);
}

int oly_id_at(oly_mesh mesh, int position, int process)
{
    int first;
    if (!mesh->everywhere)
        return oly_mesh_device_id(mesh, position);
    oly_mesh_devices_of(process, &first);
    return first;
}

int oly_first_id_of(const oly_plan *plan, int process)
{
    int first, n = oly_mesh_devices_of(process, &first);
    for (int id = first; id < first + n && !plan->default_devices; id++)
        for (int k = 0; k < plan->n_meshes; k++)
            if (oly_mesh_position_of(plan->meshes[k], id) >= 0)
                return id;
    for (int k = 0, begin; k < plan->n_meshes && !plan->default_devices; k++)
        if (oly_mesh_is_beside(plan->meshes[k])) {
            n = oly_mesh_devices_in(plan->meshes[k], process, &begin);
            for (int id = begin; id < begin + n; id++)
                if (oly_mesh_position_of(plan->meshes[k], id) >= 0)
                    return id;
        }
    return first;
}

const char *oly_plan_say(oly_planner *p, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *copy = oly_arena_take(&p->plan->arena, strlen(text) + 1);
    return copy ? strcpy(copy, text) : "";
}

/* Gives a value a layout and its own slot. */
oly_status oly_settle(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l)
{
    oly_value *v = oly_value_of(f, n);
    oly_region r = oly_region_of_layout(l);
    OLY_TRY(oly_set_layout(p, v, l));
    v->block = f->block;
    v->slot = oly_slot_new(p, &r, oly_dtype_size(n->type.dtype));
    if (v->slot < 0)
        return OLY_MEMORY;
    p->plan->slots[v->slot].block = f->block;
    return OLY_OK;
}

void oly_contiguous_strides(const oly_box *b, int64_t *stride)
{
    int64_t s = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        stride[d] = s;
        s *= b->hi[d] - b->lo[d];
    }
}

void oly_append_axes(oly_axis_list *to, const oly_axis_list *from)
{
    for (int k = 0; k < from->n; k++)
        to->axis[to->n++] = from->axis[k];
}

void oly_note_reason(oly_planner *p, oly_value *v, int d, oly_reason reason)
{
    oly_reason *r = OLY_PLAN_NEW(p, oly_reason, 1);
    if (!r)
        return; /* the plan is still valid; the next allocation that fails reports it */
    *r = reason;
    r->dimension = d;
    r->next = v->reasons;
    v->reasons = r;
}
