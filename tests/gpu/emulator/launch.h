/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs kernels of kernels/cuda on the host: blocks one after the other, in an order drawn at random; the threads of a block as a loop or,
 * where they meet at barriers, as fibres. libemulated_device.so has it; kernels reach it through emulated_device.h, the emulated
 * driver through emulated_launch. One launch at a time. What breaks a rule of kernels/cuda/device.h ends the process with a
 * message. */
#ifndef EMULATED_LAUNCH_H
#define EMULATED_LAUNCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define EMULATED_EXPORT __attribute__((visibility("default")))

enum {
    EMULATED_WARP = 32,
    EMULATED_MOST_THREADS = 1024,
    EMULATED_STATIC_SHARED = 48 << 10,
    EMULATED_SHARED = 227 << 10
};

/* A kernel, exported by its object as NAME__emulated. */
typedef struct emulated_kernel {
    const char *name;
    void (*run)(const void *task); /* one thread */
    size_t task_bytes;
    bool together; /* OLY_KERNEL_BLOCK */
    bool tells;    /* of every access to memory: compiled with -fsanitize=thread */
    int most_threads;
} emulated_kernel;

typedef struct emulated_size {
    unsigned x, y, z;
} emulated_size;

/* Where the running thread is. */
typedef struct emulated_place {
    emulated_size thread, block, threads, blocks;
} emulated_place;
extern EMULATED_EXPORT emulated_place emulated_here;

/* Runs all threads of a launch. `task` is read until it returns. */
EMULATED_EXPORT void emulated_launch(const emulated_kernel *kernel, const void *task, emulated_size blocks,
                                     emulated_size threads, size_t dynamic_shared);

/* -- for kernels: `where` is "file:line" ------------------------------------------------------------------------------------- */
enum { EMULATED_OR, EMULATED_AND, EMULATED_COUNT };
EMULATED_EXPORT int emulated_barrier(const char *where, int vote, bool test);
EMULATED_EXPORT void emulated_warp_barrier(const char *where);
EMULATED_EXPORT uint64_t emulated_shuffle(const char *where, uint64_t value,
                                          int lane); /* of that lane, or its own outside 0 to 31 */
EMULATED_EXPORT uint32_t emulated_ballot(const char *where, bool test);
EMULATED_EXPORT void *emulated_shared(const void *key, size_t bytes, size_t alignment);
EMULATED_EXPORT void *emulated_dynamic_shared(void);
EMULATED_EXPORT void emulated_atomic(const void *address, size_t bytes); /* an atomic access is about to be made */
EMULATED_EXPORT void emulated_condition(uint64_t handle, unsigned value);
/* The driver's: what oly_graph_condition does. */
extern EMULATED_EXPORT void (*emulated_set_condition)(uint64_t handle, unsigned value);

/* The driver's: may kernels use these bytes, which are no shared memory, of their stack, task or constants? Called for kernels that tell
 * of every access (races.c); ends the process if not. NULL outside of the driver: all may be used. */
extern EMULATED_EXPORT void (*emulated_check_address)(const void *address, size_t bytes);
/* Is the address one of the running kernel's own: its stacks, its task, the constants of its object? Where none runs: yes. */
EMULATED_EXPORT bool emulated_is_kernels_own(const void *address);

/* -- common to the emulated libraries ---------------------------------------------------------------------------------------- */
/* Prints what is wrong and the seed, and aborts. */
EMULATED_EXPORT void emulated_violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
EMULATED_EXPORT unsigned emulated_seed(void);             /* EMULATED_SEED; 1 */
EMULATED_EXPORT unsigned emulated_random(unsigned below); /* the next random number */
/* "kernel NAME, block x y z, thread x y z", of the running thread. NULL: none. */
EMULATED_EXPORT const char *emulated_running(void);

/* -- races.c ------------------------------------------------------------------------------------------------------------------ */
void emulated_races_launch(bool tells);                      /* a kernel begins, or (false) ends */
void emulated_races_block(const char *shared, size_t bytes); /* a block begins */
void emulated_races_barrier(void);                           /* all its threads have met */
void emulated_races_warp(int warp);                          /* the lanes of a warp have */
void emulated_races_end(void);
int emulated_rank(void); /* of the running thread in its block */
#ifdef __cplusplus
}
#endif
#endif
