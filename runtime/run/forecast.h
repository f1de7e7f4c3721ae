/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts steps from what kernels take on this machine (kernel_rates.h), as the CPU executor runs them: divided into chunks among the
 * threads of this process, streaming through memory, interpreted or in machine code. forecast.c: steps; forecast_kernels.c: kernels on one
 * thread. Set by kernel_rates.c; see plan/cost/forecast.h. */
#ifndef OLY_RUN_FORECAST_H
#define OLY_RUN_FORECAST_H
#include "plan/model/steps.h"
#include "run/kernel_rates.h"

double oly_forecast_measured(const oly_plan *plan, const oly_step *step);

/* What a kernel does: computes for so many seconds on one thread, with operands in cache, and streams bytes through memory. Copies take
 * no time beside streaming. */
typedef struct oly_kernel_work {
    double seconds, read, written, copied;
    double calls; /* of the kernel: what they take, of all chunks together */
} oly_kernel_work;
/* One device's share. machine: as machine code, where that is possible. */
oly_kernel_work oly_work_of_tiles(const oly_kernel_rates *r, const oly_tile_program *program, const oly_tile_box *box,
                                  const oly_place *loads, const oly_place *stores, bool machine);
oly_kernel_work oly_work_of_reduction(const oly_kernel_rates *r, const oly_reduce_task *t);
oly_kernel_work oly_work_of_product(const oly_kernel_rates *r, const oly_gemm_task *t);
oly_kernel_work oly_work_of_copy(const oly_kernel_rates *r, const oly_copy_task *t);
oly_kernel_work oly_work_of_local(const oly_kernel_rates *r, const oly_local_task *t);
/* Bytes of an operand that are read or written: once, where it is the same along a dimension; of elements apart, what lies between them, up
 * to what the memory gives at once (a line of a cache). */
double oly_place_bytes(const oly_tile_box *box, const oly_place *p, int dtype, double line);
void oly_add_work(oly_kernel_work *sum, const oly_kernel_work *more);
/* Seconds of so many threads. */
double oly_seconds_of_work(const oly_kernel_rates *r, const oly_kernel_work *w, double threads);
/* Seconds for an instruction on an element. */
double oly_seconds_of_instruction(const oly_kernel_rates *r, const oly_tile_instruction *c, bool machine);
#endif
