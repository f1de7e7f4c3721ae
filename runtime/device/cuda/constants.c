/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of launches in the memory of devices: programs of tiles, tables of strides. Equal bytes are there once. See modules.h. */
#include "core/hash.h"
#include "device/cuda/modules.h"
#include <stdatomic.h>
#include <string.h>

enum { LISTS = 1024, MOST = 4096 };

typedef struct constant {
    struct constant *next;
    uint64_t hash;
    size_t bytes;
    void *at;
    char copy[];
} constant;

/* Of one device; a device's launches are made by one thread at a time. */
static struct {
    constant *list[LISTS];
    int n;
} of_device[OLY_MOST_APART];

static _Atomic uint64_t epoch = 1;
_Thread_local bool oly_cuda_capturing;

uint64_t oly_cuda_epoch(void)
{
    return atomic_load(&epoch);
}

void oly_cuda_new_epoch(void)
{
    atomic_fetch_add(&epoch, 1);
}

static void forget(int device)
{
    oly_cuda_new_epoch();
    for (int k = 0; k < LISTS; k++)
        for (constant *c; (c = of_device[device].list[k]);) {
            of_device[device].list[k] = c->next;
            oly_cuda_release(device, c->at, c->bytes);
            oly_release(c);
        }
    of_device[device].n = 0;
}

static oly_status add(int device, uint64_t hash, const void *data, size_t bytes, const void **at)
{
    if (of_device[device].n == MOST) {
        OLY_TRY(oly_cuda_drain(device));
        forget(device);
    }
    constant *c = oly_malloc(sizeof *c + bytes);
    if (!c)
        return oly_out_of_memory(bytes, "a kernel's constants");
    *c = (constant){.hash = hash, .bytes = bytes};
    memcpy(c->copy, data, bytes);
    if (!oly_cuda_allocate(device, bytes, &c->at)) {
        oly_release(c);
        OLY_TRY(oly_cuda_drain(device)); /* a GPU that has failed gives no memory */
        return oly_out_of_memory(bytes, "a kernel's constants, on the GPU");
    }
    oly_status st = oly_cuda_write(device, c->at, data, bytes);
    if (st != OLY_OK) {
        oly_cuda_release(device, c->at, bytes);
        oly_release(c);
        return st;
    }
    c->next = of_device[device].list[hash % LISTS];
    of_device[device].list[hash % LISTS] = c;
    of_device[device].n++;
    *at = c->at;
    return OLY_OK;
}

oly_status oly_cuda_constant(int device, const void *data, size_t bytes, const void **at)
{
    uint64_t hash = oly_hash(bytes, data, bytes);
    for (const constant *c = of_device[device].list[hash % LISTS]; c; c = c->next)
        if (c->hash == hash && c->bytes == bytes && memcmp(c->copy, data, bytes) == 0) {
            *at = c->at;
            return OLY_OK;
        }
    return add(device, hash, data, bytes, at);
}

void oly_cuda_constants_stop(void)
{
    for (int d = 0; d < oly_cuda_device_count(); d++)
        if (oly_cuda_device_at(d)->gpu)
            forget(d);
}
