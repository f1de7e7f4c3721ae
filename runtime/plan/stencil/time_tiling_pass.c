/* SPDX-License-Identifier: BSD-3-Clause */
/* One pass of several steps of a loop over fields (time_tiling.h): over which margins each stage of each step is
 * computed, what is read of the fields around what is written, which buffers of a tile hold values, and how large tiles
 * should be. Depends on the form and the number of steps alone. Called by time_tiling.c. */
#include "core/min_max.h"
#include "core/facts.h"
#include "core/error.h"
#include "plan/cost/cost.h"
#include "plan/stencil/time_tiling_code.h"
#include <string.h>

enum { MOST_NEEDS = 48, FEW_NEEDS = 4, ONE_NEED = 2 }; /* lists are shorter than these */

/* What is read of a value. */
typedef struct need_list {
    int n;
    oly_tiling_need *need; /* [limit] */
} need_list;

typedef struct unroller {
    const oly_tiling_form *form;
    oly_tiling_pass *pass;
    int limit;              /* of lists */
    need_list *needs;       /* of the stages of each step, then of the fields */
    oly_tiling_ref **field; /* [steps + 1][n_fields]: what the carries are before each step, and at the end */
} unroller;

/* -- what is needed ------------------------------------------------------------------------------------------------ */

static bool contains(const oly_tiling_need *a, const oly_tiling_need *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if (a->lo[d] > b->lo[d] || a->hi[d] < b->hi[d] || a->from[d] > b->from[d] || a->to[d] < b->to[d])
            return false;
    return true;
}

static oly_tiling_need hull_of(const oly_tiling_need *a, const oly_tiling_need *b, int rank)
{
    oly_tiling_need h = *a;
    for (int d = 0; d < rank; d++) {
        h.lo[d] = oly_smaller(a->lo[d], b->lo[d]);
        h.hi[d] = oly_larger(a->hi[d], b->hi[d]);
        h.from[d] = oly_smaller(a->from[d], b->from[d]);
        h.to[d] = oly_larger(a->to[d], b->to[d]);
    }
    return h;
}

/* Approximately how much larger the hull is than both together: corners that are never read. */
static double waste(const oly_tiling_need *a, const oly_tiling_need *b, int rank)
{
    oly_tiling_need h = hull_of(a, b, rank);
    double sizes[3] = {1, 1, 1}, both = 1;
    const oly_tiling_need *of[3] = {&h, a, b};
    for (int d = 0; d < rank; d++) {
        for (int k = 0; k < 3; k++)
            sizes[k] *= 16 + (double)(of[k]->hi[d] - of[k]->lo[d]);
        both *= 16 + (double)(oly_smaller(a->hi[d], b->hi[d]) - oly_larger(a->lo[d], b->lo[d]));
    }
    return sizes[0] - sizes[1] - sizes[2] + both;
}

static void put_need(need_list *l, const oly_tiling_need *need, int rank, int limit)
{
    int kept = 0;
    for (int k = 0; k < l->n; k++)
        if (contains(&l->need[k], need, rank))
            return;
    for (int k = 0; k < l->n; k++)
        if (!contains(need, &l->need[k], rank)) {
            if (kept < k)
                l->need[kept] = l->need[k];
            kept++;
        }
    l->need[kept++] = *need;
    l->n = kept;
    if (l->n < limit)
        return;
    int a = 0, b = 1;
    double best = -1;
    for (int i = 0; i < l->n; i++)
        for (int j = i + 1; j < l->n; j++) {
            double w = waste(&l->need[i], &l->need[j], rank);
            if (best < 0 || w < best) {
                best = w;
                a = i;
                b = j;
            }
        }
    oly_tiling_need h = hull_of(&l->need[a], &l->need[b], rank);
    l->need[b] = l->need[--l->n];
    l->need[a] = l->need[--l->n];
    put_need(l, &h, rank, limit);
}

static need_list *needs_of(unroller *u, oly_tiling_ref of, int step)
{
    if (of.kind == OLY_TILING_FIELD)
        of = u->field[step][of.index];
    else
        of.index += step * u->form->n_stages;
    return &u->needs[of.kind == OLY_TILING_STAGE ? of.index : u->pass->steps * u->form->n_stages + of.index];
}

