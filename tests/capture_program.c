/* See capture_program.h. Numbers are whole or have few binary digits, so that sums are exact in any order; what grows too large is
 * left out by the test. */
#include "capture_program.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEEN = 14, MOST_RANK = 4 };

int64_t capture_draw(capture_random *r, int64_t n)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return n > 0 ? (int64_t)((z ^ (z >> 31)) >> 11) % n : 0;
}

/* A place in the program where calls are made: what they may read. */
typedef struct site {
    const capture_program *p;
    capture_random random;
    int depth; /* of loops, branches and maps around */
    int n;
    oly_array seen[MOST_SEEN];
    int n_carry;    /* seen[0..n_carry-1] change in the loop around */
    oly_array step; /* the counter; NULL: none */
    bool rolls;     /* near: dimensions may go round */
    bool near;      /* reads elements near by only, as loops over fields do */
} site;

/* What the function of a loop, a branch or a map is given: the same calls from the same seed whenever it runs. */
typedef struct inner {
    const site *outer;
    uint64_t seed;
    int n_outer; /* of outer->seen, what was there */
    int64_t count;
    bool conditional, near, rolls, watches;
} inner;

static int64_t draw(site *s, int64_t n)
{
    return capture_draw(&s->random, n);
}

static bool one_in(site *s, int64_t n)
{
    return draw(s, n) == 0;
}

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

static int name_of(oly_array x)
{
    if (!names.wanted)
        return 0;
    for (int k = names.n - 1; k >= 0 && k > names.n - MOST_NAMES; k--)
        if (names.handle[k % MOST_NAMES] == x)
            return k;
    return give_name(x);
}

__attribute__((format(printf, 3, 4))) static oly_array note(const site *s, oly_array x, const char *format, ...)
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

static void say(const site *s, const char *text, int64_t number)
{
    if (names.wanted)
        fprintf(stderr, "%*s%s %d\n", 2 * s->depth, "", text, (int)number);
}

/* -- views: an array as one of another shape ---------------------------------------------------------------------------- */

/* By so many elements, with ones in the gap. */
static oly_array moved_on(site *s, oly_array x, int d, int64_t by)
{
    int64_t has = oly_dim(x, d), low[MOST_RANK] = {0}, high[MOST_RANK] = {0};
    by = by < -has ? -has : by > has ? has : by;
    low[d] = by > 0 ? by : 0;
    high[d] = by < 0 ? -by : 0;
    oly_array part = oly_slice_in_dim(x, high[d], has - low[d], 1, d);
    return note(s, oly_pad(part, 1, low, high, NULL), "v%d moved on by %d along %d", name_of(x), (int)by, d);
}

static oly_array along(site *s, oly_array x, int d, int64_t size)
{
    int64_t has = oly_dim(x, d), low[MOST_RANK] = {0}, high[MOST_RANK] = {0};
    if (has == size) {
        if (size > 0 && one_in(s, s->near ? 2 : 4)) {
            int64_t by = draw(s, 7) - 3;
            if (s->near && !s->rolls)
                return moved_on(s, x, d, by);
            return note(s, oly_roll(x, by, d), "roll(v%d, %d, %d)", name_of(x), (int)by, d);
        }
        return !s->near && one_in(s, 12) ? note(s, oly_flip(x, d), "flip(v%d, %d)", name_of(x), d) : x;
    }
    if (has > size) {
        int64_t step = !s->near && size > 0 && has >= 2 * size && one_in(s, 2) ? 2 : 1,
                spare = has - (size - 1) * step - 1;
        int64_t from = size == 0 ? 0 : draw(s, spare + 1), to = size == 0 ? 0 : from + (size - 1) * step + 1;
        oly_array part = note(s, oly_slice_in_dim(x, from, to, step, d), "slice(v%d, %d:%d:%d, %d)", name_of(x),
                              (int)from, (int)to, (int)step, d);
        return !s->near && one_in(s, 10) ? note(s, oly_flip(part, d), "flip(v%d, %d)", name_of(part), d) : part;
    }
    if (has == 1 && !one_in(s, 4))
        return x; /* repeated afterwards */
    if (has > 1 && !s->near && one_in(s, 4)) {
        int64_t k = draw(s, has);
        return note(s, oly_slice_in_dim(x, k, k + 1, 1, d), "slice(v%d, %d:%d, %d)", name_of(x), (int)k, (int)k + 1, d);
    }
    low[d] = draw(s, size - has + 1);
    high[d] = size - has - low[d];
    return note(s, oly_pad(x, 1, low, high, NULL), "pad(v%d, %d, %d, %d)", name_of(x), (int)low[d], (int)high[d], d);
}

