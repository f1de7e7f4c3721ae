/* SPDX-License-Identifier: BSD-3-Clause */
/* See contract_cases.h. */
#include "contract_cases.h"
#include <inttypes.h>
#include <math.h>

tensor contract_operand[3], contract_expected;
oly_dtype contract_dtype;
oly_mesh contract_mesh;

/* -- the same random numbers on every rank ---- */
uint64_t contract_seed;
int contract_below(int n)
{
    contract_seed = contract_seed * 6364136223846793005u + 1442695040888963407u;
    return n <= 1 ? 0 : (int)(contract_seed >> 33) % n;
}

void contract_fill(tensor *t, int rank, const int64_t *shape)
{
    t->rank = rank;
    t->size = 1;
    for (int d = 0; d < rank; d++)
        t->size *= t->shape[d] = shape[d];
    assert_true(t->size <= CONTRACT_MOST_ELEMENTS);
    for (int64_t i = 0; i < t->size; i++)
        t->element[i] = contract_dtype == OLY_BOOL    ? contract_below(2)
                        : contract_dtype == OLY_UINT8 ? contract_below(4)
                                                      : contract_below(7) - 3;
}

double contract_get(const tensor *t, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * t->shape[d] + at[d];
    return t->element[i];
}

/* Next index of a box; false: that was the last. */
bool contract_next(int rank, const int64_t *shape, int64_t *at)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++at[d] < shape[d])
            return true;
        at[d] = 0;
    }
    return false;
}

