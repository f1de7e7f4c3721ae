/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of stencils: the kernel of stencil_wave_text.c or stencil_text.c where it has been compiled, else those of stencil.cu. The steps
 * of a pass are divided among launches, each of as many as suit its kernel; what is between two launches is in scratch memory, of the
 * field's shape. No value depends on the division. */
#include "cuda/launching.h"
#include "cuda/stencil_task.h"
#include "core/error.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "cuda/stencil_text.h"
#include "cuda/stencil_wave_text.h"
#include <string.h>

enum { SHARED_BYTES = 48 << 10, MOST_STEPS = 64 };

bool oly_cuda_has_stencil(const oly_stencil *s)
{
    return (s->dtype == OLY_FLOAT32 || s->dtype == OLY_FLOAT64) && s->rank >= 1 && s->rank <= 3;
}

/* Slab, row, column: the last dimensions of the stencil. */
static int dimension_of(const oly_stencil *s, int d)
{
    return 3 - s->rank + d;
}

static void set_reach(const oly_stencil *s, oly_cuda_stencil_task *t)
{
    t->n_taps = s->n_taps;
    for (int k = 0; k < s->n_taps; k++) {
        t->coefficient[k] = s->coefficient[k];
        for (int d = 0; d < s->rank; d++) {
            int to = dimension_of(s, d), offset = s->offset[k][d];
            t->below[to] = -offset > t->below[to] ? -offset : t->below[to];
            t->above[to] = offset > t->above[to] ? offset : t->above[to];
        }
    }
}

static void window_of(int rank, int points, int window[3])
{
    window[0] = rank == 3 ? points / 512 : 1;
    window[2] = rank == 1 ? points : rank == 2 ? (points >= 6144 ? 96 : 64) : 32;
    window[1] = rank == 1 ? 1 : rank == 2 ? points / window[2] : 16;
}

/* The tile of so many steps; false: there is none, the window would be all margin. */
static bool tile_of(const oly_stencil *s, const oly_cuda_stencil_task *t, int steps, int window[3], int tile[3])
{
    int bytes = s->dtype == OLY_FLOAT32 ? 4 : 8;
    window_of(s->rank, SHARED_BYTES / bytes / (steps == 1 ? 1 : 2), window);
    for (int d = 0; d < 3; d++) {
        tile[d] = window[d] - steps * (t->below[d] + t->above[d]);
        if (tile[d] < 1)
            return false;
    }
    return true;
}

/* Of a point and step: memory read and written, and points computed (a third of the time of an element of memory, for five
 * taps). Not measured. */
static double cost_of(const oly_cuda_stencil_task *t, int steps, const int window[3], const int tile[3])
{
    double read = 1, written = 1, computed = 1;
    for (int d = 0; d < 3; d++) {
        read *= window[d];
        written *= tile[d];
        computed *= tile[d] + 0.5 * (steps - 1) * (t->below[d] + t->above[d]);
    }
    return ((read + written) / steps + computed * (0.1 + 0.05 * t->n_taps)) / written;
}

static int best_steps(const oly_stencil *s, const oly_cuda_stencil_task *t, int most)
{
    int best = 1, window[3], tile[3];
    double least = 0;
    for (int steps = 1; steps <= most && steps <= MOST_STEPS && tile_of(s, t, steps, window, tile); steps++) {
        double cost = cost_of(t, steps, window, tile);
        if (steps == 1 || cost < least) {
            best = steps;
            least = cost;
        }
    }
    return best;
}

static void set_tiles(const oly_stencil *s, oly_cuda_stencil_task *t)
{
    int window[3], tile[3];
    tile_of(s, t, t->steps, window, tile);
    t->pitch[1] = window[2];
    t->pitch[0] = window[1] * window[2];
    t->points = window[0] * window[1] * window[2];
    for (int d = 0; d < 3; d++) {
        t->tile[d] = tile[d];
        t->tiles[d] = (int32_t)((t->hi[d] - t->lo[d] + tile[d] - 1) / tile[d]);
    }
    for (int k = 0; k < s->n_taps; k++) {
        t->offset[k] = 0;
        for (int d = 0; d < s->rank; d++) {
            int to = dimension_of(s, d);
            t->offset[k] += s->offset[k][d] * (to == 2 ? 1 : t->pitch[to]);
        }
    }
}

/* What later launches, with `left` steps, need of this one. */
static void set_part(const oly_stencil *s, const oly_stencil_field *f, oly_cuda_stencil_task *t, int left)
{
    for (int d = 0; d < 3; d++) {
        t->lo[d] = 0;
        t->hi[d] = 1;
    }
    for (int d = 0; d < s->rank; d++) {
        int to = dimension_of(s, d);
        int64_t lo = f->write_lo[d] - (int64_t)left * t->below[to], hi = f->write_hi[d] + (int64_t)left * t->above[to];
        t->lo[to] = oly_larger(lo, oly_smaller(f->write_lo[d], f->fixed_lo[d] - t->below[to]));
        t->hi[to] = oly_smaller(hi, oly_larger(f->write_hi[d], f->fixed_hi[d] + t->above[to]));
        t->lo[to] = oly_larger(t->lo[to], 0);
        t->hi[to] = oly_smaller(t->hi[to], f->extent[d]);
    }
}

