/* Rows of planning for machines of many sizes. Each is measured by the rows plan_10, plan_1000, plan_10000 in a process of its own,
 * for which OLYMPUS_SIMULATE says the size. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the lines of the other process under names that say the size. */
static void relay(FILE *lines, int devices)
{
    char name[32], rest[128];
    while (fscanf(lines, "%31s%127[^\n]\n", name, rest) == 2)
        printf("%s_on_%d%s\n", name, devices, rest);
    fflush(stdout);
}

static void plan_for(int64_t ranks)
{
    char self[512], command[768];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return;
    self[length] = 0;
    snprintf(command, sizeof command, "OLYMPUS_SIMULATE=%lldx8 '%s' --repeats %d %s plan_10 plan_1000 plan_10000",
             (long long)ranks, self, bench_options.repeats, bench_options.quick ? "--quick" : "");
    FILE *lines = popen(command, "r");
    if (!lines)
        return;
    relay(lines, (int)ranks * 8);
    if (pclose(lines) != 0)
        fprintf(stderr, "bench: failed: %s\n", command);
}

/* In every size from 8 devices to 100,000. */
static void run_plan_sizes(const bench_row *row)
{
    static const int64_t ranks[] = {1, 8, 64, 512, 4096, 12500};
    int64_t most = bench_size(row);
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks && oly_process_index() == 0 && !oly_simulated(); k++)
        if (ranks[k] <= most)
            plan_for(ranks[k]);
}

const bench_row bench_plan_rows[] = {
    {"plan_devices", "plan_10, plan_1000 and plan_10000 in simulated jobs of 8 to 100,000 devices, 8 to a rank",
     run_plan_sizes, 12500, 8},
    {0},
};
