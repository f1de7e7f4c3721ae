/* Drawing statements that have blocks: loops, branches, maps, derivatives. A block is drawn with the values of its first run, then
 * the whole statement is evaluated; a loop whose values grow beyond what is exact gets its carries reduced, or fewer steps. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

/* Where to go back to when a region is refused. */
typedef struct mark {
    int statements, blocks, values, visible, current, in_block, profile, depth, in_gradient;
} mark;

static mark mark_of(const program *p)
{
    return (mark){p->n_statements,        p->n_blocks, p->n_values, p->n_visible,  p->current,
                  p->block[p->current].n, p->profile,  p->depth,    p->in_gradient};
}
static bool go_back(program *p, const mark *m)
{
    p->n_statements = m->statements;
    p->n_blocks = m->blocks;
    p->n_values = m->values;
    p->n_visible = m->visible;
    p->current = m->current;
    p->block[p->current].n = m->in_block;
    p->profile = m->profile;
    p->depth = m->depth;
    p->in_gradient = m->in_gradient;
    p->refused = false;
    return false;
}

/* A parameter of the current block that has, for each member, the value of v (or, v NOTHING, `a`). */
static int param(program *p, int v, array *a)
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

static array *number_array(oly_dtype dtype, double x)
{
    array *a = new_array(dtype, 0, NULL);
    a->v[0] = x;
    return a;
}

static void result(program *p, int b, int v)
{
    if (p->home[v] == 0)
        p->captured[v] = true;
    p->block[b].result[p->block[b].n_results++] = v;
}

/* Over Explicit axes what a loop begins with has to be placed somewhere. */
static bool replicate_free(program *p, statement *s)
{
    for (int k = 0; k < s->n_in && p->explicit_axes; k++)
        if (p->placed[s->in[k]].mesh < 0 && (s->in[k] = replicated(p, s->in[k])) == NOTHING)
            return false;
    return true;
}

static int whole(program *p, int v)
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

/* Makes the results of a loop's body smaller, in the body. */
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

/* The sum of shifted parts of the carry, into its inner part; or of rolls. */
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
    if (one_in(&p->choices, 4)) { /* a source term from outside */
        int f = fitted(p, any_value(p), like.rank, value_of(p, sum)->shape);
        if (f != NOTHING && (f = converted(p, f, like.dtype)) != NOTHING)
            sum = simple(p, operation_of(OP_add, 2, (int[]){sum, f}));
    }
    if (!rolls && sum != NOTHING) {
        update.in[1] = sum;
        simple(p, update);
    }
}

