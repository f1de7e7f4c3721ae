/* run: layouts  What every public operation promises: the values that plain loops give, for each element type and each
 * way to shard its operands over a mesh x=2, y=4, with sizes that divide, that do not, of 1 and of 0; eager and compiled.
 *
 * A row of the table gives the shapes in letters, the call, and a function from an index of the result to its value.
 * Letters: m, n, k sizes; M = m - 2; H = n / 2 rounded up; D = 2 m; P = m n; 1. Operands are whole numbers from -3 to 3
 * (quarters for floating types), so that sums are exact. */
#include "check.h"
#include <inttypes.h>
#include <math.h>
#include <olympus.h>

enum { MOST = 3, AT_LEAST_ONE = 1, ROUNDED = 2 };

typedef struct tensor {
    oly_dtype dtype;
    int rank;
    int64_t shape[OLY_MAX_RANK], size;
    double element[2000];
} tensor;

typedef struct row {
    const char *name, *shapes; /* "mn,nk->mk" */
    const char *types;         /* of the operands, letters as in type_letters; the others are refused */
    char result; /* letter of the result's type, or 's': that of the operands, 'f': floating, 't': bools as int32 */
    oly_array (*call)(const oly_array *in);
    double (*value)(const tensor *in, const int64_t *at);
    int flags; /* AT_LEAST_ONE: reduces, not of nothing; ROUNDED: right to a few units in the last place */
} row;

static const char type_letters[] = "b12iI34uUhBfFcC"; /* in the order of the element types */

/* -- reference
 * --------------------------------------------------------------------------------------------- */
static double get(const tensor *t, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++)
        i = i * t->shape[d] + at[d];
    return t->element[i];
}
#define AT(...) ((const int64_t[]){__VA_ARGS__})

/* Operand k at the index of a result of the rank of operand 0; dimensions of size 1 repeat, missing ones too. */
static double repeated(const tensor *in, int k, const int64_t *at)
{
    int64_t where[OLY_MAX_RANK];
    int rank = in[0].rank > in[k].rank ? in[0].rank : in[k].rank;
    if (in[1].rank > rank && k < 2)
        rank = in[1].rank;
    for (int d = 0; d < in[k].rank; d++)
        where[d] = in[k].shape[d] == 1 ? 0 : at[rank - in[k].rank + d];
    return get(&in[k], where);
}

#define CALL1(name, expression)                                                                                        \
    static oly_array call_##name(const oly_array *in)                                                                  \
    {                                                                                                                  \
        return oly_##name(in[0]);                                                                                      \
    }                                                                                                                  \
    static double value_##name(const tensor *in, const int64_t *at)                                                    \
    {                                                                                                                  \
        double x = get(in, at);                                                                                        \
        return expression;                                                                                             \
    }
CALL1(neg, -x)
CALL1(abs, fabs(x))
CALL1(sign, (x > 0) - (x < 0))
CALL1(exp, exp(x))
CALL1(log, log(x))
CALL1(sqrt, sqrt(x))
CALL1(sin, sin(x))
CALL1(cos, cos(x))
CALL1(tanh, tanh(x))
CALL1(sigmoid, 1 / (1 + exp(-x)))
CALL1(relu, x > 0 ? x : 0)
CALL1(logical_not, x == 0)

#define CALL2(name, expression)                                                                                        \
    static oly_array call_##name(const oly_array *in)                                                                  \
    {                                                                                                                  \
        return oly_##name(in[0], in[1]);                                                                               \
    }                                                                                                                  \
    static double value_##name(const tensor *in, const int64_t *at)                                                    \
    {                                                                                                                  \
        double x = repeated(in, 0, at), y = repeated(in, 1, at);                                                       \
        return expression;                                                                                             \
    }
