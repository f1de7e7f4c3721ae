/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions and operations derived from them, one element of the result at a time. */
#include "ops_reference.h"

/* Which elements a row reduces. */
typedef struct over {
    unsigned axes; /* a bit for each dimension */
    bool keepdims;
    int what; /* letter: see the functions below */
} over;

/* The reduction of the elements of one result. */
typedef struct walker {
    number sum, largest, smallest, product;
    number exponentials;
    long double deviations;
    bool any, all;
    int64_t count;
} walker;

static bool nan_of(number x)
{
    return isnan(creall(x)) || isnan(cimagl(x));
}

static number larger(number a, number b)
{
    return nan_of(a) ? a : nan_of(b) ? b : ops_less(a, b) ? b : a;
}
static number smaller(number a, number b)
{
    return nan_of(a) ? a : nan_of(b) ? b : ops_less(b, a) ? b : a;
}

/* The index of the next element of x reduced into `where`; false after the last. */
static bool advance(const tensor *x, unsigned axes, int64_t *where)
{
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!(axes >> d & 1))
            continue;
        if (++where[d] < x->shape[d])
            return true;
        where[d] = 0;
    }
    return false;
}

static void start(const tensor *x, const over *o, const int64_t *at, int64_t *where)
{
    for (int d = 0, k = 0; d < x->rank; d++) {
        bool gone = o->axes >> d & 1;
        where[d] = gone ? 0 : at[k];
        k += !gone || o->keepdims;
    }
}

static number wrapped(oly_dtype dtype, number x)
{
    return element_is_inexact(dtype) ? x : (number)(long double)ops_wrapped(dtype, (whole)creall(x));
}

/* Products of integers wrap on the way. */
static walker walk(const row *r, const tensor *x, const int64_t *at)
{
    const over *o = r->detail;
    oly_dtype sums = ops_result_type("t", x->dtype);
    walker w = {.product = 1, .all = true};
    int64_t where[OLY_MAX_RANK];
    if (x->size == 0)
        return w;
    start(x, o, at, where);
    do {
        number e = ops_get(x, where);
        w.largest = w.count ? larger(w.largest, e) : e;
        w.smallest = w.count ? smaller(w.smallest, e) : e;
        w.sum += e;
        w.product = wrapped(sums, w.product * e);
        w.any = w.any || creall(e) != 0;
        w.all = w.all && creall(e) != 0;
        w.count++;
    } while (advance(x, o->axes, where));
    number mean = w.sum / (long double)w.count;
    start(x, o, at, where);
    do {
        number e = ops_get(x, where);
        w.deviations += creall(e - mean) * creall(e - mean) + cimagl(e - mean) * cimagl(e - mean);
        w.exponentials += cexpl(e);
    } while (advance(x, o->axes, where));
    return w;
}

static number value_reduced(const row *r, const tensor *in, const int64_t *at)
{
    walker w = walk(r, in, at);
    long double n = (long double)w.count;
    switch (((const over *)r->detail)->what) {
    case 's': return wrapped(ops_result_type("t", in->dtype), w.sum);
    case 'p': return w.product;
    case '>': return w.largest;
    case '<': return w.smallest;
    case 'm': return w.count ? w.sum / n : NAN;
    case '?': return w.any;
    case '&': return w.all;
    case 'v': return w.count ? w.deviations / n : NAN;
    case 'd': return w.count ? sqrtl(w.deviations / n) : NAN;
    case '1': return w.count > 1 ? w.deviations / (n - 1) : NAN;
    default: return clogl(w.exponentials); /* 'e' */
    }
}

