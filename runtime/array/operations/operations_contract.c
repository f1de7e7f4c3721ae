/* SPDX-License-Identifier: BSD-3-Clause */
/* The public products: each reads its arguments into a recipe for oly_dispatch (see operations.c); the compositions
 * check shapes and element types (graph/compose/compose_contract.c, compose_einsum.c). */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "core/intern_text.h"
#include "core/scan.h"
#include "graph/build.h"
#include <olympus/contract.h>
#include <string.h>

static void begin(oly_recipe *recipe, oly_dtype wanted, oly_sharding sharding)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
    recipe->op = OLY_OP_dot_general;
    recipe->dtype_given = wanted != OLY_BOOL; /* a product of bools is always bool */
    recipe->params.dtype = wanted;
    recipe->params.sharding = sharding;
}

#define PRODUCT(function, compose)                                                                                     \
    oly_array function(oly_operand a, oly_operand b, oly_product_options options)                                      \
    {                                                                                                                  \
        OLY_ENTER(NULL);                                                                                               \
        oly_recipe recipe;                                                                                             \
        begin(&recipe, options.preferred_element_type, options.out_sharding);                                          \
        return oly_dispatch(compose, 2, (oly_operand[]){a, b}, &recipe);                                               \
    }
PRODUCT(oly_matmul_with, oly_compose_matmul)
PRODUCT(oly_dot_with, oly_compose_dot)
PRODUCT(oly_inner_with, oly_compose_inner)
PRODUCT(oly_outer_with, oly_compose_outer)
PRODUCT(oly_vdot_with, oly_compose_vdot)

static bool is_null(oly_operand x)
{
    return x.kind == 'a' && !x.array;
}

static oly_type type_of(oly_operand x)
{
    return x.kind == 'a' ? x.array->type : (oly_type){.rank = 0};
}

oly_array oly_tensordot_with(oly_operand a, oly_operand b, int axes, oly_product_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&a) != OLY_OK || oly_need_operand(&b) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, options.preferred_element_type, options.out_sharding);
    if (is_null(a) || is_null(b))
        return oly_null_array();
    oly_type x = type_of(a), y = type_of(b);
    if (axes < 0 || axes > x.rank || axes > y.rank) {
        oly_raise(oly_fail(OLY_INVALID, "%d axes of %s and %s; there are 0 to %d to sum over", axes, oly_type_short(&x),
                           oly_type_short(&y), x.rank < y.rank ? x.rank : y.rank));
        return NULL;
    }
    oly_contraction *c = &recipe.params.contraction;
    c->n_contract = (uint8_t)axes;
    for (int k = 0; k < axes; k++) {
        c->contract[0][k] = (uint8_t)(x.rank - axes + k);
        c->contract[1][k] = (uint8_t)k;
    }
    return oly_dispatch(oly_compose_dot_general, 2, (oly_operand[]){a, b}, &recipe);
}

/* -- pairs of dimensions ------------------------------------------------------------------------------------------------ */

typedef struct pairs {
    int n[2];
    int dimension[2][OLY_MAX_RANK];
} pairs;

/* "1, 2; 0, 1" */
static oly_status read_pairs(const char *text, pairs *p)
{
    oly_scanner s = oly_scan_begin(text);
    for (int o = 0; o < 2; o++) {
        bool empty = oly_scan_end(&s) || oly_scan_peek(&s) == ';';
        for (bool more = !empty; more; more = oly_scan_take(&s, ',')) {
            int64_t d;
            if (p->n[o] == OLY_MAX_RANK)
                return oly_fail(OLY_INVALID, "\"%s\" names more than %d dimensions of one operand; arrays have no more",
                                text, OLY_MAX_RANK);
            if (!oly_scan_integer(&s, &d) || d < -OLY_MAX_RANK || d >= OLY_MAX_RANK)
                return oly_scan_expected(&s, "a dimension (negative: from the end)");
            p->dimension[o][p->n[o]++] = (int)d;
        }
        if (o == 0 && !oly_scan_take(&s, ';'))
            return oly_scan_expected(&s, "\",\" or \";\" and the dimensions of the second operand");
    }
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "\",\" or the end");
    return OLY_OK;
}

static oly_status take_pairs(const char *text, int n, const int *of_a, const int *of_b, const oly_type *const *type,
                             const char *what, uint8_t *count, uint8_t (*to)[OLY_MAX_RANK])
{
    pairs p = {0};
    if (text) {
        OLY_TRY(read_pairs(text, &p));
    } else {
        if (n < 0 || n > OLY_MAX_RANK)
            return oly_fail(OLY_INVALID, "%d pairs of %s dimensions; there can be 0 to %d", n, what, OLY_MAX_RANK);
        if (n > 0 && (!of_a || !of_b))
            return oly_fail(OLY_INVALID, "the list of %d %s dimensions is NULL", n, what);
        for (int k = 0; k < n; k++) {
            p.dimension[0][p.n[0]++] = of_a[k];
            p.dimension[1][p.n[1]++] = of_b[k];
        }
    }
    if (p.n[0] != p.n[1])
        return oly_fail(OLY_SHAPE, "%d %s dimensions of %s and %d of %s; they must come in pairs", p.n[0], what,
                        oly_type_short(type[0]), p.n[1], oly_type_short(type[1]));
    *count = (uint8_t)p.n[0];
    for (int o = 0; o < 2; o++)
        for (int k = 0; k < p.n[o]; k++) {
            int d;
            OLY_TRY(oly_build_axis(type[o], p.dimension[o][k], &d));
            to[o][k] = (uint8_t)d;
        }
    return OLY_OK;
}

oly_array oly_dot_general_with(oly_operand a, oly_operand b, oly_dot_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_operand(&a) != OLY_OK || oly_need_operand(&b) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, options.preferred_element_type, options.out_sharding);
    if (is_null(a) || is_null(b))
        return NULL;
    oly_contraction *c = &recipe.params.contraction;
    oly_type x = type_of(a), y = type_of(b);
    const oly_type *type[2] = {&x, &y};
    oly_status st = take_pairs(options.contracting, options.n_contracting, options.a_contracting, options.b_contracting,
                               type, "contracting", &c->n_contract, c->contract);
    if (st == OLY_OK)
        st = take_pairs(options.batch, options.n_batch, options.a_batch, options.b_batch, type, "batch", &c->n_batch,
                        c->batch);
    if (oly_raise(st) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_dot_general, 2, (oly_operand[]){a, b}, &recipe);
}

/* -- einsum -------------------------------------------------------------------------------------------------------------- */

oly_array oly_einsum_with(const char *subscripts, int n, const oly_array *arrays, oly_product_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_arrays(n, arrays) != OLY_OK)
        return NULL;
    enum { MOST = 64 };
    oly_operand in[MOST];
    oly_recipe recipe;
    begin(&recipe, options.preferred_element_type, options.out_sharding);
    if (n < 1 || n > MOST) {
        oly_raise(oly_fail(OLY_INVALID, "%d operands; einsum takes 1 to %d", n, MOST));
        return NULL;
    }
    for (int k = 0; k < n; k++)
        in[k] = oly_operand_array(arrays[k]);
    recipe.notation = oly_intern_text(subscripts ? subscripts : "");
    if (!recipe.notation) {
        oly_raise(OLY_MEMORY);
        return NULL;
    }
    return oly_dispatch(oly_compose_einsum, n, in, &recipe);
}
