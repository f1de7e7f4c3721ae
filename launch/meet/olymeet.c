/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets processes that were started by hand become the ranks of an MPI job. Every such process starts one olymeet (meeting.c), which is
 * its connection to the others while it lives:
 *
 *     process 1 ── olymeet ─┐
 *     process 0 ── olymeet ─┤ coordinator          the coordinator is the olymeet of process 0; the olymeet of the first process
 *     process 2 ── olymeet ─┘                      of each node serves MPI's start there (host_pmix.c; MPICH: host_pmi.c in each)
 *
 * It is started with a socket to its process as descriptor 3 and, for MPICH, the socket of PMI-1 as descriptor 4. One thread that polls;
 * it ends with its process, the coordinator's and a node's with the last one that needs it. If another process of the job ends
 * early, it ends its own: SIGTERM, and SIGKILL two seconds later. */
#define _GNU_SOURCE
#include "channel.h"
#include "coordinator.h"
#include "plan.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PROCESS = 3, PMI = 4, REFUSALS = 3 };
static const double BIND_SECONDS = 4, KILL_SECONDS = 2, VERDICT_SECONDS = 10, NEXT_MEETING_SECONDS = 3;

static struct {
    oly_request request;
    char host[512], port[6];
    channel process, coordinator;
    int pidfd;
    bool coordinates, joined, planned, hosts, pmi, bye, released, failed, killed;
    int refusals;
    double began, deadline, next_try, kill_at;
    char why[300]; /* the last connection failed */
    char verdict
        [2048]; /* of a meeting that had failed before this process came, perhaps an earlier job's at the same address */
    double verdict_at;
    plan plan;
} me = {.pidfd = -1};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- the process ------------------------------------------------------------------------------------------------------ */

static void __attribute__((format(printf, 1, 2))) fail(const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_FAILED);
    oly_wire_text(&w, text);
    oly_wire_end(&w, place);
    channel_send(&me.process, &w);
    me.failed = true;
}

static void signal_process(int number)
{
    if (me.process.stage == CLOSED)
        return;
    if (me.pidfd < 0 || syscall(SYS_pidfd_send_signal, me.pidfd, number, NULL, 0) != 0)
        kill((pid_t)me.request.card.pid, number);
}

static void end_process(const char *text, double time)
{
    if (me.killed)
        return;
    me.killed = true;
    me.kill_at = time + KILL_SECONDS;
    if (text[0])
        dprintf(STDERR_FILENO, "olympus: %s\n", text);
    signal_process(SIGCONT);
    signal_process(SIGTERM);
}

/* -- addresses ------------------------------------------------------------------------------------------------------- */

static struct addrinfo *resolve(const char *host, const char *port, const char **why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int status = getaddrinfo(host, port, &hints, &found);
    *why = status == EAI_SYSTEM ? strerror(errno) : status ? gai_strerror(status) : "";
    return status ? NULL : found;
}

static bool is_loopback(const struct addrinfo *a)
{
    if (a->ai_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)a->ai_addr)->sin_addr.s_addr) >> 24) == 127;
    return a->ai_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a->ai_addr)->sin6_addr);
}

/* Whether a host's name stands for this machine alone. */
static bool stays_here(const char *host)
{
    const char *why;
    struct addrinfo *list = resolve(host, NULL, &why);
    bool here = list != NULL;
    for (struct addrinfo *a = list; a; a = a->ai_next)
        here = here && is_loopback(a);
    if (list)
        freeaddrinfo(list);
    return here;
}

static int listen_at(const struct addrinfo *a)
{
    int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s < 0)
        return -1;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, 1024) == 0)
        return s;
    int error = errno;
    close(s);
    errno = error;
    return -1;
}

/* How long process 0 waits for an address in use, where an earlier job may be ending: time to ask who is there remains. */
static double patience(void)
{
    double all = me.request.timeout, some = all > 2 ? all - 1 : all / 2;
    return some < BIND_SECONDS ? some : BIND_SECONDS;
}

