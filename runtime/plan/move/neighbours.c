/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers between neighbours: every device needs its block and margins around it, or another box that is split over
 * the same axes. The dimensions are then independent. What a part of one dimension sends to or receives from another
 * is a *strip*, computed once for all devices of this process that have that part; what two devices exchange are the
 * products of their strips. So the time is proportional to the number of pieces found, and does not grow with the
 * mesh. Called by transfers.c. */
#include "plan/move/move.h"
#include "plan/move/transfers.h"
#include "core/optimisation.h"
#include "core/arena.h"
#include <string.h>

enum {
    WAYS = 16,       /* parts of a dimension that are cached */
    MOST_PARTS = 64, /* most wanted parts: the bits of a mask */
    KIND_BITS = 5,
    MOST_KINDS = (1 << KIND_BITS) - 1, /* most kinds of strips in a dimension: OLY_MAX_RANK of them fit in 64 bits */
    SHAPE_BITS = 7                     /* log2 of the number of cached products of strips */
};

typedef struct range {
    int64_t lo, hi;
} range;

/* One dimension of what devices with part `part` of `to` receive: of their box, and of each of the parts that are
 * wanted. */
typedef struct line {
    int part;
    range whole, wanted[];
} line;

/* One dimension of what a device shares with another one. */
typedef struct strip {
    int64_t lo, hi, shift; /* in the source's coordinates; plus `shift`: in the receiver's */
    int part, position;    /* the other device's part; its contribution to that device's position */
    uint64_t meets, holds; /* wanted parts that share elements with it; that contain it */
    const line *line;      /* the receiver's */
    int kind;              /* strips of one kind differ only in where they begin; MOST_KINDS: unknown */
} strip;

typedef struct strip_list {
    int part, n, room;
    strip *strip;
} strip_list;

/* The wanted boxes of a product of strips of certain kinds, relative to where the strips begin. */
typedef struct shape {
    uint64_t kinds; /* of all dimensions, plus 1; 0: unused */
    int n;
    oly_box *boxes;
} shape;

typedef struct finder {
    mover *m;
    oly_arena arena;
    int *position;     /* [n_devices] of this process's devices */
    bool replicas;     /* several devices hold the same block */
    uint64_t all;      /* every wanted part */
    const line **line; /* [rank][WAYS] */
    const strip_list **taken, **given;
    remote_list copies; /* within this process */
    const strip **kind; /* [rank][MOST_KINDS] the first of each kind */
    int n_kinds[OLY_MAX_RANK];
    shape *shapes; /* [1 << SHAPE_BITS] */
    /* the device being processed, and its strips chosen so far */
    int device, here;
    bool sending;
    const strip_list *list[OLY_MAX_RANK];
    const strip *at[OLY_MAX_RANK];
} finder;

/* -- one dimension --------------------------------------------------------------------------------------------------------- */

static const line *line_of(finder *f, int d, int part)
{
    const mover *m = f->m;
    const line **known = &f->line[d * WAYS + part % WAYS];
    const line *seen = *known;
    if (seen && seen->part == part)
        return seen;
    line *l = oly_arena_take(&f->arena, sizeof *l + sizeof *l->wanted * (size_t)m->wanted.n);
    if (!l)
        return NULL;
    l->part = part;
    oly_region_range(&m->to->dim[d], m->shape[d], part, &l->whole.lo, &l->whole.hi);
    for (int k = 0; k < m->wanted.n; k++)
        oly_region_range(&m->wanted.part[k].dim[d], m->shape[d], part, &l->wanted[k].lo, &l->wanted[k].hi);
    return *known = l;
}

/* What a part contributes to the position in the mesh. */
static int place_of_part(const mover *m, int d, int part)
{
    const oly_axis_list *axes = &m->from->split[d].axes;
    oly_mesh mesh = m->from->mesh;
    int place = 0;
    for (int k = axes->n - 1; k >= 0; k--) {
        int digit = part % mesh->size[axes->axis[k]];
        part /= mesh->size[axes->axis[k]];
        for (int a = axes->axis[k] + 1; a < mesh->n_axes; a++)
            digit *= mesh->size[a];
        place += digit;
    }
    return place;
}

