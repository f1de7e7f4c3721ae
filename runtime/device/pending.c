/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs that have ended before their devices' work. See pending.h. */
#include "device/pending.h"
#include "core/short_lock.h"
#include "device/platform.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Every PACE runs the host waits until the runs before the last PACE * OLY_PENDING_MARKS are done, while the device has work. */
enum { PACE = 16 };

_Atomic uint64_t oly_pending_devices;

static struct {
    oly_short_lock lock;
    struct {
        uint64_t left, done; /* runs that left work pending; those whose work is known to be done */
        uint64_t with;       /* the devices of its runs, since none of them had pending work */
        oly_site oldest;     /* of the first run that is not done, or of one before it */
        struct {
            uint64_t runs;  /* that were left when it was set */
            oly_site first; /* of the run after them */
        } mark[OLY_PENDING_MARKS];
    } of[OLY_MOST_LATE_DEVICES];
    void (*failed)(oly_status, oly_site);
} all = {.lock = OLY_SHORT_LOCK_INIT};

static uint64_t bit(int device)
{
    return (uint64_t)1 << device;
}

/* -- runs ------------------------------------------------------------------------------------------------------------------ */

static int mark_after(uint64_t runs)
{
    return (int)(runs / PACE % OLY_PENDING_MARKS);
}

static void add_locked(int device, uint64_t together, oly_site site)
{
    uint64_t pending = atomic_load_explicit(&oly_pending_devices, memory_order_relaxed), runs = all.of[device].left;
    if (!(pending & all.of[device].with))
        all.of[device].with = 0;
    if (!(pending & bit(device)))
        all.of[device].oldest = site;
    if (runs % PACE == 0)
        all.of[device].mark[mark_after(runs)].first = site;
    all.of[device].with |= together;
    all.of[device].left++;
}

static void done_locked(int device, uint64_t runs)
{
    if (all.of[device].done < runs)
        all.of[device].done = runs;
    if (all.of[device].done == all.of[device].left)
        atomic_fetch_and(&oly_pending_devices, ~bit(device));
}

/* `left` is changed by the thread that submits to the device alone. */
static oly_status keep_pace(int device)
{
    uint64_t runs = all.of[device].left;
    int k = mark_after(runs);
    if (runs % PACE)
        return OLY_OK;
    OLY_TRY(oly_platform_get()->run_ahead(device, k, runs > PACE * OLY_PENDING_MARKS));
    oly_short_lock_take(&all.lock);
    if (all.of[device].done < all.of[device].mark[k].runs) {
        all.of[device].oldest = all.of[device].mark[k].first;
        done_locked(device, all.of[device].mark[k].runs);
    }
    all.of[device].mark[k].runs = runs;
    oly_short_lock_give(&all.lock);
    return OLY_OK;
}

oly_status oly_pending_add(int n_devices, const int *devices, oly_site site, void (*failed)(oly_status, oly_site))
{
    uint64_t together = 0;
    oly_status st = OLY_OK;
    for (int k = 0; k < n_devices; k++)
        together |= bit(devices[k]);
    oly_short_lock_take(&all.lock);
    all.failed = failed;
    for (int k = 0; k < n_devices; k++)
        add_locked(devices[k], together, site);
    atomic_fetch_or(&oly_pending_devices, together);
    oly_short_lock_give(&all.lock);
    for (int k = 0; k < n_devices && st == OLY_OK; k++)
        st = keep_pace(devices[k]);
    return st;
}

/* -- waiting ----------------------------------------------------------------------------------------------------------------- */

oly_status oly_pending_drain(int device)
{
    oly_short_lock_take(&all.lock);
    uint64_t runs = all.of[device].left;
    oly_short_lock_give(&all.lock);
    OLY_TRY(oly_platform_get()->drain(device));
    oly_short_lock_take(&all.lock);
    done_locked(device, runs);
    oly_short_lock_give(&all.lock);
    return OLY_OK;
}

/* The pending runs of a device, which are forgotten. Returns how many there were. */
static uint64_t take_runs(int device, oly_site *oldest)
{
    oly_short_lock_take(&all.lock);
    uint64_t runs = all.of[device].left - all.of[device].done;
    *oldest = all.of[device].oldest;
    done_locked(device, all.of[device].left);
    oly_short_lock_give(&all.lock);
    return runs;
}

static void add_to_message(oly_status status, const char *more)
{
    char text[1200];
    snprintf(text, sizeof text, "%s", oly_pending_message());
    oly_drop_message();
    (void)oly_fail(status, "%s%s", text, more);
}

#define HOW_TO_KNOW "which had not been waited for (with OLYMPUS_DISABLE=pending-runs each is)"

oly_status oly_pending_blame(int n_devices, const int *devices, oly_status status)
{
    for (int k = 0; k < n_devices; k++) {
        oly_site oldest;
        uint64_t runs = oly_is_pending(devices[k]) ? take_runs(devices[k], &oldest) : 0;
        char place[200], more[400];
        if (runs == 0 || status != OLY_DEVICE_FAILED)
            continue;
        oly_site_text(&oldest, place, sizeof place);
        snprintf(more, sizeof more,
                 "; or the cause is one of the calls before it (%" PRIu64 "), since %s, " HOW_TO_KNOW, runs,
                 *place ? place : "the first");
        add_to_message(status, more);
        status = OLY_DEVICE_FAILED;
        n_devices = k + 1; /* once */
    }
    return status;
}

static oly_status settle_device(int device)
{
    oly_status st = oly_pending_drain(device);
    oly_site oldest;
    if (st == OLY_OK || st == OLY_STATE) /* OLY_STATE: launches are being recorded, by this thread */
        return st;
    uint64_t runs = take_runs(device, &oldest);
    if (runs == 0) /* another thread has reported it */
        return st;
    oly_short_lock_take(&all.lock);
    void (*failed)(oly_status, oly_site) = all.failed;
    oly_short_lock_give(&all.lock);
    char more[300];
    snprintf(more, sizeof more, "; in this call or one of those after it (%" PRIu64 "), " HOW_TO_KNOW, runs - 1);
    if (runs > 1)
        add_to_message(st, more);
    failed(st, oldest);
    return st;
}

oly_status oly_pending_settle_memory(int memory)
{
    return oly_is_pending(memory) ? settle_device(memory) : OLY_OK;
}

static oly_status settle_devices(uint64_t devices)
{
    oly_status st = OLY_OK;
    for (int d = 0; d < OLY_MOST_LATE_DEVICES; d++)
        if (devices & bit(d) && oly_is_pending(d)) {
            oly_status own = settle_device(d);
            st = st == OLY_OK ? own : st;
        }
    return st;
}

void oly_pending_settle(int device)
{
    uint64_t devices = device < OLY_MOST_LATE_DEVICES ? bit(device) : 0, before = 0;
    if (!atomic_load_explicit(&oly_pending_devices, memory_order_acquire) || !devices)
        return;
    oly_short_lock_take(&all.lock);
    while (devices != before) {
        before = devices;
        for (int d = 0; d < OLY_MOST_LATE_DEVICES; d++)
            if (before & bit(d))
                devices |= all.of[d].with;
    }
    oly_short_lock_give(&all.lock);
    settle_devices(devices);
}

oly_status oly_pending_settle_all(void)
{
    return settle_devices(atomic_load_explicit(&oly_pending_devices, memory_order_acquire));
}

void oly_pending_forget(void)
{
    oly_short_lock_take(&all.lock);
    memset(all.of, 0, sizeof all.of);
    atomic_store(&oly_pending_devices, 0);
    oly_short_lock_give(&all.lock);
}