/* Some part of x, turned, moved or repeated, that has this shape. */
static oly_array fitted(site *s, oly_array x, int rank, const int64_t *shape)
{
    bool repeats = false;
    while (x && oly_rank(x) > rank) {
        int d = (int)draw(s, oly_rank(x));
        if (oly_dim(x, d) == 0)
            return NULL;
        int64_t k = draw(s, oly_dim(x, d));
        x = oly_squeeze(oly_slice_in_dim(x, k, k + 1, 1, d), d);
        note(s, x, "element %d of %d", (int)k, d);
    }
    while (x && oly_rank(x) < rank) {
        int d = (int)draw(s, oly_rank(x) + 1);
        x = note(s, oly_expand_dims(x, d), "expand(v%d, %d)", name_of(x), d);
    }
    if (x && rank > 1 && one_in(s, 14) && !s->near) {
        int d = (int)draw(s, rank - 1);
        x = note(s, oly_swapaxes(x, d, d + 1), "swapaxes(v%d, %d, %d)", name_of(x), d, d + 1);
    }
    for (int d = 0; x && d < rank; d++) {
        x = along(s, x, d, shape[d]);
        repeats = repeats || (x && oly_dim(x, d) != shape[d]);
    }
    return x && repeats ? note(s, oly_broadcast_shape(oly_operand_array(x), rank, shape), "broadcast(v%d)", name_of(x))
                        : x;
}

