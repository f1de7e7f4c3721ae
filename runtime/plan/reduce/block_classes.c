/* SPDX-License-Identifier: BSD-3-Clause */
/* Classes of blocks and where they are in memory: see reduce_scatter_tree.c. The blocks of a class are adjacent in
 * each dimension, in order. If cuts are balanced, a class within another one consists of blocks of equal size at
 * equal distances, up to the block from which on sizes are smaller by one. So it is a few strided boxes, however many
 * blocks there are. Of other cuts (every k-th element of balanced ones: reduce_in_parts.c) the blocks are
 * enumerated. */
#include "plan/reduce/block_classes.h"
#include "plan/reduce/reduction_steps.h"
#include "core/min_max.h"
#include <string.h>

/* A part of a class along one dimension: blocks of `length` elements at nested strides, in elements. */
typedef struct run {
    int n;
    int64_t length, from, to, extent[OLY_MAX_RANK], from_stride[OLY_MAX_RANK], to_stride[OLY_MAX_RANK];
} run;

typedef struct runs {
    int n, room;
    run *run;
    int64_t from_extent, to_extent; /* extents of the containing and of the contained class */
} runs;

/* The state for one dimension. */
typedef struct finder {
    const oly_scatter_shape *s;
    const oly_scatter_widths *w;
    const oly_class *in, *class; /* in NULL: the partial result */
    int d;
    int64_t first, begin; /* number of its first block; where the partial result begins */
    oly_arena *arena;
    runs *runs;
} finder;

/* -- the shape ------------------------------------------------------------------------------------------------------------ */

static void add_dimension(oly_scatter_shape *s, int d)
{
    const oly_split *cut = &s->target->split[d];
    oly_scatter_dimension *m = &s->dimension[d];
    int have = s->partial->split[d].axes.n;
    m->inner = 1;
    for (int k = have; k < cut->axes.n; k++)
        for (int a = 0; a < s->n_axes; a++)
            if (s->axis[a].axis == cut->axes.axis[k]) {
                m->axis[m->n++] = a;
                m->inner *= s->axis[a].size;
            }
    m->closed = cut->base == s->target->shape[d] && cut->unit == 1 && cut->start == 0 && cut->step == 1;
    m->each = s->target->shape[d] / cut->parts;
    m->more = s->target->shape[d] % cut->parts;
}

void oly_scatter_shape_of(oly_scatter_shape *s, const oly_layout *partial, const oly_layout *target,
                          const oly_reduction_rule *rule, const oly_axis_list *axes)
{
    oly_reduction_digit digits[OLY_SCATTER_LEVELS];
    memset(s, 0, sizeof *s);
    s->mesh = partial->mesh;
    s->partial = partial;
    s->target = target;
    for (int k = 0; k < axes->n; k++)
        s->axis[s->n_axes++] = (oly_scatter_axis){.axis = axes->axis[k], .size = s->mesh->size[axes->axis[k]]};
    s->n_digits = oly_reduction_digits(s->mesh, rule, axes, digits);
    for (int k = 0; k < s->n_digits; k++)
        for (int a = 0; a < s->n_axes; a++)
            if (s->axis[a].axis == digits[k].axis) {
                oly_scatter_axis *axis = &s->axis[a];
                s->digit_axis[k] = a;
                s->digit_place[k] = axis->n_digits;
                s->digit_radix[k] = axis->radix[axis->n_digits] = digits[k].radix;
                axis->stride[axis->n_digits++] = digits[k].stride;
            }
    for (int d = 0; d < target->rank; d++)
        add_dimension(s, d);
    oly_scatter_set_rounds(s, 1);
}

/* Rounds are sized by the first block, which is the largest; in a slice another one may be larger by one. A round is
 * a contiguous run of the block's elements, so inner dimensions are divided only when outer ones are down to one. */
void oly_scatter_set_rounds(oly_scatter_shape *s, int64_t rounds)
{
    oly_box largest = oly_layout_box(s->target, 0);
    s->n_rounds = 1;
    for (int d = 0; d < s->target->rank; d++) {
        int64_t n = oly_larger(largest.hi[d] - largest.lo[d] + !s->dimension[d].closed, 1),
                parts = oly_larger(oly_smaller(rounds, n), 1);
        s->width[d] = (n + parts - 1) / parts;
        s->rounds[d] = (n + s->width[d] - 1) / s->width[d];
        s->n_rounds *= s->rounds[d];
        rounds = s->width[d] == 1 ? (rounds + s->rounds[d] - 1) / s->rounds[d] : 1;
    }
}

