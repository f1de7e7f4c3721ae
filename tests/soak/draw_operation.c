/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawing one operation: which one, its operands and its parameters. */
#include "program.h"
#include "check_element.h"
#include <math.h>
#include <string.h>

static int any_of_family(program *p, family f)
{
    int weight[N_OPS];
    for (int k = 0; k < N_OPS; k++)
        weight[k] = operations[k].family == f ? operations[k].weight : 0;
    return weighted(&p->choices, N_OPS, weight);
}

static double any_number(program *p)
{
    static const double numbers[] = {1, 2, 3, -1, 0.5, 0, -2, 0.25, 4, -3, 5};
    return numbers[below(&p->choices, sizeof numbers / sizeof *numbers)];
}

static bool broadcasts(const array *a, const array *b)
{
    for (int k = 1; k <= a->rank && k <= b->rank; k++) {
        int64_t x = a->shape[a->rank - k], y = b->shape[b->rank - k];
        if (x != y && x != 1 && y != 1)
            return false;
    }
    return true;
}

static int companion(program *p, int x)
{
    if (one_in(&p->choices, 2))
        return value_like(p, value_of(p, x));
    for (int tries = 0; tries < 5; tries++) {
        int y = any_value(p);
        if (broadcasts(value_of(p, x), value_of(p, y)))
            return y;
    }
    return value_like(p, value_of(p, x));
}

static bool draw_one(program *p, statement *s)
{
    s->n_in = 1;
    s->in[0] = any_value(p);
    s->dtype = any_dtype(p);
    s->place[0].mesh = NOTHING;
    if (s->op == OP_constraint) {
        s->place[0] = in_types(p, any_placement(p, p->rank_of[s->in[0]], p->group));
        return p->group != NOTHING && !p->in_map && !p->in_vmap;
    }
    return true;
}

static bool draw_two(program *p, statement *s)
{
    s->n_in = 2;
    s->in[0] = any_value(p);
    if (s->op == OP_fmod || one_in(&p->choices, 3)) {
        s->in[1] = NUMBER;
        s->number = s->op == OP_fmod ? 2 + below(&p->choices, 6) : any_number(p);
    } else if ((s->in[1] = companion(p, s->in[0])) == NOTHING)
        return false;
    if (one_in(&p->choices, 3) && s->op != OP_fmod) {
        int swap = s->in[0];
        s->in[0] = s->in[1];
        s->in[1] = swap;
    }
    return true;
}

static bool draw_three(program *p, statement *s)
{
    if (s->op == OP_clamp) {
        s->n_in = 1;
        s->in[0] = any_value(p);
        s->high[0] = 1 + below(&p->choices, 6);
        s->low[0] = element_is_unsigned(p->dtype_of[s->in[0]]) ? 0 : -s->high[0];
        return true;
    }
    s->n_in = 3;
    int x = any_value(p), mask = NOTHING;
    for (int tries = 0; tries < 4 && mask == NOTHING; tries++) { /* an existing bool */
        int v = any_value(p);
        if (p->dtype_of[v] == OLY_BOOL && broadcasts(value_of(p, v), value_of(p, x)))
            mask = v;
    }
    if (mask == NOTHING) {
        int in[2] = {companion(p, x), NUMBER};
        if (in[0] == NOTHING)
            return false;
        statement gt = operation_of(OP_gt, 2, in);
        gt.number = below(&p->choices, 3);
        mask = simple(p, gt);
        if (mask == NOTHING)
            mask = in[0];
    }
    s->in[0] = mask;
    s->in[1] = x;
    if (one_in(&p->choices, 3)) {
        s->in[2] = NUMBER;
        s->number = any_number(p);
        return true;
    }
    s->in[2] = companion(p, x);
    return s->in[2] != NOTHING;
}

