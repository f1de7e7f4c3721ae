/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing loops and branches, and helpers of all statements with blocks (draw.h). A block is drawn with the values of
 * its first run, then the whole statement is evaluated; a loop whose values exceed what is exact gets its carries
 * reduced, or fewer steps. */
#include "draw.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

mark mark_of(const program *p)
{
    return (mark){.statements = p->n_statements,
                  .blocks = p->n_blocks,
                  .values = p->n_values,
                  .visible = p->n_visible,
                  .current = p->current,
                  .in_block = p->block[p->current].n,
                  .profile = p->profile,
                  .depth = p->depth,
                  .in_gradient = p->in_gradient,
                  .in_map = p->in_map,
                  .in_vmap = p->in_vmap,
                  .group = p->group,
                  .team = p->team,
                  .map = p->map,
                  .plain_map = p->plain_map,
                  .explicit_axes = p->explicit_axes,
                  .explicit_mesh = p->explicit_mesh};
}

static void surround(program *p, const mark *m)
{
    p->current = m->current;
    p->n_visible = m->visible;
    p->profile = m->profile;
    p->depth = m->depth;
    p->in_gradient = m->in_gradient;
    p->in_map = m->in_map;
    p->in_vmap = m->in_vmap;
    p->group = m->group;
    p->team = m->team;
    p->map = m->map;
    p->plain_map = m->plain_map;
    p->explicit_axes = m->explicit_axes;
    p->explicit_mesh = m->explicit_mesh;
}

bool go_back(program *p, const mark *m)
{
    surround(p, m);
    p->n_statements = m->statements;
    p->n_blocks = m->blocks;
    p->n_values = m->values;
    p->block[p->current].n = m->in_block;
    p->refused = false;
    return false;
}

int begin_block(program *p, statement *s, mark *outside)
{
    *outside = mark_of(p);
    int b = open_block(p);
    s->block[0] = b;
    p->depth++;
    return b;
}

void end_block(program *p, const mark *outside)
{
    surround(p, outside);
}

int add_param(program *p, int v, array *a)
{
    block *b = &p->block[p->current];
    int w = new_value(p, v == NOTHING ? a : value_of(p, v));
    if (v != NOTHING)
        p->placed[w] = p->placed[v];
    for (int m = 0; m < p->team; m++)
        p->now[m][w] = v == NOTHING ? a : p->now[m][v];
    b->param[b->n_params++] = w;
    return w;
}

int add_row_param(program *p, int v, int axis)
{
    int w = add_param(p, NOTHING, slice_of(value_of(p, v), axis, 0));
    for (int t = 0; t < p->team; t++)
        p->now[t][w] = slice_of(p->now[t][v], axis, 0);
    p->placed[w] = without_dimension(&p->placed[v], axis);
    return w;
}

static array *number_array(oly_dtype dtype, double x)
{
    array *a = new_array(dtype, 0, NULL);
    a->v[0] = x;
    return a;
}

void add_result(program *p, int b, int v)
{
    if (p->home[v] == 0)
        p->captured[v] = true;
    p->block[b].result[p->block[b].n_results++] = v;
}

bool replicate_free(program *p, statement *s)
{
    for (int k = 0; k < s->n_in && p->explicit_axes; k++)
        if ((p->placed[s->in[k]].mesh < 0 || p->placed[s->in[k]].unreduced) &&
            (s->in[k] = replicated(p, s->in[k])) == NOTHING)
            return false;
    return true;
}

int whole(program *p, int v)
{
    return p->explicit_axes && p->placed[v].mesh >= 0 ? replicated(p, v) : v;
}

/* A value of this type among those made here: the last one, or something fitted. */
static int result_like(program *p, const array *like, int from)
{
    for (int k = p->n_visible - 1; k >= from && !one_in(&p->choices, 4); k--) {
        int v = p->visible[k];
        if (same_type(value_of(p, v), like))
            return v;
    }
    if (p->n_visible > from) {
        int v = converted(p, fitted(p, p->visible[p->n_visible - 1], like->rank, like->shape), like->dtype);
        if (v != NOTHING && same_type(value_of(p, v), like))
            return v;
    }
    return value_like(p, like);
}

bool add_results_like(program *p, int b, int n, const int *like, int from)
{
    for (int k = 0; k < n; k++) {
        int v = placed_as(p, result_like(p, value_of(p, like[k]), from), &p->placed[like[k]]);
        if (v == NOTHING)
            return false;
        add_result(p, b, v);
    }
    return true;
}

