/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans loops over fields (time_tiling.h): every device holds its block of each field with margins; a pass brings the
 * margins of all fields, in one message per neighbour, and advances several steps tile by tile. How many steps depends
 * on the cost of the exchange, of margins computed twice, and of memory traffic. Called by lower_loop.c. */
#include "core/min_max.h"
#include "core/option.h"
#include "core/optimisation.h"
#include "plan/cost/cost.h"
#include "plan/move/move.h"
#include "plan/read/read.h"
#include "plan/stencil/stencil.h"
#include "plan/stencil/time_tiling_group.h"
#include <string.h>

typedef struct lowering {
    oly_planner *p;
    oly_frame *f;
    oly_node *loop;
    oly_layout layout;   /* of the grid */
    oly_layout *outside; /* [n_fields] where each field is before and after the loop */
    oly_layout *inside;  /* [n_fields] split as the grid is */
    bool shifts;         /* some field is placed differently inside */
    oly_tiling *tiling;
    oly_region *region; /* [n_fields] of the slots with margins */
    bool margins;
    int64_t count, extent[OLY_TILING_RANK]; /* steps; extents of the largest block */
    int brings;                             /* the step that brings the first margins; -1: none, or several */
    oly_tiling_device *devices;
    const int *result; /* [n_fields] slots after the loop */
} lowering;

static bool is_cut(const lowering *w, int d)
{
    return w->layout.split[d].parts > 1 || w->tiling->form.wraps[d];
}

/* -- how many steps per pass --------------------------------------------------------------------------------------- */

static int sort_in(int64_t *list, int n, int64_t x)
{
    int k = n;
    while (k > 0 && list[k - 1] > x)
        k--;
    if (k > 0 && list[k - 1] == x)
        return n;
    memmove(list + k + 1, list + k, sizeof *list * (size_t)(n - k));
    list[k] = x;
    return n + 1;
}

/* The number of elements around a block that are needed of a field. */
static double points_needed(const lowering *w, const oly_tiling_need *needs, int n)
{
    int64_t edge[OLY_TILING_RANK][128];
    int n_edges[OLY_TILING_RANK] = {0}, at[OLY_TILING_RANK] = {0}, rank = w->tiling->form.rank;
    double total = 0, block = 1;
    for (int d = 0; d < rank; d++) {
        block *= (double)w->extent[d];
        for (int k = 0; k < n; k++) {
            n_edges[d] = sort_in(edge[d], n_edges[d], is_cut(w, d) ? needs[k].lo[d] : 0);
            n_edges[d] = sort_in(edge[d], n_edges[d], w->extent[d] + (is_cut(w, d) ? needs[k].hi[d] : 0));
        }
        n_edges[d] = sort_in(edge[d], n_edges[d], 0);
        n_edges[d] = sort_in(edge[d], n_edges[d], w->extent[d]);
    }
    for (;;) { /* over the cells between the edges */
        bool in = false;
        for (int k = 0; k < n && !in; k++) {
            in = true;
            for (int d = 0; d < rank && in; d++)
                in = !is_cut(w, d) ||
                     (edge[d][at[d]] >= needs[k].lo[d] && edge[d][at[d] + 1] <= w->extent[d] + needs[k].hi[d]);
        }
        double points = in;
        for (int d = 0; d < rank; d++)
            points *= (double)(edge[d][at[d] + 1] - edge[d][at[d]]);
        total += points;
        int d = rank - 1;
        while (d >= 0 && ++at[d] == n_edges[d] - 1)
            at[d--] = 0;
        if (d < 0)
            break;
    }
    return total > block ? total - block : 0;
}

typedef struct exchange_cost {
    double seconds, bytes;
} exchange_cost;

