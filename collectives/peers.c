/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other ranks of this node are doing. Each has a slot in memory that all of them map (core/progress.h): their state can be
 * read without their help, even if they are stopped or gone. Called by the files of collectives/.
 *
 * There are two ways to that memory. Before MPI is initialised, a file in the folder that the launcher has made for this job on
 * this node, and which the launcher removes. Otherwise, after MPI_Init, anonymous memory of the node's first rank, which ends
 * with the last rank that maps it. Without either, everything works, but messages say less. */
#define _GNU_SOURCE /* memfd_create */
#include "world.h"
#include "core/process_state.h"
#include "core/progress.h"
#include "core/text.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PLACE = 512, MOST_PLACES = 4096, MOST_LINKS = 8 };
_Static_assert(sizeof(oly_progress) <= PLACE, "a place is as long in all programs");

static struct {
    char *memory; /* NULL: none */
    char path[256];
    int slot; /* this rank's slot */
    int size; /* of the job; 0: not known */
    int here; /* ranks of this node; 0: not known */
} peers;

static oly_progress *place(int slot)
{
    return (oly_progress *)(peers.memory + (size_t)slot * PLACE);
}

static int64_t pid_space(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 ? (int64_t)s.st_ino : 0;
}

static void map(int file)
{
    void *memory = mmap(NULL, (size_t)PLACE * MOST_PLACES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    peers.memory = memory == MAP_FAILED ? NULL : memory;
}

/* -- taking a place ------------------------------------------------------------------------------------------ */

static void take_place(int slot, int rank)
{
    peers.slot = slot;
    oly_progress_use(peers.memory ? place(slot) : NULL);
    oly_progress *mine = oly_progress_here;
    atomic_store(&mine->rank, rank);
    atomic_store(&mine->pid, getpid());
    atomic_store(&mine->pid_space, pid_space());
    atomic_store(&mine->waits_for, OLY_WAITS_FOR_NOBODY);
    atomic_store(&mine->leaving, OLY_STAYS);
    atomic_store(&mine->told, 0);
    atomic_store(&mine->begun, 1);
}

void oly_peers_begin(const oly_launch *launch)
{
    const char *folder = getenv("PMIX_SERVER_TMPDIR"), *job = getenv("PMIX_NAMESPACE");
    bool known = launch->rank >= 0 && launch->node_rank >= 0 && launch->node_rank < MOST_PLACES;
    if (peers.memory || !known || !folder || folder[0] != '/' || !job || strchr(job, '/'))
        return;
    int length = snprintf(peers.path, sizeof peers.path, "%s/olympus.%s", folder, job);
    if (length < 0 || (size_t)length >= sizeof peers.path)
        return;
    int file = open(peers.path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat s;
    if (file < 0)
        return;
    if (fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
        ftruncate(file, PLACE * MOST_PLACES) == 0)
        map(file);
    close(file);
    if (!peers.memory)
        return;
    peers.size = launch->size > 0 ? launch->size : 0;
    peers.here = launch->node_ranks > 0 ? launch->node_ranks : 0;
    take_place(launch->node_rank, launch->rank);
}

/* The node's first rank provides memory; `path` is where the others find it. */
static void offer(char *path, size_t size)
{
    int file = memfd_create("olympus", MFD_CLOEXEC);
    path[0] = 0;
    if (file < 0)
        return;
    if (ftruncate(file, PLACE * MOST_PLACES) == 0)
        map(file);
    if (peers.memory)
        snprintf(path, size, "/proc/%ld/fd/%d", (long)getpid(), file);
    else
        close(file); /* otherwise it stays open for the others, which may come later */
}

static void accept_offer(const char *path)
{
    int file = path[0] ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file >= 0) {
        map(file);
        close(file);
    }
}

void oly_peers_meet(MPI_Comm node, int node_rank, int node_ranks, int rank, int size)
{
    char path[256];
    int have = peers.memory != NULL, all = have;
    if (MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, node) != MPI_SUCCESS || node_ranks > MOST_PLACES)
        return;
    if (!all) {
        if (have) {
            oly_progress_use(NULL);
            munmap(peers.memory, (size_t)PLACE * MOST_PLACES);
            peers.memory = NULL;
        }
        if (node_rank == 0)
            offer(path, sizeof path);
        if (MPI_Bcast(path, sizeof path, MPI_CHAR, 0, node) != MPI_SUCCESS)
            return;
        if (node_rank > 0)
            accept_offer(path);
        peers.slot = node_rank;
    }
    peers.here = node_ranks;
    peers.size = size;
    take_place(peers.slot, rank);
}

