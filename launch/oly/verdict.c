/* SPDX-License-Identifier: BSD-3-Clause */
/* See verdict.h. The rules, in order: a crash; a divergence, by the first call that differs; a process that is gone; one that left; one
 * that is stopped; then the ranks for which others wait. Of several the earliest counts: the launcher ends the others afterwards. */
#include "verdict.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_CALLS = 100000 };
enum { LEFT_BY_EXIT = 3, STAYS = 0 };

const recorder *verdict_recorder(const recorded_job *job, int64_t rank)
{
    for (int k = 0; k < job->n; k++)
        if (job->of[k].rank == rank)
            return &job->of[k];
    return NULL;
}

const recorder_peer *verdict_peer(const recorded_job *job, int64_t rank, const recorder **by)
{
    const recorder_peer *found = NULL;
    double latest = 0;
    for (int k = 0; k < job->n; k++)
        for (int j = 0; j < job->of[k].n_peers; j++)
            if (job->of[k].peers[j].rank == rank && (!found || job->of[k].written > latest)) {
                found = &job->of[k].peers[j];
                latest = job->of[k].written;
                if (by)
                    *by = &job->of[k];
            }
    return found;
}

static void add_rank(verdict *v, int64_t rank)
{
    for (int k = 0; k < v->n && k < VERDICT_MOST; k++)
        if (v->rank[k] == rank)
            return;
    if (v->n < VERDICT_MOST)
        v->rank[v->n] = rank;
    v->n++;
}

void verdict_call(oly_text *to, const char *call, const char *file, int64_t line)
{
    if (*call && *file)
        oly_text_add(to, "%s (%s:%lld)", call, file, (long long)line);
    else
        oly_text_add(to, "%s", call);
}

/* By the state, or else by the last event that belongs to a call. */
void verdict_last_call(oly_text *to, const recorder *r)
{
    if (*r->call) {
        verdict_call(to, r->call, r->file, r->line);
        return;
    }
    for (int k = r->n_events - 1; k >= 0; k--)
        if (*r->events[k].call) {
            verdict_call(to, r->events[k].call, r->events[k].file, r->events[k].line);
            return;
        }
}

static void add_list(oly_text *to, int n, const int64_t *ranks)
{
    oly_text_add(to, n == 1 ? "rank" : "ranks");
    for (int k = 0; k < n && k < VERDICT_MOST; k++)
        oly_text_add(to, k ? ", %lld" : " %lld", (long long)ranks[k]);
    if (n > VERDICT_MOST)
        oly_text_add(to, " and %d more", n - VERDICT_MOST);
}

/* ", its last call is oly_add (heat.c:30)" */
static void add_last(oly_text *to, const char *lead, const char *call, const char *file, int64_t line)
{
    if (!*call)
        return;
    oly_text_add(to, "%s", lead);
    verdict_call(to, call, file, line);
}

/* -- crashes ------------------------------------------------------------------------------------------------------------ */

static bool crashed(const recorded_job *job, verdict *v)
{
    const recorder *first = NULL;
    for (int k = 0; k < job->n; k++)
        if (strcmp(job->of[k].reason, "signal") == 0 && (!first || job->of[k].written < first->written))
            first = &job->of[k];
    if (!first)
        return false;
    v->kind = VERDICT_CRASHED;
    add_rank(v, first->rank);
    oly_text_add(&v->text, "rank %lld (process %lld on %s) crashed: %s; its last call was ", (long long)first->rank,
                 (long long)first->pid, first->host, first->because);
    verdict_last_call(&v->text, first);
    for (int k = 0; k < job->n; k++)
        if (strcmp(job->of[k].reason, "signal") == 0 && &job->of[k] != first)
            oly_text_add(&v->text, "; later rank %lld crashed, too: %s", (long long)job->of[k].rank,
                         job->of[k].because);
    return true;
}

/* -- divergences -------------------------------------------------------------------------------------------------------- */

