/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers: bits from a counter, and distributions made of them. See compose_random.h. */
#include "graph/numbers.h"
#include "core/dtype_list.h"
#include "graph/compose/compose_random.h"
#include "graph/compose/expression.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* -- keys and bits ---------------------------------------------------------------------------------------------------- */

static oly_node *added(oly_expression *s, oly_op op, int n, oly_node *const *in, const oly_params *p)
{
    oly_node *out = NULL;
    for (int k = 0; k < n; k++)
        if (!in[k])
            return NULL;
    if (s->status == OLY_OK)
        s->status = oly_graph_add(s->g, op, n, in, p, &out);
    return s->status == OLY_OK ? out : NULL;
}

static oly_node *reshaped(oly_expression *s, oly_node *x, int rank, const int64_t *shape)
{
    if (x && s->status == OLY_OK)
        s->status = oly_build_reshape(s->g, x, rank, shape, &x);
    return s->status == OLY_OK ? x : NULL;
}

/* Elements [begin, begin + n) of a line. */
static oly_node *part(oly_expression *s, oly_node *x, int64_t begin, int64_t n)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = 1;
    p.start[0] = begin;
    p.shape[0] = n;
    p.step[0] = 1;
    return added(s, OLY_OP_slice, 1, &x, &p);
}

/* An integer of a type of its own. */
static oly_node *constant(oly_expression *s, oly_dtype dtype, int64_t value)
{
    oly_node *out = oly_expression_whole(s, value);
    if (out)
        s->status = oly_build_convert(s->g, out, dtype, false, &out);
    return s->status == OLY_OK ? out : NULL;
}

/* Joins two uint32 to one word, the first in the upper half. */
static oly_node *joined(oly_expression *s, oly_node *first, oly_node *second)
{
    oly_node *upper = oly_expression_convert(s, first, OLY_UINT64);
    upper = oly_expression_binary(s, OLY_OP_shift_left, upper, constant(s, OLY_UINT64, 32));
    return oly_expression_binary(s, OLY_OP_or, upper, oly_expression_convert(s, second, OLY_UINT64));
}

/* Which half of a word: 0 the upper. */
static oly_node *half(oly_expression *s, oly_node *word, int which)
{
    if (which == 0)
        word = oly_expression_binary(s, OLY_OP_shift_right_logical, word, constant(s, OLY_UINT64, 32));
    return oly_expression_convert(s, word, OLY_UINT32);
}

oly_node *oly_random_word(oly_expression *s, oly_node *key)
{
    if (key->type.dtype != OLY_UINT32 || key->type.rank != 1 || key->type.shape[0] != 2) {
        s->status = oly_fail(OLY_DTYPE,
                             "%s is not a key; a key is uint32[2], from oly_random_key, or one row of what "
                             "oly_random_split gives",
                             oly_type_short(&key->type));
        return NULL;
    }
    oly_node *words[2];
    for (int k = 0; k < 2; k++)
        words[k] = reshaped(s, part(s, key, k, 1), 0, NULL);
    return joined(s, words[0], words[1]);
}

oly_node *oly_random_subkey(oly_expression *s, oly_node *word, int64_t i)
{
    return oly_expression_binary(s, OLY_OP_threefry2x32, word, constant(s, OLY_UINT64, i));
}

static oly_node *counted(oly_expression *s, oly_op op, oly_dtype dtype, int dimension, int rank, const int64_t *shape)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.rank = rank;
    memcpy(p.shape, shape, sizeof *shape * (size_t)rank);
    p.dtype = dtype;
    p.dimension = dimension;
    return added(s, op, 0, NULL, &p);
}

oly_node *oly_random_bits32(oly_expression *s, oly_node *word, int rank, const int64_t *shape)
{
    return oly_expression_binary(s, OLY_OP_random_bits, word, counted(s, OLY_OP_position, OLY_UINT64, 0, rank, shape));
}

