/* SPDX-License-Identifier: BSD-3-Clause */
/* The global list of devices: set once at start from what every process has, read by everyone after that. */
#include "device/device.h"
#include "core/error.h"
#include "core/option.h"
#include "device/cuda/cuda.h"
#include "device/platform.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A job may have millions of devices, of which a program uses few: handles are created on first use. */
enum { BLOCK = 1024 };

static struct {
    struct oly_device_impl **blocks; /* owned, as are the blocks of BLOCK devices; NULL: none used yet */
    int count, n_ranks, my_rank;
    int beside, all;        /* CPU devices of each rank beside its GPUs; all ids: theirs follow the others' */
    int my_first, my_count; /* this process's part of the list */
    int each;               /* devices of every rank; 0: see first_of */
    int *first_of;          /* owned; first device of each rank, and the count */
    char platform[16];
} list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static oly_status begin_list(int n_ranks, int my_rank, int64_t total, const char *platform)
{
    if (list.blocks)
        return oly_fail(OLY_STATE, "devices have been started already");
    if (total > INT32_MAX)
        return oly_fail(OLY_OVERFLOW, "%lld devices are more than %d", (long long)total, INT32_MAX);
    size_t n_blocks = (size_t)(total / BLOCK + 1);
    list.blocks = oly_calloc(n_blocks, sizeof *list.blocks);
    if (!list.blocks)
        return oly_out_of_memory(n_blocks * sizeof *list.blocks, "the list of devices");
    snprintf(list.platform, sizeof list.platform, "%s", platform);
    list.count = list.all = (int)total;
    list.n_ranks = n_ranks;
    list.my_rank = my_rank;
    return OLY_OK;
}

oly_status oly_devices_start(int n_ranks, const int *counts, int my_rank, const char *platform)
{
    int64_t total = 0;
    for (int r = 0; r < n_ranks; r++)
        total += counts[r];
    OLY_TRY(begin_list(n_ranks, my_rank, total, platform));
    list.first_of = oly_calloc((size_t)n_ranks + 1, sizeof *list.first_of);
    if (!list.first_of) {
        oly_devices_stop();
        return oly_out_of_memory((size_t)n_ranks * sizeof *list.first_of, "the list of devices");
    }
    for (int r = 0; r < n_ranks; r++)
        list.first_of[r + 1] = list.first_of[r] + counts[r];
    list.my_first = list.first_of[my_rank];
    list.my_count = counts[my_rank];
    return OLY_OK;
}

oly_status oly_devices_start_alike(int n_ranks, int count, int my_rank, const char *platform)
{
    OLY_TRY(begin_list(n_ranks, my_rank, (int64_t)n_ranks * count, platform));
    list.each = count;
    list.my_first = my_rank * count;
    list.my_count = count;
    return OLY_OK;
}

oly_status oly_devices_add_beside(int of_each_rank)
{
    int64_t all = list.count + (int64_t)list.n_ranks * of_each_rank;
    size_t n_blocks = (size_t)(all / BLOCK + 1);
    if (all > INT32_MAX)
        return oly_fail(OLY_OVERFLOW, "%lld devices are more than %d", (long long)all, INT32_MAX);
    struct oly_device_impl **blocks = oly_calloc(n_blocks, sizeof *blocks);
    if (!blocks)
        return oly_out_of_memory(n_blocks * sizeof *blocks, "the list of devices");
    oly_release(list.blocks); /* none is used yet */
    list.blocks = blocks;
    list.beside = of_each_rank;
    list.all = (int)all;
    return OLY_OK;
}

void oly_devices_stop(void)
{
    for (int b = 0; list.blocks && b <= list.all / BLOCK; b++) {
        for (int k = 0; list.blocks[b] && k < BLOCK; k++)
            list.blocks[b][k].tag = OLY_DEAD_TAG(OLY_HANDLE_DEVICE);
        oly_bury(list.blocks[b]);
    }
    oly_release(list.blocks);
    oly_release(list.first_of);
    memset(&list, 0, sizeof list);
}

