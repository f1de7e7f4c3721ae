/* SPDX-License-Identifier: BSD-3-Clause */
/* Lowering of products (dot_general): how each dimension is split, where the operands are read, and each device's
 * local matrix product. Dimensions are merged by their strides into batches of [m, k] by [k, n]; where an operand's
 * cannot be merged, or the kernel could not read it, the step first copies the device's part. Such copies are local:
 * the steps are the same on every process. */
#include "plan/lower/lower.h"
#include "plan/lower/sink_reductions.h"
#include "plan/partition/cut_product.h"
#include "core/text.h"
#include "graph/contract.h"
#include <string.h>

/* A run of merged dimensions at least this long gets a kernel call of its own; shorter ones are copied together. */
enum { LONG_RUN = 16 };

/* -- one device's part --------------------------------------------------------------------------------------------- */

/* Some dimensions of one device's part of an operand, major first. */
typedef struct run {
    int n;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
    int merged;              /* dimensions from here on are merged */
    int64_t length, element; /* its elements, and the distance between them */
} run;

static void merge(run *r)
{
    int i = r->n;
    r->length = 1;
    r->element = 0;
    while (i > 0 && r->extent[i - 1] == 1)
        i--;
    if (i > 0) {
        i--;
        r->length = r->extent[i];
        r->element = r->stride[i];
    }
    while (i > 0 && (r->extent[i - 1] == 1 || r->stride[i - 1] == r->element * r->length)) {
        r->length *= r->extent[i - 1];
        i--;
    }
    r->merged = i;
}

/* One operand on one device, its dimensions grouped by role; contracting ones in an order common to both operands. */
typedef struct side {
    run batch, free, contract;
} side;

static int64_t extent_at(const oly_layout *l, int d, const int *coordinates)
{
    int part = oly_split_part_at(&l->split[d], l->mesh, coordinates);
    int64_t n = oly_split_cut(&l->split[d], l->shape[d], part + 1) - oly_split_cut(&l->split[d], l->shape[d], part);
    return n > 0 ? n : 0;
}

static void add(run *r, int64_t extent, int64_t stride)
{
    r->extent[r->n] = extent;
    r->stride[r->n++] = stride;
}

static void read_side(const oly_product *x, int o, const oly_place *place, const int *coordinates, side *s)
{
    const oly_layout *l = &x->operand[o];
    memset(s, 0, sizeof *s);
    for (int k = 0; k < x->c->n_batch; k++)
        add(&s->batch, extent_at(l, x->c->batch[o][k], coordinates), place->stride[x->c->batch[o][k]]);
    for (int k = 0; k < x->dims.n_free[o]; k++)
        add(&s->free, extent_at(l, x->dims.free[o][k], coordinates), place->stride[x->dims.free[o][k]]);
    for (int k = 0; k < x->c->n_contract; k++)
        add(&s->contract, extent_at(l, x->c->contract[o][k], coordinates), place->stride[x->c->contract[o][k]]);
}

static void swap(int64_t *x, int64_t *y)
{
    int64_t z = *x;
    *x = *y;
    *y = z;
}

/* Sorts the contracting dimensions by decreasing stride of one operand: the order in which that operand's can be
 * merged, if at all. */
static void order_contracting(side *by, side *other)
{
    run *r = &by->contract, *s = &other->contract;
    for (int i = 1; i < r->n; i++)
        for (int j = i; j > 0 && r->stride[j] > r->stride[j - 1]; j--) {
            swap(&r->stride[j], &r->stride[j - 1]);
            swap(&r->extent[j], &r->extent[j - 1]);
            swap(&s->stride[j], &s->stride[j - 1]);
            swap(&s->extent[j], &s->extent[j - 1]);
        }
    merge(r);
    merge(s);
}

/* Can the kernel read it in place? */
static bool readable(const side *s, int64_t other_length)
{
    const run *f = &s->free, *c = &s->contract;
    if (c->merged > 0 || (f->merged > 0 && f->length < LONG_RUN && other_length >= 8))
        return false;
    bool row = f->length > 1, column = c->length > 1;
    if ((row && f->element <= 0) || (column && c->element <= 0))
        return false; /* repeated, or in reverse */
    return !row || !column || f->element == 1 || c->element == 1;
}

/* Copies the device's part of an operand into a slot as [batch][free][contracting], and reads it there. */
static void copy_side(oly_product *x, int o, int device, oly_place *place, side *s)
{
    size_t element = oly_dtype_size(x->node->in[o]->type.dtype);
    int slot = x->copy_slot[o], n = 0;
    int64_t stride = 1;
    run *const runs[3] = {&s->batch, &s->free, &s->contract};
    oly_copy_work *w = &x->copies[x->n_copies++];
    for (int k = 0; k < 3; k++)
        for (int d = 0; d < runs[k]->n; d++) {
            w->task.extent[n] = runs[k]->extent[d];
            w->task.from_stride[n++] = runs[k]->stride[d];
        }
    w->task.rank = n;
    w->task.element_bytes = element;
    w->from = *place;
    *place = (oly_place){.base = oly_cell(x->p->plan, device, slot)};
    w->to = *place;
    for (int k = 2; k >= 0; k--) {
        for (int d = runs[k]->n - 1; d >= 0; d--) {
            runs[k]->stride[d] = w->task.to_stride[--n] = stride;
            stride *= runs[k]->extent[d];
        }
        merge(runs[k]);
    }
    oly_slot *to = &x->p->plan->slots[slot];
    to->device_bytes[device] = (size_t)stride * element;
    to->bytes = to->device_bytes[device] > to->bytes ? to->device_bytes[device] : to->bytes;
}

