/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled kernels on disk, by what they were compiled from: in OLYMPUS_KERNEL_CACHE, else in the user's cache folder. Processes may read and write
 * it at the same time: files appear whole or not at all, and those that are damaged are as if they were not there. All of it is
 * best effort: without a folder that can be written, kernels are compiled again. For runtime/device/cuda and its tests only. */
#ifndef OLY_DEVICE_CUDA_KERNEL_CACHE_H
#define OLY_DEVICE_CUDA_KERNEL_CACHE_H
#include <stdbool.h>
#include <stddef.h>

/* The image made of `key` (all that it depends on: versions, architecture, options, text). *image is the caller's to free. */
bool oly_kernel_cache_read(const char *key, size_t key_bytes, char **image, size_t *bytes);
void oly_kernel_cache_write(const char *key, size_t key_bytes, const char *image, size_t bytes);
void oly_kernel_cache_remove(const char *key, size_t key_bytes);
/* The name of its file. False: there is no folder. */
bool oly_kernel_cache_name(const char *key, size_t key_bytes, char *name, size_t size);
#endif