void oly_peers_end(void)
{
    atomic_store(&oly_progress_here->ended, 1);
}

void oly_peers_arrive(void)
{
    atomic_fetch_add(&oly_progress_here->meetings, 1);
    atomic_store(&oly_progress_here->ended, 0);
}

/* -- who is late --------------------------------------------------------------------------------------------- */

static const oly_progress *find(int rank)
{
    for (int k = 0; peers.memory && k < peers.here; k++)
        if (atomic_load(&place(k)->begun) && atomic_load(&place(k)->rank) == rank)
            return place(k);
    const oly_progress *own = oly_progress_here;
    return atomic_load(&own->begun) && atomic_load(&own->rank) == rank ? own : NULL;
}

bool oly_peers_see(int rank)
{
    return find(rank) != NULL;
}

void oly_peers_late_here(uint64_t meetings, oly_late *late)
{
    for (int k = 0; peers.memory && k < peers.here; k++)
        if (atomic_load(&place(k)->begun) && atomic_load(&place(k)->meetings) < meetings)
            oly_late_add(late, atomic_load(&place(k)->rank));
    if (!peers.memory && atomic_load(&oly_progress_here->meetings) < meetings)
        oly_late_add(late, atomic_load(&oly_progress_here->rank));
}

void oly_peers_late(const void *unused, oly_late *late)
{
    (void)unused;
    int absent = 0;
    late->meetings = atomic_load(&oly_progress_here->meetings);
    oly_peers_late_here(late->meetings, late);
    oly_inquiry_late(late->meetings, late);
    for (int k = 0; peers.memory && k < peers.here; k++)
        absent += !atomic_load(&place(k)->begun);
    /* if all ranks of the job are here, those that are not found have not begun */
    for (int r = 0; absent > 0 && peers.here == peers.size && r < peers.size; r++)
        if (!find(r))
            oly_late_add(late, r);
    late->otherwise = absent > 0                                ? "other processes of this node"
                      : peers.memory && peers.here < peers.size ? "ranks of other nodes"
                                                                : "other ranks";
}

/* -- for the flight recorder ----------------------------------------------------------------------------------
 * Async-signal-safe. */

/* The letter of /proc/PID/stat; 0: no such process; '?': it may not be visible here. */
static char state_of(const oly_progress *p)
{
    char path[40] = "/proc/", text[256];
    if (atomic_load(&p->pid_space) != atomic_load(&oly_progress_here->pid_space))
        return '?';
    size_t n = strlen(path);
    n += oly_raw_digits(path + n, atomic_load(&p->pid));
    memcpy(path + n, "/stat", sizeof "/stat");
    oly_raw_read(path, text, sizeof text);
    const char *end = strrchr(text, ')'); /* of the program's name */
    return end && end[1] == ' ' ? end[2] : 0;
}

static bool is_gone(char state)
{
    return state == 0 || state == 'Z' || state == 'X';
}

/* "peer RANK PID STATE ENDED LEAVING WAITS-FOR SINCE MEETINGS LINE CALL FILE WAIT", with tabs. */
static void record(oly_raw *raw, const oly_progress *p)
{
    char state = state_of(p), letter[2] = {is_gone(state) ? '-' : state, 0};
    const int64_t before[] = {atomic_load(&p->rank), atomic_load(&p->pid)};
    const int64_t after[] = {atomic_load(&p->ended), atomic_load(&p->leaving),           atomic_load(&p->waits_for),
                             atomic_load(&p->since), (int64_t)atomic_load(&p->meetings), atomic_load(&p->line)};
    oly_raw_text(raw, "peer");
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
        oly_raw_text(raw, "\t");
        oly_raw_int(raw, before[k]);
    }
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, letter, 1);
    for (size_t k = 0; k < sizeof after / sizeof *after; k++) {
        oly_raw_text(raw, "\t");
        if (k == 3)
            oly_raw_seconds(raw, after[k]);
        else
            oly_raw_int(raw, after[k]);
    }
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->call, sizeof p->call);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->file, sizeof p->file);
    oly_raw_text(raw, "\t");
    oly_raw_field(raw, p->wait, sizeof p->wait);
    oly_raw_text(raw, "\n");
}

void oly_peers_record(oly_raw *raw)
{
    for (int k = 0; peers.memory && k < peers.here; k++)
        if (atomic_load(&place(k)->begun) && place(k) != oly_progress_here)
            record(raw, place(k));
}

