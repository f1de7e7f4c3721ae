/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduce-scatter over groups of any length, level by level: one digit of the positions along one axis after the
 * other, in the order that reduction_order.c gives. In a level a device exchanges with those that differ from it in
 * that digit only, and reduces the blocks of the positions that agree with it in this digit and all before. So each
 * level divides what a device holds by its radix, up to 16, until its own block is left. Every element is received
 * once, as in a direct exchange, but in up to 15 messages a level instead of one from every device.
 *
 *   16 positions x, in two levels of 4: after the first, position 6 = 2 + 4 * 1 holds the sum over 4..7 of blocks 2, 6,
 *   10, 14; after the second, with what 2, 10 and 14 hold of it, the sum of block 6 over all
 *
 * The blocks that a device holds are a residue *class*: x mod t = v, t being the product of the levels so far. If
 * the last run of t positions is shorter, its positions also hold the classes of the missing ones, wrapped digit by
 * digit. A class is contiguous in memory, the blocks of each dimension adjacent; a class of a later level within it
 * is a few strided boxes (block_classes.c). So nothing grows with the number of blocks, and planning adds one step,
 * whose levels are listed when it first runs (oly_reduction_levels). What needs too much memory is done in rounds,
 * each for a part of every block. Called by reduce_scatter.c. */
#include "plan/reduce/reduce_scatter_tree.h"
#include "plan/move/messages.h"
#include "plan/reduce/block_classes.h"
#include "plan/reduce/reduction_steps.h"
#include "plan/reduce/reduction_tree.h"
#include "core/min_max.h"
#include <stdlib.h>
#include <string.h>

enum {
    WORTH_SHARING = 1 << 13, /* elements of a copy */
    SMALL = 1 << 17,         /* bytes that a device receives */
};

typedef struct context {
    oly_planner *p; /* what is kept of it after planning */
    oly_scatter_shape shape;
    oly_reduction_rule rule;
    oly_layout partial, target;
    int64_t element;
    int slot, target_slot, room; /* room: two buffers for data between levels, then staged partial results */
    int64_t *held_bytes;         /* [n_devices] of each of the two buffers */
    oly_reduction_levels levels;
} context;

/* What a device holds of one class. */
typedef struct holding {
    oly_class class;
    int64_t number, elements, offset; /* in elements; before the first level not meaningful */
} holding;

typedef struct holdings {
    int n, capacity;
    holding *list; /* sorted by number */
} holdings;

/* A level being listed. */
typedef struct lister {
    const context *c;
    oly_arena scratch;
    int level, n_digits; /* digits reduced before */
    bool first, last;
    oly_scatter_widths widths;
    holdings *before, *after; /* [n_devices] */
    oly_message_list messages;
    int n_copies, copy_room, n_groups, group_room;
    oly_copy_work *copies;
    oly_reduction_work *groups;
} lister;

/* -- who holds what ------------------------------------------------------------------------------------------------------- */

/* The number of runs of `stride` positions in the run of radix * stride that begins at `base`. */
static int runs_in(const oly_scatter_axis *a, int digit, int base)
{
    return (int)oly_smaller(a->radix[digit], (a->size - base + a->stride[digit] - 1) / a->stride[digit]);
}

/* The position that holds class v after n digits, in the run that begins at `start`. */
static int holder(const oly_scatter_axis *a, int start, int64_t v, int n)
{
    for (int k = n - 1; k >= 0; k--)
        start += (int)(v / a->stride[k] % a->radix[k]) % runs_in(a, k, start) * a->stride[k];
    return start;
}

/* The begin of the run of n digits that contains the position. */
static int run_of(const oly_scatter_axis *a, int position, int n)
{
    return position - (n > 0 ? position % (a->stride[n - 1] * a->radix[n - 1]) : 0);
}

static int64_t classes_of(const oly_scatter_axis *a, int n)
{
    return n > 0 ? (int64_t)a->stride[n - 1] * a->radix[n - 1] : 1;
}

