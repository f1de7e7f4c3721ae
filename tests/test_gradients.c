/* run: ranks=1,2 devices=8 timeout=300  Every operation's gradient against central differences, in float64, on whole and on
 * sharded operands; tangents and second derivatives by differences of gradients. The table of operations is walked: one
 * without a rule must be in a list here, one with a rule must have a sample. */
#include "check.h"
#include "array/trace.h"
#include "core/option.h"
#include "transform/rule.h"
#include <math.h>
#include <olympus.h>

enum { MOST_IN = 4, MOST_ELEMENTS = 256 };

/* A function of arrays that are filled with numbers between low and high, all different. */
typedef struct sample {
    const char *row; /* of ops.def */
    oly_array (*f)(const oly_array *x);
    int n_in;
    struct {
        int rank;
        int64_t shape[OLY_MAX_RANK];
    } in[MOST_IN];
    double low, high;
} sample;

#define M43                                                                                                            \
    {                                                                                                                  \
        2,                                                                                                             \
        {                                                                                                              \
            4, 3                                                                                                       \
        }                                                                                                              \
    }
#define UNARY_SAMPLE(row)                                                                                              \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return oly_##row(x[0]);                                                                                        \
    }
#define BINARY_SAMPLE(row, function)                                                                                   \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return function(x[0], x[1]);                                                                                   \
    }

UNARY_SAMPLE(neg)
UNARY_SAMPLE(abs)
UNARY_SAMPLE(exp)
UNARY_SAMPLE(log)
UNARY_SAMPLE(sqrt)
UNARY_SAMPLE(sin)
UNARY_SAMPLE(cos)
UNARY_SAMPLE(tanh)
UNARY_SAMPLE(sigmoid)
UNARY_SAMPLE(relu)
BINARY_SAMPLE(add, oly_add)
BINARY_SAMPLE(sub, oly_sub)
BINARY_SAMPLE(mul, oly_mul)
BINARY_SAMPLE(div, oly_div)
BINARY_SAMPLE(pow, oly_pow)
BINARY_SAMPLE(max, oly_max2)
BINARY_SAMPLE(min, oly_min2)
BINARY_SAMPLE(dot, oly_matmul)

static oly_array select_of(const oly_array *x)
{
    return oly_where(oly_gt(x[0], 0.5), oly_mul(x[0], x[1]), oly_sin(x[1]));
}

static oly_array convert_of(const oly_array *x)
{
    return oly_mul(oly_astype(oly_astype(oly_sin(x[0]), OLY_COMPLEX128), OLY_FLOAT64), x[0]);
}

static oly_array complex_of(const oly_array *x)
{
    oly_array z = oly_complex(oly_sin(x[0]), x[1]), w = oly_mul(oly_exp(oly_conj(z)), z);
    return oly_add(oly_mul(oly_real(w), oly_imag(oly_mul(z, z))), oly_abs(w));
}

static oly_array broadcast_of(const oly_array *x)
{
    return oly_mul(oly_broadcast_to(x[0], 2, 4, 3), x[1]);
}

static oly_array reduce_sum_of(const oly_array *x)
{
    return oly_sum(oly_sin(x[0]), .axes = "0");
}

static oly_array reduce_prod_of(const oly_array *x)
{
    return oly_prod(x[0], .axes = "0,2");
}

static oly_array reduce_max_of(const oly_array *x)
{
    return oly_mul(oly_max(oly_sin(x[0]), .axes = "1"), oly_max(x[0]));
}

static oly_array reduce_min_of(const oly_array *x)
{
    return oly_min(oly_mul(x[0], x[0]), .axes = "0");
}

static oly_array reshape_of(const oly_array *x)
{
    return oly_sin(oly_reshape(oly_mul(x[0], x[0]), 2, 6));
}

static oly_array transpose_of(const oly_array *x)
{
    return oly_mul(oly_transpose(oly_sin(x[0])), x[1]);
}

static oly_array slice_of(const oly_array *x)
{
    return oly_mul(oly_slice(x[0], "1:, ::2"), oly_slice(x[0], ":-1, 0:2"));
}

static oly_array update_of(const oly_array *x)
{
    return oly_update(oly_sin(x[0]), "1:3, :2", oly_mul(x[1], x[1]));
}

static oly_array concatenate_of(const oly_array *x)
{
    return oly_sin(oly_concatenate(0, x[0], oly_mul(x[1], x[1]), x[0]));
}

static oly_array pad_of(const oly_array *x)
{
    static const int64_t low[] = {1, -1}, high[] = {-2, 2}, between[] = {1, 0};
    return oly_pad(oly_sin(x[0]), oly_mul(x[1], x[1]), low, high, between);
}

static oly_array rev_of(const oly_array *x)
{
    return oly_mul(oly_rev(oly_sin(x[0]), 0), x[0]);
}

/* -- by value, and along a dimension ------ */
static oly_array sort_of(const oly_array *x)
{
    return oly_mul(oly_sort(oly_sin(x[0]), 0), oly_sort(x[0], 1, .descending = true));
}