oly_scatter_widths oly_scatter_round(const oly_scatter_shape *s, int64_t round)
{
    oly_scatter_widths w;
    for (int d = s->target->rank - 1; d >= 0; d--) {
        int64_t at = round < 0 ? 0 : round % s->rounds[d];
        w.lo[d] = at * s->width[d];
        w.hi[d] = round < 0 || s->rounds[d] == 1 ? INT64_MAX : w.lo[d] + s->width[d];
        round = round < 0 ? round : round / s->rounds[d];
    }
    return w;
}

/* -- one dimension --------------------------------------------------------------------------------------------------------- */

/* Of a block of `size` elements, how many belong to the round. */
static int64_t length_of(const finder *f, int64_t size)
{
    return oly_smaller(f->w->hi[f->d], size) - oly_smaller(f->w->lo[f->d], size);
}

static int64_t cut_at(const finder *f, int64_t block)
{
    return oly_split_cut(&f->s->target->split[f->d], f->s->target->shape[f->d], block);
}

/* The number of coordinates of a class along one axis. */
static int64_t count_of(const finder *f, const oly_class *c, int k)
{
    int a = f->s->dimension[f->d].axis[k];
    int64_t size = f->s->axis[a].size;
    return c->v[a] < size ? (size - c->v[a] + c->t[a] - 1) / c->t[a] : 0;
}

/* The number of a class's blocks among the first `rest` of this dimension. */
static int64_t blocks_before(const finder *f, const oly_class *c, int64_t rest)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    int64_t n = 0, inner = m->inner, all = 1;
    rest = oly_larger(rest, 0);
    for (int k = 0; k < m->n; k++)
        all *= count_of(f, c, k);
    if (rest >= m->inner)
        return all;
    for (int k = 0; k < m->n; k++) {
        int a = m->axis[k];
        inner /= f->s->axis[a].size;
        all = count_of(f, c, k) > 0 ? all / count_of(f, c, k) : 0;
        int64_t x = rest / inner, below = x > c->v[a] ? (x - c->v[a] + c->t[a] - 1) / c->t[a] : 0;
        n += below * all;
        if (x < c->v[a] || (x - c->v[a]) % c->t[a] != 0)
            return n;
        rest %= inner;
    }
    return n;
}

/* The number of this dimension's blocks that are larger by one. */
static int64_t larger_ones(const finder *f)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    return oly_smaller(oly_larger(m->more - f->first, 0), m->inner);
}

/* The offset of block number `rest` of this dimension within what a class holds; m->inner: the total. */
static int64_t elements_before(const finder *f, const oly_class *c, int64_t rest)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    int64_t n = 0;
    if (m->n == 0)
        return rest > 0 ? length_of(f, cut_at(f, f->first + 1) - cut_at(f, f->first)) : 0;
    if (!m->closed) {
        for (int64_t k = 0; k < rest; k++)
            if (blocks_before(f, c, k + 1) > blocks_before(f, c, k))
                n += length_of(f, cut_at(f, f->first + k + 1) - cut_at(f, f->first + k));
        return n;
    }
    int64_t large = blocks_before(f, c, oly_smaller(rest, larger_ones(f)));
    return large * length_of(f, m->each + 1) + (blocks_before(f, c, rest) - large) * length_of(f, m->each);
}

/* The same within what contains the class. */
static int64_t offset_of(const finder *f, int64_t rest)
{
    if (f->in)
        return elements_before(f, f->in, rest);
    int64_t at = cut_at(f, f->first + rest), size = cut_at(f, f->first + rest + 1) - at;
    return at + oly_smaller(f->w->lo[f->d], size) - f->begin;
}

static run *add_run(finder *f, int64_t rest)
{
    runs *r = f->runs;
    if (r->n == r->room) {
        int room = r->room ? 4 * r->room : 4;
        run *more = OLY_ARENA_NEW(f->arena, run, room);
        if (!more)
            return NULL;
        if (r->n)
            memcpy(more, r->run, sizeof *more * (size_t)r->n);
        r->run = more;
        r->room = room;
    }
    run *one = &r->run[r->n++];
    memset(one, 0, sizeof *one);
    one->from = offset_of(f, rest);
    one->to = elements_before(f, f->class, rest);
    one->length = length_of(f, cut_at(f, f->first + rest + 1) - cut_at(f, f->first + rest));
    if (one->length == 0) { /* the block has no elements in this round */
        r->n--;
        one->n = -1;
    }
    return one;
}

/* Adds blocks of one size: along axis k `count` of the class's coordinates, from number `first` on; all along the
 * axes after k; along those before k the coordinates of block `base`. */