static bool draw_reduction(program *p, statement *s)
{
    s->n_in = 1;
    s->in[0] = any_value(p);
    int rank = p->rank_of[s->in[0]];
    s->flag = one_in(&p->choices, 3);
    s->other_flag = rank == 0 || one_in(&p->choices, 4);
    if (s->other_flag)
        return true;
    if (s->op == OP_argmax || s->op == OP_argmin) {
        s->axes[s->n_axes++] = below(&p->choices, rank);
        return true;
    }
    for (int d = 0; d < rank; d++)
        if (one_in(&p->choices, 2))
            s->axes[s->n_axes++] = one_in(&p->choices, 4) ? d - rank : d;
    if (s->n_axes == 0)
        s->axes[s->n_axes++] = below(&p->choices, rank);
    return true;
}

static bool draw_running(program *p, statement *s)
{
    s->n_in = 1;
    s->in[0] = any_value(p);
    int rank = p->rank_of[s->in[0]];
    if (rank == 0)
        return false;
    s->k = below(&p->choices, rank) - (one_in(&p->choices, 4) ? rank : 0);
    s->flag = one_in(&p->choices, 3);
    return true;
}

/* -- products ----------------------------------------------------------------------------------------------------------------- */
/* [batch, features, space...]: one to three dimensions of space, strides, dilations, groups. */
static bool draw_conv_many(program *p, statement *s, int a, int b)
{
    int64_t shape[MOST_RANK];
    int rank = p->rank_of[a] < 4 ? 4 : p->rank_of[a], space = rank - 2;
    oly_dtype d = p->dtype_of[a] == OLY_FLOAT64 ? OLY_FLOAT64 : OLY_FLOAT32;
    for (int k = 0; k < rank; k++) {
        int from = k - (rank - p->rank_of[a]);
        shape[k] = from >= 0 ? p->shape_of[a][from] : 1;
    }
    s->k = shape[1] % 2 == 0 && one_in(&p->choices, 4) ? 2 : 1;
    if ((s->in[0] = converted(p, fitted(p, a, rank, shape), d)) == NOTHING)
        return false;
    s->mode = SAME + below(&p->choices, 2);
    s->shape[0] = s->rank = space;
    shape[1] /= s->k;
    shape[0] = s->k * (1 + below(&p->choices, 3));
    for (int k = 0; k < space; k++) {
        int64_t n = shape[2 + k];
        shape[2 + k] = 1 + below(&p->choices, n < 4 ? (int)n + 1 : 4);
        s->low[k] = one_in(&p->choices, 3) ? 1 + below(&p->choices, 3) : 1;
        s->high[k] = s->mode == VALID && one_in(&p->choices, 4) ? 2 : 1;
        s->step[k] = one_in(&p->choices, 4) ? 2 : 1;
    }
    s->in[1] = converted(p, fitted(p, b, rank, shape), d);
    return s->in[1] != NOTHING;
}

/* Of existing matrices: a b^T, with a contracted dimension that is often split. */
static bool draw_large_product(program *p, statement *s)
{
    int a = any_value(p), b = NOTHING;
    if (p->rank_of[a] != 2)
        return false;
    for (int k = p->n_visible - 1; k >= 0 && (b == NOTHING || one_in(&p->choices, 2)); k--)
        if (p->rank_of[p->visible[k]] == 2 && p->shape_of[p->visible[k]][1] == p->shape_of[a][1])
            b = p->visible[k];
    s->op = OP_crossed;
    s->n_in = 2;
    s->in[0] = a;
    s->in[1] = b;
    if (b != NOTHING && one_in(&p->choices, 3)) {
        statement t = operation_of(OP_transpose, 1, &b);
        t.n_axes = 2;
        t.axes[0] = 1;
        s->op = OP_matmul;
        s->in[1] = simple(p, t);
    }
    return s->in[1] != NOTHING;
}

static void shuffle(program *p, int n, int64_t *letters)
{
    for (int k = n - 1; k > 0; k--) {
        int j = below(&p->choices, k + 1);
        int64_t other = letters[j];
        letters[j] = letters[k];
        letters[k] = other;
    }
}

/* einsum: any number of dimensions that both have, which the result keeps (a batch) or which are summed over;
 * dimensions of one operand, which the result rarely leaves out; all in any order. Letters: a, b, ... of the first
 * operand, x, y of the second. */
