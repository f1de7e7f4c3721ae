/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernels/cuda/embed makes part of the library: the images of the kernels for all GPUs, one of each file of kernels/cuda, and the headers that
 * generated kernels include. For runtime/device/cuda and runtime/run/cuda only. */
#ifndef OLY_DEVICE_CUDA_EMBEDDED_H
#define OLY_DEVICE_CUDA_EMBEDDED_H

typedef struct oly_embedded {
    const char *name;                 /* "copy", "device.h"; NULL ends the table */
    const unsigned char *begin, *end; /* a 0 follows */
} oly_embedded;
extern const oly_embedded oly_cuda_images[], oly_cuda_headers[];
#endif
