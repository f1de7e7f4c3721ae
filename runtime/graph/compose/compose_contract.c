/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of two operands, with jax.numpy's conventions: each becomes one dot_general, whose parameters pair the
 * dimensions, so that nothing is reshaped before the planner sees how the operands are split. */
#include "graph/compose/compose_contract.h"
#include "graph/build.h"
#include "graph/sharding_rule/sharding_rule.h"
#include "graph/contract.h"
#include <inttypes.h>
#include <string.h>

/* -- the product itself -------------------------------------------------------------------------------------------------- */

oly_status oly_product_check_type(oly_dtype x, oly_dtype wanted)
{
    if (x == wanted)
        return OLY_OK;
    oly_kind from = oly_dtype_kind(x), to = oly_dtype_kind(wanted);
    if (from == OLY_KIND_INTEGER && to == OLY_KIND_FLOAT)
        return OLY_OK;
    if (from != OLY_KIND_BOOL && from != to)
        return oly_fail(OLY_DTYPE,
                        "a product of %s cannot be given as %s: both must be integers, both floating or both complex "
                        "(or integers given as floating)",
                        oly_dtype_name(x), oly_dtype_name(wanted));
    if (oly_dtype_is_signed(x) && !oly_dtype_is_signed(wanted))
        return oly_fail(OLY_DTYPE, "a product of %s cannot be given as %s, which has no sign", oly_dtype_name(x),
                        oly_dtype_name(wanted));
    if (oly_dtype_size(wanted) < oly_dtype_size(x))
        return oly_fail(OLY_DTYPE, "a product of %s cannot be given as %s, which is narrower; use oly_astype after it",
                        oly_dtype_name(x), oly_dtype_name(wanted));
    return OLY_OK;
}

oly_status oly_product_operands(oly_graph *g, int n, oly_node **in, const oly_recipe *recipe)
{
    OLY_TRY(oly_build_promoted(g, n, in));
    if (!recipe->dtype_given)
        return OLY_OK;
    OLY_TRY(oly_product_check_type(in[0]->type.dtype, recipe->params.dtype));
    for (int k = 0; k < n; k++)
        OLY_TRY(oly_build_convert(g, in[k], recipe->params.dtype, false, &in[k]));
    return OLY_OK;
}

oly_status oly_product(oly_graph *g, oly_node *a, oly_node *b, const oly_contraction *c, oly_sharding sharding,
                       oly_node **out)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.contraction = *c;
    p.sharding = sharding;
    oly_node *both[2] = {a, b};
    oly_dtype dtype = a->type.dtype; /* products of float16 are summed in float32, over devices too */
    for (int x = 0; x < 2; x++)
        OLY_TRY(oly_build_convert(g, both[x], oly_dtype_computed(dtype), both[x]->type.weak, &both[x]));
    OLY_TRY(oly_graph_add(g, OLY_OP_dot_general, 2, both, &p, out));
    return oly_build_convert(g, *out, dtype, (*out)->type.weak, out);
}

oly_status oly_product_place(oly_graph *g, oly_node *x, const oly_recipe *recipe, oly_node **out)
{
    *out = x;
    oly_sharding wanted = recipe->params.sharding;
    bool typed = wanted && wanted->mesh->explicit_axes; /* the product's own type carries it */
    return wanted && !typed ? oly_compose_place(g, 1, &x, recipe, out) : OLY_OK;
}

static oly_status whole_product(oly_graph *g, oly_node *const *in, const oly_contraction *c, const oly_recipe *recipe,
                                oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_product_operands(g, 2, both, recipe));
    OLY_TRY(oly_product(g, both[0], both[1], c, recipe->params.sharding, out));
    return oly_product_place(g, *out, recipe, out);
}

oly_status oly_compose_dot_general(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe,
                                   oly_node **out)
{
    (void)n_in;
    return whole_product(g, in, &recipe->params.contraction, recipe, out);
}

static void contract(oly_contraction *c, int left, int right)
{
    c->contract[0][c->n_contract] = (uint8_t)left;
    c->contract[1][c->n_contract++] = (uint8_t)right;
}

/* -- matrix products ----------------------------------------------------------------------------------------------------- */

