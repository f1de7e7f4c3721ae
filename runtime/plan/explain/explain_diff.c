/* SPDX-License-Identifier: BSD-3-Clause */
/* The differences of two plans: totals, the placement of inputs, values and results, and the steps as diff shows
 * lines. Values are compared by position in the graph, if both plans have the same graph. */
#include "plan/explain/explain.h"
#include <string.h>

enum { MOST_CELLS = 4 << 20 }; /* of the longest-common-subsequence table */

/* -- totals -------------------------------------------------------------------------------------------------------- */

static void amount(oly_text *t, const char *what, int64_t before, int64_t after, void (*words)(oly_text *, int64_t))
{
    oly_text_add(t, "  %-28s ", what);
    words(t, before);
    if (before == after) {
        oly_text_add(t, ", the same\n");
        return;
    }
    oly_text_add(t, " -> ");
    words(t, after);
    oly_text_add(t, "   (%s", after > before ? "+" : "-");
    words(t, after > before ? after - before : before - after);
    oly_text_add(t, ")\n");
}

static void plain(oly_text *t, int64_t n)
{
    oly_text_add(t, "%lld", (long long)n);
}

/* In picoseconds, so that all amounts can be compared by one function. */
static void time_words(oly_text *t, int64_t picoseconds)
{
    oly_seconds_text(t, (double)picoseconds * 1e-12);
}

static void sums_text(oly_text *t, const oly_told *a, const oly_told *b)
{
    amount(t, "steps", a->costs.steps, b->costs.steps, plain);
    amount(t, "collectives", a->costs.collectives, b->costs.collectives, plain);
    amount(t, "received per device", a->bytes, b->bytes, oly_bytes_text);
    amount(t, "peak memory per device", a->peak, b->peak, oly_bytes_text);
    amount(t, "scratch memory per device", a->scratch_bytes, b->scratch_bytes, oly_bytes_text);
    amount(t, "predicted time", (int64_t)(a->seconds * 1e12), (int64_t)(b->seconds * 1e12), time_words);
}

/* -- placement ----------------------------------------------------------------------------------------------------- */

static const char *type_words(oly_told *told, const oly_plan_value *v)
{
    oly_text type = {0};
    oly_type_text(&type, &v->type);
    const char *text =
        oly_told_say(told, "%s  %s", oly_text_chars(&type), oly_tell_spec(told, v->sharding->mesh, &v->sharding->spec));
    told->failed = told->failed || type.failed;
    oly_text_free(&type);
    return text;
}

static void ends_text(oly_text *t, const char *what, oly_told *a, int n_a, const oly_plan_value *of_a, oly_told *b,
                      int n_b, const oly_plan_value *of_b)
{
    for (int k = 0; k < n_a || k < n_b; k++) {
        const char *before = k < n_a ? type_words(a, &of_a[k]) : "none";
        const char *after = k < n_b ? type_words(b, &of_b[k]) : "none";
        if (strcmp(before, after) != 0)
            oly_text_add(t, "  %s %d: %s -> %s\n", what, k, before, after);
    }
}

static void values_text(oly_text *t, oly_told *a, oly_told *b)
{
    bool any = false;
    if (a->n_values != b->n_values || oly_graph_hash(a->plan->graph) != oly_graph_hash(b->plan->graph))
        return;
    for (int k = 0; k < a->n_values; k++) {
        const oly_told_value *v = &a->values[k], *w = &b->values[k];
        const char *before = oly_tell_spec(a, v->mesh, &v->spec), *after = oly_tell_spec(b, w->mesh, &w->spec);
        if (oly_is_constant(v->node) || !oly_has_value(v->node) || strcmp(before, after) == 0)
            continue;
        if (!any)
            oly_text_add(t, "values placed differently:\n");
        any = true;
        oly_text_add(t, "  %s %s: %s -> %s   %s\n", v->name, oly_ops[v->node->op].name, before, after,
                     oly_tell_line(a, v->node));
    }
}

