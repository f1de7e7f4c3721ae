/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of reductions over devices. It depends on the mesh alone, axis by axis, so the same mesh gives the same
 * bits however its devices are spread over processes. Array reductions reduce adjacent pairs of positions, minor axis
 * first: the order of recursive doubling over device numbers, which JAX's collectives between processes use. Partial
 * products are reduced sequentially, major axis first, within groups of up to 16 positions, then over the groups. A
 * power of two of adjacent positions is a subtree, so a process reduces those it owns first and sends one partial
 * result, not one per device. Small groups over several axes are reduced in one stage (nested). Arithmetic only.
 * Called by reduction_pattern.c, reduction_steps.c, reduce_scatter.c and block_classes.c. */
#include "plan/reduce/reduction_steps.h"
#include <string.h>

enum { RADIX = 16, MOST_DIGITS = 5 * OLY_MAX_RANK };

/* -- who reduces what -------------------------------------------------------------------------------------------------- */

/* The coordinates along one digit that the position at c reduces: one for each subtree of `stride` positions, all of
 * which hold the same value. In a last, shorter subtree the representative wraps around. */
static int digit_sources(oly_mesh mesh, const oly_reduction_digit *g, int c, int *sources)
{
    int size = mesh->size[g->axis], base = c - c % (g->stride * g->radix), n = 0;
    for (int j = 0; j < g->radix && base + j * g->stride < size; j++) {
        int start = base + j * g->stride, count = size - start < g->stride ? size - start : g->stride;
        sources[n++] = start + c % g->stride % count / g->same * g->same;
    }
    return n;
}

/* The positions whose partial results the device at `position` reduces, nested by digit. */
int oly_reduction_sources(oly_mesh mesh, const oly_reduction_stage *s, int position, int *counts, int *sources)
{
    int coordinates[OLY_MAX_RANK], list[4][RADIX], at[4] = {0}, n = 0;
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++)
        counts[k] = digit_sources(mesh, &s->digits[k], coordinates[s->digits[k].axis], list[k]);
    for (;;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = list[k][at[k]];
        sources[n++] = oly_mesh_position(mesh, coordinates);
        int k = s->n_digits - 1;
        while (k >= 0 && ++at[k] == counts[k])
            at[k--] = 0;
        if (k < 0)
            return n;
    }
}

/* The coordinates along one digit that have c among their sources: at least one in each process. */
static oly_status digit_users(oly_arena *arena, oly_mesh mesh, const oly_reduction_digit *g, int c, int *n_users,
                              int **users)
{
    int size = mesh->size[g->axis], base = c - c % (g->stride * g->radix), start = c - c % g->stride;
    int count = size - start < g->stride ? size - start : g->stride, first = c - start;
    int end = first + g->same < count ? first + g->same : count;
    if (count % g->same == 0) /* one position represents its process's run */
        end = first + 1;
    int most = g->radix * (end - first) * ((g->stride + count - 1) / count);
    *n_users = 0;
    *users = OLY_ARENA_NEW(arena, int, most + 1);
    OLY_PLAN_CHECK(*users);
    if (first % g->same != 0)
        return OLY_OK; /* another position represents this run */
    for (int j = 0; j < g->radix; j++)
        for (int turn = 0; turn < g->stride; turn += count)
            for (int at = turn + first; at < turn + end && at < g->stride; at++)
                if (base + j * g->stride + at < size)
                    (*users)[(*n_users)++] = base + j * g->stride + at;
    return OLY_OK;
}

/* The positions that reduce a position's partial result: they differ from it only along the digits, at least one in
 * each process. */
oly_status oly_reduction_users(oly_arena *arena, oly_mesh mesh, const oly_reduction_stage *s, int position,
                               int *n_users, int **users)
{
    int coordinates[OLY_MAX_RANK], n[4], at[4] = {0}, *list[4], total = 1;
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < s->n_digits; k++) {
        OLY_TRY(digit_users(arena, mesh, &s->digits[k], coordinates[s->digits[k].axis], &n[k], &list[k]));
        total *= n[k];
    }
    *users = OLY_ARENA_NEW(arena, int, total + 1);
    OLY_PLAN_CHECK(*users);
    for (*n_users = 0; *n_users < total;) {
        for (int k = 0; k < s->n_digits; k++)
            coordinates[s->digits[k].axis] = list[k][at[k]];
        (*users)[(*n_users)++] = oly_mesh_position(mesh, coordinates);
        for (int k = s->n_digits - 1; k >= 0 && ++at[k] == n[k]; k--)
            at[k] = 0;
    }
    return OLY_OK;
}

