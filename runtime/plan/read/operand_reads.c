/* SPDX-License-Identifier: BSD-3-Clause */
/* Operand reads: where each device finds the region of a value that a step needs. Views (slices, transposes,
 * broadcasts) are followed to the memory they look at, by offsets and strides. Only where a device lacks elements
 * does an exchange bring them; one exchange serves everything announced together (gather_reads.c). */
#include "plan/move/move.h"
#include "plan/read/read.h"
#include "plan/reduce/reduce.h"
#include "core/optimisation.h"
#include "graph/view.h"
#include <string.h>

static bool is_view(const oly_node *n)
{
    return oly_ops[n->op].lowering == OLY_LOWER_VIEW;
}

oly_region oly_view_region(const oly_node *n, const oly_region *r)
{
    if (!is_view(n))
        return oly_shifted_region(n, r);
    oly_region o;
    o.mesh = r->mesh;
    o.rank = n->in[0]->type.rank;
    oly_view_dim dims[OLY_MAX_RANK];
    oly_view_of(n, dims);
    for (int e = 0; e < o.rank; e++)
        o.dim[e] = (oly_region_dim){.split = oly_split_whole(1), .n = 1, .scale = 1};
    for (int d = 0; d < n->type.rank; d++) {
        const oly_view_dim *v = &dims[d];
        if (v->from < 0)
            continue;
        int64_t one = v->start + v->step * r->dim[d].lo, other = v->start + v->step * r->dim[d].hi;
        oly_region_dim *to = &o.dim[v->from];
        *to = r->dim[d];
        to->scale *= v->step;
        to->lo = v->step > 0 ? one : other;
        to->hi = v->step > 0 ? other : one;
    }
    return o;
}

/* The strides of the view's dimensions, from those of its operand. Steps and reversals are in the region's scale
 * already. */
static void view_strides(const oly_node *n, oly_place *place)
{
    int64_t in[OLY_MAX_RANK];
    oly_view_dim dims[OLY_MAX_RANK];
    memcpy(in, place->stride, sizeof in);
    memset(place->stride, 0, sizeof place->stride);
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++)
        place->stride[d] = dims[d].from < 0 ? 0 : in[dims[d].from];
}

/* The place of a region's box in a slot that holds another box of the same value, row-major. Where the region runs
 * backwards, its first element is the box's last. */
static oly_place place_in(const oly_planner *p, int device, int slot, const oly_box *holds, const oly_box *wanted,
                          const oly_region *r, size_t element_bytes)
{
    oly_place place = {.base = oly_cell(p->plan, device, slot)};
    int64_t stride = 1;
    for (int d = holds->rank - 1; d >= 0; d--) {
        int64_t first = r->dim[d].scale < 0 ? wanted->hi[d] - 1 : wanted->lo[d];
        bool steps =
            wanted->hi[d] - wanted->lo[d] > 1; /* for one element the stride is unused, and scale may overflow it */
        place.offset += (first - holds->lo[d]) * stride * (int64_t)element_bytes;
        place.stride[d] = steps ? stride * r->dim[d].scale : stride;
        stride *= holds->hi[d] - holds->lo[d];
    }
    return place;
}

static void read_layout(oly_planner *p, const oly_value *v, const oly_node *n, const oly_region *r, oly_place *place)
{
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, r->mesh, d), holder = d, held;
        place[d].base = -1;
        if (position < 0)
            continue;
        if (v->layout->mesh->everywhere)
            for (holder = 0; holder < p->plan->n_devices && p->plan->devices[holder] != 0; holder++)
                ;
        held = oly_position_in(p, v->layout->mesh, holder);
        oly_box wanted = oly_region_box(r, n->type.shape, position), holds = oly_layout_box(v->layout, held);
        if (oly_box_count(&wanted) > 0)
            place[d] = place_in(p, holder, v->slot, &holds, &wanted, r, oly_dtype_size(n->type.dtype));
    }
    oly_slot_use(p, v->slot);
}

static void read_replica(oly_planner *p, const oly_replica *c, const oly_node *n, const oly_region *r, oly_place *place)
{
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, r->mesh, d);
        place[d].base = -1;
        if (position < 0)
            continue;
        oly_box wanted = oly_region_box(r, n->type.shape, position);
        oly_box holds = oly_region_box(&c->region, n->type.shape, position);
        if (oly_box_count(&wanted) > 0)
            place[d] = place_in(p, d, c->slot, &holds, &wanted, r, oly_dtype_size(n->type.dtype));
    }
    oly_slot_use(p, c->slot);
}

