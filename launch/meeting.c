/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's side of a meeting: starts the program olymeet, which does everything with the network, and gets from it the
 * environment in which MPI_Init finds the others. See meeting.h. */
#include "meeting.h"
#include "core/build.h"
#include "core/error.h"
#include "core/option.h"
#include "own_program.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_SOCKET = 3, CHILD_PMI = 4, LEAVE_SECONDS = 5, SPARE_SECONDS = 30 };

static struct {
    int socket;           /* to olymeet; -1: no meeting */
    pid_t pid;            /* of the process that met: a forked child did not */
    unsigned char *bytes; /* owned; received so far */
    size_t n;
} meeting = {.socket = -1};

static int64_t milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -- starting it ------------------------------------------------------------------------------------------------------ */

/* In a child: becomes olymeet, which is nobody's child, so that the program may wait for its own. */
static void __attribute__((noreturn)) become_olymeet(char *path, int socket, int pmi)
{
    char *arguments[] = {path, "meet", NULL};
    sigset_t none;
    setsid();
    if (fork() != 0)
        _exit(0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(socket, CHILD_SOCKET) == CHILD_SOCKET && (pmi < 0 || dup2(pmi, CHILD_PMI) == CHILD_PMI))
        execv(path, arguments);
    _exit(127);
}

/* A pair of sockets whose ends are above those that olymeet has. */
static bool make_pair(int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    for (int k = 0; k < 2; k++) {
        int higher = fcntl(pair[k], F_DUPFD_CLOEXEC, 10);
        if (higher >= 0) {
            close(pair[k]);
            pair[k] = higher;
        }
    }
    return true;
}

static oly_status start_olymeet(bool with_pmi, int *pmi)
{
    char path[OLY_PROGRAM_PATH_BYTES];
    int pair[2], pmi_pair[2] = {-1, -1};
    if (!oly_find_own_program("olymeet", "launch", path))
        return oly_fail(
            OLY_STATE,
            "the program olymeet, by which processes meet, is neither beside the library nor beside an olyrun in "
            "PATH; add the bin folder of Olympus to PATH");
    if (!make_pair(pair) || (with_pmi && !make_pair(pmi_pair)))
        return oly_fail(OLY_IO, "no sockets: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become_olymeet(path, pair[1], pmi_pair[1]);
    close(pair[1]);
    if (pmi_pair[1] >= 0)
        close(pmi_pair[1]);
    if (child < 0)
        return oly_fail(OLY_IO, "olymeet cannot be started: %s", strerror(errno));
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    meeting.socket = pair[0];
    meeting.pid = getpid();
    *pmi = pmi_pair[0];
    return OLY_OK;
}

/* -- the request -------------------------------------------------------------------------------------------------------- */

static void add_link(char *text, size_t size, const char *path)
{
    char target[128];
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    snprintf(text + strlen(text), size - strlen(text), " %s", target);
}

/* Equal for processes that can use each other's memory: one machine, user, and set of namespaces. */
static void describe_node(oly_card *card)
{
    char boot[64] = "";
    struct stat s = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && fgets(boot, sizeof boot, file))
        boot[strcspn(boot, "\n")] = 0;
    if (file)
        fclose(file);
    gethostname(card->host, sizeof card->host - 1);
    if (!card->host[0])
        snprintf(card->host, sizeof card->host, "unnamed");
    stat("/dev/shm", &s);
    snprintf(card->node, sizeof card->node, "%.200s %s %u %lx", card->host, boot, (unsigned)geteuid(),
             (unsigned long)s.st_dev);
    add_link(card->node, sizeof card->node, "/proc/self/ns/ipc");
    add_link(card->node, sizeof card->node, "/proc/self/ns/net");
    add_link(card->node, sizeof card->node, "/proc/self/ns/pid");
}