static exchange_cost cost_of_exchange(const lowering *w, const oly_tiling_pass *pass)
{
    exchange_cost x = {0, 0};
    oly_level level = OLY_LEVEL_PROCESS;
    double neighbours = 1;
    bool corners = pass->steps > 1 || w->tiling->form.unrolled;
    for (int j = 0; j < w->tiling->form.n_fields; j++)
        x.bytes += (double)oly_dtype_size(w->tiling->form.field[j]->type.dtype) *
                   points_needed(w, pass->needs[j], pass->n_needs[j]);
    for (int d = 0; d < w->layout.rank; d++) {
        int sides = (pass->field_lo[d] < 0) + (pass->field_hi[d] > 0);
        if (w->layout.split[d].parts == 1 || sides == 0)
            continue;
        oly_level here = oly_axes_level(w->layout.mesh, &w->layout.split[d].axes);
        level = here > level ? here : level;
        neighbours = corners ? neighbours * (1 + sides) : neighbours + sides;
    }
    if (neighbours > 1)
        x.seconds = oly_cost_transfer(level, x.bytes, (int)neighbours - 1);
    return x;
}

static bool fits_blocks(const lowering *w, const oly_tiling_pass *pass)
{
    for (int d = 0; d < w->layout.rank; d++)
        if (is_cut(w, d) && (-pass->field_lo[d] > w->extent[d] || pass->field_hi[d] > w->extent[d]))
            return false;
    return true;
}

/* Does a step read farther than a field is long? Then its parts are no neighbours but numbers of another kind (the components of a state
 * vector), and margins would be computed for positions that do not exist. */
static bool reads_farther(const lowering *w, const oly_tiling_pass *step)
{
    for (int d = 0; d < w->layout.rank; d++)
        if (step->field_hi[d] - step->field_lo[d] >= w->layout.shape[d])
            return true;
    return false;
}

/* Members of a group are needed where one of them is. Where devices would send more for that, groups are divided. */
static oly_status check_groups(lowering *w)
{
    oly_tiling_form *form = &w->tiling->form;
    const int n_groups = form->n_groups;
    oly_tiling_pass pass[2];
    bool more = false;
    for (int k = 0; k < 2 && n_groups > 0; k++) {
        form->n_groups = k ? n_groups : 0;
        OLY_TRY(oly_tiling_unroll(w->p, form, w->count < 2 ? 1 : 2, true, &pass[k]));
    }
    for (int d = 0; d < form->rank && n_groups > 0; d++)
        more = more || (w->layout.split[d].parts > 1 &&
                        (pass[1].field_lo[d] < pass[0].field_lo[d] || pass[1].field_hi[d] > pass[0].field_hi[d]));
    return more ? oly_tiling_divide_groups(w->p, form, pass[0].instance) : OLY_OK;
}

/* Chooses the cheapest candidate whose margins are no wider than a block and which does not bring many more bytes than
 * single steps. *suits: false if a step reads too far. */
static oly_status choose_steps(lowering *w, bool *suits)
{
    static const int candidates[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    oly_tiling *m = w->tiling;
    double best = -1, single = 0;
    *suits = true;
    if (oly_halo_steps()) {
        int64_t steps = oly_halo_steps() < w->count ? oly_halo_steps() : w->count;
        OLY_TRY(oly_tiling_unroll(w->p, &m->form, (int)steps, false, &m->pass));
        m->seconds = (double)steps * oly_tiling_tile(&m->form, &m->pass, w->extent, m->tile);
        return OLY_OK;
    }
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates && candidates[k] <= w->count; k++) {
        oly_tiling_pass pass;
        int64_t tile[OLY_TILING_RANK];
        int steps = candidates[k];
        OLY_TRY(oly_tiling_unroll(w->p, &m->form, steps, true, &pass));
        if (k == 0 && reads_farther(w, &pass)) {
            *suits = false;
            return OLY_OK;
        }
        exchange_cost x = cost_of_exchange(w, &pass);
        double a_step = oly_tiling_tile(&m->form, &pass, w->extent, tile), all = a_step + x.seconds / steps;
        if (k > 0 && (!fits_blocks(w, &pass) || x.bytes > 2 * single * steps))
            break;
        single = k == 0 ? x.bytes : single;
        if (best < 0 || all < best) {
            best = all;
            m->pass = pass;
            m->seconds = a_step * steps;
            memcpy(m->tile, tile, sizeof tile);
        } else if (all > 1.5 * best) {
            break;
        }
    }
    return m->pass.steps > 1 || m->form.unrolled ? oly_tiling_unroll(w->p, &m->form, m->pass.steps, false, &m->pass)
                                                 : OLY_OK;
}

/* -- margins ------------------------------------------------------------------------------------------------------- */

