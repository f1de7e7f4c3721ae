/* SPDX-License-Identifier: BSD-3-Clause */
/* Where processes meet: by arguments, options or Kubernetes. See meeting.h. */
#define _GNU_SOURCE /* strcasestr */
#include "meeting.h"
#include "core/error.h"
#include "core/option.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT = 10000, HOSTS_BYTES = 16384 };

/* -- Kubernetes --------------------------------------------------------------------------------------------------------
 * The pods of an indexed Job have names that end in their index, which is also in JOB_COMPLETION_INDEX; those of a JobSet are
 * such Jobs. With a headless service the kubelet writes the pod's whole name into /etc/hosts, and the other pods' differ from it
 * in the index alone. */

/* The whole name that a line of /etc/hosts gives for `host`: "10.0.0.7 jobs-0.svc.ns.svc.cluster.local jobs-0". */
static void whole_name(const char *host, const char *hosts, char *name, size_t size)
{
    size_t n = strlen(host);
    snprintf(name, size, "%s", host);
    for (const char *at = hosts; (at = strstr(at, host)); at += n) {
        bool begins = at > hosts && isspace((unsigned char)at[-1]);
        if (!begins || at[n] != '.')
            continue;
        size_t length = strcspn(at, " \t\r\n");
        if (length < size)
            snprintf(name, size, "%.*s", (int)length, at);
        return;
    }
}

bool oly_meeting_first_pod(const char *host, const char *index, const char *hosts, char *first, size_t size)
{
    char name[400];
    size_t n = strlen(host), digits = strlen(index);
    if (digits == 0 || n < digits + 2 || n >= 256 || strcmp(host + n - digits, index) != 0 ||
        host[n - digits - 1] != '-')
        return false;
    whole_name(host, hosts, name, sizeof name);
    int length = snprintf(first, size, "%.*s0%s:%d", (int)(n - digits), host, name + n, PORT);
    return length > 0 && (size_t)length < size;
}

static bool read_hosts(char *text, size_t size)
{
    FILE *file = fopen("/etc/hosts", "re");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    text[n] = 0;
    if (file)
        fclose(file);
    return n > 0;
}

static bool find_first_pod(char *coordinator, size_t size)
{
    char host[256] = "";
    const char *index = getenv("JOB_COMPLETION_INDEX");
    char *hosts = malloc(HOSTS_BYTES);
    bool found = false;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    if (hosts && index) {
        read_hosts(hosts, HOSTS_BYTES);
        found = oly_meeting_first_pod(host, index, hosts, coordinator, size);
    }
    free(hosts);
    return found;
}

static int completion_index(void)
{
    const char *text = getenv("JOB_COMPLETION_INDEX");
    char *end;
    long index = text && isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
    return index >= 0 && *end == 0 && index < OLY_WIRE_MOST_PROCESSES ? (int)index : -1;
}

/* -- the place ---------------------------------------------------------------------------------------------------------- */

/* Kubernetes does not tell pods how many there are. */
static const char in_kubernetes[] =
    ", the completions of this Kubernetes job: add {name: OLYMPUS_NUM_PROCESSES, value: \"4\"} to the container's env, "
    "or, in a JobSet whose jobs have one pod each, fieldRefs of the labels "
    "jobset.sigs.k8s.io/replicatedjob-replicas, and job-index for OLYMPUS_PROCESS_ID";

static oly_status check(const oly_place *p, int index)
{
    char host[512], port[6];
    const char *missing = !p->coordinator[0] ? "the coordinator's address (OLYMPUS_COORDINATOR=HOST:PORT, of process 0)"
                          : p->processes < 0 ? "the number of processes (OLYMPUS_NUM_PROCESSES)"
                          : p->process < 0   ? "the number of this process (OLYMPUS_PROCESS_ID, from 0)"
                                             : NULL;
    if (missing)
        return oly_fail(
            OLY_INVALID,
            "processes that no launcher has started meet by an address, their number and their ids; missing is %s%s",
            missing, index >= 0 && p->coordinator[0] && p->processes < 0 ? in_kubernetes : "");
    if (p->processes < 1 || p->processes > OLY_WIRE_MOST_PROCESSES)
        return oly_fail(OLY_INVALID, "%d processes: a job has 1 to %d", p->processes, OLY_WIRE_MOST_PROCESSES);
    if (p->process < 0 || p->process >= p->processes)
        return oly_fail(OLY_INVALID, "process id %d of %d processes: ids are 0 to %d", p->process, p->processes,
                        p->processes - 1);
    if (!oly_read_address(p->coordinator, host, sizeof host, port))
        return oly_fail(OLY_INVALID, "the coordinator's address \"%s\" is not HOST:PORT", p->coordinator);
    return OLY_OK;
}

oly_status oly_meeting_find(const oly_distributed *asked, const oly_launch *launch, oly_place *place)
{
    const char *address = asked->coordinator ? asked->coordinator : oly_option.coordinator;
    int index = completion_index();
    *place = (oly_place){.processes = asked->processes >= 0 ? asked->processes
                                      : asked->processes == -1 && oly_option.num_processes > 0
                                          ? (int)oly_option.num_processes
                                          : asked->processes,
                         .process = asked->process != -1 ? asked->process : (int)oly_option.process_id};
    if (strlen(address) >= sizeof place->coordinator)
        return oly_fail(OLY_INVALID, "the coordinator's address has %zu characters; at most %zu are allowed",
                        strlen(address), sizeof place->coordinator - 1);
    snprintf(place->coordinator, sizeof place->coordinator, "%s", address);
    bool any = address[0] || place->processes != -1 || place->process != -1 || (asked->asked && index >= 0);
    bool launched = launch->launcher && strcmp(launch->launcher, "srun") != 0; /* by srun without PMI: they may meet */
    if (!any || launched)
        return OLY_OK;
    if (place->process == -1)
        place->process = index;
    if (!address[0] && index >= 0)
        find_first_pod(place->coordinator, sizeof place->coordinator);
    OLY_TRY(check(place, index));
    place->wanted = place->processes > 1;
    return OLY_OK;
}
