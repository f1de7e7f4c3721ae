/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct reads: a transfer that adds margins to a device's block copies the block next to what comes from other devices, so that elementwise
 * steps find both in one place; a padded array is a copy of its operand between margins. Where the block is large, such steps are split: the
 * inner part, which reads nothing of the margins, reads the block where it is, and of the copy only what the rest reads stays. Every element
 * is computed as before, so no bit changes. Called by plan.c after direct_writes.c and before steps are ordered, which may then move inner
 * parts before the wait. */
#include "core/facts.h"
#include "core/optimisation.h"
#include "plan/schedule/schedule.h"
#include "plan/schedule/scheduler.h"
#include <string.h>

enum { MOST_READERS = 4, MOST_WRITERS = 8, MOST_MADE = 1 << 20, MOST_LOOKED = 1 << 26 };
int64_t oly_direct_reads_least = 1 << 18;

/* What a part of a step costs besides its elements, and what each of its rows costs for each load, store and instruction; seconds. */
static const double part_seconds = 2e-6, row_seconds = 3e-9;

/* Copies of blocks into larger ones: a transfer, or a step that copies what a padded or joined array consists of. */
typedef struct margins {
    oly_planner *p;
    oly_block *block;
    int k, from, to;                     /* the step; slots */
    int last_nested;                     /* the last loop or branch of the block; -1: there is none */
    int n_readers, reader[MOST_READERS]; /* elementwise steps */
    int n_copiers, copier[MOST_READERS]; /* steps that copy, or send, parts of the larger blocks */
    int n_writers, writer[MOST_WRITERS]; /* other steps that write margins */
    oly_copy_work *own; /* [n_devices] a copy of all of the device's block that is copied; extent 0: nothing is */
    const oly_copy_work **block_copy; /* [n_devices] not a transfer: the copy that `own` is */
    oly_ranges *inner[MOST_READERS];  /* [n_devices] */
} margins;

/* -- the transfer ------------------------------------------------------------------------------------------------------------ */

/* The coordinates of an offset in memory that is row-major with these strides. */
static void decode(const oly_copy_work *c, const int64_t *stride, int64_t offset, int64_t *at)
{
    int64_t left = offset / (int64_t)c->task.element_bytes;
    for (int d = 0; d < c->task.rank; d++) {
        at[d] = left / stride[d];
        left -= at[d] * stride[d];
    }
}

static void add_offset(const oly_copy_work *c, const int64_t *stride, const int64_t *by, int64_t *offset)
{
    for (int d = 0; d < c->task.rank; d++)
        *offset += by[d] * stride[d] * (int64_t)c->task.element_bytes;
}

/* Makes `all`, which may be nothing yet, the copy of the smallest box that has this part of the block, too. False: it is of another shape. */
static bool extend(oly_copy_work *all, const oly_copy_work *c)
{
    int64_t at[OLY_MAX_RANK], first[OLY_MAX_RANK], from[OLY_MAX_RANK], from_first[OLY_MAX_RANK], back[OLY_MAX_RANK];
    size_t bytes = sizeof *at * (size_t)c->task.rank;
    if (oly_copied_elements(1, c) == 0)
        return true; /* its strides may be 0 */
    if (all->task.rank == 0) {
        *all = *c;
        return c->task.rank > 0;
    }
    if (all->task.rank != c->task.rank || all->task.element_bytes != c->task.element_bytes ||
        all->from.base != c->from.base || memcmp(all->task.to_stride, c->task.to_stride, bytes) != 0 ||
        memcmp(all->task.from_stride, c->task.from_stride, bytes) != 0)
        return false;
    for (int d = 0; d < c->task.rank; d++)
        if (c->task.to_stride[d] == 0 || c->task.from_stride[d] == 0)
            return false; /* one element, such as the value of a padding, written to several */
    decode(c, c->task.to_stride, c->to.offset, at);
    decode(c, c->task.to_stride, all->to.offset, first);
    decode(c, c->task.from_stride, c->from.offset, from);
    decode(c, c->task.from_stride, all->from.offset, from_first);
    for (int d = 0; d < c->task.rank; d++) {
        int64_t before = at[d] - first[d], end = before + c->task.extent[d];
        if (from[d] - from_first[d] != before)
            return false;
        back[d] = before < 0 ? before : 0;
        all->task.extent[d] = (end > all->task.extent[d] ? end : all->task.extent[d]) - back[d];
    }
    add_offset(all, all->task.to_stride, back, &all->to.offset);
    add_offset(all, all->task.from_stride, back, &all->from.offset);
    return true;
}