static bool draw_contract(program *p, statement *s, int a, int b)
{
    int n = p->rank_of[a], n_second = 0, n_out = 0;
    int64_t shape[MOST_RANK];
    if (n < 1 || n > 4)
        return false;
    for (int d = 0; d < n; d++) {
        s->low[d] = 'a' + d;
        bool shared = below(&p->choices, 3) != 0, summed = shared ? !one_in(&p->choices, 4) : one_in(&p->choices, 8);
        if (shared)
            s->high[n_second++] = s->low[d];
        if (!summed)
            s->step[n_out++] = s->low[d];
    }
    for (int k = below(&p->choices, 3); k > 0 && n_second < 4 && n_out < 4; k--) {
        s->high[n_second++] = 'w' + k;
        if (!one_in(&p->choices, 8))
            s->step[n_out++] = 'w' + k;
    }
    if (n_second == 0)
        return false;
    shuffle(p, n_second, s->high);
    shuffle(p, n_out, s->step);
    for (int d = 0; d < n_second; d++)
        shape[d] = s->high[d] < 'w' ? p->shape_of[a][s->high[d] - 'a'] : any_extent(p);
    s->in[1] = fitted(p, b, n_second, shape);
    return s->in[1] != NOTHING;
}

static bool draw_product(program *p, statement *s)
{
    if (p->products)
        return draw_large_product(p, s);
    int a = any_value(p), b = any_value(p);
    const array *x = value_of(p, a);
    int64_t shape[MOST_RANK];
    s->n_in = 2;
    s->in[0] = a;
    s->mode = below(&p->choices, 3);
    switch ((int)s->op) {
    case OP_matmul:
    case OP_dot: {
        if (x->rank < 1 || x->rank > 2 + (s->op == OP_matmul))
            return false;
        int rank = one_in(&p->choices, 4) ? 1 : 2;
        shape[0] = x->shape[x->rank - 1];
        shape[1] = p->rank_of[b] ? value_of(p, b)->shape[p->rank_of[b] - 1] : any_extent(p);
        s->in[1] = fitted(p, b, rank, shape);
        break;
    }
    case OP_batched:
    case OP_crossed:
        if (x->rank != (s->op == OP_batched ? 3 : 2))
            return false;
        memcpy(shape, x->shape, sizeof shape);
        if (s->op == OP_batched) {
            shape[1] = x->shape[2];
            shape[2] = any_extent(p);
        } else
            shape[0] = any_extent(p);
        s->in[1] = fitted(p, b, x->rank, shape);
        break;
    case OP_outer:
        if (x->size * value_of(p, b)->size > 500)
            return false;
        s->in[1] = b;
        break;
    case OP_vdot: s->in[1] = value_like(p, x); break;
    case OP_correlate:
    case OP_convolve:
        if (x->rank != 1)
            return false;
        shape[0] = 1 + below(&p->choices, 4);
        s->in[1] = fitted(p, b, 1, shape);
        break;
    case OP_conv: {
        s->mode = SAME + below(&p->choices, 2);
        if (x->rank != 3) {
            if (x->rank == 0 || x->rank > 3)
                return false;
            shape[0] = x->rank == 1 ? 1 : 2;
            shape[1] = x->rank == 1 ? 1 : x->shape[0];
            shape[2] = x->shape[x->rank - 1];
            s->in[0] = fitted(p, a, 3, shape);
        }
        if (s->in[0] == NOTHING)
            return false;
        shape[0] = 1 + below(&p->choices, 3);
        shape[1] = value_of(p, s->in[0])->shape[1];
        shape[2] = 1 + below(&p->choices, 4);
        s->in[1] = converted(p, fitted(p, b, 3, shape), p->dtype_of[s->in[0]]);
        break;
    }
    case OP_conv_many: return draw_conv_many(p, s, a, b);
    case OP_contract: return draw_contract(p, s, a, b);
    default:
        s->n_in = 1;
        s->mode = SAME + below(&p->choices, 2);
        s->shape[0] = 1 + below(&p->choices, 4);
        return true;
    }
    return s->in[1] != NOTHING;
}