/* What a piece reads where its stage is needed. If a pass has one step, elements outside the piece are left out. */
static void read_piece(unroller *u, const oly_tiling_piece *piece, const oly_tiling_need *at, int step)
{
    int rank = u->form->rank;
    oly_tiling_need within = *at;
    for (int d = 0; d < rank && u->limit == MOST_NEEDS; d++)
        if (at->lo[d] == at->hi[d] && !u->form->wraps[d]) {
            within.from[d] = oly_larger(at->from[d], piece->lo[d] - at->lo[d]);
            within.to[d] = oly_smaller(at->to[d], piece->hi[d] - at->lo[d]);
            if (within.to[d] <= within.from[d])
                return;
        }
    for (int k = 0; k < piece->program.n_loads; k++) {
        const oly_tiling_load *load = &piece->loads[k];
        if (load->of.kind != OLY_TILING_FIELD && load->of.kind != OLY_TILING_STAGE)
            continue;
        oly_tiling_need need = within;
        for (int d = 0; d < rank; d++) {
            need.lo[d] += load->shift[d];
            need.hi[d] += load->shift[d];
        }
        put_need(needs_of(u, load->of, step), &need, rank, u->limit);
    }
}

/* Members of a group are needed where one of them is. */
static void join_needs(unroller *u, const oly_tiling_group *g, int step)
{
    need_list *all = &u->needs[step * u->form->n_stages + g->first];
    for (int k = 1; k < g->n; k++)
        for (int j = 0; j < all[k].n; j++)
            put_need(&all[0], &all[k].need[j], u->form->rank, u->limit);
    for (int k = 1; k < g->n; k++) {
        all[k].n = all[0].n;
        memcpy(all[k].need, all[0].need, sizeof *all[0].need * (size_t)all[0].n);
    }
}

static void find_needs(unroller *u)
{
    int group = u->form->n_groups; /* those from here on have been joined */
    const oly_tiling_form *form = u->form;
    oly_tiling_pass *pass = u->pass;
    oly_tiling_need here = {{0}, {0}, {0}, {0}};
    for (int d = 0; d < form->rank; d++)
        here.to[d] = form->shape[d];
    for (int j = 0; j < form->n_fields; j++)
        put_need(needs_of(u, (oly_tiling_ref){OLY_TILING_FIELD, j}, pass->steps), &here, form->rank, u->limit);
    for (int k = pass->steps * form->n_stages - 1; k >= 0; k--) {
        oly_tiling_instance *i = &pass->instance[k];
        const need_list *l = &u->needs[k];
        group = k % form->n_stages == form->n_stages - 1 ? form->n_groups : group;
        if (group > 0 && form->groups[group - 1].first + form->groups[group - 1].n == k % form->n_stages + 1)
            join_needs(u, &form->groups[--group], k / form->n_stages);
        *i = (oly_tiling_instance){.stage = k % form->n_stages,
                                   .step = k / form->n_stages,
                                   .needed = l->n > 0,
                                   .target = -1,
                                   .buffer = -1,
                                   .group_buffer = -1,
                                   .fields = u->field[k / form->n_stages]};
        for (int j = 0; j < l->n; j++)
            for (int d = 0; d < form->rank; d++) {
                i->lo[d] = j == 0 ? l->need[j].lo[d] : oly_smaller(i->lo[d], l->need[j].lo[d]);
                i->hi[d] = j == 0 ? l->need[j].hi[d] : oly_larger(i->hi[d], l->need[j].hi[d]);
                pass->lo[d] = oly_smaller(pass->lo[d], i->lo[d]);
                pass->hi[d] = oly_larger(pass->hi[d], i->hi[d]);
            }
        const oly_tiling_stage *s = &form->stages[i->stage];
        for (int j = 0; j < l->n; j++)
            for (int piece = 0; piece < s->n_pieces; piece++)
                read_piece(u, &s->pieces[piece], &l->need[j], i->step);
    }
}

