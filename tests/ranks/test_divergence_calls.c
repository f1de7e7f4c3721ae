/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=2,4,8 devices=8 timeout=300  More programs that differ between ranks: in parameters of operations, in
 * types of numbers, in the bodies of functions, loops, branches, maps and gradients, in per-process values, and in
 * decisions of a process. */
#include "check_divergence.h"
#include <complex.h>
#include <math.h>

/* Two axes over all devices, the first of size 2 if the number is even. */
static oly_mesh plane(bool turned)
{
    int n = oly_device_count(), few = n % 2 || n == 4 ? 1 : 2; /* the turned mesh differs */
    char axes[40];
    snprintf(axes, sizeof axes, "p=%d, q=%d", turned ? few : n / few, turned ? n / few : few);
    return oly_make_mesh(axes);
}

/* -- parameters of operations -------------------------------------------------------------------------------------- */

static oly_array complex_of(oly_array x)
{
    return oly_complex(x, 1);
}
DIFFERENT(imaginary_part, oly_real(oly_mul(complex_of(s->x), 1 + 2.0 * I)),
          oly_real(oly_mul(complex_of(s->x), 1 + 3.0 * I)))
DIFFERENT(conjugate, oly_conj(complex_of(s->x)), oly_neg(complex_of(s->x)))
DIFFERENT(real_part, oly_real(complex_of(s->x)), oly_imag(complex_of(s->x)))
DIFFERENT(index_mode, oly_take(s->x, 1000, 0, "clip"), oly_take(s->x, 1000, 0, "wrap"))
DIFFERENT(update_mode, oly_at_set(s->v, OLY_INDEXES(1000), 1, .mode = "clip"),
          oly_at_set(s->v, OLY_INDEXES(1000), 1, .mode = "drop"))
DIFFERENT(update_kind, oly_at_add(s->v, OLY_INDEXES(1), 2), oly_at_mul(s->v, OLY_INDEXES(1), 2))
DIFFERENT(update_index, oly_at_max(s->v, OLY_INDEXES(1), 9), oly_at_max(s->v, OLY_INDEXES(2), 9))
DIFFERENT(sort_order, oly_sort(s->x, 1, .descending = true), oly_sort(s->x, 1))
DIFFERENT(running_end, oly_cumsum(s->v, 0, .reverse = true), oly_cumsum(s->v, 0))
DIFFERENT(running_kind, oly_cumprod(s->x, 1), oly_cumlogsumexp(s->x, 1))
DIFFERENT(search_side, oly_searchsorted(s->v, 3.0, "left"), oly_searchsorted(s->v, 3.0, "right"))
DIFFERENT(degrees_of_freedom, oly_var(s->x, .ddof = 1), oly_var(s->x))
DIFFERENT(decimals, oly_round_to(s->x, 1), oly_round_to(s->x, 2))
DIFFERENT(whole_power, oly_integer_pow(s->x, 2), oly_integer_pow(s->x, 4))
DIFFERENT(bits_as, oly_bitcast_convert_type(s->x, OLY_INT32), oly_bitcast_convert_type(s->x, OLY_UINT32))
DIFFERENT(class_axis, oly_one_hot(s->v, 4, OLY_FLOAT32, 0), oly_one_hot(s->v, 4, OLY_FLOAT32, 1))
DIFFERENT(softmax_axis, oly_softmax(s->x, 0), oly_softmax(s->x, 1))
DIFFERENT(einsum_letters, oly_einsum("ij,ij->i", s->x, s->y), oly_einsum("ij,ij->j", s->x, s->y))
DIFFERENT(contracting, oly_dot_general(s->x, s->y, .contracting = "0; 0"),
          oly_dot_general(s->x, s->y, .contracting = "1; 1"))
DIFFERENT(product_type, oly_matmul(s->x, s->y, .preferred_element_type = OLY_FLOAT64), oly_matmul(s->x, s->y))
DIFFERENT(continued, oly_pad_mode(s->v, "edge", ((int64_t[]){1}), ((int64_t[]){1})),
          oly_pad_mode(s->v, "wrap", ((int64_t[]){1}), ((int64_t[]){1})))
