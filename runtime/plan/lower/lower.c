/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering: turns each operation, in its layout, into steps. One function per kind of lowering (ops.h); none knows
 * an operation's name. Nodes are lowered in order of depth (fusion.c), so that everything a group reads is ready. */
#include "plan/lower/lower.h"
#include "core/optimisation.h"
#include "plan/lower/reduce_in_parts.h"
#include "plan/lower/sink_reductions.h"
#include "graph/factors.h"
#include "core/element.h"
#include <string.h>

/* -- tile programs ------------------------------------------------------------------------------------------------- */

typedef struct load {
    const oly_node *node;
    oly_reading reading;
    int reg;
} load;

typedef struct tiler {
    oly_planner *p;
    oly_frame *f;
    const oly_group *g;
    oly_layout layout;
    const oly_partial_work *partial; /* NULL: all operands are complete */
    bool elsewhere;                  /* partial: the program of devices that do not add complete operands */
    int zero;                        /* partial: the register that holds zero */
    bool *made_of_partials;          /* [n_nodes of the group] */
    int n_loads, n_stores, n_instructions, n_registers;
    load *loads;
    const oly_node **stores;
    oly_tile_instruction *instructions;
    int *reg;      /* [n_nodes of the group] */
    int *last_use; /* the instruction (index in the group) after which the register is free */
    bool busy[OLY_TILE_REGISTERS];
} tiler;

static int index_in(const tiler *t, const oly_node *n)
{
    for (int k = 0; k < t->g->n_nodes; k++)
        if (t->g->nodes[k] == n)
            return k;
    return -1;
}

static int find_load(const tiler *t, const oly_node *n)
{
    for (int k = 0; k < t->n_loads; k++)
        if (t->loads[k].node == n)
            return k;
    return -1;
}

static int free_register(tiler *t)
{
    for (int r = 0; r < OLY_TILE_REGISTERS; r++)
        if (!t->busy[r]) {
            t->busy[r] = true;
            if (r >= t->n_registers)
                t->n_registers = r + 1;
            return r;
        }
    return -1;
}

/* Is the operand a partial result, or computed from one? */
static bool is_partial(const tiler *t, const oly_node *n)
{
    int k = index_in(t, n);
    if (k >= 0)
        return t->made_of_partials[k];
    while (oly_ops[n->op].lowering == OLY_LOWER_VIEW)
        n = n->in[0];
    for (int j = 0; j < t->partial->n_partials; j++)
        if (t->partial->partials[j] == n)
            return true;
    return false;
}

static oly_status find_partials(tiler *t)
{
    t->made_of_partials = OLY_PLAN_NEW(t->p, bool, t->g->n_nodes + 1);
    OLY_PLAN_CHECK(t->made_of_partials);
    for (int k = 0; k < t->g->n_nodes; k++)
        for (int j = 0; j < t->g->nodes[k]->n_in; j++)
            t->made_of_partials[k] = t->made_of_partials[k] || is_partial(t, t->g->nodes[k]->in[j]);
    return OLY_OK;
}

static oly_status gather_loads(tiler *t)
{
    int most = 0, n = 0;
    for (int k = 0; k < t->g->n_nodes; k++)
        most += t->g->nodes[k]->n_in;
    t->loads = OLY_PLAN_NEW(t->p, load, most + 1);
    OLY_PLAN_CHECK(t->loads);
    OLY_TRY(oly_reserve_reads(t->p, most));
    oly_node **nodes = t->p->read;
    oly_region *regions = t->p->read_regions;
    const oly_layout number = {.mesh = t->layout.mesh};
    for (int k = 0; k < t->g->n_nodes; k++)
        for (int j = 0; j < t->g->nodes[k]->n_in; j++) {
            oly_node *in = t->g->nodes[k]->in[j];
            if (index_in(t, in) >= 0 || find_load(t, in) >= 0)
                continue;
            t->loads[t->n_loads++] = (load){.node = in, .reg = -1};
            nodes[n] = in;
            oly_region_from_layout(&regions[n++], in->type.rank ? &t->layout : &number);
        }
    OLY_TRY(oly_gather_reads(t->p, t->f, n, nodes, regions));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_read_operand(t->p, t->f, nodes[k], &regions[k], &t->loads[k].reading));
    return OLY_OK;
}

