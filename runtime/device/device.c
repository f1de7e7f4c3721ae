/* The global list of devices: made once at start from what every process has, and read by everyone after that.
 */
#include "device/device.h"
#include "core/error.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct oly_device_impl *devices; /* owned */
    int count, my_rank;
    int my_first, my_count; /* this process's part of the list */
    char platform[16];
} list;

oly_status oly_devices_start(int n_ranks, const int *counts, int my_rank, const char *platform)
{
    if (list.devices)
        return oly_fail(OLY_STATE, "devices have been started already");
    int64_t total = 0;
    for (int r = 0; r < n_ranks; r++)
        total += counts[r];
    if (total > INT32_MAX)
        return oly_fail(OLY_OVERFLOW, "%lld devices are more than %d", (long long)total, INT32_MAX);
    list.devices = oly_calloc((size_t)total, sizeof *list.devices);
    if (!list.devices)
        return oly_out_of_memory((size_t)total * sizeof *list.devices, "the list of devices");
    snprintf(list.platform, sizeof list.platform, "%s", platform);
    list.count = 0;
    list.my_rank = my_rank;
    for (int r = 0; r < n_ranks; r++) {
        if (r == my_rank) {
            list.my_first = list.count;
            list.my_count = counts[r];
        }
        for (int i = 0; i < counts[r]; i++) {
            int id = list.count++;
            list.devices[id] = (struct oly_device_impl){.id = id, .process = r, .local = i, .platform = list.platform};
        }
    }
    return OLY_OK;
}

void oly_devices_stop(void)
{
    oly_release(list.devices);
    memset(&list, 0, sizeof list);
}

const struct oly_device_impl *oly_device_at(int id)
{
    return id >= 0 && id < list.count ? &list.devices[id] : NULL;
}

/* -- public ------------------------------------------------------------------------------------ */

int oly_device_count(void)
{
    return list.count;
}

int oly_local_device_count(void)
{
    return list.my_count;
}

static oly_device device_or_error(const char *kind, int index, int first, int count)
{
    if (index >= 0 && index < count)
        return &list.devices[first + index];
    oly_raise(oly_fail(OLY_INVALID, "%s %d does not exist; there are %d, numbered from 0", kind, index, count));
    return NULL;
}

oly_device oly_get_device(int index)
{
    return device_or_error("device", index, 0, list.count);
}

oly_device oly_local_device(int index)
{
    return device_or_error("local device", index, list.my_first, list.my_count);
}

int oly_device_id(oly_device d)
{
    return d ? d->id : -1;
}

int oly_device_process(oly_device d)
{
    return d ? d->process : -1;
}

const char *oly_device_platform(oly_device d)
{
    return d ? d->platform : "";
}

bool oly_device_is_local(oly_device d)
{
    return d && d->process == list.my_rank;
}

int oly_device_str(oly_device d, char *buffer, size_t size)
{
    char upper[sizeof list.platform] = "";
    if (!d)
        return snprintf(buffer, size, "%s", upper);
    for (size_t i = 0; d->platform[i]; i++)
        upper[i] = (char)toupper((unsigned char)d->platform[i]);
    return snprintf(buffer, size, "%s_%d", upper, d->id);
}