#define CALL(label, ...)                                                                                               \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }
CALL(sum_all, oly_sum(in[0]))
CALL(sum_0, oly_sum(in[0], OLY_AXES(0)))
CALL(sum_1, oly_sum(in[0], .axes = "1"))
CALL(sum_last, oly_sum(in[0], OLY_AXES(-1)))
CALL(sum_02, oly_sum(in[0], .axes = "0, -1"))
CALL(sum_1_kept, oly_sum(in[0], OLY_AXES(1), .keepdims = true))
CALL(sum_none, oly_sum(in[0], OLY_AXES()))
CALL(prod_1, oly_prod(in[0], OLY_AXES(1)))
CALL(prod_all, oly_prod(in[0]))
CALL(max_all, oly_max(in[0]))
CALL(max_0, oly_max(in[0], OLY_AXES(0)))
CALL(min_1, oly_min(in[0], OLY_AXES(1)))
CALL(min_all_kept, oly_min(in[0], .keepdims = true))
CALL(mean_all, oly_mean(in[0]))
CALL(mean_0, oly_mean(in[0], OLY_AXES(0)))
CALL(any_1, oly_any(in[0], OLY_AXES(1)))
CALL(all_0, oly_all(in[0], OLY_AXES(0)))
CALL(var_0, oly_var(in[0], OLY_AXES(0)))
CALL(var_one_less, oly_var(in[0], OLY_AXES(1), .ddof = 1))
CALL(std_all, oly_std(in[0]))
CALL(logsumexp_1, oly_logsumexp(in[0], OLY_AXES(1)))

/* -- along an axis --------------------------------------------------------------------------------------------------- */
static number value_softmax(const row *r, const tensor *in, const int64_t *at)
{
    int axis = *(const int *)r->detail;
    int64_t where[] = {at[0], at[1]};
    number total = 0, top = -INFINITY;
    for (where[axis] = 0; where[axis] < in->shape[axis]; where[axis]++)
        top = larger(top, ops_get(in, where));
    for (where[axis] = 0; where[axis] < in->shape[axis]; where[axis]++)
        total += cexpl(ops_get(in, where) - top);
    number x = ops_get(in, at) - top;
    return r->name[0] == 'l' ? x - clogl(total) : cexpl(x) / total;
}
CALL(softmax, oly_softmax(in[0], -1))
CALL(log_softmax, oly_log_softmax(in[0], 0))

static number value_one_hot(const row *r, const tensor *in, const int64_t *at)
{
    (void)r;
    return creall(ops_get(in, AT(at[0], at[2]))) == (long double)at[1];
}
CALL(one_hot, oly_one_hot(in[0], 3, OLY_FLOAT32, 1))

/* Index of the first NaN, else of the first largest (smallest), among the reduced elements. */
static number value_argument(const row *r, const tensor *in, const int64_t *at)
{
    const over *o = r->detail;
    int64_t where[OLY_MAX_RANK], found = 0, n = 0;
    number best = 0;
    start(in, o, at, where);
    do {
        number e = ops_get(in, where);
        if (n == 0 || (!nan_of(best) && (nan_of(e) || (o->what == '>' ? ops_less(best, e) : ops_less(e, best)))))
            best = e, found = n;
        n++;
    } while (advance(in, o->axes, where));
    return (long double)found;
}
CALL(argmax_all, oly_argmax(in[0]))
CALL(argmax_1, oly_argmax(in[0], OLY_AXES(1)))
CALL(argmin_0, oly_argmin(in[0], OLY_AXES(0)))

