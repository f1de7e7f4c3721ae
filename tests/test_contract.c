/* run: layouts  What products, einsum, convolutions and windows promise: the values that plain loops give, for random shapes and
 * parameters, eager and compiled, of operands that are views, and over a mesh x=2, y=4 however they are split; and what bad
 * parameters get. */
#include "check.h"
#include "core/error.h"
#include <inttypes.h>
#include <math.h>
#include <olympus.h>

enum { MOST_ELEMENTS = 20000, CASES = 120 };

typedef struct tensor {
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    double element[MOST_ELEMENTS];
} tensor;

static tensor operand[3], expected;
static oly_dtype dtype;
static oly_mesh mesh;

/* -- the same random numbers on every rank ---- */
static uint64_t seed;
static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return n <= 1 ? 0 : (int)(seed >> 33) % n;
}

static void fill(tensor *t, int rank, const int64_t *shape)
{
    t->rank = rank;
    t->size = 1;
    for (int d = 0; d < rank; d++)
        t->size *= t->shape[d] = shape[d];
    assert_true(t->size <= MOST_ELEMENTS);
    for (int64_t i = 0; i < t->size; i++)
        t->element[i] = dtype == OLY_BOOL ? below(2) : dtype == OLY_UINT8 ? below(4) : below(7) - 3;
}

static double get(const tensor *t, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * t->shape[d] + at[d];
    return t->element[i];
}

/* Next index of a box; false: that was the last. */
static bool next(int rank, const int64_t *shape, int64_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++at[d] < shape[d])
            return true;
        at[d] = 0;
    }
    return false;
}

/* -- arrays ---- */
static oly_array upload(const tensor *t)
{
    static char bytes[16 * MOST_ELEMENTS];
    for (int64_t i = 0; i < t->size; i++)
        switch (dtype) {
        case OLY_BOOL:
        case OLY_UINT8: ((uint8_t *)bytes)[i] = (uint8_t)t->element[i]; break;
        case OLY_INT32: ((int32_t *)bytes)[i] = (int32_t)t->element[i]; break;
        case OLY_INT64: ((int64_t *)bytes)[i] = (int64_t)t->element[i]; break;
        case OLY_FLOAT64: ((double *)bytes)[i] = t->element[i]; break;
        case OLY_COMPLEX64:
            ((float *)bytes)[2 * i] = (float)t->element[i];
            ((float *)bytes)[2 * i + 1] = 0;
            break;
        default: ((float *)bytes)[i] = (float)t->element[i]; break;
        }
    return oly_from_host(bytes, dtype, t->rank, t->shape);
}

static double value_at(const void *bytes, int64_t i)
{
    switch (dtype) {
    case OLY_BOOL:
    case OLY_UINT8: return ((const uint8_t *)bytes)[i];
    case OLY_INT32: return ((const int32_t *)bytes)[i];
    case OLY_INT64: return (double)((const int64_t *)bytes)[i];
    case OLY_FLOAT64: return ((const double *)bytes)[i];
    case OLY_COMPLEX64: return ((const float *)bytes)[2 * i];
    default: return ((const float *)bytes)[i];
    }
}

/* What sums of the element type are. */
static double reduced(double x)
{
    return dtype == OLY_BOOL ? x != 0 : dtype == OLY_UINT8 ? (double)((int64_t)x & 255) : x;
}

/* Each axis splits one dimension, or none. */
static oly_sharding some_sharding(int rank)
{
    const int x = 0, y = 1;
    int of_x = below(rank + 1), of_y = below(rank + 1), list[OLY_MAX_RANK][3];
    const int *dims[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        int n = 0;
        if (d == of_x)
            list[d][n++] = x;
        if (d == of_y)
            list[d][n++] = y;
        list[d][n] = -1;
        dims[d] = list[d];
    }
    return oly_named_axes(mesh, rank, dims);
}

/* -- running one case: eager, compiled, compiled over the mesh ---- */
typedef oly_array apply(const oly_array *in);
static apply *applied;
static int n_operands;
static bool views;
static char what[400];

/* Operands come turned and with elements around them; the function takes them out. */
static oly_array as_view(oly_array x, int k)
{
    int order[OLY_MAX_RANK], rank = operand[k].rank;
    if (!views || rank == 0)
        return x;
    for (int d = 0; d < rank; d++)
        order[d] = rank - 1 - d;
    int64_t start[OLY_MAX_RANK], limit[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        start[d] = 1;
        limit[d] = 1 + operand[k].shape[rank - 1 - d];
    }
    return oly_transpose_axes(oly_slice_ranges(x, start, limit, NULL), rank, order);
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array seen[3];
    for (int k = 0; k < n_operands; k++)
        seen[k] = as_view(in[k], k);
    out[0] = applied(seen);
}

