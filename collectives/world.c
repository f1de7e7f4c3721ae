/* SPDX-License-Identifier: BSD-3-Clause */
/* The job: starting and ending MPI, its ranks, small values that all ranks exchange. Called by runtime/run. MPI cannot
 * be initialised twice in a process, so the MPI that oly_world_start initialised lives until the process exits: Olympus
 * may be started and finished many times in between. A process that exits without finishing leaves MPI as it is, and
 * the launcher then ends the other ranks, which may be waiting for this one. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "world.h"
#include "divergence.h"
#include "staging.h"
#include "transport.h"
#include "core/error.h"
#include "core/events.h"
#include "core/progress.h"
#include "core/option.h"
#include "core/pretend.h"
#include "core/text.h"
#include "environment.h"
#include "meeting.h"
#include "start_fence.h"
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool started;
    bool broken, was_broken; /* a wait has failed: since the start, or in an earlier session of this process */
    oly_status why;          /* the first of its failures */
    bool quiet;              /* oly_finalize: all ranks have arrived, and nothing more is asked */
    bool began_mpi;          /* initialised by Olympus, in this process, at some time */
    bool threads;
    MPI_Comm comm, base; /* a duplicate of base: the program's communicator, or MPI_COMM_WORLD */
    int rank, size, node_rank, node_ranks;
    int core_ranks;     /* of the node, that share cores with this one */
    int *leaders;       /* owned; the first rank of each rank's node */
    int32_t *votes;     /* owned; one of each rank, allocated here so that a vote on running out of memory needs none */
    uint16_t *payloads; /* owned; large payloads so far: to each rank, then from each rank */
} world = {.comm = MPI_COMM_NULL, .base = MPI_COMM_NULL, .size = 1, .node_ranks = 1, .core_ranks = 1, .threads = true};

int oly_world_rank(void)
{
    return world.rank;
}
int oly_world_size(void)
{
    return world.size;
}
int oly_world_node_ranks(void)
{
    return world.node_ranks;
}
int oly_world_core_ranks(void)
{
    return world.core_ranks;
}
int oly_world_node_rank(void)
{
    return world.node_rank;
}
int oly_world_node_leader_of(int rank)
{
    return world.leaders ? world.leaders[rank] : 0;
}
bool oly_world_threads(void)
{
    return world.threads;
}
MPI_Comm oly_world_comm(void)
{
    return world.comm;
}
void oly_world_break(oly_status why)
{
    world.why = world.broken ? world.why : why;
    world.broken = true;
}

int oly_world_payload_tag(int peer, bool receiving)
{
    return OLY_TAG_PAYLOAD + world.payloads[receiving ? world.size + peer : peer]++ % OLY_PAYLOAD_TAGS;
}

oly_status oly_mpi_failed(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(code, text, &length);
    return oly_fail(OLY_MPI, "%s failed: %s", call, text);
}

#define MPI_TRY(function, ...)                                                                                         \
    do {                                                                                                               \
        int code_ = function(__VA_ARGS__);                                                                             \
        if (code_ != MPI_SUCCESS)                                                                                      \
            return oly_mpi_failed(#function, code_);                                                                   \
    } while (0)

enum { OLY_PLACE_TEXT = 160 };

const char *oly_place_text(const char *only, char *text, size_t size)
{
    oly_site site = oly_current_site();
    const char *call = site.call;
    bool known = site.call[0] && site.file[0] && (!only || strcmp(call, only) == 0);
    if (known)
        oly_site_text(&site, text, size);
    else
        snprintf(text, size, "%s", only ? only : "a meeting of all ranks");
    return text;
}

/* -- start ----------------------------------------------------------------------------------------------- */

static void end_mpi_at_exit(void)
{
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized && (world.started || world.broken || world.was_broken))
        return;
    if (!finalized) {
        oly_watch_block("MPI_Finalize, after oly_finalize on all ranks,", "the end of the program");
        MPI_Finalize();
        oly_watch_end();
    }
    oly_meeting_leave();
}