/* The device's part of the grid in the coordinates of field j, with margins wide enough for both passes: if fields
 * change places, fewer steps may read farther. The part need not contain elements of the field that the device owns,
 * only some that it reads. */
static oly_region region_of_field(lowering *w, int j)
{
    const oly_tiling *m = w->tiling;
    oly_region region = oly_region_of_layout(&w->layout);
    for (int d = 0; d < w->layout.rank; d++) {
        oly_region_dim *r = &region.dim[d];
        r->lo = r->hi = -m->form.align[j][d];
        if (!is_cut(w, d))
            continue;
        r->lo += oly_smaller(m->pass.field_lo[d], m->first.field_lo[d]);
        r->hi += oly_larger(m->pass.field_hi[d], m->first.field_hi[d]);
        r->wraps = m->form.wraps[d];
        w->margins = w->margins || r->lo != r->hi;
    }
    return region;
}

static oly_status find_regions(lowering *w)
{
    int n = w->tiling->form.n_fields;
    w->region = OLY_PLAN_NEW(w->p, oly_region, n);
    OLY_PLAN_CHECK(w->region);
    w->margins = w->shifts;
    for (int j = 0; j < n; j++)
        w->region[j] = region_of_field(w, j);
    return OLY_OK;
}

/* What a pass reads of field j: around each device's block, and the block. */
static oly_status find_wanted(lowering *w, const oly_tiling_pass *pass, int j, oly_wanted *wanted)
{
    int n = pass->n_needs[j];
    if (!oly_enabled(OLY_OPTIMISATION_CORNER_ELIMINATION))
        return OLY_OK; /* everything is wanted */
    oly_region *part = OLY_PLAN_NEW(w->p, oly_region, n + 1);
    OLY_PLAN_CHECK(part);
    for (int k = 0; k < n; k++) {
        const oly_tiling_need *need = &pass->needs[j][k];
        part[k] = oly_region_of_layout(&w->inside[j]);
        for (int d = 0; d < w->layout.rank; d++) {
            int64_t size = w->layout.shape[d], from = need->from[d] > 0 ? need->from[d] : 0;
            int64_t to = need->to[d] < size ? need->to[d] : size, at = from - w->tiling->form.align[j][d];
            if (is_cut(w, d) || need->lo[d] == need->hi[d])
                part[k].dim[d] = (oly_region_dim){.split = oly_split_sliced(&w->layout.split[d], from, 1),
                                                  .n = to - from,
                                                  .scale = 1,
                                                  .lo = at + need->lo[d],
                                                  .hi = at + need->hi[d],
                                                  .wraps = w->tiling->form.wraps[d]};
        }
    }
    part[n] = oly_region_of_layout(&w->inside[j]);
    *wanted = (oly_wanted){n + 1, part};
    return OLY_OK;
}

/* A field that is only written need not be brought. */
static bool is_read(const oly_tiling *m, int j)
{
    return m->pass.n_needs[j] > 0 || (m->first.steps > 0 && m->first.n_needs[j] > 0);
}

/* Plans the movements of fields; those with elements of one size are combined. */
static oly_status plan_moves(lowering *w, oly_block *b, int n_fields, const oly_movement *all)
{
    oly_movement *moves = OLY_PLAN_NEW(w->p, oly_movement, n_fields);
    OLY_PLAN_CHECK(moves);
    for (size_t element = 1; element <= 16; element *= 2) {
        int n = 0;
        for (int j = 0; j < n_fields; j++)
            if (oly_dtype_size(all[j].node->type.dtype) == element)
                moves[n++] = all[j];
        OLY_TRY(oly_plan_moves(w->p, b, n, moves));
    }
    return OLY_OK;
}

/* Brings what the first pass reads of all fields. */
static oly_status bring_margins(lowering *w, const oly_tiling_pass *pass, const int *from, const int *to)
{
    const oly_tiling_form *form = &w->tiling->form;
    oly_movement *moves = OLY_PLAN_NEW(w->p, oly_movement, form->n_fields);
    OLY_PLAN_CHECK(moves);
    int n = 0;
    for (int j = 0; j < form->n_fields; j++) {
        if (!is_read(w->tiling, j))
            continue;
        moves[n] = (oly_movement){.node = form->field[j],
                                  .from = &w->outside[j],
                                  .from_slot = from[j],
                                  .to = &w->region[j],
                                  .to_slot = to[j]};
        OLY_TRY(find_wanted(w, pass, j, &moves[n++].wanted));
    }
    return plan_moves(w, w->f->block, n, moves);
}

