/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over fields in blocks. See blocked_fields.h.
 *
 * The steps of a pass are divided among launches of one generated kernel (kernels/cuda/field_text.h), each of as many as suits the shared memory of a
 * block. A launch computes tiles; every tile computes the stages of its steps on the elements that later ones of it need:
 *
 *      fields before --> | stages of n steps, in shared memory | --> scratch --> | ... | --> fields after the pass
 *
 * What is between launches is in scratch memory, with the margins that the later ones need; where that would be too large, a device's
 * part is divided. No value depends on any of these divisions. */
#include "run/cuda/blocked_fields.h"
#include "cuda/field_strips.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "run/cuda/blocked_plan.h"
#include <stdlib.h>
#include <string.h>

/* Of scratch memory: less than what launcher.c keeps between steps. */
enum { MOST_BYTES = 24 << 20 };

typedef oly_blocked_body body;
typedef oly_blocked_extent extent;
typedef oly_blocked_steps unrolled;

static int up(int n, int by)
{
    return (n + by - 1) / by;
}

/* -- launches ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct located {
    char *base;
    oly_field_place place;
} located;

typedef struct group {
    int steps, first;                        /* number of its first step in the pass */
    extent field[OLY_FIELD_GLOBALS], region; /* what it reads of the fields, and where it computes, around the part */
} group;

typedef struct work {
    body body;
    unrolled unrolled;
    oly_field_schedule schedule;
    int n_groups, window[3]; /* of buffers */
    group group[64];
    const oly_cuda_launcher *l;
    const oly_field_tile *tile;
    oly_part_box box;
    located now[OLY_FIELD_GLOBALS], fixed[OLY_FIELD_GLOBALS]; /* the fields before a launch */
    int slot[OLY_FIELD_GLOBALS];                              /* in scratch memory that now[j] is in; -1: none */
    char *scratch;
    size_t slot_bytes;
} work;

/* False: too far away for 32-bit offsets. */
static bool locate(const work *w, void *base, const oly_box *b, located *to)
{
    int64_t stride = 1;
    memset(to, 0, sizeof *to);
    to->base = base;
    to->place.hi[0] = to->place.hi[1] = 1;
    for (int d = b->rank - 1; d >= 0; d--) {
        int e = w->body.shift + d;
        if (llabs(b->lo[d]) > OLY_BLOCKED_LARGEST || llabs(b->hi[d]) > OLY_BLOCKED_LARGEST ||
            stride > OLY_BLOCKED_LARGEST)
            return false;
        to->place.origin[e] = to->place.lo[e] = (int32_t)b->lo[d];
        to->place.hi[e] = (int32_t)b->hi[d];
        to->place.stride[e] = (int32_t)stride;
        stride *= b->hi[d] - b->lo[d];
    }
    return stride <= OLY_BLOCKED_LARGEST;
}

static void *slot_at(const work *w, int slot)
{
    return slot < 0 ? NULL : w->tile->base[oly_cell(w->tile->sweep->passes.run->plan, w->tile->number, slot)];
}

static bool locate_fixed(work *w)
{
    for (int k = 0; k < w->body.form->n_fixed; k++) {
        const oly_tiling_place *p = &w->tile->device->fixed[k];
        memset(&w->fixed[k], 0, sizeof w->fixed[k]);
        w->fixed[k].base = p->base < 0 ? NULL : (char *)w->tile->base[p->base] + p->offset;
        for (int d = 0; d < w->body.form->rank; d++) {
            if (llabs(p->stride[d]) > OLY_BLOCKED_LARGEST || llabs(p->origin[d]) > OLY_BLOCKED_LARGEST ||
                llabs(p->stride[d]) * w->body.form->shape[d] > OLY_BLOCKED_LARGEST)
                return false;
            w->fixed[k].place.origin[w->body.shift + d] = (int32_t)p->origin[d];
            w->fixed[k].place.stride[w->body.shift + d] = (int32_t)p->stride[d];
        }
    }
    return true;
}

static bool locate_before(work *w)
{
    const oly_field_sweep *s = w->tile->sweep;
    for (int j = 0; j < w->body.form->n_fields; j++) {
        w->slot[j] = -1;
        if (!locate(w, slot_at(w, s->from[j]), &w->tile->device->field[j], &w->now[j]))
            return false;
    }
    return true;
}

