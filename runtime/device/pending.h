/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs that have ended before their devices have done what they were given. On devices that compute late (platform.h) a run that needs
 * nothing of the host may leave its work pending: the next run on the same devices comes after it by their own order, and only who
 * looks at memory from outside of that order waits:
 *
 *      host       run 1 | run 2 | run 3 | ............ waits | reads
 *      device 0         ... work 1 | work 2 | work 3 .......
 *
 * When a run has ended, what its devices are given next comes after all uses of their memory. So memory d is at rest once device d is
 * drained: the platform does that before the host reads, writes or gives back memory, and waits for arrays (queue.h) do it for all
 * devices that may have computed them. How far the host runs ahead of a device is bounded.
 *
 * Called by runtime/run and runtime/device. */
#ifndef OLY_DEVICE_PENDING_H
#define OLY_DEVICE_PENDING_H
#include "core/error.h"

enum { OLY_PENDING_MARKS = 2 };

/* Devices with pending work, by their bits: at most OLY_MOST_LATE_DEVICES. */
extern _Atomic uint64_t oly_pending_devices;
static inline bool oly_is_pending(int device)
{
    return device < 64 && atomic_load_explicit(&oly_pending_devices, memory_order_acquire) >> device & 1;
}

/* A run of the call at `site` ends on these devices and leaves its work pending. `failed` reports what is wrong with them, once that
 * is seen by others. fails as a device does. */
oly_status oly_pending_add(int n_devices, const int *devices, oly_site site, void (*failed)(oly_status, oly_site));
/* Waits for the device, as the platform does; who calls this reports what fails. */
oly_status oly_pending_drain(int device);
/* To the message of a failure of one of these devices adds the calls that may have caused it, which are pending no more; returns
 * `status`. */
oly_status oly_pending_blame(int n_devices, const int *devices, oly_status status);

/* Wait, and report what fails: for the work that uses a memory; for that of all devices that have shared runs with this one, directly or
 * not; of all devices. */
oly_status oly_pending_settle_memory(int memory);
void oly_pending_settle(int device);
oly_status oly_pending_settle_all(void);
void oly_pending_forget(void); /* when the queue has stopped */
#endif
