/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that go to the host while the device computes on. Cells of the executor (executor.h: read_begin, read_end). Private to
 * runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_EARLY_READS_H
#define OLY_RUN_CUDA_EARLY_READS_H
#include "core/error.h"
#include <stdbool.h>

oly_status oly_cuda_read_begin(int device, const void *from, size_t bytes, bool *begun);
oly_status oly_cuda_read_end(int device, void *value, size_t bytes);
#endif
