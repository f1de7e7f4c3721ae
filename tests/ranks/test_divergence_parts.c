/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,4,8 devices=8 timeout=300  More programs that differ between ranks: on meshes over some of the ranks, on
 * two meshes, inside compiled functions, loops, branches and maps, in random numbers, in what is fetched and written,
 * and in how often. */
#include "check_divergence.h"

/* -- on a mesh that leaves a rank out ------------------------------------------------------------------------------------ */

DIFFERENT(part_constant, oly_mul(s->a, 3), oly_mul(s->a, 2))
DIFFERENT(part_operation, oly_exp(s->a), oly_tanh(s->a))
DIFFERENT(part_operand, oly_add(s->a, s->a), oly_add(s->a, s->b))
DIFFERENT(part_other_array, oly_neg(s->a), oly_neg(s->b))
DIFFERENT(part_reduced, oly_sum(s->a, OLY_AXES(0)), oly_sum(s->a, OLY_AXES(1)))
DIFFERENT(part_turn, oly_roll(s->a, 1, 0), oly_roll(s->a, 2, 0))
DIFFERENT(part_product, oly_matmul(s->a, s->b), oly_matmul(s->b, s->a))
DIFFERENT(part_spread, oly_device_put(s->a, s->part_whole), oly_device_put(s->b, s->part_whole))
DIFFERENT(part_moved, oly_device_put(s->a, s->columns), oly_device_put(s->b, s->columns))
DIFFERENT(moved_to_part, oly_device_put(s->x, s->part_rows), oly_device_put(s->y, s->part_rows))
DIFFERENT(moved_elsewhere, oly_device_put(s->x, s->part_rows), oly_device_put(s->x, s->rows))

static oly_array part_number(const setting *s)
{
    oly_array scale = own_scalar(s, OLY_FLOAT32);
    return AT(oly_mul(s->a, scale));
}

IN_OTHER_ORDER(part_order, oly_neg(s->a), oly_abs(s->a))

static oly_array part_call_more(const setting *s)
{
    line = other = __LINE__ + 2;
    if (s->odd)
        oly_sum(s->a);
    return oly_sum(s->b, OLY_AXES(0));
}

static oly_array part_fill(const setting *s)
{
    return AT(oly_full_sharded(oly_operand_int(s->odd ? 1 : 2), OLY_FLOAT32, s->part_rows, 1, &s->n));
}

/* -- on two meshes ------------------------------------------------------------------------------------------------------- */

/* All devices, from the last to the first. */
static oly_sharding turned(const setting *s)
{
    int n = oly_device_count(), *devices = malloc(sizeof *devices * (size_t)n);
    for (int k = 0; k < n; k++)
        devices[k] = n - 1 - k;
    oly_sharding rows = oly_named(oly_mesh_from_devices(1, (const char *[]){"i"}, &n, devices), "i");
    free(devices);
    (void)s;
    return rows;
}
DIFFERENT(other_mesh, oly_device_put(s->x, turned(s)), oly_device_put(s->x, s->rows))
DIFFERENT(other_mesh_filled, oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, turned(s), 1, &s->n),
          oly_full_sharded(oly_operand_int(1), OLY_FLOAT32, s->rows, 1, &s->n))

static oly_array order_of_meshes(const setting *s)
{
    oly_array z = oly_device_put(s->x, turned(s)), p, q;
    if (s->odd) {
        line = __LINE__ + 1;
        p = oly_sin(s->x);
        q = oly_cos(z);
    } else {
        other = __LINE__ + 1;
        q = oly_cos(z);
        p = oly_sin(s->x);
    }
    return oly_add(p, oly_device_put(q, s->rows));
}

/* Arrays that only the ranks of the part know, in a call of all. */
static oly_array operand_of_part(const setting *s)
{
    oly_array c = oly_mul(s->a, 2), d = oly_mul(s->b, 2);
    return AT(oly_device_put(s->odd ? c : d, s->whole));
}

/* -- calls of other functions -------------------------------------------------------------------------------------------- */

