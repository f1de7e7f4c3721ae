/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1 devices=8 timeout=300  Every allocation fails once, in one program after the other: the call reports
 * that there is no memory, nothing leaks (with the sanitizer), and the same call succeeds afterwards. */
#include "check.h"
#include "check_session.h"
#include "core/error.h"
#include "plan/rewrite/rewrite.h"
#include <olympus.h>
#include <stdlib.h>
#include <string.h>

/* Uses a size of its own, so that plans are made anew; returns what should be 6 n, or NULL. */
typedef oly_array attempt(int64_t n);

static oly_array sharded_ones(int64_t n)
{
    return oly_device_put(oly_ones(OLY_FLOAT32, n), oly_named(oly_make_mesh("x=8"), "x"));
}
static oly_array try_host(int64_t n)
{
    float *data = malloc(sizeof *data * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        data[i] = 6;
    oly_array x = oly_from_host(data, OLY_FLOAT32, 1, &n);
    free(data);
    return x;
}
static oly_array try_put(int64_t n)
{
    return oly_mul(sharded_ones(n), 6);
}
static oly_status fill_sixes(const oly_index_box *box, void *memory, void *user)
{
    (void)user;
    for (int64_t i = 0; i < box->extent[0]; i++)
        ((float *)memory)[i] = 6;
    return OLY_OK;
}
static oly_array try_callback(int64_t n)
{
    oly_mesh mesh = oly_make_hybrid_mesh("x=1", "y=2, z=4");
    return oly_from_callback(oly_named(mesh, "z"), OLY_FLOAT32, 1, &n, fill_sixes, NULL);
}
static oly_array try_processes(int64_t n)
{
    float sixes[4096], all[4096];
    oly_index_box box = {.rank = 1, .extent = {n}};
    fill_sixes(&box, sixes, NULL);
    oly_array x = oly_from_host(sixes, OLY_FLOAT32, 1, &n);
    size_t bytes = sizeof *sixes * (size_t)n;
    int boxes = oly_sharding_boxes(oly_single_device(oly_get_device(1)), 1, &n, -1, 0, NULL);
    if (boxes != 1 || oly_broadcast_host(sixes, bytes) != OLY_OK || oly_allgather_host(sixes, bytes, all) != OLY_OK ||
        oly_assert_equal(x, "sixes") != OLY_OK || oly_process_allgather_stacked(x, all, bytes) != OLY_OK)
        return NULL;
    return oly_broadcast_one_to_all(x);
}
static oly_array try_operations(int64_t n)
{
    oly_array x = sharded_ones(n), m = oly_reshape(oly_concatenate(0, x, x), 2, -1);
    oly_array product = oly_matmul(oly_transpose(m), oly_ones(OLY_FLOAT32, 2, 3));
    oly_array sums = oly_sum(oly_update(product, "1:, 1", 2), OLY_AXES(1));
    return oly_with_sharding_constraint(oly_slice(sums, ":"), oly_named(oly_make_mesh("a=2, b=4"), "b"));
}
static void halves(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array inside = oly_mul(0.5, oly_add(oly_slice(carry[0], ":-2"), oly_slice(carry[0], "2:")));
    carry[0] = oly_where(oly_ge(i, 0), oly_update(carry[0], "1:-1", inside), carry[0]);
}
static void six_times(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    oly_fori(0, 3, halves, 1, &x, NULL);
    out[0] = x ? oly_add(oly_mul(x, 5), oly_div(oly_sum(x), (double)oly_size(x))) : NULL;
}
static oly_array try_function(int64_t n)
{
    return oly_apply(oly_jit(six_times, 1, 1), sharded_ones(n));
}

static double total(oly_array x)
{
    return x ? oly_item(oly_sum(x)) : -1;
}

/* Had the ordered failure (after k allocations) not happened yet? Cancels it. */
static bool unspent(long k)
{
    for (long j = 0; j <= k; j++)
        if (oly_allocation_fails())
            return true;
    return false;
}

static void check_attempt(attempt *work, int64_t n, long k, bool *more)
{
    oly_fail_allocation(k);
    oly_array x = work(n);
    if (x && oly_block_until_ready(x) != OLY_OK)
        x = NULL;
    *more = !unspent(k);
    oly_fail_allocation(-1);
    if (x && total(x) != 6. * (double)n)
        fail_msg("allocation %ld failed, and the result is %.17g instead of %.17g", k, total(x), 6. * (double)n);
    /* an array that is moved to a mesh that exists already stays where it was */
    if (x && oly_last_status() != OLY_OK && !strstr(oly_last_error(), "oly_make_mesh") &&
        !strstr(oly_last_error(), "oly_named"))
        fail_msg("allocation %ld failed without harm, but an error is left: \"%s\"", k, oly_last_error());
    if (!x && (oly_last_status() != OLY_MEMORY || !strstr(oly_last_error(), __FILE__)))
        fail_msg("allocation %ld failed: %s: \"%s\"", k, oly_status_name(oly_last_status()), oly_last_error());
    if (!x && !*more)
        fail_msg("failed with all memory there: %s", oly_last_error());
    oly_clear_error();
    oly_array again = work(n);
    if (total(again) != 6. * (double)n)
        fail_msg("after allocation %ld failed: %.17g instead of %.17g: %s", k, total(again), 6. * (double)n,
                 oly_last_error());
}

/* Lets the k-th allocation fail until the attempt needs no more: the first 150 one by one, then every second, every
 * third, ... With CHECK_EVERY=1 for all k (a minute). */
static void sweep(attempt *work, long least)
{
    bool more = true;
    bool every = getenv("CHECK_EVERY") != NULL;
    long k = 0;
    for (; more; k += every ? 1 : 1 + k / 150)
        OLY_SCOPE
        {
            check_attempt(work, 10 + k, k, &more);
        }
    if (k <= least)
        fail_msg("only %ld allocations", k);
}

/* -- programs of all kinds ------------------------------------------------------------------------------------------------ */

/* 6 n, computed from x. */
static oly_array answer(oly_array x, int64_t n)
{
    oly_array none = oly_mul(0, oly_astype(oly_sum(oly_clip(x, -1, 1)), OLY_FLOAT32));
    return oly_add(oly_mul(6, oly_ones(OLY_FLOAT32, n)), none);
}

static oly_array table(int64_t rows, int64_t columns, const char *spec)
{
    oly_array x = oly_reshape(oly_arange(rows * columns, OLY_FLOAT32), rows, columns);
    return oly_device_put(oly_mul(x, 1e-3), oly_named(oly_make_mesh("x=4, y=2"), spec));
}

static void grow(oly_array i, oly_array *carry, void *user)
{
    oly_array const *w = user;
    (void)i;
    carry[0] = oly_tanh(oly_matmul(carry[0], *w));
}
static void to_itself(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
}
static void to_square(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], in[0]);
}
static void recurrent(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0], w = in[1], y;
    oly_fori(0, 3, grow, 1, &x, &w);
    oly_cond(oly_lt(oly_sum(x), 0), to_itself, to_square, 1, &x, 1, &y, NULL);
    out[0] = oly_sum(y);
}
static oly_array try_gradient(int64_t n)
{
    oly_fn f = oly_grad(oly_jit(recurrent, 2, 1), .argnums = "0, 1");
    oly_array by_x = NULL, by_w = NULL;
    oly_call(f, OLY_IN(table(n, 8, "x"), table(8, 8, "None, y")), OLY_OUT(by_x, by_w));
    return oly_add(answer(by_x, n), oly_mul(0, oly_sum(by_w)));
}