static bool is_own(const oly_plan *plan, const oly_copy_work *c)
{
    return oly_cell_device(plan, c->from.base) == oly_cell_device(plan, c->to.base);
}

static bool are_large(const margins *m)
{
    bool large = true;
    for (int d = 0; d < m->p->plan->n_devices; d++)
        large = large && (m->own[d].task.rank == 0 ||
                          oly_copied_elements(1, &m->own[d]) * (double)m->own[d].task.element_bytes >=
                              (double)oly_direct_reads_least);
    return large;
}

bool oly_writes_box(const oly_copy_work *c)
{
    int last = c->task.rank - 1;
    for (int d = 0; d <= last; d++)
        if (c->task.extent[d] < 1 || (c->task.extent[d] > 1 && c->task.from_stride[d] == 0) ||
            c->task.to_stride[d] < 1 ||
            (d < last && c->task.to_stride[d] < c->task.to_stride[d + 1] * c->task.extent[d + 1]))
            return false;
    return last >= 0 && c->task.to_stride[last] == 1;
}

/* Are all copies into one slot? Of each device the largest from its own memory, of the same slot on all, is its block. */
static bool finds_operand(margins *m)
{
    const oly_plan *plan = m->p->plan;
    const oly_step *s = &m->block->steps[m->k];
    m->from = m->to = -1;
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        int to = oly_cell_slot(plan, c->to.base), d = oly_cell_device(plan, c->to.base);
        if ((m->to >= 0 && to != m->to) || c->from.base < 0 || oly_cell_slot(plan, c->from.base) == to)
            return false;
        m->to = to;
        if (oly_cell_device(plan, c->from.base) == d && oly_writes_box(c) &&
            (!m->block_copy[d] || oly_copied_elements(1, c) > oly_copied_elements(1, m->block_copy[d])))
            m->block_copy[d] = c;
    }
    for (int d = 0; d < plan->n_devices; d++) {
        int from = m->block_copy[d] ? oly_cell_slot(plan, m->block_copy[d]->from.base) : -1;
        if (from >= 0 && m->from >= 0 && from != m->from)
            return false;
        m->from = from >= 0 ? from : m->from;
        if (m->block_copy[d])
            m->own[d] = *m->block_copy[d];
    }
    return m->from >= 0 && are_large(m);
}

/* Are all copies into one slot, and those of each device from its own memory of the same one, and large? */
static bool finds_blocks(margins *m)
{
    const oly_plan *plan = m->p->plan;
    const oly_step *s = &m->block->steps[m->k];
    m->from = m->to = -1;
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        int to = oly_cell_slot(plan, c->to.base), from = oly_cell_slot(plan, c->from.base);
        if ((m->to >= 0 && to != m->to) || to == from)
            return false;
        m->to = to;
        if (!is_own(plan, c))
            continue;
        if ((m->from >= 0 && from != m->from) || !extend(&m->own[oly_cell_device(plan, c->to.base)], c))
            return false;
        m->from = from;
    }
    return m->from >= 0 && are_large(m);
}

/* Is this copy of the step one of a device's block? */
static bool is_of_block(const margins *m, const oly_copy_work *c)
{
    const oly_plan *plan = m->p->plan;
    return m->block->steps[m->k].transfer ? is_own(plan, c) : c == m->block_copy[oly_cell_device(plan, c->to.base)];
}

static bool only_margins_come(const margins *m)
{
    const oly_plan *plan = m->p->plan;
    const oly_step *s = &m->block->steps[m->k];
    const oly_slot *to = &plan->slots[m->to];
    for (int k = 0; k < s->move.n_arrivals; k++)
        if (oly_cell_slot(plan, s->move.arrivals[k].piece.buffer) != m->to)
            return false;
    return to->kind == OLY_SLOT_SCRATCH && !to->claimed && to->block == m->block &&
           !oly_effect_on(plan, s, m->to).reads && !oly_effect_on(plan, s, m->from).writes;
}

