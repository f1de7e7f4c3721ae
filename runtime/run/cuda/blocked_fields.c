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
#include "cuda/field_text.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include <stdlib.h>
#include <string.h>

/* MOST_CODE: instructions in a kernel's text. MOST_BYTES: of scratch memory, less than what launcher.c keeps between steps. */
enum {
    SHARED_BYTES = 48 << 10,
    MOST_STEPS = 24,
    MOST_LOADS = 1536,
    MOST_CODE = 1200,
    MOST_TAPS = 48,
    MOST_BYTES = 24 << 20
};
enum { LARGEST = 1 << 30 }; /* coordinates and offsets */

/* -- the body of the loop --------------------------------------------------------------------------------------------------------------- */

typedef struct body {
    const oly_tiling_form *form;
    int shift; /* from dimensions of the grid to slab, row, column */
    oly_field_body of;
    oly_field_stage stages[OLY_FIELD_STAGES];
    oly_tiling_ref reads[OLY_FIELD_STAGES][OLY_FIELD_READS];
    int n_pieces, n_loads, n_taps, n_code;
    oly_field_piece pieces[OLY_FIELD_PIECES];
    const oly_tiling_piece *boxes[OLY_FIELD_PIECES];
    oly_field_load loads[MOST_LOADS];
    oly_cuda_taps taps[MOST_TAPS];
} body;

oly_tile_program oly_cuda_taps_program(const oly_tiling_piece *piece, oly_dtype dtype, oly_cuda_taps *t)
{
    enum { COEFFICIENT = OLY_STENCIL_TAPS, SUM };
    memset(t, 0, sizeof *t);
    t->dtype = (uint8_t)dtype;
    for (int k = 0; k < piece->n_taps; k++) {
        oly_tile_instruction *by = &t->code[2 * k], *sum = by + 1;
        by->op = OLY_TILE_splat;
        by->in[0] = by->in[1] = by->in[2] = -1;
        by->out = COEFFICIENT;
        if (dtype == OLY_FLOAT32)
            by->value.f32 = (float)piece->coefficient[k];
        else
            by->value.f = piece->coefficient[k];
        sum->op = k == 0 ? OLY_TILE_mul : OLY_TILE_fma;
        sum->in[0] = COEFFICIENT;
        sum->in[1] = (int16_t)k;
        sum->in[2] = k == 0 ? -1 : t->to;
        sum->out = t->to = (int16_t)(SUM + (k & 1));
        by->dtype = by->to = sum->dtype = sum->to = t->dtype;
        t->from[k] = (int16_t)k;
        t->dtypes[k] = t->dtype;
    }
    return (oly_tile_program){.n_instructions = 2 * piece->n_taps,
                              .instructions = t->code,
                              .n_loads = piece->n_taps,
                              .n_stores = 1,
                              .load_register = t->from,
                              .load_dtype = t->dtypes,
                              .store_register = &t->to,
                              .store_dtype = &t->dtype,
                              .n_registers = SUM + 2};
}

/* The number of the value among those that the stage reads; -1: too many. */
static int read_number(body *b, int stage, oly_tiling_ref of)
{
    oly_field_stage *s = &b->stages[stage];
    for (int k = 0; k < s->n_reads; k++)
        if (b->reads[stage][k].kind == of.kind && b->reads[stage][k].index == of.index)
            return k;
    if (s->n_reads == OLY_FIELD_READS)
        return -1;
    s->fixed[s->n_reads] = of.kind == OLY_TILING_FIXED;
    b->reads[stage][s->n_reads] = of;
    return s->n_reads++;
}

static bool add_load(body *b, int stage, const oly_tiling_load *from, int dtype)
{
    if (b->n_loads == MOST_LOADS)
        return false;
    oly_field_load *load = &b->loads[b->n_loads++];
    memset(load, 0, sizeof *load);
    for (int d = 0; d < b->form->rank; d++) {
        if (llabs(from->shift[d]) > LARGEST)
            return false;
        load->shift[b->shift + d] = (int32_t)from->shift[d];
    }
    load->read = from->of.kind == OLY_TILING_COUNTER ? -1 : read_number(b, stage, from->of);
    return load->read >= 0 || (from->of.kind == OLY_TILING_COUNTER && dtype == OLY_INT32);
}

