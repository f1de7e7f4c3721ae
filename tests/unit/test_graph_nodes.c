/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Graphs: type rules, factors, text, fingerprints, and errors when memory runs out. */
#include "check_graph.h"

/* -- the rules themselves, against mistakes of passes over graphs -------------------------------------------------- */
static void rules_refuse_what_does_not_fit(void **state)
{
    (void)state;
    oly_node *f = operand("f32[4]"), *i = operand("i32[4]"), *c = operand("bool[4]"), *m = operand("f32[2,3]");
    oly_node *two[2] = {f, i}, *three[3] = {f, f, f}, *both[2] = {m, m}, *join[2] = {f, m}, *made = NULL;
    oly_params p;
    memset(&p, 0, sizeof p);
    assert_int_equal(oly_graph_add(g, OLY_OP_add, 1, two, NULL, &made), OLY_INVALID);
    assert_int_equal(oly_graph_add(g, OLY_OP_add, 2, two, NULL, &made), OLY_DTYPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_add, 2, join, NULL, &made), OLY_SHAPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_lt, 2, two, NULL, &made), OLY_DTYPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_select, 3, three, NULL, &made), OLY_DTYPE);
    three[0] = c, three[2] = i;
    assert_int_equal(oly_graph_add(g, OLY_OP_select, 3, three, NULL, &made), OLY_DTYPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_dot_general, 2, two, NULL, &made), OLY_DTYPE);
    memset(&p, 0, sizeof p);
    p.contraction.n_contract = 1;
    p.contraction.contract[1][0] = 1; /* 2 with 3 */
    assert_int_equal(oly_graph_add(g, OLY_OP_dot_general, 2, both, &p, &made), OLY_SHAPE);
    p.contraction.contract[0][0] = 2; /* no such dimension */
    assert_int_equal(oly_graph_add(g, OLY_OP_dot_general, 2, both, &p, &made), OLY_SHAPE);
    memset(&p, 0, sizeof p);
    p.contraction.n_contract = p.contraction.n_batch = 1; /* named twice */
    assert_int_equal(oly_graph_add(g, OLY_OP_dot_general, 2, both, &p, &made), OLY_SHAPE);
    memset(&p, 0, sizeof p);
    assert_int_equal(oly_graph_add(g, OLY_OP_concatenate, 0, NULL, &p, &made), OLY_INVALID);
    assert_int_equal(oly_graph_add(g, OLY_OP_concatenate, 2, two, &p, &made), OLY_DTYPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_concatenate, 2, join, &p, &made), OLY_SHAPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_transpose, 1, &m, &p, &made), OLY_SHAPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_slice, 1, &f, &p, &made), OLY_SHAPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_result, 1, &f, &p, &made), OLY_INVALID);
    assert_int_equal(oly_graph_add(g, OLY_OP_loop, 1, &f, &p, &made), OLY_INVALID);
    p.rank = 1, p.step[0] = 1, p.start[0] = 2, p.shape[0] = 3;
    assert_int_equal(oly_graph_add(g, OLY_OP_slice, 1, &f, &p, &made), OLY_INVALID);
    p.shape[0] = 2;
    assert_int_equal(oly_graph_add(g, OLY_OP_slice, 1, &f, &p, &made), OLY_OK);
    assert_int_equal(oly_graph_add(g, OLY_OP_update, 2, (oly_node *[]){f, f}, &p, &made), OLY_SHAPE);
    assert_int_equal(oly_graph_add(g, OLY_OP_reshape, 1, &f, &p, &made), OLY_SHAPE);
    p.rank = OLY_MAX_RANK + 1;
    assert_int_equal(oly_graph_add(g, OLY_OP_broadcast, 1, &f, &p, &made), OLY_INVALID);
    memset(&p, 0, sizeof p);
    p.n_axes = 2, p.axes[0] = 1;
    assert_int_equal(oly_graph_add(g, OLY_OP_reduce_sum, 1, &m, &p, &made), OLY_SHAPE);
    p.dtype = OLY_N_DTYPES;
    assert_int_equal(oly_graph_add(g, OLY_OP_convert, 1, &m, &p, &made), OLY_INVALID);
    assert_int_equal(g->n_nodes, 5); /* failures leave the graph unchanged */
    assert_int_equal(f->n_uses, 1);
}

