/* SPDX-License-Identifier: BSD-3-Clause */
/* The language of the kernels in this folder and of those that are generated: CUDA C++ (nvcc, NVRTC), or, with OLY_EMULATED, C++ for the
 * host, where tests/gpu/emulator runs the same source (emulated_device.h provides what is below in the other half). Included by
 * kernels only; its text is part of the library, for NVRTC.
 *
 * A kernel takes one struct by value, of plain data, at most 4096 bytes, declared in tasks.h:
 *
 *   OLY_KERNEL(name, task_type) { ... task.count ... }          no barriers, no shuffles, no shared memory: nothing that threads share
 *   OLY_KERNEL_BLOCK(name, task_type) { ... oly_barrier(); }    everything below
 *   OLY_KERNEL_BOUNDED, OLY_KERNEL_BLOCK_BOUNDED(name, task_type, threads, blocks)     the same, with launch bounds
 *
 * Names are unique in the library. What a kernel relies on, and the emulator checks:
 *
 *   - Blocks run in any order, also one after the other: none waits for another. (The last block to finish, found by an atomic counter
 *     after oly_fence(), may go on with what the others wrote; and a block that takes its work from an atomic counter may wait for those
 *     that took theirs before, which run or have run.)
 *   - All threads of a block that have not returned reach the same barrier; all lanes of a warp the same shuffle or vote. A lane whose
 *     thread has returned takes part in no shuffle: keep whole warps alive.
 *   - Between two barriers no thread reads or writes shared memory that another writes, but by atomics.
 *   - Contraction is off (-fmad=false): a product and a sum are one rounding only where oly_fma is written.
 *
 * No header of the host's library, of CUDA's runtime or of libcu++: NVRTC has none of them. */
#ifndef OLY_KERNELS_CUDA_DEVICE_H
#define OLY_KERNELS_CUDA_DEVICE_H

#ifdef OLY_EMULATED
#include "emulated_device.h"
#else

/* -- words: NVRTC has none of the C library's headers ------------------------------------------------------------------- */
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#define INT32_MIN  (-2147483647 - 1)
#define INT32_MAX  2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN  (-9223372036854775807L - 1)
#define INT64_MAX  9223372036854775807L
#define UINT64_MAX 18446744073709551615ul
#else
#include <stdint.h>
#endif

/* -- declarations ---------------------------------------------------------------------------------------------------------- */
#define OLY_DEVICE    static __device__ __forceinline__ /* a function of kernels */
#define OLY_CONSTANT  static __device__ const           /* a table of them */
#define OLY_UNROLL    _Pragma("unroll")
#define OLY_NO_UNROLL _Pragma("unroll 1")
#define OLY_KERNEL(name, task_type)                                                                                    \
    static_assert(sizeof(task_type) <= 4096, "a task has at most 4096 bytes");                                         \
    extern "C" __global__ void name(const __grid_constant__ task_type task)
#define OLY_KERNEL_BLOCK(name, task_type) OLY_KERNEL(name, task_type)
#define OLY_KERNEL_BOUNDED(name, task_type, threads, blocks)                                                           \
    static_assert(sizeof(task_type) <= 4096, "a task has at most 4096 bytes");                                         \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ task_type task)
#define OLY_KERNEL_BLOCK_BOUNDED(name, task_type, threads, blocks) OLY_KERNEL_BOUNDED(name, task_type, threads, blocks)

/* An array in shared memory, of a number of elements known at compile time; and what the launch asked for. */
#define OLY_SHARED(type, name, count)                              __shared__ type name[count]
#define OLY_SHARED_DYNAMIC(type, name)                                                                                 \
    extern __shared__ __align__(16) unsigned char oly_dynamic_shared[];                                                \
    type *name = reinterpret_cast<type *>(oly_dynamic_shared)

