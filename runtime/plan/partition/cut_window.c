/* SPDX-License-Identifier: BSD-3-Clause */
/* How a convolution or a windowed reduction is split: output positions as the operand, features and taps where that
 * moves less. See cut_window.h. */
#include "plan/partition/cut_window.h"
#include "graph/contract.h"
#include "graph/factors.h"
#include <string.h>

/* -- parts of the operand ------------------------------------------------------------------------------------------ */

static oly_region_dim whole(int64_t n)
{
    return (oly_region_dim){.split = oly_split_whole(n), .n = n, .scale = 1};
}

/* What a part of the result needs of a dimension of the operand: [lo, hi) for output positions [begin, end). */
typedef void needed(const void *context, int64_t begin, int64_t end, int64_t *lo, int64_t *hi);

/* The operand's own balanced blocks over the axes that split n positions, each enlarged by the most that any part needs
 * beyond its block. */
static oly_region_dim grown(oly_mesh mesh, const oly_split *cut, int64_t n, int64_t size, needed *need,
                            const void *context)
{
    oly_region_dim r = {.split = oly_split_canonical(mesh, &cut->axes, size), .n = size, .scale = 1};
    for (int64_t k = 0; k < cut->parts; k++) {
        int64_t begin = oly_split_cut(cut, n, k), end = oly_split_cut(cut, n, k + 1), lo, hi;
        int64_t from = oly_split_cut(&r.split, size, k), to = oly_split_cut(&r.split, size, k + 1);
        if (end <= begin)
            continue;
        need(context, begin, end, &lo, &hi);
        lo = lo < 0 ? 0 : lo;
        hi = hi > size ? size : hi;
        if (hi <= lo)
            continue;
        if (to <= from)
            return whole(size); /* an empty part cannot be enlarged */
        r.lo = lo - from < r.lo ? lo - from : r.lo;
        r.hi = hi - to > r.hi ? hi - to : r.hi;
    }
    return r;
}

static oly_region_dim window_region(const oly_sliding *s, int d, int64_t size)
{
    const oly_sliding_window *w = s->w;
    int to = s->out.rank - (int)w->rank + d;
    oly_region_dim r = {.split = s->out.split[to],
                        .n = s->out.shape[to],
                        .scale = w->stride[d],
                        .lo = -w->lo[d],
                        .hi = oly_dilated(w->size[d], w->dilation[d]) - 1 - w->lo[d],
                        .spread = w->base_dilation[d] > 1 ? w->base_dilation[d] : 0};
    if (w->size[d] == 0 || r.n == 0)
        return whole(size);
    if (r.split.parts > 1)
        return r;
    int64_t first = r.lo, last = (r.n - 1) * r.scale + r.hi; /* what all windows read, the same on all devices */
    first = first < 0 ? 0 : (first + w->base_dilation[d] - 1) / w->base_dilation[d];
    last = last < 0 ? -1 : last / w->base_dilation[d];
    last = last < size ? last : size - 1;
    if ((first == 0 && last == size - 1) || last < first)
        return whole(size);
    return (oly_region_dim){.split = oly_split_whole(1), .n = 1, .scale = 1, .lo = first, .hi = last};
}

/* The features of the operand that features [begin, end) of the result depend on. */
static void features_between(const void *context, int64_t begin, int64_t end, int64_t *lo, int64_t *hi)
{
    const oly_node *n = context;
    int64_t per_group = n->type.shape[1] / n->params.window->groups, features = n->in[1]->type.shape[1];
    *lo = begin / per_group * features;
    *hi = ((end - 1) / per_group + 1) * features;
}

/* -- how everything is split --------------------------------------------------------------------------------------- */

/* A dimension that is kept has the operand's own cuts if their axes are the wanted ones. */
static void keep_cuts(oly_sliding *s, const oly_layout *operand, int from, int to)
{
    if (operand->shape[from] == s->out.shape[to] &&
        oly_axis_list_equal(&operand->split[from].axes, &s->out.split[to].axes))
        s->out.split[to] = operand->split[from];
}

