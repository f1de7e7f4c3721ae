/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatters that add. Either every device adds all updates of its part of the array, or the updates are split over
 * devices, each adds its own, and the partial results are summed; then the array itself enters one of them, or a
 * part of it each. Updates may be split over any of the mesh's axes: over those that already split them, so that
 * they stay, and over unused ones, so that less of them is moved. The cheapest way is taken. Called by
 * lower_partial.c. */
#include "plan/lower/lower.h"
#include "plan/lower/lower_local.h"
#include "plan/lower/sink_reductions.h"
#include "graph/factors.h"
#include <string.h>

enum { SAMPLE = 64, MOST_AXES = 4, MOST_NODES = 512 };

/* Position k of n samples: all positions, or in a large mesh some, pseudo-random but the same on every process. */
static int position_at(oly_mesh mesh, int k, int n)
{
    unsigned first = (unsigned)((int64_t)k * mesh->n_devices / n), apart = (unsigned)(mesh->n_devices / n);
    return (int)(first + (unsigned)k * 2654435761u % apart);
}

/* Elements that a device receives, on average, when a value goes from one layout to another; `from` NULL: all that
 * it then holds. */
static double elements_moved(const oly_layout *from, const oly_layout *to)
{
    int n = to->mesh->n_devices < SAMPLE ? to->mesh->n_devices : SAMPLE;
    double moved = 0;
    for (int k = 0; k < n; k++) {
        int position = position_at(to->mesh, k, n);
        oly_box wanted = oly_layout_box(to, position);
        moved += (double)oly_box_count(&wanted);
        if (from) {
            oly_box there = oly_layout_box(from, position);
            there = oly_box_intersect(&wanted, &there);
            moved -= (double)oly_box_count(&there);
        }
    }
    return moved / n;
}

/* What a way costs each device. */
typedef struct cost {
    double bytes;
    int collectives;
} cost;

static bool is_less(const cost *a, const cost *b)
{
    return a->bytes < b->bytes - 0.5 || (a->bytes < b->bytes + 0.5 && a->collectives < b->collectives);
}

/* Does a gather need all of its operand j on every device? It does if it looks up parts of an array, or if its
 * result is not split along the indexes. */
static bool reads_whole(oly_frame *f, const oly_node *gather, int j)
{
    oly_factors fs;
    for (int a = 0; a < gather->params.n_axes; a++)
        if (oly_value_of(f, gather->in[0])->axes[gather->params.axes[a]].n)
            return true;
    if (oly_factors_of(gather, &fs) != OLY_OK)
        return false;
    for (int d = 0; d < gather->in[j]->type.rank; d++)
        for (int e = 0; e < gather->type.rank; e++)
            if (fs.operand[j][d].n && fs.result[e].n && fs.operand[j][d].factor[0] == fs.result[e].factor[0] &&
                oly_value_of(f, gather)->axes[e].n)
                return false;
    return true;
}

/* Will a gather use the same indexes, as the gradient of a scatter does, and need all of them? Then they are moved
 * anyway. */
static bool is_brought_later(oly_frame *f, const oly_node *n, const oly_node *index)
{
    const oly_graph *g = f->graph;
    for (int k = n->index + 1; k < g->n_nodes && g->n_nodes <= MOST_NODES; k++) {
        const oly_node *user = g->nodes[k];
        if (oly_ops[user->op].lowering != OLY_LOWER_LOCAL ||
            oly_local_way_of((oly_local_op)oly_ops[user->op].detail) != OLY_LOCAL_READS)
            continue;
        for (int j = 1; j < user->n_in; j++)
            if (user->in[j] == index && reads_whole(f, user, j))
                return true;
    }
    return false;
}

/* Adds the cost of moving operands, from number `first` on, to where they are read. `whole`: all indexes are moved. */
static void add_brought(oly_planner *p, oly_frame *f, const oly_local_step *s, int first, bool whole, cost *c)
{
    for (int k = first; k < s->n_in; k++) {
        oly_region r = oly_region_of_layout(&s->in[k]);
        oly_layout own;
        if (oly_is_at_hand(f, s->node->in[k], &r) || (k > 0 && whole && is_brought_later(f, s->node, s->node->in[k])))
            continue;
        bool known = oly_natural_layout(f, s->node->in[k], &own) && own.mesh == p->mesh;
        double moved = elements_moved(known ? &own : NULL, &s->in[k]);
        c->bytes += moved * (double)oly_dtype_size(s->dtype[k]);
        c->collectives += moved > 0;
    }
}

/* Adds the cost of reducing the results: each device gets its part of them, or all. */
static void add_sum(const oly_local_step *s, bool scattered, cost *c)
{
    double members = oly_axis_list_parts(s->out.mesh, &s->over);
    double bytes = elements_moved(NULL, &s->out) * (double)oly_dtype_size(s->out_dtype);
    c->bytes += (scattered ? 1 : 2) * bytes * (members - 1) / members;
    c->collectives++;
}

