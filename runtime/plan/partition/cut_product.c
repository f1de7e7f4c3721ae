/* SPDX-License-Identifier: BSD-3-Clause */
/* How a product (dot_general) is split: batch and free dimensions as the operand with the axes that the result wants,
 * contracting dimensions such that the fewest elements move. See cut_product.h. */
#include "plan/partition/cut_product.h"
#include <string.h>

static bool overlap(const oly_axis_list *a, const oly_axis_list *b)
{
    for (int j = 0; j < a->n; j++)
        for (int k = 0; k < b->n; k++)
            if (a->axis[j] == b->axis[k])
                return true;
    return false;
}

/* Batch and free dimensions keep the cuts of the operand that has the wanted axes. */
static void cut_result(oly_product *x)
{
    for (int o = 1; o >= 0; o--) /* the first operand takes precedence */
        for (int d = 0; d < x->operand[o].rank; d++) {
            int to = x->dims.result[o][d];
            if (to >= 0 && oly_axis_list_equal(&x->operand[o].split[d].axes, &x->out.split[to].axes))
                x->out.split[to] = x->operand[o].split[d];
        }
}

/* The dimension split only by the axes before the first one that is also in `axes`. */
static oly_split without(oly_mesh mesh, const oly_split *s, const oly_axis_list *axes, int64_t extent)
{
    oly_axis_list kept = {0};
    for (int k = 0; k < s->axes.n && !overlap(axes, &(oly_axis_list){.n = 1, .axis = {s->axes.axis[k]}}); k++)
        kept.axis[kept.n++] = s->axes.axis[k];
    return kept.n == s->axes.n ? *s : oly_split_canonical(mesh, &kept, extent);
}

/* Approximate number of elements of a device's part. */
static double part_size(const oly_layout *l)
{
    double n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= (double)l->shape[d] / l->split[d].parts;
    return n;
}

/* The share of a dimension that a device both needs and has: all of the smaller part, if one split refines the
 * other. */
static double common_share(const oly_split *needed, const oly_split *had)
{
    int n = needed->axes.n < had->axes.n ? needed->axes.n : had->axes.n;
    bool nested = memcmp(needed->axes.axis, had->axes.axis, (size_t)n) == 0;
    double most = (double)(needed->parts > had->parts ? needed->parts : had->parts);
    return 1 / (nested ? most : (double)needed->parts * (double)had->parts);
}

/* Elements that a device receives if the operands are split as `out` is, and contracting pair k as `cut`; zero if they
 * are placed so already. */
static double elements_moved(const oly_product *x, const oly_layout *out, int k, const oly_split *cut)
{
    double moved = 0;
    for (int o = 0; o < 2; o++) {
        oly_layout l = x->operand[o];
        double there = 1;
        for (int d = 0; d < l.rank; d++)
            if (x->dims.result[o][d] >= 0)
                l.split[d] = out->split[x->dims.result[o][d]];
        for (int j = 0; j < x->c->n_contract; j++) /* an axis that splits pair k splits no other */
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

/* The layout of the partial result if a contracting pair is split as `cut`: without its axes. True: some were taken
 * from the result, so that the sum is reduce-scattered over them. */
static bool cut_partial(const oly_product *x, const oly_split *cut, oly_layout *partial)
{
    bool scattered = false;
    *partial = x->out;
    for (int d = 0; d < partial->rank; d++) {
        scattered = scattered || overlap(&cut->axes, &partial->split[d].axes);
        partial->split[d] = without(partial->mesh, &partial->split[d], &cut->axes, partial->shape[d]);
    }
    return scattered;
}

/* Splits contracting pair k as in one of the operands, or not at all: not over axes that split another pair, and such
 * that the fewest elements move. If both operands are split alike and the result is not, partial sums are reduced. If
 * one is split and the other need only be sliced, an all-reduced sum counts as one that is reduce-scattered, because
 * every device computes a share only; XLA decides likewise. */
static void cut_pair(oly_product *x, int k)
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
        double reduced = part_size(&partial) * (pair[side]->parts - 1) / pair[side]->parts;
        double moved = elements_moved(x, &partial, k, pair[side]) + (both && !scattered ? 2 : 1) * reduced;
        if (alike ? scattered && moved > least : moved >= least)
            continue;
        least = moved;
        chosen = *pair[side];
        out = partial;
    }
    *pair[0] = *pair[1] = chosen;
    x->out = out;
}

/* Splits batch and free dimensions of the operands as those of the result. */
static void cut_free(oly_product *x)
{
    for (int o = 0; o < 2; o++) {
        x->operand[o].mesh = x->out.mesh;
        for (int d = 0; d < x->operand[o].rank; d++)
            if (x->dims.result[o][d] >= 0)
                x->operand[o].split[d] = x->out.split[x->dims.result[o][d]];
    }
}

static void cut_operands(oly_product *x)
{
    for (int k = 0; k < x->c->n_contract; k++) {
        cut_pair(x, k);
        oly_append_axes(&x->summed, &x->operand[0].split[x->c->contract[0][k]].axes);
    }
    cut_free(x);
}

/* As the choice says: the cuts of the result are those of the loop, and every contracting pair has its own. */
static void cut_as_chosen(oly_product *x, const oly_choice *choice)
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

void oly_product_cut(oly_product *x, const oly_choice *choice)
{
    if (choice) {
        cut_as_chosen(x, choice);
    } else {
        cut_result(x);
        cut_operands(x);
    }
}

oly_status oly_cut_product(oly_planner *p, oly_node *n, oly_layout operand[2], oly_layout *out, oly_axis_list *summed)
{
    oly_product x = {.p = p, .node = n, .c = &n->params.contraction, .operand = {operand[0], operand[1]}, .out = *out};
    OLY_TRY(oly_contraction_read(&n->in[0]->type, &n->in[1]->type, x.c, &x.dims));
    oly_product_cut(&x, NULL);
    operand[0] = x.operand[0];
    operand[1] = x.operand[1];
    *out = x.out;
    *summed = x.summed;
    return OLY_OK;
}
