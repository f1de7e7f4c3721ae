/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts lines that are split over devices, without gathering them. With p devices along the line:
 *
 *   columns   each device's part, padded to r = p * q elements that compare after all others, is sorted
 *   deal      all-to-all: of each column the elements k, k + p, k + 2p, ... go to device k; sorted
 *   undeal    the reverse all-to-all: device j gets the j-th q elements of every column and interleaves them
 *   windows   now every element is at most (p - 1)^2 positions from its final one: each device gets that many more
 *             elements on both sides of its part of the result, sorts them, and keeps those in the middle
 *
 * This is Leighton's columnsort with its last four steps in one, which the bound on positions allows. A device
 * receives 2 (p - 1) / p blocks and 2 (p - 1)^2 elements, whatever the data; an all-gather receives p - 1 blocks.
 * Elements travel with their index in the line, which orders equal ones, so that the sort is stable to the last bit of
 * NaN and zeros; integers that are only sorted need no index. All sizes are known when planning. For descending order,
 * indexes count from the end of the line. Arrays that are gathered by the order found travel with the keys, so that
 * they are not gathered either; a sort and an argsort of one array are computed together.
 *
 * Within one process a line is copied to one device, sorted there, and the result copied back (sort_at_one).
 *
 * Chosen if it moves fewer bytes than an all-gather and is faster by cost.h, or if a gathered line would take more
 * than OLYMPUS_EXCHANGE_MEMORY and windows are no larger than blocks. Called by lower_partial.c. */
#include "plan/lower/lower.h"
#include "plan/lower/lower_local.h"
#include "plan/move/move.h"
#include "core/optimisation.h"
#include "core/option.h"
#include "layout/node.h"
#include <string.h>

/* Is the result placed like the operand in all dimensions but the sorted one, and split in that one, too? */
static bool placed_alike(const oly_layout *own, const oly_layout *out, int d)
{
    if (own->mesh != out->mesh || out->split[d].parts < 2)
        return false;
    for (int e = 0; e < own->rank; e++)
        if (e != d && !oly_split_equal(&own->split[e], &out->split[e], own->shape[e]))
            return false;
    return true;
}