/* -- steps --------------------------------------------------------------------------------------------------------- */

static const char **lines_of(oly_told *told)
{
    const char **lines = OLY_ARENA_NEW(&told->arena, const char *, told->n_steps + 1);
    for (int k = 0; lines && k < told->n_steps; k++) {
        oly_text words = {0};
        oly_step_words(&words, told, &told->steps[k]);
        lines[k] = oly_told_say(told, "%*s%s", 2 * told->steps[k].depth, "", oly_text_chars(&words));
        told->failed = told->failed || words.failed;
        oly_text_free(&words);
    }
    return lines;
}

static void line_text(oly_text *t, char sign, const char *line)
{
    oly_text_add(t, "%c %s\n", sign, line);
}

/* longest[i * (n_b + 1) + j]: length of the longest common subsequence of the lines from i and from j on. */
static void middle_text(oly_text *t, oly_told *told, int n_a, const char **a, int n_b, const char **b)
{
    int *longest = (int64_t)(n_a + 1) * (n_b + 1) > MOST_CELLS
                       ? NULL
                       : OLY_ARENA_NEW(&told->arena, int, (int64_t)(n_a + 1) * (n_b + 1));
    int width = n_b + 1, i = 0, j = 0;
    for (int x = n_a - 1; longest && x >= 0; x--)
        for (int y = n_b - 1; y >= 0; y--) {
            int down = longest[(x + 1) * width + y], right = longest[x * width + y + 1];
            longest[x * width + y] = strcmp(a[x], b[y]) == 0 ? 1 + longest[(x + 1) * width + y + 1]
                                     : down > right          ? down
                                                             : right;
        }
    while (i < n_a || j < n_b) {
        if (i < n_a && j < n_b && strcmp(a[i], b[j]) == 0 && longest) {
            line_text(t, ' ', a[i]);
            i++;
            j++;
        } else if (i < n_a && (j == n_b || !longest || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
            line_text(t, '-', a[i++]);
        } else {
            line_text(t, '+', b[j++]);
        }
    }
}

static void steps_text(oly_text *t, oly_told *a, oly_told *b)
{
    const char **of_a = lines_of(a), **of_b = lines_of(b);
    int n_a = a->n_steps, n_b = b->n_steps, first = 0;
    if (!of_a || !of_b) {
        t->failed = true;
        return;
    }
    while (first < n_a && first < n_b && strcmp(of_a[first], of_b[first]) == 0)
        first++;
    while (n_a > first && n_b > first && strcmp(of_a[n_a - 1], of_b[n_b - 1]) == 0) {
        n_a--;
        n_b--;
    }
    if (first == a->n_steps && first == b->n_steps) {
        oly_text_add(t, "the steps are the same\n");
        return;
    }
    oly_text_add(t, "steps:\n");
    for (int k = 0; k < first; k++)
        line_text(t, ' ', of_a[k]);
    middle_text(t, a, n_a - first, of_a + first, n_b - first, of_b + first);
    for (int k = n_a; k < a->n_steps; k++)
        line_text(t, ' ', of_a[k]);
}

void oly_told_diff(oly_text *t, oly_told *a, oly_told *b)
{
    char before[512], after[512];
    oly_mesh_str(a->plan->mesh, before, sizeof before);
    oly_mesh_str(b->plan->mesh, after, sizeof after);
    oly_text_add(t, "plan %s on %s -> plan %s", a->plan->graph->name, before, b->plan->graph->name);
    if (strcmp(before, after) != 0)
        oly_text_add(t, " on %s", after);
    oly_text_add(t, "\n");
    sums_text(t, a, b);
    ends_text(t, "input", a, a->plan->n_inputs, a->plan->inputs, b, b->plan->n_inputs, b->plan->inputs);
    ends_text(t, "output", a, a->plan->n_outputs, a->plan->outputs, b, b->plan->n_outputs, b->plan->outputs);
    values_text(t, a, b);
    steps_text(t, a, b);
}
