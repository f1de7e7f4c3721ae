/* SPDX-License-Identifier: BSD-3-Clause */
/* Padding with an array's own elements (oly_pad_mode): on both sides a dimension is continued by blocks of its own
 * elements (block 1 next to it, block 2 beyond, ...), which are slices, reversed or not. See compose_rearrange.h. */
#include "graph/compose/compose_rearrange.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

/* Elements [begin, end) of dimension d, reversed or not. */
static oly_status stretch(oly_graph *g, oly_node *x, int d, int64_t begin, int64_t end, bool reversed, oly_node **out)
{
    oly_params p;
    OLY_TRY(oly_rearrange_part(g, x, d, begin, end, out));
    if (!reversed || end - begin == 1)
        return OLY_OK;
    memset(&p, 0, sizeof p);
    p.axes[p.n_axes++] = d;
    return oly_graph_add(g, OLY_OP_rev, 1, out, &p, out);
}

/* At most `wanted` elements of block k on one side: those next to x. *taken: how many. */
static oly_status block(oly_graph *g, oly_node *x, int d, oly_surround mode, int64_t k, bool before, int64_t wanted,
                        int64_t *taken, oly_node **out)
{
    bool reversed = mode != OLY_SURROUND_WRAP && k % 2 == 1, skips = mode == OLY_SURROUND_REFLECT;
    /* a reflected edge element is not repeated: the block leaves it out */
    bool first = reversed == before;
    int64_t begin = skips && first, end = x->type.shape[d] - (skips && !first);
    *taken = end - begin < wanted ? end - begin : wanted;
    if (before == reversed)
        end = begin + *taken;
    else
        begin = end - *taken;
    return stretch(g, x, d, begin, end, reversed, out);
}

/* One edge element, repeated. */
static oly_status copies(oly_graph *g, oly_node *x, int d, bool before, int64_t wanted, oly_node **out)
{
    int64_t n = x->type.shape[d], shape[OLY_MAX_RANK];
    memcpy(shape, x->type.shape, sizeof shape);
    shape[d] = wanted;
    OLY_TRY(stretch(g, x, d, before ? 0 : n - 1, before ? 1 : n, false, out));
    return oly_build_broadcast(g, *out, x->type.rank, shape, out);
}

/* Extends y (x so far) by `wanted` elements on one side. */
static oly_status surround(oly_graph *g, oly_node *x, int d, oly_surround mode, bool before, int64_t wanted,
                           oly_node **y)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dimension = d;
    for (int64_t k = 1, taken = 0; wanted > 0; k++, wanted -= taken) {
        oly_node *more;
        if (mode == OLY_SURROUND_EDGE) {
            taken = wanted;
            OLY_TRY(copies(g, x, d, before, wanted, &more));
        } else {
            OLY_TRY(block(g, x, d, mode, k, before, wanted, &taken, &more));
        }
        oly_node *both[2] = {before ? more : *y, before ? *y : more};
        OLY_TRY(oly_graph_add(g, OLY_OP_concatenate, 2, both, &p, y));
    }
    return OLY_OK;
}

oly_status oly_compose_surround(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_params *p = &recipe->params;
    *out = in[0];
    for (int d = 0; d < in[0]->type.rank; d++) {
        oly_node *x = *out;
        int64_t n = x->type.shape[d], before = p->start[d], after = p->shape[d], all;
        if (before < 0 || after < 0)
            return oly_fail(OLY_INVALID,
                            "dimension %d of %s padded by %" PRId64 " and %" PRId64 " of its elements; give 0 or more",
                            d, oly_type_short(&in[0]->type), before, after);
        if (n == 0 && (before > 0 || after > 0))
            return oly_fail(OLY_SHAPE, "dimension %d of %s has no elements to pad with; oly_pad takes a value", d,
                            oly_type_short(&in[0]->type));
        if (__builtin_add_overflow(n, before, &all) || __builtin_add_overflow(all, after, &all))
            return oly_fail(OLY_OVERFLOW, "dimension %d of %s would exceed 2^63 elements", d,
                            oly_type_short(&in[0]->type));
        oly_surround mode = (oly_surround)p->dimension;
        if (n == 1 && mode == OLY_SURROUND_REFLECT)
            mode = OLY_SURROUND_EDGE;
        OLY_TRY(surround(g, x, d, mode, true, before, out));
        OLY_TRY(surround(g, x, d, mode, false, after, out));
    }
    return OLY_OK;
}