DIFFERENT(window_kind, oly_reduce_window(s->x, "max", .window = "2, 2"),
          oly_reduce_window(s->x, "sum", .window = "2, 2"))
DIFFERENT(window_steps, oly_max_pool(s->x, .window = "2, 2", .strides = "2, 1"),
          oly_max_pool(s->x, .window = "2, 2", .strides = "1, 2"))
DIFFERENT(convolution_mode, oly_convolve(s->v, oly_slice(s->v, ":3"), "same"),
          oly_correlate(s->v, oly_slice(s->v, ":3"), "same"))
DIFFERENT(which_case, oly_select_n(1, 2, ((oly_array[]){s->x, s->y})), oly_select_n(1, 2, ((oly_array[]){s->y, s->x})))
DIFFERENT(difference_times, oly_diff(s->v, 1, 0), oly_diff(s->v, 2, 0))
DIFFERENT(diagonal_sum, oly_trace_of(s->x, 0, 0, 1), oly_trace_of(s->x, 1, 0, 1))
DIFFERENT(not_a_number, oly_add(s->x, NAN), oly_add(s->x, INFINITY))
DIFFERENT(line_or_axes, oly_roll_axes(s->x, 1, ((int64_t[]){1}), NULL),
          oly_roll_axes(s->x, 1, ((int64_t[]){1}), ((int[]){1})))
DIFFERENT(kept, oly_argmax(s->x, .axes = "1"), oly_argmax(s->x, .axes = "0"))

/* -- types of numbers ------------------------------------------------------------------------------------------------------ */

DIFFERENT(whole_or_real, oly_add(oly_astype(s->x, OLY_INT32), 1), oly_add(oly_astype(s->x, OLY_INT32), 1.0))
DIFFERENT(truth_or_number, oly_add(oly_gt(s->x, 3), (bool)1), oly_add(oly_gt(s->x, 3), 1))
DIFFERENT(halves, oly_astype(oly_astype(s->x, OLY_FLOAT16), OLY_FLOAT32),
          oly_astype(oly_astype(s->x, OLY_BFLOAT16), OLY_FLOAT32))
DIFFERENT(bool_conversion, oly_astype(complex_of(s->x), OLY_BOOL), oly_convert_element_type(complex_of(s->x), OLY_BOOL))

static oly_array wide_types(const setting *s)
{
    oly_enable_x64(s->odd);
    oly_array y = AT(oly_sum(oly_gt(s->x, 3), OLY_AXES(0)));
    oly_enable_x64(false);
    return y;
}

static oly_array literal_type(const setting *s)
{
    oly_array half = s->odd ? oly_full(0.5, OLY_FLOAT32) : oly_full(0.5, OLY_BFLOAT16);
    return AT(oly_mul(s->x, half));
}

/* -- functions --------------------------------------------------------------------------------------------------------------- */

static void sum_and_difference(const oly_array *in, oly_array *out, void *user)
{
    int k = user ? *(const int *)user : 0;
    out[k] = oly_add(in[0], in[1]);
    out[1 - k] = oly_sub(in[0], in[1]);
}
static oly_array order_of_results(const setting *s)
{
    int k = s->odd;
    oly_array p = NULL, q = NULL;
    AT(oly_call(oly_jit(sum_and_difference, 2, 2, .user = &k), OLY_IN(s->x, s->y), OLY_OUT(p, q)));
    return p;
}
static oly_array result_taken(const setting *s)
{
    oly_array p = NULL, q = NULL;
    oly_call(oly_jit(sum_and_difference, 2, 2), OLY_IN(s->x, s->y), OLY_OUT(p, q));
    return AT(oly_neg(s->odd ? p : q));
}
static oly_array results_in_variables(const setting *s)
{
    oly_array p = NULL, q = NULL, *first = s->odd ? &p : &q, *second = s->odd ? &q : &p;
    oly_call_n(oly_jit(sum_and_difference, 2, 2), 2, (oly_array[]){s->x, s->y}, 2, (oly_array *const[]){first, second});
    return AT(oly_neg(p));
}

