/* SPDX-License-Identifier: BSD-3-Clause */
/* Reshapes: no work if every device's part stays in place. The axes of a dimension are assigned to its factors,
 * major first; the result's dimensions get the axes of theirs. Every device then has the same elements before and
 * after, in the same order, provided that in each dimension, of operand and result, a factor is split only if all
 * factors before it are split into single elements. Other axes split another factor instead, where the result will
 * be split over them (an all-to-all), or are gathered first; so are axes of factors that only one side has. */
#include "plan/lower/lower.h"
#include "plan/lower/sink_reductions.h"
#include "graph/factors.h"

/* The axes that split each factor. */
typedef struct cuts {
    oly_mesh mesh;
    const oly_factors *f;
    oly_axis_list axes[OLY_MAX_FACTORS];
} cuts;

static bool divides_exactly(const cuts *c, int factor)
{
    return c->f->size[factor] % oly_axis_list_parts(c->mesh, &c->axes[factor]) == 0;
}

/* Is it split into single elements? */
static bool cut_up(const cuts *c, int factor)
{
    return oly_axis_list_parts(c->mesh, &c->axes[factor]) == c->f->size[factor];
}

/* Assigns axes to the factors of a dimension while they divide them; the remaining axes go to the major factor, with
 * uneven blocks. */
static void hand_out(cuts *c, const oly_dim_factors *dim, const oly_axis_list *axes)
{
    int next = 0;
    for (int k = 0; k < dim->n && next < axes->n; k++) {
        oly_axis_list *mine = &c->axes[dim->factor[k]];
        int64_t left = c->f->size[dim->factor[k]];
        while (next < axes->n && left % c->mesh->size[axes->axis[next]] == 0 && left > 1) {
            left /= c->mesh->size[axes->axis[next]];
            mine->axis[mine->n++] = axes->axis[next++];
        }
        if (left > 1)
            break;
    }
    if (next == axes->n || dim->n == 0)
        return;
    for (int k = 1; k < dim->n; k++)
        c->axes[dim->factor[k]].n = 0;
    c->axes[dim->factor[0]] = *axes;
}

/* Removes axes from factors that the result does not have. */
static void keep_shared(cuts *c, int rank)
{
    bool shared[OLY_MAX_FACTORS] = {false};
    for (int d = 0; d < rank; d++)
        for (int k = 0; k < c->f->result[d].n; k++)
            shared[c->f->result[d].factor[k]] = true;
    for (int k = 0; k < c->f->n_factors; k++)
        if (!shared[k])
            c->axes[k].n = 0;
}

/* Removes axes from factors after one that is not split into single elements. True: some were removed. */
static bool keep_whole(cuts *c, const oly_dim_factors *dims, int rank)
{
    bool changed = false;
    for (int d = 0; d < rank; d++)
        for (int k = 1; k < dims[d].n; k++) {
            oly_axis_list *mine = &c->axes[dims[d].factor[k]];
            bool before = cut_up(c, dims[d].factor[k - 1]);
            if (mine->n == 0 || (before && divides_exactly(c, dims[d].factor[k])))
                continue;
            mine->n = 0;
            changed = true;
        }
    return changed;
}

/* Removes axes until every device has the same elements before and after. */
static void keep_in_place(cuts *c, const oly_layout *in, const oly_layout *out)
{
    keep_shared(c, out->rank);
    while (keep_whole(c, c->f->operand[0], in->rank) || keep_whole(c, c->f->result, out->rank))
        ;
}

static bool cuts_over(const cuts *c, int axis)
{
    for (int k = 0; k < c->f->n_factors; k++)
        for (int j = 0; j < c->axes[k].n; j++)
            if (c->axes[k].axis[j] == axis)
                return true;
    return false;
}

/* Have these axes of the operand been removed? */
static bool are_lost(const cuts *c, const oly_layout *in, const oly_axis_list *axes)
{
    for (int k = 0; k < axes->n; k++) {
        bool had = false;
        for (int d = 0; d < in->rank; d++)
            for (int j = 0; j < in->split[d].axes.n; j++)
                had = had || in->split[d].axes.axis[j] == axes->axis[k];
        if (!had || cuts_over(c, axes->axis[k]))
            return false;
    }
    return axes->n > 0;
}