#define ALONG_SAMPLE(row)                                                                                              \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        return oly_mul(oly_##row(oly_sin(x[0]), 0), oly_##row(x[0], 1, .reverse = true));                              \
    }
ALONG_SAMPLE(cumsum)
ALONG_SAMPLE(cumprod)
ALONG_SAMPLE(cummax)
ALONG_SAMPLE(cummin)
ALONG_SAMPLE(cumlogsumexp)

/* Row numbers: one twice, one outside. */
static oly_array rows(void)
{
    return oly_from_host((int32_t[]){2, 0, 2, 7}, OLY_INT32, 1, (int64_t[]){4});
}

static oly_array gather_of(const oly_array *x)
{
    return oly_mul(oly_take(oly_sin(x[0]), rows(), 0, "clip"), oly_take(x[0], rows(), 0, "wrap"));
}

#define SCATTER_SAMPLE(row, function)                                                                                  \
    static oly_array row##_of(const oly_array *x)                                                                      \
    {                                                                                                                  \
        oly_array index = rows();                                                                                      \
        return oly_mul(function(oly_sin(x[0]), OLY_INDEXES(index), oly_mul(x[1], x[1]), .mode = "drop"), x[0]);        \
    }
SCATTER_SAMPLE(scatter, oly_at_set)
SCATTER_SAMPLE(scatter_add, oly_at_add)
SCATTER_SAMPLE(scatter_min, oly_at_min)
SCATTER_SAMPLE(scatter_max, oly_at_max)

static oly_array scatter_mul_of(const oly_array *x)
{
    oly_array index = rows();
    return oly_at_mul(oly_sin(x[0]), OLY_INDEXES(index), oly_stop_gradient(oly_full(1.5, OLY_FLOAT64, 4, 3)),
                      .mode = "drop");
}

/* Starts that are values, one too large. */
static const oly_operand *starts(void)
{
    static oly_operand two[2];
    two[0] = oly_operand_array(oly_add(oly_from_host((int32_t[]){1}, OLY_INT32, 0, NULL), 0));
    two[1] = oly_operand_array(oly_add(oly_from_host((int32_t[]){9}, OLY_INT32, 0, NULL), 0));
    return two;
}

static oly_array dynamic_slice_of(const oly_array *x)
{
    return oly_sin(oly_dynamic_slice(oly_mul(x[0], x[0]), 2, starts(), 2, (int64_t[]){2, 2}));
}

static oly_array dynamic_update_slice_of(const oly_array *x)
{
    return oly_sin(oly_dynamic_update_slice(oly_mul(x[0], x[0]), oly_sin(x[1]), 2, starts()));
}

/* -- loops and branches --------- */
static void growing_sum(oly_array i, oly_array *carry, void *user)
{
    (void)i;
    carry[0] = oly_add(carry[0], oly_mul(carry[1], *(oly_array *)user));
    carry[1] = oly_sin(oly_mul(carry[1], 1.1));
}

/* Carries that need each other, one of them whole numbers, the counter, captures, a loop in the loop. */
static void busy(oly_array i, oly_array *carry, void *user)
{
    oly_array *outside = user, t = oly_mul(oly_add(oly_astype(i, OLY_FLOAT64), 1.0), 0.1), inner[2];
    inner[0] = oly_mul(carry[1], 0.5);
    inner[1] = oly_mul(carry[0], t);
    oly_fori(1, 4, growing_sum, 2, inner, &outside[1]);
    carry[0] = oly_add(oly_mul(carry[0], outside[0]), oly_sin(inner[0]));
    carry[1] = oly_mul(carry[1], oly_add(oly_astype(carry[2], OLY_FLOAT64), 0.25));
    carry[2] = oly_sub(1, carry[2]);
}

static oly_array loop_of(const oly_array *x)
{
    oly_array outside[] = {oly_cos(x[1]), oly_mul(x[0], 0.3)};
    oly_array carry[] = {oly_sin(x[0]), oly_mul(x[0], x[0]), oly_scalar(1, OLY_INT32)};
    oly_fori(-2, 8, busy, 3, carry, outside);
    return oly_add(carry[0], oly_mul(carry[1], 0.3));
}

static void first_side(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(oly_sin(in[0]), *(oly_array *)user);
    out[1] = in[1];
}

static void second_side(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], in[0]);
    out[1] = oly_mul(in[1], in[0]);
}

static oly_array branch_of(const oly_array *x)
{
    oly_array both[] = {x[0], oly_exp(x[1])}, out[2], outside = oly_mul(x[1], 2.0);
    oly_array which = oly_gt(oly_sum(x[0]), 0.0), other[2];
    oly_cond(which, first_side, second_side, 2, both, 2, out, &outside);
    oly_cond(oly_logical_not(which), first_side, second_side, 2, both, 2, other, &outside);
    return oly_add(oly_add(out[0], out[1]), oly_mul(other[0], other[1]));
}