static void inner(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(in[0], *(const int *)user);
}
static void outer(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sin(oly_apply((oly_fn)user, in[0]));
}
static oly_array function_inside(const setting *s)
{
    int two = 2, three = 3;
    oly_fn f = oly_jit(inner, 1, 1, .user = &two), g = oly_jit(inner, 1, 1, .user = &three);
    return AT(oly_apply(oly_jit(outer, 1, 1, .user = s->odd ? f : g), s->x));
}
static oly_array placed_result(const setting *s)
{
    int two = 2;
    oly_fn f = oly_jit(inner, 1, 1, .user = &two, .out_shardings = (oly_sharding[]){s->columns});
    oly_fn g = oly_jit(inner, 1, 1, .user = &two);
    return AT(oly_apply(s->odd ? f : g, s->x));
}
static oly_array placed_argument(const setting *s)
{
    int two = 2;
    oly_array own = oly_reshape(oly_arange(s->n * s->n, OLY_FLOAT32), s->n, s->n);
    oly_fn f = oly_jit(inner, 1, 1, .user = &two, .in_shardings = (oly_sharding[]){s->odd ? s->rows : s->columns});
    return AT(oly_apply(f, own));
}
static oly_array a_function_more(const setting *s)
{
    int two = 2;
    oly_fn f = oly_jit(inner, 1, 1, .user = &two);
    oly_array y = s->x;
    line = other = __LINE__ + 2;
    for (int k = 0; k < (s->odd ? 3 : 4); k++)
        oly_call(f, OLY_IN(y), OLY_OUT(y));
    other = line = 0; /* the first difference is another call */
    return y;
}

/* -- gradients --------------------------------------------------------------------------------------------------------------- */

static void product(const oly_array *in, oly_array *out, void *user)
{
    oly_array a = user && *(const bool *)user ? oly_stop_gradient(in[0]) : in[0];
    out[0] = oly_sum(oly_mul(oly_mul(a, in[0]), in[1]));
}
static oly_array gradient_by(const setting *s)
{
    oly_fn f = oly_jit(product, 2, 1);
    return AT(oly_apply(s->odd ? oly_grad(f, OLY_ARGNUMS(0)) : oly_grad(f, OLY_ARGNUMS(1)), s->x, s->y));
}
static oly_array gradient_stops(const setting *s)
{
    bool stop = s->odd;
    return AT(oly_apply(oly_grad(oly_jit(product, 2, 1, .user = &stop)), s->x, s->y));
}
static oly_array cotangent(const setting *s)
{
    int two = 2;
    oly_array y = NULL, g = NULL;
    oly_fn back = oly_vjp(oly_jit(inner, 1, 1, .user = &two));
    AT(oly_call(back, OLY_IN(s->x, s->odd ? s->x : s->y), OLY_OUT(y, g)));
    return g;
}
static void turned(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_roll(in[0], 1, 0);
}
static oly_array forwards_or_back(const setting *s)
{
    oly_array y = NULL, g = NULL;
    oly_fn f = oly_jit(turned, 1, 1);
    AT(oly_call(s->odd ? oly_vjp(f) : oly_jvp(f), OLY_IN(s->x, s->y), OLY_OUT(y, g)));
    return oly_add(y, g);
}

/* -- loops and branches ------------------------------------------------------------------------------------------------------ */