static oly_array as_number(site *s, oly_array x)
{
    oly_dtype dtype = s->p->input[0].dtype;
    return !x || oly_dtype_of(x) == dtype ? x : note(s, oly_astype(x, dtype), "number(v%d)", name_of(x));
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

static oly_array any_seen(site *s)
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

/* Something that is computed of all of x, or by value. */
static oly_array special(site *s, oly_array x)
{
    int rank = oly_rank(x), d = rank > 0 ? (int)draw(s, rank) : 0;
    x = as_number(s, x);
    if (rank == 0 || oly_size(x) == 0)
        return x;
    int64_t size = oly_dim(x, d), k = draw(s, size), length = 1 + draw(s, size - k);
    switch (draw(s, 10)) {
    case 0: return note(s, oly_cumsum(x, d, .reverse = length % 2 == 0), "cumsum(v%d, %d)", name_of(x), d);
    case 1: return note(s, oly_sort(x, d), "sort(v%d, %d)", name_of(x), d);
    case 2: {
        oly_array index = oly_mod(oly_add(oly_mul(oly_arange(length, OLY_INT32), 3), k), size);
        return note(s, oly_take(x, index, d, "clip"), "take(v%d, 3 * i + %d, %d)", name_of(x), (int)k, d);
    }
    case 3: {
        oly_operand starts[MOST_RANK];
        int64_t sizes[MOST_RANK];
        for (int e = 0; e < rank; e++) {
            starts[e] = e == d && s->step ? oly_operand_array(s->step) : oly_operand_int(e == d ? k : 0);
            sizes[e] = e == d ? length : oly_dim(x, e);
        }
        return note(s, oly_dynamic_slice(x, rank, starts, rank, sizes), "dynamic slice of v%d", name_of(x));
    }
    case 4: {
        oly_array part = oly_slice_in_dim(x, k, k + 1, 1, d);
        oly_operand starts[MOST_RANK];
        for (int e = 0; e < rank; e++)
            starts[e] = e == d && s->step ? oly_operand_array(s->step) : oly_operand_int(0);
        return note(s, oly_dynamic_update_slice(x, part, rank, starts), "dynamic update of v%d", name_of(x));
    }
    case 5: {
        oly_array y = oly_swapaxes(x, 0, rank - 1);
        return rank == 2 && s->p->input[0].dtype != OLY_FLOAT32
                   ? note(s, oly_mod(oly_matmul(x, y), 13), "v%d @ its transpose mod 13", name_of(x))
                   : x;
    }
    case 6: return s->p->slope ? x : note(s, oly_astype(oly_argmax(x, OLY_AXES(d)), s->p->input[0].dtype), "argmax");
    case 7: {
        oly_array index = oly_mod(oly_arange(size, OLY_INT32), length), y = oly_moveaxis(x, d, 0);
        return note(s, oly_at_add(y, OLY_INDEXES(index), y), "scattered sum of v%d", name_of(x));
    }
    case 8: {
        char window[40] = "";
        for (int e = 0; e < rank; e++)
            sprintf(window + strlen(window), "%s%d", e ? ", " : "", e == d ? 3 : 1);
        return s->p->slope ? x
                           : note(s,
                                  oly_reduce_window(x, length % 2 ? "max" : "sum", .window = window,
                                                    .padding = k % 2 ? "SAME" : "VALID"),
                                  "window of v%d along %d", name_of(x), d);
    }
    default: return note(s, oly_diff(x, 1, d), "diff(v%d, %d)", name_of(x), d);
    }
}

static oly_array leaf(site *s, int rank, const int64_t *shape)
{
    oly_array x = any_seen(s);
    if (s->near) {
        /* whole */
    } else if (one_in(s, 12)) {
        x = special(s, x);
    } else if (!s->p->slope && one_in(s, 25) && oly_size(x) > 0 && oly_rank(x) > 0) {
        int d = (int)draw(s, oly_rank(x));
        x = one_in(s, 2) ? oly_max(x, OLY_AXES(d)) : oly_min(x);
        note(s, x, "largest along %d, or least", d);
    } else if (one_in(s, 25) && oly_rank(x) > 0) {
        int d = (int)draw(s, oly_rank(x));
        x = note(s, oly_sum(as_number(s, x), OLY_AXES(d)), "sum(v%d, %d)", name_of(x), d);
    }
    return as_number(s, fitted(s, x, rank, shape));
}

static oly_array expression(site *s, int rank, const int64_t *shape, int deep);

static oly_array mask(site *s, int rank, const int64_t *shape)
{
    for (int k = 0; k < s->n; k++)
        if (oly_dtype_of(s->seen[k]) == OLY_BOOL && one_in(s, 2))
            return fitted(s, s->seen[k], rank, shape);
    if (rank > 0 && one_in(s, 2) &&
        (!s->near || memcmp(shape, oly_shape(s->seen[0]), sizeof *shape * (size_t)rank) == 0)) {
        int d = (int)draw(s, rank);
        int64_t k = draw(s, shape[d] + 1);
        oly_array x = oly_iota_shape(OLY_INT32, d, rank, shape);
        return note(s, one_in(s, 2) ? oly_lt(x, k) : oly_eq(oly_mod(x, 3), k % 3), "index along %d < %d, or mod", d,
                    (int)k);
    }
    if (s->step && one_in(s, 3))
        return note(s, oly_broadcast_shape(oly_operand_array(oly_eq(oly_mod(s->step, 2), 0)), rank, shape),
                    "even step");
    oly_array x = leaf(s, rank, shape), y = leaf(s, rank, shape);
    return x && y ? note(s, oly_gt(x, y), "v%d > v%d", name_of(x), name_of(y)) : NULL;
}

/* A sum of parts of one array, some shifted: a stencil. */
static oly_array taps(site *s, int rank, const int64_t *shape)
{
    static const double factors[] = {1, -1, 0.5, 2, 1, 0.25};
    bool whole = s->p->input[0].dtype == OLY_INT32;
    oly_array x = any_seen(s), sum = NULL;
    for (int k = 2 + (int)draw(s, 3); k > 0; k--) {
        oly_array y = as_number(s, fitted(s, one_in(s, 5) ? any_seen(s) : x, rank, shape));
        double factor = factors[draw(s, whole ? 2 : 6)];
        if (!y)
            return NULL;
        if (factor != 1)
            y = note(s, whole ? oly_neg(y) : oly_mul(factor, y), "%g * v%d", factor, name_of(y));
        sum = sum ? note(s, oly_add(sum, y), "v%d + v%d", name_of(sum), name_of(y)) : y;
    }
    return sum;
}

static oly_array two(site *s, oly_array x, oly_array y)
{
    switch (x && y ? draw(s, s->p->slope ? 3 : s->p->input[0].dtype == OLY_FLOAT32 ? 5 : 6) : -1) {
    case 0: return note(s, oly_add(x, y), "v%d + v%d", name_of(x), name_of(y));
    case 1: return note(s, oly_sub(x, y), "v%d - v%d", name_of(x), name_of(y));
    case 2: return note(s, oly_add(oly_neg(x), y), "-v%d + v%d", name_of(x), name_of(y));
    case 3: return note(s, oly_max2(x, y), "max(v%d, v%d)", name_of(x), name_of(y));
    case 4: return note(s, oly_min2(x, y), "min(v%d, v%d)", name_of(x), name_of(y));
    case 5: return note(s, oly_mod(oly_add(x, y), 17), "(v%d + v%d) mod 17", name_of(x), name_of(y));
    default: return NULL;
    }
}

static oly_array branched(site *s, oly_array x);
static oly_array mapped(site *s, oly_array x);
static oly_array called(site *s, oly_array x);

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
    if (how < 10 && s->depth < 3 && one_in(s, s->near ? 8 : 3))
        return called(s, x);
    if (how == 8 && s->depth < 3 && !s->near)
        return branched(s, x);
    if (how == 9 && s->depth < 3 && !s->near && rank > 0 && shape[0] > 0 && shape[0] < 6)
        return mapped(s, x);
    oly_array m = mask(s, rank, shape), y = expression(s, rank, shape, deep - 1);
    return m && y ? note(s, oly_where(m, x, y), "where(v%d, v%d, v%d)", name_of(m), name_of(x), name_of(y)) : NULL;
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
    return y ? note(s, oly_update(x, text, y), "update(v%d, \"%s\", v%d)", name_of(x), text, name_of(y)) : NULL;
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
    return note(s, oly_concatenate(d, ends[0], y, ends[1]), "concatenate(%d, v%d[:%d], v%d, v%d[last %d])", d,
                name_of(x), (int)below, name_of(y), name_of(last), (int)above);
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
    return y ? note(s, oly_pad(y, 2, low, high, NULL), "pad(v%d)", name_of(y)) : NULL;
}