/* Is it a complete value that is added, so that only one device may add it? */
static bool counts_once(const tiler *t, const oly_node *n, int j)
{
    oly_linearity how = oly_linearity_of(n->op);
    if (!t->elsewhere || (how != OLY_LINEAR_SUM && how != OLY_LINEAR_DIFFERENCE))
        return false;
    return !is_partial(t, n->in[j]) && (is_partial(t, n->in[0]) || is_partial(t, n->in[1]));
}

static oly_status take_zero(tiler *t)
{
    oly_node zero = {.type = t->g->nodes[t->g->n_nodes - 1]->type};
    oly_tile_instruction *i = &t->instructions[t->n_instructions++];
    t->zero = free_register(t);
    if (t->zero < 0)
        return oly_fail(OLY_INVALID, "fused elementwise operations need more than %d registers", OLY_TILE_REGISTERS);
    oly_splat_instruction(&zero, i);
    i->out = (int16_t)t->zero;
    return OLY_OK;
}

/* Loads and constants keep their registers for the whole program; values release theirs after their last use. */
static oly_status take_operand_registers(tiler *t)
{
    for (int k = 0; k < t->n_loads; k++) {
        t->loads[k].reg = free_register(t);
        if (t->loads[k].reg < 0)
            return oly_fail(OLY_INVALID, "fused elementwise operations read more than %d arrays", OLY_TILE_REGISTERS);
        if (!t->loads[k].reading.constant)
            continue;
        oly_tile_instruction *i = &t->instructions[t->n_instructions++];
        oly_splat_instruction(t->loads[k].reading.constant, i);
        i->out = (int16_t)t->loads[k].reg;
    }
    return OLY_OK;
}

static int register_of(const tiler *t, const oly_node *n)
{
    int k = index_in(t, n);
    return k >= 0 ? t->reg[k] : t->loads[find_load(t, n)].reg;
}

static bool used_outside(const tiler *t, int k)
{
    int inside = 0;
    for (int j = k + 1; j < t->g->n_nodes; j++)
        for (int i = 0; i < t->g->nodes[j]->n_in; i++)
            inside += t->g->nodes[j]->in[i] == t->g->nodes[k];
    return t->g->nodes[k]->n_uses > inside || t->g->n_nodes == 1;
}

static oly_status emit_node(tiler *t, int k)
{
    const oly_node *n = t->g->nodes[k];
    oly_tile_instruction *i = &t->instructions[t->n_instructions];
    t->reg[k] = free_register(t);
    if (t->reg[k] < 0)
        return oly_fail(OLY_INVALID, "fused elementwise operations need more than %d registers", OLY_TILE_REGISTERS);
    t->n_instructions++;
    *i = (oly_tile_instruction){.op = (uint16_t)oly_tile_first(oly_ops[n->op].detail),
                                .dtype = (uint8_t)(n->n_in ? n->in[n->n_in == 3 ? 1 : 0]->type.dtype : n->type.dtype),
                                .to = (uint8_t)n->type.dtype,
                                .in = {-1, -1, -1},
                                .attribute = n->params.dimension};
    for (int j = 0; j < n->n_in; j++)
        i->in[j] = (int16_t)(counts_once(t, n, j) ? t->zero : register_of(t, n->in[j]));
    i->out = (int16_t)t->reg[k];
    int then = oly_tile_then(oly_ops[n->op].detail);
    if (then >= 0) { /* now the third operand */
        t->instructions[t->n_instructions] = *i;
        i[1].op = (uint16_t)then;
        i[1].in[0] = i->out;
        i[1].in[1] = i->in[2];
        i[1].in[2] = i->in[2] = -1;
        t->n_instructions++;
    }
    for (int j = 0; j < t->g->n_nodes; j++) /* released after the output has its register: never in place */
        if (j < k && t->last_use[j] == k)
            t->busy[t->reg[j]] = false;
    return OLY_OK;
}