static oly_array surrounded(const tensor *t)
{
    static tensor wide;
    int64_t at[OLY_MAX_RANK] = {0}, inner[OLY_MAX_RANK], shape[OLY_MAX_RANK];
    if (!views || t->rank == 0)
        return upload(t);
    for (int d = 0; d < t->rank; d++)
        shape[d] = t->shape[t->rank - 1 - d] + 2;
    fill(&wide, t->rank, shape);
    for (int64_t i = 0; i < wide.size; i++, next(wide.rank, wide.shape, at)) {
        bool inside = true;
        for (int d = 0; d < t->rank; d++) {
            inner[t->rank - 1 - d] = at[d] - 1;
            inside = inside && at[d] >= 1 && at[d] <= wide.shape[d] - 2;
        }
        if (inside)
            wide.element[i] = get(t, inner);
    }
    return upload(&wide);
}

static void check(oly_array result, const char *how)
{
    static char bytes[16 * MOST_ELEMENTS];
    if (!result)
        fail_msg("%s, %s: %s", what, how, oly_last_error());
    assert_int_equal(oly_rank(result), expected.rank);
    for (int d = 0; d < expected.rank; d++)
        if (oly_dim(result, d) != expected.shape[d])
            fail_msg("%s, %s: dimension %d is %" PRId64 ", must be %" PRId64, what, how, d, oly_dim(result, d),
                     expected.shape[d]);
    assert_int_equal(oly_process_allgather(result, bytes, (size_t)expected.size * oly_dtype_size(dtype)), OLY_OK);
    for (int64_t i = 0; i < expected.size; i++)
        if (value_at(bytes, i) != reduced(expected.element[i]))
            fail_msg("%s, %s: element %" PRId64 " is %.17g, must be %.17g", what, how, i, value_at(bytes, i),
                     reduced(expected.element[i]));
}

static bool only_shapes; /* the values are checked elsewhere */

static void run_case(int n, apply *f)
{
    if (only_shapes)
        return;
    char how[300] = "over the mesh";
    applied = f;
    n_operands = n;
    OLY_SCOPE
    {
        oly_array in[3], out;
        views = false;
        for (int k = 0; k < n; k++)
            in[k] = upload(&operand[k]);
        check(f(in), "eager");
        oly_fn fn = oly_jit(traced, n, 1);
        for (int round = 0; round < 3; round++) {
            views = round == 2;
            for (int k = 0; k < n; k++) {
                oly_array x = surrounded(&operand[k]);
                oly_sharding s = some_sharding(operand[k].rank);
                size_t used = strlen(how);
                oly_spec_str(s, how + used, sizeof how - used);
                in[k] = round == 0 ? x : oly_device_put(x, s);
            }
            fn = oly_jit(traced, n, 1);
            oly_array *wanted = &out;
            oly_call(fn, n, in, 1, &wanted);
            check(out, round == 0 ? "compiled" : how);
            how[0] = 0;
        }
    }
}

static void choose_dtype(void)
{
    static const oly_dtype some[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_FLOAT64, OLY_INT32,    OLY_UINT8,
                                     OLY_BOOL,    OLY_INT64,   OLY_FLOAT16, OLY_COMPLEX64};
    dtype = some[below(sizeof some / sizeof *some)];
    if (dtype == OLY_FLOAT16)
        dtype = OLY_FLOAT32;
}

/* -- dot_general ---- */
static oly_dot_options dims;
static int list[4][OLY_MAX_RANK];

static oly_array apply_dot(const oly_array *in)
{
    return oly_dot_general_with(oly_operand_array(in[0]), oly_operand_array(in[1]), dims);
}

static void shuffle(int n, int *order)
{
    for (int k = 0; k < n; k++)
        order[k] = k;
    for (int k = n - 1; k > 0; k--) {
        int j = below(k + 1), keep = order[k];
        order[k] = order[j];
        order[j] = keep;
    }
}