static oly_status keep_needs(oly_planner *p, unroller *u)
{
    oly_tiling_pass *pass = u->pass;
    int n = u->form->n_fields;
    pass->n_needs = OLY_PLAN_NEW(p, int, n);
    pass->needs = OLY_PLAN_NEW(p, oly_tiling_need *, n);
    OLY_PLAN_CHECK(pass->n_needs ? pass->needs : NULL);
    for (int j = 0; j < n; j++) {
        const need_list *l = &u->needs[pass->steps * u->form->n_stages + j];
        pass->n_needs[j] = l->n;
        pass->needs[j] = OLY_PLAN_NEW(p, oly_tiling_need, l->n + 1);
        OLY_PLAN_CHECK(pass->needs[j]);
        memcpy(pass->needs[j], l->need, sizeof *l->need * (size_t)l->n);
        for (int k = 0; k < l->n; k++)
            for (int d = 0; d < u->form->rank; d++) {
                pass->field_lo[d] = oly_smaller(pass->field_lo[d], l->need[k].lo[d]);
                pass->field_hi[d] = oly_larger(pass->field_hi[d], l->need[k].hi[d]);
            }
    }
    return OLY_OK;
}

static void note_fixed(oly_tiling_pass *pass, const oly_tiling_instance *i, int rank, int n,
                       const oly_tiling_load *loads)
{
    for (int l = 0; l < n; l++)
        for (int d = 0; d < rank && loads[l].of.kind == OLY_TILING_FIXED; d++) {
            int64_t *lo = &pass->fixed_lo[loads[l].of.index][d], *hi = &pass->fixed_hi[loads[l].of.index][d];
            *lo = oly_smaller(*lo, i->lo[d] + loads[l].shift[d]);
            *hi = oly_larger(*hi, i->hi[d] + loads[l].shift[d]);
        }
}

/* By stages, by their machine code, and by groups. */
static oly_status find_fixed(oly_planner *p, const oly_tiling_form *form, oly_tiling_pass *pass)
{
    size_t bytes = sizeof *pass->fixed_lo * (size_t)form->n_fixed;
    pass->fixed_lo = OLY_PLAN_NEW(p, oly_tiling_point, form->n_fixed + 1);
    pass->fixed_hi = OLY_PLAN_NEW(p, oly_tiling_point, form->n_fixed + 1);
    OLY_PLAN_CHECK(pass->fixed_lo ? pass->fixed_hi : NULL);
    memset(pass->fixed_lo, 0, bytes);
    memset(pass->fixed_hi, 0, bytes);
    for (int k = 0; k < pass->steps * form->n_stages; k++) {
        const oly_tiling_instance *i = &pass->instance[k];
        const oly_tiling_stage *s = &form->stages[i->stage];
        for (int j = 0; j < s->n_pieces && i->needed; j++) {
            note_fixed(pass, i, form->rank, s->pieces[j].program.n_loads, s->pieces[j].loads);
            note_fixed(pass, i, form->rank, s->pieces[j].machine.n_loads, s->pieces[j].machine_loads);
        }
    }
    for (int k = 0; k < pass->steps * form->n_groups; k++) {
        const oly_tiling_group *g = &form->groups[k % form->n_groups];
        const oly_tiling_instance *i = &pass->instance[k / form->n_groups * form->n_stages + g->first];
        for (int j = 0; j < g->n_pieces && i->needed; j++)
            note_fixed(pass, i, form->rank, g->pieces[j].program.n_loads, g->pieces[j].loads);
    }
    return OLY_OK;
}

/* -- buffers ------------------------------------------------------------------------------------------------------- */

/* A result that is not read beyond the tile is written directly to its place. */
static void find_targets(unroller *u)
{
    for (int j = u->form->n_fields - 1; j >= 0; j--) {
        oly_tiling_ref of = u->field[u->pass->steps][j];
        oly_tiling_instance *i = of.kind == OLY_TILING_STAGE ? &u->pass->instance[of.index] : NULL;
        bool exact = i != NULL;
        for (int d = 0; d < u->form->rank && exact; d++)
            exact = i->lo[d] == 0 && i->hi[d] == 0;
        if (exact)
            i->target = j;
    }
}

/* What is computed for instance i, at `now`, reads what these loads are. */
static void note_reads(const unroller *u, int *last, int now, const oly_tiling_instance *i, int n,
                       const oly_tiling_load *loads)
{
    for (int l = 0; l < n; l++) {
        oly_tiling_ref of = loads[l].of;
        if (of.kind == OLY_TILING_FIELD)
            of = i->fields[of.index];
        else if (of.kind == OLY_TILING_STAGE)
            of.index += i->step * u->form->n_stages;
        if (of.kind == OLY_TILING_STAGE)
            last[of.index] = now;
    }
}

