/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the library: initialises the layers in order and finalises them in reverse. */
#include "array/agree.h"
#include "array/array.h"
#include "array/checkpoint/checkpoint.h"
#include "array/dispatch.h"
#include "array/inside/inside.h"
#include "array/origin.h"
#include "array/place.h"
#include "array/timeline/timeline.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/arena.h"
#include "core/events.h"
#include "core/machine.h"
#include "core/option.h"
#include "core/pretend.h"
#include "core/progress_line.h"
#include "core/recorder.h"
#include "core/simulate.h"
#include "core/status_socket.h"
#include "device/device.h"
#include "device/platform.h"
#include "device/queue.h"
#include "device/workers.h"
#include "kernel.h"
#include "layout/topology.h"
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "run/execute.h"
#include "run/executor_choice.h"
#include "run/kernel_rates.h"
#include "run/measure.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool started;
static bool distributed; /* by oly_distributed_initialize; oly_init may follow */

/* What every process sends the others at start. */
typedef struct greeting {
    int32_t devices;
    uint64_t set; /* of devices that several ranks see; 0: they are this rank's alone */
    oly_platform_name platform;
    oly_transport_name transport;
    oly_rates_known rates; /* all use rank 0's */
    oly_location location;
} greeting;

static oly_location my_location(void)
{
    const oly_platform *platform = oly_platform_get();
    int pretended = oly_pretend_socket(oly_world_rank());
    oly_location here = {.socket = pretended >= 0 ? pretended : oly_machine_get()->socket};
    for (int d = 0; platform->link_group && d < platform->devices() && d < OLY_MOST_LINKED; d++)
        here.link_group[d] = (uint8_t)platform->link_group(d);
    return here;
}

static oly_status find_order(int n, const greeting *all)
{
    oly_location *locations = oly_malloc(sizeof *locations * (size_t)n);
    if (!locations)
        return oly_out_of_memory(sizeof *locations * (size_t)n, "the nodes of the job");
    for (int r = 0; r < n; r++)
        locations[r] = all[r].location;
    oly_status st = oly_topology_set(n, oly_option.mesh_order ? locations : NULL);
    oly_release(locations);
    return st;
}

/* For messages through host memory. */
static int memory_of(int device)
{
    return oly_platform_memory(oly_mesh_local_index(device));
}

static oly_status read_device(void *host, int device, const void *from, size_t bytes)
{
    return oly_platform_get()->read(host, memory_of(device), from, bytes);
}

static oly_status write_device(int device, void *to, const void *host, size_t bytes)
{
    return oly_platform_get()->write(memory_of(device), to, host, bytes);
}

static const oly_device_access device_access = {read_device, write_device};

/* Ranks that see the same devices divide them. */
static void share_devices(int n, greeting *all)
{
    const oly_platform *platform = oly_platform_get();
    int me = oly_world_rank(), index = 0, of = 0;
    if (!platform->share)
        return;
    for (int r = 0; r < n && all[me].set; r++) {
        index += r < me && all[r].set == all[me].set;
        of += all[r].set == all[me].set;
    }
    if (of > 1)
        platform->share(index, of);
    all[me].devices = platform->devices();
}

/* Everybody's numbers of devices, after they have been divided. */
static oly_status count_devices(int n, greeting *all, int *counts)
{
    share_devices(n, all);
    for (int r = 0; r < n; r++)
        counts[r] = all[r].devices;
    if (!oly_platform_get()->share)
        return OLY_OK;
    const greeting mine = {.devices = all[oly_world_rank()].devices, .location = my_location()};
    greeting *divided = oly_calloc((size_t)n, sizeof *divided);
    OLY_TRY(oly_world_vote(divided ? OLY_OK : oly_out_of_memory(sizeof *divided * (size_t)n, "the devices of the job"),
                           "starting the devices"));
    oly_status st = oly_world_gather(&mine, divided, sizeof mine);
    for (int r = 0; r < n && st == OLY_OK; r++) {
        counts[r] = divided[r].devices;
        all[r].location = divided[r].location;
    }
    oly_release(divided);
    return st;
}

static oly_status start_platform(void)
{
    const oly_platform *platform = oly_platform_get();
    return platform->start ? oly_world_vote(platform->start(), "starting the devices") : OLY_OK;
}

/* CPU devices beside GPUs. */
static oly_status add_beside(void)
{
    int n = oly_platform_count_beside();
    if (n == 0)
        return OLY_OK;
    oly_mesh_set_beside(n);
    return oly_devices_add_beside(n);
}

static oly_status greet(const oly_rates_known *rates, greeting *all)
{
    const oly_platform *platform = oly_platform_get();
    greeting mine = {platform->devices(),
                     platform->set ? platform->set() : 0,
                     oly_platform_my_name(),
                     oly_transport_my_name(),
                     *rates,
                     my_location()};
    return oly_world_gather(&mine, all, sizeof mine);
}