/* -- where a thread is ------------------------------------------------------------------------------------------------------ */
enum { OLY_WARP = 32 };
/* Of the block, along x, y and z; blocks of the grid. */
OLY_DEVICE int oly_thread()
{
    return threadIdx.x;
}
OLY_DEVICE int oly_thread_y()
{
    return threadIdx.y;
}
OLY_DEVICE int oly_thread_z()
{
    return threadIdx.z;
}
OLY_DEVICE int oly_threads()
{
    return blockDim.x;
}
OLY_DEVICE int oly_threads_y()
{
    return blockDim.y;
}
OLY_DEVICE int oly_threads_z()
{
    return blockDim.z;
}
OLY_DEVICE int64_t oly_block()
{
    return blockIdx.x;
}
OLY_DEVICE int oly_block_y()
{
    return blockIdx.y;
}
OLY_DEVICE int oly_block_z()
{
    return blockIdx.z;
}
OLY_DEVICE int64_t oly_blocks()
{
    return gridDim.x;
}
OLY_DEVICE int oly_blocks_y()
{
    return gridDim.y;
}
OLY_DEVICE int oly_blocks_z()
{
    return gridDim.z;
}
/* Of the thread in the whole launch, and the number of all, along x: `for (i = oly_index(); i < n; i += oly_stride())`. */
OLY_DEVICE int64_t oly_index()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
OLY_DEVICE int64_t oly_stride()
{
    return (int64_t)gridDim.x * blockDim.x;
}
/* Of the thread in its block, all three dimensions in one; its lane and warp. */
OLY_DEVICE int oly_rank()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
OLY_DEVICE int oly_lane()
{
    return oly_rank() & (OLY_WARP - 1);
}
OLY_DEVICE int oly_warp()
{
    return oly_rank() / OLY_WARP;
}

/* -- together ---------------------------------------------------------------------------------------------------------------- */
#define oly_barrier()                __syncthreads()
#define oly_barrier_or(test)         (__syncthreads_or(test) != 0)  /* of any thread of the block? */
#define oly_barrier_and(test)        (__syncthreads_and(test) != 0) /* of all? */
#define oly_barrier_count(test)      __syncthreads_count(test)
/* Of the whole warp; values of 4 or 8 bytes. */
#define oly_warp_barrier()           __syncwarp()
#define oly_shuffle(value, lane)     __shfl_sync(0xffffffffu, value, lane)
#define oly_shuffle_up(value, by)    __shfl_up_sync(0xffffffffu, value, by) /* of lane - by; its own where there is none */
#define oly_shuffle_down(value, by)  __shfl_down_sync(0xffffffffu, value, by) /* of lane + by */
#define oly_shuffle_xor(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)
#define oly_ballot(test)             __ballot_sync(0xffffffffu, test) /* a bit for each lane */
#define oly_any(test)                (__any_sync(0xffffffffu, test) != 0)
#define oly_all(test)                (__all_sync(0xffffffffu, test) != 0)

/* Writes before it are seen by other blocks before those after it. */
OLY_DEVICE void oly_fence()
{
    __threadfence();
}

/* -- atomics: return the value before; in shared or global memory ------------------------------------------------------------ */
OLY_DEVICE int32_t oly_atomic_add(int32_t *at, int32_t v)
{
    return atomicAdd(at, v);
}
OLY_DEVICE uint32_t oly_atomic_add(uint32_t *at, uint32_t v)
{
    return atomicAdd(at, v);
}
OLY_DEVICE uint64_t oly_atomic_add(uint64_t *at, uint64_t v)
{
    return atomicAdd((unsigned long long *)at, (unsigned long long)v);
}
OLY_DEVICE int64_t oly_atomic_add(int64_t *at, int64_t v)
{
    return (int64_t)atomicAdd((unsigned long long *)at, (unsigned long long)v);
}
/* The order of such sums is not defined, nor are their bits: not where a result has to be the same in every run. */
OLY_DEVICE float oly_atomic_add(float *at, float v)
{
    return atomicAdd(at, v);
}
OLY_DEVICE double oly_atomic_add(double *at, double v)
{
    return atomicAdd(at, v);
}
OLY_DEVICE int32_t oly_atomic_min(int32_t *at, int32_t v)
{
    return atomicMin(at, v);
}
OLY_DEVICE int32_t oly_atomic_max(int32_t *at, int32_t v)
{
    return atomicMax(at, v);
}
OLY_DEVICE uint32_t oly_atomic_min(uint32_t *at, uint32_t v)
{
    return atomicMin(at, v);
}
OLY_DEVICE uint32_t oly_atomic_max(uint32_t *at, uint32_t v)
{
    return atomicMax(at, v);
}
OLY_DEVICE uint64_t oly_atomic_min(uint64_t *at, uint64_t v)
{
    return atomicMin((unsigned long long *)at, (unsigned long long)v);
}
OLY_DEVICE uint64_t oly_atomic_max(uint64_t *at, uint64_t v)
{
    return atomicMax((unsigned long long *)at, (unsigned long long)v);
}
OLY_DEVICE int64_t oly_atomic_min(int64_t *at, int64_t v)
{
    return atomicMin((long long *)at, (long long)v);
}
OLY_DEVICE int64_t oly_atomic_max(int64_t *at, int64_t v)
{
    return atomicMax((long long *)at, (long long)v);
}
OLY_DEVICE uint32_t oly_atomic_and(uint32_t *at, uint32_t v)
{
    return atomicAnd(at, v);
}
OLY_DEVICE uint32_t oly_atomic_or(uint32_t *at, uint32_t v)
{
    return atomicOr(at, v);
}
OLY_DEVICE uint32_t oly_atomic_xor(uint32_t *at, uint32_t v)
{
    return atomicXor(at, v);
}
OLY_DEVICE uint32_t oly_atomic_exchange(uint32_t *at, uint32_t v)
{
    return atomicExch(at, v);
}
OLY_DEVICE uint64_t oly_atomic_exchange(uint64_t *at, uint64_t v)
{
    return atomicExch((unsigned long long *)at, (unsigned long long)v);
}
OLY_DEVICE uint32_t oly_atomic_replace(uint32_t *at, uint32_t from, uint32_t to)
{
    return atomicCAS(at, from, to);
}
OLY_DEVICE uint64_t oly_atomic_replace(uint64_t *at, uint64_t from, uint64_t to)
{
    return atomicCAS((unsigned long long *)at, (unsigned long long)from, (unsigned long long)to);
}