static bool is_here(const oly_sorter *s)
{
    for (int k = 0; k < s->node->n_in; k++) {
        oly_layout whole = *s->own;
        whole.split[s->d] = oly_split_whole(whole.shape[s->d]);
        oly_region r = oly_region_of_layout(&whole);
        if (!oly_is_at_hand(s->f, s->node->in[k], &r))
            return false;
    }
    return true;
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

static int new_slot(const oly_sorter *s, const oly_region *r, oly_dtype dtype)
{
    int slot = oly_slot_new(s->p, r, oly_dtype_size(dtype));
    if (slot >= 0)
        s->p->plan->slots[slot].block = s->f->block;
    return slot;
}

/* A step of a kernel, typed by its result. NULL: out of memory. */
static oly_local_step *step_of(const oly_sorter *s, oly_local_op op, const char *what, oly_dtype dtype,
                               const oly_layout *out)
{
    oly_node *at = oly_stand_in(s->p, s->at, dtype, out);
    oly_local_step *step = at ? oly_local_step_new(s->p, at, out) : NULL;
    if (!step)
        return NULL;
    step->op = op;
    step->what = what;
    step->out_dtype = dtype;
    return step;
}

/* Operand k of a step: the contents of a slot, each device reading a part of `l` or a box of `region`. */
static oly_status read_slot(const oly_sorter *s, oly_local_step *step, int k, int array, int slot, const oly_layout *l,
                            const oly_region *region)
{
    oly_planner *p = s->p;
    oly_place *place = OLY_PLAN_NEW(p, oly_place, p->plan->n_devices);
    OLY_PLAN_CHECK(place);
    for (int d = 0; d < p->plan->n_devices; d++) {
        int position = oly_position_in(p, l->mesh, d);
        place[d].base = -1;
        if (position < 0)
            continue;
        oly_box b = region ? oly_region_box(region, l->shape, position) : oly_layout_box(l, position);
        if (oly_box_count(&b) > 0)
            place[d].base = oly_cell(p->plan, d, slot);
        oly_contiguous_strides(&b, place[d].stride);
    }
    step->in[k] = *l;
    step->in_region[k] = region;
    step->reading[k].place = place;
    if (array >= 0)
        step->dtype[k] = s->dtype[array];
    return OLY_OK;
}

/* Every device's part of the operands as columns of r elements, and the indexes of these. */
static oly_status make_columns(oly_sorter *s)
{
    oly_region r = oly_region_of_layout(&s->columns);
    oly_reading reading = {0};
    for (int k = 0; k < s->n; k++) {
        bool numbers = !s->source[k];
        oly_local_step *step =
            step_of(s, numbers ? OLY_LOCAL_NUMBER : OLY_LOCAL_LENGTHEN,
                    numbers ? "numbers of each part" : "each part in a column", s->dtype[k], &s->columns);
        OLY_PLAN_CHECK(step);
        reading = (oly_reading){.place = numbers ? reading.place : NULL};
        if (!numbers)
            OLY_TRY(oly_read_array(s->p, s->f, s->source[k], s->own, &reading));
        step->n_in = 1;
        step->in[0] = *s->own;
        step->dtype[0] = (numbers ? s->node->in[0] : s->source[k])->type.dtype;
        step->reading[0] = reading;
        step->reverse = numbers && s->node->params.reverse && !oly_sort_gives_elements(s->node);
        step->slot = s->slot[k] = new_slot(s, &r, s->dtype[k]);
        if (step->slot < 0)
            return OLY_MEMORY;
        OLY_TRY(oly_local_step_add(s->p, s->f, step));
    }
    return OLY_OK;
}

/* The order of the slots' contents, parts of `l` or boxes of `region`. *slot: indexes within each device's part. */
static oly_status find_order(const oly_sorter *s, const char *what, const oly_layout *l, const oly_region *region,
                             int n_keys, int *slot)
{
    oly_region own = oly_region_of_layout(l);
    oly_local_step *step = step_of(s, OLY_LOCAL_ARGSORT, what, OLY_INT32, l);
    OLY_PLAN_CHECK(step);
    step->n_in = n_keys;
    step->out_region = region;
    for (int k = 0; k < n_keys; k++)
        OLY_TRY(read_slot(s, step, k, k, s->slot[k], l, region));
    step->slot = *slot = new_slot(s, region ? region : &own, OLY_INT32);
    return *slot < 0 ? OLY_MEMORY : oly_local_step_add(s->p, s->f, step);
}

/* Sorts by n_keys keys: indexes are not keys where equal elements are in order already. */
static oly_status sort_columns(oly_sorter *s, int n_keys)
{
    oly_region r = oly_region_of_layout(&s->columns);
    int order = -1;
    if (s->n > 1 || !oly_sort_gives_elements(s->node))
        OLY_TRY(find_order(s, "order of each column", &s->columns, NULL, n_keys, &order));
    for (int k = 0; k < s->n; k++) {
        oly_local_step *step =
            step_of(s, order < 0 ? OLY_LOCAL_SORT : OLY_LOCAL_TAKE, "sort of each column", s->dtype[k], &s->columns);
        OLY_PLAN_CHECK(step);
        step->n_in = order < 0 ? 1 : 2;
        OLY_TRY(read_slot(s, step, 0, k, s->slot[k], &s->columns, NULL));
        if (order >= 0) {
            OLY_TRY(read_slot(s, step, 1, -1, order, &s->columns, NULL));
            step->dtype[1] = OLY_INT32;
        }
        step->slot = s->slot[k] = new_slot(s, &r, s->dtype[k]);
        if (step->slot < 0)
            return OLY_MEMORY;
        OLY_TRY(oly_local_step_add(s->p, s->f, step));
    }
    return OLY_OK;
}

/* Moves all arrays from a layout to a region, those of one element size in one exchange. */
static oly_status move_all(oly_sorter *s, const oly_layout *from, const oly_region *to)
{
    oly_movement moves[OLY_SORT_MOST];
    bool moved[OLY_SORT_MOST] = {false};
    for (int k = 0; k < s->n; k++) {
        int n = 0;
        for (int j = k; j < s->n; j++) {
            if (moved[j] || oly_dtype_size(s->dtype[j]) != oly_dtype_size(s->dtype[k]))
                continue;
            oly_node *node = oly_stand_in(s->p, s->at, s->dtype[j], from);
            int slot = new_slot(s, to, s->dtype[j]);
            OLY_PLAN_CHECK(slot >= 0 ? node : NULL);
            moves[n++] = (oly_movement){node, from, s->slot[j], to, slot, {0}, false};
            s->slot[j] = slot;
            moved[j] = true;
        }
        if (n > 0)
            OLY_TRY(oly_plan_moves(s->p, s->f->block, n, moves));
    }
    return OLY_OK;
}

/* The columns with three dimensions of these sizes in place of one; dimension `cut` of them is split as the line
 * was. */
static oly_layout flattened(const oly_sorter *s, const int64_t size[3], int cut)
{
    oly_layout l = {.mesh = s->own->mesh, .rank = s->rank + 2};
    for (int e = 0; e < s->rank; e++) {
        int to = e > s->d ? e + 2 : e;
        l.shape[to] = s->own->shape[e];
        l.split[to] = s->own->split[e];
    }
    for (int k = 0; k < 3; k++) {
        l.shape[s->d + k] = size[k];
        l.split[s->d + k] =
            k == cut ? oly_split_canonical(l.mesh, &s->own->split[s->d].axes, size[k]) : oly_split_whole(size[k]);
    }
    return l;
}

/* The all-to-all that deals a column, q elements to each device. */
static oly_status deal(oly_sorter *s, const int64_t size[3], int from_cut, int to_cut)
{
    oly_layout from = flattened(s, size, from_cut), to = flattened(s, size, to_cut);
    oly_region *region = OLY_PLAN_NEW(s->p, oly_region, 1);
    OLY_PLAN_CHECK(region);
    *region = oly_region_of_layout(&to);
    return move_all(s, &from, region);
}

/* Transposes what arrived as [p, q] to [q, p] in a column: the copy, for elements of that size. */
static double shuffle(const oly_sorter *s, const oly_box *box, size_t element, oly_copy_work *c)
{
    int64_t from = 1, to = 1;
    c->task = (oly_copy_task){.element_bytes = element, .rank = s->rank + 1};
    for (int e = s->rank - 1; e >= 0; e--) {
        int64_t extent = box->hi[e] - box->lo[e];
        int at = e > s->d ? e + 1 : e;
        c->task.extent[at] = e == s->d ? s->parts : extent;
        c->task.from_stride[at] = e == s->d ? from * s->q : from;
        c->task.to_stride[at] = to;
        if (e == s->d) {
            c->task.extent[e + 1] = s->q;
            c->task.from_stride[e + 1] = from;
            c->task.to_stride[e + 1] = to * s->parts;
        }
        from *= extent;
        to *= extent;
    }
    memcpy(c->from.stride, c->task.from_stride, sizeof c->from.stride);
    memcpy(c->to.stride, c->task.to_stride, sizeof c->to.stride);
    return (double)oly_box_count(box);
}

static oly_status put_in_place(oly_sorter *s)
{
    oly_planner *p = s->p;
    oly_region r = oly_region_of_layout(&s->columns);
    for (int k = 0; k < s->n; k++) {
        oly_node *at = oly_stand_in(p, s->at, s->dtype[k], &s->columns);
        oly_copy_work *copies = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices + 1);
        int slot = new_slot(s, &r, s->dtype[k]), n = 0;
        OLY_PLAN_CHECK(slot >= 0 && at ? copies : NULL);
        double work = 0;
        for (int d = 0; d < p->plan->n_devices; d++) {
            int position = oly_position_in(p, s->columns.mesh, d);
            oly_box box = {0};
            if (position >= 0)
                box = oly_layout_box(&s->columns, position);
            if (position < 0 || oly_box_count(&box) == 0)
                continue;
            copies[n].from.base = oly_cell(p->plan, d, s->slot[k]);
            copies[n].to.base = oly_cell(p->plan, d, slot);
            work += shuffle(s, &box, oly_dtype_size(s->dtype[k]), &copies[n++]);
        }
        oly_slot_use(p, s->slot[k]);
        oly_step *step = oly_step_add(p, s->f->block, OLY_STEP_MOVE, at, "copy");
        OLY_PLAN_CHECK(step);
        step->out_slot = s->slot[k] = slot;
        step->alone = true;
        step->move.n_copies = n;
        step->move.copies = copies;
        step->work = work;
        oly_slot_use(p, slot);
    }
    return OLY_OK;
}