static oly_status begin_mpi(int *argc, char ***argv, const oly_launch *launch)
{
    oly_launch_defaults(launch);
    char place[OLY_PLACE_TEXT];
    int provided;
    oly_watch_block("MPI_Init", oly_place_text("oly_init", place, sizeof place));
    int code = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    if (code == MPI_SUCCESS)
        oly_start_fence();
    oly_watch_end();
    if (code != MPI_SUCCESS)
        return oly_mpi_failed("MPI_Init_thread", code);
    world.began_mpi = true;
    atexit(end_mpi_at_exit);
    return OLY_OK;
}

/* How many ranks of the node, this one included, may use some of this one's cores. */
static oly_status count_sharing(MPI_Comm node)
{
    cpu_set_t mine, both, *all = oly_calloc((size_t)world.node_ranks, sizeof *all);
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    world.core_ranks = world.node_ranks;
    int without = !all;
    MPI_TRY(MPI_Allreduce, MPI_IN_PLACE, &without, 1, MPI_INT, MPI_MAX, node);
    if (!without) {
        MPI_TRY(MPI_Allgather, &mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, node);
        world.core_ranks = 0;
        for (int k = 0; k < world.node_ranks; k++) {
            CPU_AND(&both, &mine, &all[k]);
            world.core_ranks += k == world.node_rank || CPU_COUNT(&both) > 0;
        }
    }
    oly_release(all);
    return OLY_OK;
}

/* The ranks that count as this node, of those that share its memory. */
static oly_status know_node(MPI_Comm node)
{
    int leader = world.rank; /* the lowest rank is the first of them */
    MPI_Comm_rank(node, &world.node_rank);
    MPI_Comm_size(node, &world.node_ranks);
    MPI_TRY(MPI_Allreduce, MPI_IN_PLACE, &leader, 1, MPI_INT, MPI_MIN, node);
    OLY_TRY(count_sharing(node));
    oly_peers_meet(node, world.node_rank, world.node_ranks, world.rank, world.size);
    MPI_TRY(MPI_Allgather, &leader, 1, MPI_INT, world.leaders, 1, MPI_INT, world.comm);
    return OLY_OK;
}

/* By all ranks, even if the options differ: that is reported later. */
static oly_status divide_node(MPI_Comm node)
{
    int rank, each = (int)oly_option.node_ranks, pretended = oly_pretend_node(world.rank);
    MPI_Comm part;
    MPI_Comm_rank(node, &rank);
    MPI_TRY(MPI_Comm_split, node, pretended >= 0 ? pretended : each > 0 ? rank / each : 0, 0, &part);
    OLY_TRY(know_node(part));
    MPI_TRY(MPI_Comm_free, &part);
    return OLY_OK;
}