/* Of process 0. False: it cannot coordinate; the process has been told, unless the address is in use: then another process 0 may be
 * there, who names the two. */
static bool coordinate(void)
{
    char host[512], port[6];
    const char *address = me.request.bind[0] ? me.request.bind : me.request.coordinator, *why;
    if (!oly_read_address(address, host, sizeof host, port)) {
        fail("\"%s\" is no address HOST:PORT", address);
        return false;
    }
    if (me.request.bind[0] && !strchr(me.request.bind, ':'))
        snprintf(port, sizeof port, "%s", me.port);
    for (double until = now() + patience();;) {
        struct addrinfo *list = resolve(host, port, &why);
        int s = -1, error = 0;
        for (struct addrinfo *a = list; a && s < 0; a = a->ai_next) {
            s = listen_at(a);
            error = s < 0 ? errno : 0;
        }
        if (list)
            freeaddrinfo(list);
        if (s >= 0) {
            coordinator_start(s, &me.request, me.deadline);
            return true;
        }
        if (now() > until || (list && error != EADDRINUSE)) {
            if (error != EADDRINUSE)
                fail("process 0 cannot listen at %s: %s%s", address, list ? strerror(error) : why,
                     error == EADDRNOTAVAIL
                         ? "; the coordinator's address must be one of process 0's host, or OLYMPUS_BIND name one"
                         : "");
            return false;
        }
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
}

/* -- the connection to the coordinator ------------------------------------------------------------------------------ */

static void try_connecting(double time)
{
    const char *why;
    struct addrinfo *list = resolve(me.host, me.port, &why);
    me.next_try = time + (time - me.began < 2 ? 0.02 : 0.5);
    if (!list)
        snprintf(me.why, sizeof me.why, "%s", why);
    for (struct addrinfo *a = list; a; a = a->ai_next) {
        int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int status = s < 0 ? -1 : connect(s, a->ai_addr, a->ai_addrlen);
        if (status == 0 || (s >= 0 && errno == EINPROGRESS)) {
            channel_free(&me.coordinator);
            channel_open(&me.coordinator, s, false, status != 0);
            break;
        }
        snprintf(me.why, sizeof me.why, "%s", strerror(errno));
        if (s >= 0)
            close(s);
    }
    if (list)
        freeaddrinfo(list);
}

static void hand_in_card(void)
{
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_JOIN);
    oly_wire_card(&w, &me.request.card);
    oly_wire_end(&w, place);
    channel_send(&me.coordinator, &w);
    me.joined = true;
}

/* Has a coordinator sent its random number? */
static bool is_greeted(void)
{
    return memcmp(me.coordinator.theirs, (char[NONCE]){0}, NONCE) != 0;
}

/* Is this process 0, but another program listens at its address? */
static bool is_shut_out(void)
{
    return me.request.card.process == 0 && !me.coordinates;
}

/* The coordinator refuses this process, or the other way round. */
static void fail_refused(const char *why, bool proving)
{
    if (proving && is_shut_out())
        fail("process 0 cannot listen at %s: another job of Olympus does, with another secret; choose another port",
             me.request.coordinator);
    else
        fail("%s at %s: %s",
             proving ? "the coordinator refuses this process" : "this process does not trust what answers",
             me.request.coordinator,
             strcmp(why, "no coordinator of Olympus") == 0
                 ? "it is no coordinator of Olympus; is the port used by another program?"
                 : "OLYMPUS_SECRET, or the file that OLYMPUS_SECRET_FILE names, must be the same for all processes");
}

