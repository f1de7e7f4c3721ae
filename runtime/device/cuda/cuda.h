/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform "cuda": GPUs of NVIDIA. What is declared here does not need CUDA's headers; where the library is built without CUDA,
 * none.c says so. Called by runtime/device/platform.c. */
#ifndef OLY_DEVICE_CUDA_CUDA_H
#define OLY_DEVICE_CUDA_CUDA_H
#include "device/platform.h"

/* Are there GPUs? Looks at the first call: opens the driver and lists the GPUs that this process sees (CUDA_VISIBLE_DEVICES) and may use
 * (OLYMPUS_LOCAL_DEVICES). NULL: there are none to use; *why says why, in words that end a sentence. fails OLY_INVALID: a list that is no
 * list of GPUs. */
oly_status oly_cuda_platform(const oly_platform **platform, const char **why);
/* The same without a message: for the list of devices. */
bool oly_cuda_is_there(const char **why);
#endif
