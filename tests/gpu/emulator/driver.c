/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated driver's functions for devices, contexts, modules and launches. EMULATED_GPUS=n devices (1), less by
 * CUDA_VISIBLE_DEVICES; EMULATED_MEMORY bytes each (4 GiB); EMULATED_DRIVER=12020 its version; EMULATED_PEERS=0 without peer access,
 * EMULATED_LINKS=n: groups of n devices are linked, others only over PCI. */
#define _GNU_SOURCE
#include "driver.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CURRENT = 64 };

static struct {
    bool ready, lost;
    int n, real[MOST_GPUS]; /* visible devices */
    CUcontext contexts;
    CUmodule modules;
} driver;
static __thread CUcontext current[MOST_CURRENT];
static __thread int depth;

static long number_of(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* Facts of a real card, for tests of what follows from them; else of the emulated one. */
static int fact_of(CUdevice_attribute attribute, int otherwise)
{
    static const struct {
        const char *card;
        CUdevice_attribute of;
        int is;
    } facts[] = {{"h100", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                 {"h100", CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
                 {"h100", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
                 {"h100", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
                 {"h100", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
                 {"h200", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                 {"h200", CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
                 {"h200", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
                 {"h200", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
                 {"h200", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 60 << 20}};
    const char *card = getenv("EMULATED_CARD");
    for (size_t k = 0; card && k < sizeof facts / sizeof *facts; k++)
        if (facts[k].of == attribute && strcmp(facts[k].card, card) == 0)
            return facts[k].is;
    return otherwise;
}

/* "nccl:20,staged:5": milliseconds for each message. */
long emulated_slow(const char *way)
{
    const char *at = getenv("EMULATED_SLOW");
    size_t n = strlen(way);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, way, n) == 0 && at[n] == ':')
            return strtol(at + n + 1, NULL, 10);
    return 0;
}

bool emulated_is_idle(void)
{
    return number_of("EMULATED_IDLE", 0) != 0;
}

/* -- what every function does ---------------------------------------------------------------------------------------------------------- */

CUcontext emulated_context(void)
{
    return depth > 0 ? current[depth - 1] : NULL;
}

CUresult emulated_enter(CUcontext context)
{
    if (!driver.ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    driver.lost |= emulated_fails("lost");
    if (driver.lost)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context->error;
}

bool emulated_has_failed(int device)
{
    bool failed = driver.lost;
    for (CUcontext c = driver.contexts; c; c = c->next)
        failed |= c->device == device && c->error != CUDA_SUCCESS;
    return failed;
}

CUresult emulated_leave(CUresult result)
{
    emulated_unlock();
    return result;
}

static CUresult enter_without_context(void)
{
    emulated_lock();
    if (!driver.ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    driver.lost |= emulated_fails("lost");
    return driver.lost ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

/* -- the driver and its devices --------------------------------------------------------------------------------------------------------- */

/* As the driver reads CUDA_VISIBLE_DEVICES: up to the first that does not exist. */
static void find_devices(void)
{
    int all = (int)number_of("EMULATED_GPUS", 1);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    all = all < 0 ? 0 : all > MOST_GPUS ? MOST_GPUS : all;
    driver.n = 0;
    if (!visible) {
        for (int k = 0; k < all; k++)
            driver.real[driver.n++] = k;
        return;
    }
    for (char *end; *visible; visible = *end == ',' ? end + 1 : end) {
        long k = strncmp(visible, "GPU-", 4) == 0 ? strtol(visible + 4, &end, 16) : strtol(visible, &end, 10);
        if (end == visible || k < 0 || k >= all || driver.n == MOST_GPUS)
            return;
        end += strcspn(end, ",");
        driver.real[driver.n++] = (int)k;
    }
}

bool emulated_has_conditions(void)
{
    return number_of("EMULATED_CONDITIONS", 1) != 0;
}

CUresult cuInit(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    emulated_lock();
    if (!driver.ready)
        find_devices();
    emulated_set_condition = emulated_graph_condition;
    emulated_check_address = emulated_memory_check;
    if (driver.n == 0)
        return emulated_leave(CUDA_ERROR_NO_DEVICE);
    driver.ready = true;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version)
{
    *version = (int)number_of("EMULATED_DRIVER", 13000);
    return CUDA_SUCCESS;
}

int emulated_devices(void)
{
    return driver.n;
}

size_t emulated_device_memory(void)
{
    return (size_t)number_of("EMULATED_MEMORY", (long)4 << 30);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult r = enter_without_context();
    *count = driver.n;
    return emulated_leave(r);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = enter_without_context();
    *device = ordinal;
    return emulated_leave(r ? r : ordinal < 0 || ordinal >= driver.n ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS);
}

static bool exists(CUdevice device)
{
    return driver.ready && device >= 0 && device < driver.n;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)room, "Emulated GPU");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid, 0, sizeof *uuid);
    uuid->bytes[3] = (char)driver.real[device];
    uuid->bytes[15] = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    *bytes = emulated_device_memory();
    return exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *name, int room, CUdevice device)
{
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)room, "0000:%02x:00.0", driver.real[device] + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    static const struct {
        CUdevice_attribute of;
        int is;
    } known[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                 {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                 {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
                 {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, EMULATED_MOST_THREADS},
                 {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
                 {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
                 {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, EMULATED_MOST_THREADS},
                 {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, EMULATED_MOST_THREADS},
                 {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
                 {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX},
                 {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
                 {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
                 {CU_DEVICE_ATTRIBUTE_WARP_SIZE, EMULATED_WARP},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, EMULATED_STATIC_SHARED},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, EMULATED_SHARED},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
                 {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
                 {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 8 << 20},
                 {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
                 {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
                 {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
                 {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
                 {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
                 {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
                 {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
                 {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
                 {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1}};
    *value = 0;
    if (!exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *value = driver.real[device] + 1;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].of == attribute)
            *value = fact_of(attribute, known[k].is);
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    *can = device != peer && number_of("EMULATED_PEERS", 1) != 0;
    return exists(device) && exists(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    long linked = number_of("EMULATED_LINKS", MOST_GPUS);
    bool near = driver.real[from] / linked == driver.real[to] / linked;
    if (!exists(from) || !exists(to) || from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    cuDeviceCanAccessPeer(value, from, to);
    if (attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
        *value = near ? 0 : 1;
    if (attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
        *value = *value && near;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult of;
    const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = NULL;
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
        if (errors[k].of == error)
            *name = errors[k].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = NULL;
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++)
        if (errors[k].of == error)
            *text = errors[k].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* -- contexts ------------------------------------------------------------------------------------------------------------------------------ */

static CUcontext make_context(int device, bool primary)
{
    CUcontext c = calloc(1, sizeof *c);
    if (!c)
        emulated_violation("no memory");
    c->device = device;
    c->primary = primary;
    c->next = driver.contexts;
    driver.contexts = c;
    return c;
}

static void end_context(CUcontext context)
{
    emulated_finish(NULL, context);
    emulated_streams_end(context);
    for (CUcontext *c = &driver.contexts; *c; c = &(*c)->next)
        if (*c == context) {
            *c = context->next;
            free(context);
            return;
        }
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult r = enter_without_context();
    if (r != CUDA_SUCCESS || !exists(device))
        return emulated_leave(r ? r : CUDA_ERROR_INVALID_DEVICE);
    CUcontext c = driver.contexts;
    while (c && !(c->primary && c->device == device))
        c = c->next;
    *context = c ? c : make_context(device, true);
    (*context)->retained++;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    emulated_lock();
    for (CUcontext c = driver.contexts; c; c = c->next)
        if (c->primary && c->device == device) {
            if (--c->retained == 0)
                end_context(c);
            return emulated_leave(CUDA_SUCCESS);
        }
    return emulated_leave(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    (void)flags;
    return exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device)
{
    (void)parameters;
    (void)flags;
    CUresult r = enter_without_context();
    if (r != CUDA_SUCCESS || !exists(device))
        return emulated_leave(r ? r : CUDA_ERROR_INVALID_DEVICE);
    *context = current[depth++] = make_context(device, false);
    return emulated_leave(CUDA_SUCCESS);
}

#undef cuCtxCreate_v2
EMULATED_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    return cuCtxCreate(context, NULL, flags, device);
}

CUresult cuCtxDestroy(CUcontext context)
{
    emulated_lock();
    if (depth > 0 && current[depth - 1] == context)
        depth--;
    end_context(context);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    depth -= depth > 0;
    if (context)
        current[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = emulated_context();
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    if (!context || depth == MOST_CURRENT)
        return CUDA_ERROR_INVALID_CONTEXT;
    current[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
        *context = current[depth - 1];
    depth--;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (!emulated_context())
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = emulated_context()->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    EMULATED_ENTER(context);
    return emulated_leave(emulated_finish(NULL, context));
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    EMULATED_ENTER(context);
    int can = 0;
    cuDeviceCanAccessPeer(&can, context->device, peer->device);
    if (flags || !can)
        return emulated_leave(flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (context->peers >> peer->device & 1)
        return emulated_leave(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= 1u << peer->device;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    EMULATED_ENTER(context);
    context->peers &= ~(1u << peer->device);
    return emulated_leave(CUDA_SUCCESS);
}

/* -- modules and functions ------------------------------------------------------------------------------------------------------------------ */

struct CUmod_st {
    void *object;
    struct CUfunc_st *functions;
};

/* The kernels of the library, compiled for the host, lie beside this object; EMULATED_RACES=1: those that are checked for races. */
static void *library_kernels(void)
{
    Dl_info here;
    char path[4096];
    if (!dladdr((void *)library_kernels, &here))
        return NULL;
    snprintf(path, sizeof path, "%.*s/libkernels_%s.so", (int)(strrchr(here.dli_fname, '/') - here.dli_fname),
             here.dli_fname, number_of("EMULATED_RACES", 0) ? "checked" : "emulated");
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool is_real_image(const char *image)
{
    uint32_t first;
    memcpy(&first, image, sizeof first);
    return first == 0xba55ed50 || memcmp(image, "\177ELF", 4) == 0;
}

/* An image is one of the emulated NVRTC, which names an object of the host's, or a real one, which stands for the library's kernels. */
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    static const char magic[] = "emulated kernels: ";
    EMULATED_ENTER(context);
    (void)context;
    void *object = NULL;
    if (emulated_fails("module"))
        return emulated_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (memcmp(image, magic, sizeof magic - 1) == 0)
        object = dlopen((const char *)image + sizeof magic - 1, RTLD_NOW | RTLD_LOCAL);
    else if (is_real_image(image))
        object = library_kernels();
    if (!object) {
        const char *why = dlerror();
        fprintf(stderr, "emulated GPU: cuModuleLoadData: %s\n",
                why ? why : "neither a real image nor one of the emulated NVRTC");
        return emulated_leave(CUDA_ERROR_INVALID_IMAGE);
    }
    *module = calloc(1, sizeof **module);
    if (!*module)
        emulated_violation("no memory");
    (*module)->object = object;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
    (void)n;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

/* As the driver, when the device has done its work: objects stay loaded, for what is in streams still. */
CUresult cuModuleUnload(CUmodule module)
{
    emulated_lock();
    emulated_finish(NULL, NULL);
    for (struct CUfunc_st *f = module->functions, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(module);
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char symbol[300];
    EMULATED_ENTER(context);
    (void)context;
    for (struct CUfunc_st *f = module->functions; f; f = f->next)
        if (strcmp(f->kernel->name, name) == 0) {
            *function = f;
            return emulated_leave(CUDA_SUCCESS);
        }
    snprintf(symbol, sizeof symbol, "%s__emulated", name);
    const emulated_kernel *kernel = dlsym(module->object, symbol);
    if (!kernel)
        return emulated_leave(CUDA_ERROR_NOT_FOUND);
    struct CUfunc_st *f = calloc(1, sizeof *f);
    if (!f)
        emulated_violation("no memory");
    *f = (struct CUfunc_st){.kernel = kernel, .dynamic = EMULATED_STATIC_SHARED, .next = module->functions};
    *function = module->functions = f;
    return emulated_leave(CUDA_SUCCESS);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK           ? function->kernel->most_threads
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? function->dynamic
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                      ? 32
                                                                            : 0;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_SUCCESS;
    if (value < 0 || value > EMULATED_SHARED)
        return CUDA_ERROR_INVALID_VALUE;
    function->dynamic = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    if (index > 0)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    if (bytes)
        *bytes = function->kernel->task_bytes;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared)
{
    (void)function;
    (void)shared;
    *blocks = threads > 0 ? 2048 / threads : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, CUfunction function, CUoccupancyB2DSize size,
                                          size_t shared, int most)
{
    (void)size;
    (void)shared;
    *threads = most > 0 && most < function->kernel->most_threads ? most : function->kernel->most_threads;
    *blocks = 4 * (2048 / *threads);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                        unsigned tz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
    EMULATED_ENTER(context);
    (void)context;
    if (emulated_fails("launch_call"))
        return emulated_leave(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    return emulated_leave(
        emulated_submit(stream, emulated_work_kernel(function, (emulated_size){bx, by, bz}, (emulated_size){tx, ty, tz},
                                                     shared, parameters, extra)));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra)
{
    return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                          c->sharedMemBytes, c->hStream, parameters, extra);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    EMULATED_ENTER(context);
    (void)context;
    return emulated_leave(emulated_submit(stream, emulated_work_host(function, argument)));
}

/* -- finding functions ------------------------------------------------------------------------------------------------------------------------ */

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    static const char *const suffixes[] = {"_v4", "_v3", "_v2", "WithFlags", ""};
    char name[200];
    Dl_info here;
    (void)version;
    (void)flags;
    *function = NULL;
    void *self = dladdr((void *)library_kernels, &here) ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    for (int k = 0; self && !*function && k < 5; k++) {
        snprintf(name, sizeof name, "%s%s", symbol, suffixes[k]);
        *function = dlsym(self, name);
    }
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* -- the end of the process ------------------------------------------------------------------------------------------------------------------- */

/* EMULATED_LEAKS=1: what was made and not given back fails the process. */
static void __attribute__((destructor)) look_for_leaks(void)
{
    int blocks;
    size_t bytes;
    emulated_memory_leaks(&blocks, &bytes);
    if (!number_of("EMULATED_LEAKS", 0) || (blocks == 0 && emulated_streams_left() == 0))
        return;
    fprintf(stderr, "emulated GPU: at exit %d blocks of memory (%zu bytes) and %d streams are left\n", blocks, bytes,
            emulated_streams_left());
    fflush(NULL);
    extern void _exit(int) __attribute__((noreturn));
    _exit(97);
}
