/* SPDX-License-Identifier: BSD-3-Clause */
/* Random order and choice: permutations, samples, categories. See compose_random.h. */
#include "graph/compose/compose_random.h"
#include "graph/compose/expression.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Another composition as part of an expression. */
static oly_node *composed(oly_expression *s, oly_compose *compose, int n, oly_node *const *in, const oly_recipe *recipe)
{
    oly_node *out = NULL;
    for (int k = 0; k < n; k++)
        if (!in[k])
            return NULL;
    if (s->status == OLY_OK)
        s->status = compose(s->g, n, in, recipe, &out);
    return s->status == OLY_OK ? out : NULL;
}

static oly_node *whole_line(oly_expression *s, int64_t n)
{
    oly_recipe r;
    memset(&r, 0, sizeof r);
    r.params.rank = 1;
    r.params.shape[0] = n;
    r.params.dtype = oly_default_int();
    return composed(s, oly_compose_iota, 0, NULL, &r);
}

static oly_node *argsorted(oly_expression *s, oly_node *x)
{
    oly_recipe r;
    memset(&r, 0, sizeof r);
    r.params.dtype = oly_default_int();
    return composed(s, oly_compose_argsort, 1, &x, &r);
}

/* The indexes are in range. */
static oly_node *taken(oly_expression *s, oly_node *x, oly_node *index, int axis)
{
    oly_recipe r;
    oly_node *both[2] = {x, index};
    memset(&r, 0, sizeof r);
    r.params.dimension = axis;
    r.params.index_mode = OLY_INDEX_CLIP;
    return composed(s, oly_compose_take, 2, both, &r);
}

static oly_node *first_along(oly_expression *s, oly_node *x, int axis, int64_t n)
{
    oly_recipe r;
    if (!x)
        return NULL;
    memset(&r, 0, sizeof r);
    r.params.rank = x->type.rank;
    for (int d = 0; d < x->type.rank; d++) {
        r.params.shape[d] = d == axis ? n : x->type.shape[d];
        r.params.step[d] = 1;
    }
    return composed(s, oly_compose_slice, 1, &x, &r);
}

static oly_status finish(oly_expression *s, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    OLY_TRY(oly_expression_done(s, x, out));
    return recipe->params.sharding ? oly_build_reshard(s->g, *out, recipe->params.sharding, out) : OLY_OK;
}

/* -- permutations ----------------------------------------------------------------------------------------------------- */

/* A random permutation of n: sorted by random bits, several times where one sort would have too many equal keys. NULL
 * with the status OLY_OK: the identity. */
static oly_node *order(oly_expression *s, oly_node *word, int64_t n)
{
    int rounds = n > 1 ? (int)ceil(3 * log((double)n) / log((double)UINT32_MAX)) : 0;
    oly_node *index = NULL;
    for (int k = 0; k < rounds; k++) {
        oly_node *now = argsorted(s, oly_random_bits32(s, oly_random_subkey(s, word, 1), 1, &n));
        index = index ? taken(s, index, now, 0) : now;
        word = oly_random_subkey(s, word, 0);
    }
    return index;
}

static oly_node *permuted(oly_expression *s, oly_node *word, oly_node *x, int axis)
{
    oly_node *index = x ? order(s, word, x->type.shape[axis]) : NULL;
    return index ? taken(s, x, index, axis) : x;
}

static oly_node *permuted_line(oly_expression *s, oly_node *word, int64_t n)
{
    oly_node *index = order(s, word, n);
    return index ? index : whole_line(s, n);
}

oly_status oly_compose_random_permutation(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                          oly_node **out)
{
    oly_expression s = {.g = g};
    oly_node *word = oly_random_word(&s, in[0]);
    int axis;
    if (n_in < 2) {
        if (recipe->params.count < 0)
            return oly_fail(OLY_INVALID, "a permutation of %" PRId64 " numbers; the number is 0 or more",
                            recipe->params.count);
        return finish(&s, permuted_line(&s, word, recipe->params.count), recipe, out);
    }
    OLY_TRY(oly_build_axis(&in[1]->type, recipe->params.dimension, &axis));
    return finish(&s, permuted(&s, word, in[1], axis), recipe, out);
}

/* -- categories ------------------------------------------------------------------------------------------------------- */

/* The argmax of logits plus Gumbel noise along an axis. The requested shape ends in that of the other dimensions. */
oly_status oly_compose_random_categorical(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                          oly_node **out)
{
    (void)n_in;
    oly_expression s = {.g = g};
    const oly_type *t = &in[1]->type;
    const oly_params *p = &recipe->params;
    int axis, rank = recipe->all_axes ? t->rank - 1 : p->rank, before = rank - (t->rank - 1);
    int64_t shape[OLY_MAX_RANK + 1];
    OLY_TRY(oly_build_axis(t, p->dimension, &axis));
    if (oly_dtype_kind(t->dtype) != OLY_KIND_FLOAT)
        return oly_fail(OLY_DTYPE, "the logits are %s; they must be floating", oly_type_short(t));
    if (before < 0 || rank >= OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "categories in %d dimensions from %s; give those of the logits without the axis, and "
                        "more in front if need be",
                        rank, oly_type_short(t));
    for (int d = 0, from = 0; d < rank + 1; d++) {
        bool along = d == before + axis;
        int of = d - before;
        shape[d] = along ? t->shape[axis] : recipe->all_axes ? t->shape[of] : p->shape[from];
        from += !along;
        if (!along && of >= 0 && t->shape[of] != 1 && t->shape[of] != shape[d])
            return oly_fail(OLY_SHAPE,
                            "categories from %s: dimension %d asked for has %" PRId64
                            " elements; the shape must end in the sizes of the logits without the axis",
                            oly_type_short(t), from - 1, shape[d]);
    }
    oly_node *noise = oly_random_gumbels(&s, oly_random_word(&s, in[0]), t->dtype, rank + 1, shape);
    oly_node *sum = oly_expression_binary(&s, OLY_OP_add, noise, in[1]);
    oly_recipe largest;
    memset(&largest, 0, sizeof largest);
    largest.op = OLY_OP_argmax;
    largest.params.n_axes = 1;
    largest.params.axes[0] = before + axis;
    largest.params.dtype = oly_default_int();
    return finish(&s, composed(&s, oly_compose_argreduce, 1, &sum, &largest), recipe, out);
}

