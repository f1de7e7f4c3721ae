/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts of steps. See forecast.h. */
#include "run/forecast.h"
#include "run/repeated_work.h"
#include "run/row_blocks.h"
#include "device/workers.h"
#include "machine_code.h"
#include "plan/cost/cost.h"
#include "plan/model/time_tiling.h"
#include "run/executor.h"
#include "run/loop_once.h"
#include "run/measured_units.h"
#include "run/prepare_cpu.h"
#include <math.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double block_seconds(const oly_plan *plan, const oly_block *b)
{
    double seconds = 0;
    for (int k = 0; b && k < b->n_steps; k++)
        seconds += oly_forecast_measured(plan, &b->steps[k]);
    return seconds;
}

/* -- threads --------------------------------------------------------------------------------------------------------------- */

/* The threads that so many chunks keep busy: of three chunks on two threads, one and a half. */
static double threads_for(double chunks)
{
    double all = oly_workers_count();
    return chunks <= 1 ? 1 : chunks / ceil(chunks / all);
}

/* Seconds of work that is divided into chunks, among the threads of this process if it is worth it. */
static double shared_seconds(const oly_kernel_rates *r, const oly_kernel_work *w, double operations, double chunks)
{
    if (operations < OLY_WORTH_SHARING || oly_workers_count() == 1)
        return oly_seconds_of_work(r, w, 1) + r->step;
    return oly_seconds_of_work(r, w, threads_for(chunks)) + r->share + r->step;
}

/* -- steps that compute ---------------------------------------------------------------------------------------------------- */

static oly_kernel_work work_of_device(const oly_kernel_rates *r, const oly_step *s, int d)
{
    switch (s->kind) {
    case OLY_STEP_TILE: {
        const oly_tile_work *w = &s->tile.device[d];
        return oly_work_of_tiles(r, &s->tile.program, &w->box, w->loads, w->stores,
                                 s->tile.compiles && oly_code_available());
    }
    case OLY_STEP_REDUCE: return oly_work_of_reduction(r, &s->reduce.device[d].task);
    case OLY_STEP_LOCAL: return oly_work_of_local(r, &s->local.device[d].task);
    case OLY_STEP_GEMM: return oly_work_of_product(r, &s->gemm.device[d].task);
    default: return (oly_kernel_work){0};
    }
}

/* Of a product, the share of the parts that are computed. */
static double share_of_parts(const oly_gemm_work *w)
{
    int all = w->parts ? oly_gemm_parts(&w->task) : 0;
    return all > 0 ? (double)w->n_parts / all : 1;
}

/* Which are the first ones. */
static int computing_devices(const oly_plan *plan, const oly_step *s)
{
    return s->prepared && s->prepared->first_only ? 1 : plan->n_devices;
}

static int copies_made(const oly_plan *plan, const oly_step *s, int n)
{
    return s->prepared && s->prepared->first_only ? n / plan->n_devices : n;
}

static double copy_seconds(const oly_kernel_rates *r, int n, const oly_copy_work *copies, double operations)
{
    oly_kernel_work all = {0};
    double chunks = 0;
    for (int k = 0; k < n; k++) {
        oly_kernel_work w = oly_work_of_copy(r, &copies[k].task);
        w.calls = r->copy_row;
        oly_add_work(&all, &w);
        chunks += oly_copy_chunks(&copies[k].task);
    }
    return n > 0 ? shared_seconds(r, &all, operations, chunks) : 0;
}

/* A chain of rows, which ends with this step. */
static double chain_seconds(const oly_kernel_rates *r, const oly_plan *plan, const oly_step *last)
{
    oly_kernel_work all = {0};
    double chunks = 0, operations = 0;
    for (int k = 0; k < last->chain; k++)
        operations += last[-k].work;
    for (int d = 0; d < computing_devices(plan, last); d++) {
        oly_kernel_work rows = {0};
        if (!oly_step_has_work(last, d))
            continue;
        for (int k = 0; k < last->chain; k++) {
            oly_kernel_work w = work_of_device(r, &last[-k], d);
            rows.seconds += w.seconds;
        }
        oly_row_blocks_traffic(plan, last->prepared->blocks, d, &rows.read, &rows.written);
        chunks += oly_row_blocks_on(last->prepared->blocks, d);
        oly_add_work(&all, &rows);
    }
    return shared_seconds(r, &all, operations, chunks);
}