/* What carry x becomes. */
static oly_array next_of(site *s, oly_array x)
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
    case 8: y = as_number(s, fitted(s, any_seen(s), rank, shape)); break;
    default: y = taps(s, rank, shape); break;
    }
    if (y && one_in(s, 3))
        y = two(s, y, leaf(s, rank, shape));
    y = y ? y : x;
    return oly_dtype_of(y) != oly_dtype_of(x) ? oly_astype(y, oly_dtype_of(x)) : y == x ? oly_add(x, 0) : y;
}

/* -- arrays for loops to capture ---------------------------------------------------------------------------------------- */

static void look(site *s, oly_array x)
{
    if (x && s->n < MOST_SEEN)
        s->seen[s->n++] = x;
}

/* Views of what is seen, views of those, and some new values. */
static void look_at_views(site *s, int n, int rank, const int64_t *around)
{
    for (int k = 0; k < n; k++) {
        int64_t shape[MOST_RANK] = {0};
        int of = rank > 1 && one_in(s, 4) ? rank - 1 : rank;
        for (int d = 0; d < of; d++) {
            shape[d] = around[d + rank - of] + (one_in(s, 2) ? 0 : draw(s, 4) - 2);
            shape[d] = shape[d] < 0 ? 0 : shape[d];
        }
        oly_array x = fitted(s, s->seen[draw(s, s->n)], of, shape);
        if (x && one_in(s, 8))
            x = note(s, oly_add(as_number(s, x), 0), "v%d + 0", name_of(x));
        bool placed = one_in(s, 8);
        if (x && s->p->mesh && !s->p->plain && placed)
            x = oly_with_sharding_constraint(x, oly_named(s->p->mesh, oly_rank(x) ? "x" : ""));
        look(s, x);
    }
}

