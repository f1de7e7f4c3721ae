/* SPDX-License-Identifier: BSD-3-Clause */
/* How far apart the calendars of hosts are. See clocks.h.
 *
 * A meeting ends on no rank before it has begun on all, an exchange not before what it receives has been sent. Each such pair of
 * events says by how much the clock of one host may at most be behind that of another:
 *
 *      begun on host a + shift of a  <=  ended on host b + shift of b
 *
 * The shortest chains of such bounds from and to the first host leave an interval for each shift. If the calendars as they are set lie in it,
 * they stay. */
#include "clocks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What was done together, as one rank saw it. */
typedef struct side {
    int64_t low, high, number; /* the two ranks and their exchange; of meetings: -1, -1 and the number of the meeting */
    const char *call;          /* with its line: as two sets of ranks may count alike */
    int64_t line;
    int host;
    bool is_high, sends;
    double begun, ended; /* s since 1970; ended: infinite if it has not */
} side;

/* shift of `to` - shift of `from` >= least */
typedef struct bound {
    int from, to;
    double least;
} bound;

typedef struct clocks {
    int n_hosts;
    int *host; /* of each recorder */
    const char **name;
    size_t n_sides, n_bounds, room;
    side *sides;
    bound *bounds;
} clocks;

enum { MOST_ROUNDS = 64 };
static const double SAME = 5e-5; /* s: what two readings of one clock may differ by */

static void find_hosts(clocks *c, const recorded_job *job)
{
    for (int k = 0; k < job->n; k++) {
        int h = 0;
        while (h < c->n_hosts && strcmp(c->name[h], job->of[k].host) != 0)
            h++;
        if (h == c->n_hosts)
            c->name[c->n_hosts++] = job->of[k].host;
        c->host[k] = h;
    }
}

/* -- what ranks did together ------------------------------------------------------------------------------------------ */

static bool is(const recorder_event *e, const char *kind, const char *phase)
{
    return strcmp(e->kind, kind) == 0 && strcmp(e->phase, phase) == 0;
}

static bool is_end(const recorder_event *begin, const recorder_event *e)
{
    bool is_meeting = strcmp(e->kind, "meeting") == 0;
    return is(e, begin->kind, "end") && e->thread == begin->thread && e->a == begin->a && e->c == begin->c &&
           e->line == begin->line && (!is_meeting || e->b == begin->b);
}

static double end_of(const recorder *r, int begin)
{
    const recorder_event *first = &r->events[begin];
    for (int k = begin + 1; k < r->n_events; k++)
        if (is_end(first, &r->events[k]))
            return recorder_calendar(r, r->events[k].time);
    return INFINITY;
}

static void add_sides(clocks *c, const recorder *r, int host)
{
    for (int k = 0; k < r->n_events; k++) {
        const recorder_event *e = &r->events[k];
        bool met = is(e, "meeting", "begin") && e->a == 0 && e->b > 0;
        bool exchanged = is(e, "exchange", "begin") && e->a >= 0 && e->a != r->rank;
        if (!met && !exchanged)
            continue;
        c->sides[c->n_sides++] = (side){.low = met              ? -1
                                               : e->a < r->rank ? e->a
                                                                : r->rank,
                                        .high = met              ? -1
                                                : e->a < r->rank ? r->rank
                                                                 : e->a,
                                        .number = met ? e->b : e->c,
                                        .call = met ? "" : e->call,
                                        .line = met ? 0 : e->line,
                                        .host = host,
                                        .is_high = exchanged && r->rank > e->a,
                                        .sends = met || e->b > 0,
                                        .begun = recorder_calendar(r, e->time),
                                        .ended = end_of(r, k)};
    }
}

static int by_key(const void *a, const void *b)
{
    const side *x = a, *y = b;
    const int64_t of_x[] = {x->low, x->high, x->number, x->line}, of_y[] = {y->low, y->high, y->number, y->line};
    for (int k = 0; k < 4; k++)
        if (of_x[k] != of_y[k])
            return of_x[k] < of_y[k] ? -1 : 1;
    return strcmp(x->call, y->call);
}

static int by_key_and_host(const void *a, const void *b)
{
    const side *x = a, *y = b;
    int keys = by_key(a, b);
    return keys ? keys : (x->host > y->host) - (x->host < y->host);
}

/* -- bounds ------------------------------------------------------------------------------------------------------------- */

static bool add_bound(clocks *c, const side *sent, const side *received)
{
    if (sent->host == received->host || !sent->sends || isinf(received->ended))
        return true;
    if (c->n_bounds == c->room) {
        size_t room = c->room ? 2 * c->room : 256;
        bound *more = realloc(c->bounds, sizeof *more * room);
        if (!more)
            return false;
        c->bounds = more;
        c->room = room;
    }
    c->bounds[c->n_bounds++] = (bound){sent->host, received->host, sent->begun - received->ended};
    return true;
}