/* A reduction that computes its operand streams what the operand's group reads instead. */
static double compute_seconds(const oly_kernel_rates *r, const oly_plan *plan, const oly_step *s)
{
    bool fused = s->kind == OLY_STEP_REDUCE && s->prepared && s->prepared->fused;
    bool computed = s->kind == OLY_STEP_TILE || s->kind == OLY_STEP_REDUCE || s->kind == OLY_STEP_LOCAL;
    bool elsewhere = computed && s->prepared && s->prepared->phases == 0;
    if (s->prepared && s->prepared->blocks)
        return chain_seconds(r, plan, s);
    const oly_repeats *repeats = s->prepared ? s->prepared->repeats : NULL;
    bool once =
        s->prepared && (s->prepared->once || s->prepared->first_only); /* unless memory for its result is donated */
    int computing = once ? 1 : repeats ? repeats->n_first : plan->n_devices;
    oly_kernel_work all = {0};
    int n_groups = fused ? oly_operand_steps(s) : 0;
    double chunks = 0, operations = oly_operations_of(s);
    for (int k = 0; k < n_groups; k++)
        operations += oly_operand_step(s, k)->work;
    for (int d = 0; d < plan->n_devices && !elsewhere; d++) {
        double most = 0;
        if (!oly_step_has_work(s, d) || (repeats && repeats->first[d] != d) || (once && d > 0))
            continue;
        oly_kernel_work w = work_of_device(r, s, d);
        w.read = fused ? 0 : w.read;
        for (int k = 0; k < n_groups; k++) {
            if (!oly_step_has_work(oly_operand_step(s, k), d))
                continue;
            oly_kernel_work group = work_of_device(r, oly_operand_step(s, k), d);
            w.seconds += group.seconds;
            w.read += group.read;
        }
        if (s->kind == OLY_STEP_GEMM) {
            double share = share_of_parts(&s->gemm.device[d]);
            w = (oly_kernel_work){.seconds = share * w.seconds, .read = share * w.read, .written = share * w.written};
        }
        for (int phase = 0; phase < OLY_MOST_PHASES; phase++)
            most = larger(most, oly_chunks_of_share(s, d, phase, computing));
        chunks += most;
        oly_add_work(&all, &w);
    }
    double copied = repeats && !once ? copy_seconds(r, repeats->n_copies, repeats->copies, repeats->work) : 0;
    return elsewhere ? r->box : shared_seconds(r, &all, operations, chunks) + copied;
}

/* -- messages and sums over devices ----------------------------------------------------------------------------------------- */

static double transfer_seconds(const oly_plan *plan, const oly_step *s)
{
    bool apart = s->exchange || s->second || s->begun;
    return apart && s->messages > 0 && s->bytes > 0
               ? oly_cost_transfer(oly_mesh_level(plan->mesh), (double)s->bytes, s->messages)
               : 0;
}

static double sum_seconds(const oly_kernel_rates *r, const oly_step *s)
{
    double size = (double)oly_dtype_size(s->reduction.dtype);
    oly_kernel_work w = {.seconds = s->work * r->combine[s->reduction.dtype], .read = s->work * size};
    double chunks = s->work / OLY_WORTH_SHARING;
    return shared_seconds(r, &w, s->work, chunks);
}

/* -- stencil loops ---------------------------------------------------------------------------------------------------------- */

static double pass_seconds(const oly_kernel_rates *r, const oly_plan *plan, const oly_step *s, int steps, bool last)
{
    const oly_stencil *stencil = s->stencil.stencil;
    bool wide = stencil->dtype == OLY_FLOAT64;
    double point =
        r->stencil_point[wide][stencil->rank - 1] + stencil->n_taps * r->stencil_tap[wide][stencil->rank - 1];
    double chunks = 0;
    oly_kernel_work w = {0};
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_stencil_field *f = last ? &s->stencil.device[d].last : &s->stencil.device[d].within;
        double bytes = oly_box_elements(stencil->rank, f->extent) * (double)oly_dtype_size(stencil->dtype);
        double own = 1;
        for (int e = 0; e < stencil->rank; e++)
            own *= (double)(f->write_hi[e] - f->write_lo[e]);
        w.seconds +=
            oly_stencil_divide(stencil, f, steps, 0).points * point + own * r->stencil_pass[wide][stencil->rank - 1];
        w.read += bytes;
        w.written += bytes;
        chunks += oly_stencil_chunks(stencil, f, steps);
    }
    return shared_seconds(r, &w, s->work, chunks);
}