/* Reduces the magnitude of a loop body's results, in the body. */
static void reduce_results(program *p, int b, int first, int n, const mark *outside)
{
    int visible = p->n_visible;
    p->current = b;
    for (int k = first; k < first + n; k++) {
        int v = reduced_size(p, p->block[b].result[k]);
        if (v != NOTHING)
            p->block[b].result[k] = v;
    }
    p->current = outside->current;
    p->n_visible = visible;
}

/* Adds a loop: as it is; with smaller carries; with fewer steps. */
static bool add_loop(program *p, statement *s, int body, int first, const mark *outside)
{
    if (add_statement(p, s))
        return true;
    reduce_results(p, body, first, s->kind == SCAN ? s->n_carry : s->n_in - first, outside);
    if (add_statement(p, s))
        return true;
    if (s->kind != FORI)
        return false;
    s->times = s->times > 2 ? 2 : 1;
    return add_statement(p, s);
}

/* -- counted loops ------------------------------------------------------------------------------------------------------------------ */
/* A carry beside the first: any value, or one of nearly the same shape. */
static int another_carry(program *p, int first)
{
    const array *a = value_of(p, first);
    int64_t shape[MOST_RANK];
    if (p->profile != FIELDS && one_in(&p->choices, 2))
        return any_value(p);
    memcpy(shape, a->shape, sizeof shape);
    if (one_in(&p->choices, 3) && a->rank > 0)
        shape[below(&p->choices, a->rank)] += 1 + below(&p->choices, 2);
    int v = fitted(p, any_value(p), a->rank, shape);
    return one_in(&p->choices, 3) ? v : converted(p, v, a->dtype);
}

/* The sum of shifted slices of the carry, into its interior; or of cyclic shifts. */
static void draw_linear_body(program *p, int carry)
{
    static const double weights[] = {1, 2, -1, 0.5, 0.25, -0.5};
    array like = *value_of(p, carry);
    bool rolls = one_in(&p->choices, 3);
    int terms = 2 + below(&p->choices, 3), sum = NOTHING;
    int64_t reach[MOST_RANK];
    statement update = operation_of(OP_update, 2, (int[]){carry, 0});
    update.rank = like.rank;
    for (int d = 0; d < like.rank; d++) {
        reach[d] = like.shape[d] > 4 && !one_in(&p->choices, 3) ? 1 + below(&p->choices, 2) : 0;
        update.low[d] = reach[d];
        update.high[d] = like.shape[d] - reach[d];
        update.step[d] = 1;
    }
    for (int k = 0; k < terms; k++) {
        int v = carry;
        statement part = operation_of(OP_slice, 1, &v);
        part.rank = like.rank;
        for (int d = 0; d < like.rank; d++) {
            int shift = reach[d] ? below(&p->choices, 2 * (int)reach[d] + 1) : 0;
            part.low[d] = shift;
            part.high[d] = like.shape[d] - 2 * reach[d] + shift;
            part.step[d] = 1;
            if (rolls && reach[d]) {
                statement roll = operation_of(OP_roll, 1, &v);
                roll.k = d;
                roll.number = shift - (int)reach[d];
                v = simple(p, roll);
            }
        }
        if (!rolls)
            v = simple(p, part);
        if (v == NOTHING)
            return;
        statement times = operation_of(OP_mul, 2, (int[]){v, NUMBER});
        times.number = weights[below(&p->choices, 6)];
        v = simple(p, times);
        if (v == NOTHING)
            return;
        sum = sum == NOTHING ? v : simple(p, operation_of(OP_add, 2, (int[]){sum, v}));
        if (sum == NOTHING)
            return;
    }
    if (one_in(&p->choices, 4)) { /* a captured source term */
        int f = fitted(p, any_value(p), like.rank, value_of(p, sum)->shape);
        if (f != NOTHING && (f = converted(p, f, like.dtype)) != NOTHING)
            sum = simple(p, operation_of(OP_add, 2, (int[]){sum, f}));
    }
    if (!rolls && sum != NOTHING) {
        update.in[1] = sum;
        simple(p, update);
    }
}

