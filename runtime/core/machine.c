/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about the machine from hwloc, read once. Callable from every layer. */
#include "core/machine.h"
#include "core/simulate.h"
#include <hwloc.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static oly_machine machine;
static bool known;

static size_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t level)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, level, 0);
    return cache ? cache->attr->cache.size : 0;
}

/* Cores with at least one hardware thread this process may run on. */
static int bound_cores(hwloc_topology_t topology)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int cores = 0;
    if (set && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_obj_t core = NULL;
        while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)))
            cores += hwloc_bitmap_intersects(core->cpuset, set);
        if (cores == 0)
            cores = hwloc_bitmap_weight(set); /* some virtual machines show no cores */
    }
    hwloc_bitmap_free(set);
    return cores;
}

/* The only package with hardware threads that this process may run on; -1: several. */
static int bound_socket(hwloc_topology_t topology)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    int socket = -1, found = 0;
    if (set && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0) {
        hwloc_obj_t package = NULL;
        while ((package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, package)))
            if (hwloc_bitmap_intersects(package->cpuset, set)) {
                socket = (int)package->logical_index;
                found++;
            }
    }
    hwloc_bitmap_free(set);
    return found == 1 ? socket : -1;
}

static bool ask_hwloc(oly_machine *m)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return false;
    const char *synthetic = oly_simulation_get()->node;
    bool loaded =
        (!synthetic || hwloc_topology_set_synthetic(topology, synthetic) == 0) && hwloc_topology_load(topology) == 0;
    if (loaded) {
        m->cores = synthetic ? hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) : bound_cores(topology);
        m->socket = synthetic ? -1 : bound_socket(topology);
        m->l1_bytes = cache_bytes(topology, HWLOC_OBJ_L1CACHE);
        m->l2_bytes = cache_bytes(topology, HWLOC_OBJ_L2CACHE);
        m->l3_bytes = cache_bytes(topology, HWLOC_OBJ_L3CACHE);
        m->memory_bytes = hwloc_get_root_obj(topology)->total_memory;
    }
    hwloc_topology_destroy(topology);
    return loaded;
}

static size_t positive(long value)
{
    return value > 0 ? (size_t)value : 0;
}

static oly_machine read_machine(void)
{
    oly_machine m = {.socket = -1};
    if (!ask_hwloc(&m)) {
        m.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
        m.l1_bytes = positive(sysconf(_SC_LEVEL1_DCACHE_SIZE));
        m.l2_bytes = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
        m.l3_bytes = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
        m.memory_bytes = positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE));
    }
    if (m.cores < 1)
        m.cores = 1;
    if (m.l1_bytes == 0)
        m.l1_bytes = (size_t)32 << 10;
    if (m.l2_bytes == 0)
        m.l2_bytes = (size_t)256 << 10;
    return m;
}

const oly_machine *oly_machine_get(void)
{
    pthread_mutex_lock(&lock);
    if (!known) {
        machine = read_machine();
        known = true;
    }
    pthread_mutex_unlock(&lock);
    return &machine;
}

void oly_machine_forget(void)
{
    pthread_mutex_lock(&lock);
    known = false;
    pthread_mutex_unlock(&lock);
}