static oly_mesh grid(void)
{
    return oly_make_mesh("x=4, y=2");
}

static oly_array place_of(const oly_array *x)
{
    return oly_sin(oly_with_sharding_constraint(oly_mul(x[0], x[0]), oly_named(grid(), "y, x")));
}

static oly_array reshard_of(const oly_array *x)
{
    oly_mesh mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    oly_array y = oly_sin(oly_reshard(oly_mul(x[0], x[0]), oly_named(mesh, "x")));
    return oly_with_sharding_constraint(oly_reshard(y, oly_named(mesh, "y")), oly_named(mesh, "y"));
}

/* A device's part of a loss: x (8 elements, 2 here) differs along "x", w (2 elements) is the same everywhere. */
static oly_array device_loss(oly_array x, oly_array w)
{
    oly_array here = oly_astype(oly_axis_index("x"), OLY_FLOAT64), sum = oly_psum(oly_sum(oly_sin(x)), "x");
    oly_array all = oly_all_gather(x, "x", .tiled = true), same = oly_all_gather(oly_mul(x, x), "x", .invariant = true);
    oly_array scattered = oly_psum_scatter(oly_mul(all, oly_mul(all, here)), "x", .tiled = true);
    oly_array sent = oly_ppermute(oly_mul(x, w), "x", OLY_PAIRS({0, 1}, {1, 3}, {2, 0}));
    oly_array turned = oly_all_to_all(oly_mul(oly_reshape(all, 4, 2), oly_reshape(x, 1, 2)), "x", 0, 0, false);
    oly_array local = oly_add(oly_sum(oly_mul(scattered, x)), oly_sum(oly_mul(sent, oly_sin(x))));
    local = oly_add(local, oly_mul(here, oly_sum(oly_mul(turned, turned))));
    local = oly_mul(oly_add(local, oly_sum(oly_mul(w, x))), oly_add(sum, 1.0));
    return oly_add(oly_psum(local, "x"), oly_mul(sum, oly_sum(oly_mul(same, oly_sum(w)))));
}

static void loss_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = device_loss(in[0], in[1]);
}

static void gradient_of_loss_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_gradients(device_loss(in[0], in[1]), OLY_IN(in[0], in[1]), OLY_OUT(out[0], out[1]));
}

static const char *const specs[] = {"x", ""};

static oly_array permute_of(const oly_array *x)
{
    oly_array y = NULL;
    oly_shard_map(loss_inside, NULL, grid(), 2, x, specs, OLY_OUT(y), specs + 1);
    return y;
}

static void mapped_loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = permute_of(in);
}

static void mapped_gradient(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array *wanted[] = {&out[0], &out[1]};
    oly_shard_map(gradient_of_loss_inside, NULL, grid(), 2, in, specs, 2, wanted, specs);
}

static const sample samples[] = {
    {"neg", neg_of, 1, {M43}, -1, 1},
    {"abs", abs_of, 1, {M43}, -1.03, 1},
    {"exp", exp_of, 1, {M43}, -1, 1},
    {"log", log_of, 1, {M43}, 0.2, 3},
    {"sqrt", sqrt_of, 1, {M43}, 0.2, 3},
    {"sin", sin_of, 1, {M43}, -3, 3},
    {"cos", cos_of, 1, {M43}, -3, 3},
    {"tanh", tanh_of, 1, {M43}, -2, 2},
    {"sigmoid", sigmoid_of, 1, {M43}, -2, 2},
    {"select", relu_of, 1, {M43}, -1.03, 1},
    {"add", add_of, 2, {M43, M43}, -1, 1},
    {"sub", sub_of, 2, {M43, {1, {3}}}, -1, 1},
    {"mul", mul_of, 2, {M43, {2, {4, 1}}}, -1, 1},
    {"div", div_of, 2, {M43, {1, {1}}}, 0.3, 1},
    {"pow", pow_of, 2, {M43, {0}}, 0.3, 2},
    {"max", max_of, 2, {M43, {2, {4, 1}}}, -1, 1},
    {"min", min_of, 2, {M43, M43}, -1, 1},
    {"select", select_of, 2, {M43, M43}, 0.03, 1},
    {"convert", convert_of, 1, {M43}, -1, 1},
    {"complex", complex_of, 2, {M43, {2, {4, 1}}}, 0.2, 1},
    {"conj", complex_of, 2, {M43, M43}, -1, 1},
    {"real", complex_of, 2, {M43, M43}, -1, 1},
    {"imag", complex_of, 2, {M43, M43}, -1, 1},
    {"broadcast", broadcast_of, 2, {{2, {4, 1}}, M43}, -1, 1},
    {"reduce_sum", reduce_sum_of, 1, {M43}, -1, 1},
    {"reduce_prod", reduce_prod_of, 1, {{3, {4, 3, 2}}}, 0.5, 1.5},
    {"reduce_max", reduce_max_of, 1, {M43}, -1, 1},
    {"reduce_min", reduce_min_of, 1, {M43}, 0, 1},
    {"dot", dot_of, 2, {M43, {2, {3, 5}}}, -1, 1},
    {"reshape", reshape_of, 1, {M43}, -1, 1},
    {"transpose", transpose_of, 2, {M43, {2, {3, 4}}}, -1, 1},
    {"slice", slice_of, 1, {M43}, -1, 1},
    {"update", update_of, 2, {M43, {2, {2, 1}}}, -1, 1},
    {"concatenate", concatenate_of, 2, {M43, M43}, -1, 1},
    {"pad", pad_of, 2, {M43, {0}}, -1, 1},
    {"rev", rev_of, 1, {M43}, -1, 1},
    {"sort", sort_of, 1, {M43}, -1, 1},
    {"cumsum", cumsum_of, 1, {M43}, -1, 1},
    {"cumprod", cumprod_of, 1, {{2, {5, 7}}}, -1.1, 1},
    {"cummax", cummax_of, 1, {{2, {5, 7}}}, -1, 1},
    {"cummin", cummin_of, 1, {{2, {5, 7}}}, -1, 1},
    {"cumlogsumexp", cumlogsumexp_of, 1, {{2, {5, 7}}}, -1, 1},
    {"gather", gather_of, 1, {M43}, -1, 1},
    {"scatter", scatter_of, 2, {M43, M43}, -1, 1},
    {"scatter_add", scatter_add_of, 2, {M43, M43}, -1, 1},
    {"scatter_mul", scatter_mul_of, 1, {M43}, -1, 1},
    {"scatter_min", scatter_min_of, 2, {M43, M43}, 0, 1},
    {"scatter_max", scatter_max_of, 2, {M43, M43}, 0, 1},
    {"dynamic_slice", dynamic_slice_of, 1, {M43}, -1, 1},
    {"dynamic_update_slice", dynamic_update_slice_of, 2, {M43, {2, {2, 2}}}, -1, 1},
    {"loop", loop_of, 2, {M43, M43}, -1, 1},
    {"branch", branch_of, 2, {M43, M43}, -1, 1},
    {"permute", permute_of, 2, {{1, {8}}, {1, {2}}}, -1, 1},
    {"place", place_of, 1, {M43}, -1, 1},
};