static bool has_all(const oly_replica *c, const oly_region *r)
{
    if (!oly_region_inside_region(r, &c->region))
        return false;
    for (int k = 0; k < c->wanted.n; k++)
        if (oly_region_inside_region(r, &c->wanted.part[k]))
            return true;
    return c->wanted.n == 0;
}

oly_replica *oly_find_replica(const oly_value *v, const oly_region *r)
{
    for (oly_replica *c = v->replicas; c; c = c->next)
        if (has_all(c, r))
            return c;
    return NULL;
}

oly_status oly_add_replica(oly_planner *p, oly_value *v, const oly_region *r, const oly_wanted *wanted, int slot)
{
    oly_replica *c = OLY_PLAN_NEW(p, oly_replica, 1);
    OLY_PLAN_CHECK(c);
    *c = (oly_replica){v->replicas, *r, *wanted, slot};
    v->replicas = c;
    return OLY_OK;
}

/* Transfers the region of a value in memory to a new slot. */
static oly_status fetch(oly_planner *p, oly_frame *f, const oly_node *n, const oly_region *r, oly_replica **replica)
{
    oly_value *v = oly_value_of(f, n);
    int slot = oly_slot_new(p, r, oly_dtype_size(n->type.dtype));
    if (slot < 0)
        return OLY_MEMORY;
    OLY_TRY(oly_plan_reshard(p, f->block, n, v->layout, v->slot, r, slot));
    oly_replica *others = v->replicas;
    OLY_TRY(oly_add_replica(p, v, r, &(oly_wanted){0}, slot));
    *replica = v->replicas;
    if (!oly_enabled(OLY_OPTIMISATION_COPY_REUSE))
        v->replicas = others;
    return OLY_OK;
}

bool oly_is_at_hand(oly_frame *f, const oly_node *node, const oly_region *region)
{
    oly_node *outer = oly_captured(f, node);
    if (outer)
        return oly_is_at_hand(f->outer, outer, region);
    const oly_value *v = oly_value_of(f, node);
    if (oly_is_constant(node) || oly_find_replica(v, region))
        return true;
    oly_node *inside = v->slot < 0 ? oly_looks_at(f, node) : NULL;
    if (inside && oly_sees_its_ends(node, region)) {
        oly_region inner = oly_view_region(node, region);
        return oly_is_at_hand(f, inside, &inner);
    }
    oly_layout kept;
    if (inside)
        return oly_natural_layout(f, node, &kept) && oly_region_inside_layout(region, &kept);
    return v->slot >= 0 && oly_region_inside_layout(region, v->layout);
}

static bool has_steps(const oly_node *slice)
{
    for (int d = 0; d < slice->type.rank; d++)
        if (slice->params.step[d] > 1)
            return true;
    return false;
}

/* Would transferring the region of a view also transfer elements that the view leaves out? */
static bool leaves_out(const oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *r)
{
    oly_layout l;
    return oly_ops[node->op].detail == OLY_VIEW_SLICE && is_view(node) && has_steps(node) &&
           oly_value_of(f, node)->slot < 0 && oly_natural_layout(f, node, &l) && l.mesh == p->mesh &&
           !oly_region_inside_layout(r, &l);
}

oly_status oly_read_operand(oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *region,
                            oly_reading *reading)
{
    oly_node *outer = oly_captured(f, node);
    if (outer)
        return oly_read_operand(p, f->outer, outer, region, reading);
    if (oly_is_constant(node)) {
        reading->constant = node;
        return OLY_OK;
    }
    oly_value *v = oly_value_of(f, node);
    OLY_TRY(oly_reduce_now(p, f, node));
    oly_replica *c = oly_find_replica(v, region);
    oly_node *inside = v->slot < 0 ? oly_looks_at(f, node) : NULL;
    if (!c && inside && !oly_sees_its_ends(node, region)) {
        OLY_TRY(oly_keep_view(p, f, (oly_node *)node));
    } else if (!c && inside && leaves_out(p, f, node, region) && !oly_is_at_hand(f, node, region)) {
        OLY_TRY(oly_keep_view(p, f, (oly_node *)node)); /* the elements left out are not transferred */
    }
    inside = v->slot < 0 ? inside : NULL;
    if (!c && inside) {
        oly_region inner = oly_view_region(node, region);
        OLY_TRY(oly_read_operand(p, f, inside, &inner, reading));
        for (int d = 0; d < p->plan->n_devices && !reading->constant && is_view(node); d++)
            view_strides(node, &reading->place[d]);
        return OLY_OK;
    }
    reading->constant = NULL;
    if (!reading->place)
        reading->place = OLY_PLAN_NEW(p, oly_place, p->plan->n_devices);
    OLY_PLAN_CHECK(reading->place);
    if (!c && v->slot >= 0 && oly_region_inside_layout(region, v->layout)) {
        read_layout(p, v, node, region, reading->place);
        return OLY_OK;
    }
    if (!c)
        OLY_TRY(fetch(p, f, node, region, &c));
    read_replica(p, c, node, region, reading->place);
    return OLY_OK;
}