/* The steps of each launch, and what it reads around the part: backwards from the last. False: it cannot be done so. */
static bool plan_groups(work *w)
{
    int n_fields = w->body.form->n_fields, steps = w->tile->sweep->pass->steps,
        each = oly_blocked_best_steps(&w->body, steps, &w->unrolled, w->window);
    bool wanted[OLY_FIELD_GLOBALS];
    if (!each)
        return false;
    w->n_groups = (steps + each - 1) / each;
    if (w->n_groups > (int)(sizeof w->group / sizeof *w->group))
        return false;
    for (int g = 0, first = 0; g < w->n_groups; g++) {
        memset(&w->group[g], 0, sizeof w->group[g]);
        w->group[g].steps = steps / w->n_groups + (g < steps % w->n_groups);
        w->group[g].first = first;
        first += w->group[g].steps;
    }
    for (int g = w->n_groups - 1; g >= 0; g--) {
        group *now = &w->group[g], *after = g + 1 < w->n_groups ? now + 1 : NULL;
        for (int j = 0; j < n_fields; j++) {
            wanted[j] = !after || after->field[j].any;
            if (after && after->field[j].any)
                oly_blocked_widen(&now->region, &after->field[j], NULL);
        }
        if (!oly_blocked_unroll(&w->body, now->steps, wanted, &w->unrolled))
            return false;
        for (int j = 0; j < n_fields; j++) {
            if (w->unrolled.field[j].any)
                oly_blocked_widen(&now->field[j], &w->unrolled.field[j], now->region.any ? now->region.lo : NULL);
            if (w->unrolled.field[j].any && now->region.any)
                oly_blocked_widen(&now->field[j], &w->unrolled.field[j], now->region.hi);
        }
        for (int j = 0; j < n_fields && after; j++) /* fields that the launch does not change are read by later ones */
            if (w->unrolled.end[j] >= 0 && after->field[j].any)
                oly_blocked_widen(&now->field[w->unrolled.end[j]], &after->field[j], NULL);
    }
    return true;
}

static int free_slot(const work *w, const int *taken, int n_taken)
{
    for (int slot = 0;; slot++) {
        bool used = false;
        for (int j = 0; j < w->body.form->n_fields; j++)
            used = used || w->slot[j] == slot;
        for (int k = 0; k < n_taken; k++)
            used = used || taken[k] == slot;
        if (!used)
            return slot;
    }
}

/* The part extended by what the launch computes, in the grid. */
static bool region_of(const work *w, const group *g, oly_box *region)
{
    const oly_tiling_form *form = w->body.form;
    *region = (oly_box){.rank = form->rank};
    for (int d = 0; d < form->rank; d++) {
        int e = w->body.shift + d;
        region->lo[d] = w->box.lo[d] + g->region.lo[e];
        region->hi[d] = w->box.hi[d] + g->region.hi[e];
        if (!form->wraps[d]) {
            region->lo[d] = oly_larger(region->lo[d], 0);
            region->hi[d] = oly_smaller(region->hi[d], form->shape[d]);
        }
        if (region->lo[d] >= region->hi[d])
            return false;
    }
    return true;
}

/* False: more shared memory would be needed than for the steps that were planned. */
static bool set_schedule(work *w, const oly_box *region)
{
    oly_field_schedule *s = &w->schedule;
    const unrolled *u = &w->unrolled;
    const int *window = w->window;
    memset(s, 0, sizeof *s);
    if (!oly_blocked_tile(&w->body, u, window, s->tile))
        return false;
    s->n_instances = u->n_instances;
    s->n_buffers = u->n_buffers;
    s->pitch[2] = 1;
    s->pitch[1] = window[2];
    s->pitch[0] = window[1] * window[2];
    s->buffer_bytes = (s->pitch[0] * window[0] * oly_blocked_element_bytes(&w->body) + 15) / 16 * 16;
    memcpy(s->from, u->from, sizeof s->from);
    s->hi[0] = s->hi[1] = 1;
    for (int d = 0; d < w->body.form->rank; d++) {
        s->lo[w->body.shift + d] = (int32_t)region->lo[d];
        s->hi[w->body.shift + d] = (int32_t)region->hi[d];
        s->period[w->body.shift + d] = w->body.form->wraps[d] ? (int32_t)w->body.form->shape[d] : 0;
    }
    for (int d = 0; d < 3; d++) {
        s->tiles[d] = up(s->hi[d] - s->lo[d], s->tile[d]);
        s->tile[d] = up(s->hi[d] - s->lo[d], s->tiles[d]); /* all of about the same size */
    }
    for (int c = 0, first = w->body.n_pieces - w->body.n_copies; c < w->body.n_copies; c++) {
        const oly_field_place *p = &w->now[w->body.copy[c]].place;
        memcpy(s->piece[first + c], p->lo, sizeof p->lo);
        memcpy(s->piece[first + c] + 3, p->hi, sizeof p->hi);
    }
    for (int k = 0; k < w->body.n_pieces - w->body.n_copies; k++)
        for (int d = 0; d < 3; d++) {
            bool there = d >= w->body.shift;
            s->piece[k][d] = there ? (int32_t)w->body.boxes[k]->lo[d - w->body.shift] : 0;
            s->piece[k][3 + d] = there ? (int32_t)w->body.boxes[k]->hi[d - w->body.shift] : 1;
        }
    memcpy(s->instance, u->instance, sizeof *s->instance * (size_t)u->n_instances);
    return true;
}