static void one_dot(void)
{
    int n_batch = below(3), n_contract = below(3), n_free[2] = {below(3), below(3)},
        most = n_batch + n_contract > 3 ? 3 : 5;
    int64_t batch[2], contract[2], shape[2][OLY_MAX_RANK];
    int of[2][OLY_MAX_RANK], label[2][OLY_MAX_RANK];
    for (int k = 0; k < 2; k++) {
        batch[k] = 1 + below(most - 1);
        contract[k] = below(12) ? 1 + below(most + 1) : 0;
    }
    for (int o = 0; o < 2; o++) {
        int rank = n_batch + n_contract + n_free[o];
        shuffle(rank, of[o]);
        for (int d = 0; d < rank; d++) {
            int at = of[o][d];
            bool is_batch = d < n_batch, is_contract = !is_batch && d < n_batch + n_contract;
            int k = is_batch ? d : d - n_batch;
            shape[o][at] = is_batch ? batch[k] : is_contract ? contract[k] : 1 + below(most);
            if (is_batch)
                list[2 + o][k] = at;
            else if (is_contract)
                list[o][k] = below(2) ? at : at - rank;
        }
        fill(&operand[o], rank, shape[o]);
    }
    dims = (oly_dot_options){.n_contracting = n_contract,
                             .a_contracting = list[0],
                             .b_contracting = list[1],
                             .n_batch = n_batch,
                             .a_batch = list[2],
                             .b_batch = list[3]};
    /* labels: batch 0.., then free of both; contracted come last */
    expected.rank = 0;
    for (int k = 0; k < n_batch; k++)
        expected.shape[expected.rank++] = batch[k];
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < operand[o].rank; d++) {
            int j = 0;
            while (of[o][j] != d)
                j++;
            if (j < n_batch) {
                label[o][d] = j;
            } else if (j < n_batch + n_contract) {
                label[o][d] = 100 + j - n_batch;
            } else {
                label[o][d] = expected.rank;
                expected.shape[expected.rank++] = operand[o].shape[d];
            }
        }
    expected.size = 1;
    for (int d = 0; d < expected.rank; d++)
        expected.size *= expected.shape[d];
    assert_true(expected.size <= MOST_ELEMENTS);
    int64_t at[8] = {0}, sub[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < expected.size; i++, next(expected.rank, expected.shape, at)) {
        double sum = 0;
        memset(sub, 0, sizeof sub);
        bool more = true;
        for (int k = 0; k < n_contract; k++)
            more = more && contract[k] > 0;
        for (; more; more = next(n_contract, contract, sub)) {
            double product = 1;
            for (int o = 0; o < 2; o++) {
                int64_t where[OLY_MAX_RANK];
                for (int d = 0; d < operand[o].rank; d++)
                    where[d] = label[o][d] >= 100 ? sub[label[o][d] - 100] : at[label[o][d]];
                product *= get(&operand[o], where);
            }
            sum += product;
        }
        expected.element[i] = sum;
    }
    snprintf(what, sizeof what, "dot_general case with %d batch, %d contracting, %d and %d free", n_batch, n_contract,
             n_free[0], n_free[1]);
    run_case(2, apply_dot);
}

static void products(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        seed = 1000 + (uint64_t)k;
        choose_dtype();
        one_dot();
    }
}

/* -- einsum ---- */
static char equation[80];
static oly_array apply_einsum(const oly_array *in)
{
    return oly_einsum_with(equation, n_operands, in, (oly_product_options){0});
}

static void one_einsum(void)
{
    int n = 1 + below(3), used = 0;
    int64_t size[5];
    char *text = equation;
    for (int k = 0; k < 5; k++)
        size[k] = 1 + below(5);
    for (int o = 0; o < n; o++) {
        int64_t shape[OLY_MAX_RANK];
        int rank = below(4);
        for (int d = 0; d < rank; d++) {
            int letter = below(5);
            used |= 1 << letter;
            shape[d] = size[letter];
            *text++ = (char)('a' + letter);
        }
        fill(&operand[o], rank, shape);
        *text++ = ',';
    }
    text[-1] = '-';
    *text++ = '>';
    char *result = text;
    int order[5];
    shuffle(5, order);
    expected.rank = 0;
    expected.size = 1;
    for (int k = 0; k < 5; k++)
        if ((used >> order[k] & 1) && below(2)) {
            *text++ = (char)('a' + order[k]);
            expected.size *= expected.shape[expected.rank++] = size[order[k]];
        }
    *text = 0;
    int64_t index[5] = {0}, all[5];
    memset(expected.element, 0, sizeof expected.element);
    for (int k = 0; k < 5; k++)
        all[k] = used >> k & 1 ? size[k] : 1;
    do {
        double product = 1;
        const char *letter = equation;
        int64_t where[OLY_MAX_RANK], to = 0;
        for (int o = 0; o < n; o++, letter++) {
            for (int d = 0; d < operand[o].rank; d++)
                where[d] = index[*letter++ - 'a'];
            product *= get(&operand[o], where);
        }
        for (int d = 0; result[d]; d++)
            to = to * size[result[d] - 'a'] + index[result[d] - 'a'];
        expected.element[to] += product;
    } while (next(5, all, index));
    snprintf(what, sizeof what, "einsum %s", equation);
    run_case(n, apply_einsum);
}

