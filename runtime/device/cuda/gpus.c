/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GPUs there are, their contexts and streams. See gpus.h. */
#include "device/cuda/gpus.h"
#include "device/cuda/generated.h"
#include "device/cuda/modules.h"
#include "core/hash.h"
#include "core/option.h"
#include <stdatomic.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    oly_gpu seen[OLY_MOST_GPUS];
    int n_seen;
    int used[OLY_MOST_GPUS], n_used; /* their numbers in `seen` */
    int first, n;                    /* of these, this process's share */
    oly_cuda_device device[OLY_MOST_APART];
    bool started, reaches[OLY_MOST_GPUS][OLY_MOST_GPUS];
    char why[200];
} all;

int oly_gpu_count(void)
{
    return all.n;
}

oly_gpu *oly_gpu_at(int k)
{
    return &all.seen[all.used[all.first + k]];
}

int oly_cuda_device_count(void)
{
    return all.n * (int)oly_option.devices_per_gpu;
}

oly_cuda_device *oly_cuda_device_at(int device)
{
    return &all.device[device];
}

bool oly_gpu_reaches(const oly_gpu *a, const oly_gpu *b)
{
    return a == b || all.reaches[a - all.seen][b - all.seen];
}

oly_status oly_gpu_enter(const oly_gpu *g)
{
    return oly_cuda_check(oly_driver.cuCtxPushCurrent(g->context), "cuCtxPushCurrent", g->label);
}

void oly_gpu_leave(void)
{
    CUcontext context;
    oly_driver.cuCtxPopCurrent(&context);
}

/* -- which -------------------------------------------------------------------------------------------------------------------- */

static oly_status look_at(oly_gpu *g, int number)
{
    *g = (oly_gpu){.number = number};
    snprintf(g->label, sizeof g->label, "CUDA device %d", number);
    OLY_TRY(oly_cuda_check(oly_driver.cuDeviceGet(&g->device, number), "cuDeviceGet", g->label));
    OLY_TRY(
        oly_cuda_check(oly_driver.cuDeviceGetName(g->name, sizeof g->name, g->device), "cuDeviceGetName", g->label));
    snprintf(g->label, sizeof g->label, "CUDA device %d (%.90s)", number, g->name);
    OLY_TRY(oly_cuda_check(oly_driver.cuDeviceTotalMem(&g->bytes, g->device), "cuDeviceTotalMem", g->label));
    OLY_TRY(oly_cuda_check(oly_driver.cuDeviceGetUuid(&g->uuid, g->device), "cuDeviceGetUuid", g->label));
    const struct {
        CUdevice_attribute what;
        int *to;
    } facts[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &g->major},
                 {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &g->minor},
                 {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &g->processors},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &g->shared},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &g->shared_each},
                 {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &g->clock},
                 {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &g->memory_clock},
                 {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &g->bus},
                 {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &g->cache}};
    for (size_t k = 0; k < sizeof facts / sizeof *facts; k++)
        OLY_TRY(oly_cuda_check(oly_driver.cuDeviceGetAttribute(facts[k].to, facts[k].what, g->device),
                               "cuDeviceGetAttribute", g->label));
    return OLY_OK;
}

static oly_status not_a_list(void)
{
    return oly_fail(
        OLY_INVALID,
        "OLYMPUS_LOCAL_DEVICES=\"%s\": give numbers of GPUs that this process sees, each once, separated by commas; it "
        "sees %d, numbered from 0",
        oly_option.local_devices, all.n_seen);
}

/* "0,2"; empty: all. */
static oly_status choose_listed(void)
{
    const char *at = oly_option.local_devices;
    all.n_used = 0;
    for (int k = 0; !*at && k < all.n_seen; k++)
        all.used[all.n_used++] = k;
    while (*at) {
        char *end;
        long number = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : -1;
        if (number < 0 || number >= all.n_seen || (*end && (*end != ',' || !end[1])))
            return not_a_list();
        for (int k = 0; k < all.n_used; k++)
            if (all.used[k] == number)
                return not_a_list();
        all.used[all.n_used++] = (int)number;
        at = *end ? end + 1 : end;
    }
    return OLY_OK;
}

/* Atomic operations of the hardware between two GPUs: linked by NVLink, not over PCI. */
static bool are_linked(const oly_gpu *a, const oly_gpu *b)
{
    int yes = 0;
    return oly_driver.cuDeviceGetP2PAttribute(&yes, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, a->device,
                                              b->device) == CUDA_SUCCESS &&
           yes;
}

