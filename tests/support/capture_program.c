/* SPDX-License-Identifier: BSD-3-Clause */
/* See capture_program.h: the loops, branches, maps and calls of random programs. */
#include "capture_values.h"
#include <string.h>

int64_t capture_draw(capture_random *r, int64_t n)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return n > 0 ? (int64_t)((z ^ (z >> 31)) >> 11) % n : 0;
}

/* -- arrays for loops to capture ----------------------------------------------------------------------------------- */

static void look(site *s, oly_array x)
{
    if (x && s->n < MOST_SEEN)
        s->seen[s->n++] = x;
}

/* Views of the visible values, views of those, and some new values. */
static void look_at_views(site *s, int n, int rank, const int64_t *around)
{
    for (int k = 0; k < n; k++) {
        int64_t shape[MOST_RANK] = {0};
        int of = rank > 1 && one_in(s, 4) ? rank - 1 : rank;
        for (int d = 0; d < of; d++) {
            shape[d] = around[d + rank - of] + (one_in(s, 2) ? 0 : draw(s, 4) - 2);
            shape[d] = shape[d] < 0 ? 0 : shape[d];
        }
        oly_array x = capture_fitted(s, s->seen[draw(s, s->n)], of, shape);
        if (x && one_in(s, 8))
            x = capture_note(s, oly_add(capture_as_number(s, x), 0), "v%d + 0", capture_name_of(x));
        bool placed = one_in(s, 8);
        if (x && s->p->places && !s->p->plain && placed && !s->manual)
            x = oly_with_sharding_constraint(x, oly_named(s->p->mesh, oly_rank(x) ? "x" : ""));
        look(s, x);
    }
}

/* -- loops, branches, maps ---------------------------------------------------------------------------------------------- */

static site inside(const inner *in, int n_carry, oly_array *carry, oly_array step)
{
    site s = {.p = in->outer->p,
              .random = {in->seed},
              .depth = in->outer->depth + 1,
              .n_carry = n_carry,
              .step = step,
              .near = in->near,
              .rolls = in->rolls,
              .manual = in->manual};
    for (int k = 0; k < n_carry; k++)
        look(&s, carry[k]);
    for (int k = 0; k < in->n_outer; k++)
        look(&s, in->outer->seen[k]);
    return s;
}

static void run_loop(site *s, int n_carry, oly_array *carry);

static void step_of(const inner *in, oly_array i, oly_array *carry, int n_carry)
{
    site s = inside(in, n_carry, carry, i);
    oly_array next[CAPTURE_CARRIES];
    int rank = oly_rank(carry[0]);
    if (one_in(&s, 3))
        look_at_views(&s, 1 + (int)draw(&s, 2), rank, oly_shape(carry[0]));
    if (s.depth < 3 && one_in(&s, s.near ? 15 : 5)) {
        oly_array inner_carry[CAPTURE_CARRIES];
        memcpy(inner_carry, carry, sizeof *carry * (size_t)n_carry);
        run_loop(&s, n_carry, inner_carry);
        for (int k = 0; k < n_carry; k++)
            s.seen[k] = inner_carry[k];
        if (one_in(&s, 2)) {
            memcpy(carry, inner_carry, sizeof *carry * (size_t)n_carry);
            return;
        }
    }
    for (int k = 0; k < n_carry; k++) {
        next[k] = capture_next_of(&s, s.seen[k]);
        if (in->rounds && oly_dtype_of(next[k]) == OLY_FLOAT32)
            next[k] =
                capture_note(&s, oly_floor(oly_clamp(-64, next[k], 64)), "floor(clamp(v%d))", capture_name_of(next[k]));
    }
    memcpy(carry, next, sizeof *carry * (size_t)n_carry);
}

static oly_array number(int64_t i)
{
    int32_t n = (int32_t)i;
    return oly_from_host(&n, OLY_INT32, 0, NULL);
}

