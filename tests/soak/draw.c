/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing programs from choices: main, its meshes, inputs, functions and calls. Everything drawn is evaluated at once,
 * and what the evaluator refuses does not become part of the program. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

oly_dtype any_dtype(program *p)
{
    static const oly_dtype types[] = {OLY_FLOAT32,       OLY_INT32,      OLY_FLOAT64,  OLY_BOOL,   OLY_UINT8,
                                      OLY_INT64,         OLY_FLOAT16,    OLY_INT8,     OLY_UINT32, OLY_INT16,
                                      OLY_UINT16,        OLY_COMPLEX64,  OLY_BFLOAT16, OLY_UINT64, OLY_COMPLEX128,
                                      OLY_FLOAT8_E4M3FN, OLY_FLOAT8_E5M2};
    static const int weight[] = {60, 30, 16, 10, 5, 5, 4, 3, 3, 3, 2, 6, 3, 2, 3, 2, 2};
    return types[weighted(&p->choices, sizeof types / sizeof *types, weight)];
}

int64_t any_extent(program *p)
{
    static const int64_t extents[] = {8, 4, 6, 5, 7, 9, 3, 2, 10, 12, 13, 16, 17, 24, 11};
    if (one_in(&p->choices, 14))
        return 1;
    if (one_in(&p->choices, 40))
        return 0;
    return extents[below(&p->choices, sizeof extents / sizeof *extents)];
}

/* -- meshes ------------------------------------------------------------------------------------------------------------------------ */
static void draw_mesh(program *p, int group, bool explicit_axes)
{
    mesh_text *m = &p->mesh[p->n_meshes++];
    int n = p->group_size[group], left = n;
    m->group = group;
    m->explicit_axes = explicit_axes;
    m->n_axes = 1;
    m->size[0] = n;
    while (m->n_axes < MOST_AXES && one_in(&p->choices, 2)) { /* split the last axis */
        int factors[8], count = 0;
        left = m->size[m->n_axes - 1];
        for (int f = 1; f <= left; f++)
            if (left % f == 0 && (f > 1 || one_in(&p->choices, 8)) && count < 8)
                factors[count++] = f;
        int f = count ? factors[below(&p->choices, count)] : 1;
        m->size[m->n_axes - 1] = f;
        m->size[m->n_axes++] = left / f;
    }
}

static void draw_meshes(program *p)
{
    p->explicit_axes = one_in(&p->choices, p->products ? 3 : 7);
    p->n_groups = p->n_devices > 1 && !p->explicit_axes && one_in(&p->choices, 4) ? 2 : 1;
    for (int g = 0; g < p->n_groups; g++) {
        int n = p->n_devices, order = 0, first = 0;
        if (one_in(&p->choices, 4))
            n = 1 + below(&p->choices, p->n_devices);
        if (one_in(&p->choices, 4)) {
            order = below(&p->choices, 3);
            first = below(&p->choices, p->n_devices - n + 1);
        }
        p->group_size[g] = n;
        for (int k = 0; k < n; k++)
            p->group_device[g][k] = first + (order == 1   ? n - 1 - k
                                             : order == 2 ? (k % 2 ? n / 2 + n % 2 : 0) + k / 2
                                                          : k);
        for (int k = 0; k < 3; k++)
            draw_mesh(p, g, p->explicit_axes);
        mesh_text *m = &p->mesh[0];
        if (p->explicit_axes && m->n_axes > 1 && one_in(&p->choices, 3)) /* left to the planner */
            m->automatic[below(&p->choices, m->n_axes)] = true;
    }
    for (int g = 0; g < p->n_groups; g++) /* for regions with Explicit axes */
        draw_mesh(p, g, true);
}

placement any_placement(program *p, int rank, int group)
{
    placement place = {.mesh = NOTHING};
    if (group == NOTHING)
        return place;
    place.mesh = (int8_t)(p->explicit_axes ? p->explicit_mesh : 3 * group + below(&p->choices, 3));
    const mesh_text *m = &p->mesh[place.mesh];
    int at[MOST_AXES] = {0, 1, 2};
    for (int k = m->n_axes - 1; k > 0; k--) { /* axes in any order */
        int j = k - below(&p->choices, k + 1), swap = at[k];
        at[k] = at[j];
        at[j] = swap;
    }
    for (int k = 0; k < m->n_axes && rank > 0; k++) {
        if (one_in(&p->choices, 5))
            continue;
        int d = below(&p->choices, rank);
        place.axis[d][place.n[d]++] = (int8_t)at[k];
    }
    return place;
}

/* -- values and blocks ---------------------------------------------------------------------------------------------------------------- */
array *value_of(const program *p, int v)
{
    return p->now[0][v];
}

