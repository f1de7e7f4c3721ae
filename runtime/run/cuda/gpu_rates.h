/* SPDX-License-Identifier: BSD-3-Clause */
/* What a GPU can do, derived from facts of the driver (multiprocessors, clocks, width of the memory's bus), and which share of it kernels of
 * Olympus reach: the constants below, in one place, by figures of an H200 and an H100 (docs/gpu.md). Whoever makes a kernel faster changes its
 * constant. Only forecasts read them (forecast_gpu.c); plans do not. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_GPU_RATES_H
#define OLY_RUN_CUDA_GPU_RATES_H
#include "core/text.h"
#include "device/cuda/gpus.h"
#include "kernel.h"

/* Seconds. A call beside its kernels: handed over, launched as a graph, waited for; the time of a kernel that does next to nothing, what one
 * that does something takes more to begin and end; one of cuBLASLt; of a loop's iteration, which is launched as a graph; of waiting for a value and looking at it. */
#define OLY_GPU_CALL      8.5e-6
#define OLY_GPU_KERNEL    2.5e-6
#define OLY_GPU_RAMP      2.5e-6
#define OLY_GPU_LIBRARY   9e-6
#define OLY_GPU_ITERATION 2.2e-6
#define OLY_GPU_WAIT      9e-6
#define OLY_GPU_CLOCK     1.5e9 /* where the driver does not say */
#define OLY_GPU_MEMORY    300e9

/* Shares of what the card could do. */
#define OLY_GPU_COPIES         0.88 /* of the memory's nominal rate, by copies */
#define OLY_GPU_IN_CACHE       2.0  /* of copies, by what stays in half of the last cache */
#define OLY_GPU_REDUCE_ALONG   0.8  /* of copies, by reductions of rows; of columns; of everything */
#define OLY_GPU_REDUCE_ACROSS  0.54
#define OLY_GPU_REDUCE_WHOLE   0.66
#define OLY_GPU_PRODUCT        0.77 /* of the units for float32, by cuBLASLt; of the tensor units */
#define OLY_GPU_TENSOR_PRODUCT 0.84
#define OLY_GPU_VECTOR_PRODUCT 0.75 /* of copies, by products with a vector; of two vectors; of few terms */
#define OLY_GPU_DOT_PRODUCT    0.43
#define OLY_GPU_OUTER_PRODUCT  0.55
#define OLY_GPU_OWN_PRODUCT    0.14 /* of the units for float32, by products without cuBLASLt; by small ones */
#define OLY_GPU_SMALL_PRODUCT  0.007
#define OLY_GPU_CONVOLUTION    0.085 /* of the units for float32, where there are enough features */
#define OLY_GPU_STENCIL_SWEEP  0.55  /* of copies, where a launch is one step: in three dimensions */

/* Elements that a multiprocessor does in a clock. */
#define OLY_GPU_TRANSPOSED           0.65
#define OLY_GPU_COPIED               0.8 /* of boxes that are not dense; by slices at computed positions */
#define OLY_GPU_CUT                  0.31
#define OLY_GPU_FOUND                1.0 /* argmax, argmin */
#define OLY_GPU_RUNNING_ALONG        0.32
#define OLY_GPU_RUNNING              0.18 /* along one long line; across lines */
#define OLY_GPU_RUNNING_OVER         0.55
#define OLY_GPU_RUNNING_LOGS         0.08
#define OLY_GPU_SORTED_PASS          0.15 /* by a pass of eight bits of a long line; of lines that fit a block */
#define OLY_GPU_SORTED_SHORT         0.28
#define OLY_GPU_TAPS                 0.58 /* of windows, and of convolutions of few features */
#define OLY_GPU_REDUCED_BYTES        5.5  /* elements of one byte that are reduced along rows; across */
#define OLY_GPU_REDUCED_BYTES_ACROSS 3.3

/* Bytes that take as long as reading an element somewhere, or writing it. */
#define OLY_GPU_GATHERED  64 /* by positions that many rows share; by one of its own */
#define OLY_GPU_PICKED    32
#define OLY_GPU_SECTOR    32
#define OLY_GPU_SCATTERED 3.0 /* scatters take so many times what their sorts and bytes would */

/* Lane clocks (a multiprocessor has 128 lanes) for a tap, a step and a point of a stencil in one and in more dimensions. Loops over fields
 * go through shared memory: clocks of a stage beside its instructions, and what all of them are multiplied by. */
#define OLY_GPU_TAP_1D 2.8
#define OLY_GPU_STAGE  20.0
#define OLY_GPU_TAP    4.0
#define OLY_GPU_FIELDS 8.5

typedef struct oly_gpu_rates {
    double memory; /* bytes per second that copies read and write */
    double cache;  /* bytes that stay in it */
    double lanes;  /* clocks of lanes per second, of all multiprocessors */
    double processors;
    double flops32, flops64;      /* floating-point operations of products per second, as the units could */
    double product[OLY_N_DTYPES]; /* by cuBLASLt; 0: computed by kernels of Olympus */
    double pci, link;             /* bytes per second in one direction; link: NVLink of a linked card */
} oly_gpu_rates;
/* Of the k-th GPU of this process: oly_gpu_at. */
oly_gpu_rates oly_gpu_rates_of(const oly_gpu *g);
/* "NVIDIA H100: copies 3017 GB/s, float32 66.9, ... */
void oly_gpu_rates_text(oly_text *t, const oly_gpu *g, const oly_gpu_rates *r);

/* Lane clocks of an instruction on an element. */
double oly_gpu_clocks(const oly_tile_instruction *c);
#endif