/* -- samples ---------------------------------------------------------------------------------------------------------- */

/* With probabilities and replacement: searches a random share of the sum in the running sums. */
static oly_node *by_share(oly_expression *s, oly_node *word, oly_node *p, int rank, const int64_t *shape)
{
    oly_recipe r;
    memset(&r, 0, sizeof r);
    r.op = OLY_OP_cumsum;
    oly_node *both[2] = {composed(s, oly_compose_running, 1, &p, &r), NULL}, *last = NULL, *one = NULL;
    int64_t n = p->type.shape[0];
    memset(&r, 0, sizeof r);
    r.params.rank = 1;
    r.params.start[0] = n - 1;
    r.params.shape[0] = r.params.step[0] = 1;
    r.params.axes[0] = 1; /* dropped */
    last = composed(s, oly_compose_slice, 1, both, &r);
    if (s->status == OLY_OK)
        s->status = oly_build_number(s->g, p->type.dtype, 1, &one);
    oly_node *unit = oly_random_unit(s, word, p->type.dtype, rank, shape);
    both[1] = oly_expression_binary(s, OLY_OP_mul, last, oly_expression_binary(s, OLY_OP_sub, one, unit));
    memset(&r, 0, sizeof r);
    oly_node *index = composed(s, oly_compose_searchsorted, 2, both, &r);
    return oly_expression_convert(s, index, oly_default_int());
}

/* With probabilities, without replacement: the largest of log(p) plus Gumbel noise. */
static oly_node *by_noise(oly_expression *s, oly_node *word, oly_node *p, int64_t count)
{
    oly_node *noise = oly_random_gumbels(s, word, p->type.dtype, 1, p->type.shape);
    noise = oly_expression_binary(s, OLY_OP_add, noise, oly_expression_unary(s, OLY_OP_log, p));
    oly_recipe r;
    memset(&r, 0, sizeof r);
    r.params.count = count;
    r.params.dtype = OLY_INT32;
    return oly_expression_convert(s, composed(s, oly_compose_top_k, 1, &noise, &r), oly_default_int());
}

static oly_status check_choice(int64_t n, int64_t count, const oly_node *p, bool put_back)
{
    if (n <= 0 && count > 0)
        return oly_fail(OLY_INVALID, "%" PRId64 " samples of nothing; give one or more to choose from", count);
    if (!put_back && count > n)
        return oly_fail(OLY_INVALID, "%" PRId64 " samples of %" PRId64 ", each at most once; let them repeat", count,
                        n);
    if (p && (p->type.rank != 1 || p->type.shape[0] != n || oly_dtype_kind(p->type.dtype) == OLY_KIND_COMPLEX))
        return oly_fail(OLY_SHAPE, "probabilities %s for %" PRId64 " to choose from; give one for each",
                        oly_type_short(&p->type), n);
    return OLY_OK;
}

oly_status oly_compose_random_choice(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                     oly_node **out)
{
    oly_expression s = {.g = g};
    const oly_params *p = &recipe->params;
    bool of_array = recipe->all_axes, put_back = !p->reverse;
    oly_node *probability = recipe->keepdims ? in[n_in - 1] : NULL, *index;
    oly_type shape = {.dtype = OLY_INT32, .rank = p->rank};
    int axis = 0;
    if (of_array)
        OLY_TRY(oly_build_axis(&in[1]->type, p->dimension, &axis));
    memcpy(shape.shape, p->shape, sizeof shape.shape);
    OLY_TRY(oly_type_check(&shape));
    int64_t n = of_array ? in[1]->type.shape[axis] : p->count, count = oly_type_size(&shape);
    OLY_TRY(check_choice(n, count, probability, put_back));
    oly_node *word = oly_random_word(&s, in[0]);
    OLY_TRY(s.status);
    if (probability)
        OLY_TRY(oly_build_floating(g, probability, &probability));
    if (probability && put_back) {
        index = by_share(&s, word, probability, p->rank, p->shape);
    } else if (put_back) {
        index = oly_random_integers(&s, word, oly_expression_whole(&s, 0), oly_expression_whole(&s, n),
                                    oly_default_int(), p->rank, p->shape);
    } else {
        index = probability ? by_noise(&s, word, probability, count)
                            : first_along(&s, permuted_line(&s, word, n), 0, count);
        if (index)
            s.status = oly_build_reshape(g, index, p->rank, p->shape, &index);
    }
    OLY_TRY(s.status);
    return finish(&s, of_array ? taken(&s, in[1], index, axis) : index, recipe, out);
}
