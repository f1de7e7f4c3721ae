/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations along one dimension and by value. Indexes are int32 from -3 to 3: some count from the end, some are out of
 * range. */
#include "ops_reference.h"
#include <stdlib.h>

#define CALL(label, ...)                                                                                               \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

/* -- along a dimension ---------------------------------------------------------------------------------------------------- */
typedef struct along {
    int axis;
    bool turned; /* descending, or from the end */
} along;

static bool nan_of(number x)
{
    return isnan(creall(x)) || isnan(cimagl(x));
}

/* x sorts before y: NaNs come last. */
static bool before(number x, number y)
{
    return nan_of(x) || nan_of(y) ? !nan_of(x) && nan_of(y) : ops_less(x, y);
}

/* Which element comes at `place` in sorted order: equal ones in their order or, if requested, reversed. */
static int64_t sorted_from(const row *r, const tensor *x, const int64_t *at, bool keeps_order)
{
    const along *a = r->detail;
    int64_t n = x->shape[a->axis], line[64], where[OLY_MAX_RANK];
    memcpy(where, at, sizeof *at * (size_t)x->rank);
    for (int64_t i = 0; i < n; i++)
        line[i] = i;
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0; k--) {
            number one, two;
            where[a->axis] = line[k - 1], one = ops_get(x, where);
            where[a->axis] = line[k], two = ops_get(x, where);
            bool swap = a->turned ? (before(one, two) || (!keeps_order && !before(two, one))) : before(two, one);
            if (!swap)
                break;
            int64_t t = line[k];
            line[k] = line[k - 1], line[k - 1] = t;
        }
    return line[at[a->axis]];
}

static number value_sort(const row *r, const tensor *in, const int64_t *at)
{
    int64_t where[] = {at[0], at[1]};
    where[((const along *)r->detail)->axis] = sorted_from(r, in, at, false);
    return ops_get(&in[r->name[4] == '_'], where); /* sort_together: operands that follow the keys */
}
static number value_argsort(const row *r, const tensor *in, const int64_t *at)
{
    return (long double)sorted_from(r, in, at, true);
}
static number value_top_k(const row *r, const tensor *in, const int64_t *at)
{
    return ops_get(in, AT(at[0], sorted_from(r, in, at, true)));
}
CALL(sort_last, oly_sort(in[0], -1))
CALL(sort_down, oly_sort(in[0], 0, .descending = true))
CALL(argsort_last, oly_argsort(in[0], -1))
CALL(argsort_down, oly_argsort(in[0], 0, .descending = true))
static oly_array call_sort_together(const oly_array *in)
{
    oly_array results[2] = {NULL, NULL};
    oly_sort_together(2, in, 0, 1, results);
    return results[1];
}
static oly_array call_top_k(const oly_array *in)
{
    oly_array values = NULL;
    oly_top_k(in[0], 2, &values, NULL);
    return values;
}
static oly_array call_top_k_where(const oly_array *in)
{
    oly_array where = NULL;
    oly_top_k(in[0], 2, NULL, &where);
    return where;
}

static number value_searchsorted(const row *r, const tensor *in, const int64_t *at)
{
    int64_t n = 0;
    for (int64_t i = 0; i < in->size; i++)
        n += r->detail ? !ops_less(ops_get(&in[1], at), in->element[i]) : ops_less(in->element[i], ops_get(&in[1], at));
    return (long double)n;
}
CALL(searchsorted, oly_searchsorted(oly_sort(in[0], 0), in[1], NULL))
CALL(searchsorted_right, oly_searchsorted(oly_sort(in[0], 0), in[1], "right"))

