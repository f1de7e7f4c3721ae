/* SPDX-License-Identifier: BSD-3-Clause */
/* A device's part of a pass over several fields (run/field_tile.h) as launches. Private to runtime/run/cuda. */
#ifndef OLY_RUN_CUDA_FIELDS_H
#define OLY_RUN_CUDA_FIELDS_H
#include "cuda/launch.h"
#include "run/field_tile.h"

/* What the sweep asks for now (passes.part). base: of the device's work. */
oly_status oly_cuda_launch_fields(const oly_cuda_launcher *l, const oly_field_sweep *s, void *const *base, int device);
#endif