/* Taps of the kernel that are split over devices: each reads the operand's elements around its own. */
static oly_region_dim tap_region(const oly_sliding *s, int d)
{
    const oly_sliding_window *w = s->w;
    int at = s->out.rank - (int)w->rank + d;
    return (oly_region_dim){.split = s->kernel.split[at],
                            .n = w->size[d],
                            .scale = w->dilation[d],
                            .lo = -w->lo[d],
                            .hi = (s->out.shape[at] - 1) * w->stride[d] - w->lo[d]};
}

/* Sets what is needed of the operand. */
static void see(oly_sliding *s, const oly_type *x)
{
    int batch = x->rank - (int)s->w->rank;
    for (int d = 0; d < s->w->rank; d++)
        s->seen.dim[batch + d] = s->node->n_in == 2 && s->kernel.split[batch + d].parts > 1
                                     ? tap_region(s, d)
                                     : window_region(s, d, x->shape[batch + d]);
    if (s->node->n_in < 2)
        return;
    s->kernel.split[0] = s->out.split[1];
    s->seen.dim[0] = s->w->batch_groups > 1 ? whole(x->shape[0])
                                            : (oly_region_dim){.split = s->out.split[0], .n = x->shape[0], .scale = 1};
    s->seen.dim[1] = (oly_region_dim){.split = s->kernel.split[1], .n = x->shape[1], .scale = 1};
    if (s->w->groups > 1)
        s->seen.dim[1] = s->out.split[1].parts == 1 ? whole(x->shape[1])
                                                    : grown(s->out.mesh, &s->out.split[1], s->out.shape[1], x->shape[1],
                                                            features_between, s->node);
}

static bool share(const oly_axis_list *a, const oly_axis_list *b)
{
    for (int j = 0; j < a->n; j++)
        for (int k = 0; k < b->n; k++)
            if (a->axis[j] == b->axis[k])
                return true;
    return false;
}

/* Elements of the box that a device does not have. */
static double missing(const oly_box *box, const oly_layout *own, int position)
{
    oly_box had = oly_layout_box(own, position), there = oly_box_intersect(box, &had);
    return (double)(oly_box_count(box) - oly_box_count(&there));
}

/* Elements of both operands that a device receives: an average over a sample of devices. */
static double elements_moved(const oly_sliding *s, const oly_layout *operand)
{
    enum { SAMPLE = 8 };
    int n = s->out.mesh->n_devices, sample = n < SAMPLE ? n : SAMPLE;
    double moved = 0;
    oly_region kernel = oly_region_of_layout(&s->kernel);
    bool x_there = s->f && oly_is_at_hand(s->f, s->node->in[0], &s->seen);
    bool kernel_there = s->f && oly_is_at_hand(s->f, s->node->in[1], &kernel);
    for (int k = 0; k < sample; k++) {
        int position = (int)((int64_t)n * k / sample);
        oly_box x = oly_region_box(&s->seen, operand[0].shape, position), w = oly_layout_box(&s->kernel, position);
        moved += x_there ? 0 : missing(&x, &operand[0], position);
        moved += kernel_there ? 0 : missing(&w, &operand[1], position);
    }
    return moved / sample;
}

static double part_size(const oly_layout *l)
{
    double n = 1;
    for (int d = 0; d < l->rank; d++)
        n *= (double)l->shape[d] / l->split[d].parts;
    return n;
}

/* Splits the sum along dimension d of the kernel as `cut`, if fewer elements move: partial sums are then reduced, and
 * reduce-scattered where the same axes split the result (only if that halves what moves, as another reader may need the
 * array whole anyway). If an operand need only be sliced, an all-reduced sum counts as a reduce-scattered one, as for
 * products. */
static void try_summing(oly_sliding *s, const oly_layout *operand, int d, const oly_split *cut, bool one_way,
                        double *least)
{
    oly_sliding tried = *s;
    bool scattered = false;
    if (cut->parts == 1 || share(&cut->axes, &s->summed))
        return;
    for (int e = 0; e < tried.out.rank; e++) {
        oly_split *split = &tried.out.split[e];
        oly_axis_list kept = {0};
        while (kept.n < split->axes.n && !share(&cut->axes, &(oly_axis_list){1, {split->axes.axis[kept.n]}})) {
            kept.axis[kept.n] = split->axes.axis[kept.n];
            kept.n++;
        }
        if (kept.n == split->axes.n)
            continue;
        *split = oly_split_canonical(tried.out.mesh, &kept, tried.out.shape[e]);
        scattered = true;
    }
    tried.kernel.split[d] = *cut;
    oly_append_axes(&tried.summed, &cut->axes);
    see(&tried, &s->node->in[0]->type);
    double reduced = part_size(&tried.out) * (cut->parts - 1) / cut->parts;
    double moved = elements_moved(&tried, operand) + (scattered || one_way ? 1 : 2) * reduced;
    if ((scattered ? 2 : 1) * moved >= *least)
        return;
    *least = moved;
    *s = tried;
}

