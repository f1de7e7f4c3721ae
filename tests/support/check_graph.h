/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs for tests: operands and results as text ("f32[4,8]", "0.5", "true"; "float32[8]", "OLY_SHAPE: ..."),
 * factors as text. */
#ifndef CHECK_GRAPH_H
#define CHECK_GRAPH_H
#include "check.h"
#include "array/slice_notation.h"
#include "graph/build.h"
#include "graph/compose/compose.h"
#include "graph/factors.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static oly_graph *g;

static inline int open_graph(void **state)
{
    (void)state;
    oly_drop_message();
    g = oly_graph_new("test");
    return g ? 0 : -1;
}

static inline int close_graph(void **state)
{
    (void)state;
    oly_graph_free(g);
    g = NULL;
    return 0;
}

/* -- operands and outcomes as text ---------------------------------------------------------------------- */
static inline oly_dtype dtype_named(const char *name, size_t length)
{
    for (int d = 0; d < OLY_N_DTYPES; d++)
        for (int k = 0; k < 2; k++) {
            const char *candidate = k ? oly_dtype_short((oly_dtype)d) : oly_dtype_name((oly_dtype)d);
            if (strlen(candidate) == length && !strncmp(candidate, name, length))
                return d;
        }
    return OLY_N_DTYPES;
}

static inline oly_node *input(oly_graph *in, oly_type type)
{
    oly_node *node = NULL;
    assert_int_equal(oly_graph_input(in, &type, &node), OLY_OK);
    return node;
}

static inline oly_node *number(bool floating, double value)
{
    oly_params p;
    memset(&p, 0, sizeof p);
    p.dtype = floating ? OLY_FLOAT32 : OLY_INT32;
    p.weak = true;
    if (floating)
        p.value.f = value;
    else
        p.value.i = (int64_t)value;
    oly_node *node = NULL;
    assert_int_equal(oly_graph_add(g, OLY_OP_constant, 0, NULL, &p, &node), OLY_OK);
    return node;
}

static inline oly_type type_named(const char *text)
{
    oly_type type = {.weak = *text == '~'};
    text += type.weak;
    size_t length = strcspn(text, "[");
    type.dtype = dtype_named(text, length);
    assert_true(type.dtype < OLY_N_DTYPES);
    for (text += length + 1; *text && *text != ']'; text += *text == ',') {
        char *end;
        type.shape[type.rank++] = strtoll(text, &end, 10);
        text = end;
    }
    return type;
}

/* "f32[4,8]" an array, "1" or "0.5" a C number, "true" a C bool. */
static inline oly_node *operand(const char *text)
{
    if (strchr(text, '['))
        return input(g, type_named(text));
    if (!strcmp(text, "true")) {
        oly_node *node = NULL;
        assert_int_equal(oly_build_number(g, OLY_BOOL, 1, &node), OLY_OK);
        return node;
    }
    return number(strchr(text, '.') != NULL, strtod(text, NULL));
}

static oly_node *last; /* the result of the last composition */

/* Type of the result, or "OLY_SHAPE: message". */
static inline const char *outcome(oly_compose *compose, const oly_recipe *recipe, const char *operands)
{
    static char text[1200];
    char copy[200], *rest = copy;
    oly_node *in[20];
    int n = 0;
    snprintf(copy, sizeof copy, "%s", operands);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word)
            in[n++] = operand(word);
    oly_drop_message();
    last = NULL;
    oly_status s = compose(g, n, in, recipe, &last);
    if (s == OLY_OK)
        snprintf(text, sizeof text, "%s", oly_type_short(&last->type));
    else
        snprintf(text, sizeof text, "%s: %s", oly_status_name(s), oly_pending_message());
    return text;
}

static inline const char *of_op(oly_compose *compose, oly_op op, const char *operands)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = op;
    recipe.all_axes = true;
    return outcome(compose, &recipe, operands);
}

static inline void check_outcome(const char *got, const char *expected)
{
    bool fails = strstr(expected, ": ") != NULL;
    if (fails ? strstr(got, expected) == NULL && strncmp(got, expected, strlen(expected)) != 0
              : strcmp(got, expected) != 0)
        fail_msg("got \"%s\", expected \"%s\"", got, expected);
}