void oly_reading_use(oly_planner *p, const oly_reading *reading)
{
    for (int d = 0; d < p->plan->n_devices && !reading->constant && reading->place; d++)
        if (reading->place[d].base >= 0)
            oly_slot_use(p, oly_cell_slot(p->plan, reading->place[d].base));
}

/* -- into slots ---------------------------------------------------------------------------------------------------- */

static void region_strides(const oly_box *b, int64_t *stride)
{
    int64_t s = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        stride[d] = s;
        s *= b->hi[d] - b->lo[d];
    }
}

/* Adds copies as a step, or to the step before if that writes other parts of the same value: the copies of one step
 * run concurrently. over: they overwrite what the step before has written, so they need a step of their own. NULL:
 * out of memory. */
static oly_step *copy_step(oly_planner *p, oly_block *b, const oly_node *for_node, int slot, bool over, int n,
                           oly_copy_work *copies)
{
    oly_step *s = b->n_steps ? &b->steps[b->n_steps - 1] : NULL;
    int before = 0;
    bool boxes = !over;
    if (!over && s && s->kind == OLY_STEP_MOVE && s->node == for_node && s->out_slot == slot && !s->exchange &&
        s->bytes == 0 && s->number == p->next_number - 1 && strcmp(s->what, "copy") == 0) {
        before = s->move.n_copies;
        boxes = s->boxes;
        oly_copy_work *all = OLY_PLAN_NEW(p, oly_copy_work, before + n + 1);
        if (!all)
            return NULL;
        memcpy(all, s->move.copies, sizeof *all * (size_t)before);
        memcpy(all + before, copies, sizeof *all * (size_t)n);
        copies = all;
    } else {
        s = oly_step_add(p, b, OLY_STEP_MOVE, for_node, "copy");
        if (!s)
            return NULL;
        s->out_slot = slot;
        s->alone = true;
    }
    s->boxes = boxes;
    s->move.n_copies = before + n;
    s->move.copies = copies;
    return s;
}

/* Where elements are copied to: element i of dimension d to start[d] + i * step[d] of the value in this slot. */
typedef struct destination {
    int slot;
    const oly_layout *whole;
    const int64_t *start, *step;
} destination;

/* Adds the copies of a part of a node, from where it is read. for_node: for explanations. */
static oly_status copy_into(oly_planner *p, oly_frame *f, const oly_node *node, const oly_region *part,
                            const oly_reading *reading, const destination *to, const oly_node *for_node)
{
    size_t element = oly_dtype_size(node->type.dtype);
    oly_copy_work *copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices);
    OLY_PLAN_CHECK(copies);
    int n = 0;
    double work = 0;
    bool gaps = false; /* the elements between must have been written before (lower_write.c) */
    for (int k = 0; k < part->rank; k++)
        gaps = gaps || (to->step[k] != 1 && node->type.shape[k] > 1);
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, part->mesh, d);
        if (position < 0 || reading->place[d].base < 0)
            continue;
        oly_box from = oly_region_box(part, node->type.shape, position), whole = oly_layout_box(to->whole, position);
        if (oly_box_count(&from) == 0)
            continue;
        oly_copy_work *c = &copies[n++];
        c->task = (oly_copy_task){.element_bytes = element, .rank = from.rank};
        c->from = reading->place[d];
        c->to.base = oly_cell(p->plan, d, to->slot);
        region_strides(&whole, c->to.stride);
        for (int k = 0; k < from.rank; k++) {
            c->task.extent[k] = from.hi[k] - from.lo[k];
            c->task.from_stride[k] = c->from.stride[k];
            int64_t first = to->start[k] + to->step[k] * from.lo[k] - whole.lo[k];
            c->to.offset += first * c->to.stride[k] * (int64_t)element;
            c->to.stride[k] *= to->step[k];
            c->task.to_stride[k] = c->to.stride[k];
        }
        work += (double)oly_box_count(&from);
    }
    oly_reading_use(p, reading);
    oly_step *s = copy_step(p, f->block, for_node, to->slot, gaps, n, copies);
    OLY_PLAN_CHECK(s);
    s->work += work;
    oly_slot_use(p, to->slot);
    return OLY_OK;
}