/* Rows without a derivative, and why. */
static const char *const not_differentiable[] = {
    "loop",             /* to come */
    "branch", "pmax",   /* as in JAX; stop the gradient before */
    "pmin",   "result", /* its loop answers for it */
};

/* -- the function and its numbers ------------------------------------------------------------------------------------ */

/* The sum of all results, each with another weight, so that no element's cotangent is like another's. */
static void loss(const oly_array *in, oly_array *out, void *user)
{
    const sample *s = user;
    oly_array y = s->f(in);
    oly_array weights = oly_add(oly_cos(oly_mul(oly_arange(oly_size(y), OLY_FLOAT64), 1.7)), 0.3);
    out[0] = oly_sum(oly_mul(oly_reshape(y, -1), weights));
}

static int64_t elements(const sample *s, int k)
{
    int64_t n = 1;
    for (int d = 0; d < s->in[k].rank; d++)
        n *= s->in[k].shape[d];
    return n;
}

static void fill(const sample *s, int k, double *values)
{
    int64_t n = elements(s, k);
    for (int64_t i = 0; i < n; i++) {
        double t = fmod((double)(i + 1) * 0.6180339887498949 + 0.317 * (k + 1), 1);
        values[i] = s->low + t * (s->high - s->low);
    }
}

/* How operand k is split; 0: whole. */
static oly_array put(const sample *s, int k, const double *values, int way)
{
    static const char *const split[2][MOST_IN] = {{"x, y", "y", "x", "y"}, {"y", "None, x", "None", "x"}};
    oly_array x = oly_from_host(values, OLY_FLOAT64, s->in[k].rank, s->in[k].shape);
    if (way == 0 || s->in[k].rank == 0)
        return x;
    return oly_device_put(x, oly_named(grid(), s->in[k].rank == 1 ? (k % 2 ? "y" : "x") : split[way - 1][k]));
}

static void get(oly_array x, double *values)
{
    assert_non_null(x);
    assert_int_equal(oly_process_allgather(x, values, sizeof(double) * (size_t)oly_size(x)), OLY_OK);
}

/* -- checks ---------------------------------------------------------------------------------------------------------- */
typedef struct trial {
    const sample *s;
    int way;
    oly_fn loss, gradient, tangent, bent; /* bent: the tangent of the gradient */
    double x[MOST_IN][MOST_ELEMENTS], v[MOST_IN][MOST_ELEMENTS];
} trial;

static double value_at(trial *t, double step, int k, int64_t i)
{
    double value = 0;
    OLY_SCOPE
    {
        oly_array in[MOST_IN];
        t->x[k][i] += step;
        for (int j = 0; j < t->s->n_in; j++)
            in[j] = put(t->s, j, t->x[j], t->way);
        t->x[k][i] -= step;
        get(oly_apply_n(t->loss, t->s->n_in, in), &value);
    }
    return value;
}