/* The elements of a strip that are in wanted part k, relative to the strip's begin. */
static range wanted_of(const strip *s, int k)
{
    int64_t lo = s->line->wanted[k].lo - s->shift - s->lo, hi = s->line->wanted[k].hi - s->shift - s->lo;
    return (range){lo > 0 ? lo : 0, hi < s->hi - s->lo ? hi : s->hi - s->lo};
}

static bool are_alike(const strip *a, const strip *b)
{
    if (a->hi - a->lo != b->hi - b->lo || a->meets != b->meets || a->holds != b->holds)
        return false;
    for (uint64_t left = a->meets & ~a->holds; left; left &= left - 1) {
        int k = __builtin_ctzll(left);
        range x = wanted_of(a, k), y = wanted_of(b, k);
        if (x.lo != y.lo || x.hi != y.hi)
            return false;
    }
    return true;
}

static int kind_of(finder *f, int d, const strip *s)
{
    const strip **known = &f->kind[d * MOST_KINDS];
    int k = 0;
    while (k < f->n_kinds[d] && !are_alike(known[k], s))
        k++;
    if (k == f->n_kinds[d] && k < MOST_KINDS) {
        strip *kept = OLY_ARENA_NEW(&f->arena, strip, 1); /* not in the list, which moves when it grows */
        if (!kept)
            return MOST_KINDS;
        *kept = *s;
        known[f->n_kinds[d]++] = kept;
    }
    return k;
}

/* Adds the source's elements [lo, hi), shared with part `part`. */
static bool add_strip(finder *f, strip_list *list, int d, int64_t lo, int64_t hi, int64_t shift, int part,
                      const line *l)
{
    const mover *m = f->m;
    m->p->plan->looked_at++;
    if (hi <= lo)
        return true;
    if (list->n == list->room) {
        int room = list->room ? 4 * list->room : 4;
        strip *more = OLY_ARENA_NEW(&f->arena, strip, room);
        if (!more)
            return false;
        if (list->n)
            memcpy(more, list->strip, sizeof *more * (size_t)list->n);
        list->strip = more;
        list->room = room;
    }
    strip *s = &list->strip[list->n++];
    *s = (strip){lo, hi, shift, part, place_of_part(m, d, part), 0, 0, l, 0};
    if (m->wanted.n == 0)
        s->meets = s->holds = 1;
    for (int k = 0; k < m->wanted.n; k++) {
        const range *w = &l->wanted[k];
        s->meets |= (uint64_t)(w->lo < hi + shift && w->hi > lo + shift && w->lo < w->hi) << k;
        s->holds |= (uint64_t)(w->lo <= lo + shift && w->hi >= hi + shift) << k;
    }
    s->kind = m->wanted.n > 1 ? kind_of(f, d, s) : 0;
    return true;
}

/* The strips that part `part` of `to` receives from those of `from`. */
static bool take_strips(finder *f, strip_list *list, int d, int part)
{
    const mover *m = f->m;
    const oly_split *s = &m->from->split[d];
    const line *l = line_of(f, d, part);
    int64_t n = m->shape[d];
    if (!l)
        return false;
    for (int64_t shift = oly_first_repetition(m, d, l->whole.lo); shift < l->whole.hi && l->whole.lo < l->whole.hi;
         shift += n) {
        int64_t lo = l->whole.lo - shift > 0 ? l->whole.lo - shift : 0,
                hi = l->whole.hi - shift < n ? l->whole.hi - shift : n;
        for (int k = lo < hi ? oly_split_part_of(s, n, lo) : s->parts; k < s->parts && lo < hi; k++) {
            int64_t end = oly_split_cut(s, n, k + 1) < hi ? oly_split_cut(s, n, k + 1) : hi;
            if (!add_strip(f, list, d, lo, end, shift, k, l))
                return false;
            lo = end > lo ? end : lo;
        }
        if (!m->to->dim[d].wraps)
            break;
    }
    return true;
}