/* A number of its own that only looks at the fields: a sum or the largest so far, or one entry for each step. */
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
    mark outside = mark_of(p);
    int b = open_block(p);
    if (b == NOTHING)
        return go_back(p, &m);
    s.block[0] = b;
    p->depth++;
    param(p, NOTHING, number_array(OLY_INT32, s.k));
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++)
        param(p, s.in[k], NULL);
    if (way == LINEAR)
        draw_linear_body(p, p->block[b].param[1]);
    else
        draw_body(p, way == FIELDS ? 7 : 6);
    if (s.n_in > fields && !draw_look(p, &s, true, &look))
        return go_back(p, &m);
    for (int k = 0; k < s.n_in; k++) {
        int v =
            placed_as(p, k >= fields ? look : result_like(p, value_of(p, s.in[k]), from + s.n_in), &p->placed[s.in[k]]);
        if (v == NOTHING)
            return go_back(p, &m);
        result(p, b, v);
    }
    p->profile = outside.profile = m.profile;
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
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
    mark outside = mark_of(p);
    if ((s.block[0] = open_block(p)) == NOTHING)
        return go_back(p, &m);
    for (int k = 0; k < s.n_in; k++)
        param(p, s.in[k], NULL);
    int in[2] = {p->block[s.block[0]].param[0], NUMBER};
    statement below_limit = operation_of(OP_lt, 2, in);
    below_limit.number = 1 + below(&p->choices, 6);
    int more = simple(p, below_limit);
    if (more != NOTHING && one_in(&p->choices, 2)) { /* and something about the values */
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
    result(p, s.block[0], more);
    close_block(p, outside.current, outside.visible);
    if ((s.block[1] = open_block(p)) == NOTHING)
        return go_back(p, &m);
    p->depth++;
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++)
        param(p, s.in[k], NULL);
    draw_body(p, 5);
    statement next = operation_of(OP_add, 2, (int[]){p->block[s.block[1]].param[0], NUMBER});
    next.number = 1 + below(&p->choices, 2);
    int counter = simple(p, next);
    if (counter == NOTHING)
        return go_back(p, &m);
    result(p, s.block[1], counter);
    for (int k = 1; k < s.n_in; k++) {
        int v = placed_as(p, result_like(p, value_of(p, s.in[k]), from + s.n_in), &p->placed[s.in[k]]);
        if (v == NOTHING)
            return go_back(p, &m);
        result(p, s.block[1], v);
    }
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
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
    mark outside = mark_of(p);
    int b = open_block(p);
    if (b == NOTHING)
        return go_back(p, &m);
    s.block[0] = b;
    p->depth++;
    int from = p->n_visible;
    for (int k = 0; k < s.n_carry; k++)
        param(p, s.in[k], NULL);
    for (int k = s.n_carry; k < s.n_in; k++) {
        array *row = slice_of(value_of(p, s.in[k]), 0, 0);
        int w = param(p, NOTHING, row);
        for (int t = 0; t < p->team; t++)
            p->now[t][w] = slice_of(p->now[t][s.in[k]], 0, 0);
    }
    draw_body(p, 5);
    for (int k = 0; k < s.n_carry; k++) {
        int v = placed_as(p, result_like(p, value_of(p, s.in[k]), from + s.n_in), &p->placed[s.in[k]]);
        if (v == NOTHING)
            return go_back(p, &m);
        result(p, b, v);
    }
    for (int k = 0; k < n_y; k++) {
        int v = any_value(p);
        if (p->rank_of[v] < MOST_RANK - 1 && (v = whole(p, v)) != NOTHING)
            result(p, b, v);
    }
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
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
            param(p, s.in[k], NULL);
        draw_body(p, j == 0 ? 4 : 3);
        if (j == 0) {
            s.n_out = 1 + below(&p->choices, 2);
            for (int k = 0; k < s.n_out; k++) {
                int v = k == 0 ? p->visible[p->n_visible - 1] : any_value(p);
                if (p->explicit_axes && (v = replicated(p, v)) == NOTHING)
                    return go_back(p, &m);
                result(p, b, v);
            }
        } else
            for (int k = 0; k < s.n_out; k++) {
                int first = p->block[s.block[0]].result[k];
                int v = placed_as(p, result_like(p, value_of(p, first), from), &p->placed[first]);
                if (v == NOTHING)
                    return go_back(p, &m);
                result(p, b, v);
            }
        p->depth = m.depth;
        close_block(p, outside.current, outside.visible);
    }
    return add_statement(p, &s) || go_back(p, &m);
}