CALL2(add, in->dtype == OLY_BOOL ? x || y : x + y)
CALL2(sub, x - y)
CALL2(mul, (x * y))
CALL2(div, x / y)
CALL2(max2, x > y ? x : y)
CALL2(min2, x < y ? x : y)
CALL2(eq, x == y)
CALL2(ne, x != y)
CALL2(lt, x < y)
CALL2(le, x <= y)
CALL2(gt, x > y)
CALL2(ge, x >= y)

static oly_array call_pow(const oly_array *in)
{
    return oly_pow(in[0], 3);
}
static double value_pow(const tensor *in, const int64_t *at)
{
    double x = get(in, at);
    return x * x * x;
}
static oly_array call_numbers(const oly_array *in)
{
    return oly_add(oly_mul(2, in[0]), 1);
}
static double value_numbers(const tensor *in, const int64_t *at)
{
    return 2 * get(in, at) + 1;
}
static oly_array call_where(const oly_array *in)
{
    return oly_where(in[0], in[1], in[2]);
}
static double value_where(const tensor *in, const int64_t *at)
{
    return repeated(in, 0, at) != 0 ? repeated(in, 1, at) : repeated(in, 2, at);
}
static double value_same(const tensor *in, const int64_t *at)
{
    return get(in, at);
}
static double value_whole(const tensor *in, const int64_t *at)
{
    return trunc(get(in, at));
}
static double value_truth(const tensor *in, const int64_t *at)
{
    return get(in, at) != 0;
}
static oly_array call_to_bool(const oly_array *in)
{
    return oly_astype(in[0], OLY_BOOL);
}
static oly_array call_to_int32(const oly_array *in)
{
    return oly_astype(in[0], OLY_INT32);
}
static oly_array call_to_int64(const oly_array *in)
{
    return oly_astype(in[0], OLY_INT64);
}
static oly_array call_to_float32(const oly_array *in)
{
    return oly_astype(in[0], OLY_FLOAT32);
}
static oly_array call_to_float64(const oly_array *in)
{
    return oly_astype(in[0], OLY_FLOAT64);
}

/* Reductions: over the axes that the result's letters lack. */
typedef double combine(double a, double b);
static double plus(double a, double b)
{
    return a + b;
}
static double times(double a, double b)
{
    return a * b;
}
static double larger(double a, double b)
{
    return a > b ? a : b;
}
static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double reduce(const tensor *x, unsigned axes, bool keepdims, const int64_t *at, double start, combine *join)
{
    int64_t where[OLY_MAX_RANK] = {0};
    double total = start;
    for (int d = 0, k = 0; d < x->rank; d++)
        if (!(axes >> d & 1) || keepdims)
            where[d] = at[k++];
    for (;;) {
        bool any = true;
        for (int d = 0; d < x->rank; d++)
            any = any && x->shape[d] > 0;
        if (any)
            total = join(total, get(x, where));
        int d = x->rank - 1;
        for (; d >= 0; d--) {
            if (!(axes >> d & 1))
                continue;
            if (++where[d] < x->shape[d])
                break;
            where[d] = 0;
        }
        if (d < 0)
            return total;
    }
}

#define REDUCE(label, function, axes, keepdims, start, combine, ...)                                                   \
    static oly_array call_##label(const oly_array *in)                                                                 \
    {                                                                                                                  \
        return function(in[0], __VA_ARGS__);                                                                           \
    }                                                                                                                  \
    static double value_##label(const tensor *in, const int64_t *at)                                                   \
    {                                                                                                                  \
        return reduce(in, axes, keepdims, at, start, combine);                                                         \
    }