static int rank_of(int id)
{
    int low = 0, high = list.n_ranks - 1;
    if (list.each)
        return id / list.each;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (list.first_of[middle + 1] > id)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct oly_device_impl device_beside(int id)
{
    int number = id - list.count, rank = number / list.beside;
    int others = list.each ? list.each : list.first_of[rank + 1] - list.first_of[rank];
    return (struct oly_device_impl){OLY_TAG(OLY_HANDLE_DEVICE), id, rank, others + number % list.beside, "cpu"};
}

static struct oly_device_impl device_of(int id)
{
    int rank = rank_of(id), first = list.each ? rank * list.each : list.first_of[rank];
    return (struct oly_device_impl){OLY_TAG(OLY_HANDLE_DEVICE), id, rank, id - first, list.platform};
}

static void make_block(int b)
{
    struct oly_device_impl *devices = oly_calloc(BLOCK, sizeof *devices);
    for (int k = 0, id = b * BLOCK; devices && k < BLOCK && id < list.all; k++, id++)
        devices[k] = id < list.count ? device_of(id) : device_beside(id);
    list.blocks[b] = devices;
}

const struct oly_device_impl *oly_device_at(int id)
{
    if (id < 0 || id >= list.all)
        return NULL;
    pthread_mutex_lock(&lock);
    if (!list.blocks[id / BLOCK])
        make_block(id / BLOCK);
    const struct oly_device_impl *block = list.blocks[id / BLOCK];
    pthread_mutex_unlock(&lock);
    return block ? &block[id % BLOCK] : NULL;
}

/* -- public ------------------------------------------------------------------------------------ */

int oly_device_count(void)
{
    OLY_ENTER(0);
    return list.count;
}

int oly_local_device_count(void)
{
    OLY_ENTER(0);
    return list.my_count;
}

static oly_device device_or_error(const char *kind, int index, int first, int count)
{
    if (index >= 0 && index < count) {
        oly_device d = oly_device_at(first + index);
        if (!d)
            oly_raise(oly_out_of_memory(BLOCK * sizeof *d, "the list of devices"));
        return d;
    }
    oly_raise(oly_fail(OLY_INVALID, "%s %d does not exist; there are %d, numbered from 0", kind, index, count));
    return NULL;
}

oly_device oly_get_device(int index)
{
    OLY_ENTER(NULL);
    return device_or_error("device", index, 0, list.all);
}

oly_device oly_local_device(int index)
{
    OLY_ENTER(NULL);
    if (index >= list.my_count && index < list.my_count + list.beside)
        return device_or_error("device", list.count + list.my_rank * list.beside + index - list.my_count, 0, list.all);
    return device_or_error("local device", index, list.my_first, list.my_count);
}

/* The first id of a platform and how many follow; none where the job has no such devices. */
static int range_of(const char *platform, int *first)
{
    const char *name = strcmp(platform, "gpu") == 0 ? "cuda" : platform;
    *first = 0;
    if (strcmp(name, list.platform) == 0)
        return list.count;
    *first = list.count;
    return strcmp(name, "cpu") == 0 ? list.all - list.count : 0;
}

int oly_platform_device_count(const char *platform)
{
    OLY_ENTER(0);
    int first;
    if (!platform) {
        oly_raise(oly_fail(OLY_INVALID, "the platform is NULL; give \"cpu\" or \"cuda\""));
        return 0;
    }
    return range_of(platform, &first);
}

oly_device oly_platform_device(const char *platform, int index)
{
    OLY_ENTER(NULL);
    int first, n = platform ? range_of(platform, &first) : 0;
    if (!platform)
        oly_raise(oly_fail(OLY_INVALID, "the platform is NULL; give \"cpu\" or \"cuda\""));
    else if (n == 0)
        oly_raise(oly_fail(OLY_INVALID,
                           "this job has no devices of platform \"%s\"; OLYMPUS_PLATFORMS=cuda,cpu has CPU devices "
                           "beside GPUs, oly_print_devices says what there is",
                           platform));
    else
        return device_or_error(platform, index, first, n);
    return NULL;
}

int oly_device_id(oly_device d)
{
    OLY_ENTER(-1);
    if (oly_need(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return -1;
    return d ? d->id : -1;
}

int oly_device_process(oly_device d)
{
    OLY_ENTER(-1);
    if (oly_need(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return -1;
    return d ? d->process : -1;
}

const char *oly_device_platform(oly_device d)
{
    OLY_ENTER(NULL);
    if (oly_need(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return NULL;
    return d ? d->platform : "";
}

bool oly_device_is_local(oly_device d)
{
    OLY_ENTER(false);
    if (oly_need(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return false;
    return d && d->process == list.my_rank;
}

int oly_device_str(oly_device d, char *buffer, size_t size)
{
    OLY_ENTER(-1);
    if (oly_need_or_null(d, OLY_HANDLE_DEVICE) != OLY_OK)
        return -1;
    char upper[sizeof list.platform] = "";
    if (!buffer)
        size = 0;
    if (!d)
        return snprintf(buffer, size, "%s", upper);
    for (size_t i = 0; d->platform[i]; i++)
        upper[i] = (char)toupper((unsigned char)d->platform[i]);
    return snprintf(buffer, size, "%s_%d", upper, d->id < list.count ? d->id : d->id - list.count);
}

static void print_list(const char *what, int first, int n)
{
    enum { MOST = 64 }; /* of long lists the first ones */
    char name[32];
    printf("%s devices = [", what);
    for (int k = 0; k < n && k < MOST; k++) {
        (oly_device_str)(oly_device_at(first + k), name, sizeof name);
        printf("%s%s", k ? ", " : "", name);
    }
    if (n > MOST)
        printf(", and %d more", n - MOST);
    printf("]\n");
}

static char messages[320];

void oly_devices_tell_messages(const char *how)
{
    snprintf(messages, sizeof messages, "%s", how);
}

void oly_print_devices(void)
{
    OLY_ENTER();
    const oly_platform *platform = oly_platform_get();
    const char *why = "";
    print_list("global", 0, list.count);
    print_list("local", list.my_first, list.my_count);
    if (list.beside)
        print_list("cpu", list.count, list.all - list.count);
    for (int k = 0; platform->describe && k < list.my_count; k++) {
        char name[32], text[200];
        (oly_device_str)(oly_device_at(list.my_first + k), name, sizeof name);
        platform->describe(k, text, sizeof text);
        printf("%s: %s\n", name, text);
    }
    if (*messages)
        printf("messages between processes: %s\n", messages);
    char line[400];
    for (int k = 0; platform->libraries && platform->libraries(k, line, sizeof line); k++)
        printf("%s\n", line);
    bool wanted = strcmp(platform->name, "cpu") == 0 && strstr(oly_option.platforms, "cuda");
    if (wanted && *oly_platform_given_up())
        printf("no GPU: %s\n", oly_platform_given_up());
    else if (wanted && getenv("OLYMPUS_PLATFORMS") && !oly_cuda_is_there(&why)) /* who has asked is told */
        printf("no GPU: %s\n", why);
    fflush(stdout);
}