/* Before the process has joined: tries again while there is time, but not for ever against a coordinator that refuses. */
static void look_at_connection(double time)
{
    const char *why = me.coordinator.why;
    if (me.coordinator.stage == OPEN) {
        hand_in_card();
        return;
    }
    if (me.coordinator.stage == CLOSED && why) {
        bool proving = me.coordinator.in.n == 0 && is_greeted();
        snprintf(me.why, sizeof me.why, "%s", why);
        me.coordinator.why = NULL;
        if (strcmp(why, "no coordinator of Olympus") == 0 ||
            ((proving || strcmp(why, "another secret") == 0) && ++me.refusals == REFUSALS))
            fail_refused(why, proving);
        if (proving)
            me.next_try = time + 0.2;
    }
    if (me.failed)
        return;
    if (me.verdict[0] && (time > me.verdict_at + NEXT_MEETING_SECONDS || time > me.deadline))
        fail("%s", me.verdict);
    else if (time > me.deadline && is_shut_out())
        fail("process 0 cannot listen at %s: %s; choose another port", me.request.coordinator,
             is_greeted() ? "another job of Olympus does" : "another program does, which is no coordinator of Olympus");
    else if (time > me.deadline)
        fail("process %d waited %u s for process 0 at %s (%s); start it, or raise OLYMPUS_START_TIMEOUT",
             me.request.card.process, me.request.timeout, me.request.coordinator,
             me.why[0] ? me.why : "a program is there, and does not answer");
    else if (me.coordinator.stage == CLOSED && time >= me.next_try)
        try_connecting(time);
}

static void send_ready(const unsigned char *fields, size_t n)
{
    oly_wire w = {0};
    size_t place = oly_wire_begin(&w, OLY_WIRE_READY);
    for (size_t k = 0; k < n; k++)
        oly_wire_u8(&w, fields[k]);
    oly_wire_end(&w, place);
    channel_send(&me.process, &w);
}

static void add_number(oly_wire *w, const char *name, int value)
{
    char text[64];
    snprintf(text, sizeof text, "%s=%d", name, value);
    oly_wire_text(w, text);
}

static void start_pmi(void)
{
    oly_wire w = {0};
    int rank = me.request.card.process, node_rank = plan_node_rank(&me.plan, rank),
        node_ranks = plan_node_ranks(&me.plan, rank);
    me.pmi = true;
    pmi_start(&me.plan, PMI);
    oly_wire_u32(&w, (uint32_t)rank);
    oly_wire_u32(&w, (uint32_t)node_rank);
    oly_wire_u32(&w, (uint32_t)node_ranks);
    oly_wire_u32(&w, 5);
    add_number(&w, "PMI_RANK", rank);
    add_number(&w, "PMI_SIZE", me.plan.n);
    add_number(&w, "PMI_SPAWNED", 0);
    add_number(&w, "MPI_LOCALRANKID", node_rank);
    add_number(&w, "MPI_LOCALNRANKS", node_ranks);
    if (!w.failed)
        send_ready(w.bytes, w.n);
    oly_wire_free(&w);
}

static void start_job(oly_read *fields)
{
    char why[400];
    int rank = me.request.card.process;
    if (!plan_read(&me.plan, fields, rank)) {
        fail("the coordinator has sent a malformed plan");
        return;
    }
    me.planned = true;
    if (me.request.card.mpi == OLY_MPI_MPICH) {
        start_pmi();
        return;
    }
    if (plan_leader(&me.plan, me.plan.node[rank]) != rank)
        return;
    me.hosts = host_start(&me.plan, why, sizeof why);
    if (!me.hosts)
        fail("%s", why);
}

/* The coordinator of a failed meeting answers for two seconds more: the one of this process's job may be waiting for the address. */
static void wait_for_the_next(const char *verdict, double time)
{
    if (!me.verdict[0])
        me.verdict_at = time;
    snprintf(me.verdict, sizeof me.verdict, "%s", verdict);
    me.joined = false;
    me.next_try = time + 0.2;
}