/* Beside the fields a loop may record observations of them: a number, and one for each step. */
enum { NOTED = 2, NOTED_LENGTH = 4 };

static void watch(const inner *in, oly_array i, const oly_array *before, oly_array *carry)
{
    int n = (int)in->count;
    oly_array x = in->conditional ? before[n - 1] : carry[0], *to = carry + n;
    oly_dtype dtype = oly_dtype_of(to[0]);
    if (oly_size(x) == 0)
        return;
    oly_array most = oly_astype(oly_max(oly_abs(x)), dtype), sum = oly_astype(oly_sum(x), dtype);
    to[0] = in->seed % 3 == 0 ? oly_add(to[0], sum) : in->seed % 3 == 1 ? oly_max2(to[0], most) : oly_sub(most, to[0]);
    to[1] = oly_dynamic_update_slice(to[1], oly_reshape(in->seed % 2 ? sum : most, 1), OLY_INDEXES(i));
}

static void counted_body(oly_array i, oly_array *carry, void *user)
{
    const inner *in = user;
    oly_array before[CAPTURE_CARRIES];
    memcpy(before, carry, sizeof *carry * (size_t)in->count);
    step_of(in, i, carry, (int)in->count);
    if (in->watches)
        watch(in, i, before, carry);
}

/* A loop with a counter, and its observations as further values. */
static void run_counted(site *s, inner *in, int64_t lower, int64_t count, oly_array *carry)
{
    int n = (int)in->count;
    oly_dtype dtype = s->p->input[0].dtype;
    oly_array all[CAPTURE_CARRIES + NOTED];
    memcpy(all, carry, sizeof *carry * (size_t)n);
    if (in->watches) {
        all[n] = oly_zeros(dtype);
        all[n + 1] = oly_zeros(dtype, NOTED_LENGTH);
    }
    capture_say(s, "loop", count);
    if (!s->p->plain)
        oly_fori(lower, lower + count, counted_body, in->watches ? n + NOTED : n, all, in);
    for (int64_t i = lower; i < lower + count && s->p->plain; i++)
        counted_body(number(i), all, in);
    memcpy(carry, all, sizeof *carry * (size_t)n);
    for (int k = 0; k < NOTED && in->watches; k++) {
        oly_array x = capture_fitted(s, all[n + k], oly_rank(carry[0]), oly_shape(carry[0]));
        look(s, capture_note(s, all[n + k], "noted"));
        if (x && oly_dtype_of(carry[0]) == dtype)
            carry[0] = capture_note(s, oly_add(carry[0], x), "and what was noted");
    }
}

static oly_array has_more(const oly_array *carry, void *user)
{
    oly_array few = oly_lt(carry[0], 5);
    if (!((inner *)user)->conditional || oly_size(carry[1]) == 0)
        return few;
    return oly_logical_and(few, oly_lt(oly_max(carry[1]), 40));
}

static void while_body(oly_array *carry, void *user)
{
    const inner *in = user;
    step_of(in, carry[0], carry + 1, (int)in->count);
    carry[0] = oly_add(carry[0], 1);
}

static void scan_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const inner *in = user;
    oly_array slice = x[0];
    site more = *in->outer;
    inner with = *in;
    more.n = in->n_outer;
    if (more.n < MOST_SEEN - CAPTURE_CARRIES)
        look(&more, slice);
    with.outer = &more;
    with.n_outer = more.n;
    step_of(&with, NULL, carry, (int)in->count);
    y[0] = carry[(int)in->count - 1];
}