static void add_counter(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], i);
}
static oly_array loop_range(const setting *s)
{
    oly_array u = s->x;
    AT(oly_fori(s->odd ? 0 : 1, s->odd ? 3 : 4, add_counter, 1, &u, NULL));
    return u;
}
static void add_array(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(oly_mul(carry[0], 0.5), (oly_array)user);
}
static oly_array loop_captures(const setting *s)
{
    oly_array u = s->x;
    AT(oly_fori(0, 3, add_array, 1, &u, (void *)(s->odd ? s->x : s->y)));
    return u;
}
static oly_array loop_of_own_values(const setting *s)
{
    oly_array own = oly_full(s->odd ? 1 : 2, OLY_FLOAT32, s->n), u = s->x;
    AT(oly_fori(0, 3, add_array, 1, &u, own));
    return u;
}
static oly_array loop_from_own_values(const setting *s)
{
    oly_array u = oly_full(s->odd ? 1 : 2, OLY_FLOAT32, s->n, s->n);
    AT(oly_fori(0, 3, add_array, 1, &u, s->x));
    return u;
}
static void swap_two(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    oly_array a = carry[0];
    carry[0] = *(const bool *)user ? carry[1] : oly_mul(carry[1], 1);
    carry[1] = *(const bool *)user ? a : oly_add(a, 1);
}
static oly_array loop_swaps(const setting *s)
{
    oly_array u[] = {s->x, s->y};
    bool plain = s->odd;
    AT(oly_fori(0, 3, swap_two, 2, u, &plain));
    return u[0];
}
static oly_array order_of_carries(const setting *s)
{
    oly_array u[] = {s->odd ? s->x : s->y, s->odd ? s->y : s->x};
    bool plain = true;
    AT(oly_fori(0, 2, swap_two, 2, u, &plain));
    return u[0];
}
static oly_array is_small(const oly_array *carry, void *user)
{
    oly_array largest = oly_max(carry[0]);
    return *(const bool *)user ? oly_lt(largest, 1000) : oly_le(largest, 1000);
}
static void double_it(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
}
static oly_array while_compares(const setting *s)
{
    bool strictly = s->odd;
    oly_array u = oly_add(s->x, 1);
    AT(oly_while(is_small, double_it, 1, &u, &strictly));
    return u;
}
static void scan_two(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    int k = *(const int *)user;
    carry[0] = oly_add(carry[0], x[0]);
    y[k] = carry[0];
    y[1 - k] = oly_neg(x[0]);
}
static oly_array scan_results(const setting *s)
{
    oly_array xs = oly_device_put(s->x, s->columns), carry = s->v, ys[2] = {NULL, NULL};
    int k = s->odd;
    AT(oly_scan(s->n, false, scan_two, 1, &carry, 1, &xs, 2, ys, &k));
    return ys[0];
}
static oly_array scan_of_own_values(const setting *s)
{
    oly_array xs = oly_full(s->odd ? 1 : 2, OLY_FLOAT32, 3, s->n), carry = s->v, ys[2] = {NULL, NULL};
    int k = 0;
    AT(oly_scan(3, false, scan_two, 1, &carry, 1, &xs, 2, ys, &k));
    return ys[0];
}
static void once(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 1.5);
}
static void negated(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_neg(in[0]);
}
static oly_array number_of_branches(const setting *s)
{
    oly_array y = NULL;
    AT(oly_switch(5, s->odd ? 2 : 3, (const oly_function[]){once, negated, once}, 1, &s->x, 1, &y, NULL));
    return y;
}
static oly_array branch_not_taken(const setting *s)
{
    oly_array y = NULL;
    AT(oly_cond(oly_gt(oly_max(s->x), 0), once, s->odd ? negated : once, 1, &s->x, 1, &y, NULL));
    return y;
}
static oly_array branch_by_part(const setting *s)
{
    oly_array y = NULL, first = NULL;
    OLY_FOR_EACH_SHARD(part, s->x)
    first = first ? first : part.data;
    double mine = oly_item(oly_max(first)), largest = (double)(s->n * s->n - 1);
    int last = mine == largest; /* as a program may decide for itself */
    line = other = 0;
    oly_fn f = oly_jit(once, 1, 1), g = oly_jit(negated, 1, 1);
    y = oly_apply(last ? f : g, s->x);
    if (oly_local_device_count() > 1)
        y = AT(oly_mul(y, s->odd ? 2 : 3));
    return y;
}

/* -- maps -------------------------------------------------------------------------------------------------------------------- */

