/* SPDX-License-Identifier: BSD-3-Clause */
/* The task of the kernels in toy.cu. */
#ifndef EMULATED_TOY_H
#define EMULATED_TOY_H
typedef struct toy_task {
    float *to;
    const float *from;
    int64_t count;
    float factor, offset;
    int flaw; /* leave out the barrier */
    uint64_t handle;
} toy_task;
#endif