/* The strips that part `part` of `from` sends to those of `to`. */
static bool give_strips(finder *f, strip_list *list, int d, int part)
{
    const mover *m = f->m;
    int64_t n = m->shape[d], lo = oly_split_cut(&m->from->split[d], n, part),
            hi = oly_split_cut(&m->from->split[d], n, part + 1), shift, end;
    oly_repetitions(m, d, &shift, &end);
    for (; shift < end && lo < hi; shift += n) {
        int first, last;
        oly_region_parts(&m->to->dim[d], lo + shift, hi + shift, &first, &last);
        for (int k = first; k <= last; k++) {
            const line *l = line_of(f, d, k);
            if (!l)
                return false;
            int64_t from = l->whole.lo - shift, to = l->whole.hi - shift;
            if (!add_strip(f, list, d, from > lo ? from : lo, to < hi ? to : hi, shift, k, l))
                return false;
        }
    }
    return true;
}

static const strip_list *strips_of(finder *f, int d, int part)
{
    const strip_list **known = &(f->sending ? f->given : f->taken)[d * WAYS + part % WAYS];
    const strip_list *seen = *known;
    if (seen && seen->part == part)
        return seen;
    strip_list *list = OLY_ARENA_NEW(&f->arena, strip_list, 1);
    if (!list)
        return NULL;
    list->part = part;
    if (!(f->sending ? give_strips : take_strips)(f, list, d, part))
        return NULL;
    return *known = list;
}

/* -- products of strips ------------------------------------------------------------------------------------------------------ */

/* The wanted parts of a product of strips, as disjoint boxes relative to where the strips begin. */
static int find_boxes(const finder *f, uint64_t meets, oly_box *boxes)
{
    int rank = f->m->from->rank, n = 0;
    oly_box within = {.rank = rank}, parts[MOST_PARTS];
    for (int d = 0; d < rank; d++)
        within.hi[d] = f->at[d]->hi - f->at[d]->lo;
    for (; meets; meets &= meets - 1, n++) {
        parts[n].rank = rank;
        for (int d = 0; d < rank; d++) {
            range r = wanted_of(f->at[d], __builtin_ctzll(meets));
            parts[n].lo[d] = r.lo;
            parts[n].hi[d] = r.hi;
        }
    }
    return oly_wanted_boxes(n, parts, &within, boxes);
}

/* The same, cached. NULL: out of memory. */
static const shape *shape_of(finder *f, uint64_t meets)
{
    oly_box boxes[OLY_MOST_WANTED];
    uint64_t kinds = 0;
    for (int d = 0; d < f->m->from->rank; d++)
        kinds = kinds << KIND_BITS | (uint64_t)f->at[d]->kind;
    bool told = true;
    for (int d = 0; d < f->m->from->rank; d++)
        told = told && f->at[d]->kind < MOST_KINDS;
    shape *s = &f->shapes[(kinds + 1) * 0x9e3779b97f4a7c15u >> (64 - SHAPE_BITS)];
    if (told && s->kinds == kinds + 1)
        return s;
    s->kinds = told ? kinds + 1 : 0;
    s->n = find_boxes(f, meets, boxes);
    s->boxes = OLY_ARENA_NEW(&f->arena, oly_box, s->n + 1);
    if (!s->boxes)
        return NULL;
    memcpy(s->boxes, boxes, sizeof *boxes * (size_t)s->n);
    return s;
}

/* Adds one box that the devices share; NULL: the whole product of strips. */
static oly_status add_box(finder *f, const oly_box *box, int process, int position)
{
    mover *m = f->m;
    remote_list *list = process == oly_mesh_my_process() ? &f->copies : &m->remotes;
    OLY_TRY(oly_room_for_remotes(m, list, list->n + 1));
    remote *r = &list->remote[list->n++];
    r->peer = process;
    r->receiver = f->sending ? position : f->here;
    r->source = f->sending ? f->here : position;
    r->device = f->device;
    r->sending = f->sending;
    r->box.rank = m->from->rank;
    for (int d = 0; d < m->from->rank; d++) {
        const strip *s = f->at[d];
        r->box.lo[d] = s->lo + (box ? box->lo[d] : 0);
        r->box.hi[d] = box ? s->lo + box->hi[d] : s->hi;
        r->shift[d] = s->shift;
    }
    return OLY_OK;
}

