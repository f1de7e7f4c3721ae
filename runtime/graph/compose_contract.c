/* Matrix products: every shape the public functions take is brought to the one row "bmk,bkn->bmn" and back.
 * Both operands end as matrices over leading dimensions: b without leading dimensions   those of a join its
 * rows:    [..., m, k] @ [k, n]  ->  [1, ... m, k] @ [1, k, n] else                           they broadcast
 * and merge:    [..., m, k] @ [..., k, n]  ->  [P, m, k] @ [P, k, n] */
#include "graph/compose.h"
#include "graph/build.h"
#include <inttypes.h>
#include <string.h>

/* An operand seen as a matrix over leading dimensions; a vector is one row (a) or one column (b). */
typedef struct matrix {
    oly_node *node;
    int leading; /* dimensions before rows and columns */
    int64_t rows, columns;
    bool vector;
} matrix;

static int64_t product(int n, const int64_t *extents)
{
    int64_t p = 1;
    for (int d = 0; d < n; d++)
        p *= extents[d];
    return p;
}

static matrix as_matrix(oly_node *x, bool row)
{
    const oly_type *t = &x->type;
    int64_t last = t->shape[t->rank - 1];
    if (t->rank == 1)
        return (matrix){x, 0, row ? 1 : last, row ? last : 1, true};
    return (matrix){x, t->rank - 2, t->shape[t->rank - 2], last, false};
}

/* Promotes both operands and checks k. */
static oly_status read_operands(oly_graph *g, oly_node *const *in, matrix *a, matrix *b)
{
    const oly_type *x = &in[0]->type, *y = &in[1]->type;
    if (x->rank == 0 || y->rank == 0)
        return oly_fail(OLY_SHAPE,
                        "%s and %s: a matrix product needs at least one dimension on both sides; use oly_mul for "
                        "scalars",
                        oly_type_short(x), oly_type_short(y));
    if (x->dtype == OLY_BOOL && y->dtype == OLY_BOOL)
        return oly_fail(OLY_DTYPE,
                        "%s and %s: products of bools are not defined; convert one with oly_astype(x, OLY_INT32)",
                        oly_type_short(x), oly_type_short(y));
    oly_node *both[2] = {in[0], in[1]};
    OLY_TRY(oly_build_promoted(g, 2, both));
    *a = as_matrix(both[0], true);
    *b = as_matrix(both[1], false);
    if (a->columns != b->rows)
        return oly_fail(OLY_SHAPE,
                        "%s and %s: the last dimension of the first is %" PRId64 ", the %s of the second %" PRId64
                        "; they must be equal",
                        oly_type_short(x), oly_type_short(y), a->columns, b->vector ? "dimension" : "last but one",
                        b->rows);
    return OLY_OK;
}

/* Multiplies a [p, m, k] by b [p, k, n] after reshaping both to that. */
static oly_status dot(oly_graph *g, oly_node *a, oly_node *b, int64_t p, int64_t m, int64_t k, int64_t n,
                      oly_node **out)
{
    oly_node *both[2];
    OLY_TRY(oly_build_reshape(g, a, 3, (int64_t[]){p, m, k}, &both[0]));
    OLY_TRY(oly_build_reshape(g, b, 3, (int64_t[]){p, k, n}, &both[1]));
    oly_dtype dtype = a->type.dtype; /* products of float16 are summed in float32, over devices too */
    for (int x = 0; x < 2; x++)
        OLY_TRY(oly_build_convert(g, both[x], oly_dtype_computed(dtype), both[x]->type.weak, &both[x]));
    OLY_TRY(oly_build_apply(g, OLY_OP_dot, 2, both, out));
    return oly_build_convert(g, *out, dtype, (*out)->type.weak, out);
}