static void loops_keep_the_types_of_their_carries(void **state)
{
    (void)state;
    oly_node *result;
    assert_int_equal(make_loop(false, &result), OLY_OK);
    assert_string_equal(oly_type_short(&result->type), "float32[4]");
    assert_int_equal(make_loop(true, &result), OLY_DTYPE);
    assert_non_null(strstr(oly_pending_message(), "carry 0 of the loop is float32[4] but its body has bool[4]"));
}

static void nodes_of_other_graphs_are_refused(void **state)
{
    (void)state;
    oly_graph *other = oly_graph_new("other");
    oly_node *x = input(other, type_named("f32[4]")), *made;
    assert_int_equal(oly_graph_add(g, OLY_OP_neg, 1, &x, NULL, &made), OLY_TRACE);
    operand("f32[4]");
    assert_int_equal(oly_graph_add(g, OLY_OP_neg, 1, &x, NULL, &made), OLY_TRACE);
    oly_graph_free(other);
}

static void any_number_of_inputs_and_outputs(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    oly_type type = type_named("f32[4]");
    oly_node *x = NULL;
    for (int k = 0; k < MANY; k++)
        assert_int_equal(oly_graph_input(g, &type, &x), OLY_OK);
    for (int k = 0; k < MANY; k++)
        assert_int_equal(oly_graph_output(g, g->inputs[MANY - 1 - k]), OLY_OK);
    for (int k = 0; k < MANY; k++)
        assert_ptr_equal(g->outputs[k], g->nodes[MANY - 1 - k]);
    assert_int_equal(x->n_uses, 1);
}

/* -- factors -------------------------------------------------------------------------------------------- */

static void factors_of_each_rule(void **state)
{
    (void)state;
    of_op(oly_compose_binary, OLY_OP_add, "f32[4,1,8] f32[4,1,8]");
    check_factors("a.b,a.b->a.b");
    of_op(oly_compose_unary, OLY_OP_neg, "f32[]");
    check_factors("->");
    last = operand("f32[4,1]");
    check_factors("->a.");
    of_op(oly_compose_matmul, OLY_OP_dot_general, "f32[2,3,5] f32[2,5,7]");
    check_factors("abc!,ac!d->abd");
    of_op(oly_compose_matmul, OLY_OP_dot_general, "f32[2,1,5] f32[2,5,7]");
    check_factors("a.b!,ab!c->a.c");
    reduced(oly_compose_reduce, OLY_OP_reduce_sum, "0", false, "f32[4,8,1]");
    check_factors("a!b.->b.");
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    outcome(oly_compose_transpose, &recipe, "f32[4,8,1]");
    check_factors("ba.->.ab");
    shaped(oly_compose_broadcast, "f32[2,4,8]", "f32[4,1]");
    check_factors("a.->bac");
}

static void factors_of_parts(void **state)
{
    (void)state;
    oly_factors f;
    sliced_outcome(oly_compose_slice, "1:-1, :, ::2, 2:3", "f32[8,5,7,4]");
    assert_string_equal(factors_text(last, &f), "a~bc~.->a~bc~.");
    assert_int_equal(f.size[0], 6); /* of the result */
    sliced_outcome(oly_compose_update, "1:-1, :", "f32[8,5] f32[6,5]");
    assert_string_equal(factors_text(last, &f), "a~b,a~b->a~b");
    assert_int_equal(f.size[0], 8);
    sliced_outcome(oly_compose_update, "3", "f32[8,5] f32[5]");
    check_factors("a~b,.b->a~b");
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    outcome(oly_compose_concatenate, &recipe, "f32[8,5] f32[1,5] f32[2,5]");
    check_factors("a~b,.b,a~b->a~b");
    recipe.params.rank = 2, recipe.params.shape[0] = 3, recipe.params.shape[1] = 5;
    outcome(oly_compose_dynamic_slice, &recipe, "f32[8,5] i32[] i32[]");
    assert_string_equal(factors_text(last, &f), "a~b,,->a~b");
    assert_int_equal(f.size[0], 3); /* of the result */
    assert_int_equal(f.size[1], 5);
    assert_int_equal(make_loop(false, &last), OLY_OK);
    check_factors("->.");
}

