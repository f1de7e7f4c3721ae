/* SPDX-License-Identifier: BSD-3-Clause */
/* Running functions of the program: CALL steps. Those of the host run on the interpreting thread, element by element and device by
 * device; kernels on the devices' threads. Called by the interpreter and the executor; oly_effect_ functions by runtime/array. */
#ifndef OLY_RUN_CALL_RUN_H
#define OLY_RUN_CALL_RUN_H
#include "run/interpret.h"

/* How blocks are packed in a GPU's memory, in the order of its stream. */
typedef struct oly_call_gpu {
    void *stream;
    const void *context; /* of these: */
    oly_status (*copy)(const void *context, const oly_copy_task *t, void *to, const void *from);
    oly_status (*clear)(const void *context, void *to, size_t bytes);
} oly_call_gpu;

/* Calls the function for every element of the device's part. host: the run; NULL: a kernel, which cannot fail. */
void oly_call_on_device(void *const *base, const oly_plan *plan, const oly_step *step, int device, oly_run *host);
/* The same for a kernel's gpu_function, which launches. fails as it and `gpu` do. */
oly_status oly_call_on_gpu(void *const *base, const oly_plan *plan, const oly_step *step, int device,
                           const oly_call_gpu *gpu);
/* A step of the host, on all devices. After a failed check nothing more is called. */
oly_status oly_run_host_call(oly_run *r, const oly_step *step);
bool oly_is_host_call(const oly_step *step);

/* The failure of a check in the last run with effects; its message becomes pending. Runs with effects come one at a time: their
 * caller waits. */
void oly_effect_forget(void);
oly_status oly_effect_failure(void);

/* Is this thread in a function of the program that a plan calls? */
bool oly_is_in_call(void);
#endif
