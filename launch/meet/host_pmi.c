/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1, the lines by which MPICH and its relatives ask their launcher, for the process of this olymeet: pairs and barriers go to the
 * coordinator, the rest is answered here. See plan.h. */
#define _GNU_SOURCE
#include "pairs.h"
#include "plan.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE = 8192 };

static struct {
    const plan *plan;
    int socket;
    char line[LINE];
    size_t n;
} pmi = {.socket = -1};

void pmi_start(const plan *p, int socket)
{
    pmi.plan = p;
    pmi.socket = socket;
}

static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (n > 0 && (size_t)n < sizeof line && send(pmi.socket, line, (size_t)n, MSG_NOSIGNAL) < 0)
        shutdown(pmi.socket, SHUT_RDWR);
}

/* The value of "name=value" in a line, up to a space; "" if there is none. */
static void value_of(const char *line, const char *name, char *value, size_t size)
{
    size_t n = strlen(name);
    const char *at = line;
    while (at && !(strncmp(at, name, n) == 0 && at[n] == '='))
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    size_t length = at ? strcspn(at + n + 1, " \n") : 0;
    snprintf(value, size, "%.*s", (int)(length < size ? length : size - 1), at ? at + n + 1 : "");
}

/* "(vector,(0,1,2),(1,1,2))": runs of consecutive processes of a node. Cut where it is too long: MPICH then asks hosts' names. */
static bool mapping(char *text, size_t size)
{
    const plan *p = pmi.plan;
    size_t n = (size_t)snprintf(text, size, "(vector");
    for (int k = 0, end; k < p->n && n < size; k = end) {
        for (end = k + 1; end < p->n && p->node[end] == p->node[k];)
            end++;
        n += (size_t)snprintf(text + n, size - n, ",(%d,1,%d)", p->node[k], end - k);
    }
    if (n < size)
        n += (size_t)snprintf(text + n, size - n, ")");
    return n < size;
}

static bool ask_pair(const char *key, const char *value, oly_wire *w)
{
    size_t place = oly_wire_begin(w, value ? OLY_WIRE_PUT : OLY_WIRE_GET);
    oly_wire_text(w, key);
    if (value)
        oly_wire_text(w, value);
    oly_wire_end(w, place);
    return true;
}

static bool get(const char *line, oly_wire *w)
{
    char key[PAIR_TEXT], map[1024];
    value_of(line, "key", key, sizeof key);
    if (strcmp(key, "PMI_process_mapping") != 0)
        return ask_pair(key, NULL, w);
    if (mapping(map, sizeof map))
        say("cmd=get_result rc=0 msg=success value=%s\n", map);
    else
        say("cmd=get_result rc=-1 msg=too_long value=unknown\n");
    return false;
}

static bool put(const char *line, oly_wire *w)
{
    char key[PAIR_TEXT], value[PAIR_TEXT];
    value_of(line, "key", key, sizeof key);
    value_of(line, "value", value, sizeof value);
    say("cmd=put_result rc=0 msg=success\n");
    return ask_pair(key, value, w);
}

static bool tell(oly_wire_kind kind, const char *text, oly_wire *w)
{
    size_t place = oly_wire_begin(w, kind);
    if (kind == OLY_WIRE_ABORT) {
        oly_wire_text(w, text);
        oly_wire_u32(w, (uint32_t)pmi.plan->me);
    }
    oly_wire_end(w, place);
    return true;
}

/* Answers a line; true: a message for the coordinator. */
static bool serve(const char *line, oly_wire *w)
{
    char command[64], code[32], text[100];
    value_of(line, "cmd", command, sizeof command);
    if (strcmp(command, "init") == 0)
        say("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    else if (strcmp(command, "get_maxes") == 0)
        say("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
    else if (strcmp(command, "get_appnum") == 0)
        say("cmd=appnum appnum=0 rc=0\n");
    else if (strcmp(command, "get_my_kvsname") == 0)
        say("cmd=my_kvsname kvsname=%s rc=0\n", pmi.plan->job);
    else if (strcmp(command, "get_universe_size") == 0)
        say("cmd=universe_size size=%d rc=0\n", pmi.plan->n);
    else if (strcmp(command, "finalize") == 0)
        say("cmd=finalize_ack rc=0\n");
    else if (strcmp(command, "barrier_in") == 0)
        return tell(OLY_WIRE_BARRIER, "", w);
    else if (strcmp(command, "put") == 0)
        return put(line, w);
    else if (strcmp(command, "get") == 0)
        return get(line, w);
    else if (strcmp(command, "abort") == 0) {
        value_of(line, "exitcode", code, sizeof code);
        snprintf(text, sizeof text, "called MPI_Abort with status %s", code);
        return tell(OLY_WIRE_ABORT, text, w);
    } else
        say("cmd=%s_result rc=-1 msg=not_supported\n", command);
    return false;
}

bool pmi_move(oly_wire *message)
{
    for (;;) {
        char *end = memchr(pmi.line, '\n', pmi.n);
        if (end) {
            char line[LINE];
            size_t n = (size_t)(end - pmi.line) + 1;
            memcpy(line, pmi.line, n - 1);
            line[n - 1] = 0;
            pmi.n -= n;
            memmove(pmi.line, end + 1, pmi.n);
            if (serve(line, message))
                return true;
            continue;
        }
        ssize_t n =
            pmi.n < sizeof pmi.line ? recv(pmi.socket, pmi.line + pmi.n, sizeof pmi.line - pmi.n, MSG_DONTWAIT) : 0;
        if (n <= 0) {
            if (n == 0 || (errno != EAGAIN && errno != EINTR))
                shutdown(pmi.socket, SHUT_RDWR);
            return false;
        }
        pmi.n += (size_t)n;
    }
}

void pmi_hear(oly_wire_kind kind, oly_read *fields)
{
    char value[PAIR_TEXT];
    if (kind == OLY_WIRE_BARRIER) {
        say("cmd=barrier_out rc=0\n");
        return;
    }
    bool found = oly_read_u8(fields);
    oly_read_text(fields, value, sizeof value);
    if (found && oly_read_done(fields))
        say("cmd=get_result rc=0 msg=success value=%s\n", value);
    else
        say("cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}