typedef struct mapping {
    const char *axes;
    bool tiled;
    int a, b;
} mapping;
static void summed(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_psum(in[0], ((const mapping *)user)->axes);
}
static oly_array map_axis(const setting *s)
{
    mapping m = {.axes = s->odd ? "p" : "q"};
    oly_array y = NULL;
    AT(oly_shard_map_with(summed, &m, plane(false), OLY_MANUAL(.unchecked = true), OLY_IN(s->x), OLY_SPECS("p, q"),
                          OLY_OUT(y), OLY_SPECS("p, q")));
    return y;
}
static void gathered(const oly_array *in, oly_array *out, void *user)
{
    const mapping *m = user;
    out[0] = oly_sum(oly_all_gather(in[0], m->axes, .axis = m->a, .tiled = true), OLY_AXES(0), .keepdims = true);
}
static oly_array map_gathers(const setting *s)
{
    mapping m = {.axes = "i", .a = s->odd};
    oly_array y = NULL;
    AT(oly_shard_map(gathered, &m, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS("i")));
    return y;
}
static void exchanged(const oly_array *in, oly_array *out, void *user)
{
    const mapping *m = user;
    out[0] = oly_all_to_all(oly_reshape(in[0], oly_axis_size("i"), -1), "i", 0, m->a, true);
}
static oly_array map_exchanges(const setting *s)
{
    mapping m = {.a = s->odd};
    oly_array y = NULL;
    AT(oly_shard_map(exchanged, &m, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS("i")));
    return y;
}
static void scattered(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_psum_scatter(in[0], "i", .axis = 1, .tiled = true);
}
static void cut(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_dynamic_slice(in[0], OLY_INDEXES(0, oly_mul(oly_axis_index("i"), 2)), OLY_EXTENTS(2, 2));
}
static oly_array map_scatters(const setting *s)
{
    oly_array y = NULL;
    AT(oly_shard_map(s->odd ? scattered : cut, NULL, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y),
                     OLY_SPECS("i")));
    return y;
}
static oly_array map_results(const setting *s)
{
    oly_array y = NULL;
    AT(oly_shard_map(once, NULL, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y),
                     s->odd ? OLY_SPECS("None, i") : OLY_SPECS("i")));
    return y;
}
static void add_captured(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_add(in[0], (oly_array)user);
}
static oly_array map_of_own_values(const setting *s)
{
    oly_array y = NULL, own = oly_full(s->odd ? 1 : 2, OLY_FLOAT32, s->n);
    AT(oly_shard_map(add_captured, own, s->mesh, OLY_IN(s->x), OLY_SPECS("i"), OLY_OUT(y), OLY_SPECS("i")));
    return y;
}
static oly_array map_mesh(const setting *s)
{
    oly_array y = NULL;
    mapping m = {.axes = "p"};
    AT(oly_shard_map(summed, &m, plane(s->odd), OLY_IN(s->x), OLY_SPECS("p, q"), OLY_OUT(y), OLY_SPECS("None, q")));
    return y;
}
static oly_array batch_axis(const setting *s)
{
    oly_array y = NULL;
    AT(oly_vmap(negated, NULL, OLY_IN(s->x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(s->odd)));
    return y;
}
static void less_mean(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sub(in[0], *(const bool *)user ? oly_mean(in[0]) : oly_pmean(in[0], "b"));
}
static oly_array batch_sum(const setting *s)
{
    oly_array y = NULL;
    bool own = s->odd;
    AT(oly_vmap_with(less_mean, &own, OLY_BATCH(.axis_name = "b"), OLY_IN(s->x), OLY_AXES_OF(0), OLY_OUT(y),
                     OLY_AXES_OF(0)));
    return y;
}

/* -- Explicit axes ----------------------------------------------------------------------------------------------------------- */

static oly_mesh explicit_mesh(const setting *s)
{
    return oly_mesh_with_types(s->mesh, (oly_axis_type[]){OLY_AXIS_EXPLICIT});
}
static oly_array reshard_to(const setting *s)
{
    oly_mesh m = explicit_mesh(s);
    oly_array a = oly_device_put(s->x, oly_named(m, "i"));
    return AT(oly_reshard(a, oly_named(m, s->odd ? "None, i" : "")));
}
static oly_array explicit_product(const setting *s)
{
    oly_mesh m = explicit_mesh(s);
    oly_array a = oly_device_put(s->x, oly_named(m, "None, i")), b = oly_device_put(s->y, oly_named(m, "i"));
    return AT(oly_matmul(a, b, .out_sharding = oly_named(m, s->odd ? "i" : "")));
}
static oly_array explicit_or_not(const setting *s)
{
    return AT(oly_device_put(s->x, s->odd ? oly_named(explicit_mesh(s), "None, i") : s->columns));
}
static oly_array left_region(const setting *s)
{
    oly_mesh m = explicit_mesh(s);
    oly_array y = NULL, a = oly_device_put(s->x, oly_named(m, "i"));
    AT(oly_auto_axes(once, NULL, OLY_IN(a), OLY_OUT(y), OLY_SHARDINGS(oly_named(m, s->odd ? "i" : "None, i"))));
    return y;
}

/* -- per-process values -------------------------------------------------------------------------------------------- */

static oly_array own_donated(const setting *s)
{
    int two = 2, three = 3;
    oly_array own = oly_arange(s->n, OLY_FLOAT32);
    oly_array y = oly_add(s->x, own); /* the contents have been compared, and are equal */
    oly_call(oly_jit(inner, 1, 1, .user = s->odd ? &two : &three), OLY_IN(own),
             OLY_OUT(own)); /* overwritten in place */
    return AT(oly_add(y, own));
}
static oly_array own_not_a_number(const setting *s)
{
    float mine[] = {0, s->odd ? NAN : 0};
    oly_array own = oly_sum(oly_from_host(mine, OLY_FLOAT32, 1, (int64_t[]){2}));
    return AT(oly_add(s->x, own));
}
static oly_array own_minus_zero(const setting *s)
{
    oly_array own = oly_full(s->odd ? -0.0 : 0.0, OLY_FLOAT32);
    return AT(oly_mul(s->x, own));
}
static oly_array own_last_byte(const setting *s)
{
    int64_t n = 1 << 20;
    uint8_t *bytes = calloc((size_t)n, 1);
    bytes[n - 1] = s->odd;
    oly_array own = oly_from_host(bytes, OLY_UINT8, 1, &n);
    free(bytes);
    return AT(oly_add(oly_full_sharded(oly_operand_int(1), OLY_INT32, s->rows, 1, &n), own));
}
static oly_array own_three_bytes(const setting *s)
{
    bool mine[] = {true, false, s->odd};
    oly_array own = oly_from_host(mine, OLY_BOOL, 1, (int64_t[]){3});
    return AT(oly_add(oly_take(s->x, oly_arange(3, OLY_INT32), 1, NULL), own));
}
static oly_array own_rank_in_key(const setting *s)
{
    oly_array key = oly_random_fold_in(oly_random_key(1), (int)s->odd);
    return AT(oly_random_bits_sharded(key, OLY_UINT32, s->rows, s->n));
}
static oly_array own_start(const setting *s)
{
    oly_array at = oly_full(s->odd, OLY_INT32);
    return AT(oly_dynamic_update_slice(s->v, oly_full(7, OLY_FLOAT32, 2), OLY_INDEXES(at)));
}
static oly_array is_below(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[1], carry[2]);
}
static void count_up(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2);
    carry[1] = oly_add(carry[1], 1);
}
static oly_array own_bound(const setting *s)
{
    oly_array u[] = {s->x, oly_full(0, OLY_INT32), oly_full(s->odd ? 2 : 3, OLY_INT32)};
    AT(oly_while(is_below, count_up, 3, u, NULL));
    return u[0];
}
static oly_array own_updates(const setting *s)
{
    oly_array own = oly_full(s->odd, OLY_FLOAT32, s->n);
    return AT(oly_at_add(s->x, OLY_INDEXES(oly_arange(s->n, OLY_INT32)), own));
}
static oly_array own_on_part(const setting *s)
{
    oly_array own = oly_full(s->odd, OLY_FLOAT32, s->n, s->n);
    return AT(oly_add(s->a, own));
}
static oly_array own_put_on_part(const setting *s)
{
    oly_array own = oly_full(s->odd, OLY_FLOAT32, s->n, s->n);
    return AT(oly_device_put(own, s->part_rows));
}
static oly_array own_in_function(const setting *s)
{
    oly_array own = oly_full(s->odd, OLY_FLOAT32, s->n), y = NULL;
    oly_fn f = oly_jit(sum_and_difference, 2, 2);
    oly_array z = NULL;
    AT(oly_call(f, OLY_IN(s->x, own), OLY_OUT(y, z)));
    return z;
}
static oly_array own_condition(const setting *s)
{
    oly_array p = oly_full(s->odd, OLY_BOOL, s->n);
    return AT(oly_where(p, s->x, s->y));
}
static oly_array own_constrained(const setting *s)
{
    oly_array own = oly_full(s->odd, OLY_FLOAT32, s->n);
    return AT(oly_with_sharding_constraint(own, s->rows));
}
static oly_array own_shards(const setting *s)
{
    oly_array parts[8];
    int n = oly_local_device_count();
    int64_t extent = s->n, wide[] = {s->n, s->n};
    oly_dtype dtype = s->odd ? OLY_INT32 : OLY_FLOAT32;
    for (int k = 0; k < n && k < 8; k++)
        parts[k] = oly_device_put(oly_full(k, dtype, 2), oly_single_device(oly_local_device(k)));
    (void)wide;
    return AT(oly_from_shards(s->rows, dtype, 1, &extent, n, parts));
}
static oly_array own_shards_of(const setting *s)
{
    oly_array parts[8];
    int n = oly_local_device_count();
    int64_t extent[] = {s->n, 2};
    for (int k = 0; k < n && k < 8; k++)
        parts[k] = oly_device_put(oly_full(k, OLY_FLOAT32, 2, 2), oly_single_device(oly_local_device(k)));
    oly_array first = oly_from_shards(s->rows, OLY_FLOAT32, 2, extent, n, parts);
    oly_array second = oly_from_shards(s->rows, OLY_FLOAT32, 2, extent, n, parts);
    return AT(oly_neg(s->odd ? first : second));
}