/* The next class after v, along one axis, that a position holds after n digits; -1: none. v = -1: the first. */
static int64_t next_class(const oly_scatter_axis *a, int position, int n, int64_t v)
{
    int64_t next = 0;
    if (v < 0) {
        for (int k = 0; k < n; k++)
            next += (int64_t)(position / a->stride[k] % a->radix[k]) * a->stride[k];
        return next;
    }
    for (int k = 0; k < n; k++) { /* each digit advances by the number of runs that exist */
        int base = run_of(a, position, k + 1), runs = runs_in(a, k, base),
            digit = (int)(v / a->stride[k] % a->radix[k]);
        if (digit + runs < a->radix[k])
            return v + (int64_t)runs * a->stride[k];
        v -= (int64_t)(digit - digit % runs) * a->stride[k];
    }
    return -1;
}

static oly_status add_holding(oly_arena *arena, holdings *h, const holding *one)
{
    if (h->n == h->capacity) {
        int capacity = h->capacity ? 4 * h->capacity : 4;
        holding *more = OLY_ARENA_NEW(arena, holding, capacity);
        OLY_PLAN_CHECK(more);
        if (h->n)
            memcpy(more, h->list, sizeof *more * (size_t)h->n);
        h->list = more;
        h->capacity = capacity;
    }
    h->list[h->n++] = *one;
    return OLY_OK;
}

/* The classes that a position holds after the first n_digits digits, stored one after the other, and their
 * offsets. */
static oly_status find_holdings(const context *c, const oly_scatter_widths *w, int position, int n_digits,
                                oly_arena *arena, holdings *h)
{
    const oly_scatter_shape *s = &c->shape;
    int at[OLY_MAX_RANK], digits[OLY_MAX_RANK];
    holding one = {.offset = 0};
    oly_mesh_coordinates(s->mesh, position, at);
    for (int a = 0; a < s->n_axes; a++) {
        digits[a] = 0;
        for (int k = 0; k < n_digits; k++)
            digits[a] += s->digit_axis[k] == a;
        one.class.t[a] = classes_of(&s->axis[a], digits[a]);
        one.class.v[a] = next_class(&s->axis[a], at[s->axis[a].axis], digits[a], -1);
    }
    h->n = 0;
    for (int a = 0; a >= 0;) {
        one.number = oly_class_number(s, &one.class);
        one.elements = oly_class_elements(s, w, at, n_digits > 0 ? &one.class : NULL);
        if (one.elements > 0) {
            OLY_TRY(add_holding(arena, h, &one));
            one.offset += one.elements;
        }
        for (a = s->n_axes - 1; a >= 0; a--) {
            int position_at = at[s->axis[a].axis];
            int64_t next = next_class(&s->axis[a], position_at, digits[a], one.class.v[a]);
            one.class.v[a] = next >= 0 ? next : next_class(&s->axis[a], position_at, digits[a], -1);
            if (next >= 0)
                break;
        }
    }
    return OLY_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const holding *)a)->number, y = ((const holding *)b)->number;
    return (x > y) - (x < y);
}

static int64_t elements_held(const holdings *h)
{
    return h->n > 0 ? h->list[h->n - 1].offset + h->list[h->n - 1].elements : 0;
}

/* -- one level ------------------------------------------------------------------------------------------------------------ */

static int cell_of(const context *c, int device, int slot)
{
    return oly_cell(c->p->plan, device, slot);
}

static int process_at(const context *c, int position)
{
    return oly_mesh_process_of(oly_mesh_device_id(c->shape.mesh, position));
}

static int device_at(const context *c, int position)
{
    for (int d = 0; d < c->p->plan->n_devices; d++)
        if (c->p->position[d] == position)
            return d;
    return -1;
}

/* The byte offset, in the device's room, of the classes before the level (after: of those it makes). */
static int64_t held_at(const lister *l, int device, bool after)
{
    return (l->level % 2 == after ? 0 : 1) * l->c->held_bytes[device];
}

/* The class held before the level of which `class` is a part. */
static const holding *holding_of(const lister *l, const holdings *h, const oly_class *class)
{
    holding key = {.class = *class};
    key.class.t[l->c->shape.digit_axis[l->n_digits]] /= l->c->shape.digit_radix[l->n_digits];
    for (int a = 0; a < l->c->shape.n_axes; a++)
        key.class.v[a] %= key.class.t[a];
    key.number = oly_class_number(&l->c->shape, &key.class);
    return bsearch(&key, h->list, (size_t)h->n, sizeof key, by_number);
}

