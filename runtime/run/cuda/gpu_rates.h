/* SPDX-License-Identifier: BSD-3-Clause */
/* What a GPU can do, derived from facts of the driver (multiprocessors, clocks, width of the memory's bus), and which share of it kernels of
 * Olympus reach: the constants below, in one place, by figures of an H200 and an H100 (docs/gpu.md). Whoever makes a kernel faster changes its
 * constant. Only forecasts read them (forecast_gpu.c); plans do not. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_GPU_RATES_H
#define OLY_RUN_CUDA_GPU_RATES_H
#include "core/text.h"
#include "device/cuda/gpus.h"
#include "kernel.h"

/* Seconds. A call beside its kernels: handed over, launched as a graph, waited for (where nothing waits, the host's share of it alone); the time
 * of a kernel that does next to nothing, the same between others of a graph, what one that does something takes more to begin and end; one of
 * cuBLASLt; of a loop's iteration that is launched by the host; of waiting for a value and looking at it. */
#define OLY_GPU_CALL      5.5e-6
#define OLY_GPU_PENDING   2e-6
#define OLY_GPU_KERNEL    2.5e-6
#define OLY_GPU_NODE      1.2e-6
#define OLY_GPU_RAMP      2.5e-6
#define OLY_GPU_LIBRARY   9e-6
#define OLY_GPU_ITERATION 2.2e-6
#define OLY_GPU_WAIT      9e-6
#define OLY_GPU_UPDATE    1e-6  /* of an update after another of the same element */
#define OLY_GPU_CLOCK     1.5e9 /* where the driver does not say */
#define OLY_GPU_MEMORY    300e9

/* Shares of what the card could do. */
#define OLY_GPU_COPIES         0.88 /* of the memory's nominal rate, by copies */
#define OLY_GPU_IN_CACHE       2.0  /* of copies, by what stays in half of the last cache */
#define OLY_GPU_REDUCE_ALONG   0.77 /* of copies, by reductions of rows; of columns; of everything */
#define OLY_GPU_REDUCE_ACROSS  0.66
#define OLY_GPU_REDUCE_WHOLE   0.66
#define OLY_GPU_ROW_CHAIN      0.8  /* of copies, by chains of rows, which compute after that */
#define OLY_GPU_FOUND          0.87 /* of copies, by argmax and argmin along rows */
#define OLY_GPU_TRANSPOSED     0.88 /* of copies, where tiles are turned */
#define OLY_GPU_RUNNING_ROWS   0.85 /* of copies, by running results of many rows; of lines in tiles that wait */
#define OLY_GPU_RUNNING_LONG   0.42
#define OLY_GPU_PRODUCT        0.77 /* of the units for float32, by cuBLASLt; of the tensor units */
#define OLY_GPU_TENSOR_PRODUCT 0.84
#define OLY_GPU_VECTOR_PRODUCT 0.75 /* of copies, by products with a vector; of two vectors; of few terms */
#define OLY_GPU_DOT_PRODUCT    0.43
#define OLY_GPU_OUTER_PRODUCT  0.55
#define OLY_GPU_OWN_PRODUCT    0.14 /* of the units for float32, by products without cuBLASLt; by small ones */
#define OLY_GPU_SMALL_PRODUCT  0.007
#define OLY_GPU_BYTE_PRODUCT   1.2  /* as operations, by the dot product of four bytes */
#define OLY_GPU_CONVOLUTION    0.48 /* of the units for float32, where groups have enough features */
#define OLY_GPU_STENCIL_WAVE   0.5  /* of copies, in three dimensions, where blocks read much around their tiles */

/* Elements that a multiprocessor does in a clock. */
#define OLY_GPU_COPIED          1.35 /* of boxes that are not dense; by slices at computed positions */
#define OLY_GPU_CUT             0.31
#define OLY_GPU_ATOMIC          0.06 /* updates that are atomic */
#define OLY_GPU_FOUND_APART     0.79 /* argmax, argmin of short rows, or across */
#define OLY_GPU_RUNNING_ALONG   0.32 /* along one long line, of infrequent types; across lines */
#define OLY_GPU_RUNNING_OVER    0.55
#define OLY_GPU_RUNNING_LOGS    0.08
#define OLY_GPU_SORTED_PASS     0.24 /* by eight bits of a long line; with positions; of lines that fit a block */
#define OLY_GPU_SORTED_NUMBERED 0.17
#define OLY_GPU_SORTED_SHORT    0.28
#define OLY_GPU_WINDOWED                                                                                               \
    0.58 /* taps of windows; where a thread has some results below each other; of convolutions of few features */
#define OLY_GPU_WINDOWED_BELOW 10
#define OLY_GPU_TAPS           3.8
#define OLY_GPU_REDUCED_BYTES  5.6 /* elements of one byte that are reduced */

/* Bytes that take as long as reading an element somewhere, or writing it. */
#define OLY_GPU_GATHERED  64 /* by positions that many rows share; by one of its own */
#define OLY_GPU_PICKED    20
#define OLY_GPU_SECTOR    32
#define OLY_GPU_SCATTERED 2.3 /* scatters of sorted positions take so many times what their bytes would */
/* Sectors for each position of a scatter that is not sorted: where updates replace, where few are linked, where they are counted; what updates of whole
 * rows take more than their bytes; launches. */
#define OLY_GPU_REPLACED      5.
#define OLY_GPU_LINKED        6.
#define OLY_GPU_COUNTED       9.
#define OLY_GPU_ROWS_ADDED    1.6
#define OLY_GPU_PLACE_KERNELS 10
#define OLY_GPU_BINNED        6. /* integers summed in shared memory first, for each that is not */

/* Lane clocks (a multiprocessor has 128 lanes) for a tap, a step and a point of a stencil in one and in more dimensions. Loops over fields go
 * through shared memory: what a stage takes beside its instructions, and what all of them are multiplied by, for margins that are computed twice
 * and for addresses: a mean, of 2.5 for gray_scott and 6 to 9 for wave2d and maxwell2d. */
#define OLY_GPU_TAP_1D 2.8
#define OLY_GPU_TAP    4.0
#define OLY_GPU_STAGE  3.0
#define OLY_GPU_FIELDS 4.0

typedef struct oly_gpu_rates {
    double start;  /* seconds of a kernel that does nothing */
    double ramp;   /* at most so much more of one that does something */
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