/* A dimension of one element may have any stride; it gets one that the kernel accepts. */
static void tidy(int64_t rows, int64_t columns, int64_t *row, int64_t *column)
{
    if (*row == 1 || *column == 1) {
        if (*column != 1 && columns == 1 && rows > 1)
            *column = rows; /* a column vector is a transposed row vector */
    } else if (columns <= 1) {
        *column = 1;
    } else {
        *row = 1;
    }
    if (*column == 1 && rows <= 1 && *row < columns)
        *row = columns;
}

/* -- the loops around the matrix product --------------------------------------------------------------------------- */

typedef struct loop {
    int64_t extent, a, b, c;
} loop;

static bool continues(const loop *outer, const loop *inner)
{
    return outer->a == inner->a * inner->extent && outer->b == inner->b * inner->extent &&
           outer->c == inner->c * inner->extent;
}

/* Adds a loop inside the others; a loop that continues the outer one's steps is merged with it. */
static int add_loop(loop *loops, int n, loop l)
{
    if (l.extent == 1)
        return n;
    if (n > 0 && continues(&loops[n - 1], &l)) {
        l.extent *= loops[n - 1].extent;
        n--;
    }
    loops[n] = l;
    return n + 1;
}

static void set_loops(oly_gemm_task *t, const side *a, const side *b)
{
    loop loops[2 * OLY_MAX_RANK];
    int n = 0;
    int64_t columns = b->free.length, below = 1; /* elements of the result in one step of a dimension */
    for (int d = 0; d < b->free.merged; d++)
        columns *= b->free.extent[d];
    t->c_row = columns;
    below = columns * a->free.length;
    for (int d = 0; d < a->free.merged; d++)
        below *= a->free.extent[d];
    for (int d = 0; d < a->batch.n; d++)
        below *= a->batch.extent[d];
    for (int d = 0; d < a->batch.n; d++) {
        below /= a->batch.extent[d];
        n = add_loop(loops, n, (loop){a->batch.extent[d], a->batch.stride[d], b->batch.stride[d], below});
    }
    for (int d = 0; d < a->free.merged; d++) {
        below /= a->free.extent[d];
        n = add_loop(loops, n, (loop){a->free.extent[d], a->free.stride[d], 0, below});
    }
    for (int d = 0; d < b->free.merged; d++) {
        columns /= b->free.extent[d];
        n = add_loop(loops, n, (loop){b->free.extent[d], 0, b->free.stride[d], columns});
    }
    t->batch = 1;
    if (n > 0) {
        t->batch = loops[n - 1].extent;
        t->a_batch = loops[n - 1].a;
        t->b_batch = loops[n - 1].b;
        t->c_batch = loops[n - 1].c;
    }
    for (int k = 0; k + 1 < n; k++) {
        t->outer[k] = loops[k].extent;
        t->a_outer[k] = loops[k].a;
        t->b_outer[k] = loops[k].b;
        t->c_outer[k] = loops[k].c;
        t->n_outer = k + 1;
    }
}

static double work_of(const oly_gemm_task *t)
{
    double work = (double)t->batch * (double)t->m * (double)t->n * (double)t->k;
    for (int k = 0; k < t->n_outer; k++)
        work *= (double)t->outer[k];
    return work;
}

/* A number for the parts of both operands, and so of the result. */
static int64_t share_of(const oly_product *x, const int *coordinates)
{
    int64_t share = 0;
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < x->node->in[o]->type.rank; d++) {
            const oly_split *split = &x->operand[o].split[d];
            share = share * split->parts + oly_split_part_at(split, x->operand[o].mesh, coordinates);
        }
    return share;
}

