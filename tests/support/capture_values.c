/* SPDX-License-Identifier: BSD-3-Clause */
/* See capture_values.h. Numbers are integers or have few binary digits, so that sums are exact in any order; the test
 * leaves out programs whose values get too large. */
#include "capture_values.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- printing ---------------------------------------------------------------------------------------------------------- */

enum { MOST_NAMES = 20000 };
static struct {
    const void *handle[MOST_NAMES]; /* the newest ones */
    int n;
    bool wanted;
} names;

static int give_name(oly_array x)
{
    names.handle[names.n % MOST_NAMES] = x;
    return names.n++;
}

int capture_name_of(oly_array x)
{
    if (!names.wanted)
        return 0;
    for (int k = names.n - 1; k >= 0 && k > names.n - MOST_NAMES; k--)
        if (names.handle[k % MOST_NAMES] == x)
            return k;
    return give_name(x);
}

void capture_names_begin(bool print)
{
    names.n = 0;
    names.wanted = print;
}

oly_array capture_note(const site *s, oly_array x, const char *format, ...)
{
    va_list list;
    if (!names.wanted || !x)
        return x;
    fprintf(stderr, "%*sv%d[", 2 * s->depth, "", give_name(x));
    for (int d = 0; d < oly_rank(x); d++)
        fprintf(stderr, "%s%d", d ? "," : "", (int)oly_dim(x, d));
    fprintf(stderr, "] = ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    return x;
}

void capture_say(const site *s, const char *text, int64_t number)
{
    if (names.wanted)
        fprintf(stderr, "%*s%s %d\n", 2 * s->depth, "", text, (int)number);
}

/* -- views: an array as one of another shape ---------------------------------------------------------------------------- */

/* Shifted by `by` elements, with ones in the gap. */
static oly_array moved_on(site *s, oly_array x, int d, int64_t by)
{
    int64_t has = oly_dim(x, d), low[MOST_RANK] = {0}, high[MOST_RANK] = {0};
    by = by < -has ? -has : by > has ? has : by;
    low[d] = by > 0 ? by : 0;
    high[d] = by < 0 ? -by : 0;
    oly_array part = oly_slice_in_dim(x, high[d], has - low[d], 1, d);
    return capture_note(s, oly_pad(part, 1, low, high, NULL), "v%d moved on by %d along %d", capture_name_of(x),
                        (int)by, d);
}

static oly_array along(site *s, oly_array x, int d, int64_t size)
{
    int64_t has = oly_dim(x, d), low[MOST_RANK] = {0}, high[MOST_RANK] = {0};
    if (has == size) {
        if (size > 0 && one_in(s, s->near ? 2 : 4)) {
            int64_t by = draw(s, 7) - 3;
            if (s->near && !s->rolls)
                return moved_on(s, x, d, by);
            return capture_note(s, oly_roll(x, by, d), "roll(v%d, %d, %d)", capture_name_of(x), (int)by, d);
        }
        return !s->near && one_in(s, 12) ? capture_note(s, oly_flip(x, d), "flip(v%d, %d)", capture_name_of(x), d) : x;
    }
    if (has > size) {
        int64_t step = !s->near && size > 0 && has >= 2 * size && one_in(s, 2) ? 2 : 1,
                spare = has - (size - 1) * step - 1;
        int64_t from = size == 0 ? 0 : draw(s, spare + 1), to = size == 0 ? 0 : from + (size - 1) * step + 1;
        oly_array part = capture_note(s, oly_slice_in_dim(x, from, to, step, d), "slice(v%d, %d:%d:%d, %d)",
                                      capture_name_of(x), (int)from, (int)to, (int)step, d);
        return !s->near && one_in(s, 10) ? capture_note(s, oly_flip(part, d), "flip(v%d, %d)", capture_name_of(part), d)
                                         : part;
    }
    if (has == 1 && !one_in(s, 4))
        return x; /* repeated afterwards */
    if (has > 1 && !s->near && one_in(s, 4)) {
        int64_t k = draw(s, has);
        return capture_note(s, oly_slice_in_dim(x, k, k + 1, 1, d), "slice(v%d, %d:%d, %d)", capture_name_of(x), (int)k,
                            (int)k + 1, d);
    }
    low[d] = draw(s, size - has + 1);
    high[d] = size - has - low[d];
    return capture_note(s, oly_pad(x, 1, low, high, NULL), "pad(v%d, %d, %d, %d)", capture_name_of(x), (int)low[d],
                        (int)high[d], d);
}

/* A slice of x, reversed, shifted or repeated, that has this shape. */
oly_array capture_fitted(site *s, oly_array x, int rank, const int64_t *shape)
{
    bool repeats = false;
    while (x && oly_rank(x) > rank) {
        int d = (int)draw(s, oly_rank(x));
        if (oly_dim(x, d) == 0)
            return NULL;
        int64_t k = draw(s, oly_dim(x, d));
        x = oly_squeeze(oly_slice_in_dim(x, k, k + 1, 1, d), d);
        capture_note(s, x, "element %d of %d", (int)k, d);
    }
    while (x && oly_rank(x) < rank) {
        int d = (int)draw(s, oly_rank(x) + 1);
        x = capture_note(s, oly_expand_dims(x, d), "expand(v%d, %d)", capture_name_of(x), d);
    }
    if (x && rank > 1 && one_in(s, 14) && !s->near) {
        int d = (int)draw(s, rank - 1);
        x = capture_note(s, oly_swapaxes(x, d, d + 1), "swapaxes(v%d, %d, %d)", capture_name_of(x), d, d + 1);
    }
    for (int d = 0; x && d < rank; d++) {
        x = along(s, x, d, shape[d]);
        repeats = repeats || (x && oly_dim(x, d) != shape[d]);
    }
    return x && repeats ? capture_note(s, oly_broadcast_shape(oly_operand_array(x), rank, shape), "broadcast(v%d)",
                                       capture_name_of(x))
                        : x;
}

oly_array capture_as_number(site *s, oly_array x)
{
    oly_dtype dtype = s->p->input[0].dtype;
    return !x || oly_dtype_of(x) == dtype ? x
                                          : capture_note(s, oly_astype(x, dtype), "number(v%d)", capture_name_of(x));
}

/* -- expressions ------------------------------------------------------------------------------------------------------- */

/* Is it of about the size of the carries, or to be repeated? */
static bool is_near(const site *s, oly_array x)
{
    oly_array first = s->seen[0];
    int fewer = oly_rank(first) - oly_rank(x);
    bool near = fewer >= 0;
    for (int d = 0; d < oly_rank(x) && near; d++)
        near = oly_dim(x, d) == 1 || llabs(oly_dim(x, d) - oly_dim(first, d + fewer)) < 7;
    return near;
}

oly_array capture_any_seen(site *s)
{
    for (int tries = 0; s->near && tries < 8; tries++) {
        oly_array x = s->n_carry > 0 && one_in(s, 2) ? s->seen[draw(s, s->n_carry)] : s->seen[draw(s, s->n)];
        if (is_near(s, x))
            return x;
    }
    if (s->near)
        return s->seen[0];
    return s->n_carry > 0 && one_in(s, 2) ? s->seen[draw(s, s->n_carry)] : s->seen[draw(s, s->n)];
}

static oly_array sums(site *s, oly_array x);

/* A function of all of x, or by value. */
static oly_array special(site *s, oly_array x)
{
    int rank = oly_rank(x), d = rank > 0 ? (int)draw(s, rank) : 0;
    x = capture_as_number(s, x);
    if (rank == 0 || oly_size(x) == 0)
        return x;
    int64_t size = oly_dim(x, d), k = draw(s, size), length = 1 + draw(s, size - k);
    if (one_in(s, 3))
        return sums(s, x);
    switch (draw(s, 12)) {
    case 9: return capture_note(s, oly_clamp(-3, x, 5), "clamp(-3, v%d, 5)", capture_name_of(x));
    case 10: {
        oly_array most = NULL, where = NULL;
        oly_top_k(x, 1 + k % oly_dim(x, rank - 1), &most, &where);
        return capture_note(s, s->p->slope || one_in(s, 2) ? most : where, "top k of v%d", capture_name_of(x));
    }
    case 0:
        return capture_note(s, oly_cumsum(x, d, .reverse = length % 2 == 0), "cumsum(v%d, %d)", capture_name_of(x), d);
    case 1: return capture_note(s, oly_sort(x, d), "sort(v%d, %d)", capture_name_of(x), d);
    case 2: {
        oly_array index = oly_mod(oly_add(oly_mul(oly_arange(length, OLY_INT32), 3), k), size);
        return capture_note(s, oly_take(x, index, d, "clip"), "take(v%d, 3 * i + %d, %d)", capture_name_of(x), (int)k,
                            d);
    }
    case 3: {
        oly_operand starts[MOST_RANK];
        int64_t sizes[MOST_RANK];
        for (int e = 0; e < rank; e++) {
            starts[e] = e == d && s->step ? oly_operand_array(s->step) : oly_operand_int(e == d ? k : 0);
            sizes[e] = e == d ? length : oly_dim(x, e);
        }
        return capture_note(s, oly_dynamic_slice(x, rank, starts, rank, sizes), "dynamic slice of v%d",
                            capture_name_of(x));
    }
    case 4: {
        oly_array part = oly_slice_in_dim(x, k, k + 1, 1, d);
        oly_operand starts[MOST_RANK];
        for (int e = 0; e < rank; e++)
            starts[e] = e == d && s->step ? oly_operand_array(s->step) : oly_operand_int(0);
        return capture_note(s, oly_dynamic_update_slice(x, part, rank, starts), "dynamic update of v%d",
                            capture_name_of(x));
    }
    case 5: {
        oly_array y = oly_swapaxes(x, 0, rank - 1);
        return rank == 2 && s->p->input[0].dtype != OLY_FLOAT32
                   ? capture_note(s, oly_mod(oly_matmul(x, y), 13), "v%d @ its transpose mod 13", capture_name_of(x))
                   : x;
    }
    case 6:
        return s->p->slope ? x
                           : capture_note(s, oly_astype(oly_argmax(x, OLY_AXES(d)), s->p->input[0].dtype), "argmax");
    case 7: {
        oly_array index = oly_mod(oly_arange(size, OLY_INT32), length), y = oly_moveaxis(x, d, 0);
        return capture_note(s, oly_at_add(y, OLY_INDEXES(index), y), "scattered sum of v%d", capture_name_of(x));
    }
    case 8: {
        char window[40] = "";
        for (int e = 0; e < rank; e++)
            sprintf(window + strlen(window), "%s%d", e ? ", " : "", e == d ? 3 : 1);
        return s->p->slope ? x
                           : capture_note(s,
                                          oly_reduce_window(x, length % 2 ? "max" : "sum", .window = window,
                                                            .padding = k % 2 ? "SAME" : "VALID"),
                                          "window of v%d along %d", capture_name_of(x), d);
    }
    default: return capture_note(s, oly_diff(x, 1, d), "diff(v%d, %d)", capture_name_of(x), d);
    }
}

/* Sums over dimensions that devices have in parts, and linear functions of them. */
static oly_array sums(site *s, oly_array x)
{
    int rank = oly_rank(x), d = rank > 0 ? (int)draw(s, rank) : 0;
    if (rank == 0 || oly_size(x) == 0)
        return x;
    oly_array other = capture_as_number(s, capture_fitted(s, capture_any_seen(s), rank, oly_shape(x)));
    oly_array a = oly_sum(x, OLY_AXES(d)), b = other ? oly_sum(other, OLY_AXES(d)) : a;
    capture_note(s, a, "sum(v%d, %d)", capture_name_of(x), d);
    capture_note(s, b, "sum(v%d, %d)", capture_name_of(other), d);
    if (one_in(s, 2))
        b = capture_note(s, oly_neg(b), "-v%d", capture_name_of(b));
    if (one_in(s, 4) && oly_rank(a) > 1 && oly_dim(a, 0) == oly_dim(a, oly_rank(a) - 1))
        b = capture_note(s, oly_swapaxes(b, 0, oly_rank(b) - 1), "v%d, turned", capture_name_of(b));
    oly_array c = one_in(s, 3) ? b : oly_add(oly_mul(2, a), b);
    if (c != b)
        capture_note(s, c, "2 * v%d + v%d", capture_name_of(a), capture_name_of(b));
    if (one_in(s, 3)) {
        oly_array y = capture_as_number(s, capture_fitted(s, capture_any_seen(s), oly_rank(c), oly_shape(c)));
        c = y ? capture_note(s, oly_sub(y, c), "v%d - v%d", capture_name_of(y), capture_name_of(c)) : c;
    }
    switch (oly_rank(c) > 0 ? draw(s, 5) : 0) {
    case 1: return capture_note(s, oly_sum(c, OLY_AXES(0)), "sum(v%d, 0)", capture_name_of(c));
    case 2: return capture_note(s, oly_ravel(c), "v%d in a line", capture_name_of(c));
    case 3: return capture_note(s, oly_slice_in_dim(c, 0, (oly_dim(c, 0) + 1) / 2, 1, 0), "half of it");
    case 4: return capture_note(s, oly_max2(c, a), "max(v%d, v%d)", capture_name_of(c), capture_name_of(a));
    default: return c;
    }
}

static oly_array leaf(site *s, int rank, const int64_t *shape)
{
    oly_array x = capture_any_seen(s);
    if (s->near) {
        /* the whole dimension */
    } else if (one_in(s, 8)) {
        x = special(s, x);
    } else if (!s->p->slope && one_in(s, 25) && oly_size(x) > 0 && oly_rank(x) > 0) {
        int d = (int)draw(s, oly_rank(x));
        x = one_in(s, 2) ? oly_max(x, OLY_AXES(d)) : oly_min(x);
        capture_note(s, x, "largest along %d, or least", d);
    } else if (one_in(s, 25) && oly_rank(x) > 0) {
        int d = (int)draw(s, oly_rank(x));
        x = capture_note(s, oly_sum(capture_as_number(s, x), OLY_AXES(d)), "sum(v%d, %d)", capture_name_of(x), d);
    }
    return capture_as_number(s, capture_fitted(s, x, rank, shape));
}

static oly_array expression(site *s, int rank, const int64_t *shape, int deep);

static oly_array mask(site *s, int rank, const int64_t *shape)
{
    for (int k = 0; k < s->n; k++)
        if (oly_dtype_of(s->seen[k]) == OLY_BOOL && one_in(s, 2))
            return capture_fitted(s, s->seen[k], rank, shape);
    if (rank > 0 && one_in(s, 2) &&
        (!s->near || memcmp(shape, oly_shape(s->seen[0]), sizeof *shape * (size_t)rank) == 0)) {
        int d = (int)draw(s, rank);
        int64_t k = draw(s, shape[d] + 1);
        oly_array x = oly_iota_shape(OLY_INT32, d, rank, shape);
        return capture_note(s, one_in(s, 2) ? oly_lt(x, k) : oly_eq(oly_mod(x, 3), k % 3),
                            "index along %d < %d, or mod", d, (int)k);
    }
    if (s->step && one_in(s, 3))
        return capture_note(s, oly_broadcast_shape(oly_operand_array(oly_eq(oly_mod(s->step, 2), 0)), rank, shape),
                            "even step");
    oly_array x = leaf(s, rank, shape), y = leaf(s, rank, shape);
    return x && y ? capture_note(s, oly_gt(x, y), "v%d > v%d", capture_name_of(x), capture_name_of(y)) : NULL;
}

/* A sum of slices of one array, some shifted: a stencil. */
static oly_array taps(site *s, int rank, const int64_t *shape)
{
    static const double factors[] = {1, -1, 0.5, 2, 1, 0.25};
    bool whole = s->p->input[0].dtype == OLY_INT32;
    oly_array x = capture_any_seen(s), sum = NULL;
    for (int k = 2 + (int)draw(s, 3); k > 0; k--) {
        oly_array y = capture_as_number(s, capture_fitted(s, one_in(s, 5) ? capture_any_seen(s) : x, rank, shape));
        double factor = factors[draw(s, whole ? 2 : 6)];
        if (!y)
            return NULL;
        if (factor != 1)
            y = capture_note(s, whole ? oly_neg(y) : oly_mul(factor, y), "%g * v%d", factor, capture_name_of(y));
        sum = sum ? capture_note(s, oly_add(sum, y), "v%d + v%d", capture_name_of(sum), capture_name_of(y)) : y;
    }
    return sum;
}

static oly_array two(site *s, oly_array x, oly_array y)
{
    switch (x && y ? draw(s, s->p->slope ? 3 : s->p->input[0].dtype == OLY_FLOAT32 ? 5 : 6) : -1) {
    case 0: return capture_note(s, oly_add(x, y), "v%d + v%d", capture_name_of(x), capture_name_of(y));
    case 1: return capture_note(s, oly_sub(x, y), "v%d - v%d", capture_name_of(x), capture_name_of(y));
    case 2: return capture_note(s, oly_add(oly_neg(x), y), "-v%d + v%d", capture_name_of(x), capture_name_of(y));
    case 3: return capture_note(s, oly_max2(x, y), "max(v%d, v%d)", capture_name_of(x), capture_name_of(y));
    case 4: return capture_note(s, oly_min2(x, y), "min(v%d, v%d)", capture_name_of(x), capture_name_of(y));
    case 5:
        return capture_note(s, oly_mod(oly_add(x, y), 17), "(v%d + v%d) mod 17", capture_name_of(x),
                            capture_name_of(y));
    default: return NULL;
    }
}

static oly_array expression(site *s, int rank, const int64_t *shape, int deep)
{
    if (deep <= 0 || one_in(s, 6))
        return one_in(s, 3) ? taps(s, rank, shape) : leaf(s, rank, shape);
    int64_t how = draw(s, 12);
    if (how < 3)
        return taps(s, rank, shape);
    oly_array x = expression(s, rank, shape, deep - 1);
    if (how < 8 || !x)
        return two(s, x, expression(s, rank, shape, deep - 1));
    bool divides = rank > 0 && shape[0] % s->p->parts == 0 && s->p->parts < 9 && oly_size(x) > 0;
    if (divides && s->depth < 3 && !s->manual && !s->near && !s->p->slope && one_in(s, 2))
        return capture_shared_out(s, x);
    if (how < 10 && s->depth < 3 && one_in(s, s->near ? 8 : 3))
        return capture_called(s, x);
    if (how == 8 && s->depth < 3 && !s->near)
        return capture_branched(s, x);
    if (how == 9 && s->depth < 3 && !s->near && rank > 0 && shape[0] > 0 && shape[0] < 6)
        return capture_mapped(s, x);
    oly_array m = mask(s, rank, shape), y = expression(s, rank, shape, deep - 1);
    return m && y ? capture_note(s, oly_where(m, x, y), "where(v%d, v%d, v%d)", capture_name_of(m), capture_name_of(x),
                                 capture_name_of(y))
                  : NULL;
}

/* -- values of the shape of a carry ------------------------------------------------------------------------------------- */

static oly_array updated(site *s, oly_array x, int rank, const int64_t *shape)
{
    int64_t low[MOST_RANK] = {0}, to[MOST_RANK], part[MOST_RANK];
    char text[120] = "";
    for (int d = 0; d < rank; d++) {
        low[d] = one_in(s, 3) ? 0 : draw(s, shape[d] < 3 ? shape[d] + 1 : 3);
        to[d] = shape[d] - (one_in(s, 3) ? 0 : draw(s, 3));
        to[d] = to[d] < low[d] ? low[d] : to[d];
        part[d] = to[d] - low[d];
        sprintf(text + strlen(text), "%s%d:%d", d ? ", " : "", (int)low[d], (int)to[d]);
    }
    oly_array y = expression(s, rank, part, 2);
    return y ? capture_note(s, oly_update(x, text, y), "update(v%d, \"%s\", v%d)", capture_name_of(x), text,
                            capture_name_of(y))
             : NULL;
}

static oly_array joined(site *s, oly_array x, int rank, const int64_t *shape)
{
    int d = (int)draw(s, rank);
    int64_t part[MOST_RANK], below, above;
    memcpy(part, shape, sizeof part);
    below = draw(s, shape[d] < 3 ? shape[d] + 1 : 3);
    above = draw(s, shape[d] - below < 3 ? shape[d] - below + 1 : 3);
    part[d] = shape[d] - below - above;
    oly_array y = expression(s, rank, part, 2), last = one_in(s, 2) ? x : leaf(s, rank, shape), ends[2];
    if (!y || !last)
        return NULL;
    ends[0] = oly_slice_in_dim(x, 0, below, 1, d);
    ends[1] = oly_slice_in_dim(last, shape[d] - above, shape[d], 1, d);
    return capture_note(s, oly_concatenate(d, ends[0], y, ends[1]), "concatenate(%d, v%d[:%d], v%d, v%d[last %d])", d,
                        capture_name_of(x), (int)below, capture_name_of(y), capture_name_of(last), (int)above);
}

static oly_array padded(site *s, int rank, const int64_t *shape)
{
    int64_t low[MOST_RANK] = {0}, high[MOST_RANK] = {0}, part[MOST_RANK];
    for (int d = 0; d < rank; d++) {
        low[d] = draw(s, shape[d] < 2 ? shape[d] + 1 : 2);
        high[d] = draw(s, shape[d] - low[d] < 2 ? shape[d] - low[d] + 1 : 2);
        part[d] = shape[d] - low[d] - high[d];
    }
    oly_array y = expression(s, rank, part, 2);
    return y ? capture_note(s, oly_pad(y, 2, low, high, NULL), "pad(v%d)", capture_name_of(y)) : NULL;
}

/* The next value of carry x. */
oly_array capture_next_of(site *s, oly_array x)
{
    int rank = oly_rank(x);
    int64_t shape[MOST_RANK];
    memcpy(shape, oly_shape(x), sizeof *shape * (size_t)rank);
    oly_array y = NULL;
    switch (rank ? draw(s, 10) : 0) {
    case 0:
    case 1: y = expression(s, rank, shape, 2); break;
    case 2:
    case 3:
    case 4: y = updated(s, x, rank, shape); break;
    case 5:
    case 6: y = joined(s, x, rank, shape); break;
    case 7: y = padded(s, rank, shape); break;
    case 8: y = capture_as_number(s, capture_fitted(s, capture_any_seen(s), rank, shape)); break;
    default: y = taps(s, rank, shape); break;
    }
    if (y && one_in(s, 3))
        y = two(s, y, leaf(s, rank, shape));
    y = y ? y : x;
    return oly_dtype_of(y) != oly_dtype_of(x) ? oly_astype(y, oly_dtype_of(x)) : y == x ? oly_add(x, 0) : y;
}
