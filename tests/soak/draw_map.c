/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing maps, over a batch (oly_vmap) and over devices (oly_shard_map), and regions with other axes (oly_auto_axes,
 * oly_explicit_axes). */
#include "draw.h"
#include <string.h>

/* -- over a batch ---------------------------------------------------------------------------------------------------------------- */
/* Over Explicit axes the batch must not be split. */
static int batched_value(program *p, int v, int axis)
{
    placement place = p->placed[v];
    if (!p->explicit_axes || place.mesh < 0)
        return v;
    if (place.unreduced)
        return replicated(p, v);
    place.n[axis] = 0;
    return placed_as(p, v, &place);
}

static bool draw_batch(program *p, statement *s)
{
    int64_t n, shape[MOST_RANK];
    s->in[0] = any_value(p);
    if (p->rank_of[s->in[0]] == 0)
        return false;
    s->axes[0] = below(&p->choices, p->rank_of[s->in[0]]);
    n = p->shape_of[s->in[0]][s->axes[0]];
    if (n < 1 || n > 17)
        return false;
    s->n_in = 1 + below(&p->choices, 3);
    for (int k = 1; k < s->n_in; k++) {
        s->in[k] = any_value(p);
        s->axes[k] = UNMAPPED;
        int rank = p->rank_of[s->in[k]];
        if (rank == 0 || one_in(&p->choices, 3))
            continue;
        s->axes[k] = below(&p->choices, rank);
        memcpy(shape, p->shape_of[s->in[k]], sizeof shape);
        shape[s->axes[k]] = n;
        if ((s->in[k] = fitted(p, s->in[k], rank, shape)) == NOTHING)
            return false;
    }
    for (int k = 0; k < s->n_in; k++)
        if (s->axes[k] != UNMAPPED && (s->in[k] = batched_value(p, s->in[k], s->axes[k])) == NOTHING)
            return false;
    return replicate_free(p, s);
}

bool draw_vmap(program *p)
{
    mark m = mark_of(p), outside;
    statement s = {.kind = VMAP, .n_blocks = 1};
    if (!draw_batch(p, &s))
        return go_back(p, &m);
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    p->in_vmap++;
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++) {
        if (s.axes[k] == UNMAPPED)
            add_param(p, s.in[k], NULL);
        else
            add_row_param(p, s.in[k], s.axes[k]);
    }
    draw_body(p, 5);
    s.n_out = 1 + below(&p->choices, 2);
    for (int k = 0; k < s.n_out; k++) {
        int v = k == 0 ? p->visible[p->n_visible - 1] : p->visible[from + below(&p->choices, p->n_visible - from)];
        if (p->rank_of[v] == MOST_RANK)
            return go_back(p, &m);
        add_result(p, b, v);
        s.out_axes[k] = below(&p->choices, p->rank_of[v] + 1);
    }
    end_block(p, &outside);
    return add_statement(p, &s) || go_back(p, &m);
}

/* -- over devices ------------------------------------------------------------------------------------------------------------------ */
static void spec_over_all(const mesh_text *m, placement *place)
{
    for (int k = 0; k < m->n_axes; k++)
        place->axis[0][place->n[0]++] = (int8_t)k;
}

/* An operand whose size divides; over Explicit axes it is placed as the spec says. */
static int shared_out(program *p, const mesh_text *mesh, placement *place)
{
    int64_t shape[MOST_RANK], size = 1;
    int v = any_value(p), rank = p->rank_of[v];
    for (int a = 0; a < mesh->n_axes && rank > 0 && rank < MOST_RANK; a++)
        if (!one_in(&p->choices, 5)) {
            int d = below(&p->choices, rank);
            place->axis[d][place->n[d]++] = (int8_t)a;
        }
    for (int d = 0; d < rank; d++) {
        int64_t n = 1;
        for (int a = 0; a < place->n[d]; a++)
            n *= mesh->size[place->axis[d][a]];
        shape[d] = (p->shape_of[v][d] + n - 1) / n * n;
        size *= shape[d];
    }
    const placement typed = in_types(p, *place);
    return size > 400 ? NOTHING : placed_as(p, fitted(p, v, rank, shape), &typed);
}

/* The parameters start as evaluating the map without statements leaves them: a shard for each device. */
static bool begin_map(program *p, const statement *s, int devices)
{
    int b = s->block[0];
    statement empty = *s;
    empty.n_out = 0;
    if (p->explicit_axes)
        p->n_visible = 0; /* values from outside have types that mean nothing here */
    for (int k = 0; k < s->n_in; k++)
        add_param(p, s->in[k], NULL);
    if (!evaluate_statement(p, &empty))
        return false;
    p->team = devices;
    p->map = &p->mesh[s->k];
    p->explicit_axes = false;
    for (int k = 0; k < s->n_in; k++) {
        int w = p->block[b].param[k];
        memcpy(p->shape_of[w], p->now[0][w]->shape, sizeof p->shape_of[w]);
    }
    return true;
}