/* Constants have no memory to copy from: a tile program writes them. */
oly_status oly_fill(oly_planner *p, oly_frame *f, const oly_node *constant, const oly_node *node, const oly_layout *l,
                    int slot)
{
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, p->plan->n_devices);
    oly_tile_instruction *i = OLY_PLAN_NEW(p, oly_tile_instruction, 1);
    int16_t *reg = OLY_PLAN_NEW(p, int16_t, 1);
    uint8_t *dtype = OLY_PLAN_NEW(p, uint8_t, 1);
    OLY_PLAN_CHECK(work && i && reg ? dtype : NULL);
    oly_splat_instruction(constant, i);
    *dtype = (uint8_t)constant->type.dtype;
    oly_tile_program program = {.n_instructions = 1,
                                .instructions = i,
                                .n_stores = 1,
                                .store_register = reg,
                                .store_dtype = dtype,
                                .n_registers = 1};
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        if (position < 0)
            continue;
        oly_box b = oly_layout_box(l, position);
        oly_place *store = OLY_PLAN_NEW(p, oly_place, 1);
        OLY_PLAN_CHECK(store);
        store->base = oly_cell(p->plan, d, slot);
        region_strides(&b, store->stride);
        work[d].box.rank = b.rank;
        for (int k = 0; k < b.rank; k++)
            work[d].box.extent[k] = b.hi[k] - b.lo[k];
        memcpy(work[d].box.origin, b.lo, sizeof *b.lo * (size_t)b.rank);
        work[d].stores = store;
        work[d].has_work = oly_box_count(&b) > 0;
        total += (double)oly_box_count(&b);
    }
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_TILE, node, "fill");
    OLY_PLAN_CHECK(s);
    s->tile.program = program;
    s->tile.device = work;
    s->work = total;
    s->replicated = true;
    return OLY_OK;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

oly_status oly_write_part(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                          const oly_layout *whole, const int64_t *start, const int64_t *step)
{
    oly_box all = {.rank = whole->rank};
    memcpy(all.hi, node->type.shape, sizeof all.hi);
    return oly_write_box(p, f, node, for_node, slot, whole, start, step, &all);
}

oly_status oly_write_box(oly_planner *p, oly_frame *f, const oly_node *node, const oly_node *for_node, int slot,
                         const oly_layout *whole, const int64_t *start, const int64_t *step, const oly_box *of)
{
    oly_region part = {.mesh = whole->mesh, .rank = whole->rank};
    oly_reading reading = {0};
    for (int d = 0; d < part.rank; d++) {
        int64_t first = start[d] < 0 ? divide_up(-start[d], step[d]) : 0;
        int64_t end = start[d] < whole->shape[d] ? divide_up(whole->shape[d] - start[d], step[d]) : 0;
        first = first > of->lo[d] ? first : of->lo[d];
        end = end < of->hi[d] ? end : of->hi[d];
        if (end <= first)
            return OLY_OK;
        part.dim[d] = (oly_region_dim){.split = oly_split_sliced(&whole->split[d], start[d] + first * step[d], step[d]),
                                       .n = end - first,
                                       .scale = 1,
                                       .lo = first,
                                       .hi = first};
    }
    OLY_TRY(oly_read_operand(p, f, node, &part, &reading));
    OLY_TRY(oly_constant_in_memory(p, f, whole->mesh, &reading));
    return copy_into(p, f, node, &part, &reading, &(destination){slot, whole, start, step}, for_node);
}

oly_status oly_write_constant(oly_planner *p, oly_frame *f, const oly_node *for_node, int slot,
                              const oly_reading *value, bool apart, int n, oly_copy_work *copies, double work)
{
    oly_reading_use(p, value);
    oly_step *s = copy_step(p, f->block, for_node, slot, apart, n, copies);
    OLY_PLAN_CHECK(s);
    s->what = apart ? "fill" : s->what;
    s->work += work;
    oly_slot_use(p, slot);
    return OLY_OK;
}

