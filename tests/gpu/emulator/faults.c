/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that fail on request. EMULATED_FAIL is a list of KIND:N, N counted from 1 in this process, with + for all calls from then on and
 * @RANK for one rank of the job only. Kinds: alloc (device memory), host (pinned memory), launch (a kernel fails when it runs),
 * launch_call, copy, stream, event, module, graph, sync, nvrtc, gemm, bias (an algorithm that has none), nccl, nccl_async, lost (any
 * call: the device is gone). */
#include "driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAULTS = 16 };

static struct {
    bool read;
    int n;
    struct {
        char kind[16];
        long at, seen;
        bool onwards;
    } fault[MOST_FAULTS];
} faults;

int emulated_process_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int k = 0; k < 4; k++)
        if (getenv(names[k]))
            return atoi(getenv(names[k]));
    return 0;
}

static void add(const char *text)
{
    char kind[16], *end;
    const char *colon = strchr(text, ':');
    if (!colon || colon - text >= (long)sizeof kind || faults.n == MOST_FAULTS)
        emulated_violation("EMULATED_FAIL: '%s' is not KIND:NUMBER", text);
    snprintf(kind, sizeof kind, "%.*s", (int)(colon - text), text);
    long at = strtol(colon + 1, &end, 10);
    bool onwards = *end == '+';
    end += onwards;
    if (*end == '@' && strtol(end + 1, &end, 10) != emulated_process_rank())
        return;
    memcpy(faults.fault[faults.n].kind, kind, sizeof kind);
    faults.fault[faults.n].at = at;
    faults.fault[faults.n++].onwards = onwards;
}

static void read_faults(void)
{
    const char *text = getenv("EMULATED_FAIL");
    faults.read = true;
    if (!text)
        return;
    char *copy = strdup(text), *rest = copy;
    for (char *each; copy && (each = strsep(&rest, ","));)
        if (*each)
            add(each);
    free(copy);
}

bool emulated_fails(const char *kind)
{
    bool fails = false;
    if (!faults.read)
        read_faults();
    for (int k = 0; k < faults.n; k++)
        if (strcmp(faults.fault[k].kind, kind) == 0) {
            faults.fault[k].seen++;
            fails |= faults.fault[k].onwards ? faults.fault[k].seen >= faults.fault[k].at
                                             : faults.fault[k].seen == faults.fault[k].at;
        }
    return fails;
}