static void einsums(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        seed = 2000 + (uint64_t)k;
        choose_dtype();
        one_einsum();
    }
}

/* -- convolutions and windows ---- */
static struct {
    int rank;
    int64_t size[3], stride[3], padding[6], base[3], dilation[3], groups, batch_groups;
} window;
static const char *reduction;

static oly_array apply_conv(const oly_array *in)
{
    return oly_conv(in[0], in[1], .n_list = window.rank, .stride_list = window.stride, .padding_list = window.padding,
                    .lhs_dilation_list = window.base, .rhs_dilation_list = window.dilation,
                    .feature_group_count = window.groups, .batch_group_count = window.batch_groups);
}
static oly_array apply_window(const oly_array *in)
{
    return oly_reduce_window(in[0], reduction, .n_list = window.rank, .window_list = window.size,
                             .stride_list = window.stride, .padding_list = window.padding,
                             .base_dilation_list = window.base, .window_dilation_list = window.dilation);
}

/* Chooses a window over these extents that has a place or none; false: padding would take more than there is. */
static bool choose_window(int rank, const int64_t *extent, int64_t *places)
{
    window.rank = rank;
    for (int d = 0; d < rank; d++) {
        window.size[d] = 1 + below(4);
        window.stride[d] = 1 + below(3);
        window.base[d] = below(3) ? 1 : 1 + below(3);
        window.dilation[d] = below(3) ? 1 : 1 + below(3);
        window.padding[2 * d] = below(6) - 2;
        window.padding[2 * d + 1] = below(6) - 2;
        int64_t padded =
            (extent[d] ? (extent[d] - 1) * window.base[d] + 1 : 0) + window.padding[2 * d] + window.padding[2 * d + 1];
        int64_t seen = (window.size[d] - 1) * window.dilation[d] + 1;
        if (padded < 0)
            return false;
        places[d] = padded < seen ? 0 : (padded - seen) / window.stride[d] + 1;
    }
    return true;
}

/* The element that a tap sees; false: padding. */
static bool sees(const tensor *x, int first, const int64_t *place, const int64_t *tap, int64_t *where)
{
    for (int d = 0; d < window.rank; d++) {
        int64_t at = place[d] * window.stride[d] - window.padding[2 * d] + tap[d] * window.dilation[d];
        if (at < 0 || at % window.base[d] != 0 || at / window.base[d] >= x->shape[first + d])
            return false;
        where[first + d] = at / window.base[d];
    }
    return true;
}

static bool one_conv(void)
{
    int rank = 1 + below(2);
    int64_t groups = below(2) ? 1 : 1 + below(3), per_group = 1 + below(3), in_group = 1 + below(3),
            batch = 1 + below(3);
    bool of_batch = below(4) == 0;
    window.groups = of_batch ? 1 : groups;
    window.batch_groups = of_batch ? groups : 1;
    int64_t x[5] = {batch * window.batch_groups, in_group * window.groups}, k[5] = {per_group * groups, in_group};
    for (int d = 0; d < rank; d++)
        x[2 + d] = rank == 1 ? 1 + below(24) : 1 + below(9);
    expected.rank = rank + 2;
    expected.shape[0] = batch;
    expected.shape[1] = k[0];
    if (!choose_window(rank, x + 2, expected.shape + 2))
        return false;
    for (int d = 0; d < rank; d++)
        k[2 + d] = window.size[d];
    fill(&operand[0], rank + 2, x);
    fill(&operand[1], rank + 2, k);
    expected.size = 1;
    for (int d = 0; d < expected.rank; d++)
        expected.size *= expected.shape[d];
    int64_t at[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < expected.size; i++, next(expected.rank, expected.shape, at)) {
        int64_t tap[3] = {0}, group = at[1] / per_group;
        double sum = 0;
        do {
            for (int64_t c = 0; c < in_group; c++) {
                int64_t where[5] = {of_batch ? group * batch + at[0] : at[0], of_batch ? c : group * in_group + c};
                int64_t kernel[5] = {at[1], c, tap[0], tap[1], tap[2]};
                if (sees(&operand[0], 2, at + 2, tap, where))
                    sum += get(&operand[0], where) * get(&operand[1], kernel);
            }
        } while (next(rank, window.size, tap));
        expected.element[i] = sum;
    }
    snprintf(what, sizeof what,
             "conv %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " stride %" PRId64 " padding %" PRId64 ",%" PRId64
             " dilations %" PRId64 " %" PRId64 " groups %" PRId64 " %" PRId64 " size %" PRId64,
             x[0], x[1], x[2], rank > 1 ? x[3] : 1, window.stride[0], window.padding[0], window.padding[1],
             window.base[0], window.dilation[0], window.groups, window.batch_groups, window.size[0]);
    run_case(2, apply_conv);
    return true;
}