DIFFERENT(kept_dimensions, oly_sum(s->x, OLY_AXES(0), .keepdims = true), oly_sum(s->x, OLY_AXES(0)))
DIFFERENT(variance, oly_var(s->x, OLY_AXES(0)), oly_mean(s->x, OLY_AXES(0)))
DIFFERENT(largest_index, oly_argmax(s->x, 0), oly_argmin(s->x, 0))
DIFFERENT(sorted_index, oly_argsort(s->x, 0), oly_argsort(s->x, 1))
DIFFERENT(triangle, oly_tril(s->x, 0), oly_triu(s->x, 0))
DIFFERENT(diagonal, oly_diag(s->x, 0), oly_diag(s->x, 1))
DIFFERENT(repeated, oly_repeat(s->v, 2, 0), oly_repeat(s->v, 3, 0))
DIFFERENT(tiled, oly_tile(s->v, 2), oly_tile(s->v, 3))
DIFFERENT(swapped, oly_swapaxes(s->x, 0, 1), oly_swapaxes(s->x, 1, 1))
DIFFERENT(power, oly_pow(s->x, 2), oly_pow(s->x, 3))
DIFFERENT(test_of_elements, oly_isnan(s->x), oly_isfinite(s->x))
DIFFERENT(bits, oly_bitwise_and(oly_astype(s->x, OLY_INT32), 3), oly_bitwise_or(oly_astype(s->x, OLY_INT32), 3))
DIFFERENT(contraction, oly_einsum("ij,jk->ik", s->x, s->y), oly_einsum("ij,kj->ik", s->x, s->y))
DIFFERENT(padded, oly_pad(s->v, 0, ((int64_t[]){1}), ((int64_t[]){0}), NULL),
          oly_pad(s->v, 0, ((int64_t[]){0}), ((int64_t[]){1}), NULL))
DIFFERENT(padded_with, oly_pad(s->v, 0, ((int64_t[]){1}), ((int64_t[]){0}), NULL),
          oly_pad(s->v, 1, ((int64_t[]){1}), ((int64_t[]){0}), NULL))
DIFFERENT(dynamic_start, oly_dynamic_slice(s->v, 1, (oly_operand[]){oly_operand_int(1)}, 1, (int64_t[]){2}),
          oly_dynamic_slice(s->v, 1, (oly_operand[]){oly_operand_int(2)}, 1, (int64_t[]){2}))
DIFFERENT(half_or_float, oly_astype(s->x, OLY_FLOAT16), oly_astype(s->x, OLY_BFLOAT16))
DIFFERENT(negative_zero, oly_mul(s->x, 0.0), oly_mul(s->x, -0.0))
DIFFERENT(last_bit, oly_mul(s->x, 0.1), oly_mul(s->x, 0.1000001))

/* -- random numbers ------------------------------------------------------------------------------------------------------ */

static oly_array kind_of_numbers(const setting *s)
{
    oly_array key = oly_random_key(7);
    line = __LINE__ + 3;
    other = __LINE__ + 4;
    if (s->odd)
        return oly_random_gumbel_shape(key, OLY_FLOAT32, s->rows, 1, &s->n);
    else
        return oly_random_normal_shape(key, OLY_FLOAT32, s->rows, 1, &s->n);
}

static void noise(const oly_array *in, oly_array *out, void *user)
{
    oly_array key = oly_random_key(*(const int *)user);
    out[0] = oly_add(in[0], oly_random_uniform(key, OLY_FLOAT32, oly_size(in[0])));
}
static oly_array seed_inside(const setting *s)
{
    int seed = s->odd ? 3 : 4;
    return AT(oly_apply(oly_jit(noise, 1, 1, .user = &seed), s->v));
}

static oly_array key_part(const setting *s)
{
    oly_array keys = oly_random_split(oly_random_key(1), 2), key = oly_slice(keys, s->odd ? "0" : "1");
    return AT(oly_random_normal_shape(key, OLY_FLOAT32, s->rows, 1, &s->n));
}

/* -- inside functions, loops, branches, maps ----------------------------------------------------------------------- */

typedef struct inside {
    int kind;
    double number;
    oly_array array;
    oly_sharding sharding;
} inside;

static void body(const oly_array *in, oly_array *out, void *user)
{
    const inside *i = user;
    oly_array x = in[0];
    switch (i->kind) {
    case 0: out[0] = oly_sin(oly_mul(x, i->number)); break;
    case 1: out[0] = i->number > 0 ? oly_sort(x, 0) : oly_sort(x, 1); break;
    case 2: out[0] = oly_add(x, i->array); break;
    case 3: out[0] = oly_with_sharding_constraint(oly_add(x, 1), i->sharding); break;
    case 4: out[0] = oly_add(x, oly_full((int)i->number, OLY_FLOAT32)); break;
    case 5: out[0] = oly_update(x, i->number > 0 ? "0" : "1", 0); break;
    default: out[0] = x; break;
    }
}

static oly_array with(const setting *s, inside first, inside second)
{
    oly_fn f = oly_jit(body, 1, 1, .user = s->odd ? &first : &second);
    return AT(oly_apply(f, s->x));
}