static void find_links(void)
{
    for (int k = 0; k < all.n_seen; k++) {
        oly_gpu *g = &all.seen[k];
        g->links = k;
        for (int j = k - 1; j >= 0; j--)
            if (are_linked(&all.seen[j], g))
                g->links = all.seen[j].links;
        if (oly_driver.cuDeviceGetPCIBusId(g->pci, sizeof g->pci, g->device) != CUDA_SUCCESS)
            *g->pci = 0;
    }
}

int oly_cuda_link_group(int device)
{
    return all.seen[all.used[all.first + device / (int)oly_option.devices_per_gpu]].links;
}

oly_status oly_gpus_list(bool *any, const char **why)
{
    int n = 0;
    *any = false;
    if (all.started) {
        *any = true;
        return OLY_OK;
    }
    if (!oly_cuda_driver_open(why))
        return OLY_OK;
    if (oly_driver.cuDeviceGetCount(&n) != CUDA_SUCCESS || n == 0) {
        const char *hidden = getenv("CUDA_VISIBLE_DEVICES");
        snprintf(all.why, sizeof all.why, hidden ? "CUDA_VISIBLE_DEVICES=\"%s\" hides all GPUs" : "there is no GPU",
                 hidden);
        *why = all.why;
        return OLY_OK;
    }
    all.n_seen = n < OLY_MOST_GPUS ? n : OLY_MOST_GPUS;
    for (int k = 0; k < all.n_seen; k++)
        OLY_TRY(look_at(&all.seen[k], k));
    find_links();
    OLY_TRY(choose_listed());
    all.first = 0;
    all.n = all.n_used;
    *any = true;
    return OLY_OK;
}

/* Ranks whose GPUs were chosen for them, by the launcher or OLYMPUS_LOCAL_DEVICES, see different ones. */
uint64_t oly_gpus_set(void)
{
    uint64_t h = 1;
    if (*oly_option.local_devices)
        return 0;
    for (int k = 0; k < all.n_used; k++)
        for (int j = 0; j < 16; j++)
            h = oly_hash_mix(h, (unsigned char)all.seen[all.used[k]].uuid.bytes[j]);
    return h ? h : 1;
}

void oly_gpus_share(int index, int of)
{
    int end = (index + 1) * all.n_used / of;
    all.first = index * all.n_used / of;
    all.n = end > all.first ? end - all.first : 1;
}

/* -- contexts and streams -------------------------------------------------------------------------------------------------------- */

#define DO(function, ...) OLY_TRY(oly_cuda_check(oly_driver.function(__VA_ARGS__), #function, g->label))

static oly_status make_pool(oly_gpu *g)
{
    CUmemPoolProps of = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                         .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->device}};
    cuuint64_t keep = UINT64_MAX;
    DO(cuMemPoolCreate, &g->pool, &of);
    DO(cuMemPoolSetAttribute, g->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    for (int k = 0; k < all.n; k++) {
        const oly_gpu *other = oly_gpu_at(k);
        CUmemAccessDesc use = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = other->device},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        int can = 0;
        if (other == g || oly_driver.cuDeviceCanAccessPeer(&can, other->device, g->device) != CUDA_SUCCESS || !can)
            continue;
        all.reaches[other - all.seen][g - all.seen] = oly_driver.cuMemPoolSetAccess(g->pool, &use, 1) == CUDA_SUCCESS;
    }
    return OLY_OK;
}

static oly_status start_gpu(oly_gpu *g)
{
    size_t asked = (size_t)oly_option.gpu_memory << 20, unused = 0, total = 0;
    DO(cuDevicePrimaryCtxRetain, &g->context, g->device);
    OLY_TRY(oly_gpu_enter(g));
    OLY_TRY(make_pool(g));
    DO(cuStreamCreate, &g->memory_stream, CU_STREAM_NON_BLOCKING);
    DO(cuStreamCreate, &g->message_stream, CU_STREAM_NON_BLOCKING);
    DO(cuStreamCreate, &g->packing_stream, CU_STREAM_NON_BLOCKING);
    DO(cuMemGetInfo, &unused, &total);
    g->most = asked ? asked : total;
    oly_gpu_leave();
    return OLY_OK;
}