int new_value(program *p, const array *like)
{
    int v = p->n_values++;
    p->dtype_of[v] = like->dtype;
    p->rank_of[v] = like->rank;
    memcpy(p->shape_of[v], like->shape, sizeof like->shape);
    p->home[v] = p->current;
    p->group_of[v] = NOTHING;
    p->dead[v] = p->captured[v] = false;
    p->placed[v] = (placement){.mesh = NOTHING};
    if (p->n_visible < MOST_VALUES)
        p->visible[p->n_visible++] = v;
    return v;
}

bool add_statement(program *p, statement *s)
{
    block *b = &p->block[p->current];
    if (p->n_statements >= MOST_STATEMENTS || b->n >= (int)(sizeof b->statement / sizeof *b->statement) ||
        p->n_values + s->n_out > MOST_VALUES)
        return false;
    placement place;
    if (p->explicit_axes && !settle_operands(p, s, &place))
        return false;
    if (p->n_statements >= MOST_STATEMENTS || b->n >= (int)(sizeof b->statement / sizeof *b->statement))
        return false;
    for (int k = 0; k < s->n_out; k++)
        s->out[k] = p->n_values + k;
    p->refused = p->by_differences = false;
    p->at_block = b;
    p->at_statement = b->n;
    bool good = evaluate_statement(p, s) && !p->refused;
    for (int k = 0; k < s->n_out && good; k++)
        good = p->now[0][s->out[k]]->size <= p->most_elements;
    if (p->team == 1)
        p->map = NULL;
    p->refused = false;
    if (!good)
        return false;
    int group = s->kind == INPUT || s->kind == MOVE ? (s->place[0].mesh < 0 ? NOTHING : p->mesh[s->place[0].mesh].group)
                                                    : NOTHING;
    for (int k = 0; k < s->n_in; k++) {
        if (s->in[k] == NUMBER)
            continue;
        if (p->home[s->in[k]] == 0 && p->current != 0)
            p->captured[s->in[k]] = true;
        if (s->kind != MOVE && p->group_of[s->in[k]] != NOTHING)
            group = p->group_of[s->in[k]];
    }
    /* values computed in a region or a function may be committed by its captures */
    if (s->kind != OPERATION && s->kind != INPUT && s->kind != MOVE && p->group != NOTHING)
        group = p->group;
    if (s->kind == OPERATION && (s->op == OP_constraint || operations[s->op].family == RANDOM) && s->place[0].mesh >= 0)
        group = p->group;
    for (int k = 0; k < s->n_out; k++) {
        int v = new_value(p, p->now[0][s->out[k]]);
        if (p->current == 0)
            p->group_of[v] = group;
        if (p->explicit_axes)
            p->placed[v] = s->kind == OPERATION || s->kind == INPUT || s->kind == MOVE ? place : result_place(p, s, k);
    }
    for (int k = 0; k < s->n_in && s->kind == FORI && s->times == 0; k++)
        p->captured[s->in[k]] = p->captured[s->out[k]] = true; /* one handle: neither may be donated */
    if (s->kind == OPERATION && (s->op == OP_printed || s->op == OP_checked))
        p->captured[s->in[0]] = p->captured[s->out[0]] = true;
    p->statement[p->n_statements] = *s;
    b->statement[b->n++] = p->n_statements++;
    return true;
}

int open_block(program *p)
{
    if (p->n_blocks >= MOST_BLOCKS)
        return NOTHING;
    p->block[p->n_blocks] = (block){.n = 0};
    p->current = p->n_blocks++;
    return p->current;
}

void close_block(program *p, int before, int visible)
{
    p->current = before;
    p->n_visible = visible;
}

/* -- functions --------------------------------------------------------------------------------------------------------------------------- */
static bool usable(const program *p, int v)
{
    return !p->dead[v] && (p->group_of[v] == NOTHING || p->group_of[v] == p->group);
}

/* Hides values of other groups and dead ones; returns how many there were before. */
static int hide(program *p, int *all)
{
    int n = p->n_visible, kept = 0;
    memcpy(all, p->visible, sizeof *all * (size_t)n);
    for (int k = 0; k < n; k++)
        if (usable(p, all[k]))
            p->visible[kept++] = all[k];
    p->n_visible = kept;
    return n;
}
static void show(program *p, const int *all, int n)
{
    int fresh[MOST_VALUES], count = 0;
    for (int k = 0; k < p->n_visible; k++) {
        bool old = false;
        for (int j = 0; j < n; j++)
            old = old || all[j] == p->visible[k];
        if (!old)
            fresh[count++] = p->visible[k];
    }
    memcpy(p->visible, all, sizeof *all * (size_t)n);
    memcpy(p->visible + n, fresh, sizeof *fresh * (size_t)count);
    p->n_visible = n + count;
}

