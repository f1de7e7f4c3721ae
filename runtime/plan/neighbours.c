/* Movements between neighbours: every device wants its block and what lies round it, or another box that is cut over the same axes.
 * Dimensions are then apart. What a part of one dimension gives to or takes from another one is a *strip*, worked out once for all
 * devices of this process that have that part; what devices give each other are the products of strips. So finding them costs as much
 * as there is to find, and a device in the middle of a large mesh has no more neighbours than one in the middle of a small one.
 * Called by pieces.c. */
#include "plan/pieces.h"
#include "core/arena.h"
#include <string.h>

enum { WAYS = 16, MOST_PARTS = 64 }; /* parts of a dimension that are remembered; parts of the region: bits of a mask */

typedef struct range {
    int64_t lo, hi;
} range;

/* One dimension of what the devices with a part of `to` get: of their box, and of each of its parts that are wanted. */
typedef struct line {
    int part;
    range whole, wanted[];
} line;

/* One dimension of what a device shares with another one. */
typedef struct strip {
    int64_t lo, hi, shift; /* in the source's block; at the receiver's its elements are so much further on */
    int part, position;    /* the other's; and what that adds to its position */
    uint64_t meets, holds; /* wanted parts that have elements of it; that have all of it */
    const line *line;      /* the receiver's */
} strip;

typedef struct strip_list {
    int part, n, room;
    strip *strip;
} strip_list;

typedef struct finder {
    mover *m;
    oly_arena arena;
    int *position;     /* [n_devices] of this process's devices */
    bool replicas;     /* several devices hold the same */
    uint64_t all;      /* every wanted part */
    const line **line; /* [rank][WAYS] */
    const strip_list **taken, **given;
    int n_copies, copy_capacity;
    remote *copies; /* within this process */
    /* the device that is looked at, and how far */
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
    if (*known && (*known)->part == part)
        return *known;
    line *l = oly_arena_take(&f->arena, sizeof *l + sizeof *l->wanted * (size_t)m->wanted.n);
    if (!l)
        return NULL;
    l->part = part;
    oly_region_range(&m->to->dim[d], m->shape[d], part, &l->whole.lo, &l->whole.hi);
    for (int k = 0; k < m->wanted.n; k++)
        oly_region_range(&m->wanted.part[k].dim[d], m->shape[d], part, &l->wanted[k].lo, &l->wanted[k].hi);
    return *known = l;
}

/* What a part adds to the position in the mesh. */
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

/* Adds [lo, hi) of the source's elements, shared with part `part`. */
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
    *s = (strip){lo, hi, shift, part, place_of_part(m, d, part), 0, 0, l};
    if (m->wanted.n == 0)
        s->meets = s->holds = 1;
    for (int k = 0; k < m->wanted.n; k++) {
        const range *w = &l->wanted[k];
        s->meets |= (uint64_t)(w->lo < hi + shift && w->hi > lo + shift && w->lo < w->hi) << k;
        s->holds |= (uint64_t)(w->lo <= lo + shift && w->hi >= hi + shift) << k;
    }
    return true;
}

/* What part `part` of `to` takes from those of `from`. */
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

/* What part `part` of `from` gives to those of `to`. */
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
    if (*known && (*known)->part == part)
        return *known;
    strip_list *list = OLY_ARENA_NEW(&f->arena, strip_list, 1);
    if (!list)
        return NULL;
    list->part = part;
    if (!(f->sending ? give_strips : take_strips)(f, list, d, part))
        return NULL;
    return *known = list;
}

/* -- products of strips ------------------------------------------------------------------------------------------------------ */