/* -- memory: what is read or written once need not stay in the caches ------------------------------------------------------- */
template <typename T> OLY_DEVICE T oly_load_once(const T *at)
{
    return __ldcs(at);
}
template <typename T> OLY_DEVICE void oly_store_once(T *at, T v)
{
    __stcs(at, v);
}
/* What no thread of the launch writes. */
template <typename T> OLY_DEVICE T oly_load_constant(const T *at)
{
    return __ldg(at);
}
/* Always from memory: what other blocks may have written. */
template <typename T> OLY_DEVICE T oly_load_shared_by_blocks(const T *at)
{
    return *(const volatile T *)at;
}

/* Of at most 8 bytes, all at once: for oly_load_shared_by_blocks of other blocks. */
template <typename T> OLY_DEVICE void oly_store_shared_by_blocks(T *at, T v)
{
    *(volatile T *)at = v;
}

/* -- arithmetic ---------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE float oly_fma(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
OLY_DEVICE double oly_fma(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}
OLY_DEVICE uint32_t oly_bits(float x)
{
    return __float_as_uint(x);
}
OLY_DEVICE uint64_t oly_bits(double x)
{
    return (uint64_t)__double_as_longlong(x);
}
OLY_DEVICE float oly_float_of(uint32_t bits)
{
    return __uint_as_float(bits);
}
OLY_DEVICE double oly_double_of(uint64_t bits)
{
    return __longlong_as_double((long long)bits);
}
OLY_DEVICE int oly_leading_zeros(uint32_t x)
{
    return __clz((int)x);
}
OLY_DEVICE int oly_leading_zeros(uint64_t x)
{
    return __clzll((long long)x);
}
OLY_DEVICE int oly_count_ones(uint32_t x)
{
    return __popc(x);
}
OLY_DEVICE int oly_count_ones(uint64_t x)
{
    return __popcll(x);
}
OLY_DEVICE uint64_t oly_multiply_high(uint64_t a, uint64_t b)
{
    return __umul64hi(a, b);
}
/* Four of the eight bytes of x (the lowest is 0) and y (4 to 7): those that the four hexadecimal digits of `which` name, the lowest first. */
OLY_DEVICE uint32_t oly_permute_bytes(uint32_t x, uint32_t y, uint32_t which)
{
    return __byte_perm(x, y, which);
}
/* sum + the products of the four bytes of x and y, each with or without a sign. It wraps. */
template <bool X_SIGNED, bool Y_SIGNED> OLY_DEVICE uint32_t oly_dot_bytes(uint32_t x, uint32_t y, uint32_t sum)
{
    uint32_t result;
    if (X_SIGNED && Y_SIGNED)
        asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    else if (X_SIGNED)
        asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    else if (Y_SIGNED)
        asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    else
        asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(sum));
    return result;
}

/* -- graphs: the condition of a conditional node, set by one thread of a kernel inside the graph ------------------------------- */
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
OLY_DEVICE void oly_graph_condition(uint64_t handle, bool value)
{
    cudaGraphSetConditional(handle, value);
}
#endif
#endif