static oly_status emit_program(tiler *t)
{
    int n = t->g->n_nodes;
    t->instructions = OLY_PLAN_NEW(t->p, oly_tile_instruction, 2 * n + t->n_loads + 2);
    t->reg = OLY_PLAN_NEW(t->p, int, n);
    t->last_use = OLY_PLAN_NEW(t->p, int, n);
    t->stores = OLY_PLAN_NEW(t->p, const oly_node *, n);
    OLY_PLAN_CHECK(t->instructions && t->reg && t->last_use ? t->stores : NULL);
    OLY_TRY(take_operand_registers(t));
    if (t->elsewhere)
        OLY_TRY(take_zero(t));
    for (int k = 0; k < n; k++) {
        t->last_use[k] = used_outside(t, k) ? n : k;
        for (int j = k + 1; j < n && t->last_use[k] < n; j++)
            for (int i = 0; i < t->g->nodes[j]->n_in; i++)
                if (t->g->nodes[j]->in[i] == t->g->nodes[k])
                    t->last_use[k] = j;
    }
    for (int k = 0; k < n; k++) {
        OLY_TRY(emit_node(t, k));
        if (used_outside(t, k))
            t->stores[t->n_stores++] = t->g->nodes[k];
    }
    return OLY_OK;
}

static oly_status fill_program(tiler *t, oly_tile_program *program)
{
    int16_t *load_register = OLY_PLAN_NEW(t->p, int16_t, t->n_loads + 1);
    int16_t *store_register = OLY_PLAN_NEW(t->p, int16_t, t->n_stores + 1);
    uint8_t *load_dtype = OLY_PLAN_NEW(t->p, uint8_t, t->n_loads + 1);
    uint8_t *store_dtype = OLY_PLAN_NEW(t->p, uint8_t, t->n_stores + 1);
    OLY_PLAN_CHECK(load_register && store_register && load_dtype ? store_dtype : NULL);
    int n = 0;
    for (int k = 0; k < t->n_loads; k++)
        if (!t->loads[k].reading.constant) {
            load_register[n] = (int16_t)t->loads[k].reg;
            load_dtype[n++] = (uint8_t)t->loads[k].node->type.dtype;
        }
    for (int k = 0; k < t->n_stores; k++) {
        store_register[k] = (int16_t)register_of(t, t->stores[k]);
        store_dtype[k] = (uint8_t)t->stores[k]->type.dtype;
    }
    *program = (oly_tile_program){.n_instructions = t->n_instructions,
                                  .instructions = t->instructions,
                                  .n_loads = n,
                                  .n_stores = t->n_stores,
                                  .load_register = load_register,
                                  .load_dtype = load_dtype,
                                  .store_register = store_register,
                                  .store_dtype = store_dtype,
                                  .n_registers = t->n_registers};
    return OLY_OK;
}

static oly_status fill_device(tiler *t, const oly_tile_program *program, int device, oly_tile_work *w)
{
    int position = oly_position_in(t->p, t->layout.mesh, device), n = 0;
    if (position < 0)
        return OLY_OK;
    oly_place *loads = OLY_PLAN_NEW(t->p, oly_place, program->n_loads + 1);
    oly_place *stores = OLY_PLAN_NEW(t->p, oly_place, program->n_stores + 1);
    OLY_PLAN_CHECK(loads);
    OLY_PLAN_CHECK(stores);
    oly_box b = oly_layout_box(&t->layout, position);
    w->box.rank = b.rank;
    for (int d = 0; d < b.rank; d++) {
        w->box.extent[d] = b.hi[d] - b.lo[d];
        w->box.origin[d] = b.lo[d];
        w->box.whole[d] = t->layout.shape[d];
    }
    for (int k = 0; k < t->n_loads; k++)
        if (!t->loads[k].reading.constant)
            loads[n++] = t->loads[k].reading.place[device];
    for (int k = 0; k < program->n_stores; k++) {
        stores[k].base = oly_cell(t->p->plan, device, oly_value_of(t->f, t->stores[k])->slot);
        oly_contiguous_strides(&b, stores[k].stride);
    }
    w->loads = loads;
    w->stores = stores;
    w->has_work = oly_box_count(&b) > 0;
    return OLY_OK;
}

/* Does this device run this program? Where complete operands are added once, the first device of each group runs one
 * program and the others run another. */
static bool takes_part(const tiler *t, int device)
{
    int position = oly_position_in(t->p, t->layout.mesh, device), coordinates[OLY_MAX_RANK];
    if (!t->partial || !t->partial->adds_complete || position < 0)
        return true;
    bool first = true;
    oly_mesh_coordinates(t->layout.mesh, position, coordinates);
    for (int k = 0; k < t->partial->axes.n; k++)
        first = first && coordinates[t->partial->axes.axis[k]] == 0;
    return first != t->elsewhere;
}