/* The window of the columns that each device needs for its part of the result. */
static oly_region windows_of(const oly_sorter *s)
{
    oly_region r = oly_region_of_layout(s->out);
    oly_region_dim *d = &r.dim[s->d];
    int64_t last = s->node->params.reverse ? s->own->shape[s->d] - 1 : 0;
    d->scale = s->node->params.reverse ? -1 : 1;
    d->lo = last - s->reach;
    d->hi = last + s->reach;
    return r;
}

/* Reads the part of the windows' order that belongs to the result. */
static oly_status read_order(const oly_sorter *s, oly_local_step *step, int order, const oly_region *windows)
{
    const oly_plan *plan = s->p->plan;
    OLY_TRY(read_slot(s, step, 1, -1, order, &s->columns, windows));
    for (int device = 0; device < plan->n_devices; device++) {
        int position = oly_position_in(s->p, s->out->mesh, device);
        oly_place *place = &step->reading[1].place[device];
        if (position < 0 || place->base < 0)
            continue;
        oly_box out = oly_layout_box(s->out, position), window = oly_region_box(windows, s->columns.shape, position);
        int64_t first = out.lo[s->d];
        if (s->node->params.reverse)
            first = s->own->shape[s->d] - 1 - first;
        place->offset = (first - window.lo[s->d]) * place->stride[s->d] * (int64_t)sizeof(int32_t);
        if (s->node->params.reverse)
            place->stride[s->d] = -place->stride[s->d];
    }
    step->in[1] = *s->out;
    step->in_region[1] = NULL;
    step->dtype[1] = OLY_INT32;
    return OLY_OK;
}

