/* SPDX-License-Identifier: BSD-3-Clause */
/* A journal of the reference: one line of JSON for each operation of a program, with its operands, parameters and
 * result, for against_jax.py, which computes the same with JAX. Called by evaluate.c and main.c. */
#include "program.h"
#include <math.h>
#include <string.h>

enum { MOST_ELEMENTS = 400 };

static FILE *journal;
static bool written[MOST_STATEMENTS];

void journal_begin(FILE *to)
{
    journal = to;
    memset(written, 0, sizeof written);
}

static void write_number(double x)
{
    if (isnan(x))
        fputs("NaN", journal);
    else if (isinf(x))
        fputs(x > 0 ? "Infinity" : "-Infinity", journal);
    else
        fprintf(journal, "%.17g", x);
}

static void write_array(const array *a)
{
    fprintf(journal, "{\"dtype\": \"%s\", \"shape\": [", oly_dtype_name(a->dtype));
    for (int d = 0; d < a->rank; d++)
        fprintf(journal, "%s%lld", d ? ", " : "", (long long)a->shape[d]);
    fputs("], \"values\": [", journal);
    for (int64_t k = 0; k < a->size * a->parts; k++) {
        fputs(k ? ", " : "", journal);
        write_number(a->v[k]);
    }
    fputs("]}", journal);
}

static void write_list(const char *name, int n, const int64_t *list)
{
    fprintf(journal, ", \"%s\": [", name);
    for (int k = 0; k < n; k++)
        fprintf(journal, "%s%lld", k ? ", " : "", (long long)list[k]);
    fputc(']', journal);
}

static bool is_small(const program *p, const statement *s, const array *y)
{
    bool small = y->size <= MOST_ELEMENTS;
    for (int k = 0; k < s->n_in; k++)
        small = small && (s->in[k] == NUMBER || p->now[0][s->in[k]]->size <= MOST_ELEMENTS);
    return small;
}

void journal_write(const program *p, const statement *s, const array *y)
{
    if (!journal || s < p->statement || s >= p->statement + p->n_statements || written[s - p->statement] ||
        operations[s->op].family == COLLECTIVE || operations[s->op].family == INSIDE || !is_small(p, s, y))
        return;
    written[s - p->statement] = true;
    fprintf(journal, "{\"op\": \"%s\", \"wide\": %s, \"in\": [", operations[s->op].name, p->wide ? "true" : "false");
    for (int k = 0; k < s->n_in; k++) {
        fputs(k ? ", " : "", journal);
        if (s->in[k] == NUMBER)
            write_number(s->number);
        else
            write_array(p->now[0][s->in[k]]);
    }
    int64_t axes[MOST_IN];
    for (int k = 0; k < s->n_axes; k++)
        axes[k] = s->axes[k];
    fputs("], \"number\": ", journal);
    write_number(s->number);
    write_list("shape", s->rank, s->shape);
    write_list("axes", s->n_axes, axes);
    write_list("low", MOST_RANK, s->low);
    write_list("high", MOST_RANK, s->high);
    write_list("step", MOST_RANK, s->step);
    fprintf(journal,
            ", \"extent\": %lld, \"k\": %d, \"mode\": \"%s\", \"flag\": %s, \"other_flag\": %s, \"dtype\": \"%s\", "
            "\"slices\": \"%s\", \"error\": %.17g, \"out\": ",
            (long long)s->shape[0], s->k, modes[s->mode], s->flag ? "true" : "false", s->other_flag ? "true" : "false",
            oly_dtype_name(s->dtype), s->op == OP_slice || s->op == OP_update ? slices_text(s) : "", y->error);
    write_array(y);
    fputs("}\n", journal);
}