static int draw_function(program *p, const statement *call)
{
    int before = p->current, visible = p->n_visible, b = open_block(p);
    if (b == NOTHING)
        return NOTHING;
    for (int k = 0; k < call->n_in; k++) {
        array *a = value_of(p, call->in[k]);
        int v = new_value(p, a);
        for (int m = 0; m < p->team; m++)
            p->now[m][v] = p->now[m][call->in[k]];
        p->placed[v] = p->placed[call->in[k]];
        p->block[b].param[p->block[b].n_params++] = v;
    }
    p->depth++;
    draw_body(p, 10);
    p->depth--;
    int made = p->block[b].n;
    int want = 1 + below(&p->choices, 3);
    for (int k = 0; k < want; k++) {
        int v = made && k == 0 ? p->visible[p->n_visible - 1] : any_value(p);
        bool twice = false;
        for (int j = 0; j < p->block[b].n_results; j++)
            twice = twice || p->block[b].result[j] == v;
        if (p->home[v] == 0)
            p->captured[v] = true;
        if (!twice)
            p->block[b].result[p->block[b].n_results++] = v;
    }
    close_block(p, before, visible);
    return b;
}

static void choose_donations(program *p, statement *s)
{
    for (int k = 0; k < s->n_in; k++) {
        bool twice = false;
        for (int j = 0; j < s->n_in; j++)
            twice = twice || (j != k && s->in[j] == s->in[k]);
        s->donated[k] =
            !twice && p->current == 0 && p->home[s->in[k]] == 0 && !p->captured[s->in[k]] && one_in(&p->choices, 3);
    }
    for (int k = 0, n = 0; k < s->n_in; k++)
        if (s->donated[k] && ++n > s->n_out)
            s->donated[k] = false;
}

void draw_function_call(program *p)
{
    statement s = {.kind = CALL, .n_blocks = 1};
    int old = p->n_functions && one_in(&p->choices, 3) ? below(&p->choices, p->n_functions) : NOTHING;
    int statements = p->n_statements, blocks = p->n_blocks, values = p->n_values, visible = p->n_visible;
    int in_block = p->block[p->current].n;
    if (old != NOTHING && p->function_group[old] != p->group)
        old = NOTHING;
    if (old != NOTHING && (p->current == p->function[old] || p->in_map || p->in_vmap))
        return;
    if (old != NOTHING) {
        const block *b = &p->block[p->function[old]];
        s.n_in = b->n_params;
        for (int k = 0; k < s.n_in; k++) {
            array like = {.dtype = p->dtype_of[b->param[k]], .rank = p->rank_of[b->param[k]], .size = 1};
            memcpy(like.shape, p->shape_of[b->param[k]], sizeof like.shape);
            for (int d = 0; d < like.rank; d++)
                like.size *= like.shape[d];
            if ((s.in[k] = placed_as(p, value_like(p, &like), &p->placed[b->param[k]])) == NOTHING)
                goto abandon;
            if (p->explicit_axes && p->placed[s.in[k]].mesh != p->placed[b->param[k]].mesh)
                goto abandon;
        }
        s.block[0] = p->function[old];
    } else {
        s.n_in = 1 + below(&p->choices, 4);
        for (int k = 0; k < s.n_in; k++)
            s.in[k] = any_value(p);
        s.block[0] = draw_function(p, &s);
    }
    if (s.block[0] == NOTHING || p->block[s.block[0]].n_results == 0)
        goto abandon;
    s.n_out = p->block[s.block[0]].n_results;
    s.checkpoint = one_in(&p->choices, 8);
    s.flavour = one_in(&p->choices, 10) ? 1 + below(&p->choices, 4) : 0; /* explained, too */
    for (int k = 0; k < s.n_out; k++) {
        s.out_place[k].mesh = NOTHING;
        if (p->current == 0 && !p->explicit_axes && one_in(&p->choices, 5))
            s.out_place[k] = any_placement(p, p->rank_of[p->block[s.block[0]].result[k]], p->group);
    }
    if (old != NOTHING) /* the function's out_shardings apply */
        for (int k = 0; k < p->n_statements; k++)
            if (p->statement[k].kind == CALL && p->statement[k].block[0] == s.block[0])
                memcpy(s.out_place, p->statement[k].out_place, sizeof s.out_place);
    choose_donations(p, &s);
    if (!add_statement(p, &s))
        goto abandon;
    for (int k = 0; k < s.n_in; k++)
        if (s.donated[k])
            p->dead[s.in[k]] = true;
    if (old == NOTHING && p->current == 0 && p->n_functions < MOST_FUNCTIONS) {
        p->function[p->n_functions] = s.block[0];
        p->function_group[p->n_functions++] = p->group;
    }
    return;
abandon:
    p->n_statements = statements;
    p->n_blocks = blocks;
    p->n_values = values;
    p->n_visible = visible;
    p->block[p->current].n = in_block;
}

