/* SPDX-License-Identifier: BSD-3-Clause */
/* What each kernel takes on this machine, as measured once: OLYMPUS_COSTS=measure. The file is costs-HOST-kernels-ISA-THREADS
 * beside that of measure.c, for rank 0's HOST; all ranks use rank 0's numbers. Only forecasts read them (forecast.c); plans are the same whatever
 * they are. measure_kernels.c and measure_local.c measure, kernel_rates.c keeps. */
#ifndef OLY_RUN_KERNEL_RATES_H
#define OLY_RUN_KERNEL_RATES_H
#include "core/text.h"
#include "kernel.h"

/* Working sets from 32 KiB on, each twice the one before, and what streams through them. */
enum { OLY_RATE_SETS = 13, OLY_RATE_FIRST_SET = 1 << 15 };
typedef enum oly_stream { OLY_STREAM_READ, OLY_STREAM_WRITE, OLY_STREAM_COPY, OLY_N_STREAMS } oly_stream;

/* Products: of one row or column, or of few; of few terms; of 8, 24, 64 and 256 rows, columns and terms. */
typedef enum oly_product_class {
    OLY_PRODUCT_VECTOR,
    OLY_PRODUCT_NARROW,
    OLY_PRODUCT_OUTER,
    OLY_PRODUCT_TINY,
    OLY_PRODUCT_SMALL,
    OLY_PRODUCT_MIDDLE,
    OLY_PRODUCT_LARGE,
    OLY_N_PRODUCT_CLASSES
} oly_product_class;

/* Lines: in order in memory, or side by side (the elements of a line are far apart). Of gathers and scatters: single elements,
 * or rows. Of convolutions: many features, or one in each group. */
enum { OLY_ALONG, OLY_ACROSS, OLY_N_DIRECTIONS };

/* Seconds; of one thread unless it says otherwise. Nothing but doubles: the file is a list of them. */
typedef struct oly_kernel_rates {
    double share;          /* of handing work to all threads and waiting for them */
    double step;           /* of a step whose code and data have left the first cache */
    double box, group_box; /* of a call of the tile interpreter, of machine code */
    double row, group_row,
        block_row; /* for each row of a box and each instruction; in machine code; for each row and operand of blocks */
    double stream[2][OLY_N_STREAMS][OLY_RATE_SETS]; /* for a byte; of copies, read or written; [1]: of all threads */
    double tile[OLY_N_TILE_OPS][OLY_N_DTYPES];      /* for an element in cache; by the type of the operands */
    double convert[OLY_N_DTYPES][OLY_N_DTYPES];     /* from, to */
    double group[OLY_N_TILE_OPS][OLY_N_DTYPES];     /* in machine code; 0: left to the interpreter */
    double reduce[OLY_N_COMBINERS][OLY_N_DTYPES][OLY_N_DIRECTIONS];
    double reduce_line[OLY_N_COMBINERS][OLY_N_DTYPES]; /* for each result of a reduction along short lines */
    double combine[OLY_N_DTYPES];                      /* for an element of each source */
    double copy_row, copy_spread[17][2],
        transpose
            [17]
            [2]; /* for a row of a copy; for an element of so many bytes, read or written apart; in and beyond cache */
    double transposed_load[17][2]; /* for an element of so many bytes that the tile interpreter reads so */
    double gemm[OLY_N_DTYPES][OLY_N_PRODUCT_CLASSES]; /* for a multiply-add */
    double local[OLY_N_LOCAL_OPS][OLY_N_DTYPES][OLY_N_DIRECTIONS];
    double far_gather[OLY_RATE_SETS],
        far_scatter[OLY_RATE_SETS]; /* for an element of a working set, read or written in random order */
    /* For a point and step, and in addition for each tap; for a point of a pass. float32, float64; by rank. */
    double stencil_point[2][3], stencil_tap[2][3], stencil_pass[2][3];
} oly_kernel_rates;
enum { OLY_N_KERNEL_RATES = sizeof(oly_kernel_rates) / sizeof(double) };

/* Those in use; NULL: none are, as OLYMPUS_COSTS does not ask to measure. */
const oly_kernel_rates *oly_kernel_rates_now(void);
/* If OLYMPUS_COSTS asks for it, takes over rank 0's rates, from its file or measured now, and forecasts steps by them. Called by all ranks
 * when worker threads run; peers: whether there are other ranks. fails OLY_MEMORY. */
oly_status oly_kernel_rates_settle(bool peers);
void oly_kernel_rates_forget(void);

/* The file as text. Reading fails, without a message, if it is of another version, instruction set or length, or damaged. */
void oly_kernel_rates_text(oly_text *t, const oly_kernel_rates *rates);
bool oly_kernel_rates_read(const char *text, oly_kernel_rates *rates);

/* Measuring: the families in two parts. memory: OLY_RATE_MEMORY bytes. */
enum { OLY_RATE_MEMORY = 3 * (OLY_RATE_FIRST_SET << (OLY_RATE_SETS - 1)) / 2 };
void oly_measure_kernels(oly_kernel_rates *rates, char *memory);
void oly_measure_local(oly_kernel_rates *rates, char *memory);
/* Seconds of body(context): the least of several runs. */
double oly_measured_seconds(void (*body)(const void *context), const void *context);
/* Does the tile operation exist for operands of this type? The type of its result. */
bool oly_tile_op_takes(oly_tile_op op, oly_dtype dtype, oly_dtype *to, int *n_operands);
#endif