/* -- rearranging ----------------------------------------------------------------------------------------------------------------- */
static void any_part(program *p, statement *s, const array *a)
{
    s->rank = a->rank;
    for (int d = 0; d < a->rank; d++) {
        int n = (int)a->shape[d];
        s->step[d] = 1;
        s->low[d] = 0;
        s->high[d] = n;
        if (n == 0)
            continue;
        switch (below(&p->choices, 8)) {
        case 0: /* interior */
        case 1:
        case 2: {
            int before = below(&p->choices, 3), behind = below(&p->choices, 3);
            if (before + behind < n) {
                s->low[d] = before;
                s->high[d] = n - behind;
            }
            break;
        }
        case 3: {
            s->low[d] = below(&p->choices, n);
            s->high[d] = s->low[d] + below(&p->choices, n - (int)s->low[d] + 1);
            break;
        }
        case 4: s->step[d] = 2 + below(&p->choices, 2); break;
        case 5: /* reversed */
            s->step[d] = -1 - below(&p->choices, 2);
            s->low[d] = n - 1 - below(&p->choices, n > 3 ? 2 : 1);
            s->high[d] = -1;
            break;
        case 6:
            if (p->profile == ANYTHING && one_in(&p->choices, 2)) {
                s->step[d] = 0;
                s->low[d] = below(&p->choices, n);
            }
            break;
        default: break;
        }
        if (p->profile == FIELDS && s->step[d] != 1) {
            s->step[d] = 1;
            s->low[d] = 0;
            s->high[d] = n;
        }
    }
}

static bool draw_update(program *p, statement *s, const array *a)
{
    int64_t shape[MOST_RANK];
    int rank = 0;
    s->n_in = 2;
    any_part(p, s, a);
    for (int d = 0; d < a->rank; d++)
        if (s->step[d] != 0)
            shape[rank++] = sliced_extent(s, d);
    if (one_in(&p->choices, 4)) {
        s->in[1] = NUMBER;
        s->number = below(&p->choices, 5);
        return true;
    }
    s->in[1] = fitted(p, any_value(p), rank, shape);
    return s->in[1] != NOTHING;
}

static bool draw_joined(program *p, statement *s, const array *a)
{
    int64_t shape[MOST_RANK];
    if (s->op == OP_concatenate && a->rank == 0)
        return false;
    s->k = below(&p->choices, a->rank + (s->op == OP_stack));
    int more = 1 + below(&p->choices, 2);
    for (int k = 0; k < more; k++) {
        memcpy(shape, a->shape, sizeof shape);
        int b = any_value(p);
        if (s->op == OP_concatenate)
            shape[s->k] =
                one_in(&p->choices, 2) && p->rank_of[b] == a->rank ? p->shape_of[b][s->k] : 1 + below(&p->choices, 3);
        b = fitted(p, b, a->rank, shape);
        if (b != NOTHING)
            s->in[s->n_in++] = b;
    }
    for (int k = below(&p->choices, s->n_in); k > 0; k--) {
        int first = s->in[0];
        memmove(s->in, s->in + 1, sizeof *s->in * (size_t)(s->n_in - 1));
        s->in[s->n_in - 1] = first;
    }
    return true;
}

static bool draw_reshape(program *p, statement *s, const array *a)
{
    if (a->size == 0) {
        s->rank = a->rank;
        for (int d = 0; d < a->rank; d++)
            s->shape[d] = a->shape[a->rank - 1 - d];
        return true;
    }
    int64_t left = a->size;
    s->rank = 1 + below(&p->choices, 4);
    for (int d = 0; d < s->rank; d++)
        s->shape[d] = 1;
    bool in_order = one_in(&p->choices, 2);
    int d = 0;
    for (int64_t f = 2; left > 1; f++)
        while (left % f == 0) {
            left /= f;
            if (in_order) {
                s->shape[d] *= f;
                if (d < s->rank - 1 && one_in(&p->choices, 2))
                    d++;
            } else
                s->shape[below(&p->choices, s->rank)] *= f;
        }
    return true;
}

