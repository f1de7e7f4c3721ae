/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly report`: reads the recorders of all ranks of a job, names the rank at fault, and says what each was in. */
#include "clocks.h"
#include "oly.h"
#include "page.h"
#include "report.h"
#include "verdict.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PREFIX "olympus-recorder."
enum { MOST_FILES = 100000, WORDS_OF_EVENT = 160 };

typedef struct paths {
    int n, room;
    char **of;
} paths;

static bool add_path(paths *p, const char *folder, const char *name)
{
    oly_text full = {0};
    if (p->n == MOST_FILES)
        return false;
    if (p->n == p->room) {
        int room = p->room ? 2 * p->room : 64;
        char **more = realloc(p->of, sizeof *more * (size_t)room);
        if (!more)
            return false;
        p->of = more;
        p->room = room;
    }
    oly_text_add(&full, "%s%s%s", folder, *folder ? "/" : "", name);
    p->of[p->n] = full.failed ? NULL : full.chars;
    return p->of[p->n] && ++p->n;
}

static void free_paths(paths *p)
{
    for (int k = 0; k < p->n; k++)
        free(p->of[k]);
    free(p->of);
}

/* A rank that was killed while it wrote has left ".olympus-recorder.JOB.RANK.new". */
static bool is_recorder_name(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 || strncmp(name, "." PREFIX, strlen(PREFIX) + 1) == 0;
}

static bool collect(paths *p, const char *folder)
{
    DIR *listing = opendir(folder);
    bool good = listing != NULL;
    for (struct dirent *entry; good && (entry = readdir(listing));)
        if (is_recorder_name(entry->d_name))
            good = add_path(p, folder, entry->d_name);
    if (listing)
        closedir(listing);
    return good;
}

/* -- which recorders ---------------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
    const recorder *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->complete != y->complete)
        return x->complete ? -1 : 1;
    return x->written > y->written ? -1 : x->written < y->written;
}

/* Those of one job, one of each rank: the complete one, the latest. */
static void choose(recorded_job *job, const char *wanted)
{
    int n = 0;
    for (int k = 0; k < job->n; k++)
        if (strcmp(job->of[k].job, wanted) == 0)
            job->of[n++] = job->of[k];
    qsort(job->of, (size_t)n, sizeof *job->of, by_rank);
    job->n = 0;
    job->ranks = 0;
    for (int k = 0; k < n; k++)
        if (job->n == 0 || job->of[job->n - 1].rank != job->of[k].rank)
            job->of[job->n++] = job->of[k];
    for (int k = 0; k < job->n; k++)
        job->ranks = job->of[k].ranks > job->ranks ? job->of[k].ranks : job->ranks;
}

static const char *latest_job(const recorded_job *job, oly_text *others)
{
    const recorder *last = &job->of[0];
    for (int k = 1; k < job->n; k++)
        if (job->of[k].written > last->written)
            last = &job->of[k];
    for (int k = 0; k < job->n; k++) {
        bool known = strcmp(job->of[k].job, last->job) == 0;
        for (int j = 0; j < k && !known; j++)
            known = strcmp(job->of[k].job, job->of[j].job) == 0;
        if (!known)
            oly_text_add(others, others->length ? ", %s" : "%s", job->of[k].job);
    }
    return last->job;
}

/* -- the text ------------------------------------------------------------------------------------------------------------- */

static void print_calendar(oly_text *t, double seconds)
{
    char text[64];
    struct tm at;
    time_t whole = (time_t)seconds;
    if (seconds > 0 && seconds < 1e11 && localtime_r(&whole, &at) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &at))
        oly_text_add(t, "%s", text);
}

static void report_ranks_without(const recorded_job *job, oly_text *t)
{
    int n = 0;
    for (int64_t r = 0, at = 0; r < job->ranks && n <= 8; r++) {
        while (at < job->n && job->of[at].rank < r)
            at++;
        if (at < job->n && job->of[at].rank == r)
            continue;
        oly_text_add(t, n == 8 ? ", ..." : n ? ", %lld" : "%lld", (long long)r);
        n++;
    }
}

static void print_head(const recorded_job *job, oly_text *t)
{
    const recorder *r = &job->of[0];
    oly_text without = {0};
    oly_text_add(t, "job %s: %lld rank%s of %s, begun ", r->job, (long long)job->ranks, job->ranks == 1 ? "" : "s",
                 r->program);
    print_calendar(t, r->began);
    oly_text_add(t, "\n%d recorder%s", job->n, job->n == 1 ? "" : "s");
    report_ranks_without(job, &without);
    if (without.length)
        oly_text_add(t, "; none of rank%s %s", job->ranks - job->n == 1 ? "" : "s", oly_text_chars(&without));
    oly_text_add(t, "\n\n");
    oly_text_free(&without);
}

static const char *reason_words(const recorder *r)
{
    static const char *const words[][2] = {{"diverged", "met a divergence"},
                                           {"timeout", "gave up waiting"},
                                           {"mpi", "got an error from MPI"},
                                           {"peer", "saw that another rank had failed"},
                                           {"signal", "crashed"},
                                           {"terminated", "was told to end (SIGTERM)"},
                                           {"asked", "was asked for its state"},
                                           {"status", "runs"}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(words[k][0], r->reason) == 0)
            return words[k][1];
    return r->reason;
}

/* "rank 0  h1:1234  was told to end (SIGTERM), waiting since 12.3 s in oly_sum (heat.c:40) for rank 2" */
void report_rank(const recorder *r, oly_text *t)
{
    oly_text_add(t, "rank %lld  %s:%lld  %s", (long long)r->rank, r->host, (long long)r->pid, reason_words(r));
    if (r->wait) {
        double waited = r->clock - r->since;
        oly_text_add(t, ", waiting for %.*f s in %s", waited < 10 ? 3 : 0, waited < 0 ? 0 : waited, r->wait);
    } else if (*r->call || r->n_events > 0) {
        const recorder_event *e = verdict_open_exchange(r);
        if (e)
            oly_text_add(t, ", for %.3f s in an exchange with rank %lld", r->clock > e->time ? r->clock - e->time : 0,
                         (long long)e->a);
        oly_text_add(t, "%s", e ? "; its last call is " : ", not waiting; its last call is ");
        verdict_last_call(t, r);
    }
    oly_text_add(t, r->complete ? "\n" : "  (the recorder is cut short)\n");
    if (*r->because)
        oly_text_add(t, "        %s\n", r->because);
    oly_text_add(t, "        memory %s", oly_size_text_of((size_t)r->resident).chars);
    if (r->pool)
        oly_text_add(t, ", %s of it in arrays", oly_size_text_of((size_t)r->pool).chars);
    oly_text_add(t, "; %lld meetings of all ranks\n", (long long)r->meetings);
}

static void print_absent(const recorded_job *job, int64_t rank, oly_text *t)
{
    const recorder *by;
    const recorder_peer *p = verdict_peer(job, rank, &by);
    if (!p)
        return;
    oly_text_add(t, "rank %lld  %s:%lld  no recorder; seen by rank %lld: %s", (long long)rank, by->host,
                 (long long)p->pid, (long long)by->rank,
                 p->state == '-'                      ? "its process is gone"
                 : p->state == 'T' || p->state == 't' ? "its process is stopped"
                                                      : "its process runs");
    if (p->waits_for != RECORDER_NOBODY)
        oly_text_add(t, ", waiting in %s", p->wait);
    if (*p->call) {
        oly_text_add(t, "; its last call is ");
        verdict_call(t, p->call, p->file, p->line);
    }
    oly_text_add(t, "\n");
}

/* -- events of all ranks ---------------------------------------------------------------------------------------------------- */

typedef struct placed_event {
    double at; /* s since 1970 */
    const recorder *of;
    const recorder_event *event;
} placed_event;

static int by_time(const void *a, const void *b)
{
    const placed_event *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void add_partner(oly_text *t, const recorder_event *e)
{
    if (e->a >= 0)
        oly_text_add(t, " with rank %lld, %lld bytes", (long long)e->a, (long long)e->b);
    else
        oly_text_add(t, " with several ranks, %lld bytes", (long long)e->b);
}

void report_event(const recorder_event *e, oly_text *t)
{
    oly_text_add(t, "%s%s%s", e->kind, strcmp(e->phase, "at") == 0 ? "" : " ",
                 strcmp(e->phase, "at") == 0 ? "" : e->phase);
    if (strcmp(e->kind, "call") == 0)
        oly_text_add(t, " %lld", (long long)e->a);
    if (strcmp(e->kind, "exchange") == 0)
        add_partner(t, e);
    if (*e->text)
        oly_text_add(t, "  %.*s", WORDS_OF_EVENT, e->text);
    if (*e->call && !strstr(e->text, e->call)) {
        oly_text_add(t, "  ");
        verdict_call(t, e->call, e->file, e->line);
    }
}

/* The last `most` of them, oldest first, at their distance from the last. */
static oly_status print_events(const recorded_job *job, int most, oly_text *t)
{
    size_t n = 0, all = 0;
    for (int k = 0; k < job->n; k++)
        all += (size_t)job->of[k].n_events;
    placed_event *list = malloc(sizeof *list * (all + 1));
    if (!list)
        return oly_fail(OLY_MEMORY, "no memory for %zu events", all);
    for (int k = 0; k < job->n; k++)
        for (int j = 0; j < job->of[k].n_events; j++)
            list[n++] = (placed_event){recorder_calendar(&job->of[k], job->of[k].events[j].time), &job->of[k],
                                       &job->of[k].events[j]};
    qsort(list, n, sizeof *list, by_time);
    size_t from = n > (size_t)most ? n - (size_t)most : 0;
    if (n > from)
        oly_text_add(t, "\nthe last events of all ranks, in seconds before the last:\n");
    for (size_t k = from; k < n; k++) {
        oly_text_add(t, "  %11.6f  rank %-3lld ", list[k].at - list[n - 1].at, (long long)list[k].of->rank);
        report_event(list[k].event, t);
        oly_text_add(t, "\n");
    }
    free(list);
    return OLY_OK;
}

/* -- all together ------------------------------------------------------------------------------------------------------------ */

static oly_status print_text(const recorded_job *job, const verdict *v, const oly_text *clocks, int events, oly_text *t)
{
    print_head(job, t);
    if (clocks->length)
        oly_text_add(t, "%s\n", clocks->chars);
    oly_text_add(t, "verdict: %s\n\n", oly_text_chars(&v->text));
    int at = 0;
    for (int64_t r = -1; r < job->ranks; r++) {
        if (at < job->n && job->of[at].rank == r)
            report_rank(&job->of[at++], t);
        else if (r >= 0 && job->n < 4096 && job->ranks < 65536)
            print_absent(job, r, t);
    }
    return print_events(job, events, t);
}

static void event_json(const recorder *r, const recorder_event *e, oly_text *t)
{
    bool first = true;
    oly_text_add(t, "{");
    tool_key(t, &first, "at");
    oly_text_add(t, "%.6f", recorder_calendar(r, e->time));
    tool_member(t, &first, "kind", e->kind);
    tool_member(t, &first, "phase", e->phase);
    tool_member_int(t, &first, "thread", e->thread);
    tool_member_int(t, &first, "a", e->a);
    tool_member_int(t, &first, "b", e->b);
    tool_member_int(t, &first, "c", e->c);
    tool_member(t, &first, "call", e->call);
    tool_member(t, &first, "file", e->file);
    tool_member_int(t, &first, "line", e->line);
    tool_member(t, &first, "text", e->text);
    oly_text_add(t, "}");
}

void report_rank_json(const recorder *r, oly_text *t)
{
    bool first = true;
    oly_text_add(t, "{");
    tool_member(t, &first, "job", r->job);
    tool_member_int(t, &first, "rank", r->rank);
    tool_member(t, &first, "host", r->host);
    tool_member_int(t, &first, "pid", r->pid);
    tool_member(t, &first, "reason", r->reason);
    tool_member(t, &first, "because", r->because);
    tool_key(t, &first, "complete");
    oly_text_add(t, r->complete ? "true" : "false");
    tool_key(t, &first, "written");
    oly_text_add(t, "%.6f", r->written);
    tool_member(t, &first, "call", r->call);
    tool_member(t, &first, "file", r->file);
    tool_member_int(t, &first, "line", r->line);
    tool_member_int(t, &first, "meetings", r->meetings);
    tool_member_int(t, &first, "resident_bytes", r->resident);
    tool_member_int(t, &first, "array_bytes", r->pool);
    if (r->wait) {
        tool_member(t, &first, "waits", r->wait);
        tool_member_int(t, &first, "waits_for", r->waits_for);
        tool_member_number(t, &first, "waited_seconds", r->clock - r->since);
    }
    tool_key(t, &first, "events");
    oly_text_add(t, "[");
    for (int k = 0; k < r->n_events; k++) {
        oly_text_add(t, k ? ",\n" : "\n");
        event_json(r, &r->events[k], t);
    }
    oly_text_add(t, "]}");
}

static void report_json(const recorded_job *job, const verdict *v, oly_text *t)
{
    bool first = true;
    oly_text_add(t, "{");
    tool_member(t, &first, "job", job->of[0].job);
    tool_member_int(t, &first, "ranks", job->ranks);
    tool_member(t, &first, "program", job->of[0].program);
    tool_member(t, &first, "verdict", verdict_name(v->kind));
    tool_key(t, &first, "guilty");
    oly_text_add(t, "[");
    for (int k = 0; k < v->n && k < VERDICT_MOST; k++)
        oly_text_add(t, k ? ", %lld" : "%lld", (long long)v->rank[k]);
    oly_text_add(t, "]");
    tool_member(t, &first, "text", oly_text_chars(&v->text));
    tool_key(t, &first, "recorders");
    oly_text_add(t, "[");
    for (int k = 0; k < job->n; k++) {
        oly_text_add(t, k ? ",\n" : "\n");
        report_rank_json(&job->of[k], t);
    }
    oly_text_add(t, "]}\n");
}

/* Reads all that can be read; says of the others why not. */
static int read_recorders(const paths *p, oly_arena *arena, recorded_job *job)
{
    int refused = 0;
    for (int k = 0; k < p->n; k++)
        if (recorder_read_file(arena, p->of[k], &job->of[job->n]) == OLY_OK) {
            job->n++;
        } else {
            tool_fail("%s [refused]", oly_pending_message());
            oly_drop_message();
            refused++;
        }
    return refused;
}

typedef struct wishes {
    const char *job, *html, *source;
    bool json;
    int events;
} wishes;

static int report_recorders(const paths *p, const wishes *w, page_parts *parts)
{
    oly_arena arena = {0};
    recorded_job job = {.of = calloc((size_t)p->n + 1, sizeof(recorder))};
    oly_text t = {0}, others = {0}, clocks = {0};
    verdict v = {0};
    int status = job.of ? 0 : tool_fail("no memory for %d recorders", p->n);
    if (job.of && read_recorders(p, &arena, &job) > 0)
        status = TOOL_FAILED;
    if (job.n > 0)
        choose(&job, w->job ? w->job : latest_job(&job, &others));
    if (job.n == 0) {
        status =
            tool_fail(w->job ? "no recorder of job %s" : "no recorder of Olympus (olympus-recorder.JOB.RANK) here%s",
                      w->job ? w->job : "");
    } else {
        if (clocks_correct(&job, &clocks) != OLY_OK)
            status = tool_fail_pending();
        v = verdict_of(&job);
        if (others.length)
            fprintf(stderr, "oly report: the last job; --job for the others: %s\n", oly_text_chars(&others));
        if (w->json || w->html)
            report_json(&job, &v, w->html ? &parts->report : &t);
        if (!w->json && print_text(&job, &v, &clocks, w->events, &t) != OLY_OK)
            status = tool_fail_pending();
        if (tool_write("-", &t) != OLY_OK)
            status = tool_fail_pending();
    }
    oly_text_free(&t);
    oly_text_free(&others);
    oly_text_free(&clocks);
    oly_text_free(&v.text);
    oly_arena_free(&arena);
    free(job.of);
    return status;
}

/* "olympus-recorder.JOB", without the rank: all files that begin so. */
static bool collect_prefix(paths *p, const char *prefix)
{
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    char folder[4096];
    int before = p->n;
    paths all = {0};
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - prefix) : 1, slash ? prefix : ".");
    if (strncmp(name, PREFIX, strlen(PREFIX)) == 0 && collect(&all, folder))
        for (int k = 0; k < all.n; k++) {
            const char *found = strrchr(all.of[k], '/') + 1;
            found += *found == '.';
            if (strncmp(found, name, strlen(name)) == 0)
                add_path(p, "", all.of[k]);
        }
    free_paths(&all);
    return p->n > before;
}

/* What an argument is; a status. */
static int take_argument(const char *path, paths *p, page_parts *parts, const wishes *w)
{
    struct stat s;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (stat(path, &s) != 0)
        return collect_prefix(p, path) ? 0 : tool_fail("%s: no such file or folder", path);
    if (S_ISDIR(s.st_mode))
        return collect(p, path) ? 0 : tool_fail("%s: this folder cannot be read, or has too many files", path);
    if (tool_is_timeline(path) && !w->html)
        return tool_fail(
            "%s: a timeline, not a flight recorder: oly trace %s sums it up, --html PAGE makes a page of it", path,
            path);
    if (is_recorder_name(name) || !w->html)
        return add_path(p, "", path) ? 0 : tool_fail("too many files");
    return page_add_file(parts, path) == OLY_OK ? 0 : tool_fail_pending();
}

int report_main(int argc, char **argv)
{
    const char *events = tool_option(&argc, argv, "--events");
    wishes w = {.job = tool_option(&argc, argv, "--job"),
                .html = tool_option(&argc, argv, "--html"),
                .source = tool_option(&argc, argv, "--source"),
                .json = tool_flag(&argc, argv, "--json"),
                .events = events ? atoi(events) : 12};
    page_parts parts = {0};
    paths p = {0};
    int status = 0;
    if (tool_unknown_option(argc, argv))
        return tool_usage("unknown option %s", tool_unknown_option(argc, argv));
    if ((events && w.events <= 0) || (w.html && !*w.html) || (w.job && !*w.job) || (w.source && !*w.source))
        return tool_usage("--events, --job, --html and --source need a value");
    tool_end_of_options(&argc, argv);
    if (argc < 2)
        return tool_usage("which folder, or which files?");
    for (int k = 1; k < argc; k++) /* what is refused leaves the rest */
        status |= take_argument(argv[k], &p, &parts, &w);
    if (p.n > 0 || (status == 0 && (!w.html || (!parts.plans.length && !parts.timeline.length))))
        status |= report_recorders(&p, &w, &parts);
    if (w.html && (status == 0 || parts.report.length)) {
        if (page_write(w.html, &parts, w.source) != OLY_OK)
            status = tool_fail_pending();
        else
            fprintf(stderr, "oly report: wrote %s\n", w.html);
    }
    page_free(&parts);
    free_paths(&p);
    return status;
}