/* A result: the device's part of an array, in the order found. */
static oly_status take_result(const oly_sorter *s, const struct oly_sort_result *result, int order,
                              const oly_region *windows)
{
    bool numbers = !s->source[result->array];
    oly_local_step *step = step_of(s, OLY_LOCAL_TAKE, oly_ops[result->node->op].name, s->dtype[result->array], s->out);
    OLY_PLAN_CHECK(step);
    step->reverse = numbers && s->node->params.reverse;
    step->n_in = 2;
    OLY_TRY(read_slot(s, step, 0, result->array, s->slot[result->array], &s->columns, windows));
    OLY_TRY(read_order(s, step, order, windows));
    OLY_TRY(oly_settle(s->p, s->f, result->node, s->out));
    step->slot = oly_value_of(s->f, result->node)->slot;
    return oly_local_step_add(s->p, s->f, step);
}

static oly_status sort_windows(oly_sorter *s)
{
    int order;
    oly_region *windows = OLY_PLAN_NEW(s->p, oly_region, 1);
    OLY_PLAN_CHECK(windows);
    *windows = windows_of(s);
    OLY_TRY(move_all(s, &s->columns, windows));
    OLY_TRY(find_order(s, "order of each part and its neighbours", &s->columns, windows, s->n_keys, &order));
    for (int k = 0; k < s->n_results; k++)
        OLY_TRY(take_result(s, &s->results[k], order, windows));
    return OLY_OK;
}

/* -- the whole sort ------------------------------------------------------------------------------------------------ */

static bool placed_so(const oly_sorter *s, const oly_node *n)
{
    oly_layout l = oly_node_layout(s->p, s->f, n);
    return oly_layout_equal(&l, s->out);
}