static bool draw_rearrangement(program *p, statement *s)
{
    s->n_in = 1;
    s->in[0] = any_value(p);
    const array *a = value_of(p, s->in[0]);
    if (a->rank == 0 && s->op != OP_broadcast && s->op != OP_stack && s->op != OP_reshape)
        return false;
    switch ((int)s->op) {
    case OP_slice: any_part(p, s, a); return true;
    case OP_update: return draw_update(p, s, a);
    case OP_concatenate:
    case OP_stack: return draw_joined(p, s, a);
    case OP_reshape: return draw_reshape(p, s, a);
    case OP_roll:
        s->k = below(&p->choices, a->rank);
        s->number = below(&p->choices, 9) - 4;
        return true;
    case OP_flip:
        for (int d = 0; d < a->rank; d++)
            if (one_in(&p->choices, 2))
                s->axes[s->n_axes++] = d;
        if (s->n_axes == 0)
            s->axes[s->n_axes++] = below(&p->choices, a->rank);
        return true;
    case OP_transpose:
        s->n_axes = a->rank;
        for (int d = 0; d < a->rank; d++)
            s->axes[d] = a->rank - 1 - d;
        for (int d = a->rank - 1; d > 0 && a->rank > 2; d--) {
            int e = below(&p->choices, d + 1), swap = s->axes[d];
            s->axes[d] = s->axes[e];
            s->axes[e] = swap;
        }
        return true;
    case OP_broadcast:
        s->rank = a->rank + 1;
        if (s->rank > 4)
            return false;
        s->shape[0] = any_extent(p);
        for (int d = 0; d < a->rank; d++)
            s->shape[d + 1] = a->shape[d] == 1 && one_in(&p->choices, 2) ? any_extent(p) : a->shape[d];
        return true;
    case OP_pad:
    case OP_pad_mode:
        s->rank = a->rank;
        s->mode = EDGE + below(&p->choices, 4);
        s->number = below(&p->choices, 3);
        for (int d = 0; d < a->rank; d++) {
            bool negative = s->op == OP_pad && one_in(&p->choices, 6);
            s->low[d] = below(&p->choices, 3) - (negative ? 2 : 0);
            s->high[d] = below(&p->choices, 3) - (negative ? 2 : 0);
            s->step[d] = s->op == OP_pad && p->profile == ANYTHING && one_in(&p->choices, 8) ? 1 : 0;
        }
        return true;
    case OP_tile:
        s->rank = a->rank;
        for (int d = 0; d < a->rank; d++)
            s->shape[d] = 1 + (one_in(&p->choices, 2) ? below(&p->choices, 3) : 0);
        return true;
    case OP_repeat:
        s->k = below(&p->choices, a->rank);
        s->shape[0] = 1 + below(&p->choices, 3);
        return true;
    default: s->number = below(&p->choices, 5) - 2; return true;
    }
}

/* -- sources, and collectives -------------------------------------------------------------------------------------- */
static bool draw_source(program *p, statement *s)
{
    const array *like = value_of(p, any_value(p));
    s->dtype = any_dtype(p);
    s->rank = like->rank;
    memcpy(s->shape, like->shape, sizeof s->shape);
    s->number = below(&p->choices, 4);
    if (s->op == OP_iota) {
        if (s->rank == 0)
            return false;
        s->k = below(&p->choices, s->rank);
    } else if (s->op == OP_eye) {
        s->rank = 2;
        s->shape[0] = like->rank > 0 ? like->shape[0] : 3;
        s->shape[1] = like->rank > 1 ? like->shape[1] : s->shape[0];
        s->k = below(&p->choices, 5) - 2;
    }
    return true;
}

/* Keys are any existing uint32[2], or new ones. */
static int key_value(program *p)
{
    for (int k = p->n_visible - 1; k >= 0; k--) {
        int v = p->visible[k];
        if (p->dtype_of[v] == OLY_UINT32 && p->rank_of[v] == 1 && p->shape_of[v][0] == 2 && !one_in(&p->choices, 3))
            return v;
    }
    statement s = operation_of(OP_random_key, 0, NULL);
    s.k = below(&p->choices, 9);
    return simple(p, s);
}

