/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks from a piece of a stage through the body's graph (time_tiling_walk.h): slices, cyclic shifts, updates, padding
 * and concatenations determine the positions of operands, operations become instructions, and values that are read
 * become loads. Called by time_tiling_form.c. */
#include "plan/stencil/time_tiling_walk.h"
#include "graph/view.h"
#include <string.h>

enum { FARTHEST = 16, DEEPEST = 200 };

static int fail(oly_tiling_walk *f)
{
    f->fails = true;
    return -1;
}

static bool same_spot(const oly_tiling_spot *a, const oly_tiling_spot *b, int rank)
{
    return memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)rank) == 0 &&
           memcmp(a->shift, b->shift, sizeof *a->shift * (size_t)rank) == 0;
}

/* Do the dimensions of the node correspond to those of the grid, in order? */
static bool is_plain(const oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at)
{
    bool plain = n->type.rank == f->form->rank;
    for (int d = 0; plain && d < n->type.rank; d++)
        plain = at->dim[d] == d;
    return plain;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* In a periodic dimension, an element near the opposite end is a near one. */
static bool bring_near(oly_tiling_walk *f, int64_t size, int d, int64_t *shift)
{
    int64_t n = f->form->shape[d], far = *shift < 0 ? -*shift : *shift;
    if (size == n && 2 * far > n) {
        *shift += *shift < 0 ? n : -n;
        f->form->wraps[d] = true;
        far = *shift < 0 ? -*shift : *shift;
    }
    return far <= FARTHEST;
}

static int read_value(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, oly_tiling_kind kind, int index)
{
    oly_tiling_load load = {{kind, index}, {0}};
    const int64_t *from = oly_tiling_meeting_of(f, n)->align, *to = oly_tiling_meeting_of(f, f->root)->align;
    if (!is_plain(f, n, at))
        return fail(f);
    for (int d = 0; d < f->form->rank; d++) {
        load.shift[d] = at->shift[d] + from[d] - to[d];
        if (!bring_near(f, n->type.shape[d], d, &load.shift[d]))
            return fail(f);
        f->aside = f->aside || load.shift[d] != 0;
    }
    int value = oly_tiling_read(f->code, &load, n->type.dtype);
    return value < 0 ? fail(f) : value;
}

static oly_tiling_fixed *find_fixed(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at)
{
    oly_tiling_form *form = f->form;
    for (int k = 0; k < form->n_fixed; k++) {
        oly_tiling_fixed *x = &form->fixed[k];
        bool same = x->node == n && memcmp(x->dim, at->dim, sizeof *x->dim * (size_t)n->type.rank) == 0;
        for (int e = 0; same && e < n->type.rank; e++)
            same = x->dim[e] >= 0 || x->at[e] == at->shift[e];
        if (same)
            return x;
    }
    if (form->n_fixed == f->fixed_capacity)
        return NULL;
    oly_tiling_fixed *x = &form->fixed[form->n_fixed++];
    *x = (oly_tiling_fixed){.node = n};
    memcpy(x->dim, at->dim, sizeof x->dim);
    memcpy(x->at, at->shift, sizeof x->at);
    return x;
}

static int read_fixed(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at)
{
    oly_tiling_load load = {{OLY_TILING_FIXED, 0}, {0}};
    oly_tiling_fixed *x = find_fixed(f, n, at);
    if (!x)
        return fail(f);
    load.of.index = (int)(x - f->form->fixed);
    for (int e = 0; e < n->type.rank; e++) {
        int d = at->dim[e];
        if (d < 0)
            continue;
        int64_t shift = at->shift[e] - oly_tiling_meeting_of(f, f->root)->align[d];
        if (!bring_near(f, n->type.shape[e], d, &shift))
            return fail(f);
        load.shift[d] = shift;
        x->low[d] = shift < x->low[d] ? shift : x->low[d];
        x->high[d] = shift > x->high[d] ? shift : x->high[d];
    }
    int value = oly_tiling_read(f->code, &load, n->type.dtype);
    return value < 0 ? fail(f) : value;
}

/* -- the path through the graph ------------------------------------------------------------------------------------ */

static int value_of(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth);

/* The range of the node's elements that the piece reads along dimension e of the node. */
static void range_of(const oly_tiling_walk *f, const oly_tiling_spot *at, int e, int64_t *lo, int64_t *hi)
{
    int d = at->dim[e];
    *lo = at->shift[e] + (d < 0 ? 0 : f->lo[d] + at->turn[d]);
    *hi = at->shift[e] + (d < 0 ? 1 : f->hi[d] + at->turn[d]);
}

/* Divides the piece where it reads element i of the node's dimension e. */
static int cut(oly_tiling_walk *f, const oly_tiling_spot *at, int e, int64_t i)
{
    f->cut = at->dim[e];
    f->cut_at = i - at->shift[e] - (f->cut < 0 ? 0 : at->turn[f->cut]);
    return -1;
}

static int through_view(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    oly_view_dim dims[OLY_MAX_RANK];
    oly_tiling_spot to = {.dim = {0}};
    memcpy(to.turn, at->turn, sizeof to.turn);
    for (int e = 0; e < OLY_MAX_RANK; e++)
        to.dim[e] = -1;
    oly_view_of(n, dims);
    for (int d = 0; d < n->type.rank; d++) {
        if (dims[d].from < 0)
            continue;
        if (dims[d].step != 1 && n->type.shape[d] > 1)
            return fail(f);
        to.dim[dims[d].from] = at->dim[d];
        to.shift[dims[d].from] = at->shift[d] + dims[d].start;
    }
    return value_of(f, n->in[0], &to, depth);
}

/* A reshape may only add or remove dimensions of one element. */
static int through_reshape(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    const oly_type *in = &n->in[0]->type;
    oly_tiling_spot to = {.dim = {0}};
    int d = 0;
    memcpy(to.turn, at->turn, sizeof to.turn);
    for (int e = 0; e < OLY_MAX_RANK; e++)
        to.dim[e] = -1;
    for (int e = 0; e < in->rank; e++) {
        if (in->shape[e] == 1)
            continue;
        while (d < n->type.rank && n->type.shape[d] == 1)
            d++;
        if (d == n->type.rank || n->type.shape[d] != in->shape[e])
            return fail(f);
        to.dim[e] = at->dim[d];
        to.shift[e] = at->shift[d++];
    }
    for (; d < n->type.rank; d++)
        if (n->type.shape[d] != 1)
            return fail(f);
    return value_of(f, n->in[0], &to, depth);
}

static int through_roll(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int e, int64_t by, int depth)
{
    const oly_node *x = n->in[0]->in[0];
    int64_t size = n->type.shape[e], lo, hi;
    int d = at->dim[e];
    oly_tiling_spot to = *at;
    if (d < 0 || size != f->form->shape[d])
        return fail(f);
    f->form->wraps[d] = true;
    to.shift[e] += 2 * by > size ? by - size : by;
    if (oly_tiling_meeting_of(f, x)->input >= 0 || oly_tiling_meeting_of(f, x)->is_stage)
        return value_of(f, x, &to, depth);
    range_of(f, &to, e, &lo, &hi);
    if (lo < 0 && hi > 0)
        return cut(f, &to, e, 0);
    if (lo < size && hi > size)
        return cut(f, &to, e, size);
    if (lo >= size)
        to.turn[d] -= size;
    if (hi <= 0)
        to.turn[d] += size;
    return value_of(f, x, &to, depth);
}

/* Is the piece inside a box of the node's elements? *outside: it is disjoint from it. If it overlaps the box partly,
 * the piece is divided. */
static bool is_within(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, const int64_t *start,
                      const int64_t *extent, bool *outside)
{
    bool within = true;
    *outside = false;
    for (int e = 0; e < n->type.rank; e++) {
        int64_t lo, hi;
        range_of(f, at, e, &lo, &hi);
        *outside = *outside || hi <= start[e] || lo >= start[e] + extent[e];
        within = within && lo >= start[e] && hi <= start[e] + extent[e];
    }
    for (int e = 0; e < n->type.rank && !within && !*outside && f->cut < 0; e++) {
        int64_t lo, hi;
        range_of(f, at, e, &lo, &hi);
        if (lo < start[e])
            cut(f, at, e, start[e]);
        else if (hi > start[e] + extent[e])
            cut(f, at, e, start[e] + extent[e]);
    }
    return within;
}

/* Are there gaps between the elements of `inside`? Then its elements do not form a box. */
static bool has_gaps(const oly_node *n, const oly_node *inside)
{
    for (int e = 0; e < n->type.rank; e++)
        if (n->params.step[e] != 1 && inside->type.shape[e] > 1)
            return true;
    return false;
}

static int through_part(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, const oly_node *inside,
                        const oly_node *around, int depth)
{
    bool outside;
    if (has_gaps(n, inside))
        return fail(f);
    if (is_within(f, n, at, n->params.start, inside->type.shape, &outside)) {
        oly_tiling_spot to = *at;
        for (int e = 0; e < n->type.rank; e++)
            to.shift[e] -= n->params.start[e];
        return value_of(f, inside, &to, depth);
    }
    return outside ? value_of(f, around, at, depth) : -1;
}

static int through_concatenation(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    int e = n->params.dimension;
    int64_t by, begin = 0, lo, hi;
    int round;
    if (oly_is_cyclic_shift(n, &round, &by))
        return through_roll(f, n, at, round, by, depth);
    range_of(f, at, e, &lo, &hi);
    for (int k = 0; k < n->n_in; k++) {
        int64_t end = begin + n->in[k]->type.shape[e];
        if (lo >= begin && lo < end) {
            oly_tiling_spot to = *at;
            if (hi > end)
                return cut(f, at, e, end);
            to.shift[e] -= begin;
            return value_of(f, n->in[k], &to, depth);
        }
        begin = end;
    }
    return fail(f);
}

/* A value computed from fields that is met at two positions becomes a stage, so that it is computed once. */
static void meet(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at)
{
    oly_tiling_meeting *m = oly_tiling_meeting_of(f, n);
    if (m->depends < 2 || n == f->root)
        return;
    if (m->met && (m->root != f->root || !same_spot(&m->at, at, n->type.rank)))
        m->is_stage = f->again = true;
    m->met = true;
    m->root = f->root;
    m->at = *at;
}

static int through_operation(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    int in[3] = {-1, -1, -1}, dimension = n->params.dimension;
    if (oly_is_constant(n))
        return oly_tiling_splat(f->code, n);
    if (oly_ops[n->op].detail == OLY_TILE_iota) {
        if (n->type.rank != 1 && dimension < 0)
            return fail(f);
        dimension = dimension < 0 ? 0 : dimension;
        if (at->dim[dimension] < 0 || at->shift[dimension] != 0 || at->turn[at->dim[dimension]] != 0)
            return fail(f);
        dimension = at->dim[dimension];
    }
    meet(f, n, at);
    if (n->n_in > 3)
        return fail(f);
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k]->type.rank != n->type.rank ||
            memcmp(n->in[k]->type.shape, n->type.shape, sizeof(int64_t) * (size_t)n->type.rank) != 0)
            return fail(f);
        in[k] = value_of(f, n->in[k], at, depth);
        if (in[k] < 0)
            return -1;
    }
    int value = oly_tiling_operate(f->code, n, in, dimension);
    return value < 0 ? fail(f) : value;
}