/* -- its readers ------------------------------------------------------------------------------------------------------------- */

static void cut_piece(const margins *m, const oly_step *s, int device, const oly_piece *piece, oly_ranges *inner,
                      bool *known)
{
    if (piece->buffer == oly_cell(m->p->plan, device, m->to))
        *known = *known && oly_cut_readers(s, &s->tile.device[device], piece, inner);
}

/* What a step writes besides blocks. */
static void cut_margins(const margins *m, const oly_step *s, int device, const oly_step *writer, oly_ranges *inner,
                        bool *known)
{
    for (int k = 0; k < writer->move.n_copies; k++) {
        const oly_copy_work *c = &writer->move.copies[k];
        oly_piece piece = {.buffer = c->to.base, .offset = c->to.offset, .rank = c->task.rank};
        memcpy(piece.extent, c->task.extent, sizeof piece.extent);
        memcpy(piece.stride, c->task.to_stride, sizeof piece.stride);
        if (writer != &m->block->steps[m->k] || !is_of_block(m, c))
            cut_piece(m, s, device, &piece, inner, known);
    }
    for (int k = 0; k < writer->move.n_arrivals; k++)
        cut_piece(m, s, device, &writer->move.arrivals[k].piece, inner, known);
}

/* The iterations that read only the device's block. False: unknown, or too few. */
static bool finds_inner(const margins *m, const oly_step *s, oly_ranges *inner)
{
    const oly_plan *plan = m->p->plan;
    double all = 0, early = 0;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tile_work *w = &s->tile.device[d];
        bool known = true;
        if (!w->has_work)
            continue;
        inner[d] = (oly_ranges){.rank = w->box.rank};
        memcpy(inner[d].hi, w->box.extent, sizeof inner[d].hi);
        all += oly_ranges_volume(&inner[d]);
        cut_margins(m, s, d, &m->block->steps[m->k], &inner[d], &known);
        for (int k = 0; k < m->n_writers; k++)
            cut_margins(m, s, d, &m->block->steps[m->writer[k]], &inner[d], &known);
        if (!known || m->own[d].task.rank == 0 || inner[d].rank == 0)
            return false;
        early += oly_ranges_volume(&inner[d]);
    }
    return early > all / 2;
}

/* Only local copies, or a transfer of which every box is known? */
static bool is_known_move(const oly_step *s)
{
    bool known = s->transfer ? !s->exchange || s->move.n_arrivals > 0 : s->boxes && !s->exchange;
    return s->kind == OLY_STEP_MOVE && !s->second && !s->starts && known;
}

/* May step j or one after it use the larger blocks? A loop or a branch may, whatever their last use seems to be (oly_has_blocks). */
static bool may_use(const margins *m, int j)
{
    return j < m->block->n_steps && (j <= m->last_nested || m->block->steps[j].number <= m->p->plan->slots[m->to].last);
}

/* The other steps that write into the larger blocks, before the first that reads them. */
static bool find_writers(margins *m)
{
    const oly_plan *plan = m->p->plan;
    for (int j = 0; may_use(m, j); j++) {
        const oly_step *s = &m->block->steps[j];
        if (j == m->k || s->number < plan->slots[m->to].first)
            continue;
        oly_effect x = oly_effect_on(plan, s, m->to);
        if (x.reads)
            return j > m->k;
        if (!x.writes)
            continue;
        if (!is_known_move(s) || m->n_writers == MOST_WRITERS)
            return false;
        m->writer[m->n_writers++] = j;
    }
    return true;
}

static bool is_writer(const margins *m, int step)
{
    for (int k = 0; k < m->n_writers; k++)
        if (m->writer[k] == step)
            return true;
    return false;
}