/* Some ranks have no GPU: all use the CPU. */
static oly_status greet_again(int n, const oly_rates_known *rates, greeting *all)
{
    if (!oly_platform_fall_back(n, &all->platform, sizeof *all))
        return OLY_OK;
    oly_executor_choose();
    oly_transport_choose(NULL);
    return greet(rates, all);
}

static oly_status meet(const oly_rates_known *rates)
{
    int n = oly_world_size();
    OLY_TRY(oly_agree_at_start());
    greeting *all = oly_calloc((size_t)n, sizeof *all);
    int *counts = oly_calloc((size_t)n, sizeof *counts), *leaders = oly_calloc((size_t)n, sizeof *leaders);
    oly_status st =
        all && counts && leaders ? OLY_OK : oly_out_of_memory(sizeof *all * (size_t)n, "the processes of the job");
    if (st == OLY_OK)
        st = greet(rates, all);
    if (st == OLY_OK)
        st = greet_again(n, rates, all);
    if (st == OLY_OK)
        st = oly_platform_agree(n, &all->platform, sizeof *all);
    if (st == OLY_OK)
        st = oly_transport_agree(n, &all->transport, sizeof *all);
    if (st == OLY_OK)
        st = count_devices(n, all, counts);
    for (int r = 0; r < n && st == OLY_OK; r++)
        leaders[r] = oly_world_node_leader_of(r);
    if (st == OLY_OK)
        st = start_platform();
    if (st == OLY_OK)
        st = oly_devices_start(n, counts, oly_world_rank(), oly_platform_get()->device_name);
    if (st == OLY_OK)
        st = oly_mesh_set_devices(n, counts, oly_world_rank());
    if (st == OLY_OK)
        st = add_beside();
    if (st == OLY_OK && oly_platform_get()->gpus)
        st = oly_transport_open(oly_platform_get()->gpus());
    oly_devices_tell_messages(oly_world_has_peers() ? oly_transport_why() : "");
    if (st == OLY_OK)
        st = oly_nodes_set(n, leaders);
    if (st == OLY_OK)
        st = find_order(n, all);
    if (st == OLY_OK)
        st = oly_rates_settle(&all[0].rates, oly_rates_peer() < 0 ? NULL : all[oly_rates_peer()].rates.host);
    oly_release(all);
    oly_release(counts);
    oly_release(leaders);
    return st;
}

/* The same for a simulated job. */
static oly_status imagine(const oly_simulation *job, const oly_rates_known *rates)
{
    OLY_TRY(oly_devices_start_alike(job->ranks, oly_platform_get()->devices(), 0, oly_platform_get()->device_name));
    OLY_TRY(oly_mesh_set_devices_alike(job->ranks, oly_platform_get()->devices(), 0));
    oly_nodes_uniform(job->node_ranks);
    return oly_rates_settle(rates, NULL); /* with this machine's numbers */
}

static int threads_wanted(void)
{
    if (!oly_platform_get()->computes)
        return 1;
    if (oly_option.threads > 0)
        return (int)oly_option.threads;
    int cores = oly_machine_get()->cores, share = cores / (oly_world_core_ranks() > 0 ? oly_world_core_ranks() : 1);
    return share > 1 ? share : 1;
}

static oly_status start(int *argc, char ***argv, const oly_world_way *way)
{
    OLY_TRY(oly_options_read());
    OLY_TRY(oly_simulation_read());
    OLY_TRY(oly_pretend_check());
    OLY_TRY(oly_stop_begin());
    const oly_simulation *job = oly_is_simulated() ? oly_simulation_get() : NULL;
    OLY_TRY(oly_platform_choose(job != NULL));
    oly_executor_choose();
    OLY_TRY(job ? oly_world_imagine(job->ranks, job->node_ranks) : oly_world_start_as(argc, argv, way));
    oly_transport_choose(oly_platform_get()->host_memory ? NULL : &device_access);
    oly_abort_hook = oly_world_abort;
    oly_error_set_rank(oly_world_rank(), oly_world_size());
    oly_options_report_unknown();
    OLY_TRY(oly_kernels_choose(oly_option.isa));
    oly_enable_x64(oly_option.enable_x64 != 0);
    oly_rates_known rates;
    OLY_TRY(oly_rates_wanted(&rates));
    OLY_TRY(job ? imagine(job, &rates) : meet(&rates));
    OLY_TRY(oly_timeline_start());
    OLY_TRY(oly_workers_start(threads_wanted()));
    OLY_TRY(oly_kernel_rates_settle(!job && oly_world_size() > 1));
    OLY_TRY(oly_executor_forecasts());
    OLY_TRY(oly_queue_start(oly_mesh_local_devices(), (int)oly_option.queue_depth));
    oly_queue_inline(!oly_world_threads());
    oly_scope_open();
    oly_event_text(OLY_EVENT_START, OLY_EVENT_INSTANT, oly_version(), oly_world_size(), oly_local_device_count());
    oly_recorder_arm();
    return OLY_OK;
}

