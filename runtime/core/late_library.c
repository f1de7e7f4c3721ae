/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries opened at their first use. See late_library.h. */
#include "core/late_library.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static bool take_symbols(oly_late_library *l, void *handle)
{
    for (size_t i = 0; i < l->n; i++)
        if (!(l->addresses[i] = dlsym(handle, l->symbols[i]))) {
            snprintf(l->reason, sizeof l->reason, "%s has no %s", l->files[0], l->symbols[i]);
            return false;
        }
    return true;
}

static bool find(oly_late_library *l)
{
    if (dlsym(RTLD_DEFAULT, l->symbols[0]))
        return take_symbols(l, RTLD_DEFAULT);
    for (const char *const *file = l->files; *file; file++) {
        void *handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            return take_symbols(l, handle); /* never closed: what it gave may be in use until the program ends */
        const char *why = dlerror();
        if (file == l->files)
            snprintf(l->reason, sizeof l->reason, "%s", why ? why : "it cannot be opened");
    }
    return false;
}

bool oly_late_library_open(oly_late_library *library)
{
    pthread_mutex_lock(&opening);
    if (!library->tried)
        library->there = find(library);
    library->tried = true;
    bool there = library->there;
    pthread_mutex_unlock(&opening);
    return there;
}