/* All steps that read the larger blocks, none of which, nor one before, writes the blocks themselves. */
static oly_status find_readers(margins *m, bool *found)
{
    const oly_plan *plan = m->p->plan;
    *found = false;
    for (int j = m->k + 1; may_use(m, j); j++) {
        const oly_step *s = &m->block->steps[j];
        oly_effect x = oly_effect_on(plan, s, m->to);
        if (is_writer(m, j))
            continue;
        if (x.writes)
            return OLY_OK;
        if (!x.reads)
            continue;
        if (s->kind == OLY_STEP_MOVE && (!s->exchange || s->move.departures) && !s->second && !s->starts &&
            m->n_copiers < MOST_READERS) {
            m->copier[m->n_copiers++] = j;
            continue;
        }
        if (s->kind != OLY_STEP_TILE || s->exchange || m->n_readers == MOST_READERS)
            return OLY_OK;
        m->inner[m->n_readers] = OLY_PLAN_NEW(m->p, oly_ranges, plan->n_devices + 1);
        OLY_PLAN_CHECK(m->inner[m->n_readers]);
        if (!finds_inner(m, s, m->inner[m->n_readers]))
            return OLY_OK;
        m->reader[m->n_readers++] = j;
    }
    for (int j = m->k + 1; m->n_readers > 0 && j <= m->reader[m->n_readers - 1]; j++)
        if (oly_effect_on(plan, &m->block->steps[j], m->from).writes)
            return OLY_OK;
    *found = m->n_readers > 0;
    return OLY_OK;
}

/* -- from the larger block to the block itself ------------------------------------------------------------------------------------ */

/* The same relative to the device's block, which they may be outside of. */
static void coordinates(const oly_copy_work *own, int64_t offset, int64_t *at)
{
    int64_t origin[OLY_MAX_RANK];
    decode(own, own->task.to_stride, own->to.offset, origin);
    decode(own, own->task.to_stride, offset, at);
    for (int d = 0; d < own->task.rank; d++)
        at[d] -= origin[d];
}

/* The dimension of the larger block along which a load goes; the device's own block may have one element in it. */
static int dimension_of(const oly_copy_work *own, int64_t stride)
{
    int64_t size = stride < 0 ? -stride : stride;
    for (int d = 0; d < own->task.rank; d++)
        if (own->task.to_stride[d] > 0 && own->task.to_stride[d] <= size)
            return d;
    return -1;
}

bool oly_redirect_load(const oly_copy_work *own, const oly_tile_work *w, oly_place *load)
{
    int64_t at[OLY_MAX_RANK] = {0}, offset = own->from.offset;
    coordinates(own, load->offset, at);
    for (int d = 0; d < own->task.rank; d++) {
        if (at[d] < 0 || at[d] >= own->task.extent[d])
            return false;
        offset += at[d] * own->task.from_stride[d] * (int64_t)own->task.element_bytes;
    }
    oly_place to = {.base = own->from.base, .offset = offset};
    int64_t low[OLY_MAX_RANK], high[OLY_MAX_RANK]; /* of what is read */
    memcpy(low, at, sizeof low);
    memcpy(high, at, sizeof high);
    for (int t = 0; t < w->box.rank; t++) {
        if (load->stride[t] == 0 || w->box.extent[t] <= 1)
            continue;
        int d = dimension_of(own, load->stride[t]);
        if (d < 0 || load->stride[t] % own->task.to_stride[d] != 0)
            return false;
        int64_t scale = load->stride[t] / own->task.to_stride[d], far = scale * (w->box.extent[t] - 1);
        *(far < 0 ? &low[d] : &high[d]) += far;
        if (low[d] < 0 || high[d] >= own->task.extent[d])
            return false;
        to.stride[t] = scale * own->task.from_stride[d];
    }
    *load = to;
    return true;
}

/* -- parts of steps ------------------------------------------------------------------------------------------------------------ */

typedef struct parts {
    int n;
    oly_step step[1 + 2 * OLY_MAX_RANK];
} parts;

static double volume_of(const oly_plan *plan, const oly_tile_work *work)
{
    double n = 0;
    for (int d = 0; d < plan->n_devices; d++) {
        double each = work[d].has_work ? 1 : 0;
        for (int e = 0; e < work[d].box.rank; e++)
            each *= (double)work[d].box.extent[e];
        n += each;
    }
    return n;
}

