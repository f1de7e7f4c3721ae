/* SPDX-License-Identifier: BSD-3-Clause */
/* From the tasks of kernel.h and local.h to launches of the CUDA kernels (kernels/cuda/ *.cu): which kernel, how many blocks, and its
 * task struct (tasks.h). Plain C without CUDA: what launches is the caller's (the CUDA executor, or a test that calls the kernels
 * compiled for the host), behind oly_cuda_launcher. Nothing here keeps state. Callable by runtime/run/cuda and tests. */
#ifndef OLY_CUDA_LAUNCH_H
#define OLY_CUDA_LAUNCH_H
#include "kernel.h"

/* Most bytes of a task: what every driver takes as parameters of a kernel. */
#define OLY_CUDA_TASK_BYTES 4000

typedef struct oly_cuda_launch {
    const char *module; /* the file of the kernel, without .cu; of generated ones NULL */
    const char *kernel;
    unsigned blocks, threads;
    unsigned shared; /* bytes of dynamic shared memory */
    size_t task_bytes;
    _Alignas(16) unsigned char task[OLY_CUDA_TASK_BYTES];
} oly_cuda_launch;

/* A kernel whose text is made at run time. Equal keys have equal texts. */
typedef struct oly_cuda_generated {
    const void *key;
    size_t key_bytes;
    double work;                   /* of this launch: operations on elements */
    char *(*text)(const void *of); /* its source, includes element.h; to be freed; NULL: out of memory */
    const void *of;
} oly_cuda_generated;

/* What a family of kernels needs of its caller. All launches of a call go to one stream, in order. */
typedef struct oly_cuda_launcher {
    void *context;
    int processors;          /* of the device: how many blocks are worth having is a multiple of it */
    int shared, shared_each; /* bytes of shared memory of a processor, and at most of a block; 0: 48 KiB */
    oly_status (*launch)(void *context, const oly_cuda_launch *launch);
    /* A copy of these bytes in the device's memory, 16-byte aligned, which stays as long as launches may read it. Callers may keep one
     * copy for equal bytes. */
    oly_status (*constant)(void *context, const void *data, size_t bytes, const void **at);
    /* Memory of the device for the launches of this call, 256-byte aligned, beside what plans give. */
    oly_status (*scratch)(void *context, size_t bytes, void **at);
    /* Launches a generated kernel if it has been compiled. *launched: false: not (yet), and the caller launches others that do the same.
     * NULL: none are generated. */
    oly_status (*generated)(void *context, const oly_cuda_generated *g, const oly_cuda_launch *launch, bool *launched);
    /* A word of the device's memory that is 0 before each launch, and must be after it: blocks count themselves. *at NULL: there is none
     * now. NULL: there is none. */
    oly_status (*ticket)(void *context, uint32_t **at);
} oly_cuda_launcher;

/* Each: whether there is a kernel for the task (if not, the caller computes it on the host), and its launches. Pointers are
 * addresses of the device. fail as the launcher does. */
bool oly_cuda_has_copy(const oly_copy_task *t);
oly_status oly_cuda_copy(const oly_cuda_launcher *l, const oly_copy_task *t, void *to, const void *from);
/* Several copies that do not depend on each other. */
typedef struct oly_cuda_copied {
    const oly_copy_task *task;
    void *to;
    const void *from;
} oly_cuda_copied;
oly_status oly_cuda_copies(const oly_cuda_launcher *l, int n, const oly_cuda_copied *copies);
/* n elements, all equal to the one at `element` (host memory). */
oly_status oly_cuda_fill(const oly_cuda_launcher *l, size_t element_bytes, int64_t n, void *to, const void *element);

bool oly_cuda_has_tile(const oly_tile_program *program);
/* By a kernel of its own, where the launcher has one; else interpreted. */
oly_status oly_cuda_tile(const oly_cuda_launcher *l, const oly_tile_program *program, const oly_tile_box *box,
                         const oly_tile_operand *loads, const oly_tile_operand *stores);

bool oly_cuda_has_reduce(const oly_reduce_task *t);
oly_status oly_cuda_reduce(const oly_cuda_launcher *l, const oly_reduce_task *t, const void *in, void *out);

bool oly_cuda_has_combine(oly_combiner c, oly_dtype dtype);
/* As oly_combine; outs: n_outs copies of the result. */
oly_status oly_cuda_combine(const oly_cuda_launcher *l, oly_combiner c, oly_dtype dtype, bool in_pairs, int n_counts,
                            const int *counts, const void *const *sources, int n_outs, void *const *outs, int64_t begin,
                            int64_t end);

bool oly_cuda_has_stencil(const oly_stencil *s);
/* The whole written part: what all chunks of oly_stencil_run compute. */
oly_status oly_cuda_stencil(const oly_cuda_launcher *l, const oly_stencil *s, const oly_stencil_field *f, int steps,
                            const void *source, void *destination);

bool oly_cuda_has_gemm(const oly_gemm_task *t);
/* parts: of the result that are computed, of those of oly_gemm_part_at; NULL: all of it. */
oly_status oly_cuda_gemm(const oly_cuda_launcher *l, const oly_gemm_task *t, const oly_gemm_part *parts, int n_parts,
                         const void *a, const void *b, void *c);
/* All of a product of 32-bit integers whose operands are bytes, with or without a sign. */
oly_status oly_cuda_gemm_bytes(const oly_cuda_launcher *l, const oly_gemm_task *t, bool a_signed, bool b_signed,
                               const void *a, const void *b, void *c);

bool oly_cuda_has_local(const oly_local_task *t);
oly_status oly_cuda_local(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                          void *scratch);
/* A convolution whose result is [batch][places][features] in memory. *launched: false: there is no kernel for it. */
oly_status oly_cuda_convolve_last(const oly_cuda_launcher *l, const oly_local_task *t, const void *const *in, void *out,
                                  bool *launched);
#endif
