/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,4 devices=8 timeout=300  Programs that differ between ranks get OLY_DIVERGED on every rank, with both
 * calls and lines, and no value. */
#include "check_divergence.h"

/* -- differences: each makes an array that differs on the odd rank ------------------------------------------------- */

DIFFERENT(constant, oly_mul(s->x, 3), oly_mul(s->x, 2))
DIFFERENT(operation, oly_add(s->x, 2), oly_mul(s->x, 2))
DIFFERENT(function, oly_sin(s->x), oly_cos(s->x))
DIFFERENT(operand_order, oly_sub(s->x, s->y), oly_sub(s->y, s->x))
DIFFERENT(operand, oly_add(s->x, s->x), oly_add(s->x, s->y))
DIFFERENT(other_array, oly_neg(s->x), oly_neg(s->y))
DIFFERENT(bound, oly_clip(s->x, 0, 5), oly_clip(s->x, 0, 6))
DIFFERENT(comparison, oly_where(oly_gt(s->x, 3), s->x, s->y), oly_where(oly_ge(s->x, 3), s->x, s->y))
DIFFERENT(choice, oly_where(oly_gt(s->x, 3), s->x, s->y), oly_where(oly_gt(s->x, 3), s->y, s->x))
DIFFERENT(largest, oly_max2(s->x, s->y), oly_min2(s->x, s->y))
DIFFERENT(element_type, oly_astype(s->x, OLY_INT32), oly_astype(s->x, OLY_FLOAT32))
DIFFERENT(rounding, oly_floor(s->x), oly_ceil(s->x))
DIFFERENT(slices, oly_slice(s->x, ":, 1:"), oly_slice(s->x, ":, :-1"))
DIFFERENT(steps, oly_slice(s->x, ":, ::2"), oly_slice(s->x, ":, 1::2"))
DIFFERENT(row, oly_slice(s->x, "1"), oly_slice(s->x, "0"))
DIFFERENT(reversed_axis, oly_flip(s->x, 1), oly_flip(s->x, 0))
DIFFERENT(turn, oly_roll(s->x, 1, 1), oly_roll(s->x, 2, 1))
DIFFERENT(turn_across, oly_roll(s->x, 1, 0), oly_roll(s->x, -1, 0))
DIFFERENT(updated_value, oly_update(s->x, "0, 0", 1), oly_update(s->x, "0, 0", 2))
DIFFERENT(updated_place, oly_update(s->x, "0, 1", 1), oly_update(s->x, "1, 0", 1))
DIFFERENT(updated_with, oly_update(s->x, "0", s->v), oly_update(s->x, "0", oly_neg(s->v)))
DIFFERENT(joined, oly_concatenate(0, s->x, s->y), oly_concatenate(0, s->y, s->x))
DIFFERENT(transposed, oly_transpose(s->x), oly_add(s->x, 0))
DIFFERENT(shape, oly_reshape(s->x, s->n * s->n), oly_reshape(s->x, s->n / 2, 2 * s->n))
DIFFERENT(product, oly_matmul(s->x, s->y), oly_matmul(s->y, s->x))
DIFFERENT(product_with_vector, oly_matmul(s->x, s->v), oly_matmul(s->y, s->v))
DIFFERENT(running, oly_cumsum(s->x, 0), oly_cumsum(s->x, 1))
DIFFERENT(running_operation, oly_cumsum(s->x, 1), oly_cummax(s->x, 1))
DIFFERENT(sorted, oly_sort(s->x, 0), oly_sort(s->x, 1))
DIFFERENT(reduced_axis, oly_sum(s->x, OLY_AXES(0)), oly_sum(s->x, OLY_AXES(1)))
DIFFERENT(reduction, oly_max(s->x, OLY_AXES(1)), oly_sum(s->x, OLY_AXES(1)))
DIFFERENT(reduction_across, oly_min(s->x, OLY_AXES(0)), oly_max(s->x, OLY_AXES(0)))
DIFFERENT(mean_or_sum, oly_mean(s->x), oly_sum(s->x))
DIFFERENT(sharding, oly_device_put(s->x, s->columns), oly_device_put(s->x, s->whole))
DIFFERENT(moved_array, oly_device_put(s->x, s->columns), oly_device_put(s->y, s->columns))
DIFFERENT(replicated, oly_device_put(s->x, s->whole), oly_device_put(s->y, s->whole))
DIFFERENT(length, oly_slice(s->v, "1:"), oly_slice(s->v, "2:"))
DIFFERENT(taken, oly_take(s->x, 1, 0, NULL), oly_take(s->x, 2, 0, NULL))
DIFFERENT(logic, oly_logical_and(oly_gt(s->x, 1), oly_lt(s->x, 9)), oly_logical_or(oly_gt(s->x, 1), oly_lt(s->x, 9)))