/* The position of the device that sends the shared elements; -1: they are in place already. */
static int giver_of(const finder *f, int position)
{
    const mover *m = f->m;
    int part[OLY_MAX_RANK];
    bool shifted = false;
    for (int d = 0; d < m->from->rank; d++) {
        part[d] = f->sending ? f->list[d]->part : f->at[d]->part;
        shifted = shifted || f->at[d]->shift != 0;
    }
    int receiver = f->sending ? position : f->here, giver = f->sending ? f->here : position;
    if (f->replicas)
        giver = oly_owner_of(m, part, receiver, oly_process_at(m->from->mesh, receiver));
    return m->in_place && giver == receiver && !shifted ? -1 : giver;
}

/* Called once a strip of each dimension is chosen: adds what this device and the one at `position` share. */
static oly_status found(finder *f, uint64_t meets, uint64_t holds, int position)
{
    mover *m = f->m;
    int me = oly_mesh_my_process(), process = oly_process_at(m->from->mesh, position);
    m->p->plan->looked_at++;
    if (f->sending && process == me)
        return OLY_OK;
    int giver = giver_of(f, position);
    if (giver < 0 || (f->sending && giver != f->here))
        return OLY_OK;
    if (!f->sending) {
        position = giver;
        process = oly_process_at(m->from->mesh, giver);
        if (process == me && m->remotes_only)
            return OLY_OK;
    }
    if (holds)
        return add_box(f, NULL, process, position);
    const shape *s = shape_of(f, meets);
    OLY_PLAN_CHECK(s);
    for (int k = 0; k < s->n; k++)
        OLY_TRY(add_box(f, &s->boxes[k], process, position));
    return OLY_OK;
}

static oly_status find(finder *f, int d, uint64_t meets, uint64_t holds, int position)
{
    if (d == f->m->from->rank)
        return found(f, meets, holds, position);
    for (int k = 0; k < f->list[d]->n; k++) {
        const strip *s = f->at[d] = &f->list[d]->strip[k];
        if (meets & s->meets)
            OLY_TRY(find(f, d + 1, meets & s->meets, holds & s->holds, position + s->position));
    }
    return OLY_OK;
}

static oly_status find_for(finder *f, int device, bool sending)
{
    const mover *m = f->m;
    int coordinates[OLY_MAX_RANK], rest = f->position[device];
    f->device = device;
    f->here = rest;
    f->sending = sending;
    oly_mesh_coordinates(m->from->mesh, f->here, coordinates);
    for (int d = 0; d < m->from->rank; d++) {
        int part = oly_split_part_at(&m->from->split[d], m->from->mesh, coordinates);
        f->list[d] = strips_of(f, d, part);
        OLY_PLAN_CHECK(f->list[d]);
        if (f->list[d]->n == 0)
            return OLY_OK;
        rest -= place_of_part(m, d, part);
    }
    return find(f, 0, f->all, f->all, rest);
}

/* The device at a position. Tries first the one whose distance from a known device equals that of their positions. */
static int device_at(const finder *f, int position, int other, int of_other)
{
    int n = f->m->p->plan->n_devices, guess = other + position - of_other;
    if (guess >= 0 && guess < n && f->position[guess] == position)
        return guess;
    for (guess = 0; guess < n && f->position[guess] != position;)
        guess++;
    return guess;
}

static oly_status add_copies(finder *f)
{
    mover *m = f->m;
    OLY_TRY(oly_room_for_copies(m, f->copies.n));
    for (int k = 0; k < f->copies.n; k++) {
        const remote *r = &f->copies.remote[k];
        oly_box holds = m->target[r->device];
        for (int d = 0; d < holds.rank; d++) { /* to the source's coordinates */
            holds.lo[d] -= r->shift[d];
            holds.hi[d] -= r->shift[d];
        }
        OLY_TRY(oly_add_copy(m, device_at(f, r->source, r->device, r->receiver), r->device, &holds, &r->box));
    }
    return OLY_OK;
}

