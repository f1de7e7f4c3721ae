/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of kernels/cuda/device.h for a host compiler (C++17): launch.h runs the kernels. Included by device.h only. */
#ifndef EMULATED_DEVICE_H
#define EMULATED_DEVICE_H
#include "launch.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

/* -- declarations ---------------------------------------------------------------------------------------------------------- */
#define OLY_DEVICE   [[maybe_unused]] static inline
#define OLY_CONSTANT [[maybe_unused]] static const
#define OLY_UNROLL
#define OLY_NO_UNROLL
/* Whether the compiler makes this kernel tell races.c of every access. */
#if defined __SANITIZE_THREAD__
#define EMULATED_TELLS true
#elif defined __has_feature
#define EMULATED_TELLS (__has_feature(thread_sanitizer))
#else
#define EMULATED_TELLS false
#endif
#define EMULATED_KERNEL(name, task_type, together, threads)                                                            \
    static_assert(sizeof(task_type) <= 4096, "a task has at most 4096 bytes");                                         \
    static void name##__thread(const task_type &task);                                                                 \
    static void name##__run(const void *emulated_task)                                                                 \
    {                                                                                                                  \
        name##__thread(*static_cast<const task_type *>(emulated_task));                                                \
    }                                                                                                                  \
    extern "C" EMULATED_EXPORT const emulated_kernel name##__emulated;                                                 \
    const emulated_kernel name##__emulated = {                                                                         \
        #name, name##__run, sizeof(task_type), together, EMULATED_TELLS, threads};                                     \
    static void name##__thread([[maybe_unused]] const task_type &task)
#define OLY_KERNEL(name, task_type)                                EMULATED_KERNEL(name, task_type, false, EMULATED_MOST_THREADS)
#define OLY_KERNEL_BLOCK(name, task_type)                          EMULATED_KERNEL(name, task_type, true, EMULATED_MOST_THREADS)
#define OLY_KERNEL_BOUNDED(name, task_type, threads, blocks)       EMULATED_KERNEL(name, task_type, false, threads)
#define OLY_KERNEL_BLOCK_BOUNDED(name, task_type, threads, blocks) EMULATED_KERNEL(name, task_type, true, threads)
#define OLY_SHARED(type, name, count)                                                                                  \
    static const char name##__key = 0;                                                                                 \
    type(&name)[count] = *static_cast<type(*)[count]>(                                                                 \
        emulated_shared(&name##__key, sizeof(type[count]), alignof(type) < 16 ? 16 : alignof(type)))
#define OLY_SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(emulated_dynamic_shared())

/* What shared functions may write for both compilers. */
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))