static void hear_coordinator(oly_wire_kind kind, oly_read *fields, double time)
{
    char text[2048];
    switch (kind) {
    case OLY_WIRE_FAILED:
        oly_read_text(fields, text, sizeof text);
        if (oly_read_u8(fields))
            wait_for_the_next(text, time);
        else
            fail("%s", text);
        break;
    case OLY_WIRE_PLAN:
        if (!me.planned)
            start_job(fields);
        break;
    case OLY_WIRE_RANK: send_ready(fields->at, (size_t)(fields->end - fields->at)); break;
    case OLY_WIRE_FENCE:
    case OLY_WIRE_FETCH:
    case OLY_WIRE_FETCHED:
        if (me.hosts)
            host_hear(kind, fields);
        break;
    case OLY_WIRE_GET:
    case OLY_WIRE_BARRIER:
        if (me.pmi)
            pmi_hear(kind, fields);
        break;
    case OLY_WIRE_RELEASE: {
        oly_wire w = {0};
        oly_wire_end(&w, oly_wire_begin(&w, OLY_WIRE_RELEASE));
        channel_send(&me.process, &w);
        me.released = true;
        break;
    }
    case OLY_WIRE_END:
        oly_read_text(fields, text, sizeof text);
        end_process(oly_read_u8(fields) ? text : "", time);
        break;
    default: channel_close(&me.coordinator, "an unexpected message");
    }
}

/* -- the loop ----------------------------------------------------------------------------------------------------------- */

static void say_goodbye(void)
{
    oly_wire w = {0};
    oly_wire_end(&w, oly_wire_begin(&w, OLY_WIRE_BYE));
    channel_send(&me.coordinator, &w);
    me.bye = true;
}

/* `over`: the process has ended, even if a child of it holds its socket. */
static void move_process(short events, bool over)
{
    oly_wire_kind kind;
    oly_read fields;
    bool was_open = me.process.stage != CLOSED;
    channel_move(&me.process, events);
    while (channel_next(&me.process, &kind, &fields))
        if (kind == OLY_WIRE_BYE)
            say_goodbye();
    if (over)
        channel_close(&me.process, "its process has ended");
    if (was_open && me.process.stage == CLOSED) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(null, STDERR_FILENO); /* who reads it waits for the process, not for this program */
        close(null);
        if (!me.bye)
            channel_close(&me.coordinator, "the process has ended");
    }
}

static void move_coordinator(short events, double time)
{
    oly_wire_kind kind;
    oly_read fields;
    bool was_open = me.coordinator.stage != CLOSED;
    channel_move(&me.coordinator, events);
    if (!me.joined) {
        look_at_connection(time);
        return;
    }
    while (me.joined && channel_next(&me.coordinator, &kind, &fields))
        hear_coordinator(kind, &fields, time);
    if (!me.joined) {
        channel_free(&me.coordinator);
        me.coordinator.why = NULL;
        return;
    }
    if (was_open && me.coordinator.stage == CLOSED && !me.failed && !me.released && !me.killed &&
        me.process.stage != CLOSED) {
        char text[800];
        snprintf(text, sizeof text, "process %d has lost its connection to process 0 at %s (%s); it ends",
                 me.request.card.process, me.request.coordinator, me.coordinator.why ? me.coordinator.why : "");
        if (me.planned)
            end_process(text, time);
        else
            fail("%s", text);
    }
    if (!me.planned && !me.failed && time > me.deadline + VERDICT_SECONDS)
        fail("process 0 at %s does not answer", me.request.coordinator);
}

static void move_hosts(void)
{
    oly_wire w = {0};
    while (me.hosts && host_take(&w))
        channel_send(&me.coordinator, &w);
    w = (oly_wire){0};
    while (me.pmi && pmi_move(&w)) {
        channel_send(&me.coordinator, &w);
        w = (oly_wire){0};
    }
}

static bool is_over(double time)
{
    if (me.coordinates && !coordinator_is_over(time))
        return false;
    bool mine = me.process.stage == CLOSED || (me.failed && me.process.out.n == 0);
    return mine && (me.released || me.killed || me.failed || !me.bye || me.coordinator.stage == CLOSED);
}