static oly_array fill(const setting *s)
{
    return oly_full_sharded(oly_operand_int(s->odd ? 1 : 2), OLY_FLOAT32, s->rows, 1, &s->n);
}

static oly_array on_two_lines(const setting *s)
{
    line = __LINE__ + 3;
    other = __LINE__ + 4;
    if (s->odd)
        return oly_mul(s->x, 3);
    else
        return oly_mul(s->x, 2);
}

static oly_array a_call_more(const setting *s)
{
    line = __LINE__ + 3;
    other = __LINE__ + 3;
    if (s->odd)
        oly_neg(s->x);
    return oly_neg(s->y);
}

static oly_array a_call_less(const setting *s)
{
    line = __LINE__ + 4;
    other = __LINE__ + 2;
    if (!s->odd)
        oly_sum(s->x);
    return oly_sum(s->y, OLY_AXES(0));
}

IN_OTHER_ORDER(in_other_order, oly_exp(s->v), oly_sin(s->v))

/* -- in per-process values */
static oly_array own_number(const setting *s)
{
    oly_array scale = own_scalar(s, OLY_FLOAT32);
    return AT(oly_mul(s->x, scale));
}

static oly_array own_values(const setting *s)
{
    oly_array local = oly_add(oly_arange(s->n, OLY_FLOAT32), s->odd ? 1 : 0);
    return AT(oly_add(s->x, local));
}

static oly_array own_large_values(const setting *s)
{
    int64_t n = 1 << 16;
    oly_array local = oly_update(oly_zeros(OLY_FLOAT32, n), "60000", s->odd ? 1 : 0);
    oly_array shared = oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, s->rows, 1, &n);
    return AT(oly_add(shared, local));
}

static oly_array own_index(const setting *s)
{
    oly_array index = own_scalar(s, OLY_INT32);
    return AT(oly_take(s->x, index, 0, NULL));
}

static oly_array own_indexes(const setting *s)
{
    int32_t mine[] = {1, 0, s->odd ? 2 : 1};
    oly_array index = oly_from_host(mine, OLY_INT32, 1, (int64_t[]){3});
    return AT(oly_take(s->x, index, 0, NULL));
}

static oly_array own_key(const setting *s)
{
    oly_array key = oly_random_key(s->odd ? 7 : 8);
    return AT(oly_add(s->v, oly_random_uniform(key, OLY_FLOAT32, s->n)));
}

static oly_array own_key_sharded(const setting *s)
{
    oly_array key = oly_random_key(s->odd ? 7 : 8);
    return AT(oly_random_normal_shape(key, OLY_FLOAT32, s->rows, 1, &s->n));
}

static oly_array own_predicate(const setting *s)
{
    oly_array p = oly_gt(oly_arange(1, OLY_INT32), s->odd ? -1 : 1), y = NULL;
    AT(oly_cond(oly_reshape_shape(p, 0, NULL), doubled, tripled, 1, &s->x, 1, &y, NULL));
    return y;
}

static void halve(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_mul(carry[0], 0.5);
}
static void grow(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    carry[0] = oly_mul(carry[0], 1.5);
}

static oly_array loop_count(const setting *s)
{
    oly_array u = s->x;
    AT(oly_fori(0, s->odd ? 3 : 4, halve, 1, &u, NULL));
    return u;
}

static oly_array loop_body(const setting *s)
{
    oly_array u = s->x;
    AT(oly_fori(0, 3, s->odd ? grow : halve, 1, &u, NULL));
    return u;
}