static void device_part(oly_product *x, int device, int slot, oly_gemm_work *w, double *total)
{
    int position = oly_position_in(x->p, x->out.mesh, device), coordinates[OLY_MAX_RANK];
    if (position < 0)
        return;
    oly_mesh_coordinates(x->out.mesh, position, coordinates);
    oly_box box = oly_layout_box(&x->out, position);
    w->out_base = oly_cell(x->p->plan, device, slot);
    if (oly_box_count(&box) == 0)
        return;
    side s[2];
    oly_place place[2] = {x->reading[0].place[device], x->reading[1].place[device]};
    for (int o = 0; o < 2; o++)
        read_side(x, o, &place[o], coordinates, &s[o]);
    order_contracting(&s[0], &s[1]);
    if (s[1].contract.merged > 0) {
        order_contracting(&s[1], &s[0]);
        if (s[0].contract.merged > 0 && s[1].contract.merged > 0)
            order_contracting(&s[0], &s[1]);
    }
    for (int o = 0; o < 2; o++)
        merge(&s[o].free);
    for (int o = 0; o < 2; o++)
        if (place[o].base >= 0 && place[1 - o].base >= 0 && !readable(&s[o], s[1 - o].free.length))
            copy_side(x, o, device, &place[o], &s[o]);
    oly_gemm_task *t = &w->task;
    t->dtype = x->node->type.dtype;
    t->m = s[0].free.length;
    t->n = s[1].free.length;
    t->k = s[0].contract.length;
    t->a_row = s[0].free.element;
    t->a_column = s[0].contract.element;
    t->b_row = s[1].contract.element;
    t->b_column = s[1].free.element;
    tidy(t->m, t->k, &t->a_row, &t->a_column);
    tidy(t->k, t->n, &t->b_row, &t->b_column);
    set_loops(t, &s[0], &s[1]);
    w->a = place[0];
    w->b = place[1];
    if (w->a.base < 0 || w->b.base < 0) { /* nothing to sum: the result is zero, operands are not read */
        w->a.base = w->b.base = w->out_base;
        t->k = 0; /* of several contracting dimensions another one may be empty */
    }
    w->has_work = true;
    w->share = share_of(x, coordinates);
    *total += work_of(t);
}

/* -- the step ------------------------------------------------------------------------------------------------------ */

/* "by cost: result P('x', None), sum over y" */
const char *oly_choice_text(oly_planner *p, const oly_node *n, int n_pairs, const oly_choice *choice)
{
    oly_text t = {0};
    oly_spec spec = {.n_dims = n->type.rank};
    memcpy(spec.dim, choice->work, sizeof *spec.dim * (size_t)n->type.rank);
    oly_text_add(&t, "by cost: result ");
    oly_spec_text(&t, p->mesh, &spec, n->type.rank);
    for (int k = 0, first = 1; k < n_pairs; k++)
        for (int j = 0; j < choice->summed[k].n; j++, first = 0)
            oly_text_add(&t, "%s%s", first ? ", sums over " : ", ", p->mesh->name[choice->summed[k].axis[j]]);
    const char *said = oly_plan_say(p, "%s", oly_text_chars(&t));
    oly_text_free(&t);
    return said;
}

static oly_status add_step(oly_product *x, oly_frame *f)
{
    oly_planner *p = x->p;
    oly_value *v = oly_value_of(f, x->node);
    oly_gemm_work *work = OLY_PLAN_NEW(p, oly_gemm_work, p->plan->n_devices);
    x->copies = OLY_PLAN_NEW(p, oly_copy_work, 2 * p->plan->n_devices);
    OLY_PLAN_CHECK(work ? x->copies : NULL);
    for (int o = 0; o < 2; o++) {
        x->copy_slot[o] = oly_slot_new(p, NULL, 0);
        if (x->copy_slot[o] < 0)
            return OLY_MEMORY;
        p->plan->slots[x->copy_slot[o]].block = f->block;
    }
    double total = 0;
    for (int d = 0; d < p->plan->n_devices; d++)
        device_part(x, d, v->slot, &work[d], &total);
    for (int o = 0; o < 2; o++)
        oly_reading_use(p, &x->reading[o]);
    oly_step *s = oly_step_add(p, f->block, OLY_STEP_GEMM, x->node, "matrix product");
    OLY_PLAN_CHECK(s);
    if (v->choice && v->choice->differs)
        s->detail = oly_choice_text(p, x->node, x->c->n_contract, v->choice);
    s->gemm.device = work;
    s->gemm.n_copies = x->n_copies;
    s->gemm.copies = x->copies;
    s->work = total;
    s->replicated = x->summed.n == 0;
    for (int o = 0; o < 2; o++)
        s->replicated = s->replicated && !oly_value_of(f, x->node->in[o])->waits;
    for (int o = 0; o < 2; o++)
        oly_slot_use(p, x->copy_slot[o]);
    oly_slot_use(p, v->slot);
    return OLY_OK;
}

oly_status oly_lower_contract(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_product x = {.p = p, .f = f, .node = n, .c = &n->params.contraction, .out = oly_node_layout(p, f, n)};
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, x.c, &x.dims));
    for (int o = 0; o < 2; o++)
        x.operand[o] = oly_operand_layout(p, f, n->in[o]);
    oly_product_cut(&x, oly_value_of(f, n)->choice);
    oly_reduction_rule rule = {OLY_COMBINE_SUM, false};
    OLY_TRY(oly_sink_product(p, f, n, x.operand, &x.out, &x.summed, &rule));
    for (int o = 0; o < 2; o++)
        OLY_TRY(oly_read_array(p, f, n->in[o], &x.operand[o], &x.reading[o]));
    OLY_TRY(oly_settle(p, f, n, &x.out));
    OLY_TRY(add_step(&x, f));
    return oly_place_reduction(p, f, n, &rule, &x.summed);
}