/* Running results: r->name says of which operation. */
static number value_running(const row *r, const tensor *in, const int64_t *at)
{
    const along *a = r->detail;
    oly_dtype type = ops_result_type(r->result, in->dtype);
    int64_t n = in->shape[a->axis], end = at[a->axis], where[] = {at[0], at[1]};
    number total = 0;
    for (int64_t i = a->turned ? n - 1 : 0; a->turned ? i >= end : i <= end; i += a->turned ? -1 : 1) {
        where[a->axis] = i;
        number x = ops_get(in, where);
        bool first = i == (a->turned ? n - 1 : 0);
        if (r->name[3] == 'l') /* cumlogsumexp */
            total += expl(creall(x));
        else if (first)
            total = x;
        else if (r->name[3] == 's')
            total += x;
        else if (r->name[3] == 'p')
            total *= x;
        else if (nan_of(x) || nan_of(total))
            total = nan_of(total) ? total : x;
        else
            total = (r->name[4] == 'a') == ops_less(total, x) ? x : total;
        if (!element_is_inexact(type))
            total = (long double)ops_wrapped(type, (whole)creall(total));
    }
    return r->name[3] == 'l' ? logl(creall(total)) : total;
}
CALL(cumsum_0, oly_cumsum(in[0], 0))
CALL(cumsum_back, oly_cumsum(in[0], 1, .reverse = true))
CALL(cumprod_1, oly_cumprod(in[0], 1))
CALL(cummax_0, oly_cummax(in[0], 0))
CALL(cummin_back, oly_cummin(in[0], 1, .reverse = true))
CALL(cumlogsumexp_0, oly_cumlogsumexp(in[0], 0))

/* -- by value ---------------------------------------------------------------------------------------------------------------- */
static number fill_value(oly_dtype dtype)
{
    if (element_is_inexact(dtype))
        return NAN;
    if (dtype == OLY_BOOL)
        return 1;
    return element_is_unsigned(dtype) ? ldexpl(1, ops_bits(dtype)) - 1 : -ldexpl(1, ops_bits(dtype) - 1);
}

/* Index i into n elements by mode ('f' fill, 'c' clip, 'w' wrap, 't' oly_take's clip); -1: out of range. */
static int64_t resolved(int64_t i, int64_t n, char mode)
{
    if (mode == 'w')
        return (i % n + n) % n;
    if (i < 0 && mode != 't')
        i += n;
    if (mode == 'f')
        return i < 0 || i >= n ? -1 : i;
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}
static int64_t index_at(const tensor *t, const int64_t *at)
{
    return (int64_t)creall(ops_get(t, at));
}

static number value_take(const row *r, const tensor *in, const int64_t *at)
{
    int64_t i = resolved(index_at(&in[1], at), in->shape[0], ((const char *)r->detail)[0]);
    return i < 0 ? fill_value(in->dtype) : ops_get(in, AT(i, at[1]));
}
static number value_take_along(const row *r, const tensor *in, const int64_t *at)
{
    int64_t i = resolved(index_at(&in[1], at), in->shape[1], ((const char *)r->detail)[0]);
    return i < 0 ? fill_value(in->dtype) : ops_get(in, AT(at[0], i));
}
static number value_at_get(const row *r, const tensor *in, const int64_t *at)
{
    char mode = ((const char *)r->detail)[0];
    int64_t i = resolved(index_at(&in[1], at), in->shape[0], mode);
    int64_t j = resolved(index_at(&in[2], at), in->shape[1], mode);
    return i < 0 || j < 0 ? fill_value(in->dtype) : ops_get(in, AT(i, j));
}
CALL(take_fill, oly_take(in[0], in[1], 0, NULL))
CALL(take_clip, oly_take(in[0], in[1], 0, "clip"))
CALL(take_wrap, oly_take(in[0], in[1], 0, "wrap"))
CALL(take_along, oly_take_along_axis(in[0], in[1], 1, NULL))
CALL(at_get, oly_at_get(in[0], OLY_INDEXES(in[1], in[2]), .mode = "fill"))
CALL(at_get_clip, oly_at_get(in[0], OLY_INDEXES(in[1], in[2])))

