/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts steps on GPUs from what the cards can do (gpu_rates.h), as the executor launches them: each kernel reads and writes its bytes,
 * or is limited by its instructions. forecast_gpu.c: steps, transfers, loops; forecast_tasks.c: kernels; forecast_chains.c: row chains. For
 * explanations and the timeline only (plan/cost/forecast.h). Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_FORECAST_GPU_H
#define OLY_RUN_CUDA_FORECAST_GPU_H
#include "plan/cost/forecast.h"
#include "run/cuda/gpu_rates.h"
#include "run/cuda/row_chains.h"

/* Of this process's GPUs, once the platform has started; NULL: out of memory. Lasts until the next call. */
const oly_forecast_model *oly_cuda_forecast(void);

/* Seconds of a kernel that moves so many bytes and takes so many clocks of lanes; none of both: 0. */
double oly_gpu_kernel_seconds(const oly_gpu_rates *r, double bytes, double clocks);
/* Bytes of an operand of a group on a box, and lane clocks of a group for an element. */
double oly_gpu_place_bytes(const oly_tile_box *box, const oly_place *p, int dtype);
double oly_gpu_program_clocks(const oly_tile_program *program);
/* Of one device's share. */
double oly_gpu_tile_seconds(const oly_gpu_rates *r, const oly_tile_program *program, const oly_tile_work *w);
double oly_gpu_reduce_seconds(const oly_gpu_rates *r, const oly_reduce_task *t);
double oly_gpu_chain_seconds(const oly_gpu_rates *r, const oly_row_steps *rows, int device);
double oly_gpu_product_seconds(const oly_gpu_rates *r, const oly_gemm_task *t);
double oly_gpu_copy_seconds(const oly_gpu_rates *r, const oly_copy_task *t);
double oly_gpu_local_seconds(const oly_gpu_rates *r, const oly_local_task *t);
#endif