/* Brings what later passes read, within the two slots of each field: one new block of steps for each. */
static oly_status renew_margins(lowering *w, oly_block **blocks, int *const slots[2])
{
    const oly_tiling_form *form = &w->tiling->form;
    oly_movement *moves = OLY_PLAN_NEW(w->p, oly_movement, form->n_fields);
    int *of[2] = {OLY_PLAN_NEW(w->p, int, form->n_fields), OLY_PLAN_NEW(w->p, int, form->n_fields)};
    OLY_PLAN_CHECK(moves && of[0] ? of[1] : NULL);
    for (int k = 0; k < 2; k++) {
        blocks[k] = oly_block_new(w->p);
        OLY_PLAN_CHECK(blocks[k]);
    }
    for (size_t element = 1; element <= 16; element *= 2) {
        int n = 0;
        for (int j = 0; j < form->n_fields; j++) {
            if (oly_dtype_size(form->field[j]->type.dtype) != element || !is_read(w->tiling, j))
                continue;
            moves[n] = (oly_movement){.node = form->field[j], .from = &w->inside[j], .to = &w->region[j]};
            OLY_TRY(find_wanted(w, &w->tiling->pass, j, &moves[n].wanted));
            of[0][n] = slots[0][j];
            of[1][n++] = slots[1][j];
        }
        OLY_TRY(oly_plan_margins(w->p, blocks, n, moves, (const int *const[]){of[0], of[1]}));
    }
    return OLY_OK;
}

/* -- slots --------------------------------------------------------------------------------------------------------- */

/* all: also for fields that are only written. */
static oly_status new_slots(lowering *w, const oly_region *r, bool all, int *slots)
{
    for (int j = 0; j < w->tiling->form.n_fields; j++) {
        slots[j] = -1;
        if (!all && !is_read(w->tiling, j))
            continue;
        slots[j] = oly_slot_new(w->p, &r[j], oly_dtype_size(w->tiling->form.field[j]->type.dtype));
        if (slots[j] < 0)
            return OLY_MEMORY;
        w->p->plan->slots[slots[j]].block = w->f->block;
    }
    return OLY_OK;
}

static oly_status take_fields(lowering *w, oly_block **blocks)
{
    oly_tiling *m = w->tiling;
    int n = m->form.n_fields, *first = OLY_PLAN_NEW(w->p, int, n), *before = OLY_PLAN_NEW(w->p, int, n);
    int *field[2] = {OLY_PLAN_NEW(w->p, int, n), OLY_PLAN_NEW(w->p, int, n)};
    int64_t passes = (w->count + m->pass.steps - 1) / m->pass.steps;
    OLY_PLAN_CHECK(first && before && field[0] ? field[1] : NULL);
    for (int j = 0; j < n; j++) {
        before[j] = -1;
        if (is_read(m, j))
            OLY_TRY(oly_materialise(w->p, w->f, w->loop->in[j], &w->outside[j], &before[j]));
    }
    memcpy(first, before, sizeof *first * (size_t)n);
    if (w->margins) {
        OLY_TRY(new_slots(w, w->region, passes > 2, first));
        int n_steps = w->f->block->n_steps;
        OLY_TRY(bring_margins(w, m->first.steps ? &m->first : &m->pass, before, first));
        w->brings = w->f->block->n_steps == n_steps + 1 ? n_steps : -1;
    }
    memcpy(field[0], first, sizeof *first * (size_t)n);
    memcpy(field[1], first, sizeof *first * (size_t)n);
    if (!w->margins && passes > 2)
        OLY_TRY(new_slots(w, w->region, true, field[0]));
    if (passes > 1)
        OLY_TRY(new_slots(w, w->region, true, field[1]));
    if (w->margins && passes > 1)
        OLY_TRY(renew_margins(w, blocks, field));
    m->first_slot = first;
    m->field_slot[0] = field[0];
    m->field_slot[1] = field[1];
    return OLY_OK;
}

