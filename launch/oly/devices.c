/* SPDX-License-Identifier: BSD-3-Clause */
/* `oly devices`: what a rank started here would get: its share of the machine, its devices and threads. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "oly.h"
#include "core/machine.h"
#include "core/option.h"
#include "environment.h"
#include <dirent.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DOMAINS = 64 };

typedef struct found {
    oly_launch launch;
    oly_machine machine;
    char host[128], cpus[256], domains[256];
    int pus, n_domains, nvidia;
    long long threads, devices;
    bool options_good;
} found;

/* NUMA domains with cores that this process may use, and the list of its hardware threads. */
static void ask_hwloc(found *f)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set || hwloc_topology_init(&topology) != 0) {
        hwloc_bitmap_free(set);
        return;
    }
    if (hwloc_topology_load(topology) == 0 && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_bitmap_list_snprintf(f->cpus, sizeof f->cpus, set);
        f->pus = hwloc_bitmap_weight(set);
        for (hwloc_obj_t node = NULL; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
            if (!hwloc_bitmap_intersects(node->cpuset, set) || f->n_domains == MOST_DOMAINS)
                continue;
            size_t n = strlen(f->domains);
            snprintf(f->domains + n, sizeof f->domains - n, n ? ",%u" : "%u", node->os_index);
            f->n_domains++;
        }
    }
    hwloc_topology_destroy(topology);
    hwloc_bitmap_free(set);
}

/* NVIDIA's devices as the kernel shows them. */
static int count_gpus(void)
{
    int n = 0;
    DIR *listing = opendir("/proc/driver/nvidia/gpus");
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        n += entry->d_name[0] != '.';
    if (listing)
        closedir(listing);
    return n;
}

static found look(void)
{
    found f = {.launch = oly_launch_detect()};
    f.options_good = oly_options_read() == OLY_OK;
    f.machine = *oly_machine_get();
    gethostname(f.host, sizeof f.host - 1);
    ask_hwloc(&f);
    f.nvidia = count_gpus();
    int ranks = f.launch.node_ranks > 0 ? f.launch.node_ranks : 1, share = f.machine.cores / ranks;
    f.threads = oly_option.threads > 0 ? oly_option.threads : share > 1 ? share : 1;
    f.devices = oly_option.num_cpu_devices;
    return f;
}

static void print_machine(const found *f)
{
    printf("host %s: this process may use %d core%s (hardware threads %s) in NUMA domain%s %s\n", f->host,
           f->machine.cores, f->machine.cores == 1 ? "" : "s", f->cpus, f->n_domains == 1 ? "" : "s", f->domains);
    printf("  caches of a core: %s, %s", oly_size_text_of(f->machine.l1_bytes).chars,
           oly_size_text_of(f->machine.l2_bytes).chars);
    if (f->machine.l3_bytes)
        printf("; shared %s", oly_size_text_of(f->machine.l3_bytes).chars);
    printf("; memory of the host %s\n", oly_size_text_of(f->machine.memory_bytes).chars);
    if (f->nvidia)
        printf("  %d NVIDIA GPU%s, which this build does not use: it has the platform cpu\n", f->nvidia,
               f->nvidia == 1 ? "" : "s");
}

static void print_rank(const found *f)
{
    if (!f->launch.launcher)
        printf("started alone: rank 0 of 1");
    else
        printf("started by %s: rank %d of %d, number %d of %d on this host", f->launch.launcher, f->launch.rank,
               f->launch.size, f->launch.node_rank, f->launch.node_ranks);
    printf("; %lld device%s (OLYMPUS_NUM_CPU_DEVICES), %lld compute thread%s (OLYMPUS_NUM_THREADS)\n", f->devices,
           f->devices == 1 ? "" : "s", f->threads, f->threads == 1 ? "" : "s");
    int rank = f->launch.rank > 0 ? f->launch.rank : 0;
    if (f->devices == 1)
        printf("  device CPU_%lld, if all ranks have one\n", (long long)rank);
    else
        printf("  devices CPU_%lld to CPU_%lld, if all ranks have %lld\n", rank * f->devices,
               (rank + 1) * f->devices - 1, f->devices);
}

static oly_status print_json(const found *f)
{
    oly_text t = {0};
    bool first = true;
    oly_text_add(&t, "{");
    tool_member(&t, &first, "host", f->host);
    tool_member(&t, &first, "launcher", f->launch.launcher ? f->launch.launcher : "");
    tool_member_int(&t, &first, "rank", f->launch.rank);
    tool_member_int(&t, &first, "ranks", f->launch.size);
    tool_member_int(&t, &first, "host_rank", f->launch.node_rank);
    tool_member_int(&t, &first, "host_ranks", f->launch.node_ranks);
    tool_member_int(&t, &first, "cores", f->machine.cores);
    tool_member(&t, &first, "hardware_threads", f->cpus);
    tool_member(&t, &first, "numa_domains", f->domains);
    tool_member_int(&t, &first, "l1_bytes", (long long)f->machine.l1_bytes);
    tool_member_int(&t, &first, "l2_bytes", (long long)f->machine.l2_bytes);
    tool_member_int(&t, &first, "l3_bytes", (long long)f->machine.l3_bytes);
    tool_member_int(&t, &first, "memory_bytes", (long long)f->machine.memory_bytes);
    tool_member_int(&t, &first, "nvidia_gpus", f->nvidia);
    tool_member_int(&t, &first, "devices", f->devices);
    tool_member_int(&t, &first, "threads", f->threads);
    oly_text_add(&t, "}\n");
    oly_status st = tool_write("-", &t);
    oly_text_free(&t);
    return st;
}

int devices_main(int argc, char **argv)
{
    bool json = tool_flag(&argc, argv, "--json");
    if (argc > 1)
        return tool_usage("unexpected argument %s", argv[1]);
    found f = look();
    oly_machine_forget();
    if (!f.options_good)
        return tool_fail_pending();
    if (json)
        return print_json(&f) == OLY_OK ? 0 : tool_fail_pending();
    if (f.launch.node_rank <= 0)
        print_machine(&f);
    print_rank(&f);
    return 0;
}