static oly_array jit_number(const setting *s)
{
    return with(s, (inside){0, 1.5, NULL, NULL}, (inside){0, 1.25, NULL, NULL});
}
static oly_array jit_axis(const setting *s)
{
    return with(s, (inside){1, 1, NULL, NULL}, (inside){1, -1, NULL, NULL});
}
static oly_array jit_captured(const setting *s)
{
    return with(s, (inside){2, 0, s->x, NULL}, (inside){2, 0, s->y, NULL});
}
static oly_array jit_captured_own(const setting *s)
{
    oly_array own = own_scalar(s, OLY_FLOAT32);
    return with(s, (inside){2, 0, own, NULL}, (inside){2, 0, own, NULL});
}
static oly_array jit_sharding(const setting *s)
{
    return with(s, (inside){3, 0, NULL, s->columns}, (inside){3, 0, NULL, s->whole});
}
static oly_array jit_full(const setting *s)
{
    return with(s, (inside){4, 2, NULL, NULL}, (inside){4, 3, NULL, NULL});
}
static oly_array jit_place(const setting *s)
{
    return with(s, (inside){5, 1, NULL, NULL}, (inside){5, -1, NULL, NULL});
}

static void two_results(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], in[1]);
    out[1] = oly_sub(in[0], in[1]);
}

static oly_array arguments_exchanged(const setting *s)
{
    oly_array p = NULL, q = NULL;
    oly_fn f = oly_jit(two_results, 2, 2);
    oly_array first = s->odd ? s->x : s->y, second = s->odd ? s->y : s->x;
    AT(oly_call(f, OLY_IN(first, second), OLY_OUT(p, q)));
    return q;
}

static oly_array donated_another(const setting *s)
{
    oly_array u = oly_add(s->x, 0), w = oly_add(s->y, 0), q = NULL;
    oly_fn f = oly_jit(two_results, 2, 2);
    AT(oly_call_n(f, 2, (oly_array[]){u, w}, 2, s->odd ? (oly_array *const[]){&u, &q} : (oly_array *const[]){&q, &u}));
    return q;
}

static void step(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(oly_mul(carry[0], *(const double *)user), 1);
}
static void nested(oly_array i, oly_array *carry, void *user)
{
    double half = 0.5;
    (void)i;
    oly_fori(0, *(const int *)user, step, 1, carry, &half);
}
static void exchanges(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_roll(carry[0], *(const int *)user, 0);
}

static oly_array loop_number(const setting *s)
{
    oly_array u = s->x;
    double factor = s->odd ? 0.5 : 0.25;
    AT(oly_fori(0, 3, step, 1, &u, &factor));
    return u;
}
static oly_array loop_inside_loop(const setting *s)
{
    oly_array u = s->x;
    int times = s->odd ? 2 : 3;
    AT(oly_fori(0, 3, nested, 1, &u, &times));
    return u;
}
static oly_array loop_exchange(const setting *s)
{
    oly_array u = s->x;
    int by = s->odd ? 1 : 2;
    AT(oly_fori(0, 3, exchanges, 1, &u, &by));
    return u;
}
static oly_array loop_begin(const setting *s)
{
    oly_array u = s->odd ? s->x : s->y;
    double half = 0.5;
    AT(oly_fori(0, 3, step, 1, &u, &half));
    return u;
}
static oly_array loop_on_part(const setting *s)
{
    oly_array u = s->a;
    double half = 0.5;
    AT(oly_fori(0, s->odd ? 2 : 3, step, 1, &u, &half));
    return u;
}

static void scan_step(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    carry[0] = oly_add(oly_mul(carry[0], *(const double *)user), x[0]);
    y[0] = carry[0];
}
static oly_array scan(const setting *s, double number, bool reverse)
{
    oly_array xs = oly_device_put(s->x, s->columns), carry = s->v, ys = NULL;
    AT(oly_scan(s->n, reverse, scan_step, 1, &carry, 1, &xs, 1, &ys, &number));
    return ys;
}
static oly_array scan_number(const setting *s)
{
    return scan(s, s->odd ? 2 : 3, false);
}
static oly_array scan_direction(const setting *s)
{
    return scan(s, 2, s->odd);
}

static oly_array is_below(const oly_array *carry, void *user)
{
    return oly_lt(carry[1], *(const int *)user);
}
static void count_up(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
    carry[1] = oly_add(carry[1], 1);
}
static oly_array while_bound(const setting *s)
{
    oly_array carry[] = {s->x, oly_full(0, OLY_INT32)};
    int bound = s->odd ? 2 : 3;
    AT(oly_while(is_below, count_up, 2, carry, &bound));
    return carry[0];
}
static oly_array while_begin(const setting *s)
{
    oly_array carry[] = {s->x, oly_full(s->odd ? 1 : 0, OLY_INT32)};
    int bound = 3;
    AT(oly_while(is_below, count_up, 2, carry, &bound));
    return carry[0];
}

