/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading einsum's notation. Grammar: term {"," term} ["->" term]; term: letters, with "..." at most once. See einsum.h. */
#include "graph/einsum.h"
#include "core/error.h"
#include "core/scan.h"
#include <inttypes.h>
#include <string.h>

enum { DOTS = -1 };

/* A term as written: DOTS stands for "...". */
typedef struct written {
    int n, column;
    bool dots;
    int8_t index[OLY_MAX_RANK + 1];
} written;

static int index_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}

const char *oly_einsum_name(int index)
{
    static const char names[] = "A\0B\0C\0D\0E\0F\0G\0H\0I\0J\0K\0L\0M\0N\0O\0P\0Q\0R\0S\0T\0U\0V\0W\0X\0Y\0Z\0"
                                "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";
    return index < 52 ? names + 2 * index : "...";
}

static oly_status read_term(oly_scanner *s, written *w)
{
    oly_scan_peek(s);
    *w = (written){.column = oly_scan_column(s)};
    for (;;) {
        char c = oly_scan_peek(s);
        int index = index_of(c);
        if (index < 0 && c != '.')
            return OLY_OK;
        if (c == '.') {
            if (w->dots)
                return oly_scan_expected(s, "only one \"...\" in a term");
            if (s->at[1] != '.' || s->at[2] != '.')
                return oly_scan_expected(s, "\"...\"");
            w->dots = true;
            index = DOTS;
        }
        if (w->n - w->dots >= OLY_MAX_RANK)
            return oly_fail(OLY_PARSE,
                            "more than %d indices in the term at column %d of \"%s\"; arrays have no more "
                            "dimensions",
                            OLY_MAX_RANK, w->column, s->start);
        w->index[w->n++] = (int8_t)index;
        s->at += c == '.' ? 3 : 1;
    }
}

/* -- operands ------------------------------------------------------------------------------------------------------------ */

/* Sizes of one index must be equal or 1. */
static oly_status meet(oly_einsum *e, int k, int d, const oly_type *const *type)
{
    int index = e->operand[k].index[d];
    int64_t size = type[k]->shape[d], *known = &e->size[index];
    for (int other = 0; other < d; other++) /* a diagonal is taken as it is */
        if (e->operand[k].index[other] == index && type[k]->shape[other] != size)
            return oly_fail(OLY_SHAPE,
                            "index %s stands for dimensions of size %" PRId64 " and %" PRId64
                            " of %s; a diagonal needs equal sizes",
                            oly_einsum_name(index), type[k]->shape[other], size, oly_type_short(type[k]));
    if (*known == 1 || *known < 0)
        *known = size;
    else if (size != 1 && size != *known)
        return oly_fail(OLY_SHAPE,
                        "index %s has size %" PRId64 " in operand %d, %s, and %" PRId64
                        " before it; sizes must be equal, or 1 to broadcast",
                        oly_einsum_name(index), size, k, oly_type_short(type[k]), *known);
    return OLY_OK;
}

static oly_status take_operand(const oly_scanner *s, oly_einsum *e, int k, const written *w,
                               const oly_type *const *type, int *most_dots)
{
    oly_einsum_term *t = &e->operand[k];
    int rank = type[k]->rank, dots = rank - (w->n - w->dots);
    if (dots < 0 || (dots > 0 && !w->dots))
        return oly_fail(OLY_SHAPE, "the term at column %d of \"%s\" has %d indices%s, operand %d is %s", w->column,
                        s->start, w->n - w->dots, w->dots ? " beside \"...\"" : "", k, oly_type_short(type[k]));
    for (int i = 0; i < w->n; i++) {
        if (w->index[i] != DOTS) {
            t->index[t->n++] = (uint8_t)w->index[i];
            continue;
        }
        for (int j = 0; j < dots; j++)
            t->index[t->n++] = (uint8_t)(OLY_EINSUM_INDICES - dots + j);
        *most_dots = dots > *most_dots ? dots : *most_dots;
    }
    for (int d = 0; d < t->n; d++)
        OLY_TRY(meet(e, k, d, type));
    return OLY_OK;
}

/* -- the result ---------------------------------------------------------------------------------------------------------- */

static int count(const oly_einsum *e, int index)
{
    int n = 0;
    for (int k = 0; k < e->n; k++)
        for (int d = 0; d < e->operand[k].n; d++)
            n += e->operand[k].index[d] == index;
    return n;
}

static oly_status add(oly_einsum_term *t, int index)
{
    if (t->n == OLY_MAX_RANK)
        return oly_fail(OLY_SHAPE, "the result would have more than %d dimensions", OLY_MAX_RANK);
    t->index[t->n++] = (uint8_t)index;
    return OLY_OK;
}

static oly_status add_dots(oly_einsum *e, int dots)
{
    for (int j = 0; j < dots; j++)
        OLY_TRY(add(&e->result, OLY_EINSUM_INDICES - dots + j));
    return OLY_OK;
}

static oly_status implied_result(oly_einsum *e, int dots)
{
    OLY_TRY(add_dots(e, dots));
    for (int index = 0; index < 52; index++)
        if (count(e, index) == 1)
            OLY_TRY(add(&e->result, index));
    return OLY_OK;
}

static oly_status given_result(const oly_scanner *s, oly_einsum *e, const written *w, int dots)
{
    for (int i = 0; i < w->n; i++) {
        int index = w->index[i];
        if (index == DOTS) {
            OLY_TRY(add_dots(e, dots));
            continue;
        }
        if (count(e, index) == 0)
            return oly_fail(OLY_PARSE, "the result of \"%s\" (column %d) has index %s, which no operand has", s->start,
                            w->column, oly_einsum_name(index));
        for (int j = 0; j < i; j++)
            if (w->index[j] == index)
                return oly_fail(OLY_PARSE, "the result of \"%s\" (column %d) has index %s twice; name each once",
                                s->start, w->column, oly_einsum_name(index));
        OLY_TRY(add(&e->result, index));
    }
    return OLY_OK;
}

oly_status oly_einsum_read(const char *text, int n, const oly_type *const *type, oly_einsum *e)
{
    oly_scanner s = oly_scan_begin(text);
    int dots = 0;
    written w;
    memset(e, 0, sizeof *e);
    for (int k = 0; k < OLY_EINSUM_INDICES; k++)
        e->size[k] = -1;
    do {
        OLY_TRY(read_term(&s, &w));
        if (e->n == n)
            return oly_fail(OLY_PARSE,
                            "\"%s\" has indices for more than %d operand%s (column %d); give one for each term", text,
                            n, n == 1 ? "" : "s", w.column);
        e->n++;
        OLY_TRY(take_operand(&s, e, e->n - 1, &w, type, &dots));
    } while (oly_scan_take(&s, ','));
    if (e->n < n)
        return oly_fail(OLY_PARSE, "\"%s\" has indices for %d operand%s, %d are given (column %d)", text, e->n,
                        e->n == 1 ? "" : "s", n, oly_scan_column(&s));
    if (oly_scan_end(&s))
        return implied_result(e, dots);
    if (oly_scan_peek(&s) != '-' || s.at[1] != '>')
        return oly_scan_expected(&s, "an index, \",\", \"->\" or the end");
    s.at += 2;
    OLY_TRY(read_term(&s, &w));
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "an index or the end");
    return given_result(&s, e, &w, dots);
}