/* A number that only observes the fields: a sum or the largest so far, or one entry for each step. */
static bool draw_look(program *p, statement *s, bool in_body, int *look)
{
    block *b = &p->block[p->current];
    if (!in_body) {
        statement zero = operation_of(OP_full, 0, NULL);
        array *a = value_of(p, s->in[0]);
        *look = a->rank > 0 && !is_complex(a->dtype) && s->n_in < MOST_OUT ? 1 + below(&p->choices, 3) : 0;
        zero.dtype = is_float(a->dtype) ? a->dtype : OLY_FLOAT32;
        zero.rank = *look == 3;
        zero.shape[0] = s->times;
        if (*look == 0 || (*look == 3 && s->times == 0))
            return false;
        int v = simple(p, zero);
        if (v == NOTHING)
            return false;
        s->in[s->n_in++] = v;
        return true;
    }
    int field = b->param[1], last = b->param[s->n_in];
    for (int k = p->n_visible - 1; k >= 0 && one_in(&p->choices, 2); k--)
        if (p->home[p->visible[k]] == p->current && p->rank_of[p->visible[k]] > 0) {
            field = p->visible[k];
            break;
        }
    statement total = operation_of(*look == 2 ? OP_max : OP_sum, 1, &field);
    total.other_flag = true;
    int v = converted(p, simple(p, total), p->dtype_of[last]);
    if (v == NOTHING)
        return false;
    if (*look < 3)
        v = simple(p, operation_of(*look == 2 ? OP_max2 : OP_add, 2, (int[]){last, v}));
    else {
        statement shape = operation_of(OP_reshape, 1, &v);
        shape.rank = 1;
        shape.shape[0] = 1;
        int counter = b->param[0], row = simple(p, shape);
        if (row == NOTHING)
            return false;
        v = simple(p, operation_of(OP_dynamic_update, 3, (int[]){last, row, counter}));
    }
    *look = v;
    return v != NOTHING;
}

static bool draw_fori(program *p)
{
    static const int times[] = {3, 2, 4, 1, 5, 6, 7, 0};
    static const int profiles[] = {45, 38, 17};
    mark m = mark_of(p);
    statement s = {.kind = FORI, .n_blocks = 1, .times = times[below(&p->choices, 8)]};
    int way = p->large                      ? FIELDS + below(&p->choices, 2)
              : p->in_map || p->in_gradient ? ANYTHING
                                            : weighted(&p->choices, 3, profiles);
    s.k = one_in(&p->choices, 5) ? below(&p->choices, 4) : 0;
    s.n_in = 1 + (way == LINEAR ? 0 : below(&p->choices, 3));
    p->profile = way;
    s.in[0] = any_value(p);
    for (int tries = 0; tries < 6 && way != ANYTHING && (p->rank_of[s.in[0]] == 0 || value_of(p, s.in[0])->size < 4);
         tries++)
        s.in[0] = any_value(p);
    if (way == LINEAR)
        s.in[0] = converted(p, s.in[0], one_in(&p->choices, 4) ? OLY_FLOAT64 : OLY_FLOAT32);
    if (s.in[0] == NOTHING)
        return go_back(p, &m);
    for (int k = 1; k < s.n_in; k++)
        if ((s.in[k] = another_carry(p, s.in[0])) == NOTHING)
            return go_back(p, &m);
    int look = 0, fields = s.n_in;
    if (way != ANYTHING && one_in(&p->choices, p->large ? 2 : 4))
        draw_look(p, &s, false, &look);
    if (!replicate_free(p, &s))
        return go_back(p, &m);
    mark outside;
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    add_param(p, NOTHING, number_array(OLY_INT32, s.k));
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++)
        add_param(p, s.in[k], NULL);
    if (way == LINEAR)
        draw_linear_body(p, p->block[b].param[1]);
    else
        draw_body(p, way == FIELDS ? 7 : 6);
    if (s.n_in > fields && !draw_look(p, &s, true, &look))
        return go_back(p, &m);
    if (!add_results_like(p, b, fields, s.in, from + s.n_in))
        return go_back(p, &m);
    if (s.n_in > fields) {
        if ((look = placed_as(p, look, &p->placed[s.in[fields]])) == NOTHING)
            return go_back(p, &m);
        add_result(p, b, look);
    }
    outside.profile = m.profile;
    end_block(p, &outside);
    s.n_out = s.n_in;
    if (one_in(&p->choices, 4) && way != LINEAR)
        reduce_results(p, b, 0, s.n_in, &outside);
    return add_loop(p, &s, b, 0, &outside) || go_back(p, &m);
}