/* -- the stages ------------------------------------------------------------------------------------------------------ */

static bool is_local(oly_mesh mesh, const oly_reduction_digit *g)
{
    int reach = g->stride * g->radix, together = mesh->together[g->axis];
    return reach <= together || together >= mesh->size[g->axis];
}

static bool is_even(oly_mesh mesh, const oly_reduction_digit *g)
{
    return mesh->size[g->axis] % (g->stride * g->radix) == 0;
}

/* Appends the digits that reduce a whole axis to the first n. Returns the new number. */
static int axis_digits(oly_mesh mesh, const oly_reduction_rule *rule, int axis, oly_reduction_digit *digits, int n)
{
    int size = mesh->size[axis], together = mesh->together[axis];
    for (int stride = 1; stride < size; n++) {
        int radix = RADIX, rest = (size + stride - 1) / stride;
        if (rule->in_pairs && stride < together && together < size && together / stride < radix)
            radix = together / stride;
        radix = radix < rest ? radix : rest;
        digits[n] = (oly_reduction_digit){axis, stride, radix, stride < together ? stride : together};
        stride *= radix;
    }
    return n;
}

int oly_reduction_digits(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_digit *digits)
{
    int n = 0;
    for (int k = 0; k < mesh->n_axes; k++) {
        int a = rule->in_pairs ? mesh->n_axes - 1 - k : k; /* independent of the order in the spec */
        for (int j = 0; j < axes->n; j++)
            if (axes->axis[j] == a)
                n = axis_digits(mesh, rule, a, digits, n);
    }
    return n;
}

/* Every digit has at least two positions. */
int oly_reduction_most_stages(oly_mesh mesh, const oly_axis_list *axes)
{
    int n = 0;
    for (int k = 0; k < axes->n; k++)
        for (int size = mesh->size[axes->axis[k]] - 1; size > 0; size /= 2)
            n++;
    return n;
}

/* At most one stage for each digit. */
int oly_reduction_stages(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes,
                         oly_reduction_stage *stages)
{
    oly_reduction_digit digits[MOST_DIGITS];
    int n = oly_reduction_digits(mesh, rule, axes, digits), n_stages = 0;
    for (int k = 0; k < n; n_stages++) {
        oly_reduction_stage *s = &stages[n_stages];
        bool local = is_local(mesh, &digits[k]);
        s->n_digits = 0;
        for (int sources = digits[k].radix; k < n && s->n_digits < 4 && sources <= OLY_REDUCTION_SOURCES / 2; k++) {
            if (s->n_digits > 0 &&
                (digits[k].axis == digits[k - 1].axis || !is_even(mesh, &digits[k]) || !is_even(mesh, &digits[k - 1])))
                break; /* nested digits must have equally many sources on every device */
            if (local && !is_local(mesh, &digits[k]))
                break; /* first reduce everything that is local to a process */
            local = local && is_local(mesh, &digits[k]);
            s->digits[s->n_digits++] = digits[k];
            sources *= k + 1 < n ? digits[k + 1].radix : 1;
        }
    }
    return n_stages;
}

int oly_reduction_group(oly_mesh mesh, const oly_reduction_rule *rule, const oly_axis_list *axes, int position,
                        int *counts, int *sources)
{
    int coordinates[OLY_MAX_RANK], digits[4], n = 0, n_sources = 1;
    memset(counts, 0, sizeof *counts * 4);
    for (int k = 0; k < mesh->n_axes; k++) {
        int a = rule->in_pairs ? mesh->n_axes - 1 - k : k;
        for (int j = 0; j < axes->n; j++)
            if (axes->axis[j] == a && mesh->size[a] > 1) {
                if (n == 4 || mesh->size[a] > OLY_REDUCTION_GROUP / n_sources)
                    return 0;
                n_sources *= counts[n] = mesh->size[a];
                digits[n++] = a;
            }
    }
    oly_mesh_coordinates(mesh, position, coordinates);
    for (int k = 0; k < n_sources && n > 0; k++) {
        for (int d = n - 1, rest = k; d >= 0; rest /= counts[d--])
            coordinates[digits[d]] = rest % counts[d];
        sources[k] = oly_mesh_position(mesh, coordinates);
    }
    return n > 0 ? n_sources : 0;
}