static oly_array is_small(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], 3);
}
static void doubles(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(oly_mul(2, carry[0]), 1);
}
static void by_element(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = in[0];
    oly_while(is_small, doubles, 1, &x, NULL);
    oly_cond(oly_lt(x, 4), to_itself, to_square, 1, &x, 1, out, NULL);
}
static oly_array try_batch(int64_t n)
{
    oly_array y = NULL;
    oly_vmap(by_element, NULL, OLY_IN(oly_mul(0.5, sharded_ones(8 * n))), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
    return answer(y, n);
}

static void on_a_device(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array sum = oly_psum(oly_sum(in[0]), "x"), all = oly_all_gather(in[0], "x", .tiled = true);
    oly_array next = oly_ppermute(in[0], "x", OLY_PAIRS({0, 1}, {1, 2}, {2, 3}, {3, 0}));
    out[0] = oly_add(oly_add(oly_psum_scatter(all, "x", .tiled = true), next), sum);
}
static oly_array try_devices(int64_t n)
{
    oly_array y = NULL;
    oly_mesh mesh = oly_make_mesh("x=4, y=2");
    oly_shard_map(on_a_device, NULL, mesh, OLY_IN(table(4 * n, 2, "x, y")), OLY_SPECS("x, y"), OLY_OUT(y),
                  OLY_SPECS("x, y"));
    return answer(y, n);
}

static void running_sum(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[0] = oly_mul(carry[0], x[0]);
}
static oly_array try_scan(int64_t n)
{
    oly_array xs = table(n, 8, "None, x"), carry = oly_zeros(OLY_FLOAT32, 8), ys = NULL;
    oly_scan(n, true, running_sum, 1, &carry, 1, &xs, 1, &ys, NULL);
    return answer(ys, n);
}

static void orders(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array order = oly_argsort(in[0], 0), values = NULL, places = NULL;
    oly_array sorted = oly_take_along_axis(in[0], order, 0, NULL);
    oly_top_k(sorted, 2, &values, &places);
    oly_array added = oly_at_add(sorted, OLY_INDEXES(oly_slice(places, ":, 0")), values);
    out[0] = oly_cumsum(oly_flip(added, 0), 0);
}
static oly_array try_orders(int64_t n)
{
    return answer(oly_apply(oly_jit(orders, 1, 1), oly_neg(table(8 * n, 2, "x"))), n);
}

static void diffuse(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    oly_array u = carry[0], around = oly_add(oly_roll(u, 1, 0), oly_roll(u, -1, 0));
    oly_array next = oly_add(oly_mul(u, 0.5), oly_mul(0.25, around));
    oly_array left = oly_sum(oly_square(oly_sub(next, u)));
    carry[0] = next;
    carry[1] = oly_dynamic_update_slice(carry[1], oly_reshape(left, 1), OLY_INDEXES(i));
}
static void watched(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array carry[2] = {in[0], oly_zeros(OLY_FLOAT32, 8)};
    oly_fori(0, 8, diffuse, 2, carry, NULL);
    out[0] = oly_add(carry[0], oly_sum(carry[1]));
}
static oly_array try_fields(int64_t n)
{
    return answer(oly_apply(oly_jit(watched, 1, 1), table(2048 + 8 * n, 8, "x, y")), n);
}

static void network(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array a = oly_relu(oly_einsum("bi,ij->bj", in[0], in[1])), b = oly_einsum("bi,ij,jk->bk", a, in[1], in[1]);
    out[0] = oly_mean(oly_square(oly_sub(oly_softmax(b, 1), in[0])));
}
static oly_array try_choice(int64_t n)
{
    oly_fn f = oly_grad(oly_jit(network, 2, 1), .argnums = "1");
    return answer(oly_apply(f, table(8 * n, 16, "x, y"), table(16, 16, "y, x")), n);
}

static oly_array try_explicit(int64_t n)
{
    oly_mesh mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    oly_array a = oly_device_put(oly_ones(OLY_FLOAT32, 4 * n, 8), oly_named(mesh, "x, y"));
    oly_array b = oly_device_put(oly_ones(OLY_FLOAT32, 8, 16), oly_named(mesh, "y, None"));
    oly_array waiting = oly_matmul(a, b, .out_sharding = oly_named(mesh, "x, None, unreduced={y}"));
    oly_array turned = oly_reshard(waiting, oly_named(mesh, "None, (y, x)"));
    return answer(oly_device_put(turned, oly_named(oly_make_mesh("z=3"), "z")), n);
}

static oly_array try_windows(int64_t n)
{
    oly_array x = oly_reshape(table(n + 8, 32, "x"), 1, 1, n + 8, 32);
    oly_array y = oly_conv(x, oly_ones(OLY_FLOAT32, 1, 1, 3, 3), .padding = "SAME");
    return answer(oly_max_pool(y, .window = "2, 2"), n);
}

/* A step whose slopes are shifted, too: planned as a region (plan/rewrite/field_regions.c). */
static void step_of_field(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array slope = oly_mul(oly_sub(oly_roll(in[0], -1, 0), in[0]), in[0]);
    out[0] = oly_add(in[0], oly_sub(slope, oly_roll(slope, 1, 0)));
}
static oly_array try_region(int64_t n)
{
    oly_field_regions_least = 1;
    oly_array x = oly_apply(oly_jit(step_of_field, 1, 1), oly_mul(sharded_ones(n), 6));
    oly_field_regions_least = 1 << 13;
    return x;
}

static void many(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    for (int k = 0; k < 20; k++)
        out[k] = oly_add(in[k], in[(k + 1) % 20]);
}
static oly_array try_many(int64_t n)
{
    oly_array x[20], y = NULL;
    for (int k = 0; k < 20; k++)
        x[k] = sharded_ones(n);
    if (oly_call_arrays(oly_jit(many, 20, 20), 20, x, 20, x) != OLY_OK)
        return NULL;
    for (int k = 0; k < 3; k++)
        y = k ? oly_add(y, x[k]) : x[0];
    return y;
}

static oly_array try_numbers(int64_t n)
{
    oly_array key = oly_random_key(7);
    return answer(oly_random_permutation_of(key, oly_random_normal(oly_random_fold_in(key, 3), OLY_FLOAT32, n), 0), n);
}

#define PROGRAM(name, least)                                                                                           \
    static void memory_for_##name(void **state)                                                                        \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        sweep(try_##name, least);                                                                                      \
    }
PROGRAM(host, 1)
PROGRAM(put, 30)
PROGRAM(callback, 6)
PROGRAM(processes, 6)
PROGRAM(operations, 150)
PROGRAM(function, 60)
PROGRAM(gradient, 500)
PROGRAM(batch, 500)
PROGRAM(devices, 500)
PROGRAM(scan, 300)
PROGRAM(orders, 300)
PROGRAM(fields, 300)
PROGRAM(choice, 500)
PROGRAM(explicit, 300)
PROGRAM(windows, 100)
PROGRAM(region, 800)
PROGRAM(many, 300)
PROGRAM(numbers, 100)

#define STARTED(name) cmocka_unit_test_setup_teardown(memory_for_##name, check_start, check_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STARTED(host),    STARTED(put),  STARTED(operations), STARTED(function), STARTED(gradient),  STARTED(batch),
        STARTED(devices), STARTED(scan), STARTED(orders),     STARTED(fields),   STARTED(choice),    STARTED(explicit),
        STARTED(windows), STARTED(many), STARTED(numbers),    STARTED(callback), STARTED(processes), STARTED(region),
    };
    return CHECK_MAIN(tests);
}