/* Adds the cost of moving a result that is an output to its placement; if it is not scattered, from its own cuts. */
static void add_home(oly_planner *p, oly_frame *f, const oly_local_step *s, bool scattered, cost *c)
{
    if (!oly_is_result(f, s->node))
        return;
    oly_layout home = oly_node_layout(p, f, s->node), there = s->out;
    for (int d = 0; d < there.rank && scattered; d++)
        if (there.split[d].parts < home.split[d].parts)
            there.split[d] = home.split[d];
    double moved = elements_moved(&there, &home);
    c->bytes += moved * (double)oly_dtype_size(s->out_dtype);
    c->collectives += moved > 0;
}

static bool is_among(const oly_axis_list *axes, int axis)
{
    return memchr(axes->axis, axis, axes->n) != NULL;
}

/* The dimension of the updates, among those of an index, whose parts are largest. */
static int largest_dimension(const oly_node *n, const oly_layout *l)
{
    int best = -1;
    for (int d = n->params.n_batch; d < n->in[1]->type.rank; d++)
        if (best < 0 || l->shape[d] / l->split[d].parts > l->shape[best] / l->split[best].parts)
            best = d;
    return best;
}

/* Splits the updates over these axes (bit a for axis a), as in `own`, the layout of the updates or of an index, as
 * far as that uses them. False: not all of them can be used. */
static bool divide(const oly_node *n, const oly_layout *own, unsigned axes, oly_layout *l)
{
    *l = *own;
    for (int d = n->params.n_batch; d < n->in[1]->type.rank; d++) {
        oly_axis_list kept = {0};
        for (int k = 0; k < own->split[d].axes.n; k++)
            if (axes >> own->split[d].axes.axis[k] & 1) {
                kept.axis[kept.n++] = own->split[d].axes.axis[k];
                axes &= ~(1u << own->split[d].axes.axis[k]);
            }
        if (!oly_axis_list_equal(&kept, &own->split[d].axes))
            l->split[d] = oly_split_canonical(own->mesh, &kept, own->shape[d]);
    }
    for (int a = 0; a < own->mesh->n_axes; a++) {
        int d = axes >> a & 1 ? largest_dimension(n, l) : -1;
        if (d < 0)
            continue;
        if (l->shape[d] < (int64_t)l->split[d].parts * own->mesh->size[a])
            return false;
        oly_axis_list list = l->split[d].axes;
        list.axis[list.n++] = (uint8_t)a;
        l->split[d] = oly_split_canonical(own->mesh, &list, l->shape[d]);
        axes &= ~(1u << a);
    }
    return axes == 0;
}

/* The parts of the array must be inside those of the sum. Where a dimension does not divide evenly, parts over fewer
 * axes may not contain those over more: then the array is read in the larger parts. */
static void cover(const oly_layout *out, oly_layout *array)
{
    for (int d = 0; d < out->rank; d++) {
        oly_layout one = {.mesh = out->mesh, .rank = 1, .shape = {out->shape[d]}, .split = {out->split[d]}};
        oly_region r = {.mesh = out->mesh, .rank = 1};
        r.dim[0] = (oly_region_dim){.split = array->split[d], .n = array->shape[d], .scale = 1};
        if (!oly_region_inside_layout(&r, &one))
            array->split[d] = out->split[d];
    }
}

/* The sum is split over fewer axes than the result: axes after a removed one are removed, too. Nothing is summed
 * over those, so they may not split the array. */
static void leave_others(const oly_local_step *part, oly_layout *array)
{
    for (int d = 0; d < array->rank; d++) {
        const oly_axis_list *had = &array->split[d].axes;
        oly_axis_list kept = {0};
        while (kept.n < had->n &&
               (is_among(&part->out.split[d].axes, had->axis[kept.n]) || is_among(&part->over, had->axis[kept.n]))) {
            kept.axis[kept.n] = had->axis[kept.n];
            kept.n++;
        }
        if (kept.n < had->n)
            array->split[d] = oly_split_canonical(array->mesh, &kept, array->shape[d]);
    }
}