static bool add_piece(body *b, int stage, const oly_tiling_piece *piece)
{
    oly_field_piece *to = &b->pieces[b->n_pieces];
    bool machine = piece->machine.n_instructions > 0, taps = piece->n_taps && !machine;
    if (b->n_pieces == OLY_FIELD_PIECES || (taps && b->n_taps == MOST_TAPS))
        return false;
    b->boxes[b->n_pieces++] = piece;
    to->loads = &b->loads[b->n_loads];
    if (taps)
        to->program = oly_cuda_taps_program(piece, b->form->stages[stage].node->type.dtype, &b->taps[b->n_taps++]);
    else
        to->program = machine ? piece->machine : piece->program;
    for (int k = 0; k < to->program.n_loads; k++)
        if (!add_load(b, stage, machine ? &piece->machine_loads[k] : &piece->loads[taps ? piece->tap[k] : k],
                      to->program.load_dtype[k]))
            return false;
    b->n_code += to->program.n_instructions;
    return b->n_code <= MOST_CODE;
}

static bool fits_stage(body *b, int stage)
{
    const oly_tiling_stage *from = &b->form->stages[stage];
    oly_field_stage *s = &b->stages[stage];
    s->computed = !from->inlined;
    s->first = b->shift;
    s->pieces = &b->pieces[b->n_pieces];
    for (int d = 0; d < 3; d++)
        s->whole[d] = 1;
    for (int d = 0; d < b->form->rank; d++) {
        s->align[b->shift + d] = (int32_t)from->align[d];
        s->whole[b->shift + d] = (int32_t)from->node->type.shape[d];
    }
    for (int k = 0; k < from->n_pieces && s->computed; k++, s->n_pieces++)
        if (!add_piece(b, stage, &from->pieces[k]))
            return false;
    return true;
}

/* What a kernel can be made of. */
static bool make_body(body *b, const oly_tiling_form *form)
{
    b->form = form;
    b->shift = 3 - form->rank;
    b->of = (oly_field_body){form->n_stages, b->stages};
    if (form->rank < 1 || form->rank > 3 || form->n_stages > OLY_FIELD_STAGES ||
        2 * form->n_fields + form->n_fixed > OLY_FIELD_GLOBALS)
        return false;
    for (int d = 0; d < form->rank; d++)
        if (form->shape[d] > LARGEST / 2)
            return false;
    for (int k = 0; k < form->n_stages; k++)
        if (!fits_stage(b, k))
            return false;
    return true;
}

/* -- some steps ------------------------------------------------------------------------------------------------------------------------- */

typedef struct extent {
    bool any;
    int lo[3], hi[3];
} extent;

/* Values: globals j are the fields before, n_fields + f fixed ones, n_fields + n_fixed + j the fields after. */
typedef struct unrolled {
    int n_instances, n_buffers;
    oly_field_instance instance[OLY_FIELD_INSTANCES];
    extent need[OLY_FIELD_INSTANCES];
    extent field[OLY_FIELD_GLOBALS]; /* what is read of the fields before, around what is written */
    int end[OLY_FIELD_GLOBALS];      /* what the fields are after the steps: field j before them, or ~instance */
    int from[3], to[3];              /* of all that is in buffers */
} unrolled;

static void widen(extent *e, const extent *at, const int32_t *shift)
{
    for (int d = 0; d < 3; d++) {
        int lo = at->lo[d] + (shift ? shift[d] : 0), hi = at->hi[d] + (shift ? shift[d] : 0);
        e->lo[d] = !e->any || lo < e->lo[d] ? lo : e->lo[d];
        e->hi[d] = !e->any || hi > e->hi[d] ? hi : e->hi[d];
    }
    e->any = true;
}