static int leading(const oly_type *x)
{
    return x->rank > 2 ? x->rank - 2 : 0;
}

/* The dimension of the second operand that is summed over. */
static int summed_rows(const oly_type *y)
{
    return y->rank > 1 ? y->rank - 2 : 0;
}

static oly_status check_matrices(const oly_type *x, const oly_type *y)
{
    if (x->rank == 0 || y->rank == 0)
        return oly_fail(OLY_SHAPE,
                        "%s and %s: a matrix product needs at least one dimension on both sides; use oly_mul for "
                        "scalars",
                        oly_type_short(x), oly_type_short(y));
    int64_t columns = x->shape[x->rank - 1], rows = y->shape[summed_rows(y)];
    if (columns != rows)
        return oly_fail(OLY_SHAPE,
                        "%s and %s: the last dimension of the first is %" PRId64 ", the %s of the second %" PRId64
                        "; they must be equal",
                        oly_type_short(x), oly_type_short(y), columns, y->rank == 1 ? "dimension" : "last but one",
                        rows);
    return OLY_OK;
}

/* How the leading dimensions of two operands are matched. */
typedef struct matching {
    bool squeeze[2][OLY_MAX_RANK]; /* operand's dimensions of size 1 that are repeated */
    bool both[OLY_MAX_RANK];       /* result's dimensions that are 1 in both operands */
    oly_contraction c;             /* batch pairs, numbered without the squeezed dimensions */
    int n_batch, n_only[2];
    int batch[OLY_MAX_RANK], only[2][OLY_MAX_RANK]; /* their dimensions of the result */
} matching;

static void match(const oly_type *const *type, int n, matching *m)
{
    memset(m, 0, sizeof *m);
    for (int i = 0; i < n; i++) {
        int d[2];
        bool has[2], one[2];
        for (int o = 0; o < 2; o++) {
            d[o] = i - (n - leading(type[o]));
            has[o] = d[o] >= 0;
            one[o] = has[o] && type[o]->shape[d[o]] == 1;
        }
        for (int o = 0; o < 2; o++)
            if (one[o] && has[1 - o])
                m->squeeze[o][d[o]] = true;
        if (one[0] && one[1]) {
            m->both[i] = true;
        } else if (!has[0] || (one[0] && has[1])) {
            m->only[1][m->n_only[1]++] = i;
        } else if (!has[1] || one[1]) {
            m->only[0][m->n_only[0]++] = i;
        } else {
            for (int o = 0; o < 2; o++)
                m->c.batch[o][m->c.n_batch] = (uint8_t)(m->n_batch + m->n_only[o]);
            m->c.n_batch++;
            m->batch[m->n_batch++] = i;
        }
    }
}

/* Where the dimensions of the product (batch, the first's, the second's) belong in the result. */
static void places(const matching *m, int *place)
{
    int at = 0;
    for (int k = 0; k < m->n_batch; k++)
        place[at++] = m->batch[k];
    for (int o = 0; o < 2; o++)
        for (int k = 0; k < m->n_only[o]; k++)
            place[at++] = m->only[o][k];
}

/* Transposes them there, and reinserts those of size 1. */
static oly_status arrange(oly_graph *g, oly_node *x, const matching *m, int n, const int *place, oly_node **out)
{
    int axes[OLY_MAX_RANK], rank = x->type.rank, to = 0;
    for (int i = 0; i <= n + 1; i++) /* rows and columns come last */
        for (int k = 0; k < rank; k++)
            if (place[k] == i)
                axes[to++] = k;
    OLY_TRY(oly_build_transpose(g, x, axes, out));
    int64_t shape[OLY_MAX_RANK];
    int wide = 0, from = 0;
    for (int i = 0; i < n; i++)
        shape[wide++] = m->both[i] ? 1 : (*out)->type.shape[from++];
    while (from < rank)
        shape[wide++] = (*out)->type.shape[from++];
    return oly_build_reshape(g, *out, wide, shape, out);
}