/* Unsigned integers of `bytes` bytes. */
static oly_node *bits(oly_expression *s, oly_node *word, size_t bytes, int rank, const int64_t *shape)
{
    if (bytes == 8)
        return oly_expression_binary(s, OLY_OP_threefry2x32, word,
                                     counted(s, OLY_OP_position, OLY_UINT64, 0, rank, shape));
    oly_node *x = oly_random_bits32(s, word, rank, shape);
    return oly_expression_convert(s, x, bytes == 1 ? OLY_UINT8 : bytes == 2 ? OLY_UINT16 : OLY_UINT32);
}

/* Completes a row of the result's type (a node of a key) and places it as requested. */
static oly_status finish(oly_expression *s, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    OLY_TRY(oly_expression_done(s, x, out));
    return recipe->params.sharding ? oly_build_reshard(s->g, *out, recipe->params.sharding, out) : OLY_OK;
}

oly_status oly_compose_random_key(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)in;
    oly_expression s = {.g = g};
    const int64_t two = 2;
    oly_node *words[2], *which = counted(&s, OLY_OP_iota, OLY_UINT32, 0, 1, &two);
    for (int k = 0; k < 2; k++)
        words[k] = constant(&s, OLY_UINT32, recipe->params.start[k]);
    which = oly_expression_binary(&s, OLY_OP_eq, which, oly_expression_whole(&s, 0));
    return oly_expression_done(&s, oly_expression_select(&s, which, words[0], words[1]), out);
}

/* Word number i of [n, 2]: the upper half in the first column. */
oly_status oly_compose_random_split(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                    oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const int64_t shape[2] = {recipe->params.count, 2};
    oly_node *i = counted(&s, OLY_OP_iota, OLY_UINT64, 0, 2, shape);
    oly_node *column = counted(&s, OLY_OP_iota, OLY_UINT64, 1, 2, shape);
    oly_node *words = oly_expression_binary(&s, OLY_OP_threefry2x32, oly_random_word(&s, in[0]), i);
    oly_node *by = oly_expression_binary(&s, OLY_OP_sub, constant(&s, OLY_UINT64, 1), column);
    by = oly_expression_binary(&s, OLY_OP_mul, by, constant(&s, OLY_UINT64, 32));
    words = oly_expression_binary(&s, OLY_OP_shift_right_logical, words, by);
    return finish(&s, oly_expression_convert(&s, words, OLY_UINT32), recipe, out);
}

oly_status oly_compose_random_fold_in(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                      oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_expression s = {.g = g};
    const int64_t two = 2;
    if (in[1]->type.rank != 0 || oly_dtype_kind(in[1]->type.dtype) > OLY_KIND_INTEGER) /* bools, too, as in JAX */
        return oly_fail(OLY_DTYPE, "%s cannot be folded into a key; give one integer", oly_type_short(&in[1]->type));
    oly_node *data = oly_expression_convert(&s, oly_expression_convert(&s, in[1], OLY_UINT32), OLY_UINT64);
    oly_node *word = oly_expression_binary(&s, OLY_OP_threefry2x32, oly_random_word(&s, in[0]), data);
    oly_node *which = counted(&s, OLY_OP_iota, OLY_UINT32, 0, 1, &two);
    which = oly_expression_binary(&s, OLY_OP_eq, which, oly_expression_whole(&s, 0));
    return oly_expression_done(&s, oly_expression_select(&s, which, half(&s, word, 0), half(&s, word, 1)), out);
}

oly_status oly_compose_random_block(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                    oly_node **out)
{
    (void)n_in, (void)recipe;
    oly_expression s = {.g = g};
    const oly_type *t = &in[1]->type;
    if (t->dtype != OLY_UINT32)
        return oly_fail(OLY_DTYPE, "the counters are %s; they must be uint32", oly_type_short(t));
    int64_t n = oly_type_size(t), odd = n % 2, words = (n + odd) / 2;
    oly_node *both[2] = {reshaped(&s, in[1], 1, &n), NULL}, *line = both[0];
    oly_params p;
    memset(&p, 0, sizeof p);
    if (odd) { /* one more counter, 0 */
        const int64_t one = 1;
        both[1] = reshaped(&s, constant(&s, OLY_UINT32, 0), 1, &one);
        line = added(&s, OLY_OP_concatenate, 2, both, &p);
    }
    oly_node *word = joined(&s, part(&s, line, 0, words), part(&s, line, words, words));
    word = oly_expression_binary(&s, OLY_OP_threefry2x32, oly_random_word(&s, in[0]), word);
    for (int k = 0; k < 2; k++)
        both[k] = half(&s, word, k);
    line = added(&s, OLY_OP_concatenate, 2, both, &p);
    return oly_expression_done(&s, reshaped(&s, odd ? part(&s, line, 0, n) : line, t->rank, t->shape), out);
}