/* Features, and taps of kernels as large as arrays: gradients of kernels are convolutions with other arrays. */
static void cut_sums(oly_sliding *s, const oly_layout *operand)
{
    int rank = operand[0].rank, first = rank - (int)s->w->rank;
    for (int d = 1; d < rank; d++) {
        const oly_split *x = &operand[0].split[d], *w = &operand[1].split[d];
        double least = elements_moved(s, operand);
        if (s->w->groups > 1 || s->w->batch_groups > 1 || (d >= first && s->w->base_dilation[d - first] > 1))
            continue;
        oly_sliding before = *s;
        bool alike = oly_axis_list_equal(&x->axes, &w->axes);
        try_summing(s, operand, d, w, alike || x->parts == 1, &least);
        if (alike || share(&x->axes, &s->summed))
            continue;
        if (d == 1) {
            oly_sliding by_kernel = *s;
            *s = before;
            double bound = least;
            try_summing(s, operand, d, x, w->parts == 1, &least);
            if (least >= bound)
                *s = by_kernel;
        } else if (!share(&x->axes, &s->out.split[d].axes)) {
            oly_split cut = oly_split_canonical(s->out.mesh, &x->axes, operand[1].shape[d]);
            try_summing(s, operand, d, &cut, w->parts == 1, &least);
        }
    }
}

/* Starts with whole kernels. */
static void begin(oly_sliding *s, const oly_layout *operand)
{
    const oly_layout *x = &operand[0], *k = &operand[1];
    s->seen = (oly_region){.mesh = s->out.mesh, .rank = x->rank};
    for (int d = 0; s->node->n_in < 2 && d < x->rank - (int)s->w->rank; d++) {
        keep_cuts(s, x, d, d);
        s->seen.dim[d] = (oly_region_dim){.split = s->out.split[d], .n = x->shape[d], .scale = 1};
    }
    if (s->node->n_in == 2) {
        if (s->w->batch_groups == 1)
            keep_cuts(s, x, 0, 0);
        keep_cuts(s, k, 0, 1);
        s->kernel = (oly_layout){.mesh = s->out.mesh, .rank = k->rank};
        for (int d = 0; d < k->rank; d++) {
            s->kernel.shape[d] = k->shape[d];
            s->kernel.split[d] = oly_split_whole(k->shape[d]);
        }
    }
}

static void cut_as_moves_least(oly_sliding *s, const oly_layout *operand)
{
    see(s, &s->node->in[0]->type);
    if (s->node->n_in == 2 && operand[0].mesh == s->out.mesh && operand[1].mesh == s->out.mesh)
        cut_sums(s, operand);
}

void oly_sliding_cut(oly_sliding *s)
{
    const oly_choice *choice = oly_value_of(s->f, s->node)->choice;
    oly_layout operand[2] = {oly_operand_layout(s->p, s->f, s->node->in[0])};
    if (s->node->n_in == 2)
        operand[1] = oly_operand_layout(s->p, s->f, s->node->in[1]);
    s->out = choice ? oly_axes_layout(s->p, s->node, choice->work) : oly_node_layout(s->p, s->f, s->node);
    begin(s, operand);
    if (!choice) {
        cut_as_moves_least(s, operand);
        return;
    }
    s->kernel.split[1] = oly_split_canonical(s->p->mesh, &choice->summed[0], s->kernel.shape[1]);
    s->summed = choice->summed[0];
    see(s, &s->node->in[0]->type);
}

void oly_cut_convolution(oly_planner *p, oly_node *n, const oly_layout operand[2], oly_layout *out, oly_layout *kernel)
{
    oly_sliding s = {.p = p, .node = n, .w = n->params.window, .out = *out};
    begin(&s, operand);
    cut_as_moves_least(&s, operand);
    *out = s.out;
    *kernel = s.kernel;
}