/* "mul add sin"; of very long groups the first few. */
static const char *names_of(oly_planner *p, const oly_group *g)
{
    char names[256];
    size_t at = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const char *name = oly_ops[g->nodes[k]->op].name;
        size_t n = strlen(name);
        if (at + n + 2 > sizeof names)
            break;
        memcpy(names + at, name, n);
        at += n;
        names[at++] = ' ';
    }
    names[at - 1] = 0;
    char *kept = OLY_PLAN_NEW(p, char, at);
    return kept ? memcpy(kept, names, at) : "";
}

static oly_status add_tile_step(tiler *t)
{
    oly_planner *p = t->p;
    oly_tile_program program;
    OLY_TRY(fill_program(t, &program));
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, p->plan->n_devices);
    OLY_PLAN_CHECK(work);
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        if (!takes_part(t, d))
            continue;
        OLY_TRY(fill_device(t, &program, d, &work[d]));
        int64_t n = 1;
        for (int k = 0; k < work[d].box.rank; k++)
            n *= work[d].box.extent[k];
        total += (double)n * t->n_instructions;
    }
    for (int k = 0; k < t->n_loads; k++)
        oly_reading_use(p, &t->loads[k].reading);
    const oly_group *g = t->g;
    oly_step *s = oly_step_add(p, t->f->block, OLY_STEP_TILE, g->nodes[g->n_nodes - 1],
                               g->n_nodes == 1 ? oly_ops[g->nodes[0]->op].name : "elementwise");
    OLY_PLAN_CHECK(s);
    s->tile.program = program;
    s->tile.device = work;
    s->tile.compiles = oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS);
    s->work = total;
    s->replicated = !t->partial;
    if (g->n_nodes > 1)
        s->detail = names_of(p, g);
    for (int k = 0; k < t->n_stores; k++)
        oly_slot_use(p, oly_value_of(t->f, t->stores[k])->slot);
    return OLY_OK;
}

oly_status oly_lower_part(oly_planner *p, oly_frame *f, const oly_group *g, const oly_partial_work *work)
{
    tiler t = {.p = p, .f = f, .g = g, .layout = g->layout, .partial = work};
    OLY_TRY(gather_loads(&t));
    OLY_TRY(emit_program(&t));
    for (int k = 0; k < t.n_stores; k++)
        OLY_TRY(oly_settle(p, f, t.stores[k], &t.layout));
    OLY_TRY(add_tile_step(&t));
    if (!work || !work->adds_complete)
        return OLY_OK;
    OLY_TRY(find_partials(&t));
    t.elsewhere = true;
    t.n_stores = t.n_instructions = t.n_registers = 0;
    memset(t.busy, 0, sizeof t.busy);
    OLY_TRY(emit_program(&t));
    return add_tile_step(&t);
}

oly_status oly_lower_group(oly_planner *p, oly_frame *f, oly_group *g)
{
    OLY_TRY(oly_sink_group(p, f, g));
    if (g->lowered)
        return OLY_OK;
    oly_group rest = *g;
    if (g->left) {
        rest.nodes = g->left;
        rest.n_nodes = g->n_left;
    }
    g->lowered = true;
    return oly_lower_part(p, f, &rest, NULL);
}

/* -- reductions ---------------------------------------------------------------------------------------------------- */

/* Where there are results there is work, also if there is nothing to combine. */
static bool has_results(const oly_reduce_task *t)
{
    for (int d = 0; d < t->rank; d++)
        if (!t->reduced[d] && t->extent[d] == 0)
            return false;
    return true;
}

