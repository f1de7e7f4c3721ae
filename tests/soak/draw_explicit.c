/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs over Explicit axes: the placement of every value is known while drawing (`placed`), and operands that an
 * operation would refuse are resharded before it. */
#include "program.h"
#include <string.h>

static bool splits(const placement *a, int d)
{
    return a->n[d] > 0;
}

static bool same_place(const placement *a, const placement *b)
{
    return a->mesh == b->mesh && a->unreduced == b->unreduced && memcmp(a->n, b->n, sizeof a->n) == 0 &&
           memcmp(a->axis, b->axis, sizeof a->axis) == 0;
}

static bool splits_nothing(const placement *a)
{
    if (a->unreduced)
        return false;
    for (int d = 0; d < MOST_RANK; d++)
        if (splits(a, d))
            return false;
    return true;
}

int placed_as(program *p, int v, const placement *place)
{
    if (!p->explicit_axes || v == NOTHING || same_place(&p->placed[v], place))
        return v;
    if (place->unreduced)
        return NOTHING;
    statement s = operation_of(OP_reshard, 1, &v);
    s.place[0] = *place;
    return simple(p, s);
}

int replicated(program *p, int v)
{
    return placed_as(p, v, &(placement){.mesh = (int8_t)p->explicit_mesh});
}

placement in_types(const program *p, placement place)
{
    for (int d = 0; d < MOST_RANK && place.mesh >= 0; d++) {
        int n = place.n[d];
        place.n[d] = 0;
        for (int k = 0; k < n; k++)
            if (!p->mesh[place.mesh].automatic[place.axis[d][k]])
                place.axis[d][place.n[d]++] = place.axis[d][k];
        for (int k = place.n[d]; k < n; k++)
            place.axis[d][k] = 0;
    }
    return place;
}

bool replicate_inputs(program *p, statement *s)
{
    for (int k = 0; k < s->n_in && p->explicit_axes; k++)
        if (s->in[k] >= 0 && (s->in[k] = replicated(p, s->in[k])) == NOTHING)
            return false;
    return true;
}

/* Where the result of an operation of one array is placed, if the operand need not move. */
static bool place_of_one(const program *p, const statement *s, placement *place)
{
    const placement from = p->placed[s->in[0]];
    int rank = p->rank_of[s->in[0]], n = 0;
    *place = from;
    if (from.unreduced && s->op != OP_transpose && s->op != OP_slice)
        return false;
    for (int d = 0; d < rank && from.unreduced && s->op == OP_slice; d++)
        if (s->step[d] < 0)
            return false;
    switch (operations[s->op].family) {
    case ONE: return true;
    case THREE: return s->op == OP_clamp;
    case RUNNING: return !splits(&from, s->k < 0 ? s->k + rank : s->k);
    case REDUCTION:
        *place = (placement){.mesh = from.mesh};
        for (int d = 0; d < rank; d++) {
            bool gone = s->other_flag;
            for (int k = 0; k < s->n_axes; k++)
                gone = gone || s->axes[k] == d || s->axes[k] + rank == d;
            if (!gone && s->flag && p->shape_of[s->in[0]][d] == 1 && splits(&from, d))
                return false; /* reshapes, which lose the split of a dimension of size 1 */
            if (!gone) {
                place->n[n] = from.n[d];
                memcpy(place->axis[n], from.axis[d], sizeof from.axis[d]);
            }
            n += !gone || s->flag;
        }
        return !(s->other_flag && (s->op == OP_argmax || s->op == OP_argmin) && rank > 1);
    case REARRANGE:
        if (s->op == OP_slice)
            for (int d = 0; d < rank; d++)
                if (s->step[d] == 0)
                    return false;
        if (s->op == OP_transpose) {
            for (int d = 0; d < rank; d++) {
                int e = s->n_axes ? s->axes[d] : rank - 1 - d;
                place->n[d] = from.n[e];
                memcpy(place->axis[d], from.axis[e], sizeof from.axis[e]);
            }
            return true;
        }
        return s->op == OP_slice || s->op == OP_roll || s->op == OP_flip || s->op == OP_pad ||
               (s->op == OP_update && s->in[1] == NUMBER);
    default: return false;
    }
}

/* Of arrays of one shape that are placed alike, or of which all but one are replicated. */
static bool place_of_alike(const program *p, const statement *s, placement *place)
{
    bool mixed = false;
    *place = (placement){.mesh = NOTHING};
    if (operations[s->op].family != TWO && s->op != OP_where && s->op != OP_concatenate)
        return false;
    for (int k = 0; k < s->n_in; k++) {
        if (s->in[k] == NUMBER)
            continue;
        const placement *next = &p->placed[s->in[k]];
        for (int j = 0; j < k; j++)
            mixed =
                mixed || (s->in[j] != NUMBER &&
                          (p->rank_of[s->in[j]] != p->rank_of[s->in[k]] ||
                           (s->op != OP_concatenate && memcmp(p->shape_of[s->in[j]], p->shape_of[s->in[k]],
                                                              sizeof(int64_t) * (size_t)p->rank_of[s->in[k]]) != 0)));
        if (next->mesh < 0)
            continue;
        if (next->unreduced && (s->op != OP_add || s->in[0] == NUMBER || s->in[1] == NUMBER ||
                                p->rank_of[s->in[0]] != p->rank_of[s->in[k]]))
            return false;
        if (place->mesh < 0)
            *place = *next;
        else if (!same_place(place, next))
            return false;
    }
    if (mixed && !splits_nothing(place))
        return false;
    for (int k = 0; k < s->n_in && place->unreduced; k++)
        if (s->in[k] == NUMBER || !p->placed[s->in[k]].unreduced)
            return false;
    for (int k = 0; k < s->n_in && !splits_nothing(place); k++)
        if (s->in[k] != NUMBER && p->placed[s->in[k]].mesh < 0 &&
            (p->home[s->in[k]] == 0 || s->n_in > 2 || s->op == OP_concatenate))
            return false; /* kept simple: uncommitted ones beside split ones */
    return true;
}

