/* SPDX-License-Identifier: BSD-3-Clause */
/* oly_scan: a counted loop whose carries are the program's and one stack for each result; iteration i takes slice i of
 * every xs and writes its results into the stacks. */
#include "array/manual.h"
#include "array/arguments.h"
#include <olympus/index.h>
#include <olympus/transform.h>
#include <string.h>

typedef struct scanning {
    oly_scan_body body;
    int64_t length;
    bool reverse;
    int n_carry, n_x, n_y;
    const oly_array *xs;
    void *user;
    oly_array *x, *y; /* of the iteration being recorded */
} scanning;

/* Zeros of a type; over Explicit axes split as it says. */
static oly_array zeros(const oly_type *type)
{
    oly_type all = *type;
    all.unreduced = all.reduced = 0;
    oly_sharding placed = all.mesh && all.mesh->explicit_axes ? oly_type_sharding(&all) : NULL;
    oly_array x = oly_full_sharded(oly_operand_int(0), all.dtype, placed, all.rank, all.shape);
    return x && oly_manual_vary(all.mesh, all.varying, &x) == OLY_OK ? x : NULL;
}

/* What the body is recorded with where there are no elements: it is not run. */
static oly_array no_element(const oly_type *stack)
{
    oly_type one = *stack;
    one.rank = stack->rank - 1;
    memcpy(one.shape, stack->shape + 1, sizeof *one.shape * (size_t)one.rank);
    memcpy(one.axes, stack->axes + 1, sizeof *one.axes * (size_t)one.rank);
    return zeros(&one);
}

/* Element i of a stack. */
static oly_array element(oly_array stack, oly_array i)
{
    if (stack->type.shape[0] == 0)
        return no_element(&stack->type);
    int rank = oly_rank(stack);
    oly_operand starts[OLY_MAX_RANK];
    int64_t sizes[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        starts[d] = d == 0 ? oly_operand_array(i) : oly_operand_int(0);
        sizes[d] = d == 0 ? 1 : stack->type.shape[d];
    }
    oly_array slice = (oly_dynamic_slice)(stack, rank, starts, rank, sizes);
    return slice ? oly_reshape_shape(slice, rank - 1, sizes + 1) : NULL;
}

static oly_array with_element(oly_array stack, oly_array i, oly_array value)
{
    if (stack->type.shape[0] == 0)
        return stack;
    int rank = oly_rank(stack);
    oly_operand starts[OLY_MAX_RANK];
    int64_t shape[OLY_MAX_RANK] = {1};
    for (int d = 0; d < rank; d++)
        starts[d] = d == 0 ? oly_operand_array(i) : oly_operand_int(0);
    for (int d = 1; d < rank; d++)
        shape[d] = stack->type.shape[d];
    oly_array slice = oly_reshape_shape(value, rank, shape);
    return slice ? (oly_dynamic_update_slice)(stack, slice, rank, starts) : NULL;
}

/* Calls the body once; s->y[] holds its results. */
static void apply(const scanning *s, oly_array i, oly_array *carry)
{
    for (int k = 0; k < s->n_x; k++)
        s->x[k] = element(s->xs[k], i);
    for (int k = 0; k < s->n_y; k++)
        s->y[k] = NULL;
    s->body(carry, s->x, s->y, s->user);
}

static void iteration(oly_array i, oly_array *carry, void *user)
{
    const scanning *s = user;
    oly_array at = s->reverse ? (oly_sub)(oly_operand_int(s->length - 1), oly_operand_array(i)) : i;
    apply(s, at, carry);
    for (int k = 0; k < s->n_y; k++) {
        oly_array *stack = &carry[s->n_carry + k];
        *stack = s->y[k] ? with_element(*stack, at, s->y[k]) : NULL;
    }
}

static oly_status record_types(const scanning *s, oly_trace *t, const oly_array *carry, oly_type *types)
{
    oly_array *inner, i;
    oly_node *node;
    OLY_ARENA_LIST(&t->graph->arena, inner, s->n_carry);
    OLY_TRY(oly_graph_input(t->graph, &(oly_type){.dtype = OLY_INT32}, &node));
    if (!(i = oly_array_traced(t->graph, node)))
        return OLY_MEMORY;
    for (int k = 0; k < s->n_carry; k++) {
        OLY_TRY(oly_graph_input(t->graph, &carry[k]->type, &node));
        if (!(inner[k] = oly_array_traced(t->graph, node)))
            return OLY_MEMORY;
    }
    t->first_capture = 1 + s->n_carry;
    unsigned before = oly_raised_count();
    apply(s, i, inner);
    OLY_TRY(oly_check_traced(before, "the body of the scan"));
    for (int k = 0; k < s->n_y; k++) {
        if (!s->y[k])
            return oly_fail(OLY_INVALID,
                            "the body of the scan did not store its result %d; it must set all %d entries of y[]", k,
                            s->n_y);
        types[k] = s->y[k]->type;
    }
    return OLY_OK;
}

