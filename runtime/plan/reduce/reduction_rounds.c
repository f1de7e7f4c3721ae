/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory for staged partial results, those received from other processes and not reduced yet, and the number of
 * rounds that keeps it within the limit. See reduction_steps.c. */
#include "plan/reduce/reduction_room.h"
#include "core/option.h"
#include <string.h>

int64_t oly_reduction_limit(void)
{
    return (oly_option.exchange_memory << 20) / 4;
}

int64_t oly_reduction_limit_left(const oly_planner *p)
{
    return oly_reduction_limit() - (p->reduction_share ? p->reduction_share->taken : 0);
}

int oly_reduction_staging(oly_planner *p, oly_block *b)
{
    int slot = p->reduction_share ? p->reduction_share->staging : oly_slot_new(p, NULL, 0);
    if (slot >= 0)
        p->plan->slots[slot].block = b;
    return slot;
}

void oly_slot_grow(oly_planner *p, int slot, int device, size_t bytes)
{
    oly_slot *s = &p->plan->slots[slot];
    if (s->device_bytes[device] < bytes)
        s->device_bytes[device] = bytes;
    if (s->bytes < bytes)
        s->bytes = bytes;
}

/* An upper bound of what a process stages for one value in a single round. */
static int64_t staged_by(const folder *f, const reduced_value *v, int process)
{
    oly_mesh mesh = f->p->mesh;
    int first, n_last = 0, last[OLY_REDUCTION_SOURCES], n = oly_mesh_devices_in(mesh, process, &first);
    int64_t bytes = 0;
    for (int id = first; id < first + n; id++) {
        int position = oly_mesh_position_of(mesh, id), counts[4], sources[OLY_REDUCTION_SOURCES];
        if (position < 0)
            continue;
        int n_sources = oly_reduction_sources(mesh, &v->part->stage, position, counts, sources);
        if (n_sources == n_last && memcmp(sources, last, sizeof *sources * (size_t)n_sources) == 0)
            continue; /* same group as the device before */
        n_last = n_sources;
        memcpy(last, sources, sizeof *sources * (size_t)n_sources);
        int processes[OLY_REDUCTION_SOURCES],
            n_processes = oly_reduction_processes(mesh, sources, n_sources, processes), j = 0;
        while (j < n_processes && processes[j] != process)
            j++;
        oly_box box = oly_layout_box(v->of->layout, position);
        int64_t begin = 0, end = oly_box_count(&box);
        if (v->part->sliced)
            oly_reduction_slice(0, end, j, n_processes, &begin, &end);
        for (int k = 0; k < n_sources; k++)
            if (oly_mesh_process_of(oly_mesh_device_id(mesh, sources[k])) != process)
                bytes += (end - begin) * f->element + 64;
    }
    return bytes;
}

/* A rough upper bound over all processes. */
static int64_t staged_at_most(const folder *f)
{
    int64_t bytes = 0, each = oly_mesh_devices_each_in(f->p->mesh), devices = f->p->mesh->n_devices;
    devices = each && each < devices ? each : devices;
    for (int k = 0; k < f->n; k++) {
        const oly_reduction_stage *s = &f->values[k]->part->stage;
        int64_t sources = 1, lists = devices, processes = 1;
        for (int j = 0; j < s->n_digits; j++) {
            int run = s->digits[j].same, here = f->p->mesh->together[s->digits[j].axis] / s->digits[j].stride;
            sources *= s->digits[j].radix;
            lists = (lists + run - 1) / run; /* a run belongs to one process, which stages its list once */
            processes *= here > 1 ? (s->digits[j].radix + here - 1) / here : s->digits[j].radix;
        }
        if (processes == 1)
            continue; /* no other process takes part */
        int64_t slice = f->values[k]->part->sliced ? 2 * f->values[k]->largest / processes : f->values[k]->largest;
        bytes += sources * lists * ((slice < f->values[k]->largest ? slice : f->values[k]->largest) + 64);
    }
    return bytes;
}

int oly_reduction_rounds_at_most(const folder *f)
{
    int64_t limit = oly_reduction_limit_left(f->p) / 16 * 15, rounds = (staged_at_most(f) + limit - 1) / limit;
    return rounds > 1 ? (int)rounds : 1;
}

/* Decided by the process that stages most, so the same on every process. With very many processes only a sample is
 * examined. */
int oly_reduction_rounds(const folder *f)
{
    enum { MOST_COUNTED = 64 };
    int64_t most = staged_at_most(f), limit = oly_reduction_limit_left(f->p) / 16 * 15;
    int n = oly_mesh_processes(), step = (n + MOST_COUNTED - 1) / MOST_COUNTED;
    if (most <= limit)
        return 1;
    most = 0;
    for (int r = 0; r < n; r += step) {
        int64_t bytes = 0;
        for (int k = 0; k < f->n; k++)
            bytes += staged_by(f, f->values[k], r);
        most = bytes > most ? bytes : most;
    }
    return most <= limit ? 1 : (int)((most + limit - 1) / limit);
}