static void factors_of_reshapes(void **state)
{
    (void)state;
    /* clang-format off */
    static const char *const cases[][3] = {
        {"f32[6,4]", "f32[2,12]", "(ab)c->a(bc)"}, {"f32[6,4]", "f32[24]", "ab->(ab)"},
        {"f32[24]", "f32[2,3,4]", "(abc)->abc"}, {"f32[6,4]", "f32[8,3]", "(ab)d->(ac)e"},
        {"f32[6,4,5]", "f32[8,3,5]", "(ab)df->(ac)ef"}, {"f32[5,6,4]", "f32[5,8,3]", "a(bc)e->a(bd)f"},
        {"f32[4,8]", "f32[4,1,8]", "ab->a.b"}, {"f32[1,4,8,1]", "f32[8,1,4]", ".a(bc).->(ab).c"},
        {"f32[1,1]", "f32[]", "..->"}, {"f32[0,4]", "f32[4,0]", "..->.."}, {"f32[4,6]", "f32[6,4]", "(ab)d->(ac)e"},
        {"f32[7,2,3]", "f32[7,6]", "abc->a(bc)"}
    };
    /* clang-format on */
    oly_factors f;
    for (size_t k = 0; k < COUNT(cases); k++) {
        shaped(oly_compose_reshape, cases[k][1], cases[k][0]);
        assert_string_equal(factors_text(last, &f), cases[k][2]);
    }
    shaped(oly_compose_reshape, "f32[2,12]", "f32[6,4]");
    factors_text(last, &f);
    assert_int_equal(f.n_factors, 3);
    assert_true(f.size[0] == 2 && f.size[1] == 3 && f.size[2] == 4);
}

static void only_the_first_16_operands_are_described(void **state)
{
    (void)state;
    oly_recipe recipe;
    oly_factors f;
    oly_node *in[17];
    memset(&recipe, 0, sizeof recipe);
    for (int k = 0; k < 17; k++)
        in[k] = operand("f32[2]");
    assert_int_equal(oly_compose_concatenate(g, 17, in, &recipe, &last), OLY_OK);
    assert_int_equal(oly_factors_of(last, &f), OLY_OK);
    assert_int_equal(f.n_operands, 16);
    assert_int_equal(f.size[0], 34);
}

/* -- text and fingerprint ------------------------------------------------------------------------------- */
static void build_program(oly_graph **program, const char *slices, double factor)
{
    oly_graph *saved = g;
    g = oly_graph_new("program");
    oly_recipe recipe;
    memset(&recipe, 0, sizeof recipe);
    oly_node *x = operand("f32[8,4]"), *half = number(true, factor), *part, *out;
    assert_int_equal(oly_slice_notation(slices, 2, x->type.shape, &recipe.params), OLY_OK);
    assert_int_equal(oly_compose_slice(g, 1, &x, &recipe, &part), OLY_OK);
    recipe.op = OLY_OP_mul;
    assert_int_equal(oly_compose_binary(g, 2, (oly_node *[]){half, part}, &recipe, &out), OLY_OK);
    memset(&recipe, 0, sizeof recipe);
    recipe.op = OLY_OP_reduce_sum;
    recipe.params.n_axes = 1;
    assert_int_equal(oly_compose_reduce(g, 1, &out, &recipe, &out), OLY_OK);
    assert_int_equal(oly_graph_output(g, out), OLY_OK);
    *program = g;
    g = saved;
}

static void text_shows_every_node(void **state)
{
    (void)state;
    oly_graph *program;
    oly_text text = {0};
    oly_restore_site((oly_site){"course/heat.c", "oly_mul", 12});
    build_program(&program, "1:-1, ::2", 0.5);
    oly_graph_text(&text, program);
    assert_string_equal(oly_text_chars(&text), "%0 = input : float32[8,4]   heat.c:12\n"
                                               "%1 = constant 0.5 : ~float32[]   heat.c:12\n"
                                               "%2 = slice %0 [1:7, 0:3:2] : float32[6,2]   heat.c:12\n"
                                               "%3 = constant 0.5 : float32[]   heat.c:12\n"
                                               "%4 = broadcast %3 : float32[6,2]   heat.c:12\n"
                                               "%5 = mul %4 %2 : float32[6,2]   heat.c:12\n"
                                               "%6 = reduce_sum %5 (0) : float32[2]   heat.c:12\n"
                                               "return %6\n");
    oly_text_free(&text);
    oly_graph_free(program);
}

static void text_shows_bodies_of_loops(void **state)
{
    (void)state;
    oly_node *result;
    oly_text text = {0};
    assert_int_equal(make_loop(false, &result), OLY_OK);
    oly_graph_text(&text, g);
    assert_non_null(strstr(oly_text_chars(&text), "%2 = loop %0 %1 0..7 carries 1"));
    assert_non_null(strstr(oly_text_chars(&text), "\n    %3 = mul %1 %2 : float32[4]"));
    assert_non_null(strstr(oly_text_chars(&text), "\n    return %3\n"));
    oly_text_free(&text);
}