/* Where the fields after a launch are: results, or scratch memory. */
static bool locate_after(const work *w, int g, const oly_box *region, located *after, int *slot)
{
    const oly_field_tile *t = w->tile;
    for (int j = 0; j < w->body.form->n_fields; j++) {
        bool last = g == w->n_groups - 1;
        slot[j] = -1;
        if (w->unrolled.end[j] >= 0 && !last) {
            after[j] = w->now[w->unrolled.end[j]];
            slot[j] = w->slot[w->unrolled.end[j]];
            continue;
        }
        if (!last)
            slot[j] = free_slot(w, slot, j);
        if (!locate(w, last ? slot_at(w, t->sweep->to[j]) : w->scratch + (size_t)slot[j] * w->slot_bytes,
                    !last                   ? region
                    : t->sweep->passes.last ? &t->device->own[j]
                                            : &t->device->field[j],
                    &after[j]))
            return false;
    }
    return true;
}

/* By the kernel for strips, where it can be made: the other is for long bodies. */
static oly_status launch_schedule(const work *w, char *const *bases, int64_t counter, bool *launched)
{
    int n_bases = 2 * w->body.form->n_fields + w->body.form->n_fixed;
    bool can = false;
    if (oly_enabled(OLY_OPTIMISATION_FIELD_STRIPS))
        OLY_TRY(oly_cuda_field_strips(w->l, &w->body.of, &w->schedule, w->body.sharing, bases, n_bases, counter, &can,
                                      launched));
    return can ? OLY_OK : oly_cuda_fields(w->l, &w->body.of, &w->schedule, bases, n_bases, counter, launched);
}

static oly_status launch_group(work *w, int g, bool *done)
{
    group *now = &w->group[g], *next = g + 1 < w->n_groups ? now + 1 : NULL;
    const oly_tiling_form *form = w->body.form;
    located after[OLY_FIELD_GLOBALS];
    int slot[OLY_FIELD_GLOBALS], n = form->n_fields;
    bool wanted[OLY_FIELD_GLOBALS];
    char *bases[OLY_FIELD_GLOBALS];
    oly_box region;
    *done = region_of(w, now, &region);
    for (int j = 0; j < n; j++)
        wanted[j] = !next || next->field[j].any;
    if (!*done || !(*done = oly_blocked_unroll(&w->body, now->steps, wanted, &w->unrolled)))
        return OLY_OK;
    oly_blocked_drop_unneeded(&w->body, &w->unrolled);
    *done = locate_after(w, g, &region, after, slot);
    if (!*done || !(*done = set_schedule(w, &region)))
        return OLY_OK;
    for (int j = 0; j < n; j++) {
        w->schedule.global[j] = w->now[j].place;
        bases[j] = w->now[j].base;
        w->schedule.global[n + form->n_fixed + j] = after[j].place;
        bases[n + form->n_fixed + j] = after[j].base;
    }
    for (int k = 0; k < form->n_fixed; k++) {
        w->schedule.global[n + k] = w->fixed[k].place;
        bases[n + k] = w->fixed[k].base;
    }
    if (w->unrolled.n_instances)
        OLY_TRY(launch_schedule(w, bases, w->tile->sweep->counter + now->first, done));
    if (next) {
        memcpy(w->now, after, sizeof *after * (size_t)n);
        memcpy(w->slot, slot, sizeof *slot * (size_t)n);
    }
    return OLY_OK;
}