/* The pieces of a class of the level: within what `source` holds before it (needed only on the process that has it),
 * and in contiguous memory. */
static oly_status pieces_of(lister *l, int source, const oly_class *class, const oly_class *before,
                            oly_class_pieces *pieces)
{
    int at[OLY_MAX_RANK];
    oly_mesh_coordinates(l->c->shape.mesh, source, at);
    return oly_class_find(&l->c->shape, &l->widths, at, l->first ? NULL : before, class, &l->scratch, pieces);
}

static oly_piece piece_at(const oly_class_piece *from, bool dense, int buffer, int64_t offset, int64_t element)
{
    oly_piece piece = {
        .buffer = buffer, .offset = offset + (dense ? from->to : from->from) * element, .rank = from->rank};
    memcpy(piece.extent, from->extent, sizeof piece.extent);
    memcpy(piece.stride, dense ? from->to_stride : from->from_stride, sizeof piece.stride);
    return piece;
}

/* Pieces of a message are sorted by receiver, source, class and number. */
static oly_status add_messages(lister *l, bool sending, int64_t number, int receiver, int source,
                               const oly_class_pieces *pieces, int buffer, int64_t offset)
{
    int peer = process_at(l->c, sending ? receiver : source);
    for (int k = 0; k < pieces->n; k++) {
        oly_piece piece = piece_at(&pieces->piece[k], !sending, buffer, offset, l->c->element);
        piece.device = oly_mesh_device_id(l->c->shape.mesh, sending ? source : receiver);
        piece.peer_device = oly_mesh_device_id(l->c->shape.mesh, sending ? receiver : source);
        OLY_TRY(oly_messages_add(
            l->c->p, &l->messages,
            &(oly_process_message){peer, sending, {(int64_t)receiver << 32 | source, number << 16 | k}, piece}));
    }
    return OLY_OK;
}

static void *grown(oly_arena *arena, void *old, int n, int *room, size_t bytes)
{
    if (n < *room)
        return old;
    *room = *room ? 2 * *room : 16;
    void *more = oly_arena_take(arena, bytes * (size_t)*room);
    if (more && n)
        memcpy(more, old, bytes * (size_t)n);
    return more;
}

static oly_status add_copies(lister *l, const oly_class_pieces *pieces, int from, int64_t from_offset, int to,
                             int64_t to_offset)
{
    for (int k = 0; k < pieces->n; k++) {
        const oly_class_piece *piece = &pieces->piece[k];
        l->copies = grown(&l->c->p->plan->arena, l->copies, l->n_copies, &l->copy_room, sizeof *l->copies);
        OLY_PLAN_CHECK(l->copies);
        oly_copy_work *w = &l->copies[l->n_copies++];
        *w = (oly_copy_work){.task = {.element_bytes = (size_t)l->c->element, .rank = piece->rank}};
        w->from = (oly_place){.base = from, .offset = from_offset + piece->from * l->c->element};
        w->to = (oly_place){.base = to, .offset = to_offset + piece->to * l->c->element};
        for (int d = 0; d < piece->rank; d++) {
            w->task.extent[d] = piece->extent[d];
            w->task.from_stride[d] = w->from.stride[d] = piece->from_stride[d];
            w->task.to_stride[d] = w->to.stride[d] = piece->to_stride[d];
        }
    }
    return OLY_OK;
}

