/* SPDX-License-Identifier: BSD-3-Clause */
/* See detour.h. */
#include "run/detour.h"
#include "core/error.h"
#include "device/platform.h"
#include "run/device_counts.h"
#include <stdlib.h>
#include <string.h>

enum { CACHE_LINE = 64 };

typedef struct oly_range {
    char *begin, *end; /* addresses of the device */
    int cell, memory;
    bool written;
    char *copy; /* of the byte at `begin` */
} range;

/* -- cells -------------------------------------------------------------------------------------------------------------- */

/* Tiny slots, as counters of loops, are on all devices. */
static size_t bytes_of(const oly_plan *plan, int cell)
{
    const oly_slot *s = &plan->slots[oly_cell_slot(plan, cell)];
    size_t own = s->device_bytes[oly_cell_device(plan, cell)];
    return own > 0 || s->bytes > CACHE_LINE ? own : s->bytes;
}

void oly_cells_use(oly_cells *c, int cell, bool written)
{
    size_t bytes = cell < 0 || !c->base[cell] ? 0 : bytes_of(c->plan, cell);
    if (bytes == 0 || c->failed)
        return;
    if (c->n == c->room) {
        int room = c->room ? 2 * c->room : 8;
        range *more = oly_calloc((size_t)room, sizeof *more);
        if (!more) {
            c->failed = true;
            return;
        }
        if (c->n)
            memcpy(more, c->range, sizeof *more * (size_t)c->n);
        oly_release(c->range);
        c->range = more;
        c->room = room;
    }
    char *begin = c->base[cell];
    int memory = oly_platform_memory(c->plan->devices[oly_cell_device(c->plan, cell)]);
    c->range[c->n++] = (range){begin, begin + bytes, cell, memory, written, NULL};
}

static void read_places(oly_cells *c, const oly_place *p, int n)
{
    for (int k = 0; k < n; k++)
        oly_cells_use(c, p[k].base, false);
}

void oly_cells_of_step(oly_cells *c, const oly_step *step, int device)
{
    if (step->kind == OLY_STEP_TILE) {
        const oly_tile_work *w = &step->tile.device[device];
        read_places(c, w->loads, step->tile.program.n_loads);
        for (int k = 0; k < step->tile.program.n_stores; k++)
            oly_cells_use(c, w->stores[k].base, true);
    } else if (step->kind == OLY_STEP_REDUCE) {
        const oly_reduce_work *w = &step->reduce.device[device];
        oly_cells_use(c, w->has_work ? w->in.base : -1, false);
        oly_cells_use(c, w->out_base, true);
        oly_cells_use(c, w->scratch_base, true);
    } else if (step->kind == OLY_STEP_LOCAL) {
        const oly_local_work *w = &step->local.device[device];
        read_places(c, w->in, w->task.n_in);
        oly_cells_use(c, w->out_base, true);
        oly_cells_use(c, w->scratch_base, true);
    } else if (step->kind == OLY_STEP_CALL) {
        const oly_call_work *w = &step->call.device[device];
        read_places(c, w->in_place, step->call.n_in);
        for (int k = 0; k < step->call.call->n_out; k++)
            oly_cells_use(c, w->out_base[k], true);
        oly_cells_use(c, w->scratch_base, true);
    } else {
        const oly_gemm_work *w = &step->gemm.device[device];
        oly_cells_use(c, w->a.base, false);
        oly_cells_use(c, w->b.base, false);
        oly_cells_use(c, w->out_base, true);
    }
}

void oly_cells_of_copy(oly_cells *c, const oly_copy_work *copy)
{
    oly_cells_use(c, copy->from.base, false);
    oly_cells_use(c, copy->to.base, true);
}

void oly_cells_of_reduction(oly_cells *c, const oly_reduction_work *group)
{
    for (int k = 0; k < group->n_sources; k++)
        oly_cells_use(c, group->source_base[k], false);
    for (int k = 0; k < group->n_outs; k++)
        oly_cells_use(c, group->out_base[k], true);
}