bool draw_map(program *p)
{
    mark m = mark_of(p), outside;
    int visible[MOST_VALUES], devices = 1;
    if (p->group == NOTHING || p->in_map || p->in_vmap || p->team != 1)
        return false;
    statement s = {.kind = MAP, .n_blocks = 1};
    s.k = p->explicit_axes ? p->explicit_mesh : 3 * p->group + below(&p->choices, 3);
    const mesh_text *mesh = &p->mesh[s.k];
    for (int k = 0; k < mesh->n_axes; k++)
        devices *= mesh->size[k];
    if (devices == 1)
        return false;
    s.n_in = 1 + below(&p->choices, 3);
    s.flag = one_in(&p->choices, 2);
    for (int k = 0; k < s.n_in; k++) {
        s.place[k].mesh = (int8_t)s.k;
        if ((s.in[k] = shared_out(p, mesh, &s.place[k])) == NOTHING)
            return go_back(p, &m);
    }
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    memcpy(visible, p->visible, sizeof visible);
    p->in_map++;
    p->plain_map = !s.flag;
    bool good = begin_map(p, &s, devices);
    int from = p->n_visible - s.n_in;
    if (good)
        draw_body(p, 8);
    s.n_out = 1 + below(&p->choices, 2);
    for (int k = 0; k < s.n_out && good; k++) {
        int v = k == 0 ? p->visible[p->n_visible - 1] : p->visible[from + below(&p->choices, p->n_visible - from)];
        s.out_place[k].mesh = (int8_t)s.k;
        if (p->rank_of[v] == 0 || one_in(&p->choices, 4)) {
            statement sum = operation_of(OP_psum, 1, &v);
            sum.place[0].mesh = (int8_t)s.k;
            for (int a = 0; a < mesh->n_axes; a++)
                sum.axes[sum.n_axes++] = a;
            v = simple(p, sum);
        } else
            spec_over_all(mesh, &s.out_place[k]);
        good = v != NOTHING;
        if (good)
            add_result(p, b, v);
    }
    memcpy(p->visible, visible, sizeof *visible * (size_t)outside.visible);
    end_block(p, &outside);
    return (good && add_statement(p, &s)) || go_back(p, &m);
}

/* -- regions with other axes --------------------------------------------------------------------------------------------------------- */
bool draw_axes_region(program *p)
{
    mark m = mark_of(p), outside;
    int visible[MOST_VALUES];
    statement s = {.kind = REGION, .n_blocks = 1, .flag = !p->explicit_axes};
    if (p->group == NOTHING || p->in_map || p->in_vmap || p->in_gradient || p->team != 1)
        return false;
    s.n_in = 1 + below(&p->choices, 3);
    for (int k = 0; k < s.n_in; k++)
        s.in[k] = any_value(p);
    if (!replicate_free(p, &s))
        return go_back(p, &m);
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    memcpy(visible, p->visible, sizeof visible);
    p->n_visible = 0; /* values from outside have other types */
    p->explicit_axes = s.flag;
    p->explicit_mesh = p->n_groups * 3 + p->group;
    for (int k = 0; k < s.n_in; k++) {
        int w = add_param(p, s.in[k], NULL);
        s.place[k] = in_types(p, any_placement(p, p->rank_of[w], s.flag ? p->group : NOTHING));
        p->placed[w] = s.flag ? s.place[k] : (placement){.mesh = NOTHING};
    }
    p->group = NOTHING;
    draw_body(p, 6);
    s.n_out = 1 + below(&p->choices, 2);
    for (int k = 0; k < s.n_out; k++) {
        int v = k == 0 ? p->visible[p->n_visible - 1] : any_value(p);
        if (p->placed[v].unreduced && (v = replicated(p, v)) == NOTHING)
            return go_back(p, &m);
        add_result(p, b, v);
    }
    memcpy(p->visible, visible, sizeof *visible * (size_t)outside.visible);
    end_block(p, &outside);
    for (int k = 0; k < s.n_out; k++) {
        s.out_place[k].mesh = NOTHING;
        if (!s.flag)
            s.out_place[k] = in_types(p, any_placement(p, p->rank_of[p->block[b].result[k]], p->group));
    }
    return add_statement(p, &s) || go_back(p, &m);
}
