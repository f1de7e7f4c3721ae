/* SPDX-License-Identifier: BSD-3-Clause */
/* The toy program: one array over the devices of all processes. Every process prints the shards it holds, then
 * the sum of the sines, which is the same to the last bit however the eight devices are distributed over processes.
 * Run: launch/olyrun -n 4 -d 2 build/examples/toy     (also -n 1 -d 8, -n 2 -d 4, -n 8 -d 1)
 * By hand, with OLYMPUS_NUM_CPU_DEVICES=2: toy 127.0.0.1:10000 4 0 & toy 127.0.0.1:10000 4 1 & ... (docs/start.md) */
#include <olympus.h>
#include <limits.h>
#include <stdlib.h>

/* A whole number from 0 to the largest; else -1. */
static long number(const char *text, long largest)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > largest ? -1 : n;
}

int main(int argc, char **argv)
{
    int processes = argc > 3 ? (int)number(argv[2], INT_MAX) : 1,
        process = argc > 3 ? (int)number(argv[3], INT_MAX) : 0;
    if (processes < 1 || process < 0) {
        fprintf(stderr, "usage: toy [HOST:PORT PROCESSES PROCESS]\n");
        return 2;
    }
    if (argc > 3) /* HOST:PORT of process 0, number of processes, number of this one */
        oly_distributed_initialize(argv[1], processes, process);
    else
        oly_distributed_initialize();

    oly_mesh mesh = oly_make_mesh("i=4, j=2");
    oly_array data = oly_reshape(oly_arange(32, OLY_INT32), 4, 8);
    oly_array global = oly_device_put(data, oly_named(mesh, "i, j"));

    OLY_FOR_EACH_SHARD(s, global)
    oly_printf("device %D has local data %A\n", s.device, s.data);

    oly_array result = oly_sum(oly_sin(global));
    oly_printf("process=%d got result: %A\n", oly_process_index(), result);
    return oly_finalize();
}
