/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the dimensions of a convolution. Grammar: letters "," letters "->" letters. See conv_notation.h. */
#include "graph/conv_notation.h"
#include "core/scan.h"
#include <ctype.h>
#include <string.h>

typedef struct letters {
    int n, column;
    char letter[OLY_MAX_RANK];
} letters;

static oly_status read_letters(oly_scanner *s, int rank, letters *l)
{
    oly_scan_peek(s);
    *l = (letters){.column = oly_scan_column(s)};
    for (char c; isalpha((unsigned char)(c = oly_scan_peek(s))); s->at++) {
        if (l->n == rank || memchr(l->letter, c, (size_t)l->n))
            return oly_fail(OLY_PARSE,
                            "'%c' at column %d of \"%s\" is one letter too many, or twice; there are %d "
                            "dimensions",
                            c, oly_scan_column(s), s->start, rank);
        l->letter[l->n++] = c;
    }
    if (l->n < rank)
        return oly_scan_expected(s, "a letter for each dimension");
    return OLY_OK;
}

static int find(const letters *l, char c)
{
    const char *at = memchr(l->letter, c, (size_t)l->n);
    return at ? (int)(at - l->letter) : -1;
}

/* dims[k]: where the letters first, second, and then those of space stand. */
static oly_status place(const oly_scanner *s, const letters *l, char first, char second, const char *space, int n,
                        int *dims)
{
    for (int k = 0; k < n + 2; k++) {
        char c = k == 0 ? first : k == 1 ? second : space[k - 2];
        dims[k] = find(l, c);
        if (dims[k] < 0)
            return oly_fail(OLY_PARSE,
                            "the letters at column %d of \"%s\" lack '%c'; all three have the same letters of "
                            "space, operand and result N and C, the kernels O and I",
                            l->column, s->start, c);
    }
    return OLY_OK;
}

oly_status oly_conv_dims_read(const char *text, int rank, oly_conv_dims *dims)
{
    dims->rank = rank;
    for (int d = 0; d < rank; d++)
        dims->operand[d] = dims->kernel[d] = dims->result[d] = d;
    if (!text)
        return OLY_OK;
    oly_scanner s = oly_scan_begin(text);
    letters x, k, y;
    char space[OLY_MAX_RANK];
    int n = 0, to[OLY_MAX_RANK];
    OLY_TRY(read_letters(&s, rank, &x));
    if (!oly_scan_take(&s, ','))
        return oly_scan_expected(&s, "\",\" and the letters of the kernels");
    OLY_TRY(read_letters(&s, rank, &k));
    if (oly_scan_peek(&s) != '-' || s.at[1] != '>')
        return oly_scan_expected(&s, "\"->\" and the letters of the result");
    s.at += 2;
    OLY_TRY(read_letters(&s, rank, &y));
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "the end");
    for (int d = 0; d < rank; d++) /* space in the order of the kernels' letters */
        if (k.letter[d] != 'O' && k.letter[d] != 'I' && n < rank - 2)
            space[n++] = k.letter[d];
    OLY_TRY(place(&s, &x, 'N', 'C', space, rank - 2, dims->operand));
    OLY_TRY(place(&s, &k, 'O', 'I', space, rank - 2, dims->kernel));
    OLY_TRY(place(&s, &y, 'N', 'C', space, rank - 2, to));
    for (int d = 0; d < rank; d++)
        dims->result[to[d]] = d;
    return OLY_OK;
}