static void scan(site *s, inner *in, int n_carry, oly_array *carry, int64_t length, bool reverse)
{
    int64_t shape[MOST_RANK + 1] = {length};
    int rank = oly_rank(carry[0]);
    memcpy(shape + 1, oly_shape(carry[0]), sizeof *shape * (size_t)rank);
    oly_array xs = rank < MOST_RANK ? capture_fitted(s, s->seen[draw(s, s->n)], rank + 1, shape) : NULL, ys = NULL;
    if (!xs)
        xs = oly_iota_shape(s->p->input[0].dtype, 0, 1, shape);
    in->n_outer = s->n;
    if (!s->p->plain) {
        oly_scan(length, reverse, scan_body, n_carry, carry, 1, &xs, 1, &ys, in);
    } else {
        oly_array stack[8];
        for (int64_t k = 0; k < length; k++) {
            int64_t at = reverse ? length - 1 - k : k;
            oly_array x = oly_squeeze(oly_slice_in_dim(xs, at, at + 1, 1, 0), 0);
            capture_note(s, x, "x[%d]", (int)at);
            scan_body(carry, &x, &stack[at], in);
        }
        ys = oly_stack_n((int)length, stack, 0);
    }
    look(s, capture_note(s, ys, "ys"));
}

static void run_while(site *s, inner *in, int n_carry, oly_array *carry)
{
    oly_array all[CAPTURE_CARRIES + 1] = {number(one_in(s, 4) ? 9 : 1)};
    memcpy(all + 1, carry, sizeof *carry * (size_t)n_carry);
    if (!s->p->plain)
        oly_while(has_more, while_body, n_carry + 1, all, in);
    else
        while (oly_item(has_more(all, in)) != 0)
            while_body(all, in);
    memcpy(carry, all + 1, sizeof *carry * (size_t)n_carry);
}

static void run_loop(site *s, int n_carry, oly_array *carry)
{
    static const int64_t counts[] = {0, 1, 2, 2, 3, 3, 4, 5, 7, 24};
    int64_t how = draw(s, 10), count = counts[draw(s, s->depth > 0 ? 5 : 10)],
            lower = one_in(s, 4) ? draw(s, 5) - 2 : 0;
    inner in = {
        .outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .count = n_carry, .manual = s->manual};
    in.conditional = one_in(s, 2);
    in.near = !one_in(s, 4);
    in.rolls = one_in(s, 2);
    in.watches = one_in(s, 4);
    in.rounds = one_in(s, 2) || s->depth > 0;
    if (!in.rounds && s->p->input[0].dtype == OLY_FLOAT32 && count > 3)
        count = 3;
    how = in.near && !one_in(s, 10) ? 9 : how;
    if (how == 0 && !s->p->slope) {
        capture_say(s, "while", 0);
        run_while(s, &in, n_carry, carry);
    } else if (how < 3) {
        bool reverse = one_in(s, 2);
        capture_say(s, reverse ? "scan backwards" : "scan", count % 7 + 1);
        scan(s, &in, n_carry, carry, count % 7 + 1, reverse);
    } else {
        run_counted(s, &in, lower, count, carry);
    }
    capture_say(s, "end", 0);
}

static void branch(const inner *in, const oly_array *x, oly_array *y, bool first)
{
    inner other = *in;
    oly_array carry = x[0];
    other.seed += !first;
    site s = inside(&other, 1, &carry, in->outer->step);
    y[0] = capture_next_of(&s, carry);
}

static void first_branch(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, true);
}

static void second_branch(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, false);
}

/* Inside a function that is called here: reads as near, and shifts, as here. */
static inner like_here(site *s)
{
    return (inner){.outer = s,
                   .seed = (uint64_t)draw(s, INT64_MAX),
                   .n_outer = s->n,
                   .near = s->near,
                   .rolls = s->rolls,
                   .manual = s->manual};
}

oly_array capture_branched(site *s, oly_array x)
{
    inner in = like_here(s);
    oly_array which = s->step && one_in(s, 2) ? oly_eq(oly_mod(s->step, 2), 0)
                      : oly_size(x) > 0       ? oly_gt(oly_max(x), draw(s, 9))
                                              : number(1),
              y = NULL;
    if (s->p->plain && s->p->slope) { /* it is traced, too */
        oly_array other = NULL;
        first_branch(&x, &y, &in);
        second_branch(&x, &other, &in);
        return capture_note(s, oly_where(which, y, other), "where(.., v%d, v%d)", capture_name_of(y),
                            capture_name_of(other));
    }
    if (!s->p->plain)
        oly_cond(which, first_branch, second_branch, 1, &x, 1, &y, &in);
    else if (capture_say(s, "branch", (int64_t)oly_item(which)), oly_item(which) != 0)
        first_branch(&x, &y, &in);
    else
        second_branch(&x, &y, &in);
    return y;
}