static oly_status new_blocks(lowering *w, const oly_layout *placed, int **slots)
{
    int n = w->tiling->form.n_fields;
    oly_region *r = OLY_PLAN_NEW(w->p, oly_region, n);
    *slots = OLY_PLAN_NEW(w->p, int, n);
    OLY_PLAN_CHECK(r ? *slots : NULL);
    for (int j = 0; j < n; j++)
        oly_region_from_layout(&r[j], &placed[j]);
    return new_slots(w, r, true, *slots);
}

/* Makes the slots of the results after the loop. If fields are placed differently inside, out_slot is a slot with the
 * inner layout. */
static oly_status settle(lowering *w)
{
    int *out;
    OLY_TRY(new_blocks(w, w->outside, &out));
    w->result = w->tiling->out_slot = out;
    for (int k = 0; k < w->f->graph->n_nodes; k++) {
        oly_node *n = w->f->graph->nodes[k];
        if (oly_ops[n->op].lowering != OLY_LOWER_RESULT || n->in[0] != w->loop)
            continue;
        oly_value *v = oly_value_of(w->f, n);
        OLY_TRY(oly_set_layout(w->p, v, &w->outside[n->params.dimension]));
        v->slot = out[n->params.dimension];
        v->block = w->f->block;
    }
    if (w->shifts) {
        OLY_TRY(new_blocks(w, w->inside, &out));
        w->tiling->out_slot = out;
    }
    return OLY_OK;
}

/* Moves results that are placed differently inside to their final layout, all in one movement. */
static oly_status hand_out(lowering *w)
{
    int n = w->tiling->form.n_fields;
    oly_movement *moves = OLY_PLAN_NEW(w->p, oly_movement, n);
    oly_region *to = OLY_PLAN_NEW(w->p, oly_region, n);
    OLY_PLAN_CHECK(moves ? to : NULL);
    for (int j = 0; j < n; j++) {
        oly_region_from_layout(&to[j], &w->outside[j]);
        moves[j] = (oly_movement){.node = w->tiling->form.field[j],
                                  .from = &w->inside[j],
                                  .from_slot = w->tiling->out_slot[j],
                                  .to = &to[j],
                                  .to_slot = w->result[j]};
    }
    return plan_moves(w, w->f->block, n, moves);
}

/* -- values from outside the loop ---------------------------------------------------------------------------------- */

/* For loops of the program the same around all of them: they are brought once. */
static void reach_of_fixed(const lowering *w, int number, int d, int64_t *lo, int64_t *hi)
{
    const oly_tiling *m = w->tiling;
    const oly_tiling_fixed *x = &m->form.fixed[number];
    *lo = m->form.region ? m->pass.fixed_lo[number][d] : oly_smaller(m->pass.lo[d], m->first.lo[d]) + x->low[d];
    *hi = m->form.region ? m->pass.fixed_hi[number][d] : oly_larger(m->pass.hi[d], m->first.hi[d]) + x->high[d];
}

static oly_region region_of_fixed(const lowering *w, int number)
{
    const oly_tiling_fixed *x = &w->tiling->form.fixed[number];
    oly_region r = {.mesh = w->layout.mesh, .rank = x->node->type.rank};
    for (int e = 0; e < r.rank; e++) {
        int d = x->dim[e];
        if (d < 0) {
            r.dim[e] =
                (oly_region_dim){.split = oly_split_whole(1), .n = 1, .scale = 1, .lo = x->at[e], .hi = x->at[e]};
            continue;
        }
        r.dim[e] = (oly_region_dim){
            .split = w->layout.split[d], .n = w->layout.shape[d], .scale = 1, .wraps = w->tiling->form.wraps[d]};
        reach_of_fixed(w, number, d, &r.dim[e].lo, &r.dim[e].hi);
        if (!is_cut(w, d)) { /* nothing is read beyond its ends, so no copy is needed */
            r.dim[e].lo = oly_larger(r.dim[e].lo, 0);
            r.dim[e].hi = oly_smaller(r.dim[e].hi, x->node->type.shape[e] - r.dim[e].n);
        }
    }
    return r;
}

static void place_fixed(const oly_tiling_fixed *x, const oly_region *r, int position, const oly_place *at,
                        oly_tiling_place *place)
{
    oly_box box = oly_region_box(r, x->node->type.shape, position);
    *place = (oly_tiling_place){.base = at->base, .offset = at->offset};
    for (int e = 0; e < r->rank; e++)
        if (x->dim[e] >= 0) {
            place->stride[x->dim[e]] = at->stride[e];
            place->origin[x->dim[e]] = box.lo[e];
        }
}

