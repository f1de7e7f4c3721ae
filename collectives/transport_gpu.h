/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between the memories of GPUs through MPI, for transport.c and transport_nccl.c only. */
#ifndef OLY_COLLECTIVES_TRANSPORT_GPU_H
#define OLY_COLLECTIVES_TRANSPORT_GPU_H
#include "transport.h"
#include "core/gpu_access.h"

/* Before exchanges are made. Collective over all ranks, whose platforms are the same. Packed messages are pinned from here on.
 * aware: MPI takes memory of GPUs. fails OLY_MEMORY, OLY_MPI. */
oly_status oly_gpu_messages_start(const oly_gpu_access *gpus);
void oly_gpu_messages_aware(bool aware);
void oly_gpu_messages_end(void); /* when no exchange is left */

/* A first message with its payload, which is small: packed, or unpacked, when these return. */
oly_status oly_gpu_pack_first(const oly_chunk *c);
oly_status oly_gpu_unpack_first(const oly_chunk *c);

/* Its chunks are staged in pinned memory, each sent as soon as it is packed; or, where MPI takes memory of GPUs, sent from there. */
extern const oly_transport oly_transport_gpu;
enum { OLY_STAGED_CHUNK_BYTES = 2 << 20 }; /* long enough for the wire, and short enough to overlap */
#endif