/* -- loops, branches, maps ---------------------------------------------------------------------------------------------- */

static site inside(const inner *in, int n_carry, oly_array *carry, oly_array step)
{
    site s = {.p = in->outer->p,
              .random = {in->seed},
              .depth = in->outer->depth + 1,
              .n_carry = n_carry,
              .step = step,
              .near = in->near,
              .rolls = in->rolls};
    for (int k = 0; k < n_carry; k++)
        look(&s, carry[k]);
    for (int k = 0; k < in->n_outer; k++)
        look(&s, in->outer->seen[k]);
    return s;
}

static void run_loop(site *s, int n_carry, oly_array *carry);

static void step_of(const inner *in, oly_array i, oly_array *carry, int n_carry)
{
    site s = inside(in, n_carry, carry, i);
    oly_array next[CAPTURE_CARRIES];
    int rank = oly_rank(carry[0]);
    if (one_in(&s, 3))
        look_at_views(&s, 1 + (int)draw(&s, 2), rank, oly_shape(carry[0]));
    if (s.depth < 3 && one_in(&s, s.near ? 15 : 5)) {
        oly_array inner_carry[CAPTURE_CARRIES];
        memcpy(inner_carry, carry, sizeof *carry * (size_t)n_carry);
        run_loop(&s, n_carry, inner_carry);
        for (int k = 0; k < n_carry; k++)
            s.seen[k] = inner_carry[k];
        if (one_in(&s, 2)) {
            memcpy(carry, inner_carry, sizeof *carry * (size_t)n_carry);
            return;
        }
    }
    for (int k = 0; k < n_carry; k++)
        next[k] = next_of(&s, s.seen[k]);
    memcpy(carry, next, sizeof *carry * (size_t)n_carry);
}

static oly_array number(int64_t i)
{
    int32_t n = (int32_t)i;
    return oly_from_host(&n, OLY_INT32, 0, NULL);
}

/* Beside the fields a loop may note what it sees of them: a number, and one for each step. */
enum { NOTED = 2, NOTED_LENGTH = 4 };

static void watch(const inner *in, oly_array i, const oly_array *before, oly_array *carry)
{
    int n = (int)in->count;
    oly_array x = in->conditional ? before[n - 1] : carry[0], *to = carry + n;
    oly_dtype dtype = oly_dtype_of(to[0]);
    if (oly_size(x) == 0)
        return;
    oly_array most = oly_astype(oly_max(oly_abs(x)), dtype), sum = oly_astype(oly_sum(x), dtype);
    to[0] = in->seed % 3 == 0 ? oly_add(to[0], sum) : in->seed % 3 == 1 ? oly_max2(to[0], most) : oly_sub(most, to[0]);
    to[1] = oly_dynamic_update_slice(to[1], oly_reshape(in->seed % 2 ? sum : most, 1), OLY_INDEXES(i));
}

static void counted_body(oly_array i, oly_array *carry, void *user)
{
    const inner *in = user;
    oly_array before[CAPTURE_CARRIES];
    memcpy(before, carry, sizeof *carry * (size_t)in->count);
    step_of(in, i, carry, (int)in->count);
    if (in->watches)
        watch(in, i, before, carry);
}