static oly_array branch_body(const setting *s)
{
    oly_array y = NULL;
    AT(oly_cond(oly_full(1, OLY_BOOL), s->odd ? doubled : tripled, doubled, 1, &s->x, 1, &y, NULL));
    return y;
}
static oly_array branch_index(const setting *s)
{
    oly_array y = NULL, index = oly_full(s->odd ? 0 : 1, OLY_INT32);
    AT(oly_switch(index, 2, (const oly_function[]){doubled, tripled}, 1, &s->x, 1, &y, NULL));
    return y;
}

static void shard_body(const oly_array *in, oly_array *out, void *user)
{
    switch (*(const int *)user) {
    case 0: out[0] = oly_mul(in[0], 2); break;
    case 1: out[0] = oly_mul(in[0], 3); break;
    case 2: out[0] = oly_ppermute(in[0], "i", OLY_PAIRS({0, 1})); break;
    case 3: out[0] = oly_ppermute(in[0], "i", OLY_PAIRS({1, 0})); break;
    case 4: out[0] = oly_add(in[0], oly_psum(in[0], "i")); break;
    case 5: out[0] = oly_add(in[0], oly_pmean(in[0], "i")); break;
    case 6: out[0] = oly_add(in[0], oly_astype(oly_axis_index("i"), OLY_FLOAT32)); break;
    default: out[0] = in[0]; break;
    }
}
static oly_array mapped(const setting *s, int first, int second)
{
    oly_array y = NULL;
    int kind = s->odd ? first : second;
    AT(oly_shard_map(shard_body, &kind, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS("i")));
    return y;
}
static oly_array map_number(const setting *s)
{
    return mapped(s, 0, 1);
}
static oly_array map_pairs(const setting *s)
{
    return mapped(s, 2, 3);
}
static oly_array map_sum(const setting *s)
{
    return mapped(s, 4, 5);
}
static oly_array map_with_or_without(const setting *s)
{
    return mapped(s, 4, 6);
}
static oly_array map_specs(const setting *s)
{
    oly_array y = NULL;
    int kind = 0;
    AT(oly_shard_map(shard_body, &kind, s->mesh, OLY_IN(s->x), s->odd ? OLY_SPECS("None, i") : OLY_SPECS("i"),
                     OLY_OUT(y), s->odd ? OLY_SPECS("None, i") : OLY_SPECS("i")));
    return y;
}

static void row(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(in[0], *(const double *)user);
}
static oly_array batched(const setting *s)
{
    oly_array y = NULL;
    double factor = s->odd ? 2 : 3;
    AT(oly_vmap(row, &factor, OLY_IN(s->x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0)));
    return y;
}

static void squares(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], in[0]));
}
static void cubes(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], oly_mul(in[0], in[0])));
}
static oly_array slope(const setting *s)
{
    return AT(oly_apply(oly_grad(oly_jit(s->odd ? squares : cubes, 1, 1)), s->x));
}
static oly_array slope_or_value(const setting *s)
{
    oly_fn f = oly_jit(squares, 1, 1);
    return AT(oly_apply(s->odd ? oly_grad(f) : f, s->x));
}

/* -- what is fetched, written, waited for -------------------------------------------------------------------------------- */

static void gather(oly_array x)
{
    size_t bytes = x ? (size_t)oly_size(x) * 8 : 0;
    void *all = malloc(bytes + 1);
    if (x && oly_process_allgather(x, all, bytes) == OLY_OK)
        handed_out = true;
    free(all);
}

