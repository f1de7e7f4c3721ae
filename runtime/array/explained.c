/* SPDX-License-Identifier: BSD-3-Clause */
/* Explanations of functions: their plans as text, JSON, graphs, differences and numbers. See include/olympus/transform.h. */
#include "array/function.h"
#include "array/arguments.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool missing(oly_fn f, int n_in, const oly_array *in)
{
    for (int k = 0; k < n_in; k++)
        if (!in[k])
            return true;
    return !f;
}

/* Prints the text and frees it. */
static oly_status print(FILE *file, oly_text *t)
{
    if (!file) {
        oly_text_free(t);
        return oly_fail(OLY_INVALID, "the file is NULL");
    }
    bool failed = fputs(oly_text_chars(t), file) == EOF;
    oly_text_free(t);
    return failed ? oly_fail(OLY_IO, "the explanation cannot be written: %s", strerror(errno)) : OLY_OK;
}

/* -- names of arguments ------------------------------------------------------------------------------------ */

static _Thread_local const char *written; /* the arguments of the next explanation as written in the program */
static _Thread_local int not_inputs;      /* how many of them come before the inputs */

void oly_explain_names(const char *arguments, int skipped)
{
    OLY_ENTER_ANY_TIME();
    written = arguments;
    not_inputs = skipped;
}

/* Splits the text at commas outside brackets and quotation marks; parts of more than 40 characters get no name. */
static int split_names(char *text, const char **names, int most)
{
    int n = 0, open = 0;
    bool quoted = false;
    for (char *begin = text, *at = text; n < most; at++) {
        if (*at == 0 || (*at == ',' && open == 0 && !quoted)) {
            bool last = *at == 0;
            *at = 0;
            begin += strspn(begin, " ");
            names[n++] = *begin && strlen(begin) <= 40 ? begin : NULL;
            if (last)
                return n;
            begin = at + 1;
        } else if (*at == '"' && (at == text || at[-1] != '\\')) {
            quoted = !quoted;
        } else if (!quoted) {
            open += strchr("([{", *at) != NULL;
            open -= strchr(")]}", *at) != NULL;
        }
    }
    return n;
}

static oly_status explain(FILE *file, oly_explain_form form, oly_fn f, int n_in, const oly_array *in,
                          const char *arguments)
{
    const oly_plan *plan;
    oly_text t = {0};
    if (form < OLY_EXPLAIN_TEXT || form > OLY_EXPLAIN_DOT)
        return oly_fail(OLY_INVALID, "there is no form %d of explanations; use OLY_EXPLAIN_TEXT, _JSON or _DOT",
                        (int)form);
    OLY_TRY(oly_function_plan(f, n_in, in, &plan));
    char *text = arguments ? oly_strdup(arguments) : NULL;
    int in_front = arguments ? not_inputs : 0, all = in_front + n_in;
    const char **names = oly_calloc((size_t)(in_front + plan->n_inputs) + 1, sizeof *names);
    if (text && names && split_names(text, names, all + 1) != all)
        memset(names, 0, sizeof *names * (size_t)(all + 1));
    oly_status st =
        names ? oly_plan_explain(&t, plan, form, true, names + in_front) : oly_out_of_memory(8, "an explanation");
    oly_release(names);
    oly_release(text);
    if (st == OLY_OK)
        return print(file, &t);
    oly_text_free(&t);
    return st;
}

oly_status oly_explain_n(FILE *file, oly_fn f, int n_in, const oly_array *in)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(f, OLY_HANDLE_FUNCTION));
    OLY_TRY(oly_need_arrays(n_in, in));
    const char *arguments = written;
    written = NULL;
    if (missing(f, n_in, in))
        return oly_null_handle();
    return oly_raise(explain(file, OLY_EXPLAIN_TEXT, f, n_in, in, arguments));
}

oly_status oly_explain_as_n(FILE *file, oly_explain_form form, oly_fn f, int n_in, const oly_array *in)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(f, OLY_HANDLE_FUNCTION));
    OLY_TRY(oly_need_arrays(n_in, in));
    const char *arguments = written;
    written = NULL;
    if (missing(f, n_in, in))
        return oly_null_handle();
    return oly_raise(explain(file, form, f, n_in, in, arguments));
}

static oly_status explain_diff(FILE *file, oly_fn before, int n_before, const oly_array *in_before, oly_fn after,
                               int n_after, const oly_array *in_after)
{
    const oly_plan *a, *b;
    oly_text t = {0};
    OLY_TRY(oly_function_plan(before, n_before, in_before, &a));
    OLY_TRY(oly_function_plan(after, n_after, in_after, &b));
    oly_status st = oly_plan_diff(&t, a, b);
    if (st == OLY_OK)
        return print(file, &t);
    oly_text_free(&t);
    return st;
}

oly_status(oly_explain_diff)(FILE *file, oly_fn before, int n_before, const oly_array *in_before, oly_fn after,
                             int n_after, const oly_array *in_after)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(before, OLY_HANDLE_FUNCTION));
    OLY_TRY(oly_need_arrays(n_before, in_before));
    OLY_TRY(oly_need(after, OLY_HANDLE_FUNCTION));
    OLY_TRY(oly_need_arrays(n_after, in_after));
    if (missing(before, n_before, in_before) || missing(after, n_after, in_after))
        return oly_null_handle();
    return oly_raise(explain_diff(file, before, n_before, in_before, after, n_after, in_after));
}

oly_status oly_costs_n(oly_plan_costs *costs, oly_fn f, int n_in, const oly_array *in)
{
    OLY_ENTER(OLY_STATE);
    OLY_TRY(oly_need(f, OLY_HANDLE_FUNCTION));
    OLY_TRY(oly_need_arrays(n_in, in));
    const oly_plan *plan;
    if (!costs)
        return oly_raise(oly_fail(OLY_INVALID, "costs is NULL; give the address of an oly_plan_costs"));
    *costs = (oly_plan_costs){0};
    if (missing(f, n_in, in))
        return oly_null_handle();
    oly_status st = oly_function_plan(f, n_in, in, &plan);
    if (st == OLY_OK)
        oly_plan_count(plan, costs);
    return oly_raise(st);
}