/* Lists what device d reduces of one class. Received partial results begin `used` bytes into the staging area. */
static oly_status receive(lister *l, int d, const holding *h, int64_t *used)
{
    const context *c = l->c;
    const oly_scatter_shape *s = &c->shape;
    const oly_scatter_axis *a = &s->axis[s->digit_axis[l->n_digits]];
    oly_arena *arena = &c->p->plan->arena;
    int at[OLY_MAX_RANK], digit = s->digit_place[l->n_digits], n, position = c->p->position[d];
    oly_mesh_coordinates(s->mesh, position, at);
    int start = run_of(a, at[a->axis], digit + 1);
    n = runs_in(a, digit, start);
    int *bases = OLY_ARENA_NEW(arena, int, n + 1);
    int64_t *offsets = OLY_ARENA_NEW(arena, int64_t, n);
    l->groups = grown(arena, l->groups, l->n_groups, &l->group_room, sizeof *l->groups);
    OLY_PLAN_CHECK(bases && offsets ? l->groups : NULL);
    int64_t begin = l->last ? oly_class_in_block(s, &l->widths, at) : held_at(l, d, true) / c->element + h->offset,
            room = 2 * c->held_bytes[d], bytes = h->elements * c->element;
    for (int k = 0; k < n; k++) {
        at[a->axis] = holder(a, start + k * a->stride[digit], h->class.v[s->digit_axis[l->n_digits]], digit);
        int source = oly_mesh_position(s->mesh, at), device = device_at(c, source);
        const holding *before = device >= 0 ? holding_of(l, &l->before[device], &h->class) : NULL;
        oly_class_pieces pieces;
        OLY_TRY(pieces_of(l, source, &h->class, before ? &before->class : &h->class, &pieces));
        int from = device < 0 ? -1 : cell_of(c, device, l->first ? c->slot : c->room);
        int64_t offset = device < 0 || l->first ? 0 : held_at(l, device, false) + before->offset * c->element;
        if (device >= 0 && pieces.is_run) {
            bases[k] = from;
            offsets[k] = offset + pieces.piece[0].from * c->element - begin * c->element;
            continue;
        }
        bases[k] = cell_of(c, d, c->room);
        offsets[k] = room + *used - begin * c->element;
        if (device >= 0)
            OLY_TRY(add_copies(l, &pieces, from, offset, bases[k], room + *used));
        else
            OLY_TRY(add_messages(l, false, h->number, position, source, &pieces, bases[k], room + *used));
        *used += (bytes + 63) / 64 * 64;
    }
    bases[n] = cell_of(c, d, l->last ? c->target_slot : c->room);
    l->groups[l->n_groups++] = (oly_reduction_work){
        n, bases, offsets, begin, begin + h->elements, 1, bases + n, position, c->rule.in_pairs, 1, {n}};
    return OLY_OK;
}

/* Lists what others reduce of one class of device d: of every class of the level that is a part of it. */
static oly_status send(lister *l, int d, const holding *h)
{
    const context *c = l->c;
    const oly_scatter_shape *s = &c->shape;
    int k = s->digit_axis[l->n_digits], digit = s->digit_place[l->n_digits], at[OLY_MAX_RANK];
    const oly_scatter_axis *a = &s->axis[k];
    oly_mesh_coordinates(s->mesh, c->p->position[d], at);
    int start = run_of(a, at[a->axis], digit + 1);
    oly_class class = h->class;
    class.t[k] *= a->radix[digit];
    for (int j = 0; j < a->radix[digit]; j++, class.v[k] += h->class.t[k]) {
        at[a->axis] = holder(a, start, class.v[k], digit + 1);
        int receiver = oly_mesh_position(s->mesh, at), process = process_at(c, receiver);
        if (process == oly_mesh_my_process() || oly_class_elements(s, &l->widths, at, &class) == 0)
            continue;
        oly_class_pieces pieces;
        OLY_TRY(pieces_of(l, c->p->position[d], &class, &h->class, &pieces));
        OLY_TRY(add_messages(l, true, oly_class_number(s, &class), receiver, c->p->position[d], &pieces,
                             cell_of(c, d, l->first ? c->slot : c->room),
                             l->first ? 0 : held_at(l, d, false) + h->offset * c->element));
    }
    return OLY_OK;
}

static oly_status list_devices(lister *l)
{
    const context *c = l->c;
    int n_devices = c->p->plan->n_devices;
    l->before = OLY_ARENA_NEW(&l->scratch, holdings, n_devices + 1);
    l->after = OLY_ARENA_NEW(&l->scratch, holdings, n_devices + 1);
    OLY_PLAN_CHECK(l->before ? l->after : NULL);
    for (int d = 0; d < n_devices; d++)
        for (int after = 0; after < 2 && c->p->position[d] >= 0; after++)
            OLY_TRY(find_holdings(c, &l->widths, c->p->position[d], l->n_digits + after, &l->scratch,
                                  after ? &l->after[d] : &l->before[d]));
    for (int d = 0; d < n_devices; d++) {
        int64_t used = 0;
        for (int k = 0; k < l->after[d].n; k++)
            OLY_TRY(receive(l, d, &l->after[d].list[k], &used));
        for (int k = 0; k < l->before[d].n; k++)
            OLY_TRY(send(l, d, &l->before[d].list[k]));
    }
    return OLY_OK;
}