/* -- places ------------------------------------------------------------------------------------------------------------------ */

static oly_array order_of_axes(const setting *s)
{
    return AT(oly_device_put(s->x, oly_named(plane(false), s->odd ? "(p,q)" : "(q,p)")));
}
static oly_array one_device(const setting *s)
{
    return AT(oly_device_put(s->x, oly_single_device(oly_get_device(s->odd ? 0 : 1))));
}
static oly_array array_on_a_device(const setting *s)
{
    oly_sharding first = oly_single_device(oly_get_device(0));
    oly_array a = oly_device_put(s->v, first), b = oly_neg(a);
    return AT(oly_device_put(s->odd ? a : b, s->rows));
}
static oly_array work_on_a_device(const setting *s)
{
    oly_sharding first = oly_single_device(oly_get_device(0));
    oly_array a = oly_device_put(s->v, first),
              b = oly_mul(a, s->odd ? 2 : 3); /* on all but the first rank: without shards */
    return AT(oly_device_put(b, s->rows));
}

/* -- decisions of a process ---------------------------------------------------------------------------------------- */

static oly_array steps_of_its_own(const setting *s)
{
    oly_array u = s->x;
    for (int k = 0; k < (s->odd ? 5 : 6); k++)
        u = oly_mul(u, 0.5);
    line = other = 0;
    return u;
}
static oly_array long_ago(const setting *s)
{
    oly_array u = AT(s->odd ? oly_add(s->x, 1) : oly_add(s->x, 2));
    for (int k = 0; k < 300; k++)
        OLY_SCOPE
        {
            oly_mul(u, 0.5);
        }
    return u;
}
static oly_array forgotten(const setting *s)
{
    oly_array u = s->odd ? oly_add(s->x, 1) : oly_add(s->x, 2);
    for (int k = 0; k < 700; k++)
        OLY_SCOPE
        {
            oly_mul(u, 0.5);
        }
    line = other = 0; /* not among those that are recorded */
    return u;
}
static oly_array sync_elsewhere(const setting *s)
{
    used_up = true;
    line = other = 0;
    AT(oly_sync(s->odd ? "before" : "after"));
    return NULL;
}
static oly_array picture_range(const setting *s)
{
    used_up = true;
    AT(oly_write_png("/dev/null/none.png", s->x, 0, s->odd ? 1 : 2));
    return NULL;
}
/* Calls of all ranks around checkpoints. */
static int save_none(const setting *s)
{
    return oly_save("/dev/null/none", OLY_NAMES("x"), OLY_IN(s->x));
}
static int restore_none(const setting *s)
{
    oly_array x = s->x;
    return oly_restore("/dev/null/none", OLY_NAMES("x"), OLY_OUT(x));
}
static oly_array save_or_restore(const setting *s)
{
    used_up = true;
    line = other = 0;
    s->odd ? save_none(s) : restore_none(s);
    return NULL;
}
static oly_array save_or_look(const setting *s)
{
    used_up = true;
    line = other = 0;
    s->odd ? save_none(s) : (int)oly_latest_step("/dev/null/none");
    return NULL;
}
static oly_array stop_or_restore(const setting *s)
{
    used_up = true;
    line = other = 0;
    s->odd ? (int)oly_should_stop() : restore_none(s);
    return NULL;
}
static oly_array look_or_stop(const setting *s)
{
    used_up = true;
    line = other = 0;
    s->odd ? (int)oly_latest_step("/dev/null/none") : (int)oly_should_stop();
    return NULL;
}
static oly_array save_of_one(const setting *s)
{
    used_up = true;
    line = other = 0;
    if (s->odd)
        save_none(s);
    return NULL;
}
static oly_array look_of_one(const setting *s)
{
    used_up = true;
    line = other = 0;
    if (s->odd)
        oly_latest_step("/dev/null/none");
    return NULL;
}
static oly_array value_of_one(const setting *s)
{
    line = __LINE__ + 3;
    other = 0;
    if (s->odd) {
        oly_array sum = oly_sum(s->x);
        handed_out = false;
        (void)sum;
    }
    return s->x;
}