static oly_status add_part(const margins *m, int reader, int slab, parts *to, bool *fits)
{
    oly_planner *p = m->p;
    const oly_step *s = &m->block->steps[m->reader[reader]];
    oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(work);
    for (int d = 0; d < p->plan->n_devices; d++) {
        const oly_tile_work *w = &s->tile.device[d];
        if (!w->has_work)
            continue;
        oly_ranges r = slab < 0 ? m->inner[reader][d] : oly_slab(&w->box, &m->inner[reader][d], slab);
        OLY_TRY(oly_part_work(p, s, w, &r, &work[d]));
        for (int k = 0; slab < 0 && work[d].has_work && k < s->tile.program.n_loads; k++)
            if (work[d].loads[k].base == oly_cell(p->plan, d, m->to))
                *fits = *fits && oly_redirect_load(&m->own[d], &work[d],
                                                   (oly_place *)(uintptr_t)&work[d].loads[k]); /* the part's own */
    }
    double share = volume_of(p->plan, work);
    if (share == 0)
        return OLY_OK;
    oly_step *part = &to->step[to->n++];
    *part = *s;
    part->work = s->work * share / volume_of(p->plan, s->tile.device);
    part->tile.device = work;
    return OLY_OK;
}

/* -- what stays of the copies ----------------------------------------------------------------------------------------------------- */

/* In each dimension of a device's block: what is below `lo` or from `hi` on is read from the larger one. */
typedef struct shell {
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
} shell;

/* Is a range, relative to the device's block, within rows of the larger one? A reshaped view goes on to the next row. */
static bool stays_in_rows(const oly_copy_work *own, const int64_t *lo, const int64_t *hi)
{
    int64_t origin[OLY_MAX_RANK];
    decode(own, own->task.to_stride, own->to.offset, origin);
    for (int d = 1; d < own->task.rank; d++)
        if (origin[d] + lo[d] < 0 || origin[d] + hi[d] > own->task.to_stride[d - 1] / own->task.to_stride[d])
            return false;
    return true;
}

/* What a part reads at one place: coordinates relative to the device's block. False: unknown. */
static bool range_of(const oly_copy_work *own, const oly_tile_work *w, const oly_place *load, int64_t *lo, int64_t *hi)
{
    coordinates(own, load->offset, lo);
    for (int d = 0; d < own->task.rank; d++)
        hi[d] = lo[d] + 1;
    for (int t = 0; t < w->box.rank; t++) {
        if (load->stride[t] == 0 || w->box.extent[t] <= 1)
            continue;
        int d = dimension_of(own, load->stride[t]);
        if (d < 0 || load->stride[t] % own->task.to_stride[d] != 0)
            return false;
        int64_t last = load->stride[t] / own->task.to_stride[d] * (w->box.extent[t] - 1);
        lo[d] += last < 0 ? last : 0;
        hi[d] += last > 0 ? last : 0;
    }
    return stays_in_rows(own, lo, hi);
}

/* Adds what a part reads at one place. False: unknown, or not at an end of the block. */
static bool widen(const oly_copy_work *own, const oly_tile_work *w, const oly_place *load, shell *to)
{
    int64_t lo[OLY_MAX_RANK], hi[OLY_MAX_RANK];
    double least = 1;
    int best = -1;
    bool low = false;
    if (!range_of(own, w, load, lo, hi))
        return false;
    for (int d = 0; d < own->task.rank; d++) {
        int64_t extent = own->task.extent[d];
        lo[d] = lo[d] < 0 ? 0 : lo[d];
        hi[d] = hi[d] > extent ? extent : hi[d];
        if (hi[d] <= lo[d])
            return true; /* nothing of the block */
    }
    for (int d = 0; d < own->task.rank; d++) {
        double extent = (double)own->task.extent[d], below = (double)hi[d] / extent, above = 1 - (double)lo[d] / extent;
        double less = below < above ? below : above;
        if (less >= least)
            continue;
        best = d;
        low = below < above;
        least = less;
    }
    if (best < 0)
        return false;
    if (low)
        to->lo[best] = hi[best] > to->lo[best] ? hi[best] : to->lo[best];
    else
        to->hi[best] = lo[best] < to->hi[best] ? lo[best] : to->hi[best];
    return true;
}