oly_status oly_compose_random_bits(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    if (oly_dtype_kind(p->dtype) != OLY_KIND_INTEGER || oly_dtype_is_signed(p->dtype))
        return oly_fail(OLY_DTYPE, "random bits as %s; give an unsigned integer type", oly_dtype_name(p->dtype));
    oly_node *word = oly_random_word(&s, in[0]);
    return finish(&s, bits(&s, word, oly_dtype_size(p->dtype), p->rank, p->shape), recipe, out);
}

/* -- the unit interval ------------------------------------------------------------------------------------- */

static oly_node *number(oly_expression *s, oly_dtype dtype, double value)
{
    oly_node *out = NULL;
    if (s->status == OLY_OK)
        s->status = oly_build_number(s->g, dtype, value, &out);
    return out;
}

static oly_status check_floating(oly_dtype dtype, const char *what)
{
    if (oly_dtype_kind(dtype) != OLY_KIND_FLOAT)
        return oly_fail(OLY_DTYPE, "%s numbers as %s; give a floating type", what, oly_dtype_name(dtype));
    return OLY_OK;
}

/* Random bits as the mantissa of a number in [1, 2), minus 1. Mantissas of less than 8 bits are taken from 8 bits. */
oly_node *oly_random_unit(oly_expression *s, oly_node *word, oly_dtype dtype, int rank, const int64_t *shape)
{
#define UNIT(number, T, digits, least)                                                                                 \
    [OLY_##number] = {(digits) < 8 ? 1 : sizeof(T), (digits) < 8 ? 8 - (digits) : 8 * (int)sizeof(T) - (digits),       \
                      (int64_t)OLY_ONE_BITS(digits, least)},
#define NARROW_UNIT(a, number, name, s, T, of, to, top, digits, least, ...) UNIT(number, T, digits, least)
#define WIDE_UNIT(a, number, name, s, T, U, top, digits, least, ...)        UNIT(number, T, digits, least)
    static const struct {
        int drawn, dropped; /* bytes; bits */
        int64_t one;
    } of[OLY_N_DTYPES] = {OLY_NARROW_TYPES(NARROW_UNIT, ) OLY_WIDE_TYPES(WIDE_UNIT, )};
    static const oly_dtype words[] = {[1] = OLY_UINT8, [2] = OLY_UINT16, [4] = OLY_UINT32, [8] = OLY_UINT64};
    oly_node *x =
        oly_expression_convert(s, bits(s, word, (size_t)of[dtype].drawn, rank, shape), words[oly_dtype_size(dtype)]);
    x = oly_expression_binary(s, OLY_OP_shift_right_logical, x, oly_expression_whole(s, of[dtype].dropped));
    x = oly_expression_binary(s, OLY_OP_or, x, oly_expression_whole(s, of[dtype].one));
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = dtype;
    x = added(s, OLY_OP_bitcast, 1, &x, &p);
    return oly_expression_binary(s, OLY_OP_sub, x, number(s, dtype, 1));
}

/* x * y + z rounded once, as XLA computes it. */
static oly_node *fused(oly_expression *s, oly_node *x, oly_node *y, oly_node *z)
{
    oly_node *all[3] = {x, y, z};
    if (!x || !y || !z)
        return NULL;
    if (x->type.dtype != OLY_FLOAT32 && x->type.dtype != OLY_FLOAT64)
        return oly_expression_binary(s, OLY_OP_add, oly_expression_binary(s, OLY_OP_mul, x, y), z);
    s->status = oly_build_common_shape(s->g, 3, all);
    return s->status == OLY_OK ? added(s, OLY_OP_fma, 3, all, NULL) : NULL;
}