/* Machine code may read more, and later, than the stages do. */
static void note_last(const unroller *u, int *last, int k)
{
    const oly_tiling_stage *s = &u->form->stages[u->pass->instance[k].stage];
    for (int j = 0; j < s->n_pieces && u->pass->instance[k].needed; j++) {
        note_reads(u, last, k, &u->pass->instance[k], s->pieces[j].program.n_loads, s->pieces[j].loads);
        note_reads(u, last, k, &u->pass->instance[k], s->pieces[j].machine.n_loads, s->pieces[j].machine_loads);
    }
}

static oly_status give_buffers(oly_planner *p, unroller *u)
{
    oly_tiling_pass *pass = u->pass;
    int n = pass->steps * u->form->n_stages;
    int *last = OLY_PLAN_NEW(p, int, n + 1), *holder = OLY_PLAN_NEW(p, int, n + 1);
    OLY_PLAN_CHECK(last ? holder : NULL);
    for (int k = 0; k < n; k++)
        last[k] = -1;
    for (int k = 0; k < n; k++)
        note_last(u, last, k);
    for (int j = 0; j < u->form->n_fields; j++)
        if (u->field[pass->steps][j].kind == OLY_TILING_STAGE)
            last[u->field[pass->steps][j].index] = n;
    for (int k = 0; k < n; k++) {
        oly_tiling_instance *i = &pass->instance[k];
        if (!i->needed || i->target >= 0)
            continue;
        int b = 0;
        while (b < pass->n_buffers && last[holder[b]] >= k)
            b++;
        if (b == pass->n_buffers)
            pass->n_buffers++;
        holder[b] = k;
        i->buffer = b;
    }
    return OLY_OK;
}

/* A group overwrites nothing that it reads: it reads next to elements that it has already written. */
static oly_status give_group_buffers(oly_planner *p, unroller *u)
{
    oly_tiling_pass *pass = u->pass;
    const oly_tiling_form *form = u->form;
    int n = pass->steps * form->n_stages, n_groups = pass->steps * form->n_groups;
    int *last = OLY_PLAN_NEW(p, int, n + 1), *holder = OLY_PLAN_NEW(p, int, n + 1);
    OLY_PLAN_CHECK(last ? holder : NULL);
    for (int k = 0; k < n_groups; k++) {
        const oly_tiling_group *g = &form->groups[k % form->n_groups];
        int step = k / form->n_groups;
        for (int j = 0; j < g->n; j++)
            last[step * form->n_stages + g->first + j] = k;
        for (int j = 0; j < g->n_pieces && g->n_stored > 0; j++)
            note_reads(u, last, k, &pass->instance[step * form->n_stages], g->pieces[j].program.n_loads,
                       g->pieces[j].loads);
    }
    for (int j = 0; j < form->n_fields; j++)
        if (u->field[pass->steps][j].kind == OLY_TILING_STAGE)
            last[u->field[pass->steps][j].index] = n_groups;
    for (int k = 0; k < n_groups; k++) {
        const oly_tiling_group *g = &form->groups[k % form->n_groups];
        for (int j = 0; j < g->n_stored; j++) {
            int stage = k / form->n_groups * form->n_stages + g->stored[j], b = 0;
            oly_tiling_instance *i = &pass->instance[stage];
            if (!i->needed || i->target >= 0)
                continue;
            while (b < pass->n_group_buffers && last[holder[b]] >= k)
                b++;
            if (b == pass->n_group_buffers)
                pass->n_group_buffers++;
            holder[b] = stage;
            i->group_buffer = b;
        }
    }
    return OLY_OK;
}