/* -- copies ------------------------------------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const range *x = a, *y = b;
    if (x->memory != y->memory)
        return x->memory < y->memory ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The first range after k that shares no byte with those from k on; *end: of these. */
static int next_apart(const oly_cells *c, int k, char **end, bool *written)
{
    int next = k;
    *end = c->range[k].end;
    *written = false;
    for (; next < c->n && c->range[next].memory == c->range[k].memory && (next == k || c->range[next].begin < *end);
         next++) {
        *end = c->range[next].end > *end ? c->range[next].end : *end;
        *written = *written || c->range[next].written;
    }
    return next;
}

/* Bytes that copies take in all, each at its address's place in a cache line; sets the copies where there is memory. */
static size_t place_copies(oly_cells *c, char *memory)
{
    size_t at = 0;
    char *end;
    bool written;
    for (int k = 0, next; k < c->n; k = next) {
        next = next_apart(c, k, &end, &written);
        if (oly_platform_is_host(c->range[k].memory)) { /* of CPU devices beside GPUs: used where it is */
            for (int j = k; j < next; j++)
                c->range[j].copy = c->range[j].begin;
            continue;
        }
        at = (at + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE + (uintptr_t)c->range[k].begin % CACHE_LINE;
        for (int j = k; memory && j < next; j++)
            c->range[j].copy = memory + at + (c->range[j].begin - c->range[k].begin);
        at += (size_t)(end - c->range[k].begin);
    }
    return at;
}

static oly_status move_copies(oly_cells *c, bool back)
{
    char *end;
    bool written;
    for (int k = 0, next; k < c->n; k = next) {
        next = next_apart(c, k, &end, &written);
        const range *r = &c->range[k];
        size_t bytes = (size_t)(end - r->begin);
        if (r->copy == r->begin)
            continue;
        if (!back)
            OLY_TRY(oly_platform_get()->read(r->copy, r->memory, r->begin, bytes));
        else if (written)
            OLY_TRY(oly_platform_get()->write(r->memory, r->begin, r->copy, bytes));
        if (!back || written)
            oly_count(&oly_device_counted.bytes_on_host, (int64_t)bytes);
    }
    return OLY_OK;
}

static void drop(oly_detour *d)
{
    oly_release(d->cells.range);
    oly_release(d->memory);
    oly_release(d->host);
}

static char *aligned(char *memory)
{
    return memory + (CACHE_LINE - (uintptr_t)memory % CACHE_LINE) % CACHE_LINE;
}

oly_status oly_detour_begin(oly_detour *d, void ***host)
{
    oly_cells *c = &d->cells;
    size_t cells = (size_t)c->plan->n_slots * (size_t)c->plan->n_devices;
    if (c->n)
        qsort(c->range, (size_t)c->n, sizeof *c->range, by_address);
    size_t bytes = place_copies(c, NULL);
    d->host = c->failed ? NULL : oly_malloc(sizeof *d->host * (cells + 1));
    d->memory = d->host ? oly_malloc(bytes + CACHE_LINE) : NULL;
    if (!d->memory) {
        drop(d);
        return oly_out_of_memory(bytes, "copies of a device's memory, for a step that is computed on the host");
    }
    if (cells)
        memcpy(d->host, c->base, sizeof *d->host * cells);
    place_copies(c, aligned(d->memory));
    for (int k = 0; k < c->n; k++)
        d->host[c->range[k].cell] = c->range[k].copy;
    oly_status st = move_copies(c, false);
    if (st != OLY_OK)
        drop(d);
    oly_count(&oly_device_counted.on_host, 1);
    *host = d->host;
    return st;
}

oly_status oly_detour_end(oly_detour *d)
{
    oly_status st = move_copies(&d->cells, true);
    drop(d);
    return st;
}