/* Lists other nodes that sort the same lines or need the same order: computed together with this one. */
static void list_twins(oly_sorter *s)
{
    const oly_graph *g = s->f->graph;
    const oly_node *key = s->node->in[0];
    if (s->node->n_in != 1 || s->node->params.reverse || oly_captured(s->f, key))
        return;
    for (int k = key->index + 1, left = key->n_uses; k < g->n_nodes && left > 0; k++) {
        oly_node *twin = g->nodes[k];
        for (int j = 0; j < twin->n_in; j++)
            left -= twin->in[j] == key;
        if (twin == s->node || twin->n_in != 1 || twin->in[0] != key || oly_ops[twin->op].lowering != OLY_LOWER_LOCAL ||
            oly_local_way_of(oly_sort_op(twin)) != OLY_LOCAL_ORDERS || twin->params.reverse ||
            twin->params.dimension != s->d || oly_value_of(s->f, twin)->slot >= 0 || !placed_so(s, twin) ||
            s->n_results == OLY_SORT_MOST)
            continue;
        if (!oly_sort_gives_elements(twin) && s->n_keys == 1)
            oly_sort_add_array(s, NULL, twin->type.dtype);
        s->n_keys = s->n;
        if (oly_sort_gives_elements(twin) || s->dtype[s->n - 1] == twin->type.dtype)
            s->results[s->n_results++] = (struct oly_sort_result){twin, oly_sort_gives_elements(twin) ? 0 : s->n - 1};
    }
}

/* Does the node gather an array, stored like the keys, by the order found? */
static bool follows(const oly_sorter *s, const oly_node *user, const oly_node *order)
{
    const oly_params *q = &user->params;
    const oly_node *array = user->n_in == 2 ? user->in[0] : NULL;
    oly_layout from;
    if (oly_ops[user->op].lowering != OLY_LOWER_LOCAL || oly_local_way_of(oly_sort_op(user)) != OLY_LOCAL_READS ||
        !s->own || !array || user->in[1] != order || array == order || q->n_axes != 1 || q->axes[0] != s->d ||
        q->n_batch != s->d || s->d != s->rank - 1 || user->type.rank != s->rank ||
        array->type.shape[s->d] != s->own->shape[s->d])
        return false;
    return oly_natural_layout(s->f, array, &from) && oly_layout_equal(&from, s->own) && placed_so(s, user);
}

/* Lists the gathers by an order. False: a key is gathered anyway by another of them. */
static bool list_followers(oly_sorter *s, const oly_node *order)
{
    const oly_graph *g = s->f->graph;
    for (int k = order->index + 1, left = order->n_uses; k < g->n_nodes && left > 0; k++) {
        oly_node *user = g->nodes[k];
        int array = 0, before = left;
        for (int j = 0; j < user->n_in; j++)
            left -= user->in[j] == order;
        if (before == left || user->n_in < 2 || user->in[0] == order)
            continue;
        while (array < s->n && s->source[array] != user->in[0])
            array++;
        if (s->n_results < OLY_SORT_MOST && array < OLY_SORT_MOST && follows(s, user, order)) {
            if (array == s->n)
                oly_sort_add_array(s, user->in[0], user->in[0]->type.dtype);
            s->results[s->n_results++] = (struct oly_sort_result){user, array};
        } else if (array < s->n && oly_ops[user->op].lowering == OLY_LOWER_LOCAL &&
                   oly_local_way_of(oly_sort_op(user)) == OLY_LOCAL_READS) {
            return false;
        }
    }
    return true;
}

/* Lists the arrays that travel and the results computed from them. False: a key is gathered anyway. */
static bool list_all(oly_sorter *s)
{
    oly_sort_list_keys(s);
    list_twins(s);
    for (int k = 0, n = s->n_results; k < n; k++)
        if (!oly_sort_gives_elements(s->results[k].node) && !list_followers(s, s->results[k].node))
            return false;
    return true;
}

/* -- at one device ------------------------------------------------------------------------------------------------- */

enum { LEAST_COPIED = 1024 }; /* elements of a line that is worth copying */

static int64_t count_lines(const oly_layout *l, int d)
{
    int64_t lines = 1;
    for (int e = 0; e < l->rank; e++)
        lines *= e == d ? 1 : l->shape[e];
    return lines;
}