static oly_status reduce_device(oly_planner *p, const oly_node *n, const oly_layout *in, const oly_reading *reading,
                                int device, int slot, int scratch, oly_reduce_work *w, double *total)
{
    int position = oly_position_in(p, in->mesh, device);
    w->scratch_base = -1;
    if (position < 0)
        return OLY_OK;
    oly_box b = oly_layout_box(in, position);
    w->task = (oly_reduce_task){.combiner = (oly_combiner)oly_ops[n->op].detail,
                                .dtype = n->type.dtype,
                                .rank = in->rank,
                                .converts = n->type.dtype != n->in[0]->type.dtype,
                                .from = n->in[0]->type.dtype};
    w->in = reading->place[device];
    for (int d = 0; d < in->rank; d++) {
        w->task.extent[d] = b.hi[d] - b.lo[d];
        w->task.stride[d] = w->in.stride[d];
        w->task.reduced[d] = oly_has_axis(n, d);
    }
    if (oly_box_count(&b) == 0) { /* no operand elements here, but maybe results: the identity */
        int coordinates[OLY_MAX_RANK];
        oly_mesh_coordinates(in->mesh, position, coordinates);
        for (int d = 0; d < in->rank; d++) {
            int part = oly_split_part_at(&in->split[d], in->mesh, coordinates);
            w->task.extent[d] =
                oly_split_cut(&in->split[d], in->shape[d], part + 1) - oly_split_cut(&in->split[d], in->shape[d], part);
        }
        w->in.base = oly_cell(p->plan, device, slot); /* not read */
        w->in.offset = 0;
    }
    w->out_base = oly_cell(p->plan, device, slot);
    w->has_work = has_results(&w->task);
    size_t bytes = oly_reduce_scratch(&w->task);
    oly_slot *s = &p->plan->slots[scratch];
    s->device_bytes[device] = bytes;
    s->bytes = bytes > s->bytes ? bytes : s->bytes;
    if (bytes)
        w->scratch_base = oly_cell(p->plan, device, scratch);
    *total += (double)oly_box_count(&b);
    return OLY_OK;
}

oly_status oly_read_slot(oly_planner *p, const oly_layout *l, int slot, oly_reading *reading)
{
    *reading = (oly_reading){0};
    reading->place = OLY_PLAN_NEW(p, oly_place, p->plan->n_devices);
    OLY_PLAN_CHECK(reading->place);
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        reading->place[d].base = -1;
        if (position < 0)
            continue;
        oly_box b = oly_layout_box(l, position);
        reading->place[d].base = oly_cell(p->plan, d, slot);
        oly_contiguous_strides(&b, reading->place[d].stride);
    }
    return OLY_OK;
}

/* A constant operand (such as a broadcast number) is stored first. */
oly_status oly_read_array(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *l, oly_reading *reading)
{
    oly_region r = oly_region_of_layout(l);
    OLY_TRY(oly_read_operand(p, f, n, &r, reading));
    if (!reading->constant)
        return OLY_OK;
    int slot;
    OLY_TRY(oly_materialise(p, f, n, l, &slot));
    return oly_read_slot(p, l, slot, reading);
}

/* Does every device have exactly one element of each reduced dimension, in an input of the plan? Then that element
 * is its partial result and no step is needed. (A deferred value may be stored there too: then the input holds its
 * terms, not the value.) */
static bool are_partials(oly_planner *p, oly_frame *f, const oly_node *n, const oly_layout *in)
{
    const oly_value *v = oly_value_of(f, n->in[0]);
    if (f->outer || v->waits || n->type.dtype != n->in[0]->type.dtype || v->slot < 0 ||
        p->plan->slots[v->slot].kind != OLY_SLOT_INPUT || !oly_layout_equal(v->layout, in))
        return false;
    for (int d = 0; d < in->rank; d++)
        if (oly_has_axis(n, d) && (in->split[d].parts != in->shape[d] || in->split[d].base != in->shape[d]))
            return false;
    return true;
}