static void gradient_at(trial *t, double step, double (*g)[MOST_ELEMENTS])
{
    OLY_SCOPE
    {
        oly_array in[MOST_IN], out[MOST_IN] = {NULL}, *wanted[MOST_IN];
        double moved[MOST_ELEMENTS];
        for (int j = 0; j < t->s->n_in; j++) {
            for (int64_t i = 0; i < elements(t->s, j); i++)
                moved[i] = t->x[j][i] + step * t->v[j][i];
            in[j] = put(t->s, j, moved, t->way);
            wanted[j] = &out[j];
        }
        oly_call(t->gradient, t->s->n_in, in, t->s->n_in, wanted);
        for (int j = 0; j < t->s->n_in; j++)
            get(out[j], g[j]);
    }
}

static void compare(const trial *t, const char *what, int k, int64_t i, double got, double want)
{
    if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
        fail_msg("%s, operands %d: %s of element %d of operand %d is %.12g, by differences %.12g", t->s->row, t->way,
                 what, (int)i, k, got, want);
}

static void check_gradient(trial *t, double (*g)[MOST_ELEMENTS])
{
    const double h = 1e-5;
    for (int k = 0; k < t->s->n_in; k++)
        for (int64_t i = 0; i < elements(t->s, k); i++)
            compare(t, "the gradient", k, i, g[k][i], (value_at(t, h, k, i) - value_at(t, -h, k, i)) / (2 * h));
}

/* The tangent of the loss along v, and that of the gradient. */
static void check_tangents(trial *t, double (*g)[MOST_ELEMENTS])
{
    const double h = 1e-5;
    double up[MOST_IN][MOST_ELEMENTS], down[MOST_IN][MOST_ELEMENTS], along = 0, got;
    gradient_at(t, h, up);
    gradient_at(t, -h, down);
    OLY_SCOPE
    {
        int n = t->s->n_in;
        oly_array in[2 * MOST_IN], out[2 * MOST_IN] = {NULL}, *wanted[2 * MOST_IN];
        for (int k = 0; k < n; k++) {
            in[k] = put(t->s, k, t->x[k], t->way);
            in[n + k] = put(t->s, k, t->v[k], t->way);
            for (int64_t i = 0; i < elements(t->s, k); i++)
                along += g[k][i] * t->v[k][i];
        }
        for (int k = 0; k < 2 * n; k++)
            wanted[k] = &out[k];
        oly_call(t->tangent, 2 * n, in, 2, wanted);
        get(out[1], &got);
        compare(t, "the tangent", 0, 0, got, along);
        oly_call(t->bent, 2 * n, in, 2 * n, wanted);
        for (int k = 0; k < n; k++) {
            double bent[MOST_ELEMENTS];
            get(out[n + k], bent);
            for (int64_t i = 0; i < elements(t->s, k); i++)
                compare(t, "the second derivative", k, i, bent[i], (up[k][i] - down[k][i]) / (2 * h));
        }
    }
}

static void check_sample(const sample *s, int way)
{
    static trial t;
    static double g[MOST_IN][MOST_ELEMENTS];
    int all[MOST_IN];
    OLY_SCOPE
    {
        t = (trial){.s = s, .way = way};
        for (int k = 0; k < s->n_in; k++) {
            all[k] = k;
            fill(s, k, t.x[k]);
            for (int64_t i = 0; i < elements(s, k); i++)
                t.v[k][i] = sin(3.0 * (double)(i + 1) + k);
        }
        t.loss = oly_jit(loss, s->n_in, 1, .user = (void *)s, .name = s->row);
        t.gradient = oly_grad(t.loss, .argnum_list = all, .n_argnum_list = s->n_in);
        t.tangent = oly_jvp(t.loss);
        t.bent = oly_jvp(t.gradient);
        gradient_at(&t, 0, g);
        check_gradient(&t, g);
        check_tangents(&t, g);
    }
}

static void gradients_agree_with_differences(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++)
        for (int way = 0; way < 3; way++)
            check_sample(&samples[k], way);
}

/* With nothing to be saved, only every fourth iteration's carries are, and the last two come by themselves. */
static void loops_save_less_when_told(void **state)
{
    (void)state;
    int64_t before = oly_option.gradient_memory;
    oly_option.gradient_memory = 0;
    for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++)
        if (strcmp(samples[k].row, "loop") == 0)
            for (int way = 0; way < 3; way++)
                check_sample(&samples[k], way);
    oly_option.gradient_memory = before;
}