/* Results that the last launch does not change. */
static oly_status copy_unchanged(const work *w)
{
    const oly_tiling_form *form = w->body.form;
    const oly_field_tile *t = w->tile;
    for (int j = 0; j < form->n_fields; j++) {
        oly_copy_task task = {.element_bytes = oly_dtype_size(form->field[j]->type.dtype), .rank = form->rank};
        located to;
        bool any = w->unrolled.end[j] >= 0;
        if (!any || !locate(w, slot_at(w, t->sweep->to[j]),
                            t->sweep->passes.last ? &t->device->own[j] : &t->device->field[j], &to))
            continue;
        const located *from = &w->now[w->unrolled.end[j]];
        int64_t a = 0, b = 0;
        for (int d = 0; d < form->rank; d++) {
            int e = w->body.shift + d;
            int64_t lo = oly_larger(w->box.lo[d], t->device->own[j].lo[d]),
                    hi = oly_smaller(w->box.hi[d], t->device->own[j].hi[d]);
            any = any && lo < hi;
            task.extent[d] = hi - lo;
            task.from_stride[d] = from->place.stride[e];
            task.to_stride[d] = to.place.stride[e];
            a += (lo - from->place.origin[e]) * from->place.stride[e];
            b += (lo - to.place.origin[e]) * to.place.stride[e];
        }
        if (any)
            OLY_TRY(oly_cuda_copy(w->l, &task, to.base + b * (int64_t)task.element_bytes,
                                  from->base + a * (int64_t)task.element_bytes));
    }
    return OLY_OK;
}

/* Bytes of a field between launches, for a part of these extents. */
static size_t bytes_between(const work *w, const int64_t *extents)
{
    size_t points = 1;
    for (int d = 0; d < w->body.form->rank; d++) {
        int64_t most = 0;
        for (int g = 0; g < w->n_groups - 1; g++) {
            const extent *r = &w->group[g].region;
            most = oly_larger(most, extents[d] + r->hi[w->body.shift + d] - r->lo[w->body.shift + d]);
        }
        points *= (size_t)most;
    }
    return w->n_groups == 1 ? 0 : (points * (size_t)oly_blocked_element_bytes(&w->body) + 255) / 256 * 256;
}

static oly_status launch_part(work *w, bool *done)
{
    *done = locate_before(w);
    for (int g = 0; g < w->n_groups && *done; g++)
        OLY_TRY(launch_group(w, g, done));
    return *done ? copy_unchanged(w) : OLY_OK;
}

static oly_status launch_parts(work *w, const oly_part_box *box, bool *done)
{
    int rank = w->body.form->rank, slots = 2 * w->body.form->n_fields;
    int64_t each[OLY_TILING_RANK];
    void *memory = NULL;
    for (int d = 0; d < rank; d++)
        each[d] = box->hi[d] - box->lo[d];
    for (;;) {
        int longest = 0;
        for (int d = 1; d < rank; d++)
            longest = each[d] > each[longest] ? d : longest;
        w->slot_bytes = bytes_between(w, each);
        if (w->slot_bytes * (size_t)slots <= MOST_BYTES || each[longest] == 1)
            break;
        each[longest] = (each[longest] + 1) / 2;
    }
    if (w->slot_bytes)
        OLY_TRY(w->l->scratch(w->l->context, w->slot_bytes * (size_t)slots, &memory));
    w->scratch = memory;
    memcpy(w->box.lo, box->lo, sizeof w->box.lo);
    *done = true;
    for (int d = 0; d >= 0 && *done;) {
        for (d = 0; d < rank; d++)
            w->box.hi[d] = oly_smaller(w->box.lo[d] + each[d], box->hi[d]);
        OLY_TRY(launch_part(w, done));
        for (d = rank - 1; d >= 0 && (w->box.lo[d] += each[d]) >= box->hi[d]; d--)
            w->box.lo[d] = box->lo[d];
    }
    return OLY_OK;
}

oly_status oly_cuda_launch_blocked(const oly_cuda_launcher *l, const oly_field_tile *t, const oly_part_box *box,
                                   bool *can, bool *done)
{
    oly_status st = OLY_OK;
    int64_t extents[OLY_TILING_RANK];
    *can = *done = false;
    if (!l->generated || !oly_enabled(OLY_OPTIMISATION_BLOCKED_PASSES) ||
        !oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS))
        return OLY_OK;
    work *w = oly_calloc(1, sizeof *w);
    if (!w)
        return oly_out_of_memory(sizeof *w, "the launches of a loop");
    w->l = l;
    w->tile = t;
    for (int d = 0; d < t->sweep->tiling->form.rank; d++)
        extents[d] = box->hi[d] - box->lo[d];
    *can = oly_blocked_make_body(&w->body, l, &t->sweep->tiling->form, extents) && locate_fixed(w) && plan_groups(w);
    if (*can)
        st = launch_parts(w, box, done);
    oly_release(w);
    return st;
}