/* Lines split within one process: its devices share a memory, so that copying a line to one of them, sorting it there and copying
 * the result back costs less than sorting three times. With as many lines as devices the latter would share the work. */
static bool sorts_at_one(const oly_sorter *s)
{
    return oly_enabled(OLY_OPTIMISATION_COMPUTE_ONCE) && count_lines(s->own, s->d) < s->parts &&
           oly_axes_level(s->own->mesh, &s->own->split[s->d].axes) == OLY_LEVEL_PROCESS;
}

/* The same for lines of which every device of the process has a copy, and is to have the result. */
static bool sorts_for_all(const oly_sorter *s)
{
    const oly_layout *own = s->own;
    if (!oly_enabled(OLY_OPTIMISATION_COMPUTE_ONCE) || own->mesh != s->out->mesh || own->mesh->process < 0 ||
        own->shape[s->d] < LEAST_COPIED || count_lines(own, s->d) >= own->mesh->n_devices)
        return false;
    for (int e = 0; e < s->rank; e++)
        if (own->split[e].parts > 1 || s->out->split[e].parts > 1)
            return false;
    return true;
}

typedef struct oly_order {
    int slot; /* -1: not found yet */
    oly_dtype dtype;
} oly_order;

/* One step at the device that has whole lines: of arrays `array`, with the order as a second operand for TAKE. */
static oly_status sort_there(const oly_sorter *s, oly_local_op op, const oly_layout *one, oly_dtype dtype, int n_in,
                             const int *array, const oly_reading *readings, const oly_order *order, int *slot)
{
    oly_region r = oly_region_of_layout(one);
    oly_local_step *step =
        step_of(s, op, op == OLY_LOCAL_TAKE ? "elements in that order" : "sort of whole lines", dtype, one);
    OLY_PLAN_CHECK(step);
    step->n_in = n_in;
    for (int k = 0; k < n_in; k++) {
        step->in[k] = *one;
        step->dtype[k] = s->dtype[array[k]];
        step->reading[k] = readings[array[k]];
    }
    if (op == OLY_LOCAL_TAKE) {
        step->n_in = 2;
        OLY_TRY(read_slot(s, step, 1, -1, order->slot, one, NULL));
        step->dtype[1] = order->dtype;
    }
    step->reverse = op != OLY_LOCAL_TAKE && s->node->params.reverse;
    step->slot = *slot = new_slot(s, &r, dtype);
    return *slot < 0 ? OLY_MEMORY : oly_local_step_add(s->p, s->f, step);
}

/* axes: those over which the line, or its copies, are spread. */
static oly_status sort_at_one(oly_sorter *s, const oly_axis_list *axes)
{
    static const int first[OLY_SORT_MOST] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    oly_layout one = *s->own;
    oly_reading readings[OLY_SORT_MOST] = {0};
    oly_split *split = &one.split[s->d];
    *split = oly_split_canonical(one.mesh, axes, one.shape[s->d]);
    split->unit = split->base; /* the first part is all */
    s->at = oly_stand_in(s->p, s->node, s->node->type.dtype, &one);
    OLY_PLAN_CHECK(s->at);
    s->at->params.reverse = false; /* each step says for itself */
    oly_order order = {.slot = -1};
    for (int k = 0; k < s->n; k++)
        if (s->source[k])
            OLY_TRY(oly_read_array(s->p, s->f, s->source[k], &one, &readings[k]));
    for (int k = 0; k < s->n_results; k++) {
        const struct oly_sort_result *result = &s->results[k];
        oly_dtype dtype = s->dtype[result->array];
        int slot;
        if (oly_sort_gives_elements(result->node)) {
            OLY_TRY(sort_there(s, OLY_LOCAL_SORT, &one, dtype, 1, first, readings, NULL, &slot));
        } else if (s->source[result->array]) { /* gathered by an order that an earlier result gave */
            OLY_TRY(sort_there(s, OLY_LOCAL_TAKE, &one, dtype, 1, &result->array, readings, &order, &slot));
        } else {
            if (order.slot < 0)
                OLY_TRY(sort_there(s, OLY_LOCAL_ARGSORT, &one, dtype, s->node->n_in, first, readings, NULL, &slot));
            else
                slot = order.slot;
            order = (oly_order){slot, dtype};
        }
        oly_region to = oly_region_of_layout(s->out);
        OLY_TRY(oly_settle(s->p, s->f, result->node, s->out));
        oly_node *from = oly_stand_in(s->p, s->node, dtype, &one);
        OLY_PLAN_CHECK(from);
        OLY_TRY(oly_plan_reshard(s->p, s->f->block, from, &one, slot, &to, oly_value_of(s->f, result->node)->slot));
    }
    return OLY_OK;
}