static void smooth(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    double weight = *(const double *)user;
    oly_array u = carry[0];
    carry[0] = oly_update(u, "1:-1",
                          oly_add(oly_mul(1 - 2 * weight, oly_slice(u, "1:-1")),
                                  oly_mul(weight, oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:")))));
}

static oly_array stencil_weight(const setting *s)
{
    oly_array u = s->v;
    double weight = s->odd ? 0.25 : 0.2;
    AT(oly_fori(0, 3, smooth, 1, &u, &weight));
    return u;
}

static oly_array stencil_count(const setting *s)
{
    oly_array u = s->v;
    double weight = 0.25;
    AT(oly_fori(0, s->odd ? 4 : 3, smooth, 1, &u, &weight));
    return u;
}

/* -- of compiled functions */
static oly_array captured;

static void adds_captured(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], captured);
}

static oly_array captured_array(const setting *s)
{
    captured = s->odd ? s->x : s->y;
    return AT(oly_apply(oly_jit(adds_captured, 1, 1), s->x));
}

static oly_array argument(const setting *s)
{
    oly_fn f = oly_jit(doubled, 1, 1);
    return AT(oly_apply(f, s->odd ? s->x : s->y));
}

static oly_array compiled_function(const setting *s)
{
    oly_fn f = oly_jit(doubled, 1, 1), g = oly_jit(tripled, 1, 1);
    return AT(oly_apply(s->odd ? f : g, s->x));
}

static void scaled(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sin(oly_mul(in[0], *(const double *)user));
}

static oly_array constant_of_function(const setting *s)
{
    double factor = s->odd ? 1.5 : 2.5;
    return AT(oly_apply(oly_jit(scaled, 1, 1, .user = &factor), s->x));
}

static oly_array donated(const setting *s)
{
    oly_fn f = oly_jit(doubled, 1, 1);
    oly_array u = oly_add(s->x, 0), w = NULL, *out = s->odd ? &u : &w;
    AT(oly_call_n(f, 1, &u, 1, (oly_array *const[]){out}));
    return *out;
}

static oly_array times_called(const setting *s)
{
    oly_fn f = oly_jit(doubled, 1, 1);
    oly_array u = oly_apply(f, s->x);
    line = __LINE__ + 3;
    other = 0; /* the next call */
    if (s->odd)
        u = oly_apply(f, u);
    return u;
}

static void summed(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sum(oly_mul(oly_mul(in[0], in[0]), *(const double *)user));
}

static oly_array derivative(const setting *s)
{
    double factor = s->odd ? 2 : 3;
    return AT(oly_apply(oly_grad(oly_jit(summed, 1, 1, .user = &factor)), s->x));
}

static void shard_sum(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum(oly_sum(in[0], .keepdims = true), "i");
}
static void shard_max(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_pmax(oly_sum(in[0], .keepdims = true), "i");
}

static oly_array per_device(const setting *s)
{
    oly_array result = NULL;
    oly_function f = s->odd ? shard_sum : shard_max;
    AT(oly_shard_map(f, NULL, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(result), OLY_SPECS("")));
    return result;
}

static oly_array own_parts(const setting *s)
{
    int64_t n = s->odd ? 2 * s->n : s->n, here = n / oly_process_count();
    float *part = calloc((size_t)here, sizeof *part);
    oly_array x = AT(oly_from_local(s->rows, OLY_FLOAT32, 1, &n, part, &here));
    free(part);
    return x;
}

static const difference differences[] = {
    D(constant),
    D(operation),
    D(function),
    D(operand_order),
    D(operand),
    D(other_array),
    D(bound),
    D(comparison),
    D(choice),
    D(largest),
    D(element_type),
    D(rounding),
    D(slices),
    D(steps),
    D(row),
    D(reversed_axis),
    D(turn),
    D(turn_across),
    D(updated_value),
    D(updated_place),
    D(updated_with),
    D(joined),
    D(transposed),
    D(shape),
    D(product),
    D(product_with_vector),
    D(running),
    D(running_operation),
    D(sorted),
    D(reduced_axis),
    D(reduction),
    D(reduction_across),
    D(mean_or_sum),
    D(sharding),
    D(moved_array),
    D(replicated),
    D(length),
    D(fill),
    D(taken),
    D(logic),
    D(on_two_lines),
    D(a_call_more),
    D(a_call_less),
    D(in_other_order),
    D(own_number),
    D(own_values),
    D(own_large_values),
    D(own_index),
    D(own_indexes),
    D(own_key),
    D(own_key_sharded),
    D(own_predicate),
    D(loop_count),
    D(loop_body),
    D(stencil_weight),
    D(stencil_count),
    D(captured_array),
    D(argument),
    D(compiled_function),
    D(constant_of_function),
    D(donated),
    D(times_called),
    D(derivative),
    D(per_device),
    D(own_parts),
};

REFUSED(differences)

/* -- a call that fails on one rank only ------------------------------------------------------------------------------------ */

/* One rank passes a wrong argument, the others a right one. */
static void lone_gather(const setting *s)
{
    size_t bytes = (size_t)oly_size(s->x) * 4;
    void *all = malloc(bytes);
    AT(oly_process_allgather(s->x, all, s->odd ? 4 : bytes));
    free(all);
}
static void lone_gather_of_copies(const setting *s)
{
    size_t bytes = (size_t)oly_size(s->x) * 4;
    void *all = malloc(bytes);
    oly_array copies = oly_device_put(s->x, s->whole);
    AT(oly_process_allgather(copies, s->odd ? NULL : all, bytes));
    free(all);
}
static void lone_sync(const setting *s)
{
    AT(oly_sync(s->odd ? NULL : "here"));
}
static void lone_picture(const setting *s)
{
    AT(oly_write_png(s->odd ? NULL : "/dev/null/none.png", s->x, 0, 1));
}
static void lone_sum(const setting *s)
{
    AT(oly_sum(s->x, OLY_AXES(s->odd ? 2 : 1)));
}
static void lone_add(const setting *s)
{
    oly_array shorter = oly_slice(s->v, "1:");
    AT(oly_add(s->x, s->odd ? shorter : s->v));
}
static void lone_put(const setting *s)
{
    AT(oly_device_put(s->x, s->odd ? oly_named(s->mesh, "None, None, i") : s->columns));
}
static void lone_part(const setting *s)
{
    int64_t n = s->n, here = n / oly_process_count(), given = s->odd ? here + 1 : here;
    float *part = calloc((size_t)given, sizeof *part);
    AT(oly_from_local(s->rows, OLY_FLOAT32, 1, &n, part, &given));
    free(part);
}
static void lone_call(const setting *s)
{
    oly_array out = NULL;
    oly_fn f = oly_jit(doubled, 1, 1);
    AT(oly_call_n(f, 1, s->odd ? (oly_array[]){NULL} : (oly_array[]){s->x}, 1, (oly_array *const[]){&out}));
}

static const struct lone {
    const char *name, *call;
    oly_status status; /* of the rank */
    void (*run)(const setting *s);
} lones[] = {
    {"gather", "oly_process_allgather", OLY_INVALID, lone_gather},
    {"gather of copies", "oly_process_allgather", OLY_INVALID, lone_gather_of_copies},
    {"sync", "oly_sync", OLY_INVALID, lone_sync},
    {"picture", "oly_write_png", OLY_INVALID, lone_picture},
    {"sum", "oly_sum", OLY_SHAPE, lone_sum},
    {"add", "oly_add", OLY_SHAPE, lone_add},
    {"put", "oly_device_put", OLY_SHARDING, lone_put},
    {"part", "oly_from_local", OLY_SHAPE, lone_part},
    {"call", "oly_call", OLY_INVALID, lone_call},
};

static void a_rank_that_fails_alone_is_named(void **state)
{
    (void)state;
    for (int k = 0; k < (int)(sizeof lones / sizeof *lones); k++) {
        setting s;
        double seconds;
        char call[100], rank[40];
        difference_begin(&s, k);
        snprintf(rank, sizeof rank, "rank %d has failed in ", k % oly_process_count());
        lones[k].run(&s);
        int status = difference_end(&seconds);
        snprintf(call, sizeof call, "%s (", lones[k].call);
        const char *text = oly_last_error();
        if (status != 1 || oly_last_status() != lones[k].status || !strstr(text, call) ||
            !difference_is_named(__FILE__, text, line) || (!s.odd && !strstr(text, rank)))
            fail_msg("%s: status %d and %s: %s", lones[k].name, status, oly_status_name(oly_last_status()), text);
        oly_clear_error();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(programs_that_differ_are_refused),
    cmocka_unit_test(a_rank_that_fails_alone_is_named),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