static oly_status add_even(finder *f, int k, int64_t base, int64_t first, int64_t count)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    int64_t rest = base, inner = m->inner, in_block = 1, own_block = 1;
    if (count <= 0)
        return OLY_OK;
    for (int j = 0; j < m->n; j++) {
        int a = m->axis[j];
        inner /= f->s->axis[a].size;
        rest += j < k ? 0 : inner * (f->class->v[a] + (j == k ? first * f->class->t[a] : 0));
    }
    run *r = add_run(f, rest);
    OLY_PLAN_CHECK(r);
    if (r->n < 0)
        return OLY_OK;
    int64_t size = cut_at(f, f->first + rest + 1) - cut_at(f, f->first + rest);
    r->n = m->n - k;
    inner = 1;
    for (int j = m->n - 1; j >= k; j--) { /* innermost axis first */
        int a = m->axis[j];
        int64_t t = f->class->t[a];
        r->extent[j - k] = j == k ? count : count_of(f, f->class, j);
        r->from_stride[j - k] = f->in ? t / f->in->t[a] * in_block * r->length : t * inner * size;
        r->to_stride[j - k] = own_block * r->length;
        in_block *= f->in ? count_of(f, f->in, j) : 1;
        own_block *= count_of(f, f->class, j);
        inner *= f->s->axis[a].size;
    }
    return OLY_OK;
}

/* Adds all blocks of the class from `base` on, over the axes from k on: the larger ones, those in the coordinate that
 * has both sizes, and the smaller ones. */
static oly_status add_blocks(finder *f, int k, int64_t base, int64_t inner)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    int64_t larger = larger_ones(f) - base;
    if (k == m->n)
        return add_even(f, k, base, 0, 1);
    int64_t count = count_of(f, f->class, k), v = f->class->v[m->axis[k]], t = f->class->t[m->axis[k]];
    if (larger <= 0 || larger >= inner)
        return add_even(f, k, base, 0, count);
    inner /= f->s->axis[m->axis[k]].size;
    int64_t x = larger / inner, below = x > v ? (x - v + t - 1) / t : 0; /* where blocks become smaller */
    bool across = larger % inner != 0 && x >= v && (x - v) % t == 0;
    OLY_TRY(add_even(f, k, base, 0, oly_smaller(below, count)));
    if (across)
        OLY_TRY(add_blocks(f, k + 1, base + x * inner, inner));
    return add_even(f, k, base, below + across, count - below - across);
}

static oly_status find_runs(finder *f)
{
    const oly_scatter_dimension *m = &f->s->dimension[f->d];
    f->runs->to_extent = elements_before(f, f->class, m->inner);
    if (f->in)
        f->runs->from_extent = elements_before(f, f->in, m->inner);
    if (m->n == 0 || m->closed)
        return add_blocks(f, 0, 0, m->inner);
    for (int64_t k = 0; k < m->inner; k++)
        if (blocks_before(f, f->class, k + 1) > blocks_before(f, f->class, k))
            OLY_TRY(add_even(f, m->n, k, 0, 1));
    return OLY_OK;
}

static finder finder_of(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, int d)
{
    finder f = {.s = s, .w = w, .d = d};
    int64_t part = oly_split_part_at(&s->partial->split[d], s->mesh, at);
    f.first = part * s->dimension[d].inner;
    f.begin = oly_split_cut(&s->partial->split[d], s->partial->shape[d], part);
    return f;
}

/* -- all dimensions ------------------------------------------------------------------------------------------------ */

int64_t oly_class_number(const oly_scatter_shape *s, const oly_class *c)
{
    int64_t n = 0;
    for (int a = 0; a < s->n_axes; a++)
        n = n * c->t[a] + c->v[a];
    return n;
}

int64_t oly_class_elements(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *c)
{
    int64_t n = 1;
    for (int d = 0; c && d < s->target->rank && n > 0; d++) {
        finder f = finder_of(s, w, at, d);
        n *= elements_before(&f, c, s->dimension[d].inner);
    }
    return n;
}

/* The loops of one piece, outermost first. */
typedef struct loops {
    int n;
    int64_t extent[3 * OLY_MAX_RANK], from[3 * OLY_MAX_RANK], to[3 * OLY_MAX_RANK];
} loops;

/* Adds a loop, merged with the one before if they are contiguous on both sides. */
static void add_loop(loops *l, int64_t extent, int64_t from, int64_t to)
{
    int k = l->n - 1;
    if (extent == 1)
        return;
    if (k >= 0 && l->from[k] == extent * from && l->to[k] == extent * to) {
        l->extent[k] *= extent;
        l->from[k] = from;
        l->to[k] = to;
        return;
    }
    l->extent[l->n] = extent;
    l->from[l->n] = from;
    l->to[l->n++] = to;
}