/* Brings values from outside once, before the loop, including margins. */
static oly_status bring_fixed(lowering *w, oly_reading *readings, oly_region *regions)
{
    const oly_tiling_form *form = &w->tiling->form;
    oly_frame *body = w->f->bodies[w->loop->index];
    oly_node **nodes = OLY_PLAN_NEW(w->p, oly_node *, form->n_fixed + 1);
    OLY_PLAN_CHECK(nodes);
    for (int k = 0; k < form->n_fixed; k++) {
        nodes[k] = (oly_node *)form->fixed[k].node;
        regions[k] = region_of_fixed(w, k);
    }
    OLY_TRY(oly_gather_reads(w->p, body, form->n_fixed, nodes, regions));
    for (int k = 0; k < form->n_fixed; k++) {
        OLY_TRY(oly_read_operand(w->p, body, nodes[k], &regions[k], &readings[k]));
        OLY_TRY(oly_constant_in_memory(w->p, w->f, w->layout.mesh, &readings[k]));
    }
    return OLY_OK;
}

/* A box of field j in the coordinates of the grid. */
static oly_box in_grid(const lowering *w, oly_box b, int j)
{
    for (int d = 0; d < b.rank; d++) {
        b.lo[d] += w->tiling->form.align[j][d];
        b.hi[d] += w->tiling->form.align[j][d];
    }
    return b;
}

static oly_status place_fields(lowering *w, int position, oly_tiling_device *v)
{
    int n = w->tiling->form.n_fields;
    oly_box *own = OLY_PLAN_NEW(w->p, oly_box, n), *field = OLY_PLAN_NEW(w->p, oly_box, n);
    OLY_PLAN_CHECK(own ? field : NULL);
    for (int j = 0; j < n; j++) {
        const int64_t *shape = w->inside[j].shape;
        field[j] = in_grid(w, oly_region_box(&w->region[j], shape, position), j);
        own[j] = v->block;
        for (int d = 0; d < w->layout.rank; d++) {
            int64_t lo = w->tiling->form.align[j][d], hi = lo + shape[d];
            own[j].lo[d] = oly_smaller(oly_larger(own[j].lo[d], lo), hi);
            own[j].hi[d] = oly_smaller(oly_larger(own[j].hi[d], lo), hi);
        }
    }
    v->own = own;
    v->field = field;
    return OLY_OK;
}

static oly_status fill_devices(lowering *w, const oly_reading *readings, const oly_region *regions, double *work)
{
    const oly_tiling_form *form = &w->tiling->form;
    oly_tiling_device *devices = OLY_PLAN_NEW(w->p, oly_tiling_device, w->p->plan->n_devices);
    OLY_PLAN_CHECK(devices);
    for (int d = 0; d < w->p->plan->n_devices; d++) {
        int position = oly_position_in(w->p, w->layout.mesh, d);
        if (position < 0)
            continue;
        oly_tiling_place *fixed = OLY_PLAN_NEW(w->p, oly_tiling_place, form->n_fixed + 1);
        OLY_PLAN_CHECK(fixed);
        for (int k = 0; k < form->n_fixed; k++)
            place_fixed(&form->fixed[k], &regions[k], position, &readings[k].place[d], &fixed[k]);
        devices[d].block = oly_layout_box(&w->layout, position);
        OLY_TRY(place_fields(w, position, &devices[d]));
        devices[d].here = oly_box_count(&devices[d].block) > 0;
        devices[d].fixed = fixed;
        *work += (double)oly_box_count(&devices[d].block);
    }
    w->tiling->device = w->devices = devices;
    return OLY_OK;
}

/* -- the whole step ------------------------------------------------------------------------------------------------ */

static void say_margin(oly_text *t, const char *comma, int64_t below, int64_t above, int d)
{
    if (below == above)
        oly_text_add(t, "%s %lld element%s each way along dimension %d", comma, (long long)below, below == 1 ? "" : "s",
                     d);
    else
        oly_text_add(t, "%s %lld element%s from below and %lld from above along dimension %d", comma, (long long)below,
                     below == 1 ? "" : "s", (long long)above, d);
}

