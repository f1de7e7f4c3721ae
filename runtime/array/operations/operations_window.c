/* SPDX-License-Identifier: BSD-3-Clause */
/* The public convolutions and pooling: options as text or numbers become the window of a recipe for oly_dispatch. */
#include "array/array.h"
#include "array/arguments.h"
#include "array/dispatch.h"
#include "core/intern_text.h"
#include "core/scan.h"
#include "graph/contract.h"
#include "graph/conv_notation.h"
#include <inttypes.h>
#include <olympus/contract.h>
#include <string.h>

/* -- lists ------------------------------------------------------------------------------------------------------------------ */

typedef struct list {
    int n;
    int64_t number[OLY_MAX_WINDOW];
} list;

static oly_status too_many(const char *text)
{
    return oly_fail(OLY_INVALID, "\"%s\" has more than %d entries; windows have at most so many dimensions", text,
                    OLY_MAX_WINDOW);
}

/* Reads "2, 1", or n numbers; neither given: n is 0. */
static oly_status read_list(const char *text, int n, const int64_t *numbers, list *l)
{
    *l = (list){0};
    if (!text && numbers && (n < 0 || n > OLY_MAX_WINDOW))
        return oly_fail(OLY_INVALID, "%d entries; windows have 0 to %d dimensions", n, OLY_MAX_WINDOW);
    for (int k = 0; !text && numbers && k < n; k++)
        l->number[l->n++] = numbers[k];
    if (!text)
        return OLY_OK;
    oly_scanner s = oly_scan_begin(text);
    for (bool more = !oly_scan_end(&s); more; more = oly_scan_take(&s, ',')) {
        if (l->n == OLY_MAX_WINDOW)
            return too_many(text);
        if (!oly_scan_integer(&s, &l->number[l->n++]))
            return oly_scan_expected(&s, "a whole number");
    }
    return oly_scan_end(&s) ? OLY_OK : oly_scan_expected(&s, "\",\" or the end");
}

/* Copies a list into a member of the window; a list that was not given is all ones. */
static oly_status set_list(const list *l, const char *what, const oly_sliding_window *w, int64_t *member)
{
    if (l->n != 0 && l->n != w->rank)
        return oly_fail(OLY_SHAPE, "%s: %d entries for a window of %" PRId64 " dimensions; give each one", what, l->n,
                        w->rank);
    for (int d = 0; d < w->rank; d++)
        member[d] = l->n ? l->number[d] : 1;
    return OLY_OK;
}

static oly_status take_list(const char *text, int n, const int64_t *numbers, const char *what,
                            const oly_sliding_window *w, int64_t *member)
{
    list l;
    OLY_TRY(read_list(text, n, numbers, &l));
    return set_list(&l, what, w, member);
}

/* -- padding ---------------------------------------------------------------------------------------------------------------- */

/* "(1, 2), 0" */
static oly_status read_pairs(oly_scanner *s, oly_sliding_window *w)
{
    int d = 0;
    for (bool more = !oly_scan_end(s); more; more = oly_scan_take(s, ','), d++) {
        bool pair = oly_scan_take(s, '(');
        if (d == w->rank)
            return oly_fail(OLY_SHAPE, "padding \"%s\" has more entries than the %" PRId64 " dimensions of the window",
                            s->start, w->rank);
        if (!oly_scan_integer(s, &w->lo[d]))
            return oly_scan_expected(s, "a whole number, a pair \"(in front, behind)\", \"SAME\" or \"VALID\"");
        w->hi[d] = w->lo[d];
        if (!pair)
            continue;
        if (!oly_scan_take(s, ',') || !oly_scan_integer(s, &w->hi[d]))
            return oly_scan_expected(s, "\",\" and the padding behind");
        if (!oly_scan_take(s, ')'))
            return oly_scan_expected(s, "\")\"");
    }
    if (!oly_scan_end(s))
        return oly_scan_expected(s, "\",\" or the end");
    if (d != w->rank)
        return oly_fail(OLY_SHAPE,
                        "padding \"%s\" has %d entries for a window of %" PRId64 " dimensions; give each one", s->start,
                        d, w->rank);
    return OLY_OK;
}