static void element(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, true);
}

oly_array capture_called(site *s, oly_array x)
{
    inner in = like_here(s);
    oly_array y = NULL;
    bool again = one_in(s, 3);
    capture_say(s, "call", again);
    if (s->p->plain) {
        element(&x, &y, &in);
        return y;
    }
    oly_fn f = oly_jit(element, 1, 1, .user = &in);
    f = again ? oly_checkpoint(f) : f;
    oly_call_arrays(f, 1, &x, 1, &y);
    return y;
}

oly_array capture_mapped(site *s, oly_array x)
{
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .manual = s->manual};
    oly_array y = NULL, parts[8];
    if (!s->p->plain) {
        oly_vmap(element, &in, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
        return y;
    }
    capture_say(s, "map", oly_dim(x, 0));
    for (int64_t k = 0; k < oly_dim(x, 0); k++) {
        oly_array one = oly_squeeze(oly_slice_in_dim(x, k, k + 1, 1, 0), 0);
        capture_note(s, one, "element %d", (int)k);
        element(&one, &parts[k], &in);
    }
    return capture_note(s, oly_stack_n((int)oly_dim(x, 0), parts, 0), "stack");
}

/* -- programs of one device ---------------------------------------------------------------------------------------------- */

static oly_array from_before(oly_array x, int n)
{
    int pairs[8][2];
    for (int k = 0; k < n; k++) {
        pairs[k][0] = k;
        pairs[k][1] = (k + 1) % n;
    }
    return oly_ppermute(x, "x", n, (const int(*)[2])pairs);
}

static void one_device(const oly_array *x, oly_array *y, void *user)
{
    const inner *in = user;
    oly_array carry = x[0];
    bool plain = in->outer->p->plain;
    site s = inside(in, 1, &carry, in->outer->step);
    look(&s, plain ? in->most : oly_pmax(oly_max(carry), "x"));
    look(&s, plain ? in->neighbour : from_before(carry, in->outer->p->parts));
    y[0] = capture_next_of(&s, carry);
}

oly_array capture_shared_out(site *s, oly_array x)
{
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .manual = true};
    int n = s->p->parts;
    int64_t each = oly_dim(x, 0) / n;
    oly_array y = NULL, shard[8], made[8];
    in.n_outer = in.n_outer > MOST_SEEN - 3 ? MOST_SEEN - 3 : in.n_outer;
    if (!s->p->plain) {
        oly_shard_map(one_device, &in, s->p->mesh, OLY_IN(x), OLY_SPECS("x"), OLY_OUT(y), OLY_SPECS("x"));
        return y;
    }
    capture_say(s, "devices", n);
    in.most = capture_note(s, oly_max(x), "largest of all");
    for (int k = 0; k < n; k++)
        shard[k] = capture_note(s, oly_slice_in_dim(x, k * each, (k + 1) * each, 1, 0), "shard %d", k);
    for (int k = 0; k < n; k++) {
        in.neighbour = shard[(k + n - 1) % n];
        one_device(&shard[k], &made[k], &in);
    }
    return capture_note(s, oly_concatenate_n(n, made, 0), "shards of v%d", capture_name_of(x));
}

/* -- the whole program --------------------------------------------------------------------------------------------- */

static int64_t extent(capture_random *r)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 20};
    return capture_draw(r, 40) == 0 ? 0 : extents[capture_draw(r, sizeof extents / sizeof *extents)];
}