static bool draw_random(program *p, statement *s)
{
    static const oly_dtype whole[] = {OLY_INT32, OLY_UINT32, OLY_UINT8, OLY_INT8, OLY_UINT16, OLY_INT16};
    static const oly_dtype real[] = {OLY_FLOAT32, OLY_FLOAT16, OLY_BFLOAT16, OLY_FLOAT64};
    const array like = *value_of(p, any_value(p));
    s->place[0].mesh = NOTHING;
    s->k = below(&p->choices, 9);
    if (s->op == OP_random_key)
        return true;
    s->n_in = 1;
    if ((s->in[0] = key_value(p)) == NOTHING)
        return false;
    s->rank = like.rank;
    memcpy(s->shape, like.shape, sizeof s->shape);
    switch ((int)s->op) {
    case OP_random_fold_in:
        s->n_in = 2;
        s->in[1] = start_value(p);
        return s->in[1] != NOTHING;
    case OP_random_permutation:
        s->n_in = 2;
        s->in[1] = any_value(p);
        return true;
    case OP_random_split: s->shape[0] = 1 + below(&p->choices, 4); return true;
    case OP_random_bits: s->dtype = whole[1 + below(&p->choices, 2)]; break;
    case OP_random_uniform: s->dtype = real[below(&p->choices, 4)]; break;
    case OP_random_bernoulli: s->number = 0.25 * (1 + below(&p->choices, 3)); break;
    default:
        s->dtype = whole[below(&p->choices, 6)];
        s->low[0] = element_is_unsigned(s->dtype) ? 0 : -below(&p->choices, 8);
        s->high[0] = below(&p->choices, 20);
    }
    if (!p->explicit_axes && !p->in_map && !p->in_vmap && one_in(&p->choices, 3))
        s->place[0] = any_placement(p, s->rank, p->group);
    return true;
}

static bool draw_collective(program *p, statement *s)
{
    if (!p->in_map || !p->map || p->team == 1)
        return false;
    const mesh_text *m = p->map;
    s->n_in = s->op == OP_axis_index ? 0 : 1;
    s->in[0] = any_value(p);
    s->place[0] = (placement){.mesh = (int8_t)(m - p->mesh)};
    for (int k = 0; k < m->n_axes; k++)
        if (one_in(&p->choices, 2))
            s->axes[s->n_axes++] = k;
    if (s->n_axes == 0)
        s->axes[s->n_axes++] = below(&p->choices, m->n_axes);
    int rank = p->rank_of[s->in[0]];
    s->k = below(&p->choices, s->op == OP_ppermute ? 4 : rank ? rank : 1);
    s->shape[0] = below(&p->choices, rank ? rank : 1);
    s->flag = one_in(&p->choices, 2);
    return true;
}

/* Not where a map's elements go different ways around a loop or branch: it may be one that the map makes of selects. */
static bool may_have_effect(const program *p)
{
    return !p->in_vmap || p->depth <= 2;
}

static bool draw_inside(program *p, statement *s)
{
    s->n_in = 1;
    s->in[0] = any_value(p);
    s->flag = one_in(&p->choices, 2);
    s->k = below(&p->choices, 4);
    if (p->explicit_axes || p->rank_of[s->in[0]] > 4)
        return false;
    if (s->op != OP_custom && s->op != OP_neighbours && s->op != OP_product && !may_have_effect(p))
        return false;
    if (s->op == OP_neighbours || s->op == OP_product) {
        if (s->op == OP_product && p->rank_of[s->in[0]] != 2)
            return false;
        /* it has no derivative, also in branches that are not taken, where the reference does not see it */
        if (s->op == OP_neighbours && p->in_gradient && p->dtype_of[s->in[0]] != OLY_INT32)
            return false;
        if (p->dtype_of[s->in[0]] != OLY_INT32)
            s->in[0] = converted(p, s->in[0], OLY_FLOAT32);
    }
    if (s->op != OP_product || s->in[0] == NOTHING)
        return s->in[0] != NOTHING;
    int64_t shape[] = {p->shape_of[s->in[0]][1], any_extent(p)};
    s->n_in = 2;
    s->in[1] = converted(p, fitted(p, any_value(p), 2, shape), p->dtype_of[s->in[0]]);
    return s->in[1] != NOTHING;
}