static oly_status start_device(oly_cuda_device *d, oly_gpu *g)
{
    d->gpu = g;
    pthread_mutex_init(&d->staging, NULL);
    OLY_TRY(oly_gpu_enter(g));
    DO(cuStreamCreate, &d->stream, CU_STREAM_NON_BLOCKING);
    DO(cuStreamCreate, &d->copies, CU_STREAM_NON_BLOCKING);
    for (int k = 0; k < OLY_CUDA_EVENTS; k++)
        DO(cuEventCreate, &d->event[k], CU_EVENT_DISABLE_TIMING);
    for (int k = 0; k < OLY_CUDA_STAGES; k++)
        DO(cuEventCreate, &d->staged[k], CU_EVENT_DISABLE_TIMING);
    for (int k = 0; k < OLY_PENDING_MARKS; k++)
        DO(cuEventCreate, &d->mark[k], CU_EVENT_DISABLE_TIMING);
    oly_gpu_leave();
    return OLY_OK;
}

oly_status oly_gpus_start(void)
{
    if (oly_cuda_device_count() > OLY_MOST_APART)
        return oly_fail(OLY_INVALID, "%d GPUs with OLYMPUS_DEVICES_PER_GPU=%d are %d devices; a process has at most %d",
                        all.n, (int)oly_option.devices_per_gpu, oly_cuda_device_count(), OLY_MOST_APART);
    all.started = true;
    for (int k = 0; k < all.n; k++)
        OLY_TRY(start_gpu(oly_gpu_at(k)));
    for (int d = 0; d < oly_cuda_device_count(); d++)
        OLY_TRY(start_device(&all.device[d], oly_gpu_at(d / (int)oly_option.devices_per_gpu)));
    return OLY_OK;
}

static void stop_device(oly_cuda_device *d)
{
    if (!d->gpu)
        return;
    bool entered = d->gpu->context && oly_gpu_enter(d->gpu) == OLY_OK;
    for (int k = 0; entered && k < OLY_CUDA_EVENTS; k++)
        if (d->event[k])
            oly_driver.cuEventDestroy(d->event[k]);
    for (int k = 0; entered && k < OLY_PENDING_MARKS; k++)
        if (d->mark[k])
            oly_driver.cuEventDestroy(d->mark[k]);
    for (int k = 0; entered && k < OLY_CUDA_STAGES; k++) {
        if (d->staged[k])
            oly_driver.cuEventDestroy(d->staged[k]);
        if (d->stage[k])
            oly_driver.cuMemFreeHost(d->stage[k]);
    }
    if (entered && d->stream)
        oly_driver.cuStreamDestroy(d->stream);
    if (entered && d->copies)
        oly_driver.cuStreamDestroy(d->copies);
    if (entered)
        oly_gpu_leave();
    pthread_mutex_destroy(&d->staging);
    memset(d, 0, sizeof *d);
}

static void stop_gpu(oly_gpu *g)
{
    if (g->context && oly_gpu_enter(g) == OLY_OK) {
        if (g->memory_stream) {
            oly_driver.cuStreamSynchronize(g->memory_stream);
            oly_driver.cuStreamDestroy(g->memory_stream);
        }
        if (g->message_stream)
            oly_driver.cuStreamDestroy(g->message_stream);
        if (g->packing_stream)
            oly_driver.cuStreamDestroy(g->packing_stream);
        if (g->pool)
            oly_driver.cuMemPoolDestroy(g->pool);
        oly_gpu_leave();
    }
    if (g->context)
        oly_driver.cuDevicePrimaryCtxRelease(g->device);
    g->context = NULL;
    g->pool = NULL;
    g->memory_stream = g->message_stream = g->packing_stream = NULL;
}

enum { MOST_STOPS = 8 };
static void (*_Atomic stops[MOST_STOPS])(void);

void oly_gpus_at_stop(void (*stop)(void))
{
    for (int k = 0; k < MOST_STOPS; k++) {
        void (*none)(void) = NULL;
        if (atomic_load(&stops[k]) == stop || atomic_compare_exchange_strong(&stops[k], &none, stop) || none == stop)
            return;
    }
}

/* Also after a start that has failed, and on a GPU that is lost. */
void oly_gpus_stop(void)
{
    if (!all.started)
        return;
    for (int k = 0; k < MOST_STOPS; k++) {
        void (*stop)(void) = atomic_exchange(&stops[k], NULL);
        if (stop)
            stop();
    }
    oly_cuda_constants_stop();
    oly_cuda_generated_stop();
    oly_cuda_modules_stop();
    for (int d = 0; d < OLY_MOST_APART; d++)
        stop_device(&all.device[d]);
    for (int k = 0; k < all.n; k++)
        stop_gpu(oly_gpu_at(k));
    memset(all.reaches, 0, sizeof all.reaches);
    all.started = false;
    oly_drop_message();
}