/* The parts of a product of strips that are wanted: boxes that do not overlap. */
static int boxes_of(const finder *f, uint64_t meets, uint64_t holds, oly_box *boxes)
{
    const mover *m = f->m;
    oly_box within, parts[MOST_PARTS];
    int n = 0;
    within.rank = m->from->rank;
    for (int d = 0; d < within.rank; d++) {
        within.lo[d] = f->at[d]->lo;
        within.hi[d] = f->at[d]->hi;
    }
    boxes[0] = within;
    if (holds)
        return 1;
    for (; meets; meets &= meets - 1, n++) {
        int k = __builtin_ctzll(meets);
        parts[n].rank = within.rank;
        for (int d = 0; d < within.rank; d++) {
            const strip *s = f->at[d];
            int64_t lo = s->line->wanted[k].lo - s->shift, hi = s->line->wanted[k].hi - s->shift;
            parts[n].lo[d] = lo > s->lo ? lo : s->lo;
            parts[n].hi[d] = hi < s->hi ? hi : s->hi;
        }
    }
    if (n > 1)
        return oly_wanted_boxes(n, parts, &within, boxes);
    boxes[0] = parts[0];
    return n;
}

/* Each device in f->list's last dimension has been chosen: what it and the other one, at `position`, share. */
static oly_status found(finder *f, uint64_t meets, uint64_t holds, int position)
{
    mover *m = f->m;
    oly_mesh mesh = m->from->mesh;
    int me = oly_mesh_my_process(), process, part[OLY_MAX_RANK], n;
    int64_t shift[OLY_MAX_RANK];
    bool shifted = false;
    oly_box boxes[OLY_MOST_WANTED];
    m->p->plan->looked_at++;
    if (f->sending && oly_process_at(mesh, position) == me)
        return OLY_OK;
    for (int d = 0; d < m->from->rank; d++) {
        part[d] = f->at[d]->part;
        shift[d] = f->at[d]->shift;
        shifted = shifted || shift[d] != 0;
    }
    if (f->sending) {
        process = oly_process_at(mesh, position);
        if (f->replicas) {
            for (int d = 0; d < m->from->rank; d++)
                part[d] = f->list[d]->part;
            if (oly_owner_of(m, part, position, process) != f->here)
                return OLY_OK;
        }
    } else {
        if (f->replicas)
            position = oly_owner_of(m, part, f->here, me);
        process = oly_process_at(mesh, position);
        if (process == me && (m->remotes_only || (m->in_place && position == f->here && !shifted)))
            return OLY_OK; /* its own part is in place */
    }
    n = boxes_of(f, meets, holds, boxes);
    for (int k = 0; k < n; k++) {
        remote *r = process == me ? oly_remote_new(&f->copies, &f->n_copies, &f->copy_capacity)
                                  : oly_remote_new(&m->remotes, &m->n_remote, &m->remote_capacity);
        OLY_PLAN_CHECK(r);
        r->peer = process;
        r->receiver = f->sending ? position : f->here;
        r->source = f->sending ? f->here : position;
        r->device = f->device;
        r->sending = f->sending;
        r->box = boxes[k];
        memcpy(r->shift, shift, sizeof *shift * (size_t)m->from->rank);
    }
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

/* The device at a position, which is mostly as far from another one as the positions are. */
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
    OLY_TRY(oly_room_for_copies(m, f->n_copies));
    for (int k = 0; k < f->n_copies; k++) {
        const remote *r = &f->copies[k];
        oly_box holds = m->target[r->device];
        for (int d = 0; d < holds.rank; d++) { /* to where the elements are */
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
    OLY_PLAN_CHECK(f->position && f->line && f->taken ? f->given : NULL);
    for (int d = 0; d < n; d++)
        f->position[d] = oly_position_in(m->p, mesh, d);
    for (int d = 0; d < n; d++) {
        if (f->position[d] < 0)
            continue;
        OLY_TRY(find_for(f, d, false));
        if (mesh->process < 0) /* else there is nobody to send to */
            OLY_TRY(find_for(f, d, true));
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
    bool near = !m->permutation && !m->from->mesh->everywhere && m->wanted.n <= MOST_PARTS && same_axes(m, m->to);
    for (int k = 0; k < m->wanted.n && near; k++)
        near = same_axes(m, &m->wanted.part[k]);
    return near;
}

oly_status oly_find_neighbours(mover *m)
{
    finder f = {.m = m};
    oly_status st = find_all(&f);
    oly_arena_free(&f.arena);
    oly_release(f.copies);
    return st;
}