/* -- main ------------------------------------------------------------------------------------------------------------------------------------ */
static void draw_input(program *p, const int64_t *base, int base_rank)
{
    statement s = {.kind = INPUT, .n_out = 1, .dtype = any_dtype(p), .data = (uint64_t)below(&p->choices, 256)};
    int64_t size = 1;
    s.rank = base_rank;
    memcpy(s.shape, base, sizeof s.shape);
    if (!p->large && one_in(&p->choices, 3)) {
        s.rank = below(&p->choices, 4);
        for (int d = 0; d < s.rank; d++)
            s.shape[d] = any_extent(p);
    } else
        for (int d = 0; d < s.rank; d++)
            if (one_in(&p->choices, 4))
                s.shape[d] += below(&p->choices, 4) - (s.shape[d] > 2 ? 1 : 0);
    if (p->products) {
        bool across = one_in(&p->choices, 2);
        s.dtype = one_in(&p->choices, 4) ? OLY_FLOAT64 : OLY_FLOAT32;
        s.rank = 2;
        s.shape[across] = 120 + 8 * below(&p->choices, 5);
        s.shape[!across] = 8 * (1 + below(&p->choices, 4));
    }
    for (int d = 0; d < s.rank && !p->products; d++) {
        if (p->large && d < 2)
            s.shape[d] = s.rank == 1 ? 17000 + s.shape[d] : 110 + 2 * s.shape[d];
        if (size * s.shape[d] > (p->large ? 26000 : 400))
            s.shape[d] = 1 + s.shape[d] % 3;
        size *= s.shape[d];
    }
    s.place[0] = any_placement(p, s.rank, below(&p->choices, p->n_groups));
    if (one_in(&p->choices, 6))
        s.place[0] = (placement){.mesh = NOTHING};
    add_statement(p, &s);
}

static void draw_move(program *p)
{
    statement s = {.kind = MOVE, .n_in = 1, .n_out = 1, .in = {any_value(p)}};
    if (p->placed[s.in[0]].unreduced && (s.in[0] = replicated(p, s.in[0])) == NOTHING)
        return;
    s.place[0] = any_placement(p, p->rank_of[s.in[0]], below(&p->choices, p->n_groups));
    add_statement(p, &s);
}

void draw_body(program *p, int most)
{
    for (int k = 0;
         k < (p->large && most > 4 ? 4 : most) && p->n_statements < 90 && (k == 0 || often(&p->choices, 215)); k++) {
        if (p->depth < 3 && p->profile == ANYTHING && one_in(&p->choices, p->depth == 1 ? 4 : 7))
            draw_region(p);
        else
            draw_operation(p);
    }
}

static void draw_step(program *p)
{
    static const int usual[] = {10, 5, 3, 2}, large[] = {3, 5, 10, 0};
    const int *weight = p->large ? large : usual;
    int all[MOST_VALUES];
    p->group = below(&p->choices, p->n_groups);
    int n = hide(p, all);
    if (p->n_visible > 0)
        switch (weighted(&p->choices, 4, weight)) {
        case 0: draw_function_call(p); break;
        case 1: draw_operation(p); break;
        case 2: draw_region(p); break;
        default: draw_move(p);
        }
    show(p, all, n);
}

void draw_program(program *p, int n_devices)
{
    choices kept = p->choices;
    if (n_devices > MOST_DEVICES) {
        fprintf(stderr, "soak: programs are drawn for at most %d devices, not %d\n", MOST_DEVICES, n_devices);
        exit(2);
    }
    memset(p, 0, sizeof *p);
    p->choices = kept;
    forget_all();
    p->n_devices = n_devices;
    p->team = 1;
    p->n_blocks = 1;
    p->wide = one_in(&p->choices, 8);
    p->large = one_in(&p->choices, 16);
    p->products = p->large && one_in(&p->choices, 2);
    p->most_work = p->large ? 3000000 : 400000;
    p->most_elements = p->large ? 28000 : 600;
    draw_meshes(p);
    int64_t base[MOST_RANK] = {0};
    int rank = 1 + below(&p->choices, p->large ? 2 : 3), inputs = 1 + below(&p->choices, 4);
    for (int d = 0; d < rank; d++)
        base[d] = any_extent(p);
    if (rank == 1 && one_in(&p->choices, 6))
        base[0] = 60 + below(&p->choices, 330);
    for (int k = 0; k < inputs; k++)
        draw_input(p, base, rank);
    for (int k = 0; k < 5 && p->n_statements < 90 && (k == 0 || often(&p->choices, 150)); k++)
        draw_step(p);
}