/* The step in which updates are split over the axes, starting from the layout of one operand; false: they cannot be. */
static bool divided(const oly_local_step *s, const oly_layout *own, unsigned axes, oly_local_step *part,
                    bool *scattered)
{
    const oly_node *n = s->node;
    oly_layout l;
    if (!divide(n, own, axes, &l))
        return false;
    part->out = s->out;
    part->over.n = 0;
    for (int d = n->params.n_batch; d < n->in[1]->type.rank; d++)
        oly_append_axes(&part->over, &l.split[d].axes);
    int left = 0;
    for (int d = 0; d < part->out.rank; d++)
        for (int k = 0; k < part->out.split[d].axes.n; k++)
            left += is_among(&part->over, part->out.split[d].axes.axis[k]);
    oly_leave_axes(&part->out, &part->over);
    *scattered = left == part->over.n;
    part->in[0] = s->in[0];
    leave_others(part, &part->in[0]);
    cover(&part->out, &part->in[0]);
    for (int k = 1; k < n->n_in; k++) {
        part->in[k] = s->in[k];
        oly_leave_axes(&part->in[k], &part->over);
        for (int d = n->params.n_batch; d < n->in[1]->type.rank; d++)
            part->in[k].split[d] = l.split[d];
    }
    return true;
}

/* Is the array itself a deferred sum over the same axes? Then each device adds to its own partial result, and one
 * reduction serves both. */
static bool joins_sum(oly_planner *p, oly_frame *f, const oly_local_step *part)
{
    const oly_node *x = part->node->in[0];
    const oly_deferred *w = x->n_uses == 1 && oly_deferred_root(f, x) == x ? oly_deferred_of(p, f, x) : NULL;
    if (!w || w->rule.combiner != OLY_COMBINE_SUM || w->rule.in_pairs || w->axes.n != part->over.n ||
        !oly_layout_equal(oly_value_of(f, x)->layout, &part->in[0]))
        return false;
    for (int k = 0; k < w->axes.n; k++)
        if (!is_among(&part->over, w->axes.axis[k]))
            return false;
    return true;
}

/* The next set of axes to try: all sets, or on a mesh of many axes only `own`. */
static unsigned next_axes(oly_mesh mesh, unsigned own, unsigned axes)
{
    if (mesh->n_axes > MOST_AXES)
        return axes == 0 ? own : 0;
    return axes + 1 < 1u << mesh->n_axes ? axes + 1 : 0;
}

static unsigned axes_of(const oly_node *n, const oly_layout *l)
{
    unsigned axes = 0;
    for (int d = n->params.n_batch; d < n->in[1]->type.rank; d++)
        for (int k = 0; k < l->split[d].axes.n; k++)
            axes |= 1u << l->split[d].axes.axis[k];
    return axes;
}

/* Tries the ways that start from operand k; `part` is the best so far and costs `least`. */
static bool look(oly_planner *p, oly_frame *f, const oly_local_step *s, int k, oly_local_step *part, cost *least)
{
    oly_layout own;
    bool any = false;
    if (!oly_natural_layout(f, s->node->in[k], &own) || own.mesh != p->mesh)
        return false;
    unsigned stays = axes_of(s->node, &own);
    for (unsigned axes = next_axes(p->mesh, stays, 0); axes; axes = next_axes(p->mesh, stays, axes)) {
        oly_local_step tried = *part;
        cost c = {0};
        bool scattered;
        if (!divided(s, &own, axes, &tried, &scattered))
            continue;
        tried.joins = joins_sum(p, f, &tried);
        if (!tried.joins)
            add_sum(&tried, scattered, &c);
        add_home(p, f, &tried, scattered, &c);
        if (!is_less(&c, least))
            continue;
        add_brought(p, f, &tried, oly_layout_equal(&tried.in[0], &s->in[0]) ? 1 : 0, false, &c);
        if (!is_less(&c, least))
            continue;
        *part = tried;
        *least = c;
        any = true;
    }
    return any;
}

/* Is any way better than s? */
static bool look_everywhere(oly_planner *p, oly_frame *f, const oly_local_step *s, oly_local_step *part)
{
    cost least = {0};
    bool any = false;
    add_home(p, f, s, false, &least);
    add_brought(p, f, s, 1, true, &least);
    for (int k = s->n_in - 1; k > 0 && least.bytes > 0; k--)
        any = look(p, f, s, k, part, &least) || any;
    return any;
}

bool oly_scatter_joins(oly_planner *p, oly_frame *f, const oly_local_step *s)
{
    oly_local_step part = *s;
    return look_everywhere(p, f, s, &part) && part.joins;
}

oly_status oly_lower_scatter(oly_planner *p, oly_frame *f, oly_node *n, const oly_local_step *s, bool *done)
{
    oly_local_step *part = oly_local_step_new(p, n, &s->out);
    OLY_PLAN_CHECK(part);
    *done = look_everywhere(p, f, s, part);
    if (!*done)
        return OLY_OK;
    part->partial = true;
    if (part->joins)
        oly_keep_partial(f, n->in[0]);
    OLY_TRY(oly_local_read_operands(p, f, part));
    OLY_TRY(oly_settle(p, f, n, &part->out));
    part->slot = oly_value_of(f, n)->slot;
    OLY_TRY(oly_local_step_add(p, f, part));
    return oly_place_reduction(p, f, n, &(oly_reduction_rule){OLY_COMBINE_SUM, false}, &part->over);
}