/* -- where a thread is ------------------------------------------------------------------------------------------------------ */
enum { OLY_WARP = EMULATED_WARP };
OLY_DEVICE int oly_thread()
{
    return (int)emulated_here.thread.x;
}
OLY_DEVICE int oly_thread_y()
{
    return (int)emulated_here.thread.y;
}
OLY_DEVICE int oly_thread_z()
{
    return (int)emulated_here.thread.z;
}
OLY_DEVICE int oly_threads()
{
    return (int)emulated_here.threads.x;
}
OLY_DEVICE int oly_threads_y()
{
    return (int)emulated_here.threads.y;
}
OLY_DEVICE int oly_threads_z()
{
    return (int)emulated_here.threads.z;
}
OLY_DEVICE int64_t oly_block()
{
    return emulated_here.block.x;
}
OLY_DEVICE int oly_block_y()
{
    return (int)emulated_here.block.y;
}
OLY_DEVICE int oly_block_z()
{
    return (int)emulated_here.block.z;
}
OLY_DEVICE int64_t oly_blocks()
{
    return emulated_here.blocks.x;
}
OLY_DEVICE int oly_blocks_y()
{
    return (int)emulated_here.blocks.y;
}
OLY_DEVICE int oly_blocks_z()
{
    return (int)emulated_here.blocks.z;
}
OLY_DEVICE int64_t oly_index()
{
    return (int64_t)emulated_here.block.x * emulated_here.threads.x + emulated_here.thread.x;
}
OLY_DEVICE int64_t oly_stride()
{
    return (int64_t)emulated_here.blocks.x * emulated_here.threads.x;
}
OLY_DEVICE int oly_rank()
{
    return (oly_thread_z() * oly_threads_y() + oly_thread_y()) * oly_threads() + oly_thread();
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
#define EMULATED_TEXT_OF(line)  #line
#define EMULATED_TEXT(line)     EMULATED_TEXT_OF(line)
#define EMULATED_WHERE          __FILE__ ":" EMULATED_TEXT(__LINE__)
#define oly_barrier()           ((void)emulated_barrier(EMULATED_WHERE, EMULATED_OR, false))
#define oly_barrier_or(test)    (emulated_barrier(EMULATED_WHERE, EMULATED_OR, test) != 0)
#define oly_barrier_and(test)   (emulated_barrier(EMULATED_WHERE, EMULATED_AND, test) != 0)
#define oly_barrier_count(test) emulated_barrier(EMULATED_WHERE, EMULATED_COUNT, test)
#define oly_warp_barrier()      emulated_warp_barrier(EMULATED_WHERE)
template <typename T> static inline T emulated_exchange(const char *where, T value, int lane)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves values of 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulated_shuffle(where, bits, lane);
    memcpy(&value, &bits, sizeof value);
    return value;
}
#define oly_shuffle(value, lane)     emulated_exchange(EMULATED_WHERE, value, (lane) & (OLY_WARP - 1))
#define oly_shuffle_up(value, by)    emulated_exchange(EMULATED_WHERE, value, oly_lane() - (int)(by))
#define oly_shuffle_down(value, by)  emulated_exchange(EMULATED_WHERE, value, oly_lane() + (int)(by))
#define oly_shuffle_xor(value, mask) emulated_exchange(EMULATED_WHERE, value, oly_lane() ^ (int)(mask))
#define oly_ballot(test)             emulated_ballot(EMULATED_WHERE, test)
#define oly_any(test)                (emulated_ballot(EMULATED_WHERE, test) != 0)
#define oly_all(test)                (emulated_ballot(EMULATED_WHERE, !(test)) == 0)
OLY_DEVICE void oly_fence() {}

/* -- atomics: one thread runs at a time ------------------------------------------------------------------------------------- */
/* Not told to the check for races as plain accesses. */
#define EMULATED_UNTOLD __attribute__((no_sanitize("thread"), noinline, unused))
#define EMULATED_ATOMIC(name, type, expression)                                                                        \
    EMULATED_UNTOLD static type name(type *at, type v)                                                                 \
    {                                                                                                                  \
        emulated_atomic(at, sizeof *at);                                                                               \
        volatile type *memory = at;                                                                                    \
        type before = *memory;                                                                                         \
        *memory = expression;                                                                                          \
        return before;                                                                                                 \
    }
#define EMULATED_ADD(type) EMULATED_ATOMIC(oly_atomic_add, type, (type)(before + v))
EMULATED_ATOMIC(oly_atomic_add, int32_t, (int32_t)((uint32_t)before + (uint32_t)v))
EMULATED_ATOMIC(oly_atomic_add, int64_t, (int64_t)((uint64_t)before + (uint64_t)v))
EMULATED_ADD(uint32_t)
EMULATED_ADD(uint64_t)
EMULATED_ADD(float)
EMULATED_ADD(double)
#define EMULATED_LEAST_AND_MOST(type)                                                                                  \
    EMULATED_ATOMIC(oly_atomic_min, type, v < before ? v : before)                                                     \
    EMULATED_ATOMIC(oly_atomic_max, type, v > before ? v : before)