static uint64_t program_hash(const char *slices, double factor)
{
    oly_graph *program;
    build_program(&program, slices, factor);
    uint64_t h = oly_graph_hash(program);
    oly_graph_free(program);
    return h;
}

static void equal_programs_have_equal_fingerprints(void **state)
{
    (void)state;
    uint64_t h = program_hash("1:-1, ::2", 0.5);
    oly_restore_site((oly_site){"elsewhere.c", "oly_add", 99});
    assert_true(program_hash("1:-1, ::2", 0.5) == h); /* independent of addresses and lines */
    assert_true(program_hash("1:7, 0:4:2", 0.5) == h);
    assert_true(program_hash("2:8, ::2", 0.5) != h);
    assert_true(program_hash("1:-1, ::2", 0.25) != h);
}

static void outputs_and_bodies_count_in_fingerprints(void **state)
{
    (void)state;
    oly_node *result;
    assert_int_equal(make_loop(false, &result), OLY_OK);
    uint64_t before = oly_graph_hash(g);
    oly_node *loop = result->in[0];
    loop->params.upper++;
    uint64_t after = oly_graph_hash(g);
    assert_true(before != after);
    loop->params.body->nodes[3]->op = OLY_OP_add;
    assert_true(oly_graph_hash(g) != after);
    after = oly_graph_hash(g);
    assert_int_equal(oly_graph_output(g, result), OLY_OK);
    assert_true(oly_graph_hash(g) != after);
}

/* -- memory --------------------------------------------------------------------------------------------- */

/* Some of every kind, more than the first list of nodes has room for. */
static oly_status build_everything(oly_graph *in)
{
    oly_type type = type_named("f32[4,6]");
    oly_node *x, *y, *z;
    oly_recipe recipe;
    OLY_TRY(oly_graph_input(in, &type, &x));
    memset(&recipe, 0, sizeof recipe);
    for (int k = 0; k < 300; k++) {
        recipe.op = OLY_OP_add;
        OLY_TRY(oly_compose_binary(in, 2, (oly_node *[]){x, x}, &recipe, &x));
    }
    OLY_TRY(oly_compose_transpose(in, 1, &x, &recipe, &y));
    OLY_TRY(oly_compose_matmul(in, 2, (oly_node *[]){x, y}, &recipe, &z));
    OLY_TRY(oly_compose_relu(in, 1, &z, &recipe, &z));
    OLY_TRY(oly_compose_concatenate(in, 2, (oly_node *[]){z, z}, &recipe, &z));
    recipe.all_axes = true;
    OLY_TRY(oly_compose_mean(in, 1, &z, &recipe, &z));
    return oly_graph_output(in, z);
}

static void running_out_of_memory_is_reported(void **state)
{
    (void)state;
    int failures = 0;
    for (long n = 0;; n++) {
        oly_drop_message();
        oly_fail_allocation(n);
        oly_graph *made = oly_graph_new("sweep");
        oly_status s = made ? build_everything(made) : OLY_MEMORY;
        oly_fail_allocation(-1);
        oly_graph_free(made);
        if (s == OLY_OK)
            break;
        assert_int_equal(s, OLY_MEMORY);
        assert_true(oly_pending_message()[0] != 0);
        failures++;
    }
    assert_true(failures >= 3); /* the graph and blocks of its arena */
    oly_drop_message();
}

int main(void)
{
    /* clang-format off */
    const struct CMUnitTest tests[] = {
        TEST(rules_refuse_what_does_not_fit), TEST(loops_keep_the_types_of_their_carries),
        TEST(nodes_of_other_graphs_are_refused), TEST(any_number_of_inputs_and_outputs),
        TEST(factors_of_each_rule), TEST(factors_of_parts), TEST(factors_of_reshapes),
        TEST(only_the_first_16_operands_are_described), TEST(text_shows_every_node),
        TEST(text_shows_bodies_of_loops), TEST(equal_programs_have_equal_fingerprints),
        TEST(outputs_and_bodies_count_in_fingerprints), TEST(running_out_of_memory_is_reported)
    };
    /* clang-format on */
    return CHECK_MAIN(tests);
}