REDUCE(sum_all, oly_sum, 7, false, 0, plus, .keepdims = false)
REDUCE(sum_0, oly_sum, 1, false, 0, plus, OLY_AXES(0))
REDUCE(sum_1, oly_sum, 2, false, 0, plus, .axes = "1")
REDUCE(sum_last, oly_sum, 4, false, 0, plus, OLY_AXES(-1))
REDUCE(sum_02, oly_sum, 5, false, 0, plus, .axes = "0, -1")
REDUCE(sum_1_kept, oly_sum, 2, true, 0, plus, OLY_AXES(1), .keepdims = true)
REDUCE(prod_1, oly_prod, 2, false, 1, times, OLY_AXES(1))
REDUCE(max_all, oly_max, 7, false, -INFINITY, larger, .keepdims = false)
REDUCE(max_0, oly_max, 1, false, -INFINITY, larger, OLY_AXES(0))
REDUCE(min_1, oly_min, 2, false, INFINITY, smaller, OLY_AXES(1))
REDUCE(min_all_kept, oly_min, 7, true, INFINITY, smaller, .keepdims = true)
static oly_array call_mean_0(const oly_array *in)
{
    return oly_mean(in[0], OLY_AXES(0));
}
static double value_mean_0(const tensor *in, const int64_t *at)
{
    return reduce(in, 1, false, at, 0, plus) / (double)in->shape[0];
}

/* Products. */
static oly_array call_matmul(const oly_array *in)
{
    return oly_matmul(in[0], in[1]);
}
static oly_array call_dot(const oly_array *in)
{
    return oly_dot(in[0], in[1]);
}
static oly_array call_matmul_turned(const oly_array *in)
{
    return oly_matmul(oly_transpose(in[0]), oly_transpose(in[1]));
}
static double value_matmul(const tensor *in, const int64_t *at)
{
    double total = 0;
    for (int64_t k = 0; k < in[1].shape[0]; k++)
        total += get(&in[0], AT(at[0], k)) * get(&in[1], AT(k, at[1]));
    return total;
}
static double value_matmul_turned(const tensor *in, const int64_t *at)
{
    double total = 0;
    for (int64_t k = 0; k < in[0].shape[0]; k++)
        total += get(&in[0], AT(k, at[0])) * get(&in[1], AT(at[1], k));
    return total;
}
static double value_batched(const tensor *in, const int64_t *at)
{
    double total = 0;
    for (int64_t k = 0; k < in[0].shape[2]; k++)
        total += get(&in[0], AT(at[0], at[1], k)) * get(&in[1], AT(at[0], k, at[2]));
    return total;
}
static double value_matrix_vector(const tensor *in, const int64_t *at)
{
    double total = 0;
    for (int64_t k = 0; k < in[1].shape[0]; k++)
        total += get(&in[0], AT(at[0], k)) * get(&in[1], AT(k));
    return total;
}
static double value_vectors(const tensor *in, const int64_t *at)
{
    double total = 0;
    (void)at;
    for (int64_t k = 0; k < in[1].shape[0]; k++)
        total += get(&in[0], AT(k)) * get(&in[1], AT(k));
    return total;
}
static double value_dot_all(const tensor *in, const int64_t *at)
{
    double total = 0;
    for (int64_t k = 0; k < in[0].shape[1]; k++)
        total += get(&in[0], AT(at[0], k)) * get(&in[1], AT(at[1], k, at[2]));
    return total;
}