static bool one_window(void)
{
    static const char *const names[] = {"sum", "max", "min", "prod"};
    int rank = 1 + below(3), outer = below(3);
    int64_t x[5];
    reduction = names[below(4)];
    for (int d = 0; d < outer; d++)
        x[d] = expected.shape[d] = 1 + below(4);
    for (int d = 0; d < rank; d++)
        x[outer + d] = rank == 1 ? 1 + below(24) : 1 + below(7);
    expected.rank = outer + rank;
    if (!choose_window(rank, x + outer, expected.shape + outer))
        return false;
    fill(&operand[0], outer + rank, x);
    expected.size = 1;
    for (int d = 0; d < expected.rank; d++)
        expected.size *= expected.shape[d];
    double none = *reduction == 's' ? 0 : *reduction == 'p' ? 1 : 0;
    if (reduction[0] == 'm')
        none = dtype == OLY_INT32    ? (double)(reduction[1] == 'a' ? INT32_MIN : INT32_MAX)
               : reduction[1] == 'a' ? -INFINITY
                                     : INFINITY;
    int64_t at[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < expected.size; i++, next(expected.rank, expected.shape, at)) {
        int64_t tap[3] = {0}, where[5] = {0};
        double value = none;
        memcpy(where, at, sizeof *where * (size_t)outer);
        do {
            if (!sees(&operand[0], outer, at + outer, tap, where))
                continue;
            double e = get(&operand[0], where);
            value = *reduction == 's'     ? value + e
                    : *reduction == 'p'   ? value * e
                    : reduction[1] == 'a' ? (e > value ? e : value)
                                          : (e < value ? e : value);
        } while (next(rank, window.size, tap));
        expected.element[i] = value;
    }
    snprintf(what, sizeof what, "window %s over %d of %d dimensions", reduction, rank, outer + rank);
    run_case(1, apply_window);
    return true;
}

static void convolutions(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        seed = 3000 + (uint64_t)k;
        do
            choose_dtype();
        while (dtype == OLY_BOOL);
        one_conv();
    }
}

static void windows(void **state)
{
    (void)state;
    for (int k = 0; k < CASES; k++) {
        seed = 4000 + (uint64_t)k;
        dtype = below(2) ? OLY_FLOAT32 : OLY_INT32;
        one_window();
    }
}

/* -- derivatives: of functions that are linear in each operand ---- */
static void weighted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(applied(in), in[2]));
}

static double inner(const tensor *t, oly_array x)
{
    static double bytes[MOST_ELEMENTS];
    double sum = 0;
    assert_int_equal(oly_process_allgather(x, bytes, (size_t)t->size * sizeof *bytes), OLY_OK);
    for (int64_t i = 0; i < t->size; i++)
        sum += bytes[i] * t->element[i];
    return sum;
}

static double loss(const tensor *a, const tensor *b, const tensor *c)
{
    double sum = 0;
    oly_array in[3] = {upload(a), upload(b), upload(c)}, y;
    weighted(in, &y, NULL);
    assert_int_equal(oly_process_allgather(y, &sum, sizeof sum), OLY_OK);
    return sum;
}

