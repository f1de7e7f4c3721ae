/* SPDX-License-Identifier: BSD-3-Clause */
/* What machine code computes in a loop over fields (time_tiling.h): the operations of each piece in one program. Sums of
 * taps become multiplications and fused additions in the order of the stencil kernels, and a value that takes few
 * operations is computed where it is read instead of being written to a buffer: in registers that costs less. Bits are
 * those of the stages. Stages and what is exchanged stay as they are, so that a process without machine code computes the
 * same plan. GPUs take these programs, and CPUs where there are no groups (time_tiling_group.c), which are found first. Called by
 * time_tiling_form.c. */
#include "core/optimisation.h"
#include "core/error.h"
#include "plan/stencil/time_tiling_group.h"
#include <string.h>

enum { MOST_AGAIN = 12, MOST_PROGRAMS = 64, MOST_SPOTS = 64 }; /* MOST_AGAIN: operations computed once more */

typedef struct fuser {
    oly_planner *p;
    oly_tiling_form *form;
    oly_tiling_code *code;
} fuser;

/* -- programs -------------------------------------------------------------------------------------------------------------- */

static int splat(oly_tiling_code *c, oly_dtype dtype, double x)
{
    oly_tile_instruction i;
    memset(&i, 0, sizeof i);
    i.op = OLY_TILE_splat;
    i.dtype = i.to = (uint8_t)dtype;
    i.in[0] = i.in[1] = i.in[2] = -1;
    if (dtype == OLY_FLOAT32)
        i.value.f32 = (float)x;
    else
        i.value.f = x;
    return oly_tiling_add_once(c, &i);
}

/* c0 x0, then + ct xt, each rounded once. */
static int sum_of_taps(oly_tiling_code *c, const oly_tiling_piece *piece, oly_dtype dtype)
{
    int sum = -1;
    for (int t = 0; t < piece->n_taps; t++) {
        oly_tile_instruction i;
        memset(&i, 0, sizeof i);
        int x = oly_tiling_read(c, &piece->loads[piece->tap[t]], dtype), by = splat(c, dtype, piece->coefficient[t]);
        if (x < 0 || by < 0)
            return -1;
        i.op = t == 0 ? OLY_TILE_mul : OLY_TILE_fma;
        i.dtype = i.to = (uint8_t)dtype;
        i.in[0] = (int16_t)by;
        i.in[1] = (int16_t)x;
        i.in[2] = (int16_t)sum;
        sum = oly_tiling_add_once(c, &i);
        if (sum < 0)
            return -1;
    }
    return sum;
}

static bool reads(const oly_tiling_load *load, int stage)
{
    return load->of.kind == OLY_TILING_STAGE && load->of.index == stage;
}

/* Adds a program, read at `shift` (NULL: here). Values of the inlined stage are computed by `inner`. */
static int add_program(oly_tiling_code *c, const oly_tiling_piece *piece, const int64_t *shift, int stage,
                       const oly_tiling_piece *inner)
{
    const oly_tile_program *p = &piece->machine;
    int of[OLY_TILE_REGISTERS];
    for (int l = 0; l < p->n_loads; l++) {
        oly_tiling_load load = piece->machine_loads[l];
        for (int d = 0; d < OLY_TILING_RANK && shift; d++)
            load.shift[d] += shift[d];
        int value = inner && reads(&load, stage) ? add_program(c, inner, load.shift, -1, NULL)
                                                 : oly_tiling_read(c, &load, (oly_dtype)p->load_dtype[l]);
        if (value < 0)
            return -1;
        of[p->load_register[l]] = value;
    }
    for (int k = 0; k < p->n_instructions; k++) {
        oly_tile_instruction i = p->instructions[k];
        for (int j = 0; j < 3; j++)
            if (i.in[j] >= 0)
                i.in[j] = (int16_t)of[i.in[j]];
        i.out = 0;
        int value = oly_tiling_add_once(c, &i);
        if (value < 0)
            return -1;
        of[p->instructions[k].out] = value;
    }
    return of[p->store_register[0]];
}

static void clear_code(oly_tiling_code *c)
{
    c->n_loads = c->n_instructions = 0;
}

/* *fits false: there is no such program. */
static oly_status finish(fuser *f, int value, oly_dtype dtype, oly_tiling_piece *piece, bool *fits)
{
    oly_tile_program program;
    const oly_tiling_load *loads;
    *fits = false;
    if (value < 0 || f->code->n_instructions > MOST_PROGRAMS * 4)
        return OLY_OK;
    OLY_TRY(oly_tiling_program(f->p, f->code, 1, &value, &dtype, &program, &loads, fits));
    if (*fits) {
        piece->machine = program;
        piece->machine_loads = loads;
    }
    return OLY_OK;
}

