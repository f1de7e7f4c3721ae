/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1,2 devices=8.  Explanations for programs: valid JSON, whose numbers are those of oly_costs, and a graph;
 * differences of two plans; correct reasons and hints. */
#include "check.h"
#include "check_json.h"
#include "core/error.h"
#include "core/option.h"
#include "plan/cost/cost.h"
#include <math.h>
#include <olympus.h>
#include <unistd.h>

static void product(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_relu(oly_matmul(in[0], in[1]));
}

static void sine_body(oly_array i, oly_array *carry, void *user)
{
    (void)i, (void)user;
    oly_array u = carry[0];
    carry[0] = oly_update(u, "1:-1", oly_sin(oly_add(oly_slice(u, ":-2"), oly_slice(u, "2:"))));
    carry[1] = oly_mul(2, carry[1]); /* of another shape: otherwise the loop would be one step */
}

static void sines(const oly_array *in, oly_array *out, void *user)
{
    oly_array carry[] = {in[0], oly_ones(OLY_FLOAT32, 3)};
    oly_fori(0, 7, sine_body, 2, carry, user);
    out[0] = carry[0];
}

static void added(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(in[0], oly_transpose(in[1]));
}

/* A hint removes one of two transfers. */
static void added_and_shifted(const oly_array *in, oly_array *out, void *user)
{
    (void)user;
    out[0] = oly_add(oly_roll(in[0], 3, 0), oly_transpose(in[1]));
}

static void constrained(const oly_array *in, oly_array *out, void *user)
{
    out[0] = oly_mul(2, oly_with_sharding_constraint(oly_exp(in[0]), *(oly_sharding *)user));
}

static oly_array put(oly_mesh mesh, const char *spec, int64_t rows, int64_t columns)
{
    return oly_device_put(oly_ones(OLY_FLOAT32, rows, columns), oly_named(mesh, spec));
}

static char *told(oly_explain_form form, oly_fn f, int n, const oly_array *in)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(oly_explain_as_n(file, form, f, n, in), OLY_OK);
    fclose(file);
    return text;
}

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

static void check_valid(const char *text)
{
    const char *bad = check_json(text);
    if (bad)
        print_error("not JSON from here on: %.80s\n", bad);
    assert_null(bad);
}

static int setup(void **state)
{
    (void)state;
    oly_init(NULL, NULL);
    oly_rates fixed = oly_rates_fixed();
    oly_rates_use(&fixed);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return oly_finalize();
}