/* Lists a level of a round, when it first runs. */
static oly_status list_level(const void *of, int number, oly_reduction_level *made)
{
    const context *c = of;
    const oly_scatter_shape *s = &c->shape;
    lister l = {.c = c, .level = number % s->n_digits};
    l.n_digits = l.level;
    l.first = l.level == 0;
    l.last = l.level == s->n_digits - 1;
    l.widths = oly_scatter_round(s, number / s->n_digits);
    oly_status st = list_devices(&l);
    oly_arena_free(&l.scratch);
    if (st == OLY_OK)
        st = oly_messages_exchange(c->p, &l.messages, (size_t)c->element, &made->exchange);
    made->n_copies = l.n_copies;
    made->copies = l.copies;
    made->n_groups = l.n_groups;
    made->groups = l.groups;
    for (int k = 0; k < l.n_groups; k++)
        made->work += (double)(l.groups[k].end - l.groups[k].begin) * l.groups[k].n_sources;
    made->copied = made->work > WORTH_SHARING * (double)l.n_copies ? made->work : 0;
    return st;
}

/* -- planning ------------------------------------------------------------------------------------------------------------- */

/* For one level: the number of partial results that are reduced, and the elements of each. */
static void count_level(const oly_scatter_shape *s, int level, int position, const holdings *after, int64_t *sources,
                        int64_t *elements)
{
    int at[OLY_MAX_RANK];
    const oly_scatter_axis *a = &s->axis[s->digit_axis[level]];
    oly_mesh_coordinates(s->mesh, position, at);
    *sources = runs_in(a, s->digit_place[level], run_of(a, at[a->axis], s->digit_place[level] + 1));
    *elements = elements_held(after);
}

/* The memory that device d needs in the first round, which is the largest, and what it receives in all rounds. */
static oly_status plan_device(context *c, int d, oly_arena *scratch, oly_step *step)
{
    const oly_scatter_shape *s = &c->shape;
    oly_scatter_widths first = oly_scatter_round(s, 0), all = oly_scatter_round(s, -1);
    int64_t staged = 0, held = 0, sources, elements;
    holdings h = {0};
    for (int level = 0; level < s->n_digits; level++) {
        OLY_TRY(find_holdings(c, &first, c->p->position[d], level + 1, scratch, &h));
        count_level(s, level, c->p->position[d], &h, &sources, &elements);
        int64_t bytes = elements * c->element, most = sources * (bytes + 64 * (int64_t)h.n);
        staged = most > staged ? most : staged;
        held = level < s->n_digits - 1 && bytes > held ? bytes : held;
        if (s->n_rounds > 1) {
            OLY_TRY(find_holdings(c, &all, c->p->position[d], level + 1, scratch, &h));
            count_level(s, level, c->p->position[d], &h, &sources, &elements);
        }
        step->work += (double)elements * (double)sources;
        step->wire += elements * (sources - 1) * c->element;
    }
    c->held_bytes[d] = (held + 63) / 64 * 64;
    oly_slot_grow(c->p, c->room, d, (size_t)(2 * c->held_bytes[d] + staged));
    return OLY_OK;
}

/* Describes the first device, which has most: the same on every process. */
static oly_status describe(const context *c, oly_arena *scratch, oly_step *step)
{
    const oly_scatter_shape *s = &c->shape;
    oly_scatter_widths all = oly_scatter_round(s, -1);
    holdings h = {0};
    int64_t sources, elements;
    for (int level = 0; level < s->n_digits; level++) {
        OLY_TRY(find_holdings(c, &all, 0, level + 1, scratch, &h));
        count_level(s, level, 0, &h, &sources, &elements);
        step->bytes += elements * (sources - 1) * c->element;
        step->messages += (int)(sources - 1);
    }
    step->detail = oly_plan_say(c->p, "in %d stages", s->n_digits);
    return OLY_OK;
}