/* The updates of rows, one after the other; the letter says how they are combined. */
static number value_at(const row *r, const tensor *in, const int64_t *at)
{
    bool is_bool = in->dtype == OLY_BOOL;
    number x = ops_get(in, at);
    for (int64_t k = 0; k < in[1].size; k++) {
        if (resolved((int64_t)creall(in[1].element[k]), in->shape[0], 'f') != at[0])
            continue;
        number u = ops_get(&in[2], AT(k, at[1]));
        switch (((const char *)r->detail)[0]) {
        case '=': x = u; break;
        case '+': x = is_bool ? creall(x) != 0 || creall(u) != 0 : x + u; break;
        case '*': x = is_bool ? creall(x) != 0 && creall(u) != 0 : x * u; break;
        case '<': x = ops_less(u, x) ? u : x; break;
        default: x = ops_less(x, u) ? u : x; break;
        }
        if (!element_is_inexact(in->dtype))
            x = (long double)ops_wrapped(in->dtype, (whole)creall(x));
    }
    return x;
}
CALL(at_set, oly_at_set(in[0], OLY_INDEXES(in[1]), in[2]))
CALL(at_add, oly_at_add(in[0], OLY_INDEXES(in[1]), in[2]))
CALL(at_mul, oly_at_mul(in[0], OLY_INDEXES(in[1]), in[2]))
CALL(at_min, oly_at_min(in[0], OLY_INDEXES(in[1]), in[2]))
CALL(at_max, oly_at_max(in[0], OLY_INDEXES(in[1]), in[2]))

static number value_segment_sum(const row *r, const tensor *in, const int64_t *at)
{
    number sum = 0;
    (void)r;
    for (int64_t k = 0; k < in[1].size; k++)
        if (creall(in[1].element[k]) == (long double)at[0])
            sum += ops_get(in, AT(k, at[1]));
    return element_is_inexact(in->dtype) ? sum : (number)(long double)ops_wrapped(in->dtype, (whole)creall(sum));
}
CALL(segment_sum, oly_segment_sum(in[0], in[1], 4))
static number value_bincount(const row *r, const tensor *in, const int64_t *at)
{
    int64_t n = 0;
    (void)r;
    for (int64_t k = 0; k < in->size; k++)
        n += creall(in->element[k]) == (long double)at[0] || (at[0] == 0 && creall(in->element[k]) < 0);
    return (long double)n;
}
CALL(bincount, oly_bincount(in[0], 3))

/* -- slices at computed positions ---------------------------------------------------------------------------------- */
static int64_t start_of(const tensor *t, int64_t size, int64_t part)
{
    int64_t i = (int64_t)creall(t->element[0]);
    i += i < 0 ? size : 0;
    return i < 0 ? 0 : i > size - part ? size - part : i;
}
static int64_t less_by_one(int64_t m)
{
    return m > 1 ? m - 1 : 0;
}
static number value_dynamic_slice(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return ops_get(in, AT(at[0] + start_of(&in[1], in->shape[0], less_by_one(in->shape[0])), at[1]));
}
CALL(dynamic_slice,
     oly_dynamic_slice(in[0], OLY_INDEXES(in[1], 0), OLY_EXTENTS(less_by_one(oly_dim(in[0], 0)), oly_dim(in[0], 1))))
static number value_dynamic_update(const row *r, const tensor *in, const int64_t *at)
{
    int64_t i = at[0] - start_of(&in[2], in->shape[0], in[1].shape[0]);
    (void)r;
    return i >= 0 && i < in[1].shape[0] ? ops_get(&in[1], AT(i, at[1])) : ops_get(in, at);
}
CALL(dynamic_update, oly_dynamic_update_slice(in[0], in[1], OLY_INDEXES(in[2], 0)))

#define ALONG(axis, turned) (&(const along){axis, turned})
#define ROW(name, op, shapes, types, label, value, detail)                                                             \
    {                                                                                                                  \
        name, op, shapes, types, "s", call_##label, value, 0, 0, 0, 0, detail                                          \
    }