static void check_gradients(apply *f)
{
    static tensor weight, other[2];
    fill(&weight, expected.rank, expected.shape);
    for (int o = 0; o < 2; o++)
        fill(&other[o], operand[o].rank, operand[o].shape);
    applied = f;
    OLY_SCOPE
    {
        oly_array in[3] = {upload(&operand[0]), upload(&operand[1]), upload(&weight)}, gradient[2],
                  *wanted[2] = {&gradient[0], &gradient[1]};
        for (int round = 0; round < 2; round++) {
            for (int k = 0; k < 3 && round; k++)
                in[k] = oly_device_put(in[k], some_sharding(oly_rank(in[k])));
            oly_fn fn = oly_grad(oly_jit(weighted, 3, 1), .argnums = "0, 1");
            oly_call(fn, 3, in, 2, wanted);
            if (!gradient[0] || !gradient[1])
                fail_msg("%s: %s", what, oly_last_error());
            double a = inner(&other[0], gradient[0]), want_a = loss(&other[0], &operand[1], &weight);
            double b = inner(&other[1], gradient[1]), want_b = loss(&operand[0], &other[1], &weight);
            if (a != want_a || b != want_b)
                fail_msg("%s: gradients give %g and %g, must be %g and %g", what, a, b, want_a, want_b);
        }
    }
}

static void gradients(void **state)
{
    (void)state;
    only_shapes = true;
    for (int k = 0; k < CASES; k++) {
        seed = 5000 + (uint64_t)k;
        dtype = OLY_FLOAT64;
        if (one_conv())
            check_gradients(apply_conv);
        one_dot();
        check_gradients(apply_dot);
    }
    only_shapes = false;
}

static void pooled(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_sum(oly_mul(apply_window(in), in[1]));
}

/* Sums and largest of windows inside x: the derivative by x, times x, is the value. */
static void gradients_of_windows(void **state)
{
    (void)state;
    only_shapes = true;
    for (int k = 0; k < CASES; k++) {
        seed = 7000 + (uint64_t)k;
        dtype = OLY_FLOAT64;
        if (!one_window() || *reduction == 'p' || expected.size == 0)
            continue;
        bool inside = true;
        for (int d = 0; d < window.rank; d++)
            inside = inside && window.padding[2 * d] <= 0 && window.padding[2 * d + 1] <= 0 && window.base[d] == 1;
        if (!inside && *reduction == 'm')
            continue;
        static tensor weight;
        fill(&weight, expected.rank, expected.shape);
        OLY_SCOPE
        {
            oly_array in[2] = {upload(&operand[0]), upload(&weight)}, gradient, value;
            in[0] = oly_device_put(in[0], some_sharding(operand[0].rank));
            oly_call(oly_value_and_grad(oly_jit(pooled, 2, 1)), OLY_IN(in[0], in[1]), OLY_OUT(value, gradient));
            if (!gradient)
                fail_msg("%s: %s", what, oly_last_error());
            double sum = inner(&operand[0], gradient), want;
            assert_int_equal(oly_process_allgather(value, &want, sizeof want), OLY_OK);
            if (sum != want)
                fail_msg("%s: the gradient gives %g, must be %g", what, sum, want);
        }
    }
    only_shapes = false;
}

/* -- over a batch ---- */
static void mapped(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = applied(in);
}

static void check_batches(apply *f)
{
    enum { BATCH = 3 };
    static tensor part[2][BATCH], many;
    applied = f;
    for (int which = 1; which <= 3; which++)
        OLY_SCOPE
        {
            oly_array in[2], one[2][BATCH], y;
            int axes[2], back[1] = {0};
            oly_array *wanted[1] = {&y};
            for (int o = 0; o < 2; o++) {
                for (int j = 0; j < BATCH; j++) {
                    fill(&part[o][j], operand[o].rank, operand[o].shape);
                    one[o][j] = upload(&part[o][j]);
                }
                axes[o] = which >> o & 1 ? 0 : OLY_UNMAPPED;
                in[o] = which >> o & 1 ? oly_stack_n(BATCH, one[o], 0) : one[o][0];
            }
            oly_vmap(mapped, NULL, 2, in, axes, 1, wanted, back);
            if (!y)
                fail_msg("%s, mapped over %d: %s", what, which, oly_last_error());
            memcpy(many.shape + 1, expected.shape, sizeof *many.shape * (OLY_MAX_RANK - 1));
            many.shape[0] = BATCH;
            many.rank = expected.rank + 1;
            int64_t shape[OLY_MAX_RANK];
            memcpy(shape, many.shape, sizeof shape);
            fill(&many, many.rank, shape);
            static double bytes[BATCH * MOST_ELEMENTS];
            static tensor keep;
            for (int j = 0; j < BATCH; j++) {
                oly_array x[2] = {one[0][which & 1 ? j : 0], one[1][which & 2 ? j : 0]};
                assert_int_equal(oly_process_allgather(f(x), keep.element, (size_t)expected.size * sizeof(double)),
                                 OLY_OK);
                memcpy(many.element + j * expected.size, keep.element, (size_t)expected.size * sizeof(double));
            }
            assert_int_equal(oly_process_allgather(y, bytes, (size_t)many.size * sizeof(double)), OLY_OK);
            for (int64_t i = 0; i < many.size; i++)
                if (bytes[i] != many.element[i])
                    fail_msg("%s, mapped over %d: element %" PRId64 " is %g, must be %g", what, which, i, bytes[i],
                             many.element[i]);
        }
}

