/* SPDX-License-Identifier: BSD-3-Clause */
/* NVRTC, the compiler of kernels at run time: found in libnvrtc.so.13 or .12 when the first kernel is to be compiled. Its header is in a
 * package of its own, so what is used of it is declared here. For runtime/device/cuda only. */
#ifndef OLY_DEVICE_CUDA_NVRTC_H
#define OLY_DEVICE_CUDA_NVRTC_H
#include <stdbool.h>
#include <stddef.h>

/* What a kernel is compiled with, as text: the versions, the GPU, the options, the headers. Kernels of equal text and equal descriptions have the same
 * image. "": there is no NVRTC. arch: 90 is compute capability 9.0. Any thread. */
const char *oly_nvrtc_description(int arch, char *to, size_t size);
/* Compiles; seconds. *image is the caller's to free, and ends with a 0. False: *why is NVRTC's message, to be freed, or NULL. */
bool oly_nvrtc_compile(int arch, const char *source, char **image, size_t *bytes, char **why);
/* Why it is not there; NULL: it is. */
const char *oly_nvrtc_missing(void);
#endif
