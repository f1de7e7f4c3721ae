/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes over fields on a GPU. See fields.h.
 *
 * In blocks, where the loop's kernel is compiled (blocked_fields.h); else stage by stage: every box of every stage of every step is one launch of an elementwise kernel, whose operands are read at an offset.
 * What lies between stages is in scratch memory; where that would be too large, a device's part is computed in several tiles, as on
 * CPUs, but large ones. No value depends on the division. */
#include "run/cuda/fields.h"
#include "core/min_max.h"
#include "core/optimisation.h"
#include "run/cuda/blocked_fields.h"
#include <string.h>

/* Of scratch memory: less than what launcher.c keeps between steps. */
enum { MOST_BYTES = 24 << 20 };

/* -- a box ------------------------------------------------------------------------------------------------------------------------ */

static oly_tile_instruction splat(oly_dtype dtype, int out)
{
    oly_tile_instruction i;
    memset(&i, 0, sizeof i);
    i.op = OLY_TILE_splat;
    i.dtype = i.to = (uint8_t)dtype;
    i.in[0] = i.in[1] = i.in[2] = -1;
    i.out = (int16_t)out;
    return i;
}

static oly_status launch_taps(const oly_cuda_launcher *l, const oly_field_box *b)
{
    oly_cuda_taps taps;
    oly_tile_operand loads[OLY_STENCIL_TAPS];
    const oly_tile_program program = oly_cuda_taps_program(b->piece, b->dtype, &taps);
    for (int k = 0; k < b->piece->n_taps; k++)
        loads[k] = b->loads[b->piece->tap[k]];
    return oly_cuda_tile(l, &program, b->box, loads, b->stores);
}

static bool reads_counter(const oly_field_box *b)
{
    for (int k = 0; k < b->program->n_loads; k++)
        if (b->reads[k].of.kind == OLY_TILING_COUNTER)
            return true;
    return false;
}

/* The counter is a constant of the launch: it has no address on the device. */
static oly_status launch_counting(const oly_cuda_launcher *l, const oly_field_box *b)
{
    const oly_tile_program *p = b->program;
    oly_tile_instruction code[p->n_instructions + p->n_loads];
    oly_tile_operand loads[OLY_TILE_REGISTERS];
    int16_t from[OLY_TILE_REGISTERS];
    uint8_t dtypes[OLY_TILE_REGISTERS];
    int n = 0, n_loads = 0;
    for (int k = 0; k < p->n_loads; k++) {
        if (b->reads[k].of.kind == OLY_TILING_COUNTER) {
            code[n] = splat((oly_dtype)p->load_dtype[k], p->load_register[k]);
            memcpy(&code[n++].value, b->loads[k].base, oly_dtype_size((oly_dtype)p->load_dtype[k]));
            continue;
        }
        from[n_loads] = p->load_register[k];
        dtypes[n_loads] = p->load_dtype[k];
        loads[n_loads++] = b->loads[k];
    }
    memcpy(code + n, p->instructions, sizeof *code * (size_t)p->n_instructions);
    oly_tile_program program = *p;
    program.n_instructions += n;
    program.instructions = code;
    program.n_loads = n_loads;
    program.load_register = from;
    program.load_dtype = dtypes;
    return oly_cuda_tile(l, &program, b->box, loads, b->stores);
}

static oly_status launch_box(void *launcher, const oly_field_box *b)
{
    if (b->piece->n_taps && !b->machine)
        return launch_taps(launcher, b);
    if (reads_counter(b))
        return launch_counting(launcher, b);
    return oly_cuda_tile(launcher, b->program, b->box, b->loads, b->stores);
}

static oly_status launch_copy(void *launcher, const oly_copy_task *task, void *to, const void *from)
{
    return oly_cuda_copy(launcher, task, to, from);
}

/* -- a device's part -------------------------------------------------------------------------------------------------------------- */

/* The largest tile of the region whose buffers are small enough; their bytes. */
static size_t choose_tile(const oly_field_sweep *s, const oly_part_box *r, int64_t *extent)
{
    int rank = s->tiling->form.rank;
    for (int d = 0; d < rank; d++)
        extent[d] = r->hi[d] - r->lo[d];
    for (;;) {
        int64_t window[OLY_TILING_RANK];
        size_t bytes;
        int longest = 0;
        oly_field_buffers(s->tiling, s->pass, extent, window, &bytes);
        bytes *= (size_t)s->pass->n_buffers;
        for (int d = 1; d < rank; d++)
            longest = extent[d] > extent[longest] ? d : longest;
        if (bytes <= MOST_BYTES || extent[longest] == 1)
            return bytes;
        extent[longest] = (extent[longest] + 1) / 2;
    }
}

static oly_status launch_region(const oly_cuda_launcher *l, oly_field_tile *t, const oly_part_box *r)
{
    static const oly_field_kernels kernels = {launch_box, launch_copy};
    oly_cuda_launcher own = *l;
    int64_t extent[OLY_TILING_RANK], at[OLY_TILING_RANK];
    int rank = t->sweep->tiling->form.rank;
    void *memory = NULL;
    bool can, done;
    OLY_TRY(oly_cuda_launch_blocked(l, t, r, &can, &done));
    if (done)
        return OLY_OK;
    size_t bytes = choose_tile(t->sweep, r, extent);
    if (bytes)
        OLY_TRY(l->scratch(l->context, bytes, &memory));
    t->memory = memory;
    if (can || !oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS)) /* the loop's own kernel is being compiled */
        own.generated = NULL;
    oly_field_buffers(t->sweep->tiling, t->sweep->pass, extent, t->window, &t->buffer_bytes);
    memcpy(at, r->lo, sizeof at);
    for (int d = 0; d >= 0;) {
        for (d = 0; d < rank; d++) {
            t->lo[d] = at[d];
            t->hi[d] = oly_smaller(at[d] + extent[d], r->hi[d]);
        }
        OLY_TRY(oly_field_tile_walk(t, &kernels, &own));
        for (d = rank - 1; d >= 0 && (at[d] += extent[d]) >= r->hi[d]; d--)
            at[d] = r->lo[d];
    }
    return OLY_OK;
}

oly_status oly_cuda_launch_fields(const oly_cuda_launcher *l, const oly_field_sweep *s, void *const *base, int device)
{
    const oly_tiling_device *v = &s->tiling->device[device];
    oly_field_tile t = {.sweep = s, .device = v, .number = device, .base = base, .machine = true};
    oly_part_block block = {.rank = s->tiling->form.rank};
    oly_part_box boxes[OLY_PART_BOXES];
    for (int d = 0; d < block.rank; d++) {
        block.lo[d] = v->block.lo[d];
        block.hi[d] = v->block.hi[d];
        block.early_lo[d] = v->early_lo[d];
        block.early_hi[d] = v->early_hi[d];
    }
    for (int k = 0, n = v->here ? oly_part_boxes(s->passes.part, &block, boxes) : 0; k < n; k++)
        OLY_TRY(launch_region(l, &t, &boxes[k]));
    return OLY_OK;
}