static void run(void)
{
    struct pollfd *fds = NULL;
    size_t room = 0;
    for (double time = now(); !is_over(time); time = now()) {
        size_t n = 5, guests = me.coordinates ? coordinator_sockets() : 0;
        if (room < n + guests) {
            struct pollfd *larger = realloc(fds, (room = 2 * (n + guests)) * sizeof *fds);
            if (!larger)
                break;
            fds = larger;
        }
        fds[0] = (struct pollfd){me.process.stage == CLOSED ? -1 : PROCESS, channel_events(&me.process), 0};
        fds[1] = (struct pollfd){me.coordinator.stage == CLOSED ? -1 : me.coordinator.socket,
                                 channel_events(&me.coordinator), 0};
        fds[2] = (struct pollfd){me.hosts ? host_wake() : -1, POLLIN, 0};
        fds[3] = (struct pollfd){me.pmi && me.process.stage != CLOSED ? PMI : -1, POLLIN, 0};
        fds[4] = (struct pollfd){me.process.stage != CLOSED ? me.pidfd : -1, POLLIN, 0};
        if (me.coordinates)
            guests = coordinator_poll(fds + n, room - n);
        bool ticking = !me.planned || me.killed || me.failed || me.coordinates;
        poll(fds, n + guests, me.joined ? (ticking ? 100 : 1000) : 10);
        time = now();
        move_process(fds[0].revents, fds[4].revents != 0);
        move_coordinator(fds[1].revents, time);
        move_hosts();
        if (fds[3].revents & (POLLHUP | POLLERR))
            me.pmi = false;
        if (me.coordinates)
            coordinator_move(fds + n, guests, time);
        if (me.killed && time > me.kill_at)
            signal_process(SIGKILL);
    }
    free(fds);
}

/* -- starting ------------------------------------------------------------------------------------------------------------ */

static void leave_the_terminal(bool pmi)
{
    struct rlimit files;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        close(null);
    }
    syscall(SYS_close_range, pmi ? PMI + 1 : PMI, ~0u, 0);
    for (int k = 1; k < 32; k++)
        if (k == SIGINT || k == SIGHUP || k == SIGQUIT || k == SIGTERM || k == SIGPIPE || k == SIGUSR1 ||
            k == SIGUSR2 || k == SIGTSTP)
            signal(k, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static bool read_request(void)
{
    oly_wire_kind kind;
    oly_read fields;
    channel_open_local(&me.process, PROCESS);
    while (!channel_next(&me.process, &kind, &fields)) {
        struct pollfd fd = {PROCESS, POLLIN, 0};
        if (me.process.stage == CLOSED || poll(&fd, 1, 10000) <= 0)
            return false;
        channel_move(&me.process, fd.revents);
    }
    return kind == OLY_WIRE_START && oly_read_request(&fields, &me.request);
}

int main(int argc, char **argv)
{
    char why[600];
    if (argc != 2 || strcmp(argv[1], "meet") != 0) {
        fprintf(argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
                "olymeet: started by oly_distributed_initialize; processes that were started by hand meet through it "
                "(docs/start.md)\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    me.coordinator.stage = CLOSED;
    if (!read_request())
        return 2;
    leave_the_terminal(me.request.card.mpi == OLY_MPI_MPICH);
    me.pidfd = (int)syscall(SYS_pidfd_open, (pid_t)me.request.card.pid, 0);
    me.began = now();
    me.deadline = me.began + me.request.timeout;
    if (!oly_read_address(me.request.coordinator, me.host, sizeof me.host, me.port))
        fail("\"%s\" is no address HOST:PORT of a coordinator", me.request.coordinator);
    else if (!secret_read(stays_here(me.host) && (!me.request.bind[0] || stays_here(me.request.bind)), why, sizeof why))
        fail("%s", why);
    else if (me.request.card.process == 0)
        me.coordinates = coordinate();
    if (chdir("/") != 0)
        return 1;
    run();
    if (me.hosts)
        host_stop(!me.killed && me.coordinator.stage != CLOSED);
    return 0;
}