/* -- arrays ---- */
oly_array contract_upload(const tensor *t)
{
    static char bytes[16 * CONTRACT_MOST_ELEMENTS];
    for (int64_t i = 0; i < t->size; i++)
        switch (contract_dtype) {
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
    return oly_from_host(bytes, contract_dtype, t->rank, t->shape);
}

static double value_at(const void *bytes, int64_t i)
{
    switch (contract_dtype) {
    case OLY_BOOL:
    case OLY_UINT8: return ((const uint8_t *)bytes)[i];
    case OLY_INT32: return ((const int32_t *)bytes)[i];
    case OLY_INT64: return (double)((const int64_t *)bytes)[i];
    case OLY_FLOAT64: return ((const double *)bytes)[i];
    case OLY_COMPLEX64: return ((const float *)bytes)[2 * i];
    default: return ((const float *)bytes)[i];
    }
}

/* The result of storing a sum in the element type. */
static double reduced(double x)
{
    return contract_dtype == OLY_BOOL ? x != 0 : contract_dtype == OLY_UINT8 ? (double)((int64_t)x & 255) : x;
}

/* Each axis splits one dimension, or none. */
oly_sharding contract_some_sharding(int rank)
{
    const int x = 0, y = 1;
    int of_x = contract_below(rank + 1), of_y = contract_below(rank + 1), list[OLY_MAX_RANK][3];
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
    return oly_named_axes(contract_mesh, rank, dims);
}

/* -- running one case: eager, compiled, compiled over the mesh ---- */
static apply *applied;
int contract_n_operands;
static bool views;
char contract_what[400];

/* Operands are passed transposed and with elements around them; the function slices them out. */
static oly_array as_view(oly_array x, int k)
{
    int order[OLY_MAX_RANK], rank = contract_operand[k].rank;
    if (!views || rank == 0)
        return x;
    for (int d = 0; d < rank; d++)
        order[d] = rank - 1 - d;
    int64_t start[OLY_MAX_RANK], limit[OLY_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        start[d] = 1;
        limit[d] = 1 + contract_operand[k].shape[rank - 1 - d];
    }
    return oly_transpose_axes(oly_slice_ranges(x, start, limit, NULL), rank, order);
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    oly_array seen[3];
    for (int k = 0; k < contract_n_operands; k++)
        seen[k] = as_view(in[k], k);
    out[0] = applied(seen);
}

static oly_array surrounded(const tensor *t)
{
    static tensor wide;
    int64_t at[OLY_MAX_RANK] = {0}, contract_inner[OLY_MAX_RANK], shape[OLY_MAX_RANK];
    if (!views || t->rank == 0)
        return contract_upload(t);
    for (int d = 0; d < t->rank; d++)
        shape[d] = t->shape[t->rank - 1 - d] + 2;
    contract_fill(&wide, t->rank, shape);
    for (int64_t i = 0; i < wide.size; i++, contract_next(wide.rank, wide.shape, at)) {
        bool inside = true;
        for (int d = 0; d < t->rank; d++) {
            contract_inner[t->rank - 1 - d] = at[d] - 1;
            inside = inside && at[d] >= 1 && at[d] <= wide.shape[d] - 2;
        }
        if (inside)
            wide.element[i] = contract_get(t, contract_inner);
    }
    return contract_upload(&wide);
}

static void check(oly_array result, const char *how)
{
    static char bytes[16 * CONTRACT_MOST_ELEMENTS];
    if (!result)
        fail_msg("%s, %s: %s", contract_what, how, oly_last_error());
    assert_int_equal(oly_rank(result), contract_expected.rank);
    for (int d = 0; d < contract_expected.rank; d++)
        if (oly_dim(result, d) != contract_expected.shape[d])
            fail_msg("%s, %s: dimension %d is %" PRId64 ", must be %" PRId64, contract_what, how, d, oly_dim(result, d),
                     contract_expected.shape[d]);
    assert_int_equal(
        oly_process_allgather(result, bytes, (size_t)contract_expected.size * oly_dtype_size(contract_dtype)), OLY_OK);
    for (int64_t i = 0; i < contract_expected.size; i++)
        if (value_at(bytes, i) != reduced(contract_expected.element[i]))
            fail_msg("%s, %s: element %" PRId64 " is %.17g, must be %.17g", contract_what, how, i, value_at(bytes, i),
                     reduced(contract_expected.element[i]));
}

bool contract_only_shapes; /* the values are checked elsewhere */

void contract_run(int n, apply *f)
{
    if (contract_only_shapes)
        return;
    char how[300] = "over the mesh";
    applied = f;
    contract_n_operands = n;
    OLY_SCOPE
    {
        oly_array in[3], out;
        views = false;
        for (int k = 0; k < n; k++)
            in[k] = contract_upload(&contract_operand[k]);
        check(f(in), "eager");
        oly_fn fn = oly_jit(traced, n, 1);
        for (int round = 0; round < 3; round++) {
            views = round == 2;
            for (int k = 0; k < n; k++) {
                oly_array x = surrounded(&contract_operand[k]);
                oly_sharding s = contract_some_sharding(contract_operand[k].rank);
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

void contract_choose_dtype(void)
{
    static const oly_dtype some[] = {OLY_FLOAT32, OLY_FLOAT32, OLY_FLOAT64, OLY_INT32,    OLY_UINT8,
                                     OLY_BOOL,    OLY_INT64,   OLY_FLOAT16, OLY_COMPLEX64};
    contract_dtype = some[contract_below(sizeof some / sizeof *some)];
    if (contract_dtype == OLY_FLOAT16)
        contract_dtype = OLY_FLOAT32;
}

double contract_inner(const tensor *t, oly_array x)
{
    static double bytes[CONTRACT_MOST_ELEMENTS];
    double sum = 0;
    assert_int_equal(oly_process_allgather(x, bytes, (size_t)t->size * sizeof *bytes), OLY_OK);
    for (int64_t i = 0; i < t->size; i++)
        sum += bytes[i] * t->element[i];
    return sum;
}

/* -- dot_general ---- */
static oly_dot_options dims;
static int list[4][OLY_MAX_RANK];

oly_array contract_apply_dot(const oly_array *in)
{
    return oly_dot_general_with(oly_operand_array(in[0]), oly_operand_array(in[1]), dims);
}

void contract_shuffle(int n, int *order)
{
    for (int k = 0; k < n; k++)
        order[k] = k;
    for (int k = n - 1; k > 0; k--) {
        int j = contract_below(k + 1), keep = order[k];
        order[k] = order[j];
        order[j] = keep;
    }
}

void contract_one_dot(void)
{
    int n_batch = contract_below(3), n_contract = contract_below(3), n_free[2] = {contract_below(3), contract_below(3)},
        most = n_batch + n_contract > 3 ? 3 : 5;
    int64_t batch[2], contract[2], shape[2][OLY_MAX_RANK];
    int of[2][OLY_MAX_RANK], label[2][OLY_MAX_RANK];
    for (int k = 0; k < 2; k++) {
        batch[k] = 1 + contract_below(most - 1);
        contract[k] = contract_below(12) ? 1 + contract_below(most + 1) : 0;
    }
    for (int o = 0; o < 2; o++) {
        int rank = n_batch + n_contract + n_free[o];
        contract_shuffle(rank, of[o]);
        for (int d = 0; d < rank; d++) {
            int at = of[o][d];
            bool is_batch = d < n_batch, is_contract = !is_batch && d < n_batch + n_contract;
            int k = is_batch ? d : d - n_batch;
            shape[o][at] = is_batch ? batch[k] : is_contract ? contract[k] : 1 + contract_below(most);
            if (is_batch)
                list[2 + o][k] = at;
            else if (is_contract)
                list[o][k] = contract_below(2) ? at : at - rank;
        }
        contract_fill(&contract_operand[o], rank, shape[o]);
    }
    dims = (oly_dot_options){.n_contracting = n_contract,
                             .a_contracting = list[0],
                             .b_contracting = list[1],
                             .n_batch = n_batch,
                             .a_batch = list[2],
                             .b_batch = list[3]};
    /* labels: batch 0.., then free dimensions of both; contracted ones last */
    contract_expected.rank = 0;
    for (int k = 0; k < n_batch; k++)
        contract_expected.shape[contract_expected.rank++] = batch[k];
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < contract_operand[o].rank; d++) {
            int j = 0;
            while (of[o][j] != d)
                j++;
            if (j < n_batch) {
                label[o][d] = j;
            } else if (j < n_batch + n_contract) {
                label[o][d] = 100 + j - n_batch;
            } else {
                label[o][d] = contract_expected.rank;
                contract_expected.shape[contract_expected.rank++] = contract_operand[o].shape[d];
            }
        }
    contract_expected.size = 1;
    for (int d = 0; d < contract_expected.rank; d++)
        contract_expected.size *= contract_expected.shape[d];
    assert_true(contract_expected.size <= CONTRACT_MOST_ELEMENTS);
    int64_t at[8] = {0}, sub[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < contract_expected.size;
         i++, contract_next(contract_expected.rank, contract_expected.shape, at)) {
        double sum = 0;
        memset(sub, 0, sizeof sub);
        bool more = true;
        for (int k = 0; k < n_contract; k++)
            more = more && contract[k] > 0;
        for (; more; more = contract_next(n_contract, contract, sub)) {
            double product = 1;
            for (int o = 0; o < 2; o++) {
                int64_t where[OLY_MAX_RANK];
                for (int d = 0; d < contract_operand[o].rank; d++)
                    where[d] = label[o][d] >= 100 ? sub[label[o][d] - 100] : at[label[o][d]];
                product *= contract_get(&contract_operand[o], where);
            }
            sum += product;
        }
        contract_expected.element[i] = sum;
    }
    snprintf(contract_what, sizeof contract_what, "dot_general case with %d batch, %d contracting, %d and %d free",
             n_batch, n_contract, n_free[0], n_free[1]);
    contract_run(2, contract_apply_dot);
}

/* -- convolutions and windows ---- */
static struct {
    int rank;
    int64_t size[3], stride[3], padding[6], base[3], dilation[3], groups, batch_groups;
} window;
static const char *reduction;

oly_array contract_apply_conv(const oly_array *in)
{
    return oly_conv(in[0], in[1], .n_list = window.rank, .stride_list = window.stride, .padding_list = window.padding,
                    .lhs_dilation_list = window.base, .rhs_dilation_list = window.dilation,
                    .feature_group_count = window.groups, .batch_group_count = window.batch_groups);
}
oly_array contract_apply_window(const oly_array *in)
{
    return oly_reduce_window(in[0], reduction, .n_list = window.rank, .window_list = window.size,
                             .stride_list = window.stride, .padding_list = window.padding,
                             .base_dilation_list = window.base, .window_dilation_list = window.dilation);
}

/* Chooses a window over these extents that has a position or none; false: the padding would remove more than there
 * is. */
static bool choose_window(int rank, const int64_t *extent, int64_t *places)
{
    window.rank = rank;
    for (int d = 0; d < rank; d++) {
        window.size[d] = 1 + contract_below(4);
        window.stride[d] = 1 + contract_below(3);
        window.base[d] = contract_below(3) ? 1 : 1 + contract_below(3);
        window.dilation[d] = contract_below(3) ? 1 : 1 + contract_below(3);
        window.padding[2 * d] = contract_below(6) - 2;
        window.padding[2 * d + 1] = contract_below(6) - 2;
        int64_t padded =
            (extent[d] ? (extent[d] - 1) * window.base[d] + 1 : 0) + window.padding[2 * d] + window.padding[2 * d + 1];
        int64_t seen = (window.size[d] - 1) * window.dilation[d] + 1;
        if (padded < 0)
            return false;
        places[d] = padded < seen ? 0 : (padded - seen) / window.stride[d] + 1;
    }
    return true;
}

/* The element that a tap reads; false: padding. */
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

bool contract_one_conv(void)
{
    int rank = 1 + contract_below(2);
    int64_t groups = contract_below(2) ? 1 : 1 + contract_below(3), per_group = 1 + contract_below(3),
            in_group = 1 + contract_below(3), batch = 1 + contract_below(3);
    bool of_batch = contract_below(4) == 0;
    window.groups = of_batch ? 1 : groups;
    window.batch_groups = of_batch ? groups : 1;
    int64_t x[5] = {batch * window.batch_groups, in_group * window.groups}, k[5] = {per_group * groups, in_group};
    for (int d = 0; d < rank; d++)
        x[2 + d] = rank == 1 ? 1 + contract_below(24) : 1 + contract_below(9);
    contract_expected.rank = rank + 2;
    contract_expected.shape[0] = batch;
    contract_expected.shape[1] = k[0];
    if (!choose_window(rank, x + 2, contract_expected.shape + 2))
        return false;
    for (int d = 0; d < rank; d++)
        k[2 + d] = window.size[d];
    contract_fill(&contract_operand[0], rank + 2, x);
    contract_fill(&contract_operand[1], rank + 2, k);
    contract_expected.size = 1;
    for (int d = 0; d < contract_expected.rank; d++)
        contract_expected.size *= contract_expected.shape[d];
    int64_t at[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < contract_expected.size;
         i++, contract_next(contract_expected.rank, contract_expected.shape, at)) {
        int64_t tap[3] = {0}, group = at[1] / per_group;
        double sum = 0;
        do {
            for (int64_t c = 0; c < in_group; c++) {
                int64_t where[5] = {of_batch ? group * batch + at[0] : at[0], of_batch ? c : group * in_group + c};
                int64_t kernel[5] = {at[1], c, tap[0], tap[1], tap[2]};
                if (sees(&contract_operand[0], 2, at + 2, tap, where))
                    sum += contract_get(&contract_operand[0], where) * contract_get(&contract_operand[1], kernel);
            }
        } while (contract_next(rank, window.size, tap));
        contract_expected.element[i] = sum;
    }
    snprintf(contract_what, sizeof contract_what,
             "conv %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " stride %" PRId64 " padding %" PRId64 ",%" PRId64
             " dilations %" PRId64 " %" PRId64 " groups %" PRId64 " %" PRId64 " size %" PRId64,
             x[0], x[1], x[2], rank > 1 ? x[3] : 1, window.stride[0], window.padding[0], window.padding[1],
             window.base[0], window.dilation[0], window.groups, window.batch_groups, window.size[0]);
    contract_run(2, contract_apply_conv);
    return true;
}

bool contract_one_window(void)
{
    static const char *const names[] = {"sum", "max", "min", "prod"};
    int rank = 1 + contract_below(3), outer = contract_below(3);
    int64_t x[5];
    reduction = names[contract_below(4)];
    for (int d = 0; d < outer; d++)
        x[d] = contract_expected.shape[d] = 1 + contract_below(4);
    for (int d = 0; d < rank; d++)
        x[outer + d] = rank == 1 ? 1 + contract_below(24) : 1 + contract_below(7);
    contract_expected.rank = outer + rank;
    if (!choose_window(rank, x + outer, contract_expected.shape + outer))
        return false;
    contract_fill(&contract_operand[0], outer + rank, x);
    contract_expected.size = 1;
    for (int d = 0; d < contract_expected.rank; d++)
        contract_expected.size *= contract_expected.shape[d];
    double none = *reduction == 's' ? 0 : *reduction == 'p' ? 1 : 0;
    if (reduction[0] == 'm')
        none = contract_dtype == OLY_INT32 ? (double)(reduction[1] == 'a' ? INT32_MIN : INT32_MAX)
               : reduction[1] == 'a'       ? -INFINITY
                                           : INFINITY;
    int64_t at[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < contract_expected.size;
         i++, contract_next(contract_expected.rank, contract_expected.shape, at)) {
        int64_t tap[3] = {0}, where[5] = {0};
        double value = none;
        memcpy(where, at, sizeof *where * (size_t)outer);
        do {
            if (!sees(&contract_operand[0], outer, at + outer, tap, where))
                continue;
            double e = contract_get(&contract_operand[0], where);
            value = *reduction == 's'     ? value + e
                    : *reduction == 'p'   ? value * e
                    : reduction[1] == 'a' ? (e > value ? e : value)
                                          : (e < value ? e : value);
        } while (contract_next(rank, window.size, tap));
        contract_expected.element[i] = value;
    }
    snprintf(contract_what, sizeof contract_what, "window %s over %d of %d dimensions", reduction, rank, outer + rank);
    contract_run(1, contract_apply_window);
    return true;
}

const char *contract_window_reduction(void)
{
    return reduction;
}

bool contract_window_is_inside(void)
{
    for (int d = 0; d < window.rank; d++)
        if (window.padding[2 * d] > 0 || window.padding[2 * d + 1] > 0 || window.base[d] != 1)
            return false;
    return true;
}

int contract_start(void **state)
{
    int ready = check_start(state);
    contract_mesh = oly_make_mesh("x=2, y=4");
    return contract_mesh ? ready : -1;
}