/* Has this one ended without a word? By SIGTERM it would have been told to; by exit that matters to ranks that wait. */
static bool has_vanished(const oly_progress *p, bool waiting)
{
    int leaving = atomic_load(&p->leaving);
    return (leaving == OLY_STAYS || (leaving == OLY_LEAVES_BY_EXIT && waiting)) && is_gone(state_of(p));
}

/* After an error of the program the launcher kills the other ranks, some before they can say that they leave: they have not failed. */
oly_peers_state oly_peers_state_now(void)
{
    bool waiting = atomic_load(&oly_progress_here->waits_for) != OLY_WAITS_FOR_NOBODY, error = false, vanished = false;
    for (int k = 0; peers.memory && k < peers.here; k++) {
        const oly_progress *p = place(k);
        if (!atomic_load(&p->begun) || p == oly_progress_here || atomic_load(&p->ended))
            continue;
        int leaving = atomic_load(&p->leaving);
        if (leaving == OLY_LEAVES_BY_FAILURE)
            return OLY_PEERS_FAILURE;
        error = error || leaving == OLY_LEAVES_BY_ERROR;
        vanished = vanished || has_vanished(p, waiting);
    }
    return error ? OLY_PEERS_ERROR : vanished ? OLY_PEERS_FAILURE : OLY_PEERS_STAY;
}

bool oly_peers_tell_first(void)
{
    return !peers.memory || atomic_exchange(&place(0)->told, 1) == 0;
}

/* -- what it does -------------------------------------------------------------------------------------------- */

static void add_last_call(oly_text *text, const oly_progress *p)
{
    char call[sizeof p->call], file[sizeof p->file];
    snprintf(call, sizeof call, "%.*s", (int)sizeof call - 1, p->call);
    snprintf(file, sizeof file, "%.*s", (int)sizeof file - 1, p->file);
    if (call[0])
        oly_text_add(text, ", its last call is %s (%s:%d)", call, file, atomic_load(&p->line));
}

int oly_peers_describe_seen(oly_text *text, int rank)
{
    const oly_progress *p = find(rank);
    int64_t pid = atomic_load(&p->pid);
    bool seen = atomic_load(&p->pid_space) == pid_space();
    long parent;
    char state = seen ? oly_process_state((long)pid, &parent) : '?';
    int waits_for = atomic_load(&p->waits_for);
    oly_text_add(text, "rank %d", rank);
    if (state == 0 || state == 'Z' || state == 'X') {
        oly_text_add(text, " (process %lld) has ended", (long long)pid);
        waits_for = OLY_WAITS_FOR_NOBODY;
    } else if (state == 'T' || state == 't') {
        oly_text_add(text, " (process %lld) is stopped", (long long)pid);
        waits_for = OLY_WAITS_FOR_NOBODY;
    } else if (atomic_load(&p->ended)) {
        oly_text_add(text, " has finished oly_finalize, but has not ended");
        return OLY_WAITS_FOR_NOBODY;
    } else if (waits_for == OLY_WAITS_FOR_NOBODY) {
        oly_text_add(text, " is not waiting");
    } else {
        oly_text_add(text, " waits in %.*s", (int)sizeof p->wait - 1, p->wait);
        return waits_for;
    }
    add_last_call(text, p);
    return waits_for;
}

/* Of one rank; returns the rank that it waits for. */
static int describe(oly_text *text, int rank)
{
    if (oly_peers_see(rank))
        return oly_peers_describe_seen(text, rank);
    if (!peers.memory || peers.here != peers.size)
        return oly_inquiry_describe(text, rank);
    oly_text_add(text, "rank %d has not called oly_init", rank);
    return OLY_WAITS_FOR_NOBODY;
}

static bool waits(int rank)
{
    const oly_progress *p = find(rank);
    return p ? atomic_load(&p->waits_for) != OLY_WAITS_FOR_NOBODY : oly_inquiry_waits(rank);
}

int oly_peers_culprit(const oly_late *late)
{
    for (int k = 0; k < late->n && k < OLY_LATE_NAMED; k++)
        if (!waits(late->rank[k]))
            return late->rank[k];
    return late->n > 0 ? late->rank[0] : OLY_WAITS_FOR_SEVERAL;
}

void oly_peers_describe(oly_text *text, const oly_late *late)
{
    int seen[MOST_LINKS], n = 0, rank = oly_peers_culprit(late);
    while (rank >= 0 && n < MOST_LINKS && rank != atomic_load(&oly_progress_here->rank)) {
        for (int k = 0; k < n; k++)
            if (seen[k] == rank)
                return;
        seen[n++] = rank;
        oly_text_add(text, "; ");
        rank = describe(text, rank);
    }
}