/* -- loops with a condition ------------------------------------------------------------------------------------------------------------- */
static bool draw_while(program *p)
{
    mark m = mark_of(p);
    statement s = {.kind = WHILE, .n_blocks = 2, .n_in = 2 + below(&p->choices, 2)};
    statement zero = operation_of(OP_full, 0, NULL);
    zero.dtype = OLY_INT32;
    zero.number = below(&p->choices, 3);
    if ((s.in[0] = simple(p, zero)) == NOTHING)
        return go_back(p, &m);
    s.in[1] = any_value(p);
    for (int k = 2; k < s.n_in; k++)
        if ((s.in[k] = another_carry(p, s.in[1])) == NOTHING)
            return go_back(p, &m);
    if (!replicate_free(p, &s))
        return go_back(p, &m);
    mark outside;
    if (begin_block(p, &s, &outside) == NOTHING)
        return go_back(p, &m);
    for (int k = 0; k < s.n_in; k++)
        add_param(p, s.in[k], NULL);
    int in[2] = {p->block[s.block[0]].param[0], NUMBER};
    statement below_limit = operation_of(OP_lt, 2, in);
    below_limit.number = 1 + below(&p->choices, 6);
    int more = simple(p, below_limit);
    if (more != NOTHING && one_in(&p->choices, 2)) { /* and a condition on the values */
        statement sum =
            operation_of(one_in(&p->choices, 2) ? OP_max : OP_sum, 1, (int[]){p->block[s.block[0]].param[1]});
        sum.other_flag = true;
        int total = simple(p, sum);
        if (total != NOTHING) {
            statement gt = operation_of(OP_lt, 2, (int[]){total, NUMBER});
            gt.number = 5 + below(&p->choices, 100);
            int and = simple(p, gt);
            if (and != NOTHING)
                more = simple(p, operation_of(OP_logical_and, 2, (int[]){more, and}));
        }
    }
    if (more == NOTHING)
        return go_back(p, &m);
    add_result(p, s.block[0], more);
    end_block(p, &outside);
    if ((s.block[1] = open_block(p)) == NOTHING)
        return go_back(p, &m);
    p->depth++;
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++)
        add_param(p, s.in[k], NULL);
    draw_body(p, 5);
    statement next = operation_of(OP_add, 2, (int[]){p->block[s.block[1]].param[0], NUMBER});
    next.number = 1 + below(&p->choices, 2);
    int counter = simple(p, next);
    if (counter == NOTHING)
        return go_back(p, &m);
    add_result(p, s.block[1], counter);
    if (!add_results_like(p, s.block[1], s.n_in - 1, s.in + 1, from + s.n_in))
        return go_back(p, &m);
    end_block(p, &outside);
    s.n_out = s.n_in;
    return add_loop(p, &s, s.block[1], 1, &outside) || go_back(p, &m);
}

/* -- loops over rows ------------------------------------------------------------------------------------------------------------------------ */
static bool draw_scan(program *p)
{
    mark m = mark_of(p);
    statement s = {.kind = SCAN, .n_blocks = 1};
    int x = any_value(p), n_x = 1 + below(&p->choices, 2), n_y = below(&p->choices, 3);
    const array *a = value_of(p, x);
    int64_t shape[MOST_RANK];
    if (a->rank == 0 || a->shape[0] < 1 || a->shape[0] > 9)
        return false;
    s.times = (int)a->shape[0];
    s.n_carry = 1 + below(&p->choices, 2);
    s.flag = one_in(&p->choices, 3);
    for (int k = 0; k < s.n_carry; k++)
        s.in[k] = one_in(&p->choices, 2) ? any_value(p) : constant_like(p, value_of(p, any_value(p)));
    s.in[s.n_carry] = x;
    for (int k = 1; k < n_x; k++) {
        int v = any_value(p);
        if (p->rank_of[v] == 0)
            v = x;
        memcpy(shape, p->shape_of[v], sizeof shape);
        shape[0] = s.times;
        s.in[s.n_carry + k] = fitted(p, v, p->rank_of[v], shape);
    }
    s.n_in = s.n_carry + n_x;
    for (int k = 0; k < s.n_in; k++)
        if (s.in[k] == NOTHING)
            return go_back(p, &m);
    if (!replicate_inputs(p, &s))
        return go_back(p, &m);
    for (int k = 0; k < s.n_in; k++)
        if (s.in[k] == NOTHING)
            return go_back(p, &m);
    mark outside;
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    int from = p->n_visible;
    for (int k = 0; k < s.n_carry; k++)
        add_param(p, s.in[k], NULL);
    for (int k = s.n_carry; k < s.n_in; k++)
        add_row_param(p, s.in[k], 0);
    draw_body(p, 5);
    if (!add_results_like(p, b, s.n_carry, s.in, from + s.n_in))
        return go_back(p, &m);
    for (int k = 0; k < n_y; k++) {
        int v = any_value(p);
        if (p->rank_of[v] < MOST_RANK - 1 && (v = whole(p, v)) != NOTHING)
            add_result(p, b, v);
    }
    end_block(p, &outside);
    s.n_out = p->block[b].n_results;
    return add_loop(p, &s, b, 0, &outside) || go_back(p, &m);
}