static bool send_all(const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(meeting.socket, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return false;
        at += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool send_request(const oly_place *place, oly_mpi_kind mpi)
{
    oly_build build = oly_build_get();
    char library[512];
    oly_request *r = calloc(1, sizeof *r);
    oly_wire w = {0};
    if (!r)
        return false;
    r->card = (oly_card){.version = OLY_VERSION_MAJOR * 1000 + OLY_VERSION_MINOR,
                         .processes = place->processes,
                         .process = place->process,
                         .pid = (uint32_t)getpid(),
                         .mpi = (uint8_t)mpi,
                         .mixed = oly_option.mixed_programs != 0,
                         .program = build.program,
                         .library = build.library};
    oly_build_paths(r->card.path, library, sizeof library);
    describe_node(&r->card);
    snprintf(r->coordinator, sizeof r->coordinator, "%s", place->coordinator);
    snprintf(r->bind, sizeof r->bind, "%.255s", oly_option.bind);
    r->timeout = (uint32_t)oly_option.start_timeout;
    size_t begin = oly_wire_begin(&w, OLY_WIRE_START);
    oly_wire_request(&w, r);
    oly_wire_end(&w, begin);
    bool sent = !w.failed && send_all(w.bytes, w.n);
    oly_wire_free(&w);
    free(r);
    return sent;
}

/* -- the answer ---------------------------------------------------------------------------------------------------------- */

/* Receives what there is within some milliseconds. False: the other side is gone. */
static bool receive(int wait)
{
    enum { CHUNK = 8192 };
    struct pollfd fd = {meeting.socket, POLLIN, 0};
    if (poll(&fd, 1, wait) <= 0)
        return true;
    unsigned char *larger = realloc(meeting.bytes, meeting.n + CHUNK);
    if (!larger)
        return false;
    meeting.bytes = larger;
    ssize_t n = recv(meeting.socket, larger + meeting.n, CHUNK, 0);
    if (n > 0)
        meeting.n += (size_t)n;
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Only variables that MPI reads, whatever may be sent. */
static bool is_for_mpi(const char *variable)
{
    static const char *const begin[] = {"PMIX_", "PMI_", "MPI_LOCAL", "OMPI_", "JSM_JSRUN_PORT="};
    for (size_t k = 0; k < sizeof begin / sizeof *begin; k++)
        if (strncmp(variable, begin[k], strlen(begin[k])) == 0)
            return true;
    return false;
}

static oly_status become_rank(oly_read *r, const oly_place *place, oly_launch *launch)
{
    static char text[OLY_WIRE_MOST_TEXT];
    uint32_t rank = oly_read_u32(r), node_rank = oly_read_u32(r), node_ranks = oly_read_u32(r), n = oly_read_u32(r);
    for (uint32_t k = 0; k < n && !r->bad; k++) {
        oly_read_text(r, text, sizeof text);
        char *equals = strchr(text, '=');
        if (!equals || !is_for_mpi(text))
            continue;
        *equals = 0;
        setenv(text, equals + 1, 1);
    }
    if (!oly_read_done(r) || rank != (uint32_t)place->process || node_rank >= node_ranks)
        return oly_fail(OLY_STATE, "olymeet has sent a malformed answer; is it of this version of Olympus?");
    *launch = (oly_launch){"meeting", (int)rank, place->processes, (int)node_rank, (int)node_ranks};
    return OLY_OK;
}

static oly_status status_of(const char *text)
{
    if (strstr(text, " waited ") || strstr(text, "does not answer"))
        return OLY_TIMEOUT;
    return strstr(text, "all must use one") || strstr(text, "all processes must run") ? OLY_DIVERGED : OLY_STATE;
}

static oly_status read_answer(oly_wire_kind kind, oly_read *fields, const oly_place *place, oly_launch *launch)
{
    char text[2048];
    if (kind == OLY_WIRE_READY)
        return become_rank(fields, place, launch);
    oly_read_text(fields, text, sizeof text);
    return oly_fail(status_of(text), "%s", text);
}

static oly_status await_answer(const oly_place *place, oly_launch *launch)
{
    int64_t began = milliseconds(), notice = oly_option.wait_notice * 1000;
    oly_wire_kind kind;
    for (;;) {
        bool alive = receive(100);
        long n = meeting.n ? oly_wire_first(meeting.bytes, meeting.n, OLY_WIRE_MOST, &kind) : 0;
        int64_t waited = milliseconds() - began;
        if (n > 0) {
            oly_read fields = oly_read_of(meeting.bytes + OLY_WIRE_HEAD, (size_t)n - OLY_WIRE_HEAD);
            oly_status status = read_answer(kind, &fields, place, launch);
            meeting.n = 0;
            return status;
        }
        if (!alive || n < 0)
            return oly_fail(OLY_STATE, "olymeet has ended without an answer");
        if (waited > (oly_option.start_timeout + SPARE_SECONDS) * 1000)
            return oly_fail(OLY_TIMEOUT, "olymeet has not answered for %lld s", (long long)waited / 1000);
        if (waited > notice) {
            fprintf(stderr, "olympus: process %d waits for the others at %s\n", place->process, place->coordinator);
            notice *= 6;
        }
    }
}

oly_status oly_meeting_hold(const oly_place *place, oly_mpi_kind mpi, oly_launch *launch)
{
    int pmi = -1;
    char number[16];
    if (mpi == OLY_MPI_OTHER)
        return oly_fail(
            OLY_STATE,
            "processes can meet by hand with Open MPI and MPICH, not with this MPI; start them with its launcher");
    OLY_TRY(start_olymeet(mpi == OLY_MPI_MPICH, &pmi));
    oly_status status =
        send_request(place, mpi) ? await_answer(place, launch) : oly_fail(OLY_STATE, "olymeet does not start");
    if (status == OLY_OK && pmi >= 0) {
        snprintf(number, sizeof number, "%d", pmi);
        setenv("PMI_FD", number, 1);
    }
    if (status != OLY_OK) {
        close(meeting.socket);
        meeting.socket = -1;
    }
    return status;
}

void oly_meeting_leave(void)
{
    oly_wire w = {0};
    oly_wire_kind kind = OLY_WIRE_START;
    if (meeting.socket < 0 || meeting.pid != getpid())
        return;
    oly_wire_end(&w, oly_wire_begin(&w, OLY_WIRE_BYE));
    bool alive = !w.failed && send_all(w.bytes, w.n);
    oly_wire_free(&w);
    int64_t until = milliseconds() + LEAVE_SECONDS * 1000;
    while (alive && milliseconds() < until &&
           !(meeting.n && oly_wire_first(meeting.bytes, meeting.n, OLY_WIRE_MOST, &kind) > 0))
        alive = receive(100);
    close(meeting.socket);
    free(meeting.bytes);
    meeting.bytes = NULL;
    meeting.n = 0;
    meeting.socket = -1;
}