oly_status oly_tiling_unroll(oly_planner *p, const oly_tiling_form *form, int steps, bool roughly,
                             oly_tiling_pass *pass)
{
    unroller u = {.form = form,
                  .pass = pass,
                  .limit = steps == 1 && !form->unrolled ? MOST_NEEDS
                           : roughly                     ? ONE_NEED
                                                         : FEW_NEEDS};
    int n = steps * form->n_stages;
    *pass = (oly_tiling_pass){.steps = steps};
    pass->instance = OLY_PLAN_NEW(p, oly_tiling_instance, n + 1);
    u.field = OLY_PLAN_NEW(p, oly_tiling_ref *, steps + 1);
    OLY_PLAN_CHECK(pass->instance ? u.field : NULL);
    for (int s = 0; s <= steps; s++) {
        u.field[s] = OLY_PLAN_NEW(p, oly_tiling_ref, form->n_fields);
        OLY_PLAN_CHECK(u.field[s]);
        for (int j = 0; j < form->n_fields; j++) {
            oly_tiling_ref out = form->out[j];
            if (s == 0)
                u.field[s][j] = (oly_tiling_ref){OLY_TILING_FIELD, j};
            else if (out.kind == OLY_TILING_FIELD)
                u.field[s][j] = u.field[s - 1][out.index];
            else
                u.field[s][j] = (oly_tiling_ref){OLY_TILING_STAGE, (s - 1) * form->n_stages + out.index};
        }
    }
    pass->result = u.field[steps];
    size_t lists = (size_t)n + (size_t)form->n_fields;
    u.needs = oly_calloc(lists, sizeof *u.needs);
    oly_tiling_need *memory = oly_calloc(lists * (size_t)u.limit, sizeof *memory);
    oly_status st = u.needs && memory ? OLY_OK : oly_out_of_memory(0, "a plan");
    for (size_t k = 0; k < lists && st == OLY_OK; k++)
        u.needs[k].need = memory + k * (size_t)u.limit;
    if (st == OLY_OK) {
        find_needs(&u);
        st = keep_needs(p, &u);
    }
    oly_release(memory);
    oly_release(u.needs);
    OLY_TRY(st);
    OLY_TRY(find_fixed(p, form, pass));
    find_targets(&u);
    OLY_TRY(give_buffers(p, &u));
    return give_group_buffers(p, &u);
}

oly_status oly_tiling_reach(oly_planner *p, const oly_stencil *stencil, int steps, int *n,
                            const oly_tiling_need **needs)
{
    oly_tiling_need memory[2][FEW_NEEDS + 1], *kept;
    need_list before = {1, memory[0]}, after = {0, memory[1]};
    memset(&memory[0][0], 0, sizeof memory[0][0]);
    for (int step = 0; step < steps; step++) {
        for (int j = 0; j < before.n; j++)
            for (int t = -1; t < stencil->n_taps; t++) { /* elements that are not replaced stay */
                oly_tiling_need need = before.need[j];
                for (int d = 0; d < stencil->rank && t >= 0; d++) {
                    need.lo[d] += stencil->offset[t][d];
                    need.hi[d] += stencil->offset[t][d];
                }
                put_need(&after, &need, stencil->rank, FEW_NEEDS);
            }
        need_list swap = before;
        before = after;
        after = (need_list){0, swap.need};
    }
    *n = before.n;
    *needs = kept = OLY_PLAN_NEW(p, oly_tiling_need, before.n + 1);
    OLY_PLAN_CHECK(kept);
    memcpy(kept, before.need, sizeof *kept * (size_t)before.n);
    return OLY_OK;
}

/* -- tiles --------------------------------------------------------------------------------------------------------- */

enum {
    SHORTEST_ROW = 256,
    TOGETHER = 8, /* elements in an operation of machine code, which is counted as one on one element */
    A_ROW = 32,   /* operations that take as long as beginning a row, */
    A_BOX = 512   /* and a box */
};
static const double part_of_row = 2; /* parts of rows of fields are fetched later, and share fewer sets of the cache */

static double points_of(const oly_tiling_piece *piece)
{
    double points = 1;
    for (int d = 0; d < OLY_TILING_RANK; d++)
        points *= (double)oly_larger(1, piece->hi[d] - piece->lo[d]);
    return points;
}

static double instructions_of(const oly_tiling_stage *s)
{
    double largest = 0, n = 0;
    for (int k = 0; k < s->n_pieces; k++) {
        double points = points_of(&s->pieces[k]);
        if (points > largest) {
            largest = points;
            n = s->pieces[k].n_taps ? (s->pieces[k].n_taps + 3) / 4 : s->pieces[k].program.n_instructions;
        }
    }
    return n;
}

/* Machine code computes several elements at once, and keeps splats in registers. */
static double vector_operations(const oly_tile_program *p)
{
    return (double)(p->n_loads + p->n_stores + oly_tiling_operations(p)) / TOGETHER;
}

/* Of the piece with the most elements. */
static double instructions_of_group(const oly_tiling_form *form, const oly_tiling_group *g)
{
    const oly_tiling_stage *s = &form->stages[g->first];
    double largest = 0, n = 0;
    for (int k = 0; k < g->n_pieces; k++) {
        double points = points_of(&s->pieces[k]);
        if (points > largest) {
            largest = points;
            n = vector_operations(&g->pieces[k].program);
        }
    }
    return n;
}

