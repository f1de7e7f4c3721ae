/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's functions, found in libnccl.so.2 when they are first needed: Olympus is built without NCCL and runs without it. For
 * transport_nccl.c only. */
#ifndef OLY_COLLECTIVES_NCCL_H
#define OLY_COLLECTIVES_NCCL_H
#include <stddef.h>

/* As nccl.h declares them. */
typedef struct oly_nccl_id {
    char bytes[128];
} oly_nccl_id;
typedef struct oly_nccl_config { /* of version 2.14: later ones take it and fill in the rest */
    size_t size;
    unsigned magic, version;
    int blocking;
} oly_nccl_config;
#define OLY_NCCL_CONFIG ((oly_nccl_config){sizeof(oly_nccl_config), 0xcafebeef, 21400, 0})
enum {
    OLY_NCCL_SUCCESS = 0,
    OLY_NCCL_IN_PROGRESS = 7,
    OLY_NCCL_BYTES = 0 /* ncclInt8 */,
    OLY_NCCL_SUM = 0,
    OLY_NCCL_LEAST = 21400
};
typedef struct oly_nccl_comm oly_nccl_comm;

typedef struct oly_nccl {
    int version; /* 22809: 2.28.9 */
    int (*GetVersion)(int *version);
    int (*GetUniqueId)(oly_nccl_id *id);
    int (*CommInitRankConfig)(oly_nccl_comm **comm, int n, oly_nccl_id id, int rank, oly_nccl_config *config);
    int (*CommGetAsyncError)(oly_nccl_comm *comm, int *error);
    int (*CommFinalize)(oly_nccl_comm *comm);
    int (*CommDestroy)(oly_nccl_comm *comm);
    int (*CommAbort)(oly_nccl_comm *comm);
    int (*GroupStart)(void);
    int (*GroupEnd)(void);
    int (*Send)(const void *from, size_t count, int type, int peer, oly_nccl_comm *comm, void *stream);
    int (*Recv)(void *to, size_t count, int type, int peer, oly_nccl_comm *comm, void *stream);
    int (*AllReduce)(const void *from, void *to, size_t count, int type, int operation, oly_nccl_comm *comm,
                     void *stream);
    const char *(*GetErrorString)(int result);
} oly_nccl;

/* NULL: there is none that will do, and why. Looks for it once. */
const oly_nccl *oly_nccl_find(const char **why);
#endif
