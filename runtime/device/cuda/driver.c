/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening the driver. See driver.h. */
#include "device/cuda/driver.h"
#include "core/late_library.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

oly_driver_functions oly_driver;

/* The header renames some functions to their latest versions (cuMemcpyAsync is not among them, cuStreamDestroy_v2 is). */
#define TEXT(name) #name
#define NAME(name) TEXT(name),
static const char *const symbols[] = {OLY_DRIVER_FUNCTIONS(NAME)};
_Static_assert(sizeof oly_driver == sizeof symbols, "one pointer for each name");

static struct {
    pthread_mutex_t lock;
    bool tried, there;
    int version;
    char why[400];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A library for one major version of CUDA has kernels that earlier drivers cannot load. */
static bool is_recent(void)
{
    if (oly_driver.cuDriverGetVersion(&driver.version) == CUDA_SUCCESS && driver.version / 1000 >= CUDA_VERSION / 1000)
        return true;
    snprintf(driver.why, sizeof driver.why,
             "the NVIDIA driver is too old: it supports CUDA %d.%d, and this library was built with %d.%d, which needs "
             "a driver for "
             "CUDA %d.0 or later",
             driver.version / 1000, driver.version / 10 % 100, CUDA_VERSION / 1000, CUDA_VERSION / 10 % 100,
             CUDA_VERSION / 1000);
    return false;
}

static bool init(void)
{
    const char *hidden = getenv("CUDA_VISIBLE_DEVICES"), *name = "", *text = "";
    CUresult result = oly_driver.cuInit(0);
    if (result == CUDA_SUCCESS)
        return true;
    if (result == CUDA_ERROR_NO_DEVICE) {
        if (hidden)
            snprintf(driver.why, sizeof driver.why, "CUDA_VISIBLE_DEVICES=\"%s\" hides all GPUs", hidden);
        else
            snprintf(driver.why, sizeof driver.why, "the NVIDIA driver is there, but no GPU");
        return false;
    }
    oly_driver.cuGetErrorName(result, &name);
    oly_driver.cuGetErrorString(result, &text);
    snprintf(driver.why, sizeof driver.why, "the NVIDIA driver does not start: %s (%s)", name ? name : "?",
             text ? text : "?");
    return false;
}

static const char *const files[] = {"libcuda.so.1", NULL};

static bool open_driver(void)
{
    static oly_late_library library = {
        .files = files, .symbols = symbols, .addresses = (void **)&oly_driver, .n = sizeof symbols / sizeof *symbols};
    if (!oly_late_library_open(&library)) {
        snprintf(driver.why, sizeof driver.why, "the NVIDIA driver is missing or too old (%s)", library.reason);
        return false;
    }
    return is_recent() && init();
}

bool oly_cuda_driver_open(const char **why)
{
    pthread_mutex_lock(&driver.lock);
    if (!driver.tried)
        driver.there = open_driver();
    driver.tried = true;
    bool there = driver.there;
    pthread_mutex_unlock(&driver.lock);
    *why = driver.why;
    return there;
}

#if CUDA_VERSION >= 12040
const oly_conditional_functions *oly_cuda_conditionals(void)
{
    static const char *const names[] = {OLY_CONDITIONAL_FUNCTIONS(NAME)};
    static oly_conditional_functions found;
    static oly_late_library library = {
        .files = files, .symbols = names, .addresses = (void **)&found, .n = sizeof names / sizeof *names};
    _Static_assert(sizeof found == sizeof names, "one pointer for each name");
    return driver.version >= 12040 && oly_late_library_open(&library) ? &found : NULL;
}
#endif

int oly_cuda_driver_version(void)
{
    return driver.version;
}

oly_status oly_cuda_check(CUresult result, const char *call, const char *on)
{
    const char *name = NULL, *text = NULL;
    if (result == CUDA_SUCCESS)
        return OLY_OK;
    oly_driver.cuGetErrorName(result, &name);
    oly_driver.cuGetErrorString(result, &text);
    return oly_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? OLY_MEMORY : OLY_DEVICE_FAILED, "%s: %s failed: %s (%s)", on,
                    call, name ? name : "unknown error", text ? text : "");
}