/* -- the table ------------------------------------------------------------------------------------------------------- */
static bool uses_row(const sample *s)
{
    oly_graph *g = oly_graph_new("sample");
    oly_trace t;
    oly_array in[MOST_IN];
    bool found = false;
    oly_trace_open(&t, g);
    for (int k = 0; k < s->n_in; k++) {
        oly_node *node;
        oly_type type = {.dtype = OLY_FLOAT64, .rank = s->in[k].rank};
        memcpy(type.shape, s->in[k].shape, sizeof type.shape);
        assert_int_equal(oly_graph_input(g, &type, &node), OLY_OK);
        in[k] = oly_array_traced(g, node);
    }
    assert_non_null(s->f(in));
    for (int k = 0; k < g->n_nodes; k++)
        found = found || strcmp(oly_ops[g->nodes[k]->op].name, s->row) == 0;
    oly_trace_close(&t);
    oly_trace_release(&t);
    oly_graph_free(g);
    return found;
}

static bool has_sample(const char *row)
{
    for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++)
        if (strcmp(samples[k].row, row) == 0)
            return true;
    static const char *const elsewhere[] = {"reshard",      "pvary",     "psum",       "all_gather",
                                            "psum_scatter", "own_slice", "all_to_all", "ppermute"}; /* below */
    for (size_t k = 0; k < sizeof elsewhere / sizeof elsewhere[0]; k++)
        if (strcmp(elsewhere[k], row) == 0)
            return true;
    return false;
}

static bool is_listed(const char *row)
{
    for (size_t k = 0; k < sizeof not_differentiable / sizeof not_differentiable[0]; k++)
        if (strcmp(not_differentiable[k], row) == 0)
            return true;
    return false;
}

static void every_row_has_a_rule_and_a_sample(void **state)
{
    (void)state;
    int missing = 0;
    for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++)
        if (!uses_row(&samples[k]))
            fail_msg("the sample of %s does not use it", samples[k].row);
    for (int op = 0; op < OLY_N_OPS; op++) {
        const char *row = oly_ops[op].name;
        oly_vjp_rule *rule = oly_rule_of((oly_op)op);
        if (!rule && !is_listed(row))
            missing++, print_error("%s has no gradient rule and is not listed here\n", row);
        if (rule && rule != oly_vjp_zero && !has_sample(row))
            missing++, print_error("%s has a gradient rule and no sample here\n", row);
    }
    assert_int_equal(missing, 0);
}

/* -- the functions --------------------------------------------------------------------------------------------------- */
static void squares(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(in[0], in[0]));
    out[1] = oly_mul(in[0], 3.0);
}

static void product_with_outside(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_sum(oly_mul(in[0], *(oly_array *)user));
}

static oly_array ramp(int64_t n)
{
    return oly_arange(n, OLY_FLOAT32);
}

static void values_and_other_results_come_along(void **state)
{
    (void)state;
    oly_fn f = oly_jit(squares, 1, 2);
    oly_array x = ramp(4), value = NULL, gradient = NULL, other = NULL;
    oly_call(oly_value_and_grad(f), OLY_IN(x), OLY_OUT(value, gradient, other));
    assert_float_equal(oly_item(value), 14, 0);
    assert_float_equal(oly_item(oly_slice(gradient, "3")), 6, 0);
    assert_float_equal(oly_item(oly_slice(other, "2")), 6, 0);
    oly_call(oly_grad(f), OLY_IN(x), OLY_OUT(gradient, other));
    assert_float_equal(oly_item(oly_slice(gradient, "2")), 4, 0);
}

/* An argument is a value of its own: what else uses the same array counts as constant. */
static void arguments_are_values_of_their_own(void **state)
{
    (void)state;
    oly_array x = ramp(4);
    oly_fn f = oly_jit(product_with_outside, 1, 1, .user = &x);
    oly_array g = oly_apply(oly_grad(f), x);
    assert_float_equal(oly_item(oly_slice(g, "3")), 3, 0);
}

static void gradient_inside(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array x = oly_mul(in[0], 2.0), unused = oly_sin(in[0]);
    oly_array y = oly_sum(oly_mul(x, x));
    oly_gradients(y, OLY_IN(in[0], x, unused), OLY_OUT(out[0], out[1], out[2]));
}

static void intermediate_values_have_gradients(void **state)
{
    (void)state;
    oly_array a = NULL, b = NULL, c = NULL;
    oly_call(oly_jit(gradient_inside, 1, 3), OLY_IN(ramp(4)), OLY_OUT(a, b, c));
    assert_float_equal(oly_item(oly_slice(a, "3")), 24, 0);
    assert_float_equal(oly_item(oly_slice(b, "3")), 12, 0);
    assert_float_equal(oly_item(oly_slice(c, "3")), 0, 0);
}

/* A derived function may outlive the one it comes from. */
static void derived_functions_keep_what_they_come_from(void **state)
{
    (void)state;
    oly_array g = NULL, other = NULL;
    oly_fn second;
    oly_fn first = oly_grad(oly_jit(squares, 1, 2));
    second = oly_jvp(first);
    (void)second;
    oly_call(first, OLY_IN(ramp(3)), OLY_OUT(g, other));
    assert_float_equal(oly_item(oly_slice(g, "2")), 4, 0);
}