static const row rows[] = {
    {"sort", "sort", "mn->mn", ALL, "s", call_sort_last, value_sort, -9, 9, 0, ANY, ALONG(1, false)},
    {"sort", "sort", "mn->mn", ALL, "s", call_sort_down, value_sort, 0, 0, 0, 0, ALONG(0, true)},
    {"argsort", "argsort", "mn->mn", ALL, "d", call_argsort_last, value_argsort, 0, 0, 0, 0, ALONG(1, false)},
    {"argsort", "argsort", "mn->mn", ALL, "d", call_argsort_down, value_argsort, -9, 9, 0, ANY, ALONG(0, true)},
    {"sort_together", "argsort", "mn,mn->mn", ALL, "s", call_sort_together, value_sort, 0, 0, 0, 0, ALONG(0, false)},
    {"top_k", "top_k", "nD->n2", ORDERED, "s", call_top_k, value_top_k, 0, 0, 0, 0, ALONG(1, true)},
    {"top_k", "top_k", "nD->n2", ORDERED, ">i", call_top_k_where, value_argsort, -9, 9, 0, 0, ALONG(1, true)},
    {"searchsorted", "searchsorted", "m,nk->nk", ALL, ">i", call_searchsorted, value_searchsorted, 0, 0, 0, 0, NULL},
    {"searchsorted", "searchsorted", "m,nk->nk", ALL, ">i", call_searchsorted_right, value_searchsorted, 0, 0, 0, 0,
     "right"},
    {"cumsum", "cumsum", "mn->mn", ALL, "N", call_cumsum_0, value_running, 0, 0, 0, 0, ALONG(0, false)},
    {"cumsum", "cumsum", "mn->mn", ALL, "N", call_cumsum_back, value_running, 0, 0, 0, 0, ALONG(1, true)},
    {"cumprod", "cumprod", "mn->mn", ALL, "N", call_cumprod_1, value_running, 0.5, 1.5, 32, 0, ALONG(1, false)},
    {"cummax", "cummax", "mn->mn", ORDERED, "s", call_cummax_0, value_running, -9, 9, 0, ANY, ALONG(0, false)},
    {"cummin", "cummin", "mn->mn", ORDERED, "s", call_cummin_back, value_running, -9, 9, 0, ANY, ALONG(1, true)},
    {"cumlogsumexp", "cumlogsumexp", "mn->mn", ORDERED, "f", call_cumlogsumexp_0, value_running, -4, 4, 16, NEAR_ONE,
     ALONG(0, false)},
    ROW("take", "gather", "mn,i:k->kn", ALL, take_fill, value_take, "f"),
    ROW("take", "gather", "mn,i:k->kn", ALL, take_clip, value_take, "t"),
    ROW("take", "gather", "mn,i:k->kn", ALL, take_wrap, value_take, "w"),
    ROW("take_along_axis", "gather", "mn,i:mH->mH", ALL, take_along, value_take_along, "f"),
    {"at_get", "gather", "mn,i:k,i:k->k", ALL, "s", call_at_get, value_at_get, 0, 0, 0, AT_LEAST_ONE, "f"},
    {"at_get", "gather", "mn,i:k,i:k->k", ALL, "s", call_at_get_clip, value_at_get, 0, 0, 0, AT_LEAST_ONE, "c"},
    ROW("at_set", "scatter", "mn,i:k,kn->mn", ALL, at_set, value_at, "="),
    ROW("at_add", "scatter_add", "mn,i:k,kn->mn", ALL, at_add, value_at, "+"),
    ROW("at_mul", "scatter_mul", "mn,i:k,kn->mn", ALL, at_mul, value_at, "*"),
    ROW("at_min", "scatter_min", "mn,i:k,kn->mn", ALL, at_min, value_at, "<"),
    ROW("at_max", "scatter_max", "mn,i:k,kn->mn", ALL, at_max, value_at, ">"),
    ROW("segment_sum", "scatter_add", "kn,i:k->4n", ALL, segment_sum, value_segment_sum, NULL),
    {"bincount", "scatter_add", "k->3", INTEGERS, "d", call_bincount, value_bincount, 0, 0, 0, REFUSES_NONE, NULL},
    ROW("dynamic_slice", "dynamic_slice", "mn,i:->Ln", ALL, dynamic_slice, value_dynamic_slice, NULL),
    ROW("dynamic_update_slice", "dynamic_update_slice", "mn,Ln,i:->mn", ALL, dynamic_update, value_dynamic_update,
        NULL),
};
const row_list ops_indexes = ROW_LIST(rows);
