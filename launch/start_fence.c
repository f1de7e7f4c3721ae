/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Init ends with a fence of all processes, so that no message reaches a process before it can take messages. Slurm's plugin for PMIx
 * has two kinds of fences. The one without data goes along a tree, and in Slurm 22.05, where the step has fewer nodes than TreeWidth (50
 * unless slurm.conf says otherwise), that tree ends on each node: the fence is one of the node's processes only. Open MPI 4.1 then calls
 * a null pointer in a process that is behind by some milliseconds and gets a message from another node. The fence that collects data goes
 * around a ring of all nodes, so one such fence after MPI_Init is what its own should have been. SLURM_PMIX_FENCE=ring in the
 * environment of srun makes all fences rings (docs/start.md); then there is nothing to do here.
 *
 * PMIx is the library that MPI has loaded, whichever version that is; what is used of it is the same in versions 2 to 5. */
#include "start_fence.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PMIX_FLAG = 1 }; /* PMIX_BOOL: the type of a value */

typedef struct pmix_request { /* pmix_info_t */
    char key[512];
    uint32_t directives;
    struct {
        uint16_t type;
        union {
            bool flag;
            uint64_t widest[8];
        } data;
    } value;
} pmix_request;

typedef int fence_function(const void *processes, size_t n_processes, const pmix_request *requests, size_t n_requests);

static bool needs_fence(void)
{
    const char *job = getenv("PMIX_NAMESPACE"), *nodes = getenv("SLURM_STEP_NUM_NODES"),
               *kind = getenv("SLURM_PMIX_FENCE");
    return job && strncmp(job, "slurm.pmix.", 11) == 0 && nodes && atoi(nodes) > 1 &&
           !(kind && strcmp(kind, "ring") == 0);
}

void oly_start_fence(void)
{
    if (!needs_fence())
        return;
    void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD), *found;
    fence_function *fence;
    if (!library)
        return;
    found = dlsym(library, "PMIx_Fence");
    memcpy(&fence, &found, sizeof fence);
    pmix_request collect = {.key = "pmix.collect", .value = {.type = PMIX_FLAG, .data = {.flag = true}}};
    if (fence)
        fence(NULL, 0, &collect, 1); /* should it fail, the job is as safe as before */
    dlclose(library);
}
