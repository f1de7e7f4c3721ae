/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for the tests of the emulator: right ones, and some that break each of the rules of kernels/cuda/device.h. */
#include "device.h"
#include "toy.h"

OLY_KERNEL(toy_affine, toy_task)
{
    for (int64_t i = oly_index(); i < task.count; i += oly_stride())
        task.to[i] = oly_fma(task.from[i], task.factor, task.offset);
}

/* One sum for each block. */
OLY_KERNEL_BLOCK_BOUNDED(toy_sum, toy_task, 256, 2)
{
    OLY_SHARED(float, part, 8);
    float sum = 0;
    for (int64_t i = oly_index(); i < task.count; i += oly_stride())
        sum += task.from[i];
    for (int by = OLY_WARP / 2; by > 0; by /= 2)
        sum += oly_shuffle_down(sum, by);
    if (oly_lane() == 0)
        part[oly_warp()] = sum;
    if (!task.flaw)
        oly_barrier();
    if (oly_thread() == 0) {
        sum = 0;
        for (int k = 0; k < oly_threads() / OLY_WARP; k++)
            sum += part[k];
        task.to[oly_block()] = sum;
    }
}

/* Each block reverses its part, by way of shared memory that the launch asks for. */
OLY_KERNEL_BLOCK(toy_reverse, toy_task)
{
    OLY_SHARED_DYNAMIC(float, part);
    part[oly_thread()] = task.from[oly_index()];
    oly_barrier();
    task.to[oly_index()] = part[oly_threads() - 1 - oly_thread()];
}

/* Votes, ballots and barriers of warps: to[0..3]. */
OLY_KERNEL_BLOCK(toy_votes, toy_task)
{
    OLY_SHARED(uint32_t, word, 64);
    word[oly_thread()] = oly_ballot(oly_lane() % 3 == 0);
    oly_warp_barrier();
    uint32_t next = word[(oly_thread() & ~31) | ((oly_thread() + 1) & 31)];
    int even = oly_barrier_count(oly_thread() % 2 == 0);
    bool all = oly_barrier_and(next == 0x49249249u), any = oly_barrier_or(oly_thread() == 63);
    uint32_t before = oly_atomic_add(&word[0], 1u);
    bool low = oly_any(before < 0x49249249u + 64);
    oly_barrier();
    if (oly_thread() == 0) {
        task.to[0] = (float)even;
        task.to[1] = all ? 1 : 0;
        task.to[2] = any && low ? 1 : 0;
        task.to[3] = (float)(word[0] - 0x49249249u);
    }
}

/* Half of the threads wait at another barrier. */
OLY_KERNEL_BLOCK(toy_diverges, toy_task)
{
    if (oly_thread() < oly_threads() / 2)
        oly_barrier();
    else
        oly_barrier();
}

/* Lanes leave before a shuffle. */
OLY_KERNEL_BLOCK(toy_leaves, toy_task)
{
    if (oly_thread() % 2)
        return;
    task.to[oly_thread()] = oly_shuffle(1.0f, 1);
}

/* A barrier in a kernel that has not said so. */
OLY_KERNEL(toy_undeclared, toy_task)
{
    oly_barrier();
}

/* Counts down in a conditional node of a graph. */
OLY_KERNEL(toy_count_down, toy_task)
{
    if (oly_index() > 0)
        return;
    task.to[0] += 1;
    task.to[1] -= 1;
    oly_graph_condition(task.handle, task.to[1] > 0);
}