static const difference differences[] = {
    D(imaginary_part),    D(conjugate),          D(real_part),
    D(index_mode),        D(update_mode),        D(update_kind),
    D(update_index),      D(sort_order),         D(running_end),
    D(running_kind),      D(search_side),        D(degrees_of_freedom),
    D(decimals),          D(whole_power),        D(bits_as),
    D(class_axis),        D(softmax_axis),       D(einsum_letters),
    D(contracting),       D(product_type),       D(continued),
    D(window_kind),       D(window_steps),       D(convolution_mode),
    D(which_case),        D(difference_times),   D(diagonal_sum),
    D(not_a_number),      D(line_or_axes),       D(kept),
    D(whole_or_real),     D(truth_or_number),    D(halves),
    D(bool_conversion),   D(wide_types),         D(literal_type),
    D(order_of_results),  D(result_taken),       D(results_in_variables),
    D(function_inside),   D(placed_result),      D(placed_argument),
    D(a_function_more),   D(gradient_by),        D(gradient_stops),
    D(cotangent),         D(forwards_or_back),   D(loop_range),
    D(loop_captures),     D(loop_of_own_values), D(loop_from_own_values),
    D(loop_swaps),        D(order_of_carries),   D(while_compares),
    D(scan_results),      D(scan_of_own_values), D(number_of_branches),
    D(branch_not_taken),  D(branch_by_part),     D(map_axis),
    D(map_gathers),       D(map_exchanges),      D(map_scatters),
    D(map_results),       D(map_of_own_values),  D(map_mesh),
    D(batch_axis),        D(batch_sum),          D(reshard_to),
    D(explicit_product),  D(explicit_or_not),    D(left_region),
    D(own_donated),       D(own_not_a_number),   D(own_minus_zero),
    D(own_last_byte),     D(own_three_bytes),    D(own_rank_in_key),
    D(own_start),         D(own_bound),          D(own_updates),
    D(own_on_part),       D(own_put_on_part),    D(own_in_function),
    D(own_condition),     D(own_constrained),    D(own_shards),
    D(own_shards_of),     D(order_of_axes),      D(one_device),
    D(array_on_a_device), D(work_on_a_device),   D(steps_of_its_own),
    D(long_ago),          D(forgotten),          D(sync_elsewhere),
    D(picture_range),     D(value_of_one),       D(save_or_restore),
    D(save_or_look),      D(stop_or_restore),    D(look_or_stop),
    D(save_of_one),       D(look_of_one),
};

REFUSED(differences)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(programs_that_differ_are_refused),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