static bool is_whole(const cuts *c, const oly_dim_factors *dim)
{
    for (int k = 0; k < dim->n; k++)
        if (c->axes[dim->factor[k]].n)
            return false;
    return true;
}

/* Does the operand have the factor too? If not, splitting it would not say which of the operand's elements a device
 * has. */
static bool is_shared(const cuts *c, const oly_layout *in, int factor)
{
    for (int d = 0; d < in->rank; d++)
        for (int k = 0; k < c->f->operand[0][d].n; k++)
            if (c->f->operand[0][d].factor[k] == factor)
                return true;
    return false;
}

/* Removed axes split the result where its layout is split over them, if every device's part then stays in place. */
static void cut_elsewhere(cuts *c, const oly_layout *in, const oly_layout *out, const oly_axis_list *wanted)
{
    for (int d = 0; d < out->rank; d++) {
        cuts other = *c;
        const oly_dim_factors *dim = &c->f->result[d];
        if (dim->n == 0 || c->f->size[dim->factor[0]] <= 1 || !is_whole(c, dim) || !are_lost(c, in, &wanted[d]))
            continue;
        hand_out(&other, dim, &wanted[d]);
        keep_in_place(&other, in, out);
        bool all = true;
        for (int k = 0; k < wanted[d].n; k++)
            all = all && cuts_over(&other, wanted[d].axis[k]);
        for (int k = 0; k < c->f->n_factors; k++)
            all = all && other.axes[k].n >= c->axes[k].n && (other.axes[k].n == 0 || is_shared(c, in, k));
        if (all)
            *c = other;
    }
}

/* The dimension's split: into whole blocks of the factors that are not split. */
static oly_split split_of(const cuts *c, const oly_dim_factors *dim, int64_t extent)
{
    oly_axis_list axes = {0};
    int64_t blocks = 1;
    for (int k = 0; k < dim->n; k++) {
        const oly_axis_list *mine = &c->axes[dim->factor[k]];
        for (int j = 0; j < mine->n; j++)
            axes.axis[axes.n++] = mine->axis[j];
        if (mine->n)
            blocks *= c->f->size[dim->factor[k]];
    }
    oly_split s = oly_split_canonical(c->mesh, &axes, extent);
    if (axes.n == 0)
        return s;
    s.unit = blocks > 0 && extent > 0 ? extent / blocks : 1;
    return s;
}

oly_status oly_lower_reshape(oly_planner *p, oly_frame *f, oly_node *n)
{
    oly_factors fs;
    cuts c = {.mesh = p->mesh, .f = &fs};
    oly_layout in = oly_operand_layout(p, f, n->in[0]), out = {.mesh = p->mesh, .rank = n->type.rank};
    OLY_TRY(oly_factors_of(n, &fs));
    for (int d = 0; d < in.rank && oly_value_of(f, n)->late; d++)
        in.split[d] = oly_split_canonical(p->mesh, &oly_value_of(f, n->in[0])->axes[d], in.shape[d]);
    for (int d = 0; d < in.rank; d++)
        hand_out(&c, &fs.operand[0][d], &in.split[d].axes);
    keep_in_place(&c, &in, &out);
    cut_elsewhere(&c, &in, &out, oly_value_of(f, n)->axes);
    for (int d = 0; d < in.rank; d++)
        in.split[d] = split_of(&c, &fs.operand[0][d], in.shape[d]);
    for (int d = 0; d < out.rank; d++) {
        out.shape[d] = n->type.shape[d];
        out.split[d] = split_of(&c, &fs.result[d], out.shape[d]);
    }
    oly_value *v = oly_value_of(f, n);
    oly_deferred off;
    OLY_TRY(oly_sink_reshape(p, f, n, &in, &out, &off));
    OLY_TRY(oly_materialise(p, f, n->in[0], &in, &v->slot));
    p->plan->slots[v->slot].shared = true;
    OLY_TRY(oly_set_layout(p, v, &out));
    v->block = f->block;
    return off.any ? oly_place_reduction(p, f, n, &off.rule, &off.axes) : OLY_OK;
}