/* The event of a rank's call of this number; NULL: not kept. */
static const recorder_event *find_call(const recorder *r, int64_t number)
{
    int low = 0, high = r->n_calls; /* the first that is not below */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (r->calls[middle]->a < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_calls && r->calls[low]->a == number ? r->calls[low] : NULL;
}

static bool same_call(const recorder_event *a, const recorder_event *b)
{
    return a->b == b->b && a->line == b->line && strcmp(a->call, b->call) == 0 && strcmp(a->file, b->file) == 0;
}

/* How many of those that diverged made the same call number n as this one. */
static int agreeing(const recorded_job *job, const recorder_event *call, int64_t n)
{
    int count = 0;
    for (int k = 0; k < job->n; k++) {
        const recorder_event *e = find_call(&job->of[k], n);
        count += e && same_call(e, call);
    }
    return count;
}

/* The first number of which the ranks made different calls, or which some of them have not reached; -1: none. */
static int64_t first_difference(const recorded_job *job)
{
    int64_t low = 0, high = -1;
    for (int k = 0; k < job->n; k++) {
        const recorder *r = &job->of[k];
        if (r->n_calls == 0)
            return -1;
        low = r->calls[0]->a > low ? r->calls[0]->a : low;
        high = r->calls[r->n_calls - 1]->a > high ? r->calls[r->n_calls - 1]->a : high;
    }
    high = high - low > MOST_CALLS ? low + MOST_CALLS : high;
    for (int64_t n = low; n <= high; n++) {
        const recorder_event *first = find_call(&job->of[0], n);
        for (int k = 1; k < job->n && first; k++) {
            const recorder_event *e = find_call(&job->of[k], n);
            if (e && !same_call(first, e))
                return n;
        }
    }
    return -1;
}

/* The calls of number n, most frequent first: "oly_mul (heat.c:17) on rank 2". */
static void tell_calls(const recorded_job *job, oly_text *to, int64_t n)
{
    bool *told = calloc((size_t)job->n, sizeof *told);
    for (int k = 0, groups = 0; told && k < job->n; k++) {
        const recorder_event *e = find_call(&job->of[k], n);
        int64_t ranks[VERDICT_MOST];
        int members = 0;
        if (told[k] || !e)
            continue;
        for (int j = k; j < job->n; j++) {
            const recorder_event *other = find_call(&job->of[j], n);
            if (!other || !same_call(e, other))
                continue;
            told[j] = true;
            if (members < VERDICT_MOST)
                ranks[members] = job->of[j].rank;
            members++;
        }
        oly_text_add(to, groups++ ? ", " : "");
        verdict_call(to, e->call, e->file, e->line);
        oly_text_add(to, " on ");
        add_list(to, members, ranks);
    }
    free(told);
}

static bool diverged_by_calls(const recorded_job *job, verdict *v)
{
    int64_t n = first_difference(job);
    int best = 0;
    if (n < 0)
        return false;
    for (int k = 0; k < job->n; k++) {
        const recorder_event *e = find_call(&job->of[k], n);
        int count = e ? agreeing(job, e, n) : 0;
        best = count > best ? count : best;
    }
    for (int k = 0; k < job->n; k++) {
        const recorder_event *e = find_call(&job->of[k], n);
        if (e && (agreeing(job, e, n) < best || 2 * best <= job->n))
            add_rank(v, job->of[k].rank);
    }
    v->kind = VERDICT_DIVERGED;
    if (2 * best > job->n) {
        add_list(&v->text, v->n, v->rank);
        oly_text_add(&v->text, " made another call than the others: call %lld is ", (long long)n);
    } else {
        add_list(&v->text, v->n, v->rank);
        oly_text_add(&v->text, " made different calls, and there is no majority: call %lld is ", (long long)n);
    }
    tell_calls(job, &v->text, n);
    return true;
}

/* "ranks 1 and 2 run different programs: ..." in the messages: who is named most often. */
static bool diverged_by_messages(const recorded_job *job, verdict *v)
{
    const recorder *first = NULL;
    int64_t pairs[2 * 64];
    int n = 0, best = 0;
    for (int k = 0; k < job->n; k++) {
        const char *at = strcmp(job->of[k].reason, "diverged") == 0 ? strstr(job->of[k].because, "ranks ") : NULL;
        char *end;
        if (!at || n >= 64)
            continue;
        pairs[2 * n] = strtoll(at + 6, &end, 10);
        if (strncmp(end, " and ", 5) != 0)
            continue;
        pairs[2 * n + 1] = strtoll(end + 5, NULL, 10);
        first = first ? first : &job->of[k];
        n++;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < 2 * n; k++) {
            int count = 0;
            for (int j = 0; j < 2 * n; j++)
                count += pairs[j] == pairs[k];
            if (pass == 0)
                best = count > best ? count : best;
            else if (count == best)
                add_rank(v, pairs[k]);
        }
    if (!first)
        return false;
    v->kind = VERDICT_DIVERGED;
    add_list(&v->text, v->n, v->rank);
    oly_text_add(&v->text, " diverged: %s", first->because);
    return true;
}

static bool diverged(const recorded_job *job, verdict *v)
{
    const recorder *any = NULL;
    for (int k = 0; k < job->n; k++)
        if (strcmp(job->of[k].reason, "diverged") == 0)
            any = any ? any : &job->of[k];
    if (!any)
        return false;
    if (diverged_by_calls(job, v) || diverged_by_messages(job, v))
        return true;
    v->kind = VERDICT_DIVERGED;
    add_rank(v, any->rank);
    oly_text_add(&v->text, "rank %lld met a divergence: %s", (long long)any->rank, any->because);
    return true;
}

/* -- processes that are gone or stopped --------------------------------------------------------------------------------- */

static bool is_gone(const recorder_peer *p)
{
    return p->state == '-' && !p->ended && (p->leaving == STAYS || p->leaving == LEFT_BY_EXIT);
}

static bool is_stopped(const recorder_peer *p)
{
    return (p->state == 'T' || p->state == 't') && !p->ended;
}

/* The earliest recorder in which such a rank is seen, one without a recorder of its own that says more. */
static const recorder *earliest(const recorded_job *job, bool (*is)(const recorder_peer *))
{
    const recorder *first = NULL;
    for (int k = 0; k < job->n; k++)
        for (int j = 0; j < job->of[k].n_peers; j++)
            if (is(&job->of[k].peers[j]) && (!first || job->of[k].written < first->written))
                first = &job->of[k];
    return first;
}

/* The launcher ends the others after a failure: what is seen later tells nothing. */
static bool came_first(const recorded_job *job, const recorder *by)
{
    for (int k = 0; k < job->n; k++) {
        const recorder *r = &job->of[k];
        bool tells = strcmp(r->reason, "timeout") == 0 || strcmp(r->reason, "mpi") == 0;
        if (tells && r->written < by->written)
            return false;
    }
    return true;
}

static bool gone(const recorded_job *job, verdict *v)
{
    const recorder *by = earliest(job, is_gone), *stopped_by = earliest(job, is_stopped);
    if (!by || (stopped_by && stopped_by->written <= by->written) || !came_first(job, by))
        return false;
    for (int j = 0; j < by->n_peers; j++) {
        const recorder_peer *p = &by->peers[j];
        if (!is_gone(p))
            continue;
        if (v->n > 0)
            oly_text_add(&v->text, "; ");
        v->kind = p->leaving == LEFT_BY_EXIT ? VERDICT_LEFT : VERDICT_KILLED;
        add_rank(v, p->rank);
        oly_text_add(&v->text, "rank %lld (process %lld on %s) %s", (long long)p->rank, (long long)p->pid, by->host,
                     p->leaving == LEFT_BY_EXIT ? "left the job: the program called exit without oly_finalize"
                                                : "was killed, or ended by _exit: its process is gone without a word "
                                                  "(SIGKILL, as when memory runs out?)");
        add_last(&v->text, "; its last call was ", p->call, p->file, p->line);
    }
    return true;
}

static bool stopped(const recorded_job *job, verdict *v)
{
    const recorder *by = earliest(job, is_stopped);
    if (!by)
        return false;
    v->kind = VERDICT_STOPPED;
    for (int j = 0; j < by->n_peers; j++) {
        const recorder_peer *p = &by->peers[j];
        if (!is_stopped(p))
            continue;
        if (v->n > 0)
            oly_text_add(&v->text, "; ");
        add_rank(v, p->rank);
        oly_text_add(&v->text, "rank %lld (process %lld on %s) is stopped (SIGSTOP, or a debugger)", (long long)p->rank,
                     (long long)p->pid, by->host);
        add_last(&v->text, "; its last call was ", p->call, p->file, p->line);
    }
    return true;
}

/* -- waits -------------------------------------------------------------------------------------------------------------- */

typedef struct standing {
    bool known, waits;
    int64_t waits_for; /* a rank; -1: several */
    const char *call, *file;
    int64_t line;
} standing;

const recorder_event *verdict_open_exchange(const recorder *r)
{
    for (int k = r->n_events - 1; k >= 0; k--)
        if (strcmp(r->events[k].kind, "exchange") == 0)
            return strcmp(r->events[k].phase, "begin") == 0 && r->events[k].a >= 0 ? &r->events[k] : NULL;
    return NULL;
}

static standing standing_of(const recorded_job *job, int64_t rank)
{
    const recorder *r = verdict_recorder(job, rank), *by;
    const recorder_peer *p = r ? NULL : verdict_peer(job, rank, &by);
    if (r) {
        const recorder_event *exchange = r->wait ? NULL : verdict_open_exchange(r);
        int64_t partner = exchange ? exchange->a : r->waits_for;
        return (standing){true, r->wait || partner >= 0, partner, r->call, r->file, r->line};
    }
    if (p)
        return (standing){true, p->waits_for != RECORDER_NOBODY, p->waits_for, p->call, p->file, p->line};
    return (standing){.waits_for = RECORDER_NOBODY, .call = "", .file = ""};
}

/* From a rank that waits, along what each waits for, to one that does not, of which nothing is known, or that was met before. */
static int64_t follow(const recorded_job *job, int64_t rank, standing *last, bool *cycle)
{
    enum { MOST_LINKS = 64 };
    int64_t seen[MOST_LINKS];
    *cycle = false;
    for (int n = 0; n < MOST_LINKS; n++) {
        *last = standing_of(job, rank);
        if (!last->waits || last->waits_for < 0)
            return rank;
        for (int k = 0; k < n; k++)
            *cycle = *cycle || seen[k] == rank;
        if (*cycle)
            return rank;
        seen[n] = rank;
        rank = last->waits_for;
    }
    return rank;
}

static void tell_cycle(const recorded_job *job, verdict *v, int64_t rank)
{
    v->kind = VERDICT_CYCLE;
    for (int64_t at = rank; v->n < VERDICT_MOST;) {
        int before = v->n;
        add_rank(v, at);
        if (v->n == before)
            break;
        at = standing_of(job, at).waits_for;
    }
    add_list(&v->text, v->n, v->rank);
    oly_text_add(&v->text, " wait for each other: ");
    for (int k = 0; k < v->n && k < VERDICT_MOST; k++) {
        standing s = standing_of(job, v->rank[k]);
        oly_text_add(&v->text, k ? ", rank %lld in " : "rank %lld in ", (long long)v->rank[k]);
        verdict_call(&v->text, s.call, s.file, s.line);
    }
}

static bool waited_for(const recorded_job *job, verdict *v)
{
    for (int k = 0; k < job->n; k++) {
        standing last;
        bool cycle;
        if (!standing_of(job, job->of[k].rank).waits)
            continue;
        int64_t rank = follow(job, job->of[k].rank, &last, &cycle);
        if (cycle) {
            tell_cycle(job, v, rank);
            return true;
        }
        if (rank < 0 || last.waits || rank == job->of[k].rank)
            continue;
        add_rank(v, rank);
        v->kind = last.known ? VERDICT_BUSY : VERDICT_MISSING;
        oly_text_add(&v->text, "the others wait for rank %lld, which %s", (long long)rank,
                     last.known
                         ? "does not wait: it computes, is in code of the program, or sleeps"
                         : "has left no recorder, and whose state no other rank could see: its host is lost, or it was "
                           "killed there");
        add_last(&v->text, "; its last call was ", last.call, last.file, last.line);
        return true;
    }
    return false;
}

/* -- all together --------------------------------------------------------------------------------------------------------- */

static bool asked_only(const recorded_job *job)
{
    for (int k = 0; k < job->n; k++)
        if (strcmp(job->of[k].reason, "asked") != 0 && strcmp(job->of[k].reason, "status") != 0)
            return false;
    return true;
}

verdict verdict_of(const recorded_job *job)
{
    verdict v = {.kind = VERDICT_UNCLEAR};
    if (crashed(job, &v) || diverged(job, &v) || gone(job, &v) || stopped(job, &v))
        return v;
    if (waited_for(job, &v)) {
        if (asked_only(job) && v.kind == VERDICT_BUSY) /* as anybody is for a moment */
            v.kind = VERDICT_NONE;
        return v;
    }
    v.kind = asked_only(job) ? VERDICT_NONE : VERDICT_UNCLEAR;
    oly_text_add(&v.text, "%s",
                 v.kind == VERDICT_NONE ? "no rank has failed: the recorders were written on request"
                                        : "the recorders do not show which rank is at fault; the reasons below may");
    return v;
}

const char *verdict_name(verdict_kind kind)
{
    static const char *const names[] = {
        [VERDICT_NONE] = "none",       [VERDICT_CRASHED] = "crashed", [VERDICT_DIVERGED] = "diverged",
        [VERDICT_KILLED] = "killed",   [VERDICT_LEFT] = "left",       [VERDICT_STOPPED] = "stopped",
        [VERDICT_BUSY] = "busy",       [VERDICT_CYCLE] = "cycle",     [VERDICT_MISSING] = "missing",
        [VERDICT_UNCLEAR] = "unclear",
    };
    return names[kind];
}