void capture_program_make(capture_program *p, uint64_t seed)
{
    capture_random r = {seed};
    int rank = 1 + (int)(capture_draw(&r, 8) + 2) / 5;
    int64_t shape[MOST_RANK] = {0};
    *p = (capture_program){.seed = seed, .n_out = 1 + (int)capture_draw(&r, CAPTURE_CARRIES)};
    oly_dtype dtype = capture_draw(&r, 2) ? OLY_FLOAT32 : OLY_INT32;
    bool staggered = capture_draw(&r, 3) == 0;
    p->slope = dtype == OLY_FLOAT32 && capture_draw(&r, 6) == 0;
    p->n_in = p->n_out + 1 + (int)capture_draw(&r, 2);
    for (int d = 0; d < rank; d++)
        shape[d] = extent(&r);
    bool large = dtype == OLY_INT32 && capture_draw(&r, 10) == 0;
    if (large) /* loop fission begins at fields of 16384 elements */
        for (int d = 0; d < rank; d++)
            shape[d] = (rank == 1 ? 16384 : rank == 2 ? 128 : 26) + capture_draw(&r, 3);
    for (int k = 0; k < p->n_in; k++) {
        capture_input *in = &p->input[k];
        *in = (capture_input){.dtype = dtype, .rank = rank};
        if (k > 0 && k < p->n_out && !p->slope && capture_draw(&r, 6) == 0)
            in->dtype = dtype == OLY_INT32 ? OLY_INT8 : OLY_INT32;
        if (k >= p->n_out && !large && capture_draw(&r, 4) == 0)
            in->rank = 1 + (int)capture_draw(&r, 3);
        if (k >= p->n_out && capture_draw(&r, 4) == 0)
            in->dtype = OLY_BOOL;
        for (int d = 0; d < in->rank; d++) {
            in->shape[d] = d < rank ? shape[d] : extent(&r);
            if (k < p->n_out)
                in->shape[d] += staggered ? capture_draw(&r, 3) : 0;
            else
                in->shape[d] +=
                    large || capture_draw(&r, 3) ? capture_draw(&r, 6) : capture_draw(&r, 2) * (in->shape[d] + 1);
        }
    }
}

void capture_program_run(const oly_array *in, oly_array *out, void *user)
{
    const capture_program *p = user;
    site s = {.p = p, .random = {p->seed ^ 0x5555}, .n = 0};
    oly_array carry[CAPTURE_CARRIES];
    capture_names_begin(p->print && p->plain);
    for (int k = 0; k < p->n_out; k++)
        carry[k] = in[k];
    for (int k = p->n_in - 1; k >= 0; k--) {
        capture_note(&s, in[k], "input %d", k);
        look(&s, in[k]);
    }
    look_at_views(&s, 1 + (int)draw(&s, 3), p->input[0].rank, p->input[0].shape);
    if (one_in(&s, 3)) { /* the loop's initial value is a view, too */
        oly_array x =
            capture_as_number(&s, capture_fitted(&s, capture_any_seen(&s), p->input[0].rank, p->input[0].shape));
        carry[0] = x ? x : carry[0];
    }
    for (int k = 1 + (int)one_in(&s, 4); k > 0; k--) {
        run_loop(&s, p->n_out, carry);
        for (int j = 0; j < p->n_out; j++)
            look(&s, carry[j]);
        if (one_in(&s, 3))
            look_at_views(&s, 1, p->input[0].rank, p->input[0].shape);
    }
    if (one_in(&s, 3)) {
        s.n_carry = 0;
        oly_array x = capture_next_of(&s, carry[0]);
        carry[0] = x ? x : carry[0];
    }
    if (!p->slope) {
        memcpy(out, carry, sizeof *out * (size_t)p->n_out);
        return;
    }
    oly_array times =
        capture_as_number(&s, capture_fitted(&s, capture_any_seen(&s), oly_rank(carry[0]), oly_shape(carry[0])));
    out[0] = oly_sum(times ? oly_mul(carry[0], times) : carry[0]);
}
