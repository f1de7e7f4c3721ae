/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for all processes: oly_sync. */
#include "array/array.h"
#include "array/trace.h"
#include "communicator.h"
#include "core/hash.h"
#include "device/platform.h"
#include "device/queue.h"
#include "run/execute.h"
#include <olympus.h>
#include <string.h>

/* An array with this number, derived from the name, on every device. */
static oly_array spread(uint32_t number)
{
    int64_t n = oly_device_count(), here = oly_local_device_count();
    int devices = (int)n;
    uint32_t *numbers = oly_malloc(sizeof *numbers * (size_t)here);
    if (!numbers) {
        oly_raise(oly_out_of_memory(sizeof *numbers * (size_t)here, "a number for each device"));
        return NULL;
    }
    for (int64_t k = 0; k < here; k++)
        numbers[k] = number;
    oly_mesh all = (oly_mesh_from_devices)(1, (const char *[]){"device"}, &devices, NULL);
    oly_array x = all ? (oly_from_local)((oly_named)(all, "device"), OLY_UINT32, 1, &n, numbers, &here) : NULL;
    oly_release(numbers);
    return x;
}

/* Checks that all processes have made the same calls, including calls on part of the devices and calls that sent
 * nothing. */
static oly_status meet_all(void)
{
    oly_queue_drain();
    OLY_TRY(oly_raise(oly_run_refused()));
    oly_status st = oly_world_meet("oly_sync");
    if (st != OLY_OK)
        oly_run_fail(st);
    return oly_raise(st);
}

oly_status(oly_sync)(const char *name)
{
    OLY_ENTER(OLY_STATE);
    if (!name)
        return oly_raise(oly_fail(OLY_INVALID, "the name is NULL; give one that identifies this place"));
    if (oly_trace_current())
        return oly_raise(oly_fail(OLY_TRACE, "a function is being recorded: wait before or after it is called"));
    if (!oly_platform_get()->computes) /* nothing to wait for */
        return OLY_OK;
    unsigned before = oly_raised_count(); /* errors raised before do not matter here */
    oly_scope_open();
    oly_array numbers = spread((uint32_t)oly_hash_text(0, name));
    oly_array least = numbers ? oly_min_with(oly_operand_array(numbers), (oly_reduce_options){0}) : NULL;
    oly_array most = numbers ? oly_max_with(oly_operand_array(numbers), (oly_reduce_options){0}) : NULL;
    bool alike = least && most && (oly_item)(least) == (oly_item)(most);
    oly_scope_close();
    oly_status st = oly_raised_since(before);
    if (st != OLY_OK)
        return st;
    return alike ? meet_all()
                 : oly_raise(oly_fail(OLY_DIVERGED, "this process waits at \"%s\", another at another name", name));
}
