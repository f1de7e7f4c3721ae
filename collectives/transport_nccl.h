/* SPDX-License-Identifier: BSD-3-Clause */
/* The start and end of the transport through NCCL, for transport.c only. */
#ifndef OLY_COLLECTIVES_TRANSPORT_NCCL_H
#define OLY_COLLECTIVES_TRANSPORT_NCCL_H
#include "core/gpu_access.h"

/* Makes the communicators of all GPUs of the job. Collective over all ranks, whose platforms are the same. *started false: it cannot be
 * used here, `why` says why, the same on all ranks but for its own. fails OLY_TIMEOUT, OLY_MPI, OLY_OUT_OF_MEMORY. */
oly_status oly_nccl_start(const oly_gpu_access *gpus, bool *started, char *why, size_t room);
/* After a trial that has failed on some rank: no kernel of NCCL waits any more. */
void oly_nccl_give_up(void);
/* Gives everything back, when no exchange is left. Collective, unless something has failed. */
void oly_nccl_end(void);
#endif
