/* SPDX-License-Identifier: BSD-3-Clause */
/* Overlaps a product with the reduce-scatter of its result. Blocks are computed in ring order, from the process after
 * this one, and each process is sent its part as soon as its blocks are done, so that one message travels while the
 * next block is computed:
 *
 *      process 1 of 4:   blocks of 2's rows | send to 2, blocks of 3's | send to 3, blocks of 0's | send to 0, its own
 *
 * All messages are one exchange with one number, so every process may decide for itself. Sums keep their order: the
 * process that reduces has all partial products before it starts, and blocks are the kernel's own parts of this
 * product (product_parts.c). Called by schedule.c. */
#include "plan/cost/cost.h"
#include "plan/schedule/scheduler.h"
#include "core/optimisation.h"
#include <string.h>

/* What a phase costs, and the least that all phases together must hide. */
static const double phase_seconds = 2e-6, least_seconds = 1e-5;

typedef struct feeder {
    oly_planner *p;
    const oly_step *product, *move;
    int n_peers, peers[OLY_MOST_PEERS];
    oly_product_phases phases; /* by number of the first peer that is sent the part; the last: none */
} feeder;

/* Lists the peers in ring order. */
static bool find_peers(feeder *f)
{
    int me = oly_mesh_my_process(), all = oly_mesh_processes();
    for (int k = 0; k < f->move->move.n_departures; k++) {
        int peer = f->move->move.departures[k].peer, j = 0;
        while (j < f->n_peers && f->peers[j] != peer)
            j++;
        if (j < f->n_peers)
            continue;
        if (f->n_peers == OLY_MOST_PEERS)
            return false;
        for (f->n_peers++; j > 0 && (f->peers[j - 1] - me + all) % all > (peer - me + all) % all; j--)
            f->peers[j] = f->peers[j - 1];
        f->peers[j] = peer;
    }
    return f->n_peers > 0;
}

/* Is everything that is sent computed by the product? */
static bool sends_the_product(const feeder *f)
{
    for (int k = 0; k < f->move->move.n_departures; k++) {
        bool made = false;
        for (int d = 0; d < f->p->plan->n_devices; d++)
            made = made || (f->product->gemm.device[d].has_work &&
                            f->product->gemm.device[d].out_base == f->move->move.departures[k].piece.buffer);
        if (!made)
            return false;
    }
    return true;
}

/* The first peer that a part is sent to; the number of peers: none; -1: unknown. */
static int first_peer(const void *context, const oly_gemm_work *w, const oly_gemm_part *part)
{
    const feeder *f = context;
    int64_t element = (int64_t)oly_dtype_size(w->task.dtype);
    int first = f->n_peers;
    oly_place place = {.base = w->out_base,
                       .offset = (part->row * w->task.c_row + part->column) * element,
                       .stride = {w->task.c_row, 1}};
    oly_ranges all = {.rank = 2, .hi = {part->rows, part->columns}}, met;
    for (int k = 0; k < f->move->move.n_departures; k++) {
        const oly_arrival *a = &f->move->move.departures[k];
        if (a->piece.buffer != w->out_base)
            continue;
        if (!oly_find_readers(&a->piece, element, &place, &all, &met))
            return -1;
        for (int j = 0; oly_ranges_volume(&met) > 0 && j < first; j++)
            if (f->peers[j] == a->peer)
                first = j;
    }
    return first;
}

/* Can the computation after the first phase hide what has been sent? */
static bool pays(const feeder *f, double flight)
{
    int n = 0;
    for (int k = 0; k <= f->n_peers; k++)
        n += f->phases.in_phase[k] > 0;
    if (n < 2)
        return false;
    double gain = oly_cost_step(f->p->plan, f->product) * (f->phases.total - f->phases.in_phase[0]) / f->phases.total;
    if (gain < least_seconds)
        return false;
    gain = gain < flight ? gain : flight;
    return gain > n * phase_seconds;
}

oly_status oly_send_blocks_early(oly_planner *p, const oly_step *product, const oly_step *move, double flight,
                                 oly_step *fed, bool *done)
{
    feeder f = {.p = p, .product = product, .move = move};
    *done = false;
    if (!oly_enabled(OLY_OPTIMISATION_COLLECTIVE_MATMUL) || move->move.n_departures == 0 || product->exchange ||
        !find_peers(&f) || !sends_the_product(&f))
        return OLY_OK;
    OLY_TRY(oly_product_phases_of(p, product, first_peer, &f, &f.phases));
    if (!f.phases.known || !pays(&f, flight))
        return OLY_OK;
    oly_gemm_phase *phases = OLY_PLAN_NEW(p, oly_gemm_phase, f.n_peers + 1);
    OLY_PLAN_CHECK(phases);
    for (int k = 0; k <= f.n_peers; k++) {
        phases[k] = (oly_gemm_phase){.peer = k < f.n_peers ? f.peers[k] : -1,
                                     .work = product->work * f.phases.in_phase[k] / f.phases.total};
        OLY_TRY(oly_product_phase_work(p, product, &f.phases, k, &phases[k].device));
    }
    *fed = *product;
    fed->exchange = move->exchange;
    fed->starts = true;
    fed->gemm.n_phases = f.n_peers + 1;
    fed->gemm.phases = phases;
    fed->detail = oly_plan_say(p, "%s%ssent block by block to %d process%s", product->detail ? product->detail : "",
                               product->detail ? "; " : "", f.n_peers, f.n_peers == 1 ? "" : "es");
    *done = true;
    return OLY_OK;
}
