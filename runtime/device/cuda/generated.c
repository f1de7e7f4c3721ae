/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of generated kernels and the thread that compiles them. See generated.h. Modules stay loaded until the platform stops, so that
 * functions may be used without a lock; when the table is full, further kernels are done without. */
#include "device/cuda/generated.h"
#include "device/cuda/modules.h"
#include "core/hash.h"
#include "core/option.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/nvrtc.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LEAST_WORK: what a launch counts as at least, so that small groups are compiled when they are used for the third time. */
enum { LISTS = 1024, MOST = 2048, LEAST_WORK = 100000, WITHOUT_ASKING = 48 << 10 };

enum { COUNTING, WAITING, COMPILED, FAILED };

typedef struct loaded {
    struct loaded *next;
    const oly_gpu *gpu;
    CUmodule module;
    CUfunction function;
    unsigned shared; /* bytes that launches may ask for */
} loaded;

typedef struct kernel {
    struct kernel *next, *after; /* in its list; in the queue */
    uint64_t hash;
    int arch, state;
    double work;
    bool read; /* from disk; a second time it is compiled */
    char *text, *image;
    size_t image_bytes;
    loaded *loaded;
    char name[64];
    size_t key_bytes;
    char key[];
} kernel;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    kernel *list[LISTS], *first, *last; /* the queue */
    int n;
    bool started, stopping, told;
    pthread_t worker;
    oly_cuda_generated_counts counts;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* -- the worker -------------------------------------------------------------------------------------------------------------- */

static void tell(const char *why)
{
    if (!all.told && why)
        fprintf(stderr, "olympus: a kernel cannot be compiled, and is interpreted: %.400s\n",
                *why ? why : "NVRTC gives no reason");
    all.told = true;
}

/* Everything the image depends on; NULL: no NVRTC, or no memory. */
static char *disk_key(const kernel *k, size_t *bytes)
{
    char description[512];
    oly_nvrtc_description(k->arch, description, sizeof description);
    if (!*description)
        return NULL;
    *bytes = strlen(description) + strlen(k->text);
    char *key = malloc(*bytes + 1);
    if (key)
        snprintf(key, *bytes + 1, "%s%s", description, k->text);
    return key;
}

/* Without the lock: a kernel that waits is the worker's. */
static bool make_image(kernel *k, char **why)
{
    size_t bytes = 0;
    char *key = disk_key(k, &bytes);
    bool again = k->read;
    *why = NULL;
    if (!key)
        return false;
    k->read = !again && oly_kernel_cache_read(key, bytes, &k->image, &k->image_bytes);
    if (!k->read && oly_nvrtc_compile(k->arch, k->text, &k->image, &k->image_bytes, why))
        oly_kernel_cache_write(key, bytes, k->image, k->image_bytes);
    free(key);
    return k->image != NULL;
}

static void *work(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&all.lock);
    while (!all.stopping) {
        kernel *k = all.first;
        char *why;
        if (!k) {
            pthread_cond_wait(&all.changed, &all.lock);
            continue;
        }
        all.first = k->after;
        pthread_mutex_unlock(&all.lock);
        bool made = make_image(k, &why);
        pthread_mutex_lock(&all.lock);
        k->state = made ? COMPILED : FAILED;
        oly_cuda_new_epoch(); /* recorded launches may use it */
        *(made ? k->read ? &all.counts.read : &all.counts.compiled : &all.counts.failed) += 1;
        tell(why);
        free(why);
        pthread_cond_broadcast(&all.changed);
    }
    pthread_mutex_unlock(&all.lock);
    return NULL;
}