/* Counts the ranks of this node, and whether they outnumber the cores that they may use together. */
static oly_status look_at_node(void)
{
    enum { WORDS = sizeof(cpu_set_t) / sizeof(uint64_t) };
    union {
        cpu_set_t set;
        uint64_t words[WORDS];
    } allowed;
    CPU_ZERO(&allowed.set);
    sched_getaffinity(0, sizeof allowed.set, &allowed.set);
    int here;
    MPI_Comm node;
    MPI_TRY(MPI_Comm_split_type, world.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_TRY(MPI_Allreduce, MPI_IN_PLACE, allowed.words, WORDS, MPI_UINT64_T, MPI_BOR, node);
    OLY_TRY(divide_node(node));
    MPI_TRY(MPI_Comm_free, &node);
    oly_wait_set_crowded(here > CPU_COUNT(&allowed.set));
    return OLY_OK;
}

static oly_status check_launcher(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0'; /* MPICH tells its configuration, too, on many lines */
    for (char *tab = library; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    return oly_launch_check(world.size, library);
}

static oly_status make_communicator(void)
{
    MPI_TRY(MPI_Comm_dup, world.base, &world.comm);
    MPI_Comm_set_name(world.comm, "olympus");
    MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN);
    return look_at_node();
}

/* What oly_distributed_initialize was told must be what the launcher, or the meeting, has made. */
static oly_status check_arguments(const oly_world_way *way)
{
    if (way->processes > 0 && way->processes != world.size)
        return oly_fail(OLY_INVALID,
                        "this job has %d processes, not %d as oly_distributed_initialize says; under a launcher it "
                        "needs no arguments",
                        world.size, way->processes);
    if (way->process >= 0 && way->process != world.rank)
        return oly_fail(OLY_INVALID,
                        "this is process %d of its job, not %d as oly_distributed_initialize says; under a launcher it "
                        "needs no arguments",
                        world.rank, way->process);
    return OLY_OK;
}

static oly_status join_job(const oly_world_way *way)
{
    int level;
    MPI_Query_thread(&level);
    world.threads = level == MPI_THREAD_MULTIPLE; /* otherwise the program's own MPI calls must not overlap ours */
    MPI_Comm_rank(world.base, &world.rank);
    MPI_Comm_size(world.base, &world.size);
    if (world.base == MPI_COMM_WORLD)
        OLY_TRY(check_launcher());
    OLY_TRY(check_arguments(way));
    size_t size = (size_t)world.size;
    world.votes = oly_calloc(size, sizeof *world.votes);
    world.payloads = oly_calloc(2 * size, sizeof *world.payloads);
    world.leaders = oly_calloc(size, sizeof *world.leaders);
    if (!world.votes || !world.payloads || !world.leaders)
        return oly_out_of_memory(size * 12, "notes about the job's ranks");
    char place[OLY_PLACE_TEXT];
    oly_watch_start(world.rank);
    oly_watch_block("MPI_Comm_dup", oly_place_text("oly_init", place, sizeof place));
    oly_status status = make_communicator();
    if (status == OLY_OK)
        oly_inquiry_begin();
    oly_watch_end();
    return status;
}

/* Back to a job of one; frees what start allocated. */
static void leave_job(bool free_comm)
{
    oly_inquiry_end();
    if (world.comm != MPI_COMM_NULL && free_comm) {
        oly_watch_block("MPI_Comm_free", "oly_finalize");
        oly_side_close(true);
        MPI_Comm_free(&world.comm);
        oly_watch_end();
    }
    oly_side_close(false);
    oly_release(world.votes);
    oly_release(world.payloads);
    oly_release(world.leaders);
    world.comm = world.base = MPI_COMM_NULL;
    world.votes = NULL;
    world.payloads = NULL;
    world.leaders = NULL;
    world.rank = world.node_rank = 0;
    world.size = world.node_ranks = world.core_ranks = 1;
    world.threads = true;
    world.started = false;
    world.was_broken = world.was_broken || world.broken;
    world.broken = world.quiet = false;
    oly_wait_set_crowded(false);
}

oly_status oly_world_imagine(int ranks, int node_ranks)
{
    if (world.started)
        return oly_fail(OLY_STATE, "Olympus has been started already; oly_finalize must come before the next oly_init");
    world.size = ranks;
    world.node_ranks = world.core_ranks = node_ranks;
    world.started = true;
    return OLY_OK;
}

bool oly_world_is_broken(void)
{
    return world.broken;
}

bool oly_world_has_peers(void)
{
    return world.size > 1 && world.comm != MPI_COMM_NULL;
}

/* The program's communicator, which must be there and have ranks of one group. */
static oly_status take_communicator(const void *communicator, bool initialized, bool finalized)
{
    int between = 0;
    world.base = MPI_COMM_WORLD;
    if (!communicator)
        return OLY_OK;
    if (!initialized || finalized)
        return oly_fail(OLY_STATE,
                        "a communicator is given, but MPI %s; call MPI_Init first, and MPI_Finalize after oly_finalize",
                        finalized ? "has been finalised" : "is not initialised");
    MPI_Comm given;
    memcpy(&given, communicator, sizeof given);
    if (given == MPI_COMM_NULL)
        return oly_fail(OLY_INVALID, "the communicator is MPI_COMM_NULL: only its members call oly_init_comm");
    MPI_Comm_test_inter(given, &between);
    if (between)
        return oly_fail(OLY_INVALID,
                        "the communicator is an intercommunicator; MPI_Intercomm_merge makes one of both sides");
    world.base = given;
    return OLY_OK;
}

static oly_mpi_kind kind_of_mpi(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(library, &length);
    return strstr(library, "Open MPI")                               ? OLY_MPI_OPEN
           : strstr(library, "MPICH") || strstr(library, "Intel(R)") ? OLY_MPI_MPICH
                                                                     : OLY_MPI_OTHER;
}

/* Processes that no launcher has started meet, once in their life. */
static oly_status meet_others(const oly_world_way *way, oly_launch *launch, bool initialized, bool finalized)
{
    oly_distributed asked = {way->asked, way->coordinator, way->processes, way->process};
    oly_place place;
    if (way->communicator || finalized || world.began_mpi)
        return OLY_OK;
    OLY_TRY(oly_meeting_find(&asked, launch, &place));
    if (!place.wanted)
        return OLY_OK;
    if (initialized)
        return oly_fail(
            OLY_STATE,
            "MPI has been initialised already, for this process alone; processes meet before MPI_Init: leave that to "
            "oly_distributed_initialize, or call it first");
    return oly_meeting_hold(&place, kind_of_mpi(), launch);
}

oly_status oly_world_start_as(int *argc, char ***argv, const oly_world_way *way)
{
    if (world.started)
        return oly_fail(OLY_STATE, "Olympus has been started already; oly_finalize must come before the next oly_init");
    oly_launch launch = oly_launch_detect();
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    OLY_TRY(take_communicator(way->communicator, initialized, finalized));
    OLY_TRY(meet_others(way, &launch, initialized, finalized));
    if (finalized && launch.launcher)
        return oly_fail(OLY_STATE,
                        "MPI has been finalised and cannot be started again: call MPI_Finalize after the last "
                        "oly_finalize");
    bool with_mpi = !finalized && (initialized || launch.launcher);
    oly_recording_begin(&launch);
    if (with_mpi) {
        oly_watch_start(launch.rank);
        if (oly_option.node_ranks == 0 && !*oly_option.nodes && !way->communicator)
            oly_peers_begin(&launch);
    }
    if (with_mpi && !initialized)
        OLY_TRY(begin_mpi(argc, argv, &launch));
    oly_abort_hook = oly_world_abort;
    oly_failure_hook = oly_divergence_failed;
    oly_status status = with_mpi ? join_job(way) : check_arguments(way);
    oly_error_set_rank(world.rank, world.size);
    if (status != OLY_OK) {
        /* The communicator stays: freeing it waits for ranks that may be elsewhere. So does the abort hook. */
        bool joined = world.comm != MPI_COMM_NULL; /* its messages may be on their way */
        leave_job(false);
        world.was_broken = world.was_broken || joined;
        return status;
    }
    oly_recording_join(world.rank, world.size);
    world.started = true;
    return OLY_OK;
}

oly_status oly_world_start(int *argc, char ***argv)
{
    return oly_world_start_as(argc, argv, &(oly_world_way){.processes = -1, .process = -1});
}

/* -- waiting for all ------------------------------------------------------------------------------------- */

/* The rank of an exchange message that was never received here, and its ticket; -1 if there is none. */
static int stray_message(oly_ticket *ticket)
{
    char *bytes = oly_malloc(OLY_FIRST_MESSAGE_BYTES);
    int rank = bytes ? oly_transport_get()->stray(bytes) : -1;
    if (rank >= 0) {
        memcpy(ticket, bytes, OLY_TICKET_BYTES);
        ticket->call[sizeof ticket->call - 1] = 0;
    }
    oly_release(bytes);
    return rank;
}

static oly_status not_all_came(const char *what)
{
    OLY_TRY(oly_world_told());
    oly_world_break(OLY_TIMEOUT);
    oly_text more = {0};
    oly_late late = {0};
    oly_peers_late(NULL, &late);
    oly_peers_describe(&more, &late);
    oly_fail(
        OLY_TIMEOUT,
        "%s: not all %d ranks arrived within %lld s; waiting for %s%s; one may have ended, be waiting in another call, "
        "or still be computing (then raise OLYMPUS_TIMEOUT)",
        what, world.size, (long long)oly_option.timeout, oly_late_text_of(&late).chars, oly_text_chars(&more));
    oly_text_free(&more);
    return OLY_TIMEOUT;
}

/* Asks ranks that may be elsewhere for their calls: all, or in large jobs some. */
static void ask_others(void)
{
    enum { ALL = 64 };
    for (int step = 1; step < world.size; step = world.size <= ALL ? step + 1 : 2 * step)
        oly_divergence_ask((world.rank + step) % world.size);
}

/* A message of an exchange, when none may be sent any more. */
static oly_status check_nothing_comes(const char *what)
{
    oly_ticket theirs = {0}, mine = {.set = 1};
    int rank = stray_message(&theirs);
    if (rank < 0)
        return OLY_OK;
    snprintf(mine.call, sizeof mine.call, "%s", what);
    return oly_divergence_met(rank, &mine, &theirs);
}

/* Have others diverged? After every fruitless poll of a wait for all. */
static oly_status look_out(const oly_wait *w, const char *what, bool last)
{
    enum { POLLS = 16 };
    if (w->polls % POLLS)
        return OLY_OK;
    oly_status st = oly_divergence_look();
    if (st == OLY_OK && last)
        st = check_nothing_comes(what);
    if (st != OLY_OK)
        oly_world_break(st);
    else if (!world.quiet && oly_divergence_is_time(w->began)) {
        oly_values_stuck(what);
        ask_others();
    }
    return st;
}

static oly_status test_until_all(MPI_Request *request, const char *what, bool last, oly_wait *w)
{
    for (int done = 0;;) {
        int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            oly_world_break(OLY_MPI);
            return oly_mpi_failed(what, code);
        }
        if (done)
            return OLY_OK;
        if (!oly_wait_more(w))
            return not_all_came(what);
        OLY_TRY(look_out(w, what, last));
    }
}

