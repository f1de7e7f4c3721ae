/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of stages of a loop over fields (time_tiling.h) that machine code computes together, element by element: one loop with several
 * results, in which what only the group reads stays in registers. Two stages may be in a group if one reads the other at the same element,
 * and none at another one, directly or through others. So stages have levels, which a read of another element ends:
 *
 *      slopes of h, u, v (level 0)  ->  fluxes, which read slopes next to them (level 1)  ->  h, u, v after the step (level 2)
 *
 * Stages are put in the order of levels, those that read each other at the same element together. A value that another group reads is
 * written to a buffer, or computed again there if that takes few operations. Bits are those of the stages. Members of a group are needed over
 * the same elements, machine code or not; where that would make other devices send more, groups are divided. Called by time_tiling_fuse.c and
 * time_tiling.c. */
#include "plan/stencil/time_tiling_group.h"
#include "core/error.h"
#include <string.h>

enum {
    MOST_AGAIN = 4, /* operations more, instead of a buffer */
    MOST_MEMO = 512,
    LARGEST = 240 /* instructions, for which machine code has room (kernels/x86/generator.h) */
};

typedef struct computed {
    int stage, value;
    int64_t shift[OLY_TILING_RANK];
} computed;

typedef struct grouper {
    oly_planner *p;
    oly_tiling_form *form;
    oly_tiling_code *code;
    int *level, *root, *of; /* [n_stages] of: the group */
    int *readers;           /* [n_stages] stages that read it */
    bool *stored;           /* [n_stages] in a buffer, or a result */
    int n_memo, group, piece;
    computed memo[MOST_MEMO];
    bool again; /* a stage turned out to need a buffer */
} grouper;

/* -- levels ------------------------------------------------------------------------------------------------------------------ */

static bool is_alike(const oly_tiling_form *form, const oly_tiling_stage *a, const oly_tiling_stage *b)
{
    bool alike = a->n_pieces == b->n_pieces;
    for (int d = 0; d < form->rank && alike; d++)
        alike = a->align[d] == b->align[d] && a->node->type.shape[d] == b->node->type.shape[d];
    for (int k = 0; k < a->n_pieces && alike; k++)
        for (int d = 0; d < form->rank && alike; d++)
            alike = a->pieces[k].lo[d] == b->pieces[k].lo[d] && a->pieces[k].hi[d] == b->pieces[k].hi[d];
    return alike;
}

static bool is_here(const oly_tiling_form *form, const int64_t *shift)
{
    for (int d = 0; d < form->rank; d++)
        if (shift[d] != 0)
            return false;
    return true;
}

static int root_of(const grouper *g, int stage)
{
    while (g->root[stage] != stage)
        stage = g->root[stage];
    return stage;
}

typedef void each_read(grouper *g, int reader, const oly_tiling_load *load);

static void each_stage_read(grouper *g, int reader, each_read *call)
{
    const oly_tiling_stage *s = &g->form->stages[reader];
    for (int k = 0; k < s->n_pieces; k++)
        for (int l = 0; l < s->pieces[k].program.n_loads; l++)
            if (s->pieces[k].loads[l].of.kind == OLY_TILING_STAGE)
                call(g, reader, &s->pieces[k].loads[l]);
}

static void raise_level(grouper *g, int reader, const oly_tiling_load *load)
{
    const oly_tiling_stage *stages = g->form->stages;
    int from = load->of.index;
    bool together = is_here(g->form, load->shift) && is_alike(g->form, &stages[from], &stages[reader]);
    if (g->level[reader] < g->level[from] + !together)
        g->level[reader] = g->level[from] + !together;
}

static void join(grouper *g, int reader, const oly_tiling_load *load)
{
    int a = root_of(g, load->of.index), b = root_of(g, reader);
    if (g->level[load->of.index] == g->level[reader])
        g->root[a > b ? a : b] = a < b ? a : b;
}

static bool comes_before(const grouper *g, int a, int b)
{
    int x = root_of(g, a), y = root_of(g, b);
    if (g->level[a] != g->level[b])
        return g->level[a] < g->level[b];
    return x != y ? x < y : a < b;
}

static oly_status renumber(grouper *g, const int *to)
{
    oly_tiling_form *form = g->form;
    for (int k = 0; k < form->n_stages; k++)
        for (int j = 0; j < form->stages[k].n_pieces; j++) {
            oly_tiling_piece *piece = &form->stages[k].pieces[j];
            oly_tiling_load *loads = OLY_PLAN_NEW(g->p, oly_tiling_load, piece->program.n_loads + 1);
            OLY_PLAN_CHECK(loads); /* pieces may share theirs */
            for (int l = 0; l < piece->program.n_loads; l++) {
                loads[l] = piece->loads[l];
                if (loads[l].of.kind == OLY_TILING_STAGE)
                    loads[l].of.index = to[loads[l].of.index];
            }
            piece->loads = loads;
        }
    for (int j = 0; j < form->n_fields; j++)
        if (form->out[j].kind == OLY_TILING_STAGE)
            form->out[j].index = to[form->out[j].index];
    return OLY_OK;
}