bool settle_operands(program *p, statement *s, placement *place)
{
    *place = (placement){.mesh = NOTHING};
    if (s->kind == INPUT || s->kind == MOVE) {
        *place = in_types(p, s->place[0]);
        return true;
    }
    if (s->kind != OPERATION)
        return true; /* the results' blocks decide */
    if (s->op == OP_constraint)
        s->op = OP_reshard;
    if (s->op == OP_reshard || s->op == OP_sum_unreduced || s->op == OP_product_unreduced) {
        *place = s->place[0];
        return place->mesh >= 0;
    }
    if (s->n_in == 0)
        return true;
    int arrays = 0;
    for (int k = 0; k < s->n_in; k++)
        arrays += s->in[k] != NUMBER;
    if (arrays == 1 && s->in[0] != NUMBER && place_of_one(p, s, place))
        return true;
    if (place_of_alike(p, s, place))
        return true;
    bool placed = false;
    for (int k = 0; k < s->n_in; k++)
        if (s->in[k] != NUMBER) {
            placed = true;
            if ((s->in[k] = replicated(p, s->in[k])) == NOTHING)
                return false;
        }
    *place = (placement){.mesh = (int8_t)(placed ? p->explicit_mesh : NOTHING)};
    return true;
}

/* a b, split along the contracted dimension, left unreduced. */
static bool draw_unreduced_product(program *p, int a)
{
    placement split = {.mesh = (int8_t)p->explicit_mesh}, across = split, waits = split;
    int b = a;
    const mesh_text *m = &p->mesh[p->explicit_mesh];
    for (int k = p->n_visible - 1; k >= 0 && one_in(&p->choices, 2); k--)
        if (p->rank_of[p->visible[k]] == 2 && p->shape_of[p->visible[k]][1] == p->shape_of[a][1])
            b = p->visible[k];
    statement turn = operation_of(OP_transpose, 1, &b);
    turn.n_axes = 2;
    turn.axes[0] = 1;
    for (int k = 0; k < m->n_axes; k++)
        if (!m->automatic[k] && !one_in(&p->choices, 4)) {
            split.axis[1][split.n[1]++] = (int8_t)k;
            across.axis[0][across.n[0]++] = (int8_t)k;
            waits.unreduced |= (uint8_t)(1 << k);
        }
    a = placed_as(p, a, &split);
    b = placed_as(p, simple(p, turn), &across);
    if (a == NOTHING || b == NOTHING || !waits.unreduced)
        return false;
    statement s = operation_of(OP_product_unreduced, 2, (int[]){a, b});
    s.place[0] = waits;
    return add_statement(p, &s);
}

/* A sum over a split dimension that is left unreduced: reads of it reduce it, in this function or in another. */
bool draw_unreduced_sum(program *p)
{
    int v = any_value(p), d = NOTHING;
    const placement from = p->placed[v];
    if (!p->explicit_axes || from.mesh < 0 || from.unreduced || p->in_map || p->in_vmap || p->in_gradient ||
        p->dtype_of[v] == OLY_BOOL)
        return false;
    if (p->rank_of[v] == 2 && one_in(&p->choices, p->products ? 2 : 6))
        return draw_unreduced_product(p, v);
    for (int k = 0; k < p->rank_of[v]; k++)
        if (splits(&from, k) && (d == NOTHING || one_in(&p->choices, 2)))
            d = k;
    if (d == NOTHING)
        return false;
    statement s = operation_of(OP_sum_unreduced, 1, &v);
    s.axes[s.n_axes++] = d;
    s.place[0] = without_dimension(&from, d);
    for (int k = 0; k < from.n[d]; k++)
        s.place[0].unreduced |= (uint8_t)(1 << from.axis[d][k]);
    return add_statement(p, &s);
}

placement without_dimension(const placement *place, int d)
{
    placement to = *place;
    memmove(to.n + d, place->n + d + 1, (size_t)(MOST_RANK - d - 1) * sizeof *to.n);
    memmove(to.axis + d, place->axis + d + 1, (size_t)(MOST_RANK - d - 1) * sizeof *to.axis);
    to.n[MOST_RANK - 1] = 0;
    memset(to.axis[MOST_RANK - 1], 0, sizeof *to.axis);
    return to;
}

static void with_dimension(placement *place, int d)
{
    memmove(place->n + d + 1, place->n + d, (size_t)(MOST_RANK - d - 1) * sizeof *place->n);
    memmove(place->axis + d + 1, place->axis + d, (size_t)(MOST_RANK - d - 1) * sizeof *place->axis);
    place->n[d] = 0;
    memset(place->axis[d], 0, sizeof *place->axis);
}

/* Placements of the results of a statement with blocks. */
placement result_place(const program *p, const statement *s, int k)
{
    if (s->kind == GRADIENTS)
        return p->placed[s->in[1 + k]];
    const block *b = &p->block[s->block[s->kind == WHILE ? 1 : 0]];
    const placement everywhere = {.mesh = (int8_t)p->explicit_mesh};
    if (s->kind == MAP || s->kind == REGION)
        return in_types(p, s->out_place[k]);
    if (s->kind == GRADIENT || k >= b->n_results)
        return everywhere;
    placement place = p->placed[b->result[k]];
    if (s->kind == SCAN && k >= s->n_carry)
        with_dimension(&place, 0);
    if (s->kind == VMAP) {
        if (place.mesh < 0)
            return everywhere;
        with_dimension(&place, s->out_axes[k]);
    }
    return place;
}