static bool is_number(oly_graph *g, const oly_node *x, double value)
{
    if (!x || !oly_is_constant(x))
        return false;
    oly_number_fix(g, x);
    return (oly_dtype_kind(x->type.dtype) >= OLY_KIND_FLOAT ? x->params.value.f : (double)x->params.value.i) == value;
}

static oly_node *between(oly_expression *s, oly_node *word, oly_dtype dtype, oly_node *low, oly_node *high, int rank,
                         const int64_t *shape)
{
    oly_node *unit = oly_random_unit(s, word, dtype, rank, shape);
    bool from_0 = is_number(s->g, low, 0), to_1 = is_number(s->g, high, 1);
    if (from_0 && to_1)
        return unit;
    low = oly_expression_convert(s, low, dtype);
    high = oly_expression_convert(s, high, dtype);
    oly_node *span = oly_expression_binary(s, OLY_OP_sub, high, low);
    return oly_expression_binary(s, OLY_OP_max, low, fused(s, unit, span, low));
}

static oly_node *between_numbers(oly_expression *s, oly_node *word, oly_dtype dtype, double low, double high, int rank,
                                 const int64_t *shape)
{
    return between(s, word, dtype, number(s, dtype, low), number(s, dtype, high), rank, shape);
}

/* Parameters of a distribution broadcast to the requested shape, and do not extend it. */
static oly_status check_parameter(const oly_node *x, const oly_params *p)
{
    oly_type wanted = {.dtype = x->type.dtype, .rank = p->rank};
    memcpy(wanted.shape, p->shape, sizeof wanted.shape);
    OLY_TRY(oly_type_check(&wanted));
    bool fits = x->type.rank <= p->rank;
    for (int d = 0; fits && d < x->type.rank; d++) {
        int64_t n = x->type.shape[d];
        fits = n == 1 || n == p->shape[p->rank - x->type.rank + d];
    }
    return fits ? OLY_OK
                : oly_fail(OLY_SHAPE, "the parameter %s does not broadcast to the shape of the numbers, %s",
                           oly_type_short(&x->type), oly_type_short(&wanted));
}

oly_status oly_compose_random_uniform(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                      oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "uniform"));
    for (int k = 1; k < 3; k++)
        OLY_TRY(check_parameter(in[k], p));
    oly_node *word = oly_random_word(&s, in[0]);
    OLY_TRY(s.status);
    return finish(&s, between(&s, word, p->dtype, in[1], in[2], p->rank, p->shape), recipe, out);
}

/* -- properties of types ----------------------------------------------------------------------------------- */

/* The number after -1. */
static double after_minus_one(oly_dtype dtype)
{
    return oly_dtype_epsilon(dtype) / 2 - 1;
}

/* -- distributions ---------------------------------------------------------------------------------------------------- */

static oly_node *normals(oly_expression *s, oly_node *word, oly_dtype dtype, int rank, const int64_t *shape)
{
    oly_node *u = between_numbers(s, word, dtype, after_minus_one(dtype), 1, rank, shape);
    return oly_expression_binary(s, OLY_OP_mul, number(s, dtype, sqrt(2)), oly_expression_unary(s, OLY_OP_erf_inv, u));
}

oly_status oly_compose_random_normal(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                     oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    oly_node *word = oly_random_word(&s, in[0]), *parts[2];
    if (oly_dtype_kind(p->dtype) != OLY_KIND_COMPLEX) {
        OLY_TRY(check_floating(p->dtype, "normal"));
        return finish(&s, normals(&s, word, p->dtype, p->rank, p->shape), recipe, out);
    }
    for (int k = 0; k < 2; k++)
        parts[k] = normals(&s, oly_random_subkey(&s, word, k), oly_dtype_real(p->dtype), p->rank, p->shape);
    oly_node *both = oly_expression_binary(&s, OLY_OP_complex, parts[0], parts[1]);
    return finish(&s, oly_expression_binary(&s, OLY_OP_div, both, number(&s, p->dtype, sqrt(2))), recipe, out);
}