/* Over Explicit axes both operands must have their leading dimensions split alike. */
static oly_status check_leading(const oly_type *x, const oly_type *y, int n, const matching *m)
{
    for (int k = 0; k < m->n_batch && x->mesh && y->mesh; k++) {
        int i = m->batch[k];
        if (!oly_axis_list_equal(&x->axes[i - (n - leading(x))], &y->axes[i - (n - leading(y))]))
            return oly_sharding_fail_types("matmul", x, y, "batch_conflict",
                                           "the leading dimensions %d of the result are split in different ways; move "
                                           "one operand with oly_reshard",
                                           i);
    }
    return OLY_OK;
}

oly_status oly_compose_matmul(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type, *y = &in[1]->type;
    oly_type shape = {0};
    matching m;
    int place[OLY_MAX_RANK];
    OLY_TRY(check_matrices(x, y));
    OLY_TRY(oly_build_meet(x, leading(x), y, leading(y), &shape));
    int n = shape.rank;
    match((const oly_type *[]){x, y}, n, &m);
    OLY_TRY(check_leading(x, y, n, &m));
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_product_operands(g, 2, both, recipe));
    for (int o = 0; o < 2; o++)
        OLY_TRY(oly_build_squeeze(g, both[o], m.squeeze[o], &both[o]));
    contract(&m.c, both[0]->type.rank - 1, summed_rows(&both[1]->type));
    if (x->rank > 1)
        m.only[0][m.n_only[0]++] = n;
    if (y->rank > 1)
        m.only[1][m.n_only[1]++] = n + 1;
    places(&m, place);
    OLY_TRY(oly_product(g, both[0], both[1], &m.c, recipe->params.sharding, out));
    OLY_TRY(arrange(g, *out, &m, n, place, out));
    return oly_product_place(g, *out, recipe, out);
}

/* A product with a number, or with an array of rank 0: elementwise. */
static oly_status scale(oly_graph *g, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    oly_recipe product;
    memset(&product, 0, sizeof product);
    product.op = OLY_OP_mul;
    OLY_TRY(oly_product_operands(g, 2, both, recipe));
    OLY_TRY(oly_compose_binary(g, 2, both, &product, out));
    return oly_product_place(g, *out, recipe, out);
}

oly_status oly_compose_dot(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type, *y = &in[1]->type;
    oly_contraction c = {0};
    if (x->rank == 0 || y->rank == 0)
        return scale(g, in, recipe, out);
    OLY_TRY(check_matrices(x, y));
    contract(&c, x->rank - 1, summed_rows(y));
    return whole_product(g, in, &c, recipe, out);
}

oly_status oly_compose_inner(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in;
    const oly_type *x = &in[0]->type, *y = &in[1]->type;
    oly_contraction c = {0};
    if (x->rank == 0 || y->rank == 0)
        return scale(g, in, recipe, out);
    contract(&c, x->rank - 1, y->rank - 1);
    return whole_product(g, in, &c, recipe, out);
}

/* -- products of vectors ------------------------------------------------------------------------------------------------- */

static oly_status flatten(oly_graph *g, oly_node **x)
{
    int64_t n = oly_type_size(&(*x)->type);
    return oly_build_reshape(g, *x, 1, &n, x);
}

oly_status oly_compose_outer(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    (void)n_in;
    OLY_TRY(flatten(g, &both[0]));
    OLY_TRY(flatten(g, &both[1]));
    OLY_TRY(oly_build_reshape(g, both[0], 2, (int64_t[]){both[0]->type.shape[0], 1}, &both[0]));
    return scale(g, both, recipe, out);
}

oly_status oly_compose_vdot(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    oly_node *both[2] = {in[0], in[1]};
    oly_contraction c = {0};
    (void)n_in;
    if (oly_dtype_kind(both[0]->type.dtype) == OLY_KIND_COMPLEX)
        OLY_TRY(oly_build_apply(g, OLY_OP_conj, 1, &both[0], &both[0]));
    for (int o = 0; o < 2; o++)
        OLY_TRY(flatten(g, &both[o]));
    if (both[0]->type.shape[0] != both[1]->type.shape[0])
        return oly_fail(
            OLY_SHAPE, "%s and %s have %" PRId64 " and %" PRId64 " elements; they must have the same number",
            oly_type_short(&in[0]->type), oly_type_short(&in[1]->type), both[0]->type.shape[0], both[1]->type.shape[0]);
    contract(&c, 0, 0);
    return whole_product(g, both, &c, recipe, out);
}