static oly_status add_piece(oly_arena *arena, oly_class_pieces *pieces, int64_t from, int64_t to, const loops *l,
                            int first)
{
    if (l->n - first > OLY_MAX_RANK) { /* more dimensions than a piece can have */
        for (int64_t k = 0; k < l->extent[first]; k++)
            OLY_TRY(add_piece(arena, pieces, from + k * l->from[first], to + k * l->to[first], l, first + 1));
        return OLY_OK;
    }
    if (pieces->n == pieces->room) {
        int room = pieces->room ? 4 * pieces->room : 2;
        oly_class_piece *more = OLY_ARENA_NEW(arena, oly_class_piece, room);
        OLY_PLAN_CHECK(more);
        if (pieces->n)
            memcpy(more, pieces->piece, sizeof *more * (size_t)pieces->n);
        pieces->piece = more;
        pieces->room = room;
    }
    oly_class_piece *p = &pieces->piece[pieces->n++];
    *p = (oly_class_piece){.rank = l->n - first, .from = from, .to = to};
    for (int k = first; k < l->n; k++) {
        p->extent[k - first] = l->extent[k];
        p->from_stride[k - first] = l->from[k];
        p->to_stride[k - first] = l->to[k];
    }
    if (p->rank == 0) {
        p->rank = 1;
        p->extent[0] = p->from_stride[0] = p->to_stride[0] = 1;
    }
    return OLY_OK;
}

/* Adds the product of one run of each dimension. */
static oly_status add_product(int rank, const runs *all, const int *at, oly_arena *arena, oly_class_pieces *pieces)
{
    loops l = {0};
    int64_t from = 0, to = 0, from_stride[OLY_MAX_RANK], to_stride[OLY_MAX_RANK], f = 1, t = 1;
    for (int d = rank - 1; d >= 0; d--) {
        from_stride[d] = f;
        to_stride[d] = t;
        f *= all[d].from_extent;
        t *= all[d].to_extent;
    }
    for (int d = 0; d < rank; d++) {
        const run *r = &all[d].run[at[d]];
        from += r->from * from_stride[d];
        to += r->to * to_stride[d];
        for (int k = 0; k < r->n; k++)
            add_loop(&l, r->extent[k], r->from_stride[k] * from_stride[d], r->to_stride[k] * to_stride[d]);
        add_loop(&l, r->length, from_stride[d], to_stride[d]);
    }
    return add_piece(arena, pieces, from, to, &l, 0);
}

oly_status oly_class_find(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at, const oly_class *in,
                          const oly_class *c, oly_arena *arena, oly_class_pieces *pieces)
{
    int rank = s->target->rank, chosen[OLY_MAX_RANK] = {0};
    runs all[OLY_MAX_RANK];
    *pieces = (oly_class_pieces){0};
    for (int d = 0; d < rank; d++) {
        finder f = finder_of(s, w, at, d);
        all[d] = (runs){0};
        f.in = in;
        f.class = c;
        f.arena = arena;
        f.runs = &all[d];
        if (!in)
            all[d].from_extent =
                oly_split_cut(&s->partial->split[d], s->partial->shape[d], f.first / s->dimension[d].inner + 1) -
                f.begin;
        OLY_TRY(find_runs(&f));
        if (all[d].n == 0)
            return OLY_OK;
    }
    for (int d = 0; d >= 0;) {
        OLY_TRY(add_product(rank, all, chosen, arena, pieces));
        for (d = rank - 1; d >= 0 && ++chosen[d] == all[d].n; d--)
            chosen[d] = 0;
    }
    const oly_class_piece *p = pieces->piece;
    pieces->is_run = pieces->n == 1 && p->rank == 1 && p->from_stride[0] == 1 && p->to_stride[0] == 1;
    return OLY_OK;
}

int64_t oly_class_in_block(const oly_scatter_shape *s, const oly_scatter_widths *w, const int *at)
{
    int64_t n = 0;
    for (int d = 0; d < s->target->rank; d++) {
        int part = oly_split_part_at(&s->target->split[d], s->mesh, at);
        int64_t lo = oly_split_cut(&s->target->split[d], s->target->shape[d], part),
                size = oly_split_cut(&s->target->split[d], s->target->shape[d], part + 1) - lo;
        n = n * size + oly_smaller(w->lo[d], size);
    }
    return n;
}