oly_status oly_compose_random_truncated_normal(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                               oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    oly_node *word = oly_random_word(&s, in[0]), *end[2], *error[2];
    OLY_TRY(check_floating(p->dtype, "truncated normal"));
    oly_node *root = number(&s, p->dtype, sqrt(2));
    for (int k = 0; k < 2; k++) {
        OLY_TRY(check_parameter(in[1 + k], p));
        end[k] = oly_expression_convert(&s, in[1 + k], p->dtype);
        error[k] = oly_expression_unary(&s, OLY_OP_erf, oly_expression_binary(&s, OLY_OP_div, end[k], root));
        OLY_TRY(s.status);
    }
    oly_node *u = between(&s, word, p->dtype, error[0], error[1], p->rank, p->shape);
    oly_node *x = oly_expression_binary(&s, OLY_OP_mul, root, oly_expression_unary(&s, OLY_OP_erf_inv, u));
    for (int k = 0; k < 2; k++) { /* so that rounding stays in range */
        oly_node *far = number(&s, p->dtype, k == 0 ? INFINITY : -INFINITY);
        oly_node *inside = oly_expression_binary(&s, OLY_OP_nextafter, end[k], far);
        x = oly_expression_binary(&s, k == 0 ? OLY_OP_max : OLY_OP_min, x, inside);
    }
    return finish(&s, x, recipe, out);
}

oly_status oly_compose_random_bernoulli(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                        oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    bool number_given = oly_is_constant(in[1]) && in[1]->type.weak;
    oly_dtype dtype = number_given ? oly_default_float() : in[1]->type.dtype;
    OLY_TRY(check_floating(dtype, "probability"));
    OLY_TRY(check_parameter(in[1], p));
    oly_node *u = oly_random_unit(&s, oly_random_word(&s, in[0]), dtype, p->rank, p->shape);
    return finish(&s, oly_expression_binary(&s, OLY_OP_lt, u, oly_expression_convert(&s, in[1], dtype)), recipe, out);
}

oly_node *oly_random_gumbels(oly_expression *s, oly_node *word, oly_dtype dtype, int rank, const int64_t *shape)
{
    oly_node *x = between_numbers(s, word, dtype, oly_dtype_smallest_normal(dtype), 1, rank, shape);
    for (int k = 0; k < 2; k++)
        x = oly_expression_unary(s, OLY_OP_neg, oly_expression_unary(s, OLY_OP_rough_log, x));
    return x;
}

oly_status oly_compose_random_gumbel(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                     oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "Gumbel"));
    return finish(&s, oly_random_gumbels(&s, oly_random_word(&s, in[0]), p->dtype, p->rank, p->shape), recipe, out);
}

oly_status oly_compose_random_exponential(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                          oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "exponential"));
    oly_node *u = oly_random_unit(&s, oly_random_word(&s, in[0]), p->dtype, p->rank, p->shape);
    oly_node *x = oly_expression_unary(&s, OLY_OP_log1p, oly_expression_unary(&s, OLY_OP_neg, u));
    return finish(&s, oly_expression_unary(&s, OLY_OP_neg, x), recipe, out);
}

oly_status oly_compose_random_laplace(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                      oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "Laplace"));
    oly_node *u =
        between_numbers(&s, oly_random_word(&s, in[0]), p->dtype, after_minus_one(p->dtype), 1, p->rank, p->shape);
    oly_node *x = oly_expression_unary(&s, OLY_OP_neg, oly_expression_unary(&s, OLY_OP_abs, u));
    x = oly_expression_unary(&s, OLY_OP_log1p, x);
    return finish(&s, oly_expression_binary(&s, OLY_OP_mul, oly_expression_unary(&s, OLY_OP_sign, u), x), recipe, out);
}