/* Shape. */
static double value_flat(const tensor *in, const int64_t *at)
{
    return in->element[at[0]];
}
static oly_array call_flatten(const oly_array *in)
{
    return oly_reshape(in[0], -1);
}
static oly_array call_merge(const oly_array *in)
{
    return oly_reshape(in[0], oly_dim(in[0], 0) * oly_dim(in[0], 1), oly_dim(in[0], 2));
}
static double value_merge(const tensor *in, const int64_t *at)
{
    return in->element[at[0] * in->shape[2] + at[1]];
}
static oly_array call_swap_extents(const oly_array *in)
{
    return oly_reshape(in[0], oly_dim(in[0], 1), oly_dim(in[0], 0));
}
static double value_swap_extents(const tensor *in, const int64_t *at)
{
    return in->element[at[0] * in->shape[0] + at[1]];
}
static oly_array call_insert(const oly_array *in)
{
    return oly_reshape(in[0], oly_dim(in[0], 0), 1, oly_dim(in[0], 1));
}
static double value_insert(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[0], at[2]));
}
static oly_array call_transpose(const oly_array *in)
{
    return oly_transpose(in[0]);
}
static double value_transpose(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[1], at[0]));
}
static oly_array call_turn(const oly_array *in)
{
    return oly_transpose(in[0], 2, 0, 1);
}
static double value_turn(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[1], at[2], at[0]));
}
static oly_array call_repeat(const oly_array *in)
{
    return oly_broadcast_to(in[0], 5, oly_dim(in[0], 0), oly_dim(in[0], 1));
}
static double value_repeat(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[1], at[2]));
}
static oly_array call_widen(const oly_array *in)
{
    return oly_broadcast_to(in[0], oly_dim(in[0], 0), 5);
}
static double value_widen(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[0], 0));
}
static oly_array call_inside(const oly_array *in)
{
    return oly_slice(in[0], "1:-1");
}
static double value_inside(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[0] + 1, at[1]));
}
static oly_array call_every_other(const oly_array *in)
{
    return oly_slice(in[0], "..., ::2");
}
static double value_every_other(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[0], 2 * at[1]));
}
static oly_array call_last_row(const oly_array *in)
{
    return oly_slice(in[0], "-1");
}
static double value_last_row(const tensor *in, const int64_t *at)
{
    return get(in, AT(in->shape[0] - 1, at[0]));
}
static oly_array call_ranges(const oly_array *in)
{
    return oly_slice_ranges(in[0], AT(1, 0), AT(oly_dim(in[0], 0) - 1, oly_dim(in[0], 1)), AT(1, 2));
}
static double value_ranges(const tensor *in, const int64_t *at)
{
    return get(in, AT(at[0] + 1, 2 * at[1]));
}
static oly_array call_update(const oly_array *in)
{
    return oly_update(in[0], "1:-1", in[1]);
}
static double value_update(const tensor *in, const int64_t *at)
{
    bool part = at[0] >= 1 && at[0] < in->shape[0] - 1;
    return part ? get(&in[1], AT(at[0] - 1, at[1])) : get(in, at);
}
static oly_array call_update_number(const oly_array *in)
{
    return oly_update(in[0], ":, ::2", 1);
}
static double value_update_number(const tensor *in, const int64_t *at)
{
    return at[1] % 2 == 0 ? 1 : get(in, at);
}
static oly_array call_update_row(const oly_array *in)
{
    return oly_update(in[0], "0", in[1]);
}
static double value_update_row(const tensor *in, const int64_t *at)
{
    return at[0] == 0 ? get(&in[1], AT(at[1])) : get(in, at);
}
static oly_array call_concatenate(const oly_array *in)
{
    return oly_concatenate(0, in[0], in[1]);
}
static double value_concatenate(const tensor *in, const int64_t *at)
{
    int64_t m = in->shape[0];
    return at[0] < m ? get(&in[0], at) : get(&in[1], AT(at[0] - m, at[1]));
}
static oly_array call_concatenate_last(const oly_array *in)
{
    return oly_concatenate(-1, in[0], in[1]);
}
static double value_concatenate_last(const tensor *in, const int64_t *at)
{
    int64_t m = in->shape[1];
    return at[1] < m ? get(&in[0], at) : get(&in[1], AT(at[0], at[1] - m));
}

static void add_body(oly_array i, oly_array *carry, void *user)
{
    (void)user;
    carry[0] = oly_add(carry[0], oly_astype(i, oly_dtype_of(carry[0])));
}
static oly_array call_fori(const oly_array *in)
{
    oly_array x = in[0];
    oly_fori(1, 4, add_body, 1, &x, NULL);
    return x;
}
static double value_fori(const tensor *in, const int64_t *at)
{
    return get(in, at) + 6;
}

#define ROW(shapes, types, result, name, ...)                                                                          \
    {                                                                                                                  \
#name, shapes, types, result, call_##name, value_##name, __VA_ARGS__                                           \
    }