/* Puts stages in the order of levels, and those of one group together; of: their groups. */
static oly_status sort_stages(grouper *g)
{
    oly_tiling_form *form = g->form;
    int n = form->n_stages, *order = OLY_PLAN_NEW(g->p, int, n + 1), *to = OLY_PLAN_NEW(g->p, int, n + 1);
    oly_tiling_stage *stages = OLY_PLAN_NEW(g->p, oly_tiling_stage, n + 1);
    OLY_PLAN_CHECK(order && to ? stages : NULL);
    for (int k = 0; k < n; k++) {
        g->level[k] = 0;
        g->root[k] = k;
        each_stage_read(g, k, raise_level);
    }
    for (int k = 0; k < n; k++)
        each_stage_read(g, k, join);
    for (int k = 0; k < n; k++) {
        int at = k;
        for (; at > 0 && comes_before(g, k, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    for (int k = 0; k < n; k++) {
        to[order[k]] = k;
        stages[k] = form->stages[order[k]];
        bool same = k > 0 && root_of(g, order[k]) == root_of(g, order[k - 1]);
        g->of[k] = k == 0 ? 0 : g->of[k - 1] + !same;
    }
    form->stages = stages;
    return renumber(g, to);
}

/* -- which values are written to buffers -------------------------------------------------------------------------------------- */

static int most_operations(const oly_tiling_stage *s)
{
    int most = 0;
    for (int k = 0; k < s->n_pieces; k++) {
        int n = oly_tiling_operations(&s->pieces[k].machine);
        most = n > most ? n : most;
    }
    return most;
}

/* Operations that compute the stage where it is read; more than `most`: any such number. alone: only those that nothing else needs. */
static int operations_for(const grouper *g, int stage, bool alone, int most)
{
    const oly_tiling_stage *s = &g->form->stages[stage];
    int n = most_operations(s);
    for (int l = 0; s->n_pieces > 0 && l < s->pieces[0].machine.n_loads && n <= most; l++) {
        oly_tiling_ref of = s->pieces[0].machine_loads[l].of;
        bool counted = of.kind == OLY_TILING_STAGE && !g->stored[of.index];
        if (counted && !(alone && (g->readers[of.index] > 1 || g->of[of.index] != g->of[stage])))
            n += operations_for(g, of.index, alone, most - n);
    }
    return n;
}

/* Reads of the stage by other groups, one for each element that is read; *here: does its own group read it? */
static int reads_elsewhere(const grouper *g, int stage, bool *here)
{
    const oly_tiling_form *form = g->form;
    int n = 0;
    *here = false;
    for (int k = stage + 1; k < form->n_stages; k++) {
        int most = 0;
        for (int j = 0; j < form->stages[k].n_pieces; j++) {
            const oly_tiling_piece *piece = &form->stages[k].pieces[j];
            int reads = 0;
            for (int l = 0; l < piece->machine.n_loads; l++)
                reads +=
                    piece->machine_loads[l].of.kind == OLY_TILING_STAGE && piece->machine_loads[l].of.index == stage;
            most = reads > most ? reads : most;
        }
        *here = *here || (most > 0 && g->of[k] == g->of[stage]);
        n += g->of[k] == g->of[stage] ? 0 : most;
    }
    return n;
}

static bool is_stored(const grouper *g, int stage)
{
    bool here;
    int n = reads_elsewhere(g, stage, &here);
    if (oly_tiling_is_result(g->form, stage) || (n > 0 && oly_tiling_counts(&g->form->stages[stage])))
        return true;
    if (n == 0)
        return false;
    int saved = here ? 0 : operations_for(g, stage, true, INT16_MAX);
    return n * operations_for(g, stage, false, MOST_AGAIN + saved) > MOST_AGAIN + saved;
}

static void choose_stored(grouper *g)
{
    for (int k = 0; k < g->form->n_stages; k++)
        g->stored[k] = g->stored[k] || is_stored(g, k);
}

/* -- programs ------------------------------------------------------------------------------------------------------------------ */

/* The piece of a stage that computes it for all elements of `at`, moved by shift; NULL: there is none. */
static const oly_tiling_piece *covering(const oly_tiling_form *form, const oly_tiling_stage *s,
                                        const oly_tiling_piece *at, const int64_t *shift)
{
    for (int k = 0; k < s->n_pieces; k++)
        if (oly_tiling_covers(form, &s->pieces[k], at, shift))
            return &s->pieces[k];
    return NULL;
}

static int add(grouper *g, int stage, const oly_tiling_piece *at, const int64_t *shift);

static int add_load(grouper *g, const oly_tiling_load *load, oly_dtype dtype, const oly_tiling_piece *at,
                    const int64_t *shift)
{
    oly_tiling_load moved = *load;
    for (int d = 0; d < OLY_TILING_RANK; d++)
        moved.shift[d] += load->of.kind == OLY_TILING_COUNTER ? 0 : shift[d];
    return load->of.kind == OLY_TILING_STAGE ? add(g, load->of.index, at, moved.shift)
                                             : oly_tiling_read(g->code, &moved, dtype);
}

static int add_program(grouper *g, const oly_tiling_piece *piece, const oly_tiling_piece *at, const int64_t *shift)
{
    const oly_tile_program *p = &piece->machine;
    int value_of[OLY_TILE_REGISTERS];
    for (int l = 0; l < p->n_loads; l++) {
        int value = add_load(g, &piece->machine_loads[l], (oly_dtype)p->load_dtype[l], at, shift);
        if (value < 0)
            return -1;
        value_of[p->load_register[l]] = value;
    }
    for (int k = 0; k < p->n_instructions; k++) {
        oly_tile_instruction i = p->instructions[k];
        for (int j = 0; j < 3; j++)
            if (i.in[j] >= 0)
                i.in[j] = (int16_t)value_of[i.in[j]];
        i.out = 0;
        int value = oly_tiling_add_once(g->code, &i);
        if (value < 0)
            return -1;
        value_of[p->instructions[k].out] = value;
    }
    return value_of[p->store_register[0]];
}

/* The value of a stage for elements of `at`, moved by shift: read where another group has written it, else computed. -1: there is no room, or
 * (again) it must be written. */
static int add(grouper *g, int stage, const oly_tiling_piece *at, const int64_t *shift)
{
    const oly_tiling_stage *s = &g->form->stages[stage];
    bool own = g->of[stage] == g->group;
    for (int k = 0; k < g->n_memo; k++)
        if (g->memo[k].stage == stage && memcmp(g->memo[k].shift, shift, sizeof g->memo[k].shift) == 0)
            return g->memo[k].value;
    int value;
    if (!own && g->stored[stage]) {
        oly_tiling_load load = {.of = {OLY_TILING_STAGE, stage}};
        memcpy(load.shift, shift, sizeof load.shift);
        value = oly_tiling_read(g->code, &load, s->node->type.dtype);
    } else {
        const oly_tiling_piece *piece = own ? &s->pieces[g->piece] : covering(g->form, s, at, shift);
        if (!piece) {
            g->stored[stage] = g->again = true;
            return -1;
        }
        value = piece->machine.n_instructions > 0 ? add_program(g, piece, at, shift) : -1;
    }
    if (value >= 0 && g->n_memo < MOST_MEMO) {
        computed *c = &g->memo[g->n_memo++];
        c->stage = stage;
        c->value = value;
        memcpy(c->shift, shift, sizeof c->shift);
    }
    return value;
}

/* The program of one piece of the group, which has `n` results. */
static oly_status add_piece(grouper *g, const oly_tiling_group *of, oly_tiling_group_piece *to, int n, bool *fits)
{
    const int64_t here[OLY_TILING_RANK] = {0};
    const oly_tiling_form *form = g->form;
    int value[OLY_TILE_REGISTERS];
    oly_dtype dtype[OLY_TILE_REGISTERS];
    g->code->n_loads = g->code->n_instructions = g->n_memo = 0;
    *fits = n <= OLY_TILE_REGISTERS / 2;
    for (int k = of->first, at = 0; k < of->first + of->n && *fits; k++) {
        const oly_tiling_stage *s = &form->stages[k];
        if (!g->stored[k])
            continue;
        value[at] = add(g, k, &s->pieces[g->piece], here);
        *fits = value[at] >= 0 && g->code->n_instructions + n <= LARGEST;
        dtype[at++] = s->node->type.dtype;
    }
    if (*fits)
        OLY_TRY(oly_tiling_program(g->p, g->code, n, value, dtype, &to->program, &to->loads, fits));
    return OLY_OK;
}

/* *fits: all pieces have programs. */
static oly_status build(grouper *g, oly_tiling_group *of, bool *fits)
{
    int *stored = OLY_PLAN_NEW(g->p, int, of->n + 1);
    oly_tiling_form *form = g->form;
    of->n_pieces = form->stages[of->first].n_pieces;
    of->pieces = OLY_PLAN_NEW(g->p, oly_tiling_group_piece, of->n_pieces + 1);
    OLY_PLAN_CHECK(stored ? of->pieces : NULL);
    of->n_stored = 0;
    for (int k = of->first; k < of->first + of->n; k++)
        if (g->stored[k])
            stored[of->n_stored++] = k;
    of->stored = stored;
    *fits = true;
    for (g->piece = 0; g->piece < of->n_pieces && of->n_stored > 0 && *fits; g->piece++)
        OLY_TRY(add_piece(g, of, &of->pieces[g->piece], of->n_stored, fits));
    return OLY_OK;
}

/* Divides group g->group, which is too large. */
static void divide(grouper *g, const oly_tiling_group *of)
{
    for (int k = of->first + of->n / 2; k < g->form->n_stages; k++)
        g->of[k]++;
}

/* All programs, if there are. again: with groups or buffers that have changed. */
static oly_status build_all(grouper *g, bool *fits)
{
    oly_tiling_form *form = g->form;
    *fits = true;
    g->again = false;
    choose_stored(g);
    int n_groups = g->of[form->n_stages - 1] + 1;
    oly_tiling_group *groups = OLY_PLAN_NEW(g->p, oly_tiling_group, n_groups);
    OLY_PLAN_CHECK(groups);
    form->groups = groups;
    form->n_groups = n_groups;
    for (int k = 0, first = 0; k < form->n_groups && *fits && !g->again; k++) {
        groups[k].first = first;
        while (first < form->n_stages && g->of[first] == k)
            first++;
        groups[k].n = first - groups[k].first;
        g->group = k;
        OLY_TRY(build(g, &groups[k], fits));
        if (!*fits && !g->again && groups[k].n > 1) {
            divide(g, &groups[k]);
            g->again = true;
        }
    }
    *fits = *fits || g->again;
    return OLY_OK;
}

static void find_readers(grouper *g)
{
    oly_tiling_form *form = g->form;
    for (int k = 0; k < form->n_stages; k++) {
        bool read[k + 1];
        memset(read, 0, sizeof read);
        for (int j = 0; j < form->stages[k].n_pieces; j++) {
            const oly_tiling_piece *piece = &form->stages[k].pieces[j];
            for (int l = 0; l < piece->machine.n_loads; l++)
                if (piece->machine_loads[l].of.kind == OLY_TILING_STAGE)
                    read[piece->machine_loads[l].of.index] = true;
        }
        for (int j = 0; j < k; j++)
            g->readers[j] += read[j];
    }
}

oly_status oly_tiling_sort(oly_planner *p, oly_tiling_form *form)
{
    grouper g = {.p = p, .form = form};
    form->group_of = g.of = OLY_PLAN_NEW(p, int, form->n_stages + 1);
    g.level = OLY_PLAN_NEW(p, int, form->n_stages + 1);
    g.root = OLY_PLAN_NEW(p, int, form->n_stages + 1);
    OLY_PLAN_CHECK(g.of && g.level ? g.root : NULL);
    return sort_stages(&g);
}

static oly_status find_groups(grouper *g)
{
    bool fits = g->form->n_stages > 0;
    for (int k = 0; k < g->form->n_stages; k++)
        for (int j = 0; j < g->form->stages[k].n_pieces; j++)
            fits = fits && g->form->stages[k].pieces[j].machine.n_instructions > 0;
    find_readers(g);
    g->again = fits;
    while (fits && g->again)
        OLY_TRY(build_all(g, &fits));
    g->form->n_groups = fits ? g->form->n_groups : 0;
    return OLY_OK;
}

oly_status oly_tiling_find_groups(oly_planner *p, oly_tiling_form *form)
{
    grouper *g = oly_calloc(1, sizeof *g);
    oly_status st = g && (g->code = oly_malloc(sizeof *g->code)) ? OLY_OK : oly_out_of_memory(sizeof *g, "a plan");
    if (st == OLY_OK) {
        g->p = p;
        g->form = form;
        g->of = form->group_of;
        g->readers = OLY_PLAN_NEW(p, int, form->n_stages + 1);
        g->stored = OLY_PLAN_NEW(p, bool, form->n_stages + 1);
        st = g->readers && g->stored ? find_groups(g) : OLY_MEMORY;
        oly_release(g->code);
    }
    oly_release(g);
    return st;
}

oly_status oly_tiling_divide_groups(oly_planner *p, oly_tiling_form *form, const oly_tiling_instance *needed)
{
    const size_t bytes = sizeof needed->lo[0] * (size_t)form->rank;
    for (int k = 1, more = 0, before = form->group_of[0]; k < form->n_stages; k++) {
        const oly_tiling_instance *a = &needed[k - 1], *b = &needed[k];
        bool alike = a->needed == b->needed && memcmp(a->lo, b->lo, bytes) == 0 && memcmp(a->hi, b->hi, bytes) == 0;
        more += before == form->group_of[k] && !alike;
        before = form->group_of[k];
        form->group_of[k] += more;
    }
    return oly_tiling_find_groups(p, form);
}