oly_status oly_compose_random_logistic(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                       oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "logistic"));
    oly_node *u = between_numbers(&s, oly_random_word(&s, in[0]), p->dtype, oly_dtype_smallest_normal(p->dtype), 1,
                                  p->rank, p->shape);
    oly_node *rest = oly_expression_unary(&s, OLY_OP_log1p, oly_expression_unary(&s, OLY_OP_neg, u));
    return finish(&s, oly_expression_binary(&s, OLY_OP_sub, oly_expression_unary(&s, OLY_OP_rough_log, u), rest),
                  recipe, out);
}

oly_status oly_compose_random_cauchy(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                     oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    OLY_TRY(check_floating(p->dtype, "Cauchy"));
    oly_node *u =
        between_numbers(&s, oly_random_word(&s, in[0]), p->dtype, oly_dtype_epsilon(p->dtype), 1, p->rank, p->shape);
    u = oly_expression_binary(&s, OLY_OP_sub, u, number(&s, p->dtype, 0.5));
    u = oly_expression_binary(&s, OLY_OP_mul, number(&s, p->dtype, 0x1.921fb54442d18p1), u);
    return finish(&s, oly_expression_unary(&s, OLY_OP_tan, u), recipe, out);
}

/* -1 or 1. */
oly_status oly_compose_random_rademacher(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                         oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    oly_dtype dtype = oly_default_float();
    oly_node *u = oly_random_unit(&s, oly_random_word(&s, in[0]), dtype, p->rank, p->shape);
    oly_node *x = oly_expression_binary(&s, OLY_OP_lt, u, number(&s, dtype, 0.5));
    x = oly_expression_convert(&s, x, p->dtype);
    x = oly_expression_binary(&s, OLY_OP_mul, constant(&s, p->dtype, 2), x);
    x = oly_expression_binary(&s, OLY_OP_sub, x, constant(&s, p->dtype, 1));
    return finish(&s, x, recipe, out);
}

/* -- integers --------------------------------------------------------------------------------------------------------- */

/* The type in which offsets are computed: as many bits as `dtype` has, at least 32. */
static oly_dtype offset_dtype(oly_dtype dtype)
{
    return oly_dtype_size(dtype) == 8 ? OLY_UINT64 : OLY_UINT32;
}

/* The smallest and the largest value of an integer type; a uint64 as the bits of an int64. */
static int64_t least_of(oly_dtype dtype)
{
    return oly_dtype_is_signed(dtype) ? INT64_MIN >> (64 - 8 * oly_dtype_size(dtype)) : 0;
}
static int64_t greatest_of(oly_dtype dtype)
{
    return (int64_t)(UINT64_MAX >> (64 - 8 * oly_dtype_size(dtype) + oly_dtype_is_signed(dtype)));
}
static bool reaches_beyond(oly_dtype a, oly_dtype b) /* is a's largest value above b's? */
{
    return (uint64_t)greatest_of(a) > (uint64_t)greatest_of(b);
}

/* Conversion to another integer type that saturates. */
static oly_node *clipped(oly_expression *s, oly_node *x, oly_dtype dtype)
{
    if (!x)
        return NULL;
    oly_dtype from = x->type.dtype;
    if (least_of(from) < least_of(dtype))
        x = oly_expression_binary(s, OLY_OP_max, x, constant(s, from, least_of(dtype)));
    if (reaches_beyond(from, dtype))
        x = oly_expression_binary(s, OLY_OP_min, x, constant(s, from, greatest_of(dtype)));
    return oly_expression_convert(s, x, dtype);
}

/* The value of an integer constant; false: an array. */
static bool written(oly_graph *g, const oly_node *x, int64_t *value)
{
    if (!x || !oly_is_constant(x))
        return false;
    oly_number_fix(g, x);
    *value = oly_dtype_kind(x->type.dtype) >= OLY_KIND_FLOAT ? (int64_t)x->params.value.f : x->params.value.i;
    return true;
}

/* How many integers there are from low to high, in the type of offsets (0: all of it), and low. */
typedef struct span {
    oly_node *low, *count;
} span;

