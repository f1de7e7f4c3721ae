/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform of platform_protected.c, for tests that select it themselves. */
#ifndef PLATFORM_PROTECTED_H
#define PLATFORM_PROTECTED_H
#include "device/platform.h"

extern const oly_platform platform_protected;
/* The memory in which this address is, also one inside of a buffer; -1: in none. */
int platform_protected_memory(const void *address);
#endif