static void list_instances(const body *b, int steps, unrolled *u)
{
    const oly_tiling_form *form = b->form;
    int now[OLY_FIELD_GLOBALS], next[OLY_FIELD_GLOBALS];
    for (int j = 0; j < form->n_fields; j++)
        now[j] = j;
    for (int s = 0; s < steps; s++) {
        int first = u->n_instances;
        for (int k = 0; k < form->n_stages; k++) {
            oly_field_instance *i = &u->instance[u->n_instances++];
            *i = (oly_field_instance){.stage = k, .step = s, .buffer = -1, .target = -1};
            for (int r = 0; r < b->stages[k].n_reads; r++) {
                oly_tiling_ref of = b->reads[k][r];
                i->read[r] = of.kind == OLY_TILING_FIELD   ? now[of.index]
                             : of.kind == OLY_TILING_STAGE ? ~(first + of.index)
                                                           : form->n_fields + of.index;
            }
        }
        for (int j = 0; j < form->n_fields; j++)
            next[j] = form->out[j].kind == OLY_TILING_FIELD ? now[form->out[j].index] : ~(first + form->out[j].index);
        memcpy(now, next, sizeof now);
    }
    memcpy(u->end, now, sizeof now);
}

/* Backwards from the fields after the steps, which are written where `wanted` says. False: two of them are one value. */
static bool find_needs(const body *b, const bool *wanted, unrolled *u)
{
    static const extent here = {.any = true};
    int n_fields = b->form->n_fields;
    for (int j = 0; j < n_fields; j++) {
        if (u->end[j] >= 0 || !wanted[j])
            continue;
        oly_field_instance *i = &u->instance[~u->end[j]];
        if (i->target >= 0)
            return false;
        i->target = n_fields + b->form->n_fixed + j;
        widen(&u->need[~u->end[j]], &here, NULL);
    }
    for (int k = u->n_instances - 1; k >= 0; k--) {
        const oly_field_instance *i = &u->instance[k];
        const oly_field_stage *s = &b->stages[i->stage];
        for (int p = 0; p < s->n_pieces && u->need[k].any; p++)
            for (int l = 0; l < s->pieces[p].program.n_loads; l++) {
                const oly_field_load *load = &s->pieces[p].loads[l];
                int of = load->read < 0 ? n_fields : i->read[load->read];
                if (of < n_fields)
                    widen(of < 0 ? &u->need[~of] : &u->field[of], &u->need[k], load->shift);
            }
    }
    return true;
}

static void give_buffers(const body *b, unrolled *u)
{
    int last[OLY_FIELD_INSTANCES], holder[OLY_FIELD_INSTANCES];
    extent all = {.any = false};
    for (int k = 0; k < u->n_instances; k++)
        last[k] = -1;
    for (int k = 0; k < u->n_instances; k++)
        for (int r = 0; r < b->stages[u->instance[k].stage].n_reads && u->need[k].any; r++)
            if (u->instance[k].read[r] < 0)
                last[~u->instance[k].read[r]] = k;
    for (int k = 0; k < u->n_instances; k++) {
        if (!u->need[k].any || last[k] < 0)
            continue;
        int free = 0;
        while (free < u->n_buffers && last[holder[free]] >= k)
            free++;
        u->n_buffers += free == u->n_buffers;
        holder[free] = k;
        u->instance[k].buffer = free;
        widen(&all, &u->need[k], NULL);
    }
    memcpy(u->from, all.lo, sizeof u->from);
    memcpy(u->to, all.hi, sizeof u->to);
}

/* Leaves out what nobody needs: numbers of instances change. */
static void drop_unneeded(const body *b, unrolled *u)
{
    int number[OLY_FIELD_INSTANCES], n = 0;
    for (int k = 0; k < u->n_instances; k++) {
        number[k] = n;
        if (!u->need[k].any)
            continue;
        oly_field_instance i = u->instance[k];
        for (int r = 0; r < b->stages[i.stage].n_reads; r++)
            i.read[r] = i.read[r] < 0 ? ~number[~i.read[r]] : i.read[r];
        for (int d = 0; d < 3; d++) {
            i.lo[d] = u->need[k].lo[d];
            i.hi[d] = u->need[k].hi[d];
        }
        u->instance[n++] = i;
    }
    u->n_instances = n;
}

