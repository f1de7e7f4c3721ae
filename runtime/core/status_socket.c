/* SPDX-License-Identifier: BSD-3-Clause */
/* See status_socket.h. */
#define _GNU_SOURCE /* accept4, struct ucred */
#include "core/status_socket.h"
#include "core/option.h"
#include "core/recorder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_TOLD = 50, BACKLOG = 16, REQUEST_MS = 2000, SWEPT = 64 };

static struct {
    bool running;
    int listening, ending[2]; /* a pipe: a byte ends the thread */
    pthread_t thread;
    char folder[sizeof(((struct sockaddr_un *)0)->sun_path)], path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct sockaddr_un address; /* until it listens: then the socket gets its name */
} own = {.listening = -1, .ending = {-1, -1}};

/* -- places ----------------------------------------------------------------------------------------------------------- */

bool oly_status_folder(char *path, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat s;
    bool usable = runtime && runtime[0] == '/' && strlen(runtime) < 40 && stat(runtime, &s) == 0 &&
                  S_ISDIR(s.st_mode) && s.st_uid == geteuid() && access(runtime, W_OK | X_OK) == 0;
    int n = snprintf(path, size, "%s/olympus-%lu", usable ? runtime : "/tmp", (unsigned long)geteuid());
    return n > 0 && (size_t)n < size;
}

/* A folder of this user's that nobody else may enter: in /tmp others might have made one of that name. */
static bool private_folder(const char *path, bool *made)
{
    struct stat s;
    *made = mkdir(path, S_IRWXU) == 0;
    if (!*made && errno != EEXIST)
        return false;
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 077) == 0;
}

/* Does nobody listen any more? */
static bool is_stale(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    bool refused = s >= 0 && connect(s, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    if (s >= 0)
        close(s);
    return refused;
}

/* A name that begins with a dot is of a socket that is being made; long afterwards its maker was killed. */
static bool is_being_made(const char *name, const char *path)
{
    struct stat s;
    return name[0] == '.' && (stat(path, &s) != 0 || time(NULL) - s.st_mtime < 60);
}

/* Removes the sockets of processes that were killed, and their folder when it is empty. */
static void sweep_job(const char *folder)
{
    DIR *listing = opendir(folder);
    char path[sizeof own.address.sun_path];
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        bool up = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!up && n > 0 && (size_t)n < sizeof path && !is_being_made(entry->d_name, path) && is_stale(path))
            unlink(path);
    }
    if (listing)
        closedir(listing);
    rmdir(folder);
}

static void sweep(const char *folder)
{
    DIR *listing = opendir(folder);
    char path[sizeof own.folder];
    int swept = 0;
    for (struct dirent *entry; listing && swept < SWEPT && (entry = readdir(listing));) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof path || strcmp(path, own.folder) == 0)
            continue;
        sweep_job(path);
        swept++;
    }
    if (listing)
        closedir(listing);
}

/* -- answering -------------------------------------------------------------------------------------------------------- */

static bool may_ask(int connection)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