static void the_reader_is_strict(void **state)
{
    (void)state;
    static const char *const bad[] = {"",         "{",       "[1,]", "{\"a\":1,}", "01",   "1.",          "[1 2]",
                                      "\"\t\"",   "\"\\x\"", "nul",  "{a:1}",      "[1]]", "\"\\u12g4\"", "+1",
                                      "\"\xff\"", ".5",      "1e",   "[\"a]"};
    static const char *const good[] = {"0", " [ ] ", "{}", "[1, -2.5e-3, \"\\u00e9\\n\", null, true]",
                                       "{\"a\": {\"b\": []}}"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_non_null(check_json(bad[k]));
    for (size_t k = 0; k < sizeof good / sizeof *good; k++)
        assert_null(check_json(good[k]));
    assert_int_equal((int)check_json_number("{\"a\": [1, {\"b\": 42}]}", "a.1.b"), 42);
    assert_int_equal(check_json_count("{\"a\": [1, {\"b\": 42}]}", "a"), 2);
}

static void json_is_valid_and_has_the_numbers_of_costs(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("a=4, b=2");
    oly_array in[] = {put(mesh, "a, b", 64, 32), put(mesh, "b, None", 32, 64)};
    oly_fn f = oly_jit(product, 2, 1);
    oly_plan_costs costs;
    char *text = told(OLY_EXPLAIN_JSON, f, 2, in);
    check_valid(text);
    assert_int_equal(oly_costs_n(&costs, f, 2, in), OLY_OK);
    assert_int_equal((int64_t)check_json_number(text, "totals.collectives"), costs.collectives);
    assert_int_equal((int64_t)check_json_number(text, "totals.wire_bytes"), costs.wire_bytes);
    assert_int_equal((int64_t)check_json_number(text, "totals.steps"), costs.steps);
    assert_int_equal(check_json_count(text, "steps"), costs.steps);
    assert_int_equal(check_json_count(text, "inputs"), 2);
    assert_true(check_json_number(text, "totals.seconds") > 0);
    assert_int_equal((int64_t)check_json_number(text, "memory.input_bytes"), 4 * (16 * 16 + 16 * 64));
    char *sharding = check_json_string(text, "inputs.0.sharding");
    assert_string_equal(sharding, "P('a', 'b')");
    free(sharding);
    char *dtype = check_json_string(text, "inputs.1.dtype"), *axis = check_json_string(text, "inputs.1.axes.0.0");
    assert_string_equal(dtype, "float32");
    assert_string_equal(axis, "b");
    free(dtype);
    free(axis);
    assert_int_equal(check_json_count(text, "inputs.1.axes"), 2);
    assert_int_equal(check_json_count(text, "inputs.1.axes.1"), 0);
    assert_int_equal(check_json_count(text, "inputs.1.shape"), 2);
    assert_int_equal((int)check_json_number(text, "inputs.1.shape.1"), 64);
    free(text);
}

static void names_are_quoted(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in = put(mesh, "x", 16, 8);
    oly_fn f = oly_jit(constrained, 1, 1, .name = "a \"name\" \\ \n \xc3\xa9 \xff",
                       .user = &(oly_sharding){oly_named(mesh, "x")});
    char *text = told(OLY_EXPLAIN_JSON, f, 1, &in);
    check_valid(text);
    free(text);
}

/* UTF-8 at its bounds: invalid, overlong and surrogate sequences, and those beyond U+10FFFF, are replaced byte by
 * byte. */
static void names_are_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *name, *quoted;
    } rows[] = {{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
                {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
                {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"},
                {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},
                {"\xe0\xa0\x80", "\xe0\xa0\x80"},
                {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},
                {"\xed\x9f\xbf", "\xed\x9f\xbf"},
                {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},
                {"\xc2\x80", "\xc2\x80"},
                {"\xc1\xbf", "\\ufffd\\ufffd"},
                {"\xef\xbf\xbd", "\xef\xbf\xbd"},
                {"\xf5\x80", "\\ufffd\\ufffd"},
                {"\xe2\x82", "\\ufffd\\ufffd"},
                {"\x7f\x1f", "\x7f\\u001f"}};
    oly_mesh mesh = oly_make_mesh("x=8");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char wanted[64];
        oly_array x = put(mesh, "x", 8, 8);
        oly_fn f = oly_jit(constrained, 1, 1, .name = rows[k].name, .user = &(oly_sharding){oly_named(mesh, "x")});
        char *text = told(OLY_EXPLAIN_JSON, f, 1, &x);
        snprintf(wanted, sizeof wanted, "\"plan\": \"%s\"", rows[k].quoted);
        assert_non_null(strstr(text, wanted));
        free(text);
    }
}

static void loops_are_inside_their_step(void **state)
{
    (void)state;
    oly_array in = oly_device_put(oly_zeros(OLY_FLOAT32, 96), oly_named(oly_make_mesh("x=8"), "x"));
    oly_fn f = oly_jit(sines, 1, 1);
    char *text = told(OLY_EXPLAIN_JSON, f, 1, &in);
    check_valid(text);
    int n = check_json_count(text, "steps"), inside = 0, repeated = 0;
    for (int k = 0; k < n; k++) {
        char path[64];
        snprintf(path, sizeof path, "steps.%d.inside", k);
        inside += !isnan(check_json_number(text, path));
        snprintf(path, sizeof path, "steps.%d.times", k);
        repeated += check_json_number(text, path) == 7;
    }
    assert_true(inside >= 2);
    assert_true(repeated >= inside - 1);
    free(text);
    text = told(OLY_EXPLAIN_DOT, f, 1, &in);
    assert_int_equal(strncmp(text, "digraph plan {", 14), 0);
    assert_int_equal(count(text, "{"), count(text, "}"));
    assert_int_equal(count(text, "subgraph cluster"), 1);
    assert_non_null(strstr(text, "7 times"));
    assert_non_null(strstr(text, "-> output0"));
    assert_non_null(strstr(text, "input0 -> "));
    free(text);
}

/* Which rule and which neighbour split a dimension. */
static void reasons_name_the_neighbour(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("a=4, b=2");
    oly_array in[] = {put(mesh, "a, b", 64, 32), put(mesh, "b, None", 32, 64)};
    char *text = told(OLY_EXPLAIN_TEXT, oly_jit(product, 2, 1), 2, in);
    assert_non_null(strstr(text, "input 0 of the call"));
    assert_non_null(
        strstr(text, "dimension 0 over a: from dimension 0 of operand 0 (%0) of dot_general (test_explain_forms.c:"));
    assert_non_null(strstr(text, "along b: 4 groups of 2"));
    free(text);
    oly_sharding columns = oly_named(mesh, "None, a");
    text =
        told(OLY_EXPLAIN_TEXT, oly_jit(constrained, 1, 1, .user = &columns), 1, (oly_array[]){put(mesh, "a", 64, 32)});
    assert_non_null(strstr(text, "constraint: place (test_explain_forms.c:"));
    free(text);
}

/* The saving that a hint promises is the difference of two explanations, if it is the change between them. */
static void check_saving(const char *before, const char *after, int hint)
{
    static const struct {
        const char *saved, *of;
        int sign;
    } figures[] = {{"bytes", "totals.bytes", 1},
                   {"wire_bytes", "totals.wire_bytes", 1},
                   {"collectives", "totals.collectives", 1},
                   {"memory", "memory.peak_bytes", -1},
                   {"seconds", "totals.seconds", 1}};
    char path[64];
    snprintf(path, sizeof path, "hints.%d.change", hint);
    char *subject = check_json_string(before, path);
    for (int k = 0; k < 5 && strstr(subject, "input 1"); k++) {
        snprintf(path, sizeof path, "hints.%d.%s", hint, figures[k].saved);
        double saved = check_json_number(before, path), difference = check_json_number(before, figures[k].of);
        difference = figures[k].sign * (difference - check_json_number(after, figures[k].of));
        if (fabs(saved - difference) > 1e-4 * fabs(difference))
            fail_msg("%s is %g and should be %g", path, saved, difference);
    }
    free(subject);
}

/* y is transposed into the layout of x by an exchange; with the other layout of y none is needed. */
static void a_hint_removes_the_transfer(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[] = {put(mesh, "x, None", 512, 512), put(mesh, "x, None", 512, 512)};
    oly_array better[] = {in[0], put(mesh, "None, x", 512, 512)};
    oly_fn f = oly_jit(added, 2, 1);
    oly_plan_costs before, after;
    char *text = told(OLY_EXPLAIN_JSON, f, 2, in);
    check_valid(text);
    assert_true(check_json_count(text, "hints") >= 1);
    char *change = check_json_string(text, "hints.0.change"), *again = check_json_string(text, "hints.1.change");
    bool either = strstr(change, "as P(None, 'x')") != NULL;
    assert_true(either);
    assert_int_equal(oly_costs_n(&before, f, 2, in), OLY_OK);
    assert_int_equal(oly_costs_n(&after, f, 2, better), OLY_OK);
    assert_int_equal((int64_t)check_json_number(text, "hints.0.wire_bytes"), before.wire_bytes - after.wire_bytes);
    assert_int_equal(after.collectives, 0);
    oly_fn both = oly_jit(added_and_shifted, 2, 1);
    char *now = told(OLY_EXPLAIN_JSON, both, 2, in), *then = told(OLY_EXPLAIN_JSON, both, 2, better);
    assert_true(check_json_number(then, "totals.bytes") > 0);
    for (int k = 0; k < check_json_count(now, "hints"); k++)
        check_saving(now, then, k);
    free(now);
    free(then);
    free(change);
    free(again);
    free(text);
    text = told(OLY_EXPLAIN_TEXT, f, 2, better);
    assert_null(strstr(text, "hints:"));
    free(text);
}

static char *read_back(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    rewind(file);
    assert_true(getdelim(&text, &size, 0, file) > 0);
    fclose(file);
    return text;
}

/* Inputs have the names that the program gives them. */
static void hints_name_the_arguments(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array left = put(mesh, "x, None", 512, 512), pair[] = {left, put(mesh, "x, None", 512, 512)};
    oly_fn f = oly_jit(added, 2, 1);
    FILE *file = tmpfile();
    assert_non_null(file);
    oly_explain(file, f, left, pair[1]);
    char *text = read_back(file);
    assert_non_null(strstr(text, "left, input 0 of the call"));
    assert_non_null(strstr(
        text,
        "placing pair[1], input 1, float32[512,512], as P(None, 'x') (instead of P('x',)) would save 1 all-to-all"));
    assert_non_null(strstr(text, "; avoided by hint 1"));
    free(text);
    file = tmpfile();
    oly_explain_as(file, OLY_EXPLAIN_JSON, f, oly_add(left, 1), pair[1]);
    text = read_back(file);
    check_valid(text);
    char *name = check_json_string(text, "inputs.0.name");
    assert_string_equal(name, "oly_add(left, 1)");
    assert_int_equal(check_json_count(text, "hints.0.removes"), 1);
    free(name);
    free(text);
    file = tmpfile(); /* forgets the names */
    oly_explain_n(file, f, 2, pair);
    text = read_back(file);
    assert_null(strstr(text, "pair[1]"));
    free(text);
}

/* Inside the function only the constraint requests columns. */
static void a_constraint_that_costs_is_named(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_sharding columns = oly_named(mesh, "None, x");
    oly_array in = put(mesh, "x, None", 512, 512);
    char *text = told(OLY_EXPLAIN_TEXT, oly_jit(constrained, 1, 1, .user = &columns), 1, &in);
    assert_non_null(strstr(text, "leaving out the constraint"));
    assert_non_null(strstr(text, "placing input 0, float32[512,512], as P(None, 'x') (instead of P('x',)) would save"));
    free(text);
}

static char *difference(oly_fn f, int n, const oly_array *in, oly_fn g, int m, const oly_array *other)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(oly_explain_diff(file, f, n, in, g, m, other), OLY_OK);
    fclose(file);
    return text;
}

