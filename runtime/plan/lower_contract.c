/* Lowering of products (dot_general): which dimension is cut how, where the operands are read, and the local matrix product of
 * each device. Dimensions are merged by strides alone into batches of [m, k] by [k, n]; where an operand's do not, or the kernel
 * could not read it, the step copies the device's part first. What one device does is no business of the others: the steps are
 * the same on every process. */
#include "plan/delay.h"
#include "core/text.h"
#include "graph/contract.h"
#include <string.h>

/* A run of merged dimensions this long is worth a kernel call of its own; shorter ones are copied together. */
enum { LONG_RUN = 16 };

/* -- how everything is cut --------------------------------------------------------------------------------------------- */

typedef struct product {
    oly_planner *p;
    oly_frame *f; /* NULL: nothing lies anywhere yet */
    oly_node *node;
    const oly_contraction *c;
    oly_contraction_dims dims;
    oly_layout operand[2], out;
    oly_axis_list summed; /* axes over which partial products are folded */
    oly_reading reading[2];
    int copy_slot[2];
    int n_copies; /* filled so far */
    oly_copy_work *copies;
} product;

static bool overlap(const oly_axis_list *a, const oly_axis_list *b)
{
    for (int j = 0; j < a->n; j++)
        for (int k = 0; k < b->n; k++)
            if (a->axis[j] == b->axis[k])
                return true;
    return false;
}

/* Batch and free dimensions keep the cuts of the operand whose axes are the wanted ones. */
static void cut_result(product *x)
{
    for (int o = 1; o >= 0; o--) /* the first operand has the last word */
        for (int d = 0; d < x->operand[o].rank; d++) {
            int to = x->dims.result[o][d];
            if (to >= 0 && oly_axis_list_equal(&x->operand[o].split[d].axes, &x->out.split[to].axes))
                x->out.split[to] = x->operand[o].split[d];
        }
}

/* The dimension cut only by the axes in front of the first that `axes` has too. */
static oly_split without(oly_mesh mesh, const oly_split *s, const oly_axis_list *axes, int64_t extent)
{
    oly_axis_list kept = {0};
    for (int k = 0; k < s->axes.n && !overlap(axes, &(oly_axis_list){.n = 1, .axis = {s->axes.axis[k]}}); k++)
        kept.axis[kept.n++] = s->axes.axis[k];
    return kept.n == s->axes.n ? *s : oly_split_canonical(mesh, &kept, extent);
}

/* Elements of a device's part, about. */
static double part_size(const oly_layout *l)
{
    double n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= (double)l->shape[d] / l->split[d].parts;
    return n;
}

/* The share of a dimension that a device needs and has: where one cut goes on where the other ends, all of the smaller part. */
static double common_share(const oly_split *needed, const oly_split *had)
{
    int n = needed->axes.n < had->axes.n ? needed->axes.n : had->axes.n;
    bool nested = memcmp(needed->axes.axis, had->axes.axis, (size_t)n) == 0;
    double most = (double)(needed->parts > had->parts ? needed->parts : had->parts);
    return 1 / (nested ? most : (double)needed->parts * (double)had->parts);
}

/* Elements a device gets when the operands are cut as `out` is, and contracting pair k like this; none where they lie so. */
static double elements_moved(const product *x, const oly_layout *out, int k, const oly_split *cut)
{
    double moved = 0;
    for (int o = 0; o < 2; o++) {
        oly_layout l = x->operand[o];
        double there = 1;
        for (int d = 0; d < l.rank; d++)
            if (x->dims.result[o][d] >= 0)
                l.split[d] = out->split[x->dims.result[o][d]];
        for (int j = 0; j < x->c->n_contract; j++) /* an axis that cuts pair k cuts no other */
            if (j != k) {
                int d = x->c->contract[o][j];
                l.split[d] = without(out->mesh, &l.split[d], &cut->axes, l.shape[d]);
            }
        l.split[x->c->contract[o][k]] = *cut;
        l.mesh = out->mesh;
        for (int d = 0; d < l.rank; d++)
            there *= (double)l.shape[d] * common_share(&l.split[d], &x->operand[o].split[d]);
        oly_region r = oly_region_of_layout(&l);
        if (!oly_region_inside_layout(&r, &x->operand[o]) && !(x->f && oly_is_at_hand(x->f, x->node->in[o], &r)))
            moved += part_size(&l) - there;
    }
    return moved;
}

/* How the result is cut when a contracting pair is cut so: not over the same axes. True: they are taken from it, and the sum is
 * scattered over them. */