static oly_array fetched(const setting *s)
{
    used_up = true;
    AT(gather(s->odd ? s->x : s->y));
    line = other = 0; /* of gather */
    return NULL;
}
static oly_array fetched_whole(const setting *s)
{
    oly_array p = oly_device_put(s->x, s->whole), q = oly_device_put(s->y, s->whole);
    size_t bytes = (size_t)(s->n * s->n) * 4;
    void *all = malloc(bytes);
    used_up = true;
    AT(oly_process_allgather(s->odd ? p : q, all, bytes));
    free(all);
    handed_out = oly_last_status() == OLY_OK;
    return NULL;
}
static oly_array fetched_of_part(const setting *s)
{
    size_t bytes = (size_t)(s->n * s->n) * 4;
    void *all = malloc(bytes);
    used_up = true;
    if (oly_shard_count(s->a)) {
        AT(oly_process_allgather(s->odd ? s->a : s->b, all, bytes));
        handed_out = oly_last_status() == OLY_OK;
    }
    free(all);
    line = other = 0; /* the rank that is left out has no call of its own */
    return NULL;
}
static oly_array fetched_more(const setting *s)
{
    size_t bytes = (size_t)(s->n * s->n) * 4;
    void *all = malloc(bytes);
    used_up = true;
    if (s->odd)
        AT(oly_process_allgather(s->x, all, bytes));
    other = 0;
    handed_out = s->odd && oly_last_status() == OLY_OK;
    free(all);
    return NULL;
}
static oly_array picture(const setting *s)
{
    used_up = true;
    AT(oly_write_png("/dev/null/none.png", s->odd ? s->x : s->y, 0, 1));
    return NULL;
}
static oly_array picture_of_one(const setting *s)
{
    used_up = true;
    line = __LINE__ + 2;
    if (s->odd)
        oly_write_png("/dev/null/none.png", s->x, 0, 1);
    other = 0;
    return NULL;
}
static oly_array sync_more(const setting *s)
{
    used_up = true;
    line = __LINE__ + 2;
    if (s->odd)
        oly_sync("once more");
    other = 0;
    return NULL;
}
static oly_array sync_less(const setting *s)
{
    other = __LINE__ + 2;
    if (!s->odd)
        oly_sync("not on one");
    line = 0;
    return oly_neg(s->x);
}
/* One rank has finished, or has not started. */
static oly_array ends_first(const setting *s)
{
    used_up = s->odd;
    return s->odd ? NULL : oly_mul(s->x, 2);
}
static oly_array works_on(const setting *s)
{
    used_up = !s->odd;
    return s->odd ? oly_mul(s->x, 2) : NULL;
}
static oly_array another_part(const setting *s)
{
    int64_t n = s->n, here = 0;
    OLY_FOR_EACH_SHARD(part, s->odd ? s->x : s->a)
    here += part.extent[0];
    float *mine = calloc((size_t)here + 1, sizeof *mine);
    oly_array x = AT(oly_from_local(s->odd ? s->rows : s->part_rows, OLY_FLOAT32, 1, &n, mine, &here));
    free(mine);
    return x;
}
static oly_array type_of_part(const setting *s)
{
    int64_t n = s->n, here = n / oly_process_count();
    float *mine = calloc((size_t)here, sizeof *mine);
    oly_array x = AT(oly_from_local(s->rows, s->odd ? OLY_INT32 : OLY_FLOAT32, 1, &n, mine, &here));
    free(mine);
    return x;
}

static const difference differences[] = {
    D(part_constant),
    D(part_operation),
    D(part_operand),
    D(part_other_array),
    D(part_reduced),
    D(part_turn),
    D(part_product),
    D(part_spread),
    D(part_moved),
    D(moved_to_part),
    D(moved_elsewhere),
    D(part_number),
    D(part_order),
    D(part_call_more),
    D(part_fill),
    D(other_mesh),
    D(other_mesh_filled),
    D(order_of_meshes),
    D(operand_of_part),
    D(kept_dimensions),
    D(variance),
    D(largest_index),
    D(sorted_index),
    D(triangle),
    D(diagonal),
    D(repeated),
    D(tiled),
    D(swapped),
    D(power),
    D(test_of_elements),
    D(bits),
    D(contraction),
    D(padded),
    D(padded_with),
    D(dynamic_start),
    D(half_or_float),
    D(negative_zero),
    D(last_bit),
    D(kind_of_numbers),
    D(seed_inside),
    D(key_part),
    D(jit_number),
    D(jit_axis),
    D(jit_captured),
    D(jit_captured_own),
    D(jit_sharding),
    D(jit_full),
    D(jit_place),
    D(arguments_exchanged),
    D(donated_another),
    D(loop_number),
    D(loop_inside_loop),
    D(loop_exchange),
    D(loop_begin),
    D(loop_on_part),
    D(scan_number),
    D(scan_direction),
    D(while_bound),
    D(while_begin),
    D(branch_body),
    D(branch_index),
    D(map_number),
    D(map_pairs),
    D(map_sum),
    D(map_with_or_without),
    D(map_specs),
    D(batched),
    D(slope),
    D(slope_or_value),
    D(fetched),
    D(fetched_whole),
    D(fetched_of_part),
    D(fetched_more),
    D(picture),
    D(picture_of_one),
    D(sync_more),
    D(sync_less),
    D(ends_first),
    D(works_on),
    D(another_part),
    D(type_of_part),
};

REFUSED(differences)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(programs_that_differ_are_refused),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