#define LIKE(shapes, types, result, name, value, ...)                                                                  \
    {                                                                                                                  \
#name, shapes, types, result, call_##name, value_##value, __VA_ARGS__                                          \
    }
static const row rows[] = {
    ROW("mn->mn", "iIufF", 's', neg, 0),
    ROW("mn->mn", "biIufF", 's', abs, 0),
    ROW("mn->mn", "iIufF", 's', sign, 0),
    ROW("mn->mn", "biIfF", 'f', exp, ROUNDED),
    ROW("mn->mn", "bfF", 'f', log, ROUNDED),
    ROW("mn->mn", "bufF", 'f', sqrt, ROUNDED),
    ROW("mn->mn", "biIfF", 'f', sin, ROUNDED),
    ROW("mn->mn", "biIfF", 'f', cos, ROUNDED),
    ROW("mn->mn", "biIfF", 'f', tanh, ROUNDED),
    ROW("mn->mn", "biIfF", 'f', sigmoid, ROUNDED),
    ROW("mn->mn", "biIufF", 't', relu, 0),
    ROW("mn->mn", "biIufF", 'b', logical_not, 0),
    ROW("mn,mn->mn", "biIufF", 's', add, 0),
    ROW("mn,n->mn", "iIufF", 's', sub, 0),
    ROW("mn,m1->mn", "biIufF", 's', mul, 0),
    ROW("m1,1n->mn", "iIufF", 'f', div, 0),
    ROW("n,mn->mn", "biIufF", 's', max2, 0),
    ROW("mn,1->mn", "biIufF", 's', min2, 0),
    ROW("mn,mn->mn", "biIufF", 'b', eq, 0),
    ROW("mn,->mn", "biIufF", 'b', ne, 0),
    ROW("mn,mn->mn", "biIufF", 'b', lt, 0),
    ROW("mn,mn->mn", "biIufF", 'b', le, 0),
    ROW("mn,mn->mn", "biIufF", 'b', gt, 0),
    ROW("mn,mn->mn", "biIufF", 'b', ge, 0),
    ROW("mn->mn", "iIfF", 's', pow, 0),
    ROW("mn->mn", "iIfF", 's', numbers, 0),
    ROW("mn,n,m1->mn", "biIufF", 's', where, 0),
    LIKE("mn->mn", "biIufF", 'b', to_bool, truth, 0),
    LIKE("mn->mn", "biIufF", 'i', to_int32, whole, 0),
    LIKE("mn->mn", "biIfF", 'I', to_int64, whole, 0),
    LIKE("mn->mn", "biIufF", 'f', to_float32, same, 0),
    LIKE("mn->mn", "biIufF", 'F', to_float64, same, 0),
    ROW("mnk->", "biIufF", 't', sum_all, 0),
    ROW("mn->n", "biIufF", 't', sum_0, 0),
    ROW("mn->m", "biIufF", 't', sum_1, 0),
    ROW("mnk->mn", "biIufF", 't', sum_last, 0),
    ROW("mnk->n", "biIufF", 't', sum_02, 0),
    ROW("mnk->m1k", "biIufF", 't', sum_1_kept, 0),
    ROW("mk->m", "biIfF", 't', prod_1, ROUNDED),
    ROW("mn->", "biIufF", 's', max_all, AT_LEAST_ONE),
    ROW("mn->n", "biIufF", 's', max_0, AT_LEAST_ONE),
    ROW("mn->m", "biIufF", 's', min_1, AT_LEAST_ONE),
    ROW("mnk->111", "biIufF", 's', min_all_kept, AT_LEAST_ONE),
    ROW("mn->n", "biIufF", 'f', mean_0, ROUNDED),
    ROW("mk,kn->mn", "iIufF", 's', matmul, 0),
    ROW("km,nk->mn", "iIufF", 's', matmul_turned, 0),
    LIKE("mnk,mkH->mnH", "iIufF", 's', matmul, batched, 0),
    LIKE("mk,k->m", "iIufF", 's', matmul, matrix_vector, 0),
    LIKE("mk,k->m", "iIufF", 's', dot, matrix_vector, 0),
    LIKE("k,k->", "iIufF", 's', dot, vectors, 0),
    LIKE("mk,nkH->mnH", "iIufF", 's', dot, dot_all, 0),
    LIKE("mn->P", "biIufF", 's', flatten, flat, 0),
    ROW("mnk->Pk", "biIufF", 's', merge, 0),
    ROW("mn->nm", "biIufF", 's', swap_extents, 0),
    ROW("mn->m1n", "biIufF", 's', insert, 0),
    ROW("mn->nm", "biIufF", 's', transpose, 0),
    ROW("mnk->kmn", "biIufF", 's', turn, 0),
    ROW("mn->5mn", "biIufF", 's', repeat, 0),
    ROW("m1->m5", "biIufF", 's', widen, 0),
    ROW("mn->Mn", "biIufF", 's', inside, 0),
    ROW("mn->mH", "biIufF", 's', every_other, 0),
    ROW("mn->n", "biIufF", 's', last_row, AT_LEAST_ONE),
    ROW("mn->MH", "biIufF", 's', ranges, AT_LEAST_ONE),
    ROW("mn,Mn->mn", "biIufF", 's', update, 0),
    ROW("mn->mn", "biIufF", 's', update_number, 0),
    ROW("mn,n->mn", "biIufF", 's', update_row, AT_LEAST_ONE),
    ROW("mn,mn->Dn", "biIufF", 's', concatenate, 0),
    LIKE("nm,nm->nD", "biIufF", 's', concatenate_last, concatenate_last, 0),
    ROW("mn->mn", "iIufF", 's', fori, 0),
};