/* -- maps --------------------------------------------------------------------------------------------------------------------------------------------- */
static bool draw_vmap(program *p)
{
    mark m = mark_of(p);
    statement s = {.kind = VMAP, .n_blocks = 1};
    int x = any_value(p);
    if (p->rank_of[x] == 0)
        return false;
    s.in[0] = x;
    s.axes[0] = below(&p->choices, p->rank_of[x]);
    int64_t n = p->shape_of[x][s.axes[0]], shape[MOST_RANK];
    if (n < 1 || n > 17)
        return false;
    s.n_in = 1 + below(&p->choices, 3);
    for (int k = 1; k < s.n_in; k++) {
        s.in[k] = any_value(p);
        s.axes[k] = UNMAPPED;
        int rank = p->rank_of[s.in[k]];
        if (rank == 0 || one_in(&p->choices, 3))
            continue;
        s.axes[k] = below(&p->choices, rank);
        memcpy(shape, p->shape_of[s.in[k]], sizeof shape);
        shape[s.axes[k]] = n;
        if ((s.in[k] = fitted(p, s.in[k], rank, shape)) == NOTHING)
            return go_back(p, &m);
    }
    if (!replicate_inputs(p, &s))
        return go_back(p, &m);
    mark outside = mark_of(p);
    int b = open_block(p);
    if (b == NOTHING)
        return go_back(p, &m);
    s.block[0] = b;
    p->depth++;
    p->in_vmap++;
    int from = p->n_visible;
    for (int k = 0; k < s.n_in; k++) {
        if (s.axes[k] == UNMAPPED) {
            param(p, s.in[k], NULL);
            continue;
        }
        int w = param(p, NOTHING, slice_of(value_of(p, s.in[k]), s.axes[k], 0));
        for (int t = 0; t < p->team; t++)
            p->now[t][w] = slice_of(p->now[t][s.in[k]], s.axes[k], 0);
    }
    draw_body(p, 5);
    s.n_out = 1 + below(&p->choices, 2);
    for (int k = 0; k < s.n_out; k++) {
        int v = k == 0 ? p->visible[p->n_visible - 1] : p->visible[from + below(&p->choices, p->n_visible - from)];
        if ((v = whole(p, v)) == NOTHING) {
            p->in_vmap--;
            return go_back(p, &m);
        }
        result(p, b, v);
        s.out_axes[k] = below(&p->choices, p->rank_of[v] + 1);
    }
    p->in_vmap--;
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
    return add_statement(p, &s) || go_back(p, &m);
}

static void spec_over_all(const mesh_text *m, placement *place)
{
    for (int k = 0; k < m->n_axes; k++)
        place->axis[0][place->n[0]++] = (int8_t)k;
}

static bool draw_map(program *p)
{
    mark m = mark_of(p);
    if (p->group == NOTHING || p->explicit_axes || p->in_map || p->in_vmap || p->team != 1)
        return false;
    statement s = {.kind = MAP, .n_blocks = 1, .k = 3 * p->group + below(&p->choices, 3)};
    const mesh_text *mesh = &p->mesh[s.k];
    int devices = 1;
    for (int k = 0; k < mesh->n_axes; k++)
        devices *= mesh->size[k];
    if (devices == 1)
        return false;
    s.n_in = 1 + below(&p->choices, 3);
    s.flag = one_in(&p->choices, 2);
    for (int k = 0; k < s.n_in; k++) {
        int64_t shape[MOST_RANK], size = 1;
        int v = any_value(p), rank = p->rank_of[v];
        s.place[k].mesh = (int8_t)s.k;
        for (int a = 0; a < mesh->n_axes && rank > 0 && rank < MOST_RANK; a++)
            if (!one_in(&p->choices, 5)) {
                int d = below(&p->choices, rank);
                s.place[k].axis[d][s.place[k].n[d]++] = (int8_t)a;
            }
        for (int d = 0; d < rank; d++) {
            int64_t n = 1;
            for (int a = 0; a < s.place[k].n[d]; a++)
                n *= mesh->size[s.place[k].axis[d][a]];
            shape[d] = (p->shape_of[v][d] + n - 1) / n * n;
            size *= shape[d];
        }
        if (size > 400 || (s.in[k] = fitted(p, v, rank, shape)) == NOTHING)
            return go_back(p, &m);
    }
    mark outside = mark_of(p);
    int b = open_block(p);
    if (b == NOTHING)
        return go_back(p, &m);
    s.block[0] = b;
    p->depth++;
    p->in_map++;
    p->plain_map = !s.flag;
    /* what the devices begin with: as evaluating the map without statements leaves it */
    for (int k = 0; k < s.n_in; k++)
        param(p, s.in[k], NULL);
    statement empty = s;
    empty.n_out = 0;
    bool good = evaluate_statement(p, &empty);
    if (!good) {
        p->in_map--;
        return go_back(p, &m);
    }
    p->team = devices;
    p->map = mesh;
    for (int k = 0; k < s.n_in; k++) { /* they have the shards' shapes */
        int w = p->block[b].param[k];
        memcpy(p->shape_of[w], p->now[0][w]->shape, sizeof p->shape_of[w]);
    }
    int from = p->n_visible - s.n_in;
    draw_body(p, 8);
    s.n_out = 1 + below(&p->choices, 2);
    for (int k = 0; k < s.n_out; k++) {
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
        if (v == NOTHING) {
            p->in_map--;
            p->team = 1;
            p->map = NULL;
            return go_back(p, &m);
        }
        result(p, b, v);
    }
    p->in_map--;
    p->team = 1;
    p->map = NULL;
    p->plain_map = false;
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
    return add_statement(p, &s) || go_back(p, &m);
}