/* The same for a box that is copied or sent. */
static bool widen_by_box(const oly_copy_work *own, int rank, const int64_t *extent, const int64_t *stride,
                         int64_t offset, shell *to)
{
    oly_tile_work box = {.box.rank = rank};
    oly_place from = {.base = own->to.base, .offset = offset};
    for (int d = 0; d < rank; d++) {
        if (extent[d] == 0)
            return true;
        box.box.extent[d] = extent[d];
        from.stride[d] = stride[d];
    }
    return widen(own, &box, &from, to);
}

static bool widen_by_copier(const oly_copy_work *own, const oly_step *s, shell *to)
{
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        if (c->from.base == own->to.base &&
            !widen_by_box(own, c->task.rank, c->task.extent, c->task.from_stride, c->from.offset, to))
            return false;
    }
    for (int k = 0; k < s->move.n_departures; k++) {
        const oly_piece *piece = &s->move.departures[k].piece;
        if (piece->buffer == own->to.base &&
            !widen_by_box(own, piece->rank, piece->extent, piece->stride, piece->offset, to))
            return false;
    }
    return true;
}

static bool finds_shell(const margins *m, int device, const parts *made, shell *to)
{
    const oly_copy_work *own = &m->own[device];
    *to = (shell){{0}, {0}};
    memcpy(to->hi, own->task.extent, sizeof to->hi);
    for (int k = 0; k < m->n_copiers; k++)
        if (!widen_by_copier(own, &m->block->steps[m->copier[k]], to))
            return false;
    for (int r = 0; r < m->n_readers; r++)
        for (int k = 0; k < made[r].n; k++) {
            const oly_step *s = &made[r].step[k];
            const oly_tile_work *w = &s->tile.device[device];
            for (int j = 0; w->has_work && j < s->tile.program.n_loads; j++)
                if (w->loads[j].base == own->to.base && !widen(own, w, &w->loads[j], to))
                    return false;
        }
    for (int d = 0; d < own->task.rank; d++)
        if (to->lo[d] >= to->hi[d])
            return false;
    return true;
}

/* The part [lo, hi) of a copy. */
static oly_copy_work part_of_copy(const oly_copy_work *own, const int64_t *lo, const int64_t *hi)
{
    oly_copy_work c = *own;
    for (int d = 0; d < own->task.rank; d++) {
        c.task.extent[d] = hi[d] - lo[d];
        c.from.offset += lo[d] * own->task.from_stride[d] * (int64_t)own->task.element_bytes;
        c.to.offset += lo[d] * own->task.to_stride[d] * (int64_t)own->task.element_bytes;
    }
    return c;
}

/* Below and above in each dimension; within the shell in the dimensions before. */
static void add_shell(const oly_copy_work *own, const shell *of, oly_copy_work *copies, int *n)
{
    int64_t lo[OLY_MAX_RANK] = {0}, hi[OLY_MAX_RANK];
    memcpy(hi, own->task.extent, sizeof hi);
    for (int d = 0; d < own->task.rank; d++) {
        hi[d] = of->lo[d];
        if (hi[d] > lo[d])
            copies[(*n)++] = part_of_copy(own, lo, hi);
        lo[d] = of->hi[d];
        hi[d] = own->task.extent[d];
        if (hi[d] > lo[d])
            copies[(*n)++] = part_of_copy(own, lo, hi);
        lo[d] = of->lo[d];
        hi[d] = of->hi[d];
    }
}

