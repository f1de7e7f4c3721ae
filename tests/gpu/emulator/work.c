/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams and nodes of graphs do: kernels, copies, sets, functions of the host, memory that begins and ends. See driver.h. */
#include "driver.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void emulated_work_drop(emulated_work *work)
{
    if (work && work->drop)
        work->drop(work);
    else
        free(work);
}

static void *make(size_t bytes, const char *name, bool (*run)(emulated_work *, CUcontext))
{
    emulated_work *work = calloc(1, bytes);
    if (!work)
        emulated_violation("no memory");
    work->name = name;
    work->run = run;
    work->bytes = bytes;
    return work;
}

/* -- kernels ------------------------------------------------------------------------------------------------------------------------ */

typedef struct kernel_work {
    emulated_work work;
    const emulated_kernel *kernel;
    emulated_size blocks, threads;
    size_t shared;
    _Alignas(64) char task[4096];
} kernel_work;

static bool run_kernel(emulated_work *work, CUcontext context)
{
    kernel_work *k = (kernel_work *)work;
    if (emulated_fails("launch")) {
        context->error = CUDA_ERROR_LAUNCH_FAILED;
        return true;
    }
    if (emulated_is_idle())
        return true;
    emulated_memory_open(context);
    emulated_launch(k->kernel, k->task, k->blocks, k->threads, k->shared);
    emulated_memory_close();
    return true;
}

emulated_work *emulated_work_kernel(CUfunction function, emulated_size blocks, emulated_size threads, unsigned shared,
                                    void **parameters, void **extra)
{
    const emulated_kernel *kernel = function->kernel;
    const void *task = parameters ? parameters[0] : NULL;
    for (int k = 0; extra && extra[k] != CU_LAUNCH_PARAM_END; k += 2) {
        if (extra[k] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            task = extra[k + 1];
        else if (extra[k] == CU_LAUNCH_PARAM_BUFFER_SIZE && *(size_t *)extra[k + 1] != kernel->task_bytes)
            emulated_violation("kernel %s takes a task of %zu bytes and is given %zu", kernel->name, kernel->task_bytes,
                               *(size_t *)extra[k + 1]);
    }
    if (!task)
        emulated_violation("kernel %s is launched without a task", kernel->name);
    if (shared > (unsigned)function->dynamic)
        emulated_violation(
            "kernel %s is launched with %u bytes of shared memory, and is allowed %d (cuFuncSetAttribute)",
            kernel->name, shared, function->dynamic);
    kernel_work *work = make(sizeof *work, kernel->name, run_kernel);
    work->kernel = kernel;
    work->blocks = blocks;
    work->threads = threads;
    work->shared = shared;
    memcpy(work->task, task, kernel->task_bytes);
    return &work->work;
}

bool emulated_work_is_kernel(const emulated_work *work)
{
    return work->run == run_kernel;
}

CUresult emulated_work_kernel_update(emulated_work *work, emulated_work *with)
{
    if (!emulated_work_is_kernel(work) || !emulated_work_is_kernel(with))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(work, with, sizeof(kernel_work));
    free(with);
    return CUDA_SUCCESS;
}

/* -- copies --------------------------------------------------------------------------------------------------------------------------- */

typedef struct copy_work {
    emulated_work work;
    emulated_copy copy;
} copy_work;

static bool run_copy(emulated_work *work, CUcontext context)
{
    const emulated_copy *c = &((copy_work *)work)->copy;
    if (emulated_fails("copy")) {
        context->error = CUDA_ERROR_UNKNOWN;
        return true;
    }
    if (emulated_slow("staged") > 0 && c->bytes >= 1 << 15 && emulated_pinned_has(c->to))
        usleep((useconds_t)emulated_slow("staged") * 1000);
    for (size_t layer = 0; layer < c->layers; layer++)
        for (size_t row = 0; row < c->rows; row++) {
            char *to = emulated_memory_at("a copy", c->to + layer * c->to_layer + row * c->to_pitch, c->bytes, true);
            const char *from =
                emulated_memory_at("a copy", c->from + layer * c->from_layer + row * c->from_pitch, c->bytes, false);
            memmove(to, from, c->bytes);
        }
    return true;
}

static void drop_copy(emulated_work *work)
{
    free(((copy_work *)work)->copy.snapshot);
    free(work);
}

emulated_work *emulated_work_copy(emulated_copy copy)
{
    copy_work *work = make(sizeof *work, "a copy", run_copy);
    work->work.drop = drop_copy;
    work->copy = copy;
    return &work->work;
}

typedef struct set_work {
    emulated_work work;
    CUdeviceptr to;
    uint32_t value;
    int width;
    size_t count;
} set_work;

static bool run_set(emulated_work *work, CUcontext context)
{
    const set_work *s = (set_work *)work;
    (void)context;
    char *to = emulated_memory_at("a set", (void *)s->to, s->count * (size_t)s->width, true);
    for (size_t k = 0; k < s->count; k++)
        memcpy(to + k * (size_t)s->width, &s->value, (size_t)s->width);
    return true;
}

emulated_work *emulated_work_set(CUdeviceptr to, uint32_t value, int width, size_t count)
{
    set_work *work = make(sizeof *work, "a set", run_set);
    work->to = to;
    work->value = value;
    work->width = width;
    work->count = count;
    return &work->work;
}

/* -- the host's functions, memory ----------------------------------------------------------------------------------------------------- */

typedef struct host_work {
    emulated_work work;
    CUhostFn function;
    void *argument;
} host_work;

static bool run_host(emulated_work *work, CUcontext context)
{
    (void)context;
    ((host_work *)work)->function(((host_work *)work)->argument);
    return true;
}

emulated_work *emulated_work_host(CUhostFn function, void *argument)
{
    host_work *work = make(sizeof *work, "a function of the host", run_host);
    work->work.unlocked = true;
    work->function = function;
    work->argument = argument;
    return &work->work;
}

typedef struct memory_work {
    emulated_work work;
    emulated_block *block;
} memory_work;

static bool run_free(emulated_work *work, CUcontext context)
{
    (void)context;
    emulated_memory_free(((memory_work *)work)->block);
    return true;
}

emulated_work *emulated_work_free(emulated_block *block)
{
    memory_work *work = make(sizeof *work, "cuMemFreeAsync", run_free);
    work->work.always = true;
    work->work.bytes = 0;
    work->block = block;
    return &work->work;
}

static bool run_live(emulated_work *work, CUcontext context)
{
    (void)context;
    ((memory_work *)work)->block->state = LIVE;
    return true;
}

emulated_work *emulated_work_live(emulated_block *block)
{
    memory_work *work = make(sizeof *work, "cuMemAllocAsync", run_live);
    work->work.always = true;
    work->work.bytes = 0;
    work->block = block;
    return &work->work;
}