/* False: it cannot be done so. */
static bool unroll(const body *b, int steps, const bool *wanted, unrolled *u)
{
    memset(u, 0, sizeof *u);
    if (steps * b->form->n_stages > OLY_FIELD_INSTANCES)
        return false;
    list_instances(b, steps, u);
    if (!find_needs(b, wanted, u))
        return false;
    give_buffers(b, u);
    return true;
}

/* -- tiles ------------------------------------------------------------------------------------------------------------------------------- */

static int element_bytes(const oly_tiling_form *form)
{
    size_t most = 1;
    for (int k = 0; k < form->n_stages; k++)
        most = oly_dtype_size(form->stages[k].node->type.dtype) > most
                   ? oly_dtype_size(form->stages[k].node->type.dtype)
                   : most;
    return (int)most;
}

/* The extents of a window of so many points, as launch_stencil.c's. */
static void window_of(int rank, int points, int window[3])
{
    window[0] = rank == 3 ? points / 512 : 1;
    window[2] = rank == 1 ? points : rank == 2 ? (points >= 6144 ? 96 : 64) : 32;
    window[1] = rank == 1 ? 1 : rank == 2 ? points / window[2] : 16;
}

/* The tile of these steps, and the extents of buffers; false: there is none, the window would be all margin. */
static bool tile_of(const body *b, const unrolled *u, int tile[3], int window[3])
{
    int points = SHARED_BYTES / 4 / 2;
    if (u->n_buffers)
        points = (SHARED_BYTES / u->n_buffers - 16) / element_bytes(b->form);
    window_of(b->form->rank, points, window);
    for (int d = 0; d < 3; d++) {
        tile[d] = window[d] - (u->to[d] - u->from[d]);
        if (tile[d] < 1)
            return false;
    }
    return true;
}

/* Of a point and step: memory read and written, and instructions (a twentieth of the time of an element of memory). Not measured. */
static double cost_of(const body *b, const unrolled *u, int steps, const int tile[3])
{
    double moved = 0, computed = 0, points = (double)tile[0] * tile[1] * tile[2];
    for (int j = 0; j < b->form->n_fields; j++) {
        double read = u->field[j].any;
        for (int d = 0; d < 3; d++)
            read *= tile[d] + u->field[j].hi[d] - u->field[j].lo[d];
        moved += read + points;
    }
    for (int k = 0; k < u->n_instances; k++) {
        double work = u->need[k].any ? b->stages[u->instance[k].stage].pieces[0].program.n_instructions : 0;
        for (int d = 0; d < 3; d++)
            work *= tile[d] + u->need[k].hi[d] - u->need[k].lo[d];
        computed += work;
    }
    return (moved + 0.05 * computed) / points / steps;
}

/* Steps of a launch, of a pass of `steps`; 0: none can be computed so. */
static int best_steps(const body *b, int steps, unrolled *u)
{
    bool all[OLY_FIELD_GLOBALS];
    int best = 0, tile[3], window[3];
    double least = 0;
    for (int j = 0; j < OLY_FIELD_GLOBALS; j++)
        all[j] = true;
    for (int n = 1; n <= steps && n <= MOST_STEPS && unroll(b, n, all, u) && tile_of(b, u, tile, window); n++) {
        double cost = cost_of(b, u, n, tile);
        if (!best || cost < least) {
            best = n;
            least = cost;
        }
    }
    return best;
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
    int n_groups;
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
        if (llabs(b->lo[d]) > LARGEST || llabs(b->hi[d]) > LARGEST || stride > LARGEST)
            return false;
        to->place.origin[e] = to->place.lo[e] = (int32_t)b->lo[d];
        to->place.hi[e] = (int32_t)b->hi[d];
        to->place.stride[e] = (int32_t)stride;
        stride *= b->hi[d] - b->lo[d];
    }
    return stride <= LARGEST;
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
            if (llabs(p->stride[d]) > LARGEST || llabs(p->origin[d]) > LARGEST ||
                llabs(p->stride[d]) * w->body.form->shape[d] > LARGEST)
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
        each = best_steps(&w->body, steps, &w->unrolled);
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
                widen(&now->region, &after->field[j], NULL);
        }
        if (!unroll(&w->body, now->steps, wanted, &w->unrolled))
            return false;
        for (int j = 0; j < n_fields; j++) {
            if (w->unrolled.field[j].any)
                widen(&now->field[j], &w->unrolled.field[j], now->region.any ? now->region.lo : NULL);
            if (w->unrolled.field[j].any && now->region.any)
                widen(&now->field[j], &w->unrolled.field[j], now->region.hi);
        }
        for (int j = 0; j < n_fields && after; j++) /* fields that the launch does not change are read by later ones */
            if (w->unrolled.end[j] >= 0 && after->field[j].any)
                widen(&now->field[w->unrolled.end[j]], &after->field[j], NULL);
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