/* -- factors as text ------------------------------------------------------------------------------------ */

/* "abc!,ac!d->abd": a letter for each factor ("!" reduced, "~" shifted), "." for a dimension without, (ab) for
 * several. */
static inline void add_dims(char **at, const oly_factors *f, const oly_dim_factors *dims, int rank)
{
    for (int d = 0; d < rank; d++) {
        if (dims[d].n == 0)
            *(*at)++ = '.';
        if (dims[d].n > 1)
            *(*at)++ = '(';
        for (int k = 0; k < dims[d].n; k++) {
            int factor = dims[d].factor[k];
            assert_in_range(factor, 0, f->n_factors - 1);
            *(*at)++ = (char)('a' + factor);
            if (f->kind[factor] != OLY_FACTOR_PARALLEL)
                *(*at)++ = f->kind[factor] == OLY_FACTOR_SHIFTED ? '~' : '!';
        }
        if (dims[d].n > 1)
            *(*at)++ = ')';
    }
}

static inline const char *factors_text(const oly_node *node, oly_factors *f)
{
    static char text[300];
    char *at = text;
    assert_int_equal(oly_factors_of(node, f), OLY_OK);
    for (int k = 0; k < f->n_operands; k++) {
        if (k > 0)
            *at++ = ',';
        add_dims(&at, f, f->operand[k], node->in[k]->type.rank);
    }
    *at++ = '-', *at++ = '>';
    add_dims(&at, f, f->result, node->type.rank);
    *at = 0;
    return text;
}

static inline void check_factors(const char *expected)
{
    oly_factors f;
    assert_non_null(last);
    assert_string_equal(factors_text(last, &f), expected);
}

/* -- compositions with parameters ----------------------------------------------------------------------- */

static inline const char *reduced(oly_compose *compose, oly_op op, const char *axes, bool keepdims,
                                  const char *operands)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    recipe.op = op;
    recipe.all_axes = !axes;
    recipe.keepdims = keepdims;
    if (axes)
        assert_int_equal(oly_axes_notation(axes, &recipe.params), OLY_OK);
    return outcome(compose, &recipe, operands);
}

static inline const char *shaped(oly_compose *compose, const char *type, const char *operands)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    oly_type t = type_named(type);
    recipe.params.dtype = t.dtype;
    recipe.params.rank = t.rank;
    memcpy(recipe.params.shape, t.shape, sizeof t.shape);
    return outcome(compose, &recipe, operands);
}

static inline const char *sliced_outcome(oly_compose *compose, const char *slices, const char *operands)
{
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    oly_type whole = type_named(operands);
    assert_int_equal(oly_slice_notation(slices, whole.rank, whole.shape, &recipe.params), OLY_OK);
    return outcome(compose, &recipe, operands);
}

/* A loop over one carry of this type whose body is x * captured or, if `grow`, a comparison (another type). */
static inline oly_status make_loop(bool grow, oly_node **result)
{
    oly_graph *body = oly_graph_new("body");
    oly_type type = type_named("f32[4]"), counter = {.dtype = OLY_INT32};
    oly_node *out, *loop, *in[2];
    input(body, counter);
    in[0] = input(body, type);
    in[1] = input(body, type);
    assert_int_equal(oly_graph_add(body, grow ? OLY_OP_lt : OLY_OP_mul, 2, in, NULL, &out), OLY_OK);
    assert_int_equal(oly_graph_output(body, out), OLY_OK);
    oly_params p;
    memset(&p, 0, sizeof p);
    p.body = body;
    p.n_carry = 1;
    p.upper = 7;
    in[0] = operand("f32[4]");
    in[1] = operand("f32[4]");
    oly_status s = oly_graph_add(g, OLY_OP_loop, 2, in, &p, &loop);
    if (s != OLY_OK) {
        oly_graph_free(body);
        return s;
    }
    memset(&p, 0, sizeof p);
    return oly_graph_add(g, OLY_OP_result, 1, &loop, &p, result);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_graph, close_graph)
#endif
