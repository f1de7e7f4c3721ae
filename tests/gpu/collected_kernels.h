/* SPDX-License-Identifier: BSD-3-Clause */
/* Generated kernels compiled for the host: the texts that launches ask for become one program of as many name spaces, compiled by the
 * emulated NVRTC, and then the launches run in their order. Included by tests/gpu/test_gpu_*.c. */
#ifndef COLLECTED_KERNELS_H
#define COLLECTED_KERNELS_H
#include "kernel_launcher.h"
#include "core/text.h"
#include "device/cuda/nvrtc.h"

/* A library built without CUDA has none. */
extern __typeof__(oly_nvrtc_compile) oly_nvrtc_compile __attribute__((weak));

enum { MOST_COLLECTED = 1024 };
static struct {
    oly_text text; /* one program of all kernels: they are compiled together */
    struct {
        void *key;
        size_t bytes;
    } kernel[MOST_COLLECTED];
    struct {
        int kernel;
        oly_cuda_launch *launch;
    } launch[MOST_COLLECTED];
    int n_kernels, n_launches;
} collected;

static void collected_begin(void)
{
    oly_text_free(&collected.text);
    for (; collected.n_launches > 0; collected.n_launches--)
        free(collected.launch[collected.n_launches - 1].launch);
    for (; collected.n_kernels > 0; collected.n_kernels--)
        free(collected.kernel[collected.n_kernels - 1].key);
    oly_text_add(&collected.text, "#include \"element.h\"\n");
}

static int collected_kernel(const oly_cuda_generated *g, const char *name)
{
    for (int k = 0; k < collected.n_kernels; k++)
        if (collected.kernel[k].bytes == g->key_bytes && !memcmp(collected.kernel[k].key, g->key, g->key_bytes))
            return k;
    int n = collected.n_kernels++;
    char *text = g->text(g->of), *body = strchr(text, '\n');
    assert_true(n < MOST_COLLECTED && !strncmp(text, "#include \"element.h\"", 20));
    collected.kernel[n].bytes = g->key_bytes;
    collected.kernel[n].key = malloc(g->key_bytes);
    memcpy(collected.kernel[n].key, g->key, g->key_bytes);
    oly_text_add(&collected.text, "#define %s %s_%d\nnamespace k%d {\n%s}\n#undef %s\n", name, name, n, n, body, name);
    free(text);
    return n;
}

/* Takes the place of the runtime. */
static oly_status collect(void *context, const oly_cuda_generated *g, const oly_cuda_launch *launch, bool *launched)
{
    (void)context;
    assert_true(collected.n_launches < MOST_COLLECTED);
    oly_cuda_launch *copy = malloc(sizeof *copy);
    *copy = *launch;
    collected.launch[collected.n_launches].kernel = collected_kernel(g, launch->kernel);
    collected.launch[collected.n_launches++].launch = copy;
    *launched = true;
    return OLY_OK;
}
static const oly_cuda_launcher collecting = {
    .processors = 2, .launch = run_launch, .constant = keep_constant, .scratch = keep, .generated = collect};

static void *collected_compile(void)
{
    char path[4200], *image = NULL, *why = NULL;
    size_t bytes;
    snprintf(path, sizeof path, "%s/libnvrtc.so.13", emulated_folder());
    if (!oly_nvrtc_compile || !dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
        printf("skipped: built without CUDA, or no emulated NVRTC\n");
        skip();
    }
    if (!oly_nvrtc_compile(90, collected.text.chars, &image, &bytes, &why))
        fail_msg("%s", why ? why : "no compiler");
    assert_int_equal(strncmp(image, "emulated kernels: ", 18), 0);
    void *object = dlopen(image + 18, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        fail_msg("%s", dlerror());
    free(image);
    return object;
}

/* Compiles the kernels and runs the launches. */
static void collected_run(void)
{
    void *object = collected_compile();
    for (int k = 0; k < collected.n_launches; k++) {
        char name[128];
        const oly_cuda_launch *l = collected.launch[k].launch;
        snprintf(name, sizeof name, "%s_%d__emulated", l->kernel, collected.launch[k].kernel);
        const emulated_kernel *kernel = dlsym(object, name);
        if (!kernel)
            fail_msg("%s", dlerror());
        assert_int_equal(kernel->task_bytes, l->task_bytes);
        run_emulated(kernel, l->task, (emulated_size){l->blocks, 1, 1}, (emulated_size){l->threads, 1, 1}, l->shared);
    }
}
#endif