/* What a tile of these extents computes in one box of a stage or group, in operations on elements. */
static double box_work(const oly_tiling_form *form, const oly_tiling_instance *i, const int64_t *tile,
                       double instructions)
{
    double n = 1;
    for (int d = 0; d < form->rank; d++)
        n *= (double)(tile[d] + i->hi[d] - i->lo[d]);
    return n * instructions +
           n / (double)(tile[form->rank - 1] + i->hi[form->rank - 1] - i->lo[form->rank - 1]) * A_ROW + A_BOX;
}

static double work_of(const oly_tiling_form *form, const oly_tiling_pass *pass, const int64_t *tile)
{
    double work = 0;
    if (form->n_groups == 0)
        for (int k = 0; k < pass->steps * form->n_stages; k++)
            if (pass->instance[k].needed)
                work += box_work(form, &pass->instance[k], tile, instructions_of(&form->stages[k % form->n_stages]));
    for (int k = 0; k < pass->steps * form->n_groups; k++) {
        const oly_tiling_group *g = &form->groups[k % form->n_groups];
        const oly_tiling_instance *i = &pass->instance[k / form->n_groups * form->n_stages + g->first];
        if (i->needed && g->n_stored > 0)
            work += box_work(form, i, tile, instructions_of_group(form, g));
    }
    return work;
}

/* Seconds per step and element: the instructions of tiles of these extents with their margins, and the memory traffic
 * of fields. */
static double cost_of(const oly_tiling_form *form, const oly_tiling_pass *pass, const int64_t *extent,
                      const int64_t *tile)
{
    double points = 1, read = 1, bytes = 0;
    bool whole_rows = tile[form->rank - 1] >= extent[form->rank - 1];
    for (int d = 0; d < form->rank; d++) {
        points *= (double)tile[d];
        read *= (double)(tile[d] + pass->field_hi[d] - pass->field_lo[d]);
    }
    for (int j = 0; j < form->n_fields; j++)
        bytes += (double)oly_dtype_size(form->field[j]->type.dtype) * (read + points);
    for (int k = 0; k < form->n_fixed; k++)
        bytes += (double)oly_dtype_size(form->fixed[k].node->type.dtype) * read;
    return (oly_cost_operations(work_of(form, pass, tile)) +
            oly_cost_memory(whole_rows ? bytes : part_of_row * bytes)) /
           points / pass->steps;
}

double oly_tiling_tile(const oly_tiling_form *form, const oly_tiling_pass *pass, const int64_t *extent, int64_t *tile)
{
    int64_t row = extent[form->rank - 1], window = oly_facts_now()->tile_bytes;
    double points = 1, best = -1;
    size_t element = 1;
    for (int j = 0; j < form->n_fields; j++)
        if (oly_dtype_size(form->field[j]->type.dtype) > element)
            element = oly_dtype_size(form->field[j]->type.dtype);
    window /= (int64_t)element * ((form->n_groups > 0 ? pass->n_group_buffers : pass->n_buffers) + 1);
    for (int d = 0; d < form->rank; d++)
        points *= (double)extent[d];
    for (int parts = 1; parts <= 1024; parts *= 2) { /* rows as long as possible, or shorter ones and more of them */
        int64_t t[OLY_TILING_RANK], left = window;
        for (int d = form->rank - 1; d >= 0; d--) {
            int64_t margin = pass->hi[d] - pass->lo[d], room = left;
            if (d == 1 && form->rank == 3) /* as many rows as slabs */
                for (room = 1; (room + 1) * (room + 1) <= left;)
                    room++;
            t[d] = d == form->rank - 1 ? (row + parts - 1) / parts : oly_larger(room - margin, 1);
            t[d] = oly_larger(1, oly_smaller(t[d], extent[d]));
            left = oly_larger(1, left / (t[d] + margin));
        }
        if (form->rank == 1)
            t[0] = oly_larger(16, oly_smaller(extent[0], window - pass->hi[0] + pass->lo[0]));
        double cost = cost_of(form, pass, extent, t);
        if (best < 0 || cost < best) {
            best = cost;
            memcpy(tile, t, sizeof t);
        }
        if (form->rank == 1 || row / (2 * parts) < SHORTEST_ROW)
            break;
    }
    return best * points;
}