oly_status oly_lower_reduce(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_layout in = oly_operand_layout(p, f, n->in[0]), out = {.mesh = in.mesh};
    oly_axis_list axes = {0};
    oly_reading reading = {0};
    for (int d = 0; d < in.rank; d++) {
        if (oly_has_axis(n, d)) {
            oly_append_axes(&axes, &in.split[d].axes);
        } else {
            out.shape[out.rank] = in.shape[d];
            out.split[out.rank++] = in.split[d];
        }
    }
    oly_reduction_rule rule = {(oly_combiner)oly_ops[n->op].detail, !n->params.one_by_one};
    OLY_TRY(oly_sink_reduce(p, f, n, &in, rule.combiner, &axes));
    if (are_partials(p, f, n, &in)) {
        oly_value *v = oly_value_of(f, n);
        OLY_TRY(oly_set_layout(p, v, &out));
        v->block = f->block;
        v->slot = oly_value_of(f, n->in[0])->slot;
        p->plan->slots[v->slot].shared = true;
        return oly_place_reduction(p, f, n, &rule, &axes);
    }
    OLY_TRY(oly_read_array(p, f, n->in[0], &in, &reading));
    OLY_TRY(oly_settle(p, f, n, &out));
    oly_value *v = oly_value_of(f, n);
    int scratch = oly_slot_new(p, NULL, 0);
    oly_reduce_work *work = OLY_PLAN_NEW(p, oly_reduce_work, p->plan->n_devices);
    OLY_PLAN_CHECK(scratch >= 0 ? work : NULL);
    p->plan->slots[scratch].block = f->block;
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++)
        OLY_TRY(reduce_device(p, n, &in, &reading, d, v->slot, scratch, &work[d], &total));
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_REDUCE, n, oly_ops[n->op].name);
    OLY_PLAN_CHECK(s);
    s->reduce.device = work;
    s->work = total;
    s->replicated = axes.n == 0; /* neither parts of the operand nor partial results of it */
    for (int d = 0; d < in.rank; d++)
        s->replicated = s->replicated && in.split[d].parts == 1;
    oly_slot_use(p, scratch);
    oly_slot_use(p, v->slot);
    return oly_place_reduction(p, f, n, &rule, &axes);
}

/* -- dispatch ------------------------------------------------------------------------------------------------------ */

static oly_status lower_place(oly_planner *p, oly_frame *f, oly_node *n)
{
    OLY_TRY(oly_sharding_check_constraint(n->params.sharding, n->type.rank));
    oly_layout l = oly_place_layout(p, f, n);
    oly_value *v = oly_value_of(f, n);
    bool done;
    OLY_TRY(oly_reduce_in_parts(p, f, n, &l, &v->slot, &done));
    if (!done) {
        OLY_TRY(oly_materialise(p, f, n->in[0], &l, &v->slot));
        p->plan->slots[v->slot].shared = true;
    }
    OLY_TRY(oly_set_layout(p, v, &l));
    v->block = f->block;
    return OLY_OK;
}

static oly_status lower_by_row(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_value *v = oly_value_of(f, n);
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE:
        return v->group < 0 || f->groups[v->group].lowered ? OLY_OK : oly_lower_group(p, f, &f->groups[v->group]);
    case OLY_LOWER_REDUCE: return oly_lower_reduce(p, f, n);
    case OLY_LOWER_CONTRACT: return oly_lower_contract(p, f, n);
    case OLY_LOWER_WRITE: return oly_lower_write(p, f, n);
    case OLY_LOWER_PAD: return oly_lower_pad(p, f, n);
    case OLY_LOWER_RESHAPE: return oly_lower_reshape(p, f, n);
    case OLY_LOWER_PLACE: return lower_place(p, f, n);
    case OLY_LOWER_LOOP: /* what bodies read from outside is reduced before */
        OLY_TRY(oly_reduce_now(p, f, NULL));
        return oly_lower_loop(p, f, n);
    case OLY_LOWER_BRANCH: OLY_TRY(oly_reduce_now(p, f, NULL)); return oly_lower_branch(p, f, n);
    case OLY_LOWER_PERMUTE: return oly_lower_permute(p, f, n);
    case OLY_LOWER_CUSTOM:
    case OLY_LOWER_MANUAL:
        return oly_fail(OLY_TRACE, "%s is planned outside shard_map; this is an error in Olympus", oly_ops[n->op].name);
    case OLY_LOWER_LOCAL: return oly_lower_local(p, f, n);
    case OLY_LOWER_WINDOW: return oly_lower_window(p, f, n);
    case OLY_LOWER_CALL: return oly_lower_call(p, f, n);
    case OLY_LOWER_INPUT: /* in memory already */
    case OLY_LOWER_VIEW:  /* read through */
    case OLY_LOWER_RESULT: /* settled with its loop */ return OLY_OK;
    }
    return OLY_OK;
}

oly_status oly_lower_node(oly_planner *p, oly_frame *f, oly_node *n)
{
    const oly_node *outer = p->reader;
    p->reader = n;
    oly_status st = lower_by_row(p, f, n);
    p->reader = outer;
    return st;
}