/* -- operands
 * ---------------------------------------------------------------------------------------------- */
static int64_t extent(char letter, const int64_t *size)
{
    int64_t m = size[0], n = size[1];
    switch (letter) {
    case 'm': return m;
    case 'n': return n;
    case 'k': return size[2];
    case 'M': return m > 2 ? m - 2 : 0;
    case 'H': return (n + 1) / 2;
    case 'D': return 2 * m;
    case 'P': return m * n;
    default: return letter - '0';
    }
}

/* Reads one shape; returns where it ends. */
static const char *read_shape(const char *text, const int64_t *size, tensor *t)
{
    t->rank = 0;
    t->size = 1;
    for (; *text && *text != ',' && *text != '-'; text++) {
        t->shape[t->rank] = extent(*text, size);
        t->size *= t->shape[t->rank++];
    }
    return text;
}

static bool is_floating(oly_dtype dtype)
{
    return dtype == OLY_FLOAT32 || dtype == OLY_FLOAT64;
}

static void fill(tensor *t, oly_dtype dtype, int salt)
{
    t->dtype = dtype;
    for (int64_t i = 0; i < t->size; i++) {
        double x = (double)((i * 5 + i / 7 + salt) % 7 - 3);
        t->element[i] = dtype == OLY_BOOL ? x > 0 : dtype == OLY_UINT32 ? fabs(x) : is_floating(dtype) ? x / 4 : x;
    }
}

static void store(void *data, oly_dtype dtype, int64_t i, double x)
{
    switch (dtype) {
    case OLY_BOOL: ((bool *)data)[i] = x != 0; break;
    case OLY_INT32: ((int32_t *)data)[i] = (int32_t)x; break;
    case OLY_INT64: ((int64_t *)data)[i] = (int64_t)x; break;
    case OLY_UINT32: ((uint32_t *)data)[i] = (uint32_t)(int64_t)x; break;
    case OLY_FLOAT32: ((float *)data)[i] = (float)x; break;
    default: ((double *)data)[i] = x; break;
    }
}