oly_status oly_lower_sort(oly_planner *p, oly_frame *f, oly_node *n, const oly_layout *own, const oly_local_step *step,
                          bool *done)
{
    int d = n->params.dimension;
    const oly_axis_list *axes = &own->split[d].axes;
    oly_sorter s = {.p = p, .f = f, .node = n, .own = own, .d = d, .rank = own->rank, .parts = own->split[d].parts};
    oly_layout out = step->out, wanted = oly_node_layout(p, f, n);
    out.split[d] = wanted.split[d];
    s.out = &out;
    if (n->n_in < OLY_SORT_MOST && s.parts == 1 && sorts_for_all(&s) && list_all(&s)) {
        oly_axis_list all = {.n = own->mesh->n_axes};
        for (int k = 0; k < all.n; k++)
            all.axis[k] = k;
        *done = true;
        return sort_at_one(&s, &all);
    }
    if (n->n_in >= OLY_SORT_MOST || own->rank + 2 > OLY_MAX_RANK || s.parts == 1 || !placed_alike(own, &out, d))
        return OLY_OK;
    for (int k = 0; k < axes->n; k++)
        for (int e = 0; e < out.rank; e++)
            for (int j = 0; e != d && j < out.split[e].axes.n; j++)
                if (out.split[e].axes.axis[j] == axes->axis[k])
                    return OLY_OK;
    int64_t block = 0, reach = (int64_t)(s.parts - 1) * (s.parts - 1);
    if (reach >= own->shape[d])
        return OLY_OK;
    for (int k = 0; k < s.parts; k++) {
        int64_t size =
            oly_split_cut(&own->split[d], own->shape[d], k + 1) - oly_split_cut(&own->split[d], own->shape[d], k);
        block = size > block ? size : block;
    }
    s.q = (block + s.parts - 1) / s.parts;
    s.r = s.q * s.parts;
    s.reach = reach;
    bool at_one = sorts_at_one(&s);
    if (s.r + 2 * s.reach > INT32_MAX || !list_all(&s) || is_here(&s))
        return OLY_OK;
    if (!oly_sort_pays(&s) &&
        !(at_one && own->shape[d] >= LEAST_COPIED)) /* between two devices an all-gather moves no more */
        return OLY_OK;
    *done = true;
    if (at_one)
        return sort_at_one(&s, axes);
    s.columns = *own;
    s.columns.shape[d] = s.r * s.parts;
    s.columns.split[d] = oly_split_canonical(own->mesh, axes, s.columns.shape[d]);
    s.at = oly_stand_in(p, n, n->type.dtype, &s.columns);
    OLY_PLAN_CHECK(s.at);
    s.at->params.reverse = false;
    /* columns are made, and joined in the end, in order of ascending indexes, except for the padding */
    int first = n->params.reverse && !oly_sort_gives_elements(n) ? s.n_keys : n->n_in;
    int second = s.r * s.parts > own->shape[d] ? s.n_keys : first;
    OLY_TRY(make_columns(&s));
    OLY_TRY(sort_columns(&s, first));
    OLY_TRY(deal(&s, (const int64_t[]){s.parts, s.q, s.parts}, 0, 2));
    OLY_TRY(sort_columns(&s, second));
    OLY_TRY(deal(&s, (const int64_t[]){s.parts, s.parts, s.q}, 0, 1));
    OLY_TRY(put_in_place(&s));
    return sort_windows(&s);
}
