/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of planning for machines of many sizes, "plan_1000_on_64": what the row plan_1000 measures, in a process of its own with
 * OLYMPUS_SIMULATE set to the size, with 8 devices per rank. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void run_simulated(const bench_row *row)
{
    char self[512], command[768], what[32], line[128];
    int devices;
    if (oly_process_index() != 0 || oly_simulated() || sscanf(row->name, "%31[a-z_0-9]", what) != 1)
        return;
    char *size = strstr(what, "_on_");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!size || length < 0)
        return;
    self[length] = *size = 0;
    devices = atoi(size + 4);
    snprintf(command, sizeof command, "OLYMPUS_SIMULATE=%dx8 '%s' %s --repeats %d %s", devices / 8, self,
             bench_options.quick ? "--quick" : "", bench_options.repeats, what);
    FILE *lines = popen(command, "r");
    if (!lines)
        return;
    while (fscanf(lines, "%*s%127[^\n]\n", line) == 1)
        printf("%s%s\n", row->name, line);
    fflush(stdout);
    if (pclose(lines) != 0)
        fprintf(stderr, "bench: failed: %s\n", command);
}

#define ROWS(devices, text)                                                                                            \
    {"plan_10_on_" #devices, "plan_10 in a simulated job of " text " devices", run_simulated, 0, 0, NULL, NULL},       \
        {"plan_1000_on_" #devices, "plan_1000 there", run_simulated, 0, 0, NULL, NULL},                                \
        {"plan_10000_on_" #devices, "plan_10000 there", run_simulated, 0, 0, NULL, NULL},                              \
        {"plan_gather_on_" #devices, "plan_gather there", run_simulated, 0, 0, NULL, NULL},                            \
        {"plan_all_to_all_on_" #devices, "plan_all_to_all there", run_simulated, 0, 0, NULL, NULL},                    \
        {"plan_heat_on_" #devices, "plan_heat there", run_simulated, 0, 0, NULL, NULL},                                \
        {"plan_ring_on_" #devices, "plan_ring there", run_simulated, 0, 0, NULL, NULL},

const bench_row bench_plan_rows[] = {
    ROWS(8, "8") ROWS(64, "64") ROWS(512, "512") ROWS(4096, "4,096") ROWS(32768, "32,768") ROWS(100000, "100,000"){0},
};