static oly_status copy_to_new_slot(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot)
{
    static const int64_t zero[OLY_MAX_RANK], one[OLY_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    oly_region r = oly_region_of_layout(l);
    oly_reading reading = {0};
    OLY_TRY(oly_read_operand(p, f, node, &r, &reading));
    *slot = oly_slot_new(p, &r, oly_dtype_size(node->type.dtype));
    if (*slot < 0)
        return OLY_MEMORY;
    p->plan->slots[*slot].block = f->block;
    if (reading.constant)
        return oly_fill(p, f, reading.constant, node, l, *slot);
    return copy_into(p, f, node, &r, &reading, &(destination){*slot, l, zero, one}, node);
}

/* The slot of a replica in exactly this layout, or -1. */
static int exact_replica(oly_frame *f, const oly_node *node, const oly_layout *l)
{
    oly_region r = oly_region_of_layout(l);
    for (oly_replica *c = oly_value_of(f, node)->replicas; c; c = c->next)
        if (c->wanted.n == 0 && oly_region_equal(&c->region, &r))
            return c->slot;
    return -1;
}

oly_status oly_materialise(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot)
{
    oly_node *outer = oly_captured(f, node);
    if (outer)
        return oly_materialise(p, f->outer, outer, l, slot);
    oly_value *v = oly_value_of(f, node);
    OLY_TRY(oly_reduce_now(p, f, node));
    if (v->slot >= 0 && oly_layout_equal(v->layout, l)) {
        *slot = v->slot;
        oly_slot_use(p, *slot);
        return OLY_OK;
    }
    oly_region r = oly_region_of_layout(l);
    if (v->slot >= 0 && exact_replica(f, node, l) < 0 && !oly_region_inside_layout(&r, v->layout)) {
        oly_replica *c;
        OLY_TRY(fetch(p, f, node, &r, &c));
    }
    *slot = exact_replica(f, node, l);
    if (*slot < 0) {
        OLY_TRY(copy_to_new_slot(p, f, node, l, slot));
        OLY_TRY(oly_add_replica(p, v, &r, &(oly_wanted){0}, *slot));
    }
    oly_slot_use(p, *slot);
    return OLY_OK;
}

/* Does a view leave out or reverse elements of what it looks at? */
static bool is_part(const oly_node *n)
{
    int how = oly_ops[n->op].detail;
    return how == OLY_VIEW_SLICE || how == OLY_VIEW_REV;
}

oly_status oly_keep_view(oly_planner *p, oly_frame *f, oly_node *node)
{
    oly_frame *at = f;
    bool part = false;
    oly_node *n = node;
    for (oly_node *outer;;) {
        if ((outer = oly_captured(at, n))) {
            n = outer;
            at = at->outer;
        } else if (is_view(n) && oly_value_of(at, n)->slot < 0) {
            part = part || is_part(n);
            n = n->in[0];
        } else {
            part = (part || oly_value_of(at, n)->rolled) && !oly_is_constant(n);
            break;
        }
    }
    if (!part)
        return OLY_OK;
    for (oly_node *outer; (outer = oly_captured(f, node)); f = f->outer)
        node = outer;
    oly_layout l = oly_operand_layout(p, f, node);
    oly_value *v = oly_value_of(f, node);
    int slot;
    OLY_TRY(oly_materialise(p, f, node, &l, &slot));
    OLY_TRY(oly_set_layout(p, v, &l));
    v->block = f->block;
    v->slot = slot;
    p->plan->slots[slot].shared = true;
    return OLY_OK;
}

/* May the slot itself be returned as a result or carry? Only if this frame wrote it. */
static bool claimable(const oly_planner *p, const oly_frame *f, int slot)
{
    const oly_slot *s = &p->plan->slots[slot];
    if (s->claimed || s->kind == OLY_SLOT_INPUT || s->block != f->block)
        return false;
    return s->kind != OLY_SLOT_BOUND || !f->loop;
}

oly_status oly_copy_value(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot)
{
    oly_node *outer = oly_captured(f, node);
    *slot = -1;
    if (!outer) {
        oly_value *v = oly_value_of(f, node);
        OLY_TRY(oly_reduce_now(p, f, node));
        if (v->slot >= 0 && oly_layout_equal(v->layout, l) && claimable(p, f, v->slot)) {
            *slot = v->slot;
        } else if (v->slot >= 0 || v->replicas) {
            int other;
            OLY_TRY(oly_materialise(p, f, node, l, &other));
            *slot = claimable(p, f, other) ? other : -1;
        }
    }
    if (*slot < 0)
        OLY_TRY(copy_to_new_slot(p, f, node, l, slot));
    p->plan->slots[*slot].claimed = true;
    return OLY_OK;
}

oly_status oly_own_copy(oly_planner *p, oly_frame *f, const oly_node *node, const oly_layout *l, int *slot)
{
    const oly_value *v = oly_captured(f, node) ? NULL : oly_value_of(f, node);
    if (v && node->n_uses == 1 && v->slot >= 0 && !v->replicas && !p->plan->slots[v->slot].shared)
        return oly_copy_value(p, f, node, l, slot);
    if (v)
        OLY_TRY(oly_reduce_now(p, f, node));
    OLY_TRY(copy_to_new_slot(p, f, node, l, slot));
    p->plan->slots[*slot].claimed = true;
    return OLY_OK;
}
