/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that run late and in any order that events allow: submit, record, wait and drain of a platform
 * (device/platform.h) for tests. Nothing is computed before a device is drained. Then the work of all devices runs one
 * entry at a time, in an order drawn at random, until that device is done; the others stop in the middle. So a
 * forgotten wait gives wrong values for most seeds, and a forgotten drain always. */
#ifndef LATE_STREAMS_H
#define LATE_STREAMS_H
#include "device/platform.h"

bool late_submit(int device, void (*run)(void *argument), void *argument);
bool late_record(int device, oly_event *event);
bool late_wait(int device, oly_event event);
oly_status late_drain(int device);

/* The order depends on it; 1, or LATE_SEED of the environment. */
void late_set_seed(unsigned seed);
unsigned late_seed(void);
#endif
