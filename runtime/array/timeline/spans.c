/* SPDX-License-Identifier: BSD-3-Clause */
/* The spans of all threads in one order. See timeline.h. A thread adds a span when it ends; here each thread's are sorted by their
 * beginnings, and the threads' lists are merged. Needs 8 bytes for each span. */
#include "array/timeline/timeline.h"
#include <stdlib.h>

enum { MOST_OPEN = 64 };

/* The halves that have begun, of one thread. */
typedef struct open_halves {
    oly_span *span[MOST_OPEN];
    int n;
} open_halves;

/* Exchanges end in any order, and are told apart by their number; all others are nested. */
static bool belong(const oly_span *begin, const oly_span *finish)
{
    return begin->kind == finish->kind && (begin->kind != OLY_EVENT_EXCHANGE || begin->c == finish->c);
}

static void finish(open_halves *open, const oly_span *s)
{
    for (int k = open->n - 1; k >= 0; k--)
        if (belong(open->span[k], s)) {
            oly_span *begun = open->span[k];
            begun->end = s->begin;
            begun->phase = OLY_EVENT_INSTANT;
            for (open->n--; k < open->n; k++)
                open->span[k] = open->span[k + 1];
            return;
        }
}

/* Puts the end of each half into its beginning. */
static int64_t pair_up(int thread)
{
    open_halves open = {.n = 0};
    int64_t n = 0, at = 0;
    for (oly_span *s; (s = oly_timeline_next(thread, &at)); n++) {
        if (s->phase == OLY_EVENT_FINISH)
            finish(&open, s);
        else if (s->phase == OLY_EVENT_BEGIN && open.n < MOST_OPEN)
            open.span[open.n++] = s;
    }
    int64_t now = oly_ticks();
    for (int k = 0; k < open.n; k++)
        open.span[k]->end = now;
    return n;
}

static int by_beginning(const void *left, const void *right)
{
    const oly_span *a = *(const oly_span *const *)left, *b = *(const oly_span *const *)right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->end > b->end ? -1 : a->end < b->end;
}

typedef struct list {
    const oly_span **span; /* owned */
    int64_t n, at;
} list;

static oly_status sort(int thread, list *l)
{
    int64_t n = pair_up(thread), at = 0;
    l->span = oly_malloc(sizeof *l->span * (size_t)(n + 1));
    if (!l->span)
        return oly_out_of_memory(sizeof *l->span * (size_t)n, "writing the timeline");
    while (l->n < n) {
        oly_span *s = oly_timeline_next(thread, &at);
        if (!s)
            break;
        if (s->phase == OLY_EVENT_FINISH)
            n--;
        else
            l->span[l->n++] = s;
    }
    qsort(l->span, (size_t)l->n, sizeof *l->span, by_beginning);
    return OLY_OK;
}

static oly_status merge(list *lists, int n, oly_span_visitor *see, void *context)
{
    for (;;) {
        int first = -1;
        for (int k = 0; k < n; k++)
            if (lists[k].at < lists[k].n &&
                (first < 0 || lists[k].span[lists[k].at]->begin < lists[first].span[lists[first].at]->begin))
                first = k;
        if (first < 0)
            return OLY_OK;
        OLY_TRY(see(context, lists[first].span[lists[first].at++], first));
    }
}

oly_status oly_timeline_walk(oly_span_visitor *see, void *context)
{
    int n = oly_timeline_threads();
    list *lists = oly_calloc((size_t)n + 1, sizeof *lists);
    oly_status st = lists ? OLY_OK : oly_out_of_memory(sizeof *lists * (size_t)n, "writing the timeline");
    for (int k = 0; k < n && st == OLY_OK; k++)
        st = sort(k, &lists[k]);
    if (st == OLY_OK)
        st = merge(lists, n, see, context);
    for (int k = 0; lists && k < n; k++)
        oly_release(lists[k].span);
    oly_release(lists);
    return st;
}
