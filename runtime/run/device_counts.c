/* SPDX-License-Identifier: BSD-3-Clause */
/* See device_counts.h. */
#include "run/device_counts.h"

oly_device_counters oly_device_counted;
