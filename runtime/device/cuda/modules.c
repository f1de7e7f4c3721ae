/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and their functions. See modules.h. */
#include "device/cuda/modules.h"
#include "device/cuda/embedded.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A function found before: names are constants of the program, compared by address first. */
typedef struct found {
    struct found *next;
    const oly_gpu *gpu;
    char kernel[64];
    unsigned shared; /* allowed so far */
    CUfunction function;
} found;

typedef struct loaded {
    struct loaded *next;
    const oly_gpu *gpu;
    char name[64];
    CUmodule module;
} loaded;

enum { LISTS = 256 };
static struct {
    pthread_mutex_t lock;
    found *functions[LISTS];
    loaded *modules;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned list_of(const oly_gpu *g, const char *kernel)
{
    unsigned h = (unsigned)g->number;
    for (; *kernel; kernel++)
        h = h * 31 + (unsigned char)*kernel;
    return h % LISTS;
}

static const oly_embedded *image_of(const char *module)
{
    for (const oly_embedded *e = oly_cuda_images; e->name; e++)
        if (strcmp(e->name, module) == 0)
            return e;
    return NULL;
}

static oly_status load_locked(const oly_gpu *g, const char *name, CUmodule *module)
{
    for (const loaded *l = all.modules; l; l = l->next)
        if (l->gpu == g && strcmp(l->name, name) == 0) {
            *module = l->module;
            return OLY_OK;
        }
    const oly_embedded *image = image_of(name);
    if (!image)
        return oly_fail(OLY_NO_KERNEL, "%s: the library has no image of the kernels \"%s\"", g->label, name);
    loaded *l = oly_calloc(1, sizeof *l);
    if (!l)
        return oly_out_of_memory(sizeof *l, "a module of kernels");
    CUresult result = oly_driver.cuModuleLoadData(&l->module, image->begin);
    if (result != CUDA_SUCCESS) {
        oly_release(l);
        if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
            return oly_fail(OLY_NO_KERNEL,
                            "%s has compute capability %d.%d, for which the library was not built (CUDA_ARCHS)",
                            g->label, g->major, g->minor);
        return oly_cuda_check(result, "cuModuleLoadData", g->label);
    }
    snprintf(l->name, sizeof l->name, "%s", name);
    l->gpu = g;
    l->next = all.modules;
    all.modules = l;
    *module = l->module;
    return OLY_OK;
}

static oly_status find_locked(const oly_gpu *g, const char *module, const char *kernel, found **f)
{
    found **list = &all.functions[list_of(g, kernel)];
    for (*f = *list; *f; *f = (*f)->next)
        if ((*f)->gpu == g && strcmp((*f)->kernel, kernel) == 0)
            return OLY_OK;
    CUmodule m = NULL;
    CUfunction function;
    OLY_TRY(load_locked(g, module, &m));
    OLY_TRY(oly_cuda_check(oly_driver.cuModuleGetFunction(&function, m, kernel), kernel, g->label));
    if (!(*f = oly_calloc(1, sizeof **f)))
        return oly_out_of_memory(sizeof **f, "a kernel");
    snprintf((*f)->kernel, sizeof(*f)->kernel, "%s", kernel);
    (*f)->gpu = g;
    (*f)->function = function;
    (*f)->next = *list;
    *list = *f;
    return OLY_OK;
}

oly_status oly_cuda_function(const oly_gpu *g, const char *module, const char *kernel, unsigned shared,
                             CUfunction *function)
{
    enum { WITHOUT_ASKING = 48 << 10 };
    found *f = NULL;
    pthread_mutex_lock(&all.lock);
    oly_status st = find_locked(g, module, kernel, &f);
    if (st == OLY_OK && shared > WITHOUT_ASKING && shared > f->shared) {
        st = oly_cuda_check(
            oly_driver.cuFuncSetAttribute(f->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared),
            "cuFuncSetAttribute", g->label);
        f->shared = shared;
    }
    if (st == OLY_OK)
        *function = f->function;
    pthread_mutex_unlock(&all.lock);
    return st;
}

/* Before contexts are given back. */
void oly_cuda_modules_stop(void)
{
    for (int k = 0; k < LISTS; k++)
        for (found *f; (f = all.functions[k]);) {
            all.functions[k] = f->next;
            oly_release(f);
        }
    for (loaded *l; (l = all.modules);) {
        all.modules = l->next;
        if (oly_gpu_enter(l->gpu) == OLY_OK) {
            oly_driver.cuModuleUnload(l->module);
            oly_gpu_leave();
        }
        oly_release(l);
    }
}