/* The types that the body returns for these carries, by a recording that is discarded. */
static oly_status find_types(const scanning *s, const oly_array *carry, oly_type *types)
{
    oly_trace t;
    oly_site site = oly_current_site();
    OLY_TRY(oly_trace_open(&t, "scan"));
    oly_status st = record_types(s, &t, carry, types);
    oly_trace_close(&t);
    oly_restore_site(site);
    oly_graph_free(t.graph);
    oly_trace_release(&t);
    return st;
}

static oly_status check(const scanning *s, const oly_array *carry)
{
    if (!s->body || s->n_carry < 0 || s->n_x < 0 || s->n_y < 0 || s->n_carry + s->n_y < 1 || s->length < 0)
        return oly_fail(OLY_INVALID,
                        "a scan needs a body, a length of 0 or more, and one carry or y at least; length %lld, "
                        "%d carries, %d xs and %d ys were given",
                        (long long)s->length, s->n_carry, s->n_x, s->n_y);
    for (int k = 0; k < s->n_carry; k++)
        if (!carry[k])
            return oly_null_handle();
    for (int k = 0; k < s->n_x; k++) {
        if (!s->xs[k])
            return oly_null_handle();
        if (oly_rank(s->xs[k]) < 1 || s->xs[k]->type.shape[0] != s->length)
            return oly_fail(OLY_SHAPE,
                            "xs[%d] is %s; the first dimension of all xs must be the length of the scan, %lld", k,
                            oly_type_short(&s->xs[k]->type), (long long)s->length);
        if (s->xs[k]->type.axes[0].n > 0)
            return oly_fail(OLY_SHARDING,
                            "xs[%d] is %s; the dimension that a scan goes along must not be split over Explicit axes: "
                            "move it with oly_reshard [scan_split]",
                            k, oly_type_short(&s->xs[k]->type));
    }
    return OLY_OK;
}

/* Zeros for `length` values of a type; over Explicit axes split as each of them is. */
static oly_status new_stack(const oly_type *one, int64_t length, oly_array *stack)
{
    oly_type all = *one;
    all.rank = one->rank + 1;
    all.shape[0] = length;
    all.axes[0] = (oly_axis_list){0};
    memcpy(all.shape + 1, one->shape, sizeof *all.shape * (size_t)one->rank);
    memcpy(all.axes + 1, one->axes, sizeof *all.axes * (size_t)one->rank);
    *stack = zeros(&all);
    return *stack ? OLY_OK : oly_kept_status();
}

/* all: room for carries and ys. */
static oly_status scan_in(const scanning *s, oly_array *carry, oly_array *ys, oly_array *all, oly_type *types)
{
    OLY_TRY(find_types(s, carry, types));
    for (int k = 0; k < s->n_carry; k++)
        all[k] = carry[k];
    for (int k = 0; k < s->n_y; k++) {
        if (types[k].rank == OLY_MAX_RANK)
            return oly_fail(OLY_SHAPE, "result %d of the scan is %s; stacked it would have more than %d dimensions", k,
                            oly_type_short(&types[k]), OLY_MAX_RANK);
        OLY_TRY(new_stack(&types[k], s->length, &all[s->n_carry + k]));
    }
    oly_status st = (oly_fori)(0, s->length, iteration, s->n_carry + s->n_y, all, (void *)s);
    for (int k = 0; k < s->n_carry && st == OLY_OK; k++)
        carry[k] = all[k];
    for (int k = 0; k < s->n_y && st == OLY_OK; k++)
        ys[k] = all[s->n_carry + k];
    return st;
}

static oly_status scan(scanning *s, oly_array *carry, oly_array *ys)
{
    OLY_TRY(check(s, carry));
    oly_array *lists = oly_calloc((size_t)s->n_carry + (size_t)s->n_x + 2 * (size_t)s->n_y + 1, sizeof *lists);
    oly_type *types = oly_calloc((size_t)s->n_y + 1, sizeof *types);
    s->x = lists ? lists + s->n_carry + s->n_y : NULL;
    s->y = lists ? s->x + s->n_x : NULL;
    oly_status st = lists && types ? scan_in(s, carry, ys, lists, types)
                                   : oly_out_of_memory(sizeof *types * (size_t)s->n_y, "a scan");
    oly_release(lists);
    oly_release(types);
    return st;
}

oly_status(oly_scan)(int64_t length, bool reverse, oly_scan_body body, int n_carry, oly_array *carry, int n_x,
                     const oly_array *xs, int n_y, oly_array *ys, void *user)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_clear_list_after(oly_need_room(n_y, ys), n_carry, carry));
    OLY_TRY(oly_clear_list_after(oly_need_arrays(n_carry, carry), n_carry, carry));
    OLY_TRY(oly_clear_list_after(oly_need_arrays(n_x, xs), n_carry, carry));
    scanning s = {body, length, reverse, n_carry, n_x, n_y, xs, user, NULL, NULL};
    return oly_clear_list_after(oly_raise(scan(&s, carry, ys)), n_carry, carry);
}