static void element_types_stay(void **state)
{
    (void)state;
    oly_fn f = oly_grad(oly_jit(squares, 1, 2));
    oly_array g = NULL, other = NULL;
    oly_call(f, OLY_IN(oly_astype(ramp(4), OLY_BFLOAT16)), OLY_OUT(g, other));
    assert_int_equal(oly_dtype_of(g), OLY_BFLOAT16);
    oly_call(f, OLY_IN(oly_astype(ramp(4), OLY_FLOAT64)), OLY_OUT(g, other));
    assert_int_equal(oly_dtype_of(g), OLY_FLOAT64);
}

static void real_part_of_square(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array z = oly_add(in[0], oly_mul(in[1], in[2]));
    out[0] = oly_astype(oly_sum(oly_mul(z, z)), OLY_FLOAT32);
}

/* Re(z z) at 1 + 2i: 2 + 4j, from d/dx - i d/dy. */
static void complex_gradients_follow_the_convention(void **state)
{
    (void)state;
    float i[2] = {0, 1}, g[2] = {0};
    int64_t none = 0;
    oly_array unit = oly_from_host(i, OLY_COMPLEX64, 0, &none), z = NULL;
    oly_fn f = oly_jit(real_part_of_square, 3, 1);
    oly_array x = oly_astype(oly_scalar(1, OLY_FLOAT32), OLY_COMPLEX64);
    oly_array y = oly_astype(oly_scalar(2, OLY_FLOAT32), OLY_COMPLEX64);
    z = oly_apply(oly_grad(f), x, y, unit);
    assert_int_equal(oly_dtype_of(z), OLY_COMPLEX64);
    oly_process_allgather(z, g, sizeof g);
    assert_float_equal(g[0], 2, 0);
    assert_float_equal(g[1], 4, 0);
}

/* The derivative may be taken inside the map or around it. */
static void gradients_inside_a_map_are_those_around_it(void **state)
{
    (void)state;
    static const sample s = {"psum", permute_of, 2, {{1, {8}}, {1, {2}}}, -1, 1};
    double values[2][8], inside[2][8], around[2][8];
    oly_array in[2], gx = NULL, gw = NULL;
    for (int k = 0; k < 2; k++) {
        fill(&s, k, values[k]);
        in[k] = put(&s, k, values[k], 0);
    }
    oly_call(oly_jit(mapped_gradient, 2, 2), 2, in, OLY_OUT(gx, gw));
    get(gx, inside[0]);
    get(gw, inside[1]);
    oly_call(oly_grad(oly_jit(mapped_loss, 2, 1), .argnums = "0, 1"), 2, in, OLY_OUT(gx, gw));
    get(gx, around[0]);
    get(gw, around[1]);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < elements(&s, k); i++)
            if (fabs(inside[k][i] - around[k][i]) > 1e-12 * (1 + fabs(around[k][i])))
                fail_msg("element %d of gradient %d is %.15g inside, %.15g around", (int)i, k, inside[k][i],
                         around[k][i]);
}

/* -- corners --------------------------------------------------------------------------------------------------------- */
static void corner(const oly_array *in, oly_array *out, void *user)
{
    switch (*(int *)user) {
    case 0: out[0] = oly_sum(oly_max2(in[0], 1.0)); break;
    case 1: out[0] = oly_max(in[0]); break;
    case 2: out[0] = oly_sum(oly_abs(in[0])); break;
    case 3: out[0] = oly_sum(oly_relu(in[0])); break;
    case 4: out[0] = oly_prod(in[0]); break;
    case 5: out[0] = oly_sum(oly_pow(in[0], 2.0)); break;
    case 6: out[0] = oly_sum(oly_mul(oly_stop_gradient(in[0]), in[0])); break;
    default: out[0] = oly_sum(oly_where(oly_gt(in[0], 0.0), oly_log(in[0]), 0.0)); break;
    }
}

static void check_corner(int which, int n, const float *x, const float *want)
{
    float got[8];
    oly_array at = oly_from_host(x, OLY_FLOAT32, 1, (int64_t[]){n});
    oly_array g = oly_apply(oly_grad(oly_jit(corner, 1, 1, .user = &which)), at);
    oly_process_allgather(g, got, sizeof(float) * (size_t)n);
    for (int k = 0; k < n; k++)
        if (!(got[k] == want[k] || (isnan(got[k]) && isnan(want[k]))))
            fail_msg("corner %d: element %d is %g, not %g", which, k, (double)got[k], (double)want[k]);
}

static void corners_have_the_agreed_slopes(void **state)
{
    (void)state;
    check_corner(0, 2, (float[]){1, 2}, (float[]){0.5F, 1});
    check_corner(1, 3, (float[]){3, 1, 3}, (float[]){0.5F, 0, 0.5F});
    check_corner(2, 3, (float[]){0, -2, 2}, (float[]){1, -1, 1});
    check_corner(3, 3, (float[]){0, -2, 2}, (float[]){0, 0, 1});
    check_corner(4, 3, (float[]){2, 0, 4}, (float[]){0, 8, 0});
    check_corner(5, 2, (float[]){0, 3}, (float[]){0, 6});
    check_corner(6, 2, (float[]){5, 3}, (float[]){5, 3});
    check_corner(7, 2, (float[]){0, 2}, (float[]){NAN, 0.5F});
}

