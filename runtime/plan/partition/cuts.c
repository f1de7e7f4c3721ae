/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a fused group that produces a result of its graph should be split: in the cuts of its operands, so that the
 * result moves to the blocks of results; or in those blocks, so that elements of the operands move. The option that
 * moves fewer bytes is taken. Arithmetic on one dimension, the same on every process. Called by partition.c. */
#include "plan/partition/partition.h"
#include <string.h>

enum { MOST_PLACES = 64, MOST_SAMPLES = 32 }; /* a sample, so that planning time does not depend on their number */

/* The parts of one array that are read: the element at 0 reads from `low` to `high` of the array. */
typedef struct place {
    const oly_node *root;
    oly_split split;
    int64_t low, high, bytes;
} place;

struct oly_cut_choice {
    int n;
    place places[MOST_PLACES];
};

oly_cut_choice *oly_cut_choice_new(oly_planner *p)
{
    return OLY_PLAN_NEW(p, oly_cut_choice, 1);
}

void oly_cut_choice_clear(oly_cut_choice *c)
{
    c->n = 0;
}

static const oly_node *root_of(oly_frame *f, const oly_node *n)
{
    for (;;) {
        const oly_node *outer = oly_captured(f, n);
        if (outer) {
            n = outer;
            f = f->outer;
        } else if (oly_looks_at(f, n)) {
            n = oly_looks_at(f, n);
        } else {
            return n;
        }
    }
}

void oly_cut_choice_add(oly_cut_choice *c, oly_frame *f, const oly_node *read, const oly_split *split)
{
    const oly_node *root = root_of(f, read);
    for (int k = 0; k < c->n; k++) {
        place *x = &c->places[k];
        if (x->root != root || x->split.base != split->base || x->split.unit != split->unit ||
            x->split.step != split->step)
            continue;
        x->low = split->start < x->low ? split->start : x->low;
        x->high = split->start > x->high ? split->start : x->high;
        return;
    }
    if (c->n < MOST_PLACES)
        c->places[c->n++] =
            (place){root, *split, split->start, split->start, (int64_t)oly_dtype_size(read->type.dtype)};
}

static int64_t positive(int64_t x)
{
    return x > 0 ? x : 0;
}

/* Bytes that move along the dimension, of n elements of `bytes` each (and `times` as many of the operands), if the
 * group is computed in cuts `at` and the result is placed in cuts `result`: for an evenly spaced sample of parts. */
static int64_t moved(const oly_cut_choice *c, const oly_split *at, const oly_split *result, int64_t n, int64_t bytes,
                     int64_t times)
{
    int64_t total = 0, each = (at->parts + MOST_SAMPLES - 1) / MOST_SAMPLES;
    for (int64_t k = 0; k < at->parts; k += each) {
        int64_t begin = oly_split_cut(at, n, k), end = oly_split_cut(at, n, k + 1);
        int64_t first = oly_split_cut(result, n, k), last = oly_split_cut(result, n, k + 1);
        if (last > first)
            total += bytes * (positive(begin - first) + positive(last - end));
        for (int j = 0; j < c->n && end > begin; j++) {
            const place *x = &c->places[j];
            oly_split whole = x->split;
            whole.start = 0;
            whole.step = 1;
            int64_t from = oly_split_cut(&whole, whole.base, k), to = oly_split_cut(&whole, whole.base, k + 1);
            int64_t low = begin * x->split.step + x->low, high = (end - 1) * x->split.step + x->high + 1;
            total += times * x->bytes * (positive(from - low) + positive(high - to)) / x->split.step;
        }
    }
    return total;
}

bool oly_cut_at_result(const oly_cut_choice *c, const oly_split *at, const oly_split *result, int64_t n, int64_t bytes,
                       int64_t times)
{
    return moved(c, result, result, n, bytes, times) <= moved(c, at, result, n, bytes, times);
}