static span written_span(oly_expression *s, int64_t low, int64_t high, oly_dtype dtype)
{
    int64_t least = least_of(dtype), greatest = greatest_of(dtype);
    bool beyond = dtype != OLY_UINT64 && high > greatest;
    low = low < least ? least : dtype != OLY_UINT64 && low > greatest ? greatest : low;
    high = high < least ? least : beyond ? greatest : high;
    uint64_t count = high > low ? (uint64_t)high - (uint64_t)low + beyond : 1;
    return (span){constant(s, dtype, low), constant(s, offset_dtype(dtype), (int64_t)count)};
}

static span computed_span(oly_expression *s, oly_node *low, oly_node *high, oly_dtype dtype)
{
    oly_dtype width = offset_dtype(dtype);
    if (!low || !high)
        return (span){NULL, NULL};
    if (oly_dtype_kind(low->type.dtype) != OLY_KIND_INTEGER)
        low = oly_expression_convert(s, low, oly_default_int());
    if (oly_dtype_kind(high->type.dtype) != OLY_KIND_INTEGER)
        high = oly_expression_convert(s, high, oly_default_int());
    if (!low || !high)
        return (span){NULL, NULL};
    oly_node *beyond = NULL, *one = constant(s, width, 1);
    if (reaches_beyond(high->type.dtype, dtype)) {
        oly_node *greatest = constant(s, high->type.dtype, greatest_of(dtype));
        beyond = oly_expression_binary(s, OLY_OP_gt, high, greatest);
    }
    low = clipped(s, low, dtype);
    high = clipped(s, high, dtype);
    oly_node *any = oly_expression_binary(s, OLY_OP_gt, high, low);
    oly_node *count = oly_expression_binary(s, OLY_OP_sub, oly_expression_convert(s, high, width),
                                            oly_expression_convert(s, low, width));
    if (beyond) {
        oly_node *more = oly_expression_binary(s, OLY_OP_add, count, one);
        count = oly_expression_select(s, beyond, more, count);
    }
    return (span){low, oly_expression_select(s, any, count, one)};
}

/* Twice as many bits as an offset has, modulo the count: (h * 2^bits + l) % n = ((h % n) * (2^bits % n) + l % n) %
 * n. */
oly_node *oly_random_integers(oly_expression *s, oly_node *word, oly_node *low, oly_node *high, oly_dtype dtype,
                              int rank, const int64_t *shape)
{
    int64_t a, b;
    bool low_is_written = written(s->g, low, &a), high_is_written = written(s->g, high, &b);
    size_t bytes = oly_dtype_size(offset_dtype(dtype));
    span n = low_is_written && high_is_written ? written_span(s, a, b, dtype) : computed_span(s, low, high, dtype);
    oly_node *x[2];
    for (int k = 0; k < 2; k++)
        x[k] =
            oly_expression_binary(s, OLY_OP_rem, bits(s, oly_random_subkey(s, word, k), bytes, rank, shape), n.count);
    oly_node *root = constant(s, offset_dtype(dtype), (int64_t)1 << (4 * bytes));
    root = oly_expression_binary(s, OLY_OP_rem, root, n.count);
    oly_node *factor = oly_expression_binary(s, OLY_OP_rem, oly_expression_binary(s, OLY_OP_mul, root, root), n.count);
    oly_node *offset = oly_expression_binary(s, OLY_OP_add, oly_expression_binary(s, OLY_OP_mul, x[0], factor), x[1]);
    offset = oly_expression_binary(s, OLY_OP_rem, offset, n.count);
    return oly_expression_binary(s, OLY_OP_add, n.low, oly_expression_convert(s, offset, dtype));
}

oly_status oly_compose_random_randint(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                      oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    if (oly_dtype_kind(p->dtype) != OLY_KIND_INTEGER)
        return oly_fail(OLY_DTYPE, "random integers as %s; give an integer type", oly_dtype_name(p->dtype));
    for (int k = 1; k < 3; k++)
        OLY_TRY(check_parameter(in[k], p));
    oly_node *word = oly_random_word(&s, in[0]);
    OLY_TRY(s.status);
    return finish(&s, oly_random_integers(&s, word, in[1], in[2], p->dtype, p->rank, p->shape), recipe, out);
}
