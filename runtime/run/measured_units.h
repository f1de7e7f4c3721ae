/* SPDX-License-Identifier: BSD-3-Clause */
/* The units in which work is measured (measure_local.c) and forecast (forecast.c). Private to runtime/run. */
#ifndef OLY_RUN_MEASURED_UNITS_H
#define OLY_RUN_MEASURED_UNITS_H
#include "kernel.h"

/* What a task's rate is multiplied by: elements; of sorts and searches, times the logarithm of a line's length; of windows, the products. */
double oly_local_units(const oly_local_task *t);
double oly_box_elements(int rank, const int64_t *extent);
/* Writes n numbers as elements of a type. */
void oly_write_numbers(char *to, oly_dtype dtype, const double *from, int64_t n);
#endif