static oly_status plan_devices(context *c, oly_step *step)
{
    oly_arena scratch = {0};
    oly_status st = OLY_OK;
    for (int d = 0; d < c->p->plan->n_devices && st == OLY_OK; d++)
        if (c->p->position[d] >= 0)
            st = plan_device(c, d, &scratch, step);
    if (st == OLY_OK)
        st = describe(c, &scratch, step);
    oly_arena_free(&scratch);
    return st;
}

/* The exchange sends from the slot of partial results and the room; it receives into the room and, if small, the
 * result. */
static oly_status make_exchange(const context *c, oly_step *step)
{
    oly_plan *plan = c->p->plan;
    bool small = step->bytes < SMALL && c->shape.n_digits > 1;
    int n = 2 * plan->n_devices, *buffers = OLY_PLAN_NEW(c->p, int, 2 * n + 1);
    OLY_PLAN_CHECK(buffers);
    for (int k = 0; k < n; k++) {
        buffers[k] = oly_cell(plan, k / 2, k % 2 ? c->room : c->slot);
        buffers[n + k] = oly_cell(plan, k / 2, k % 2 && small ? c->target_slot : c->room);
    }
    return oly_reduction_levels_exchange(plan, step, small ? OLY_LEVELS_ALL : OLY_LEVELS_FIRST, n, buffers);
}

oly_status oly_scatter_levels(oly_planner *p, oly_block *b, const oly_node *node, const oly_reduction_rule *rule,
                              const oly_layout *partial, int slot, const oly_axis_list *axes, const oly_layout *target,
                              int target_slot)
{
    context *c = OLY_PLAN_NEW(p, context, 1);
    int *slots = OLY_PLAN_NEW(p, int, 3);
    OLY_PLAN_CHECK(c ? slots : NULL);
    *c = (context){.p = p,
                   .rule = *rule,
                   .partial = *partial,
                   .target = *target,
                   .element = (int64_t)oly_dtype_size(node->type.dtype),
                   .slot = slot,
                   .target_slot = target_slot,
                   .room = oly_reduction_staging(p, b),
                   .held_bytes = OLY_PLAN_NEW(p, int64_t, p->plan->n_devices + 1)};
    OLY_PLAN_CHECK(c->held_bytes);
    if (c->room < 0)
        return OLY_MEMORY;
    oly_scatter_shape_of(&c->shape, &c->partial, &c->target, rule, axes);
    /* with uneven groups at most about two partial results per device wait to be reduced */
    oly_box largest = oly_layout_box(partial, 0);
    int64_t each = oly_mesh_devices_each_in(p->mesh) ? oly_mesh_devices_each_in(p->mesh) : p->mesh->n_devices,
            most = each * 2 * oly_box_count(&largest) * c->element, limit = oly_reduction_limit_left(p) / 16 * 15;
    oly_scatter_set_rounds(&c->shape, (most + limit - 1) / limit);
    oly_step said = {0};
    OLY_TRY(plan_devices(c, &said));
    c->levels = (oly_reduction_levels){.n = c->shape.n_rounds * c->shape.n_digits, .list = list_level, .context = c};
    oly_step *step = oly_step_add(p, b, OLY_STEP_REDUCTION, node, "reduce-scatter");
    OLY_PLAN_CHECK(step);
    c->p = oly_reduction_kept_planner(p);
    OLY_PLAN_CHECK(c->p);
    slots[0] = slot;
    slots[1] = c->room;
    slots[2] = target_slot;
    step->work = said.work;
    step->wire = said.wire;
    step->bytes = said.bytes;
    step->messages = said.messages;
    step->detail = said.detail;
    step->members = oly_axis_list_parts(p->mesh, axes);
    step->over = *axes;
    step->reduction.combiner = rule->combiner;
    step->reduction.dtype = node->type.dtype;
    step->reduction.n_read = 1;
    step->reduction.n_written = 2;
    step->reduction.slots = slots;
    step->reduction.levels = &c->levels;
    step->reduction.n_levels_run = c->levels.n;
    oly_slot_use(p, slot);
    oly_slot_use(p, c->room);
    oly_slot_use(p, target_slot);
    return p->plan->distributed ? make_exchange(c, step) : OLY_OK;
}