static void set_field(const oly_stencil *s, const oly_stencil_field *f, oly_cuda_stencil_task *t)
{
    for (int d = 0; d < 3; d++) {
        t->fixed_lo[d] = 0;
        t->fixed_hi[d] = 1;
    }
    for (int d = 0; d < s->rank; d++) {
        int to = dimension_of(s, d);
        t->fixed_lo[to] = f->fixed_lo[d];
        t->fixed_hi[to] = f->fixed_hi[d];
        t->source_stride[to] = t->destination_stride[to] = f->stride[d];
    }
}

/* The last launch writes to the destination's own coordinates. */
static void set_destination(const oly_stencil *s, const oly_stencil_field *f, oly_cuda_stencil_task *t, char *to)
{
    int64_t offset = 0;
    for (int d = 0; d < s->rank; d++) {
        offset += f->destination_offset[d] * f->destination_stride[d];
        t->destination_stride[dimension_of(s, d)] = f->destination_stride[d];
    }
    t->destination = to + offset * (s->dtype == OLY_FLOAT32 ? 4 : 8);
}

static oly_status start(const oly_cuda_launcher *l, const oly_stencil *s, oly_cuda_stencil_task *t)
{
    int bytes = s->dtype == OLY_FLOAT32 ? 4 : 8;
    set_tiles(s, t);
    oly_cuda_launch launch = {.module = "stencil",
                              .kernel = bytes == 4 ? "oly_stencil_f32" : "oly_stencil_f64",
                              .blocks = oly_cuda_blocks(l, (int64_t)t->tiles[0] * t->tiles[1] * t->tiles[2], 1),
                              .threads = OLY_CUDA_THREADS,
                              .shared = (unsigned)(t->points * bytes * (t->steps > 1 ? 2 : 1)),
                              .task_bytes = sizeof *t};
    memcpy(launch.task, t, sizeof *t);
    return l->launch(l->context, &launch);
}

/* -- passes ----------------------------------------------------------------------------------------------------------------------- */

typedef struct pass {
    const oly_stencil *stencil;
    const oly_stencil_field *field;
    void *destination;
    char *between[2]; /* scratch memory of the field's shape */
    int turn, left;   /* steps */
    int wave_steps;   /* of a launch of stencil_wave_text.c; 0: there is none */
} pass;

/* The steps of the next launch, of at most so many in each: divided evenly. */
static int evenly(int left, int most)
{
    int launches = (left + most - 1) / most;
    return (left + launches - 1) / launches;
}

/* The next launch computes so many steps. The last one writes the destination, others what is between. */
static oly_status set_launch(const oly_cuda_launcher *l, pass *p, oly_cuda_stencil_task *t, int steps)
{
    const oly_stencil_field *f = p->field;
    t->steps = steps;
    set_part(p->stencil, f, t, p->left - t->steps);
    memcpy(t->destination_stride, t->source_stride, sizeof t->destination_stride); /* of another attempt */
    if (t->steps == p->left) {
        set_destination(p->stencil, f, t, p->destination);
        return OLY_OK;
    }
    void *memory = p->between[p->turn];
    if (!memory)
        OLY_TRY(l->scratch(
            l->context, (size_t)(f->extent[0] * f->stride[0]) * (p->stencil->dtype == OLY_FLOAT32 ? 4 : 8), &memory));
    p->between[p->turn] = t->destination = memory;
    return OLY_OK;
}

/* By a kernel made for the taps; *launched: false: there is none (yet). */
static oly_status start_generated(const oly_cuda_launcher *l, pass *p, oly_cuda_stencil_task *t, bool *launched)
{
    const oly_stencil *s = p->stencil;
    if (!l->generated || !oly_enabled(OLY_OPTIMISATION_STENCIL_PATCHES))
        return OLY_OK;
    if (p->wave_steps > 0) {
        OLY_TRY(set_launch(l, p, t, p->left < p->wave_steps ? p->left : p->wave_steps));
        return oly_cuda_wave(l, s, t, launched);
    }
    int most = oly_cuda_patch_steps(s, t, p->left);
    if (most < 1)
        return OLY_OK;
    OLY_TRY(set_launch(l, p, t, evenly(p->left, most)));
    return oly_cuda_patch_fits(s, t) ? oly_cuda_patch(l, s, t, launched) : OLY_OK;
}

static oly_status start_steps(const oly_cuda_launcher *l, pass *p, oly_cuda_stencil_task *t)
{
    bool launched = false;
    OLY_TRY(start_generated(l, p, t, &launched));
    if (launched)
        return OLY_OK;
    OLY_TRY(set_launch(l, p, t, evenly(p->left, best_steps(p->stencil, t, p->left))));
    return start(l, p->stencil, t);
}

oly_status oly_cuda_stencil(const oly_cuda_launcher *l, const oly_stencil *s, const oly_stencil_field *f, int steps,
                            const void *source, void *destination)
{
    oly_cuda_stencil_task first = {.source = source};
    pass p = {.stencil = s, .field = f, .destination = destination, .left = steps};
    for (int d = 0; d < s->rank; d++)
        if (f->write_lo[d] >= f->write_hi[d])
            return OLY_OK;
    set_reach(s, &first);
    set_field(s, f, &first);
    set_part(s, f, &first, 0);
    p.wave_steps = oly_cuda_wave_steps(l, s, &first, steps);
    for (const char *from = source; p.left > 0; p.turn ^= 1) {
        oly_cuda_stencil_task t = first;
        t.source = from;
        OLY_TRY(start_steps(l, &p, &t));
        from = t.destination;
        p.left -= t.steps;
    }
    return OLY_OK;
}
