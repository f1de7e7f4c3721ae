/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether lines are sorted where they are split, or gathered first: by the bytes that move and the predicted time. See
 * sort_split.h. */
#include "plan/partition/sort_split.h"
#include "plan/cost/cost.h"
#include "core/option.h"

oly_local_op oly_sort_op(const oly_node *n)
{
    return (oly_local_op)oly_ops[n->op].detail;
}

bool oly_sort_gives_elements(const oly_node *n)
{
    return oly_sort_op(n) == OLY_LOCAL_SORT;
}

/* Number of lines in the largest part. */
static double lines_of(const oly_layout *l, int d)
{
    int64_t n = 1;
    for (int e = 0; e < l->rank; e++)
        n *= e == d ? 1 : (l->shape[e] + l->split[e].parts - 1) / l->split[e].parts;
    return (double)n;
}

/* Seconds to sort lines of n elements by this many keys. */
static double sorting(double lines, double n, int keys)
{
    double steps = 1;
    for (int64_t reached = 1; (double)reached < n; reached *= 2)
        steps++;
    return oly_cost_operations(lines * n * steps * keys);
}

bool oly_sort_pays(const oly_sorter *s)
{
    double lines = lines_of(s->own, s->d), length = (double)s->own->shape[s->d], p = s->parts, gathered = 0,
           travels = 0;
    for (int k = 0; k < s->n; k++) {
        travels += (double)oly_dtype_size(s->dtype[k]);
        gathered += s->source[k] ? (double)oly_dtype_size(s->dtype[k]) : 0;
    }
    if (lines * length * gathered > (double)(oly_option.exchange_memory << 20) && 2 * s->reach <= s->r)
        return true;
    double all = lines * (length - length / p) * gathered, dealt = lines * 2 * (p - 1) * (double)s->q * travels,
           halo = lines * 2 * (double)s->reach * travels;
    double together = oly_cost_choice(OLY_LEVEL_NODE, all, p - 1) + sorting(lines, length, s->node->n_in);
    double apart = oly_cost_choice(OLY_LEVEL_NODE, dealt + halo, 2 * p) +
                   2 * sorting(lines, (double)s->r, s->node->n_in) +
                   sorting(lines, (double)(s->r + 2 * s->reach), s->n_keys);
    return dealt + halo < all && apart < together;
}

void oly_sort_add_array(oly_sorter *s, oly_node *source, oly_dtype dtype)
{
    s->source[s->n] = source;
    s->dtype[s->n++] = dtype;
}

/* Adds indexes where the order depends on them, or where they are the result. */
void oly_sort_list_keys(oly_sorter *s)
{
    const oly_node *n = s->node;
    oly_kind kind = oly_dtype_kind(n->in[0]->type.dtype);
    for (int k = 0; k < n->n_in; k++)
        oly_sort_add_array(s, n->in[k], n->in[k]->type.dtype);
    if (!oly_sort_gives_elements(n))
        oly_sort_add_array(s, NULL, n->type.dtype);
    else if (kind == OLY_KIND_FLOAT || kind == OLY_KIND_COMPLEX)
        oly_sort_add_array(s, NULL, s->own->shape[s->d] < INT32_MAX ? OLY_INT32 : OLY_INT64);
    s->n_keys = s->n;
    s->results[s->n_results++] = (struct oly_sort_result){s->node, oly_sort_gives_elements(n) ? 0 : s->n - 1};
}

/* Other dimensions could be split instead of the line's. Indexes are counted as oly_sort_list_keys has them. */
bool oly_gathers_line(const oly_node *n, oly_mesh mesh, const oly_axis_list *axes)
{
    int d = n->params.dimension;
    oly_layout own = {.mesh = mesh, .rank = n->type.rank};
    oly_sorter s = {.node = (oly_node *)n, .own = &own, .d = d, .parts = oly_axis_list_parts(mesh, axes)};
    if (oly_local_way_of(oly_sort_op(n)) != OLY_LOCAL_ORDERS || n->n_in >= OLY_SORT_MOST || s.parts < 2)
        return false;
    for (int e = 0; e < own.rank; e++) {
        own.shape[e] = n->type.shape[e];
        own.split[e] = oly_split_canonical(mesh, e == d ? axes : &(oly_axis_list){0}, own.shape[e]);
        if (e != d && own.shape[e] > 1)
            return false;
    }
    s.reach = (int64_t)(s.parts - 1) * (s.parts - 1);
    s.q = (own.shape[d] / s.parts + s.parts) / s.parts;
    s.r = s.q * s.parts;
    oly_sort_list_keys(&s);
    return s.reach >= own.shape[d] || !oly_sort_pays(&s);
}