static void batches(void **state)
{
    (void)state;
    only_shapes = true;
    for (int k = 0; k < CASES / 4; k++) {
        seed = 6000 + (uint64_t)k;
        dtype = OLY_FLOAT64;
        if (one_conv())
            check_batches(apply_conv);
        one_dot();
        check_batches(apply_dot);
    }
    only_shapes = false;
}

/* -- bad parameters ---- */
static void refused(oly_array result, oly_status status, const char *part, int line)
{
    if (result || oly_last_status() != status || !strstr(oly_last_error(), part))
        fail_msg("line %d: %s: %s", line, oly_status_name(oly_last_status()), oly_last_error());
    oly_clear_error();
}
#define REFUSED(call, status, part) refused(call, status, part, __LINE__)

static void bad_parameters(void **state)
{
    (void)state;
    OLY_SCOPE
    {
        oly_array a = oly_ones(OLY_FLOAT32, 2, 3), b = oly_ones(OLY_FLOAT32, 3, 4), v = oly_ones(OLY_FLOAT32, 3);
        oly_array x = oly_ones(OLY_FLOAT32, 1, 2, 8), k = oly_ones(OLY_FLOAT32, 4, 2, 3),
                  t = oly_ones(OLY_BOOL, 1, 2, 8);
        REFUSED(oly_einsum("ij,jk-ik", a, b), OLY_PARSE, "column 6");
        REFUSED(oly_einsum("ij,jk->il", a, b), OLY_PARSE, "index l");
        REFUSED(oly_einsum("ij,jk->ii", a, b), OLY_PARSE, "twice");
        REFUSED(oly_einsum("ij,jk", a), OLY_PARSE, "column 4");
        REFUSED(oly_einsum("ij", a, b), OLY_PARSE, "1 operand, 2 are given");
        REFUSED(oly_einsum("ijk,jk", a, b), OLY_SHAPE, "3 indices");
        REFUSED(oly_einsum("ij,ij", a, b), OLY_SHAPE, "index i has size 3");
        REFUSED(oly_einsum("ii", a), OLY_SHAPE, "diagonal");
        REFUSED(oly_einsum("i.j,jk", a, b), OLY_PARSE, "\"...\"");
        REFUSED(oly_einsum("i...j...", a), OLY_PARSE, "only one");
        REFUSED(oly_einsum("i1,jk", a, b), OLY_SHAPE, "1 indices");
        REFUSED(oly_einsum("ij->ij junk", a), OLY_PARSE, "junk");
        REFUSED(oly_dot_general(a, b, .contracting = "1"), OLY_PARSE, "second operand");
        REFUSED(oly_dot_general(a, b, .contracting = "1; 0, 1"), OLY_SHAPE, "pairs");
        REFUSED(oly_dot_general(a, b, .contracting = "0; 0"), OLY_SHAPE, "equal sizes");
        REFUSED(oly_dot_general(a, b, .contracting = "1; 0", .batch = "1; 1"), OLY_SHAPE, "twice");
        REFUSED(oly_dot_general(a, b, .contracting = "2; 0"), OLY_SHAPE, "axis 2");
        REFUSED(oly_tensordot(a, v, 2), OLY_INVALID, "0 to 1");
        REFUSED(oly_inner(a, b), OLY_SHAPE, "equal sizes");
        REFUSED(oly_vdot(a, b), OLY_SHAPE, "6 and 12 elements");
        REFUSED(oly_conv(x, oly_ones(OLY_FLOAT32, 4, 3, 3)), OLY_SHAPE, "features");
        REFUSED(oly_conv(x, v), OLY_SHAPE, "both must");
        REFUSED(oly_conv(x, k, .strides = "0"), OLY_INVALID, "stride");
        REFUSED(oly_conv(x, k, .strides = "1, 1"), OLY_SHAPE, "strides: 2 entries");
        REFUSED(oly_conv(x, k, .padding = "(1, 2"), OLY_PARSE, "\")\"");
        REFUSED(oly_conv(x, k, .padding = "ALL"), OLY_PARSE, "SAME");
        REFUSED(oly_conv(x, k, .padding = "-9"), OLY_SHAPE, "removes more");
        REFUSED(oly_conv(x, k, .padding = "SAME", .lhs_dilation = "2"), OLY_INVALID, "numbers");
        REFUSED(oly_conv(x, k, .feature_group_count = 2), OLY_SHAPE, "features");
        REFUSED(oly_conv(x, k, .dimension_numbers = "NWC,WIO"), OLY_PARSE, "\"->\"");
        REFUSED(oly_conv(x, k, .dimension_numbers = "NWW,WIO->NWC"), OLY_PARSE, "twice");
        REFUSED(oly_conv(x, k, .dimension_numbers = "NCW,OIH->NCW"), OLY_PARSE, "'H'");
        REFUSED(oly_conv(t, t), OLY_DTYPE, "number type");
        REFUSED(oly_convolve(v, v, "half"), OLY_INVALID, "full");
        REFUSED(oly_convolve(a, v, "full"), OLY_SHAPE, "one dimension");
        REFUSED(oly_reduce_window(a, "mean", .window = "2"), OLY_INVALID, "mean");
        REFUSED(oly_max_pool(a, .window = "2, 2, 2"), OLY_SHAPE, "fewer");
        oly_array none = NULL;
        assert_null(oly_conv(none, k));
        assert_null(oly_einsum("i", none));
        assert_null(oly_dot_general(none, a));
        assert_null(oly_max_pool(none, .window = "1"));
        oly_clear_error();
    }
}