/* One box of a stage or group. bytes: of an element of what it reads and writes in the second level of cache. */
typedef struct box_seconds {
    const oly_tile_program *program;
    const oly_tiling_piece *piece;
    double element, bytes; /* element: seconds of the kernel */
    bool machine;
} box_seconds;

static double seconds_of_box(const oly_kernel_rates *r, const oly_tiling_form *form, const oly_tiling_instance *i,
                             const double *side, box_seconds b)
{
    double elements = 1, share = 1, element = b.element, streaming = b.bytes * r->stream[0][OLY_STREAM_COPY][2];
    for (int d = 0; d < form->rank; d++) {
        elements *= side[d] + (double)(i->hi[d] - i->lo[d]);
        share *= fmin(1, (double)(b.piece->hi[d] - b.piece->lo[d]) / (double)form->shape[d]);
    }
    for (int c = 0; element == 0 && c < b.program->n_instructions; c++)
        element += oly_seconds_of_instruction(r, &b.program->instructions[c], b.machine);
    return elements * share * larger(element, streaming) + (b.machine ? r->group_box : r->box) +
           elements * share / larger(side[form->rank - 1], 1) *
               (b.machine ? r->group_row : r->row * b.program->n_instructions);
}

static double stage_seconds(const oly_kernel_rates *r, const oly_tiling_form *form, const oly_tiling_instance *i,
                            const double *side, bool machine)
{
    const oly_tiling_stage *stage = &form->stages[i->stage];
    double seconds = 0;
    for (int j = 0; j < stage->n_pieces && i->needed && !(machine && stage->inlined); j++) {
        const oly_tiling_piece *piece = &stage->pieces[j];
        box_seconds b = {.piece = piece, .bytes = 2.0 * (double)oly_dtype_size(stage->node->type.dtype)};
        b.machine = machine && piece->machine.n_instructions > 0;
        b.program = b.machine ? &piece->machine : &piece->program;
        if (!b.machine && piece->n_taps)
            b.element = piece->n_taps *
                        r->tile[OLY_TILE_fma][stage->node->type.dtype == OLY_FLOAT64 ? OLY_FLOAT64 : OLY_FLOAT32];
        seconds += seconds_of_box(r, form, i, side, b);
    }
    return seconds;
}

static double group_seconds(const oly_kernel_rates *r, const oly_tiling_form *form, const oly_tiling_group *g,
                            const oly_tiling_instance *i, const double *side)
{
    double seconds = 0;
    for (int j = 0; j < g->n_pieces && i->needed && g->n_stored > 0; j++) {
        const oly_tile_program *p = &g->pieces[j].program;
        box_seconds b = {.piece = &form->stages[g->first].pieces[j], .program = p, .machine = true};
        for (int k = 0; k < p->n_stores; k++)
            b.bytes += 2.0 * (double)oly_dtype_size((oly_dtype)p->store_dtype[k]);
        seconds += seconds_of_box(r, form, i, side, b);
    }
    return seconds;
}

/* A tile of fields: every stage or group of every step on the tile and what later ones need around it. */
static double tile_seconds(const oly_kernel_rates *r, const oly_tiling *m, const oly_tiling_pass *pass,
                           const double *side)
{
    bool machine = oly_code_available();
    const oly_tiling_form *form = &m->form;
    double seconds = 0;
    for (int step = 0; step < pass->steps; step++) {
        const oly_tiling_instance *first = &pass->instance[step * form->n_stages];
        for (int k = 0; k < form->n_groups && machine; k++)
            seconds += group_seconds(r, form, &form->groups[k], &first[form->groups[k].first], side);
        for (int k = 0; k < form->n_stages && !(machine && form->n_groups > 0); k++)
            seconds += stage_seconds(r, form, &first[k], side, machine);
    }
    return seconds;
}

