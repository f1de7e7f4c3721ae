/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of its kernels OpenBLAS uses: see openblas.h. A library that is linked chooses before any of our code runs, and so the
 * choice is made again: OpenBLAS built for several processors (DYNAMIC_ARCH) exports the functions that make it. */
#include "openblas.h"
#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Absent in an OpenBLAS built for one processor. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern int blas_thread_shutdown_(void) __attribute__((weak)); /* absent in an OpenBLAS without threads */
extern char gotoblas_SKYLAKEX __attribute__((weak)), gotoblas_HASWELL __attribute__((weak)),
    gotoblas_ZEN __attribute__((weak));

static bool is_one_of(const char *core, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcasecmp(core, names[i]) == 0)
            return true;
    return false;
}

const char *oly_openblas_better(const char *core, bool has_avx2, bool has_avx512)
{
    static const char *const avx512[] = {"SkylakeX", "Cooperlake", "Sapphirerapids"};
    static const char *const avx2[] = {"Haswell", "Zen", "Excavator"};
    if (is_one_of(core, avx512, 3))
        return NULL;
    if (has_avx512)
        return "SkylakeX";
    return has_avx2 && !is_one_of(core, avx2, 3) ? "Haswell" : NULL;
}

static bool has_kernels(const char *core)
{
    if (strcasecmp(core, "SkylakeX") == 0)
        return &gotoblas_SKYLAKEX;
    if (strcasecmp(core, "Zen") == 0)
        return &gotoblas_ZEN;
    return strcasecmp(core, "Haswell") == 0 && &gotoblas_HASWELL;
}

bool oly_openblas_use(const char *core)
{
    if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || !has_kernels(core))
        return false;
    const char *named = getenv("OPENBLAS_CORETYPE");
    char *before = named ? strdup(named) : NULL;
    if ((named && !before) || setenv("OPENBLAS_CORETYPE", core, 1) != 0) {
        free(before);
        return false;
    }
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    if (before)
        setenv("OPENBLAS_CORETYPE", before, 1);
    else
        unsetenv("OPENBLAS_CORETYPE");
    free(before);
    return strcasecmp(openblas_get_corename(), core) == 0;
}

void oly_openblas_choose(void)
{
#ifdef __x86_64__
    const char *named = getenv("OPENBLAS_CORETYPE");
    if (named && *named)
        return;
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
    const char *better = oly_openblas_better(openblas_get_corename(), avx2, avx512);
    if (better)
        oly_openblas_use(better);
#endif
}

/* OpenBLAS starts a thread for every processor when it is loaded, which all look for work for some 30 ms before they sleep: on a node with as many
 * ranks as processors that is most of a short program's time. They would come back with the first product on several threads. */
void oly_openblas_end_threads(void)
{
    openblas_set_num_threads(1);
    if (blas_thread_shutdown_)
        blas_thread_shutdown_();
}
