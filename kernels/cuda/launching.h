/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by launch*.c. Private to kernels/cuda. */
#ifndef OLY_CUDA_LAUNCHING_H
#define OLY_CUDA_LAUNCHING_H
#include "cuda/launch.h"
#include "cuda/tasks.h"

/* Blocks for n elements: at most as many as keep the device busy, for kernels whose threads go on to further elements. */
unsigned oly_cuda_blocks(const oly_cuda_launcher *l, int64_t n, int64_t per_block);
oly_status oly_cuda_start(const oly_cuda_launcher *l, const char *module, const char *kernel, unsigned blocks,
                          unsigned threads, const void *task, size_t bytes);
/* Of bools: or, and. */
oly_combiner oly_cuda_combiner(oly_combiner c, oly_dtype dtype);
/* One of the names for elements of 1, 2, 4, 8, 16 bytes: "name_4". */
const char *oly_cuda_sized(const char *const names[5], size_t bytes);
#define OLY_CUDA_SIZED(name)                                                                                           \
    (const char *const[5])                                                                                             \
    {                                                                                                                  \
        name "1", name "2", name "4", name "8", name "16"                                                              \
    }
/* Scratch memory for the results of the blocks of 4096 elements of each of a reduction's rows (`results` of all rows), in the type in which they
 * are combined, and for as many results of the next stage; and the launches that combine them (launch_reduce.c). */
oly_status oly_cuda_reduce_scratch(const oly_cuda_launcher *l, const oly_reduce_task *t, int64_t results, void **at,
                                   void **between);
oly_status oly_cuda_reduce_joined(const oly_cuda_launcher *l, const oly_reduce_task *t, void *at, void *between,
                                  void *out);
#endif