static void set_schedule(work *w, const group *g, const oly_box *region)
{
    oly_field_schedule *s = &w->schedule;
    const unrolled *u = &w->unrolled;
    int window[3];
    memset(s, 0, sizeof *s);
    tile_of(&w->body, u, s->tile, window);
    s->n_instances = u->n_instances;
    s->n_buffers = u->n_buffers;
    s->pitch[2] = 1;
    s->pitch[1] = window[2];
    s->pitch[0] = window[1] * window[2];
    s->buffer_bytes = (s->pitch[0] * window[0] * element_bytes(w->body.form) + 15) / 16 * 16;
    memcpy(s->from, u->from, sizeof s->from);
    s->hi[0] = s->hi[1] = 1;
    for (int d = 0; d < w->body.form->rank; d++) {
        s->lo[w->body.shift + d] = (int32_t)region->lo[d];
        s->hi[w->body.shift + d] = (int32_t)region->hi[d];
        s->period[w->body.shift + d] = w->body.form->wraps[d] ? (int32_t)w->body.form->shape[d] : 0;
    }
    for (int d = 0; d < 3; d++) {
        s->tile[d] = s->tile[d] < s->hi[d] - s->lo[d] ? s->tile[d] : s->hi[d] - s->lo[d];
        s->tiles[d] = (s->hi[d] - s->lo[d] + s->tile[d] - 1) / s->tile[d];
    }
    for (int k = 0; k < w->body.n_pieces; k++)
        for (int d = 0; d < 3; d++) {
            bool there = d >= w->body.shift;
            s->piece[k][d] = there ? (int32_t)w->body.boxes[k]->lo[d - w->body.shift] : 0;
            s->piece[k][3 + d] = there ? (int32_t)w->body.boxes[k]->hi[d - w->body.shift] : 1;
        }
    memcpy(s->instance, u->instance, sizeof *s->instance * (size_t)u->n_instances);
    (void)g;
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
    if (!*done || !(*done = unroll(&w->body, now->steps, wanted, &w->unrolled)))
        return OLY_OK;
    drop_unneeded(&w->body, &w->unrolled);
    *done = locate_after(w, g, &region, after, slot);
    if (!*done)
        return OLY_OK;
    set_schedule(w, now, &region);
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
        OLY_TRY(oly_cuda_fields(w->l, &w->body.of, &w->schedule, bases, 2 * n + form->n_fixed,
                                w->tile->sweep->counter + now->first, done));
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
    return w->n_groups == 1 ? 0 : (points * (size_t)element_bytes(w->body.form) + 255) / 256 * 256;
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
    *can = *done = false;
    if (!l->generated || !oly_enabled(OLY_OPTIMISATION_BLOCKED_PASSES) ||
        !oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS))
        return OLY_OK;
    work *w = oly_calloc(1, sizeof *w);
    if (!w)
        return oly_out_of_memory(sizeof *w, "the launches of a loop");
    w->l = l;
    w->tile = t;
    *can = make_body(&w->body, &t->sweep->tiling->form) && locate_fixed(w) && plan_groups(w);
    if (*can)
        st = launch_parts(w, box, done);
    oly_release(w);
    return st;
}