/* The pieces as they are. */
static oly_status start(fuser *f, const oly_tiling_stage *s)
{
    oly_dtype dtype = s->node->type.dtype;
    for (int k = 0; k < s->n_pieces; k++) {
        oly_tiling_piece *piece = &s->pieces[k];
        bool fits;
        piece->machine = piece->program;
        piece->machine_loads = piece->loads;
        if (!piece->n_taps)
            continue;
        clear_code(f->code);
        OLY_TRY(finish(f, sum_of_taps(f->code, piece, dtype), dtype, piece, &fits));
        if (!fits)
            piece->machine.n_instructions = 0;
    }
    return OLY_OK;
}

/* -- stages that are computed where they are read ---------------------------------------------------------------------------- */

/* The piece of the stage that computes all that `piece` reads of it; NULL: there is none. */
static const oly_tiling_piece *source_of(const oly_tiling_form *form, const oly_tiling_stage *s,
                                         const oly_tiling_piece *piece, int stage)
{
    for (int k = 0; k < s->n_pieces; k++) {
        bool all = true;
        for (int l = 0; l < piece->machine.n_loads && all; l++)
            all = !reads(&piece->machine_loads[l], stage) ||
                  oly_tiling_covers(form, &s->pieces[k], piece, piece->machine_loads[l].shift);
        if (all)
            return &s->pieces[k];
    }
    return NULL;
}

/* How often the stage would be computed for an element; at most once for each position in each stage. */
static int times_read(const oly_tiling_form *form, int stage)
{
    int times = 0;
    for (int k = 0; k < form->n_stages; k++) {
        int most = 0;
        for (int j = 0; j < form->stages[k].n_pieces && !form->stages[k].inlined; j++) {
            const oly_tiling_piece *piece = &form->stages[k].pieces[j];
            int n = 0;
            for (int l = 0; l < piece->machine.n_loads; l++)
                n += reads(&piece->machine_loads[l], stage);
            most = n > most ? n : most;
        }
        times += most;
    }
    return times;
}

static bool may_be_inlined(const oly_tiling_form *form, int stage)
{
    const oly_tiling_stage *s = &form->stages[stage];
    int most = 0, times = times_read(form, stage);
    for (int k = 0; k < s->n_pieces; k++) {
        int n = oly_tiling_operations(&s->pieces[k].machine);
        if (s->pieces[k].machine.n_instructions == 0)
            return false;
        most = n > most ? n : most;
    }
    return times > 0 && !oly_tiling_counts(s) && !oly_tiling_is_result(form, stage) && (times - 1) * most <= MOST_AGAIN;
}

/* Writes the programs of all pieces that read the stage without it; *n 0: not all of them can be. */
static oly_status inline_stage(fuser *f, int stage, oly_tiling_piece *made, oly_tiling_piece **of, int *n)
{
    oly_tiling_form *form = f->form;
    int count = 0;
    *n = 0;
    for (int k = 0; k < form->n_stages; k++)
        for (int j = 0; j < form->stages[k].n_pieces && !form->stages[k].inlined; j++) {
            oly_tiling_piece *piece = &form->stages[k].pieces[j];
            bool any = false, fits;
            for (int l = 0; l < piece->machine.n_loads; l++)
                any = any || reads(&piece->machine_loads[l], stage);
            if (!any)
                continue;
            const oly_tiling_piece *inner = source_of(form, &form->stages[stage], piece, stage);
            if (!inner || piece->machine.n_instructions == 0 || count == MOST_PROGRAMS)
                return OLY_OK;
            clear_code(f->code);
            made[count] = *piece;
            int value = add_program(f->code, piece, NULL, stage, inner);
            OLY_TRY(finish(f, value, form->stages[k].node->type.dtype, &made[count], &fits));
            if (!fits)
                return OLY_OK;
            of[count++] = piece;
        }
    *n = count;
    return OLY_OK;
}

static oly_status fuse(fuser *f)
{
    oly_tiling_piece made[MOST_PROGRAMS], *of[MOST_PROGRAMS];
    OLY_TRY(oly_tiling_sort(f->p, f->form));
    for (int k = 0; k < f->form->n_stages; k++) {
        f->form->stages[k].inlined = false;
        OLY_TRY(start(f, &f->form->stages[k]));
    }
    if (oly_enabled(OLY_OPTIMISATION_FIELD_GROUPS))
        OLY_TRY(oly_tiling_find_groups(f->p, f->form));
    for (int k = 0; k < f->form->n_stages; k++) {
        int n = 0;
        if (may_be_inlined(f->form, k))
            OLY_TRY(inline_stage(f, k, made, of, &n));
        for (int j = 0; j < n; j++)
            *of[j] = made[j];
        f->form->stages[k].inlined = n > 0;
    }
    return OLY_OK;
}

oly_status oly_tiling_fuse(oly_planner *p, oly_tiling_form *form)
{
    fuser f = {.p = p, .form = form};
    if (!oly_enabled(OLY_OPTIMISATION_COMPILED_GROUPS))
        return OLY_OK;
    f.code = oly_malloc(sizeof *f.code);
    oly_status st = f.code ? fuse(&f) : oly_out_of_memory(sizeof *f.code, "a plan");
    oly_release(f.code);
    return st;
}