/* Padding with which a window has ceil(size / stride) positions. */
static oly_status pad_same(oly_sliding_window *w, const int64_t *size, bool lower)
{
    for (int d = 0; d < w->rank; d++) {
        if (w->base_dilation[d] != 1)
            return oly_fail(OLY_INVALID, "a padding name cannot be combined with a dilated operand; give numbers");
        if (w->stride[d] < 1 || w->dilation[d] < 1 || w->dilation[d] > INT32_MAX || w->stride[d] > INT32_MAX ||
            w->size[d] > INT32_MAX)
            return OLY_OK; /* refused where windows are checked */
        int64_t places = (size[d] + w->stride[d] - 1) / w->stride[d];
        int64_t all = (places - 1) * w->stride[d] + oly_dilated(w->size[d], w->dilation[d]) - size[d];
        all = all > 0 ? all : 0;
        w->lo[d] = lower ? all - all / 2 : all / 2;
        w->hi[d] = all - w->lo[d];
    }
    return OLY_OK;
}

static oly_status take_padding(const char *text, int n, const int64_t *numbers, const int64_t *size,
                               oly_sliding_window *w)
{
    if (!text && numbers) {
        if (n != w->rank)
            return oly_fail(OLY_SHAPE, "padding: %d pairs for a window of %" PRId64 " dimensions; give each one", n,
                            w->rank);
        for (int d = 0; d < n; d++) {
            w->lo[d] = numbers[2 * d];
            w->hi[d] = numbers[2 * d + 1];
        }
        return OLY_OK;
    }
    char word[16];
    oly_scanner s = oly_scan_begin(text ? text : "VALID");
    if (!oly_scan_word(&s, word, sizeof word))
        return read_pairs(&s, w);
    bool lower = !strcmp(word, "SAME_LOWER"), same = lower || !strcmp(word, "SAME"), valid = !strcmp(word, "VALID");
    if ((!same && !valid) || !oly_scan_end(&s))
        return oly_fail(OLY_PARSE, "padding \"%s\" is unknown; use \"SAME\", \"SAME_LOWER\", \"VALID\" or numbers",
                        text);
    return same ? pad_same(w, size, lower) : OLY_OK;
}

/* -- convolutions ------------------------------------------------------------------------------------------------------------ */

static void begin(oly_recipe *recipe, oly_op op, oly_dtype wanted, oly_sharding sharding)
{
    memset(recipe, 0, sizeof *recipe); /* recipes are hashed and compared as memory */
    recipe->op = op;
    recipe->dtype_given = wanted != OLY_BOOL;
    recipe->params.dtype = wanted;
    recipe->params.sharding = sharding;
    recipe->window.groups = recipe->window.batch_groups = 1;
}

static oly_status read_conv(const oly_type *x, const oly_type *k, const oly_conv_options *o, oly_recipe *recipe)
{
    oly_sliding_window *w = &recipe->window;
    oly_conv_dims dims;
    int64_t size[OLY_MAX_WINDOW];
    if (x->rank != k->rank || x->rank < 2 || x->rank > OLY_MAX_WINDOW + 2)
        return OLY_OK; /* refused by the composition */
    OLY_TRY(oly_conv_dims_read(o->dimension_numbers, x->rank, &dims));
    recipe->notation = o->dimension_numbers ? oly_intern_text(o->dimension_numbers) : NULL;
    if (o->dimension_numbers && !recipe->notation)
        return OLY_MEMORY;
    w->rank = x->rank - 2;
    for (int d = 0; d < w->rank; d++) {
        w->size[d] = k->shape[dims.kernel[2 + d]];
        size[d] = x->shape[dims.operand[2 + d]];
    }
    OLY_TRY(take_list(o->strides, o->n_list, o->stride_list, "strides", w, w->stride));
    OLY_TRY(take_list(o->lhs_dilation, o->n_list, o->lhs_dilation_list, "lhs_dilation", w, w->base_dilation));
    OLY_TRY(take_list(o->rhs_dilation, o->n_list, o->rhs_dilation_list, "rhs_dilation", w, w->dilation));
    w->groups = o->feature_group_count ? o->feature_group_count : 1;
    w->batch_groups = o->batch_group_count ? o->batch_group_count : 1;
    return take_padding(o->padding, o->n_list, o->padding_list, size, w);
}