/* Repeats an operand over `leading` dimensions, and merges those into one. */
static oly_status over_leading(oly_graph *g, const matrix *x, const oly_type *leading, oly_node **out)
{
    int64_t shape[OLY_MAX_RANK];
    memcpy(shape, x->node->type.shape, sizeof *shape * (size_t)x->leading);
    shape[x->leading] = x->rows;
    shape[x->leading + 1] = x->columns;
    OLY_TRY(oly_build_reshape(g, x->node, x->leading + 2, shape, out)); /* gives a vector its second dimension */
    memcpy(shape, leading->shape, sizeof *shape * (size_t)leading->rank);
    shape[leading->rank] = x->rows;
    shape[leading->rank + 1] = x->columns;
    return oly_build_broadcast(g, *out, leading->rank + 2, shape, out);
}

oly_status oly_compose_matmul(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    (void)n_in, (void)recipe;
    matrix a, b;
    OLY_TRY(read_operands(g, in, &a, &b));
    oly_type shape = {.rank = a.leading};
    memcpy(shape.shape, a.node->type.shape, sizeof *shape.shape * (size_t)a.leading);
    if (b.leading == 0) {
        int64_t rows = product(a.leading, shape.shape) * a.rows;
        OLY_TRY(dot(g, a.node, b.node, 1, rows, a.columns, b.columns, out));
    } else {
        oly_node *x, *y;
        OLY_TRY(oly_build_meet(&a.node->type, a.leading, &b.node->type, b.leading, &shape));
        OLY_TRY(over_leading(g, &a, &shape, &x));
        OLY_TRY(over_leading(g, &b, &shape, &y));
        OLY_TRY(dot(g, x, y, product(shape.rank, shape.shape), a.rows, a.columns, b.columns, out));
    }
    if (!a.vector)
        shape.shape[shape.rank++] = a.rows;
    if (!b.vector)
        shape.shape[shape.rank++] = b.columns;
    return oly_build_reshape(g, *out, shape.rank, shape.shape, out);
}

/* Moves k of b [..., k, n] to the front: [k, ... n]. */
static oly_status k_first(oly_graph *g, const matrix *b, oly_node **out)
{
    int axes[OLY_MAX_RANK];
    axes[0] = b->leading;
    for (int d = 0; d < b->leading; d++)
        axes[d + 1] = d;
    axes[b->leading + 1] = b->leading + 1;
    return oly_build_transpose(g, b->node, axes, out);
}

/* [a..., k] by [b..., k, n] to [a..., b..., n]: every row of a meets every column of b. */
static oly_status dot_all(oly_graph *g, oly_node *const *in, oly_node **out)
{
    matrix a, b;
    oly_node *y;
    OLY_TRY(read_operands(g, in, &a, &b));
    oly_type shape = a.node->type;
    shape.rank--;
    int64_t rows = product(shape.rank, shape.shape), columns = product(b.leading, b.node->type.shape) * b.columns;
    if (shape.rank + b.leading + 1 > OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE,
                        "the dot product of %s and %s would have %d dimensions; arrays have at most %d, merge some "
                        "with oly_reshape",
                        oly_type_short(&in[0]->type), oly_type_short(&in[1]->type), shape.rank + b.leading + 1,
                        OLY_MAX_RANK);
    OLY_TRY(k_first(g, &b, &y));
    OLY_TRY(dot(g, a.node, y, 1, rows, a.columns, columns, out));
    for (int d = 0; d < b.leading; d++)
        shape.shape[shape.rank++] = b.node->type.shape[d];
    shape.shape[shape.rank++] = b.columns;
    return oly_build_reshape(g, *out, shape.rank, shape.shape, out);
}

oly_status oly_compose_dot(oly_graph *g, int n_in, oly_node *const *in, const oly_recipe *recipe, oly_node **out)
{
    if (in[0]->type.rank == 0 || in[1]->type.rank == 0) {
        oly_recipe product_of = *recipe;
        product_of.op = OLY_OP_mul;
        return oly_compose_binary(g, n_in, in, &product_of, out);
    }
    return in[1]->type.rank > 2 ? dot_all(g, in, out) : oly_compose_matmul(g, n_in, in, recipe, out);
}