EMULATED_LEAST_AND_MOST(int32_t)
EMULATED_LEAST_AND_MOST(uint32_t)
EMULATED_LEAST_AND_MOST(int64_t)
EMULATED_LEAST_AND_MOST(uint64_t)
EMULATED_ATOMIC(oly_atomic_and, uint32_t, before &v)
EMULATED_ATOMIC(oly_atomic_or, uint32_t, before | v)
EMULATED_ATOMIC(oly_atomic_xor, uint32_t, before ^ v)
EMULATED_ATOMIC(oly_atomic_exchange, uint32_t, v)
EMULATED_ATOMIC(oly_atomic_exchange, uint64_t, v)
EMULATED_UNTOLD static uint32_t oly_atomic_replace(uint32_t *at, uint32_t from, uint32_t to)
{
    emulated_atomic(at, sizeof *at);
    uint32_t before = *(volatile uint32_t *)at;
    *(volatile uint32_t *)at = before == from ? to : before;
    return before;
}
EMULATED_UNTOLD static uint64_t oly_atomic_replace(uint64_t *at, uint64_t from, uint64_t to)
{
    emulated_atomic(at, sizeof *at);
    uint64_t before = *(volatile uint64_t *)at;
    *(volatile uint64_t *)at = before == from ? to : before;
    return before;
}

/* -- memory -------------------------------------------------------------------------------------------------------------------- */
template <typename T> OLY_DEVICE T oly_load_once(const T *at)
{
    return *at;
}
template <typename T> OLY_DEVICE void oly_store_once(T *at, T v)
{
    *at = v;
}
template <typename T> OLY_DEVICE T oly_load_constant(const T *at)
{
    return *at;
}
template <typename T> OLY_DEVICE T oly_load_shared_by_blocks(const T *at)
{
    return *(const volatile T *)at;
}
template <typename T> OLY_DEVICE void oly_store_shared_by_blocks(T *at, T v)
{
    *(volatile T *)at = v;
}

/* -- arithmetic ---------------------------------------------------------------------------------------------------------------- */
template <typename to, typename from> static inline to emulated_bits(from x)
{
    static_assert(sizeof(to) == sizeof(from), "the same bits");
    to y;
    memcpy(&y, &x, sizeof y);
    return y;
}
OLY_DEVICE float oly_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}
OLY_DEVICE double oly_fma(double a, double b, double c)
{
    return fma(a, b, c);
}
OLY_DEVICE uint32_t oly_bits(float x)
{
    return emulated_bits<uint32_t>(x);
}
OLY_DEVICE uint64_t oly_bits(double x)
{
    return emulated_bits<uint64_t>(x);
}
OLY_DEVICE float oly_float_of(uint32_t bits)
{
    return emulated_bits<float>(bits);
}
OLY_DEVICE double oly_double_of(uint64_t bits)
{
    return emulated_bits<double>(bits);
}
OLY_DEVICE int oly_leading_zeros(uint32_t x)
{
    return x ? __builtin_clz(x) : 32;
}
OLY_DEVICE int oly_leading_zeros(uint64_t x)
{
    return x ? __builtin_clzl(x) : 64;
}
OLY_DEVICE int oly_count_ones(uint32_t x)
{
    return __builtin_popcount(x);
}
OLY_DEVICE int oly_count_ones(uint64_t x)
{
    return __builtin_popcountl(x);
}
OLY_DEVICE uint64_t oly_multiply_high(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
OLY_DEVICE uint32_t oly_permute_bytes(uint32_t x, uint32_t y, uint32_t which)
{
    uint64_t both = (uint64_t)y << 32 | x;
    uint32_t result = 0;
    for (int k = 0; k < 4; k++)
        result |= (uint32_t)(both >> 8 * (which >> 4 * k & 7) & 0xff) << 8 * k;
    return result;
}
template <bool X_SIGNED, bool Y_SIGNED> OLY_DEVICE uint32_t oly_dot_bytes(uint32_t x, uint32_t y, uint32_t sum)
{
    for (int k = 0; k < 4; k++) {
        int p = (uint8_t)(x >> 8 * k), q = (uint8_t)(y >> 8 * k);
        sum += (uint32_t)((X_SIGNED && p > 127 ? p - 256 : p) * (Y_SIGNED && q > 127 ? q - 256 : q));
    }
    return sum;
}

/* -- graphs ---------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE void oly_graph_condition(uint64_t handle, bool value)
{
    emulated_condition(handle, value);
}
#endif