/* The ranks of a host in a meeting as one: its clock is one. Returns how many hosts there are. */
static size_t join_ranks_of_hosts(side *s, size_t n)
{
    size_t hosts = 0;
    for (size_t k = 0; k < n; k++) {
        if (k == 0 || s[k].host != s[hosts - 1].host) {
            s[hosts++] = s[k];
            continue;
        }
        side *host = &s[hosts - 1];
        host->begun = fmax(host->begun, s[k].begun);
        host->ended = fmin(host->ended, s[k].ended);
    }
    return hosts;
}

/* Of a group of sides with the same key: exchanges have two, of meetings the first host is compared with the others. */
static bool add_bounds(clocks *c, side *s, size_t n)
{
    bool good = true, met = s->low < 0;
    if (!met && (n != 2 || s[0].is_high == s[1].is_high)) /* of several sets of ranks, or of one side only */
        return true;
    n = met ? join_ranks_of_hosts(s, n) : n;
    for (size_t k = 1; k < n && good; k++)
        good = add_bound(c, &s[0], &s[k]) && add_bound(c, &s[k], &s[0]);
    return good;
}

/* The bounds of all hosts against host 0, along chains of hosts. forward: of least[h], else of most[h]. */
static void relax(const clocks *c, double *value, bool forward)
{
    value[0] = 0;
    for (int h = 1; h < c->n_hosts; h++)
        value[h] = forward ? -INFINITY : INFINITY;
    bool changed = true;
    for (int round = 0; round < MOST_ROUNDS && changed; round++) {
        changed = false;
        for (size_t k = 0; k < c->n_bounds; k++) {
            const bound *b = &c->bounds[k];
            int at = forward ? b->to : b->from;
            double next = forward ? value[b->from] + b->least : value[b->to] - b->least;
            if (at == 0 || (forward ? next <= value[at] : next >= value[at]))
                continue;
            value[at] = next;
            changed = true;
        }
    }
}

static double shift_of(double least, double most)
{
    if (least > most || (least <= SAME && most >= -SAME)) /* a contradiction: something else is wrong */
        return 0;
    return isinf(least) ? most : isinf(most) ? least : (least + most) / 2;
}

static void move(recorded_job *job, const clocks *c, const double *least, const double *most, oly_text *told)
{
    for (int h = 1; h < c->n_hosts; h++) {
        double shift = shift_of(least[h], most[h]);
        if (shift == 0)
            continue;
        oly_text_add(told, "the clock of %s was %.6f s %s that of %s: corrected", c->name[h], fabs(shift),
                     shift > 0 ? "behind" : "ahead of", c->name[0]);
        if (!isinf(least[h]) && !isinf(most[h]))
            oly_text_add(told, ", to %.6f s", (most[h] - least[h]) / 2);
        oly_text_add(told, "\n");
        for (int k = 0; k < job->n; k++)
            if (c->host[k] == h) {
                job->of[k].written += shift;
                job->of[k].began += shift;
            }
    }
}

static bool compare(clocks *c, const recorded_job *job)
{
    for (int k = 0; k < job->n; k++)
        add_sides(c, &job->of[k], c->host[k]);
    qsort(c->sides, c->n_sides, sizeof *c->sides, by_key_and_host);
    bool good = true;
    for (size_t k = 0, n; k < c->n_sides && good; k += n) {
        for (n = 1; k + n < c->n_sides && by_key(&c->sides[k], &c->sides[k + n]) == 0;)
            n++;
        good = add_bounds(c, &c->sides[k], n);
    }
    return good;
}

oly_status clocks_correct(recorded_job *job, oly_text *told)
{
    size_t n = (size_t)job->n, events = 0;
    for (int k = 0; k < job->n; k++)
        events += (size_t)job->of[k].n_events;
    clocks c = {.host = malloc(sizeof *c.host * (n + 1)),
                .name = malloc(sizeof *c.name * (n + 1)),
                .sides = malloc(sizeof *c.sides * (events + 1))};
    double *least = malloc(sizeof *least * (n + 1)), *most = malloc(sizeof *most * (n + 1));
    bool good = c.host && c.name && c.sides && least && most;
    if (good)
        find_hosts(&c, job);
    if (good && c.n_hosts > 1 && (good = compare(&c, job))) {
        relax(&c, least, true);
        relax(&c, most, false);
        move(job, &c, least, most, told);
    }
    free(c.host);
    free(c.name);
    free(c.sides);
    free(c.bounds);
    free(least);
    free(most);
    return good ? OLY_OK : oly_fail(OLY_MEMORY, "no memory to compare clocks by %zu events", events);
}