static int through(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    switch (oly_ops[n->op].lowering) {
    case OLY_LOWER_TILE: return through_operation(f, n, at, depth);
    case OLY_LOWER_VIEW: return through_view(f, n, at, depth);
    case OLY_LOWER_RESHAPE: return through_reshape(f, n, at, depth);
    case OLY_LOWER_PLACE: return value_of(f, n->in[0], at, depth);
    case OLY_LOWER_WRITE:
        if (oly_ops[n->op].detail == OLY_WRITE_ALL)
            return through_concatenation(f, n, at, depth);
        return through_part(f, n, at, n->in[1], n->in[0], depth);
    case OLY_LOWER_PAD: {
        const oly_tiling_spot none = {.dim = {-1}};
        bool outside;
        if (has_gaps(n, n->in[0]))
            return fail(f);
        is_within(f, n, at, n->params.start, n->in[0]->type.shape, &outside);
        return f->cut < 0 && outside ? value_of(f, n->in[1], &none, depth)
                                     : through_part(f, n, at, n->in[0], n->in[1], depth);
    }
    default: return fail(f);
    }
}

/* The number of the value that the piece reads; -1: failed, or the piece must be divided. */
static int value_of(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at, int depth)
{
    const oly_tiling_meeting *m = oly_tiling_meeting_of(f, n);
    if (f->fails || f->cut >= 0)
        return -1;
    if (depth > DEEPEST)
        return fail(f);
    if (m->input == 0) {
        int counter = oly_tiling_read(f->code, &(oly_tiling_load){{OLY_TILING_COUNTER, 0}, {0}}, n->type.dtype);
        return counter < 0 ? fail(f) : counter;
    }
    if (m->input > 0 && m->input <= f->form->n_fields)
        return read_value(f, n, at, OLY_TILING_FIELD, m->input - 1);
    if (m->input > 0)
        return read_fixed(f, n, at);
    if (m->is_stage && n != f->root) {
        oly_tiling_meeting *stage = oly_tiling_meeting_of(f, n);
        const int64_t *to = oly_tiling_meeting_of(f, f->root)->align;
        for (int d = 0; d < f->form->rank && !stage->is_placed; d++)
            stage->align[d] = to[d] - at->shift[d];
        stage->is_placed = true;
        return read_value(f, n, at, OLY_TILING_STAGE, stage->stage);
    }
    for (int k = 0; k < f->n_known; k++)
        if (f->known[k].node == n && same_spot(&f->known[k].at, at, n->type.rank))
            return f->known[k].value;
    int value = through(f, n, at, depth + 1);
    if (value >= 0 && f->n_known < OLY_TILING_KNOWN)
        f->known[f->n_known++] = (oly_tiling_known){n, *at, value};
    return value;
}

int oly_tiling_walk_from(oly_tiling_walk *f, const oly_node *n, const oly_tiling_spot *at)
{
    return through(f, n, at, 0);
}
