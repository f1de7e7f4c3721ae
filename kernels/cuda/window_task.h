/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by window.cu and launch_window.c. */
#ifndef OLY_CUDA_WINDOW_TASK_H
#define OLY_CUDA_WINDOW_TASK_H
enum { OLY_CUDA_WINDOW_DOWN = 4 }; /* results below each other that a thread computes */
#endif