/* One line, without its end; false: none came in time, or too long a one. */
static bool read_request(int connection, char *line, size_t size)
{
    for (size_t n = 0; n + 1 < size;) {
        struct pollfd p = {.fd = connection, .events = POLLIN};
        if (poll(&p, 1, REQUEST_MS) <= 0)
            return false;
        ssize_t got = recv(connection, line + n, size - 1 - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
        line[n] = 0;
        char *end = strchr(line, '\n');
        if (end) {
            *end = 0;
            return true;
        }
    }
    return false;
}

static void answer(int connection)
{
    char request[64] = "";
    oly_raw raw;
    struct timeval limit = {.tv_sec = 2};
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    oly_raw_begin(&raw, connection, true);
    bool asked = read_request(connection, request, sizeof request); /* what is not read would end the connection */
    if (!may_ask(connection)) {
        oly_raw_text(&raw, "refused\tthis process answers its own user only\n");
    } else if (!asked) {
        return;
    } else if (strcmp(request, "status") == 0) {
        oly_recorder_write(&raw, "status", "", EVENTS_TOLD);
    } else if (strcmp(request, "dump") == 0) {
        bool written = oly_recorder_dump(OLY_RECORDER_ASKED, "oly status --dump");
        oly_recorder_write(&raw, "status", written ? oly_recorder_file() : "", EVENTS_TOLD);
    } else {
        oly_raw_text(&raw, "refused\tunknown request; there are status and dump\n");
    }
    oly_raw_flush(&raw);
}

static void *serve(void *unused)
{
    struct pollfd p[2] = {{.fd = own.listening, .events = POLLIN}, {.fd = own.ending[0], .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return unused;
        if (p[1].revents)
            return unused;
        int connection = p[0].revents ? accept4(own.listening, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (connection < 0)
            continue;
        answer(connection);
        close(connection);
    }
}

/* -- begin and end ---------------------------------------------------------------------------------------------------- */

static bool make_address(void)
{
    char base[sizeof own.folder];
    bool made;
    if (!oly_status_folder(base, sizeof base) || !private_folder(base, &made))
        return false;
    int n = snprintf(own.folder, sizeof own.folder, "%s/%s", base, oly_recorder_job());
    if (n < 0 || (size_t)n >= sizeof own.folder || !private_folder(own.folder, &made))
        return false;
    if (made) /* by one rank of the node */
        sweep(base);
    n = snprintf(own.path, sizeof own.path, "%s/%d", own.folder, oly_recorder_rank());
    if (n < 0 || (size_t)n >= sizeof own.path)
        return false;
    own.address.sun_family = AF_UNIX;
    n = snprintf(own.address.sun_path, sizeof own.address.sun_path, "%s/.%d", own.folder, oly_recorder_rank());
    return n > 0 && (size_t)n < sizeof own.address.sun_path;
}

/* Takes the name of a socket that a killed process has left. */
static bool listen_there(void)
{
    own.listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (own.listening < 0)
        return false;
    unlink(own.address.sun_path);
    fchmod(own.listening, S_IRUSR | S_IWUSR); /* Linux gives the file of a bound socket this mode */
    bool good = bind(own.listening, (struct sockaddr *)&own.address, sizeof own.address) == 0 &&
                chmod(own.address.sun_path, S_IRUSR | S_IWUSR) == 0 && listen(own.listening, BACKLOG) == 0 &&
                rename(own.address.sun_path, own.path) == 0;
    if (!good) {
        close(own.listening);
        own.listening = -1;
    }
    return good;
}

static bool start_thread(void)
{
    sigset_t every, before;
    if (pipe2(own.ending, O_CLOEXEC) != 0)
        return false;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* signals go to the program's threads */
    bool started = pthread_create(&own.thread, NULL, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void close_all(void)
{
    int *const all[] = {&own.listening, &own.ending[0], &own.ending[1]};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if (*all[k] >= 0)
            close(*all[k]);
        *all[k] = -1;
    }
}

void oly_status_socket_begin(void)
{
    if (own.running)
        oly_status_socket_end();
    if (!oly_option.status || oly_recorder_rank() < 0)
        return;
    bool listens = false;
    for (int tries = 0; tries < 20 && !listens;
         tries++) /* another rank that ends or begins may have removed the folder */
        listens = make_address() && listen_there();
    own.running = listens && start_thread();
    if (!own.running)
        close_all();
}

void oly_status_socket_end(void)
{
    if (!own.running)
        return;
    own.running = false;
    if (write(own.ending[1], "", 1) == 1)
        pthread_join(own.thread, NULL);
    unlink(own.path);
    rmdir(own.folder);
    close_all();
}

void oly_status_socket_unlink(void)
{
    if (!own.running)
        return;
    unlink(own.path);
    rmdir(own.folder);
}

void oly_status_socket_forget(void)
{
    own.running = false;
    close_all();
}