#define OVER(axes, keepdims, what) (&(const over){axes, keepdims, what})
static const int last = 1, first = 0;
static const row rows[] = {
    {"sum", "reduce_sum", "mnk->", ALL, "t", call_sum_all, value_reduced, 0, 0, 0, 0, OVER(7, false, 's')},
    {"sum", "reduce_sum", "mn->n", ALL, "t", call_sum_0, value_reduced, 0, 0, 0, 0, OVER(1, false, 's')},
    {"sum", "reduce_sum", "mn->m", ALL, "t", call_sum_1, value_reduced, 0, 0, 0, 0, OVER(2, false, 's')},
    {"sum", "reduce_sum", "mnk->mn", ALL, "t", call_sum_last, value_reduced, 0, 0, 0, 0, OVER(4, false, 's')},
    {"sum", "reduce_sum", "mnk->n", ALL, "t", call_sum_02, value_reduced, 0, 0, 0, 0, OVER(5, false, 's')},
    {"sum", "reduce_sum", "mnk->m1k", ALL, "t", call_sum_1_kept, value_reduced, 0, 0, 0, 0, OVER(2, true, 's')},
    {"sum", NULL, "mn->mn", ALL, "t", call_sum_none, value_reduced, 0, 0, 0, 0, OVER(0, false, 's')},
    {"prod", "reduce_prod", "mn->m", ALL, "t", call_prod_1, value_reduced, 0.5, 1.5, 32, 0, OVER(2, false, 'p')},
    {"prod", "reduce_prod", "mk->", ALL, "t", call_prod_all, value_reduced, 1, 1.25, 128, 0, OVER(3, false, 'p')},
    {"max", "reduce_max", "mn->", ALL, "s", call_max_all, value_reduced, 0, 0, 0, AT_LEAST_ONE, OVER(3, false, '>')},
    {"max", "reduce_max", "mn->n", ALL, "s", call_max_0, value_reduced, -9, 9, 0, AT_LEAST_ONE | ANY,
     OVER(1, false, '>')},
    {"min", "reduce_min", "mn->m", ALL, "s", call_min_1, value_reduced, -9, 9, 0, AT_LEAST_ONE | ANY,
     OVER(2, false, '<')},
    {"min", "reduce_min", "mnk->111", ALL, "s", call_min_all_kept, value_reduced, 0, 0, 0, AT_LEAST_ONE,
     OVER(7, true, '<')},
    {"mean", "reduce_sum", "mn->", ALL, "f", call_mean_all, value_reduced, 0, 0, 2, 0, OVER(3, false, 'm')},
    {"mean", "reduce_sum", "mn->n", ALL, "f", call_mean_0, value_reduced, 0, 0, 2, 0, OVER(1, false, 'm')},
    {"any", "reduce_or", "mn->m", ALL, ">b", call_any_1, value_reduced, -1, 0.1, 0, 0, OVER(2, false, '?')},
    {"all", "reduce_and", "mn->n", ALL, ">b", call_all_0, value_reduced, -0.1, 1, 0, 0, OVER(1, false, '&')},
    {"var", "reduce_sum", "mn->n", ALL, "R", call_var_0, value_reduced, -9, 9, 8, 0, OVER(1, false, 'v')},
    {"var", "reduce_sum", "mn->m", ALL, "R", call_var_one_less, value_reduced, -9, 9, 8, 0, OVER(2, false, '1')},
    {"std", "reduce_sum", "mn->", ALL, "R", call_std_all, value_reduced, -9, 9, 8, 0, OVER(3, false, 'd')},
    {"logsumexp", "reduce_sum", "mn->m", ALL, "f", call_logsumexp_1, value_reduced, -9, 9, 8, NEAR_ONE | REFUSES_NONE,
     OVER(2, false, 'e')},
    {"softmax", "reduce_sum", "mn->mn", ALL, "f", call_softmax, value_softmax, -4, 4, 8, 0, &last},
    {"log_softmax", "reduce_sum", "mn->mn", ALL, "f", call_log_softmax, value_softmax, -9, 9, 16, NEAR_ONE, &first},
    {"one_hot", "eq", "mn->m3n", ORDERED, ">f", call_one_hot, value_one_hot, -1, 3, 0, REFUSES_NONE, NULL},
    {"argmax", "argmax", "mn->", ORDERED, "d", call_argmax_all, value_argument, 0, 0, 0, AT_LEAST_ONE,
     OVER(3, false, '>')},
    {"argmax", "argmax", "mn->m", ORDERED, "d", call_argmax_1, value_argument, -9, 9, 0, AT_LEAST_ONE | ANY,
     OVER(2, false, '>')},
    {"argmin", "argmin", "mn->n", ORDERED, "d", call_argmin_0, value_argument, -9, 9, 0, AT_LEAST_ONE | ANY,
     OVER(1, false, '<')},
};
const row_list ops_reductions = ROW_LIST(rows);