static void differences_are_marked(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("a=4, b=2");
    oly_array x[] = {put(mesh, "a, b", 64, 32), put(mesh, "b, None", 32, 64)};
    oly_array y[] = {put(mesh, "a, None", 64, 32), put(mesh, "", 32, 64)};
    oly_fn f = oly_jit(product, 2, 1);
    char *text = difference(f, 2, x, f, 2, x);
    assert_non_null(strstr(text, "the steps are the same"));
    assert_null(strstr(text, " -> float32"));
    free(text);
    text = difference(f, 2, x, f, 2, y);
    assert_non_null(strstr(text, "collectives                  1 -> 0   (-1)"));
    assert_non_null(strstr(text, "input 0: float32[64,32]  P('a', 'b') -> float32[64,32]  P('a',)"));
    assert_non_null(strstr(text, "\n- all-reduce"));
    /* where a process has several devices with the same part, one computes it */
    assert_int_equal(count(text, "\n+ "), strstr(text, "computed once") ? 1 : 0);
    free(text);
}

static void mistakes_have_messages(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in = put(mesh, "x", 16, 8);
    oly_fn f = oly_jit(product, 2, 1);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_explain_as_n(stdout, (oly_explain_form)7, f, 1, &in), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "no form 7 of explanations"));
    oly_clear_error();
    assert_int_equal(oly_explain_diff(stdout, f, 1, &in, f, 1, &in), OLY_INVALID);
    assert_non_null(strstr(oly_last_error(), "takes 2 arrays, but 1 were given"));
    oly_clear_error();
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        setvbuf(full, NULL, _IONBF, 0);
        oly_array both[] = {in, put(mesh, "", 8, 8)};
        assert_int_equal(oly_explain_n(full, f, 2, both), OLY_IO);
        oly_clear_error();
        fclose(full);
    }
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* Wherever an allocation fails, there is an error or the whole text, and nothing leaks. */
static void memory_may_end_anywhere(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in[] = {put(mesh, "x, None", 64, 64), put(mesh, "x, None", 64, 64)};
    oly_fn f = oly_jit(added, 2, 1);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    for (int form = OLY_EXPLAIN_TEXT; form <= OLY_EXPLAIN_DOT; form++) {
        char *whole = told((oly_explain_form)form, f, 2, in);
        bool done = false;
        for (long n = 0; !done; n += n / 16 + 1) {
            char *text = NULL;
            size_t size = 0;
            FILE *file = open_memstream(&text, &size);
            assert_non_null(file);
            oly_fail_allocation(n);
            oly_status st = oly_explain_as_n(file, (oly_explain_form)form, f, 2, in);
            bool failed_in_time = st != OLY_OK;
            oly_fail_allocation(-1);
            fclose(file);
            if (st == OLY_OK)
                assert_string_equal(text, whole);
            else
                assert_int_equal(st, OLY_MEMORY);
            done = !failed_in_time && n > 20;
            oly_clear_error();
            free(text);
        }
        free(whole);
    }
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

/* OLYMPUS_EXPLAIN=json:FILE: one document for each plan, one after the other, from process 0. */
static void every_plan_goes_into_a_file(void **state)
{
    (void)state;
    oly_mesh mesh = oly_make_mesh("x=8");
    oly_array in = put(mesh, "x", 16, 8);
    oly_sharding rows = oly_named(mesh, "x");
    char path[] = "/tmp/olympus-explain-XXXXXX", asked[64], *text = NULL;
    size_t size = 0;
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    snprintf(asked, sizeof asked, "json:%s", path);
    snprintf(oly_option.explain, sizeof oly_option.explain, "%s", asked);
    oly_apply(oly_jit(constrained, 1, 1, .user = &rows), in);
    oly_option.explain[0] = 0;
    FILE *file = fdopen(descriptor, "r");
    assert_non_null(file);
    if (oly_process_index() == 0) {
        assert_true(getdelim(&text, &size, 0, file) > 0);
        check_valid(text);
    }
    fclose(file);
    unlink(path);
    free(text);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    strcpy(oly_option.explain, "yes");
    if (oly_process_count() == 1)
        assert_null(oly_apply(oly_jit(constrained, 1, 1, .user = &rows), in));
    oly_option.explain[0] = 0;
    if (oly_process_count() == 1)
        assert_non_null(strstr(oly_last_error(), "OLYMPUS_EXPLAIN is 'yes'"));
    oly_clear_error();
    oly_set_error_mode(OLY_ERRORS_ABORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_is_strict),
        cmocka_unit_test_setup_teardown(json_is_valid_and_has_the_numbers_of_costs, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_quoted, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_utf8, setup, teardown),
        cmocka_unit_test_setup_teardown(loops_are_inside_their_step, setup, teardown),
        cmocka_unit_test_setup_teardown(reasons_name_the_neighbour, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hint_removes_the_transfer, setup, teardown),
        cmocka_unit_test_setup_teardown(hints_name_the_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(a_constraint_that_costs_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(differences_are_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes_have_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_may_end_anywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(every_plan_goes_into_a_file, setup, teardown),
    };
    return CHECK_MAIN(tests);
}