/* -- branches -------------------------------------------------------------------------------------------------------------------------------------- */
static int predicate(program *p)
{
    for (int tries = 0; tries < 4; tries++) {
        int v = any_value(p);
        if (p->rank_of[v] == 0 && !is_complex(p->dtype_of[v]) && value_of(p, v)->error == 0)
            return converted(p, v, one_in(&p->choices, 2) ? OLY_BOOL : OLY_INT32);
    }
    int v = any_value(p);
    statement sum = operation_of(OP_sum, 1, &v);
    sum.other_flag = true;
    v = simple(p, sum);
    if (v == NOTHING || value_of(p, v)->error > 0 || is_complex(p->dtype_of[v]))
        return NOTHING;
    statement gt = operation_of(OP_fmod, 2, (int[]){v, NUMBER});
    gt.number = 3;
    return converted(p, simple(p, gt), OLY_INT32);
}

static bool draw_branch(program *p)
{
    mark m = mark_of(p);
    statement s = {.kind = BRANCH};
    if ((s.in[0] = predicate(p)) == NOTHING)
        return go_back(p, &m);
    s.by_predicate = p->dtype_of[s.in[0]] == OLY_BOOL || one_in(&p->choices, 3);
    s.n_blocks = s.by_predicate ? 2 : 1 + below(&p->choices, MOST_BRANCHES);
    s.n_in = 2 + below(&p->choices, 2);
    for (int k = 1; k < s.n_in; k++)
        s.in[k] = any_value(p);
    if (!replicate_inputs(p, &s))
        return go_back(p, &m);
    mark outside = mark_of(p);
    for (int j = 0; j < s.n_blocks; j++) {
        int b = s.block[j] = open_block(p);
        if (b == NOTHING)
            return go_back(p, &m);
        p->depth++;
        int from = p->n_visible;
        for (int k = 1; k < s.n_in; k++)
            add_param(p, s.in[k], NULL);
        draw_body(p, j == 0 ? 4 : 3);
        if (j == 0) {
            s.n_out = 1 + below(&p->choices, 2);
            for (int k = 0; k < s.n_out; k++) {
                int v = k == 0 ? p->visible[p->n_visible - 1] : any_value(p);
                if (p->explicit_axes && (v = replicated(p, v)) == NOTHING)
                    return go_back(p, &m);
                add_result(p, b, v);
            }
        } else if (!add_results_like(p, b, s.n_out, p->block[s.block[0]].result, from))
            return go_back(p, &m);
        end_block(p, &outside);
    }
    return add_statement(p, &s) || go_back(p, &m);
}

bool draw_region(program *p)
{
    static const int weight[] = {10, 4, 5, 4, 4, 4, 4, 2, 6, 3};
    if (p->n_visible == 0 || p->n_statements > 80)
        return false;
    int which = p->products ? 7 : p->large ? 0 : weighted(&p->choices, 10, weight);
    if (p->in_gradient && which == 1)
        which = 0;
    if (p->in_map && p->plain_map && which != 4 && which != 7)
        return draw_operation(p);
    switch (which) {
    case 0: return draw_fori(p);
    case 1: return draw_while(p);
    case 2: return draw_scan(p);
    case 3: return draw_branch(p);
    case 4: return draw_vmap(p);
    case 5: return draw_map(p);
    case 6: return draw_gradient(p);
    case 8: return draw_gradients(p);
    case 9: return draw_axes_region(p);
    default: draw_function_call(p); return true;
    }
}
