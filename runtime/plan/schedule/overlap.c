/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits steps that wait for messages into a part that needs none of them and the rest. Elementwise steps are cut
 * into the part that reads only the device's own elements (the interior of a stencil's block) and slabs around it;
 * matrix products into parts of their result, which the kernel computes in any order (product_parts.c). Every element is computed as
 * before, so no bit changes, and each process may split its own devices' work as it likes. Called by schedule.c. */
#include "plan/cost/cost.h"
#include "plan/schedule/scheduler.h"
#include "core/optimisation.h"
#include <string.h>

/* What a part of a step costs, and what a row of its slabs costs; splitting must save more. */
static const double step_seconds = 2e-6, row_seconds = 4e-8;
/* The least work that must be independent of messages: exchanges of small plans end soon. */
static const double least_seconds = 1e-5;

/* -- boxes --------------------------------------------------------------------------------------------------------- */

double oly_ranges_volume(const oly_ranges *r)
{
    double n = 1;
    for (int d = 0; d < r->rank; d++)
        n *= (double)(r->hi[d] > r->lo[d] ? r->hi[d] - r->lo[d] : 0);
    return n;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* The iterations that read [lo, hi), when iteration i reads first + scale * i; scale is not 0. */
static void iterations(int64_t first, int64_t scale, int64_t lo, int64_t hi, int64_t *begin, int64_t *end)
{
    if (scale > 0) {
        *begin = divide_up(lo - first, scale);
        *end = divide_up(hi - first, scale);
    } else {
        *begin = divide_up(first - hi + 1, -scale);
        *end = divide_up(first - lo + 1, -scale);
    }
}

/* Do `steps` steps of `stride` from `start` leave [0, end)? They do where several dimensions are merged into one
 * loop. */
static bool leaves(int64_t start, int64_t stride, int64_t steps, int64_t end)
{
    return start + stride * steps >= end || start + stride * steps < 0;
}

bool oly_find_readers(const oly_piece *piece, int64_t element, const oly_place *place, const oly_ranges *all,
                      oly_ranges *found)
{
    int64_t at = place->offset / element, in = piece->offset / element;
    bool taken[OLY_MAX_RANK] = {false};
    *found = *all;
    for (int t = 0; t < all->rank; t++) {
        int64_t stride = place->stride[t] < 0 ? -place->stride[t] : place->stride[t];
        int d = 0;
        if (all->hi[t] - all->lo[t] <= 1 && all->lo[t] == 0)
            continue;
        if (stride == 0)
            continue;
        while (d < piece->rank && piece->stride[d] > stride)
            d++;
        if (d == piece->rank || taken[d] || stride % piece->stride[d] ||
            (d > 0 && leaves(at % piece->stride[d - 1], place->stride[t], all->hi[t] - 1, piece->stride[d - 1])))
            return false;
        taken[d] = true;
    }
    memset(taken, 0, sizeof taken);
    for (int d = 0; d < piece->rank; d++) {
        int64_t first = at / piece->stride[d], lo = in / piece->stride[d], hi = lo + piece->extent[d];
        at %= piece->stride[d];
        in %= piece->stride[d];
        int by = -1;
        for (int t = 0; t < all->rank && by < 0; t++) {
            int64_t stride = place->stride[t] < 0 ? -place->stride[t] : place->stride[t];
            if (stride >= piece->stride[d] && !taken[t] && (all->hi[t] - all->lo[t] > 1 || all->lo[t] != 0) &&
                (d == 0 || stride < piece->stride[d - 1]))
                by = t;
        }
        if (by < 0) {
            if (first < lo || first >= hi)
                found->hi[0] = found->lo[0]; /* none */
            continue;
        }
        taken[by] = true;
        int64_t begin, end;
        iterations(first, place->stride[by] / piece->stride[d], lo, hi, &begin, &end);
        found->lo[by] = begin > found->lo[by] ? begin : found->lo[by];
        found->hi[by] = end < found->hi[by] ? end : found->hi[by];
    }
    return true;
}

/* Removes the late iterations from `inner`, and as few others as possible. */
static void cut(oly_ranges *inner, const oly_ranges *late)
{
    int best = -1;
    bool low = false;
    double least = 2;
    for (int d = 0; d < inner->rank; d++) {
        double length = (double)(inner->hi[d] - inner->lo[d]);
        if (late->hi[d] <= inner->lo[d] || late->lo[d] >= inner->hi[d] || late->hi[d] <= late->lo[d])
            return; /* disjoint */
        double below = (double)(late->hi[d] - inner->lo[d]) / length;
        double above = (double)(inner->hi[d] - late->lo[d]) / length;
        if (below < least || above < least) {
            best = d;
            low = below <= above;
            least = low ? below : above;
        }
    }
    if (best < 0)
        inner->rank = 0; /* a late scalar */
    else if (low)
        inner->lo[best] = late->hi[best] < inner->hi[best] ? late->hi[best] : inner->hi[best];
    else
        inner->hi[best] = late->lo[best] > inner->lo[best] ? late->lo[best] : inner->lo[best];
}

/* -- elementwise steps --------------------------------------------------------------------------------------------- */

static oly_ranges whole_of(const oly_tile_box *b)
{
    oly_ranges r = {.rank = b->rank};
    for (int d = 0; d < b->rank; d++)
        r.hi[d] = b->extent[d];
    return r;
}

bool oly_cut_readers(const oly_step *s, const oly_tile_work *w, const oly_piece *piece, oly_ranges *inner)
{
    oly_ranges all = whole_of(&w->box), late;
    for (int j = 0; j < s->tile.program.n_loads; j++) {
        int64_t element = (int64_t)oly_dtype_size((oly_dtype)s->tile.program.load_dtype[j]);
        if (w->loads[j].base != piece->buffer)
            continue;
        if (!oly_find_readers(piece, element, &w->loads[j], &all, &late))
            return false;
        if (oly_ranges_volume(&late) > 0)
            cut(inner, &late);
    }
    return true;
}

/* The largest box of a device's part that reads nothing late. False: unknown. */
static bool inner_part(const oly_step *s, const oly_tile_work *w, int n, const oly_step *const *moves,
                       oly_ranges *inner)
{
    *inner = whole_of(&w->box);
    if (inner->rank == 0)
        return false;
    for (int m = 0; m < n; m++)
        for (int k = 0; k < moves[m]->move.n_arrivals; k++)
            if (!oly_cut_readers(s, w, &moves[m]->move.arrivals[k].piece, inner))
                return false;
    return true;
}

oly_status oly_part_work(oly_planner *p, const oly_step *s, const oly_tile_work *whole, const oly_ranges *part,
                         oly_tile_work *w)
{
    const oly_tile_program *program = &s->tile.program;
    *w = (oly_tile_work){.box = whole->box};
    if (oly_ranges_volume(part) == 0)
        return OLY_OK;
    oly_place *loads = OLY_PLAN_NEW(p, oly_place, program->n_loads + 1);
    oly_place *stores = OLY_PLAN_NEW(p, oly_place, program->n_stores + 1);
    OLY_PLAN_CHECK(loads ? stores : NULL);
    memcpy(loads, whole->loads, sizeof *loads * (size_t)program->n_loads);
    memcpy(stores, whole->stores, sizeof *stores * (size_t)program->n_stores);
    for (int d = 0; d < part->rank; d++) {
        w->box.extent[d] = part->hi[d] - part->lo[d];
        w->box.origin[d] += part->lo[d];
        for (int k = 0; k < program->n_loads; k++)
            loads[k].offset +=
                part->lo[d] * loads[k].stride[d] * (int64_t)oly_dtype_size((oly_dtype)program->load_dtype[k]);
        for (int k = 0; k < program->n_stores; k++)
            stores[k].offset +=
                part->lo[d] * stores[k].stride[d] * (int64_t)oly_dtype_size((oly_dtype)program->store_dtype[k]);
    }
    w->loads = loads;
    w->stores = stores;
    w->has_work = true;
    return OLY_OK;
}

oly_ranges oly_slab(const oly_tile_box *box, const oly_ranges *inner, int k)
{
    oly_ranges r = whole_of(box);
    for (int d = 0; d < k / 2; d++) {
        r.lo[d] = inner->lo[d];
        r.hi[d] = inner->hi[d];
    }
    if (k % 2)
        r.lo[k / 2] = inner->hi[k / 2];
    else
        r.hi[k / 2] = inner->lo[k / 2];
    return r;
}

static double rows_of(const oly_ranges *r)
{
    double n = 1;
    for (int d = 0; d + 1 < r->rank; d++)
        n *= (double)(r->hi[d] - r->lo[d]);
    return oly_ranges_volume(r) > 0 ? n : 0;
}

static void add_part(oly_parts *parts, const oly_step *step, double share, int after)
{
    oly_part *part = &parts->part[parts->n++];
    *part = (oly_part){.step = *step, .after = after};
    part->step.work = step->work * share;
}

static oly_status split_tile(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                             oly_parts *parts)
{
    int n_devices = p->plan->n_devices, rank = 0, n_slabs = 0;
    oly_ranges *inner = OLY_PLAN_NEW(p, oly_ranges, n_devices + 1);
    double slabs[2 * OLY_MAX_RANK] = {0}, all = 0, early = 0, rows = 0;
    OLY_PLAN_CHECK(inner);
    for (int d = 0; d < n_devices; d++) {
        const oly_tile_work *w = &s->tile.device[d];
        if (!w->has_work)
            continue;
        if (!inner_part(s, w, n, moves, &inner[d]) || inner[d].rank == 0)
            return OLY_OK;
        rank = w->box.rank;
        oly_ranges whole = whole_of(&w->box);
        all += oly_ranges_volume(&whole);
        early += oly_ranges_volume(&inner[d]);
        for (int k = 0; k < 2 * rank; k++) {
            oly_ranges r = oly_slab(&w->box, &inner[d], k);
            slabs[k] += oly_ranges_volume(&r);
            rows += rows_of(&r);
        }
    }
    for (int k = 0; k < 2 * rank; k++)
        n_slabs += slabs[k] > 0;
    double gain = all > 0 ? oly_cost_step(p->plan, s) * early / all : 0;
    if (gain < least_seconds)
        return OLY_OK;
    gain = gain < flight ? gain : flight;
    if (n_slabs == 0 || gain < n_slabs * step_seconds + rows * row_seconds)
        return OLY_OK;
    for (int k = -1; k < 2 * rank; k++) {
        if (k >= 0 && slabs[k] == 0)
            continue;
        oly_tile_work *work = OLY_PLAN_NEW(p, oly_tile_work, n_devices);
        OLY_PLAN_CHECK(work);
        for (int d = 0; d < n_devices; d++) {
            const oly_tile_work *w = &s->tile.device[d];
            if (!w->has_work)
                continue;
            oly_ranges r = k < 0 ? inner[d] : oly_slab(&w->box, &inner[d], k);
            OLY_TRY(oly_part_work(p, s, w, &r, &work[d]));
        }
        add_part(parts, s, (k < 0 ? early : slabs[k]) / all, k < 0 ? OLY_AFTER_START : OLY_AFTER_WAIT);
        parts->part[parts->n - 1].step.tile.device = work;
    }
    return OLY_OK;
}

/* -- matrix products ----------------------------------------------------------------------------------------------- */

/* What a product waits for. */
typedef struct waiting {
    const oly_step *move;
    const oly_parts *parts; /* has the peers */
} waiting;

/* Some rows of the left operand, or columns of the right one. */
typedef struct lines {
    const oly_place *at;
    int64_t first, count, stride;
    int64_t length, along; /* elements of a line, and their stride */
    int64_t element;       /* bytes */
} lines;

/* Whose messages bring elements of these lines: one bit per entry of parts->peers; -1: unknown. */
static int senders_of(const waiting *w, const lines *l)
{
    oly_place place = {.base = l->at->base,
                       .offset = l->at->offset + l->first * l->stride * l->element,
                       .stride = {l->stride, l->along}};
    oly_ranges all = {.rank = 2, .hi = {l->count, l->length}}, late;
    int found = 0;
    for (int k = 0; k < w->move->move.n_arrivals; k++) {
        const oly_arrival *a = &w->move->move.arrivals[k];
        if (a->piece.buffer != l->at->base)
            continue;
        if (!oly_find_readers(&a->piece, l->element, &place, &all, &late))
            return -1;
        for (int j = 0; oly_ranges_volume(&late) > 0 && j < w->parts->n_peers; j++)
            if (w->parts->peers[j] == a->peer)
                found |= 1 << j;
    }
    return found;
}

/* Lists the peers in ring order, from the process after this one. */
static bool find_peers(const oly_step *move, oly_parts *parts)
{
    int me = oly_mesh_my_process(), all = oly_mesh_processes();
    for (int k = 0; k < move->move.n_arrivals; k++) {
        int peer = move->move.arrivals[k].peer, j = parts->n_peers;
        for (int i = 0; i < parts->n_peers; i++)
            if (parts->peers[i] == peer)
                j = -1;
        if (j < 0)
            continue;
        if (j == OLY_MOST_PEERS)
            return false;
        for (; j > 0 && (parts->peers[j - 1] - me + all) % all > (peer - me + all) % all; j--)
            parts->peers[j] = parts->peers[j - 1];
        parts->peers[j] = peer;
        parts->n_peers++;
    }
    return true;
}

static bool copies_late(const oly_step *s, const oly_step *move)
{
    for (int k = 0; k < s->gemm.n_copies; k++)
        for (int j = 0; j < move->move.n_arrivals; j++)
            if (s->gemm.copies[k].from.base == move->move.arrivals[j].piece.buffer)
                return true;
    return false;
}

/* The last peer that a part of the result needs, counted from 1; 0: none; -1: unknown. */
static int last_peer(const void *context, const oly_gemm_work *w, const oly_gemm_part *part)
{
    const waiting *moves = context;
    const oly_gemm_task *t = &w->task;
    int64_t element = (int64_t)oly_dtype_size(t->dtype);
    int a = senders_of(moves, &(lines){&w->a, part->row, part->rows, t->a_row, t->k, t->a_column, element});
    int b = senders_of(moves, &(lines){&w->b, part->column, part->columns, t->b_column, t->k, t->b_row, element});
    if (a < 0 || b < 0)
        return -1;
    int last = 0;
    for (int j = 0; j < moves->parts->n_peers; j++)
        if ((a | b) >> j & 1)
            last = j + 1;
    return last;
}

/* Does computing the parts that need no message, or not the last one, hide enough of the transfer? */
static bool splitting_pays(const oly_planner *p, const oly_step *s, const oly_product_phases *phases, int n_peers,
                           double flight)
{
    int n = 0, total = phases->total;
    for (int k = 0; k <= n_peers; k++)
        n += phases->in_phase[k] > 0;
    double gain = total ? oly_cost_step(p->plan, s) * (total - phases->in_phase[n_peers]) / total : 0;
    if (gain < least_seconds)
        return false;
    gain = gain < flight ? gain : flight;
    return n >= 2 && gain >= n * step_seconds;
}

static oly_status split_gemm(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                             oly_parts *parts)
{
    oly_product_phases phases;
    if (n != 1 || copies_late(s, moves[0]) || !find_peers(moves[0], parts))
        return OLY_OK;
    OLY_TRY(oly_product_phases_of(p, s, last_peer, &(waiting){moves[0], parts}, &phases));
    if (!phases.known || !splitting_pays(p, s, &phases, parts->n_peers, flight))
        return OLY_OK;
    for (int k = 0; k <= parts->n_peers; k++) {
        if (phases.in_phase[k] == 0)
            continue;
        add_part(parts, s, (double)phases.in_phase[k] / phases.total, k == 0 ? OLY_AFTER_START : k - 1);
        oly_step *step = &parts->part[parts->n - 1].step;
        OLY_TRY(oly_product_phase_work(p, s, &phases, k, &step->gemm.device));
        if (parts->n > 1) /* the first part has made the copies */
            step->gemm.n_copies = 0;
    }
    return OLY_OK;
}

oly_status oly_split_step(oly_planner *p, const oly_step *s, int n, const oly_step *const *moves, double flight,
                          oly_parts *parts)
{
    parts->n = parts->n_peers = 0;
    if (s->kind == OLY_STEP_TILE && oly_enabled(OLY_OPTIMISATION_STEP_SPLITTING))
        return split_tile(p, s, n, moves, flight, parts);
    if (s->kind == OLY_STEP_GEMM && oly_enabled(OLY_OPTIMISATION_COLLECTIVE_MATMUL))
        return split_gemm(p, s, n, moves, flight, parts);
    return OLY_OK;
}
