/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing derivatives: of functions, and inside functions with respect to intermediate values. */
#include "draw.h"
#include <string.h>

static bool is_derivable(const program *p, int v)
{
    return p->dtype_of[v] == OLY_FLOAT32 || p->dtype_of[v] == OLY_FLOAT64;
}

/* A floating-point value of few elements: each is a run of the function; inside another derivative, four for each of
 * that one's. */
static int small_float(program *p)
{
    int most = p->in_gradient ? 5 : 36;
    int v = any_value(p);
    oly_dtype d = p->dtype_of[v] == OLY_FLOAT64 || one_in(&p->choices, 5) ? OLY_FLOAT64 : OLY_FLOAT32;
    int64_t shape[MOST_RANK], size = 1;
    memcpy(shape, p->shape_of[v], sizeof shape);
    for (int d_ = 0; d_ < p->rank_of[v]; d_++) {
        while (size * shape[d_] > most)
            shape[d_] = (shape[d_] + 1) / 2;
        size *= shape[d_];
    }
    return converted(p, fitted(p, v, p->rank_of[v], shape), d);
}

bool draw_gradient(program *p)
{
    mark m = mark_of(p);
    if (p->in_gradient > 1 || p->in_map || p->in_vmap || p->team != 1)
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
    mark outside;
    int b = begin_block(p, &s, &outside);
    if (b == NOTHING)
        return go_back(p, &m);
    p->in_gradient++;
    for (int k = 0; k < n; k++)
        add_param(p, s.in[k], NULL);
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
    add_result(p, b, v);
    if (s.flavour < 2 && one_in(&p->choices, 3) && (v = whole(p, any_value(p))) != NOTHING)
        add_result(p, b, v);
    end_block(p, &outside);
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

/* Does it contain a while loop, also in branches that are not taken? It has no reverse-mode derivative. */
static bool has_while(const program *p, int b)
{
    bool any = false;
    for (int k = 0; k < p->block[b].n; k++) {
        const statement *s = &p->statement[p->block[b].statement[k]];
        any = any || s->kind == WHILE;
        for (int j = 0; j < s->n_blocks; j++)
            any = any || has_while(p, s->block[j]);
    }
    return any;
}

/* Is it one of several results of a function, which may have computed the others from it? They then depend on it, too,
 * though nothing outside reads it. */
static bool comes_with_others(const program *p, int v)
{
    for (int k = 0; k < p->n_statements; k++) {
        const statement *s = &p->statement[k];
        for (int j = 0; j < s->n_out && s->n_out > 1 && s->n_blocks > 0; j++)
            if (s->out[j] == v)
                return true;
    }
    return false;
}

/* Inside a function called by another an argument is the value it was called with, from which others may have been
 * computed. */
static bool is_argument_inside(const program *p, int v)
{
    const block *b = &p->block[p->current];
    bool is = false, outermost = false;
    for (int k = 0; k < b->n_params; k++)
        is = is || b->param[k] == v;
    for (int k = 0; k < p->block[0].n; k++) {
        const statement *s = &p->statement[p->block[0].statement[k]];
        for (int j = 0; j < s->n_blocks; j++)
            outermost = outermost || s->block[j] == p->current;
    }
    return is && !outermost;
}

/* Does the path from what this block differentiates with respect to, to what it differentiates, lead through v? The
 * derivative depends on v, too, which the reference, where v is given, would miss. Statements with blocks may read
 * anything. */
static bool is_passed_by_derivative(const program *p, int v)
{
    const block *b = &p->block[p->current];
    for (int g = 0; g < b->n; g++) {
        const statement *made = &p->statement[b->statement[g]];
        bool follows[MOST_VALUES] = {false}, is_by = false;
        for (int k = 1; made->kind == GRADIENTS && k < made->n_in; k++) {
            follows[made->in[k]] = true;
            is_by = is_by || made->in[k] == v;
        }
        for (int j = 0; j < g && made->kind == GRADIENTS; j++) {
            const statement *s = &p->statement[b->statement[j]];
            bool reads = s->n_blocks > 0;
            for (int k = 0; k < s->n_in; k++)
                reads = reads || (s->in[k] >= 0 && follows[s->in[k]]);
            for (int k = 0; k < s->n_out && reads; k++)
                follows[s->out[k]] = true;
        }
        if (follows[v] && !is_by)
            return true;
    }
    return false;
}

/* oly_gradients: the last floating-point value of this block, summed, with respect to values of the block before it. */
bool draw_gradients(program *p)
{
    mark m = mark_of(p);
    statement s = {.kind = GRADIENTS, .n_in = 1};
    int found[MOST_VALUES], n = 0;
    if (p->current == 0 || p->in_gradient > 1 || p->in_map || p->team != 1 || has_while(p, p->current))
        return false;
    for (int k = 0; k < p->n_visible; k++) {
        int v = p->visible[k];
        if (p->home[v] == p->current && is_derivable(p, v) && !(p->explicit_axes && p->placed[v].mesh < 0) &&
            !p->captured[v] && !comes_with_others(p, v) && !is_argument_inside(p, v) && !is_passed_by_derivative(p, v))
            found[n++] = v;
    }
    if (n < 2)
        return false;
    int y = found[n - 1], most = p->in_gradient ? 5 : 36;
    if (p->rank_of[y] > 0) {
        statement sum = operation_of(OP_sum, 1, &y);
        sum.other_flag = true;
        y = simple(p, sum);
    }
    if (y == NOTHING || (y = whole(p, y)) == NOTHING)
        return go_back(p, &m);
    s.in[0] = y;
    for (int tries = 1 + below(&p->choices, 4); tries > 0; tries--) {
        int v = found[below(&p->choices, n - 1)];
        if (value_of(p, v)->size <= most)
            s.in[s.n_in++] = v;
    }
    s.n_out = s.n_in - 1;
    return (s.n_out > 0 && add_statement(p, &s)) || go_back(p, &m);
}