static void describe(lowering *w, oly_step *s, const oly_block *margins)
{
    const oly_tiling *m = w->tiling;
    int64_t passes = (w->count + m->pass.steps - 1) / m->pass.steps;
    oly_text t = {0};
    int n_fields = 0;
    for (int j = 0; j < m->form.n_fields; j++)
        n_fields += is_read(m, j);
    if (m->form.region)
        oly_text_add(&t, "%d values of one step together", m->form.n_stages);
    else
        oly_text_add(&t, "%d field%s, %lld steps in %lld pass%s of up to %d", n_fields, n_fields == 1 ? "" : "s",
                     (long long)w->count, (long long)passes, passes == 1 ? "" : "es", m->pass.steps);
    const char *comma = "";
    for (int k = 0; margins && k < margins->n_steps; k++) {
        const oly_step *move = &margins->steps[k];
        s->bytes += move->bytes;
        s->wire += move->wire;
        s->messages += move->messages;
        s->members = move->members;
    }
    if (margins)
        oly_text_add(&t, m->form.region ? "; one halo exchange:" : "; one halo exchange per pass:");
    for (int d = 0; d < w->layout.rank && margins; d++) {
        int64_t lo = w->region[0].dim[d].lo + m->form.align[0][d], hi = w->region[0].dim[d].hi + m->form.align[0][d];
        if (lo || hi) {
            say_margin(&t, comma, -lo, hi, d);
            comma = ",";
        }
    }
    if (s->stencil.overlaps)
        oly_text_add(&t, "; %.0f %% of a pass overlaps communication", 100 * s->stencil.early);
    s->detail = oly_plan_say(w->p, "%s", oly_text_chars(&t));
    oly_text_free(&t);
}

static double instructions_of(const oly_tiling_form *form)
{
    double n = 0;
    for (int k = 0; k < form->n_stages; k++)
        n += form->stages[k].n_pieces ? form->stages[k].pieces[0].program.n_instructions : 0;
    return n;
}

static oly_status add_step(lowering *w)
{
    oly_tiling *m = w->tiling;
    oly_block *blocks[2] = {NULL, NULL};
    oly_reading *readings = OLY_PLAN_NEW(w->p, oly_reading, m->form.n_fixed + 1);
    oly_region *regions = OLY_PLAN_NEW(w->p, oly_region, m->form.n_fixed + 1);
    double points = 0;
    OLY_PLAN_CHECK(readings ? regions : NULL);
    OLY_TRY(bring_fixed(w, readings, regions));
    OLY_TRY(take_fields(w, blocks));
    OLY_TRY(settle(w));
    OLY_TRY(fill_devices(w, readings, regions, &points));
    for (int k = 0; k < m->form.n_fixed; k++)
        oly_reading_use(w->p, &readings[k]);
    for (int j = 0; j < m->form.n_fields; j++) {
        oly_slot_use(w->p, m->first_slot[j]);
        oly_slot_use(w->p, m->field_slot[0][j]);
        oly_slot_use(w->p, m->field_slot[1][j]);
        oly_slot_use(w->p, m->out_slot[j]);
    }
    oly_step *s = oly_step_add(w->p, w->f->block, OLY_STEP_STENCIL, m->form.field[0], "stencil");
    OLY_PLAN_CHECK(s);
    s->work = points * (double)w->count * instructions_of(&m->form);
    s->out_slot = m->out_slot[0];
    s->stencil.count = w->count;
    s->stencil.pass = m->pass.steps;
    s->stencil.first_slot = m->first_slot[0];
    for (int k = 0; k < 2; k++) {
        s->stencil.field_slot[k] = m->field_slot[k][0];
        s->stencil.margins[k] = blocks[k];
    }
    s->stencil.tiling = m;
    if (w->brings >= 0)
        OLY_TRY(oly_overlap_tiling(w->p, s, &w->f->block->steps[w->brings], m, w->devices));
    describe(w, s, blocks[0]);
    return w->shifts ? hand_out(w) : OLY_OK;
}