/* A loop with a counter, and what it noted as further values to look at. */
static void run_counted(site *s, inner *in, int64_t lower, int64_t count, oly_array *carry)
{
    int n = (int)in->count;
    oly_dtype dtype = s->p->input[0].dtype;
    oly_array all[CAPTURE_CARRIES + NOTED];
    memcpy(all, carry, sizeof *carry * (size_t)n);
    if (in->watches) {
        all[n] = oly_zeros(dtype);
        all[n + 1] = oly_zeros(dtype, NOTED_LENGTH);
    }
    say(s, "loop", count);
    if (!s->p->plain)
        oly_fori(lower, lower + count, counted_body, in->watches ? n + NOTED : n, all, in);
    for (int64_t i = lower; i < lower + count && s->p->plain; i++)
        counted_body(number(i), all, in);
    memcpy(carry, all, sizeof *carry * (size_t)n);
    for (int k = 0; k < NOTED && in->watches; k++) {
        oly_array x = fitted(s, all[n + k], oly_rank(carry[0]), oly_shape(carry[0]));
        look(s, note(s, all[n + k], "noted"));
        if (x && oly_dtype_of(carry[0]) == dtype)
            carry[0] = note(s, oly_add(carry[0], x), "and what was noted");
    }
}

static oly_array has_more(const oly_array *carry, void *user)
{
    oly_array few = oly_lt(carry[0], 5);
    if (!((inner *)user)->conditional || oly_size(carry[1]) == 0)
        return few;
    return oly_logical_and(few, oly_lt(oly_max(carry[1]), 40));
}

static void while_body(oly_array *carry, void *user)
{
    const inner *in = user;
    step_of(in, carry[0], carry + 1, (int)in->count);
    carry[0] = oly_add(carry[0], 1);
}

static void scan_body(oly_array *carry, const oly_array *x, oly_array *y, void *user)
{
    const inner *in = user;
    oly_array slice = x[0];
    site more = *in->outer;
    inner with = *in;
    more.n = in->n_outer;
    if (more.n < MOST_SEEN - CAPTURE_CARRIES)
        look(&more, slice);
    with.outer = &more;
    with.n_outer = more.n;
    step_of(&with, NULL, carry, (int)in->count);
    y[0] = carry[(int)in->count - 1];
}

static void scan(site *s, inner *in, int n_carry, oly_array *carry, int64_t length, bool reverse)
{
    int64_t shape[MOST_RANK + 1] = {length};
    int rank = oly_rank(carry[0]);
    memcpy(shape + 1, oly_shape(carry[0]), sizeof *shape * (size_t)rank);
    oly_array xs = rank < MOST_RANK ? fitted(s, s->seen[draw(s, s->n)], rank + 1, shape) : NULL, ys = NULL;
    if (!xs)
        xs = oly_iota_shape(s->p->input[0].dtype, 0, 1, shape);
    in->n_outer = s->n;
    if (!s->p->plain) {
        oly_scan(length, reverse, scan_body, n_carry, carry, 1, &xs, 1, &ys, in);
    } else {
        oly_array stack[8];
        for (int64_t k = 0; k < length; k++) {
            int64_t at = reverse ? length - 1 - k : k;
            oly_array x = oly_squeeze(oly_slice_in_dim(xs, at, at + 1, 1, 0), 0);
            note(s, x, "x[%d]", (int)at);
            scan_body(carry, &x, &stack[at], in);
        }
        ys = oly_stack_n((int)length, stack, 0);
    }
    look(s, note(s, ys, "ys"));
}

static void run_while(site *s, inner *in, int n_carry, oly_array *carry)
{
    oly_array all[CAPTURE_CARRIES + 1] = {number(one_in(s, 4) ? 9 : 1)};
    memcpy(all + 1, carry, sizeof *carry * (size_t)n_carry);
    if (!s->p->plain)
        oly_while(has_more, while_body, n_carry + 1, all, in);
    else
        while (oly_item(has_more(all, in)) != 0)
            while_body(all, in);
    memcpy(carry, all + 1, sizeof *carry * (size_t)n_carry);
}

