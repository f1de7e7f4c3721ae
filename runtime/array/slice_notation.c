/* SPDX-License-Identifier: BSD-3-Clause */
/* Slices and axes from text. Grammar: item {"," item}, item = "..." | integer | [integer] ":" [integer] [":"
 * [integer]]. */
#include "array/slice_notation.h"
#include "core/scan.h"
#include <inttypes.h>

/* One range as written; missing parts have their defaults. */
typedef struct range {
    int64_t start, limit, step;
    bool has_start, has_limit;
} range;

/* Negative indexes count from the end; then clips to first..last, as Python does. */
static int64_t clipped(int64_t i, int64_t n, int64_t first, int64_t last)
{
    if (i < 0)
        i = i < -n ? -1 : i + n;
    return i < first ? first : i > last ? last : i;
}

static void set_forwards(oly_params *part, int d, int64_t n, const range *r)
{
    int64_t start = r->has_start ? clipped(r->start, n, 0, n) : 0;
    int64_t limit = r->has_limit ? clipped(r->limit, n, 0, n) : n;
    part->start[d] = start;
    part->shape[d] = limit > start ? (limit - start - 1) / r->step + 1 : 0;
    part->step[d] = r->step;
    part->axes[d] = OLY_PART_KEPT;
}

/* The same elements in ascending order, marked as reversed. */
static void set_backwards(oly_params *part, int d, int64_t n, const range *r)
{
    int64_t start = r->has_start ? clipped(r->start, n, -1, n - 1) : n - 1;
    int64_t limit = r->has_limit ? clipped(r->limit, n, -1, n - 1) : -1;
    int64_t step = r->step < -INT64_MAX ? INT64_MAX : -r->step;
    part->shape[d] = start > limit ? (start - limit - 1) / step + 1 : 0;
    part->start[d] = part->shape[d] > 0 ? start - (part->shape[d] - 1) * step : 0;
    part->step[d] = step;
    part->axes[d] = OLY_PART_REVERSED;
}

static void set_range(oly_params *part, int d, int64_t n, const range *r)
{
    (r->step > 0 ? set_forwards : set_backwards)(part, d, n, r);
}

static void set_index(oly_params *part, int d, int64_t n, int64_t index)
{
    part->start[d] = index < 0 ? index + n : index;
    part->shape[d] = 1;
    part->step[d] = 1;
    part->axes[d] = OLY_PART_DROPPED;
}

static bool number_ahead(oly_scanner *s)
{
    char c = oly_scan_peek(s);
    return (c >= '0' && c <= '9') || c == '-' || c == '+';
}

/* Reads what follows the first colon of a range. */
static oly_status read_range(oly_scanner *s, range *r)
{
    if (number_ahead(s)) {
        r->has_limit = true;
        if (!oly_scan_integer(s, &r->limit))
            return oly_scan_expected(s, "an integer");
    }
    if (!oly_scan_take(s, ':') || !number_ahead(s))
        return OLY_OK;
    int column = (oly_scan_peek(s), oly_scan_column(s));
    if (!oly_scan_integer(s, &r->step))
        return oly_scan_expected(s, "an integer");
    if (r->step == 0)
        return oly_fail(OLY_INVALID,
                        "step 0 at column %d of \"%s\"; steps are 1 or more, or -1 or less to run backwards", column,
                        s->start);
    return OLY_OK;
}

static oly_status read_item(oly_scanner *s, int d, int64_t n, oly_params *part)
{
    range r = {.step = 1};
    int column = (oly_scan_peek(s), oly_scan_column(s));
    bool number = r.has_start = number_ahead(s);
    if (number && !oly_scan_integer(s, &r.start))
        return oly_scan_expected(s, "an integer");
    if (oly_scan_take(s, ':')) {
        OLY_TRY(read_range(s, &r));
        set_range(part, d, n, &r);
        return OLY_OK;
    }
    if (!number)
        return oly_scan_expected(s, "an index, a range like \"1:-1\" or \"...\"");
    if (r.start < -n || r.start >= n)
        return oly_fail(OLY_INVALID,
                        "index %" PRId64 " at column %d of \"%s\" is out of range for dimension %d of size %" PRId64
                        "; indexes go from -size to size-1",
                        r.start, column, s->start, d, n);
    set_index(part, d, n, r.start);
    return OLY_OK;
}

/* "..." stands for the dimensions that the other items leave. */
static oly_status count_items(oly_scanner s, int rank, int *items)
{
    bool dots = false;
    *items = 0;
    for (bool more = !oly_scan_end(&s); more;) {
        if (oly_scan_take(&s, '.')) {
            if (dots)
                return oly_scan_expected(&s, "only one \"...\"");
            if (s.at[0] != '.' || s.at[1] != '.')
                return oly_scan_expected(&s, "\"...\"");
            s.at += 2;
            dots = true;
        } else {
            ++*items;
        }
        while (oly_scan_peek(&s) && oly_scan_peek(&s) != ',')
            s.at++;
        more = oly_scan_take(&s, ',');
    }
    if (*items > rank)
        return oly_fail(OLY_SHAPE, "\"%s\" names %d dimensions, the array has %d; name at most that many", s.start,
                        *items, rank);
    return OLY_OK;
}

oly_status oly_slice_notation(const char *text, int rank, const int64_t *shape, oly_params *part)
{
    oly_scanner s = oly_scan_begin(text ? text : "");
    const range whole = {.step = 1};
    int items, d = 0;
    OLY_TRY(count_items(s, rank, &items));
    part->rank = rank;
    for (bool more = !oly_scan_end(&s); more;) {
        if (oly_scan_peek(&s) == '.') {
            s.at += 3; /* count_items has checked all three */
            for (int left = rank - items; left > 0; left--, d++)
                set_range(part, d, shape[d], &whole);
        } else {
            OLY_TRY(read_item(&s, d, shape[d], part));
            d++;
        }
        more = oly_scan_take(&s, ',');
    }
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "\",\" or the end");
    for (; d < rank; d++)
        set_range(part, d, shape[d], &whole);
    return OLY_OK;
}

oly_status oly_slice_numbers(int rank, const int64_t *shape, const int64_t *start, const int64_t *limit,
                             const int64_t *step, oly_params *part)
{
    part->rank = rank;
    for (int d = 0; d < rank; d++) {
        range r = {start ? start[d] : 0, limit ? limit[d] : 0, step ? step[d] : 1, start != NULL, limit != NULL};
        if (r.step == 0)
            return oly_fail(OLY_INVALID, "step 0 of dimension %d; steps are 1 or more, or -1 or less to run backwards",
                            d);
        set_range(part, d, shape[d], &r);
    }
    return OLY_OK;
}

oly_status oly_axes_notation(const char *text, oly_params *params)
{
    oly_scanner s = oly_scan_begin(text);
    params->n_axes = 0;
    for (bool more = !oly_scan_end(&s); more; more = oly_scan_take(&s, ',')) {
        int64_t axis;
        if (params->n_axes == OLY_MAX_RANK)
            return oly_fail(OLY_INVALID, "\"%s\" names more than %d axes; name each axis once", text, OLY_MAX_RANK);
        if (!oly_scan_integer(&s, &axis) || axis < -OLY_MAX_RANK || axis >= OLY_MAX_RANK)
            return oly_scan_expected(&s, "an axis number (negative: from the end)");
        params->axes[params->n_axes++] = (int)axis;
    }
    if (!oly_scan_end(&s))
        return oly_scan_expected(&s, "\",\" or the end");
    return OLY_OK;
}
