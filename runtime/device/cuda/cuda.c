/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform "cuda". See cuda.h, and device/platform.h for the cells. */
#include "device/cuda/cuda.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/gpus.h"
#include "device/cuda/nvrtc.h"
#include "device/pending.h"
#include "core/option.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int describe(int device, char *text, size_t size)
{
    const oly_gpu *g = oly_cuda_device_at(device)->gpu;
    char linked[100] = "";
    int n = 0;
    for (int k = 0; k < oly_gpu_count() && n < (int)sizeof linked - 8; k++)
        if (oly_gpu_at(k) != g && oly_gpu_at(k)->links == g->links)
            n += snprintf(linked + n, sizeof linked - (size_t)n, "%s %s", n ? "," : ", NVLink to", oly_gpu_at(k)->pci);
    return snprintf(text, size, "%s, %.1f GiB, compute capability %d.%d, %d multiprocessors, PCI %s%s", g->name,
                    (double)g->bytes / (1 << 30), g->major, g->minor, g->processors, g->pci, linked);
}

static bool libraries(int k, char *text, size_t size)
{
    int version = oly_cuda_driver_version();
    const char *no_nvrtc = oly_nvrtc_missing(), *why = NULL;
    if (k == 0)
        snprintf(text, size, "driver: CUDA %d.%d", version / 1000, version / 10 % 100);
    else if (k == 1 && no_nvrtc)
        snprintf(text, size, "no NVRTC, so elementwise groups are interpreted: %s", no_nvrtc);
    else if (k == 1)
        snprintf(text, size, "NVRTC");
    else if (k == 2 && !oly_cublaslt_open(&why))
        snprintf(text, size, "no cuBLASLt, so products are Olympus's own: %s", why);
    else if (k == 2)
        snprintf(text, size, "cuBLASLt");
    return k < 3;
}

static void memory_use(int64_t *now, int64_t *most, int64_t *limit)
{
    *now = *most = *limit = 0;
    for (int k = 0; k < oly_gpu_count(); k++) {
        const oly_gpu *g = oly_gpu_at(k);
        *now += (int64_t)atomic_load(&g->used);
        *most += (int64_t)atomic_load(&g->peak);
        *limit += (int64_t)g->most;
    }
}

/* -- CPU devices beside the GPUs: their memory is the host's, and their work is complete when a function returns ------------------ */

/* Where OLYMPUS_PLATFORMS names the CPU, too. */
static int beside(void)
{
    enum { MOST = OLY_MOST_LATE_DEVICES - OLY_MOST_APART };
    for (const char *at = oly_option.platforms; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == 3 && memcmp(at, "cpu", 3) == 0)
            return oly_option.num_cpu_devices < MOST ? (int)oly_option.num_cpu_devices : MOST;
    return 0;
}

static bool allocate(int memory, size_t bytes, void **data)
{
    return oly_platform_is_host(memory) ? oly_platform_cpu.allocate(0, bytes, data)
                                        : oly_cuda_allocate(memory, bytes, data);
}

/* Under the pool's lock, so what fails is left for others to report. */
static void release(int memory, void *data, size_t bytes)
{
    if (oly_is_pending(memory) && oly_pending_drain(memory) != OLY_OK)
        oly_drop_message();
    oly_platform_is_host(memory) ? oly_platform_cpu.release(0, data, bytes) : oly_cuda_release(memory, data, bytes);
}

static oly_status read_bytes(void *host, int memory, const void *from, size_t bytes)
{
    OLY_TRY(oly_pending_settle_memory(memory));
    return oly_platform_is_host(memory) ? oly_platform_cpu.read(host, 0, from, bytes)
                                        : oly_cuda_read(host, memory, from, bytes);
}

static oly_status write_bytes(int memory, void *to, const void *host, size_t bytes)
{
    OLY_TRY(oly_pending_settle_memory(memory));
    return oly_platform_is_host(memory) ? oly_platform_cpu.write(0, to, host, bytes)
                                        : oly_cuda_write(memory, to, host, bytes);
}

static oly_status copy(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    if (oly_platform_is_host(from_memory))
        return write_bytes(to_memory, to, from, bytes);
    if (oly_platform_is_host(to_memory))
        return read_bytes(to, from_memory, from, bytes);
    OLY_TRY(oly_pending_settle_memory(from_memory));
    OLY_TRY(oly_pending_settle_memory(to_memory));
    return oly_cuda_move(to_memory, to, from_memory, from, bytes);
}

static bool is_gpu(int device)
{
    return device < oly_platform_first_beside;
}

static bool record(int device, oly_event *event)
{
    *event = (oly_event){.device = device}; /* nothing to wait for */
    return !is_gpu(device) || oly_cuda_record(device, event);
}

/* A CPU device computes at once: what it comes after must be done. */
static bool wait_for(int device, oly_event event)
{
    if (!is_gpu(event.device))
        return true;
    return is_gpu(device) ? oly_cuda_wait(device, event) : event.number == 0 || oly_cuda_drain(event.device) == OLY_OK;
}

static oly_status drain(int device)
{
    return is_gpu(device) ? oly_cuda_drain(device) : OLY_OK;
}

static const oly_platform cuda = {.name = "cuda",
                                  .device_name = "cuda",
                                  .computes = true,
                                  .devices = oly_cuda_device_count,
                                  .beside = beside,
                                  .link_group = oly_cuda_link_group,
                                  .gpus = oly_cuda_gpu_access,
                                  .set = oly_gpus_set,
                                  .share = oly_gpus_share,
                                  .start = oly_gpus_start,
                                  .stop = oly_gpus_stop,
                                  .describe = describe,
                                  .libraries = libraries,
                                  .memory_use = memory_use,
                                  .allocate = allocate,
                                  .release = release,
                                  .read = read_bytes,
                                  .write = write_bytes,
                                  .copy = copy,
                                  .record = record,
                                  .wait = wait_for,
                                  .drain = drain,
                                  .run_ahead = oly_cuda_run_ahead};

oly_status oly_cuda_platform(const oly_platform **platform, const char **why)
{
    bool any;
    *platform = NULL;
    OLY_TRY(oly_gpus_list(&any, why));
    if (any)
        *platform = &cuda;
    return OLY_OK;
}

bool oly_cuda_is_there(const char **why)
{
    return oly_cuda_driver_open(why);
}