static void run_loop(site *s, int n_carry, oly_array *carry)
{
    static const int64_t counts[] = {0, 1, 2, 2, 3, 3, 4, 5, 6, 7};
    int64_t how = draw(s, 10), count = counts[draw(s, s->depth > 0 ? 5 : 10)],
            lower = one_in(s, 4) ? draw(s, 5) - 2 : 0;
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .count = n_carry};
    in.conditional = one_in(s, 2);
    in.near = !one_in(s, 4);
    in.rolls = one_in(s, 2);
    in.watches = one_in(s, 4);
    how = in.near && !one_in(s, 10) ? 9 : how;
    if (how == 0 && !s->p->slope) {
        say(s, "while", 0);
        run_while(s, &in, n_carry, carry);
    } else if (how < 3) {
        bool reverse = one_in(s, 2);
        say(s, reverse ? "scan backwards" : "scan", count + 1);
        scan(s, &in, n_carry, carry, count + 1, reverse);
    } else {
        run_counted(s, &in, lower, count, carry);
    }
    say(s, "end", 0);
}

static void branch(const inner *in, const oly_array *x, oly_array *y, bool first)
{
    inner other = *in;
    oly_array carry = x[0];
    other.seed += !first;
    site s = inside(&other, 1, &carry, in->outer->step);
    y[0] = next_of(&s, carry);
}

static void first_branch(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, true);
}

static void second_branch(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, false);
}

static oly_array branched(site *s, oly_array x)
{
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .near = s->near, .rolls = s->rolls};
    oly_array which = s->step && one_in(s, 2) ? oly_eq(oly_mod(s->step, 2), 0)
                      : oly_size(x) > 0       ? oly_gt(oly_max(x), draw(s, 9))
                                              : number(1),
              y = NULL;
    if (s->p->plain && s->p->slope) { /* it is traced, too */
        oly_array other = NULL;
        first_branch(&x, &y, &in);
        second_branch(&x, &other, &in);
        return note(s, oly_where(which, y, other), "where(.., v%d, v%d)", name_of(y), name_of(other));
    }
    if (!s->p->plain)
        oly_cond(which, first_branch, second_branch, 1, &x, 1, &y, &in);
    else if (say(s, "branch", (int64_t)oly_item(which)), oly_item(which) != 0)
        first_branch(&x, &y, &in);
    else
        second_branch(&x, &y, &in);
    return y;
}

static void element(const oly_array *in, oly_array *out, void *user)
{
    branch(user, in, out, true);
}

static oly_array called(site *s, oly_array x)
{
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n, .near = s->near, .rolls = s->rolls};
    oly_array y = NULL;
    bool again = one_in(s, 3);
    say(s, "call", again);
    if (s->p->plain) {
        element(&x, &y, &in);
        return y;
    }
    oly_fn f = oly_jit(element, 1, 1, .user = &in);
    f = again ? oly_checkpoint(f) : f;
    oly_call_arrays(f, 1, &x, 1, &y);
    return y;
}

static oly_array mapped(site *s, oly_array x)
{
    inner in = {.outer = s, .seed = (uint64_t)draw(s, INT64_MAX), .n_outer = s->n};
    oly_array y = NULL, parts[8];
    if (!s->p->plain) {
        oly_vmap(element, &in, OLY_IN(x), OLY_AXES_OF(0), OLY_OUT(y), OLY_AXES_OF(0));
        return y;
    }
    say(s, "map", oly_dim(x, 0));
    for (int64_t k = 0; k < oly_dim(x, 0); k++) {
        oly_array one = oly_squeeze(oly_slice_in_dim(x, k, k + 1, 1, 0), 0);
        note(s, one, "element %d", (int)k);
        element(&one, &parts[k], &in);
    }
    return note(s, oly_stack_n((int)oly_dim(x, 0), parts, 0), "stack");
}