/* -- derivatives ----------------------------------------------------------------------------------------------------------------------------------------- */
static int small_float(program *p)
{
    int v = any_value(p);
    oly_dtype d = p->dtype_of[v] == OLY_FLOAT64 || one_in(&p->choices, 5) ? OLY_FLOAT64 : OLY_FLOAT32;
    int64_t shape[MOST_RANK], size = 1;
    memcpy(shape, p->shape_of[v], sizeof shape);
    for (int d_ = 0; d_ < p->rank_of[v]; d_++) {
        while (size * shape[d_] > 36)
            shape[d_] = (shape[d_] + 1) / 2;
        size *= shape[d_];
    }
    return converted(p, fitted(p, v, p->rank_of[v], shape), d);
}

static bool draw_gradient(program *p)
{
    mark m = mark_of(p);
    if (p->in_gradient || p->in_map || p->in_vmap || p->team != 1)
        return false;
    statement s = {.kind = GRADIENT, .n_blocks = 1, .flavour = below(&p->choices, 4)};
    int n = 1 + below(&p->choices, 2);
    for (int k = 0; k < n; k++)
        if ((s.in[k] = small_float(p)) == NOTHING)
            return go_back(p, &m);
    s.n_in = n;
    if (!replicate_inputs(p, &s))
        return go_back(p, &m);
    for (int k = 0; k < n; k++)
        if (k == 0 || one_in(&p->choices, 2))
            s.axes[s.n_axes++] = k;
    mark outside = mark_of(p);
    int b = open_block(p);
    if (b == NOTHING)
        return go_back(p, &m);
    s.block[0] = b;
    p->depth++;
    p->in_gradient++;
    for (int k = 0; k < n; k++)
        param(p, s.in[k], NULL);
    draw_body(p, 6);
    int v = NOTHING;
    for (int k = p->n_visible - 1; k >= 0 && v == NOTHING; k--)
        if (p->home[p->visible[k]] == b &&
            (p->dtype_of[p->visible[k]] == OLY_FLOAT32 || p->dtype_of[p->visible[k]] == OLY_FLOAT64))
            v = p->visible[k];
    if (v == NOTHING)
        return go_back(p, &m);
    if (s.flavour < 2 && p->rank_of[v] > 0) {
        statement sum = operation_of(OP_sum, 1, &v);
        sum.other_flag = true;
        v = simple(p, sum);
    }
    if (v == NOTHING || (v = whole(p, v)) == NOTHING)
        return go_back(p, &m);
    result(p, b, v);
    if (s.flavour < 2 && one_in(&p->choices, 3) && (v = whole(p, any_value(p))) != NOTHING)
        result(p, b, v);
    p->in_gradient--;
    p->depth = m.depth;
    close_block(p, outside.current, outside.visible);
    if (s.flavour == 2)
        s.in[s.n_in++] = value_like(p, value_of(p, v));
    for (int k = 0; k < s.n_axes && s.flavour == 3; k++)
        s.in[s.n_in++] = value_like(p, value_of(p, s.in[s.axes[k]]));
    for (int k = 0; k < s.n_in; k++)
        if (s.in[k] == NOTHING)
            return go_back(p, &m);
    if (!replicate_inputs(p, &s))
        return go_back(p, &m);
    int results = p->block[b].n_results;
    s.n_out = s.flavour == 0 ? s.n_axes + results - 1 : s.flavour == 3 ? 2 * results : s.n_axes + results;
    return add_statement(p, &s) || go_back(p, &m);
}

bool draw_region(program *p)
{
    static const int weight[] = {10, 4, 5, 4, 4, 4, 4, 2};
    if (p->n_visible == 0 || p->n_statements > 80)
        return false;
    int which = p->large ? 0 : weighted(&p->choices, 8, weight);
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
    default: draw_function_call(p); return true;
    }
}