/* Are all fields split over the same axes? */
static oly_status find_layouts(lowering *w, bool *alike)
{
    oly_frame *body = w->f->bodies[w->loop->index];
    w->outside = OLY_PLAN_NEW(w->p, oly_layout, w->tiling->form.n_fields);
    OLY_PLAN_CHECK(w->outside);
    *alike = true;
    for (int j = 0; j < w->tiling->form.n_fields; j++) {
        oly_layout *l = &w->outside[j];
        *l = oly_node_layout(w->p, body, body->graph->inputs[1 + j]);
        for (int d = 0; d < l->rank && *alike; d++) {
            const oly_split *s = &l->split[d], *first = &w->outside[0].split[d];
            *alike = s->axes.n == first->axes.n && memcmp(s->axes.axis, first->axes.axis, s->axes.n) == 0 &&
                     (l->shape[d] != w->outside[0].shape[d] || oly_split_equal(s, first, l->shape[d]));
        }
        *alike = *alike && l->mesh == w->outside[0].mesh;
    }
    return OLY_OK;
}

/* grid_split: the split of the grid along a dimension that matches field j outside. field_split: that of field k in a
 * grid that is split so. */
static oly_split grid_split(const lowering *w, int j, int d)
{
    return oly_split_embedded(&w->outside[j].split[d], w->tiling->form.align[j][d]);
}

static oly_split field_split(const lowering *w, const oly_split *grid, int k, int d)
{
    return oly_split_sliced(grid, w->tiling->form.align[k][d], 1);
}

/* Splits the grid as suits most fields: the others must move before and after the loop. */
static void cut_dimension(lowering *w, int d)
{
    int n = w->tiling->form.n_fields, most_alike = 0;
    for (int j = 0; j < n && most_alike < n; j++) {
        oly_split grid = grid_split(w, j, d);
        int n_alike = 0;
        for (int k = 0; k < n; k++) {
            oly_split s = field_split(w, &grid, k, d);
            n_alike += oly_split_equal(&s, &w->outside[k].split[d], w->outside[k].shape[d]);
        }
        if (n_alike > most_alike)
            w->layout.split[d] = grid;
        most_alike = n_alike > most_alike ? n_alike : most_alike;
    }
    w->shifts = w->shifts || most_alike < n;
}

static oly_status find_cuts(lowering *w)
{
    const oly_tiling_form *form = &w->tiling->form;
    w->layout = w->outside[0];
    memcpy(w->layout.shape, form->shape, sizeof *form->shape * (size_t)form->rank);
    w->inside = OLY_PLAN_NEW(w->p, oly_layout, form->n_fields);
    OLY_PLAN_CHECK(w->inside);
    for (int d = 0; d < form->rank; d++) {
        cut_dimension(w, d);
        w->extent[d] = oly_split_cut(&w->layout.split[d], w->layout.shape[d], 1);
    }
    for (int j = 0; j < form->n_fields; j++) {
        w->inside[j] = w->outside[j];
        for (int d = 0; d < form->rank; d++)
            w->inside[j].split[d] = field_split(w, &w->layout.split[d], j, d);
    }
    return OLY_OK;
}

oly_status oly_lower_time_tiling(oly_planner *p, oly_frame *f, oly_node *n, bool *done)
{
    lowering w = {.p = p, .f = f, .loop = n, .count = n->params.upper - n->params.lower, .brings = -1};
    bool found, alike = false;
    if ((w.count < 2 && !n->params.unrolled) || !oly_enabled(OLY_OPTIMISATION_FIELD_LOOPS))
        return OLY_OK;
    w.tiling = OLY_PLAN_NEW(p, oly_tiling, 1);
    OLY_PLAN_CHECK(w.tiling);
    OLY_TRY(oly_tiling_find(p, n, &w.tiling->form, &found));
    if (found)
        OLY_TRY(find_layouts(&w, &alike));
    if (!alike)
        return OLY_OK;
    OLY_TRY(find_cuts(&w));
    w.tiling->lower = n->params.lower;
    OLY_TRY(check_groups(&w));
    OLY_TRY(choose_steps(&w, done));
    if (!*done)
        return OLY_OK;
    if (w.count % w.tiling->pass.steps)
        OLY_TRY(oly_tiling_unroll(p, &w.tiling->form, (int)(w.count % w.tiling->pass.steps), false, &w.tiling->first));
    OLY_TRY(find_regions(&w));
    return add_step(&w);
}