static double tiled_pass_seconds(const oly_kernel_rates *r, const oly_plan *plan, const oly_step *s,
                                 const oly_tiling_pass *pass)
{
    const oly_tiling *m = s->stencil.tiling;
    oly_kernel_work w = {0};
    double chunks = 0;
    for (int d = 0; d < plan->n_devices; d++) {
        const oly_tiling_device *v = &m->device[d];
        double side[OLY_TILING_RANK], tiles = 1, elements = 1;
        if (!v->here)
            continue;
        for (int e = 0; e < m->form.rank; e++) {
            double parts = (double)oly_tiling_parts(m, v, e), length = (double)(v->block.hi[e] - v->block.lo[e]);
            side[e] = parts > 0 ? length / parts : 0;
            tiles *= parts;
            elements *= length;
        }
        w.seconds += tiles * tile_seconds(r, m, pass, side);
        for (int k = 0; k < m->form.n_fields; k++) {
            double bytes = elements * (double)oly_dtype_size(m->form.field[k]->type.dtype);
            w.read += bytes;
            w.written += bytes;
        }
        chunks += tiles;
    }
    return shared_seconds(r, &w, s->work, chunks);
}

static double stencil_seconds(const oly_kernel_rates *r, const oly_plan *plan, const oly_step *s)
{
    int64_t pass = s->stencil.pass > 0 ? s->stencil.pass : 1, whole = s->stencil.count / pass;
    int rest = (int)(s->stencil.count % pass);
    double once, last, first = 0;
    if (s->stencil.tiling) {
        once = last = tiled_pass_seconds(r, plan, s, &s->stencil.tiling->pass);
        first = rest ? tiled_pass_seconds(r, plan, s, &s->stencil.tiling->first) : 0;
    } else {
        once = pass_seconds(r, plan, s, (int)pass, false);
        last = pass_seconds(r, plan, s, (int)pass, true);
        first = rest ? pass_seconds(r, plan, s, rest, whole == 0) : 0;
    }
    double margins = larger(block_seconds(plan, s->stencil.margins[0]) - s->stencil.early * once, 0);
    double between = (double)(whole + (rest > 0)) - 1;
    return first + (whole > 0 ? (double)(whole - 1) * once + last : 0) + larger(between, 0) * margins;
}

/* -- steps ------------------------------------------------------------------------------------------------------------------ */

double oly_forecast_measured(const oly_plan *plan, const oly_step *s)
{
    const oly_kernel_rates *r = oly_kernel_rates_now();
    double longest = 0;
    switch (s->kind) {
    case OLY_STEP_TILE:
    case OLY_STEP_REDUCE:
    case OLY_STEP_LOCAL: return compute_seconds(r, plan, s);
    case OLY_STEP_GEMM:
        return compute_seconds(r, plan, s) +
               copy_seconds(r, copies_made(plan, s, s->gemm.n_copies), s->gemm.copies, s->work);
    case OLY_STEP_MOVE:
        return transfer_seconds(plan, s) +
               copy_seconds(r, copies_made(plan, s, s->move.n_copies), s->move.copies, s->work);
    case OLY_STEP_REDUCTION: return transfer_seconds(plan, s) + sum_seconds(r, s);
    case OLY_STEP_CALL: return oly_cost_step(plan, s); /* of what a function of the program does nothing is known */
    case OLY_STEP_LOOP:
        s = s->prepared && s->prepared->loop_once ? &s->prepared->loop_once->step : s;
        return (double)(s->loop.predicate < 0 ? s->loop.count : 1) * (block_seconds(plan, s->loop.body) + r->step);
    case OLY_STEP_BRANCH:
        for (int k = 0; k < s->branch.n; k++)
            longest = larger(longest, block_seconds(plan, s->branch.blocks[k]));
        return longest + r->step;
    case OLY_STEP_STENCIL: return stencil_seconds(r, plan, s);
    case OLY_STEP_WAIT: return 0; /* counted with the step that started the exchange */
    }
    return 0;
}
