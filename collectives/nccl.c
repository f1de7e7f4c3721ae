/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding NCCL. See nccl.h. */
#include "nccl.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

static oly_nccl found;
static char reason[300];

/* All functions, by their names less "nccl". */
static const struct {
    const char *name;
    size_t at;
} functions[] = {{"ncclGetVersion", offsetof(oly_nccl, GetVersion)},
                 {"ncclGetUniqueId", offsetof(oly_nccl, GetUniqueId)},
                 {"ncclCommInitRankConfig", offsetof(oly_nccl, CommInitRankConfig)},
                 {"ncclCommGetAsyncError", offsetof(oly_nccl, CommGetAsyncError)},
                 {"ncclCommFinalize", offsetof(oly_nccl, CommFinalize)},
                 {"ncclCommDestroy", offsetof(oly_nccl, CommDestroy)},
                 {"ncclCommAbort", offsetof(oly_nccl, CommAbort)},
                 {"ncclGroupStart", offsetof(oly_nccl, GroupStart)},
                 {"ncclGroupEnd", offsetof(oly_nccl, GroupEnd)},
                 {"ncclSend", offsetof(oly_nccl, Send)},
                 {"ncclRecv", offsetof(oly_nccl, Recv)},
                 {"ncclAllReduce", offsetof(oly_nccl, AllReduce)},
                 {"ncclGetErrorString", offsetof(oly_nccl, GetErrorString)}};

static bool fill(void *library)
{
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        void *function = dlsym(library, functions[k].name);
        if (!function) {
            snprintf(reason, sizeof reason, "libnccl.so.2 has no %s: NCCL 2.14 or later is needed", functions[k].name);
            return false;
        }
        *(void **)((char *)&found + functions[k].at) = function;
    }
    if (found.GetVersion(&found.version) != OLY_NCCL_SUCCESS || found.version < OLY_NCCL_LEAST) {
        snprintf(reason, sizeof reason, "NCCL is version %d.%d; 2.14 or later is needed", found.version / 10000,
                 found.version / 100 % 100);
        return false;
    }
    return true;
}

const oly_nccl *oly_nccl_find(const char **why)
{
    static bool looked, there;
    if (!looked) {
        void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        const char *error = library ? NULL : dlerror();
        if (!library)
            snprintf(reason, sizeof reason, "%s", error ? error : "libnccl.so.2 cannot be opened");
        there = library && fill(library);
        looked = true;
    }
    *why = there ? "" : reason;
    return there ? &found : NULL;
}