static double load(const void *data, oly_dtype dtype, int64_t i)
{
    switch (dtype) {
    case OLY_BOOL: return ((const bool *)data)[i];
    case OLY_INT32: return ((const int32_t *)data)[i];
    case OLY_INT64: return (double)((const int64_t *)data)[i];
    case OLY_UINT32: return ((const uint32_t *)data)[i];
    case OLY_FLOAT32: return ((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

static oly_array array_of(const tensor *t)
{
    static double data[2000];
    for (int64_t i = 0; i < t->size; i++)
        store(data, t->dtype, i, t->element[i]);
    return oly_from_host(data, t->dtype, t->rank, t->shape);
}

/* -- shardings
 * --------------------------------------------------------------------------------------------- */
static const char *const specs[][12] = {
    {""},
    {"", "x", "y", "(x,y)", "(y,x)"},
    {"", "x", "y", "(x,y)", "(y,x)", "None,x", "None,y", "None,(x,y)", "None,(y,x)", "x,y", "y,x"},
    {"", "x", "None,y", "None,None,x", "x,y", "y,None,x", "None,x,y", "(x,y)", "None,(y,x)", "None,None,(x,y)",
     "x,None,y"},
};

static int spec_count(int rank)
{
    int n = 0;
    while (n < 12 && specs[rank][n])
        n++;
    return n;
}

/* -- one row, one type, one size
 * --------------------------------------------------------------------------- */
typedef struct trial {
    const row *row;
    int n_in, sharding;
    tensor in[MOST], result;
} trial;

static oly_dtype result_type(const row *r, oly_dtype dtype)
{
    const char *letter = strchr(type_letters, r->result);
    if (r->result == 's')
        return dtype;
    if (r->result == 't')
        return dtype == OLY_BOOL ? OLY_INT32 : dtype;
    if (r->result == 'f' && strncmp(r->name, "to_", 3) != 0)
        return dtype == OLY_INT64 || dtype == OLY_FLOAT64 ? OLY_FLOAT64 : OLY_FLOAT32;
    return (oly_dtype)(letter - type_letters);
}

static void make_trial(trial *t, const row *r, oly_dtype dtype, const int64_t *size)
{
    const char *at = r->shapes;
    t->row = r;
    t->n_in = 0;
    for (bool more = true; more;) {
        at = read_shape(at, size, &t->in[t->n_in]);
        fill(&t->in[t->n_in], dtype, t->n_in * 2 + 1);
        more = *at == ',';
        at += more;
        t->n_in++;
    }
    read_shape(at + 2, size, &t->result);
    t->result.dtype = result_type(r, dtype);
    int64_t index[OLY_MAX_RANK] = {0};
    for (int64_t i = 0; i < t->result.size; i++) {
        int64_t rest = i;
        for (int d = t->result.rank - 1; d >= 0; d--) {
            index[d] = rest % t->result.shape[d];
            rest /= t->result.shape[d];
        }
        char exact[8]; /* the value as the result's type has it */
        store(exact, t->result.dtype, 0, r->value(t->in, index));
        t->result.element[i] = load(exact, t->result.dtype, 0);
    }
}

static void fail_trial(const trial *t, const char *how, const char *what)
{
    char text[600];
    int n =
        snprintf(text, sizeof text, "%s \"%s\" of %s (", t->row->name, t->row->shapes, oly_dtype_name(t->in[0].dtype));
    for (int d = 0; d < t->in[0].rank; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, d ? "," : "", t->in[0].shape[d]);
    fail_msg("%s, ...), sharding %d, %s: %s", text, t->sharding, how, what);
}

static bool agrees(const trial *t, double want, double got)
{
    double unit = t->result.dtype == OLY_FLOAT64 ? 0x1p-52 : 0x1p-23;
    if (want == got || (isnan(want) && isnan(got)))
        return true;
    return t->row->flags & ROUNDED && is_floating(t->result.dtype) &&
           fabs(want - got) <= 4 * unit * fmax(fabs(want), 0x1p-20);
}

static void check_result(const trial *t, oly_array x, const char *how)
{
    static double data[2000];
    char text[300];
    const tensor *want = &t->result;
    if (!x)
        fail_trial(t, how, oly_last_error());
    if (oly_dtype_of(x) != want->dtype || oly_rank(x) != want->rank ||
        memcmp(oly_shape(x), want->shape, sizeof(int64_t) * (size_t)want->rank) != 0) {
        oly_typeof(x, text, sizeof text);
        fail_trial(t, how, text);
    }
    memset(data, 0xa5, sizeof data);
    if (oly_process_allgather(x, data, (size_t)want->size * oly_dtype_size(want->dtype)) != OLY_OK)
        fail_trial(t, how, oly_last_error());
    for (int64_t i = 0; i < want->size; i++)
        if (!agrees(t, want->element[i], load(data, want->dtype, i))) {
            snprintf(text, sizeof text, "element %" PRId64 " is %.17g, should be %.17g", i, load(data, want->dtype, i),
                     want->element[i]);
            fail_trial(t, how, text);
        }
}

static void traced(const oly_array *in, oly_array *out, void *user)
{
    const row *r = user;
    out[0] = r->call(in);
}

/* Sharding k of the first operand; the others take the next ones, and now and then stay uncommitted. */
static void run_trial(trial *t, oly_mesh mesh, oly_fn f)
{
    int n = spec_count(t->in[0].rank), most = n;
    for (int k = 1; k < t->n_in; k++)
        most = spec_count(t->in[k].rank) > most ? spec_count(t->in[k].rank) : most;
    int step =
        oly_process_count() > 4 ? 3 : 1; /* gathering over many processes takes time: the types share the shardings */
    for (t->sharding = (int)t->in[0].dtype % step; t->sharding < most; t->sharding += step)
        OLY_SCOPE
        {
            oly_array in[MOST];
            for (int k = 0; k < t->n_in; k++) {
                int rank = t->in[k].rank, choice = t->sharding + k * (int)t->in[0].dtype;
                in[k] = array_of(&t->in[k]);
                if (k == 0 || choice % 5 != 4)
                    in[k] = oly_device_put(in[k], oly_named(mesh, specs[rank][choice % spec_count(rank)]));
            }
            check_result(t, t->row->call(in), "call by call");
            check_result(t, oly_apply_n(f, t->n_in, in), "compiled");
        }
}

static void check_rows(int64_t m, int64_t n, int64_t k)
{
    static trial t;
    int64_t size[] = {m, n, k};
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_mesh mesh = oly_make_mesh("x=2, y=4");
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int dtype = 0; dtype < OLY_N_DTYPES; dtype++)
            OLY_SCOPE
            {
                if (!strchr(rows[r].types, type_letters[dtype]))
                    continue;
                make_trial(&t, &rows[r], (oly_dtype)dtype, size);
                if ((rows[r].flags & AT_LEAST_ONE) && t.in[0].size == 0)
                    continue;
                run_trial(&t, mesh, oly_jit(traced, t.n_in, 1, .user = (void *)&rows[r]));
            }
    assert_int_equal(oly_last_status(), OLY_OK);
    assert_int_equal(oly_finalize(), 0);
}

static void sizes_that_divide(void **state)
{
    (void)state;
    check_rows(8, 4, 8);
}
static void sizes_that_do_not_divide(void **state)
{
    (void)state;
    check_rows(7, 11, 5);
}
static void fewer_elements_than_devices(void **state)
{
    (void)state;
    check_rows(3, 2, 1);
}
static void nothing_along_a_dimension(void **state)
{
    (void)state;
    check_rows(5, 0, 3);
}
static void nothing_to_sum_over(void **state)
{
    (void)state;
    check_rows(5, 3, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_that_divide),           cmocka_unit_test(sizes_that_do_not_divide),
    cmocka_unit_test(fewer_elements_than_devices), cmocka_unit_test(nothing_along_a_dimension),
    cmocka_unit_test(nothing_to_sum_over),
};

int main(void)
{
    return CHECK_MAIN(tests);
}