static oly_status nobody_came(const oly_wait *w)
{
    OLY_TRY(oly_world_told());
    oly_text more = {0};
    oly_late late = {0};
    w->late(w->context, &late);
    oly_peers_describe(&more, &late);
    oly_fail(OLY_TIMEOUT, "rank %d waited %lld s in %s for %s%s; if it is still computing, raise OLYMPUS_TIMEOUT",
             world.rank, (long long)oly_option.timeout, w->call, oly_late_text_of(&late).chars, oly_text_chars(&more));
    oly_text_free(&more);
    return OLY_TIMEOUT;
}

typedef struct awaited {
    int n;
    MPI_Request *requests;
    const int *ranks;
} awaited;

static void name_awaited(const void *context, oly_late *late)
{
    const awaited *a = context;
    for (int k = 0; k < a->n; k++) {
        bool named = a->requests[k] == MPI_REQUEST_NULL;
        for (int i = 0; i < late->n && i < OLY_LATE_NAMED; i++)
            named = named || late->rank[i] == a->ranks[k];
        if (!named)
            oly_late_add(late, a->ranks[k]);
    }
}

int oly_world_test(int n, MPI_Request *requests, bool *done)
{
    *done = true;
    for (int k = 0; k < n; k++) {
        int one = 0, code = MPI_Test(&requests[k], &one, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return code;
        *done = *done && one;
    }
    return MPI_SUCCESS;
}

static oly_status test_until_here(const awaited *a, oly_wait *w, bool (*over)(void *), void *context)
{
    for (;;) {
        bool done;
        int code = oly_world_test(a->n, a->requests, &done);
        if (code != MPI_SUCCESS)
            return oly_mpi_failed(w->call, code);
        if (done || (over && over(context)))
            return OLY_OK;
        if (!oly_wait_more(w))
            return nobody_came(w);
        OLY_TRY(look_out(w, w->call, false));
    }
}

oly_status oly_world_wait(int n, MPI_Request *requests, const int *ranks, const char *call)
{
    return oly_world_wait_or(n, requests, ranks, call, NULL, NULL);
}

oly_status oly_world_wait_or(int n, MPI_Request *requests, const int *ranks, const char *call, bool (*over)(void *),
                             void *context)
{
    awaited a = {n, requests, ranks};
    oly_wait w = {.call = call, .late = name_awaited, .context = &a};
    oly_status status = test_until_here(&a, &w, over, context);
    oly_wait_end(&w);
    if (status != OLY_OK)
        oly_world_break(status);
    return status;
}

/* A collective of all ranks, from before this rank's part in it begins: a reader of the recorders takes it that a numbered meeting
 * ends nowhere before it has begun everywhere (launch/oly/clocks.c). */
typedef struct meeting {
    char place[OLY_PLACE_TEXT];
    int64_t number; /* 0: some may end before others begin */
} meeting;

static meeting begin_meeting(const char *only, bool awaits_all)
{
    meeting m;
    oly_place_text(only, m.place, sizeof m.place);
    oly_peers_arrive();
    m.number = awaits_all ? (int64_t)atomic_load(&oly_progress_here->meetings) : 0;
    oly_event_text(OLY_EVENT_MEETING, OLY_EVENT_BEGIN, m.place, 0, m.number);
    return m;
}

/* Waits for the collective. With `last`, nothing may be sent any more, and a message is a divergence at once. */
static oly_status end_meeting(const meeting *m, MPI_Request *request, bool last)
{
    oly_wait w = {.call = m->place, .late = oly_peers_late};
    oly_status status = test_until_all(request, w.call, last, &w);
    oly_wait_end(&w);
    if (status == OLY_OK)
        oly_event_text(OLY_EVENT_MEETING, OLY_EVENT_FINISH, w.call, 0, m->number);
    if (status == OLY_OK)
        oly_inquiry_met(w.call);
    return status;
}

oly_status oly_world_await_all(MPI_Request *request)
{
    meeting m = begin_meeting(NULL, false); /* the caller has begun it long ago */
    return end_meeting(&m, request, false);
}

/* end_meeting tests the request until it is done, which the checker does not see. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
oly_status oly_world_gather(const void *mine, void *all, size_t bytes)
{
    if (world.comm == MPI_COMM_NULL) {
        memcpy(all, mine, bytes);
        return OLY_OK;
    }
    if (bytes > INT_MAX)
        return oly_fail(OLY_OVERFLOW, "gathering %zu bytes of each rank: at most %d", bytes, INT_MAX);
    OLY_TRY(oly_process_sets_note_meeting("a meeting of all ranks"));
    MPI_Request request;
    meeting m = begin_meeting(NULL, true);
    MPI_TRY(MPI_Iallgather, mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, world.comm, &request);
    return end_meeting(&m, &request, false);
}

oly_status oly_world_share(void *data, size_t bytes, int root)
{
    if (world.comm == MPI_COMM_NULL)
        return OLY_OK;
    if (bytes > INT_MAX)
        return oly_fail(OLY_OVERFLOW, "sharing %zu bytes of a rank: at most %d", bytes, INT_MAX);
    OLY_TRY(oly_process_sets_note_meeting("a meeting of all ranks"));
    MPI_Request request;
    meeting m = begin_meeting(NULL, false); /* the root waits for nobody */
    MPI_TRY(MPI_Ibcast, data, (int)bytes, MPI_BYTE, root, world.comm, &request);
    return end_meeting(&m, &request, false);
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* "rank 2", "ranks 0, 3 and 5 more": those that voted against. */
static void name_voters(oly_text *text)
{
    enum { NAMED = 8 };
    int failed = 0;
    for (int r = 0; r < world.size; r++)
        failed += world.votes[r] != OLY_OK;
    oly_text_add(text, failed == 1 ? "rank " : "ranks ");
    for (int r = 0, named = 0; r < world.size && named < NAMED; r++)
        if (world.votes[r] != OLY_OK)
            oly_text_add(text, named++ ? ", %d" : "%d", r);
    if (failed > NAMED)
        oly_text_add(text, " and %d more", failed - NAMED);
}

oly_status oly_world_vote(oly_status mine, const char *what)
{
    if (world.comm == MPI_COMM_NULL)
        return mine;
    int32_t vote = (int32_t)mine;
    OLY_TRY(oly_world_gather(&vote, world.votes, sizeof vote));
    oly_status worst = OLY_OK;
    for (int r = 0; r < world.size; r++)
        worst = world.votes[r] > (int32_t)worst ? (oly_status)world.votes[r] : worst;
    if (worst == OLY_OK || mine != OLY_OK)
        return worst; /* ranks that failed keep their own message */
    oly_text text = {0};
    name_voters(&text);
    oly_fail(worst, "%s failed on %s: %s (%s)", what, oly_text_chars(&text), oly_status_text(worst),
             oly_status_name(worst));
    oly_text_free(&text);
    return worst;
}

/* -- end ------------------------------------------------------------------------------------------------- */

/* end_meeting tests the request until it is done, which the checker does not see. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
/* Sums over all ranks numbers whose total is zero if all have made the same calls and every notice has been received. */
static oly_status add_up(const char *call, bool last, int64_t sums[2])
{
    int64_t *mine = oly_malloc(4 * sizeof *mine); /* used by MPI while pending, also after a failure */
    MPI_Request request;
    if (!mine)
        return oly_out_of_memory(4 * sizeof *mine, "a meeting of all processes");
    mine[0] = (int64_t)oly_process_sets_balance();
    mine[1] = oly_divergence_balance() + oly_values_balance() + (world.quiet ? oly_inquiry_balance() : 0);
    meeting m = begin_meeting(call, true);
    MPI_TRY(MPI_Iallreduce, mine, mine + 2, 2, MPI_UINT64_T, MPI_SUM, world.comm, &request);
    OLY_TRY(end_meeting(&m, &request, last));
    memcpy(sums, mine + 2, 2 * sizeof *sums);
    oly_release(mine);
    return OLY_OK;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

oly_status oly_world_meet(const char *call)
{
    int64_t sums[2];
    if (world.comm == MPI_COMM_NULL)
        return OLY_OK;
    OLY_TRY(oly_process_sets_note_meeting(call));
    OLY_TRY(add_up(call, false, sums));
    if (sums[0] != 0)
        return oly_divergence_search(call);
    oly_process_sets_verified();
    return OLY_OK;
}

static oly_status wait_for_the_end(void)
{
    int64_t sums[2] = {0, 1};
    if (world.broken) { /* not a collective: others may be in another one forever, or wait here in vain */
        if (!oly_divergence_known())
            oly_world_tell(world.why);
        oly_divergence_await_reports();
        return OLY_OK;
    }
    oly_process_sets_end();
    oly_values_end();
    /* Who waits for the last ones in the first round may ask them what they do, after its own numbers are on their way. From the second on
     * nobody does. A message that nobody receives would not end with the communicator: Open MPI may deliver it to the next one. */
    for (int round = 0; round < 2 || sums[1] != 0; round++) {
        world.quiet = round > 0;
        if (world.quiet)
            oly_inquiry_quiet();
        OLY_TRY(add_up("oly_finalize", round == 0, sums));
        if (sums[0] != 0)
            return oly_divergence_search("oly_finalize");
        OLY_TRY(oly_divergence_look());
        oly_inquiry_look();
    }
    return OLY_OK;
}

oly_status oly_world_finish(void)
{
    if (!world.started)
        return OLY_OK;
    oly_status status = world.comm != MPI_COMM_NULL ? wait_for_the_end() : OLY_OK;
    if (status == OLY_OK && oly_failure_is_news())
        status = oly_world_told();
    if (status != OLY_OK)
        oly_raise(status);
    if (status != OLY_OK && oly_divergence_known())
        oly_divergence_await_reports(); /* others wait for it */
    if (status == OLY_OK &&
        world.broken) /* it has been reported; the program may have read it, and must not end with success */
        status = world.why;
    oly_staging_stop();
    oly_divergence_forget();
    oly_introductions_forget();
    oly_values_forget();
    oly_process_sets_forget();
    leave_job(status == OLY_OK && !world.broken);
    oly_failure_forget();
    oly_peers_end();
    oly_recording_end();
    oly_abort_hook = NULL;
    oly_failure_hook = NULL;
    oly_error_set_rank(-1, 1);
    return status;
}

void oly_world_abort(int exit_status)
{
    fflush(NULL);
    if (oly_divergence_known())
        oly_divergence_await_reports();
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    world.broken = true; /* no exit handler may wait for others */
    oly_recording_leave();
    oly_watch_abort(exit_status); /* a launcher may hang */
    if (initialized && !finalized)
        MPI_Abort(world.base == MPI_COMM_NULL ? MPI_COMM_WORLD : world.base, exit_status);
    exit(exit_status);
}