/* The copies of the transfer, of each device's own block only the shell. NULL in *copies: all are needed. */
static oly_status shrink(const margins *m, const parts *made, oly_copy_work **copies, int *n)
{
    const oly_plan *plan = m->p->plan;
    const oly_step *s = &m->block->steps[m->k];
    oly_copy_work *all = OLY_PLAN_NEW(m->p, oly_copy_work, s->move.n_copies + plan->n_devices * 2 * OLY_MAX_RANK + 1);
    OLY_PLAN_CHECK(all);
    shell kept;
    *copies = NULL;
    *n = 0;
    for (int k = 0; k < s->move.n_copies; k++) {
        const oly_copy_work *c = &s->move.copies[k];
        if (!is_of_block(m, c))
            all[(*n)++] = *c;
    }
    for (int d = 0; d < plan->n_devices; d++) {
        if (m->own[d].task.rank == 0)
            continue;
        if (!finds_shell(m, d, made, &kept))
            return OLY_OK;
        add_shell(&m->own[d], &kept, all, n);
    }
    *copies = all;
    return OLY_OK;
}

/* -- the pass ------------------------------------------------------------------------------------------------------------------ */

/* -1: it is none. */
static int reader_at(const margins *m, int step)
{
    for (int k = 0; k < m->n_readers; k++)
        if (m->reader[k] == step)
            return k;
    return -1;
}

/* The block with parts in the place of readers. */
static oly_status replace(const margins *m, const parts *made, oly_copy_work *copies, int n_copies)
{
    oly_planner *p = m->p;
    oly_block *b = m->block;
    int n = b->n_steps, to = 0;
    for (int r = 0; r < m->n_readers; r++)
        n += made[r].n - 1;
    oly_step *steps = oly_arena_take(&p->plan->arena, sizeof *steps * (size_t)(n + 1));
    OLY_PLAN_CHECK(steps);
    for (int k = 0; k < b->n_steps; k++) {
        int r = reader_at(m, k);
        for (int j = 0; r >= 0 && j < made[r].n; j++)
            steps[to++] = made[r].step[j];
        if (r < 0)
            steps[to++] = b->steps[k];
        if (k == m->k) {
            steps[to - 1].move.copies = copies;
            steps[to - 1].move.n_copies = n_copies;
            steps[to - 1].work = oly_copied_elements(n_copies, copies);
        }
    }
    b->steps = steps;
    b->n_steps = b->capacity = n;
    oly_slot *from =
        &p->plan
             ->slots[m->from]; /* numbers are made anew after all of the block: until then it is known who reads it */
    for (int r = 0; r < m->n_readers; r++) {
        int number = made[r].step[0].number;
        from->last = number > from->last ? number : from->last;
    }
    return OLY_OK;
}

/* The inner part, then slabs. Not *fits: one cannot be read directly. */
static oly_status make_parts(const margins *m, int reader, parts *to, bool *fits)
{
    const oly_step *s = &m->block->steps[m->reader[reader]];
    int rank = 0;
    for (int d = 0; d < m->p->plan->n_devices; d++)
        rank = s->tile.device[d].has_work ? s->tile.device[d].box.rank : rank;
    for (int slab = -1; slab < 2 * rank; slab++)
        OLY_TRY(add_part(m, reader, slab, to, fits));
    *fits = *fits && to->n > 0;
    return OLY_OK;
}

/* Would a reduction compute a reader's group itself (fused_reductions.c)? A whole one is simpler then. */
static bool is_reduced(const margins *m, const oly_step *s)
{
    const oly_plan *plan = m->p->plan;
    for (const oly_step *r = s + 1; r < m->block->steps + m->block->n_steps; r++)
        for (int d = 0; r->kind == OLY_STEP_REDUCE && d < plan->n_devices; d++)
            for (int k = 0; r->reduce.device[d].has_work && s->tile.device[d].has_work && k < s->tile.program.n_stores;
                 k++)
                if (s->tile.device[d].stores[k].base == r->reduce.device[d].in.base)
                    return true;
    return false;
}