static oly_status find_all(finder *f)
{
    const mover *m = f->m;
    oly_mesh mesh = m->from->mesh;
    int n = m->p->plan->n_devices, used = 1, whole = 1;
    for (int d = 0; d < m->from->rank; d++)
        used *= m->from->split[d].parts;
    for (int a = 0; a < mesh->n_axes; a++)
        whole *= mesh->size[a];
    f->replicas = used < whole;
    f->all = m->wanted.n == 0 ? 1 : ~(uint64_t)0 >> (MOST_PARTS - m->wanted.n);
    f->position = OLY_ARENA_NEW(&f->arena, int, n);
    f->line = OLY_ARENA_NEW(&f->arena, const line *, m->from->rank *WAYS);
    f->taken = OLY_ARENA_NEW(&f->arena, const strip_list *, m->from->rank *WAYS);
    f->given = OLY_ARENA_NEW(&f->arena, const strip_list *, m->from->rank *WAYS);
    f->kind = OLY_ARENA_NEW(&f->arena, const strip *, m->from->rank *MOST_KINDS);
    f->shapes = OLY_ARENA_NEW(&f->arena, shape, 1 << SHAPE_BITS);
    OLY_PLAN_CHECK(f->position && f->line && f->taken && f->given && f->kind ? f->shapes : NULL);
    for (int d = 0; d < n; d++)
        f->position[d] = oly_position_in(m->p, mesh, d);
    for (int d = 0; d < n; d++) {
        if (f->position[d] < 0)
            continue;
        OLY_TRY(find_for(f, d, false));
        if (mesh->process < 0) /* a mesh within one process has no receivers elsewhere */
            OLY_TRY(find_for(f, d, true));
        if (d == 0 && m->remotes.n + f->copies.n < 256) { /* the other devices will need as much */
            OLY_TRY(oly_room_for_remotes(f->m, &f->m->remotes, m->remotes.n * n + n));
            OLY_TRY(oly_room_for_remotes(f->m, &f->copies, f->copies.n * n + n));
        }
    }
    return add_copies(f);
}

static bool same_axes(const mover *m, const oly_region *r)
{
    for (int d = 0; d < m->from->rank; d++)
        if (!oly_axis_list_equal(&m->from->split[d].axes, &r->dim[d].split.axes))
            return false;
    return r->mesh == m->from->mesh;
}

bool oly_between_neighbours(const mover *m)
{
    bool near = oly_enabled(OLY_OPTIMISATION_NEIGHBOUR_EXCHANGE) && !m->permutation && !m->from->mesh->everywhere &&
                m->wanted.n <= MOST_PARTS && same_axes(m, m->to);
    for (int k = 0; k < m->wanted.n && near; k++)
        near = same_axes(m, &m->wanted.part[k]);
    return near;
}

/* Upper bounds for one dimension: on the blocks that a device's box meets, and on the boxes that meet a block; 0:
 * unknown. */
static void most_meetings(const mover *m, int d, int64_t *blocks, int64_t *boxes)
{
    const oly_region_dim *r = &m->to->dim[d];
    const oly_split *s = &m->from->split[d], *t = &r->split;
    int64_t scale = r->scale < 0 ? -r->scale : r->scale, block = s->base / s->unit / s->parts * s->unit,
            apart = t->base / t->unit / t->parts * t->unit / t->step * scale,
            width = ((t->base / t->unit / t->parts + 1) * t->unit / t->step + 1) * scale + r->hi - r->lo;
    *blocks = *boxes = 1;
    if (s->parts == 1)
        return;
    *blocks = block / s->step > 0 ? (width - 2) / (block / s->step) + 2 : 0;
    *boxes = apart > 0 && r->spread <= 1 ? ((block + s->unit) / s->step + width) / apart + 1 : 0;
}

bool oly_few_neighbours(const mover *m, int64_t most)
{
    int64_t blocks = 1, boxes = 1, more_blocks, more_boxes;
    if (!oly_between_neighbours(m))
        return false;
    for (int d = 0; d < m->from->rank; d++) {
        most_meetings(m, d, &more_blocks, &more_boxes);
        if (more_blocks <= 0 || more_boxes <= 0 || more_blocks > most || more_boxes > most)
            return false;
        blocks *= more_blocks;
        boxes *= more_boxes;
        if (blocks + boxes > most)
            return false;
    }
    return true;
}

oly_status oly_find_neighbours(mover *m)
{
    finder f = {.m = m};
    oly_status st = find_all(&f);
    oly_arena_free(&f.arena);
    return st;
}