static bool cut_partial(const product *x, const oly_split *cut, oly_layout *partial)
{
    bool scattered = false;
    *partial = x->out;
    for (int d = 0; d < partial->rank; d++) {
        scattered = scattered || overlap(&cut->axes, &partial->split[d].axes);
        partial->split[d] = without(partial->mesh, &partial->split[d], &cut->axes, partial->shape[d]);
    }
    return scattered;
}

/* Cuts contracting pair k as one of the operands, or not at all: not over axes that split another pair, and as moves least. Where
 * both operands are cut alike and the result is not, partial sums are folded. Where one is cut and the other only sliced, a sum
 * that is handed round counts as one that is scattered: every device works its share, and XLA decides likewise. */
static void cut_pair(product *x, int k)
{
    oly_split *pair[2] = {&x->operand[0].split[x->c->contract[0][k]], &x->operand[1].split[x->c->contract[1][k]]};
    oly_split chosen = oly_split_whole(x->operand[0].shape[x->c->contract[0][k]]);
    bool alike = oly_axis_list_equal(&pair[0]->axes, &pair[1]->axes);
    bool both = pair[0]->parts > 1 && pair[1]->parts > 1;
    double least = elements_moved(x, &x->out, k, &chosen);
    oly_layout out = x->out;
    for (int side = 0; side < (alike ? 1 : 2); side++) {
        oly_layout partial;
        if (pair[side]->parts == 1 || overlap(&pair[side]->axes, &x->summed))
            continue;
        bool scattered = cut_partial(x, pair[side], &partial);
        double folded = part_size(&partial) * (pair[side]->parts - 1) / pair[side]->parts;
        double moved = elements_moved(x, &partial, k, pair[side]) + (both && !scattered ? 2 : 1) * folded;
        if (alike ? scattered && moved > least : moved >= least)
            continue;
        least = moved;
        chosen = *pair[side];
        out = partial;
    }
    *pair[0] = *pair[1] = chosen;
    x->out = out;
}

/* Batch and free dimensions of the operands are cut as those of the result. */
static void cut_free(product *x)
{
    for (int o = 0; o < 2; o++) {
        x->operand[o].mesh = x->out.mesh;
        for (int d = 0; d < x->operand[o].rank; d++)
            if (x->dims.result[o][d] >= 0)
                x->operand[o].split[d] = x->out.split[x->dims.result[o][d]];
    }
}

static void cut_operands(product *x)
{
    for (int k = 0; k < x->c->n_contract; k++) {
        cut_pair(x, k);
        oly_append_axes(&x->summed, &x->operand[0].split[x->c->contract[0][k]].axes);
    }
    cut_free(x);
}

/* As the choice says: the result's cuts are those of the loop, every contracting pair has its own. */
static void cut_as_chosen(product *x, const oly_choice *choice)
{
    x->out = oly_axes_layout(x->p, x->node, choice->work);
    for (int k = 0; k < x->c->n_contract; k++) {
        int64_t extent = x->operand[0].shape[x->c->contract[0][k]];
        oly_split cut = oly_split_canonical(x->p->mesh, &choice->summed[k], extent);
        for (int o = 0; o < 2; o++)
            x->operand[o].split[x->c->contract[o][k]] = cut;
        oly_append_axes(&x->summed, &choice->summed[k]);
    }
    cut_free(x);
}

oly_status oly_cut_product(oly_planner *p, oly_node *n, oly_layout operand[2], oly_layout *out, oly_axis_list *summed)
{
    product x = {.p = p, .node = n, .c = &n->params.contraction, .operand = {operand[0], operand[1]}, .out = *out};
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, x.c, &x.dims));
    cut_result(&x);
    cut_operands(&x);
    operand[0] = x.operand[0];
    operand[1] = x.operand[1];
    *out = x.out;
    *summed = x.summed;
    return OLY_OK;
}

/* -- one device's part --------------------------------------------------------------------------------------------------- */