static int family_weights(const program *p, int *weight)
{
    static const int usual[] = {
        [ONE] = 12,       [TWO] = 30,      [THREE] = 8,  [REDUCTION] = 12, [RUNNING] = 6, [PRODUCT] = 9,
        [REARRANGE] = 30, [INDEXING] = 10, [SOURCE] = 4, [RANDOM] = 3,     [INSIDE] = 5,  [COLLECTIVE] = 0};
    static const int fields[] = {
        [ONE] = 6,        [TWO] = 30,     [THREE] = 7,  [REDUCTION] = 0, [RUNNING] = 0,   [PRODUCT] = 0,
        [REARRANGE] = 40, [INDEXING] = 0, [SOURCE] = 1, [INSIDE] = 1,    [COLLECTIVE] = 0};
    static const int smooth[] = {
        [ONE] = 8,        [TWO] = 30,     [THREE] = 5,  [REDUCTION] = 8, [RUNNING] = 3,   [PRODUCT] = 14,
        [REARRANGE] = 30, [INDEXING] = 8, [SOURCE] = 1, [INSIDE] = 5,    [COLLECTIVE] = 0};
    memcpy(weight, p->profile == FIELDS ? fields : p->in_gradient ? smooth : usual, sizeof usual);
    if (p->in_map)
        weight[COLLECTIVE] = 25;
    if (p->products) {
        weight[PRODUCT] = 70;
        weight[ONE] = 30; /* constraints */
    } else if (p->large && p->profile == ANYTHING)
        weight[RUNNING] = 40; /* long lines are sorted in place */
    return COLLECTIVE + 1;
}

bool draw_operation(program *p)
{
    int weight[COLLECTIVE + 1];
    if (p->n_visible == 0)
        return false;
    if (p->explicit_axes && one_in(&p->choices, 8) && draw_unreduced_sum(p))
        return true;
    for (int tries = 0; tries < 3; tries++) {
        family f = (family)weighted(&p->choices, family_weights(p, weight), weight);
        statement s = operation_of((op)any_of_family(p, f), 0, NULL);
        int statements = p->n_statements, values = p->n_values, visible = p->n_visible,
            in_block = p->block[p->current].n;
        bool good = false;
        if (p->profile == FIELDS &&
            (s.op == OP_reshape || s.op == OP_transpose || s.op == OP_stack || s.op == OP_tile || s.op == OP_repeat ||
             s.op == OP_diagonal || s.op == OP_convert || s.op == OP_complex))
            s.op = f == REARRANGE ? (below(&p->choices, 2) ? OP_slice : OP_update) : f == ONE ? OP_neg : OP_add;
        switch (f) {
        case ONE: good = draw_one(p, &s); break;
        case TWO: good = draw_two(p, &s); break;
        case THREE: good = draw_three(p, &s); break;
        case REDUCTION: good = draw_reduction(p, &s); break;
        case RUNNING: good = draw_running(p, &s); break;
        case PRODUCT: good = draw_product(p, &s); break;
        case REARRANGE: good = draw_rearrangement(p, &s); break;
        case INDEXING: good = draw_indexing(p, &s); break;
        case SOURCE: good = draw_source(p, &s); break;
        case RANDOM: good = draw_random(p, &s); break;
        case INSIDE: good = draw_inside(p, &s); break;
        case COLLECTIVE: good = draw_collective(p, &s); break;
        }
        if (good && add_statement(p, &s))
            return true;
        p->n_statements = statements;
        p->n_values = values;
        p->n_visible = visible;
        p->block[p->current].n = in_block;
    }
    return false;
}