oly_array oly_conv_with(oly_array x, oly_array kernels, oly_conv_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK || oly_need_array(kernels) != OLY_OK)
        return NULL;
    oly_recipe recipe;
    begin(&recipe, OLY_OP_conv, options.preferred_element_type, options.out_sharding);
    if (!x || !kernels)
        return oly_null_array();
    if (oly_raise(read_conv(&x->type, &kernels->type, &options, &recipe)) != OLY_OK)
        return NULL;
    return oly_dispatch(oly_compose_conv, 2, (oly_operand[]){oly_operand_array(x), oly_operand_array(kernels)},
                        &recipe);
}

static oly_array vectors(oly_compose *compose, oly_array a, oly_array v, const char *mode, oly_product_options options)
{
    static const char *const modes[] = {"full", "same", "valid"};
    oly_recipe recipe;
    begin(&recipe, OLY_OP_conv, options.preferred_element_type, options.out_sharding);
    while (recipe.params.dimension < 3 && strcmp(modes[recipe.params.dimension], mode ? mode : "") != 0)
        recipe.params.dimension++;
    if (recipe.params.dimension == 3) {
        oly_raise(
            oly_fail(OLY_INVALID, "mode \"%s\" is unknown; use \"full\", \"same\" or \"valid\"", mode ? mode : ""));
        return NULL;
    }
    return oly_dispatch(compose, 2, (oly_operand[]){oly_operand_array(a), oly_operand_array(v)}, &recipe);
}

oly_array oly_convolve_with(oly_array a, oly_array v, const char *mode, oly_product_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(a) != OLY_OK || oly_need_array(v) != OLY_OK)
        return NULL;
    return vectors(oly_compose_convolve, a, v, mode, options);
}
oly_array oly_correlate_with(oly_array a, oly_array v, const char *mode, oly_product_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(a) != OLY_OK || oly_need_array(v) != OLY_OK)
        return NULL;
    return vectors(oly_compose_correlate, a, v, mode, options);
}

/* -- pooling ------------------------------------------------------------------------------------------------------------------ */

static oly_status read_window(const oly_type *x, const oly_window_options *o, oly_sliding_window *w)
{
    list extents;
    OLY_TRY(read_list(o->window, o->n_list, o->window_list, &extents));
    if (extents.n > x->rank)
        return oly_fail(OLY_SHAPE, "a window of %d dimensions over %s, which has fewer", extents.n, oly_type_short(x));
    w->rank = extents.n;
    memcpy(w->size, extents.number, sizeof w->size);
    OLY_TRY(take_list(o->strides, o->n_list, o->stride_list, "strides", w, w->stride));
    OLY_TRY(take_list(o->base_dilation, o->n_list, o->base_dilation_list, "base_dilation", w, w->base_dilation));
    OLY_TRY(take_list(o->window_dilation, o->n_list, o->window_dilation_list, "window_dilation", w, w->dilation));
    return take_padding(o->padding, o->n_list, o->padding_list, x->shape + x->rank - w->rank, w);
}

static oly_array pool(oly_compose *compose, oly_op op, oly_array x, const oly_window_options *options)
{
    oly_recipe recipe;
    begin(&recipe, op, OLY_BOOL, NULL);
    if (!x)
        return oly_null_array();
    if (oly_raise(read_window(&x->type, options, &recipe.window)) != OLY_OK)
        return NULL;
    return oly_dispatch(compose, 1, (oly_operand[]){oly_operand_array(x)}, &recipe);
}

oly_array oly_reduce_window_with(oly_array x, const char *reduction, oly_window_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    static const struct {
        const char *name;
        oly_op op;
    } known[] = {{"sum", OLY_OP_reduce_window_sum},
                 {"prod", OLY_OP_reduce_window_prod},
                 {"max", OLY_OP_reduce_window_max},
                 {"min", OLY_OP_reduce_window_min}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (reduction && !strcmp(known[k].name, reduction))
            return pool(oly_compose_window, known[k].op, x, &options);
    oly_raise(oly_fail(OLY_INVALID, "reduction \"%s\" is unknown; use \"sum\", \"prod\", \"max\" or \"min\"",
                       reduction ? reduction : ""));
    return NULL;
}
oly_array oly_avg_pool_with(oly_array x, oly_window_options options)
{
    OLY_ENTER(NULL);
    if (oly_need_array(x) != OLY_OK)
        return NULL;
    return pool(oly_compose_avg_pool, OLY_OP_reduce_window_sum, x, &options);
}