/* -- the whole ---------------------------------------------------------------------------------------------------------- */

static int64_t extent(capture_random *r)
{
    static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 20};
    return capture_draw(r, 40) == 0 ? 0 : extents[capture_draw(r, sizeof extents / sizeof *extents)];
}

void capture_program_make(capture_program *p, uint64_t seed)
{
    capture_random r = {seed};
    int rank = 1 + (int)(capture_draw(&r, 8) + 2) / 5;
    int64_t shape[MOST_RANK] = {0};
    *p = (capture_program){.seed = seed, .n_out = 1 + (int)capture_draw(&r, CAPTURE_CARRIES)};
    oly_dtype dtype = capture_draw(&r, 2) ? OLY_FLOAT32 : OLY_INT32;
    bool staggered = capture_draw(&r, 3) == 0;
    p->slope = dtype == OLY_FLOAT32 && capture_draw(&r, 6) == 0;
    p->n_in = p->n_out + 1 + (int)capture_draw(&r, 2);
    for (int d = 0; d < rank; d++)
        shape[d] = extent(&r);
    for (int k = 0; k < p->n_in; k++) {
        capture_input *in = &p->input[k];
        *in = (capture_input){.dtype = dtype, .rank = rank};
        if (k > 0 && k < p->n_out && !p->slope && capture_draw(&r, 6) == 0)
            in->dtype = dtype == OLY_INT32 ? OLY_INT8 : OLY_INT32;
        if (k >= p->n_out && capture_draw(&r, 4) == 0)
            in->rank = 1 + (int)capture_draw(&r, 3);
        if (k >= p->n_out && capture_draw(&r, 4) == 0)
            in->dtype = OLY_BOOL;
        for (int d = 0; d < in->rank; d++) {
            in->shape[d] = d < rank ? shape[d] : extent(&r);
            if (k < p->n_out)
                in->shape[d] += staggered ? capture_draw(&r, 3) : 0;
            else
                in->shape[d] += capture_draw(&r, 3) ? capture_draw(&r, 6) : capture_draw(&r, 2) * (in->shape[d] + 1);
        }
    }
}

void capture_program_run(const oly_array *in, oly_array *out, void *user)
{
    const capture_program *p = user;
    site s = {.p = p, .random = {p->seed ^ 0x5555}, .n = 0};
    oly_array carry[CAPTURE_CARRIES];
    names.n = 0;
    names.wanted = p->print && p->plain;
    for (int k = 0; k < p->n_out; k++)
        carry[k] = in[k];
    for (int k = p->n_in - 1; k >= 0; k--) {
        note(&s, in[k], "input %d", k);
        look(&s, in[k]);
    }
    look_at_views(&s, 1 + (int)draw(&s, 3), p->input[0].rank, p->input[0].shape);
    if (one_in(&s, 3)) { /* what the loop begins with is a view, too */
        oly_array x = as_number(&s, fitted(&s, any_seen(&s), p->input[0].rank, p->input[0].shape));
        carry[0] = x ? x : carry[0];
    }
    for (int k = 1 + (int)one_in(&s, 4); k > 0; k--) {
        run_loop(&s, p->n_out, carry);
        for (int j = 0; j < p->n_out; j++)
            look(&s, carry[j]);
        if (one_in(&s, 3))
            look_at_views(&s, 1, p->input[0].rank, p->input[0].shape);
    }
    if (one_in(&s, 3)) {
        s.n_carry = 0;
        oly_array x = next_of(&s, carry[0]);
        carry[0] = x ? x : carry[0];
    }
    if (!p->slope) {
        memcpy(out, carry, sizeof *out * (size_t)p->n_out);
        return;
    }
    oly_array times = as_number(&s, fitted(&s, any_seen(&s), oly_rank(carry[0]), oly_shape(carry[0])));
    out[0] = oly_sum(times ? oly_mul(carry[0], times) : carry[0]);
}