/* Signals are the program's threads'. */
static bool start_worker(void)
{
    sigset_t every, before;
    if (all.started)
        return true;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    all.started = pthread_create(&all.worker, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return all.started;
}

static void enqueue(kernel *k)
{
    k->after = NULL;
    k->state = WAITING;
    if (all.first)
        all.last->after = k;
    else
        all.first = k;
    all.last = k;
    pthread_cond_broadcast(&all.changed);
}

/* -- the table ------------------------------------------------------------------------------------------------------------------ */

static void release_kernel(kernel *k)
{
    for (loaded *l; (l = k->loaded);) {
        k->loaded = l->next;
        if (oly_gpu_enter(l->gpu) == OLY_OK) {
            oly_driver.cuModuleUnload(l->module);
            oly_gpu_leave();
        }
        free(l);
    }
    free(k->text);
    free(k->image);
    free(k);
}

/* Those that were not used often enough to be compiled. */
static void forget_rare(void)
{
    for (int i = 0; i < LISTS; i++)
        for (kernel **at = &all.list[i], *k; (k = *at);) {
            if (k->state != COUNTING) {
                at = &k->next;
                continue;
            }
            *at = k->next;
            release_kernel(k);
            all.n--;
        }
}

static kernel *find(const oly_gpu *g, const oly_cuda_source *s)
{
    int arch = 10 * g->major + g->minor;
    uint64_t hash = oly_hash((uint64_t)arch, s->key, s->key_bytes);
    kernel **list = &all.list[hash % LISTS];
    for (kernel *k = *list; k; k = k->next)
        if (k->hash == hash && k->arch == arch && k->key_bytes == s->key_bytes &&
            memcmp(k->key, s->key, s->key_bytes) == 0)
            return k;
    if (all.n == MOST)
        forget_rare();
    kernel *k = all.n == MOST ? NULL : calloc(1, sizeof *k + s->key_bytes);
    if (!k)
        return NULL;
    k->hash = hash;
    k->arch = arch;
    k->key_bytes = s->key_bytes;
    memcpy(k->key, s->key, s->key_bytes);
    snprintf(k->name, sizeof k->name, "%s", s->kernel);
    k->next = *list;
    *list = k;
    all.n++;
    return k;
}

/* Asks for the kernel when there has been enough work for it. */
static void count(kernel *k, const oly_cuda_source *s)
{
    k->work += s->work > LEAST_WORK ? s->work : LEAST_WORK;
    if (k->work < (double)oly_option.compile_after)
        return;
    if (!start_worker() || !(k->text = s->text(s->of))) {
        k->state = FAILED;
        return;
    }
    enqueue(k);
}

/* A file of an earlier process that the driver refuses is made again, once. */
static void refuse(kernel *k)
{
    free(k->image);
    k->image = NULL;
    if (k->read && k->loaded == NULL) {
        all.counts.read--;
        enqueue(k);
        return;
    }
    all.counts.failed++;
    k->state = FAILED;
}

/* Launches with more than every kernel may have, ask first. */
static CUfunction allow(loaded *l, unsigned shared)
{
    if (shared > l->shared &&
        oly_driver.cuFuncSetAttribute(l->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared) !=
            CUDA_SUCCESS)
        return NULL;
    l->shared = shared > l->shared ? shared : l->shared;
    return l->function;
}

static CUfunction load(const oly_gpu *g, kernel *k, unsigned shared)
{
    for (loaded *l = k->loaded; l; l = l->next)
        if (l->gpu == g)
            return allow(l, shared);
    loaded *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->gpu = g;
    l->shared = WITHOUT_ASKING;
    bool there = oly_driver.cuModuleLoadData(&l->module, k->image) == CUDA_SUCCESS;
    if (there && oly_driver.cuModuleGetFunction(&l->function, l->module, k->name) == CUDA_SUCCESS) {
        l->next = k->loaded;
        k->loaded = l;
        return allow(l, shared);
    }
    if (there)
        oly_driver.cuModuleUnload(l->module);
    free(l);
    refuse(k);
    return NULL;
}

CUfunction oly_cuda_generated_function(const oly_gpu *g, const oly_cuda_source *s)
{
    CUfunction f = NULL;
    pthread_mutex_lock(&all.lock);
    kernel *k = find(g, s);
    if (k && k->state == COUNTING)
        count(k, s);
    if (k && k->state == COMPILED)
        f = load(g, k, s->shared);
    while (k && !f && k->state == WAITING && oly_option.compile_after == 0) {
        pthread_cond_wait(&all.changed, &all.lock);
        if (k->state == COMPILED)
            f = load(g, k, s->shared);
    }
    all.counts.used += f != NULL;
    pthread_mutex_unlock(&all.lock);
    return f;
}

void oly_cuda_generated_stop(void)
{
    pthread_mutex_lock(&all.lock);
    bool started = all.started;
    all.stopping = true;
    pthread_cond_broadcast(&all.changed);
    pthread_mutex_unlock(&all.lock);
    if (started)
        pthread_join(all.worker, NULL);
    for (int i = 0; i < LISTS; i++)
        for (kernel *k; (k = all.list[i]);) {
            all.list[i] = k->next;
            release_kernel(k);
        }
    all.n = 0;
    all.first = NULL;
    all.started = all.stopping = false;
}

oly_cuda_generated_counts oly_cuda_generated_counted(void)
{
    pthread_mutex_lock(&all.lock);
    oly_cuda_generated_counts c = all.counts;
    pthread_mutex_unlock(&all.lock);
    return c;
}
