/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts of steps on GPUs. See forecast_gpu.h. */
#include "run/cuda/forecast_gpu.h"
#include "plan/cost/cost.h"
#include "plan/model/time_tiling.h"
#include "run/cuda/bytes.h"
#include "run/cuda/steps.h"
#include "run/forecast.h"
#include "run/measured_units.h"
#include "run/prepare_cpu.h"
#include <string.h>

static struct {
    oly_gpu_rates rates[OLY_MOST_GPUS];  /* of oly_gpu_at(k) */
    oly_gpu_rates graphs[OLY_MOST_GPUS]; /* the same inside graphs of several iterations */
    oly_text text;
    oly_forecast_model model;
} now;
static _Thread_local bool in_graph; /* what is forecast now is an iteration in such a graph */

static const oly_gpu_rates *rates_of(int card)
{
    return in_graph ? &now.graphs[card] : &now.rates[card];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double block_seconds(const oly_plan *plan, const oly_block *b)
{
    double seconds = 0;
    for (int k = 0; b && k < b->n_steps; k++)
        seconds += now.model.step(plan, &b->steps[k]);
    return seconds;
}

/* -- devices and their cards: devices that are parts of a card share it ------------------------------------------------------ */

static int card_of(const oly_plan *plan, int device)
{
    const oly_gpu *g = oly_cuda_device_at(plan->devices[device])->gpu;
    int k = 0;
    while (k < oly_gpu_count() - 1 && oly_gpu_at(k) != g)
        k++;
    return k;
}

/* Seconds of each card's work; the last to finish decides. */
typedef struct card_seconds {
    double of[OLY_MOST_GPUS];
} card_seconds;

static double longest(const card_seconds *c)
{
    double most = 0;
    for (int k = 0; k < oly_gpu_count(); k++)
        most = larger(most, c->of[k]);
    return most;
}

static bool has_cpus(const oly_plan *plan)
{
    for (int d = 0; d < plan->n_devices; d++)
        if (plan->devices[d] >= oly_cuda_device_count())
            return true;
    return false;
}

/* -- steps that compute ------------------------------------------------------------------------------------------------------- */

static double type_bytes(const oly_type *t)
{
    return oly_box_elements(t->rank, t->shape) * (double)oly_dtype_size(t->dtype);
}

static double slot_bytes(const oly_plan *plan, const oly_step *s)
{
    double bytes = s->out_slot >= 0 ? (double)plan->slots[s->out_slot].bytes : 0;
    if (s->node && oly_graph_results(s->node) < 0)
        for (int k = 0; k < s->node->n_in; k++)
            bytes += type_bytes(&s->node->in[k]->type) / plan->n_devices;
    return bytes;
}

/* The detour: what it uses is read, computed by the CPU's kernels, and written back. */
static double host_seconds(const oly_plan *plan, const oly_step *s)
{
    double cpu = oly_kernel_rates_now() ? oly_forecast_measured(plan, s) : oly_cost_step(plan, s);
    return cpu + 2 * OLY_GPU_WAIT + slot_bytes(plan, s) * plan->n_devices / now.rates[0].pci;
}

static double share_of_parts(const oly_gemm_work *w)
{
    int all = w->parts ? oly_gemm_parts(&w->task) : 0;
    return all > 0 ? (double)w->n_parts / all : 1;
}

/* Is it a launch of another step: of the end of a row chain, of the product before it, or of one that reads bytes? */
static bool is_launched_elsewhere(const oly_step *s)
{
    const oly_prepared *p = s->prepared;
    bool leads = s->kind == OLY_STEP_GEMM || s->kind == OLY_STEP_LOCAL; /* a product, a convolution */
    return p && (p->left_out || (s->kind == OLY_STEP_TILE && p->epilogue) || (!leads && p->with_next));
}

static double product_seconds(const oly_gpu_rates *r, const oly_step *s, int d)
{
    const oly_gemm_work *w = &s->gemm.device[d];
    if (!w->has_work)
        return 0;
    double seconds = oly_gpu_product_seconds(r, &w->task) * share_of_parts(w);
    return oly_cuda_reads_bytes(s) ? r->start + (seconds - r->start) * OLY_GPU_OWN_PRODUCT / OLY_GPU_BYTE_PRODUCT
                                   : seconds;
}

static double device_seconds(const oly_gpu_rates *r, const oly_plan *plan, const oly_step *s, int d)
{
    if (is_launched_elsewhere(s))
        return 0;
    if (s->prepared && s->prepared->rows)
        return oly_gpu_chain_seconds(r, s->prepared->rows, d);
    switch (s->kind) {
    case OLY_STEP_TILE:
        return s->tile.device[d].has_work ? oly_gpu_tile_seconds(r, &s->tile.program, &s->tile.device[d]) : 0;
    case OLY_STEP_REDUCE:
        return s->reduce.device[d].has_work ? oly_gpu_reduce_seconds(r, &s->reduce.device[d].task) : 0;
    case OLY_STEP_LOCAL: return s->local.device[d].has_work ? oly_gpu_local_seconds(r, &s->local.device[d].task) : 0;
    case OLY_STEP_GEMM: return product_seconds(r, s, d);
    default: /* of what a function of the program does only its operands are known */
        return oly_gpu_kernel_seconds(r, s->call.bytes / plan->n_devices, 0);
    }
}

static double compute_seconds(const oly_plan *plan, const oly_step *s)
{
    card_seconds all = {0};
    for (int d = 0; d < plan->n_devices; d++) {
        if (oly_step_has_work(s, d) && !oly_cuda_has(plan, s, d))
            return host_seconds(plan, s);
        int card = card_of(plan, d);
        all.of[card] += device_seconds(rates_of(card), plan, s, d);
    }
    return longest(&all);
}

/* -- copies and messages -------------------------------------------------------------------------------------------------------- */

/* Boxes of a step are one launch, or a few. Between cards at the rate of what joins them; where kernels do not reach the other card, the host copies. */
static double copy_seconds(const oly_plan *plan, int n, const oly_copy_work *copies)
{
    enum { BOXES = 12 };
    card_seconds all = {0};
    for (int k = 0; k < n; k++) {
        int to = card_of(plan, oly_cell_device(plan, copies[k].to.base));
        int from = copies[k].from.base < 0 ? to : card_of(plan, oly_cell_device(plan, copies[k].from.base));
        const oly_gpu *a = oly_gpu_at(to), *b = oly_gpu_at(from);
        double seconds = oly_gpu_copy_seconds(rates_of(to), &copies[k].task);
        if (a != b && seconds > 0) {
            double bytes =
                oly_box_elements(copies[k].task.rank, copies[k].task.extent) * (double)copies[k].task.element_bytes;
            double slow = now.rates[to].pci < now.rates[from].pci ? now.rates[to].pci : now.rates[from].pci;
            double rate = a->links == b->links ? now.rates[to].link : slow;
            seconds = larger(seconds, OLY_GPU_KERNEL + bytes / rate);
            if (!oly_gpu_reaches(a, b))
                seconds += 2 * OLY_GPU_WAIT + bytes / rate;
        }
        bool joins = k % BOXES != 0 && a == b && seconds > 0;
        all.of[to] += seconds - (joins ? rates_of(to)->start : 0);
    }
    return longest(&all);
}

/* What one device receives from other processes, by the way of this job's messages. */
static double message_seconds(const oly_plan *plan, double bytes, int messages)
{
    oly_way way = oly_transport_way();
    double latency, bandwidth;
    if (oly_transport_price(&latency, &bandwidth))
        return messages * latency + bytes / bandwidth;
    oly_level level = oly_mesh_level(plan->mesh);
    double wire = oly_cost_transfer(level, bytes, messages), pci = bytes / now.rates[0].pci;
    if (way == OLY_WAY_NCCL && level != OLY_LEVEL_NETWORK)
        wire = messages * OLY_GPU_WAIT + pci;
    if (way != OLY_WAY_NCCL) /* in chunks: copies over PCI and the wire at the same time */
        wire = larger(wire, pci);
    return OLY_GPU_WAIT + wire;
}

static double transfer_seconds(const oly_plan *plan, const oly_step *s)
{
    bool apart = s->exchange || s->second || s->begun || (s->kind == OLY_STEP_REDUCTION && s->reduction.staged);
    return apart && s->messages > 0 && s->bytes > 0 ? message_seconds(plan, (double)s->bytes, s->messages) : 0;
}

static double sum_seconds(const oly_plan *plan, const oly_step *s)
{
    card_seconds all = {0};
    double size = (double)oly_dtype_size(s->reduction.dtype);
    for (int k = 0; k < s->reduction.n_groups; k++) {
        const oly_reduction_work *g = &s->reduction.groups[k];
        double n = (double)(g->end - g->begin);
        int card = g->n_outs > 0 ? card_of(plan, oly_cell_device(plan, g->out_base[0])) : 0;
        all.of[card] += oly_gpu_kernel_seconds(rates_of(card), n * size * (g->n_sources + g->n_outs), n * g->n_sources);
    }
    if (s->reduction.levels)
        all.of[0] +=
            s->reduction.levels->n * OLY_GPU_KERNEL + oly_gpu_kernel_seconds(rates_of(0), s->work * size, s->work);
    return longest(&all);
}

/* -- loops over fields ------------------------------------------------------------------------------------------------------------- */

/* All passes of a device: a launch keeps points in registers for some steps. */
static double sweep_seconds(const oly_gpu_rates *r, const oly_step *s, int d)
{
    enum { STEPS_1D = 16, STEPS_2D = 8, STEPS_3D = 3 };
    const oly_stencil *stencil = s->stencil.stencil;
    const oly_stencil_field *f = &s->stencil.device[d].last;
    double points = 1, size = (double)oly_dtype_size(stencil->dtype), count = (double)s->stencil.count;
    for (int e = 0; e < stencil->rank; e++)
        points *= (double)(f->write_hi[e] - f->write_lo[e]);
    double steps = stencil->rank == 1 ? STEPS_1D : stencil->rank == 2 ? STEPS_2D : STEPS_3D;
    if (s->stencil.pass > 0 && s->stencil.pass < steps)
        steps = s->stencil.pass;
    double clocks = stencil->n_taps * (stencil->rank == 1 ? OLY_GPU_TAP_1D : OLY_GPU_TAP) * (size > 4 ? 2 : 1);
    double bytes = 2 * points * size * count / steps / (stencil->rank == 3 ? OLY_GPU_STENCIL_WAVE : 1);
    return count / steps * r->start + larger(bytes / r->memory, clocks * points * count / r->lanes);
}

static double piece_clocks(const oly_tiling_piece *p)
{
    const oly_tile_program *program = p->machine.n_instructions > 0 ? &p->machine : &p->program;
    return p->machine.n_instructions == 0 && p->n_taps > 0 ? 2 * p->n_taps + 1 : oly_gpu_program_clocks(program);
}

/* A launch reads and writes the fields once for some steps, as many as a pass of the plan has and shared memory has room for. */
static double fields_seconds(const oly_gpu_rates *r, const oly_step *s, int d)
{
    enum { STEPS = 4 };
    const oly_tiling *m = s->stencil.tiling;
    double points = 1, clocks = 0, bytes = 0, count = (double)s->stencil.count;
    double steps = s->stencil.pass > 0 && s->stencil.pass < STEPS ? (double)s->stencil.pass : STEPS;
    if (!m->device[d].here)
        return 0;
    for (int e = 0; e < m->form.rank; e++)
        points *= (double)(m->device[d].block.hi[e] - m->device[d].block.lo[e]);
    for (int k = 0; k < m->form.n_stages; k++) {
        clocks += m->form.stages[k].inlined ? 0 : OLY_GPU_STAGE;
        for (int j = 0; j < m->form.stages[k].n_pieces && !m->form.stages[k].inlined; j++) {
            const oly_tiling_piece *piece = &m->form.stages[k].pieces[j];
            double share = 1;
            for (int e = 0; e < m->form.rank; e++)
                share *= (double)(piece->hi[e] - piece->lo[e]) / (double)m->form.shape[e];
            clocks += (share < 1 ? share : 1) * piece_clocks(piece);
        }
    }
    for (int k = 0; k < m->form.n_fields; k++)
        bytes += 2 * points * (double)oly_dtype_size(m->form.field[k]->type.dtype);
    for (int k = 0; k < m->form.n_fixed; k++)
        bytes += points * (double)oly_dtype_size(m->form.fixed[k].node->type.dtype);
    return count / steps * r->start +
           larger(count / steps * bytes / r->memory, count * points * clocks * OLY_GPU_FIELDS / r->lanes);
}

static double stencil_seconds(const oly_plan *plan, const oly_step *s)
{
    card_seconds all = {0};
    const int64_t most = s->stencil.pass > 0 ? (s->stencil.count + s->stencil.pass - 1) / s->stencil.pass : 1;
    double passes = (double)most;
    for (int d = 0; d < plan->n_devices; d++) {
        int card = card_of(plan, d);
        if (!oly_cuda_has(plan, s, d))
            return host_seconds(plan, s);
        all.of[card] += s->stencil.tiling ? fields_seconds(rates_of(card), s, d) : sweep_seconds(rates_of(card), s, d);
    }
    double once = longest(&all) / larger(passes, 1);
    double margins = larger(block_seconds(plan, s->stencil.margins[0]) - s->stencil.early * once, 0);
    return longest(&all) + larger(passes - 1, 0) * margins;
}

/* -- steps ------------------------------------------------------------------------------------------------------------------------- */

static double branch_seconds(const oly_plan *plan, const oly_step *s)
{
    double most = 0;
    for (int k = 0; k < s->branch.n; k++)
        most = larger(most, block_seconds(plan, s->branch.blocks[k]));
    return OLY_GPU_WAIT + most;
}

/* How often a condition holds is not known: one iteration. */
static double loop_seconds(const oly_plan *plan, const oly_step *s)
{
    bool before = in_graph, counted = s->loop.predicate < 0, recorded = s->prepared && s->prepared->replay;
    in_graph = before || recorded;
    double once = block_seconds(plan, s->loop.body) + (in_graph ? 0 : OLY_GPU_ITERATION);
    in_graph = before;
    return counted ? (double)s->loop.count * once : once + OLY_GPU_WAIT;
}

/* Copies that a convolution makes as it writes, or a row chain as it reads, take nothing. */
static double move_seconds(const oly_plan *plan, const oly_step *s)
{
    bool copied = !s->prepared || (!s->prepared->convolution && !s->prepared->copied_later);
    return transfer_seconds(plan, s) + (copied ? copy_seconds(plan, s->move.n_copies, s->move.copies) : 0);
}

static double step_seconds(const oly_plan *plan, const oly_step *s)
{
    switch (s->kind) {
    case OLY_STEP_TILE:
    case OLY_STEP_REDUCE:
    case OLY_STEP_LOCAL:
    case OLY_STEP_CALL: return compute_seconds(plan, s);
    case OLY_STEP_GEMM: return compute_seconds(plan, s) + copy_seconds(plan, s->gemm.n_copies, s->gemm.copies);
    case OLY_STEP_MOVE: return move_seconds(plan, s);
    case OLY_STEP_REDUCTION: return transfer_seconds(plan, s) + sum_seconds(plan, s);
    case OLY_STEP_LOOP: return loop_seconds(plan, s);
    case OLY_STEP_BRANCH: return branch_seconds(plan, s);
    case OLY_STEP_STENCIL: return stencil_seconds(plan, s);
    case OLY_STEP_WAIT: return 0; /* counted with the step that started the exchange */
    }
    return 0;
}

/* CPU devices beside GPUs compute at once, and what moves between both kinds is copied by the host. */
static double forecast_step(const oly_plan *plan, const oly_step *s)
{
    return has_cpus(plan) ? oly_cost_step(plan, s) : step_seconds(plan, s);
}

const oly_forecast_model *oly_cuda_forecast(void)
{
    oly_text_free(&now.text);
    now.text = (oly_text){0};
    for (int k = 0; k < oly_gpu_count(); k++) {
        now.graphs[k] = now.rates[k] = oly_gpu_rates_of(oly_gpu_at(k));
        now.graphs[k].start = OLY_GPU_NODE;
        now.graphs[k].ramp = 0; /* the next kernel is there when one ends */
    }
    oly_gpu_rates_text(&now.text, oly_gpu_at(0), &now.rates[0]);
    if (now.text.failed)
        return NULL;
    now.model = (oly_forecast_model){.step = forecast_step, .call = OLY_GPU_CALL, .rates = oly_text_chars(&now.text)};
    return &now.model;
}
