/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for tiles. See tile_memory.h. */
#include "run/tile_memory.h"
#include "device/platform.h"
#include "core/error.h"
#include "device/workers.h"
#include "run/stencil_run.h"

static size_t bytes_of(const oly_plan *plan, const oly_block *b)
{
    size_t most = 0;
    for (int k = 0; k < b->n_steps; k++) {
        const oly_step *s = &b->steps[k];
        size_t bytes = 0;
        if (s->kind == OLY_STEP_STENCIL)
            bytes = 1 + (s->stencil.tiling ? oly_tiling_tile_bytes(plan, s) : oly_stencil_tile_bytes(plan, s));
        else if (s->kind == OLY_STEP_LOOP)
            bytes = bytes_of(plan, s->loop.body);
        most = bytes > most ? bytes : most;
        for (int j = 0; s->kind == OLY_STEP_BRANCH && j < s->branch.n; j++) {
            bytes = bytes_of(plan, s->branch.blocks[j]);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

size_t oly_tile_bytes(const oly_plan *plan)
{
    return bytes_of(plan, plan->main);
}

oly_status oly_tiles_reserve(oly_run *r)
{
    if (oly_platform_is_apart() && !(r->host_tile = oly_malloc(r->tile_bytes + 1)))
        return oly_out_of_memory(r->tile_bytes, "a stencil's tiles");
    return OLY_OK;
}

void *oly_tile_begin(oly_run *r, bool *turn)
{
    if (r->host_tile) {
        *turn = true;
        pthread_mutex_lock(&r->turn);
        return r->host_tile;
    }
    oly_buffer **mine = &r->tiles[oly_workers_slot()];
    if (!*mine) {
        *mine = oly_buffer_take_at_once(r->plan->devices[0], r->tile_bytes);
        if (*mine && oly_platform_get()->open)
            oly_platform_get()->open((*mine)->data);
    }
    *turn = !*mine;
    if (*turn)
        pthread_mutex_lock(&r->turn);
    return *turn ? r->tile->data : (*mine)->data;
}

void oly_tile_end(oly_run *r, bool turn)
{
    if (turn)
        pthread_mutex_unlock(&r->turn);
}

void oly_tiles_drop(oly_run *r)
{
    oly_release(r->host_tile);
    r->host_tile = NULL;
    for (int k = 0; k < oly_workers_slots(); k++) {
        if (r->tiles[k] && oly_platform_get()->close)
            oly_platform_get()->close(r->tiles[k]->data);
        oly_buffer_drop(r->tiles[k]);
        r->tiles[k] = NULL;
    }
}