/* Do copies of blocks that are not made take longer than parts beside the inner ones? */
static bool pays(const margins *m)
{
    const oly_plan *plan = m->p->plan;
    double bytes = 0, seconds = 0;
    bool counts = !m->block->steps[m->k].transfer;
    for (int r = 0; r < m->n_readers && !counts; r++)
        counts = is_reduced(m, &m->block->steps[m->reader[r]]);
    if (!counts || oly_direct_reads_least <= 1)
        return true;
    for (int d = 0; d < plan->n_devices; d++)
        if (m->own[d].task.rank > 0)
            bytes += 2 * oly_copied_elements(1, &m->own[d]) * (double)m->own[d].task.element_bytes;
    for (int r = 0; r < m->n_readers; r++) {
        const oly_step *s = &m->block->steps[m->reader[r]];
        const oly_tile_program *t = &s->tile.program;
        double each_row = row_seconds * (t->n_loads + t->n_stores + t->n_instructions);
        for (int d = 0; d < plan->n_devices; d++)
            for (int slab = 0; s->tile.device[d].has_work && slab < 2 * s->tile.device[d].box.rank; slab++) {
                oly_ranges part = oly_slab(&s->tile.device[d].box, &m->inner[r][d], slab);
                double rows = 1;
                for (int e = 0; e + 1 < part.rank; e++)
                    rows *= (double)(part.hi[e] - part.lo[e]);
                seconds += oly_ranges_volume(&part) > 0 ? part_seconds + rows * each_row : 0;
            }
    }
    return bytes / oly_facts_now()->memory > 2 * seconds;
}

static int last_nested(const oly_block *b)
{
    int j = b->n_steps - 1;
    while (j >= 0 && !oly_has_blocks(&b->steps[j]))
        j--;
    return j;
}

static oly_status read_directly(oly_planner *p, oly_block *b, int k, bool *changed, bool *looks)
{
    margins m = {.p = p, .block = b, .k = k, .last_nested = last_nested(b)};
    bool found, fits = true, transfer = b->steps[k].transfer;
    oly_copy_work *copies;
    int n_copies;
    m.own = OLY_PLAN_NEW(p, oly_copy_work, p->plan->n_devices + 1);
    m.block_copy = OLY_PLAN_NEW(p, const oly_copy_work *, p->plan->n_devices + 1);
    OLY_PLAN_CHECK(m.own ? m.block_copy : NULL);
    *looks = transfer ? finds_blocks(&m) : finds_operand(&m);
    if (!*looks || !only_margins_come(&m) || !find_writers(&m))
        return OLY_OK;
    OLY_TRY(find_readers(&m, &found));
    if (!found || !pays(&m))
        return OLY_OK;
    parts *made = OLY_PLAN_NEW(p, parts, m.n_readers);
    OLY_PLAN_CHECK(made);
    for (int r = 0; r < m.n_readers && fits; r++)
        OLY_TRY(make_parts(&m, r, &made[r], &fits));
    if (fits)
        OLY_TRY(shrink(&m, made, &copies, &n_copies));
    if (!fits || !copies)
        return OLY_OK;
    *changed = true;
    return replace(&m, made, copies, n_copies);
}

/* Copies and steps that are looked at for one transfer, at most. */
static int64_t looked_at(const oly_block *b)
{
    int64_t n = 0;
    for (int k = 0; k < b->n_steps; k++)
        n += 1 + (b->steps[k].kind == OLY_STEP_MOVE ? b->steps[k].move.n_copies : 0);
    return n;
}

/* Each change makes the list of steps anew, and each transfer looks at many: of blocks of many thousands not everything is looked at, so
 * that planning does not take seconds. */
static oly_status visit(oly_planner *p, oly_block *b, bool *changed)
{
    int64_t made = 0, looked = 0, each = looked_at(b);
    /* from the last to the first: what is copied twice is then read where it was first */
    for (int k = b->n_steps - 1; k >= 0 && made < MOST_MADE && looked < MOST_LOOKED; k--) {
        const oly_step *s = &b->steps[k];
        bool divides = false, looks = false;
        if (s->kind == OLY_STEP_MOVE && (s->transfer || (s->boxes && !s->exchange)) && s->move.n_copies > 0 &&
            !s->second && !s->starts)
            OLY_TRY(read_directly(p, b, k, &divides, &looks));
        made += divides ? b->n_steps : 0;
        looked += looks ? each : 0;
        *changed = *changed || divides;
    }
    return OLY_OK;
}

oly_status oly_read_directly(oly_planner *p)
{
    return oly_enabled(OLY_OPTIMISATION_STEP_SPLITTING) ? oly_pass_over_blocks(p, visit) : OLY_OK;
}