/* Some dimensions of one device's part of an operand, major first. */
typedef struct run {
    int n;
    int64_t extent[OLY_MAX_RANK], stride[OLY_MAX_RANK];
    int merged;              /* dimensions from here on make one */
    int64_t length, element; /* its elements, and their distance */
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

/* One operand on one device, its dimensions by role; contracting ones in an order common to both operands. */
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

static void read_side(const product *x, int o, const oly_place *place, const int *coordinates, side *s)
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

/* Contracting dimensions by falling strides of one operand: the order in which that operand's merge, if they do at all. */
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

/* Can the kernel read it as it lies? */
static bool readable(const side *s, int64_t other_length)
{
    const run *f = &s->free, *c = &s->contract;
    if (c->merged > 0 || (f->merged > 0 && f->length < LONG_RUN && other_length >= 8))
        return false;
    bool row = f->length > 1, column = c->length > 1;
    if ((row && f->element <= 0) || (column && c->element <= 0))
        return false; /* repeated, or backwards */
    return !row || !column || f->element == 1 || c->element == 1;
}

/* Copies the device's part of an operand into a slot, as [batch][free][contracting], and reads it there. */
static void copy_side(product *x, int o, int device, oly_place *place, side *s)
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
    w->chunks = oly_copy_chunks(&w->task);
    oly_slot *to = &x->p->plan->slots[slot];
    to->device_bytes[device] = (size_t)stride * element;
    to->bytes = to->device_bytes[device] > to->bytes ? to->device_bytes[device] : to->bytes;
}

/* A dimension of one element may have any stride; the kernel is given the one it likes. */
static void tidy(int64_t rows, int64_t columns, int64_t *row, int64_t *column)
{
    if (*row == 1 || *column == 1) {
        if (*column != 1 && columns == 1 && rows > 1)
            *column = rows; /* a column vector: fine as it is, transposed */
    } else if (columns <= 1) {
        *column = 1;
    } else {
        *row = 1;
    }
    if (*column == 1 && rows <= 1 && *row < columns)
        *row = columns;
}

/* -- the loops around the matrix product ----------------------------------------------------------------------------------- */

typedef struct loop {
    int64_t extent, a, b, c;
} loop;

static bool continues(const loop *outer, const loop *inner)
{
    return outer->a == inner->a * inner->extent && outer->b == inner->b * inner->extent &&
           outer->c == inner->c * inner->extent;
}

/* Adds a loop inside those there are; loops that go on where the outer one steps are one. */
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
    int64_t columns = b->free.length, below = 1; /* elements of the result under one step of a dimension */
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

static void device_part(product *x, int device, int slot, oly_gemm_work *w, double *total)
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
    if (w->a.base < 0 || w->b.base < 0) /* nothing to sum over: zeros, nothing is read */
        w->a.base = w->b.base = w->out_base;
    w->chunks = oly_gemm_chunks(t);
    *total += work_of(t);
}

/* -- the step --------------------------------------------------------------------------------------------------------------- */

/* "by price: result P('x', None), sum over y" */
const char *oly_choice_text(oly_planner *p, const oly_node *n, int n_pairs, const oly_choice *choice)
{
    oly_text t = {0};
    oly_spec spec = {.n_dims = n->type.rank};
    memcpy(spec.dim, choice->work, sizeof *spec.dim * (size_t)n->type.rank);
    oly_text_add(&t, "by price: result ");
    oly_spec_text(&t, p->mesh, &spec, n->type.rank);
    for (int k = 0, first = 1; k < n_pairs; k++)
        for (int j = 0; j < choice->summed[k].n; j++, first = 0)
            oly_text_add(&t, "%s%s", first ? ", sums over " : ", ", p->mesh->name[choice->summed[k].axis[j]]);
    const char *said = oly_plan_say(p, "%s", oly_text_chars(&t));
    oly_text_free(&t);
    return said;
}

static oly_status add_step(product *x, oly_frame *f)
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
    for (int o = 0; o < 2; o++)
        oly_slot_use(p, x->copy_slot[o]);
    oly_slot_use(p, v->slot);
    return OLY_OK;
}

oly_status oly_lower_contract(oly_planner *p, oly_frame *f, oly_node *n)
{
    product x = {.p = p, .f = f, .node = n, .c = &n->params.contraction, .out = oly_node_layout(p, f, n)};
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, x.c, &x.dims));
    for (int o = 0; o < 2; o++)
        x.operand[o] = oly_operand_layout(p, f, n->in[o]);
    if (oly_value_of(f, n)->choice) {
        cut_as_chosen(&x, oly_value_of(f, n)->choice);
    } else {
        cut_result(&x);
        cut_operands(&x);
    }
    oly_fold_rule rule = {OLY_COMBINE_SUM, false};
    OLY_TRY(oly_put_off_product(p, f, n, x.operand, &x.out, &x.summed, &rule));
    for (int o = 0; o < 2; o++)
        OLY_TRY(oly_demand_array(p, f, n->in[o], &x.operand[o], &x.reading[o]));
    OLY_TRY(oly_settle(p, f, n, &x.out));
    OLY_TRY(add_step(&x, f));
    return oly_fold_value(p, f, n, &rule, &x.summed);
}