/* A forked child has a copy of everything but the threads, and MPI does not know it: calls would hang. */
static void end_in_child(void)
{
    if (!started)
        return;
    atomic_store(&oly_life, OLY_FORKED);
    oly_timeline_rescue = NULL;
    oly_status_socket_forget();
    oly_abort_hook = _exit;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, end_in_child);
}

/* After a start that has failed: as before it. */
static void undo(void)
{
    oly_queue_stop();
    oly_kernel_rates_forget();
    oly_workers_stop();
    oly_layout_stop();
    oly_nodes_forget();
    oly_transport_close();
    oly_platform_forget();
    oly_world_finish();
    oly_devices_stop();
    oly_machine_forget();
    oly_simulation_forget();
    oly_abort_hook = NULL;
    oly_error_set_rank(-1, 1);
}

static oly_status begin(int *argc, char ***argv, const oly_world_way *way)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    int life = atomic_load(&oly_life);
    pthread_once(&watched, watch_forks);
    started = true;
    atomic_store(&oly_life, OLY_ALIVE);
    oly_status st = start(argc, argv, way);
    if (st == OLY_OK)
        return OLY_OK;
    oly_raise(st); /* returns in the mode OLY_ERRORS_RETURN only */
    undo();
    started = false;
    atomic_store(&oly_life, life);
    return st;
}

void oly_init(int *argc, char ***argv)
{
    OLY_ENTER_ANY_TIME();
    if (started && distributed) {
        distributed = false;
        return;
    }
    if (started) {
        oly_raise(oly_fail(OLY_STATE, "Olympus is already started; oly_init may be called once before oly_finalize"));
        return;
    }
    begin(argc, argv, &(oly_world_way){.processes = -1, .process = -1});
}

oly_status oly_distributed_initialize(const char *coordinator, int num_processes, int process_id)
{
    OLY_ENTER_ANY_TIME();
    if (started)
        return oly_raise(oly_fail(
            OLY_STATE,
            distributed
                ? "Olympus is already started; oly_distributed_initialize may be called once before oly_finalize"
                : "this process has its devices already, since oly_init: call oly_distributed_initialize "
                  "instead of oly_init, or before it"));
    oly_status st = begin(
        NULL, NULL,
        &(oly_world_way){.asked = true, .coordinator = coordinator, .processes = num_processes, .process = process_id});
    distributed = st == OLY_OK;
    return st;
}

oly_status oly_init_comm(const void *comm)
{
    OLY_ENTER_ANY_TIME();
    if (started)
        return oly_raise(
            oly_fail(OLY_STATE, "Olympus is already started; oly_init_comm may be called once before oly_finalize"));
    if (!comm)
        return oly_raise(oly_fail(OLY_INVALID, "no communicator: comm is the address of an MPI_Comm"));
    return begin(NULL, NULL, &(oly_world_way){.processes = -1, .process = -1, .communicator = comm});
}

int oly_finalize(void)
{
    OLY_ENTER(1);
    if (!started) {
        oly_raise_not_alive();
        return 1;
    }
    if (oly_trace_current()) {
        oly_raise(oly_fail(OLY_TRACE, "a function is being recorded; end after it has been called"));
        return 1;
    }
    oly_queue_drain();
    oly_event_text(OLY_EVENT_END, OLY_EVENT_INSTANT, "", 0, 0);
    oly_raise(oly_checkpoint_end());
    oly_stop_end();
    int status = oly_error_unseen() || oly_run_failure() == OLY_DIVERGED;
    bool together = oly_run_failure() == OLY_OK && !oly_world_is_broken();
    oly_scope_close_all();
    oly_dispatch_reset();
    oly_inside_forget();
    oly_array_forget_dead();
    oly_origins_forget();
    oly_place_forget();
    oly_run_reset();
    oly_queue_stop();
    oly_kernel_rates_forget();
    oly_workers_stop();
    oly_progress_line_end();
    oly_timeline_finish(together);
    oly_plan_forget();
    oly_transport_close();
    oly_layout_stop();
    oly_nodes_forget();
    oly_topology_forget();
    oly_pool_stop();
    oly_platform_forget();
    oly_arena_trim();
    if (oly_world_finish() != OLY_OK)
        status = 1;
    status = status || oly_error_unseen(); /* errors reported by other processes */
    oly_timeline_stop();
    oly_devices_stop();
    oly_machine_forget();
    oly_simulation_forget();
    oly_abort_hook = NULL;
    started = distributed = false;
    atomic_store(&oly_life, OLY_AFTER_FINALIZE);
    return status;
}

int oly_process_index(void)
{
    OLY_ENTER(0);
    return oly_world_rank();
}
int oly_process_count(void)
{
    OLY_ENTER(0);
    return oly_world_size();
}