/* -- explicit axes --------------------------------------------------------------------------------------------------- */
static void explicit_loss(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(oly_sin(in[0]), in[1]));
}

static void gradients_have_the_sharding_of_their_values(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=4:explicit, y=2:explicit");
    oly_array a = oly_device_put(oly_reshape(ramp(32), 8, 4), oly_named(mesh, "x, y"));
    oly_array b = oly_device_put(ramp(4), oly_named(mesh, "y")), ga = NULL, gb = NULL;
    char text[64];
    oly_call(oly_grad(oly_jit(explicit_loss, 2, 1), .argnums = "0, 1"), OLY_IN(a, b), OLY_OUT(ga, gb));
    oly_typeof(ga, text, sizeof text);
    assert_string_equal(text, "float32[8@x,4@y]");
    oly_typeof(gb, text, sizeof text);
    assert_string_equal(text, "float32[4@y]");
}

static void reshards_go_back(void **state)
{
    (void)state;
    static const sample s = {"reshard", reshard_of, 1, {M43}, -1, 1};
    check_sample(&s, 0);
}

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static void expect_error(oly_status status, const char *part)
{
    assert_int_equal(oly_last_status(), status);
    if (!strstr(oly_last_error(), part))
        fail_msg("\"%s\" is not in \"%s\"", part, oly_last_error());
    oly_clear_error();
}

static void not_a_number(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_mul(in[0], 2.0);
}

static oly_array below_ten(const oly_array *carry, void *user)
{
    (void)user;
    return oly_lt(carry[0], 10.0);
}

static void twice(oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_mul(carry[0], 2.0);
}

static void open_loop(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = in[0];
    oly_while(below_ten, twice, 1, out, NULL);
}

static void mistakes_are_explained(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_fn f = oly_jit(not_a_number, 1, 1), g = oly_jit(squares, 1, 2);
    oly_apply(oly_grad(f), ramp(3));
    expect_error(OLY_SHAPE, "Gradient only defined for scalar-output functions");
    oly_array a = NULL, b = NULL;
    oly_call(oly_grad(g), OLY_IN(oly_arange(3, OLY_INT32)), OLY_OUT(a, b));
    expect_error(OLY_DTYPE, "int32[3]");
    assert_null(oly_grad(f, .argnums = "1"));
    expect_error(OLY_INVALID, "no argument 1");
    assert_null(oly_grad(f, .argnums = "0, 0"));
    expect_error(OLY_INVALID, "named twice");
    assert_null(oly_grad(f, .argnums = "first"));
    expect_error(OLY_PARSE, "the number of an argument");
    oly_call(oly_vjp(f), OLY_IN(ramp(3), ramp(4)), OLY_OUT(a, b));
    expect_error(OLY_SHAPE, "cotangent");
    oly_call(oly_jvp(f), OLY_IN(ramp(3), oly_arange(3, OLY_INT32)), OLY_OUT(a, b));
    expect_error(OLY_DTYPE, "tangent");
    oly_apply(oly_grad(oly_jit(open_loop, 1, 1)), oly_scalar(1, OLY_FLOAT32));
    expect_error(OLY_INVALID, "oly_fori");
    oly_gradients(ramp(1), OLY_IN(ramp(1)), OLY_OUT(a));
    expect_error(OLY_TRACE, "oly_grad");
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* -- running --------------------------------------------------------------------------------------------------------- */
static int begin(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_enable_x64(true);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return oly_finalize();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_has_a_rule_and_a_sample, begin, end),
        cmocka_unit_test_setup_teardown(gradients_agree_with_differences, begin, end),
        cmocka_unit_test_setup_teardown(loops_save_less_when_told, begin, end),
        cmocka_unit_test_setup_teardown(values_and_other_results_come_along, begin, end),
        cmocka_unit_test_setup_teardown(arguments_are_values_of_their_own, begin, end),
        cmocka_unit_test_setup_teardown(intermediate_values_have_gradients, begin, end),
        cmocka_unit_test_setup_teardown(derived_functions_keep_what_they_come_from, begin, end),
        cmocka_unit_test_setup_teardown(element_types_stay, begin, end),
        cmocka_unit_test_setup_teardown(complex_gradients_follow_the_convention, begin, end),
        cmocka_unit_test_setup_teardown(gradients_inside_a_map_are_those_around_it, begin, end),
        cmocka_unit_test_setup_teardown(corners_have_the_agreed_slopes, begin, end),
        cmocka_unit_test_setup_teardown(gradients_have_the_sharding_of_their_values, begin, end),
        cmocka_unit_test_setup_teardown(reshards_go_back, begin, end),
        cmocka_unit_test_setup_teardown(mistakes_are_explained, begin, end),
    };
    return CHECK_MAIN(tests);
}