/* -- the notations ---- */
static void notations(void **state)
{
    (void)state;
    OLY_SCOPE
    {
        char text[64];
        oly_array x = oly_ones(OLY_FLOAT32, 2, 9, 7, 3), k = oly_ones(OLY_FLOAT32, 3, 2, 3, 5);
        oly_array y = oly_conv(x, k, .dimension_numbers = "NHWC,HWIO->NHWC", .strides = "2, 1", .padding = "SAME");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,5,7,5]");
        y = oly_max_pool(x, .window = "2, 2, 1", .strides = "2, 2, 1");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,4,3,3]");
        y = oly_avg_pool(x, .window = "3, 3, 1", .padding = "1, (0, 2), 0");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[2,9,7,3]");
        y = oly_correlate(oly_arange(5, OLY_INT32), oly_ones(OLY_INT32, 2), "valid");
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[4]");
        oly_sharding s = oly_named(mesh, "y, x");
        y = oly_einsum_options("ij,jk", (.out_sharding = s), oly_ones(OLY_FLOAT32, 8, 3), oly_ones(OLY_FLOAT32, 3, 6));
        assert_true(oly_sharding_of(y) == s);
        y = oly_einsum("...ij,...jk", oly_ones(OLY_FLOAT32, 4, 1, 2, 3), oly_ones(OLY_FLOAT32, 5, 3, 2));
        oly_typeof(y, text, sizeof text);
        assert_string_equal(text, "float32[4,5,2,2]");
        oly_typeof(oly_einsum("ba", oly_ones(OLY_FLOAT32, 2, 3)), text, sizeof text);
        assert_string_equal(text, "float32[3,2]");
        oly_typeof(oly_tensordot(oly_ones(OLY_FLOAT32, 2, 3, 4), oly_ones(OLY_FLOAT32, 3, 4, 5), 2), text, sizeof text);
        assert_string_equal(text, "float32[2,5]");
        oly_typeof(oly_vdot(x, x, .preferred_element_type = OLY_FLOAT64), text, sizeof text);
        assert_string_equal(text, "float64[]");
    }
}

static int start(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    mesh = oly_make_mesh("x=2, y=4");
    return mesh ? 0 : -1;
}
static int finish(void **state)
{
    (void)state;
    oly_clear_error();
    return oly_finalize();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, finish)
static const struct CMUnitTest tests[] = {
    TEST(products), TEST(einsums),        TEST(convolutions),
    TEST(windows),  TEST(gradients),      TEST(gradients_of_windows),
    TEST(batches),  TEST(bad_parameters), TEST(notations),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
